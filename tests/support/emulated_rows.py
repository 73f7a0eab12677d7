"""Which rows of the table the emulator runs: ``python tests/support/emulated_rows.py [CHAPTER ...]`` lists
the others.

Derived from the table alone: forms of each row are written out with fresh registers and lowered, one by one, as the
statements of a kernel that is never run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from llvmlite import binding, ir
from isa_modules import instruction, module, sample

from ptxdsl.emulator.codegen.registry import emit
from ptxdsl.emulator.instructions.function import FunctionLowering as Lowering
from ptxdsl.emulator.machine.address_spaces import AddressSpaces, ModuleMemory
from ptxdsl.emulator.rewrite.pipeline import rewrite
from ptxdsl.errors import EmulationError, PtxError
from ptxdsl.ir import Instruction
from ptxdsl.isa import Row, opcodes, rows
from ptxdsl.isa.targets import LATEST
from ptxdsl.text import parse


class Verdict(NamedTuple):
    """A form as text, its row, and why the emulator refuses it; None where it runs."""

    row: Row
    text: str
    why: str | None


def verdicts(row: Row, rng: np.random.Generator, extra: int = 0) -> Iterator[Verdict]:
    """A verdict on forms in which each value of each slot of a row stands."""
    for form in sample(row, rng, extra):
        text = instruction(form)
        yield Verdict(row, text, refusal(text))


def refusal(text: str) -> str | None:
    """Why the emulator refuses an instruction, in the words of its error; None where it runs."""
    try:
        lowered(text)
    except EmulationError as error:
        return error.message
    return None


def lowered(text: str) -> Lowering:
    """The records of an instruction."""
    parsed = parse(module([text], "sm_100a", LATEST)[0])
    function = rewrite(parsed, parsed.function("kernel"), None)
    low = Lowering(function, AddressSpaces(parsed, function, ModuleMemory(parsed)), (32, 1, 1), False)
    for place, statement in enumerate(low.graph.statements):
        if isinstance(statement, Instruction):
            low.place = place
            low.basic_block = next((n for n, node in enumerate(low.graph.blocks) if node.start <= place < node.stop), 0)
            low.statement(statement)
    return low


def emitted(texts: list[str]) -> int:
    """How many handlers the instructions need; LLVM verifies the code of each."""
    ops = {record.op for text in texts for record in lowered(text).micro_ops}
    code = ir.Module()
    for number, op in enumerate(sorted(ops, key=repr)):
        emit(code, f"handler{number}", op)
    binding.parse_assembly(str(code)).verify()
    return len(ops)


def report(chapters: list[str]) -> None:
    """Print the rows with refused forms, by chapter, with the first of them and the reason."""
    rng = np.random.default_rng(0)
    for chapter in sorted({chapter for found in opcodes().values() for chapter in found}):
        if chapters and chapter not in chapters:
            continue
        own = [row for opcode in opcodes() for row in rows(opcode) if row.chapter == chapter]
        print(f"\n{chapter}: {len(own)} rows")
        for row in own:
            try:
                found = list(verdicts(row, rng))
            except (PtxError, LookupError, AssertionError) as error:
                print(f"  ???  {row.syntax}: {type(error).__name__} {str(error)[:150]}")
                continue
            bad = [verdict for verdict in found if verdict.why is not None]
            if bad:
                print(f"  {len(bad)}/{len(found)}  {row.syntax}\n        {bad[0].text}   {bad[0].why}")


if __name__ == "__main__":
    report(sys.argv[1:])
