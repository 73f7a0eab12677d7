"""BatchNorm: each channel shifted and scaled by statistics over the batch, or by running ones, and its backward pass.

A block, or a cluster where channels are few, has a channel. Its elements are loaded once for the mean, once for the
differences from it, and once to be normalised; the second and third time mostly from the L2 cache. Sums are in float32,
in float64 for float64.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ... import Kernel, Ptr, ScalarType, cdiv, loop, ptx, ptx_kernel, reg, u32, u64, when
from .. import arguments
from ..autograd import differentiable
from ..blocks import Blocks, options, spread
from ..storage import BYTES, load, store, working
from .scaled import inverse_root

__all__ = ["batch_norm", "batch_norm_backward"]

THREADS = 256


class _Channel:
    """The elements of this block's channel in arrays ``[N, C, L]``."""

    def __init__(
        self, acc: ScalarType, width: int, blocks: int, batch: Any, channels: Any, length: Any
    ) -> None:
        self.acc, self.width, self.length, self.channels = acc, width, length, channels
        self.count = batch * length
        self.blocks = Blocks(blocks, THREADS)
        self.number, self.thread = self.blocks.piece, self.blocks.thread

    def visit(self, body: Callable[[Any], None]) -> None:
        """Call ``body`` with a u64 index of each vector that this thread has."""
        first = self.thread * self.width if self.width > 1 else self.thread
        with loop(first, self.count, self.blocks.count * THREADS * self.width) as element:
            item = element // self.length
            row = item * self.channels + self.number
            body(ptx.mad.wide.u32(row, self.length, (element - item * self.length).to(u64)))

    def load(self, pointer: Any, at: Any) -> list[Any]:
        """A vector, in the type of the sums."""
        return [value.to(self.acc) for value in load(pointer, at, self.width)]

    def sums(self, terms: Callable[[Any], Sequence[list[Any]]], count: int = 1) -> list[Any]:
        """The sums over the channel of ``count`` terms, each with a number for each element of a vector."""
        totals = [reg(self.acc, 0.0) for _ in range(count)]

        def body(at: Any) -> None:
            for total, term in zip(totals, terms(at)):
                for value in term:
                    total.set(total + value)

        self.visit(body)
        return self.blocks.reduce(operator.add, [total.copy() for total in totals])

    def mean(self, total: Any) -> Any:
        """A sum divided by the number of elements."""
        return ptx[f"div.rn.{self.acc}"](total, self.count.to(self.acc))

    def statistics(self, x: Any) -> tuple[Any, Any]:
        """Mean and variance."""
        mean = self.mean(self.sums(lambda at: [self.load(x, at)])[0])

        def squares(at: Any) -> list[list[Any]]:
            differences = [value - mean for value in self.load(x, at)]
            return [[each * each for each in differences]]

        return mean, self.mean(self.sums(squares)[0])


def _by(blocks: int) -> str:
    return f"_by_{blocks}" if blocks > 1 else ""


@cache
def training_kernel(dtype: ScalarType, kinds: tuple[ScalarType | None, ...], width: int, blocks: int = 1) -> Kernel:
    """BatchNorm by the statistics of the batch; ``kinds`` are those of weight, bias and the running statistics.

    ``blocks`` share a channel.
    """
    acc = working(dtype)
    weight_type, bias_type, running_type = kinds

    name = f"batch_norm_{dtype}_{weight_type}_{bias_type}_{running_type}_x{width}{_by(blocks)}"

    @ptx_kernel(name=name, reqntid=THREADS, **options(blocks))
    def kernel(
        x: Ptr[dtype], weight: Ptr[weight_type or dtype], bias: Ptr[bias_type or dtype],
        running_mean: Ptr[running_type or dtype], running_var: Ptr[running_type or dtype], out: Ptr[dtype], batch: u32,
        channels: u32, length: u32, eps: acc, momentum: acc,
    ) -> None:
        channel = _Channel(acc, width, blocks, batch, channels, length)
        number = channel.number
        mean, variance = channel.statistics(x)
        inverse = inverse_root(variance + eps)
        if weight_type is not None:
            inverse = inverse * weight[number].to(acc)
        shift = bias[number].to(acc) if bias_type is not None else None
        if running_type is not None:
            with when(channel.thread == 0):
                count = channel.count.to(acc)
                unbiased = variance * ptx[f"div.rn.{acc}"](count, count - 1.0)
                for pointer, value in ((running_mean, mean), (running_var, unbiased)):
                    before = pointer[number].to(acc)
                    pointer[number] = ptx[f"fma.rn.{acc}"](momentum, value - before, before).to(running_type)

        def write(at: Any) -> None:
            values = [(value - mean) * inverse for value in channel.load(x, at)]
            store(out, at, values if shift is None else [value + shift for value in values])

        channel.visit(write)

    return kernel


