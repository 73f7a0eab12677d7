"""PTX that other compilers made of the sources in tests/foreign, kept compressed beside them, and how it is launched.

``python tests/foreign/compile.py [NAME ...]`` makes it again with the compilers that are there.
"""

from __future__ import annotations

import functools
import json
import lzma
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import ptxdsl
from ptxdsl import tensor_map

__all__ = [
    "FOLDER", "Unit", "bf16", "e4m3", "e5m2", "f16", "f32", "keep", "moved_rows", "random_array", "tiles", "unit",
    "wide",
]

FOLDER = Path(__file__).parent.parent / "foreign"
f16, f32 = np.float16, np.float32
bf16, e4m3, e5m2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
Array = np.ndarray[Any, Any]


def keep(name: str, text: str) -> None:
    """Keep the PTX of a unit."""
    data = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / "ptx" / f"{name}.ptx.xz").write_bytes(data)


@functools.lru_cache(None)
def unit(name: str) -> Unit:
    return Unit(name)


class Unit:
    """A module of one compiler. ``head`` is what its launcher needs to know beside the PTX, from the first line."""

    def __init__(self, name: str) -> None:
        text = lzma.decompress((FOLDER / "ptx" / f"{name}.ptx.xz").read_bytes()).decode()
        first, _, rest = text.partition("\n")
        self.head: dict[str, Any] = json.loads(first[3:]) if first.startswith("// {") else {}
        self.module = ptxdsl.load(text)
        self.block = tuple(int(number) for number in re.findall(r"(?<=reqntid )\d+", rest)[:1])

    def box(self, number: int, array: Array, **options: Any) -> list[Any]:
        """What Triton passes for a tensor descriptor: a tensor map, the shape and the strides."""
        box = self.head["boxes"][number]
        made = tensor_map(array, box["block_size"], swizzle=(None, 32, 64, 128)[box["swizzle"]], **options)
        return [made, *map(np.int32, array.shape), *(stride // array.itemsize for stride in array.strides)]

    def launch(self, grid: Any, arguments: list[Any], **options: Any) -> None:
        """Launch the only kernel as Triton does: programs are clusters, pointers of its own end the arguments."""
        grid, blocks = (grid if isinstance(grid, tuple) else (grid,)), self.head.get("ctas", 1)
        scratch: Any = 0
        if nbytes := self.head.get("scratch", 0):
            scratch = np.zeros(nbytes * int(np.prod(grid)) * blocks + 128, np.uint8)
            scratch = scratch[-scratch.ctypes.data % 128 :]
        if blocks > 1:
            options["cluster"], grid = blocks, (grid[0] * blocks, *grid[1:])
        own = [scratch, 0] if "scratch" in self.head else []
        entry = self.module[next(iter(self.module))]
        entry.configure(grid, self.block, shared=self.head.get("shared", 0), **options)(*arguments, *own)


def random_array(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> Array:
    """Normal numbers, or integers of all of a small type's values."""
    if np.issubdtype(np.dtype(kind), np.integer):
        return rng.integers(-128, 128, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def tiles(extent: int, tile: int) -> int:
    return -(-extent // tile)


def moved_rows(of: Unit, rng: np.random.Generator) -> tuple[list[Any], Array, Array]:
    """For a kernel that gathers rows, doubles them and scatters them: arguments, the result, and what is right."""
    x = random_array(rng, (100, 192), f16)
    out, at = np.zeros_like(x), rng.permutation(100)[:64].astype(np.int32)
    right = np.zeros(x.shape)
    right[at] = 2 * wide(x)[at]
    return [*of.box(0, x), at, *of.box(1, out)], out, right
