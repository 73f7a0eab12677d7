"""What the products on tensor cores of each generation share: checked matrices, stages of tiles, the end of each sum.

Tiles have 128 bytes of k, as the widest swizzle of a tensor copy does. A matrix may be stored turned, with k across its
rows; its tiles then are, too, and are multiplied as their transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .. import (
    Array, Kernel, Ptr, ScalarType, TensorMap, bf16, cdiv, f16, f32, ptx_kernel, reg, tensor_map, tiles, u32,
)
from .. import processors as processors_of

from . import arguments, matrices

__all__ = [
    "DTYPES", "EIGHT", "RESULTS", "SPAN", "Division", "End", "Kind", "Product", "Ring", "kernel_of", "launch", "map_of",
    "prepare", "processors",
]

EIGHT = ("float8_e4m3fn", "float8_e5m2")
DTYPES = ("float16", "bfloat16", *EIGHT)
RESULTS: dict[str, ScalarType] = {"float16": f16, "bfloat16": bf16, "float32": f32}
SPAN = 128
"""Bytes of k of a tile, and of a row of what is stored."""


class Kind(NamedTuple):
    """What a kernel is made for: the types, which matrices are stored turned, the plan, and the end of each sum."""

    a: ScalarType
    b: ScalarType
    c: ScalarType
    turned: tuple[bool, bool]
    plan: Any
    bias: ScalarType | None = None
    activation: Callable[[Any], Any] | None = None
    copied: bool = True
    """Whether c is stored by tensor copies, else number by number."""


class Product(NamedTuple):
    """Matrices as they are stored, the result, and what a kernel is made for."""

    a: Any
    b: Any
    out: Any
    shape: tuple[int, int, int]
    types: tuple[ScalarType, ScalarType, ScalarType]
    turned: tuple[bool, bool]
    """Whether a and b are stored with k across their rows."""
    bias: ScalarType | None
    copied: bool
    """Whether tensor copies can store the result."""


def prepare(
    a: Any, b: Any, bias: Any, dtype: ScalarType | None, out: Any, turned: Callable[[bool], tuple[bool, ...]]
) -> Product:
    """The product of what a caller has given, checked; ``turned(eight)`` says in which ways a and b may be stored."""
    m, depth = _shape("a", a, ["M", "K"], DTYPES)
    eight = arguments.dtype_name(a) in EIGHT
    _, n = _shape("b", b, [depth, "N"], EIGHT if eight else (arguments.dtype_name(a),))
    if min(m, n, depth) < 1:
        raise arguments.wrong(f"a has shape {[m, depth]} and b {[depth, n]}; every extent must be 1 or more")
    kinds = [arguments.DTYPES[arguments.dtype_name(each)] for each in (a, b)]
    if out is None:
        result = dtype if dtype is not None else bf16 if eight else kinds[0]
        if result not in RESULTS.values():
            raise arguments.wrong(f"dtype is {result}; it can be f16, bf16 or f32")
        out = arguments.empty_like(a, (m, n), result)
    _shape("out", out, [m, n], RESULTS)
    arguments.expect_output(out, a=a, b=b)
    if bias is not None:
        arguments.expect("bias", bias, [n], list(RESULTS))
        arguments.expect_output(out, bias=bias)
    ways = turned(eight)
    left, right = matrices.store(a, ways), matrices.store(b, tuple(not way for way in ways))
    return Product(
        left.array, right.array, out, (m, n, depth), (kinds[0], kinds[1], RESULTS[arguments.dtype_name(out)]),
        (left.turned, not right.turned), None if bias is None else RESULTS[arguments.dtype_name(bias)],
        matrices.fits(out),
    )


def _shape(name: str, array: Any, shape: list[Any], dtypes: Iterable[str]) -> tuple[int, ...]:
    return arguments.expect(name, array, shape, list(dtypes), contiguous=False)


def map_of(array: Any, dtype: ScalarType, extent: int, turned: bool) -> Any:
    """The map of a or b as it is stored, for tiles of ``extent`` rows of a or columns of b."""
    depth = SPAN // dtype.bytes
    box = (depth, min(extent, depth)) if turned else (extent, depth)
    return tensor_map(array, box, swizzle=SPAN)


def processors(wanted: int | None, options: dict[str, Any]) -> int:
    """Blocks to launch at most; those of the GPU that a launch with these options takes if None."""
    if wanted is None:
        return processors_of(options.get("backend"))
    return arguments.size("processors", wanted, range(1, 1 << 16))


class Division(NamedTuple):
    """How a kernel divides a product: the ``tile`` of a cluster of ``blocks``, and what a block copies at once.

    The ``boxes`` are rows of a, columns of b and rows of c.
    """

    tile: tuple[int, int]
    blocks: int
    boxes: tuple[int, int, int]
    threads: int
    shared: int


def launch(
    kernel: Kernel, product: Product, into: Division, bias: Any, scale: float, most: int, *further: Any, **options: Any
) -> Any:
    """Launch a kernel of :func:`kernel_of` on ``most`` multiprocessors; the result. ``further`` come after the maps."""
    (m, n, k), (a, b, c) = product.shape, product.types
    maps = [
        map_of(array, dtype, extent, turned)
        for array, dtype, extent, turned in zip((product.a, product.b), (a, b), into.boxes, product.turned)
    ]
    target = product.out
    if product.copied:
        target = tensor_map(product.out, (into.boxes[2], SPAN // c.bytes), swizzle=SPAN)
    rows, columns = cdiv(m, into.tile[0]), cdiv(n, into.tile[1])
    clusters = max(1, min(rows * columns, most // into.blocks))
    run = kernel.configure(clusters * into.blocks, into.threads, shared=into.shared, **options)
    factor = arguments.number("scale", scale)
    run(*maps, *further, target, 0 if bias is None else bias, n, rows, columns, cdiv(k * a.bytes, SPAN), factor)
    return product.out


def kernel_of(kind: Kind, name: str, run: Callable[..., None], **options: Any) -> Kernel:
    """The kernel: ``(a, b, c, bias, columns of c, rows and columns of tiles of a cluster, steps along k, scale)``.

    ``run`` traces it and is given all of these; the bias is 0 where the kind has none.
    """
    target: Any = TensorMap if kind.copied else Array[kind.c, 2]
    bias_type: Any = kind.bias
    added: Any = u32 if bias_type is None else Ptr[bias_type]

    @ptx_kernel(name=name + "_bias" * (kind.bias is not None), **options)
    def kernel(
        a: TensorMap, b: TensorMap, c: target, bias: added, n: u32, rows: u32, columns: u32, steps: u32, scale: f32,
    ) -> None:
        run(a, b, c, bias, n, rows, columns, steps, scale)

    return kernel


class Ring:
    """The stages of a or b: as they are copied, and as they are multiplied."""

    def __init__(self, place: Any, dtype: ScalarType, extent: int, turned: bool, stages: int) -> None:
        self.depth, self.extent, self.turned = SPAN // dtype.bytes, extent, turned
        shape = (self.depth, extent) if turned else (extent, self.depth)
        self.ring = tiles.Ring(place.cast(dtype), stages, *shape)

    def copied(self, slot: Any, first: Any, extent: int) -> Any:
        """The tile that is copied to: ``extent`` rows of the matrix (of b columns) from ``first`` on, all of k."""
        whole = self.ring[slot]
        if extent == self.extent:
            return whole
        shape = (self.depth, extent) if self.turned else (extent, self.depth)
        return tiles.Tile(whole.place + first * self.depth, *shape)

    def factor(self, slot: Any, first: Any, extent: int) -> Any:
        """The same as a factor, with k along its columns."""
        found = self.copied(slot, first, extent)
        return found.T if self.turned else found

    def at(self, row: Any, k: Any) -> tuple[Any, Any]:
        """Coordinates in the matrix as it is stored."""
        return (k, row) if self.turned else (row, k)


class End:
    """What is stored for a sum: ``activation(scale * sum + bias)``; ``column`` is added to each that it is given."""

    def __init__(self, kind: Any, bias: Any, n: Any, scale: Any, column: Any) -> None:
        self.kind, self.n, self.scale, self.column = kind, n, scale, column
        self.bias = None if kind.bias is None else bias

    def __call__(self, column: Any, values: list[Any]) -> list[Any]:
        """Of the sums of a column."""
        values = [value * self.scale for value in values]
        if self.bias is not None:
            place, found = self.column + column, reg(self.kind.bias, 0.0)
            self.bias.load(place, pred=place < self.n, out=found)
            added = found if self.kind.bias is f32 else found.to(f32)
            values = [value + added for value in values]
        activation = self.kind.activation
        return values if activation is None else [activation(value) for value in values]
