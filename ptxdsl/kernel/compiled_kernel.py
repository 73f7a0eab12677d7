"""One PTX text with one entry of it, and all that is ever made of it: machine code, loaded kernels, a binder.

A backend is anything that makes a function of that, to be called with a geometry and bound arguments; nothing else here
or above knows of GPU or emulator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from .. import config
from ..collector import paused
from ..errors import LaunchError, caller
from ..ir import Function, Module
from ..isa.targets import TARGETS, limits
from ..launch import Argument, Buffer, Handle, LaunchConfig, Scalar, clustered
from ..ir.signature import KernelParameter

if TYPE_CHECKING:
    from ..launch.arguments import Binder
    from ..gpu.assembler import Assembled
    from ..emulator.program import Program

__all__ = ["Backend", "Loaded", "Plan", "Run", "Specialised"]

Plan = Callable[[Sequence[object]], bool]
"""Makes a launch again with other arguments; False, and nothing was done, if it has to go the long way."""


class Run(Protocol):
    """A kernel loaded on a backend: called, it runs to its end or is started on a stream."""

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument], /) -> None:
        """Launch."""

    def plan(self, geometry: LaunchConfig, args: Sequence[object], arguments: Sequence[Argument], /) -> Plan | None:
        """A shorter way to make this launch again for objects of the same types as ``args``; None if there is none."""


class Backend(Protocol):
    """Where kernels run."""

    def __call__(self, kernel: Specialised) -> Run:
        """Load a kernel once, to be run many times."""


class _Emulated:
    """A kernel on the emulator."""

    def __init__(self, kernel: Specialised) -> None:
        self.entry, self.program = kernel.entry, kernel.program
        self.references, self.foreign = kernel.references, kernel.foreign

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        given: list[Scalar | Buffer] = [
            _numbered(argument) if isinstance(argument, Handle) else argument for argument in arguments
        ]
        if self.foreign:
            given += _reachable(given)
        for argument in given:
            if type(argument) is Buffer and argument.device is not None:
                raise LaunchError(
                    f"argument `{argument.name}` of kernel `{self.entry}` is on GPU {argument.device}; "
                    "the emulator works in host memory", loc=caller(), hint='pass a numpy array, or `backend="gpu"`',
                )
            if type(argument) is Buffer and not geometry.sanitize and hasattr(argument.owner, "unwritten"):
                argument.owner.unwritten = None  # nobody watches what the kernel writes
        if self.references:
            self.program.bind(self.references)
        self.program.run(self.entry, geometry, given)

    def plan(self, *_: object) -> None:
        """There is none: a run takes far longer than the way to it."""


def _reachable(given: list[Scalar | Buffer]) -> list[Buffer]:
    """The device arrays that are not arguments: as on a GPU, their addresses may stand in structs and other arrays."""
    memory = sys.modules.get("ptxdsl.gpu.memory")
    passed = {argument.address for argument in given if type(argument) is Buffer}
    return [] if memory is None else [buffer for buffer in memory.emulated() if buffer.address not in passed]


def _numbered(argument: Handle) -> Scalar:
    """A handle as its number on the emulator."""
    return Scalar(argument.name, argument.owner.emulated.to_bytes(8, "little"))


def _gpu(kernel: Specialised) -> Run:
    from ..gpu import modules as gpu

    return gpu.load(kernel)


_BACKENDS: dict[str, Backend] = {"emulator": _Emulated, "gpu": _gpu}


@dataclass
class Loaded:
    """What the kernels of one module have in common where it is loaded: its variables live there."""

    assembled: dict[str, Assembled] = field(default_factory=dict)
    modules: dict[int, Any] = field(default_factory=dict)
    """The driver's modules by the ordinal of the GPU."""
    program: Program | None = None
    """The emulator's."""


