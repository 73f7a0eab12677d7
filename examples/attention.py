"""Causal attention of one head with an online softmax: one warp a query, the scores are never stored."""

from math import e, inf, log2, sqrt

import numpy as np

from ptxdsl import Ptr, f32, loop, maximum, ptx, ptx_kernel, reg, u32, when
from ptxdsl import warp
from ptxdsl.bench import Row, compare, report


@ptx_kernel
def attention(
    length: u32, scale: f32, q: Ptr[f32], k: Ptr[f32], v: Ptr[f32], out: Ptr[f32], *, dim: int = 64
) -> None:
    """out[i] = sum over j <= i of softmax(scale q[i] . k[j])[j] v[j]; lane l holds the elements l, l + 32, ..."""
    lane, i = ptx.tid.x, ptx.ctaid.x * ptx.ntid.y + ptx.tid.y
    with when(i < length):
        slices = range(0, dim, 32)
        query = [q[i * dim + lane + d] for d in slices]
        acc = [reg(f32, 0.0) for _ in slices]
        largest, total = reg(f32, -inf), reg(f32, 0.0)
        with loop(0, i + 1) as j:
            row = j * dim + lane
            dot = query[0] * k[row]
            for part, d in zip(query[1:], slices[1:]):
                dot = ptx.fma.rn.f32(part, k[row + d], dot)
            score = warp.reduce_sum(dot) * (scale * log2(e))
            top = maximum(largest, score)
            shrink, weight = ptx.ex2.approx.f32(largest - top), ptx.ex2.approx.f32(score - top)
            largest.set(top)
            ptx.fma.rn.f32(total, shrink, weight, out=total)
            for part, d in zip(acc, slices):
                ptx.fma.rn.f32(part, shrink, weight * v[row + d], out=part)
        inverse = ptx.rcp.approx.f32(total)
        for part, d in zip(acc, slices):
            out[i * dim + lane + d] = part * inverse


def main(length: int = 200, dim: int = 64, warps: int = 4) -> Row:
    rng = np.random.default_rng()
    q, k, v = rng.standard_normal((3, length, dim)).astype(np.float32)
    out, scale = np.full_like(q, np.nan), 1 / sqrt(dim)

    scores = np.where(np.tri(length, dtype=bool), scale * (q.astype(np.float64) @ k.T), -inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ v

    grid, block = -(-length // warps), (32, warps)
    return compare(
        f"causal attention, {length} x {dim}",
        lambda: attention[grid, block](length, scale, q, k, v, out, dim=dim), out, expected, 1e-5,
    )


if __name__ == "__main__":
    report(main())
