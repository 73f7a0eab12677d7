"""Lowering of texture and surface instructions.

Each becomes one micro-op: its operands go into a request, and a compiled unit answers that lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Address, Immediate, Instruction, Operand, Symbol, Vector
from ...types import TYPES
from ..machine.allocation import HostAddress
from ..machine.texture_pool import QUERIES, Header, Kind, Level, Request, pool
from .lowering import Lowering, lowers
from .memory import LoadParameter
from .micro_op import MicroOp, Routine
from .operand_classes import ABSENT, OperandClass, uniform
from .operands import NOTHING, Field, raw

__all__ = [
    "HandleTest", "HeaderQuery", "ImageRequest", "SurfaceUnit", "TextureUnit", "coordinates", "geometry_of",
]


class ImageRequest(MicroOp, may_fault=True, repeatable=False, inlinable="its routine reads its record"):
    """Operands into a request, a unit for each lane, results out of it.

    An input is its place in the request, its class, its bits, and whether an integer becomes a float. ``conversion`` is
    empty for results as they are, half for f16, pairs for f16x2. ``resident`` is a predicate that always holds.
    """

    inputs: tuple[tuple[int, OperandClass, int, bool], ...]
    dests: tuple[OperandClass, ...]
    bits: int
    conversion: str
    resident: OperandClass
    guard: OperandClass
    masked: bool


class HandleTest(MicroOp, may_fault=False, repeatable=True, inlinable="seldom used"):
    """istypep: whether a handle is one of this kind."""

    wanted: int
    dest: OperandClass
    handle: OperandClass
    guard: OperandClass
    masked: bool


class HeaderQuery(Routine):
    """A number of a header of one of these kinds, or of a mipmap level of so many bytes."""

    kinds: tuple[int, ...]
    offset: int
    level: int


class TextureUnit(Routine):
    """Answers a request to a texture: ``action`` is fetch, sample or gather, ``detail`` level, grad or empty."""

    action: str
    geometry: str
    detail: str
    offsets: bool
    compares: bool
    separate: bool


class SurfaceUnit(Routine):
    """Answers a request to a surface: ``action`` is load, store, or the operation of a reduction with its sign."""

    action: str
    geometry: str
    bits: int
    elements: int
    mode: str | None
    formatted: bool


_Input = tuple[int, Operand, int, bool]
"""Place in the request, operand, bits, whether an integer becomes a float."""


def _items(operand: Operand) -> Sequence[Operand]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def geometry_of(statement: Instruction) -> str:
    geometry = statement.form.modifiers["geom"]
    assert geometry is not None
    return geometry


def coordinates(geometry: str, address: Address, real: bool = False) -> list[_Input]:
    """Where each coordinate goes: a layer first, then a sample, then along the axes."""
    items = list(_items(address.parts[-1]))
    found: list[_Input] = []
    for prefix, suffix, offset in (("a", "", Request.LAYER), ("", "ms", Request.SAMPLE)):
        if geometry.startswith(prefix) and geometry.endswith(suffix):
            found.append((offset, items.pop(0), 32, False))
    count = 3 if "cube" in geometry else int(geometry.removeprefix("a")[0])
    return found + [(Request.X + 128 * axis, item, 32, real) for axis, item in enumerate(items[:count])]


def _emit(
    low: Lowering, statement: Instruction, unit: Routine, inputs: Sequence[_Input],
    dests: Sequence[Operand] = (), bits: int = 32, made: str = "", resident: Operand | None = None,
) -> None:
    """Emit the micro-op of a request."""
    address = next(operand for operand in statement.operands if isinstance(operand, Address))
    handle = _handle(low, statement, address.base)
    kinds: list[tuple[int, OperandClass, int, bool]] = [(Request.HANDLE, handle.kind, 64, False)]
    fields = [handle]
    for offset, operand, size, real in inputs:
        sampler = offset == Request.SAMPLER
        part = _handle(low, statement, operand) if sampler else low.read(statement, operand, size)
        kinds.append((offset, part.kind, size, real))
        fields.append(part)
    guard = low.operands.guard(statement)
    results = [low.operands.destination(operand) for operand in dests]
    flag = NOTHING if resident is None else low.operands.destination(resident)
    op = ImageRequest(
        tuple(kinds), tuple(result.kind for result in results), bits, made, flag.kind, guard.kind, low.divergent
    )
    record = low.emit(op, raw("qq", HostAddress(pool().start), 0), guard, *fields, *results, flag)
    record.links = {1: unit}


def _handle(low: Lowering, statement: Instruction, base: Operand) -> Field:
    """A texture, sampler or surface: a handle in a register or parameter, or the name of a reference."""
    if isinstance(base, Symbol) and base.symbol in low.spaces.offsets:
        slot = low.registers.reserve(8)
        offset = low.spaces.parameter(statement, base.symbol, base.offset, 8)
        low.emit(LoadParameter(64, False, (uniform(64),), ABSENT, False), raw("i", offset), raw("i", slot))
        return Field(uniform(64), "i", (slot,))
    return low.read(statement, base, 64)


@lowers("tex", "tld4")
def texture(low: Lowering, statement: Instruction) -> None:
    form, geometry = statement.form, geometry_of(statement)
    named = {spec.name: operand for spec, operand in zip(form.operands, statement.operands)}
    address = named["a"]
    assert isinstance(address, Address)
    separate = len(address.parts) > 1
    whole = form.tokens[-1] == "s32"  # without a sampler of its own such a texture is not sampled at all
    inputs = coordinates(geometry, address, real=whole and separate)
    if separate:
        inputs.append((Request.SAMPLER, address.parts[0], 64, False))
    offsets, reference = named.get("e"), named.get("f")
    for axis, item in enumerate(_items(offsets)[:3] if offsets is not None else ()):
        inputs.append((Request.OFFSET + 128 * axis, item, 32, False))
    if reference is not None:
        inputs.append((Request.REFERENCE, reference, 32, False))
    detail = next((token for token in form.tokens if token in ("level", "grad")), "")
    if detail == "level":
        inputs.append((Request.LOD, named["lod"], 32, False))
    if detail == "grad":
        count = 3 if "cube" in geometry else int(geometry.removeprefix("a")[0])
        steps = [item for name in "xy" for item in _items(named[name])[:count]]
        inputs += [(Request.GRADIENTS + 128 * number, step, 32, False) for number, step in enumerate(steps)]
    what = "fetch" if whole and not separate else "sample"
    if form.opcode == "tld4":
        what = "gather"
        component = "rgba".index(next(token for token in form.tokens if token in ("r", "g", "b", "a")))
        inputs.append((Request.LOD, Immediate(component, TYPES["u32"]), 32, False))
    unit = TextureUnit(what, geometry, detail, offsets is not None, reference is not None, separate)
    made = {"f16x2": "pairs", "f16": "half"}.get(next(t for t in form.tokens[::-1][1:] if t in _DTYPES), "")
    _emit(low, statement, unit, inputs, _items(named["d"]), 32, made, named.get("p"))


_DTYPES = ("u32", "s32", "f32", "f16", "f16x2")


@lowers("txq", "suq")
def query(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    name = form.modifiers["query"]
    assert name is not None
    dest, _, *lod = statement.operands
    if lod:
        offset = {"width": Level.WIDTH, "height": Level.HEIGHT, "depth": Level.DEPTH}[name]
        unit = HeaderQuery((Kind.TEXTURE,), offset, Level.nbytes)
    else:
        kinds = (Kind.TEXTURE, Kind.SAMPLER) if form.opcode == "txq" else (Kind.SURFACE,)
        unit = HeaderQuery(kinds, Header.PROPERTIES + 4 * QUERIES.index(name), 0)
    _emit(low, statement, unit, [(Request.LOD, operand, 32, False) for operand in lod], [dest])


@lowers("istypep")
def handle_test(low: Lowering, statement: Instruction) -> None:
    dest, a = statement.operands
    kind = {"texref": Kind.TEXTURE, "samplerref": Kind.SAMPLER, "surfref": Kind.SURFACE}[statement.form.tokens[0]]
    result, guard, handle = low.operands.destination(dest), low.operands.guard(statement), _handle(low, statement, a)
    op = HandleTest(kind, result.kind, handle.kind, guard.kind, low.divergent)
    low.emit(op, raw("q", HostAddress(pool().start)), guard, result, handle)


@lowers("suld", "sust", "sured")
def surface(low: Lowering, statement: Instruction) -> None:
    form, geometry = statement.form, geometry_of(statement)
    named = {spec.name: operand for spec, operand in zip(form.operands, statement.operands)}
    address, mode, formatted = named["a"], form.modifiers["mode"], form.tokens[0] == "p"
    assert isinstance(address, Address) and form.type is not None
    bits = form.type.bits
    inputs = coordinates(geometry, address)
    if form.opcode == "suld":
        dests = _items(named["d"])
        unit = SurfaceUnit("load", geometry, bits, len(dests), mode, False)
        _emit(low, statement, unit, inputs, dests, 64)
        return
    values = _items(named["b"])
    inputs += [(Request.VALUE + 256 * number, value, 64, False) for number, value in enumerate(values)]
    what = "store"
    if form.opcode == "sured":
        sign = "s" if form.type.is_signed else "u"
        what = f"{form.modifiers['op']}:{sign}"
    _emit(low, statement, SurfaceUnit(what, geometry, bits, len(values), mode, formatted), inputs)
