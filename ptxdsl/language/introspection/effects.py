"""What a function's bytecode does with objects: which it changes, calls and reads, each by the expression it is.

`Flow` knows names. Rule R2 must also know that `cfg.limits.append(v)` changes what `cfg.limits` is, at which line, and
that `cfg.scale` reads something else. So the stack of values is followed through the code, as expressions over names.
Where a value comes from two branches, or an opcode is unknown, it is an expression that nothing is known of.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from .bytecode import flow_of
from .code_objects import PerCode
from .user_code import globals_of

__all__ = [
    "ANY_ATTRIBUTE", "ATTRIBUTES", "NEW", "Effects", "Expression", "Site", "chain", "effects_of", "inner_codes",
    "may_store", "reads_attributes",
]


class Expression(NamedTuple):
    """A value on the stack: a name, attribute or call that the instruction ``at`` gives, an item of another, and so on.

    ``key`` is the name, the attribute's name, the constant, or the expression of an item's key; of "text", the values
    that an f-string writes.
    """

    kind: str
    key: Any = None
    of: Expression | None = None
    at: int = -1


UNKNOWN, NEW, NULL, SELF = (Expression(kind) for kind in ("unknown", "new", "null", "self"))


class Site(NamedTuple):
    """An instruction that may change an object, or run code: what it does, and to what.

    ``kind`` is "item" and "attribute" (stored or deleted; ``key`` is which), "in-place", "global" and "free" (stored;
    ``key`` is the name), "call" (of ``target``; ``used`` tells whether its result is), "iterate", "yield", "import".
    """

    at: int
    line: int
    kind: str
    target: Expression = UNKNOWN
    key: Any = None
    arguments: tuple[Expression, ...] = ()
    used: bool = True


class Effects:
    """The sites of a code object, and the expression that each load of a name ends up in."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.sites: list[Site] = []
        self.consumers: dict[int, list[Expression]] = {}
        """By the index of a load, the chains of attributes and items that begin with it."""
        self.assigned: dict[str, list[tuple[int, Expression]]] = {}
        self.made: list[tuple[int, CodeType]] = []
        self.returned: list[Expression] = []
        self.updates: set[int] = set()
        """The stores into names that end an operation in place."""
        self.pending: dict[int, tuple[Expression, ...]] = {}
        """By the index of what may run code, what lies on the stack below its operands meanwhile."""
        self.steps = flow_of(code).raw
        self.stack: list[Expression] = []
        self._line = 0
        self._next: dis.Instruction | None = None
        free = set(code.co_freevars)
        lines = flow_of(code).steps
        for index, step in enumerate(self.steps):
            if step.is_jump_target and step.opname != "FOR_ITER":
                self.stack = []
            self._line = lines[index].line
            self._next = self.steps[index + 1] if index + 1 < len(self.steps) else None
            self._step(index, step, free)
            if len(self.stack) > 1 and step.opname.startswith(_RUNNING):
                self.pending[index] = tuple(self.stack[:-1])

    def pop(self, count: int = 1) -> list[Expression]:
        """The uppermost values, the lowest of them first."""
        stack = self.stack
        missing = count - len(stack)
        found = [UNKNOWN] * missing + stack if missing > 0 else stack[len(stack) - count :]
        del stack[max(0, len(stack) - count) :]
        return found

    def site(self, index: int, kind: str, target: Expression = UNKNOWN, key: Any = None, **more: Any) -> None:
        self.sites.append(Site(index, self._line, kind, target, key, **more))

    def _step(self, index: int, step: dis.Instruction, free: set[str]) -> None:
        name, stack = step.opname, self.stack
        known = _KNOWN.get(name)
        if known is not None:
            known(self, index, step)
        elif name.startswith(_LOADS):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            for each in names:
                stack.append(self.chained(Expression("name", each, None, index)))
            if name == "LOAD_GLOBAL" and _effect(step) == 2:
                loaded = stack.pop()
                # Python 3.13 pushes the empty place above the function, those before it below.
                stack += [loaded, NULL] if step.argrepr.endswith("+ NULL") else [NULL, loaded]
        elif name.startswith(_STORES):
            self._store(index, step, free)
        elif name.startswith(("FORMAT_", "CONVERT_VALUE")):
            stack.append(_text(self.pop(1 - _effect(step))))
        elif name.startswith("BUILD_"):
            items = self.pop(1 - _effect(step))
            stack.append(_text(items) if name == "BUILD_STRING" else NEW)
        elif name.startswith(("CALL", "PRECALL")):
            self._call(index, step)
        elif name.startswith(("BINARY_OP", "INPLACE")):
            self._operator(index, step)
        else:
            self.other(step)

    def _store(self, index: int, step: dis.Instruction, free: set[str]) -> None:
        name = step.opname
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if name == "STORE_FAST_LOAD_FAST":
            self.assign(index, names[0], self.pop()[0])
            self.stack.append(self.chained(Expression("name", names[1], None, index)))
            return
        for each in names:
            self.assign(index, each, self.pop()[0])
        if "GLOBAL" in name:
            self.site(index, "global", key=step.argval)
        elif "DEREF" in name and step.argval in free:
            self.site(index, "free", key=step.argval)

    def chained(self, expression: Expression) -> Expression:
        """Note an expression as the longest that begins with its name so far."""
        first = expression
        while first.of is not None:
            first = first.of
        if first.kind == "name":
            self.consumers.setdefault(first.at, []).append(expression)
        return expression

    def assign(self, index: int, name: str, value: Expression) -> None:
        self.assigned.setdefault(name, []).append((index, value))

    def _operator(self, index: int, step: dis.Instruction) -> None:
        left, right = self.pop(2)
        if step.argrepr == "[]":
            whole = right.kind == "const" and isinstance(right.key, slice)  # a constant from Python 3.14 on
            self.stack.append(UNKNOWN if whole else self.chained(Expression("item", right, left)))
            return
        in_place = step.argrepr.endswith("=") or step.opname.startswith("INPLACE")
        if in_place:
            self.site(index, "in-place", left, arguments=(right,))
            self.updates.add(index + 1)
        self.stack.append(left if in_place else NEW)

    def _call(self, index: int, step: dis.Instruction) -> None:
        name, effect = step.opname, _effect(step)
        if name == "PRECALL":
            return
        if name.startswith("CALL_INTRINSIC"):
            self.other(step)
            return
        count = step.arg or 0
        if name == "CALL_FUNCTION_EX":
            count = 1 - effect
        else:
            # From Python 3.11 on the place of `self` lies beside the function; names of keywords lie above all.
            count += (1 if name.startswith("CALL_FUNCTION") else 2) + name.endswith("_KW")
        items = self.pop(count)
        if name.endswith("_KW"):
            items.pop()
        callee = items[0] if items else UNKNOWN
        rest = items[1:]
        if callee is NULL:
            callee, rest = (rest[0], rest[1:]) if rest else (UNKNOWN, [])
        elif rest and rest[0] in (NULL, SELF):
            rest = rest[1:]
        used = self._next is None or self._next.opname != "POP_TOP"
        self.site(index, "call", callee, arguments=tuple(rest), used=used)
        self.stack.append(Expression("call", tuple(rest), callee, index))

    def other(self, step: dis.Instruction) -> None:
        effect = _effect(step)
        if effect < 0 and step.opname.startswith(_POPPING):
            self.pop(-effect)
        elif effect < 0:
            self.pop(1 - effect)
            self.stack.append(UNKNOWN)
        elif effect > 0:
            self.stack += [UNKNOWN] * effect
        elif not step.opname.startswith(_NEUTRAL):
            self.pop()
            self.stack.append(UNKNOWN)


