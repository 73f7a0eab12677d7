"""Lowering of the instructions by which threads act on each other: atomics, barriers, warp operations, fences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...ir import Address, Immediate, Instruction, Operand, Register, Sink, SpecialRegister, Symbol, Vector
from ...isa import lookup
from ...types import TYPES
from ..machine.layout import LANES, LOCAL_WINDOW, NARROW_LOCAL, NARROW_SHARED, SHARED_WINDOW, SPACE_BITS, Block, Cluster
from ..machine.unsupported import unsupported
from .atomics import Atomic
from .barriers import Barrier, BarrierResult, Fence
from .clusters import ClusterBarrier
from .data import ReadClock, SpaceTest
from .memory import MemoryCheck
from .operand_classes import ABSOLUTE, OperandClass, block_field
from .operands import NOTHING, Field
from .warp import ActiveMask, Elect, Match, Reduce, Shuffle, Vote, WarpBarrier

if TYPE_CHECKING:
    from .lowering import Lowering

__all__ = ["COPIES", "METHODS", "whole"]


def _atomic(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    returns = form.opcode == "atom"
    dest = operands[0] if returns else Sink()
    address, *values = operands[1 if returns else 0 :]
    assert isinstance(address, Address) and form.type is not None
    kind, op = form.type, _operation(statement)
    values = values[: 2 if op == "cas" else 1]
    items = [value.items if isinstance(value, Vector) else (value,) for value in values]
    places, _, place = low.address(statement, address, kind.bytes * len(items[0]), True)
    if places.affine:
        places, place = whole(places, place)
    given = [[low.operands.source(item, kind.bits, False, statement) for item in value] for value in items]
    dests = [low.operands.destination(item) for item in (dest.items if isinstance(dest, Vector) else (dest,))]
    dests = [] if all(part.kind == "_" for part in dests) else dests
    guard = low.operands.guard(statement)
    kinds = tuple(tuple(part.kind for part in value) for value in given)
    low.emit(
        Atomic(
            op, _function(low, statement, op, address), kind.bits, form.space != "shared", places,
            tuple(part.kind for part in dests), kinds, guard.kind, low.parted,
        ),
        place, guard, *dests, *(part for value in given for part in value),
    )


def whole(kind: OperandClass, place: Field) -> tuple[OperandClass, Field]:
    """An affine address without its segments: atomics go lane by lane anyway."""
    return kind, Field(kind, "iiiqiiq", place.values[:7])


def _operation(statement: Instruction) -> str:
    names = ("add", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max")
    return next(token for token in statement.form.tokens if token in names)


def _function(low: Lowering, statement: Instruction, op: str, address: Address) -> str:
    """The instruction that computes the new value, where it is more than one operation of the host."""
    kind = statement.form.type
    assert kind is not None
    if op in ("min", "max"):
        return f"{op}.{kind}"
    if op == "add" and kind.kind == "f":
        space = statement.form.space
        elsewhere = space == "generic" and not low.spaces.is_shared(low.origin(address.base))
        if str(kind) == "f32" and (space == "global" or elsewhere):
            return "add.ftz.f32"  # the memory partitions of all GPUs flush subnormals, shared memory does not
        return f"add.rn.{kind}" if kind.bits != 64 else "add.f64"
    return ""


def _barrier(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    what = form.semantics.removeprefix("bar_")
    operands = list(statement.operands)
    dest: Operand | None = None
    predicate = NOTHING
    if what == "red":
        what = next(token for token in form.tokens if token in ("popc", "and", "or"))
        dest, last = operands[0], operands[-1]
        operands = operands[1:-1]
        predicate = low.predicate(last)
    number, *rest = [low.operands.source(operand, 32, False, statement) for operand in operands]
    count = rest[0] if rest else NOTHING
    guard = low.operands.guard(statement)
    op = Barrier(what, guard.kind, low.parted, number.kind, count.kind, predicate.kind)
    low.emit(op, guard, low.rank(), number, count, predicate)
    if dest is not None:
        result = low.operands.destination(dest)
        low.emit(BarrierResult(result.kind, guard.kind, low.parted), guard, result)


def _barrier_row(low: Lowering, statement: Instruction) -> None:
    if statement.form.semantics == "bar_warp_sync":
        members = low.operands.source(statement.operands[0], 32, False, statement)
        guard = low.operands.guard(statement)
        low.emit(WarpBarrier(guard.kind, low.parted, members.kind), guard, low.rank(), members)
    elif statement.form.semantics in ("bar_sync", "bar_arrive", "bar_red"):
        _barrier(low, statement)
    elif statement.form.semantics in ("barrier_cluster_arrive", "barrier_cluster_wait"):
        what = statement.form.semantics.removeprefix("barrier_cluster_")
        guard = low.operands.guard(statement)
        op = ClusterBarrier(what, "aligned" in statement.form.tokens, guard.kind, low.parted)
        low.emit(op, guard, low.rank())
    else:
        raise unsupported(statement, f"`{statement.form.mnemonic}`")


def _fence(low: Lowering, statement: Instruction) -> None:
    tokens = statement.form.tokens
    low.emit(Fence("block" if "cta" in tokens else "acq_rel" if "acq_rel" in tokens else "seq_cst"))


def _shuffle(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, list(statement.operands)
    joined = form.operands[1].joined
    dest, flag = low.operands.destination(operands[0]), NOTHING
    if joined:
        flag = low.operands.destination(operands[1])
    a, b, c, *members = operands[2 if joined else 1 :]
    mode = form.modifiers["mode"]
    assert mode is not None
    constant = (b.bits, c.bits) if isinstance(b, Immediate) and isinstance(c, Immediate) else None
    parts = [low.operands.source(a, 32, False, statement)]
    numbers = [NOTHING, NOTHING]
    if constant is None:
        numbers = [low.operands.source(operand, 32, False, statement) for operand in (b, c)]
    group = low.operands.source(members[0], 32, False, statement) if members else NOTHING
    guard = low.operands.guard(statement)
    low.emit(
        Shuffle(
            mode, dest.kind, flag.kind, parts[0].kind, numbers[0].kind, numbers[1].kind, group.kind, constant,
            guard.kind, low.parted,
        ),
        guard, low.rank(), dest, flag, *parts, *numbers, group,
    )


def _vote(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    mode = next(token for token in form.tokens if token in ("ballot", "all", "any", "uni"))
    dest = low.operands.destination(operands[0])
    flag = low.predicate(operands[1])
    group = low.operands.source(operands[2], 32, False, statement) if len(operands) > 2 else NOTHING
    guard = low.operands.guard(statement)
    op = Vote(mode, dest.kind, flag.kind, group.kind, guard.kind, low.parted)
    low.emit(op, guard, low.rank(), dest, flag, group)


def _activemask(low: Lowering, statement: Instruction) -> None:
    dest, guard = low.operands.destination(statement.operands[0]), low.operands.guard(statement)
    low.emit(ActiveMask(dest.kind, guard.kind, low.parted), guard, low.rank(), dest)


def _elect(low: Lowering, statement: Instruction) -> None:
    dest, flag = (low.operands.destination(operand) for operand in statement.operands[:2])
    group = low.operands.source(statement.operands[2], 32, False, statement)
    guard = low.operands.guard(statement)
    op = Elect(dest.kind, flag.kind, group.kind, guard.kind, low.parted)
    low.emit(op, guard, low.rank(), dest, flag, group)


def _match(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    assert form.type is not None
    joined = form.operands[1].joined
    dest = low.operands.destination(operands[0])
    flag = low.operands.destination(operands[1]) if joined else NOTHING
    a, members = operands[-2:]
    value = low.operands.source(a, form.type.bits, False, statement)
    group = low.operands.source(members, 32, False, statement)
    guard = low.operands.guard(statement)
    low.emit(
        Match(form.tokens[0], dest.kind, flag.kind, value.kind, group.kind, guard.kind, low.parted),
        guard, low.rank(), dest, flag, value, group,
    )


def _redux(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    assert form.type is not None
    op = next(token for token in form.tokens if token in ("add", "min", "max", "and", "or", "xor"))
    if form.type.is_float:
        op = f"{op}.NaN.f32" if "NaN" in form.tokens else f"{op}.f32"
    dest = low.operands.destination(operands[0])
    value = low.operands.source(operands[1], 32, False, statement)
    group = low.operands.source(operands[2], 32, False, statement)
    guard = low.operands.guard(statement)
    signed = form.type.is_signed or "abs" in form.tokens
    low.emit(
        Reduce(op, signed, dest.kind, value.kind, group.kind, guard.kind, low.parted),
        guard, low.rank(), dest, value, group,
    )


LINE = 128
"""Bytes that discard and applypriority are about."""
_CLOCKS = ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi")


def _mov(low: Lowering, statement: Instruction) -> None:
    """Moves from where only the engine knows: clocks, all components of a special register, parameters' addresses."""
    dest, a = statement.operands
    if isinstance(a, SpecialRegister) and a.special in _CLOCKS:
        result, guard = low.operands.destination(dest), low.operands.guard(statement)
        low.emit(ReadClock(a.special, result.kind, guard.kind, low.parted), guard, result)
    elif isinstance(a, SpecialRegister) and isinstance(dest, Vector):
        form = lookup(f"mov.{statement.form.type}")[0]
        for item, axis in zip(dest.items, "xyzw"):
            part: Operand = SpecialRegister(f"{a.special}.{axis}") if axis != "w" else Immediate(0, TYPES["u32"])
            if isinstance(item, Register):
                low.data(replace(statement, form=form, operands=(item, part)))
    elif isinstance(a, Symbol) and _apart(low, a):
        low.window_address(statement, dest, a)
    elif isinstance(a, Symbol) and a.symbol in low.spaces.offsets:
        low.parameter_address(statement, low.spaces.offsets[a.symbol] + a.offset)
    else:
        low.data(statement)


