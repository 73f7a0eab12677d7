"""Kernels on the GPU: their modules, and their launches through cuda-python.

A launch is prepared once a geometry: the configuration struct with its attributes, the checks against what the device
has, the opt-in for much shared memory. After that a launch packs its parameters into a buffer of its own and makes one
call. Buffers are taken from a list and given back, never shared: the driver call drops the interpreter lock.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import DriverError, LaunchError, PerformanceWarning, caller
from ..ir import Function, Module
from ..isa.targets import limits
from ..launch import Argument, Buffer, Handle, LaunchConfig, Scalar
from .copies import HostCopies
from .device import Driver, driver
from .fast_path import Pack, Unusual, packers, parameter_struct, stream_of
from .tools import NoAssembler

if TYPE_CHECKING:
    from ..ir.signature import KernelParameter
    from ..launch.arrays import View
    from .assembler import Assembled

__all__ = ["load", "variable"]


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


class Compiled(Protocol):
    """What a kernel to be loaded has to know of itself."""

    entry: str
    module: Module
    parameters: Sequence[KernelParameter]
    told: set[str]
    references: dict[str, Any]

    @property
    def modules(self) -> dict[int, Any]:
        """The driver's modules by the ordinal of the GPU, common to all kernels of the text."""

    @property
    def text(self) -> str:
        """The PTX."""

    @property
    def function(self) -> Function:
        """The entry."""

    @property
    def written(self) -> frozenset[str]:
        """The parameters whose memory it may write."""

    def assembled(self, arch: str) -> Assembled:
        """Its machine code for a target."""


class _Slot(NamedTuple):
    """Memory for the parameters of one launch, and the array of pointers to them that the driver wants."""

    memory: Any
    pointers: Any
    address: int


class _Prepared(NamedTuple):
    """A geometry with everything about it checked; ``structs`` are the driver's, one a stream."""

    geometry: LaunchConfig
    structs: dict[int, Any]


class _Function:
    """A kernel on one GPU."""

    def __init__(self, kernel: Compiled, gpu: Driver) -> None:
        self.kernel, self.gpu = kernel, gpu
        gpu.enter()
        modules = kernel.modules
        if gpu.device not in modules:
            modules[gpu.device] = self._load(gpu.target(kernel.module.target))
        self.module = modules[gpu.device]
        self.handle = gpu.call("cuModuleGetFunction", self.module, kernel.entry.encode())
        self.offsets = _offsets(kernel)
        self.slots: list[_Slot] = []
        self._prepared: dict[int, _Prepared] = {}

    def _load(self, arch: str) -> Any:
        try:
            cubin = self.kernel.assembled(arch).cubin
        except NoAssembler:
            return self._compile_in_driver()
        return self.gpu.call("cuModuleLoadData", cubin)

    def _compile_in_driver(self) -> Any:
        """Without a ptxas the driver's own compiler does, at the price of doing so in every process."""
        cu, log = self.gpu.cu, bytes(16384)
        option = cu.CUjit_option
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        result, *values = cu.cuModuleLoadDataEx(self.kernel.text.encode() + b"\0", 2, options, [log, len(log)])
        if result != 0:
            said = log.rstrip(b"\0").decode(errors="replace").strip()
            error = self.gpu.error("cuModuleLoadDataEx", result)
            raise DriverError(
                f"{error.message}\n{said}".strip(), loc=caller(), name=error.name,
                hint="ptxas explains better: pip install 'nvidia-cuda-nvcc>=13,<14'",
            )
        return values[0]

    def prepare(self, geometry: LaunchConfig) -> _Prepared:
        found = self._prepared.get(id(geometry))
        if found is None:
            self._check(geometry)
            if len(self._prepared) >= 256:
                self._prepared.clear()
            found = self._prepared[id(geometry)] = _Prepared(geometry, {})
        return found

    def _check(self, geometry: LaunchConfig) -> None:
        gpu, name, attribute = self.gpu, self.kernel.entry, self.gpu.cu.CUfunction_attribute
        gpu.enter()
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
        if static + geometry.shared > limits("sm_75").static_shared:
            which = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            gpu.call("cuFuncSetAttribute", self.handle, which, geometry.shared)
        if geometry.cooperative:
            self._check_cooperative(geometry)

    def _check_cooperative(self, geometry: LaunchConfig) -> None:
        each = self.gpu.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", self.handle, geometry.threads, geometry.shared
        )
        if geometry.blocks > each * self.gpu.processors:
            raise LaunchError(
                f"a cooperative launch of {geometry.blocks} blocks; {each * self.gpu.processors} fit on this GPU "
                f"({self.gpu.name}) at once", loc=caller(), hint="make the grid smaller and let each block do more",
            )

    def struct(self, prepared: _Prepared, stream: int) -> Any:
        found = prepared.structs.get(stream)
        if found is None:
            found = prepared.structs[stream] = _struct(self.gpu.cu, prepared.geometry, stream)
        return found

    def slot(self) -> _Slot:
        """Memory for parameters that no other launch is using."""
        try:
            return self.slots.pop()
        except IndexError:
            return _slot(self.offsets)

    def launch(self, struct: Any, arguments: Sequence[Argument]) -> None:
        """One launch."""
        slot = self.slot()
        for offset, argument in zip(self.offsets, arguments):
            assert not isinstance(argument, Handle)
            data = argument.data if isinstance(argument, Scalar) else argument.address.to_bytes(8, "little")
            slot.memory[offset : offset + len(data)] = data
        self.submit(struct, slot)

    def submit(self, struct: Any, slot: _Slot) -> None:
        """Hand a launch to the driver; the parameters are its own as soon as the call returns."""
        (result,) = self.gpu.cu.cuLaunchKernelEx(struct, self.handle, slot.address, 0)
        self.slots.append(slot)
        if result != 0:
            raise self.gpu.error("cuLaunchKernelEx", result)


