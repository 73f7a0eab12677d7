"""Parts of device arrays share one record of which bytes were never written, whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, Ptr, UninitializedError, loop, ptx, ptx_kernel, u8, u32, use
from ptxdsl.launch import unwritten


@pytest.fixture(autouse=True)
def on_the_emulator() -> Iterator[None]:
    with use("emulator"):
        yield


@ptx_kernel
def total(x: Array[u32, 2], out: Ptr[u32]) -> None:
    with loop(0, x.shape[0]) as i:
        with loop(0, x.shape[1]) as j:
            ptx.red.global_.add.u32(out, x[i, j])


@ptx_kernel
def fill(x: Array[u32, 2], value: u32) -> None:
    with loop(0, x.shape[0]) as i:
        with loop(0, x.shape[1]) as j:
            x[i, j] = value


def box(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[slice, slice]:
    (a, b), (c, d) = (sorted(int(n) for n in rng.choice(extent + 1, 2, replace=False)) for extent in shape)
    return slice(a, b, int(rng.integers(1, 3))), slice(c, d)


def read(x: Any) -> bool:
    """Whether all elements may be read, as a sanitized launch finds."""
    out = np.zeros(1, np.uint32)
    try:
        total.configure(1, 1, sanitize="init")(x, out)
    except UninitializedError:
        return False
    return True


def test_what_parts_write_is_written(rng: np.random.Generator) -> None:
    """Against a mask of one entry an element, by the host and by sanitized launches, of parts and of the whole."""
    for _ in range(12):
        shape = (int(rng.integers(2, 6)), int(rng.integers(2, 9)))
        x, left = ptxdsl.empty(shape, u32), np.ones(shape, bool)
        for step in range(8):
            key = box(rng, shape)
            part = x[key] if rng.random() < 0.8 else x[key][:, ::1]
            way = int(rng.integers(5))
            if way == 0:
                x[key] = step
            elif way == 1:
                part.copy_from(np.full(part.shape, step, np.uint32))
            elif way == 2:
                fill.configure(1, 1, sanitize="init")(part, step)
            elif way == 3:
                x.T[key[::-1]] = ptxdsl.to_device(np.full(part.shape[::-1], step, np.uint32))
            else:
                key = (slice(0, 0), slice(0, 0))
            left[key] = False
            compare(x.unwritten, left)
        looked = box(rng, shape)
        assert read(x[looked]) == (not left[looked].any())


def compare(record: Any, left: np.ndarray) -> None:
    """Whether a record says what a mask of one entry an element does."""
    if record is True or record is None:
        assert left.all() if record else not left.any()
    else:
        found = record.mask() if hasattr(record, "mask") else record
        assert np.array_equal(found.reshape(*left.shape, 4), np.repeat(left[..., None], 4, 2))


def test_what_goes_unseen_may_have_written_the_part() -> None:
    """A launch without a sanitizer, numpy's arrays, other libraries."""
    x, left = ptxdsl.empty((4, 8), u32), np.ones((4, 8), bool)
    fill[1, 1](x[1:2], 3)
    left[1] = False
    compare(x.unwritten, left)
    np.asarray(x[2:3])[:] = 1
    left[2] = False
    compare(x.unwritten, left)
    x[3:].__dlpack__()
    left[3] = False
    compare(x.unwritten, left)
    assert read(x[1:])
    assert not read(x)


def test_views_of_other_types_share_the_record() -> None:
    x, left = ptxdsl.empty((4, 8), u32), np.ones((4, 8), bool)
    x.reshape(-1)[3:31] = 0
    left.reshape(-1)[3:31] = False
    compare(x.unwritten, left)
    x.view(u8)[-4:] = 0
    left[3, 7] = False
    compare(x.unwritten, left)
    x.view(u8)[:13] = 0
    x[0, 3] = 1
    compare(x.unwritten, np.zeros((4, 8), bool))
    assert read(x)


def test_parts_that_begin_within_a_granule() -> None:
    """Shadow words are of as many bytes as the smallest access of a kernel."""
    @ptx_kernel
    def touch(x: Ptr[u32], y: Ptr[u8]) -> None:
        x[0] = x[1]

    x, y = ptxdsl.to_device(np.zeros(2, np.uint32)), ptxdsl.empty(64, u8)
    y[3:9] = 1
    for low, high in [(1, 20), (2, 3), (5, 6), (7, 64)]:
        touch.configure(1, 1, sanitize="init")(x, y[low:high])
    mask = y.unwritten
    assert [n for n in range(64) if not mask[n]] == list(range(3, 9))
    touch.configure(1, 1, sanitize="init")(x, y)
    mask = y.unwritten
    assert [n for n in range(64) if not mask[n]] == list(range(3, 9))


def test_arrays_without_dimensions() -> None:
    @ptx_kernel
    def k(x: Ptr[u32], out: Ptr[u32]) -> None:
        out[0] = x[0]

    out, x = np.zeros(1, np.uint32), ptxdsl.empty((), u32)
    with pytest.raises(UninitializedError):
        k.configure(1, 1, sanitize="init")(x, out)
    x[...] = 5
    k.configure(1, 1, sanitize="init")(x, out)
    assert out[0] == 5


def test_of_large_memory_in_parts_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwritten, "LARGEST_MASK", 100)
    x = ptxdsl.empty((4, 8), u32)
    assert x[:2].unwritten is True
    x[3] = 1
    assert x.unwritten is None
    assert read(x)


def test_a_record_that_was_asked_for_stays_what_it_was() -> None:
    x = ptxdsl.empty((4, 8), u32)
    x[0] = 1
    kept, of_part = x.unwritten, x[:2].unwritten
    x[1] = 1
    x.unwritten = kept
    left = np.ones((4, 8), bool)
    left[0] = False
    compare(x.unwritten, left)
    x[1] = 1
    x[:2].unwritten = of_part
    compare(x.unwritten, left)
