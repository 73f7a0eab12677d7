"""What a texture gives, worked out texel by texel in fractions from the CUDA Programming Guide's "Texture Fetching".

Written from the guide alone, for one lane at a time; nothing here is shared with the emulator. ``None`` stands for the
border.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

FAR = Fraction(1 << 40)


class Mode(NamedTuple):
    """What the guide's formulas depend on."""

    address: str = "clamp"
    linear: bool = False
    normalized: bool = False
    border: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)


def number(x: float) -> Fraction:
    """A coordinate that is a number."""
    return Fraction(float(x)) if math.isfinite(x) else FAR if x > 0 else -FAR


def texels_along(x: float, size: int, mode: Mode, offset: int = 0) -> list[tuple[int | None, Fraction]]:
    """The texels along one axis that a coordinate asks for, with their weights."""
    if math.isnan(x) or (math.isinf(x) and mode.address in ("wrap", "mirror")):
        place = Fraction(0)  # the guide says nothing
    else:
        place = number(x) * size + offset if mode.normalized else number(x) + offset
    turns = math.floor(place / size)
    if mode.address == "wrap":
        place -= turns * size
    if mode.address == "mirror":
        place -= turns * size
        if turns % 2:
            place = size - place
    if not mode.linear:
        index = math.floor(place)
        if mode.address == "mirror":
            index = min(index, size - 1)
        return [(inside(index, size, mode), Fraction(1))]
    fixed = math.floor((place - Fraction(1, 2)) * 256 + Fraction(1, 2))  # 8 fractional bits
    index, weight = fixed // 256, Fraction(fixed % 256, 256)
    return [(inside(index, size, mode), 1 - weight), (inside(index + 1, size, mode), weight)]


def inside(index: int, size: int, mode: Mode) -> int | None:
    """The texel that stands for one of any number."""
    if 0 <= index < size:
        return index
    if mode.address == "border":
        return None
    return index % size if mode.address == "wrap" else min(max(index, 0), size - 1)


def sample(texels: np.ndarray, at: tuple[float, ...], mode: Mode, offsets: tuple[int, ...] = (0, 0, 0)) -> list[Any]:
    """The four channels at coordinates x, y, z; ``texels`` has the axes (z, y, x, channel), as many as there are."""
    sizes = texels.shape[-2::-1]
    ways = [texels_along(x, n, mode, offset) for x, n, offset in zip(at, sizes, offsets)]
    total: list[Any] = [Fraction(0)] * 4
    for choice in product(*ways):
        weight = math.prod((share for _, share in choice), start=Fraction(1))
        if not weight:
            continue
        where = tuple(index for index, _ in reversed(choice))
        value = mode.border if None in where else texels[where]
        if not mode.linear:
            return list(value)
        total = [t + weight * Fraction(float(v)) for t, v in zip(total, value)]
    return total


def four(texels: np.ndarray, one: Any) -> np.ndarray:
    """The texels with four channels: those that are missing are 0, the last 1."""
    shape = (*texels.shape[:-1], 4)
    full = np.zeros(shape, texels.dtype)
    full[..., 3] = one
    full[..., : texels.shape[-1]] = texels
    return full


def read(texels: np.ndarray, normalized: bool) -> np.ndarray:
    """The numbers that texels are read as."""
    if texels.dtype == np.float16:
        return texels.astype(np.float32)
    if not normalized:
        return texels
    largest = np.iinfo(texels.dtype).max
    return np.maximum(texels.astype(np.float32) / np.float32(largest), np.float32(-1))


def face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The face of a cube that a direction meets, and where: the guide's table of faces."""
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        number, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    elif abs(y) >= abs(x):
        number, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        number, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    return number, (s / m + 1) / 2, (t / m + 1) / 2


def close(got: np.ndarray, exact: list[list[Any]]) -> None:
    """Whether each f32 is the exact number, rounded; a hair more than half a unit is allowed for rounding twice."""
    for lane, (row, wanted) in enumerate(zip(got, exact)):
        for channel, (value, number) in enumerate(zip(row, wanted)):
            limit = Fraction(float(np.spacing(np.float32(abs(float(number)))))) * Fraction(50001, 100000)
            error = abs(Fraction(float(value)) - Fraction(number if isinstance(number, Fraction) else float(number)))
            assert error <= limit, f"lane {lane}, channel {channel}: {value} for {float(number)}"
