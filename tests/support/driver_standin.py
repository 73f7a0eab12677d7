"""A stand-in for ``cuda.bindings.driver``, for machines without a GPU.

It is as strict as the driver and more talkative: every call's arguments are checked for type and value, every handle
for being one that it gave out, every address for lying in an allocation. Its kernels are Python functions that are
given the parameters as the GPU would see them, and its memory is real, so results can be looked at.
"""

from __future__ import annotations

import ctypes
import enum
import struct
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl.gpu import device

CONTEXT = 0xC0DE


class Result(enum.IntEnum):
    """The errors that the tests need."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


OK = Result.CUDA_SUCCESS


class Handle(int):
    """What the driver gives out for a context, module, function, stream or event."""


class Numbers:
    """Constants of the driver: every name is its own value."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("CU_"):
            return name
        raise AttributeError(name)


class CUlaunchAttribute:
    """As the driver's; an attribute that does not exist cannot be set."""

    __slots__ = ("id", "value")

    def __init__(self) -> None:
        self.id: Any = None
        self.value = types.SimpleNamespace(clusterDim=types.SimpleNamespace(x=0, y=0, z=0), cooperative=0)


class CUlaunchConfig:
    """As the driver's."""

    __slots__ = (
        "attrs", "blockDimX", "blockDimY", "blockDimZ", "gridDimX", "gridDimY", "gridDimZ", "hStream", "numAttrs",
        "sharedMemBytes",
    )


class Launched:
    """What one launch asked for."""

    def __init__(self, config: CUlaunchConfig, parameters: bytes) -> None:
        self.grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        self.block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        self.shared, self.stream = config.sharedMemBytes, int(config.hStream)
        assert config.numAttrs == len(config.attrs)
        self.attributes = {a.id: a.value for a in config.attrs}
        self.parameters = parameters


