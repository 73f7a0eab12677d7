"""Whatever the builders of the two projects behind the kernel library can emit is one line of ours.

The names are theirs (trueno-gpu 0.4.3 ``KernelBuilder``, aprender-gpu's ``Ptx*`` traits, oxicuda's ``BodyBuilder``,
without the suffixes that only name an operand's kind); beside each stand the instruction and our line for it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ptxdsl import (
    Kernel, Ptr, b32, dynamic_shared, f16, f32, f64, label, ptx, ptx_kernel, reg, s8, s32, select, shared, u8, u16, u32,
    u64,
)

Line = Callable[[Any], object]


def _branch(e: Any) -> None:
    here = label()
    ptx.bra(here)


def _branch_if(e: Any) -> None:
    done = label(here=False)
    ptx.bra(done, pred=e.p)
    done.here()


def _wmma(e: Any) -> None:
    a = ptx["wmma.load.a.sync.aligned.row.m16n16k16.f16"](e.halves, 16)
    b = ptx["wmma.load.b.sync.aligned.col.m16n16k16.f16"](e.halves, 16)
    c = ptx["wmma.load.c.sync.aligned.row.m16n16k16.f32"](e.floats, 16)
    d = ptx["wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"](a, b, c)
    ptx["wmma.store.d.sync.aligned.row.m16n16k16.f32"](e.floats, d, 16)


# name: (instruction, line)
SIMPLE: dict[str, tuple[str, Line]] = {
    # parameters, special registers, moves
    "special_reg": ("mov.u32", lambda e: ptx.ctaid.y),
    "special_reg laneid": ("mov.u32", lambda e: ptx.laneid),
    "special_reg warpid": ("mov.u32", lambda e: ptx.warpid),
    "special_reg smid": ("mov.u32", lambda e: ptx.smid),
    "special_reg clock": ("mov.u32", lambda e: ptx.clock),
    "special_reg clock64": ("mov.u64", lambda e: ptx.clock64),
    "load_param_u32": ("ld.param.u32", lambda e: e.u + 1),
    "load_param_u64": ("ld.param.u64", lambda e: e.q + 1),
    "load_param_f32": ("ld.param.f32", lambda e: e.f + 1.0),
    "load_param_f64": ("ld.param.f64", lambda e: e.d + 1.0),
    "mov_u32_imm": ("mov.u32", lambda e: reg(u32, 7)),
    "mov_u64_imm": ("mov.u64", lambda e: reg(u64, 7)),
    "mov_s32_imm": ("mov.s32", lambda e: reg(s32, -7)),
    "mov_f32_imm": ("mov.f32", lambda e: reg(f32, 7.0)),
    "mov_f64_imm_zero": ("mov.f64", lambda e: reg(f64, 0.0)),
    "mov_b32_imm": ("mov.b32", lambda e: reg(b32, 7)),
    "mov_reg": ("mov.u32", lambda e: e.ru.set(e.u)),
    "mov_f32_reg": ("mov.f32", lambda e: e.rf.set(e.f)),
    "mov_s32_from_u32": ("mov.b32", lambda e: e.u.bits(s32)),
    "shared_base_addr": ("mov.u32", lambda e: e.words[e.u]),
    # integer arithmetic
    "add_u32": ("add.u32", lambda e: e.u + e.u),
    "add_u64": ("add.u64", lambda e: e.q + e.q),
    "add_u32_inplace": ("add.u32", lambda e: e.ru.__iadd__(1)),
    "sub_u32": ("sub.u32", lambda e: e.u - e.u),
    "mul_u32": ("mul.lo.u32", lambda e: e.u * 3),
    "mul_lo_s32": ("mul.lo.s32", lambda e: e.s * e.s),
    "mul_u64": ("mul.lo.u64", lambda e: e.q * e.q),
    "mul_hi_u32": ("mul.hi.u32", lambda e: ptx.mul.hi.u32(e.u, e.u)),
    "mul_wide_u32": ("mul.wide.u32", lambda e: ptx.mul.wide.u32(e.u, 4)),
    "mul_wide_u32_reg": ("mul.wide.u32", lambda e: ptx.mul.wide.u32(e.u, e.u)),
    "mad_lo_u32": ("mad.lo.u32", lambda e: ptx.mad.lo.u32(e.u, e.u, e.u)),
    "mad_wide_u32": ("mad.wide.u32", lambda e: ptx.mad.wide.u32(e.u, e.u, e.q)),
    "div_u32": ("div.u32", lambda e: e.u // e.u),
    "rem_u32": ("rem.u32", lambda e: e.u % 5),
    "min_u32": ("min.u32", lambda e: ptx.min.u32(e.u, 5)),
    "min_s32": ("min.s32", lambda e: ptx.min.s32(e.s, e.s)),
    "max_s32": ("max.s32", lambda e: ptx.max.s32(e.s, 0)),
    "abs_s32": ("abs.s32", lambda e: ptx.abs.s32(e.s)),
    "neg_s32": ("neg.s32", lambda e: -e.s),
    "dp4a_u32": ("dp4a.u32.u32", lambda e: ptx.dp4a.u32.u32(e.u, e.u, e.u)),
    "dp4a_s32": ("dp4a.s32.s32", lambda e: ptx.dp4a.s32.s32(e.s, e.s, e.s)),
    "dp4a_us": ("dp4a.u32.s32", lambda e: ptx.dp4a.u32.s32(e.u, e.s, e.s)),
    "dp4a_s32_inplace": ("dp4a.s32.s32", lambda e: ptx.dp4a.s32.s32(e.s, e.s, e.rs, out=e.rs)),
    "dp2a": ("dp2a.lo.s32.s32", lambda e: ptx.dp2a.lo.s32.s32(e.s, e.s, e.s)),
    # bits
    "and_u32": ("and.b32", lambda e: e.u & 15),
    "or_u32": ("or.b32", lambda e: e.u | e.u),
    "xor_b32": ("xor.b32", lambda e: e.u ^ e.u),
    "not": ("not.b32", lambda e: ~e.u),
    "shl_u32": ("shl.b32", lambda e: e.u << 2),
    "shr_u32": ("shr.u32", lambda e: e.u >> e.u),
    "shr_u32_inplace": ("shr.u32", lambda e: e.ru.__irshift__(1)),
    "and_pred": ("and.pred", lambda e: e.p & e.p),
    "or_pred": ("or.pred", lambda e: e.p | e.p),
    "popc_b32": ("popc.b32", lambda e: ptx.popc.b32(e.u)),
    "clz_b32": ("clz.b32", lambda e: ptx.clz.b32(e.u)),
    "brev": ("brev.b32", lambda e: ptx.brev.b32(e.u)),
    "bfind": ("bfind.u32", lambda e: ptx.bfind.u32(e.u)),
    "bfe_u32": ("bfe.u32", lambda e: ptx.bfe.u32(e.u, 4, 8)),
    "bfe_u32_reg": ("bfe.u32", lambda e: ptx.bfe.u32(e.u, e.u, e.u)),
    "bfi_b32": ("bfi.b32", lambda e: ptx.bfi.b32(e.u, e.u, 4, 8)),
    "selp_u32": ("selp.u32", lambda e: select(e.p, e.u, 0)),
    "selp_f32": ("selp.f32", lambda e: select(e.p, e.f, e.f)),
    "selp_u64": ("selp.u64", lambda e: select(e.p, e.q, e.q)),
    # floating point
    "add_f32": ("add.f32", lambda e: e.f + e.f),
    "sub_f32": ("sub.f32", lambda e: e.f - e.f),
    "mul_f32": ("mul.f32", lambda e: e.f * e.f),
    "div_f32": ("div.rn.f32", lambda e: e.f / e.f),
    "div_f32_inplace": ("div.rn.f32", lambda e: e.rf.__itruediv__(e.f)),
    "mul_f32_inplace": ("mul.f32", lambda e: e.rf.__imul__(e.f)),
    "add_f32_inplace": ("add.f32", lambda e: e.rf.__iadd__(e.f)),
    "max_f32_inplace": ("max.f32", lambda e: ptx.max.f32(e.rf, e.f, out=e.rf)),
    "max_f32": ("max.f32", lambda e: ptx.max.f32(e.f, e.f)),
    "min_f32": ("min.f32", lambda e: ptx.min.f32(e.f, 0.0)),
    "fma_f32": ("fma.rn.f32", lambda e: ptx.fma.rn.f32(e.f, e.f, e.f)),
    "fma_f32_inplace": ("fma.rn.f32", lambda e: ptx.fma.rn.f32(e.f, e.f, e.rf, out=e.rf)),
    "add_f64": ("add.f64", lambda e: e.d + e.d),
    "fma_f64_acc": ("fma.rn.f64", lambda e: ptx.fma.rn.f64(e.d, e.d, e.rd, out=e.rd)),
    "neg_f32": ("neg.f32", lambda e: -e.f),
    "abs_f32": ("abs.f32", lambda e: ptx.abs.f32(e.f)),
    "sqrt_f32": ("sqrt.rn.f32", lambda e: ptx.sqrt.rn.f32(e.f)),
    "rsqrt_f32": ("rsqrt.approx.f32", lambda e: ptx.rsqrt.approx.f32(e.f)),
    "rcp_f32": ("rcp.approx.f32", lambda e: ptx.rcp.approx.f32(e.f)),
    "ex2_f32": ("ex2.approx.f32", lambda e: ptx.ex2.approx.f32(e.f)),
    "lg2_f32": ("lg2.approx.f32", lambda e: ptx.lg2.approx.f32(e.f)),
    "sin_f32": ("sin.approx.f32", lambda e: ptx.sin.approx.f32(e.f)),
    "cos_f32": ("cos.approx.f32", lambda e: ptx.cos.approx.f32(e.f)),
    # conversions
    "cvt_u64_u32": ("cvt.u64.u32", lambda e: e.u.to(u64)),
    "cvt_u32_u64": ("cvt.u32.u64", lambda e: e.q.to(u32)),
    "cvt_f32_u32": ("cvt.rn.f32.u32", lambda e: e.u.to(f32)),
    "cvt_f32_s32": ("cvt.rn.f32.s32", lambda e: e.s.to(f32)),
    "cvt_f64_f32": ("cvt.f64.f32", lambda e: e.f.to(f64)),
    "cvt_f32_f64_rn": ("cvt.rn.f32.f64", lambda e: e.d.to(f32)),
    "cvt_f16_f32": ("cvt.rn.f16.f32", lambda e: e.f.to(f16)),
    "cvt_f32_f16": ("cvt.f32.f16", lambda e: e.h.to(f32)),
    "cvt_bf16_f32": ("cvt.rn.bf16.f32", lambda e: ptx.cvt.rn.bf16.f32(e.f)),
    "cvt_rni_s32_f32": ("cvt.rni.s32.f32", lambda e: ptx.cvt.rni.s32.f32(e.f)),
    "cvt_floor_f32": ("cvt.rmi.f32.f32", lambda e: ptx.cvt.rmi.f32.f32(e.f)),
    "cvt_u32_u8": ("cvt.u32.u8", lambda e: e.byte.to(u32)),
    "cvt_u32_u16": ("cvt.u32.u16", lambda e: e.short.to(u32)),
    "cvt_u16_u32": ("cvt.u16.u32", lambda e: e.u.to(u16)),
    "cvt_s32_s8": ("cvt.s32.s8", lambda e: e.byte.to(s8).to(s32)),
    "cvt_s32_u8_sx": ("cvt.s32.s8", lambda e: e.byte.to(s8).to(s32)),
    "cvt_u8_s32": ("cvt.u8.s32", lambda e: e.s.to(u8)),
    # comparison and control flow
    **{f"setp_{op}_u32": (f"setp.{op}.u32", lambda e, op=op: ptx[f"setp.{op}.u32"](e.u, e.u))
       for op in ("ge", "eq", "ne", "lt", "gt", "le")},
    "setp_lt_f32": ("setp.lt.f32", lambda e: e.f < e.f),
    "setp_gt_f32": ("setp.gt.f32", lambda e: e.f > 0.0),
    "label, branch": ("bra", _branch),
    "branch_if": ("bra", _branch_if),
    "ret": ("ret", lambda e: ptx.ret(pred=e.p)),
    "exit": ("exit", lambda e: ptx.exit(pred=e.p)),
    # memory
    "ld_global_f32": ("ld.global.f32", lambda e: e.floats[e.u]),
    "ld_global_f32_v4": ("ld.global.v4.f32", lambda e: e.floats.load(0, width=4)),
    "st_global_f32": ("st.global.f32", lambda e: e.floats.store(e.u, e.f)),
    "st_global_f32_v2": ("st.global.v2.f32", lambda e: e.floats.store(0, [e.f, e.f])),
    "ld_global_f32_predicated": ("ld.global.f32", lambda e: e.floats.load(e.u, pred=e.p, out=e.rf)),
    "ld_global_u32_into": ("ld.global.u32", lambda e: e.integers.load(e.u, out=e.ru)),
    "ld_global_u32": ("ld.global.u32", lambda e: e.integers[e.u]),
    "st_global_u32": ("st.global.u32", lambda e: e.integers.store(e.u, e.u)),
    "ld_global_u64": ("ld.global.u64", lambda e: e.integers.cast(u64)[0]),
    "st_global_u64": ("st.global.u64", lambda e: e.integers.cast(u64).store(0, e.q)),
    "ld_global_u8": ("ld.global.u8", lambda e: e.integers.cast(u8)[e.u]),
    "st_global_u8": ("st.global.u8", lambda e: e.integers.cast(u8).store(0, e.u.to(u8))),
    "ld_global_u16": ("ld.global.u16", lambda e: e.integers.cast(u16)[e.u]),
    "st_global_u16": ("st.global.u16", lambda e: e.integers.cast(u16).store(0, e.short)),
    "ld_global_f16": ("ld.global.b16", lambda e: e.halves[e.u]),
    "st_global_f16": ("st.global.b16", lambda e: e.halves.store(e.u, e.h)),
    "ld_shared_f32": ("ld.shared.f32", lambda e: e.tile[e.u]),
    "st_shared_f32": ("st.shared.f32", lambda e: e.tile.store(e.u, e.f)),
    "ld_shared_f32_v4": ("ld.shared.v4.f32", lambda e: e.tile.load(0, width=4)),
    "ld_shared_u32": ("ld.shared.u32", lambda e: e.words[e.u]),
    "ld_shared_u32_volatile": ("ld.volatile.shared.u32", lambda e: ptx.ld.volatile.shared.u32(e.words)),
    "st_shared_f16": ("st.shared.b16", lambda e: e.tile.cast(f16).store(e.u, e.h)),
    "dynamic shared memory": ("ld.shared.f32", lambda e: dynamic_shared(f32)[e.u]),
    "ld_generic_u32": ("ld.u32", lambda e: e.words.generic()[e.u]),
    "st_generic_f32": ("st.f32", lambda e: e.tile.generic().store(e.u, e.f)),
    "prefetch_global_l2": ("prefetch.global.L2", lambda e: ptx.prefetch.global_.L2(e.floats)),
    # synchronisation, warps, atomics
    "bar_sync": ("bar.sync", lambda e: ptx.bar.sync(0)),
    "membar_cta": ("membar.cta", lambda e: ptx.membar.cta()),
    "membar_gl": ("membar.gl", lambda e: ptx.membar.gl()),
    "fence_acq_rel": ("fence.acq_rel.gpu", lambda e: ptx.fence.acq_rel.gpu()),
    "shfl_down_f32": ("shfl.sync.down.b32", lambda e: ptx.shfl.sync.down.b32(e.f, 16, 31, 0xFFFFFFFF)),
    "shfl_up": ("shfl.sync.up.b32", lambda e: ptx.shfl.sync.up.b32(e.u, 1, 0, 0xFFFFFFFF)),
    "shfl_xor_f32": ("shfl.sync.bfly.b32", lambda e: ptx.shfl.sync.bfly.b32(e.f, 1, 31, 0xFFFFFFFF)),
    "shfl_idx_u32_reg": ("shfl.sync.idx.b32", lambda e: ptx.shfl.sync.idx.b32(e.u, e.u, 31, 0xFFFFFFFF)),
    "vote_ballot": ("vote.sync.ballot.b32", lambda e: ptx.vote.sync.ballot.b32(e.p, 0xFFFFFFFF)),
    "vote_all": ("vote.sync.all.pred", lambda e: ptx.vote.sync.all.pred(e.p, 0xFFFFFFFF)),
    "vote_any": ("vote.sync.any.pred", lambda e: ptx.vote.sync.any.pred(e.p, 0xFFFFFFFF)),
    "redux": ("redux.sync.add.u32", lambda e: ptx.redux.sync.add.u32(e.u, 0xFFFFFFFF)),
    **{f"atom_{op}_{space}_u32": (
        f"atom.{space}.{op}.{'b32' if op == 'exch' else 'u32'}",
        lambda e, op=op, space=space: ptx[f"atom.{space}.{op}.{'b32' if op == 'exch' else 'u32'}"](
            e.integers if space == "global" else e.words, e.u),
    ) for op in ("add", "exch", "min", "max") for space in ("global", "shared")},
    "atom_cas_global_u32": ("atom.global.cas.b32", lambda e: ptx.atom.global_.cas.b32(e.integers, e.u, e.u)),
    "atom_add_global_f32": ("atom.global.add.f32", lambda e: ptx.atom.global_.add.f32(e.floats, e.f)),
    "red": ("red.global.add.u32", lambda e: ptx.red.global_.add.u32(e.integers, 1)),
}

TENSOR: dict[str, tuple[str, Line]] = {
    "cp_async_global_to_shared": (
        "cp.async.cg.shared.global", lambda e: ptx.cp.async_.cg.shared.global_(e.tile, e.floats, 16)
    ),
    "cp_async_commit_group": ("cp.async.commit_group", lambda e: ptx.cp.async_.commit_group()),
    "cp_async_wait_group": ("cp.async.wait_group", lambda e: ptx.cp.async_.wait_group(0)),
    "wmma_load, mma, store": ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", _wmma),
    "ldmatrix_x4": (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16", lambda e: ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"](e.tile)
    ),
    "ldmatrix_x2_trans": (
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
        lambda e: ptx["ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16"](e.tile),
    ),
    "mma_sync_m16n8k16": (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        lambda e: ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]([e.u] * 4, [e.u] * 2, [e.f] * 4),
    ),
    "mma_sync_m16n8k32_s8_inplace": (
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        lambda e: ptx["mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"]([e.u] * 4, [e.u] * 2, [e.s] * 4),
    ),
}

ALL = {**SIMPLE, **TENSOR}


def make(*lines: Line) -> Kernel:
    """A kernel of these lines, each in a region of its own."""

    @ptx_kernel
    def kernel(
        u: u32, s: s32, q: u64, f: f32, d: f64, h: f16, short: u16, byte: u8,
        integers: Ptr[u32], floats: Ptr[f32], halves: Ptr[f16],
    ) -> None:
        tile, words = shared(f32, 256), shared(u32, 64)
        for line in lines:
            e = SimpleNamespace(
                u=u, s=s, q=q, f=f, d=d, h=h, short=short, byte=byte, integers=integers, floats=floats, halves=halves,
                tile=tile, words=words, p=u < 5, ru=reg(u32, 0), rs=reg(s32, 0), rf=reg(f32, 0.0), rd=reg(f64, 0.0),
            )
            line(e)

    assert isinstance(kernel, Kernel)
    return kernel


@pytest.mark.parametrize("name", ALL)
def test_one_line_is_that_instruction(name: str) -> None:
    mnemonic, line = ALL[name]
    module = make(line).ir()
    assert mnemonic in [instruction.form.mnemonic for instruction in module.functions[-1].instructions()]


@pytest.mark.ptxas
def test_all_of_them_assemble() -> None:
    lines = [line for name, (_, line) in SIMPLE.items() if name not in ("label, branch", "ret", "exit")]
    assert make(*lines).attributes(arch="sm_80").num_regs > 0
    assert make(*(line for _, line in TENSOR.values())).attributes(arch="sm_80").num_regs > 0


def test_the_list_is_long() -> None:
    assert len(ALL) > 150
