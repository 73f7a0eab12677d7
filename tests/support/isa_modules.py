"""Modules for the assembler, out of the rows of the table: how the tests ask NVIDIA whether a row is right.

An instruction is written from its form alone: a fresh register of the type for each operand, a number where only
numbers are allowed, an address in a register. Many are judged in one run, each on a line of its own.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ptxdsl.gpu.tools import find_assembler
from ptxdsl.isa.forms import Form, Row
from ptxdsl.isa.specs import OperandSpec
from ptxdsl.isa.targets import LATEST, Version

VERSIONS = [
    (major, minor) for major, last in ((6, 5), (7, 8), (8, 8), (9, LATEST[1])) for minor in range(last + 1)
    if (major, minor) >= (6, 3)
]
"""Every PTX version from the first that the package knows."""

_REGISTERS = {
    "pred": "p", "b8": "rb", "b16": "h", "u16": "h", "s16": "h", "b32": "r", "u32": "r", "s32": "r", "b64": "rd",
    "u64": "rd", "s64": "rd", "b128": "rq", "f32": "f", "f64": "fd", "u8": "rb", "s8": "rb",
}
_DECLARED = {
    "p": "pred", "rb": "b8", "h": "b16", "r": "b32", "rd": "b64", "rq": "b128", "f": "f32", "fd": "f64",
}
_TRIES = 4000


def sample(row: Row, rng: np.random.Generator, extra: int = 3) -> list[Form]:
    """Forms of a row in which each value of each slot stands, and each slot is absent, at least once where legal."""
    wanted = {(slot, value) for slot, values in enumerate(_values(row)) for value in values}
    found: list[Form] = []
    for combination in _combinations(row, rng):
        standing = set(enumerate(combination))
        if extra <= 0 and not standing & wanted:
            continue
        forms = row.forms(tuple(token for value in combination if value for token in value.split(".")))
        if forms:
            extra -= not standing & wanted
            wanted -= standing
            found += forms
        if not wanted and extra <= 0:
            break
    return found


def _values(row: Row) -> list[list[str | None]]:
    return [[*slot.values, None] if slot.optional else [*slot.values] for slot in row.slots]


def _combinations(row: Row, rng: np.random.Generator) -> Iterator[tuple[str | None, ...]]:
    """Choices for the slots in random order: all of them, or many where there are too many."""
    values = _values(row)
    if np.prod([len(each) for each in values], dtype=float) <= _TRIES:
        every = list(product(*values))
        yield from (every[index] for index in rng.permutation(len(every)))
        return
    # Each value in turn with random others, so that a rare value is tried as often as a common one.
    for turn in range(_TRIES):
        slot = turn % len(values)
        chosen = [each[rng.integers(len(each))] for each in values]
        chosen[slot] = values[slot][turn // len(values) % len(values[slot])]
        yield tuple(chosen)


class Writer:
    """Writes one instruction, each register but once."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()

    def register(self, kind: str) -> str:
        prefix = _REGISTERS[kind]
        self.used[prefix] += 1
        return f"%{prefix}{self.used[prefix]}"

    def operand(self, spec: OperandSpec, form: Form) -> str:
        """The text of one operand."""
        if spec.kind == "label":
            return "END"
        if spec.kind == "symbol":
            return "targets"
        if spec.kind == "address":
            return "[" + ", ".join((self.base(spec, form), *(self.operand(part, form) for part in spec.parts))) + "]"
        if spec.types:
            return "{" + ", ".join(self.register(str(kind.register)) for kind in spec.types) + "}"
        return "{" + ", ".join(self.item(spec) for _ in range(spec.count)) + "}" if spec.count else self.item(spec)

    def base(self, spec: OperandSpec, form: Form) -> str:
        space = spec.space or form.space
        if space == "param":
            return "argument" if form.opcode == "st" else "result" if "param::func" in form.tokens else "parameter"
        return self.register("b32" if space in ("tmem", "fabric") else "b64")

    def item(self, spec: OperandSpec) -> str:
        if spec.name == "_":
            return "_"
        if not spec.register:
            return str(spec.choices[-1] if spec.choices else spec.bounds[0] if spec.bounds else 0)
        assert spec.type is not None
        return self.register(str(spec.type.register)) + (".b1" if spec.selected else "")


def instruction(form: Form) -> str:
    """The text of an instruction of that form."""
    writer, text = Writer(), ""
    for spec in form.operands:
        text += ("|" if spec.joined else ", " if text else "") + writer.operand(spec, form)
    return f"{form.mnemonic} {text}".rstrip() + ";"


