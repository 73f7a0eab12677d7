"""The Mandelbrot set as a PNG: every thread leaves its loop at its own time.

python examples/mandelbrot.py [file.png]
"""

import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptxdsl import Ptr, break_if, f32, loop, ptx, ptx_kernel, reg, u8, u32, when
from ptxdsl.bench import Row, compare, report

STEPS = 200
LEFT, TOP = -2.25, -1.25
DEFAULT = f"{tempfile.gettempdir()}/mandelbrot.png"


@ptx_kernel
def mandelbrot(width: u32, height: u32, size: f32, steps: Ptr[u8], *, limit: int = STEPS) -> None:
    """steps[y, x] = how many steps pixel (x, y) stays within radius 2; ``size`` is the side of a pixel."""
    x, y = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, ptx.ctaid.y * ptx.ntid.y + ptx.tid.y
    with when((x < width) & (y < height)):
        # mul.rn and add.rn are never fused to fma: the result is numpy's, bit by bit
        c_re = ptx.add.rn.f32(ptx.mul.rn.f32(x.to(f32), size), LEFT)
        c_im = ptx.add.rn.f32(ptx.mul.rn.f32(y.to(f32), size), TOP)
        re, im, n = reg(f32, 0.0), reg(f32, 0.0), reg(u32, 0)
        with loop():
            re2, im2 = ptx.mul.rn.f32(re, re), ptx.mul.rn.f32(im, im)
            break_if((ptx.add.rn.f32(re2, im2) > 4.0) | (n == limit))
            product = ptx.mul.rn.f32(re, im)
            im.set(ptx.add.rn.f32(ptx.add.rn.f32(product, product), c_im))
            re.set(ptx.add.rn.f32(ptx.sub.rn.f32(re2, im2), c_re))
            n += 1
        steps[y * width + x] = n.to(u8)


def reference(width: int, height: int, size: np.float32) -> NDArray[np.uint8]:
    """The same in numpy, on float32."""
    c_re = np.arange(width, dtype=np.float32) * size + np.float32(LEFT)
    c_im = np.arange(height, dtype=np.float32)[:, None] * size + np.float32(TOP)
    re, im = np.zeros((2, height, width), np.float32)
    steps = np.zeros((height, width), np.uint8)
    for _ in range(STEPS):
        inside = re * re + im * im <= 4
        steps += inside
        product = re * im
        re, im = np.where(inside, re * re - im * im + c_re, 2), np.where(inside, product + product + c_im, 2)
    return steps


def write_png(path: str | Path, grey: NDArray[np.uint8]) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = grey.shape
    lines = np.pad(grey, ((0, 0), (1, 0))).tobytes()  # each line begins with its filter, 0
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


def main(path: str = DEFAULT, width: int = 480, height: int = 400) -> Row:
    steps, size = np.full((height, width), 255, np.uint8), np.float32(2.5 / height)
    grid = (-(-width // 32), -(-height // 4))
    row = compare(
        f"mandelbrot, {path}", lambda: mandelbrot[grid, (32, 4)](width, height, size, steps),
        steps, reference(width, height, size), 0,
    )
    write_png(path, (255 - np.sqrt(steps / STEPS) * 255).astype(np.uint8))
    return row


if __name__ == "__main__":
    report(main(sys.argv[1] if sys.argv[1:] else DEFAULT))
