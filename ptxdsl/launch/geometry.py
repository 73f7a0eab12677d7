"""What a launch is: the geometry, and the bytes and memory that the kernel's parameters become.

Both backends are given the same two things, a :class:`LaunchConfig` and one :class:`Scalar`, :class:`Buffer` or
:class:`Handle` for each ``.param`` of the entry. Everything that a user can get wrong is found before, so that a
backend never sees a bad launch, and a bad launch never runs in part.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union, runtime_checkable

from ..config import SANITIZERS, TWINS, error_limit, sanitizers
from ..errors import LaunchError, caller, did_you_mean, similar
from ..isa.targets import TARGETS, Limits, limits

if TYPE_CHECKING:
    from .arrays import View

__all__ = [
    "DEFAULT_STREAMS", "IMAGE_KINDS", "LIMITS", "Argument", "Buffer", "FastPath", "Handle", "ImageArgument",
    "LaunchConfig", "Scalar", "TracksWrites", "buffers_of", "clustered", "stream_handle",
]

LIMITS = Limits(
    shared=max(limits(target).shared for target in TARGETS), cluster=max(limits(target).cluster for target in TARGETS)
)
"""The largest of any GPU; the backend checks those of its own GPU."""


DEFAULT_STREAMS = (0, 1, 2)
"""The handles that mean a default stream in every process: the legacy one by 0 and 1, that of the thread by 2."""


class Scalar(NamedTuple):
    """A parameter passed by value: the bytes of its ``.param``, little-endian, which may point to ``targets``."""

    name: str
    data: bytes
    targets: tuple[Buffer, ...] = ()


class TracksWrites:
    """An owner of memory that knows which of its bytes were never written; the sanitizer keeps that up to date."""

    __slots__ = ()
    unwritten: Any
    """A mask of the bytes, True for all of them, None where it is not known."""

    @property
    def is_part(self) -> bool:
        """Whether the memory is a part of another owner's, which keeps the record."""
        return False


class Buffer(NamedTuple):
    """A parameter that points to memory: a ``.param`` of 64 bits that holds ``address``.

    The kernel may touch ``nbytes`` bytes from ``address`` on. ``dtype`` is numpy's name of the elements' type,
    ``strides`` are in bytes. ``device`` is the ordinal of the GPU that holds the memory, None for host memory; on
    ``stream`` it becomes valid, where its owner gives one. ``owner`` keeps the memory alive. The elements of a table of
    pointers point to the memory of ``targets``.
    """

    name: str
    address: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    owner: object
    device: int | None = None
    stream: int | None = None
    targets: tuple[Buffer, ...] = ()
    direction: str | None = None
    """``"in"``, ``"out"`` or ``"inout"`` where the caller says how host memory is copied."""

    @classmethod
    def of(cls, name: str, seen: View, nbytes: int | None = None) -> Buffer:
        """An array as a parameter: all of it, or ``nbytes`` from its first element on."""
        address, dtype, itemsize, shape, strides, readonly, device, owner, stream = seen
        size = math.prod(shape) * itemsize if nbytes is None else nbytes
        return cls(name, address, size, dtype, shape, strides, not readonly, owner, device, stream)


def buffers_of(arguments: Iterable[Argument]) -> Iterator[Buffer]:
    """The arrays of a launch: its arguments, and what these point to."""
    for argument in arguments:
        if isinstance(argument, Buffer):
            yield argument
        elif isinstance(argument, Scalar):
            yield from argument.targets


@runtime_checkable
class ImageArgument(Protocol):
    """A texture, a sampler or a surface, as a host program makes them."""

    image_kind: str
    """One of the values of :data:`IMAGE_KINDS`."""


IMAGE_KINDS = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
"""By the opaque types of PTX."""


class Handle(NamedTuple):
    """A parameter that is the handle of a texture, a sampler or a surface; it is another number on each backend."""

    name: str
    owner: Any


