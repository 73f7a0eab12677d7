"""The trace itself: parameters, places, targets, and the `ptx` namespace in both spellings."""

from __future__ import annotations

import contextlib
import gc
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

from ptxdsl import (
    Array, Ptr, TensorMap, b32, bf16, check, f16, f32, f64, loop, otherwise, pred, printf, ptx, ptx_kernel, reg, s32,
    s64, select, shared, u8, u16, u32, u64, when,
)
from ptxdsl import warp as warp_library
from ptxdsl.errors import EscapeError, PtxError, PtxTypeError, TargetError, TraceError, UnknownInstruction
from ptxdsl.ir import Call, Instruction
from ptxdsl.text import parse, to_text
from ptxdsl.language import Reg, Value, Vec, trace
from ptxdsl.language.builder import thread
from ptxdsl.verify import verify


def lines(function: Callable[..., Any]) -> list[str]:
    *found, last = (line for line in body_of(function) if not line.startswith((".shared", ".local")))
    assert last == "ret"
    return found


def wrong(function: Callable[..., Any]) -> str:
    error = refused(function)
    assert error.loc is not None and error.loc.file == __file__
    return f"{error.message} / {error.hint}"


def one(body: Callable[[Any, Any], Any]) -> Callable[[f32, u32], None]:
    """A kernel that does one thing with a float and an integer."""
    def kernel(x: f32, n: u32) -> None:
        body(x, n)

    return kernel


# ---------------------------------------------------------------------------------------------------------------------
# Entry


def test_golden() -> None:
    def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    first = saxpy.__code__.co_firstlineno
    assert to_text(trace(saxpy)) == f"""\
.version 6.3
.target sm_75
.address_size 64

.file 1 "{__file__}"

.visible .entry saxpy(
    .param .u32 n,
    .param .f32 a,
    .param .u64 .ptr .global .align 4 x,
    .param .u64 .ptr .global .align 4 y
)
{{
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<5>;
    .reg .pred %p<1>;

    .loc 1 {first} 0
    ld.param.u32 %r0, [n];
    ld.param.u64 %rd0, [x];
    ld.param.f32 %f0, [a];
    ld.param.u64 %rd1, [y];
    .loc 1 {first + 1} 0
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mul.lo.u32 %r3, %r1, %r2;
    mov.u32 %r4, %tid.x;
    add.u32 %r5, %r3, %r4;
    .loc 1 {first + 2} 0
    setp.lt.u32 %p0, %r5, %r0;
    @!%p0 bra $endif_{first + 2};
    .loc 1 {first + 3} 0
    mul.wide.u32 %rd2, %r5, 4;
    add.u64 %rd3, %rd0, %rd2;
    ld.global.f32 %f1, [%rd3];
    mul.f32 %f2, %f0, %f1;
    add.u64 %rd4, %rd1, %rd2;
    ld.global.f32 %f3, [%rd4];
    add.f32 %f4, %f2, %f3;
    st.global.f32 [%rd4], %f4;
$endif_{first + 2}:
    ret;
}}
"""


def test_the_same_source_gives_the_same_text() -> None:
    def kernel(x: Ptr[f32]) -> None:
        tile = shared(f32, 4)
        acc = [reg(f32, 0.0) for _ in range(3)]
        with loop(4) as i:
            acc[0] += tile[i] + x[i]

    module = trace(kernel)
    verify(module)
    assert to_text(module) == to_text(trace(kernel)) and module == trace(kernel) and parse(to_text(module)) == module


def test_parameters_are_loaded_where_used_only() -> None:
    def kernel(a: u8, b: f16, c: Array[f32, 2], d: f64, e: bf16, unused: u32) -> None:
        values = [a, b, d, e, c.strides[0]]
        assert [v.type for v in values] == [u8, f16, f64, bf16, u32]
        d + 1
        e + e

    loads = [s for s in trace(kernel).functions[0].instructions() if s.form.mnemonic.startswith("ld.param")]
    assert [(s.form.mnemonic, str(s.operands[1].base.symbol)) for s in loads] == [  # type: ignore[union-attr]
        ("ld.param.f64", "d"), ("ld.param.b16", "e")
    ]
    assert len(trace(kernel).functions[0].parameters) == 9


