"""Run-time values: what a kernel's Python variables hold while it is traced.

A `Value` is the immutable result of an instruction; a `Reg` is the only thing that can be changed. Every operator is
one instruction, of one type, chosen by `operators`. Its checks (same type, still alive, number in range) are a few
comparisons each: a kernel of ten thousand instructions makes them ten thousand times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .. import ir
from ..errors import PtxTypeError
from ..isa import Form
from ..types import ScalarType, bf16, encode, pred, u32
from .builder import Region, Trace, Unset, current, getframe, places, thread
from .literals import is_number, literal
from .operators import Operation, binary, conversion, data_type, find, move, unary
from .errors import conversions, described, escaped, located, mismatch, named
from .rules.python_protocol import RunTime

if TYPE_CHECKING:
    from .register_parts import Part

__all__ = ["Negated", "Parameter", "Reg", "Result", "Value", "Vec", "constant", "emit", "set_register"]


class _Ready(NamedTuple):
    """The instruction of an operator and a type, and what the numbers met so far became as its other operand."""

    form: Form
    result: ScalarType
    other: ScalarType
    ints: dict[int, ir.Operand]
    floats: dict[float, ir.Operand]


def _operator(symbol: str, *, swapped: bool = False, in_place: bool = False) -> Callable[[Value, Any], Any]:
    known: dict[ScalarType, _Ready] = {}

    def operate(self: Any, other: Any) -> Any:
        # The usual case, which is most of a long kernel: all has been seen before. `_binary` is the rule.
        trace, ready = thread.trace, known.get(self.type)
        if ready is not None and trace is not None and self.region.owner is trace and self.__class__ in _REGISTERS:
            form, result, second, ints, floats = ready
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


class Value(RunTime):
    """What a register holds at run time, alive in the region that computed it.

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
            _scalar(type, "to")
        if type is self.type and not modifiers:
            return self.copy() if isinstance(self, Reg) else self
        if self.type is pred and not modifiers:
            return emit(_known(f"selp.{type}"), type, literal(1, type), literal(0, type), self.use(trace))
        if type is pred and not modifiers:
            found: Value = self != 0
            return found
        try:
            form = conversion(self.type, type, modifiers)
        except PtxTypeError as error:
            raise located(PtxTypeError, error.message, error.hint) from None
        return emit(form, type, self.use(trace))

    def bits(self, type: ScalarType) -> Value:
        """The same bits as another type of the same size, by one ``mov``."""
        if type.__class__ is not ScalarType:
            _scalar(type, "bits")
        form = _raw_move(type.bits)
        if type.bits != self.type.bits or form is None or type is pred or self.type is pred:
            raise located(
                PtxTypeError, f"the bits of {self.type} ({self.type.bits}) cannot be those of {type} ({type.bits})",
                f"`{named(self, 'v')}.to({type})` converts",
            )
        return emit(form, type, self.use(thread.trace or current()))

    def unpack(self, type: ScalarType) -> Vec:
        """Its parts, the lowest first, by one ``mov``: a b64 as two u32, an f16x2 as two f16."""
        from .functions import unpack

        return unpack(self, type)

    def __deepcopy__(self, memo: object) -> Value:
        return self

    def __copy__(self) -> Value:
        return self

    def part(self, selector: str = "") -> Part:
        """A byte or halfword of it as an operand of a video instruction: ``v.part("b0")`` is ``%r1.b0``."""
        from .register_parts import Part

        return Part(self, selector)

    # -- what has another spelling

    def __getitem__(self, index: object) -> NoReturn:
        raise located(
            PtxTypeError, f"a {self.type} value has no elements",
            "a parameter `x: Ptr[f32]` is indexed; `v.unpack(u16)` splits a value into parts",
        )

    def __setitem__(self, index: object, value: object) -> NoReturn:
        self.__getitem__(index)

    def __pow__(self, other: object) -> NoReturn:
        raise located(
            PtxTypeError, f"`**` of {self.type}: PTX has no power",
            "`v * v` for a square, `ptxdsl.math.pow(x, y)` for floats, `v << k` for powers of two",
        )

    __rpow__ = __pow__

    def __matmul__(self, other: object) -> NoReturn:
        raise located(PtxTypeError, f"`@` of {self.type}: no matrices here", "`ptx.mma` multiplies fragments")

    __rmatmul__ = __matmul__

    def __divmod__(self, other: object) -> NoReturn:
        raise located(PtxTypeError, "divmod() is two instructions", "write `a // b` and `a % b`")

    __rdivmod__ = __divmod__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        symbol = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or symbol is None or options or not all(map(_scalar_like, inputs)):
            self._refuse(
                "number for numpy", "functions are in `ptxdsl.math`, and instructions in `ptx`: `ptx.sqrt.rn.f32(v)`"
            )
        left, right = inputs
        return _binary(symbol, left, right) if isinstance(left, Value) else _binary(symbol, right, left, swapped=True)

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
            return Negated(self)
        return _unary("~", self)


