"""Sessions with the debug adapter, driven as an editor drives it, over standard input and output and over TCP."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dap_client import Client, DapError
from ptxdsl import Ptr, ptx, ptx_kernel, u32
from ptxdsl.debug_adapter.session import Listener, Session
from ptxdsl.emulator.debugger.debugged_launch import DebuggedLaunch, Stop

pytestmark = [pytest.mark.emulator, pytest.mark.processes]

SCRIPT = """\
import sys
import numpy as np
from ptxdsl import Ptr, f32, loop, ptx, ptx_func, ptx_kernel, reg, shared, u32, when

@ptx_func
def negated(v: f32) -> f32:
    return -v  # in a function

def scaled(v, k):
    w = v * 2.0  # in the helper
    return w + k

@ptx_kernel
def total(n: u32, x: Ptr[f32], out: Ptr[f32]):
    tile = shared(f32, 64)
    t = ptx.tid.x
    i = ptx.ctaid.x * 64 + t
    h = scaled(x[i], 1.0)  # the call
    tile[t] = h  # to shared memory
    ptx.bar.sync(0)
    acc = reg(f32, 0.0)
    with when(t < 5):
        with loop(0, 8) as j:
            acc += tile[t + j]  # adds
    out[i] = acc  # the end

@ptx_kernel
def racy(x: Ptr[f32]):
    tile = shared(f32, 64)
    t = ptx.tid.x
    tile[t] = x[t]
    x[t] = tile[63 - t]  # races

@ptx_kernel
def beyond(x: Ptr[f32]):
    x[ptx.tid.x] = negated(1.0)  # may be outside

x = np.arange(128, dtype=np.float32)
out = np.zeros(128, np.float32)
what = sys.argv[1] if len(sys.argv) > 1 else "total"
print("begins", what)
if what == "total":
    total[2, 64](128, x, out)
    print(out[:2])
elif what == "racy":
    racy[1, 64](x)
elif what == "outside":
    beyond[1, 160](x)
elif what == "fails":
    total.configure(2, 64, backend="emulator")(128, x, out)
    raise ValueError("no kernel at all")
elif what == "long":
    total[2, 64](128, x, out)
    while True:
        total[2, 64](128, x, out)
