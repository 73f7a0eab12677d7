"""Texture units: from coordinates to a texel, by the formulas of the CUDA Programming Guide, "Texture Fetching".

Coordinates are scaled, wrapped and halved in f64, where all of that is exact for the f32 that come in, and then, for
linear filtering, rounded to 8 fractional bits. Weights are products of such fractions, so each weighted texel is exact
in f64 too; the sum is rounded to f32 once. A texel of weight 0 is not read.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....launch.texture_description import ADDRESS_MODES
from ...machine.texture_pool import Header, Kind, Level, Request
from ...semantics.lanes import Bits, Real
from ...instructions.textures import TextureUnit
from ..handler import i32, i64, pointer
from ..registry import builds
from .texel import texel
from .unit import Unit, axes, doubles, floats, layered, words

WRAP, MIRROR, OGL, CLAMP, BORDER = range(len(ADDRESS_MODES))
_BEYOND = float(1 << 29)
"""Farther out than any extent."""

_LEVEL = ir.FunctionType(words, [pointer, pointer, pointer, i64, pointer, i32, *[ir.DoubleType()] * 3])


class _Sampler(Unit):
    """A unit with a texture and a sampler, which may be the texture's own."""

    texture: Any
    sampler: Any

    def normalized(self) -> Bits:
        """Whether coordinates go from 0 to 1: the texture says so, unless a separate sampler overrides it."""
        own = self.field(self.texture, Header.NORMALIZED).ne(0)
        return own & self.field(self.sampler, Header.UNNORMALIZED).eq(0)


