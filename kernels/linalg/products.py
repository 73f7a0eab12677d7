"""``matmul``: which kernel a product takes, and how its matrices are given to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ... import Kernel, ScalarType, bf16, cdiv, f16, f32, f64, s32
from .. import arguments, elementwise, matrices
from ..autograd import differentiable
from . import generations, simt, tensor_cores
from .epilogue import ACTIVATIONS, Epilogue

__all__ = ["matmul"]

_PAIRS = {
    **{name: (name,) for name in arguments.FLOATS},
    **dict.fromkeys(("int8", "uint8"), ("int8", "uint8")),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), ("float8_e4m3fn", "float8_e5m2")),
}
"""The dtypes that b may have, by that of a."""


def _matrices(name: str, array: Any, vector: int) -> Any:
    """The array with two dimensions at least; ``vector`` is the axis that a vector lacks."""
    shape = arguments.expect_array(name, array, _PAIRS)
    if not shape:
        raise arguments.wrong(f"`{name}` has no dimensions; wanted is a vector, a matrix, or several")
    if len(shape) > 1:
        return array
    return array[None, :] if vector == 0 else array[:, None]


def _batches(shape: tuple[int, ...], arrays: list[Any]) -> Iterator[list[Any]]:
    """The arrays as batches ``[B, rows, columns]`` of one B, or of B 1 for what is broadcast, part by part."""
    if not shape:
        yield [array.reshape(1, *array.shape[-2:]) if array.ndim == 2 else array[None] for array in arrays]
        return
    flat = [_flattened(array, shape) for array in arrays]
    if all(each is not None for each in flat):
        for some in arguments.spans(math.prod(shape)):
            yield [each if each.shape[0] == 1 else each[some] for each in flat]
        return
    for place in range(shape[0]):
        inner = [
            array if array.ndim < len(shape) + 2 else array[place if array.shape[0] > 1 else 0] for array in arrays
        ]
        yield from _batches(shape[1:], inner)


def _flattened(array: Any, shape: tuple[int, ...]) -> Any:
    """The batch with one dimension for those of ``shape``, of which it has all or none; None where it has some."""
    own = array.shape[:-2]
    if math.prod(own) == 1:
        return array.reshape(1, *array.shape[-2:]) if array.ndim != 3 else array
    if tuple(own) != shape:
        return None
    steps = arguments.strides(array)[:-2]
    if any(a != b * extent for a, b, extent in zip(steps, steps[1:], own[1:])):
        return None
    return array.reshape(-1, *array.shape[-2:])


def _kernel(
    kinds: tuple[ScalarType, ScalarType], epilogue: Epilogue, turned: tuple[bool, bool], batched: tuple[bool, bool],
    tf32: bool, shape: tuple[int, int],
) -> tuple[Kernel, tuple[int, int], int, int]:
    """The kernel for a product, the tile of its blocks, their threads, and their shared memory."""
    if kinds[0] is f32 and not tf32:
        return simt.product_kernel(epilogue, turned, batched), (simt.TILE, simt.TILE), simt.THREADS, 0
    form = tensor_cores.SMALL
    if kinds[0] is not f64 and min(shape) >= 256:
        form = tensor_cores.LARGE
    kernel = tensor_cores.product_kernel(*kinds, epilogue, turned, batched, form, tf32)
    return kernel, form.tile, form.threads, form.shared


def _gradients(
    a: Any, b: Any, transpose_a: bool, transpose_b: bool, bias: Any, activation: str | None, residual: Any,
    alpha: float, beta: float, tf32: bool, before: Any, grad_out: Any, needs: frozenset[str],
) -> Mapping[str, Any]:
    """With A and B the matrices that are multiplied: grad B^T and A^T grad."""
    found: dict[str, Any] = {}
    if "residual" in needs:
        found["residual"] = elementwise.scale(grad_out, beta).sum_to_size(residual.shape).to(residual.dtype)
    grad = grad_out
    if activation is not None:
        grad = _backward_of(activation, grad, before)
    if "bias" in needs:
        found["bias"] = grad.sum_to_size(bias.shape).to(bias.dtype)
    if b.ndim == 1:
        grad = grad.unsqueeze(-1)
    if a.ndim == 1:
        grad = grad.unsqueeze(-2)
    grad = grad.to(a.dtype)
    wide_a, wide_b = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    swap_a, swap_b = transpose_a and a.ndim > 1, transpose_b and b.ndim > 1
    if "a" in needs:
        da = (
            matmul(wide_b, grad, transpose_a=swap_b, transpose_b=True, alpha=alpha, tf32=tf32) if swap_a
            else matmul(grad, wide_b, transpose_b=not swap_b, alpha=alpha, tf32=tf32)
        )
        found["a"] = da.sum_to_size(wide_a.shape).reshape(a.shape)
    if "b" in needs:
        db = (
            matmul(grad, wide_a, transpose_a=True, transpose_b=swap_a, alpha=alpha, tf32=tf32) if swap_b
            else matmul(wide_a, grad, transpose_a=not swap_a, alpha=alpha, tf32=tf32)
        )
        found["b"] = db.sum_to_size(wide_b.shape).reshape(b.shape)
    return found


def _backward_of(activation: str, grad: Any, before: Any) -> Any:
    if activation.startswith("gelu"):
        return elementwise.gelu_backward(grad, before, "tanh" if activation == "gelu_tanh" else "none")
    result: Any = getattr(elementwise, f"{activation}_backward")(grad, before)
    return result


def _recorded(a: Any, b: Any, **given: Any) -> tuple[Any, Mapping[str, Any]]:
    """The product with what comes before the activation kept for the backward pass."""
    activation = given["activation"]
    if activation is None:
        return _product(a, b, **given), {"before": None}
    arguments.one_of("activation", activation, [None, *ACTIVATIONS])
    before = _product(a, b, **{**given, "activation": None, "residual": None})
    out = (
        elementwise.gelu(before, "tanh" if activation == "gelu_tanh" else "none") if activation.startswith("gelu")
        else getattr(elementwise, activation)(before)
    )
    if given["residual"] is not None:
        out = elementwise.residual_add(given["residual"], out, given["beta"])
    return out, {"before": before}


@differentiable("a", "b", "bias", "residual", backward=_gradients, recorded=_recorded)
def matmul(
    a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False, bias: Any = None,
    activation: str | None = None, residual: Any = None, alpha: float = 1.0, beta: float = 1.0,
    dtype: ScalarType | None = None, tf32: bool = False, tensor_cores: str | None = None, out: Any = None,
) -> Any:
    """activation(alpha a @ b + bias) + beta residual, with the shapes of ``numpy.matmul``.

    Args:
        a: ``[..., M, K]``, or ``[K]``: float16, bfloat16, float32, float64, int8, uint8, float8_e4m3fn or float8_e5m2.
        b: ``[..., K, N]``, or ``[K]``, of a's dtype; 8-bit integers go with each other, and 8-bit floats.
        transpose_a: Whether a is given as ``[..., K, M]``.
        transpose_b: Whether b is given as ``[..., N, K]``.
        bias: ``[N]``, floating point (int32 where the result is).
        activation: ``"relu"``, ``"gelu"``, ``"gelu_tanh"``, ``"silu"``, ``"sigmoid"`` or ``"tanh"``.
        residual: Of the result's shape and dtype; may be ``out``.
        alpha: Factor of the product.
        beta: Factor of the residual.
        dtype: The result's: a's by default, int32 of 8-bit integers, float32 of 8-bit floats; float16, bfloat16 and
            float32 for all but float64.
        tf32: Whether float32 is rounded to tf32 and multiplied by tensor cores.
        tensor_cores: The instructions that multiply: "mma" (mma.sync), or, of float16, bfloat16 and 8-bit floats with
            no residual and one b, "wgmma" (sm_90a: `hopper.matmul`) or "tcgen05" (sm_100a: `blackwell.matmul`), or of
            at most 64 rows (of 8-bit floats 16) "stream" (sm_90: `hopper.stream`, mma.sync with k split). None takes
            what the GPU has where the product can be made so and is large, on the emulator "mma".
        out: Where to put the result; a new array of a's kind if None.

    Batches are broadcast. Rows or columns of a matrix are contiguous, or it is copied. Sums are in float32, in float64
    for float64, exact for integers; by wgmma those of 8-bit floats have fewer bits on a GPU, so that it is taken for
    them only where it is asked for.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> a, b = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0], [4.0, 6.0]])
    >>> matmul(a, b, bias=np.array([0.0, -20.0]), activation="relu")
    array([[11.,  0.]])
    """
    return _product(
        a, b, transpose_a=transpose_a, transpose_b=transpose_b, bias=bias, activation=activation, residual=residual,
        alpha=alpha, beta=beta, dtype=dtype, tf32=tf32, tensor_cores=tensor_cores, out=out,
    )


def _product(
    a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, bias: Any, activation: str | None, residual: Any,
    alpha: float, beta: float, dtype: ScalarType | None, tf32: bool, tensor_cores: str | None, out: Any,
) -> Any:
    left, right = _matrices("a", a, 0), _matrices("b", b, 1)
    if arguments.flag("transpose_a", transpose_a) and a.ndim > 1:
        left = matrices.swapped(left)
    if arguments.flag("transpose_b", transpose_b) and b.ndim > 1:
        right = matrices.swapped(right)
    kinds = arguments.scalar_type("a", a), arguments.scalar_type("b", b, _PAIRS[arguments.dtype_name(a)])
    batch, (rows, depth), columns = _batch(a, b, left, right), left.shape[-2:], right.shape[-1]
    shape = (*batch, *([rows] if a.ndim > 1 else []), *([columns] if b.ndim > 1 else []))
    result = _result_type(kinds[0], dtype)
    if arguments.flag("tf32", tf32) and kinds[0] is not f32:
        raise arguments.wrong(f"tf32 is True, and `a` has dtype {arguments.dtype_name(a)}; wanted is float32")
    arguments.one_of("activation", activation, [None, *ACTIVATIONS])
    arguments.one_of("tensor_cores", tensor_cores, [None, *generations.WORDS])
    if bias is not None:
        arguments.expect("bias", bias, [columns], ["int32"] if result is s32 else list(arguments.FLOATS))
    if residual is not None:
        arguments.expect("residual", residual, list(shape), [arguments.name_of(result)])
    alpha, beta = arguments.number("alpha", alpha), arguments.number("beta", beta)
    if result is s32 and (activation is not None or (alpha, beta) != (1, 1)):
        raise arguments.wrong(
            "the result is int32, which takes neither an activation nor factors", hint="`dtype=ptxdsl.f32`"
        )
    out = arguments.output(out, a, shape, result, in_place=["residual"], a=a, b=b, bias=bias, residual=residual)
    if 0 in shape:
        return out
    epilogue = Epilogue(
        result, None if bias is None else arguments.scalar_type("bias", bias), None if residual is None else result,
        activation, (alpha, beta) != (1, 1),
    )
    if not depth:  # a sum of nothing, as a product of zeros, since an empty array has no rows to copy
        left, right = _zeros(a, kinds[0], (*left.shape[:-1], 1)), _zeros(b, kinds[1], (*right.shape[:-2], 1, columns))
    target = out.reshape((*batch, rows, columns))
    pair = generations.pair(left, right, target)
    word = generations.choose(tensor_cores, pair, arguments.dtype_name(a), epilogue, tf32)
    if pair is not None and word != "mma":
        generations.multiply(word, pair, epilogue, bias, alpha)
        return out
    others = [] if residual is None else [residual.reshape(target.shape)]
    for part in _batches(tuple(batch), [left, right, target, *others]):
        _launch(part, kinds, epilogue, tf32, bias, alpha, beta)
    return out


def _batch(a: Any, b: Any, left: Any, right: Any) -> tuple[int, ...]:
    """The extents of the result before its last two, of matrices that must multiply; a and b are as they were given."""
    depth, below = left.shape[-1], right.shape[-2]
    if depth != below:
        told = [f"`{name}` {list(array.shape)}" for name, array in (("a", a), ("b", b))]
        raise arguments.wrong(f"{told[0]} and {told[1]} do not multiply: K is {depth} and {below}")
    try:
        return np.broadcast_shapes(tuple(left.shape[:-2]), tuple(right.shape[:-2]))
    except ValueError:
        raise arguments.wrong(f"batches that do not broadcast: `a` {list(a.shape)} and `b` {list(b.shape)}") from None


def _launch(
    arrays: list[Any], kinds: tuple[ScalarType, ScalarType], epilogue: Epilogue, tf32: bool, bias: Any, alpha: float,
    beta: float,
) -> None:
    a, b, target = arrays[:3]
    aligned = kinds[0] is not f32 or tf32
    turned = kinds[0].bytes != 2
    left, right = matrices.store(a, (False, True), aligned), matrices.store(b, (turned, not turned), aligned)
    ways, batched = (left.turned, right.turned), (a.shape[0] > 1, b.shape[0] > 1)
    kernel, tile, threads, memory = _kernel(kinds, epilogue, ways, batched, tf32, tuple(target.shape[1:]))
    factors = (1, 1) if epilogue.out is s32 else (alpha, beta)
    batch, rows, columns = target.shape
    for tiles in arguments.spans(cdiv(rows, tile[0])):
        part = slice(tiles.start * tile[0], min(tiles.stop * tile[0], rows))
        own = left.array[:, :, part] if left.turned else left.array[:, part]
        given = own[0, 0] if bias is None else bias
        residual = arrays[3][:, part] if len(arrays) > 3 else own
        grid = cdiv(columns, tile[1]), tiles.stop - tiles.start, batch
        kernel.configure(grid, threads, shared=memory)(own, right.array, target[:, part], given, residual, *factors)


def _zeros(like: Any, kind: ScalarType, shape: tuple[int, ...]) -> Any:
    made = arguments.empty_like(like, shape, kind)
    made[...] = 0
    return made


def _result_type(kind: ScalarType, dtype: ScalarType | None) -> ScalarType:
    narrow = kind.bytes == 1
    usual = f32 if narrow and kind.kind == "f" else s32 if narrow else kind
    allowed = [f64] if kind is f64 else [usual, *(each for each in (f16, bf16, f32) if each is not usual)]
    if dtype is not None and dtype not in allowed:
        raise arguments.wrong(f"dtype is {dtype!r:.60}; it can be {' or '.join(map(str, allowed))}")
    return usual if dtype is None else dtype
