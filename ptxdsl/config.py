"""Every setting of ptxdsl, in one place: the ``PTXDSL_*`` variables as typed fields.

A variable that is misspelt, or has no valid value, is an error and never ignored: a sanitizer that
seems to be on must not be off. The environment is read when a setting is needed, not at import, so that tests and
notebooks can change it; :func:`override` changes a setting for a block of Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import ConfigError, PtxError, caller, did_you_mean, similar, with_article
from .options import checked_options

__all__ = [
    "ALL_SANITIZERS", "BACKENDS", "SANITIZERS", "TWINS", "Dump", "backend_token", "current", "device", "error_limit",
    "observer", "override", "report", "sanitizers", "use", "variables", "write_dump",
]

BACKENDS = ("auto", "gpu", "emulator")
ALL_SANITIZERS = ("memory", "race", "order", "init", "barrier")
SANITIZERS = (*ALL_SANITIZERS, "cas")
"""``cas`` is by name only: what it finds does no harm."""
TWINS = ("float64",)
DUMPS = ("ptx", "cubin", "sass", "log")
LOGS = ("off", "info", "debug")
_PREFIX = "PTXDSL_"


@dataclass(frozen=True)
class Dump:
    """What to write beside running: the kinds of file, and the folder."""

    kinds: frozenset[str] = frozenset()
    folder: Path = Path(".")


def _default_cache() -> str:
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(folder, "ptxdsl") if os.path.isabs(folder) else "off"  # a user without a home keeps nothing


def _wrong(what: str, value: object, wanted: str, known: Iterable[str] = ()) -> ConfigError:
    hint = did_you_mean(similar(str(value).lower(), known), "{!r}")
    return ConfigError(f"{what} is {value!r}; it can be {wanted}", loc=caller(), hint=hint)


def _one_of(*known: str) -> Callable[[str, str], str]:
    def read(what: str, text: str) -> str:
        if text not in known:
            raise _wrong(what, text, f"{', '.join(known[:-1])} or {known[-1]}", known)
        return text

    return read


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _chosen(words: list[str], known: tuple[str, ...], wrong: Callable[[str], PtxError]) -> frozenset[str]:
    for word in words:
        if word not in known:
            raise wrong(word)
    return frozenset(words)


def sanitizers(value: Any, wrong: Callable[[str], PtxError]) -> frozenset[str] | None:
    """The sanitizer's checks that a setting or a launch names, None where it names none; ``wrong`` makes the error."""
    if value is None:
        return None
    if isinstance(value, str):
        value = {"all": ALL_SANITIZERS, "off": ()}.get(value, [name.strip() for name in value.split(",")])
    elif isinstance(value, bool):
        value = ALL_SANITIZERS if value else ()
    return _chosen(list(value) if isinstance(value, Iterable) else [value], SANITIZERS, wrong)


def error_limit(value: Any, wrong: Callable[[str], PtxError]) -> float:
    """The largest relative error that is allowed; ``wrong`` makes the error for what is no number from 0 on."""
    try:
        limit = float(value)
    except (TypeError, ValueError):
        limit = -1.0
    if not limit >= 0:
        raise wrong(f"max_error is a number from 0 on, not {value!r}")
    return limit


_SWITCH: dict[str, Iterable[str]] = {"all": ALL_SANITIZERS, "1": ALL_SANITIZERS, "off": (), "0": ()}


def _names(what: str, known: tuple[str, ...], also: str = "") -> Callable[[object], ConfigError]:
    return lambda word: _wrong(what, word, f"{also}one or more of {', '.join(known)}, separated by commas", known)


def _sanitize(what: str, text: str) -> frozenset[str] | None:
    return sanitizers(_SWITCH.get(text, _split(text)), _names(what, SANITIZERS, "all, off, or "))


def _twin(what: str, text: str) -> str | None:
    return None if text in ("off", "0") else _one_of(*TWINS, "off")(what, text)


def _max_error(what: str, text: str) -> float:
    return error_limit(text, lambda _: _wrong(what, text, "a number from 0 on, as 1e-5"))


