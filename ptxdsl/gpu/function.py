"""A kernel loaded on one GPU: its module, the geometries prepared for it, the memory of its parameters.

A launch is prepared once a geometry: the configuration struct with its attributes, the checks against what the device
has, the opt-in for much shared memory. After that a launch packs its parameters into a buffer and makes one call.
Buffers are taken from a list and given back, never shared: the driver call drops the interpreter lock.
"""

from __future__ import annotations

import ctypes
import math
import warnings
import weakref
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import DriverError, LaunchError, Loc, PtxWarning, caller
from ..isa.targets import PORTABLE_CLUSTER, Limits
from ..launch import Argument, Handle, LaunchConfig, Scalar
from ..launch.geometry import SYNC_DOMAINS
from .device import Driver, driver
from .tools import NoAssembler

if TYPE_CHECKING:
    from .loadable import Loadable

__all__ = ["LoadedFunction", "LoadedModule", "Prepared", "Slot", "variable"]


class Slot(NamedTuple):
    """Memory for the parameters of one launch, and the array of pointers to them that the driver wants."""

    memory: Any
    pointers: Any
    address: int


class Prepared(NamedTuple):
    """A geometry with everything about it checked; ``structs`` are the driver's, one a stream."""

    geometry: LaunchConfig
    structs: dict[int, Any]


class LoadedModule:
    """A text on one GPU, until the last that uses it is gone."""

    def __init__(self, kernel: Loadable, gpu: Driver) -> None:
        arch = gpu.target(kernel.module.target)
        with gpu.uncaptured():
            try:
                assembled = kernel.assembled(arch)
                self.handle = gpu.call("cuModuleLoadData", assembled.cubin)
                self.knows_stack = assembled.knows_stack
            except NoAssembler:
                self.handle = _compiled_in_driver(kernel, gpu)
                self.knows_stack = lambda entry: True  # noqa: ARG005  # of what the driver itself has compiled
        self.kept = ctypes.c_bool(False)
        self.dynamic: dict[str, int] = {}
        """The most dynamic shared memory that each entry has been allowed, in bytes."""
        unload = partial(gpu.discard, "cuModuleUnload", self.handle)
        weakref.finalize(self, gpu.retire, unload).atexit = False

    def keep(self) -> None:
        """Never unload it: a graph launches it, whose end nothing tells."""
        self.kept.value = True
        if self not in _kept:
            _kept.append(self)


_kept: list[LoadedModule] = []


def _compiled_in_driver(kernel: Loadable, gpu: Driver) -> Any:
    """Without a ptxas, the driver compiles, again in every process."""
    option, log = gpu.cu.CUjit_option, bytes(16384)
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    try:
        return gpu.call("cuModuleLoadDataEx", kernel.text.encode() + b"\0", 2, options, [log, len(log)])
    except DriverError as error:
        message = log.rstrip(b"\0").decode(errors="replace").strip()
        raise DriverError(
            f"{error.message}\n{message}".strip(), loc=caller(), name=error.name,
            hint="ptxas explains better: pip install 'nvidia-cuda-nvcc>=13,<14'",
        ) from None


def _loaded(kernel: Loadable, gpu: Driver) -> LoadedModule:
    """The kernel's module on a GPU, loaded once however many threads ask for it."""
    with kernel.loading:
        found = kernel.modules.get(gpu.device)
        if found is None:
            found = kernel.modules[gpu.device] = LoadedModule(kernel, gpu)
            try:
                kernel.fill(gpu.device)
            except BaseException:
                del kernel.modules[gpu.device]
                raise
        return found


