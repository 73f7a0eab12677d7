"""Matrix-vector products with Q4_K weights, as GGUF files have them, and RMSNorm fused into them.

The weights stay packed: a warp computes an output, each lane unpacks 8 weights of a super-block of 256 from one 32-bit
word, and a sub-block's scale and minimum are applied to sums, not to weights::

    y[m, j] = sum over sub-blocks b of  d_b * scale_b * sum_i q_i x_i  -  dmin_b * minimum_b * sum_i x_i

RMSNorm divides x by one number, which comes out of the sum: what is multiplied is x * gamma, the squares are summed on
the way, and the result is divided at the end. Nothing is written to memory in between, and K has no limit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, f16, f32, loop, ptx, ptx_kernel, reg, select, u8, u32, unpack, when
from .. import warp

from . import arguments
from .q4k import BLOCK_BYTES, BLOCK_WEIGHTS, dequantize_q4k, quantize_q4k

__all__ = ["dequantize_q4k", "gemv_kernel", "q4k_gemv", "quantize_q4k", "rmsnorm_q4k_gemv"]

X_DTYPES = ["float16", "bfloat16", "float32"]
WARPS = 4
"""Outputs a block computes."""
TOKENS = 4
"""Rows of x that share the unpacking of a weight, at most."""


def _byte(word: Any, index: int) -> Any:
    return (word >> (8 * index)) & 0xFF


def _scales(header: Any, group: Any) -> list[Any]:
    """Scale and minimum of the sub-blocks 2 group and 2 group + 1, as f32: s0, m0, s1, m1.

    ``header`` is the first 16 bytes of a super-block as four words. Sub-blocks 0 to 3 have their 6 bits in words 1 and
    2; 4 to 7 have their low 4 bits in word 3 and their high 2 bits on top of words 1 and 2.
    """
    pair = header[0].bits(u32)
    d, dmin = (half.to(f32) for half in unpack(pair, f16))
    s, m, low = header[1:]
    upper = group >= 2
    scales = select(upper, (low & 0x0F0F0F0F) | ((s >> 2) & 0x30303030), s & 0x3F3F3F3F)
    minimums = select(upper, ((low >> 4) & 0x0F0F0F0F) | ((m >> 2) & 0x30303030), m & 0x3F3F3F3F)
    shift = (group & 1) * 16
    scales, minimums = scales >> shift, minimums >> shift
    return [unit * _byte(word, i).to(f32) for i in (0, 1) for unit, word in ((d, scales), (dmin, minimums))]


def _product(
    x: Any, gamma: Any, w: Any, y: Any, n: Any, blocks: Any, start: Any, eps: Any, dtype: ScalarType, tokens: int
) -> None:
    """The kernel for rows start to start + tokens of x; ``gamma`` and ``eps`` are None without RMSNorm."""
    lane, group = ptx.tid.x & 31, (ptx.tid.x & 31) >> 3
    output = ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)
    first = start + ptx.ctaid.y * tokens
    width = blocks * BLOCK_WEIGHTS
    at = group * 64 + (lane & 7) * 4  # the lane's 4 low nibbles; its high ones are 32 further
    rows = [x + ptx.mul.wide.u32(first + t, width) for t in range(tokens)]

    with when(output < n):
        weights = w.cast(u32) + ptx.mul.wide.u32(output, blocks * (BLOCK_BYTES // 4))
        dots = [reg(f32, 0.0) for _ in rows]
        squares = [reg(f32, 0.0) for _ in rows] if gamma is not None else []
        with loop(0, blocks) as block:
            packed = weights + block * (BLOCK_BYTES // 4)
            scale0, minimum0, scale1, minimum1 = _scales(packed.load(0, width=4), group)
            word = packed[lane + 4]
            nibbles = [((word >> shift) & 15).to(f32) for half in (0, 4) for shift in range(half, 32, 8)]
            column = block * BLOCK_WEIGHTS + at
            factors = None
            if gamma is not None:
                factors = [v.to(f32) for half in (0, 32) for v in gamma.load(column + half, width=4)]
            for t, row in enumerate(rows):
                values = [v.to(f32) for half in (0, 32) for v in row.load(column + half, width=4)]
                if factors is not None:
                    for v in values:
                        ptx.fma.rn.f32(v, v, squares[t], out=squares[t])
                    values = [v * factor for v, factor in zip(values, factors)]
                for half, scale, minimum in ((0, scale0, minimum0), (4, scale1, minimum1)):
                    mine, quants = values[half : half + 4], nibbles[half : half + 4]
                    dot, total = mine[0] * quants[0], mine[0]
                    for v, quant in zip(mine[1:], quants[1:]):
                        dot, total = ptx.fma.rn.f32(v, quant, dot), total + v
                    ptx.fma.rn.f32(scale, dot, dots[t], out=dots[t])
                    ptx.fma.rn.f32(-minimum, total, dots[t], out=dots[t])
        for t, dot in enumerate(dots):
            result = warp.reduce_sum(dot)
            if squares:
                mean = ptx.div.rn.f32(warp.reduce_sum(squares[t]), width.to(f32))
                result = ptx.div.rn.f32(result, ptx.sqrt.rn.f32(mean + eps))
            with when(lane == 0):
                (y + ptx.mul.wide.u32(first + t, n))[output] = result.to(dtype)


@cache
def gemv_kernel(dtype: ScalarType, gamma_type: ScalarType | None, tokens: int) -> Kernel:
    """The product for ``tokens`` rows of x at a time; with a type of gamma, of RMSNorm of them."""
    if gamma_type is None:

        @ptx_kernel(name=f"q4k_gemv_{dtype}_{tokens}", reqntid=WARPS * 32)
        def kernel(x: Ptr[dtype], w: Ptr[u8], y: Ptr[dtype], n: u32, blocks: u32, start: u32) -> None:
            _product(x, None, w, y, n, blocks, start, None, dtype, tokens)
    else:

        @ptx_kernel(name=f"rmsnorm_q4k_gemv_{dtype}_{gamma_type}_{tokens}", reqntid=WARPS * 32)
        def kernel(
            x: Ptr[dtype], gamma: Ptr[gamma_type], w: Ptr[u8], y: Ptr[dtype], n: u32, blocks: u32, start: u32,
            eps: f32,
        ) -> None:
            _product(x, gamma, w, y, n, blocks, start, eps, dtype, tokens)

    return kernel


def _run(x: Any, gamma: Any, w_q4k: Any, n: int, eps: float, out: Any) -> Any:
    """Check the arguments of either product, and launch it for all rows of x."""
    rows, k = arguments.expect("x", x, ["M", "K"], X_DTYPES)
    dtype = arguments.floating("x", x)
    if rows < 1 or k < 1 or k % BLOCK_WEIGHTS:
        raise arguments.wrong(f"`x` has shape {[rows, k]}; M is 1 or more and K a positive multiple of {BLOCK_WEIGHTS}")
    arguments.size("n", n, range(1, 2**31))
    blocks = k // BLOCK_WEIGHTS
    arguments.expect("w_q4k", w_q4k, [n, blocks * BLOCK_BYTES], ["uint8"])
    inputs = {"x": x, "w_q4k": w_q4k}
    if gamma is not None:
        arguments.expect("gamma", gamma, [k], X_DTYPES)
        inputs["gamma"] = gamma
    if out is None:
        out = arguments.empty_like(x, (rows, n), dtype)
    arguments.expect("out", out, [rows, n], [arguments.dtype_name(x)])
    arguments.expect_output(out, **inputs)
    x, w_q4k, gamma = arguments.aligned(16, x=x, w_q4k=w_q4k, gamma=gamma)
    grid = -(-n // WARPS)
    for start, count, tokens in ((0, rows // TOKENS, TOKENS), (rows - rows % TOKENS, 1, rows % TOKENS)):
        if not tokens or not count:
            continue
        kernel = gemv_kernel(dtype, None if gamma is None else arguments.floating("gamma", gamma), tokens)
        launch = kernel[(grid, count), WARPS * 32]
        if gamma is None:
            launch(x, w_q4k, out, n, blocks, start)
        else:
            launch(x, gamma, w_q4k, out, n, blocks, start, eps)
    return out


def q4k_gemv(x: Any, w_q4k: Any, n: int, *, out: Any = None) -> Any:
    """y = x W^T with W in Q4_K.

    Args:
        x: ``[M, K]``, float16, bfloat16 or float32, K a multiple of 256; made for small M.
        w_q4k: W, ``[n, K / 256 * 144]`` of uint8 as :func:`quantize_q4k` and GGUF files have it, 16-byte aligned.
        n: Rows of W.
        out: ``[M, n]`` of x's dtype; a new array of x's kind if None.

    Sums are in float32.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or alignment that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> x = np.ones((1, 256), np.float32)
    >>> w = quantize_q4k(np.tile(np.arange(16, dtype=np.float32), (3, 16)))
    >>> q4k_gemv(x, w, 3).round()
    array([[1920., 1920., 1920.]], dtype=float32)
    """
    return _run(x, None, w_q4k, n, 0.0, out)


def rmsnorm_q4k_gemv(x: Any, gamma: Any, w_q4k: Any, n: int, *, eps: float = 1e-5, out: Any = None) -> Any:
    """y = RMSNorm(x) W^T with W in Q4_K, where RMSNorm(x) = gamma x / sqrt(mean(x^2) + eps).

    Args:
        x: As of :func:`q4k_gemv`.
        gamma: ``[K]``, float16, bfloat16 or float32.
        w_q4k: As of :func:`q4k_gemv`.
        n: Rows of W.
        eps: Added to the mean of the squares, 0 or more.
        out: As of :func:`q4k_gemv`.

    Returns:
        ``out``.

    Raises:
        LaunchError: As of :func:`q4k_gemv`.

    >>> x, gamma = np.full((1, 256), 3, np.float32), np.ones(256, np.float32)
    >>> w = quantize_q4k(np.tile(np.arange(16, dtype=np.float32), (1, 16)))
    >>> rmsnorm_q4k_gemv(x, gamma, w, 1).round()
    array([[1920.]], dtype=float32)
    """
    if arguments.number("eps", eps) < 0:
        raise arguments.wrong(f"eps is {eps!r}; it can be 0 or more")
    return _run(x, gamma, w_q4k, n, float(eps), out)
