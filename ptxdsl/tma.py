"""Tensor copies (TMA): boxes of a tensor map between global and shared memory, issued by one thread.

Plain Python functions on the public language, traced in place. ``ptxdsl.tensor_map(array, box, swizzle=...)`` makes
the map on the host, a parameter of type ``TensorMap`` takes it. Coordinates are elements of the array, **in numpy's
order**, as the shapes of the array and of the box are: ``tma.load(tile, a, (row, column), bar)`` copies what lies at
``a[row:, column:]``. They are ints, u32 or s32, may be negative and may lie beyond the array.

A load tells its end to an mbarrier, in bytes; stores, reductions and what `commit` groups are waited for by the thread
that issued them. Each function is for **one** thread: put it under a ``when``.

A `Tile` that is wider than its swizzle is copied box by box, with the map of ``tile.box``.

PTX ISA, sections 9.7.9.27 (cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, prefetch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import mbarrier
from .cluster import half
from .errors import PtxTypeError
from .language import Pointer, Value, ptx
from .language.block_needs import needs_box
from .language.errors import described, located
from .language.memory.tensor_map import TensorMapValue
from .language.values.literals import known_integer
from .tiles import Tile
from .types import s32, u32

__all__ = [
    "commit", "fence", "gather", "load", "load_pixels", "prefetch", "prefetch_map", "reduce", "scatter", "store",
    "wait",
]

_DONE = "mbarrier::complete_tx::bytes"
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def load(
    to: Any, source: Any, at: Sequence[Any], bar: Any, *, multicast: Any = None, pair: bool = False
) -> None:
    """Copy the box of the map ``source`` at these coordinates to ``to``, a `Tile` or a pointer into shared memory.

    The mbarrier ``bar`` counts its bytes (all of the box, also where it sticks out of the array). With ``multicast``,
    a mask of ranks, it comes to the same place of each of these blocks of the cluster, and their mbarriers count.
    ``pair``: the mbarrier may be that of the other block of a pair, ``cluster.at(bar, rank)`` (``cta_group::2``, sm_100
    and later).

    >>> import numpy as np
    >>> from ptxdsl import Ptr, TensorMap, f32, mbarrier, ptx, ptx_kernel, shared, tensor_map, tma, when
    >>> @ptx_kernel
    ... def diagonal(a: TensorMap, x: Ptr[f32]):
    ...     box, bar = shared(f32, 8, 8, align=128), mbarrier.declare()
    ...     mbarrier.start((bar, 1))
    ...     with when(ptx.tid.x == 0):
    ...         mbarrier.arrive(bar, expect_tx=8 * 8 * 4)
    ...         tma.load(box, a, (4, 8), bar)
    ...     mbarrier.wait(bar, 0)
    ...     x[ptx.tid.x] = box[ptx.tid.x, ptx.tid.x]
    >>> a, x = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros(8, np.float32)
    >>> diagonal.configure(1, 8, backend="emulator")(tensor_map(a, (8, 8)), x)
    >>> bool((x == a[4:, 8:].diagonal()).all())
    True
    """
    for place, coordinates in _boxes(to, at, "tma.load", source):
        _load(f"{len(coordinates)}d", "", place, source, coordinates, bar, (), multicast, pair)


def gather(to: Any, source: Any, rows: Sequence[Any], column: Any, bar: Any, *, multicast: Any = None) -> None:
    """Copy four rows, from ``column`` on, one behind the other to ``to``; the map's box is (1, columns). sm_100a."""
    coordinates = _rows(rows, column)
    _load("2d", "tile::gather4.", _place(to, "tma.gather"), source, coordinates, bar, (), multicast, False)


