"""Rule R3 for registers that no variable holds: operands of an expression that wait on the stack of a running frame.

``rng.next() - rng.next()``: the first call has returned a register, the second one changes it, and then it is
subtracted from itself. ``a + bump(a)`` and ``[acc.push(k) for k in range(3)]`` are the same. What lies on the stack
follows from the bytecode (`Effects.pending`): a name, an attribute or an element is looked up; of a call, what the
function's own code returns.

A list that ``list(...)`` or ``tuple(...)`` is filling only C code holds. Where a line is reached again and the register
has more references than the variables explain, Python's collector is asked for such a list.

What it cannot see: what an expression with a branch in it has left on the stack, and what functions return that compute
which register it is; a ``list(...)`` of few elements.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from contextlib import suppress
from inspect import CO_COROUTINE, CO_GENERATOR
from types import FrameType, FunctionType
from typing import Any

from ...errors import AliasError, Loc, with_article
from ..builder import fatal
from ..introspection.bytecode import Flow, flow_of
from ..introspection.effects import Expression, effects_of
from ..introspection.frame_variables import locals_of
from ..values.value import Reg
from .changed_lines import resolved
from .holders import variables
from .reaching import shares

__all__ = ["check_stack"]

_LOOKED_UP = ("name", "attr", "item")
_MAY_GIVE = (*_LOOKED_UP, "call")


def check_stack(stack: list[FrameType], reg: Reg, *, more: bool) -> None:
    """An AliasError where a frame has the register that is changed now among the operands of an expression.

    ``stack`` are the frames from the change up to the kernel's; ``more`` tells whether the register has references
    that no variable explains.
    """
    collects = False
    for frame in stack:
        code = frame.f_code
        flow, effects = flow_of(code), effects_of(code)
        at = flow.index(frame.f_lasti)
        scope: dict[str, Any] | None = None
        for operand in effects.pending.get(at, ()):
            if operand.kind not in _MAY_GIVE:
                continue
            scope = scope or variables(frame)
            known = operand.kind in _LOOKED_UP and shares(resolved(operand, scope), reg)
            if known or _gives(operand, scope, reg):
                raise _error(operand, frame)
        if _collects(flow, at):
            collects = True
            if not _discarded(frame, stack, flow, at) and _filled(reg, stack, (list, dict)) is not None:
                raise _error(Expression("call", (), _callee(effects.sites, at), at), frame)
    if more and not collects and not all(map(_calls_directly, stack[1:], stack)):
        _check_filled(stack, reg)


def _calls_directly(caller: FrameType, frame: FrameType) -> bool:
    """Whether a frame has called the function of another itself, with no C code between them that keeps results."""
    code = frame.f_code
    if frame.f_back is not caller or code.co_flags & (CO_GENERATOR | CO_COROUTINE):
        return False
    at = flow_of(caller.f_code).index(caller.f_lasti)
    target = _callee(effects_of(caller.f_code).sites, at)
    if target is None or target.kind not in ("name", "attr"):
        return False
    if target.kind == "attr" and target.key == code.co_name:
        return True  # a method
    function = resolved(target, variables(caller))
    return code in (getattr(function, "__code__", None), getattr(getattr(function, "__func__", None), "__code__", None))


def _check_filled(stack: list[FrameType], reg: Reg) -> None:
    """An AliasError for a list or tuple that has the register, and that only C code holds."""
    kind, frame = _filled(reg, stack), stack[0]
    if kind is not None:
        raise fatal(AliasError(
            f"{with_article(kind)} that is being filled here has the same reg already, and this changes it",
            loc=Loc(frame.f_code.co_filename, frame.f_lineno),
            hint="have it filled with copies: return or yield `....copy()`",
        ))


def _filled(reg: Reg, stack: list[FrameType], kinds: tuple[type, ...] = (list, tuple)) -> str | None:
    """What is being filled with the register; not the object, since a tuple may lack elements yet."""
    own = {id(frame.f_locals) for frame in stack if frame.f_locals.__class__ is dict}
    for frame in stack:
        locals_of(frame)  # before Python 3.13 this empties what the frame keeps of them
    holding = gc.get_referrers(reg)
    for kept in holding:
        # C code hands arguments on in tuples, which have it once.
        least = 2 if type(kept) is tuple else 1
        if type(kept) not in kinds or id(kept) in own:
            continue
        if sum(each is reg for each in gc.get_referents(kept)) >= least and all(
            each is holding or type(each) is FrameType for each in gc.get_referrers(kept)
        ):
            return type(kept).__name__
    return None


def _gives(operand: Expression, scope: Mapping[str, Any], reg: Reg, depth: int = 4) -> bool:
    """Whether a call, or a property, gives the register: the function's own code returns it."""
    taken = operand.of if operand.kind == "call" else operand
    if taken is None or operand.kind not in ("call", "attr") or not depth:
        return False
    function, given = resolved(taken, scope), operand.key if operand.kind == "call" else ()
    values = [resolved(each, scope) for each in given]
    if taken.kind == "attr" and not isinstance(function, FunctionType):
        holder = resolved(taken.of or taken, scope)
        found = next((vars(base)[taken.key] for base in type(holder).__mro__ if taken.key in vars(base)), None)
        function = found.fget if isinstance(found, property) and operand.kind == "attr" else found
        values.insert(0, holder)
    if not isinstance(function, FunctionType):
        return False
    code, inner = function.__code__, dict(function.__globals__)
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            inner[name] = cell.cell_contents
    inner.update(zip(code.co_varnames[: code.co_argcount], values))
    for name in code.co_varnames[code.co_argcount :]:
        inner.pop(name, None)
    return any(
        _gives(each, inner, reg, depth - 1) or (each.kind in _LOOKED_UP and shares(resolved(each, inner), reg))
        for each in effects_of(code).returned
    )


