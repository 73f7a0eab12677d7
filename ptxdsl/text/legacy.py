"""Legacy mnemonics, of PTX before 3.2 and of targets before sm_20, as the forms that they are today.

The rules are those of NVIDIA's assembler, which still takes such text: `rcp.f32` of PTX 1.3 is approximate, `mad.f32`
is a fused operation, and on sm_1x all arithmetic on f32 flushes subnormal numbers to zero, whether it says so or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from ..errors import UnknownInstruction
from ..isa import Form, lookup

__all__ = ["Forms", "forms", "forms_of"]

Forms = Callable[[str, int], "tuple[Form, ...]"]

_APPROXIMATE = re.compile(r"(rcp|sqrt|rsqrt|sin|cos|lg2|ex2|div)((?:\.sat)?\.f32)$")
_ROUNDED = re.compile(r"(div|sqrt|mad)(\.f64)$")
_FUSED = re.compile(r"mad((?:\.ftz)?(?:\.sat)?\.f32)$")


@cache
def forms(mnemonic: str, arity: int) -> tuple[Form, ...]:
    """The forms of so many operands that a mnemonic spells."""
    return tuple(form for form in lookup(mnemonic) if len(form.operands) == arity)


def forms_of(version: tuple[int, int], target: str) -> Forms:
    """`forms`, in text of a version and for a target."""
    flushing = re.match(r"sm_1\d$", target) is not None
    if version >= (3, 2) and not flushing:
        return forms

    def legacy(mnemonic: str, arity: int) -> tuple[Form, ...]:
        return _legacy(mnemonic, arity, version < (1, 4), flushing)

    return legacy


@cache
def _legacy(mnemonic: str, arity: int, first: bool, flushing: bool) -> tuple[Form, ...]:
    spelled = re.sub(r"\s", "", mnemonic)
    if first:
        spelled = _ROUNDED.sub(r"\1.rn\2", _APPROXIMATE.sub(r"\1.approx.ftz\2", spelled))
        spelled = "rsqrt.approx.f64" if spelled == "rsqrt.f64" else spelled
    spelled = _FUSED.sub(r"mad.rn\1", spelled)
    if flushing and ".f32" in spelled and ".ftz" not in spelled and ".f64" not in spelled:
        parts = spelled.split(".")
        for at in range(1, len(parts)):
            try:
                found = forms(".".join((*parts[:at], "ftz", *parts[at:])), arity)
            except UnknownInstruction:
                continue
            if found:
                return found
    return forms(spelled, arity)
