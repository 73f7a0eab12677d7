"""Arrays: pointers that know the extents and strides of what they point to.

Extents and strides that are known while tracing are Python ints, so that constant indices become byte offsets of one
base register: ptxas can merge and widen such accesses, which it cannot where each element has an address of its own.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import PtxTypeError, TraceError
from ...types import TYPES, ScalarType
from ..builder import Trace, current
from ..errors import described, located
from ..values.literals import is_number, plain
from ..values.value import Reg, Result, Value, emit
from .addresses import address_of, advance, form_of, refuse_items
from .declared import Declared
from .pointers import Pointer

__all__ = ["View", "row_major", "with_extents"]

Extent = Any
"""An int where it is known while tracing, else a u32 Value."""


class View(Pointer):
    """An array in memory: ``a[i, j]``, ``a.shape``, ``a.strides`` (in elements); ``a[i]`` is a row of it."""

    __slots__ = ("origin", "shape", "strides")

    def __init__(
        self, dtype: ScalarType, space: str, base: Value | Declared, shape: tuple[Extent, ...],
        strides: tuple[Extent, ...], offset: int = 0,
    ) -> None:
        super().__init__(dtype, space, base, offset)
        self.shape = shape
        self.strides = strides
        self.origin: ir.Indexed | None = None
        """The whole array, and the indices that have led to this row; None where any index out of range is a fault."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def _kind(self) -> str:
        return f"array of {self._element_kind()}"

    def at(self, *index: Any) -> Pointer:
        """The address of the element ``a[i, j]``: as many indices as there are dimensions."""
        if len(index) != len(self.shape):
            refuse_items(len(index), len(self.shape), "a.at(i, j)")
        if self.origin is None:
            return Pointer(self.dtype, self.space, *self.place(index))
        return _Element(self, index)

    def _address(self, trace: Trace, index: Any) -> ir.Address:
        address = address_of(trace, *self.place(index))
        if self.origin is not None:
            items = index if index.__class__ is tuple else (index,)
            trace.indexed.append((address, self.origin, tuple([
                (item.register, item.type) if item.__class__ is Result else item if item.__class__ is int
                else _asked(item) for item in items
            ])))
        return address

    def _row(self, items: tuple[Any, ...]) -> ir.Indexed | None:
        """What indices of some dimensions ask for, whose address has just been computed."""
        origin = self.origin
        return None if origin is None else origin._replace(indices=origin.indices + tuple(map(_kept, items)))

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if len(items) < len(self.shape):
            base, offset = self.place(items)
            rest = len(items)
            row = View(self.dtype, self.space, base, self.shape[rest:], self.strides[rest:], offset)
            row.origin = self._row(items)
            return row
        return self._element(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        items = index if isinstance(index, tuple) else (index,)
        if len(items) != len(self.shape):
            refuse_items(len(items), len(self.shape))
        self._put(index, value, None)

    def place(self, index: Any) -> tuple[Value | Declared, int]:
        """Base and offset of the element (or of the row) at an index or a tuple of them."""
        items = index if index.__class__ is tuple else (index,)
        if len(items) > len(self.shape):
            refuse_items(len(items), len(self.shape))
        base, offset, size = self.base, self.offset, self.size
        for axis, item in enumerate(items):
            stride = self.strides[axis]
            if item.__class__ is int or is_number(item):
                item = self._checked(item, axis)
                if not isinstance(stride, Value):
                    offset += item * stride * size
                    continue
                if item == 0:
                    continue
                item, stride = stride, item
            elif not isinstance(item, Value):
                self._index(item)
            if base.__class__ is Declared:
                base = self.register()
            base = _stepped(base, item, stride, size)  # type: ignore[arg-type]
        return base, offset

    def _checked(self, item: Any, axis: int) -> int:
        item = plain(item)
        if isinstance(item, bool) or not isinstance(item, int):
            raise located(
                PtxTypeError, f"an array is indexed by integers, not {described(item)}", "`a[i]` with a u32 or an int"
            )
        extent = self.shape[axis]
        if item < 0 or (isinstance(extent, int) and item >= extent):
            size = f"which has {extent} elements" if isinstance(extent, int) else "which begins at 0"
            raise located(
                TraceError, f"index {item} is out of range in dimension {axis} of the array, {size}",
                f"`a.shape[{axis}] - 1` is the last" if item < 0 else f"indices run from 0 to {extent - 1}",
            )
        return item


class _Element(Pointer):
    """The address of an element by its indices, which go with it to the instruction that it is given to."""

    __slots__ = ("indexed",)

    def __init__(self, array: View, index: tuple[Any, ...]) -> None:
        super().__init__(array.dtype, array.space, *array.place(index))
        self.indexed = array._row(index)

    def operand(self, trace: Trace) -> ir.Address:
        address = super().operand(trace)
        if self.indexed is not None:
            trace.indexed.append((address, self.indexed, ()))
        return address


def _asked(item: Any) -> int | ir.Register:
    """An index as a number or a register, with the type that it has in Python."""
    if isinstance(item, Value):
        return _new(ir.Register, (item.register[0], item.type))
    number: int = plain(item)
    return number


_new: Any = tuple.__new__


def _kept(item: Any) -> int | ir.Register:
    """An index as it is now: a reg may change before the access."""
    if item.__class__ is not Reg:
        return _asked(item)
    trace = current()
    kept = ir.Register(f"%index${len(trace.kept)}", item.type)
    trace.kept.append((trace.body[-1], kept, item.register))  # type: ignore[arg-type]
    return kept


def _stepped(base: Value, index: Value, stride: Extent, size: int) -> Value:
    """``base + index * stride * size`` without a product of 32 bits that could overflow."""
    trace = current()
    if isinstance(stride, Value):
        if index.type.bits != 32 or not index.type.is_integer:
            return advance(trace, base, index * (stride.to(index.type) if index.type.is_integer else stride), size)
        key = ("product", index.register.name, stride.register.name)
        product: Value | None = trace.addresses.get(key)
        if product is None or product.region.owner is not trace or index.__class__ is Reg:
            form, kind = form_of("mul.wide", index.type), TYPES[f"{index.type.kind}64"]
            product = trace.addresses[key] = emit(form, kind, index.use(trace), stride.use(trace))
        return advance(trace, base, product, size)
    return advance(trace, base, index, stride * size)


def with_extents(view: View, name: str, exact: bool) -> View:
    """A variable's view, whose indices can be checked; ``exact``: nothing else lies behind it in the variable."""
    if len(view.shape) > 1 or not exact:
        view.origin = ir.Indexed(name, view.dtype, view.shape, ())
    return view


def row_major(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The strides of an array in C order."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides[: len(shape)]))
