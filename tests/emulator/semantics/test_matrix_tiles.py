"""The numeric core of matrix instructions whose tiles lie in memory, against numpy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from matrix_harness import FLOATS, LANES, drawn, packed, sparse

from ptxdsl.emulator.codegen.tensor_cores import matrix_tiles
from ptxdsl.emulator.codegen.library import library
from ptxdsl.emulator.instructions.tensor_cores.matrix_tiles import (
    GROUP, ScaledSum, SparseLines, TilePanel, TileProduct, elements_of, held_by_lanes, held_in_rows,
)

Rng = np.random.Generator
PAIRS = [line for eight in (0, 8) for odd in (0, 1) for line in range(eight + odd, eight + 8, 2)]
KINDS = ("bf16", "f16", "tf32", "e4m3", "e5m2", "s8", "u8", "e3m2", "e2m3", "e2m1", "e2m1x")


def called(key: Any, pointers: int, *arguments: int) -> None:
    kinds = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * (len(arguments) - pointers)
    ctypes.CFUNCTYPE(None, *kinds)(library().need([key])[key])(*arguments)


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Poisoned memory at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.full(size + 64, 0x7F, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def piece(values: Any, kind: str) -> bytes:
    """The 16 bytes that elements take in memory."""
    dtype = FLOATS.get(kind, {"s8": np.int8, "u8": np.uint8}.get(kind))
    codes = values.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")
    bits = {"e2m1": 4, "e2m1x": 4, "e3m2": 6, "e2m3": 6}.get(kind, 0)
    if not bits:
        return bytes(codes.tobytes())
    whole = sum(int(code) << bits * number for number, code in enumerate(codes))
    return whole.to_bytes(16, "little")


def panel(rng: Rng, matrix: Any, key: TilePanel) -> Any:
    """The panel of a matrix of lines by k, its pieces scattered over memory."""
    kind, major, order = key.element, key.major, key.order
    lines, depth = matrix.shape
    size = elements_of(kind)
    groups = lines // GROUP
    if major == "k":
        parts = [matrix[line, first : first + size] for line in range(lines) for first in range(0, depth, size)]
        pieces = depth // size
    else:
        parts = [matrix[first : first + size, k] for k in range(depth) for first in range(0, lines, size)]
        pieces = depth
    where = rng.permutation(2 * len(parts))[: len(parts)].astype(np.uint32) * 16
    memory = rng.integers(0, 256, 32 * len(parts), np.uint8)
    for place, part in zip(where, parts):
        memory[place : place + 16] = np.frombuffer(piece(part, kind), np.uint8)
    found = aligned((depth, lines * (4 if order == "spread" else 1)), np.float32)
    called(
        key, 3, found.ctypes.data, memory.ctypes.data, where.ctypes.data, groups, pieces, found.strides[0],
    )
    return found


CASES = [
    *((kind, "k", ("lines", "pairs", "spread")[number % 3]) for number, kind in enumerate(KINDS)),
    ("bf16", "mn", "spread"), ("tf32", "mn", "pairs"), ("e4m3", "mn", "lines"),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_panels(case: tuple[str, str, str], rng: Rng) -> None:
    kind, _, order = case
    matrix = drawn(rng, kind, (3 * GROUP, 64)).astype(np.float32)
    found = panel(rng, matrix, TilePanel(*case))
    places = [16 * group + line for group in range(3) for line in (PAIRS if order == "pairs" else range(16))]
    np.testing.assert_array_equal(found, matrix[places].T.repeat(4 if order == "spread" else 1, 1))


def test_panels_have_every_code(rng: Rng) -> None:
    for kind in ("e4m3", "e5m2"):
        codes = rng.permutation(256).astype(np.uint8).reshape(16, 16)
        found = aligned((16, 16), np.float32)
        where = (16 * np.arange(16)).astype(np.uint32)
        addresses = (found.ctypes.data, codes.ctypes.data, where.ctypes.data)
        called(TilePanel(kind, "k", "lines"), 3, *addresses, 1, 1, 64)
        np.testing.assert_array_equal(found, codes.view(FLOATS[kind]).astype(np.float32).T)


@pytest.mark.parametrize("kind", ["bf16", "tf32", "s8", "e5m2"])
def test_panels_from_registers(kind: str, rng: Rng) -> None:
    k = 2 * elements_of(kind)
    matrix = drawn(rng, kind, (16, k))
    slots = rng.permutation(9)[:4]
    held = aligned((9, LANES), np.uint32)
    held[slots] = packed(matrix, f"m16n8k{k}", kind, "a").T
    found = aligned((k, 64 * 2), np.float32)
    found[:] = -1
    offsets = (128 * slots).astype(np.int32)
    key = held_by_lanes((kind, kind), ("", "k")).left
    called(
        key, 3, found.ctypes.data + 256, held.ctypes.data, offsets.ctypes.data, found.strides[0]
    )
    np.testing.assert_array_equal(found[:, 64:], matrix.T.repeat(4, 1))
    assert (found[:, :64] == -1).all()


def product(key: TileProduct, d: Any, offsets: Any, a: Any, b: Any, depth: int, fresh: int, lines: Any = None) -> None:
    offsets = np.ascontiguousarray(offsets, np.int32)
    sizes = np.array([*offsets.shape, depth, a.strides[0], b.strides[0], fresh], np.int64)
    further = [] if lines is None else [lines.ctypes.data]
    addresses = (d.ctypes.data, offsets.ctypes.data, a.ctypes.data, b.ctypes.data, sizes.ctypes.data, *further)
    called(key, len(addresses), *addresses)


@pytest.mark.parametrize("host", ["", "-avx512f"])
def test_accumulators_where_registers_are_few(host: str, rng: Rng, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU with fewer or smaller registers sums fewer vectors at a time."""
    a, b = rng.standard_normal((16, 16)).astype(np.float32), rng.standard_normal((16, 32)).astype(np.float32)
    left, right = aligned((16, 16), np.float32), aligned((16, 32), np.float32)
    left[:], right[:] = a, b
    d, key = aligned((16, 32), np.float32), TileProduct("one", "vector", 4, 2, "reals", False)
    offsets = [[128 * row + 64 * j for j in range(2)] for row in range(16)]
    if host:
        monkeypatch.setattr(matrix_tiles, "described", lambda: ("", "", host))
        key = TileProduct("one", "vector", 8, 2, "reals", False)
    product(key, d, offsets, left, right, 16, 1)
    exact = a.T.astype(np.float64) @ b.astype(np.float64)
    assert (abs(d - exact) <= 17 * 2.0**-24 * (abs(a.T) @ abs(b)) * 1.01).all()


