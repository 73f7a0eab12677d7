"""Kernels with bulk copies: a tile of shared memory, an mbarrier, and what goes in and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulator_harness import THREAD, argument, kernel

from ptxdsl import emulator
from ptxdsl.launch import LaunchConfig

TX = "mbarrier::complete_tx::bytes"
BYTES = 4096
SHARED = f"""
.shared .align 16 .b8 tile[{BYTES}]; .shared .align 8 .b64 bar;
mov.u32 %r10, tile; mov.u32 %r11, bar;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; ld.param.u32 %r12, [n];
setp.eq.u32 %p0, %r2, 0;
@%p0 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p31, [bar], 0;\n@!%p31 bra WAIT;\n"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12;\n"


def module(body: str) -> str:
    text = kernel("u64 x, u64 out, u32 n", THREAD + SHARED + body + "ret;")
    return text.replace(".version 8.6\n.target sm_90", ".version 9.3\n.target sm_100a")


def run(text: str, grid: int, block: int, cluster: int | None = None, **more: Any) -> None:
    config = LaunchConfig(grid, block, cluster=cluster, sanitize=more.pop("sanitize", None))
    conservative = more.pop("conservative", False)
    arguments = [argument(name, value) for name, value in more.items()]
    emulator.load(text).run("k", config, arguments, conservative=conservative)


def random_bytes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


COPY_OUT = """
mov.u32 %r20, %r2;
OUT: setp.ge.u32 %p30, %r20, %r12; @%p30 bra OVER;
add.u32 %r21, %r10, %r20; ld.shared.u8 %r22, [%r21]; cvt.u64.u32 %rd20, %r20; add.u64 %rd20, %rd1, %rd20;
st.global.u8 [%rd20], %r22; add.u32 %r20, %r20, %r1; bra OUT;
OVER:
"""
"""The first n bytes of the tile, by all threads."""
COPY_IN = """
mov.u32 %r20, %r2;
IN: setp.ge.u32 %p30, %r20, %r12; @%p30 bra READY;
cvt.u64.u32 %rd20, %r20; add.u64 %rd20, %rd0, %rd20; ld.global.u8 %r22, [%rd20];
add.u32 %r21, %r10, %r20; st.shared.u8 [%r21], %r22; add.u32 %r20, %r20, %r1; bra IN;
READY: fence.proxy.async.shared::cta; bar.sync 0;
"""
STORED = "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;\n"
RANK = "mov.u32 %r30, %cluster_ctarank; add.u32 %r31, %r30, 1; rem.u32 %r31, %r31, %cluster_nctarank;\n"
BARRIER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
OWN = "mad.wide.u32 %rd0, %r30, %r12, %rd0; mad.wide.u32 %rd1, %r30, %r12, %rd1;\n"
LOADS = f"cp.async.bulk.shared::cta.global.{TX} [%r10], [%rd0], %r12, [%r11];"
STORES = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], %r12;"
SUMS = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r10], %r12;"
FETCH = f"cp.async.bulk.shared::cluster.global.{TX}"
INTEGERS = [
    "add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32", "dec.u32", "and.b32",
    "or.b32", "xor.b32",
]
GLOBAL_ONLY = [
    "min.u64", "min.s64", "max.u64", "max.s64", "and.b64", "or.b64", "xor.b64", "add.noftz.f16", "min.f16", "max.f16",
    "add.f32", "add.noftz.f32", "add.f64", "add.noftz.bf16", "min.bf16", "max.bf16",
]
