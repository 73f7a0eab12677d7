"""Cross entropy: softmax, logarithm, choice of the target and the gradient in one pass over the logits.

With p the softmax of a row x of C logits, t its target, w the weights of the classes (1 where none are given) and s the
label smoothing (Szegedy et al. 2016)::

    loss = (1 - s) w_t (log(sum(exp(x))) - x_t) + s / C sum(w (log(sum(exp(x))) - x))
    gradient of x_i = p_i ((1 - s) w_t + s / C sum(w)) - (1 - s) w_t [i = t] - s / C w_i

Sums are in float32, in float64 for float64. The logits may be overwritten by their gradient.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, check, loop, ptx, ptx_kernel, reg, s64, select, u32, u64, when
from .. import block
from .. import math as ptxmath
from . import arguments, elementwise
from .autograd import differentiable
from .norm.softmax_rows import exp
from .rows import Chunk, Plan, Row, each_row, plan_of, row_of
from .storage import working

__all__ = [
    "count_kernel", "cross_entropy", "cross_entropy_with_grad", "rows_kernel", "total_kernel", "weigh_kernel",
]

THREADS = 256
REDUCTIONS = ("none", "mean", "sum")


@cache
def count_kernel(index_type: ScalarType, acc: ScalarType) -> Kernel:
    """1 over the number of targets that are not ignored, by one block."""

    @ptx_kernel(name=f"cross_entropy_count_{index_type}_{acc}", reqntid=THREADS)
    def kernel(target: Ptr[index_type], factor: Ptr[acc], rows: u32, ignored: s64) -> None:
        count = reg(u32, 0)
        with loop(ptx.tid.x, rows, THREADS) as row:
            count.set(count + (target[row].to(s64) != ignored).to(u32))
        total = block.reduce(operator.add, count.copy(), THREADS)
        with when(ptx.tid.x == 0):
            factor[0] = ptx[f"rcp.rn.{acc}"](total.to(acc))

    return kernel


@cache
def weigh_kernel(index_type: ScalarType, weight_type: ScalarType, acc: ScalarType) -> Kernel:
    """1 over the weights of all targets that are not ignored, by one block; :func:`rows_kernel` tells of no classes."""

    @ptx_kernel(name=f"cross_entropy_weigh_{index_type}_{weight_type}_{acc}", reqntid=THREADS)
    def kernel(
        target: Ptr[index_type], weight: Ptr[weight_type], factor: Ptr[acc], rows: u32, columns: u32, ignored: s64
    ) -> None:
        part = reg(acc, 0.0)
        with loop(ptx.tid.x, rows, THREADS) as row:
            wanted = target[row].to(s64)
            with when((wanted != ignored) & (wanted.bits(u64) < columns.to(u64))):
                part.set(part + weight[wanted].to(acc))
        total = block.reduce(operator.add, part.copy(), THREADS)
        with when(ptx.tid.x == 0):
            factor[0] = ptx[f"rcp.rn.{acc}"](total)

    return kernel


@cache
def total_kernel(acc: ScalarType, averaged: bool) -> Kernel:
    """The sum of the losses, times a factor where it is ``averaged``, by one block."""

    @ptx_kernel(name=f"cross_entropy_{'mean' if averaged else 'sum'}_{acc}", reqntid=THREADS)
    def kernel(losses: Ptr[acc], factor: Ptr[acc], out: Ptr[acc], rows: u32) -> None:
        part = reg(acc, 0.0)
        with loop(ptx.tid.x, rows, THREADS) as row:
            part.set(part + losses[row])
        total = block.reduce(operator.add, part.copy(), THREADS)
        with when(ptx.tid.x == 0):
            out[0] = total * factor[0] if averaged else total

    return kernel


@cache
def rows_kernel(
    dtype: ScalarType, index_type: ScalarType, graded: bool, averaged: bool, plan: Plan,
    weight_type: ScalarType | None = None,
) -> Kernel:
    """The loss of each row, and where it is ``graded`` the gradients, times a factor where the loss is ``averaged``.

    With a ``weight_type`` classes have weights.
    """
    acc, weighted = working(dtype), weight_type is not None
    weight_type = weight_type or acc
    weighing = f"weighted_{weight_type}_" * weighted
    name = f"cross_entropy_{dtype}_{index_type}_{weighing}{'graded_' * graded}{'averaged_' * averaged}{plan}"

    # For the sake of occupancy ptxas would rather spill a few registers of float32 and float64, where it may.
    resident: dict[str, Any] = {} if dtype.bytes == 2 else {"minnctapersm": 512 // plan.block}

    @ptx_kernel(name=name, **plan.options, **resident)
    def kernel(
        logits: Ptr[dtype], target: Ptr[index_type], weight: Ptr[weight_type], losses: Ptr[acc], grad: Ptr[dtype],
        factor: Ptr[acc], rows: u32, columns: u32, ignored: s64, smoothing: acc,
    ) -> None:
        def body(number: Any) -> None:
            wanted = target[number].to(s64)
            counts = wanted != ignored
            check((wanted.bits(u64) < columns.to(u64)) | (wanted == ignored), "cross_entropy: a target is no class")
            chosen = select(counts, wanted, 0).to(u32)
            start = row_of(logits, number, columns)
            at_target = start[chosen].to(acc)
            row = Row(plan, columns, acc, start)
            largest = row.largest()

            def powers(chunk: Chunk) -> list[Any]:
                return [exp(value - largest, dtype) for value in chunk.values[0]]

            of_classes = row.beside(weight) if weighted else None

            def terms(chunk: Chunk) -> list[list[Any]]:
                # Of the smoothing the logits relative to the largest, so that large ones do not cancel.
                below = [value - largest for value in chunk.values[0]]
                if of_classes is None:
                    return [powers(chunk), below]
                own = of_classes(chunk)
                return [powers(chunk), [value * each for value, each in zip(below, own)], own]

            total, below, *whole = row.sums(terms, 3 if weighted else 2)
            share = ptx[f"div.rn.{acc}"](smoothing, columns.to(acc))
            logarithm = ptxmath.log(total)
            kept: Any = 1.0 - smoothing
            everything: Any = 1.0
            if weighted:
                kept = kept * weight[chosen].to(acc)
                everything = kept + select(share > 0.0, whole[0] * share, 0.0)
            loss = logarithm * everything - (at_target - largest) * kept - select(share > 0.0, below * share, 0.0)
            with when(row.first == 0):
                losses[number] = select(counts, loss, 0.0)
            if not graded:
                return
            mean: Any = factor[0] if averaged else 1.0
            scale = ptx[f"rcp.rn.{acc}"](total) * (everything * mean)
            share, kept = share * mean, kept * mean

            def gradient(chunk: Chunk) -> list[list[Any]]:
                smooth = [share] * plan.width if of_classes is None else [each * share for each in of_classes(chunk)]
                found = [reg(acc, select(counts, p * scale - less, 0.0)) for p, less in zip(powers(chunk), smooth)]
                place = chosen - chunk.at
                with when(counts & (place < plan.width)):
                    for at, value in enumerate(found):
                        value.set(select(place == at, value - kept, value))
                return [found]

            row.write(gradient, row_of(grad, number, columns))

        each_row(plan, rows, body)

    return kernel


def _plan(columns: int, source: Any, slopes: Any, weight: Any, rows: int | None = None) -> Plan:
    """That of the kernel, which holds a row of logits, and of weights as much again."""
    if weight is None:
        return plan_of(columns, source, slopes, rows=rows)
    return plan_of(columns, source, slopes, weight, rows=rows, held=2)


def _flattened(logits: Any, target: Any) -> tuple[Any, int, int]:
    """The logits with the classes along rows, and their numbers."""
    shape = arguments.expect_array("logits", logits, arguments.FLOATS)
    if not shape:
        raise arguments.wrong("`logits` has no dimensions; wanted is [C], [N, C] or [N, C, ...]")
    rest = shape[1:] if len(shape) == 1 else (shape[0], *shape[2:])
    arguments.expect_array("target", target, ["int32", "int64"])
    if tuple(target.shape) != rest:
        raise arguments.wrong(f"`target` has shape {list(target.shape)}; wanted is {list(rest)}, one class each")
    if len(shape) > 2:
        order = [0, *range(2, len(shape)), 1]
        logits = logits.permute(order) if hasattr(logits, "permute") else logits.transpose(order)
    rows = 1
    for extent in rest:
        rows *= extent
    columns = shape[0] if len(shape) == 1 else shape[1]
    if max(rows, columns) >= 2**31:
        raise arguments.wrong(f"`logits` has {rows} rows of {columns}; both can be {2**31 - 1} at most")
    if rows and not columns:
        raise arguments.wrong(f"`logits` has shape {list(shape)}; there is one class at least")
    return arguments.dense(logits), rows, columns


def _run(
    logits: Any, target: Any, weight: Any, ignore_index: int, label_smoothing: float, reduction: str, out: Any,
    grad: Any, graded: bool,
) -> tuple[Any, Any]:
    """The loss, and the gradient of the logits if it is wanted."""
    source, rows, columns = _flattened(logits, target)
    dtype, index_type = arguments.floating("logits", logits), arguments.scalar_type("target", target)
    acc, shape = working(dtype), tuple(logits.shape)
    smoothing = arguments.number("label_smoothing", label_smoothing, 0, 1)
    arguments.one_of("reduction", reduction, REDUCTIONS)
    ignored = arguments.size("ignore_index", ignore_index, range(-(2**63), 2**63))
    averaged, each = reduction == "mean", reduction == "none"
    weight_type = None
    if weight is not None:
        arguments.expect("weight", weight, [columns], list(arguments.FLOATS))
        weight_type = arguments.floating("weight", weight)
    out = arguments.output(
        out, logits, tuple(target.shape) if each else (), acc, logits=logits, target=target, weight=weight
    )
    if graded:
        in_place = ["logits"] if len(shape) < 3 else []
        grad = arguments.output(
            grad, logits, shape, dtype, in_place=in_place, name="grad", logits=logits, target=target, weight=weight,
            out=out,
        )
    labels = arguments.dense(target)
    losses = out if each else arguments.empty_like(logits, (rows,), acc)
    factor = arguments.empty_like(logits, (1,), acc)
    if averaged and weight_type is not None:
        weigh_kernel(index_type, weight_type, acc)[1, THREADS](labels, weight, factor, rows, columns, ignored)
    elif averaged:
        count_kernel(index_type, acc)[1, THREADS](labels, factor, rows, ignored)
    if rows:
        moved = len(shape) > 2
        slopes = source if not graded else arguments.empty_like(logits, tuple(source.shape), dtype) if moved else grad
        given = factor if weight is None else weight
        plan = _plan(columns, source, slopes, weight, rows)
        rows_kernel(dtype, index_type, graded, averaged, plan, weight_type)[plan.grid(rows), plan.block](
            source, labels, given, losses, slopes, factor, rows, columns, ignored, smoothing
        )
        if graded and moved:
            order = [0, len(shape) - 1, *range(1, len(shape) - 1)]
            back = slopes.permute(order) if hasattr(slopes, "permute") else slopes.transpose(order)
            elementwise.cast(back, dtype, out=grad)
    if not each:
        total_kernel(acc, averaged)[1, THREADS](losses, factor, out, rows)
    return out, grad


def cross_entropy_with_grad(
    logits: Any, target: Any, *, weight: Any = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: str = "mean", out: Any = None, grad: Any = None,
) -> tuple[Any, Any]:
    """The loss of :func:`cross_entropy` and its gradient in the logits, in one pass over them.

    ``grad`` is where to put the gradient; as the logits, and for ``[N, C]`` it may be these. With ``reduction="none"``
    it is that of each loss.

    >>> import numpy as np
    >>> loss, grad = cross_entropy_with_grad(np.zeros((1, 4)), np.array([1]))
    >>> loss, grad
    (array(1.38629436), array([[ 0.25, -0.75,  0.25,  0.25]]))
    """
    return _run(logits, target, weight, ignore_index, label_smoothing, reduction, out, grad, True)


def _recorded(logits: Any, target: Any, **given: Any) -> tuple[Any, Mapping[str, Any]]:
    loss, grad = cross_entropy_with_grad(logits, target, **given)
    return loss, {"slopes": grad}


def _gradients(logits: Any, slopes: Any, grad_out: Any) -> Mapping[str, Any]:
    if grad_out.ndim and logits.ndim > 1:
        grad_out = grad_out.unsqueeze(1)
    return {"logits": elementwise.mul(slopes, grad_out).to(logits.dtype)}


@differentiable("logits", backward=_gradients, recorded=_recorded)
def cross_entropy(
    logits: Any, target: Any, *, weight: Any = None, ignore_index: int = -100, label_smoothing: float = 0.0,
    reduction: str = "mean", out: Any = None,
) -> Any:
    """The negative logarithm of the softmax of the logits at the target.

    Args:
        logits: ``[N, C]``, ``[C]`` or ``[N, C, ...]``; float16, bfloat16, float32 or float64.
        target: The classes, ``[N]``, ``[]`` or ``[N, ...]``, int32 or int64.
        weight: Factors of the classes, ``[C]`` of any floating-point dtype; 1 each if None.
        ignore_index: A target whose loss and gradient are 0, and which does not count in the mean.
        label_smoothing: The share of the target that all classes have alike, 0 to 1.
        reduction: ``"mean"`` over the targets that count (with ``weight`` the sum over that of their weights),
            ``"sum"``, or ``"none"``.
        out: Where to put the loss: float32, of float64 logits float64; of target's shape, or of no dimensions.

    Returns:
        ``out``. The mean of no target at all is NaN.

    Raises:
        LaunchError: A shape or dtype that does not fit. Nothing ran.
        TrapError: A target that is no class (on a GPU the error of the next call that waits for it).

    >>> import numpy as np
    >>> cross_entropy(np.log(np.array([[1.0, 3.0], [1.0, 1.0]])), np.array([1, -100]))
    array(0.28768207)
    """
    return _run(logits, target, weight, ignore_index, label_smoothing, reduction, out, None, False)[0]
