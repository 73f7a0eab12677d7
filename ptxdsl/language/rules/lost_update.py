"""Rule R2: Python state that a region changes is not read after the region or in its next iteration.

A ``with loop():`` runs its body once while the PTX that it leaves behind runs it many times; a ``with when(p):`` runs
its body although p may be false. So state that the body changes means one thing to Python and another to the kernel,
and nothing in the trace can show it. What shows it are the frames and the objects. When a region opens and when it
closes, the variables of every frame from its `with` up to the kernel are compared; and where the body's bytecode could
change an object at all (`harmless`), what every object holds that is reached from there (`contents`). A difference is a
lost update

- in a loop, if the body reads the old state before it rebuilds it (the next iteration would read the new one), and
- in any region, if what is new was not computed inside (else rule R1 refuses its use) and is read afterwards.

All else is a name or container used again for something new, a log that only the host reads, and is fine. A branch back
to a `label` makes a loop of what lies between, and is compared in the same way. Whether state is read is answered from
the bytecode of all code that may run (`state_reads`). The repair is a `reg`.

A table of constants that a function fills as it is asked, and returns from, passes; ``functools.cache`` too; so do a
counter that only counts (``self.calls += 1``, read by the host), and one of a function that returns text only: a name.
Some right programs cannot be told from wrong ones, and are refused: a table that is filled in another way (fill it
before the region), a name made of a counter in the body itself (make it before, or in a function).

What it cannot see: a name that a function makes of a counter, where it is used as data (``table[fresh()]``); what only
C code keeps, out of reach of Python's collector and of copies (the place of an ``itertools.cycle`` in its second round,
from Python 3.14 on, that of ``re.finditer``); files; the default generators of `random` and numpy; and the contents
of tensors on a device. A name that only ``exec`` or ``locals()`` uses is not in the bytecode, and counts as not read.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any, NoReturn

from ... import ir
from ...errors import Loc, LostUpdateError
from ...types import ScalarType, f32, pred, s32, u32
from ..builder import Region, fatal
from ..introspection.bytecode import flow_of
from ..introspection.effects import ANY_ATTRIBUTE, reads_attributes
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import GLOBAL, ITEM, NAME
from ..introspection.user_code import globals_of
from ..memory.pointers import RegPointer
from ..values.value import Reg, Value
from .contents import LENGTH, Change, Contents, written
from .python_protocol import RunTime
from .snapshots import Snapshot, bound, elements, is_data, reached, rebound, same, variables

__all__ = ["compare"]


def compare(before: list[Snapshot], region: Region) -> None:
    """A LostUpdateError where a region that closes leaves state changed that it must not change."""
    for state in before:
        now = variables(state.frame)
        for name, old, new in rebound(state, now):
            if not name.startswith((".", "@")) and not same(old, new):
                _check_name(before, state, name, old, new, region)
        for name, new in bound(state, now):
            if region.kind != "label" and not name.startswith((".", "@")) and is_data(new):
                _check_bound(state, name, region)
    if before and before[0].contents is not None:
        _compare_contents(before, before[0].contents, region)


def _compare_contents(states: list[Snapshot], contents: Contents, region: Region) -> None:
    for number, name, old in contents.read:
        new = states[number].frame.f_globals.get(name)
        if not same(old, new):
            _check_name(states, states[number], name, old, new, region)
    untouched: dict[int, bool] = {}
    for change in contents.changes():
        if change.old is not None and change.new is not None and same(change.old, change.new):
            continue
        if change.form == ITEM and change.verb == "is replaced":
            # Most elements of a container that is filled again are alike: is any of them read?
            at = id(change.node.value)
            if at not in untouched:
                untouched[at] = _uses(states, contents, change._replace(key=_ANY)) == (False, False)
            if untouched[at]:
                continue
        _check_change(states, contents, change, region)


_ANY = object()
"""A key that may be every other."""


def _made_inside(value: object, region: Region) -> bool:
    for item in elements(value):
        # The region of a pointer is that of its base.
        found = getattr(getattr(item, "base", item), "region", None) if isinstance(item, RunTime) else None
        while found is not None:
            if found is region:
                return True
            found = found.parent
    return False


def _check_name(
    states: list[Snapshot], state: Snapshot, name: str, old: object, new: object, region: Region
) -> None:
    code = state.frame.f_code
    flow = flow_of(code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    writers = flow.writers(name, start, stop)
    shared = name in code.co_cellvars or name in code.co_freevars or name in globals_of(code)
    read_first = not (writers or shared) or flow.reads(name, start, stop)
    later = flow.reads(name, stop)
    if shared and not (read_first and later):
        read_first, later = _read_by_functions(states, state, name, new, read_first, later)
    line = flow.steps[writers[-1]].line if writers else 0
    if _lost(read_first, later, new, region):
        from .changed_lines import found_line

        loc = Loc(code.co_filename, line) if line else found_line(states, region, name=name)
        _refuse(name, "is rebound", old, region, loc)


def _check_bound(state: Snapshot, name: str, region: Region) -> None:
    """A name that a region binds first means nothing where the region does not run."""
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    writers = flow.writers(name, start, stop)
    if writers and flow.reads(name, stop):
        _refuse(name, "is bound", None, region, Loc(state.frame.f_code.co_filename, flow.steps[writers[-1]].line))


def _read_by_functions(
    states: list[Snapshot], state: Snapshot, name: str, new: object, read_first: bool, later: bool
) -> tuple[bool, bool]:
    """The same of a variable that functions capture or load: they read it where they are called."""
    updated = False
    contents = states[0].contents or reached(states)
    scope = state.frame.f_globals if name in globals_of(state.frame.f_code) else None
    for node, _ in contents.nodes:
        function = node.value
        if not isinstance(function, FunctionType):
            continue
        form = NAME if name in function.__code__.co_freevars else GLOBAL
        if form == GLOBAL and (function.__globals__ is not scope or name not in globals_of(function.__code__)):
            continue
        if form == NAME and function.__closure__ is not None:
            held = function.__closure__[function.__code__.co_freevars.index(name)]
            if not _holds(held, locals_of(state.frame).get(name)):
                continue
        change = Change(node, form, name, "is rebound", None, None)
        first, after, in_place = _asked(states, contents, change)
        read_first, later, updated = read_first or first, later or after, updated or in_place
    return read_first or (updated and (later or not is_data(new))), later


def _holds(cell: Any, value: object) -> bool:
    try:
        return cell.cell_contents is value
    except ValueError:
        return False


def _check_change(states: list[Snapshot], contents: Contents, change: Change, region: Region) -> None:
    read_first, later = _uses(states, contents, change)
    if isinstance(change.old, Value):
        read_first = read_first and _read(change.old.register, region)
    resized = change.verb in ("grows", "shrinks", "is reordered")
    if later and resized and _made_inside(change.new, region):
        # Rule R1 refuses the use of what was made inside; not to ask how many there are.
        later = _uses(states, contents, change._replace(form=LENGTH))[1]
        lost = later or _lost(read_first, False, change.new, region)
    else:
        lost = _lost(read_first, later, change.new, region)
    if lost:
        from .changed_lines import found_line

        whole = resized and (change.form != ITEM or not isinstance(change.node.value, dict))
        name = change.node.path() if whole else written(change.node, change.form, change.key)
        loc = found_line(states, region, change=change, leads=contents.leads(change))
        _refuse(name, change.verb, change.old, region, loc)


def _uses(states: list[Snapshot], contents: Contents, change: Change) -> tuple[bool, bool]:
    """Whether the region reads a place before it rebuilds it, and whether what follows the region does."""
    first, later, updated = _asked(states, contents, change)
    return first or (updated and (later or not is_data(change.new))), later


def _asked(states: list[Snapshot], contents: Contents, change: Change) -> tuple[bool, bool, bool]:
    """The same, and whether the region updates the place in place, which reads it for that alone."""
    from ..introspection.memo_tables import keeps_results, makes_names
    from .state_reads import Reads

    leads = contents.leads(change)
    filled = change.verb == "grows" and isinstance(change.node.value, dict) and is_data(change.new)
    passes = (lambda code: keeps_results(code) or makes_names(code)) if filled else makes_names
    reads = partial(Reads, leads, partial(_is_named, states, contents), passes)
    first = later = updated = False
    for at, roots in contents.roots.items():
        if at not in leads:
            continue
        for number, name in roots:
            frame = states[number].frame
            flow = flow_of(frame.f_code)
            start, stop = flow.index(states[number].at), flow.index(frame.f_lasti)
            scope = {**frame.f_globals, **locals_of(frame), **states[number].names}
            if not first and flow.body(start, stop):
                body = reads()
                first = body.between(frame.f_code, name, at, scope, start, stop)
                updated = updated or body.updated
            later = later or reads().between(frame.f_code, name, at, scope, stop)
    return first, later, updated


def _is_named(states: list[Snapshot], contents: Contents, attribute: str) -> bool:
    """Whether any code reads an attribute of this name, or those of any name."""
    codes = [state.frame.f_code for state in states] + [function.__code__ for function in contents.functions()]
    return any(not reads_attributes(code).isdisjoint((attribute, *ANY_ATTRIBUTE)) for code in codes)


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


def _refuse(name: str, verb: str, old: object, region: Region, loc: Loc) -> NoReturn:
    where = f"the {region.kind} of line {region.loc.line}"
    if region.kind == "label":
        where = f"the loop that the label of line {region.loc.line} begins"
    if region.kind in ("loop", "label"):
        message = f"`{name}` {verb} inside {where}; the trace runs its body once, so the update would be lost"
    else:
        message = f"`{name}` {verb} inside {where}; the trace runs its body anyway, so the change would always hold"
    raise fatal(LostUpdateError(message, loc=loc, hint=_repair(name, verb, old, region)))


def _repair(name: str, verb: str, old: object, region: Region) -> str:
    before = "before the when" if region.kind == "otherwise" else f"before the {region.kind}"
    if verb not in ("is rebound", "is replaced"):
        action = "bind" if verb == "is bound" else "advance" if verb == "advances" else "change"
        return f"{action} `{name}` {before}, or make it inside; what changes while the kernel runs is a `reg`"
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