class Sampling(_Sampler):
    """The function that samples one mipmap level: (header, sampler, request, lane, level, layer, coordinates)."""

    def __init__(self, module: ir.Module, name: str, key: TextureUnit) -> None:
        self.what, self.geometry, self.offsets, self.compares = key.action, key.geometry, key.offsets, key.compares
        super().__init__(module, f"{name}.level", _LEVEL)
        self.function.linkage = "internal"
        self.read = texel(module, name)
        self.texture, self.sampler, self.request, self.lane, self.entry = self.function.args[:5]
        self.layer_number = Bits(self.b, self.function.args[5], 32)
        self.count = axes(self.geometry)
        self.sizes = self.extents(self.entry, self.count)
        self.modes = [self.field(self.sampler, Header.ADDRESS + 4 * axis) for axis in range(self.count)]
        places = [self._mapped(axis) for axis in range(self.count)]
        if self.what == "gather":
            self.ir.ret(self._gathered(places))
            return
        linear = self.field(self.sampler, Header.LINEAR) & self.field(self.texture, Header.REAL)
        result = self.either(linear.ne(0), lambda: self._filtered(places), lambda: self._nearest(places))
        self.ir.ret(result)

    def _mapped(self, axis: int) -> Real:
        """The coordinate in texels, within the texture where the mode says so."""
        size, mode = self.sizes[axis].to_real(64, False), self.modes[axis]
        given = Real(self.b, self.function.args[6 + axis], 64)
        normalized = self.normalized()
        x = given * size if self.geometry.endswith("cube") else normalized.pick(given * size, given)
        if self.offsets:
            x = x + self.given(Request.OFFSET + 128 * axis).to_real(64, True)

        def periodic() -> Real:
            period = (x / size).integral("rmi")
            rest = x - period * size
            odd = (period - (period * 0.5).integral("rmi") * 2.0).compare("!=", 0.0) & mode.eq(MIRROR)
            return odd.pick(size - rest, rest)

        def plain() -> Real:
            return mode.eq(OGL).pick(x.call("maxnum", 0.0).call("minnum", size), x)

        x = self.either(mode.lt(OGL), periodic, plain)
        x = x.isnan().pick(0.0, x)
        return x.call("maxnum", -_BEYOND).call("minnum", _BEYOND)

    def _index(self, i: Bits, axis: int, linear: bool) -> tuple[Bits, Bits]:
        """The texel that a number stands for, and whether it is one rather than the border."""
        size, mode = self.sizes[axis], self.modes[axis]
        inside = i.lt(size)
        around = i.negative().pick(i + size, inside.pick(i, i - size))
        clamped = i.max(0, signed=True).min(size - 1, signed=True)
        bordered = mode.eq(BORDER) | mode.eq(OGL) if linear else mode.eq(BORDER)
        return mode.eq(WRAP).pick(around, clamped), inside | (bordered ^ 1)

    def _texel(self, chosen: list[tuple[Bits, Bits]]) -> Any:
        """A texel or the border, compared with the reference where there is one."""
        inside = self.true()
        for _, good in chosen:
            inside = inside & good
        layer = self.layer_number if layered(self.geometry) or "cube" in self.geometry else None

        def fetched() -> Any:
            place = self.place(self.texture, self.entry, layer, [index for index, _ in chosen])
            return self.ir.call(self.read, [self.texture, place])

        value = self.either(inside, fetched, lambda: self.load(self.sampler, Header.BORDER, words, 4))
        if not self.compares:
            return value
        reference = self.ir.bitcast(self.given(Request.REFERENCE).value, ir.FloatType())
        passed = self.ir.fcmp_ordered("<=", _splat(self.ir, reference), self.ir.bitcast(value, floats))
        return self.ir.bitcast(self.ir.uitofp(passed, floats), words)

    def _nearest(self, places: list[Real]) -> Any:
        chosen = []
        for axis, x in enumerate(places):
            i = x.integral("rmi").to_int(32, True)
            # A coordinate that the wrapping rounded up to the size itself, and 1 in the guide's formula of mirrors.
            i = self.modes[axis].lt(CLAMP).pick(i.min(self.sizes[axis] - 1, signed=True), i)
            chosen.append(self._index(i, axis, False))
        return self._texel(chosen)

    def _pairs(self, places: list[Real]) -> list[tuple[list[tuple[Bits, Bits]], Bits]]:
        """By axis the two texels and the weight of the second, in 256ths."""
        pairs = []
        for axis, x in enumerate(places):
            fixed = (x * 256.0 - 127.5).integral("rmi").to_int(64, True)
            i = fixed.sar(8).trunc(32)
            pairs.append(([self._index(i, axis, True), self._index(i + 1, axis, True)], fixed & 255))
        return pairs

    def _filtered(self, places: list[Real]) -> Any:
        pairs = self._pairs(places)
        scale = 1.0 / 256.0 ** len(pairs)
        total: Any = ir.Constant(doubles, [0.0] * 4)
        for corner in range(1 << len(pairs)):
            weight = self.b.bits(64, 1)
            for axis, (_, second) in enumerate(pairs):
                weight = weight * (second if corner >> axis & 1 else 256 - second)
            chosen = [both[corner >> axis & 1] for axis, (both, _) in enumerate(pairs)]
            total = self._added(total, weight, scale, chosen)
        return self.ir.bitcast(self.ir.fptrunc(total, floats), words)

    def _added(self, total: Any, weight: Bits, scale: float, chosen: list[tuple[Bits, Bits]]) -> Any:
        def weighted() -> Any:
            value = self.ir.fpext(self.ir.bitcast(self._texel(chosen), floats), doubles)
            factor = _splat(self.ir, (weight.to_real(64, True) * scale).value)
            return self.ir.fadd(total, self.ir.fmul(value, factor))

        return self.either(weight.ne(0), weighted, lambda: total)

    def _gathered(self, places: list[Real]) -> Any:
        """One component of the four texels, counter-clockwise from the lower left."""
        (across, _), (down, _) = self._pairs(places)
        result: Any = ir.Constant(words, [0] * 4)
        for number, (x, y) in enumerate(((0, 1), (1, 1), (1, 0), (0, 0))):
            value = self._texel([across[x], down[y]])
            component = self.load(self.request, Request.LOD, i32)
            result = self.ir.insert_element(result, self.ir.extract_element(value, component), i32(number))
        return result


