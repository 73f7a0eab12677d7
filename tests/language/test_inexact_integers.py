"""An int means itself: a float type that cannot hold it exactly does not take it, wherever a number may stand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Ptr, PtxTypeError, TraceError, bf16, const, f16, f32, f64, local, printf, ptx, ptx_func, ptx_kernel, reg, select,
    shared,
)

N = 16777217
"""2**24 + 1, which is no float32."""


@ptx_func
def half(a: f32) -> f32:
    return a * 0.5


@ptx_func
def constant() -> f32:
    return N


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "added": lambda v, x: v + N,
    "added on the left": lambda v, x: N + v,
    "subtracted": lambda v, x: v - N,
    "from": lambda v, x: N - v,
    "multiplied": lambda v, x: v * -N,
    "divided": lambda v, x: v / N,
    "by": lambda v, x: N / v,
    "compared": lambda v, x: v < N,
    "compared for equality": lambda v, x: v == N,
    "a first value": lambda v, x: reg(f32, N),
    "set": lambda v, x: reg(f32, 0.0).set(N),
    "in place": lambda v, x: reg(f32, 0.0).__iadd__(N),
    "stored": lambda v, x: x.__setitem__(0, N),
    "stored in a vector": lambda v, x: x.store(0, [v, N]),
    "stored to shared memory": lambda v, x: shared(f32, 4).__setitem__(0, N),
    "stored to local memory": lambda v, x: local(f32, 4).__setitem__(0, N),
    "selected": lambda v, x: select(v > 0, N, v),
    "selected against": lambda v, x: select(v > 0, v, N),
    "an operand": lambda v, x: ptx.fma.rn.f32(v, N, v),
    "an operand of max": lambda v, x: ptx.max.f32(v, N),
    "an operand of mov": lambda v, x: ptx.mov.f32(N),
    "an operand of a store": lambda v, x: ptx.st.global_.f32(x, N),
    "an argument of a function": lambda v, x: half(N),
    "the result of a function": lambda v, x: constant(),
    "a table": lambda v, x: const([1, N], f32),
    "a table of numpy's ints": lambda v, x: const(np.array([[N]]), f32),
    "numpy's int": lambda v, x: v + np.int64(N),
    "f64": lambda v, x: v.to(f64) + (2**53 + 1),
    "f64, negative": lambda v, x: reg(f64, -(2**60) - 1),
    "f16": lambda v, x: v.to(f16) * 2049,
    "bf16": lambda v, x: reg(bf16, 257),
    "printed": lambda v, x: printf("%f", 2**53 + 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_int_that_would_be_rounded_is_refused(name: str) -> None:
    def kernel(x: Ptr[f32]) -> None:
        WRONG[name](x[0], x)

    for _ in range(2):
        with pytest.raises(TraceError) as caught:
            ptx_kernel(kernel).ptx()
        assert isinstance(caught.value, PtxTypeError)
        assert "exactly" in caught.value.message
        assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_the_messages() -> None:
    def message(wrong: Callable[[Any], Any]) -> tuple[str, str | None]:
        def kernel(x: Ptr[f32]) -> None:
            wrong(x[0])

        with pytest.raises(PtxTypeError) as caught:
            ptx_kernel(kernel).ptx()
        return caught.value.message, caught.value.hint

    assert message(lambda v: v + N) == (
        "f32 cannot hold the int 16777217 exactly; the nearest is 16777216", "`float(16777217)` to have it rounded"
    )
    assert message(lambda v: ptx.max.f32(v, -2**24 - 3)) == (
        ("operand `b` of `max.f32 d, a, b` is an f32: f32 cannot hold the int -16777219 exactly; "
         "the nearest is -16777220"), "`float(-16777219)` to have it rounded"
    )
    assert message(lambda v: const([0, N], f32)) == (
        "`const` of the list [0, 16777217]: f32 cannot hold the int 16777217 exactly",
        "give floats to have them rounded: `np.asarray(array, np.float64)`",
    )


def test_a_float_is_rounded_and_an_int_that_fits_is_taken() -> None:
    draw = random.Random()
    exact = [draw.randrange(-(2**24), 2**24) * 2 ** draw.randrange(40) for _ in range(24)]
    rounded = [float(N), N * 1.0, 0.1, 1e-60, 16777219.0, float("inf")]

    @ptx_kernel
    def kernel(x: Ptr[f32], y: Ptr[f64], h: Ptr[f16]) -> None:
        for i, number in enumerate([*exact, *rounded]):
            x[i] = number
            r = reg(f32, number)
            x[32 + i] = select(x[i] == number, r, -1.0)
        for i, number in enumerate([2**53, -(2**60), 2**53 + 2, N]):
            y[i] = number
        for i, number in enumerate([2048, -2050, 65504, True * 1]):
            h[i] = number
        x[31] = const([2**24, 3], f32)[0]

    x, y, h = np.zeros(64, np.float32), np.zeros(4, np.float64), np.zeros(4, np.float16)
    kernel[1, 1](x, y, h)
    wanted = np.array([*exact, *rounded], np.float32)
    assert x[:30].tolist() == x[32:62].tolist() == wanted.tolist()
    assert y.tolist() == [2.0**53, -(2.0**60), 2.0**53 + 2, N]
    assert h.tolist() == [2048, -2050, 65504, 1]
    assert x[31] == 2**24