def test_constants() -> None:
    def kernel(x: Ptr[f32], *, count, scale=2.0) -> None:  # type: ignore[no-untyped-def]
        for i in range(count):
            x[i] = scale

    assert len(body_of(kernel, count=3)) == 4
    assert body_of(kernel, count=1, scale=0.5)[0] == "st.global.f32 [%rd0], 0f3F000000"
    with pytest.raises(TraceError) as missing:
        trace(kernel)
    assert (missing.value.message, missing.value.hint) == (
        "kernel `kernel` needs the compile-time constant count", "`k.ptx(count=...)`"
    )
    with pytest.raises(TraceError) as unknown:
        trace(kernel, constants={"count": 1, "cuont": 2})
    assert (unknown.value.message, unknown.value.hint) == (
        "kernel `kernel` has no compile-time constant `cuont`; it has count, scale", "did you mean `count=`?"
    )


def test_a_kernel_returns_nothing() -> None:
    def kernel(n: u32) -> Any:
        return n + 1

    error = refused(kernel)
    assert error.message == "kernel `kernel` returns a run-time u32, and a kernel returns nothing"
    assert error.loc is not None and error.loc.line == kernel.__code__.co_firstlineno


def test_a_failed_trace_leaves_nothing_behind() -> None:
    values: list[Any] = []

    def broken(n: u32) -> None:
        values.append(n)
        with when(n < 3):
            raise ZeroDivisionError

    def inner(n: u32) -> None:
        n + 1

    def outer(n: u32) -> None:
        trace(inner)

    with pytest.raises(ZeroDivisionError):
        trace(broken)
    assert thread.trace is None and values[0].region.closed
    with pytest.raises(EscapeError):
        values[0] + 1
    assert said(refused(outer), outer) == (
        "TraceError", "kernel `inner` was launched or traced inside kernel `outer`", "trace(inner)",
        "call a plain function: it is traced in place; or launch the kernels one after the other",
    )
    assert thread.trace is None and body_of(inner)[-2] == "add.u32 %r1, %r0, 1"


def test_each_thread_traces_on_its_own() -> None:
    shared_values: list[Any] = []
    ready, done = threading.Event(), threading.Event()
    errors: list[PtxError] = []

    def first(n: u32) -> None:
        shared_values.append(n + 1)
        ready.set()
        done.wait(10)

    def second(n: u32) -> None:
        stolen = shared_values[0]
        n + stolen

    thread = threading.Thread(target=trace, args=(first,))
    thread.start()
    assert ready.wait(10)
    try:
        trace(second)
    except PtxError as error:
        errors.append(error)
    done.set()
    thread.join()
    assert type(errors[0]) is EscapeError
    assert "in the trace of `first`, which runs in another thread" in errors[0].message


# ---------------------------------------------------------------------------------------------------------------------
# Places


@contextlib.contextmanager
def guarded(p: Any) -> Iterator[None]:
    with when(p):
        yield


def helper(x: Any) -> Any:
    return x + 1.0


def test_each_instruction_has_the_users_line() -> None:
    def kernel(x: f32, out: Ptr[f32]) -> None:
        v = helper(x)
        with guarded(v > 2.0):
            out[0] = v
        out[1] = (lambda a: a * 2.0)(v)

    here = kernel.__code__.co_firstlineno
    there = helper.__code__.co_firstlineno + 1
    opened = guarded.__wrapped__.__code__.co_firstlineno + 2  # type: ignore[attr-defined]
    instructions = trace(kernel).functions[0].instructions()
    found = [(s.form.opcode, s.loc.line) for s in instructions if s.loc and s.form.space != "param"]
    assert found == [
        ("add", there), ("setp", here + 2), ("bra", opened), ("st", here + 3), ("mul", here + 4), ("st", here + 4),
        ("ret", here + 4)
    ]