def _splat(builder: ir.IRBuilder, value: Any) -> Any:
    kind = ir.VectorType(value.type, 4)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
    return builder.shuffle_vector(first, first, ir.Constant(words, [0] * 4))


class Fetching(Unit):
    """The unit that takes texels by integer coordinates: zeros beyond the texture, whatever the sampler says."""

    def __init__(self, module: ir.Module, name: str, key: TextureUnit) -> None:
        geometry, offsets = key.geometry, key.offsets
        read = texel(module, name)
        super().__init__(module, name)
        texture = self.header(Request.HANDLE, Kind.TEXTURE, geometry=geometry)
        entry = self.load(texture, Header.TABLE, pointer, 8)
        count, inside, indices = axes(geometry), self.true(), []
        for axis, size in enumerate(self.extents(entry, count)):
            i = self.given(Request.X + 128 * axis)
            if offsets:
                i = i + self.given(Request.OFFSET + 128 * axis)
            inside = inside & i.lt(size)
            indices.append(i)
        layer = self.layer(texture, geometry) if layered(geometry) else None
        if geometry.endswith("ms"):
            samples, sample = self.field(texture, Header.SAMPLES), self.given(Request.SAMPLE)
            inside = inside & sample.lt(samples)
            indices[0] = indices[0] * samples + sample
        result = self.either(
            inside, lambda: self.ir.call(read, [texture, self.place(texture, entry, layer, indices)]),
            lambda: self._nothing(texture),
        )
        _give(self, result)

    def _nothing(self, texture: Any) -> Any:
        """Zeros, but one in a fourth channel that the format does not have."""
        one = self.field(texture, Header.REAL).ne(0).pick(0x3F800000, self.b.bits(32, 1))
        last = (self.field(texture, Header.FORMAT).divide(3, False) * 3 + 2).eq(self.field(texture, Header.FORMAT))
        return self.ir.insert_element(ir.Constant(words, [0] * 4), last.pick(0, one).value, i32(3))


def _give(unit: Unit, result: Any) -> None:
    for channel in range(4):
        unit.answer(unit.ir.extract_element(result, i32(channel)), Request.RESULT + 128 * channel, 4)
    unit.fine()


