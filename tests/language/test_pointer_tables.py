"""Tables of pointers, `Ptr[Ptr[f32]]`: a launch takes a list of arrays, the kernel loads their addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Kernel, LaunchError, MemoryFault, Ptr, PtxTypeError, TraceError, f32, f64, ptx, ptx_kernel, reg, s32, u32, when,
)

pytestmark = pytest.mark.emulator(reason="about tables of host arrays, which a GPU does not take")


@ptx_kernel
def move(sources: Ptr[Ptr[f32]], targets: Ptr[Ptr[f32]], n: u32) -> None:
    """Array b of sources, added to array b of targets; the table is offset by an int and by a Value."""
    i = ptx.tid.x
    with when(i < n):
        source, target = sources[ptx.ctaid.x], (targets + 1)[ptx.ctaid.x.bits(s32) - 1]
        target[i] = target[i] + source[i]


def test_arrays_from_anywhere(rng: np.random.Generator) -> None:
    arrays = rng.standard_normal((6, 50)).astype(np.float32)
    sources, targets = [a.copy() for a in arrays[:3]], [a.copy() for a in arrays[3:]]
    move[3, 64](sources, targets, 50)
    for before, source, target in zip(arrays[3:], sources, targets):
        assert (target == before + source).all()
    assert (np.array(sources) == arrays[:3]).all()


def test_each_array_has_its_own_bounds() -> None:
    arrays = [np.zeros(50, np.float32), np.zeros(49, np.float32)]
    with pytest.raises(MemoryFault, match=r"after the end of sources\[1\]"):
        move[2, 64](arrays, [np.zeros(50, np.float32) for _ in range(2)], 50)


def test_beyond_the_table() -> None:
    arrays = [np.zeros(4, np.float32)]
    with pytest.raises(MemoryFault, match="sources"):
        move[2, 32](arrays, [np.zeros(4, np.float32) for _ in range(2)], 4)


def test_a_read_only_array_is_not_written() -> None:
    target = np.zeros(4, np.float32)
    target.flags.writeable = False
    with pytest.raises(MemoryFault, match=r"targets\[0\]"):
        move[1, 32]([np.zeros(4, np.float32)], [target], 4)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (np.int64(4), "` of kernel `move` is the numpy int64 4; Ptr[Ptr[f32]] wants a list of arrays"),
        ([np.zeros(4)], "[0]` of kernel `move` is a numpy array of float64, shape (4,); Ptr[f32] wants float32"),
        ([1.0], "[0]` of kernel `move` is the float 1.0; Ptr[f32] wants an array of float32"),
    ],
)
def test_wrong_arguments(sources: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        move[1, 32](sources, [np.zeros(4, np.float32)], 4)
    assert caught.value.message == f"argument `sources{message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (lambda table: table.load(0, width=2), "a table of pointers gives one pointer at a time"),
        (lambda table: table.store(0, ptx.clock64), "a table of pointers cannot be written"),
        (lambda table: table[0] + reg(f64, 0.0), "a pointer is indexed by integers"),
    ],
)
def test_wrong_uses(line: Callable[[Any], object], message: str) -> None:
    def kernel(table: Ptr[Ptr[f32]]) -> None:
        line(table)

    with pytest.raises(PtxTypeError, match=message):
        Kernel(kernel).ptx()


def test_annotations() -> None:
    assert str(Ptr[Ptr[f32]]) == "Ptr[Ptr[f32]]"
    with pytest.raises(TraceError, match="Ptr takes one scalar type"):
        Ptr[Ptr[Ptr[f32]]]  # type: ignore[type-arg]
