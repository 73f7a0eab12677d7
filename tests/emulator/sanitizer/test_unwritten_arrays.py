"""Which bytes of device arrays were never written, from launch to launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, UninitializedError, f32, ptx, ptx_kernel, u16, use
from ptxdsl.emulator.sanitizer import shadow_store, shadow_words

NUMBERS = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 first) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd0, [p]; ld.param.u32 %r2, [first]; mov.u32 %r0, %tid.x; add.u32 %r2, %r2, %r0;
  mad.wide.u32 %rd1, %r2, 4, %rd0; mad.wide.u32 %rd2, %r0, 4, %rd0;
  st.global.u32 [%rd1], %r0; ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1+128], %r1; ret;
}"""


@ptx_kernel
def fill(x: Array[f32, 1]) -> None:
    x[ptx.tid.x] = 1.0


@ptx_kernel
def copy(x: Array[f32, 1], y: Array[f32, 1]) -> None:
    y[ptx.tid.x] = x[ptx.tid.x]


@ptx_kernel
def copy_halves(x: Array[u16, 1], y: Array[u16, 1]) -> None:
    y[ptx.tid.x] = x[ptx.tid.x]


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of arrays that a launch marks as unwritten."""
    found: list[int] = []
    original = shadow_words.mark

    def counted(words: Any, mask: Any, nbytes: int, granule: int) -> None:
        found.append(nbytes)
        original(words, mask, nbytes, granule)

    monkeypatch.setattr(shadow_words, "mark", counted)
    return found


def test_idle_arrays_are_marked_once(marked: list[int]) -> None:
    with use("emulator"):
        kernel = ptxdsl.load(NUMBERS)["k"].configure(1, 32, sanitize="init")
        idle, x = ptxdsl.empty(1 << 20, np.float32), ptxdsl.empty(512, np.float32)
        for _ in range(5):
            kernel(x.address, 0)
        assert sorted(size for size in marked if size in (idle.nbytes, x.nbytes)) == [x.nbytes, idle.nbytes]
        with pytest.raises(UninitializedError):
            kernel(x.address + 4 * 200, 40)


@pytest.mark.parametrize("tools", [False, ("race",), ("memory",), ("barrier",), "init", "all"])
def test_written_by_an_earlier_launch(tools: Any) -> None:
    with use("emulator"):
        x, y = ptxdsl.empty(64, np.float32), ptxdsl.empty(64, np.float32)
        fill.configure(1, 32, sanitize=tools)(x)
        copy.configure(1, 32, sanitize="init")(x, y)
        copy.configure(1, 32, sanitize="init")(y, x)
        if tools and tools[0] in ("i", "a"):
            with pytest.raises(UninitializedError, match=r"x\[32\]"):
                copy.configure(1, 64, sanitize="init")(x, y)


def test_another_granule() -> None:
    """A kernel with smaller accesses divides the same memory more finely."""
    with use("emulator"):
        x, y = ptxdsl.empty(64, np.float32), np.zeros(128, np.uint16)
        fill.configure(1, 32, sanitize="init")(x)
        copy_halves.configure(1, 64, sanitize="init")(x.view(np.uint16), y)
        copy.configure(1, 32, sanitize="init")(x, np.zeros(64, np.float32))
        with pytest.raises(UninitializedError):
            copy.configure(1, 33, sanitize="init")(x, np.zeros(64, np.float32))


def test_epochs_that_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with use("emulator"):
        x, y = ptxdsl.empty(64, np.float32), np.zeros(64, np.float32)
        fill.configure(1, 32, sanitize="init")(x)
        shadow_store.store().renumber()
        copy.configure(1, 32, sanitize="all")(x, y)
        with pytest.raises(UninitializedError, match=r"x\[32\]"):
            copy.configure(1, 64, sanitize="all")(x, y)
