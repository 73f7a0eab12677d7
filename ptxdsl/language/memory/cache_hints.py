"""What a load or a store wishes of the caches: the keywords, and the form of the table that has them.

``cache`` is a cache operator, ``evict`` and ``evict_l2`` how long the caches keep the line, ``prefetch`` how much
around it the L2 cache loads, ``policy`` a number that `createpolicy` made. The table says which go together; an error
names what would.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ... import ir
from ...errors import PtxTypeError, UnknownInstruction, with_article
from ...isa import Form, lookup
from ...types import ScalarType, u64
from ..builder import Trace
from ..errors import described, located
from ..values.value import Value
from .addresses import ReadOnly

__all__ = ["policy_operand", "with_hints"]

_NAMES: dict[str, dict[str, str]] = {
    "cache": {name: name for name in ("ca", "cg", "cs", "lu", "cv", "wb", "wt")},
    "evict": {
        **{name: f"L1::evict_{name}" for name in ("normal", "unchanged", "first", "last")},
        "no_allocate": "L1::no_allocate",
    },
    "evict_l2": {name: f"L2::evict_{name}" for name in ("normal", "first", "last")},
    "prefetch": {name: f"L2::{name}" for name in ("64B", "128B", "256B")},
}
"""The modifier of each value of each keyword."""

Access = tuple[str, str, int, ScalarType]
"""``ld`` or ``st``, the state space, how many elements, and of what type."""


def with_hints(access: Access, given: Mapping[str, Any]) -> Form:
    """The form of an access with these hints, None for those that were not given; a located PtxTypeError if none is."""
    asked = {name: value for name, value in given.items() if value is not None}
    for name, value in asked.items():
        if name != "policy" and (not isinstance(value, str) or value not in _NAMES[name]):
            raise located(PtxTypeError, f"`{name}` of {described(value)}", _choices(access, asked, name))
    opcode, space, width, dtype = access
    found = _form(opcode, space, space.__class__ is ReadOnly, width, dtype, _tokens(asked))
    if found is None:
        count = f"{width} {dtype} at once" if width > 1 else str(dtype)
        said = " ".join("policy" if name == "policy" else f"{name}={value!r}" for name, value in asked.items())
        raise located(
            PtxTypeError, f"PTX has no {opcode} of {count} in {space} memory with {said}", _alternative(access, asked)
        )
    return found


def policy_operand(trace: Trace, policy: Any) -> tuple[ir.Operand, ...]:
    """The operand of a policy, if there is one."""
    if policy is None:
        return ()
    if not isinstance(policy, Value) or policy.type.bits != 64 or policy.type.kind not in "ub":
        got = policy.type if isinstance(policy, Value) else described(policy)
        raise located(
            PtxTypeError, f"`policy` is {with_article(u64)} that `createpolicy` made, not {got}",
            "`policy = ptx.createpolicy.fractional.L2__evict_last.b64()`",
        )
    return (policy.use(trace),)


def _tokens(asked: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "L2::cache_hint" if name == "policy" else _NAMES[name][value]) for name, value in asked.items())


@cache
def _form(
    opcode: str, space: str, read_only: bool, width: int, dtype: ScalarType, tokens: tuple[tuple[str, str], ...]
) -> Form | None:
    has = dict(tokens)
    coherent = "nc" if read_only and opcode == "ld" and space == "global" else ""
    parts = (
        opcode, "" if space == "generic" else space, has.get("cache"), coherent, has.get("evict"), has.get("evict_l2"),
        has.get("policy"), has.get("prefetch"), f"v{width}" if width != 1 else "", str(dtype.register),
    )
    try:
        return lookup(".".join(part for part in parts if part))[0]
    except UnknownInstruction:
        return None


def _fits(access: Access, asked: Mapping[str, Any]) -> bool:
    opcode, space, width, dtype = access
    return _form(opcode, space, space.__class__ is ReadOnly, width, dtype, _tokens(asked)) is not None


def _choices(access: Access, asked: Mapping[str, Any], name: str) -> str:
    """What a keyword can be with the others as they are, those that are known."""
    others = {n: v for n, v in asked.items() if n != name and (n == "policy" or v in _NAMES[n])}
    fit = [value for value in _NAMES[name] if _fits(access, {**others, name: value})]
    return f"`{name}=` can be {', '.join(map(repr, fit))} here" if fit else f"leave `{name}` out"


def _alternative(access: Access, asked: Mapping[str, Any]) -> str:
    """One keyword changed, or left out, such that the table has it."""
    for name in asked:
        hint = "" if name == "policy" else _choices(access, asked, name)
        if hint.startswith(f"`{name}="):
            return hint
    fit = [name for name in asked if _fits(access, {n: v for n, v in asked.items() if n != name})]
    return f"leave `{'` or `'.join(fit)}` out" if fit else "leave them out"
