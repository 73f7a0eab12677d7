"""Functions by their address, their parameters, and alloca: on the emulator, against Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emulator_harness import HEADER, argument, kernel

from ptxdsl import emulator
from ptxdsl.errors import EmulationError, MemoryFault
from ptxdsl.launch import LaunchConfig


def run(functions: str, body: str, block: int, conservative: bool = False, **arguments: object) -> None:
    """Run a kernel ``k`` with the functions before it."""
    parameters = ", ".join(f"u64 {name}" for name in arguments)
    text = kernel(parameters, body).replace(HEADER, HEADER + functions)
    given = [argument(name, value) for name, value in arguments.items()]
    emulator.load(text).run("k", LaunchConfig(1, block), given, conservative=conservative)


UNARY = """
.func (.param .b32 r) square(.param .b32 a) {
    .reg .b32 %r<2>; ld.param.u32 %r1, [a]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) twice(.param .b32 a) {
    .reg .b32 %r<2>; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) factorial(.param .b32 a) {
    .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %p;
    ld.param.u32 %r1, [a]; mov.u32 %r2, 1; setp.le.u32 %p, %r1, 1; @%p bra DONE;
    sub.u32 %r3, %r1, 1; mov.u64 %rd1, factorial;
    { .param .b32 q; .param .b32 s; st.param.b32 [q], %r3;
      shape: .callprototype (.param .b32 _) _ (.param .b32 _); call (s), %rd1, (q), shape; ld.param.b32 %r2, [s]; }
    mul.lo.u32 %r2, %r2, %r1;
    DONE: st.param.b32 [r], %r2; ret; }
.global .align 8 .u64 table[3] = {square, twice, generic(factorial)};
"""
STORE = """ld.param.u64 %rd40, [out]; mul.wide.u32 %rd41, %r20, 4; add.u64 %rd40, %rd40, %rd41;
    st.global.u32 [%rd40], %r10;
"""
CALL = """{ .param .b32 q; .param .b32 s; st.param.b32 [q], %r20;
    shape: .callprototype (.param .b8 _[4]) _ (.param .b8 _[4]); call (s), %rd3, (q), shape; ld.param.b32 %r10, [s]; }
