"""Integer operations on the numbers of all threads of a block at once, where each of them is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["OPERATIONS", "UNSIGNED", "bits_of", "compared"]

Numbers = Any


def bits_of(numbers: Numbers, width: int, signed: bool = False) -> Numbers:
    """The low bits of some numbers, read as signed or not."""
    if width >= 64:
        return numbers
    low = numbers & ((1 << width) - 1)
    return np.where(low >> (width - 1) & 1, low - (1 << width), low) if signed else low


def _quotient(a: Numbers, b: Numbers) -> Numbers:
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, -1, np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe)))


def _remainder(a: Numbers, b: Numbers) -> Numbers:
    return np.where(b == 0, a, a - _quotient(a, b) * b)


def _left(a: Numbers, b: Numbers) -> Numbers:
    return np.where(b > 31, 0, a << np.minimum(b, 31))


def _right(a: Numbers, b: Numbers) -> Numbers:
    return a >> np.minimum(b, 62)


OPERATIONS: dict[str, Callable[..., Numbers]] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum,
    "div": _quotient, "rem": _remainder, "shl": _left, "shr": _right, "mul": np.multiply,
}
"""By opcode, of operands of at most 32 bits as Python would have them; the result is cut to its width."""


UNSIGNED = {"lo": "lt", "hs": "ge", "ls": "le", "hi": "gt"}
"""Comparisons that are unsigned whatever the type."""


def compared(test: str, a: Numbers, b: Numbers) -> Numbers:
    """The answers to a comparison."""
    results: dict[str, Callable[[], Numbers]] = {
        "lt": lambda: a < b, "le": lambda: a <= b, "gt": lambda: a > b, "ge": lambda: a >= b,
        "eq": lambda: a == b, "ne": lambda: a != b,
    }
    return results[test]()
