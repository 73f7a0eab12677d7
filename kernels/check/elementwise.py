"""Checks of elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import Kernel, bf16, f16, f32, f64, pred
from ...bench import Row, compare
from .. import elementwise, reference
from ..elementwise import activations, arithmetic
from .entry import Entry

__all__ = ["ENTRIES"]

FLOATS = (f16, bf16, f32, f64)


def _checked(name: str, arrays: int, expected: Callable[..., Any]) -> Callable[[], Row]:
    """A check of a function of so many arrays."""

    def check() -> Row:
        x = np.random.default_rng().standard_normal((arrays, 33, 100)).astype(np.float32)
        out = np.full_like(x[0], np.nan)
        function = getattr(elementwise, name)
        return compare(f"{name}, 33 x 100", lambda: function(*x, out=out), out, expected(*x.astype(np.float64)), 1e-6)

    return check


def _where() -> Row:
    x, y = np.random.default_rng().standard_normal((2, 33, 100))
    out = np.full_like(x, np.nan)
    return compare(
        "where, 33 x 100", lambda: elementwise.where(x < y, x, y, out=out), out, np.where(x < y, x, y), 0.0
    )


def _cast() -> Row:
    x = np.random.default_rng().standard_normal((33, 100))
    out = np.zeros(x.shape, np.float16)
    return compare("cast, 33 x 100", lambda: elementwise.cast(x, f16, out=out), out, x.astype(np.float16), 0.0)


def _activation(name: str) -> Callable[[], list[Kernel]]:
    """The kernel of an activation, and that of its backward pass in bf16."""
    return lambda: [activations.forward(name, False).kernel(f32), activations.backward(name, True).kernel(bf16, bf16)]


def _gated(name: str) -> Callable[[], list[Kernel]]:
    return lambda: [
        activations.gated(name, True).kernel(bf16, bf16), activations.gated_backward(name, True).kernel(f16, f16, f16)
    ]


ENTRIES: dict[str, Entry] = {
    "add": Entry(_checked("add", 2, np.add), lambda: [arithmetic.ADD.kernel(kind, kind) for kind in FLOATS]),
    "mul": Entry(_checked("mul", 2, np.multiply), lambda: [arithmetic.MUL.kernel(f64, f64)]),
    "where": Entry(_where, lambda: [arithmetic.WHERE.kernel(pred, f16, f16)]),
    "cast": Entry(_cast, lambda: [arithmetic.CAST.kernel(bf16)]),
    **{
        name: Entry(_checked(name, 1, getattr(reference, name)), _activation(name))
        for name in ("relu", "sigmoid", "tanh", "silu", "gelu")
    },
    "swiglu": Entry(_checked("swiglu", 2, lambda gate, up: reference.silu(gate) * up), _gated("silu")),
    "geglu": Entry(_checked("geglu", 2, lambda gate, up: reference.gelu(gate) * up), _gated("gelu")),
}
