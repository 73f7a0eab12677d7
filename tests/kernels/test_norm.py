"""Normalisations against float64, for rows of every length that has a kernel of its own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, to_device
from ptxdsl.kernels import norm, reference

Array = npt.NDArray[Any]
# Relative to the largest magnitude that is expected.
BOUNDS = {np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3, np.dtype(np.float32): 1e-6,
          np.dtype(np.float64): 1e-14}
LENGTHS = [1, 2, 8, 31, 32, 33, 127, 513, 1000, 1024]
dtypes = pytest.mark.parametrize("dtype", BOUNDS, ids=str)


def close(got: Array, expected: Array, bound: float | None = None) -> None:
    bound = bound or BOUNDS[got.dtype]
    assert got.shape == expected.shape
    assert np.abs(got.astype(np.float64) - expected).max(initial=0) <= bound * np.abs(expected).max(initial=1e-30)


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


@dtypes
def test_rows_of_every_length(rng: np.random.Generator, dtype: Any) -> None:
    for length in LENGTHS:
        x, weight, bias = random(rng, dtype, 5, length), random(rng, dtype, length), random(rng, dtype, length)
        out = np.full_like(x, np.nan)
        assert norm.rms_norm(x, weight, out=out) is out
        close(out, reference.rms_norm(x, weight, 1e-6))
        close(norm.softmax(x), reference.softmax(x))
        if length > 1:
            close(norm.layer_norm(x, weight, bias), reference.layer_norm(x, weight, bias), 2 * BOUNDS[x.dtype])
            close(norm.log_softmax(x), np.log(reference.softmax(x)))


@pytest.mark.parametrize(("length", "dtype"), [(5000, "f2"), (16384, "f2"), (4097, "f4"), (40_000, "f4")])
def test_long_rows(rng: np.random.Generator, length: int, dtype: str) -> None:
    x, weight = random(rng, dtype, 2, length), random(rng, dtype, length)
    close(norm.rms_norm(x, weight), reference.rms_norm(x, weight, 1e-6))
    close(norm.layer_norm(x, weight, weight), reference.layer_norm(x, weight, weight))
    close(norm.softmax(x), reference.softmax(x), 4 * BOUNDS[x.dtype])


def test_a_mean_far_from_zero(rng: np.random.Generator) -> None:
    x = random(rng, np.float32, 3, 700) + np.float32(4096)
    one, zero = np.ones(700), np.zeros(700)  # float32 has the mean to 2^-12
    close(norm.layer_norm(x), reference.layer_norm(x, one, zero), 1e-3)
    close(norm.batch_norm(x.T, training=True), reference.batch_norm(x.T, np.ones(3), np.zeros(3)), 1e-3)


def test_mixed_types_and_no_weights(rng: np.random.Generator) -> None:
    x, weight = random(rng, np.float16, 2, 3, 64), random(rng, np.float32, 64)
    close(norm.rms_norm(x, weight), reference.rms_norm(x, weight, 1e-6))
    close(norm.rms_norm(x), reference.rms_norm(x, np.ones(64), 1e-6))
    close(norm.layer_norm(x, None, weight), reference.layer_norm(x, np.ones(64), weight))
    assert norm.rms_norm(to_device(x, backend="emulator"), to_device(weight, backend="emulator")).shape == x.shape


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_axes(rng: np.random.Generator, axis: int) -> None:
    x = random(rng, np.float32, 4, 5, 6)
    close(norm.softmax(x.swapaxes(0, 1), axis), reference.softmax(x.swapaxes(0, 1), axis))
    out = x.copy()
    norm.log_softmax(out, axis, out=out)
    close(out, np.log(reference.softmax(x, axis)))
    grad, y = random(rng, np.float32, 4, 5, 6), reference.softmax(x, axis)
    wide, single, logarithm = grad.astype(np.float64), y.astype(np.float32), np.log(y).astype(np.float32)
    close(norm.softmax_backward(grad, single, axis), y * (wide - (wide * y).sum(axis, keepdims=True)), 2e-6)
    close(norm.log_softmax_backward(grad, logarithm, axis), wide - y * wide.sum(axis, keepdims=True), 2e-6)


def test_softmax_of_special_values() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[0, -inf, 0, -inf], [-inf] * 4, [inf, 0, 0, 0], [nan, 0, 0, 0], [88, -88, 1e38, 0]], np.float32)
    got = norm.softmax(x)
    np.testing.assert_array_equal(got[[0, 4]], [[0.5, 0, 0.5, 0], [0, 0, 1, 0]])
    assert np.isnan(got[[1, 2, 3]]).all()


def test_no_rows_and_no_columns() -> None:
    for shape in ((0, 4), (3, 0), (0,)):
        x = np.zeros(shape, np.float32)
        for function in (norm.rms_norm, norm.layer_norm, norm.softmax, norm.log_softmax):
            assert function(x).shape == shape
    dx, dweight = norm.rms_norm_backward(np.zeros((0, 4)), np.zeros((0, 4)), np.ones(4))
    assert dx.shape == (0, 4) and (dweight == 0).all()
    assert norm.batch_norm(np.zeros((0, 3)), training=True).shape == (0, 3)


def scaled_gradients(g: Array, x: Array, weight: Array, eps: float, centred: bool) -> tuple[Array, Array, Array]:
    """The gradients of x, weight and bias in float64."""
    g, x, weight = (each.astype(np.float64) for each in (g, x, weight))
    if centred:
        x = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    y, h = x * inverse, g * weight
    dx = (h - y * (h * y).mean(-1, keepdims=True) - (h.mean(-1, keepdims=True) if centred else 0)) * inverse
    return dx, (g * y).sum(0), g.sum(0)


@dtypes
@pytest.mark.parametrize(("rows", "length"), [(3, 33), (200, 8), (2, 1000), (1, 9)])
def test_backward(rng: np.random.Generator, dtype: Any, rows: int, length: int) -> None:
    x, grad, weight = random(rng, dtype, rows, length), random(rng, dtype, rows, length), random(rng, dtype, length)
    bound = 4 * BOUNDS[np.dtype(dtype)]
    for expected, got in zip(
        scaled_gradients(grad, x, weight, 1e-6, False), norm.rms_norm_backward(grad, x, weight, eps=1e-6)
    ):
        close(got, expected, bound)
    if length > 1:
        for expected, got in zip(
            scaled_gradients(grad, x, weight, 1e-5, True), norm.layer_norm_backward(grad, x, weight, weight)
        ):
            close(got, expected, bound)


def test_fused_add(rng: np.random.Generator) -> None:
    for dtype, length in ((np.float16, 100), (np.float32, 512)):
        x, residual, weight = random(rng, dtype, 3, length), random(rng, dtype, 3, length), random(rng, dtype, length)
        total = x.astype(np.float64) + residual
        out, sums = norm.fused_add_rms_norm(x, residual, weight)
        close(out, reference.rms_norm(total, weight, 1e-6))
        close(sums, total)
        norm.fused_add_rms_norm(x, residual, weight, out=x, total=residual)
        np.testing.assert_array_equal(x, out)
        np.testing.assert_array_equal(residual, sums)


@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 7), (2, 5, 4, 4), (1, 2, 700)])
def test_batch_norm(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        bound = 4 * BOUNDS[np.dtype(dtype)]
        x, channels = random(rng, dtype, *shape), shape[1]
        weight, bias, mean = (random(rng, np.float32, channels) for _ in range(3))
        var = np.abs(random(rng, np.float32, channels)) + np.float32(0.5)
        count = x.size // channels
        rows = np.moveaxis(x, 1, -1).reshape(-1, channels).astype(np.float64)
        wanted = 0.7 * mean + 0.3 * rows.mean(0), 0.7 * var + 0.3 * rows.var(0) * count / (count - 1)
        along = (1, channels, *(1 for _ in shape[2:]))
        inverse = 1 / np.sqrt(var.astype(np.float64) + 1e-5)
        expected = (x - mean.reshape(along)) * (inverse * weight).reshape(along) + bias.reshape(along)
        close(norm.batch_norm(x, mean, var, weight, bias), expected, bound)
        close(
            norm.batch_norm(x, mean, var, weight, bias, training=True, momentum=0.3),
            reference.batch_norm(x, weight, bias), bound,
        )
        for got, stated in zip((mean, var), wanted):
            close(got, stated, 1e-6)


def test_batch_norm_backward(rng: np.random.Generator) -> None:
    x, grad = random(rng, np.float32, 3, 4, 5), random(rng, np.float32, 3, 4, 5)
    weight, mean, var = random(rng, np.float32, 4), random(rng, np.float32, 4), np.ones(4, np.float32)
    flat = [np.moveaxis(each, 1, 0).reshape(4, 15) for each in (grad, x)]
    dx, _, _ = scaled_gradients(flat[0], flat[1], weight[:, None], 1e-5, True)
    y = reference.layer_norm(flat[1], np.ones(15), np.zeros(15))
    found = norm.batch_norm_backward(grad, x, None, None, weight, weight, training=True)
    close(found[0], np.moveaxis(dx.reshape(4, 3, 5), 0, 1), 4e-6)
    close(found[1], (flat[0] * y).sum(1), 4e-6)
    close(found[2], flat[0].astype(np.float64).sum(1), 4e-6)
    close(
        norm.batch_norm_backward(grad, x, mean, var, weight)[0],
        grad * (weight / np.sqrt(1 + 1e-5)).reshape(1, 4, 1), 4e-6,
    )


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    x, weight = random(rng, np.float16, 5, 100), random(rng, np.float16, 100)
    norm.rms_norm(x, weight, out=x)
    norm.rms_norm_backward(x, x.copy(), weight)
    norm.layer_norm(random(rng, np.float32, 1, 601))
    norm.softmax(x.T, 0)
    norm.batch_norm(x, weight=weight, training=True, out=x)


@pytest.mark.usefixtures("scheduled")
def test_schedules(rng: np.random.Generator) -> None:
    x, weight = random(rng, np.float32, 2, 1500), random(rng, np.float32, 1500)
    close(norm.layer_norm(x, weight, weight), reference.layer_norm(x, weight, weight))
    close(norm.batch_norm(x[None], training=True), reference.batch_norm(x[None], np.ones(2), np.zeros(2)))


X, W = np.ones((2, 3), np.float32), np.ones(3, np.float32)
FLOATS = "float16 or bfloat16 or float32 or float64"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: norm.rms_norm(X, W[:2]), f"`weight` has shape [2] and dtype float32; wanted is [3] of {FLOATS}"),
        (lambda: norm.rms_norm(X, eps=-1), "eps is -1; it can be 0 or more"),
        (lambda: norm.rms_norm(X.astype(int)), f"`x` has dtype int64; wanted is {FLOATS}"),
        (lambda: norm.rms_norm(np.array(1, np.float32)), "`x` has no dimensions; it is normalised over the last one"),
        (lambda: norm.rms_norm(X, W, out=X[:1]),
         "`out` has shape [1, 3] and dtype float32; wanted is [2, 3] of float32"),
        (lambda: norm.softmax(X, 2), "axis is 2; it can be -2 to 1"),
        (lambda: norm.softmax_backward(X[:1], X), "`grad_out` has shape [1, 3]; `y` has [2, 3]"),
        (lambda: norm.fused_add_rms_norm(X, X[:1], W),
         "`residual` has shape [1, 3] and dtype float32; wanted is [2, 3] of float32"),
        (lambda: norm.fused_add_rms_norm(X, X.copy(), W, out=X, total=X), "`total` overlaps `out`"),
        (lambda: norm.rms_norm_backward(X, X.copy(), W, out=X), "`out` overlaps `grad_out`"),
        (lambda: norm.batch_norm(W), "`x` has shape [3]; wanted is [N, C, ...]"),
        (lambda: norm.batch_norm(X), "`running_mean` is None, which takes `training=True`"),
        (lambda: norm.batch_norm(X, W), "one of `running_mean` and `running_var` is None; wanted are both, or neither"),
        (lambda: norm.batch_norm(X[:1], training=True), "`x` has shape [1, 3]: one value a channel has no variance"),
        (lambda: norm.batch_norm(X, training=True, momentum=2), "momentum is 2; it can be 0 to 1"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
