"""The way to a first launch grows with the length of a kernel and not with its square, whatever its shape.

Counted are the calls that Python makes, which are the same on every machine.
"""

from __future__ import annotations

import gc
import threading
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulator_harness import launch

from ptxdsl.collector import paused
from ptxdsl.analysis.stores import shared_memory, written_parameters
from ptxdsl.emulator.program import Program
from ptxdsl.text import parse
from ptxdsl.verify import verify

pytestmark = pytest.mark.usefixtures("young_heap")

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n)
{
    .reg .b32 %r<4000>;
    .reg .b64 %rd<4>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
"""
TAIL = "    st.global.u32 [%rd1], %r2;\n    ret;\n}\n"


def straight(count: int) -> str:
    return "".join(f"    mad.lo.u32 %r2, %r2, {i}, %r1;\n" for i in range(count))


def registers(count: int) -> str:
    """A register for each result, all needed at the end."""
    made = "".join(f"    add.u32 %r{i + 11}, %r{i + 10}, {i};\n" for i in range(count))
    return "    mov.u32 %r10, %r2;\n" + made + "".join(f"    xor.b32 %r2, %r2, %r{i + 10};\n" for i in range(count))


def exits(count: int) -> str:
    """Many ways to one end."""
    way = "    setp.gt.u32 %p1, %r2, {};\n    @%p1 bra DONE;\n    add.u32 %r2, %r2, 1;\n"
    return "".join(way.format(i) for i in range(count)) + "DONE:\n"


def loops(count: int) -> str:
    return "".join(
        f"L{i}:\n    add.u32 %r2, %r2, 1;\n    setp.lt.u32 %p1, %r2, {i};\n    @%p1 bra L{i};\n" for i in range(count)
    )


def endless(count: int) -> str:
    """Loops without an exit."""
    return "".join(
        f"    setp.gt.u32 %p1, %r2, {i};\n    @!%p1 bra N{i};\nL{i}:\n    add.u32 %r2, %r2, 1;\n    bra L{i};\nN{i}:\n"
        for i in range(count)
    )


def through(count: int) -> str:
    """Registers that live across many blocks."""
    made = "".join(f"    mov.u32 %r{i + 10}, {i};\n" for i in range(count))
    return made + exits(count) + "".join(f"    add.u32 %r2, %r2, %r{i + 10};\n" for i in range(count))


def cases(count: int) -> str:
    """A branch to as many places."""
    names = ", ".join(f"C{i}" for i in range(count))
    body = "".join(f"C{i}:\n    add.u32 %r2, %r2, {i};\n    bra DONE;\n" for i in range(count))
    return f"T: .branchtargets {names};\n    brx.idx %r2, T;\n{body}DONE:\n"


def calls(text: str) -> int:
    """How many calls it takes from the text to the records."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        module = parse(text)
        verify(module, foreign=True)
        written_parameters(module, "k")
        shared_memory(module, "k")
        Program(module).code("k", (64, 1, 1))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("body", [straight, registers, exits, loops, endless, through, cases])
def test_work_grows_with_length(body: Callable[[int], str]) -> None:
    texts = [HEAD + body(count) + TAIL for count in (50, 100, 400)]
    calls(texts[0])  # what is made once
    first, second = calls(texts[1]), calls(texts[2])
    assert second < 4.4 * first, f"{second / first:.1f} times the calls for 4 times the statements"


def test_a_first_call_collects_no_garbage() -> None:
    """Nothing that is read or made is garbage, and looking for it takes as long as the rest."""
    x = np.zeros(64, np.uint32)
    generations = [0, 0, 0]

    def note(phase: str, info: dict[str, int]) -> None:
        generations[info["generation"]] += phase == "stop"

    texts = [HEAD + straight(count) + TAIL for count in (10, 3000)]
    counts = []
    for text in texts:
        gc.collect()
        generations[:] = [0, 0, 0]
        gc.callbacks.append(note)
        try:
            launch(text, 1, 64, x=x, n=np.uint32(1))
        finally:
            gc.callbacks.remove(note)
        counts.append(generations[0] + generations[1] + generations[2])
    assert counts[1] < counts[0] + 10


def test_the_collector_is_paused_until_the_last_thread_is_done() -> None:
    """As where one kernel is lowered while another is compiled."""
    begun, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with paused():
            begun.set()
            assert go_on.wait(60)

    assert gc.isenabled()
    thread = threading.Thread(target=other)
    with paused():
        thread.start()
        assert begun.wait(60)
    assert not gc.isenabled()
    with paused():
        go_on.set()
        thread.join(60)
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_as_it_was() -> None:
    assert gc.isenabled()
    seen = []

    def fails() -> None:
        with paused():
            seen.append(gc.isenabled())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_number_in_each_lane_is_written_as_one_word() -> None:
    """Lists of 32 numbers would be most of the text that LLVM reads before a first launch."""
    from llvmlite import binding, ir
    from ptxdsl.emulator.codegen.handler import Handler, lanes_of, zeros

    module = ir.Module()
    h = Handler(module, "h")
    kind = lanes_of(ir.IntType(32))
    h.store(h.ir.add(h.splat(h.active), zeros(kind)), h.warp, 128)
    h.store(h.iota(32), h.warp, 256)
    h.ir.ret_void()
    text = str(module)
    assert text.count("zeroinitializer") == 2 and "i32 0, i32 0" not in text
    assert text.count("i32 30, i32 31>") == 1 and h.iota(32) is h.iota(32)
    binding.parse_assembly(text, binding.create_context()).verify()
