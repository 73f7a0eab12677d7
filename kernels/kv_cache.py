"""The cache of keys and values: new tokens put into their slots, and sequences gathered from pages.

A cache is ``[slots, H, D]``, or in pages ``[pages, page, H, D]``; ``[pages, H, page, D]`` where ``heads_first``, as
:mod:`.attention` has one page for each sequence. Slot s is place s % page of page s // page.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from .. import Array, Kernel, Ptr, ScalarType, check, loop, ptx, ptx_kernel, s64, select, u32, u64, when
from . import arguments
from .storage import BYTES, UNSIGNED, load, store

__all__ = ["gather", "gather_kernel", "scatter", "scatter_kernel"]

THREADS = 128
CACHED = [name for name, kind in arguments.DTYPES.items() if kind.kind == "f" or name in ("int8", "uint8")]


@cache
def scatter_kernel(dtype: ScalarType, index_type: ScalarType, width: int) -> Kernel:
    """A block copies k and v of a token to its slot; a negative one is none."""
    unit = UNSIGNED[dtype.bits]

    @ptx_kernel(name=f"kv_scatter_{dtype}_{index_type}_x{width}", reqntid=THREADS)
    def kernel(
        k: Array[dtype, 3], v: Array[dtype, 3], k_cache: Array[dtype, 4], v_cache: Array[dtype, 4],
        slots: Ptr[index_type],
    ) -> None:
        pairs: Any = ((k, k_cache), (v, v_cache))
        token = ptx.ctaid.x
        slot = slots[token].to(s64)
        with when(slot >= 0):
            pages, page_size = pairs[0][1].shape[:2]
            check(slot.bits(u64) < ptx.mul.wide.u32(pages, page_size), "kv_cache.scatter: a slot beyond the cache")
            page = slot.to(u32) // page_size
            place = slot.to(u32) - page * page_size
            _, heads, dim = pairs[0][0].shape
            vectors = dim // width
            with loop(ptx.tid.x, heads * vectors, THREADS) as number:
                head = number // vectors
                at = (number - head * vectors) * width
                for source, target in pairs:
                    values = load(source.at(token, head, at).cast(unit), 0, width)
                    store(target.at(page, place, head, at).cast(unit), 0, values)

    return kernel


@cache
def gather_kernel(dtype: ScalarType, index_type: ScalarType, length_type: ScalarType, width: int) -> Kernel:
    """A block copies one token of a sequence from its page; 0 behind the end of the sequence."""
    unit = UNSIGNED[dtype.bits]

    @ptx_kernel(name=f"kv_gather_{dtype}_{index_type}_{length_type}_x{width}", reqntid=THREADS)
    def kernel(
        k_cache: Array[dtype, 4], v_cache: Array[dtype, 4], table: Array[index_type, 2], lengths: Ptr[length_type],
        k: Array[dtype, 4], v: Array[dtype, 4],
    ) -> None:
        pairs: Any = ((k_cache, k), (v_cache, v))
        pages_of: Any = table
        token, sequence = ptx.ctaid.x, ptx.ctaid.y
        pages, page_size, heads, dim = pairs[0][0].shape
        inside = token.to(s64) < lengths[sequence].to(s64)
        column = token // page_size
        entry = pages_of[sequence, select(inside, column, 0)].to(s64)
        check((entry.bits(u64) < pages.to(u64)) | ~inside, "kv_cache.gather: no such page")
        page = select(inside, entry, 0).to(u32)
        place = token - column * page_size
        vectors = dim // width
        with loop(ptx.tid.x, heads * vectors, THREADS) as number:
            head = number // vectors
            at = (number - head * vectors) * width
            for source, target in pairs:
                values = load(source.at(page, place, head, at).cast(unit), 0, width)
                kept = [select(inside, value, 0) for value in values]
                store(target.at(sequence, token, head, at).cast(unit), 0, kept)

    return kernel


def _pages(name: str, cache_: Any, heads_first: bool, dtypes: list[str]) -> Any:
    """A cache as ``[pages, page, H, D]``, in the same memory."""
    shape = arguments.expect_array(name, cache_, dtypes)
    if heads_first and len(shape) == 4:
        cache_ = cache_.permute((0, 2, 1, 3)) if hasattr(cache_, "permute") else cache_.transpose((0, 2, 1, 3))
    elif len(shape) == 3 and not heads_first:
        cache_ = cache_[None]
    elif len(shape) != 4:
        wanted = "[pages, H, page, D]" if heads_first else "[slots, H, D] or [pages, page, H, D]"
        raise arguments.wrong(f"`{name}` has shape {list(shape)}; wanted is {wanted}")
    steps = arguments.strides(cache_)
    if (steps[-1] != 1 and shape[-1] > 1) or min(steps) < 0:
        raise arguments.wrong(f"`{name}` has the strides {arguments.strides(cache_)}; wanted is a contiguous last axis")
    return cache_


def _width(dim: int, size: int, *arrays: Any) -> int:
    """Elements that are copied at once: 16 bytes where all heads begin at multiples of them."""
    width = BYTES // size
    steps = [step for array in arrays for step in arguments.strides(array)[:-1]]
    if dim % width or any(step % width for step in steps) or not arguments.is_aligned(BYTES, *arrays):
        return 1
    return width


def scatter(
    k: Any, v: Any, k_cache: Any, v_cache: Any, slots: Any, *, heads_first: bool = False
) -> tuple[Any, Any]:
    """Put the keys and values of tokens into their slots, in place.

    Args:
        k: ``[T, H, D]``, floating point, 8-bit floats and integers included.
        v: As ``k``.
        k_cache: ``[slots, H, D]`` or ``[pages, page, H, D]``, of k's dtype.
        v_cache: As ``k_cache``.
        slots: ``[T]``, int32 or int64, all different; a token with a negative one is left out.
        heads_first: Whether the caches are ``[pages, H, page, D]``. With a page for each sequence, the slot of position
            p of sequence b is ``b page + p``.

    Returns:
        ``(k_cache, v_cache)``.

    Raises:
        LaunchError: A shape or dtype that does not fit. Nothing ran.
        TrapError: A slot beyond the cache (on a GPU the error of the next call that waits for it).

    >>> import numpy as np
    >>> cache = np.zeros((2, 3, 1, 1))
    >>> k = np.arange(1, 4.0).reshape(3, 1, 1)
    >>> _ = scatter(k, k, cache, cache.copy(), np.array([4, -1, 0]))
    >>> cache[..., 0, 0]
    array([[3., 0., 0.],
           [0., 1., 0.]])
    """
    tokens, heads, dim = arguments.expect("k", k, ["T", "H", "D"], CACHED)
    names = [arguments.dtype_name(k)]
    arguments.expect("v", v, [tokens, heads, dim], names)
    arguments.flag("heads_first", heads_first)
    kind = arguments.scalar_type("k", k)
    caches = [
        _pages(name, each, heads_first, names) for name, each in (("k_cache", k_cache), ("v_cache", v_cache))
    ]
    for name, each, seen in zip(("k_cache", "v_cache"), (k_cache, v_cache), caches):
        if tuple(seen.shape) != (*caches[0].shape[:2], heads, dim):
            raise arguments.wrong(
                f"`{name}` has shape {list(each.shape)}; k has {heads} heads of {dim}, and both caches have one shape"
            )
        arguments.expect_output(each, name=name, k=k, v=v, **({"v_cache": v_cache} if name == "k_cache" else {}))
    arguments.expect("slots", slots, [tokens], ["int32", "int64"])
    if not tokens or not heads or not dim:
        return k_cache, v_cache
    width = _width(dim, kind.bytes, k, v, *caches)
    scatter_kernel(kind, arguments.scalar_type("slots", slots), width)[tokens, THREADS](k, v, *caches, slots)
    return k_cache, v_cache


def gather(
    k_cache: Any, v_cache: Any, block_table: Any, seq_lens: Any, *, max_len: int | None = None,
    heads_first: bool = False, out: Any = None,
) -> tuple[Any, Any]:
    """The keys and values of sequences, from their pages: ``[B, S, H, D]`` each.

    Args:
        k_cache: ``[pages, page, H, D]``, or ``[pages, H, page, D]`` where ``heads_first``.
        v_cache: As ``k_cache``.
        block_table: ``[B, N]``, int32 or int64: the pages of each sequence, in order. Beyond its end anything.
        seq_lens: ``[B]``, int32 or int64: the length of each, which its pages hold.
        max_len: S, at most N times the page; that if None. What lies beyond the end of a sequence is 0.
        heads_first: The order of axes of the caches.
        out: A pair of arrays for k and v.

    Returns:
        ``(k, v)``.

    Raises:
        LaunchError: A shape or dtype that does not fit. Nothing ran.
        TrapError: A page that the cache does not have (on a GPU the error of the next call that waits for it).

    >>> import numpy as np
    >>> pages = np.arange(6.0).reshape(3, 2, 1, 1)
    >>> k, _ = gather(pages, pages, np.array([[2, 0]]), np.array([3]))
    >>> k.ravel()
    array([4., 5., 0., 0.])
    """
    arguments.flag("heads_first", heads_first)
    caches = [_pages("k_cache", k_cache, heads_first, CACHED)]
    names = [arguments.dtype_name(k_cache)]
    caches.append(_pages("v_cache", v_cache, heads_first, names))
    if tuple(v_cache.shape) != tuple(k_cache.shape):
        raise arguments.wrong(f"`v_cache` has shape {list(v_cache.shape)}; `k_cache` has {list(k_cache.shape)}")
    kind, (_, page, heads, dim) = arguments.scalar_type("k_cache", k_cache), caches[0].shape
    batch, pages = arguments.expect("block_table", block_table, ["B", "N"], ["int32", "int64"])
    arguments.expect("seq_lens", seq_lens, [batch], ["int32", "int64"])
    length = pages * page if max_len is None else arguments.size("max_len", max_len, range(pages * page + 1))
    shape = (batch, length, heads, dim)
    if out is not None and (not isinstance(out, (tuple, list)) or len(out) != 2):
        raise arguments.wrong("`out` is not a pair of arrays, for k and v")
    outs: list[Any] = []
    for number in range(2):
        outs.append(arguments.output(
            None if out is None else out[number], k_cache, shape, kind, name=f"out[{number}]", k_cache=k_cache,
            v_cache=v_cache, block_table=block_table, **({"out[0]": outs[0]} if outs else {}),
        ))
    if math.prod(shape):
        if 0 in k_cache.shape:
            raise arguments.wrong(f"`k_cache` has shape {list(k_cache.shape)}: it has no page")
        width = _width(dim, kind.bytes, *caches, *outs)
        index, lengths = arguments.scalar_type("block_table", block_table), arguments.scalar_type("seq_lens", seq_lens)
        for some in arguments.spans(batch):
            gather_kernel(kind, index, lengths, width)[(length, some.stop - some.start), THREADS](
                *caches, block_table[some], seq_lens[some], *(out[some] for out in outs)
            )
    return outs[0], outs[1]
