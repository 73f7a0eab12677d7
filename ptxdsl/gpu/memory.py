"""The memory of one GPU: its pool, pinned and managed memory, and copies that are complete when they should be.

Device arrays are taken from a pool of our own, so that taking and giving back waits for nothing that runs. What is new
is filled on a stream of our own, which nobody else waits for, and is valid on every stream when the call returns. It is
given back on the default stream, behind all that blocking streams were asked to do before, and behind ptxdsl's own
streams. Non-blocking streams of other libraries are not in that order, and may be gone by then: from the first launch
on one on, memory is taken and given back in the driver's slower way, which waits for the whole GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DriverError, LaunchError, caller
from ..launch.rows import Rows

__all__ = ["STAGING", "Memory"]

STAGING = 512 << 10
"""Bytes of pinned memory by which the small arrays of a launch go."""
_KEPT = 256 << 20
"""Bytes that the pool keeps for itself when they are free."""
_LEGACY, _PER_THREAD = (0, 1), 2
"""The handles of the default streams."""
_PORTABLE, _GLOBAL = 1, 1
"""CU_MEMHOSTALLOC_PORTABLE: pinned for all GPUs. CU_MEM_ATTACH_GLOBAL: managed memory that every stream may use."""


if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Context(Protocol):
        """What the memory needs of its GPU."""

        cu: Any
        device: int
        handle: Any
        context: Any

        def ask(self, attribute: str, /) -> int: ...
        def call(self, function: str, /, *arguments: Any) -> Any: ...
        def current(self) -> AbstractContextManager[None]: ...
        def uncaptured(self) -> AbstractContextManager[None]: ...
        def synchronize(self) -> None: ...
        def retire(self, release: Callable[[], None], /) -> None: ...
        def give_back(self) -> None: ...
        def discard(self, function: str, /, *arguments: Any) -> None: ...
        def is_gone(self) -> bool: ...
        def captures(self, stream: int, /) -> bool: ...
        def beside(self, device: int, /) -> Context: ...

        @property
        def memory(self) -> Memory: ...


class Memory:
    """The memory of a GPU."""

    def __init__(self, gpu: Context) -> None:
        self.gpu, self.device = gpu, gpu.device
        self.side = False
        """Whether a non-blocking stream of another library may use it."""
        self._lock = threading.RLock()
        self._pooled: set[int] = set()
        self._peers: set[int] = set()
        self._staging: list[int] = []
        self._late: list[int] = []
        self._own: set[int] = set()
        self._ended = False

    # -- the pool

    @cached_property
    def _stream(self) -> Any:
        """Where new memory is filled."""
        return self._new_stream("_stream")

    @cached_property
    def _releasing(self) -> Any:
        """Where memory is given back that several streams use."""
        return self._new_stream("_releasing")

    def _new_stream(self, name: str) -> Any:
        with self._lock, self.gpu.uncaptured():
            flags = self.gpu.cu.CUstream_flags.CU_STREAM_NON_BLOCKING
            return self.__dict__.get(name) or self.gpu.call("cuStreamCreateWithPriority", flags, 0)

    @cached_property
    def _pool(self) -> Any:
        """The pool; None on a GPU that has none."""
        gpu, cu = self.gpu, self.gpu.cu
        if not gpu.ask("MEMORY_POOLS_SUPPORTED"):
            return None
        with self._lock:
            if "_pool" in self.__dict__:
                return self.__dict__["_pool"]
            wanted = cu.CUmemPoolProps()
            wanted.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
            wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            wanted.location.id = self.device
            pool = gpu.call("cuMemPoolCreate", wanted)
            threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            gpu.call("cuMemPoolSetAttribute", pool, threshold, cu.cuuint64_t(_KEPT))
            return pool

    def allocate(self, nbytes: int) -> int:
        """The address of so many bytes, valid on every stream; 0 for none."""
        if not nbytes:
            return 0
        self._free_late()
        self.gpu.give_back()
        try:
            return self._take(nbytes)
        except DriverError as error:
            if not error.name.endswith("OUT_OF_MEMORY") or not self._recover():
                raise
            return self._take(nbytes)

    def _take(self, nbytes: int) -> int:
        with self.gpu.uncaptured():
            if self.side or self._pool is None:
                return int(self.gpu.call("cuMemAlloc", nbytes))
            address = int(self.gpu.call("cuMemAllocFromPoolAsync", nbytes, self._pool, self._stream))
            self._pooled.add(address)
            self.gpu.call("cuStreamSynchronize", self._stream)
            return address

    def _recover(self) -> bool:
        """Give back to the GPU what is not used any more; False if that cannot be done now."""
        try:
            self.rest()
        except LaunchError:
            return False
        self.trim()
        if self._pool is not None:
            with self.gpu.uncaptured():
                self.gpu.call("cuStreamSynchronize", self._stream)
                self.gpu.call("cuMemPoolTrimTo", self._pool, 0)
        return True

    def free(self, address: int) -> None:
        """Give memory back, from wherever Python collects it, when the launches that use it are done."""
        if not address or self.gpu.is_gone():
            return
        if address not in self._pooled:
            self.gpu.discard("cuMemFree", address)
            return
        self._pooled.discard(address)
        self._late.append(address)
        with suppress(DriverError):  # where the context is lost, nothing can be given back any more
            self._free_late()

    def _free_late(self) -> None:
        """Give back what was not given back yet, which during a capture it cannot be."""
        late: list[int] = []
        with suppress(IndexError):
            while True:
                late.append(self._late.pop())
        stream = self.behind_all() if late else None
        for address in late:
            if self.side:
                self.gpu.retire(partial(self.gpu.discard, "cuMemFreeAsync", address, self._stream))
            elif stream is None:
                self._late.append(address)
            else:
                self.gpu.discard("cuMemFreeAsync", address, stream)

    def behind_all(self) -> Any:
        """A stream behind all that may use the memory; None where there is none, or while one is captured."""
        own = list(self._own)
        if self.side:
            return None
        if self._captured() or any(self.gpu.captures(stream) for stream in own):
            return None
        if not own and not self._ended:
            return 0
        with self.gpu.uncaptured():
            for stream in (0, *own):
                self._join(self._releasing, stream)
        return self._releasing

    def _join(self, stream: Any, other: Any) -> None:
        """Let a stream wait for what is on another one now."""
        call = self.gpu.call
        event = call("cuEventCreate", self.gpu.cu.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        call("cuEventRecord", event, other)
        call("cuStreamWaitEvent", stream, event, 0)
        call("cuEventDestroy", event)

    # -- streams

    def adopt(self, stream: int) -> None:
        """A non-blocking stream of ptxdsl's has been made, which lives until :meth:`end`."""
        with self.gpu.uncaptured():
            self._own.add(stream)
            if not self._captured():
                self._join(stream, 0)  # copies within the GPU have been submitted there

    def end(self, stream: int) -> None:
        """Destroy such a stream; what is given back afterwards is behind what it still does."""
        if not self.gpu.is_gone():
            with suppress(DriverError), self.gpu.uncaptured():
                self._ended = True
                self._join(self._releasing, stream)
        self._own.discard(stream)
        self.gpu.discard("cuStreamDestroy", stream)

    def uses(self, stream: int) -> None:
        """A launch is made on a stream, of whichever library."""
        if self.side or stream in (*_LEGACY, _PER_THREAD) or stream in self._own:
            return
        with self.gpu.uncaptured():
            if int(self.gpu.call("cuStreamGetFlags", stream)) & 1 and not self.side:
                self.side = True
                self._settle()  # it and those that come after it

    def _settle(self) -> None:
        """Wait for the copies on the default stream, behind which a non-blocking stream is not."""
        if not self._captured():
            self.gpu.call("cuStreamSynchronize", 0)

    @property
    def _unordered(self) -> bool:
        """Whether launches may be on streams that are not behind the default one."""
        return self.side or bool(self._own)

    def allocate_on(self, nbytes: int, stream: int) -> int:
        """Memory for what is submitted to one stream only."""
        with self.gpu.uncaptured():
            if self._pool is None:
                return int(self.gpu.call("cuMemAlloc", nbytes))
            return int(self.gpu.call("cuMemAllocFromPoolAsync", nbytes, self._pool, stream))

    def free_on(self, address: int, stream: int) -> None:
        """Give it back in the order of that stream."""
        if self._pool is None:
            self.gpu.discard("cuMemFree", address)
        else:
            self.gpu.discard("cuMemFreeAsync", address, stream)

    def allocate_managed(self, nbytes: int) -> int:
        """Memory that the host and all GPUs have at one address; 0 for none."""
        with self.gpu.uncaptured():
            return int(self.gpu.call("cuMemAllocManaged", nbytes, _GLOBAL)) if nbytes else 0

    def allocate_pinned(self, nbytes: int) -> int:
        """Memory of the host that stays where it is, which the GPU copies from and to by itself."""
        with self.gpu.uncaptured():
            return int(self.gpu.call("cuMemHostAlloc", nbytes, _PORTABLE))

    def take_staging(self) -> int:
        """``STAGING`` bytes of pinned memory, until they are returned."""
        try:
            return self._staging.pop()
        except IndexError:
            return self.allocate_pinned(STAGING)

    def return_staging(self, address: int) -> None:
        """Return them, when no copy uses them any more."""
        self._staging.append(address)

    def trim(self) -> None:
        """Give back what is kept for later."""
        self._free_late()
        while self._staging:
            self.free_pinned(self._staging.pop())

    def free_pinned(self, address: int) -> None:
        """Give pinned memory back."""
        self.gpu.discard("cuMemFreeHost", address)

    def beside(self, device: int) -> Memory:
        """The memory of another GPU."""
        return self.gpu.beside(device).memory

    # -- order

    def _captured(self) -> bool:
        """Whether the default stream cannot be used, since a blocking stream is captured."""
        try:
            with self.gpu.current():
                self.gpu.call("cuStreamIsCapturing", 0)
        except DriverError as error:
            if "STREAM_CAPTURE" not in error.name:
                raise
            return True
        return False

    def rest(self) -> None:
        """Wait until all that was submitted to the GPU is done; LaunchError while a stream is captured."""
        try:
            if not self._captured():
                self.gpu.synchronize()
                return
        except DriverError as error:
            if "STREAM_CAPTURE" not in error.name:
                raise
        raise LaunchError(
            "the host reads or writes an array on the GPU while a stream is captured into a graph", loc=caller(),
            hint="do it before the capture, or after it",
        )

    def settle(self) -> None:
        """Wait for what a library has put on the default stream, if a launch may not be behind that by itself."""
        if self._unordered:
            with self.gpu.uncaptured():
                self._settle()

    def ready_for(self, stream: int | None) -> None:
        """Let a stream of another library wait for what was submitted so far, as DLPack counts streams."""
        if stream == -1:
            return
        captured = stream is not None and self.gpu.captures(stream)  # a graph cannot wait for what is outside of it
        if self._unordered and not captured:
            self.rest()
        elif stream is None or stream in _LEGACY or self._captured():
            return
        elif captured:
            with self.gpu.uncaptured():
                self.gpu.call("cuStreamSynchronize", 0)
        else:
            with self.gpu.uncaptured():
                self._join(stream, 0)

    # -- contents

    def set(self, address: int, nbytes: int, value: int, *, new: bool) -> None:
        """Make all bytes one value; ``new`` memory is nobody else's yet."""
        if nbytes:
            self._do(new, lambda stream: self.gpu.call("cuMemsetD8Async", address, value, nbytes, stream))

    def upload(self, rows: Iterable[Rows], *, new: bool) -> None:
        """Copy from the host, behind all that was submitted; it is complete when the call returns."""
        if not new:
            self.rest()
        self._do(True, lambda stream: self._copy(rows, stream, "HtoD"))

    def download(self, rows: Iterable[Rows]) -> None:
        """Copy to the host, when all that was submitted is done."""
        self.rest()
        self._do(True, lambda stream: self._copy(rows, stream, "DtoH"))

    def to_host(self, host: np.ndarray[Any, Any], address: int) -> None:
        """Copy to a contiguous array, when all that was submitted is done."""
        nbytes = host.nbytes
        self.download([Rows(host.ctypes.data, address, nbytes, 1, nbytes, nbytes)] if nbytes else [])

    def move(self, rows: Iterable[Rows]) -> None:
        """Copy within the GPU, in the order of the default stream."""
        self._do(False, lambda stream: self._copy(rows, stream, "DtoD"))

    def receive(self, to: int, source: Memory, address: int, nbytes: int) -> None:
        """Copy to new memory from another GPU, when all that was submitted there is done."""
        source.rest()
        if source.device not in self._peers:
            self._peers.add(source.device)
            source.admit(self)
        arguments = to, self.gpu.context, address, source.gpu.context, nbytes
        self._do(True, lambda stream: self.gpu.call("cuMemcpyPeerAsync", *arguments, stream))

    def admit(self, other: Memory) -> None:
        """Let another GPU reach this memory by itself, where the machine has a way."""
        gpu, cu = self.gpu, self.gpu.cu
        if not gpu.call("cuDeviceCanAccessPeer", other.gpu.handle, gpu.handle):
            return
        try:
            with other.gpu.current():
                gpu.call("cuCtxEnablePeerAccess", gpu.context, 0)
        except DriverError as error:
            if not error.name.endswith("PEER_ACCESS_ALREADY_ENABLED"):
                raise
        if self._pool is not None:
            access = cu.CUmemAccessDesc()
            access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access.location.id = other.device
            access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            gpu.call("cuMemPoolSetAccess", self._pool, [access], 1)

    def _do(self, new: bool, submit: Callable[[Any], object]) -> None:
        """Submit work on our own stream and wait for it, or on the default stream where that orders it."""
        if not new and (self._unordered or self._captured()):
            self.rest()
            new = True
        with self.gpu.uncaptured():
            stream = self._stream if new else 0
            submit(stream)
            if new:
                self.gpu.call("cuStreamSynchronize", stream)

    def _copy(self, rows: Iterable[Rows], stream: Any, kind: str) -> None:
        for each in rows:
            if each.height == 1:
                self.gpu.call(f"cuMemcpy{kind}Async", each.to, each.source, each.width, stream)
            else:
                self.gpu.call("cuMemcpy3DAsync", self._pitched(each, kind), stream)

    def _pitched(self, rows: Rows, kind: str) -> Any:
        """``cuMemcpy2DAsync`` may refuse pitches within a GPU; this one takes all."""
        copy, kinds = self.gpu.cu.CUDA_MEMCPY3D(), self.gpu.cu.CUmemorytype
        ends = (("src", rows.source, rows.source_pitch, kind[0]), ("dst", rows.to, rows.to_pitch, kind[-1]))
        for side, address, pitch, where in ends:
            name = "Host" if where == "H" else "Device"
            setattr(copy, f"{side}MemoryType", getattr(kinds, f"CU_MEMORYTYPE_{name.upper()}"))
            setattr(copy, f"{side}{name}", address)
            setattr(copy, f"{side}Pitch", pitch)
            setattr(copy, f"{side}Height", rows.height)
        copy.WidthInBytes, copy.Height, copy.Depth = rows.width, rows.height, 1
        return copy
