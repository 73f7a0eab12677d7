"""A small alphabet and a canvas, so that a picture with text needs nothing beside numpy.

A library that draws would be this package's largest dependency, for one picture. The letters are lines between the
points of a grid, 4 wide and 6 high (8 with descenders), all of one width as source code wants them.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["ADVANCE", "Canvas"]

ADVANCE = 6
"""Width of a letter with the space to the next one, in units of the grid."""
_HEIGHT = 10
_MISSING = "0040460600"

# Lines are separated by spaces; each is a row of points, the digits x and y from the letter's upper left.
_GLYPHS = {
    "A": "062046 1434", "B": "06003041423303 3344453606", "C": "4130100105163645", "D": "06003041453606",
    "E": "40000646 0333", "F": "400006 0333", "G": "41301001051636454323", "H": "0006 4046 0343",
    "I": "1030 2026 1636", "J": "4045361605", "K": "0006 4004 1346", "L": "000646", "M": "0600234046",
    "N": "06004640", "O": "103041453616050110", "P": "06003041423303", "Q": "103041453616050110 2446",
    "R": "06003041423303 2346", "S": "413010010213334445361605", "T": "0040 2026", "U": "000516364540",
    "V": "002640", "W": "0016233640", "X": "0046 4006", "Y": "002340 2326", "Z": "00400646",
    "0": "103041453616050110 4105", "1": "112026 1636", "2": "01103041420646", "3": "004023334445361605",
    "4": "36300444", "5": "4000033344453606", "6": "3010010516364544331304", "7": "004016",
    "8": "13020110304142331304051636454433", "9": "1636454130100102133342",
    "a": "12324346 441405163645", "b": "0006 0312324345361605", "c": "4332120305163645",
    "d": "4046 4332120305163645", "e": "044443321203051636", "f": "40302126 1232",
    "g": "42473818 4332120305163645", "h": "0006 0312324346", "i": "2020 122226 1636", "j": "3030 2232372818",
    "k": "0006 4204 2346", "l": "102026 1636", "m": "0206 03122326 23324346", "n": "0206 0312324346",
    "o": "123243453616050312", "p": "0208 0312324345361605", "q": "4248 4332120305163645", "r": "0206 04223243",
    "s": "43321203143445361605", "t": "20253646 1242", "u": "0205163645 4246", "v": "022642", "w": "0216243642",
    "x": "0246 4206", "y": "0226 4208", "z": "02420646",
    " ": "", "!": "2024 2626", '"': "1012 3032", "#": "1016 3036 0242 0444", "$": "413010010213334445361605 2026",
    "%": "4006 0010110100 3545463635", "&": "4602011020310405162644", "'": "2022", "(": "30212536", ")": "10212516",
    "*": "2125 0244 4204", "+": "2125 0343", ",": "252617", "-": "0343", ".": "2626", "/": "4006",
    ":": "2323 2626", ";": "2323 252617", "<": "410345", "=": "0242 0444", ">": "014305", "?": "01103041422324 2626",
    "@": "4616050110304144242242", "[": "30202636", "\\": "0046", "]": "10202616", "^": "022042", "_": "0747",
    "`": "1021", "{": "30212213242536", "|": "2027", "}": "10212233242516", "~": "04133443",
}


@lru_cache(maxsize=512)
def _glyph(letter: str, unit: float, weight: float) -> Any:
    """How much of each pixel a letter covers, 0 to 1."""
    height, width = round(_HEIGHT * unit), round(ADVANCE * unit)
    y, x = np.mgrid[0:height, 0:width] + 0.5
    nearest = np.full((height, width), np.inf)
    for line in _GLYPHS.get(letter, _MISSING).split():
        points = [((int(line[n]) + 1) * unit, (int(line[n + 1]) + 1) * unit) for n in range(0, len(line), 2)]
        for (ax, ay), (bx, by) in zip(points, points[1:] or points):
            dx, dy = bx - ax, by - ay
            along = np.clip(((x - ax) * dx + (y - ay) * dy) / max(dx * dx + dy * dy, 1e-9), 0, 1)
            nearest = np.minimum(nearest, np.hypot(x - ax - along * dx, y - ay - along * dy))
    return np.clip(weight / 2 + 0.5 - nearest, 0, 1)


class Canvas:
    """A picture: ``pixels`` is an array of height x width x RGB, 0 to 255; a colour is a tuple of these."""

    def __init__(self, width: int, height: int, colour: tuple[int, int, int]) -> None:
        self.pixels = np.empty((height, width, 3), np.float32)
        self.pixels[:] = colour

    def box(self, x: float, y: float, width: float, height: float, colour: tuple[int, int, int]) -> None:
        """Fill a rectangle."""
        self.pixels[round(y) : round(y + height), round(x) : round(x + width)] = colour

    def text(self, x: float, y: float, text: str, colour: tuple[int, int, int], unit: float, weight: float) -> None:
        """Write from the upper left corner on; what does not fit on the canvas is cut off."""
        for letter in text:
            cover = _glyph(letter, unit, weight)
            part = self.pixels[round(y) : round(y) + cover.shape[0], round(x) : round(x) + cover.shape[1]]
            cover = cover[: part.shape[0], : part.shape[1], None]
            part[:] = part * (1 - cover) + np.asarray(colour, np.float32) * cover
            x += ADVANCE * unit

    def png(self) -> bytes:
        """The picture as a file (PNG specification, ISO/IEC 15948)."""
        pixels = np.clip(self.pixels + 0.5, 0, 255).astype(np.uint8)
        height, width, _ = pixels.shape
        rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
        parts = (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""),
        )
        chunks = [
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts
        ]
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