class Result(Value):
    """The immutable result of an instruction."""

    __slots__ = ()
    __hash__ = RunTime.__hash__


class Parameter(Value):
    """A parameter of the kernel: loaded at the top of it, if it is used at all."""

    __slots__ = ("load",)
    __hash__ = RunTime.__hash__

    def __init__(self, register: ir.Register, type: ScalarType, region: Region, load: Form, name: str) -> None:
        super().__init__(register, type, Unset.of(region))
        self.load = load, ir.Symbol(name)

    def use(self, trace: Trace) -> ir.Register:
        if self.region.owner is not trace:
            self.region = _home(self, trace)
            form, name = self.load
            trace.prepend(form, (self.register, ir.Address(name)), trace.loc)
        return self.register


class Negated(Value):
    """``~p``: as a guard it is ``@!p``; only where a predicate is an operand does it become an instruction.

    Only of an immutable predicate, which is the same whenever it is looked at.
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
    __hash__ = RunTime.__hash__

    def use(self, trace: Trace) -> ir.Register:
        if self.region.owner is not trace:
            self.region = _home(self, trace)
            trace.doubtful = True
        return self.register

    def write(self, trace: Trace, depth: int = 2) -> ir.Register:
        """The register to write to: alive, and held by one name only (rules R1 and R3).

        The first ``depth`` frames, this one among them, are known to be ours.
        """
        if self.region.owner is not trace:
            home = _home(self, trace)
            if home is trace.region:  # after an inner block it may still be without a value
                self.region = home
        if trace.hook is not None:
            trace.hook(self, depth + 1)
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
        return emit(_move(self.type), self.type, self.use(current()))

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


class Vec(tuple[Value, ...]):
    """Values of a vector instruction: of fixed length, to be indexed, unpacked, and passed on where braces stand."""

    __slots__ = ()

    def _refuse(self, _: object) -> NoReturn:
        raise located(PtxTypeError, "a Vec has no arithmetic: PTX computes on its elements", "`[x * 2 for x in v]`")

    def __radd__(self, other: object) -> Any:
        # A list grows by it as by any sequence: `values += p.load(i, width=4)`.
        return NotImplemented if isinstance(other, list) else self._refuse(other)

    __add__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = None  # type: ignore[assignment]


# ---------------------------------------------------------------------------------------------------------------------
# Emitting

_UFUNCS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "left_shift": "<<", "right_shift": ">>", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}
_REGISTERS: frozenset[Any] = frozenset((Result, Reg, Parameter))
_PLAIN = frozenset((int, float, Negated, *_REGISTERS))


def _scalar_like(value: object) -> bool:
    return isinstance(value, Value) or is_number(value)


def _scalar(type: object, method: str) -> None:
    if not isinstance(type, ScalarType):
        raise located(PtxTypeError, f"`.{method}()` takes a type, not {described(type)}", f"write `v.{method}(f32)`")


def _known(*mnemonics: str) -> Form:
    form = find(*mnemonics)
    if form is None:
        raise located(PtxTypeError, f"PTX has no `{mnemonics[0]}`", "convert: `v.to(u32)` or `v.to(f32)`")
    return form


@cache
def _raw_move(bits: int) -> Form | None:
    """The mov of so many bits of any type."""
    return find(f"mov.b{bits}")


def _move(type: ScalarType) -> Form:
    form = move(type)
    if form is None:
        wide = "f32" if type.is_float else "s32" if type.is_signed else "u32"
        raise located(PtxTypeError, f"PTX has no mov of {type}", f"keep it in a `reg({wide})`: `v.to({wide})`")
    return form


def _home(value: Value, trace: Trace) -> Region:
    """The region that a value belongs to which is not there yet; an EscapeError if that is closed."""
    home = value.region.home if isinstance(value.region, Unset) else value.region
    if home.owner is not trace:
        value.region = home
        escaped(value)
    return home


def emit(form: Form, type: ScalarType, *sources: ir.Operand, depth: int = 3) -> Value:
    """Append an instruction with one result, which is a new Value of ``type``."""
    trace = thread.trace or current()
    register = trace.supply[type]()
    trace.emit(form, (register, *sources), None, None, depth)
    return Result(register, type, trace.region)


def constant(trace: Trace, value: object, type: ScalarType) -> Value:
    """A number in a register, loaded once at the top of the kernel: for operands where PTX allows no number."""
    number = literal(value, type)
    found: Value | None = trace.constants.get(number)
    if found is None:
        moved = data_type(type)
        register = trace.fresh(type)
        trace.prepend(_move(moved), (register, ir.Immediate(number.bits, moved)))
        found = trace.constants[number] = Result(register, type, trace.kernel)
    return found


def set_source(trace: Trace, value: Any, type: ScalarType) -> ir.Operand:
    """A value or number to be copied into a register of ``type``."""
    if isinstance(value, Value):
        if value.type is not type:
            raise located(
                PtxTypeError, f"a register of {type} does not take a {value.type}",
                conversions(value, type),
            )
        return value.use(trace)
    if is_number(value):
        return literal(value, type)
    raise located(PtxTypeError, f"a register of {type} does not take {described(value)}", "give a Value or a number")


def set_register(trace: Trace, register: ir.Register, source: ir.Operand, type: ScalarType) -> None:
    """``mov register, source``."""
    if source.__class__ is ir.Immediate:
        if type is pred:
            # The table's mov.pred takes no number; a comparison of numbers is one instruction too.
            zero = ir.Immediate(0, u32)
            trace.emit(_known("setp.eq.u32" if source.bits else "setp.ne.u32"), (register, zero, zero))
            return
        moved = data_type(type)
        if source.type is not moved:
            source = ir.Immediate(source.bits, moved)
    trace.emit(_move(type), (register, source), None, None, 3)


# ---------------------------------------------------------------------------------------------------------------------
# Operators


def _unary(op: str, a: Value) -> Value:
    trace = current()
    try:
        form = unary(op, a.type)
    except PtxTypeError as error:
        raise located(PtxTypeError, error.message, error.hint) from None
    return emit(form, a.type, a.use(trace))


def _binary(
    op: str, a: Value, b: Any, swapped: bool = False, out: Any = None, known: dict[ScalarType, _Ready] | None = None
) -> Any:
    """``a op b`` (``b op a`` if swapped), into a new Value or into ``out``; noted in ``known`` for the next time."""
    trace = thread.trace
    if trace is None:
        escaped(a)
    kind = b.__class__
    if kind not in _PLAIN and hasattr(kind, "_owns_arithmetic"):
        return NotImplemented
    type = a.type
    operation = _operation(op, type)
    form, result, second, fma = operation
    if swapped and second is not type and not (kind in _REGISTERS and b.type is second):
        return _swapped_shift(trace, op, a, b)
    right = b.use(trace) if kind in _REGISTERS and b.type is second else _right(trace, operation, op, a, b, swapped)
    if type.kind == "b" and result is type is second and isinstance(b, Value):
        result = b.type
    left = a.use(trace)
    target = trace.supply[result]() if out is None else out.write(trace, 3)
    if fma:
        _fused(trace, operation, target, *((right, left) if swapped else (left, right)))
    else:
        trace.emit(form, (target, right, left) if swapped else (target, left, right), None, None, 3)
        if known is not None:
            _note(known.setdefault(type, _Ready(form, operation.result, second, {}, {})), b, right)
    return Result(target, result, trace.region) if out is None else out


def _note(ready: _Ready, number: Any, operand: ir.Operand) -> None:
    """Keep what a number became; not of a float zero, which may be negative, or a NaN, which equals nothing."""
    if operand.__class__ is ir.Immediate:
        if number.__class__ is int:
            ready.ints[number] = operand
        elif number.__class__ is float and number and number == number:
            ready.floats[number] = operand


def _operation(op: str, type: ScalarType) -> Operation:
    try:
        return binary(op, type)
    except PtxTypeError as error:
        raise located(PtxTypeError, error.message, error.hint) from None


def _right(trace: Trace, operation: Operation, op: str, a: Value, b: Any, swapped: bool) -> ir.Operand:
    """The second operand of an operator, where it is not simply a Value of the type wanted."""
    wanted = operation.second
    if b.__class__ is int and b == 0 and not swapped and op in ("//", "%"):
        raise located(PtxTypeError, f"`{op}` by the number 0", "PTX leaves the result open; a divisor is not 0")
    if isinstance(b, Value):
        if b.type is wanted or _mixes(op, b.type, wanted):
            return b.use(trace)
        if wanted is a.type:
            raise mismatch(op, a, b)
        raise located(
            PtxTypeError, f"the right side of `{op}` is a count in {wanted}, not {b.type}",
            f"`{named(b, 'n')}.to({wanted})`",
        )
    if not is_number(b) or wanted is pred:
        hint = "operands are Values, regs and Python numbers"
        if isinstance(b, bool):
            hint = "decide it in Python: `if flag:`"
        raise located(PtxTypeError, f"`{op}` of {a._kind()} and {described(b)}", hint)
    if wanted.register is not wanted:
        return constant(trace, b, wanted).register
    return literal(b, wanted, operation.form.operands[1 if swapped else 2].type)


def _mixes(op: str, one: ScalarType, other: ScalarType) -> bool:
    """Whether an operator on bits takes the two types together: untyped bits go with all of their size."""
    return op in ("&", "|", "^", "==", "!=") and one.bits == other.bits and "b" in (one.kind, other.kind)


def _swapped_shift(trace: Trace, op: str, amount: Value, number: Any) -> Value:
    """``1 << v``: the number takes the type of v."""
    form, result, second, _ = binary(op, amount.type)
    if not is_number(number):
        raise located(
            PtxTypeError, f"`{op}` of {described(number)} and {amount.type}", "operands are Values and numbers"
        )
    if amount.type is not second:
        raise located(
            PtxTypeError, f"the right side of `{op}` is a count in {second}, not {amount.type}",
            f"`{named(amount, 'n')}.to({second})`",
        )
    return emit(form, result, literal(number, amount.type, form.operands[1].type), amount.use(trace))


def _fused(trace: Trace, operation: Operation, target: ir.Register, a: ir.Operand, b: ir.Operand) -> None:
    """bf16 arithmetic without the instructions of sm_90: the fused multiply-add that rounds to the same."""
    places = {"a": a, "b": b}
    sources = [places[p] if isinstance(p, str) else _both_halves(trace, p, operation.result) for p in operation.fma]
    trace.emit(operation.form, (target, *sources))


def _both_halves(trace: Trace, value: float, type: ScalarType) -> ir.Register:
    """A constant of a bf16, or of a bf16x2 in both its halves."""
    if type.lanes == 1:
        return constant(trace, value, type).register
    return constant(trace, encode(value, bf16) * 0x10001, u32).register
