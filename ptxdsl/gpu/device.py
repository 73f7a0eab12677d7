"""A GPU, through NVIDIA's driver and cuda-python: whether there is one, its context, its errors."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .. import locks
from ..errors import DriverError, LaunchError, caller
from ..isa.targets import TARGETS, serves
from ..launch import DEFAULT_STREAMS
from ..launch.arrays import ask_ordinals
from .in_flight import InFlight
from .memory import Memory

__all__ = ["Driver", "driver", "forget", "known", "unavailable"]

_SPAWN = 'start processes anew: `multiprocessing.set_start_method("spawn")`, before the first of them'


# ---------------------------------------------------------------------------------------------------------------------
# Is there a GPU?


@functools.cache
def _found() -> Any:
    """``cuda.bindings.driver``, initialised, or the LaunchError that says what is missing.

    Checks for the library first, since on a machine without a driver the import of the bindings costs 50 ms and says no
    more. What is missing is kept too: every launch on the emulator would look for it again.
    """
    name = "cuda.bindings.driver"
    if name not in sys.modules:
        library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            ctypes.CDLL(library)
        except OSError:
            return LaunchError(f"no NVIDIA driver: {library} cannot be loaded")
    try:
        cu: Any = importlib.import_module(name)
    except ImportError:
        return LaunchError("cuda-python is not installed", hint="pip install 'ptxdsl[cuda]'")
    try:
        result, *_ = cu.cuInit(0)
        count = 0
        if result == 0:
            result, count = cu.cuDeviceGetCount()
    except RuntimeError as error:
        return LaunchError(f"no NVIDIA driver: {error}")
    if result != 0:
        return LaunchError(f"the NVIDIA driver does not start: {explained(result)}")
    return cu if count else LaunchError("the NVIDIA driver has no GPU")


def _bindings() -> Any:
    found = _found()
    if isinstance(found, LaunchError):
        raise found.with_traceback(None)
    return found


def unavailable() -> str | None:
    """Why there is no GPU to use; None if there is one."""
    found = _found()
    return found.message if isinstance(found, LaunchError) else None


def explained(result: Any) -> str:
    """The name of a driver error, and what it means."""
    from .error_hints import EXPLANATIONS

    name = _name(result)
    text = EXPLANATIONS.get(name.removeprefix("CUDA_ERROR_"), "")
    return f"{name} ({int(result)}){': ' if text else ''}{text}"


def _name(result: Any) -> str:
    return str(getattr(result, "name", "an error that these bindings do not know"))


# ---------------------------------------------------------------------------------------------------------------------
# One GPU


class Driver:
    """A GPU with its primary context, which it shares with torch, CuPy and all else in the process."""

    def __init__(self, ordinal: int = 0) -> None:
        self.cu = _bindings()
        self.device = ordinal
        self.in_flight = InFlight()
        self.lost: str | None = None
        """What ended the context, once something has."""
        self._retired: list[Callable[[], None]] = []
        self._behind: list[Callable[[], None]] = []
        """What was retired before the event ``_mark`` was recorded."""
        self._mark: Any = None
        self._giving_back = locks.lock()
        handle = self.call("cuDeviceGet", ordinal)
        self.name = self.call("cuDeviceGetName", 128, handle).partition(b"\0")[0].decode()
        self.handle = handle
        self.capability = self.ask("COMPUTE_CAPABILITY_MAJOR") * 10 + self.ask("COMPUTE_CAPABILITY_MINOR")
        self.shared = self.ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.processors = self.ask("MULTIPROCESSOR_COUNT")
        self.context = self.call("cuDevicePrimaryCtxRetain", handle)
        self._context = int(self.context)
        self.memory = Memory(self)

    def ask(self, attribute: str) -> int:
        """An attribute of the GPU, by the driver's name without ``CU_DEVICE_ATTRIBUTE_``."""
        number = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        return int(self.call("cuDeviceGetAttribute", number, self.handle))

    def call(self, function: str, *arguments: Any) -> Any:
        """A function of the driver: its result, or a DriverError that explains."""
        if _forked:
            raise DriverError(
                f"{function}: this process was forked from one that uses the GPU, which CUDA does not allow",
                loc=caller(), hint=_SPAWN, name="CUDA_ERROR_NOT_INITIALIZED",
            )
        try:
            result, *values = getattr(self.cu, function)(*arguments)
        except ValueError as error:  # a newer driver's result, of which the bindings make no CUresult
            number = re.match(r"(\d+) is not a valid", str(error))
            if number is None:
                raise
            raise self.error(function, int(number[1])) from None
        if result != 0:
            raise self.error(function, result)
        return values[0] if len(values) == 1 else tuple(values) if values else None

    def address_of(self, function: bytes, version: int) -> int:
        """Where a function of the driver is in memory; CUDA's streams a thread are those of the bindings."""
        per_thread = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("0", "")
        flags = self.cu.CUdriverProcAddress_flags
        kind = flags.CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM if per_thread else flags.CU_GET_PROC_ADDRESS_DEFAULT
        return int(self.call("cuGetProcAddress", function, version, kind.value)[0])

    @functools.cached_property
    def several(self) -> bool:
        """Whether there are other GPUs beside it."""
        return int(self.call("cuDeviceGetCount")) > 1

    def error(self, function: str, result: Any) -> DriverError:
        """What a function's result means; of one that ends the context, which launches may have caused it."""
        from .error_hints import LOST

        name = _name(result)
        if name.removeprefix("CUDA_ERROR_") not in LOST:
            return DriverError(f"{function}: {explained(result)}", loc=caller(), name=name)
        first, place = self.in_flight.suspects()
        if self.lost is not None:
            message = f"{function}: GPU {self.device} was lost before, by this: {self.lost}"
            return DriverError(message, loc=caller(), name=name, hint="start the process again")
        self.lost = f"{first}: {explained(result)}"
        return DriverError(
            f"{self.lost}; {function} has told it", loc=place or caller(), name=name,
            hint='`with ptxdsl.use("emulator"):` names the thread and the line; PTXDSL_DEBUG=1 does so by itself',
        )

    def beside(self, ordinal: int) -> Driver:
        """Another GPU."""
        return driver(ordinal)

    def of_stream(self, stream: int) -> Driver:
        """The GPU that a stream is on: this one where it is a default stream."""
        if stream in DEFAULT_STREAMS or not self.several:
            return self
        with self.current():
            return driver(int(self.call("cuStreamGetDevice", stream)))

    # Contexts

    @contextmanager
    def current(self) -> Iterator[None]:
        """This GPU's context is the thread's current one; afterwards it is the one from before.

        Where there was none, that of the first GPU stays, as CUDA's runtime would have it.
        """
        before = int(self.call("cuCtxGetCurrent"))
        if before == self._context:
            yield
        elif before == 0 and self.device == 0:
            self.call("cuCtxSetCurrent", self.context)
            yield
        else:
            self.call("cuCtxPushCurrent", self.context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent")

    @contextmanager
    def uncaptured(self) -> Iterator[None]:
        """In this GPU's context, and allowed to do what no graph holds while a stream is captured into one.

        Such is to load, to allocate and to free: it takes effect at once, and once.
        """
        exchange = "cuThreadExchangeStreamCaptureMode"
        with self.current():
            before = self.call(exchange, self.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                yield
            finally:
                if self.lost is None:  # else that error is the one to tell
                    self.call(exchange, before)

    def grow_stack(self, nbytes: int) -> None:
        """Give each thread at least so much of a call stack, from now on: a launch takes what its context has."""
        which = self.cu.CUlimit.CU_LIMIT_STACK_SIZE
        with self.uncaptured():
            if int(self.call("cuCtxGetLimit", which)) < nbytes:
                self.call("cuCtxSetLimit", which, nbytes)

    def captures(self, stream: int) -> bool:
        """Whether a stream is captured into a graph; the default one cannot be."""
        return stream > 1 and int(self.call("cuStreamIsCapturing", stream)) != 0

    def synchronize_stream(self, stream: int) -> None:
        """Wait until all that was submitted to a stream is done."""
        with self.current(), _printing():
            self.call("cuStreamSynchronize", stream)
        self.in_flight.clear(stream)

    def synchronize(self) -> None:
        """Wait until all that was submitted to the GPU is done."""
        done: list[Callable[[], None]] | None = None
        while done is None or done:  # what is given back may retire more, as a graph its arrays
            with self._giving_back:
                done = self._unmarked() + _taken(self._retired)
            with self.current(), _printing():
                self.call("cuCtxSynchronize")
            self.in_flight.clear()
            for release in done:
                release()

    # Giving back

    def retire(self, release: Callable[[], None]) -> None:
        """Have ``release`` called when the GPU has done all that it was asked to, which may use what it gives back.

        That is known after a wait through :meth:`synchronize`. Where :meth:`.memory.Memory.behind_all` knows a stream
        that is behind everything, it is also asked now and then, so that programs that only wait through other
        libraries keep nothing for good.
        """
        if not self.is_gone():
            self._retired.append(release)
            self.give_back()

    def give_back(self) -> None:
        """Call what was retired and the GPU is done with by now; waits for nothing."""
        if not (self._retired or self._behind) or self.is_gone() or not self._giving_back.acquire(blocking=False):
            return
        done: list[Callable[[], None]] = []
        try:
            with suppress(DriverError), self.uncaptured():  # where the context is lost nothing can be given back
                self._look_at_mark(done)
        finally:
            self._giving_back.release()
        for release in done:
            release()

    def _look_at_mark(self, done: list[Callable[[], None]]) -> None:
        """Take over what is done, and put the event behind what has been retired since."""
        if self._mark is not None and self.cu.cuEventQuery(self._mark)[0] != 0:
            return
        done += self._unmarked()
        stream = self.memory.behind_all() if self._retired else None
        if stream is not None:
            self._behind += _taken(self._retired)
            self._mark = self.call("cuEventCreate", self.cu.CUevent_flags.CU_EVENT_DISABLE_TIMING)
            self.call("cuEventRecord", self._mark, stream)

    def _unmarked(self) -> list[Callable[[], None]]:
        """Take what is behind the event, and the event away."""
        if self._mark is not None:
            self.discard("cuEventDestroy", self._mark)
            self._mark = None
        return _taken(self._behind)

    def discard(self, function: str, *arguments: Any) -> None:
        """Give something back, from wherever Python collects it: silent where the context has ended."""
        if self.is_gone():
            return
        try:
            with self.uncaptured():
                self.call(function, *arguments)
        except DriverError as error:
            from .error_hints import LOST

            if not self.is_gone() and error.name.removeprefix("CUDA_ERROR_") not in ("DEINITIALIZED", *LOST):
                raise

    def is_gone(self) -> bool:
        """Whether nothing can be given back any more."""
        return self.lost is not None or _forked or sys.is_finalizing()

    def target(self, wanted: str) -> str:
        """What to assemble for, to run PTX of target ``wanted`` here; LaunchError if it cannot run here."""
        same = [t for t in TARGETS.values() if t.number == self.capability]
        if not same:
            return f"sm_{self.capability}"
        for target in sorted(same, key=lambda target: target.suffix):
            if serves(target.name, wanted):
                return target.name
        raise LaunchError(f"the kernel is for {wanted}, the GPU ({self.name}) is sm_{self.capability}", loc=caller())


@contextmanager
def _printing() -> Iterator[None]:
    """The driver prints what kernels have printed, by C's buffer: between what Python prints before and after."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        yield
    finally:
        if sys.platform != "win32":
            ctypes.pythonapi.fflush(None)  # of the C library that Python itself uses


def _taken(releases: list[Callable[[], None]]) -> list[Callable[[], None]]:
    """What is in a list now, which is not in it any more: other threads add to it at any time."""
    found = releases[:]
    del releases[: len(found)]
    return found


_lock = locks.lock()
_forked = False
"""Whether this process is a fork of one that used a GPU."""
_drivers: dict[int, Driver] = {}


def driver(ordinal: int = 0) -> Driver:
    """The GPU of that number."""
    with _lock:
        found = _drivers.get(ordinal)
        if found is None:
            count = int(_bindings().cuDeviceGetCount()[1])
            if not 0 <= ordinal < count:
                known = "GPU 0" if count == 1 else f"GPUs 0 to {count - 1}"
                raise LaunchError(f"there is no GPU {ordinal}; this machine has {known}", loc=caller())
            found = _drivers[ordinal] = Driver(ordinal)
        return found


def _ordinal_of(address: int) -> int | None:
    """The GPU that an address belongs to; None where no GPU knows it."""
    cu = _found()
    if isinstance(cu, LaunchError):
        return None
    which = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    result, ordinal = cu.cuPointerGetAttribute(which, address)
    return int(ordinal) if result == 0 else None


ask_ordinals(_ordinal_of)


def known() -> list[Driver]:
    """The GPUs that this process has used."""
    return list(_drivers.values())


def forget() -> None:
    """Ask the driver again what there is: for tests, where it changes."""
    _found.cache_clear()
    _drivers.clear()


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = bool(_drivers)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
