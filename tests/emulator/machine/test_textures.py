"""Textures on the emulator, against the formulas of the CUDA Programming Guide in exact fractions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, kernel, launch, pointer
from texture_harness import columns, program, run, vector
from texture_reference import Mode, close, face, four, read, sample, texels_along

from ptxdsl import (
    Array, LaunchError, Ptr, Surface, Texture, f32, loop, profile, ptx, ptx_func, ptx_kernel, reg, s32, trace_thread,
    u32, when,
)
from ptxdsl.emulator.machine.texture_pool import pool

COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4}
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (4, 5, 3), "a1d": (3, 7), "a2d": (3, 5, 7)}
ADDRESSES = [("clamp", False), ("border", False), *product(("clamp", "border", "wrap", "mirror"), [True])]
BORDER = (0.5, -2.0, 3.25, 0.75)


def coordinates(rng: np.random.Generator, count: int, size: int, normalized: bool) -> np.ndarray:
    """Coordinates within, beyond and at the edges of an axis, and what is no number."""
    x = rng.uniform(-2.5 * size, 3.5 * size, count)
    x[: count // 4] = rng.integers(-4 * size, 6 * size, count // 4) / 2  # edges and centres of texels
    x[count // 4 : count // 3] = rng.uniform(-0.51, 0.01, count // 3 - count // 4)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, size, 1e30, -1e30, 1e-30, -1e-30, size - 0.5, -0.5]
    x[-len(special) :] = special
    rng.shuffle(x)
    return (x / size if normalized else x).astype(np.float32)


def texels(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.uniform(-8, 8, shape).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, shape, dtype, endpoint=True)


def instruction(geometry: str, dtype: str = "f32", ctype: str = "f32", tail: str = "", head: str = "tex") -> str:
    at = vector("c", 0, COORDINATES[geometry])
    return f"{head}.{geometry}.v4.{dtype}.{ctype} {vector('d', 0, 4)}, [%h0, {at}]{tail};"


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize(("address", "normalized"), ADDRESSES)
@pytest.mark.parametrize("geometry", list(SHAPES))
def test_sampling(rng: np.random.Generator, geometry: str, address: str, normalized: bool, linear: bool) -> None:
    channels, count = int(rng.choice([1, 2, 4])), 96
    image = texels(rng, (*SHAPES[geometry], channels), np.float32)
    mode = Mode(address, linear, normalized, BORDER[:channels] + (0.0, 0.0, 0.0, 1.0)[channels:])
    layered = geometry[0] == "a"
    sizes = image.shape[-2 : (0 if layered else None) : -1] if layered else image.shape[-2::-1]
    axes = [coordinates(rng, count, size, normalized) for size in sizes]
    layers = rng.integers(0, 5, count).astype(np.uint32)  # the last one stands for those beyond
    given = [layers, *axes] if layered else [*axes]
    given += [np.zeros(count, np.float32)] * (COORDINATES[geometry] - len(given))
    texture = Texture(
        image, geometry, address=address, filter="linear" if linear else "point", normalized=normalized, border=BORDER
    )
    got = run(program(instruction(geometry), len(given), 4), texture, columns(*given), 4)
    full = four(image, 1)
    exact = [
        sample(full[min(layers[lane], 2)] if layered else full, tuple(axis[lane] for axis in axes), mode)
        for lane in range(count)
    ]
    close(got, exact)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"])
def test_formats(rng: np.random.Generator, dtype: str, channels: int) -> None:
    image = texels(rng, (5, 9, channels), dtype)
    at = [rng.uniform(0, size - 0.01, 64).astype(np.float32) for size in (9, 5)]
    places = tuple(np.floor(x).astype(int) for x in at[::-1])
    real = dtype.startswith("float")
    kind = {"f": "f32", "u": "u32", "i": "s32"}[np.dtype(dtype).kind]
    wide = {"f": np.float32, "u": np.uint32, "i": np.int32}[np.dtype(dtype).kind]
    got = run(program(instruction("2d", kind), 2, 4), Texture(image, "2d"), columns(*at), 4, wide)
    np.testing.assert_array_equal(got, four(read(image, False).astype(wide), 1)[places])
    if not real and image.itemsize < 4:
        texture = Texture(image, "2d", read="normalized")
        got = run(program(instruction("2d"), 2, 4), texture, columns(*at), 4)
        np.testing.assert_array_equal(got, four(read(image, True), 1)[places])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "float16"])
def test_filters_what_it_reads(rng: np.random.Generator, dtype: str) -> None:
    image = texels(rng, (6, 5, 4), dtype)
    texture = Texture(image, "2d", filter="linear", read="element" if dtype == "float16" else "normalized")
    at = [coordinates(rng, 64, size, False) for size in (5, 6)]
    got = run(program(instruction("2d"), 2, 4), texture, columns(*at), 4)
    numbers = read(image, True)
    close(got, [sample(numbers, (x, y), Mode(linear=True)) for x, y in zip(*at)])


def test_light(rng: np.random.Generator) -> None:
    image = np.stack([np.arange(256)] * 4, axis=-1).astype(np.uint8)[None]
    x = np.arange(256, dtype=np.float32)
    got = run(program(instruction("2d"), 2, 4), Texture(image, "2d", read="normalized", srgb=True),
              columns(x, np.zeros_like(x)), 4)
    c = np.arange(256) / 255
    light = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(got[:, :3], np.stack([light] * 3, axis=-1), rtol=1e-6)
    np.testing.assert_array_equal(got[:, 3], (np.arange(256) / 255).astype(np.float32))


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("geometry", ["cube", "acube"])
def test_cubes(rng: np.random.Generator, geometry: str, linear: bool) -> None:
    count, layered = 256, geometry == "acube"
    image = texels(rng, ((3,) if layered else ()) + (6, 5, 5, 2), np.float32)
    vectors = rng.normal(size=(count, 3)).astype(np.float32)
    vectors[:6] = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    layers = rng.integers(0, 3, count).astype(np.uint32)
    rest = list(vectors.T)
    given = [layers, *rest] if layered else [*rest, rest[0]]
    texture = Texture(image, geometry, filter="linear" if linear else "point")
    got = run(program(instruction(geometry), 4, 4), texture, columns(*given), 4)
    full, exact = four(image, 1), []
    for lane, (x, y, z) in enumerate(vectors.astype(float)):
        number, s, t = face(x, y, z)
        layer = full[layers[lane]] if layered else full
        exact.append(sample(layer[number], (s, t), Mode("clamp", linear, True)))
    close(got, exact)


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d", "a1d", "a2d"])
def test_whole_coordinates(rng: np.random.Generator, geometry: str) -> None:
    """Without a sampler of its own a texture is not sampled: beyond its edges are zeros, whatever the address mode."""
    channels = int(rng.choice([1, 2, 4]))
    image = texels(rng, (*SHAPES[geometry], channels), np.int16)
    layered, count = geometry[0] == "a", 128
    sizes = SHAPES[geometry][1:] if layered else SHAPES[geometry]
    axes = [rng.integers(-2, size + 2, count).astype(np.int32) for size in sizes[::-1]]
    axes[0][0] = -(2**31)
    layers = rng.integers(0, 3, count).astype(np.int32)
    given = [layers, *axes] if layered else [*axes]
    given += [np.zeros(count, np.int32)] * (COORDINATES[geometry] - len(given))
    texture = Texture(image, geometry, address="clamp")
    got = run(program(instruction(geometry, "s32", "s32"), len(given), 4), texture, columns(*given), 4, np.int32)
    full = four(image.astype(np.int32), 1)
    for lane in range(count):
        where = tuple(int(axis[lane]) for axis in axes[::-1])
        good = all(0 <= i < n for i, n in zip(where, sizes))
        wanted = (full[layers[lane]] if layered else full)[where] if good else [0, 0, 0, channels < 4]
        assert got[lane].tolist() == list(wanted)


def test_linear_memory(rng: np.random.Generator) -> None:
    image = rng.uniform(-1, 1, 1000).astype(np.float32)
    x = rng.integers(-5, 1005, 64).astype(np.int32)
    got = run(program(instruction("1d", "f32", "s32"), 1, 4), Texture(image, "linear"), columns(x), 4)
    good = (x >= 0) & (x < 1000)
    np.testing.assert_array_equal(got[:, 0], np.where(good, image[np.clip(x, 0, 999)], 0))


@pytest.mark.parametrize("geometry", ["2dms", "a2dms"])
def test_samples(rng: np.random.Generator, geometry: str) -> None:
    layered = geometry[0] == "a"
    image = texels(rng, ((2,) if layered else ()) + (3, 5, 4, 1), np.float32)
    x, y, s = (rng.integers(0, size, 64).astype(np.int32) for size in (5, 3, 4))
    layer = rng.integers(0, 2, 64).astype(np.int32)
    given = [layer, s, x, y] if layered else [s, x, y, x]
    text = f"tex.{geometry}.v4.f32.s32 {vector('d', 0, 4)}, [%h0, {vector('c', 0, 4)}];"
    got = run(program(text, 4, 4), Texture(image, geometry), columns(*given), 4)
    wanted = image[layer, y, x, s] if layered else image[y, x, s]
    np.testing.assert_array_equal(got, four(wanted, 1))


OFFSETS = {"1d": (3,), "2d": (-2, 4), "3d": (1, -3, 5, 0), "a1d": (-1,), "a2d": (2, -5)}


@pytest.mark.parametrize(("address", "normalized"), ADDRESSES[1:])
@pytest.mark.parametrize("geometry", list(OFFSETS))
def test_offsets(rng: np.random.Generator, geometry: str, address: str, normalized: bool) -> None:
    image = texels(rng, (*SHAPES[geometry], 4), np.float32)
    layered = geometry[0] == "a"
    sizes = (SHAPES[geometry][1:] if layered else SHAPES[geometry])[::-1]
    axes = [(rng.uniform(-1, 2, 48) * (1 if normalized else size)).astype(np.float32) for size in sizes]
    for axis, value in zip(axes, (np.nan, np.inf, -np.inf)):
        axis[:16:4] = value
    given = [np.ones(48, np.uint32), *axes] if layered else [*axes]
    given += [np.zeros(48, np.float32)] * (COORDINATES[geometry] - len(given))
    offsets = OFFSETS[geometry]
    texture = Texture(image, geometry, address=address, normalized=normalized, filter="linear", border=BORDER)
    tail = f", {{{', '.join(map(str, offsets))}}}"
    got = run(program(instruction(geometry, tail=tail), len(given), 4), texture, columns(*given), 4)
    mode = Mode(address, True, normalized, BORDER)
    close(got, [sample(image[1] if layered else image, at, mode, offsets) for at in zip(*axes)])


def pyramid(rng: np.random.Generator, size: int, channels: int, layers: tuple[int, ...] = ()) -> list[np.ndarray]:
    """A square texture with all its mipmap levels, each of its own numbers."""
    return [
        texels(rng, (*layers, max(1, size >> n), max(1, size >> n), channels), np.float32)
        for n in range(size.bit_length())
    ]


def level_of(detail: float, mode: tuple[float, float, float], levels: int, blend: bool) -> list[tuple[int, float]]:
    """Levels and weights for a level of detail, as cudaTextureDesc has it: bias, range, then the levels there are."""
    bias, low, high = mode
    detail = min(max(min(max(detail + bias, low), high), 0), levels - 1)
    if not blend:
        return [(int(np.floor(detail + 0.5)), 1.0)]
    fixed = int(np.floor(detail * 256 + 0.5))
    return [(fixed // 256, 1 - fixed % 256 / 256), (min(fixed // 256 + 1, levels - 1), fixed % 256 / 256)]


def expect_levels(got: np.ndarray, levels: list[np.ndarray], at: Any, details: Any, mode: Any, blend: bool) -> None:
    exact = []
    for x, y, detail in zip(*at, details):
        parts = level_of(float(detail), mode, len(levels), blend)
        values = [sample(four(levels[n], 1), (x, y), Mode("wrap", True, True)) for n, _ in parts]
        exact.append([sum(float(np.float32(float(v[c]))) * w for v, (_, w) in zip(values, parts)) for c in range(4)])
    np.testing.assert_allclose(got, exact, rtol=2e-7, atol=2e-6)


@pytest.mark.parametrize("blend", [False, True], ids=["point", "linear"])
def test_mipmap_levels(rng: np.random.Generator, blend: bool) -> None:
    levels = pyramid(rng, 16, 2)
    mode = (0.3, 0.5, 3.25)
    texture = Texture(
        levels, "2d", address="wrap", filter="linear", normalized=True, mipmap_filter="linear" if blend else "point",
        mipmap_bias=mode[0], mipmap_clamp=mode[1:],
    )
    at = [rng.uniform(-1, 2, 96).astype(np.float32) for _ in range(2)]
    lod = rng.uniform(-2, 7, 96).astype(np.float32)
    lod[:3] = np.inf, -np.inf, 1
    text = program(instruction("2d", head="tex.level", tail=", %c2"), 3, 4)
    expect_levels(run(text, texture, columns(*at, lod), 4), levels, at, lod, mode, blend)
    for head in ("tex", "tex.base"):
        got = run(program(instruction("2d", head=head), 2, 4), texture, columns(*at), 4)
        expect_levels(got, levels, at, [-32] * 96, mode, blend)


def test_gradients(rng: np.random.Generator) -> None:
    levels = pyramid(rng, 32, 1)
    texture = Texture(
        levels, "2d", address="wrap", filter="linear", normalized=True, mipmap_filter="linear", mipmap_bias=-0.5
    )
    at = [rng.uniform(-1, 2, 64).astype(np.float32) for _ in range(2)]
    steps = [(rng.normal(size=64) * 0.1).astype(np.float32) for _ in range(4)]
    for step in steps:
        step[0] = 0  # no gradient: the lowest level
    text = program(instruction("2d", head="tex.grad", tail=", {%c2, %c3}, {%c4, %c5}"), 6, 4)
    got = run(text, texture, columns(*at, *steps), 4)
    x, y = (np.hypot(a.astype(float) * 32, b.astype(float) * 32) for a, b in (steps[:2], steps[2:]))
    with np.errstate(divide="ignore"):
        expect_levels(got, levels, at, np.log2(np.maximum(x, y)), (-0.5, 0, 1000), True)


def test_gradients_across_a_cube(rng: np.random.Generator) -> None:
    """The level that a finite step along the face asks for."""
    levels = [np.full((6, 64 >> n, 64 >> n, 1), n, np.float32) for n in range(7)]
    texture = Texture(levels, "cube", mipmap_filter="linear")
    vectors = rng.normal(size=(64, 3))
    steps = rng.normal(size=(2, 64, 3)) * 1e-2
    text = program(instruction("cube", head="tex.grad", tail=", {%c4, %c5, %c6, %c6}, {%c7, %c8, %c9, %c9}"), 10, 4)
    given = [*vectors.T, vectors[:, 0], *steps[0].T, *steps[1].T]
    got = run(text, texture, columns(*(np.ascontiguousarray(v, np.float32) for v in given)), 4)[:, 0]
    for lane in range(64):
        number, s, t = face(*vectors[lane])
        axis = "xxyyzz".index("xyz"[int(np.argmax(np.abs(vectors[lane])))]) // 2
        longest = 0.0
        for step in steps[:, lane] * 1e-4:
            moved = vectors[lane] + step
            assert int(np.argmax(np.abs(moved))) == axis
            other, u, v = face(*moved)
            assert other == number
            longest = max(longest, float(np.hypot(u - s, v - t)) * 1e4 * 64)
        assert got[lane] == pytest.approx(min(max(np.log2(longest), 0), 6), abs=0.02)


@pytest.mark.parametrize("component", "rgba")
@pytest.mark.parametrize("geometry", ["2d", "a2d", "cube", "acube"])
def test_gathering(rng: np.random.Generator, geometry: str, component: str) -> None:
    """Four texels, counter-clockwise from the lower left, which is at the higher y."""
    layered, cube, count = geometry[0] == "a", geometry.endswith("cube"), 64
    shape = ((3,) if layered else ()) + ((6, 5, 5) if cube else (5, 7))
    image = texels(rng, (*shape, 4), np.float32)
    layers = rng.integers(0, 3, count).astype(np.uint32)
    if cube:
        axes = list(rng.normal(size=(3, count)).astype(np.float32))
    else:
        axes = [coordinates(rng, count, size, True) for size in (7, 5)]
    given = [layers, *axes] if layered else [*axes]
    given += [axes[0]] * (COORDINATES[geometry] - len(given))
    address = "clamp" if cube else "mirror"
    texture = Texture(image, geometry, address=address, normalized=True)
    text = program(instruction(geometry, head=f"tld4.{component}"), len(given), 4)
    got = run(text, texture, columns(*given), 4)
    for lane in range(count):
        found = image[layers[lane]] if layered else image
        x, y = (float(axis[lane]) for axis in axes[:2])
        if cube:
            number, x, y = face(*(float(axis[lane]) for axis in axes))
            found = found[number]
        height, width = found.shape[:2]
        ways = [texels_along(at, size, Mode(address, True, True)) for at, size in ((x, width), (y, height))]
        (left, right), (top, bottom) = ([index for index, _ in way] for way in ways)
        corners = ((bottom, left), (bottom, right), (top, right), (top, left))
        wanted = [found[j, i, "rgba".index(component)] for j, i in corners]
        assert got[lane].tolist() == wanted


def test_gathering_takes_the_next_texel_where_its_weight_would_be_one() -> None:
    """The example of the guide: x = 2.49805 is closer to texels 2 and 3 than to 1 and 2, in 8 bits."""
    image = np.arange(12, dtype=np.float32).reshape(2, 6)
    text = program(instruction("2d", head="tld4.r"), 2, 4)
    got = run(text, Texture(image), columns(np.float32([2.49805]), np.float32([1.0])), 4)
    assert got[0].tolist() == [8, 9, 3, 2]


def test_halves(rng: np.random.Generator) -> None:
    image = texels(rng, (5, 7, 4), np.float32)
    image[0, 0] = [1e6, -1e6, 1e-9, np.nan]
    at = [rng.uniform(0, size - 0.01, 64).astype(np.float32) for size in (7, 5)]
    at[0][0] = at[1][0] = 0
    wanted = image[np.floor(at[1]).astype(int), np.floor(at[0]).astype(int)]
    text = program(instruction("2d", "f16"), 2, 4, bits=16)
    with np.errstate(over="ignore"):
        got = run(text, Texture(image, "2d"), columns(*at), 4, np.float16)
        np.testing.assert_array_equal(got, wanted.astype(np.float16))
        text = program("tex.2d.v2.f16x2.f32 {%d0, %d1}, [%h0, {%c0, %c1}];", 2, 2)
        pairs = run(text, Texture(image, "2d"), columns(*at), 2, np.uint32).view(np.float16)
        np.testing.assert_array_equal(pairs, wanted.astype(np.float16))


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
def test_depth_comparison(rng: np.random.Generator, linear: bool) -> None:
    """Texels count 1 where the reference is no more than they are, and are filtered after that."""
    depth = rng.integers(0, 5, (6, 7)).astype(np.float32)
    at = [coordinates(rng, 64, size, False) for size in (7, 6)]
    reference = rng.integers(0, 5, 64).astype(np.float32)
    texture = Texture(depth, filter="linear" if linear else "point")
    got = run(program(instruction("2d", tail=", %c2"), 3, 4), texture, columns(*at, reference), 4)[:, :1]
    close(got, [
        sample((r <= depth).astype(np.float32)[..., None], (x, y), Mode(linear=linear))[:1]
        for x, y, r in zip(*at, reference)
    ])


def test_texels_are_resident(rng: np.random.Generator) -> None:
    image = texels(rng, (3, 3), np.float32)
    text = "tex.2d.v4.f32.f32 {%d0, _, _, _}|%p1, [%h0, {%c0, %c1}];\nselp.b32 %d1, 5, 6, %p1;"
    got = run(program(text, 2, 2), Texture(image), columns(np.float32([1, 2]), np.float32([0, 1])), 2)
    assert got[:, 0].tolist() == [image[0, 1], image[1, 2]]
    assert got.view(np.uint32)[:, 1].tolist() == [5, 5]


def test_guards_and_a_handle_for_each_lane(rng: np.random.Generator) -> None:
    """Odd threads take from the one texture, even ones from the other; then only odd ones take again."""
    images = [texels(rng, (4, 4), np.float32) for _ in range(2)]
    text = "selp.b64 %h1, %h1, %h0, %p0;\ntex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%h1, {%c0, %c1}];\n"
    text += "@%p0 tex.2d.v4.f32.s32 {%d1, _, _, %d2}, [%h0, {%c1, %c0}];"
    x, y = (rng.integers(0, 4, 70).astype(np.int32) for _ in range(2))
    got = run(program(text, 2, 4, handles=2), [Texture(image) for image in images], columns(x, y), 4)
    odd = np.arange(70) % 2 == 1
    np.testing.assert_array_equal(got[:, 0], np.where(odd, images[1][y, x], images[0][y, x]))
    np.testing.assert_array_equal(got[:, 1], np.where(odd, images[0][x, y], 0))
    np.testing.assert_array_equal(got[:, 2], np.where(odd, 1, 0))
    assert (got[:, 3] == 1).all()


def test_infinite_texels_of_no_weight_do_not_count() -> None:
    image = np.float32([[1, np.inf, 3, np.nan]])
    x = np.float32([0.5, 1.0, 2.5, 1.5, 3.0])
    got = run(program(instruction("1d"), 1, 4), Texture(image[0], filter="linear"), columns(x), 4)[:, 0]
    np.testing.assert_array_equal(got, [1, np.inf, 3, np.inf, np.nan])


def test_a_texture_shows_its_array_as_it_is_now() -> None:
    image, at = np.zeros(4, np.float32), columns(np.arange(4, dtype=np.int32))
    texture, text = Texture(image), program(instruction("1d", "f32", "s32"), 1, 4)
    assert run(text, texture, at, 4)[:, 0].tolist() == [0] * 4
    image[:] = 1, 2, 3, 4
    assert run(text, texture, at, 4)[:, 0].tolist() == [1, 2, 3, 4]


def test_with_observers(rng: np.random.Generator, emulated: None) -> None:
    """The sanitizer, a shuffled order, the profiler and the trace of a thread: the same results, and reports."""

    @ptx_kernel
    def smear(image: Texture, canvas: Surface, out: Array[f32, 2], n: u32):
        x, y = ptx.ctaid.x * 32 + ptx.tid.x, ptx.ctaid.y
        total = reg(f32, 0.0)
        with loop(n) as i:
            total += ptx["tex.2d.v4.f32.f32"]((image, ((x + i).to(f32), y.to(f32))))[0]
        with when(x % 2 == 0):
            ptx["sust.b.2d.b32.trap"]((canvas, (x.bits(s32) * 4, y.bits(s32))), total)
        out[y, x] = total

    image = rng.integers(0, 100, (3, 64)).astype(np.float32)
    wanted = sum(image[:, np.minimum(np.arange(64) + i, 63)] for i in range(5))
    texture = Texture(image)

    def check(**options: Any) -> None:
        canvas, out = np.zeros_like(image), np.zeros_like(image)
        smear.configure((2, 3), 32, **options)(texture, Surface(canvas), out, 5)
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(canvas[:, ::2], wanted[:, ::2])
        assert not canvas[:, 1::2].any()

    for sanitize in (None, "all"):
        for seed in (None, 5):
            check(sanitize=sanitize, seed=seed)
    with profile() as profiled:
        check()
    (line,) = (row for row in profiled.instructions if "tex.2d" in row.text)
    assert (line.counters.executions, line.counters.lanes) == (30, 960)
    arguments = texture, Surface(image.copy()), np.zeros_like(image), 5
    steps = str(trace_thread(smear[(2, 3), 32], *arguments, block=(1, 1, 0), thread=4))
    assert f"= {image[1, 36]:g}, " in next(step for step in steps.splitlines() if "tex.2d" in step)


def test_a_function_takes_a_texture(rng: np.random.Generator, emulated: None) -> None:
    @ptx_func
    def texel(image: Texture, i: s32) -> f32:
        return ptx["tex.1d.v4.f32.s32"]((image, [i]))[0]

    @ptx_kernel
    def copy(image: Texture, out: Ptr[f32]):
        i = ptx.tid.x
        out[i] = texel(image, i.bits(s32))

    image, out = texels(rng, (40,), np.float32), np.zeros(32, np.float32)
    copy[1, 32](Texture(image), out)
    np.testing.assert_array_equal(out, image[:32])


def test_there_is_an_end_to_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool(), "_free", [])
    with pytest.raises(LaunchError) as caught:
        _ = Texture(np.zeros(3, np.float32)).emulated
    assert caught.value.message == "there are 16384 textures, samplers and surfaces already"


@pytest.mark.parametrize("how", ["conservative", "second_tier"])
def test_in_every_tier(rng: np.random.Generator, how: str) -> None:
    """In conservative code, and beside superinstructions."""
    image, out = texels(rng, (8, 8), np.float32), np.zeros(64, np.float32)
    body = pointer("%rd1", "out") + """
ld.param.u64 %rd0, [image];
cvt.rn.f32.u32 %f0, %r2;
mul.f32 %f1, %f0, 0f3E4CCCCD;
tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd0, {%f1, %f0}];
setp.lt.u32 %p0, %r2, 40;
@%p0 tex.2d.v4.f32.f32 {%f4, _, _, _}, [%rd0, {%f0, %f1}];
add.f32 %f4, %f4, 0f3F800000;
st.global.f32 [%rd1], %f4;
ret;"""
    texture = Texture(image)
    handle = np.uint64(texture.emulated)
    launch(kernel("u64 image, u64 out", THREAD + body), 1, 64, **{how: True}, image=handle, out=out)
    steps = np.minimum(np.float32(0.2) * np.arange(64, dtype=np.float32), 7).astype(int)
    lanes = np.minimum(np.arange(64), 7)
    np.testing.assert_array_equal(out, np.where(np.arange(64) < 40, image[steps, lanes], image[lanes, steps]) + 1)
