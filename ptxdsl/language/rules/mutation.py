"""Rules R2 and R3: what a kernel's Python variables may not do, because its regions are traced only once.

A ``with loop():`` runs its body once while the PTX that it leaves behind runs it many times; a ``with when(p):`` runs
its body although p may be false. So a variable that the body rebinds means one thing to Python and another to the
kernel, and nothing in the trace can show it: the new value is a perfectly good one. What shows it are the frames. Each
region looks at the variables of every frame from its `with` up to the kernel when it opens and when it closes, and
at what lists, tuples, dicts and objects among them hold. A difference is a lost update

- in a loop, if the body reads the old one before it rebinds it (the next iteration would read the new one), and
- in any region, if the new one was not computed inside (else rule R1 guards it) and is read afterwards.

All else is a name used again for something new, which is fine. ``flow`` answers "is read" from the bytecode.

An in-place change of a ``reg`` that goes by two names is the same mistake the other way round (``old = m; m.set(x)``):
Python names an object, the author meant a value. Parameters, loop variables and elements of one container are the
usual ways to hand a register on and are no second name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import compress
from types import FrameType
from typing import Any, NamedTuple

from ... import ir
from ...errors import AliasError, Loc, LostUpdateError
from ...types import ScalarType, f32, pred, s32, u32
from ..builder import Region, Trace, current, noted, thread, user_frame
from .bytecode import Flow, flow_of
from ..pointers import RegPointer
from .python_protocol import RunTime
from ..values import Reg, Value
from .snapshots import (
    INERT, Container, Snapshot, changes, elements, frames, holds, may_hold, places, rebound, same, variables,
)

__all__ = ["check_alias", "compare"]


def compare(before: list[Snapshot], region: Region) -> None:
    """A LostUpdateError where a region that closes leaves a variable changed that it must not change."""
    for state in before:
        for name, old, new in rebound(state):
            if not name.startswith("."):
                _judge_name(state, name, old, new, region)
        for container in state.containers:
            for key, old, new in changes(container):
                _judge_element(state, container, key, old, new, region)


# ---------------------------------------------------------------------------------------------------------------------
# R2: is the change an update that gets lost?


def _made_inside(value: object, region: Region) -> bool:
    for item in elements(value):
        # A pointer lives where its base was computed.
        home = getattr(getattr(item, "base", item), "region", None) if isinstance(item, RunTime) else None
        while home is not None:
            if home is region:
                return True
            home = home.parent
    return False


def _judge_name(state: Snapshot, name: str, old: object, new: object, region: Region) -> None:
    if same(old, new) or (isinstance(old, INERT) and isinstance(new, INERT)):
        return
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    writers = flow.writers(name, start, stop)
    # Nobody in this function wrote it: an inner function did, through its closure.
    read_first = not writers or flow.reads(name, start, stop)
    line = flow.steps[writers[-1]].line if writers else 0
    if _lost(read_first, flow.reads(name, stop), new, region):
        _refuse(name, "rebound", old, region, _loc(state, line, region))


def _judge_element(
    state: Snapshot, container: Container, key: object, old: object, new: object, region: Region
) -> None:
    if same(old, new) or (isinstance(old, INERT) and isinstance(new, INERT)):
        return
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


def _refuse(name: str, verb: str, old: object, region: Region, loc: Loc) -> None:
    where = f"the {region.kind} of line {region.loc.line}"
    if region.kind == "label":
        where = f"the loop that the label of line {region.loc.line} begins"
    if region.kind in ("loop", "label"):
        message = f"`{name}` is {verb} inside {where}; the trace runs its body once, so the update would be lost"
    else:
        message = f"`{name}` is {verb} inside {where}; the trace runs its body anyway, so the change would always hold"
    raise noted(LostUpdateError(message, loc=loc, hint=_repair(name, old, region)))


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


# ---------------------------------------------------------------------------------------------------------------------
# R3: does the register go by another name?


def check_alias(reg: Reg, depth: int = 2) -> None:
    """An AliasError if a frame still uses ``reg`` by another name than the one through which it is changed now.

    Looking takes longer than the instruction does. So the number of references to the register is noted where all was
    well, less those of names no longer used: at the same place no more of them means no other name. The first
    ``depth`` frames, this one among them, are known to be ours.
    """
    trace = thread.trace or current()
    frame, references = sys._getframe(depth), sys.getrefcount(reg)
    if trace.unaliased.get((id(frame.f_code), frame.f_lasti), 0) >= references:
        return
    frame = user_frame(depth + 1, trace.code)
    place = id(frame.f_code), frame.f_lasti
    if trace.unaliased.get(place, 0) >= references:
        return
    unused = 0
    for each in frames(trace, frame):
        held = variables(each, copied=False)
        names: list[str] = []
        holders: list[_Holder] = []
        for name, value in compress(held.items(), map(_watched, map(type, held.values()))):
            if value is reg:
                names.append(name)
            elif may_hold(value, reg):
                _hold(reg, name, value, holders)
        if len(names) + len(holders) > 1:
            unused += _check_frame(each, names, holders, trace)
    trace.unaliased[place] = references - unused


class _Watched(dict[type, bool]):
    """Whether a value of a type may be a register or hold one."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = issubclass(kind, (Reg, RegPointer)) or bool(holds(kind))
        return found


