"""The effects of a row in words, for the reference pages: so that a wrong fact is seen by its readers.

A row stands for many forms. What all of them do is said once; where they differ, what each may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, product

from ..effects import Effects
from ..forms import Form, Row

__all__ = ["effects_of", "spellings"]

_MOST = 500
"""Combinations that are tried to spell a value of a slot."""
_CONTROL = {
    "branch": "branches", "indexed_branch": "branches by an index", "call": "calls", "return": "returns",
    "exit": "ends the thread", "trap": "aborts the kernel",
}
_BARRIERS = {
    "warp": "a barrier of the warp", "block": "a barrier of the block", "cluster": "the barrier of the cluster",
    "mbarrier": "an mbarrier",
}
_KINDS = {
    "elements": "", "bytes": "", "matrix": "a matrix in ", "mbarrier": "an mbarrier in ",
    "tensormap": "a tensor map in ", "tensor": "a tensor in ", "texel": "texels of a ", "handle": "a ",
}


def spellings(row: Row) -> Iterator[Form]:
    """Forms of a row in which each value of each slot stands at least once, if it may stand at all."""
    ways = [[*slot.values, *([None] if slot.optional else [])] for slot in row.slots]
    seen: set[str] = set()
    for place, own in enumerate(ways):
        for value in own or [None]:
            others = product(*(way if n != place else [value] for n, way in enumerate(ways)))
            found = next((forms for choice in islice(others, _MOST) if (forms := _spelled(row, choice))), ())
            if found and found[0].mnemonic not in seen:
                seen.add(found[0].mnemonic)
                yield from found
    if not ways:
        yield from row.forms(())


def _spelled(row: Row, choice: Iterable[str | None]) -> tuple[Form, ...]:
    return row.forms(tuple(chain.from_iterable(value.split(".") for value in choice if value)))


def effects_of(row: Row) -> str:
    """What the forms of a row do beside computing their results; "" for nothing."""
    forms = list(spellings(row))
    every = [form.effects for form in forms]
    said = [*_said(_CONTROL.get(e.control, "") for e in every), *_memory(forms), *_order(every)]
    said += _said(f"a fence of {e.fence}" if e.fence else "" for e in every)
    said += _said(_converging(e) for e in every)
    said += _said(f"arrives at {_BARRIERS[e.arrives]}" if e.arrives else "" for e in every)
    said += _said(f"waits for {_BARRIERS.get(e.waits, _named(e.waits))}" if e.waits else "" for e in every)
    said += _said(f"completes by {_BARRIERS.get(e.completes, _named(e.completes))}" * bool(e.completes) for e in every)
    said += _said(f"commits to {_BARRIERS.get(e.commits, _named(e.commits))}" if e.commits else "" for e in every)
    said += _said("reads what it changes where scale holds" if e.scale >= 0 else "" for e in every)
    for name, words in _TRAITS:
        said += _said(words if getattr(e, name) else "" for e in every)
    return "; ".join(said)


_TRAITS = (
    ("uniform", "uniform results"), ("polls", "polls"), ("hint", "a hint"), ("selects", "selects a source"),
    ("reads_carry", "reads the carry"), ("writes_carry", "writes the carry"),
    ("absorbs", "one source may decide"),
)


def _said(texts: Iterable[str]) -> list[str]:
    """What is said of forms: nothing, one thing, or what may be."""
    found = list(dict.fromkeys(texts))
    words = [text for text in found if text]
    if not words:
        return []
    return [" or ".join(words) + (" or not" if "" in found else "")]


def _named(group: str) -> str:
    return {"grid": "the grids before", "unobserved": "nothing that tells"}.get(group, f"`{group}`")


def _converging(e: Effects) -> str:
    where = {"mask": "the lanes of the member mask", "warp": "the warp", "warpgroup": "the warpgroup"}
    return f"converges: {where[e.converges]}" if e.converges else ""


def _memory(forms: list[Form]) -> Iterator[str]:
    """What happens to the memory behind each address."""
    accesses = [(form.operands[access.operand].name, access) for form in forms for access in form.effects.accesses]
    for name in dict.fromkeys(name for name, _ in accesses):
        own = [access for other, access in accesses if other == name]
        verbs = {(False, False): "addresses", (True, False): "reads", (False, True): "writes", (True, True): "updates"}
        verb = " or ".join(dict.fromkeys(verbs[access.reads, access.writes] for access in own))
        what = _KINDS[own[0].kind]
        spaces = " or ".join(dict.fromkeys(access.space for access in own))
        where = spaces if own[0].kind in ("texel", "handle") else f"{spaces.replace('tmem', 'tensor')} memory"
        sizes = sorted({access.nbytes for access in own} - {0})
        size = f" ({sizes[0]} to {sizes[-1]} bytes)" if len(sizes) > 1 else f" ({sizes[0]} bytes)" if sizes else ""
        yield f"{verb} {what}{where} at `{name}`{size if own[0].kind in ('elements', 'bytes') else ''}"
    atomic = list(dict.fromkeys(form.effects.atomic for form in forms if form.effects.atomic))
    if atomic:
        yield f"atomic {' or '.join(atomic)}"


def _order(every: list[Effects]) -> Iterator[str]:
    orders = list(dict.fromkeys(e.order for e in every if e.order))
    scopes = list(dict.fromkeys(e.scope for e in every if e.scope))
    if orders:
        yield " or ".join(orders) + (f" at {' or '.join(scopes)}" if scopes else "")
    yield from _said("exactly one access" if e.mmio else "" for e in every)
