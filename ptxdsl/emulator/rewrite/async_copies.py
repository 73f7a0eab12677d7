"""Asynchronous copies, stores and reductions, and multimem instructions, expanded to ordinary ones.

PTX lets them complete at any later time; here they complete where they stand, which a GPU could choose too. So a wait
has nothing to do, and the transactions of an mbarrier are complete when the instruction is. There is one device, so
that a multimem address is an ordinary address, and no cluster whose launch could be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ...analysis.def_use import DefUse
from ...ir import Address, Call, Function, Immediate, Instruction, Not, Operand, Register, Sink, Vector, elements
from ...isa import Form, lookup
from ...types import TYPES
from .builder import CommitArrival, CountedStore, Expander, integer
from .expansions import MULTICAST, expansion

__all__ = ["AsyncCopies", "DeferredCopies"]

_MAX_CLUSTER = 16
"""Most blocks that a cluster can have on any GPU."""
_PRED = TYPES["pred"]


def _chooses(statement: Instruction | Call, size: int, among: set[Register]) -> bool:
    """Whether a statement gives a register 0, a number of at least this size, or one of these registers."""
    if not isinstance(statement, Instruction):
        return False
    if statement.form.opcode == "mov":
        sources = statement.operands[1:2]
    elif statement.form.opcode == "selp":
        sources = statement.operands[1:3]
    else:
        return False
    return all(
        operand in among if isinstance(operand, Register)
        else isinstance(operand, Immediate) and (operand.bits == 0 or operand.bits >= size)
        for operand in sources
    )


class AsyncCopies(Expander):
    """Expands them."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._chosen: dict[int, set[Register]] = {}

    def operand(self, name: str) -> Any:
        assert isinstance(self.statement, Instruction)
        return self.statement.operand(name)

    def word(self, name: str, kind: str = "u32") -> Register:
        return self.register(f"%async.{name}", kind)

    def copied(self, *tokens: str) -> str:
        """The modifiers among these that the instruction has, and its state space, each with its dot."""
        kept = (*tokens, "global", "shared", "shared::cta", "shared::cluster")
        return "".join(f".{token}" for token in self.form.tokens if token in kept)

    def keep(self) -> None:
        """Keep the instruction: it does nothing there, but the sanitizer follows it."""
        assert self.statement is not None
        self.body.append(self.statement)

    # cp.async

    def copy(self) -> None:
        size = self.operand("size").bits
        words = [self.word(f"word{number}", "b32") for number in range(size // 4)]
        data: Operand = Vector(tuple(words)) if len(words) > 1 else words[0]
        access = f"{'' if len(words) == 1 else f'.v{len(words)}'}.b32"
        used, ignore = self.operand("used"), self.operand("ignore")
        guard = self.guard
        if isinstance(used, Immediate) and used.bits >= size:
            used = None
        if used is not None or ignore is not None:
            for word in words:
                self.emit("mov.b32", word, 0)
            guard = self._unless_ignored(ignore) if used is None else self._read_first(used, size, words)
        self.emit(f"ld.global{access}", data, self.operand("a"), guard=guard)
        self.guarded(f"st.shared{access}", self.operand("d"), data)
        self.keep()

    def _unless_ignored(self, ignore: Any) -> Register:
        whole = self.word("whole", "pred")
        if isinstance(ignore, Not):
            self.emit("mov.pred", whole, ignore.predicate)
        else:
            self.emit("not.pred", whole, ignore)
        return self.both(whole, self.guard)

    def _read_first(self, used: Operand, size: int, words: list[Register]) -> Register:
        """Read the bytes that are used, where these are some; the predicate of reading all at once."""
        whole, some, byte = self.word("whole", "pred"), self.word("some", "pred"), self.word("byte")
        label = self.label("copied")
        if isinstance(used, Immediate):  # a comparison takes one number only
            count, used = used, self.word("used")
            self.emit("mov.u32", used, count)
        self.emit("setp.ge.u32", whole, used, size)
        if used in self._all_or_none(size):
            return self.both(whole, self.guard)
        self.emit("setp.ne.u32", some, used, 0)
        self.both(self.both(some, Not(whole)), self.guard)
        self.both(whole, self.guard)
        self.branch_unless(some, label)
        source = self.operand("a")
        for number in range(size - 1):
            word = words[number // 4]
            self.emit("mov.u32", byte, 0)
            self.emit("setp.gt.u32", some, used, number)
            self.emit("ld.global.u8", byte, source._replace(offset=source.offset + number), guard=some)
            self.emit("shl.b32", byte, byte, number % 4 * 8)
            self.emit("or.b32", word, word, byte)
        self.place(label)
        return whole

    def _all_or_none(self, size: int) -> set[Register]:
        """The registers that only ever get 0 or numbers of at least this size: what compilers choose between."""
        if size not in self._chosen:
            writes = [(r, statement) for statement in self.function.instructions() for r in DefUse.of(statement).writes]
            found = {register for register, _ in writes}
            while wrong := {r for r, statement in writes if r in found and not _chooses(statement, size, found)}:
                found -= wrong
            self._chosen[size] = found
        return self._chosen[size]

    def arrive(self) -> None:
        """The copies are complete. Without .noinc the arrival has been added to those that are expected before."""
        self.keep()
        if "noinc" in self.form.tokens:
            self.guarded(f"mbarrier.arrive{self.copied()}.b64", Sink(), self.operand("a"))

    # Stores and reductions

    def _complete(self, nbytes: int) -> None:
        mbar = self.operand("mbar")
        if mbar is not None:
            stored = self.body.pop()
            assert isinstance(stored, Instruction)
            self.body.append(self.located(CountedStore(stored.form, stored.operands, stored.guard)))
            self.guarded(f"mbarrier.complete_tx{self.copied()}.b64", mbar, nbytes)

    def store(self) -> None:
        form, value = self.form, self.operand("b")
        assert form.type is not None
        order = "".join(f".{token}" for token in form.tokens if token in ("mmio", "release", "gpu", "sys"))
        vector = f".v{len(value.items)}" if isinstance(value, Vector) else ""
        self.guarded(f"st{order}{self.copied()}{vector}.{form.type}", self.operand("a"), value)
        self._complete(form.type.bytes * len(elements(value)))

    def reduce(self) -> None:
        form = self.form
        assert form.type is not None
        order = self.copied("relaxed", "release", "cluster", "gpu", "sys")
        kind = "u64" if str(form.type) == "s64" else str(form.type)
        self.guarded(f"red{order}.{form.tokens[-2]}.{kind}", self.operand("a"), self.operand("b"))
        self._complete(form.type.bytes)

    def fill(self) -> None:
        """st.bulk: zeros, eight bytes at a time."""
        loop, end = self.label("fill"), self.label("filled")
        address, space = self.operand("a"), self.copied()
        place, stop, done = self.word("place", "u64"), self.word("stop", "u64"), self.word("done", "pred")
        self.branch_unless(self.guard, end)
        base = address.base
        wide = not isinstance(base, Register) or base.type.bits == 64
        self.emit("mov.u64" if wide else "cvt.u64.u32", place, base)
        self.emit("add.u64", place, place, address.offset)
        self.emit("mov.u64", stop, self.operand("size"))
        self.emit("add.u64", stop, stop, place)
        self.place(loop)
        self.emit("setp.ge.u64", done, place, stop)
        self.branch(end, done)
        self.emit(f"st{space}.b64", Address(place, 0), 0)
        self.emit("add.u64", place, place, 8)
        self.branch(loop)
        self.place(end)

    # Bulk and tensor copies to several blocks: one for each

    def copy_multicast(self) -> None:
        """With `.cta_group::2` the mbarrier is that of the pair's block with the given one's parity."""
        mbar, parity = self.operand("mbar"), None
        if "cta_group::2" in self.form.tokens:
            parity, base = self.word("parity"), self._in_register(mbar.base)
            self.emit(f"getctarank.shared::cluster.u{base.type.bits}", parity, base)
            self.emit("and.b32", parity, parity, 1)
        mask, mnemonic = self.operand("mask"), self._without_multicast()
        operands = [operand for operand in self.operands if operand is not mask]
        for rank, chosen in self._blocks(mask):
            owner: Operand | int = rank
            if parity is not None:
                owner = self.word("owner")
                self.emit("add.u32", owner, parity, rank & ~1)
            dest, word = self._in_block(self.operand("d"), rank, "dest"), self._in_block(mbar, owner, "mbar")
            moved = [dest if n == 0 else word if operand is mbar else operand for n, operand in enumerate(operands)]
            self._part(mnemonic, *moved, guard=chosen)

    def _in_register(self, base: Any) -> Register:
        if isinstance(base, Register):
            return base
        held = self.word("base", "u64")
        self.emit("mov.u64", held, base)
        return held

    # tcgen05.commit: an arrival follows, which comes when what it tracks is complete

    def commit(self) -> None:
        self.keep()
        self.guarded(f"mbarrier.arrive.release.cluster{self.copied()}.b64", Sink(), self.operand("mbar"))
        self._of_commit()

    def _of_commit(self) -> None:
        """Mark the last instruction."""
        last = self.body.pop()
        assert isinstance(last, Instruction)
        self.body.append(self.located(CommitArrival(last.form, last.operands, last.guard)))

    def commit_multicast(self) -> None:
        mnemonic, mbar = f"mbarrier.arrive.release.cluster{self.copied()}.b64", self.operand("mbar")
        for rank, chosen in self._blocks(self.operand("mask")):
            place = self._in_block(mbar, rank, "mbar", self.copied())
            self._part(self._without_multicast(), place, guard=chosen)
            self.emit(mnemonic, Sink(), place, guard=chosen)
            self._of_commit()

    # Multicast: the instruction in each block of a mask, one after the other

    def multicast(self) -> None:
        """An instruction on mbarriers."""
        mask, mnemonic = self.operand("mask"), self._without_multicast()
        others = [operand for operand in self.operands if operand is not mask]
        for rank, chosen in self._blocks(mask):
            place = self._in_block(self.operand("a"), rank, "mbar")
            self._part(mnemonic, *[place if isinstance(o, Address) else o for o in others], guard=chosen)

    def _part(self, mnemonic: str, *operands: Operand, guard: Register) -> None:
        """The same instruction in one of the blocks."""
        self.emit(mnemonic, *operands, guard=guard)
        part = self.body[-1]
        assert isinstance(part, Instruction) and isinstance(self.statement, Instruction)
        part.original = self.statement

    def _without_multicast(self) -> str:
        tokens = [token for token in self.form.tokens if not token.startswith(MULTICAST)]
        return ".".join((self.form.opcode, *tokens))

    def _blocks(self, mask: Operand) -> Iterator[tuple[int, Register]]:
        """The number of each block that there may be, and the predicate of its being in the mask."""
        bit, chosen = self.word("bit"), self.word("chosen", "pred")
        if isinstance(mask, Register) and mask.type.bits == 16:
            wide = self.word("mask")
            self.emit("cvt.u32.u16", wide, mask)
            mask = wide
        for rank in range(_MAX_CLUSTER):
            self.emit("and.b32", bit, mask, 1 << rank)
            self.emit("setp.ne.u32", chosen, bit, 0)
            self.both(chosen, self.guard)
            yield rank, chosen

    def _in_block(
        self, address: Address, rank: Operand | int, name: str, space: str = ".shared::cluster"
    ) -> Address:
        """The place of an address in another block."""
        kind = f"u{address.base.type.bits}" if isinstance(address.base, Register) else "u64"
        place = self.word(f"{name}{kind[1:]}", kind)
        self.emit(f"mapa{space}.{kind}", place, address.base, rank)
        return address._replace(base=place)

    # One device

    def access_multimem(self) -> None:
        """multimem.ld_reduce and multimem.st: a load or a store, in vectors of four at most."""
        form, loads = self.form, self.form.tokens[0] == "ld_reduce"
        value, address = self.operand("d" if loads else "b"), self.operand("a")
        order = ("weak", "relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys")
        assert form.type is not None
        items = elements(value)
        for first in range(0, len(items), 4):
            part = items[first : first + 4]
            access = f"{self.copied(*order)}{f'.v{len(part)}' if len(part) > 1 else ''}.b{form.type.bits}"
            at = address._replace(offset=address.offset + first * form.type.bytes)
            data = Vector(part) if len(part) > 1 else part[0]
            self.guarded(*((f"ld{access}", data, at) if loads else (f"st{access}", at, data)))

    def reduce_multimem(self) -> None:
        form, value = self.form, self.operand("b")
        kind = form.type
        assert kind is not None
        order = self.copied("relaxed", "release", "cta", "cluster", "gpu", "sys")
        if str(kind) == "s64" and "add" in form.tokens:
            kind = TYPES["u64"]
        small = ".noftz" if kind.is_float and (kind.bits < 32 or kind.lanes > 1) else ""
        vector = f".v{len(value.items)}" if isinstance(value, Vector) else ""
        self.guarded(f"red{order}.{form.effects.atomic}{small}{vector}.{kind}", self.operand("a"), value)

    # Cluster launch control: no launch can be cancelled

    def try_cancel(self) -> None:
        zero = integer(0, TYPES["b64"])
        self.guarded("st.shared.v2.b64" if self.copied() else "st.v2.b64", self.operand("d"), Vector((zero, zero)))
        self.guarded(f"mbarrier.complete_tx{self.copied()}.b64", self.operand("mbar"), 16)

    def query_cancel(self) -> None:
        for item in elements(self.operand("d")):
            if isinstance(item, Register):
                self.guarded("mov.pred" if item.type is _PRED else "mov.b32", item, 0)


class DeferredCopies(AsyncCopies):
    """Where the launch makes these later: what they copy is a register, and the others are expanded."""

    @classmethod
    def expansion(cls, form: Form) -> Callable[[Any], None] | None:
        name, method = expansion(form) or ("", "")
        if name != "AsyncCopies" or method == "arrive" or (method in ("store", "reduce") and _is_counted(form)):
            return None
        return getattr(cls, method)

    def copy(self) -> None:
        """Say how many bytes of the source are read."""
        size, used, ignore = (self.operand(name) for name in ("size", "used", "ignore"))
        if used is None and ignore is None:
            self.keep()
            return
        taken = self.word("used")
        if used is not None:
            self.emit("mov.u32", taken, used)
            self.emit("min.u32", taken, taken, size)
        else:
            whole, negated = self.word("whole", "pred"), isinstance(ignore, Not)
            self.emit("not.pred" if negated else "mov.pred", whole, ignore.predicate if negated else ignore)
            self.emit("selp.u32", taken, 0, size, whole)
        forms = lookup("cp.async.ca.shared.global")
        form = next(each for each in forms if each.operands[-1].name == "used")
        assert isinstance(self.statement, Instruction)
        self.body.append(replace(self.statement, form=form, operands=(*self.operands[:2], size, taken)))


def _is_counted(form: Form) -> bool:
    return form.effects.completes == "mbarrier"
