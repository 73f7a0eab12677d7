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

import dataclasses
import sys
from collections import deque
from collections.abc import Iterator
from operator import is_not
from types import (
    BuiltinFunctionType, CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType,
)
from typing import Any, NamedTuple

from .. import ir
from ..errors import AliasError, Loc, LostUpdateError
from ..types import ScalarType, f32, pred, s32, u32
from .builder import Region, Trace, current, is_user_file, user_frame
from .flow import Flow, flow_of
from .truth import RunTime
from .values import Reg, Value

__all__ = ["Snapshot", "check_alias", "compare", "snapshot"]

_INERT = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, GeneratorType, CodeType, FrameType)
_NUMBERS = (int, float, complex, str, bytes, type(None))
_LIBRARY = ("ptxdsl.block", "ptxdsl.kernels", "ptxdsl.math", "ptxdsl.mbarrier", "ptxdsl.mma", "ptxdsl.tma", "ptxdsl.warp")
_DEPTH = 5


class _Container(NamedTuple):
    """A container found in a variable, what it held, and how an element of it is written."""

    path: str
    held: Any
    before: Any
    attributes: bool


class Snapshot(NamedTuple):
    """A frame as a region found it when it opened."""

    frame: FrameType
    at: int
    names: dict[str, object]
    containers: list[_Container]


def frames(trace: Trace, frame: FrameType | None) -> Iterator[FrameType]:
    """The user's frames from ``frame`` up to the kernel's."""
    while frame is not None:
        code = frame.f_code
        if code is trace.code:
            yield frame
            return
        if is_user_file(code.co_filename):
            yield frame
        frame = frame.f_back


def snapshot(trace: Trace, frame: FrameType) -> list[Snapshot]:
    """What the variables of all frames up to the kernel hold now."""
    found = []
    for each in frames(trace, frame):
        names = dict(each.f_locals)
        containers: list[_Container] = []
        seen: set[int] = set()
        for name, value in names.items():
            if _KINDS[type(value)]:
                _collect(name, value, containers, seen, _DEPTH)
        found.append(Snapshot(each, each.f_lasti, names, containers))
    return found


def compare(before: list[Snapshot], region: Region) -> None:
    """A LostUpdateError where a region that closes leaves a variable changed that it must not change."""
    for state in before:
        now = state.frame.f_locals
        for name, old in state.names.items():
            new = now.get(name, old)
            if new is not old and not name.startswith("."):
                _judge_name(state, name, old, new, region)
        for container in state.containers:
            for key, old, new in _changes(container):
                _judge_element(state, container, key, old, new, region)


# ---------------------------------------------------------------------------------------------------------------------
# What containers hold

_LIST, _TUPLE, _DICT, _OBJECT = 1, 2, 3, 4


class _Kinds(dict[type, int]):
    """How the elements of a type are found; 0 for what has none."""

    def __missing__(self, kind: type) -> int:
        found = self[kind] = _kind(kind)
        return found


def _kind(kind: type) -> int:
    if issubclass(kind, (list, deque)):
        return _LIST
    if issubclass(kind, tuple):
        return _TUPLE
    if issubclass(kind, dict):
        return _DICT
    module = kind.__module__ or ""
    ours = module.startswith("ptxdsl") and not module.startswith(_LIBRARY)
    if ours or issubclass(kind, (*_INERT, RunTime, ScalarType)) or module in ("builtins", "numpy"):
        return 0
    return _OBJECT if kind.__dictoffset__ or _slots(kind) else 0


_KINDS = _Kinds()


def _slots(kind: type) -> list[str]:
    """The names of the slots of a class and its bases."""
    names: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        names += [own] if isinstance(own, str) else own
    return [name for name in names if not name.startswith("__")]


