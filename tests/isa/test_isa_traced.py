"""Every form of the table can be written in a kernel: traced, printed, read again, and it is the same form.

The kernels here are the smallest there are: registers of the types that the form asks for, and the instruction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isa_modules import sample

from ptxdsl import isa, language as trace
from ptxdsl import pred, ptx, reg, shared, u8, u32, u64
from ptxdsl.isa.forms import Form
from ptxdsl.isa.specs import OperandSpec
from ptxdsl.text import parse, to_text

NOT_ALONE = {
    "call": "a .func is called: tests/test_subroutine.py", "brx": "it needs a list of labels: tests/test_tables.py",
    "bra": "it needs a label: tests/test_control.py",
}
"""Opcodes that need more than operands, and where they are tested."""


def argument(spec: OperandSpec, form: Form) -> Any:
    """What a user would pass for an operand."""
    if spec.kind == "address":
        base = address(spec.space or form.space)
        return (base, *(argument(part, form) for part in spec.parts)) if spec.parts else base
    if spec.types:
        return [reg(kind) for kind in spec.types]
    return [item(spec) for _ in range(spec.count)] if spec.count else item(spec)


def address(space: str) -> Any:
    if space in ("tmem", "fabric"):
        return reg(u32)
    return shared(u8, 64) if space == "shared" else "parameter" if space == "param" else reg(u64)


def item(spec: OperandSpec) -> Any:
    if not spec.register:
        number = spec.choices[-1] if spec.choices else spec.bounds[0] if spec.bounds else 0
        return bool(number) if spec.type is pred else number
    register = reg(spec.type)
    return register.part("b1") if spec.selected else register


def is_result(spec: OperandSpec) -> bool:
    return spec.kind == "value" and spec.role == "w" and spec.name != "_"


def kernel_of(form: Form) -> Any:
    """A kernel that is one instruction of that form."""

    def kernel(parameter: u64) -> None:
        sources = [argument(spec, form) for spec in form.operands if spec.kind != "value" or spec.role != "w"]
        results = [argument(spec, form) for spec in form.operands if is_result(spec)]
        ptx[form.mnemonic](*sources, out=results[0] if len(results) == 1 else results or None)

    return kernel


@pytest.mark.parametrize("opcode", [opcode for opcode in isa.opcodes() if opcode not in NOT_ALONE])
def test_every_form_can_be_traced_printed_and_read(opcode: str, rng: np.random.Generator) -> None:
    for form in (form for row in isa.rows(opcode) if row.until is None for form in sample(row, rng, 0)[:8]):
        module = trace.trace(kernel_of(form))
        (entry,) = (function for function in module.functions if function.kind == "entry")
        traced = [found for found in entry.instructions() if found.form.mnemonic == form.mnemonic]
        assert traced, form
        assert len(traced[-1].operands) == len(form.operands), form
        assert parse(to_text(module)) == module, form
