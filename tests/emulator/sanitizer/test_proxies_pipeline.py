"""A warp-specialised product (TMA, mbarriers, wgmma) with one mistake each, as compilers' output has it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import hopper_matmul
import ml_dtypes
import numpy as np
import pytest

import ptxdsl
from ptxdsl import DeadlockError, tensor_map
from ptxdsl.emulator.sanitizer.sanitizer import collect

COLUMNS, STAGES = 16, 3
STAGE = (128 + COLUMNS) * 64 * 2
LINES = hopper_matmul.kernel(COLUMNS, STAGES).ptx().split("\n")
_DONE = "wgmma.wait_group.sync.aligned 0;"


def _places(pattern: str) -> list[int]:
    return [number for number, line in enumerate(LINES) if re.search(pattern, line)]


def _with(pattern: str, old: str, new: str, which: int | None = 0) -> str:
    """The kernel, changed in the lines that a pattern matches, or one of them."""
    lines, places = list(LINES), _places(pattern)
    for place in places if which is None else [places[which]]:
        assert re.search(old, lines[place])
        lines[place] = re.sub(old, new, lines[place])
    return "\n".join(lines)


def _early() -> str:
    """A stage is freed before its products are made."""
    lines, wait = list(LINES), _places("wgmma.wait_group")[0]
    arrive = next(place for place in _places("mbarrier.arrive.shared") if place > wait)
    lines[wait], lines[arrive] = "", f"{lines[arrive]}\n{_DONE}"
    return "\n".join(lines)


def launch(text: str, seed: int | None = None) -> tuple[list[Any], bool]:
    rng = np.random.default_rng()
    a, b = (rng.standard_normal((rows, 2 * STAGES * 64)).astype(ml_dtypes.bfloat16) for rows in (128, COLUMNS))
    c = np.zeros((128, COLUMNS), np.float32)
    maps = [tensor_map(each, (len(each), 64), swizzle=128) for each in (a, b)]
    kernel = ptxdsl.load(text)["matmul"].configure(
        (1, 1), 288, shared=STAGES * STAGE, backend="emulator", sanitize=("race", "init"), seed=seed
    )
    with collect() as found, suppress(DeadlockError):
        kernel(*maps, c, *map(np.uint32, (128, COLUMNS, COLUMNS, 2)))
    return found, bool(np.allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, atol=1e-2))


@pytest.mark.parametrize("seed", [None, 0])
def test_the_right_one(seed: int | None) -> None:
    found, right = launch("\n".join(LINES), seed)
    assert [str(finding) for finding in found] == []
    assert right


_READ_EARLY = r"wgmma of dynamic_shared\[\d+\], whose copy by thread \(256, 0, 0\) is not known to be complete"
_OVERWRITTEN = r"race on dynamic_shared\[\d+\] in shared memory: bulk copy by thread \(256, 0, 0\) and wgmma by thread"

_TWICE = "bulk copy by thread .* and bulk copy by"


@pytest.mark.parametrize(("text", "message"), [
    (_with("wgmma.wait_group", _DONE, ""), _OVERWRITTEN),
    (_with("wgmma.wait_group", "aligned 0", "aligned 1", None), _OVERWRITTEN),
    (_with("wgmma.commit_group", "wgmma.*", "", 0), _OVERWRITTEN), (_early(), _OVERWRITTEN),
    (_with("wgmma.fence", "wgmma.*", "", None), "wgmma by warp 0 with no `wgmma.fence` before it"),
    (_with("wgmma.fence", "wgmma.*", "", 0), "wgmma by warp 0 with no `wgmma.fence` before it"),
    (_with("try_wait.*, .mine", "mbarrier.*(%p[0-9]+),.*", r"setp.eq.u32 \1, 0, 0;"), _READ_EARLY),
    (_with("try_wait.*, .mine", r"\[pipe_full\]", "[pipe_full+8]"), _READ_EARLY),
    (_with("expect_tx", str(STAGE), str(128 * 64 * 2)), _READ_EARLY),
    (_with("cp.async.bulk", r"dynamic_shared\+49152", "dynamic_shared", 1), _TWICE),
    (_with("cp.async.bulk", r"dynamic_shared\+16384", "dynamic_shared", 2), _TWICE),
    (_with(r"bar.sync 0", "bar.*", ""), "mbarrier operation by thread .* and mbarrier operation by thread"),
], ids=range(12))
def test_wrong_ones(text: str, message: str) -> None:
    found, _ = launch(text)
    assert found
    assert any(re.search(message, finding.message) for finding in found), [finding.message for finding in found]
    assert all(finding.hint and finding.access.line for finding in found)


def test_a_stage_that_is_not_waited_for() -> None:
    """What is overwritten is told beside the deadlock that follows."""
    found, right = launch(_with("try_wait.*, .producer", "mbarrier.*(%p[0-9]+),.*", r"setp.eq.u32 \1, 0, 0;", None))
    assert not right
    assert any(re.search(_TWICE, finding.message) for finding in found), [finding.message for finding in found]
