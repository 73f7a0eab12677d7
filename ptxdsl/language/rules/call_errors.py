"""Calls that Python refuses before a function of ptxdsl is entered: an unknown keyword, too few arguments.

Python's TypeError carries no line of the user's and names ``Instruction.__call__()``. It is caught when the kernel
function ends, and raised again in the user's words, with how the call is written.
"""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from types import FrameType
from typing import Any

from ...errors import Loc, PtxError, PtxTypeError
from ...isa import lookup
from ..control.labels import label
from ..control.regions import Block
from ..call_signature import syntax
from .python_protocol import RunTime

__all__ = ["kinds", "miscalled"]

_REFUSED = (
    r"(?P<owner>\w+\.)?(?P<name>\w+)\(\) "
    r"(?P<why>got an unexpected keyword argument .*|missing \d+ required .*|takes .* given|got multiple values .*)"
)
_SPELLED = r"\bptx((?:\.\w+)+|\[[\"'][^\"']+[\"']\])\("


def miscalled(
    error: TypeError, place: tuple[FrameType, Loc] | None, innermost: FrameType | None
) -> PtxTypeError | None:
    """The error for a call of ptxdsl's that Python refused in the user's line at ``place``; None if this is another."""
    found = re.match(_REFUSED, str(error))
    if place is None or found is None or place[0] is not innermost:
        return None
    frame, loc = place
    owner, name = (found["owner"] or "")[:-1], found["name"]
    if owner in ("Instruction", "_Call"):
        return _instruction(found["why"], loc)
    target = _target(owner, name, frame)
    if target is None:
        return None
    shown, function = target
    return PtxTypeError(f"`{shown}()` {found['why']}", loc=loc, hint=f"`{shown}{_parameters(function)}`")


def _instruction(why: str, loc: Loc) -> PtxTypeError:
    hint = "operands by position, in PTX's order; `out=` for the result, `pred=` for the guard"
    spelled = re.search(_SPELLED, loc.source)
    name = "an instruction"
    if spelled is not None:
        name = f"`ptx{spelled[1]}()`"
        words = spelled[1].strip(".[]\"'").replace("__", "::").split(".")
        with suppress(PtxError):
            hint = f"`{syntax(lookup('.'.join(word.rstrip('_') for word in words))[0])}`: {hint}"
    return PtxTypeError(f"{name} {why}", loc=loc, hint=hint)


def _target(owner: str, name: str, frame: FrameType) -> tuple[str, Any] | None:
    """How a function of ptxdsl is spelled by the user, and the function."""
    if owner and name != "__init__":
        found = [kind for kind in kinds(RunTime, label) if kind.__name__ == owner and name in kind.__dict__]
        return (f".{name}", found[0].__dict__[name]) if found else None
    for scope in (frame.f_locals, frame.f_globals):
        for spelled, value in scope.items():
            ours = (getattr(value, "__module__", None) or "").startswith("ptxdsl.")
            if ours and getattr(value, "__name__", None) == (owner or name) and callable(value):
                return spelled, value
    ours = next((kind for kind in kinds(Block, label) if kind.__name__ == owner), None)
    return None if ours is None else (owner, ours)


def kinds(*bases: type) -> list[type]:
    """The classes and all that derive from them."""
    found: list[type] = list(bases)
    for kind in found:
        derived: list[type] = type.__subclasses__(kind)
        found += [each for each in derived if each not in found]
    return found


def _parameters(function: Any) -> str:
    """A function's parameters as they are written in a call."""
    if isinstance(function, type):
        function = vars(function)["__init__"]
    signature = inspect.signature(function)
    own = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=own, return_annotation=signature.empty))
