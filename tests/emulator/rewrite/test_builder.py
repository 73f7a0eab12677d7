"""PtxBuilder: the form that operands choose, numbers, names that nothing else has, locations; and the passes."""

from __future__ import annotations

import pytest
from emulator_harness import kernel

from ptxdsl.emulator.rewrite.builder import Expander, PtxBuilder, instruction
from ptxdsl.emulator.rewrite.pipeline import rewrite
from ptxdsl.ir import Address, Function, Immediate, Instruction, Label, LabelRef, Not, Register, Symbol, Vector
from ptxdsl.text import parse
from ptxdsl.text.printer import instruction_text
from ptxdsl.types import TYPES

R, P, H = Register("%r1", TYPES["b32"]), Register("%p1", TYPES["pred"]), Register("%h1", TYPES["b16"])


@pytest.mark.parametrize(("mnemonic", "operands", "text"), [
    ("add.u32", (R, R, -1), "add.u32 %r1, %r1, 4294967295"),
    ("mov.pred", (P, 1), "mov.pred %p1, 1"),
    ("mov.pred", (P, P), "mov.pred %p1, %p1"),
    ("mov.b32", (R, Vector((H, H))), "mov.b32 %r1, {%h1, %h1}"),
    ("mov.b32", (Vector((H, H)), R), "mov.b32 {%h1, %h1}, %r1"),
    ("st.shared.b32", (Address(Symbol("tile"), 4), Immediate(7, TYPES["u32"])), "st.shared.b32 [tile+4], 7"),
    ("bra", (LabelRef("L"),), "bra L"),
])
def test_operands_choose_the_form(mnemonic: str, operands: tuple[object, ...], text: str) -> None:
    assert instruction_text(instruction(mnemonic, *operands)) == text  # type: ignore[arg-type]


def test_operands_of_no_form() -> None:
    with pytest.raises(AssertionError, match=r"`add.u32` takes no operands of the shape \(0, 0\)"):
        instruction("add.u32", R, R)


def test_names_are_fresh_and_declared() -> None:
    function = Function("k", registers=[R], body=[Label("$again1"), Label("$again2")])
    builder = PtxBuilder(function)
    assert builder.label("again") == LabelRef("$again3")
    assert builder.register("%r1", "b32") is R
    first, second = builder.fresh("%t", "u32"), builder.fresh("%t", "u32")
    assert first != second
    assert builder.result().registers == [R, first, second]
    assert function.registers == [R]


class _Halved(Expander):
    """add of two registers as two instructions."""

    @classmethod
    def expansion(cls, form: object) -> object:  # type: ignore[override]
        return cls.twice if getattr(form, "opcode", "") == "add" else None

    def twice(self) -> None:
        result, a, b = self.operands
        half = self.put("shr.u32", self.register("%half", "u32"), b, 1)
        self.guarded("add.u32", result, a, half)


def test_an_expansion_has_the_location_and_the_guard_of_the_instruction() -> None:
    function = parse(kernel("", "@!%p3 add.u32 %r1, %r2, %r3;\nmov.u32 %r4, %r1;\nret;")).function("k")
    function = _Halved.run(function)
    assert [instruction_text(s) for s in function.instructions()] == [
        "@!%p3 shr.u32 %half, %r3, 1", "@!%p3 add.u32 %r1, %r2, %half", "mov.u32 %r4, %r1", "ret",
    ]
    lines = [statement.line for statement in function.instructions()]
    assert lines[0] == lines[1] == lines[2] - 1
    guards = [s.guard for s in function.body or () if isinstance(s, Instruction)]
    assert guards[0] == Not(Register("%p3", TYPES["pred"]))


def test_a_kernel_with_nothing_to_rewrite_stays_as_it_is() -> None:
    module = parse(kernel("u64 x", "ld.param.u64 %rd0, [x]; st.global.u32 [%rd0], 1; ret;"))
    passes: list[Function] = []
    assert rewrite(module, module.function("k"), None, passes.append) is module.function("k")
    assert passes == []