"""


def line_of(text: str) -> int:
    """The line of the script that ends in a comment."""
    return next(n for n, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith(f"# {text}"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def adapter() -> Iterator[Client]:
    command = [sys.executable, "-m", "ptxdsl", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        client = Client(process.stdout, process.stdin)
        try:
            yield client
            process.stdin.close()
            assert process.wait(20) is not None
        finally:
            process.kill()


def expected(rounds: int = 8) -> np.ndarray[Any, Any]:
    """What the kernel adds up, by block and thread."""
    h = 2 * np.arange(128, dtype=np.float32).reshape(2, 64) + 1
    found = np.zeros((2, 64), np.float32)
    for t in range(5):
        found[:, t] = h[:, t : t + rounds].sum(axis=1)
    return found


def test_a_session(adapter: Client, script: Path) -> None:
    end, adds = line_of("the end"), line_of("adds")
    never = line_of("to shared memory") + 2
    answers = adapter.start(script, {str(script): [
        {"line": end, "condition": "ctaid.x == 1 and acc > 0"}, {"line": never, "condition": "0"}, {"line": 1},
        {"line": len(SCRIPT.splitlines())},
    ]})
    assert not any(answer["verified"] for answer in answers)
    stop = adapter.stop()
    assert (stop["reason"], stop["hitBreakpointIds"]) == ("breakpoint", [answers[0]["id"]])
    changed = [e["body"]["breakpoint"] for e in adapter.seen if e["event"] == "breakpoint"]
    assert [(c["id"], c["verified"], c["line"]) for c in changed] == [
        (answers[0]["id"], True, end), (answers[1]["id"], True, never),
    ]  # the others are no lines of a kernel
    frames = adapter.frames()
    launched = SCRIPT.splitlines().index("    total[2, 64](128, x, out)") + 1
    assert [(f["name"], f["line"]) for f in frames] == [("total", end), ("launch", launched)]
    assert frames[0]["source"]["path"] == str(script)

    # variables: of the thread in focus, of all lanes, of shared memory
    scopes = adapter.scopes()
    here = scopes["Thread (0, 0, 0)"]
    assert {name: v["value"] for name, v in here.items() if name != "tile"} == {
        "t": "0", "i": "64", "h": "129", "acc": f"{expected()[1, 0]:g}", "j": "8",
    }
    lanes = adapter.variables(here["acc"]["variablesReference"])
    assert [float(lanes[f"[{lane}]"]["value"]) for lane in range(32)] == expected()[1, :32].tolist()
    part = adapter.variables(here["acc"]["variablesReference"], filter="indexed", start=3, count=2)
    assert list(part) == ["[3]", "[4]"]
    tile = adapter.variables(scopes["Shared memory"]["tile"]["variablesReference"])
    assert [float(v["value"]) for v in tile.values()] == [2 * i + 1 for i in range(64, 128)]
    assert scopes["Parameters"]["n"]["value"] == "128"
    assert [v["value"] for v in adapter.variables(scopes["Parameters"]["x"]["variablesReference"], start=5, count=2)
            .values()] == ["5", "6"]
    special = scopes["Special registers"]
    assert (special["ctaid"]["value"], special["ntid"]["value"]) == ("(1, 0, 0)", "(64, 1, 1)")

    # expressions
    assert adapter.value("acc + 1") == f"{expected()[1, 0] + 1:g}"
    assert float(adapter.value("acc[4]")) == expected()[1, 4]
    assert adapter.value("tile[t + 2]") == "133"
    assert adapter.value("out[3]") == f"{expected()[0, 3]:g}"

    # back in time
    assert adapter.stop("stepBack")["reason"] == "step"
    assert adapter.line == line_of("adds") - 1
    adapter.stop("stepBack")
    assert adapter.line == adds
    assert float(adapter.value("acc")) == expected(7)[1, 0]
    assert adapter.value("j") == "7"
    adapter.stop("stepBack", granularity="instruction")
    adapter.stop("next", granularity="instruction")
    assert float(adapter.value("acc")) == expected(7)[1, 0]
    who = adapter.value("who acc").splitlines()
    assert who[0] == f"acc = {expected(7)[1, 0]:g} was written by thread (0, 0, 0) of block (1, 0, 0)"
    assert who[1] == f"  at {script}:{adds}: acc += tile[t + j]  # adds"
    assert adapter.value("who tile[9]", "repl").splitlines()[:2] == [
        "tile[9] = 147 was written by thread (9, 0, 0) of block (1, 0, 0)",
        f"  at {script}:{line_of('to shared memory')}: tile[t] = h  # to shared memory",
    ]
    assert adapter.stop("continue")["reason"] == "breakpoint"
    assert adapter.line == end
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0
    assert adapter.text("stdout") == f"begins total\n{expected()[0, :2]}\n"


def test_back_to_a_breakpoint_and_to_the_begin(adapter: Client, script: Path) -> None:
    at = line_of("to shared memory")
    adapter.start(script, {str(script): [{"line": at}]})
    stops = [
        (adapter.stop(command)["reason"], adapter.line, adapter.value("block"), adapter.value("warp"))
        for command in (None, "continue", "continue", "continue", "reverseContinue", "reverseContinue")
    ]
    forward = [("breakpoint", at, f"({block}, 0, 0)", str(warp)) for block in range(2) for warp in range(2)]
    assert stops == [*forward, forward[2], forward[1]]
    adapter.stop("reverseContinue")
    stop = adapter.stop("reverseContinue")
    assert (stop["reason"], stop["text"]) == ("step", "here the launch begins")
    adapter.request("setBreakpoints", source={"path": str(script)}, breakpoints=[])
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0


def test_helpers_steps_and_lanes(adapter: Client, script: Path) -> None:
    adapter.start(script, {str(script): [{"line": line_of("in the helper")}]}, thread=37, block=[1, 0, 0])
    adapter.stop()
    assert [(f["name"], f["line"]) for f in adapter.frames()[:2]] == [
        ("scaled", line_of("in the helper")), ("total", line_of("the call")),
    ]
    assert {name: v["value"] for name, v in adapter.scopes(0)["Thread (37, 0, 0)"].items()} == {"v": "101", "k": "1.0"}
    assert adapter.scopes(1)["Thread (37, 0, 0)"]["t"]["value"] == "37"
    adapter.stop("stepOut")
    assert (adapter.frames()[0]["name"], adapter.line) == ("total", line_of("to shared memory"))
    adapter.stop("stepBack")
    assert adapter.line == line_of("the call")  # the helper is stepped over
    adapter.stop("stepIn")
    assert adapter.frames()[0]["name"] == "scaled"
    adapter.stop("stepOut")
    assert adapter.value("h") == "203"
    adapter.request("evaluate", expression="focus lane 0", context="repl")
    adapter.stop()
    assert (adapter.value("thread"), adapter.value("h")) == ("(32, 0, 0)", "193")
    adapter.request("evaluate", expression="focus thread 3", context="repl")
    adapter.stop()
    assert adapter.value("thread") == "(3, 0, 0)"
    threads = adapter.request("threads")["threads"]
    assert [t["name"].split(",")[0] for t in threads] == ["block (1", "block (1"]
    assert threads[1]["name"].startswith("block (1, 0, 0) warp 1: threads (32, 0, 0) to (63, 0, 0), lanes 0-31")
    with pytest.raises(DapError, match="a block has 64 threads"):
        adapter.request("evaluate", expression="focus thread 64", context="repl")
    with pytest.raises(DapError, match="names no thread"):
        adapter.request("evaluate", expression="focus 12", context="repl")
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0


def test_hit_counts_and_messages(adapter: Client, script: Path) -> None:
    adds = line_of("adds")
    adapter.start(script, {str(script): [
        {"line": adds, "hitCondition": "== 3"},
        {"line": line_of("the end"), "logMessage": "thread {thread}: acc = {acc}, {nobody}"},
    ]})
    adapter.stop()
    assert (adapter.line, adapter.value("j")) == (adds, "2")
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0
    told = [line for line in adapter.text("console").splitlines() if line.startswith("thread")]
    nobody = "<there is no variable `nobody` here; there are n, x, out, tile, t, i, h, acc, j>"
    sums = expected()
    assert sorted(told) == sorted(
        f"thread ({t}, 0, 0): acc = {sums[b, t]:g}, {nobody}" for b in range(2) for t in (0, 32)
    )


def test_a_finding_of_the_sanitizer(adapter: Client, script: Path) -> None:
    adapter.start(script, filters=("sanitizer",), args=["racy"])
    stop = adapter.stop()
    assert stop["reason"] == "exception"
    assert stop["text"].startswith("race on tile[")
    info = adapter.request("exceptionInfo", threadId=adapter.thread)
    assert info["description"].splitlines()[0] == stop["text"]
    assert "hint: put a barrier between the two: `ptx.bar.sync(0)`" in info["description"]
    store, load = line_of("races") - 1, line_of("races")
    assert adapter.line in (store, load)
    text = info["description"].splitlines()[1]
    thread = re.search(r"by thread (\(\d+, 0, 0\))", text)
    assert thread is not None and adapter.value("thread") == thread[1]
    adapter.stop("stepBack")
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 1
    assert "RaceError: race on tile[" in adapter.text("stderr")


def test_a_fault_stops_and_can_be_gone_back_from(adapter: Client, script: Path) -> None:
    adapter.start(script, filters=("faults",), args=["outside"], env={"PTXDSL_TRACEBACK": "short"})
    stop = adapter.stop()
    assert (stop["reason"], stop["text"]) == ("exception", "store to x[128]: x is f32[128]")
    assert adapter.request("exceptionInfo", threadId=adapter.thread)["exceptionId"] == "MemoryFault"
    assert (adapter.line, adapter.value("thread")) == (line_of("may be outside"), "(128, 0, 0)")
    while adapter.line != line_of("in a function"):
        adapter.stop("stepBack", granularity="instruction")
    assert [(f["name"], f["line"]) for f in adapter.frames()[:2]] == [
        ("negated", line_of("in a function")), ("beyond", line_of("may be outside")),
    ]
    assert adapter.stop("continue")["text"] == "store to x[128]: x is f32[128]"
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 1
    assert "MemoryFault: store to x[128]: x is f32[128]" in adapter.text("stderr")
    assert "dispatcher.py" not in adapter.text("stderr")


def test_the_entry_ptx_and_its_breakpoints(adapter: Client, script: Path) -> None:
    adapter.start(script, stopOnEntry=True)
    assert adapter.stop()["reason"] == "entry"
    here = adapter.frames()[0]["instructionPointerReference"]
    asked = adapter.request("disassemble", memoryReference=here, instructionOffset=-1, instructionCount=60)
    lines = asked["instructions"]
    assert len(lines) == 60
    assert lines[0]["presentationHint"] == "invalid"
    assert lines[1]["instruction"].startswith("ld.param")
    barrier = next(line for line in lines if line["instruction"] == "bar.sync 0")
    assert barrier["line"] == line_of("to shared memory") + 1
    adapter.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": barrier["address"]}])
    assert adapter.stop("continue")["reason"] == "breakpoint"
    assert adapter.frames()[0]["instructionPointerReference"] == barrier["address"]
    places = adapter.request("breakpointLocations", source={"path": str(script)}, line=1, endLine=99)["breakpoints"]
    assert line_of("adds") in [place["line"] for place in places]
    adapter.request("setInstructionBreakpoints", breakpoints=[])
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0


def test_foreign_ptx(adapter: Client, tmp_path: Path) -> None:
    (tmp_path / "twice.ptx").write_text("""\
