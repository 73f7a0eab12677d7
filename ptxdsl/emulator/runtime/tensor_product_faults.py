"""Faults of tcgen05.mma: tiles in shared memory that it cannot take, operands in lanes where they cannot begin."""

from __future__ import annotations

from ...errors import EmulationError, MemoryFault
from ...isa.instruction_descriptors import decode
from ...isa.matrix_descriptors import SWIZZLES, TENSOR_SWIZZLE, problem
from ..instructions.tensor_cores.tensor_products import TensorProduct
from ..machine.status import Fault
from .faults import Scene, explains
from .matrix_faults import tile_beyond
from .tensor_product_plans import tiles_of

__all__: list[str] = []


@explains(Fault.PRODUCT_TILE)
def _tile(scene: Scene, _: Fault) -> EmulationError:
    op, status = scene.op, scene.address
    assert isinstance(op, TensorProduct)
    product = decode(op.variant, scene.number(scene.statement.operand("idesc")) & 0xFFFFFFFF)
    name = f"`{scene.statement.form.mnemonic}`"
    if status == 5:
        shift = scene.number(scene.statement.operand("zero")) >> 56 & 63
        message = f"the zero-column mask of {name} shifts columns by {shift}"
        return scene.raised(EmulationError, f"{message}, and its instruction descriptor allows {product.shift}")
    if status > 5:
        message = f"the scales of {'AB'[status - 6]} of {name} are not the same in all quarters of the lanes"
        return scene.raised(
            EmulationError, f"{message}, where tensor memory must have copies of them",
            "copy them by `tcgen05.cp` of the shape `.32x128b.warpx4`",
        )
    side = (status - 1) % 2
    word = scene.number(scene.statement.operand("ab"[side])) & (1 << 64) - 1
    message = f"the matrix descriptor {word:#x} of {'AB'[side]} of {name}:"
    tile = tiles_of(op.variant, product)[side]
    why = problem(word, tile.swizzles, tile.line, product.k == 96, op.variant.table and side == 1)
    if why:
        hint = "lay the tile out from a multiple of 1024 bytes on" if "behind a multiple" in why else None
        return scene.raised(MemoryFault, f"{message} {why}", hint)

    return tile_beyond(scene, message, word, SWIZZLES[TENSOR_SWIZZLE.of(word)].span)


@explains(Fault.PRODUCT_LANES)
def _lanes(scene: Scene, _: Fault) -> EmulationError:
    message = f"`{scene.statement.form.mnemonic}` with an operand at lane {scene.address >> 16} of tensor memory"
    return scene.raised(
        MemoryFault, f"{message} (address {scene.address:#x})",
        "scales begin in lane 0; D in lane 0, with 64 rows in lane 0 or 16; A and metadata in that of D",
    )
