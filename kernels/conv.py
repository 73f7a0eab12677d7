"""Convolutions of one and two dimensions, and their gradients, as torch has them (they are correlations)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from .. import ScalarType, bf16, cdiv, f16

from . import arguments, reduce
from .autograd import differentiable
from .conv_kernels import MMA_THREADS, THREADS, TILE, Window, conv_kernel, sums_of
from .reduce_launches import add_parts

__all__ = ["conv1d", "conv1d_backward", "conv2d", "conv2d_backward"]

Pair = int | tuple[int, int]
_FEW = 8
"""Groups of fewer rows than this leave a tile mostly empty."""
_ENOUGH_BLOCKS = 256
_LEAST_CHUNK = 1024


class _Geometry(NamedTuple):
    """A convolution; channels and outputs are those of a group."""

    dtype: ScalarType
    window: Window
    padding: tuple[int, int]
    groups: int
    batch: int
    channels: int
    height: int
    width: int
    outputs: int
    out_height: int
    out_width: int

    def launch(self, which: str, x: Any, w: Any, y: Any, extra: Any = None) -> None:
        """Make one of the three products."""
        within, pixels, out_pixels = self.window.elements, self.height * self.width, self.out_height * self.out_width
        rows, columns, depth = {
            "forward": (self.outputs, self.batch * out_pixels, self.channels * within),
            "input": (self.channels, self.batch * pixels, self.outputs * within),
            "weight": (self.outputs, self.channels * within, self.batch * out_pixels),
        }[which]
        if not rows * columns:
            return
        few = min(rows, columns) < _FEW if which == "weight" else rows < _FEW
        way = "mma" if self.dtype in (f16, bf16) else "fma"
        across, down = cdiv(columns, TILE), cdiv(rows, TILE)
        if few:
            way = "block" if which == "weight" else "thread"
            across, down = columns if which == "weight" else cdiv(columns, THREADS), rows
        parts = 1
        if which == "weight" and not few:
            parts = max(1, min(depth // _LEAST_CHUNK, cdiv(_ENOUGH_BLOCKS, across * down * self.groups)))
        chunk = max(cdiv(cdiv(depth, parts), 32), 1) * 32
        parts = max(cdiv(depth, chunk), 1)
        if which == "weight":
            extra = arguments.empty_like(w, (parts, *w.shape), sums_of(self.dtype))
        kernel = conv_kernel(which, way, self.dtype, self.window, which == "forward" and extra is not None)
        threads = MMA_THREADS if way == "mma" else THREADS
        kernel[(across, down, parts * self.groups), threads](
            x, w, y, x if extra is None else extra, *self[3:], *self.padding, chunk
        )
        if which == "weight":
            add_parts(extra, w)


def _pair(name: str, value: Pair, least: int) -> tuple[int, int]:
    """A number for height and width each."""
    pair = value if isinstance(value, tuple) else (value, value)
    if len(pair) != 2:
        raise arguments.wrong(f"{name} is {value!r:.60}; it can be an int, or two of them")
    return arguments.size(name, pair[0], range(least, 1 << 16)), arguments.size(name, pair[1], range(least, 1 << 16))


def _geometry(
    x: Any, w: Any, groups: int, stride: tuple[int, int], padding: tuple[int, int], dilation: tuple[int, int]
) -> _Geometry:
    """What is known of x ``[N, C, H, W]`` and w ``[O, C / groups, KH, KW]``."""
    batch, channels, height, width = (int(extent) for extent in x.shape)
    outputs, own, *size = (int(extent) for extent in w.shape)
    if own * groups != channels or outputs % groups:
        raise arguments.wrong(
            f"`x` has {channels} channels and `w` {outputs} outputs of {own}; of {groups} groups they must be {groups} "
            f"times {own} channels, and the outputs a multiple of {groups}"
        )
    if min(size) < 1:
        raise arguments.wrong(f"`w` has shape {list(w.shape)}; a window has one element at least")
    window = Window((size[0], size[1]), stride, dilation)
    out = [
        (extent + 2 * pad - step * (k - 1) - 1) // by + 1
        for extent, pad, step, k, by in zip((height, width), padding, dilation, size, stride)
    ]
    if min(out) < 1:
        raise arguments.wrong(f"a window of {size} with dilation {list(dilation)} is larger than the padded image")
    found = _Geometry(
        arguments.floating("x", x), window, padding, groups, batch, own, height, width, outputs // groups, *out
    )
    for what, count in (("x", x.shape), ("the result", (batch, outputs, *out))):
        if prod(count) >= 1 << 31:
            raise arguments.wrong(f"{what} has {prod(count)} elements; they must be fewer than 2**31")
    return found


def _images(name: str, array: Any, dims: int, like: Any = None) -> Any:
    """An array of one or two dimensions of space as one of two, the height 1 of one."""
    names = list(arguments.FLOATS) if like is None else [arguments.dtype_name(like)]
    letters = ["O", "C / groups", "KH", "KW"] if name == "w" else ["N", "C", "H", "W"]
    wanted = letters if dims == 2 else [*letters[:2], letters[3][:-1] + "L"]
    array = arguments.dense(array) if hasattr(array, "shape") else array
    shape = arguments.expect(name, array, wanted, names)
    return array if dims == 2 else array.reshape(*shape[:2], 1, shape[2])


def _convolved(
    dims: int, x: Any, w: Any, bias: Any, stride: Pair, padding: Pair, dilation: Pair, groups: int, out: Any
) -> Any:
    images, weights = _images("x", x, dims), _images("w", w, dims, x)
    count = arguments.size("groups", groups, range(1, 1 << 16))
    own = _geometry(images, weights, count, *_window(dims, stride, padding, dilation))
    outputs = own.outputs * own.groups
    if bias is not None:
        arguments.expect("bias", bias, [outputs], [arguments.dtype_name(x)])
    shape = (own.batch, outputs, own.out_height, own.out_width)
    result = shape if dims == 2 else (*shape[:2], own.out_width)
    out = arguments.output(out, x, result, own.dtype, x=x, w=w, bias=bias)
    if prod(shape):
        own.launch("forward", images, weights, out, bias)
    return out


def _window(dims: int, *given: Pair) -> list[tuple[int, int]]:
    """Stride, padding and dilation along height and width; of one dimension the height has none."""
    named = list(zip(("stride", "padding", "dilation"), given, (1, 0, 1)))
    pairs = [_pair(name, value, least) for name, value, least in named]
    return pairs if dims == 2 else [(least, pair[1]) for pair, (_, _, least) in zip(pairs, named)]


def _gradients(
    dims: int, grad_out: Any, x: Any, w: Any, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    needs: frozenset[str],
) -> dict[str, Any]:
    images, weights = _images("x", x, dims), _images("w", w, dims, x)
    own = _geometry(images, weights, groups, *_window(dims, stride, padding, dilation))
    shape = [own.batch, own.outputs * own.groups, *(own[-2:] if dims == 2 else own[-1:])]
    grad = arguments.dense(grad_out) if hasattr(grad_out, "shape") else grad_out
    arguments.expect("grad_out", grad, shape, [arguments.dtype_name(x)])
    found: dict[str, Any] = {}
    if "x" in needs:
        found["x"] = arguments.empty_like(x, tuple(x.shape), own.dtype)
        own.launch("input", found["x"], weights, grad)
    if "w" in needs:
        found["w"] = arguments.empty_like(w, tuple(w.shape), own.dtype)
        own.launch("weight", images, found["w"], grad)
    if "bias" in needs:
        found["bias"] = reduce.sum(grad, axis=(0, *range(2, dims + 2)))
    return found


def conv2d_backward(
    grad_out: Any, x: Any, w: Any, *, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1, groups: int = 1,
    needs: frozenset[str] = frozenset(("x", "w", "bias")),
) -> Mapping[str, Any]:
    """The gradients of :func:`conv2d` for that of its result: by name, those that ``needs`` names.

    Sums are in float32 (float64 of float64), in an order that depends on the shapes alone.

    >>> import numpy as np
    >>> grads = conv2d_backward(np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)))
    >>> grads["x"][0, 0].tolist(), float(grads["w"].max()), grads["bias"]
    ([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]], 4.0, array([4.]))
    """
    return _gradients(2, grad_out, x, w, stride, padding, dilation, groups, needs)


def conv1d_backward(
    grad_out: Any, x: Any, w: Any, *, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    needs: frozenset[str] = frozenset(("x", "w", "bias")),
) -> Mapping[str, Any]:
    """The gradients of :func:`conv1d`, as :func:`conv2d_backward`.

    >>> import numpy as np
    >>> conv1d_backward(np.ones((1, 1, 2)), np.ones((1, 1, 3)), np.ones((1, 1, 2)), needs={"x"})["x"]
    array([[[1., 2., 1.]]])
    """
    return _gradients(1, grad_out, x, w, stride, padding, dilation, groups, needs)


@differentiable("x", "w", "bias", backward=conv2d_backward)
def conv2d(
    x: Any, w: Any, bias: Any = None, *, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1, groups: int = 1,
    out: Any = None,
) -> Any:
    """y[n, o, i, j] = bias[o] + sum over c, r, s of w[o, c, r, s] x[n, c, i stride + r dilation - padding, ...].

    Args:
        x: ``[N, C, H, W]``, floats; C is a multiple of ``groups``.
        w: ``[O, C / groups, KH, KW]`` of x's dtype; output o uses the channels of its group, o // (O / groups).
        bias: ``[O]`` of x's dtype, or None.
        stride, padding, dilation: An int, or one each for height and width; the padding is zeros on all sides.
        groups: C groups with O a multiple of C is a depthwise convolution.
        out: ``[N, O, OH, OW]`` of x's dtype; a new array of x's kind if None.

    float16 and bfloat16 are multiplied by tensor cores and added in float32; float64 in float64.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or number that does not fit. Nothing ran.

    >>> import numpy as np
    >>> x, w = np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2))
    >>> conv2d(x, w, np.array([100.0]))[0, 0]
    array([[108., 112.],
           [120., 124.]])
    """
    return _convolved(2, x, w, bias, stride, padding, dilation, groups, out)


@differentiable("x", "w", "bias", backward=conv1d_backward)
def conv1d(
    x: Any, w: Any, bias: Any = None, *, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    out: Any = None,
) -> Any:
    """y[n, o, i] = bias[o] + sum over c, r of w[o, c, r] x[n, c, i stride + r dilation - padding].

    Args:
        x: ``[N, C, L]``.
        w: ``[O, C / groups, K]``.
        bias, stride, padding, dilation, groups, out: As of :func:`conv2d`, of one dimension.

    >>> import numpy as np
    >>> conv1d(np.array([[[1.0, 2.0, 4.0]]]), np.array([[[1.0, -1.0]]]), padding=1)
    array([[[-1., -1., -2.,  4.]]])
    """
    return _convolved(1, x, w, bias, stride, padding, dilation, groups, out)
