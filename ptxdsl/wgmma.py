"""Matrix products of a warpgroup by ``wgmma`` (sm_90a): of tiles in shared memory, into sums in registers.

Plain Python functions on the public language, traced in place. A warpgroup is four warps of which the first has a
number that is a multiple of four; all 128 threads get here together. ``wgmma.multiply(sums, a, b)`` adds ``a @ b``
with a (m, k), b (k, n), sums (m, n), m a multiple of 64: ``a`` a `Tile`, or a `Fragment` in registers, ``b`` a `Tile`.
A tile that is stored with k along its rows is K-major; ``b`` of a matrix that is stored (n, k) is ``tile.T``. The
descriptors follow from the tiles, and the instruction from the types, which are those of `ptxdsl.mma` but for f64.

A product runs on behind the call. The usual order is::

    wgmma.fence()                    # before the first product, and after sums or fragments were changed
    wgmma.multiply(sums, a, b)
    wgmma.commit()
    wgmma.wait(0)                    # then sums may be read, and the tiles written

What ordinary stores wrote to a tile needs ``tma.fence()`` by its writers and a barrier before; what a tensor copy
brought, the wait for its mbarrier alone. The assembler waits for itself, and says so (C7510 and the like), where sums
are touched between product and wait.

PTX ISA, section 9.7.15 (wgmma).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import mma
from .errors import PtxTypeError, UnknownInstruction
from .isa import lookup
from .isa.matrix_descriptors import descriptor as bits_of
from .language import Value, ptx
from .language.block_needs import needs_block, needs_flat_block
from .language.errors import described, located
from .mma import Accumulator, Fragment, check_product
from .mma.descriptors import STEP, address, distances, moves
from .mma.operands import kind_named, multiple, predicate
from .mma.sums import accumulator
from .tiles import Tile
from .types import ScalarType, f16, f32, s32, u64

__all__ = ["commit", "descriptor", "fence", "load_a", "multiply", "number", "wait", "zeros"]

_ROWS = 64
"""Of a product of one instruction."""


def number() -> Any:
    """The number of the warpgroup in a block of one dimension: a u32."""
    needs_flat_block("wgmma.number")
    return ptx.tid.x >> 7


def zeros(rows: int, columns: int, dtype: ScalarType = f32) -> Accumulator:
    """Sums of a (rows, columns) matrix of the warpgroup, all 0: rows a multiple of 64, columns of 8, up to 256.

    f32, f16 or s32. ``multiply(..., accumulate=False)`` begins without them being read.
    """
    if dtype not in (f16, f32, s32):
        raise located(PtxTypeError, f"sums of {kind_named(dtype)}", "f32, f16 or s32")
    multiple("rows", rows, _ROWS)
    multiple("columns", columns, 8)
    if columns > 256:
        raise located(PtxTypeError, f"sums of {columns} columns", "256 at most; several sums side by side")
    needs_block("wgmma.zeros", "launch whole warpgroups, of 128 threads, and as many more as there are", least=128)
    needs_flat_block("wgmma.zeros")
    warp = ((ptx.tid.x >> 5) & 3) << 4
    return accumulator(dtype, list(range(0, rows, _ROWS)), columns, (rows, columns), warp, 4)


def fence() -> None:
    """Order what the threads did to registers, sums and fragments, before the products behind it."""
    ptx.wgmma.fence.sync.aligned()


def commit() -> None:
    """Make a group of the products since the last one."""
    ptx.wgmma.commit_group.sync.aligned()


def wait(left: int = 0) -> None:
    """Wait until at most the last ``left`` groups, 0 to 7, are pending."""
    ptx.wgmma.wait_group.sync.aligned(left)


def multiply(
    sums: Accumulator, a: Any, b: Any, *, accumulate: Any = True, negate_a: bool = False, negate_b: bool = False
) -> None:
    """Add ``a @ b`` to ``sums``, or, where ``accumulate`` does not hold, set them to it: a bool or a predicate.

    One instruction for 64 rows and 32 bytes of k; it ends at ``wait``. ``negate_a`` and ``negate_b``: of floats, the
    product with the sign changed.

    >>> import numpy as np
    >>> from ptxdsl import Array, dynamic_shared, f16, f32, ptx, ptx_kernel, tiles, tma, wgmma
    >>> @ptx_kernel
    ... def product(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2]):
    ...     left = tiles.Tile(dynamic_shared(f16, align=1024), 64, 64)
    ...     right = tiles.Tile(dynamic_shared(f16, offset=left.nbytes), 64, 64)
    ...     tiles.copy(left, a, 0, 0, threads=128)
    ...     tiles.copy(right, b, 0, 0, threads=128)
    ...     ptx.cp.async_.wait_all()
    ...     tma.fence()
    ...     ptx.bar.sync(0)
    ...     sums = wgmma.zeros(64, 64)
    ...     wgmma.fence()
    ...     wgmma.multiply(sums, left, right)
    ...     wgmma.commit()
    ...     wgmma.wait(0)
    ...     sums.store(c)
    >>> a, b = np.eye(64, 64, 3, np.float16), np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    >>> c = np.zeros((64, 64), np.float32)
    >>> product.configure(1, 128, shared=16384, backend="emulator")(a, b, c)
    >>> bool((c[:61] == b[3:]).all())
    True
    """
    if not isinstance(sums, Accumulator):
        raise located(PtxTypeError, f"sums are {described(sums)}", "`sums = wgmma.zeros(64, 128)`")
    check_product(sums, a, b, "wgmma.multiply", 4)
    multiple("rows", a.shape[0], _ROWS, " of a")
    k = STEP // a.dtype.bytes
    multiple("columns", a.shape[1], k, " of a")
    name = _instruction(b.shape[1], k, sums.dtype, a.dtype, b.dtype)
    left, right = _operand(a, "a"), _operand(b, "b")
    signs = () if sums.dtype is s32 else (-1 if negate_a else 1, -1 if negate_b else 1)
    if sums.dtype is s32 and (negate_a or negate_b):
        raise located(PtxTypeError, "a product of integers has no sign to change", "subtract: floats only")
    if a.dtype.bits == 16:
        signs += (*(() if isinstance(a, Fragment) else (int(a.transposed),)), int(not b.transposed))
    first = predicate(accumulate)
    always = first if accumulate is True else None
    for row, registers in enumerate(sums.blocks):
        for step in range(a.shape[1] // k):
            if step and always is None:
                always = predicate(True)
            scale = always if step else first
            ptx[name](registers, left(row, step), right(0, step), scale, *signs)


def load_a(
    source: Any, rows: int | None = None, columns: int | None = None, *, row: Any = 0, column: Any = 0
) -> Fragment:
    """Load ``a`` to registers: all of a `Tile`, or a part of a view; rows a multiple of 64. See ``mma.load_a``."""
    if isinstance(source, Tile):
        rows, columns = rows or source.shape[0], columns or source.shape[1]
    multiple("rows", rows, _ROWS, " of a")
    multiple("columns", columns, 1, " of a")
    assert rows is not None and columns is not None
    blocks = {}
    needs_flat_block("wgmma.load_a")
    warp = ((ptx.tid.x >> 5) & 3) << 4
    for first in range(0, rows, _ROWS):
        start = warp + (row + first) if isinstance(row, Value) or row + first else warp
        own = mma.load_a(source, 16, columns, row=start, column=column)
        blocks.update({(first // _ROWS, step): registers for (_, step), registers in own.blocks.items()})
    return Fragment("a", source.dtype, (rows, columns), blocks, 4)


def _instruction(columns: int, k: int, d: ScalarType, a: ScalarType, b: ScalarType) -> str:
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k{k}.{d}.{a}.{b}"
    try:
        lookup(name)
    except UnknownInstruction:
        raise located(
            PtxTypeError, f"wgmma has no product of {columns} columns of {a} and {b} into {d}",
            "8, 16, 24, 32 columns, then multiples of 16" if d is s32 else "multiples of 8, up to 256",
        ) from None
    return name


# ---------------------------------------------------------------------------------------------------------------------
# Operands


def _operand(source: Any, side: str) -> Callable[[int, int], Any]:
    """What gives the operand of a step along k, of the 64 rows from a multiple of 64 on: a descriptor, or registers."""
    if isinstance(source, Fragment):
        return lambda row, step: source.blocks[row, step]
    first = descriptor(source, side)
    rows = _ROWS if side == "a" else 0

    def operand(row: int, step: int) -> Any:
        offset = moves(source, side, row * rows, step)
        return first + offset if offset else first

    return operand


def descriptor(tile: Tile, side: str) -> Any:
    """The matrix descriptor of a tile as ``"a"`` or ``"b"`` of a product: a u64, for instructions written out.

    Of a part of a tile it is that of the whole; see `multiply` for what is added to go on along k.
    """
    leading, stride = distances(tile, side, (16,))
    return address(tile).to(u64) + bits_of(0, leading, stride, tile.swizzle)
