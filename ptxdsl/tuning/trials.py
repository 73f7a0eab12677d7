"""The trials of one tuning: each configuration compiled, looked up on disk, or else measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeVar

from .. import config as settings
from ..errors import DriverError, EmulationError, LaunchError, PtxError, caller
from ..kernel.backends import choose
from ..kernel.compiled_kernel import CompiledKernel
from ..kernel.dispatcher import Dispatcher, Launch
from ..language.builder import thread
from ..launch.disk_cache import DiskCache, digest
from .config import GEOMETRY, Config
from .measures import EmulatorMeasure, GpuMeasure, Measure
from .progress import Progress
from .results import Trial, Tuning, of_bytes, to_bytes

__all__ = ["Trials", "launch_of"]

T = TypeVar("T")

_FORMAT = "autotune 1"
_LIMIT = 16 << 20
_TUPLE = "; a grid of several dimensions: `k[(8, 8),](...)`"
_REFUSALS = (
    "INVALID_VALUE", "OUT_OF_MEMORY", "LAUNCH_OUT_OF_RESOURCES", "COOPERATIVE_LAUNCH_TOO_LARGE", "NOT_SUPPORTED",
    "INVALID_CLUSTER_SIZE",
)
"""What the driver says of launches that it cannot make; all else it says of kernels that went wrong."""
_PLACES = re.compile(r"^\s*\.(?:loc|file)\b.*\n", re.MULTILINE)
"""Where the PTX came from: a kernel that moves within its file is the same."""


def _merged(kernel: Dispatcher, config: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the launch and a configuration say; LaunchError where both say the same thing, or neither does."""
    both = options.keys() & config.launch
    if both:
        name = min(both)
        raise LaunchError(
            f"kernel `{kernel.entry}` is given its {name} by the launch, {options[name]!r}, and by {config}",
            loc=caller(), hint=f"leave `{name}` out of one of them{_TUPLE if name == 'block' else ''}",
        )
    given = {**options, **config.launch}
    for name, example in (("grid", "k[lambda config: cdiv(n, config.block)](...)"), ("block", "k[grid, block](...)")):
        if name not in given:
            raise LaunchError(
                f"kernel `{kernel.entry}` is given no {name}, by the launch or by {config}", loc=caller(),
                hint=f"`{example}`",
            )
    return given


def launch_of(kernel: Dispatcher, config: Config, options: Mapping[str, Any]) -> Launch:
    """A launch in a configuration."""
    given = _merged(kernel, config, options)
    for name in GEOMETRY:
        if callable(given.get(name)):
            given[name] = given[name](config)
    grid, block = given.pop("grid"), given.pop("block")
    if given.keys() <= {"stream", "shared"}:  # this way the kernel keeps what it has prepared
        return kernel[grid, block, given.get("stream"), given.get("shared", 0)]
    return kernel.configure(grid, block, **given)