@cache
def inference_kernel(dtype: ScalarType, kinds: tuple[ScalarType | None, ...], width: int) -> Kernel:
    """BatchNorm by running statistics."""
    acc = working(dtype)
    weight_type, bias_type, running_type = kinds

    @ptx_kernel(name=f"batch_norm_inference_{dtype}_{weight_type}_{bias_type}_{running_type}_x{width}", reqntid=THREADS)
    def kernel(
        x: Ptr[dtype], weight: Ptr[weight_type or dtype], bias: Ptr[bias_type or dtype],
        running_mean: Ptr[running_type or dtype], running_var: Ptr[running_type or dtype], out: Ptr[dtype], batch: u32,
        channels: u32, length: u32, eps: acc,
    ) -> None:
        channel = _Channel(acc, width, 1, batch, channels, length)
        number = channel.number
        mean, inverse = running_mean[number].to(acc), inverse_root(running_var[number].to(acc) + eps)
        if weight_type is not None:
            inverse = inverse * weight[number].to(acc)
        shift = bias[number].to(acc) if bias_type is not None else None

        def write(at: Any) -> None:
            values = [(value - mean) * inverse for value in channel.load(x, at)]
            store(out, at, values if shift is None else [value + shift for value in values])

        channel.visit(write)

    return kernel


@cache
def backward_kernel(
    dtype: ScalarType, kinds: tuple[ScalarType | None, ...], training: bool, width: int, blocks: int = 1
) -> Kernel:
    """The gradients of x, weight and bias; ``blocks`` share a channel."""
    acc = working(dtype)
    weight_type, bias_type, running_type = kinds
    name = f"batch_norm_backward_{dtype}_{weight_type}_{bias_type}_{running_type}_{training}_x{width}{_by(blocks)}"

    @ptx_kernel(name=name, reqntid=THREADS, **options(blocks))
    def kernel(
        grad: Ptr[dtype], x: Ptr[dtype], weight: Ptr[weight_type or dtype], running_mean: Ptr[running_type or dtype],
        running_var: Ptr[running_type or dtype], dx: Ptr[dtype], dweight: Ptr[weight_type or dtype],
        dbias: Ptr[bias_type or dtype], batch: u32, channels: u32, length: u32, eps: acc,
    ) -> None:
        channel = _Channel(acc, width, blocks, batch, channels, length)
        number = channel.number
        if training:
            mean, variance = channel.statistics(x)
        else:
            mean, variance = running_mean[number].to(acc), running_var[number].to(acc)
        inverse = inverse_root(variance + eps)

        def terms(at: Any) -> tuple[list[Any], list[Any]]:
            """The gradients, and those times the normalised x."""
            gradients = channel.load(grad, at)
            return gradients, [g * ((v - mean) * inverse) for g, v in zip(gradients, channel.load(x, at))]

        total, product = channel.sums(terms, 2)
        with when(channel.thread == 0):
            if weight_type is not None:
                dweight[number] = product.to(weight_type)
            if bias_type is not None:
                dbias[number] = total.to(bias_type)
        factor = inverse if weight_type is None else inverse * weight[number].to(acc)
        shift, slope = channel.mean(total), channel.mean(product)

        def write(at: Any) -> None:
            gradients = channel.load(grad, at)
            if training:
                normalised = [(value - mean) * inverse for value in channel.load(x, at)]
                gradients = [g - shift - y * slope for g, y in zip(gradients, normalised)]
            store(dx, at, [g * factor for g in gradients])

        channel.visit(write)

    return kernel


class _Call:
    """The checked arguments that the forward and the backward pass share."""

    def __init__(
        self, x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, eps: float
    ) -> None:
        self.shape = arguments.expect_array("x", x, arguments.FLOATS)
        if len(self.shape) < 2:
            raise arguments.wrong(f"`x` has shape {list(self.shape)}; wanted is [N, C, ...]")
        self.dtype = arguments.floating("x", x)
        self.training = arguments.flag("training", training)
        self.eps = arguments.number("eps", eps, 0)
        batch, channels = self.shape[:2]
        length = 1
        for extent in self.shape[2:]:
            length *= extent
        self.sizes = batch, channels, length
        if batch * length >= 2**31 or batch * channels >= 2**31:
            raise arguments.wrong(f"`x` has shape {list(self.shape)}; a channel can have {2**31 - 1} elements at most")
        given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
        for name, array in given.items():
            if array is not None:
                arguments.expect(name, array, [channels], list(arguments.FLOATS))
        if (running_mean is None) != (running_var is None):
            raise arguments.wrong("one of `running_mean` and `running_var` is None; wanted are both, or neither")
        if running_mean is None and not training:
            raise arguments.wrong("`running_mean` is None, which takes `training=True`")
        if running_mean is not None and arguments.dtype_name(running_mean) != arguments.dtype_name(running_var):
            raise arguments.wrong("`running_mean` and `running_var` have different dtypes")
        if training and batch * length == 1 and channels:
            raise arguments.wrong(f"`x` has shape {list(self.shape)}: one value a channel has no variance")
        self.arrays = given
        self.source = arguments.dense(x)
        self.kinds = tuple(
            None if array is None else arguments.floating("it", array) for array in (weight, bias, running_mean)
        )

    def width(self, *arrays: Any) -> int:
        """Elements that a thread loads at once."""
        width = BYTES // self.dtype.bytes
        return width if self.sizes[2] % width == 0 and arguments.is_aligned(BYTES, *arrays) else 1

    def blocks(self, width: int) -> int:
        """Those that share a channel."""
        batch, channels, length = self.sizes
        return spread(channels, cdiv(batch * length, width))

    def given(self, *names: str) -> list[Any]:
        """Arrays for the kernel, x in place of None."""
        return [self.source if self.arrays[name] is None else self.arrays[name] for name in names]


