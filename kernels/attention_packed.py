"""Attention of sequences of various lengths, one behind the other without padding, and its gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ScalarType, bf16, cdiv, f16, f32, f64

from . import arguments, sequences
from . import flash_backward as backward
from . import flash_backward_mma as backward_mma
from .attention_arguments import (
    ALIGNMENT, check_heads, check_size, chosen_for_gradients, chosen_tensor_cores, factor_of,
)
from .autograd import deterministic, differentiable
from .flash import queries_a_warp, varlen_kernel
from .hopper import flash as hopper_flash
from .hopper import flash_backward as hopper_backward

__all__ = ["varlen_attention", "varlen_attention_backward"]

WARPS = 4


class _Packed(NamedTuple):
    """What was checked of the arguments."""

    dtype: ScalarType
    factor: float
    starts: tuple[Any, Any]
    most: tuple[int, int]
    """The most queries and keys of a sequence."""

    def parts(self) -> list[tuple[int, tuple[Any, Any]]]:
        """How many sequences a launch takes, and their tables."""
        found = []
        for some in arguments.spans(self.starts[0].shape[0] - 1):
            own = slice(some.start, some.stop + 1)
            found.append((some.stop - some.start, (self.starts[0][own], self.starts[1][own])))
        return found


def _backward(
    grad_out: Any, q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int | None,
    max_seqlen_k: int | None, causal: bool, scale: float | None, out: Any, logarithms: Any,
) -> dict[str, Any]:
    given = _expect(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, scale)
    return dict(zip("qkv", _gradients(given, grad_out, q, k, v, bool(causal), out, logarithms)))


def _recorded(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """The result, and by wgmma what the backward pass takes of the forward one."""
    out, logarithms = _attend(*args, **kwargs, recorded=not deterministic())
    return out, {"logarithms": logarithms}


@differentiable("q", "k", "v", backward=_backward, recorded=_recorded)
def varlen_attention(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, *, max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None, causal: bool = False, scale: float | None = None, out: Any = None,
    tensor_cores: bool | str | None = None,
) -> Any:
    """:func:`flash_attention` of sequences of various lengths, which lie one behind the other.

    Args:
        q: ``[T, Hq, D]``, float16, bfloat16, float32 or float64: the queries of all sequences.
        k: ``[Tk, Hkv, D]`` of q's dtype; Hq is a multiple of Hkv.
        v: As ``k``.
        cu_seqlens_q: Where the queries of each sequence begin, and where the last ones end: int32 ``[B + 1]``,
            ascending from 0 or more to T or less. What belongs to no sequence is left alone.
        cu_seqlens_k: The same of keys and values.
        max_seqlen_q: The most queries of a sequence, or more; found in ``cu_seqlens_q`` if that is numpy's, else T.
        max_seqlen_k: The same of keys, which gradients ask for.
        causal: Query i of a sequence sees its keys up to i + keys - queries.
        scale: As of :func:`flash_attention`.
        out: As q; a new array of q's kind if None.
        tensor_cores: True or "wgmma" makes both products by wgmma (sm_90a: `hopper.flash`), for float16 and bfloat16
            arrays that begin at a multiple of 16 bytes. False takes the FP32 kernel. None takes wgmma on an H100, and
            the FP32 kernel elsewhere.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or table that does not fit, or ``out`` overlaps an input. Nothing ran. Tables that
            are not numpy's are not read.

    >>> q, k = np.ones((5, 2, 16), np.float32), np.ones((7, 1, 16), np.float32)
    >>> starts = np.array([0, 2, 5], np.int32), np.array([0, 3, 7], np.int32)
    >>> float(varlen_attention(q, k, k, *starts).min())
    1.0
    """
    return _attend(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k, causal=causal,
        scale=scale, out=out, tensor_cores=tensor_cores,
    )[0]


def _attend(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, *, max_seqlen_q: int | None,
    max_seqlen_k: int | None, causal: bool, scale: float | None, out: Any, tensor_cores: bool | str | None,
    recorded: bool = False,
) -> tuple[Any, Any]:
    """The result, and the logarithms of the sums of weights where they are to be recorded and wgmma makes gradients."""
    given = _expect(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, scale)
    (rows, heads, dim), key_heads, dtype, most = q.shape, k.shape[1], given.dtype, given.most[0]
    tables = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    out = arguments.output(out, q, (rows, heads, dim), dtype, q=q, k=k, v=v, **tables)
    chosen = chosen_tensor_cores(tensor_cores, dtype, ("wgmma",), q=q, k=k, v=v, out=out)
    state = None
    if chosen and recorded and dim <= hopper_backward.DIMS[-1]:
        state = arguments.empty_like(q, (rows, heads), f32)
    if not most:
        return out, state
    kernel, each = varlen_kernel(dtype, dim, bool(causal), WARPS), WARPS * queries_a_warp(_sums(dtype), dim)
    for count, starts in given.parts():
        if chosen:
            hopper_flash.attend_packed(
                q, k, v, out, starts, most, causal=bool(causal), scale=given.factor, state=state
            )
        else:
            grid = cdiv(most, each), heads, count
            kernel[grid, WARPS * 32](q, k, v, out, *starts, heads // key_heads, given.factor)
    return out, state


def varlen_attention_backward(
    gradient: Any, q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, *, max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None, causal: bool = False, scale: float | None = None, tensor_cores: str | None = None,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v of :func:`varlen_attention`, of a gradient of its result.

    Args:
        gradient: That of the result, ``[T, Hq, D]`` of q's dtype.
        q: As of :func:`varlen_attention`, as k, v, the tables, causal and scale are.
        max_seqlen_q: The most queries of a sequence, or more; found in ``cu_seqlens_q`` if that is numpy's, else T.
        max_seqlen_k: The same of keys.
        tensor_cores: As of :func:`flash_attention_backward`.

    Returns:
        The gradients of q, k and v, of their shapes and dtype; 0 where a row belongs to no sequence.

    Raises:
        LaunchError: As of :func:`varlen_attention`.

    >>> q, k = np.ones((5, 2, 16), np.float32), np.ones((7, 1, 16), np.float32)
    >>> starts = np.array([0, 2, 5], np.int32), np.array([0, 3, 7], np.int32)
    >>> dq, dk, dv = varlen_attention_backward(q, q, k, k, *starts)
    >>> [round(float(x), 3) for x in dv[:, 0, 0]]
    [1.333, 1.333, 1.333, 1.5, 1.5, 1.5, 1.5]
    """
    given = _expect(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, scale)
    (rows, heads, dim), dtype = q.shape, given.dtype
    arguments.expect("gradient", gradient, [rows, heads, dim], [arguments.dtype_name(q)])
    out = state = None
    if chosen_for_gradients(tensor_cores, dtype, dim) == "wgmma":
        q, k, v = arguments.aligned(ALIGNMENT, q=q, k=k, v=v)
        out, state = (arguments.empty_like(q, *each) for each in (((rows, heads, dim), dtype), ((rows, heads), f32)))
        for _, starts in given.parts():
            hopper_flash.attend_packed(
                q, k, v, out, starts, max(1, given.most[0]), causal=bool(causal), scale=given.factor, state=state
            )
    return _gradients(given, gradient, q, k, v, bool(causal), out, state)


