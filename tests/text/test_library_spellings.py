"""Instructions as public CUDA libraries write them in inline PTX: `load` takes them, and so does NVIDIA's assembler.

The forms are those of CUTLASS, CCCL, FlashInfer, DeepGEMM, DeepEP, ThunderKittens, Triton, TransformerEngine, NVSHMEM,
llama.cpp, Marlin and others, the operands our own. ``library_spellings.ptx`` has one a line, behind lines with the
target and version.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from isa_modules import module, refused

from ptxdsl.text import parse, to_text
from ptxdsl.verify import verify

SPELLINGS = (Path(__file__).parent / "library_spellings.ptx").read_text()
GROUPS = {
    (target, (int(major), int(minor))): lines.strip().splitlines()
    for target, major, minor, lines in re.findall(r"// (\w+) (\d+)\.(\d+)\n((?:[^/].*\n)+)", SPELLINGS)
}
IDS = [target for target, _ in GROUPS]


def test_they_are_many() -> None:
    lines = [line for lines in GROUPS.values() for line in lines]
    assert len(lines) == len(SPELLINGS.splitlines()) - len(GROUPS)
    assert len({line.split(" ")[0] for line in lines}) > 400


@pytest.mark.parametrize(("target", "version"), GROUPS, ids=IDS)
def test_they_are_taken(target: str, version: tuple[int, int]) -> None:
    lines = GROUPS[target, version]
    found = parse(module(lines, target, version)[0])
    verify(found, foreign=True)
    assert parse(to_text(found)) == found


@pytest.mark.ptxas
@pytest.mark.parametrize(("target", "version"), GROUPS, ids=IDS)
def test_the_assembler_takes_them(target: str, version: tuple[int, int]) -> None:
    assert not refused(GROUPS[target, version], target, version)
