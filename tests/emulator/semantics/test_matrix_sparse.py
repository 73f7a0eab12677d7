"""mma of a sparse A, with scales, and of FP6 and FP4, against sums of the products that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix_harness import (
    FLOATS, LANES, drawn, kernel_text, metadata, packed, run_mma, sizes_of, sparse, unpacked, words_of_scales,
)

import ptxdsl
from ptxdsl.errors import EmulationError
from ptxdsl.gpu.assembler import assemble
from ptxdsl.isa import lookup
from ptxdsl.isa.arithmetic import flops
from ptxdsl.isa.fragments import SPARSE_SHAPES, chunk_of, layout, metadata_place

Rng = np.random.Generator


def summed(a: Any, b: Any, c: Any, kept: Any) -> tuple[Any, Any]:
    """The sum of each element's products and c, and that of their magnitudes, in f64; a[i, s] meets b[kept[i, s]]."""
    with np.errstate(invalid="ignore"):
        products = a.astype(np.float64)[:, :, None] * b.astype(np.float64)[kept]
        return products.sum(1) + c, abs(products).sum(1) + abs(c)


def stored(shape: str) -> str:
    """The shape of a dense product whose A is as large as the kept half."""
    m, n, k = sizes_of(shape)
    return f"m{m}n{n}k{k // 2}"


def mnemonic(shape: str, left: str, right: str, result: str, ordered: bool, kind: str = "") -> str:
    sp = "sp::ordered_metadata" if ordered else "sp"
    return f"mma.{sp}.sync.aligned.{shape}.row.col{kind}.{result}.{left}.{right}.{result}"


SPARSE = [
    ("m16n8k16", "bf16", "bf16", "f32", 4), ("m16n8k32", "f16", "f16", "f16", 2),
    ("m16n8k8", "tf32", "tf32", "f32", 4), ("m16n8k32", "s8", "u8", "s32", 2), ("m16n8k64", "u8", "s8", "s32", 1),
    ("m16n8k64", "s4", "s4", "s32", 2), ("m16n8k128", "u4", "s4", "s32", 1), ("m16n8k64", "e4m3", "e5m2", "f32", 1),
]


