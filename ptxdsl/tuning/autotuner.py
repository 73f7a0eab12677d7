"""``@autotune``: a kernel that finds its configuration by trying, once for each key, and remembers it.

A trial changes nothing: the memory that the kernel writes is put back. What cannot be launched is told. Results are
kept on disk for each configuration by itself, so that one that is added is the only one that is measured.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Union

from ..errors import LaunchError, PtxWarning, caller, did_you_mean, similar
from ..kernel.backends import choose
from ..kernel.dispatcher import Dispatcher
from ..launch.arrays import view
from .config import Config
from .results import Tuning
from .trials import Trials, launch_of

__all__ = ["Autotuned", "Key", "TunedLaunch", "autotune"]

Key = Union[Iterable[str], Callable[[dict[str, Any]], Hashable]]
"""What the choice depends on: names of arguments, or a function of all arguments by their names."""
Prune = Callable[[list[Config], dict[str, Any]], Iterable[Config]]
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
        self._chosen: dict[Hashable, Config] = {}
        self._tunings: dict[Hashable, Tuning] = {}
        self._told: set[Config] = set()

    def _check(self) -> None:
        kernel = self.kernel
        if not self.configs:
            raise LaunchError(f"kernel `{kernel.entry}` has no configuration to try", loc=caller())
        signature = getattr(kernel, "signature", None)
        constants = [*signature.constants] if signature is not None else []
        for config in self.configs:
            if not isinstance(config, Config):
                raise LaunchError(f"configs are a list of Config, in which {config!r} is none", loc=caller())
            for name in config.constants:
                if name not in constants:
                    raise LaunchError(
                        f"{config} sets `{name}`, which is no compile-time constant of kernel `{kernel.entry}`; "
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

        ``grid`` may be a function of the configuration, and None like ``block`` where the configurations have it. A
        grid of several dimensions is a tuple in the tuple: ``k[(8, 8),]``.
        """
        given = item if isinstance(item, tuple) else (item,)
        if not 1 <= len(given) <= 4:
            raise LaunchError(
                f"a tuned launch takes [grid], [grid, block], [grid, block, stream] or [grid, block, stream, shared], "
                f"not {len(given)} of them", loc=caller(), hint="a grid of several dimensions: `k[(8, 8),](...)`",
            )
        return self.configure(**dict(zip(("grid", "block", "stream", "shared"), given)))

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
        tuning = trials.run(tried, key[1], _shown(self.key, key[1]))
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
        constants = tuple(sorted(named.keys() - self._parameters))
        for name in constants:
            _check_hash(f"the compile-time constant `{name}` is", named[name])
        if callable(self.key):
            value: Any = self.key(self._by_name(args, named))
            _check_hash("the function of the key gives", value)
        else:
            arguments = self._by_name(args, named) if self.key else {}
            value = tuple(_key_value(name, arguments[name]) for name in self.key if name in arguments)
        return choose(launch.options.get("backend")), value, tuple((name, named[name]) for name in constants)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.kernel, self.configs, self.key, self.prune, self.seconds, self.cache)

    def __repr__(self) -> str:
        return f"<autotuned {self.kernel!r}, {len(self.configs)} configurations>"


class TunedLaunch:
    """A tuned kernel with what a launch says of its geometry, to be called with the arguments."""

    __slots__ = ("options", "owner")

    def __init__(self, owner: Autotuned, options: dict[str, Any]) -> None:
        self.owner, self.options = owner, options

    def __call__(self, *args: object, **named: object) -> None:
        """Launch in the best configuration; the first launch for a key tries all of them."""
        config = self.owner.chosen(self, args, named)
        launch_of(self.owner.kernel, config, self.options)(*args, **named, **config.constants)

    def tune(self, *args: object, **named: object) -> Tuning:
        """Try the configurations for these arguments if that was not done; nothing that the kernel writes changes."""
        return self.owner.tune(self, args, named)


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
    >>> @autotune([Config(block=32), Config(block=256)], key=["n"])
    ... @ptx_kernel
    ... def add_one(n: u32, x: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     with when(i < n):
    ...         x[i] = x[i] + 1.0
    >>> x = np.zeros(1000, np.float32)
    >>> with use("emulator"):
    ...     add_one[lambda config: cdiv(1000, config.block)](1000, x)
    >>> x.min(), x.max()
    (np.float32(1.0), np.float32(1.0))
    >>> print(add_one.tuning()[0])
    add_one, n = 1000, on emulator  work  of best
    Config(block=32)                 666     1.00
    Config(block=256)                ...
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
    if isinstance(value, (int, float, str, bool)) or value is None:
        return value
    seen = view(value)
    if seen is not None:
        return seen.shape, seen.dtype
    if hasattr(value, "item"):  # numpy's scalars, whose repr differs between versions
        value = value.item()
    _check_hash(f"argument `{name}` of the key is", value)
    return value


def _check_hash(what: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise LaunchError(
            f"{what} a {type(value).__name__}, which cannot be part of a key: it has no hash", loc=caller(),
            hint="`key=lambda arguments: ...` gives a number or a tuple of numbers",
        ) from None


def _shown(key: Sequence[str] | Callable[..., Any], values: Any) -> dict[str, Any]:
    return {"key": values} if callable(key) else dict(zip(key, values))
