"""Matrix products of float32 by fused multiply-adds: tiles in shared memory, a part of one in a thread's registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ... import Array, Kernel, f32, loop, minimum, ptx, ptx_kernel, reg, select, shared, when
from .epilogue import Epilogue, applied, batches

__all__ = ["DEPTH", "PART", "THREADS", "TILE", "product_kernel", "products"]

TILE = 64
DEPTH = 16
PART = 4
"""Rows and columns of a thread."""
THREADS = (TILE // PART) ** 2


def fetch(source: Any, tile: Any, first: Any, k: Any, contiguous: bool) -> None:
    """Copy a stage of an operand to ``tile[k, row]``, 0 beyond its edges; ``contiguous`` is k, else the row.

    All loads are made before the first number is stored.
    """
    rows, depth = (source.shape[0], source.shape[1]) if contiguous else (source.shape[1], source.shape[0])
    found = []
    for step in range(TILE * DEPTH // THREADS):
        element = ptx.tid.x + step * THREADS
        along, across = (element % DEPTH, element // DEPTH) if contiguous else (element // TILE, element % TILE)
        row, column = first + across, k + along
        at = minimum(row, rows - 1), minimum(column, depth - 1)
        value = source[at if contiguous else at[::-1]]
        found.append((along, across, select((row < rows) & (column < depth), value, 0.0)))
    for along, across, value in found:
        tile[along, across] = value


def products(
    sources: tuple[Any, Any], contiguous: tuple[bool, bool], row: Any, column: Any, begin: Any, end: Any
) -> Iterator[tuple[Any, Any, Any]]:
    """The tile from ``row`` and ``column`` on, of k from ``begin`` to ``end``: a block's, of `THREADS` threads.

    Of each number of this thread: its row, its column, and the sum. ``contiguous`` is as of :func:`fetch`.
    """
    first, second = shared(f32, DEPTH, TILE + 4, align=16), shared(f32, DEPTH, TILE + 4, align=16)
    down, along = (ptx.tid.x // (TILE // PART)) * PART, (ptx.tid.x % (TILE // PART)) * PART
    sums = [[reg(f32, 0.0) for _ in range(PART)] for _ in range(PART)]
    with loop(begin, end, DEPTH) as k:
        fetch(sources[0], first, row, k, contiguous[0])
        fetch(sources[1], second, column, k, contiguous[1])
        ptx.bar.sync(0)
        for step in range(DEPTH):
            mine, other = first.at(step, down).load(width=PART), second.at(step, along).load(width=PART)
            for x, line in zip(mine, sums):
                for y, total in zip(other, line):
                    ptx.fma.rn.f32(x, y, total, out=total)
        ptx.bar.sync(0)
    for i, line in enumerate(sums):
        for j, total in enumerate(line):
            yield row + down + i, column + along + j, total


@cache
def product_kernel(epilogue: Epilogue, turned: tuple[bool, bool], batched: tuple[bool, bool]) -> Kernel:
    """As that of :mod:`.tensor_cores`, for float32 whose rows may begin anywhere."""
    out_type, bias_type, residual_type = epilogue.out, epilogue.bias or f32, epilogue.residual or f32
    ways = "".join("t" if each else "n" for each in turned) + "".join("b" if each else "" for each in batched)

    @ptx_kernel(name=f"matmul_f32_simt_{epilogue}_{ways}", reqntid=THREADS)
    def kernel(
        a: Array[f32, 3], b: Array[f32, 3], c: Array[out_type, 3], bias: Array[bias_type, 1],
        residual: Array[residual_type, 3], alpha: f32, beta: f32,
    ) -> None:
        batch, views = ptx.ctaid.z, (a, b, c, residual)
        left, right, target, rest = batches(views, batch, batched)
        depth = left.shape[0] if turned[0] else left.shape[1]
        row, column, contiguous = ptx.ctaid.y * TILE, ptx.ctaid.x * TILE, (not turned[0], turned[1])
        for y, x, total in products((left, right), contiguous, row, column, 0, depth):
            with when((y < target.shape[0]) & (x < target.shape[1])):
                value = total.copy()
                if not epilogue.plain:
                    value = applied(epilogue, value, y, x, bias, rest, alpha, beta)
                target[y, x] = value.to(epilogue.out)

    return kernel
