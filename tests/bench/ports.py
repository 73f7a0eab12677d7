"""pyptx's own RMSNorm and softmax, instruction for instruction: what the time of tracing one is measured by.

Each line here is the line there, in the words of PTX that ptxdsl has for it; so the addresses are computed anew at run
time wherever pyptx computes them, which `norms` leaves to the language. Left out is only what `when` does without (a
branch over an empty ``else``) and a product with 1 and a sum with 0 in each index of shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import e, inf, log2
from typing import Any

from ptxdsl import Kernel, Ptr, b32, f32, ptx, ptx_kernel, reg, shared, u64, when

__all__ = ["build_rms_norm", "build_softmax"]

BLOCKS = (512, 256, 128, 64, 32)
WARP = 32
LOG2E = log2(e)


def build_rms_norm(n: int, eps: float = 1e-6) -> Kernel:
    """``y = x * w / sqrt(mean(x * x) + eps)`` for rows of ``n``: a multiple of 4 times the block."""
    block = next(b for b in reversed(BLOCKS) if b >= 128 and n % (4 * b) == 0)
    warps, items = block // WARP, n // block

    @ptx_kernel
    def rms_norm(x: Ptr[f32], w: Ptr[f32], y: Ptr[f32]) -> None:
        partials, stats = shared(f32, warps), shared(f32, 1)
        px, pw, py = global_addresses(x, w, y)
        tid = ptx.tid.x
        row = ptx.ctaid.x
        row_bytes = row * (n * 4)
        px += row_bytes.to(u64)
        py += row_bytes.to(u64)
        lane = tid & (WARP - 1)
        warp = tid >> 5

        sum_sq = reg(f32, 0.0)
        x_values: list[Any] = []
        first = tid << 2
        for j in range(items // 4):
            index = first if j == 0 else first + j * block * 4
            address = px + (index * 4).to(u64)
            x_values += ptx.ld.global_.v4.f32(address)
            for value in x_values[-4:]:
                ptx.fma.rn.f32(value, value, sum_sq, out=sum_sq)

        across_block(ptx.add.f32, sum_sq, 0.0, partials, stats, tid, lane, warp)
        ptx.mov.f32(load(stats, 0), out=sum_sq)
        mean_sq = reg(f32)
        inverse = ptx.mov.f32(1 / n)
        ptx.mul.f32(sum_sq, inverse, out=mean_sq)
        epsilon = ptx.mov.f32(eps)
        ptx.add.f32(mean_sq, epsilon, out=mean_sq)
        rstd = ptx.rsqrt.approx.f32(mean_sq)

        for j in range(items // 4):
            index = first if j == 0 else first + j * block * 4
            offset = index * 4
            weights = ptx.ld.global_.v4.f32(pw + offset.to(u64))
            y_values = []
            for value, weight in zip(x_values[j * 4 : j * 4 + 4], weights):
                y_value = ptx.mul.f32(value, rstd)
                y_values.append(ptx.mul.f32(y_value, weight))
            ptx.st.global_.v4.f32(py + offset.to(u64), y_values)

    return rms_norm


def build_softmax(n: int) -> Kernel:
    """The softmax of rows of ``n``, a multiple of 32."""
    block = next(b for b in BLOCKS if n % b == 0)
    warps, items = block // WARP, n // block
    width = 4 if items % 4 == 0 else 1

    @ptx_kernel
    def softmax(x: Ptr[f32], y: Ptr[f32]) -> None:
        partials, stats = shared(f32, warps), shared(f32, 1)
        px, py = global_addresses(x, y)
        tid = ptx.tid.x
        row = ptx.ctaid.x
        row_bytes = row * (n * 4)
        px += row_bytes.to(u64)
        py += row_bytes.to(u64)
        lane = tid & (WARP - 1)
        warp = tid >> 5

        x_values: list[Any] = []
        row_max = reg(f32, -inf)
        if width == 4:
            first = tid << 2
            for j in range(items // 4):
                index = first if j == 0 else first + j * block * 4
                x_values += ptx.ld.global_.v4.f32(px + (index * 4).to(u64))
                for value in x_values[-4:]:
                    ptx.max.f32(row_max, value, out=row_max)
        else:
            for j in range(items):
                index = tid + j * block
                x_values.append(ptx.ld.global_.f32(px + (index * 4).to(u64)))
                ptx.max.f32(row_max, x_values[-1], out=row_max)

        across_block(ptx.max.f32, row_max, -inf, partials, stats, tid, lane, warp)
        ptx.mov.f32(load(stats, 0), out=row_max)

        minus_log2e = ptx.mov.f32(-LOG2E)
        log2e = ptx.mov.f32(LOG2E)
        shift = ptx.mul.f32(row_max, minus_log2e)
        row_sum = reg(f32, 0.0)
        powers = []
        for value in x_values:
            power = ptx.ex2.approx.f32(ptx.fma.rn.f32(value, log2e, shift))
            ptx.add.f32(row_sum, power, out=row_sum)
            powers.append(power)

        across_block(ptx.add.f32, row_sum, 0.0, partials, stats, tid, lane, warp)
        ptx.mov.f32(load(stats, 0), out=row_sum)
        inverse = ptx.rcp.approx.f32(row_sum)

        if width == 4:
            first = tid << 2
            for j in range(items // 4):
                index = first if j == 0 else first + j * block * 4
                address = py + (index * 4).to(u64)
                ptx.st.global_.v4.f32(address, [ptx.mul.f32(power, inverse) for power in powers[j * 4 : j * 4 + 4]])
        else:
            for j, power in enumerate(powers):
                y_value = ptx.mul.f32(power, inverse)
                index = tid + j * block
                ptx.st.global_.f32(py + (index * 4).to(u64), y_value)

    return softmax


def global_addresses(*pointers: Any) -> Iterable[Any]:
    """``ptx.global_ptrs``: parameters as addresses of global memory."""
    return [ptx.cvta.to.global_.u64(pointer.address) for pointer in pointers]


def across_block(
    combine: Any, value: Any, start: float, partials: Any, stats: Any, tid: Any, lane: Any, warp: Any
) -> None:
    """``ptx.warp.reduce_sum`` or ``reduce_max``, then one value a warp becomes one a block, in ``stats``."""
    for distance in (16, 8, 4, 2, 1):
        partner = ptx.shfl.sync.bfly.b32(value.bits(b32), distance, 31, 0xFFFFFFFF)
        combine(value, partner.bits(f32), out=value)
    with when(lane == 0):
        ptx.st.shared.f32(element(partials, warp), value)
    ptx.bar.sync(0)
    with when(tid == 0):
        total = reg(f32, start)
        for other in range(partials.shape[0]):
            combine(total, load(partials, other), out=total)
        ptx.st.shared.f32(element(stats, ptx.mov.u32(0)), total)
    ptx.bar.sync(0)


def load(array: Any, index: int) -> Any:
    """``partials[i, 0]``."""
    return ptx.ld.shared.f32(element(array, ptx.mov.u32(index)))


def element(array: Any, index: Any) -> Any:
    """The address of an element of shared memory, all of it computed at run time."""
    offset = index << 2
    return ptx.mov.u32(array) + offset
