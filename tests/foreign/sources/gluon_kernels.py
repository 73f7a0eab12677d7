"""Kernels in Gluon, where layouts, barriers and partitions of warps are explicit; loaded where they are compiled."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
from typing import Any

os.environ["TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"] = "1"  # it takes annotations for uses of what they name

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, TensorMemoryScalesLayout, allocate_tensor_memory, clc, tcgen05_commit,
    tcgen05_mma, tcgen05_mma_scaled,
)
from triton.experimental.gluon.language.nvidia.blackwell import tma as rows
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait,
)

from triton_kernels import Recipe

__all__ = ["KERNELS"]


@gluon.jit
def copies(x: Any, y: Any, n: Any, BLOCK: gl.constexpr, STAGES: gl.constexpr) -> None:
    """y = 2 * x by cp.async into a ring of stages, with groups."""
    wide: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK], flat)
    i = gl.arange(0, BLOCK, wide)
    turns = gl.cdiv(n, BLOCK)
    for stage in gl.static_range(STAGES - 1):
        async_copy.async_load(ring.index(stage), x + stage * BLOCK + i, mask=stage * BLOCK + i < n)
        async_copy.commit_group()
    for turn in range(turns):
        ahead = turn + STAGES - 1
        async_copy.async_load(ring.index(ahead % STAGES), x + ahead * BLOCK + i, mask=ahead * BLOCK + i < n)
        async_copy.commit_group()
        async_copy.wait_group(STAGES - 1)
        gl.barrier()
        gl.store(y + turn * BLOCK + i, ring.index(turn % STAGES).load(wide) * 2, mask=turn * BLOCK + i < n)
        gl.barrier()


@gluon.jit
def arrivals(x: Any, y: Any, n: Any, BLOCK: gl.constexpr) -> None:
    """The same by one stage and an mbarrier on which the copies arrive."""
    wide: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    stage = gl.allocate_shared_memory(gl.float32, [BLOCK], flat)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    i = gl.arange(0, BLOCK, wide)
    phase = 0
    for start in range(0, n, BLOCK):
        async_copy.async_load(stage, x + start + i, mask=start + i < n)
        async_copy.mbarrier_arrive(bar)
        mbarrier.arrive(bar)
        mbarrier.wait(bar, phase)
        phase ^= 1
        gl.store(y + start + i, stage.load(wide) * 2, mask=start + i < n)
        gl.barrier()
    mbarrier.invalidate(bar)


@gluon.jit
def reduced(x: Any, out: Any, KIND: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr) -> None:
    """Tiles of x along the first axis are reduced into the tile of out by tensor copies."""
    tile = gl.allocate_shared_memory(x.dtype, [ROWS, COLUMNS], x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.nbytes_per_cta)
    tma.async_load(x, [gl.program_id(0) * ROWS, gl.program_id(1) * COLUMNS], bar, tile)
    mbarrier.wait(bar, 0)
    at = [0, gl.program_id(1) * COLUMNS]
    if KIND == "add":
        tma.async_atomic_add(out, at, tile)
    elif KIND == "max":
        tma.async_atomic_max(out, at, tile)
    else:
        tma.async_atomic_xor(out, at, tile)
    tma.store_wait(0, read_only=False)
    mbarrier.invalidate(bar)


@gluon.jit
def wgmma(a: Any, b: Any, c: Any, K: Any, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
          STAGES: gl.constexpr, REGISTERS: gl.constexpr) -> None:
    """A tile of a @ b by TMA into a ring, and products of which one is in flight; a from registers if asked."""
    left = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    bars = mbarrier.allocate_mbarrier(batch=STAGES)
    for stage in gl.static_range(STAGES):
        mbarrier.init(bars.index(stage), count=1)
    i, j = gl.program_id(0) * BM, gl.program_id(1) * BN
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    sums = gl.zeros((BM, BN), gl.float32, layout)
    turns = gl.cdiv(K, BK)
    for stage in gl.static_range(STAGES - 1):
        mbarrier.expect(bars.index(stage), a.nbytes_per_cta + b.nbytes_per_cta, pred=stage < turns)
        tma.async_load(a, [i, stage * BK], bars.index(stage), left.index(stage), pred=stage < turns)
        tma.async_load(b, [stage * BK, j], bars.index(stage), right.index(stage), pred=stage < turns)
    for turn in range(turns):
        at = turn % STAGES
        mbarrier.wait(bars.index(at), turn // STAGES & 1)
        if REGISTERS:
            x = left.index(at).load(gl.DotOperandLayout(0, layout, 2))
            sums = warpgroup_mma(x * 2, right.index(at), sums, is_async=True)
            sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
            gl.barrier()
            ahead = turn + STAGES - 1
            again = ahead < turns
        else:
            sums = warpgroup_mma(left.index(at), right.index(at), sums, is_async=True)
            sums = warpgroup_mma_wait(num_outstanding=1, deps=(sums,))
            ahead = turn + STAGES - 2
            again = (ahead < turns) & (turn > 0)
        to = ahead % STAGES
        mbarrier.expect(bars.index(to), a.nbytes_per_cta + b.nbytes_per_cta, pred=again)
        tma.async_load(a, [i, ahead * BK], bars.index(to), left.index(to), pred=again)
        tma.async_load(b, [ahead * BK, j], bars.index(to), right.index(to), pred=again)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [i, j], out)
    tma.store_wait(0)


@gluon.jit
def load_part(a: Any, b: Any, left: Any, right: Any, full: Any, empty: Any, i: Any, j: Any, turns: Any,
              BK: gl.constexpr, STAGES: gl.constexpr) -> None:
    """The warp that loads."""
    for turn in range(turns):
        stage = turn % STAGES
        mbarrier.wait(empty.index(stage), turn // STAGES & 1 ^ 1)
        mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [i, turn * BK], full.index(stage), left.index(stage))
        tma.async_load(b, [turn * BK, j], full.index(stage), right.index(stage))


@gluon.jit
def product_part(c: Any, left: Any, right: Any, full: Any, empty: Any, i: Any, j: Any, turns: Any, BM: gl.constexpr,
                 BN: gl.constexpr, STAGES: gl.constexpr) -> None:
    """The warps that multiply, and store the tile."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    sums = gl.zeros((BM, BN), gl.float32, layout)
    for turn in range(turns):
        stage = turn % STAGES
        mbarrier.wait(full.index(stage), turn // STAGES & 1)
        sums = warpgroup_mma(left.index(stage), right.index(stage), sums)
        mbarrier.arrive(empty.index(stage))
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [i, j], out)
    tma.store_wait(0)