@pytest.mark.parametrize("fresh", [0, 1])
@pytest.mark.parametrize("whole", [False, True])
def test_accumulators_of_lanes(whole: bool, fresh: int, rng: Rng) -> None:
    """d as a warpgroup holds it: by warp, register and lane, of 64 rows."""
    n, k = 24, 32
    a, b = rng.standard_normal((64, k)), rng.standard_normal((32, k))
    d = rng.standard_normal((64, n)).astype(np.float32)
    kinds = ("s8", "u8") if whole else ("bf16", "e4m3")
    a, b = (np.round(x * 20) if whole else x.astype(FLOATS[kind]) for x, kind in zip((a, abs(b)), kinds))
    d = rng.integers(-(2**31), 2**31, (64, n)).astype(np.int32) if whole else d
    slots = rng.permutation(4 * n)  # of the registers of four warps
    held = aligned((4 * n, 32), d.dtype)
    lanes = [(warp, register, lane) for warp, register, lane in np.ndindex(4, n // 2, 32)]
    rows = [16 * warp + 8 * (register // 2 % 2) + lane // 4 for warp, register, lane in lanes]
    columns = [8 * (register // 4) + 2 * (lane % 4) + register % 2 for _, register, lane in lanes]
    where = [(slots[warp * n + register], lane) for warp, register, lane in lanes]
    held[tuple(np.transpose(where))] = d[rows, columns]
    tiles = held_by_lanes(kinds, ("k", "k"))
    assert isinstance(tiles.left, TilePanel)
    left, right = panel(rng, a.astype(np.float32), tiles.left), panel(rng, b.astype(np.float32), tiles.right)
    offsets = [
        [128 * slots[i // 4 * n + j // 2 * 4 + i // 2 % 2 * 2 + j % 2] + 64 * (i % 2) for j in range(n // 4)]
        for i in range(16)
    ]
    product(tiles.product, held, offsets, left, right, k, fresh)
    found = np.empty((64, n), d.dtype)
    found[rows, columns] = held[tuple(np.transpose(where))]
    exact = a.astype(np.float64) @ b[:n].astype(np.float64).T + (0 if fresh else d.astype(np.float64))
    magnitude = abs(a.astype(np.float64)) @ abs(b[:n].astype(np.float64)).T + abs(d.astype(np.float64))
    if whole:
        np.testing.assert_array_equal(found, exact.astype(np.int64).astype(np.int32))
    else:
        assert (abs(found - exact) <= (k + 1) * 2.0**-24 * magnitude).all()


def test_accumulators_by_rows(rng: Rng) -> None:
    """d as rows of columns, within a larger array."""
    m, n, k = 32, 48, 16
    a, b = (rng.standard_normal(size).astype(np.float16) for size in ((m, k), (n, k)))
    whole = rng.standard_normal((m, 64)).astype(np.float32)
    d = whole.copy()
    tiles = held_in_rows(("f16", "f16"), ("k", "mn"), n // 16)
    assert isinstance(tiles.left, TilePanel)
    left, right = panel(rng, a, tiles.left), panel(rng, b, tiles.right)
    offsets = [[row * d.strides[0] + 64 * j for j in range(n // 16)] for row in range(m)]
    product(tiles.product, d, offsets, left, right, k, 0)
    exact = a.astype(np.float64) @ b.astype(np.float64).T + whole[:, :n]
    magnitude = abs(a.astype(np.float64)) @ abs(b.astype(np.float64)).T + abs(whole[:, :n])
    assert (abs(d[:, :n] - exact) <= (k + 1) * 2.0**-24 * magnitude).all()
    np.testing.assert_array_equal(d[:, n:], whole[:, n:])


@pytest.mark.parametrize(("kind", "by_lanes"), [("bf16", True), ("tf32", False), ("e2m1x", False), ("s8", True)])
def test_sparse_products(kind: str, by_lanes: bool, rng: Rng) -> None:
    """What is left out is not multiplied: B has NaN where no row meets it."""
    m, n, k = 64, 48, 2 * max(16, 256 // (128 // elements_of(kind)))
    tables = [sparse(rng, k, kind) for _ in range(m // 16)]
    kept, codes = (np.concatenate([table[part] for table in tables]) for part in (0, 1))
    a, b = drawn(rng, kind, (m, k // 2)).astype(np.float32), drawn(rng, kind, (n, k)).astype(np.float32)
    size = {"tf32": 2, "e2m1x": 8}.get(kind, 4)
    kept[:, : size // 2], codes[:, 0] = kept[0, : size // 2], codes[0, 0]  # all rows keep the same of the first chunk
    missing = [at for at in range(size) if at not in kept[0, : size // 2]]
    given = (kind, kind), ("k", "k")
    tiles = held_by_lanes(*given, sparse=True) if by_lanes else held_in_rows(*given, n // 16, sparse=True)
    assert isinstance(tiles.left, TilePanel) and isinstance(tiles.lines, SparseLines)
    left, right = panel(rng, a, tiles.left), panel(rng, b, tiles.right)
    right[missing] = np.nan
    lines, table = aligned((k // 2, m), np.uint32), np.ascontiguousarray(codes.T, np.uint8)
    called(tiles.lines, 2, lines.ctypes.data, table.ctypes.data, m // 16, codes.shape[1], right.strides[0])
    np.testing.assert_array_equal(lines, kept.T * right.strides[0])
    d = aligned((m, n), np.int32 if kind == "s8" else np.float32)
    d[:] = start = drawn(rng, "s32", (m, n))
    shape = (m // 4, n // 4) if by_lanes else (m, n // 16)
    offsets = 64 * np.arange(m * n // 16).reshape(shape)
    if by_lanes:
        d[:] = as_vectors(start, n).astype(d.dtype)
    product(tiles.product, d, offsets, left, right, k // 2, 0, lines)
    exact = start + (a[:, :, None] * b.T[kept]).sum(1)
    np.testing.assert_array_equal(d, as_vectors(exact, n) if by_lanes else exact)


def as_vectors(matrix: Any, n: int) -> Any:
    """The elements of a matrix in the order of its vectors as lanes hold them, in its own shape."""
    m = matrix.shape[0]
    found = [
        matrix[4 * i + lane // 4, 8 * (j // 2) + j % 2 + 2 * (lane % 4)]
        for i in range(m // 4) for j in range(n // 4) for lane in range(16)
    ]
    return np.array(found).reshape(m, n)


def test_scaled_sums(rng: Rng) -> None:
    m, vectors = 7, 3
    sums, left = rng.standard_normal((m, 16 * vectors)).astype(np.float32), 2.0 ** rng.integers(-250, 250, m)
    right = 2.0 ** rng.integers(-3, 3, 16 * vectors)
    d = aligned((m, 64), np.float32)
    d[:] = before = rng.standard_normal((m, 64)).astype(np.float32)
    left[3] = 0.5
    offsets = np.array([[256 * row + 64 * j for j in range(vectors)] for row in range(m)], np.int32)
    place, sizes = aligned(sums.shape, np.float32), np.array([m, vectors], np.int64)
    place[:] = sums
    called(
        ScaledSum(), 6, d.ctypes.data, offsets.ctypes.data, place.ctypes.data, left.ctypes.data, right.ctypes.data,
        sizes.ctypes.data,
    )
    with np.errstate(over="ignore"):
        exact = (before[:, : 16 * vectors] + sums.astype(np.float64) * left[:, None] * right).astype(np.float32)
    np.testing.assert_allclose(d[:, : 16 * vectors], exact, rtol=2.0**-22)
    np.testing.assert_array_equal(d[:, 16 * vectors :], before[:, 16 * vectors :])
