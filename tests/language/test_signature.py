"""Kernel signatures: what each annotation becomes, and what is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from ptxdsl import ir
from ptxdsl.errors import TraceError
from ptxdsl.ir.signature import Array, ArrayType, Ptr, PtrType, Signature, TensorMap
from ptxdsl.types import b8, b16, bf16, f32, f64, pred, s32, surfref, u8, u32, u64


def entries(function: Callable[..., object]) -> list[tuple[str, object]]:
    return [(entry.name, entry.type) for entry in Signature.of(function).ptx]


def test_scalars_and_pointers() -> None:
    def k(n: u32, a: f32, h: bf16, c: u8, x: Ptr[f64]) -> None: ...

    assert entries(k) == [("n", u32), ("a", f32), ("h", b16), ("c", u8), ("x", u64)]
    assert Signature.of(k).ptx[-1].pointer == ("global", 8)


def test_array_brings_shape_and_strides() -> None:
    def k(a: Array[f32, 3], b: Array[s32, None, 64], c: Array[f32, 1]) -> None: ...

    assert [name for name, _ in entries(k)] == [
        "a", "a_shape0", "a_shape1", "a_shape2", "a_stride0", "a_stride1", "b", "b_shape0", "c", "c_shape0",
    ]


def test_static_extent_inside_leaves_one_stride() -> None:
    def k(a: Array[f32, 4, None]) -> None: ...

    assert [name for name, _ in entries(k)] == ["a", "a_shape1", "a_stride0"]


def test_tensor_map_is_128_aligned_bytes() -> None:
    def k(m: TensorMap) -> None: ...

    assert Signature.of(k).ptx == (ir.Parameter("m", b8, (128,), align=64),)
    assert Signature.of(k).ptx[0].nbytes == 128


def test_constants_are_keyword_only() -> None:
    def k(n: u32, *, tile: int = 16, flag: bool) -> None: ...

    assert Signature.of(k).constants == {"tile": 16, "flag": Signature.REQUIRED}


def test_names_of_types() -> None:
    assert str(PtrType(f32)) == "Ptr[f32]"
    assert str(Array[f32, 2]) == "Array[f32, 2]" and str(ArrayType(f32, (None, 64))) == "Array[f32, None, 64]"


def missing(n: u32, x) -> None: ...  # type: ignore[no-untyped-def]
def wrong(n: int) -> None: ...
def predicate(p: pred) -> None: ...
def opaque(s: surfref) -> None: ...
def default(n: u32 = 3) -> None: ...  # type: ignore[assignment]
def star(*n: u32) -> None: ...
def unknown(n: nowhere) -> None: ...  # type: ignore[name-defined]


HINT = "write `{0}: u32`, `{0}: Ptr[f32]` or `{0}: Array[f32, 2]`; a compile-time constant comes after `*`"


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (missing, "parameter `x` of kernel `missing` has no annotation", HINT.format("x")),
        (
            wrong, "parameter `n` of kernel `wrong` has the annotation <class 'int'>, which is no PTX type",
            HINT.format("n").replace("u32`", "s32`").replace("f32", "s32"),
        ),
        (
            predicate, "parameter `p` of kernel `predicate` has the annotation pred, which is no PTX type",
            HINT.format("p"),
        ),
        (
            opaque, "parameter `s` of kernel `opaque` has the annotation surfref, the type of a variable of the module",
            "write `s: Surface`, or `global_(surfref)` inside",
        ),
        (
            default, "parameter `n` of kernel `default` has a default; run-time parameters have none",
            "make it a compile-time constant: `*, n=3`",
        ),
        (star, "kernel `star` cannot take `*n: 'u32'`", None),
        (unknown, "an annotation of kernel `unknown` cannot be evaluated: name 'nowhere' is not defined", None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_refused(function: Callable[..., object], message: str, hint: str | None) -> None:
    with pytest.raises(TraceError) as caught:
        Signature.of(function)
    assert caught.value.message == message and caught.value.hint == hint
    assert caught.value.loc is not None and caught.value.loc.line == function.__code__.co_firstlineno


def test_annotations_see_the_names_around_the_kernel() -> None:
    def factory(kind: object) -> tuple[Callable[..., object], dict[str, object]]:
        def k(x: Ptr[kind]) -> None: ...  # type: ignore[valid-type]

        return k, locals()

    k, names = factory(f64)
    assert Signature.of(k, names).parameters[0].annotation == PtrType(f64)


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda: Ptr[int], "Ptr takes one scalar type, not <class 'int'>", "write `Ptr[s32]`"),
        *(
            (
                lambda item=item: Array[item],
                f"Array takes a scalar type and a number of dimensions or a shape, not {item!r}",
                "write `Array[f32, 2]`, or `Array[f32, None, 64]` with the extents that are fixed",
            )
            for item in (f32, (object, 2), (f32, 0), (f32, -1), (f32, True), (f32, None, 0), (f32, 1.5))
        ),
    ],
)
def test_ptr_and_array_arguments_are_checked(make: Callable[[], object], message: str, hint: str) -> None:
    with pytest.raises(TraceError) as caught:
        make()
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_a_decorated_function_is_refused() -> None:
    @functools.wraps(test_a_decorated_function_is_refused)
    def wrapper(*args: object) -> None:
        raise AssertionError

    with pytest.raises(TraceError) as caught:
        Signature.of(wrapper)
    assert caught.value.message == "kernel `test_a_decorated_function_is_refused` cannot take `*args`"
