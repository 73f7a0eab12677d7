"""Values of 8 bits and predicates: comparison, select and conversion give numpy's numbers; all else says the repair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Ptr, PtxTypeError, b8, e4m3, e4m3x2, f16, f16x2, pred, ptx, ptx_kernel, s8, s32, select, u8, u32, when,
)

N = 256
rng = np.random.default_rng()


def bytes_of(dtype: Any) -> tuple[Any, Any]:
    a = rng.integers(0, 256, N).astype(np.uint8).view(dtype)
    return a, np.where(rng.random(N) < 0.3, a, rng.permutation(a)).astype(dtype)


@pytest.mark.parametrize(("kind", "dtype"), [(u8, np.uint8), (s8, np.int8), (b8, np.uint8)])
def test_comparisons(kind: Any, dtype: Any) -> None:
    a, b = bytes_of(dtype)
    number = int(a[3])

    @ptx_kernel
    def k(a: Ptr[kind], b: Ptr[kind], out: Ptr[u32]):
        i = ptx.tid.x
        x, y = a[i], b[i]
        found = [x == y, x != y, x == number, number != y, x == np.uint8(number % 128)]
        if kind is not b8:
            found += [x < y, x <= y, x > number, number >= y, x.to(pred)]
        for place, p in enumerate(found):
            out[i * 16 + place] = p.to(u32)

    out = np.zeros((N, 16), np.uint32)
    k[1, N](a, b, out)
    wanted = [a == b, a != b, a == number, number != b, a == number % 128]
    if kind is not b8:
        wanted += [a < b, a <= b, a > number, number >= b, a != 0]
    assert (out[:, : len(wanted)].T == wanted).all()


def test_predicates_agree() -> None:
    a, b = rng.integers(0, 3, (2, N)).astype(np.uint32)

    @ptx_kernel
    def k(a: Ptr[u32], b: Ptr[u32], out: Ptr[u32], ones: Ptr[u8], halves: Ptr[f16]):
        i = ptx.tid.x
        p, q = a[i] > 0, b[i] > 1
        found = [p == q, p != q, ~p == q, p == True, p == np.bool_(False), p != True, False != q]  # noqa: E712
        for place, r in enumerate(found):
            out[i * 8 + place] = r.to(u32)
        ones[i] = p.to(u8)
        halves[i] = p.to(f16)

    out, ones, halves = np.zeros((N, 8), np.uint32), np.zeros(N, np.uint8), np.zeros(N, np.float16)
    k[1, N](a, b, out, ones, halves)
    p, q = a > 0, b > 1
    assert (out[:, :7].T == [p == q, p != q, p != q, p, ~p, ~p, q]).all()
    assert (ones == p).all() and (halves == p).all()


@pytest.mark.parametrize(("kind", "dtype"), [(u8, np.uint8), (s8, np.int8), (b8, np.uint8), (e4m3, np.uint8)])
def test_select_and_bits(kind: Any, dtype: Any) -> None:
    a, b = bytes_of(dtype)

    @ptx_kernel
    def k(a: Ptr[kind], b: Ptr[kind], c: Ptr[u8], out: Ptr[kind]):
        i = ptx.tid.x
        out[i] = select(ptx.tid.x > 100, a[i], b[i])
        with when(a[i].bits(u8) == b[i].bits(u8)):
            c[i] = select(~(ptx.tid.x > 100), a[i].bits(u8), 7)

    c, out = np.zeros(N, np.uint8), np.zeros(N, dtype)
    given = (a, b) if kind is not e4m3 else [_as_float8(x) for x in (a, b)]
    k[1, N](*given, c, out if kind is not e4m3 else _as_float8(out))
    high = np.arange(N) > 100
    assert (out == np.where(high, a, b)).all()
    assert (c == np.where(a == b, np.where(high, 7, a.view(np.uint8)), 0)).all()


def _as_float8(array: Any) -> Any:
    import ml_dtypes

    return array.view(ml_dtypes.float8_e4m3fn)


WRONG = {
    "x[0] == y[0]": "`==` of u8 and s8: PTX converts nothing by itself",
    "x[0] == 300": "300 does not fit in u8, which holds 0 to 255",
    "x[0] == -1": "-1 does not fit in u8, which holds 0 to 255",
    "y[0] < 200": "200 does not fit in s8, which holds -128 to 127",
    "x[0] == np.int64(300)": "300 does not fit in u8, which holds 0 to 255",
    "z[0] < z[1]": "`<` of untyped b8: bits have no order",
    "z[0] & z[1]": "`v.bits(u8).to(u32)` first",
    "x[0] + 1": "`+` of u8: PTX does not compute in 8 bits",
    "(x[0] > 1) < (x[1] > 1)": "`<` of predicates: they have no order and are no numbers",
    "(x[0] > 1) == 1": "`p.to(u32)` makes a number of one",
    "x[y[0]]": "`v.to(s32)` converts (cvt)",
    "e[0].to(f32)": "PTX converts them in pairs: load through `p.cast(e4m3x2)`, then `v.to(f16x2)` or `v.to(bf16x2)`",
    "h[0].to(e4m3)": "PTX converts two at once: `ptx.cvt.rn.satfinite.e4m3x2.f32(high, low)`",
    "reg(z[0])": "keep it in a `reg(u32)`: `v.bits(u8).to(u32)`",
}


@pytest.mark.parametrize("line", WRONG)
def test_refused(line: str) -> None:
    import ptxdsl

    names: dict[str, Any] = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np}
    parameters = "x: Ptr[u8], y: Ptr[s8], z: Ptr[b8], e: Ptr[e4m3], h: Ptr[f16]"
    exec(f"@ptx_kernel\ndef k({parameters}):\n    v = {line}", names)
    with pytest.raises(PtxTypeError) as caught:
        names["k"].ptx()
    assert WRONG[line] in str(caught.value)


def test_the_hints_can_be_followed() -> None:
    @ptx_kernel
    def k(x: Ptr[u8], y: Ptr[s8], z: Ptr[b8], e: Ptr[e4m3], out: Ptr[u32], f: Ptr[f16x2]):
        out[0] = x[0].to(u32) + z[0].bits(u8).to(u32) + out[y[0].to(s32)]
        f[0] = e.cast(e4m3x2)[0].to(f16x2)
        e.cast(e4m3x2)[1] = ptx.cvt.rn.satfinite.e4m3x2.f32(out[0].to(f32_), 1.0)

    from ptxdsl import f32 as f32_

    x, e = np.array([200], np.uint8), np.array([0x38, 0x40, 0, 0], np.uint8)
    out, f = np.arange(4, dtype=np.uint32), np.zeros(2, np.float16)
    k[1, 1](x, np.array([3], np.int8), x, _as_float8(e), out, f)
    assert out[0] == 403 and f.tolist() == [1, 2] and e[2] == 0x38


HINTS = {
    "w[0] + n": "`n.to(u64)` converts (cvt)", "f + d[0]": "`f.to(f64)` converts (cvt)",
    "n + f": "`n.to(f64)` and `f.to(f64)` keep every number (cvt); `n.to(f32)` rounds (cvt)",
    "p.store(0, w[0])": "`v.to(u32)` keeps the low 32 bits (cvt)",
    "x.store(0, n)": "`n.to(u8)` keeps the low 8 bits (cvt)",
    "reg(f32, d[0])": "`v.to(f32)` rounds (cvt)",
    "reg(s32, f)": "`f.to(s32)` rounds towards zero (cvt); `f.bits(s32)` keeps the bits (mov)",
    "const(np.array([1 + 2j]))": "`array.view(np.float64)` has the real and the imaginary parts, one after the other",
    "const(np.array([True]))": "`array.view(np.uint8)`", "const([1.5], u32)": "`const(array, f32)`",
    "d - d": "`(p.address - q.address) // 8` counts elements of 8 bytes",
    "maximum(x[0], 1)": "`select(a > b, a, b)`", "minimum(x[0], 1)": "`select(a < b, a, b)`",
}


@pytest.mark.parametrize("line", HINTS)
def test_a_hint_that_changes_numbers_says_so(line: str) -> None:
    import ptxdsl

    names: dict[str, Any] = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np}
    parameters = "x: Ptr[u8], w: Ptr[u64], d: Ptr[f64], p: Ptr[u32], n: u32, f: f32"
    exec(f"@ptx_kernel\ndef k({parameters}):\n    v = {line}", names)
    with pytest.raises(PtxTypeError) as caught:
        names["k"].ptx()
    assert caught.value.hint == HINTS[line]
