"""What all functions of the library ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, dtype_of, pred, to_device
from ptxdsl.kernels import arguments

X = np.zeros((4, 6), np.float32)


class Pointer:
    """An array of a library that says where it is in the way of `__cuda_array_interface__`."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.shape, self.dtype, self._strides = array.shape, array.dtype, array.strides
        self._address = array.ctypes.data

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found = {"shape": self.shape, "typestr": self.dtype.str, "data": (self._address, False), "version": 3}
        return {**found, "strides": self._strides}


@pytest.mark.parametrize("name", arguments.DTYPES)
def test_dtypes(name: str) -> None:
    kind = arguments.DTYPES[name]
    dtype = np.dtype(bool) if kind is pred else dtype_of(kind)
    assert arguments.dtype_name(np.zeros(1, dtype)) == name
    for like in (X, to_device(X, backend="emulator")):
        made = arguments.empty_like(like, (2, 0, 3), kind)
        assert type(made) is type(like) and made.shape == (2, 0, 3) and made.dtype == dtype
        assert arguments.scalar_type("made", made) is kind
        seen = arguments.bytes_of(made)
        assert arguments.dtype_name(seen) == ("uint8" if name == "bool" else name)


@pytest.mark.parametrize("wrap", [lambda x: x, Pointer, lambda x: to_device(X, backend="emulator")])
def test_strides(wrap: Callable[[Any], Any]) -> None:
    assert arguments.strides(wrap(X)) == (6, 1)


@pytest.mark.parametrize("part", [X.T, X[::-1], X[:, ::2], X[1:3, 1:], X[:0, ::2], X[:1, ::7], X[2, 3]])
def test_dense_of_parts(part: Any, rng: np.random.Generator) -> None:
    for array in (part, Pointer(part)) if isinstance(part, np.ndarray) else ():
        assert arguments.strides(array) == tuple(step // 4 for step in part.strides)
    assert arguments.dense(np.asarray(part)).flags.c_contiguous
    device = to_device(rng.standard_normal((4, 6)), backend="emulator")
    seen = device[1:, ::2]
    copy = arguments.dense(seen)
    assert arguments.strides(copy) == (3, 1) and (copy.numpy() == seen.numpy()).all()
    assert arguments.dense(device) is device


@pytest.mark.parametrize(
    ("out", "in_place", "message"),
    [
        (X, (), "`out` overlaps `x`"),
        (X[::-1], ("x",), "`out` overlaps `x`"),
        (X[:, 1:], ("x",), "`out` overlaps `x`"),
        (X[3], (), "`out` overlaps `x`"),
        (X, ("x",), None),
        (X[:0], (), None),
        (X.copy()[::-1], (), None),
    ],
)
def test_overlap(out: Any, in_place: tuple[str, ...], message: str | None) -> None:
    if message is None:
        arguments.expect_output(out, in_place=in_place, x=X, bias=None)
        return
    with pytest.raises(LaunchError) as caught:
        arguments.expect_output(out, in_place=in_place, x=X, bias=None)
    assert caught.value.message == message


def test_output_of_another_name() -> None:
    made = arguments.output(None, X, (3,), pred)
    assert made.shape == (3,) and made.dtype == bool
    taken = arguments.output(X, X, (4, 6), arguments.FLOATS["float32"], in_place=("x",), x=X)
    assert taken is X
    with pytest.raises(LaunchError) as caught:
        arguments.output(X, X, (4, 5), arguments.FLOATS["float16"], name="dx")
    assert caught.value.message == "`dx` has shape [4, 6] and dtype float32; wanted is [4, 5] of float16"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: arguments.axis("axis", 2, 2), "axis is 2; it can be -2 to 1"),
        (lambda: arguments.axis("axis", True, 2), "axis is True; it can be -2 to 1"),
        (lambda: arguments.axis("axis", 0, 0), "axis is 0; the array has no dimensions"),
        (lambda: arguments.axes("axis", (0, -2), 2), "axis is (0, -2), which names an axis twice"),
        (lambda: arguments.broadcast(x=X, y=X.T), "shapes that do not broadcast: `x` [4, 6] and `y` [6, 4]"),
        (lambda: arguments.number("eps", -1.0, 0), "eps is -1.0; it can be 0 or more"),
        (lambda: arguments.number("p", 1.5, 0, 1), "p is 1.5; it can be 0 to 1"),
        (lambda: arguments.number("eps", float("nan"), 0), "eps is nan; it can be 0 or more"),
        (lambda: arguments.number("scale", float("inf")), "scale is inf; it can be any finite number"),
        (lambda: arguments.flag("causal", 1), "causal is 1; it can be True or False"),
        (lambda: arguments.one_of("mode", "sun", ("sum", "mean")), "mode is 'sun'; it can be 'sum' or 'mean'"),
        (lambda: arguments.scalar_type("x", X, ["int8", "bool"]), "`x` has dtype float32; wanted is int8 or bool"),
        (lambda: arguments.expect_array("x", [1], ["int8"]), "`x` is [1], not an array of int8"),
        (lambda: arguments.expect_array("x", np.int8(1), ["int8"]), f"`x` is {np.int8(1)!r}, not an array of int8"),
        (lambda: arguments.expect("x", X[0, 0], [], ["float32"]), f"`x` is {X[0, 0]!r}, not an array [] of float32"),
        (
            lambda: arguments.expect_array("x", X.astype(ml_dtypes.float8_e4m3), ["float8_e4m3fn"]),
            "`x` has dtype float8_e4m3; wanted is float8_e4m3fn",
        ),
    ],
)
def test_what_is_wrong(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        ask()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
