"""The verifier: each rule broken once, word for word, and nothing said about programs that break none."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest

from ptxdsl import ir, isa
from ptxdsl.errors import Loc, VerifyError
from ptxdsl.text import parse
from ptxdsl.types import b32, f32, pred, u32
from ptxdsl.verify import verify

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>; .reg .f64 %fd<3>; .reg .b16 %h<3>;"
GIVEN = "mov.u64 %rd1, 0; mov.u32 %r1, 1; mov.u32 %r2, 2; mov.f32 %f1, 1.0; setp.eq.u32 %p1, %r1, 1; mov.u16 %h1, 3;"


def module(text: str, outside: str = "", header: str = HEADER) -> ir.Module:
    """A kernel in which the registers numbered 1, and %r2, have values."""
    return parse(f"{header}{outside}\n.entry k(.param .u64 x, .param .u32 n) {{ {REGISTERS} {GIVEN}\n{text}\nret; }}")


def offence(text: str, outside: str = "", header: str = HEADER) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify(module(text, outside, header), filename="k.ptx")
    return caught.value


def form(mnemonic: str, arity: int) -> isa.Form:
    return next(form for form in isa.lookup(mnemonic) if len(form.operands) == arity)


def test_an_error_in_full() -> None:
    assert str(offence("add.u32 %r0, %r1, %f1;")) == (
        "`add.u32` wants a .u32 register or number for b, and it is the .f32 register %f1\n"
        "    add.u32 %r0, %r1, %f1;\n"
        "  at k.ptx:6\n"
        "  hint: its bits: `mov.b32`; its value: `cvt`"
    )


@pytest.mark.parametrize(("text", "hint"), [
    ("add.u32 %r0, %rd1, 1;", "convert it: `cvt.u32.u64`, which keeps the low 32 bits"),
    ("add.u64 %rd0, %r1, 1;", "convert it: `cvt.u64.u32`, of signed numbers `cvt.s64.s32`"),
    ("add.f32 %f0, %f1, %fd1;", "convert it: `cvt.rn.f32.f64`, which rounds"),
    ("add.f64 %fd0, %f1, %fd1;", "convert it: `cvt.f64.f32`"),
    ("add.f32 %f0, %rd1, %f1;", "convert it: `cvt.rn.f32.u64`, which rounds"),
    ("add.u64 %rd0, %f1, 1;", "convert it: `cvt.rzi.u64.f32`, which rounds towards zero"),
    ("add.u64 %r0, %rd1, 1;", None),
])
def test_how_a_register_of_another_size_is_mended(text: str, hint: str | None) -> None:
    assert offence(text).hint == hint


@pytest.mark.parametrize(("text", "message"), [
    ("add.f32 %f0, %f1, %fd1;", "`add.f32` wants a .f32 register or number for b, and it is the .f64 register %fd1"),
    ("add.u32 %r0, %rd1, 1;", "`add.u32` wants a .u32 register or number for a, and it is the .b64 register %rd1"),
    ("add.u32 %p1, %r1, 1;", "`add.u32` wants a .u32 register for d, and it is the .pred register %p1"),
    ("add.u32 %r0, %tid.x, 1;",
     "`add.u32` wants a .u32 register or number for a, and it is the special register %tid.x"),
    ("add.u32 %r0, g, 1;", "`add.u32` wants a .u32 register or number for a, and it is the address of g"),
    ("add.u32 %r0, _, 1;", "`add.u32` wants a .u32 register or number for a, and it is the sink _"),
    ("add.u32 %r0, [%rd1], 1;", "`add.u32` wants a .u32 register or number for a, and it is an address in brackets"),
    ("add.u32 %r0, !%p1, 1;", "`add.u32` wants a .u32 register or number for a, and it is the negated predicate !%p1"),
    ("add.u32 %r0, {%r1, %r2}, 1;", "`add.u32` wants a .u32 register or number for a, and it is a vector of 2"),
    ("selp.b32 %r0, %r1, %r2, %r1;", "`selp.b32` wants a .pred register for c, and it is the .b32 register %r1"),
    ("ld.global.u32 %r0, %rd1;",
     "`ld.global.u32` wants an address in brackets for a, and it is the .b64 register %rd1"),
    ("ld.global.u32 %r0, [%f1];",
     "`ld.global.u32` wants an address in brackets for a, and its base is the .f32 register %f1"),
    ("ld.global.u32 %r0, [%r1];",
     ("`ld.global.u32` wants an address in brackets for a, "
     "and its base is the .b32 register %r1: a global address has 64 bits")),
    ("ld.u32 %r0, [%r1];",
     ("`ld.u32` wants an address in brackets for a, "
     "and its base is the .b32 register %r1: a generic address has 64 bits")),
    ("ld.global.v2.u32 {%r0, %r1, %r2}, [%rd1];",
     "`ld.global.v2.u32` wants 2 .u32 registers in braces for d, and it has 3 elements"),
    ("ld.global.v2.b16 {%r0, %h0}, [%rd1];",
     "`ld.global.v2.b16` wants 2 .b16 registers in braces for d, and its registers differ in size"),
    ("ld.global.f32 %fd1, [%rd1];", "`ld.global.f32` wants a .f32 register for d, and it is the .f64 register %fd1"),
    ("ld.global.u64 %r0, [%rd1];", "`ld.global.u64` wants a .u64 register for d, and it is the .b32 register %r0"),
    ("ld.global.u8 %f0, [%rd1];", "`ld.global.u8` wants a .u8 register for d, and it is the .f32 register %f0"),
    ("lop3.b32 %r0, %r1, %r1, %r1, 256;",
     "`lop3.b32` wants a .u32 number for immLut, and 256 is not between 0 and 255"),
    ("mov.u32 %r0, %clock64;", "`mov.u32` wants a .u32 register or number for a, and %clock64 is a .u64"),
    ("mov.u64 %rd0, %tid.x;", "`mov.u64` wants a .u64 register or number for a, and %tid.x is a .u32"),
    ("ld.shared.u32 %r0, [g];", "g lies in .global, and `ld.shared.u32` wants an address in .shared"),
    ("ld.global.u32 %r0, [n];", "n lies in .param, and `ld.global.u32` wants an address in .global"),
    ("ld.param.u32 %r0, [g];", "g lies in .global, and `ld.param.u32` wants an address in .param"),
    ("ld.param.u64 %rd0, [n];", "bytes 0 to 8 of the parameter n, which has 4"),
    ("ld.param.u32 %r0, [x+6];", "bytes 6 to 10 of the parameter x, which has 8"),
    ("ld.param.u32 %r0, [x+-4];", "bytes -4 to 0 of the parameter x, which has 8"),
    ("st.param.u32 [n], %r1;", "n is a parameter, which cannot be written"),
    ("call f, (%r1, %r2);", "f has 1 argument, and the call gives 2"),
    ("call (%r0), f, (%r1);", "f has 0 results, and the call gives 1"),
    ("call f, (%rd1);", "the argument a of f is a .b32, and the .b64 register %rd1 is given"),
    (".param .b64 p; call f, (p);", "the argument a of f is a .b32, and the address of p is given"),
    ("call g, (%r1);", "g is no function that can be called"),
    ("call %rd1, (%r1);", "a call through a register without a prototype"),
])
def test_operands_that_do_not_fit(text: str, message: str) -> None:
    outside = ".global .u32 g[4]; .func f(.reg .b32 a) { ret; }"
    assert offence(text, outside).message.split("\n")[0] == message


@pytest.mark.parametrize("text", [
    "add.f32 %f0, %r1, %f1;", "add.s32 %r0, %r1, -1;", "ld.global.u8 %rd0, [%rd1];", "ld.global.b8 %f0, [%rd1];",
    "st.shared.b16 [%r1], %rd1;", "ld.shared.u32 %r0, [%rd1];", "mov.u32 %r0, %tid.x;", "mov.b16 %h0, %tid.x;",
    "mov.u64 %rd0, g+4;", "mov.u64 %rd0, f;", "cvt.u8.u32 %r0, %r1;", "cvt.rn.f32.s16 %f0, %rd1;",
    "mov.b64 {%r0, _}, %rd1;",
    "mov.b64 %rd0, {%r1, %f1};", "@%p1 bra L; L:", "ld.param.u8 %h0, [x+7];", "ld.u32 %r0, [g];", "call f, (%r1);",
    "ld.shared.u32 %r0, [s+8];", "atom.global.add.u32 %r0, [g], %r1;",
])
def test_operands_that_fit(text: str) -> None:
    verify(module(text, ".global .u32 g[4]; .extern .shared .u32 s[]; .func f(.reg .b32 a) { ret; }"))


@pytest.mark.parametrize(("text", "header", "message", "hint"), [
    ("add.bf16 %h0, %h1, %h1;", ".version 7.8\n.target sm_80\n",
     "`add.bf16` needs sm_90, and this module is for sm_80", "write `.target sm_90`"),
    ("add.bf16 %h0, %h1, %h1;", ".version 7.0\n.target sm_80\n",
     "`add.bf16` needs PTX 7.8, and this module is PTX 7.0", "write `.version 7.8`"),
    ("mov.u32 %r0, %clusterid.x;", ".version 7.8\n.target sm_80\n",
     "%clusterid.x needs sm_90, and this module is for sm_80", "write `.target sm_90`"),
    ("ret;", ".version 7.0\n.target sm_90\n", ".target sm_90 came with PTX 7.8, and this module is PTX 7.0",
     "write `.version 7.8`"),
    ("ret;", ".version 8.0\n.target sm_91\n", "the target sm_91 is not known", ANY),
    ("ret;", ".version 8.0\n.target sm_90, fast\n", "`.target` has no option fast",
     "there are texmode_unified, texmode_independent, debug, map_f64_to_f32"),
    (".reg .b128 %q;", ".version 8.0\n.target sm_90\n",
     "a register is a .b128, which needs PTX 8.3; this module is PTX 8.0", None),
    ("shfl.up.b32 %r0, %r1, 1, 0;", ".version 8.0\n.target sm_90\n", "`shfl.up.b32` is gone since PTX 6.4",
     "say which lanes take part: `shfl.sync.up.b32`"),
])
def test_version_and_target(text: str, header: str, message: str, hint: str | None) -> None:
    error = offence(text, header=header)
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(("directive", "header", "message"), [
    (".reqnctapercluster 2", ".version 7.8\n.target sm_80\n",
     "`.reqnctapercluster` needs sm_90, and this module is for sm_80"),
    (".maxclusterrank 8", ".version 8.0\n.target sm_75\n",
     "`.maxclusterrank` needs sm_90, and this module is for sm_75"),
    (".noreturn", ".version 6.3\n.target sm_75\n", "`.noreturn` needs PTX 6.4, and this module is PTX 6.3"),
])
def test_directives(directive: str, header: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse(f"{header}.entry k() {directive} {{ ret; }}"))
    assert caught.value.message == message


def test_in_a_module_of_32_bits_addresses_have_32_bits() -> None:
    text = "ld.global.u32 %r0, [%r1];"
    verify(module(text, header=HEADER.replace("64", "32")))
    assert "a global address has 64 bits" in offence(text).message


def test_what_is_declared_in_a_module() -> None:
    twice = ir.Variable("g", "global", u32)
    with pytest.raises(VerifyError, match=r"^g is defined twice"):
        verify(ir.Module((8, 0), "sm_90", variables=[twice, twice]))
    with pytest.raises(VerifyError, match=r"^f is defined twice"):
        verify(parse(HEADER + ".func f() { ret; } .func f() { ret; }"))
    with pytest.raises(VerifyError, match=r"^the initial value of p is the address of q, which is not declared"):
        verify(parse(HEADER + ".global .u64 p = q+4;"))
    verify(parse(HEADER + ".func f(); .global .u64 p = f; .func f() { ret; }"))


# ---------------------------------------------------------------------------------------------------------------------
# What only a module that was not parsed can have


def built(*body: ir.Statement, registers: list[ir.Register] | None = None) -> ir.Module:
    return ir.Module((8, 0), "sm_90", functions=[ir.Function("k", registers=registers or [R], body=list(body))])


R, LOC = ir.Register("%r0", u32), Loc("kernel.py", 7)


def test_what_no_text_can_say() -> None:
    mov = ir.Instruction(form("mov.u32", 2), (R, ir.Immediate(1, u32)), loc=LOC)
    wants = "`mov.u32` wants a .u32 register or number for a, and "
    cases = [
        (built(mov, registers=[ir.Register("%r1", u32)]), "the register %r0 is not declared in k"),
        (built(mov, registers=[ir.Register("%r0", f32)]), "%r0 is used as a .u32, and declared a .f32"),
        (built(mov, registers=[R, R]), "%r0 is declared twice in k"),
        (built(ir.Instruction(mov.form, (R, ir.Immediate(1 << 32, u32)))), wants + "4294967296 does not fit in u32"),
        (built(ir.Instruction(mov.form, (R,))), "`mov.u32` takes 2 operands, not 1"),
        (built(ir.Instruction(mov.form, (R, ir.Immediate(1, b32)))), wants + "it is the .b32 number 1"),
        (built(ir.Instruction(mov.form, (R, ir.Symbol("g")))),
         "nothing is called g: no variable, parameter or function"),
        (built(ir.Instruction(mov.form, (R, ir.SpecialRegister("%tidd")))), "PTX has no special register `%tidd`"),
        (built(ir.Instruction(form("bra", 1), (ir.LabelRef("L"),))), "no label in k is called L"),
        (built(ir.Label("L"), ir.Label("L")), "L is declared twice in k"),
        (built(ir.Instruction(form("ret", 0), (), R)), "the guard is the .u32 register %r0, and must be a predicate"),
    ]
    for case, message in cases:
        with pytest.raises(VerifyError) as caught:
            verify(case)
        assert caught.value.message.split("\n")[0] == message


def test_the_python_line_is_named() -> None:
    with pytest.raises(VerifyError) as caught:
        verify(built(ir.Instruction(form("mov.u32", 2), (R, ir.Register("%x", u32)), loc=LOC)))
    assert caught.value.loc == LOC


# ---------------------------------------------------------------------------------------------------------------------
# Definite assignment


def read_early(text: str) -> list[str]:
    """The register, if any, that a kernel with Python lines may read too early."""
    try:
        declared = ".reg .pred %p, %q; .reg .b32 %a, %b, %c;"
        verify(parse(f'{HEADER}.file 1 "k.py"\n.entry k() {{ {declared} .loc 1 5 0\n{text} }}'))
    except VerifyError as error:
        return [error.message.split(" is read here, and not every path")[0]]
    return []


@pytest.mark.parametrize(("text", "names"), [
    ("mov.u32 %a, 1; add.u32 %b, %a, %a;", []),
    ("add.u32 %b, %a, %a;", ["%a"]),
    ("add.u32 %a, %a, 1;", ["%a"]),
    ("mov.u32 %a, 1; setp.eq.u32 %p, %a, 1; @%p mov.u32 %b, 2; @%p mov.u32 %c, %b;", []),
    ("mov.u32 %a, 1; @%p mov.u32 %b, %a;", ["%p"]),
    ("mov.u32 %a, 1; setp.eq.u32 %p, %a, 1; @%p bra L; mov.u32 %b, 2; L: mov.u32 %c, %b;", ["%b"]),
    ("mov.u32 %a, 1; setp.eq.u32 %p, %a, 1; @%p bra L; mov.u32 %b, 2; bra M; L: mov.u32 %b, 3; M: mov.u32 %c, %b;", []),
    ("mov.u32 %a, 0; L: add.u32 %a, %a, 1; setp.lt.u32 %p, %a, 9; @%p bra L; mov.u32 %b, %a;", []),
    ("L: setp.lt.u32 %p, %a, 9; mov.u32 %a, 1; @%p bra L;", ["%a"]),
    ("mov.u32 %a, 0; bra L; M: add.u32 %c, %b, 1; bra E; L: mov.u32 %b, %a; bra M; E: ret;", []),
    ("ret; add.u32 %b, %a, 1;", []),
    ("exit; L: add.u32 %b, %a, 1; bra L;", []),
    ("mov.u32 %a, 1; setp.eq.u32 %p|%q, %a, 1; @%p ret; @%q bra L; mov.u32 %b, 1; ret; L: mov.u32 %c, %b;", ["%b"]),
    ("mov.u32 %a, 0; t: .branchtargets L, M; brx.idx %a, t; L: mov.u32 %b, 1; bra E; M: E: mov.u32 %c, %b;", ["%b"]),
    ("mov.u32 %a, 0; t: .branchtargets L, M; brx.idx %a, t; mov.u32 %c, %b; L: M: ret;", []),
    ("trap; add.u32 %b, %a, 1;", []),
])
def test_definite_assignment(text: str, names: list[str]) -> None:
    assert read_early(text) == names


def test_reading_too_early_is_told_with_the_repair() -> None:
    text = ".reg .f32 %acc; @%p1 bra L; mov.f32 %acc, 0.0; L: add.f32 %f2, %acc, %f1;"
    error = offence(text)
    wanted = "%acc is read here, and not every path to this line has written it\n    add.f32 %f2, %acc, %f1;"
    assert error.message == wanted
    assert error.hint == "give it a value first: `mov.f32 %acc, 0f00000000;`"
    verify(module(text), foreign=True)


def test_a_traced_kernel_is_told_in_python() -> None:
    acc = ir.Register("%acc", u32)
    add = ir.Instruction(form("add.u32", 3), (acc, acc, ir.Immediate(1, u32)), loc=LOC)
    with pytest.raises(VerifyError) as caught:
        verify(built(add, registers=[acc]))
    assert (caught.value.loc, caught.value.hint) == (LOC, "give it a value first: `acc.set(...)`")
    add.loc = Loc("kernel.cu", 7)
    verify(built(add, registers=[acc]))


def test_every_kernel_of_the_corpus_verifies_twice() -> None:
    paths = sorted((Path(__file__).parent.parent / "corpus").glob("*.ptx"))
    assert paths
    for path in paths:
        for _ in range(2):
            verify(parse(path.read_text("utf-8"), str(path)))


def test_a_cached_verdict_is_not_taken_for_another_target() -> None:
    text = "add.bf16 %h0, %h1, %h1;"
    verify(module(text))
    assert "needs sm_90" in offence(text, header=".version 7.8\n.target sm_80\n").message


def test_guards_must_be_declared() -> None:
    ret = ir.Instruction(form("ret", 0), (), ir.Register("%p0", pred))
    with pytest.raises(VerifyError, match=r"^the register %p0 is not declared in k"):
        verify(built(ret))
