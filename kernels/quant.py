"""Matrix-vector products with quantised weights, as GGUF files have them, and RMSNorm fused into those of Q4_K.

The weights stay packed: a warp computes an output, each lane unpacks 8 weights of a super-block of 256 from one 32-bit
word, and a sub-block's scale and minimum are applied to sums, not to weights::

    y[m, j] = sum over sub-blocks b of  d_b * scale_b * sum_i q_i x_i  -  dmin_b * minimum_b * sum_i x_i

RMSNorm divides x by one number, which comes out of the sum: what is multiplied is x * gamma, the squares are summed on
the way, and the result is divided at the end. Nothing is written to memory in between, and K has no limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, cdiv, f32, loop, ptx, ptx_kernel, reg, u8, u32, warp, when

from . import arguments
from .gguf import FORMATS, dequantize, quantize
from .gguf_gemv import gemv_kernel as gguf_kernel
from .q4k_int8 import int8_kernel, int8_product, quantize_activations
from .quant_scales import sub_block_scales
from .q4k import BLOCK_BYTES, BLOCK_WEIGHTS, dequantize_q4k, quantize_q4k

__all__ = [
    "dequantize", "dequantize_q4k", "gemv", "gemv_kernel", "gguf_kernel", "int8_kernel", "q4k_gemv", "quantize",
    "quantize_activations", "quantize_q4k", "rmsnorm_q4k_gemv",
]

X_DTYPES = ["float16", "bfloat16", "float32"]
WARPS = 4
"""Outputs a block computes."""
ACTIVATIONS = ("float", "int8")
"""What x is multiplied as."""
TOKENS = 4
"""Rows of x that share the unpacking of a weight, at most."""


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
            scale0, minimum0, scale1, minimum1 = sub_block_scales(packed.load(0, width=4), group)
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


def _run(x: Any, gamma: Any, w_q4k: Any, n: int, eps: float, out: Any, int8: bool = False) -> Any:
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
    if int8:
        int8_product(x, gamma, w_q4k, out, n, blocks, eps)
        return out
    for start, count, tokens in _portions(rows):
        kernel = gemv_kernel(dtype, None if gamma is None else arguments.floating("gamma", gamma), tokens)
        launch = kernel[(cdiv(n, WARPS), count), WARPS * 32]
        if gamma is None:
            launch(x, w_q4k, out, n, blocks, start)
        else:
            launch(x, gamma, w_q4k, out, n, blocks, start, eps)
    return out


def _portions(rows: int) -> Iterator[tuple[int, int, int]]:
    """Rows of x by launches: the first row, how many blocks along y, and rows a block."""
    for some in arguments.spans(rows // TOKENS):
        yield some.start * TOKENS, some.stop - some.start, TOKENS
    if rows % TOKENS:
        yield rows - rows % TOKENS, 1, rows % TOKENS


def gemv(x: Any, w: Any, n: int, format: str, *, out: Any = None) -> Any:  # noqa: A002 - the field's word
    """y = x W^T with W in a block format of GGUF.

    Args:
        x: ``[M, K]``, float16, bfloat16 or float32, K a multiple of the format's block; made for small M.
        w: W, ``[n, K / weights * bytes]`` of uint8 as :func:`quantize` and GGUF files have it, 16-byte aligned.
        n: Rows of W.
        format: ``"q8_0"``, ``"q4_0"``, ``"q4_1"``, ``"q5_0"``, ``"q5_1"`` (blocks of 32 weights), ``"q4_k"``,
            ``"q5_k"`` or ``"q6_k"`` (of 256).
        out: ``[M, n]`` of x's dtype; a new array of x's kind if None.

    Weights are unpacked to float32, and sums are in float32.

    Raises:
        LaunchError: A format, shape, dtype or alignment that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> x, w = np.ones((1, 64), np.float32), np.tile(np.arange(-16, 16, dtype=np.float32), (3, 2))
    >>> gemv(x, quantize(w, "q5_0"), 3, "q5_0").tolist()
    [[-32.0, -32.0, -32.0]]
    """
    if format not in FORMATS:
        raise arguments.wrong(f"format is {format!r:.60}; it can be {', '.join(FORMATS)}")
    kind = FORMATS[format]
    rows, k = arguments.expect("x", x, ["M", "K"], X_DTYPES)
    if rows < 1 or k < 1 or k % kind.weights:
        raise arguments.wrong(f"`x` has shape {[rows, k]}; M is 1 or more and K a positive multiple of {kind.weights}")
    arguments.size("n", n, range(1, 2**31))
    blocks, dtype = k // kind.weights, arguments.floating("x", x)
    arguments.expect("w", w, [n, blocks * kind.nbytes], ["uint8"])
    if out is None:
        out = arguments.empty_like(x, (rows, n), dtype)
    arguments.expect("out", out, [rows, n], [arguments.dtype_name(x)])
    arguments.expect_output(out, x=x, w=w)
    x, w = arguments.aligned(16, x=x, w=w)
    for start, count, tokens in _portions(rows):
        gguf_kernel(format, dtype, tokens)[(cdiv(n, WARPS), count), WARPS * 32](x, w, out, n, blocks, start)
    return out


def q4k_gemv(x: Any, w_q4k: Any, n: int, *, activations: str = "float", out: Any = None) -> Any:
    """y = x W^T with W in Q4_K.

    Args:
        x: ``[M, K]``, float16, bfloat16 or float32, K a multiple of 256; made for small M.
        w_q4k: W, ``[n, K / 256 * 144]`` of uint8 as :func:`quantize_q4k` and GGUF files have it, 16-byte aligned.
        n: Rows of W.
        activations: ``"float"``, or ``"int8"``: x is quantised to 8 bits first, 32 numbers to a scale, and the products
            are ``dp4a``. That takes a quarter of the instructions, and adds an error of up to half a step of x, 1/254
            of the largest of its 32 numbers, for each product.
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
    arguments.one_of("activations", activations, ACTIVATIONS)
    return _run(x, None, w_q4k, n, 0.0, out, activations == "int8")


def rmsnorm_q4k_gemv(
    x: Any, gamma: Any, w_q4k: Any, n: int, *, eps: float = 1e-5, activations: str = "float", out: Any = None
) -> Any:
    """y = RMSNorm(x) W^T with W in Q4_K, where RMSNorm(x) = gamma x / sqrt(mean(x^2) + eps).

    Args:
        x: As of :func:`q4k_gemv`.
        gamma: ``[K]``, float16, bfloat16 or float32.
        w_q4k: As of :func:`q4k_gemv`.
        n: Rows of W.
        eps: Added to the mean of the squares, 0 or more.
        activations: As of :func:`q4k_gemv`; by ``"int8"`` gamma x is quantised. The root is that of x itself.
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
    arguments.one_of("activations", activations, ACTIVATIONS)
    return _run(x, gamma, w_q4k, n, float(eps), out, activations == "int8")
