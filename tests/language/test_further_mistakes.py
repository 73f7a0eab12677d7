"""Further mistakes, word for word: what a user would write who knows Python, numpy or CUDA better than this language.

Each program is refused when it is decorated or traced, with its line and a repair.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing_helpers import refused, said

from ptxdsl import (
    Array, Ptr, Surface, Texture, check, const, f16, f32, loop, printf, ptx, ptx_kernel, reg, s32, select, shared, u32,
    u64, u8, when,
)
from ptxdsl import warp
from ptxdsl import math as gpu_math
from ptxdsl.language import trace

# What is wrong in them is the point.
# ruff: noqa: B006, BLE001, E731, PLW0177


@ptx_kernel
def other(n: u32, x: Ptr[u32]):
    x[0] = n


@dataclasses.dataclass
class State:
    a: Any
    b: Any = 0


def endless(n):
    return endless(n - 1)


def factorial(n):
    if n == 0:
        return 1
    return n * factorial(n - 1)


def halfway(n, x):
    with when(n < 5):
        x[0] = 1
        yield
        x[1] = 1


def no_out_pred(x: Ptr[u32], n: u32):
    ptx.ld.global_.u32(x, pred=n > 3)


def vec_len(x: Ptr[f32]):
    ptx.st.global_.v4.f32(x, [x[0], x[1]])


def width3(x: Ptr[f32]):
    x.load(0, width=3)


def f16_f32(x: Ptr[f16], y: Ptr[f32]):
    y[0] = x[0] + y[0]


def shared_as_global(x: Ptr[u32]):
    s = shared(u32, 4)
    ptx.ld.global_.u32(s)


def shared_generic(x: Ptr[u32]):
    s = shared(u32, 4)
    ptx.ld.u32(s)


def mask_64(x: Ptr[u32]):
    ptx.shfl.sync.bfly.b32(x[0], 16, 31, 1099511627775)


def mask_zero(x: Ptr[u32]):
    x[0] = ptx.shfl.sync.bfly.b32(x[0], 16, 31, 0)


def mask_missing(x: Ptr[u32]):
    ptx.shfl.sync.bfly.b32(x[0], 16, 31)


def py_sqrt(x: Ptr[f32]):
    x[0] = math.sqrt(x[0])


def np_sum(x: Ptr[f32]):
    x[0] = np.sum([x[0], x[1]])


def np_times_array(x: Ptr[f32]):
    a = np.ones(3, np.float32) * x[0]


def assert_value(n: u32):
    assert n < 5, "too many"


def match_value(n: u32, x: Ptr[u32]):
    match n:
        case 1:
            x[0] = 1
        case _:
            x[0] = 2


def dict_key(n: u32, x: Ptr[u32]):
    d = {n: 1}


def try_except(n: u32, x: Ptr[u32]):
    try:
        if n < 5:
            x[0] = 1
    except Exception:
        x[0] = 2


def reg_py_type(n: u32):
    a = reg(float, 0.0)


def out_value(x: Ptr[f32]):
    v = x[0]
    ptx.add.f32(v, v, out=v)


def out_positional(x: Ptr[f32]):
    v = reg(f32)
    ptx.add.f32(v, x[0], x[1])


def pred_bool(n: u32, x: Ptr[f32]):
    v = reg(f32)
    ptx.add.f32(x[0], x[1], out=v, pred=True)


def pred_arith(n: u32, x: Ptr[u32]):
    x[0] = (n < 5) + 1


def select_mixed(n: u32, x: Ptr[f32]):
    x[0] = select(n < 5, x[0], n)


def when_bool(n: u32, x: Ptr[u32]):
    with when(True):
        x[0] = 1


def loop_mixed(n: u32, m: s32, x: Ptr[u32]):
    with loop(n, m) as i:
        x[i] = 1


def for_loop_obj(n: u32, x: Ptr[u32]):
    for i in loop(n):
        x[i] = 1


def kernel_calls_kernel(n: u32, x: Ptr[u32]):
    other(n, x)


def recursion2(n: u32, x: Ptr[u32]):
    x[0] = factorial(n)


def recursion(n: u32):
    endless(n)


def gen_abandoned(n: u32, x: Ptr[u32]):
    next(halfway(n, x))
    x[2] = 1


def dc_lost(n: u32, x: Ptr[u32]):
    s = State(x[0])
    with loop(n) as i:
        s.a = s.a + x[i]
    x[0] = s.a


def dc_replace(n: u32, x: Ptr[u32]):
    s = State(reg(u32, 0))
    with loop(n) as i:
        s = dataclasses.replace(s, a=s.a + x[i])
    x[0] = s.a


def copy_reg(n: u32, x: Ptr[u32]):
    a = reg(u32, 0)
    b = copy.copy(a)
    b += 1
    x[0] = a
    x[1] = b


def deepcopy_reg(n: u32, x: Ptr[u32]):
    a = [reg(u32, 0)]
    b = copy.deepcopy(a)
    b[0] += 1
    x[0] = a[0]


def mutable_default(n: u32, x: Ptr[u32]):

    def f(v, acc=[]):
        acc.append(v)
        return acc
    with loop(n) as i:
        f(x[i])
    x[0] = f(n)[0]


def arr_count(a: Array[f32, 2]):
    a[0] = 1.0


def arr_neg(a: Array[f32, None, 64], x: Ptr[f32]):
    x[0] = a[0, -1]


def arr_range(a: Array[f32, None, 64], x: Ptr[f32]):
    x[0] = a[0, 64]


def arr_T(a: Array[f32, 2], x: Ptr[f32]):
    x[0] = a.T[0, 1]


def arr_iter(a: Array[f32, 2], x: Ptr[f32]):
    for row in a:
        x[0] = row[0]


def sh_neg(x: Ptr[f32]):
    s = shared(f32, 16)
    s[-1] = 1.0


def sh_runtime(n: u32):
    s = shared(f32, n)


def ptr_cmp_int(n: u32, x: Ptr[f32]):
    with when(x == 0):
        ptx.trap()


def ptr_iadd_loop(n: u32, x: Ptr[f32]):
    with loop(n):
        x += 1
        x[0] = 1.0


def ptr_mul(n: u32, x: Ptr[f32]):
    (x * 2)[0] = 1.0


def ptr_diff(n: u32, x: Ptr[f32], y: Ptr[f32]):
    x[0] = x - y


def ptr_as_value(n: u32, x: Ptr[f32]):
    ptx.add.u64(x, 4)


def ptr_attr(n: u32, x: Ptr[f32]):
    x.lod(0)


def val_attr(n: u32, x: Ptr[f32]):
    n.astype(f32)


def val_item(n: u32, x: Ptr[f32]):
    n.item()


def val_set(n: u32, x: Ptr[f32]):
    v = n + 1
    v.set(3)


def val_float(n: u32, x: Ptr[f32]):
    x[0] = n.float()


def texture_apart(n: u32, t: Texture, x: Ptr[f32]):
    x[0] = ptx.tex["1d.v4.f32.f32"](t, (x[0],))[0]


def surface_apart(n: u32, s: Surface, x: Ptr[f32]):
    ptx.sust.b["1d.b32.trap"](s, (0,), n)


def const_overflow(n: u32, x: Ptr[f32]):
    t = const([1, 300], u8)


def const_fraction(n: u32, x: Ptr[u32]):
    t = const([1.5], u32)
    x[0] = t[0]


def const_big(n: u32, x: Ptr[u32]):
    t = const(np.zeros(20000, np.uint32))
    x[0] = t[0]


def const_str(n: u32, x: Ptr[u32]):
    t = const("abc", u8)
    x[0] = t[0]


def printf_count(n: u32):
    printf("%u %u", n)


def printf_kind(n: f32):
    printf("%u", n)


def printf_64(n: u64):
    printf("%u", n)


def check_bool(n: u32):
    check(True, "x")


def bar_range(n: u32):
    ptx.bar.sync(16)


def ret_pred_kw(n: u32):
    ptx.ret(n < 5)


def shift_neg(n: u32, x: Ptr[u32]):
    x[0] = n << -1


def div_zero(n: u32, x: Ptr[u32]):
    x[0] = n // 0


def lit_big(n: u32, x: Ptr[u32]):
    x[0] = n + 2 ** 32


def lit_f16_over(n: f16, x: Ptr[f16]):
    x[0] = n + 70000.0


def nan_cmp(n: f32, x: Ptr[f32]):
    x[0] = select(n == float("nan"), 1.0, 0.0)


def try_lost(n: u32, x: Ptr[u32]):
    v = x[0]
    try:
        with loop(n):
            v = v + 1
    except Exception:
        pass
    x[0] = v


def with_suppress(n: u32, x: Ptr[u32]):
    with contextlib.suppress(Exception):
        if n < 5:
            x[0] = 1
    x[1] = 2


def lambda_value(n: u32, x: Ptr[u32]):
    f = lambda: x[0]
    with when(n < 5):
        g = f()
    x[1] = g


def ptx_typo(n: u32):
    ptx.ad.u32(n, n)


def ptx_tidx(n: u32, x: Ptr[u32]):
    x[0] = ptx.tid


def ptx_tidw(n: u32, x: Ptr[u32]):
    x[0] = ptx.tid.w


def ptx_threadIdx(n: u32, x: Ptr[u32]):
    x[0] = ptx.threadIdx.x


def ptx_set(n: u32):
    ptx.tid.x = 5


def ptx_str(n: u32):
    ptx["add.u32 %r1, %r2, %r3;"](n)


def warp_ptr(n: u32, x: Ptr[f32]):
    x[0] = warp.reduce_sum(x)


def math_py(n: u32, x: Ptr[f32]):
    x[0] = gpu_math.exp(1.0)


TRUTH = (
    "`with when(p):` for `if`, `with loop(): ... break_if(p)` for `while`, `select(p, a, b)` for `a if p "
    "else b`, `&`, `|`, `~` for `and`, `or`, `not`, `(a <= x) & (x < b)` for a chained comparison, "
    "`minimum` and `maximum` for `min` and `max`"
)

WRONG: list[tuple[Callable[..., None], tuple[str, ...]]] = [
    (no_out_pred, (
        "PtxTypeError",
        "a guarded `ld.global.u32` may compute nothing, and a Value has always been computed",
        "ptx.ld.global_.u32(x, pred=n > 3)",
        "`v = reg(u32, 0)` before it, then `out=v, pred=..`",
    )),
    (vec_len, (
        "PtxTypeError",
        "operand `b` of `st.global.v4.f32 [a], {b0, b1, b2, b3}` is 4 values of f32 in braces, not 2",
        "ptx.st.global_.v4.f32(x, [x[0], x[1]])",
        "a list or a Vec of 4",
    )),
    (width3, (
        "PtxTypeError",
        "PTX has no ld of 3 f32 at once",
        "x.load(0, width=3)",
        "a vector has 2 or 4 elements, 16 bytes at most; `p.cast(b32)` for pairs of 16 bits",
    )),
    (f16_f32, (
        "PtxTypeError",
        "`+` of f16 and f32: PTX converts nothing by itself",
        "y[0] = x[0] + y[0]",
        "`a.to(f32)` converts (cvt)",
    )),
    (shared_as_global, (
        "PtxTypeError",
        "operand `a` of `ld.global.u32 d, [a]` is an address in global memory, not in shared memory",
        "ptx.ld.global_.u32(s)",
        "`.shared` in the instruction's name",
    )),
    (shared_generic, (
        "PtxTypeError",
        "operand `a` of `ld.u32 d, [a]` is an address in generic memory, not in shared memory",
        "ptx.ld.u32(s)",
        "`s.generic()`, or the form of the instruction that names the state space",
    )),
    (mask_64, (
        "PtxTypeError",
        ("operand `membermask` of `shfl.sync.bfly.b32 d, a, b, c, membermask` is a u32: 1099511627775 does not"
        " fit in u32, which holds 0 to 4294967295"),
        "ptx.shfl.sync.bfly.b32(x[0], 16, 31, 1099511627775)",
        "a number that fits",
    )),
    (mask_zero, (
        "PtxTypeError",
        ("operand `membermask` of `shfl.sync.bfly.b32 d, a, b, c, membermask` is the set of lanes that take "
        "part, not 0"),
        "x[0] = ptx.shfl.sync.bfly.b32(x[0], 16, 31, 0)",
        "`0xFFFFFFFF` is all 32 lanes of the warp",
    )),
    (mask_missing, (
        "PtxTypeError",
        "`shfl.sync.bfly.b32 d, a, b, c, membermask` takes 4 operands, and got 3",
        "ptx.shfl.sync.bfly.b32(x[0], 16, 31)",
        "it takes a, b, c, membermask; the result is returned, or written to `out=`",
    )),
    (py_sqrt, (
        "TruthError",
        "a run-time f32 has no Python float: the kernel is traced once, before it runs",
        "x[0] = math.sqrt(x[0])",
        "functions are in `ptxdsl.math` and `ptx.sqrt.rn.f32(v)`",
    )),
    (np_sum, (
        "TruthError",
        "a run-time f32 has no Python array: the kernel is traced once, before it runs",
        "x[0] = np.sum([x[0], x[1]])",
        "numpy works on the host; load from a pointer (`x[i]`) and use ptxdsl's functions",
    )),
    (np_times_array, (
        "TruthError",
        "a run-time f32 has no Python number for numpy: the kernel is traced once, before it runs",
        "a = np.ones(3, np.float32) * x[0]",
        "functions are in `ptxdsl.math`, and instructions in `ptx`: `ptx.sqrt.rn.f32(v)`",
    )),
    (assert_value, (
        "TruthError",
        "a run-time predicate has no Python truth: the kernel is traced once, before it runs",
        'assert n < 5, "too many"',
        TRUTH,
    )),
    (match_value, (
        "TruthError",
        "a run-time predicate has no Python truth: the kernel is traced once, before it runs",
        "case 1:",
        TRUTH,
    )),
    (dict_key, (
        "TruthError",
        "`n`, a run-time u32, has no Python hash: the kernel is traced once, before it runs",
        "d = {n: 1}",
        "keep values in a list, or in a dict under their names",
    )),
    (try_except, (
        "TruthError",
        "a run-time predicate has no Python truth: the kernel is traced once, before it runs",
        "if n < 5:",
        TRUTH,
    )),
    (reg_py_type, (
        "PtxTypeError",
        "`reg` takes a type, not the type <class 'float'>",
        "a = reg(float, 0.0)",
        "write `reg(f32, 0.0)`",
    )),
    (out_value, (
        "PtxTypeError",
        "out of `add.f32 d, a, b` is a reg, not a Value",
        "ptx.add.f32(v, v, out=v)",
        "`v = reg(f32, v)`",
    )),
    (out_positional, (
        "PtxTypeError",
        "`add.f32 d, a, b` takes 2 operands, and got 3",
        "ptx.add.f32(v, x[0], x[1])",
        "it takes a, b; the result is returned, or written to `out=`",
    )),
    (pred_bool, (
        "PtxTypeError",
        "`pred` is a predicate, not the bool True",
        "ptx.add.f32(x[0], x[1], out=v, pred=True)",
        "what is known while tracing is decided by Python: `if flag:`",
    )),
    (pred_arith, (
        "PtxTypeError",
        "`+` of predicates",
        "x[0] = (n < 5) + 1",
        "`select(p, 1, 0)` or `p.to(u32)` makes a number of one",
    )),
    (select_mixed, (
        "PtxTypeError",
        "`select` of f32 and u32: PTX converts nothing by itself",
        "x[0] = select(n < 5, x[0], n)",
        "`a.to(f64)` and `n.to(f64)` keep every number (cvt); `n.to(f32)` rounds (cvt)",
    )),
    (when_bool, (
        "PtxTypeError",
        "`when` of the bool True",
        "with when(True):",
        "what is known while tracing is a plain Python `if`; `when` takes a predicate, such as `i < n`",
    )),
    (loop_mixed, (
        "PtxTypeError",
        "loop() over u32 and s32: its bounds have one type",
        "with loop(n, m) as i:",
        "`n.to(s64)` and `m.to(s64)`",
    )),
    (for_loop_obj, (
        "TruthError",
        "`for ... in loop(...)` does not work: `loop` is a block",
        "for i in loop(n):",
        "`with loop(n) as i:`",
    )),
    (kernel_calls_kernel, (
        "LaunchError",
        "kernel `other` was called without a grid and a block",
        "other(n, x)",
        "`other[grid, block](n, x)`",
    )),
    (recursion2, (
        "TruthError",
        "a run-time predicate has no Python truth: the kernel is traced once, before it runs",
        "if n == 0:",
        TRUTH,
    )),
    (recursion, (
        "TraceError",
        "kernel `recursion` calls without end: no run-time value can stop a recursion in Python",
        "return endless(n - 1)",
        "`@ptx_func` makes a function that may recurse",
    )),
    (gen_abandoned, (
        "StructureError",
        "the `when` of this line was left by an exception, GeneratorExit, and has no end",
        "with when(n < 5):",
        "catch it inside the block, or run the generator in it to its end",
    )),
    (dc_lost, (
        "LostUpdateError",
        "`s.a` is replaced inside the loop of line 2; the trace runs its body once, so the update would be lost",
        "s.a = s.a + x[i]",
        "declare `s.a = reg(u32, s.a)` before the loop, then `s.a += ...` or `s.a.set(...)`",
    )),
    (dc_replace, (
        "LostUpdateError",
        "`s` is rebound inside the loop of line 2; the trace runs its body once, so the update would be lost",
        "s = dataclasses.replace(s, a=s.a + x[i])",
        "keep what changes in a `reg` that is declared before the loop",
    )),
    (copy_reg, (
        "PtxTypeError",
        "Python's copy of a reg would be the same register",
        "b = copy.copy(a)",
        "`a.copy()`, or `reg(v)`",
    )),
    (deepcopy_reg, (
        "PtxTypeError",
        "Python's copy of a reg would be the same register",
        "b = copy.deepcopy(a)",
        "`v.copy()`, or `reg(v)`",
    )),
    (mutable_default, (
        "LostUpdateError",
        ("`f.__defaults__[0]` grows inside the loop of line 5; the trace runs its body once, so the update would be "
         "lost"),
        "acc.append(v)",
        "change `f.__defaults__[0]` before the loop, or make it inside; what changes while the kernel runs is a `reg`",
    )),
    (arr_count, (
        "PtxTypeError",
        "1 index for 2 dimensions",
        "a[0] = 1.0",
        "give one index a dimension: `a[i, j]`",
    )),
    (arr_neg, (
        "TraceError",
        "index -1 is out of range in dimension 1 of the array, which has 64 elements",
        "x[0] = a[0, -1]",
        "`a.shape[1] - 1` is the last",
    )),
    (arr_range, (
        "TraceError",
        "index 64 is out of range in dimension 1 of the array, which has 64 elements",
        "x[0] = a[0, 64]",
        "indices run from 0 to 63",
    )),
    (arr_T, (
        "MissingAttribute",
        "`a`, a run-time array of f32, has no `.T`",
        "x[0] = a.T[0, 1]",
        "index it the other way round: `a[j, i]`",
    )),
    (arr_iter, (
        "TruthError",
        "`a`, a run-time array of f32, has no Python iterator: the kernel is traced once, before it runs",
        "for row in a:",
        "`with loop(n) as i:` runs over run-time indices; a Vec (`p.load(i, width=4)`) can be unpacked",
    )),
    (sh_neg, (
        "TraceError",
        "index -1 is out of range in dimension 0 of the array, which has 16 elements",
        "s[-1] = 1.0",
        "`a.shape[0] - 1` is the last",
    )),
    (sh_runtime, (
        "PtxTypeError",
        "an extent of `shared` is a positive int known while tracing, not a run-time u32",
        "s = shared(f32, n)",
        "take it from a compile-time constant: `*, tile=16`; `dynamic_shared` is sized at the launch",
    )),
    (ptr_cmp_int, (
        "PtxTypeError",
        "`==` of a pointer and the int 0",
        "with when(x == 0):",
        "compare pointers of one state space, or their numbers: `p.address == 0`",
    )),
    (ptr_iadd_loop, (
        "LostUpdateError",
        "`x` is rebound inside the loop of line 1; the trace runs its body once, so the update would be lost",
        "x += 1",
        "declare `x = reg(x)` before the loop, then `x += ...`",
    )),
    (ptr_mul, (
        "PtxTypeError",
        "a pointer is moved by `+` and `-` only",
        "(x * 2)[0] = 1.0",
        "`p + 4` is 4 elements on; `p.address` is a number",
    )),
    (ptr_diff, (
        "PtxTypeError",
        "the difference of two pointers is no pointer",
        "x[0] = x - y",
        "`(p.address - q.address) // 4` counts elements of 4 bytes",
    )),
    (ptr_as_value, (
        "PtxTypeError",
        "operand `a` of `add.u64 d, a, b` is a u64, not a pointer to f32",
        "ptx.add.u64(x, 4)",
        "`x.address` is its address as a number",
    )),
    (ptr_attr, (
        "MissingAttribute",
        "`x`, a run-time pointer to f32, has no `.lod`",
        "x.lod(0)",
        "did you mean `.load`?",
    )),
    (val_attr, (
        "MissingAttribute",
        "`n`, a run-time u32, has no `.astype`",
        "n.astype(f32)",
        "`v.to(f32)` converts",
    )),
    (val_item, (
        "MissingAttribute",
        "`n`, a run-time u32, has no `.item`",
        "n.item()",
        "a value is there when the kernel runs; it has no Python number",
    )),
    (val_set, (
        "MissingAttribute",
        "`v`, a run-time u32, has no `.set`",
        "v.set(3)",
        "only a `reg` changes: `acc = reg(f32, 0.0)`, then `acc.set(v)`",
    )),
    (val_float, (
        "MissingAttribute", "`n`, a run-time u32, has no `.float`", "x[0] = n.float()", "`v.to(f32)` converts",
    )),
    (texture_apart, (
        "PtxTypeError",
        ("operand `a` of `tex.1d.v4.f32.f32 {d0, d1, d2, d3}, [a, {c0}], f` is a tuple of an address and what belongs "
        "to it, not u64"),
        'x[0] = ptx.tex["1d.v4.f32.f32"](t, (x[0],))[0]',
        "one operand for all of it: `(t, (c, ..))`",
    )),
    (surface_apart, (
        "PtxTypeError",
        "`sust.b.1d.b32.trap [a, {c0}], b` takes 2 operands, and got 3",
        'ptx.sust.b["1d.b32.trap"](s, (0,), n)',
        "it takes (a, (c, ..)), b; it has no result",
    )),
    (const_overflow, (
        "PtxTypeError",
        "`const` of the list [1, 300]: not each is a u8, which holds 0 to 255",
        "t = const([1, 300], u8)",
        "a wider type: `const(array, s64)`",
    )),
    (const_fraction, (
        "PtxTypeError",
        "`const` of the list [1.5]: not each is a u32, which holds 0 to 4294967295",
        "t = const([1.5], u32)",
        "`const(array, f32)`",
    )),
    (const_big, (
        "TraceError",
        "80000 bytes of constant memory; a module may have 65536",
        "t = const(np.zeros(20000, np.uint32))",
        "a parameter `Ptr[f32]`",
    )),
    (const_str, (
        "PtxTypeError",
        "`const` of the str 'abc', which is no table of numbers",
        't = const("abc", u8)',
        "`const([1, 2])`",
    )),
    (printf_count, (
        "PtxTypeError",
        "the format '%u %u' has 2 conversions, and there are 1 values",
        'printf("%u %u", n)',
        "give one value for each `%`; `%%` is a percent sign",
    )),
    (printf_kind, (
        "PtxTypeError",
        "`%u` prints 32 bits, not f32",
        'printf("%u", n)',
        "`%f`",
    )),
    (printf_64, (
        "PtxTypeError",
        "`%u` prints 32 bits, not u64",
        'printf("%u", n)',
        "`%llu`",
    )),
    (check_bool, (
        "PtxTypeError",
        "`check` of True known while tracing",
        'check(True, "x")',
        "`assert`: Python decides it before the kernel runs",
    )),
    (bar_range, (
        "PtxTypeError",
        "operand `a` of `bar.sync a` is a number from 0 to 15, not 16",
        "ptx.bar.sync(16)",
        "a number within the bounds",
    )),
    (ret_pred_kw, (
        "PtxTypeError",
        "`ret` takes 0 operands, and got 1",
        "ptx.ret(n < 5)",
        "it has no result; a guard is `pred=..`",
    )),
    (shift_neg, (
        "PtxTypeError",
        "-1 does not fit in u32, which holds 0 to 4294967295",
        "x[0] = n << -1",
        "subtract a positive number, or make it signed: `v.to(s64)`",
    )),
    (div_zero, (
        "PtxTypeError",
        "`//` by the number 0",
        "x[0] = n // 0",
        "PTX leaves the result open; a divisor is not 0",
    )),
    (lit_big, (
        "PtxTypeError",
        "4294967296 does not fit in u32, which holds 0 to 4294967295",
        "x[0] = n + 2 ** 32",
        "a wider type may hold it: `v.to(u64)`",
    )),
    (lit_f16_over, (
        "PtxTypeError",
        "70000.0 does not fit in f16",
        "x[0] = n + 70000.0",
        "`float('inf')` is the infinity",
    )),
    (nan_cmp, (
        "PtxTypeError",
        "`select` of two Python numbers has no type",
        'x[0] = select(n == float("nan"), 1.0, 0.0)',
        "give one of them a type: `reg(f32, 1.0)`",
    )),
    (try_lost, (
        "EscapeError",
        "`v` was computed at line 4, inside the `loop` of line 3, and is used after it",
        "x[0] = v",
        "declare `v = reg(u32, 0)` before the `loop`, and write `v.set(...)` inside it",
    )),
    (with_suppress, (
        "TruthError",
        "a run-time predicate has no Python truth: the kernel is traced once, before it runs",
        "if n < 5:",
        TRUTH,
    )),
    (lambda_value, (
        "EscapeError",
        "`g` was computed at line 1, inside the `when` of line 2, and is used after it",
        "x[1] = g",
        "declare `g = reg(u32, 0)` before the `when`, and write `g.set(...)` inside it",
    )),
    (ptx_typo, (
        "UnknownInstruction",
        "PTX has no instruction or special register `ad`",
        "ptx.ad.u32(n, n)",
        "did you mean `ptx.sad` or `ptx.mad` or `ptx.and` or `ptx.add`?",
    )),
    (ptx_tidx, (
        "PtxTypeError",
        "`ptx.tid` stored to a pointer to u32",
        "x[0] = ptx.tid",
        "store a Value or a number",
    )),
    (ptx_tidw, (
        "UnknownInstruction",
        "`%tid` has no component `.w`",
        "x[0] = ptx.tid.w",
        "it has `ptx.tid.x`, `ptx.tid.y`, `ptx.tid.z`",
    )),
    (ptx_threadIdx, (
        "UnknownInstruction",
        "PTX has no instruction or special register `threadIdx`",
        "x[0] = ptx.threadIdx.x",
        "CUDA's threadIdx is `ptx.tid`",
    )),
    (ptx_set, (
        "PtxTypeError",
        "`ptx.tid.x` cannot be set",
        "ptx.tid.x = 5",
        "keep a value in a variable of its own: `v = ..`",
    )),
    (ptx_str, (
        "UnknownInstruction",
        "'add.u32 %r1, %r2, %r3;' is no name of an instruction: it has operands",
        'ptx["add.u32 %r1, %r2, %r3;"](n)',
        '`ptx["add.u32"](..)` takes them as arguments',
    )),
    (warp_ptr, (
        "PtxTypeError",
        "the lanes' value is a run-time pointer to f32",
        "x[0] = warp.reduce_sum(x)",
        "give a Value: `reduce(maximum, v)`",
    )),
    (math_py, (
        "PtxTypeError",
        "`exp` of the float 1.0",
        "x[0] = gpu_math.exp(1.0)",
        "of Python numbers Python's `math` has it, of others `reg(f32, 1.5)`",
    )),
]


@pytest.mark.parametrize(("kernel", "words"), WRONG, ids=[kernel.__name__ for kernel, _ in WRONG])
def test_refused(kernel: Callable[..., None], words: tuple[str, ...]) -> None:
    assert said(refused(kernel), kernel) == words


def test_numbers_that_fit_elsewhere_are_known_and_still_refused() -> None:
    """A number's bits are remembered; what an operand says of it is asked again."""

    def fine(x: Ptr[u32]) -> None:
        x[0] = ptx.shfl.sync.bfly.b32(x[0], 0, 31, 0xFFFFFFFF) + 99
        ptx.bar.sync(0)

    def barrier(x: Ptr[u32]) -> None:
        ptx.bar.sync(99)

    trace(fine)
    for kernel, message in ((mask_zero, "is the set of lanes"), (barrier, "is a number from 0 to 15, not 99")):
        assert message in refused(kernel).message