def test_the_librarys_own_lines_are_the_callers() -> None:
    def kernel(x: f32, out: Ptr[f32]) -> None:
        out[0] = warp_library.reduce(lambda a, b: a + b, x)

    instructions = trace(kernel).functions[0].instructions()
    found = {s.loc.line for s in instructions if s.loc and s.form.opcode in ("shfl", "add")}
    assert found == {kernel.__code__.co_firstlineno + 1}


def test_source_that_python_has_not() -> None:
    namespace: dict[str, Any] = {"u32": u32}
    exec("def kernel(n: u32):\n    n + 1.5\n", namespace)
    with pytest.raises(PtxTypeError) as caught:
        trace(namespace["kernel"])
    assert caught.value.loc == ("<string>", 2)


def test_an_error_without_a_place_gets_one() -> None:
    def kernel(n: u32) -> None:
        u32(3)

    assert said(refused(kernel), kernel) == (
        "PtxTypeError", "u32 is a type, not a conversion", "u32(3)",
        "write `v.to(u32)` to convert a value, `reg(u32, 0)` for a register"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Targets


def test_the_lowest_target() -> None:
    def plain(x: Ptr[f32]) -> None:
        x[0] = 1.0

    def ampere(x: u32) -> None:
        ptx.redux.sync.add.u32(x, 0xFFFFFFFF)

    assert (trace(plain).version, trace(plain).target) == ((6, 3), "sm_75")
    assert (trace(ampere).version, trace(ampere).target) == ((7, 0), "sm_80")
    assert (trace(ampere, arch="sm_90a").version, trace(ampere, arch="sm_90a").target) == ((8, 0), "sm_90a")


def test_an_instruction_that_the_target_lacks() -> None:
    def kernel(x: u32, out: Ptr[u32]) -> None:
        out[0] = x
        ptx.redux.sync.add.u32(x, 0xFFFFFFFF)

    with pytest.raises(TargetError) as caught:
        trace(kernel, arch="sm_75")
    assert said(caught.value, kernel) == (
        "TargetError", "`redux.sync.add.u32` needs sm_80, and this kernel is compiled for sm_75",
        "ptx.redux.sync.add.u32(x, 0xFFFFFFFF)", 'leave `arch` at "auto", or give a target that has it',
    )


def test_a_special_register_that_the_target_lacks() -> None:
    with pytest.raises(TargetError, match="^`%clusterid.x` needs sm_90, and this kernel is compiled for sm_80"):
        trace(one(lambda x, n: ptx.clusterid.x), arch="sm_80")


# ---------------------------------------------------------------------------------------------------------------------
# The namespace


def test_one_call_is_one_instruction() -> None:
    def kernel(x: f32, y: f32, n: u32, p: Ptr[f32]) -> None:
        ptx.fma.rn.f32(x, y, 1.5)
        ptx["fma.rn.f32"](x, y, x)
        ptx.shfl.sync.bfly.b32(x, 16, 31, 0xFFFFFFFF)
        ptx.bar.sync(0)
        ptx.ld.global_.nc.v4.f32(p + 4)
        ptx.st.global_.v2.f32(p, (x, 2.0))
        ptx.atom.global_.add.f32(p + n, x)
        ptx.and_.b32(n, 7)
        ptx.setp.lt.f32(x, y)
        ptx.ld.shared__cta.f32(shared(f32, 4))
        ptx.mov.b64((n, x))

    assert lines(kernel) == [
        "fma.rn.f32 %f2, %f0, %f1, 0f3FC00000", "fma.rn.f32 %f3, %f0, %f1, %f0",
        "shfl.sync.bfly.b32 %f4, %f0, 16, 31, 4294967295",
        "bar.sync 0", "ld.global.nc.v4.f32 {%f5, %f6, %f7, %f8}, [%rd0+16]",
        "st.global.v2.f32 [%rd0], {%f0, 0f40000000}",
        "mul.wide.u32 %rd1, %r0, 4", "add.u64 %rd2, %rd0, %rd1", "atom.global.add.f32 %f9, [%rd2], %f0",
        "and.b32 %r1, %r0, 7",
        "setp.lt.f32 %p0, %f0, %f1", "ld.shared::cta.f32 %f10, [shared]", "mov.b64 %rd3, {%r0, %f0}",
    ]


def test_results() -> None:
    def kernel(x: f32, n: u32, p: Ptr[f32]) -> None:
        assert isinstance(ptx.add.f32(x, x), Value) and ptx.bar.sync(0) is None
        vector = ptx.ld.global_.v2.f32(p)
        assert type(vector) is Vec and [v.type for v in vector] == [f32, f32]
        acc = reg(f32, 0.0)
        assert ptx.add.f32(x, x, out=acc) is acc
        value, inside = ptx.shfl.sync.up.b32(x, 1, 0, 0xFFFFFFFF, out=(None, None))
        assert value.type is f32 and inside.type is pred
        ptx.elect.sync(0xFFFFFFFF, out=("_", None))
        lo, hi = reg(u32), reg(u32)
        ptx.mov.b64(p.address, out=[lo, hi])

    assert lines(kernel)[-3:] == [
        "shfl.sync.up.b32 %f4|%p0, %f0, 1, 0, 4294967295", "elect.sync _|%p1, 4294967295", "mov.b64 {%lo, %hi}, %rd0",
    ]


def test_bit_typed_results_keep_the_type() -> None:
    def kernel(x: f32, i: s32, h: f16) -> None:
        types = [
            ptx.shfl.sync.idx.b32(x, 0, 31, 0xFFFFFFFF).type, ptx.xor.b32(i, 5).type, ptx.mov.b16(h).type,
            ptx.brev.b32(x).type,
            ptx.selp.b32(x, x, i < 0).type, ptx.popc.b32(i).type, ptx.vote.sync.ballot.b32(i < 0, 0xFFFFFFFF).type,
            ptx.match.any.sync.b32(i, 0xFFFFFFFF).type, ptx.activemask.b32().type,
        ]
        assert types == [f32, s32, f16, f32, f32, u32, u32, u32, u32]

    trace(kernel)


def test_guards() -> None:
    def kernel(x: f32, n: u32, p: Ptr[f32]) -> None:
        acc = reg(f32, 0.0)
        few = n < 4
        ptx.add.f32(acc, x, out=acc, pred=few)
        ptx.st.global_.f32(p, acc, pred=~few)
        ptx.ret(pred=few)

    assert lines(kernel)[2:] == ["@%p0 add.f32 %acc, %acc, %f0", "@!%p0 st.global.f32 [%rd0], %acc", "@%p0 ret"]


def test_special_registers() -> None:
    def kernel(out: Ptr[u64]) -> None:
        i = ptx.tid.x + ptx.ctaid.y + ptx.laneid + ptx.lanemask_lt
        out[i] = ptx.clock64 + ptx.globaltimer
        ptx.tid.x

    assert [line for line in lines(kernel) if line.startswith("mov")] == [
        "mov.u32 %r0, %tid.x", "mov.u32 %r1, %ctaid.y", "mov.u32 %r3, %laneid", "mov.u32 %r5, %lanemask_lt",
        "mov.u64 %rd1, %clock64", "mov.u64 %rd2, %globaltimer", "mov.u32 %r7, %tid.x",
    ]


UNKNOWN: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("opcode", lambda x, n: ptx.rsqt.approx.f32(x), "PTX has no instruction or special register `rsqt` / did you mean"),
    ("modifier", lambda x, n: ptx.ex2.aprox.f32(x), "`ex2` has no modifier `.aprox` / did you mean `ex2.approx`?"),
    ("type", lambda x, n: ptx.fma.rn.f33(x, x, x), "`fma.rn` has no modifier `.f33` / did you mean"),
    ("order", lambda x, n: ptx.fma.f32.rn(x, x, x), "`fma` takes `.f32` only behind another modifier / "),
    ("incomplete", lambda x, n: ptx.fma.rn(x, x, x), "`fma.rn` is not complete / it goes on with"),
    ("verbatim", lambda x, n: ptx["add.u33"](n, n), "`add` has no modifier `.u33` / did you mean"),
    ("verbatim opcode", lambda x, n: ptx["ad.u32"](n, n), "PTX has no instruction `ad` / did you mean"),
    ("operands in it", lambda x, n: ptx["add.u32 a, b"](n, n),
     "'add.u32 a, b' is no name of an instruction: it has operands / "),
    ("component", lambda x, n: ptx.tid.w,
     "`%tid` has no component `.w` / it has `ptx.tid.x`, `ptx.tid.y`, `ptx.tid.z`"),
    ("special", lambda x, n: ptx.lane_id,
     "PTX has no instruction or special register `lane_id` / did you mean `ptx.laneid`"),
]