def refused(lines: Sequence[str], target: str, version: Version, arch: str = "") -> dict[int, str]:
    """Which of the instructions ptxas refuses, and why; the others it takes, all in one module.

    ``arch`` is what to assemble for where it is not the target.
    """
    groups: dict[bool, list[int]] = {False: [], True: []}
    for index, line in enumerate(lines):
        groups[bool(_SAMPLER.match(line))].append(index)
    return {
        group[at]: why for group in groups.values()
        for at, why in _refused([lines[index] for index in group], target, version, arch).items()
    }


_SAMPLER = re.compile(r"(?:tex|tld4)\.[^\[]*\[%rd\d+, %rd\d+,")
"""A texture with a sampler of its own, which only modules of texmode_independent may have."""


_EXPANDED = re.compile(r"Parsing error|Call argument|.*formal parameter|.*for instruction 'mov'")
"""What ptxas may say of a text that it puts in place of an instruction, in whose lines it counts then."""


def _refused(lines: list[str], target: str, version: Version, arch: str) -> dict[int, str]:
    found: dict[int, str] = {}
    waiting = list(range(len(lines)))
    while waiting:
        bad, rest = _run([lines[index] for index in waiting], target, version, arch or target)
        if len(waiting) == 1:
            return {**found, waiting[0]: next(iter(bad.values()), rest)} if bad or rest else found
        sure = {waiting[at]: why for at, why in bad.items() if not _EXPANDED.match(why)}
        if not sure and bad:
            at, why = next(iter(bad.items()))
            sure = {waiting[at]: why} if any(_run([lines[waiting[at]]], target, version, arch or target)) else {}
        if not sure and rest:  # an error without a line, or without the right one: look for it by halves
            half = len(waiting) // 2
            for part in (waiting[:half], waiting[half:]):
                own = _refused([lines[index] for index in part], target, version, arch)
                found.update({part[index]: reason for index, reason in own.items()})
            return found
        if not sure:
            return found
        found.update(sure)
        waiting = [index for index in waiting if index not in found]
    return found


def _run(lines: list[str], target: str, version: Version, arch: str) -> tuple[dict[int, str], str]:
    """The reasons by line, and what else ptxas said where it failed."""
    text, first = module(lines, target, version)
    command = [find_assembler(version, arch).path, f"-arch={arch}", "/dev/stdin", "-o", "/dev/null"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    log = run.stdout + run.stderr
    if run.returncode == 0:
        return {}, ""
    bad: dict[int, str] = {}
    for match in re.finditer(r"line (\d+); *(?:error|fatal)\s*: *(.*)", log):
        at = int(match[1]) - first
        if 0 <= at < len(lines):
            bad.setdefault(at, match[2].strip())
    return bad, log.strip() or "refused without a word"


def module(lines: list[str], target: str, version: Version) -> tuple[str, int]:
    """A module with the instructions, and the number of the line of the first of them."""
    used: Counter[str] = Counter()
    for line in lines:
        for prefix, number in re.findall(r"%(rd|rq|rb|fd|[prhf])(\d+)\b", line):
            used[prefix] = max(used[prefix], int(number))
    option = ", texmode_independent" if lines and _SAMPLER.match(lines[0]) else ""
    head = [
        f".version {version[0]}.{version[1]}", f".target {target}{option}", ".address_size 64",
        ".func (.param .align 16 .b8 r[64]) callee(.param .align 16 .b8 a[64]) { ret; }",
        ".visible .entry kernel(.param .align 16 .b8 parameter[64]) {",
        *(f".reg .{_DECLARED[prefix]} %{prefix}<{count + 1}>;" for prefix, count in used.items()),
        ".param .align 16 .b8 argument[64]; .param .align 16 .b8 result[64];",
    ]
    head[4:4] = [
        f".{space} .align 16 .b8 {space}_variable[64];" for space in ("global", "const", "shared")
        if any(f"{space}_variable" in line for line in lines)
    ]
    if any("local_variable" in line for line in lines):
        head.append(".local .align 16 .b8 local_variable[64];")
    if any("targets" in line for line in lines):
        head.append("targets: .branchtargets END;")
    # Arguments are written before a call and results read after it.
    if any("[result]" in line for line in lines):
        head.append("call (result), callee, (argument);")
    tail = ["call (result), callee, (argument);"] if any("[argument]" in line for line in lines) else []
    return "\n".join([*head, *lines, *tail, "END: ret; }", ""]), len(head) + 1
