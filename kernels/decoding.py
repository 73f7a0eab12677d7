"""Attention of one query a sequence to the keys of a cache: dense, with the keys split over blocks, in pages.

The names are those of `attention`, which has them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ScalarType, backend_name, bf16, capability, f16, f32, f64

from . import arguments
from .attention_arguments import check_heads, check_size, factor_of
from .decode import chunk_kernel, combine_kernel, decode_kernel, paged_kernel
from .hopper import decode as hopper_decode

__all__ = ["decode_attention", "flash_decoding", "paged_decode"]

WARPS = 4
_ALIGNMENT = 16
_ROWS = 8
"""Keys of a page that are worth a tensor copy of their own."""


def _caches(k_cache: Any, v_cache: Any, batch: int, dim: int, names: list[str]) -> tuple[int, int]:
    """Hkv and S_max of the caches: one array each, or a list of an array for each sequence."""
    if not isinstance(k_cache, (list, tuple)):
        _, key_heads, longest, _ = arguments.expect("k_cache", k_cache, [batch, "Hkv", "S_max", dim], names)
        arguments.expect("v_cache", v_cache, [batch, key_heads, longest, dim], names)
        return key_heads, longest
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if not isinstance(cache, (list, tuple)) or len(cache) != batch:
            came = f"a list of {len(cache)} arrays" if isinstance(cache, (list, tuple)) else f"{cache!r:.60}"
            raise arguments.wrong(f"`{name}` is {came}; wanted is a list of {batch}, one a sequence")
    key_heads, longest, _ = arguments.expect("k_cache[0]", k_cache[0], ["Hkv", "S_max", dim], names)
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        for number, array in enumerate(cache):
            arguments.expect(f"{name}[{number}]", array, [key_heads, longest, dim], names)
    return key_heads, longest


def _decode_arguments(q: Any, k_cache: Any, v_cache: Any, seq_lens: Any, out: Any) -> tuple[Any, ...]:
    """What decode_attention and flash_decoding ask of their arguments: the extents, the dtype and the output."""
    batch, heads, dim = arguments.expect("q", q, ["B", "Hq", "D"], list(arguments.FLOATS))
    dtype, names = arguments.floating("q", q), [arguments.dtype_name(q)]
    if batch < 1:
        raise arguments.wrong(f"q has shape {list(q.shape)}; every extent must be 1 or more")
    key_heads, longest = _caches(k_cache, v_cache, batch, dim, names)
    check_heads(heads, key_heads, dim)
    if longest < 1:
        raise arguments.wrong("the caches have room for no key: S_max is 0; it must be 1 or more")
    check_size("S_max * D", longest * dim)
    if isinstance(seq_lens, (int, np.integer)):
        arguments.size("seq_lens", int(seq_lens), range(longest + 1))
    else:
        arguments.expect("seq_lens", seq_lens, [batch], ["int32"])
        if isinstance(seq_lens, np.ndarray) and not ((seq_lens >= 0) & (seq_lens <= longest)).all():
            raise arguments.wrong(f"seq_lens has {seq_lens.min()} to {seq_lens.max()}; it can have 0 to {longest}")
    if out is None:
        out = arguments.empty_like(q, (batch, heads, dim), dtype)
    arguments.expect("out", out, [batch, heads, dim], names)
    arguments.expect_output(out, q=q)
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        for array in cache if isinstance(cache, (list, tuple)) else (cache,):
            arguments.expect_output(out, **{name: array})
    return batch, heads, key_heads, longest, dim, dtype, out


def _tensor_cores(
    wanted: bool | None, dtype: ScalarType, option: tuple[str, int | None], arrays: dict[str, Any], rows: int = _ROWS
) -> bool:
    """Whether `hopper.decode` is to run; an error where it cannot, and is asked for.

    ``option`` is one that only the other kernels have, with its value; ``rows`` are the keys that lie together.
    """
    if wanted not in (None, False, True):
        raise arguments.wrong(f"tensor_cores is {wanted!r:.60}; it can be True, False or None")
    name, value = option
    listed = [name for name, array in arrays.items() if isinstance(array, (list, tuple))]
    if wanted is None:
        fits = dtype in (f16, bf16) and value is None and not listed and rows >= _ROWS
        fits = fits and backend_name() != "emulator" and capability() in hopper_decode.CAPABILITIES
        return fits and arguments.is_aligned(_ALIGNMENT, *arrays.values())
    if not wanted:
        return False
    hint = "leave `tensor_cores` out"
    if dtype not in (f16, bf16):
        came = arguments.dtype_name(arrays["q"])
        raise arguments.wrong(f"tensor cores take float16 or bfloat16, not {came}", hint=hint)
    if value is not None:
        raise arguments.wrong(f"tensor_cores is True, and {name} {value}, which is for the other kernels", hint=hint)
    if listed:
        raise arguments.wrong(f"tensor_cores is True, and `{listed[0]}` a list of arrays; wanted is one", hint=hint)
    arguments.expect_aligned(_ALIGNMENT, **arrays)
    return True


def decode_attention(
    q: Any, k_cache: Any, v_cache: Any, seq_lens: Any, *, scale: float | None = None, num_warps: int | None = None,
    out: Any = None, tensor_cores: bool | None = None,
) -> Any:
    """Attention of one new query a sequence to the keys in a cache; the warps of a block share the keys.

    Args:
        q: ``[B, Hq, D]``, float16, bfloat16, float32 or float64.
        k_cache: ``[B, Hkv, S_max, D]`` of q's dtype; Hq is a multiple of Hkv.
        v_cache: As ``k_cache``.
        seq_lens: How many keys a sequence has: an int for all, or an int32 array ``[B]`` that the kernel reads.
        scale: Factor of the scores; ``1 / sqrt(D)`` if None.
        num_warps: Warps a block, 1 to 16, without tensor cores; 4 if None.
        out: ``[B, Hq, D]`` of q's dtype; a new array of q's kind if None.
        tensor_cores: True makes both products on tensor cores (`hopper.decode`: compute capability 9.0, 10.0 or 10.3),
            for float16 and bfloat16 arrays that begin at a multiple of 16 bytes; the keys of a sequence are then split
            over all of the GPU, and weights are rounded to q's dtype. False does not. None does where it can on a GPU,
            and not on the emulator.

    A sequence of length 0 gives zeros; the kernel takes a length below 0 or above S_max for S_max.

    Raises:
        LaunchError: A shape, dtype or length that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> q = np.ones((2, 4, 16), np.float32)
    >>> k, v = np.ones((2, 2, 2, 7, 16), np.float32)
    >>> decode_attention(q, k, v, np.array([7, 0], np.int32))[:, 0, 0]
    array([1., 0.], dtype=float32)
    """
    if isinstance(k_cache, (list, tuple)):
        raise arguments.wrong("`k_cache` is a list of arrays; wanted is one array", hint="`flash_decoding` takes both")
    batch, heads, key_heads, longest, dim, dtype, out = _decode_arguments(q, k_cache, v_cache, seq_lens, out)
    warps = arguments.size("num_warps", WARPS if num_warps is None else num_warps, range(1, 17))
    arrays = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "out": out}
    if _tensor_cores(tensor_cores, dtype, ("num_warps", num_warps), arrays):
        return hopper_decode.attend(q, k_cache, v_cache, seq_lens, out, scale=factor_of(scale, dim))
    indirect = not isinstance(seq_lens, (int, np.integer))
    kernel = decode_kernel(dtype, dim, warps, indirect)
    for some in arguments.spans(batch):
        lengths = seq_lens[some] if indirect else seq_lens
        kernel[(heads, some.stop - some.start), warps * 32](
            q[some], k_cache[some], v_cache[some], lengths, out[some], longest, heads // key_heads,
            factor_of(scale, dim),
        )
    return out


def flash_decoding(
    q: Any, k_cache: Any, v_cache: Any, seq_lens: Any, *, chunk_size: int | None = None, scale: float | None = None,
    out: Any = None, tensor_cores: bool | None = None,
) -> Any:
    """As :func:`decode_attention`, with the keys of a sequence split over blocks as well (Dao et al. 2023).

    A first kernel writes the partial state of each chunk of ``chunk_size`` keys, a second merges the chunks. Chunks
    beyond the end of a sequence are empty, and weigh nothing. On tensor cores it is `decode_attention`.

    Args and errors are those of :func:`decode_attention`; ``chunk_size`` is 1 or more, 256 if None. The caches may also
    be lists of an array ``[Hkv, S_max, D]`` for each sequence, which lie wherever they were allocated.

    >>> q = np.ones((1, 2, 16), np.float32)
    >>> k, v = np.ones((2, 1, 1, 9, 16), np.float32)
    >>> float(flash_decoding(q, k, v, 9, chunk_size=4).max())
    1.0
    """
    batch, heads, key_heads, longest, dim, dtype, out = _decode_arguments(q, k_cache, v_cache, seq_lens, out)
    size = arguments.size("chunk_size", 256 if chunk_size is None else chunk_size, range(1, 2**31))
    arrays = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "out": out}
    if _tensor_cores(tensor_cores, dtype, ("chunk_size", chunk_size), arrays):
        return hopper_decode.attend(q, k_cache, v_cache, seq_lens, out, scale=factor_of(scale, dim))
    chunks = -(-longest // size)
    acc = f64 if dtype is f64 else f32
    sums = arguments.empty_like(q, (batch, heads, chunks, dim), acc)
    states = arguments.empty_like(q, (batch, heads, chunks, 2), acc)
    warps = 4
    indirect, tables = not isinstance(seq_lens, (int, np.integer)), isinstance(k_cache, (list, tuple))
    kernel = chunk_kernel(dtype, dim, warps, indirect, tables)
    for some in arguments.spans(batch):
        lengths = seq_lens[some] if indirect else seq_lens
        kernel[(chunks, heads, some.stop - some.start), warps * 32](
            q[some], k_cache[some], v_cache[some], lengths, sums[some], states[some], longest, heads // key_heads, size,
            factor_of(scale, dim),
        )
    combine_kernel(dtype, dim)[batch * heads, min(dim, 256)](sums, states, out, chunks)
    return out


def paged_decode(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, *, heads_first: bool = False,
    chunk_size: int | None = None, scale: float | None = None, out: Any = None, tensor_cores: bool | None = None,
) -> Any:
    """:func:`flash_decoding` with the keys and values of each sequence in pages of a cache.

    Args:
        q: ``[B, Hq, D]``, float16, bfloat16, float32 or float64.
        k_cache: ``[pages, page, Hkv, D]`` of q's dtype, or ``[pages, Hkv, page, D]`` where ``heads_first``; see
            :mod:`.kv_cache`.
        v_cache: As ``k_cache``.
        block_table: ``[B, N]``, int32 or int64: the pages of each sequence, in order. Beyond its end anything.
        seq_lens: ``[B]``, int32 or int64: how many keys each has, which its pages hold. Without any, the result is 0.
        heads_first: As said.
        chunk_size: Keys of a block, 256 if None.
        scale: Factor of the scores; ``1 / sqrt(D)`` if None.
        out: ``[B, Hq, D]`` of q's dtype; a new array of q's kind if None.
        tensor_cores: As of :func:`decode_attention`. None takes them for pages of a multiple of 8 keys; True for any,
            with a copy for as many keys as the largest power of two that divides a page.

    A page or a length beyond what is there ends the kernel with a message.

    Returns:
        ``out``.

    >>> q, pages = np.ones((1, 2, 16), np.float32), np.ones((3, 4, 1, 16), np.float32)
    >>> table, lengths = np.array([[2, 0]], np.int32), np.array([6], np.int32)
    >>> float(paged_decode(q, pages, pages, table, lengths).max())
    1.0
    """
    batch, heads, dim = arguments.expect("q", q, ["B", "Hq", "D"], list(arguments.FLOATS))
    dtype, names = arguments.floating("q", q), [arguments.dtype_name(q)]
    order = ("Hkv", "page") if heads_first else ("page", "Hkv")
    found = arguments.expect("k_cache", k_cache, ["pages", *order, dim], names)
    arguments.expect("v_cache", v_cache, found, names)
    key_heads, page = (found[1], found[2]) if heads_first else (found[2], found[1])
    check_heads(heads, key_heads, dim)
    _, pages = arguments.expect("block_table", block_table, [batch, "N"], ["int32", "int64"])
    arguments.expect("seq_lens", seq_lens, [batch], ["int32", "int64"])
    if min(batch, pages, *found) < 1:
        raise arguments.wrong(
            f"q has shape {list(q.shape)}, k_cache {list(found)} and block_table {[batch, pages]}; "
            "every extent must be 1 or more"
        )
    check_size("N * page", pages * page)
    size = arguments.size("chunk_size", 256 if chunk_size is None else chunk_size, range(1, 2**31))
    inputs = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "block_table": block_table, "seq_lens": seq_lens}
    factor, out = factor_of(scale, dim), arguments.output(out, q, (batch, heads, dim), dtype, **inputs)
    arrays = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "out": out}
    if _tensor_cores(tensor_cores, dtype, ("chunk_size", chunk_size), arrays, page & -page):
        return hopper_decode.attend(
            q, k_cache, v_cache, seq_lens, out, scale=factor, table=block_table, heads_first=heads_first
        )
    chunks, acc = -(-pages * page // size), f64 if dtype is f64 else f32
    sums = arguments.empty_like(q, (batch, heads, chunks, dim), acc)
    states = arguments.empty_like(q, (batch, heads, chunks, 2), acc)
    caches = [_heads_last(x) if heads_first else x for x in (k_cache, v_cache)]
    kinds = (arguments.scalar_type(name, inputs[name]) for name in ("block_table", "seq_lens"))
    kernel = paged_kernel(dtype, *kinds, dim, WARPS)
    for some in arguments.spans(batch):
        kernel[(chunks, heads, some.stop - some.start), WARPS * 32](
            q[some], *caches, block_table[some], seq_lens[some], sums[some], states[some], heads // key_heads, size,
            factor,
        )
    combine_kernel(dtype, dim)[batch * heads, min(dim, 256)](sums, states, out, chunks)
    return out


def _heads_last(cache: Any) -> Any:
    """A cache ``[pages, H, page, D]`` as ``[pages, page, H, D]``, in the same memory."""
    return cache.permute(0, 2, 1, 3) if hasattr(cache, "permute") else cache.transpose(0, 2, 1, 3)
