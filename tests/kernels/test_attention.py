"""The attention kernels against a float64 reference: ragged sizes, masks, grouped heads, dtypes, special values."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, bf16, f16, f32, f64, to_device
from ptxdsl.config import override
from ptxdsl.kernels import attention, attention_arguments
from ptxdsl.kernels.attention_arguments import check_size
from ptxdsl.kernels.reference import attention as reference
from ptxdsl.kernels.reference import causal as causal_mask

Array = npt.NDArray[Any]

# The largest error, relative to the largest output: the storage of the result and of q, k, v rounds to half a unit in
# the last place; sums of weights in f32 and ex2.approx add some 2^-21.
BOUNDS = {
    np.dtype(np.float32): 4e-6, np.dtype(np.float64): 1e-13, np.dtype(np.float16): 1.2e-3,
    np.dtype(ml_dtypes.bfloat16): 9e-3,
}
FLOATS = "float16 or bfloat16 or float32 or float64"
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def assert_close(got: Array, want: Array, dtype: Any, factor: float = 1.0) -> None:
    assert got.shape == want.shape and got.dtype == dtype
    error = np.abs(got.astype(np.float64) - want).max() / max(1e-30, np.abs(want).max())
    assert error <= BOUNDS[np.dtype(dtype)] * factor, f"error {error}"


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys", "dim"), [(1, 1, 16), (5, 37, 40), (33, 31, 64), (17, 65, 72), (3, 2, 256)])
def test_flash_attention(
    rng: np.random.Generator, dtype: Any, causal: bool, queries: int, keys: int, dim: int
) -> None:
    q = random(rng, dtype, 2, 2, queries, dim)
    k, v = random(rng, dtype, 2, 1, keys, dim), random(rng, dtype, 2, 1, keys, dim)
    out = np.full_like(q, np.nan)
    assert attention.flash_attention(q, k, v, causal=causal, out=out) is out
    assert_close(out, reference(q, k, v, not causal or causal_mask(queries, keys)), dtype)


@pytest.mark.parametrize("dim", range(16, 257, 24))
def test_flash_attention_of_every_width(rng: np.random.Generator, dim: int) -> None:
    q, k, v = (random(rng, np.float32, 1, 1, n, dim) for n in (3, 34, 34))
    scale = 1.2 / sqrt(dim)  # the bound holds for scores of this size; greater ones round in proportion
    assert_close(attention.flash_attention(q, k, v, scale=scale), reference(q, k, v, True, scale), np.float32)


@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (4, 2), (6, 1)])
def test_flash_attention_of_grouped_heads(rng: np.random.Generator, heads: int, key_heads: int) -> None:
    q = random(rng, np.float32, 2, heads, 4, 32)
    k, v = random(rng, np.float32, 2, key_heads, 9, 32), random(rng, np.float32, 2, key_heads, 9, 32)
    assert_close(attention.flash_attention(q, k, v), reference(q, k, v), np.float32)


def test_queries_without_a_key_give_zeros(rng: np.random.Generator) -> None:
    q, k, v = random(rng, np.float32, 1, 1, 40, 16), *(random(rng, np.float32, 1, 1, 3, 16) for _ in range(2))
    got = attention.flash_attention(q, k, v, causal=True)
    assert (got[0, 0, :37] == 0).all()
    assert_close(got, reference(q, k, v, causal_mask(40, 3)), np.float32)


@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e3, 1e9])
def test_scores_of_any_size(rng: np.random.Generator, size: float) -> None:
    q, k, v = (random(rng, np.float32, 1, 1, n, 16) for n in (7, 40, 40))
    q = (q * np.float32(size)).astype(np.float32)
    exact = reference(q, k, v)
    got = attention.flash_attention(q, k, v)
    # A score of magnitude s is rounded by s 2^-24, which is the relative error of its weight.
    assert_close(got, exact, np.float32, factor=max(1.0, 4 * size) if size < 1e6 else 1.0)


def test_values_may_be_infinite_and_keys_forbidden(rng: np.random.Generator) -> None:
    q, k, v = (np.abs(random(rng, np.float32, 1, 1, n, 16)) for n in (5, 40, 40))
    k[0, 0, 7] = -inf  # a score of -inf: weight 0
    v[0, 0, 11, 3] = inf
    got = attention.flash_attention(q, k, v)
    want = reference(q, k[:, :, np.arange(40) != 7], v[:, :, np.arange(40) != 7])
    assert (got[..., 3] == inf).all()
    others = np.arange(16) != 3
    assert_close(got[..., others], want[..., others], np.float32)


# ---------------------------------------------------------------------------------------------------------------------
# Tensor cores

HALVES = [np.float16, ml_dtypes.bfloat16]


def assert_tensor_cores(
    q: Array, k: Array, v: Array, causal: bool = False, scale: float | None = None, out: Array | None = None
) -> None:
    """That the wmma kernel is within its bound, element by element.

    With u the unit roundoff of the dtype, each weight is rounded once, by a part u of itself (2^-25 at least in f16):
    the values' weighted mean moves by 2 u of the weighted mean of their magnitudes. Storing the result rounds it by u.
    Scores and sums in f32, and ex2.approx, add some 2^-20 of the largest score.
    """
    visible = causal_mask(q.shape[2], k.shape[2]) if causal else True
    out = np.full(q.shape, np.nan, q.dtype) if out is None else out
    assert attention.flash_attention(q, k, v, causal=causal, scale=scale, out=out, tensor_cores=True) is out
    want, around = reference(q, k, v, visible, scale), reference(q, k, np.abs(v), visible, scale)
    factor = 1 / sqrt(q.shape[-1]) if scale is None else abs(scale)
    length = np.sqrt(np.square(q.astype(np.float64)).sum(-1).max() * np.square(k.astype(np.float64)).sum(-1).max())
    unit = 2.0**-11 if q.dtype == np.float16 else 2.0**-8
    smallest = k.shape[2] * 2.0**-25 * np.abs(v).max().astype(np.float64)
    allowed = (2 * unit + (1 + factor * length) * 2.0**-20) * around + unit * np.abs(want) + smallest + 2.0**-25
    assert out.dtype == q.dtype
    error = np.abs(out.astype(np.float64) - want)
    assert (error <= allowed).all(), f"{(error / allowed).max()} of what is allowed"


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [16, 24, 64, 80, 128, 136, 256])
def test_tensor_cores(rng: np.random.Generator, dtype: Any, causal: bool, dim: int) -> None:
    for queries, keys in ((1, 1), (15, 33), (17, 16), (16, 15), (33, 32), (67, 37)):
        q, k, v = (random(rng, dtype, 1, 1, n, dim) for n in (queries, keys, keys))
        assert_tensor_cores(q, k, v, causal)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (4, 2), (6, 1)])
def test_tensor_cores_of_grouped_heads(rng: np.random.Generator, dtype: Any, heads: int, key_heads: int) -> None:
    q = random(rng, dtype, 2, heads, 5, 32)
    k, v = random(rng, dtype, 2, key_heads, 39, 32), random(rng, dtype, 2, key_heads, 39, 32)
    assert_tensor_cores(q, k, v, causal=True)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("size", [1e-6, 30, 1000, 60000])
def test_tensor_cores_and_scores_of_any_size(rng: np.random.Generator, dtype: Any, size: float) -> None:
    q, k, v = (random(rng, dtype, 1, 1, n, 32) for n in (18, 70, 70))
    q = np.clip(q, -1, 1).astype(dtype) * np.array(size, dtype)
    assert_tensor_cores(q, k, v, scale=-0.5 if size < 100 else 0.001)
    # Scores that rise from tile to tile make every tile rescale the sums; falling ones make weights of 0.
    for order in (slice(None), slice(None, None, -1)):
        rising = np.sort(k.astype(np.float64).mean(-1))[..., order, None] * np.ones(32)
        assert_tensor_cores(np.abs(q), rising.astype(dtype), v)


@pytest.mark.parametrize("dtype", HALVES)
def test_tensor_cores_without_a_key(rng: np.random.Generator, dtype: Any) -> None:
    q, k, v = (np.abs(random(rng, dtype, 1, 1, n, 16)) for n in (90, 3, 3))
    q = np.maximum(q, np.array(0.01, dtype))  # 0 times infinity is no score
    got = attention.flash_attention(q, k, v, causal=True, tensor_cores=True)
    assert (got[0, 0, :87] == 0).all()
    assert_tensor_cores(q, k, v, causal=True)
    k[0, 0, 1] = -inf  # a score of -inf: weight 0
    got = attention.flash_attention(q, k, v, tensor_cores=True)
    assert_close(got, reference(q, k[:, :, [0, 2]], v[:, :, [0, 2]]), dtype, factor=1.5)  # 3 units
    k[:] = -inf
    assert (attention.flash_attention(q, k, v, tensor_cores=True) == 0).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_tensor_cores_write_nothing_else(rng: np.random.Generator, dtype: Any) -> None:
    whole = np.full((5, 33, 48), np.nan, dtype)
    parts = np.full((2, 1, 40, 48), np.nan, dtype)  # what lies beyond k and v is NaN
    parts[:, :, :37] = random(rng, dtype, 2, 1, 37, 48)
    assert_tensor_cores(
        random(rng, dtype, 1, 2, 33, 48), parts[:1, :, :37], parts[1:, :, :37], out=whole[None, 1:3]
    )
    assert np.isnan(whole[[0, 3, 4]]).all()


@pytest.mark.parametrize("dim", [32, 144])
def test_tensor_cores_have_no_races(rng: np.random.Generator, dim: int) -> None:
    q, k, v = (random(rng, np.float16, 1, 1, n, dim) for n in (70, 75, 75))
    with override(sanitize="race,init"):
        assert_tensor_cores(q, k, v, causal=True)


@pytest.mark.emulator(reason="about what the emulator takes")
def test_tensor_cores_are_for_a_gpu(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (random(rng, np.float16, 1, 1, n, 16) for n in (3, 40, 40))
    exact, rounded = (attention.flash_attention(q, k, v, tensor_cores=chosen) for chosen in (False, True))
    assert (exact != rounded).any()
    assert (attention.flash_attention(q, k, v) == exact).all()
    monkeypatch.setattr(attention_arguments, "backend_name", lambda: "a GPU")
    assert (attention.flash_attention(q, k, v) == rounded).all()
    apart = np.empty(q.size + 8, np.float16)
    odd = apart[1 + (-apart.ctypes.data // 2) % 8 :][: q.size].reshape(q.shape)
    odd[:] = q
    assert (attention.flash_attention(odd, k, v) == exact).all()
    with pytest.raises(LaunchError) as caught:
        attention.flash_attention(odd, k, v, tensor_cores=True)
    assert caught.value.message == f"`q` begins at address {odd.ctypes.data:#x}; wanted is a multiple of 16"
    assert caught.value.hint == "`q = q.copy()`"


def test_tensor_cores_take_16_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in (np.float32, np.float64):
        with pytest.raises(LaunchError) as caught:
            attention.flash_attention(*(zeros(1, 1, 2, 16, dtype=dtype) for _ in range(3)), tensor_cores=True)
        assert caught.value.message == f"tensor cores take float16 or bfloat16, not {np.dtype(dtype)}"
        assert caught.value.hint == "leave `tensor_cores` out"
    with pytest.raises(LaunchError, match='^tensor_cores is 2; it can be True, False, None, "wgmma" or "wmma"\n'):
        attention.flash_attention(*zeros(3, 1, 1, 2, 16), tensor_cores=2)  # type: ignore[arg-type]
    monkeypatch.setattr(attention_arguments, "backend_name", lambda: "a GPU")
    assert attention.flash_attention(*zeros(3, 1, 1, 2, 16)).dtype == np.float32


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize(
    ("dim", "block", "causal", "length"),
    [
        (1, 1, True, 3), (2, 16, False, 40), (4, 8, True, 9), (16, 32, True, 1), (32, 64, False, 67),
        (64, 32, True, 50), (256, 256, True, 33),
    ],
)
def test_template(rng: np.random.Generator, dtype: Any, dim: int, block: int, causal: bool, length: int) -> None:
    kernel = attention.template(dtype, dim, block, causal)
    assert kernel.entry == f"attention_{dtype}_hd{dim}_bs{block}{'_causal' if causal else ''}"
    numpy_type = np.dtype(str(dtype).replace("f", "float"))
    q, k, v = (random(rng, numpy_type, 1, 1, length, dim) for _ in range(3))
    out = np.full_like(q, np.nan)
    kernel[-(-length // block), max(32, block)](*(a[0, 0] for a in (q, k, v, out)), length, 1 / sqrt(dim))
    assert_close(out, reference(q, k, v, not causal or causal_mask(length, length)), numpy_type)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((f16, 64, 64, True), "dtype is f16; it can be f32 or f64"),
        ((bf16, 64, 64, True), "dtype is bf16; it can be f32 or f64"),
        ((f32, 48, 64, True), "head_dim is 48; it can be a power of two from 1 to 256"),
        ((f32, 512, 64, True), "head_dim is 512; it can be a power of two from 1 to 256"),
        ((f32, 0, 64, True), "head_dim is 0; it can be a power of two from 1 to 256"),
        (("f16", 64, 64, True), "dtype is f16; it can be f32 or f64"),
        ((f32, 64, 96, True), "block_seq is 96; it can be a power of two from 1 to 256"),
        ((f32, 64, 512, False), "block_seq is 512; it can be a power of two from 1 to 256"),
        ((f32, 64, True, False), "block_seq is True; it can be a power of two from 1 to 256"),
        ((f32, 64, 64.0, False), "block_seq is 64.0; it can be a power of two from 1 to 256"),
    ],
)
def test_template_refuses(arguments: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        attention.template(*arguments)
    assert caught.value.message == message


# ---------------------------------------------------------------------------------------------------------------------

Decode = Callable[..., Array]


def decode(q: Array, k: Array, v: Array, lengths: Any, **options: Any) -> Array:
    return attention.decode_attention(q, k, v, lengths, **options)  # type: ignore[no-any-return]


def split(q: Array, k: Array, v: Array, lengths: Any, **options: Any) -> Array:
    return attention.flash_decoding(q, k, v, lengths, **options)  # type: ignore[no-any-return]


def decoded(q: Array, k: Array, v: Array, lengths: Array, scale: float | None = None) -> Array:
    visible = np.arange(k.shape[2])[None, None, None, :] < lengths[:, None, None, None]
    return reference(q[:, :, None], k, v, visible, scale)[:, :, 0]


@pytest.mark.parametrize("kernel", [decode, split])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("dim", "longest"), [(16, 1), (64, 33), (80, 70), (256, 19)])
def test_decoding(rng: np.random.Generator, kernel: Decode, dtype: Any, dim: int, longest: int) -> None:
    q, k, v = (random(rng, dtype, 3, *shape) for shape in ((4, dim), (2, longest, dim), (2, longest, dim)))
    lengths = np.array([longest, 0, max(1, longest // 2)], np.int32)
    want = decoded(q, k, v, lengths)
    for b in range(3):  # what lies beyond a sequence is not to be read
        k[b, :, lengths[b] :], v[b, :, lengths[b] :] = np.nan, np.nan
    options = {"num_warps": 3} if kernel is decode else {"chunk_size": 16}
    out = np.full_like(q, np.nan)
    got = kernel(q, k, v, lengths, out=out, **options)
    assert got is out and (got[1] == 0).all()
    assert_close(got, want, dtype)


@pytest.mark.parametrize("kernel", [decode, split])
def test_one_length_for_all(rng: np.random.Generator, kernel: Decode) -> None:
    q, k, v = (random(rng, np.float32, 2, *shape) for shape in ((2, 32), (1, 20, 32), (1, 20, 32)))
    for length in (0, 1, 13, 20):
        assert_close(kernel(q, k, v, length, scale=0.7), decoded(q, k, v, np.full(2, length), 0.7), np.float32)


@pytest.mark.parametrize("kernel", [decode, split])
def test_lengths_on_the_device_that_the_cache_does_not_have(rng: np.random.Generator, kernel: Decode) -> None:
    """Only the kernel sees them: it reads no key beyond the cache."""
    q, k, v = (random(rng, np.float32, 3, *shape) for shape in ((2, 32), (1, 20, 32), (1, 20, 32)))
    got = kernel(q, k, v, to_device(np.array([21, -1, 2**31 - 1], np.int32)))
    assert_close(np.asarray(got), decoded(q, k, v, np.full(3, 20)), np.float32)


@pytest.mark.parametrize("warps", [1, 2, 16])
def test_any_number_of_warps(rng: np.random.Generator, warps: int) -> None:
    q, k, v = (random(rng, np.float32, 1, *shape) for shape in ((1, 24), (1, 37, 24), (1, 37, 24)))
    assert_close(decode(q, k, v, 37, num_warps=warps), decoded(q, k, v, np.array([37])), np.float32)


@pytest.mark.parametrize("size", [1, 7, 36, 37, 38, 1000])
def test_any_size_of_chunk(rng: np.random.Generator, size: int) -> None:
    q, k, v = (random(rng, np.float32, 2, *shape) for shape in ((2, 16), (2, 37, 16), (2, 37, 16)))
    lengths = np.array([37, 8], np.int32)
    assert_close(split(q, k, v, lengths, chunk_size=size), decoded(q, k, v, lengths), np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_cache_for_each_sequence(rng: np.random.Generator, dtype: Any) -> None:
    q, k, v = (random(rng, dtype, 3, *shape) for shape in ((4, 32), (2, 21, 32), (2, 21, 32)))
    lengths = np.array([21, 0, 9], np.int32)
    got = split(q, [to_device(array) for array in k], [to_device(array) for array in v], lengths, chunk_size=8)
    assert_close(got, decoded(q, k, v, lengths), dtype)


# ---------------------------------------------------------------------------------------------------------------------


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: attention.flash_attention(zeros(1, 2, 16), zeros(1, 1, 2, 16), zeros(1, 1, 2, 16)),
            f"`q` has shape [1, 2, 16] and dtype float32; wanted is [B, Hq, Sq, D] of {FLOATS}",
        ),
        (
            lambda: attention.flash_attention(zeros(1, 1, 2, 20), zeros(1, 1, 2, 20), zeros(1, 1, 2, 20)),
            "the head dimension D is 20; it can be 16 to 256 in steps of 8",
        ),
        (
            lambda: attention.flash_attention(zeros(1, 3, 2, 16), zeros(1, 2, 2, 16), zeros(1, 2, 2, 16)),
            "q has 3 heads and k has 2; the first must be a multiple of the second",
        ),
        (
            lambda: attention.flash_attention(
                zeros(1, 1, 2, 16), zeros(1, 1, 2, 16, dtype=np.float16), zeros(1, 1, 2, 16)
            ),
            "`k` has shape [1, 1, 2, 16] and dtype float16; wanted is [1, Hkv, Sk, 16] of float32",
        ),
        (
            lambda: attention.flash_attention(zeros(1, 1, 2, 16), zeros(1, 1, 0, 16), zeros(1, 1, 0, 16)),
            "q has shape [1, 1, 2, 16] and k [1, 1, 0, 16]; every extent must be 1 or more",
        ),
        (
            lambda: attention.flash_attention(
                zeros(1, 1, 1, 16), *[np.lib.stride_tricks.as_strided(zeros(1), (1, 1, 1 << 27, 16), (0,) * 4)] * 2
            ),
            "`k` is not C-contiguous; wanted is [1, Hkv, Sk, 16] of float32",
        ),
        (lambda: check_size("Sk * D", 1 << 31), "Sk * D is 2147483648; it must be below 2**31"),
        (
            lambda: attention.flash_attention([1.0], zeros(1, 1, 2, 16), zeros(1, 1, 2, 16)),
            f"`q` is [1.0], not an array [B, Hq, Sq, D] of {FLOATS}",
        ),
        (
            lambda: decode(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), 5),
            "seq_lens is 5; it can be 0 to 4",
        ),
        (
            lambda: decode(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), np.array([5], np.int32)),
            "seq_lens has 5 to 5; it can have 0 to 4",
        ),
        (
            lambda: decode(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), np.array([1])),
            "`seq_lens` has shape [1] and dtype int64; wanted is [1] of int32",
        ),
        (
            lambda: decode(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), 4, num_warps=17),
            "num_warps is 17; it can be 1 to 16",
        ),
        (
            lambda: split(zeros(2, 1, 16), [zeros(1, 4, 16)], [zeros(1, 4, 16)], 4),
            "`k_cache` is a list of 1 arrays; wanted is a list of 2, one a sequence",
        ),
        (
            lambda: split(zeros(1, 1, 16), [zeros(1, 4, 16)], zeros(1, 1, 4, 16), 4),
            f"`v_cache` is {zeros(1, 1, 4, 16)!r:.60}; wanted is a list of 1, one a sequence",
        ),
        (
            lambda: split(zeros(2, 1, 16), [zeros(1, 4, 16)] * 2, [zeros(1, 4, 16), zeros(1, 3, 16)], 4),
            "`v_cache[1]` has shape [1, 3, 16] and dtype float32; wanted is [1, 4, 16] of float32",
        ),
        (
            lambda: split(zeros(1, 1, 16), zeros(1, 1, 0, 16), zeros(1, 1, 0, 16), 0),
            "the caches have room for no key: S_max is 0; it must be 1 or more",
        ),
        (
            lambda: split(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), 4, chunk_size=0),
            "chunk_size is 0; it can be 1 to 2147483647",
        ),
        (
            lambda: split(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), 4, chunk_size=2.0),
            "chunk_size is 2.0; it can be 1 to 2147483647",
        ),
        (
            lambda: decode(zeros(1, 1, 16), zeros(1, 1, 4, 16), zeros(1, 1, 4, 16), 4, scale="1"),
            "scale is '1'; it can be any finite number",
        ),
        (
            lambda: attention.flash_attention(*zeros(3, 1, 1, 2, 16), scale=np.nan),
            "scale is nan; it can be any finite number",
        ),
        (
            lambda: attention.flash_attention(*zeros(3, 1, 1, 2, 16), causal=2),  # type: ignore[arg-type]
            "causal is 2; it can be True or False",
        ),
    ],
)
def test_wrong_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


@pytest.mark.parametrize("kernel", [decode, split])
def test_what_cannot_be_written_or_read_is_found_before_anything_runs(kernel: Decode) -> None:
    q, cache, out = zeros(1, 2, 16), zeros(1, 1, 4, 16), np.full((1, 2, 16), 7, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match=r"^`out` is read-only\n"):
        kernel(q, cache, cache, 4, out=out)
    with pytest.raises(LaunchError, match=r"^`out` is not C-contiguous; wanted is \[1, 2, 16\] of float32\n"):
        kernel(q, cache, cache, 4, out=np.zeros((1, 16, 2), np.float32).swapaxes(1, 2))
    with pytest.raises(LaunchError, match=r"^`k_cache` is not C-contiguous"):
        kernel(q, zeros(1, 1, 16, 4).swapaxes(2, 3), cache, 4)
    assert (out == 7).all()


def test_output_that_overlaps_an_input() -> None:
    q = zeros(1, 1, 2, 16)
    with pytest.raises(LaunchError) as caught:
        attention.flash_attention(q, zeros(1, 1, 2, 16), zeros(1, 1, 2, 16), out=q)
    assert caught.value.message == "`out` overlaps `q`"
    memory = np.zeros(3 * 32, np.float32)
    q = memory[32:64].reshape(1, 1, 2, 16)
    for start in (28, 36):
        out = memory[start : start + 32].reshape(1, 1, 2, 16)
        with pytest.raises(LaunchError, match=r"^`out` overlaps `q`\n"):
            attention.flash_attention(q, zeros(1, 1, 2, 16), zeros(1, 1, 2, 16), out=out)
