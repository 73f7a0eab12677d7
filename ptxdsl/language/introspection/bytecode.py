"""What a Python function's bytecode does with its names.

Rules R2 and R3 need to know of the running function whether a name is read again before it is rebound, and through
which name a register was changed. The bytecode answers this even where there is no source (doctests, `exec`). Only the
*names* of opcodes are relied upon (LOAD, STORE, JUMP, RETURN), which has been stable from Python 3.10 on,
superinstructions included.
"""

from __future__ import annotations

import dis
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property
from types import CodeType
from typing import NamedTuple

from .code_objects import PerCode

__all__ = ["Flow", "flow_of"]

_VARIABLE = r"(?:LOAD|STORE|DELETE)_(?:FAST|DEREF|NAME|GLOBAL|CLOSURE|CLASSDEREF|FROM_DICT)"
_ALWAYS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "JUMP_NO_INTERRUPT")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_FILLING = frozenset(("append", "appendleft", "extend", "insert", "add", "update", "setdefault"))
_SUBSCRIPT = 26
"""The argument of BINARY_OP that means ``[]``, since Python 3.14."""
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class Step(NamedTuple):
    """One instruction: its line, its effect on the stack's depth, the names it reads and writes, what may run next."""

    opname: str
    argument: object
    line: int
    effect: int
    loads: tuple[str, ...]
    stores: tuple[str, ...]
    next: tuple[int, ...]


