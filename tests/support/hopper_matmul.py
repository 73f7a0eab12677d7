"""A matrix product as Hopper's kernels are made: TMA into a ring of stages, a warp that loads, two warpgroups of wgmma.

``c = a @ b.T`` with a (m, k) and b (n, k) of bf16, c (m, n) of f32, in tiles of 128 x 128 x 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl import (
    Array, Pipeline, TensorMap, bf16, dynamic_shared, f32, loop, ptx, ptx_kernel, tensor_map, tiles, tma, u32, wgmma,
    when,
)

__all__ = ["STAGES", "TILE", "kernel", "launch", "matmul"]

TILE, DEPTH, STAGES = 128, 64, 3
_BYTES = 2 * TILE * DEPTH * 2


def kernel(columns: int = TILE, stages: int = STAGES) -> Any:
    """The product in tiles of so many columns, by a ring of so many stages."""
    @ptx_kernel
    def matmul(a: TensorMap, b: TensorMap, c: Array[f32, 2], rounds: u32) -> None:
        tiles_a = tiles.Ring(dynamic_shared(bf16, align=1024), stages, TILE, DEPTH)
        tiles_b = tiles.Ring(tiles_a.end, stages, columns, DEPTH)
        pipe = Pipeline(stages, consumers=2, nbytes=(TILE + columns) * DEPTH * 2)
        thread = ptx.tid.x
        column, row = ptx.ctaid.x * columns, ptx.ctaid.y * TILE
        with when(thread == 256):
            producer = pipe.producer()
            with loop(0, rounds * (DEPTH * stages), DEPTH * stages) as k:
                for stage, slot in enumerate(producer.turn()):
                    tma.load(tiles_a[slot], a, (row, k + stage * DEPTH), slot.full)
                    tma.load(tiles_b[slot], b, (column, k + stage * DEPTH), slot.full)
        with when(thread < 256):
            consumer, mine = pipe.consumer(), wgmma.number() * 64
            sums = wgmma.zeros(64, columns)
            with loop(rounds):
                for slot in consumer.turn():
                    wgmma.fence()
                    wgmma.multiply(sums, tiles_a[slot].part(64, DEPTH, mine), tiles_b[slot].T)
                    wgmma.commit()
                    wgmma.wait()
                    slot.release(pred=(thread & 127) == 0)
            sums.store(c, row + mine, column)

    return matmul


matmul = kernel()


def launch(a: Any, b: Any, c: Any, **options: Any) -> None:
    """The product of two arrays, any number of tiles."""
    (m, k), n = a.shape, b.shape[0]
    maps = [tensor_map(each, (TILE, DEPTH), swizzle=128) for each in (a, b)]
    grid = -(-n // TILE), -(-m // TILE)
    rounds = np.uint32(-(-k // (DEPTH * STAGES)))
    options = {"backend": "emulator", **options}
    matmul.configure(grid, 288, shared=STAGES * _BYTES, **options)(*maps, c, rounds)
