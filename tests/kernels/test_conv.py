"""Convolutions and their gradients against float64: strides, paddings, dilations, groups, split sums, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import conv

Array = npt.NDArray[Any]
UNITS = {
    np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8, np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float64): 2.0**-53,
}
# (N, C, H, W), (O, KH, KW), stride, padding, dilation, groups
CASES: list[tuple[Any, ...]] = [
    ((1, 1, 1, 1), (1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 9, 11), (10, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 16, 8, 7), (24, 3, 2), (2, 1), (0, 2), (1, 2), 2),
    ((1, 6, 9, 9), (12, 3, 3), (2, 2), (1, 1), (1, 1), 6),
    ((2, 66, 5, 7), (65, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 9, 6, 13), (9, 2, 5), (3, 2), (4, 4), (2, 1), 1),
]


def reference(
    x: Array, w: Array, grad: Array | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Array, Array, Array]:
    """The result, and of its gradient those of x and w, in float64."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    w = w.astype(np.float64)
    outputs, own, *size = w.shape
    extents = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(padded.shape[2:], dilation, size, stride)
    ]
    y, dx, dw = np.zeros((x.shape[0], outputs, *extents)), np.zeros_like(padded), np.zeros_like(w)
    grad = np.zeros_like(y) if grad is None else grad.astype(np.float64)
    each = outputs // groups
    for r, s, g in np.ndindex(*size, groups):
        rows = slice(r * dilation[0], r * dilation[0] + (extents[0] - 1) * stride[0] + 1, stride[0])
        columns = slice(s * dilation[1], s * dilation[1] + (extents[1] - 1) * stride[1] + 1, stride[1])
        inside, o = (slice(None), slice(g * own, (g + 1) * own), rows, columns), slice(g * each, (g + 1) * each)
        y[:, o] += np.einsum("nchw,oc->nohw", padded[inside], w[o, :, r, s])
        dx[inside] += np.einsum("nohw,oc->nchw", grad[:, o], w[o, :, r, s])
        dw[o, :, r, s] += np.einsum("nohw,nchw->oc", grad[:, o], padded[inside])
    height, width = x.shape[2:]
    return y, dx[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width], dw


def assert_close(got: Array, want: Array, around: Array, terms: int) -> None:
    """Sums in float32 (or float64) of so many terms, rounded once; ``around`` is the sum of their magnitudes."""
    sums = 2.0**-53 if got.dtype == np.float64 else 2.0**-24
    allowed = UNITS[got.dtype] * np.abs(want) * 1.01 + (terms + 8) * 2 * sums * around + 2.0**-25 * (sums > 1e-10)
    assert got.shape == want.shape
    assert (np.abs(got.astype(np.float64) - want) <= allowed).all()


