"""The prompt's commands that go back, and its expressions; tests/emulator/tools has those that go forward."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl import Array, Ptr, RaceError, debug, f32, loop, ptx, ptx_kernel, reg, shared, u32, when

pytestmark = pytest.mark.usefixtures("emulated")


def scaled(v: Any) -> Any:
    twice = v * 2  # in the helper
    return twice + 1


@ptx_kernel
def total(n: u32, x: Ptr[f32], out: Ptr[f32], a: Array[u32, 2], *, width: int = 3):
    acc = reg(f32, 0.0)
    parts = [reg(u32, 7), reg(u32, 8)]
    with loop(0, n) as i:
        acc += x[i]  # adds
    parts[1].set(scaled(a[1, 2]))  # the call
    out[ptx.tid.x] = acc  # the end


@ptx_kernel
def racy(x: Ptr[f32]):
    tile, t = shared(f32, 64), ptx.tid.x
    tile[t] = x[t]
    with when(t < 40):
        x[t] = tile[t ^ 33]  # races


def line_of(text: str) -> int:
    """The line of this file that ends in a comment."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def session(commands: str, *breakpoints: int, **where: Any) -> list[str]:
    """The answers to commands, one a line."""
    x, out = np.arange(1, 6, dtype=np.float32), np.zeros(64, np.float32)
    a, said = np.arange(12, dtype=np.uint32).reshape(3, 4), io.StringIO()
    debug(
        total[2, 64], 5, x, out, a, breakpoints=breakpoints, stdin=io.StringIO(commands.replace("; ", "\n") + "\n"),
        stdout=said, **where,
    )
    np.testing.assert_array_equal(out, np.full(64, 15, np.float32))
    return said.getvalue().replace("(ptxdsl) ", "").splitlines()


def test_lines_and_instructions_back() -> None:
    end, call, helper = line_of("the end"), line_of("the call"), line_of("in the helper")
    lines = session("p acc; rn; rn; rn; reverse-next; n; p v; rs; s; c; c", end, block=1, thread=40)
    stops = [line for line in lines if line.startswith(">")]
    assert [int(stop.split(":")[1]) for stop in stops] == [
        end, call, helper + 1, helper, call, helper, call, helper, end,
    ]
    assert [line.split(" (")[0] for line in lines if " = " in line and "(" in line and line[0] in "av"] == [
        "acc = 15", "v = 6",
    ]


def test_back_to_a_condition() -> None:
    lines = session(f"b {line_of('adds')} if i == 3; rc; p acc; p x[i]; rc; c; p i; c; c", line_of("the end"), thread=5)
    assert lines[2].startswith(f"> {__file__}:{line_of('adds')}")
    assert lines[4:6] == ["acc = 6 (f32 %acc)", "x[i] = 4"]
    assert lines[6] == "here the launch begins"
    assert "i = 3 (u32 %i)" in lines
    assert lines[-1].startswith("the launch has ended")


def test_expressions() -> None:
    wanted = {
        "acc + 1": "16", "acc[3]": "15", "x[4]": "5", "a[1, 2]": "6", "a[2, i - 4]": "9", "parts[1]": "13",
        "parts[0]": "7", "tid.x": "9", "ctaid": "(1, 0, 0)", "lane": "9", "thread[0] + ntid.x": "73",
        "2 ** 3 % 5": "3", "max(acc, 20)": "20", "acc > 3 and i == 5": "True", "1 < i < 4": "False",
        "not lane": "False",
        "a.shape": "(3, 4)", "%laneid": "9", "hex(255)": "0xff", "acc == 15 or nobody": "True", "-i": "-5",
        "n": "5", "width": "3", "width + i": "8",
    }
    lines = session("; ".join(f"p {text}" for text in wanted) + "; c", line_of("the end"), block=1, thread=9)
    answers = [line.split(" (f32 %")[0].split(" (u32 %")[0] for line in lines[2 : 2 + len(wanted)]]
    assert answers == [f"{text} = {value}" for text, value in wanted.items()]


def test_what_is_no_expression() -> None:
    wrong = {
        "nobody": "there is no variable `nobody` here; there are n, x, out, a, acc, parts[0], parts[1], i",
        "acc +": "`acc +` is no expression: invalid syntax",
        "x[9]": "x[9] is outside: x is f32[5]", "a[3, 0]": "a[3, 0] is outside: a is u32[3, 4]",
        "a[0, 0, 0]": "a has 2 dimensions, not 3", "x[0.5]": "`x[0.5]`: an index is an integer, not 0.5",
        "acc[40]": "`acc[40]`: the warp has lanes 0 to 31",
        "1 << -1": "`1 << -1` cannot be computed: negative shift count", "%nobody": "there is no register %nobody",
        "acc.x": "`acc.x`: there is no .x",
        "n()": "`n()` (Call) is nothing that a debugger computes",
    }
    lines = session("; ".join(f"p {text}" for text in wrong) + "; who; b 1; b 5 if +; c", line_of("the end"), thread=9)
    told = [line for line in lines[2:] if not line.startswith("  hint")]
    assert told[: len(wrong)] == list(wrong.values())
    assert told[len(wrong)] == "who wrote what?"
    assert told[len(wrong) + 1].startswith("no instruction comes from line 1; lines with instructions: ")


@pytest.mark.parametrize(("command", "answer"), [
    ("prnt acc", ["`prnt` is no command", "  hint: did you mean `print`?"]),
    ("reverse-stp", ["`reverse-stp` is no command", "  hint: did you mean `reverse-step`?"]),
    ("x[2]-1", [
        "`x[2]-1` is no command",
        "  hint: `print x[2]-1` for the value of a variable; `help` names the commands",
    ]),
    ("help reverse-step", ["reverse-step: go back to the instruction before. (rs)"]),
    ("help rs", ["reverse-step: go back to the instruction before. (rs)"]),
    ("help foo", [
        "`foo` is no command", "  hint: `print foo` for the value of a variable; `help` names the commands",
    ]),
])
def test_what_is_no_command(command: str, answer: list[str]) -> None:
    assert session(f"{command}; c", line_of("the end"))[2:-1] == answer


def test_help_has_a_line_for_each_command() -> None:
    lines = session("help; c", line_of("the end"))[2:-1]
    assert len(lines) == 14
    assert "who NAME, who x[3], who *ADDRESS: the instruction and the thread that have written it last." in lines


def test_helpers_are_frames() -> None:
    lines = session("where; rn; c; c", line_of("in the helper"), thread=3)
    called = f"{__file__}:{line_of('the call')}: parts[1].set(scaled(a[1, 2]))  # the call"
    assert lines[4] == f"scaled is called by total at {called}"
    assert lines[5].startswith(f"> {__file__}:{line_of('the call')}")


def test_findings_of_the_sanitizer_stop() -> None:
    x, said = np.ones(64, np.float32), io.StringIO()
    launch = racy.configure(1, 64, sanitize="race")
    with pytest.raises(RaceError, match=r"race on tile\["):
        debug(launch, x, breakpoints=[line_of("races")], thread=50, stdin=io.StringIO("c\nc\nc\n"), stdout=said)
    assert said.getvalue().startswith("race on tile[")
    assert (x[40:] == 1).all()


def test_no_way_back() -> None:
    lines = session("rs; rn; rc; who acc; c", line_of("the end"), history=0)
    assert [line.split(": ")[0] for line in lines[2:6]] == ["there is no way back"] * 4
    assert lines[2].endswith("and 0 MiB are allowed for copies (history=1)")
