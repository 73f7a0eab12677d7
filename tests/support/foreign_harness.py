"""Loads modules of PTX without their headers and runs them, for the tests of PTX that others wrote."""

from __future__ import annotations

import ptxdsl
from ptxdsl.kernel.ptx_module import PtxModule

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def load(text: str) -> PtxModule:
    """A module of PTX without its header."""
    return ptxdsl.load(HEADER + text)


def emulated(module: PtxModule, block: int, *args: object, shared: int = 0) -> None:
    """Run the only kernel of a module, one block of it."""
    module[next(iter(module))].configure(1, block, backend="emulator", shared=shared)(*args)
