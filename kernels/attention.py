"""Attention: softmax(scale q k^T) v without ever storing the scores.

Every kernel here keeps, for each query, the running state of an online softmax (Milakov & Gimelshein 2018, Dao et al.
2022): the largest score so far, the sum of the weights relative to it, and the weighted sum of values. A state is
rescaled when a larger score comes, and two states are merged the same way, so keys can be split over warps and blocks.

Formula, with query i, its keys j and scores s_ij = scale * q_i . k_j::

    out_i = sum_j exp(s_ij - max_j s_ij) v_j / sum_j exp(s_ij - max_j s_ij)        0 where there is no key
"""

from __future__ import annotations

from typing import Any

from .. import Kernel, ScalarType, bf16, cdiv, f16, f32, f64

from . import arguments
from . import flash_backward as backward
from . import flash_backward_mma as backward_mma
from .attention_arguments import (
    ALIGNMENT, check_heads, check_size, chosen_for_gradients, chosen_tensor_cores, factor_of,
)
from .attention_fp8 import fp8_attention
from .attention_packed import varlen_attention, varlen_attention_backward
from .autograd import deterministic, differentiable
from .decoding import decode_attention, flash_decoding, paged_decode
from .flash import flash_kernel, queries_a_warp, template_kernel
from .flash_wmma import queries_a_block, wmma_kernel
from .hopper import flash as hopper_flash
from .hopper import flash_backward as hopper_backward

__all__ = [
    "decode_attention", "flash_attention", "flash_attention_backward", "flash_decoding", "fp8_attention",
    "paged_decode", "template", "varlen_attention", "varlen_attention_backward",
]

WARPS = 4


def _backward(
    grad_out: Any, q: Any, k: Any, v: Any, causal: bool, scale: float | None, out: Any, logarithms: Any
) -> dict[str, Any]:
    if logarithms is None:
        found = flash_attention_backward(grad_out, q, k, v, causal=causal, scale=scale, tensor_cores="mma")
    else:
        (gradient,) = arguments.aligned(ALIGNMENT, gradient=grad_out)
        factor = factor_of(scale, q.shape[-1])
        found = hopper_backward.differentiate(gradient, q, k, v, out, logarithms, causal=bool(causal), scale=factor)
    return dict(zip("qkv", found))


def _recorded(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """The result, and by wgmma what the backward pass takes of the forward one."""
    out, logarithms = _attend(*args, **kwargs, recorded=not deterministic())
    return out, {"logarithms": logarithms}


@differentiable("q", "k", "v", backward=_backward, recorded=_recorded)
def flash_attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None, out: Any = None,
    tensor_cores: bool | str | None = None,
) -> Any:
    """Attention of every query to every key it may see.

    Args:
        q: ``[B, Hq, Sq, D]``, float16, bfloat16, float32 or float64, C-contiguous as all arrays here.
        k: ``[B, Hkv, Sk, D]``, of q's dtype; Hq is a multiple of Hkv, and head h of q uses head h // (Hq / Hkv).
        v: As ``k``.
        causal: Query i sees the keys up to i + Sk - Sq, so that the last query sees the last key.
        scale: Factor of the scores; ``1 / sqrt(D)`` if None.
        out: Where to put the result, ``[B, Hq, Sq, D]`` of q's dtype; a new array of q's kind if None.
        tensor_cores: True makes both products on tensor cores, for float16 and bfloat16 arrays that begin at a
            multiple of 16 bytes; the weights are then rounded to q's dtype before the second product. By which
            instructions the GPU decides, or a word: "wgmma" (sm_90a: `hopper.flash`), "wmma". False takes the FP32
            kernel. None takes tensor cores where they can be had on a GPU, and the FP32 kernel on the emulator.

    D is 16 to 256 in steps of 8, the other extents are 1 or more. Sums are in float32 (float64 for float64). A query
    that sees no key gives zeros.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or device that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> q = np.ones((1, 4, 3, 16), np.float32)
    >>> k, v = np.ones((2, 1, 2, 5, 16), np.float32)
    >>> float(flash_attention(q, k, v).max())
    1.0
    """
    return _attend(q, k, v, causal=causal, scale=scale, out=out, tensor_cores=tensor_cores)[0]


