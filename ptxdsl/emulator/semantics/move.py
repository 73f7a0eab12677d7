"""``mov``, with packing and unpacking. Addresses and special registers come as values: only the engine knows them."""

from __future__ import annotations

from typing import Any

from ...isa import Form
from .lanes import Bits, join
from . import semantics


@semantics("mov")
def _mov(form: Form, a: Bits | tuple[Bits, ...] | int) -> Any:
    if isinstance(a, tuple):
        return a if form.operands[0].count else join(list(a))
    count = form.operands[0].count
    if isinstance(a, int):
        return a
    return tuple(a.parts(a.bits // count)) if count else a


_RANK, _RANK_BITS = 24, 8
"""Where an address of shared memory says in which block of the cluster it is."""


@semantics("mapa")
def _mapa(form: Form, a: Bits, b: Bits) -> Bits:  # noqa: ARG001
    whole = (1 << a.bits) - 1
    return (a & (whole ^ (1 << _RANK_BITS) - 1 << _RANK)) | (b.zext(a.bits) << _RANK)


@semantics("getctarank")
def _getctarank(form: Form, a: Bits) -> Bits:  # noqa: ARG001
    return a.field(_RANK, _RANK_BITS).zext(32)
