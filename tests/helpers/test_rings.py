"""`Pipeline`, mbarriers, tensor copies and clusters: rings of every shape, against what they should have moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Array, Pipeline, Ptr, TensorMap, cluster, dynamic_shared, f16, f32, loop, mbarrier, otherwise, ptx, ptx_kernel,
    shared, tensor_map, tiles, tma, to_device, u8, u32, when,
)

Rng = np.random.Generator
SEEDS = (None, 1)


def _run(kernel: Any, grid: Any, threads: int, *arguments: Any, **options: Any) -> None:
    kernel.configure(grid, threads, **options)(*arguments)


def _ring(stages: int, items: int, way: str) -> Any:
    """Warp 0 squares rows of 32 numbers into a ring, warp 1 adds 1 to them and writes them out."""
    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], turns: u32):
        pipe = Pipeline(stages, producers=32, consumers=32)
        kept, lane = shared(u32, stages, 32), ptx.tid.x & 31

        def fill(slot: Any, item: Any) -> None:
            value = x[item * 32 + lane]
            kept[slot.index, lane] = value * value
            slot.commit()

        def use(slot: Any, item: Any) -> None:
            y[item * 32 + lane] = kept[slot.index, lane] + 1
            slot.release()

        with when(ptx.tid.x < 32):
            producer = pipe.producer()
            if way == "loop":
                with loop(turns * stages) as item:
                    fill(producer.acquire(), item)
            elif way == "unrolled":
                for item in range(items):
                    fill(producer.acquire(), item)
            else:
                with loop(turns) as turn:
                    for stage, slot in enumerate(producer.turn()):
                        fill(slot, turn * stages + stage)
        with otherwise():
            consumer = pipe.consumer()
            if way == "loop":
                with loop(turns * stages) as item:
                    use(consumer.wait(), item)
            elif way == "unrolled":
                for item in range(items):
                    use(consumer.wait(), item)
            else:
                with loop(turns) as turn:
                    for stage, slot in enumerate(consumer.turn()):
                        use(slot, turn * stages + stage)

    return kernel


@pytest.mark.parametrize(("stages", "way"), [(1, "loop"), (3, "loop"), (2, "unrolled"), (3, "turns")])
def test_rings_of_threads(rng: Rng, stages: int, way: str) -> None:
    turns = 5
    kernel = _ring(stages, stages * turns, way)
    x = rng.integers(0, 1 << 16, 32 * stages * turns, np.uint32)
    checked: list[dict[str, Any]] = [{"sanitize": "race"}] if (stages, way) == (3, "loop") else []
    for options in (*({"seed": seed} for seed in SEEDS), *checked):
        y = np.zeros_like(x)
        _run(kernel, 1, 64, x, y, turns, **options)
        np.testing.assert_array_equal(y, x * x + 1)


def test_a_ring_is_left_empty(rng: Rng) -> None:
    """A producer that has finished has seen all stages given back, in both ways of taking them."""
    @ptx_kernel
    def kernel(y: Ptr[u32]):
        pipe = Pipeline(2, producers=1, consumers=1)
        with when(ptx.tid.x == 0):
            producer = pipe.producer()
            with loop(3):
                producer.acquire().commit()
            producer.finish()
            y[0] = y[0] + 1
        with when(ptx.tid.x == 32):
            consumer = pipe.consumer()
            with loop(3):
                slot = consumer.wait()
                y[0] = y[0] * 2
                slot.release()

    for seed in range(4):
        y = np.ones(1, np.uint32)
        _run(kernel, 1, 64, y, seed=seed)
        assert y[0] == 9


@ptx_kernel
def by_cp_async(x: Array[f16, 2], y: Array[f32, 2], *, swizzle: int = 128) -> None:
    """Rows of 64 halves copied by the threads of a warp as the producers of a pipeline, and summed by another."""
    ring = tiles.Ring(dynamic_shared(f16, align=1024), 2, 32, 64, swizzle)
    pipe = Pipeline(2, producers=32, consumers=32)
    with when(ptx.tid.x < 32):
        producer = pipe.producer()
        with loop(0, x.shape[0], 32) as row:
            slot = producer.acquire()
            tiles.copy(ring[slot], x, row, 0, threads=32)
            slot.commit(copies=True)
    with otherwise():
        consumer = pipe.consumer()
        with loop(0, x.shape[0], 32) as row:
            slot = consumer.wait()
            for column in range(64):
                with when(row + (ptx.tid.x - 32) < x.shape[0]):
                    y[row + (ptx.tid.x - 32), column] = ring[slot].at(ptx.tid.x - 32, column)[0].to(f32)
            slot.release()


@pytest.mark.parametrize("swizzle", [128, 16])
def test_rings_of_copies(rng: Rng, swizzle: int) -> None:
    x = rng.standard_normal((75, 64)).astype(np.float16)[:, :61]
    y = np.full((75, 64), np.nan, np.float32)
    by_cp_async.configure(1, 64, shared=8192)(x, y, swizzle=swizzle)
    np.testing.assert_array_equal(y[:, :61], x)
    assert not y[:, 61:].any()


# ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rows", "columns", "swizzle"), [(48, 80, 16), (16, 24, 0), (32, 96, 64)])
def test_rows_that_threads_do_not_divide(rng: Rng, rows: int, columns: int, swizzle: int) -> None:
    """Copies by cp.async where a thread comes to another place of another row each time."""
    @ptx_kernel
    def kernel(a: Array[f16, 2], x: Array[f16, 2]):
        tile = tiles.Tile(dynamic_shared(f16, align=1024), rows, columns, swizzle)
        tiles.copy(tile, a, 1, 8, threads=16)
        ptx.cp.async_.wait_all()
        ptx.bar.warp.sync(0xFFFF)
        with loop(ptx.tid.x, rows * columns, 16) as i:
            x[i // columns, i % columns] = tile.at(i // columns, i % columns)[0]

    a = rng.integers(1, 99, (rows - 2, columns)).astype(np.float16)
    x = np.ones((rows, columns), np.float16)
    _run(kernel, 1, 16, a, x, shared=rows * columns * 2)
    expected = np.zeros((rows, columns), np.float16)
    expected[: rows - 3, : columns - 8] = a[1:, 8:]
    np.testing.assert_array_equal(x, expected)


# Tensor copies


@pytest.mark.parametrize(("swizzle", "kind"), [(128, f16), (64, f32), (32, u8), (16, f16), (0, u8)], ids=str)
def test_tiles_through_tensor_maps(rng: Rng, swizzle: int, kind: Any) -> None:
    """A tile that a tensor copy brings has its elements where `Tile.at` says, and goes back by another one."""
    rows, columns, high = 16, 256 // kind.bytes // (1 if swizzle else 4), 3
    numpy = {u8: np.uint8, f16: np.float16, f32: np.float32}[kind]

    @ptx_kernel
    def kernel(a: TensorMap, x: Array[kind, 2], out: TensorMap):
        tile, bar = tiles.Tile(dynamic_shared(kind, align=1024), rows, columns, swizzle), mbarrier.declare()
        mbarrier.start((bar, 1))
        with when(ptx.tid.x == 0):
            mbarrier.arrive(bar, expect_tx=tile.nbytes)
            tma.load(tile, a, (high, ptx.ctaid.x), bar)
        mbarrier.wait(bar, 0)
        with loop(columns) as column:
            x[ptx.tid.x, column] = tile.at(ptx.tid.x, column)[0]
        for column in (1, columns - 2):
            tile.T.part(columns - 1, rows, 1).at(column - 1, ptx.tid.x)[0] = x[ptx.tid.x, columns - 1]
        tma.fence()
        ptx.bar.sync(0)
        with when(ptx.tid.x == 0):
            tma.store(out, (-1, 0), tile)
            tma.commit()
            tma.wait()

    a = rng.integers(0, 99, (24, columns + 16)).astype(numpy)
    x, out = np.zeros((rows, columns), numpy), np.zeros((rows, columns), numpy)
    box = (rows, swizzle // kind.bytes if swizzle else columns)
    device = [to_device(each) for each in (a, out)]
    maps = [tensor_map(each, box, swizzle=swizzle if swizzle > 16 else None) for each in device]
    _run(kernel, 1, rows, maps[0], x, maps[1], shared=rows * 256)
    out = device[1].numpy()
    np.testing.assert_array_equal(x, a[high : high + rows, :columns])
    x[:, [1, columns - 2]] = x[:, [-1]]
    np.testing.assert_array_equal(out[:-1], x[1:])
    assert not out[-1].any()


def test_reduce_gather_and_scatter(rng: Rng) -> None:
    @ptx_kernel
    def kernel(a: TensorMap, rows: Ptr[u32], total: TensorMap, out: TensorMap):
        tile, bar = tiles.Tile(dynamic_shared(f32, align=1024), 8, 16, 0), mbarrier.declare()
        mbarrier.start((bar, 1))
        with when(ptx.tid.x == 0):
            mbarrier.arrive(bar, expect_tx=2 * 4 * 16 * 4)
            tma.prefetch_map(a)
            tma.gather(tile.at(0, 0), a, [rows[i] for i in range(4)], 8, bar)
            tma.gather(tile.at(4, 0), a, (0, 1, 2, rows[4]), 0, bar)
        mbarrier.wait(bar, 0)
        with when(ptx.tid.x == 0):
            tma.reduce("add", total, (2, 4), tile)
            tma.scatter(out, (5, 0, rows[5], 3), 0, tile.at(4, 0))
            tma.commit()
            tma.wait(0, read=True)
            tma.wait()

    a, rows = rng.standard_normal((32, 32)).astype(np.float32), np.array([7, 30, 7, 2, 9, 6], np.uint32)
    total, out = np.ones((12, 24), np.float32), np.zeros((8, 16), np.float32)
    device = [to_device(each) for each in (a, total, out)]
    maps = [tensor_map(each, box) for each, box in zip(device, ((1, 16), (8, 16), (1, 16)))]
    _run(kernel, 1, 32, maps[0], rows, *maps[1:], shared=1024)
    loaded = np.concatenate([a[rows[:4], 8:24], a[[0, 1, 2, 9], :16]])
    expected = np.ones_like(total)
    expected[2:10, 4:20] += loaded
    np.testing.assert_array_equal(device[1].numpy(), expected)
    np.testing.assert_array_equal(device[2].numpy()[[5, 0, 6, 3]], loaded[4:])


def test_pixels(rng: Rng) -> None:
    """An element of a 3 x 3 filter over an image of 6 x 5, of two images, 8 channels."""
    @ptx_kernel
    def kernel(a: TensorMap, x: Array[f32, 2]):
        tile, bar = tiles.Tile(dynamic_shared(f32, align=1024), 32, 8, 32), mbarrier.declare()
        mbarrier.start((bar, 1))
        with when(ptx.tid.x == 0):
            mbarrier.arrive(bar, expect_tx=tile.nbytes)
            tma.load_pixels(tile.at(0, 0), a, (0, -1, -1, 0), (2, 1), bar)
        mbarrier.wait(bar, 0)
        for channel in range(8):
            x[ptx.tid.x, channel] = tile.at(ptx.tid.x, channel)[0]

    a, x = rng.standard_normal((2, 6, 5, 8)).astype(np.float32), np.zeros((32, 8), np.float32)
    pixels = tensor_map(to_device(a), (32, 8), corners=((-1, -1), (-1, -1)), swizzle=32)
    _run(kernel, 1, 32, pixels, x, shared=1024)
    padded = np.zeros((2, 8, 7, 8), np.float32)
    padded[:, 1:-1, 1:-1] = a
    expected = padded[:, 2:8, 1:6].reshape(-1, 8)[:32]
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_multicast_to_a_cluster(rng: Rng, seed: int | None) -> None:
    """One block loads for both: a stage is free when the threads of both have given it back to it."""
    steps = 5

    @ptx_kernel
    def kernel(a: TensorMap, x: Ptr[f32]):
        ring = tiles.Ring(dynamic_shared(f32, align=1024), 2, 8, 32)
        pipe, rank = Pipeline(2, consumers=64, nbytes=ring[0].nbytes, cluster=True), cluster.rank()
        with when(ptx.tid.x == 32):
            with when(rank == 0):
                producer = pipe.producer()
                with loop(steps) as step:
                    slot = producer.acquire()
                    tma.load(ring[slot], a, (step * 8, 0), slot.full, multicast=0b11)
            with when(rank == 1):
                expecting = pipe.producer()
                with loop(steps):
                    expecting.acquire()
        with when(ptx.tid.x < 32):
            consumer = pipe.consumer()
            with loop(steps) as step:
                slot = consumer.wait()
                for row in range(8):
                    x[((rank * steps + step) * 8 + row) * 32 + ptx.tid.x] = ring[slot].at(row, ptx.tid.x)[0]
                for other in range(2):
                    slot.release(rank=other)
        cluster.sync()

    a = rng.standard_normal((8 * steps, 32)).astype(np.float32)
    x = np.zeros(2 * a.size, np.float32)
    _run(kernel, 2, 64, tensor_map(to_device(a), (8, 32), swizzle=128), x, shared=2048, cluster=2, seed=seed)
    np.testing.assert_array_equal(x.reshape(2, *a.shape), np.stack([a, a]))


def test_waits_of_the_scope_of_the_cluster_are_for_producers() -> None:
    """They empty the L1 cache of a GPU: what copies bring is waited for without, what threads of it wrote is not."""
    waits = []
    for nbytes in (1024, None):
        @ptx_kernel(reqnctapercluster=2)
        def kernel(*, nbytes: Any = nbytes):
            pipe = Pipeline(2, consumers=2, nbytes=nbytes, cluster=True)
            with when(ptx.tid.x == 0):
                pipe.producer().acquire()
            with when(ptx.tid.x == 32):
                pipe.consumer().wait()
            cluster.sync()

        text = [line for line in kernel.ptx().splitlines() if "try_wait" in line]
        waits.append([".acquire.cluster" in line for line in text])
    assert waits == [[True, False], [True, True]]


def test_stores_to_other_blocks(rng: Rng) -> None:
    """Values of 64 bits and vectors that arrive with their bytes, and views of another block's memory."""
    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32]):
        inbox, own, bars = shared(u32, 32, 4), shared(u32, 32), mbarrier.declare(2)
        lane, rank = ptx.tid.x, cluster.rank()
        mbarrier.start((bars, 1), cluster=True)
        at = ptx.ctaid.x * 128 + lane * 4
        mbarrier.arrive(bars, expect_tx=32 * 16, pred=lane == 0)
        cluster.store(inbox.at(lane, 0), [x[at + i] for i in range(4)], rank ^ 1, bars)
        mbarrier.wait(bars, 0, cluster=True)
        own[lane] = inbox[lane, 3] + inbox[lane, 0]
        cluster.sync()
        other = cluster.at(own, rank ^ 1)
        y[ptx.ctaid.x * 32 + lane] = other[31 - lane]
        cluster.arrive(relaxed=True)
        cluster.wait()
        with when(lane == 0):
            mbarrier.invalidate(bars)

    x, y = rng.integers(0, 1 << 20, 256, np.uint32), np.zeros(64, np.uint32)
    for seed in SEEDS:
        _run(kernel, 2, 32, x, y, cluster=2, seed=seed)
        rows = x.reshape(2, 32, 4)
        np.testing.assert_array_equal(y.reshape(2, 32), (rows[..., 0] + rows[..., 3])[:, ::-1])


def test_older_targets() -> None:
    """Without try_wait and the fences of sm_90, a wait asks by test_wait."""
    from ptxdsl.language import trace
    from ptxdsl.text import to_text

    def kernel(x: Ptr[u32]):
        pipe = Pipeline(2, producers=32, consumers=32)
        pipe.producer().acquire().commit()
        x[0] = pipe.consumer().wait().index

    old, new = (to_text(trace(kernel, arch=arch)) for arch in ("sm_80", "sm_90"))
    assert "test_wait.parity" in old and "fence" not in old
    assert "try_wait.parity" in new and "fence.mbarrier_init.release.cluster" in new
