"""Tensor cores and asynchronous copies of nvcc (inline PTX as CUTLASS writes it, libcu++, wmma) and of CuTe DSL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foreign_units import bf16, f16, f32, random_array, tiles, unit, wide

from ptxdsl import tensor_map

Rng = np.random.Generator
Case = tuple[Any, int, dict[str, Any], list[Any], Any, Any, float]
"""Grid, block, options, arguments, what is found, what is right, what it may be off by."""
pytestmark = pytest.mark.usefixtures("emulated")


def multicast_matmul(rng: Rng) -> Case:
    m, n, k = int(rng.integers(1, 300)), int(rng.integers(1, 24)) * 8, int(rng.integers(1, 35)) * 8
    a, b, c = random_array(rng, (m, k), bf16), random_array(rng, (n, k), bf16), np.zeros((m, n), bf16)
    boxes = zip((a, b, c), ((128, 64), (64, 64), (64, 64)))
    columns = tiles(n, 128)
    count = columns * tiles(m, 256)
    arguments = [*(tensor_map(array, box, swizzle=128) for array, box in boxes), columns, count, tiles(k, 64)]
    options = {"shared": 4 * 2 * 128 * 64 * 2 + 2 * 2 * 64 * 64 * 2 + 64, "cluster": 2}
    return 2 * min(count, 2), 384, options, arguments, c, wide(a) @ wide(b).T, 1e-2


def pipelined_matmul(rng: Rng) -> Case:
    m, n, k = int(rng.integers(1, 100)), int(rng.integers(1, 100)), int(rng.integers(1, 20)) * 8
    a, b, c = random_array(rng, (m, k), f16), random_array(rng, (n, k), f16), np.full((m, n), np.nan, f32)
    return (tiles(n, 64), tiles(m, 64)), 128, {}, [a, b, c, m, n, k], c, wide(a) @ wide(b).T, 1e-5


def wmma_matmul(rng: Rng) -> Case:
    m, n, k = (16 * int(number) for number in rng.integers(1, 6, 3))
    a, b, c = random_array(rng, (m, k), f16), random_array(rng, (k, n), f16), random_array(rng, (m, n), f32)
    right = (wide(a) @ wide(b) + wide(c)) / 2
    return tiles(m // 16 * n // 16, 4), 128, {}, [a, b, c, m, n, k], c, right, 1e-5


def barrier_stencil(rng: Rng) -> Case:
    n = int(rng.integers(1, 1000))
    x, y = random_array(rng, (n + 8,), f32), np.zeros(n, f32)
    return 3, 128, {}, [x, y, n], y, wide(x)[:n] + wide(x)[1 : n + 1] + wide(x)[2 : n + 2], 1e-6


def bulk_scale(rng: Rng) -> Case:
    x = random_array(rng, (4 * int(rng.integers(1, 1000)),), f32)
    y = np.zeros_like(x)
    return tiles(x.size, 1024), 96, {}, [x, y, x.size, f32(1.5)], y, 1.5 * wide(x), 1e-6


def pipeline_sums(rng: Rng) -> Case:
    x = random_array(rng, (int(rng.integers(1, 10)), int(rng.integers(1, 1500))), f32)
    sums = np.zeros(len(x), f32)
    return 4, 128, {}, [x, sums, *x.shape], sums, wide(x).sum(1), 1e-4


def split_pipeline(rng: Rng) -> Case:
    n = int(rng.integers(1, 500))
    x, y, i = rng.integers(-1000, 1000, n).astype(np.int32), np.zeros(n, np.int32), np.arange(n)
    first, mirrored = i // 64 * 64, 63 - i % 64
    return 1, 128, {}, [x, y, n], y, 3 * x[first + np.where(mirrored < n - first, mirrored, i % 64)], 0


def cluster_exchange(rng: Rng) -> Case:
    x, y = rng.integers(-1000, 1000, 256).astype(np.int32), np.zeros((8, 4), np.int32)
    return 8, 32, {}, [x, y], y, x.reshape(2, 4, 32).sum(2).repeat(4, 0), 0


def cluster_histogram(rng: Rng) -> Case:
    x, bins = rng.integers(0, 1 << 30, int(rng.integers(1, 3000))).astype(np.int32), np.zeros(64, np.uint32)
    return 4, 96, {}, [x, x.size, bins], bins, np.bincount(x & 63, minlength=64), 0


def tensor_negate(rng: Rng) -> Case:
    x = random_array(rng, (int(rng.integers(1, 80)), 4 * int(rng.integers(1, 50))), f32)
    y = np.zeros_like(x)
    maps = [tensor_map(array, (32, 64)) for array in (x, y)]
    return (tiles(x.shape[1], 64), tiles(x.shape[0], 32)), 64, {}, maps, y, -wide(x), 0


KERNELS: list[tuple[str, Any]] = [
    ("hopper", multicast_matmul), ("ampere", pipelined_matmul), ("ampere", wmma_matmul),
    *(("libcudacxx", case) for case in (
        barrier_stencil, bulk_scale, pipeline_sums, split_pipeline, cluster_exchange, cluster_histogram,
        tensor_negate)),
]


@pytest.mark.parametrize("sanitize", [None, "all"])
@pytest.mark.parametrize(("name", "case"), KERNELS, ids=lambda value: getattr(value, "__name__", value))
def test_kernel_of_nvcc_is_right(name: str, case: Any, sanitize: str | None, rng: Rng) -> None:
    for seed in (None, int(rng.integers(1000)))[: 1 if sanitize else 2]:
        grid, block, options, arguments, got, right, allowed = case(rng)
        kernel = unit(name).module[case.__name__]
        kernel.configure(grid, block, sanitize=sanitize, seed=seed, **options)(*arguments)
        assert np.abs(wide(got) - right).max() <= allowed * np.abs(right).max()


@pytest.mark.parametrize(("name", "kind", "sizes", "tile"), [
    ("cute_wgmma_f16", f16, (100, 136, 328), (64, 128)), ("cute_wgmma_bf16", bf16, (140, 72, 328), (128, 64)),
])
def test_product_of_cute_is_right(name: str, kind: Any, sizes: tuple[int, int, int], tile: Any, rng: Rng) -> None:
    """The shapes that are compiled in are larger: where a tensor map ends are zeros. The last argument is empty."""
    (m, n, k), of = sizes, unit(name)
    for seed in (None, int(rng.integers(1000))):
        a, b, c = random_array(rng, (m, k), kind), random_array(rng, (n, k), kind), np.zeros((m, n), kind)
        boxes = zip((a, b, c), ((tile[0], 64), (tile[1], 64), (tile[0], 64)))
        maps = [tensor_map(array, box, swizzle=128) for array, box in boxes]
        of.launch((tiles(m, tile[0]), tiles(n, tile[1])), [*maps, b"\0"], seed=seed)
        right = wide(a) @ wide(b).T
        assert np.abs(wide(c) - right).max() <= 1e-2 * np.abs(right).max()


@pytest.mark.parametrize(("name", "kind", "sizes", "blocks"), [
    ("cute_tcgen05_f16", f16, (200, 264, 328), 1), ("cute_tcgen05_bf16_pair", bf16, (300, 264, 328), 2),
])
def test_product_of_cute_in_tensor_memory_is_right(
    name: str, kind: Any, sizes: tuple[int, int, int], blocks: int, rng: Rng
) -> None:
    """The shapes are compiled in. The first argument is the state of the product: it begins without sums."""
    (m, n, k), of = sizes, unit(name)
    a, b = random_array(rng, (m, k), kind), random_array(rng, (n, k), kind)
    maps = [tensor_map(array, box, swizzle=128) for array, box in ((a, (128, 64)), (b, (128 // blocks, 64)))]
    for options in ({}, {"seed": int(rng.integers(1000))}, {"sanitize": "all"}):
        c = np.full((m, n), np.nan, kind)
        of.launch((tiles(m, 128 * blocks), tiles(n, 128)), [bytes(32 * blocks), *maps, c], **options)
        right = wide(a) @ wide(b).T
        assert np.abs(wide(c) - right).max() <= 1e-2 * np.abs(right).max()
