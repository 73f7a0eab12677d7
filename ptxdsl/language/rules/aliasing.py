"""Rule R3: a `reg` that is held twice is not changed in place.

``old = m; m.set(x)`` is the mistake: Python gave one object a second name, the author meant a copy of the value. A
number would have stayed in `old`; a `reg` is changed with it. So an in-place change (``+=``, `set`, ``out=``) is
refused where a frame between the change and the kernel uses the register later through another place than the one it
is changed through: another name, an element of a container, an attribute, the closure of a function made elsewhere, an
argument that a partial, a default or a paused generator keeps, a pointer or a part made of it without an instruction.
A `loop` or `when` that is made of the register before the change must be entered before it too. The repair is
``.copy()``.

One place is handed on in the usual ways, which are no second place: to the parameters of helpers, to loop variables, to
a name that is taken from an element (``acc = state.acc``), to functions that capture the variable itself, and to what a
partial or a generator changes when it is called. Whether a place is used later is answered from the bytecode.

Operands that wait on the stack, and no variable holds, are another module's (`operands_on_stack`).

What it cannot see: a second holder where C code hands a register straight to one of ptxdsl's methods without a
reference of its own (``starmap`` over a kept tuple, the arguments of a partial), since the count may be one short
there; a name that only ``exec`` or ``locals()`` uses, what only C code holds, a use after a branch
back to a `label`, and which of the attributes of one object a method reads that is called after another one has changed
them in a loop over a list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from ...errors import AliasError, Loc
from ..builder import Region, Trace, current, fatal, thread
from ..introspection.bytecode import Flow, flow_of
from ..introspection.call_sites import internal, user_frame
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import ATTRIBUTE, ITEM, children, walk
from ..memory.pointers import Pointer, RegPointer
from ..values.parts import Part
from ..values.value import Reg
from .holders import Found, Holder, holders, place_of, variables
from .known_holders import Taken, is_alone, is_known, note
from .operands_on_stack import check_stack
from .snapshots import frames
from .snapshots import references as count_references

__all__ = ["check_alias", "searches", "temporaries", "way_of"]


def check_alias(reg: Any, depth: int = 2) -> None:
    """An AliasError if a frame still uses ``reg`` in another way than the one through which it is changed now.

    The search takes longer than the instruction. Each place that holds the register has a reference to it. So where
    there was no error, the number of references is kept that it has if only the variables hold it through which it
    came here: at the same place no more of them means no other holder. The first ``depth`` frames, this one among
    them, are ptxdsl's.
    """
    references = sys.getrefcount(reg)
    register, own = reg, -1
    trace = thread.trace or current()
    if reg.__class__ is Reg:
        way = way_of(sys._getframe(2), trace.code, register, trace.operands)
        own = temporaries.get(way, -1)
        most = own + 1
        held_once = references <= most or references - _counted(register, trace) <= most
        if held_once and not _LENDS and not trace.not_entered:
            return
    else:
        register = reg.base
        references += sys.getrefcount(register)
        way = way_of(sys._getframe(2), trace.code, register, ())
    if trace.not_entered:
        _check_blocks(register, trace)
    frame = sys._getframe(depth)
    in_kernel = frame.f_code is trace.code
    calls = (id(frame.f_code), frame.f_lasti) if in_kernel else _calls(frame, trace)
    path = way, calls
    at, plain = (path, id(register)), reg is register
    if trace.unaliased.get(at, 0) >= references:
        return
    others = references - _counted(register, trace)
    if plain and is_alone(register, others, path, trace):
        return
    stack = [frame] if in_kernel else list(frames(trace, user_frame(depth + 1, trace.code)))
    if plain and is_known(stack, register, others, path, trace):
        return
    if own >= 0 and others - own <= _handed_on(stack, register):
        check_stack(stack, register, more=False)
        trace.unaliased[at] = references
        return
    searches.count += 1
    count, certain, grouped = 0, 0, False
    taken: Taken | None = None
    places: set[tuple[int, str, int]] = set()
    """Those that hold it, each once: several frames may reach a list that a helper was handed."""
    found = holders(stack, register, trace)
    for number, (each, held) in enumerate(zip(stack, found), 1):
        if len(held.names) == 1 and not held.places:
            flow = flow_of(each.f_code)
            count += 1
            certain += next(iter(held.names)) in flow.loaded(flow.index(each.f_lasti))
        elif held.names or held.places:
            new = {holder.place for holder in held.places} - places
            places |= new
            count += len(held.names) + len(new)
            use = _Use(each, held, trace, grouped)
            certain += use.check()
            grouped = use.grouped
            taken = use.taken(len(stack) - number) or taken
    allowed = references - count + max(certain, 1)
    # The way through ptxdsl may be another one than last time: what it does with a number it does once in a process.
    before, line = trace.unaliased.get(at), (calls, id(register))
    check_stack(stack, register, more=line in trace.searched_lines if before is None else before < allowed)
    trace.unaliased[at] = allowed
    trace.searched_lines.add(line)
    if plain:
        note(register, others, path, trace, found, taken)


_LENDS = sys.version_info >= (3, 14)
"""Whether what a frame has on its stack, and a helper in its parameters, may be lent by a variable and not counted."""


class _Searches:
    """How many searches this process has made."""

    count = 0


searches = _Searches()
temporaries: dict[tuple[int, ...], int] = {}
"""By the way of a change through ptxdsl, how many references to the register it has itself (`reference_counts`)."""


def _counted(reg: Reg, trace: Trace) -> int:
    """How many references to a register the snapshots of rule R2 have."""
    count = 0
    region: Region | None = trace.region
    while region is not None:
        if region.before:
            if region.counted is None:
                region.counted = count_references(region.before)
            count += region.counted.get(id(reg), 0)
        region = region.parent
    return count


def _handed_on(stack: list[FrameType], reg: Reg) -> int:
    """How many variables hold a register that each frame hands on to the next, if no two are of one frame."""
    found = 0
    for frame in stack:
        code = frame.f_code
        names = [name for name, value in locals_of(frame).items() if value is reg]
        if names:
            flow = flow_of(code)
            # The cell of a captured variable is one holder for all functions that share it.
            own = names[0] in code.co_varnames and names[0] not in code.co_cellvars
            if len(names) > 1 or not own or names[0] not in flow.loaded(flow.index(frame.f_lasti)):
                return 0
            found += 1
    return min(found, 1) if _LENDS else found


def way_of(caller: FrameType, kernel: CodeType, reg: Reg, operands: tuple[Any, ...]) -> tuple[int, ...]:
    """The instructions that ptxdsl's frames are at, from ``caller`` up, and how often the register is an operand."""
    code = caller.f_code
    found: tuple[int, ...] = id(code), caller.f_lasti
    above = caller.f_back
    while above is not None and internal[above.f_code.co_filename] and above.f_code is not kernel:
        found += id(above.f_code), above.f_lasti
        above = above.f_back
    if operands:
        times = 0
        for operand in operands:
            times += operand is reg
        found += times, operand is reg
    return found


