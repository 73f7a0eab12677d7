"""Products with few rows: b is streamed from memory once, its columns and its k shared among all blocks.

Such a product takes as long as b takes to come. The tiles of the result, 256 columns wide, and their steps along k are
shared evenly among persistent blocks, one a multiprocessor (`shares`), so that all of them load wherever a tile ends. A
thread brings stages of a and b by tensor copies; warps multiply 64 columns and up to 32 rows each by mma.sync. A block
that has not all of k for a tile leaves its sums in global memory, and the one with the end of k adds them up in order.

It takes sm_90: tensor copies and mbarriers; no instruction of one generation alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from ... import (
    Array, Kernel, Pipeline, Ptr, ScalarType, TensorMap, cdiv, dynamic_shared, f32, loop, mma, otherwise, processors,
    ptx, ptx_kernel, tma, u32, u64, warp, when,
)

from .. import arguments, matrices
from ..tensor_products import EIGHT, SPAN, End, Ring, map_of, prepare
from .shares import Arrivals, Lengths, Piece, Share, arrival

__all__ = ["COLUMNS", "Kind", "kernel_of", "matmul", "most_rows"]

_ROWS = 16, 32, 64
COLUMNS = 256
"""Of a tile."""
_HIGH, _WIDE = 32, 64
"""Rows and columns of a warp at most."""
_RING = 220000
"""Bytes of all stages, at most."""
_TOGETHER = 32
"""Sums of another block that a thread loads before it adds the first."""
_BARRIER = 1


class Kind(NamedTuple):
    """What a kernel is made for: types, rows (16, 32 or 64), whether b is stored turned, and the end of each sum."""

    a: ScalarType
    b: ScalarType
    c: ScalarType
    rows: int
    turned: bool
    bias: ScalarType | None = None
    activation: Callable[[Any], Any] | None = None

    @property
    def high(self) -> int:
        """Rows of a warp."""
        return min(self.rows, _HIGH)

    @property
    def threads(self) -> int:
        """Those that multiply."""
        return self.rows // self.high * (COLUMNS // _WIDE) * 32

    @property
    def nbytes(self) -> int:
        """Bytes of a stage."""
        return (self.rows + COLUMNS) * SPAN

    @property
    def stages(self) -> int:
        return _RING // self.nbytes


class _Block:
    """The ring of a block, and its share of the work."""

    def __init__(self, kind: Kind, steps: Any, tiles: Any) -> None:
        self.kind, self.steps = kind, steps
        self.a = Ring(dynamic_shared(kind.a, align=1024), kind.a, kind.rows, False, kind.stages)
        self.b = Ring(self.a.ring.end, kind.b, COLUMNS, kind.turned, kind.stages)
        self.pipe = Pipeline(kind.stages, consumers=kind.threads // 32, nbytes=kind.nbytes)
        self.share = Share(Lengths(lambda _: steps, True, 1, tiles, 1))

    def produce(self, a: Any, b: Any) -> None:
        """Fill stages, by one thread."""
        tma.prefetch_map(a)
        tma.prefetch_map(b)
        side = self.pipe.producer()

        def work(piece: Piece) -> None:
            with loop(piece.tile, piece.tile + piece.count) as step:
                slot, k = side.acquire(), step * self.a.depth
                tma.load(self.a.copied(slot, 0, self.kind.rows), a, (0, k), slot.full)
                tma.load(self.b.copied(slot, 0, COLUMNS), b, self.b.at(piece.unit * COLUMNS, k), slot.full)

        self.share.pieces(self.share.first(), work)

    def consume(self, sums_of: Any, arrivals: Arrivals, store: Callable[[Any, Any, Any], None]) -> None:
        """Multiply; ``store(sums, row, column)`` takes what is whole."""
        share, kind, side = self.share, self.kind, self.pipe.consumer()
        number, across = ptx.tid.x >> 5, COLUMNS // _WIDE
        row, column = number // across * kind.high, number % across * _WIDE
        sums = mma.zeros(kind.high, _WIDE)

        def place(part: Any) -> Any:
            return sums_of + ptx.mul.wide.u32(part, kind.rows * COLUMNS) + ptx.tid.x * 4

        def work(piece: Piece) -> None:
            sums.fill(0.0)
            with loop(piece.count):
                slot = side.wait()
                mma.multiply(sums, self.a.factor(slot, row, kind.high), self.b.factor(slot, column, _WIDE).T)
                ptx.bar.warp.sync(warp.MASK)
                slot.release(pred=ptx.laneid == 0)
            with when((piece.tile == 0) & (piece.count == piece.tiles)):
                store(sums, row, piece.unit * COLUMNS + column)
            with otherwise():
                part = ptx.ctaid.x * 2 + (piece.tile == 0).to(u32)
                kept, registers = place(part), sums.registers
                for i in range(0, len(registers), 4):
                    kept.store(i * kind.threads, [register.copy() for register in registers[i : i + 4]])
                ptx.barrier.cta.sync(_BARRIER, kind.threads)
                with when(ptx.tid.x == 0):
                    arrivals.publish(part)

        first = share.first()
        share.pieces(first, work)
        with when((first.tile > 0) & (first.tile + first.count == first.tiles)):
            begin, parts = share.parts(first)
            arrivals.take(begin, parts, kind.threads)
            ptx.barrier.cta.sync(_BARRIER, kind.threads)
            sums.fill(0.0)
            with loop(parts) as each:
                kept, registers = place(arrivals.part(begin, each)), sums.registers
                for register, value in zip(registers, self.kept(kept)):
                    register.set(register + value)
            store(sums, row, first.unit * COLUMNS + column)


    def kept(self, place: Any) -> Iterator[Any]:
        """The sums of a part that are this thread's, loaded some at a time."""
        for i in range(0, self.kind.high * _WIDE // 32, _TOGETHER):
            found = [place.load(at * self.kind.threads, width=4) for at in range(i, i + _TOGETHER, 4)]
            for four in found:
                yield from four


@cache
def kernel_of(kind: Kind) -> Kernel:
    """The kernel: ``(a, b, c, [bias,] sums, arrived, number, columns of c, tiles, steps, scale)``."""
    target: Any = Array[kind.c, 2]
    added = kind.bias

    def run(
        a: Any, b: Any, c: Any, bias: Any, sums_of: Any, arrived: Any, own: Any, n: Any, tiles: Any, steps: Any,
        scale: Any,
    ) -> None:
        block = _Block(kind, steps, tiles)

        def store(sums: Any, row: Any, column: Any) -> None:
            end = End(kind, bias, n, scale, column)
            sums.map_at(lambda _, at, value: end(at, [value])[0])
            sums.store(c, row, column)

        with when(block.share.start < block.share.stop):
            with when(ptx.tid.x >= kind.threads):
                with when(ptx.laneid == 0):
                    block.produce(a, b)
            with otherwise():
                block.consume(sums_of, Arrivals(arrived, own), store)

    ways = "t" if kind.turned else "n"
    name = f"stream_matmul_{kind.a}_{kind.b}_{kind.c}_{ways}_{kind.rows}x{COLUMNS}"
    options: dict[str, Any] = {"maxntid": kind.threads + 32, "minnctapersm": 1}

    if kind.bias is None:
        @ptx_kernel(name=name, **options)
        def plain(
            a: TensorMap, b: TensorMap, c: target, sums: Ptr[f32], arrived: Ptr[u64], number: u64, n: u32, tiles: u32,
            steps: u32, scale: f32,
        ) -> None:
            run(a, b, c, None, sums, arrived, number, n, tiles, steps, scale)

        return plain

    @ptx_kernel(name=name + "_bias", **options)
    def biased(
        a: TensorMap, b: TensorMap, c: target, bias: Ptr[added], sums: Ptr[f32], arrived: Ptr[u64], number: u64, n: u32,
        tiles: u32, steps: u32, scale: f32,
    ) -> None:
        run(a, b, c, bias, sums, arrived, number, n, tiles, steps, scale)

    return biased


def most_rows(name: str) -> int:
    """The rows of a product of the dtype ``name`` at most: more of 8-bit floats do not fit into registers."""
    return _ROWS[0] if name in EIGHT else _ROWS[-1]


def matmul(
    a: Any, b: Any, *, bias: Any = None, activation: Callable[[Any], Any] | None = None, scale: float = 1.0,
    dtype: ScalarType | None = None, out: Any = None, blocks: int | None = None, **launch: Any,
) -> Any:
    """``activation(scale * (a @ b) + bias)`` of at most 64 rows, of 8-bit floats 16, on sm_90 and later.

    Args:
        blocks: How many share the work at most; one for each multiprocessor by default.
        a: The others are those of :func:`~ptxdsl.kernels.hopper.matmul.matmul`; rows of a are read where they are if
            they are contiguous.

    Raises:
        LaunchError: As there, and for more rows.

    >>> import numpy as np
    >>> a, b = np.eye(3, 8, dtype=np.float16), np.arange(40, dtype=np.float16).reshape(8, 5)
    >>> matmul(a, b).tolist() == b[:3].tolist()
    True
    """
    rows, _ = arguments.expect("a", a, ["M", "K"], list(arguments.DTYPES), contiguous=False)
    most = most_rows(arguments.dtype_name(a))
    if rows > most:
        raise arguments.wrong(f"a has {rows} rows; it can have {most} at most")
    if rows:
        a = matrices.store(a, (False,)).array
    product = prepare(a, b, bias, dtype, out, lambda eight: (False,) if eight else (False, True))
    m, n, k = product.shape
    high = next(rows for rows in _ROWS if m <= rows)
    kind = Kind(*product.types, high, product.turned[1], product.bias, activation)
    tiles, steps = cdiv(n, COLUMNS), cdiv(k * kind.a.bytes, SPAN)
    blocks = min(processors(launch.get("backend")) if blocks is None else blocks, tiles * steps)
    maps = [
        map_of(product.a, kind.a, kind.rows, False), map_of(product.b, kind.b, COLUMNS, kind.turned),
    ]
    sums = arguments.empty_like(a, (2 * blocks * kind.rows * COLUMNS,), f32)
    arrived = arguments.empty_like(a, (2 * blocks,), u64)
    run = kernel_of(kind).configure(blocks, kind.threads + 32, shared=kind.stages * kind.nbytes, **launch)
    added = () if bias is None else (bias,)
    run(*maps, product.out, *added, sums, arrived, arrival(), n, tiles, steps, arguments.number("scale", scale))
    return product.out