class Flow:
    """The control flow of a code object, to the handlers of its `try` statements too.

    The handler of a `with` is left aside: blocks let every exception pass.
    """

    def __init__(self, code: CodeType) -> None:
        self.raw = raw = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        self.offsets = [i.offset for i in raw]
        self.steps: list[Step] = []
        self.handlers: dict[int, int] = {}
        self._read: dict[tuple[str, int, int | None], bool] = {}
        self._loaded: dict[int, list[str]] = {}
        self._steps_from: dict[tuple[str, int], set[tuple[str, object]]] = {}
        self._bodies: dict[tuple[int, int], list[int]] = {}
        self._writers: dict[tuple[str, int, int], list[int]] = {}
        self._sources: dict[tuple[str, bool], frozenset[str]] = {}
        self._changed: dict[int, str | None] = {}
        lines = _lines(code)
        for index, i in enumerate(raw):
            following: list[int] = []
            if i.opname not in _ENDS and i.opname not in _ALWAYS and index + 1 < len(raw):
                following.append(index + 1)
            if i.opcode in _JUMPS and not i.opname.startswith("SETUP"):
                following.append(self.index(i.argval))
            loads, stores = _names(i)
            if i.opname == "SETUP_WITH":
                self.handlers[index] = self.index(i.argval)
            line = lines.get(i.offset, 0)
            name = i.opname.replace("_BORROW", "")  # the compiler lends where a reference outlives its use
            self.steps.append(Step(name, i.argval, line, _effect(i), loads, stores, tuple(following)))
        entries = getattr(dis.Bytecode(code), "exception_entries", ())
        for entry in entries:
            self.handlers.setdefault(self.index(entry.start) - 1, self.index(entry.target))
        self.protected = [(self.index(e.start), self.index(e.end), self.index(e.target)) for e in entries]
        """The instructions from one to another whose exceptions go to a third."""
        for index, i in enumerate(raw):
            if i.opname in ("SETUP_FINALLY", "SETUP_WITH"):
                self.protected.append((index + 1, self.index(i.argval), self.index(i.argval)))
        self.following = [step.next for step in self.steps]
        """What may run after each instruction, the handler of an exception too."""
        for start, stop, handler in self.protected:
            if raw[handler + (raw[handler].opname == "PUSH_EXC_INFO")].opname != "WITH_EXCEPT_START":
                for index in range(start, stop):
                    self.following[index] = (*self.following[index], handler)

    def index(self, offset: int) -> int:
        """The instruction at a byte offset; ``f_lasti`` may point into the caches that follow it."""
        return max(0, bisect_right(self.offsets, offset) - 1)

    def reads(self, name: str, start: int, stop: int | None = None) -> bool:
        """Whether ``name`` may be read after instruction ``start`` before it is written and before ``stop``."""
        key = name, start, stop
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = any(True for _ in self.loads_after(name, start, stop))
        return found

    def steps_from(self, name: str, start: int) -> set[tuple[str, object]]:
        """What is done with ``name`` where it may be read after ``start``: an attribute or a constant index is taken.

        Each is ("attribute", name), ("item", key) or, for all else, ("", None).
        """
        found = self._steps_from.get((name, start))
        if found is None:
            found = {self._step_from(index, name) for index in self.loads_after(name, start)}
            self._steps_from[name, start] = found
        return found

    def loads_after(
        self, name: str, start: int, stop: int | None = None, within: frozenset[int] | None = None
    ) -> Iterator[int]:
        """The instructions that may read ``name`` after ``start`` before it is written and before ``stop``.

        Only those ``within`` some instructions count, and nothing is followed out of them.
        """
        waiting, seen = list(self.following[start]), {stop}
        while waiting:
            index = waiting.pop()
            if index in seen or (within is not None and index not in within):
                continue
            seen.add(index)
            step = self.steps[index]
            # STORE_FAST_LOAD_FAST writes first; the other superinstructions do not mix.
            if name in step.loads and not (name in step.stores and step.opname.startswith("STORE")):
                yield index
            if name not in step.stores:
                waiting += self.following[index]

    def _step_from(self, index: int, name: str) -> tuple[str, object]:
        if self.steps[index].loads[-1] != name or index + 2 >= len(self.steps):
            return "", None
        step, later = self.steps[index + 1 : index + 3]
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            return "attribute", step.argument
        constant = step.argument.__class__ in (int, str) and step.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
        subscript = later.opname == "BINARY_SUBSCR" or (later.opname == "BINARY_OP" and later.argument == _SUBSCRIPT)
        return ("item", step.argument) if constant and subscript else ("", None)

    def sources(self, name: str, stored: bool = False) -> frozenset[str]:
        """The names that ``name`` is made from: what the statements load that assign it or fill it, and theirs.

        ``stored``: also what is assigned to its elements and attributes, in whatever order the statements stand.
        """
        known = self._sources.get((name, stored))
        if known is not None:
            return known
        found: set[str] = set()
        waiting = [name]
        while waiting:
            last = waiting.pop()
            new = self._assigned_from.get(last, set()) - found
            if stored:
                new |= self._stored_in.get(last, set()) - found
            found |= new
            waiting += new
        self._sources[name, stored] = frozenset(found)
        return self._sources[name, stored]

    @cached_property
    def _stored_in(self) -> dict[str, set[str]]:
        """By name, what is assigned to its elements and attributes."""
        found: dict[str, set[str]] = {}
        for index, step in enumerate(self.steps):
            if step.opname in ("STORE_SUBSCR", "STORE_ATTR"):
                container = self._stored_into(index)
                found.setdefault(container, set()).update(set(self.loaded(index)) - {container})
        return found

    @cached_property
    def _assigned_from(self) -> dict[str, set[str]]:
        """By name, what the statements load that assign it, loop over something with it, or add to it."""
        found: dict[str, set[str]] = {}
        for index, step in enumerate(self.steps):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and step.argument in _FILLING:
                loads = self._statement_from(index)
                if loads:
                    found.setdefault(loads[0], set()).update(loads[1:])
            for name in step.stores:
                at = index
                while at and self.steps[at - 1].opname.startswith(("STORE_", "UNPACK", "FOR_ITER", "GET_ITER", "EXT")):
                    at -= 1
                found.setdefault(name, set()).update(self.loaded(max(at - 1, 0)))
        return found

    def _stored_into(self, at: int) -> str:
        """The variable that a simple ``name[key] = ...`` or ``name.key = ...`` changes; "" for others."""
        last, before = self.steps[at - 1], self.steps[at - 2]
        if self.steps[at].opname == "STORE_ATTR":
            return last.loads[-1] if last.loads else ""
        if len(last.loads) == 2:  # container and key by one instruction
            return last.loads[0]
        return before.loads[-1] if before.loads else ""

    def _statement_from(self, at: int) -> list[str]:
        """The names loaded by the statement that ``at`` is in, to its end."""
        starts = self._starts
        end = bisect_right(starts, starts[at]) - 1
        return self.loaded(end)

    def body(self, start: int, stop: int) -> list[int]:
        """The instructions of a block that opened at ``start`` and closes at ``stop``; none if both are in one call."""
        if start == stop and self.steps[start].opname != "FOR_ITER":
            return []
        found = self._bodies.get((start, stop))
        if found is None:
            waiting, seen = list(self.following[start]), {stop}
            while waiting:
                index = waiting.pop()
                if index not in seen:
                    seen.add(index)
                    waiting += self.following[index]
            found = self._bodies[start, stop] = sorted(seen - {stop})
        return found

    def block(self, start: int) -> frozenset[int] | None:
        """The instructions of the `with` entered at ``start``, with what handles exceptions in it; None for others."""
        handler = self.handlers.get(start)
        if handler is None or not self.enters(self.offsets[start]):
            return None
        found: set[int] = set()
        targets, ranges = {handler}, list(self.protected)
        while True:
            more = [(first, last) for first, last, target in ranges if target in targets]
            ranges = [each for each in ranges if each[2] not in targets]
            for first, last in more:
                found.update(range(max(first, start + 1), last))
            targets = {target for _, _, target in ranges if target in found}
            if not targets:
                return frozenset(found)

    def enters(self, offset: int) -> bool:
        """Whether the instruction at an offset calls the ``__enter__`` of a `with`."""
        at = self.index(offset)
        return self.raw[at].opname in ("BEFORE_WITH", "SETUP_WITH") or "LOAD_SPECIAL" in (
            self.raw[at - 1].opname, self.raw[at - 2].opname
        )

    def writers(self, name: str, start: int, stop: int) -> list[int]:
        """Those of a block that write a name."""
        found = self._writers.get((name, start, stop))
        if found is None:
            found = [index for index in self.body(start, stop) if name in self.steps[index].stores]
            self._writers[name, start, stop] = found
        return found

    @cached_property
    def loop_variables(self) -> frozenset[str]:
        """The names that a `for` assigns."""
        found: set[str] = set()
        for index, step in enumerate(self.steps):
            if step.opname == "FOR_ITER":
                for later in self.steps[index + 1 :]:
                    if not later.stores and not later.opname.startswith(("UNPACK", "NOP")):
                        break
                    found.update(later.stores)
        return frozenset(found)

    def exits(self, start: int, stop: int) -> bool:
        """Whether control, having left at ``stop`` the `with` entered at ``start``, goes on where its end does.

        A `with` may swallow an exception, and then goes on after its end: that path is in its handler.
        """
        at = self.handlers.get(start)
        if at is None:
            return True
        names = [step.opname for step in self.steps]
        while names[at] != "WITH_EXCEPT_START":
            at += 1
        while not names[at].startswith("POP_JUMP"):
            at += 1
        return self._same(self.steps[at].next[-1], stop + 1)

    def closes(self, offset: int) -> bool:
        """Whether the call at an offset is that of a `with`'s ``__exit__``, which is given None three times."""
        at = self.index(offset)
        if self.steps[at].opname == "PRECALL":
            at += 1
        before = [step for step in self.steps[max(0, at - 4) : at] if step.opname != "PRECALL"][-3:]
        return len(before) == 3 and all(
            step.opname == "DUP_TOP" or (step.opname == "LOAD_CONST" and step.argument is None) for step in before
        )

    def _same(self, one: int, other: int) -> bool:
        """Whether two paths do the same; the compiler copies short ends of functions into each."""
        while True:
            one, other = self._settled(one), self._settled(other)
            first, second = self.steps[one], self.steps[other]
            if one == other:
                return True
            if (first.opname, first.argument) != (second.opname, second.argument) or len(first.next) > 1:
                return False
            if not first.next:
                return True
            one, other = first.next[0], second.next[0]

    def _settled(self, at: int) -> int:
        """The first instruction at or after ``at`` that is no jump and no clean-up."""
        while self.steps[at].opname.startswith(("POP_TOP", "POP_EXCEPT", "NOP", "NOT_TAKEN", "JUMP")):
            at = self.steps[at].next[0]
        return at

    def statement(self, at: int) -> range:
        """The instructions of the simple statement that ``at`` is in, from its first to ``at``."""
        return range(self._starts[at], at + 1)

    @cached_property
    def _starts(self) -> list[int]:
        """For each instruction the first of the simple statement that it is in."""
        found = [0]
        for index, step in enumerate(self.steps[:-1]):
            found.append(index + 1 if _ends_statement(step) else found[index])
        return found

    def changed(self, at: int) -> str | None:
        """The name through which the in-place operation at ``at`` changes a register, as far as that is known."""
        if at not in self._changed:
            self._changed[at] = self._changed_name(at)
        return self._changed[at]

    def _changed_name(self, at: int) -> str | None:
        step = self.steps[at]
        if step.opname.startswith("INPLACE") or step.opname == "BINARY_OP":
            later = self.steps[at + 1] if at + 1 < len(self.steps) else step
            return later.stores[0] if later.stores else None
        loads: list[str] = []
        for index in self.statement(at):
            here = self.steps[index]
            if here.argument == "set" and here.opname.startswith("LOAD_") and loads:
                return loads[-1]
            loads += here.loads
        return None

    def loaded(self, at: int) -> list[str]:
        """The names loaded by the statement that ``at`` is in, in order."""
        found = self._loaded.get(at)
        if found is None:
            found = self._loaded[at] = [name for index in self.statement(at) for name in self.steps[index].loads]
        return found