def _collects(flow: Flow, at: int) -> bool:
    """Whether the result of a call becomes an element of what a comprehension makes."""
    return at + 1 < len(flow.steps) and flow.steps[at + 1].opname in ("LIST_APPEND", "SET_ADD", "MAP_ADD")


def _discarded(frame: FrameType, stack: list[FrameType], flow: Flow, at: int) -> bool:
    """Whether nobody uses what the comprehension makes that an instruction is in."""
    if frame.f_code.co_name.endswith("comp>"):
        caller = next((each for each in stack if each is frame.f_back), None)
        if caller is None:
            return True
        flow = flow_of(caller.f_code)
        return flow.steps[flow.index(caller.f_lasti) + 1].opname == "POP_TOP"
    ends = (step.next[-1] for step in flow.steps[at::-1] if step.opname == "FOR_ITER")
    after = next(ends, len(flow.steps))
    while after < len(flow.steps) and flow.steps[after].opname.startswith(_RESTORING):
        after += 1 + (flow.steps[after].opname == "END_FOR" and _POPS_ITERATOR)
    return after >= len(flow.steps) or flow.steps[after].opname == "POP_TOP"


_POPS_ITERATOR = sys.version_info[:2] == (3, 13)
"""Whether END_FOR leaves the iterator to a POP_TOP."""
_RESTORING = ("END_FOR", "POP_ITER", "SWAP", "STORE_FAST")
"""What follows a comprehension in the code that it is a part of, from Python 3.12 on."""


def _callee(sites: list[Any], at: int) -> Expression | None:
    return next((site.target for site in sites if site.at == at and site.kind == "call"), None)


def _error(operand: Expression, frame: FrameType) -> AliasError:
    shown = _written(operand)
    if operand.kind != "name":
        message = f"what `{shown}` has given is the same reg, and this changes it before it is used"
        hint = f"write `{shown}.copy()` there, or have the function return a copy"
    else:
        message = f"`{shown}` is an operand already, and this changes it before it is used"
        hint = f"write `{shown}.copy()` there"
    return fatal(AliasError(message, loc=Loc(frame.f_code.co_filename, frame.f_lineno), hint=hint))


def _written(expression: Expression | None) -> str:
    if expression is None or expression.kind not in ("name", "attr", "item", "call"):
        return "..."
    of = _written(expression.of)
    if expression.kind == "attr":
        return f"{of}.{expression.key}"
    if expression.kind == "item":
        return f"{of}[{expression.key.key!r}]" if expression.key.kind == "const" else f"{of}[...]"
    return str(expression.key) if expression.kind == "name" else f"{of}({'...' if expression.key else ''})"
