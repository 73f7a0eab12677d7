"""Products of a sparse A, with scales, of FP6 and FP4: loops over the rows of D, with a row of 8 columns as a vector.

The fragments are laid out in memory first: A as its lanes have it, B row by row. A table, made from the layout, says
for each element of A where it lies and which bits of the metadata name the row of B that it meets; the others are not
multiplied, whatever they are. So the code is short whatever the shape: unrolled, some of these take seconds to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ....isa.fragments import chunk_of, held, layout, metadata_place, scale_lanes
from ...instructions.tensor_cores.matrix import MatrixProduct
from ...machine.layout import LANES
from ...machine.status import Fault
from ...semantics.formats import FORMATS, widen
from ...semantics.lanes import Bits
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from .matrix_operands import moved, widened, words

__all__ = ["LoopedProduct"]

WIDTH = 8
"""The columns of D: the n of all these shapes."""
TOGETHER = 4
"""The rows that are summed at a time, so that no sum waits for itself."""
Term = tuple[Any, Any]
Terms = Callable[[Any], list[Term]]
f32, f64 = ir.FloatType(), ir.DoubleType()
numbers, singles, reals = (ir.VectorType(kind, WIDTH) for kind in (i32, f32, f64))


class LoopedProduct:
    """Takes the operands; the results come from :meth:`results`, after the checks."""

    def __init__(
        self, h: Handler, op: MatrixProduct, a: list[Any], b: list[Any], c: list[Any], rest: list[Any]
    ) -> None:
        self.h, self.op = h, op
        self.rows, _, self.depth = map(int, op.shape[1:].replace("n", " ").replace("k", " ").split())
        self.sparse = op.selector >= 0
        self.stored = self.depth // (1 + self.sparse)
        self.registers = {"a": a, "b": b, "c": c}
        self.kind: ir.Type = i32 if op.addend == "s32" else f32
        self.metadata = rest[0] if self.sparse else None
        self.scales = rest[self.sparse :]
        self.fragment = layout(f"m{self.rows}n{WIDTH}k{self.stored}", "a", op.bits)

    # Checks

    def check(self) -> None:
        """A fault where a byte-id or thread-id names no scales."""
        if not self.scales:
            return
        h, bad = self.h, self.h.i32(0)
        known = sum(1 << number for number in self.op.byte_ids)
        for value, allowed in zip((*self.scales[1:3], *self.scales[4:6]), (known, 0b0011, known, 0b1111)):
            least = h.call("llvm.umin.v32i32", words, h.ir.zext(value, words), h.splat(h.i32(31)))
            good = h.ir.trunc(h.ir.lshr(h.splat(h.i32(allowed)), least), lanes_of(i1))
            bad = h.ir.or_(bad, h.ir.not_(h.mask(good)))
        h.branch_unless(h.zero(bad), lambda: h.fault(Fault.SCALE, bad))

    # Operands in memory

    def memory(self, kind: ir.Type, count: int) -> Any:
        with self.h.ir.goto_entry_block():
            place = self.h.alloca(ir.ArrayType(kind, count), 64)
            return self.h.ir.bitcast(place, pointer)

    def part(self, name: str, register: int, part: int) -> Any:
        kind = {"a": self.op.types[0], "b": self.op.types[1], "c": self.op.addend}[name]
        return widened(self.h, self.registers[name][register], part, kind, self.op.bits)

    def place_a(self) -> Any:
        """A as its lanes have it: 32 lanes for each part of each register."""
        run = self.fragment.run
        place = self.memory(i32, self.rows * self.stored)
        for register in range(len(self.registers["a"])):
            for part in range(run):
                self.h.store(self.part("a", register, part), place, 128 * (register * run + part), 64)
        return place

    def place_b(self) -> Any:
        """B, its rows one after the other."""
        place = self.memory(i32, self.depth * WIDTH)
        mine = layout(self.op.shape, "b", self.op.bits)
        parts: dict[tuple[int, int], Any] = {}
        for row in range(self.depth):
            owners = [mine.owner(row, column) for column in range(WIDTH)]
            key = owners[0][1:]
            value = parts.setdefault(key, parts.get(key) or self.part("b", *key))
            picked = self.h.ir.shuffle_vector(value, value, ir.Constant(numbers, [lane for lane, *_ in owners]))
            self.h.store(picked, place, 4 * WIDTH * row, 32)
        return place

    def place_c(self) -> Any:
        """C, row by row; D takes its place."""
        place = self.memory(i32, self.rows * WIDTH)
        for half, lists in self._halves(self.op.addend).items():
            left, right = (self.part("c", *key) for key in lists)
            order = [lane + LANES * odd for lane in range(LANES) for odd in (0, 1)]
            both = self.h.ir.shuffle_vector(left, right, ir.Constant(ir.VectorType(i32, 2 * LANES), order))
            self.h.store(both, place, 4 * WIDTH * 8 * half, 64)
        return place

    def _halves(self, kind: str) -> dict[int, list[tuple[int, int]]]:
        """Of the upper and lower 8 rows of D the (register, part) of the even and odd columns."""
        found: dict[int, list[tuple[int, int]]] = {}
        for key, places in held(layout(self.op.shape, "c", 16 if kind == "f16" else 32)).items():
            found.setdefault(places[0][0] // 8, []).append(key)
        return found

    def place_scales(self) -> tuple[Any, Any]:
        """The scales of each block: of A one a row, of B one a column, as f64."""
        h, places = self.h, []
        for name, (word, first, thread), lines in (
            ("a", self.scales[:3], self.rows), ("b", self.scales[3:], WIDTH),
        ):
            place = self.memory(lanes_of(f64), self.op.scales[0])
            mine = self._chosen(name, word, thread, [lane % lines for lane in range(LANES)])
            shift = h.ir.shl(h.ir.zext(first, words), h.splat(h.i32(3)))
            for block in range(self.op.scales[0]):
                code = h.ir.lshr(mine, h.ir.add(shift, h.splat(h.i32(8 * block))))
                self.h.store(self._scale(Bits(h.numbers(LANES), code, 32) & 0xFF), place, 8 * LANES * block, 64)
            places.append(place)
        return places[0], places[1]

    def _chosen(self, name: str, word: Any, thread: Any, lines: list[int]) -> Any:
        """In each lane the register with the scales of a row or column, from the lanes that the thread-id says."""
        h, thread = self.h, self.h.ir.zext(thread, words)
        lanes = [scale_lanes(name, line) for line in lines]
        choices = [moved(h, word, tuple(each[n] for each in lanes)) for n in range(len(lanes[0]))]
        bit = 1
        while len(choices) > 1:
            odd = h.ir.icmp_unsigned("!=", h.ir.and_(thread, h.splat(h.i32(bit))), ir.Constant(words, None))
            choices = [h.ir.select(odd, *pair[::-1]) for pair in zip(choices[::2], choices[1::2])]
            bit *= 2
        return choices[0]

    def _scale(self, code: Bits) -> Any:
        if self.op.scales[1] == "ue8m0":
            power = ((code.zext(64) + (1023 - 127)) << 52).reals()
            return code.eq(0xFF).pick(float("nan"), power).value
        return widen(code & 0x7F, FORMATS["e4m3"], 64).value

    # Products

    def table(self) -> Any:
        """For each element of A: its number in memory, the lane and the bit of its code, in a word."""
        entries = []
        for row in range(self.rows):
            for kept in range(self.stored):
                lane, register, part = self.fragment.owner(row, kept)
                entry = LANES * (register * self.fragment.run + part) + lane
                if self.sparse:
                    entry |= self._code(row, kept) << 16
                entries.append(entry)
        kind = ir.ArrayType(i32, len(entries))
        table = ir.GlobalVariable(self.h.ir.module, kind, self.h.ir.module.get_unique_name("places"))
        table.linkage, table.global_constant, table.initializer = "internal", True, ir.Constant(kind, entries)
        return self.h.ir.bitcast(table, pointer)

    def _code(self, row: int, kept: int) -> int:
        """The lane with the metadata of a kept element, and above it the bit where the index of its place begins."""
        size = chunk_of(self.op.bits)
        chunk, number = divmod(kept, size // 2)
        lane, bit = metadata_place(self.op.bits, self.depth, row, chunk, self.op.selector)
        return lane | (bit + (1 if size == 2 else 2 * (number // (size // 4)))) << 8

    def results(self) -> dict[tuple[int, int], Any]:
        """The elements of D in each lane, by register and part."""
        h = self.h
        a, b, d = self.place_a(), self.place_b(), self.place_c()
        words_of = None
        if self.sparse:
            words_of = self.memory(i32, LANES)
            h.store(self.metadata, words_of, 0, 64)
        scales = self.place_scales() if self.scales else None
        table = self.table()

        def rows(first: Any) -> None:
            mine = [h.ir.add(first, h.i64(number)) for number in range(TOGETHER)]
            entries = [h.add(table, h.ir.mul(row, h.i64(4 * self.stored))) for row in mine]

            def terms(kept: Any) -> list[Term]:
                found = [h.load(entry, h.ir.shl(kept, h.i64(2)), i32) for entry in entries]
                factors = [self._factor(a, entry) for entry in found]
                lines = [self._line(words_of, entry, kept) for entry in found] if self.sparse else [kept]
                vectors = [self._vector(b, line) for line in lines]
                return list(zip(factors, vectors if self.sparse else vectors * TOGETHER))

            places = [h.add(d, h.ir.shl(row, h.i64(5))) for row in mine]
            values = [h.load(place, 0, numbers if self.kind is i32 else singles, 32) for place in places]
            if scales is not None:
                values = self._scaled(mine, terms, values, scales)
            elif self.kind is i32:
                values = self._whole(terms, values)
            else:
                values = self._sums(0, self.stored, values, terms)
            for place, value in zip(places, values):
                h.store(value, place, 0, 32)

        h.count(h.i64(self.rows), TOGETHER, rows)
        return self._read(d)

    def _factor(self, a: Any, entry: Any) -> Any:
        """An element of A."""
        at = self.h.ir.zext(self.h.ir.and_(entry, self.h.i32(0xFFFF)), i64)
        return self.h.load(a, self.h.ir.shl(at, self.h.i64(2)), self.kind, 4)

    def _vector(self, b: Any, line: Any) -> Any:
        """A row of B."""
        return self.h.load(b, self.h.ir.shl(line, self.h.i64(5)), numbers if self.kind is i32 else singles, 32)

    def _line(self, words_of: Any, entry: Any, kept: Any) -> Any:
        """The row of B that an element of a sparse A selects, as its code says."""
        h, size = self.h, chunk_of(self.op.bits)
        lane = h.ir.zext(h.ir.and_(h.ir.lshr(entry, h.i32(16)), h.i32(31)), i64)
        word = h.load(words_of, h.ir.shl(lane, h.i64(2)), i32)
        index = h.ir.and_(h.ir.lshr(word, h.ir.lshr(entry, h.i32(24))), h.i32(min(3, size - 1)))
        step = size // 4 or 1
        chunk = h.ir.shl(h.ir.lshr(kept, h.i64((size // 2).bit_length() - 1)), h.i64(size.bit_length() - 1))
        within = h.ir.add(h.ir.mul(h.ir.zext(index, i64), h.i64(step)), h.ir.and_(kept, h.i64(step - 1)))
        return h.ir.add(chunk, within)

    def _folded(self, first: int, last: int, starts: list[Any], step: Callable[[Any, Term], Any], terms: Terms) -> Any:
        """``total = step(total, term)`` of each row for each kept element of a range."""
        h = self.h
        head, done = h.block_named("head"), h.block_named("done")
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        kept, totals = h.ir.phi(i64), [h.ir.phi(start.type) for start in starts]
        kept.add_incoming(h.i64(first), before)
        after = [step(total, term) for total, term in zip(totals, terms(kept))]
        further = h.ir.add(kept, h.i64(1))
        kept.add_incoming(further, h.ir.block)
        for total, start, value in zip(totals, starts, after):
            total.add_incoming(start, before)
            total.add_incoming(value, h.ir.block)
        h.ir.cbranch(h.ir.icmp_unsigned("<", further, h.i64(last)), head, done)
        h.ir.position_at_end(done)
        return after

    def _sums(self, first: int, last: int, starts: list[Any], terms: Terms) -> Any:
        """The products added to ``starts`` one after the other."""
        kind = starts[0].type

        def step(total: Any, term: Term) -> Any:
            factor, vector = term
            if kind == reals:
                factor, vector = self.h.ir.fpext(factor, f64), self.h.ir.fpext(vector, reals)
            name = f"llvm.fma.v{WIDTH}f{64 if kind == reals else 32}"
            return self.h.call(name, kind, self._spread(factor), vector, total)

        return self._folded(first, last, starts, step, terms)

    def _whole(self, terms: Terms, starts: list[Any]) -> list[Any]:
        """The products alone stay within 32 bits, so it is the sum with the addend that wraps or is clamped."""
        h, zeros = self.h, [ir.Constant(numbers, None) for _ in starts]

        def step(total: Any, term: Term) -> Any:
            return h.ir.add(total, h.ir.mul(self._spread(term[0]), term[1]))

        totals = self._folded(0, self.stored, zeros, step, terms)
        if self.op.variant == "satfinite":
            name = f"llvm.sadd.sat.v{WIDTH}i32"
            return [h.call(name, numbers, total, start) for total, start in zip(totals, starts)]
        return [h.ir.add(total, start) for total, start in zip(totals, starts)]

    def _scaled(self, rows: list[Any], terms: Terms, starts: list[Any], scales: tuple[Any, Any]) -> list[Any]:
        """Block by block in f64: its products are added, times the scales, to the sum, which is rounded to f32 once."""
        h, count = self.h, self.op.scales[0]
        totals, size = [h.ir.fpext(start, reals) for start in starts], self.stored // count
        exact = set(self.op.types) == {"e2m1"}  # sums of a block in f32 are: multiples of 1/4 below 2**12
        zeros = [ir.Constant(singles if exact else reals, None) for _ in starts]
        for block in range(count):
            sums = self._sums(block * size, (block + 1) * size, zeros, terms)
            right = h.load(scales[1], 8 * LANES * block, reals, 64)
            for number, (row, inner) in enumerate(zip(rows, sums)):
                left = h.load(h.add(scales[0], 8 * LANES * block), h.ir.shl(row, h.i64(3)), f64, 8)
                scale = h.ir.fmul(self._spread(left), right)
                inner = h.ir.fpext(inner, reals) if exact else inner
                totals[number] = h.call(f"llvm.fma.v{WIDTH}f64", reals, inner, scale, totals[number])
        return [h.ir.fptrunc(total, singles) for total in totals]

    def _spread(self, factor: Any) -> Any:
        kind = ir.VectorType(factor.type, WIDTH)
        first = self.h.ir.insert_element(ir.Constant(kind, None), factor, self.h.i32(0))
        return self.h.ir.shuffle_vector(first, first, ir.Constant(numbers, None))

    def _read(self, place: Any) -> dict[tuple[int, int], Any]:
        found = {}
        for half, keys in self._halves(self.op.result).items():
            both = self.h.load(place, 4 * WIDTH * 8 * half, ir.VectorType(self.kind, 2 * LANES), 64)
            for odd, key in enumerate(keys):
                order = ir.Constant(words, [2 * lane + odd for lane in range(LANES)])
                found[key] = self.h.ir.shuffle_vector(both, both, order)
        return found
