"""Waiting for ever: the errors of blocks whose warps all wait, with what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...errors import DeadlockError
from ...ir import Address, Immediate, Instruction, Register, Symbol
from ..instructions.barriers import RegisterCount
from ..instructions.tensor_cores.tensor_memory import TensorAllocate, TensorDeallocate
from ..instructions.tensor_cores.wgmma import WARPS
from ..machine.allocation import number_at
from ..machine.layout import LANES, SHARED_START, Barrier, Block, Cluster, ClusterBlock, Mbarrier, Warp
from ..machine.pending import Kind, Pending
from ..machine.unsupported import render
from .block_state import BlockState
from .convergence import raise_pending
from .faults import Scene, block_of, ranges, set_bits
from .memory_faults import accessed
from .tensor_memory_faults import waiting_for

__all__ = ["deadlock", "livelock"]


def deadlock(state: BlockState, others: Iterable[BlockState] = ()) -> DeadlockError:
    """The error of a state in which every live warp waits at a barrier; ``others`` are those of its cluster."""
    raise_pending(state)
    warps = set_bits(state.get(Block.LIVE, "I"))
    lines = [*_waiting(state, others), *_outstanding(state)]
    first = warps[0]
    scene = Scene(state, first, 0, state.get_warp(first, Warp.WAITS, "Q"))
    ended = state.count - len(warps)
    note = f"; {ended} of the block's {state.count} warps have ended" if ended else ""
    message = f"deadlock: all warps of the block wait at barriers that nobody completes{note}\n" + "\n".join(lines)
    return scene.raised(DeadlockError, message)


def livelock(state: BlockState, others: Iterable[BlockState] = ()) -> DeadlockError:
    """The error where all warps poll memory in loops and nothing changes any more."""
    raise_pending(state)
    warps = set_bits(state.get(Block.RUNNABLE, "I"))
    pc = state.get_warp(warps[0], Warp.PC, "Q")
    lane = set_bits(state.get_warp(warps[0], Warp.ACTIVE, "I"))[0]
    what, hint = "every warp polls memory in a loop, and nothing changes it any more", (
        "another thread must write what the loop waits for"
    )
    found = [wait for warp in warps if (wait := _wait(state, warp)) is not None]
    if found:
        pc = state.get_warp(warps[0], Warp.WAITS, "Q") or pc
        what, hint = "all warps wait, some at mbarriers that nobody completes", _advice(found)
        if {each.what for each in found} == {"tensor memory"}:
            what, hint = "all warps wait, some for tensor memory", (
                "free what is no longer needed before more is allocated: `tcgen05.dealloc`"
            )
        if {each.what for each in found} == {"wgmma"}:
            what, hint = "all warps wait, some for the others of their warpgroup", (
                "all four warps of a warpgroup execute the same wgmma instructions"
            )
        if any(each.what == "registers" for each in found):
            what = "all warps wait, some for registers"
            hint = "all warps together have the registers of the launch: `.dec` in some what `.inc` takes in others"
        what = "\n".join((what, *_waiting(state, others)))
    return Scene(state, warps[0], lane, pc).raised(DeadlockError, f"deadlock: {what}", hint)


class _Wait(NamedTuple):
    """What a warp waits for: the kind, in words, at which micro-op; what its mbarrier lacks, and has of it."""

    what: str
    text: str
    pc: int
    arrivals: int = 0
    expected: int = 0
    nbytes: int = 0


def _advice(waits: list[_Wait]) -> str:
    """What to look at first."""
    mbarriers = [wait for wait in waits if wait.what == "mbarrier"]
    if any(wait.nbytes and not wait.arrivals for wait in mbarriers):
        return "the bytes of `expect_tx` must be those that copies write in the phase"
    some = any(0 < wait.arrivals < wait.expected for wait in mbarriers)
    if not some and any(wait.arrivals == wait.expected and not wait.nbytes for wait in mbarriers):
        return "nobody has arrived in this phase: count who arrives; a phase that is over has the other parity"
    return "count who arrives in a phase, how often, and which bytes come"


def _waiting(state: BlockState, others: Iterable[BlockState]) -> Iterator[str]:
    """One line for each instruction at which warps wait, of the block, then of the others of its cluster."""
    for each in (state, *(other for other in others if other is not state)):
        groups: dict[tuple[str, int], list[int]] = {}
        runnable = each.get(Block.RUNNABLE, "I")
        for number in set_bits(each.get(Block.LIVE, "I")):
            wait = _wait(each, number) if runnable >> number & 1 else _barrier(each, number)
            wait = wait or _Wait("memory", " for memory that it polls to change", each.get_warp(number, Warp.PC, "Q"))
            groups.setdefault((wait.text, wait.pc), []).append(number)
        clustered = each.launch.spaces.cluster not in (None, (1, 1, 1))
        block = f"block {block_of(each)} of rank {each.rank}, " if clustered else ""
        for (text, pc), members in groups.items():
            yield f"  {block}{_warps(members)}{text}: {_line(each, pc)}"


def _warps(members: list[int]) -> str:
    return f"warp {members[0]} waits" if len(members) == 1 else f"warps {ranges(members)} wait"


def _line(state: BlockState, pc: int) -> str:
    number = state.code.statement_at(pc)
    statement: Any = state.code.graph.statements[max(0, number)]
    where = f" at {statement.loc}" if statement.loc is not None else f" at PTX line {statement.line}"
    return f"{render(statement)}{where}"


def _barrier(state: BlockState, warp: int) -> _Wait:
    """The barrier at which a warp waits."""
    pc, barrier = state.get_warp(warp, Warp.WAITS, "Q"), state.get_warp(warp, Warp.BARRIER, "i")
    if barrier == Cluster.NUMBER:
        head = number_at(state.get(Block.CLUSTER, "Q") + ClusterBlock.HEAD)
        arrived, live = number_at(head + Cluster.ARRIVED, 4), number_at(head + Cluster.LIVE, 4)
        return _Wait("cluster", f" at the barrier of the cluster ({arrived} of {live} threads have arrived)", pc)
    place = Block.BARRIERS + barrier * Barrier.nbytes
    arrived, expected = state.get(place + Barrier.ARRIVED, "i"), state.get(place + Barrier.EXPECTED, "i")
    needed = expected // LANES or state.get(Block.LIVE, "I").bit_count()
    return _Wait("barrier", f" at barrier {barrier} ({arrived} of {needed} warps have arrived)", pc)


NEAR = 16
"""Statements of a loop that waits; what lies further away is another one."""


def _wait(state: BlockState, warp: int) -> _Wait | None:
    """What a warp that could run waits for in a loop, or comes again for; None where it polls other memory."""
    pc, at = state.get_warp(warp, Warp.WAITS, "Q"), state.get_warp(warp, Warp.PC, "Q")
    statement = state.code.statement_at(pc) if pc else -1
    if statement < 0 or abs(statement - state.code.statement_at(at)) > NEAR:
        return None
    wait = state.code.graph.statements[statement]
    if not isinstance(wait, Instruction):
        return None
    if isinstance(state.code.op_at(pc), (TensorAllocate, TensorDeallocate)):
        return _Wait("tensor memory", waiting_for(state, wait), pc)
    if isinstance(state.code.op_at(pc), RegisterCount):
        return _Wait("registers", _registers(state, warp, wait), pc)
    if wait.form.effects.waits == "wgmma_group":
        return _Wait("wgmma", _group(state, warp, wait), pc)
    return _mbarrier(state, warp, wait, pc) if wait.form.effects.waits == "mbarrier" else None


def _registers(state: BlockState, warp: int, wait: Instruction) -> str:
    """The registers that a warp waits for."""
    op, count = state.code.op_at(state.get_warp(warp, Warp.WAITS, "Q")), wait.operands[0]
    assert isinstance(count, Immediate)
    assert isinstance(op, RegisterCount)
    had = state.get_warp(warp, Warp.MAXNREG, "i") or op.initial
    freed = state.get(Block.FREED, "i")
    return f" for {count.bits - had} registers a thread more than its {had}; all warps together have given back {freed}"


def _group(state: BlockState, warp: int, wait: Instruction) -> str:
    """The group of wgmma that other warps of the warpgroup have not committed."""
    left = wait.operands[0]
    assert isinstance(left, Immediate)
    group = state.get_warp(warp, Warp.GROUPS, "i") - left.bits
    first, live = warp // WARPS * WARPS, state.get(Block.LIVE, "I")
    late = [each for each in range(first, first + WARPS) if state.get_warp(each, Warp.GROUPS, "i") < group]
    ended = [each for each in late if not live >> each & 1]
    names = ranges(late)
    verb = f"warp {names} has" if len(late) == 1 else f"warps {names} have"
    note = " and has ended" if len(ended) == 1 == len(late) else f"; ended: {ranges(ended)}" if ended else ""
    return f" for group {group - 1} of wgmma, which {verb} not committed{note}"


def _mbarrier(state: BlockState, warp: int, wait: Instruction, pc: int) -> _Wait:
    """The mbarrier of a wait, and what its phase lacks."""
    address = next(operand for operand in wait.operands if isinstance(operand, Address))
    lane, *_ = *set_bits(state.get_warp(warp, Warp.ACTIVE, "I")), 0
    if isinstance(address.base, Register):
        at = state.register(warp, address.base.name)[lane]
    elif isinstance(address.base, Symbol):
        at = state.code.operands.symbol(address.base, wait)
    else:
        return _Wait("mbarrier", " at an mbarrier", pc)
    at += address.offset
    offset = (at & (1 << Cluster.RANK_BITS) - 1) - SHARED_START
    if not 0 <= offset <= state.launch.shared_bytes - 8:
        return _Wait("mbarrier", " at an mbarrier", pc)
    state.put(Block.FAULT_ADDRESS, "Q", at)
    name, word = accessed(Scene(state, warp, lane, pc)), number_at(state.shared + offset)
    arrivals, expected = word & Mbarrier.MOST, word >> Mbarrier.EXPECTED & Mbarrier.MOST
    tx = word >> Mbarrier.TX & (2 * Mbarrier.MOST + 1)
    tx -= (tx > Mbarrier.MOST) * (2 * Mbarrier.MOST + 2)
    lacks = [f"{arrivals} of {expected} arrivals"] if arrivals else []
    lacks += [f"{tx} bytes"] if tx > 0 else []
    text = f"lacks {' and '.join(lacks)}" if lacks else ""
    if tx < 0:
        text += f"{' and ' if text else ''}has {-tx} bytes more than it expects"
    phase = word >> Mbarrier.PARITY & 1
    return _Wait("mbarrier", f" for the phase of parity {phase} of {name}, which {text}", pc, arrivals, expected, tx)


_OUTSTANDING = {Kind.BULK: "bulk copy", Kind.COPY: "copy", Kind.PRODUCT: "product", Kind.COUNTED: "operation",
                Kind.ARRIVAL: "arrival"}


def _outstanding(state: BlockState) -> Iterator[str]:
    """One line for each instruction whose operations are not complete."""
    found: dict[tuple[int, int], int] = {}
    for at in state.pending:
        key = number_at(at + Pending.PLACE), number_at(at + Pending.KIND, 4)
        found[key] = found.get(key, 0) + 1
    for (pc, kind), count in found.items():
        many = f"{count} {_OUTSTANDING[kind]}{'s' if count > 1 else ''}"
        yield f"  not complete: {many.replace('copys', 'copies')}: {_line(state, pc)}"
