"""Who wrote a value: against what must have written it, for registers, arrays, shared and local memory, and copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from debugged import debugged
from ptxdsl import (
    Array, MemoryFault, Ptr, break_if, f32, local, loop, mbarrier, ptx, ptx_kernel, reg, shared, u32, u64, when,
)
from ptxdsl.emulator.debugger.breakpoints import Breakpoint
from ptxdsl.emulator.debugger.debugged_launch import DebuggedLaunch, Thread
from ptxdsl.emulator.debugger.view import DebugError
from ptxdsl.emulator.debugger.writers import Write, who

pytestmark = pytest.mark.usefixtures("emulated")


def line_of(text: str) -> int:
    """The line of this file that ends in a comment."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def asked(
    launch: Callable[..., object], *args: Any, at: str, thread: Thread, names: list[str], **named: Any
) -> list[Write]:
    """Who has written what, where a thread comes to a line for the last time."""
    found: list[Write] = []

    def steer(run: DebuggedLaunch) -> None:
        run.only = thread
        run.breakpoints = [Breakpoint(__file__, line_of(at))]
        assert run.resume() is not None
        before = run.tick, run.thread, run.place
        for name in names:
            found.append(who(run, name))
            assert (run.tick, run.thread, run.place) == before
        run.breakpoints = []
        assert run.resume() is None

    debugged(launch, *args, steer=steer, **named)
    return found


@ptx_kernel
def scattered(x: Ptr[u32], out: Ptr[u32]):
    tile = shared(u32, 64)
    mine = local(u32, 4)
    t = ptx.tid.x
    tile[t] = t  # first
    acc = reg(u32, 0)  # starts
    with when(t % 2 == 1):
        acc += 5  # odd threads
    with loop(0, 4) as i:
        mine[i] = t + i  # local
    ptx.bar.sync(0)
    with when(t < 8):
        tile[t ^ 1] = 7  # again
        tile[63] = t  # by eight
    ptx.atom.global_.add.u32(x + 1, 1)  # atomic
    ptx.bar.sync(0)
    out[t] = acc + tile[63 - t] + mine[2]  # the end


def test_registers_shared_and_local_memory() -> None:
    x, out = np.zeros(4, np.uint32), np.zeros(64, np.uint32)
    names = ["acc", "acc[4]", "t", "tile[3]", "tile[40]", "tile[63]", "mine[1]", "x[1]", "x[0]", "out[40]"]
    writes = dict(zip(names, asked(scattered[1, 64], x, out, at="the end", thread=Thread(0, 1, 3), names=names)))
    lines = {name: write.loc.line if write.loc else None for name, write in writes.items()}
    assert lines == {
        "acc": line_of("odd threads"), "acc[4]": line_of("starts"), "t": line_of("first") - 1,
        "tile[3]": line_of("again"), "tile[40]": line_of("first"), "tile[63]": line_of("by eight"),
        "mine[1]": line_of("local"), "x[1]": line_of("atomic"), "x[0]": None, "out[40]": None,
    }
    threads = {name: write.thread[0] for name, write in writes.items() if write.statement is not None}
    assert threads["acc"] == threads["mine[1]"] == 35
    assert (threads["acc[4]"], threads["tile[3]"], threads["tile[40]"]) == (36, 2, 40)
    assert threads["tile[63]"] == 7 == writes["tile[63]"].others
    assert threads["x[1]"] in (31, 63)
    assert {name: write.value for name, write in writes.items()} == {
        "acc": "5", "acc[4]": "0", "t": "35", "tile[3]": "7", "tile[40]": "40", "tile[63]": "7", "mine[1]": "36",
        "x[1]": "64", "x[0]": "0", "out[40]": "0",
    }
    assert str(writes["x[0]"]) == "x[0] = 0; nothing has written it since the launch began"
    assert str(writes["tile[63]"]).splitlines()[0] == (
        "tile[63] = 7 was written by thread (7, 0, 0) of block (0, 0, 0), and by 7 before it in the warp"
    )


@ptx_kernel
def over_blocks(a: Array[u32, 2]):
    tile = shared(u32, 32)
    b, t = ptx.ctaid.x, ptx.tid.x
    with when(b == 1):
        tile[t] = t  # only in block 1
        a[b, t] = 5  # the same value
    a[b, t] = 5  # after it
    a[2, t] = b  # each block