@pytest.mark.parametrize(("body", "message"), [u[1:] for u in UNKNOWN], ids=[u[0] for u in UNKNOWN])
def test_unknown_names(body: Callable[[Any, Any], Any], message: str) -> None:
    kernel = one(body)
    error = refused(kernel)
    assert type(error) is UnknownInstruction and isinstance(error, AttributeError)
    assert wrong(kernel).startswith(message)


OPERANDS: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("few", lambda x, n: ptx.fma.rn.f32(x, x),
     ("`fma.rn.f32 d, a, b, c` takes 3 operands, and got 2 / it takes a, b, c; the result is returned, or written "
      "to `out=`")),
    ("many", lambda x, n: ptx.bar.warp.sync(1, 2),
     "`bar.warp.sync membermask` takes 1 operand, and got 2 / it takes membermask; it has no result"),
    ("type", lambda x, n: ptx.fma.rn.f32(x, n, x),
     ("operand `b` of `fma.rn.f32 d, a, b, c` is an f32, not a u32 / `n.to(f32)` rounds (cvt); `n.bits(f32)` "
      "keeps the bits (mov)")),
    ("width", lambda x, n: ptx.add.u64(n, n),
     "operand `a` of `add.u64 d, a, b` is a u64, not a u32 / `n.to(u64)` converts (cvt)"),
    ("predicate", lambda x, n: ptx.add.u32(n < 1, n),
     "operand `a` of `add.u32 d, a, b` is a u32, not a pred / `v.to(u32)`"),
    ("number", lambda x, n: ptx.add.u32(n, -1), "operand `b` of `add.u32 d, a, b` is a u32: -1 does not fit in u32"),
    ("float number", lambda x, n: ptx.add.u32(n, 1.5),
     "operand `b` of `add.u32 d, a, b` is a u32: the float 1.5 is no u32 / write `1`"),
    ("string", lambda x, n: ptx.add.u32(n, "1"), "operand `b` of `add.u32 d, a, b` is a u32, not the str '1' / "),
    ("register only", lambda x, n: ptx.add.f16(x.to(f16), 1.0),
     "operand `b` of `add.f16 d, a, b` is a register, not the number 1.0 / `reg(f16, 1.0)`"),
    ("number only", lambda x, n: ptx.lop3.b32(n, n, n, n),
     "operand `immLut` of `lop3.b32 d, a, b, c, immLut` is a number known"),
    ("bounds", lambda x, n: ptx.lop3.b32(n, n, n, 256),
     ("operand `immLut` of `lop3.b32 d, a, b, c, immLut` is a number from 0 to 255, not 256 / a number within the "
      "bounds")),
    ("address", lambda x, n: ptx.ld.global_.f32(x),
     "operand `a` of `ld.global.f32 d, [a]` is an address, not an f32 / "),
    ("address number", lambda x, n: ptx.ld.shared.f32(0),
     "operand `a` of `ld.shared.f32 d, [a]` is an address, not the int 0 / "),
    ("narrow address", lambda x, n: ptx.ld.global_.f32(n),
     "operand `a` of `ld.global.f32 d, [a]` is an address, not a u32 / "),
    ("vector", lambda x, n: ptx.st.shared.v2.f32(shared(f32, 4), (x, x, x)),
     "operand `b` of `st.shared.v2.f32 [a], {b0, b1}` is 2 values of f32 in braces, not 3 / a list or a Vec of 2"),
    ("no vector", lambda x, n: ptx.st.shared.f32(shared(f32, 4), (x, x)),
     "operand `b` of `st.shared.f32 [a], b` is one f32, not 2 values / the vector forms have `.v2` or `.v4`"),
    ("out type", lambda x, n: ptx.add.f32(x, x, out=reg(u32)),
     "out of `add.f32 d, a, b` is an f32, not a reg of u32 / `reg(f32)`"),
    ("out value", lambda x, n: ptx.add.f32(x, x, out=x),
     "out of `add.f32 d, a, b` is a reg, not a Value / `x = reg(f32, x)`"),
    ("out sink", lambda x, n: ptx.add.f32(x, x, out="_"),
     "out of `add.f32 d, a, b` must be kept: PTX has no `_` here / `out=reg(f32)`"),
    ("out none", lambda x, n: ptx.bar.sync(0, out=reg(u32)), "`bar.sync a` has no result for `out` / leave it out"),
    ("guard", lambda x, n: ptx.add.f32(x, x, pred=n < 1),
     ("a guarded `add.f32` may compute nothing, and a Value has always been computed / `v = reg(f32, 0)` before "
      "it, then `out=v, pred=..`")),
    ("guard type", lambda x, n: ptx.bar.sync(0, pred=n), "a guard is a predicate, not u32 / compare: `n != 0`"),
    ("guard bool", lambda x, n: ptx.bar.sync(0, pred=True), "`pred` is a predicate, not the bool True / "),
    ("not called", lambda x, n: ptx.add.f32(x, ptx.neg.f32),
     "operand `b` of `add.f32 d, a, b` is an f32, not the Instruction ptx.neg.f32 / "),
    ("arithmetic on a name", lambda x, n: ptx.tid * 4,
     "`ptx.tid` has components, and is no value itself / write `ptx.tid.x` or"),
    ("arithmetic on an instruction", lambda x, n: ptx.neg.f32 + 1,
     "`ptx.neg.f32` is the name of an instruction, not a value / "),
    ("components as operand", lambda x, n: n * ptx.tid, "`ptx.tid` has components, and is no value itself / "),
    ("removed", lambda x, n: ptx.shfl.up.b32(x, 1, 0),
     "`shfl.up.b32` was removed in PTX 6.4 / `shfl.sync` takes its place"),
]


