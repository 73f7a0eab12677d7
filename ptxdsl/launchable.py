"""What can be launched, whoever wrote it: geometry, inspection, and the way to a backend.

A :class:`Launchable` is specialised to a :class:`Specialised`, which is one PTX text and all that was ever made of it.
A backend is anything that makes a function of that, to be called with a geometry and bound arguments; the kernel knows
nothing else of GPU or emulator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from . import config
from .collector import paused
from .errors import LaunchError, Loc, TargetError, TraceError, caller
from .ir import Directive, Function, Module
from .isa import Need
from .isa.directives import DIRECTIVES
from .isa.targets import TARGETS, assembled, limits, lowest, unmet
from .launch import Argument, Buffer, Handle, LaunchConfig, Scalar
from .signature import KernelParameter
from .trace.builder import active

if TYPE_CHECKING:
    from .binding import Binder
    from .driver.assembler import Assembled, Attributes
    from .emulator.program import Program

__all__ = ["Backend", "Launch", "Launchable", "Run", "Specialised", "apply"]

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
    memory = sys.modules.get(f"{__package__}.driver.memory")
    passed = {argument.address for argument in given if type(argument) is Buffer}
    return [] if memory is None else [buffer for buffer in memory.emulated() if buffer.address not in passed]


def _numbered(argument: Handle) -> Scalar:
    """A handle as its number on the emulator."""
    return Scalar(argument.name, argument.owner.emulated.to_bytes(8, "little"))


def _gpu(kernel: Specialised) -> Run:
    from .driver import gpu

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
        from .text import to_text

        text = to_text(self.module) if self._text is None else self._text
        if "ptx" in config.current().dump.kinds:
            config.write_dump("ptx", f"{self.entry}-{crc32(text.encode()):08x}.ptx", text)
        return text

    @cached_property
    def written(self) -> frozenset[str]:
        """The parameters whose memory the kernel may write."""
        from .effects import written_parameters

        return written_parameters(self.module, self.entry)

    @cached_property
    def bind(self) -> Binder:
        """Turns the user's arguments into the kernel's."""
        from .binding import Binder

        return Binder(self.entry, self.parameters, self.written, foreign=self.foreign and self.module.address_size)

    @cached_property
    def function(self) -> Function:
        return self.module.function(self.entry)

    @cached_property
    def shared(self) -> tuple[int, bool]:
        """Bytes of shared memory that the kernel declares, and whether it uses dynamic shared memory."""
        from .effects import shared_memory

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
        from . import emulator

        if self.loaded.program is None:
            self.loaded.program = emulator.load(self.text, self.module if self.foreign else None, verified=True)
        return self.loaded.program

    def variable(self, backend: str, name: str) -> int:
        """The address of a variable of the module where the kernel runs."""
        if backend == "gpu":
            from .driver import gpu

            return gpu.variable(self, name)
        return self.program.variable(name)

    def assembled(self, arch: str) -> Assembled:
        """The machine code for a target."""
        from .driver.assembler import assemble_module

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
            from .driver.assembler import disassemble

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
        if name == "reqnctapercluster" and geometry.cluster != sizes:
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


class Launchable:
    """A kernel: ``k[grid, block](arguments)`` launches it, ``k.ptx()`` and the like show what it became."""

    parameters: tuple[KernelParameter, ...]

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self._launches: dict[Any, Launch] = {}
        self.traced = object()
        self.told: set[str] = set()

    def specialise(self, constants: Mapping[str, Any], arch: str | None = None) -> Specialised:
        """The kernel for these constants and this target."""
        raise NotImplementedError

    def __call__(self, *_: object, **__: object) -> Any:
        raise LaunchError(
            f"kernel `{self.entry}` was called without a grid and a block", loc=caller(),
            hint=f"`{self.entry}[grid, block]({', '.join(p.name for p in self.parameters)})`",
        )

    def __getitem__(self, item: Any) -> Launch:
        """``k[grid, block]``, ``k[grid, block, stream]`` or ``k[grid, block, stream, shared]``, ready to be called."""
        try:
            return self._launches[item]
        except (KeyError, TypeError):
            pass
        if not isinstance(item, tuple) or not 2 <= len(item) <= 4:
            came = ", ".join(map(repr, item)) if isinstance(item, tuple) else repr(item)
            raise LaunchError(
                f"a launch takes [grid, block], [grid, block, stream] or [grid, block, stream, shared], not [{came}]",
                loc=caller(), hint=f"`{self.entry}[grid, block]({', '.join(p.name for p in self.parameters)})`",
            )
        grid, block, stream, shared = (*item, None, 0)[:4] if len(item) != 3 else (*item, 0)
        launch = self.configure(grid, block, stream=stream, shared=shared)
        if stream is None or isinstance(stream, int):
            if len(self._launches) >= 256:
                self._launches.clear()
            self._launches[item] = launch
        return launch

    def configure(
        self, grid: Any, block: Any, *, stream: Any = None, shared: int = 0, cluster: Any = None,
        cooperative: bool = False, backend: str | None = None, sanitize: Any = None,
        seed: int | None = None,
    ) -> Launch:
        """A launch with everything that one can say: see :class:`~ptxdsl.launch.LaunchConfig`.

        ``backend`` is ``"gpu"``, ``"emulator"`` or ``"auto"``; None leaves it to ``use`` and ``PTXDSL_BACKEND``.
        """
        if backend is not None and backend not in config.BACKENDS:
            raise LaunchError(
                f"backend is one of {', '.join(config.BACKENDS)}, not {backend!r}", loc=caller(),
                hint='`backend="emulator"`',
            )
        geometry = LaunchConfig(grid, block, shared, cluster, cooperative, stream, sanitize, seed)
        return Launch(self, geometry, backend, stream)

    # -- inspection

    def ir(self, *, arch: str | None = None, **constants: Any) -> Module:
        """The kernel as a module of PTX statements."""
        return self.specialise(constants, arch).module

    def ptx(self, *, arch: str | None = None, comments: bool = False, **constants: Any) -> str:
        """The PTX text; with ``comments`` each Python line stands before its instructions."""
        found = self.specialise(constants, arch)
        if not comments:
            return found.text
        from .text import to_text

        return to_text(found.module, comments=True)

    def cubin(self, *, arch: str | None = None, **constants: Any) -> bytes:
        """The machine code for a target, the PTX's own if none is given; needs ptxas."""
        return self._assembled(arch, constants).cubin

    def sass(self, *, arch: str | None = None, lines: bool = False, **constants: Any) -> str:
        """The machine code as text, with ``lines`` each Python line before its instructions; needs nvdisasm."""
        from .driver.assembler import disassemble

        return disassemble(self._assembled(arch, constants).cubin, lines=lines)

    def attributes(self, *, arch: str | None = None, **constants: Any) -> Attributes:
        """Registers, memory and spills, as ptxas reports them for a target."""
        return self._assembled(arch, constants).attributes(self.entry)

    def _assembled(self, arch: str | None, constants: Mapping[str, Any]) -> Assembled:
        arch = None if arch == "auto" else arch
        found = self.specialise(constants, arch)
        return found.assembled(arch or assembled(found.module.target))


