"""The kernels for Numba's CUDA target; loaded only where they are compiled."""

# mypy: disable-error-code="attr-defined, no-untyped-call"
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from numba import cuda, float32, float64, int32, int64, uint32, void

__all__ = ["made"]


def numba_saxpy(a: Any, x: Any, y: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        out[i] = a * x[i] + y[i]


def numba_matmul(a: Any, b: Any, c: Any) -> None:
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range((a.shape[1] + 15) // 16):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if row < a.shape[0] and tx + k * 16 < a.shape[1]:
            left[ty, tx] = a[row, tx + k * 16]
        if col < b.shape[1] and ty + k * 16 < b.shape[0]:
            right[ty, tx] = b[ty + k * 16, col]
        cuda.syncthreads()
        for j in range(16):
            total += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


def numba_mandelbrot(low_x: Any, low_y: Any, step: Any, limit: Any, out: Any) -> None:
    first_x, first_y = cuda.grid(2)
    stride_x, stride_y = cuda.gridsize(2)
    for x in range(first_x, out.shape[1], stride_x):
        for y in range(first_y, out.shape[0], stride_y):
            c = complex(low_x + x * step, low_y + y * step)
            z = 0.0j
            n = 0
            while n < limit and z.real * z.real + z.imag * z.imag <= 4:
                z = z * z + c
                n += 1
            out[y, x] = n


def numba_sum(x: Any, out: Any) -> None:
    part = cuda.shared.array(128, float64)
    t = cuda.threadIdx.x
    total = 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    part[t] = total
    cuda.syncthreads()
    d = 64
    while d > 0:
        if t < d:
            part[t] += part[t + d]
        cuda.syncthreads()
        d //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def numba_stencil(x: Any, out: Any) -> None:
    j, i = cuda.grid(2)
    if 1 <= i < x.shape[0] - 1 and 1 <= j < x.shape[1] - 1:
        out[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


def numba_histogram(x: Any, low: Any, high: Any, bins: Any) -> None:
    width = (high - low) / bins.shape[0]
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        number = int32((x[i] - low) / width)
        if number >= 0 and number < bins.shape[0]:
            cuda.atomic.add(bins, number, 1)


def numba_median(x: Any, out: Any) -> None:
    """Of 3 x 3 neighbours, sorted in local memory."""
    j, i = cuda.grid(2)
    if i < 1 or i >= x.shape[0] - 1 or j < 1 or j >= x.shape[1] - 1:
        return
    v = cuda.local.array(9, int32)
    for k in range(9):
        v[k] = x[i + k // 3 - 1, j + k % 3 - 1]
    for k in range(1, 9):
        value, at = v[k], k
        while at > 0 and v[at - 1] > value:
            v[at] = v[at - 1]
            at -= 1
        v[at] = value
    out[i, j] = v[4]


def numba_collatz(out: Any) -> None:
    i = cuda.grid(1)
    if i >= out.size:
        return
    value = i + 1
    count = 0
    while value != 1:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        count += 1
    out[i] = count


f32, f64, i32, u32 = float32[:, ::1], float64[::1], int32[:, ::1], uint32[::1]
KERNELS: list[tuple[Any, Any]] = [
    (numba_saxpy, void(float32, float32[::1], float32[::1], float32[::1])),
    (numba_matmul, void(f32, f32, f32)),
    (numba_mandelbrot, void(float64, float64, float64, int64, i32)),
    (numba_sum, void(f64, f64)),
    (numba_stencil, void(f32, f32)),
    (numba_histogram, void(float32[::1], float32, float32, int32[::1])),
    (numba_median, void(i32, i32)),
    (numba_collatz, void(int32[::1])),
]


def made() -> Iterator[tuple[str, str]]:
    """The name and PTX of each, with that name in place of the mangled one."""
    for function, signature in KERNELS:
        text = cuda.compile_ptx(function, signature, cc=(9, 0))[0]
        mangled = re.findall(r"\.entry (\w+)", text)[0]
        yield function.__name__, text.replace(mangled, function.__name__)
