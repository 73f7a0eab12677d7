"""The dispatch of launches: ``k[grid, block](arguments)``.

A :class:`Dispatcher` finds or makes the :class:`~ptxdsl.kernel.compiled_kernel.CompiledKernel` for the compile-time
constants and the target of a launch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from ctypes import c_bool
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from .. import config
from ..collector import paused
from ..errors import LaunchError, caller
from ..options import checked_options
from ..executed_lines import recorder
from ..ir.signature import KernelParameter
from ..language.builder import thread
from ..launch import DEFAULT_STREAMS, FastPath, LaunchConfig, Launched, stream_handle
from .backends import check, choose
from .compiled_kernel import CompiledKernel
from .inspection import Inspected
from .run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from ..emulator.tools import numerics as following
    from ..forecasting.machines import Machine
    from ..forecasting.result import Forecast
    from ..gpu.occupancy import Occupancy
    from ..launch import Argument
    from .report import Report

__all__ = ["Dispatcher", "Launch"]

_MOST_PLANS = 16
"""How many short ways the launches in one geometry have."""
_MOST_TRIED = 256
_lock = threading.Lock()


class NotFollowed(LaunchError, AttributeError):
    """No launch was followed in float64; `hasattr`, and what completes names, sees an AttributeError."""


class Dispatcher(Inspected):
    """A kernel: ``k[grid, block](arguments)`` launches it, ``k.ptx()`` and the like show what it is compiled to."""

    parameters: tuple[KernelParameter, ...]

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self._launches: dict[Any, Prepared] = {}
        self.generation = c_bool(True)
        """Another one after each ``retrace``, which makes the one before false."""
        self.warned: set[str] = set()

    def __call__(self, *_: object, **__: object) -> Any:
        raise LaunchError(
            f"kernel `{self.entry}` was called without a grid and a block", loc=caller(),
            hint=f"`{self.entry}[grid, block]({', '.join(p.name for p in self.parameters)})`",
        )

    def __getitem__(self, item: Any) -> Launch:
        """``k[grid, block]``, ``k[grid, block, stream]`` or ``k[grid, block, stream, shared]``, ready to be called."""
        try:
            if len(item) > 2 and type(item[2]) is not int:
                return self._on_stream(item)
            return Launch(self, self._launches[item])
        except (KeyError, TypeError):
            pass
        return Launch(self, self._prepare(item))

    def _on_stream(self, item: Any) -> Launch:
        """On a stream that is no number: the launch is prepared for its handle, and keeps the object."""
        stream = item[2]
        if type(item) is tuple and len(item) <= 4 and stream is not None:
            item = (*item[:2], stream_handle(stream), *item[3:])
        launch = Launch(self, self._launches.get(item) or self._prepare(item))
        launch.stream = stream
        return launch

    def _prepare(self, item: Any) -> Prepared:
        if not isinstance(item, tuple) or not 2 <= len(item) <= 4:
            came = ", ".join(map(repr, item)) if isinstance(item, tuple) else repr(item)
            raise LaunchError(
                f"a launch takes [grid, block], [grid, block, stream] or [grid, block, stream, shared], not [{came}]",
                loc=caller(), hint=f"`{self.entry}[grid, block]({', '.join(p.name for p in self.parameters)})`",
            )
        grid, block, stream, shared = (*item, None, 0)[:4] if len(item) != 3 else (*item, 0)
        prepared = self.configure(grid, block, stream=stream, shared=shared).prepared
        if (stream is None or isinstance(stream, int)) and not any(isinstance(given, list) for given in item):
            if len(self._launches) >= 256:
                self._launches.clear()
            self._launches[item] = prepared
        return prepared

    @checked_options(LaunchError, "configure")
    def configure(
        self, grid: Any, block: Any, *, stream: Any = None, shared: int = 0, cluster: Any = None,
        cooperative: bool = False, backend: str | None = None, sanitize: Any = None,
        seed: int | None = None, schedule: str | None = None, priority: int | None = None, programmatic: bool = False,
        sync_domain: str | None = None, stack: int = 0, twin: str | None = None, max_error: float | None = None,
    ) -> Launch:
        """A launch with all its options: see :class:`~ptxdsl.launch.LaunchConfig`.

        ``backend`` is ``"gpu"``, ``"emulator"`` or ``"auto"``; None leaves it to ``use`` and ``PTXDSL_BACKEND``.
        """
        geometry = LaunchConfig(
            grid, block, shared, cluster, cooperative, stream, sanitize, seed, schedule, priority, programmatic,
            sync_domain, stack, twin, max_error,
        )
        return Launch(self, Prepared(geometry, check(backend), stream))

class Prepared:
    """What the launches of a kernel in one geometry share.

    The kernel keeps it, so it does not keep the kernel: one that nobody uses any more is freed at once, with all that
    was compiled for it.
    """

    __slots__ = ("backend", "checked", "config", "fast_paths", "numerics", "plans", "stream", "tried")

    def __init__(self, geometry: LaunchConfig, backend: str | None, stream: object) -> None:
        self.config, self.backend, self.stream = geometry, backend, stream
        self.checked: CompiledKernel | None = None
        self.numerics: following.numerics | None = None
        """What the latest launch that was followed in float64 has shown."""
        self.fast_paths: dict[Any, tuple[object, Callable[[], bool] | None, FastPath]] = {}
        self.plans: Any = b""
        """What machine code makes launches by (`ptxdsl.gpu.launch_code.Plans`), the latest plan first."""
        self.tried: dict[Any, tuple[object, int]] = {}
        """How many launches with arguments of certain types took the long way."""

    def is_due(self, kinds: Any, observed: object) -> bool:
        """Whether a plan is to be made: when the 2nd launch of its kind takes the long way, the 4th, the 8th, ...

        So what never has a plan costs little, and what once was unusual may have one later.
        """
        before, count = self.tried.get(kinds, (observed, 0))
        count = count + 1 if before is observed else 1
        if len(self.tried) >= _MOST_TRIED:
            self.tried.clear()
        self.tried[kinds] = observed, count
        return count > 1 and not count & (count - 1)

    def add(self, plan: Any) -> None:
        """Have launches made by a plan from now on."""
        from ..gpu.launch_code import Plans

        with _lock:
            living = [other for other in self.plans.plans if other.is_alive] if self.plans else []
            self.plans = Plans.of([plan, *living[: _MOST_PLANS - 1]])
            _launch_by_machine_code()


def _launch_by_machine_code() -> None:
    """From now on ``Launch.__call__`` tries the plans, and takes the long way with what they refuse."""
    from ..gpu.launch_code import method

    if Launch.__call__ is Launch.long_way:
        Launch.__call__ = method(Launch, Prepared, "__call__", Launch.long_way.__doc__ or "")  # type: ignore[method-assign]


class Launch:
    """A kernel with its geometry, to be called with the arguments."""

    __slots__ = ("kernel", "prepared", "stream")

    stream: object
    """What is kept as long as the launch, where only the handle is in ``prepared``."""

    def __init__(self, kernel: Dispatcher, prepared: Prepared) -> None:
        self.kernel, self.prepared = kernel, prepared

    @property
    def config(self) -> LaunchConfig:
        """The geometry and the options."""
        return self.prepared.config

    @property
    def numerics(self) -> following.numerics:
        """What the latest launch has shown that was followed in float64: see :class:`ptxdsl.numerics`.

        >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel
        >>> @ptx_kernel
        ... def third(x: Ptr[f32]):
        ...     x[ptx.tid.x] /= 3.0
        >>> launch = third.configure(1, 32, backend="emulator", twin="float64")
        >>> launch(np.ones(32, np.float32))
        >>> f"{launch.numerics.outputs[0].error:.1e}"
        '3.0e-08'
        """
        found = self.prepared.numerics
        if found is None:
            raise NotFollowed(
                f"no launch of this geometry of kernel `{self.kernel.entry}` was followed in float64", loc=caller(),
                hint='`launch = kernel.configure(grid, block, twin="float64")`, then `launch(...)`',
            )
        return found

    def __repr__(self) -> str:
        config = self.config
        given = [f for f in fields(config)[2:] if f.repr and getattr(config, f.name) != f.default]
        options = "".join(f", {f.name}={getattr(config, f.name)!r}" for f in given)
        return f"<launch {self.kernel.entry}[{config.grid}, {config.block}]{options}>"

    def __copy__(self) -> Launch:
        return self

    def __deepcopy__(self, memo: object) -> Launch:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        stream = self.config.stream
        if stream is not None and stream not in DEFAULT_STREAMS:
            from pickle import PicklingError

            raise PicklingError(str(LaunchError(
                f"a launch of kernel `{self.kernel.entry}` on stream {stream:#x} cannot be pickled: a stream is of one "
                "process", loc=caller(), hint="pickle the kernel, and choose the stream where it is launched",
            )))
        return _prepared_again, (self.kernel, self.config, self.prepared.backend)

    def long_way(self, *args: object, **named: object) -> None:
        """Run the kernel; on a GPU with device arrays only, start it."""
        key: tuple[object, ...] = (*map(type, args),)
        if named:  # with the types, since True == 1
            key = (*key, *named.items(), *map(type, named.values()))
        try:
            generation, unchanged, fast_path = self.prepared.fast_paths[key]
        except (KeyError, TypeError):
            pass
        else:
            if (
                generation is self.kernel.generation and thread.trace is None
                and (unchanged is None or unchanged()) and fast_path(args)
            ):
                return
        self._launch(args, named, key)

    __call__ = long_way

    def warm(self, *args: object, **named: Any) -> None:
        """Make ready for such a launch, without making it: trace, assemble, load, and check the arguments.

        So that the first launch costs what the others do, in a benchmark or before a graph is captured.
        """
        self._launch(args, named, None)

    def occupancy(self, *, arch: str | None = None, **constants: Any) -> Occupancy:
        """How many blocks of this geometry are resident on a multiprocessor at once: see :meth:`Dispatcher.occupancy`.

        With a cluster, ``.clusters`` are those resident on a whole GPU at once: on the one that launches take, as its
        driver says; without one, or for another ``arch``, at most as many on a GPU whose structure is published.
        """
        geometry = self.config
        found = self.kernel.occupancy(geometry.block, geometry.shared, arch=arch, **constants)
        if geometry.cluster is None:
            return found
        told = None
        if arch is None and choose(self.prepared.backend) == "gpu":
            from ..gpu.device import driver
            from ..gpu.function import LoadedFunction

            function = LoadedFunction(self.kernel.compiled(constants), driver(config.current().launch_device))
            told = function.active_clusters(geometry)
        return replace(found, cluster=math.prod(geometry.cluster), told=told)

    def debug(self, *args: object, **named: Any) -> None:
        """Run the kernel and stop at lines of one thread: :func:`ptxdsl.debug` of this launch, with its arguments."""
        from ..emulator.debugger.prompt import debug

        debug(self, *args, **named)

    def forecast(
        self, *args: object, gpu: str | Machine = "h200", clock: int | None = None, sample: int | None = None,
        **named: Any,
    ) -> Forecast:
        """How long this launch would take on a GPU, and why: :func:`ptxdsl.forecast` of it, with its arguments.

        It runs on the emulator, as many blocks as ``sample`` says, and leaves the arguments as they are.
        """
        from ..forecasting.forecast import of_launch

        return of_launch(self, args, named, gpu, clock, sample)

    def report(self, path: str | Path | None = None, *args: object, arch: str | None = None, **named: Any) -> Report:
        """Run the kernel on the emulator and report on it: an HTML page, complete in itself, written to ``path``.

        Source, PTX and SASS with the share of each line, registers and occupancy, coalescing and bank conflicts as
        pictures. ``path`` None writes nothing; a notebook shows what is returned. The kernel writes its arguments, as
        in any launch. Raises what :func:`ptxdsl.profile` raises.

        >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel
        >>> @ptx_kernel
        ... def double(x: Ptr[f32]):
        ...     x[ptx.tid.x] *= 2.0
        >>> report = double[1, 32].report(None, np.ones(32, np.float32))
        >>> report
        <report on double>
        """
        from ..emulator.tools.profile import profile
        from .report import check_path, kernel_report

        check_path(path)
        with config.use("emulator"), profile() as counted:
            self(*args, **named)
        parameters = {p.name for p in self.kernel.parameters}
        constants = {name: value for name, value in named.items() if name not in parameters}
        return kernel_report(self.kernel.compiled(constants, arch), arch, self.config, counted).write(path)

    def _launch(self, args: tuple[object, ...], named: dict[str, object], key: tuple[object, ...] | None) -> None:
        """Launch with every check there is; without a ``key`` of a fast path, only make ready for it."""
        if thread.trace is not None:
            raise LaunchError(
                f"kernel `{self.kernel.entry}` is launched while another is traced", loc=caller(),
                hint="a helper that is traced in place is a plain function, without `@ptx_kernel`",
            )
        names = [p.name for p in self.kernel.parameters] if named else []
        constants = {name: value for name, value in named.items() if name not in names}
        given = (*args, *named.values())
        with paused():
            kernel = self.kernel.compiled(constants)
            observed, generation = kernel.observed, self.kernel.generation
            if len(constants) != len(named):
                args = kernel.bind.positional(args, {name: named[name] for name in named if name in names})
            if kernel is not self.prepared.checked:
                kernel.check(self.config)
                self.prepared.checked = kernel
            arguments = kernel.bind(args)
            backend, geometry = self._chosen(kernel)
            observer = config.observer.get()
            if observer is not None:
                observer.launching(self.kernel, constants, backend)
            if backend == "gpu" and (recording := recorder()) is not None:
                recording.not_recorded(kernel.entry)
            config.report("debug", f"launch {kernel.entry}[{geometry.grid}, {geometry.block}] on the {backend}")
            run = kernel.run_on(backend)
        if key is None:
            run.warm(geometry, arguments)
            return
        if geometry.twin is not None:
            self._follow(run, geometry, arguments, observer)
        else:
            run(geometry, arguments)
        # Other constants can be equal and yet different, as 0.0 and -0.0 are.
        if observer is None and all(type(value) in (int, bool, str) for value in constants.values()):
            by_name = [names.index(name) if name in names else None for name in named]
            positions = [*range(len(given) - len(named)), *by_name]
            launched = Launched(given, tuple(named), positions, arguments, observed, generation)
            self._keep(run, geometry, launched, key if len(constants) == len(named) else None)

    def _follow(self, run: Run, geometry: LaunchConfig, arguments: list[Argument], observer: Any) -> None:
        """Launch and follow it in float64, if the observer of the ``with`` block around does not do so anyway."""
        from ..emulator.tools.numerics import numerics as follow

        if isinstance(observer, follow):
            self.prepared.numerics = observer
            run(geometry, arguments)
            return
        self.prepared.numerics = found = follow(geometry.max_error)
        with found:
            run(geometry, arguments)

    def _chosen(self, kernel: CompiledKernel) -> tuple[str, LaunchConfig]:
        """The backend, and the geometry with the settings that are in force."""
        settings, geometry = config.current(), self.config
        backend = choose(self.prepared.backend or settings.backend)
        if backend == "emulator" and geometry.sanitize is None and settings.sanitize is not None:
            geometry = replace(geometry, sanitize=settings.sanitize)
        if backend == "emulator" and geometry.seed is None and settings.seed is not None and not geometry.schedule:
            geometry = replace(geometry, seed=settings.seed)
        free = geometry.twin is None and geometry.schedule is None and config.observer.get() is None
        if backend == "emulator" and settings.twin is not None and free:
            geometry = replace(geometry, twin=settings.twin, max_error=settings.max_error)
        if backend == "gpu" and geometry.twin is not None:
            raise LaunchError(
                f"twin={geometry.twin!r} is the emulator's, and kernel `{kernel.entry}` is launched on a GPU",
                loc=caller(), hint='`.configure(grid, block, twin="float64", backend="emulator")`',
            )
        if backend == "gpu" and geometry.schedule is not None:
            raise LaunchError(
                f"schedule={geometry.schedule!r} is the emulator's, and kernel `{kernel.entry}` is launched on a GPU",
                loc=caller(), hint='`.configure(grid, block, schedule="explore", backend="emulator")`',
            )
        return backend, geometry

    def _keep(self, run: Run, geometry: LaunchConfig, launched: Launched, key: tuple[object, ...] | None) -> None:
        """Make the next launches shorter whose arguments have the same types and whose constants are the same.

        ``key`` says both, and is None where parameters of the kernel came by name.
        """
        prepared, observed = self.prepared, launched.observed
        fast_path = None if key is None else run.fast_path(geometry)
        if fast_path is not None:
            if len(prepared.fast_paths) >= _MOST_PLANS:
                prepared.fast_paths.clear()
            unchanged = None if observed is None else observed.unchanged
            prepared.fast_paths[key] = (launched.generation, unchanged, fast_path)
        elif prepared.is_due((*map(type, launched.given), launched.names, launched.constants), observed):
            plan = run.plan(geometry, launched)
            if plan is not None:
                prepared.add(plan)


def _prepared_again(kernel: Dispatcher, geometry: LaunchConfig, backend: str | None) -> Launch:
    return Launch(kernel, Prepared(geometry, backend, geometry.stream))
