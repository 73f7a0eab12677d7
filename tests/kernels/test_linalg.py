"""Products and transposes against float64, for every dtype, way of storage, and size at the edges of tiles."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, bf16, f16, f32, s32, to_device
from ptxdsl.kernels import linalg, reference

Array = npt.NDArray[Any]
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
# Of |a| @ |b|: the sums, and the rounding of the result.
BOUNDS = {np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3, np.dtype(np.float32): 1e-6,
          np.dtype(np.float64): 2e-15, np.dtype(np.int32): 0}
DTYPES = [np.dtype(name) for name in ("f2", ml_dtypes.bfloat16, "f4", "f8", "i1", "u1", E4M3, E5M2)]
SIZES = [(1, 1, 1), (1, 33, 40), (31, 1, 127), (64, 64, 64), (65, 70, 33), (5, 7, 0), (128, 2, 16)]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def close(got: Array, a: Array, b: Array, bound: float | None = None) -> None:
    """``got`` is a @ b within the bound of its dtype."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = np.abs(a) @ np.abs(b)
    assert got.shape == scale.shape
    assert (np.abs(got.astype(np.float64) - a @ b) <= (BOUNDS[got.dtype] if bound is None else bound) * scale).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sizes_and_ways(rng: np.random.Generator, dtype: Any) -> None:
    for number, (m, n, k) in enumerate(SIZES):
        ways = [(False, False), (True, False), (False, True), (True, True)]
        for swap_a, swap_b in ways if number == 4 else [ways[number % 4]]:
            a = random(rng, dtype, *((k, m) if swap_a else (m, k)))
            b = random(rng, dtype, *((n, k) if swap_b else (k, n)))
            wide_a, wide_b = a.T if swap_a else a, b.T if swap_b else b
            got = linalg.matmul(a, b, transpose_a=swap_a, transpose_b=swap_b)
            assert got.dtype == (np.int32 if dtype.kind in "iu" else np.float32 if dtype.itemsize == 1 else dtype)
            close(got, wide_a, wide_b)
            np.testing.assert_array_equal(linalg.matmul(wide_a, wide_b), got)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_the_large_tile(rng: np.random.Generator, dtype: str) -> None:
    a, b = random(rng, dtype, 300, 130), random(rng, dtype, 130, 264)
    close(linalg.matmul(a, b), a, b)
    if dtype == "f4":
        close(linalg.matmul(a, b, tf32=True), a, b, 2e-3)
        assert np.abs(linalg.matmul(a, b, tf32=True) - linalg.matmul(a, b)).max() > 0
    close(linalg.matmul(b, a, transpose_a=True, transpose_b=True), b.T, a.T)


