"""``Ptr[const[T]]`` and ``Array[const[T], n]``: parameters that are only read, by ``ld.global.nc``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

import ptxdsl
from ptxdsl import Array, Ptr, const, f32, loop, ptx, ptx_func, ptx_kernel, reg, u32
from ptxdsl.errors import TraceError
from ptxdsl.ir.signature import ArrayType, PtrType


def loads(function: Callable[..., Any]) -> list[str]:
    return [line.split()[0] for line in body_of(function) if line.startswith("ld.global")]


def test_annotations() -> None:
    assert Ptr[const[f32]] == PtrType(f32, const=True) != Ptr[f32]
    assert Array[const[f32], None, 4] == ArrayType(f32, (None, 4), True) != Array[f32, None, 4]
    kinds = Ptr[const[f32]], Ptr[Ptr[const[u32]]], Array[const[f32], 2], Array[const[f32], 2, 3]
    assert [str(kind) for kind in kinds] == [
        "Ptr[const[f32]]", "Ptr[Ptr[const[u32]]]", "Array[const[f32], 2]", "Array[const[f32], 2, 3]",
    ]
    with pytest.raises(TraceError, match=r"const takes one scalar type, not <class 'int'>"):
        const[int]  # type: ignore[type-arg]


def test_every_way_to_an_element_is_nc() -> None:
    def kernel(n: u32, x: Ptr[const[f32]], a: Array[const[f32], 2], t: Ptr[Ptr[const[f32]]], y: Ptr[f32]) -> None:
        p, v = reg(x), reg(f32, 0.0)
        p += n
        y[0] = x[n] + x[3] + (x + n)[1] + (x - n).load(2) + x.at(n)[0] + p[0] + x.cast(u32).cast(f32)[n]
        y[1] = a[n, 2] + a[1][n] + a.at(n, n)[0]
        x.load(n, pred=n > 3, out=v)
        y.store(4, x.load(4, width=4))

    def tables(t: Ptr[Ptr[const[f32]]], y: Ptr[f32], n: u32) -> None:
        y[n] = t[n][1] + (t + n)[0].load(n)

    found = loads(kernel)
    assert found == ["ld.global.nc.f32"] * 10 + ["ld.global.nc.v4.f32"]
    assert sorted(loads(tables)) == ["ld.global.nc.f32"] * 2 + ["ld.global.u64"] * 2


def test_a_function_takes_them() -> None:
    @ptx_func
    def first(p: Ptr[const[f32]]) -> f32:
        return p[0]

    @ptx_kernel
    def kernel(x: Ptr[const[f32]], y: Ptr[f32]) -> None:
        y[1] = first(x + 2) + first(y)

    assert kernel.ptx().count("ld.global.nc.f32") == 1
    x, y = np.arange(4, dtype=np.float32), np.full(2, 5, np.float32)
    with ptxdsl.use("emulator"):
        kernel[1, 1](x, y)
    assert y.tolist() == [5, 7]


def test_results(rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(a: Array[const[f32], 2], x: Ptr[const[f32]], y: Ptr[f32], n: u32) -> None:
        i, acc = ptx.tid.x, reg(f32, 0.0)
        with loop(n, unroll=3) as j:
            acc += a[i, j] * x[j]
        y[i] = acc

    a, x = rng.integers(-9, 9, (32, 13)).astype(np.float32), rng.integers(-9, 9, 13).astype(np.float32)
    y = np.full(32, np.nan, np.float32)
    kernel.configure(1, 32, backend="emulator", sanitize="all")(a, x, y, 13)
    np.testing.assert_array_equal(y, a @ x)


def test_mistakes() -> None:
    def assigned(x: Ptr[const[f32]]) -> None:
        x[0] = 1.0

    def stored(a: Array[const[f32], 2]) -> None:
        a.store((0, 0), [1.0, 2.0])

    def generic(x: Ptr[const[f32]]) -> None:
        (x + 1).generic()[0] = 1.0

    def instruction(x: Ptr[const[f32]]) -> None:
        ptx.st.global_.f32(x, 1.0)

    def after_another(x: Ptr[const[f32]], y: Ptr[f32]) -> None:
        for p in (y, x):
            ptx.st.global_.f32(p, 1.0)

    def atomic(x: Ptr[const[f32]]) -> None:
        ptx.red.global_.add.f32(x.at(3), 1.0)

    def moved(x: Ptr[const[f32]], y: Ptr[f32]) -> None:
        p = reg(y)
        p.set(x)

    @ptx_func
    def clear(p: Ptr[f32]) -> None:
        p[0] = 0.0

    def passed(x: Ptr[const[f32]]) -> None:
        clear(x)

    hint = "a parameter that is written is a `Ptr[f32]` or an `Array[f32, ..]`, without `const`"
    only = "which only reads"
    assert said(refused(assigned), assigned) == (
        "TraceError", f"a store through a pointer to const f32, {only}", "x[0] = 1.0", hint
    )
    assert said(refused(stored), stored) == (
        "TraceError", f"a store through an array of const f32, {only}", "a.store((0, 0), [1.0, 2.0])", hint
    )
    assert said(refused(generic), generic)[1] == f"a store through a pointer to const f32, {only}"
    for kernel, pointer in ((instruction, "x"), (after_another, "p")):
        assert said(refused(kernel), kernel) == (
            "PtxTypeError",
            f"operand `a` of `st.global.f32 [a], b` is written, and `x` is a pointer to const f32, {only}",
            f"ptx.st.global_.f32({pointer}, 1.0)", "a parameter that is written is a `Ptr[f32]`, without `const`",
        )
    assert "is written, and" in said(refused(atomic), atomic)[1]
    assert said(refused(moved), moved) == (
        "PtxTypeError", f"a pointer to f32 does not take one to const f32, {only}", "p.set(x)",
        "`p = reg(q)` of a pointer to const",
    )
    assert said(refused(passed), passed)[1] == (
        "parameter `p` of function `clear` is Ptr[f32], not a run-time pointer to const f32"
    )
