"""Loads, stores and moves of matrix fragments, expanded to ordinary ones.

Each lane reads or writes its own elements of the fragment (:mod:`ptxdsl.isa.fragments`), so the ordinary loads and
stores check bounds and alignment; that of whole rows is checked before. A warp that lacks lanes would leave out their
elements, so all 32 must come. The products stay one instruction (:mod:`..instructions.tensor_cores.matrix`).
"""

from __future__ import annotations

from ...ir import Address, Instruction, Register, SpecialRegister, Symbol, Vector, elements
from ...isa.fragments import ELEMENT_BITS, SHAPES, Layout, Place, layout, shape_of
from ...types import TYPES, ScalarType
from ..machine.layout import LANES
from ..machine.unsupported import unsupported
from .builder import Expander, Source, WholeWarp, instruction

__all__ = ["MatrixFragments"]

b16, b32, b64, u32 = (TYPES[name] for name in ("b16", "b32", "b64", "u32"))


class MatrixFragments(Expander):
    """Expands them."""

    def start(self) -> None:
        """Lanes converge; the place of each in a tile of 8 lines by 4 runs: g = lane // 4, t = lane % 4."""
        self.space = self.form.space if self.form.space != "generic" else ""
        barrier, original = instruction("bar.warp.sync", 0xFFFFFFFF), self.statement
        assert isinstance(original, Instruction)
        self.body.append(self.located(WholeWarp(barrier.form, barrier.operands, self.guard, original=original)))
        lane = self.put("mov.u32", self.temporary("lane"), SpecialRegister("%laneid"))
        self.g = self.put("shr.u32", self.temporary("g"), lane, 2)
        self.t = self.put("and.b32", self.temporary("t"), lane, 3)
        self.pair = self.put("shl.b32", self.temporary("pair"), self.t, 1)

    def temporary(self, name: str, kind: ScalarType = u32) -> Register:
        return self.register(f"%matrix.{name}", kind)

    def base(self, address: Address) -> tuple[Register, int]:
        """The register and offset of an address; that of a variable is moved to a register."""
        if isinstance(address.base, Register):
            return address.base, address.offset
        if not isinstance(address.base, Symbol):
            raise unsupported(self.statement, "an absolute address here")
        kind = b32 if self.space == "shared" else b64
        name = f"base{kind.bits}.{address.base.symbol}"
        return self.put(f"mov.u{kind.bits}", self.temporary(name, kind), address.base), address.offset

    def access(
        self, mnemonic: str, register: Register, base: Register, elements: Register, size: int, offset: int
    ) -> None:
        """``ld`` or ``st`` of a register at ``base + elements * size + offset``."""
        place = self.temporary(f"place{base.type.bits}.{base.name.strip('%')}", base.type)  # of one array
        self.guarded("mad.lo.u32" if base.type.bits == 32 else "mad.wide.u32", place, elements, size, base)
        space = f".{self.space}" if self.space else ""
        operands = (register, Address(place, offset))
        opcode, kind = mnemonic.split(".")
        self.guarded(f"{opcode}{space}.{kind}", *(operands if opcode == "ld" else operands[::-1]))

    # wmma.load and wmma.store

    def wmma(self) -> None:
        self.start()
        form, operands = self.form, list(self.operands)
        stores = form.semantics == "wmma_store"
        address, fragment = operands[:2] if stores else operands[1::-1]
        assert isinstance(address, Address)
        places, bits = self.layout()
        items = [i if isinstance(i, Register) else None for i in elements(fragment)]
        base = self.base(address)
        by_rows = "row" in form.tokens
        stride = operands[2] if len(operands) > 2 else places.columns if by_rows else places.rows
        self.put("shl.b32", self.t, self.t, places.run.bit_length() - 1)
        unique = 1 + max(place.register for place in places.places)
        for number in range(unique):
            mine = [place for place in places.places if place.register == number]
            register = items[number] or self.temporary(f"unwanted{max(bits, 32)}", b64 if bits == 64 else b32)
            self.element(register, mine, places, by_rows, stride, (*base, bits), stores)
        for number, item in enumerate(items[unique:]):
            source = items[number % unique]
            if item is not None and source is not None:
                self.guarded("mov.b32", item, source)  # fragments of f16 hold every element twice

    def layout(self) -> tuple[Layout, int]:
        """The layout, and the bits of an element in memory."""
        form = self.form
        shape = shape_of(form.tokens)
        which = next((token for token in form.tokens if token in ("a", "b", "c")), "c")
        kind = form.tokens[-1]
        bits = 32 if kind in ("s32", "f32") else ELEMENT_BITS.get(kind, 0)
        known = any(shape in shapes for shapes in SHAPES.values()) if which == "c" else shape in SHAPES.get(bits, ())
        if not known:
            raise unsupported(self.statement, f"`{form.mnemonic}`")
        return layout(shape, which, bits), bits

    def element(
        self, register: Register, places: list[Place], layout: Layout, by_rows: bool, stride: Source,
        memory: tuple[Register, int, int], stores: bool,
    ) -> None:
        """Load or store a register: one element, or a run of them, that lies in one piece or apart."""
        base, offset, bits = memory
        what, whole = "st" if stores else "ld", f"b{register.type.bits}"
        if bits < 8 or len(places) == 1 or by_rows != layout.transposed:
            index = self.index(places[0], layout, by_rows, stride)
            if bits < 8:
                self.put("shr.u32", index, index, 3 - bits.bit_length() + 1)
            self.access(f"{what}.{whole}", register, base, index, max(1, bits // 8), offset)
            return
        if bits == 8:  # only A and B have bytes, and they are not stored
            byte = self.temporary("byte", b32)
            for place in places:
                target = byte if place.part else register
                self.access("ld.u8", target, base, self.index(place, layout, by_rows, stride), 1, offset)
                if place.part:
                    self.guarded("bfi.b32", register, byte, register, 8 * place.part, 8)
            return
        parts = [self.temporary(f"half{place.part}", b16) for place in places]
        if stores:
            self.guarded("mov.b32", Vector(tuple(parts)), register)
        for place, part in zip(places, parts):
            self.access(f"{what}.b16", part, base, self.index(place, layout, by_rows, stride), 2, offset)
        if not stores:
            self.guarded("mov.b32", register, Vector(tuple(parts)))

    def index(self, place: Place, layout: Layout, by_rows: bool, stride: Source) -> Register:
        """The number of an element from the start of the matrix."""
        row, column = (self.t, self.g) if layout.transposed else (self.g, self.t)
        major, minor = (row, column) if by_rows else (column, row)
        steps = (place.row, place.column) if by_rows else (place.column, place.row)
        first = self.put("add.u32", self.temporary("major"), major, steps[0])
        second = self.put("add.u32", self.temporary("minor"), minor, steps[1])
        return self.put("mad.lo.u32", self.temporary("index"), first, stride, second)

    # ldmatrix, stmatrix and movmatrix

    def fragments(self) -> None:
        """Each register of a lane is made of what lies in rows whose addresses other lanes have."""
        self.start()
        form, stores = self.form, self.form.opcode == "stmatrix"
        fragment, address = self.operands[:: -1 if stores else 1]
        assert isinstance(address, Address)
        items = elements(fragment)
        base, offset = self.base(address)
        if base.type.bits != 32:
            self.space = "shared"
            window = self.put("cvta.to.shared.u64", self.temporary("window", b64), base)
            base = self.put("cvt.u32.u64", self.temporary("rows"), window)
        self.demand_alignment(base, offset, stores)
        results = [self.temporary(f"result{number}", b32) for number in range(len(items))]
        for number, (item, result) in enumerate(zip(items, results)):
            if stores:
                self.guarded("mov.b32", result, item)
            if "b16" in form.tokens:
                self.halves(result, base, offset, number, stores)
            elif stores:
                self.store_bytes(result, base, offset, number)
            elif "m16n16" in form.tokens:
                self.load_columns(result, base, offset, number)
            else:
                self.load_row(result, base, offset, number)
        for item, result in zip(items, results):
            if isinstance(item, Register) and not stores:
                self.guarded("mov.b32", item, result)
        if stores:
            self.guarded("bar.warp.sync", 0xFFFFFFFF)

    def demand_alignment(self, base: Register, offset: int, stores: bool) -> None:
        """A row lies at a multiple of its size: an access of a whole row, by lanes whose address is none."""
        tokens = self.form.tokens
        width, rows = 2 if tokens[-1] == "s4" else 4, (16 if "m16n16" in tokens else 8) * int(tokens[3][1:])
        guard: Source | None = self.guard
        if rows < LANES:
            guard = self.found("given", "lt", self.temporary("lane"), rows, guard)
        address = self.put("add.u32", self.temporary("address"), base, offset) if offset % (4 * width) else base
        low = self.put("and.b32", self.temporary("low"), address, 4 * width - 1)
        wrong = self.found("misaligned", "ne", low, 0, guard)
        registers = [self.temporary(f"word{number}", b32) for number in range(width)]
        words, place = Vector(tuple(registers)), Address(base, offset)
        if stores:
            for word in registers:
                self.put("mov.b32", word, 0)
        what, operands = ("st", (place, words)) if stores else ("ld", (words, place))
        self.emit(f"{what}.shared.v{width}.b32", *operands, guard=wrong)

    def found(self, name: str, comparison: str, a: Register, b: int, guard: Source | None) -> Register:
        """The predicate whether a comparison holds, of lanes that a guard names."""
        result = self.temporary(name, TYPES["pred"])
        if guard is None:
            self.emit(f"setp.{comparison}.u32", result, a, b)
        else:
            self.emit(f"setp.{comparison}.and.u32", result, a, b, guard)
        return result

    def row(self, base: Register, lane: Register, step: int) -> Register:
        """The address of a row, which another lane has."""
        source = self.put("add.u32", self.temporary("from"), lane, step)
        return self.put("shfl.sync.idx.b32", self.temporary("row"), base, source, 31, 0xFFFFFFFF)

    def halves(self, result: Register, base: Register, offset: int, number: int, stores: bool) -> None:
        """Matrices of 8x8 halves: a lane has two neighbours of a row, of its transpose with .trans."""
        if "trans" not in self.form.tokens:
            row = self.row(base, self.g, 8 * number)
            self.access("st.b32" if stores else "ld.b32", result, row, self.t, 4, offset)
            return
        halves = [self.temporary(f"half{half}", b16) for half in (0, 1)]
        if stores:
            self.guarded("mov.b32", Vector(tuple(halves)), result)
        for half, register in enumerate(halves):
            row = self.row(base, self.pair, 8 * number + half)
            self.access("st.b16" if stores else "ld.b16", register, row, self.g, 2, offset)
        if not stores:
            self.guarded("mov.b32", result, Vector(tuple(halves)))

    def store_bytes(self, result: Register, base: Register, offset: int, number: int) -> None:
        """A transposed matrix of 16x8 bytes: a lane has rows g and g + 8 of columns 2t and 2t + 1, which are rows."""
        byte = self.temporary("byte", b32)
        for part in range(4):
            row = self.row(base, self.pair, 8 * number + part % 2)
            self.put("shr.u32", byte, result, 8 * part)
            self.access("st.u8", byte, row, self.g, 1, offset + 8 * (part // 2))

    def load_row(self, result: Register, base: Register, offset: int, number: int) -> None:
        """A matrix of 8x16: a lane has four neighbours of a row, which lie packed in memory, one in each byte."""
        row = self.row(base, self.g, 8 * number)
        if self.form.tokens[-1] == "b6x16_p32":
            self.six_bits(result, row, offset)
            return
        self.access("ld.u16", result, row, self.t, 2, offset)
        spread = self.temporary("spread", b32)
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F)):
            self.put("shl.b32", spread, result, shift)
            self.put("or.b32", result, result, spread)
            self.put("and.b32", result, result, mask)
        if self.form.tokens[-1] == "s4":  # the sign of each fills its byte
            self.put("and.b32", spread, result, 0x08080808)
            self.put("mul.lo.u32", spread, spread, 0x1E)
            self.put("or.b32", result, result, spread)

    def six_bits(self, result: Register, row: Register, offset: int) -> None:
        """Four of 6 bits, from three bytes."""
        byte, place = self.temporary("byte", b32), self.temporary("index")
        self.put("mul.lo.u32", place, self.t, 3)
        for part in range(3):
            self.access("ld.u8", byte if part else result, row, place, 1, offset + part)
            if part:
                self.put("bfi.b32", result, byte, result, 8 * part, 8)
        packed = self.put("mov.b32", byte, result)
        self.put("and.b32", result, result, 0x3F)
        for part in range(1, 4):
            self.put("shr.u32", packed, packed, 6)
            self.put("bfi.b32", result, packed, result, 8 * part, 6)

    def load_columns(self, result: Register, base: Register, offset: int, number: int) -> None:
        """A transposed matrix of 16x16: a lane has rows 4t to 4t + 3 of columns g and, in the next register, g + 8."""
        bits = {"b8": 8, "b6x16_p32": 6, "b4x16_p64": 4}[self.form.tokens[-1]]
        offset += number % 2 * bits
        byte, first = self.temporary("byte", b32), self.put("shl.b32", self.temporary("first"), self.t, 2)
        for part in range(4):
            row = self.row(base, first, 16 * (number // 2) + part)
            value = byte if part else result
            if bits == 8:
                self.access("ld.u8", value, row, self.g, 1, offset)
            else:
                self.packed(value, row, offset, bits)
            if part:
                self.put("bfi.b32", result, byte, result, 8 * part, 8)

    def packed(self, value: Register, row: Register, offset: int, bits: int) -> None:
        """The element g of a row of packed ones; of 6 bits it may lie in two bytes."""
        place, shift = self.temporary("index"), self.temporary("shift")
        self.put("mul.lo.u32", shift, self.g, bits)
        self.put("shr.u32", place, shift, 3)
        self.access("ld.u8", value, row, place, 1, offset)
        if bits == 6:
            upper = self.temporary("upper", b32)
            self.put("add.u32", place, shift, 5)
            self.put("shr.u32", place, place, 3)
            self.access("ld.u8", upper, row, place, 1, offset)
            self.put("bfi.b32", value, upper, value, 8, 8)
        self.put("and.b32", shift, shift, 7)
        self.put("shr.u32", value, value, shift)
        self.put("and.b32", value, value, (1 << bits) - 1)

    def movmatrix(self) -> None:
        """The element of row r and column c comes from the lane that has that of row c and column r."""
        self.start()
        result, source = self.operands
        where = self.put("shl.b32", self.temporary("from"), self.pair, 2)
        half = self.put("shr.u32", self.temporary("index"), self.g, 1)
        where = self.put("add.u32", where, where, half)
        shift = self.put("and.b32", self.temporary("major"), self.g, 1)
        shift = self.put("shl.b32", shift, shift, 4)
        parts = []
        for name in ("minor", "row"):
            part = self.put("shfl.sync.idx.b32", self.temporary(name), source, where, 31, 0xFFFFFFFF)
            parts.append(self.put("shr.u32", part, part, shift))
            where = self.put("add.u32", where, where, 4)
        if isinstance(result, Register):
            self.put("prmt.b32", result, *parts, 0x5410)