def load_pixels(
    to: Any, source: Any, at: Sequence[Any], offsets: Sequence[Any], bar: Any, *, multicast: Any = None
) -> None:
    """Copy the pixels that a convolution needs (im2col), of a map with ``corners``, of an array (N, [[D,] H,] W, C).

    ``at`` is (n, [[d,] h,] w, c); ``offsets`` are those of the filter's element, ([[d,] h,] w), from 0 on.
    """
    coordinates = _coordinates(at)
    if not 3 <= len(coordinates) <= 5:
        raise located(
            PtxTypeError, f"pixels at {len(coordinates)} coordinates", "3 to 5, of an array (N, [[D,] H,] W, C)"
        )
    if len(offsets) != len(coordinates) - 2:
        raise located(
            PtxTypeError, f"{len(offsets)} offsets of pixels at {len(coordinates)} coordinates",
            f"{len(coordinates) - 2}: one for each dimension but images and channels",
        )
    moved = [half(offset, "the offset of a pixel") for offset in reversed(offsets)]
    place = _place(to, "tma.load_pixels")
    _load(f"{len(coordinates)}d", "im2col.", place, source, coordinates, bar, (moved,), multicast, False)


def _load(
    dimensions: str, mode: str, place: Any, source: Any, coordinates: Any, bar: Any, more: tuple[Any, ...],
    multicast: Any, pair: bool,
) -> None:
    remote = pair and isinstance(bar, Pointer) and bar.space == "shared::cluster" and bar.dtype.bits == 64
    signal = bar if remote else mbarrier.checked(bar, "`bar = mbarrier.declare()`, or the `full` of a stage")
    operands = [place, (_map(source), coordinates), signal, *more]
    name = f"cp.async.bulk.tensor.{dimensions}.shared::cluster.global.{mode}{_DONE}"
    if multicast is not None:
        name += ".multicast::cluster"
        operands.append(half(multicast))
    ptx[f"{name}.cta_group::2" if pair else name](*operands)


def store(target: Any, at: Sequence[Any], source: Any) -> None:
    """Copy ``source``, a `Tile` or a pointer into shared memory, to the box of the map ``target``.

    What ordinary stores wrote there must be fenced by the threads that did (``tma.fence()``), with a barrier behind.
    Then ``commit`` and ``wait``.
    """
    for place, coordinates in _boxes(source, at, "tma.store", target):
        _put("cp.async.bulk.tensor", "", target, coordinates, place)


def scatter(target: Any, rows: Sequence[Any], column: Any, source: Any) -> None:
    """Copy four rows that lie one behind the other to rows of the map ``target``, from ``column`` on. sm_100a."""
    ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"](
        (_map(target), _rows(rows, column)), _place(source, "tma.scatter")
    )


def reduce(operation: str, target: Any, at: Sequence[Any], source: Any) -> None:
    """Combine ``source`` into the box of the map: "add", "min", "max", "inc", "dec", "and", "or" or "xor".

    Each element at once; as `store` else.
    """
    if operation not in _OPERATIONS:
        raise located(
            PtxTypeError, f"a reduction by {described(operation)}", f"one of {', '.join(_OPERATIONS)}"
        )
    for place, coordinates in _boxes(source, at, "tma.reduce", target):
        _put("cp.reduce.async.bulk.tensor", f"{operation}.", target, coordinates, place)


def _put(opcode: str, operation: str, target: Any, coordinates: Any, place: Any) -> None:
    name = f"{opcode}.{len(coordinates)}d.global.shared::cta.{operation}bulk_group"
    ptx[name]((_map(target), coordinates), place)


def commit() -> None:
    """Make a group of the stores and reductions of this thread since the last one."""
    ptx["cp.async.bulk.commit_group"]()


def wait(left: int = 0, *, read: bool = False) -> None:
    """Wait until at most the last ``left`` groups of this thread are pending.

    ``read``: only until they have read shared memory, which may then be used again.
    """
    ptx[f"cp.async.bulk.wait_group{'.read' * read}"](left)


def fence() -> None:
    """Have tensor copies and matrix instructions see what this thread has written to shared memory (and the reverse).

    For each thread that wrote; a barrier behind it, then the thread that issues the copy.
    """
    ptx.fence.proxy.async_.shared__cta()


