"""``scaled_matmul``: products of 8- and 4-bit floats that share scales by blocks along k (OCP MX, NVFP4)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import ScalarType, bf16, capability, cdiv, e2m1x2, e4m3, e5m2, ue8m0
from .. import arguments, matrices
from ..blackwell import scaled
from ..tensor_products import RESULTS, Product

__all__ = ["scaled_matmul", "to_blocked"]

_EIGHT: dict[str, ScalarType] = {"float8_e4m3fn": e4m3, "float8_e5m2": e5m2}
_PACKED = ("float4_e2m1fn_x2", "uint8")
_SCALES: dict[str, tuple[ScalarType, int]] = {
    "float8_e8m0fnu": (ue8m0, 32), "uint8": (ue8m0, 32), "float8_e4m3fn": (e4m3, 16),
}
"""The types of scales, and how many elements share one."""
_LINES, _GROUP, _PIECE = 128, 4, 512
_CAPABILITIES = (0, 100, 103)
"""Of the emulator, and of GPUs."""


def scaled_matmul(
    a: Any, b: Any, scale_a: Any, scale_b: Any, *, bias: Any = None, alpha: float = 1.0,
    dtype: ScalarType | None = None, out: Any = None, **launch: Any,
) -> Any:
    """``alpha * (a * scales of a) @ (b * scales of b) + bias``, as ``torch._scaled_mm`` has it of MX formats and NVFP4.

    Args:
        a: ``[M, K]`` float8_e4m3fn or float8_e5m2; or two e2m1 in a byte, the first in its low bits: ``[M, K / 2]``
            float4_e2m1fn_x2 or uint8.
        b: ``[K, N]`` or ``[K / 2, N]``, of the same kind. What is contiguous along k is read where it is.
        scale_a: Factors of blocks along k: float8_e8m0fnu (or its bits as uint8) of 32 elements, or float8_e4m3fn
            of 16, which 4-bit elements may have. ``[M, ceil(K / block)]``, or as :func:`to_blocked` has them, with one
            dimension or three; finite also beyond the edges.
        scale_b: ``[ceil(K / block), N]``, or as ``to_blocked`` has those of b's transpose.
        bias: ``[N]``, float16, bfloat16 or float32, or None.
        alpha: Factor of the product: that of NVFP4's two tensors.
        dtype: Of a new ``out``: f16, bf16 or f32; bf16 by default.
        out: Where to put the result, ``[M, N]`` with contiguous rows.
        launch: Options of `blackwell.scaled.launch` and of ``Kernel.configure``.

    For sm_100a and sm_103a (`blackwell.scaled`); there is no other kernel. Sums are in float32.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import ml_dtypes
    >>> a, b = np.ones((2, 64), ml_dtypes.float8_e4m3fn), np.ones((64, 3), ml_dtypes.float8_e4m3fn)
    >>> halves, ones = np.full((2, 2), 126, np.uint8), np.full((2, 3), 127, np.uint8)
    >>> scaled_matmul(a, b, halves, ones)[0].tolist()
    [32.0, 32.0, 32.0]
    """
    found = capability(launch.get("backend"))
    if found not in _CAPABILITIES:
        raise arguments.wrong(
            f"scales of blocks need compute capability 10.0 or 10.3, and the GPU has {found / 10}",
            hint='on the emulator: `with ptxdsl.use("emulator"):`',
        )
    left, kind = _elements("a", a)
    right, other = _elements("b", b)
    if (kind is e2m1x2) != (other is e2m1x2):
        names = [arguments.dtype_name(each) for each in (a, b)]
        raise arguments.wrong(f"`a` has dtype {names[0]} and `b` {names[1]}; wanted are both of 8 bits or both of 4")
    m, depth = _shape("a", left, ["M", "K"], a)
    _, n = _shape("b", right, [depth, "N"], b)
    if min(m, n, depth) < 1:
        raise arguments.wrong(f"a has shape {[m, depth]} and b {[depth, n]}; every extent must be 1 or more")
    scale_type, block = _scale_type(scale_a, scale_b, kind)
    blocks = cdiv(depth * kind.lanes, block)
    out = _result(out, left, (m, n), dtype, a=a, b=b, scale_a=scale_a, scale_b=scale_b, bias=bias)
    if bias is not None:
        arguments.expect("bias", bias, [n], list(RESULTS))
    factors = (
        _blocked("scale_a", scale_a, (m, blocks), False), _blocked("scale_b", scale_b, (n, blocks), True)
    )
    ways = (False,) if kind is e2m1x2 else (False, True)
    stored, turned = matrices.store(left, ways), matrices.store(right, tuple(not way for way in ways))
    product = Product(
        stored.array, turned.array, out, (m, n, depth), (kind, other, RESULTS[arguments.dtype_name(out)]),
        (stored.turned, not turned.turned), None if bias is None else RESULTS[arguments.dtype_name(bias)],
        matrices.fits(out),
    )
    return scaled.launch(
        product, factors, block, scale_type, bias=bias, scale=arguments.number("alpha", alpha), **launch
    )


def to_blocked(scales: Any, out: Any = None) -> Any:
    """Scales ``[rows, blocks]`` in the order in which tensor cores take them, 0 beyond the edges.

    Args:
        scales: float8_e8m0fnu, float8_e4m3fn or uint8, one for each block of a row.
        out: uint8 ``[ceil(rows / 128), ceil(blocks / 4), 512]``; a new array if None.

    Returns:
        ``out``: of 128 rows and four blocks 512 bytes, of which ``r % 32 * 16 + r // 32 * 4 + b % 4`` is that of row r
        and block b. torch calls it ``SWIZZLE_32_4_4``.

    Raises:
        LaunchError: A shape or dtype that does not fit.

    >>> to_blocked(np.arange(6, dtype=np.uint8).reshape(3, 2))[0, 0, :36].reshape(9, 4)[::4].tolist()
    [[0, 1, 0, 0], [2, 3, 0, 0], [4, 5, 0, 0]]
    """
    raw = _raw("scales", scales, _SCALES)
    rows, blocks = _shape("scales", raw, ["rows", "blocks"])
    shape = cdiv(rows, _LINES), cdiv(blocks, _GROUP), _PIECE
    out = arguments.output(out, raw, shape, arguments.DTYPES["uint8"], scales=raw)
    if 0 not in shape:
        scaled.to_blocked(raw, out)
    return out


def _raw(name: str, array: Any, allowed: Any) -> Any:
    """The bits of an array of bytes as uint8, of the same memory."""
    arguments.one_of(f"the dtype of `{name}`", arguments.dtype_name(array), list(allowed))
    if arguments.dtype_name(array) == "uint8":
        return array
    return array.view(sys.modules["torch"].uint8 if hasattr(array, "data_ptr") else np.uint8)


def _elements(name: str, array: Any) -> tuple[Any, ScalarType]:
    """The array as it is stored, and its scalar type."""
    found = _EIGHT.get(arguments.dtype_name(array))
    return (_raw(name, array, [*_EIGHT, *_PACKED]), e2m1x2) if found is None else (array, found)


def _shape(name: str, array: Any, shape: list[Any], given: Any = None) -> tuple[int, ...]:
    """That of the array, as ``given`` before its bits were taken, if it has this one."""
    array = array if given is None else given
    return arguments.expect(name, array, shape, [arguments.dtype_name(array)], contiguous=False)


def _scale_type(scale_a: Any, scale_b: Any, kind: ScalarType) -> tuple[ScalarType, int]:
    """The type of the scales of both, and how many elements share one."""
    names = [arguments.dtype_name(each) for each in (scale_a, scale_b)]
    allowed = list(_SCALES) if kind is e2m1x2 else [name for name in _SCALES if _SCALES[name][1] == 32]
    for side, name in zip("ab", names):
        arguments.one_of(f"the dtype of `scale_{side}`", name, allowed)
    if _SCALES[names[0]] != _SCALES[names[1]]:
        raise arguments.wrong(f"`scale_a` has dtype {names[0]} and `scale_b` {names[1]}; wanted are scales of one kind")
    return _SCALES[names[0]]


def _blocked(name: str, scales: Any, shape: tuple[int, int], turned: bool) -> Any:
    """Scales as the kernel takes them, of so many lines and blocks; ``turned``: a column for each line."""
    raw = _raw(name, scales, _SCALES)
    lines, blocks = shape
    wanted = cdiv(lines, _LINES), cdiv(blocks, _GROUP), _PIECE
    if raw.ndim == 2:
        _shape(name, raw, [blocks, lines] if turned else [lines, blocks], scales)
        return to_blocked(matrices.swapped(raw) if turned else raw)
    if raw.ndim not in (1, 3) or int(np.prod(raw.shape)) != int(np.prod(wanted)):
        plain = [blocks, lines] if turned else [lines, blocks]
        raise arguments.wrong(
            f"`{name}` has shape {list(raw.shape)}; wanted is {plain}, or {list(wanted)} as `to_blocked` gives"
        )
    (found,) = arguments.aligned(16, **{name: arguments.dense(raw)})
    return found.reshape(wanted)


def _result(out: Any, like: Any, shape: tuple[int, int], dtype: ScalarType | None, **inputs: Any) -> Any:
    if out is None:
        result = bf16 if dtype is None else dtype
        if result not in RESULTS.values():
            raise arguments.wrong(f"dtype is {result}; it can be f16, bf16 or f32")
        return arguments.empty_like(like, shape, result)
    arguments.expect("out", out, list(shape), list(RESULTS), contiguous=False)
    arguments.expect_output(out, **inputs)
    return out