def _attributes(value: object) -> dict[str, object]:
    found = dict(getattr(value, "__dict__", ()))
    for name in _slots(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def _collect(path: str, value: Any, found: list[_Container], seen: set[int], depth: int) -> None:
    """Note every container reached from ``value``, and what it holds."""
    kind = _KINDS[type(value)]
    if not kind or not depth or id(value) in seen:
        return
    seen.add(id(value))
    items: Any
    if kind == _OBJECT:
        items = _attributes(value)
        found.append(_Container(path, value, items, True))
        pairs = [(f"{path}.{key}", item) for key, item in items.items() if _KINDS[type(item)]]
    elif kind == _DICT:
        items = dict(value)
        found.append(_Container(path, value, items, False))
        pairs = [(f"{path}[{key!r}]", item) for key, item in items.items() if _KINDS[type(item)]]
    else:
        if kind == _LIST:
            found.append(_Container(path, value, list(value), False))
        pairs = [(f"{path}[{i}]", item) for i, item in enumerate(value) if _KINDS[type(item)]]
    for inner, item in pairs:
        _collect(inner, item, found, seen, depth - 1)


def _changes(container: _Container) -> Iterator[tuple[object, object, object]]:
    """The elements that were there before and are others now: key, old, new."""
    held, before = container.held, container.before
    if isinstance(before, list):
        if any(map(is_not, before, held)):
            for key, (old, new) in enumerate(zip(before, held)):
                if old is not new:
                    yield key, old, new
        return
    now = _attributes(held) if container.attributes else held
    for key, old in before.items():
        new = now.get(key, old)
        if new is not old:
            yield key, old, new


def _elements(value: object, depth: int = _DEPTH) -> Iterator[object]:
    """The value itself, and what it holds."""
    yield value
    kind = _KINDS[type(value)]
    if kind and depth:
        items: Any = _attributes(value).values() if kind == _OBJECT else value
        for item in value.values() if isinstance(value, dict) else items:
            yield from _elements(item, depth - 1)


def _same(old: object, new: object) -> bool:
    """Whether both mean the same to the kernel: one register, equal numbers, sequences of such."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, _NUMBERS):
        return old == new and repr(old) == repr(new)
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(_same, old, new))
    return False


# ---------------------------------------------------------------------------------------------------------------------
# R2: is the change an update that gets lost?


def _made_inside(value: object, region: Region) -> bool:
    for item in _elements(value):
        home: Region | None = getattr(item, "region", None) if isinstance(item, RunTime) else None
        while home is not None:
            if home is region:
                return True
            home = home.parent
    return False


def _judge_name(state: Snapshot, name: str, old: object, new: object, region: Region) -> None:
    if _same(old, new) or (isinstance(old, _INERT) and isinstance(new, _INERT)):
        return
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    body = _body(flow, start, stop)
    writers = [index for index in body if name in flow.steps[index].stores]
    # Nobody in this function wrote it: an inner function did, through its closure.
    read_first = not writers or flow.reads(name, start, stop)
    line = flow.steps[writers[-1]].line if writers else 0
    if _lost(read_first, flow.reads(name, stop), new, region):
        _refuse(name, "rebound", old, region, _loc(state, line, region))


def _judge_element(
    state: Snapshot, container: _Container, key: object, old: object, new: object, region: Region
) -> None:
    if _same(old, new) or (isinstance(old, _INERT) and isinstance(new, _INERT)):
        return
    flow = flow_of(state.frame.f_code)
    start, stop = flow.index(state.at), flow.index(state.frame.f_lasti)
    root = container.path.split(".")[0].split("[")[0]
    body = _body(flow, start, stop)
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


def _body(flow: Flow, start: int, stop: int) -> list[int]:
    """The instructions of the region that lie in this function; none if it opened and closed in a call."""
    return flow.between(start, stop) if start != stop or flow.steps[start].opname == "FOR_ITER" else []


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
        message = f"`{name}` is {verb} inside {where}; the trace runs its body in any case, so the change would always hold"
    raise LostUpdateError(message, loc=loc, hint=_repair(name, old, region))


def _repair(name: str, old: object, region: Region) -> str:
    before = "before the when" if region.kind == "otherwise" else f"before the {region.kind}"
    if isinstance(old, Reg):
        return f"`{name}` is a reg: change it in place with `{_change(name, old.type)}`"
    if isinstance(old, Value):
        return f"declare `{name} = reg({old.type}, {name})` {before}, then `{_change(name, old.type)}`"
    if isinstance(old, RunTime):
        return f"declare `{name} = reg({name})` {before}, then `{name} += ...`"
    if isinstance(old, bool):
        return f"declare `{name} = reg(pred, {old})` {before}, then `{_change(name, pred)}`"
    if isinstance(old, (int, float)):
        type = f32 if isinstance(old, float) else s32 if old < 0 else u32
        return f"declare `{name} = reg({type}, {old!r})` {before}, then `{_change(name, type)}`"
    return f"keep what changes in a `reg` that is declared {before}"


def _change(name: str, type: ScalarType) -> str:
    return f"{name}.set(...)" if type is pred else f"{name} += ...` or `{name}.set(...)"


# ---------------------------------------------------------------------------------------------------------------------
# R3: does the register go by another name?


def check_alias(reg: Reg) -> None:
    """An AliasError if a frame still uses ``reg`` by another name than the one through which it is changed now.

    Looking takes longer than the instruction does. So the number of references to the register is noted where all was
    well, less those of names no longer used: at the same place no more of them means no other name.
    """
    trace = current()
    frame = user_frame(3, trace.code)
    place, references = (id(frame.f_code), frame.f_lasti), sys.getrefcount(reg)
    if trace.unaliased.get(place, 0) >= references:
        return
    unused = 0
    for each in frames(trace, frame):
        variables = each.f_locals
        names = [name for name, value in variables.items() if value is reg]
        holders = _holders(reg, variables)
        if len(names) + len(holders) > 1:
            unused += _check_frame(reg, each, names, holders, trace)
    trace.unaliased[place] = references - unused


def _holders(reg: Reg, variables: Any) -> dict[int, set[str]]:
    """The containers that hold the register, by identity, and the variables from which each is reached."""
    found: dict[int, set[str]] = {}
    for name, value in variables.items():
        if _KINDS[type(value)]:
            for container in _elements(value):
                if _KINDS[type(container)] and any(item is reg for item in _direct(container)):
                    found.setdefault(id(container), set()).add(name)
    return found


def _direct(container: Any) -> Iterator[object]:
    if _KINDS[type(container)] == _OBJECT:
        return iter(_attributes(container).values())
    return iter(container.values() if isinstance(container, dict) else container)


def _check_frame(reg: Reg, frame: FrameType, names: list[str], holders: dict[int, set[str]], trace: Trace) -> int:
    """Judge what holds the register in one frame; the number of holders that are never used again."""
    flow = flow_of(frame.f_code)
    at = flow.index(frame.f_lasti)
    starts = [at, *_loops_of(frame, flow, trace)]
    views, loaded = flow.targets, flow.loaded(at)
    changed = flow.changed(at) or next((name for name in reversed(loaded) if name in names), None)
    others = [name for name in names if name != changed and name not in views]
    alive = [name for name in others if any(flow.reads(name, start) for start in starts)]
    kept = [roots for roots in holders.values() if any(flow.reads(root, start) for root in roots for start in starts)]
    if changed in views:
        # One name is where the iteration took it from.
        aliased = alive[1:] or _second(kept)
    elif changed in names:
        aliased = alive or _second(kept)
    elif any(root in loaded for roots in holders.values() for root in roots):
        aliased = alive or [min(roots) for roots in kept if not any(root in loaded for root in roots)]
    else:
        # Changed in a function called from here, which took it from its closure.
        aliased = alive[1:]
    if aliased:
        other = aliased[0]
        shown = changed or next((name for name in names if name != other), None) or reg.register.name
        raise AliasError(
            f"`{shown}` and `{other}` hold the same reg, and this changes both",
            loc=Loc(frame.f_code.co_filename, frame.f_lineno), hint=_apart(shown, other, other in names),
        )
    return len(others) - len(alive) + max(0, len(holders) - 1)


def _second(kept: list[set[str]]) -> list[str]:
    """A name of the second container, if there is one."""
    return [min(roots) for roots in kept[1:]]


def _apart(shown: str, other: str, plain: bool) -> str:
    if plain:
        return f"keep the old value apart: `{other} = {shown}.copy()`"
    return f"keep the old values apart: `{other} = [r.copy() for r in ...]`"


def _loops_of(frame: FrameType, flow: Flow, trace: Trace) -> Iterator[int]:
    """Where the bodies of the open loops begin in this frame: they come round again."""
    for region in trace.regions:
        for state in region.before:
            if state.frame is frame and region.kind == "loop":
                yield flow.index(state.at)
