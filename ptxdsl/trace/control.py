"""Control flow: ``with when(p)``, ``with loop(...)``, and the branches that leave them.

Each statement leaves the few labels and branches behind that a careful author would write by hand: a ``when`` is one
branch around its body, a counted ``loop`` is tested once before it and once at its end (``add``, ``setp``, ``bra`` an
iteration). Labels carry the line they come from (``$loop_27``).

The statements are classes so that their misuse (``if when(p):``, ``with otherwise:``, ``for i in loop(n):``) finds
someone to complain to.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar, NoReturn

from .. import ir
from ..errors import PtxTypeError, StructureError, TruthError
from ..types import ScalarType, pred, s32, s64, u32, u64
from . import guard, lint
from .builder import Region, Trace, current, user_frame
from .literals import is_number, literal
from .naming import target_of_call
from .operators import data_type, find
from .problems import described, located, named
from .values import Reg, Result, Value
from .variables import snapshot

__all__ = ["Block", "branch", "break_if", "continue_if", "loop", "otherwise", "when"]

_KNOWN = "what is known while tracing is a plain Python `if`; `when` takes a predicate, such as `i < n`"


class _Statement(type):
    """The class of `when`, `otherwise` and `loop`: catches ``with loop:`` without parentheses."""

    def __enter__(cls) -> NoReturn:
        raise located(StructureError, f"`with {cls.__name__}:` lacks its parentheses", f"`with {cls.__name__}():`")

    def __exit__(cls, *error: object) -> None: ...


class Block:
    """What `when`, `otherwise` and `loop` share: one region of the trace, entered once by a `with`."""

    kind: ClassVar[str]
    usage: ClassVar[str]

    def __init__(self) -> None:
        self.trace = current()
        self.loc = self.trace.location()
        self.region: Region | None = None
        self.trace.waiting[id(self)] = self

    def open(self) -> Region:
        """Open the region, with the line of the `with`."""
        if self.region is not None:
            hint = f"write `{self.usage}` anew for each block"
            raise located(StructureError, f"this `{self.kind}` was entered before", hint)
        if current() is not self.trace:
            hint = f"write `{self.usage}` in this kernel"
            raise located(StructureError, f"this `{self.kind}` belongs to another kernel", hint)
        self.trace.waiting.pop(id(self), None)
        frame = user_frame(3)
        lint.entered(self.trace, frame)
        self.loc = self.trace.location()
        self.region = self.trace.enter(self.kind, self.loc)
        self.region.statement = self
        self.region.before = snapshot(self.trace, frame)
        return self.region

    def close(self) -> None:
        """What stands at the end of the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        region = self.region
        assert region is not None
        try:
            if kind is None:
                lint.left(region)
                guard.compare(region.before, region)
                self.close()
        finally:
            region.before = []
            self.trace.leave(region)
            self.trace.forget_addresses()
        if kind is None:
            self.trace.region.last = (self, len(self.trace.body))

    def _misused(self, what: str) -> NoReturn:
        raise located(TruthError, f"`{what}` does not work: `{self.kind}` is a block", f"`{self.usage}`")

    def __bool__(self) -> bool:
        return self._misused(f"if {self.kind}(...)")

    def __iter__(self) -> Any:
        self._misused(f"for ... in {self.kind}(...)")


