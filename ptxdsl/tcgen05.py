"""Matrix products by ``tcgen05`` (sm_100a): of tiles in shared memory, into sums in tensor memory.

Plain Python functions on the public language, traced in place. Tensor memory has 128 lanes of 512 columns of 32 bits:
`allocate` takes some columns for the block, and `Memory.sums` says which of them hold the sums of a product. **One
thread** issues ``tcgen05.multiply(sums, a, b)``, which adds ``a @ b`` with a (m, k) and b (k, n), each a `Tile`, m 64
or 128, or a in tensor memory; descriptors follow from the tiles, and the instruction from the types: f16 and bf16, tf32
(sums of f32, of f16 also f16); e4m3, e5m2, e3m2, e2m3 and e2m1, any two, a byte each (f32, f16); s8 and u8 (s32).

A product runs on behind the call; the usual order is::

    tcgen05.multiply(sums, a, b)            # one thread
    tcgen05.commit(bar)                     # the same one: the mbarrier counts one arrival when its products are done

    mbarrier.wait(bar, parity)              # the threads that read the sums
    tcgen05.fence_after()
    part = sums.load()                      # of the four warps of a warpgroup, each its own lanes: an Accumulator

and `fence_before`, a barrier, `fence_after` before the memory is used for something else. With ``pair=True`` two
neighbouring blocks of a cluster multiply together: each has half of the rows of a and half of the columns of b in its
own shared memory, and one thread of one block issues.

PTX ISA, section 9.7.16 (tcgen05); the layouts are those of `isa.tensor_layouts`.
"""

from __future__ import annotations

from typing import Any

from . import cluster, mbarrier
from .errors import PtxTypeError
from .isa.instruction_descriptors import InvalidDescriptor, Product, Variant, decode, encode
from .isa.matrix_descriptors import SWIZZLES, tensor_descriptor
from .isa.tensor_layouts import accumulator as layout_of
from .language import Value, ptx, reg, shared, when
from .language.block_needs import needs_flat_block
from .language.errors import described, located
from .language.values.literals import known_integer
from .mma import Accumulator
from .mma.block_scales import Scales, scaled_products
from .mma.descriptors import STEP, address, along_k, distances, moves
from .mma.operands import check_shapes, check_types, kind_named, multiple, predicate
from .mma.sums import Held, accumulator
from .tiles import Tile
from .types import (
    ScalarType, bf16, e2m1, e2m3, e3m2, e4m3, e5m2, f16, f32, s8, s32, tf32, u8, u32, u64, ue8m0,
)

__all__ = [
    "Memory", "Operand", "Scales", "Sums", "allocate", "commit", "descriptor", "fence_after", "fence_before",
    "instruction", "multiply", "multiply_scaled", "wait_loads", "wait_stores",
]

LANES, COLUMNS = 128, 512
"""Of tensor memory."""
_KINDS: dict[ScalarType, str] = {
    f16: "f16", bf16: "f16", tf32: "tf32", e4m3: "f8f6f4", e5m2: "f8f6f4", e3m2: "f8f6f4", e2m3: "f8f6f4",
    e2m1: "f8f6f4", s8: "i8", u8: "i8",
}
_RESULTS: dict[str, tuple[ScalarType, ...]] = {"f16": (f32, f16), "tf32": (f32,), "f8f6f4": (f32, f16), "i8": (s32,)}
_ALLOCATED = (32, 64, 128, 256, 512)
_SPANS = {swizzle.span: number for number, swizzle in SWIZZLES.items() if swizzle.low == 4}
"""The number of a swizzle in a descriptor, by the bytes of its rows."""
_TURNED = (16, 8)
"""Bits of the elements that may be stored with k across the rows."""
_MOST = 128
"""Registers of a load."""


# ---------------------------------------------------------------------------------------------------------------------
# Tensor memory


