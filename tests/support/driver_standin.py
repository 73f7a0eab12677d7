"""A stand-in for the CUDA driver, below the real cuda-bindings, for machines without a GPU.

It is as strict as the driver and more talkative: every handle must be one that it gave out, every address must lie in
an allocation, and what is wrong beyond that fails the test. Its memory is real, and its kernels are Python functions
that are given the parameters as the GPU would see them.

Work is done as late as the driver may do it: what is submitted to a stream waits there until something asks for it. So
a program that forgets to wait reads what was there before.
"""

from __future__ import annotations

import ctypes
import inspect
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from driver_shim import connect
from stream_standin import Fault, Result, Streams

from ptxdsl.gpu import device

__all__ = ["CONTEXT", "Fault", "Launched", "Result", "Standin", "image_size", "install", "put"]

CONTEXT = 0xC0DE0
"""The context of the first GPU; the others follow."""
_DYNAMIC_SHARED, _NON_PORTABLE = 8, 14
_MADE_UP = 0xFF
"""Handles up to here are streams that the tests make up, of whichever GPU."""
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_STACK_SIZE = 0
_RELEASE_THRESHOLD, _DEVICE_ORDINAL = 4, 9
_FUNCTION_ATTRIBUTES = {0: "MAX_THREADS_PER_BLOCK", 1: "SHARED_SIZE_BYTES"}
_LAUNCH_ATTRIBUTES = {
    2: ("COOPERATIVE", "i"), 4: ("CLUSTER_DIMENSION", "3I"), 6: ("PROGRAMMATIC_STREAM_SERIALIZATION", "i"),
    8: ("PRIORITY", "i"), 10: ("MEM_SYNC_DOMAIN", "I"),
}


class Launched:
    """What one launch asked for."""

    def __init__(self, config: int, function: SimpleNamespace, parameters: bytes) -> None:
        numbers = struct.unpack("<7I", ctypes.string_at(config, 28))
        self.grid, self.block, self.shared = numbers[:3], numbers[3:6], numbers[6]
        self.stream, attributes, count = struct.unpack("<QQI", ctypes.string_at(config + 32, 20))
        self.attributes: dict[str, Any] = {}
        for at in range(attributes, attributes + 72 * count, 72):
            name, layout = _LAUNCH_ATTRIBUTES[ctypes.c_uint32.from_address(at).value]
            values = struct.unpack(f"<{layout}", ctypes.string_at(at + 8, struct.calcsize(layout)))
            self.attributes[name] = values if len(values) > 1 else values[0]
        self.function, self.parameters = function, parameters


def put(address: int, value: int, kind: Any = ctypes.c_uint64) -> None:
    """Store a result."""
    kind.from_address(address).value = value