"""


def unary(n: int, which: int) -> int:
    return (n * n, 2 * n, math.factorial(n) % (1 << 32))[which]


@pytest.mark.parametrize("conservative", [False, True])
def test_a_table_of_functions_each_lane_its_own(conservative: bool) -> None:
    out = np.zeros(70, np.uint32)
    run(UNARY, """
        mov.u32 %r20, %tid.x; rem.u32 %r2, %r20, 3; mov.u64 %rd1, table;
        mul.wide.u32 %rd2, %r2, 8; add.u64 %rd1, %rd1, %rd2; ld.global.u64 %rd3, [%rd1];
    """ + CALL + STORE + "ret;", 70, conservative, out=out)
    assert out.tolist() == [unary(n, n % 3) for n in range(70)]


def test_a_guarded_call_of_listed_targets() -> None:
    out = np.zeros(40, np.uint32)
    run(UNARY, """
        mov.u32 %r20, %tid.x; and.b32 %r2, %r20, 1; setp.eq.u32 %p1, %r2, 0; setp.gt.u32 %p2, %r20, 10;
        mov.u64 %rd1, square; mov.u64 %rd2, twice; selp.b64 %rd3, %rd1, %rd2, %p1; mov.u32 %r10, 7;
        { .param .b32 q; .param .b32 s; st.param.b32 [q], %r20; st.param.b32 [s], %r10;
          list: .calltargets square, twice; @%p2 call (s), %rd3, (q), list; ld.param.b32 %r10, [s]; }
    """ + STORE + "ret;", 40, out=out)
    assert out.tolist() == [unary(n, n % 2) if n > 10 else 7 for n in range(40)]


def test_addresses_of_functions_differ_and_may_be_computed_with() -> None:
    out = np.zeros(3, np.uint32)
    run(UNARY, """
        mov.u32 %r20, 0; mov.u64 %rd1, square; mov.u64 %rd2, twice; setp.ne.u64 %p1, %rd1, %rd2;
        selp.u32 %r10, 1, 0, %p1;
    """ + STORE + """
        mov.u32 %r20, 1; sub.u64 %rd5, %rd2, %rd1; add.u64 %rd3, %rd1, %rd5; setp.eq.u64 %p1, %rd3, %rd2;
        selp.u32 %r10, 1, 0, %p1;
    """ + STORE + "mov.u32 %r20, 2;" + CALL + STORE + "ret;", 1, out=out)
    assert out.tolist() == [1, 1, 4]


def test_no_parameters_and_register_parameters_through_a_pointer() -> None:
    out = np.zeros(2, np.uint32)
    run("""
        .global .u32 count;
        .func bump() { .reg .b32 %r; atom.global.add.u32 %r, [count], 3; ret; }
        .func (.reg .b32 r) add(.reg .b32 a, .reg .b32 b) { add.u32 r, a, b; ret; }
    """, """
        mov.u64 %rd1, bump; none: .callprototype _ (); call %rd1, (), none; call %rd1, none;
        ld.global.u32 %r1, [count]; mov.u64 %rd2, add;
        two: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _); call (%r2), %rd2, (%r1, 100), two;
        ld.param.u64 %rd0, [out]; st.global.u32 [%rd0], %r1; st.global.u32 [%rd0+4], %r2; ret;
    """, 1, out=out)
    assert out.tolist() == [6, 106]


def test_structures_as_parameters_and_results() -> None:
    out = np.zeros((5, 3), np.uint64)
    run("""
        .func (.param .align 8 .b8 r[24]) rotate(.param .align 8 .b8 a[24], .param .b8 b) {
            .reg .b64 %rd<6>; .reg .b32 %r<4>;
            ld.param.v2.u64 {%rd1, %rd2}, [a]; ld.param.u32 %r1, [a+16]; ld.param.s16 %r2, [a+20]; ld.param.u8 %r3, [b];
            cvt.s64.s32 %rd3, %r2; add.u64 %rd1, %rd1, %rd3; cvt.u64.u32 %rd4, %r1; cvt.u64.u32 %rd5, %r3;
            add.u64 %rd4, %rd4, %rd5;
            st.param.u64 [r], %rd2; st.param.u64 [r+8], %rd4; st.param.u64 [r+16], %rd1; ret; }
    """, """
        mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd1, 1000; neg.s32 %r2, %r1; mov.u64 %rd9, rotate;
        { .param .align 8 .b8 q[24]; .param .b8 t; .param .align 8 .b8 s[24];
          st.param.u64 [q], %rd1; st.param.u64 [q+8], %rd2; st.param.u32 [q+16], 50; st.param.u16 [q+20], %r2;
          st.param.b8 [t], 9;
          p: .callprototype (.param .align 8 .b8 _[24]) _ (.param .align 8 .b8 _[24], .param .b8 _);
          call (s), %rd9, (q, t), p;
          ld.param.u64 %rd3, [s]; ld.param.v2.b32 {%r4, %r5}, [s+8]; ld.param.u64 %rd5, [s+16]; }
        mov.b64 %rd4, {%r4, %r5};
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r1, 24, %rd0;
        st.global.u64 [%rd0], %rd3; st.global.u64 [%rd0+8], %rd4; st.global.u64 [%rd0+16], %rd5; ret;
    """, 5, out=out)
    assert out.tolist() == [[n + 1000, 59, 0] for n in range(5)]


def test_directives_of_functions_are_taken() -> None:
    out = np.zeros(1, np.uint32)
    text = kernel("u64 out", "ld.param.u64 %rd0, [out]; call stop, (%rd0); st.global.u32 [%rd0], 2; ret;")
    function = """
        .func stop(.reg .b64 a) .noreturn .abi_preserve 8 .abi_preserve_control 2 { st.global.u32 [a], 1; exit; }
    """
    text = text.replace(HEADER, HEADER.replace("8.6", "9.0").replace("sm_90", "sm_100") + function)
    emulator.load(text).run("k", LaunchConfig(1, 1), [argument("out", out)])
    assert out[0] == 1


def test_a_call_of_no_function() -> None:
    with pytest.raises(EmulationError) as caught:
        run(UNARY, "mov.u32 %r20, 3; mov.u64 %rd3, 4096;" + CALL + "ret;", 1)
    assert caught.value.message == "a call of address 0x1000, where no function is that it could reach"
    assert caught.value.hint == "it must be a function of the module with the parameters of the prototype"
    assert caught.value.thread == (0, 0, 0)


def test_an_undefined_function_is_an_error_only_where_a_thread_comes_to_it() -> None:
    declared = ".extern .func (.param .b32 r) elsewhere(.param .b32 a);"
    body = """
        {{ .param .b32 q; .param .b32 s; st.param.b32 [q], %r20; setp.eq.u32 %p1, %r20, {0};
          @%p1 call (s), elsewhere, (q);
          ld.param.b32 %r10, [s]; }} ret;
    """
    run(declared, "mov.u32 %r20, %tid.x;" + body.format(99), 32)
    with pytest.raises(EmulationError) as caught:
        run(declared, "mov.u32 %r20, %tid.x;" + body.format(7), 32)
    assert caught.value.message == "the function elsewhere is called but not defined"
    assert caught.value.thread == (7, 0, 0)


def test_predicates_as_parameters_and_parameters_that_no_call_takes() -> None:
    out = np.zeros(6, np.uint32)
    run("""
        .func (.reg .u32 r, .reg .pred odd) halve(.reg .u32 x, .reg .pred up) {
            .reg .u32 %bit; and.b32 %bit, x, 1; setp.ne.u32 odd, %bit, 0; @up add.u32 x, x, 1; shr.u32 r, x, 1; ret; }
    """, """
        .param .align 8 .b8 kept[8];
        mov.u32 %r20, %tid.x; setp.gt.u32 %p1, %r20, 2; call (%r1, %p2), halve, (%r20, %p1);
        selp.u32 %r2, 100, 0, %p2; add.u32 %r1, %r1, %r2; st.param.u32 [kept+4], %r1; ld.param.u32 %r10, [kept+4];
    """ + STORE + "ret;", 6, out=out)
    assert out.tolist() == [100 * (n % 2) + (n + (n > 2)) // 2 for n in range(6)]


# alloca


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("kind", ["u64", "u32"])
def test_alloca_of_a_size_that_differs_between_threads(kind: str, conservative: bool) -> None:
    """Each thread fills a triangle of numbers and adds it up from behind."""
    out = np.zeros(45, np.uint32)
    p = {"u64": "%rd", "u32": "%r"}[kind] + "3"
    size = {"u64": "cvt.u64.u32 %rd2, %r4;", "u32": "mov.u32 %r2, %r4;"}[kind]
    run("", f"""
        mov.u32 %r20, %tid.x; mul.lo.u32 %r4, %r20, 4; {size}
        alloca.{kind} {p}, {p[:-1]}2, 64;
        and.b{kind[1:]} {p[:-1]}5, {p}, 63; setp.ne.{kind} %p3, {p[:-1]}5, 0; @%p3 trap;
        mov.{kind} {p[:-1]}7, {p}; mov.u32 %r8, 0;
        FILL: setp.ge.u32 %p1, %r8, %r20; @%p1 bra FILLED;
        mad.lo.u32 %r9, %r8, %r8, %r20; st.local.u32 [{p[:-1]}7], %r9; add.{kind} {p[:-1]}7, {p[:-1]}7, 4;
        add.u32 %r8, %r8, 1; bra FILL;
        FILLED: mov.u32 %r10, 0;
        SUM: setp.eq.u32 %p1, %r8, 0; @%p1 bra DONE;
        sub.{kind} {p[:-1]}7, {p[:-1]}7, 4; ld.local.u32 %r9, [{p[:-1]}7]; add.u32 %r10, %r10, %r9;
        sub.u32 %r8, %r8, 1; bra SUM;
        DONE:
    """ + STORE + "ret;", 45, conservative, out=out)
    assert out.tolist() == [sum(k * k + n for k in range(n)) for n in range(45)]


def test_stacksave_and_stackrestore_and_the_end_of_a_function_give_back() -> None:
    """A loop that would want a megabyte, by itself and in a function, and in a recursive one."""
    out = np.zeros(6, np.uint32)
    functions = """
        .func (.reg .b32 r) touch(.reg .b32 n) {
            .reg .b64 %rd<3>; alloca.u64 %rd1, 16384; st.local.u32 [%rd1+16380], n; ld.local.u32 r, [%rd1+16380]; ret; }
        .func (.param .b32 r) deep(.param .b32 a) {
            .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %p;
            ld.param.u32 %r1, [a]; alloca.u64 %rd1, 1000; st.local.u32 [%rd1], %r1;
            mov.u32 %r2, 0; setp.eq.u32 %p, %r1, 0; @%p bra DONE; sub.u32 %r3, %r1, 1;
            { .param .b32 q; .param .b32 s; st.param.b32 [q], %r3; call (s), deep, (q); ld.param.b32 %r2, [s]; }
            { .param .b32 q; .param .b32 s; st.param.b32 [q], 0; call (s), deep, (q); }
            ld.local.u32 %r4, [%rd1]; add.u32 %r2, %r2, %r4;
            DONE: st.param.b32 [r], %r2; ret; }
    """
    run(functions, """
        mov.u32 %r20, 0; mov.u32 %r10, 0; stacksave.u64 %rd9;
        LOOP: alloca.u64 %rd1, 16384; st.local.u32 [%rd1+16380], %r20; ld.local.u32 %r1, [%rd1+16380];
        add.u32 %r10, %r10, %r1; stackrestore.u64 %rd9;
        call (%r2), touch, (%r20); add.u32 %r10, %r10, %r2; call (%r2), touch, (%r20); add.u32 %r10, %r10, %r2;
        { .param .b32 q; .param .b32 s; st.param.b32 [q], 10; call (s), deep, (q); ld.param.b32 %r3, [s]; }
        add.u32 %r10, %r10, %r3;
    """ + STORE + "add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 6; @%p1 bra LOOP; ret;", 1, out=out)
    total, wanted = 0, []
    for n in range(6):
        total += 3 * n + 55
        wanted.append(total)
    assert out.tolist() == wanted


def test_alloca_of_more_than_there_is() -> None:
    body = "mov.u32 %r20, %tid.x; mul.lo.u32 %r1, %r20, 1024; cvt.u64.u32 %rd1, %r1; alloca.u64 %rd2, %rd1; ret;"
    run("", body, 33)
    with pytest.raises(MemoryFault) as caught:
        run("", body, 34)
    assert caught.value.message == "`alloca` beyond the 32768 bytes of stack that a thread has"
    assert caught.value.thread == (33, 0, 0)
