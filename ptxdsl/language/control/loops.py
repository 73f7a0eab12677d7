"""Loops that run when the kernel runs, and the branches that leave them.

A counted loop is tested once before it and once at its end: ``add``, ``setp`` and ``bra`` an iteration, which is the
least there is; with ``unroll=n``, a turn of n iterations. What is left of these runs in a loop of single ones. Where
the step is a Value the test is a carry, that of ``counter - stop``, to which the step is added as well: ptxas tests the
carry of its addition, and nothing has to be computed before the loop to keep the counter from wrapping around.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import PtxTypeError, StructureError
from ...types import ScalarType, pred, s32, s64, u32, u64
from ..builder import Region, Trace, current
from ..errors import common_type, conversions, described, located, named
from ..introspection.call_sites import user_frame
from ..introspection.variable_names import target_of_call
from ..rules import structure
from ..rules.structure import BlockStatement
from ..values.literals import known_integer, literal
from ..values.moves import known_form
from ..values.value import Reg, Result, Value
from .invariants import hoist, insert
from .regions import Block, branch, numbered, predicate_of
from .unrolling import Body

__all__ = ["break_if", "continue_if", "loop"]


class loop(Block, metaclass=BlockStatement):
    """A loop that runs when the kernel runs: ``loop()`` for ever, ``loop(n)``, ``loop(start, stop[, step])``.

    ``with loop(0, n, 2) as i:`` gives ``i`` the values of ``range(0, n, 2)``; none if the range is empty. Bounds are
    integer Values of one type, which is the type of ``i``, and Python ints; ints alone give a u32, or an s32 if one is
    negative (64 bits wide where 32 do not hold them). A Python int as step may be negative for signed types; a step
    that is a Value must be positive. Near the end of the type's range ``i`` does not wrap around. The bounds are those
    at entry. ``break_if(p)`` leaves the innermost loop, ``continue_if(p)`` goes on with its next iteration.

    ``unroll=4`` runs four iterations a turn, and those that are left one by one: the same iterations in the same order,
    with their loads in one block, where ptxas can issue them together, as far as no store stands between. A loop
    without bounds is unrolled too. A `label` cannot stand in it.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, break_if, continue_if, loop, ptx_kernel, reg, u32, use
    >>> @ptx_kernel
    ... def odd_sum(n: u32, out: Ptr[u32]):
    ...     total = reg(u32, 0)
    ...     with loop(n) as i:
    ...         continue_if((i & 1) == 0)
    ...         break_if(i > 8)
    ...         total += i
    ...     out[0] = total
    >>> out = np.zeros(1, np.uint32)
    >>> with use("emulator"):
    ...     odd_sum[1, 1](100, out)
    >>> int(out[0]) == 1 + 3 + 5 + 7
    True
    """

    kind = "loop"
    usage = "with loop(n) as i:"

    def __init__(self, *bounds: Any, unroll: int = 1) -> None:
        super().__init__()
        self.unroll = _turn(unroll)
        if len(bounds) > 3:
            message = f"loop() takes up to three bounds, and {len(bounds)} came"
            raise located(PtxTypeError, message, "`loop(start, stop, step)`")
        self.bounded = bool(bounds)
        self.labels = ""
        self.ends = self.continues = False
        if self.bounded:
            start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
            self.start, self.stop, self.step = (_bound(b, len(bounds)) for b in (start, stop, step))
            self.type = _counter_type(self.start, self.stop, self.step)
            self.unroll = self._fitting(self.unroll)

    def __enter__(self) -> Any:
        trace = self.trace
        if not self.bounded:
            region = self.open()
            self.labels = numbered(trace, "loop", self.loc.line)
            self.before = len(trace.body)
            self._begin(region)
            return None
        frame = user_frame(2)
        found = target_of_call(frame)
        region = self.open()
        self.labels = numbered(trace, "loop", self.loc.line)
        start, self.limit, self.advance = (_number(trace, b, self.type) for b in (self.start, self.stop, self.step))
        self.register = trace.fresh(self.type, found.names[0] if found else None)
        self.test = trace.fresh(pred)
        self._put(f"mov.{self.type.register}", self.register, start)
        self._skip_if_empty()
        self.end, self.before = self.limit, len(trace.body)
        if self.unroll > 1:
            self.limit = self._last_counter()
            self._prepare_turns()
        self._begin(region)
        return Result(self.register, self.type, region)

    def _begin(self, region: Region) -> None:
        self.trace.place_label(f"$loop_{self.labels}")
        region.start, self.indexed = len(self.trace.body), len(self.trace.indexed)
        self.trace.forget_addresses()

    def close(self) -> None:
        trace = self.trace
        assert self.region is not None
        if not self.bounded and not self.ends:
            structure.check_loop_ends(self.region)
        if self.bounded:
            # A reg among the bounds is read in each iteration.
            structure.check_unchanged(self.region, [b for b in (self.stop, self.step) if isinstance(b, Reg)])
        hoist(trace, self.region, self.before, frozenset({self.register.name} if self.bounded else ()))
        if self.continues:
            trace.place_label(f"$next_{self.labels}")
        if self.unroll > 1:
            self._close_turn(self.region)
        elif self.bounded:
            self._close_counted(self.region)
        else:
            self._go_on("loop", None, None)
        if self.ends:
            trace.place_label(f"$endloop_{self.labels}")

    def _go_on(self, label: str, advance: ir.Operand | None, limit: ir.Operand | None) -> None:
        """Branch back, if there is a counter as long as it is within the limit."""
        if advance is not None and limit is not None:
            step = (f"add.{self.type}", self.register, self.register, advance)
            test = (f"setp.{'gt' if self._down else 'lt'}.{self.type}", self.test, self.register, limit)
            # By 1 the counter reaches its stop exactly; by more it might pass the end of its type, so test first.
            for mnemonic, *operands in (step, test) if self._unit else (test, step):
                self._put(mnemonic, *operands)
        branch(self.trace, f"${label}_{self.labels}", self.test if self.bounded else None, self)

    def _close_counted(self, region: Region) -> None:
        """The end of a loop of single iterations, and in front of it what its test needs."""
        first = len(self.trace.body)
        if isinstance(self.step, int) or self.type.bits == 16 or self.trace.uses_carry:
            self.limit = self._last_counter()
            insert(self.trace, region, self.before, first)
            self._go_on("loop", self.advance, self.limit)
            return
        kind = self.type
        left, carry = self.trace.fresh(self.type), self.trace.fresh(self.type)
        self._put(f"sub.{kind}", left, self.register, self.end)
        insert(self.trace, region, self.before, first)
        zero = literal(0, self.type)
        # Not by `emit`, which would count them as the user's: `uses_carry`.
        summed: tuple[ir.Operand, ...] = left, left, self.advance
        for opcode, operands in (("add.cc", summed), ("addc", (carry, zero, zero))):
            self.trace.append(ir.Instruction(known_form(f"{opcode}.{kind}"), operands, None, self.loc))
        self._put(f"setp.eq.{kind}", self.test, carry, zero)
        self._put(f"add.{kind}", self.register, self.register, self.advance)
        branch(self.trace, f"$loop_{self.labels}", self.test, self)

    def _prepare_turns(self) -> None:
        """What turns of several iterations need, and the branch past them where there are too few for one."""
        first = self.turns = self._last(self.unroll - 1)
        if not self._unit:
            self.turns = self._last(2 * self.unroll - 1)
        if isinstance(self.step, int):
            self.stride: ir.Operand = literal(self.step * self.unroll, self.type)
        else:
            self.stride = self.trace.fresh(self.type)
            self._put(f"mul.lo.{self.type}", self.stride, self.advance, literal(self.unroll, self.type))
        if not self.whole:
            self._put(f"setp.{'le' if self._down else 'ge'}.{self.type}", self.test, self.register, first)
            branch(self.trace, f"$rest_{self.labels}", self.test, self)

    def _close_turn(self, region: Region) -> None:
        """The further iterations of a turn, and the loop of what is left in the end."""
        if not self.bounded:
            body = Body(self.trace, region, self.indexed)
            for number in range(1, self.unroll):
                body.copy(number)
            self._go_on("loop", None, None)
            return
        known, counter = isinstance(self.step, int), self.register
        body = Body(self.trace, region, self.indexed, counter, self.type, self.step if known else 0)
        for number in range(1, self.unroll):
            counter = body.copy(number, counter, None if known else self.advance)
        self._go_on("loop", self.stride, self.turns)
        if self.whole:
            return
        reached: ir.Operand = self.register
        if not self._unit:  # the counter itself may have passed the end of its type
            reached = self.trace.fresh(self.type)
            self._put(f"sub.{self.type}", reached, self.register, self.advance)
        self._put(f"setp.{'le' if self._down else 'ge'}.{self.type}", self.test, reached, self.limit)
        self.leave(self.test)
        self.trace.place_label(f"$rest_{self.labels}")
        self.trace.body.append(ir.Pragma("nounroll"))
        body.remainder()
        self._go_on("rest", self.advance, self.limit)

    @property
    def _unit(self) -> bool:
        return isinstance(self.step, int) and self.step in (1, -1)

    @property
    def _down(self) -> bool:
        return isinstance(self.step, int) and self.step < 0

    def _put(self, mnemonic: str, *operands: ir.Operand) -> None:
        self.trace.emit(known_form(mnemonic), operands, None, self.loc)

    def _skip_if_empty(self) -> None:
        if isinstance(self.start, int) and isinstance(self.stop, int):
            if self.start > self.stop if self._down else self.start < self.stop:
                return
            self.leave(None)
        else:
            self._put(f"setp.{'le' if self._down else 'ge'}.{self.type}", self.test, self.register, self.limit)
            self.leave(self.test)

    def _last_counter(self) -> ir.Operand:
        """What the test at the end of an iteration compares the counter with."""
        return self.end if self._unit else self._last(1)

    def _last(self, times: int) -> ir.Operand:
        """The bound below which so many more steps stay within ``stop``: max(stop, lowest + steps) - steps."""
        kind, stop, step = self.type, self.stop, self.step
        low, high = kind.bounds
        if times > 1:
            if not isinstance(step, int):
                return self._last_wide(times)
            step *= times
        if isinstance(stop, int) and isinstance(step, int):
            return literal((min(stop, high + step) if step < 0 else max(stop, low + step)) - step, kind)
        last = self.trace.fresh(kind)
        span, nearest = self.advance, self.advance
        if isinstance(step, int):
            span, nearest = literal(step, kind), literal(high + step if step < 0 else low + step, kind)
        elif low:
            self._put(f"add.{kind}", last, self.advance, literal(low, kind))
            nearest = last
        first, second = (nearest, self.end) if isinstance(stop, int) else (self.end, nearest)
        self._put(f"{'min' if self._down else 'max'}.{kind}", last, first, second)
        self._put(f"sub.{kind}", last, last, span)
        return last

    def _last_wide(self, times: int) -> ir.Operand:
        """The same for a step of 32 bits that is not known while tracing, so many of which might need more."""
        kind, last = self.type, self.trace.fresh(self.type)
        wide, steps = self.trace.fresh(s64), self.trace.fresh(s64)
        stop: ir.Operand = literal(self.stop, s64) if isinstance(self.stop, int) else self.trace.fresh(s64)
        if isinstance(stop, ir.Register):
            self._put(f"cvt.s64.{kind}", stop, self.end)
        self._put(f"mul.wide.{kind}", steps, self.advance, literal(times, kind))
        self._put("sub.s64", wide, stop, steps)
        self._put("max.s64", wide, wide, literal(kind.bounds[0], s64))
        self._put(f"cvt.{kind}.s64", last, wide)
        return last

    def _fitting(self, turn: int) -> int:
        """How many iterations a turn has: no more than there are; ``whole`` says that none are left."""
        start, stop, step, kind = self.start, self.stop, self.step, self.type
        self.whole = False
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
            count = len(range(start, stop, step))
            turn = max(1, min(turn, count))
            self.whole = count % turn == 0
        if turn > 1:
            low, high = kind.bounds
            if not isinstance(step, int) and kind.bits != 32:
                raise located(
                    PtxTypeError, f"a loop over {kind} with a step that is not known while tracing cannot be unrolled",
                    "a step that is an int, or bounds of 32 bits",
                )
            if isinstance(step, int) and abs(step) * 2 * turn > high - low:
                raise located(PtxTypeError, f"{turn} steps of {step} are more than {kind} holds", "a smaller `unroll`")
        return turn

    def leave(self, predicate: ir.Register | ir.Not | None) -> None:
        """Branch to the end of the loop."""
        self.ends = True
        branch(self.trace, f"$endloop_{self.labels}", predicate)

    def again(self, predicate: ir.Register | ir.Not | None) -> None:
        """Branch to the next iteration."""
        self.continues = self.continues or self.bounded
        branch(self.trace, f"${'next' if self.bounded else 'loop'}_{self.labels}", predicate)


def break_if(p: Any) -> None:
    """Leave the innermost ``loop`` where the predicate ``p`` holds. ``break_if(True)`` leaves it in any case.

    StructureError outside a loop.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, break_if, continue_if, loop, ptx_kernel, reg, u32
    >>> @ptx_kernel
    ... def odd_sum(out: Ptr[u32]):
    ...     total, i = reg(u32, 0), reg(u32, 0)
    ...     with loop():
    ...         i += 1
    ...         break_if(i > 10)
    ...         continue_if((i & 1) == 0)
    ...         total += i
    ...     out[0] = total
    >>> out = np.zeros(1, np.uint32)
    >>> odd_sum[1, 1](out)
    >>> int(out[0])
    25
    """
    _jump(p, "break_if", "leave")


def continue_if(p: Any) -> None:
    """Go on with the next iteration of the innermost ``loop`` where the predicate ``p`` holds; see ``break_if``."""
    _jump(p, "continue_if", "again")


def _jump(p: Any, name: str, action: str) -> None:
    trace = current()
    region: Region | None = trace.region
    while region is not None and region.kind != "loop":
        region = region.parent
    if region is None:
        hint = "`with loop():` is what it leaves; a Python `for` unrolls"
        raise located(StructureError, f"`{name}` outside a loop", hint)
    if p is False:
        return
    predicate = None if p is True else predicate_of(trace, p, name, f"`{name}` takes a predicate, such as `i == n`")
    getattr(region.statement, action)(predicate)


# ---------------------------------------------------------------------------------------------------------------------
# Bounds


def _turn(unroll: Any) -> int:
    """How many iterations ``unroll`` asks for; a PtxTypeError for what is no positive int."""
    known = known_integer(unroll)
    if known is None or known < 1:
        raise located(
            PtxTypeError, f"`unroll` is a positive int known while tracing, not {described(unroll)}",
            "`loop(n, unroll=4)`: four iterations a turn; a Python `for` unrolls all of them",
        )
    return known


def _bound(bound: Any, count: int) -> Any:
    """A bound of a loop: a Value of an integer type, or an int."""
    if isinstance(bound, Value):
        if bound.type is pred:
            hint = "`with loop():` and, where it shall end, `break_if(~(...))`"
            raise located(PtxTypeError, "loop() takes bounds, no predicate", hint)
        if not bound.type.is_integer or bound.type.bits < 16:
            message = f"loop() over {bound.type}: bounds are integers of 16 to 64 bits"
            raise located(PtxTypeError, message, conversions(bound, s32).partition(";")[0])
        return bound
    known = known_integer(bound)
    if known is not None:
        return known
    hint = "`with loop(n) as i:`, `with loop(start, stop, step) as i:`"
    if isinstance(bound, range) and count == 1:
        hint = f"`with loop({bound.start}, {bound.stop}, {bound.step}) as i:`"
    raise located(PtxTypeError, f"loop() over the {bound.__class__.__name__} {bound!r:.40}: bounds are integers", hint)


def _counter_type(start: Any, stop: Any, step: Any) -> ScalarType:
    bounds = (start, stop, step)
    if isinstance(step, int) and step == 0:
        raise located(StructureError, "a loop with step 0 never ends", "`with loop():` and `break_if(p)`")
    values = [bound for bound in bounds if isinstance(bound, Value)]
    if values:
        kind = values[0].type
        for value in values:
            if value.type is not kind:
                message = f"loop() over {kind} and {value.type}: its bounds have one type"
                raise located(PtxTypeError, message, _of_one_type(values))
    else:
        low, high = min(bounds), max(bounds)
        wide = low < -(1 << 31) or high >= 1 << (31 if low < 0 else 32)
        kind = (s64 if wide else s32) if low < 0 else u64 if wide else u32
    if isinstance(step, int) and step < 0 and not kind.is_signed:
        wide = common_type(kind, s32)
        hint = f"make its bounds signed: `n.to({wide})`" if wide else "`n.bits(s64)` of bounds below 2**63"
        raise located(PtxTypeError, f"a loop over {kind} cannot count down by {step}", hint)
    return kind


def _of_one_type(values: list[Value]) -> str:
    """How bounds become those of one type that holds them all."""
    wide = common_type(*(value.type for value in values))
    if wide is None:
        return "signed 64 bits, of bounds below 2**63: `n.bits(s64)`"
    changed = dict.fromkeys(f"`{named(value, 'n')}.to({wide})`" for value in values if value.type is not wide)
    return " and ".join(changed)


def _number(trace: Trace, bound: Any, kind: ScalarType) -> ir.Operand:
    return bound.use(trace) if isinstance(bound, Value) else literal(bound, kind)
