"""The table against NVIDIA's assembler: what it has is taken, where it says so, and nowhere before.

Every row is written out with each value of each of its modifiers. ptxas is laxer than the manual (it takes modifiers
in any order, for one), so what it takes need not be in the table; what is in the table it must take.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest
from isa_modules import VERSIONS, instruction, refused, sample

from ptxdsl import isa
from ptxdsl.isa.forms import Form
from ptxdsl.isa.targets import LATEST, TARGETS, Version, introduced, lowest, unmet

pytestmark = pytest.mark.ptxas

NOT_ALONE = {
    "call": "its operands are those of the function called: the tests of the parser and of subroutines have it",
}
"""Opcodes whose rows cannot be written out from the row alone, and why."""

_NARROW = re.compile(r"cvta\..*\.u32$")
"""Instructions of modules whose addresses have 32 bits, which no assembler takes any more."""


def _forms(rng: np.random.Generator, extra: int = 1) -> list[Form]:
    return [
        form for opcode in isa.opcodes() if opcode not in NOT_ALONE for row in isa.rows(opcode)
        for form in sample(row, rng, extra) if not _NARROW.match(form.mnemonic)
    ]


def _by_lowest(forms: list[Form]) -> dict[tuple[Version, str], list[Form]]:
    found: dict[tuple[Version, str], list[Form]] = defaultdict(list)
    for form in forms:
        found[lowest(form.needs)].append(form)
    return found


def _report(wrong: list[str]) -> str:
    return f"{len(wrong)} forms:\n" + "\n".join(wrong[:40])


def test_every_row_assembles_at_its_lowest_version_and_target(rng: np.random.Generator) -> None:
    wrong, count = [], 0
    for (version, target), forms in _by_lowest(_forms(rng)).items():
        lines = list(dict.fromkeys(instruction(form) for form in forms))
        count += len(lines)
        wrong += [f"{lines[at]} PTX {version} {target}: {why}" for at, why in refused(lines, target, version).items()]
    assert not wrong, _report(wrong)
    assert count > 5000


def test_no_row_assembles_one_version_earlier(rng: np.random.Generator) -> None:
    wrong, count = [], 0
    for (version, target), forms in _by_lowest(_forms(rng, 0)).items():
        if version == introduced(target):
            continue
        lines = list(dict.fromkeys(instruction(form) for form in forms))
        lines = [lines[index] for index in rng.permutation(len(lines))[:60]]
        earlier = VERSIONS[VERSIONS.index(version) - 1]
        out = refused(lines, target, earlier)
        count += len(lines)
        wrong += [f"{line} PTX {earlier} {target}: taken" for at, line in enumerate(lines) if at not in out]
    assert not wrong, _report(wrong)
    assert count > 100


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_target_has_what_the_table_says_and_no_more(target: str, rng: np.random.Generator) -> None:
    forms = [form for form in _forms(rng, 0) if form.row.until is None]
    some = {instruction(forms[index]): forms[index] for index in rng.permutation(len(forms))[:160]}
    lines = list(some)
    out = refused(lines, target, LATEST)
    wrong = []
    for at, line in enumerate(lines):
        missing = unmet(some[line].needs, LATEST, target)
        if (at in out) != (missing is not None):
            wrong.append(f"{line} on {target}: ptxas {out.get(at, 'takes it')!r}, the table needs {missing}")
    assert not wrong, _report(wrong)


def test_special_registers_are_there_from_their_version_and_target_on() -> None:
    wrong = []
    for special in isa.special_registers().values():
        if special.name.startswith("%percta"):  # only in a kernel with .minperctamemory
            continue
        register = {"u32": "%r1", "b32": "%r1", "u64": "%rd1", "pred": "%p1"}[str(special.type)]
        lines = [
            f"mov.{special.type} {register}, {special.name}{f'.{c}' if c else ''};" for c in special.components or ("",)
        ]
        version, target = lowest(special.needs)
        wrong += [f"{lines[at]} {why}" for at, why in refused(lines, target, version).items()]
        if version > introduced(target):
            earlier = VERSIONS[VERSIONS.index(version) - 1]
            if len(refused(lines, target, earlier)) < len(lines):
                wrong.append(f"{special.name} is there in PTX {earlier}")
    assert not wrong, _report(wrong)
