"""What attention in all its forms asks of its arguments."""

from __future__ import annotations

from math import sqrt
from typing import Any

from .. import ScalarType, backend_name, bf16, capability, f16

from . import arguments
from .flash_wmma import ALIGNMENT
from .hopper.flash_backward import DIMS as GRADIENT_DIMS

__all__ = [
    "ALIGNMENT", "HEAD_DIMS", "check_heads", "check_size", "chosen_for_gradients", "chosen_tensor_cores", "factor_of",
]

HEAD_DIMS = range(16, 257, 8)
_HOPPER = 90


def factor_of(scale: float | None, dim: int) -> float:
    """The factor of the scores."""
    return 1 / sqrt(dim) if scale is None else arguments.number("scale", scale)


def check_size(what: str, elements: int) -> None:
    """Within one head indices have 32 bits; heads and sequences are found with 64."""
    if elements >= 1 << 31:
        raise arguments.wrong(f"{what} is {elements}; it must be below 2**31")


def check_heads(heads: int, key_heads: int, dim: int) -> None:
    """That there is a kernel for the head dimension, and that heads share those of keys evenly."""
    arguments.size("the head dimension D", dim, HEAD_DIMS)
    if key_heads < 1 or heads < 1 or heads % key_heads:
        raise arguments.wrong(f"q has {heads} heads and k has {key_heads}; the first must be a multiple of the second")
    if heads > arguments.GRID:
        raise arguments.wrong(f"q has {heads} heads; the most are {arguments.GRID}")


def chosen_tensor_cores(
    wanted: bool | str | None, dtype: ScalarType, words: tuple[str, ...] = ("wgmma", "wmma"), **arrays: Any
) -> str:
    """The instructions of the kernel that is to run, one of ``words``, "" for the FP32 kernel; an error if it cannot.

    The first word needs an H100, the last one is what other GPUs have.
    """
    if wanted not in (None, False, True, *words):
        known = " or ".join(f'"{word}"' for word in words)
        raise arguments.wrong(f"tensor_cores is {wanted!r:.60}; it can be True, False, None, {known}")
    if wanted is None:
        fits = dtype in (f16, bf16) and arguments.is_aligned(ALIGNMENT, *arrays.values())
        wanted = fits and backend_name() != "emulator" and ("wmma" in words or capability() == _HOPPER)
    if not wanted:
        return ""
    if dtype not in (f16, bf16):
        came = arguments.dtype_name(arrays["q"])
        raise arguments.wrong(f"tensor cores take float16 or bfloat16, not {came}", hint="leave `tensor_cores` out")
    arguments.expect_aligned(ALIGNMENT, **arrays)
    if isinstance(wanted, str):
        return wanted
    return words[0] if len(words) == 1 or capability() == _HOPPER else words[-1]


def chosen_for_gradients(wanted: str | None, dtype: ScalarType, dim: int) -> str:
    """The instructions of the backward pass."""
    most = GRADIENT_DIMS[-1]
    if wanted not in (None, "wgmma", "mma"):
        raise arguments.wrong(f'tensor_cores is {wanted!r:.60}; it can be None, "wgmma" or "mma"')
    if wanted == "wgmma" and (dtype not in (f16, bf16) or dim > most):
        came = f"{arguments.name_of(dtype)} and D = {dim}"
        raise arguments.wrong(f"wgmma makes gradients of float16 and bfloat16 with D up to {most}, not of {came}")
    if wanted is None and dtype in (f16, bf16) and dim <= most:
        return "wgmma" if backend_name() != "emulator" and capability() == _HOPPER else "mma"
    return wanted or "mma"
