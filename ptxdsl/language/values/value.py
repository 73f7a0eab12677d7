"""Run-time values: what a kernel's Python variables hold while it is traced.

A `Value` is the immutable result of an instruction; a `Reg` is the only thing that can be changed. Every operator is
one instruction, of one type, chosen by `operators`. Its checks (same type, still alive, number in range) are a few
comparisons each: a kernel of ten thousand instructions makes them ten thousand times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ... import ir
from ...errors import PtxTypeError, with_article
from ...isa import Form
from ...types import ScalarType, pred, u16
from ..builder import PendingRegion, Region, Trace, current, thread
from ..errors import conversions, described, located, named, no_type, recast, relocated
from ..introspection.call_sites import getframe, places
from ..rules.decided_comparisons import is_decided
from ..rules.escape import escaped, resolved_region
from ..rules.python_protocol import RunTime
from .arithmetic import (
    DIVISIONS, by_power_of_two, check_types, fused_operands, number_operand, operation_of, swapped_shift,
)
from .literals import is_number, literal
from .moves import move_form, parts_form, set_register
from .narrow import comparison, compares_narrow, narrowed, widened
from .operators import COMPARISONS, conversion, find, selection, unary
from .parts import Part, Vec
from .refused import Refused

__all__ = ["Negated", "Parameter", "Part", "Reg", "Result", "Value", "Vec", "emit", "set_source"]


class _Cached(NamedTuple):
    """The instruction of an operator and a type, and what numbers became as its other operand."""

    form: Form
    result: ScalarType
    other: ScalarType
    ints: dict[int, ir.Operand]
    floats: dict[float, ir.Operand]


def _operator(symbol: str, *, swapped: bool = False, in_place: bool = False) -> Callable[[Value, Any], Any]:
    known: dict[ScalarType, _Cached] = {}

    def operate(self: Any, other: Any) -> Any:
        # The fast path, which most of a long kernel takes: the instruction is known. `_binary` is the general case.
        trace, cached = thread.trace, known.get(self.type)
        if cached is not None and trace is not None and self.region.owner is trace and self.__class__ in _REGISTERS:
            form, result, second, ints, floats = cached
            kind = other.__class__
            right: ir.Operand | None = None
            if kind in _REGISTERS:
                if other.type is second and other.region.owner is trace:
                    right = other.register
            elif kind is int:
                right = ints.get(other)
            elif kind is float:
                right = floats.get(other)
            if right is not None:
                left = self.register
                target = self.write(trace) if in_place else trace.supply[result]()
                frame = getframe(1)
                loc = places.get((id(frame.f_code), frame.f_lasti)) or trace.location(2)
                if form not in trace.forms:
                    trace.admit(form, loc)
                operands = (target, right, left) if swapped else (target, left, right)
                trace.append(ir.Instruction(form, operands, None, loc))
                return self if in_place else Result(target, result, trace.region)
        return _binary(symbol, self, other, swapped, self if in_place else None, known)

    return operate


class Value(Refused):
    """What a register holds at run time, of use in the region that computed it.

    None of its kinds derives from another: Python would ask the right operand of ``a < b`` first where its class
    derives from that of the left, and the instruction would come out the wrong way round. ``type``
    is what it is in ptxdsl's terms (bf16), ``register`` where it is (a ``.b16``).
    """

    __slots__ = ("register", "type", "region")

    def __init__(self, register: ir.Register, type: ScalarType, region: Region) -> None:
        self.register = register
        self.type = type
        self.region = region

    def __repr__(self) -> str:
        return f"<{self.type} {self.register.name}>"

    def _kind(self) -> str:
        return "predicate" if self.type is pred else str(self.type)

    def use(self, trace: Trace) -> ir.Register:
        """The register to read it from; an EscapeError if its region is closed."""
        if self.region.owner is not trace:
            escaped(self)
        return self.register

    def guard(self, trace: Trace) -> ir.Register | ir.Not:
        """The predicate as a guard; a PtxTypeError for any other type."""
        if self.type is not pred:
            raise located(
                PtxTypeError, f"a guard is a predicate, not {self.type}", f"compare: `{named(self, 'v')} != 0`"
            )
        return self.use(trace)

    def to(self, type: ScalarType, *modifiers: str) -> Value:
        """Converted to another type by one ``cvt`` (selp from and setp to a predicate).

        Floats round to the nearest, even on a tie; integers towards zero. ``modifiers`` override this:
        ``v.to(s32, "rni", "sat")``.
        """
        trace = thread.trace or current()
        if type.__class__ is not ScalarType:
            _check_type(type, "to")
        if type is self.type and not modifiers:
            return self.copy() if isinstance(self, Reg) else self
        if self.type is pred and not modifiers:
            if type.bits == 8 and type.kind != "f":
                return Result(narrowed(trace, self.to(u16).use(trace), type), type, trace.region)
            form = selection(type)
            if form is None or type.lanes > 1:
                raise located(PtxTypeError, f"PTX has no selp of {type}", f"`select(p, a, b)` of two {type}")
            one, zero = (literal(n, type, type.register) for n in (1, 0))
            return emit(form, type, one, zero, self.use(trace))
        if type is pred and not modifiers:
            found: Value = self != 0
            return found
        try:
            form = conversion(self.type, type, modifiers)
        except PtxTypeError as error:
            raise relocated(error) from None
        return emit(form, type, self.use(trace))

    def bits(self, type: ScalarType) -> Value:
        """The same bits as another type of the same size, by one ``mov``."""
        if type.__class__ is not ScalarType:
            _check_type(type, "bits")
        if type.bits == self.type.bits == 8:
            trace = current()
            return Result(narrowed(trace, widened(trace, self.use(trace)), type), type, trace.region)
        form = find(f"mov.b{type.bits}")
        if type.bits != self.type.bits or form is None or type is pred or self.type is pred:
            raise located(
                PtxTypeError, f"the bits of {self.type} ({self.type.bits}) cannot be those of {type} ({type.bits})",
                recast(self, type),
            )
        return emit(form, type, self.use(thread.trace or current()))

    def unpack(self, type: ScalarType) -> Vec:
        """Its parts, the lowest first, by one ``mov``: a b64 as two u32, an f16x2 as two f16."""
        _check_type(type, "unpack")
        trace = current()
        count = self.type.bits // type.bits
        form = parts_form(self.type, count, written=True)
        targets = tuple(trace.fresh(type) for _ in range(count))
        trace.emit(form, (ir.Vector(targets), self.use(trace)))
        return Vec(Result(target, type, trace.region) for target in targets)

    def __deepcopy__(self, memo: object) -> Value:
        return self

    def __copy__(self) -> Value:
        return self

    def part(self, selector: str = "") -> Part:
        """A byte or halfword of it as an operand of a video instruction: ``v.part("b0")`` is ``%r1.b0``."""
        return Part(self, selector)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        symbol = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or symbol is None or options or not all(map(_scalar_like, inputs)):
            self._refuse(
                "number for numpy", "functions are in `ptxdsl.math`, and instructions in `ptx`: `ptx.sqrt.rn.f32(v)`"
            )
        left, right = inputs
        if isinstance(left, Value):
            return _binary(symbol, left, right)
        if symbol in _MIRRORED:
            return _binary(_MIRRORED[symbol], right, left)
        return _binary(symbol, right, left, swapped=True)

    # -- operators

    __hash__ = RunTime.__hash__

    __add__, __radd__ = _operator("+"), _operator("+", swapped=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", swapped=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", swapped=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", swapped=True)
    __mod__, __rmod__ = _operator("%"), _operator("%", swapped=True)
    __lshift__, __rlshift__ = _operator("<<"), _operator("<<", swapped=True)
    __rshift__, __rrshift__ = _operator(">>"), _operator(">>", swapped=True)
    __and__, __rand__ = _operator("&"), _operator("&", swapped=True)
    __or__, __ror__ = _operator("|"), _operator("|", swapped=True)
    __xor__, __rxor__ = _operator("^"), _operator("^", swapped=True)
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __eq__ = _operator("==")
    __ne__ = _operator("!=")

    def __neg__(self) -> Value:
        return _unary("-", self)

    def __pos__(self) -> Value:
        return self.copy() if isinstance(self, Reg) else self

    def __abs__(self) -> Value:
        return _unary("abs", self)

    def __invert__(self) -> Value:
        if self.type is pred and self.__class__ is not Reg:
            if thread.trace is not None:
                thread.trace.location()  # no instruction has a line to check here
            return Negated(self)
        return _unary("~", self)


class Result(Value):
    """The immutable result of an instruction."""

    __slots__ = ()


class Parameter(Value):
    """A parameter of the kernel: loaded at the top of it, if it is used at all."""

    __slots__ = ("load",)

    def __init__(self, register: ir.Register, type: ScalarType, region: Region, load: Form, name: str) -> None:
        super().__init__(register, type, PendingRegion.of(region))
        self.load = load, ir.Symbol(name)

    def use(self, trace: Trace) -> ir.Register:
        if self.region.owner is not trace:
            self.region = resolved_region(self, trace)
            form, name = self.load
            trace.prepend(form, (self.register, ir.Address(name)), trace.loc)
        return self.register


class Negated(Value):
    """``~p``: as a guard it is ``@!p``; only where a predicate is an operand does it become an instruction.

    Only of an immutable predicate, since it is negated when it is used.
    """

    __slots__ = ("source",)

    def __init__(self, source: Value) -> None:
        super().__init__(source.register, pred, source.region)
        self.source = source

    def __repr__(self) -> str:
        return f"<pred !{self.register.name}>"

    def use(self, trace: Trace) -> ir.Register:  # noqa: ARG002 -- a new register of the current trace
        return _unary("~", self.source).register

    def guard(self, trace: Trace) -> ir.Register | ir.Not:
        return ir.Not(self.source.use(trace))

    def __invert__(self) -> Value:
        return self.source


class Reg(Value):
    """A register that may be changed: by ``+=`` and its like, by `set`, by ``out=``. Made by `reg`."""

    __slots__ = ()

    def __init__(self, register: ir.Register, type: ScalarType, region: Region) -> None:
        super().__init__(register, type, region)
        region.trace.mutable.add(register.name)

    def use(self, trace: Trace) -> ir.Register:
        if self.region.owner is not trace:
            self.region = resolved_region(self, trace)
            trace.needs_verification = True
        return self.register

    def write(self, trace: Trace, depth: int = 2, owner: Any = None) -> ir.Register:
        """The register to write to: alive, and held by one name only (rules R1 and R3).

        The first ``depth`` frames, this one among them, are ptxdsl's. ``owner`` is the pointer whose register it is.
        """
        if self.region.owner is not trace:
            region = resolved_region(self, trace)
            if region is trace.region:  # after an inner block it may still be without a value
                self.region = region
        if trace.before_write is not None:
            trace.before_write(self if owner is None else owner, depth + 1)
        return self.register

    def set(self, value: Any) -> None:
        """Copy a value or a number of its type into it, by one ``mov``."""
        trace = thread.trace or current()
        source = set_source(trace, value, self.type)
        set_register(trace, self.write(trace), source, self.type)

    def __copy__(self) -> NoReturn:
        raise located(
            PtxTypeError, "Python's copy of a reg would be the same register",
            f"`{named(self, 'v')}.copy()`, or `reg(v)`",
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def copy(self) -> Value:
        """What it holds now, as a Value, by one ``mov``."""
        return emit(move_form(self.type), self.type, self.use(current()))

    __iadd__ = _operator("+", in_place=True)
    __isub__ = _operator("-", in_place=True)
    __imul__ = _operator("*", in_place=True)
    __itruediv__ = _operator("/", in_place=True)
    __ifloordiv__ = _operator("//", in_place=True)
    __imod__ = _operator("%", in_place=True)
    __ilshift__ = _operator("<<", in_place=True)
    __irshift__ = _operator(">>", in_place=True)
    __iand__ = _operator("&", in_place=True)
    __ior__ = _operator("|", in_place=True)
    __ixor__ = _operator("^", in_place=True)


# ---------------------------------------------------------------------------------------------------------------------
# Emitting

_UFUNCS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "left_shift": "<<", "right_shift": ">>", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_REGISTERS: frozenset[Any] = frozenset((Result, Reg, Parameter))
_PLAIN = frozenset((int, float, Negated, *_REGISTERS))


def _scalar_like(value: object) -> bool:
    return isinstance(value, Value) or is_number(value)


def _check_type(type: object, method: str) -> None:
    if not isinstance(type, ScalarType):
        raise no_type(f"`.{method}()` takes a type", type, f"write `v.{method}({{}})`")


def emit(form: Form, type: ScalarType, *sources: ir.Operand, depth: int = 3) -> Value:
    """Append an instruction with one result, which is a new Value of ``type``."""
    trace = thread.trace or current()
    register = trace.supply[type]()
    trace.emit(form, (register, *sources), None, None, depth)
    return Result(register, type, trace.region)


def set_source(trace: Trace, value: Any, type: ScalarType) -> ir.Operand:
    """A value or number to be copied into a register of ``type``."""
    if isinstance(value, Value):
        if value.type is not type:
            raise located(
                PtxTypeError, f"a register of {type} does not take {with_article(value.type)}",
                conversions(value, type),
            )
        return value.use(trace)
    if is_number(value):
        return literal(value, type)
    raise located(PtxTypeError, f"a register of {type} does not take {described(value)}", "give a Value or a number")


def _unary(op: str, a: Value) -> Value:
    trace = current()
    try:
        form = unary(op, a.type)
    except PtxTypeError as error:
        raise relocated(error) from None
    return emit(form, a.type, a.use(trace))


def _binary(
    op: str, a: Value, b: Any, swapped: bool = False, out: Any = None, known: dict[ScalarType, _Cached] | None = None
) -> Any:
    """``a op b`` (``b op a`` if swapped), into a new Value or into ``out``; kept in ``known`` for the next time."""
    trace = thread.trace
    if trace is None:
        escaped(a)
    kind = b.__class__
    if kind not in _PLAIN and hasattr(kind, "_owns_arithmetic"):
        return NotImplemented
    type = a.type
    if op in DIVISIONS and not swapped and (cheaper := by_power_of_two(op, type, b)):
        (op, b), known = cheaper, None
    if op in COMPARISONS and compares_narrow(op, a, b):
        return Result(comparison(trace, op, a, b), pred, trace.region)
    operation = operation_of(op, type)
    form, result, second, fma = operation
    if swapped and second is not type and not (kind in _REGISTERS and b.type is second):
        form, result, number = swapped_shift(op, a, b)
        return emit(form, result, number, a.use(trace))
    if isinstance(b, Value):
        check_types(op, second, a, b)
        right: ir.Operand = b.use(trace)
        if type.kind == "b" and result is type is second:
            result = b.type
    else:
        right = number_operand(trace, operation, op, a, b, swapped)
    left = a.use(trace)
    target = trace.supply[result]() if out is None else out.write(trace, 3)
    sources: tuple[ir.Operand, ...] = (right, left) if swapped else (left, right)
    if fma:
        sources = fused_operands(trace, operation, *sources)
    trace.emit(form, (target, *sources), None, None, 3)
    if known is not None and not fma and not (op in COMPARISONS and is_decided(op, type, b) is not None):
        _keep(known.setdefault(type, _Cached(form, operation.result, second, {}, {})), b, right)
    return Result(target, result, trace.region) if out is None else out


def _keep(cached: _Cached, number: Any, operand: ir.Operand) -> None:
    """Keep what a number became; not of a float zero, which may be negative, or a NaN, which equals nothing."""
    if operand.__class__ is ir.Immediate:
        if number.__class__ is int:
            cached.ints[number] = operand
        elif number.__class__ is float and number and number == number:
            cached.floats[number] = operand
