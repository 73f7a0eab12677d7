"""The kernels of ``gpu_latency.py`` in Triton, which reads the source of functions of a module."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

__all__ = ["empty", "saxpy"]


@triton.jit
def empty() -> None:
    pass


@triton.jit
def saxpy(n: Any, a: Any, x: Any, y: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, a * tl.load(x + i, mask) + tl.load(y + i, mask), mask)