def test_mixed_types_of_8_bits(rng: np.random.Generator) -> None:
    for left, right in ((E4M3, E5M2), ("i1", "u1")):
        a, b = random(rng, left, 17, 70), random(rng, right, 70, 9)
        close(linalg.matmul(a, b), a, b)
        close(linalg.matmul(a, b, dtype=bf16), a, b)
    a, b = np.full((2, 3000), -128, np.int8), np.full((3000, 2), 255, np.uint8)
    assert (linalg.matmul(a, b) == -128 * 255 * 3000).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((2, 4, 5), (2, 5, 3)),
        ((2, 1, 4, 5), (3, 5, 6)), ((1, 3, 4, 5), (2, 1, 5, 6)), ((2, 3, 4, 5), (5,)), ((1, 4, 5), (1, 5, 3)),
        ((0, 4, 5), (5, 3)), ((2, 0, 5), (5, 3)), ((3, 4, 0), (0, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_shapes_of_numpy(rng: np.random.Generator, a: tuple[int, ...], b: tuple[int, ...], dtype: str) -> None:
    x, y = random(rng, dtype, *a), random(rng, dtype, *b)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    out = np.full(expected.shape, np.nan, dtype)
    assert linalg.matmul(x, y, out=out) is out
    np.testing.assert_allclose(out, expected, atol=1e-5 if dtype == "f4" else 2e-2)


@pytest.mark.parametrize("part", [np.s_[:, 1:], np.s_[::2, ::3], np.s_[::-1], np.s_[:, ::-1], np.s_[1:, :]])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i1"])
def test_parts_of_arrays(rng: np.random.Generator, part: Any, dtype: str) -> None:
    a, b = random(rng, dtype, 20, 30)[part], random(rng, dtype, 40, 60)[part]
    k = min(a.shape[1], b.shape[0])
    close(linalg.matmul(a[:, :k], b[:k]), a[:, :k], b[:k])
    close(linalg.matmul(b[:k].T, a[:, :k].T), b[:k].T, a[:, :k].T)


def test_broadcast_views_and_device_arrays(rng: np.random.Generator) -> None:
    a, b = random(rng, "f2", 3, 8, 16), np.broadcast_to(random(rng, "f2", 16, 8), (3, 16, 8))
    close(linalg.matmul(a, b), a, b)
    device = linalg.matmul(to_device(a, backend="emulator"), to_device(b[0].copy(), backend="emulator"))
    close(device.numpy(), a, b)
    odd = [to_device(part.copy(), backend="emulator") for part in (a[0, :5, :3], a[0, :3, :5])]
    close(linalg.matmul(*odd).numpy(), a[0, :5, :3], a[0, :3, :5])


ACTIVATIONS = {
    None: lambda x: x, "relu": reference.relu, "gelu": reference.gelu, "gelu_tanh": reference.gelu_tanh,
    "silu": reference.silu, "sigmoid": reference.sigmoid, "tanh": reference.tanh,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("dtype", "bound"), [("f4", 3e-6), ("f2", 4e-3), ("f8", 1e-14)])
def test_epilogues(rng: np.random.Generator, activation: str | None, dtype: str, bound: float) -> None:
    a, b, bias = random(rng, dtype, 2, 33, 20), random(rng, dtype, 20, 17), random(rng, "f4", 17)
    residual = random(rng, dtype, 2, 33, 17)
    wide = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + bias
    expected = ACTIVATIONS[activation](wide) - 2 * residual.astype(np.float64)
    got = linalg.matmul(a, b, bias=bias, activation=activation, residual=residual, alpha=0.5, beta=-2, out=residual)
    assert got is residual
    np.testing.assert_allclose(got, expected, rtol=bound, atol=4 * bound)


def test_result_types(rng: np.random.Generator) -> None:
    a, b, bias = random(rng, "f2", 4, 8), random(rng, "f2", 8, 4), np.arange(4, dtype=np.int32)
    close(linalg.matmul(a, b, dtype=f32), a, b, 1e-6)
    small = random(rng, "i1", 4, 8)
    exact = small.astype(int) @ small.T.astype(int)
    np.testing.assert_array_equal(linalg.matmul(small, small.T, bias=bias), exact + bias)
    np.testing.assert_array_equal(linalg.matmul(small, small.T, dtype=f32, alpha=0.25), 0.25 * exact)


def test_special_values() -> None:
    a = np.array([[np.inf, 0], [np.nan, 1], [3, 4]], np.float32)
    for dtype in (np.float32, np.float16, np.float64):
        got = linalg.matmul(a.astype(dtype), np.eye(2, dtype=dtype))
        assert got[0, 0] == np.inf and np.isnan(got[0, 1]) and np.isnan(got[1]).all() and (got[2] == [3, 4]).all()


@pytest.mark.parametrize("dtype", ["f2", ml_dtypes.bfloat16, "f4", "f8"])
def test_gemv(rng: np.random.Generator, dtype: Any) -> None:
    for m, n in ((1, 1), (7, 33), (5, 1000), (3, 4096), (2, 0), (0, 3)):
        a, x = random(rng, dtype, m, n), random(rng, dtype, n)
        close(linalg.gemv(a, x), a, x)
        close(linalg.gemv(a.T, x, transpose=True), a, x)
        close(linalg.gemv(np.ascontiguousarray(a.T), x, transpose=True), a, x)
    y = random(rng, "f8", 5)
    a, x = random(rng, "f8", 5, 9), random(rng, "f8", 9)
    expected = 2 * (a @ x) - 0.5 * y
    np.testing.assert_allclose(linalg.gemv(a, x, alpha=2, beta=-0.5, out=y), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", ml_dtypes.bfloat16, E4M3, "f4", "f8", "i8"], ids=str)
def test_transpose(rng: np.random.Generator, dtype: Any) -> None:
    for shape in ((1, 1), (33, 31), (2, 3, 32, 65), (0, 4), (3, 70)):
        x = rng.integers(0, 2, shape).astype(dtype)
        np.testing.assert_array_equal(linalg.transpose(x), x.swapaxes(-1, -2))
    wide = rng.integers(0, 2, (40, 66)).astype(dtype)
    np.testing.assert_array_equal(linalg.transpose(wide[::2, 1::2]), wide[::2, 1::2].T)


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    for dtype in ("f4", "f2", "f8"):
        a, b = random(rng, dtype, 2, 33, 20), random(rng, dtype, 20, 5)
        close(linalg.matmul(a, b, residual=np.zeros((2, 33, 5), dtype)), a, b)
    linalg.transpose(random(rng, "f4", 33, 5))
    linalg.gemv(random(rng, "f4", 3, 700), random(rng, "f4", 700))


@pytest.mark.usefixtures("scheduled")
def test_schedules(rng: np.random.Generator) -> None:
    for dtype in ("f4", "f2"):
        a, b = random(rng, dtype, 70, 100), random(rng, dtype, 100, 66)
        close(linalg.matmul(a, b), a, b)


FLOATS = "float16 or bfloat16 or float32 or float64"
A, B = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.matmul(A, A), "`a` [2, 3] and `b` [2, 3] do not multiply: K is 3 and 2"),
        (lambda: linalg.matmul(A, B.astype("f2")), "`b` has dtype float16; wanted is float32"),
        (lambda: linalg.matmul(A.astype("i4"), B),
         f"`a` has dtype int32; wanted is {FLOATS} or int8 or uint8 or float8_e4m3fn or float8_e5m2"),
        (lambda: linalg.matmul(np.ones((2, 2, 3), "f4"), np.ones((3, 3, 4), "f4")),
         "batches that do not broadcast: `a` [2, 2, 3] and `b` [3, 3, 4]"),
        (lambda: linalg.matmul(A, B, out=A), "`out` has shape [2, 3] and dtype float32; wanted is [2, 4] of float32"),
        (lambda: linalg.matmul(A[:, :2], A[:, :2], out=A[:, :2]),
         "`out` is not C-contiguous; wanted is [2, 2] of float32"),
        (lambda: linalg.matmul(SQUARE, SQUARE.copy(), out=SQUARE), "`out` overlaps `a`"),
        (lambda: linalg.matmul(A, B, bias=A[0]),
         f"`bias` has shape [3] and dtype float32; wanted is [4] of {FLOATS}"),
        (lambda: linalg.matmul(A, B, residual=A),
         "`residual` has shape [2, 3] and dtype float32; wanted is [2, 4] of float32"),
        (lambda: linalg.matmul(A, B, activation="swish"),
         "activation is 'swish'; it can be None or 'relu' or 'gelu' or 'gelu_tanh' or 'silu' or 'sigmoid' or 'tanh'"),
        (lambda: linalg.matmul(A, B, alpha=float("nan")), "alpha is nan; it can be any finite number"),
        (lambda: linalg.matmul(A, B, dtype=s32), "dtype is s32; it can be f32 or f16 or bf16"),
        (lambda: linalg.matmul(A.astype("f8"), B.astype("f8"), dtype=f16), "dtype is f16; it can be f64"),
        (lambda: linalg.matmul(A.astype("i1"), B.astype("i1"), alpha=2),
         "the result is int32, which takes neither an activation nor factors"),
        (lambda: linalg.matmul(A.astype("f2"), B.astype("f2"), tf32=True),
         "tf32 is True, and `a` has dtype float16; wanted is float32"),
        (lambda: linalg.gemv(A, A[0, :2]), "`x` has shape [2] and dtype float32; wanted is [3] of float32"),
        (lambda: linalg.gemv(A[0], A[0]), "`a` has shape [3]; wanted is [M, N]"),
        (lambda: linalg.gemv(A, A[0], beta=1), "beta is not 0, and there is no `out` that has y"),
        (lambda: linalg.transpose(A[0]), "`a` has shape [3]; wanted is [..., M, N]"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


SQUARE = np.ones((3, 3), np.float32)


def test_a_vector_with_strides(rng: np.random.Generator) -> None:
    a, x = rng.standard_normal((5, 7)), rng.standard_normal(21)
    np.testing.assert_allclose(linalg.gemv(a, x[::3]), a @ x[::3], rtol=1e-12)
    np.testing.assert_allclose(linalg.gemv(a, x[4::-1], transpose=True), a.T @ x[4::-1], rtol=1e-12)