_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_POPPING = (
    "POP_", "RETURN", "YIELD", "RAISE", "LIST_", "SET_", "DICT_", "MAP_", "JUMP", "RERAISE", "END_", "IMPORT_STAR",
    "PRINT", "SEND",
)
_RUNNING = ("CALL", "BINARY_", "INPLACE_", "FOR_ITER", "LOAD_ATTR")
_NEUTRAL = (
    "NOP", "CACHE", "RESUME", "JUMP", "KW_NAMES", "EXTENDED", "COPY_FREE", "MAKE_CELL", "SETUP", "DELETE_",
    "POP_BLOCK", "RETURN_GENERATOR", "NOT_TAKEN", "RERAISE", "LOAD_ASSERT", "GEN_START", "TO_BOOL", "RETURN_CONST",
)


def _text(items: list[Expression]) -> Expression:
    """Text made of some values: those that it writes are its key."""
    written = [each for item in items for each in (item.key if item.kind == "text" else (item,))]
    return Expression("text", tuple(written))


def _effect(step: dis.Instruction) -> int:
    has_argument = step.opcode >= dis.HAVE_ARGUMENT
    return dis.stack_effect(step.opcode, step.arg if has_argument else None, jump=False)


_Handler = Callable[[Effects, int, dis.Instruction], None]