@gluon.jit
def specialised(a: Any, b: Any, c: Any, K: Any, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
                STAGES: gl.constexpr) -> None:
    """A warp that loads beside the warps that multiply, with registers handed over."""
    left = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    i, j, turns = gl.program_id(0) * BM, gl.program_id(1) * BN, gl.cdiv(K, BK)
    gl.warp_specialize([
        (product_part, (c, left, right, full, empty, i, j, turns, BM, BN, STAGES)),
        (load_part, (a, b, left, right, full, empty, i, j, turns, BK, STAGES)),
    ], [1], [24])


@gluon.jit
def cluster(a: Any, b: Any, c: Any, K: Any, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr) -> None:
    """Two blocks of a cluster share the tile of b, which comes by multicast."""
    left = gl.allocate_shared_memory(a.dtype, [BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [BK, BN], b.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    gl.barrier(cluster=True)
    i, j = gl.program_id(0) * BM, gl.program_id(1) * BN
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16], [[1, 0]])
    sums = gl.zeros((BM, BN), gl.float32, layout)
    for turn in range(gl.cdiv(K, BK)):
        mbarrier.expect(bar, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [i, turn * BK], bar, left)
        tma.async_load(b, [turn * BK, j], bar, right, multicast=True)
        mbarrier.wait(bar, turn & 1)
        sums = warpgroup_mma(left, right, sums)
        gl.barrier(cluster=True)
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [i, j], out)
    tma.store_wait(0)


