"""Faults of tensor memory: what is not allocated, or not freed, and what the blocks of a pair do not agree about."""

from __future__ import annotations

from typing import Any

from ...errors import EmulationError, MemoryFault, RaceError
from ...ir import Instruction
from ...isa.matrix_descriptors import ADDRESS, LEADING, STRIDE, problem
from ..instructions.tensor_cores.tensor_memory_copies import SHAPES, SWIZZLES, TensorCopy, TensorShift
from ..machine.allocation import number_at
from ..machine.layout import SHARED_START, Block
from ..machine.tensor_memory import TensorMemory
from ..machine.status import Fault
from ..machine.unsupported import render
from .block_state import BlockState
from .faults import Scene, explains

__all__ = ["PAIR", "allocations", "waiting_for"]

UNIT = TensorMemory.UNIT
STORES = 64
"""The first of the streams of stores (:mod:`..codegen.tensor_cores.tensor_flight`)."""
PAIR = " for a warp of the other block of the pair"


def _field(state: BlockState, field: int, nbytes: int = 4) -> int:
    return number_at(state.tensor + field, nbytes)


def allocations(state: BlockState) -> list[tuple[int, int]]:
    """The allocations of a block, each by its first column and the number of columns."""
    allocated, starts = _field(state, TensorMemory.ALLOCATED), _field(state, TensorMemory.STARTS)
    found: list[tuple[int, int]] = []
    for unit in range(TensorMemory.EXCLUSIVE_COLUMNS // UNIT):
        if starts >> unit & 1:
            found.append((unit * UNIT, UNIT))
        elif allocated >> unit & 1:
            found[-1] = found[-1][0], found[-1][1] + UNIT
    return found


def _columns(first: int, count: int) -> str:
    return f"column {first}" if count == 1 else f"columns {first} to {first + count - 1}"


def _held(state: BlockState) -> str:
    """What is allocated, in words."""
    named = [_columns(*each) for each in allocations(state)]
    return f"allocated are {' and '.join(named)}" if named else "nothing is allocated"


def _site(state: BlockState, field: int, column: int) -> str:
    """The line of the statement that has allocated or freed from a column on."""
    number = _field(state, field + 4 * (column // UNIT))
    statement: Any = state.code.graph.statements[number]
    where = f" at {statement.loc}" if statement.loc is not None else f" at PTX line {statement.line}"
    return f"{render(statement)}{where}"


def _named(scene: Scene) -> str:
    return f"`{scene.statement.form.mnemonic}`"


@explains(Fault.TENSOR_COUNT)
def _count(scene: Scene, _: Fault) -> EmulationError:
    allowed = "32, 64, 128, 256 or 512 columns"
    if "exclusive" in scene.statement.form.tokens:
        allowed = f"a multiple of 32 columns, at most {TensorMemory.EXCLUSIVE_COLUMNS}"
    return scene.raised(EmulationError, f"{_named(scene)} of {scene.address} columns: an allocation has {allowed}")


@explains(Fault.TENSOR_PERMIT)
def _permit(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(
        EmulationError, f"{_named(scene)} after `tcgen05.relinquish_alloc_permit` of this block",
        "allocate all tensor memory before it",
    )


@explains(Fault.TENSOR_DEALLOCATION)
def _deallocation(scene: Scene, _: Fault) -> EmulationError:
    address, count = scene.address, scene.state.get(Block.EXTENTS, "Q")
    message = f"{_named(scene)} of {count} columns from address {address:#x}, which were not allocated like that"
    column = address & 0xFFFF
    if address == column and _freed(scene.state, column):
        message += f"; they were freed before: {_site(scene.state, TensorMemory.FREEING_SITES, column)}"
    return scene.raised(
        MemoryFault, f"{message}; {_held(scene.state)}",
        "free what `tcgen05.alloc` has written to shared memory, with the same number of columns",
    )


def _freed(state: BlockState, column: int) -> bool:
    """Whether a column was allocated before, and is not any more."""
    unit = column // UNIT
    once, now = (_field(state, field) >> unit & 1 for field in (TensorMemory.FREED, TensorMemory.ALLOCATED))
    return bool(once and not now)


@explains(Fault.TENSOR_LEAK)
def _leak(scene: Scene, _: Fault) -> EmulationError:
    first, count = allocations(scene.state)[0]
    message = f"the block ends without having freed {_columns(first, count)} of its tensor memory"
    return scene.raised(
        EmulationError, f"{message}, allocated by {_site(scene.state, TensorMemory.SITES, first)}",
        "one warp frees them when all others are done: `tcgen05.dealloc`",
    )


@explains(Fault.TENSOR_SHARED_OWN)
def _shared(scene: Scene, _: Fault) -> EmulationError:
    message = f"{_named(scene)} writes the address to {scene.address:#x}, which is not the block's own shared memory"
    return scene.raised(MemoryFault, message, "give it the address of a variable in shared memory")


@explains(Fault.TENSOR_GROUP)
def _group(scene: Scene, _: Fault) -> EmulationError:
    before = _field(scene.state, TensorMemory.GROUP)
    return scene.raised(
        EmulationError, f"{_named(scene)} in a block that has used `.cta_group::{before}` before",
        f"all tcgen05 instructions of a kernel have the same: `.cta_group::{before}`",
    )


@explains(Fault.TENSOR_PAIR)
def _pair(scene: Scene, _: Fault) -> EmulationError:
    rank = scene.state.rank
    if scene.state.launch.spaces.cluster is not None and _field(scene.state, TensorMemory.PEER, 8):
        return scene.raised(
            EmulationError,
            f"{_named(scene)} works on both blocks of a pair, and block {rank ^ 1} of the cluster has ended",
            "synchronise the blocks before they end: `ptxdsl.cluster.sync()`",
        )
    return scene.raised(
        EmulationError, f"{_named(scene)} works on a pair of blocks, and block {rank} of the cluster has no other",
        "launch it in clusters of two blocks: `kernel.configure(grid, block, cluster=2)`",
    )


def _asked(request: int) -> str:
    """What a warp asks of the other block."""
    count = request >> 32 & 0x7FFFFFFF
    if request >> 63:
        return f"frees {count} columns from address {request & 0xFFFFFFFF:#x}"
    return f"allocates {count} columns"


@explains(Fault.TENSOR_PAIR_DIFFERS)
def _differs(scene: Scene, _: Fault) -> EmulationError:
    other = _asked(scene.state.get(Block.EXTENTS, "Q"))
    message = f"{_named(scene)}: this block {_asked(scene.address)}, and the other block of the pair {other}"
    return scene.raised(EmulationError, message, "both blocks of a pair make the same allocations in the same order")


@explains(Fault.TENSOR_ADDRESS)
def _address(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(
        EmulationError, f"{_named(scene)}: the lanes of warp {scene.warp} give different numbers",
        "all lanes of the warp give the same address and the same number of columns",
    )


@explains(Fault.TENSOR_COLUMNS)
def _outside(scene: Scene, _: Fault) -> EmulationError:
    state, column, count = scene.state, scene.address & 0xFFFF, scene.state.get(Block.EXTENTS, "Q")
    message = f"{_named(scene)} accesses {_columns(column, count)} of tensor memory"
    if column + count > TensorMemory.COLUMNS:
        return scene.raised(MemoryFault, f"{message}, which has {TensorMemory.COLUMNS}; {_held(state)}")
    units = range(column // UNIT, (column + count - 1) // UNIT + 1)
    wrong = next(unit * UNIT for unit in units if not _field(state, TensorMemory.ALLOCATED) >> unit & 1)
    if _freed(state, wrong):
        site = _site(state, TensorMemory.FREEING_SITES, wrong)
        return scene.raised(MemoryFault, f"{message}, of which column {wrong} was freed by {site}")
    return scene.raised(MemoryFault, f"{message}, of which column {wrong} is not allocated; {_held(state)}")


@explains(Fault.TENSOR_DESCRIPTOR)
def _rows(scene: Scene, _: Fault) -> EmulationError:
    op, word = scene.op, scene.address
    assert isinstance(op, TensorCopy)
    shape = SHAPES[op.shape]
    why = problem(word, SWIZZLES, 16 * shape.pieces)
    start, leading, stride = (field.of(word) for field in (ADDRESS, LEADING, STRIDE))
    end = SHARED_START + scene.state.launch.shared_bytes
    rows = f"{shape.rows} rows of {16 * shape.pieces} bytes from {start:#x} on"
    distances = f"leading {leading:#x}, stride {stride:#x}"
    outside = f"{rows}, {distances}, go beyond the block's shared memory, {SHARED_START:#x} to {end:#x}"
    return scene.raised(MemoryFault, f"the matrix descriptor {word:#x} of {_named(scene)}: {why or outside}")


@explains(Fault.TENSOR_FLIGHT)
def _flight(scene: Scene, _: Fault) -> EmulationError:
    state, stream, pc = scene.state, scene.state.get(Block.EXTENTS, "Q"), scene.state.get(Block.EXTENTS + 8, "Q")
    number = state.code.statement_at(pc) if 0 <= pc - state.code.base <= state.code.offsets[-1] else -1
    statement: Any = state.code.graph.statements[number] if number >= 0 else None
    stores = stream >= STORES
    what = "`tcgen05.st`" if stores else "an operation of the tensor core"
    if statement is not None:
        where = f" at {statement.loc}" if statement.loc is not None else f" at PTX line {statement.line}"
        what = f"`{statement.form.mnemonic}`{where}"
    message = f"{_named(scene)} accesses column {scene.address} of tensor memory, which {what} in warp {stream % 32}"
    if stores:
        return scene.raised(
            RaceError, f"{message} may not have written yet",
            "let that warp execute `tcgen05.wait::st.sync.aligned` before it tells others, or goes on itself",
        )
    return scene.raised(
        RaceError, f"{message} may still use",
        "wait at the mbarrier of a `tcgen05.commit` behind it: `mbarrier.try_wait.parity`",
    )


@explains(Fault.TENSOR_LANES)
def _lanes(scene: Scene, _: Fault) -> EmulationError:
    lane, quarter = scene.address >> 16, 32 * (scene.warp % 4)
    message = f"{_named(scene)} at lane {lane} of tensor memory"
    if isinstance(scene.op, TensorCopy):
        wanted = "one of the lanes 0 to 31" if SHAPES[scene.op.shape].anywhere else "lane 0"
        return scene.raised(MemoryFault, f"{message}: a copy of this shape begins at {wanted}")
    if isinstance(scene.op, TensorShift):
        return scene.raised(MemoryFault, f"{message}: a shift begins at lane 0, 32, 64 or 96")
    allowed = f"{quarter}" if "32x32b" in scene.statement.form.tokens else f"{quarter} or {quarter + 16}"
    return scene.raised(
        MemoryFault,
        f"{message} in warp {scene.warp}, which reaches lanes {quarter} to {quarter + 31}: an access of this shape "
        f"begins at lane {allowed}",
        "add 32 times the number of the warp in its group of four to the upper half of the address",
    )


def waiting_for(state: BlockState, statement: Instruction) -> str:
    """What a warp that allocates or frees tensor memory waits for, for the text of a deadlock."""
    asking = _field(state, TensorMemory.ASKING)
    if asking and "cta_group::2" in statement.form.tokens:
        return f"{PAIR} to do the same"
    return f" until so many columns of tensor memory are free; {_held(state)}"

