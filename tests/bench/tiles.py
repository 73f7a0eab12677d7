"""The numeric core of matrix instructions whose tiles lie in memory, beside numpy: ``python tests/bench/tiles.py``.

A product of 1024 x 1024 x 1024 in the tiles of wgmma, 64 rows by N columns, 32 bytes of k at a time, out of shared
memory's rows of 128 bytes, beside numpy's of f32 on one thread. Time on the processor, without that of the calls from
Python; interleaved rounds, every result checked; the ratio is that of the medians. ``--rounds N``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import ml_dtypes
import numpy as np
from emulator import ONE_THREAD
from ptxdsl.bench import table
from ptxdsl.emulator.codegen.library import library
from ptxdsl.emulator.instructions.tensor_cores.matrix_tiles import held_by_lanes

SIDE, ROWS = 1024, 64
TYPES = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "s8": np.int8, "tf32": np.float32}
COLUMNS = (64, 128, 256)


def function(key: Any, pointers: int, numbers: int) -> Callable[..., None]:
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * numbers)
    made: Callable[..., None] = signature(library().need([key])[key])
    return made


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


class Strip:
    """64 rows by N columns of the product, over all of k."""

    def __init__(self, kind: str, columns: int, rng: np.random.Generator) -> None:
        dtype = np.dtype(TYPES[kind])
        self.depth = 32 // dtype.itemsize
        self.steps = SIDE // self.depth
        matrices = [rng.integers(-4, 5, (lines, SIDE)).astype(dtype) for lines in (ROWS, columns)]
        self.exact = matrices[0].astype(np.float64) @ matrices[1].astype(np.float64).T
        per = 128 // dtype.itemsize
        self.tiles = [aligned((SIDE // per, len(matrix), per), dtype) for matrix in matrices]
        for tile, matrix in zip(self.tiles, matrices):
            tile[:] = matrix.reshape(len(matrix), -1, per).transpose(1, 0, 2)
        self.offsets = [(128 * np.arange(n)[:, None] + 16 * np.arange(2)).astype(np.uint32) for n in (ROWS, columns)]
        self.panels = [aligned((self.depth, n), np.float32) for n in (4 * ROWS, columns)]
        self.d = aligned((4, columns // 2, 32), np.int32 if kind == "s8" else np.float32)
        tiles = held_by_lanes((kind, kind), ("k", "k"))
        self.layers = [function(tiles.left, 3, 3), function(tiles.right, 3, 3)]
        self.product = function(tiles.product, 5, 0)
        i, j = np.meshgrid(np.arange(ROWS // 4), np.arange(columns // 4), indexing="ij")
        places = 128 * (i // 4 * (columns // 2) + j // 2 * 4 + i // 2 % 2 * 2 + j % 2) + 64 * (i % 2)
        self.places = np.ascontiguousarray(places, np.int32)
        strides = [panel.strides[0] for panel in self.panels]
        self.sizes = np.array([*places.shape, self.depth, *strides, 0], np.int64)

    def run(self) -> None:
        d, places, sizes = (array.ctypes.data for array in (self.d, self.places, self.sizes))
        left, right = (panel.ctypes.data for panel in self.panels)
        given = [
            (panel.ctypes.data, tile.ctypes.data, offsets.ctypes.data, len(offsets) // 16, 2, panel.strides[0])
            for panel, tile, offsets in zip(self.panels, self.tiles, self.offsets)
        ]
        strides = [tile.strides[0] for tile in self.tiles]
        for step in range(self.steps):
            for lay, (to, base, offsets, groups, pieces, pitch), stride in zip(self.layers, given, strides):
                lay(to, base + step // 4 * stride + step % 4 * 32, offsets, groups, pieces, pitch)
            self.product(d, places, left, right, sizes)

    def call(self) -> float:
        """Seconds that a call from Python takes, with next to no work."""
        panel, tile, offsets = self.panels[1].ctypes.data, self.tiles[1].ctypes.data, self.offsets[1].ctypes.data
        start = thread_time()
        for _ in range(1000):
            self.layers[1](panel, tile, offsets, 1, 1, self.panels[1].strides[0])
        return (thread_time() - start) / 1000

    def check(self) -> None:
        self.d[:] = 0
        self.run()
        warp, register, lane = np.indices(self.d.shape)
        rows = 16 * warp + 8 * (register // 2 % 2) + lane // 4
        found = np.empty(self.exact.shape)
        found[rows, 8 * (register // 4) + 2 * (lane % 4) + register % 2] = self.d
        np.testing.assert_array_equal(found, self.exact)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(2))
    strips = {(kind, n): Strip(kind, n, rng) for kind in TYPES for n in COLUMNS}
    times: dict[Any, list[float]] = {key: [] for key in [*strips, "numpy"]}
    for strip in strips.values():
        strip.check()
    for _ in range(rounds):
        start = thread_time()
        x @ y
        times["numpy"].append(thread_time() - start)
        for key, strip in strips.items():
            strip.run()  # shared memory is in the cache
            start = thread_time()
            strip.run()
            spent = thread_time() - start - 3 * strip.steps * strip.call()
            times[key].append(spent * (SIDE // ROWS) * (SIDE / key[1]))
    numpy = statistics.median(times["numpy"])
    rows = [("numpy f32", "", f"{numpy * 1e3:.1f}", f"{SIDE**3 / numpy / 1e9:.0f}", "1.00")]
    for (kind, n), strip in strips.items():
        took = statistics.median(times[kind, n])
        shape, rate = f"{ROWS} x {n} x {strip.depth}", SIDE**3 / took / 1e9
        rows.append((kind, shape, f"{took * 1e3:.1f}", f"{rate:.0f}", f"{took / numpy:.2f}"))
    print(table(("type", "tile", "ms", "10^9 products a second", "of numpy's time"), rows))


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # libraries read these when they are loaded
        sys.exit(subprocess.call([sys.executable, *sys.argv], env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")}))
    main()
