"""tcgen05.mma against numpy: kinds, shapes, layouts, swizzles, sparse and scaled products, pairs of blocks, faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tensor_products import Case, instruction_word, matrix_word, run_product

import ptxdsl
from ptxdsl.isa.instruction_descriptors import InvalidDescriptor, Product, Variant, decode, encode
from ptxdsl.isa.matrix_descriptors import problem, tensor_descriptor

Rng = np.random.Generator
_FP4 = ("e2m1x", "e2m1x")


def zero_columns(
    starts: tuple[int, ...] = (), first: tuple[int, ...] = (), skip: int = 0, use: int = 0, shift: int = 0
) -> int:
    """A zero-column mask: counts at which the spans of the banks start, which of them start with zeros."""
    counts = sum(count << 8 * bank for bank, count in enumerate(starts))
    spans = sum(span << 32 + bank for bank, span in enumerate(first))
    return counts | spans | (bool(starts) << 39) | skip << 40 | use << 48 | shift << 56


_CASES = [
    Case(), Case(turned=(True, True)), Case(types=("f16", "bf16"), m=64, n=24, half=16), Case(m=64, n=8, held=True),
    Case(types=("f16", "f16"), m=64, n=40, result="f16"), Case(enable=False), Case(divided=3), Case(masked=True),
    Case(held=True, negative=(True, False)), Case(held=True, shifted=True),
    Case(kind="tf32", types=("tf32", "tf32"), swizzles=(1, 1), turned=(True, True), n=72),
    Case(kind="tf32", types=("tf32", "tf32"), held=True, swizzles=(1, 1)),
    Case(kind="f8f6f4", types=("e4m3", "e2m1"), swizzles=(6, 4)),
    Case(kind="f8f6f4", types=("e5m2", "e5m2"), result="f16"),
    Case(kind="f8f6f4", types=("e2m3", "e3m2"), held=True, n=104),
    Case(kind="i8", types=("s8", "u8"), result="s32", turned=(True, True), n=48, saturates=True),
    Case(kind="i8", types=("u8", "s8"), result="s32", n=24),
    Case(kind="ti16", types=("ti16", "ti16"), result="s32"),
    # sparse
    Case(sparse=True), Case(sparse=True, selector=1, m=64, n=24, half=16), Case(sparse=True, turned=(True, True), n=48),
    Case(sparse=True, held=True, kind="tf32", types=("tf32", "tf32")),
    Case(kind="f8f6f4", types=("e2m1", "e5m2"), sparse=True),
    Case(kind="i8", types=("s8", "s8"), result="s32", sparse=True, held=True, saturates=True),
    # .ws
    Case(weights=True, m=32, n=64), Case(weights=True, m=64, n=128, held=True), Case(weights=True, m=128, n=256),
    Case(weights=True, m=64, n=64, sparse=True),
    Case(weights=True, m=32, n=64, zero=zero_columns((1, 0, 2, 4), (0, 1, 0, 0), 3, 5)),
    Case(weights=True, m=64, n=128, zero=zero_columns((1, 2), (0, 1), 3, 5, 5), most_shift=8, swizzles=(2, 4)),
    Case(weights=True, m=128, n=64, zero=zero_columns(shift=16, use=1), most_shift=16, turned=(False, True)),
    Case(weights=True, m=32, n=64, sparse=True, zero=zero_columns((0, 1, 1, 0), (1, 1, 0, 0), 2, 1, 16), most_shift=16),
    # scaled
    Case(kind="mxf8f6f4", types=("e4m3", "e5m2"), ids=(3, 1), n=136), Case(kind="mxf4", types=_FP4, ids=(2, 0)),
    Case(kind="mxf4nvf4", types=_FP4, size="block16", scale_type="ue4m3", n=256, enable=False),
    Case(kind="mxf8f6f4", types=("e2m1", "e5m2"), sparse=True, held=True, enable=False),
    Case(kind="mxf4nvf4", types=_FP4, size="block16", n=104, copied=True),
    Case(kind="mxf4", types=_FP4, sparse=True, n=40),
    Case(kind="mxf4", types=_FP4, held=True, n=64, long=True, swizzles=(0, 0)),
    Case(kind="mxf4nvf4", size="block16", types=_FP4, n=160, long=True, swizzles=(0, 0), ids=(2, 0)),
    Case(kind="mxf4nvf4", size="block16", types=_FP4, n=96, long=True, ids=(0, 2)),
    # B by a table
    Case(kind="f8f6f4", types=("e5m2", "e4m3"), table=0),
    Case(kind="f8f6f4", types=("e4m3", "e4m3"), table=1, held=True),
    Case(kind="mxf8f6f4", types=("e4m3", "e4m3"), table=1, n=136, swizzles=(4, 0), ids=(2, 0)),
    # pairs
    Case(group=2, m=256, issuer=1), Case(group=2, n=48),
    Case(group=2, m=256, n=32, types=("f16", "f16"), result="f16", turned=(True, True)),
    Case(group=2, sparse=True, n=32, half=16, selector=1),
    Case(group=2, m=256, held=True, shifted=True),
    Case(group=2, kind="mxf8f6f4", types=("e3m2", "e4m3"), m=256, n=256), Case(group=2, kind="mxf4", types=_FP4, n=48),
    Case(group=2, kind="mxf4nvf4", size="block32", types=_FP4, m=256, n=208, sparse=True),
]
_FURTHER = [
    Case(masked=True, m=64, half=16),
    Case(types=("f16", "f16"), result="f16", enable=False, negative=(False, True), n=256),
    Case(kind="tf32", types=("tf32", "tf32"), swizzles=(0, 4), divided=15),
    Case(kind="f8f6f4", types=("e2m1", "e5m2"), held=True, m=64, half=16, turned=(False, True), n=32),
    Case(kind="i8", types=("u8", "u8"), result="s32", held=True),
    Case(kind="ti16", types=("ti16", "ti16"), result="s32", n=32, held=True, turned=(False, True)),
    Case(sparse=True, types=("f16", "f16"), result="f16", masked=True, divided=1),
    Case(kind="ti16", types=("ti16", "ti16"), result="s32", n=32, sparse=True, turned=(True, False)),
    Case(weights=True, m=32, n=128, sparse=True, held=True),
    Case(kind="mxf4nvf4", types=_FP4, size="scale_vec::4X", held=True, negative=(True, False)),
    Case(kind="mxf8f6f4", types=("e3m2", "e4m3"), turned=(False, True), size="block32"),
    Case(kind="mxf8f6f4", types=("e5m2", "e2m3"), ids=(2, 1), n=32, copied=True, held=True),
    Case(kind="mxf4nvf4", types=_FP4, sparse=True, size="block16"),
    Case(group=2, kind="f8f6f4", types=("e4m3", "e4m3"), table=1, m=256, n=112, masked=True),
    Case(group=2, n=48, held=True, masked=True),
    Case(group=2, m=256, sparse=True, n=112, held=True),
    Case(group=2, sparse=True, held=True, masked=True),
    Case(group=2, kind="i8", types=("u8", "s8"), m=256, result="s32", turned=(False, True)),
    Case(group=2, kind="mxf4nvf4", size="block16", types=_FP4, n=240, scale_type="ue4m3"),
    Case(group=2, kind="mxf4", types=_FP4, n=80, held=True, ids=(0, 2)),
    Case(group=2, kind="mxf4nvf4", size="block16", types=_FP4, n=160, m=256, long=True, swizzles=(0, 0), ids=(2, 2)),
]
"""What these combine is in others too: a run takes some of them."""


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case.mnemonic[12:]}-{case.m}-{case.n}")
def test_products(case: Case, rng: Rng) -> None:
    run_product(case, rng)


@pytest.mark.parametrize("number", range(6))
def test_further_products(number: int, rng: Rng) -> None:
    run_product(_FURTHER[int(rng.integers(len(_FURTHER)))], rng)


def _any_case(rng: Rng) -> Case:
    """A product that there is."""
    def one(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    kind = one(("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"))
    scaled, narrow = kind.startswith("mx"), kind in ("f8f6f4", "mxf8f6f4")
    types = {"f16": ("f16", "bf16"), "tf32": ("tf32",), "i8": ("s8", "u8")}.get(kind, ("e2m1x",))
    types = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1") if narrow else types
    case = Case(kind, (one(types), one(types)), group=int(rng.integers(1, 3)), sparse=bool(rng.integers(2)))
    case = replace(case, held=bool(rng.integers(2)), enable=bool(rng.integers(4)))
    if not scaled and case.group == 1 and rng.integers(3) == 0:
        m, n = one((32, 64, 128)), one((64, 128) if case.sparse else (64, 128, 256))
        case = replace(case, weights=True, m=m, n=n)
    else:
        m = (64 * case.group, 128 * case.group)
        if scaled and (case.group == 1 or case.sparse):
            m = m[1:]
        step = {"i8": 16}.get(kind, 8) * case.group
        case = replace(case, m=one(m), n=int(rng.integers(1, 256 // step + 1)) * step)
        if not scaled and not case.quartered:
            case = replace(case, masked=bool(rng.integers(2)))
        if case.quartered:
            case = replace(case, half=16 * int(rng.integers(2)))
    turned = [
        kind != "tf32" and element in ("f16", "bf16", "s8", "u8", "e4m3", "e5m2") and bool(rng.integers(2))
        for element in case.types
    ]
    if case.held:
        turned[0] = False
    if turned[1] and kind != "f16" and case.n % (16 * case.group):
        turned[1] = False
    wide = (2, 4, 0) if case.sparse else (0, 2, 4, 6)
    case = replace(case, turned=(turned[0], turned[1]), swizzles=(one((0, 2, 4, 6)), one(wide)))
    if scaled:
        size = one(("block32", "block16" if kind == "mxf4nvf4" else ""))
        case = replace(case, size=size, scale_type=one(("ue8m0", "ue4m3" if size == "block16" else "ue8m0")))
        step = case.blocks
        case = replace(case, ids=(int(rng.integers(4 // step)) * step, int(rng.integers(4 // step)) * step))
    elif kind == "i8":
        return replace(case, result="s32", saturates=bool(rng.integers(2)))
    elif kind == "f16":
        result = "f16" if case.types == ("f16", "f16") and rng.integers(2) else "f32"
        case = replace(case, result=result, selector=int(rng.integers(2)) if case.sparse else 0)
    return case if kind == "i8" else replace(case, negative=(bool(rng.integers(2)), bool(rng.integers(2))))


@pytest.mark.parametrize("number", range(4))
def test_any_product(number: int, rng: Rng) -> None:
    run_product(_any_case(rng), rng)


# Special values


@pytest.mark.parametrize("case", [
    Case(), Case(types=("f16", "f16"), result="f16"), Case(kind="f8f6f4", types=("e5m2", "e5m2"), held=True),
    Case(kind="tf32", types=("tf32", "tf32")), Case(sparse=True), Case(kind="mxf8f6f4", types=("e5m2", "e4m3")),
], ids=lambda case: case.kind)
def test_infinities_and_nans(case: Case, rng: Rng) -> None:
    def special(a: Any, b: Any) -> None:
        b[3, 5], a[7, 2], a[9, 1] = np.nan, np.inf, -np.inf
        if case.types[1] != "e4m3":
            b[4, 6] = np.inf

    run_product(replace(case, n=16), rng, special)


def test_a_scale_that_is_no_number(rng: Rng) -> None:
    case = Case(kind="mxf8f6f4", types=("e5m2", "e4m3"), n=16)
    run_product(case, rng, odd_scale=(5, 255))


# Descriptors


def test_descriptors_say_what_was_encoded(rng: Rng) -> None:
    for _ in range(300):
        case = _any_case(rng)
        blocks = case.blocks if not case.long else 0
        variant = Variant(case.kind, case.group, case.sparse, case.weights, case.held, blocks)
        product = Product(
            case.m, case.n, case.k, case.result, case.types, case.negative, case.turned, case.saturates, case.selector,
            case.ids, case.scale_type if case.scaled else "", case.most_shift,
        )
        assert encode(variant, product) == instruction_word(case)
        assert decode(variant, instruction_word(case)) == product


_F16 = 0x08400490  # bf16 x bf16 -> f32, 128 x 256


@pytest.mark.parametrize(("variant", "word", "message"), [
    (Variant("f16"), _F16 | 1 << 6, "bit 6 is set, and kind::f16 reserves it: it must be 0"),
    (Variant("f16"), _F16 | 1 << 29, "bit 29 is set, and kind::f16 reserves it: it must be 0"),
    (Variant("mxf4", blocks=2), 1 << 12, "bit 12 is set, and kind::mxf4 reserves it: it must be 0"),
    (Variant("f16"), _F16 | 4, "bit 2 is 1: it says that A is sparse, and the instruction is dense"),
    (Variant("f16", sparse=True), _F16, "bit 2 is 0: it says that A is dense, and the instruction is sparse"),
    (Variant("f16"), _F16 | 1 << 5, "bits 4-5, the type of D, are 3; kind::f16 has 0 (f16) or 1 (f32)"),
    (Variant("tf32"), 0x08400900 & ~0x10, "bits 4-5, the type of D, are 0; kind::tf32 has 1 (f32)"),
    (Variant("i8"), _F16, "bits 4-5, the type of D, are 1; kind::i8 has 2 (s32)"),
    (Variant("f16"), _F16 | 1 << 8, "bits 7-9, the type of A, are 3; kind::f16 has 0 (f16), 1 (bf16)"),
    (Variant("f8f6f4"), _F16 ^ 3 << 10,
     "bits 10-12, the type of B, are 2; kind::f8f6f4 has 0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2), 5 (e2m1)"),
    (Variant("f16"), _F16 & ~0x10, "a result of f16 of elements of bf16: bits 4-5 must be 1, f32"),
    (Variant("i8"), 0x08400020 | 1 << 14, "bit 14 negates B, and kind::i8 cannot"),
    (Variant("f8f6f4"), 0x08400010 | 5 << 7 | 1 << 15,
     "bit 15 says that A is M-major, and elements of e2m1 are K-major"),
    (Variant("f16", held=True), _F16 | 1 << 15,
     "bit 15 says that A is M-major, and it lies in tensor memory, K-major"),
    (Variant("f16"), _F16 ^ 14 << 24, "M is 96; kind::f16 of cta_group::1 has 64 or 128"),
    (Variant("f16", group=2), _F16 ^ 12 << 24, "M is 64; kind::f16 of cta_group::2 has 128 or 256"),
    (Variant("f16", weights=True), _F16 | 16 << 24, "M is 384; kind::f16.ws of cta_group::1 has 32 or 64 or 128"),
    (Variant("f16"), _F16 & ~(63 << 17), "N is 0; kind::f16 of cta_group::1 has a multiple of 8 from 8 to 256"),
    (Variant("f16", group=2), _F16 | 1 << 17,
     "N is 264; kind::f16 of cta_group::2 has a multiple of 16 from 16 to 256"),
    (Variant("f16", weights=True), _F16 & ~(63 << 17) | 12 << 17,
     "N is 96; kind::f16.ws of cta_group::1 has 64 or 128 or 256"),
    (Variant("i8"), 0x08000020 | 5 << 17,
     "N is 40; kind::i8 of cta_group::1 has 8, 16, 24, or a multiple of 16 from 32 to 256"),
    (Variant("f8f6f4"), 0x08000010 | 3 << 17 | 1 << 16,
     "N is 24; kind::f8f6f4 of cta_group::1 has a multiple of 16 from 16 to 256"),
    (Variant("f16"), _F16 | 8, "bit 3 asks for saturation, which kind::i8 has, not kind::f16"),
    (Variant("f16"), _F16 | 1 << 30, "bits 30-31 allow columns to shift by 8, which only .ws can"),
    (Variant("f16", sparse=True), _F16 | 6, "bits 0-1, the sparsity selector, are 2; kind::f16.sp has 0 or 1"),
    (Variant("f8f6f4", sparse=True), _F16 | 5, "bits 0-1, the sparsity selector, are 1; kind::f8f6f4.sp has 0"),
    (Variant("mxf8f6f4", blocks=1), 1 << 27 | 8 << 17,
     "bit 23 is 0, scales of ue4m3; kind::mxf8f6f4 has 1, ue8m0, only"),
    (Variant("mxf4", blocks=2), 1 << 27 | 8 << 17 | 1 << 23 | 1 << 7 | 1 << 10 | 1 << 4,
     "bits 4-5, the byte of B's scales, are 1; it can be 0 or 2"),
    (Variant("mxf4", sparse=True, blocks=2), 1 << 27 | 8 << 17 | 1 << 23 | 1 << 7 | 1 << 10 | 4 | 1 << 31,
     "bit 31 is set: K is 96, which only a dense A has"),
])
def test_instruction_descriptors_that_are_wrong(variant: Variant, word: int, message: str) -> None:
    with pytest.raises(InvalidDescriptor) as raised:
        decode(variant, word)
    assert str(raised.value) == message


def _fails(case: Case, rng: Rng, **changed: Any) -> ptxdsl.EmulationError:
    with pytest.raises(ptxdsl.EmulationError) as raised:
        run_product(case, rng, **changed)
    return raised.value


def test_a_wrong_instruction_descriptor_is_located(rng: Rng) -> None:
    error = _fails(Case(), rng, word=_F16 | 1 << 23)
    assert error.message == (
        "the instruction descriptor 0x8c00490 of `tcgen05.mma.cta_group::1.kind::f16`: bit 23 is set, and kind::f16 "
        "reserves it: it must be 0"
    )
    assert error.instruction == "tcgen05.mma.cta_group::1.kind::f16 [%pd], %a, %b, %word, %enable"


_GOOD = tensor_descriptor(0x400, 16, 1024, 2)


@pytest.mark.parametrize(("word", "message"), [
    (_GOOD ^ 3 << 46, "bits 46-48 are 2, and must be 1"),
    (_GOOD | 1 << 15, "bit 15 is set, which is reserved and must be 0"),
    (_GOOD | 1 << 57, "bit 57 is set, which is reserved and must be 0"),
    (_GOOD | 3 << 49, "its base offset is 3; the emulator takes 0 only"),
    (_GOOD | 1 << 52, "bit 52 is set: its leading dimension would be an address, which only rows of 48 bytes have"),
    (_GOOD ^ 7 << 61, "bits 61-63, the swizzle, are 5; there are 0, 1, 2, 4 and 6"),
    (_GOOD + 8, "the tile at 0x480 begins 128 bytes behind a multiple of 1024, and its swizzle has rows of 128"),
    (_GOOD + 7, "a line of 32 bytes begins at byte 112 of a row of 128 bytes"),
    (matrix_word(0x400, 16, 256, 6) + 2,
     "the tile at 0x420 begins 32 bytes behind a multiple of 256, and its swizzle has rows of 32"),
    (matrix_word(0x1fc00, 16, 1024, 2), "goes beyond"),
    (matrix_word(0, 16, 1024, 2), "goes beyond"),
])
@pytest.mark.parametrize("which", "ab")
def test_a_wrong_matrix_descriptor(which: str, word: int, message: str, rng: Rng) -> None:
    error = _fails(Case(n=128), rng, **{which: word})
    assert isinstance(error, ptxdsl.MemoryFault)
    named = f"the matrix descriptor {word:#x} of {which.upper()} of `tcgen05.mma.cta_group::1.kind::f16`: "
    if message == "goes beyond":
        place = f"a tile at {(word & 0x3FFF) << 4:#x}, leading 0x10, stride 0x400, rows of 128 bytes"
        message = f"{place} goes beyond the block's shared memory, 0x400 to 0x8410"
    assert error.message == named + message


def test_swizzles_of_a_major(rng: Rng) -> None:
    error = _fails(Case(turned=(True, False)), rng, a=matrix_word(0x400, 1024, 1024, 1))
    assert error.message.endswith("bits 61-63, the swizzle, are 1; a tile of this type and major has 0, 2, 4, 6")
    tf32 = Case(kind="tf32", types=("tf32", "tf32"), turned=(False, True), swizzles=(2, 1))
    error = _fails(tf32, rng, b=matrix_word(0x400, 1024, 1024, 2))
    assert error.message.endswith("bits 61-63, the swizzle, are 2; a tile of this type and major has 1")


def test_compiled_code_refuses_the_same_matrix_descriptors(rng: Rng) -> None:
    case = Case(n=128)
    for _ in range(15):
        word = _GOOD
        for _ in range(int(rng.integers(1, 3))):
            word ^= 1 << int(rng.choice([0, 1, 2, 3, 4, 5, 6, 14, 15, 30, 31, *range(46, 64)]))
        why = problem(word, 0b1010111, 32)
        try:
            run_product(case, rng, a=word, checked=False)
            found = ""
        except ptxdsl.MemoryFault as error:
            found = error.message
        assert bool(why) == bool(found) or "goes beyond" in found, hex(word)
        assert why in found


def test_columns_that_are_not_there(rng: Rng) -> None:
    error = _fails(Case(n=128), rng, d=400)
    assert error.message == (
        "`tcgen05.mma.cta_group::1.kind::f16` accesses columns 400 to 527 of tensor memory, which has 512; allocated "
        "are columns 0 to 511"
    )


def test_lanes_where_nothing_begins(rng: Rng) -> None:
    for case, place in ((Case(), 16), (Case(m=64), 8), (Case(m=64), 32)):
        error = _fails(case, rng, d=128 | place << 16)
        assert error.message == (
            f"`tcgen05.mma.cta_group::1.kind::f16` with an operand at lane {place} of tensor memory "
            f"(address {128 | place << 16:#x})"
        )


def test_a_shift_of_columns_that_is_not_allowed(rng: Rng) -> None:
    error = _fails(Case(weights=True, m=64, zero=zero_columns(shift=9), most_shift=8), rng)
    assert error.message == (
        "the zero-column mask of `tcgen05.mma.ws.cta_group::1.kind::f16` shifts columns by 9, and its instruction "
        "descriptor allows 8"
    )


def test_a_product_of_a_pair_of_one_block(rng: Rng) -> None:
    assert "works on a pair of blocks" in _fails(Case(group=2, m=256), rng, cluster=1).message


_LANES = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 count)
{
    .reg .b64 %out, %at, %a;
    .reg .b32 %t, %x, %tmem, %word, %count, %c, %d, %r<4>;
    .reg .pred %p, %q, %never;
    .shared .align 1024 .b8 tiles[16384];
    .shared .align 8 .b32 home;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    shl.b32 %x, %t, 2;
COPY:
    { .reg .b32 %s; mov.u32 %s, tiles; add.u32 %s, %s, %x; st.shared.b32 [%s], 0x3f803f80; }
    add.u32 %x, %x, 512;
    setp.lt.u32 %p, %x, 16384;
    @%p bra COPY;
    setp.ne.u32 %p, %t, 0;
    @!%p mbarrier.init.shared.b64 [bar], 3;
    setp.ge.u32 %p, %t, 32;
    @%p bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [home], 512;
ALLOCATED:
    fence.proxy.async;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [home];
    ld.param.u32 %count, [count];
    ld.param.u64 %out, [out];
    setp.ge.u32 %q, %t, 3;
    setp.eq.u32 %never, %t, 999;
    mov.u64 %a, 0x4000404000010040;
    @%q bra ISSUED;
    mov.u32 %c, 0;
AGAIN:
    add.u32 %word, %t, 2;
    shl.b32 %word, %word, 18;
    or.b32 %word, %word, 0x08000490;
    shl.b32 %d, %t, 7;
    add.u32 %d, %d, %tmem;
    setp.gt.u32 %p, %c, 0;
    @%never tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %a, %c, %p;
    tcgen05.mma.cta_group::1.kind::f16 [%d+32], %a, %a, %word, %p;
    add.u32 %c, %c, 1;
    add.u32 %x, %count, %t;
    setp.lt.u32 %p, %c, %x;
    @%p bra AGAIN;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT;
    tcgen05.fence::after_thread_sync;
    shr.u32 %d, %t, 5;
    shl.b32 %d, %d, 21;
    add.u32 %d, %d, %tmem;
    mul.wide.u32 %at, %t, 12;
    add.u64 %at, %at, %out;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%d+32];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%d+175];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%d+319];
    tcgen05.wait::ld.sync.aligned;
    st.global.b32 [%at], %r0;
    st.global.b32 [%at+4], %r1;
    st.global.b32 [%at+8], %r2;
    bar.sync 0;
    setp.ge.u32 %p, %t, 32;
    @%p bra END;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 512;
END:
    ret;
}
"""