class when(Block, metaclass=_Statement):
    """A block that a thread executes where the predicate ``p`` holds: ``with when(i < n):``.

    An ``otherwise()`` may follow directly. What the block computes ends with it; declare a ``reg`` before it to carry
    a value out, or use ``select``. One branch around the block is emitted; ``when(~p)`` costs no ``not``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, otherwise, ptx, ptx_kernel, s32, use, when
    >>> @ptx_kernel
    ... def sign(x: Ptr[s32]):
    ...     i = ptx.tid.x
    ...     with when(x[i] < 0):
    ...         x[i] = -1
    ...     with otherwise():
    ...         x[i] = 1
    >>> x = np.array([5, -7], np.int32)
    >>> with use("emulator"):
    ...     sign[1, 2](x)
    >>> x.tolist()
    [1, -1]
    """

    kind = "when"
    usage = "with when(p):"

    def __init__(self, p: Any) -> None:
        super().__init__()
        _predicate(self.trace, p, "when", _KNOWN)
        self.p = p
        self.labels = ""

    def __enter__(self) -> None:
        holds = _predicate(self.trace, self.p, "when", _KNOWN)
        skip = holds.predicate if isinstance(holds, ir.Not) else ir.Not(holds)
        region = self.open()
        self.labels = _numbered(self.trace, "endif", self.loc.line)
        self.branch = branch(self.trace, f"$endif_{self.labels}", skip, self)
        region.start = len(self.trace.body)

    def close(self) -> None:
        self.trace.place_label(f"$endif_{self.labels}")


class otherwise(Block, metaclass=_Statement):
    """The block of the threads that skipped the ``when(p)`` directly before it: ``with otherwise():``."""

    kind = "otherwise"
    usage = "with otherwise():"

    def __enter__(self) -> None:
        first = self._partner()
        trace = self.trace
        trace.body.pop()
        self.open()
        branch(trace, f"$endif_{first.labels}", None, self)
        trace.place_label(f"$else_{first.labels}")
        first.branch.operands = (ir.LabelRef(f"$else_{first.labels}"),)
        self.labels = first.labels
        trace.forget_addresses()

    def _partner(self) -> when:
        trace = current()
        last, end = trace.region.last or (None, 0)
        if not isinstance(last, when):
            raise located(
                StructureError, "this `otherwise()` has no `when()` before it",
                "`with when(p): ...`, then `with otherwise(): ...`",
            )
        if end != len(trace.body):
            between = next((s.loc for s in trace.body[end:] if isinstance(s, ir.Instruction) and s.loc), None)
            what = f"line {between.line} (`{between.source}`)" if between else "a label"
            raise located(
                StructureError,
                f"`otherwise()` must directly follow its `when()` of line {last.loc.line}; {what} stands between",
                "move what stands between before the `when()`, or into both blocks",
            )
        return last

    def close(self) -> None:
        self.trace.place_label(f"$endif_{self.labels}")


class loop(Block, metaclass=_Statement):
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
            self.labels = _numbered(trace, "loop", self.loc.line)
            self._begin(region)
            return None
        frame = user_frame(2)
        found = target_of_call(frame)
        region = self.open()
        self.labels = _numbered(trace, "loop", self.loc.line)
        start, self.limit, self.advance = (_number(trace, b, self.type) for b in (self.start, self.stop, self.step))
        self.register = trace.fresh(self.type, found.names[0] if found else None)
        self.test = trace.fresh(pred)
        self._put(f"mov.{data_type(self.type)}", self.register, start)
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
        if self.continues:
            trace.place_label(f"$next_{self.labels}")
        if self.bounded:
            self._check_bounds()
            step = (f"add.{self.type}", self.register, self.register, self.advance)
            test = (f"setp.{'gt' if self._down else 'lt'}.{self.type}", self.test, self.register, self.limit)
            # By 1 the counter meets its stop exactly; by more it might pass the end of its type, so test first.
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
        form = find(mnemonic)
        assert form is not None, mnemonic
        self.trace.emit(form, operands, None, self.loc)

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
        low, high = _range(kind)
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

    def _check_bounds(self) -> None:
        """A reg among the bounds is read in each iteration, so the body must leave it alone."""
        assert self.region is not None
        for bound in (self.stop, self.step):
            if not isinstance(bound, Reg):
                continue
            for statement in self.trace.body[self.region.start :]:
                if isinstance(statement, ir.Instruction) and bound.register in statement.writes():
                    name = named(bound, bound.register.name)
                    raise StructureError(
                        f"`{name}` is changed inside the loop of line {self.loc.line} that it bounds",
                        loc=statement.loc,
                        hint=f"bound the loop by `{name}.copy()`, or write `with loop():` and `break_if(...)`",
                    )

    def leave(self, predicate: ir.Register | ir.Not | None) -> None:
        """Branch to the end of the loop."""
        self.ends = True
        branch(self.trace, f"$endloop_{self.labels}", predicate)

    def again(self, predicate: ir.Register | ir.Not | None) -> None:
        """Branch to the next iteration."""
        self.continues = self.continues or self.bounded
        branch(self.trace, f"${'next' if self.bounded else 'loop'}_{self.labels}", predicate)


