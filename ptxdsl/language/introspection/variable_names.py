"""The Python variable that a result is assigned to: the name of registers, of arrays, and in error messages.

The bytecode instruction after the call says where its result goes. Where that does not name a variable (list
comprehensions, unpacking), the source line does.
"""

from __future__ import annotations

import linecache
import re
from opcode import EXTENDED_ARG, opmap, opname
from types import CodeType, FrameType
from typing import NamedTuple

__all__ = ["Target", "name_of", "target_of_call"]

_CACHE = opmap.get("CACHE", -1)
_ROTATIONS = {"ROT_TWO": 1, "ROT_THREE": 2}
"""How Python 3.10 ends `a, b = x, y`: so many stores of other values come before that of the last."""
_ASSIGNMENT = r"\s*(?P<targets>[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*(?::[^=]+)?=(?!=)"


class Target(NamedTuple):
    """Where a result goes: the variables assigned to, and whether it is one of many in a list."""

    names: tuple[str, ...]
    many: bool = False


_found: dict[tuple[int, int], tuple[CodeType, Target | None]] = {}
"""The targets found, by the id of the code object, which is kept or its id could be reused, and the instruction."""


def target_of_call(frame: FrameType) -> Target | None:
    """The variable that the call now running in ``frame`` is assigned to; several where the source unpacks."""
    key = id(frame.f_code), frame.f_lasti
    found = _found.get(key)
    if found is None:
        if len(_found) > 4096:
            _found.clear()
        found = _found[key] = (frame.f_code, _target(frame))
    return found[1]


def _target(frame: FrameType) -> Target | None:
    code = frame.f_code
    name = _stored(code, code.co_code, frame.f_lasti)
    if name is not None:
        return Target((name,))
    if code.co_name in ("<listcomp>", "<genexpr>") and frame.f_back is not None:
        frame = frame.f_back
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    found = re.match(_ASSIGNMENT, line)
    if found is None:
        return None
    names = tuple(name.strip() for name in found["targets"].split(","))
    return Target(names, len(names) == 1 and "[" in line[found.end("targets"):])


def _stored(code: CodeType, raw: bytes, at: int) -> str | None:
    """The name that the instruction after the one at ``at`` stores into."""
    at, argument, others = at + 2, 0, 0
    while at < len(raw):
        if raw[at] == _CACHE:
            at += 2
            continue
        kind, argument = opname[raw[at]], argument << 8 | raw[at + 1]
        at += 2
        if raw[at - 2] == EXTENDED_ARG:
            continue
        if kind in _ROTATIONS:
            others = others or _ROTATIONS[kind]
            continue
        if others and kind.startswith("STORE_"):
            argument, others = 0, others - 1
            continue
        if kind in ("STORE_NAME", "STORE_GLOBAL"):
            return code.co_names[argument]
        if kind in ("STORE_FAST", "STORE_FAST_MAYBE_NULL"):
            return code.co_varnames[argument]
        if kind in ("STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"):
            return code.co_varnames[argument >> 4]
        if kind == "STORE_DEREF":
            cells = code.co_cellvars + code.co_freevars
            # Since 3.11 cells are numbered after the locals, those that are arguments in their place among these.
            if hasattr(code, "co_qualname"):
                own = (name for name in code.co_cellvars if name not in code.co_varnames)
                cells = (*code.co_varnames, *own, *code.co_freevars)
            return cells[argument]
        return None
    return None


def name_of(value: object, frame: FrameType | None) -> str | None:
    """The variable of ``frame`` that holds ``value``."""
    if frame is None:
        return None
    return next((name for name, held in frame.f_locals.items() if held is value and not name.startswith("@")), None)
