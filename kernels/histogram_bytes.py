"""Integers of 8 bits that have been counted by their bits: what reaches from where to where, and the values' bins.

So bins and edges cost what 256 elements cost, and x is read once, whether a range is given or not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, f64, ptx, ptx_kernel, s32, s64, select, u32, u64, when
from .. import block

from .histogram_kernels import finder

__all__ = ["VALUES", "bins_kernel", "reach_kernel"]

VALUES = 256


def _value(dtype: ScalarType) -> Any:
    """The value that this thread has, of those with its number as bits."""
    return ptx.bfe.s32(ptx.tid.x.bits(s32), 0, 8) if dtype.is_signed else ptx.tid.x.bits(s32)


@cache
def reach_kernel(dtype: ScalarType) -> Kernel:
    """The least and the greatest value that occur, by one block."""

    @ptx_kernel(name=f"histogram_reach_{dtype}", reqntid=VALUES)
    def kernel(counts: Ptr[s64], reach: Ptr[s64]) -> None:
        value, occurs = _value(dtype), counts[ptx.tid.x] != 0
        least = block.reduce_min(select(occurs, value, VALUES), VALUES)
        most = block.reduce_max(select(occurs, value, -VALUES), VALUES)
        with when(ptx.tid.x == 0):
            reach[0], reach[1] = least.to(s64), most.to(s64)

    return kernel


@cache
def bins_kernel(kind: str, dtype: ScalarType) -> Kernel:
    """Add the counts of the values to those of their bins, by one block; kinds are those of :func:`count_kernel`."""

    @ptx_kernel(name=f"histogram_bins_{kind}_{dtype}", reqntid=VALUES)
    def kernel(counts: Ptr[s64], edges: Ptr[f64], out: Ptr[s64], bins: u32) -> None:
        at, inside = finder(kind, edges, bins)(_value(dtype))
        found = counts[ptx.tid.x]
        with when(inside & (found != 0)):
            ptx["red.global.add.u64"](out + at, found.bits(u64))

    return kernel

