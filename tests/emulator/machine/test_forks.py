"""The child of a fork launches kernels, whatever other threads were doing when it was forked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

KERNELS = """
import functools, os, random, signal, sys, threading, time, traceback
import numpy as np
import ptxdsl
from ptxdsl import Ptr, loop, ptx, ptx_kernel, reg, u32, when

def made(number):
    @ptx_kernel(name=f"k{number}")
    def k(n: u32, x: Ptr[u32], total: Ptr[u32]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        value = reg(u32, number)
        with loop(40):
            value.set(value * 1664525 + i)
        with when(i < n):
            x[i] = value
            ptx.red.global_.add.u32(total, 1)
    return k

def launch(number, n, **options):
    x, total = np.zeros(n, np.uint32), np.zeros(1, np.uint32)
    made(number).configure(-(-n // 128), 128, backend="emulator", **options)(n, x, total)
    value, i = np.full(n, number, np.uint64), np.arange(n, dtype=np.uint64)
    for _ in range(40):
        value = (value * 1664525 + i) & 0xFFFFFFFF
    assert total[0] == n and (x == value).all()

def forked(work):
    child = os.fork()
    if not child:
        signal.alarm(100)
        try:
            work()
            os._exit(7)
        except BaseException:
            traceback.print_exc()
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

HELD = KERNELS + """
from types import SimpleNamespace
from ptxdsl import locks
from ptxdsl.emulator.codegen.library import library
from ptxdsl.machine_code.shutdown import at_work
from ptxdsl.emulator.jit import tier_up
from ptxdsl.emulator.runtime import alone

launch(1, 1000)
launch(2, 300, sanitize="all")
for thread in threading.enumerate():
    if thread.name == tier_up.THREAD:  # it would take what waits below
        thread.join()
waiting = SimpleNamespace(tiered_up=True, seconds=0.0)
ready, go = threading.Event(), threading.Event()

def hold():
    alone.enter(SimpleNamespace(locks=False))
    tier_up._compiling = tier_up._optimises = True
    tier_up._waiting.append(waiting)
    properties = locks._of_cached_properties() if sys.version_info < (3, 12) else ()
    for lock in (*locks._made, *properties):
        if lock is not at_work.step:
            lock.acquire()
    library()._compiling |= set(map(str, range(9)))
    ready.set()
    go.wait()

threading.Thread(target=hold, daemon=True).start()
ready.wait()

def work():
    assert not tier_up._compiling and not tier_up._waiting and not waiting.tiered_up and not library()._compiling
    launch(1, 1000)
    assert not tier_up._optimises or tier_up._compiling
    launch(3, 200_000)
    launch(4, 300, sanitize="all")

sys.stdout.write(str(forked(work)))
sys.stdout.flush()
os._exit(0)  # the other thread holds what the end of the process asks for
"""

RANDOM = KERNELS + """
random.seed(sys.argv[1])
stop = False

def launches(number):
    while not stop:
        launch(number, random.randrange(1, 60_000))
        number += 2

launch(0, 10)
threads = [threading.Thread(target=launches, args=(number,)) for number in (1_000_001, 1_000_002)]
for thread in threads:
    thread.start()
statuses = []
for number in range(8):
    time.sleep(random.random() / 50)
    statuses.append(forked(lambda: (launch(5000 + number, 9000), launch(0, 100_000), launch(0, 100_000))))
    launch(100 + number, 100_000)
stop = True
for thread in threads:
    thread.join()
sys.stdout.write(str(set(statuses)))
"""


def output(program: str, *arguments: str) -> str:
    environment = {**os.environ, "PTXDSL_CACHE_DIR": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *arguments]  # of forks beside threads
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stderr == "" and done.returncode == 0, done.stderr
    return done.stdout


def test_locks_that_another_thread_held_are_free_in_the_child() -> None:
    assert output(HELD) == "7"


def test_the_child_launches_while_other_threads_of_the_parent_did() -> None:
    assert output(RANDOM, os.environ["TEST_SEED"]) == "{7}"


STEP = KERNELS + """
from ptxdsl.machine_code.shutdown import at_work

order, begun = [], threading.Event()

def step():
    with at_work.step:
        begun.set()
        time.sleep(0.2)
        order.append("step")

threading.Thread(target=step).start()
begun.wait()
status = forked(lambda: order == ["step"] and launch(1, 10))
assert at_work.step.acquire(timeout=10)
sys.stdout.write(f"{status} {order}")
"""


def test_a_fork_waits_for_the_end_of_a_step() -> None:
    assert output(STEP) == "7 ['step']"