def _dump(what: str, text: str) -> Dump:
    kinds, _, folder = text.partition("@")
    return Dump(_chosen(_split(kinds), DUMPS, _names(what, DUMPS)), Path(folder or "."))


def _switch(what: str, text: str) -> bool:
    if text not in ("0", "1", "off", "on"):
        raise _wrong(what, text, "0 or 1", ("0", "1", "off", "on"))
    return text in ("1", "on")


def _number(pattern: str, wanted: str) -> Callable[[str, str], int]:
    def read(what: str, text: str) -> int:
        if not re.fullmatch(pattern, text):
            raise _wrong(what, text, wanted)
        return int(text)

    return read


def _arch(what: str, text: str) -> str:
    if text != "auto" and not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        digits = re.sub(r"^(sm|compute)?_?", "", text)
        hint = f"write `sm_{digits}`" if re.fullmatch(r"\d{2,3}[af]?", digits) else None
        raise ConfigError(f"{what} is {text!r}; it can be auto or a target such as sm_90a", loc=caller(), hint=hint)
    return text


def _cache_dir(_: str, text: str) -> Path | None:
    return None if text in ("off", "0") else Path(text).expanduser()


def _program(what: str, text: str) -> str:
    if not os.access(text, os.X_OK) or os.path.isdir(text):
        raise ConfigError(f"{what} is {text!r}, which is no program that can be run", loc=caller())
    return text


@dataclass(frozen=True)
class Config:
    """The settings; each is the variable ``PTXDSL_<NAME>``.

    >>> Config.read({"PTXDSL_BACKEND": "emulator", "PTXDSL_DUMP": "ptx,log@/tmp/out"}).dump.folder.name
    'out'
    """

    backend: str = field(default="auto", metadata={"read": _one_of(*BACKENDS)})
    """``auto`` (a GPU if there is one, else the emulator), ``gpu`` or ``emulator``."""
    cache_dir: Path | None = field(default=None, metadata={"read": _cache_dir})
    """Where cubins and compiled handlers are kept; ``off`` keeps nothing. ``$XDG_CACHE_HOME/ptxdsl`` if unset."""
    arch: str = field(default="auto", metadata={"read": _arch})
    """The target of every kernel that does not name one; ``auto`` is the lowest that its instructions need."""
    ptxas: str | None = field(default=None, metadata={"read": _program})
    """The assembler to use in place of the one found."""
    dump: Dump = field(default=Dump(), metadata={"read": _dump})
    """Files to write: ``ptx``, ``cubin``, ``sass``, ``log``, separated by commas, then ``@folder``."""
    sanitize: frozenset[str] | None = field(default=None, metadata={"read": _sanitize})
    """The emulator's checks: ``memory``, ``race``, ``init``, ``barrier``, separated by commas; ``all`` or ``off``."""
    twin: str | None = field(default=None, metadata={"read": _twin})
    """``float64``: launches on the emulator are followed in float64 (:func:`ptxdsl.numerics`); ``off`` if unset."""
    max_error: float | None = field(default=None, metadata={"read": _max_error})
    """The largest relative error that their results may have."""
    seed: int | None = field(default=None, metadata={"read": _number(r"\d{1,9}", "a number from 0 to 999999999")})
    """The seed of a random schedule of the warps on the emulator; they run in a fixed order if unset."""
    emulator_threads: int | None = field(
        default=None, metadata={"read": _number(r"[1-9]\d{0,3}", "a number of threads from 1 to 9999")}
    )
    """How many threads the emulator spreads blocks over. If unset, all cores that the process may use, but no more than
    OMP_NUM_THREADS, which Dask, Ray and joblib set in the processes that they start. With 1, what
    depends on the order of blocks, as sums of floats by ``atom.add`` do, is the same in every run."""
    lineinfo: bool = field(default=True, metadata={"read": _switch})
    """Whether the PTX carries the Python line of each instruction."""
    nvtx: bool = field(default=False, metadata={"read": _switch})
    """Whether launches are NVTX ranges, which Nsight Systems shows; needs the package nvtx."""
    log: str = field(default="off", metadata={"read": _one_of(*LOGS)})
    """What to report on stderr: ``off``, ``info`` or ``debug``."""

    traceback: str = field(default="short", metadata={"read": _one_of("short", "full")})
    """``short`` leaves ptxdsl's own frames out of the tracebacks of its errors, ``full`` shows them."""
    debug: bool = field(default=False, metadata={"read": _switch})
    """Whether each launch on a GPU is waited for, and made again on the emulator where it faults."""
    device: int = field(default=0, metadata={"read": _number(r"\d{1,3}", "the ordinal of a GPU, from 0 on")})
    """The GPU of new device arrays, and of launches without any."""
    stream: tuple[int, int] | None = None
    """The GPU and the handle of the stream of the ``with`` block around; no variable sets it."""

    @property
    def launch_device(self) -> int:
        """The GPU of launches without arrays on one: that of the stream around, or else :attr:`device`."""
        return self.device if self.stream is None else self.stream[0]

    @classmethod
    def read(cls, environ: dict[str, str]) -> Config:
        """The settings in a set of variables; ConfigError for a name or a value that is none."""
        known = {_PREFIX + name.upper(): name for name in _READERS}
        values: dict[str, Any] = {}
        for variable, text in environ.items():
            if variable not in known:
                near = similar(variable.removeprefix(_PREFIX).lower(), _READERS)
                hint = did_you_mean(map(str.upper, near), f"`{_PREFIX}{{}}`", f"the variables are {', '.join(known)}")
                raise ConfigError(f"there is no variable {variable}", loc=caller(), hint=hint)
            values[known[variable]] = _READERS[known[variable]](variable, text)
        return cls(**values)


