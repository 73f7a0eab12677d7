"""What is proven of reads beside asynchronous copies is true: random pipelines, followed thread by thread."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ptxdsl
import pytest
from ptxdsl import use
from ptxdsl.emulator.sanitizer import proofs

THREADS, CELLS = 64, 256
"""Cells of four bytes in shared memory."""
HEAD = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{{
    .reg .b32 %a, %i, %t, %v, %w; .reg .b64 %x; .reg .pred %p;
    .shared .align 16 .b8 s[{nbytes}];
    ld.param.u64 %x, [x]; mov.u32 %t, %tid.x;
    {body}
    ret;
}}
"""


@dataclass
class Cell:
    """Who has written it, whether the others see that, and the copies that are pending: thread and group."""

    writers: set[int] = field(default_factory=set)
    settled: bool = False
    pending: set[tuple[int, int]] = field(default_factory=set)
    waited: set[int] = field(default_factory=set)


class Pipeline:
    """A random kernel as PTX, and the loads of it that may find memory that is not complete."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.cells = [Cell() for _ in range(CELLS)]
        self.groups = [0] * THREADS
        self.loads = 0
        self.early: set[int] = set()
        self._fill()
        for _ in range(draw.randint(6, 24)):
            draw.choice([self.copy, self.copy, self.copy, self.commit, self.wait, self.barrier, self.barrier,
                         self.store, self.load, self.load])()

    def _fill(self) -> None:
        """Write to all cells before the first barrier."""
        self.lines += ["shl.b32 %a, %t, 4;", "mov.u32 %w, s;", "add.u32 %a, %a, %w;", "st.shared.u32 [%a], 1;",
                       "st.shared.u32 [%a+4], 1;", "st.shared.u32 [%a+8], 1;", "st.shared.u32 [%a+12], 1;"]
        for number, cell in enumerate(self.cells):
            cell.writers.add(number // 4)
        if self.draw.random() < 0.9:
            self.barrier()

    def _threads(self, chance: float = 0.15) -> tuple[str, list[int]]:
        if self.draw.random() > chance:
            return "", list(range(THREADS))
        most = self.draw.choice([1, 5, 32, 40])
        self.lines.append(f"setp.lt.u32 %p, %t, {most};")
        return "@%p ", list(range(most))

    def _address(self) -> list[int]:
        """A cell for each thread, in %a."""
        draw = self.draw
        moved, turned, base = draw.choice([0, 0, 1, 7]), draw.choice([0, 0, 1, 5, 32]), draw.choice([0, 64, 128, 192])
        self.lines += [
            f"xor.b32 %a, %t, {moved};", f"add.u32 %i, %t, {turned}; and.b32 %i, %i, 31;",
            "shfl.sync.idx.b32 %a, %a, %i, 31, -1;" if draw.random() < 0.3 else f"add.u32 %a, %t, {turned};",
        ]
        shuffled = "shfl" in self.lines[-1]
        self.lines += ["bfe.u32 %a, %a, 0, 6;", f"or.b32 %a, %a, {base};", "shl.b32 %a, %a, 2;",
                       "mov.u32 %w, s;", "add.u32 %a, %w, %a;"]
        found = []
        for t in range(THREADS):
            value = ((t & 32) + ((t + turned) & 31)) ^ moved if shuffled else t + turned
            found.append(base | (value & 63))
        return found

    def copy(self) -> None:
        cells = self._address()
        guard, threads = self._threads()
        self.lines.append(f"{guard}cp.async.ca.shared.global [%a], [%x], 4;")
        for t in threads:
            cell = self.cells[cells[t]]
            cell.pending.add((t, self.groups[t]))
            cell.writers.add(t)

    def commit(self) -> None:
        guard, threads = self._threads()
        self.lines.append(f"{guard}cp.async.commit_group;")
        for t in threads:
            self.groups[t] += 1

    def wait(self) -> None:
        guard, threads = self._threads()
        left = self.draw.choice([-1, 0, 0, 1, 2])
        self.lines.append(f"{guard}cp.async.wait_all;" if left < 0 else f"{guard}cp.async.wait_group {left};")
        for cell in self.cells:
            done = {(t, group) for t, group in cell.pending
                    if t in threads and (left < 0 or group < self.groups[t] - left)}
            cell.pending -= done
            cell.waited |= {t for t, _ in done}
        for t in threads if left < 0 else ():
            self.groups[t] += 1

    def barrier(self) -> None:
        self.lines.append("bar.sync 0;")
        for cell in self.cells:
            cell.waited = set()
            cell.settled = bool(cell.writers)

    def store(self) -> None:
        cells = self._address()
        guard, threads = self._threads()
        self.lines.append(f"{guard}st.shared.u32 [%a], 7;")
        for t in threads:
            self.cells[cells[t]].writers.add(t)

    def load(self) -> None:
        cells = self._address()
        guard, threads = self._threads()
        self.lines.append(f"{guard}ld.shared.u32 %v, [%a];")
        for t in threads:
            cell = self.cells[cells[t]]
            visible = cell.settled or cell.writers == {t}
            if cell.pending or cell.waited - {t} or not visible:
                self.early.add(self.loads)
        self.loads += 1

    @property
    def text(self) -> str:
        return HEAD.format(nbytes=4 * CELLS, body="\n    ".join(self.lines))


def written(text: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each load from shared memory whether it is proven that it finds complete memory."""
    found: list[Any] = []

    class Done(Exception):
        pass

    def prove(launch: Any, overlap: bool) -> Any:
        made = proofs._Kernel(launch.spaces, launch.config.block)
        result = made.proven(launch, overlap)
        found.append([place in result.written for place, s in made.statements
                      if s.form.opcode == "ld" and s.form.space == "shared"])
        raise Done

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    with use("emulator"), pytest.raises(Done):
        ptxdsl.load(text)["k"].configure(1, THREADS, sanitize="all")(np.zeros(64, np.uint8))
    return list(found[0])


def test_random_pipelines(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    proven = loads = 0
    for _ in range(40):
        seed = int(rng.integers(1 << 40))
        pipeline = Pipeline(seed)
        if not pipeline.loads:
            continue
        found = written(pipeline.text, monkeypatch)
        wrong = {number for number, each in enumerate(found) if each} & pipeline.early
        assert not wrong, (seed, wrong, pipeline.text)
        proven, loads = proven + sum(found), loads + pipeline.loads - len(pipeline.early)
    assert proven * 2 > loads
