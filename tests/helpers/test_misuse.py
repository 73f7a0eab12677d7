"""Wrong uses of the helpers for tensor cores and tensor copies: what is said at the line, and how to mend it."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tracing_helpers import refused

from ptxdsl import (
    Array, Pipeline, Ptr, TensorMap, bf16, cluster, dynamic_shared, e4m3, f16, f32, f64, loop, mbarrier, mma,
    ptx_kernel, s8, s32, shared, tcgen05, tensor_map, tf32, tiles, tma, u16, u32, u64, wgmma,
)
from ptxdsl.errors import LaunchError, TargetError
from ptxdsl.language import trace


class Given(NamedTuple):
    """The parameters of each wrong kernel."""

    source: Any
    halves: Any
    floats: Any
    longs: Any
    matrix: Any
    wide: Any
    n: Any
    long: Any
    signed: Any
    real: Any


def memory(kind: Any) -> Any:
    return dynamic_shared(kind, align=1024)


def tile(kind: Any = f16, columns: int = 64, swizzle: int = 128) -> Any:
    return tiles.Tile(memory(kind), 64, columns, swizzle)


def plain(rows: int = 16, pitch: int | None = None) -> Any:
    return tiles.Tile(memory(f16), rows, 64, 0, pitch=pitch)


def bar() -> Any:
    return mbarrier.declare()


def bytes_sums(columns: int) -> Any:
    return tcgen05.allocate(64).sums(64, columns, s32)


_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
_FORTY = "N is 40; kind::i8 of cta_group::1 has 8, 16, 24, or a multiple of 16 from 32 to 256"
Wrong = Callable[[Given], object]
WRONG: list[tuple[Wrong, str, str]] = [
    (
        lambda g: tiles.Tile(g.halves, 16, 64),
        "a tile lies in shared memory, not at a run-time pointer to f16",
        "`Tile(dynamic_shared(f16, align=1024), 128, 64)`",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 12, 64),
        "a tile of 12 rows",
        "a multiple of 8, after which swizzles repeat",
    ),
    (
        lambda g: tiles.Tile(memory(f16), g.n, 64),
        "a run-time u32 rows of a tile",
        "a positive int: a compile-time constant, `*, tile=64`",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 16, 32),
        "rows of 32 f16 have 64 bytes, no multiple of the 128 of the swizzle",
        "`swizzle=64`, in the tensor map too, or a multiple of 64 columns",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 16, 20),
        "rows of 20 f16 have 40 bytes, no multiple of the 128 of the swizzle",
        "a multiple of 64 columns",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 16, 64, 96),
        "swizzle the int 96",
        "128, 64 or 32 bytes, as its tensor map has; 16 for slabs without one, 0 for a plain matrix",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 16, 64, 128, pitch=72),
        "a swizzled tile has no pitch",
        "`swizzle=0`, or leave `pitch` out",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 16, 64, 0, pitch=60),
        "rows of 64 elements, 60 apart",
        "`pitch=64` or more",
    ),
    (
        lambda g: tiles.Tile(dynamic_shared(f16, align=256), 16, 64),
        "a tile of swizzle 128 lies at a multiple of 1024 bytes, not of 256",
        "`align=1024` where its memory is declared, and tiles one behind the other",
    ),
    (
        lambda g: tiles.Tile(memory(f16) + 64, 16, 64),
        "a tile of swizzle 128 lies at a multiple of 1024 bytes, not of 128",
        "`align=1024` where its memory is declared, and tiles one behind the other",
    ),
    (
        lambda g: tile().part(16, 64, 56),
        "16 from 56 on are not within the 64 of <tile of f16 64 x 64, swizzle 128>",
        "a part within it",
    ),
    (
        lambda g: tile().part(16, 16, 0, g.n),
        "a part of a tile that begins at column a run-time u32 of its memory",
        "an int; only the rows of a tile may begin at a u32",
    ),
    (
        lambda g: tile().part(16, 16, 0.5),
        "a part that begins at row the float 0.5",
        "an int or a u32",
    ),
    (
        lambda g: tile().at(1.5, 0),
        "row the float 1.5 of <tile of f16 64 x 64, swizzle 128>",
        "an int from 0 to 63, or a u32",
    ),
    (
        lambda g: tiles.Tile(memory(f16), 8, 64).T.at(64, 0),
        "row 64 of <tile of f16 64 x 8, swizzle 128, transposed>",
        "an int from 0 to 63, or a u32",
    ),
    (
        lambda g: tma.scatter(g.source, (0, 1, 2, 3), 0, tile()),
        "tma.scatter of the Tile <tile of f16 64 x 64, swizzle 128>",
        "the place of its first row: `tile.at(0, 0)`",
    ),
    (
        lambda g: mma.zeros(16, 16).map_rows(lambda v, row: v, 3),  # type: ignore[arg-type]
        "the int 3 for 2 rows of a thread",
        "one for each of `sums.rows()`",
    ),
    (
        lambda g: bytes_sums(64).load(0, g.n),
        "a run-time u32 columns from the int 0 on of <sums of s32 64 x 64 in tensor memory>",
        "multiples of 8 of the 64 that a warp has",
    ),
    (
        lambda g: bytes_sums(64).load(0, 0),
        "0 columns from the int 0 on of <sums of s32 64 x 64 in tensor memory>",
        "multiples of 8 of the 64 that a warp has",
    ),
    (
        lambda g: tile().cast(f32),
        "elements of f16 as f32",
        "a type of the same size: f32 as tf32, u8 as e4m3",
    ),
    (
        lambda g: tiles.Ring(memory(f16), 3, 64, 64)[3],
        "tile 3 of a ring of 3",
        "0 to 2",
    ),
    (
        lambda g: tiles.Ring(memory(f16), 3, 64, 64)["a"],
        "tile the str 'a' of a ring",
        "the stage: an int or a u32",
    ),
    (
        lambda g: tiles.Ring(memory(f16), 3, 64, 64)[Pipeline(4, consumers=1).consumer().wait()],
        "a ring of 3 tiles for a pipeline of 4 stages",
        "`Ring(place, 4, ...)`",
    ),
    (
        lambda g: tiles.copy(tile(), g.wide, 0, 0, threads=32),
        "a copy of f32 to <tile of f16 64 x 64, swizzle 128>",
        "`tile.cast(f32)` where the sizes agree",
    ),
    (
        lambda g: tiles.copy(tile(), g.halves, 0, 0, threads=32),
        "a copy of a run-time pointer to f16",
        "a matrix: a parameter `a: Array[f16, 2]`",
    ),
    (
        lambda g: tiles.copy(tile().T, g.matrix, 0, 0, threads=32),
        "a copy to <tile of f16 64 x 64, swizzle 128, transposed>",
        "a Tile as it is stored, without `.T`",
    ),
    (
        lambda g: tiles.copy(tile(), g.matrix, 0, 0, threads=96),
        "64 rows of 128 bytes copied by 96 threads, 16 bytes at a time",
        "as many threads, or a part of them, as it has pieces of 16 bytes",
    ),
    (
        lambda g: mbarrier.wait(g.longs, 0),
        "a run-time pointer to u64 is no mbarrier",
        "`bars = mbarrier.declare(stages)`, and `bars + stage`",
    ),
    (
        lambda g: mbarrier.init(bar(), 0),
        "an mbarrier of the int 0 arrivals",
        "1 to 1048575: those of one phase",
    ),
    (
        lambda g: mbarrier.start((bar(), g.n)),
        "an mbarrier of a run-time u32 arrivals",
        "1 to 1048575: those of one phase",
    ),
    (
        lambda g: mbarrier.wait(bar(), 2),
        "the int 2 is no parity of a phase",
        "0 for the first phase, then 1: `round & 1`",
    ),
    (
        lambda g: mbarrier.test(bar(), g.real),
        "the parity of a phase is a u32, not f32",
        "`phase = reg(u32, 0)`",
    ),
    (
        lambda g: mbarrier.arrive(bar(), 2, expect_tx=64),
        "an arrival that expects bytes counts one",
        "`mbarrier.expect_tx(bar, bytes)`, then `mbarrier.arrive(bar, count)`",
    ),
    (
        lambda g: mbarrier.expect_tx(bar(), 1 << 20),
        "an mbarrier that expects the int 1048576 bytes",
        "0 to 1048575: `tile.nbytes`",
    ),
    (
        lambda g: cluster.at(shared(u32, 4), 16),
        "the int 16 is no rank of a block",
        "0 to 15, or a u32",
    ),
    (
        lambda g: cluster.at(shared(u32, 4), g.signed),
        "the rank of a block is a u32, not s32",
        "`cluster.rank() ^ 1`",
    ),
    (
        lambda g: cluster.at(g.floats, 1),
        "a run-time pointer to f32 is no place in this block's shared memory",
        "an array of `shared`, or a pointer into one: `x.at(i)`",
    ),
    (
        lambda g: cluster.store(shared(u16, 4), 1, 1, bar()),
        "an asynchronous store of u16; it is of 32 or 64 bits",
        "`cluster.at(place, rank)[0] = value` stores any type, without an mbarrier",
    ),
    (
        lambda g: cluster.store(shared(u32, 4), [g.n, g.n, g.n], 1, bar()),
        "an asynchronous store of 3 values",
        "one, or a list of 2 or 4",
    ),
    (
        lambda g: tma.load(tile(), g.source, (0, 0), bar(), multicast=1 << 16),
        "a mask of ranks is the int 65536",
        "0 to 65535: `0b11` for the blocks 0 and 1",
    ),
    (
        lambda g: tma.load(tile(), g.halves, (0, 0), bar()),
        "a run-time pointer to f16 is no tensor map",
        "a parameter `a: TensorMap`, and `tensor_map(array, box)` at the launch",
    ),
    (
        lambda g: tma.load(tile(), g.source, (0,) * 6, bar()),
        "the coordinates of a box are 1 to 5 numbers, not 6 of them",
        "one for each dimension of the array, in its order: `(row, column)`",
    ),
    (
        lambda g: tma.load(tile(), g.source, 0, bar()),
        "the coordinates of a box are 1 to 5 numbers, not the int 0",
        "one for each dimension of the array, in its order: `(row, column)`",
    ),
    (
        lambda g: tma.load(tile(), g.source, (0, 0.5), bar()),
        "the float 0.5 is no coordinate",
        "an int, a u32 or an s32",
    ),
    (
        lambda g: tma.load(tile(), g.source, (0, g.long), bar()),
        "a coordinate is a u32 or s32, not u64",
        "`.to(s32)`",
    ),
    (
        lambda g: tma.load(tile().T, g.source, (0, 0), bar()),
        "tma.load of <tile of f16 64 x 64, swizzle 128, transposed>, and a copy transposes nothing",
        "the tile itself, without `.T`",
    ),
    (
        lambda g: tma.load(plain(pitch=72), g.source, (0, 0), bar()),
        "tma.load of <tile of f16 16 x 64, 72 apart>: a box has no gaps",
        "a tile without a `pitch`",
    ),
    (
        lambda g: tma.load(tiles.Tile(memory(f16), 512, 64), g.source, (0, 0), bar()),
        "tma.load of <tile of f16 512 x 64, swizzle 128>: a box has 256 rows at most",
        "`tile.part(256, columns)`",
    ),
    (
        lambda g: tma.load(g.halves, g.source, (0, 0), bar()),
        "tma.load of a run-time pointer to f16",
        "a `Tile`, or a pointer into shared memory: `x.at(i, 0)`",
    ),
    (
        lambda g: tma.load(tile(), g.source, (0, 0), shared(u32, 1)),
        "a run-time array of u32 is no mbarrier",
        "`bar = mbarrier.declare()`, or the `full` of a stage",
    ),
    (
        lambda g: tma.gather(tile().at(0, 0), g.source, (1, 2, 3), 0, bar()),
        "a copy of 3 rows; it is of four",
        "`tma.gather(to, a, (i, j, k, l), column, bar)`",
    ),
    (
        lambda g: tma.load_pixels(tile().at(0, 0), g.source, (0, 0), (), bar()),
        "pixels at 2 coordinates",
        "3 to 5, of an array (N, [[D,] H,] W, C)",
    ),
    (
        lambda g: tma.load_pixels(tile().at(0, 0), g.source, (0, 0, 0, 0), (1,), bar()),
        "1 offsets of pixels at 4 coordinates",
        "2: one for each dimension but images and channels",
    ),
    (
        lambda g: tma.reduce("mul", g.source, (0, 0), tile()),
        "a reduction by the str 'mul'",
        "one of add, min, max, inc, dec, and, or, xor",
    ),
    (
        lambda g: Pipeline(0, consumers=1),
        "a Pipeline of the int 0 stages",
        "a positive int that is known while tracing: `Pipeline(3, consumers=128)`",
    ),
    (
        lambda g: Pipeline(g.n, consumers=1),
        "a Pipeline of a run-time u32 stages",
        "a positive int that is known while tracing: `Pipeline(3, consumers=128)`",
    ),
    (
        lambda g: Pipeline(2, consumers=1, nbytes=64).producer().acquire().commit(),
        "a stage of 64 bytes is full when they have come, and is not committed",
        "leave `commit` out, or `nbytes=` of the Pipeline where threads fill the stages",
    ),
    (
        lambda g: Pipeline(2, consumers=1).consumer().wait().commit(),
        "a consumer commits no stage, it gives it back",
        "`slot.release()`",
    ),
    (
        lambda g: Pipeline(2, consumers=1).producer().acquire().release(),
        "a producer gives no stage back, it fills it",
        "`slot.commit()`",
    ),
    (
        lambda g: mma.zeros(24, 16),
        "the int 24 rows: no multiple of 16",
        "a multiple of 16",
    ),
    (
        lambda g: mma.zeros(16, 16, bf16),
        "sums of bf16",
        "f32, f16, f64 or s32",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 64), tile(f32, 32), tile(f32, 32).T),
        "`mma.multiply` of f32 and f32: no matrix core multiplies them",
        "`a.cast(tf32)` takes f32 for tf32",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 64), tile(), tile(bf16).T),
        "`mma.multiply` of f16 and bf16: no matrix core multiplies them",
        "a and b of f16",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 64, f16), tile(bf16), tile(bf16).T),
        "`mma.multiply` of bf16 into sums of f16",
        "sums of f32",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 128), tile(), tiles.Tile(memory(f16), 128, 64)),
        "`mma.multiply` of 64 x 64 and 128 x 64 into 64 x 128",
        "`b.T`: b is stored with its columns as rows",
    ),
    (
        lambda g: mma.multiply(mma.zeros(32, 64), tile(), tile().T),
        "`mma.multiply` of 64 x 64 and 64 x 64 into 32 x 64",
        "a (m, k), b (k, n), sums (m, n)",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 64), g.halves, tile().T),
        "`mma.multiply`: a is a run-time pointer to f16",
        "a Tile or a Fragment",
    ),
    (
        lambda g: mma.multiply(mma.zeros(64, 64), mma.load_a(tile()), mma.load_a(tile())),
        "`mma.multiply`: b is loaded as a",
        "`mma.load_b(...)`",
    ),
    (
        lambda g: mma.load_a(g.matrix),
        "`load_a` of a view without a shape",
        "`mma.load_a(x, 16, 16, row=.., column=..)`",
    ),
    (
        lambda g: mma.load_a(g.wide, 16, 16),
        "a of f32",
        "`tile.cast(tf32)` takes f32 for tf32",
    ),
    (
        lambda g: mma.load_a(g.matrix, 16, 24),
        "the int 24 columns of a: no multiple of 16",
        "a multiple of 16",
    ),
    (
        lambda g: mma.zeros(16, 16).store(g.floats),
        "`store` of a run-time pointer to f32",
        "a matrix: a parameter `c: Array[f32, 2]`, `shared(f32, 64, 64)`",
    ),
    (
        lambda g: mma.zeros(16, 16).map_rows(lambda v, y: v * y, [g.real]),
        "1 values for 2 rows of a thread",
        "one for each of `sums.rows()`",
    ),
    (
        lambda g: mma.zeros(16, 16, f16).map(lambda v: v),
        "`map` of sums of f16, two in a register",
        "sums of f32",
    ),
    (
        lambda g: mma.zeros(16, 16).fragment(f32),
        "<sums of f32 16 x 16> as a of f32",
        "sums of f32 with a multiple of 16 columns, as f16 or bf16",
    ),
    (
        lambda g: mma.multiply(tile(), tile(), tile().T),
        "sums are the Tile <tile of f16 64 x 64, swizzle 128>",
        "`sums = mma.zeros(64, 64)`",
    ),
    (
        lambda g: wgmma.multiply(tile(), tile(), tile().T),
        "sums are the Tile <tile of f16 64 x 64, swizzle 128>",
        "`sums = wgmma.zeros(64, 128)`",
    ),
    (
        lambda g: wgmma.multiply(mma.zeros(64, 64), tile(), tile().T),
        "`wgmma.multiply`: <sums of f32 64 x 64> is held by a warp",
        "`mma.multiply`",
    ),
    (
        lambda g: mma.multiply(wgmma.zeros(64, 64), tile(), tile().T),
        "`mma.multiply`: <sums of f32 64 x 64> is held by a warpgroup",
        "`wgmma.multiply`",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), mma.load_a(tile()), tile().T),
        "`wgmma.multiply`: <a of f16 64 x 64> is held by a warp",
        "`mma.multiply`",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile(), mma.load_b(tile())),
        "`wgmma.multiply`: b is <b of f16 64 x 64>, in registers",
        "a Tile; only a may be in registers",
    ),
    (
        lambda g: wgmma.zeros(32, 64),
        "the int 32 rows: no multiple of 64",
        "a multiple of 64",
    ),
    (
        lambda g: wgmma.zeros(64, 264),
        "sums of 264 columns",
        "256 at most; several sums side by side",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), plain(64), tile().T),
        "a is <tile of f16 64 x 64, 64 apart>: a matrix descriptor has no such layout",
        "`Tile(place, rows, columns, swizzle)` with 128, 64, 32 or 16",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile(e4m3, 64, 64), tile(e4m3, 64, 64)),
        "b of e4m3 is stored with k along its columns; only elements of 16 bits may be",
        "store it as (n, k), and give `b.T`",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tiles.Tile(memory(f16), 72, 64).part(64, 64, 4), tile().T),
        "a begins at row 4 of its tile's memory",
        "a multiple of 8",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile().part(64, 16, 0, 8), tile().T.part(16, 64)),
        "a begins at column 8 of its tile's memory",
        "a multiple of 16",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile(), tiles.Tile(memory(f16), 64, 128).part(64, 64, 0, 32)),
        "b has the columns 32 to 95 of its tile's memory",
        "parts that begin at a multiple of 64",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile(), tile().T, accumulate=1),
        "`accumulate` is the int 1",
        "a bool or a predicate: `k > 0`",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64), tile(), tile().T, accumulate=g.n),
        "`accumulate` is a u32",
        "a bool or a predicate: `k > 0`",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 64, s32), tile(s8, 64, 64), tile(s8, 64, 64).T, negate_a=True),
        "a product of integers has no sign to change",
        "subtract: floats only",
    ),
    (
        lambda g: wgmma.multiply(wgmma.zeros(64, 40, s32), tile(s8, 64, 64), tiles.Tile(memory(s8), 40, 64, 64).T),
        "wgmma has no product of 40 columns of s8 and s8 into s32",
        "8, 16, 24, 32 columns, then multiples of 16",
    ),
    (
        lambda g: tcgen05.allocate(100),
        "the int 100 columns of tensor memory",
        "32, 64, 128, 256 or 512",
    ),
    (
        lambda g: tcgen05.allocate(128).sums(96, 64),
        "sums of the int 96 rows",
        "64 or 128",
    ),
    (
        lambda g: tcgen05.allocate(128, pair=True).sums(64, 64),
        "sums of the int 64 rows of a pair",
        "128 or 256",
    ),
    (
        lambda g: tcgen05.allocate(128).sums(128, 64, column=96),
        "64 columns of tensor memory from the int 96 on",
        "128 were allocated: `tcgen05.allocate(512)` has all",
    ),
    (
        lambda g: tcgen05.allocate(128).sums(128, 64, f64),
        "sums of f64",
        "f32, f16 or s32",
    ),
    (
        lambda g: tcgen05.multiply(wgmma.zeros(64, 64), tile(), tile().T),
        "`tcgen05.multiply`: sums are the Accumulator <sums of f32 64 x 64>",
        "`sums = tcgen05.allocate(128).sums(128, 128)`",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64).sums(128, 64), tile(), tile().T),
        "`tcgen05.multiply` of 64 x 64 and 64 x 64 into 128 x 64",
        "a (m, k), b (k, n), sums (m, n)",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(128).sums(64, 128), tile(), tiles.Tile(memory(f16), 128, 64)),
        "`tcgen05.multiply` of 64 x 64 and 128 x 64 into 64 x 128",
        "`b.T`: b is stored with its columns as rows",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64, pair=True).sums(128, 64), tile(), tile().T),
        "`tcgen05.multiply` of 64 x 64 and 64 x 64 into 128 x 64",
        "the halves of a pair, a (m, k), b (k, n), sums (m, n)",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64).sums(64, 64), tile(), tile(bf16).T),
        "`tcgen05.multiply` of f16 and bf16: no matrix core multiplies them",
        "a and b of f16",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64).sums(64, 64), tile(f32, 32), tile(f32, 32).T),
        "`tcgen05.multiply` of f32 and f32: no matrix core multiplies them",
        "`a.cast(tf32)` takes f32 for tf32",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64).sums(64, 64, f16), tile(bf16), tile(bf16).T),
        "`tcgen05.multiply` of bf16 into sums of f16",
        "sums of f32",
    ),
    (
        lambda g: tcgen05.multiply(bytes_sums(40), tile(s8, 64, 64), tiles.Tile(memory(s8), 40, 64, 64).T),
        f"tcgen05.mma of s8 and s8 into 64 x 40 of s32: {_FORTY}",
        "",
    ),
    (
        lambda g: tcgen05.multiply(tcgen05.allocate(64).sums(64, 64), tile(tf32, 32), tiles.Tile(memory(tf32), 32, 64)),
        "b of tf32 is stored with k along its columns; only elements of 16 or 8 bits may be",
        "store it as (n, k), and give `b.T`",
    ),
    (
        lambda g: tcgen05.multiply(bytes_sums(64), tile(s8, 64, 64), tile(s8, 64, 64).T, negate_a=True),
        "tcgen05.mma of s8 and s8 into 64 x 64 of s32: bit 13 negates A, and kind::i8 cannot",
        "",
    ),
    (
        lambda g: tcgen05.allocate(64).operand(64, 64, f16),
        "a of f16 with the int 64 rows in tensor memory",
        "128 rows of f16, bf16, tf32, or elements of a byte",
    ),
    (
        lambda g: tcgen05.allocate(64).sums(128, 64).load(32, 64),
        "64 columns from the int 32 on of <sums of f32 128 x 64 in tensor memory>",
        "multiples of 8 of the 64 that a warp has",
    ),
    (
        lambda g: tcgen05.allocate(64).operand(128, 64, f16).store(tcgen05.allocate(64).sums(128, 64).load(0, 32)),
        "<sums of f32 128 x 64> stored to <a of f16 128 x 64 in tensor memory>",
        "whole rows of f32 (of sums of 128 rows) to an operand of f16 or bf16 with as many columns",
    ),
    (
        lambda g: tcgen05.commit(tile().at(0, 0)),
        "a run-time pointer to f16 is no mbarrier",
        "`bar = mbarrier.declare()`, or the `empty` of a stage",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_said(case: tuple[Wrong, str, str]) -> None:
    wrong, message, hint = case

    def kernel(
        source: TensorMap, halves: Ptr[f16], floats: Ptr[f32], longs: Ptr[u64], matrix: Array[f16, 2],
        wide: Array[f32, 2], n: u32, long: u64, signed: s32, real: f32,
    ):
        wrong(Given(source, halves, floats, longs, matrix, wide, n, long, signed, real))

    error = refused(kernel)
    assert (error.message, error.hint or "") == (message, hint)
    assert error.loc is not None and error.loc.file == __file__
    assert error.loc.line == wrong.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("arch", "use", "message"),
    [
        ("sm_75", lambda: mma.multiply(mma.zeros(64, 64), tile(), tile().T),
         "`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` needs sm_80, and this kernel is compiled for sm_75"),
        ("sm_90", lambda: wgmma.multiply(wgmma.zeros(64, 64), tile(), tile().T),
         "`wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16` needs sm_90a, and this kernel is compiled for sm_90"),
        ("sm_100a", wgmma.fence, "`wgmma.fence.sync.aligned` needs sm_90a, and this kernel is compiled for sm_100a"),
        ("sm_90a", lambda: tcgen05.allocate(32),
         f"`{_ALLOC}` needs sm_100f or sm_110f, and this kernel is compiled for sm_90a"),
        ("sm_80", cluster.sync, "`barrier.cluster.arrive.release` needs sm_90, and this kernel is compiled for sm_80"),
        ("sm_86", lambda: mbarrier.expect_tx(bar(), 4),
         "`mbarrier.expect_tx.relaxed.cta.shared.b64` needs sm_90, and this kernel is compiled for sm_86"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("sm") else "",
)
def test_targets_that_are_too_old(arch: str, use: Callable[[], object], message: str) -> None:
    def kernel():
        use()

    with pytest.raises(TargetError) as error:
        trace(kernel, arch=arch)
    assert error.value.message == message
    assert error.value.loc is not None and error.value.loc.file == __file__
    assert error.value.hint == 'leave `arch` at "auto", or give a target that has it'


def _left() -> None:
    for slot in Pipeline(3, consumers=1).producer().turn():
        slot.commit()
        break


def _one_and_turn() -> None:
    producer = Pipeline(3, consumers=1).producer()
    with loop(3):
        producer.acquire().commit()
        for slot in producer.turn():
            slot.commit()


def _turn_and_one() -> None:
    consumer = Pipeline(3, consumers=1).consumer()
    with loop(3):
        for slot in consumer.turn():
            slot.release()
    consumer.wait()


@pytest.mark.parametrize(
    ("use", "line", "message", "hint"),
    [
        (_left, "break",
         "a turn of a pipeline of 3 stages was left after stage 0",
         "take all stages of a turn, or take them one by one: `acquire()`, `wait()`"),
        (_one_and_turn, "for slot in producer.turn():",
         "this side of the pipeline has taken single stages, and takes a turn here",
         "take all stages in one of the two ways, or make another Pipeline"),
        (_turn_and_one, "consumer.wait()", "this side of the pipeline has taken stages in turns, and takes one here",
         "take all stages in one of the two ways, or make another Pipeline"),
    ],
    ids=("left", "one and turn", "turn and one"),
)
def test_turns(use: Callable[[], object], line: str, message: str, hint: str) -> None:
    def kernel():
        use()

    error = refused(kernel)
    assert error.loc is not None
    assert (error.message, error.hint, error.loc.source) == (message, hint, line)


def test_an_error_within_a_turn_is_told() -> None:
    """The generator of a turn that is cleared away after an error is none of its own, nor one of the next trace."""
    def wrong():
        for slot in Pipeline(3, consumers=1).producer().turn():
            slot.release()

    def right():
        for slot in Pipeline(3, consumers=1).producer().turn():
            slot.commit()

    assert refused(wrong).message == "a producer gives no stage back, it fills it"
    trace(right)


@pytest.mark.parametrize(
    ("kind", "box", "swizzle"),
    [("float16", (64, 32), 64), ("float16", (32, 64), 128), ("float16", (64, 64), None), ("float32", (64, 32), 128)],
)
def test_maps_that_do_not_fit_the_tile(kind: str, box: tuple[int, int], swizzle: int | None) -> None:
    """A launch whose tensor map has another box, swizzle or element than the tile that is copied by it."""
    @ptx_kernel
    def kernel(source: TensorMap, turned: TensorMap):
        tma.load(tile(), source, (0, 0), bar())
        tma.store(turned, (0, 0, 0), tile())

    array = np.zeros((64, 64), kind)
    right = tensor_map(np.zeros((1, 64, 64), np.float16), (1, 64, 64), swizzle=128)
    with pytest.raises(LaunchError) as error:
        kernel.configure(1, 1, shared=8192, backend="emulator")(tensor_map(array, box, swizzle=swizzle), right)
    line = kernel.function.__code__.co_firstlineno + 2
    hint = "`tensor_map(array, (64, 64), swizzle=128)`, as `tile.box` and the swizzle of the tile say"
    assert error.value.hint == hint
    assert error.value.message == (
        f"argument `source` of kernel `kernel` is a TensorMapArgument, {tensor_map(array, box, swizzle=swizzle)!r}; "
        f"`tma.load` at {__file__}:{line}: tma.load(tile(), source, (0, 0), bar()) wants elements of 16 bits, "
        "boxes of (64, 64), swizzle 128B"
    )


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("wgmma.zeros", lambda g: wgmma.zeros(64, 8)), ("wgmma.number", lambda g: wgmma.number()),
        ("tcgen05.allocate", lambda g: tcgen05.allocate(32)),
        ("tiles.copy", lambda g: tiles.copy(tile(), g, 0, 0, threads=128)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_blocks_of_more_dimensions(name: str, use: Callable[[Any], object]) -> None:
    """Helpers that number the threads by %tid.x refuse blocks where that is not enough, whoever calls them."""
    @ptx_kernel
    def kernel(x: Array[f16, 2]):
        with loop(1):
            use(x)

    with pytest.raises(LaunchError) as error:
        kernel.configure(1, (32, 4), shared=8192, backend="emulator")(np.zeros((64, 64), np.float16))
    line = use.__code__.co_firstlineno
    source = linecache.getline(__file__, line).strip()
    assert error.value.hint == "launch as many threads along x alone"
    assert error.value.message == (
        f"block (32, 4, 1) has 128 threads; `{name}` at {__file__}:{line}: {source} is right for "
        "blocks of one dimension only"
    )