def break_if(p: Any) -> None:
    """Leave the innermost ``loop`` where the predicate ``p`` holds. ``break_if(True)`` leaves it in any case."""
    _jump(p, "break_if", "leave")


def continue_if(p: Any) -> None:
    """Go on with the next iteration of the innermost ``loop`` where the predicate ``p`` holds."""
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
    predicate = None if p is True else _predicate(trace, p, name, f"`{name}` takes a predicate, such as `i == n`")
    getattr(region.statement, action)(predicate)


# ---------------------------------------------------------------------------------------------------------------------
# Operands


def _predicate(trace: Trace, p: Any, name: str, hint: str) -> ir.Register | ir.Not:
    if not isinstance(p, Value):
        raise located(PtxTypeError, f"`{name}` of {described(p)}", hint)
    if p.type is not pred:
        raise located(PtxTypeError, f"`{name}` of a {p.type}, which is no predicate", f"`{name}({named(p, 'v')} != 0)`")
    return p.guard(trace)


def _bound(bound: Any, count: int) -> Any:
    """A bound of a loop: a Value of an integer type, or an int."""
    if isinstance(bound, Value):
        if bound.type is pred:
            hint = "`with loop():` and, where it shall end, `break_if(~(...))`"
            raise located(PtxTypeError, "loop() takes bounds, no predicate", hint)
        if not bound.type.is_integer or bound.type.bits < 16:
            message = f"loop() over {bound.type}: bounds are integers of 16 to 64 bits"
            raise located(PtxTypeError, message, f"`{named(bound, 'n')}.to(s32)`")
        return bound
    if is_number(bound) and not isinstance(bound, bool):
        try:
            return operator.index(bound)
        except TypeError:
            pass
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
                raise located(
                    PtxTypeError, f"loop() over {kind} and {value.type}: its bounds have one type",
                    f"`{named(value, 'n')}.to({kind})`",
                )
    else:
        low, high = min(bounds), max(bounds)
        wide = low < -(1 << 31) or high >= 1 << (31 if low < 0 else 32)
        kind = (s64 if wide else s32) if low < 0 else u64 if wide else u32
    if isinstance(step, int) and step < 0 and not kind.is_signed:
        raise located(
            PtxTypeError, f"a loop over {kind} cannot count down by {step}", "make its bounds signed: `n.to(s32)`",
        )
    return kind


def _range(kind: ScalarType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    half = 1 << kind.bits - 1
    return (-half, half - 1) if kind.is_signed else (0, 2 * half - 1)


def _number(trace: Trace, bound: Any, kind: ScalarType) -> ir.Operand:
    if isinstance(bound, Value):
        operand: ir.Operand = bound.use(trace)
        return operand
    return literal(bound, kind)


# ---------------------------------------------------------------------------------------------------------------------
# Labels and branches


def _numbered(trace: Trace, stem: str, line: int) -> str:
    """What tells the labels of this block from others: the line, and a number where the line has several."""
    return trace.fresh_label(f"{stem}_{line}")[len(stem) + 2 :]


def branch(
    trace: Trace, target: str, predicate: ir.Register | ir.Not | None, block: Block | None = None
) -> ir.Instruction:
    """Append a branch to a label."""
    form = find("bra")
    assert form is not None
    return trace.emit(form, (ir.LabelRef(target),), predicate, None if block is None else block.loc)