def _offsets(kernel: Compiled) -> tuple[int, ...]:
    """Where each parameter lies in a slot; 16 bytes is what the largest alignment but a descriptor's asks for."""
    offsets, size = [], 0
    for parameter in kernel.function.parameters:
        align = max(16, parameter.align or 1)
        size = -(-size // align) * align
        offsets.append(size)
        size += parameter.nbytes
    return (*offsets, size)


def _slot(offsets: tuple[int, ...]) -> _Slot:
    memory = bytearray(offsets[-1] + 128)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    start = -base % 128
    pointers = (ctypes.c_void_p * max(len(offsets) - 1, 1))(*(base + start + offset for offset in offsets[:-1]))
    return _Slot(memoryview(memory)[start:], pointers, ctypes.addressof(pointers))


def _struct(cu: Any, geometry: LaunchConfig, stream: int) -> Any:
    struct = cu.CUlaunchConfig()
    struct.gridDimX, struct.gridDimY, struct.gridDimZ = geometry.grid
    struct.blockDimX, struct.blockDimY, struct.blockDimZ = geometry.block
    struct.sharedMemBytes = geometry.shared
    struct.hStream = cu.CUstream(stream)
    attributes = []
    if geometry.cluster is not None:
        attribute = cu.CUlaunchAttribute()
        attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = geometry.cluster
        attributes.append(attribute)
    if geometry.cooperative:
        attribute = cu.CUlaunchAttribute()
        attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    struct.attrs, struct.numAttrs = attributes, len(attributes)
    return struct


# ---------------------------------------------------------------------------------------------------------------------
# Launches


def _plan(
    function: _Function, prepared: _Prepared, packs: tuple[Pack, ...], pack_into: Callable[..., None],
    stream: int | Callable[[], int],
) -> Callable[[Sequence[object]], bool]:
    """A launch that went well, ready to be made with other objects of the same types (see :mod:`.plan`).

    A closure over everything that stays the same, since here each lookup of an attribute counts.
    """
    gpu, handle, slots = function.gpu, function.handle, function.slots
    submit, current, context = gpu.cu.cuLaunchKernelEx, gpu.cu.cuCtxGetCurrent, int(gpu.context)
    fixed = None if callable(stream) else function.struct(prepared, stream)

    def launch(args: Sequence[object]) -> bool:
        try:
            values = [pack(value) for pack, value in zip(packs, args)]
        except Unusual:
            return False
        if int(current()[1]) != context:
            gpu.enter()
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


class _Run:
    """A kernel on whichever GPU its arrays are."""

    def __init__(self, kernel: Compiled) -> None:
        self.kernel = kernel
        self.functions: dict[int, _Function] = {}

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        buffers = [argument for argument in arguments if type(argument) is Buffer]
        targets = [target for buffer in buffers for target in buffer.targets]
        _refuse_host(self.kernel.entry, targets)
        images = [argument.owner for argument in arguments if type(argument) is Handle]
        images += self.kernel.references.values()
        arrays: list[Buffer | View] = [*buffers, *(array for image in images for array in getattr(image, "arrays", ()))]
        function = self._function(_device(self.kernel.entry, [*buffers, *targets], arrays))
        function.gpu.enter()
        prepared = function.prepare(geometry)
        stream = _stream(geometry, arrays, function.gpu.device)
        _wait(function.gpu, stream, arrays)
        struct = function.struct(prepared, stream)
        if not images:
            self._launch(function, struct, stream, arguments, buffers)
            return
        from .textures import Images

        with Images(function.gpu, stream, arguments, function.module, self.kernel.references) as numbered:
            self._launch(function, struct, stream, numbered.arguments, buffers)

    def _launch(
        self, function: _Function, struct: Any, stream: int, arguments: Sequence[Argument], buffers: Sequence[Buffer]
    ) -> None:
        host = [buffer for buffer in buffers if buffer.device is None]
        if not host:
            function.launch(struct, arguments)
            return
        self._warn([buffer for buffer in host if not buffer.targets])
        with HostCopies(function.gpu, stream, host, self.kernel.entry, self.kernel.written) as copies:
            function.launch(struct, [copies.moved(argument) for argument in arguments])
            copies.fetch()

    def plan(
        self, geometry: LaunchConfig, args: Sequence[object], arguments: Sequence[Argument]
    ) -> Callable[[Sequence[object]], bool] | None:
        """What makes this launch again, for the objects of the same types; None where there is no short way."""
        buffers = [argument for argument in arguments if type(argument) is Buffer]
        if not buffers or any(buffer.device is None for buffer in buffers):
            return None
        function = self._function(_device(self.kernel.entry, buffers))
        layout = parameter_struct(self.kernel.parameters, function.offsets)
        packs = packers(self.kernel.parameters, args, function.gpu.device)
        if layout is None or packs is None:
            return None
        current = geometry.stream
        tell = _current_stream(buffers, function.gpu.device) if current is None else None
        return _plan(function, function.prepare(geometry), packs, layout.pack_into, tell or current or 0)

    def _function(self, ordinal: int) -> _Function:
        found = self.functions.get(ordinal)
        if found is None:
            found = self.functions[ordinal] = _Function(self.kernel, driver(ordinal))
        return found

    def _warn(self, host: Sequence[Buffer]) -> None:
        if not host or "host arrays" in self.kernel.told:
            return
        self.kernel.told.add("host arrays")
        loc, names = caller(), ", ".join(buffer.name for buffer in host)
        first = host[0].name
        warnings.warn_explicit(
            f"kernel `{self.kernel.entry}` has its arrays {names} copied to the GPU at every launch; "
            f"keep them there: `{first} = ptxdsl.to_device({first})`",
            PerformanceWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
        )


def load(kernel: Compiled) -> _Run:
    """A kernel that runs on a GPU."""
    return _Run(kernel)


def variable(kernel: Compiled, name: str) -> int:
    """The address of a variable of the kernel's module on the first GPU."""
    function = _Function(kernel, driver())
    return int(function.gpu.call("cuModuleGetGlobal", function.module, name.encode())[0])


def _device(entry: str, buffers: Sequence[Buffer], arrays: Sequence[Buffer | View] = ()) -> int:
    """The GPU that holds the arguments, or else the arrays of textures; the first if none does."""
    placed = [buffer for buffer in buffers if buffer.device is not None]
    for buffer in placed:
        if buffer.device != placed[0].device:
            raise LaunchError(
                f"argument `{placed[0].name}` of kernel `{entry}` is on GPU {placed[0].device}, `{buffer.name}` on GPU "
                f"{buffer.device}; all of a launch have to be on one", loc=caller(),
            )
    if not placed:
        return next((array.device for array in arrays if array.device is not None), 0)
    return placed[0].device or 0


def _refuse_host(entry: str, targets: Sequence[Buffer]) -> None:
    """What a table of pointers points to must be on the GPU already: the table would have to be written anew."""
    for target in targets:
        if target.device is None:
            name = target.name.partition("[")[0]
            raise LaunchError(
                f"argument `{target.name}` of kernel `{entry}` is in host memory; "
                "the arrays of a table have to be on the GPU", loc=caller(),
                hint=f"`{name} = [ptxdsl.to_device(array) for array in {name}]`",
            )


def _stream(geometry: LaunchConfig, buffers: Sequence[Buffer | View], ordinal: int) -> int:
    """The stream given, or else the current one of the library that owns an array, or else the default."""
    if geometry.stream is not None:
        return geometry.stream
    tell = _current_stream(buffers, ordinal)
    return tell() if tell else 0


def _current_stream(buffers: Sequence[Buffer | View], ordinal: int) -> Callable[[], int] | None:
    known = (stream_of(buffer.owner, ordinal) for buffer in buffers if buffer.device is not None)
    return next((tell for tell in known if tell), None)


def _wait(gpu: Driver, stream: int, buffers: Sequence[Buffer | View]) -> None:
    """Let the launch wait for the streams on which its arrays become valid (1 is the default stream, as 0 is)."""
    for other in {b.stream for b in buffers if b.stream is not None and (b.stream or 1) != (stream or 1)}:
        event = gpu.call("cuEventCreate", gpu.cu.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        gpu.call("cuEventRecord", event, other)
        gpu.call("cuStreamWaitEvent", stream, event, 0)
        gpu.call("cuEventDestroy", event)
