"""Launches by machine code: what the first launches of a signature have found out, as tables that one routine reads.

The routine is made by LLVM once, for all kernels and all signatures, and kept on disk (:mod:`.library`). A
:class:`~ptxdsl.gpu.launch_code.layout.Plan` says what to check and what to pack for one signature; each of its
arguments has the address of a small function that does so (:mod:`.arrays`, :mod:`.numbers`). What a plan does not
take goes the long way, through all checks, which either accept or explain it.

Machine code calls documented functions of the C API only, and of the driver.
"""

from __future__ import annotations

from .layout import ASKED_OF_MAPS, MOST_AXES, NO_STREAM, Argument, Frame, Place, Plan, Plans, Tensor
from .library import address, has_slots, method, supported

__all__ = [
    "ASKED_OF_MAPS", "MOST_AXES", "NO_STREAM", "Argument", "Frame", "Place", "Plan", "Plans", "Tensor", "address",
    "has_slots", "method", "supported",
]