def _constant(e: Effects, index: int, step: dis.Instruction) -> None:
    if isinstance(step.argval, CodeType):
        e.made.append((index, step.argval))
    e.stack.append(Expression("const", step.argval))


def _attribute(e: Effects, index: int, step: dis.Instruction) -> None:
    (target,) = e.pop()
    e.stack.append(e.chained(Expression("attr", step.argval, target, index)))
    if _effect(step) == 1:
        e.stack.append(SELF)


def _super_attribute(e: Effects, _: int, step: dis.Instruction) -> None:
    e.pop(3)
    e.stack.append(Expression("attr", step.argval, UNKNOWN))
    if _effect(step) == -1:
        e.stack.append(SELF)


def _subscript(e: Effects, *_: object) -> None:
    target, key = e.pop(2)
    e.stack.append(e.chained(Expression("item", key, target)))


def _store_item(e: Effects, index: int, _: dis.Instruction) -> None:
    value, target, key = e.pop(3)
    e.site(index, "item", target, _slot(key), arguments=(value,))


def _delete_item(e: Effects, index: int, _: dis.Instruction) -> None:
    target, key = e.pop(2)
    e.site(index, "item", target, _slot(key))


def _slot(key: Expression) -> Expression:
    """The key of an item that is stored; of a slice only whether it is all there is."""
    part = key.kind == "const" and isinstance(key.key, slice) and key.key != slice(None)
    return NEW if part else key


def _store_slice(e: Effects, index: int, _: dis.Instruction) -> None:
    target, start, stop = e.pop(4)[1:]
    whole = start == stop == Expression("const")
    e.site(index, "item", target, Expression("const", slice(None)) if whole else NEW)


def _store_attribute(e: Effects, index: int, step: dis.Instruction) -> None:
    target = e.pop(2)[1]
    e.site(index, "attribute", target, step.argval)


def _delete_attribute(e: Effects, index: int, step: dis.Instruction) -> None:
    (target,) = e.pop()
    e.site(index, "attribute", target, step.argval)


def _delete_name(e: Effects, index: int, step: dis.Instruction) -> None:
    e.assign(index, step.argval, NEW)
    if "GLOBAL" in step.opname:
        e.site(index, "global", key=step.argval)


def _copy(e: Effects, _: int, step: dis.Instruction) -> None:
    depth = step.arg or 1 if step.opname == "COPY" else 1
    stack = e.stack
    stack.append(stack[-depth] if len(stack) >= depth else UNKNOWN)


def _swap(e: Effects, _: int, step: dis.Instruction) -> None:
    depth = step.arg or 1
    items = e.pop(depth)
    items[0], items[-1] = items[-1], items[0]
    e.stack += items


def _rotate(e: Effects, _: int, step: dis.Instruction) -> None:
    depth = {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}.get(step.opname, step.arg or 1)
    items = e.pop(depth)
    e.stack += [items[-1], *items[:-1]]


def _dup_two(e: Effects, *_: object) -> None:
    items = e.pop(2)
    e.stack += items + items


def _unpack(e: Effects, _: int, step: dis.Instruction) -> None:
    (target,) = e.pop()
    count = _effect(step) + 1
    kept = [target] * count if target is NEW else [Expression("item", UNKNOWN, target)] * count
    e.stack += kept


def _iterate(e: Effects, index: int, _: dis.Instruction) -> None:
    (target,) = e.pop()
    e.site(index, "iterate", target)
    e.stack.append(e.chained(Expression("each", UNKNOWN, target)))


def _next_item(e: Effects, *_: object) -> None:
    e.stack.append(e.stack[-1] if e.stack else UNKNOWN)


def _opaque(e: Effects, index: int, step: dis.Instruction) -> None:
    e.site(index, "import" if step.opname.startswith("IMPORT") else "yield")
    e.other(step)


def _return(e: Effects, _: int, step: dis.Instruction) -> None:
    e.returned.append(Expression("const", step.argval) if step.opname == "RETURN_CONST" else e.pop()[0])


