"""Softmax and its logarithm along an axis, and their backward passes.

exp(x_i - max x) / sum_j exp(x_j - max x): a row in registers is loaded once. Sums are in float32, in float64 for
float64. A row of NaNs, or of nothing but -inf, gives NaNs, as in torch.
"""

from __future__ import annotations

from functools import cache
from math import e, log2
from typing import Any

from ... import Kernel, Ptr, ScalarType, ptx, ptx_kernel, u32
from ... import math as ptxmath
from .. import arguments
from ..autograd import differentiable
from ..elementwise import cast
from ..storage import working
from ..rows import Chunk, Plan, Row, each_row, plan_of, row_of

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def exp(x: Any, dtype: ScalarType) -> Any:
    """The exponential; for what is rounded to 16 bits that of the special function unit, to which denormals are 0."""
    return ptx.ex2.approx.ftz.f32(x * log2(e)) if dtype.bytes == 2 else ptxmath.exp(x)


@cache
def softmax_kernel(dtype: ScalarType, logarithm: bool, plan: Plan) -> Kernel:
    """Softmax, or its logarithm, of rows that the plan is for."""
    acc = working(dtype)

    @ptx_kernel(name=f"{'log_' * logarithm}softmax_{dtype}_{plan}", **plan.options)
    def kernel(x: Ptr[dtype], out: Ptr[dtype], rows: u32, columns: u32) -> None:
        def body(number: Any) -> None:
            row = Row(plan, columns, acc, row_of(x, number, columns))
            largest = row.largest()

            def weights(chunk: Chunk) -> list[list[Any]]:
                return [[exp(value - largest, dtype) for value in chunk.values[0]]]

            (total,) = row.sums(weights)
            if logarithm:
                shift = ptxmath.log(total)
                results = lambda chunk: [[value - largest - shift for value in chunk.values[0]]]  # noqa: E731
            else:
                factor = ptx[f"rcp.rn.{acc}"](total)
                results = lambda chunk: [[value * factor for value in weights(chunk)[0]]]  # noqa: E731
            row.write(results, row_of(out, number, columns))

        each_row(plan, rows, body)

    return kernel


@cache
def backward_kernel(dtype: ScalarType, logarithm: bool, plan: Plan) -> Kernel:
    """The gradient of x from the result y: y (g - sum(g y)), of the logarithm g - exp(y) sum(g)."""
    acc = working(dtype)

    @ptx_kernel(name=f"{'log_' * logarithm}softmax_backward_{dtype}_{plan}", **plan.options)
    def kernel(grad: Ptr[dtype], y: Ptr[dtype], dx: Ptr[dtype], rows: u32, columns: u32) -> None:
        def body(number: Any) -> None:
            row = Row(plan, columns, acc, row_of(grad, number, columns), row_of(y, number, columns))

            def summands(chunk: Chunk) -> list[list[Any]]:
                return [[g if logarithm else g * v for g, v in zip(*chunk.values)]]

            (total,) = row.sums(summands)

            def gradient(chunk: Chunk) -> list[list[Any]]:
                if logarithm:
                    return [[g - exp(v, dtype) * total for g, v in zip(*chunk.values)]]
                return [[v * (g - total) for g, v in zip(*chunk.values)]]

            row.write(gradient, row_of(dx, number, columns))

        each_row(plan, rows, body)

    return kernel


def _moved(array: Any, source: int, target: int) -> Any:
    """The array with an axis at another place, in the same memory."""
    order = list(range(len(array.shape)))
    order.insert(target, order.pop(source))
    return array.permute(order) if hasattr(array, "permute") else array.transpose(order)


def _along_axis(kernel: Any, axis: int, out: Any, *inputs: Any) -> Any:
    """Launch a kernel of rows along an axis: of arrays that are copied where it is not the last one."""
    last = len(out.shape) - 1
    sources = [arguments.dense(array if axis == last else _moved(array, axis, last)) for array in inputs]
    shape = tuple(sources[0].shape)
    dtype = arguments.floating("x", inputs[0])
    rows, columns = 1, shape[-1]
    for extent in shape[:-1]:
        rows *= extent
    if max(rows, columns) >= 2**31:
        raise arguments.wrong(f"{rows} rows of {columns} elements; both can be {2**31 - 1} at most")
    if not rows or not columns:
        return out
    result = out if axis == last else arguments.empty_like(out, shape, dtype)
    plan = plan_of(columns, *sources, result, rows=rows, held=len(sources))
    kernel(plan)[plan.grid(rows), plan.block](*sources, result, rows, columns)
    if axis != last:
        cast(_moved(result, last, axis), dtype, out=out)
    return out


def _run(x: Any, axis: int, out: Any, logarithm: bool) -> Any:
    shape = arguments.expect_array("x", x, arguments.FLOATS)
    dtype = arguments.floating("x", x)
    axis = arguments.axis("axis", axis, len(shape))
    out = arguments.output(out, x, shape, dtype, in_place=["x"], x=x)
    return _along_axis(lambda plan: softmax_kernel(dtype, logarithm, plan), axis, out, x)


def _run_backward(grad_out: Any, y: Any, axis: int, out: Any, logarithm: bool) -> Any:
    shape = arguments.expect_array("y", y, arguments.FLOATS)
    dtype = arguments.floating("y", y)
    arguments.expect_array("grad_out", grad_out, [arguments.dtype_name(y)])
    if tuple(grad_out.shape) != shape:
        raise arguments.wrong(f"`grad_out` has shape {list(grad_out.shape)}; `y` has {list(shape)}")
    axis = arguments.axis("axis", axis, len(shape))
    out = arguments.output(out, y, shape, dtype, in_place=["grad_out", "y"], grad_out=grad_out, y=y)
    return _along_axis(lambda plan: backward_kernel(dtype, logarithm, plan), axis, out, grad_out, y)


def softmax_backward(grad_out: Any, y: Any, axis: int = -1, *, out: Any = None) -> Any:
    """The gradient of x in ``y = softmax(x, axis)``, from y. ``out`` may be either of both."""
    return _run_backward(grad_out, y, axis, out, False)


@differentiable("x", backward=lambda out, axis, grad_out: {"x": softmax_backward(grad_out, out, axis)})
def softmax(x: Any, axis: int = -1, *, out: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis.

    Args:
        x: float16, bfloat16, float32 or float64, of one dimension or more.
        axis: Along which the results add up to 1.
        out: As x, and may be x; a new array of x's kind if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A dtype, axis or ``out`` that does not fit. Nothing ran.

    >>> import numpy as np
    >>> softmax(np.log(np.array([[1.0, 3.0], [4.0, 1.0]]))).round(3)
    array([[0.25, 0.75],
           [0.8 , 0.2 ]])
    """
    return _run(x, axis, out, False)


def log_softmax_backward(grad_out: Any, y: Any, axis: int = -1, *, out: Any = None) -> Any:
    """The gradient of x in ``y = log_softmax(x, axis)``, from y. ``out`` may be either of both."""
    return _run_backward(grad_out, y, axis, out, True)


@differentiable("x", backward=lambda out, axis, grad_out: {"x": log_softmax_backward(grad_out, out, axis)})
def log_softmax(x: Any, axis: int = -1, *, out: Any = None) -> Any:
    """The logarithm of :func:`softmax`, whose arguments it has: x - max(x) - log(sum(exp(x - max(x)))).

    >>> import numpy as np
    >>> log_softmax(np.zeros(4)).round(3)
    array([-1.386, -1.386, -1.386, -1.386])
    """
    return _run(x, axis, out, True)
