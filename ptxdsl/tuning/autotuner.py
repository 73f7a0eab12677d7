"""``@autotune``: a kernel that finds its configuration by trying, once for each key, and remembers it.

A trial changes nothing: the memory that the kernel writes is put back. What cannot be launched is told. Results are
kept on disk for each configuration by itself, so that one that is added is the only one that is measured.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Union

import numpy as np

from .. import config
from ..errors import LaunchError, PtxWarning, caller, did_you_mean, similar, with_article
from ..options import checked_options
from ..kernel.backends import choose
from ..kernel.dispatcher import Dispatcher, Launch
from ..kernel.device_arrays import DeviceArray
from ..launch.arrays import dtype_name, view
from ..launch.directions import In
from .config import Config
from .results import Tuning
from .trials import Trials, launch_of

__all__ = ["Autotuned", "Key", "TunedLaunch", "autotune"]

Key = Union[Iterable[str], Callable[[dict[str, Any]], Hashable]]
"""What the choice depends on: names of arguments, or a function of all arguments by their names."""
Prune = Callable[[list[Config], dict[str, Any]], Iterable[Config]]
_ARRAYS = (np.ndarray, DeviceArray)
_ITEMS = ("grid", "block", "stream", "shared")
_tuning = threading.RLock()
"""One tuning at a time, since others would disturb its times."""


class Autotuned:
    """A kernel with configurations, made by :func:`autotune`: ``k[grid](arguments)`` launches it in the best one.

    ``kernel`` is the kernel itself, ``configs`` are those that are tried.
    """

    def __init__(
        self, kernel: Dispatcher, configs: Iterable[Config], key: Key = (), *, prune: Prune | None = None,
        seconds: float = 0.1, cache: bool = True,
    ) -> None:
        if not isinstance(kernel, Dispatcher):
            raise LaunchError(
                f"autotune takes a kernel, not {kernel!r}", loc=caller(),
                hint="write `@autotune(...)` above `@ptx_kernel`",
            )
        self.kernel, self.configs = kernel, list(configs)
        self.key = key if callable(key) else _names(key)
        self.prune, self.seconds, self.cache = prune, seconds, cache
        self._parameters = tuple(parameter.name for parameter in kernel.parameters)
        self._check()
        values = [value for each in self.configs for value in each.launch.values()]
        self.computed = prune is not None or any(map(callable, values))
        """Whether a function may give a part of the geometry, from what only the launch knows."""
        self._chosen: dict[Hashable, Config] = {}
        self._tunings: dict[Hashable, Tuning] = {}
        self._told: set[Config] = set()
        self._backend: tuple[object, str] | None = None

    def _check(self) -> None:
        kernel = self.kernel
        if not self.configs:
            raise LaunchError(f"kernel `{kernel.entry}` has no configuration to try", loc=caller())
        signature = getattr(kernel, "signature", None)
        constants = [*signature.constants] if signature is not None else []
        for each in self.configs:
            if not isinstance(each, Config):
                raise LaunchError(f"configs are a list of Config, in which {each!r} is none", loc=caller())
            for name in each.constants:
                if name not in constants:
                    raise LaunchError(
                        f"{each} sets `{name}`, which is no compile-time constant of kernel `{kernel.entry}`; "
                        f"it has {', '.join(constants) or 'none'}", loc=caller(),
                        hint=did_you_mean(similar(name, constants), "`{}=`"),
                    )
        known = [*self._parameters, *constants]
        for name in () if callable(self.key) else self.key:
            if name not in known:
                raise LaunchError(
                    f"the key names `{name}`, which kernel `{kernel.entry}` does not take; it takes {', '.join(known)}",
                    loc=caller(), hint=did_you_mean(similar(name, known)),
                )

    def __getitem__(self, item: Any) -> TunedLaunch:
        """``k[grid]``, ``k[grid, block]``, ``k[grid, block, stream]`` or ``k[grid, block, stream, shared]``.

        ``grid``, ``block`` and ``shared`` may be functions of the configuration, and None where the configurations have
        them. A grid of several dimensions is a tuple in the tuple: ``k[(8, 8),]``.
        """
        given = item if isinstance(item, tuple) else (item,)
        if not 1 <= len(given) <= 4:
            raise LaunchError(
                f"a tuned launch takes [grid], [grid, block], [grid, block, stream] or [grid, block, stream, shared], "
                f"not {len(given)}", loc=caller(), hint="a grid of several dimensions: `k[(8, 8),](...)`",
            )
        return TunedLaunch(self, {name: value for name, value in zip(_ITEMS, given) if value is not None})

    def configure(self, grid: Any = None, block: Any = None, **options: Any) -> TunedLaunch:
        """A launch with all options of a kernel's ``configure``; what the configurations say is left out."""
        given = {"grid": grid, "block": block, **options}
        return TunedLaunch(self, {name: value for name, value in given.items() if value is not None})

    def __call__(self, *_: object, **__: object) -> Any:
        raise LaunchError(
            f"kernel `{self.kernel.entry}` was called without a grid", loc=caller(),
            hint=f"`{self.kernel.entry}[grid]({', '.join(self._parameters)})`",
        )

    def tuning(self) -> list[Tuning]:
        """What came of the trials so far, one table a key."""
        return list(self._tunings.values())

    def retune(self) -> None:
        """Forget what was chosen in this process; what is on disk is kept."""
        self._chosen.clear()
        self._tunings.clear()

    # -- choosing

    def chosen(self, launch: TunedLaunch, args: tuple[object, ...], named: Mapping[str, object]) -> Config:
        """The configuration for these arguments, found by trials if it is not known."""
        key = self._key_of(launch, args, named)
        found = self._chosen.get(key)
        if found is None:
            with _tuning:
                found = self._chosen.get(key)
                if found is None:
                    found = self._tune(launch, args, named, key).best
        return found

    def tune(self, launch: TunedLaunch, args: tuple[object, ...], named: Mapping[str, object]) -> Tuning:
        """The trials for these arguments, made if they were not."""
        key = self._key_of(launch, args, named)
        with _tuning:
            return self._tunings.get(key) or self._tune(launch, args, named, key)

    def _tune(
        self, launch: TunedLaunch, args: tuple[object, ...], named: Mapping[str, object], key: tuple[Any, ...]
    ) -> Tuning:
        arguments = self._by_name(args, named)
        tried = self.configs if self.prune is None else [*self.prune(list(self.configs), dict(arguments))]
        if not tried:
            raise LaunchError(f"`prune` leaves no configuration of kernel `{self.kernel.entry}`", loc=caller())
        trials = Trials(self.kernel, launch.options, args, named, self.seconds, cached=self.cache)
        value = key[1] if callable(self.key) else tuple(map(_with_names, key[1]))
        tuning = trials.run(tried, value, {"key": value} if callable(self.key) else dict(zip(self.key, value)))
        self._tell(tuning)
        self._tunings[key], self._chosen[key] = tuning, tuning.best
        return tuning

    def _tell(self, tuning: Tuning) -> None:
        """Warn, once each, of configurations that cannot be launched."""
        new = [trial for trial in tuning.failed if trial.config not in self._told]
        if not new:
            return
        self._told.update(trial.config for trial in new)
        reasons = "".join(f"\n  {trial.config}: {trial.reason}" for trial in new)
        loc = caller()
        warnings.warn_explicit(
            f"{len(new)} of {len(tuning)} configurations of kernel `{self.kernel.entry}` cannot be launched:{reasons}",
            PtxWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
        )

    def _by_name(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, Any]:
        return {**dict(zip(self._parameters, args)), **named}

    def _key_of(
        self, launch: TunedLaunch, args: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[Any, ...]:
        """The backend, the values of the key, and the constants that are given at the launch."""
        constants: tuple[tuple[str, object], ...] = ()
        if named:
            constants = tuple((name, named[name]) for name in sorted(named.keys() - self._parameters))
            for name, given in constants:
                _check_hash(f"the compile-time constant `{name}` is", given)
        value: Any = ()
        if callable(self.key):
            value = self.key(self._by_name(args, named))
            _check_hash("the function of the key gives", value)
        elif self.key:
            arguments = self._by_name(args, named)
            value = tuple([_key_value(name, arguments.get(name)) for name in self.key])
        return self._backend_of(launch.options.get("backend")), value, constants

    def _backend_of(self, given: str | None) -> str:
        """The backend of a launch, which is the same for as long as the settings are."""
        token, latest = (given, config.backend_token()), self._backend
        if latest is None or latest[0] != token:
            latest = self._backend = token, choose(given)
        return latest[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.kernel, self.configs, self.key, self.prune, self.seconds, self.cache)

    def __repr__(self) -> str:
        return f"<autotuned {self.kernel!r}, {len(self.configs)} configurations>"


class TunedLaunch:
    """A tuned kernel with what a launch says of its geometry, to be called with the arguments."""

    __slots__ = ("_fixed", "_latest", "options", "owner")

    def __init__(self, owner: Autotuned, options: dict[str, Any]) -> None:
        self.owner, self.options = owner, options
        self._latest: tuple[Config, Launch] | None = None
        self._fixed = not (owner.computed or any(map(callable, options.values())))

    def __call__(self, *args: object, **named: object) -> None:
        """Launch in the best configuration; the first launch for a key tries all of them."""
        chosen, launch = self._ready(args, named)
        launch(*args, **named, **chosen.constants)

    def warm(self, *args: object, **named: object) -> None:
        """Make ready for such a launch, without making it: tune, and load the kernel in its configuration."""
        chosen, launch = self._ready(args, named)
        launch.warm(*args, **named, **chosen.constants)

    def _ready(self, args: tuple[object, ...], named: dict[str, object]) -> tuple[Config, Launch]:
        chosen, latest = self.owner.chosen(self, args, named), self._latest
        if latest is None or latest[0] is not chosen or not self._fixed:
            latest = self._latest = chosen, launch_of(self.owner.kernel, chosen, self.options)
        return latest

    def tune(self, *args: object, **named: object) -> Tuning:
        """Try the configurations for these arguments if that was not done; nothing that the kernel writes changes."""
        return self.owner.tune(self, args, named)


@checked_options(LaunchError, "autotune")
def autotune(
    configs: Iterable[Config], key: Key = (), *, prune: Prune | None = None, seconds: float = 0.1, cache: bool = True
) -> Callable[[Dispatcher], Autotuned]:
    """Let a kernel be launched in the best of several configurations, found by trying them.

    The first launch for each ``key`` tries them: ``key`` are the names of the arguments on which the choice depends
    (of an array its shape and type count), or a function of all arguments by name that gives a value. Constants that
    are given at a launch are part of it. ``prune(configs, arguments)`` returns those that are worth trying.

    On a GPU a trial takes the times of as many runs as fit into ``seconds``, with a cold L2 cache. On the emulator a
    run is counted: warp instructions, sectors of global memory and wavefronts of shared memory together are the work
    that is compared, which is the same each time, and no forecast of a GPU's times. Memory that the kernel writes is
    restored around each run. Configurations that cannot be assembled or launched are left out with a PtxWarning that
    says why; LaunchError if none is left.

    Results are kept on disk with ``cache``, by the PTX, the geometry, the key, the GPU and its driver.

    >>> from ptxdsl import Config, Ptr, autotune, cdiv, f32, ptx, ptx_kernel, u32, use, when
    >>> @autotune([Config(block=128, EACH=1), Config(block=128, EACH=4)], key=["n"])
    ... @ptx_kernel
    ... def add_one(n: u32, x: Ptr[f32], *, EACH: int):
    ...     i = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x) * EACH
    ...     with when(i < n):
    ...         x.store(i, [v + 1.0 for v in x.load(i, width=EACH)] if EACH > 1 else x[i] + 1.0)
    >>> x = np.zeros(1024, np.float32)
    >>> with use("emulator"):
    ...     add_one[lambda config: cdiv(1024, config.block * config.EACH)](1024, x)
    >>> x.min(), x.max()
    (np.float32(1.0), np.float32(1.0))
    >>> add_one.tuning()[0]
    add_one, n = 1024, on emulator  work  of best
    Config(block=128, EACH=4)        ...     1.00...
    Config(block=128, EACH=1)        ...     ...
    """
    return lambda kernel: Autotuned(kernel, configs, key, prune=prune, seconds=seconds, cache=cache)


def _rebuilt(kernel: Dispatcher, configs: list[Config], key: Key, prune: Any, seconds: float, cache: bool) -> Autotuned:
    return Autotuned(kernel, configs, key, prune=prune, seconds=seconds, cache=cache)


def _names(key: Iterable[str]) -> tuple[str, ...]:
    if isinstance(key, str):
        raise LaunchError(f"key is a list of names, not {key!r}", loc=caller(), hint=f"`key=[{key!r}]`")
    return tuple(key)


def _key_value(name: str, value: Any) -> Hashable:
    """What of an argument is part of the key: a number itself, of an array the shape and the type of its elements."""
    if isinstance(value, In):
        value = value.array
    if isinstance(value, (int, float, str)) or value is None:
        return value
    if isinstance(value, np.generic):  # whose repr differs between versions
        return value.item()
    if type(value) in _ARRAYS:  # of which `view` would find more, and numpy takes its time over the name of a dtype
        return value.shape, value.dtype
    seen = view(value)
    if seen is not None:
        return seen.shape, seen.dtype
    _check_hash(f"argument `{name}` of the key is", value)
    return value


def _with_names(value: Any) -> Any:
    """A value of a key with the names of dtypes, which are the same in all processes and for all libraries."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], np.dtype):
        return value[0], dtype_name(value[1])
    return value


def _check_hash(what: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise LaunchError(
            f"{what} {with_article(type(value).__name__)}, which cannot be part of a key: it has no hash", loc=caller(),
            hint="`key=lambda arguments: ...` gives a number or a tuple of numbers",
        ) from None
