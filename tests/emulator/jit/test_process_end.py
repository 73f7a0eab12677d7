"""A process ends with its status while a kernel is compiled in another thread, and compiles nothing from then on."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, u32, use
from ptxdsl.machine_code.shutdown import AtWork, at_work

PROGRAM = """
import ctypes, os, sys, threading, time
import numpy as np
from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, u32, use
from ptxdsl.machine_code.shutdown import at_work

@ptx_kernel
def k(x: Ptr[f32], n: u32, *, c: int):
    acc = reg(f32, 0.0)
    with loop(0, n):
        for q in range(60):
            acc += x[ptx.tid.x] * float(q % 7 + c % 5) + 1.0
    x[ptx.tid.x] = acc

def launches():
    with use("emulator"):
        for _ in range(100):
            k[8, 128](np.ones(128, np.float32), 2000, c=int.from_bytes(os.urandom(2), "little"))

way, delay = sys.argv[1], float(sys.argv[2])
threading.Thread(target=launches, daemon=True).start()
while not at_work.protected or not at_work._state[0]:
    time.sleep(0.001)
time.sleep(delay)
if way == "fork":
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    sys.exit(7)
sys.exit(7) if way == "python" else (ctypes.CDLL if way == "c" else ctypes.PyDLL)(None).exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="C's on_exit")
def test_process_ends_while_a_kernel_is_compiled() -> None:
    ways = ("python", "fork", "c", "c with the interpreter's lock")
    environment = {**os.environ, "PTXDSL_CACHE_DIR": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    started = {
        way: subprocess.Popen(
            [sys.executable, "-c", PROGRAM, way, str(random.uniform(0, 0.05))], env=environment,
            stderr=subprocess.PIPE, text=True,
        ) for way in ways
    }
    ended = {way: (process.communicate(timeout=60)[1], process.returncode) for way, process in started.items()}
    assert ended == dict.fromkeys(ways, ("", 7))


def test_what_the_handler_of_exit_reads_is_not_pythons() -> None:
    """Which frees its memory before, and sometimes gives back the pages: then the process ended with a fault."""
    assert not at_work._state._b_needsfree_ and at_work._state._b_base_ is None
    assert AtWork()._state[:] == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="C's on_exit")
def test_who_asks_for_protection_waits_until_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, compiling, go = AtWork(), threading.Event(), threading.Event()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(on_exit=lambda *_: 0))

    def compiled(build: Any, name: str) -> int:
        at_work.protect(compiled)
        compiling.set()
        assert go.wait(10)
        return 1

    def fails(build: Any, name: str) -> int:
        raise MemoryError

    with pytest.raises(MemoryError):
        at_work.protect(fails)
    threading.Thread(target=at_work.protect, args=(compiled,), daemon=True).start()
    assert compiling.wait(10)
    found: list[bool] = []
    other = threading.Thread(target=lambda: (at_work.protect(fails), found.append(at_work.protected)), daemon=True)
    other.start()
    other.join(0.05)
    assert other.is_alive()
    go.set()
    other.join(10)
    assert found == [True]


def test_a_thread_at_work_enters_again_while_another_waits_for_it() -> None:
    at_work, began, go = AtWork(), threading.Event(), threading.Event()

    def work() -> None:
        with at_work:
            began.set()
            assert go.wait(10)
            with at_work:
                pass

    threading.Thread(target=work, daemon=True).start()
    assert began.wait(10)
    closing = threading.Thread(target=at_work.close, daemon=True)
    closing.start()
    while not at_work.closing:
        time.sleep(0.001)
    go.set()
    closing.join(10)
    assert not closing.is_alive()


def test_close_waits_for_those_at_work_and_lets_no_other_in() -> None:
    at_work, done, blocked = AtWork(), threading.Event(), threading.Event()

    def work() -> None:
        with at_work:
            began.set()
            time.sleep(0.05)
            done.set()
        with at_work:
            blocked.set()

    began = threading.Event()
    threading.Thread(target=work, daemon=True).start()
    began.wait()
    at_work.close()
    assert done.is_set()
    with at_work, at_work:  # the closing thread goes on: a kernel may be launched by what `atexit` runs
        assert not blocked.wait(0.05)
    at_work.forked()
    with at_work:
        pass


def test_a_fork_waits_for_other_threads_at_work_only() -> None:
    at_work, began, done, entered = AtWork(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with at_work:
            began.set()
            time.sleep(0.05)
            done.set()

    def enter() -> None:
        with at_work:
            entered.set()

    threading.Thread(target=work, daemon=True).start()
    began.wait()
    with at_work:
        at_work.before_fork()
        assert done.is_set()
        threading.Thread(target=enter, daemon=True).start()
        assert not entered.wait(0.05)
        at_work.after_fork()
    assert entered.wait(10)


def test_threads_that_cannot_be_started_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At Python's end none can be, from 3.12 on."""
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("_thread.start_new_thread", refuse)
    monkeypatch.setattr("ptxdsl.emulator.runtime.worker_pool.cores", lambda: 4)

    @ptx_kernel
    def k(x: Ptr[f32], n: u32):
        i, acc = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, reg(f32, 0.0)
        with loop(0, n):
            acc += x[i]
        x[i] = acc

    given = np.random.default_rng().integers(0, 100, 256 * 64).astype(np.float32)
    x = given.copy()
    with use("emulator"):
        k[64, 256](x, 500)
    assert (x == given * 500).all()