def _calls(frame: FrameType | None, trace: Trace) -> tuple[int, ...]:
    """The instructions that the frames up to the kernel's are at."""
    found: list[int] = []
    while frame is not None:
        found += (id(frame.f_code), frame.f_lasti)
        if frame.f_code is trace.code:
            break
        frame = frame.f_back
    return tuple(found)


def _check_blocks(reg: Reg, trace: Trace) -> None:
    """An AliasError for a block that was made of the register and is to be entered after this change."""
    for block in trace.not_entered.values():
        if any(getattr(block, name, None) is reg for name in ("p", "start", "stop", "step")):
            made = "when(p)" if block.kind == "when" else "loop(n)"
            raise fatal(AliasError(
                f"the `{block.kind}` of line {block.loc.line} was made of this reg and is not entered yet",
                loc=trace.location(3), hint=f"write `with {made}:` where it is entered, or give it a `.copy()`",
            ))


class _Use:
    """How one frame uses a register that is changed now."""

    def __init__(self, frame: FrameType, found: Found, trace: Trace, grouped: bool) -> None:
        self.frame, self.found, self.trace = frame, found, trace
        self.grouped = grouped
        """Whether a loop over a container changes it: what the container was made of changes with it."""
        self.values: dict[str, Any] | None = None
        self.first: Holder | None = None
        """The place that the variable was taken from through which it is changed."""

    def taken(self, frame: int) -> Taken | None:
        """The variable that it is changed through, if it was taken from the only place that holds it."""
        first, names, code = self.first, self.found.names, self.frame.f_code
        if first is None or len(names) != 1 or any(holder.place != first.place for holder in self.found.places):
            return None
        (name,) = names
        plain = name in code.co_varnames and name not in code.co_cellvars
        if not plain or self.flow.changed(self.at) not in (None, name):
            return None
        sources, passing = self.flow.sources(name), self.flow.loop_variables
        roots = [holder.root for holder in self.found.places if holder.root in sources]
        return Taken(frame, name, next((root for root in roots if root not in passing), roots[0]))

    def check(self) -> bool:
        """An AliasError where the frame uses it later in a second way; whether it is changed through a variable."""
        self.flow = flow = flow_of(self.frame.f_code)
        self.at = at = flow.index(self.frame.f_lasti)
        self.starts = [at, *_loops_of(self.frame, flow, self.trace)]
        changed, place = self._changed()
        self.grouped = self.grouped or changed in flow.loop_variables
        for other, path, holder in self._others(changed, place):
            shown = changed or (place.path if place else next(p for p in self._paths() if p != path))
            raise fatal(AliasError(
                f"`{shown}` and `{path}` hold the same reg, and this changes both",
                loc=Loc(self.frame.f_code.co_filename, self.frame.f_lineno),
                hint=_hint(shown, other, path, holder, self.found.names.get(other)),
            ))
        return changed is not None

    def _changed(self) -> tuple[str | None, Holder | None]:
        """Through what the frame changes it: a variable, or the element of one."""
        names, places, captured = self.found
        flow = self.flow
        loaded, changed = flow.loaded(self.at), flow.changed(self.at)
        if changed in names:
            return changed, None
        roots = [changed, *loaded] if changed else loaded
        place = next((holder for root in roots for holder in places if holder.root == root), None)
        name = next((name for name in reversed(loaded) if name in names), None)
        if name is not None and (changed is None or place is None):
            return name, None
        if place is None:
            # A function that is called now and captures the variable changes that.
            name = next((name for name, functions in captured.items() if functions & set(loaded)), None)
            if name in names:
                return name, None
        return None, place

    def _others(self, changed: str | None, place: Holder | None) -> Iterator[tuple[str, str, Holder | None]]:
        """What holds it besides and is used later: its variable, how it is written, and the holder if it is no name."""
        flow, names = self.flow, self.found.names
        through = place.held if place else names.get(changed or "")
        part = isinstance(through, Part)
        unknown = place is None and changed is None
        read = [
            name for name in names
            if name != changed and not (part and isinstance(names[name], Part)) and self._name_used(name)
        ]
        # What a loop variable, an argument, a part or an unknown way changes is what one of the names holds.
        called = place is not None and place.called
        handed = read[:1] if unknown or part or called else self._looped_over(changed, read)
        for name in read:
            if name not in handed:
                yield name, name, None
        kept: dict[object, Holder] = {}
        for holder in self.found.places:
            if holder.place not in kept and (place is None or holder.place != place.place) and self._used(holder):
                kept[holder.place] = holder
        first = None
        if place is None:
            # A name has been taken from where its value was.
            sources = flow.sources(changed) if changed is not None else frozenset()
            first = next((holder for holder in kept.values() if unknown or self._taken(holder, sources)), None)
            self.first = None if unknown else first
        group = place.root if place is not None and self.grouped else None
        for holder in kept.values():
            if holder is not first and holder.root != group and not (part and isinstance(holder.held, Part)):
                yield holder.root, holder.path, holder

    def _looped_over(self, changed: str | None, names: list[str]) -> list[str]:
        """The name that a loop variable was taken from, if it is one and was: its container was made of it."""
        if changed is None or changed not in self.flow.loop_variables:
            return []
        sources, captured = self.flow.sources(changed, stored=True), self.found.captured
        return [name for name in names if name in sources or not sources.isdisjoint(captured.get(name, ()))][:1]

    def _taken(self, holder: Holder, sources: frozenset[str]) -> bool:
        return any(other.root in sources for other in self.found.places if other.place == holder.place)

    def _name_used(self, name: str) -> bool:
        if any(self.flow.reads(name, start) for start in self.starts):
            return True
        functions = self.found.captured.get(name, ())
        return any(self.flow.reads(function, start) for function in functions for start in self.starts)

    def _used(self, holder: Holder) -> bool:
        """Whether the frame reads an element later, through any of the variables that reach it."""
        return any(
            self._leads_to(other.root, step, holder.place)
            for other in self.found.places if other.place == holder.place
            for start in self.starts for step in self.flow.steps_from(other.root, start)
        )

    def _leads_to(self, root: str, step: tuple[str, object], place: Any) -> bool:
        """Whether what the frame does with a variable may read a place: not if it takes another attribute or index."""
        form, key = step
        if not form:
            return True
        if self.values is None:
            self.values = variables(self.frame)
        wanted = ATTRIBUTE if form == "attribute" else ITEM
        value = self.values.get(root)
        parts = [part for part in children(value) if part.form == wanted]
        taken = [(part, index) for part in parts for index, name in enumerate(part.keys) if name == key]
        if not taken:
            return True  # a method, a property, or the object as a whole
        for part, index in taken:
            if place == place_of(value, part.form, part.keys[index]):
                return True
            if any(id(node.value) == place[0] for node in walk([("", part.held[index])], through_globals=True)):
                return True
        return False

    def _paths(self) -> Iterator[str]:
        yield from (holder.path for holder in self.found.places)
        yield from self.found.names


def _hint(shown: str, root: str, path: str, holder: Holder | None, named: Any) -> str:
    held = holder.held if holder else named
    if holder is not None and holder.called:
        return f"give `{root}` a copy, `{shown}.copy()`, or the variable itself: `lambda: ... {shown} ...`"
    if holder is not None and path.startswith(f"{root}["):
        return f"keep the values apart: `{root} = [r.copy() for r in ...]`, or a `reg` for each"
    if isinstance(held, Pointer) and not isinstance(held, RegPointer):
        return f"keep the old value apart: `{path} = {shown}.copy().cast({held.dtype})`"
    if isinstance(held, Part):
        return f'keep the old value apart: `{path} = {shown}.copy().part("{held.selector}")`'
    return f"keep the old value apart: `{path} = {shown}.copy()`"


def _loops_of(frame: FrameType, flow: Flow, trace: Trace) -> Iterator[int]:
    """Where the bodies of the open loops begin in this frame: they come round again."""
    for region in trace.regions:
        for state in region.before:
            if state.frame is frame and region.kind == "loop":
                yield flow.index(state.at)