@gluon.jit
def tcgen05(a: Any, b: Any, c: Any, K: Any, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
            TWO: gl.constexpr) -> None:
    """A tile by products into tensor memory; with TWO, one product of both blocks of a cluster."""
    left = gl.allocate_shared_memory(a.dtype, [BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [BK, BN], b.layout)
    loaded = mbarrier.allocate_mbarrier(two_ctas=TWO)
    done = mbarrier.allocate_mbarrier(two_ctas=False)
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    if TWO:
        gl.barrier(cluster=True)
    split: gl.constexpr = [[1, 0]] if TWO else []
    layout: gl.constexpr = TensorMemoryLayout([128, BN], 1, cga_layout=split, two_ctas=TWO)
    sums = allocate_tensor_memory(gl.float32, [BM, BN], layout)
    i, j = gl.program_id(0) * BM, gl.program_id(1) * BN
    for turn in range(gl.cdiv(K, BK)):
        mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [i, turn * BK], loaded, left)
        tma.async_load(b, [turn * BK, j], loaded, right)
        mbarrier.wait(loaded, turn & 1)
        tcgen05_mma(left, right, sums, use_acc=turn != 0)
        tcgen05_commit(done, descs=[left, right] if TWO else ())
        mbarrier.wait(done, turn & 1)
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    out.store(sums.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [i, j], out)
    tma.store_wait(0)


@gluon.jit
def load_tiles(a: Any, b: Any, left: Any, right: Any, full: Any, empty: Any, turns: Any, columns: Any, tiles: Any,
               BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr) -> None:
    """The warp that loads, tile after tile."""
    number = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        i, j = tile // columns * BM, tile % columns * BN
        for turn in range(turns):
            stage = number % STAGES
            mbarrier.wait(empty.index(stage), number // STAGES & 1 ^ 1)
            mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [i, turn * BK], full.index(stage), left.index(stage))
            tma.async_load(b, [turn * BK, j], full.index(stage), right.index(stage))
            number += 1


