"""What is proven of accesses is true of what threads touch: random kernels, run thread by thread."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import ptxdsl
import pytest
from footprint_programs import Kernel, Touch, random_kernel
from ptxdsl import use
from ptxdsl.emulator.sanitizer import proofs

Found = tuple[proofs.Proven, list[int]]


def proven(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Found:
    """What is proven of a launch, which is not run, and the places of the kernel's accesses."""
    found: list[Any] = []

    class Done(Exception):
        pass

    def prove(launch: Any, overlap: bool) -> Any:
        made = proofs._Kernel(launch.spaces, launch.config.block)
        found.append((made.proven(launch, overlap), [
            place for place, s in made.statements if proofs.checked_access(s.form) is not None
        ]))
        raise Done

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    data = [np.zeros(1 << 14, np.uint8) for _ in range(2)]
    with use("emulator"), pytest.raises(Done):
        ptxdsl.load(kernel.text)["k"].configure(kernel.grid, kernel.block, sanitize="all")(*data, kernel.n)
    return found[0]


def races(touches: list[Touch], arrays: dict[int, str], roles: dict[int, bool]) -> set[int]:
    """The accesses that touch a byte which another thread writes, or write one which another thread touches."""
    by_byte: dict[Any, list[Touch]] = defaultdict(list)
    for touch in touches:
        shared = arrays[touch.access] in "st"
        for byte in range(touch.start, touch.start + touch.nbytes):
            by_byte[(touch.array, byte, *((touch.block, touch.interval) if shared else ()))].append(touch)
    found = set()
    for group in by_byte.values():
        threads: dict[str, set[tuple[int, int]]] = {"read": set(), "write": set(), "atomic": set()}
        kinds = ["atomic" if roles[touch.access] else "write" if touch.writes else "read" for touch in group]
        for touch, kind in zip(group, kinds):
            threads[kind].add((touch.block, touch.thread))
        for touch, kind in zip(group, kinds):
            others = threads["write"] | (threads["atomic"] if kind != "atomic" else set())
            others |= threads["read"] if kind != "read" else set()
            if others - {(touch.block, touch.thread)}:
                found.add(touch.access)
    return found


def unwritten(touches: list[Touch], arrays: dict[int, str], roles: dict[int, bool]) -> set[int]:
    """The accesses that read shared memory which no thread had written before the last barrier."""
    first: dict[Any, int] = {}
    for touch in touches:
        if touch.writes and not roles[touch.access]:
            for byte in range(touch.start, touch.start + touch.nbytes):
                key = touch.block, touch.array, byte
                first[key] = min(first.get(key, 1 << 30), touch.interval)
    return {
        touch.access for touch in touches if arrays[touch.access] in "st" and (not touch.writes or roles[touch.access])
        for byte in range(touch.start, touch.start + touch.nbytes)
        if first.get((touch.block, touch.array, byte), 1 << 30) >= touch.interval
    }


def judge(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Hold the proofs to the truth; accesses that are proven, that could be, and those found written."""
    kernel = random_kernel(seed)
    touches = kernel.touches()
    if touches is None:
        return 0, 0, 0
    found, places = proven(kernel, monkeypatch)
    roles = kernel.atomic
    assert len(places) == len(kernel.arrays)
    racing = races(touches, kernel.arrays, roles)
    wrong = {number for number, place in enumerate(places) if place in found.ordered} & racing
    assert not wrong, (seed, wrong, kernel.text, kernel.grid, kernel.block, kernel.n)
    early = unwritten(touches, kernel.arrays, roles)
    wrong = {number for number, place in enumerate(places) if place in found.written} & early
    assert not wrong, (seed, wrong, kernel.text, kernel.grid, kernel.block, kernel.n)
    return len(found.ordered), len(places) - len(racing), len(found.written)


@pytest.mark.parametrize("part", range(2))
def test_random_kernels(part: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array([judge(int(rng.integers(1 << 40)), monkeypatch) for _ in range(40)]).sum(axis=0)
    assert counts[0]
