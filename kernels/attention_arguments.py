"""What attention in all its forms asks of its arguments."""

from __future__ import annotations

from math import sqrt

from . import arguments

__all__ = ["HEAD_DIMS", "check_heads", "check_size", "factor_of"]

HEAD_DIMS = range(16, 257, 8)


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
