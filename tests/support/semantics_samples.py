"""Numbers to try: every pattern of a byte or halfword where asked, else special values among random ones."""

from __future__ import annotations

import os

import numpy as np
from semantics_reference import LAYOUTS

SEED = int(os.environ["TEST_SEED"])
"""Fresh in each run; the failing inputs stand in the message of a failed test."""

_INTEGERS = (0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x0101, 0x7FFF, 0x8000, 0x8001, 0xFFFF)


def generator(salt: str) -> np.random.Generator:
    return np.random.default_rng([SEED, *salt.encode()])


def integers(salt: str, bits: int, count: int) -> np.ndarray:
    """Random patterns of mixed magnitudes, beginning with special ones (in random order)."""
    rng = generator(salt)
    mask = (1 << bits) - 1
    edges = [1 << (bits - 1), (1 << (bits - 1)) - 1, mask, mask - 1, (1 << (bits - 1)) + 1]
    special = [value & mask for value in (*_INTEGERS, *edges)]
    values = [int(v) & mask for v in rng.integers(0, 1 << 64, count, dtype=np.uint64)]
    shifts = rng.integers(0, bits, count)
    values = [v >> int(s) if at % 2 else v for at, (v, s) in enumerate(zip(values, shifts))]
    for at in range(0, count, 2):
        if rng.random() < 0.5:
            values[at] = special[int(rng.integers(len(special)))]
    return np.array(values, np.uint64)


def floats(salt: str, name: str, count: int) -> np.ndarray:
    """Codes of a format: zeros, infinities, NaNs, subnormals, ones, extremes; random ones of every exponent."""
    layout = LAYOUTS[name]
    rng = generator(salt)
    sign = 1 << (layout.bits - 1)
    one, top = layout.bias << layout.mantissa, ((1 << layout.exponent) - 1) << layout.mantissa
    special = [0, 1, 2, (1 << layout.mantissa) - 1, 1 << layout.mantissa, (1 << layout.mantissa) + 1, one, one + 1,
               one - 1, one // 2, one + (1 << layout.mantissa), top - 1, top - 2, top, top + 1, sign - 1]
    values = [int(v) & (2 * sign - 1) for v in rng.integers(0, 1 << 64, count, dtype=np.uint64)]
    for at in range(count):
        kind = rng.random()
        if kind < 0.25:
            values[at] = special[int(rng.integers(len(special)))] | (sign if rng.random() < 0.5 else 0)
        elif kind < 0.6:
            width = int(rng.integers(1, 6))
            field = (one + (int(rng.integers(-width, width + 1)) << layout.mantissa)) % sign
            values[at] = (values[at] & (sign | ((1 << layout.mantissa) - 1))) | (field & ~((1 << layout.mantissa) - 1))
    return np.array(values, np.uint64)


def near(salt: str, name: str, codes: np.ndarray) -> np.ndarray:
    """For each code one a few units or exponents away, of either sign, so that sums cancel and ties are met."""
    layout = LAYOUTS[name]
    rng = generator(salt)
    mask, sign = (1 << layout.bits) - 1, 1 << (layout.bits - 1)
    result = []
    for code in codes:
        reach = layout.mantissa + 4
        step = int(rng.integers(-3, 4)) + (int(rng.integers(1 - reach, reach)) << layout.mantissa)
        value = (int(code) + step * int(rng.integers(0, 2))) & mask
        if rng.random() < 0.3:
            value &= ~((1 << int(rng.integers(0, layout.mantissa))) - 1)
        result.append(value ^ (sign if rng.random() < 0.6 else 0))
    return np.array(result, np.uint64)
