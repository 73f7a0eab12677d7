"""Faults of textures and surfaces."""

from __future__ import annotations

from typing import Any

from ...errors import EmulationError, MemoryFault, with_article
from ...ir import Address, Operand, Register, Symbol
from ..instructions.textures import coordinates, geometry_of
from ..machine.allocation import number_at
from ..machine.status import Fault
from ..machine.texture_pool import Kind, Request, pool
from .faults import Scene, explains

__all__: list[str] = []


def _lane_value(scene: Scene, operand: Operand, signed: bool = True) -> int:
    """What an operand is in the lane at fault."""
    offset = scene.state.launch.spaces.offsets.get(operand.symbol) if isinstance(operand, Symbol) else None
    if offset is not None:
        return number_at(scene.state.launch.parameters + offset)
    value, bits = scene.number(operand), operand.type.bits if isinstance(operand, Register) else 0
    return value - (1 << bits) if signed and bits and value >> (bits - 1) else value


def _name(scene: Scene, handle: int) -> str:
    """What the user calls the owner of a handle."""
    for argument in scene.state.launch.arguments:
        if getattr(argument, "data", b"") == handle.to_bytes(8, "little"):
            return argument.name
    for name, address in scene.state.launch.spaces.symbols.items():
        if address == handle:
            return name
    return f"handle {handle:#x}"


@explains(Fault.HANDLE, Fault.SURFACE, Fault.SURFACE_ALIGNMENT)
def _texture(scene: Scene, kind: Fault) -> EmulationError:
    """The error of a texture or surface instruction."""
    statement: Any = scene.statement
    address = next(operand for operand in statement.operands if isinstance(operand, Address))
    handle = _lane_value(scene, address.base, False)
    if kind == Fault.HANDLE:
        return _no_handle(scene, statement, address, handle)
    picture, name = pool().owner(handle), _name(scene, handle)
    geometry = geometry_of(statement)
    form = statement.form
    inputs = {place: operand for place, operand, _, _ in coordinates(geometry, address)}
    places = [_lane_value(scene, inputs[Request.X + 128 * axis]) for axis in range(int(geometry.removeprefix("a")[0]))]
    layer = f"layer {_lane_value(scene, inputs[Request.LAYER], False)}, " if Request.LAYER in inputs else ""
    formatted = form.tokens[0] == "p"
    access = form.effects.accesses[0]
    verb = {(True, False): "load from", (False, True): "store to"}.get((access.reads, access.writes), "reduction in")
    first = f"x = {places[0]}" if formatted else f"byte {places[0]}"
    where = ", ".join([first, *(f"{axis} = {place}" for axis, place in zip("yz", places[1:]))])
    extent = picture.described if picture is not None else "gone"
    if kind == Fault.SURFACE_ALIGNMENT:
        count = max((spec.count for spec in form.operands if spec.kind == "value"), default=0) or 1
        nbytes = form.type.bytes * count
        return scene.raised(
            MemoryFault, f"{verb} surface `{name}` at {layer}{where}: {nbytes} bytes must be aligned to {nbytes} bytes",
            "the first coordinate counts bytes: multiply it by the size of an element",
        )
    bytes_wide = "" if formatted or picture is None else f", {picture.width_bytes} bytes wide"
    hint = None
    if not formatted and picture is not None and places[0] >= 0 and form.modifiers["mode"] == "trap":
        hint = "the first coordinate counts bytes; `.clamp` and `.zero` go on beyond the edges"
    return scene.raised(
        MemoryFault, f"{verb} surface `{name}` at {layer}{where}: {name} is {extent}{bytes_wide}", hint
    )


def _no_handle(scene: Scene, statement: Any, address: Address, handle: int) -> EmulationError:
    """A number that stands for nothing, or for something else than the instruction takes."""
    form = statement.form
    wanted = Kind.SURFACE if form.effects.accesses[0].space == "surface" else Kind.TEXTURE
    geometry = form.modifiers.get("geom")
    known = pool().kind(handle)
    if known == wanted and len(address.parts) > 1:
        handle = _lane_value(scene, address.parts[0], False)
        wanted, geometry, known = Kind.SAMPLER, None, pool().kind(handle)
    word = {Kind.TEXTURE: "texture", Kind.SAMPLER: "sampler", Kind.SURFACE: "surface"}
    name, owner = _name(scene, handle), pool().owner(handle)
    spaces = scene.state.launch.spaces
    if known == Kind.NONE and name in spaces.memory.references:
        made = {"texture": "Texture(array)", "sampler": "Sampler()", "surface": "Surface(array)"}[word[wanted]]
        return scene.raised(
            EmulationError, f"the {word[wanted]} reference `{name}` is bound to nothing",
            f'`module["{name}"] = ptxdsl.{made}`, or declare a parameter: `{name}: {made.partition("(")[0]}`',
        )
    if known == Kind.NONE or owner is None:
        return scene.raised(
            EmulationError, f"{name if name.startswith('handle') else f'`{name}`'} is no {word[wanted]}",
            "pass a `ptxdsl.Texture` or `ptxdsl.Surface`, and keep it alive as long as its handle is used",
        )
    what = with_article(f"{geometry} {word[wanted]}" if geometry is not None else word[wanted])
    return scene.raised(EmulationError, f"`{form.opcode}` takes {what}; `{name}` is {owner.described}")