_READERS: dict[str, Callable[[str, str], Any]] = {
    each.name: each.metadata["read"] for each in fields(Config) if each.metadata
}
"""What makes the value of a setting of the variable's name and text."""

_overrides: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("ptxdsl_config", default=())
"""What the :func:`override` around the call change."""

observer: ContextVar[Any] = ContextVar("ptxdsl_observer", default=None)
"""What observes the launches from here on, a profile or a debugger (``emulator.tools.observer``)."""


def _key(name: str) -> Any:
    return name if _environ is os.environ else os.environ.encodekey(name)


# os.environ encodes and decodes at every access, which would be most of a launch; the dict inside does not.
_environ: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_BACKEND = _key("PTXDSL_BACKEND")
_VARIABLES = [_key(name) for name in (*(_PREFIX + name.upper() for name in _READERS), "XDG_CACHE_HOME", "HOME")]


@lru_cache(maxsize=16)
def _read(
    names: tuple[Any, ...], values: tuple[Any, ...], changes: tuple[tuple[str, Any], ...]  # noqa: ARG001
) -> Config:
    given = {name: text for name, text in os.environ.items() if name.startswith(_PREFIX) and text}
    given.setdefault("PTXDSL_CACHE_DIR", _default_cache())
    return replace(Config.read(given), **dict(changes))


_latest: tuple[list[Any], list[Any], tuple[tuple[str, Any], ...], Config] | None = None
"""The environment and the changes for which the settings were asked last: comparing them takes less than `_read`."""


def current() -> Config:
    """The settings in force: the environment, changed by every :func:`override` around the call.

    The same object for as long as they are the same.
    """
    global _latest  # noqa: PLW0603
    names, values, changes = [*_environ], [*_environ.values()], _overrides.get()
    latest = _latest
    if latest is not None and names == latest[0] and values == latest[1] and changes is latest[2]:
        return latest[3]
    found = _read(tuple(names), tuple(map(_environ.get, _VARIABLES)), changes)
    _latest = names, values, changes, found
    return found


_LAUNCHING = tuple(
    _key(f"{_PREFIX}{name}") for name in ("BACKEND", "DEVICE", "ARCH", "LINEINFO", "NVTX", "LOG", "DEBUG")
)