class Trials:
    """Trials of a kernel with one set of arguments."""

    def __init__(
        self, kernel: Dispatcher, options: Mapping[str, Any], args: tuple[object, ...], named: Mapping[str, object],
        seconds: float, *, cached: bool,
    ) -> None:
        self._kernel, self._options, self._seconds = kernel, options, seconds
        names = [parameter.name for parameter in kernel.parameters]
        self._constants = {name: value for name, value in named.items() if name not in names}
        self._args, self._by_name = args, {name: named[name] for name in named if name in names}
        folder = settings.current().cache_dir if cached else None
        self._disk = DiskCache(None if folder is None else folder / "tuning", _LIMIT)

    def run(self, configs: Sequence[Config], key: Any, shown: dict[str, Any]) -> Tuning:
        """Try all of them."""
        if thread.trace is not None:
            raise LaunchError(
                f"kernel `{self._kernel.entry}` is launched while another is traced", loc=caller(),
                hint="a helper that is traced in place is a plain function, without `@ptx_kernel`",
            )
        for config in configs:
            self._check(config)
        start = perf_counter()
        self._trials: list[Trial | None] = [None] * len(configs)
        self._errors: list[Exception] = []
        compiled = [self._attempt(n, config, self._compile, config) for n, config in enumerate(configs)]
        ready = {n: made for n, made in enumerate(compiled) if made is not None}
        if ready:
            self._measure(configs, ready, key)
        trials = [trial for trial in self._trials if trial is not None]
        if all(trial.reason is not None for trial in trials):
            raise self._none_left(trials)
        where, unit = self._place
        tuning = Tuning(self._kernel.entry, shown, where, unit, trials)
        taken = perf_counter() - start
        settings.report("info", f"tuned {tuning.title}: {tuning.best} of {len(trials)} in {taken:.1f} s")
        return tuning

    def _check(self, config: Config) -> None:
        """Refuse what is wrong with the launch, and not with the configuration."""
        _merged(self._kernel, config, self._options)
        for name in sorted(self._constants.keys() & config.constants):
            raise LaunchError(
                f"kernel `{self._kernel.entry}` is given `{name}` by the launch and by {config}", loc=caller(),
                hint=f"leave `{name}` out of one of them",
            )

    def _compile(self, config: Config) -> tuple[CompiledKernel, Launch]:
        launch = launch_of(self._kernel, config, self._options)
        found = self._kernel.compiled({**self._constants, **config.constants})
        found.check(launch.config)
        return found, launch

    def _measure(
        self, configs: Sequence[Config], ready: Mapping[int, tuple[CompiledKernel, Launch]], key: Any
    ) -> None:
        first, launch = next(iter(ready.values()))
        args = first.bind.positional(self._args, self._by_name) if self._by_name else self._args
        measure = self._measure_of(first, launch, args)
        self._place = measure.where, measure.unit
        names = {n: self._name(measure, configs[n], *made, key) for n, made in ready.items()}
        for n in ready:
            self._trials[n] = of_bytes(configs[n], self._disk.get(names[n]))
        left = {n: made for n, made in ready.items() if self._trials[n] is None}
        if len(ready) == 1:
            for n in left:
                self._trials[n] = Trial(configs[n])  # there is nothing to compare it with
        elif left:
            args = measure.arguments(args)
            with Progress(f"tuning {self._kernel.entry}", len(left)) as progress:
                measure.prepare([kernel for kernel, _ in left.values()], progress)
                for n, (kernel, _) in left.items():
                    progress.step(str(configs[n]))
                    trial = self._attempt(n, configs[n], self._trial, measure, configs[n], kernel, args)
                    if trial is not None:
                        self._trials[n] = trial
                        self._disk.put(names[n], to_bytes(trial))

    def _measure_of(self, kernel: CompiledKernel, launch: Launch, args: tuple[object, ...]) -> Measure:
        if choose(self._options.get("backend")) == "emulator":
            return EmulatorMeasure(launch.config, self._kernel.entry)
        return GpuMeasure(kernel.bind(args), launch.config, self._seconds, self._kernel.entry)

    def _trial(
        self, measure: Measure, config: Config, kernel: CompiledKernel, args: tuple[object, ...]
    ) -> Trial:
        plain = {**self._options, "sanitize": False, "seed": None, "schedule": None}
        launch, constants = launch_of(self._kernel, config, plain), {**self._constants, **config.constants}
        with measure.snapshot(kernel, kernel.bind(args)) as memory:
            try:
                found = measure.trial(config, lambda: launch(*args, **constants), memory)
            except BaseException:
                with suppress(DriverError):  # of a GPU that is lost
                    memory.restore()
                raise
            memory.restore()
        return found

    def _name(self, measure: Measure, config: Config, kernel: CompiledKernel, launch: Launch, key: Any) -> str:
        """The name under which a result is kept."""
        geometry = launch.config
        shape = (geometry.grid, geometry.block, geometry.shared, geometry.cluster, geometry.cooperative)
        text = _PLACES.sub("", kernel.text)
        return digest(_FORMAT, *measure.identity, kernel.entry, text, repr(shape), repr(key), repr(config.constants))

    def _attempt(self, n: int, config: Config, do: Callable[..., T], *args: Any) -> T | None:
        """Do something for a configuration; note why it cannot be launched, and pass on what went wrong in a launch."""
        try:
            return do(*args)
        except (EmulationError, DriverError) as error:
            if not _refused(error):
                error.message += f"\n  while {config} of kernel `{self._kernel.entry}` was tried"
                raise
            self._note(n, config, error)
        except (PtxError, AssertionError, ValueError) as error:  # of the kernel function itself, too: it may check
            self._note(n, config, error)
        return None

    def _note(self, n: int, config: Config, error: Exception) -> None:
        self._errors.append(error)
        self._trials[n] = Trial.failed(config, _reason(error))

    def _none_left(self, trials: Sequence[Trial]) -> Exception:
        if len({str(error) for error in self._errors}) == 1:
            return self._errors[0]  # the same for all: an argument, say
        reasons = "".join(f"\n  {trial.config}: {trial.reason}" for trial in trials)
        return LaunchError(
            f"none of the {len(trials)} configurations of kernel `{self._kernel.entry}` can be launched:{reasons}",
            loc=caller(),
        )


def _refused(error: PtxError) -> bool:
    return isinstance(error, DriverError) and error.name.removeprefix("CUDA_ERROR_") in _REFUSALS


def _reason(error: Exception) -> str:
    if isinstance(error, PtxError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
