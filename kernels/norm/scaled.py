"""RMSNorm and LayerNorm: a row shifted and scaled by its own statistics, and their backward passes.

One pass over memory where a row fits in registers. Sums are in float32, in float64 for float64; the variance is that of
the differences from the mean (two passes over the registers), so nothing cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ... import Kernel, Ptr, ScalarType, ptx, ptx_kernel, u32, when
from .. import arguments
from ..autograd import differentiable
from ..storage import working
from .columns import weight_gradients
from ..rows import Chunk, Plan, Row, each_row, plan_of, row_of

__all__ = [
    "fused_add_rms_norm", "layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward",
]


def inverse_root(x: Any) -> Any:
    """1 / sqrt(x), rounded twice."""
    return ptx[f"rcp.rn.{x.type}"](ptx[f"sqrt.rn.{x.type}"](x))


def _mean(total: Any, columns: Any) -> Any:
    return ptx[f"div.rn.{total.type}"](total, columns.to(total.type))


def _statistics(row: Row, centred: bool, eps: Any) -> tuple[Any, Any]:
    """The mean of the row (None where it is not centred) and 1 / sqrt(variance + eps)."""
    mean = _mean(row.sums(lambda chunk: [chunk.values[0]])[0], row.columns) if centred else None

    def squares(chunk: Chunk) -> list[list[Any]]:
        differences = [value if mean is None else value - mean for value in chunk.values[0]]
        return [[each * each for each in differences]]

    return mean, inverse_root(_mean(row.sums(squares)[0], row.columns) + eps)


def _normalised(values: list[Any], mean: Any, inverse: Any) -> list[Any]:
    return [(value if mean is None else value - mean) * inverse for value in values]


@cache
def norm_kernel(
    dtype: ScalarType, weight_type: ScalarType | None, bias_type: ScalarType | None, centred: bool, plan: Plan
) -> Kernel:
    """RMSNorm, or where it is centred LayerNorm, of rows that the plan is for; types are None without a weight."""
    acc = working(dtype)
    name = f"{'layer' if centred else 'rms'}_norm_{dtype}_{weight_type}_{bias_type}_{plan}"

    @ptx_kernel(name=name, **plan.options)
    def kernel(
        x: Ptr[dtype], weight: Ptr[weight_type or dtype], bias: Ptr[bias_type or dtype], out: Ptr[dtype], rows: u32,
        columns: u32, eps: acc,
    ) -> None:
        def body(number: Any) -> None:
            row = Row(plan, columns, acc, row_of(x, number, columns))
            weights = None if weight_type is None else row.beside(weight)
            biases = None if bias_type is None else row.beside(bias)
            mean, inverse = _statistics(row, centred, eps)

            def scaled(chunk: Chunk) -> list[list[Any]]:
                values = _normalised(chunk.values[0], mean, inverse)
                if weights is not None:
                    values = [v * w for v, w in zip(values, weights(chunk))]
                if biases is not None:
                    values = [v + b for v, b in zip(values, biases(chunk))]
                return [values]

            row.write(scaled, row_of(out, number, columns))

        each_row(plan, rows, body)

    return kernel


@cache
def add_norm_kernel(dtype: ScalarType, weight_type: ScalarType, plan: Plan) -> Kernel:
    """RMSNorm of x + residual, which is stored too; rounded once each."""
    acc = working(dtype)

    @ptx_kernel(name=f"fused_add_rms_norm_{dtype}_{weight_type}_{plan}", **plan.options)
    def kernel(
        x: Ptr[dtype], residual: Ptr[dtype], weight: Ptr[weight_type], out: Ptr[dtype], total: Ptr[dtype], rows: u32,
        columns: u32, eps: acc,
    ) -> None:
        def body(number: Any) -> None:
            sources = [row_of(pointer, number, columns) for pointer in (x, residual)]
            row = Row(plan, columns, acc, *sources)
            weights = row.beside(weight)

            def added(chunk: Chunk) -> list[Any]:
                return [a + b for a, b in zip(*chunk.values)]

            inverse = inverse_root(_mean(row.sums(lambda chunk: [[v * v for v in added(chunk)]])[0], columns) + eps)

            def results(chunk: Chunk) -> list[list[Any]]:
                sums = added(chunk)
                return [[v * inverse * w for v, w in zip(sums, weights(chunk))], sums]

            row.write(results, *(row_of(pointer, number, columns) for pointer in (out, total)))

        each_row(plan, rows, body)

    return kernel


@cache
def backward_kernel(dtype: ScalarType, weight_type: ScalarType | None, centred: bool, plan: Plan) -> Kernel:
    """The gradient of x; and of each row the mean and 1 / sqrt(variance + eps), for those of weight and bias.

    With y the normalised x and h the gradient times the weight, it is (h - mean(h) - y mean(h y)) / sqrt(...), without
    mean(h) where nothing is centred.
    """
    acc = working(dtype)
    name = f"{'layer' if centred else 'rms'}_norm_backward_{dtype}_{weight_type}_{plan}"

    @ptx_kernel(name=name, **plan.options)
    def kernel(
        grad: Ptr[dtype], x: Ptr[dtype], weight: Ptr[weight_type or dtype], dx: Ptr[dtype], statistics: Ptr[acc],
        rows: u32, columns: u32, eps: acc,
    ) -> None:
        def body(number: Any) -> None:
            row = Row(plan, columns, acc, row_of(x, number, columns), row_of(grad, number, columns))
            weights = None if weight_type is None else row.beside(weight)
            mean, inverse = _statistics(row, centred, eps)

            def terms(chunk: Chunk) -> tuple[list[Any], list[Any]]:
                """y and h."""
                values, gradients = chunk.values
                if weights is not None:
                    gradients = [g * w for g, w in zip(gradients, weights(chunk))]
                return _normalised(values, mean, inverse), gradients

            def summands(chunk: Chunk) -> list[list[Any]]:
                y, h = terms(chunk)
                return [[a * b for a, b in zip(y, h)], *([h] if centred else [])]

            means = [_mean(total, columns) for total in row.sums(summands, 2 if centred else 1)]

            def gradient(chunk: Chunk) -> list[list[Any]]:
                y, h = terms(chunk)
                if centred:
                    h = [each - means[1] for each in h]
                return [[(b - a * means[0]) * inverse for a, b in zip(y, h)]]

            row.write(gradient, row_of(dx, number, columns))
            with when(row.first == 0):
                statistics[number * 2] = inverse
                if mean is not None:
                    statistics[number * 2 + 1] = mean

        each_row(plan, rows, body)

    return kernel


# The functions


def _matrix(x: Any) -> tuple[Any, int, int, ScalarType]:
    """x with contiguous rows, their number and length, and its type."""
    shape = arguments.expect_array("x", x, arguments.FLOATS)
    if not shape:
        raise arguments.wrong("`x` has no dimensions; it is normalised over the last one")
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    if max(rows, shape[-1]) >= 2**31:
        raise arguments.wrong(f"`x` has {rows} rows of {shape[-1]}; both can be {2**31 - 1} at most")
    return arguments.dense(x), rows, shape[-1], arguments.floating("x", x)


def _parameter(name: str, array: Any, columns: int) -> tuple[Any, ScalarType | None]:
    if array is None:
        return None, None
    arguments.expect(name, array, [columns], list(arguments.FLOATS))
    return array, arguments.floating(name, array)


def _run(x: Any, weight: Any, bias: Any, eps: float, out: Any, centred: bool) -> Any:
    source, rows, columns, dtype = _matrix(x)
    weight, weight_type = _parameter("weight", weight, columns)
    bias, bias_type = _parameter("bias", bias, columns)
    eps = arguments.number("eps", eps, 0)
    out = arguments.output(out, x, tuple(x.shape), dtype, in_place=["x"], x=x, weight=weight, bias=bias)
    if rows and columns:
        plan = plan_of(columns, *(array for array in (source, out, weight, bias) if array is not None), rows=rows)
        kernel = norm_kernel(dtype, weight_type, bias_type, centred, plan)
        kernel[plan.grid(rows), plan.block](
            source, source if weight is None else weight, source if bias is None else bias, out, rows, columns, eps
        )
    return out


def _backward(
    grad_out: Any, x: Any, weight: Any, bias: Any, eps: float, centred: bool, out: Any,
    needs: frozenset[str] = frozenset(("weight", "bias")),
) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias; None of what is not there or not needed."""
    source, rows, columns, dtype = _matrix(x)
    weight, weight_type = _parameter("weight", weight, columns)
    bias, bias_type = _parameter("bias", bias, columns)
    eps = arguments.number("eps", eps, 0)
    arguments.expect_array("grad_out", grad_out, [arguments.dtype_name(x)])
    if tuple(grad_out.shape) != tuple(x.shape):
        raise arguments.wrong(f"`grad_out` has shape {list(grad_out.shape)}; `x` has {list(x.shape)}")
    gradient, acc = arguments.dense(grad_out), working(dtype)
    dx = arguments.output(out, x, tuple(x.shape), dtype, x=source, grad_out=gradient, weight=weight)
    dweight, dbias = (
        None if kind is None or name not in needs else arguments.empty_like(x, (columns,), kind)
        for name, kind in (("weight", weight_type), ("bias", bias_type))
    )
    if not columns:
        return dx, dweight, dbias
    statistics = arguments.empty_like(x, (rows, 2), acc)
    if rows:
        arrays = [array for array in (source, gradient, dx, weight) if array is not None]
        plan = plan_of(columns, *arrays, rows=rows, held=2)
        kernel = backward_kernel(dtype, weight_type, centred, plan)
        kernel[plan.grid(rows), plan.block](
            gradient, source, source if weight is None else weight, dx, statistics, rows, columns, eps
        )
    if dweight is not None or dbias is not None:
        weight_gradients(gradient, source, statistics, rows, columns, centred, dweight, dbias)
    return dx, dweight, dbias


