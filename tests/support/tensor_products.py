"""tcgen05.mma against numpy: shared and tensor memory are filled by formulas of their own, products made in float64.

A kernel loads images of both memories, issues the product once, and stores all of tensor memory, so that what must not
change is seen too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from matrix_harness import FILL_TILES, FLOATS, drawn

import ptxdsl

__all__ = ["COLUMNS", "Case", "Memory", "instruction_word", "matrix_word", "run_product"]

Rng = np.random.Generator
COLUMNS = 512
START = 1024
"""Where shared memory begins."""
_CODES = {
    "f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1, "ti16": 3,
    "e2m1x": 1,
}
_SPANS = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "ti16": 16, "e2m1x": 4}


@dataclass
class Case:
    """A product; ``m`` and ``n`` are those of both blocks of a pair. ``swizzles`` are those of A and B."""

    kind: str = "f16"
    types: tuple[str, str] = ("bf16", "bf16")
    m: int = 128
    n: int = 64
    result: str = "f32"
    group: int = 1
    sparse: bool = False
    weights: bool = False
    held: bool = False
    turned: tuple[bool, bool] = (False, False)
    negative: tuple[bool, bool] = (False, False)
    swizzles: tuple[int, int] = (2, 2)
    saturates: bool = False
    selector: int = 0
    masked: bool = False
    divided: int = 0
    shifted: bool = False
    enable: bool = True
    size: str = ""
    """The modifier that says the blocks of scales."""
    ids: tuple[int, int] = (0, 0)
    scale_type: str = "ue8m0"
    zero: int | None = None
    long: bool = False
    most_shift: int = 0
    exact: bool = False
    """Whether elements are small whole numbers, so that each order of sums gives the same."""
    half: int = 0
    """The lane where D begins, with 64 rows."""
    table: int = -1
    """Which half of B's lines are indices that a table decompresses; -1 for none."""
    issuer: int = 0
    """The rank of the block that issues it."""
    copied: bool = False
    """Whether tcgen05.cp takes the scales from shared memory, before the product; of at most 128 columns."""

    @property
    def scaled(self) -> bool:
        return self.kind.startswith("mx")

    @property
    def k(self) -> int:
        if self.long:
            return 96
        if self.table >= 0:
            return 64
        return 256 // {"f16": 16, "tf32": 32, "ti16": 16, "mxf4": 4, "mxf4nvf4": 4}.get(self.kind, 8) << self.sparse

    @property
    def rows(self) -> int:
        return self.m // self.group

    @property
    def blocks(self) -> int:
        if not self.scaled:
            return 0
        if self.kind == "mxf8f6f4":
            return 1 if self.table < 0 else 2
        count = 4 if self.size in ("scale_vec::4X", "block16") else 2
        return count * 3 // 2 if self.long else count

    @property
    def banks(self) -> int:
        if self.weights:
            return 128 // self.m
        return 2 if self.group == 2 and self.m == 128 and not self.sparse else 1

    @property
    def quartered(self) -> bool:
        """Whether 16 rows are 32 lanes from the next 16: layouts C and F."""
        if self.weights:
            return False
        return self.m == 64 if self.group == 1 else self.m == 128 and self.sparse

    def lane(self, row: int, bank: int = 0) -> int:
        """Of a row of a block."""
        if self.quartered:
            return 32 * (row // 16) + row % 16 + self.half
        return row + (0 if self.banks == 1 else self.rows * bank)

    @property
    def mnemonic(self) -> str:
        parts = ["tcgen05.mma", *["ws"] * self.weights, *["sp"] * self.sparse, f"cta_group::{self.group}"]
        parts += [f"kind::{self.kind}", *["block_scale"] * self.scaled, *["decompress::lut::b"] * (self.table >= 0)]
        parts += [self.size] * bool(self.size)
        return ".".join(parts + ["ashift"] * self.shifted)


def instruction_word(case: Case) -> int:
    word = case.sparse << 2 | _CODES[case.types[0]] << 7 | _CODES[case.types[1]] << 10 | case.n // 8 << 17
    word |= case.negative[0] << 13 | case.negative[1] << 14 | case.turned[0] << 15 | case.turned[1] << 16
    if case.scaled:
        word |= case.ids[1] << 4 | case.ids[0] << 29 | (case.scale_type == "ue8m0") << 23 | case.m // 128 << 27
        return word | (case.long or case.table >= 0) << 31
    word |= case.selector | case.saturates << 3 | {"f16": 0, "f32": 1, "s32": 2}[case.result] << 4
    return word | (case.table >= 0) << 29 | case.m // 16 << 24 | {0: 0, 8: 1, 16: 2, 32: 3}[case.most_shift] << 30


def matrix_word(address: int, leading: int, stride: int, swizzle: int) -> int:
    word = address >> 4 & 0x3FFF | (leading >> 4 & 0x3FFF) << 16 | (stride >> 4 & 0x3FFF) << 32
    return word | 1 << 46 | swizzle << 61


# Elements


def _drawn(rng: Rng, kind: str, shape: tuple[int, ...], exact: bool) -> Any:
    """Numbers that a type has, in float64."""
    if kind in ("s8", "u8"):
        return drawn(rng, kind, shape).astype(np.float64)
    if kind == "ti16":
        return rng.integers(-2047, 2048, shape).astype(np.float64)
    if exact or kind.startswith("e2m1"):
        return drawn(rng, kind, shape).astype(np.float64)
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)
    if kind == "tf32":
        return (values.astype(np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64)
    return values.astype(np.float32).clip(-7, 7).astype(FLOATS[kind]).astype(np.float64)


def _code(values: Any, kind: str, rng: Rng) -> Any:
    """The bits of each element; of tf32 the lowest 13 are anything."""
    if kind in ("s8", "u8"):
        return values.astype(np.int64).astype(np.uint8)
    if kind == "ti16":
        return (abs(values).astype(np.int64) | (values < 0).astype(np.int64) << 15).astype(np.uint16)
    dtype: Any = FLOATS[kind]
    found = values.astype(np.float32).astype(dtype).view(f"u{np.dtype(dtype).itemsize}")
    if kind == "tf32":
        found = found | rng.integers(0, 1 << 13, found.shape, np.uint32) * (values != 0)
    return found


def line_bytes(codes: Any, kind: str, cells: bool = False) -> bytes:
    """A line of elements as it lies in shared memory, or, with bytes for FP6 and FP4, in tensor memory."""
    if kind == "e2m1x":
        return bytes((codes[::2] | codes[1::2] << 4).astype(np.uint8))
    if kind not in ("e2m1", "e2m3", "e3m2"):
        return bytes(codes.tobytes())
    if cells:
        return bytes((codes << (2 if kind == "e2m1" else 0)).astype(np.uint8))
    bits, found = (4 if kind == "e2m1" else 6), b""
    for first in range(0, len(codes), 16):
        whole = sum(int(code) << bits * number for number, code in enumerate(codes[first : first + 16]))
        found += (whole | 0xAB << 120).to_bytes(16, "little")
    return found


# Memory


@dataclass
class Memory:
    """The images of one block's memories."""

    shared: Any
    cells: Any
    """By column and lane."""
    used: int = 0

    @staticmethod
    def random(rng: Rng, nbytes: int) -> Memory:
        cells = np.frombuffer(rng.bytes(512 * COLUMNS), np.uint32).reshape(COLUMNS, 128).copy()
        return Memory(np.frombuffer(rng.bytes(nbytes), np.uint8).copy(), cells)

    def put(self, addresses: Any, data: Any, swizzle: int) -> None:
        """Write rows of bytes, each within 16, at addresses of shared memory."""
        places = addresses[..., None] + np.arange(data.shape[-1])
        mask, low = {0: (0, 0), 1: (3, 5), 2: (7, 4), 4: (3, 4), 6: (1, 4)}[swizzle]
        self.shared[(places ^ (places >> 7 & mask) << low) - START] = data

    def tile(self, rng: Rng, codes: Any, kind: str, turned: bool, swizzle: int) -> int:
        """Lay out lines x k; the descriptor."""
        span = _SPANS[swizzle]
        start = -(-(START + self.used) // 1024) * 1024
        lines, depth = codes.shape
        first = bool(rng.integers(2))
        if not turned:
            width = len(line_bytes(codes[0], kind))
            inside = 0 if span == 16 else int(rng.integers(0, span // width)) * width
            eights, pieces = -(-lines // 8), width // 16
            group, piece = (128, 128 * eights) if span == 16 and first else (128 * pieces, 128)
            if span > 16:
                group, piece = 8 * span, 16
            if kind == "e2m1x" and width == 48 and span == 128:
                return self.long_tile(rng, codes, kind, start)
            data = np.array([np.frombuffer(line_bytes(line, kind), np.uint8) for line in codes])
            line, number = np.arange(lines)[:, None], np.arange(pieces)
            self.put(
                start + inside + line // 8 * group + line % 8 * span + number * piece,
                data.reshape(lines, pieces, 16), swizzle,
            )
            self.used = start - START + eights * 8 * max(span, width)
            return matrix_word(start + inside, piece if span == 16 else 16, group, swizzle)
        size = codes.dtype.itemsize
        per, side = span // size, 4 if kind == "tf32" else 8
        slabs, groups = -(-lines // per), -(-depth // side)
        slab, group = (side * span, side * span * slabs) if first else (side * span * groups, side * span)
        line, k = np.arange(lines)[:, None], np.arange(depth)
        at = start + line % per * size + line // per * slab + k % side * span + k // side * group
        self.put(at, np.ascontiguousarray(codes).view(np.uint8).reshape(lines, depth, size), swizzle)
        self.used = start - START + slabs * groups * side * span
        return matrix_word(start, *((group, slab) if span == 16 else (slab, group)), swizzle)


    def scales(self, codes: Any, first: int) -> int:
        """Lay out the scales of 128 lines for a copy to four quarters; the descriptor."""
        start = self.used
        self.used += 512
        for line, mine in enumerate(codes):
            for number, code in enumerate(mine):
                self.shared[start + line % 32 * 16 + line // 32 * 4 + first + number] = code
        return matrix_word(START + start, 16, 128, 0)

    def long_tile(self, rng: Rng, codes: Any, kind: str, start: int) -> int:
        """Lines of 48 bytes that begin in the last bytes of rows of 128, and go on in those of another tile."""
        lines = len(codes)
        other = start + 1024 * -(-lines // 8)
        inside = 16 * int(rng.integers(6, 8))
        data = np.array([np.frombuffer(line_bytes(line, kind), np.uint8) for line in codes]).reshape(lines, 3, 16)
        line, at = np.arange(lines)[:, None], inside + 16 * np.arange(3)
        self.put(np.where(at < 128, start + at, other + at - 128) + line // 8 * 1024 + line % 8 * 128, data, 2)
        self.used = other - START + 1024 * -(-lines // 8)
        return matrix_word(start + inside, other, 1024, 2) | 1 << 52


@dataclass
class _Operands:
    """What the kernel is given, and what it must give."""

    memories: list[Memory]
    numbers: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    off: Any = None


def _metadata(case: Case, rng: Rng) -> tuple[Any, Any]:
    """By row of A the columns that are kept, and the codes of the chunks."""
    size = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(case.kind, 4)
    step, chunks = (2 if size == 8 else 1), case.k // size
    kept, codes = np.zeros((case.m, case.k // 2), int), np.zeros((case.m, chunks), int)
    for row in range(case.m):
        for chunk in range(chunks):
            if size == 2:
                picked = [int(rng.integers(2))]
                codes[row, chunk] = (0x4, 0xE)[picked[0]]
            else:
                picked = sorted(rng.permutation(4)[:2].tolist())
                codes[row, chunk] = picked[0] | picked[1] << 2
            kept[row, chunk * size // 2 : (chunk + 1) * size // 2] = [
                chunk * size + index * step + part for index in picked for part in range(step)
            ]
    return kept, codes


def _scale_codes(case: Case, rng: Rng, lines: int) -> tuple[Any, Any]:
    codes = rng.integers(120, 135, (lines, case.blocks)) if case.scale_type == "ue8m0" else rng.integers(
        8, 112, (lines, case.blocks)
    )
    values = 2.0 ** (codes - 127.0)
    if case.scale_type == "ue4m3":
        values = codes.astype(np.uint8).view(FLOATS["e4m3"]).astype(np.float64)
    return codes, values


def _put_scales(memory: Memory, place: int, codes: Any, first: int, halves: bool) -> None:
    lines = len(codes) // (2 if halves else 1)
    words = 4 * -(-lines // 128)
    for line, mine in enumerate(codes):
        bank, at = divmod(line, lines)
        for number, code in enumerate(mine):
            byte = first + number
            column = place + at // 32 + byte // 4 * words
            for quarter in range(4):
                if halves and quarter // 2 != bank:
                    continue
                word = int(memory.cells[column, 32 * quarter + at % 32])
                shift = 8 * (byte % 4)
                memory.cells[column, 32 * quarter + at % 32] = word & ~(0xFF << shift) | int(code) << shift


def _put_metadata(case: Case, memory: Memory, place: int, codes: Any, bank: int) -> None:
    rows, chunks = codes.shape
    lane, chunk = np.array([case.lane(row, bank) for row in range(rows)])[:, None], np.arange(chunks)
    at, column, nibble = lane + 0 * chunk, place + chunk // 8 + 0 * lane, chunk % 8 + 0 * lane
    if case.kind in ("f16", "tf32", "ti16"):
        at = 32 * (lane // 32) + lane % 8 + 16 * (lane % 32 // 16) + 8 * (chunk // 4)
        column, nibble = place + case.selector + 0 * at, 4 * (lane % 16 // 8) + chunk % 4
    for number in range(8):
        mine = nibble == number
        words = memory.cells[column[mine], at[mine]] & np.uint32(~(15 << 4 * number) & 0xFFFFFFFF)
        memory.cells[column[mine], at[mine]] = words | (codes[mine] << 4 * number).astype(np.uint32)


def _indexed(case: Case, rng: Rng, memory: Memory, indices: Any, tables: Any) -> Any:
    """Lines of 48 bytes with indices in one half; their tables go to tensor memory, one for eight lines."""
    for group in range(len(indices) // 8):
        memory.cells[66:68, 32 + group] = np.ascontiguousarray(tables[group]).view(np.uint32)
    bits = (indices[:, :, None] >> np.arange(3) & 1).reshape(len(indices), -1).astype(np.uint8)
    found = rng.integers(0, 256, (len(indices), 48)).astype(np.uint8)
    found[:, 24 * case.table : 24 * case.table + 24] = np.packbits(bits, 1, "little")
    return found


def run_product(
    case: Case, rng: Rng, special: Any = None, odd_scale: tuple[int, int] | None = None,
    odd_cell: tuple[int, int] | None = None, checked: bool = True, **changed: Any,
) -> None:
    """Make a random product of a case and check all of tensor memory.

    ``special`` changes the elements of A and B, ``odd_scale`` is a row of A and the code of its scale, ``odd_cell`` the
    column and lane of a cell that is another than it should be; ``changed`` are operands (a, b, d, word) and options of
    the launch that are other than they should be; ``hole`` is the first of 32 columns of tensor memory that are not
    written, and then those before D's are not read either.
    """
    stored = case.k // 2 if case.sparse else case.k
    a, b = (
        _drawn(rng, kind, shape, case.exact)
        for kind, shape in zip(case.types, ((case.m, stored), (case.n + case.most_shift, case.k)))
    )
    if special is not None:
        special(a, b)
    codes = [_code(values, kind, rng) for values, kind in zip((a, b), case.types)]
    if case.table >= 0:
        tables, indices = codes[1][::8, :8], rng.integers(0, 8, (case.n, case.k))
        b = tables[np.arange(case.n)[:, None] // 8, indices].view(FLOATS["e4m3"]).astype(np.float64)
    given = _Operands([Memory.random(rng, 1 << 16) for _ in range(case.group)])
    old = _old(case, rng)
    kept, found = _metadata(case, rng) if case.sparse else (np.tile(np.arange(case.k), (case.m, 1)), None)
    half = case.half << 16
    given.places, seed = {"d": 128 | half}, int(rng.integers(1 << 30))
    for rank, memory in enumerate(given.memories):
        rows, lines = slice(rank * case.rows, (rank + 1) * case.rows), case.n // case.group
        own = codes[1][rank * lines : (rank + 1) * lines] if case.group == 2 else codes[1]
        if case.table >= 0:
            given.places["lut"] = 66 | 32 << 16
            own = _indexed(case, rng, memory, indices[rank * lines : (rank + 1) * lines], tables[rank * lines // 8 :])
        alike = np.random.default_rng(seed)  # the tiles of both blocks lie alike
        word = memory.tile(alike, own, "u8" if case.table >= 0 else case.types[1], case.turned[1], case.swizzles[1])
        given.numbers["b"] = word | (case.table == 1) << 53
        if case.held:
            given.places["a"] = 96 | half
            for bank in range(case.banks):
                for row, line in enumerate(codes[0][rows]):
                    data = np.frombuffer(line_bytes(line, case.types[0], True), np.uint32)
                    memory.cells[96 : 96 + len(data), case.lane(row, bank)] = data
        else:
            given.numbers["a"] = memory.tile(alike, codes[0][rows], case.types[0], case.turned[0], case.swizzles[0])
        _put_old(case, memory, old[rows])
    scales = _scales(case, rng, given, odd_scale)
    if found is not None:
        given.places["e"] = 16 | half
        for rank, memory in enumerate(given.memories):
            for bank in range(case.banks):
                _put_metadata(case, memory, 16, found[rank * case.rows : (rank + 1) * case.rows], bank)
    if case.masked:
        given.off = rng.integers(0, 2**32, 4 * case.group, np.uint64).astype(np.uint32)
    if odd_cell is not None:
        for memory in given.memories:
            memory.cells[odd_cell] ^= 1
    out = _launch(case, given, changed)
    if checked:
        _check(case, given, out, _expected(case, a, b, kept, old, scales))


def _old(case: Case, rng: Rng) -> Any:
    if case.result == "s32":
        return rng.integers(-(2**31), 2**31, (case.m, case.n)).astype(np.int32)
    values = rng.integers(-8, 9, (case.m, case.n)) if case.exact else rng.standard_normal((case.m, case.n)) * 4
    return values.astype(np.float16 if case.result == "f16" else np.float32)


def _cells(case: Case, rows: int) -> tuple[Any, Any]:
    """Column and lane of each element of D in a block."""
    row, column = np.meshgrid(np.arange(rows), np.arange(case.n), indexing="ij")
    run = case.n // case.banks
    lanes = np.array([[case.lane(r, bank) for bank in range(case.banks)] for r in range(rows)])
    return 128 + column % run, lanes[row, column // run]


def _put_old(case: Case, memory: Memory, old: Any) -> None:
    words = old.view(np.uint16 if case.result == "f16" else np.uint32).astype(np.uint32)
    memory.cells[_cells(case, case.rows)] = words


def _scales(case: Case, rng: Rng, given: _Operands, odd: tuple[int, int] | None) -> tuple[Any, Any] | None:
    if not case.scaled:
        return None
    (codes_a, scale_a), (codes_b, scale_b) = (_scale_codes(case, rng, lines) for lines in (case.m, case.n))
    if odd is not None:
        codes_a[odd[0]], scale_a[odd[0]] = odd[1], np.nan
    given.places |= {"sa": 32 | 2 << 30, "sb": 48 | 1 << 30}
    if case.copied:
        given.places |= {"sa": 32, "sb": 48}
        for memory in given.memories:
            given.numbers["zero"] = memory.scales(codes_a, case.ids[0])
            given.numbers["off"] = memory.scales(codes_b, case.ids[1])
        return scale_a, scale_b
    for rank, memory in enumerate(given.memories):
        _put_scales(memory, 32, codes_a[rank * case.rows : (rank + 1) * case.rows], case.ids[0], False)
        _put_scales(memory, 48, codes_b, case.ids[1], case.banks == 2)
    return scale_a, scale_b


def _expected(case: Case, a: Any, b: Any, kept: Any, old: Any, scales: Any) -> tuple[Any, Any]:
    """D, exactly, and the sum of the magnitudes."""
    whole, shift = np.zeros((case.m, case.k)), (case.zero or 0) >> 56 & 63
    used = b[shift : shift + case.n]
    if case.zero is not None:
        used = np.where(_zero_columns(case)[:, None], 0.0, used)
    np.put_along_axis(whole, kept, a, 1)
    total = np.zeros((case.m, case.n))
    size = np.zeros((case.m, case.n))
    run = case.k // (case.blocks or 1)
    with np.errstate(all="ignore"):
        for block in range(case.blocks or 1):
            part = slice(block * run, (block + 1) * run)
            one, other = whole[:, part], used[:, part]
            factor = 1.0 if scales is None else scales[0][:, block, None] * scales[1][None, :, block]
            if np.isfinite(other).all() and np.isfinite(one).all():
                product = one @ other.T
            else:
                product = np.array([
                    [sum(one[i, j - block * run] * other[n, j - block * run]
                         for j in kept[i] if block * run <= j < (block + 1) * run)
                     for n in range(case.n)] for i in range(case.m)
                ])
            total += product * factor
            size += (_finite(one) @ _finite(other).T) * abs(factor)
    if case.negative[0] != case.negative[1]:
        total = -total
    if case.enable:
        addend = old.astype(np.float64) * 2.0**-case.divided
        total, size = total + addend, size + abs(addend)
    return total, size


def _finite(values: Any) -> Any:
    return np.where(np.isfinite(values), abs(values), 0.0)


def _zero_columns(case: Case) -> Any:
    """The columns of B that the zero-column mask makes zeros, by walking its spans."""
    assert case.zero is not None
    mask, run, found = case.zero, case.n // case.banks, np.zeros(case.n, bool)
    if not mask >> 39 & 1:
        return found
    skip, use = (mask >> 40 & 255) + 1, (mask >> 48 & 255) + 1
    for bank in range(case.banks):
        zeros = bool(mask >> 32 + bank & 1)
        done = mask >> 8 * bank & 255
        for n in range(bank * run, (bank + 1) * run):
            if done >= (skip if zeros else use):
                zeros, done = not zeros, 0
            found[n] = zeros
            done += 1
    return found


def _check(case: Case, given: _Operands, out: Any, expected: tuple[Any, Any]) -> None:
    total, size = expected
    for rank, memory in enumerate(given.memories):
        cells, rows = _cells(case, case.rows), slice(rank * case.rows, (rank + 1) * case.rows)
        found = out[rank][cells].copy()
        off = np.zeros(128, bool)
        if given.off is not None:
            off = np.unpackbits(given.off[4 * rank : 4 * rank + 4].view(np.uint8), bitorder="little").astype(bool)
        kept = off[cells[1]]
        np.testing.assert_array_equal(found[kept], memory.cells[cells][kept])
        rest = memory.cells.copy()
        if case.shifted:
            first = 96
            for quarter in range(0, 128, 32):
                rest[first : first + 8, quarter : quarter + 31] = rest[first : first + 8, quarter + 1 : quarter + 32]
        if case.copied:
            rest[32:36], rest[48:52] = out[rank][32:36], out[rank][48:52]
        rest[cells] = out[rank][cells]
        np.testing.assert_array_equal(out[rank], rest)
        exact, bound = total[rows][~kept], size[rows][~kept]
        words = found[~kept]
        if case.result == "s32":
            whole = exact.astype(np.int64)
            whole = whole.clip(-(2**31), 2**31 - 1) if case.saturates else whole.astype(np.int32)
            np.testing.assert_array_equal(words.view(np.int32), whole.astype(np.int32))
            continue
        if case.result == "f16":
            assert (words >> 16 == 0).all()
            numbers = words.astype(np.uint16).view(np.float16).astype(np.float64)
        else:
            numbers = words.view(np.float32).astype(np.float64)
        special = ~np.isfinite(exact)
        np.testing.assert_array_equal(numbers[special], exact[special])
        allowed = (case.k + 8) * 2.0**-24 * bound * 1.01
        if case.result == "f16":
            allowed = allowed + 2.0**-11 * np.where(special, 0.0, abs(exact)) + 2.0**-24
        assert (abs(numbers[~special] - exact[~special]) <= allowed[~special]).all()


# The kernel

_KERNEL = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 images, .param .u64 cells, .param .u64 out, .param .u64 off, .param .u64 a, .param .u64 b,
    .param .u64 zero, .param .u32 pa, .param .u32 pd, .param .u32 pe, .param .u32 psa, .param .u32 psb,
    .param .u32 word, .param .u32 add)
{{
    .reg .b64 %image, %cells, %out, %at, %a, %b, %zero, %off;
    .reg .b32 %t, %n, %x, %rank, %tmem, %pa, %pd, %pe, %psa, %psb, %word, %add, %c, %w, %lane;
    .reg .b32 %r<8>, %o<8>;
    .reg .pred %p, %enable;
    .shared .align 1024 .b8 tiles[{nbytes}];
    .shared .align 8 .b32 home;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0;
    @%p bra MADE;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    mov.u32 %rank, %ctaid.x;
    ld.param.u64 %image, [images];
    mad.wide.u32 %image, %rank, {nbytes}, %image;
    ld.param.u64 %cells, [cells];
    mad.wide.u32 %cells, %rank, {cell_bytes}, %cells;
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %rank, {cell_bytes}, %out;
    setp.ge.u32 %p, %t, 32;
    @%p bra ALLOCATED;
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [home], 512;
ALLOCATED:
""" + FILL_TILES + """    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [home];
    shr.u32 %w, %t, 5;
    shl.b32 %w, %w, 21;
    add.u32 %lane, %tmem, %w;
    mov.u32 %c, 0;
FILL:
    and.b32 %x, %c, -32;
    setp.eq.u32 %p, %x, {hole};
    @%p bra FILLED;
    mad.wide.u32 %at, %c, 512, %cells;
    mad.wide.u32 %at, %t, 4, %at;
{loads}
    add.u32 %x, %lane, %c;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {{{list}}};
FILLED:
    add.u32 %c, %c, 8;
    setp.lt.u32 %p, %c, 512;
    @%p bra FILL;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    {sync}
    tcgen05.fence::after_thread_sync;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %zero, [zero];
    ld.param.u64 %off, [off];
    ld.param.u32 %pa, [pa];
    ld.param.u32 %pd, [pd];
    ld.param.u32 %pe, [pe];
    ld.param.u32 %psa, [psa];
    ld.param.u32 %psb, [psb];
    ld.param.u32 %word, [word];
    ld.param.u32 %add, [add];
    setp.ne.u32 %enable, %add, 0;
{offs}
    add.u32 %pa, %pa, %tmem;
    add.u32 %pd, %pd, %tmem;
    add.u32 %pe, %pe, %tmem;
    add.u32 %psa, %psa, %tmem;
    add.u32 %psb, %psb, %tmem;
    xor.b32 %x, %rank, {issuer};
    or.b32 %x, %t, %x;
    setp.ne.u32 %p, %x, 0;
    @%p bra ISSUED;
    {product}
    {commit}
ISSUED:
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT;
    tcgen05.fence::after_thread_sync;
    mov.u32 %c, {first};
DRAIN:
    add.u32 %x, %lane, %c;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{list}}}, [%x];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %at, %c, 512, %out;
    mad.wide.u32 %at, %t, 4, %at;
{stores}
    add.u32 %c, %c, 8;
    setp.lt.u32 %p, %c, 512;
    @%p bra DRAIN;
    {sync}
    setp.ge.u32 %p, %t, 32;
    @%p bra END;
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %tmem, 512;
END:
    ret;
}}
"""


@lru_cache(maxsize=512)
def _module(product: str, group: int, nbytes: int, off: int, target: str, version: str, issuer: int, hole: int) -> Any:
    text = _KERNEL.format(
        hole=hole, first=0 if hole == COLUMNS else 128, version=version, target=target, group=group, issuer=issuer,
        nbytes=nbytes, cell_bytes=512 * COLUMNS,
        product=product,
        commit=f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster"
        + (".multicast::cluster.b64 [bar], 3;" if group == 2 else ".b64 [bar];"),
        sync="barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else "bar.sync 0;",
        list=", ".join(f"%r{n}" for n in range(8)),
        loads="\n".join(f"    ld.global.b32 %r{n}, [%at+{512 * n}];" for n in range(8)),
        stores="\n".join(f"    st.global.b32 [%at+{512 * n}], %r{n};" for n in range(8)),
        offs="\n".join(f"    ld.global.b32 %o{n}, [%off+{4 * n}];" for n in range(off)),
    )
    return ptxdsl.load(text)["k"]


def product_text(case: Case) -> str:
    a = "[%pa]" if case.held else "%a"
    off = "{" + ", ".join(f"%o{n}" for n in range(4 * case.group)) + "}"
    further = ["[%pe]"] * (case.sparse or case.table >= 0)
    operands = ["[%pd]", a, "%b", *further, "%word", *["[%psa]", "[%psb]"] * case.scaled]
    operands += [off] * case.masked + ["%enable"]
    operands += [str(case.divided)] * bool(case.divided) + ["%zero"] * (case.zero is not None)
    text = f"{case.mnemonic} {', '.join(operands)};"
    copies = "".join(
        f"tcgen05.cp.cta_group::{case.group}.32x128b.warpx4 [%{place}], %{word};\n    "
        for place, word in (("psa", "zero"), ("psb", "off"))
    )
    return copies + text if case.copied else text


def _launch(case: Case, given: _Operands, changed: dict[str, Any]) -> Any:
    nbytes = -(-max(memory.used for memory in given.memories) // 1024) * 1024
    target, version = ("sm_103a", "8.8") if case.long else ("sm_100a", "8.8")
    if case.kind == "ti16" or case.table >= 0:
        target, version = "sm_107a", "9.4"
    off = len(given.off) if given.off is not None else 0
    hole = changed.get("hole", COLUMNS)
    kernel = _module(product_text(case), case.group, nbytes, off, target, version, case.issuer, hole)
    images = np.stack([memory.shared[:nbytes] for memory in given.memories])
    cells, out = np.stack([memory.cells for memory in given.memories]), np.zeros((case.group, COLUMNS, 128), np.uint32)
    numbers = {**given.numbers, **given.places, "word": instruction_word(case), **changed}
    options = {"cluster": 2} if case.group == 2 else {}
    options |= {name: value for name, value in changed.items() if name in ("cluster", "seed", "sanitize")}
    launch = kernel.configure(case.group, 128, backend="emulator", **options)
    launch(
        images, cells, out, given.off if given.off is not None else np.uint64(numbers.get("off", 0)),
        np.uint64(0 if case.held else numbers["a"]), np.uint64(numbers["b"]),
        np.uint64(case.zero or numbers.get("zero", 0)),
        np.uint32(numbers["a"] if case.held else 0),
        *(np.uint32(numbers.get(name, 0)) for name in ("d", "lut" if case.table >= 0 else "e", "sa", "sb")),
        np.uint32(numbers["word"]), np.uint32(case.enable),
    )
    return out
