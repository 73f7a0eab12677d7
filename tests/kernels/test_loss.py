"""Cross entropy against float64, for every length of rows, dtype and reduction."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, TrapError, to_device
from ptxdsl.kernels import loss, reference

Array = npt.NDArray[Any]
BOUNDS = {np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3, np.dtype(np.float32): 2e-6,
          np.dtype(np.float64): 1e-14}


def expected(
    logits: Array, target: Array, smoothing: float = 0.0, ignored: int = -100
) -> tuple[Array, Array, Array]:
    """Each loss, its gradient, and which count."""
    wide = logits.astype(np.float64)
    largest = wide.max(-1, keepdims=True)
    logarithms = wide - largest - np.log(np.exp(wide - largest).sum(-1, keepdims=True))
    counts = target != ignored
    wanted = np.full(wide.shape, smoothing / wide.shape[1])
    wanted[np.arange(len(wide)), np.where(counts, target, 0)] += 1 - smoothing
    losses = -(wanted * logarithms).sum(-1) * counts
    return losses, (np.exp(logarithms) - wanted) * counts[:, None], counts


def close(got: Any, wanted: Any, bound: float) -> None:
    assert np.abs(np.asarray(got, np.float64) - wanted).max() <= bound * max(np.abs(wanted).max(), 1)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("classes", [1, 2, 33, 513, 1000])
def test_rows(rng: np.random.Generator, dtype: Any, classes: int) -> None:
    logits = (3 * rng.standard_normal((7, classes))).astype(dtype)
    target = rng.integers(0, classes, 7)
    target[2] = -100
    for smoothing in (0.0, 0.3):
        losses, slopes, counts = expected(logits, target, smoothing)
        each = loss.cross_entropy(logits, target, label_smoothing=smoothing, reduction="none")
        assert each.dtype == (np.float64 if dtype == np.float64 else np.float32)
        close(each, losses, 1e-14 if dtype == np.float64 else 1e-6 if dtype == np.float32 else 1e-5)
        for reduction, share in (("sum", 1.0), ("mean", 1 / counts.sum())):
            grad = np.full_like(logits, np.nan)
            total, _ = loss.cross_entropy_with_grad(
                logits, target.astype(np.int32), label_smoothing=smoothing, reduction=reduction, grad=grad
            )
            close(total, losses.sum() * share, 2e-5 if dtype != np.float64 else 1e-13)
            close(grad, slopes * share, BOUNDS[np.dtype(dtype)])


@pytest.mark.parametrize(
    ("dtype", "kind", "classes"),
    [(np.float16, np.float32, 33), (np.float32, np.float32, 1), (np.float32, np.float32, 1024),
     (np.float64, np.float16, 33), (np.float32, np.float64, 5000)],
)
def test_weights_of_classes(rng: np.random.Generator, dtype: Any, kind: Any, classes: int) -> None:
    """Those of a loss at its target, those of the smoothing at all; the mean is by the weights of the targets."""
    logits, target = (3 * rng.standard_normal((5, classes))).astype(dtype), rng.integers(0, classes, 5)
    weight = rng.uniform(0.1, 2, classes).astype(kind)
    target[1] = -1
    factors, logarithms = weight.astype(np.float64), np.log(reference.softmax(logits.astype(np.float64)))
    counts = target != -1
    for smoothing in (0.0, 0.3):
        wanted = np.tile(smoothing / classes * factors, (5, 1))
        wanted[np.arange(5), target] += (1 - smoothing) * factors[target]
        wanted *= counts[:, None]
        losses = -(wanted * logarithms).sum(1)
        slopes = np.exp(logarithms) * wanted.sum(1, keepdims=True) - wanted
        for reduction, share in (("none", 1.0), ("mean", 1 / factors[target[counts]].sum())):
            got, grad = loss.cross_entropy_with_grad(
                logits, target, weight=weight, ignore_index=-1, label_smoothing=smoothing, reduction=reduction
            )
            close(got, losses if reduction == "none" else losses.sum() * share, 1e-13 if dtype == np.float64 else 2e-5)
            close(grad, slopes * share, BOUNDS[np.dtype(dtype)])
            only = loss.cross_entropy(
                logits, target, weight=weight, ignore_index=-1, label_smoothing=smoothing, reduction=reduction
            )
            np.testing.assert_array_equal(only, got)


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(LaunchError) as caught:
        loss.cross_entropy(np.zeros((2, 3)), np.zeros(2, int), weight=np.ones(2))
    assert caught.value.message == (
        "`weight` has shape [2] and dtype float64; wanted is [3] of float16 or bfloat16 or float32 or float64"
    )
    with pytest.raises(TrapError, match="cross_entropy: a target is no class"):
        loss.cross_entropy(np.zeros((2, 3)), np.array([0, 3]), weight=np.ones(3))
    assert np.isnan(loss.cross_entropy(np.zeros((1, 2)), np.array([0]), weight=np.zeros(2)))


def test_long_rows_in_place(rng: np.random.Generator) -> None:
    logits, target = rng.standard_normal((2, 20_000)).astype(np.float32), np.array([19_999, 0])
    losses, slopes, _ = expected(logits, target, 0.1)
    total, grad = loss.cross_entropy_with_grad(logits, target, label_smoothing=0.1, reduction="none", grad=logits)
    assert grad is logits
    close(total, losses, 1e-6)
    close(grad, slopes, 1e-6)


def test_large_logits() -> None:
    logits = np.array([[1e4, 1e4, -1e4], [3e38, 0, 0]], np.float32)
    got, grad = loss.cross_entropy_with_grad(logits, np.array([1, 0]), reduction="none")
    np.testing.assert_allclose(got, [np.log(2), 0], rtol=1e-6)
    np.testing.assert_allclose(grad, [[0.5, -0.5, 0], [0, 0, 0]], atol=1e-7)
    masked = np.array([[0, -np.inf, 0]], np.float32)
    np.testing.assert_allclose(loss.cross_entropy(masked, np.array([2])), np.log(2), rtol=1e-6)
    assert np.isnan(loss.cross_entropy(np.array([[np.nan, 0]]), np.array([1])))


def test_shapes(rng: np.random.Generator) -> None:
    logits, target = rng.standard_normal((2, 5, 3, 4)), rng.integers(0, 5, (2, 3, 4))
    losses, slopes, _ = expected(np.moveaxis(logits, 1, -1).reshape(-1, 5), target.ravel())
    each, grad = loss.cross_entropy_with_grad(logits, target, reduction="none")
    close(each, losses.reshape(2, 3, 4), 1e-13)
    close(grad, np.moveaxis(slopes.reshape(2, 3, 4, 5), -1, 1), 1e-13)
    close(loss.cross_entropy(logits[0, :, 0, 0], np.array(target[0, 0, 0])), losses[0], 1e-13)
    device = loss.cross_entropy(to_device(logits, backend="emulator"), to_device(target, backend="emulator"))
    close(device.numpy(), losses.mean(), 1e-13)


def test_no_targets() -> None:
    logits, target = np.zeros((2, 3), np.float32), np.full(2, 7)
    got, grad = loss.cross_entropy_with_grad(logits, target, ignore_index=7)
    assert np.isnan(got) and (grad == 0).all()
    assert loss.cross_entropy(logits, target, ignore_index=7, reduction="sum") == 0
    assert np.isnan(loss.cross_entropy(logits[:0], target[:0]))
    assert loss.cross_entropy(logits[:0], target[:0], reduction="none").shape == (0,)


@pytest.mark.emulator  # a GPU loses its context
def test_a_target_that_is_no_class() -> None:
    for target in (3, -1):
        with pytest.raises(TrapError, match="cross_entropy: a target is no class"):
            loss.cross_entropy(np.zeros((1, 3), np.float32), np.array([target]))


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    for rows, classes in ((5, 37), (1, 700)):
        logits = rng.standard_normal((rows, classes)).astype(np.float32)
        loss.cross_entropy_with_grad(logits, rng.integers(0, classes, rows), grad=logits)


@pytest.mark.usefixtures("scheduled")
def test_schedules(rng: np.random.Generator) -> None:
    logits, target = rng.standard_normal((3, 700)), rng.integers(0, 700, 3)
    close(loss.cross_entropy(logits, target), expected(logits, target)[0].mean(), 1e-13)


X, T = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: loss.cross_entropy(X, T[:1]), "`target` has shape [1]; wanted is [2], one class each"),
        (lambda: loss.cross_entropy(X, X[:, 0]), "`target` has dtype float32; wanted is int32 or int64"),
        (lambda: loss.cross_entropy(T, T),
         "`logits` has dtype int64; wanted is float16 or bfloat16 or float32 or float64"),
        (lambda: loss.cross_entropy(X, T, reduction="avg"), "reduction is 'avg'; it can be 'none' or 'mean' or 'sum'"),
        (lambda: loss.cross_entropy(X, T, label_smoothing=2), "label_smoothing is 2; it can be 0 to 1"),
        (lambda: loss.cross_entropy(X[:, :0], T), "`logits` has shape [2, 0]; there is one class at least"),
        (lambda: loss.cross_entropy(X, T, out=X[0]), "`out` has shape [3] and dtype float32; wanted is [] of float32"),
        (lambda: loss.cross_entropy_with_grad(X, T, grad=X[:1]),
         "`grad` has shape [1, 3] and dtype float32; wanted is [2, 3] of float32"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_the_reference() -> None:
    np.testing.assert_allclose(expected(X, T)[1], reference.softmax(X) - np.eye(3)[T])
