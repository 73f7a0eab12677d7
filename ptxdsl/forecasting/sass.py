"""SASS, as nvdisasm prints it: instructions with the line of the PTX that each came from, and what they take.

The module is assembled once more with a ``.loc`` for every line of the PTX in place of Python's, which changes no
instruction; so each instruction of the machine leads to the statement that the emulator has counted. What one takes of
a multiprocessor depends on its opcode alone: the pipe that executes it, and when its result is there.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ..errors import AssembleError
from ..gpu.assembler import assemble_module
from ..gpu.cubin import Attributes, disassemble
from ..gpu.tools import find_tool

__all__ = ["Kernel", "Sass", "Segment", "assembled_kernel"]


class Kernel(NamedTuple):
    """What the assembler made of a kernel; ``segments`` is empty where no disassembler is installed."""

    attributes: Attributes
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Sass:
    """One instruction: its address, opcode with modifiers, operands, guard, and the PTX line that it came from."""

    address: int
    opcode: str
    operands: tuple[str, ...]
    guard: str
    line: int

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def target(self) -> str:
        """The label that it branches to, "" for none."""
        found = re.search(r"`\((\.L\w+)\)", " ".join(self.operands)) if self.name in _BRANCHES else None
        return found[1] if found else ""


@dataclass
class Segment:
    """A basic block of SASS: instructions that are executed one after the other; it may be the target of ``labels``."""

    labels: tuple[str, ...]
    instructions: list[Sass] = field(default_factory=list)


_BRANCHES = ("BRA", "BRX", "JMP", "BSYNC", "CALL", "RET", "EXIT")
_LINE = re.compile(r'//## File ".*", line (\d+)')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"^(\.L\w+):")


def located(text: str, lines: Iterable[int]) -> str:
    """A PTX text whose ``.loc`` directives name its own lines; ``lines`` are those with an instruction.

    >>> print(located(".version 8.0\\n.target sm_90\\nadd.u32 %r0, %r1, 1;", [3]))
    .version 8.0
    .target sm_90
    .loc 1 3 0
    add.u32 %r0, %r1, 1;
    .file 1 "ptx"
    """
    wanted, made = set(lines), []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\.(loc|file)\s", line):
            continue
        if number in wanted:
            made.append(f".loc 1 {number} 0")
        made.append(line)
    return "\n".join([*made, '.file 1 "ptx"'])


@lru_cache(maxsize=64)
def assembled_kernel(text: str, entry: str, target: str, lines: frozenset[int]) -> Kernel:
    """A kernel's SASS for a target; AssembleError where the assembler refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the launch has told them, at Python's lines
        made = assemble_module(text, target)
        attributes = made.attributes(entry)
        if not find_tool("nvdisasm"):
            return Kernel(attributes, ())
        cubin = assemble_module(located(text, lines), target).cubin
    return Kernel(attributes, tuple(segments(disassemble(cubin, lines=True), entry)))


def segments(listing: str, entry: str) -> list[Segment]:
    """The basic blocks of an entry in a listing."""
    start = listing.find(f"\n.text.{entry}:")
    if start < 0:
        raise AssembleError(f"nvdisasm lists no entry `{entry}`")
    found, line, fresh = [Segment(())], 0, False
    for text in listing[start + 1 :].splitlines()[1:]:
        if text.lstrip().startswith(".section") or text.startswith("//-------"):
            break
        if mark := _LINE.search(text):
            line = int(mark[1]) if "inlined at" not in text else line
        elif label := _LABEL.match(text):
            if found[-1].instructions or fresh:
                found.append(Segment((label[1],)))
            else:
                found[-1].labels += (label[1],)
            fresh = False
        elif given := _INSTRUCTION.search(text):
            if fresh:
                found.append(Segment(()))
                fresh = False
            operands = tuple(part.strip() for part in given[4].split(",")) if given[4].strip() else ()
            one = Sass(int(given[1], 16), given[3], operands, (given[2] or "").strip(), line)
            if one.name == "NOP":
                continue
            found[-1].instructions.append(one)
            fresh = one.name in _BRANCHES
    return [segment for segment in found if segment.instructions and not _endless(segment)]


def _endless(segment: Segment) -> bool:
    """The branch to itself that stands behind every kernel."""
    only = segment.instructions[0]
    return len(segment.instructions) == 1 and only.name == "BRA" and not only.guard and only.target in segment.labels
