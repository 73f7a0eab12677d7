"""Modifiers in another order than the table's, or fewer, as foreign text has them.

NVIDIA's assembler reads a name, which is the opcode and the modifiers that belong to it (a ``name`` line of a chapter
lists these: ``name mul hi lo wide``), and then the other modifiers in any order. Where several are of one kind (types,
state spaces, layouts, operations, values of slots that share one), the first of them is the first in the table too. So
the modifiers of a text, as a multiset, name a row and a value for each of its slots, and `reordered` finds them.

A few modifiers ptxas supplies where they are left out (``SUPPLIED``); where nothing else fits, these are added.

What it cannot see: ptxas also takes some modifiers twice, and skips one that means nothing to an instruction. Such text
stays unknown here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from ..types import SPACES, TYPES
from .forms import Row
from .specs import Slot
from .table import names, rows

__all__ = ["BRACED", "SUPPLIED", "reordered"]

BRACED = {
    "atom", "clusterlaunchcontrol", "cvt", "fabric", "ld", "ldu", "mbarrier", "mma", "mov", "multimem", "st", "suld",
    "sust", "tcgen05", "tex", "tld4", "txq", "wgmma",
}
"""Instructions of which ptxas takes a single operand in braces."""

Tokens = tuple[str, ...]

_PACKED = re.compile(r"[bsu]\d(x16)?(_p\d+)?$|u?e\dm\d$")
"""The types that only packed elements and scales have."""
_KINDS = {
    **dict.fromkeys(TYPES, "type"), **dict.fromkeys((*SPACES, "shared::cta", "shared::cluster"), "space"),
    **dict.fromkeys(("row", "col"), "layout"), **dict.fromkeys(("and", "or", "xor", "popc"), "operation"),
}


SUPPLIED = (
    (re.compile(r"wgmma\.(?!.*\.aligned)"), "aligned"), (re.compile(r"prefetch\.L2::evict"), "global"),
    (re.compile(r"st\.async\.(gpu|sys)\."), "release"), (re.compile(r"cvt\.(bf16\.f16|f16\.bf16)$"), "rn"),
    (re.compile(r"mbarrier\.(?!.*\.shared).*\.multicast"), "shared::cluster"),
    (re.compile(r"applypriority\.async"), "global"), (re.compile(r"fabric\.try_(put|red)\.async\.counted"), "multimem"),
    (re.compile(r"fabric\.try_(?!.*\.relaxed)"), "relaxed"),
)
"""What ptxas adds to a spelling: the code is that of the whole one, `cvt.bf16.f16` that of `cvt.rn.bf16.f16`."""


@lru_cache(4096)
def reordered(mnemonic: str, loose: bool = False) -> tuple[str, ...]:
    """The spellings in the table's order that have the modifiers of a mnemonic; () if there are none.

    Several only where rows differ in the operands alone. ``loose`` ones are for hints: there, names and modifiers of
    one kind may be out of order as well.

    >>> reordered("div.ftz.rn.f32"), reordered("mad.u64.lo"), reordered("mad.u64.lo", loose=True)
    (('div.rn.ftz.f32',), (), ('mad.lo.u64',))
    """
    opcode, *modifiers = mnemonic.split(".")
    found = _orders(opcode, modifiers, loose)
    for pattern, token in () if found or loose else SUPPLIED:
        if pattern.match(mnemonic):
            at = modifiers.index("sync") + 1 if "sync" in modifiers else len(modifiers)
            modifiers.insert(at, token)
            found = _orders(opcode, modifiers, loose)
    return found


def _orders(opcode: str, modifiers: list[str], loose: bool) -> tuple[str, ...]:
    belonging = names(opcode)
    head = [token for token in modifiers if token in belonging]
    if not loose and modifiers[: len(head)] != head:
        return ()
    found: dict[str, None] = {}
    for row in rows(opcode):
        kinds = {} if loose else _kinds(row)
        for tokens in _spelled(row.slots, tuple(modifiers), kinds):
            kept = loose or [token for token in tokens if token in belonging] == head
            if kept and row.forms(tokens):
                found[".".join((opcode, *tokens))] = None
    return tuple(found)


def _spelled(slots: tuple[Slot, ...], left: Tokens, kinds: dict[str, str]) -> Iterator[Tokens]:
    """The ways to choose values of the slots that use up the modifiers, in the order of the slots."""
    if not slots:
        if not left:
            yield ()
        return
    slot, rest = slots[0], slots[1:]
    for value in slot.values:
        if value.partition(".")[0] in left:
            parts = tuple(value.split("."))
            after = _without(left, parts, kinds)
            if after is not None:
                for tokens in _spelled(rest, after, kinds):
                    yield parts + tokens
    if slot.optional:
        yield from _spelled(rest, left, kinds)


def _without(left: Tokens, parts: Tokens, kinds: dict[str, str]) -> Tokens | None:
    """What is left without these modifiers, each the first of its kind; None if they are not there, or not first."""
    for part in parts:
        if part not in left:
            return None
        at = left.index(part)
        kind = kinds.get(part)
        if kind is not None and any(kinds.get(token) == kind for token in left[:at]):
            return None
        left = left[:at] + left[at + 1 :]
    return left


@cache
def _kinds(row: Row) -> dict[str, str]:
    """The kind of each modifier of a row that has one."""
    kinds: dict[str, str] = {}
    for index, slot in enumerate(row.slots):
        sharing = any(slot.values.keys() & other.values.keys() for other in row.slots[:index] + row.slots[index + 1 :])
        for value in slot.values:
            for token in value.split("."):
                kind = "type" if _PACKED.match(token) else _KINDS.get(token, "shared" if sharing else "")
                if kind:
                    kinds[token] = kind
    return kinds
