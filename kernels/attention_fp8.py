"""Attention of 8-bit floats: `attention.fp8_attention`."""

from __future__ import annotations

from typing import Any

from .. import ScalarType, bf16, f16

from . import arguments
from .attention_arguments import check_heads, check_size, factor_of
from .hopper import flash_fp8

__all__ = ["fp8_attention"]

_NAMES = ["float8_e4m3fn"]
_RESULTS = {"bfloat16": bf16, "float16": f16}
_ALIGNMENT = 16


def fp8_attention(
    q: Any, k: Any, v: Any, *, q_scale: Any = 1.0, k_scale: Any = 1.0, v_scale: Any = 1.0, causal: bool = False,
    scale: float | None = None, dtype: ScalarType | None = None, out: Any = None,
) -> Any:
    """:func:`flash_attention` of queries, keys and values in float8_e4m3fn, by wgmma (sm_90a: `hopper.flash_fp8`).

    Args:
        q: ``[B, Hq, Sq, D]``, float8_e4m3fn; D is 16 to 256 in steps of 16.
        k: ``[B, Hkv, Sk, D]``, float8_e4m3fn; Hq is a multiple of Hkv.
        v: As ``k``.
        q_scale: What the numbers of q stand for, divided by them: a positive number, or one for each head, ``[B, Hq]``
            of float32.
        k_scale: The same of k: a number if ``q_scale`` is one, else ``[B, Hkv]``.
        v_scale: As ``k_scale``, of v.
        causal: As of :func:`flash_attention`.
        scale: Factor of the scores; ``1 / sqrt(D)`` if None.
        dtype: Of a new ``out``: bf16, which None means, or f16.
        out: Where to put the result, ``[B, Hq, Sq, D]``, bfloat16 or float16.

    Weights are rounded to e4m3 before the second product. With w their sums of 1, an element is off by
    2^-4 sum_j w_j abs(v_j) + Sk 2^-18 max abs(v) at most, and by its own rounding; sums are in float32. A GPU's wgmma
    keeps fewer bits of sums of 8-bit floats (some 14), which that covers for some thousand keys.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or device that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> from ptxdsl import dtype_of, e4m3
    >>> q, (k, v) = np.ones((1, 2, 3, 16), dtype_of(e4m3)), np.ones((2, 1, 1, 5, 16), dtype_of(e4m3))
    >>> float(fp8_attention(q, k, v, v_scale=0.5).max())
    0.5
    """
    batch, heads, queries, dim = arguments.expect("q", q, ["B", "Hq", "Sq", "D"], _NAMES)
    _, key_heads, keys, _ = arguments.expect("k", k, [batch, "Hkv", "Sk", dim], _NAMES)
    arguments.expect("v", v, [batch, key_heads, keys, dim], _NAMES)
    arguments.size("the head dimension D", dim, flash_fp8.DIMS)
    check_heads(heads, key_heads, dim)
    if min(batch, queries, keys) < 1:
        raise arguments.wrong(f"q has shape {list(q.shape)} and k {list(k.shape)}; every extent must be 1 or more")
    check_size("Sq * D", queries * dim)
    check_size("Sk * D", keys * dim)
    factor, causal = factor_of(scale, dim), arguments.flag("causal", causal)
    scales = _scales(batch, q_scale=(q_scale, heads), k_scale=(k_scale, key_heads), v_scale=(v_scale, key_heads))
    kind = (bf16 if dtype is None else dtype) if out is None else arguments.scalar_type("out", out, _RESULTS)
    if kind not in _RESULTS.values():
        raise arguments.wrong(f"dtype is {dtype}; it can be bf16 or f16")
    given = dict(zip(("q_scale", "k_scale", "v_scale"), scales)) if not isinstance(scales[0], float) else {}
    out = arguments.output(out, q, (batch, heads, queries, dim), kind, q=q, k=k, v=v, **given)
    arguments.expect_aligned(_ALIGNMENT, q=q, k=k, v=v, out=out)
    return flash_fp8.attend(q, k, v, out, scales, causal=causal, scale=factor)


def _scales(batch: int, **given: tuple[Any, int]) -> tuple[Any, ...]:
    """The three, which come with their numbers of heads: positive numbers, or arrays of one for each head."""
    if not any(hasattr(value, "shape") and len(value.shape) for value, _ in given.values()):
        return tuple(arguments.number(name, value, 2.0**-100) for name, (value, _) in given.items())
    for name, (value, heads) in given.items():
        arguments.expect(name, value, [batch, heads], ["float32"])
    return tuple(value for value, _ in given.values())