def variables() -> tuple[Mapping[Any, Any], tuple[Any, ...]]:
    """The environment's own table, and the names in it of the variables that a launch on a GPU depends on."""
    return _environ, _LAUNCHING


def backend_token() -> tuple[object, ...]:
    """Equal at two times only if backend and observer are the same; cheaper than :func:`current`."""
    return _environ.get(_BACKEND), _overrides.get(), observer.get()


def report(level: str, message: str) -> None:
    """A line on stderr, where ``PTXDSL_LOG`` asks for it."""
    if LOGS.index(level) <= LOGS.index(current().log):
        print(f"ptxdsl: {message}", file=sys.stderr)


def write_dump(kind: str, name: str, content: str | bytes) -> None:
    """Write a file, where ``PTXDSL_DUMP`` asks for its kind; ConfigError if that cannot be done."""
    dump = current().dump
    if kind not in dump.kinds:
        return
    try:
        dump.folder.mkdir(parents=True, exist_ok=True)
        (dump.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise ConfigError(f"dump wants {name} written to {dump.folder}: {error.strerror}", loc=caller()) from None


_alike: dict[Any, tuple[tuple[str, Any], ...]] = {}
_MOST_ALIKE = 256


def _same(changed: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Changes as a tuple, the same one as for equal changes before: launches compare them by identity."""
    changes = tuple(changed.items())
    if len(_alike) >= _MOST_ALIKE:
        _alike.clear()
    return _alike.setdefault(tuple((name, type(value), value) for name, value in changes), changes)


class override:
    """Change settings from here on; as a context manager, for its block only.

    Values are those of :class:`Config`, or the text that the variable would have.

    >>> with override(backend="emulator", sanitize="race,init"):
    ...     sorted(current().sanitize)
    ['init', 'race']
    """

    def __init__(self, **settings: Any) -> None:
        changed = {**dict(_overrides.get()), **{name: self._value(name, value) for name, value in settings.items()}}
        self._token: Token[tuple[tuple[str, Any], ...]] | None = _overrides.set(_same(changed))

    @staticmethod
    def _value(name: str, value: Any) -> Any:
        if name == "stream":
            return value
        if name not in _READERS:
            hint = did_you_mean(similar(name, _READERS), otherwise=f"the settings are {', '.join(_READERS)}")
            raise ConfigError(f"there is no setting {name!r}", loc=caller(), hint=hint)
        if isinstance(value, str) or (name in ("device", "emulator_threads", "max_error") and value is not None):
            return _READERS[name](name, str(value))
        kinds = {"backend": str, "arch": str, "log": str, "dump": Dump, "lineinfo": bool, "debug": bool, "nvtx": bool}
        if name in kinds and not isinstance(value, kinds[name]):
            raise _wrong(name, value, with_article(kinds[name].__name__))
        if name == "dump":
            return replace(value, kinds=frozenset(value.kinds))
        return sanitizers(value, _names(name, SANITIZERS)) if name == "sanitize" else value

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            _overrides.reset(self._token)
            self._token = None


def device(ordinal: int) -> override:
    """Make new device arrays on a GPU, and launches there that are given none.

    As a context manager for its block, as a plain call from here on. ConfigError for what is no ordinal.

    >>> with device(1):
    ...     current().device
    1
    """
    return override(device=ordinal)


@checked_options(ConfigError, "use")
def use(backend: str | None = None, *, nvtx: bool | None = None) -> override:
    """Run kernels on ``"gpu"``, ``"emulator"`` or (``"auto"``) the GPU if there is one.

    With ``nvtx=True`` each launch is an NVTX range with the kernel's name and geometry. As a context manager for its
    block, as a plain call from here on.

    >>> with use("emulator"):
    ...     current().backend
    'emulator'
    """
    given = {"backend": backend, "nvtx": nvtx}
    return override(**{name: value for name, value in given.items() if value is not None})
