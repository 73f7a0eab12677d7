"""What is compiled beside launches does not hold them up: neither by its locks, nor by Python's."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD as INDEX
from emulator_harness import kernel, launch, pointer
from llvmlite import binding

from ptxdsl.config import override
from ptxdsl.emulator import program
from ptxdsl.emulator.codegen import library as libraries
from ptxdsl.emulator.codegen.library import FEW, Library, _emit, _text
from ptxdsl.emulator.instructions.control import Exit
from ptxdsl.emulator.instructions.operand_classes import ABSENT, PREDICATE
from ptxdsl.emulator.instructions.scheduler import EVERYWHERE
from ptxdsl.emulator.jit import compilation, tier_up
from ptxdsl.emulator.jit.tier_up import THREAD, yielding
from ptxdsl.machine_code import compiler
from ptxdsl.emulator.machine import texture_pool
from ptxdsl.emulator.sanitizer import shadow_store

OPS = [*EVERYWHERE, Exit(ABSENT, False), Exit(PREDICATE, False).with_codes("i")]
PATIENCE = 60.0


def text(name: str) -> str:
    return kernel("u64 x", INDEX + pointer("%rd0", "x") + "st.global.u32 [%rd0], 9;\nret;", name=name)


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def no_thread_compiles() -> None:
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch is a reason for a second tier."""
    no_thread_compiles()
    monkeypatch.setattr(tier_up, "SECONDS", 0.0)
    monkeypatch.setattr(tier_up, "SECONDS_A_MICRO_OP", 0.0)


@pytest.mark.usefixtures("at_once")
def test_launches_go_on_while_one_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels that wait come after each other, the one that has run the longest first."""
    begun, go_on, usual = threading.Event(), threading.Event(), sys.getswitchinterval()
    order: list[float] = []

    def blocked(code: Any) -> None:
        order.append(code.seconds)
        begun.set()
        assert go_on.wait(PATIENCE)

    monkeypatch.setattr(compilation, "tier_up", blocked)
    x = np.zeros(64, np.uint32)
    try:
        launch(text("first"), 1, 64, x=x)
        assert begun.wait(PATIENCE)
        assert sys.getswitchinterval() == pytest.approx(min(usual, tier_up.SWITCH_INTERVAL), abs=1e-6)
        for name, times in (("second", 1), ("third", 40), ("fourth", 1)):
            for _ in range(times):
                x[...] = 0
                launch(text(name), 1, 64, x=x)
                assert (x == 9).all()
        assert [thread.name for thread in threading.enumerate()].count(THREAD) == 1
        assert len(order) == 1
    finally:
        go_on.set()
        no_thread_compiles()
    assert len(order) == 4
    assert order[1:] == sorted(order[1:], reverse=True)
    assert sys.getswitchinterval() == usual


def test_an_interval_that_others_set_stays() -> None:
    usual = sys.getswitchinterval()
    try:
        with yielding():
            assert sys.getswitchinterval() < usual
            sys.setswitchinterval(usual / 2)
        assert sys.getswitchinterval() == pytest.approx(usual / 2, abs=1e-6)
    finally:
        sys.setswitchinterval(usual)


def test_handlers_are_compiled_while_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread waits for another one only if it needs what that compiles, and then it compiles nothing itself."""
    begun, go_on = threading.Event(), threading.Event()
    batches: list[int] = []

    def blocking(*given: Any) -> list[bytes]:
        batches.append(len(batches))
        if len(batches) == 1:
            begun.set()
            assert go_on.wait(PATIENCE)
        return compiler.object_files(*given)

    monkeypatch.setattr(libraries, "object_files", blocking)
    fresh = Library(_emit, None)
    found: list[int] = []
    first = started(lambda: found.append(fresh.need(OPS[:2])[OPS[0]]))
    try:
        assert begun.wait(PATIENCE)
        assert fresh.need(OPS[2:4])[OPS[2]]
        second = started(lambda: found.append(fresh.need(OPS[:3])[OPS[0]]))
        while second.is_alive() and not fresh._changed._waiters:  # type: ignore[attr-defined]
            time.sleep(0.001)
        assert not found
    finally:
        go_on.set()
        first.join(PATIENCE)
    second.join(PATIENCE)
    assert len(found) == 2
    assert found[0] == found[1] != 0
    assert batches == [0, 1]


