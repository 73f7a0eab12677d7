"""What the checks of all domains are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import Kernel
from ...bench import Row

__all__ = ["Entry"]


class Entry(NamedTuple):
    """A function of the library: its check, and the kernels that it launches at their default configurations.

    ``lowest`` is the lowest target of those kernels, or sm_80 for those with bf16 in their names where that is higher;
    one with a letter is the only one of its family. ``registers`` are the most that a thread may take.
    """

    check: Callable[[], Row]
    kernels: Callable[[], list[Kernel]]
    lowest: str = "sm_75"
    registers: int = 128
