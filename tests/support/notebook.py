"""Cells of a notebook that define a kernel and what it depends on, for the tests of what a launch sees."""

from __future__ import annotations

import linecache
import types
from itertools import count

import numpy as np

__all__ = ["Notebook", "kernel"]

PRELUDE = """
import dataclasses, enum, functools, math, types
import numpy as np
from ptxdsl import Array, Ptr, const, f32, loop, ptx, ptx_func, ptx_kernel, reg, s32, select, shared, u32, when
"""
_cells = count()


class Notebook:
    """Cells that are executed one after the other in one module."""

    def __init__(self, first: str) -> None:
        self.module = types.ModuleType(f"notebook_{next(_cells)}")
        self.run(PRELUDE)
        self.run(first)

    def run(self, cell: str) -> None:
        file = f"<cell {next(_cells)}>"
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        exec(compile(cell, file, "exec", dont_inherit=True), self.module.__dict__)

    def launched(self) -> int:
        """What the kernel stores when it is launched, by a launch that is bound once."""
        names = self.module.__dict__
        run = names.setdefault("bound", names["k"][1, 1])
        out = np.zeros(1, np.uint32)
        run(out)
        return int(out[0])

    @property
    def traces(self) -> int:
        return len(self.module.__dict__["k"]._known)


def kernel(body: str, before: str = "") -> str:
    return f"{before}\n@ptx_kernel\ndef k(out: Ptr[u32]):\n    " + body.replace("\n", "\n    ")
