"""Kernels of one instruction each do what the semantics do, whatever their operands are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from form_cases import listen
from semantics_harness import LISTENERS, Case, run

from ptxdsl.gpu_check import command
from ptxdsl.gpu_check.bare.tape import Tape
from ptxdsl.gpu_check.emulation import repeat
from ptxdsl.gpu_check.recording import Recorder

ROOT = Path(__file__).parents[2]
WIDTHS = {
    "add.u32": (32, 32), "popc.b64": (64,), "min.s16": (16, 16), "cvt.u32.u8": (8,), "cvt.s8.s32": (32,),
    "setp.lt.and.s32": (32, 32, 1), "selp.b64": (64, 64, 1), "not.pred": (1,), "cvt.f32.f64": (64,),
    "mad.wide.u16": (16, 16, 32), "fma.rn.f64": (64, 64, 64), "addc.cc.u32": (32, 32, 1), "subc.u64": (64, 64, 1),
    "sub.cc.u32": (32, 32), "madc.hi.cc.u32": (32, 32, 32, 1), "cvt.rn.f16x2.f32": (32, 32), "bfi.b32": (32,) * 4,
}
"""Bits of the sources."""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """A recorder that is told of each case."""
    made = Recorder(Tape(tmp_path))
    before = len(LISTENERS)
    listen(made)
    yield made
    del LISTENERS[before:]


def bits(rng: np.random.Generator, width: int, count: int = 96) -> np.ndarray:
    return rng.integers(0, 1 << min(width, 63), count, np.uint64)


def check(recorder: Recorder, *cases: Case) -> list[str]:
    """Run cases; their kernels, each of which gives the same."""
    run(list(cases))
    assert [case.form for case in recorder.tape.cases] == [case.mnemonic for case in cases]
    for case in recorder.tape.cases:
        assert repeat(recorder.tape, case, {}).problem == "", recorder.tape.text(case)
    return [recorder.tape.text(case) for case in recorder.tape.cases]


def test_plain_registers_predicates_and_carries(recorder: Recorder, rng: np.random.Generator) -> None:
    cases = []
    for mnemonic, widths in WIDTHS.items():
        if mnemonic == "cvt.f32.f64":
            mnemonic = "cvt.rn.f32.f64"
        cases.append(Case(mnemonic, tuple(bits(rng, width) for width in widths)))
    texts = check(recorder, *cases)
    assert "add.cc.u32 %cb, %cb, 0xffffffff;" in texts[[*WIDTHS].index("addc.cc.u32")]


def test_braces_numbers_and_parts_of_registers(recorder: Recorder, rng: np.random.Generator) -> None:
    words = [bits(rng, 32) for _ in range(3)]
    texts = check(
        recorder, Case("mov.b32", (tuple(bits(rng, 8) for _ in range(4)),)),
        Case("mov.b64", (bits(rng, 64),), results=2), Case("lop3.b32", (*words, 0x96)),
        Case("vadd.s32.u32.s32", tuple(words), selectors=("b1", "h1", "b3", "")),
        Case("vmad.s32.s32.s32", tuple(words), selectors=("", "-h0", "h1", "")),
    )
    wanted = (
        "mov.b32 %r0, {%r1_0, %r1_1, %r1_2, %r1_3};", "mov.b64 {%r0_0, %r0_1}, %r1;",
        "lop3.b32 %r0, %r1, %r2, %r3, 150;", "vadd.s32.u32.s32 %r0.b1, %r1.h1, %r2.b3, %r3;",
        "vmad.s32.s32.s32 %r0, -%r1.h0, %r2.h1, %r3;",
    )
    for text, line in zip(texts, wanted):
        assert line in text.splitlines()


def test_no_more_than_needed_is_kept(recorder: Recorder, rng: np.random.Generator) -> None:
    check(recorder, Case("add.u32", (bits(rng, 32, 1 << 14), bits(rng, 32, 1 << 14))))
    (case,) = recorder.tape.cases
    assert {area.size for area in case.areas} == {1024}
    assert case.grid[0] * case.block[0] == 256


def test_the_tests_of_the_semantics_are_recorded(tmp_path: Path) -> None:
    folders = command.record([ROOT / "tests/emulator/semantics/test_mixed.py"], tmp_path)
    cases = [case for folder in folders for case in Tape.load(folder).cases]
    assert len({case.form for case in cases}) > 20
    assert all(case.test.startswith("tests/emulator/semantics/test_mixed.py::") for case in cases)