class Standin(Streams):
    """A driver with one GPU, or with several."""

    def __init__(self, capability: int = 90, count: int = 1) -> None:
        super().__init__()
        self.capability, self.count = capability, count
        self.memory: dict[int, Any] = {}
        """The size of each allocation, and what keeps it, by its address."""
        self.places: dict[int, int] = {}
        """The GPU of each allocation."""
        self.pinned: dict[int, Any] = {}
        self.pools: dict[int, int] = {}
        """The GPU of each memory pool."""
        self.pool_access: set[tuple[int, int]] = set()
        self.has_pools = True
        self.calls: list[str] = []
        self.images: list[bytes] = []
        self.launches: list[Launched] = []
        self.attributes: dict[str, int] = {}
        """What was last set of a function's attributes."""
        self.limits = {"MAX_THREADS_PER_BLOCK": 1024, "SHARED_SIZE_BYTES": 0}
        self.fail: dict[str, int] = {}
        self.kernel: Callable[[Launched], None] = lambda _: None
        self.layout: str | None = "I"
        """The types of the parameters, by the letters of ``struct``; None where only ``kernel`` knows them."""
        self.globals: dict[tuple[int, bytes], tuple[int, Any]] = {}
        """The size of each variable, and what keeps it, by the ordinal of its GPU and its name."""
        self.modules: dict[int, bytes] = {}
        self.functions: dict[int, SimpleNamespace] = {}
        self.log = b""
        """What the driver's compiler says against a text that it refuses."""
        self.stack = [1024] * 8
        """Bytes of stack that the threads of each GPU have."""
        self.busy = 2
        """Blocks of a function that a processor has at once."""
        self.peers: set[tuple[int, int]] = set()
        self.local = threading.local()
        self.problems: list[BaseException] = []

    # -- the way in

    def handle(self, name: str, numbers: Sequence[int], floats: Sequence[float]) -> int:
        """One call of a function of the driver."""
        self.calls.append(name)
        if name in self.fail:
            return int(self.fail[name])
        if self.sticky and name not in _ALWAYS:
            return int(self.sticky)
        kinds = _kinds(type(self), name)
        integers, reals = iter(range(11)), iter(range(2))
        arguments = [floats[next(reals)] if kind == "float" else numbers[next(integers)] for kind in kinds]
        try:
            getattr(self, name)(*arguments)
        except Fault as fault:
            if fault.sticky:
                self.sticky = fault.result
            return int(fault.result)
        except BaseException as problem:  # noqa: BLE001  # the test fails with it in the end
            self.problems.append(problem)
            return int(Result.CUDA_ERROR_UNKNOWN)
        return 0

    # -- devices and contexts

    def cuInit(self, flags: int) -> None:
        assert flags == 0

    def cuGetErrorName(self, error: int, out: int) -> None:
        self.error_name = ctypes.create_string_buffer(Result(error).name.encode())
        put(out, ctypes.addressof(self.error_name))

    def cuDriverGetVersion(self, out: int) -> None:
        put(out, 13000, ctypes.c_int)

    def cuDeviceGetCount(self, out: int) -> None:
        put(out, self.count, ctypes.c_int)

    def cuDeviceGet(self, out: int, ordinal: int) -> None:
        if ordinal >= self.count:
            raise Fault(Result.CUDA_ERROR_INVALID_DEVICE)
        put(out, ordinal, ctypes.c_int)

    def cuDeviceGetName(self, out: int, length: int, ordinal: int) -> None:
        """As the driver does, no byte behind the name's zero is written."""
        assert length >= 64
        ctypes.memmove(out, b"Stand-in\0", 9)

    def cuDeviceGetAttribute(self, out: int, attribute: int, ordinal: int) -> None:
        put(out, {
            75: self.capability // 10, 76: self.capability % 10,
            97: 227 << 10 if self.capability >= 90 else 64 << 10, 16: 10, 115: int(self.has_pools), 38: 50 << 20,
            41: 1, 83: 1,
        }[attribute], ctypes.c_int)

    def cuDevicePrimaryCtxRetain(self, out: int, ordinal: int) -> None:
        assert 0 <= ordinal < self.count
        put(out, CONTEXT + ordinal)

    def cuCtxGetCurrent(self, out: int) -> None:
        put(out, getattr(self.local, "context", 0))

    def cuCtxSetCurrent(self, context: int) -> None:
        assert context == 0 or CONTEXT <= context < CONTEXT + self.count
        self.local.context = context

    def cuCtxGetDevice(self, out: int) -> None:
        put(out, self.inside(), ctypes.c_int)

    def cuCtxPushCurrent(self, context: int) -> None:
        assert CONTEXT <= context < CONTEXT + self.count
        self.local.stack = [*getattr(self.local, "stack", []), getattr(self.local, "context", 0)]
        self.local.context = context

    def cuCtxPopCurrent(self, out: int) -> None:
        put(out, self.local.context)
        self.local.context = self.local.stack.pop()

    def here(self) -> int:
        return max(getattr(self.local, "context", 0) - CONTEXT, 0)

    def inside(self) -> int:
        """The GPU whose context is current."""
        context = getattr(self.local, "context", 0)
        if not CONTEXT <= context < CONTEXT + self.count:
            raise Fault(Result.CUDA_ERROR_INVALID_CONTEXT)
        return int(context - CONTEXT)

    def cuCtxGetLimit(self, out: int, limit: int) -> None:
        assert limit == _STACK_SIZE
        put(out, self.stack[self.inside()])

    def cuCtxSetLimit(self, limit: int, value: int) -> None:
        assert limit == _STACK_SIZE
        self.unsafe()
        if value > 512 << 10:
            raise Fault(Result.CUDA_ERROR_INVALID_VALUE)
        self.stack[self.inside()] = value

    def cuCtxSynchronize(self) -> None:
        self.inside()
        self.unsafe()
        self.finish_all()

    def cuDeviceCanAccessPeer(self, out: int, ordinal: int, other: int) -> None:
        put(out, int(ordinal != other), ctypes.c_int)

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> None:
        pair = self.inside(), context - CONTEXT
        assert flags == 0
        if pair in self.peers:
            raise Fault(Result.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        self.peers.add(pair)

    # -- memory

    def new_memory(self, nbytes: int, where: dict[int, Any]) -> int:
        assert nbytes > 0
        buffer = ctypes.create_string_buffer(b"\xcd" * (nbytes + 256), nbytes + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        where[address] = (nbytes, buffer)
        return address

    def cuMemAlloc(self, out: int, nbytes: int) -> None:
        self.inside()
        self.unsafe()
        self.put_memory(out, nbytes)

    def put_memory(self, out: int, nbytes: int) -> None:
        address = self.new_memory(nbytes, self.memory)
        self.places[address] = self.inside()
        put(out, address)

    def cuMemFree(self, address: int) -> None:
        self.inside()
        self.unsafe()
        self.finish_all()
        del self.memory[address]

    def cuMemAllocAsync(self, out: int, nbytes: int, stream: int) -> None:
        self.put_memory(out, nbytes)
        self.submit(stream, lambda: None)

    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        self.inside()
        assert address in self.memory
        assert self.places[address] == self.inside()
        self.submit(stream, lambda: self.memory.pop(address))

    def cuMemPoolCreate(self, out: int, wanted: int) -> None:
        """Of the memory of a GPU, pinned there, not shared with other processes."""
        kind, handles, location, ordinal = struct.unpack("<4I", ctypes.string_at(wanted, 16))
        assert (kind, handles, location) == (1, 0, 1)
        assert ordinal < self.count
        if not self.has_pools:
            raise Fault(Result.CUDA_ERROR_NOT_SUPPORTED)
        handle = self.fresh()
        self.pools[handle] = ordinal
        put(out, handle)

    def cuMemPoolTrimTo(self, pool: int, kept: int) -> None:
        assert pool in self.pools
        assert kept == 0

    def cuMemPoolSetAttribute(self, pool: int, attribute: int, value: int) -> None:
        assert pool in self.pools
        assert attribute == _RELEASE_THRESHOLD

    def cuMemPoolSetAccess(self, pool: int, access: int, count: int) -> None:
        """The GPU of the pool has it anyhow."""
        assert count == 1
        location, ordinal, flags = struct.unpack("<3I", ctypes.string_at(access, 12))
        assert (location, flags) == (1, 3)
        assert ordinal != self.pools[pool]
        self.pool_access.add((pool, ordinal))

    def cuMemAllocFromPoolAsync(self, out: int, nbytes: int, pool: int, stream: int) -> None:
        """Valid in the order of the stream: work of others that runs before is not found out, but reads 0xcd."""
        assert self.inside() == self.pools[pool]
        self.cuMemAllocAsync(out, nbytes, stream)

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        """Addresses that CUDA did not give out are an error."""
        assert attribute == _DEVICE_ORDINAL
        for start, (size, _) in self.memory.items():
            if start <= address < start + size:
                put(out, self.places.get(start, 0), ctypes.c_int)
                return
        raise Fault(Result.CUDA_ERROR_INVALID_VALUE)

    def cuMemAllocManaged(self, out: int, nbytes: int, flags: int) -> None:
        assert flags in (1, 2)
        self.cuMemAlloc(out, nbytes)

    def cuMemHostAlloc(self, out: int, nbytes: int, flags: int) -> None:
        self.inside()
        self.unsafe()
        assert flags & ~7 == 0
        put(out, self.new_memory(nbytes, self.pinned))

    def cuMemFreeHost(self, address: int) -> None:
        self.inside()
        self.unsafe()
        self.finish_all()
        del self.pinned[address]

    def check(self, address: int, nbytes: int) -> None:
        """Whether so many bytes from an address on are in one allocation."""
        known = [(start, size) for start, (size, _) in self.memory.items()]
        known += [(ctypes.addressof(buffer), size) for size, buffer in self.globals.values()]
        assert any(start <= address and address + nbytes <= start + size for start, size in known), "no allocation"

    def is_pinned(self, address: int) -> bool:
        return any(start <= address < start + size for start, (size, _) in self.pinned.items())

    def cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> None:
        """Comes back when the source was read, which is before the bytes arrive where it is no pinned memory."""
        self.unsafe()
        self.cuMemcpyHtoDAsync(to, source, nbytes, 0)
        if self.is_pinned(source):
            self.finish_stream(0)

    def cuMemcpyDtoH(self, to: int, source: int, nbytes: int) -> None:
        self.unsafe()
        self.cuMemcpyDtoHAsync(to, source, nbytes, 0)
        self.finish_stream(0)

    def cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.inside()
        self.check(to, nbytes)
        if self.is_pinned(source):
            self.submit(stream, lambda: ctypes.memmove(to, source, nbytes))
            return
        staged = ctypes.string_at(source, nbytes)
        self.submit(stream, lambda: ctypes.memmove(to, staged, nbytes))

    def cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.inside()
        self.check(source, nbytes)
        self.submit(stream, lambda: ctypes.memmove(to, source, nbytes))
        if not self.is_pinned(to):
            self.finish_stream(stream)

    def cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.inside()
        self.check(source, nbytes)
        self.check(to, nbytes)
        self.submit(stream, lambda: ctypes.memmove(to, source, nbytes))

    def cuMemcpyAsync(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.cuMemcpyDtoDAsync(to, source, nbytes, stream)

    def cuMemcpyPeerAsync(
        self, to: int, to_context: int, source: int, from_context: int, nbytes: int, stream: int
    ) -> None:
        assert {to_context, from_context} <= set(range(CONTEXT, CONTEXT + self.count))
        self.cuMemcpyDtoDAsync(to, source, nbytes, stream)

    def cuMemsetD8Async(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self.inside()
        self.check(to, nbytes)
        self.submit(stream, lambda: ctypes.memset(to, value & 255, nbytes))

    # -- kernels

    def load(self, out: int, image: bytes) -> None:
        self.inside()
        self.unsafe()
        self.images.append(image)
        handle = self.fresh()
        self.modules[handle] = image
        put(out, handle)

    def cuModuleLoadData(self, out: int, image: int) -> None:
        """Machine code, as ptxas makes it: its length is where the table of section headers ends."""
        head = ctypes.string_at(image, 64)
        assert head.startswith(b"\x7fELF"), "no machine code"
        self.load(out, ctypes.string_at(image, image_size(head)))

    def cuModuleLoadDataEx(self, out: int, image: int, count: int, options: int, values: int) -> None:
        text = ctypes.string_at(image)
        assert text.lstrip().startswith(b".version")
        kinds = list((ctypes.c_uint32 * count).from_address(options))
        given = dict(zip(kinds, (ctypes.c_uint64 * count).from_address(values)))
        assert sorted(kinds) == [_ERROR_LOG, _ERROR_LOG_SIZE]
        if self.log:
            ctypes.memmove(given[_ERROR_LOG], self.log + b"\0", len(self.log) + 1)
            raise Fault(Result.CUDA_ERROR_INVALID_PTX)
        self.load(out, text + b"\0")

    def cuModuleUnload(self, module: int) -> None:
        self.inside()
        self.unsafe()
        self.finish_all()
        del self.modules[module]

    def cuModuleGetFunction(self, out: int, module: int, name: int) -> None:
        text = ctypes.string_at(name)
        assert text in self.modules[module]
        handle = self.fresh()
        self.functions[handle] = SimpleNamespace(
            name=text.decode(), module=module, device=self.inside(),
            dynamic=(48 << 10) - self.limits["SHARED_SIZE_BYTES"],
        )
        put(out, handle)

    def cuModuleGetGlobal(self, out: int, nbytes: int, module: int, name: int) -> None:
        text = ctypes.string_at(name)
        assert text in self.modules[module]
        made = self.globals.setdefault((self.inside(), text), (64, ctypes.create_string_buffer(64)))
        put(out, ctypes.addressof(made[1]))
        put(nbytes, 64)

    def cuFuncGetAttribute(self, out: int, attribute: int, function: int) -> None:
        assert function in self.functions
        known = {**self.limits, "MAX_DYNAMIC_SHARED_SIZE_BYTES": self.functions[function].dynamic}
        name = _FUNCTION_ATTRIBUTES.get(attribute, "MAX_DYNAMIC_SHARED_SIZE_BYTES")
        put(out, known[name], ctypes.c_int)

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        if attribute == _DYNAMIC_SHARED:
            self.functions[function].dynamic = value
        names = {_DYNAMIC_SHARED: "MAX_DYNAMIC_SHARED_SIZE_BYTES", _NON_PORTABLE: "NON_PORTABLE_CLUSTER_SIZE_ALLOWED"}
        self.attributes[names[attribute]] = value

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out: int, function: int, threads: int, nbytes: int) -> None:
        assert function in self.functions
        put(out, self.busy, ctypes.c_int)

    def cuOccupancyMaxActiveClusters(self, out: int, function: int, config: int) -> None:
        """Clusters take their blocks from one group of processors, of which these 10 make one of 8 and one of 2."""
        blocks = int(np.prod(Launched(config, self.functions[function], b"").attributes["CLUSTER_DIMENSION"]))
        put(out, sum(processors * self.busy // blocks for processors in (8, 2)), ctypes.c_int)

    def cuLaunchKernelEx(self, config: int, function: int, pointers: int, extra: int) -> None:
        self.inside()
        assert extra == 0
        found = self.functions[function]
        assert found.module in self.modules, "the module was unloaded"
        parameters = b""
        if self.layout is not None:
            sizes = [struct.calcsize(f"<{code}") for code in self.layout]
            addresses = (ctypes.c_uint64 * len(sizes)).from_address(pointers)
            for address, size in zip(addresses, sizes):
                assert address % size == 0
            parameters = b"".join(ctypes.string_at(a, n) for a, n in zip(addresses, sizes))
        launched = Launched(config, found, parameters)
        if launched.shared > found.dynamic:
            raise Fault(Result.CUDA_ERROR_INVALID_VALUE)
        elsewhere = launched.stream > _MADE_UP and self.stream(launched.stream).device != self.inside()
        if elsewhere or found.device != self.inside():
            raise Fault(Result.CUDA_ERROR_INVALID_HANDLE)
        run = self.bound(launched, pointers)
        self.launches.append(launched)
        self.submit(launched.stream, run)

    def bound(self, launched: Launched, pointers: int) -> Callable[[], object]:
        """What runs a launch once its parameters, at ``pointers``, are no more."""
        return lambda: self.kernel(launched)

    def numbers(self, launched: Launched) -> tuple[Any, ...]:
        """The parameters of a launch as numbers."""
        return struct.unpack(f"<{self.layout}", launched.parameters)

    def array(self, address: int, count: int, dtype: Any = np.float32) -> np.ndarray:
        """Memory of the GPU as an array."""
        self.check(address, count * np.dtype(dtype).itemsize)
        return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype)


def image_size(head: bytes) -> int:
    """The bytes of machine code of which these are the first 64: up to the end of its tables of headers."""
    (sections,), (size, count) = struct.unpack_from("<Q", head, 40), struct.unpack_from("<HH", head, 58)
    (segments,), (each, segment_count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
    return max(sections + size * count, segments + each * segment_count)


_ALWAYS = (
    "cuInit", "cuGetErrorName", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuDeviceGetCount", "cuDeviceGet",
    "cuDeviceGetName",
)

"""What works after a fault."""
_signatures: dict[tuple[type, str], list[str]] = {}


def _kinds(kind: type, name: str) -> list[str]:
    """The types of a function's arguments."""
    key = kind, name
    if key not in _signatures:
        parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        _signatures[key] = [str(parameter.annotation) for parameter in parameters]
    return _signatures[key]


def functions() -> list[str]:
    """The functions of the driver that a stand-in has."""
    from image_standin import ImageStandin

    return sorted(name for name in dir(ImageStandin) if name.startswith("cu"))


@contextmanager
def install(standin: Any) -> Iterator[Any]:
    """Let a stand-in be the driver."""
    names = functions()
    connect(names, standin.handle)
    device.forget()
    try:
        yield standin
    finally:
        connect(names, lambda *_: int(Result.CUDA_ERROR_NO_DEVICE))
        device.forget()
        if standin.problems:
            raise standin.problems[0]