@pytest.mark.parametrize(("body", "message"), [o[1:] for o in OPERANDS], ids=[o[0] for o in OPERANDS])
def test_operands_that_do_not_fit(body: Callable[[Any, Any], Any], message: str) -> None:
    kernel = one(body)
    assert isinstance(refused(kernel), TraceError)
    assert wrong(kernel).startswith(message)


def test_state_spaces_are_kept_apart() -> None:
    def shared_as_global(x: f32) -> None:
        ptx.ld.global_.f32(shared(f32, 4))

    def shared_as_generic(x: f32) -> None:
        tile = shared(f32, 4)
        ptx.ld.f32(tile)

    def global_as_shared(p: Ptr[f32]) -> None:
        ptx.st.shared.f32(p, 1.0)

    def legal(p: Ptr[f32]) -> None:
        tile = shared(f32, 4)
        ptx.ld.f32(p)
        ptx.ld.f32(tile.generic())
        ptx.ld.shared.f32(tile.address)
        ptx.ld.global_.f32(p.address)
        ptx.cvta.to.shared.u64(tile.generic().address)

    assert wrong(shared_as_global).startswith(
        "operand `a` of `ld.global.f32 d, [a]` is an address in global memory, not in shared memory"
    )
    assert wrong(shared_as_generic) == (
        "operand `a` of `ld.f32 d, [a]` is an address in generic memory, not in shared memory / "
        "`tile.generic()`, or the form of the instruction that names the state space"
    )
    assert wrong(global_as_shared).startswith(
        "operand `a` of `st.shared.f32 [a], b` is an address in shared memory, not in global memory"
    )
    verify(trace(legal))


