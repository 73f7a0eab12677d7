"""Plans of tcgen05.mma: what an instruction descriptor means for one instruction, as compiled code reads it.

A plan is made when a descriptor comes for the first time, in Python, from the one place where descriptors and layouts
are stated (:mod:`.isa.instruction_descriptors`, :mod:`.isa.tensor_layouts`). It is kept for the process, and put at the
head of the list that begins in the micro-op's record.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from ... import locks
from ...errors import EmulationError
from ...isa.fragments import chunk_of
from ...isa.instruction_descriptors import InvalidDescriptor, Product, Variant, decode
from ...isa.tensor_layouts import Accumulator, accumulator, chunks_of, metadata_cell, scale_byte, scales_of
from ..codegen.library import library
from ..instructions.tensor_cores.matrix_tiles import GROUP, PADDED, ScaledSum, elements_of, held_in_rows
from ..instructions.micro_op import Key
from ..instructions.tensor_cores.tensor_products import TensorProduct
from ..instructions.tensor_cores.tensor_tiles import COLUMN_BYTES, CellPanel, TilePlaces
from ..machine.layout import Block
from ..machine.product_plan import ProductPlan
from .block_state import BlockState
from .faults import Scene

__all__ = ["Tile", "follow_descriptor", "plan_fields", "tiles_of"]

_NONE = 1 << 30
"""Lines that no tile has."""
_lock = locks.lock()
_plans: dict[tuple[Key, int], _Made] = {}
_nodes: list[Any] = []
"""Plans in lists of micro-ops, which stay for the process."""


class _Made(NamedTuple):
    """A plan, and what it points to."""

    fields: dict[int, int]
    arrays: tuple[Any, ...]


class Tile(NamedTuple):
    """An operand in shared memory: a bit for each swizzle that it may have, the bytes of a line where it is K-major."""

    element: str
    major: str
    swizzles: int
    line: int


def tiles_of(variant: Variant, product: Product) -> tuple[Tile, Tile]:
    """A and B; of an A in tensor memory it means nothing."""
    stored = product.k // 2 if variant.sparse else product.k
    a, b = _tile(product, 0, stored), _tile(product, 1, product.k)
    return a, b._replace(line=48) if variant.table else b


def _tile(product: Product, side: int, depth: int) -> Tile:
    element = product.types[side]
    if not product.turned[side]:
        return Tile(element, "k", 0b1010111, depth * 16 // elements_of(element))
    return Tile(element, "mn", 0b10 if element == "tf32" else 0b1010101, 0)


def follow_descriptor(state: BlockState) -> BlockState:
    """Make the plan of the descriptor that a micro-op has come to; raises the error of one that is wrong."""
    pc, word = state.get(Block.FAULT_PC, "Q"), state.get(Block.FAULT_ADDRESS, "Q") & 0xFFFFFFFF
    op = state.code.op_at(pc)
    assert isinstance(op, TensorProduct)
    with _lock:
        try:
            made = _plans.get((op, word)) or _plans.setdefault((op, word), _make(op, word))
        except InvalidDescriptor as error:
            raise _refused(state, word, str(error)) from None
        head = ctypes.c_uint64.from_address(pc + 8)
        memory = np.zeros(ProductPlan.nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        node = memory[start : start + ProductPlan.nbytes].view(np.uint64)
        for place, value in made.fields.items():
            node[place // 8] = value
        node[ProductPlan.NEXT // 8] = head.value
        _nodes.append((memory, made))
        head.value = node.ctypes.data
    return state


def plan_fields(op: TensorProduct, word: int) -> dict[int, int] | None:
    """The fields of the plan that products of a descriptor are made by; None where there was none yet."""
    made = _plans.get((op, word))
    return None if made is None else made.fields


def _refused(state: BlockState, word: int, why: str) -> EmulationError:
    warp, lane = (state.get(field, "i") for field in (Block.FAULT_WARP, Block.FAULT_LANE))
    scene = Scene(state, warp, lane, state.get(Block.FAULT_PC, "Q"))
    named = f"the instruction descriptor {word:#x} of `{scene.statement.form.mnemonic}`"
    return scene.raised(EmulationError, f"{named}: {why}")


def _make(op: TensorProduct, word: int) -> _Made:
    product = decode(op.variant, word)
    if op.shifted and product.m not in (128, 256):
        raise InvalidDescriptor(f"M is {product.m}; .ashift has 128 or 256")
    return _Maker(op, product, word).made()


class _Maker:
    def __init__(self, op: TensorProduct, product: Product, word: int) -> None:
        self.op, self.variant, self.product, self.word = op, op.variant, product, word
        self.layout: Accumulator = accumulator(op.variant, product)
        self.bits = {"f16": 16, "tf32": 32, "ti16": 16, "mxf4": 4, "mxf4nvf4": 4}.get(op.variant.kind, 8)
        self.arrays: list[Any] = []
        self.fields: dict[int, int] = {ProductPlan.WORD: word}

    def table(self, numbers: Any, dtype: Any = np.int32) -> int:
        array = np.ascontiguousarray(numbers, dtype)
        self.arrays.append(array)
        return int(array.ctypes.data)

    def made(self) -> _Made:
        self._sizes()
        self._functions()
        self._tables()
        return _Made(self.fields, tuple(self.arrays))

    def _sizes(self) -> None:
        v, p = self.variant, self.product
        self.rows = self.layout.rows
        self.stored = p.k // 2 if v.sparse else p.k
        self.blocks = scales_of(v, p) if v.blocks else 1
        self.lines = -(-(p.n + p.shift) // GROUP) * GROUP
        a, b = self.tiles = tiles_of(v, p)
        plain = p.result != "f16" and not (p.saturates or self.op.lanes or self.op.divided or v.sparse)
        self.fields.update({
            ProductPlan.HALVES: self.layout.halves, ProductPlan.D_COLUMNS: p.n // self.layout.banks,
            ProductPlan.A_COLUMNS: self._cells(), ProductPlan.E_COLUMNS: self._metadata_columns(),
            ProductPlan.A_SWIZZLES: a.swizzles, ProductPlan.B_SWIZZLES: b.swizzles, ProductPlan.A_LINE: a.line,
            ProductPlan.B_LINE: b.line, ProductPlan.LONG: p.k == 96, ProductPlan.SHIFT: p.shift,
            ProductPlan.LUT_COLUMNS: 2, ProductPlan.GROUP: v.group,
            ProductPlan.ROWS: self.rows, ProductPlan.COLUMNS: p.n, ProductPlan.LINES: self.lines,
            ProductPlan.BANKS: self.layout.banks, ProductPlan.DEPTH: self.stored // self.blocks,
            ProductPlan.BLOCKS: self.blocks, ProductPlan.DIRECT: plain, ProductPlan.HALF: p.result == "f16",
            ProductPlan.SATURATES: p.saturates, ProductPlan.NEGATIVE: p.negative[0] != p.negative[1],
        })

    def _cells(self) -> int:
        """The columns of A in tensor memory."""
        return 16 if self.variant.table else 12 if self.product.k == 96 else 8

    def _metadata_columns(self) -> int:
        return 0 if not self.variant.sparse else 2 if self.bits <= 8 else self.product.selector + 1

    def _functions(self) -> None:
        p, v = self.product, self.variant
        a, b = self.tiles
        left, right = (a.element, b.element), (a.major, b.major)
        if v.sparse:
            run = -(-p.n // self.layout.banks // GROUP)
            tiles = held_in_rows(left, right, run, sparse=True)
            panels: tuple[Key, Key] = tiles.left, tiles.right
        else:
            tiles = held_in_rows(left[::-1], right[::-1], self.rows // GROUP)
            panels = tiles.right, tiles.left
        if v.held:
            panels = CellPanel(a.element), panels[1]
        keys: dict[int, Key] = {
            ProductPlan.A_PANEL: panels[0], ProductPlan.B_PANEL: panels[1], ProductPlan.MULTIPLY: tiles.product,
            ProductPlan.B_PLACES: TilePlaces(b.major),
        }
        if not v.held:
            keys[ProductPlan.A_PLACES] = TilePlaces(a.major)
        if tiles.lines is not None:
            keys[ProductPlan.SELECTED] = tiles.lines
        if v.blocks:
            keys[ProductPlan.SCALED] = ScaledSum()
        found = library().need(keys.values())
        self.fields.update({place: found[key] for place, key in keys.items()})
        fields = ProductPlan.A_SIZES, ProductPlan.A_PIECES, ProductPlan.A_BYTES
        self._tile_sizes(fields, a, self.rows, self.rows, _NONE, self.stored)
        if v.held:
            self.fields[ProductPlan.A_PIECES] = self._cells()
        half = p.n // 2 if v.group == 2 else _NONE
        depth = 48 if v.table else p.k
        fields = ProductPlan.B_SIZES, ProductPlan.B_PIECES, ProductPlan.B_BYTES
        self._tile_sizes(fields, b, self.lines, p.n, half, depth)

    def _tile_sizes(
        self, fields: tuple[int, int, int], tile: Tile, lines: int, used: int, half: int, depth: int
    ) -> None:
        """What the places of a tile take: ``used`` are its lines, ``half`` those of a block."""
        size, (sizes, pieces, used_bytes) = elements_of(tile.element), fields
        if tile.major == "k":
            further, per, rows = depth // size, 1, 3
        else:
            further, per, rows = depth, size, 2 if tile.element == "tf32" else 3
        self.fields[pieces] = further
        self.fields[used_bytes] = PADDED.get(tile.element, 16)
        numbers = [lines // per, used // per - 1, half // per, further, rows, per.bit_length() - 1]
        self.fields[sizes] = self.table(numbers, np.int64)

    # Tables of places

    def _tables(self) -> None:
        p, layout, groups = self.product, self.layout, range(0, self.rows, GROUP)
        places = [layout.place(row, column, p.n) for column in range(p.n) for row in groups]
        self.fields[ProductPlan.D_TABLE] = self.table([COLUMN_BYTES * column + 4 * lane for lane, column in places])
        self.fields[ProductPlan.OWN_TABLE] = self.table(4 * GROUP * np.arange(self.rows * self.lines // GROUP))
        banks = range(layout.banks)
        if self.variant.held:
            lanes = [4 * layout.lane(row, bank) for bank in banks for row in groups]
            self.fields[ProductPlan.A_TABLE] = self.table(lanes)
        if self.variant.sparse:
            self._metadata()
        if self.variant.blocks:
            self._scales()
        if self.variant.table:
            codes = np.arange(256)
            numbers = np.where(codes > 127, -1.0, 1.0) * _scale_numbers("ue4m3")
            self.fields[ProductPlan.ELEMENTS] = self.table(numbers, np.float32)

    def _metadata(self) -> None:
        chunks, numbers = chunks_of(self.product, self.bits), []
        assert chunks == self.product.k // chunk_of(self.bits)
        for bank in range(self.layout.banks):
            for chunk in range(chunks):
                for row in range(self.rows):
                    cell = metadata_cell(self.bits, self.layout.lane(row, bank), chunk, self.product.selector)
                    numbers.append((COLUMN_BYTES * cell[1] + 4 * cell[0], cell[2]))
        self.fields[ProductPlan.CHUNKS] = chunks
        self.fields[ProductPlan.E_TABLE] = self.table(numbers)

    def _scales(self) -> None:
        p = self.product
        self._scale_places(ProductPlan.SA_TABLE, ProductPlan.SA_COLUMNS, self.rows, self.rows, p.scales[0], 1)
        banks = self.layout.banks
        self._scale_places(ProductPlan.SB_TABLE, ProductPlan.SB_COLUMNS, p.n, self.lines, p.scales[1], banks)
        self.fields[ProductPlan.NUMBERS] = self.table(_scale_numbers(p.scale_type), np.float64)

    def _scale_places(self, table: int, columns: int, lines: int, padded: int, first: int, banks: int) -> None:
        places = [
            scale_byte(min(line, lines - 1), lines, number, first, banks)
            for number in range(self.blocks) for line in range(padded)
        ]
        self.fields[columns] = 1 + max(column for _, column, _ in places)
        self.fields[table] = self.table([COLUMN_BYTES * at + 4 * lane + byte for lane, at, byte in places])


def _scale_numbers(kind: str) -> Any:
    """What each byte is as a scale: powers of two, or positive numbers of 4 and 3 bits; then the highest is ignored."""
    codes = np.arange(256)
    if kind == "ue8m0":
        return np.where(codes == 255, np.nan, 2.0 ** (codes - 127.0))
    exponent, part = codes >> 3 & 15, codes & 7
    numbers = np.where(exponent == 0, part * 2.0**-9, (8 + part) * 2.0 ** (exponent - 10.0))
    return np.where(codes & 127 == 127, np.nan, numbers)


