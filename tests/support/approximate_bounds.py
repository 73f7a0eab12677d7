"""The manual's bounds on the errors of approximate instructions, for the tests of the emulator and of a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from semantics_samples import generator

Array = np.ndarray[Any, Any]


def codes_of(values: Any) -> Array:
    """The bits of f32 numbers."""
    return np.asarray(values, np.float32).view(np.uint32)


def numbers_of(codes: Array, kind: str = "f32") -> Array:
    """The numbers of codes, as f64."""
    with np.errstate(invalid="ignore"):
        if kind == "f64":
            return codes.astype(np.uint64).view(np.float64)
        if kind == "f16":
            return codes.astype(np.uint16).view(np.float16).astype(np.float64)
        wide = codes.astype(np.uint32) << 16 if kind == "bf16" else codes.astype(np.uint32)
        return wide.view(np.float32).astype(np.float64)


def between(salt: str, low: float, high: float, count: int = 1 << 14) -> Array:
    """f32 codes, half of them uniform, half logarithmic, between two positive or any two numbers."""
    rng = generator(salt)
    flat = rng.uniform(low, high, count // 2)
    tiny = np.exp2(rng.uniform(-30, math.log2(max(abs(low), abs(high))), count // 2))
    spread = np.clip(tiny * (rng.choice([-1, 1], count // 2) if low < 0 else 1), low, high)
    return codes_of(np.concatenate([flat, spread]))


def positive(salt: str, count: int = 1 << 14) -> Array:
    """Positive finite f32 codes of every exponent, subnormal ones too."""
    return generator(salt).integers(1, 0x7F800000, count, dtype=np.uint32)


def ulp(exact: Array) -> Array:
    """The unit of the last place of exact values in f32."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-140))), -126) - 23)


UNITS: dict[str, Callable[[Array], Array]] = {
    "ulps": ulp,
    "relative": np.abs,
    "absolute": np.ones_like,
    "absolute between 1/2 and 2": lambda exact: np.maximum(1.0, np.abs(exact)),
}
"""In what an error is measured, as a function of the exact value."""


class Bound(NamedTuple):
    """An instruction's function, and how far a result may be off, in which unit.

    It holds for sources up to ``reach``; ``sample`` makes some.
    """

    mnemonic: str
    exact: Callable[..., Array]
    unit: str
    most: float
    sample: Callable[[], tuple[Array, ...]]
    reach: float = math.inf


TURN = 2 * math.pi
BOUNDS = [
    Bound("rcp.approx.f32", lambda a: 1 / a, "ulps", 1, lambda: (positive("rcp"),)),
    Bound("sqrt.approx.f32", np.sqrt, "relative", 2**-23, lambda: (positive("sqrt"),)),
    Bound("rsqrt.approx.f32", lambda a: 1 / np.sqrt(a), "relative", 2**-22.9, lambda: (positive("rsqrt"),)),
    Bound(
        "div.approx.f32", np.divide, "ulps", 2, lambda: (positive("diva"), between("divb", 2.0**-126, 2.0**126)),
    ),
    Bound("div.full.f32", np.divide, "ulps", 2, lambda: (positive("diva"), positive("divb"))),
    Bound("sin.approx.f32", np.sin, "absolute", 2**-20.5, lambda: (between("sin", -TURN, TURN),), TURN),
    Bound("sin.approx.f32", np.sin, "absolute", 2**-14.7, lambda: (between("sin", -314, 314),), 314),
    Bound("cos.approx.f32", np.cos, "absolute", 2**-20.5, lambda: (between("cos", -TURN, TURN),), TURN),
    Bound("cos.approx.f32", np.cos, "absolute", 2**-14.7, lambda: (between("cos", -314, 314),), 314),
    Bound("lg2.approx.f32", np.log2, "absolute between 1/2 and 2", 2**-22, lambda: (positive("lg2"),)),
    Bound("lg2.approx.f32", np.log2, "absolute between 1/2 and 2", 2**-22, lambda: (between("lg2", 0.5, 2),)),
    Bound("ex2.approx.f32", np.exp2, "ulps", 2, lambda: (between("ex2", -150, 128),)),
    Bound("ex2.approx.f32", np.exp2, "ulps", 2, lambda: (between("ex2", -1, 1),)),
    Bound("tanh.approx.f32", np.tanh, "relative", 2**-11, lambda: (between("tanh", -9, 9),)),
]


def _every() -> tuple[Array]:
    return (np.arange(1 << 16, dtype=np.uint16),)


HALVES = [
    Bound("ex2.approx.f16", np.exp2, "relative", 2**-9.9, _every),
    Bound("ex2.approx.ftz.bf16", np.exp2, "relative", 2**-7, _every),
    Bound("tanh.approx.f16", np.tanh, "absolute", 2**-10.987, _every),
    Bound("tanh.approx.bf16", np.tanh, "absolute", 2**-8, _every),
]
_ROUGH = [
    Bound("rcp.approx.f64", lambda a: 1 / a, "relative", 2**-19, lambda: ()),
    Bound("rsqrt.approx.f64", lambda a: 1 / np.sqrt(a), "relative", 2**-19, lambda: ()),
]
"""Of the forms of f64 the manual says no more than that they are approximations."""
_TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}


def allowed(
    mnemonic: str, sources: Sequence[Array], got: Array
) -> tuple[str, Array, Array] | None:
    """Between which numbers another machine's results may lie, as arrays of a type; None for exact instructions.

    Where no bound holds both are what the emulator ``got``.
    """
    kind = mnemonic.rpartition(".")[2]
    name, packed = mnemonic.removesuffix("x2").replace(".ftz", ""), kind.endswith("x2")
    kind = kind.removesuffix("x2")
    found = [b for b in (*BOUNDS, *HALVES, *_ROUGH) if b.mnemonic.replace(".ftz", "") == name]
    if not found:
        return None
    halves = [np.ascontiguousarray(s, np.uint32).view(np.uint16) if packed else s for s in sources]
    mine = np.ascontiguousarray(got, np.uint32).view(np.uint16) if packed else got
    numbers, value = [numbers_of(s, kind) for s in halves], numbers_of(mine, kind)
    low, high = value.copy(), value.copy()
    with np.errstate(all="ignore"):
        for bound in reversed(found):
            exact = bound.exact(*numbers)
            holds = np.isfinite(value) & np.isfinite(exact)
            holds &= np.all([np.abs(number) <= bound.reach for number in numbers], axis=0)
            margin = bound.most * UNITS[bound.unit](exact)
            low, high = np.where(holds, exact - margin, low), np.where(holds, exact + margin, high)
        return _TYPES[kind], _stored(low, kind, -1), _stored(high, kind, 1)


def _stored(values: Array, kind: str, sign: int) -> Array:
    """Limits in the type of the results, a step further outwards where they are rounded."""
    dtype: Any = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
    made = values.astype(dtype)
    inwards = made > values if sign < 0 else made < values
    return np.where(inwards, np.nextafter(made, dtype(sign * math.inf)), made)