class Memory:
    """Columns of tensor memory that were allocated: ``address`` (u32) of the first, and how many. See `allocate`."""

    def __init__(self, address: Any, columns: int, pair: bool) -> None:
        self.address, self.columns, self.pair = address, columns, pair

    def sums(self, rows: int, columns: int, dtype: ScalarType = f32, *, column: int = 0) -> Sums:
        """The sums of a (rows, columns) matrix from ``column`` on: of all of it, also where a pair has it in halves.

        rows 64 or 128, of a pair 128 or 256; f32, f16 or s32. Nothing is written: begin with ``accumulate=False``.
        """
        if dtype not in (f16, f32, s32):
            raise located(PtxTypeError, f"sums of {kind_named(dtype)}", "f32, f16 or s32")
        allowed = (128, 256) if self.pair else (64, 128)
        if known_integer(rows) not in allowed:
            raise located(
                PtxTypeError, f"sums of {described(rows)} rows{' of a pair' * self.pair}",
                " or ".join(map(str, allowed)),
            )
        multiple("columns", columns, 8)
        # A pair with 128 rows has 64 of them in each block, and half of the columns beside each other.
        self._check(column, columns // 2 if self.pair and rows == 128 else columns)
        return Sums(self, rows, columns, dtype, column)

    def operand(self, rows: int, columns: int, dtype: ScalarType, *, column: int = 0) -> Operand:
        """``a`` (rows, columns) of a product in tensor memory from ``column`` on, a row a lane: rows 128."""
        if dtype not in _KINDS or rows != LANES:
            raise located(
                PtxTypeError, f"a of {kind_named(dtype)} with {described(rows)} rows in tensor memory",
                f"{LANES} rows of f16, bf16, tf32, or elements of a byte",
            )
        multiple("columns", columns, STEP // dtype.bytes)
        self._check(column, columns * dtype.bytes // 4)
        return Operand(self, dtype, columns, column)

    def scales(self, lines: int, groups: int, *, column: Any = 0) -> Scales:
        """Scales of ``lines`` rows of a, or columns of b, from ``column`` (an int or u32) on: `Scales`.

        A line has ``groups`` of four along k. Of a pair, those of a are of this block's rows, and each block needs
        those of all columns of b.
        """
        if known_integer(column) is not None:
            self._check(column, Scales.columns(lines, groups))
        return Scales(self.address + column, lines, groups, self.pair)

    def _check(self, column: int, count: int) -> None:
        known = known_integer(column)
        if known is None or known < 0 or known + count > self.columns:
            raise located(
                PtxTypeError, f"{count} columns of tensor memory from {described(column)} on",
                f"{self.columns} were allocated: `tcgen05.allocate(512)` has all",
            )

    def at(self, column: int, lane: Any = 0) -> Any:
        """The address of a cell: a u32."""
        start = self.address + column if column else self.address
        return start + (lane << 16) if isinstance(lane, Value) or lane else start

    def free(self, warp: int = 0) -> None:
        """Give it back, by one warp, when all threads of the block are done with it: they meet here."""
        _meet(self.pair)
        with when((ptx.tid.x >> 5) == warp):
            ptx[f"tcgen05.dealloc.cta_group::{1 + self.pair}.sync.aligned.b32"](self.address, self.columns)


def allocate(columns: int, *, warp: int = 0, pair: bool = False) -> Memory:
    """Allocate 32, 64, 128, 256 or 512 columns of tensor memory; all threads of the block meet here, and get it.

    Warp number ``warp`` of the block does it, and gives up the right to allocate more. ``pair``: for products of two
    blocks, both of which get here. End with ``memory.free()``.
    """
    if known_integer(columns) not in _ALLOCATED:
        raise located(
            PtxTypeError, f"{described(columns)} columns of tensor memory", "32, 64, 128, 256 or 512"
        )
    needs_flat_block("tcgen05.allocate")
    place, group = shared(u32, 1), f"cta_group::{1 + pair}"
    with when((ptx.tid.x >> 5) == warp):
        ptx[f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32"](place, columns)
        ptx[f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned"]()
    _meet(pair)
    return Memory(place[0], columns, pair)


def _meet(pair: bool) -> None:
    fence_before()
    cluster.sync() if pair else ptx.bar.sync(0)
    fence_after()


def fence_before() -> None:
    """Order the tensor memory operations before it before a barrier or an arrival behind it."""
    ptx.tcgen05.fence__before_thread_sync()


def fence_after() -> None:
    """Order the tensor memory operations behind it after a barrier or a wait before it."""
    ptx.tcgen05.fence__after_thread_sync()


def wait_loads() -> None:
    """Wait for the loads of tensor memory of this warp; `Sums.load` does."""
    ptx.tcgen05.wait__ld.sync.aligned()


def wait_stores() -> None:
    """Wait for the stores to tensor memory of this warp; `Operand.store` does."""
    ptx.tcgen05.wait__st.sync.aligned()


class Sums:
    """Sums of a (rows, columns) matrix in tensor memory."""

    def __init__(self, memory: Memory, rows: int, columns: int, dtype: ScalarType, column: int) -> None:
        self.memory, self.dtype, self.column = memory, dtype, column
        self.shape = rows, columns

    def __repr__(self) -> str:
        return f"<sums of {self.dtype} {self.shape[0]} x {self.shape[1]} in tensor memory>"

    @property
    def pair(self) -> bool:
        """Whether two blocks have it in halves."""
        return self.memory.pair

    def load(self, column: int = 0, columns: int | None = None) -> Accumulator:
        """Load columns of it to registers: those of this block, of which each of four warps has its lanes.

        The warps are those of a warpgroup, all lanes together; the number of a warp in its block decides its rows. Of
        128 rows a thread has a whole one; of a pair, the rows and columns are those of the whole matrix. It waits until
        they are loaded.
        """
        rows, whole = self.shape
        banks = 2 if self.pair and rows == 128 else 1
        count = whole // banks if columns is None else columns
        known, wanted = known_integer(column), known_integer(count)
        if (
            known is None or wanted is None or known < 0 or wanted < 1 or wanted % 8
            or known + wanted > whole // banks
        ):
            given = described(count) if wanted is None else wanted
            raise located(
                PtxTypeError, f"{given} columns from {described(column)} on of {self!r}",
                f"multiples of 8 of the {whole // banks} that a warp has",
            )
        warp, kind = (ptx.tid.x >> 5) & 3, s32 if self.dtype is s32 else f32
        start = self.memory.at(self.column + column, warp << 5)
        if rows == 64:
            found = accumulator(kind, [0], count, (64, whole), warp << 4, 4)
            _loaded("16x256b", 4, start, found.blocks[0], self.dtype)
            return found
        register = _registers(kind, count)
        _loaded("32x32b", 1, start, register, self.dtype)
        lane, first = ptx.laneid, column
        row: Any = (warp << 5) + lane
        right: Any = 0
        if banks == 2:
            row, right = ((warp & 1) << 5) + lane, (warp >> 1) * (whole // 2)
        if self.pair:
            row = row + (cluster.rank() & 1) * (rows // 2)
        held = [Held(0, first + number, 0, number, 0) for number in range(count)]
        return Accumulator(kind, self.shape, [register], held, row, right, 4, 1)


def _registers(kind: ScalarType, count: int) -> list[Any]:
    return [reg(kind) for _ in range(count)]


def _loaded(shape: str, each: int, start: Any, registers: list[Any], dtype: ScalarType) -> None:
    """Load registers, as many at a time as an instruction takes; of sums of f16 the lower half of each column."""
    first = 0
    most = _MOST // each
    columns = len(registers) // each
    step = 1 if shape == "32x32b" else 8
    while first < columns:
        number = min(most, 1 << (columns - first).bit_length() - 1)
        own = registers[first * each : (first + number) * each]
        place = start + first * step if first else start
        ptx[f"tcgen05.ld.sync.aligned.{shape}.x{number}.b32"](place, out=own)
        first += number
    wait_loads()
    if dtype is f16:
        for register in registers:
            register.set(register.unpack(f16)[0].to(f32))


class Operand:
    """``a`` of a product in tensor memory: 128 rows, each in a lane, packed in its columns."""

    def __init__(self, memory: Memory, dtype: ScalarType, columns: int, column: int) -> None:
        self.memory, self.dtype, self.column = memory, dtype, column
        self.shape = LANES, columns

    def __repr__(self) -> str:
        return f"<a of {self.dtype} {self.shape[0]} x {self.shape[1]} in tensor memory>"

    def store(self, part: Accumulator) -> None:
        """Fill it with what `Sums.load` has given, rounded to f16 or bf16: a softmax's weights, as a of a product.

        It waits until they are stored; then ``fence_before`` and a barrier or arrival, for the thread that multiplies.
        """
        values = [register.copy() for register in part.registers]
        if self.dtype not in (f16, bf16) or part.dtype is not f32 or len(values) != self.shape[1]:
            raise located(
                PtxTypeError, f"{part!r} stored to {self!r}",
                "whole rows of f32 (of sums of 128 rows) to an operand of f16 or bf16 with as many columns",
            )
        name = f"cvt.rn.{self.dtype}x2.f32"
        words = [ptx[name](high, low) for low, high in zip(values[::2], values[1::2])]
        start = self.memory.at(self.column, ((ptx.tid.x >> 5) & 3) << 5)
        first = 0
        while first < len(words):
            number = min(_MOST, 1 << (len(words) - first).bit_length() - 1)
            place = start + first if first else start
            ptx[f"tcgen05.st.sync.aligned.32x32b.x{number}.b32"](place, words[first : first + number])
            first += number
        wait_stores()


# ---------------------------------------------------------------------------------------------------------------------
# Products


def multiply(
    sums: Sums, a: Any, b: Tile, *, accumulate: Any = True, negate_a: bool = False, negate_b: bool = False
) -> None:
    """Add ``a @ b`` to ``sums``, or, where ``accumulate`` does not hold, set them to it: a bool or a predicate.

    For one thread. One instruction for 32 bytes of k. Of a pair, ``a`` and ``b`` are this block's halves, which lie at
    the same place of the other one: half of the rows of a, half of the columns of b.

    >>> import numpy as np
    >>> from ptxdsl import Array, f16, f32, dynamic_shared, mbarrier, ptx, ptx_kernel, tcgen05, tiles, tma, when
    >>> @ptx_kernel
    ... def product(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2]):
    ...     left = tiles.Tile(dynamic_shared(f16, align=1024), 128, 64)
    ...     right, bar = tiles.Tile(dynamic_shared(f16, offset=16384), 64, 64), mbarrier.declare()
    ...     tiles.copy(left, a, 0, 0, threads=128)
    ...     tiles.copy(right, b, 0, 0, threads=128)
    ...     ptx.cp.async_.wait_all()
    ...     tma.fence()
    ...     mbarrier.start((bar, 1))
    ...     memory = tcgen05.allocate(64)
    ...     sums = memory.sums(128, 64)
    ...     with when(ptx.tid.x == 0):
    ...         tcgen05.multiply(sums, left, right.T, accumulate=False)
    ...         tcgen05.commit(bar)
    ...     mbarrier.wait(bar, 0)
    ...     tcgen05.fence_after()
    ...     sums.load().store(c)
    ...     memory.free()
    >>> a, b = np.eye(128, 64, -2, np.float16), np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    >>> c = np.zeros((128, 64), np.float32)
    >>> product.configure(1, 128, shared=24576, backend="emulator")(a, b, c)
    >>> bool((c == a.astype(float) @ b.T.astype(float)).all())
    True
    """
    _check(sums, a, b)
    word, kind = _word(sums, a, b, negate_a, negate_b)
    steps = a.shape[1] * a.dtype.bytes // STEP
    name = f"tcgen05.mma.cta_group::{1 + sums.pair}.kind::{kind}"
    left, right = _operand(a, "a"), _operand(b, "b")
    place = sums.memory.at(sums.column)
    instruction = reg(u32, word).copy()
    first = predicate(accumulate)
    always = first if accumulate is True or steps == 1 else predicate(True)
    for step in range(steps):
        ptx[name](place, left(step), right(step), instruction, always if step else first)


def multiply_scaled(
    sums: Sums, a: Tile, b: Tile, scales: tuple[Scales, Scales], *, block: int = 32, scale_type: ScalarType = ue8m0,
    accumulate: Any = True,
) -> None:
    """:func:`multiply` of elements that share scales by blocks along k: ``(a * scales of a) @ (b * scales of b)``.

    Elements of a byte (mxfp8) with blocks of 32, or packed e2m1 (``e2m1x2``; columns of a count pairs) with blocks of
    32 (mxfp4) or 16; scales of ue8m0, of blocks of 16 also e4m3 without a sign (nvfp4). ``scales`` are those of a and b
    for all of k, from their first on; `Scales.copy` by the same thread comes before. Sums of 128 rows, of a pair 256.
    """
    _check_operands(sums, a, b)
    scaled_products(sums, a, b, scales, block, scale_type, accumulate, _operand)


def _check(sums: Any, a: Any, b: Any) -> None:
    what = "tcgen05.multiply"
    _check_operands(sums, a, b)
    kind, types = _KINDS.get(a.dtype), {a.dtype, b.dtype}
    known = kind is not None and kind == _KINDS.get(b.dtype) and types != {f16, bf16}
    results = (f32,) if bf16 in types else _RESULTS.get(kind or "", ())
    check_types(what, sums.dtype, a, b, results if known else ())
    check_shapes(what, sums.shape, a, b, pair=sums.pair)
    multiple("columns", a.shape[1], STEP // a.dtype.bytes, " of a")


def _check_operands(sums: Any, a: Any, b: Any) -> None:
    what = "tcgen05.multiply"
    if not isinstance(sums, Sums):
        raise located(
            PtxTypeError, f"`{what}`: sums are {described(sums)}", "`sums = tcgen05.allocate(128).sums(128, 128)`"
        )
    for name, given, kinds in (("a", a, (Tile, Operand)), ("b", b, (Tile,))):
        if not isinstance(given, kinds):
            raise located(PtxTypeError, f"`{what}`: {name} is {described(given)}", "a Tile in shared memory")


def instruction(
    rows: int, columns: int, a: ScalarType, b: ScalarType, dtype: ScalarType = f32, *, turned: tuple[bool, bool] =
    (False, False), negative: tuple[bool, bool] = (False, False), pair: bool = False, held: bool = False,
) -> int:
    """The instruction descriptor of a product, for instructions written out; an error says why there is none.

    ``turned`` says which of a and b is stored with k across its rows (M- and N-major), ``held`` that a lies in tensor
    memory; of a ``pair``, rows and columns are those of both blocks.

    >>> from ptxdsl import bf16
    >>> hex(instruction(128, 256, bf16, bf16))
    '0x8400490'
    """
    kind = _KINDS.get(a, "")
    variant = Variant(kind, 1 + pair, held=held)
    product = Product(rows, columns, STEP // a.bytes, str(dtype), (str(a), str(b)), negative, turned)
    try:
        word = encode(variant, product)
        decode(variant, word)
    except (InvalidDescriptor, KeyError, ValueError) as error:
        why = str(error) if isinstance(error, InvalidDescriptor) else "there is none of these types"
        raise located(
            PtxTypeError, f"tcgen05.mma of {a} and {b} into {rows} x {columns} of {dtype}: {why}"
        ) from None
    return word


def _word(sums: Sums, a: Any, b: Tile, negate_a: bool, negate_b: bool) -> tuple[int, str]:
    turned = (isinstance(a, Tile) and not along_k(a, "a"), not along_k(b, "b"))
    held = isinstance(a, Operand)
    word = instruction(
        *sums.shape, a.dtype, b.dtype, sums.dtype, turned=turned, negative=(negate_a, negate_b), pair=sums.pair,
        held=held,
    )
    kind = _KINDS[a.dtype]
    letter = layout_of(
        Variant(kind, 1 + sums.pair, held=held),
        Product(*sums.shape, STEP // a.dtype.bytes, str(sums.dtype), (str(a.dtype), str(b.dtype))),
    ).letter
    if held and letter != "D":
        raise located(PtxTypeError, f"`tcgen05.multiply` of {a!r} into {sums!r}", "sums of 128 rows of one block")
    return word, kind


def _operand(source: Any, side: str) -> Any:
    """What gives the operand of a step along k."""
    if isinstance(source, Operand):
        return lambda step: source.memory.at(source.column + 8 * step)
    first = descriptor(source, side)

    def operand(step: int) -> Any:
        offset = moves(source, side, 0, step)
        return first + offset if offset else first

    return operand


def descriptor(tile: Tile, side: str) -> Any:
    """The matrix descriptor of a tile as ``"a"`` or ``"b"`` of a product: a u64, for instructions written out."""
    leading, stride = distances(tile, side, _TURNED)
    return address(tile).to(u64) + tensor_descriptor(0, leading, stride, _SPANS[tile.swizzle])


def commit(bar: Any, *, pair: bool = False, multicast: Any = None) -> None:
    """Have the mbarrier count an arrival when all products of this thread so far are done.

    Then what they read may be written again, and their sums be read behind ``fence_after``. With ``multicast``, a mask
    of ranks, the mbarriers in the same place of these blocks of the cluster count; ``pair`` for products of two blocks.
    """
    mbarrier.checked(bar, "`bar = mbarrier.declare()`, or the `empty` of a stage")
    name = f"tcgen05.commit.cta_group::{1 + pair}.mbarrier::arrive::one.shared::cluster"
    if multicast is None:
        ptx[f"{name}.b64"](bar)
    else:
        ptx[f"{name}.multicast::cluster.b64"](bar, cluster.half(multicast))


