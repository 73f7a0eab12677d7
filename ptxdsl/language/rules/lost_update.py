"""Rule R2: Python state that a region changes is not read after the region or in its next iteration.

A ``with loop():`` runs its body once while the PTX that it leaves behind runs it many times; a ``with when(p):`` runs
its body although p may be false. So a variable that the body rebinds means one thing to Python and another to the
kernel, and nothing in the trace can show it: the new value is a perfectly good one. What shows it are the frames. When
a region opens and when it closes, the variables of every frame from its `with` up to the kernel are compared, and what
lists, tuples, dicts and objects among them hold. A difference is a lost update

- in a loop, if the body reads the old value before it rebinds the name (the next iteration would read the new one), and
- in any region, if the new value was not computed inside (else rule R1 refuses its use) and is read afterwards.

All else is a name used again for something new, which is fine. A branch back to a `label` makes a loop of what lies
between, and is compared in the same way. Whether a name is read is answered from the bytecode. The repair is a `reg`.

What it cannot see: that a container grew or shrank (elements that were there before are compared, so an ``append`` in
a region passes), the contents of sets, of numpy arrays and of containers more than five deep, and what is reached only
through a global that the function reads and does not assign. A name that only ``exec`` or ``locals()`` uses is not in
the bytecode, and counts as not read.
"""

from __future__ import annotations

from typing import NoReturn

from ... import ir
from ...errors import Loc, LostUpdateError
from ...types import ScalarType, f32, pred, s32, u32
from ..builder import Region, fatal
from ..introspection.bytecode import Flow, flow_of
from ..memory.pointers import RegPointer
from ..values.value import Reg, Value
from .python_protocol import RunTime
from .snapshots import INERT, Container, Snapshot, changes, elements, rebound, same

__all__ = ["compare"]


def compare(before: list[Snapshot], region: Region) -> None:
    """A LostUpdateError where a region that closes leaves a variable changed that it must not change."""
    for state in before:
        for name, old, new in rebound(state):
            if not name.startswith(".") and not _equivalent(old, new):
                _check_name(state, name, old, new, region)
        for container in state.containers:
            for key, old, new in changes(container):
                if not _equivalent(old, new):
                    _check_element(state, container, key, old, new, region)


def _equivalent(old: object, new: object) -> bool:
    return same(old, new) or (isinstance(old, INERT) and isinstance(new, INERT))


def _made_inside(value: object, region: Region) -> bool:
    for item in elements(value):
        # The region of a pointer is that of its base.
        found = getattr(getattr(item, "base", item), "region", None) if isinstance(item, RunTime) else None
        while found is not None:
            if found is region:
                return True
            found = found.parent
    return False


def _check_name(state: Snapshot, name: str, old: object, new: object, region: Region) -> None:
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    writers = flow.writers(name, start, stop)
    # Written by an inner function, through its closure.
    read_first = not writers or flow.reads(name, start, stop)
    line = flow.steps[writers[-1]].line if writers else 0
    if _lost(read_first, flow.reads(name, stop), new, region):
        _refuse(name, "rebound", old, region, _loc(state, line, region))


def _check_element(
    state: Snapshot, container: Container, key: object, old: object, new: object, region: Region
) -> None:
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    root = container.path.split(".")[0].split("[")[0]
    body = flow.body(start, stop)
    if isinstance(old, Value):
        read_first = _read(old.register, region)
    elif old is None:
        read_first = False
    elif container.attributes:
        read_first = _attribute_read_first(flow, body, str(key))
    else:
        read_first = _element_read_first(flow, body, root)
    name = f"{container.path}.{key}" if container.attributes else f"{container.path}[{key!r}]"
    later = flow.reads(root, stop) or root in (*state.frame.f_code.co_cellvars, *state.frame.f_code.co_freevars)
    lines = {flow.steps[index].line for index in body if flow.steps[index].opname in ("STORE_SUBSCR", "STORE_ATTR")}
    if _lost(read_first, later, new, region):
        _refuse(name, "replaced", old, region, _loc(state, lines.pop() if len(lines) == 1 else 0, region))


def _lost(read_first: bool, later: bool, new: object, region: Region) -> bool:
    if region.kind in ("loop", "label") and read_first:
        return True
    # What lies between a label and the branch back to it is no region: values made there may be used after it.
    return region.kind != "label" and later and (read_first or not _made_inside(new, region))


def _read(register: ir.Register, region: Region) -> bool:
    """Whether an instruction of the region reads the register."""
    return any(
        register in statement.reads()
        for statement in region.trace.body[region.start :]
        if isinstance(statement, ir.Instruction)
    )


def _attribute_read_first(flow: Flow, body: list[int], name: str) -> bool:
    for index in body:
        step = flow.steps[index]
        if step.argument == name and step.opname.endswith("_ATTR"):
            return step.opname != "STORE_ATTR"
    return True


def _element_read_first(flow: Flow, body: list[int], root: str) -> bool:
    """Whether the first subscript of ``root`` in the body is a read; an augmented assignment is one."""
    for place, index in enumerate(body):
        loads = flow.steps[index].loads
        if root not in loads:
            continue
        depth = len(loads) - loads.index(root)
        for later in body[place + 1 :]:
            opname = flow.steps[later].opname
            if depth == 2 and opname.startswith(("BINARY_SUBSCR", "COPY", "DUP_TOP_TWO", "BINARY_OP")):
                return True
            if depth == 2 and opname == "STORE_SUBSCR":
                return False
            depth += flow.steps[later].effect
            if depth < 1:
                break
    return True


def _loc(state: Snapshot, line: int, region: Region) -> Loc:
    return Loc(state.frame.f_code.co_filename, line) if line else region.loc


def _refuse(name: str, verb: str, old: object, region: Region, loc: Loc) -> NoReturn:
    where = f"the {region.kind} of line {region.loc.line}"
    if region.kind == "label":
        where = f"the loop that the label of line {region.loc.line} begins"
    if region.kind in ("loop", "label"):
        message = f"`{name}` is {verb} inside {where}; the trace runs its body once, so the update would be lost"
    else:
        message = f"`{name}` is {verb} inside {where}; the trace runs its body anyway, so the change would always hold"
    raise fatal(LostUpdateError(message, loc=loc, hint=_repair(name, old, region)))


def _repair(name: str, old: object, region: Region) -> str:
    before = "before the when" if region.kind == "otherwise" else f"before the {region.kind}"
    if isinstance(old, Reg):
        return f"`{name}` is a reg: change it in place with `{_change(name, old.type)}`"
    if isinstance(old, Value):
        return f"declare `{name} = reg({old.type}, {name})` {before}, then `{_change(name, old.type)}`"
    if isinstance(old, RegPointer):
        return f"`{name}` is a reg: change it in place with `{name} += ...`"
    if isinstance(old, RunTime):
        return f"declare `{name} = reg({name})` {before}, then `{name} += ...`"
    if isinstance(old, bool):
        return f"declare `{name} = reg(pred, {old})` {before}, then `{_change(name, pred)}`"
    if isinstance(old, (int, float)):
        kind = f32 if isinstance(old, float) else s32 if old < 0 else u32
        return f"declare `{name} = reg({kind}, {old!r})` {before}, then `{_change(name, kind)}`"
    return f"keep what changes in a `reg` that is declared {before}"


def _change(name: str, kind: ScalarType) -> str:
    return f"{name}.set(...)" if kind is pred else f"{name} += ...` or `{name}.set(...)"
