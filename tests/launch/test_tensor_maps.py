"""Tensor maps on the host: what they hold, and what is refused with its reason."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxdsl
from ptxdsl import tensor_map
from ptxdsl.ir.signature import TensorMap
from ptxdsl.isa.tensor_maps import ELEMENTS, SWIZZLES, decode
from ptxdsl.launch import Buffer, Scalar


def _aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    memory = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : memory.size - 64 + start].view(dtype).reshape(shape)


def test_fields(rng: np.random.Generator) -> None:
    shape = (*map(int, rng.integers(2, 6, 4)), 64)
    array = _aligned(shape, np.float16)[:, 1:, :, :, :24]
    box, steps = (*map(int, rng.integers(1, 257, 4)), 16), (8, 1, 2, 3, 1)
    made = tensor_map(array, box, swizzle=32, element_strides=steps, fill="nan", l2_promotion=256)
    fields = decode(bytes(made))
    assert fields["global_address"] == (array.ctypes.data,)
    assert fields["global_dim"] == array.shape[::-1]
    assert fields["global_stride"] == tuple(stride // 16 for stride in array.strides[-2::-1])
    assert (fields["box_dim"], fields["element_stride"]) == (box[::-1], steps[::-1])
    names = ("rank", "elemtype", "swizzle_mode", "fill_mode", "l2_promotion", "interleave_layout")
    assert [fields[name] for name in names] == [(5,), (6,), (1,), (1,), (3,), (0,)]
    last = array.ctypes.data + sum((n - 1) * step for n, step in zip(array.shape[:-1], array.strides)) + 24 * 2
    assert made.nbytes == last - array.ctypes.data


@pytest.mark.parametrize(
    ("dtype", "name"), [
        (np.uint8, "u8"), (np.int8, "u8"), (np.bool_, "u8"), (ml_dtypes.float8_e5m2, "u8"), (np.int16, "u16"),
        (np.uint32, "u32"), (np.int32, "s32"), (np.uint64, "u64"), (np.int64, "s64"), (np.float16, "f16"),
        (np.float32, "f32"), (np.float64, "f64"), (ml_dtypes.bfloat16, "bf16"),
    ],
)
def test_element_types(dtype: Any, name: str) -> None:
    fields = decode(bytes(tensor_map(_aligned((4, 64), dtype), (1, 16))))
    assert (fields["elemtype"][0], fields["tf32"][0]) == (ELEMENTS[name].code, ELEMENTS[name].tf32)


@pytest.mark.parametrize("name", SWIZZLES)
def test_swizzles_by_name_and_by_bytes(name: str) -> None:
    array = _aligned((4, 64))
    fields = decode(bytes(tensor_map(array, (1, 8), swizzle=name)))
    assert (fields["swizzle_mode"][0], fields["swizzle_atomicity"][0]) == SWIZZLES[name][:2]
    if name in ("32B", "64B", "128B"):
        by_bytes = tensor_map(array, (1, 8), swizzle=int(name[:-1]))
        assert bytes(by_bytes) == bytes(tensor_map(array, (1, 8), swizzle=name))


def test_the_array_goes_with_it() -> None:
    from launch_harness import binder

    array = _aligned((4, 64))[:, :32]
    map_ = tensor_map(array, (1, 8))
    (scalar,) = binder(TensorMap)((map_,))
    assert isinstance(scalar, Scalar)
    assert scalar.data == bytes(map_)
    (buffer,) = scalar.targets
    assert isinstance(buffer, Buffer)
    assert (buffer.address, buffer.nbytes, buffer.owner is array) == (array.ctypes.data, 3 * 256 + 128, True)


_WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (_aligned((4, 64)).T, {"box": (8, 1)}, "its last dimension must be contiguous"),
    (_aligned((4, 64))[:, 1:], {}, "a tensor map wants a multiple of 16"),
    (_aligned((4, 65)), {}, "a tensor map wants multiples of 16 bytes, below 2**40"),
    (np.float32(3), {}, "is no array"),
    (_aligned((1, 1, 1, 1, 1, 4)), {"box": (1,) * 6}, "has 6 dimensions; a tensor map has 1 to 5"),
    (_aligned((4, 64), np.complex64), {}, "has elements that no tensor map knows"),
    (_aligned((0, 64)), {}, "has an empty dimension"),
    (_aligned((4, 64)), {"box": (1, 257)}, "box is (1, 257); each must be from 1 to 256"),
    (_aligned((4, 64)), {"box": (1,)}, "box is (1,); it must be 2 integers, one for each dimension of the array"),
    (_aligned((4, 64)), {"box": (1, 6)}, "a row of the box has 6 elements of 32 bits, 24 bytes; it must be a multiple"),
    (_aligned((4, 64)), {"box": (1, 32), "swizzle": 64}, "has 128 bytes; with swizzle 64B it may have 64"),
    (_aligned((4, 64)), {"swizzle": 48}, "swizzle is 48; it must be 32, 64, 96, 128 or one of none, 32B"),
    (_aligned((4, 64)), {"element_strides": (9, 1)}, "element_strides is (9, 1); each must be from 1 to 8"),
    (_aligned((4, 64)), {"fill": "ones"}, "fill is 'ones'; it must be one of 'zeros', 'nan'"),
    (_aligned((4, 64), np.int32), {"fill": "nan"}, "fill is 'nan', and s32 has none"),
    (_aligned((4, 64)), {"l2_promotion": 32}, "l2_promotion is 32; it must be one of 0, 64, 128, 256"),
    (_aligned((4, 64)), {"dtype": "f16"}, "has elements of 32 bits; f16 wants 16"),
    (_aligned((4, 64)), {"dtype": "half"}, "dtype is 'half'; it must be one of u8, u16"),
    (_aligned((4, 64)), {"interleave": 16}, "interleave wants 3 dimensions or more; the array has 2"),
    (_aligned((2, 4, 64)), {"interleave": 32, "box": (1, 1, 8)}, "interleave=32 wants swizzle 32B; it is none"),
    (_aligned((4, 64)), {"corners": ((), ())}, "has 2 dimensions; copies of pixels want 3 to 5"),
    (_aligned((2, 4, 64)), {"corners": ((0, 0), (0,))}, "a corner is (0, 0); it must be 1 integers of 16 bits"),
    (_aligned((2, 4, 4, 4, 64)), {"corners": ((16, 0, 0), (0, 0, 0))}, "it must be 3 integers of 5 bits"),
    (_aligned((2, 4, 64)), {"corners": ((0,), (0,)), "box": (1025, 8)}, "it must be 1 to 1024 pixels and 1 to 256"),
    (_aligned((4, 64), np.uint8), {"dtype": "b4x16_p64", "box": (1, 64)}, "wants a box of 128 elements"),
]


@pytest.mark.parametrize(("array", "options", "message"), _WRONG, ids=[message[:30] for _, _, message in _WRONG])
def test_what_is_refused(array: Any, options: dict[str, Any], message: str) -> None:
    options = {"box": (1, 8), **options}
    with pytest.raises(ptxdsl.LaunchError, match=re.escape(message)) as raised:
        tensor_map(array, **options)
    assert raised.value.message.startswith("tensor_map: ")
    assert raised.value.loc is not None
    assert raised.value.loc.file == __file__


def test_maps_of_a_gpu_are_refused_here() -> None:
    map_ = tensor_map(_aligned((4, 64)), (1, 8))
    map_.seen = map_.seen._replace(device=0)
    text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 64 .b8 m[128]) { ret; }"
    with pytest.raises(ptxdsl.LaunchError, match="is a tensor map of an array on GPU 0; the emulator works in host"):
        ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(map_)