@pytest.mark.parametrize("case", SPARSE, ids=str)
def test_sparse(case: tuple[str, str, str, str, int], rng: Rng) -> None:
    shape, left, right, result, selectors = case
    m, n, k = sizes_of(shape)
    ordered, selector = bool(rng.integers(2)), int(rng.integers(selectors))
    kept, found = sparse(rng, k, left, ordered)
    a, b, c = drawn(rng, left, (m, k // 2)), drawn(rng, right, (k, n)), drawn(rng, result, (m, n))
    out = run_mma(
        mnemonic(shape, left, right, result, ordered), packed(a, stored(shape), left, "a"),
        packed(b, shape, right, "b"), packed(c, shape, left, "c", result),
        extra=(metadata(rng, found, left, selector),), form=f", %xa0, {selector}",
    )
    exact = summed(a, b, c, kept)[0].astype(np.int64)
    np.testing.assert_array_equal(out, packed(exact, shape, left, "c", result))


def special(rng: Rng, kind: str, shape: tuple[int, ...], often: float = 0.02) -> Any:
    """Random numbers, subnormal ones too, and some infinities and NaNs where the type has these."""
    dtype = FLOATS[kind]
    values = (rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 5, shape)).astype(dtype)
    least = np.array(1, f"u{np.dtype(dtype).itemsize}").view(dtype)
    values = np.where(rng.random(shape) < 0.1, least, values)
    every = [np.inf, -np.inf, np.nan]
    names = {"e4m3": [np.nan], "f16": every, "bf16": every, "e5m2": every}.get(kind, [])
    for value in names:
        values = np.where(rng.random(shape) < often / len(names), np.array(value, dtype), values)
    return values.astype(dtype)


def check(out: Any, total: Any, magnitude: Any, terms: int) -> None:
    """Equal where it is infinite or NaN, else within the bound of a sum rounded after each term."""
    finite = np.isfinite(total)
    np.testing.assert_array_equal(out[~finite], total[~finite].astype(np.float32))
    assert (abs(out[finite] - total[finite]) <= terms * 2.0**-24 * magnitude[finite] + terms * 2.0**-149).all()


@pytest.mark.parametrize("case", [SPARSE[0], SPARSE[-1]], ids=str)
def test_what_is_left_out_is_not_multiplied(case: tuple[str, str, str, str, int], rng: Rng) -> None:
    shape, left, right, result, _ = case
    m, n, k = sizes_of(shape)
    kept, found = sparse(rng, k, left)
    a, b, c = special(rng, left, (m, k // 2)), special(rng, right, (k, n), 0.04), special(rng, "f32", (m, n))
    out = run_mma(
        mnemonic(shape, left, right, result, True), packed(a, stored(shape), left, "a"), packed(b, shape, right, "b"),
        packed(c, shape, left, "c", result), extra=(metadata(rng, found, left, 0),), form=", %xa0, 0",
    )
    total, magnitude = summed(a, b, c, kept)
    assert np.isfinite(total).any() and not np.isfinite(total).all()
    check(unpacked(out, shape, left, "f32"), total, magnitude, k // 2 + 1)


@pytest.mark.parametrize("bits", SPARSE_SHAPES)
def test_each_code_lies_in_one_place(bits: int) -> None:
    for shape in SPARSE_SHAPES[bits]:
        depth = sizes_of(shape)[2]
        chunks = depth // chunk_of(bits)
        every = []
        for selector in range(16 // chunks):
            found = {metadata_place(bits, depth, row, chunk, selector) for row in range(16) for chunk in range(chunks)}
            assert len(found) == 16 * chunks
            every += [lane for lane, _ in found]
        assert sorted(set(every)) == list(range(LANES))
        assert layout(shape, "b", bits).rows == depth


def test_a_selector_beyond_the_lanes_of_a_quad(rng: Rng) -> None:
    a, b, c = (np.zeros((LANES, count), np.uint32) for count in (4, 4, 4))
    form = mnemonic("m16n8k32", "f16", "f16", "f32", False)
    expected = r"^sparsity selector 2: 2 of 4 lanes hold the metadata here, so it is below 2"
    with pytest.raises(EmulationError, match=expected):
        run_mma(form, a, b, c, extra=(a[:, 0].copy(),), form=", %xa0, 2")


# ---------------------------------------------------------------------------------------------------------------------
# FP6 and FP4, and scales

NARROW = [
    ("e2m1", "e3m2", "f32", False), ("e2m3", "e5m2", "f16", False), ("e4m3", "e2m1", "f16", True),
    ("e3m2", "e2m3", "f32", True),
]


@pytest.mark.parametrize("case", NARROW, ids=str)
def test_fp6_and_fp4(case: tuple[str, str, str, bool], rng: Rng) -> None:
    left, right, result, is_sparse = case
    shape = "m16n8k64" if is_sparse else "m16n8k32"
    m, n, k = sizes_of(shape)
    kept, found = sparse(rng, k, left) if is_sparse else (np.tile(np.arange(k), (m, 1)), None)
    a, b, c = drawn(rng, left, kept.shape), drawn(rng, right, (k, n)), drawn(rng, result, (m, n))
    form = f"mma.sync.aligned.{shape}.row.col.kind::f8f6f4.{result}.{left}.{right}.{result}"
    extra, places = ((metadata(rng, found, left, 0),), ", %xa0, 0") if is_sparse else ((), "")
    out = run_mma(
        mnemonic(shape, left, right, result, True, ".kind::f8f6f4") if is_sparse else form,
        packed(a, stored(shape) if is_sparse else shape, left, "a") | np.uint32(0xC0C0C0C0 * (left == "e3m2")),
        packed(b, shape, right, "b"), packed(c, shape, left, "c", result), extra=extra, form=places,
    )
    exact = summed(a, b, c, kept)[0].astype(np.int64)
    np.testing.assert_array_equal(out, packed(exact, shape, left, "c", result))


SCALED = [
    ("m16n8k32", "kind::mxf8f6f4", "e4m3", "e2m1", 1, "ue8m0", False),
    ("m16n8k64", "kind::mxf4", "e2m1x", "e2m1x", 2, "ue8m0", False),
    ("m16n8k64", "kind::mxf4nvf4", "e2m1x", "e2m1x", 4, "ue4m3", False),
    ("m16n8k64", "kind::mxf8f6f4", "e3m2", "e5m2", 1, "ue8m0", True),
    ("m16n8k128", "kind::mxf4nvf4", "e2m1x", "e2m1x", 4, "ue4m3", True),
]


def scaled(
    case: tuple[str, str, str, str, int, str, bool], rng: Rng, scales: tuple[Any, Any], ids: tuple[int, ...],
    given: tuple[int, ...] = (), draw: Any = drawn,
) -> tuple[Any, Any, Any]:
    """The result of a product with scales, what it is in f64, and the sum of the magnitudes."""
    shape, kind, left, right, count, stype, is_sparse = case
    m, n, k = sizes_of(shape)
    kept, found = sparse(rng, k, left) if is_sparse else (np.tile(np.arange(k), (m, 1)), None)
    a, b, c = draw(rng, left, kept.shape), draw(rng, right, (k, n)), draw(rng, "f32", (m, n))
    extra = [metadata(rng, found, left, 0)] if is_sparse else []
    extra += [words_of_scales(rng, scales[0], "a", *ids[:2]), words_of_scales(rng, scales[1], "b", *ids[2:])]
    letters = "abcdefg"[len(extra) - 2 :]
    numbers = [str(value) for value in given or ids]
    if case in SCALED[1:4]:  # else they are immediates
        extra += [np.full(LANES, value, np.uint16) for value in given or ids]
        numbers = [f"%x{letter}0" for letter in letters[2:6]]
    form = (", %xa0, 0" if is_sparse else "") + ", %x{}0, {{{}, {}}}, %x{}0, {{{}, {}}}".format(
        letters[0], *numbers[:2], letters[1], *numbers[2:]
    )
    sp = "sp::ordered_metadata." if is_sparse else ""
    left_name, right_name = left.rstrip("x"), right.rstrip("x")
    out = run_mma(
        f"mma.{sp}sync.aligned.{shape}.row.col.{kind}.block_scale.scale_vec::{count}X.f32.{left_name}.{right_name}.f32"
        f".{stype}",
        packed(a, stored(shape) if is_sparse else shape, left, "a"), packed(b, shape, right, "b"),
        packed(c, shape, left, "c", "f32"), extra=tuple(extra), form=form,
    )
    blocks = kept * count // k
    sa, sb = (decoded(values, stype) for values in scales)
    scaled_a = a.astype(np.float64) * np.take_along_axis(sa, blocks, 1)
    with np.errstate(invalid="ignore"):
        products = scaled_a[:, :, None] * b.astype(np.float64)[kept] * sb.T[blocks]
        return unpacked(out, shape, left, "f32"), products.sum(1) + c, abs(products).sum(1) + abs(c)


def decoded(values: Any, stype: str) -> Any:
    if stype == "ue8m0":
        return np.where(values == 255, np.nan, 2.0 ** (values.astype(float) - 127))
    return values.astype(np.uint8).view(FLOATS["e4m3"]).astype(np.float64)


def drawn_scales(rng: Rng, case: tuple[str, str, str, str, int, str, bool], near: int = 3) -> tuple[Any, Any]:
    count, stype = case[4:6]
    low, high = (127 - near, 128 + near) if stype == "ue8m0" else (0, 127)
    return rng.integers(low, high, (16, count)), rng.integers(low, high, (8, count))


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_scales(case: tuple[str, str, str, str, int, str, bool], rng: Rng) -> None:
    first = [int(rng.integers(4 // case[4])) * case[4] for _ in range(2)]
    ids = (first[0], int(rng.integers(2)), first[1], int(rng.integers(4)))
    out, total, magnitude = scaled(case, rng, drawn_scales(rng, case), ids)
    assert (abs(out - total) <= 2.0**-24 * abs(total) + 2.0**-45 * magnitude).all()


def test_scales_reach_beyond_f32(rng: Rng) -> None:
    """A large scale of A meets a small one of B: neither alone keeps the products within f32."""
    case = SCALED[1]
    sa, sb = rng.integers(230, 255, (16, 2)), rng.integers(0, 25, (8, 2))
    sa[3, 1] = 255
    out, total, magnitude = scaled(case, rng, (sa, sb), (0, 0, 0, 0))
    assert np.isnan(out[3]).all() and np.isnan(total[3]).all()
    rest = np.arange(16) != 3
    assert (abs(out - total) <= 2.0**-24 * abs(total) + 2.0**-45 * magnitude)[rest].all()


def test_scaled_infinities(rng: Rng) -> None:
    case = SCALED[3]
    out, total, magnitude = scaled(case, rng, drawn_scales(rng, case), (1, 1, 3, 2), draw=special)
    assert not np.isfinite(total).all()
    check(out, total, magnitude, 2)


@pytest.mark.parametrize(("given", "said"), [
    ((1, 0, 0, 0), "byte-id-a 1 in lane 0 of warp 0: here it is 0 or 2"),
    ((0, 2, 0, 0), "thread-id-a 2 in lane 0 of warp 0: here it is 0 or 1"),
    ((0, 0, 3, 0), "byte-id-b 3 in lane 0 of warp 0: here it is 0 or 2"),
    ((0, 0, 0, 4), "thread-id-b 4 in lane 0 of warp 0: here it is 0 or 1 or 2 or 3"),
])
def test_selectors_that_name_no_scales(given: tuple[int, ...], said: str, rng: Rng) -> None:
    with pytest.raises(EmulationError, match=f"^{said}"):
        scaled(SCALED[1], rng, drawn_scales(rng, SCALED[1]), (0, 0, 0, 0), given)


def test_ptxas_takes_them() -> None:
    zeros = {count: np.zeros((LANES, count), np.uint32) for count in (2, 4)}
    word = np.zeros(LANES, np.uint32)
    form = mnemonic("m16n8k32", "f16", "f16", "f32", True)
    text = kernel_text(form, zeros[4], zeros[4], zeros[4], 4, (word,), ", %xa0, 1", "sm_90")
    assert assemble(text, "sm_90")
    shape, kind, *_ = SCALED[2]
    form = f"mma.sync.aligned.{shape}.row.col.{kind}.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    places = ", %xa0, {0, 1}, %xb0, {0, 3}"
    assert assemble(kernel_text(form, zeros[4], zeros[2], zeros[4], 4, (word, word), places, "sm_120a"), "sm_120a")


def test_sparse_products_count_half() -> None:
    for name in ("sp", "sp::ordered_metadata"):
        form = lookup(f"mma.{name}.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")[0]
        assert flops(form).warp == 16 * 8 * 32
    assert flops(lookup("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")[0]).warp == 4 * 2 * 8 * 8 * 4


@pytest.mark.parametrize("tool", ["sanitize", "profile"])
def test_sanitized_and_profiled_alike(tool: str, rng: Rng) -> None:
    shape, left, right, result, _ = SPARSE[1]
    m, n, k = sizes_of(shape)
    a, b, c = special(rng, left, (m, k // 2)), special(rng, right, (k, n)), special(rng, result, (m, n))
    found = sparse(rng, k, left)[1]
    given = (
        mnemonic(shape, left, right, result, True), packed(a, stored(shape), left, "a"), packed(b, shape, right, "b"),
        packed(c, shape, left, "c", result),
    )
    extra: dict[str, Any] = {"extra": (metadata(rng, found, left, 1),), "form": ", %xa0, 1"}
    plain = run_mma(*given, **extra)
    if tool == "sanitize":
        np.testing.assert_array_equal(run_mma(*given, **extra, sanitize="all"), plain)
    else:
        with ptxdsl.profile() as profile:
            np.testing.assert_array_equal(run_mma(*given, **extra), plain)
        assert profile.totals.flops == {"f16": m * n * k}


