"""Elementwise functions against float64, over every way that arrays can lie."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, bf16, e4m3, f16, f32, f64, math, pred, s8, s32, s64, select, to_device, u8
from ptxdsl.kernels import elementwise, reference

Array = npt.NDArray[Any]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
# Of a result, relative to its magnitude or to 1 where that is more: a rounding to the dtype, and the functions' errors.
BOUNDS = {np.dtype(np.float16): 6e-4, np.dtype(ml_dtypes.bfloat16): 5e-3, np.dtype(np.float32): 6e-7,
          np.dtype(np.float64): 2e-15}
SIZES = [0, 1, 7, 8, 9, 31, 32, 33, 127, 1000, 2051]


def close(got: Array, expected: Array, dtype: Any = None) -> None:
    """``got`` is within the bound of its dtype."""
    assert got.dtype == (dtype or got.dtype) and got.shape == expected.shape
    bound = BOUNDS[got.dtype] * np.maximum(np.abs(expected), 1)
    with np.errstate(invalid="ignore"):
        same = (got.astype(np.float64) == expected) | (np.isnan(got.astype(np.float64)) & np.isnan(expected))
        assert (same | (np.abs(got.astype(np.float64) - expected) <= bound)).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_sizes(rng: np.random.Generator, dtype: Any) -> None:
    fused = elementwise.map(lambda x, y: x * y + 1.0)
    for n in SIZES:
        x, y = rng.standard_normal((2, n)).astype(dtype)
        out = np.full(n, np.nan, dtype)
        assert fused(x, y, out=out) is out
        close(out, x.astype(np.float64) * y.astype(np.float64) + 1, dtype)


def views(rng: np.random.Generator, dtype: Any) -> dict[str, tuple[Array, Any]]:
    x = rng.standard_normal((4, 6, 16)).astype(dtype)
    wide = rng.standard_normal((4, 6, 40)).astype(dtype)
    return {
        "number": (x, 2.5), "scalar array": (x, x[1, 2, 3].reshape(())), "last axis": (x, x[0, 0]),
        "rows": (x, x[:, :, :1]), "outer": (x[:, :1], x[0]), "middle": (x, x[:, :1]), "transposed": (x.T, x.T[0]),
        "steps": (x[:, ::2, ::3], x[0, ::2, ::3]), "reversed": (x[::-1, :, ::-1], x), "parts": (wide[..., :16], x),
        "odd part": (wide[..., 1:17], x), "unaligned": (x.ravel()[1:], x.ravel()[:-1]), "same": (x, x),
        "broadcast view": (np.broadcast_to(x[:, :1], x.shape), x), "0-d": (x[0, 0, 0].reshape(()), 3),
        "no elements": (x[:0], x[0]), "ones": (x[:1, :1, :1], x[:1, :1]),
    }


@pytest.mark.parametrize("case", views(np.random.default_rng(), np.float32))
def test_every_layout(rng: np.random.Generator, case: str) -> None:
    for dtype in (np.float32, np.float16):
        x, y = views(rng, dtype)[case]
        expected = np.asarray(x, np.float64) - np.asarray(y, np.float64)
        close(elementwise.sub(x, y), expected, dtype)
        out = np.full((*expected.shape, 2), np.nan, dtype)[..., 0]  # which has strides itself
        assert elementwise.sub(x, y, out=out) is out
        close(out, expected)


def random_view(rng: np.random.Generator, shape: list[int], dtype: Any) -> Array:
    """An array of this shape whose axes lie in any order, with steps and offsets, some turned round."""
    order = rng.permutation(len(shape))
    steps, offsets = rng.choice([1, 1, 2, -1], len(shape)), rng.choice([0, 0, 1, 3], len(shape))
    ends = [offsets[axis] + shape[axis] * abs(steps[axis]) for axis in order]
    base = rng.standard_normal([end + rng.integers(0, 2) for end in ends]).astype(dtype)
    parts = [slice(offsets[axis], end, abs(steps[axis])) for axis, end in zip(order, ends)]
    turned = np.asarray(base[tuple(parts)])[tuple(slice(None, None, 1 if steps[axis] > 0 else -1) for axis in order)]
    return np.asarray(turned).transpose(np.argsort(order))


def test_random_layouts(rng: np.random.Generator) -> None:
    for _ in range(40):
        full = rng.choice([1, 2, 3, 5, 8, 17], rng.integers(0, 5)).tolist()
        shapes = [full[rng.integers(0, len(full) + 1) :] for _ in range(2)]
        x, y = (
            random_view(rng, [1 if rng.random() < 0.25 else extent for extent in shape], rng.choice(["f2", "f4", "f8"]))
            for shape in shapes
        )
        expected = x.astype(np.float64) + y.astype(np.float64)
        close(elementwise.add(x, y), expected)
        out = random_view(rng, list(expected.shape), elementwise.add(x, y).dtype)
        if min(out.strides, default=0) >= 0:
            close(elementwise.add(x, y, out=out), expected)


def test_in_place(rng: np.random.Generator) -> None:
    x = rng.standard_normal((33, 7))
    before = x.copy()
    elementwise.add(x, x[:1].copy(), out=x)
    close(x, before + before[:1])


def test_device_arrays(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 8)).astype(np.float32)
    device = to_device(x, backend="emulator")
    got = elementwise.add(device[:, ::2], device[0, ::2])
    assert type(got) is type(device)
    close(got.numpy(), x[:, ::2].astype(np.float64) + x[0, ::2])
    assert elementwise.map(lambda x: x > 0.0)(device).dtype == bool


def test_result_types(rng: np.random.Generator) -> None:
    half, single, flags = np.ones(9, np.float16), np.ones(9, np.float32), np.ones(9, bool)
    assert elementwise.add(half, 2.0).dtype == np.float16  # a number decides no type, and is passed as f32 too
    assert elementwise.add(half, single).dtype == np.float32
    assert elementwise.add(half, half.astype(ml_dtypes.bfloat16)).dtype == np.float32
    assert elementwise.add(np.ones(3, np.int32), half[:3]).dtype == np.float16
    assert elementwise.map(lambda x: (x, x > 0.0, x.to(s32)))(half)[2].dtype == np.int32
    assert elementwise.map(lambda p, x: select(p, x, 0.0))(flags, half).dtype == np.float16
    assert elementwise.map(lambda x: x * x)(half, dtype=f32).dtype == np.float32
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        x, y = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (2, 37), kind, endpoint=True)
        np.testing.assert_array_equal(elementwise.add(x, y), x + y)
        np.testing.assert_array_equal(elementwise.mul(x, 3), x * kind(3))


FORMULAS = {
    "relu": reference.relu, "sigmoid": reference.sigmoid, "tanh": reference.tanh, "silu": reference.silu,
    "gelu": reference.gelu, "softplus": reference.softplus,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", FORMULAS)
def test_activations(rng: np.random.Generator, name: str, dtype: Any) -> None:
    x = (rng.standard_normal(131) * 4).astype(dtype)
    x[:6] = [0.0, -0.0, 60.0, -60.0, 1e-4, -1e-4]
    wide = x.astype(np.float64)
    close(getattr(elementwise, name)(x), FORMULAS[name](wide), dtype)
    gradient = rng.standard_normal(131).astype(dtype)
    step = 1e-6
    slope = (FORMULAS[name](wide + step) - FORMULAS[name](wide - step)) / (2 * step)
    smooth = np.abs(wide) > 2 * step
    got = getattr(elementwise, f"{name}_backward")(gradient, x).astype(np.float64)
    assert np.abs(got - gradient.astype(np.float64) * slope)[smooth].max() <= 10 * max(BOUNDS[np.dtype(dtype)], 1e-8)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "softplus", "leaky_relu"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_special_values(name: str, dtype: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max], dtype)
    close(getattr(elementwise, name)(x), FORMULAS[name](x.astype(np.float64)), dtype)


def test_gelu_by_tanh(rng: np.random.Generator) -> None:
    x = rng.standard_normal(100)
    close(elementwise.gelu(x, "tanh"), reference.gelu_tanh(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize(("name", "formula"), [("swiglu", reference.silu), ("geglu", reference.gelu)])
def test_gated(rng: np.random.Generator, name: str, formula: Any, dtype: Any) -> None:
    packed = rng.standard_normal((3, 26)).astype(dtype)
    gate, up = packed[:, :13], packed[:, 13:]
    expected = formula(gate.astype(np.float64)) * up.astype(np.float64)
    close(getattr(elementwise, name)(packed), expected, dtype)
    close(getattr(elementwise, name)(gate, up), expected, dtype)
    gradient = rng.standard_normal((3, 13)).astype(dtype)
    both = getattr(elementwise, f"{name}_backward")(gradient, packed)
    for got, part in zip((both[:, :13], both[:, 13:]), getattr(elementwise, f"{name}_backward")(gradient, gate, up)):
        np.testing.assert_array_equal(got, part)
    close(both[:, 13:], gradient.astype(np.float64) * formula(gate.astype(np.float64)))


def test_choices(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 33)).astype(np.float16)
    np.testing.assert_array_equal(elementwise.where(x < y, x, 0.5), np.where(x < y, x, np.float16(0.5)))
    x[0] = np.nan
    for low, high in ((-0.5, None), (None, 0.25), (-0.5, 0.25), (0.25, -0.5)):
        np.testing.assert_array_equal(elementwise.clamp(x, low, high), np.clip(x, low, high))
    close(elementwise.residual_add(x, y, -2.0), y.astype(np.float64) - 2 * x.astype(np.float64))
    close(elementwise.scale(x, 3), x.astype(np.float64) * 3)
    np.testing.assert_array_equal(elementwise.div(x, y), x / y)


@pytest.mark.parametrize("kind", [f16, bf16, f32, f64, s8, u8, s32, s64, pred], ids=str)
def test_casts(rng: np.random.Generator, kind: Any) -> None:
    small = rng.uniform(0, 100, 77).astype(np.float32)
    small[:2] = 0.25, 0
    for x in (small, np.array([0, 256]), rng.integers(0, 100, 77, np.int64), rng.random(77) > 0.5):
        got = elementwise.cast(x, kind)
        np.testing.assert_array_equal(got, x.astype(got.dtype))


def test_what_a_function_reads_of_python() -> None:
    global FACTOR  # noqa: PLW0603
    scaled = elementwise.map(by_factor)
    assert scaled(np.ones(1))[0] == 2
    FACTOR = 5.0
    assert scaled(np.ones(1))[0] == 5


FACTOR = 2.0


def by_factor(x: Any) -> Any:
    return x * FACTOR


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 33)).astype(np.float16)
    close(elementwise.silu(x), reference.silu(x.astype(np.float64)))
    close(elementwise.add(x[:, 1:], x[0, 1:]), x[:, 1:].astype(np.float64) + x[0, 1:])


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: elementwise.add(X, X.T), "shapes that do not broadcast: `x` [2, 3] and `y` [3, 2]"),
        (lambda: elementwise.add(X, X, out=X[0]), "`out` has shape [3]; the operands broadcast to [2, 3]"),
        (lambda: elementwise.add(X, X, out=X.astype(np.float16)), "`out` has dtype float16; wanted is float32"),
        (lambda: elementwise.add(X, X[0], out=X[::-1]), "`out` has strides (-12, 4), which a kernel cannot store by"),
        (lambda: elementwise.add(1.0, 2.0), "none of the operands is an array"),
        (lambda: elementwise.add(X, "a"), f"`y` is 'a', not an array of {' or '.join(elementwise.mapping.STORED)}"),
        (lambda: elementwise.silu(X.astype(int)),
         "`x` has dtype int64; wanted is float16 or bfloat16 or float32 or float64"),
        (lambda: elementwise.silu_backward(X, X.astype(np.float16)), "`grad_out` has dtype float32; wanted is float16"),
        (lambda: elementwise.gelu(X, "erf"), "approximate is 'erf'; it can be 'none' or 'tanh'"),
        (lambda: elementwise.softplus(X, beta=0), "beta is 0; it can be any other finite number"),
        (lambda: elementwise.clamp(X), "`min` and `max` are None; wanted is one of them"),
        (lambda: elementwise.where(X, X, X), "`condition` has dtype float32; wanted is bool"),
        (lambda: elementwise.swiglu(X), "`gate` has shape [2, 3]; without `up` its last extent is even: gate and up"),
        (lambda: elementwise.cast(X, np.float16),
         "dtype is <class 'numpy.float16'>; it can be a type: `ptxdsl.f16`, or `ptxdsl.pred` for bool"),
        (lambda: elementwise.map(lambda x: 1)(X), "`lambda` returned 1, not a Value"),
        (lambda: elementwise.map(lambda: 1)(X),
         "`lambda` cannot be called with 1 operand: too many positional arguments"),
        (lambda: elementwise.map(5)(X), "`map` is 5, not a function"),
        (lambda: elementwise.map(lambda x: (x, x))(X, out=X), "`out` has 1 arrays; there are 2 results"),
        (lambda: elementwise.map(math.fma)(X, X, X, out=X.reshape(6)[:3]),
         "`out` has shape [3]; the operands broadcast to [2, 3]"),
        (lambda: elementwise.map(lambda *x: x[0])(*[X] * 8), "`lambda` has 9 operands and results; it can have 8"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_numbers_that_do_not_fit() -> None:
    assert elementwise.add(np.arange(3), True).tolist() == [1, 2, 3]
    bools = np.zeros(3, bool)
    for call, message in (
        (lambda: elementwise.add(bools, bools), "`x` has dtype bool; wanted are numbers"),
        (lambda: elementwise.div(np.ones(3), bools), "`y` has dtype bool; wanted are numbers"),
        (lambda: elementwise.mul(np.arange(3, dtype=np.int8), 300), "`y` is 300; of int8 it can be -128 to 127"),
        (lambda: elementwise.sub(np.ones(3), 10**400), "`y` has 1329 bits, more than a float can have"),
        (lambda: elementwise.cast(np.ones(3), e4m3),
         "dtype is e4m3; 8-bit floats are converted in pairs only, which `cast` does not do"),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.message == message
