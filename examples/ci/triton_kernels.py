"""The kernels that Triton compiles."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale(x, a, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply x[:n] by a."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * a, i < n)