.version 7.0
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 x) {
    .reg .b32 %r<1>; .reg .f32 %f<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    ld.global.f32 %f0, [%rd1];
    add.f32 %f1, %f0, %f0;
    st.global.f32 [%rd1], %f1;
    ret;
}
""")
    launch = "ptxdsl.load({})['twice'][1, 4](np.ones(4, np.float32))\n"
    (tmp_path / "script.py").write_text(
        "import numpy as np, ptxdsl\n"
        + launch.format("open('twice.ptx').read().replace('add.f32 %f1', 'mul.f32 %f1')")
        + 2 * launch.format("'twice.ptx'")
    )
    ptx = str(tmp_path / "twice.ptx")
    adapter.start("script.py", {ptx: [{"line": 10}]}, cwd=str(tmp_path), stopOnEntry=True)
    adapter.stop()  # the text of the first one is in no file
    source = adapter.frames()[0]["source"]
    text = adapter.request("source", sourceReference=source["sourceReference"])["content"]
    assert "mul.f32 %f1, %f0, %f0;" in text
    answer = adapter.request("setBreakpoints", source=source, breakpoints=[{"line": 11}])["breakpoints"]
    assert answer[0]["verified"]
    adapter.stop("continue")
    assert (adapter.line, adapter.value("%f1")) == (11, "1")
    adapter.stop("continue")
    frame = adapter.frames()[0]
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("twice", 10, ptx)
    assert adapter.value("%f0 + 1") == "2"
    adapter.request("setBreakpoints", source={"path": ptx}, breakpoints=[])
    adapter.request("continue", threadId=adapter.thread)
    assert adapter.end() == 0


def test_what_is_wrong_is_told(adapter: Client, script: Path) -> None:
    with pytest.raises(DapError, match="there is no request `frobnicate` here"):
        adapter.request("frobnicate")
    adapter.request("initialize", adapterID="ptxdsl")
    with pytest.raises(DapError, match="launch takes `program`, the path of a script"):
        adapter.request("launch")
    with pytest.raises(DapError, match=r"there is no file .*nowhere\.py"):
        adapter.request("launch", program=str(script.with_name("nowhere.py")))
    with pytest.raises(DapError, match="a script is launched, not attached to"):
        adapter.request("attach")
    with pytest.raises(DapError, match="no kernel has stopped: pause, or stop at a breakpoint first"):
        adapter.request("scopes", frameId=1)
    with pytest.raises(DapError, match="the request `continue` lacks 'threadId'|no kernel has stopped"):
        adapter.request("continue")
    with pytest.raises(DapError, match="there is no filter `all`; there are faults, sanitizer"):
        adapter.request("setExceptionBreakpoints", filters=["all"])
    wrong = adapter.request("setBreakpoints", source={"path": str(script)}, breakpoints=[
        {"line": 3, "condition": "acc >"}, {"line": 3, "hitCondition": "often"},
    ])["breakpoints"]
    assert [(a["verified"], a["message"]) for a in wrong] == [
        (False, "`acc >` is no expression: invalid syntax"),
        (False, "`often` is no count of hits: `5`, `>= 5`, `== 5` or `% 5`"),
    ]
    adapter.request("launch", program=str(script))
    with pytest.raises(DapError, match="a session runs one script, and this is the second launch"):
        adapter.request("launch", program=str(script))
    adapter.request("setBreakpoints", source={"path": str(script)}, breakpoints=[
        {"line": line_of("adds"), "condition": "nobody == 1"},
    ])
    adapter.request("configurationDone")
    adapter.stop()  # a condition that cannot be computed stops
    assert "the condition `nobody == 1` of line" in adapter.text("console")
    for expression, message in (
        ("x[500]", r"x\[500\] is outside: x is f32\[128\]"), ("acc.y", r"`acc\.y`: there is no \.y"),
        ("open('f')", "is nothing that a debugger computes"), ("acc[32]", r"`acc\[32\]`: the warp has lanes 0 to 31"),
        ("who t + 1", "is no register and no element of memory"),
    ):
        with pytest.raises(DapError, match=message):
            adapter.value(expression)
    with pytest.raises(DapError, match="there are no variables 99 since the launch has gone on"):
        adapter.request("variables", variablesReference=99)
    with pytest.raises(DapError, match="there is no frame 99"):
        adapter.request("scopes", frameId=99)
    adapter.request("disconnect")


def test_pause_and_terminate(adapter: Client, script: Path) -> None:
    adapter.start(script, args=["long"])
    time.sleep(1)
    adapter.request("pause", threadId=1)
    assert adapter.wait("stopped")["reason"] in ("pause", "entry")
    assert len(adapter.request("threads")["threads"]) == 2
    adapter.request("terminate")
    assert adapter.end() == 0
    assert "given up" in adapter.text("console")


def test_a_pause_as_a_launch_ends_stops_the_next_one() -> None:
    class Late(Session):
        def _steer(self, launch: DebuggedLaunch) -> None:
            super()._steer(launch)
            self.pause()  # behind its last statement

    class Reasons(Listener):
        def launched(self, session: Session) -> None:
            pass

        def say(self, text: str, category: str = "console") -> None:
            pass

        def stopped(self, stop: Stop) -> None:
            reasons.append(stop.reason)
            assert session.launch is not None
            session.go(session.launch.resume)

    @ptx_kernel
    def writes(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = 1

    reasons: list[str] = []
    session = Late(Reasons(), 1)
    x = np.zeros(32, np.uint32)
    with session:
        for count in range(3):
            writes.configure(1, 32, backend="emulator")(x)
            assert reasons == ["entry"] * count
    assert x.all()


def test_a_script_that_fails(adapter: Client, script: Path) -> None:
    """Not debugged, too."""
    adapter.start(script, {str(script): [{"line": line_of("adds")}]}, args=["fails"], noDebug=True)
    assert adapter.end() == 1
    last = adapter.text("stderr").splitlines()
    assert last[-1] == "ValueError: no kernel at all"
    assert not any("debug_adapter" in line for line in last)


def test_an_editor_that_goes_away(script: Path) -> None:
    command = [sys.executable, "-m", "ptxdsl", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        client = Client(process.stdout, process.stdin)
        client.start(script, {str(script): [{"line": line_of("adds")}]})
        client.stop()
        process.stdin.close()
        assert process.wait(20) == 0


def test_over_tcp(script: Path) -> None:
    command = [sys.executable, "-m", "ptxdsl", "debug", "--dap", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            told = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", server.stderr.readline())
            assert told is not None
            for line in ("adds", "the end"):  # a session each
                with socket.create_connection(("127.0.0.1", int(told[1])), timeout=30) as connection:
                    stream = connection.makefile("rwb")
                    client = Client(stream, stream)
                    client.start(script, {str(script): [{"line": line_of(line)}]}, env={"PTXDSL_LOG": "off"})
                    client.stop()
                    assert client.line == line_of(line)
                    client.request("setBreakpoints", source={"path": str(script)}, breakpoints=[])
                    client.request("continue", threadId=client.thread)
                    assert client.end() == 0
        finally:
            server.kill()