class Specialised:
    """One PTX text with one entry of it, and what was made of them: arguments' binder, machine code, loaded kernels."""

    def __init__(
        self, entry: str, parameters: Sequence[KernelParameter], module: Module, told: set[str], *,
        text: str | None = None, loaded: Loaded | None = None,
    ) -> None:
        self.entry, self.parameters, self.module, self.told = entry, parameters, module, told
        self.foreign = text is not None
        self._text = text
        self.references: dict[str, Any] = {}
        """What the textures, samplers and surfaces that the module declares are bound to."""
        self._runs: dict[str, Run] = {}
        self.loaded = loaded or Loaded()

    @cached_property
    def text(self) -> str:
        """The PTX."""
        from ..text import to_text

        text = to_text(self.module) if self._text is None else self._text
        if "ptx" in config.current().dump.kinds:
            config.write_dump("ptx", f"{self.entry}-{crc32(text.encode()):08x}.ptx", text)
        return text

    @cached_property
    def written(self) -> frozenset[str]:
        """The parameters whose memory the kernel may write."""
        from ..analysis.stores import written_parameters

        return written_parameters(self.module, self.entry)

    @cached_property
    def bind(self) -> Binder:
        """Turns the user's arguments into the kernel's."""
        from ..launch.arguments import Binder

        return Binder(self.entry, self.parameters, self.written, foreign=self.foreign and self.module.address_size)

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
            with paused():
                run = self._runs[backend] = _BACKENDS[backend](self)
        return run

    @property
    def modules(self) -> dict[int, Any]:
        """The driver's modules by the ordinal of the GPU."""
        return self.loaded.modules

    @property
    def program(self) -> Program:
        """The module on the emulator."""
        from .. import emulator

        if self.loaded.program is None:
            self.loaded.program = emulator.load(self.text, self.module if self.foreign else None, verified=True)
        return self.loaded.program

    def variable(self, backend: str, name: str) -> int:
        """The address of a variable of the module where the kernel runs."""
        if backend == "gpu":
            from ..gpu import modules as gpu

            return gpu.variable(self, name)
        return self.program.variable(name)

    def assembled(self, arch: str) -> Assembled:
        """The machine code for a target."""
        from ..gpu.assembler import assemble_module

        found = self.loaded.assembled.get(arch)
        if found is None:
            found = self.loaded.assembled[arch] = assemble_module(self.text, arch)
            self._dump(found)
        return found

    def _dump(self, made: Assembled) -> None:
        kinds = config.current().dump.kinds
        name = f"{self.entry}-{crc32(self.text.encode()):08x}.{made.arch}"
        config.write_dump("cubin", f"{name}.cubin", made.cubin)
        config.write_dump("log", f"{name}.log", made.log)
        if "sass" in kinds:
            from ..gpu.assembler import disassemble

            config.write_dump("sass", f"{name}.sass", disassemble(made.cubin, lines=True))

    def check(self, geometry: LaunchConfig) -> None:
        """Refuse a geometry that the kernel's own directives and memory exclude."""
        for name, numbers in self.function.directives:
            self._check_directive(name, [int(n) for n in numbers if isinstance(n, int)], geometry)
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
        most = max(limits(target).shared for target in TARGETS)
        if static + geometry.shared > most:
            raise LaunchError(
                f"kernel `{self.entry}` declares {static} bytes of shared memory and the launch adds "
                f"{geometry.shared}; the most a block can have is {most}", loc=caller(),
            )

    def _check_directive(self, name: str, numbers: list[int], geometry: LaunchConfig) -> None:
        sizes = (*numbers, 1, 1)[:3] if len(numbers) < 3 else tuple(numbers[:3])
        if name == "maxntid" and geometry.threads > sizes[0] * sizes[1] * sizes[2]:
            raise LaunchError(
                f"block {geometry.block} has {geometry.threads} threads; kernel `{self.entry}` is made for at most "
                f"{sizes[0] * sizes[1] * sizes[2]} (maxntid)", loc=caller(),
            )
        if name == "reqntid" and geometry.block != sizes:
            raise LaunchError(
                f"block is {geometry.block}; kernel `{self.entry}` is made for {sizes} only (reqntid)", loc=caller(),
                hint=f"`block={sizes}`",
            )
        if name == "reqnctapercluster" and geometry.cluster is None:
            clustered(sizes, geometry.grid)
        elif name == "reqnctapercluster" and geometry.cluster != sizes:
            raise LaunchError(
                f"cluster is {geometry.cluster}; kernel `{self.entry}` is made for {sizes} only (reqnctapercluster)",
                loc=caller(), hint=f"`.configure(grid, block, cluster={sizes})`",
            )
        if name == "explicitcluster" and geometry.cluster is None:
            raise LaunchError(
                f"kernel `{self.entry}` is launched without a cluster, which it asks for (explicitcluster)",
                loc=caller(), hint="`.configure(grid, block, cluster=...)`",
            )
        x, y, z = geometry.cluster or (1, 1, 1)
        if name == "maxclusterrank" and x * y * z > numbers[0]:
            raise LaunchError(
                f"cluster {geometry.cluster} has {x * y * z} blocks; kernel `{self.entry}` is made for at most "
                f"{numbers[0]} (maxclusterrank)", loc=caller(),
            )
