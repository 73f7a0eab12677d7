"""Rotary position embedding (Su et al. 2021): pairs of a head's elements turned by an angle that grows with position.

Pair i of a head at position p is turned by ``p theta^(-2 i / rotary_dim)``: elements 2 i and 2 i + 1 in :func:`rope`,
i and i + rotary_dim / 2 in :func:`rope_neox`. A thread has a pair of one token: it computes the angle once, in float64
and reduced to one turn, and turns that pair in all heads of q and k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from .. import Array, Kernel, Ptr, ScalarType, cdiv, f64, loop, ptx, ptx_kernel, s64, u32, when
from .. import math as ptxmath
from . import arguments
from .autograd import differentiable
from .storage import working

__all__ = ["rope", "rope_kernel", "rope_neox"]

THREADS = 128


@cache
def rope_kernel(
    dtype: ScalarType, index_type: ScalarType | None, neox: bool, both: bool, copies: bool
) -> Kernel:
    """The turn of q, and of k where there are ``both``: ``[B, S, H, D]``; positions are 0, 1, ... without their type.

    ``copies`` stores what is not turned, too.
    """
    acc = working(dtype)
    name = f"rope_{'neox_' * neox}{dtype}_{index_type}{'_qk' * both}{'_copies' * copies}"

    @ptx_kernel(name=name, reqntid=THREADS)
    def kernel(
        q: Array[dtype, 4], k: Array[dtype, 4], q_out: Array[dtype, 4], k_out: Array[dtype, 4],
        positions: Ptr[index_type or s64], pairs: u32, exponent: f64, sign: acc,
    ) -> None:
        arrays: Any = ((q, q_out), (k, k_out)) if both else ((q, q_out),)
        batch, length = arrays[0][0].shape[:2]
        tokens = batch * length
        thread = ptx.ctaid.x * THREADS + ptx.tid.x
        token = thread // pairs
        pair = thread - token * pairs
        with when(token < tokens):
            item = token // length
            place = token - item * length
            position = place.to(s64) if index_type is None else positions[token].to(s64)
            turns = position.to(f64) * ptxmath.exp2(pair.to(f64) * exponent) * (0.5 / math.pi)
            angle = (turns - ptx.cvt.rmi.f64.f64(turns)).to(acc) * 2.0
            sine, cosine = ptxmath.sinpi(angle) * sign, ptxmath.cospi(angle)
            first, second = (pair, pair + pairs) if neox else (pair * 2, pair * 2 + 1)
            for source, target in arrays:
                with loop(source.shape[2]) as head:
                    x = source.at(item, place, head, first)[0].to(acc)
                    y = source.at(item, place, head, second)[0].to(acc)
                    target.at(item, place, head, first)[0] = (x * cosine - y * sine).to(dtype)
                    target.at(item, place, head, second)[0] = (y * cosine + x * sine).to(dtype)
                    if copies:
                        with loop(pairs * 2 + pair, source.shape[3], pairs) as rest:
                            target[item, place, head, rest] = source[item, place, head, rest]

    return kernel


def _viewed(name: str, array: Any, dtype: str | None, heads_first: bool) -> Any:
    """The array as ``[B, S, H, D]``, in the same memory."""
    shape = arguments.expect_array(name, array, list(arguments.FLOATS) if dtype is None else [dtype])
    wanted = "[H, S, D] or [B, H, S, D]" if heads_first else "[S, H, D] or [B, S, H, D]"
    if len(shape) not in (3, 4):
        raise arguments.wrong(f"`{name}` has shape {list(shape)}; wanted is {wanted}")
    wide = array if len(shape) == 4 else array[None]
    if not heads_first:
        return wide
    return wide.permute((0, 2, 1, 3)) if hasattr(wide, "permute") else wide.transpose((0, 2, 1, 3))


def _strided(array: Any) -> Any:
    """The array if a kernel takes its strides, else a copy."""
    steps = arguments.strides(array)
    fits = (steps[-1] == 1 or array.shape[-1] == 1) and min(steps) >= 0
    return array if fits else arguments.dense(array)


def _run(
    q: Any, k: Any, positions: Any, theta: float, rotary_dim: int | None, heads_first: bool, inverse: bool, out: Any,
    neox: bool,
) -> Any:
    given = {"q": q} if k is None else {"q": q, "k": k}
    arguments.flag("heads_first", heads_first)
    dtype = arguments.floating("q", q)
    views = {n: _viewed(n, array, arguments.dtype_name(q), heads_first) for n, array in given.items()}
    batch, length, _, dim = views["q"].shape
    if k is not None and (*views["k"].shape[:2], views["k"].shape[3]) != (batch, length, dim):
        raise arguments.wrong(f"`k` has shape {list(k.shape)}, and q {list(q.shape)}; only the heads may differ")
    turned = dim if rotary_dim is None else rotary_dim
    if isinstance(turned, bool) or not isinstance(turned, int) or turned % 2 or not 0 <= turned <= dim:
        raise arguments.wrong(f"rotary_dim is {turned!r:.60}; it can be an even number up to D, {dim}")
    if arguments.number("theta", theta) <= 0:
        raise arguments.wrong(f"theta is {theta!r}; it can be any number above 0")
    index_type = None
    if positions is not None:
        arguments.expect_array("positions", positions, ["int32", "int64"])
        index_type = arguments.scalar_type("positions", positions)
        if math.prod(positions.shape) not in {length, batch * length} or len(positions.shape) > 2:
            raise arguments.wrong(f"`positions` has shape {list(positions.shape)}; wanted is [{length}] or "
                                  f"[{batch}, {length}]")
    outs = out if isinstance(out, (tuple, list)) else [out] * len(given)
    if out is not None and len(given) == 2 and (out is outs[0] or len(outs) != 2):
        raise arguments.wrong("`out` is one array; wanted are two, for q and k")
    results: list[Any] = []
    for (name, array), each in zip(given.items(), outs):
        what = "out" if k is None else f"out[{len(results)}]"
        results.append(arguments.output(
            each, array, tuple(array.shape), dtype, in_place=[name], name=what, **given, positions=positions
        ))
    if 0 in views["q"].shape or (k is not None and 0 in k.shape):
        return tuple(results) if k is not None else results[0]
    _launch(views, results, positions, index_type, dtype, theta, turned, heads_first, inverse, neox)
    return tuple(results) if k is not None else results[0]


def _launch(
    views: dict[str, Any], results: list[Any], positions: Any, index_type: ScalarType | None, dtype: ScalarType,
    theta: float, turned: int, heads_first: bool, inverse: bool, neox: bool,
) -> None:
    sources = [_strided(view) for view in views.values()]
    targets = [_viewed("out", result, None, heads_first) for result in results]
    batch, length, _, dim = sources[0].shape
    pairs = max(turned // 2, 1)
    copies = turned < dim or turned == 0
    if turned == 0:
        for source, target in zip(sources, targets):
            target[...] = source
        return
    if positions is not None and math.prod(positions.shape) < batch * length:
        spread = arguments.empty_like(positions, (batch, length), arguments.scalar_type("positions", positions))
        spread[...] = positions.reshape(1, length)
        positions = spread
    index = sources[0] if positions is None else arguments.dense(positions)
    if positions is None:
        index = arguments.empty_like(results[0], (1,), s64)
    kernel = rope_kernel(dtype, index_type, neox, len(sources) == 2, copies)
    kernel[cdiv(batch * length * pairs, THREADS), THREADS](
        sources[0], sources[-1], targets[0], targets[-1], index, pairs, -2.0 / turned * math.log2(theta),
        -1.0 if inverse else 1.0,
    )


def _gradients(neox: bool) -> Any:
    def gradients(
        k: Any, positions: Any, theta: float, rotary_dim: int | None, heads_first: bool, inverse: bool, grad_q: Any,
        grad_k: Any,
    ) -> Mapping[str, Any]:
        found = _run(
            grad_q.contiguous(), None if k is None else grad_k.contiguous(), positions, theta, rotary_dim, heads_first,
            not inverse, None, neox,
        )
        return {"q": found} if k is None else dict(zip(("q", "k"), found))

    return gradients


@differentiable("q", "k", backward=_gradients(False), results=("q", "k"))
def rope(
    q: Any, k: Any = None, positions: Any = None, *, theta: float = 10_000.0, rotary_dim: int | None = None,
    heads_first: bool = False, inverse: bool = False, out: Any = None,
) -> Any:
    """q, and k in the same launch, turned by their positions; pairs are elements 2 i and 2 i + 1 of a head.

    Args:
        q: ``[S, H, D]`` or ``[B, S, H, D]``, float16, bfloat16, float32 or float64.
        k: As q, with heads of its own number, or None.
        positions: ``[S]`` or ``[B, S]``, int32 or int64; 0, 1, ... if None.
        theta: The base of the angles.
        rotary_dim: How many elements of a head are turned, from the first on; the others stay. D if None.
        heads_first: Whether q and k are ``[H, S, D]`` or ``[B, H, S, D]``.
        inverse: Whether they are turned back, as gradients are.
        out: As q, or with k a pair; may be q and k themselves. New arrays if None.

    Returns:
        The turned q, with k a pair.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> rope(np.array([[[1.0, 0.0]], [[1.0, 0.0]]])).round(3)[:, 0]
    array([[1.   , 0.   ],
           [0.54 , 0.841]])
    """
    return _run(q, k, positions, theta, rotary_dim, heads_first, inverse, out, False)


@differentiable("q", "k", backward=_gradients(True), results=("q", "k"))
def rope_neox(
    q: Any, k: Any = None, positions: Any = None, *, theta: float = 10_000.0, rotary_dim: int | None = None,
    heads_first: bool = False, inverse: bool = False, out: Any = None,
) -> Any:
    """As :func:`rope`, but pairs are the elements i and i + rotary_dim / 2 of a head, as GPT-NeoX and Llama have them.

    >>> import numpy as np
    >>> rope_neox(np.array([[[1.0, 0.0, 0.0, 0.0]]]), positions=np.array([1])).round(3)
    array([[[0.54 , 0.   , 0.841, 0.   ]]])
    """
    return _run(q, k, positions, theta, rotary_dim, heads_first, inverse, out, True)
