"""Convolutions as matrix products whose operands are never written out (implicit GEMM), forwards and backwards.

Each of the three products of a convolution says where the elements of its matrices are; beyond the image they are 0.
16-bit types are multiplied by ``mma.sync``, others by fused multiply-adds. Groups of few channels, depthwise ones among
them, would leave tiles empty: there a thread, or a block for a weight, makes a sum for itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from .. import (
    Kernel, Ptr, ScalarType, block, f32, f64, loop, minimum, mma, ptx, ptx_kernel, reg, shared, tiles, u32, u64, when,
)

from . import storage
from .linalg.simt import DEPTH, PART, THREADS, TILE

__all__ = ["MMA_THREADS", "THREADS", "TILE", "Window", "conv_kernel", "sums_of"]

MMA_THREADS = 128
_MMA_DEPTH = 32


class Window(NamedTuple):
    """The kernel's size, strides and dilations, along height and width."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]

    @property
    def elements(self) -> int:
        """Elements of the window."""
        return self.size[0] * self.size[1]

    def split(self, k: Any) -> tuple[Any, Any, Any]:
        """A number of (channel, row, column) of the windows of several channels."""
        within = k % self.elements
        return k // self.elements, within // self.size[1], within % self.size[1]

    def __str__(self) -> str:
        return "_".join("x".join(map(str, pair)) for pair in self)


def sums_of(dtype: ScalarType) -> ScalarType:
    """The type of the sums."""
    return f64 if dtype is f64 else f32


class _Product:
    """x, w and y of a group; ``geometry`` gives the extents below, channels and outputs of a group, and the padding."""

    def __init__(self, window: Window, dtype: ScalarType, x: Any, w: Any, y: Any, geometry: dict[str, Any]) -> None:
        self.window, self.dtype, self.x, self.w, self.y = window, dtype, x, w, y
        self.__dict__.update(geometry)
        self.group = ptx.ctaid.z % self.groups
        self.pixels, self.out_pixels = self.height * self.width, self.out_height * self.out_width

    groups: Any
    batch: Any
    channels: Any
    height: Any
    width: Any
    outputs: Any
    out_height: Any
    out_width: Any
    pad_height: Any
    pad_width: Any

    def image(self, n: Any) -> Any:
        """The group's channels of image n of x."""
        return self.x + (n * self.groups + self.group).to(u64) * ptx.mul.wide.u32(self.channels, self.pixels)

    def result(self, n: Any) -> Any:
        """The group's channels of image n of y."""
        return self.y + (n * self.groups + self.group).to(u64) * ptx.mul.wide.u32(self.outputs, self.out_pixels)

    def weights(self) -> Any:
        """The group's part of w."""
        return self.w + self.group.to(u64) * ptx.mul.wide.u32(self.outputs, self.channels * self.window.elements)

    def loaded(self, pointer: Any, index: Any, inside: Any) -> Any:
        """An element, or 0."""
        value = reg(self.dtype, 0.0)
        pointer.load(index, pred=inside, out=value)
        return value

    def of_window(self, n: Any, oy: Any, ox: Any, channel: Any, r: Any, s: Any, inside: Any) -> Any:
        """The element of x that lies in the window of an output, 0 in the padding."""
        (sy, sx), (dy, dx) = self.window.stride, self.window.dilation
        y, x = oy * sy + r * dy - self.pad_height, ox * sx + s * dx - self.pad_width  # below 0 it is a large number
        inside = inside & (y < self.height) & (x < self.width)
        return self.loaded(self.image(n), (channel * self.height + y) * self.width + x, inside)


