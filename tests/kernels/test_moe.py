"""Mixtures of experts against float64: gating with ties, moving tokens, products of experts with few tokens or none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import moe

Array = npt.NDArray[Any]
UNITS = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8, np.dtype(np.float32): 2.0**-24}


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("renormalize", [False, True])
def test_route(rng: np.random.Generator, dtype: Any, renormalize: bool) -> None:
    for tokens, experts, k in ((1, 1, 1), (33, 8, 2), (5, 33, 32), (17, 160, 6), (0, 4, 1)):
        logits = (rng.integers(-9, 9, (tokens, experts)) / 4).astype(dtype)  # with ties
        weights, chosen = moe.route(logits, k, renormalize=renormalize)
        wide = logits.astype(np.float64)
        want = np.argsort(-wide, 1, kind="stable")[:, :k]
        assert chosen.dtype == np.int32 and np.array_equal(chosen, want)
        shares = np.exp(wide - wide.max(1, keepdims=True))
        taken = np.take_along_axis(shares, want, 1)
        total = (taken if renormalize else shares).sum(1, keepdims=True)
        np.testing.assert_allclose(weights, taken / total, rtol=2e-6)


def test_an_expert_that_is_forbidden() -> None:
    weights, chosen = moe.route(np.array([[1.0, -inf, 2.0]], np.float32), 2)
    assert chosen.tolist() == [[2, 0]] and abs(weights.sum() - 1) < 1e-6


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_there_and_back(rng: np.random.Generator, dtype: Any) -> None:
    for tokens, experts, k, width in ((1, 1, 1, 1), (40, 7, 2, 33), (130, 300, 3, 64)):
        x, chosen = random(rng, dtype, tokens, width), rng.integers(0, experts, (tokens, k)).astype(np.int32)
        rows, offsets, order = moe.permute(x, chosen, experts)
        want = np.argsort(chosen.reshape(-1), kind="stable")
        assert np.array_equal(order, want) and np.array_equal(rows, x[want // k])
        counts = np.bincount(chosen.reshape(-1), minlength=experts)
        assert np.array_equal(offsets, np.concatenate([[0], counts.cumsum()]))
        weights = random(rng, np.float32, tokens, k)
        back = moe.unpermute(rows, order, weights)
        expected = x.astype(np.float64) * weights.astype(np.float64).sum(1, keepdims=True)
        np.testing.assert_allclose(back.astype(np.float64), expected, atol=2e-2 if dtype == np.float16 else 1e-5)


def assert_products(x: Array, w: Array, offsets: Array, transpose_w: bool = False) -> None:
    """That each row is within the bound of a sum in float32 that is rounded once."""
    given = np.ascontiguousarray(w.swapaxes(1, 2)) if transpose_w else w
    out = np.full((x.shape[0], w.shape[2]), np.nan, x.dtype)
    assert moe.grouped_matmul(x, given, offsets, transpose_w=transpose_w, out=out) is out
    a, b = x.astype(np.float64), w.astype(np.float64)
    for e, (start, stop) in enumerate(pairwise(offsets)):
        want, around = a[start:stop] @ b[e], np.abs(a[start:stop]) @ np.abs(b[e])
        allowed = UNITS[x.dtype] * np.abs(want) * 1.01 + x.shape[1] * 2.0**-23 * around + 2.0**-24
        assert (np.abs(out[start:stop].astype(np.float64) - want) <= allowed).all()


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("transpose_w", [False, True])
def test_grouped_matmul(rng: np.random.Generator, dtype: Any, transpose_w: bool) -> None:
    for tokens, experts, depth, width in ((1, 1, 8, 8), (150, 5, 72, 40), (130, 40, 16, 136)):
        cuts = np.sort(rng.integers(0, tokens + 1, experts - 1))
        offsets = np.concatenate([[0], cuts, [tokens]])
        x, w = random(rng, dtype, tokens, depth), random(rng, dtype, experts, depth, width)
        assert_products(x, w, offsets, transpose_w)


def test_sizes_of_float32(rng: np.random.Generator) -> None:
    offsets = np.array([0, 0, 33, 33, 34, 101, 101])
    assert_products(random(rng, np.float32, 101, 19), random(rng, np.float32, 6, 19, 33), offsets)
    assert moe.grouped_matmul(np.zeros((0, 4), np.float32), np.zeros((2, 4, 3), np.float32), np.zeros(3, int)).size == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_no_races(rng: np.random.Generator, dtype: Any) -> None:
    with config.override(sanitize="all"):
        assert_products(random(rng, dtype, 70, 40), random(rng, dtype, 2, 40, 24), np.array([0, 3, 70]))


def test_a_layer_on_the_device(rng: np.random.Generator) -> None:
    x, logits, w = random(rng, np.float32, 30, 16), random(rng, np.float32, 30, 4), random(rng, np.float32, 4, 16, 8)
    weights, experts = moe.route(to_device(logits), 2)
    rows, offsets, order = moe.permute(to_device(x), experts, 4)
    got = moe.unpermute(moe.grouped_matmul(rows, to_device(w), offsets), order, weights).numpy()
    want = np.zeros((30, 8))
    for j in range(2):
        product = np.einsum("th,thn->tn", x.astype(np.float64), w.astype(np.float64)[experts.numpy()[:, j]])
        want += weights.numpy()[:, j, None] * product
    np.testing.assert_allclose(got, want, atol=1e-4)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moe.route(zeros(2, 3), 4), "k is 4; it can be 1 to 3"),
        (lambda: moe.route(zeros(2, 600), 4), "the number of experts is 600; it can be 1 to 512"),
        (
            lambda: moe.permute(zeros(2, 3), np.array([[0], [5]], np.int32), 4),
            "`experts` has 0 to 5; it can have 0 to 3",
        ),
        (
            lambda: moe.permute(zeros(2, 3), zeros(2, 1, dtype=np.int64), 4),
            "`experts` has shape [2, 1] and dtype int64; wanted is [2, k] of int32",
        ),
        (
            lambda: moe.unpermute(zeros(3, 4), zeros(4, dtype=np.int64), zeros(2, 2)),
            "`y` has shape [3, 4] and dtype float32; wanted is [4, H] of float16 or bfloat16 or float32 or float64",
        ),
        (
            lambda: moe.grouped_matmul(zeros(3, 4), zeros(2, 5, 8), zeros(3, dtype=np.int64)),
            "`w` has shape [2, 5, 8] and dtype float32; wanted is [E, 4, N] of float32",
        ),
        (
            lambda: moe.grouped_matmul(
                zeros(3, 12, dtype=np.float16), zeros(2, 12, 8, dtype=np.float16), zeros(3, dtype=np.int64)
            ),
            "K is 12; of float16 it is a multiple of 8",
        ),
    ],
)
def test_mistakes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message


# ---------------------------------------------------------------------------------------------------------------------
# Gradients


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("renormalize", [False, True])
def test_gradient_of_gating(rng: np.random.Generator, dtype: Any, renormalize: bool) -> None:
    for tokens, experts, k in ((1, 1, 1), (9, 33, 32), (17, 160, 6), (0, 4, 1)):
        logits = random(rng, dtype, tokens, experts)
        weights, chosen = moe.route(logits, k, renormalize=renormalize)
        grad = random(rng, np.float32, tokens, k)
        got = moe.route_backward(grad, logits, weights, chosen, renormalize=renormalize)
        assert got.dtype == dtype and got.shape == logits.shape
        shares, mask = _softmax(logits.astype(np.float64)), np.zeros(logits.shape)
        np.put_along_axis(mask, chosen.astype(np.int64), 1, 1)
        if renormalize:
            shares = shares * mask / (shares * mask).sum(1, keepdims=True)
        slopes = np.zeros(logits.shape)
        np.put_along_axis(slopes, chosen.astype(np.int64), grad.astype(np.float64), 1)
        want = shares * (slopes - (shares * slopes).sum(1, keepdims=True))
        np.testing.assert_allclose(got.astype(np.float64), want, atol=4e-6, rtol=2 * UNITS[np.dtype(dtype)])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_gradients_of_moving(rng: np.random.Generator, dtype: Any) -> None:
    bound = 4 * float(ml_dtypes.finfo(dtype).eps)
    for tokens, experts, k, width in ((1, 1, 1, 1), (40, 7, 2, 33), (30, 90, 3, 257)):
        x, chosen = random(rng, dtype, tokens, width), rng.integers(0, experts, (tokens, k)).astype(np.int32)
        rows, _, order = moe.permute(x, chosen, experts)
        grad, weights = random(rng, dtype, tokens * k, width), random(rng, np.float32, tokens, k)
        want = np.zeros((tokens, width))
        np.add.at(want, order // k, grad.astype(np.float64))
        np.testing.assert_allclose(moe.permute_backward(grad, order, k).astype(np.float64), want, bound, bound)
        y_grad, weight_grad = moe.unpermute_backward(grad[:tokens], rows, order, weights)
        slopes = grad[:tokens].astype(np.float64)[order // k]
        assert y_grad.dtype == dtype and weight_grad.dtype == np.float32
        wide = weights.reshape(-1).astype(np.float64)[order]
        np.testing.assert_allclose(y_grad.astype(np.float64), slopes * wide[:, None], bound, 1e-7)
        dots = np.empty(tokens * k)
        dots[order] = (slopes * rows.astype(np.float64)).sum(1)
        np.testing.assert_allclose(weight_grad.reshape(-1), dots, 1e-5, 1e-5 * width)


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("transpose_w", [False, True])
def test_gradients_of_products(rng: np.random.Generator, dtype: Any, transpose_w: bool) -> None:
    """Rows beyond the last expert are neither read nor added; an expert without rows has a gradient of 0."""
    cases = ((1, 8, 8, [0, 1]), (4, 72, 136, [0, 10, 10, 60, 61]), (3, 8, 16, [0, 0, 0, 0]))
    for experts, depth, width, offsets in cases:
        tokens = offsets[-1] + 3
        x, grad = random(rng, dtype, tokens, depth), random(rng, dtype, tokens, width)
        x[offsets[-1] :], grad[offsets[-1] :] = np.nan, np.inf
        w = random(rng, dtype, experts, *((width, depth) if transpose_w else (depth, width)))
        found = moe.grouped_matmul_backward(grad, x, w, np.array(offsets), transpose_w=transpose_w)
        assert found["x"].dtype == found["w"].dtype == dtype and not found["x"][offsets[-1] :].any()
        for e, (start, stop) in enumerate(pairwise(offsets)):
            rows, slopes, matrix = (a.astype(np.float64) for a in (x[start:stop], grad[start:stop], w[e]))
            pairs = [(found["x"][start:stop], slopes, matrix if transpose_w else matrix.T)]
            pairs.append((found["w"][e], *((slopes.T, rows) if transpose_w else (rows.T, slopes))))
            for got, a, b in pairs:
                allowed = UNITS[np.dtype(dtype)] * np.abs(a @ b) * 1.01 + 2.0**-23 * 80 * (np.abs(a) @ np.abs(b)) + 1e-7
                assert (np.abs(got.astype(np.float64) - a @ b) <= allowed).all()
    assert not moe.grouped_matmul_backward(grad, x, w, np.array(offsets), transpose_w=transpose_w, needs=frozenset())


@pytest.mark.usefixtures("sanitized")
def test_gradients_are_clean(rng: np.random.Generator) -> None:
    x, grad = random(rng, np.float16, 70, 16), random(rng, np.float16, 70, 8)
    w = random(rng, np.float16, 2, 16, 8)
    moe.grouped_matmul_backward(grad, x, w, np.array([0, 66, 70]), needs=frozenset("w"))
    logits, weights = random(rng, np.float32, 5, 40), random(rng, np.float32, 5, 2)
    chosen = np.arange(10, dtype=np.int32)
    moe.route_backward(weights, logits, weights, chosen.reshape(5, 2))
    moe.unpermute_backward(logits, random(rng, np.float32, 10, 40), chosen.astype(np.int64), weights)


def test_gradients_that_do_not_fit() -> None:
    x, w, offsets = np.zeros((4, 8), np.float16), np.zeros((2, 12, 8), np.float16), np.array([0, 2, 4])
    for call, message in (
        (lambda: moe.grouped_matmul_backward(np.zeros((4, 8), np.float16), x, w, offsets, transpose_w=True),
         "`grad_out` has shape [4, 8] and dtype float16; wanted is [4, 12] of float16"),
        (lambda: moe.grouped_matmul_backward(
            np.zeros((4, 12), np.float16), x, w, offsets, transpose_w=True, needs=frozenset("w")),
         "a side of the weights has 12; of 16-bit types their gradient takes multiples of 8"),
        (lambda: moe.permute_backward(np.zeros((5, 2)), np.zeros(5, int), 2),
         "`grad_out` has 5 rows; of k 2 it has a multiple of that"),
        (lambda: moe.route_backward(np.zeros((4, 2)), np.zeros((4, 9), np.float32), np.zeros((4, 2), np.float32),
                                    np.zeros((4, 2), np.int32)),
         "`grad_weights` has shape [4, 2] and dtype float64; wanted is [4, 2] of float32"),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.message == message
