"""Rotate an image through a texture: it interpolates between pixels, and gives zeros beyond the edges."""

import numpy as np

from ptxdsl import Array, Texture, f32, ptx, ptx_kernel, when
from ptxdsl.bench import Row, compare, report

BLOCK = (32, 8)


@ptx_kernel
def rotate(image: Texture, out: Array[f32, 2], cos: f32, sin: f32) -> None:
    """A thread finds where its pixel comes from; the centre of pixel i lies at i + 0.5."""
    height, width = out.shape
    x, y = ptx.ctaid.x * BLOCK[0] + ptx.tid.x, ptx.ctaid.y * BLOCK[1] + ptx.tid.y
    with when((x < width) & (y < height)):
        middle = width.to(f32) * 0.5, height.to(f32) * 0.5
        dx, dy = x.to(f32) + 0.5 - middle[0], y.to(f32) + 0.5 - middle[1]
        source = middle[0] + dx * cos - dy * sin, middle[1] + dx * sin + dy * cos
        out[y, x] = ptx["tex.2d.v4.f32.f32"]((image, source))[0]


def rotated(image: np.ndarray, cos: float, sin: float) -> np.ndarray:
    """The same in float64, from the four pixels around each source."""
    height, width = image.shape
    dy, dx = np.mgrid[:height, :width] + 0.5 - np.array([height, width])[:, None, None] / 2
    x, y = dx * cos - dy * sin + width / 2 - 0.5, dx * sin + dy * cos + height / 2 - 0.5
    total, framed = np.zeros(image.shape), np.pad(image, 1).astype(np.float64)
    for j, i in ((j, i) for j in (0, 1) for i in (0, 1)):
        column, row = np.floor(x).astype(int) + i, np.floor(y).astype(int) + j
        weight = (1 - abs(x - column)) * (1 - abs(y - row))
        total += weight * framed[np.clip(row + 1, 0, height + 1), np.clip(column + 1, 0, width + 1)]
    return total


def main(height: int = 300, width: int = 400, degrees: float = 30.0) -> Row:
    image = np.random.default_rng().random((height, width), np.float32)
    cos, sin = float(np.cos(np.radians(degrees))), float(np.sin(np.radians(degrees)))
    texture, out = Texture(image, address="border", filter="linear"), np.full_like(image, np.nan)
    grid = (-(-width // BLOCK[0]), -(-height // BLOCK[1]))
    expected = rotated(image, cos, sin)
    # Texture units have 8 bits for the place between two pixels.
    return compare(
        f"rotate, {height} x {width}", lambda: rotate[grid, BLOCK](texture, out, cos, sin), out, expected, 1 / 128
    )


if __name__ == "__main__":
    report(main())
