"""Philox-4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011), and what is made of its words.

Four words of 32 bits are a function of a counter of 128 bits and a key of 64: no state is kept, and an element's number
depends on where the element is alone, whatever the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, bf16, f16, f32, f64, math, otherwise, ptx, ptx_kernel, s32, select, u32, u64, unpack, when,
)

from . import storage

__all__ = ["KINDS", "THREADS", "dropout_kernel", "each", "fill_kernel", "philox_words"]

THREADS = 256
_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85


def philox_words(counter: Any, subsequence: Any, seed: Any) -> list[Any]:
    """The four words of a counter; its upper half is the subsequence. All are u64, the words u32."""
    c, key = [*unpack(counter, u32), *unpack(subsequence, u32)], list(unpack(seed, u32))
    for number in range(_ROUNDS):
        if number:
            key = [part + step for part, step in zip(key, _WEYL)]
        high = [ptx.mul.hi.u32(c[2 * i], multiplier) for i, multiplier in enumerate(_MULTIPLIERS)]
        low = [c[2 * i] * multiplier for i, multiplier in enumerate(_MULTIPLIERS)]
        c = [high[1] ^ c[1] ^ key[0], low[1], high[0] ^ c[3] ^ key[1], low[0]]
    return c


def each(dtype: ScalarType) -> int:
    """Elements that four words make."""
    return 2 if dtype.bits == 64 else 4


def _wide(words: list[Any]) -> list[Any]:
    return [words[i].to(u64) | (words[i + 1].to(u64) << 32) for i in (0, 2)]


def _zero_to_one(words: list[Any], dtype: ScalarType) -> list[Any]:
    """Multiples of 2^-p in [0, 1), with p bits that the type holds exactly."""
    if dtype is f64:
        return [(word >> 11).to(f64) * 2.0**-53 for word in _wide(words)]
    bits = 11 if dtype is f16 else 8 if dtype is bf16 else 24
    return [(word >> (32 - bits)).to(f32) * 2.0**-bits for word in words]


def _uniform(words: list[Any], dtype: ScalarType, a: Any, b: Any) -> list[Any]:
    return [ptx[f"fma.rn.{v.type}"](b - a, v, a) for v in _zero_to_one(words, dtype)]


def _normal(words: list[Any], dtype: ScalarType, a: Any, b: Any) -> list[Any]:
    """Box & Muller: of two numbers in (0, 1] and [0, 1) the radius and the angle."""
    parts, scale = (_wide(words), 2.0**-64) if dtype is f64 else (words, 2.0**-32)
    kind = f64 if dtype is f64 else f32
    made = []
    for i in range(0, len(parts), 2):
        first = ptx[f"fma.rn.{kind}"](parts[i].to(kind), scale, scale / 2)
        radius = ptx[f"sqrt.rn.{kind}"](math.log(first) * -2.0)
        half_turns = parts[i + 1].to(kind) * (scale * 2)
        turned = (math.cospi(half_turns), math.sinpi(half_turns))
        made += [ptx[f"fma.rn.{kind}"](b, radius * part, a) for part in turned]
    return made


def _integers(words: list[Any], dtype: ScalarType, a: Any, b: Any) -> list[Any]:
    """a + floor(word b / 2^bits)."""
    if dtype.bits == 64:
        return [(a + ptx.mul.hi.u64(word, b)).bits(dtype) for word in _wide(words)]
    chosen = [(a + ptx.mul.hi.u64(word.to(u64) << 32, b)).to(u32) for word in words]
    return chosen if storage.working(dtype) is u32 else [value.bits(s32) for value in chosen]


def _bits(words: list[Any], dtype: ScalarType, _a: Any, _b: Any) -> list[Any]:
    return words if dtype is u32 else _wide(words)


KINDS: dict[str, Callable[[list[Any], ScalarType, Any, Any], list[Any]]] = {
    "philox": _bits, "uniform": _uniform, "normal": _normal, "integers": _integers,
}


@cache
def fill_kernel(kind: str, dtype: ScalarType) -> Kernel:
    """Fill an array: a thread makes what four words make."""
    parameter = u64 if kind in ("philox", "integers") else f64 if dtype is f64 else f32
    count = each(dtype)

    @ptx_kernel(name=f"random_{kind}_{dtype}", reqntid=THREADS)
    def kernel(out: Ptr[dtype], n: u64, seed: u64, subsequence: u64, offset: u64, a: parameter, b: parameter) -> None:
        group = ptx.mad.wide.u32(ptx.ctaid.x, THREADS, ptx.tid.x.to(u64))
        first = group * count
        with when(first < n):
            words = philox_words(group + offset, subsequence, seed)
            values = [storage.narrowed(value, dtype) for value in KINDS[kind](words, dtype, a, b)]
            aligned = (out.address & (count * dtype.bytes - 1)) == 0
            with when((first + count <= n) & aligned):
                _store(out, first, values, dtype)
            with otherwise():
                for i, value in enumerate(values):
                    with when(first + i < n):
                        out[first + i] = value

    return kernel


def _store(out: Any, first: Any, values: list[Any], dtype: ScalarType) -> None:
    """All values by one store; of 8 bits as one word."""
    if dtype.bits > 8:
        (out + first).store(0, values)
        return
    words = [value.to(u32) & 0xFF for value in values]
    (out + first).cast(u32)[0] = words[0] | words[1] << 8 | words[2] << 16 | words[3] << 24


@cache
def dropout_kernel(dtype: ScalarType) -> Kernel:
    """out = x scale where the element's word is at least ``threshold``, else 0."""
    acc = storage.working(dtype)

    @ptx_kernel(name=f"random_dropout_{dtype}", reqntid=THREADS)
    def kernel(
        x: Ptr[dtype], out: Ptr[dtype], n: u64, seed: u64, subsequence: u64, offset: u64, threshold: u64, scale: acc
    ) -> None:
        group = ptx.mad.wide.u32(ptx.ctaid.x, THREADS, ptx.tid.x.to(u64))
        first = group * 4
        with when(first < n):
            words = philox_words(group + offset, subsequence, seed)
            aligned = ((x.address | out.address) & (4 * dtype.bytes - 1)) == 0

            def kept(value: Any, word: Any) -> Any:
                value = storage.widened(value, dtype) * scale
                return storage.narrowed(select(word.to(u64) >= threshold, value, 0.0), dtype)

            with when((first + 4 <= n) & aligned):
                at, width = x + first, min(4, 16 // dtype.bytes)
                values = [value for i in range(0, 4, width) for value in at.load(i, width=width)]
                made = [kept(value, word) for value, word in zip(values, words)]
                for i in range(0, 4, width):
                    (out + first).store(i, made[i : i + width])
            with otherwise():
                for i, word in enumerate(words):
                    with when(first + i < n):
                        out[first + i] = kept(x[first + i], word)

    return kernel
