"""`ptx_func`: functions that are called, not traced in place."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from ptxdsl import Array, Ptr, assemble, f16, f32, loop, ptx, ptx_func, ptx_kernel, reg, s32, select, u32, u64, when
from ptxdsl.errors import ControlFlowError, PtxTypeError, PtxWarning, TraceError
from ptxdsl.text import parse, to_text

DEEP = 16 << 10
"""Bytes of stack for recursion, of which a GPU has no more than 1 KiB a thread at first."""


@ptx_func
def poly(x: f32, c: Ptr[f32], *, degree: int = 2) -> f32:
    """Horner's rule, coefficients from memory."""
    total = reg(f32, c[degree])
    for k in range(degree - 1, -1, -1):
        ptx.fma.rn.f32(total, x, c[k], out=total)
    return total


@ptx_kernel
def evaluate(n: u32, x: Ptr[f32], c: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = poly(x[i], c) + poly(x[i], c, degree=3) * poly(2.0, c)


def test_calls_compute_what_the_function_says() -> None:
    rng = np.random.default_rng()
    x, c = rng.standard_normal(77).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    y = np.full_like(x, np.nan)
    evaluate[3, 32](77, x, c, y)
    p2, p3 = (np.polynomial.Polynomial(c[: k + 1].astype(np.float64)) for k in (2, 3))
    np.testing.assert_allclose(y, p2(x.astype(np.float64)) + p3(x.astype(np.float64)) * p2(2.0), rtol=0, atol=1e-3)


def test_one_function_for_each_choice_of_constants() -> None:
    names = [function.name for function in evaluate.ir().functions]
    assert names == ["poly", "poly_1", "evaluate"]


@ptx_func
def gcd(a: u32, b: u32) -> u32:
    result = reg(u32, a)
    with when(b != 0):
        ptx.mov.u32(gcd(b, a % b), out=result)
    return result


@ptx_kernel
def gcds(a: Ptr[u32], b: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.tid.x
    out[i] = gcd(a[i], b[i])


def test_recursion_that_ends_at_another_depth_in_each_lane() -> None:
    rng = np.random.default_rng()
    a, b = rng.integers(1, 10000, (2, 32), np.uint32)
    out = np.zeros(32, np.uint32)
    gcds.configure(1, 32, stack=DEEP)(a, b, out)
    np.testing.assert_array_equal(out, np.gcd(a, b))


@ptx_func
def even(n: u32) -> u32:
    result = reg(u32, 1)
    with when(n != 0):
        ptx.mov.u32(odd(n - 1), out=result)
    return result


@ptx_func
def odd(n: u32) -> u32:
    result = reg(u32, 0)
    with when(n != 0):
        ptx.mov.u32(even(n - 1), out=result)
    return result


@ptx_kernel
def parity(out: Ptr[u32]) -> None:
    out[ptx.tid.x] = even(ptx.tid.x)


def test_mutual_recursion() -> None:
    out = np.full(21, 7, np.uint32)
    parity.configure(1, 21, stack=DEEP)(out)
    assert out.tolist() == [1, 0] * 10 + [1]
    assert [(f.name, f.body is None) for f in parity.ir().functions] == [
        ("even", True), ("odd", False), ("even", False), ("parity", False),
    ]


@ptx_func
def bump(counter: Ptr[u64], amount: u64) -> None:
    ptx.red.global_.add.u64(counter, amount)


@ptx_kernel
def bumps(counter: Ptr[u64]) -> None:
    with loop(3):
        bump(counter + 1, 5)


def test_no_result_and_a_pointer_with_an_offset() -> None:
    counter = np.zeros(2, np.uint64)
    bumps[2, 40](counter)
    assert counter.tolist() == [0, 2 * 40 * 3 * 5]


@ptx_func
def halve(x: f16) -> f16:
    return x * 0.5


@ptx_kernel
def halves(x: Ptr[f16]) -> None:
    x[ptx.tid.x] = halve(x[ptx.tid.x])


def test_sixteen_bits() -> None:
    x = np.random.default_rng().standard_normal(32).astype(np.float16)
    expected = x * np.float16(0.5)
    halves[1, 32](x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", [evaluate, gcds, parity, bumps, halves], ids=lambda k: k.__name__)
def test_assembles_and_round_trips(kernel: object) -> None:
    module = kernel.ir()  # type: ignore[attr-defined]
    assert parse(to_text(module)) == module
    recursive = kernel in (gcds, parity)
    with pytest.warns(PtxWarning, match="Stack size for entry function") if recursive else nullcontext():
        assert assemble(to_text(module), "sm_90a")[:4] == b"\x7fELF"


@ptx_kernel
def wrong_type(x: Ptr[f32], c: Ptr[f32]) -> None:
    x[0] = poly(ptx.tid.x, c)


@ptx_kernel
def wrong_pointer(x: Ptr[f32], c: Ptr[u32]) -> None:
    x[0] = poly(x[0], c)


@ptx_kernel
def wrong_count(x: Ptr[f32]) -> None:
    x[0] = poly(x[0])


@ptx_kernel
def wrong_constant(x: Ptr[f32]) -> None:
    x[0] = poly(x[0], x, order=3)


@ptx_func
def liar(x: f32) -> s32:
    return x


@ptx_kernel
def calls_liar(x: Ptr[f32]) -> None:
    liar(x[0])


@ptx_func
def silent(x: f32):  # type: ignore[no-untyped-def]
    return x


@ptx_kernel
def calls_silent(x: Ptr[f32]) -> None:
    silent(x[0])


@pytest.mark.parametrize(
    ("kernel", "kind", "message", "hint"),
    [
        (wrong_type, PtxTypeError, "parameter `x` of function `poly` is f32, not u32",
         "`v.to(f32)` rounds (cvt); `v.bits(f32)` keeps the bits (mov)"),
        (
            wrong_pointer, PtxTypeError,
            "parameter `c` of function `poly` is Ptr[f32], not a run-time pointer to u32", None,
        ),
        (
            wrong_count, TraceError, "function `poly` takes 2 arguments, and was given 1",
            "`poly(x: f32, c: Ptr[f32])`",
        ),
        (
            wrong_constant, TraceError, "function `poly` has no compile-time constant `order`; it has degree",
            "did you mean `degree=`?",
        ),
        (calls_liar, TraceError, "function `liar` returns f32, and is annotated `-> s32`", None),
        (
            calls_silent, TraceError, "function `silent` returns a run-time f32 and has no result type",
            "annotate it: `def silent(..) -> f32:`",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_refused(kernel: object, kind: type[TraceError], message: str, hint: str | None) -> None:
    with pytest.raises(kind) as caught:
        kernel.ptx()  # type: ignore[attr-defined]
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_a_failed_function_leaves_nothing_behind() -> None:
    for _ in range(2):
        with pytest.raises(TraceError):
            calls_liar.ptx()
    evaluate.retrace()
    assert "poly" in evaluate.ptx()


def test_the_result_has_the_line_of_the_return() -> None:
    @ptx_func
    def f(a: u32, *, early: bool = False) -> u32:
        b = a + a
        if early:
            return b
        return b * 3

    @ptx_kernel
    def calls(x: Ptr[u32]):
        x[0] = f(x[1])
        x[1] = f(x[2], early=True)

    stores = [
        (s.loc.source if s.loc else None)
        for function in calls.ir().functions for s in function.instructions() if s.form.opcode == "st"
    ]
    assert stores == ["return b * 3", "return b", "x[0] = f(x[1])", "x[1] = f(x[2], early=True)"]


def test_signatures_refused() -> None:
    with pytest.raises(TraceError, match=r"^parameter `a` of function `f` is Array\[f32, 2\]"):

        @ptx_func
        def f(a: Array[f32, 2]) -> None: ...

    with pytest.raises(TraceError, match=r"^function `g` returns <class 'tuple'>, and a function returns one scalar"):

        @ptx_func
        def g(a: f32) -> tuple: ...  # type: ignore[empty-body,type-arg]

    with pytest.raises(ControlFlowError):

        @ptx_func
        def h(a: f32) -> f32:
            with when(a > 0.0):
                return a
            return select(a > 1.0, a, a)
