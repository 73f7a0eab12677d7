"""Fragments in registers of any type: declared as bits, since ptxas takes no others for matrix instructions."""

from __future__ import annotations

import re

import pytest

from ptxdsl import Ptr, bf16, f32, pred, ptx, ptx_kernel, reg, s32, shared, u32, u64
from ptxdsl.types import ScalarType

pytestmark = pytest.mark.ptxas
KINDS = pytest.mark.parametrize("kind", [u32, s32, f32], ids=str)


@KINDS
def test_mma(kind: ScalarType) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], y: Ptr[kind]):  # type: ignore[valid-type]
        a = [reg(kind, 1) for _ in range(4)]
        b = [y[i] for i in range(2)]
        wide = [reg(f32, 0.0) for _ in range(4)]
        narrow = [reg(kind, 0) for _ in range(2)]
        counts = [reg(s32, 0) for _ in range(4)]
        ptx["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"](a, b, wide, out=wide)
        ptx["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"](wide, b, wide, out=wide)
        ptx["mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"](a, b, narrow, out=narrow)
        ptx["mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"](counts, narrow, counts, out=counts)
        x[0] = wide[0] + counts[0].to(f32)

    assert k.cubin(arch="sm_90")
    assert re.findall(r"\.reg \.\w+ %(?:a|wide|narrow|counts)\b", k.ptx()) == [
        ".reg .b32 %a", ".reg .b32 %wide", ".reg .b32 %narrow", ".reg .b32 %counts",
    ]


@KINDS
def test_matrices_in_shared_memory(kind: ScalarType) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]):
        tile = shared(bf16, 16, 16)
        part = [reg(kind, 0) for _ in range(4)]
        ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(tile.at(0, 0), out=part)
        ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(tile.at(0, 0), part)

    assert k.cubin(arch="sm_90")


@KINDS
def test_wgmma(kind: ScalarType) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], descriptor: u64):
        part = [reg(kind, 0) for _ in range(4)]
        sums = [reg(f32, 0.0) for _ in range(4)]
        ptx.wgmma.fence.sync.aligned()
        ptx["wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"](sums, part, descriptor, reg(pred, True), 1, 1)
        ptx.wgmma.commit_group.sync.aligned()
        ptx["wgmma.wait_group.sync.aligned"](0)
        x[ptx.tid.x] = sums[0]

    assert k.cubin(arch="sm_90a")
