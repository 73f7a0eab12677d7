"""Faults of tensor copies other than those of the memory that they access."""

from __future__ import annotations

import ctypes

from ...errors import EmulationError, MemoryFault
from ...ir import Vector, elements
from ...isa.tensor_maps import (
    ADDRESS_ALIGNMENT, ELEMENTS, INTERLEAVES, PIXELS, SWIZZLES, TILED_MODES, USED_BYTES, decode,
)
from ..instructions.tensor_copies import (
    MOST_HALO, MOST_OFFSET, PIXEL_SHAPES, REDUCED, SHARED_ALIGNMENT, TensorBox,
)
from ..machine.status import Fault
from .faults import Scene, explains

__all__: list[str] = []

_NAMES = {(element.code, element.tf32): name for name, element in ELEMENTS.items()}


@explains(Fault.TENSOR_MAP)
def _tensor_map(scene: Scene, _: Fault) -> EmulationError:
    message, hint = _problem(scene)
    return scene.raised(MemoryFault, f"`{scene.statement.form.mnemonic}` by {message}", hint)


def _problem(scene: Scene) -> tuple[str, str | None]:
    """What is wrong with the map, the worst first."""
    op = scene.op
    assert isinstance(op, TensorBox)
    if scene.address % 64:
        return "a tensor map that is not aligned to 64 bytes", "`__align__(64)`, as parameters of type TensorMap are"
    fields = decode(ctypes.string_at(scene.address, USED_BYTES))
    (mode,), (rank,), (code,), (tf32,) = (fields[name] for name in ("mode", "rank", "elemtype", "tf32"))
    if mode not in (*TILED_MODES, PIXELS) or (code, tf32) not in _NAMES or fields["global_address"] == (0,):
        return "what is no tensor map", "make it with `ptxdsl.tensor_map(array, box)`"
    if (mode == PIXELS) != (op.shape in PIXEL_SHAPES):
        kinds = "boxes", "pixels"
        return f"a tensor map of {kinds[mode == PIXELS]}; it wants one of {kinds[mode != PIXELS]}", (
            "`ptxdsl.tensor_map` with `corners` makes one of pixels, which `im2col` copies; without, one of boxes"
        )
    wanted = 2 if op.shape == "rows" else len(op.coordinates) - op.offsets
    if rank != wanted:
        hint = f"an array of {wanted} dimensions"
        if op.shape != "rows":
            hint += f"; or, for this one, {rank} coordinates, and `.{rank}d` in the instruction"
        return f"a tensor map of {rank} dimensions; it wants {wanted}", hint
    if fields["interleave_layout"][0]:
        width = INTERLEAVES[fields["interleave_layout"][0] & 1]
        return f"a tensor map of interleaved layout, in slices of {width or 32} bytes; the emulator has none", None
    start = fields["global_address"][0]
    if start % ADDRESS_ALIGNMENT:
        return f"a tensor map of address {start:#x}; it must be a multiple of {ADDRESS_ALIGNMENT}", None
    if op.shape == "rows" and fields["box_dim"][1] != 1:
        rows = fields["box_dim"][1]
        return f"a tensor map of boxes of {rows} rows; it takes single rows", "a box of (1, columns)"
    name = _NAMES[code, tf32]
    kind = ELEMENTS[name]
    if op.writes and kind.bits != kind.stored_bits:
        return f"a tensor map of {name}, whose boxes are only loaded", None
    row = fields["box_dim"][0] * kind.stored_bits // 8
    if row % 16:
        return f"a tensor map of boxes with rows of {row} bytes; it wants a multiple of 16", None
    if op.shape in MOST_HALO:
        return _width_problem(scene, op.shape, fields)
    others = " or ".join(f"`.{operation}`" for operation, types in REDUCED.items() if name in types)
    return f"a tensor map of {name}; `.{op.operation}` does not take this type", others and f"{others} takes {name}"


def _width_problem(scene: Scene, shape: str, fields: dict[str, tuple[int, ...]]) -> tuple[str, str | None]:
    """What is wrong with a map of pixels, or with the operands beside it, for a copy along the width."""
    given = [scene.number(item) for item in elements(scene.statement.operand("offsets") or Vector(()))]
    for name, number, most in zip(("halo", "offset"), given, (MOST_HALO[shape], MOST_OFFSET)):
        if number >= most:
            return f"a tensor map with {name} {number}; it must be below {most}", None
    bits = tuple(fields[name][0] for name in ("swizzle_mode", "swizzle_atomicity", "swizzle_96"))
    used = next((name for name, each in SWIZZLES.items() if (each.mode, each.atomicity, each.wide) == bits), "unknown")
    wide = ", 96B" if shape == "width" else ""
    return f"a tensor map of swizzle {used}; it wants 64B{wide}, 128B or 128B_atom_32B", None


@explains(Fault.TENSOR_SHARED)
def _shared(scene: Scene, _: Fault) -> EmulationError:
    message = f"`{scene.statement.form.mnemonic}` at shared address {scene.address:#x}"
    wanted = f"a box must be aligned to {SHARED_ALIGNMENT} bytes"
    return scene.raised(MemoryFault, f"{message}: {wanted}", "align it to 1024 where it is swizzled")