def test_other_blocks_and_stores_of_the_same_value() -> None:
    a = np.full((3, 32), 5, np.uint32)
    names = ["a[1, 4]", "a[0, 4]", "a[2, 9]", "tile[4]"]
    writes = asked(over_blocks[3, 32], a, at="each block", thread=Thread(2, 0, 0), names=names)
    assert [(w.block[0], w.thread[0], w.loc and w.loc.line) for w in writes] == [
        (1, 4, line_of("after it")), (0, 4, line_of("after it")), (2, 9, line_of("after it")), (0, 0, None),
    ]


def test_what_a_copy_has_written() -> None:
    @ptx_kernel
    def copied(x: Ptr[f32], out: Ptr[f32]):
        tile, bar, t = shared(f32, 64), mbarrier.declare(), ptx.tid.x
        mbarrier.start((bar, 1))
        with when(t == 0):
            mbarrier.arrive(bar, expect_tx=256)
            ptx.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes(tile, x, 256, bar)
        mbarrier.wait(bar, 0)
        out[t] = tile[t]  # has come

    x, out = np.arange(1, 65, dtype=np.float32), np.zeros(64, np.float32)
    write, = asked(copied[1, 64], x, out, at="has come", thread=Thread(0, 1, 0), names=["tile[5]"])
    assert (write.value, write.block) == ("6", (0, 0, 0))
    assert write.statement is not None
    np.testing.assert_array_equal(out, x)


@ptx_kernel
def in_turn(flags: Ptr[u32], out: Ptr[u32]):
    tile, t, b = shared(u32, 32), ptx.tid.x, ptx.ctaid.x
    tile[t] = 100 * b + t  # its own
    with when(b < 3):
        with loop():
            break_if(ptx.ld.acquire.gpu.u32(flags + (b + 1)) != 0)
    ptx.bar.warp.sync(0xFFFFFFFF)
    ptx.st.release.gpu.u32(flags + b, 1)
    out[b * 32 + t] = tile[31 - t]  # at last


def test_blocks_that_run_at_the_same_time() -> None:
    flags, out = np.zeros(4, np.uint32), np.zeros(128, np.uint32)
    for block in range(4):
        flags[:] = 0
        thread, names = Thread(block, 0, 7), ["tile[5]", "t", "b"]
        writes = asked(in_turn[4, 32], flags, out, at="at last", thread=thread, names=names)
        assert [(w.value, w.block[0], w.thread[0]) for w in writes] == [
            (str(100 * block + 5), block, 5), ("7", block, 7), (str(block), block, 7),
        ]
        assert writes[0].loc is not None and writes[0].loc.line == line_of("its own")


def test_by_address_and_in_foreign_ptx() -> None:
    x, out = np.zeros(4, np.uint32), np.zeros(64, np.uint32)
    text = ptxdsl.load(scattered.ptx())
    at = next(n for n, line in enumerate(scattered.ptx().splitlines(), 1) if "st.global" in line)
    found: list[Write] = []

    def steer(run: DebuggedLaunch) -> None:
        run.breakpoints = [Breakpoint(None, at)]
        run.resume()
        found.append(who(run, f"*{x.ctypes.data + 4}"))
        for wrong in ("*12", "nobody", "tile[", "1 + 1"):
            with pytest.raises(DebugError):
                who(run, wrong)
        run.breakpoints = []
        run.resume()

    debugged(text["scattered"][1, 64], x, out, steer=steer)
    assert found[0].statement is not None
    assert "atom.global.add.u32" in str(found[0]).splitlines()[-1]


def test_where_a_kernel_fails() -> None:
    @ptx_kernel
    def fails(x: Ptr[u64], n: u32):
        i = reg(u32, ptx.tid.x)
        with loop(0, n):
            i += 100  # goes beyond
        x[i] = 1

    x, found = np.zeros(32, np.uint64), list[Write]()

    def steer(run: DebuggedLaunch) -> None:
        stop = run.resume()
        assert stop is not None and stop.reason == "exception"
        found.append(who(run, "i"))
        assert run.error is not None
        run.resume()

    with pytest.raises(MemoryFault):
        debugged(fails[1, 32], x, 3, steer=steer)
    assert (found[0].value, found[0].loc and found[0].loc.line) == ("300", line_of("goes beyond"))