@pytest.mark.parametrize("what", [libraries.library, shadow_store.store, texture_pool.pool])
def test_a_process_has_one(monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    """Also where several threads are the first to ask: two libraries would not know each other's handlers."""
    both, made = threading.Barrier(2), []

    def slowly() -> object:
        made.append(object())
        time.sleep(0.02)
        return made[-1]

    monkeypatch.setattr(what, "_make", slowly)
    monkeypatch.setattr(what, "made", [])
    found: list[object] = []
    threads = [started(lambda: (both.wait(PATIENCE), found.append(what()))) for _ in range(2)]
    for thread in threads:
        thread.join(PATIENCE)
    assert found == made * 2
    assert len(made) == 1


def test_a_text_has_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which each has its variables."""
    text, both = kernel("u64 x", f"// {time.perf_counter()}"), threading.Barrier(2)
    verified = program._verified
    monkeypatch.setattr(program, "_verified", lambda text: (time.sleep(0.02), verified(text))[1])
    found: list[object] = []
    threads = [started(lambda: (both.wait(PATIENCE), found.append(program.load(text)))) for _ in range(2)]
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 2
    assert found[0] is found[1]


def test_a_thread_that_fails_leaves_its_handlers_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Library(_emit, None)

    def failing(*_: Any) -> list[bytes]:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(libraries, "object_files", failing)
        with pytest.raises(MemoryError):
            fresh.need(OPS[:1])
    assert fresh.need(OPS[:1])[OPS[0]]


def test_llvm_is_free_while_a_module_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for others that use llvmlite."""
    begun, go_on = threading.Event(), threading.Event()
    original = compiler._without_lock

    def blocking(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            begun.set()
            assert go_on.wait(PATIENCE)
            return original(name)(*arguments)

        return call

    fresh = Library(_emit, None)
    found: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_without_lock", blocking)
        thread = started(lambda: found.append(fresh.need(OPS[:1])[OPS[0]]))
        try:
            assert begun.wait(PATIENCE)
            assert "nothing" in str(binding.parse_assembly("define void @nothing() {\n ret void\n}"))
        finally:
            go_on.set()
            thread.join(PATIENCE)
    assert found and found[0]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_handlers_are_compiled_by_several_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    keys = {f"h{number}": op for number, op in enumerate(OPS[-4:] * (3 * FEW // 4 + 1))}
    by: list[str] = []
    compiled, text = compiler.object_file, libraries._text
    others = threading.Event()

    def noted(*given: Any, **named: Any) -> bytes:
        by.append(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            others.set()
        return compiled(*given, **named)

    def later(build: Any) -> str:
        assert not by or others.wait(PATIENCE)
        return text(build)

    monkeypatch.setattr(compiler, "object_file", noted)
    monkeypatch.setattr(libraries, "_text", later)
    fresh = Library(_emit, None)
    with override(emulator_threads=threads):
        fresh._compile(keys)
    assert len(by) == (1 if threads == 1 else 3)
    assert others.is_set() == (threads > 1)
    assert len({fresh._symbols[name] for name in keys}) == len(keys)


@pytest.mark.parametrize("fails", ["a text", "LLVM"])
def test_helpers_end_with_an_error(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    before = set(threading.enumerate())

    def broken() -> str:
        raise MemoryError

    texts = [lambda: "define void @f() {\n ret void\n}"] * 3
    if fails == "LLVM":
        monkeypatch.setattr(compiler, "object_file", lambda *_, **__: broken())
    with pytest.raises(MemoryError):
        compiler.object_files([*texts, broken] if fails == "a text" else texts, 2)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert set(threading.enumerate()) <= before


def test_what_a_module_was_made_of_needs_no_collector() -> None:
    """Its objects refer to each other in cycles."""
    references = []
    collects: list[bool] = []
    _text(lambda _: collects.append(gc.isenabled()))
    assert collects == [False]

    def build(module: Any) -> None:
        _emit(module, "handler", OPS[0])
        blocks = [block for function in module.functions for block in function.blocks]
        references.extend(weakref.ref(instruction) for block in blocks for instruction in block.instructions)

    assert gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        made = _text(build)
    finally:
        gc.enable()
    assert "define" in made
    assert len(references) > 20
    assert not [reference for reference in references if reference() is not None]
