"""What the first call of a large kernel takes, stage by stage: ``python tests/bench/startup.py [family ...]``.

A first call is from the decorator, or from the text of a foreign kernel, to the result, in a process that has run one
small kernel and finds the handlers on disk: the best of several, with the median, in milliseconds that its thread ran
(``time.thread_time``: the kernels themselves take none). The stages, in microseconds an instruction, are taken from
processes of their own; what is verified while tracing counts as tracing. The last line is what the small kernel took:
the emulator's modules, the table's rows and LLVM are loaded for it, once a process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import thread_time
from typing import Any, NamedTuple

import llvmlite.binding  # noqa: F401 - imported before the clock starts
import numpy as np
from ptxdsl import Ptr, f32, load, loop, ptx, ptx_kernel, reg, shared, u32, use, when
from ptxdsl.bench import table
from ptxdsl.collector import paused

__all__ = ["FAMILIES", "main"]

THREADS, SEED = 64, 0x9E3779B9
WANTED = {2000: 0.050, 20000: 0.600}
"""Seconds that the first call of a kernel with so many instructions may take."""
STAGES = ("trace", "print", "parse", "verify", "effects", "lower")


class Family(NamedTuple):
    """A kind of kernel. ``make(count)`` is the undecorated kernel with about that many instructions."""

    what: str
    make: Callable[[int], Callable[..., None]]


def _tile(body: int, x: Any, start: Any) -> None:
    """An 8 x 8 tile of accumulators in registers; ``body`` steps of 16 loads and 64 multiply-adds."""
    a = shared(f32, 16, 16)
    a[ptx.tid.x // 16, ptx.tid.x % 16] = x[ptx.tid.x]
    ptx.bar.sync(0)
    acc = [[reg(f32, 0.0) for _ in range(8)] for _ in range(8)]
    for step in range(body):
        row = [a[step % 4, n] for n in range(8)]
        column = [a[step % 3, n + 8] for n in range(8)]
        for m in range(8):
            for n in range(8):
                ptx.fma.rn.f32(row[m], column[n], acc[m][n], out=acc[m][n])
    total = start
    for line in acc:
        for value in line:
            total = total + value
    x[ptx.tid.x] = total


def tile(count: int) -> Callable[..., None]:
    def kernel(n: u32, x: Ptr[f32]) -> None:
        _tile(count // 80, x, reg(f32, 0.0).copy())

    return kernel


def guarded(count: int) -> Callable[..., None]:
    def kernel(n: u32, x: Ptr[f32]) -> None:
        with when(ptx.tid.x < n):
            _tile(count // 80, x, reg(f32, 0.0).copy())

    return kernel


def integer(count: int) -> Callable[..., None]:
    def kernel(n: u32, x: Ptr[u32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        a, b = x[i], x[i] ^ n
        for step in range(count // 5):
            c = (a << step % 31) ^ b
            a, b = b + c, ptx.mad.lo.u32(a, SEED, c) & 0x7FFFFFFF | step
        x[i] = a ^ b

    return kernel


def branchy(count: int) -> Callable[..., None]:
    def kernel(n: u32, x: Ptr[u32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        a = reg(u32, 1)
        a.set(x[i])
        for step in range(count // 10):
            with when((a & (1 << step % 30)) != 0):
                a += step
            with when(a > n):
                a.set(a ^ SEED)
            if step % 50 == 0:
                with loop(0, 3) as k:
                    a += k
        x[i] = a

    return kernel


def wide(count: int) -> Callable[..., None]:
    """Every result in a register of its own, all needed at the end."""

    def kernel(n: u32, x: Ptr[u32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        a = x[i]
        values = []
        for step in range(count // 3):
            a = a * SEED + step
            values.append(a)
        for value in values:
            a = a ^ value
        x[i] = a

    return kernel


FAMILIES = {
    "tile": Family("fma, 8 x 8 tile", tile), "guarded": Family("the same under `if i < n`", guarded),
    "integer": Family("integer ALU", integer), "branchy": Family("a block for every 4", branchy),
    "wide": Family("a register for every one", wide),
}


def _arguments(family: str) -> tuple[int, np.ndarray[Any, Any]]:
    kind = np.float32 if family in ("tile", "guarded") else np.uint32
    return THREADS, np.arange(THREADS).astype(kind)


def _compiler_like(text: str) -> str:
    """The text as a compiler lays it out: tabs, and a tab behind the mnemonic."""
    lines = []
    for line in text.splitlines():
        body = line.strip()
        if line.startswith("    ") and body.endswith(";"):
            head, _, rest = body.partition(" ")
            if head.startswith("@"):
                guard, (head, _, rest) = head + " ", rest.partition(" ")
                head = guard + head
            line = f"\t{head} \t{rest}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _first_traced(family: str, count: int) -> dict[str, float]:
    n, x = _arguments(family)
    make = FAMILIES[family].make(count)
    start = thread_time()
    kernel = ptx_kernel(make)
    with use("emulator"):
        kernel[1, THREADS](n, x)
    return {"first": thread_time() - start}


def _first_foreign(text: str, family: str) -> dict[str, float]:
    n, x = _arguments(family)
    start = thread_time()
    module = load(text)
    with use("emulator"):
        module["kernel"][1, THREADS](n, x)
    return {"first": thread_time() - start}


def _stages(family: str, count: int) -> dict[str, float]:
    """Seconds that each stage takes in a process that has loaded its code, and not seen the kernel before."""
    from ptxdsl.analysis.stores import shared_memory, written_parameters
    from ptxdsl.emulator.program import Program
    from ptxdsl.text import parse, to_text
    from ptxdsl.verify import verify

    _first_traced(family, 100)
    found: dict[str, float] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        start = thread_time()
        result = call()
        found[name] = thread_time() - start
        return result

    kernel = ptx_kernel(FAMILIES[family].make(count))
    with paused():
        module = timed("trace", kernel.ir)
        text = _compiler_like(timed("print", lambda: to_text(module)))
        parsed = timed("parse", lambda: parse(text))
        timed("verify", lambda: verify(parsed, foreign=True))
        timed("effects", lambda: (written_parameters(parsed, "kernel"), shared_memory(parsed, "kernel")))
        timed("lower", lambda: Program(parsed).code("kernel", (THREADS, 1, 1)))
    return {**found, "instructions": sum(1 for _ in parsed.function("kernel").instructions())}


def _child(mode: str, family: str, count: int, cache: str) -> dict[str, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PTXDSL_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    command = [sys.executable, __file__, "--child", mode, family, str(count), cache]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = json.loads(out)
    return found


def _run_child(mode: str, family: str, count: int, cache: str) -> dict[str, float]:
    path = os.path.join(cache, f"{family}{count}.ptx")
    if mode == "prepare":
        kernel = ptx_kernel(lineinfo=False)(FAMILIES[family].make(count))
        with open(path, "w") as file:
            file.write(_compiler_like(kernel.ptx()))
        _first_foreign(_compiler_like(kernel.ptx()), family)
    if mode == "stages":
        return _stages(family, count)
    once = _first_traced(family, 100)["first"]
    if mode == "foreign":
        with open(path) as file:
            return {**_first_foreign(file.read(), family), "once": once}
    return {**_first_traced(family, count), "once": once}


def _measured(family: str, count: int, cache: str, rounds: int) -> dict[str, list[float]]:
    """Everything that ``rounds`` processes of each kind say, by name."""
    _child("prepare", family, count, cache)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for mode in ("stages", "traced", "foreign"):
            for name, value in _child(mode, family, count, cache).items():
                found.setdefault(mode if name == "first" else name, []).append(value)
    return found


def main(rounds: int = 7) -> int:
    """Print the table; 1 where a first call is over its limit."""
    rows, once, over = [], [], False
    with tempfile.TemporaryDirectory() as cache:
        for family in sys.argv[1:] or FAMILIES:
            for count, limit in WANTED.items():
                found = _measured(family, count, cache, rounds)
                once += found["once"]
                size = found["instructions"][0]
                limit *= size / count
                stages = [f"{min(found[name]) / size * 1e6:.1f}" for name in STAGES]
                firsts = [
                    f"{min(found[mode]) * 1e3:.0f} ({statistics.median(found[mode]) * 1e3:.0f})"
                    for mode in ("traced", "foreign")
                ]
                slow = max(min(found["traced"]), min(found["foreign"])) > limit
                over = over or slow
                what = FAMILIES[family].what
                rows.append((what, f"{size:.0f}", *stages, *firsts, f"{limit * 1e3:.0f}", "OVER" if slow else "ok"))
    print(table(("family", "instructions", *STAGES, "traced ms", "foreign ms", "wanted", ""), rows))
    print(f"the first kernel of a process, once: {statistics.median(once) * 1e3:.0f} ms")
    return int(over)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_run_child(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])))
    else:
        sys.exit(main())