_PARAMETERS = ("weight", "bias", "running_mean", "running_var")


def batch_norm_backward(
    grad_out: Any, x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    training: bool = False, eps: float = 1e-5, *, out: Any = None,
) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias in :func:`batch_norm`; None of what is None. ``out`` is for that of x."""
    call = _Call(x, running_mean, running_var, weight, bias, training, eps)
    arguments.expect_array("grad_out", grad_out, [arguments.dtype_name(x)])
    if tuple(grad_out.shape) != call.shape:
        raise arguments.wrong(f"`grad_out` has shape {list(grad_out.shape)}; `x` has {list(call.shape)}")
    grad = arguments.dense(grad_out)
    dx = arguments.output(out, x, call.shape, call.dtype, x=x, grad_out=grad_out)
    dweight, dbias = (
        None if kind is None else arguments.empty_like(x, (call.sizes[1],), kind) for kind in call.kinds[:2]
    )
    if call.sizes[1]:
        width = call.width(call.source, grad, dx)
        weight, mean, var = call.given("weight", "running_mean", "running_var")
        blocks = call.blocks(width)
        backward_kernel(call.dtype, call.kinds, call.training, width, blocks)[call.sizes[1] * blocks, THREADS](
            grad, call.source, weight, mean, var, dx, *(dx if each is None else each for each in (dweight, dbias)),
            *call.sizes, call.eps,
        )
    return dx, dweight, dbias


def _gradients(
    x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool, eps: float, grad_out: Any
) -> Mapping[str, Any]:
    found = batch_norm_backward(grad_out, x, running_mean, running_var, weight, bias, training, eps)
    return dict(zip(("x", "weight", "bias"), found))


@differentiable("x", "weight", "bias", backward=_gradients)
def batch_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5, *, out: Any = None,
) -> Any:
    """(x - mean) weight / sqrt(var + eps) + bias for each channel (Ioffe & Szegedy 2015), as torch has it.

    Args:
        x: ``[N, C, ...]``, float16, bfloat16, float32 or float64.
        running_mean: ``[C]``, of any of these. Trained by, where ``training``: ``(1 - momentum) running + momentum
            mean``; else used. None takes ``training``.
        running_var: As ``running_mean``; trained by the unbiased variance.
        weight: ``[C]``, of any of these; None is 1.
        bias: ``[C]``; None is 0.
        training: Whether mean and variance are those of the batch.
        momentum: Of the running statistics, 0 to 1.
        eps: Added to the variance, 0 or more.
        out: As x, and may be x; a new array of x's kind if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> mean, var = np.zeros(2), np.ones(2)
    >>> batch_norm(np.array([[1.0, 5.0], [3.0, 5.0]]), mean, var, training=True).round(2)
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> mean, var
    (array([0.2, 0.5]), array([1.1, 0.9]))
    """
    call = _Call(x, running_mean, running_var, weight, bias, training, eps)
    momentum = arguments.number("momentum", momentum, 0, 1)
    out = arguments.output(out, x, call.shape, call.dtype, in_place=["x"], x=x, **call.arrays)
    if not call.sizes[1] or not call.sizes[0] * call.sizes[2]:
        return out
    width = call.width(call.source, out)
    given = [call.source, *call.given(*_PARAMETERS), out, *call.sizes, call.eps]
    if call.training:
        blocks = call.blocks(width)
        training_kernel(call.dtype, call.kinds, width, blocks)[call.sizes[1] * blocks, THREADS](*given, momentum)
    else:
        inference_kernel(call.dtype, call.kinds, width)[call.sizes[1], THREADS](*given)
    return out
