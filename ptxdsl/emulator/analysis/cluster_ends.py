"""Whether a thread may end behind an access to another block's shared memory with no barrier of the cluster between.

No block may end while another one may still reach its shared memory. Where each way from such an access to the end
passes an arrival at the barrier of the cluster and then a wait, no block ends too early, and nothing has to be asked
when the kernel runs. Taken to be such are all accesses by addresses that may come from ``mapa``.
"""

from __future__ import annotations

from typing import Any

from ...analysis.control_flow import control_flow_graph
from ...ir import Function, Instruction
from ...isa import Form

__all__ = ["ends_unordered"]

_BEFORE_ARRIVAL, _BEFORE_WAIT = 1, 2
"""There is an access since the last arrival; or one before it, and no wait since."""


def ends_unordered(function: Function) -> bool:
    """Whether that may be."""
    forms = [s.form for s in function.body or () if isinstance(s, Instruction)]
    if not any(form.opcode == "mapa" for form in forms):
        return False
    graph = control_flow_graph(function)
    entry = [0] * len(graph.blocks)
    left = list(range(len(graph.blocks)))
    while left:
        number = left.pop()
        block, open_ = graph.blocks[number], entry[number]
        for statement in graph.statements[block.start : block.stop]:
            if _ends(statement) and open_:
                return True
            open_ = _after(statement, open_)
        last = graph.statements[block.stop - 1]
        traps = isinstance(last, Instruction) and last.form.effects.control == "trap"
        if open_ and (block.exits or not (block.successors or traps)):
            return True
        for successor in block.successors:
            if open_ & ~entry[successor]:
                entry[successor] |= open_
                left.append(successor)
    return False


def _ends(statement: Any) -> bool:
    return isinstance(statement, Instruction) and statement.form.effects.control in ("return", "exit")


def _after(statement: Any, open_: int) -> int:
    if not isinstance(statement, Instruction):
        return open_
    effects = statement.form.effects
    if effects.barrier == "cluster":
        if effects.waits:
            return open_ & ~_BEFORE_WAIT
        return _BEFORE_WAIT if open_ else 0
    return open_ | (_BEFORE_ARRIVAL if _reaches(statement.form) else 0)


def _reaches(form: Form) -> bool:
    """Whether an instruction may access the shared memory of another block."""
    spaces = {access.space for access in form.effects.accesses}
    return "shared::cluster" in form.tokens or "generic" in spaces
