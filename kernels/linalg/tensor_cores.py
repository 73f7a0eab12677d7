"""Matrix products by ``mma.sync``, for every type that it has: a ring of tiles filled by cp.async, ldmatrix, swizzled.

A block makes a tile of the result, each of its warps a part of that. An operand that is stored with k contiguous is one
tile a stage, whose rows the warps share; the other way round each warp's rows (or columns) are a tile of their own, so
that their place in memory is that of the tile.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ... import (
    Array, Kernel, ScalarType, cdiv, dynamic_shared, f32, f64, loop, mma, ptx, ptx_kernel, s8, s32, tf32, tiles, u8,
)
from .epilogue import Epilogue, applied, batches, computed

__all__ = ["LARGE", "SMALL", "Operand", "Shape", "product_kernel", "sums_of"]


class Shape(NamedTuple):
    """The tile of a block in ``warps`` (down, along) parts of ``part`` (rows, columns), and the stages of its ring."""

    warps: tuple[int, int]
    part: tuple[int, int]
    depth: int
    """Bytes along k of a stage."""
    stages: int

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return self.warps[0] * self.part[0], self.warps[1] * self.part[1]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.stages * sum(self.tile) * self.depth


LARGE = Shape((2, 4), (64, 32), 64, 4)
SMALL = Shape((2, 2), (32, 32), 64, 3)


def sums_of(dtype: ScalarType) -> ScalarType:
    """The type of the sums of products of a type."""
    return f64 if dtype is f64 else s32 if dtype in (s8, u8) else f32


class Operand:
    """The tiles of a or b: ``rows`` along m or n, of which each of ``parts`` warps has its share."""

    def __init__(self, place: Any, shape: Shape, axis: int, dtype: ScalarType, contiguous: bool) -> None:
        self.contiguous, self.parts, self.threads = contiguous, shape.warps[axis], shape.threads
        self.rows, self.depth = shape.part[axis], shape.depth // dtype.bytes
        place = place.cast(dtype)
        if contiguous:
            self.ring = tiles.Ring(place, shape.stages, self.rows * self.parts, self.depth, shape.depth)
        else:
            swizzle = min(128, self.rows * dtype.bytes)
            self.ring = tiles.Ring(place, shape.stages * self.parts, self.depth, self.rows, swizzle)

    def fetch(self, stage: Any, source: Any, first: Any, k: Any) -> None:
        """Begin the copies of a stage; beyond the edges of the matrix they bring zeros."""
        if self.contiguous:
            tiles.copy(self.ring[stage], source, first, k, threads=self.threads)
            return
        share = self.threads // self.parts
        part, thread = ptx.tid.x // share, ptx.tid.x % share
        tile = self.ring[stage * self.parts + part]
        tiles.copy(tile, source, k, first + part * self.rows, threads=share, thread=thread)

    def tile(self, stage: Any, part: Any) -> Any:
        """The tile of a warp, its rows along m or n first."""
        if self.contiguous:
            return self.ring[stage].part(self.rows, self.depth, part * self.rows)
        return self.ring[stage * self.parts + part].T


@cache
def product_kernel(
    a_type: ScalarType, b_type: ScalarType, epilogue: Epilogue, turned: tuple[bool, bool], batched: tuple[bool, bool],
    shape: Shape, single: bool = False,
) -> Kernel:
    """a @ b of batches ``[B, rows, columns]``; one matrix serves all where ``batched`` is false.

    Of a stored with m contiguous, and of b stored with k contiguous, ``turned`` is true, and the transpose is given.
    ``single`` takes float32 as tf32.
    """
    sums_type = sums_of(a_type)
    kinds = (tf32, tf32) if single else (a_type, b_type)
    scalar = computed(epilogue.out, sums_type)
    out_type, bias_type, residual_type = epilogue.out, epilogue.bias or a_type, epilogue.residual or a_type
    ways = "".join("t" if each else "n" for each in turned) + "".join("b" if each else "" for each in batched)
    name = f"matmul_{kinds[0]}_{kinds[1]}_{epilogue}_{ways}_{shape.tile[0]}x{shape.tile[1]}"

    @ptx_kernel(name=name, reqntid=shape.threads)
    def kernel(
        a: Array[a_type, 3], b: Array[b_type, 3], c: Array[out_type, 3], bias: Array[bias_type, 1],
        residual: Array[residual_type, 3], alpha: scalar, beta: scalar,
    ) -> None:
        batch, views = ptx.ctaid.z, (a, b, c, residual)
        left, right, target, other = batches(views, batch, batched)
        depth = left.shape[0] if turned[0] else left.shape[1]
        memory = dynamic_shared(u8, align=1024)
        own_a = Operand(memory, shape, 0, a_type, not turned[0])
        own_b = Operand(own_a.ring.end, shape, 1, b_type, turned[1])
        row, column = ptx.ctaid.y * shape.tile[0], ptx.ctaid.x * shape.tile[1]
        warp = ptx.tid.x >> 5
        down, along = (warp // shape.warps[1], warp % shape.warps[1])

        def fetch(step: Any) -> None:
            stage = step % shape.stages
            own_a.fetch(stage, left, row, step * own_a.depth)
            own_b.fetch(stage, right, column, step * own_b.depth)
            ptx.cp.async_.commit_group()

        for stage in range(shape.stages - 1):
            fetch(stage)
        sums = mma.zeros(*shape.part, sums_type)
        with loop(cdiv(depth, own_a.depth)) as step:
            ptx.cp.async_.wait_group(shape.stages - 2)
            ptx.bar.sync(0)  # the copies of all threads are there, and all are done with the stage before
            fetch(step + (shape.stages - 1))
            stage = step % shape.stages
            first, second = own_a.tile(stage, down), own_b.tile(stage, along).T
            if single:
                first, second = first.cast(tf32), second.cast(tf32)
            mma.multiply(sums, first, second)
        ptx.cp.async_.wait_all()
        row, column = row + down * shape.part[0], column + along * shape.part[1]
        if epilogue.plain:
            sums.store(target, row, column)
            return
        for y, x, value in sums:
            i, j = y + row, x + column
            result = applied(epilogue, value, i, j, bias, other, alpha, beta)
            inside = (i < target.shape[0]) & (j < target.shape[1])
            target.at(i, j).store(0, result.to(epilogue.out), pred=inside)

    return kernel