def assert_convolved(rng: np.random.Generator, dtype: Any, case: tuple[Any, ...]) -> None:
    shape, (outputs, *size), stride, padding, dilation, groups = case
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, bias = rng.standard_normal(shape).astype(dtype), rng.standard_normal(outputs).astype(dtype)
    w = rng.standard_normal((outputs, shape[1] // groups, *size)).astype(dtype)
    want = reference(x, w, None, **options)[0]
    grad = rng.standard_normal(want.shape).astype(dtype)
    _, dx, dw = reference(x, w, grad, **options)
    around = reference(np.abs(x), np.abs(w), np.abs(grad), **options)
    out = np.full(want.shape, np.nan, dtype)
    assert conv.conv2d(x, w, bias, out=out, **options) is out
    column = bias.astype(np.float64)[None, :, None, None]
    assert_close(out, want + column, around[0] + np.abs(column), w[0].size)
    found = conv.conv2d_backward(grad, x, w, **options)
    assert_close(found["x"], dx, around[1], w.size // w.shape[1])
    assert_close(found["w"], dw, around[2], grad[:, 0].size)
    total = grad.astype(np.float64).sum((0, 2, 3))
    assert_close(found["bias"], total, np.abs(grad.astype(np.float64)).sum((0, 2, 3)), grad[:, 0].size)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv2d(rng: np.random.Generator, dtype: Any, case: tuple[Any, ...]) -> None:
    assert_convolved(rng, dtype, case)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float64])
def test_other_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    assert_convolved(rng, dtype, CASES[int(rng.choice([1, 2, 3]))])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gradients_of_weights_are_split(
    rng: np.random.Generator, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conv, "_LEAST_CHUNK", 50)
    assert_convolved(rng, dtype, ((3, 9, 12, 11), (16, 2, 2), (1, 1), (1, 0), (1, 1), 1))


def test_conv1d(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((2, 4, 50)).astype(np.float32), rng.standard_normal((6, 2, 3)).astype(np.float32)
    options: dict[str, Any] = {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}
    wide = {"stride": (1, 2), "padding": (0, 3), "dilation": (1, 2), "groups": 2}
    got = conv.conv1d(x, w, **options)
    grad = rng.standard_normal(got.shape).astype(np.float32)
    want, dx, dw = (
        part[:, :, 0] for part in reference(x[:, :, None], w[:, :, None], grad[:, :, None], **wide)
    )
    found = conv.conv1d_backward(grad, x, w, needs=frozenset(("x", "w")), **options)
    for a, b in ((got, want), (found["x"], dx), (found["w"], dw)):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert set(found) == {"x", "w"}


def test_no_races(rng: np.random.Generator) -> None:
    with config.override(sanitize="all"):
        assert_convolved(rng, np.float16, ((1, 9, 5, 7), (8, 2, 2), (1, 1), (1, 1), (1, 1), 1))


def test_other_arrays(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((2, 5, 6, 3)).astype(np.float32), rng.standard_normal((4, 3, 2, 2)).astype(np.float32)
    want = conv.conv2d(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), w)
    assert np.array_equal(conv.conv2d(x.transpose(0, 3, 1, 2), w), want)
    assert np.array_equal(conv.conv2d(to_device(x).transpose(0, 3, 1, 2), to_device(w)).numpy(), want)
    assert conv.conv2d(np.zeros((0, 3, 5, 5), np.float32), w).shape == (0, 4, 4, 4)


FLOATS = "float16 or bfloat16 or float32 or float64"


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: conv.conv2d(zeros(1, 2, 3), zeros(1, 2, 3, 3)),
            f"`x` has shape [1, 2, 3] and dtype float32; wanted is [N, C, H, W] of {FLOATS}",
        ),
        (
            lambda: conv.conv1d(zeros(1, 2, 3), zeros(1, 2, 3, dtype=np.float64)),
            "`w` has shape [1, 2, 3] and dtype float64; wanted is [O, C / groups, KL] of float32",
        ),
        (
            lambda: conv.conv2d(zeros(1, 4, 5, 5), zeros(4, 4, 3, 3), groups=2),
            (
                "`x` has 4 channels and `w` 4 outputs of 4; of 2 groups they must be 2 times 4 channels, and the "
                "outputs a multiple of 2"
            ),
        ),
        (
            lambda: conv.conv2d(zeros(1, 1, 5, 5), zeros(1, 1, 3, 3), dilation=3),
            "a window of [3, 3] with dilation [3, 3] is larger than the padded image",
        ),
        (lambda: conv.conv2d(zeros(1, 1, 5, 5), zeros(1, 1, 3, 3), stride=0), "stride is 0; it can be 1 to 65535"),
        (
            lambda: conv.conv2d(zeros(1, 1, 5, 5), zeros(1, 1, 3, 3), padding=(1, 2, 3)),
            "padding is (1, 2, 3); it can be an int, or two of them",
        ),
        (
            lambda: conv.conv2d(zeros(1, 1, 5, 5), zeros(2, 1, 3, 3), zeros(1)),
            "`bias` has shape [1] and dtype float32; wanted is [2] of float32",
        ),
        (
            lambda: conv.conv2d_backward(zeros(1, 1, 3, 4), zeros(1, 1, 5, 5), zeros(1, 1, 3, 3)),
            "`grad_out` has shape [1, 1, 3, 4] and dtype float32; wanted is [1, 1, 3, 3] of float32",
        ),
    ],
)
def test_mistakes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message


def test_nothing_to_add_up() -> None:
    assert not conv.conv2d(np.ones((1, 0, 3, 3)), np.ones((2, 0, 2, 2))).any()
    found = conv.conv2d_backward(np.ones((0, 1, 2, 2)), np.ones((0, 1, 3, 3)), np.ones((1, 1, 2, 2)))
    assert found["x"].shape == (0, 1, 3, 3) and not found["w"].any() and found["w"].shape == (1, 1, 2, 2)
    with pytest.raises(LaunchError) as caught:
        conv.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 0, 2)))
    assert caught.value.message == "`w` has shape [1, 1, 0, 2]; a window has one element at least"