def _attend(
    q: Any, k: Any, v: Any, *, causal: bool, scale: float | None, out: Any, tensor_cores: bool | str | None,
    recorded: bool = False,
) -> tuple[Any, Any]:
    """The result, and the logarithms of the sums of weights where they are to be recorded and wgmma makes gradients."""
    dtype, factor = _expect(q, k, v, causal, scale)
    (batch, heads, queries, dim), (_, key_heads, keys, _) = q.shape, k.shape
    names = [arguments.dtype_name(q)]
    if out is None:
        out = arguments.empty_like(q, (batch, heads, queries, dim), dtype)
    arguments.expect("out", out, [batch, heads, queries, dim], names)
    arguments.expect_output(out, q=q, k=k, v=v)
    chosen = chosen_tensor_cores(tensor_cores, dtype, q=q, k=k, v=v, out=out)
    if chosen == "wgmma":
        state = None
        if recorded and dim <= hopper_backward.DIMS[-1]:
            state = arguments.empty_like(q, (batch, heads, queries), f32)
        return hopper_flash.attend(q, k, v, out, causal=bool(causal), scale=factor, state=state), state
    if chosen:
        kernel, rows = wmma_kernel(dtype, dim, bool(causal)), queries_a_block(dim)
    else:
        kernel = flash_kernel(dtype, dim, bool(causal), WARPS)
        rows = WARPS * queries_a_warp(f64 if dtype is f64 else f32, dim)
    for some in arguments.spans(batch):
        kernel[(cdiv(queries, rows), heads, some.stop - some.start), WARPS * 32](
            q[some], k[some], v[some], out[some], queries, keys, heads // key_heads, factor
        )
    return out, None


