"""``matmul`` by the instructions of each generation: forced ones against float64, the GPU's choice, what cannot be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, f32, to_device
from ptxdsl.kernels import linalg, matrices, reference
from ptxdsl.kernels.linalg import generations

Array = npt.NDArray[Any]
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
UNITS = {np.dtype(np.float16): 2**-11, np.dtype(BF16): 2**-8, np.dtype(np.float32): 2**-24}


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def close(got: Array, a: Array, b: Array) -> None:
    """``got`` is a @ b within the rounding of its dtype, and of sums in float32."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    want, around = a @ b, np.abs(a) @ np.abs(b)
    allowed = 1.2 * (UNITS[got.dtype] * np.abs(want) + (a.shape[-1] // 16 + 4) * 2**-22 * around) + 2**-24
    assert got.shape == want.shape and (np.abs(got.astype(np.float64) - want) <= allowed).all()


@pytest.mark.parametrize(("word", "dtype", "shape", "swap"), [
    ("wgmma", np.float16, (131, 264, 24), (False, True)), ("wgmma", BF16, (70, 33, 129), (True, False)),
    ("tcgen05", np.float16, (131, 264, 24), (True, True)),
])
def test_ragged_shapes_and_ways(
    rng: np.random.Generator, word: str, dtype: Any, shape: tuple[int, int, int], swap: tuple[bool, bool]
) -> None:
    m, n, k = shape
    a = random(rng, dtype, *((k, m) if swap[0] else (m, k)))
    b = random(rng, dtype, *((n, k) if swap[1] else (k, n)))
    out = np.full((m, n), np.nan, dtype)
    assert linalg.matmul(a, b, out=out, transpose_a=swap[0], transpose_b=swap[1], tensor_cores=word) is out
    close(out, a.T if swap[0] else a, b.T if swap[1] else b)


def test_eight_bits_of_device_arrays(rng: np.random.Generator) -> None:
    """By wgmma b must lie along k, and a kernel turns it."""
    a, b = random(rng, E4M3, 40, 130), random(rng, E5M2, 130, 37)
    arrays = [to_device(x, backend="emulator") for x in (a, b)]
    stored = matrices.store(arrays[1], (True,))
    assert stored.turned and matrices.fits(stored.array) and not matrices.fits(arrays[1])
    assert (stored.array.numpy() == b.T).all()
    got = linalg.matmul(*arrays, tensor_cores="wgmma").numpy()
    assert got.dtype == np.float32
    close(got, a, b)


@pytest.mark.slow
def test_eight_bits_by_tcgen05(rng: np.random.Generator) -> None:
    a, b = random(rng, E5M2, 40, 130), random(rng, E5M2, 130, 24)
    close(linalg.matmul(a, b, tensor_cores="tcgen05"), a, b)


def test_any_strides_and_shapes_of_numpy(rng: np.random.Generator) -> None:
    """What a kernel cannot read where it is, is copied; a batch with one b is one product."""
    a, b = random(rng, np.float16, 20, 99), random(rng, np.float16, 66, 40)
    wide = np.broadcast_to(a[0, :66], (20, 66))
    for left, right in (
        (a[:, ::3], b[::2]), (a[::-1, :33], b[:33, ::-1]), (a[:, 1:34], b[33:, :20]), (wide, b),
        (a[:, :96].reshape(2, 10, 96)[..., :66], b), (a[0, :66], b), (a[:, :66], b[:, 0]),
        (a[None, :2, None, :66], b[None, None]), (a[:, :0], b[:0]), (a[:0, :66], b),
        (a.reshape(2, 10, 99)[..., :0], b[:0]),
    ):
        got = linalg.matmul(left, right, dtype=f32, tensor_cores="wgmma")
        want = left.astype(np.float64) @ right.astype(np.float64)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize(("word", "activation", "kind"), [
    ("wgmma", "relu", BF16), ("tcgen05", "relu", np.float16), ("wgmma", "gelu_tanh", np.float32),
])
def test_epilogues(rng: np.random.Generator, word: str, activation: str, kind: Any) -> None:
    a, b, bias = random(rng, np.float16, 2, 33, 20), random(rng, np.float16, 20, 17), random(rng, kind, 17)
    a[1, 3, 5] = np.nan
    wide = -0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + bias.astype(np.float64)
    want = getattr(reference, activation)(wide)
    got = linalg.matmul(a, b, bias=bias, activation=activation, alpha=-0.5, dtype=f32, tensor_cores=word)
    assert np.isnan(got).sum() == 17 and np.isnan(got[1, 3]).all()
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-5)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the generations' kernels that a test would launch, on a GPU of two multiprocessors."""
    words: list[str] = []
    monkeypatch.setattr(generations, "multiply", lambda word, *_: words.append(word))
    monkeypatch.setattr(generations, "processors", lambda: 2)
    return words


@pytest.mark.parametrize(
    ("number", "word"), [(90, "wgmma"), (100, "tcgen05"), (103, "tcgen05"), (80, None), (120, None), (0, None)]
)
def test_the_gpu_decides(
    rng: np.random.Generator, chosen: list[str], monkeypatch: pytest.MonkeyPatch, number: int, word: str | None
) -> None:
    monkeypatch.setattr(generations, "capability", lambda: number)
    a, b = random(rng, np.float16, 2, 65, 40), random(rng, np.float16, 40, 40)
    for dtype in (np.float16, BF16):
        linalg.matmul(a.astype(dtype), b.astype(dtype))
    close(linalg.matmul(a[0, :64], b), a[0, :64], b)  # one tile of 64 x 64
    close(linalg.matmul(a, b, tensor_cores="mma"), a, b)
    assert chosen == ([word, word] if word else [])
    linalg.matmul(a.astype(E4M3), b.astype(E5M2))
    assert chosen[2:] == (["tcgen05"] if word == "tcgen05" else [])


@pytest.mark.parametrize(("number", "has"), [(90, True), (100, True), (80, False), (120, False)])
def test_few_rows_are_streamed(
    rng: np.random.Generator, chosen: list[str], monkeypatch: pytest.MonkeyPatch, number: int, has: bool
) -> None:
    """Where there are steps for all multiprocessors; of 8-bit floats on Hopper, too, whose mma.sync adds in float32."""
    monkeypatch.setattr(generations, "capability", lambda: number)
    a, b = random(rng, np.float16, 64, 200), random(rng, np.float16, 200, 24)
    linalg.matmul(a, b)
    linalg.matmul(a[:16].astype(E4M3), b.astype(E4M3))
    assert chosen == (["stream", "stream"] if has else [])
    close(linalg.matmul(a[:, :120], b[:120]), a[:, :120], b[:120])  # two steps
    linalg.matmul(np.ones((130, 200), np.float16), b)
    assert chosen[2:] == ([{90: "wgmma", 100: "tcgen05"}[number]] if has else [])


def test_what_the_others_do(rng: np.random.Generator, chosen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the designs for Hopper and Blackwell cannot do is done there by mma.sync and multiply-adds."""
    monkeypatch.setattr(generations, "capability", lambda: 90)
    a, b = random(rng, np.float16, 2, 65, 40), random(rng, np.float16, 40, 40)
    residual, bias, wide = random(rng, np.float16, 2, 65, 40), random(rng, "f8", 40), a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(linalg.matmul(a, b, residual=residual), wide + residual, rtol=2e-3, atol=2e-2)
    np.testing.assert_allclose(linalg.matmul(a, b, bias=bias), wide + bias, rtol=2e-3, atol=2e-2)
    close(linalg.matmul(a, np.stack([b, b])), a, np.stack([b, b]))
    close(linalg.matmul(a[:, :-1], b), a[:, :-1], b)
    np.testing.assert_allclose(linalg.matmul(a.astype("f4"), b.astype("f4")), wide, atol=1e-4)
    assert not chosen


A, B = np.ones((2, 3), np.float16), np.ones((3, 4), np.float16)
NAMES = "float16 or bfloat16 or float8_e4m3fn or float8_e5m2"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.matmul(A, B, tensor_cores="wmma"),
         "tensor_cores is 'wmma'; it can be None or 'mma' or 'wgmma' or 'tcgen05' or 'stream'"),
        (lambda: linalg.matmul(A.astype("f4"), B.astype("f4"), tensor_cores="mma"),
         "tensor_cores is 'mma', which takes float32 rounded to tf32 only"),
        (lambda: linalg.matmul(A.astype("f4"), B.astype("f4"), tf32=True, tensor_cores="wgmma"),
         f"tensor_cores is 'wgmma', which takes {NAMES}, not float32"),
        (lambda: linalg.matmul(A.astype("i1"), B.astype("i1"), tensor_cores="tcgen05"),
         f"tensor_cores is 'tcgen05', which takes {NAMES}, not int8"),
        (lambda: linalg.matmul(A, B, residual=np.ones((2, 4), "f2"), tensor_cores="wgmma"),
         "tensor_cores is 'wgmma', which adds no residual"),
        (lambda: linalg.matmul(A, B, bias=np.ones(4), tensor_cores="tcgen05"),
         "tensor_cores is 'tcgen05', which takes a bias of float16 or bfloat16 or float32, not float64"),
        (lambda: linalg.matmul(np.ones((65, 3), "f2"), B, tensor_cores="stream"),
         "tensor_cores is 'stream', which takes 64 rows at most, not 65"),
        (lambda: linalg.matmul(np.ones((17, 3), E4M3), np.ones((3, 4), E4M3), tensor_cores="stream"),
         "tensor_cores is 'stream', which takes 16 rows at most, not 17"),
        (lambda: linalg.matmul(A, np.stack([B, B]), tensor_cores="wgmma"),
         "tensor_cores is 'wgmma', which multiplies two matrices, or a batch of dense rows by one matrix"),
        (lambda: linalg.matmul(np.ones((2, 5, 3), "f2")[:, ::2], B, tensor_cores="wgmma"),
         "tensor_cores is 'wgmma', which multiplies two matrices, or a batch of dense rows by one matrix"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