Argument = Union[Scalar, Buffer, Handle]
FastPath = Callable[[Sequence[object]], bool]
"""Makes a launch again with other arguments of the same types. False if it did nothing, since an argument is unusual or
the settings are others: then the launch goes through all its checks again.
"""


SYNC_DOMAINS = ("default", "remote")
"""CUDA's domains of memory synchronisation, by their numbers."""
_SCHEDULE = re.compile(r"\d+:\d+\.\d+(#\d+)?( \d+:\d+\.\d+(#\d+)?)*")


@dataclass(frozen=True)
class LaunchConfig:
    """How many blocks of how many threads, and the other options of a launch.

    ``grid`` counts blocks, also with a ``cluster``; ``shared`` is dynamic shared memory in bytes; ``stream`` is the
    handle of a CUDA stream or None; ``sanitize`` the names of the emulator's checks; with a ``seed`` the emulator's
    warps run in a random schedule, the same for the same seed; with ``schedule="explore"`` it makes the launch in
    every execution that PTX's memory model allows, or that the order of its synchronisation does, and with a
    schedule that this has told in that one again. On a GPU, and without effect on the emulator, a launch of less
    ``priority`` goes first; a ``programmatic`` one may begin before the one before it on its stream ends, and waits
    for that by ``griddepcontrol.wait``; ``sync_domain="remote"`` keeps its fences from waiting for the stores of
    other launches; each thread has a call stack of ``stack`` bytes or more, where a kernel calls itself or what it
    calls is not known when it is assembled. With ``twin="float64"`` the emulator follows every float in float64
    (:func:`ptxdsl.numerics`); a result with a larger error than ``max_error`` is a NumericalError. ``traced`` is the
    module that the text was printed from, with what only a sanitizer asks. A dimension is an int or a tuple of one to
    three. Raises LaunchError for what no GPU can launch.

    >>> config = LaunchConfig((4, 2), 256)
    >>> config.grid, config.block, config.blocks
    ((4, 2, 1), (256, 1, 1), 8)
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    stream: int | None = None
    sanitize: frozenset[str] | None = None
    seed: int | None = None
    schedule: str | None = None
    priority: int | None = None
    programmatic: bool = False
    sync_domain: str | None = None
    stack: int = 0
    twin: str | None = None
    max_error: float | None = None
    traced: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "grid", _dimensions("grid", self.grid, LIMITS.grid))
        put(self, "block", _dimensions("block", self.block, LIMITS.block))
        if self.threads > LIMITS.threads:
            raise LaunchError(
                f"block {self.block} has {self.threads} threads; the limit is {LIMITS.threads}", loc=caller(),
                hint="make the block smaller and the grid larger",
            )
        put(self, "shared", _integer("shared", self.shared, 0, LIMITS.shared, "bytes"))
        if self.cluster is not None:
            put(self, "cluster", clustered(self.cluster, self.grid))
        for name in ("cooperative", "programmatic"):
            if not isinstance(getattr(self, name), bool):
                raise LaunchError(f"{name} is True or False, not {getattr(self, name)!r}", loc=caller())
        if self.priority is not None:
            put(self, "priority", _integer("priority", self.priority, -(1 << 31), (1 << 31) - 1, ""))
        put(self, "stack", _integer("stack", self.stack, 0, LIMITS.local, "bytes"))
        if self.sync_domain not in (None, *SYNC_DOMAINS):
            raise LaunchError(
                f"sync_domain is one of {', '.join(SYNC_DOMAINS)}, not {self.sync_domain!r}", loc=caller()
            )
        put(self, "stream", stream_handle(self.stream))
        put(self, "sanitize", sanitizers(self.sanitize, _no_sanitizer))
        if self.seed is not None:
            put(self, "seed", _integer("seed", self.seed, 0, (1 << 32) - 1, ""))
        if self.schedule is not None:
            self._check_schedule()
        if self.twin is not None or self.max_error is not None:
            self._check_twin()

    def _check_twin(self) -> None:
        if self.twin not in TWINS:
            wanted = " or ".join(map(repr, TWINS))
            why = " where max_error is given" if self.twin is None else ""
            raise LaunchError(f"twin is {wanted}{why}, not {self.twin!r}", loc=caller(), hint=f'`twin="{TWINS[0]}"`')
        if self.max_error is not None:
            limit = error_limit(self.max_error, lambda text: LaunchError(text, loc=caller()))
            object.__setattr__(self, "max_error", limit)
        if self.schedule is not None:
            raise LaunchError(
                f"a launch is followed, or has a schedule: twin={self.twin!r} and schedule={self.schedule!r}",
                loc=caller(), hint="leave one of them out",
            )

    def _check_schedule(self) -> None:
        if not isinstance(self.schedule, str) or not (self.schedule == "explore" or _SCHEDULE.fullmatch(self.schedule)):
            raise LaunchError(
                f"schedule is None, 'explore', or a schedule that an exploration has told, not {self.schedule!r}",
                loc=caller(), hint='`schedule="explore"`',
            )
        if self.seed is not None:
            raise LaunchError(
                f"a launch has a schedule or a seed: seed={self.seed} draws one schedule, and "
                f"schedule={self.schedule!r} says which", loc=caller(), hint="leave one of them out",
            )

    @cached_property
    def threads(self) -> int:
        """Threads in a block."""
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return math.prod(self.grid)


def _dimensions(what: str, value: object, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    given = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(given) <= 3:
        raise LaunchError(
            f"{what} is an int or a tuple of 1 to 3 ints, not {value!r}", loc=caller(),
            hint=f"write `{what}=4` or `{what}=(4, 2)`",
        )
    sizes = [_integer(f"{what}.{axis}", item, 1, limit, "") for axis, item, limit in zip("xyz", given, limits)]
    return (*sizes, *(1,) * (3 - len(sizes)))  # type: ignore[return-value]


def _integer(what: str, value: object, low: int, high: int, unit: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        hint = None
        if isinstance(value, float) and value.is_integer():
            hint = f"write `{int(value)}`"
        elif isinstance(value, float) and what.startswith("grid"):
            hint = "round up: `cdiv(n, 256)` blocks of 256 threads"
        raise LaunchError(f"{what} is an int, not {value!r}", loc=caller(), hint=hint) from None
    if not low <= number <= high:
        unit = f" {unit}" if unit else ""
        hint = "an empty array needs no launch: `if x.size:`" if not number and what.startswith("grid") else None
        raise LaunchError(f"{what} is {number}{unit}; it can be {low} to {high}{unit}", loc=caller(), hint=hint)
    return number


def clustered(value: object, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """The shape of a cluster, of which a grid must be made; LaunchError if it is not."""
    cluster = _dimensions("cluster", value, (LIMITS.cluster, LIMITS.cluster, LIMITS.cluster))
    blocks = math.prod(cluster)
    if blocks > LIMITS.cluster:
        raise LaunchError(f"cluster {cluster} has {blocks} blocks; the limit is {LIMITS.cluster}", loc=caller())
    for axis, size, per in zip("xyz", grid, cluster):
        if size % per:
            raise LaunchError(
                f"cluster.{axis} is {per}, which does not divide grid.{axis} = {size} (grid counts blocks)",
                loc=caller(), hint=f"round grid.{axis} up to {-(-size // per) * per}",
            )
    return cluster


def stream_handle(stream: object) -> int | None:
    """The handle of a stream: an int, or an object of cuda.core, torch, CuPy or Numba."""
    if stream is None or (isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    raise LaunchError(
        f"stream is a CUDA stream or its handle, not {stream!r}", loc=caller(),
        hint="pass an int, or an object with `__cuda_stream__` (cuda.core, torch, CuPy)",
    )


def _no_sanitizer(name: object) -> LaunchError:
    near = similar(str(name).lower(), (*SANITIZERS, "all", "off"))
    hint = did_you_mean(near, "{!r}", f"one or more of {', '.join(SANITIZERS)}")
    return LaunchError(f"{name!r} is no check of the sanitizer", loc=caller(), hint=hint)
