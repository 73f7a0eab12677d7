"""Atomics are plain instructions only while no other host thread runs a kernel that could interfere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel, launch, pointer

from ptxdsl.config import override
from ptxdsl.emulator.machine.layout import Block
from ptxdsl.emulator.runtime import alone, block_state, worker_pool

TURNS = 20_000
PATIENCE = 60.0
SUM = """
    mov.u32 %r3, {turns};
AGAIN:
    red.{scope}global.add.u32 [%rd1], 1; atom.{scope}global.add.f32 %f0, [%rd1+4], 0f3F800000;
    sub.u32 %r3, %r3, 1; setp.ne.u32 %p0, %r3, 0; @%p0 bra AGAIN;
    ret;
"""


def adds(turns: int = TURNS, scope: str = "") -> str:
    return kernel("u64 sums", "ld.param.u64 %rd1, [sums];\n" + SUM.format(turns=turns, scope=scope))


class Calls:
    """The calls of compiled code that run at a time: (plain, how many others) of each when it began."""

    def __init__(self) -> None:
        self.mutex, self.running = threading.Lock(), 0
        self.seen: list[tuple[bool, int]] = []
        self.plain = 0
        self.begun = threading.Event()

    def __call__(self, function: Callable[..., None]) -> Callable[..., None]:
        def call(rec: None, warp: None, block: int) -> None:
            plain = not np.ctypeslib.as_array((block_state.ctypes.c_uint32 * 1).from_address(block + Block.LOCKS))[0]
            with self.mutex:
                assert not self.plain
                assert not (plain and self.running)
                self.seen.append((plain, self.running))
                self.running += 1
                self.plain += plain
            self.begun.set()
            function(rec, warp, block)
            with self.mutex:
                self.running -= 1
                self.plain -= plain

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    made, original = Calls(), block_state.compiled
    monkeypatch.setattr(block_state, "compiled", lambda address: made(original(address)))
    monkeypatch.setattr(alone, "_several", False)
    yield made
    assert not alone._launches


def test_one_launch_needs_no_locks(calls: Calls) -> None:
    sums = np.zeros(2, np.uint32)
    with override(emulator_threads=1):
        launch(adds(5), 3, 64, sums=sums)
    assert sums[0] == sums.view(np.float32)[1] == 5 * 3 * 64
    assert {plain for plain, _ in calls.seen} == {True}


def test_a_kernel_without_strong_writes_takes_no_part(calls: Calls) -> None:
    x = np.zeros(64, np.uint32)
    launch(kernel("u64 x", "mov.u32 %r2, %tid.x;" + pointer("%rd1", "x", "%r2") + "st.global.u32 [%rd1], %r2; ret;"),
           1, 64, x=x)
    assert {plain for plain, _ in calls.seen} == {False}
    assert (x == np.arange(64)).all()


def test_a_second_host_thread_of_a_launch_locks(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    sums = np.zeros(2, np.uint32)
    with override(emulator_threads=2):
        launch(adds(500), 200, 32, sums=sums)
    assert sums[0] == sums.view(np.float32)[1] == 500 * 200 * 32
    assert not any(plain for plain, others in calls.seen if others)
    assert False in {plain for plain, _ in calls.seen}


def test_a_second_launch_waits_and_then_both_lock(calls: Calls) -> None:
    sums = np.zeros(2, np.uint32)
    text = adds(TURNS // 20)
    with override(emulator_threads=1):
        thread = threading.Thread(target=launch, args=(text, 400, 32), kwargs={"sums": sums})
        thread.start()
        assert calls.begun.wait(PATIENCE)
        launch(text, 400, 32, sums=sums)
        thread.join()
    assert sums[0] == 2 * 400 * 32 * (TURNS // 20)
    assert calls.seen[0][0]
    assert any(others for _, others in calls.seen)
    calls.seen.clear()
    launch(text, 1, 1, sums=sums)  # the program uses several: locks stay
    assert not any(plain for plain, _ in calls.seen)


def test_what_the_system_shares_always_locks() -> None:
    from ptxdsl import emulator
    from ptxdsl.emulator.instructions.atomics import Atomic

    def atomics(text: str) -> list[tuple[bool, bool]]:
        code = emulator.load(text).code("k", (32, 1, 1))
        found: list[Any] = [placed.op for placed in code.micro_ops if isinstance(placed.op, Atomic)]
        return [(op.host_atomic, op.always) for op in found]

    assert set(atomics(adds())) == {(True, False)}
    assert set(atomics(adds(scope="relaxed.sys."))) == {(True, True)}
    assert set(atomics(adds(scope="relaxed.cta."))) == {(False, False)}
