"""A matrix product as Hopper's kernels are made: TMA into a ring of stages, a warp that loads, two warpgroups of wgmma.

``c = a @ b.T`` with a (m, k) and b (n, k) of bf16, c (m, n) of f32, in tiles of 128 x 128 x 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl import (
    Array, TensorMap, bf16, break_if, dynamic_shared, f32, loop, ptx, ptx_kernel, reg, s32, shared, tensor_map,
    u32, u64, when,
)

__all__ = ["STAGES", "TILE", "launch", "matmul"]

TILE, DEPTH, STAGES = 128, 64, 3
_BYTES = 2 * TILE * DEPTH * 2
_HIGH = 0x40000040
"""Of a descriptor: 8 rows are 1024 bytes, swizzled by 128."""
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
_PRODUCT = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"


def _wait(bar: Any, number: int, parity: Any) -> None:
    with loop():
        break_if(ptx.mbarrier.try_wait.parity.shared.b64(bar + number, parity))


def _descriptor(tile: Any, row: Any, depth: int) -> Any:
    low = (tile.address.bits(u32) + row * 128 + depth * 32) >> 4
    return ((low & 0x3FFF) | 0x10000).to(u64) | (_HIGH << 32)


@ptx_kernel
def matmul(a: TensorMap, b: TensorMap, c: Array[f32, 2], rounds: u32) -> None:
    ring = dynamic_shared(bf16, align=1024)
    tiles_a, tiles_b = ([ring + (2 * stage + n) * TILE * DEPTH for stage in range(STAGES)] for n in range(2))
    full, empty = shared(u64, STAGES), shared(u64, STAGES)
    thread = ptx.tid.x
    column, row = ptx.ctaid.x * TILE, ptx.ctaid.y * TILE
    with when(thread == 0):
        for stage in range(STAGES):
            ptx.mbarrier.init.shared.b64(full + stage, 1)
            ptx.mbarrier.init.shared.b64(empty + stage, 2)
        ptx.fence.proxy.async_.shared__cta()
    ptx.bar.sync(0)
    with when(thread == 256):
        free, k = reg(u32, 1), reg(s32, 0)
        with loop(rounds):
            for stage in range(STAGES):
                _wait(empty, stage, free)
                ptx.mbarrier.arrive.expect_tx.shared.b64(full + stage, _BYTES)
                ptx[_LOAD](tiles_a[stage], (a, (k, row.bits(s32))), full + stage)
                ptx[_LOAD](tiles_b[stage], (b, (k, column.bits(s32))), full + stage)
                k += DEPTH
            free ^= 1
    with when(thread < 256):
        group = thread >> 7
        sums = [reg(f32, 0.0) for _ in range(TILE // 2)]
        parity = reg(u32, 0)
        always = group < 2
        with loop(rounds):
            for stage in range(STAGES):
                _wait(full, stage, parity)
                ptx.wgmma.fence.sync.aligned()
                for depth in range(DEPTH // 16):
                    left = _descriptor(tiles_a[stage], group * 64, depth)
                    right = _descriptor(tiles_b[stage], group * 0, depth)
                    ptx[_PRODUCT](sums, left, right, always, 1, 1, 0, 0)
                ptx.wgmma.commit_group.sync.aligned()
                ptx.wgmma.wait_group.sync.aligned(0)
                with when((thread & 127) == 0):
                    ptx.mbarrier.arrive.shared.b64(empty + stage)
            parity ^= 1
        lane = thread & 31
        for number, value in enumerate(sums):
            x = column + number // 4 * 8 + (lane & 3) * 2 + number % 2
            y = row + (thread >> 5) * 16 + (lane >> 2) + number // 2 % 2 * 8
            with when((x < c.shape[1]) & (y < c.shape[0])):
                c[y, x] = value


def launch(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], c: np.ndarray[Any, Any], **options: Any) -> None:
    """The product of two arrays, any number of tiles."""
    (m, k), n = a.shape, len(b)
    maps = [tensor_map(each, (TILE, DEPTH), swizzle=128) for each in (a, b)]
    grid = -(-n // TILE), -(-m // TILE)
    rounds = np.uint32(-(-k // (DEPTH * STAGES)))
    matmul.configure(grid, 288, shared=STAGES * _BYTES, backend="emulator", **options)(*maps, c, rounds)
