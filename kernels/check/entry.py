"""What the checks of all domains are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ... import Kernel
from ...bench import Row

__all__ = ["Entry", "Resources", "resources"]


class Entry(NamedTuple):
    """A function of the library: its check, and the kernels that it launches at their default configurations.

    ``lowest`` is the lowest target of those kernels that name none, or sm_80 for those with bf16 in their names where
    that is higher; one with a letter is the only one of its family. ``registers`` are the most that a thread may take.
    """

    check: Callable[[], Row]
    kernels: Callable[[], list[Kernel]]
    lowest: str = "sm_75"
    registers: int = 128


class Resources(NamedTuple):
    """What a kernel takes of a GPU: registers of a thread, bytes of shared memory, bytes spilled, SASS instructions."""

    kernel: str
    registers: int
    shared: int
    spilled: int
    instructions: int


def resources(kernel: Kernel, arch: str) -> Resources:
    """What a kernel takes of a GPU such as ``"sm_90a"``; instructions are counted without padding."""
    taken = kernel.attributes(arch=arch)
    spilled = taken.spill_store_bytes + taken.spill_load_bytes
    instructions = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?!NOP)\S", kernel.sass(arch=arch), re.MULTILINE))
    return Resources(kernel.entry, taken.num_regs, taken.shared_size_bytes, spilled, instructions)
