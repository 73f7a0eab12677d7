"""Where the rows of a sequence lie: of a batch of one length, or of sequences one behind the other (packed).

A kernel for packed sequences is given tables of where each begins, and the last one ends, in place of their lengths;
the sequence of a block is the number of its z. What no sequence has stands before the first and behind the last.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from .. import Kernel, Ptr, ScalarType, cdiv, loop, ptx, ptx_kernel, s32, u32, u64, when

from . import arguments

__all__ = ["Rows", "Side", "clear_outside", "length_type", "rows_of", "side_of"]

_WARPS = 4
"""Rows of a block that clears; one a warp."""


class Rows(NamedTuple):
    """The queries and keys of a sequence: how many they are, and where they begin in the arrays; s32."""

    queries: Any
    keys: Any
    begin: Any = 0
    key_begin: Any = 0


class Side(NamedTuple):
    """The rows of a head, of the queries or of the keys of a sequence: the first one's number, of one row a head.

    It is a u64; from a row to the next it is ``step`` more.
    """

    first: Any
    step: Any

    def at(self, row: Any) -> Any:
        """The number of a row, an s32: a u64."""
        row = row.bits(u32)
        return self.first + (row.to(u64) if self.step is None else ptx.mul.wide.u32(row, self.step))

    def pitch(self, dim: int) -> Any:
        """Elements from a row to the next: an int or a u32."""
        return dim if self.step is None else self.step * dim


def length_type(packed: bool) -> Any:
    """The type of a parameter that is the length of all sequences, or the table of where each begins."""
    return Ptr[s32] if packed else s32


def rows_of(queries: Any, keys: Any, packed: bool) -> Rows:
    """Those of the block's sequence."""
    if not packed:
        return Rows(queries, keys)
    sequence = ptx.ctaid.z
    begin, key_begin = queries[sequence], keys[sequence]
    return Rows(queries[sequence + 1] - begin, keys[sequence + 1] - key_begin, begin, key_begin)


def side_of(begin: Any, count: Any, head: Any, heads: Any, packed: bool) -> Side:
    """The rows of a head (u32) of ``heads``: packed arrays have a row of each head before the next row."""
    if packed:
        return Side(ptx.mad.wide.u32(begin.bits(u32), heads, head.to(u64)), heads)
    return Side(ptx.mul.wide.u32(ptx.ctaid.z * heads + head, count.bits(u32)), None)


@cache
def _clear_kernel(dtype: ScalarType) -> Kernel:
    """``(x, starts, sequences, rows, elements of a row)``: a row a warp."""

    @ptx_kernel(name=f"clear_rows_of_no_sequence_{dtype}", reqntid=_WARPS * 32)
    def kernel(x: Ptr[dtype], starts: Ptr[s32], sequences: u32, rows: u32, width: u32) -> None:
        row = ptx.ctaid.x * _WARPS + (ptx.tid.x >> 5)
        outside = (row.bits(s32) < starts[0]) | (row.bits(s32) >= starts[sequences])
        with when((row < rows) & outside):
            words = (x + ptx.mul.wide.u32(row, width)).cast(u32)
            with loop(ptx.laneid << 2, width * dtype.bytes // 4, 128) as word:
                words.store(word, [0] * 4)

    return kernel


def clear_outside(x: Any, starts: Any) -> None:
    """Set the rows of ``x``, ``[T, H, D]``, that no sequence has to 0; a row has a multiple of 16 bytes."""
    rows, heads, dim = x.shape
    kernel = _clear_kernel(arguments.scalar_type("x", x))
    kernel[cdiv(rows, _WARPS), _WARPS * 32](x, starts, starts.shape[0] - 1, rows, heads * dim)
