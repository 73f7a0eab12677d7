"""``map``: any Python function over Values as a kernel over arrays, broadcast by numpy's rules, vectorised."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import (
    Array, Kernel, Ptr, ScalarType, bf16, cdiv, f16, f32, f64, otherwise, pred, ptx, ptx_kernel, s8, s32, u8, u32,
    when,
)
from .. import arguments
from ..functions import expect_function
from ..storage import in_memory, load, load_packed, per_access, store, unpacked, working
from .layout import Walk, walk

__all__ = ["Map", "map"]

THREADS = 256
MOST = 8
"""Operands and results of a kernel."""
CHUNK = 2**30
"""Elements of a launch, whose indices are u32."""
Operand = Any
Types = tuple[ScalarType, ...]


class Map:
    """A function over Values as a function over arrays and numbers. See :func:`map`."""

    def __init__(self, function: Callable[..., Any], *, promote: bool = False, name: str | None = None) -> None:
        self.function, self.promote = function, promote
        self.name = name or re.sub(r"\W+", "_", getattr(function, "__name__", "map")).strip("_")
        self._results: dict[tuple[object, ...], Types] = {}
        self._kernels: dict[Any, Kernel] = {}

    def __call__(self, *operands: Operand, out: Any = None, dtype: ScalarType | None = None) -> Any:
        names = [f"operand {number}" for number in range(len(operands))]
        return self.launch(dict(zip(names, operands)), out=out, dtype=dtype)

    def launch(self, operands: dict[str, Operand], *, out: Any = None, dtype: ScalarType | None = None) -> Any:
        """The same with names for the operands, which errors use."""
        if all(_is_number(value) for value in operands.values()):
            operands = {n: np.asarray(v) if isinstance(v, np.generic) else v for n, v in operands.items()}
        arrays = {name: value for name, value in operands.items() if not _is_number(value)}
        for name, array in arrays.items():
            arguments.expect_array(name, array, STORED)
        if not arrays:
            raise arguments.wrong("none of the operands is an array", hint="`numpy.asarray(x)`")
        types = self._types(operands)
        computed = self._computed(types, operands)
        self._check_count(len(types) + 1)
        shape = arguments.broadcast(**arrays)
        results = self._result_types(types, computed, operands)
        if dtype is not None:
            results = (dtype,) * len(results)
        self._check_count(len(types) + len(results))
        like = next(iter(arrays.values()))
        outs = _outputs(out, like, shape, results, arrays)
        if 0 not in shape:
            self._run(shape, operands, outs, types, computed, results)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def kernel(self, *types: ScalarType, width: int | None = None) -> Kernel:
        """The kernel for contiguous arrays of these types and one shape."""
        computed = self._computed(types, {})
        results = self._result_types(types, computed, {})
        made = width or per_access(*(in_memory(each) for each in (*types, *results)))
        return self._kernel(types, computed, results, None, tuple((True,) for _ in (*types, *results)), made)

    def _check_count(self, count: int) -> None:
        if count > MOST:
            raise arguments.wrong(f"`{self.name}` has {count} operands and results; it can have {MOST}")

    # Types

    def _types(self, operands: dict[str, Operand]) -> Types:
        """The types of arrays in memory, and those in which numbers are passed."""
        kinds = {
            name: arguments.DTYPES[arguments.dtype_name(value)]
            for name, value in operands.items() if not _is_number(value)
        }
        common = promoted([kind for kind in kinds.values() if kind is not pred] or [f32])
        return tuple(
            kinds[name] if name in kinds else _number_type(value, common) for name, value in operands.items()
        )

    def _computed(self, types: Types, operands: dict[str, Operand]) -> Types:
        """The types that the function is given."""
        own = tuple(WIDER.get(kind, kind) for kind in types)
        if not self.promote:
            return own
        numbers = [_is_number(value) for value in operands.values()] or [False] * len(types)
        arrays = [kind for kind, number in zip(types, numbers) if kind is not pred and not number] or [f32]
        common = promoted(arrays)
        if any(kind.kind == "f" for kind in own) and common.kind != "f":
            common = f32
        common = WIDER.get(common, common)
        return tuple(pred if kind is pred else common for kind in own)

    def _result_types(self, types: Types, computed: Types, operands: dict[str, Operand]) -> Types:
        """What the function returns, from a trace of its own; narrow where all arrays of that kind are."""
        numbers = [_is_number(value) for value in operands.values()] or [False] * len(types)
        key = (*types, *computed, *numbers)
        if key not in self._results:
            expect_function(f"`{self.name}`", self.function, len(types), "a function of one element of each operand")
            found: list[ScalarType] = []

            def probe(_n: Any, operands_: Sequence[Any]) -> None:
                values = [_value(p, 0, 1, kind)[0] for p, kind in zip(operands_, computed)]
                found.extend(value.type for value in self._apply(values))

            annotations = [kind if kind is not pred else u8 for kind in types]
            _entry(probe, [Ptr[kind] for kind in annotations], f"{self.name}_probe").ptx()
            arrays = {kind for kind, number in zip(types, numbers) if not number}
            self._results[key] = tuple(_narrowed(kind, arrays) for kind in found)
        return self._results[key]

    def _apply(self, values: list[Any]) -> Sequence[Any]:
        found = self.function(*values)
        several = found if isinstance(found, (tuple, list)) else (found,)
        for each in several:
            if not isinstance(getattr(each, "type", None), ScalarType):
                raise arguments.wrong(f"`{self.name}` returned {each!r:.60}, not a Value", hint="`return x * 0 + each`")
        return several

    # Launches

    def _run(
        self, shape: tuple[int, ...], operands: dict[str, Operand], outs: list[Any], types: Types, computed: Types,
        results: Types,
    ) -> None:
        numbers = [_is_number(value) for value in operands.values()]
        arrays = [_walkable(value) for value, number in zip(operands.values(), numbers) if not number]
        memory = [in_memory(kind) for kind, number in zip((*types, *results), (*numbers, *[False] * len(outs)))
                  if not number]
        found = walk(shape, [arguments.bytes_of(array) for array in (*arrays, *outs)], per_access(*memory))
        varies = iter(found.varies)
        along = tuple(None if number else next(varies) for number in (*numbers, *[False] * len(outs)))
        kernel = self._kernel(types, computed, results, None if found.flat else len(found.extents), along, found.width)
        for count, views in _chunks(found):
            given = iter(views)
            values = [
                _passed(name, value, kind) if number else next(given)
                for (name, value), number, kind in zip(operands.items(), numbers, types)
            ]
            threads = count // found.width + (count % found.width if found.flat else 0)
            kernel[cdiv(threads, THREADS), THREADS](count if found.flat else threads, *values, *given)

    def _kernel(
        self, types: Types, computed: Types, results: Types, dims: int | None,
        varies: tuple[tuple[bool, ...] | None, ...], width: int,
    ) -> Kernel:
        """The kernel for contiguous arrays where ``dims`` is None; else for arrays of so many strides.

        ``varies`` is None for a number.
        """
        key = (types, computed, results, dims, varies, width)
        if key not in self._kernels:
            def annotation(kind: ScalarType, along: tuple[bool, ...] | None) -> Any:
                stored = in_memory(kind)
                if along is None:
                    return u32 if kind is pred else kind
                return Ptr[stored] if dims is None else Array[stored, dims + 1]

            annotations = [annotation(kind, along) for kind, along in zip((*types, *results), varies)]
            body = (_flat if dims is None else _strided)(self, computed, results, varies, width)
            kinds = "_".join(str(kind) for kind in (*types, *results))
            self._kernels[key] = _entry(body, annotations, f"{self.name}_{kinds}_x{width}")
        return self._kernels[key]


Varies = tuple["tuple[bool, ...] | None", ...]
Body = Callable[[Any, Sequence[Any]], None]


def _flat(mapped: Map, computed: Types, results: Types, varies: Varies, width: int) -> Body:
    """Contiguous arrays of ``n`` elements: a vector for each thread, then the rest one by one."""

    def elements(operands: Sequence[Any], start: Any, count: int) -> None:
        places = [start if along is None or along[0] else 0 for along in varies]
        _elements(mapped, computed, results, varies, operands, places, count)

    def body(n: Any, operands: Sequence[Any]) -> None:
        thread = ptx.ctaid.x * THREADS + ptx.tid.x
        if width == 1:
            with when(thread < n):
                elements(operands, thread, 1)
            return
        vectors = n // width
        with when(thread < vectors):
            elements(operands, thread * width, width)
        with otherwise():
            rest = vectors * (width - 1) + thread
            with when(rest < n):
                elements(operands, rest, 1)

    return body


def _strided(mapped: Map, computed: Types, results: Types, varies: Varies, width: int) -> Body:
    """Arrays with strides: ``n`` threads, each with a vector along the last dimension."""

    def body(n: Any, operands: Sequence[Any]) -> None:
        thread = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(thread < n):
            *extents, _ = operands[-1].shape
            index, rest = [], thread
            for extent in [extents[-1] // width if width > 1 else extents[-1], *extents[-2:0:-1]]:
                above = rest // extent
                index.append(rest - above * extent)
                rest = above
            if len(extents) == 1:
                index = [thread]
            else:
                index.append(rest)
            index.reverse()
            if width > 1:
                index[-1] = index[-1] * width
            pointers = [
                operand if along is None else operand.at(*(i if v else 0 for i, v in zip(index, along)), 0)
                for operand, along in zip(operands, varies)
            ]
            last = tuple(along and along[-1:] for along in varies)
            _elements(mapped, computed, results, last, pointers, [0] * len(varies), width)

    return body


def _elements(
    mapped: Map, computed: Types, results: Types, varies: Varies, operands: Sequence[Any], places: list[Any], count: int
) -> None:
    """The function of ``count`` elements from the places on; what does not vary is loaded once."""
    columns = []
    for operand, along, place, kind in zip(operands, varies, places, computed):
        if along is None:
            columns.append([operand.to(kind)] * count)
        else:
            several = count if along[0] else 1
            columns.append(_value(operand, place, several, kind) * (count // several))
    rows = [mapped._apply(list(row)) for row in zip(*columns)]
    for values, kind, output, place in zip(zip(*rows), results, operands[len(computed) :], places[len(computed) :]):
        store(output, place, [value.to(pred) if kind is pred else value for value in values])


def _value(operand: Any, place: Any, count: int, computed: ScalarType) -> list[Any]:
    """Elements in the type in which they are computed."""
    if operand.dtype in WIDER and computed is not pred:
        return [value.to(computed) for value in unpacked(load_packed(operand, place, count), operand.dtype, count)]
    return [value.to(computed) for value in load(operand, place, count)]


def _entry(body: Body, annotations: Sequence[Any], name: str) -> Kernel:
    """A kernel of ``n`` and of as many further parameters as there are annotations."""
    forms: tuple[Callable[..., None], ...] = (
        lambda n, a: body(n, (a,)),
        lambda n, a, b: body(n, (a, b)),
        lambda n, a, b, c: body(n, (a, b, c)),
        lambda n, a, b, c, d: body(n, (a, b, c, d)),
        lambda n, a, b, c, d, e: body(n, (a, b, c, d, e)),
        lambda n, a, b, c, d, e, f: body(n, (a, b, c, d, e, f)),
        lambda n, a, b, c, d, e, f, g: body(n, (a, b, c, d, e, f, g)),
        lambda n, a, b, c, d, e, f, g, h: body(n, (a, b, c, d, e, f, g, h)),
    )
    form = forms[len(annotations) - 1]
    form.__annotations__ = {"n": u32, **dict(zip("abcdefgh", annotations))}
    return ptx_kernel(name=name, reqntid=THREADS)(form)


# ---------------------------------------------------------------------------------------------------------------------

STORED = [name for name, kind in arguments.DTYPES.items() if kind.bytes > 1 or kind.kind != "f"]
"""All but the floating-point types of 8 bits, of which PTX converts pairs only."""
_ORDER: dict[ScalarType, int] = {kind: place for place, kind in enumerate((f16, bf16, f32, f64))}


WIDER: dict[ScalarType, ScalarType] = {f16: f32, bf16: f32, s8: s32, u8: u32}
"""What narrow types are computed in."""


def _narrowed(kind: ScalarType, arrays: set[ScalarType]) -> ScalarType:
    """The type in which a result is stored, if the arrays that are computed in its type are all of a narrower one."""
    alike = {each for each in arrays if WIDER.get(each, each) is kind}
    return alike.pop() if len(alike) == 1 else kind


def promoted(kinds: Sequence[ScalarType]) -> ScalarType:
    """The type that several are computed in together: of floating-point types the widest, else as numpy has it."""
    floats = [kind for kind in kinds if kind.kind == "f"]
    if floats:
        return f32 if {f16, bf16} <= set(floats) and f64 not in floats else max(floats, key=_ORDER.__getitem__)
    found = np.result_type(*(np.dtype(str(kind.numpy_name)) for kind in kinds))
    return f64 if found.kind == "f" else arguments.DTYPES[found.name]


def _is_number(value: Operand) -> bool:
    return isinstance(value, (bool, int, float, np.generic))


def _number_type(value: Any, common: ScalarType) -> ScalarType:
    """The type of a Python number beside arrays of type ``common``."""
    if isinstance(value, (bool, np.bool_)):
        return pred
    if common.kind == "f":
        return working(common)
    return common if isinstance(value, (int, np.integer)) else f32


def _passed(name: str, value: Any, kind: ScalarType) -> Any:
    """A number as the kernel is given it, if the type holds it."""
    if kind.kind == "f":
        try:
            return float(value)
        except OverflowError:
            raise arguments.wrong(f"`{name}` has {int(value).bit_length()} bits, more than a float can have") from None
    if kind is not pred and not kind.bounds[0] <= int(value) <= kind.bounds[1]:
        low, high = kind.bounds
        raise arguments.wrong(f"`{name}` is {int(value)}; of {arguments.name_of(kind)} it can be {low} to {high}")
    return int(value)


def _walkable(array: Any) -> Any:
    """The array, or a copy where its strides are negative or no multiples of an element."""
    if isinstance(array, np.ndarray) and any(step < 0 or step % array.itemsize for step in array.strides):
        return np.ascontiguousarray(array)
    if isinstance(array, np.ndarray) and array.ctypes.data % array.itemsize:
        return array.copy()
    return arguments.dense(array) if any(step < 0 for step in arguments.strides(array)) else array


def _outputs(out: Any, like: Any, shape: tuple[int, ...], results: Types, arrays: dict[str, Any]) -> list[Any]:
    """New arrays, or those given, which may be operands where they are the same array."""
    if out is None:
        return [arguments.empty_like(like, shape, kind) for kind in results]
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(outs) != len(results):
        raise arguments.wrong(f"`out` has {len(outs)} arrays; there are {len(results)} results")
    for number, (each, kind) in enumerate(zip(outs, results)):
        name = "out" if len(outs) == 1 else f"out[{number}]"
        found = arguments.expect_array(name, each, [arguments.name_of(kind)])
        if found != shape:
            raise arguments.wrong(f"`{name}` has shape {list(found)}; the operands broadcast to {list(shape)}")
        if _walkable(each) is not each:
            raise arguments.wrong(f"`{name}` has strides {each.strides}, which a kernel cannot store by")
        earlier = {f"out[{place}]": other for place, other in enumerate(outs[:number])}
        arguments.expect_output(each, in_place=list(arrays), name=name, **arrays, **earlier)
    return outs


def _chunks(found: Walk) -> Any:
    """The walk in parts whose elements a u32 counts: their elements, and the views of each."""
    total = int(np.prod(found.extents, dtype=object))
    if total <= CHUNK or not found.flat:
        if total // found.width >= 2**31:
            raise arguments.wrong(f"arrays of {total} elements that are not contiguous; the most are {2**31 - 1}")
        yield total, found.views
        return
    for start in range(0, total, CHUNK):
        end = min(start + CHUNK, total)
        views = [view.reshape(-1)[start:end] if along[0] else view for view, along in zip(found.views, found.varies)]
        yield end - start, views


@lru_cache(maxsize=256)
def map(function: Callable[..., Any], *, promote: bool = False) -> Map:  # noqa: A001 -- as Python has it
    """``function``, which takes Values and returns one or several, as a function over arrays and numbers.

    The result is called as ``mapped(x, y, ..., out=None, dtype=None)``. Arrays are broadcast by numpy's rules, and may
    have strides; at least one operand is an array, and operands and results are 8 at most.

    The function is given elements of float16 and bfloat16 as f32, of int8 and uint8 as s32 and u32, of bool as
    predicates, all others in their own type; with ``promote`` all in the one type that they are promoted to. Numbers
    are passed at run time, in the type of the arrays. A result is stored in its own type, but where all arrays that are
    computed in that type are of one narrower type, in that; ``dtype`` names another one. ``out`` is an array, or a
    tuple of one for each result, and may be one of the operands.

    One kernel for each combination of types: 16-byte accesses where all arrays are contiguous and aligned, or where
    their last dimensions are, elements one by one elsewhere.

    Raises:
        LaunchError: Shapes that do not broadcast, a dtype that no kernel has, an ``out`` that does not fit.

    >>> from ptxdsl import math
    >>> from ptxdsl.kernels import elementwise
    >>> hypot = elementwise.map(lambda x, y: math.sqrt(x * x + y * y))
    >>> hypot(np.array([3.0, 5.0]), np.array([[4.0], [12.0]]))
    array([[ 5.        ,  6.40312424],
           [12.36931688, 13.        ]])
    """
    return Map(function, promote=promote)