class Launch:
    """A kernel with its geometry, to be called with the arguments."""

    def __init__(self, kernel: Launchable, geometry: LaunchConfig, backend: str | None, stream: object) -> None:
        self.kernel, self.config, self.backend = kernel, geometry, backend
        self._stream = stream
        self._checked: Specialised | None = None
        self._plans: dict[Any, tuple[object, object, Plan]] = {}

    def __call__(self, *args: object, **named: object) -> None:
        """Run the kernel; on a GPU with device arrays only, start it."""
        key: tuple[object, ...] = (*map(type, args),)
        if named:  # with the types, since True == 1
            key = (*key, *named.items(), *map(type, named.values()))
        try:
            token, traced, plan = self._plans[key]
        except (KeyError, TypeError):
            pass
        else:
            if traced is self.kernel.traced and token == config.backend_token() and plan(args):
                return
        self._launch(args, named, key)

    def debug(self, *args: object, **named: Any) -> None:
        """Run the kernel and stop at lines of one thread: :func:`ptxdsl.debug` of this launch, with its arguments."""
        from .emulator.debug import debug

        debug(self, *args, **named)

    def _launch(self, args: tuple[object, ...], named: dict[str, object], key: tuple[object, ...]) -> None:
        if active() is not None:
            raise LaunchError(
                f"kernel `{self.kernel.entry}` is launched while another is traced", loc=caller(),
                hint="a helper that is traced in place is a plain function, without `@ptx_kernel`",
            )
        names = [p.name for p in self.kernel.parameters] if named else []
        constants = {name: value for name, value in named.items() if name not in names}
        kernel = self.kernel.specialise(constants)
        if len(constants) != len(named):
            args = kernel.bind.positional(args, {name: named[name] for name in named if name in names})
        if kernel is not self._checked:
            with paused():
                kernel.check(self.config)
                _ = kernel.bind
            self._checked = kernel
        from .driver.device import choose

        settings, geometry = config.current(), self.config
        arguments = kernel.bind(args)
        backend = choose(self.backend or settings.backend)
        if backend == "emulator" and geometry.sanitize is None and settings.sanitize is not None:
            geometry = replace(geometry, sanitize=settings.sanitize)
        if backend == "emulator" and geometry.seed is None and settings.seed is not None:
            geometry = replace(geometry, seed=settings.seed)
        watcher = config.observer.get()
        if watcher is not None:
            watcher.launching(self.kernel, constants, backend)
        config.report("debug", f"launch {kernel.entry}[{geometry.grid}, {geometry.block}] on the {backend}")
        run = kernel.run_on(backend)
        run(geometry, arguments)
        plan = run.plan(self.config, args, arguments)
        # Other constants can be equal and yet different, as 0.0 and -0.0 are.
        plain = all(name in constants and type(value) in (int, bool, str) for name, value in named.items())
        if plan is not None and plain:
            if len(self._plans) >= 16:
                self._plans.clear()
            self._plans[key] = (config.backend_token(), self.kernel.traced, plan)


def apply(
    module: Module, entry: str, directives: Sequence[Directive], arch: str, loc: Loc
) -> None:
    """Add performance directives to an entry; the module's version and target rise to what they need."""
    names = [name for name, _ in directives]
    if "maxntid" in names and "reqntid" in names:
        raise TraceError("maxntid and reqntid exclude each other", loc=loc, hint="reqntid alone says both")
    if "minnctapersm" in names and not {"maxntid", "reqntid"}.intersection(names):
        raise TraceError("minnctapersm means nothing without maxntid or reqntid", loc=loc, hint="`maxntid=256`")
    needs = tuple(need for name in names if name in DIRECTIVES for need in DIRECTIVES[name].needs)
    module.function(entry).directives.extend(directives)
    if arch == "auto":
        module.version, module.target = lowest((Need(module.version, (module.target,)), *needs))
        return
    module.version = max(module.version, *(need.version for need in needs), (1, 0))
    if unmet(needs, module.version, module.target):
        wanted = " or ".join(needs[0].targets)
        raise TargetError(f"kernel `{entry}` is for {module.target}, and its directives need {wanted}", loc=loc)
