"""The variables of a running frame, read so that the frame keeps no copy of them.

Before Python 3.13 ``frame.f_locals`` is a dict that the frame keeps, which then holds all that the variables held. Rule
R3 counts references, so such a copy would count as a second holder, and each look would make the next one longer.
"""

from __future__ import annotations

import sys
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

__all__ = ["locals_of"]

_OWN_REFERENCES = 3
"""Those to the variables of a frame: its own, ours, and that of the call which counts them."""


def locals_of(frame: FrameType) -> dict[str, Any]:
    """What the locals of a frame hold now, and those of its closure; a copy."""
    held = frame.f_locals
    found = dict(held)
    if held.__class__ is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(held) <= _OWN_REFERENCES:
        held.clear()
    return found
