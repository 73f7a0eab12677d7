"""Steps of optimisers, each in one launch over a parameter, and the norm of gradients.

States are float32 (float64 for float64 parameters); a parameter in 16 bits may have a master copy in float32: then that
is the parameter, and the 16 bits are the ``copy`` that each step writes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, block, cdiv, f32, f64, loop, minimum, ptx, ptx_kernel, reg, u32, when
from . import arguments
from .elementwise import Map
from .storage import load, per_access, store, working

__all__ = ["adamw", "adamw_kernel", "clip_grad_norm", "sgd", "sgd_kernel", "squared_sum", "squares_kernel"]

THREADS = 256
BLOCKS = 512
"""That share the squares of an array, at most."""


def _elements(n: Any, width: int, body: Any) -> None:
    """Call ``body(start, count)`` for this thread's vector, or for one of the elements behind the last vector."""
    thread = ptx.ctaid.x * THREADS + ptx.tid.x
    vectors = n // width if width > 1 else n
    with when(thread < vectors):
        body(thread * width if width > 1 else thread, width)
    if width > 1:
        rest = vectors * (width - 1) + thread
        with when((thread >= vectors) & (rest < n)):
            body(rest, 1)


def _blocks(n: int, width: int) -> int:
    return cdiv(n // width + (n % width if width > 1 else 0), THREADS)


@cache
def adamw_kernel(
    dtype: ScalarType, grad_type: ScalarType, copy_type: ScalarType | None, scaled: bool, width: int
) -> Kernel:
    """The step of AdamW; ``copy_type`` and ``scaled`` say whether there is a copy, and a factor of the gradient."""
    acc = working(dtype)
    name = f"adamw_{dtype}_{grad_type}_{copy_type}{'_scaled' * scaled}_x{width}"

    @ptx_kernel(name=name, reqntid=THREADS)
    def kernel(
        param: Ptr[dtype], grad: Ptr[grad_type], first: Ptr[acc], second: Ptr[acc], copy: Ptr[copy_type or dtype],
        factor: Ptr[acc], n: u32, decay: acc, beta2: acc, fresh1: acc, fresh2: acc, rate: acc, correction: acc,
        eps: acc,
    ) -> None:
        scale = factor[0] if scaled else None

        def step(start: Any, count: int) -> None:
            old, gradients, means, squares = (
                [value.to(acc) for value in load(pointer, start, count)] for pointer in (param, grad, first, second)
            )
            if scale is not None:
                gradients = [g * scale for g in gradients]
            means = [m + (g - m) * fresh1 for m, g in zip(means, gradients)]
            squares = [v * beta2 + g * g * fresh2 for v, g in zip(squares, gradients)]
            new = []
            for p, m, v in zip(old, means, squares):
                root = ptx[f"sqrt.rn.{acc}"](v) * correction + eps
                new.append(p * decay - rate * ptx[f"div.rn.{acc}"](m, root))
            store(param, start, new)
            store(first, start, means)
            store(second, start, squares)
            if copy_type is not None:
                store(copy, start, new)

        _elements(n, width, step)

    return kernel


@cache
def sgd_kernel(
    dtype: ScalarType, grad_type: ScalarType, copy_type: ScalarType | None, moved: bool, nesterov: bool, width: int
) -> Kernel:
    """The step of gradient descent, with momentum where it is ``moved``."""
    acc = working(dtype)
    name = f"sgd_{dtype}_{grad_type}_{copy_type}{'_momentum' * moved}{'_nesterov' * nesterov}_x{width}"

    @ptx_kernel(name=name, reqntid=THREADS)
    def kernel(
        param: Ptr[dtype], grad: Ptr[grad_type], buffer: Ptr[acc], copy: Ptr[copy_type or dtype], n: u32, lr: acc,
        momentum: acc, fresh: acc, decay: acc,
    ) -> None:
        def step(start: Any, count: int) -> None:
            old, gradients = ([value.to(acc) for value in load(pointer, start, count)] for pointer in (param, grad))
            steps = [g + p * decay for p, g in zip(old, gradients)]
            if moved:
                kept = [b * momentum + g * fresh for b, g in zip(load(buffer, start, count), steps)]
                store(buffer, start, kept)
                steps = [g + b * momentum for g, b in zip(steps, kept)] if nesterov else kept
            new = [p - lr * each for p, each in zip(old, steps)]
            store(param, start, new)
            if copy_type is not None:
                store(copy, start, new)

        _elements(n, width, step)

    return kernel


@cache
def squares_kernel(dtype: ScalarType, acc: ScalarType, width: int) -> Kernel:
    """The sum of squares of the elements that each block has: ``[blocks]``."""

    @ptx_kernel(name=f"squares_{dtype}_{acc}_x{width}", reqntid=THREADS)
    def kernel(x: Ptr[dtype], parts: Ptr[acc], n: u32) -> None:
        total = reg(acc, 0.0)
        thread, threads = ptx.ctaid.x * THREADS + ptx.tid.x, ptx.nctaid.x * THREADS

        def add(start: Any, count: int) -> None:
            for value in load(x, start, count):
                wide = value.to(acc)
                ptx[f"fma.rn.{acc}"](wide, wide, total, out=total)

        vectors = n // width if width > 1 else n
        with loop(thread, vectors, threads) as vector:
            add(vector * width if width > 1 else vector, width)
        if width > 1:
            rest = vectors * width + thread
            with when(rest < n):
                add(rest, 1)
        found = block.reduce(operator.add, total.copy(), THREADS)
        with when(ptx.tid.x == 0):
            parts[ptx.ctaid.x] = found

    return kernel


@cache
def _finish_kernel(acc: ScalarType) -> Kernel:
    """Of parts the sum, its root, and the factor that makes that ``limit`` at most: ``[3]``."""

    @ptx_kernel(name=f"squares_total_{acc}", reqntid=THREADS)
    def kernel(parts: Ptr[acc], out: Ptr[acc], count: u32, limit: acc) -> None:
        part = reg(acc, 0.0)
        with loop(ptx.tid.x, count, THREADS) as number:
            part.set(part + parts[number])
        total = block.reduce(operator.add, part.copy(), THREADS)
        with when(ptx.tid.x == 0):
            norm = ptx[f"sqrt.rn.{acc}"](total)
            out[0] = total
            out[1] = norm
            out[2] = minimum(ptx[f"div.rn.{acc}"](limit, norm + 1e-6), 1.0)

    return kernel


# The functions


def _parameter(param: Any, grad: Any, copy: Any, **states: Any) -> tuple[ScalarType, ScalarType, Any, int, int]:
    """The types of parameter, gradient and copy, the number of elements, and how many are loaded at once."""
    shape = arguments.expect_array("param", param, arguments.FLOATS)
    names = list(arguments.FLOATS)
    arguments.expect("param", param, list(shape), names)
    arguments.expect("grad", grad, list(shape), names)
    dtype, grad_type = arguments.floating("param", param), arguments.floating("grad", grad)
    state = arguments.name_of(working(dtype))
    for name, array in states.items():
        arguments.expect(name, array, list(shape), [state])
    written = {"param": param, **states}
    if copy is not None:
        arguments.expect("copy", copy, list(shape), names)
        written["copy"] = copy
    for place, (name, array) in enumerate(written.items()):
        others = dict(list(written.items())[place + 1 :])
        arguments.expect_output(array, name=name, grad=grad, **others)
    n = math.prod(shape)
    if n >= 2**32:
        raise arguments.wrong(f"`param` has {n} elements; it can have {2**32 - 1} at most")
    arrays = [param, grad, *states.values(), *([] if copy is None else [copy])]
    kinds = [arguments.floating("it", array) for array in arrays]
    width = per_access(*kinds) if arguments.is_aligned(16, *arrays) else 1
    return dtype, grad_type, None if copy is None else kinds[-1], n, width


def _rate(name: str, value: float) -> float:
    """A number from 0 to below 1."""
    if arguments.number(name, value, 0) >= 1:
        raise arguments.wrong(f"{name} is {value!r}; it can be 0 to below 1")
    return float(value)


def adamw(
    param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, step: int, *, lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2, copy: Any = None,
    grad_scale: Any = None,
) -> Any:
    """One step of AdamW (Loshchilov & Hutter 2019), as torch has it; parameter and states are changed in place.

    Args:
        param: Floating point, of any shape.
        grad: Its gradient, in any floating-point dtype.
        exp_avg: The running mean of gradients, float32 (float64 of float64 parameters).
        exp_avg_sq: That of their squares.
        step: The number of the step, from 1 on, by which both are corrected.
        lr: The learning rate, 0 or more.
        betas: The shares of both means that stay.
        eps: Added to the root of the second, 0 or more.
        weight_decay: The parameter is multiplied by ``1 - lr weight_decay`` before the step.
        copy: Where to put the new parameter in another dtype, as bfloat16.
        grad_scale: An array of one element of the states' dtype, by which gradients are multiplied, as
            :func:`clip_grad_norm` gives it.

    Returns:
        ``param``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or arrays that overlap. Nothing ran.

    >>> import numpy as np
    >>> param, mean, square = np.ones(2, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float32)
    >>> adamw(param, np.array([0.5, -3.0], np.float32), mean, square, 1, lr=0.1, weight_decay=0)
    array([0.9, 1.1], dtype=float32)
    """
    dtype, grad_type, copy_type, n, width = _parameter(param, grad, copy, exp_avg=exp_avg, exp_avg_sq=exp_avg_sq)
    arguments.size("step", step, range(1, 2**62))
    lr, eps = arguments.number("lr", lr, 0), arguments.number("eps", eps, 0)
    decay = arguments.number("weight_decay", weight_decay, 0)
    first, second = _rate("betas[0]", betas[0]), _rate("betas[1]", betas[1])
    if grad_scale is not None:
        arguments.expect_array("grad_scale", grad_scale, [arguments.name_of(working(dtype))])
        if math.prod(grad_scale.shape) != 1:
            raise arguments.wrong(f"`grad_scale` has shape {list(grad_scale.shape)}; wanted is one element")
    if n:
        adamw_kernel(dtype, grad_type, copy_type, grad_scale is not None, width)[_blocks(n, width), THREADS](
            param, grad, exp_avg, exp_avg_sq, param if copy is None else copy,
            exp_avg if grad_scale is None else grad_scale, n, 1 - lr * decay, second, 1 - first, 1 - second,
            lr / (1 - first**step), 1 / math.sqrt(1 - second**step), eps,
        )
    return param


def sgd(
    param: Any, grad: Any, momentum_buffer: Any = None, *, lr: float = 1e-3, momentum: float = 0.0,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, copy: Any = None,
) -> Any:
    """One step of gradient descent, as torch has it; parameter and buffer are changed in place.

    Args:
        param: As of :func:`adamw`, as are ``grad``, ``lr`` and ``copy``.
        momentum_buffer: Float32 (float64 of float64 parameters), zeros before the first step; with a momentum only.
        momentum: The share of the buffer that stays.
        dampening: 1 minus the share of the gradient that it gets.
        weight_decay: The share of the parameter that is added to its gradient.
        nesterov: Whether the step is by gradient plus momentum times buffer.

    Returns:
        ``param``.

    >>> import numpy as np
    >>> sgd(np.ones(2), np.array([1.0, -2.0]), lr=0.5)
    array([0.5, 2. ])
    """
    states = {} if momentum_buffer is None else {"momentum_buffer": momentum_buffer}
    dtype, grad_type, copy_type, n, width = _parameter(param, grad, copy, **states)
    lr, kept = arguments.number("lr", lr, 0), arguments.number("momentum", momentum, 0)
    fresh = 1 - arguments.number("dampening", dampening)
    decay = arguments.number("weight_decay", weight_decay, 0)
    if kept and momentum_buffer is None:
        raise arguments.wrong("momentum is not 0, and `momentum_buffer` is None")
    if arguments.flag("nesterov", nesterov) and (not kept or fresh != 1):
        raise arguments.wrong("nesterov is True, which takes a momentum and a dampening of 0")
    if n:
        sgd_kernel(dtype, grad_type, copy_type, bool(kept), nesterov, width)[_blocks(n, width), THREADS](
            param, grad, _buffer(param, momentum_buffer, dtype), param if copy is None else copy, n, lr, kept, fresh,
            decay,
        )
    return param


def _buffer(param: Any, buffer: Any, dtype: ScalarType) -> Any:
    """The buffer, or where there is none an array of its type that is not read."""
    if buffer is not None:
        return buffer
    return param if dtype is working(dtype) else arguments.empty_like(param, (1,), working(dtype))


def _squares(arrays: Sequence[Any], limit: float) -> Any:
    """Of all arrays the sum of squares, its root, and the factor that makes that ``limit`` at most: ``[3]``."""
    if not isinstance(arrays, (list, tuple)):
        arrays = [arrays]
    if not arrays:
        raise arguments.wrong("there is no array; wanted is one at least")
    kinds = []
    for number, array in enumerate(arrays):
        arguments.expect_array(f"arrays[{number}]", array, arguments.FLOATS)
        kinds.append(arguments.floating("it", array))
    acc = f64 if f64 in kinds else f32
    dense = [arguments.dense(array) for array in arrays]
    widths = [per_access(kind) if arguments.is_aligned(16, array) else 1 for kind, array in zip(kinds, dense)]
    sizes = [math.prod(array.shape) for array in dense]
    blocks = [min(BLOCKS, cdiv(n, width * THREADS)) for n, width in zip(sizes, widths)]
    parts = arguments.empty_like(arrays[0], (sum(blocks),), acc)
    start = 0
    for array, kind, width, n, count in zip(dense, kinds, widths, sizes, blocks):
        if n >= 2**32:
            raise arguments.wrong(f"an array has {n} elements; it can have {2**32 - 1} at most")
        if n:
            squares_kernel(kind, acc, width)[count, THREADS](array, parts[start : start + count], n)
        start += count
    found = arguments.empty_like(arrays[0], (3,), acc)
    _finish_kernel(acc)[1, THREADS](parts, found, start, limit)
    return found


def squared_sum(arrays: Any) -> Any:
    """The sum of the squares of an array, or of all of a list: an array of no dimensions, float32 or float64.

    Floats are added in an order that depends on the shapes alone.

    >>> import numpy as np
    >>> squared_sum([np.array([3.0]), np.array([[4.0, 0.0]])])
    array(25.)
    """
    return _squares(arrays, 0.0)[:1].reshape(())


_CLIP = Map(lambda gradient, factor: gradient * factor.to(gradient.type), name="clip_grad")


def clip_grad_norm(grads: Any, max_norm: float, *, scale: bool = True) -> tuple[Any, Any]:
    """Multiply gradients by ``min(1, max_norm / (norm + 1e-6))``, with the norm of all of them together, in place.

    Args:
        grads: An array, or a list of them.
        max_norm: Above 0.
        scale: Whether the gradients are scaled; without, :func:`adamw` can do it by its ``grad_scale``.

    Returns:
        The norm before, and the factor: arrays of no dimensions, which the host has not waited for.

    >>> import numpy as np
    >>> grad = np.array([3.0, 4.0])
    >>> norm, factor = clip_grad_norm(grad, 1.0)
    >>> norm, grad.round(3)
    (array(5.), array([0.6, 0.8]))
    """
    if arguments.number("max_norm", max_norm, 0) == 0:
        raise arguments.wrong("max_norm is 0; it can be any number above")
    found = _squares(grads, float(max_norm))
    norm, factor = (found[place : place + 1].reshape(()) for place in (1, 2))
    if scale:
        for grad in grads if isinstance(grads, (list, tuple)) else [grads]:
            _CLIP.launch({"grad": grad, "factor": factor}, out=grad, dtype=arguments.floating("grad", grad))
    return norm, factor
