"""A GPU, through NVIDIA's driver and cuda-python: whether there is one, its context, its memory, its errors."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import DriverError, LaunchError, caller
from ..isa.targets import TARGETS, serves
from .error_hints import EXPLANATIONS

__all__ = ["Driver", "driver", "forget", "unavailable"]


# ---------------------------------------------------------------------------------------------------------------------
# Is there a GPU?


@functools.cache
def _bindings() -> Any:
    """``cuda.bindings.driver``, initialised; LaunchError says what is missing. Checks for the library first, since
    on a machine without a driver the import of the bindings costs 50 ms and says no more.
    """
    name = "cuda.bindings.driver"
    if name not in sys.modules:
        library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            ctypes.CDLL(library)
        except OSError:
            raise LaunchError(f"no NVIDIA driver: {library} cannot be loaded") from None
    try:
        cu: Any = __import__(name, fromlist=["driver"])
    except ImportError:
        raise LaunchError("cuda-python is not installed", hint="pip install 'ptxdsl[cuda]'") from None
    try:
        result, *_ = cu.cuInit(0)
        count = 0
        if result == 0:
            result, count = cu.cuDeviceGetCount()
    except RuntimeError as error:
        raise LaunchError(f"no NVIDIA driver: {error}") from None
    if result != 0:
        raise LaunchError(f"the NVIDIA driver does not start: {explained(result)}")
    if not count:
        raise LaunchError("the NVIDIA driver has no GPU")
    return cu


def unavailable() -> str | None:
    """Why there is no GPU to use; None if there is one."""
    try:
        _bindings()
    except LaunchError as error:
        return error.message
    return None


def explained(result: Any) -> str:
    """The name of a driver error, and what it means."""
    name = str(getattr(result, "name", result))
    text = EXPLANATIONS.get(name.removeprefix("CUDA_ERROR_"), "")
    return f"{name} ({int(result)}){': ' if text else ''}{text}"


# ---------------------------------------------------------------------------------------------------------------------
# One GPU


class Driver:
    """A GPU with its primary context, which it shares with torch, CuPy and all else in the process."""

    def __init__(self, ordinal: int = 0) -> None:
        self.cu = _bindings()
        self.device = ordinal
        handle = self.call("cuDeviceGet", ordinal)
        self.name = self.call("cuDeviceGetName", 128, handle).partition(b"\0")[0].decode()
        attribute = self.cu.CUdevice_attribute

        def ask(name: str) -> int:
            return int(self.call("cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))

        self.capability = ask("COMPUTE_CAPABILITY_MAJOR") * 10 + ask("COMPUTE_CAPABILITY_MINOR")
        self.shared = ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.processors = ask("MULTIPROCESSOR_COUNT")
        self.context = self.call("cuDevicePrimaryCtxRetain", handle)
        self._context, self._current = int(self.context), self.cu.cuCtxGetCurrent

    def call(self, function: str, *arguments: Any) -> Any:
        """A function of the driver: its result, or a DriverError that explains."""
        result, *values = getattr(self.cu, function)(*arguments)
        if result != 0:
            raise self.error(function, result)
        return values[0] if len(values) == 1 else tuple(values) if values else None

    def error(self, function: str, result: Any) -> DriverError:
        name = str(getattr(result, "name", result))
        faults = ("ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "LAUNCH_FAILED", "ASSERT", "ILLEGAL_INSTRUCTION")
        fault = name.removeprefix("CUDA_ERROR_") in faults
        return DriverError(
            f"{function}: {explained(result)}", loc=caller(), name=name,
            hint='`with ptxdsl.use("emulator"):` names the thread and the line' if fault else None,
        )

    def enter(self) -> None:
        """Make this GPU's context the current one of the thread."""
        result, current = self._current()
        if result != 0 or int(current) != self._context:
            self.call("cuCtxSetCurrent", self.context)

    @contextmanager
    def uncaptured(self) -> Iterator[None]:
        """In this GPU's context, and allowed to do what no graph holds while a stream is captured into one.

        Such is to load, to allocate and to free: it takes effect at once, and once.
        """
        self.enter()
        exchange = "cuThreadExchangeStreamCaptureMode"
        before = self.call(exchange, self.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            yield
        finally:
            self.call(exchange, before)

    def allocate(self, nbytes: int) -> int:
        """The address of so many bytes of memory; 0 for none."""
        if not nbytes:
            return 0
        with self.uncaptured():
            return int(self.call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        """Give memory back."""
        if address:
            with self.uncaptured():
                self.call("cuMemFree", address)

    def to_device(self, address: int, host: np.ndarray[Any, Any]) -> None:
        """Copy a contiguous array to the GPU."""
        self.enter()
        if host.nbytes:
            self.call("cuMemcpyHtoD", address, host.ctypes.data, host.nbytes)

    def to_host(self, host: np.ndarray[Any, Any], address: int) -> None:
        """Copy to a contiguous array, when what was submitted to the GPU is done."""
        self.enter()
        self.call("cuCtxSynchronize")
        if host.nbytes:
            self.call("cuMemcpyDtoH", host.ctypes.data, address, host.nbytes)

    def target(self, wanted: str) -> str:
        """What to assemble for, to run PTX of target ``wanted`` here; LaunchError if it cannot run here."""
        same = [t for t in TARGETS.values() if t.number == self.capability]
        if not same:
            return f"sm_{self.capability}"
        for target in sorted(same, key=lambda target: target.suffix):
            if serves(target.name, wanted):
                return target.name
        raise LaunchError(f"the kernel is for {wanted}, the GPU ({self.name}) is sm_{self.capability}", loc=caller())


_lock = threading.Lock()


@functools.cache
def _driver(ordinal: int) -> Driver:
    return Driver(ordinal)


def driver(ordinal: int = 0) -> Driver:
    """The GPU of that number."""
    with _lock:
        return _driver(ordinal)


def forget() -> None:
    """Ask the driver again what there is: for tests, where it changes."""
    _bindings.cache_clear()
    _driver.cache_clear()