def _gradients(
    given: _Packed, gradient: Any, q: Any, k: Any, v: Any, causal: bool, out: Any, logarithms: Any
) -> tuple[Any, Any, Any]:
    """By wgmma where the result and the logarithms are given; rows of no sequence are set to 0."""
    dtype = given.dtype
    made = tuple(arguments.empty_like(x, tuple(x.shape), dtype) for x in (q, k, v))
    for x, starts in zip(made, (given.starts[0], given.starts[1], given.starts[1])):
        sequences.clear_outside(x, starts)
    arrays: list[Any] = [q, k, v, gradient]
    if dtype in (f16, bf16):
        arrays = arguments.aligned(ALIGNMENT, q=q, k=k, v=v, gradient=gradient)
    most = max(1, given.most[0]), max(1, given.most[1])
    for count, own in given.parts():
        if logarithms is not None:
            hopper_backward.differentiate_packed(
                arrays, made, (out, logarithms), own, most, causal=causal, scale=given.factor
            )
        elif dtype in (f16, bf16):
            _by_mma(dtype, arrays, made, own, count, most, causal, given.factor)
        else:
            _by_fma(dtype, arrays, made, own, count, most, causal, given.factor)
    return made


def _by_mma(
    dtype: ScalarType, given: list[Any], made: tuple[Any, ...], starts: tuple[Any, Any], count: int,
    most: tuple[int, int], causal: bool, factor: float,
) -> None:
    """Both kernels, for matrices of each head."""
    (rows, heads, dim), key_heads = given[0].shape, given[1].shape[1]
    inputs, (dq, dk, dv) = ([_heads_first(x) for x in arrays] for arrays in (given, made))
    states = arguments.empty_like(given[0], (heads, rows, 2), f32)
    threads, memory, each = backward_mma.THREADS, backward_mma.shared_bytes(dim), backward_mma.ROWS
    first = backward_mma.queries_kernel(dtype, dim, causal, packed=True)
    first.configure((cdiv(most[0], each), heads, count), threads, shared=memory)(
        *inputs, dq, states, *starts, heads // key_heads, factor
    )
    second = backward_mma.keys_kernel(dtype, dim, causal, packed=True)
    second.configure((cdiv(most[1], each), key_heads, count), threads, shared=memory)(
        *inputs, states, dk, dv, *starts, heads // key_heads, factor
    )


