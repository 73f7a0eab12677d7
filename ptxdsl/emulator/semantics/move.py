"""``mov``, with packing and unpacking. Addresses and special registers come as values: only the engine knows them."""

from __future__ import annotations

from typing import Any

from ...isa import Form
from ..lanes import Bits, join
from . import semantics


@semantics("mov")
def _mov(form: Form, a: Bits | tuple[Bits, ...] | int) -> Any:
    if isinstance(a, tuple):
        return a if form.operands[0].count else join(list(a))
    count = form.operands[0].count
    if isinstance(a, int):
        return a
    return tuple(a.parts(a.bits // count)) if count else a