class LoadedFunction:
    """A kernel on one GPU."""

    def __init__(self, kernel: Loadable, gpu: Driver) -> None:
        self.kernel, self.gpu = kernel, gpu
        self.loaded = _loaded(kernel, gpu)
        self.module = self.loaded.handle
        with gpu.uncaptured():
            self.handle = gpu.call("cuModuleGetFunction", self.module, kernel.entry.encode())
        self.offsets = _offsets(kernel)
        self.slots: list[Slot] = []
        self._prepared: dict[int, Prepared] = {}

    def prepare(self, geometry: LaunchConfig) -> Prepared:
        found = self._prepared.get(id(geometry))
        if found is None:
            self._check(geometry)
            if geometry.cooperative or geometry.cluster is not None:
                self._check_room(geometry)
            if geometry.stack:
                self.gpu.grow_stack(geometry.stack)
            else:
                self._warn_of_stack()
            if len(self._prepared) >= 256:
                self._prepared.clear()
            found = self._prepared[id(geometry)] = Prepared(geometry, {})
        return found

    def _warn_of_stack(self) -> None:
        """Say, once a kernel, that nobody knows how much of a call stack it takes."""
        name, warned = self.kernel.entry, self.kernel.warned
        if "stack" in warned or self.loaded.knows_stack(name):
            return
        warned.add("stack")
        loc = caller() or Loc("<unknown>", 0)
        warnings.warn_explicit(
            f"ptxas cannot tell how much stack kernel `{name}` takes, and a GPU gives 1 KiB a thread at first; "
            "a launch says how much: `.configure(grid, block, stack=16384)`", PtxWarning, loc.file, loc.line,
        )

    def _check(self, geometry: LaunchConfig) -> None:
        gpu, name, attribute = self.gpu, self.kernel.entry, self.gpu.cu.CUfunction_attribute
        most = gpu.call("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, self.handle)
        if geometry.threads > most:
            raise LaunchError(
                f"block {geometry.block} has {geometry.threads} threads; on this GPU ({gpu.name}) kernel `{name}` "
                f"can have {most}, for the registers it uses", loc=caller(),
                hint="`@ptx_kernel(maxntid=...)` limits its registers",
            )
        static = gpu.call("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, self.handle)
        if static + geometry.shared > gpu.shared:
            raise LaunchError(
                f"kernel `{name}` declares {static} bytes of shared memory and the launch adds {geometry.shared}; "
                f"a block on this GPU ({gpu.name}) can have {gpu.shared}", loc=caller(),
            )
        if geometry.cluster is not None and gpu.capability < 90:
            raise LaunchError(f"clusters need sm_90, the GPU ({gpu.name}) is sm_{gpu.capability}", loc=caller())
        if geometry.cluster is not None and math.prod(geometry.cluster) > PORTABLE_CLUSTER:
            which = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            gpu.call("cuFuncSetAttribute", self.handle, which, 1)
        if static + geometry.shared > Limits().static_shared:
            self._allow(geometry.shared)

    def active_clusters(self, geometry: LaunchConfig) -> int:
        """The clusters of a launch that the GPU has room for at once."""
        with self.gpu.current():
            self._check(geometry)
            return int(self.gpu.call("cuOccupancyMaxActiveClusters", self.handle, _struct(self.gpu.cu, geometry, 0)))

    def _allow(self, nbytes: int) -> None:
        """Let launches have so much dynamic shared memory; what they were allowed before holds."""
        if nbytes > self.loaded.dynamic.get(self.kernel.entry, 0):
            which = self.gpu.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.gpu.call("cuFuncSetAttribute", self.handle, which, nbytes)
            self.loaded.dynamic[self.kernel.entry] = nbytes

    def _check_room(self, geometry: LaunchConfig) -> None:
        """Whether the GPU can run all blocks of a cooperative launch at once, or of any at least one cluster."""
        gpu, size = self.gpu, math.prod(geometry.cluster or (1,))
        if geometry.cluster is None:
            occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            room = gpu.call(occupancy, self.handle, geometry.threads, geometry.shared) * gpu.processors
        else:
            room = self.active_clusters(geometry) * size
            if not room:
                raise LaunchError(
                    f"this GPU ({gpu.name}) has no room for a cluster of {size} blocks of kernel "
                    f"`{self.kernel.entry}`", loc=caller(),
                    hint="make the cluster, the block or its shared memory smaller",
                )
        if geometry.cooperative and geometry.blocks > room:
            raise LaunchError(
                f"a cooperative launch of {geometry.blocks} blocks; {room} fit on this GPU ({gpu.name}) at once",
                loc=caller(), hint="make the grid smaller and let each block do more",
            )

    def struct(self, prepared: Prepared, stream: int) -> Any:
        self.gpu.memory.uses(stream)
        found = prepared.structs.get(stream)
        if found is None:
            found = prepared.structs[stream] = _struct(self.gpu.cu, prepared.geometry, stream)
        return found

    def slot(self) -> Slot:
        """Memory for parameters that no other launch is using."""
        try:
            return self.slots.pop()
        except IndexError:
            return _slot(self.offsets)

    def launch(self, prepared: Prepared, stream: int, arguments: Sequence[Argument]) -> None:
        """One launch."""
        struct = self.struct(prepared, stream)
        slot = self.slot()
        for offset, argument in zip(self.offsets, arguments):
            assert not isinstance(argument, Handle)
            data = argument.data if isinstance(argument, Scalar) else argument.address.to_bytes(8, "little")
            slot.memory[offset : offset + len(data)] = data
        self.gpu.call("cuLaunchKernelEx", struct, self.handle, slot.address, 0)  # which copies the parameters
        self.slots.append(slot)
        self.gpu.in_flight.note(self.kernel.entry, prepared.geometry, arguments, stream, caller())


def _offsets(kernel: Loadable) -> tuple[int, ...]:
    """Where each parameter lies in a slot; 16 bytes is what the largest alignment but a descriptor's asks for."""
    offsets, size = [], 0
    for parameter in kernel.function.parameters:
        align = max(16, parameter.align or 1)
        size = -(-size // align) * align
        offsets.append(size)
        size += parameter.nbytes
    return (*offsets, size)


def _slot(offsets: tuple[int, ...]) -> Slot:
    memory = bytearray(offsets[-1] + 128)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    start = -base % 128
    pointers = (ctypes.c_void_p * max(len(offsets) - 1, 1))(*(base + start + offset for offset in offsets[:-1]))
    return Slot(memoryview(memory)[start:], pointers, ctypes.addressof(pointers))


def _struct(cu: Any, geometry: LaunchConfig, stream: int) -> Any:
    struct = cu.CUlaunchConfig()
    struct.gridDimX, struct.gridDimY, struct.gridDimZ = geometry.grid
    struct.blockDimX, struct.blockDimY, struct.blockDimZ = geometry.block
    struct.sharedMemBytes = geometry.shared
    struct.hStream = cu.CUstream(stream)
    attributes = []

    def attribute(name: str) -> Any:
        made = cu.CUlaunchAttribute()
        made.id = getattr(cu.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        attributes.append(made)
        return made.value

    if geometry.cluster is not None:
        size = attribute("CLUSTER_DIMENSION").clusterDim
        size.x, size.y, size.z = geometry.cluster
    if geometry.cooperative:
        attribute("COOPERATIVE").cooperative = 1
    if geometry.programmatic:
        attribute("PROGRAMMATIC_STREAM_SERIALIZATION").programmaticStreamSerializationAllowed = 1
    if geometry.priority is not None:
        attribute("PRIORITY").priority = geometry.priority
    if geometry.sync_domain is not None:
        attribute("MEM_SYNC_DOMAIN").memSyncDomain = cu.CUlaunchMemSyncDomain(SYNC_DOMAINS.index(geometry.sync_domain))
    struct.attrs, struct.numAttrs = attributes, len(attributes)
    return struct


def variable(kernel: Loadable, name: str, ordinal: int) -> int:
    """The address of a variable of the kernel's module on a GPU."""
    gpu = driver(ordinal)
    with gpu.uncaptured():
        return int(gpu.call("cuModuleGetGlobal", _loaded(kernel, gpu).handle, name.encode())[0])
