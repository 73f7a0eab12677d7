"""Matrix products of a warp by ``mma.sync``: fragments, how they are loaded and stored, and the sums.

Plain Python functions on the public language, traced in place; all lanes of a warp get here together. Shapes are
those of the matrices: ``mma.multiply(sums, a, b)`` adds ``a @ b`` to ``sums``, with a (m, k), b (k, n) and sums (m, n).
The instruction follows from the types. Which lane holds which element stands in `isa.fragments`; nobody who uses these
functions needs to know.

| a and b | sums | k of an instruction |
| --- | --- | --- |
| f16 | f32 or f16 | 16 |
| bf16 | f32 | 16 |
| tf32 | f32 | 8 |
| e4m3, e5m2, either | f32 or f16 | 32 |
| s8, u8, either | s32 | 32 |
| f64 | f64 | 4 |

A matrix is given as a `Tile` in shared memory, which ldmatrix loads where rows of 16 bytes lie together (bytes along k,
for 16-bit types in either direction), else by single elements; as an `Array` or other view by single elements, with 0
beyond its edges; or as the `Fragment` of an earlier load. ``b`` of a matrix that is stored (n, k) is ``tile.T``.

PTX ISA, sections 9.7.14.5 (mma), 9.7.14.5.15 (ldmatrix).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import PtxTypeError
from ..language import ptx
from ..language.errors import described, located
from ..tiles import Tile
from ..types import ScalarType, f16, f32, f64, s32
from .fragments import Fragment, Loader, checked, load
from .operands import KINDS, RESULTS, SHAPES, check_shapes, check_types, kind_named, multiple, sides
from .sums import Accumulator, accumulator

__all__ = ["Accumulator", "Fragment", "Tile", "check_product", "load_a", "load_b", "multiply", "zeros"]


def zeros(rows: int, columns: int, dtype: ScalarType = f32) -> Accumulator:
    """Sums of a (rows, columns) matrix of the warp, all 0; multiples of 16 (of f64, 8) and 8.

    >>> import numpy as np
    >>> from ptxdsl import Array, f16, f32, mma, ptx_kernel
    >>> @ptx_kernel
    ... def product(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2]):
    ...     sums = mma.zeros(16, 8)
    ...     mma.multiply(sums, mma.load_a(a, 16, 32), mma.load_b(b, 32, 8))
    ...     sums.store(c)
    >>> a, b = np.eye(16, 32, 3, np.float16), np.arange(256, dtype=np.float16).reshape(32, 8)
    >>> c = np.zeros((16, 8), np.float32)
    >>> product[1, 32](a, b, c)
    >>> bool((c == b[3:19]).all())
    True
    """
    if dtype not in (f16, f32, f64, s32):
        raise located(PtxTypeError, f"sums of {kind_named(dtype)}", "f32, f16, f64 or s32")
    high = 8 if dtype is f64 else 16
    multiple("rows", rows, high)
    multiple("columns", columns, 8)
    return accumulator(dtype, list(range(0, rows, high)), columns, (rows, columns))


def load_a(
    source: Any, rows: int | None = None, columns: int | None = None, *, row: Any = 0, column: Any = 0
) -> Fragment:
    """Load ``a`` (rows, columns): all of a `Tile`, or ``source[row:row + rows, column:column + columns]`` of a view."""
    return load("a", source, rows, columns, row, column)


def load_b(
    source: Any, rows: int | None = None, columns: int | None = None, *, row: Any = 0, column: Any = 0
) -> Fragment:
    """Load ``b`` (rows, columns), k first: all of a `Tile`, or a part of a view. See ``load_a``."""
    return load("b", source, rows, columns, row, column)


def multiply(sums: Accumulator, a: Any, b: Any) -> None:
    """Add ``a @ b`` to ``sums``: each a `Fragment` or a `Tile`, of which each step along k is loaded before it is used.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, mma, ptx, ptx_kernel, shared, tf32
    >>> @ptx_kernel
    ... def square(x: Ptr[f32], y: Ptr[f32]):
    ...     kept = shared(f32, 256)
    ...     for i in range(8):
    ...         kept[i * 32 + ptx.laneid] = x[i * 32 + ptx.laneid]
    ...     ptx.bar.warp.sync(0xFFFFFFFF)
    ...     tile, sums = mma.Tile(kept, 16, 16, 0).cast(tf32), mma.zeros(16, 16)
    ...     mma.multiply(sums, tile, tile)
    ...     for row, column, value in sums:
    ...         y[row * 16 + column] = value
    >>> x, y = np.arange(256, dtype=np.float32) % 7, np.zeros(256, np.float32)
    >>> square[1, 32](x, y)
    >>> bool((y.reshape(16, 16) == x.reshape(16, 16) @ x.reshape(16, 16)).all())
    True
    """
    if not isinstance(sums, Accumulator):
        raise located(PtxTypeError, f"sums are {described(sums)}", "`sums = mma.zeros(64, 64)`")
    check_product(sums, a, b, "mma.multiply", 1)
    shape = SHAPES[a.dtype.bits]
    m, n, k = sides(shape)
    name = f"mma.sync.aligned.{shape}.row.col.{sums.dtype}.{a.dtype}.{b.dtype}.{sums.dtype}"
    each = 2 if sums.dtype is f16 else m * n // 32
    left, right = _steps(a, "a"), _steps(b, "b")
    for step in range(a.shape[1] // k):
        rows, columns = left(step), right(step)
        for registers, row in zip(sums.blocks, rows):
            for j, column in enumerate(columns):
                own = registers[j * each : (j + 1) * each]
                ptx[name](row, column, own, out=own)


def check_product(sums: Accumulator, a: Any, b: Any, what: str, warps: int) -> None:
    """Whether the shapes and types of a product go together, and all that is in registers is of so many warps."""
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, (Tile, Fragment)):
            raise located(PtxTypeError, f"`{what}`: {name} is {described(given)}", "a Tile or a Fragment")
        if isinstance(given, Fragment) and name == "b" and warps > 1:
            raise located(PtxTypeError, f"`{what}`: b is {given!r}, in registers", "a Tile; only a may be in registers")
        if isinstance(given, Fragment) and given.side != name:
            raise located(PtxTypeError, f"`{what}`: {name} is loaded as {given.side}", f"`mma.load_{name}(...)`")
    for given in (sums, a, b):
        if getattr(given, "warps", warps) != warps:
            other = "a warpgroup" if given.warps == 4 else "a warp"
            raise located(
                PtxTypeError, f"`{what}`: {given!r} is held by {other}",
                "`wgmma.multiply`" if given.warps == 4 else "`mma.multiply`",
            )
    known = any({a.dtype, b.dtype} <= kind for kind in KINDS)
    check_types(what, sums.dtype, a, b, RESULTS[a.dtype] if known else ())
    check_shapes(what, sums.shape, a, b)


def _steps(source: Any, side: str) -> Callable[[int], list[list[Any]]]:
    """What gives the blocks of each step along k, which are loaded when they are asked for."""
    if isinstance(source, Fragment):
        blocks = source.blocks
        return lambda step: [
            registers for (i, j), registers in sorted(blocks.items()) if (j if side == "a" else i) == step
        ]
    checked(side, source.dtype, source.shape)
    loader = Loader(source, side, source.shape)

    def loaded(step: int) -> list[list[Any]]:
        only = range(step, step + 1)
        return list((loader.load(None, only) if side == "a" else loader.load(only, None)).values())

    return loaded
