"""The printer, and the law that what it prints is read back as it was."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from ptxdsl import ir, isa
from ptxdsl.errors import Loc
from ptxdsl.isa import Form, OperandSpec, Row
from ptxdsl.ir.operand_matching import elements
from ptxdsl.text import parse, to_text
from ptxdsl.text.escape import escape, unescape
from ptxdsl.types import TYPES, ScalarType, b16, b32, f32, f64, pred, s32, u8, u32, u64

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.ptx"))


def kernel(*body: ir.Statement, **facts: Any) -> ir.Module:
    """A module of one kernel with that body, whose registers are those that it uses."""
    registers: dict[ir.Register, None] = {}
    for s in body:
        if isinstance(s, ir.Instruction):
            registers.update(dict.fromkeys([*s.writes(), *s.reads()]))
    function = ir.Function("k", registers=list(registers), body=list(body), **facts)
    return ir.Module((8, 0), "sm_90", functions=[function])


def instruction(mnemonic: str, *operands: ir.Operand, guard: Any = None, loc: Loc | None = None) -> ir.Instruction:
    form = next(form for form in isa.lookup(mnemonic) if len(form.operands) == len(operands))
    return ir.Instruction(form, operands, guard, loc)


def body_of(text: str) -> list[str]:
    """The lines between the declarations and the end of the only function."""
    return [line.strip() for line in text.split("{\n", 1)[1].rsplit("}", 1)[0].split("\n\n", 1)[-1].splitlines()]


R = [ir.Register(f"%r{n}", u32) for n in range(4)]
P = [ir.Register(f"%p{n}", pred) for n in range(2)]


def test_a_kernel_in_full() -> None:
    x, a = Loc("kernel.py", 12), Loc("kernel.py", 13)
    acc, f0 = ir.Register("%acc", f32), ir.Register("%f0", f32)
    rd = ir.Register("%rd0", u64)
    body: list[ir.Statement] = [
        instruction("ld.param.u64", rd, ir.Address(ir.Symbol("x")), loc=x),
        instruction("mov.f32", acc, ir.Immediate(0x3F800000, f32), loc=x),
        ir.Label("$loop_1"),
        instruction("ld.global.f32", f0, ir.Address(rd, -8), loc=a),
        instruction("fma.rn.f32", acc, f0, f0, acc, loc=a),
        instruction("setp.lt.u32", P[0], R[0], ir.Immediate(7, u32), loc=x),
        instruction("bra", ir.LabelRef("$loop_1"), guard=ir.Not(P[0]), loc=x),
        instruction("ret"),
    ]
    function = ir.Function(
        "k", parameters=[ir.Parameter("n", u32), ir.Parameter("x", u64, pointer=("global", 4))],
        directives=[("maxntid", (256, 1, 1))], registers=[rd, acc, f0, P[0], R[0]], body=body,
        variables=[ir.Variable("tile", "shared", f32, (16, 17), 16)],
    )
    module = ir.Module((8, 0), "sm_90", functions=[function])
    module.variables.append(ir.Variable("g", "global", s32, values=(2**32 - 5,)))
    assert to_text(module) == """\
.version 8.0
.target sm_90
.address_size 64

.file 1 "kernel.py"

.global .s32 g = -5;

