"""The current streams of torch and CuPy, on which launches with their arrays go."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..launch.arrays import library_of

__all__ = ["stream_of"]


def stream_of(owner: object, ordinal: int) -> Callable[[], int] | None:
    """A function for the current stream of the library that an array belongs to; None if it has none."""
    library = library_of(owner)
    if library == "torch":
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return lambda: int(raw(ordinal))
        return lambda: int(torch.cuda.current_stream(ordinal).cuda_stream)
    if library == "cupy":
        return lambda: int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None
