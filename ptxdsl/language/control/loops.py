"""Loops that run when the kernel runs, and the branches that leave them.

A counted loop is tested once before it and once at its end: ``add``, ``setp`` and ``bra`` an iteration, which is the
least there is.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import PtxTypeError, StructureError
from ...types import ScalarType, pred, s32, s64, u32, u64
from ..builder import Region, Trace, current
from ..errors import common_type, conversions, located, named
from ..introspection.call_sites import user_frame
from ..introspection.variable_names import target_of_call
from ..rules import structure
from ..rules.structure import BlockStatement
from ..values.literals import known_integer, literal
from ..values.moves import known_form
from ..values.value import Reg, Result, Value
from .regions import Block, branch, numbered, predicate_of

__all__ = ["break_if", "continue_if", "loop"]


class loop(Block, metaclass=BlockStatement):
    """A loop that runs when the kernel runs: ``loop()`` for ever, ``loop(n)``, ``loop(start, stop[, step])``.

    ``with loop(0, n, 2) as i:`` gives ``i`` the values of ``range(0, n, 2)``; none if the range is empty. Bounds are
    integer Values of one type, which is the type of ``i``, and Python ints; ints alone give a u32, or an s32 if one is
    negative (64 bits wide where 32 do not hold them). A Python int as step may be negative for signed types; a step
    that is a Value must be positive. Near the end of the type's range ``i`` does not wrap around. The bounds are those
    at entry. ``break_if(p)`` leaves the innermost loop, ``continue_if(p)`` goes on with its next iteration.

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

    def __init__(self, *bounds: Any) -> None:
        super().__init__()
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

    def __enter__(self) -> Any:
        trace = self.trace
        if not self.bounded:
            region = self.open()
            self.labels = numbered(trace, "loop", self.loc.line)
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
        if not self._unit:
            self.limit = self._last()
        self._begin(region)
        return Result(self.register, self.type, region)

    def _begin(self, region: Region) -> None:
        self.trace.place_label(f"$loop_{self.labels}")
        region.start = len(self.trace.body)
        self.trace.forget_addresses()

    def close(self) -> None:
        trace = self.trace
        assert self.region is not None
        if not self.bounded and not self.ends:
            structure.check_loop_ends(self.region)
        if self.continues:
            trace.place_label(f"$next_{self.labels}")
        if self.bounded:
            # A reg among the bounds is read in each iteration.
            structure.check_unchanged(self.region, [b for b in (self.stop, self.step) if isinstance(b, Reg)])
            step = (f"add.{self.type}", self.register, self.register, self.advance)
            test = (f"setp.{'gt' if self._down else 'lt'}.{self.type}", self.test, self.register, self.limit)
            # By 1 the counter reaches its stop exactly; by more it might pass the end of its type, so test first.
            for mnemonic, *operands in (step, test) if self._unit else (test, step):
                self._put(mnemonic, *operands)
        branch(trace, f"$loop_{self.labels}", self.test if self.bounded else None, self)
        if self.ends:
            trace.place_label(f"$endloop_{self.labels}")

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

    def _last(self) -> ir.Operand:
        """The bound below which one more step stays within ``stop``: max(stop, lowest + step) - step."""
        kind, stop, step = self.type, self.stop, self.step
        low, high = kind.bounds
        if isinstance(stop, int) and isinstance(step, int):
            return literal((min(stop, high + step) if step < 0 else max(stop, low + step)) - step, kind)
        last = self.trace.fresh(kind)
        nearest: ir.Operand
        if isinstance(step, int):
            nearest = literal(high + step if step < 0 else low + step, kind)
        elif low:
            self._put(f"add.{kind}", last, self.advance, literal(low, kind))
            nearest = last
        else:
            nearest = self.advance
        first, second = (nearest, self.limit) if isinstance(stop, int) else (self.limit, nearest)
        self._put(f"{'min' if self._down else 'max'}.{kind}", last, first, second)
        self._put(f"sub.{kind}", last, last, self.advance)
        return last

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
