"""Loops of which all warps of a block make a turn each before the next: the loop over the warps becomes the inner one.

A grid-stride loop touches neighbouring elements in the warps of a block, and far ones in its turns. One warp after the
other would walk through memory in large strides, and past every page once for each warp; in turns, a block reads and
writes all that lies together, as on a GPU. The head of such a loop is where warps wait for each other as at a barrier,
but none has to come: those that have ended are not waited for.

That is done where nothing can tell: no barrier follows, and neither the loop nor what follows has anything but
arithmetic, loads and plain stores (programs without data races cannot tell the order of these). A check that fails
hands the warps to the scheduler in their usual order, each at its own turn: so the fault that is found is the one that
would have been, but other warps may have stored more by then. And it is done where it is of use: the thread's index
goes up by what depends on the size of the grid, or by pages, and no number of each lane is carried from turn to turn,
which would have to be stored and loaded.
"""

from __future__ import annotations

from ...ir import Immediate, Instruction, Register, SpecialRegister
from ..analysis.divergence import UNIFORM, VARYING
from ..instructions.control import Branch, Exit, Jump
from ..instructions.data import Compute, WrapCheck
from ..instructions.memory import Load, LoadParameter, Store
from ..machine.layout import LANES
from .convergent_lowering import ConvergentLowering
from .plan import BlockBarrier, PlannedBlock
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["PLAIN", "interchanged"]

PLAIN = (Compute, ComputeRows, Load, LoadParameter, Store, WrapCheck, RowWrapCheck, Exit)
"""What cannot tell in which order warps run, in programs without data races."""
PAGE = 4096
"""A step from which on it is a long way to the next turn."""


def interchanged(blocks: list[PlannedBlock], low: ConvergentLowering, threads: int) -> BlockBarrier | None:
    """Where warps wait for each other at the head of such a loop; its number is that of the basic block."""
    if threads <= LANES or threads % LANES:
        return None
    for block in blocks:
        last = block.terminator
        if last is None or not isinstance(last.op, (Branch, Jump)) or not last.op.backward:
            continue
        head = blocks[block.targets[0]]
        inside = _loop(blocks, head.number, block.number)
        if inside and _plain(blocks, head.number) and _pays(low, [blocks[n] for n in inside], head):
            return BlockBarrier(head.number, 0, head.offset, head.offset, head.start, -1)
    return None


def _loop(blocks: list[PlannedBlock], head: int, tail: int) -> set[int]:
    """The basic blocks of a loop; none where it has another way in, or another loop inside."""
    before: dict[int, list[int]] = {}
    for block in blocks:
        for number in block.successors:
            before.setdefault(number, []).append(block.number)
    found, todo = {head}, [tail]
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += before.get(at, [])
    entered = any(number not in found for at in found - {head} for number in before.get(at, []))
    last = blocks[tail].terminator
    loops = [n for n in found for each in (blocks[n].terminator,) if each is not None and each is not last
             and isinstance(each.op, (Branch, Jump)) and each.op.backward]
    return set() if entered or loops or 0 in found or any(blocks[n].divergent for n in found) else found


def _plain(blocks: list[PlannedBlock], head: int) -> bool:
    """Whether nothing from here on can tell in which order warps run."""
    seen, todo = set[int](), [head]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        block = blocks[at]
        ops = (*block.ops, *((block.terminator,) if block.terminator is not None else ()))
        if block.barrier is not None or not all(isinstance(each.op, (*PLAIN, Branch, Jump)) for each in ops):
            return False
        todo += block.successors
    return True


def _pays(low: ConvergentLowering, inside: list[PlannedBlock], head: PlannedBlock) -> bool:
    """Whether neighbouring warps access neighbouring memory in each turn, and no lane carries a number on."""
    known, nodes = low.facts.offsets, low.graph.blocks
    places = [place for block in inside for place in range(nodes[block.number].start, nodes[block.number].stop)]
    written = {register.name for place in places for register in low.graph.def_use[place].writes}
    carried = low.registers.liveness.before(head.start) & written
    if any(known.get(name, UNIFORM) is VARYING and _bits(low, name) for name in carried):
        return False
    if not any(isinstance(each.op, Store) for block in inside for each in block.ops):
        return False
    return any(_steps(low, place, carried) for place in places)


def _bits(low: ConvergentLowering, name: str) -> bool:
    """Whether a register is no predicate, which is a mask for a warp."""
    return any(r.name == name and r.type.kind != "p" for op in low.graph.def_use for r in op.writes)


def _steps(low: ConvergentLowering, place: int, carried: set[str]) -> bool:
    """Whether a statement moves a thread's index or pointer far on."""
    op = low.graph.def_use[place]
    statement = op.statement
    if not isinstance(statement, Instruction) or not statement.form.mnemonic.startswith("add.") or len(op.reads) != 2:
        return False
    name = op.writes[0].name
    if name not in carried or low.facts.offsets.get(name, UNIFORM) in (UNIFORM, VARYING):
        return False
    steps = [each for each in op.reads if not (isinstance(each, Register) and each.name == name)]
    return len(steps) == 1 and all(
        step.name in _of_grid(low) if isinstance(step, Register) else isinstance(step, Immediate) and step.bits >= PAGE
        for step in steps
    )


def _of_grid(low: ConvergentLowering) -> set[str]:
    """The registers that are computed from the size of the grid, once for a launch."""
    found: set[str] = set()
    for place in sorted(low.facts.launch_invariant):
        op = low.graph.def_use[place]
        if any(isinstance(each, SpecialRegister) and each.special.startswith("%nctaid") for each in op.reads) or (
            any(isinstance(each, Register) and each.name in found for each in op.reads)
        ):
            found.update(register.name for register in op.writes)
    return found