def _apart(low: Lowering, a: Operand) -> bool:
    """Whether an operand is the address of a variable in shared memory, which differs between a cluster's blocks."""
    return isinstance(a, Symbol) and a.symbol in low.spaces.shared and low.spaces.cluster not in (None, (1, 1, 1))


def _getctarank(low: Lowering, statement: Instruction) -> None:
    dest, a = statement.operands
    if isinstance(a, Symbol):
        form = lookup("mov.u32")[0]
        low.data(replace(statement, form=form, operands=(dest, SpecialRegister("%cluster_ctarank"))))
    else:
        low.data(statement)


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_NARROW = {"shared": NARROW_SHARED, "local": NARROW_LOCAL}


def _cvta(low: Lowering, statement: Instruction) -> None:
    """Between the windows of generic addresses: a sum. Global, constant and parameter addresses are generic as such."""
    form = statement.form
    assert form.type is not None
    dest, a = statement.operands
    kind, bits = str(form.type), form.type.bits
    window = (_WINDOWS if bits == 64 else _NARROW).get(form.space, 0)
    if not window:
        low.data(replace(statement, form=lookup(f"mov.{kind}")[0]))
        return
    if _apart(low, a):
        assert isinstance(a, Symbol)
        low.window_address(statement, dest, a)
        a = dest
    amount = Immediate(-window % (1 << bits) if "to" in form.tokens else window, form.type)
    low.data(replace(statement, form=lookup(f"add.{kind}")[0], operands=(dest, a, amount)))


