"""Rule R3: a `reg` that is held twice is not changed in place.

``old = m; m.set(x)`` is the mistake: Python gave one object a second name, the author meant a copy of the value. So an
in-place change (``+=``, `set`, ``out=``) is refused where a frame between the change and the kernel still uses the
register by another name, or holds it in a container, a closure or an object that it uses later: ``before = (m, i)``.
The repair is ``.copy()``.

Parameters of helpers, loop variables and elements of one container are the usual ways to hand a register on, and are no
second name. Whether a name is used later is answered from the bytecode.

What it cannot see: a name that only ``exec`` or ``locals()`` uses, a global that the function reads and does not
assign, and what sets, C objects and containers more than five deep hold.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import compress
from types import FrameType
from typing import Any, NamedTuple

from ...errors import AliasError, Loc
from ..builder import Trace, current, fatal, thread
from ..introspection.bytecode import Flow, flow_of
from ..introspection.call_sites import user_frame
from ..memory.pointers import RegPointer
from ..values.value import Reg
from .snapshots import frames, holds, may_hold, places, variables

__all__ = ["check_alias"]


def check_alias(reg: Reg, depth: int = 2) -> None:
    """An AliasError if a frame still uses ``reg`` by another name than the one through which it is changed now.

    The search takes longer than the instruction. So the number of references to the register is kept where there was
    no error, less those of names no longer used: at the same place no more of them means no other name. The first
    ``depth`` frames, this one among them, are ptxdsl's.
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
        for name, value in compress(held.items(), map(_may_alias, map(type, held.values()))):
            if value is reg:
                names.append(name)
            elif may_hold(value, reg):
                _hold(reg, name, value, holders)
        if len(names) + len(holders) > 1:
            unused += _check_frame(each, names, holders, trace)
    trace.unaliased[place] = references - unused


class _MayAlias(dict[type, bool]):
    """Whether a value of a type may be a register or hold one."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = issubclass(kind, (Reg, RegPointer)) or bool(holds(kind))
        return found


_may_alias = _MayAlias().__getitem__


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
    """Check what holds the register in one frame; the number of holders that are never used again."""
    flow = flow_of(frame.f_code)
    at = flow.index(frame.f_lasti)
    starts = [at, *_loops_of(frame, flow, trace)]
    loop_variables, loaded = flow.loop_variables, flow.loaded(at)
    changed = flow.changed(at)
    if changed not in names and changed not in loop_variables:
        changed = next((name for name in reversed(loaded) if name in names), None)

    def used(name: str) -> bool:
        return any(flow.reads(name, start) for start in starts)

    others = [name for name in names if name != changed and name not in loop_variables]
    read_later = [name for name in others if used(name)]
    kept = [holder for holder in holders if any(map(used, holder.roots))]
    taken = next((holder for holder in holders if holder.roots & set(loaded)), None)
    # An element beside a name is where the name took the register from; so is one name beside a loop's variable.
    first = taken or (kept[0] if kept else None)
    second = [holder.path for holder in kept if holder is not first]
    # Without either, a function called from here changes what it took from its closure.
    one_may = changed in loop_variables or (taken is None and changed is None)
    if aliased := read_later[one_may:] or second:
        other = aliased[0]
        shown = changed or next(name for name in (*(holder.path for holder in holders), *names) if name != other)
        hint = f"keep the old value apart: `{other} = {shown}.copy()`"
        if other not in names and "[" in other:
            root = other[: other.index("[")]
            hint = f"keep the values apart: `{root} = [r.copy() for r in ...]`, or a `reg` for each"
        raise fatal(AliasError(
            f"`{shown}` and `{other}` hold the same reg, and this changes both",
            loc=Loc(frame.f_code.co_filename, frame.f_lineno), hint=hint,
        ))
    return len(others) - len(read_later) + max(0, len(holders) - 1)


def _loops_of(frame: FrameType, flow: Flow, trace: Trace) -> Iterator[int]:
    """Where the bodies of the open loops begin in this frame: they come round again."""
    for region in trace.regions:
        for state in region.before:
            if state.frame is frame and region.kind == "loop":
                yield flow.index(state.at)