def _function(e: Effects, _: int, step: dis.Instruction) -> None:
    e.pop(1 - _effect(step))
    e.stack.append(NEW)


_KNOWN: dict[str, _Handler] = {
    "LOAD_CONST": _constant, "LOAD_SMALL_INT": _constant, "LOAD_ATTR": _attribute, "LOAD_METHOD": _attribute,
    "LOAD_SUPER_ATTR": _super_attribute,
    "BINARY_SUBSCR": _subscript, "STORE_SUBSCR": _store_item, "DELETE_SUBSCR": _delete_item,
    "STORE_SLICE": _store_slice, "STORE_ATTR": _store_attribute, "DELETE_ATTR": _delete_attribute, "COPY": _copy,
    "DUP_TOP": _copy, "SWAP": _swap, "ROT_TWO": _rotate, "ROT_THREE": _rotate, "ROT_FOUR": _rotate, "ROT_N": _rotate,
    "DUP_TOP_TWO": _dup_two, "UNPACK_SEQUENCE": _unpack, "GET_ITER": _iterate, "FOR_ITER": _next_item,
    "YIELD_VALUE": _opaque, "GET_YIELD_FROM_ITER": _opaque, "SEND": _opaque, "GET_AWAITABLE": _opaque,
    "IMPORT_NAME": _opaque, "IMPORT_STAR": _opaque, "MAKE_FUNCTION": _function, "DELETE_FAST": _delete_name,
    "DELETE_DEREF": _delete_name, "DELETE_NAME": _delete_name, "DELETE_GLOBAL": _delete_name,
    "RETURN_VALUE": _return, "RETURN_CONST": _return,
    "PUSH_NULL": lambda e, *_: e.stack.append(NULL), "LOAD_CLOSURE": lambda e, *_: e.stack.append(UNKNOWN),
    "LOAD_FAST_AND_CLEAR": lambda e, *_: e.stack.append(UNKNOWN),
}


def chain(expression: Expression) -> tuple[Expression, list[tuple[str, Any]]]:
    """What an expression begins with, and the attributes and items that lead from there to it."""
    steps: list[tuple[str, Any]] = []
    while expression.of is not None and expression.kind in ("attr", "item", "each"):
        steps.append((expression.kind, expression.key))
        expression = expression.of
    return expression, steps[::-1]


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects of the functions within one, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from inner_codes(constant)


@PerCode
def effects_of(code: CodeType) -> Effects:
    """The effects of a code object, computed once."""
    return Effects(code)


ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
"""The opcodes that read an attribute."""
ANY_ATTRIBUTE = (
    "getattr", "hasattr", "dir", "vars", "__dict__", "replace", "asdict", "astuple", "copy", "deepcopy",
    "__getattribute__",
)
"""Names of what reads attributes that the code does not name."""


@PerCode
def reads_attributes(code: CodeType) -> frozenset[str]:
    """The attributes that a function, or one inside it, may read by name, and the globals that it names."""
    steps = flow_of(code).raw
    # An update, `self.calls += 1`, reads for itself alone: it copies the object first.
    names = {
        step.argval for before, step in zip([steps[0], *steps], steps)
        if step.opname in ATTRIBUTES and before.opname not in ("COPY", "DUP_TOP")
    }
    for constant in code.co_consts:
        # `getattr(v, "name")`, `attrgetter("name")`, the patterns of `match`.
        names.update(each for each in (constant if isinstance(constant, tuple) else (constant,)) if type(each) is str)
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(names | globals_of(code)).union(*map(reads_attributes, inner))


def may_store(code: CodeType) -> bool:
    """Whether a code object stores into anything but its own variables, or imports; quickly."""
    raw = code.co_code
    return not _STORING.isdisjoint(raw[::2]) or any(
        opcode == _BINARY_OP and argument in _IN_PLACE for opcode, argument in zip(raw[::2], raw[1::2])
    )


_STORING = frozenset(
    opcode for name, opcode in dis.opmap.items()
    if name.startswith((
        "STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF", "DELETE_", "IMPORT_", "INPLACE_",
    ))
)
_BINARY_OP, _IN_PLACE = dis.opmap.get("BINARY_OP", -1), range(13, 26)
"""The operators from ``NB_INPLACE_ADD`` to ``NB_INPLACE_XOR``."""
