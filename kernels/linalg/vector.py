"""Matrix-vector products: a warp or a block for each row, by the registers of :mod:`.rows`."""

from __future__ import annotations

from functools import cache
from typing import Any

from ... import Kernel, Ptr, ScalarType, ptx_kernel, u32, when
from .. import arguments
from ..autograd import differentiable
from ..rows import Plan, Row, each_row, plan_of, row_of
from ..storage import working
from .transposition import transpose as transposed

__all__ = ["gemv", "gemv_kernel"]


@cache
def gemv_kernel(dtype: ScalarType, plan: Plan) -> Kernel:
    """y = alpha A x + beta y for rows of A that the plan is for; y is not read where beta is 0."""
    acc = working(dtype)

    @ptx_kernel(name=f"gemv_{dtype}_{plan}", **plan.options)
    def kernel(a: Ptr[dtype], x: Ptr[dtype], y: Ptr[dtype], rows: u32, columns: u32, alpha: acc, beta: acc) -> None:
        def body(number: Any) -> None:
            row = Row(plan, columns, acc, row_of(a, number, columns), x)
            (total,) = row.sums(lambda chunk: [[v * w for v, w in zip(*chunk.values)]])
            with when(row.first == 0):
                result = total * alpha
                with when(beta == 0.0):
                    y[number] = result.to(dtype)
                with when(beta != 0.0):
                    y[number] = (result + y[number].to(acc) * beta).to(dtype)

        each_row(plan, rows, body)

    return kernel


def _gradients(a: Any, x: Any, transpose: bool, alpha: float, grad_out: Any, needs: frozenset[str]) -> dict[str, Any]:
    outer = (x[:, None] * grad_out if transpose else grad_out[:, None] * x) * alpha if "a" in needs else None
    return {"a": outer, "x": gemv(a, grad_out, transpose=not transpose, alpha=alpha) if "x" in needs else None}


@differentiable("a", "x", backward=_gradients)
def gemv(
    a: Any, x: Any, *, transpose: bool = False, alpha: float = 1.0, beta: float = 0.0, out: Any = None
) -> Any:
    """y = alpha A x + beta y, A transposed where ``transpose``.

    Args:
        a: A, ``[M, N]``, float16, bfloat16, float32 or float64. Made for rows in memory; columns are copied.
        x: ``[N]`` (``[M]`` where ``transpose``) of a's dtype.
        transpose: Whether A is to be transposed.
        alpha: Factor of the product.
        beta: Factor of what ``out`` has.
        out: y, ``[M]`` (``[N]``) of a's dtype; a new array of a's kind if None, which takes a beta of 0.

    Sums are in float32, in float64 for float64.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> gemv(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    shape = arguments.expect_array("a", a, arguments.FLOATS)
    if len(shape) != 2:
        raise arguments.wrong(f"`a` has shape {list(shape)}; wanted is [M, N]")
    dtype, names = arguments.floating("a", a), [arguments.dtype_name(a)]
    swapped = arguments.flag("transpose", transpose)
    rows, columns = shape[::-1] if swapped else shape
    arguments.expect("x", x, [columns], names, contiguous=False)
    x = arguments.dense(x)
    alpha, beta = arguments.number("alpha", alpha), arguments.number("beta", beta)
    if out is None and beta:
        raise arguments.wrong("beta is not 0, and there is no `out` that has y")
    out = arguments.output(out, a, (rows,), dtype, a=a, x=x)
    if not rows:
        return out
    if not columns:
        out[...] = out * beta if beta else 0
        return out
    along = arguments.strides(a)
    if swapped:
        a = a.T if along[0] == 1 else transposed(a)
    source = arguments.dense(a)
    plan = plan_of(columns, source, x, rows=rows, held=2)
    gemv_kernel(dtype, plan)[plan.grid(rows), plan.block](source, x, out, rows, columns, alpha, beta)
    return out
