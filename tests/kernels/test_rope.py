"""Rotary embeddings against float64: both kinds, every order of axes, parts of heads, positions far out."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, to_device
from ptxdsl.kernels import reference, rope

Array = npt.NDArray[Any]
BOUNDS = {np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3, np.dtype(np.float32): 1e-6,
          np.dtype(np.float64): 1e-13}
FUNCTIONS = {False: rope.rope, True: rope.rope_neox}
kinds = pytest.mark.parametrize("neox", [False, True], ids=["rope", "neox"])


def close(got: Array, wanted: Array) -> None:
    assert got.shape == wanted.shape
    assert np.abs(got.astype(np.float64) - wanted).max(initial=0) <= BOUNDS[got.dtype] * np.abs(wanted).max(initial=1)


@kinds
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("dim", "turned"), [(2, None), (10, 10), (64, None), (20, 6), (7, 4), (5, 0), (80, 64)])
def test_both_kinds(rng: np.random.Generator, neox: bool, dtype: Any, dim: int, turned: int | None) -> None:
    q, k = rng.standard_normal((5, 3, dim)).astype(dtype), rng.standard_normal((5, 1, dim)).astype(dtype)
    out = np.full_like(q, np.nan), np.full_like(k, np.nan)
    found = FUNCTIONS[neox](q, k, rotary_dim=turned, out=out)
    for got, given, source in zip(found, out, (q, k)):
        assert got is given
        close(got, reference.rope(source, np.arange(5), rotary_dim=turned, neox=neox))
    before = q.astype(np.float64)
    assert FUNCTIONS[neox](q, rotary_dim=turned, out=q) is q
    np.testing.assert_array_equal(q, found[0])
    close(FUNCTIONS[neox](q, rotary_dim=turned, inverse=True), before)


@kinds
def test_positions_and_batches(rng: np.random.Generator, neox: bool) -> None:
    q = rng.standard_normal((2, 4, 3, 8))
    for positions in (np.array([5, 0, 100_000, 3]), rng.integers(-9, 10**7, (2, 4)), np.arange(4, dtype=np.int32)):
        wanted = reference.rope(q, np.broadcast_to(positions, (2, 4)), 500.0, neox=neox)
        got = FUNCTIONS[neox](q, positions=positions, theta=500.0)
        assert np.abs(got - wanted).max() <= 1e-8  # float64 has an angle of 10^7 to 2^-29
        swapped = q.swapaxes(1, 2)
        heads = FUNCTIONS[neox](swapped, positions=positions, theta=500.0, heads_first=True)
        np.testing.assert_array_equal(heads, got.swapaxes(1, 2))


def test_far_positions_in_float32(rng: np.random.Generator) -> None:
    q, positions = rng.standard_normal((4, 2, 64)).astype(np.float32), np.array([10**5, 131_071, 10**6, 2**24 - 1])
    close(rope.rope_neox(q, positions=positions), reference.rope(q, positions, neox=True))


def test_parts_and_device_arrays(rng: np.random.Generator) -> None:
    packed = rng.standard_normal((6, 5, 16)).astype(np.float32)
    q, k = packed[:, :3], packed[:, 3:4]
    found = rope.rope(q, k)
    for got, source in zip(found, (q, k)):
        close(got, reference.rope(source, np.arange(6)))
    close(rope.rope(packed[::-1, :, ::2]), reference.rope(packed[::-1, :, ::2], np.arange(6)))
    device = rope.rope(to_device(packed[None], backend="emulator"), heads_first=False)
    close(device.numpy()[0], reference.rope(packed, np.arange(6)))
    first = rope.rope(to_device(packed.swapaxes(0, 1).copy(), backend="emulator"), heads_first=True)
    close(first.numpy(), reference.rope(packed, np.arange(6)).swapaxes(0, 1))


def test_nothing() -> None:
    assert rope.rope(np.zeros((0, 2, 4))).shape == (0, 2, 4)
    assert rope.rope_neox(np.zeros((3, 0, 4)), np.zeros((3, 0, 4)))[1].shape == (3, 0, 4)


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    q, k = rng.standard_normal((5, 3, 10)), rng.standard_normal((5, 1, 10))
    rope.rope(q, k, rotary_dim=6, out=(q, k))
    rope.rope_neox(q, k, rotary_dim=6)


Q, P = np.zeros((2, 3, 4), np.float32), np.zeros(2, np.int64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope.rope(Q[0]), "`q` has shape [3, 4]; wanted is [S, H, D] or [B, S, H, D]"),
        (lambda: rope.rope(Q[0], heads_first=True), "`q` has shape [3, 4]; wanted is [H, S, D] or [B, H, S, D]"),
        (lambda: rope.rope(P), "`q` has dtype int64; wanted is float16 or bfloat16 or float32 or float64"),
        (lambda: rope.rope(Q, Q.astype("f2")), "`k` has dtype float16; wanted is float32"),
        (lambda: rope.rope(Q, Q[:1]), "`k` has shape [1, 3, 4], and q [2, 3, 4]; only the heads may differ"),
        (lambda: rope.rope(Q, rotary_dim=3), "rotary_dim is 3; it can be an even number up to D, 4"),
        (lambda: rope.rope(Q[:, :, :3]), "rotary_dim is 3; it can be an even number up to D, 3"),
        (lambda: rope.rope(Q, rotary_dim=6), "rotary_dim is 6; it can be an even number up to D, 4"),
        (lambda: rope.rope(Q, positions=P[:1]), "`positions` has shape [1]; wanted is [2] or [1, 2]"),
        (lambda: rope.rope(Q, positions=Q), "`positions` has dtype float32; wanted is int32 or int64"),
        (lambda: rope.rope(Q, theta=0), "theta is 0; it can be any number above 0"),
        (lambda: rope.rope(Q, Q.copy(), out=Q), "`out` is one array; wanted are two, for q and k"),
        (lambda: rope.rope(Q, Q.copy(), out=(Q.copy(), Q)), "`out[1]` overlaps `q`"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
