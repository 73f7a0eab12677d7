"""Kernels that other processes find by their names, and such as they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl import Array, Kernel, Ptr, f32, global_, loop, ptx, ptx_func, ptx_kernel, reg, u32, when

FACTOR = 3.0


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel(name="raise_all", arch="sm_80", lineinfo=False, maxntid=(128, 2), pragma="nounroll")
def powers(x: Array[f32, 2], *, exponent: int, offset: float = 0.5) -> None:
    """Each element to a power."""
    value = x[ptx.tid.y, ptx.tid.x]
    result = value
    for _ in range(exponent - 1):
        result = result * value
    x[ptx.tid.y, ptx.tid.x] = result + offset


class Kernels:
    @ptx_kernel
    def fill(x: Ptr[f32]) -> None:  # noqa: N805 - a kernel is no method
        x[ptx.tid.x] = FACTOR


def _plain(x: Ptr[u32]) -> None:
    x[ptx.tid.x] = ptx.tid.x


other_name = ptx_kernel(name="numbers")(_plain)


@ptx_func
def factorial(n: u32) -> u32:
    result = reg(u32, 1)
    with when(n > 1):
        result.set(n * factorial(n - 1))
    return result.copy()


@ptx_kernel
def factorials(x: Ptr[u32]) -> None:
    x[ptx.tid.x] = factorial(ptx.tid.x)


@ptx_kernel
def count(x: Ptr[u32]) -> None:
    """How many launches there were in this process."""
    launches = global_(u32, 1)
    launches[0] = launches[0] + 1
    x[0] = launches[0]


def scaled_by(factor: float, kind: Any = f32) -> Kernel:
    """A kernel that no module has under a name; ``kind`` is only in an annotation, and that is a text."""

    @ptx_kernel(minnctapersm=1, maxntid=64)
    def scaled(n: u32, x: Ptr[kind], *, times: int = 1) -> None:
        with loop(ptx.tid.x, n, 32) as i:
            value = x[i]
            for _ in range(times):
                value = value * factor
            x[i] = value

    return scaled


def fact_by_value() -> tuple[Any, Kernel]:
    """A function that calls itself, and a kernel that calls it, of which neither has a name in a module."""

    @ptx_func
    def inner(n: u32) -> u32:
        result = reg(u32, 1)
        with when(n > 1):
            result.set(n * inner(n - 1))
        return result.copy()

    @ptx_kernel
    def outer(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = inner(ptx.tid.x)

    return inner, outer


def saxpy_of(a: float, x: Any, y: Any) -> Any:
    """``a * x + y``, in a new array."""
    out = np.array(y)
    if out.size:
        saxpy[-(-out.size // 128), 128](out.size, a, np.ascontiguousarray(x), out)
    return out


def failing(number: int) -> None:
    """An error of each kind."""
    x = np.zeros(4, np.float32)
    if number == 0:
        saxpy[0, 128](1, 1.0, x, x)
    elif number == 1:
        saxpy.configure(1, 128, backend="emulator")(100, 1.0, x, x)
    else:
        powers[1, 1](x.reshape(2, 2))


def caught(number: int) -> BaseException | None:
    """The error that :func:`failing` raises."""
    try:
        failing(number)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    return None
