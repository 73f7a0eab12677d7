"""Whether the bytes that a GPU left in memory are those of the emulator, and where they are not."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Difference", "compare"]

_LAYOUTS = {
    "float32": (4, "<f", "<i", 1e-5), "float64": (8, "<d", "<q", 1e-12), "float16": (2, "<e", "<h", 2e-2),
    "bfloat16": (2, "", "<h", 5e-2),
}
"""Of a type of floats: bytes, the letters of ``struct`` for a number and for its bits, and how far a result may be off,
relative to the largest of the array, where instructions without exact results went into it."""


class Difference(NamedTuple):
    """``differing`` of ``total`` elements of ``size`` bytes differ, first the one at byte ``offset``.

    ``close``: all by no more than instructions allow whose results are within bounds.
    """

    offset: int
    size: int
    differing: int
    total: int
    wanted: bytes
    got: bytes
    close: bool
    remark: str

    def __str__(self) -> str:
        counted = f"{self.differing} of {self.total} elements of {self.size} bytes differ, first at byte {self.offset}"
        values = f"emulator {self.wanted.hex()}, GPU {self.got.hex()}"
        return f"{counted}: {values}" + (f" ({self.remark})" if self.remark else "")


def compare(
    wanted: bytes, got: bytes, dtype: str, *, unspecified: bytes = b"", low: bytes = b"", high: bytes = b"",
    loose: bool = False,
) -> Difference | None:
    """The difference between two contents of memory; None if there is none.

    Bytes are not compared where ``unspecified`` is not 0. Elements of ``dtype`` may lie between those of ``low`` and
    ``high``. ``loose``: instructions went into it whose results are no bits; near ones are told as close then.
    """
    if unspecified:
        got = bytes(w if mask else g for w, g, mask in zip(wanted, got, unspecified))
    if wanted == got:
        return None
    size, letter, bits, allowed = _LAYOUTS.get(dtype, (4, "", "", 0.0))
    places = [at for at in range(0, len(wanted), size) if wanted[at : at + size] != got[at : at + size]]
    total = -(-len(wanted) // size)
    number = _reader(letter, dtype)
    if number is not None and low:
        places = [at for at in places if not _within(number, got, low, high, at, size)]
        if not places:
            return None
    first = places[0]
    close = number is not None and loose and not low and _close(number, wanted, got, places, size, allowed)
    return Difference(
        first, size, len(places), total, wanted[first : first + size], got[first : first + size], close,
        _remark(number, bits, wanted, got, places, size),
    )


def _reader(letter: str, dtype: str) -> Callable[[bytes, int], float] | None:
    """What gives the float at a byte."""
    if letter:
        return lambda data, at: float(struct.unpack_from(letter, data, at)[0])
    if dtype == "bfloat16":
        return lambda data, at: float(struct.unpack("<f", b"\0\0" + data[at : at + 2])[0])
    return None


def _within(
    number: Callable[[bytes, int], float], got: bytes, low: bytes, high: bytes, at: int, size: int
) -> bool:
    if len(got) < at + size:
        return False
    least, value, most = number(low, at), number(got, at), number(high, at)
    return least <= value <= most or (math.isnan(least) and math.isnan(value))


def _close(
    number: Callable[[bytes, int], float], wanted: bytes, got: bytes, places: Sequence[int], size: int, allowed: float
) -> bool:
    if len(wanted) % size:
        return False
    every = (number(wanted, at) for at in range(0, len(wanted), size))
    scale = max((abs(value) for value in every if math.isfinite(value)), default=0.0)
    return all(abs(number(wanted, at) - number(got, at)) <= allowed * scale for at in places)


def _remark(
    number: Callable[[bytes, int], float] | None, bits: str, wanted: bytes, got: bytes, places: Sequence[int], size: int
) -> str:
    """What is to be said of floats that differ."""
    if number is None or len(wanted) % size:
        return ""
    pairs = [(number(wanted, at), number(got, at), at) for at in places]
    if all(math.isnan(w) and math.isnan(g) for w, g, _ in pairs):
        return "NaNs of other bits only"
    if all(w == g for w, g, _ in pairs):
        return "zeros of the other sign only"
    steps = [
        abs(struct.unpack_from(bits, wanted, at)[0] - struct.unpack_from(bits, got, at)[0])
        for w, g, at in pairs if math.isfinite(w) and math.isfinite(g) and (w < 0) == (g < 0)
    ]
    first = f"{pairs[0][0]!r} and {pairs[0][1]!r}"
    return f"{first}, {max(steps)} units in the last place at most" if len(steps) == len(pairs) else first
