"""Device arrays in the memory of the emulator."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from launch_harness import binder, error_of

from ptxdsl.ir.signature import Ptr
from ptxdsl.kernel.device_arrays import empty, to_device, zeros
from ptxdsl.launch import Buffer
from ptxdsl.types import bf16, f32


def test_device_arrays_on_the_emulator(rng: np.random.Generator) -> None:
    source = rng.random((5, 7), np.float32)
    array = to_device(source, backend="emulator")
    assert array.address % 256 == 0
    assert (array.shape, array.dtype, array.ndim, array.size, array.nbytes) == ((5, 7), source.dtype, 2, 35, 140)
    assert len(array) == 5
    assert array.numpy().tobytes() == source.tobytes() == array.copy_to_host().tobytes()
    (buffer,) = binder(Ptr[f32])((array,))
    assert isinstance(buffer, Buffer)
    assert (buffer.address, buffer.device, buffer.writable) == (array.address, None, True)
    assert np.asarray(array).ctypes.data == array.address
    assert np.from_dlpack(array).ctypes.data == array.address
    assert not hasattr(array, "__cuda_array_interface__")
    array.copy_from(source + 1)
    assert np.array_equal(array.numpy(), source + 1)
    assert zeros((2, 0), f32, backend="emulator").numpy().shape == (2, 0)
    assert empty(3, bf16, backend="emulator").dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: empty(-1, f32), "shape -1 is no int or tuple of ints from 0 on"),
        (lambda: empty((2, 1.5), f32), "shape (2, 1.5) is no int or tuple of ints from 0 on"),
        (lambda: empty(2, object), "a device array cannot hold object"),
        (
            lambda: to_device(np.zeros(3)).copy_from(np.zeros(4)),
            "an array of float64, shape (4,) cannot fill one of float64, shape (3,)",
        ),
    ],
)
def test_bad_device_arrays(call: Callable[[], object], message: str) -> None:
    assert error_of(call).message == message
