"""Handlers that are compiled quickly for a first launch, and optimised beside the later ones."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD as INDEX
from emulator_harness import argument, kernel, pointer

from ptxdsl.emulator.codegen import library as libraries
from ptxdsl.emulator.codegen import translation
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.codegen.library import FEW, Library, _emit
from ptxdsl.emulator.codegen.storage import Storage
from ptxdsl.emulator.instructions.scheduler import EVERYWHERE
from ptxdsl.emulator.jit import tier_up
from ptxdsl.emulator.jit.tier_up import THREAD
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.machine_code import compiler
from ptxdsl.machine_code.compiler import Effort
from ptxdsl.machine_code.host import Host
from ptxdsl.text import parse

HOST = Host("", lambda: "some LLVM on some CPU")
OPERATIONS = ("add", "sub", "xor", "or", "and", "min", "max", "mul.lo", "shl", "shr")
BODY = "".join(
    f"{name}.{'b32' if name in ('xor', 'or', 'and', 'shl') else 'u32'} %r1, %r1, {number + 1};\n"
    for number, name in enumerate(OPERATIONS)
)
TEXT = kernel("u64 x", INDEX + pointer("%rd0", "x") + "mov.u32 %r1, %r0;\n" + BODY + "st.global.u32 [%rd0], %r1;\nret;")
PATIENCE = 60.0


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def efforts(monkeypatch: pytest.MonkeyPatch) -> list[Effort]:
    """What LLVM was asked for since, one for each module."""
    asked: list[Effort] = []
    original = compiler.object_file

    def noted(text: str, effort: Effort = Effort.MOST) -> bytes:
        asked.append(effort)
        return original(text, effort)

    monkeypatch.setattr(compiler, "object_file", noted)
    monkeypatch.setattr(libraries, "object_file", noted)
    return asked


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The library of a process that finds nothing on disk, in which nothing runs long."""
    wait()
    made = Library(_emit, Storage(tmp_path / "handlers", HOST))
    for module in (libraries, translation, tier_up):
        monkeypatch.setattr(module, "library", lambda: made)
    monkeypatch.setattr(tier_up, "SECONDS", float("inf"))
    return made


def launched(program: Program) -> np.ndarray[Any, Any]:
    x = np.zeros(64, np.uint32)
    program.run("k", LaunchConfig((1, 1, 1), (64, 1, 1)), [argument("x", x)])
    return x


def handlers(code: Code) -> list[int]:
    """The addresses of its micro-ops' handlers."""
    return [ctypes.c_uint64.from_address(code.base + offset).value for offset in code.offsets]


def test_the_first_launch_waits_for_quick_code_only(fresh: Library, efforts: list[Effort]) -> None:
    program = Program(parse(TEXT))
    code = program.code("k", (64, 1, 1))
    assert Effort.LEAST in efforts
    assert fresh.unoptimised.keys
    quick, first = handlers(code), launched(program)
    wait()
    assert efforts[-1] is Effort.HANDLERS
    assert not fresh.unoptimised.keys
    better = handlers(code)
    assert all(one != other for one, other, op in zip(quick, better, code.micro_ops) if op.op not in EVERYWHERE)
    assert better == [fresh.need([placed.op])[placed.op] for placed in code.micro_ops]
    assert launched(program).tobytes() == first.tobytes()


@pytest.mark.usefixtures("fresh")
def test_the_next_process_has_the_optimised_ones(tmp_path: Path, efforts: list[Effort]) -> None:
    program = Program(parse(TEXT))
    first = launched(program)
    wait()
    efforts.clear()
    keys = [placed.op for placed in program.code("k", (64, 1, 1)).micro_ops]
    assert Library(_emit, Storage(tmp_path / "handlers", HOST)).need(keys, quickly=True)
    assert efforts == []
    assert first.any()


def test_what_took_a_handlers_place_stays(fresh: Library) -> None:
    program = Program(parse(TEXT))
    code = program.code("k", (64, 1, 1))
    place = ctypes.c_uint64.from_address(code.base + code.offsets[3])
    place.value += 1
    other = place.value
    fresh.optimise()
    assert place.value == other
    assert handlers(code)[4] == fresh.need([code.micro_ops[4].op])[code.micro_ops[4].op]


def test_few_handlers_are_optimised_at_once(fresh: Library, efforts: list[Effort]) -> None:
    fresh.need([placed.op for placed in Program(parse(TEXT)).code("k", (64, 1, 1)).micro_ops[:FEW]], quickly=True)
    efforts.clear()
    other = Library(_emit, None)
    other.need([placed.op for placed in Program(parse(TEXT)).code("k", (64, 1, 1)).micro_ops[:2]], quickly=True)
    assert efforts == [Effort.HANDLERS]


def test_what_is_to_follow_waits_for_the_handlers(fresh: Library) -> None:
    called: list[str] = []
    fresh.when_optimised(lambda: called.append("at once"))
    assert called == ["at once"]
    Program(parse(TEXT)).code("k", (64, 1, 1))
    fresh.when_optimised(lambda: called.append("later"))
    assert called == ["at once"]
    fresh.optimise()
    assert called == ["at once", "later"]


def test_code_that_is_placed_while_they_are_optimised(fresh: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handlers were the quick ones when it was asked which they are."""
    placed, note_user = [], Library.note_user

    def late(self: Library, code: Code, places: dict[int, Any]) -> None:
        placed.extend(handlers(code))
        fresh.optimise()
        note_user(self, code, places)

    monkeypatch.setattr(Library, "note_user", late)
    code = Program(parse(TEXT)).code("k", (64, 1, 1))
    assert handlers(code) == [fresh.need([each.op])[each.op] for each in code.micro_ops] != placed