def test_read_write_operands_are_regs() -> None:
    def kernel(x: Ptr[b32]) -> None:
        a = [x[i] for i in range(4)]
        acc = [reg(f32, 0.0) for _ in range(4)]
        d = ptx["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"](a, a[:2], acc)
        assert [v.type for v in d] == [f32] * 4
        ptx["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"](a, a[:2], acc, out=acc)

    assert lines(kernel)[-1] == (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%acc0, %acc1, %acc2, %acc3}, {%r0, %r1, %r2, %r3}, "
        "{%r0, %r1}, "
        "{%acc0, %acc1, %acc2, %acc3}"
    )


def test_completion() -> None:
    assert {"global_", "shared", "shared__cta", "f32", "v4"} <= set(dir(ptx.ld))
    assert {"add", "and_", "tid", "laneid", "fma"} <= set(dir(ptx)) and dir(ptx.tid) == ["x", "y", "z"]
    assert repr(ptx.ld.global_) == "ptx.ld.global" and repr(ptx) == "ptx" and repr(ptx.tid) == "ptx.tid"
    assert not hasattr(ptx, "__wrapped__") and not hasattr(ptx.add, "_private")


# ---------------------------------------------------------------------------------------------------------------------
# printf and check


def test_printf_calls_vprintf() -> None:
    def kernel(n: u32, x: f32, m: s64, h: f16, c: u16, p: Ptr[f32]) -> None:
        printf("%d %f %lld %g %c %p %s %% %d\n", n, x, m, h, c, p, "text", n < 1)

    module = trace(kernel)
    verify(module)
    assert parse(to_text(module)) == module
    (call,) = (s for s in module.functions[-1].body or () if isinstance(s, Call))
    assert call.callee.symbol == "vprintf" and call.loc is not None  # type: ignore[union-attr]
    stores = [line for line in lines(kernel) if line.startswith("st.")]
    assert [line.split("]")[0] for line in stores] == [
        "st.local.u32 [printf", "st.local.f64 [printf+8", "st.local.s64 [printf+16", "st.local.f64 [printf+24",
        "st.local.u32 [printf+32", "st.local.u64 [printf+40", "st.local.u64 [printf+48", "st.local.u32 [printf+56",
    ]
    texts = [bytes(v.values or ()).decode() for v in module.variables]  # type: ignore[arg-type]
    assert texts == ["text\0", "%d %f %lld %g %c %p %s %% %d\n\0"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x, n: printf("%d\n"), "the format '%d\\n' has 1 conversions, and there are 0 values / "),
        (lambda x, n: printf("%d\n", x), "`%d` prints 32 bits, not f32 / `%f`"),
        (lambda x, n: printf("%f\n", n), "`%f` prints a float, not u32 / `%u`"),
        (lambda x, n: printf("%d\n", n.to(s64)), "`%d` prints 32 bits, not s64 / `%lld`"),
        (lambda x, n: printf("%lld\n", n), "`%lld` prints 64 bits, not u32 / `%u`"),
        (lambda x, n: printf("%s\n", n), "`%s` is no conversion of `printf` for u32 / "),
        (lambda x, n: printf(n), "the format of `printf` is a string, not a run-time u32"),
        (lambda x, n: check(n), "`check` takes a predicate, not u32 / compare: `check(v != 0, ..)`"),
        (lambda x, n: check(True), "`check` of True known while tracing / "),
        (lambda x, n: check(n < 1, n), "the message of `check` is a string, not a run-time u32"),
    ],
)
def test_printf_and_check_mistakes(body: Callable[[Any, Any], Any], message: str) -> None:
    assert wrong(one(body)).startswith(message)


