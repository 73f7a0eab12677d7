"""What ptxdsl.math takes: Values of one type, numbers beside them, names; all else is an error at its line.

Each row is an expression of x (f32), h (f16), b (bf16), d (f64), u (u32), s (s32), p (a predicate) and v (f16x2).
"""

from __future__ import annotations

import math as pymath
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import Ptr, bf16, f16, f16x2, f32, f64, math, pack, ptx, ptx_kernel, reg, s32, u32
from ptxdsl.errors import PtxTypeError

X, H = np.float32(0.7), np.float16(0.7)
OTHER = {f16: np.float16, bf16: ml_dtypes.bfloat16}


def evaluated(expression: str) -> Any:
    code = compile(expression, __file__, "eval")
    numbers = {"math": math, "reg": reg, "np": np, "inf": pymath.inf, "f32": f32, "f64": f64, "s32": s32}

    @ptx_kernel
    def k(x: Ptr[f32], h: Ptr[f16], b: Ptr[bf16], d: Ptr[f64], u: Ptr[u32], s: Ptr[s32], y: Ptr[f64]):
        v = pack(f16x2, h[0], h[0])
        p = x[0] < 1.0
        found = eval(code, numbers, {
            "x": x[0], "h": h[0], "b": b[0], "d": d[0], "u": u[0], "s": s[0], "p": p, "v": v,
        })
        found = found[0] if isinstance(found, tuple) else found
        y[0] = found.to(f32).to(f64) if found.type in (f16, bf16) else found if found.type is f64 else found.to(f64)

    y = np.zeros(1)
    k[1, 1](
        np.array([X]), np.array([H]), np.array([0.7], ml_dtypes.bfloat16), np.array([0.7]),
        np.array([3], np.uint32), np.array([-3], np.int32), y,
    )
    return float(y[0])


MIXED = ["h, x", "x, h", "x, d", "d, x", "x, u", "x, s", "h, b", "u, x", "x, p"]
WRONG = {
    **{f"math.{name}({mixed})": "PTX converts nothing by itself"
       for name in ("hypot", "fmod", "nextafter", "copysign") for mixed in MIXED[:3]},
    **{f"math.pow({mixed})": "PTX converts nothing by itself" for mixed in MIXED},
    "math.sin()": "`sin` takes 1 argument, and 0 came",
    "math.pow(x)": "`pow` takes 2 arguments, and 1 came",
    "math.pow(x, 1.0, 2.0)": "`pow` takes 2 arguments, and 3 came",
    "math.pow(x, x=2.0)": "`pow` takes 2 arguments, and 2 came",
    "math.pow(x, None)": "`pow` of the NoneType None",
    "math.pow(x, '2')": "`pow` of the str '2'",
    "math.pow(x, np.ones(2))": "`pow` of the ndarray array([1., 1.])",
    "math.pow(x, 16777217)": "f32 cannot hold the int 16777217 exactly; the nearest is 16777216",
    "math.sin(1)": "`sin` of the int 1",
    "math.ldexp(1.0, s)": "`ldexp` of the float 1.0",
    "math.ldexp(x, u)": "`ldexp` by an exponent of u32",
}


@pytest.mark.parametrize("expression", WRONG)
def test_wrong(expression: str) -> None:
    with pytest.raises(PtxTypeError) as caught:
        evaluated(expression)
    assert caught.value.message.endswith(WRONG[expression]), caught.value.message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


HINTS = {
    "math.sin(u)": "`u.to(f64)`", "math.sin_approx(u)": "`u.to(f32)` rounds beyond 2**24",
    "math.sin(u.to(f32).to(s32) * 1)": "`v.to(f64)`", "math.exp_approx(d)": "`exp(d)` takes f64",
    "math.sin(p)": "`select(p, 1.0, 0.0)` of floats", "math.sin(v)": "`v.unpack(f16)`, and each by itself",
    "math.pow(x, d)": "`x.to(f64)` converts (cvt)",
}


@pytest.mark.parametrize("expression", HINTS)
def test_hints(expression: str) -> None:
    with pytest.raises(PtxTypeError) as caught:
        evaluated(expression)
    assert caught.value.hint == HINTS[expression]


RIGHT = {
    "math.pow(x, y=2)": X**2, "math.pow(y=2.0, x=x)": X**2, "math.pow(2, x)": 2.0 ** float(X),
    "math.pow(x, np.float64(0.5))": float(X) ** 0.5, "math.pow(np.float32(4), x)": 4.0 ** float(X),
    "math.pow(h, 2)": float(H) ** 2, "math.pow(x, -inf)": pymath.inf, "math.hypot(3, reg(f32, 4.0))": 5.0,
    "math.ldexp(x, 3)": 8 * X, "math.ldexp(x, np.int8(-1))": X / 2, "math.ldexp(h, s)": float(H) / 8,
    "math.ldexp(n=s, x=x)": X / 8, "math.frexp(h)": float(H), "math.modf(b)": float(ml_dtypes.bfloat16(0.7)),
    "math.sincos(reg(f32, x))": pymath.sin(X),
}


@pytest.mark.parametrize("expression", RIGHT)
def test_right(expression: str) -> None:
    assert evaluated(expression) == pytest.approx(float(RIGHT[expression]), rel=1e-3 if "h" in expression[5:] else 1e-6)


@pytest.mark.parametrize("kind", [f16, bf16])
def test_neighbours_in_sixteen_bits(kind: Any, rng: np.random.Generator) -> None:
    """All numbers of the format, towards random ones."""

    @ptx_kernel
    def k(x: Ptr[kind], y: Ptr[kind], z: Ptr[kind]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        z[i] = math.nextafter(x[i], y[i])

    x = np.arange(1 << 16, dtype=np.uint16).view(OTHER[kind])
    y = rng.permutation(x)
    y[::5] = x[::5]
    z = np.zeros_like(x)
    k[256, 256](x, y, z)
    with np.errstate(invalid="ignore"):
        wanted = np.nextafter(x, y)
    same = (z == wanted) & (np.signbit(z) == np.signbit(wanted))
    assert (same | (np.isnan(z) & np.isnan(wanted))).all()
