"""Rows that the blocks of a cluster share: which those are, and every function of rows against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl.config import override
from ptxdsl.kernels import blocks, linalg, loss, norm, reference, rows

Array = npt.NDArray[Any]
BOUNDS = {np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 1.6e-2, np.dtype(np.float32): 2e-6,
          np.dtype(np.float64): 2e-14}
"""Relative to the largest magnitude that is expected."""
CASES = [
    # whole vectors in registers, a ragged end, elements one by one, and loops over rows that no cluster holds
    ("f2", 32768), ("bfloat16", 20_008), ("f4", 5001), ("f4", 4100), ("f8", 3002), ("f4", 40_001),
]


def close(got: Array, expected: Array, times: float = 1) -> None:
    assert got.shape == expected.shape
    error = np.abs(got.astype(np.float64) - expected).max()
    assert error <= times * BOUNDS[got.dtype] * np.abs(expected).max()


def random(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("dtype", "length"), CASES)
def test_normalised(rng: np.random.Generator, dtype: str, length: int) -> None:
    x, weight, bias = random(rng, dtype, 2, length), random(rng, dtype, length), random(rng, dtype, length)
    assert rows.plan_of(length, x, rows=2).blocks > 1
    for function, expected in (
        (norm.softmax, reference.softmax(x)), (norm.log_softmax, np.log(reference.softmax(x))),
        (lambda x, out: norm.layer_norm(x, weight, bias, out=out), reference.layer_norm(x, weight, bias)),
        (lambda x, out: norm.rms_norm(x, weight, out=out), reference.rms_norm(x, weight, 1e-6)),
    ):
        out, same = np.full_like(x, np.nan), x.copy()
        close(function(x, out=out), expected)
        np.testing.assert_array_equal(function(same, out=same), out)


@pytest.mark.parametrize(("dtype", "length"), [("f2", 16_000), ("f4", 9001)])
def test_gradients_and_sums(rng: np.random.Generator, dtype: str, length: int) -> None:
    x, grad, weight = random(rng, dtype, 2, length), random(rng, dtype, 2, length), random(rng, dtype, length)
    wide, y = grad.astype(np.float64), reference.softmax(x).astype(dtype)
    assert rows.plan_of(length, x, rows=2, held=2).blocks > 1
    dot = (wide * y.astype(np.float64)).sum(1, keepdims=True)
    close(norm.softmax_backward(grad, y, out=np.full_like(x, np.nan)), y * (wide - dot))
    h, normed = wide * weight, reference.layer_norm(x, np.ones(length), np.zeros(length))
    centred = h - h.mean(1, keepdims=True) - normed * (h * normed).mean(1, keepdims=True)
    found = norm.layer_norm_backward(grad, x, weight)
    close(found[0], centred / np.sqrt(x.astype(np.float64).var(1, keepdims=True) + 1e-5), 2)
    close(found[1], (wide * normed).sum(0), 2)
    out, total = norm.fused_add_rms_norm(x, grad, weight)
    close(out, reference.rms_norm(x + wide, weight, 1e-6))
    close(total, x + wide)
    product = linalg.gemv(x, weight)
    size = np.abs(x.astype(np.float64)) @ np.abs(weight.astype(np.float64))
    assert (np.abs(product - x.astype(np.float64) @ weight) <= BOUNDS[x.dtype] * size).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(rng: np.random.Generator, weighted: bool) -> None:
    count, classes, smoothing = 3, 32_000, 0.1
    logits, target = random(rng, "bfloat16", count, classes), rng.integers(0, classes, count)
    weight = rng.uniform(0.5, 2, classes).astype(ml_dtypes.bfloat16) if weighted else None
    own = np.ones(classes) if weight is None else weight.astype(np.float64)
    wanted = smoothing / classes * own + (1 - smoothing) * own[target, None] * (np.arange(classes) == target[:, None])
    softmax = reference.softmax(logits)
    expected = softmax * wanted.sum(1, keepdims=True) - wanted
    losses, found = loss.cross_entropy_with_grad(
        logits, target, weight=weight, label_smoothing=smoothing, reduction="none", grad=logits
    )
    close(found, expected)
    np.testing.assert_allclose(losses, -(wanted * np.log(softmax)).sum(1), rtol=2e-5)


@pytest.mark.parametrize(("dtype", "length"), [("f2", 12_000), ("f4", 3001), ("f8", 1500)])
def test_channels(rng: np.random.Generator, dtype: str, length: int) -> None:
    x, grad, weight = random(rng, dtype, 3, 2, length), random(rng, dtype, 3, 2, length), random(rng, "f4", 2)
    mean, var, out = np.zeros(2, np.float32), np.ones(2, np.float32), np.full_like(x, np.nan)
    norm.batch_norm(x, mean, var, weight, weight, training=True, out=out)
    close(out, reference.batch_norm(x, weight, weight))
    wide, slopes = (each.astype(np.float64).swapaxes(0, 1).reshape(2, -1) for each in (x, grad))
    np.testing.assert_allclose(mean, 0.1 * wide.mean(1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(var, 0.9 + 0.1 * wide.var(1, ddof=1), rtol=1e-5)
    normed = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    product, total = (slopes * normed).sum(1), slopes.sum(1)
    centred = slopes - slopes.mean(1, keepdims=True) - normed * (slopes * normed).mean(1, keepdims=True)
    expected = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight[:, None]
    dx, dweight, dbias = norm.batch_norm_backward(grad, x, None, None, weight, weight, training=True)
    close(dx.swapaxes(0, 1).reshape(2, -1), expected, 2)
    for got, stated in ((dweight, product), (dbias, total)):
        assert np.abs(got - stated).max() <= max(BOUNDS[x.dtype] / 100, 2e-6) * np.abs(slopes).sum(1).max()


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    x, weight = random(rng, "f4", 2, 4404), random(rng, "f4", 4404)
    norm.softmax(x, out=x)
    norm.layer_norm(x, weight, weight, out=x)
    norm.fused_add_rms_norm(x, x.copy(), weight)
    z = random(rng, "f4", 2, 2, 2052)
    norm.batch_norm(z, weight=np.ones(2, np.float32), training=True, out=z)
    norm.batch_norm_backward(z, z.copy(), training=True)
    y = random(rng, "f4", 1, 33_000)[:, 1:]
    loss.cross_entropy_with_grad(y, np.array([5]), grad=y)


@pytest.mark.usefixtures("scheduled")
def test_schedules(rng: np.random.Generator) -> None:
    x = random(rng, "f4", 2, 5000)
    close(norm.softmax(x), reference.softmax(x))


def test_which_rows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    half, single = np.zeros(8, np.float16), np.zeros(8, np.float32)
    for number, count in ((0, 8), (75, 1), (80, 1), (90, 8), (100, 8), (120, 8)):
        monkeypatch.setattr(blocks, "capability", lambda number=number: number)
        assert rows.plan_of(102_400, half, rows=4).blocks == count
    for number, count in ((1, 4), (33, 4), (34, 2), (66, 2), (67, 1), (None, 1)):
        assert rows.plan_of(32_768, half, rows=number).blocks == count
    # Many rows are shared where a block cannot hold one, however many arrays are held.
    assert [rows.plan_of(n, half).blocks for n in (32_768, 32_776, 128_256, 10**6)] == [1, 2, 4, 8]
    assert [rows.plan_of(n, half, held=2).blocks for n in (16_384, 16_392, 128_256)] == [1, 2, 8]
    assert [rows.plan_of(n, single).steps for n in (131_072, 131_073)] == [8, 0]


def test_a_target_without_clusters_is_not_asked(rng: np.random.Generator) -> None:
    with override(arch="sm_75", backend="emulator"):
        x = random(rng, "f4", 1, 5000)
        close(norm.softmax(x), reference.softmax(x))
