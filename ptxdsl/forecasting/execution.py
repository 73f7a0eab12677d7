"""How often each instruction of the machine is executed, from how often the emulator has executed the PTX's.

The assembler moves, merges and duplicates instructions, and its line table is not right for all of them. It moves few
that touch memory, multiply matrices or meet at a barrier; so the times that a basic block of SASS is executed are those
of such statements in it, divided by the copies that unrolling has made of each. Where a block has none of them, the
arithmetic says it. The middle one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from ..ir import Instruction
from ..isa.arithmetic import flops
from .sass import Sass, Segment

__all__ = ["Anchors", "anchors_of", "copies_of_lines", "executions"]

Anchors = Mapping[int, tuple[str, ...]]
"""By line of the PTX, how the names of the instructions begin that stand for its statement."""


def anchors_of(statement: Instruction) -> tuple[str, ...]:
    """How the name of a SASS instruction begins that stays where this statement stands; nothing where it may move.

    >>> from ptxdsl.isa import lookup
    >>> anchors_of(Instruction(lookup("st.global.f32")[0], ()))
    ('ST', 'RED', 'ATOM')
    """
    effects = statement.form.effects
    if flops(statement.form).warp:
        return "HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "QGMMA", "IGMMA"
    if effects.waits == "block":
        return ("BAR",)
    kinds = {access.kind for access in effects.accesses if access.reads or access.writes}
    if "tensor" in kinds:
        return ("UTMA",)
    if effects.arrives == "mbarrier":
        return ("SYNCS",)
    if effects.access is not None and effects.access.space not in ("param", "const"):
        return ("ST", "RED", "ATOM") if effects.access.writes else ("LD",)
    return ()


def executions(segments: Sequence[Segment], counts: Mapping[int, float], anchors: Anchors) -> list[float]:
    """How often warps execute each basic block; ``counts`` has that of each line of the PTX.

    >>> body = [Sass(0, "LDG.E", ("R0", "[R2]"), "", 7), Sass(16, "STG.E", ("[R2]", "R0"), "", 8)]
    >>> twice = [Segment((), body), Segment((".L_1",), body)]
    >>> executions(twice, {7: 10.0, 8: 10.0}, {7: ("LD",), 8: ("ST",)})
    [5.0, 5.0]
    """
    fixed: dict[int, Counter[str]] = {}
    for segment in segments:
        for one in segment.instructions:
            if _is_anchor(one, anchors):
                fixed.setdefault(one.line, Counter())[one.opcode] += 1
    copies = copies_of_lines(segments, anchors)
    found = []
    for segment in segments:
        sure = [
            counts[one.line] / max(fixed[one.line].values())
            for one in segment.instructions if _is_anchor(one, anchors) and one.line in counts
        ]
        said = sure or [
            counts[one.line] / copies[one.line] for one in segment.instructions
            if one.line in counts and one.line in copies and not _is_anchor(one, anchors)
        ]
        found.append(float(median(said)) if said else 0.0)
    return found


def copies_of_lines(segments: Sequence[Segment], anchors: Anchors) -> dict[int, int]:
    """How many copies of the arithmetic of each line there are."""
    moving: dict[int, Counter[str]] = {}
    for segment in segments:
        for one in segment.instructions:
            if not _is_anchor(one, anchors):
                moving.setdefault(one.line, Counter())[one.opcode] += 1
    return {line: _copies(opcodes) for line, opcodes in moving.items()}


def _copies(opcodes: Mapping[str, int]) -> int:
    """Of which number of copies most instructions of a line speak: an expansion has one opcode often, others once."""
    votes = Counter[int]()
    for count in opcodes.values():
        votes[count] += count
    return min(votes, key=lambda count: (-votes[count], count))


def _is_anchor(one: Sass, anchors: Anchors) -> bool:
    return one.name != "LDC" and one.name.startswith(anchors.get(one.line) or ("-",))
