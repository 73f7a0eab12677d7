"""The parser: every corner of PTX's syntax, and what it says about text that is none."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest

from ptxdsl import ir
from ptxdsl.errors import Loc, ParseError, VerifyError
from ptxdsl.text import parse, to_text
from ptxdsl.types import TYPES, b8, b32, b64, f32, f64, pred, s32, texref, u32, u64
from ptxdsl.verify import verify

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.ptx"))
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>; .reg .f64 %fd<3>; .reg .b16 %h<3>;"


def body(text: str, outside: str = "") -> list[ir.Statement]:
    """The statements of a kernel with that body."""
    module = parse(f"{HEADER}{outside}\n.entry k(.param .u64 x) {{ {REGISTERS}\n{text}\n}}")
    statements = module.function("k").body
    assert statements is not None
    return statements


def operands(text: str, outside: str = "") -> tuple[ir.Operand, ...]:
    """The operands of the first instruction of a body."""
    return next(s for s in body(text, outside) if isinstance(s, ir.Instruction)).operands


def variable(text: str) -> ir.Variable:
    return parse(HEADER + text).variables[-1]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_parses_and_verifies(path: Path) -> None:
    module = parse(path.read_text("utf-8"), str(path))
    verify(module)
    assert module.functions


def test_the_head_of_a_module() -> None:
    module = parse(".version 8.5\n.target sm_90a, texmode_independent, debug\n.address_size 64\n")
    assert (module.version, module.target) == ((8, 5), "sm_90a")
    assert module.target_options == ("texmode_independent", "debug")


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


@pytest.mark.parametrize(("text", "value"), [
    ("7", 7), ("0x1F", 31), ("0X1f", 31), ("0b101", 5), ("0B11U", 3), ("017", 15), ("0", 0), ("4294967295U", 2**32 - 1),
    ("-1", 2**32 - 1), ("WARP_SZ", 32), ("WARP_SZ-1", 31), ("(1<<4)|3+2*5", 29), ("~7U", 2**32 - 8), ("~0", 2**32 - 1),
    ("7/2", 3), ("-7/2", 2**32 - 3), ("-7%2", 1), ("7 % -3", 7), ("~0 < 0", 0),
    ("~5 >> 60", 15), ("1 ? 2 : 3", 2), ("0 ? 2 : 1 ? 4 : 5", 4), ("!3", 0),
    ("!0 && 4", 1), ("0 || 0", 0), ("3 < 4U", 1), ("-1 < 0U", 0), ("-1 < 0", 1), ("2 + 3 * 4 - 1", 13), ("(2+3)*4", 20),
    ("8 >> 1 << 2", 16), ("6 & 3 ^ 1", 3), ("1 | 2 == 2", 1), ("(.u64)5 - 3", 2), ("(.s64)-5 >> 1", 2**32 - 3),
    ("10 - 3 - 2", 5), ("5 != 5", 0), ("1.5 < 2.0", 1), ("+ 4", 4),
])
def test_constant_expressions_are_computed_as_in_c(text: str, value: int) -> None:
    assert operands(f"mov.u32 %r1, {text};")[1] == ir.Immediate(value, u32)


def test_random_expressions_against_python() -> None:
    seed = random.randrange(2**32)
    choose = random.Random(seed)

    def expression(depth: int) -> tuple[str, int]:
        if depth == 0:
            value = choose.randrange(1, 60)
            return choose.choice([str(value), hex(value)]), value
        (a, x), (b, y) = expression(depth - 1), expression(choose.randrange(depth))
        sign = choose.choice("+-*&|^")
        value = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}[sign]
        return f"({a}){sign}({b})", value

    for _ in range(200):
        text, value = expression(3)
        if abs(value) < 2**62:
            assert operands(f"mov.s64 %rd1, {text};")[1].bits == value % 2**64, f"{text} (seed {seed})"  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "bits"), [
    ("0f3F800000", 0x3F800000), ("0F3f800000", 0x3F800000), ("1.0", 0x3F800000), ("-2.0e3", 0xC4FA0000), (".5",
     0x3F000000),
    ("1e1", 0x41200000), ("1.", 0x3F800000), ("1.0+2.0", 0x40400000), ("0d3FF0000000000000", 0x3F800000), ("-.5",
     0xBF000000),
    ("0f7FC00001", 0x7FC00001), ("0.1", 0x3DCCCCCD),
])
def test_floats(text: str, bits: int) -> None:
    assert operands(f"mov.f32 %f1, {text};")[1] == ir.Immediate(bits, f32)


def test_a_float_in_untyped_bits_stays_a_float() -> None:
    assert operands("mov.b32 %r1, 0f3F800000;")[1] == ir.Immediate(0x3F800000, f32)
    assert operands("mov.b64 %rd1, 0d3FF0000000000000;")[1] == ir.Immediate(0x3FF << 52, f64)


# ---------------------------------------------------------------------------------------------------------------------
# Operands and statements


@pytest.mark.parametrize(("text", "wanted"), [
    ("[%rd1]", ir.Address(ir.Register("%rd1", b64))), ("[%rd1+4]", ir.Address(ir.Register("%rd1", b64), 4)),
    ("[ %rd1 + -4 ]", ir.Address(ir.Register("%rd1", b64), -4)), ("[g-4]", ir.Address(ir.Symbol("g"), -4)),
    ("[%rd1+2*8]", ir.Address(ir.Register("%rd1", b64), 16)), ("[g]", ir.Address(ir.Symbol("g"))),
    ("[g+0x10]", ir.Address(ir.Symbol("g"), 16)), ("[64]", ir.Address(ir.Immediate(64, u64))),
    ("[%rd1].unified", ir.Address(ir.Register("%rd1", b64), 0, (), True)),
    ("[%rd1+8].unified", ir.Address(ir.Register("%rd1", b64), 8, (), True)),
])
def test_addresses(text: str, wanted: ir.Address) -> None:
    assert operands(f"ld.global.b32 %r1, {text};", ".global .u32 g[8];")[1] == wanted


def test_operands_of_every_sort() -> None:
    r, p = [ir.Register(f"%r{n}", b32) for n in range(5)], [ir.Register(f"%p{n}", pred) for n in range(3)]
    assert operands("setp.lt.and.u32 %p0|%p1, %r1, 5, !%p2;") == (p[0], p[1], r[1], ir.Immediate(5, u32), ir.Not(p[2]))
    assert operands("setp.lt.u32 _|%p1, %r1, %r2;") == (ir.Sink(), p[1], r[1], r[2])
    assert operands("mov.b64 {%r1,_}, %rd1;") == (ir.Vector((r[1], ir.Sink())), ir.Register("%rd1", b64))
    assert operands("mov.u64 %rd1, g+16;", ".global .u32 g[8];")[1] == ir.Symbol("g", 16)
    assert operands("mov.u32 %r1, %clock;")[1] == ir.SpecialRegister("%clock")
    assert operands("mov.u64 %rd1, x;")[1] == ir.Symbol("x")
    assert operands("L: bra L;") == (ir.LabelRef("L"),)
    assert operands("ret;") == ()
    assert operands("ld.global.b32 { %r1 }, [%rd1];")[0] == r[1]
    assert operands("mov.pred %p1, -1;")[1] == ir.Immediate(1, pred)
    assert body("atom.add.release.gpu.u32 %r1, [%rd1], %r2;") == body("atom.release.gpu.add.u32 %r1, [%rd1], %r2;")


@pytest.mark.parametrize(("text", "wanted"), [
    ("mov.u32 %r1, 0x1FFFFFFFF;", ir.Immediate(0xFFFFFFFF, u32)),
    ("mov.u16 %h1, 70000;", ir.Immediate(4464, TYPES["u16"])),
    ("mov.s32 %r1, -2147483649;", ir.Immediate(0x7FFFFFFF, s32)),
    ("mov.b64 %rd1, 1.5;", ir.Immediate(0x3FF8 << 48, b64)), ("mov.pred %p1, 4;", ir.Immediate(1, pred)),
    ("mov.pred %p1, ~0;", ir.Immediate(1, pred)), ("mov.pred %p1, 3 - 3;", ir.Immediate(0, pred)),
])
def test_numbers_keep_the_bits_that_there_is_room_for(text: str, wanted: ir.Immediate) -> None:
    assert operands(text)[1] == wanted


def test_a_register_plus_a_number_is_added_before() -> None:
    r, rd = ir.Register("%r1", b32), ir.Register("%rd1", b64)
    add, store = body("@!%p1 st.global.u32 [%rd1], %r1 + 0x10;")
    assert isinstance(add, ir.Instruction) and isinstance(store, ir.Instruction)
    made = ir.Register("%made", b32)
    assert (add.form.mnemonic, add.operands) == ("add.u32", (made, r, ir.Immediate(16, u32)))
    assert add.guard == store.guard == ir.Not(ir.Register("%p1", pred))
    assert store.operands == (ir.Address(rd), made)
    module = parse(f"{HEADER}.entry k() {{ {REGISTERS} mov.u64 %rd1, %rd2+8; mov.u64 %rd3, %rd2+-1; ret; }}")
    text = to_text(module)
    assert "add.u64 %made, %rd2, 8;" in text and "add.u64 %made$1, %rd2, 18446744073709551615;" in text
    assert parse(text) == module


def test_guards_and_spacing_of_every_kind() -> None:
    p = ir.Register("%p1", pred)
    text = "@%p1 bra L; @ !%p1\tbra\n L; @! %p1 bra.uni L;\tadd .s32\t%r1,%r2 ,\n\t%r3 ; L:M : ret;"
    statements = body(text)
    assert [s.guard for s in statements if isinstance(s, ir.Instruction)] == [p, ir.Not(p), ir.Not(p), None, None]
    assert [s.name for s in statements if isinstance(s, ir.Label)] == ["L", "M"]
    assert statements[3].form.mnemonic == "add.s32"  # type: ignore[union-attr]


def test_comments_vanish_but_for_those_on_their_own_line() -> None:
    text = "// one\nmov.u32 /* in * between */ %r1, // after\n  // within\n 1; /* two\n lines */ ret; // three\n //four"
    assert [s.text for s in body(text) if isinstance(s, ir.Comment)] == ["one", "within", "four"]


def test_lines_of_the_text_are_kept() -> None:
    statements = body("ret;\n\n/* a\n b */ @%p1\n exit; ret;")
    assert [s.line for s in statements if isinstance(s, ir.Instruction)] == [6, 10, 10]


def test_locations() -> None:
    text = """.loc 2 5 0
    ret; ret;
    .loc 1 7 3, function_name info+4, inlined_at 2 5 0
    ret; .loc 1 0 0
    ret;"""
    outside = '.file 1 "a b.cu", 13, 64\n'
    module = parse(f'{HEADER}{outside}.entry k() {{ {text} }}\n.entry j() {{ .loc 7 1 0\n ret; }}\n.file 2 "c.h"')
    five = Loc("c.h", 5)
    assert [s.loc for s in module.function("k").instructions()] == [five, five, Loc("a b.cu", 7), None]
    assert [s.loc for s in module.function("j").instructions()] == [None]


def test_registers() -> None:
    text = ".entry k() { .reg .b32 a, %r<3>, b<2>; .reg .pred p; .reg.f32 %f<0>; ret; }"
    names = [(r.name, r.type) for r in parse(HEADER + text).function("k").registers]
    assert names == [("a", b32), ("%r0", b32), ("%r1", b32), ("%r2", b32), ("b0", b32), ("b1", b32), ("p", pred)]


def test_vector_registers_become_their_components() -> None:
    v = [ir.Register(f"v${letter}", f32) for letter in "xyzw"]
    assert operands(".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1];")[0] == ir.Vector(tuple(v))
    assert operands(".reg .v4 .f32 v; add.f32 v.x, v.g, v.b;") == (v[0], v[1], v[2])


def test_scopes_are_flattened() -> None:
    module = parse((CORPUS[0].parent / "scopes.ptx").read_text("utf-8"))
    names = [r.name for r in module.function("scopes").registers]
    assert len(names) == len(set(names))
    text = to_text(module)
    assert re.findall(r"bra (\S+);", text) == ["end", "again", "skip", "again$1", "end$1"]


def test_calls() -> None:
    def first(operand: ir.Operand) -> object:
        return operand[0]

    module = parse((CORPUS[0].parent / "calls.ptx").read_text("utf-8"))
    function = module.function("calls")
    calls = [s for s in function.body or () if isinstance(s, ir.Call)]
    assert [(c.callee[0], [*map(first, c.results)], [*map(first, c.arguments)], c.prototype, c.uniform)
            for c in calls] == [
        ("nothing", [], [], None, False), ("registers", [], ["%r0"], None, True), ("registers", [], [5], None, False),
        ("result", ["%r1"], [], None, False), ("block", ["back"], ["given", "number"], None, True),
        ("%rd1", ["back$1"], ["given$1"], "prototype", False), ("%rd2", ["back$2"], ["given$2"], "targets", False),
    ]
    assert function.branch_tables == {"table": ("even", "odd")}
    assert function.call_targets == {"targets": ("twice",)}
    assert [p.type for p in function.prototypes["prototype"].parameters] == [b32]


def test_numbers_that_a_call_passes_have_the_types_of_the_parameters() -> None:
    outside = ".func f(.reg .f32 a, .reg .s32 b, .reg .u64 c) { ret; }"
    prototype = "P: .callprototype _ (.param .f32 _, .param .s32 _, .param .u64 _);"
    for text in ("call f, (0f40000000, -5, 5);", f"{prototype} call %rd1, (0f40000000, -5, 5), P;"):
        (call,) = [s for s in body(text, outside) if isinstance(s, ir.Call)]
        assert call.arguments == (ir.Immediate(1 << 30, f32), ir.Immediate(2**32 - 5, s32), ir.Immediate(5, u64))


# ---------------------------------------------------------------------------------------------------------------------
# Declarations


@pytest.mark.parametrize(("text", "wanted"), [
    (".global .u32 g;", ir.Variable("g", "global", u32)),
    (".visible .const .align 16 .f32 c[2][3];", ir.Variable("c", "const", f32, (2, 3), 16, linkage="visible")),
    (".extern .shared .align 8 .b8 s[];", ir.Variable("s", "shared", b8, (None,), 8, linkage="extern")),
    (".global .s32 g = -1;", ir.Variable("g", "global", s32, values=(2**32 - 1,))),
    (".global .u32 g[3] = {1, 2};", ir.Variable("g", "global", u32, (3,), values=(1, 2))),
    (".global .u32 g[] = {1, 2, 3};", ir.Variable("g", "global", u32, (3,), values=(1, 2, 3))),
    (".global .u32 g[2][2] = {{1}, {2, 3}};", ir.Variable("g", "global", u32, (2, 2), values=(1, 0, 2, 3))),
    (".global .f32 f = 1.0;", ir.Variable("f", "global", f32, values=(0x3F800000,))),
    (".global .v2 .f32 f[3];", ir.Variable("f", "global", f32, (3, 2), 8)),
    (".global .u32 a; .global .u64 p = a+8;", ir.Variable("p", "global", u64, values=(ir.Symbol("a", 8),))),
    (".global .u32 a; .global .u64 p = generic(a)+8;",
     ir.Variable("p", "global", u64, values=(ir.Reference("a", 8, True),))),
    (".global .u32 a; .global .u64 p = generic(a);",
     ir.Variable("p", "global", u64, values=(ir.Reference("a", 0, True),))),
    (".global .attribute(.unified(19, 95), .managed) .u32 g;",
     ir.Variable("g", "global", u32, attributes=(("unified", (19, 95)), ("managed", ())))),
    (".global .texref t = { width = 64, filter_mode = nearest };",
     ir.Variable("t", "global", texref, properties=(("width", 64), ("filter_mode", "nearest")))),
])
def test_variables(text: str, wanted: ir.Variable) -> None:
    assert variable(text) == wanted


def test_sections_aliases_and_pragmas() -> None:
    text = '.pragma "nounroll", "b"; .func f() { ret; } .func g(); .alias g, f;'
    text += ".section .debug_str { info: .b8 95, 0\n.b32 1 }"
    module = parse(HEADER + text)
    assert module.directives == [("pragma", ("nounroll", "b")), ("alias", ("g", "f"))]
    assert module.sections == [(".debug_str", "info: .b8 95, 0\n.b32 1")]
    assert [f.body for f in module.functions][1] is None


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes, word for word


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text, "k.ptx")
    return caught.value


def test_an_error_shows_the_line_and_the_place() -> None:
    error = refused(f"{HEADER}.entry k()\n{{\n\t.reg .b32 %r<3>;\n\tadd.u32 %r1, %r2, %r9;\n}}")
    assert str(error) == (
        "%r9 is not declared\n"
        "    add.u32 %r1, %r2, %r9;\n"
        "                      ^\n"
        "  at k.ptx:7\n"
        "  hint: did you mean %r2 or %r1 or %r0?"
    )
    assert (error.column, error.loc) == (20, Loc("k.ptx", 7))


@pytest.mark.parametrize(("text", "message", "hint"), [
    ("ld.global.u32 %r1, [];", "an address is missing", "write a register, a variable or a number: `[%rd0]`"),
    ("st.shared.v2.u32 [ ], {%r1, %r2};", "an address is missing", None),
    ("call (%r1), ;", "an operand is missing", None),
    ("fma.f32 %f1, %f2, %f3, %f4;", "`fma` takes `.f32` only behind another modifier", None),
    ("add.u32 %r1, %r2;", "`add.u32` takes 3 operands, not 2", None),
    ("add.u32 %r1, %r2, %r3, ;", "`add.u32` takes 3 operands, not 4", None),
    ("add.u32 %r1 %r2, %r3;", "`add.u32` takes 3 operands, not 2", None),
    ("addd.u32 %r1, %r2, %r3;", "PTX has no instruction `addd`", None),
    ("bra nowhere;", "no label is called nowhere", "place it: `nowhere:`"),
    ("LOOP: bra LOP;", "no label is called LOP", "did you mean LOOP?"),
    ("mov.u64 %rd1, 0x1FFFFFFFFFFFFFFFF;", "36893488147419103231 does not fit in 64 bits", None),
    ("add.u32 %r1, %r2, %r3-1;", "`%r3-1` is no operand", None),
    ("mov.u32 %r1, 1.5;", "the float 1.5 is no u32", None),
    ("mov.f32 %f1, 3;", "the integer 3 is no f32; write 3.0", None),
    ("mov.u32 %r1, 5 / 0;", "`5/0` is no operand", None),
    ("mov.u32 %r1, %tidx;", "PTX has no special register `%tidx`", "did you mean %tid.x, %ntid.x or %ctaid.x?"),
    ("@%r1 bra L; L:", "the guard %r1 is no predicate", "declare it: `.reg .pred p;`"),
    ("@%q bra L; L:", "the guard %q is not declared", "declare it: `.reg .pred p;`"),
    (".reg .b32 %r1;", "%r1 is declared twice", None),
    ("L: L: ret;", "L is declared twice", None),
    (".reg .bf16 %b;", "nothing in .reg can have the type .bf16", "declare it .b16"),
    ("ret", "a statement without its `;`", "end it with `;`"),
    ("call missing, (%r1);", "missing is not declared",
     "declare it before: a variable, a parameter, a function or a register"),
    ("add.u32 %r1, %r2, 1\nret;", "`1` is no operand", "end the statement: `1;`"),
    ("ld.global.u32 %r1, [%rd1;", "these operands are not well formed", None),
    ("ld.global.v2.u32 {%r1, %r2, [%rd1];", "these operands are not well formed", None),
    (".shared .u32 s = 3;", "a .shared variable has no initial value", None),
    (".shared .u32 s[];", "the array s has no size", "only an .extern one may lack it"),
    (".local .align 3 .b8 s[4];", "an alignment of 3, which is no power of two", None),
])
def test_mistakes_in_a_body(text: str, message: str, hint: str | None) -> None:
    error = refused(f"{HEADER}.entry k() {{ {REGISTERS}\n{text}\n}}")
    assert error.message.split("\n")[0] == message
    assert error.loc == Loc("k.ptx", 5)
    assert hint is None or error.hint == hint


@pytest.mark.parametrize(("text", "message"), [
    ("", "a module begins with `.version`"),
    (".target sm_90\n", "a module begins with `.version`"),
    (".version 8\n", "expected a version such as 8.0, not `8`"),
    (".version 8.0\n.address_size 64\n", "behind `.version` comes `.target`"),
    (HEADER + ".entri k() { }", "`.entri` begins nothing at the level of the module"),
    (HEADER + "ret;", "`ret` begins nothing at the level of the module"),
    (HEADER + ".entry k() { ret;", "the body of k does not end"),
    (HEADER + ".entry k() .maxtid 3 { }", "`.maxtid` is no directive of a function"),
    (HEADER + ".entry k() .maxntid 1,2,3,4 { }", "`.maxntid` takes 1 to 3 numbers"),
    (HEADER + ".entry k(.param .b23 x) { }", "expected a type such as `.b32`, not `.b23`"),
    (HEADER + ".entry k(.param .f16x2 x) { }", "nothing in .param can have the type .f16x2"),
    (HEADER + ".global .u32 g[2] = {1, 2, 3};", "these initial values do not fit the array g[2]"),
    (HEADER + ".global .u64 g = 0x1FFFFFFFFFFFFFFFF;", "36893488147419103231 does not fit in 64 bits"),
    (HEADER + ".global .u32 g; .global .f32 g;", "g is declared twice"),
    (HEADER + ".global .u32 g[2][] = {{1}, {2}};", "only the first dimension of an array may lack its size"),
    (HEADER + ".extern .shared .u32 g[][];", "only the first dimension of an array may lack its size"),
    (HEADER + "/* open", "a comment that does not end"),
    (HEADER + ".local .u32 g;", "a .local variable outside a function"),
    (HEADER + ".address_size 48", "an address size of 48, which is neither 32 nor 64"),
    (HEADER + '.pragma "used_bytes_mask 1";', 'the pragma "used_bytes_mask 1" outside a function'),
])
def test_mistakes_in_a_module(text: str, message: str) -> None:
    assert refused(text).message.split("\n")[0] == message


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_damaged_text_is_refused_or_read_never_a_crash(path: Path) -> None:
    text, seed = path.read_text("utf-8"), random.randrange(2**32)
    choose = random.Random(seed)
    for _ in range(60):
        start = choose.randrange(len(text))
        length = choose.choice([1, 1, 2, 5, 40])
        junk = "".join(choose.choice('%rf.,;{}[]()@!0x+-"/*: \n_|<>ab1') for _ in range(choose.choice([0, 0, 1, 3])))
        print(f"seed {seed}")
        with contextlib.suppress(ParseError, VerifyError):
            verify(parse(text[:start] + junk + text[start + length :]))
