"""Steps of optimisers against float64, over several steps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, to_device
from ptxdsl.kernels import optim

Array = npt.NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
SIZES = [0, 1, 3, 8, 33, 1000, 2053]


def adamw(
    p: Array, g: Array, m: Array, v: Array, step: int, *, lr: float, betas: Any, eps: float, decay: float
) -> Array:
    """The step in float64; m and v are changed."""
    m[...] = betas[0] * m + (1 - betas[0]) * g
    v[...] = betas[1] * v + (1 - betas[1]) * g * g
    rate = lr / (1 - betas[0] ** step)
    return p * (1 - lr * decay) - rate * m / (np.sqrt(v / (1 - betas[1] ** step)) + eps)


@pytest.mark.parametrize(("dtype", "grad_type", "bound"), [("f4", "f4", 1e-6), ("f4", BF16, 1e-6), ("f8", "f8", 1e-14)])
@pytest.mark.parametrize("size", SIZES)
def test_adamw(rng: np.random.Generator, dtype: str, grad_type: Any, bound: float, size: int) -> None:
    param = rng.standard_normal(size).astype(dtype)
    mean, square, copy = np.zeros_like(param), np.zeros_like(param), np.full(size, np.nan, BF16)
    p, m, v = (each.astype(np.float64) for each in (param, mean, square))
    for step in (1, 2, 3):
        grad = rng.standard_normal(size).astype(grad_type)
        assert optim.adamw(
            param, grad, mean, square, step, lr=1e-2, betas=(0.8, 0.95), weight_decay=0.1, copy=copy
        ) is param
        p = adamw(p, grad.astype(np.float64), m, v, step, lr=1e-2, betas=(0.8, 0.95), eps=1e-8, decay=0.1)
    for got, wanted in ((param, p), (mean, m), (square, v)):
        np.testing.assert_allclose(got, wanted, rtol=4 * bound, atol=bound)
    np.testing.assert_array_equal(copy, param.astype(BF16))


def test_adamw_of_16_bits(rng: np.random.Generator) -> None:
    param, grad = rng.standard_normal((2, 33)).astype(np.float16)
    mean, square = np.zeros((2, 33), np.float32)
    before, states = param.astype(np.float64), [np.zeros(33), np.zeros(33)]
    optim.adamw(param, grad, mean, square, 1, lr=0.5)
    wanted = adamw(before, grad.astype(np.float64), *states, 1, lr=0.5, betas=(0.9, 0.999), eps=1e-8, decay=0.01)
    np.testing.assert_allclose(param.astype(np.float64), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_sgd(rng: np.random.Generator, size: int, nesterov: bool) -> None:
    param = rng.standard_normal(size).astype(np.float32)
    buffer, copy = np.zeros_like(param), np.full(size, np.nan, np.float16)
    p, b = param.astype(np.float64), np.zeros(size)
    for _ in range(3):
        grad = rng.standard_normal(size).astype(np.float32)
        optim.sgd(param, grad, buffer, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov, copy=copy)
        d = grad + 0.01 * p
        b = 0.9 * b + d
        p = p - 0.1 * (d + 0.9 * b if nesterov else b)
    np.testing.assert_allclose(param, p, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(copy, param.astype(np.float16))
    plain = np.ones(size)
    optim.sgd(plain, plain * 3, lr=0.5)
    assert (plain == -0.5).all()


@pytest.mark.parametrize("dtype", ["f2", BF16, "f4", "f8"], ids=str)
def test_norms(rng: np.random.Generator, dtype: Any) -> None:
    grads = [rng.standard_normal(shape).astype(dtype) for shape in ((3, 7), (), (0,), (5001,), (1000, 1))]
    wide = [grad.astype(np.float64) for grad in grads]
    total = sum(np.square(each).sum() for each in wide)
    np.testing.assert_allclose(optim.squared_sum(grads), total, rtol=1e-5)
    norm, _ = optim.clip_grad_norm(grads, 2.0)
    np.testing.assert_allclose(norm, np.sqrt(total), rtol=1e-5)
    for grad, before in zip(grads, wide):
        np.testing.assert_allclose(grad.astype(np.float64), before * 2 / np.sqrt(total), rtol=1e-2, atol=1e-6)
    assert optim.clip_grad_norm(grads, 1e4)[1] == 1


def test_the_norm_of_a_gradient_scales_the_step(rng: np.random.Generator) -> None:
    param, grad = rng.standard_normal((2, 40)).astype(np.float32)
    states = [np.zeros(40, np.float32) for _ in range(4)]
    _, factor = optim.clip_grad_norm([grad], 0.5, scale=False)
    other = param.copy()
    optim.adamw(param, grad, *states[:2], 1, grad_scale=factor)
    optim.clip_grad_norm([grad], 0.5)
    optim.adamw(other, grad, *states[2:], 1)
    np.testing.assert_allclose(param, other, rtol=1e-6)
    device = to_device(grad, backend="emulator")
    np.testing.assert_allclose(optim.squared_sum(device).numpy(), np.square(grad.astype(np.float64)).sum(), rtol=1e-6)


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    param, grad, mean, square = rng.random((4, 1003)).astype(np.float32)
    optim.clip_grad_norm(grad, 1.0)
    optim.adamw(param, grad, mean, square, 1)
    optim.sgd(param, grad, mean, momentum=0.5)


@pytest.mark.usefixtures("scheduled")
def test_schedules(rng: np.random.Generator) -> None:
    x = rng.standard_normal(5000)
    np.testing.assert_allclose(optim.squared_sum(x), np.square(x).sum(), rtol=1e-12)


P, G = np.ones(4, np.float32), np.ones(4, np.float32)
STATES = np.zeros((2, 4), np.float32)
F = "float16 or bfloat16 or float32 or float64"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optim.adamw(P, G[:3], *STATES, 1), f"`grad` has shape [3] and dtype float32; wanted is [4] of {F}"),
        (lambda: optim.adamw(P, G, STATES[0].astype("f2"), STATES[1], 1),
         "`exp_avg` has shape [4] and dtype float16; wanted is [4] of float32"),
        (lambda: optim.adamw(P, G, STATES[0], STATES[0], 1), "`exp_avg` overlaps `exp_avg_sq`"),
        (lambda: optim.adamw(P, P, *STATES, 1), "`param` overlaps `grad`"),
        (lambda: optim.adamw(P, G, *STATES, 0), "step is 0; it can be 1 to 4611686018427387903"),
        (lambda: optim.adamw(P, G, *STATES, 1, betas=(0.9, 1.0)), "betas[1] is 1.0; it can be 0 to below 1"),
        (lambda: optim.adamw(P, G, *STATES, 1, lr=-1), "lr is -1; it can be 0 or more"),
        (lambda: optim.adamw(P, G, *STATES, 1, grad_scale=G), "`grad_scale` has shape [4]; wanted is one element"),
        (lambda: optim.sgd(P, G, momentum=0.9), "momentum is not 0, and `momentum_buffer` is None"),
        (lambda: optim.sgd(P, G, nesterov=True), "nesterov is True, which takes a momentum and a dampening of 0"),
        (lambda: optim.squared_sum([]), "there is no array; wanted is one at least"),
        (lambda: optim.squared_sum([G, G.astype(int)]), f"`arrays[1]` has dtype int64; wanted is {F}"),
        (lambda: optim.clip_grad_norm(G, 0), "max_norm is 0; it can be any number above"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
