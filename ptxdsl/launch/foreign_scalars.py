"""Numbers for parameters of PTX that somebody else wrote, whose types say less than the source's did.

Compilers write `.u32` for C's ``int`` as well and untyped bits for floats, so a number of the right size is taken as
the bits that it is, where our own annotations would ask for exactly one type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import TYPES, ScalarType, encode

__all__ = ["bits"]


def bits(value: Any, kind: ScalarType) -> bytes | None:
    """The bytes of a number that PTX cannot tell from one of type ``kind``; None for all others.

    >>> bits(-1, TYPES["u32"]), bits(1.0, TYPES["b32"]), bits(np.int16(-2), TYPES["u32"]), bits(1.0, TYPES["u32"])
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x80?', b'\\xfe\\xff\\xff\\xff', None)
    """
    if kind.kind not in "bus" or kind.lanes > 1:
        return None
    if isinstance(value, np.generic):
        whole = value.dtype.kind in "biu"
        if value.nbytes == kind.bytes and (whole or kind.kind == "b"):
            return value.tobytes()
        value = int(value) if whole else None
    if isinstance(value, float) and kind.kind == "b" and kind.bits in (32, 64):
        return encode(value, TYPES[f"f{kind.bits}"]).to_bytes(kind.bytes, "little")
    if not isinstance(value, int) or not -(1 << (kind.bits - 1)) <= value < 1 << kind.bits:
        return None
    return (int(value) & (1 << kind.bits) - 1).to_bytes(kind.bytes, "little")