class Standin:
    """A module like ``cuda.bindings.driver`` with one GPU in it."""

    CUdevice_attribute = CUfunction_attribute = CUjit_option = CUlaunchAttributeID = Numbers()
    CUevent_flags = types.SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUlaunchConfig, CUlaunchAttribute = CUlaunchConfig, CUlaunchAttribute

    def __init__(self, capability: int = 90, count: int = 1) -> None:
        self.capability, self.count = capability, count
        self.memory: dict[int, Any] = {}
        self.calls: list[str] = []
        self.images: list[bytes] = []
        self.launches: list[Launched] = []
        self.attributes: dict[str, int] = {}
        self.limits = {"MAX_THREADS_PER_BLOCK": 1024, "SHARED_SIZE_BYTES": 0}
        self.fail: dict[str, Result] = {}
        self.kernel: Callable[[Launched], None] = lambda _: None
        self.layout = "I"
        self.globals: dict[bytes, tuple[int, Any]] = {}
        self.capturing = 0
        self.waits: list[tuple[int, int]] = []
        self.local = threading.local()

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if not name.startswith("cu"):
            return value
        self.calls.append(name)
        if name in self.fail:
            return lambda *_: (self.fail[name],)
        return value

    # -- devices and contexts

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        assert flags == 0
        return (OK,)

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        return OK, self.count

    def cuDeviceGet(self, ordinal: int) -> tuple[Any, ...]:
        assert 0 <= ordinal < self.count
        return OK, Handle(ordinal)

    def cuDeviceGetName(self, length: int, handle: Handle) -> tuple[Any, ...]:
        assert length >= 64
        assert isinstance(handle, Handle)
        return OK, b"Stand-in\0\0\0"

    def cuDeviceGetAttribute(self, attribute: str, handle: Handle) -> tuple[Any, ...]:
        assert isinstance(handle, Handle)
        return OK, {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": self.capability // 10,
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": self.capability % 10,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10 if self.capability >= 90 else 64 << 10,
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": 10,
        }[attribute]

    def cuDevicePrimaryCtxRetain(self, handle: Handle) -> tuple[Any, ...]:
        assert isinstance(handle, Handle)
        return OK, Handle(CONTEXT + handle)

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return OK, Handle(getattr(self.local, "context", 0))

    def cuCtxSetCurrent(self, context: Handle) -> tuple[Any, ...]:
        assert isinstance(context, Handle)
        assert CONTEXT <= context < CONTEXT + self.count
        self.local.context = int(context)
        return (OK,)

    def inside(self) -> None:
        assert CONTEXT <= getattr(self.local, "context", 0) < CONTEXT + self.count, "no context is current"

    def cuCtxSynchronize(self) -> tuple[Any, ...]:
        self.inside()
        return (OK,)

    # -- memory

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:
        self.inside()
        assert type(nbytes) is int
        assert nbytes > 0
        buffer = ctypes.create_string_buffer(b"\xcd" * (nbytes + 256), nbytes + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = (nbytes, buffer)
        return OK, Handle(address)

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        self.inside()
        del self.memory[address]
        return (OK,)

    def check(self, address: int, nbytes: int) -> None:
        assert isinstance(address, int)
        known = [(start, size) for start, (size, _) in self.memory.items()]
        known += [(ctypes.addressof(buffer), size) for size, buffer in self.globals.values()]
        assert any(start <= address and address + nbytes <= start + size for start, size in known)

    def cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        return self.cuMemcpyHtoDAsync(to, source, nbytes, 0)

    def cuMemcpyDtoH(self, to: int, source: int, nbytes: int) -> tuple[Any, ...]:
        return self.cuMemcpyDtoHAsync(to, source, nbytes, 0)

    def cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> tuple[Any, ...]:
        self.inside()
        assert isinstance(stream, int)
        self.check(to, nbytes)
        ctypes.memmove(to, source, nbytes)
        return (OK,)

    def cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: int) -> tuple[Any, ...]:
        self.inside()
        assert isinstance(stream, int)
        self.check(source, nbytes)
        ctypes.memmove(to, source, nbytes)
        return (OK,)

    # -- streams and events

    def cuStreamSynchronize(self, stream: int) -> tuple[Any, ...]:
        assert isinstance(stream, int)
        return (OK,)

    def cuStreamIsCapturing(self, stream: int) -> tuple[Any, ...]:
        assert isinstance(stream, int)
        return OK, self.capturing

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        assert flags == 2
        return OK, Handle(0xE0)

    def cuEventRecord(self, event: Handle, stream: int) -> tuple[Any, ...]:
        assert isinstance(event, Handle)
        self.recorded = stream
        return (OK,)

    def cuStreamWaitEvent(self, stream: int, event: Handle, flags: int) -> tuple[Any, ...]:
        assert isinstance(event, Handle)
        assert flags == 0
        self.waits.append((self.recorded, stream))
        return (OK,)

    def cuEventDestroy(self, event: Handle) -> tuple[Any, ...]:
        assert isinstance(event, Handle)
        return (OK,)

    # -- kernels

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        self.inside()
        assert image.startswith(b"\x7fELF")
        self.images.append(image)
        return OK, Handle(0x30D)

    def cuModuleLoadDataEx(self, image: bytes, count: int, options: list[str], values: list[Any]) -> tuple[Any, ...]:
        self.inside()
        assert image.endswith(b"\0")
        assert image.lstrip().startswith(b".version")
        assert count == len(options) == len(values)
        assert options == ["CU_JIT_ERROR_LOG_BUFFER", "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"]
        assert len(values[0]) == values[1] > 1000
        self.images.append(image)
        return OK, Handle(0x30E)

    def cuModuleGetFunction(self, module: Handle, name: bytes) -> tuple[Any, ...]:
        assert isinstance(module, Handle)
        assert name in self.images[-1]
        return OK, Handle(0xF0)

    def cuModuleGetGlobal(self, module: Handle, name: bytes) -> tuple[Any, ...]:
        assert isinstance(module, Handle)
        assert name in self.images[-1]
        if name not in self.globals:
            self.globals[name] = (64, ctypes.create_string_buffer(64))
        return OK, Handle(ctypes.addressof(self.globals[name][1])), 64

    def cuFuncGetAttribute(self, attribute: str, function: Handle) -> tuple[Any, ...]:
        assert isinstance(function, Handle)
        return OK, self.limits[attribute.removeprefix("CU_FUNC_ATTRIBUTE_")]

    def cuFuncSetAttribute(self, function: Handle, attribute: str, value: int) -> tuple[Any, ...]:
        assert isinstance(function, Handle)
        self.attributes[attribute] = value
        return (OK,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: Handle, threads: int, nbytes: int
    ) -> tuple[Any, ...]:
        assert isinstance(function, Handle)
        assert type(threads) is int
        assert type(nbytes) is int
        return OK, 2

    @staticmethod
    def CUstream(handle: int) -> Handle:
        return Handle(handle)

    def cuLaunchKernelEx(self, config: CUlaunchConfig, function: Handle, pointers: int, extra: int) -> tuple[Any, ...]:
        self.inside()
        assert type(config) is CUlaunchConfig
        assert isinstance(function, Handle)
        assert extra == 0
        sizes = [struct.calcsize(f"<{code}") for code in self.layout]
        addresses = (ctypes.c_uint64 * len(sizes)).from_address(pointers)
        for address, size in zip(addresses, sizes):
            assert address % size == 0
        launched = Launched(config, b"".join(ctypes.string_at(a, n) for a, n in zip(addresses, sizes)))
        self.launches.append(launched)
        self.kernel(launched)
        return (OK,)

    def numbers(self, launched: Launched) -> tuple[Any, ...]:
        """The parameters of a launch as numbers."""
        return struct.unpack("<" + self.layout, launched.parameters)

    def array(self, address: int, count: int, dtype: Any = np.float32) -> np.ndarray:
        """Memory of the GPU as an array."""
        self.check(address, count * np.dtype(dtype).itemsize)
        return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype)


def install(monkeypatch: pytest.MonkeyPatch, standin: Any) -> Any:
    """Put a stand-in where cuda-python would be."""
    for name in ("cuda", "cuda.bindings"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", standin)
    monkeypatch.setattr(sys.modules["cuda.bindings"], "driver", standin, raising=False)
    device._bindings.cache_clear()
    device._driver.cache_clear()
    return standin
