"""Asynchronous copies, stores and reductions of single threads, and those to many devices, as ordinary ones.

What PTX leaves to a later time happens at once here: the first moment that a GPU could choose too. So a wait for it has
nothing to do, and the transactions of an mbarrier are complete when the instruction is. There is one device, so that a
multicast address is an address like any other, and no work of another cluster that could be taken over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...ir import Address, Function, Immediate, Instruction, Label, LabelRef, Not, Operand, Register, Sink, Vector
from ...isa import Form, lookup
from ...types import TYPES

__all__ = ["asynchronous", "synchronous"]

_MULTICAST = "multicast::cluster::32b"
_BLOCKS = 16
"""Most blocks that a cluster can have on any GPU."""
_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_WORDS = tuple(Register(f"%async.word{n}", TYPES["b32"]) for n in range(4))
_BYTE, _PLACE, _END = Register("%async.byte", _U32), Register("%async.place", _U64), Register("%async.end", _U64)
_GO, _SOME, _GUARD = (Register(f"%async.{name}", _PRED) for name in ("go", "some", "guard"))


def synchronous(function: Function) -> Function:
    """The function with such instructions expanded."""
    numbers = itertools.count(1)
    body: list[Any] = []
    for statement in function.body or ():
        method = _method(statement.form) if isinstance(statement, Instruction) else None
        if method is None:
            body.append(statement)
        else:
            expansion = _Expansion(statement, numbers)
            method(expansion)
            body += expansion.out
    return replace(function, body=body)


def asynchronous(form: Form) -> bool:
    """Whether an instruction is one of them."""
    return _method(form) is not None


def _method(form: Form) -> Callable[[_Expansion], None] | None:
    if form.opcode == "st" and "bulk" in form.tokens:
        return _Expansion.fill
    if form.opcode == "mbarrier" and _MULTICAST in form.tokens:
        return _Expansion.multicast
    name = f"multimem.{form.tokens[0]}" if form.semantics == "multimem" else form.semantics
    return _METHODS.get(name)


def _number(value: int, kind: Any = _U32) -> Immediate:
    return Immediate(value & (1 << kind.bits) - 1, kind)


class _Expansion:
    """The instructions that one becomes."""

    def __init__(self, statement: Any, numbers: itertools.count[int]) -> None:
        self.statement, self.numbers, self.form = statement, numbers, statement.form
        self.named = dict(zip([spec.name for spec in self.form.operands], statement.operands))
        self.out: list[Any] = []

    def emit(self, mnemonic: str, *operands: Operand, guard: Any = None) -> None:
        """An instruction under a guard."""
        sizes = [len(operand.items) if isinstance(operand, Vector) else 0 for operand in operands]
        form = next(
            form for form in lookup(mnemonic)
            if [0 if spec.kind == "address" else spec.count for spec in form.operands] == sizes
        )
        self.out.append(Instruction(form, operands, guard, self.statement.loc, self.statement.line))

    def own(self, mnemonic: str, *operands: Operand) -> None:
        """An instruction under the guard of the one that is expanded."""
        self.emit(mnemonic, *operands, guard=self.statement.guard)

    def copied(self, *tokens: str) -> str:
        """The modifiers among these that the instruction has, and its state space, each with its dot."""
        kept = (*tokens, "global", "shared", "shared::cta", "shared::cluster")
        return "".join(f".{token}" for token in self.form.tokens if token in kept)

    def noted(self) -> None:
        """Keep the statement: nothing happens there, but the sanitizer wants to know of it."""
        self.out.append(self.statement)

    # cp.async

    def copy(self) -> None:
        size = self.named["size"].bits
        words = _WORDS[: size // 4]
        data: Operand = Vector(words) if len(words) > 1 else words[0]
        spelled = f"{'' if len(words) == 1 else f'.v{len(words)}'}.b32"
        used, ignore = self.named.get("used"), self.named.get("ignore")
        guard = self.statement.guard
        if isinstance(used, Immediate) and used.bits >= size:
            used = None
        if used is not None or ignore is not None:
            for word in words:
                self.emit("mov.b32", word, _number(0))
            guard = self._condition(ignore) if used is None else self._enough(used, size, words)
        self.emit(f"ld.global{spelled}", data, self.named["a"], guard=guard)
        self.own(f"st.shared{spelled}", self.named["d"], data)
        self.noted()

    def _guarded(self, condition: Register) -> Register:
        """The condition, and the guard."""
        guard = self.statement.guard
        if guard is not None:
            self.emit("not.pred" if isinstance(guard, Not) else "mov.pred", _GUARD, getattr(guard, "predicate", guard))
            self.emit("and.pred", condition, condition, _GUARD)
        return condition

    def _condition(self, ignore: Any) -> Register:
        if isinstance(ignore, Not):
            self.emit("mov.pred", _GO, ignore.predicate)
        else:
            self.emit("not.pred", _GO, ignore)
        return self._guarded(_GO)

    def _enough(self, used: Operand, size: int, words: tuple[Register, ...]) -> Register:
        """Whether all bytes are to be read; where only some are, they are read one by one."""
        label = f"$copied{next(self.numbers)}"
        if isinstance(used, Immediate):  # a comparison takes two numbers from nobody
            self.emit("mov.u32", _BYTE, used)
            used = Register("%async.used", _U32)
            self.emit("mov.u32", used, _BYTE)
        self.emit("setp.ge.u32", _GO, used, _number(size))
        self.emit("setp.ne.u32", _SOME, used, _number(0))
        self.emit("not.pred", _GUARD, _GO)
        self.emit("and.pred", _SOME, _SOME, _GUARD)
        self._guarded(_SOME)
        self._guarded(_GO)
        self.emit("bra", LabelRef(label), guard=Not(_SOME))
        source = self.named["a"]
        for number in range(size - 1):
            word = words[number // 4]
            self.emit("mov.u32", _BYTE, _number(0))
            self.emit("setp.gt.u32", _SOME, used, _number(number))
            self.emit("ld.global.u8", _BYTE, source._replace(offset=source.offset + number), guard=_SOME)
            self.emit("shl.b32", _BYTE, _BYTE, _number(number % 4 * 8))
            self.emit("or.b32", word, word, _BYTE)
        self.out.append(Label(label))
        return _GO

    def arrive(self) -> None:
        """The copies are complete. Without .noinc the arrival has been added to those that are expected before."""
        self.noted()
        if "noinc" in self.form.tokens:
            self.own(f"mbarrier.arrive{self.copied()}.b64", Sink(), self.named["a"])

    # Stores and reductions

    def _transaction(self, nbytes: int) -> None:
        mbar = self.named.get("mbar")
        if mbar is not None:
            self.own(f"mbarrier.complete_tx{self.copied()}.b64", mbar, _number(nbytes))

    def store(self) -> None:
        form, value = self.form, self.named["b"]
        assert form.type is not None
        order = "".join(f".{token}" for token in form.tokens if token in ("mmio", "release", "gpu", "sys"))
        vector = f".v{len(value.items)}" if isinstance(value, Vector) else ""
        self.own(f"st{order}{self.copied()}{vector}.{form.type}", self.named["a"], value)
        self._transaction(form.type.bytes * (len(value.items) if isinstance(value, Vector) else 1))

    def reduce(self) -> None:
        form = self.form
        assert form.type is not None
        order = self.copied("relaxed", "release", "cluster", "gpu", "sys")
        kind = "u64" if str(form.type) == "s64" else str(form.type)
        self.own(f"red{order}.{form.tokens[-2]}.{kind}", self.named["a"], self.named["b"])
        self._transaction(form.type.bytes)

    def fill(self) -> None:
        """st.bulk: zeros, eight bytes at a time."""
        loop, end = f"$fill{next(self.numbers)}", f"$filled{next(self.numbers)}"
        address, space = self.named["a"], self.copied()
        guard = self.statement.guard
        if guard is not None:
            self.emit("bra", LabelRef(end), guard=getattr(guard, "predicate", Not(guard)))
        base = address.base
        wide = not isinstance(base, Register) or base.type.bits == 64
        self.emit("mov.u64" if wide else "cvt.u64.u32", _PLACE, base)
        self.emit("add.u64", _PLACE, _PLACE, _number(address.offset, _U64))
        size = self.named["size"]
        self.emit("mov.u64", _END, size)
        self.emit("add.u64", _END, _END, _PLACE)
        self.out.append(Label(loop))
        self.emit("setp.ge.u64", _GO, _PLACE, _END)
        self.emit("bra", LabelRef(end), guard=_GO)
        self.emit(f"st{space}.b64", Address(_PLACE, 0), _number(0, _U64))
        self.emit("add.u64", _PLACE, _PLACE, _number(8, _U64))
        self.emit("bra", LabelRef(loop))
        self.out.append(Label(end))

    def multicast(self) -> None:
        """What happens to the mbarriers of the blocks in a mask, one after the other."""
        address, mask = self.named["a"], self.named["mask"]
        kind = f"u{address.base.type.bits}" if isinstance(address.base, Register) else "u64"
        place = Register(f"%async.block{kind[1:]}", TYPES[kind])
        spelled = ".".join((self.form.opcode, *(token for token in self.form.tokens if token != _MULTICAST)))
        others = tuple(operand for operand in self.statement.operands if operand is not mask)
        for rank in range(_BLOCKS):
            self.emit("and.b32", _BYTE, mask, _number(1 << rank))
            self.emit("setp.ne.u32", _GO, _BYTE, _number(0))
            self._guarded(_GO)
            self.emit(f"mapa.shared::cluster.{kind}", place, address.base, _number(rank))
            moved = tuple(Address(place, address.offset) if other is address else other for other in others)
            self.emit(spelled, *moved, guard=_GO)

    # One device

    def everywhere(self) -> None:
        """multimem.ld_reduce and multimem.st: what one device has, or gets."""
        form, loads = self.form, self.form.tokens[0] == "ld_reduce"
        value, address = self.named["d" if loads else "b"], self.named["a"]
        order = ("weak", "relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys")
        assert form.type is not None
        items = value.items if isinstance(value, Vector) else (value,)
        for first in range(0, len(items), 4):
            part = items[first : first + 4]
            spelled = f"{self.copied(*order)}{f'.v{len(part)}' if len(part) > 1 else ''}.b{form.type.bits}"
            place = address._replace(offset=address.offset + first * form.type.bytes)
            data = Vector(part) if len(part) > 1 else part[0]
            if loads:
                self.own(f"ld{spelled}", data, place)
            else:
                self.own(f"st{spelled}", place, data)

    def combine(self) -> None:
        """multimem.red."""
        form, value = self.form, self.named["b"]
        kind = form.type
        assert kind is not None
        order = self.copied("relaxed", "release", "cta", "cluster", "gpu", "sys")
        if str(kind) == "s64" and "add" in form.tokens:
            kind = _U64
        small = ".noftz" if kind.is_float and (kind.bits < 32 or kind.lanes > 1) else ""
        vector = f".v{len(value.items)}" if isinstance(value, Vector) else ""
        operation = next(token for token in form.tokens if token in ("add", "and", "or", "xor", "min", "max"))
        self.own(f"red{order}.{operation}{small}{vector}.{kind}", self.named["a"], value)

    # No work to take over

    def cancel(self) -> None:
        zero = _number(0, _U64)
        self.own("st.shared.v2.b64" if self.copied() else "st.v2.b64", self.named["d"], Vector((zero, zero)))
        self.own(f"mbarrier.complete_tx{self.copied()}.b64", self.named["mbar"], _number(16))

    def cancelled(self) -> None:
        dest = self.named["d"]
        for item in dest.items if isinstance(dest, Vector) else (dest,):
            if isinstance(item, Register) and item.type is _PRED:
                self.own("setp.ne.u32", item, _number(0), _number(0))
            elif isinstance(item, Register):
                self.own("mov.b32", item, _number(0))


_METHODS: dict[str, Callable[[_Expansion], None]] = {
    "cp_async": _Expansion.copy, "cp_async_arrive": _Expansion.arrive, "st_async": _Expansion.store,
    "red_async": _Expansion.reduce,
    "multimem.ld_reduce": _Expansion.everywhere, "multimem.st": _Expansion.everywhere,
    "multimem.red": _Expansion.combine, "try_cancel": _Expansion.cancel, "query_cancel": _Expansion.cancelled,
}
