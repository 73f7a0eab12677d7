"""Warp's CPU backend on the six programs: kernels of single threads, and blocks of them as cooperative fibers.

``pip install warp-lang``. Its CPU has no shared memory for single threads, so those kernels go without; its blocks
work on tiles, with as many threads as ours.
"""

# mypy: disable-error-code="valid-type, untyped-decorator"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

__all__ = ["BLOCKS", "NAME", "NAME_BLOCKS", "RUNS"]

NAME, NAME_BLOCKS = "Warp's CPU, simt", "Warp's CPU blocks"

wp.config.verbose = wp.config.quiet = True
wp.config.enable_cpu_blocks = True
wp.config.enable_backward = False
wp.init()


@wp.kernel
def _saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def _matmul(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float), n: int) -> None:
    i, j = wp.tid()
    acc = float(0.0)  # noqa: UP018 - Warp's variable
    for k in range(n):
        acc += a[i, k] * b[k, j]
    c[i, j] = acc


@wp.kernel
def _softmax(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float), columns: int) -> None:
    i = wp.tid()
    largest = x[i, 0]
    for j in range(1, columns):
        largest = wp.max(largest, x[i, j])
    total = float(0.0)  # noqa: UP018
    for j in range(columns):
        power = wp.exp(x[i, j] - largest)
        y[i, j] = power
        total += power
    for j in range(columns):
        y[i, j] = y[i, j] / total


_row = wp.types.vector(length=64, dtype=float)


@wp.kernel
def _attention(
    keys: int, scale: float, q: wp.array(dtype=_row), k: wp.array(dtype=_row), v: wp.array(dtype=_row),
    out: wp.array(dtype=_row),
) -> None:
    i = wp.tid()
    query = q[i] * scale
    acc = _row()
    largest = float(-1.0e30)  # noqa: UP018
    total = float(0.0)  # noqa: UP018
    for j in range(keys):
        score = wp.dot(query, k[j])
        top = wp.max(largest, score)
        shrink = wp.exp(largest - top)
        weight = wp.exp(score - top)
        total = total * shrink + weight
        acc = acc * shrink + v[j] * weight
        largest = top
    out[i] = acc / total


@wp.kernel
def _collatz(steps: wp.array(dtype=wp.uint32)) -> None:
    i = wp.tid()
    value = i + 1
    count = wp.uint32(0)
    while value != 1:
        value = wp.where(value % 2 == 0, value // 2, 3 * value + 1)
        count += wp.uint32(1)
    steps[i] = count


@wp.kernel
def _histogram(data: wp.array(dtype=wp.uint32), counts: wp.array(dtype=wp.uint32)) -> None:
    i = wp.tid()
    wp.atomic_add(counts, int(data[i]), wp.uint32(1))


@wp.kernel
def _matmul_tiles(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float), n: int) -> None:
    i, j = wp.tid()
    acc = wp.tile_zeros(shape=(16, 16), dtype=float)
    for k in range(n // 16):
        left = wp.tile_load(a, shape=(16, 16), offset=(i * 16, k * 16))
        right = wp.tile_load(b, shape=(16, 16), offset=(k * 16, j * 16))
        wp.tile_matmul(left, right, acc)
    wp.tile_store(c, acc, offset=(i * 16, j * 16))


@wp.kernel
def _softmax_tiles(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)) -> None:
    i = wp.tid()
    row = wp.tile_load(x[i], shape=1024)
    powers = wp.tile_map(wp.exp, row - wp.tile_broadcast(wp.tile_max(row), shape=(1024,)))
    wp.tile_store(y[i], powers / wp.tile_broadcast(wp.tile_sum(powers), shape=(1024,)))


_TYPES = {"float32": wp.float32, "uint32": wp.uint32}


def _array(array: np.ndarray, dtype: Any = None) -> Any:
    return wp.array(array, dtype=dtype or _TYPES[array.dtype.name], device="cpu", copy=False)


def _launch(kernel: Any, dim: Any, inputs: list[Any]) -> None:
    wp.launch(kernel, dim=dim, inputs=inputs, device="cpu", block_dim=1)


def _run_saxpy(n: int, a: float, x: Any, y: Any) -> None:
    _launch(_saxpy, n, [a, _array(x), _array(y)])


def _run_matmul(a: Any, b: Any, c: Any, n: int) -> None:
    _launch(_matmul, (n, n), [_array(a), _array(b), _array(c), n])


def _run_softmax(x: Any, y: Any) -> None:
    _launch(_softmax, x.shape[0], [_array(x), _array(y), x.shape[1]])


def _run_attention(keys: int, scale: float, q: Any, k: Any, v: Any, out: Any) -> None:
    _launch(_attention, q.shape[0], [keys, float(scale), *(_array(array, _row) for array in (q, k, v, out))])


def _run_collatz(n: int, steps: Any) -> None:
    _launch(_collatz, n, [_array(steps)])


def _run_histogram(n: int, data: Any, counts: Any) -> None:
    _launch(_histogram, n, [_array(data), _array(counts)])


def _blocks_matmul(a: Any, b: Any, c: Any, n: int) -> None:
    inputs = [_array(a), _array(b), _array(c), n]
    wp.launch_tiled(_matmul_tiles, dim=(n // 16, n // 16), inputs=inputs, block_dim=256, device="cpu")


def _blocks_softmax(x: Any, y: Any) -> None:
    wp.launch_tiled(_softmax_tiles, dim=x.shape[0], inputs=[_array(x), _array(y)], block_dim=128, device="cpu")


RUNS: dict[str, Callable[..., None]] = {
    "saxpy": _run_saxpy, "matmul": _run_matmul, "softmax": _run_softmax, "attention": _run_attention,
    "collatz": _run_collatz, "histogram": _run_histogram,
}
BLOCKS: dict[str, Callable[..., None]] = {"matmul": _blocks_matmul, "softmax": _blocks_softmax}
