"""Pointers: addresses that know what they point to.

A `Pointer` counts elements. What is known while tracing costs nothing: integer offsets fold into ``[%rd1+16]``; a
run-time index is a product and a sum. The same index on the same pointer is computed once, for the address arithmetic
is not the user's, and everything later (verifier, assembler, emulator) would pay for its repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ... import ir
from ...errors import PtxTypeError, TraceError, with_article
from ...types import ScalarType, pred, u64
from ..builder import Trace, current, thread
from ..errors import conversions, described, located, no_type
from ..rules.python_protocol import RunTime
from ..values.literals import is_number, literal
from ..values.moves import set_register
from ..values.operators import COMPARISONS
from ..values.value import Reg, Result, Value, Vec, emit
from .addresses import (
    ReadOnly, access, address_of, address_type, advance, form_of, guard_of, no_index, variable_address, whole,
)
from .cache_hints import policy_operand, with_hints
from .declared import Declared

__all__ = ["Pointer", "RegPointer"]


def _comparison(symbol: str) -> Callable[[Pointer, Any], Any]:
    def compare(self: Pointer, other: Any) -> Value:
        if not isinstance(other, Pointer) or other.space != self.space:
            raise located(
                PtxTypeError, f"`{symbol}` of a pointer and {described(other)}",
                "compare pointers of one state space, or their numbers: `p.address == 0`",
            )
        form = form_of(f"setp.{COMPARISONS[symbol]}", address_type(self.space))
        return emit(form, pred, self.address.use(current()), other.address.use(current()))

    return compare


class Pointer(RunTime):
    """The address of an element of ``dtype`` in state space ``space``.

    ``base`` is the register it is in or a variable, ``offset`` counts bytes from there.
    """

    __slots__ = ("dtype", "space", "base", "offset", "size")
    _owns_arithmetic = True
    __array_ufunc__ = None  # numpy leaves `np.int64(3) + p` to the pointer

    def __init__(self, dtype: ScalarType, space: str, base: Value | Declared, offset: int = 0) -> None:
        self.dtype = dtype
        self.space = space
        self.base = base
        self.offset = offset
        self.size = dtype.bytes

    def __repr__(self) -> str:
        base = self.base if isinstance(self.base, Declared) else self.base.register.name
        return f"<{self.space} {self.dtype} pointer {base}{f'{self.offset:+}' if self.offset else ''}>"

    def _kind(self) -> str:
        return f"pointer to {self._element_kind()}"

    def _element_kind(self) -> str:
        return f"const {self.dtype}" if self.read_only else str(self.dtype)

    @property
    def read_only(self) -> bool:
        """Whether it was declared to point to what the kernel only reads, ``Ptr[const[f32]]``."""
        return self.space.__class__ is ReadOnly

    # -- arithmetic, in elements

    def __add__(self, index: Any) -> Pointer:
        return self._moved(index, 1)

    __radd__ = __add__

    def __sub__(self, index: Any) -> Pointer:
        if isinstance(index, Pointer):
            raise located(
                PtxTypeError, "the difference of two pointers is no pointer",
                f"`(p.address - q.address) // {self.size}` counts elements of {self.size} bytes",
            )
        return self._moved(index, -1)

    def _moved(self, index: Any, sign: int) -> Pointer:
        size = sign * self.size
        if is_number(index):
            if thread.trace is not None:
                thread.trace.location()  # no instruction has a line to check here
            return Pointer(self.dtype, self.space, self.base, self.offset + whole(index) * size)
        base = advance(thread.trace or current(), self.register(), self._index(index), size)
        return Pointer(self.dtype, self.space, base, self.offset)

    def _no_arithmetic(self, _: object) -> NoReturn:
        raise located(
            PtxTypeError, "a pointer is moved by `+` and `-` only", "`p + 4` is 4 elements on; `p.address` is a number"
        )

    __mul__ = __rmul__ = __truediv__ = __floordiv__ = __mod__ = __lshift__ = __rshift__ = _no_arithmetic
    __and__ = __or__ = __xor__ = __pow__ = __rsub__ = _no_arithmetic

    def _index(self, index: Any) -> Value:
        if isinstance(index, Value):
            return index
        if isinstance(index, (tuple, slice)):
            what = "a slice" if isinstance(index, slice) else f"{len(index)} indices"
            raise located(
                PtxTypeError, f"a pointer takes one index, not {what}",
                "`p.load(i, width=4)` for a vector" if isinstance(index, slice)
                else "a parameter `a: Array[f32, 2]` takes two",
            )
        raise no_index(index)

    def cast(self, dtype: ScalarType) -> Pointer:
        """The same address as a pointer to another type; no instruction."""
        if not isinstance(dtype, ScalarType):
            raise no_type("`.cast()` takes a type", dtype, "`p.cast({})`", "u32")
        return Pointer(dtype, self.space, self.base, self.offset)

    # -- the address itself

    def register(self) -> Value:
        """The base in a register; that of a variable is loaded once, at the top of the kernel."""
        base = self.base
        return variable_address(current(), base, self.space) if isinstance(base, Declared) else base

    @property
    def address(self) -> Value:
        """The address as a number: u64, or u32 in shared and local memory. An ``add`` where there is an offset."""
        base = self.register()
        if self.offset:
            moved: Value = base + self.offset % (1 << base.type.bits)
            return moved
        return base.copy() if isinstance(base, Reg) else base

    def operand(self, trace: Trace) -> ir.Address:
        """It as the address of an instruction."""
        return address_of(trace, self.base, self.offset)

    def generic(self) -> Pointer:
        """The generic address, for instructions that name no state space."""
        if self.space in ("global", "generic"):
            generic = ReadOnly("generic") if self.read_only else "generic"
            return Pointer(self.dtype, generic, self.base, self.offset)
        form = form_of(f"cvta.{self.space}", u64)
        return Pointer(self.dtype, "generic", emit(form, u64, self.address.to(u64).use(current())))

    def at(self, *index: Any) -> Pointer:
        """The address of an element, for instructions that take one: ``ptx.atom.global_.add.u32(x.at(i), 1)``.

        ``x.at(i)`` of a pointer, ``a.at(i, j)`` of an array: as many indices as it has dimensions, as in ``a[i, j]``,
        and the same as the address behind it. A later change of a reg that was an index does not move it.
        """
        if len(index) != 1:
            raise self._dimensions(index)
        return self + index[0]

    def _dimensions(self, index: tuple[Any, ...]) -> PtxTypeError:
        return located(PtxTypeError, f"a pointer takes one index, not {len(index)}", "`p.at(i)`")

    # -- access

    def place(self, index: Any) -> tuple[Value | Declared, int]:
        """Base and offset of the element at an index."""
        if index.__class__ is int:
            return self.base, self.offset + index * self.size
        if index.__class__ is not Result and is_number(index):
            return self.base, self.offset + whole(index) * self.size
        base = self.base
        if base.__class__ is Declared:
            base = self.register()
        trace = thread.trace or current()
        return advance(trace, base, self._index(index), self.size), self.offset  # type: ignore[arg-type]

    def _address(self, trace: Trace, index: Any) -> ir.Address:
        """The address of the element at an index, as that of an instruction."""
        return address_of(trace, *self.place(index))

    def __getitem__(self, index: Any) -> Any:
        return self._element(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._put(index, value, None)

    def load(
        self, index: Any = 0, *, width: int = 1, pred: Any = None, out: Any = None, cache: str | None = None,
        evict: str | None = None, evict_l2: str | None = None, prefetch: str | None = None, policy: Any = None,
    ) -> Any:
        """The element at ``index``, by one ``ld``; with ``width`` 2, 4 (or 8) a Vec of so many from there on.

        A vector lies aligned to its size. ``out`` is a reg (a list of them) to load into, and must be there where
        ``pred`` guards the load. The others are wishes to the caches (PTX manual, ld): ``cache="cs"`` an operator,
        ``evict="first"`` for how long L1 keeps the line and ``evict_l2`` L2, ``prefetch="256B"``, and a ``policy``
        that `createpolicy` made; a PtxTypeError says which go together.
        """
        hints = {"cache": cache, "evict": evict, "evict_l2": evict_l2, "policy": policy, "prefetch": prefetch}
        hinted = any(hint is not None for hint in hints.values())
        if out is None and pred is None and width == 1 and not hinted:
            return self._element(index)
        trace = current()
        form = access("ld", self.space, width, self.dtype)
        if hinted:
            form = with_hints(("ld", self.space, width, self.dtype), hints)
        policies = policy_operand(trace, policy)
        guard = None if pred is None else guard_of(trace, pred)
        if out is None:
            if guard is not None:
                raise located(
                    TraceError, "a guarded load may load nothing, and a Value has always been computed",
                    f"`v = reg({self.dtype}, 0)`, then `p.load(i, pred=.., out=v)`",
                )
            address = self._address(trace, index)
            supply = trace.supply[self.dtype]
            results = tuple([supply() for _ in range(width)])
        else:
            address = self._address(trace, index)
            results = self._targets(trace, out, width)
        trace.emit(form, (results[0] if width == 1 else ir.Vector(results), address, *policies), guard)
        if out is not None:
            return out
        if width == 1:
            return Result(results[0], self.dtype, trace.region)
        return Vec([Result(register, self.dtype, trace.region) for register in results])

    def _element(self, index: Any) -> Value:
        trace, dtype = thread.trace or current(), self.dtype
        form = access("ld", self.space, 1, dtype)
        address = self._address(trace, index)
        register = trace.supply[dtype]()
        trace.emit(form, (register, address), None, None, 3)
        return Result(register, dtype, trace.region)

    def _targets(self, trace: Trace, out: Any, width: int) -> tuple[ir.Register, ...]:
        regs = list(out) if isinstance(out, (list, tuple)) else [out]
        for target in regs:
            if not isinstance(target, Reg) or target.type is not self.dtype:
                got = target.type if isinstance(target, Value) else described(target)
                raise located(
                    PtxTypeError, f"`out` of a load of {self.dtype} is a reg({self.dtype}), not {got}",
                    f"`v = reg({self.dtype})`",
                )
        if len(regs) != width:
            raise located(
                PtxTypeError, f"`out` of a load of width {width} has {len(regs)} registers",
                f"`[reg({self.dtype}) for _ in range({width})]`",
            )
        with trace.vector_of(regs):
            return tuple([target.write(trace) for target in regs])

    def store(
        self, index: Any, values: Any, *, pred: Any = None, cache: str | None = None, evict: str | None = None,
        evict_l2: str | None = None, policy: Any = None,
    ) -> None:
        """Store a value at ``index``, by one ``st``; a sequence of 2, 4 (or 8) as a vector from there on.

        Wishes to the caches are those of :meth:`load` (PTX manual, st).
        """
        hints = {"cache": cache, "evict": evict, "evict_l2": evict_l2, "policy": policy}
        self._put(index, values, pred, hints if any(hint is not None for hint in hints.values()) else None)

    def _put(self, index: Any, values: Any, pred: Any, hints: dict[str, Any] | None = None) -> None:
        trace = thread.trace or current()
        if self.space == "const":
            raise located(
                TraceError, "constant memory cannot be written", "`shared(f32, n)`, or a parameter `Ptr[f32]`"
            )
        if self.space.__class__ is ReadOnly:
            raise located(
                TraceError, f"a store through {with_article(self._kind())}, which only reads",
                f"a parameter that is written is a `Ptr[{self.dtype}]` or an `Array[{self.dtype}, ..]`, without "
                "`const`",
            )
        if isinstance(values, (tuple, list)):
            form = access("st", self.space, len(values), self.dtype)
            sources = tuple([self._source(trace, value) for value in values])
            source: ir.Operand = ir.Vector(sources) if len(sources) > 1 else sources[0]
        else:
            form = access("st", self.space, 1, self.dtype)
            source = self._source(trace, values)
        policies: tuple[ir.Operand, ...] = ()
        if hints is not None:
            width = len(values) if isinstance(values, (tuple, list)) else 1
            form = with_hints(("st", self.space, width, self.dtype), hints)
            policies = policy_operand(trace, hints["policy"])
        address = self._address(trace, index)
        guard = None if pred is None else guard_of(trace, pred)
        trace.emit(form, (address, source, *policies), guard, None, 3)

    def _source(self, trace: Trace, value: Any) -> ir.Operand:
        if isinstance(value, Value):
            if value.type is not self.dtype:
                raise located(
                    PtxTypeError, f"{with_article(value.type)} stored to a pointer to {self.dtype}",
                    conversions(value, self.dtype),
                )
            return value.use(trace)
        if is_number(value):
            return literal(value, self.dtype, self.dtype.register)
        raise located(
            PtxTypeError, f"{described(value)} stored to a pointer to {self.dtype}", "store a Value or a number"
        )

    # -- comparison of addresses

    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    __eq__ = _comparison("==")
    __ne__ = _comparison("!=")
    __hash__ = RunTime.__hash__

    def as_register(self, name: str) -> RegPointer:
        """A pointer that can be moved on, for `reg`."""
        trace = current()
        kind = address_type(self.space)
        target = Reg(trace.fresh(kind, name), kind, trace.region)
        mov, add = form_of("mov", kind), form_of("add", kind)
        if isinstance(self.base, Declared):
            trace.emit(mov, (target.register, self.base.use(trace)._replace(offset=self.offset)))
        elif self.offset:
            trace.emit(add, (target.register, self.base.use(trace), literal(self.offset % (1 << kind.bits), kind)))
        else:
            trace.emit(mov, (target.register, self.base.use(trace)))
        return RegPointer(self.dtype, self.space, target)


class RegPointer(Pointer):
    """A pointer in a register of its own, ``p = reg(x)``: ``p += 4`` moves it on in place."""

    __slots__ = ()
    base: Reg

    def copy(self) -> Pointer:
        """Where it points now, as a pointer that stays there, by one ``mov``."""
        return Pointer(self.dtype, self.space, self.base.copy(), self.offset)

    def _moved(self, index: Any, sign: int) -> Pointer:
        # A new pointer must not move along with this one, so the address is computed now.
        size = sign * self.size
        if is_number(index):
            return Pointer(self.dtype, self.space, self.base + whole(index) * size % (1 << self.base.type.bits))
        return Pointer(self.dtype, self.space, advance(current(), self.base, self._index(index), size))

    def _change(self, index: Any, sign: int) -> RegPointer:
        trace, base = current(), self.base
        size = sign * self.size
        if is_number(index):
            moved = literal(whole(index) * size % (1 << base.type.bits), base.type)
            base.use(trace)
            target = base.write(trace, 3, self)
            trace.emit(form_of("add", base.type), (target, target, moved), None, None, 3)
        else:
            advance(trace, base, self._index(index), size, base.write(trace, 3, self))
        return self

    def __iadd__(self, index: Any) -> RegPointer:
        return self._change(index, 1)

    def __isub__(self, index: Any) -> RegPointer:
        return self._change(index, -1)

    def set(self, pointer: Pointer) -> None:
        """Point it to where another pointer of the same kind points, by one instruction."""
        if not isinstance(pointer, Pointer) or (pointer.dtype, pointer.space) != (self.dtype, self.space):
            raise located(
                PtxTypeError, f"{with_article(self.space)} pointer to {self.dtype} does not take {described(pointer)}",
                "`p.set(q + 4)`",
            )
        if pointer.read_only and not self.read_only:
            raise located(
                PtxTypeError, f"a pointer to {self.dtype} does not take one to const {self.dtype}, which only reads",
                "`p = reg(q)` of a pointer to const",
            )
        trace = current()
        source = pointer.address.use(trace)
        set_register(trace, self.base.write(trace, 2, self), source, self.base.type)
