"""Lowering a function and putting it in memory."""

from __future__ import annotations

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Function, Instruction
from ..analysis.divergence import Shape3
from ..instructions.addresses import AccessFlags
from ..instructions.function import FunctionLowering, LoweredFunction
from ..instructions.lowering import Instrument
from ..instructions.micro_op import Key, layout_of
from ..instructions.scheduler import EVERYWHERE, SchedulerFunction
from ..machine.address_spaces import AddressSpaces
from .code import Code, Description, Source
from .library import library

__all__ = ["assemble", "translate"]


def translate(
    function: Function, spaces: AddressSpaces, block: Shape3, conservative: bool = False,
    instrument: Instrument | None = None, keep_registers: bool = False, wraps: set[int] | None = None,
) -> Code:
    """The code of a kernel for blocks of this shape, with that of a tool where there is an ``instrument``.

    ``keep_registers``: each register keeps its number to the end, for a debugger. Such code has no second tier, and
    code with marks of executed lines has none.
    ``wraps`` are the kernel's, which the code adds to.
    """
    wraps = set() if wraps is None else wraps
    known = frozenset(wraps)
    low = FunctionLowering(function, spaces, block, conservative, instrument, keep_registers, known)
    code = assemble(low.lower(), Source(function, spaces, block, instrument))
    code.wraps, code.known_wraps, code.tiered_up = wraps, known, keep_registers or low.executed is not None
    return code


def assemble(lowered: LoweredFunction, source: Source | None = None) -> Code:
    """A function in memory."""
    micro_ops, starts = lowered.micro_ops, lowered.starts
    ops = {id(placed.op): placed.op for placed in micro_ops}
    links = [routine for placed in micro_ops if placed.links for routine in placed.links.values()]
    needed: list[Key] = [*links, *EVERYWHERE]
    if any("flags" in p.op.values and not p.value("flags") & AccessFlags.ONE_ENTRY for p in micro_ops):
        needed.append(SchedulerFunction("resolve"))
    made_by = library()
    made_by.need(ops.values(), quickly=True)
    handlers = made_by.need(needed)  # which a thread beside this one has made where nothing was on disk
    quick = made_by.unoptimised.keys.intersection(ops.values())
    made = {number: (handlers[op], *layout_of(op.codes)) for number, op in ops.items()}
    offsets, at = [], 0
    for placed in micro_ops:
        offsets.append(at)
        at += made[id(placed.op)][2]
    memory = np.zeros(at + 64, np.uint8)
    base = memory.ctypes.data + -memory.ctypes.data % 64
    image = bytearray(at)
    for placed, offset in zip(micro_ops, offsets):
        if placed.targets is not None:
            for number, target in placed.targets.items():
                placed.values[number] = offsets[starts[target]] - offset
        if placed.links is not None:
            for number, routine in placed.links.items():
                placed.values[number] = handlers[routine]
        handler, packer, _ = made[id(placed.op)]
        packer.pack_into(image, offset, handler, *placed.values)
    start = base - memory.ctypes.data
    memory[start : start + at] = np.frombuffer(image, np.uint8)
    count = max(1, len(lowered.graph.blocks))
    blocks = np.full(count + 1, base + offsets[-1], np.uint64)  # the last: lanes that are set aside
    by_priority = [0] * count
    for number, block in enumerate(lowered.graph.blocks):
        blocks[block.priority] = base + offsets[starts[number]]
        by_priority[block.priority] = number
    description = Description(
        lowered.graph, lowered.registers, lowered.operands, micro_ops, offsets,
        [placed.statement for placed in micro_ops], by_priority, source,
    )
    code = Code(
        memory, base, base + offsets[lowered.entry], base + offsets[lowered.prologue], blocks, lowered.registers.size,
        len(micro_ops), lowered.conservative, lowered.prints, _updates(lowered.graph),
        lowered.pending, description,
    )
    if quick:
        made_by.note_user(code, {base + at: placed.op for placed, at in zip(micro_ops, offsets) if placed.op in quick})
    return code


def _updates(graph: ControlFlowGraph) -> bool:
    forms = {s.form for s in graph.statements if isinstance(s, Instruction) and s.form.space != "shared"}
    return any(form.effects.writes and form.effects.strong for form in forms)
