"""Products by `ptxdsl.tcgen05` of elements with scales of blocks, against numpy, and how it is misused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensor_products import line_bytes

from ptxdsl import (
    Array, Ptr, PtxTypeError, ScalarType, dynamic_shared, e2m1, e2m1x2, e2m3, e4m3, e5m2, f32, loop, mbarrier,
    ptx, ptx_kernel, tcgen05, tiles, tma, u8, ue8m0, when,
)
from ptxdsl.kernels import linalg

COLUMNS = 48
NUMBERS = {
    e4m3: ml_dtypes.float8_e4m3fn, e5m2: ml_dtypes.float8_e5m2, e2m3: ml_dtypes.float6_e2m3fn,
    e2m1: ml_dtypes.float4_e2m1fn,
}


def product(kinds: tuple[ScalarType, ScalarType], block: int, scale_type: ScalarType, groups: int) -> Any:
    """128 rows by 48 columns, of 128 bytes along k; scales in pieces, those of the columns as for 128."""

    @ptx_kernel
    def kernel(a: Array[u8, 2], b: Array[u8, 2], sa: Ptr[u8], sb: Ptr[u8], c: Array[f32, 2]) -> None:
        left = tiles.Tile(dynamic_shared(u8, align=1024), 128, 128)
        right = tiles.Tile(dynamic_shared(u8, offset=16384), COLUMNS, 128)
        first, second = (dynamic_shared(u8, offset=24576 + each * 4096) for each in range(2))
        bar = mbarrier.declare()
        for to, source in ((left, a), (right, b)):
            tiles.copy(to, source, 0, 0, threads=128)
        with loop(ptx.tid.x, 512 * groups, 128) as i:
            first[i] = sa[i]
            second[i] = sb[i]
        ptx.cp.async_.wait_all()
        tma.fence()
        mbarrier.start((bar, 1))
        memory = tcgen05.allocate(128)
        sums = memory.sums(128, COLUMNS)
        scales = memory.scales(128, groups, column=64), memory.scales(COLUMNS, groups, column=96)
        with when(ptx.tid.x == 0):
            scales[0].copy(first)
            scales[1].copy(second)
            tcgen05.multiply_scaled(
                sums, left.cast(kinds[0]), right.cast(kinds[1]).T, scales, block=block, scale_type=scale_type,
                accumulate=False,
            )
            tcgen05.commit(bar)
        mbarrier.wait(bar, 0)
        tcgen05.fence_after()
        sums.load().store(c)
        memory.free()

    return kernel


def operand(rng: np.random.Generator, kind: ScalarType, rows: int) -> tuple[Any, Any]:
    """128 bytes for each row, and what they stand for."""
    if kind is e2m1x2:
        codes = rng.integers(0, 16, (rows, 256)).astype(np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4, codes.view(NUMBERS[e2m1]).astype(np.float64)
    made = rng.standard_normal((rows, 128)).astype(NUMBERS[kind])
    stored = np.frombuffer(b"".join(line_bytes(line, str(kind)) for line in made.view(np.uint8)), np.uint8)
    return stored.reshape(rows, 128), made.astype(np.float64)


@pytest.mark.parametrize(("kinds", "block", "scale_type"), [
    ((e4m3, e5m2), 32, ue8m0), ((e2m3, e2m1), 32, ue8m0), ((e2m1x2, e2m1x2), 32, ue8m0),
    ((e2m1x2, e2m1x2), 16, ue8m0), ((e2m1x2, e2m1x2), 16, e4m3),
])
def test_products(
    rng: np.random.Generator, kinds: tuple[ScalarType, ScalarType], block: int, scale_type: ScalarType
) -> None:
    (a, left), (b, right) = operand(rng, kinds[0], 128), operand(rng, kinds[1], COLUMNS)
    count = left.shape[1] // block
    pieces, factors = [], []
    for rows in (128, COLUMNS):
        codes = rng.integers(*((120, 135) if scale_type is ue8m0 else (8, 112)), (rows, count)).astype(np.uint8)
        pieces.append(linalg.to_blocked(codes))
        values = 2.0 ** (codes - 127.0) if scale_type is ue8m0 else codes.view(NUMBERS[e4m3]).astype(np.float64)
        factors.append(values.repeat(block, 1))
    c = np.full((128, COLUMNS), np.nan, np.float32)
    kernel = product(kinds, block, scale_type, count // 4)
    kernel.configure(1, 128, shared=32768, backend="emulator", sanitize="all")(a, b, *pieces, c)
    left, right = left * factors[0], right * factors[1]
    assert (np.abs(c - left @ right.T) <= 2.0**-20 * (np.abs(left) @ np.abs(right.T))).all()


@pytest.mark.parametrize(("kinds", "block", "scale_type", "groups", "message"), [
    ((e4m3, e2m1x2), 32, ue8m0, 1, "a product of e4m3 and e2m1x2 with scales of ue8m0 for blocks of 32"),
    ((e4m3, e4m3), 16, e4m3, 1, "a product of e4m3 and e4m3 with scales of e4m3 for blocks of 16"),
    ((e2m1x2, e2m1x2), 32, e4m3, 2, "a product of e2m1x2 and e2m1x2 with scales of e4m3 for blocks of 32"),
    ((e2m1x2, e2m1x2), 16, e4m3, 2, "scales of 128 lines and 2 groups for a"),
])
def test_what_does_not_go_together(
    kinds: tuple[ScalarType, ScalarType], block: int, scale_type: ScalarType, groups: int, message: str
) -> None:
    with pytest.raises(PtxTypeError) as caught:
        product(kinds, block, scale_type, groups).ptx()
    assert caught.value.message == message


def test_too_few_columns() -> None:
    @ptx_kernel
    def kernel(x: Ptr[f32]) -> None:
        tcgen05.allocate(32).scales(256, 4, column=8)

    with pytest.raises(PtxTypeError) as caught:
        kernel.ptx()
    assert caught.value.message == "32 columns of tensor memory from the int 8 on"
    assert caught.value.hint == "32 were allocated: `tcgen05.allocate(512)` has all"