def test_check_is_a_branch_around_an_assertion() -> None:
    def kernel(n: u32) -> None:
        check(n < 5, "n is too large")

    module = trace(kernel)
    verify(module)
    body = module.functions[-1].body or []
    kinds = [s.form.opcode if isinstance(s, Instruction) else type(s).__name__ for s in body]
    assert kinds == ["ld", "setp", "bra", "cvta", "cvta", "cvta", "Call", "Label", "ret"]
    call = next(s for s in body if isinstance(s, Call))
    assert call.arguments[2].bits == kernel.__code__.co_firstlineno + 1  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------------------------------
# A program of every kind


@ptx_kernel
def histogram(data: Ptr[u8], counts: Ptr[u32], n: u32):
    bins = shared(u32, 256)
    i = ptx.tid.x
    bins[i] = 0
    ptx.bar.sync(0)
    with loop(i, n, 256) as at:
        ptx.atom.shared.add.u32(bins + data[at].to(u32), 1)
    ptx.bar.sync(0)
    counts[i] = select(bins[i] > 5, bins[i], 0)


def test_a_program(rng: np.random.Generator) -> None:
    data = rng.integers(0, 200, 1000).astype(np.uint8)
    counts = np.full(256, 7, np.uint32)
    histogram[1, 256](data, counts, 1000)
    expected = np.bincount(data, minlength=256)
    np.testing.assert_array_equal(counts, np.where(expected > 5, expected, 0))
    assert isinstance(reg, type(lambda: None)) and issubclass(Reg, Value) and s32.is_signed and b32.bits == f32.bits


