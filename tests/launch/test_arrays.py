"""Arrays of other libraries, read by their protocols."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launch_harness import binder, error_of, readonly

from ptxdsl.ir.signature import Ptr
from ptxdsl.launch import Buffer
from ptxdsl.launch.arrays import View, contiguous, describe, view
from ptxdsl.types import bf16, f32, u32


class Dlpack:
    """An array that speaks DLPack alone, of the old or the new protocol."""

    def __init__(self, array: np.ndarray, versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned:
            if options:
                raise TypeError("unexpected keyword argument")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool])
def test_dlpack(versioned: bool, dtype: Any) -> None:
    array = np.ones((3, 5), dtype)[:, 1:4]
    seen = view(Dlpack(array, versioned))
    assert seen is not None
    assert seen[:7] == (array.ctypes.data, np.dtype(dtype).name, array.itemsize, (3, 3), array.strides, False, None)


def test_dlpack_keeps_read_only() -> None:
    seen = view(Dlpack(readonly(), True))
    assert seen is not None
    assert seen.readonly


def test_dlpack_outlives_its_owner() -> None:
    (buffer,) = binder(Ptr[f32])((Dlpack(np.arange(1000, dtype=np.float32), True),))
    assert isinstance(buffer, Buffer)
    assert np.frombuffer(ctypes.string_at(buffer.address, buffer.nbytes), np.float32).tolist() == list(range(1000))


class OnGpu:
    """Something that says that it is on a GPU."""

    def __init__(self, stream: int | None = None, **interface: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (4, 2), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3, "stream": stream,
            **interface,
        }


def test_cuda_array_interface() -> None:
    value = OnGpu(stream=7)
    assert view(value) == View(0x7F0000000000, "float32", 4, (4, 2), (8, 4), False, 0, value, 7)
    assert view(OnGpu(mask=np.ones(4))) is None
    seen = view(OnGpu(strides=(4, 16), typestr="<i8", data=(8, True)))
    assert seen is not None
    assert (seen.strides, seen.dtype, seen.readonly) == ((4, 16), "int64", True)


def test_cuda_array_interface_without_a_code_for_bf16() -> None:
    value = OnGpu(typestr="<V2")
    value.dtype = np.dtype(ml_dtypes.bfloat16)  # type: ignore[attr-defined]
    (buffer,) = binder(Ptr[bf16])((value,))
    assert isinstance(buffer, Buffer)
    assert buffer.device == 0


def test_an_array_that_raises() -> None:
    class Broken:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("the tensor requires grad")

    error = error_of(lambda: binder(u32, Ptr[f32])((1, Broken())))
    assert error.message == "argument `b` of kernel `k` is a Broken, which says RuntimeError: the tensor requires grad"


def torch_tensor(device: str = "cpu", **changes: Any) -> Any:
    """An object with the attributes of a torch tensor; torch itself is not needed."""
    kind = type("Tensor", (), {"__module__": "torch"})
    tensor = kind()
    facts = {
        "layout": "torch.strided", "device": types.SimpleNamespace(type=device, index=1 if device == "cuda" else None),
        "dtype": "torch.bfloat16", "shape": (3, 4), "element_size": lambda: 2, "stride": lambda: (4, 1),
        "data_ptr": lambda: 0x1000, **changes,
    }
    tensor.__dict__.update(facts)
    kind.data_ptr = None
    return tensor


def test_torch() -> None:
    seen = view(torch_tensor())
    assert seen is not None
    assert seen[:7] == (0x1000, "bfloat16", 2, (3, 4), (8, 2), False, None)
    seen = view(torch_tensor("cuda"))
    assert seen is not None
    assert seen.device == 1
    error = error_of(lambda: binder(Ptr[f32])((torch_tensor("cuda"),)))
    assert error.message == (
        "argument `a` of kernel `k` is a torch tensor of bfloat16, shape (3, 4) on GPU 1; Ptr[f32] wants float32"
    )
    assert error.hint == "declare `a: Ptr[bf16]`; or `a = a.to(torch.float32)`"
    error = error_of(lambda: binder(Ptr[bf16])((torch_tensor(stride=lambda: (1, 3)),)))
    assert error.hint == "`a = a.contiguous()`"


def test_contiguous(rng: np.random.Generator) -> None:
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))
        array = np.zeros(tuple(n + int(rng.integers(0, 2)) for n in shape), np.int16)[tuple(slice(n) for n in shape)]
        array = array.transpose(rng.permutation(array.ndim)) if rng.random() < 0.5 else array
        assert contiguous(array.shape, array.strides, 2) == array.flags.c_contiguous, (array.shape, array.strides)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "the int 3"), (None, "None"), ("x" * 100, "a str"), ([1], "a list"), (np.int8(3), "the numpy int8 3"),
     (object(), "an object"), (np.zeros(2), "a numpy array of float64, shape (2,)")],
)
def test_descriptions(value: Any, text: str) -> None:
    assert describe(value) == text
