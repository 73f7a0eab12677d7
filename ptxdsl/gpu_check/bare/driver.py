"""The CUDA driver by ctypes: the functions that a recorded launch takes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

__all__ = ["Driver", "DriverFault"]

_VERSION = 12000
"""Which of its interfaces the driver is asked for."""
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_CLUSTER, _COOPERATIVE = 4, 2
_SHARED_STATIC, _SHARED_DYNAMIC, _NON_PORTABLE = 1, 8, 14
_PORTABLE_SHARED, _PORTABLE_CLUSTER = 48 << 10, 8
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6


class DriverFault(Exception):
    """A function of the driver failed."""


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    ]


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("padding", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class Driver:
    """The first GPU, its primary context made current."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        self._library = ctypes.CDLL(library)
        self._functions: dict[str, Any] = {}
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(128), ctypes.c_int()
        self.call("cuDeviceGetName", name, 128, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.name, self.version = name.value.decode().strip(), version.value
        self.capability = self._ask(_CAPABILITY_MAJOR, device) * 10 + self._ask(_CAPABILITY_MINOR, device)

    def _ask(self, attribute: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    def _function(self, name: str) -> Any:
        """A function of the driver in the version asked for, which its name alone does not say."""
        if name not in self._functions:
            found = ctypes.c_void_p()
            result = self._library.cuGetProcAddress(
                name.encode(), ctypes.byref(found), _VERSION, ctypes.c_uint64(0)
            )
            if result or not found.value:
                raise DriverFault(f"this driver has no {name}")
            self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int)(found.value)
        return self._functions[name]

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; DriverFault names what it gives but success."""
        result = self._function(name)(*arguments)
        if result:
            raise DriverFault(f"{name}: {self._name_of(result)}")

    def _name_of(self, result: int) -> str:
        text = ctypes.c_char_p()
        try:
            self._function("cuGetErrorName")(result, ctypes.byref(text))
        except DriverFault:
            return f"error {result}"
        return f"{(text.value or b'error').decode()} ({result})"

    def allocate(self, nbytes: int) -> int:
        """The address of so many bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree", ctypes.c_uint64(address))

    def write(self, address: int, data: bytes) -> None:
        """Copy to the GPU."""
        if data:
            self.call("cuMemcpyHtoD", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy from the GPU."""
        if not nbytes:
            return b""
        data = ctypes.create_string_buffer(nbytes)
        self.call("cuMemcpyDtoH", data, ctypes.c_uint64(address), ctypes.c_size_t(nbytes))
        return data.raw

    def load(self, image: bytes) -> ctypes.c_void_p:
        """A module of machine code."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def compile(self, text: str) -> ctypes.c_void_p:
        """A module of PTX, which the driver compiles."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
        options = (ctypes.c_uint32 * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_uint64 * 2)(ctypes.addressof(log), len(log))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), text.encode() + b"\0", 2, options, values)
        except DriverFault as fault:
            raise DriverFault(f"{fault} {log.value.decode(errors='replace').strip()}".strip()) from None
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        """Give a module back."""
        self.call("cuModuleUnload", module)

    def variable(self, module: ctypes.c_void_p, name: str) -> int:
        """The address of a variable of a module."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.call("cuModuleGetGlobal", ctypes.byref(address), ctypes.byref(size), module, name.encode())
        return address.value

    def launch(
        self, module: ctypes.c_void_p, entry: str, grid: Sequence[int], block: Sequence[int], shared: int,
        cluster: Sequence[int] | None, cooperative: bool, parameters: Sequence[bytes],
    ) -> None:
        """Launch a kernel, and wait for its end."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        static = ctypes.c_int()
        self.call("cuFuncGetAttribute", ctypes.byref(static), _SHARED_STATIC, function)
        if static.value + shared > _PORTABLE_SHARED:
            self.call("cuFuncSetAttribute", function, _SHARED_DYNAMIC, shared)
        attributes = (_Attribute * 2)()
        config = _Config(*grid, *block, shared, None, ctypes.addressof(attributes), 0)
        if cluster:
            if cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
                self.call("cuFuncSetAttribute", function, _NON_PORTABLE, 1)
            attributes[config.count].id = _CLUSTER
            attributes[config.count].value[0:3] = cluster
            config.count += 1
        if cooperative:
            attributes[config.count].id = _COOPERATIVE
            attributes[config.count].value[0] = 1
            config.count += 1
        memory = [_aligned(data) for data in parameters]
        pointers = (ctypes.c_void_p * max(len(memory), 1))(*(address for _, address in memory))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        self.call("cuCtxSynchronize")


def _aligned(data: bytes) -> tuple[Any, int]:
    """Bytes at an address that is a multiple of 128, which a tensor map asks for."""
    buffer = ctypes.create_string_buffer(len(data) + 128)
    address = -(-ctypes.addressof(buffer) // 128) * 128
    ctypes.memmove(address, data, len(data))
    return buffer, address
