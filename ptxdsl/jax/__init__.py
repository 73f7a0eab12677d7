"""Kernels as functions of JAX: :func:`function` makes one that works under ``jit``, ``grad`` and ``vmap``.

A launch is a call of XLA's foreign function interface, so that a compiled program contains it and nothing is copied:
on CPU devices it runs in the emulator, on CUDA devices on the GPU, in the stream that XLA gives it.
"""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}, which ptxdsl.jax is for: `pip install 'ptxdsl[jax]'`") from None

from .functions import Function, function

__all__ = ["Function", "function"]
