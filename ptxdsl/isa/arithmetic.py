"""How many floating-point operations an instruction stands for, which is what a profiler counts."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from .forms import Form
from .fragments import shape_of

__all__ = ["Flops", "flops"]


class Flops(NamedTuple):
    """The type that the operations are done in ("" for none), their number for each lane and for each warp."""

    type: str
    lane: int
    warp: int


_OPERATIONS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh", "ex2", "lg2"), 1),
    **dict.fromkeys(("fma", "mad"), 2),
}
_PRODUCTS = ("mma", "wmma", "wgmma")
_NOTHING = Flops("", 0, 0)


@cache
def flops(form: Form) -> Flops:
    """The floating-point operations of a form: one for a sum, two for a multiply-add.

    >>> from ptxdsl.isa import lookup
    >>> flops(lookup("fma.rn.f16x2")[0])
    Flops(type='f16', lane=4, warp=0)
    """
    kind = form.type
    if form.opcode in _PRODUCTS and (shape := shape_of(form.tokens)):
        return _product(form, *map(int, re.findall(r"\d+", shape)))
    adds = form.effects.atomic == "add"
    count = 1 if adds else _OPERATIONS.get(form.opcode, 0)
    if kind is None or kind.kind != "f" or not count:
        return _NOTHING
    result = form.operands[0].type if not adds else kind  # add.f32.bf16 adds in f32
    return Flops(str(result).removesuffix("x2"), max(1, kind.lanes) * count, 0)


def _product(form: Form, m: int, n: int, k: int) -> Flops:
    types = [token for token in form.tokens if re.fullmatch(r"(tf|bf|f|e\dm)\d+", token)]
    factors = types[-2] if len(types) > 2 else "f16"  # wmma names only what it adds where the factors are f16
    half = any(token.partition("::")[0] == "sp" for token in form.tokens)
    count = 4 if (m, n, k, factors) == (8, 8, 4, "f16") else 1  # products of m8n8k4
    warps = 4 if form.effects.converges == "warpgroup" else 1
    return Flops(factors, 0, 2 * m * n * k * count // (1 + half) // warps) if types else _NOTHING
