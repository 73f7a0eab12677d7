"""One entry of a PTX text, compiled: its machine code, the kernels loaded on the backends, the binder of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zlib import crc32

from .. import config, locks
from ..errors import LaunchError, caller
from ..ir import Function, Module
from ..ir.signature import KernelParameter
from ..language.block_needs import BlockNeed, BoxNeed
from ..language.introspection.observed import Observed
from ..launch import LIMITS, LaunchConfig
from . import directives
from .backends import device_memory
from .nvtx_ranges import NvtxRun
from .run import EmulatorRun, Run

if TYPE_CHECKING:
    from ..emulator.program import Program
    from ..gpu.assembler import Assembled
    from ..launch.arguments import Binder

__all__ = ["CompiledKernel", "ModuleCache"]


@dataclass
class ModuleCache:
    """A module where it is loaded: once on each backend, since all its kernels share its variables."""

    assembled: dict[str, Assembled] = field(default_factory=dict)
    modules: dict[int, Any] = field(default_factory=dict)
    """The modules loaded, by the ordinal of the GPU."""
    loading: AbstractContextManager[object] = field(default_factory=locks.rlock)
    """Held while one is assembled and loaded."""
    program: Program | None = None
    """The emulator's."""
    initial: Mapping[str, Any] = field(default_factory=dict)
    """What variables of the module hold at first wherever it is loaded, if that is not what the PTX says."""