def test_addresses_with_parts() -> None:
    load = ptx["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"]

    def kernel(texture: u64, table: TensorMap, n: u32, x: s32) -> None:
        tile = shared(f32, 32, align=128)
        barrier = shared(u64, 1)
        color = ptx["tex.a2d.v4.f32.s32"]((texture, (n, x, x, x)))
        assert [v.type for v in color] == [f32] * 4
        load(tile, (table, (x, 0)), barrier)

    assert lines(kernel)[-2:] == [
        "tex.a2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0, %r1, %r1, %r1}]",
        f"{load.mnemonic} [tile], [%rd2, {{%r1, 0}}], [barrier]",
    ]


def test_tensor_memory_has_addresses_of_32_bits() -> None:
    load = ptx["tcgen05.ld.sync.aligned.32x32b.x2.b32"]
    assert lines(one(lambda x, n: load(n)))[-1] == "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r0]"
    assert wrong(one(lambda x, n: load(n.to(u64)))).startswith(
        "operand `a` of `tcgen05.ld.sync.aligned.32x32b.x2.b32 {d0, d1}, [a]` is an address, not a u64 / "
    )


def test_a_trace_leaves_nothing_for_the_garbage_collector() -> None:
    def kernel(n: u32, x: Ptr[f32]) -> None:
        tile, total = shared(f32, 32), reg(f32, 0.0)
        with loop(n) as i:
            with when(i < 3):
                tile[i] = x[i]
            with otherwise():
                total += x[i]
        x[0] = total

    trace(kernel)
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # what was there before does not count
    try:
        trace(kernel)
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


def test_a_list_grows_by_a_vector() -> None:
    def kernel(x: Ptr[f32]) -> None:
        values = [x[8]]
        values += x.load(0, width=4)
        x.store(4, values[1:])

    assert lines(kernel)[-1] == "st.global.v4.f32 [%rd0+16], {%f1, %f2, %f3, %f4}"


def test_numbers_that_are_equal_are_not_taken_for_each_other() -> None:
    def zeros_and_ones(a: f32, n: u32) -> None:
        for _ in range(2):
            for number in (0.0, -0.0, 1, 1.0):
                ptx.mov.f32(number)
                a * number
            ptx.mov.u32(1)

    once = [
        "mov.f32 %f, 0f00000000", "mul.f32 %f, %f, 0f00000000", "mov.f32 %f, 0f80000000", "mul.f32 %f, %f, 0f80000000",
        "mov.f32 %f, 0f3F800000", "mul.f32 %f, %f, 0f3F800000", "mov.f32 %f, 0f3F800000", "mul.f32 %f, %f, 0f3F800000",
        "mov.u32 %r, 1",
    ]
    assert [re.sub(r"%(f|r)\d+", r"%\1", line) for line in lines(zeros_and_ones)] == 2 * once

    def true(n: u32) -> None:
        ptx.add.u32(n, 1)
        ptx.add.u32(n, True)

    def real(n: u32) -> None:
        n + 1
        n + 1.0

    for kernel in (true, real):
        assert isinstance(refused(kernel), PtxTypeError)