def rms_norm_backward(
    grad_out: Any, x: Any, weight: Any = None, eps: float = 1e-6, *, out: Any = None
) -> tuple[Any, Any]:
    """The gradients of x and weight in :func:`rms_norm`; of weight None if there is none. ``out`` is for that of x.

    >>> import numpy as np
    >>> dx, dweight = rms_norm_backward(np.ones((2, 4)), np.ones((2, 4)), np.ones(4), eps=0)
    >>> dx[0], dweight
    (array([0., 0., 0., 0.]), array([2., 2., 2., 2.]))
    """
    return _backward(grad_out, x, weight, None, eps, False, out)[:2]


def _rms_gradients(x: Any, weight: Any, eps: float, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return dict(zip(("x", "weight"), _backward(grad_out, x, weight, None, eps, False, None, needs)))


@differentiable("x", "weight", backward=_rms_gradients)
def rms_norm(x: Any, weight: Any = None, eps: float = 1e-6, *, out: Any = None) -> Any:
    """x weight / sqrt(mean(x^2) + eps), over the last axis (Zhang & Sennrich 2019).

    Args:
        x: ``[..., D]``, float16, bfloat16, float32 or float64.
        weight: ``[D]``, of any of these; None is 1.
        eps: Added to the mean of the squares, 0 or more.
        out: As x, and may be x; a new array of x's kind if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> rms_norm(np.array([[3.0, -4.0]]), np.array([1.0, 2.0])).round(3)
    array([[ 0.849, -2.263]])
    """
    return _run(x, weight, None, eps, out, False)


def layer_norm_backward(
    grad_out: Any, x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *, out: Any = None
) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias in :func:`layer_norm`; None of what is None. ``out`` is for that of x."""
    return _backward(grad_out, x, weight, bias, eps, True, out)


def _layer_gradients(
    x: Any, weight: Any, bias: Any, eps: float, grad_out: Any, needs: frozenset[str]
) -> Mapping[str, Any]:
    return dict(zip(("x", "weight", "bias"), _backward(grad_out, x, weight, bias, eps, True, None, needs)))


@differentiable("x", "weight", "bias", backward=_layer_gradients)
def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *, out: Any = None) -> Any:
    """(x - mean(x)) weight / sqrt(var(x) + eps) + bias, over the last axis (Ba, Kiros & Hinton 2016).

    Args:
        x: As of :func:`rms_norm`, as are ``weight``, ``eps`` and ``out``.
        bias: As ``weight``; None is 0.

    Returns:
        ``out``.

    Raises:
        LaunchError: As of :func:`rms_norm`.

    >>> import numpy as np
    >>> layer_norm(np.array([[1.0, 3.0]]), bias=np.array([0.0, 5.0])).round(3)
    array([[-1.,  6.]])
    """
    return _run(x, weight, bias, eps, out, True)


def _add_gradients(
    total: Any, weight: Any, eps: float, grad_out: Any, grad_total: Any, needs: frozenset[str]
) -> Mapping[str, Any]:
    dx, dweight, _ = _backward(grad_out, total, weight, None, eps, False, None, needs)
    found = {"x": dx + grad_total, "weight": dweight}
    return {**found, "residual": found["x"]}


@differentiable("x", "residual", "weight", backward=_add_gradients, results=("out", "total"))
def fused_add_rms_norm(
    x: Any, residual: Any, weight: Any, eps: float = 1e-6, *, out: Any = None, total: Any = None
) -> tuple[Any, Any]:
    """The RMSNorm of x + residual, and the sum: ``(out, total)``.

    Args:
        x: As of :func:`rms_norm`, as are ``weight`` and ``eps``.
        residual: As x, C-contiguous.
        out: As x, and may be x or residual.
        total: Where to put the sum; as ``out``, and another array. In place: ``out=x, total=residual``.

    >>> import numpy as np
    >>> out, total = fused_add_rms_norm(np.ones((1, 2)), np.array([[0.0, 2.0]]), np.ones(2))
    >>> total, out.round(3)
    (array([[1., 3.]]), array([[0.447, 1.342]]))
    """
    source, rows, columns, dtype = _matrix(x)
    shape = tuple(x.shape)
    weight, weight_type = _parameter("weight", weight, columns)
    if weight_type is None:
        raise arguments.wrong("`weight` is None, not an array [D]")
    arguments.expect("residual", residual, list(shape), [arguments.dtype_name(x)])
    eps = arguments.number("eps", eps, 0)
    inputs = {"x": x, "residual": residual, "weight": weight}
    out = arguments.output(out, x, shape, dtype, in_place=["x", "residual"], **inputs)
    total = arguments.output(total, x, shape, dtype, in_place=["x", "residual"], name="total", out=out, **inputs)
    if rows and columns:
        plan = plan_of(columns, source, residual, weight, out, total, rows=rows, held=2)
        kernel = add_norm_kernel(dtype, weight_type, plan)
        kernel[plan.grid(rows), plan.block](source, residual, weight, out, total, rows, columns, eps)
    return out, total
