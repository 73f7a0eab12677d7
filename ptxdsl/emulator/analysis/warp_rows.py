"""Whether a block's warps can be whole rows of threads, and how many lanes they have then.

A warp that begins in the middle of a row has no number for what its threads compute from their rows, and its lanes are
in memory side by side by parts only. So where a block has odd rows (not a power of two, nor whole warps), its warps are
made of as many whole rows as fit, or of a part of a row that divides it. That is done where nothing tells which threads
make a warp: a kernel that has no instruction of a warp, no number of a lane or warp, and whose barriers are of all
threads, who come there together. What lanes do in step is no promise of PTX; but code that relies on it says so by
volatile and other strong accesses, so kernels that have such keep their warps. Atomic operations are of each thread.

A block of one index may have rows as well, that the kernel computes (``tid / 24``, ``tid % 24``). What follows from the
index and numbers of the text alone is computed here for all threads; where warps of fewer lanes, of which the block is
made without a rest, have the same offsets in more registers, they are made so.

Not seen: rows whose length has no divisor from 11 to 32 (37, 41), or that would leave most lanes without a thread
(5 x 7 x 3); rows of one index whose length is a parameter.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from ...analysis.control_flow import ControlFlowGraph, control_flow_graph
from ...analysis.def_use import DefUse
from ...ir import Address, Call, Function, Immediate, Instruction, Operand, Register, SpecialRegister
from ..machine.layout import LANES
from ..machine.warp_rows import LEAST, ODD, Shape3, WarpRows, has_odd_rows, lanes_of_warps, warps_of
from .barrier_intervals import varying_registers
from .form_plans import plan_of
from .linear_values import NO_BLOCK
from .thread_numbers import Arithmetic, Number

__all__ = ["in_rows", "with_offsets"]

MORE = 2.5
"""Times as many warps as there would be of 32 lanes, at most."""
_TELLING = ("%laneid", "%warpid", "%nwarpid", "%lanemask")


def in_rows(function: Function, block: Shape3) -> Shape3:
    """The shape of the block with its warps as rows; the plain shape where they stay as they are."""
    if not has_odd_rows(block) or any(_is_of_warps(each) for each in function.body or ()):
        return block
    graph = control_flow_graph(function)
    lanes = _computed_lanes(graph, block) if block[0] == prod(block) else _lanes(block)
    if lanes == LANES or not _cannot_tell(graph):
        return block
    return with_offsets(function, WarpRows.of(block, lanes))


def with_offsets(function: Function, shape: Shape3) -> Shape3:
    """A shape with what is known of the registers of a kernel, where its rows are computed from one index."""
    lanes = lanes_of_warps(shape)
    if lanes == LANES or shape[0] != prod(shape):
        return shape
    found = {name: _offsets(*each, lanes) for name, each in _numbers(control_flow_graph(function), shape).items()}
    return WarpRows.of(shape, lanes, {name: offsets for name, offsets in found.items() if offsets is not None})


def _computed_lanes(graph: ControlFlowGraph, block: Shape3) -> int:
    """How many lanes the warps of a block of one index should have."""
    if not any(map(_divides, graph.def_use)):
        return LANES
    numbers, best, most = _numbers(graph, block).values(), LANES, 0
    new = [each for each in numbers if _offsets(*each, LANES) is None]
    for lanes in ODD:
        if block[0] % lanes == 0 and _are_few_enough(block, lanes):
            known = sum(_offsets(*each, lanes) is not None for each in new)
            if known > most:
                best, most = lanes, known
    return best


def _divides(op: DefUse) -> bool:
    """Whether a statement divides, or multiplies as compilers do in place of it."""
    form = op.statement.form if isinstance(op.statement, Instruction) else None
    if form is None or form.opcode not in ("div", "rem", "mul"):
        return False
    return form.opcode != "mul" or any(isinstance(each, Immediate) and abs(each.bits) >> 16 for each in op.reads)


def _numbers(graph: ControlFlowGraph, block: Shape3) -> dict[str, tuple[Any, int]]:
    """The numbers of all threads, and the bits, of registers that follow from the index and numbers of the text."""
    threads = block[0]
    arithmetic, index = Arithmetic((1, 1, 1), threads), Number(np.arange(threads, dtype=np.int64))
    writes = Counter(register.name for op in graph.def_use for register in op.writes)
    found: dict[str, Number] = {}
    sizes: dict[str, int] = {}

    def number(operand: Operand) -> Number | None:
        if isinstance(operand, Register):
            return found.get(operand.name)
        if isinstance(operand, Immediate):
            bits, half = operand.bits, 1 << max(operand.type.bits, 2) - 1
            return Number(bits - 2 * half if bits & half else bits)
        special = operand.special if isinstance(operand, SpecialRegister) else ""
        return index if special == "%tid.x" else Number(threads) if special == "%ntid.x" else None

    for op in graph.def_use:
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None or len(op.writes) != 1:
            continue
        (register,), form = op.writes, statement.form
        kind = form.type
        if writes[register.name] > 1 or kind is None or kind.lanes != 1 or kind.kind not in "usb":
            continue
        if not plan_of(form).pure or register.type.kind == "p" or not op.reads:
            continue
        given = [number(operand) for operand in op.reads]
        known = [each for each in given if each is not None]
        result = arithmetic.result(form, kind, known, register.type.bits) if len(known) == len(given) else None
        if result is not None and result.block == NO_BLOCK and not result.origin:
            found[register.name], sizes[register.name] = result, register.type.bits
    return {name: (each.numbers, sizes[name]) for name, each in found.items() if not isinstance(each.numbers, int)}


def _offsets(numbers: Any, bits: int, lanes: int) -> tuple[int, ...] | None:
    """What each lane has beyond the first one of its warp, where that is the same in all warps of so many lanes."""
    rest = -len(numbers) % lanes
    rows = np.pad(numbers, (0, rest), mode="edge").reshape(-1, lanes)
    offsets = rows - rows[:, :1]
    if bits < 64:
        offsets &= (1 << bits) - 1
    there = len(numbers) - (len(rows) - 1) * lanes
    if (offsets[:-1] != offsets[0]).any() or (offsets[-1, :there] != offsets[0, :there]).any():
        return None
    return (*map(int, offsets[0]), *(0,) * (LANES - lanes))


def _lanes(block: Shape3) -> int:
    """How many lanes the warps of a block of this shape should have."""
    x, y, z = block
    if x > LANES:
        lanes = next(n for n in range(LANES, 0, -1) if x % n == 0)
    else:
        lanes = x * next(rows for rows in range(LANES // x, 0, -1) if z == 1 or y % rows == 0)
    return lanes if lanes >= LEAST and _are_few_enough(block, lanes) else LANES


def _are_few_enough(block: Shape3, lanes: int) -> bool:
    """Whether a block may be made of warps of so many lanes."""
    return warps_of(WarpRows.of(block, lanes)) <= min(LANES, MORE * warps_of(block))


def _cannot_tell(graph: ControlFlowGraph) -> bool:
    """Whether nothing that a kernel does depends on which threads make a warp."""
    barriers = [place for place, op in enumerate(graph.def_use) if _is_barrier(op)]
    others = (op for place, op in enumerate(graph.def_use) if place not in set(barriers))
    if not all(map(_is_of_threads, others)):
        return False
    if not barriers:
        return True
    _, apart = varying_registers(graph, lambda _: False)
    inside = {place for number in apart for place in range(graph.blocks[number].start, graph.blocks[number].stop)}
    return inside.isdisjoint(barriers)


def _is_barrier(op: DefUse) -> bool:
    """Whether a statement is a barrier of all threads of the block."""
    statement = op.statement
    if not isinstance(statement, Instruction) or statement.guard is not None:
        return False
    effects = statement.form.effects
    return effects.barrier == "block" and effects.waits == "block" and statement.operand("b") is None


def _is_of_threads(op: DefUse) -> bool:
    """Whether a statement does for each thread what it does, whatever warp that is in."""
    statement = op.statement
    if not isinstance(statement, Instruction) or _is_of_warps(statement) or statement.form.effects.collective:
        return False
    return not any(_tells(operand.base if isinstance(operand, Address) else operand) for operand in op.reads)


def _is_of_warps(statement: object) -> bool:
    """Whether a statement is one of lanes together, waits for what is no barrier of the block, or is ordered."""
    if not isinstance(statement, Instruction):
        return isinstance(statement, Call)
    effects = statement.form.effects
    if effects.barrier == "block":
        return effects.waits != "block" or statement.operand("b") is not None
    if effects.collective or effects.arrives or effects.waits or effects.completes or effects.commits:
        return True
    return effects.strong and not effects.atomic


def _tells(operand: object) -> bool:
    return isinstance(operand, SpecialRegister) and operand.special.startswith(_TELLING)