@gluon.jit
def multiply_tiles(left: Any, right: Any, sums: Any, full: Any, empty: Any, made: Any, taken: Any, turns: Any,
                   tiles: Any, STAGES: gl.constexpr) -> None:
    """The warp that begins the products, of two accumulators in turn."""
    number, made_so_far = 0, 0
    for _ in range(gl.program_id(0), tiles, gl.num_programs(0)):
        which = made_so_far & 1
        mbarrier.wait(taken.index(which), made_so_far // 2 & 1 ^ 1)
        for turn in range(turns):
            stage = number % STAGES
            mbarrier.wait(full.index(stage), number // STAGES & 1)
            tcgen05_mma(left.index(stage), right.index(stage), sums.index(which), use_acc=turn != 0,
                        mbarriers=[empty.index(stage)])
            number += 1
        tcgen05_commit(made.index(which))
        made_so_far += 1  # noqa: SIM113


@gluon.jit
def store_tiles(c: Any, sums: Any, made: Any, taken: Any, columns: Any, tiles: Any, BM: gl.constexpr,
                BN: gl.constexpr) -> None:
    """The warps that store the tiles."""
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    made_so_far = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        which = made_so_far & 1
        mbarrier.wait(made.index(which), made_so_far // 2 & 1)
        values = sums.index(which).load()
        mbarrier.arrive(taken.index(which))
        tma.store_wait(0)
        out.store(values.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [tile // columns * BM, tile % columns * BN], out)
        made_so_far += 1  # noqa: SIM113
    tma.store_wait(0)


@gluon.jit
def tcgen05_specialised(a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: gl.constexpr, BN: gl.constexpr,
                        BK: gl.constexpr, STAGES: gl.constexpr) -> None:
    """Persistent: a warp loads, a warp multiplies, a warpgroup stores."""
    left = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    made, taken = mbarrier.allocate_mbarrier(batch=2), mbarrier.allocate_mbarrier(batch=2)
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    for which in gl.static_range(2):
        mbarrier.init(made.index(which), count=1)
        mbarrier.init(taken.index(which), count=1)
    layout: gl.constexpr = TensorMemoryLayout([128, BN], 1)
    sums = allocate_tensor_memory(gl.float32, [2, BM, BN], layout)
    turns, columns = gl.cdiv(K, BK), gl.cdiv(N, BN)
    tiles = gl.cdiv(M, BM) * columns
    gl.warp_specialize([
        (store_tiles, (c, sums, made, taken, columns, tiles, BM, BN)),
        (load_tiles, (a, b, left, right, full, empty, turns, columns, tiles, BM, BN, BK, STAGES)),
        (multiply_tiles, (left, right, sums, full, empty, made, taken, turns, tiles, STAGES)),
    ], [1, 1], [24, 24])


@gluon.jit
def scaled(a: Any, b: Any, a_scale: Any, b_scale: Any, c: Any, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
           COPIED: gl.constexpr) -> None:
    """One tile of e4m3 with scales of 32 elements, which are stored to tensor memory, or copied there."""
    left = gl.allocate_shared_memory(a.dtype, [BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [BN, BK], b.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [0, 0], bar, left)
    tma.async_load(b, [0, 0], bar, right)
    mbarrier.wait(bar, 0)
    S: gl.constexpr = BK // 32
    scales: gl.constexpr = TensorMemoryScalesLayout()
    of_a = allocate_tensor_memory(gl.uint8, [BM, S], scales)
    of_b = allocate_tensor_memory(gl.uint8, [BN, S], scales)
    for_a: gl.constexpr = of_a.get_reg_layout()
    for_b: gl.constexpr = of_b.get_reg_layout()
    ra, ka = gl.arange(0, BM, gl.SliceLayout(1, for_a)), gl.arange(0, S, gl.SliceLayout(0, for_a))
    rb, kb = gl.arange(0, BN, gl.SliceLayout(1, for_b)), gl.arange(0, S, gl.SliceLayout(0, for_b))
    of_a.store(gl.load(a_scale + ra[:, None] * S + ka[None, :]))
    of_b.store(gl.load(b_scale + rb[:, None] * S + kb[None, :]))
    layout: gl.constexpr = TensorMemoryLayout([128, BN], 1)
    sums = allocate_tensor_memory(gl.float32, [BM, BN], layout)
    mbarrier.init(bar, count=1)
    tcgen05_mma_scaled(left, right.permute((1, 0)), sums, of_a, of_b, "e4m3", "e4m3", use_acc=False)
    tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    place: gl.constexpr = sums.get_reg_layout()
    i, j = gl.arange(0, BM, gl.SliceLayout(1, place)), gl.arange(0, BN, gl.SliceLayout(0, place))
    gl.store(c + i[:, None] * BN + j[None, :], sums.load())


@gluon.jit
def cancelled(x: Any, n: Any, BLOCK: gl.constexpr) -> None:
    """Blocks take the work of those that have not begun (cluster launch control)."""
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    tile, phase, more = gl.program_id(0), 0, True
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(answer, bar)
        i = tile * BLOCK + gl.arange(0, BLOCK, layout)
        gl.store(x + i, gl.load(x + i, mask=i < n) + 1, mask=i < n)
        mbarrier.wait(bar, phase)
        phase ^= 1
        result = clc.load_result(answer)
        more = result.is_canceled()
        tile = result.program_id(0) if more else 0
        gl.barrier()


@gluon.jit
def scattered(x: Any, index: Any, out: Any, ROWS: gl.constexpr, WIDTH: gl.constexpr) -> None:
    """Rows are gathered, doubled, and scattered."""
    shape: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    at = gl.load(index + gl.program_id(0) * ROWS + gl.arange(0, ROWS, gl.SliceLayout(
        0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))))
    tile = gl.allocate_shared_memory(x.dtype, [ROWS, WIDTH], x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, ROWS * x.nbytes_per_cta)
    rows.async_gather(x, at, gl.program_id(1) * WIDTH, bar, tile)
    mbarrier.wait(bar, 0)
    values = tile.load(shape)
    gl.barrier()
    tile.store(values * 2)
    fence_async_shared()
    rows.async_scatter(out, at, gl.program_id(1) * WIDTH, tile)
    tma.store_wait(0)


@gluon.jit
def convolved(x: Any, w: Any, out: Any, H: Any, W: Any, STEP: gl.constexpr, PIXELS: gl.constexpr,
              CHANNELS: gl.constexpr, FILTERS: gl.constexpr) -> None:
    """3 x 3 filters over images (N, H, W, C) as a product of pixels (im2col) and filters, which lie tap by tap."""
    left = gl.allocate_shared_memory(x.dtype, [2, PIXELS, CHANNELS], x.layout)
    right = gl.allocate_shared_memory(w.dtype, [2, CHANNELS, FILTERS], w.layout)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for stage in gl.static_range(2):
        mbarrier.init(bars.index(stage), count=1)
    start = gl.program_id(0) * PIXELS
    n, h, v = start // (H * W), start // W % H, start % W
    sums = gl.zeros((PIXELS, FILTERS), gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, FILTERS, 16]))
    for tap in gl.static_range(10):
        if tap < 9:
            at = bars.index(tap % 2)
            mbarrier.expect(at, x.nbytes_per_cta + w.nbytes_per_cta)
            tma.async_load_im2col(
                x, [n, h * STEP - 1, v * STEP - 1, 0], [tap // 3, tap % 3], at, left.index(tap % 2))
            tma.async_load(w, [tap * CHANNELS, 0], at, right.index(tap % 2))
        if tap > 0:
            mbarrier.wait(bars.index((tap - 1) % 2), (tap - 1) // 2 & 1)
            sums = warpgroup_mma(left.index((tap - 1) % 2), right.index((tap - 1) % 2), sums, is_async=True)
            sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    tile = gl.allocate_shared_memory(out.dtype, [PIXELS, FILTERS], out.layout)
    tile.store(sums.to(out.dtype))
    fence_async_shared()
    tma.async_store(out, [start, 0], tile)
    tma.store_wait(0)


def described(kind: str, box: tuple[int, ...], swizzle: int = 128, **more: Any) -> str:
    """The type of a tensor descriptor."""
    bits = {"fp16": 16, "bf16": 16, "fp8e4nv": 8, "fp32": 32, "i32": 32}[kind]
    layout = gl.NVMMASharedLayout(swizzle, bits, len(box), **more)
    return f"tensordesc<{kind}[{', '.join(map(str, box))}],{layout!r}>"


def tiles(kind: str, BM: int, BN: int, BK: int, out: str = "fp16", **more: Any) -> dict[str, str]:
    swizzle = 128 if BN * (1 if kind[-1] != "6" else 2) >= 128 else 64
    return {"a": described(kind, (BM, BK)), "b": described(kind, (BK, BN), swizzle),
            "c": described(out, (BM, BN), min(128, BN * 2)), **more}


def _of_two(BM: int, BN: int, BK: int, both: bool) -> dict[str, str]:
    """Of a cluster of two blocks, each of which has half the rows; ``both``: and half the columns of b."""
    columns = [[0, 1]] if both else [[0, 0]]
    return {"a": described("fp16", (BM, BK), cga_layout=[[1, 0]]),
            "b": described("fp16", (BK, BN), cga_layout=columns),
            "c": described("fp16", (BM, BN), cga_layout=[[1, 0]]), "K": "i32"}


_WGMMA = {"BM": 64, "BN": 128, "BK": 64, "STAGES": 4, "REGISTERS": False}
KERNELS: dict[str, Recipe] = {
    "gluon_copies": Recipe(copies, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 512, "STAGES": 3}),
    "gluon_arrivals": Recipe(arrivals, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    "gluon_add": Recipe(
        reduced, {"x": described("fp32", (32, 32)), "out": described("fp32", (32, 32))},
        {"KIND": "add", "ROWS": 32, "COLUMNS": 32}),
    "gluon_max": Recipe(
        reduced, {"x": described("i32", (16, 32), 64), "out": described("i32", (16, 32), 64)},
        {"KIND": "max", "ROWS": 16, "COLUMNS": 32}),
    "gluon_xor": Recipe(
        reduced, {"x": described("i32", (16, 32), 0), "out": described("i32", (16, 32), 0)},
        {"KIND": "xor", "ROWS": 16, "COLUMNS": 32}),
    "gluon_wgmma": Recipe(wgmma, tiles("fp16", 64, 128, 64, K="i32"), _WGMMA, targets=(90,)),
    "gluon_wgmma_registers": Recipe(
        wgmma, tiles("bf16", 64, 64, 64, "bf16", K="i32"), {**_WGMMA, "BN": 64, "REGISTERS": True}, targets=(90,)),
    **{f"gluon_convolved{step}": Recipe(
        convolved, {
            "x": described("fp16", (64, 64)).replace("desc<", "desc_im2col<").replace("],NV", "],input_rank=4,NV"),
            "w": described("fp16", (64, 32), 64), "out": described("fp16", (64, 32), 64), "H": "i32", "W": "i32"},
        {"STEP": step, "PIXELS": 64, "CHANNELS": 64, "FILTERS": 32}, targets=(90,)) for step in (1, 2)},
    "gluon_specialised": Recipe(
        specialised, tiles("fp16", 64, 128, 64, K="i32"), {"BM": 64, "BN": 128, "BK": 64, "STAGES": 3},
        targets=(90,)),
    "gluon_cluster": Recipe(
        cluster, _of_two(128, 128, 64, False), {"BM": 128, "BN": 128, "BK": 64}, {"num_ctas": 2}, (90,)),
    "gluon_tcgen05": Recipe(
        tcgen05, tiles("fp16", 128, 128, 64, K="i32"), {"BM": 128, "BN": 128, "BK": 64, "TWO": False}, targets=(100,)),
    "gluon_tcgen05_two": Recipe(
        tcgen05, _of_two(256, 128, 64, True), {"BM": 256, "BN": 128, "BK": 64, "TWO": True}, {"num_ctas": 2}, (100,)),
    "gluon_tcgen05_specialised": Recipe(
        tcgen05_specialised, tiles("fp16", 128, 64, 64, M="i32", N="i32", K="i32"),
        {"BM": 128, "BN": 64, "BK": 64, "STAGES": 3}, targets=(100,)),
    "gluon_scaled": Recipe(
        scaled, {"a": described("fp8e4nv", (128, 128)), "b": described("fp8e4nv", (64, 128)), "a_scale": "*u8",
                 "b_scale": "*u8", "c": "*fp32"}, {"BM": 128, "BN": 64, "BK": 128, "COPIED": False}, targets=(100,)),
    "gluon_cancelled": Recipe(cancelled, {"x": "*fp32", "n": "i32"}, {"BLOCK": 128}, targets=(100,)),
    "gluon_rows": Recipe(
        scattered, {"x": described("fp16", (1, 64)), "index": "*i32", "out": described("fp16", (1, 64))},
        {"ROWS": 32, "WIDTH": 64}, targets=(100,)),
}