@pytest.mark.parametrize("options", [{}, {"seed": 1}, {"sanitize": "all"}], ids=str)
def test_lanes_issue_their_own_products(options: dict[str, Any]) -> None:
    """Three lanes in a loop, each with a descriptor, a place and a number of turns of its own; 16 times 1 a product."""
    kernel, out = ptxdsl.load(_LANES)["k"], np.zeros((128, 3), np.float32)
    for count in (2, 1):
        kernel.configure(1, 128, backend="emulator", **options)(out, np.uint32(count))
        np.testing.assert_array_equal(out, np.tile(16.0 * (count + np.arange(3, dtype=np.float32)), (128, 1)))


_SCALED = Case(kind="mxf4", types=_FP4, n=32)


@pytest.mark.parametrize(("case", "hole", "found"), [
    (Case(held=True, n=32), 96, True), (Case(held=True, n=32, group=2), 96, True), (Case(sparse=True, n=32), 0, True),
    (_SCALED, 32, True), (Case(n=32), 128, True), (Case(n=32, masked=True, enable=False), 128, True),
    (Case(held=True, sparse=True, n=32), 64, False), (Case(held=True, n=32, enable=False), 128, False),
    (replace(_SCALED, enable=False), 128, False), (replace(_SCALED, group=2, m=256, enable=False), 128, False),
    (Case(weights=True, m=32, n=128, held=True, enable=False), 128, False),
])
def test_sums_are_as_little_known_as_what_they_are_made_of(case: Case, hole: int, found: bool, rng: Rng) -> None:
    options: dict[str, Any] = {"hole": hole, "sanitize": "init", "checked": False}
    if not found:
        run_product(case, rng, **options)
        return
    with pytest.raises(ptxdsl.UninitializedError) as raised:
        run_product(case, rng, **options)
    assert "of tensor memory, which nobody has written" in raised.value.message
    assert "column 1" in raised.value.message


@pytest.mark.parametrize(("case", "which", "lane"), [
    (_SCALED, "A", 96), (replace(_SCALED, group=2, m=256), "A", 32), (_SCALED, "B", 64),
    (replace(_SCALED, group=2), "B", 100),
])
def test_scales_that_differ_by_quarter(case: Case, which: str, lane: int, rng: Rng) -> None:
    error = _fails(case, rng, odd_cell=(32 if which == "A" else 48, lane))
    assert error.message == (
        f"the scales of {which} of `{case.mnemonic}` are not the same in all quarters of the lanes, where tensor "
        "memory must have copies of them"
    )