_watched = _Watched().__getitem__


class _Holder(NamedTuple):
    """An element that holds a register: its place, how it is written, and the variables it is reached from."""

    place: tuple[int, int]
    path: str
    roots: set[str]


def _hold(reg: Reg, name: str, value: Any, holders: list[_Holder]) -> None:
    """Note the elements in a variable that hold the register."""
    for place, path in places(reg, name, value):
        holder = next((holder for holder in holders if holder.place == place), None)
        if holder is None:
            holders.append(_Holder(place, path, {name}))
        else:
            holder.roots.add(name)


def _check_frame(frame: FrameType, names: list[str], holders: list[_Holder], trace: Trace) -> int:
    """Judge what holds the register in one frame; the number of holders that are never used again."""
    flow = flow_of(frame.f_code)
    at = flow.index(frame.f_lasti)
    starts = [at, *_loops_of(frame, flow, trace)]
    views, loaded = flow.targets, flow.loaded(at)
    changed = flow.changed(at)
    if changed not in names and changed not in views:
        changed = next((name for name in reversed(loaded) if name in names), None)

    def used(name: str) -> bool:
        return any(flow.reads(name, start) for start in starts)

    others = [name for name in names if name != changed and name not in views]
    alive = [name for name in others if used(name)]
    kept = [holder for holder in holders if any(map(used, holder.roots))]
    taken = next((holder for holder in holders if holder.roots & set(loaded)), None)
    # An element beside a name is where the name took the register from; so is one name beside a loop's variable.
    first = taken or (kept[0] if kept else None)
    second = [holder.path for holder in kept if holder is not first]
    # Without either, a function called from here changes what it took from its closure.
    one_may = changed in views or (taken is None and changed is None)
    if aliased := alive[one_may:] or second:
        other = aliased[0]
        shown = changed or next(name for name in (*(holder.path for holder in holders), *names) if name != other)
        hint = f"keep the old value apart: `{other} = {shown}.copy()`"
        if other not in names and "[" in other:
            root = other[: other.index("[")]
            hint = f"keep the values apart: `{root} = [r.copy() for r in ...]`, or a `reg` for each"
        raise noted(AliasError(
            f"`{shown}` and `{other}` hold the same reg, and this changes both",
            loc=Loc(frame.f_code.co_filename, frame.f_lineno), hint=hint,
        ))
    return len(others) - len(alive) + max(0, len(holders) - 1)


def _loops_of(frame: FrameType, flow: Flow, trace: Trace) -> Iterator[int]:
    """Where the bodies of the open loops begin in this frame: they come round again."""
    for region in trace.regions:
        for state in region.before:
            if state.frame is frame and region.kind == "loop":
                yield flow.index(state.at)