.visible .entry k(
    .param .u32 n,
    .param .u64 .ptr .global .align 4 x
)
.maxntid 256, 1, 1
{
    .reg .u64 %rd<1>;
    .reg .f32 %f<1>;
    .reg .f32 %acc;
    .reg .pred %p<1>;
    .reg .u32 %r<1>;
    .shared .align 16 .f32 tile[16][17];

    .loc 1 12 0
    ld.param.u64 %rd0, [x];
    mov.f32 %acc, 0f3F800000;
$loop_1:
    .loc 1 13 0
    ld.global.f32 %f0, [%rd0+-8];
    fma.rn.f32 %acc, %f0, %f0, %acc;
    .loc 1 12 0
    setp.lt.u32 %p0, %r0, 7;
    @!%p0 bra $loop_1;
    .loc 1 0 0
    ret;
}
"""
    assert parse(to_text(module)) == module


@pytest.mark.parametrize(("operands", "wanted"), [
    ((R[0], ir.Immediate(2**32 - 1, u32), R[1]), "add.u32 %r0, 4294967295, %r1"),
    ((R[0], ir.Immediate(0, u32), ir.Immediate(7, u32)), "add.u32 %r0, 0, 7"),
])
def test_numbers_print_in_their_type(operands: tuple[ir.Operand, ...], wanted: str) -> None:
    assert body_of(to_text(kernel(instruction("add.u32", *operands))))[0] == f"{wanted};"


@pytest.mark.parametrize(("kind", "bits", "wanted"), [
    (s32, 2**32 - 5, "-5"), (s32, 5, "5"), (u32, 2**32 - 5, "4294967291"), (f32, 0x80000000, "0f80000000"),
    (f64, 1, "0d0000000000000001"), (b16, 65535, "65535"), (u8, 255, "255"),
])
def test_a_number_of_each_kind(kind: ScalarType, bits: int, wanted: str) -> None:
    variable = ir.Variable("v", "global", kind, values=(bits,))
    module = ir.Module((8, 0), "sm_90", variables=[variable])
    assert f".global .{kind} v = {wanted};" in to_text(module)
    assert parse(to_text(module)) == module


def test_operands_of_every_sort() -> None:
    module = kernel(
        instruction("setp.lt.u32", P[0], P[1], R[0], R[1]),
        instruction("mov.u32", R[0], ir.SpecialRegister("%tid.x")),
        instruction("mov.u32", R[0], ir.Symbol("tile", 16)),
        instruction("selp.b32", R[0], R[1], R[2], P[0], guard=P[1]),
        instruction("ld.shared.v2.u32", ir.Vector((R[0], R[1])), ir.Address(ir.Symbol("tile"), 8)),
        ir.Comment("a remark"),
        ir.Pragma("nounroll"),
        instruction("ret"),
        variables=[ir.Variable("tile", "shared", u32, (64,))],
    )
    assert body_of(to_text(module)) == [
        "setp.lt.u32 %p0|%p1, %r0, %r1;", "mov.u32 %r0, %tid.x;", "mov.u32 %r0, tile+16;",
        "@%p1 selp.b32 %r0, %r1, %r2, %p0;", "ld.shared.v2.u32 {%r0, %r1}, [tile+8];", "// a remark",
        '.pragma "nounroll";', "ret;",
    ]
    assert parse(to_text(module)) == module


def test_locations_survive_with_and_without_a_line_before_and_after() -> None:
    one, two = Loc("a.py", 3), Loc("b.py", 9)
    locs = [None, one, one, two, None, None, one]
    module = kernel(*(instruction("mov.u32", R[0], ir.Immediate(n, u32), loc=loc) for n, loc in enumerate(locs)))
    text = to_text(module)
    assert [s.loc for s in parse(text).functions[0].instructions()] == locs
    assert text.count(".loc") == 4


def test_each_function_begins_without_a_line() -> None:
    def function(name: str, loc: Loc | None) -> ir.Function:
        return ir.Function(name, body=[instruction("ret", loc=loc)])

    three = Loc("a.py", 3)
    module = ir.Module((8, 0), "sm_90", functions=[function("a", three), function("b", None), function("c", three)])
    assert parse(to_text(module)) == module


def test_comments_carry_the_source_line(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("x = 1\n    y = 'ä' + \"b\"  # why\n", "utf-8")
    module = kernel(instruction("ret", loc=Loc(str(file), 2)))
    text = to_text(module, comments=True)
    assert "    .loc 1 2 0  // y = '\\xe4' + \\x22b\\x22  # why\n" in text
    assert text.isascii()
    assert parse(text) == module


@pytest.mark.parametrize("name", ["C:\\dir\\k.py", "/tmp/é/内核.py", 'a"b.py', "<stdin>", "a\\x41.py", "\U0001f600.py"])
def test_file_names_of_any_kind(name: str) -> None:
    module = kernel(instruction("ret", loc=Loc(name, 2)))
    assert to_text(module).isascii()
    assert parse(to_text(module)) == module


@given(st.text())
def test_escaping_is_undone(text: str) -> None:
    assert unescape(escape(text)) == text
    assert escape(text).isascii() and '"' not in escape(text) and "\n" not in escape(text)


def test_registers_are_declared_by_family_only_where_it_is_complete() -> None:
    names = ["%r0", "%acc", "%r1", "%s1", "%r2", "%x", "%s3", "i", "%x0", "%x1"]
    function = ir.Function("k", registers=[ir.Register(name, b32) for name in names], body=[])
    text = to_text(ir.Module((8, 0), "sm_90", functions=[function]))
    assert [line.strip() for line in text.splitlines() if ".reg" in line] == [
        ".reg .b32 %r<3>;", ".reg .b32 %x<2>;", ".reg .b32 %acc, %x, i, %s1, %s3;",
    ]
    assert sorted(r.name for r in parse(text).functions[0].registers) == sorted(names)


def test_printing_is_deterministic() -> None:
    texts = {to_text(parse(path.read_text("utf-8"))) for path in CORPUS for _ in range(3)}
    assert len(texts) == len(CORPUS)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_survives(path: Path) -> None:
    module = parse(path.read_text("utf-8"))
    text = to_text(module)
    assert parse(text) == module
    assert to_text(parse(text)) == text


# ---------------------------------------------------------------------------------------------------------------------
# Modules made at random from the rows of the table

ROWS = [row for opcode in isa.opcodes() for row in isa.rows(opcode) if opcode != "call"]
LETTERS = string.ascii_letters + string.digits + "_$"
names = st.text(LETTERS, min_size=1, max_size=6)


def forms_of(draw: st.DrawFn, row: Row) -> tuple[Form, ...]:
    tokens: list[str] = []
    for slot in row.slots:
        if not slot.optional or draw(st.booleans()):
            tokens += draw(st.sampled_from(list(slot.values))).split(".")
    spelled = row.forms(tuple(tokens))
    return tuple(form for form in isa.lookup(spelled[0].mnemonic) if form.row is row) if spelled else ()


class Names:
    """The registers, variables and labels that a random function declares as it needs them."""

    def __init__(self) -> None:
        self.registers: dict[str, ir.Register] = {}
        self.variables: dict[str, ir.Variable] = {}
        self.labels: dict[str, None] = {}

    def register(self, draw: st.DrawFn, kind: ScalarType) -> ir.Register:
        kind = kind.register
        name = f"%{kind}_{draw(names)}" if draw(st.booleans()) else f"%{kind}x{draw(st.integers(0, 9))}"
        return self.registers.setdefault(name, ir.Register(name, kind))

    def symbol(self, draw: st.DrawFn, space: str) -> ir.Symbol:
        name = f"{space}{draw(st.integers(0, 2))}"
        self.variables.setdefault(name, ir.Variable(name, space, b32, (draw(st.integers(1, 64)),), 16))
        return ir.Symbol(name)


def immediate(draw: st.DrawFn, spec: OperandSpec) -> ir.Immediate:
    kind = spec.type
    assert kind is not None
    if spec.choices:
        value = draw(st.sampled_from(spec.choices))
    elif spec.bounds is not None:
        low, high = spec.bounds
        value = draw(st.integers(-(-low // spec.step), high // spec.step)) * spec.step
    else:
        value = draw(st.integers(0, (1 << kind.bits) - 1) | st.sampled_from([0, 1, (1 << kind.bits) - 1]))
    return ir.Immediate(value & ((1 << kind.bits) - 1), kind)


def operand(draw: st.DrawFn, spec: OperandSpec, declared: Names, form: Form) -> ir.Operand:
    if spec.kind == "label":
        name = f"L{draw(st.integers(0, 3))}"
        declared.labels[name] = None
        return ir.LabelRef(name)
    if spec.kind == "symbol":
        return declared.symbol(draw, "global")
    if spec.kind == "address":
        space = (spec.space or form.space).split("::")[0]
        space = space if space in ("shared", "local") else "global"
        base = draw(st.sampled_from(["register", "symbol"]))
        parts = tuple(operand(draw, part, declared, form) for part in spec.parts)
        return ir.Address(
            declared.register(draw, TYPES["b64"]) if base == "register" else declared.symbol(draw, space),
            0 if parts else draw(st.sampled_from([0, 4, -4, 1 << 20])), parts,
        )
    assert spec.type is not None
    if spec.count:
        return ir.Vector(tuple(single(draw, element, declared) for element in elements(spec)))
    return single(draw, spec, declared)


def single(draw: st.DrawFn, spec: OperandSpec, declared: Names) -> ir.Operand:
    assert spec.type is not None
    sorts = [name for name, allowed in (
        ("register", spec.register and not spec.selected), ("part", spec.selector), ("number", spec.immediate),
        ("sink", spec.sink), ("not", spec.negatable and not spec.selector),
        ("symbol", spec.variable and not spec.count), ("special", spec.special and spec.type.bits == 32),
    ) if allowed]
    sort = draw(st.sampled_from(sorts))
    if sort == "number":
        return immediate(draw, spec)
    if sort == "symbol":
        return declared.symbol(draw, "global")
    if sort == "special":
        return ir.SpecialRegister(draw(st.sampled_from(["%tid.x", "%laneid", "%nctaid.z"])))
    if sort == "sink":
        return ir.Sink()
    register = declared.register(draw, spec.type)
    if sort == "part":
        part = draw(st.from_regex(spec.selector, fullmatch=True, alphabet="bh0123456789"))
        return ir.Selected(register, part, spec.negatable and draw(st.booleans()))
    return ir.Not(register) if sort == "not" else register


@st.composite
def modules(draw: st.DrawFn) -> ir.Module:
    declared = Names()
    locs = [None, *(Loc(file, line) for file in ("a.py", "b c.py") for line in (1, 2))]
    body: list[ir.Statement] = []
    for _ in range(draw(st.integers(0, 12))):
        forms = forms_of(draw, draw(st.sampled_from(ROWS)))
        if not forms:
            continue
        form = draw(st.sampled_from(forms))
        operands = tuple(operand(draw, spec, declared, form) for spec in form.operands)
        guard = declared.register(draw, pred) if draw(st.booleans()) else None
        negated = guard is not None and draw(st.booleans())
        where = draw(st.sampled_from(locs))
        body.append(ir.Instruction(form, operands, ir.Not(guard) if guard and negated else guard, where))
    body += [ir.Label(name) for name in declared.labels]
    variables = list(declared.variables.values())
    function = ir.Function(
        "k", registers=draw(st.permutations(list(declared.registers.values()))), body=body,
        variables=[variable for variable in variables if variable.space == "local"],
    )
    outer = [variable for variable in variables if variable.space != "local"]
    return ir.Module((9, 3), "sm_100a", variables=outer, functions=[function])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(modules())
def test_what_is_printed_is_read_back(module: ir.Module) -> None:
    text = to_text(module)
    assert parse(text) == module
    assert to_text(parse(text)) == text


@pytest.mark.ptxas
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_is_printed_assembles(path: Path) -> None:
    from ptxdsl import assemble

    assert assemble(to_text(parse(path.read_text("utf-8"))), "sm_90")
