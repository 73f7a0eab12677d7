"""Who wrote a value: the last statement, and thread, that has written a register or a cell of memory.

Of a register it is the last execution of a statement that writes it. Of memory it is the last store or atomic to the
cell, or the last statement behind which the cell has changed, which finds what asynchronous copies do too.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ...errors import Loc
from ...ir import Address, Call, Immediate, Instruction, Not, Symbol
from ..machine.debug_control import Flag
from ..machine.layout import LANES, Warp
from ..machine.unsupported import render
from ..runtime.block_state import BlockState
from ..runtime.faults import block_of, thread_of
from ..tools.counters import counted_access
from .debugged_launch import DebuggedLaunch
from .expressions import Lanes, evaluate, lookup, shown
from .reverse import moment, return_to, search, travel
from .view import Cell, DebugError, View

__all__ = ["Write", "who"]


class Write(NamedTuple):
    """The last write of ``what``, at a tick: by a thread of a block, or by what it has begun earlier.

    ``others`` are threads of the warp that wrote there at the same time, before it. ``statement`` is None where
    nothing has written it since the launch began.
    """

    what: str
    value: str
    tick: int = 0
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    statement: Instruction | Call | None = None
    others: int = 0
    stores: bool = True

    @property
    def loc(self) -> Loc | None:
        """The line of Python, where there is one."""
        return self.statement.loc if self.statement is not None else None

    def __str__(self) -> str:
        if self.statement is None:
            return f"{self.what} = {self.value}; nothing has written it since the launch began"
        at = f"\n  at {self.loc}" if self.loc is not None else ""
        verb = "was written by" if self.stores else "changed behind a statement of"
        others = f", and by {self.others} before it in the warp" if self.others else ""
        return (
            f"{self.what} = {self.value} {verb} thread {self.thread} of block {self.block}{others}{at}\n"
            f"  PTX line {self.statement.line}: {render(self.statement)}"
        )


def who(launch: DebuggedLaunch, text: str, frame: int = 0) -> Write:
    """Who has written a variable, a register, an element, or the cell ``*address`` last. Raises DebugError."""
    view = launch.view(frame)
    target: Any
    if text.strip().startswith("*"):
        target = view.at_address(int(evaluate(text.strip()[1:], view)))
    else:
        target = lookup(text, view)
    if isinstance(target, Lanes):
        return _register(launch, view, target)
    if isinstance(target, Cell):
        return _memory(launch, target)
    raise DebugError(f"`{text}` is no register and no element of memory", hint="`acc`, `acc[7]`, `x[i]`, `*address`")


def _register(launch: DebuggedLaunch, view: View, target: Lanes) -> Write:
    where, known = moment(launch), Write(target.name, shown(target[target.lane]))
    places = view.known.writers.get(target.register, [])
    found: list[int] = []
    flags = bytearray(launch.control.statements)
    for place in places:
        flags[place] = Flag.LOG_EXECUTED

    def prepare() -> None:
        launch.control.flag(bytes(flags))
        launch.control["BLOCK"], launch.control["WARP"] = where.thread[:2]
        launch.control["LANES"] = 1 << target.lane

    def enough(_: bool) -> bool:
        found[:] = [tick for tick, _ in launch.control.logged()[-1:]]
        return bool(found)

    if launch.tick > 1:
        search(launch, launch.tick, prepare, enough)
    write = known
    if found:
        travel(launch, found[0])
        state, warp, _, place = launch._arrived()
        write = known._replace(
            tick=found[0], block=block_of(state), thread=thread_of(state, warp, target.lane),
            statement=launch.places.statements[place],
        )
    return_to(launch, where)
    return write


def _memory(launch: DebuggedLaunch, cell: Cell) -> Write:
    where, known, state = moment(launch), Write(cell.name, shown(cell.read())), launch.state
    control, nbytes = launch.control, min(8, cell.type.bytes)
    word = cell.host & ~7
    mask = ((1 << 8 * nbytes) - 1 << 8 * (cell.host - word)) & (1 << 64) - 1
    mine = launch.execution.unit_of(state).states if cell.space != "global" else None
    block = state.block
    found: list[int] = []

    def prepare() -> None:
        control.flag(bytes(control.statements))
        control["WORD"], control["MASK"] = word, mask
        control["VALUE"] = int.from_bytes(ctypes.string_at(word, 8), "little") & mask
        control["NBYTES"], control["ADDRESS"], control["GENERIC"] = cell.type.bytes, cell.address, cell.generic
        control["BLOCK"], control["ANYWHERE"] = block, cell.space == "global"
        control["STORED"] = control["CHANGED"] = 0

    def enough(_: bool) -> bool:
        found[:] = [tick for tick in (max(control["STORED"], control["CHANGED"]),) if tick]
        return bool(found)

    search(launch, launch.tick, prepare, enough)
    write = known
    if found:
        travel(launch, found[0])
        there, warp, _, place = launch._arrived()
        if mine is None or (there in mine and (there.block == block or len(mine) > 1)):
            lanes = _storing(there, warp, launch.places.statements[place], cell)
            if cell.space == "local":  # of which each thread has its own
                lanes = [lane for lane in lanes if lane == where.thread.lane]
            lane = lanes[-1] if lanes else launch.thread.lane
            write = known._replace(
                tick=found[0], block=block_of(there), thread=thread_of(there, warp, lane),
                statement=launch.places.statements[place], others=max(0, len(lanes) - 1), stores=bool(lanes),
            )
    return_to(launch, where)
    return write


def _storing(state: BlockState, warp: int, statement: Instruction | Call, cell: Cell) -> list[int]:
    """The lanes that store to a cell, in their order."""
    access = counted_access(statement.form) if isinstance(statement, Instruction) else None
    if access is None or not access.writes or not isinstance(statement, Instruction):
        return []
    address = statement.operands[access.operand]
    assert isinstance(address, Address)
    starts = _addresses(state, warp, address, access.space)
    wanted = cell.generic if access.space == "generic" else cell.address
    active = state.get_warp(warp, Warp.ACTIVE, "I")
    holds = [1] * LANES if statement.guard is None else state.values(warp, statement.guard)
    end = wanted + cell.type.bytes
    near = [start < end and wanted < start + access.nbytes for start in starts]
    return [lane for lane in range(LANES) if active >> lane & 1 and holds[lane] and near[lane]]


def _addresses(state: BlockState, warp: int, address: Address, space: str) -> list[int]:
    base, bits = address.base, 64
    if isinstance(base, Symbol):
        window = state.launch.spaces.windows.get(base.symbol, 0) if space == "generic" else 0
        starts = [state.code.operands.symbol(base, None) + window] * LANES
    elif isinstance(base, Immediate):
        starts = [base.bits] * LANES
    else:
        assert not isinstance(base, Not)
        starts, bits = state.values(warp, base), base.type.bits
    return [(start + address.offset) % (1 << bits) for start in starts]
