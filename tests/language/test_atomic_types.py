"""Atomic operations compute with what the pointer is one to; what they do to bits, they do to any."""

from __future__ import annotations

from typing import Any

import pytest

from ptxdsl import Ptr, f16, f16x2, f32, f64, ptx, ptx_kernel, reg, s32, s64, u32, u64
from ptxdsl.errors import PtxTypeError, with_article

WRONG = [
    (f32, "atom.global.add.u32", 1), (u32, "red.global.add.f32", 1.0), (s32, "red.global.min.u32", 1),
    (u32, "atom.global.max.s32", 1), (u64, "red.global.add.u32", 1), (u32, "red.global.add.u64", 1),
    (f64, "red.global.add.f32", 1.0), (f32, "atom.global.inc.u32", 7), (f64, "red.global.max.s32", 1),
]
RIGHT = [
    (f32, "red.global.add.f32", 1.0), (u32, "atom.global.add.u32", 1), (s32, "red.global.add.u32", 1),
    (s64, "red.global.add.u64", 1), (u32, "red.global.add.s32", -1), (s32, "red.global.max.s32", -3),
    (f32, "atom.global.max.s32", 5), (f32, "atom.global.min.u32", 5), (f32, "atom.global.exch.b32", reg),
    (f32, "red.global.and.b32", reg), (u32, "atom.global.inc.u32", 7), (f16, "red.global.add.noftz.f16x2", f16x2),
]


def traced(kind: Any, mnemonic: str, operand: Any, cast: Any = None) -> str:
    @ptx_kernel
    def k(x: Ptr[kind], v: Ptr[u32]):
        given = v[0].bits(f16x2) if operand is f16x2 else v[0] if operand is reg else operand
        place = (x if cast is None else x.cast(cast)).at(ptx.tid.x)
        ptx[mnemonic](place, given)

    return k.ptx()


@pytest.mark.parametrize(("kind", "mnemonic", "operand"), WRONG, ids=str)
def test_wrong(kind: Any, mnemonic: str, operand: Any) -> None:
    with pytest.raises(PtxTypeError) as caught:
        traced(kind, mnemonic, operand)
    updated = mnemonic.rpartition(".")[2]
    assert caught.value.message == f"`{mnemonic}` updates {with_article(updated)}, and the pointer is one to {kind}"
    cast = f"`x.cast({updated})` to take what lies there for {with_article(updated)}"
    assert caught.value.hint == f"the operation of {kind}, or {cast}"
    assert mnemonic in traced(kind, mnemonic, operand, {"u32": u32, "s32": s32, "f32": f32, "u64": u64}[updated])


def _id(value: Any) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("kind", "mnemonic", "operand"), RIGHT, ids=_id)
def test_right(kind: Any, mnemonic: str, operand: Any) -> None:
    assert mnemonic in traced(kind, mnemonic, operand)
