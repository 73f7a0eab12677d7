"""What the model is fitted to, and how far it is off: the figures that ``python tests/bench/forecast.py`` prints.

The bench runs kernels whose times on a Hopper GPU are published and compares; nothing here is set for a single kernel.
"""

from __future__ import annotations

__all__ = ["EXPONENT", "error_of"]

EXPONENT = 2.75
"""Fitted: bounds overlap, but not wholly. The time of several is the norm of this order of their times."""

ERRORS = {"memory": 1.23, "L2 cache": 1.22, "launch": 1.22}
"""By kind of bound, how far the calibrated kernels of that bound are off: the root mean square of the logarithm, as a
factor. Of kinds with fewer than five rows it is that of all rows."""
UNKNOWN = 2.0
"""Of bounds that no published figure has been compared with: a guess."""


def error_of(kind: str) -> float:
    """The factor by which a time that is bound by ``kind`` may be off, up or down."""
    return ERRORS.get(kind, UNKNOWN)
