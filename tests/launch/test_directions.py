"""``In``, ``Out`` and ``InOut`` on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from launch_harness import error_of

import ptxdsl
from ptxdsl import Array, In, InOut, Out, Ptr, ptx, ptx_kernel, u32
from ptxdsl.errors import UninitializedError


@ptx_kernel
def update(x: Ptr[u32], y: Ptr[u32]) -> None:
    i = ptx.tid.x
    x[i] += 1
    y[i] = x[i] + y[i]


def test_what_comes_back(rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 1 << 20, (2, 33), np.uint32)
    before = x.copy(), y.copy()
    for _ in range(3):
        update[1, 32](In(x), InOut(y))
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y[:32], before[1][:32] + 3 * (before[0][:32] + 1))
    assert y[32] == before[1][32]


@pytest.mark.emulator(reason="about what the emulator finds")
def test_out_begins_poisoned() -> None:
    x, y = np.arange(33, dtype=np.uint32), np.zeros(33, np.uint32)
    update[1, 32](x, Out(y))
    assert (y[:32] == 0xCDCDCDCD + np.arange(1, 33, dtype=np.uint32)).all()
    assert y[32] == 0xCDCDCDCD
    with pytest.raises(UninitializedError):
        update.configure(1, 32, sanitize="init")(x, Out(y))


def test_read_only_arrays_go_in() -> None:
    x, y = np.ones(32, np.uint32), np.zeros(32, np.uint32)
    x.flags.writeable = False
    update[1, 32](In(x), y)
    assert x.tolist() == [1] * 32
    assert y.tolist() == [2] * 32
    y.flags.writeable = False
    for name, args in (("x", (x, Out(y))), ("y", (In(x), Out(y)))):
        error = error_of(lambda: update[1, 32](*args))
        assert error.message == (
            f"argument `{name}` of kernel `update` is a numpy array of uint32, shape (32,), read-only; "
            "the kernel writes to it"
        )


def test_what_is_no_array() -> None:
    error = error_of(lambda: update[1, 32](In(3), np.zeros(32, np.uint32)))
    assert error.message == "argument `x` of kernel `update` is the int 3; Ptr[u32] wants an array of uint32"


def test_device_arrays_are_never_copied() -> None:
    x, y = (ptxdsl.to_device(np.arange(32, dtype=np.uint32)) for _ in range(2))
    update[1, 32](In(x), Out(y))
    assert x.numpy().tolist() == list(range(1, 33))
    assert y.numpy().tolist() == [2 * i + 1 for i in range(32)]


def test_arrays_with_shape_and_strides() -> None:
    @ptx_kernel
    def rows(m: Array[u32, 2], out: Array[u32, 1]) -> None:
        m[ptx.tid.x, 0] += 1
        out[ptx.tid.x] = m[ptx.tid.x, 0]

    m, out = np.arange(12, dtype=np.uint32).reshape(4, 3), np.zeros(4, np.uint32)
    rows[1, 4](In(m[:, 1:]), Out(out))
    assert m.ravel().tolist() == list(range(12))
    assert out.tolist() == [2, 5, 8, 11]


def test_names(rng: np.random.Generator) -> None:
    assert repr(Out(np.zeros(1))) == "Out(array([0.]))"
    x, y = rng.integers(0, 9, (2, 32), np.uint32)
    expected = x + 1 + y
    update[1, 32](y=InOut(y), x=In(x))
    np.testing.assert_array_equal(y, expected)