def _isspacep(low: Lowering, statement: Instruction) -> None:
    dest, a = statement.operands
    result, guard = low.operands.destination(dest), low.operands.guard(statement)
    width = LANES if result.kind.per_lane else 1
    bits = a.type.bits if isinstance(a, Register) else 64
    value = low.operands.source(a, bits, width == 1, statement)
    space = statement.form.space
    others = ("shared", "local", "const", "param")
    ranges = [each for name in (others if space == "global" else (space,)) for each in _ranges(low, name, bits)]
    if space == "shared" and "shared::cluster" not in statement.form.tokens and low.spaces.cluster is not None:
        ranges = [Field(block_field(64), "iqq", (Block.WINDOW, SHARED_WINDOW, 1 << Cluster.RANK_BITS))]
    letters = "".join(each.kind.storage for each in ranges)
    op = SpaceTest(space == "global", letters, result.kind, value.kind, width, guard.kind, low.parted)
    low.emit(op, guard, result, value, *ranges)


def _ranges(low: Lowering, space: str, bits: int) -> list[Field]:
    """The generic addresses of a space other than global memory: none is in two of them."""
    if space in _WINDOWS:
        windows, size = (_WINDOWS, 1 << 56) if bits == 64 else (_NARROW, 1 << 24)
        return [Field(ABSOLUTE, "qq", (windows[space], size))]
    if space == "param":
        return [Field(block_field(64), "iqq", (Block.LAUNCH, 0, low.spaces.parameter_bytes))] if bits == 64 else []
    constants = [each for each in low.spaces.memory.ranges if each.spaces & SPACE_BITS["const"]]
    return [Field(ABSOLUTE, "qq", (each.address, each.nbytes)) for each in constants]


def _policy(low: Lowering, statement: Instruction) -> None:
    """createpolicy: there is no cache, so one policy is as good as another."""
    form, dest = lookup("mov.b64")[0], statement.operands[0]
    low.data(replace(statement, form=form, operands=(dest, Immediate(0, TYPES["u64"]))))


def _reach(low: Lowering, statement: Instruction) -> None:
    """discard and applypriority: wishes about caches, for memory that must be there."""
    address = next(operand for operand in statement.operands if isinstance(operand, Address))
    writes, guard = statement.form.opcode == "discard", low.operands.guard(statement)
    kind, _, place = low.address(statement, address, LINE, writes)
    if kind.affine:
        kind, place = whole(kind, place)
    low.emit(MemoryCheck(kind, LINE, writes, guard.kind), place, guard)


def _copied(low: Lowering, statement: Instruction) -> None:
    """What is left of cp.async and its groups beside ordinary accesses (:mod:`..rewrite.async_copies`)."""


COPIES = ("cp_async", "cp_async_commit", "cp_async_wait", "cp_async_arrive")
METHODS: dict[str, Any] = {
    **dict.fromkeys(COPIES, _copied),
    "discard": _reach, "applypriority": _reach,
    "createpolicy": _policy, "getctarank": _getctarank,
    "mov": _mov, "cvta": _cvta, "isspacep": _isspacep,
    "atom": _atomic, "red": _atomic, "bar": _barrier_row, "barrier": _barrier_row, "membar": _fence, "fence": _fence,
    "shfl": _shuffle, "vote": _vote, "activemask": _activemask, "elect": _elect, "match": _match, "redux": _redux,
}
