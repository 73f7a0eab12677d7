"""The registers of a trace: those numbered by family, ``%f0``, ``%f1``, and the stems of those named after variables.

A kernel of ten thousand instructions takes as many registers, and each trace takes the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, count, islice, repeat
from typing import Any

from .. import ir, locks
from ..types import TYPES, ScalarType

__all__ = ["RegisterSupply", "stem_of"]

_FAMILIES = {
    "%p": ("pred", "pred"), "%b": ("b8", "b8 u8 s8"), "%h": ("b16", "b16 u16 s16"), "%r": ("b32", "b32 u32 s32"),
    "%rd": ("b64", "b64 u64 s64"), "%rq": ("b128", "b128"), "%f": ("f32", "f32"), "%fd": ("f64", "f64"),
}
"""Registers without a name: the prefix of each family, the type it is declared with, the types of values in it."""

_prefix_of = {TYPES[name]: prefix for prefix, (_, names) in _FAMILIES.items() for name in names.split()}
_pools: dict[str, list[ir.Register]] = {prefix: [] for prefix in _FAMILIES}
"""The registers that were numbered so far in any trace, to be used again: ``%f0``, ``%f1``, ..."""


_growing = locks.lock()
_new: Any = tuple.__new__
"""Makes a named tuple in half of the time that its class takes."""
_CHUNK = 64
"""Registers that are made at a time."""


def _grown(prefix: str, number: int) -> list[ir.Register]:
    """The next registers of a family from a number on."""
    pool, kind = _pools[prefix], TYPES[_FAMILIES[prefix][0]]
    with _growing:
        pool += [_new(ir.Register, (f"{prefix}{n}", kind)) for n in range(len(pool), number + _CHUNK)]
    return pool[number : number + _CHUNK]


class RegisterSupply(dict[ScalarType, Callable[[], ir.Register]]):
    """By type, what gives the next register without a name; ``registers`` gets the first of each family at once.

    Nothing here runs in Python for a register that was ever numbered before. So how many were given is known only at
    the end, from the number of the next.
    """

    def __init__(self, registers: list[ir.Register]) -> None:
        super().__init__()
        self._registers = registers
        self._families: dict[str, Callable[[], ir.Register]] = {}

    def __missing__(self, type: ScalarType) -> Callable[[], ir.Register]:
        prefix = _prefix_of[type.register]
        if prefix not in self._families:
            pool = _pools[prefix]
            self._registers.append(pool[0] if pool else _grown(prefix, 0)[0])
            known = len(pool)
            more = chain.from_iterable(map(_grown, repeat(prefix), count(known, _CHUNK)))
            self._families[prefix] = chain(islice(pool, known), more).__next__
        self[type] = self._families[prefix]
        return self[type]

    def given(self) -> Iterator[ir.Register]:
        """All that were given but the first of each family."""
        for prefix, following in self._families.items():
            yield from _pools[prefix][1 : int(following().name[len(prefix) :])]


@lru_cache(1024)
def stem_of(name: str, sigil: str) -> str:
    """``name`` made of PTX's letters, and unlike the registers that are numbered."""
    if not (name.isascii() and name[0].isalpha() and name.isidentifier()):
        name = "v" + re.sub(r"\W|[^\x00-\x7f]", "_", name)
    return name + "_" if sigil and re.match(r"(p|b|h|r|rd|rq|f|fd)\d+$", name) else name