def flash_attention_backward(
    gradient: Any, q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None,
    tensor_cores: str | None = None,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v of :func:`flash_attention`, of a gradient of its result.

    Args:
        gradient: That of the result, ``[B, Hq, Sq, D]`` of q's dtype.
        q: As of :func:`flash_attention`, as k, v, causal and scale are.
        tensor_cores: "wgmma" or "mma": by which instructions gradients of float16 and bfloat16 are made. None takes
            wgmma on an H100 for D of 128 or less (`hopper.flash_backward`), else mma.sync.

    Weights and their gradients are rounded to q's dtype before they are multiplied. Nothing of the forward pass is
    needed; by wgmma it is run again. Gradients have the same bits each time, but that of q by wgmma, which adds up
    parts of it in float32 in any order.

    Returns:
        The gradients of q, k and v, of their shapes and dtype.

    Raises:
        LaunchError: As of :func:`flash_attention`.

    >>> import numpy as np
    >>> q = np.ones((1, 2, 3, 16), np.float32)
    >>> k, v = np.ones((2, 1, 1, 5, 16), np.float32)
    >>> [x.shape for x in flash_attention_backward(np.ones_like(q), q, k, v)]
    [(1, 2, 3, 16), (1, 1, 5, 16), (1, 1, 5, 16)]
    """
    dtype, factor = _expect(q, k, v, causal, scale)
    batch, heads, _, dim = q.shape
    arguments.expect("gradient", gradient, q.shape, [arguments.dtype_name(q)])
    if chosen_for_gradients(tensor_cores, dtype, dim) == "wgmma":
        gradient, q, k, v = arguments.aligned(ALIGNMENT, gradient=gradient, q=q, k=k, v=v)
        options: dict[str, Any] = {"causal": bool(causal), "scale": factor}
        out, state = (arguments.empty_like(q, shape, kind) for shape, kind in ((q.shape, dtype), (q.shape[:3], f32)))
        hopper_flash.attend(q, k, v, out, state=state, **options)
        return hopper_backward.differentiate(gradient, q, k, v, out, state, **options)
    made = tuple(arguments.empty_like(x, tuple(x.shape), dtype) for x in (q, k, v))
    by_mma = dtype in (f16, bf16)
    given = arguments.aligned(ALIGNMENT, q=q, k=k, v=v, gradient=gradient) if by_mma else [q, k, v, gradient]
    launch = _backward_by_mma if by_mma else _backward_by_fma
    for some in arguments.spans(batch, heads if by_mma else 1):
        launch(dtype, [x[some] for x in given], [x[some] for x in made], bool(causal), factor)
    return made


def _backward_by_mma(dtype: ScalarType, given: list[Any], made: list[Any], causal: bool, factor: float) -> None:
    """Both kernels, for heads of all sequences one behind the other."""
    (batch, heads, queries, dim), (_, key_heads, keys, _) = given[0].shape, given[1].shape
    inputs, (dq, dk, dv) = ([x.reshape(-1, *x.shape[2:]) for x in arrays] for arrays in (given, made))
    states = arguments.empty_like(dq, (batch * heads, queries, 2), f32)
    threads, memory, rows = backward_mma.THREADS, backward_mma.shared_bytes(dim), backward_mma.ROWS
    sizes = queries, keys, heads // key_heads, factor
    first = backward_mma.queries_kernel(dtype, dim, causal)
    first.configure((cdiv(queries, rows), batch * heads), threads, shared=memory)(
        *inputs, dq, states, *sizes
    )
    second = backward_mma.keys_kernel(dtype, dim, causal)
    second.configure((cdiv(keys, rows), batch * key_heads), threads, shared=memory)(
        *inputs, states, dk, dv, *sizes
    )


def _backward_by_fma(dtype: ScalarType, given: list[Any], made: list[Any], causal: bool, factor: float) -> None:
    """The same of float32 and float64."""
    (batch, heads, queries, dim), (_, key_heads, keys, _) = given[0].shape, given[1].shape
    dq, dk, dv = made
    states = arguments.empty_like(dq, (batch * heads, queries, 2), dtype)
    sizes, rows, threads = (queries, keys, heads // key_heads, factor), backward.WARPS, backward.WARPS * 32
    backward.queries_kernel(dtype, dim, causal)[(cdiv(queries, rows), heads, batch), threads](
        *given, dq, states, *sizes
    )
    backward.keys_kernel(dtype, dim, causal)[(cdiv(keys, rows), key_heads, batch), threads](
        *given, states, dk, dv, *sizes
    )


def _expect(q: Any, k: Any, v: Any, causal: bool, scale: float | None) -> tuple[ScalarType, float]:
    """Check the arguments that both passes have; the dtype, and the factor of the scores."""
    batch, heads, queries, dim = arguments.expect("q", q, ["B", "Hq", "Sq", "D"], list(arguments.FLOATS))
    dtype, names = arguments.floating("q", q), [arguments.dtype_name(q)]
    _, key_heads, keys, _ = arguments.expect("k", k, [batch, "Hkv", "Sk", dim], names)
    arguments.expect("v", v, [batch, key_heads, keys, dim], names)
    check_heads(heads, key_heads, dim)
    factor = factor_of(scale, dim)
    if causal not in (False, True):
        raise arguments.wrong(f"causal is {causal!r:.60}; it can be True or False")
    if min(batch, queries, keys) < 1:
        raise arguments.wrong(f"q has shape {list(q.shape)} and k {list(k.shape)}; every extent must be 1 or more")
    check_size("Sq * D", queries * dim)
    check_size("Sk * D", keys * dim)
    return dtype, factor


def template(dtype: ScalarType | str, head_dim: int, block_seq: int, causal: bool, arch: str | None = None) -> Kernel:
    """A kernel for one head: ``(q, k, v, out, seq_len: s32, scale)``, q, k, v and out ``[seq_len, head_dim]``.

    A block of ``block_seq`` threads, but 32 at least, computes ``block_seq`` queries: launch
    ``kernel[cdiv(seq_len, block_seq), max(32, block_seq)](q, k, v, out, seq_len, scale)``.

    Args:
        dtype: ``f32`` or ``f64``, or the name.
        head_dim: A power of two up to 256.
        block_seq: A power of two up to 256.
        causal: Query i sees the keys up to i.
        arch: The target, such as ``"sm_90a"``; the lowest that serves by default.

    Raises:
        LaunchError: With the value that is none of these.

    >>> template(f32, 64, 64, True).entry
    'attention_f32_hd64_bs64_causal'
    """
    kind = {"f32": f32, "f64": f64}.get(str(dtype))
    if kind is None:
        raise arguments.wrong(f"dtype is {dtype}; it can be f32 or f64")
    for name, value in (("head_dim", head_dim), ("block_seq", block_seq)):
        if type(value) is not int or value < 1 or value > 256 or value & (value - 1):
            raise arguments.wrong(f"{name} is {value!r}; it can be a power of two from 1 to 256")
    return template_kernel(kind, head_dim, block_seq, causal, arch)