class _Forward(_Product):
    """y = w x: rows are outputs, columns the pixels of y, k the elements of windows."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rows, self.columns = self.outputs, self.batch * self.out_pixels
        self.depth = self.channels * self.window.elements

    def a(self, row: Any, k: Any) -> Any:
        return self.loaded(self.weights(), row * self.depth + k, (row < self.rows) & (k < self.depth))

    def column(self, j: Any) -> tuple[Any, ...]:
        pixel = j % self.out_pixels
        return j < self.columns, j // self.out_pixels, pixel // self.out_width, pixel % self.out_width

    def b(self, column: tuple[Any, ...], k: Any) -> Any:
        inside, n, oy, ox = column
        return self.of_window(n, oy, ox, *self.window.split(k), inside & (k < self.depth))

    def put(self, row: Any, j: Any, value: Any, bias: Any) -> None:
        with when((row < self.rows) & (j < self.columns)):
            total = reg(value)
            if bias is not None:
                total += storage.widened(bias[self.group * self.outputs + row], self.dtype)
            place = row * self.out_pixels + j % self.out_pixels
            self.result(j // self.out_pixels)[place] = storage.narrowed(total, self.dtype)


class _BackwardInput(_Product):
    """x = w^T y: rows are channels of x, columns its pixels, k (output, row, column) of the weights."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rows, self.columns = self.channels, self.batch * self.pixels
        self.depth = self.outputs * self.window.elements

    def a(self, row: Any, k: Any) -> Any:
        output, within = k // self.window.elements, k % self.window.elements
        place = (output * self.channels + row) * self.window.elements + within
        return self.loaded(self.weights(), place, (row < self.rows) & (k < self.depth))

    def column(self, j: Any) -> tuple[Any, ...]:
        pixel = j % self.pixels
        return j < self.columns, j // self.pixels, pixel // self.width, pixel % self.width

    def b(self, column: tuple[Any, ...], k: Any) -> Any:
        inside, n, y, x = column
        output, r, s = self.window.split(k)
        inside, places = inside & (k < self.depth), []
        for at, pad, step, axis in ((y, self.pad_height, r, 0), (x, self.pad_width, s, 1)):
            stride, dilation = self.window.stride[axis], self.window.dilation[axis]
            moved = at + pad - step * dilation  # below 0 it is a large number
            place = moved // stride
            inside = inside & (place < (self.out_width if axis else self.out_height)) & (moved < 1 << 31)
            if stride > 1:
                inside = inside & (moved % stride == 0)
            places.append(place)
        place = (output * self.out_height + places[0]) * self.out_width + places[1]
        return self.loaded(self.result(n), place, inside)

    def put(self, row: Any, j: Any, value: Any, _bias: Any) -> None:
        with when((row < self.rows) & (j < self.columns)):
            place = row * self.pixels + j % self.pixels
            self.image(j // self.pixels)[place] = storage.narrowed(value, self.dtype)


class _BackwardWeight(_Product):
    """w = y x^T: rows are outputs, columns the elements of windows, k the pixels of y; z of the grid has parts of them.

    Sums go to ``bias``, [parts, outputs, elements] of all groups.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rows, self.columns = self.outputs, self.channels * self.window.elements
        self.depth = self.batch * self.out_pixels

    def a(self, row: Any, k: Any) -> Any:
        place = row * self.out_pixels + k % self.out_pixels
        return self.loaded(self.result(k // self.out_pixels), place, (row < self.rows) & (k < self.depth))

    def column(self, j: Any) -> tuple[Any, ...]:
        return j < self.columns, *self.window.split(j)

    def b(self, column: tuple[Any, ...], k: Any) -> Any:
        inside, channel, r, s = column
        pixel = k % self.out_pixels
        place = k // self.out_pixels, pixel // self.out_width, pixel % self.out_width
        return self.of_window(*place, channel, r, s, inside & (k < self.depth))

    def put(self, row: Any, j: Any, value: Any, sums: Any) -> None:
        with when((row < self.rows) & (j < self.columns)):
            first = ptx.ctaid.z.to(u64) * ptx.mul.wide.u32(self.rows, self.columns)
            (sums + first)[row * self.columns + j] = value


_PRODUCTS: dict[str, Any] = {"forward": _Forward, "input": _BackwardInput, "weight": _BackwardWeight}


def _by_fma(product: Any, chunk: tuple[Any, Any], extra: Any) -> None:
    """A tile of 64 x 64 by fused multiply-adds, 4 x 4 a thread."""
    kind = sums_of(product.dtype)
    first, second = (shared(kind, DEPTH, TILE + 4, align=16) for _ in range(2))
    row, column = ptx.ctaid.y * TILE, ptx.ctaid.x * TILE
    down, along = ptx.tid.x // (TILE // PART) * PART, ptx.tid.x % (TILE // PART) * PART
    own = product.column(column + ptx.tid.x % TILE)
    sums = [[reg(kind, 0.0) for _ in range(PART)] for _ in range(PART)]
    with loop(*chunk, DEPTH) as k:
        found = []
        for step in range(TILE * DEPTH // THREADS):
            at = ptx.tid.x + step * THREADS
            found.append((product.a(row + at // DEPTH, k + at % DEPTH), product.b(own, k + at // TILE)))
        for step, values in enumerate(found):
            at = ptx.tid.x + step * THREADS
            a, b = (storage.widened(value, product.dtype) for value in values)
            first[at % DEPTH, at // DEPTH] = a
            second[at // TILE, at % TILE] = b
        ptx.bar.sync(0)
        for step in range(DEPTH):
            mine, other = ([tile[step, at + i] for i in range(PART)] for tile, at in ((first, down), (second, along)))
            for a, line in zip(mine, sums):
                for b, total in zip(other, line):
                    ptx[f"fma.rn.{kind}"](a, b, total, out=total)
        ptx.bar.sync(0)
    for i, line in enumerate(sums):
        for j, total in enumerate(line):
            product.put(row + down + i, column + along + j, total.copy(), extra)


def _by_mma(product: Any, chunk: tuple[Any, Any], extra: Any) -> None:
    """A tile of 64 x 64 by tensor cores, 32 x 32 a warp."""
    pitch = _MMA_DEPTH + 8  # so that the rows that ldmatrix reads together lie in different banks
    places = [shared(product.dtype, TILE * pitch, align=16) for _ in range(2)]
    first, second = (tiles.Tile(place, TILE, _MMA_DEPTH, 0, pitch=pitch) for place in places)
    row, column, warp = ptx.ctaid.y * TILE, ptx.ctaid.x * TILE, ptx.tid.x >> 5
    own = product.column(column + ptx.tid.x % TILE)
    sums = mma.zeros(32, 32)
    with loop(*chunk, _MMA_DEPTH) as k:
        found = []
        for step in range(TILE * _MMA_DEPTH // MMA_THREADS):
            at = ptx.tid.x + step * MMA_THREADS
            found.append((product.a(row + at // _MMA_DEPTH, k + at % _MMA_DEPTH), product.b(own, k + at // TILE)))
        for step, (a, b) in enumerate(found):
            at = ptx.tid.x + step * MMA_THREADS
            places[0][at // _MMA_DEPTH * pitch + at % _MMA_DEPTH] = a
            places[1][at % TILE * pitch + at // TILE] = b
        ptx.bar.sync(0)
        left, right = (first, warp >> 1), (second, warp & 1)
        parts = [tile.part(32, _MMA_DEPTH, number * 32) for tile, number in (left, right)]
        mma.multiply(sums, parts[0], parts[1].T)
        ptx.bar.sync(0)
    for i, j, value in sums:
        product.put(row + (warp >> 1) * 32 + i, column + (warp & 1) * 32 + j, value, extra)


def _directly(product: Any, chunk: tuple[Any, Any], extra: Any) -> None:
    """A thread for each sum."""
    kind = sums_of(product.dtype)
    row, j = ptx.ctaid.y, ptx.ctaid.x * THREADS + ptx.tid.x
    own, total = product.column(j), reg(kind, 0.0)
    with loop(*chunk) as k:
        a, b = (storage.widened(value, product.dtype) for value in (product.a(row, k), product.b(own, k)))
        ptx[f"fma.rn.{kind}"](a, b, total, out=total)
    product.put(row, j, total.copy(), extra)


def _by_block(product: Any, chunk: tuple[Any, Any], extra: Any) -> None:
    """A block for each sum."""
    kind = sums_of(product.dtype)
    row, j = ptx.ctaid.y, ptx.ctaid.x
    own, total = product.column(j), reg(kind, 0.0)
    with loop(chunk[0] + ptx.tid.x, chunk[1], THREADS) as k:
        a, b = (storage.widened(value, product.dtype) for value in (product.a(row, k), product.b(own, k)))
        ptx[f"fma.rn.{kind}"](a, b, total, out=total)
    whole = block.reduce_sum(total.copy(), THREADS)
    with when(ptx.tid.x == 0):
        product.put(row, j, whole, extra)


_WAYS = {"fma": _by_fma, "mma": _by_mma, "thread": _directly, "block": _by_block}


@cache
def conv_kernel(which: str, way: str, dtype: ScalarType, window: Window, biased: bool = False) -> Kernel:
    """One of the products, ``forward``, ``input`` or ``weight``, in one of the ways, of chunks of k along z."""
    threads = MMA_THREADS if way == "mma" else THREADS
    extra_type = sums_of(dtype) if which == "weight" else dtype
    label = f"conv_{which}_{way}_{dtype}_{window}{'_bias' if biased else ''}"

    @ptx_kernel(name=label, reqntid=threads)
    def kernel(
        x: Ptr[dtype], w: Ptr[dtype], y: Ptr[dtype], extra: Ptr[extra_type], groups: u32, batch: u32, channels: u32,
        height: u32, width: u32, outputs: u32, out_height: u32, out_width: u32, pad_height: u32, pad_width: u32,
        chunk: u32,
    ) -> None:
        geometry = {
            "groups": groups, "batch": batch, "channels": channels, "height": height, "width": width,
            "outputs": outputs, "out_height": out_height, "out_width": out_width, "pad_height": pad_height,
            "pad_width": pad_width,
        }
        product = _PRODUCTS[which](window, dtype, x, w, y, geometry)
        start = ptx.ctaid.z // groups * chunk
        stop = minimum(product.depth, start + chunk)
        _WAYS[way](product, (start, stop), extra if which == "weight" or biased else None)

    return kernel