class Filtering(_Sampler):
    """The unit that samples: which mipmap levels, and what of a cube, then :class:`Sampling`."""

    def __init__(self, module: ir.Module, name: str, key: TextureUnit) -> None:
        self.geometry, self.detail, separate = key.geometry, key.detail, key.separate
        self.level_function = Sampling(module, name, key).function
        super().__init__(module, name)
        self.texture = self.header(Request.HANDLE, Kind.TEXTURE, geometry=self.geometry)
        self.sampler = self.header(Request.SAMPLER, Kind.SAMPLER) if separate else self.texture
        self.count = axes(self.geometry)
        self.number = self.layer(self.texture, self.geometry)
        self.table = self.load(self.texture, Header.TABLE, pointer, 8)
        steps: list[Real] = []
        if "cube" in self.geometry:
            coordinates, steps = self._cube()
        else:
            coordinates = [self.coordinate(Request.X + 128 * axis) for axis in range(self.count)]
            if self.detail == "grad":
                steps = [self.coordinate(Request.GRADIENTS + 128 * n) for n in range(2 * self.count)]
        self.coordinates, self.steps = coordinates, steps
        levels = self.field(self.texture, Header.LEVELS)
        result = self.either(levels.gt(1), lambda: self._mipmapped(levels), lambda: self._level(self.b.bits(32, 0)))
        _give(self, result)

    def _level(self, number: Bits) -> Any:
        entry = self.at(self.table, number * Level.nbytes)
        missing = [self.b.number(64, 0.0)] * (3 - len(self.coordinates))
        values = [x.value for x in (*self.coordinates, *missing)]
        sampled = [self.texture, self.sampler, self.request, self.lane, entry, self.number.value, *values]
        return self.ir.call(self.level_function, sampled)

    def _mipmapped(self, levels: Bits) -> Any:
        detail = self._detail()
        detail = detail + self.real_field(self.sampler, Header.BIAS)
        low, high = (self.real_field(self.sampler, field) for field in (Header.LOWEST, Header.HIGHEST))
        last = (levels - 1).to_real(64, False)
        detail = detail.call("maxnum", low).call("minnum", high).call("maxnum", 0.0).call("minnum", last)
        fixed = (detail * 256.0 + 0.5).integral("rmi").to_int(32, True)
        lower, weight = fixed.sar(8), fixed & 255
        nearest = (detail + 0.5).integral("rmi").to_int(32, True)

        def blended() -> Any:
            near, far = (self.ir.bitcast(self._level(number), floats) for number in (lower, lower + 1))
            parts = []
            for value, share in ((near, 256 - weight), (far, weight)):
                factor = (share.to_real(64, True) * (1.0 / 256)).value
                parts.append(self.ir.fmul(self.ir.fpext(value, doubles), _splat(self.ir, factor)))
            return self.ir.bitcast(self.ir.fptrunc(self.ir.fadd(*parts), floats), words)

        blends = self.field(self.sampler, Header.BLEND).ne(0)
        both = blends & weight.ne(0) & self.field(self.texture, Header.REAL).ne(0)
        return self.either(both, blended, lambda: self._level(blends.pick(lower, nearest)))

    def _detail(self) -> Real:
        """The level of detail: given, by the gradients, or the lowest there is."""
        if self.detail == "level":
            return self.coordinate(Request.LOD)
        if self.detail != "grad":
            return self.b.number(64, -32.0)
        normalized = self.normalized()
        squares = []
        for direction in range(2):
            square = self.b.number(64, 0.0)
            for axis, size in enumerate(self.extents(self.table, self.count)):
                step = self.steps[direction * self.count + axis]
                scaled = step * size.to_real(64, False)
                step = scaled if "cube" in self.geometry else normalized.pick(scaled, step)
                square = square + step * step
            squares.append(square)
        return squares[0].call("maxnum", squares[1]).call("log2") * 0.5

    def _cube(self) -> tuple[list[Real], list[Real]]:
        """The face's coordinates by the guide's table of faces, and their gradients; the face becomes the layer."""
        x, y, z = (self.coordinate(Request.X + 128 * axis) for axis in range(3))
        above = abs(z).compare(">=", abs(x)) & abs(z).compare(">=", abs(y))
        middle = abs(y).compare(">=", abs(x))
        face = above.pick(4, middle.pick(2, self.b.bits(32, 0)))
        main = above.pick(z, middle.pick(y, x))
        negative = main.to_bits().negative() & main.compare("!=", 0.0)
        face = face + negative.zext(32)
        self.number = self.number * 6 + face

        def split(a: Real, b: Real, c: Real) -> tuple[Real, Real, Real]:
            """What runs along the face, down the face, and out of it, of a vector."""
            along = above.pick(negative.pick(-a, a), middle.pick(a, negative.pick(c, -c)))
            down = above.pick(-b, middle.pick(negative.pick(-c, c), -b))
            out = above.pick(c, middle.pick(b, a))
            return along, down, negative.pick(-out, out)

        s, t, m = split(x, y, z)
        m = m.compare("==", 0.0).pick(1.0, m)
        coordinates = [(s / m + 1.0) * 0.5, (t / m + 1.0) * 0.5]
        steps: list[Real] = []
        if self.detail == "grad":
            for direction in range(2):
                given = [self.coordinate(Request.GRADIENTS + 128 * (3 * direction + axis)) for axis in range(3)]
                ds, dt, dm = split(given[0], given[1], given[2])
                steps += [(ds * m - s * dm) / (m * m * 2.0), (dt * m - t * dm) / (m * m * 2.0)]
        return coordinates, steps


@builds(TextureUnit)
def texture_unit(module: ir.Module, name: str, key: TextureUnit) -> None:
    (Fetching if key.action == "fetch" else Filtering)(module, name, key)
