"""Faults of matrix products other than those of the lanes that execute them."""

from __future__ import annotations

from ...errors import EmulationError, MemoryFault
from ...ir import elements
from ...isa.matrix_descriptors import ADDRESS, LEADING, STRIDE
from ..instructions.tensor_cores.matrix import MatrixProduct
from ..machine.layout import SHARED_START
from ..machine.status import Fault
from .faults import Scene, explains

__all__ = ["tile_beyond"]


def tile_beyond(scene: Scene, message: str, word: int, span: int) -> EmulationError:
    """The error for a matrix descriptor of a tile that leaves shared memory; ``span`` are the bytes of its rows."""
    end = SHARED_START + scene.state.launch.shared_bytes
    tile = f"a tile at {ADDRESS.of(word):#x}, leading {LEADING.of(word):#x}, stride {STRIDE.of(word):#x}"
    where = f"goes beyond the block's shared memory, {SHARED_START:#x} to {end:#x}"
    return scene.raised(MemoryFault, f"{message} {tile}, rows of {span} bytes {where}")


@explains(Fault.SCALE)
def _scale(scene: Scene, _: Fault) -> EmulationError:
    op = scene.op
    assert isinstance(op, MatrixProduct)
    pairs = [elements(operand) for operand in (scene.statement.operands[-3], scene.statement.operands[-1])]
    names = [f"{what}-{which}" for which in "ab" for what in ("byte-id", "thread-id")]
    allowed = (op.byte_ids, range(2), op.byte_ids, range(4))
    values = [scene.number(operand) for pair in pairs for operand in pair]
    name, value, known = next(each for each in zip(names, values, allowed) if each[1] not in each[2])
    return scene.raised(
        EmulationError,
        f"{name} {value} in lane {scene.lane} of warp {scene.warp}: here it is {' or '.join(map(str, known))}",
        "the byte-id is the first byte of the scales in a lane's register, the thread-id says which lanes of each quad "
        "hold them",
    )
