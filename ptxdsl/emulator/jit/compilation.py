"""The compilation of a kernel in the second tier: a block function, and superinstructions.

All of a kernel becomes one function for a block where that can be done; the next block that starts uses it. Sequences
of micro-ops become superinstructions: each takes the place of the handler in the sequence's first micro-op, a single
pointer, so that can be done between two instructions of any warp. They serve kernels that have no block function, and
blocks that started earlier.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...collector import paused
from ..codegen.code import Code
from ..codegen.library import library, name_of_kept, symbol
from ..instructions.control import Branch, Jump
from ..machine.budgets import POLL
from .merged_checks import merged_bounds_checks
from .plan import PlannedOp, Refused, effort, learns_entry

__all__ = ["compile_block_function", "compile_superinstructions", "tier_up"]

SHORTEST, LONGEST, MAX_MICRO_OPS = 3, 300, 3000
"""Micro-ops in a superinstruction, and in all of a kernel."""
MAX_BESIDE = 300
"""Micro-ops up to which there are superinstructions beside a block function: LLVM takes much memory for more."""


def tier_up(code: Code) -> None:
    """Compile a kernel: a block function if that can be done, and superinstructions if there are few, or only they.

    Functions of a warp where there is no block function, or behind the waits at which it is left.
    """
    code.tiered_up = True
    whole = compile_block_function(code)
    entries = {} if whole and not _polls(code) else compile_warp_functions(code)
    if not (whole or entries) or sum(run.cost for run in _runs(code)) <= MAX_BESIDE:
        compile_superinstructions(code)
    _put_in_place(code, entries)


def _polls(code: Code) -> bool:
    """Whether threads wait for what others write: a block function is left then, and the rest of the block is long."""
    loops = (placed for placed in code.micro_ops if isinstance(placed.op, (Branch, Jump)) and placed.op.backward)
    return any(placed.value("cost") >= POLL for placed in loops)


def compile_block_function(code: Code) -> bool:
    """Compile a kernel as one function for a block; whether that can be done."""
    from .planning import plan_block_function

    def build(module: Any, name: str) -> None:
        from .block_function import emit_block_function

        emit_block_function(module, name, plan)

    try:
        with paused():
            plan = plan_block_function(code)
        code.block_function = library().kept(plan.key, build)
        if code.keep_block_function is not None:
            code.keep_block_function(name_of_kept(plan.key))
    except Refused as refused:
        code.refusal = str(refused)
        return False
    return True


def compile_warp_functions(code: Code) -> dict[int, int]:
    """Compile a kernel as functions of a warp; the address of that which takes the place of the handler at an offset.

    Empty where that is not worth it.
    """
    from .warp_planning import plan_warp_functions

    try:
        with paused():
            made = plan_warp_functions(code)
    except Refused:
        return {}
    at = {offset: number for number, offset in enumerate(code.offsets)}

    def build(module: Any) -> None:
        from .warp_function import emit_warp_function

        for number, part in enumerate(made.functions):
            originals = {offset: symbol(code.micro_ops[at[offset]].op) for offset in part.entries}
            emit_warp_function(module, f"part{number}", made, part, originals)

    names = [f"part{number}" for number in range(len(made.functions))]
    addresses = library().kept_by_text(build, names)
    return {offset: address for part, address in zip(made.functions, addresses) for offset in part.entries}


def _put_in_place(code: Code, functions: dict[int, int]) -> None:
    """Let functions take the place of the handlers at these offsets."""
    for offset, address in functions.items():
        ctypes.memmove(code.base + offset, address.to_bytes(8, "little"), 8)
        code.warp_functions += 1


class _Run(NamedTuple):
    """Micro-ops for one superinstruction, from the first to before the last, and how long LLVM takes for them."""

    first: int
    last: int
    cost: int


def compile_superinstructions(code: Code) -> None:
    """Compile sequences of a kernel's micro-ops and put the functions in place."""
    chosen: list[_Run] = []
    total = 0
    for run in _runs(code):
        if total + run.cost <= MAX_MICRO_OPS:
            total += run.cost
            chosen.append(run)
    if not chosen:
        return

    def build(module: Any) -> None:
        from .superinstructions import emit_superinstruction

        for run in chosen:
            original = symbol(code.micro_ops[run.first].op)
            size = code.offsets[run.last - 1] + code.micro_ops[run.last - 1].size - code.offsets[run.first]
            ops, live = _planned(code, run), _live_after(code, run)
            emit_superinstruction(module, _name(run), ops, original, size, live)

    for run, address in zip(chosen, library().kept_by_text(build, list(map(_name, chosen)))):
        ctypes.memmove(code.base + code.offsets[run.first], address.to_bytes(8, "little"), 8)


def _name(run: _Run) -> str:
    return f"run{run.first}"


def _runs(code: Code) -> Iterator[_Run]:
    """Sequences within a basic block; what comes before the kernel's entry runs only once."""
    micro_ops = code.micro_ops
    starts = {int(address) - code.base for address in code.blocks}
    start = next(n for n, offset in enumerate(code.offsets) if offset >= code.entry - code.base)
    cost = 0
    for number in range(start, len(micro_ops) + 1):
        fits = number < len(micro_ops) and micro_ops[number].op.fusible
        if not fits or cost >= LONGEST or (number < len(micro_ops) and code.offsets[number] in starts):
            if number - start >= SHORTEST:
                yield _Run(start, number, cost)
            start, cost = number if fits else number + 1, 0
        if fits:
            cost += effort(micro_ops[number].op)


def _live_after(code: Code, run: _Run) -> set[int]:
    """Slots that are live behind a sequence."""
    offsets = code.registers.offsets
    last = code.micro_ops[run.last - 1].statement
    behind = next((r.statement for r in code.micro_ops[run.last :] if r.statement != last), -1)
    inside = run.last < len(code.micro_ops) and code.micro_ops[run.last].statement == last  # the statement goes on
    names = code.registers.liveness.after(last) if behind != last and not inside else set(offsets)
    return {offsets[name] for name in names if name in offsets}


def _planned(code: Code, run: _Run) -> list[PlannedOp]:
    """The micro-ops of a sequence, by their offset from its first, with their bounds checks merged."""
    micro_ops = code.micro_ops[run.first : run.last]
    bounds = merged_bounds_checks(code, micro_ops)
    ops = []
    for number, placed in enumerate(micro_ops):
        offset = code.offsets[run.first + number] - code.offsets[run.first]
        access = offset if learns_entry(placed) else -1
        ops.append(PlannedOp(placed.op, placed.values, placed.statement, offset, access, bounds.get(number)))
    return ops
