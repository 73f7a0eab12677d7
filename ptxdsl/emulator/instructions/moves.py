"""Moves of what only the emulator knows, and instructions about addresses: lowered to micro-ops that compute."""

from __future__ import annotations

from dataclasses import replace

from ...ir import Immediate, Instruction, Operand, Register, SpecialRegister, Symbol, Vector
from ...isa import lookup
from ...types import TYPES
from ..machine.layout import LANES, LOCAL_WINDOW, NARROW_LOCAL, NARROW_SHARED, SHARED_WINDOW, SPACE_BITS, Block, Cluster
from .data import ReadClock, SpaceTest, compute, parameter_address, window_address
from .lowering import Lowering, lowers
from .operand_classes import ABSOLUTE, block_field
from .operands import Field

_CLOCKS = ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi")


@lowers("mov")
def move(low: Lowering, statement: Instruction) -> None:
    """Moves from where only the engine knows: clocks, all components of a special register, parameters' addresses."""
    dest, a = statement.operands
    if isinstance(a, SpecialRegister) and a.special in _CLOCKS:
        result, guard = low.operands.destination(dest), low.operands.guard(statement)
        low.emit(ReadClock(a.special, result.kind, guard.kind, low.divergent), guard, result)
    elif isinstance(a, SpecialRegister) and isinstance(dest, Vector):
        form = lookup(f"mov.{statement.form.type}")[0]
        for item, axis in zip(dest.items, "xyzw"):
            part: Operand = SpecialRegister(f"{a.special}.{axis}") if axis != "w" else Immediate(0, TYPES["u32"])
            if isinstance(item, Register):
                compute(low, replace(statement, form=form, operands=(item, part)))
    elif isinstance(a, Symbol) and _differs_between_blocks(low, a):
        window_address(low, statement, dest, a)
    elif isinstance(a, Symbol) and a.symbol in low.spaces.offsets:
        parameter_address(low, statement, low.spaces.offsets[a.symbol] + a.offset)
    else:
        compute(low, statement)


def _differs_between_blocks(low: Lowering, a: Operand) -> bool:
    """Whether an operand is the address of a variable in shared memory, which differs between a cluster's blocks."""
    return isinstance(a, Symbol) and a.symbol in low.spaces.shared and low.spaces.cluster not in (None, (1, 1, 1))


@lowers("getctarank")
def block_rank(low: Lowering, statement: Instruction) -> None:
    dest, a = statement.operands
    if isinstance(a, Symbol):
        form = lookup("mov.u32")[0]
        compute(low, replace(statement, form=form, operands=(dest, SpecialRegister("%cluster_ctarank"))))
    else:
        compute(low, statement)


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_NARROW = {"shared": NARROW_SHARED, "local": NARROW_LOCAL}


@lowers("cvta")
def convert_address(low: Lowering, statement: Instruction) -> None:
    """Between the windows of generic addresses: a sum. Global, constant and parameter addresses are generic as such."""
    form = statement.form
    assert form.type is not None
    dest, a = statement.operands
    kind, bits = str(form.type), form.type.bits
    window = (_WINDOWS if bits == 64 else _NARROW).get(form.space, 0)
    if not window:
        compute(low, replace(statement, form=lookup(f"mov.{kind}")[0]))
        return
    if _differs_between_blocks(low, a):
        assert isinstance(a, Symbol)
        window_address(low, statement, dest, a)
        a = dest
    amount = Immediate(-window % (1 << bits) if "to" in form.tokens else window, form.type)
    compute(low, replace(statement, form=lookup(f"add.{kind}")[0], operands=(dest, a, amount)))


@lowers("isspacep")
def test_space(low: Lowering, statement: Instruction) -> None:
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
    op = SpaceTest(space == "global", letters, result.kind, value.kind, width, guard.kind, low.divergent)
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


@lowers("createpolicy")
def cache_policy(low: Lowering, statement: Instruction) -> None:
    """createpolicy: there is no cache, so one policy is as good as another."""
    form, dest = lookup("mov.b64")[0], statement.operands[0]
    compute(low, replace(statement, form=form, operands=(dest, Immediate(0, TYPES["u64"]))))


@lowers("cp_async", "cp_async_commit", "cp_async_wait", "cp_async_arrive")
def asynchronous_copy(low: Lowering, statement: Instruction) -> None:
    """Where they are made where they stand, :mod:`..rewrite.async_copies` leaves them for the sanitizer to see."""
    if low.spaces.defers:
        from .async_copies import cp_async

        cp_async(low, statement)


@lowers("st_async", "red_async")
def asynchronous_store(low: Lowering, statement: Instruction) -> None:
    """Those that are made later."""
    from .async_copies import store

    store(low, statement)