def _by_fma(
    dtype: ScalarType, given: list[Any], made: tuple[Any, ...], starts: tuple[Any, Any], count: int,
    most: tuple[int, int], causal: bool, factor: float,
) -> None:
    """The same of float32 and float64."""
    (rows, heads, dim), key_heads = given[0].shape, given[1].shape[1]
    dq, dk, dv = made
    states = arguments.empty_like(dq, (rows, heads, 2), dtype)
    sizes, each, threads = (*starts, heads // key_heads, factor), backward.WARPS, backward.WARPS * 32
    first = backward.queries_kernel(dtype, dim, causal, packed=True)
    first[(cdiv(most[0], each), heads, count), threads](*given, dq, states, *sizes)
    second = backward.keys_kernel(dtype, dim, causal, packed=True)
    second[(cdiv(most[1], each), key_heads, count), threads](*given, states, dk, dv, *sizes)


def _heads_first(x: Any) -> Any:
    """``[T, H, D]`` as ``[H, T, D]``, of the same memory."""
    return x.permute(1, 0, 2) if hasattr(x, "permute") else x.transpose(1, 0, 2)


def _sums(dtype: ScalarType) -> ScalarType:
    return f64 if dtype is f64 else f32


def _expect(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int | None, max_seqlen_k: int | None,
    causal: bool, scale: float | None,
) -> _Packed:
    """Check the arguments that both passes have."""
    rows, heads, dim = arguments.expect("q", q, ["T", "Hq", "D"], list(arguments.FLOATS))
    dtype, names = arguments.floating("q", q), [arguments.dtype_name(q)]
    key_rows, key_heads, _ = arguments.expect("k", k, ["Tk", "Hkv", dim], names)
    arguments.expect("v", v, [key_rows, key_heads, dim], names)
    check_heads(heads, key_heads, dim)
    if causal not in (False, True):
        raise arguments.wrong(f"causal is {causal!r:.60}; it can be True or False")
    (starts,) = arguments.expect("cu_seqlens_q", cu_seqlens_q, ["B + 1"], ["int32"])
    arguments.expect("cu_seqlens_k", cu_seqlens_k, [starts], ["int32"])
    if min(rows, key_rows, starts - 1) < 1:
        raise arguments.wrong(
            f"q has shape {list(q.shape)}, k {list(k.shape)} and there are {starts - 1} sequences; "
            "every extent must be 1 or more"
        )
    most = [_longest("cu_seqlens_q", cu_seqlens_q, rows), _longest("cu_seqlens_k", cu_seqlens_k, key_rows)]
    check_size("T * Hq * D", rows * heads * dim)
    check_size("Tk * Hkv * D", key_rows * key_heads * dim)
    for side, (name, value) in enumerate((("max_seqlen_q", max_seqlen_q), ("max_seqlen_k", max_seqlen_k))):
        if value is not None:
            most[side] = arguments.size(name, value, range(1, 1 << 31))
    return _Packed(dtype, factor_of(scale, dim), (cu_seqlens_q, cu_seqlens_k), (most[0], most[1]))


def _longest(name: str, starts: Any, rows: int) -> int:
    """The longest sequence of a table, of numpy's one, which is checked; else what it could be."""
    if not isinstance(starts, np.ndarray):
        return rows
    lengths = np.diff(starts)
    if starts[0] < 0 or starts[-1] > rows or (lengths < 0).any():
        raise arguments.wrong(f"`{name}` is {starts.tolist()!r:.60}; wanted are ascending numbers from 0 to {rows}")
    return int(lengths.max())