def prefetch(source: Any, at: Sequence[Any]) -> None:
    """Bring the box of a map to the L2 cache, as a hint."""
    coordinates = _coordinates(at)
    ptx[f"cp.async.bulk.prefetch.tensor.{len(coordinates)}d.L2.global"]((_map(source), coordinates))


def prefetch_map(source: Any) -> None:
    """Bring a tensor map itself to the cache, as a hint, before its first copy."""
    ptx.prefetch.tensormap(_map(source).address)


# ---------------------------------------------------------------------------------------------------------------------


def _boxes(tile: Any, at: Sequence[Any], what: str, mapped: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The place and the coordinates, in PTX's order, of each box that a tile is copied by."""
    coordinates = _coordinates(at)
    if not isinstance(tile, Tile):
        yield _place(tile, what), coordinates
        return
    if tile.transposed:
        raise located(
            PtxTypeError, f"{what} of {tile!r}, and a copy transposes nothing", "the tile itself, without `.T`"
        )
    if not tile.swizzle and tile.pitch != tile.shape[1]:
        raise located(PtxTypeError, f"{what} of {tile!r}: a box has no gaps", "a tile without a `pitch`")
    if tile.shape[0] > 256:
        raise located(PtxTypeError, f"{what} of {tile!r}: a box has 256 rows at most", "`tile.part(256, columns)`")
    swizzle = tile.swizzle if tile.swizzle > 16 else 0
    needs_box(_map(mapped).name, what, tile.box, 8 * tile.dtype.bytes, swizzle)
    for column in range(0, tile.shape[1], tile.slab):
        first = coordinates[0] + column if column else coordinates[0]
        yield tile.element(0, column), (first, *coordinates[1:])


def _place(place: Any, what: str) -> Any:
    if not isinstance(place, Pointer) or place.space != "shared":
        wanted = "the place of its first row: `tile.at(0, 0)`" if isinstance(place, Tile) else (
            "a `Tile`, or a pointer into shared memory: `x.at(i, 0)`"
        )
        raise located(PtxTypeError, f"{what} of {described(place)}", wanted)
    return place


def _map(source: Any) -> TensorMapValue:
    if not isinstance(source, TensorMapValue):
        raise located(
            PtxTypeError, f"{described(source)} is no tensor map",
            "a parameter `a: TensorMap`, and `tensor_map(array, box)` at the launch",
        )
    return source


def _coordinates(at: Sequence[Any]) -> tuple[Any, ...]:
    """In PTX's order, as s32."""
    if not isinstance(at, (tuple, list)) or not 1 <= len(at) <= 5:
        got = f"{len(at)} of them" if isinstance(at, (tuple, list)) else described(at)
        raise located(
            PtxTypeError, f"the coordinates of a box are 1 to 5 numbers, not {got}",
            "one for each dimension of the array, in its order: `(row, column)`",
        )
    return tuple(_coordinate(number) for number in reversed(at))


def _coordinate(number: Any) -> Any:
    if isinstance(number, Value):
        if number.type in (u32, s32):
            return number.bits(s32) if number.type is u32 else number
        raise located(PtxTypeError, f"a coordinate is a u32 or s32, not {number.type}", "`.to(s32)`")
    known = known_integer(number)
    if known is None or not -(1 << 31) <= known < 1 << 31:
        raise located(PtxTypeError, f"{described(number)} is no coordinate", "an int, a u32 or an s32")
    return known


def _rows(rows: Sequence[Any], column: Any) -> tuple[Any, ...]:
    if not isinstance(rows, (tuple, list)) or len(rows) != 4:
        got = f"{len(rows)} rows" if isinstance(rows, (tuple, list)) else described(rows)
        raise located(PtxTypeError, f"a copy of {got}; it is of four", "`tma.gather(to, a, (i, j, k, l), column, bar)`")
    return _coordinate(column), *map(_coordinate, rows)
