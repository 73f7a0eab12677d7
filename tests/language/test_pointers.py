"""Pointers, arrays and the kernel's own variables: the addresses they become, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

from ptxdsl import (
    Array, Ptr, TensorMap, b32, bf16, const, dynamic_shared, f16, f32, f64, label, local, loop, ptx, ptx_kernel, reg,
    s32, s64, shared, u8, u16, u32, u64, when,
)
from ptxdsl.errors import PtxTypeError, TraceError, TruthError
from ptxdsl.text import parse, to_text
from ptxdsl.language import trace
from ptxdsl.types import ScalarType
from ptxdsl.verify import verify


def lines(function: Callable[..., Any]) -> list[str]:
    """The instructions of a kernel function but the final `ret`; its module verifies and survives a round trip."""
    module = trace(function)
    verify(module)
    assert parse(to_text(module)) == module
    *found, last = (line for line in body_of(function) if not line.startswith((".shared", ".local")))
    assert last == "ret"
    return found


def wrong(function: Callable[..., Any]) -> str:
    error = refused(function)
    assert error.loc is not None and error.loc.file == __file__
    return f"{error.message} / {error.hint}"


# ---------------------------------------------------------------------------------------------------------------------
# Pointers count elements


def test_constant_indices_fold_into_the_offset() -> None:
    def kernel(x: Ptr[f32]) -> None:
        v = x[0] + x[3] + (x + 4)[1] + (x - 2)[0] + x[-1] + (5 + x)[np.int64(1)]
        x[7] = v

    assert [line for line in lines(kernel) if line.startswith(("ld", "st"))] == [
        "ld.global.f32 %f0, [%rd0]", "ld.global.f32 %f1, [%rd0+12]", "ld.global.f32 %f3, [%rd0+20]",
        "ld.global.f32 %f5, [%rd0+-8]",
        "ld.global.f32 %f7, [%rd0+-4]", "ld.global.f32 %f9, [%rd0+24]", "st.global.f32 [%rd0+28], %f10",
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (u32, "mul.wide.u32 %rd1, %r0, 8"), (s32, "mul.wide.s32 %rd1, %r0, 8"), (u64, "shl.b64 %rd2, %rd1, 3"),
        (s64, "shl.b64 %rd2, %rd1, 3"),
    ],
    ids=str,
)
def test_a_run_time_index_is_a_product_and_a_sum(kind: ScalarType, expected: str) -> None:
    def kernel(x: Ptr[f64], i: kind) -> None:  # type: ignore[valid-type]
        x[i] = 1.0

    kernel.__annotations__["i"] = kind
    product = expected.split()[1].rstrip(",")
    address = f"%rd{int(product[3:]) + 1}"
    assert lines(kernel) == [
        expected, f"add.u64 {address}, %rd0, {product}", f"st.global.f64 [{address}], 0d3FF0000000000000"
    ]


def test_an_index_in_64_bits_by_other_sizes() -> None:
    def kernel(a: Array[f32, None, 3], b: Array[f32, None, 3], i: u64) -> None:
        a[i, 0] = b[i, 1]

    assert [line for line in lines(kernel) if "%rd2" in line] == [
        "mul.lo.u64 %rd3, %rd2, 12", "mul.lo.u64 %rd5, %rd2, 12",
    ]


def test_one_product_serves_all_pointers_that_an_index_moves_alike() -> None:
    def kernel(x: Ptr[f32], y: Ptr[f32], z: Ptr[f64], i: u32) -> None:
        y[i] = x[i]
        z[i] = 1.0
        (y - i)[0] = 2.0

    assert [line for line in lines(kernel) if line.startswith("mul")] == [
        "mul.wide.u32 %rd3, %r0, 4", "mul.wide.u32 %rd6, %r0, 8", "mul.wide.u32 %rd8, %r0, 4",
    ]


def test_shared_memory_takes_one_instruction() -> None:
    def kernel(i: u32, j: s32) -> None:
        tile = shared(f32, 8, 3)
        tile[i, 1] = 1.0
        (tile.at(0, 0) - j)[0] = 2.0

    assert [line for line in lines(kernel) if line.startswith("mad")] == [
        "mad.lo.u32 %r3, %r0, 12, %r2", "mad.lo.s32 %r4, %r1, -4, %r2",
    ]


def test_backwards() -> None:
    def kernel(x: Ptr[f32], i: u32, j: s32, k: u64) -> None:
        (x - i)[0], (x - j)[0], (x - k)[0]

    assert [line for line in lines(kernel) if not line.startswith("ld")] == [
        "mul.wide.u32 %rd2, %r0, 4", "sub.u64 %rd3, %rd0, %rd2",
        "mul.wide.s32 %rd4, %r1, 4", "sub.u64 %rd5, %rd0, %rd4", "shl.b64 %rd6, %rd1, 2", "sub.u64 %rd7, %rd0, %rd6",
    ]


def test_bytes_need_no_product() -> None:
    def kernel(x: Ptr[u8], i: u64, j: u32) -> None:
        x[i] = 1
        x[j] = 2

    assert lines(kernel) == [
        "add.u64 %rd2, %rd0, %rd1", "st.global.u8 [%rd2], 1", "mul.wide.u32 %rd3, %r0, 1",
        "add.u64 %rd4, %rd0, %rd3", "st.global.u8 [%rd4], 2"
    ]


def test_the_same_index_is_computed_once_while_it_holds() -> None:
    def kernel(x: Ptr[f32], n: u32) -> None:
        x[n] = x[n] + x[n + 1]
        with when(n < 5):
            x[n + 2] = 1.0
        x[n + 2] = 2.0
        counter = reg(u32, n)
        x[counter] = 3.0
        counter += 1
        x[counter] = 4.0

    assert [line.split()[0] + line[line.index(","):] for line in lines(kernel) if line.startswith("mul")] == [
        "mul.wide.u32, %r0, 4", "mul.wide.u32, %r1, 4", "mul.wide.u32, %r2, 4", "mul.wide.u32, %r3, 4",
        "mul.wide.u32, %counter, 4", "mul.wide.u32, %counter, 4",
    ]


def test_an_address_is_not_used_past_a_label_that_jumps_over_it() -> None:
    def kernel(x: Ptr[f32], n: u32) -> None:
        ptx.bra("done", pred=n < 5)
        x[n] = 1.0
        label("done")
        x[n] = 2.0

    found = lines(kernel)
    assert sum(line.startswith("mul.wide") for line in found) == sum(line.startswith("add") for line in found) == 2


@pytest.mark.parametrize(
    ("kind", "moved"), [(f16, "b16"), (bf16, "b16"), (b32, "b32"), (u8, "u8"), (s32, "s32")], ids=str
)
def test_values_keep_their_type_through_memory(kind: ScalarType, moved: str) -> None:
    types = []

    def kernel(x: Ptr[kind]) -> None:  # type: ignore[valid-type]
        types.append(x[0].type)
        x[1] = x[0]

    kernel.__annotations__["x"] = Ptr[kind]  # type: ignore[misc]
    assert [line.split()[0] for line in lines(kernel)] == [f"ld.global.{moved}"] * 2 + [f"st.global.{moved}"]
    assert set(types) == {kind}


def test_numbers_are_stored_in_the_pointers_type() -> None:
    def kernel(x: Ptr[f32], y: Ptr[f16], z: Ptr[s32]) -> None:
        x[0] = 1
        y[0] = 1.5
        z[0] = -1

    assert lines(kernel) == [
        "st.global.f32 [%rd0], 0f3F800000", "st.global.b16 [%rd1], 15872", "st.global.s32 [%rd2], -1"
    ]


def test_vectors() -> None:
    def kernel(x: Ptr[f32], i: u32) -> None:
        v = x.load(i, width=4)
        a, b = x.load(0, width=2)
        assert len(v) == 4 and [element.type for element in v] == [f32] * 4
        x.store(4, v)
        x.store(i, (a, 2.0, b, v[3]))
        out = [reg(f32) for _ in range(2)]
        x.load(8, width=2, out=out)

    assert lines(kernel) == [
        "mul.wide.u32 %rd1, %r0, 4", "add.u64 %rd2, %rd0, %rd1", "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd2]",
        "ld.global.v2.f32 {%f4, %f5}, [%rd0]", "st.global.v4.f32 [%rd0+16], {%f0, %f1, %f2, %f3}",
        "st.global.v4.f32 [%rd2], {%f4, 0f40000000, %f5, %f3}", "ld.global.v2.f32 {%out0, %out1}, [%rd0+32]",
    ]


def test_guarded_access() -> None:
    def kernel(x: Ptr[f32], i: u32) -> None:
        v = reg(f32, 0.0)
        x.load(i, pred=i < 5, out=v)
        x.store(i, v, pred=~(i < 5))

    assert lines(kernel)[1:] == [
        "setp.lt.u32 %p0, %r0, 5", "mul.wide.u32 %rd1, %r0, 4", "add.u64 %rd2, %rd0, %rd1",
        "@%p0 ld.global.f32 %v, [%rd2]", "setp.lt.u32 %p1, %r0, 5", "@!%p1 st.global.f32 [%rd2], %v",
    ]


def test_a_pointer_in_a_register_moves_on() -> None:
    def kernel(x: Ptr[f32], n: u32) -> None:
        p = reg(x + 2)
        with loop(n):
            p[1] = 0.0
            p += 4
        p -= 1
        p += n
        q = p + 1
        p.set(x)
        q[0] = 1.0

    found = lines(kernel)
    assert [line for line in found if "%p" in line and "%p0" not in line] == [
        "add.u64 %p, %rd0, 8", "st.global.f32 [%p+4], 0f00000000", "add.u64 %p, %p, 16",
        "add.u64 %p, %p, 18446744073709551612",
        "add.u64 %p, %p, %rd1", "add.u64 %rd2, %p, 4", "mov.u64 %p, %rd0",
    ]
    assert found[-1] == "st.global.f32 [%rd2], 0f3F800000"


def test_addresses_as_numbers_and_comparison() -> None:
    def kernel(x: Ptr[f32], y: Ptr[f32]) -> None:
        p = (x + 1) < (y + 2)
        ptx.bar.sync(0, pred=p)
        x.cast(u64)[1] = x.address
        x.generic().cast(u32)[0] = 5

    assert lines(kernel) == [
        "add.u64 %rd2, %rd0, 4", "add.u64 %rd3, %rd1, 8", "setp.lt.u64 %p0, %rd2, %rd3", "@%p0 bar.sync 0",
        "st.global.u64 [%rd0+8], %rd0", "st.u32 [%rd0], 5",
    ]


def test_pointer_mistakes() -> None:
    def mixed(x: Ptr[f32], n: u32) -> None:
        x[0] = n

    def fraction(x: Ptr[f32]) -> None:
        x[1.5]

    def float_index(x: Ptr[f32], v: f32) -> None:
        x[v]

    def short_index(x: Ptr[f32], i: u16) -> None:
        x[i]

    def two(x: Ptr[f32]) -> None:
        x[1, 2]

    def sliced(x: Ptr[f32]) -> None:
        x[0:4]

    def difference(x: Ptr[f32], y: Ptr[f32]) -> None:
        x - y

    def wide(x: Ptr[f32]) -> None:
        x.load(0, width=3)

    def guarded(x: Ptr[f32], n: u32) -> None:
        x.load(0, pred=n < 5)

    def target(x: Ptr[f32]) -> None:
        x.load(0, out=reg(u32, 0))

    def unwanted(x: Ptr[f32]) -> None:
        x[0] = "abc"  # type: ignore[assignment]

    def guard(x: Ptr[f32]) -> None:
        x.store(0, 1.0, pred=True)

    assert said(refused(mixed), mixed) == (
        "PtxTypeError", "a u32 stored to a pointer to f32", "x[0] = n",
        "`n.to(f32)` rounds (cvt); `n.bits(f32)` keeps the bits (mov)"
    )
    assert wrong(fraction) == "a pointer is indexed by integers, not the float 1.5 / `p[i]` with a u32 or an int"
    assert wrong(float_index) == (
        "an index here is a u32, s32, u64 or s64, not f32 / `v.to(s32)` rounds towards zero (cvt)"
    )
    assert wrong(short_index) == "an index here is a u32, s32, u64 or s64, not u16 / `i.to(u32)` converts (cvt)"
    assert wrong(two) == "a pointer takes one index, not 2 indices / a parameter `a: Array[f32, 2]` takes two"
    assert wrong(sliced) == "a pointer takes one index, not a slice / `p.load(i, width=4)` for a vector"
    assert wrong(difference).startswith("the difference of two pointers is no pointer / ")
    assert wrong(wide).startswith("PTX has no ld of 3 f32 at once / a vector has 2 or 4 elements")
    assert wrong(guarded) == (
        "a guarded load may load nothing, and a Value has always been computed / `v = reg(f32, 0)`, then "
        "`p.load(i, pred=.., out=v)`"
    )
    assert wrong(target) == "`out` of a load of f32 is a reg(f32), not u32 / `v = reg(f32)`"
    assert wrong(unwanted) == "the str 'abc' stored to a pointer to f32 / store a Value or a number"
    assert wrong(guard) == (
        "`pred` is a predicate, not the bool True / what is known while tracing is decided by Python: `if flag:`"
    )


@pytest.mark.parametrize(
    "function", [bool, int, len, list, hash, lambda p: 1 in p, lambda p: range(p), lambda p: f"{p:d}"],
    ids=["bool", "int", "len", "list", "hash", "in", "range", "format"],
)
def test_a_pointer_has_no_python_value(function: Callable[[Any], Any]) -> None:
    def kernel(x: Ptr[f32]) -> None:
        function(x)

    error = refused(kernel)
    assert type(error) is TruthError and "a run-time pointer to f32" in error.message


# ---------------------------------------------------------------------------------------------------------------------
# Arrays


def test_array_with_run_time_shape() -> None:
    def kernel(a: Array[f32, 2], i: u32, j: u32) -> None:
        a[i, j] = a[i, 0] + a[0, j]
        assert a.ndim == 2 and a.shape[0].type is u32 and a.strides[1] == 1

    assert lines(kernel) == [
        "mul.wide.u32 %rd1, %r3, %r2", "shl.b64 %rd2, %rd1, 2", "add.u64 %rd3, %rd0, %rd2", "ld.global.f32 %f0, [%rd3]",
        "mul.wide.u32 %rd4, %r4, 4", "add.u64 %rd5, %rd0, %rd4", "ld.global.f32 %f1, [%rd5]", "add.f32 %f2, %f0, %f1",
        "add.u64 %rd6, %rd3, %rd4", "st.global.f32 [%rd6], %f2",
    ]


def test_static_extents_fold() -> None:
    def kernel(a: Array[f32, None, 64], i: u32) -> None:
        a[i, 3] = 1.0
        a[2, i] = 2.0
        a[2, 63] = 3.0
        row = a[i]
        row[5] = row[i]

    # The last dimension's extent gives the only stride.
    assert [line for line in lines(kernel) if not line.startswith("ld.param")] == [
        "mul.wide.u32 %rd1, %r1, 256", "add.u64 %rd2, %rd0, %rd1", "st.global.f32 [%rd2+12], 0f3F800000",
        "mul.wide.u32 %rd3, %r1, 4", "add.u64 %rd4, %rd0, %rd3", "st.global.f32 [%rd4+512], 0f40000000",
        "st.global.f32 [%rd0+764], 0f40400000", "add.u64 %rd5, %rd2, %rd3", "ld.global.f32 %f0, [%rd5]",
        "st.global.f32 [%rd2+20], %f0",
    ]


def test_array_mistakes() -> None:
    def many(a: Array[f32, 2]) -> None:
        a[0, 1, 2]

    def few(a: Array[f32, 2]) -> None:
        a[0] = 1.0

    def out_of_range(a: Array[f32, None, 64]) -> None:
        a[0, 64]

    def negative(a: Array[f32, 2]) -> None:
        a[-1, 0]

    assert wrong(many) == "3 indices for 2 dimensions / give one index a dimension: `a[i, j]`"
    assert wrong(few) == "1 index for 2 dimensions / give one index a dimension: `a[i, j]`"
    assert wrong(out_of_range) == (
        "index 64 is out of range in dimension 1 of the array, which has 64 elements / indices run from 0 to 63"
    )
    assert wrong(negative) == (
        "index -1 is out of range in dimension 0 of the array, which begins at 0 / `a.shape[0] - 1` is the last"
    )


@ptx_kernel
def copy(a: Array[f32, 3], b: Array[f32, None, None, 5]):
    i, j, k = ptx.tid.x, ptx.tid.y, ptx.tid.z
    b[k, j, i] = a[k, j, i] + a.shape[0].to(f32) * 1000.0


def test_arrays_compute(rng: np.random.Generator) -> None:
    whole = rng.normal(size=(4, 6, 9)).astype(np.float32)
    a = whole[1:, ::2, :5]
    b = np.full((3, 3, 5), np.nan, np.float32)
    copy[1, (5, 3, 3)](a, b)
    np.testing.assert_array_equal(b, a + np.float32(3000))


# ---------------------------------------------------------------------------------------------------------------------
# The kernel's own variables


def test_shared_memory_is_one_base_and_offsets() -> None:
    def kernel() -> None:
        tile = shared(f32, 4, 17)
        i = ptx.tid.x
        tile[0, 3] = 1.0
        for k in range(3):
            tile[i, k] = tile[k, i]

    assert lines(kernel) == [
        "mov.u32 %r1, tile", "mov.u32 %r0, %tid.x", "st.shared.f32 [tile+12], 0f3F800000",
        "mad.lo.u32 %r2, %r0, 4, %r1", "ld.shared.f32 %f0, [%r2]", "mad.lo.u32 %r3, %r0, 68, %r1",
        "st.shared.f32 [%r3], %f0",
        "ld.shared.f32 %f1, [%r2+68]", "st.shared.f32 [%r3+4], %f1", "ld.shared.f32 %f2, [%r2+136]",
        "st.shared.f32 [%r3+8], %f2",
    ]
    variable = trace(kernel).functions[0].variables[0]
    assert (variable.name, variable.space, variable.type, variable.shape, variable.align) == (
        ("tile", "shared", f32, (4, 17), 16)
    )


def test_declarations() -> None:
    def kernel(x: Ptr[f32]) -> None:
        one, two = shared(f16, 8), shared(u8, 3, align=128)
        x_ = shared(f32, (2, 2))
        tile = shared(f32, 2)
        tile = shared(f32, 4)
        buffer = local(f64, 4)
        for array in (one, two, x_, tile, buffer):
            array.address
        assert tile.shape == (4,) and x_.strides == (2, 1)

    found = [(v.name, v.space, v.type.__name__, v.shape, v.align) for v in trace(kernel).functions[0].variables]
    assert found == [
        ("one", "shared", "b16", (8,), 16), ("two", "shared", "u8", (3,), 128), ("x_", "shared", "f32", (2, 2), 16),
        ("tile", "shared", "f32", (2,), 16), ("tile_1", "shared", "f32", (4,), 16),
        ("buffer", "local", "f64", (4,), 16),
    ]


def test_a_variable_does_not_take_a_parameters_name() -> None:
    def kernel(x: Ptr[f32]) -> None:
        y = x
        x = shared(f32, 4)  # type: ignore[assignment]
        y[0] = x[1]

    assert trace(kernel).functions[0].variables[0].name == "x_1"


def test_dynamic_shared() -> None:
    def kernel(i: u32) -> None:
        whole = dynamic_shared(f32)
        rest = dynamic_shared(f16, 4, 8, offset=64, align=128)
        whole[i] = whole[1]
        rest[i, 3] = rest[0, 0]

    assert lines(kernel) == [
        "mov.u32 %r1, dynamic_shared", "ld.shared.f32 %f0, [dynamic_shared+4]", "mad.lo.u32 %r2, %r0, 4, %r1",
        "st.shared.f32 [%r2], %f0", "ld.shared.b16 %h0, [dynamic_shared+64]", "mad.lo.u32 %r3, %r0, 16, %r1",
        "st.shared.b16 [%r3+70], %h0",
    ]
    (variable,) = trace(kernel).variables
    assert (variable.name, variable.linkage, variable.shape, variable.align) == (
        ("dynamic_shared", "extern", (None,), 128)
    )


def test_constant_memory() -> None:
    values = np.array([[1.0, -0.0], [np.inf, 0.1]], np.float32)

    def kernel(i: u32, x: Ptr[f32], y: Ptr[f16]) -> None:
        table = const(values)
        halves = const([1, 2.5], f16)
        x[0] = table[i, 1] + table[1, 0]
        y[0] = halves[1]

    module = trace(kernel)
    assert lines(kernel)[0:1] == ["mov.u64 %rd2, kernel_table"]
    table, halves = module.variables
    assert table.values == tuple(int(v) for v in values.reshape(-1).view(np.uint32))
    assert halves.values == (0x3C00, 0x4100) and halves.type.__name__ == "b16"


def test_declaration_mistakes() -> None:
    def run_time(n: u32) -> None:
        shared(f32, n)

    def nothing() -> None:
        shared(f32)

    def untyped() -> None:
        shared(16)  # type: ignore[arg-type]

    def zero() -> None:
        shared(f32, 0)

    def outside() -> None:
        tile = shared(f32, 4, 16)
        tile[4, 0]

    def much() -> None:
        shared(f32, 8192)
        shared(f32, 8192)

    def odd() -> None:
        shared(f32, 4, align=3)

    def misplaced() -> None:
        dynamic_shared(f32, offset=2)

    def written() -> None:
        const([1.0], f32)[0] = 2.0

    def typeless() -> None:
        const([1.0])

    def complex_table() -> None:
        const(np.ones(3, np.complex64))

    def pointed(x: Ptr[f32]) -> None:
        x.cast(Ptr[u32])

    def wide_index(i: u64) -> None:
        tile = shared(f32, 4)
        tile[i] = 0.0

    assert wrong(run_time).startswith(
        "an extent of `shared` is a positive int known while tracing, not a run-time u32 / "
    )
    assert wrong(nothing) == "`shared` needs a shape / write `shared(f32, 256)`"
    assert wrong(pointed) == "`.cast()` takes a type, not `Ptr[u32]` / `p.cast(u32)`"
    assert wrong(untyped) == "`shared` takes a type first, not the int 16 / write `shared(f32, 256)`"
    assert wrong(zero).startswith("an extent of `shared` is a positive int known while tracing, not the int 0 / ")
    assert wrong(outside) == (
        "index 4 is out of range in dimension 0 of the array, which has 4 elements / indices run from 0 to 3"
    )
    assert wrong(much) == (
        "65536 bytes of static shared memory; a kernel may have 49152 / `dynamic_shared(f32)`, and its size in "
        "bytes at the launch: "
        "`k.configure(grid, block, shared=65536)`"
    )
    assert wrong(odd) == "an alignment is a power of two, not the int 3 / `align=128`"
    assert wrong(misplaced) == (
        "the offset of `dynamic_shared` is a multiple of 4 bytes, not the int 2 / `offset=count * 4`"
    )
    assert wrong(written) == "constant memory cannot be written / `shared(f32, n)`, or a parameter `Ptr[f32]`"
    def swapped(x: Ptr[f32]) -> None:
        x[0] = const(f32, [1.0])[0]

    assert wrong(swapped) == (
        "the type of a `const` is a scalar type, not the list [1.0] / `const([...], f32)`: the table first, then its "
        "type"
    )
    assert wrong(typeless) == "`const` of the list [1.0] has no type / give a numpy array, or `const([...], f32)`"
    assert wrong(complex_table).startswith("PTX has no type for a numpy array of complex64 / ")
    assert wrong(wide_index) == "an index here is a u32 or s32, not u64 / `i.to(u32)` keeps the low 32 bits (cvt)"
    assert isinstance(refused(outside), TraceError) and isinstance(refused(odd), PtxTypeError)


def test_tensor_map_is_its_generic_address() -> None:
    def kernel(table: TensorMap, x: Ptr[u64]) -> None:
        x[0] = table.address
        x[1] = table.address

    assert lines(kernel) == [
        "mov.b64 %rd1, table", "cvta.param.u64 %rd2, %rd1", "st.global.u64 [%rd0], %rd2", "st.global.u64 [%rd0+8], %rd2"
    ]


@ptx_kernel
def everything(x: Ptr[f32], out: Ptr[f32], n: u32):
    """Every space, static and run-time indices."""
    table = const(np.arange(8, dtype=np.float32))
    tile, mine = shared(f32, 8, 9), local(f32, 4)
    whole = dynamic_shared(f32)
    i = ptx.tid.x
    for k in range(8):
        tile[i, k] = x[i * 8 + k]
    whole[i] = table[i] * 2.0
    for k in range(4):
        mine[k] = tile[i, 2 * k]
    ptx.bar.sync(0)
    total = reg(f32, 0.0)
    with loop(n) as k:
        total += mine[k] + whole[7 - i]
    p = reg(out)
    p += i
    p[0] = total + tile[7 - i, 1]


def test_every_space_computes(rng: np.random.Generator) -> None:
    x = rng.normal(size=64).astype(np.float32)
    out = np.full(8, np.nan, np.float32)
    everything.configure(1, 8, shared=32)(x, out, 3)
    tile = x.reshape(8, 8)
    i = np.arange(8)
    expected = np.zeros(8, np.float32)
    for k in range(3):
        expected = expected + (tile[i, 2 * k] + np.float32(2) * (7 - i).astype(np.float32))
    np.testing.assert_array_equal(out, expected + tile[7 - i, 1])


def test_the_address_of_an_element_has_a_name() -> None:
    from ptxdsl import const, dynamic_shared, global_, local, ptx_kernel, reg, shared, u64

    table = np.random.default_rng().integers(0, 1000, (2, 3)).astype(np.uint32)

    @ptx_kernel
    def k(a: Array[u32, 2], p: Ptr[u32], n: u32, out: Ptr[u64]):
        s, mine, d = shared(u32, 4, 5), local(u32, 3, 3), dynamic_shared(u32, 2, 2)
        g, c, row = global_(u32, 4, 4), const(table), reg(u32, 1)
        address, moving = a.at(row, n), reg(p)
        row += 1
        moved = moving.at(4)
        moving += 5
        address[0] = 7
        a.at(1, 0)[0], p.at(3)[0], p.at(n)[0], p.at(np.int64(1))[0], moved[0] = 8, 9, 10, 11, 12
        mine.at(n, 0)[0], d.at(1, n - 1)[0], g.at(0, 3)[0] = 5, 2, 4
        ptx.red.global_.add.u32(a.at(3, n), 5)
        out[0] = (s.at(1, 2).address - s.address).to(u64)
        out[1] = a.at(2, 3).address - a.address
        out[2] = c.at(1, n - 2)[0].to(u64) + mine[n, 0].to(u64) + d[1, n - 1].to(u64) + g[0, 3].to(u64)

    a, p, out = np.zeros((4, 8), np.uint32)[:, :5], np.zeros(10, np.uint32), np.zeros(3, np.uint64)
    k.configure(1, 1, shared=16)(a, p, 2, out)
    assert a[1, 2] == 7 and a[1, 0] == 8 and a[3, 2] == 5 and np.count_nonzero(a) == 3
    assert p.tolist() == [0, 11, 10, 9, 12, 0, 0, 0, 0, 0]
    assert out.tolist() == [28, 76, int(table[1, 0]) + 11]


def test_addresses_that_are_none() -> None:
    from ptxdsl import ptx_kernel, shared

    def refused(body: Any, wanted: str) -> None:
        def k(a: Array[u32, 2], p: Ptr[u32], f: Ptr[f32]) -> None:
            body(a, p, f, shared(u32, 4, 5))

        with pytest.raises(TraceError) as caught:
            ptx_kernel(k).ptx()
        assert f"{caught.value.message} / {caught.value.hint}" == wanted

    fill = "give one index a dimension: `a.at(i, j)`"
    element = "`x.at(i)` is the address of the element `x[i]`"
    refused(lambda a, p, f, s: a.at(1), f"1 index for 2 dimensions / {fill}")
    refused(lambda a, p, f, s: a.at(1, 2, 3), f"3 indices for 2 dimensions / {fill}")
    refused(lambda a, p, f, s: p.at(1, 2), "a pointer takes one index, not 2 / `p.at(i)`")
    refused(lambda a, p, f, s: p.at(), "a pointer takes one index, not 0 / `p.at(i)`")
    refused(
        lambda a, p, f, s: a.at(-1, 0), "index -1 is out of range in dimension 0 of the array, which begins at 0 / "
        "`a.shape[0] - 1` is the last",
    )
    refused(
        lambda a, p, f, s: s.at(4, 0), "index 4 is out of range in dimension 0 of the array, which has 4 elements / "
        "indices run from 0 to 3",
    )
    refused(
        lambda a, p, f, s: p.at(1.5),
        "a pointer is indexed by integers, not the float 1.5 / `p[i]` with a u32 or an int",
    )
    refused(
        lambda a, p, f, s: ptx.red.global_.add.f32(f[3], 1.0),
        f"operand `a` of `red.global.add.f32 [a], b` is an address, not an f32 / {element}",
    )
    refused(
        lambda a, p, f, s: ptx.atom.global_.add.u32(a[1, 2], 1),
        "operand `a` of `atom.global.add.u32 d, [a], b` is an address, not a u32 / a pointer: `x + v`; " + element,
    )
