"""What is told of memory that a GPU left otherwise."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.gpu_check.bare.comparison import compare

Rng = np.random.Generator


def test_the_same_bytes(rng: Rng) -> None:
    data = rng.bytes(77)
    assert compare(data, data, "float32") is None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 64])
def test_words_that_differ(rng: Rng, size: int) -> None:
    data = rng.bytes(size)
    at = int(rng.integers(size))
    other = bytearray(data)
    other[at] ^= 1 << int(rng.integers(8))
    found = compare(data, bytes(other), "uint32")
    assert found is not None
    assert (found.offset, found.differing, found.total) == (at // 4 * 4, 1, -(-size // 4))
    assert not found.close


def test_what_is_unspecified_is_not_compared() -> None:
    assert compare(b"abcdefgh", b"abXdefgh", "", unspecified=b"\0\0\1\0\0\0\0\0") is None
    found = compare(b"abcdefgh", b"abXdeYgh", "", unspecified=b"\0\0\1\0\0\0\0\0")
    assert found is not None
    assert (found.offset, found.got) == (4, b"eYgh")


def test_the_message() -> None:
    wanted, got = np.array([1, 2, 3], np.float32), np.array([1, 2, 3], np.float32)
    got.view(np.uint32)[1:] += np.uint32([5, 2])
    assert str(compare(wanted.tobytes(), got.tobytes(), "float32")) == (
        "2 of 3 elements of 4 bytes differ, first at byte 4: emulator 00000040, GPU 05000040 "
        "(2.0 and 2.0000011920928955, 5 units in the last place at most)"
    )


@pytest.mark.parametrize(("dtype", "kind"), [
    ("float16", np.float16), ("float32", np.float32), ("float64", np.float64), ("bfloat16", ml_dtypes.bfloat16),
])
def test_zeros_and_nans(dtype: str, kind: type) -> None:
    zeros, minus = np.array([1, 0.0], kind).tobytes(), np.array([1, -0.0], kind).tobytes()
    found = compare(zeros, minus, dtype)
    assert found is not None
    assert found.remark == "zeros of the other sign only"
    one = np.array([np.nan, 2], kind)
    other = bytearray(one.tobytes())
    other[0] ^= 1
    found = compare(one.tobytes(), bytes(other), dtype)
    assert found is not None
    assert found.remark == "NaNs of other bits only"


@pytest.mark.parametrize(("dtype", "kind", "off"), [
    ("float16", np.float16, 2**-9), ("float32", np.float32, 2**-20), ("float64", np.float64, 2**-45),
    ("bfloat16", ml_dtypes.bfloat16, 2**-6),
])
def test_results_that_are_no_bits(rng: Rng, dtype: str, kind: type, off: float) -> None:
    """Near ones are close, where such an instruction went into them; far ones, infinities and NaNs are not."""
    wanted = (1 + rng.random(50)).astype(kind)
    near = (wanted.astype(np.float64) * (1 + off)).astype(kind)
    assert wanted.tobytes() != near.tobytes()
    assert [compare(wanted.tobytes(), near.tobytes(), dtype, loose=loose).close for loose in (False, True)] == [  # type: ignore[union-attr]
        False, True,
    ]
    for wrong in (3.0, np.inf, np.nan):
        near[17] = wrong
        found = compare(wanted.tobytes(), near.tobytes(), dtype, loose=True)
        assert found is not None and not found.close


def test_results_between_bounds() -> None:
    wanted, low, high = (np.array(values, np.float32).tobytes() for values in ([1, 2, 3], [0.5, 2, 3], [1.5, 2, 3.5]))

    def found(*values: float) -> int:
        made = compare(wanted, np.array(values, np.float32).tobytes(), "float32", low=low, high=high)
        return made.differing if made else 0

    assert found(1.5, 2, 3.25) == 0
    assert found(1.75, 2, 2.9) == 2
    assert found(1, np.nan, 3) == 1
    nan = np.array([np.nan], np.float32)
    other = nan.copy()
    other.view(np.uint32)[0] ^= 1
    assert compare(nan.tobytes(), other.tobytes(), "float32", low=nan.tobytes(), high=nan.tobytes()) is None
