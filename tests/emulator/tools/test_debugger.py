"""The trace of one thread and the prompt: what they show, against what the thread must compute."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, LaunchError, MemoryFault, Ptr, break_if, debug, f16, f32, loop, otherwise, ptx, ptx_func, ptx_kernel, reg,
    s32, shared, trace_thread, u32, when,
)

pytestmark = pytest.mark.usefixtures("emulated")


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def total(n: u32, x: Ptr[f32], out: Ptr[f32]):
    acc = reg(f32, 0.0)
    with loop(0, n) as i:
        v = x[i]
        acc += v
    out[ptx.tid.x] = acc


def line_of(text: str) -> int:
    """The first line of this file that contains a text."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def session(launch: Any, *args: Any, commands: str, **where: Any) -> list[str]:
    """The answers of the prompt to commands, one a line."""
    out = io.StringIO()
    debug(launch, *args, stdin=io.StringIO(commands.replace("; ", "\n") + "\n"), stdout=out, **where)
    return out.getvalue().replace("(ptxdsl) ", "").splitlines()


# -- the trace


def test_a_thread_step_by_step(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal(1000).astype(np.float32), rng.standard_normal(1000).astype(np.float32)
    old, product = y[259], np.float32(3) * x[259]
    steps = trace_thread(saxpy[4, 256], 1000, 3.0, x, y, block=1, thread=(3, 0, 0))
    assert steps.error is None
    by_opcode = {step.text.split()[0]: step for step in steps}
    assert by_opcode["mul.f32"].registers == {"a": 3.0, "%f1": float(x[259]), "%f2": float(product)}
    assert by_opcode["add.f32"].registers == {"%f2": float(product), "%f3": float(old), "%f4": float(y[259])}
    assert by_opcode["setp.lt.u32"].registers == {"i": 259, "n": 1000, "%p0": True}
    assert by_opcode["mov.u32"].registers == {"%r4": 3}
    assert by_opcode["st.global.f32"].loc == ptxdsl.Loc(__file__, line_of("y[i] = a * x[i]"))
    assert y[259] == product + old


def test_a_thread_that_does_not_take_a_branch() -> None:
    x = np.zeros(10, np.float32)
    steps = trace_thread(saxpy[1, 32], 10, 1.0, x, x.copy(), thread=10)
    assert not any("st.global" in step.text for step in steps)
    assert sum("st.global" in step.text for step in trace_thread(saxpy[1, 32], 10, 1.0, x, x.copy(), thread=9)) == 1


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_goes_round(n: int, rng: np.random.Generator) -> None:
    x, out = rng.standard_normal(8).astype(np.float32), np.zeros(64, np.float32)
    steps = trace_thread(total[1, 64], n, x, out, thread=40)
    sums = [step.registers["acc"] for step in steps if step.text.startswith("add.f32")]
    assert sums == [float(v) for v in np.cumsum(x[:n], dtype=np.float32)]
    assert [step.registers["v"] for step in steps if step.text.startswith("ld.global")] == [float(v) for v in x[:n]]


def test_waiting_for_others_is_one_step() -> None:
    @ptx_kernel
    def barriers(out: Ptr[u32]):
        tile = shared(u32, 64)
        lane = ptx.tid.x
        value = reg(u32, 1)
        with when(lane < 16):
            value.set(lane)
        got = ptx.shfl.sync.idx.b32(value, 3, 31, 0xFFFFFFFF)
        tile[lane] = got
        ptx.bar.sync(0)
        out[lane] = tile[63 - lane]

    out = np.zeros(64, np.uint32)
    for thread in (0, 20, 63):
        steps = trace_thread(barriers[1, 64], out, thread=thread)
        assert sum(step.text.startswith("shfl") for step in steps) == 1
        assert sum(step.text.startswith("bar.sync") for step in steps) == 1
        shuffle = next(step for step in steps if step.text.startswith("shfl"))
        assert shuffle.registers["got"] == (3 if thread < 32 else 1)
    np.testing.assert_array_equal(out, [1] * 32 + [3] * 32)


def test_values_have_their_types() -> None:
    @ptx_kernel
    def kinds(out: Ptr[s32], h: Ptr[f16]):
        i = ptx.tid.x.bits(s32)
        negative = i - 5
        half = h[0]
        h[1] = half + half
        out[0] = negative

    out, h = np.zeros(1, np.int32), np.array([1.5, 0], np.float16)
    steps = trace_thread(kinds[1, 1], out, h)
    values = {name: value for step in steps for name, value in step.registers.items()}
    assert values["negative"] == -5
    assert values["half"] == 1.5
    assert 3.0 in values.values()


def test_the_trace_of_a_failing_kernel_ends_where_it_fails() -> None:
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    steps = trace_thread(saxpy[1, 128], 128, 1.0, x, y, thread=100)
    assert isinstance(steps.error, MemoryFault)
    assert steps[-1].text.startswith("ld.global")
    assert str(steps).splitlines()[-4] == "MemoryFault: load from x[100]: x is f32[100]"


def test_the_table() -> None:
    x = np.ones(32, np.float32)
    steps = trace_thread(saxpy[1, 32], 32, 2.0, x, x.copy(), thread=7)
    lines = str(steps).splitlines()
    assert len(lines) == len(steps)
    at = line_of("with when(i < n)")
    assert f"test_debugger.py:{at}  setp.lt.u32 %p0, %r5, %r0" in str(steps)
    assert sum(line.startswith("test_debugger.py:") for line in lines) == len({step.loc for step in steps})
    assert next(line for line in lines if "mul.f32" in line).endswith("a = 2, %f1 = 1, %f2 = 2")


def test_functions_and_foreign_ptx() -> None:
    @ptx_func
    def twice(v: f32) -> f32:
        return v * 2.0

    @ptx_kernel
    def calls(x: Ptr[f32]):
        first = x[ptx.tid.x]
        x[ptx.tid.x] = twice(first)

    x = np.arange(32, dtype=np.float32)
    steps = trace_thread(calls[1, 32], x, thread=5)
    assert next(step for step in steps if step.text.startswith("mul.f32")).registers.popitem()[1] == 10.0

    foreign = trace_thread(ptxdsl.load(calls.ptx())["calls"][1, 32], x, thread=5)
    assert [step.text for step in foreign] == [step.text for step in steps]
    assert not any("first" in step.registers for step in foreign)


# -- the prompt


def test_a_breakpoint_and_the_variables_there() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    at = line_of("y[i] = a * x[i]")
    lines = session(
        saxpy[4, 256], 1000, 3.0, x, y, block=1, thread=3, breakpoints=[at],
        commands="print i; print a; print x; print nobody; print %f2; where; continue",
    )
    assert lines[0] == f"> {__file__}:{at}: y[i] = a * x[i] + y[i]"
    assert lines[1].startswith("-> mul.wide.u32")
    assert lines[2] == "i = 259 (u32 %r5)"
    assert lines[3] == "a = 3 (f32 %f0)"
    assert lines[4] == f"x = {x.ctypes.data:#x} (u64 %rd0)"
    assert lines[5] == "there is no variable `nobody` here; there are n, a, x, y, i"
    assert lines[6] == "%f2 has no value yet (f32 %f2)"
    assert lines[7] == f"thread (3, 0, 0) of block (1, 0, 0), {__file__}:{at}: y[i] = a * x[i] + y[i]"
    assert lines[-1] == "the launch has ended; thread (3, 0, 0) of block (1, 0, 0) with it"
    np.testing.assert_array_equal(y, 3 * x + 1)


def test_a_launch_is_debugged_by_its_method() -> None:
    x, y = np.full(1000, 2, np.float32), np.ones(1000, np.float32)
    where: dict[str, Any] = {"block": 1, "thread": 3, "breakpoints": [line_of("y[i] = a * x[i]")]}
    by_function = session(saxpy[4, 256], 1000, 3.0, x, y.copy(), commands="print i; continue", **where)
    out = io.StringIO()
    saxpy[4, 256].debug(1000, 3.0, x, y, stdin=io.StringIO("print i\ncontinue\n"), stdout=out, **where)
    assert out.getvalue().replace("(ptxdsl) ", "").splitlines() == by_function
    assert by_function[2].startswith("i = 259 (u32 ")
    assert (y == 7).all()


def test_a_breakpoint_in_a_loop_stops_each_time_round(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal(4).astype(np.float32), np.zeros(32, np.float32)
    lines = session(
        total[1, 32], 4, x, out, thread=2, breakpoints=[line_of("acc += v")], commands="; ".join(["p acc; p v; c"] * 4)
    )
    sums = np.cumsum(x, dtype=np.float32)
    assert [line for line in lines if line.startswith("acc")] == [
        f"acc = {value:.9g} (f32 %acc)" for value in [0.0, *map(float, sums[:-1])]
    ]
    assert [float(line.split()[2]) for line in lines if line.startswith("v =")] == pytest.approx(x, rel=1e-8)


def test_step_next_and_an_empty_line() -> None:
    x = np.ones(32, np.float32)
    lines = session(saxpy[1, 32], 32, 2.0, x, x.copy(), commands="step; ; next; n; n; c")
    where = [line for line in lines if line.startswith(">")]
    texts = [line for line in lines if line.startswith("->")]
    assert [text.split()[1] for text in texts] == [
        "ld.param.u32", "ld.param.u64", "ld.param.f32", "mov.u32", "setp.lt.u32", "mul.wide.u32",
    ]
    assert [line.rsplit(": ", 1)[1] for line in where[3:]] == [
        "i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x", "with when(i < n):", "y[i] = a * x[i] + y[i]",
    ]


def test_break_clear_and_registers() -> None:
    x = np.full(32, 4, np.float32)
    branch, store = line_of("with when(i < n)"), line_of("y[i] = a * x[i]")
    lines = session(
        saxpy[1, 32], 32, 2.0, x, x.copy(), thread=9, breakpoints=[branch],
        commands=f"break {store}; break; break 1; clear {branch}; c; registers; c",
    )
    assert lines[2] == f"breakpoints: {branch}, {store}"
    assert lines[3].startswith("no instruction comes from line 1; lines with instructions: ")
    assert lines[4].endswith("y[i] = a * x[i] + y[i]")
    assert "%r5 = 9  i" in lines and "%f0 = 2  a" in lines and "%p0 = True" in lines
    assert not any(line.startswith("%f2") for line in lines)


def test_quit_gives_the_launch_up() -> None:
    x, y = np.ones(32, np.float32), np.full(32, 5, np.float32)
    lines = session(saxpy[1, 32], 32, 2.0, x, y, commands="next; quit")
    assert lines[-1] == "given up; what was stored until here stays"
    assert (y == 5).all()
    saxpy[1, 32](32, 2.0, x, y)
    assert (y == 7).all()
    assert session(saxpy[1, 32], 32, 2.0, x, y, commands="n")[-1].startswith("given up")  # the commands end


def test_names_follow_the_python_scope() -> None:
    @ptx_kernel
    def scopes(a: Array[f32, 2], out: Ptr[u32], *, rounds: int = 3):
        parts = [reg(u32, 0) for _ in range(2)]
        for step in range(rounds):
            value = ptx.tid.x + step
            parts[step % 2].set(value)
        out[0] = parts[0]  # all set

    lines = session(
        scopes[1, 32], np.zeros((2, 2), np.float32), np.zeros(1, np.uint32), thread=4,
        breakpoints=[line_of("out[0] = parts[0]  # all set")], commands="p parts[0]; p parts[1]; p value; c", rounds=3,
    )
    assert [line.split(" (")[0] for line in lines[2:5]] == ["parts[0] = 6", "parts[1] = 5", "value = 6"]


def test_lines_of_foreign_ptx() -> None:
    text = ptxdsl.load(saxpy.ptx())
    at = next(n for n, line in enumerate(saxpy.ptx().splitlines(), 1) if "mul.f32" in line)
    x = np.ones(32, np.float32)
    lines = session(text["saxpy"][1, 32], 32, 2.0, x, x.copy(), breakpoints=[at], commands="p %f1; p x; c")
    assert lines[1].startswith("-> mul.f32")
    assert lines[2] == "%f1 = 1 (f32 %f1)"
    assert lines[3] == "there is no variable `x` here; there are none"


# -- what is refused


@pytest.mark.parametrize(("where", "message"), [
    ({"thread": 32}, "there is no thread (32, 0, 0) in a block of (32, 1, 1)"),
    ({"thread": (0, 1)}, "there is no thread (0, 1, 0) in a block of (32, 1, 1)"),
    ({"block": 4}, "there is no block (4, 0, 0) in a grid of (4, 1, 1)"),
    ({"thread": -1}, "thread is the index of one, an int or a tuple of 1 to 3 ints, not -1"),
    ({"block": 1.0}, "block is the index of one, an int or a tuple of 1 to 3 ints, not 1.0"),
])
def test_threads_that_are_not_there(where: Any, message: str) -> None:
    x = np.ones(32, np.float32)
    with pytest.raises(LaunchError) as caught:
        trace_thread(saxpy[4, 32], 32, 2.0, x, x.copy(), **where)
    assert caught.value.message == message


def test_a_line_without_instructions() -> None:
    x = np.ones(32, np.float32)
    with pytest.raises(LaunchError) as caught:
        session(saxpy[1, 32], 32, 2.0, x, x.copy(), breakpoints=[1], commands="c")
    assert caught.value.message == "no instruction of kernel `saxpy` comes from line 1"
    assert str(line_of("with when(i < n)")) in (caught.value.hint or "")


def test_two_launches() -> None:
    x = np.ones(32, np.float32)

    def both() -> None:
        saxpy[1, 32](32, 2.0, x, x.copy())
        saxpy[1, 32](32, 2.0, x, x.copy())

    with pytest.raises(LaunchError, match="a debugger observes one launch, and this is the second"):
        trace_thread(both)


def test_a_nested_break_and_both_branches() -> None:
    @ptx_kernel
    def search(x: Ptr[u32], out: Ptr[u32]):
        i = reg(u32, 0)
        with loop():
            break_if(x[i] == ptx.tid.x)
            i += 1
        with when(i < 3):
            out[ptx.tid.x] = i
        with otherwise():
            out[ptx.tid.x] = 99

    x, out = np.array([2, 0, 1, 3], np.uint32), np.zeros(4, np.uint32)
    for thread in range(4):
        steps = trace_thread(search[1, 4], x, out, thread=thread)
        where = int(np.flatnonzero(x == thread)[0])
        assert sum(step.text.startswith("ld.global") for step in steps) == where + 1
        stored = [step for step in steps if step.text.startswith("st.global")]
        assert len(stored) == 1
    np.testing.assert_array_equal(out, [1, 2, 0, 99])
