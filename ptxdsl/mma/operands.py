"""What products of a warp and of a warpgroup share: the instruction's shape by the types, and checks of operands."""

from __future__ import annotations

from typing import Any

from ..errors import PtxTypeError, with_article
from ..language import Value, View, reg
from ..language.errors import described, located
from ..language.values.literals import known_integer
from ..tiles import Tile
from ..types import ScalarType, bf16, e4m3, e5m2, f16, f32, f64, pred, s8, s32, tf32, u8

__all__ = [
    "KINDS", "RESULTS", "SHAPES", "check_shapes", "check_types", "kind_named", "matrix", "moved", "multiple",
    "predicate", "sides", "some",
]

SHAPES = {8: "m16n8k32", 16: "m16n8k16", 32: "m16n8k8", 64: "m8n8k4"}
"""The shape of the instruction, by the bits of an element of a and b."""
RESULTS: dict[ScalarType, tuple[ScalarType, ...]] = {
    f16: (f32, f16), bf16: (f32,), tf32: (f32,), e4m3: (f32, f16), e5m2: (f32, f16), s8: (s32,), u8: (s32,),
    f64: (f64,),
}
"""The types of sums, by those of a and b."""
KINDS = ({f16}, {bf16}, {tf32}, {e4m3, e5m2}, {s8, u8}, {f64})
"""The types of a and b that are multiplied by each other."""


def sides(shape: str) -> tuple[int, int, int]:
    """m, n and k of an instruction."""
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def multiple(what: str, extent: Any, of: int, whose: str = "") -> None:
    known = known_integer(extent)
    if known is None or known < 1 or known % of:
        raise located(PtxTypeError, f"{described(extent)} {what}{whose}: no multiple of {of}", f"a multiple of {of}")


def check_types(what: str, kind: ScalarType, a: Any, b: Any, results: tuple[ScalarType, ...]) -> None:
    """Refuse a product into sums of ``kind``; ``results`` are those that a and b may have, if there are any."""
    if not results:
        hint = next(
            (f"`{name}.cast(tf32)` takes f32 for tf32" for name, x in (("a", a), ("b", b)) if x.dtype is f32),
            f"a and b of {a.dtype}",
        )
        raise located(PtxTypeError, f"`{what}` of {a.dtype} and {b.dtype}: no matrix core multiplies them", hint)
    if kind not in results:
        told = " or ".join(map(str, results))
        raise located(PtxTypeError, f"`{what}` of {a.dtype} into sums of {kind}", f"sums of {told}")


def check_shapes(what: str, sums: tuple[int, int], a: Any, b: Any, *, pair: bool = False) -> None:
    """Refuse shapes that do not go together; of a ``pair``, a and b are the halves of one of two blocks."""
    rows = (1 + pair) * a.shape[0]
    if (rows, (1 + pair) * b.shape[1]) == sums and a.shape[1] == b.shape[0]:
        return
    told = " and ".join(f"{x[0]} x {x[1]}" for x in (a.shape, b.shape))
    turned = isinstance(b, Tile) and (rows, (1 + pair) * b.shape[0]) == sums and a.shape[1] == b.shape[1]
    whose = "the halves of a pair, " if pair else ""
    raise located(
        PtxTypeError, f"`{what}` of {told} into {sums[0]} x {sums[1]}",
        "`b.T`: b is stored with its columns as rows" if turned else f"{whose}a (m, k), b (k, n), sums (m, n)",
    )


def matrix(view: Any, what: str) -> Any:
    if not isinstance(view, View) or len(view.shape) != 2:
        raise located(
            PtxTypeError, f"`{what}` of {described(view)}",
            "a matrix: a parameter `c: Array[f32, 2]`, `shared(f32, 64, 64)`",
        )
    return view


def some(number: Any) -> bool:
    return isinstance(number, Value) or number != 0


def kind_named(kind: object) -> str:
    """A type as it is written, or what came instead of one."""
    return str(kind) if isinstance(kind, ScalarType) else described(kind)


def moved(by: Any, number: Any) -> Any:
    """``number + by``, without an instruction where that is 0."""
    return number + by if some(by) else number


def predicate(accumulate: Any) -> Any:
    """The predicate of an instruction that adds to its sums."""
    if isinstance(accumulate, Value):
        if accumulate.type is not pred:
            message = f"`accumulate` is {with_article(accumulate.type)}"
            raise located(PtxTypeError, message, "a bool or a predicate: `k > 0`")
        return accumulate
    if not isinstance(accumulate, bool):
        raise located(PtxTypeError, f"`accumulate` is {described(accumulate)}", "a bool or a predicate: `k > 0`")
    return reg(pred, accumulate)
