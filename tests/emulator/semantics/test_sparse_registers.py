"""spcompress and spdecompress against what the manual says of groups, in Python."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from semantics_harness import Case, run

Rng = np.random.Generator
LANES = 32
TYPES: dict[int, list[Any]] = {
    16: [np.float16, ml_dtypes.bfloat16],
    8: [np.uint8, np.int8, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.float6_e3m2fn,
        ml_dtypes.float6_e2m3fn],
}


def fields(words: Any, bits: int, count: int) -> Any:
    """The first ``count`` elements of each lane's registers, one row a lane."""
    found = [(word >> low) & ((1 << bits) - 1) for word in words for low in range(0, 32, bits)]
    return np.array(found[:count]).T


def compressed(codes: Any, descriptor: int, bits: int) -> tuple[list[int], list[int]]:
    """The codes that are kept of a lane's, and the indices of these in their groups."""
    dtype = TYPES[bits][descriptor >> 2 & 7]
    mask = 0x3F if np.dtype(dtype).name.startswith("float6") else (1 << bits) - 1
    with np.errstate(invalid="ignore"):
        values = (codes & mask).astype(f"u{bits // 8}").view(dtype).astype(np.float64)
    values = abs(values) if descriptor & 1 else values
    kept, indices = [], []
    for first in range(0, len(codes), 4):
        four = values[first : first + 4]
        sign = -1 if descriptor & 2 else 1
        rank = sorted(range(4), key=lambda at: (not np.isnan(four[at]), -sign * np.nan_to_num(four[at]), at))
        chosen = sorted(rank[:2])
        kept += [int(codes[first + at]) for at in chosen]
        indices += chosen
    return kept, indices


@pytest.mark.parametrize(("bits", "index", "num"), [(8, 2, 1), (8, 4, 2), (16, 2, 4), (16, 4, 1)])
def test_spcompress(bits: int, index: int, num: int, rng: Rng) -> None:
    sources = tuple(rng.integers(0, 2**32, 4 * LANES, np.uint32) for _ in range(2 * num))
    descriptors = rng.integers(0, 4 * len(TYPES[bits]), 4 * LANES).astype(np.uint32)
    results = run([Case(f"spcompress.b{bits}.b{index}.sp::2:4.x{num}", (sources, descriptors))])[0]
    groups = 2 * num * 32 // bits // 4
    registers = max(1, num * index // bits)
    codes = fields(sources, bits, 4 * groups)
    found = fields(results[registers:], bits, 2 * groups), fields(results[:registers], index, 2 * groups)
    for lane, descriptor in enumerate(descriptors):
        kept, indices = compressed(codes[lane], int(descriptor), bits)
        tied = zeros_of_both_signs(codes[lane], int(descriptor), bits)
        if not tied:
            assert found[0][lane].tolist() == kept
            assert found[1][lane].tolist() == indices


def zeros_of_both_signs(codes: Any, descriptor: int, bits: int) -> bool:
    """Whether 0 and -0 are among them, which of these is kept first is open."""
    dtype = TYPES[bits][descriptor >> 2 & 7]
    if np.dtype(dtype).kind in "iu":
        return False
    mask = 0x3F if np.dtype(dtype).name.startswith("float6") else (1 << bits) - 1
    zeros = [code & mask for code in codes if not (code & mask) & (mask >> 1)]
    return len(set(zeros)) > 1


@pytest.mark.parametrize("case", [
    (8, 2, 1, 2, 4), (8, 4, 2, 4, 2), (8, 4, 1, 16, 1), (8, 4, 4, 8, 4), (8, 4, 4, 16, 2), (16, 2, 1, 4, 1),
    (16, 4, 2, 16, 1), (16, 4, 2, 4, 2), (8, 2, 2, 4, 1), (16, 4, 1, 2, 2),
])
def test_spdecompress(case: tuple[int, int, int, int, int], rng: Rng) -> None:
    bits, index, kept, group, num = case
    indices = rng.integers(0, group, (4 * LANES, num * kept))
    indices[0] = 0  # the last of several for one place wins
    values = rng.integers(0, 1 << bits, (4 * LANES, num * kept))
    sources = tuple(words(table, size) for table, size in ((indices, index), (values, bits)))
    results = run([Case(f"spdecompress.b{bits}.b{index}.sp::{kept}:{group}.x{num}", sources)])[0]
    expected = np.zeros((4 * LANES, num * group), int)
    for number in range(num * kept):
        expected[np.arange(4 * LANES), number // kept * group + indices[:, number]] = values[:, number]
    np.testing.assert_array_equal(fields(results, bits, num * group), expected)


def words(table: Any, bits: int) -> tuple[Any, ...]:
    """Elements side by side in registers, the rest of the last one set."""
    size = 32 // bits
    padded = np.full((table.shape[0], -(-table.shape[1] // size) * size), (1 << bits) - 1)
    padded[:, : table.shape[1]] = table
    shifts = bits * np.arange(size)
    return tuple((padded[:, n : n + size] << shifts).sum(1).astype(np.uint32) for n in range(0, padded.shape[1], size))
