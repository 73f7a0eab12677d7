"""The launches of reductions: which axes go together, into how many blocks a row is split, and where the states go."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce as _fold
from operator import mul
from typing import Any

from .. import cdiv, s64

from . import arguments, storage
from .reduce_kernels import COLUMN_LANES, THREADS, column_kernel, merge_kernel, row_kernel
from .reduce_operations import Operation, operation

__all__ = ["Axis", "add_parts", "product", "reduced"]

Axis = int | tuple[int, ...] | None
_CHUNK_BYTES = 1 << 16
"""A block reduces at least so much, where a row or column is split."""
_ENOUGH_BLOCKS = 512
"""So many blocks fill every GPU; rows and columns are not split any further."""
_SPOKEN = {"largest": "greatest magnitude"}


def reduced(name: str, x: Any, axis: Axis, keepdims: bool = False, out: Any = None) -> Any:
    """The reduction ``name`` of :mod:`.reduce_operations` along an axis, several, or all."""
    shape = arguments.expect_array("x", x, [*storage.NUMBERS, "bool"])
    if name.startswith("arg") and isinstance(axis, (tuple, list)):
        raise arguments.wrong(f"axis is {axis!r:.60}; it can be an int, or None for all", hint="reshape `x` first")
    axes = arguments.axes("axis", axis, len(shape))
    kept = tuple(n for at, n in enumerate(shape) if at not in axes)
    if name in ("max", "min", "largest", "argmax", "argmin") and product(kept) and not product(shape):
        raise arguments.wrong(f"`x` has shape {list(shape)}; along no elements there is no {_SPOKEN.get(name, name)}")
    op = operation(name, arguments.scalar_type("x", x))
    if arguments.flag("keepdims", keepdims):
        kept = tuple(1 if at in axes else n for at, n in enumerate(shape))
    out = arguments.output(out, x, kept, op.result, x=x)
    if product(kept):
        _run(op, arguments.bytes_of(arguments.dense(x)), arguments.bytes_of(out), shape, axes)
    return out


def product(extents: Iterable[int]) -> int:
    """That of no extents is 1."""
    return _fold(mul, extents, 1)


def _run(op: Operation, x: Any, out: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Axes that lie side by side are reduced together; the groups one after the other, from the last one on."""
    groups: list[list[int]] = []
    for axis in axes:
        if groups and (groups[-1][-1] == axis - 1 or set(shape[groups[-1][-1] + 1 : axis]) == {1}):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    groups = groups or [[len(shape)]]  # of no axes each element is a result
    count, left = product(shape[axis] for axis in axes), list(shape)
    states: list[Any] | None = None
    for group in reversed(groups):
        first, end = group[0], group[-1] + 1
        extents = product(left[:first]), product(left[first:end]), product(left[end:])
        del left[first:end]
        target = out if group is groups[0] else None
        if states is None:
            states = _first(op, x, *extents, target, count)
        else:
            states = _merged(op, states, *extents, target, count)


def _first(op: Operation, x: Any, outer: int, n: int, inner: int, out: Any, count: int) -> list[Any]:
    """The states of [outer, n, inner] along n; the results, if there is an ``out``."""
    row = n * op.dtype.bytes
    per = storage.per_vector(op.dtype)
    columns = per if inner % per == 0 and arguments.is_aligned(storage.BYTES, x) else 1
    if inner == 1:
        lanes = 4 if row <= 128 else 32 if row <= 1 << 14 else THREADS
        blocks, step = cdiv(outer, THREADS // lanes), op.dtype.bytes
    else:
        lanes = COLUMN_LANES[inner <= COLUMN_LANES[1] * columns]
        groups = cdiv(inner, lanes * columns)
        blocks, step = outer * groups, lanes * columns * op.dtype.bytes
    wanted = cdiv(_ENOUGH_BLOCKS, blocks)
    chunks = min(cdiv(n * step, _CHUNK_BYTES), wanted) or 1
    chunk = cdiv(n, chunks)
    chunks = cdiv(n, chunk) if n else 1
    finished = out is not None and chunks == 1
    values, indices = _targets(op, x, (outer, chunks, inner), out if finished else None)
    if inner == 1:
        kernel = row_kernel(op.name, op.dtype, lanes, finished)
        kernel[(blocks, chunks), THREADS](x, values, indices, outer, n, chunk, count)
    else:
        kernel = column_kernel(op.name, op.dtype, lanes, columns, finished)
        kernel[(blocks, chunks), THREADS](x, values, indices, inner, groups, n, chunk, count)
    return [values, indices] if chunks == 1 else _merged(op, [values, indices], outer, chunks, inner, out, count)


def _merged(op: Operation, states: list[Any], outer: int, n: int, inner: int, out: Any, count: int) -> list[Any]:
    """The same of states [outer, n, inner]."""
    values, indices = _targets(op, states[0], (outer, inner), out)
    lanes = THREADS if inner == 1 else 1
    kernel = merge_kernel(op.name, op.dtype, lanes, out is not None)
    kernel[cdiv(outer * inner, THREADS // lanes), THREADS](*states, values, indices, outer * inner, inner, n, count)
    return [values, indices]


def add_parts(parts: Any, out: Any) -> None:
    """Add up the first axis of ``parts``, sums as a reduction of ``out``'s dtype has them, into ``out``."""
    op = operation("sum", arguments.scalar_type("out", out))
    _merged(op, [parts, parts], 1, parts.shape[0], product(out.shape), out, parts.shape[0])


def _targets(op: Operation, like: Any, shape: tuple[int, ...], out: Any) -> tuple[Any, Any]:
    """Where results or states go, and the indices of states; one array where there is nothing for the second."""
    values = arguments.empty_like(like, shape, op.state) if out is None else out
    return values, arguments.empty_like(like, shape, s64) if out is None and op.indexed else values
