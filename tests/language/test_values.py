"""Values, registers and operators: the instruction that each becomes, and the refusal of all else, word for word."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

from ptxdsl import (
    Ptr, b8, b16, b32, b64, bf16, bf16x2, f16, f16x2, f32, f64, maximum, minimum, pred, ptx, ptx_kernel, reg, s16, s32,
    s64, select, u8, u16, u32, u64,
)
from ptxdsl.gpu import assembler, tools
from ptxdsl.errors import EscapeError, PtxError, PtxTypeError, TargetError, TraceError, TruthError
from ptxdsl.text import parse, to_text
from ptxdsl.language import cdiv, pack, trace
from ptxdsl.types import TYPES, ScalarType
from ptxdsl.verify import verify

INTEGERS = [u16, s16, u32, s32, u64, s64]
FLOATS = [f16, f32, f64]


def lines(function: Callable[..., Any]) -> list[str]:
    """The instructions of a kernel function, the final `ret` left out."""
    *found, last = body_of(function)
    assert last == "ret"
    return found


def of(type: ScalarType, body: Callable[[Any, Any], Any]) -> list[str]:
    """The instructions of ``body(a, b)`` for two values of a type."""
    return lines(kernel_of(type, body))


def kernel_of(type: ScalarType, body: Callable[[Any, Any], Any]) -> Callable[..., None]:
    def kernel() -> None:
        body(reg(type), reg(type))

    return kernel


def wrong(type: ScalarType, body: Callable[[Any, Any], Any]) -> str:
    """Message and hint of what ``body(a, b)`` gets."""
    error = refused(kernel_of(type, body))
    assert error.loc is not None and error.loc.file == __file__
    return f"{error.message} / {error.hint}"


# ---------------------------------------------------------------------------------------------------------------------
# Operators are one instruction each


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integer_arithmetic(kind: ScalarType) -> None:
    assert of(kind, lambda a, b: (a + b, a - b, a * b)) == [
        f"add.{kind} {R(kind)}0, %reg, %reg_1", f"sub.{kind} {R(kind)}1, %reg, %reg_1",
        f"mul.lo.{kind} {R(kind)}2, %reg, %reg_1"
    ]


def R(kind: ScalarType) -> str:
    """The prefix of a family of registers."""
    return {"f32": "%f", "f64": "%fd"}.get(str(kind)) or {16: "%h", 32: "%r", 64: "%rd"}[kind.bits]


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_float_arithmetic(kind: ScalarType) -> None:
    assert of(kind, lambda a, b: (a + b, a - b, a * b)) == [
        f"add.{kind} {R(kind)}0, %reg, %reg_1", f"sub.{kind} {R(kind)}1, %reg, %reg_1",
        f"mul.{kind} {R(kind)}2, %reg, %reg_1"
    ]


def test_bf16_arithmetic_is_one_fma_on_sm_80() -> None:
    module = trace(kernel_of(bf16, lambda a, b: (a + b, a - b, a * b, 2.0 - a)))
    assert module.target == "sm_80"
    assert lines(kernel_of(bf16, lambda a, b: (a + b, a - b, a * b, 2.0 - a))) == [
        "mov.b16 %h1, 16256", "mov.b16 %h3, 49024", "mov.b16 %h5, 32768", "mov.b16 %h6, 16384",
        "fma.rn.bf16 %h0, %reg, %h1, %reg_1", "fma.rn.bf16 %h2, %reg_1, %h3, %reg",
        "fma.rn.bf16 %h4, %reg, %reg_1, %h5",
        "fma.rn.bf16 %h7, %reg, %h3, %h6",
    ]


def test_packed_arithmetic() -> None:
    assert of(f16x2, lambda a, b: a * b + a) == ["mul.f16x2 %r0, %reg, %reg_1", "add.f16x2 %r1, %r0, %reg"]
    assert of(bf16x2, lambda a, b: a + b) == ["mov.u32 %r1, 1065369472", "fma.rn.bf16x2 %r0, %reg, %r1, %reg_1"]


def test_division() -> None:
    assert of(f32, lambda a, b: a / b) == ["div.rn.f32 %f0, %reg, %reg_1"]
    assert of(f64, lambda a, b: 1 / b) == ["div.rn.f64 %fd0, 0d3FF0000000000000, %reg_1"]
    assert of(u32, lambda a, b: (a // b, a % 7)) == ["div.u32 %r0, %reg, %reg_1", "rem.u32 %r1, %reg, 7"]
    assert wrong(s32, lambda a, b: a // b) == (
        "`//` of signed s32: Python floors, PTX truncates / `ptx.div.s32(a, b)` truncates"
    )
    assert wrong(s64, lambda a, b: a % 2) == (
        "`%` of signed s64: Python floors, PTX truncates / `ptx.rem.s64(a, b)` truncates"
    )
    assert wrong(u32, lambda a, b: a / b).startswith(
        "`/` of u32: integers have no true division / `a // b` truncates, `a.to(f64) / b.to(f64)` is a float"
    )
    assert wrong(f32, lambda a, b: a % b).startswith("`%` of f32 / ")
    assert wrong(f16, lambda a, b: a / b) == "PTX has no instruction for `/` of f16 / convert: `v.to(f32)`"


def test_shifts_and_bits() -> None:
    assert of(u32, lambda a, b: (a << b, a >> 3, 1 << a)) == [
        "shl.b32 %r0, %reg, %reg_1", "shr.u32 %r1, %reg, 3", "shl.b32 %r2, 1, %reg"
    ]
    assert of(s32, lambda a, b: a >> 3) == ["shr.s32 %r0, %reg, 3"]
    assert of(b64, lambda a, b: (a & b, a | 1, a ^ b, ~a)) == [
        "and.b64 %rd0, %reg, %reg_1", "or.b64 %rd1, %reg, 1", "xor.b64 %rd2, %reg, %reg_1", "not.b64 %rd3, %reg"
    ]
    assert wrong(s32, lambda a, b: a << b) == (
        "the right side of `<<` is a count in u32, not s32 / `b.to(u32)` makes negative numbers large ones (cvt); "
        "`b.bits(u32)` keeps the bits (mov)"
    )
    assert wrong(u64, lambda a, b: 1 << b) == (
        "the right side of `<<` is a count in u32, not u64 / `b.to(u32)` keeps the low 32 bits (cvt)"
    )
    assert wrong(f32, lambda a, b: a & b) == (
        "`&` of f32: floats have no bitwise operators / `v.bits(u32)` gives the bits"
    )
    assert wrong(u32, lambda a, b: a << -1).startswith("-1 does not fit in u32")


def test_bit_operators_keep_the_type() -> None:
    found: list[Any] = []
    of(s32, lambda a, b: found.extend([a & b, a | 1, ~a, a.bits(b32) & b, b ^ a.bits(b32)]))
    assert [v.type for v in found] == [s32] * 5


def test_unary() -> None:
    assert of(f32, lambda a, b: (-a, abs(a), +a)) == ["neg.f32 %f0, %reg", "abs.f32 %f1, %reg", "mov.f32 %f2, %reg"]
    assert of(s32, lambda a, b: (-a, abs(a))) == ["neg.s32 %r0, %reg", "abs.s32 %r1, %reg"]
    assert wrong(u32, lambda a, b: -a) == (
        "`-` of an unsigned u32 / `0 - v` for the two's complement, `v.bits(s32)` for a signed value"
    )
    assert wrong(u32, lambda a, b: abs(a)) == "`abs` of an unsigned u32 / it is `v` itself"


COMPARED = [
    ("lt", operator.lt), ("le", operator.le), ("gt", operator.gt), ("ge", operator.ge), ("eq", operator.eq),
    ("ne", operator.ne),
]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize(("name", "function"), COMPARED, ids=[name for name, _ in COMPARED])
def test_comparisons(kind: ScalarType, name: str, function: Callable[[Any, Any], Any]) -> None:
    # Python's != is true of a NaN.
    expected = "neu" if name == "ne" and kind.is_float else name
    assert of(kind, function) == [f"setp.{expected}.{kind} %p0, %reg, %reg_1"]


def test_comparisons_with_numbers_on_either_side() -> None:
    assert of(s32, lambda a, b: (a < -1, 3 <= a)) == ["setp.lt.s32 %p0, %reg, -1", "setp.ge.s32 %p1, %reg, 3"]
    assert of(b32, lambda a, b: (a == b, a != 0)) == ["setp.eq.b32 %p0, %reg, %reg_1", "setp.ne.b32 %p1, %reg, 0"]
    assert wrong(b32, lambda a, b: a < b) == "`<` of untyped b32: bits have no order / `v.bits(u32)` or `v.bits(s32)`"
    assert wrong(f16x2, lambda a, b: a < b) == "`<` of packed f16x2 has two results / `p, q = ptx.setp.lt.f16x2(a, b)`"


def test_predicates() -> None:
    assert of(u32, lambda a, b: ((a < b) & (a > 1)) | ((a == b) ^ ~(a > 2))) == [
        "setp.lt.u32 %p0, %reg, %reg_1", "setp.gt.u32 %p1, %reg, 1", "and.pred %p2, %p0, %p1",
        "setp.eq.u32 %p3, %reg, %reg_1",
        "setp.gt.u32 %p4, %reg, 2", "not.pred %p5, %p4", "xor.pred %p6, %p3, %p5", "or.pred %p7, %p2, %p6",
    ]
    assert of(u32, lambda a, b: ptx.bar.sync(0, pred=~(a < b))) == ["setp.lt.u32 %p0, %reg, %reg_1", "@!%p0 bar.sync 0"]
    assert of(u32, lambda a, b: ptx.bar.sync(0, pred=~~(a < b))) == ["setp.lt.u32 %p0, %reg, %reg_1", "@%p0 bar.sync 0"]
    assert wrong(u32, lambda a, b: (a < b) + 1) == (
        "`+` of predicates / `select(p, 1, 0)` or `p.to(u32)` makes a number of one"
    )
    assert wrong(u32, lambda a, b: (a < b) < (b < a)) == (
        "`<` of predicates: they have no order and are no numbers / `p.to(u32)` makes a number of one"
    )
    assert wrong(u32, lambda a, b: (a < b) & True) == (
        "`&` of predicate and the bool True / decide it in Python: `if flag:`"
    )


def test_not_of_a_mutable_predicate_is_taken_at_once() -> None:
    def kernel(x: Ptr[f32]) -> None:
        done = reg(pred, False)
        running = ~done
        done.set(True)
        ptx.bar.sync(0, pred=running)

    assert lines(kernel) == [
        "setp.ne.u32 %done, 0, 0", "not.pred %p0, %done", "setp.eq.u32 %done, 0, 0", "@%p0 bar.sync 0"
    ]


@pytest.mark.parametrize("kind", [f16, f32, f64, u16, s32, u64], ids=str)
def test_select_minimum_maximum(kind: ScalarType) -> None:
    moved = kind.register
    assert of(kind, lambda a, b: (minimum(a, b), maximum(a, b)))[0] == f"min.{kind} {R(kind)}0, %reg, %reg_1"
    assert of(kind, lambda a, b: select(a < b, a, b)) == [
        f"setp.lt.{kind} %p0, %reg, %reg_1", f"selp.{moved} {R(kind)}0, %reg, %reg_1, %p0"
    ]


@pytest.mark.parametrize("kind", [u16, u32, u64], ids=str)
def test_division_by_a_power_of_two_is_a_shift_or_an_and(kind: ScalarType) -> None:
    r, bits = R(kind), kind.bits
    for shift in (0, 1, bits - 1):
        n = 1 << shift
        assert of(kind, lambda a, b: (a // n, a % n)) == [
            f"shr.{kind} {r}0, %reg, {shift}", f"and.b{bits} {r}1, %reg, {n - 1}"
        ]
    assert of(kind, lambda a, b: (a // np.uint16(8), a % 12, a // b, 8 // b, a // 3)) == [
        f"shr.{kind} {r}0, %reg, 3", f"rem.{kind} {r}1, %reg, 12", f"div.{kind} {r}2, %reg, %reg_1",
        f"div.{kind} {r}3, 8, %reg_1", f"div.{kind} {r}4, %reg, 3",
    ]


def test_division_by_a_power_of_two_in_place() -> None:
    def kernel(n: u32, x: Ptr[u32]) -> None:
        v, w = reg(u32, n), reg(u32, n)
        v //= 16
        w %= 16
        x[0] = v
        x[1] = w

    assert [line for line in lines(kernel) if line.startswith(("shr", "and"))] == [
        "shr.u32 %v, %v, 4", "and.b32 %w, %w, 15"
    ]


def test_select_in_detail() -> None:
    assert of(f32, lambda a, b: select(~(a < b), a, 0.0))[1:] == ["selp.f32 %f0, 0f00000000, %reg, %p0"]
    assert minimum(3, 4) == 3 and maximum(2.5, 1) == 2.5 and cdiv(1000, 256) == 4 and cdiv(1024, 256) == 4
    assert of(u32, lambda a, b: cdiv(a, 4)) == ["add.u32 %r0, %reg, 3", "shr.u32 %r1, %r0, 2"]
    assert wrong(u32, lambda a, b: select(a < b, 1, 0)) == (
        "`select` of two Python numbers has no type / give one of them a type: `reg(s32, 1)`"
    )
    assert wrong(u32, lambda a, b: select(a, a, b)) == (
        "`select` takes a predicate first, not u32 / compare: `select(v != 0, a, b)`"
    )
    assert wrong(u32, lambda a, b: select(a < b, a < b, b < a)) == "PTX selects no predicates / `(p & a) | (~p & b)`"
    assert wrong(u32, lambda a, b: select(a < b, a, b.to(f32))).startswith(
        "`select` of u32 and f32: PTX converts nothing by itself"
    )
    assert wrong(u32, lambda a, b: maximum(a, "x")).startswith("`maximum` of the str 'x' / ")


def test_a_product_and_a_sum_stay_two_instructions() -> None:
    assert of(u32, lambda a, b: a * b + 1) == ["mul.lo.u32 %r0, %reg, %reg_1", "add.u32 %r1, %r0, 1"]


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def test_numbers_take_the_type_of_the_other_side() -> None:
    assert of(f32, lambda a, b: (a * 2, 1.5 - a, a + np.float64(0.25))) == [
        "mul.f32 %f0, %reg, 0f40000000", "sub.f32 %f1, 0f3FC00000, %reg", "add.f32 %f2, %reg, 0f3E800000"
    ]
    assert of(f32, lambda a, b: np.float32(2) * a) == ["mul.f32 %f0, 0f40000000, %reg"]
    assert of(u32, lambda a, b: (a + np.int64(7), np.uint8(7) - a)) == ["add.u32 %r0, %reg, 7", "sub.u32 %r1, 7, %reg"]
    assert of(f32, lambda a, b: (a + -0.0, a + 0.0)) == [
        "add.f32 %f0, %reg, 0f80000000", "add.f32 %f1, %reg, 0f00000000",
    ]
    assert of(f16, lambda a, b: (a * 2, a + 2)) == [
        "mov.b16 %h0, 16384", "mul.f16 %h1, %reg, %h0", "add.f16 %h2, %reg, %h0"
    ]


@pytest.mark.parametrize(
    ("kind", "number", "message"),
    [
        (u32, -1,
         ("-1 does not fit in u32, which holds 0 to 4294967295 / subtract a positive number, or make it "
          "signed: `v.to(s64)`")),
        (u32, 2**32,
         "4294967296 does not fit in u32, which holds 0 to 4294967295 / a wider type may hold it: `v.to(u64)`"),
        (s16, 40000, "40000 does not fit in s16, which holds -32768 to 32767 / `-25536` has its bits"),
        (u32, 2.5, "the float 2.5 is no u32 / `v.to(f64)` first, if the result is meant to be a float"),
        (u32, 2.0, "the float 2.0 is no u32 / write `2`"),
        (f32, 1e39, "1e+39 does not fit in f32 / `float('inf')` is the infinity"),
        (f16, 1e5, "100000.0 does not fit in f16 / `float('inf')` is the infinity"),
        (u32, True, "True is no number of type u32 / write 1, or decide it in Python: `if flag:`"),
        (u32, "abc", "`+` of u32 and the str 'abc' / operands are Values, regs and Python numbers"),
        (f32, None, "`+` of f32 and the NoneType None / operands are Values, regs and Python numbers"),
        (f32, np.ones(3),
         "`+` of f32 and the ndarray array([1., 1., 1.]) / operands are Values, regs and Python numbers"),
    ],
)
def test_numbers_that_do_not_fit(kind: ScalarType, number: Any, message: str) -> None:
    assert wrong(kind, lambda a, b: a + number) == message


# ---------------------------------------------------------------------------------------------------------------------
# Types are strict


@pytest.mark.parametrize("symbol", ["+", "-", "*", "//", "&", "<", "==", "%"])
def test_no_two_types_meet(symbol: str) -> None:
    def kernel(n: u32, m: s32) -> None:
        eval(f"n {symbol} m")

    error = refused(kernel)
    assert type(error) is PtxTypeError and error.message == f"`{symbol}` of u32 and s32: PTX converts nothing by itself"
    assert error.hint == "`n.to(s64)` and `m.to(s64)` keep every number (cvt); `n.bits(s32)` keeps the bits (mov)"


def test_the_error_names_the_line_and_the_variables() -> None:
    def kernel(count: u32, scale: f32, x: Ptr[f32]) -> None:
        x[0] = count * scale

    assert said(refused(kernel), kernel) == (
        "PtxTypeError", "`*` of u32 and f32: PTX converts nothing by itself", "x[0] = count * scale",
        "`count.to(f64)` and `scale.to(f64)` keep every number (cvt); `count.to(f32)` rounds (cvt)",
    )
    line = kernel.__code__.co_firstlineno + 1
    assert str(refused(kernel)) == (
        "`*` of u32 and f32: PTX converts nothing by itself\n"
        f"  at {__file__}:{line}: x[0] = count * scale\n"
        "  hint: `count.to(f64)` and `scale.to(f64)` keep every number (cvt); `count.to(f32)` rounds (cvt)"
    )


def test_small_types_do_not_compute() -> None:
    assert wrong(u8, lambda a, b: a + b) == "`+` of u8: PTX does not compute in 8 bits / `v.to(u32)` first"
    assert wrong(b8, lambda a, b: a & b) == "`&` of b8: PTX does not compute in 8 bits / `v.bits(u8).to(u32)` first"
    assert wrong(b32, lambda a, b: a + b) == "`+` of untyped b32 / say what the bits are: `v.bits(u32)`"
    assert wrong(u8, lambda a, b: a.set(1)) == "PTX has no mov of u8 / keep it in a `reg(u32)`: `v.to(u32)`"


CONVERSIONS = [
    (u32, f32, "cvt.rn.f32.u32"), (f32, u32, "cvt.rzi.u32.f32"), (f32, s64, "cvt.rzi.s64.f32"),
    (f64, f32, "cvt.rn.f32.f64"),
    (f32, f64, "cvt.f64.f32"), (f32, f16, "cvt.rn.f16.f32"), (f16, f32, "cvt.f32.f16"), (u32, u64, "cvt.u64.u32"),
    (s64, s32, "cvt.s32.s64"), (u32, u8, "cvt.u8.u32"), (u8, u32, "cvt.u32.u8"), (s32, u32, "cvt.u32.s32"),
    (s32, f16, "cvt.rn.f16.s32"), (f16, s32, "cvt.rzi.s32.f16"), (bf16, f32, "cvt.f32.bf16"),
    (u16, f64, "cvt.rn.f64.u16"),
]


@pytest.mark.parametrize(("source", "target", "mnemonic"), CONVERSIONS, ids=[m for _, _, m in CONVERSIONS])
def test_to(source: ScalarType, target: ScalarType, mnemonic: str) -> None:
    found: list[Any] = []
    (line,) = of(source, lambda a, b: found.append(a.to(target)))
    assert line.split()[0] == mnemonic and found[0].type is target


def test_to_in_detail() -> None:
    assert of(f32, lambda a, b: a.to(s32, "rni", "sat"))[0].startswith("cvt.rni.sat.s32.f32")
    assert of(f32, lambda a, b: a.to(f16, "rz"))[0].startswith("cvt.rz.f16.f32")
    assert of(f32, lambda a, b: a.to(f32, "rmi"))[0].startswith("cvt.rmi.f32.f32")
    assert of(f32, lambda a, b: (a < b).to(f32))[1:] == ["selp.f32 %f0, 0f3F800000, 0f00000000, %p0"]
    assert of(u32, lambda a, b: a.to(pred)) == ["setp.ne.u32 %p0, %reg, 0"]
    # A reg is copied, or what `.to` returns would change with it.
    assert of(u32, lambda a, b: a.to(u32)) == ["mov.u32 %r0, %reg"]
    assert of(u32, lambda a, b: (a + 1).to(u32)) == ["add.u32 %r0, %reg, 1"]
    assert wrong(f32, lambda a, b: a.to(b32)) == "b32 has no value to convert, only bits / `v.bits(b32)` keeps the bits"
    assert wrong(b32, lambda a, b: a.to(f32)) == (
        "b32 has no value to convert, only bits / say what they are first: `v.bits(u32)`"
    )
    assert wrong(u32, lambda a, b: a.to(f32, "rzi")) == (
        "PTX has no cvt.rzi from u32 to f32 / `v.to(f32)` without the modifiers"
    )
    assert wrong(u32, lambda a, b: a.to(float)) == (
        "`.to()` takes a type, not the type <class 'float'> / write `v.to(f32)`"
    )


def test_bits() -> None:
    assert of(f32, lambda a, b: a.bits(u32)) == ["mov.b32 %r0, %reg"]
    assert of(f16, lambda a, b: a.bits(u16)) == ["mov.b16 %h0, %reg"]
    assert wrong(f32, lambda a, b: a.bits(u64)) == (
        "the bits of f32 (32) cannot be those of u64 (64) / `a.bits(u32).to(u64)`"
    )


def test_pack_and_unpack() -> None:
    assert of(u64, lambda a, b: a.unpack(u32)) == ["mov.b64 {%r0, %r1}, %reg"]
    assert of(f16, lambda a, b: pack(f16x2, a, b)) == ["mov.b32 %r0, {%reg, %reg_1}"]
    assert of(f16x2, lambda a, b: [v.type for v in a.unpack(f16)]) == ["mov.b32 {%h0, %h1}, %reg"]
    assert wrong(u32, lambda a, b: pack(f16x2, a, b)).startswith("u32 and u32 do not fill an f16x2 / ")


# ---------------------------------------------------------------------------------------------------------------------
# Registers


def test_in_place_is_exactly_one_instruction() -> None:
    def kernel(x: f32, n: u32) -> None:
        acc = reg(f32, 0.0)
        acc += x
        acc *= 2
        acc -= x
        acc /= x
        acc.set(x)
        bits = reg(u32, n)
        bits <<= 1
        bits |= n
        bits &= 7
        bits ^= n
        bits //= 3
        bits %= n
        bits >>= 1

    assert lines(kernel) == [
        "mov.f32 %acc, 0f00000000", "add.f32 %acc, %acc, %f0", "mul.f32 %acc, %acc, 0f40000000",
        "sub.f32 %acc, %acc, %f0",
        "div.rn.f32 %acc, %acc, %f0", "mov.f32 %acc, %f0", "mov.u32 %bits, %r0", "shl.b32 %bits, %bits, 1",
        "or.b32 %bits, %bits, %r0", "and.b32 %bits, %bits, 7", "xor.b32 %bits, %bits, %r0", "div.u32 %bits, %bits, 3",
        "rem.u32 %bits, %bits, %r0", "shr.u32 %bits, %bits, 1",
    ]


def test_registers_are_named_after_their_variables() -> None:
    def kernel(x: f32) -> None:
        total: Any = reg(f32, x)
        low, high = reg(u32, 0), reg(u32, 1)
        parts = [reg(f32, 1.0) for _ in range(2)]
        r1 = reg(f32, 3.0)
        tid = reg(f32, 3.0)
        total = reg(f32, x)
        größe = reg(f32, 4.0)
        [reg(f32, 5.0)]

    names = [line.split()[1].rstrip(",") for line in lines(kernel)]
    assert names == ["%total", "%low", "%high", "%parts0", "%parts1", "%r1_", "%tid_1", "%total_1", "%vgr__e", "%reg"]


def test_reg_of_a_value_takes_its_type() -> None:
    assert of(f64, lambda a, b: reg(a + b).type) == ["add.f64 %fd0, %reg, %reg_1", "mov.f64 %reg_2, %fd0"]
    assert wrong(u32, lambda a, b: reg(f32, a)) == (
        "a register of f32 does not take a u32 / `a.to(f32)` rounds (cvt); `a.bits(f32)` keeps the bits (mov)"
    )
    assert wrong(u32, lambda a, b: reg(3)) == "`reg` takes a type, not the int 3 / write `reg(f32, 0.0)`"
    assert wrong(u32, lambda a, b: reg(float, 0.0)).startswith("`reg` takes a type, not the type <class 'float'>")
    assert wrong(f32, lambda a, b: a.set("x")) == (
        "a register of f32 does not take the str 'x' / give a Value or a number"
    )


def test_sum_of_a_python_list() -> None:
    assert of(u32, lambda a, b: sum([a, b])) == ["add.u32 %r0, 0, %reg", "add.u32 %r1, %r0, %reg_1"]


# ---------------------------------------------------------------------------------------------------------------------
# R4: no truth, R1: no escape


TRUTHS: list[tuple[str, Callable[[Any, Any], Any], str, str]] = [
    ("if", lambda a, b: 1 if a < b else 0, "a run-time predicate", "truth"),
    ("if value", lambda a, b: 1 if a else 0, "`a`, a run-time u32,", "truth"),
    ("and", lambda a, b: (a < b) and (b < a), "a run-time predicate", "truth"),
    ("not", lambda a, b: not a, "`a`, a run-time u32,", "truth"),
    ("chained", lambda a, b: 0 <= a < b, "a run-time predicate", "truth"),
    ("in", lambda a, b: a in [b], "a run-time predicate", "truth"),
    ("min", lambda a, b: min(a, b), "a run-time predicate", "truth"),
    ("sorted", lambda a, b: sorted([a, b]), "a run-time predicate", "truth"),
    ("range", lambda a, b: range(a), "`a`, a run-time u32,", "int"),
    ("index", lambda a, b: [1, 2][a], "`a`, a run-time u32,", "int"),
    ("int", lambda a, b: int(a), "`a`, a run-time u32,", "int"),
    ("float", lambda a, b: float(a), "`a`, a run-time u32,", "float"),
    ("complex", lambda a, b: complex(a), "`a`, a run-time u32,", "complex number"),
    ("math", lambda a, b: math.sqrt(a), "`a`, a run-time u32,", "float"),
    ("floor", lambda a, b: math.floor(a), "`a`, a run-time u32,", "floor"),
    ("round", lambda a, b: round(a), "`a`, a run-time u32,", "rounding"),
    ("len", lambda a, b: len(a), "`a`, a run-time u32,", "length"),
    ("for", lambda a, b: list(a), "`a`, a run-time u32,", "iterator"),
    ("unpack", lambda a, b: (*a,), "`a`, a run-time u32,", "iterator"),
    ("contains", lambda a, b: 1 in a, "`a`, a run-time u32,", "membership test"),
    ("hash", lambda a, b: {a: 1}, "`a`, a run-time u32,", "hash"),
    ("set", lambda a, b: {a, b}, "`a`, a run-time u32,", "hash"),
    ("format", lambda a, b: f"{a:.3f}", "`a`, a run-time u32,", "number to format"),
    ("numpy", lambda a, b: np.sqrt(a), "`a`, a run-time u32,", "number for numpy"),
    ("array", lambda a, b: np.array([a]).sum() and np.asarray(a), "`a`, a run-time u32,", "array"),
]


@pytest.mark.parametrize(("function", "subject", "what"), [t[1:] for t in TRUTHS], ids=[t[0] for t in TRUTHS])
def test_a_run_time_value_has_no_python_value(function: Callable[[Any, Any], Any], subject: str, what: str) -> None:
    error = refused(kernel_of(u32, function))
    assert type(error) is TruthError and isinstance(error, TypeError)
    assert error.message == f"{subject} has no Python {what}: the kernel is traced once, before it runs"
    assert error.loc is not None and error.loc.file == __file__ and error.hint


def test_printing_a_value_while_tracing() -> None:
    seen: list[str] = []
    of(f32, lambda a, b: seen.extend([f"{a + b}", repr(a < b), str(~(a < b))]))
    assert seen == ["<f32 %f0>", "<pred %p0>", "<pred !%p1>"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a**2, "`**` of u32: PTX has no power"),
        (lambda a, b: 2**a, "`**` of u32: PTX has no power"),
        (lambda a, b: a @ b, "`@` of u32: no matrices here"),
        (lambda a, b: divmod(a, b), "divmod() is two instructions"),
        (lambda a, b: a[0], "a u32 value has no elements"),
    ],
)
def test_what_has_another_spelling(function: Callable[[Any, Any], Any], message: str) -> None:
    error = refused(kernel_of(u32, function))
    assert type(error) is PtxTypeError and error.message == message and error.hint


leaked: list[Any] = []


def test_a_value_of_another_trace() -> None:
    def first(n: u32) -> None:
        leaked.append(n + 1)

    def second(n: u32) -> None:
        v = leaked[0]
        n + v

    trace(first)
    line = first.__code__.co_firstlineno + 1
    assert said(refused(second), second) == (
        "EscapeError", f"`v` was computed at {__file__}:{line}, in the trace of `first`, which is over", "n + v",
        "compute it in this kernel, or pass it as a parameter",
    )
    with pytest.raises(EscapeError, match="^`%r1` was computed at .* in the trace of `first`, which is over"):
        leaked[0] + 1
    leaked.clear()


def test_outside_a_kernel() -> None:
    with pytest.raises(TraceError) as caught:
        reg(f32, 0.0)
    assert caught.value.message == "no kernel is being traced here"
    assert caught.value.loc is not None and caught.value.loc.source == "reg(f32, 0.0)"
    with pytest.raises(TraceError, match="^no kernel is being traced here"):
        ptx.tid.x


# ---------------------------------------------------------------------------------------------------------------------
# The whole matrix is PTX that NVIDIA's assembler takes and that computes what Python computes


def everything(x: Ptr[u64]) -> None:
    """Every operator of every type that has it."""
    for kind in TYPES.values():
        if kind.kind not in "usfb" or kind.bits == 128:
            continue
        try:
            a, b = reg(kind).copy(), reg(kind).copy()
        except PtxTypeError:
            continue
        shift = reg(u32).copy()
        for function in (
            lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / b, lambda: a // b, lambda: a % b, lambda: a & b,
            lambda: a | b, lambda: a ^ b, lambda: ~a, lambda: -a, lambda: abs(a), lambda: a << shift,
            lambda: a >> shift,
            lambda: a < b, lambda: a == b, lambda: a != b, lambda: minimum(a, b), lambda: maximum(a, b),
            lambda: select(shift == 0, a, b), lambda: a + 1, lambda: 2 - a, lambda: a != 0,
        ):
            try:
                function()
            except (PtxTypeError, TargetError):
                pass
        for target in (target for target in TYPES.values() if target.kind in "usfbp"):
            for convert in (a.to, a.bits):
                try:
                    convert(target)
                except (PtxTypeError, TargetError):
                    pass


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
@pytest.mark.filterwarnings("ignore")
def test_every_operator_assembles() -> None:
    module = trace(everything, arch="sm_100a")
    assert len(module.functions[0].body or ()) > 500
    text = to_text(module)
    assert parse(text) == parse(to_text(parse(text)))
    assembler.assemble(text, "sm_100a")


@ptx_kernel
def integers(out: Ptr[s64], a: s32, b: s32, c: u32, d: u32):
    values = [a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, -a, abs(a), a >> (d & 15), minimum(a, b), maximum(a, b)]
    for i, v in enumerate(values):
        out[i] = v.to(s64)
    for i, v in enumerate([c + d, c - d, c * d, c // d, c % d, c << (d & 15), c >> (d & 15), ~c]):
        out[i + len(values)] = v.to(s64)
    for i, p in enumerate([a < b, a <= b, a > b, a >= b, a == b, a != b, c < d, c >= d]):
        out[i + len(values) + 8] = select(p, reg(s64, 1), 0)


def test_integer_operators_compute(rng: np.random.Generator) -> None:
    for _ in range(20):
        a, b = (int(v) for v in rng.integers(-(2**31), 2**31, 2))
        c, d = int(rng.integers(0, 2**32)), int(rng.integers(1, 2 ** int(rng.integers(1, 33))))
        out = np.full(28, -1, np.int64)
        integers[1, 1](out, a, b, c, d)
        signed = [a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, -a, abs(a), a >> (d & 15), min(a, b), max(a, b)]
        unsigned = [c + d, c - d, c * d, c // d, c % d, c << (d & 15), c >> (d & 15), ~c]
        expected = [(v + 2**31) % 2**32 - 2**31 for v in signed] + [v % 2**32 for v in unsigned]
        expected += [int(v) for v in (a < b, a <= b, a > b, a >= b, a == b, a != b, c < d, c >= d)]
        assert out.tolist() == expected


@ptx_kernel
def floats(out: Ptr[f32], a: f32, b: f32, h: f16, g: f16, p: bf16, q: bf16):
    for i, v in enumerate([a + b, a - b, a * b, a / b, -a, abs(a), minimum(a, b), maximum(a, b), 1.5 * a]):
        out[i] = v
    for i, v in enumerate([h + g, h - g, h * g, 2 - h]):
        out[9 + i] = v.to(f32)
    for i, v in enumerate([p + q, p - q, p * q, 2 - p]):
        out[13 + i] = v.to(f32)


def test_float_operators_compute(rng: np.random.Generator) -> None:
    import ml_dtypes

    for _ in range(20):
        a, b = rng.normal(size=2).astype(np.float32)
        h, g = rng.normal(size=2).astype(np.float16)
        p, q = rng.normal(size=2).astype(ml_dtypes.bfloat16)
        out = np.full(17, np.nan, np.float32)
        floats[1, 1](out, a, b, h, g, p, q)
        single = [a + b, a - b, a * b, a / b, -a, abs(a), min(a, b), max(a, b), np.float32(1.5) * a]
        half = [h + g, h - g, h * g, np.float16(2) - h]
        brain = [np.float64(v) for v in (p, q)]
        exact = [brain[0] + brain[1], brain[0] - brain[1], brain[0] * brain[1], 2 - brain[0]]
        expected = [*single, *half, *(np.asarray(v).astype(ml_dtypes.bfloat16) for v in exact)]
        np.testing.assert_array_equal(out, np.array([np.float32(v) for v in expected]))


def test_nan_is_not_equal_to_itself() -> None:
    out = np.zeros(2, np.uint32)
    nan_kernel[1, 1](out, float("nan"))
    assert out.tolist() == [1, 0]


@ptx_kernel
def nan_kernel(out: Ptr[u32], a: f32):
    out[0] = (a != a).to(u32)
    out[1] = (a == a).to(u32)


def test_the_trace_verifies() -> None:
    verify(trace(kernel_of(u32, lambda a, b: None)))
    assert isinstance(refused(kernel_of(u32, lambda a, b: a + 1.5)), PtxError)
    assert b16.bits == 16
