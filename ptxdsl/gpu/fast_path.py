"""The fast path of a launch: one that was made before, made again in two microseconds.

The first launch of a kernel with arguments of certain Python types goes through every check there is. Once it went
well, only what can differ between two objects of the same types is checked again: dtype, contiguity, device and
alignment of an array, the range of a number. With anything unusual the fast path declines, and the launch goes through
all checks again, which either accept or explain it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import config
from ..ir.signature import KernelParameter, PtrType
from ..launch import FastPath
from ..launch.arrays import library_of, view
from ..launch.device_array import DeviceArray
from ..launch.torch_tensors import count_version, is_torch
from ..launch.scalars import STRUCT_CODES, packed_range
from ..types import ScalarType
from .function import LoadedFunction, Prepared

__all__ = ["fast_path", "packers", "parameter_struct", "stream_of"]

Pack = Callable[[Any], Any]


class Unusual(Exception):
    """An argument that the fast path does not take."""


def parameter_struct(parameters: Sequence[KernelParameter], offsets: Sequence[int]) -> struct.Struct | None:
    """What packs all parameters at their offsets with one call; None if one is no plain number or pointer."""
    layout, size = ["<"], 0
    for parameter, offset in zip(parameters, offsets):
        code = "Q" if isinstance(parameter.annotation, PtrType) else STRUCT_CODES.get(str(parameter.annotation))
        if code is None:
            return None
        layout.append(f"{offset - size}x{code}")
        size = offset + struct.calcsize(f"<{code}")
    return struct.Struct("".join(layout))


def packers(
    parameters: Sequence[KernelParameter], args: Sequence[object], ordinal: int, written: frozenset[str]
) -> tuple[Pack, ...] | None:
    """One function an argument, which gives the number to pack for another object of the same type."""
    found = [_packer(p, value, ordinal, p.name in written) for p, value in zip(parameters, args)]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def _packer(parameter: KernelParameter, value: Any, ordinal: int, written: bool) -> Pack | None:
    kind = parameter.annotation
    if isinstance(kind, PtrType):
        seen = view(value)
        if seen is None or seen.device != ordinal or seen.itemsize != kind.dtype.bytes or seen.stream is not None:
            return None
        return _pointer(value, ordinal, seen.itemsize, written)
    if not isinstance(kind, ScalarType) or str(kind) not in STRUCT_CODES:
        return None
    if type(value) is not (float if kind.is_float else int):
        return None
    return _within(*packed_range(kind))


def _within(low: float, high: float) -> Pack:
    def pack(value: float) -> float:
        if low <= value <= high:
            return value
        raise Unusual

    return pack


def _pointer(value: Any, ordinal: int, size: int, written: bool) -> Pack | None:
    if type(value) is DeviceArray:
        return _device_array(value.dtype, ordinal)
    if is_torch(value):
        pack = _torch(value.dtype, value.layout, ordinal, size)
        return _counted(pack) if written else pack
    return None


def _device_array(dtype: Any, ordinal: int) -> Pack:
    def pack(array: DeviceArray) -> int:
        if array.dtype is dtype and array.device == ordinal:
            return array.address
        raise Unusual

    return pack


def _torch(dtype: Any, layout: Any, ordinal: int, size: int) -> Pack:
    def pack(tensor: Any) -> int:
        if tensor.dtype is dtype and tensor.layout is layout and tensor.get_device() == ordinal:
            address: int = tensor.data_ptr()
            if tensor.is_contiguous() and not address % size:
                return address
        raise Unusual

    return pack


def _counted(pack: Pack) -> Pack:
    """For a tensor that the kernel stores to."""
    def counted(tensor: Any) -> int:
        address: int = pack(tensor)
        if tensor.requires_grad or tensor.is_neg():
            raise Unusual
        count_version(tensor)
        return address

    return counted


def fast_path(
    function: LoadedFunction, prepared: Prepared, packs: tuple[Pack, ...], pack_into: Callable[..., None],
    stream: int | Callable[[], int],
) -> FastPath:
    """A launch that went well, ready to be made with other objects of the same types.

    A closure over everything that stays the same, since here each lookup of an attribute counts.
    """
    gpu, handle, slots = function.gpu, function.handle, function.slots
    submit, current, context = gpu.cu.cuLaunchKernelEx, gpu.cu.cuCtxGetCurrent, int(gpu.context)
    fixed = None if callable(stream) else function.struct(prepared, stream)
    backend_token, token = config.backend_token, config.backend_token()

    def launch(args: Sequence[object]) -> bool:
        if backend_token() != token:
            return False
        try:
            values = [pack(value) for pack, value in zip(packs, args)]
        except Unusual:
            return False
        if int(current()[1]) != context:
            return False
        struct = fixed if fixed is not None else function.struct(prepared, stream())  # type: ignore[operator]
        try:
            memory, _, address = slot = slots.pop()
        except IndexError:
            memory, _, address = slot = function.slot()
        pack_into(memory, 0, *values)
        (result,) = submit(struct, handle, address, 0)
        slots.append(slot)
        if result != 0:
            raise gpu.error("cuLaunchKernelEx", result)
        return True

    return launch


def stream_of(owner: object, ordinal: int) -> Callable[[], int] | None:
    """A function for the current stream of the library that an array belongs to; None if it has none."""
    library = library_of(owner)
    if library == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return lambda: int(raw(ordinal))
        return lambda: int(torch.cuda.current_stream(ordinal).cuda_stream)
    if library == "cupy":
        return lambda: int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None
