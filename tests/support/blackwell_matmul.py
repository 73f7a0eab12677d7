"""A matrix product as Blackwell's kernels are made: TMA into a ring of stages, tcgen05.mma by one thread, D in TMEM.

``c = a @ b.T`` with a (m, k) and b (n, k) of bf16, c (m, n) of f32, in tiles of 128 x 256 x 64. Warps 0 to 3 store what
tensor memory holds in the end, warp 4 loads, warp 5 multiplies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl import (
    Array, TensorMap, bf16, break_if, dynamic_shared, f32, loop, ptx, ptx_kernel, reg, s32, shared, tensor_map,
    u32, u64, when,
)
from ptxdsl.isa.instruction_descriptors import Product, Variant, encode

__all__ = ["COLUMNS", "DEPTH", "ROWS", "STAGES", "launch", "matmul"]

ROWS, COLUMNS, DEPTH, STAGES = 128, 256, 64, 3
_BYTES = 2 * (ROWS + COLUMNS) * DEPTH
_HIGH = 0x40004040
"""Of a descriptor: 8 rows are 1024 bytes, swizzled by 128."""
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
_PRODUCT = encode(Variant("f16"), Product(ROWS, COLUMNS, 16, "f32", ("bf16", "bf16")))


def _wait(bar: Any, parity: Any) -> None:
    with loop():
        break_if(ptx.mbarrier.try_wait.parity.shared.b64(bar, parity))


def _descriptor(tile: Any, depth: int) -> Any:
    low = (tile.address.bits(u32) + depth * 32) >> 4
    return ((low & 0x3FFF) | 0x10000).to(u64) | (_HIGH << 32)


@ptx_kernel
def matmul(a: TensorMap, b: TensorMap, c: Array[f32, 2], rounds: u32) -> None:
    ring = dynamic_shared(bf16, align=1024)
    tiles_a = [ring + stage * (ROWS + COLUMNS) * DEPTH for stage in range(STAGES)]
    tiles_b = [each + ROWS * DEPTH for each in tiles_a]
    full, empty, done, home = shared(u64, STAGES), shared(u64, STAGES), shared(u64, 1), shared(u32, 1)
    thread = ptx.tid.x
    column, row = ptx.ctaid.x * COLUMNS, ptx.ctaid.y * ROWS
    with when(thread == 0):
        for stage in range(STAGES):
            ptx.mbarrier.init.shared.b64(full + stage, 1)
            ptx.mbarrier.init.shared.b64(empty + stage, 1)
        ptx.mbarrier.init.shared.b64(done, 1)
        ptx.fence.proxy.async_.shared__cta()
    with when(thread >> 5 == 5):
        ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](home, COLUMNS)
    ptx["tcgen05.fence::before_thread_sync"]()
    ptx.bar.sync(0)
    ptx["tcgen05.fence::after_thread_sync"]()
    tensor = home[0]
    with when(thread == 128):
        free, k = reg(u32, 1), reg(s32, 0)
        with loop(rounds):
            for stage in range(STAGES):
                _wait(empty + stage, free)
                ptx.mbarrier.arrive.expect_tx.shared.b64(full + stage, _BYTES)
                ptx[_LOAD](tiles_a[stage], (a, (k, row.bits(s32))), full + stage)
                ptx[_LOAD](tiles_b[stage], (b, (k, column.bits(s32))), full + stage)
                k += DEPTH
            free ^= 1
    with when(thread == 160):
        parity, begun, word = reg(u32, 0), reg(u32, 0), reg(u32, _PRODUCT)
        with loop(rounds):
            for stage in range(STAGES):
                _wait(full + stage, parity)
                ptx["tcgen05.fence::after_thread_sync"]()
                for depth in range(DEPTH // 16):
                    left, right = _descriptor(tiles_a[stage], depth), _descriptor(tiles_b[stage], depth)
                    ptx["tcgen05.mma.cta_group::1.kind::f16"](tensor, left, right, word, begun != 0)
                    begun.set(1)
                ptx[_COMMIT](empty + stage)
            parity ^= 1
        ptx[_COMMIT](done)
    with when(thread < 128):
        _wait(done, 0)
        ptx["tcgen05.fence::after_thread_sync"]()
        y = row + thread
        lanes = tensor + (thread >> 5 << 21)
        with loop(0, COLUMNS, 32) as first:
            values = ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](lanes + first.bits(u32))
            ptx["tcgen05.wait::ld.sync.aligned"]()
            with when(y < c.shape[0]):
                for number, value in enumerate(values):
                    x = column + first.bits(u32) + number
                    with when(x < c.shape[1]):
                        c[y, x] = value.bits(f32)
        ptx["tcgen05.fence::before_thread_sync"]()
    ptx.bar.sync(0)
    with when(thread >> 5 == 5):
        ptx["tcgen05.fence::after_thread_sync"]()
        ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](tensor, COLUMNS)


def launch(a: Any, b: Any, c: Any, **options: Any) -> None:
    """The product of two arrays, any number of tiles."""
    (m, k), n = a.shape, b.shape[0]
    maps = tensor_map(a, (ROWS, DEPTH), swizzle=128), tensor_map(b, (COLUMNS, DEPTH), swizzle=128)
    grid = -(-n // COLUMNS), -(-m // ROWS)
    rounds = np.uint32(-(-k // (DEPTH * STAGES)))
    options = {"backend": "emulator", **options}
    matmul.configure(grid, 192, shared=STAGES * _BYTES, **options)(*maps, c, rounds)
