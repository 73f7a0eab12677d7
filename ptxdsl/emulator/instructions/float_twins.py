"""Following numbers in float64: the micro-ops that compute the twins of a kernel's floats beside them.

Each register has twins for every format that it may be in (:mod:`..analysis.float_layouts`), in slots of its own, each
with the bits that it belongs to. So numbers from elsewhere need nothing: they have other bits, and count as exact.
What only computes is followed before it, since it may overwrite what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...ir import Address, Call, Immediate, Instruction, Operand, Register, Sink, Symbol, Vector, elements
from ..analysis.float_layouts import FloatLayout, FloatRegisters, copied, layout_of, matrix_types
from ..analysis.form_plans import plan_of
from ..machine.float_twins import Row, twin_bytes
from ..semantics.float64 import parts_of
from .addresses import WithAddress, lane_by_lane
from .atomics import function_of
from .lowering import Lowering
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING, Field, raw
from .tensor_cores.matrix import MatrixProduct
from .warp import shuffle_sources

__all__ = [
    "FloatTwins", "TwinAtomic", "TwinCompute", "TwinForget", "TwinLoad", "TwinMatrix", "TwinMove", "TwinRenew",
    "TwinSelect", "TwinShuffle", "TwinStore",
]

Shape = tuple[Any, ...]
"""A layout as a plain tuple; () where a number is not followed."""


class TwinCompute(MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True):
    """Before an instruction that only computes: its results in float64, and how they compare with the real ones.

    ``kinds`` are the classes of its operands, item by item, those that are written empty; ``shapes`` their layouts, and
    ``kept`` whether they have twins.
    """

    mnemonic: str
    number: int
    kinds: tuple[tuple[OperandClass, ...], ...]
    shapes: tuple[tuple[Shape, ...], ...]
    kept: tuple[tuple[bool, ...], ...]
    guard: OperandClass


class TwinMove(MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True):
    """Before a mov, which may pack or unpack: as TwinCompute, of one operand that is written and one that is read."""

    kinds: tuple[OperandClass, ...]
    shapes: tuple[tuple[Shape, ...], tuple[Shape, ...]]
    kept: tuple[tuple[bool, ...], tuple[bool, ...]]
    guard: OperandClass


class TwinSelect(MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True):
    """Before an instruction whose result is one of its first two sources."""

    mnemonic: str
    number: int
    shape: Shape
    kinds: tuple[OperandClass, ...]
    kept: tuple[bool, bool]
    guard: OperandClass


class TwinForget(MicroOp, may_fault=False, repeatable=True, inlinable="for observers", instrumentation=True):
    """Behind an instruction that is not followed: the register is its own twin."""

    shape: Shape
    register: OperandClass
    guard: OperandClass


class TwinRenew(MicroOp, may_fault=False, repeatable=True, inlinable="for observers", instrumentation=True):
    """The register is its own twin where that belongs to other bits."""

    shape: Shape
    register: OperandClass
    guard: OperandClass


class TwinShuffle(MicroOp, may_fault=False, repeatable=True, inlinable="for observers", instrumentation=True):
    """Behind a shuffle: the twin of the lane that each has taken from."""

    mode: str
    constant: tuple[int, int] | None
    shape: Shape
    dest: OperandClass
    b: OperandClass
    c: OperandClass
    guard: OperandClass


class TwinLoad(
    WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable="for observers", instrumentation=True
):
    """Behind a load of elements of so many bits; ``kept`` are those whose twins are wanted."""

    address: OperandClass
    bits: int
    shape: Shape
    dests: tuple[OperandClass, ...]
    kept: tuple[bool, ...]
    guard: OperandClass


class TwinStore(
    WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable="for observers", instrumentation=True
):
    """Behind a store; ``wanted`` are the elements that are floats, ``kept`` those of them that have twins."""

    address: OperandClass
    bits: int
    shape: Shape
    sources: tuple[OperandClass, ...]
    wanted: tuple[bool, ...]
    kept: tuple[bool, ...]
    guard: OperandClass


class TwinAtomic(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable="for observers", instrumentation=True
):
    """Before an atomic: what it will do, in both numbers. ``operation`` and ``function`` are those of Atomic."""

    operation: str
    function: str
    shape: Shape
    address: OperandClass
    dests: tuple[bool, ...]
    sources: tuple[tuple[OperandClass, ...], ...]
    kept: tuple[tuple[bool, ...], ...]
    guard: OperandClass


class TwinMatrix(MicroOp, may_fault=False, repeatable=True, inlinable="for observers", instrumentation=True):
    """Behind a product of fragments, of which all twins belong to what was read.

    ``product`` are the shape, the types and the orders, as MatrixProduct has them; ``d`` to ``c`` the layouts of each
    register.
    """

    product: Shape
    d: tuple[Shape, ...]
    a: tuple[Shape, ...]
    b: tuple[Shape, ...]
    c: tuple[Shape, ...]
    dests: tuple[OperandClass, ...]
    guard: OperandClass


class FloatTwins:
    """Adds the micro-ops around those of each statement (a :class:`~..tools.observer.Probe`)."""

    def __init__(
        self, statements: list[Instruction | Call], rows: int, areas: int, lines: Callable[[Any], int]
    ) -> None:
        """``rows`` and ``areas`` are addresses of a Row for each statement and of Areas; ``lines`` numbers lines."""
        self.registers = FloatRegisters(statements)
        self.rows, self.areas, self.lines = rows, areas, lines
        self.lost: set[int] = set()
        """Statements that write floats that are not followed."""

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        if isinstance(statement, Call):
            return
        form = statement.form
        if form.semantics == "mov":
            self._move(low, statement)
        elif form.effects.selects:
            self._select(low, statement)
        elif parts_of(form):
            self._compute(low, statement)
        elif form.effects.atomic and form.effects.access is not None and not form.effects.completes:
            self._atomic(low, statement)
        elif matrix_types(form)[0]:
            for operand in statement.operands[1:4]:
                self._each(low, statement, elements(operand), renews=True)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        if isinstance(statement, Call):
            return
        form, access = statement.form, statement.form.effects.access
        if form.semantics == "shfl":
            self._shuffle(low, statement)
        elif access is not None and not access.reads and not form.effects.completes:
            self._store(low, statement)
        elif self._loads(statement):
            self._load(low, statement)
        elif matrix_types(form)[0] and isinstance(low.micro_ops[-1].op, MatrixProduct):
            self._product(low, statement, low.micro_ops[-1].op)
        elif not self._followed(statement):
            written = low.graph.def_use[low.place].writes
            if any(self.registers.layouts(register) for register in written) and form.space != "param":
                self.lost.add(low.place)
            self._each(low, statement, written)

    @staticmethod
    def _loads(statement: Instruction) -> bool:
        """Whether it is a load whose address its results leave as it is."""
        form, access = statement.form, statement.form.effects.access
        if access is None or access.writes or form.effects.completes or not form.operands[0].written:
            return False
        address = statement.operands[access.operand]
        assert isinstance(address, Address)
        if form.space == "param" and isinstance(address.base, Symbol):
            return False
        return address.base not in elements(statement.operands[0])

    @staticmethod
    def _followed(statement: Instruction) -> bool:
        """Whether its twins are computed before it."""
        form = statement.form
        if form.semantics == "mov":
            return isinstance(statement.operands[1], (Register, Vector, Immediate))
        atomic = bool(form.effects.atomic) and form.effects.access is not None and not form.effects.completes
        return form.effects.selects or bool(parts_of(form)) or atomic

    # Fields

    def _slot(self, low: Lowering, register: Operand, layout: FloatLayout) -> Field:
        assert isinstance(register, Register)
        name = f"{register.name} {layout.name} {layout.lanes}"
        return raw("i", low.slot(name, twin_bytes(layout.bits, layout.lanes)))

    def _row(self, low: Lowering, statement: Instruction) -> Field:
        return raw("qi", self.rows + Row.nbytes * low.place, self.lines(statement))

    def _has(self, operand: Operand, layout: FloatLayout | None) -> bool:
        return layout is not None and layout in self.registers.layouts(operand)

    def _each(
        self, low: Lowering, statement: Instruction, operands: Iterable[Operand], renews: bool = False
    ) -> None:
        """Have each register that holds floats be its own twin; if ``renews``, where that belongs to other bits."""
        guard = low.operands.guard(statement)
        for register in dict.fromkeys(operands):
            for layout in self.registers.layouts(register):
                real = low.read(statement, register)
                given = tuple(layout), real.kind, guard.kind
                op = TwinRenew(*given) if renews else TwinForget(*given)
                low.emit(op, guard, real, self._slot(low, register, layout))

    # What only computes

    def _compute(self, low: Lowering, statement: Instruction) -> None:
        guard, form = low.operands.guard(statement), statement.form
        fields, kinds, shapes, kept = [guard, self._row(low, statement)], [], [], []
        for spec, operand in zip(form.operands, statement.operands):
            layout, classes, have = layout_of(spec.type), [], []
            for item in elements(operand):
                real = NOTHING if spec.written else low.operand(statement, spec, item, 32)
                has = self._has(item, layout)
                fields += [real] if not has or layout is None else [real, self._slot(low, item, layout)]
                classes.append(real.kind)
                have.append(has)
            kinds.append(tuple(classes))
            shapes.append((tuple(layout or ()),) * len(classes))
            kept.append(tuple(have))
        op = TwinCompute(form.mnemonic, plan_of(form).number, tuple(kinds), tuple(shapes), tuple(kept), guard.kind)
        low.emit(op, *fields)

    def _move(self, low: Lowering, statement: Instruction) -> None:
        dest, source = statement.operands
        if not self._followed(statement):
            return
        guard, items = low.operands.guard(statement), elements(source)
        for layout in self._layouts_of_move(elements(dest)):
            into, of = layout.part(len(elements(dest))), layout.part(len(items))
            if into is None or of is None:
                continue
            fields, kinds = [guard], []
            for item in elements(dest):
                fields += [self._slot(low, item, into)] if self._has(item, into) else []
            for item in items:
                real = low.operand(statement, statement.form.operands[1], item, 32)
                fields += [real, self._slot(low, item, of)] if self._has(item, of) else [real]
                kinds.append(real.kind)
            shapes = (tuple(into),) * len(elements(dest)), (tuple(of),) * len(items)
            kept = tuple(self._has(item, into) for item in elements(dest)), tuple(self._has(item, of) for item in items)
            low.emit(TwinMove(tuple(kinds), shapes, kept, guard.kind), *fields)

    def _layouts_of_move(self, dests: tuple[Operand, ...]) -> list[FloatLayout]:
        """The layouts of all that is moved."""
        return sorted({layout.times(len(dests)) for item in dests for layout in self.registers.layouts(item)})

    def _select(self, low: Lowering, statement: Instruction) -> None:
        form, (dest, *sources) = statement.form, statement.operands
        guard, choice = low.operands.guard(statement), low.operand(statement, form.operands[3], sources[2], 32)
        for layout in self.registers.layouts(dest):
            fields, kinds, kept = [guard, self._slot(low, dest, layout)], [], []
            for item, spec in zip(sources[:2], form.operands[1:3]):
                real, has = low.operand(statement, spec, item, 32), self._has(item, layout)
                fields += [real, self._slot(low, item, layout)] if has else [real]
                kinds.append(real.kind)
                kept.append(has)
            made = (*kinds, choice.kind), (kept[0], kept[1])
            low.emit(TwinSelect(form.mnemonic, plan_of(form).number, tuple(layout), *made, guard.kind), *fields, choice)

    def _shuffle(self, low: Lowering, statement: Instruction) -> None:
        operands, guard = statement.operands, low.operands.guard(statement)
        dest, source = operands[0], operands[copied(statement.form)[0]]
        mode = statement.form.modifiers["mode"] or ""
        constant, (_, b, c, _) = shuffle_sources(low, statement)
        for layout in self.registers.layouts(dest):
            if self._has(source, layout):
                real = low.read(statement, dest)
                op = TwinShuffle(mode, constant, tuple(layout), real.kind, b.kind, c.kind, guard.kind)
                low.emit(op, guard, real, b, c, self._slot(low, dest, layout), self._slot(low, source, layout))

    # Memory

    def _plane(self, layout: FloatLayout) -> Field:
        return raw("qi", self.areas, self.registers.formats.index((layout.name, layout.slot)))

    def _common(self, items: tuple[Operand, ...], bits: int) -> list[FloatLayout]:
        """The layouts that some of the registers have which are as wide as the elements of an access."""
        found = {layout for item in items for layout in self.registers.layouts(item)}
        return sorted(one for one in found if one.bits == bits and (one.name, one.slot) in self.registers.formats)

    def _place(self, low: Lowering, statement: Instruction, count: int, write: bool) -> tuple[OperandClass, Field]:
        form = statement.form
        assert form.effects.access is not None and form.type is not None
        address = statement.operands[form.effects.access.operand]
        assert isinstance(address, Address)
        kind, _, place = low.address(statement, address, form.type.bytes * count, write)
        return kind, lane_by_lane(kind, place)

    def _load(self, low: Lowering, statement: Instruction) -> None:
        items, guard, kind = elements(statement.operands[0]), low.operands.guard(statement), statement.form.type
        assert kind is not None
        layouts = self._common(items, kind.bits)
        if not layouts:
            self._each(low, statement, items)
            return
        where, place = self._place(low, statement, len(items), False)
        for layout in layouts:
            kept = tuple(self._has(item, layout) for item in items)
            reals = [low.read(statement, item) if has else NOTHING for item, has in zip(items, kept)]
            slots = [self._slot(low, item, layout) for item, has in zip(items, kept) if has]
            op = TwinLoad(where, kind.bits, tuple(layout), tuple(r.kind for r in reals), kept, guard.kind)
            low.emit(op, place, guard, self._plane(layout), *reals, *slots)

    def _store(self, low: Lowering, statement: Instruction) -> None:
        form, guard, kind = statement.form, low.operands.guard(statement), statement.form.type
        value = next((o for s, o in zip(form.operands, statement.operands) if s.kind != "address"), None)
        if kind is None or value is None:
            return
        items, own = elements(value), layout_of(kind)
        layouts = sorted({*self._common(items, kind.bits), *([own] if own is not None else [])})
        for layout in layouts:
            where, place = self._place(low, statement, len(items), True)
            wanted = tuple(self._has(item, layout) or layout == own for item in items)
            kept = tuple(self._has(item, layout) for item in items)
            reals = [low.read(statement, i, kind.bits) if wants else NOTHING for i, wants in zip(items, wanted)]
            slots = [self._slot(low, item, layout) for item, has in zip(items, kept) if has]
            op = TwinStore(where, kind.bits, tuple(layout), tuple(r.kind for r in reals), wanted, kept, guard.kind)
            low.emit(op, place, guard, self._plane(layout), self._row(low, statement), *reals, *slots)

    def _atomic(self, low: Lowering, statement: Instruction) -> None:
        form, operands, guard = statement.form, statement.operands, low.operands.guard(statement)
        op = form.effects.atomic
        returns, kind = form.operands[0].written, form.type
        dest = elements(operands[0] if returns else Sink())
        address, *values = operands[1 if returns else 0 :]
        assert kind is not None and isinstance(address, Address)
        given = [elements(value) for value in values[: 2 if op == "cas" else 1]]
        function = function_of(low, statement, op, address) if kind.is_float else ""
        whole = layout_of(kind)
        layouts = [whole] if whole is not None else self._common((*dest, *(i for g in given for i in g)), kind.bits)
        for layout in layouts if function or op in ("exch", "cas") else ():
            where, place = self._place(low, statement, len(given[0]), True)
            reals = [[low.read(statement, item, kind.bits) for item in group] for group in given]
            kept = tuple(tuple(self._has(item, layout) for item in group) for group in given)
            into = [(item, self._has(item, layout)) for item in dest]
            fields = [self._slot(low, item, layout) for item, has in into if has]
            for group, numbers, have in zip(given, reals, kept):
                for item, real, has in zip(group, numbers, have):
                    fields += [real, self._slot(low, item, layout)] if has else [real]
            classes = tuple(tuple(real.kind for real in numbers) for numbers in reals)
            made = TwinAtomic(
                op, function, tuple(layout), where, tuple(has for _, has in into), classes, kept, guard.kind
            )
            low.emit(made, place, guard, self._plane(layout), self._row(low, statement), *fields)

    # Products

    def _product(self, low: Lowering, statement: Instruction, op: MatrixProduct) -> None:
        kinds, counts = matrix_types(statement.form), [len(op.d), len(op.a), len(op.b), len(op.c)]
        vectors = [elements(operand)[:count] for operand, count in zip(statement.operands, counts)]
        layouts = [[self._of_fragment(item, kind) for item in vector] for vector, kind in zip(vectors, kinds)]
        if op.rest or any(None in found for found in layouts[1:]):
            self.lost.add(low.place)
            self._each(low, statement, vectors[0])
            return
        guard, reals = low.operands.guard(statement), [low.read(statement, item) for item in vectors[0]]
        d, a, b, c = (tuple(tuple(layout or ()) for layout in found) for found in layouts)
        product = op.shape, op.types, op.bits, op.result, op.addend, op.orders
        made = TwinMatrix(product, d, a, b, c, tuple(real.kind for real in reals), guard.kind)
        slots = [
            self._slot(low, item, layout)
            for vector, found in zip(vectors, layouts) for item, layout in zip(vector, found) if layout is not None
        ]
        low.emit(made, guard, self._row(low, statement), *reals, *slots)

    def _of_fragment(self, item: Operand, kind: str) -> FloatLayout | None:
        """The layout of a fragment's register, of elements of a type."""
        name = "f32" if kind == "tf32" else kind
        return next((layout for layout in self.registers.layouts(item) if layout.name == name), None)