class CompiledKernel:
    """One entry of a PTX text. ``warned`` are the warnings that it has given: each is given once a kernel."""

    def __init__(
        self, entry: str, parameters: Sequence[KernelParameter], module: Module, warned: set[str], *,
        text: str | None = None, cache: ModuleCache | None = None, block_needs: Sequence[BlockNeed] = (),
        box_needs: Sequence[BoxNeed] = (),
    ) -> None:
        self.entry, self.parameters, self.module, self.warned = entry, parameters, module, warned
        self.foreign, self.block_needs, self.box_needs = text is not None, block_needs, box_needs
        self._text = text
        self.references: dict[str, Any] = {}
        """What the textures, samplers and surfaces that the module declares are bound to."""
        self.observed: Observed | None = None
        """What it was traced from; None for PTX, which depends on nothing."""
        self._runs: dict[str, Run] = {}
        self.cache = cache or ModuleCache()

    def __repr__(self) -> str:
        return f"<{self.entry}, {'loaded' if self.foreign else 'traced'} for {self.module.target}>"

    @cached_property
    def text(self) -> str:
        """The PTX."""
        from ..text.printer import to_text

        text = to_text(self.module) if self._text is None else self._text
        if "ptx" in config.current().dump.kinds:
            config.write_dump("ptx", f"{self.entry}-{crc32(text.encode()):08x}.ptx", text)
        return text

    @cached_property
    def written(self) -> frozenset[str]:
        """The parameters whose memory the kernel may write."""
        from ..analysis.stores import written_parameters

        tables = frozenset(p.ptx[0].name for p in self.parameters if getattr(p.annotation, "target", None) is not None)
        return written_parameters(self.module, self.entry, tables)

    @cached_property
    def bind(self) -> Binder:
        """Turns the user's arguments into the kernel's."""
        from ..launch.arguments import Binder

        return Binder(
            self.entry, self.parameters, self.written, foreign=self.foreign and self.module.address_size,
            boxes=self.box_needs,
        )

    @cached_property
    def function(self) -> Function:
        return self.module.function(self.entry)

    @cached_property
    def shared(self) -> tuple[int, bool]:
        """Bytes of shared memory that the kernel declares, and whether it uses dynamic shared memory."""
        from ..analysis.stores import shared_memory

        return shared_memory(self.module, self.entry)

    def run_on(self, backend: str) -> Run:
        """The kernel loaded on a backend."""
        run = self._runs.get(backend)
        if run is None:
            run = self._runs[backend] = self._load(backend)
        return NvtxRun(run, self.entry) if config.current().nvtx else run

    def fill(self, device: int | None) -> None:
        """Give the variables of the module just loaded their first values; ``device`` None is the emulator."""
        if not self.cache.initial:
            return
        from ..launch.device_array import DeviceArray

        memory = None if device is None else device_memory("gpu", device)
        for name, values in self.cache.initial.items():
            address = self.variable(name, device)
            DeviceArray.over(address, values.shape, values.dtype, memory, self.cache).copy_from(values)

    def _load(self, backend: str) -> Run:
        if backend == "emulator":
            return EmulatorRun(
                self.entry, self.program, self.bind, self.references, foreign=self.foreign,
                traced=None if self.foreign else self.module,
            )
        from ..gpu.launch import GpuRun

        return GpuRun(self)

    @property
    def modules(self) -> dict[int, Any]:
        """The modules loaded, by the ordinal of the GPU."""
        return self.cache.modules

    @property
    def loading(self) -> AbstractContextManager[object]:
        """Held while a module is assembled and loaded."""
        return self.cache.loading

    @property
    def program(self) -> Program:
        """The module on the emulator."""
        from ..emulator import load  # of the package itself, `ptxdsl.emulator` is no name: an error would be made first

        if self.cache.program is None:
            self.cache.program = load(self.text, self.module if self.foreign else None, verified=True)
            self.fill(None)
        return self.cache.program

    def variable(self, name: str, device: int | None) -> int:
        """The address of a variable of the module on a GPU, or on the emulator where ``device`` is None."""
        if device is None:
            return self.program.variable(name)
        from ..gpu.function import variable

        return variable(self, name, device)

    def assembled(self, arch: str) -> Assembled:
        """The machine code for a target."""
        from ..gpu.assembler import assemble_module

        found = self.cache.assembled.get(arch)
        if found is None:
            found = self.cache.assembled[arch] = assemble_module(
                self.text, arch, version=self.module.version, stacks=False
            )
            self._dump(found)
        return found

    def _dump(self, made: Assembled) -> None:
        kinds = config.current().dump.kinds
        if not kinds:
            return
        name = f"{self.entry}-{crc32(self.text.encode()):08x}.{made.arch}"
        config.write_dump("cubin", f"{name}.cubin", made.cubin)
        config.write_dump("log", f"{name}.log", made.log)
        if "sass" in kinds:
            from ..gpu.cubin import disassemble

            config.write_dump("sass", f"{name}.sass", disassemble(made.cubin, lines=True))

    def check(self, geometry: LaunchConfig) -> None:
        """Refuse a geometry that the kernel's directives and memory exclude."""
        directives.check(self.entry, self.function.directives, geometry)
        for need in self.block_needs:
            if need.cooperative and not geometry.cooperative:
                raise LaunchError(
                    f"`{need.helper}` at {need.loc} waits for all blocks of the grid, and the launch of kernel "
                    f"`{self.entry}` is not cooperative", loc=caller(), hint=need.hint,
                )
            if not need.met(geometry.threads, geometry.block):
                raise LaunchError(
                    f"block {geometry.block} has {geometry.threads} threads; `{need.helper}` at {need.loc} "
                    f"is right for {need.wanted} only", loc=caller(), hint=need.hint,
                )
        static, dynamic = self.shared
        if dynamic and not geometry.shared:
            raise LaunchError(
                f"kernel `{self.entry}` uses dynamic shared memory, and the launch gives it none", loc=caller(),
                hint=f"`{self.entry}[grid, block, None, nbytes](...)` or `.configure(grid, block, shared=nbytes)`",
            )
        if geometry.shared and not dynamic and not self.foreign:
            raise LaunchError(
                f"kernel `{self.entry}` uses no dynamic shared memory, and the launch gives it {geometry.shared} bytes",
                loc=caller(), hint="declare it: `dynamic_shared(f32)`, or leave `shared` out",
            )
        if static + geometry.shared > LIMITS.shared:
            raise LaunchError(
                f"kernel `{self.entry}` declares {static} bytes of shared memory and the launch adds "
                f"{geometry.shared}; the most a block can have is {LIMITS.shared}", loc=caller(),
            )