@cache
def _actions(opname: str) -> list[str]:
    """What an opcode does with each variable that it names."""
    if not re.match(_VARIABLE, opname) or opname == "LOAD_FAST_AND_CLEAR":
        return []
    return re.findall(r"(LOAD|STORE|DELETE)_", opname)


def _names(instruction: dis.Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that an instruction reads and writes."""
    actions = _actions(instruction.opname)
    if not actions:
        return (), ()
    value = instruction.argval
    names = value if isinstance(value, tuple) else (value,)
    loads = tuple(name for name, action in zip(names, actions) if action == "LOAD")
    stores = tuple(name for name, action in zip(names, actions) if action != "LOAD")
    return loads, stores


def _effect(instruction: dis.Instruction) -> int:
    has_argument = instruction.opcode >= dis.HAVE_ARGUMENT
    return dis.stack_effect(instruction.opcode, instruction.arg if has_argument else None, jump=False)


def _ends_statement(step: Step) -> bool:
    ends = ("STORE_", "POP_TOP", "POP_JUMP", "FOR_ITER", "JUMP", "RETURN", "NOP", "RESUME")
    return step.opname.startswith(ends) and "LOAD" not in step.opname


def _lines(code: CodeType) -> dict[int, int]:
    """The line of each instruction."""
    lines: dict[int, int] = {}
    for start, end, line in code.co_lines():
        if line is not None:
            for offset in range(start, end, 2):
                lines[offset] = line
    return lines


_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS", "MAKE_CELL", "CACHE"}


def is_empty(code: CodeType) -> bool:
    """Whether a function's body is ``...``, ``pass`` or its documentation alone."""
    return all(step.opname in _NOTHING and (step.opname[-5:] != "CONST" or step.argval is None)
               for step in dis.get_instructions(code))


@PerCode
def flow_of(code: CodeType) -> Flow:
    """The flow of a code object, computed once."""
    return Flow(code)
