"""What threads of the last blocks leave out is proven by cases, and found where it is read all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptxdsl import Ptr, loop, ptx, ptx_kernel, shared, u32, use, when
from ptxdsl.emulator.sanitizer import proofs
from ptxdsl.emulator.sanitizer.sanitizer import collect


@ptx_kernel
def squares(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """Squares of 8 threads each; those from the n-th on are left out."""
    s, t = shared(u32, 72), ptx.tid.x
    square = ptx.ctaid.x * 8 + (t >> 3)
    with when(square < n):
        s[t] = x[t]
    ptx.bar.sync(0)
    with when(square < n):
        y[ptx.ctaid.x * 64 + t] = s[(t ^ 7) + k]


@ptx_kernel
def edges(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """A tile in two dimensions; ``k`` more columns are read than written."""
    s, t, row = shared(u32, 64), ptx.tid.x, ptx.tid.y
    column = ptx.ctaid.x * 8 + t
    with when(column < n):
        with when(ptx.ctaid.y * 8 + row < n):
            s[row * 8 + t] = x[t]
    ptx.bar.sync(0)
    with when((column < n + k) & (ptx.ctaid.y * 8 + row < n)):
        y[(ptx.ctaid.y * 8 + row) * (n + k) + column] = s[row * 8 + t]


@ptx_kernel
def first_block(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    with when(ptx.ctaid.x == 0):
        s[t] = x[t]
    ptx.bar.sync(0)
    with when(ptx.ctaid.x <= k):
        y[ptx.ctaid.x * 64 + t] = s[63 - t]


@ptx_kernel
def blocks_apart(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """A barrier that only some of the blocks come to; the others write elsewhere."""
    s, t = shared(u32, 64), ptx.tid.x
    with when(ptx.ctaid.x * 64 < n):
        s[t] = x[t]
        ptx.bar.sync(0)
        y[ptx.ctaid.x * 64 + t] = s[63 - t]
    with when(ptx.ctaid.x * 64 >= n + k):
        y[ptx.ctaid.x * 64 + t] = s[t]


@ptx_kernel
def written_late(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """Blocks on either side of the n-th thread write before a barrier that all pass; those in between do not."""
    s, t = shared(u32, 64), ptx.tid.x
    i = ptx.ctaid.x * 64 + t
    with when(i < n):
        s[t] = 1
    with when(i >= n + k):
        s[t] = 2
    ptx.bar.sync(0)
    y[i] = s[63 - t]


@ptx_kernel
def as_many_turns(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """As many turns as the number of the block, with barriers in each, but n at most."""
    s, t = shared(u32, 72), ptx.tid.x
    with loop(ptx.min.u32(ptx.ctaid.x + 1, n)) as i:
        s[t] = x[i]
        ptx.bar.sync(0)
        y[ptx.ctaid.x * 64 + t] = s[63 - t + k]
        ptx.bar.sync(0)


CASES: list[tuple[Any, dict[str, Any], int, int]] = [
    (squares, {"grid": 5, "n": 35}, 1, 8), (edges, {"grid": (4, 4), "block": (8, 8), "n": 27}, 1, 1),
    (first_block, {"grid": 4}, 1, 1), (written_late, {"grid": 6, "n": 200}, 1, 1),
    (as_many_turns, {"grid": 8, "n": 7}, 1, 1),
]


def launched(
    kernel: Any, k: int, chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
) -> tuple[set[str], list[Any]]:
    """The kinds of findings of a launch, and what is proven of it."""
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    chosen = {"block": 64, "grid": 1, "n": 1000} | chosen
    x, y = np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32)
    with use("emulator"), collect() as findings:
        kernel.configure(chosen["grid"], chosen["block"], sanitize=("race", "init"))(x, y, chosen["n"], k=k)
    return {finding.kind for finding in findings}, made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_what_some_blocks_leave_out(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, chosen, reads, k = case
    found, made = launched(kernel, 0, chosen, monkeypatch)
    assert not found
    assert len(made[0].written) >= reads
    assert launched(kernel, k, chosen, monkeypatch)[0] == {"init"}


def test_blocks_that_pass_other_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = launched(blocks_apart, 1 << 20, {"grid": 6, "n": 200}, monkeypatch)
    assert not found
    assert made[0].written
    assert launched(blocks_apart, 0, {"grid": 6, "n": 200}, monkeypatch)[0] == {"init"}
