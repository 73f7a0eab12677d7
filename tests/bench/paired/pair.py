"""What a pair is: a kernel in ptxdsl, the same algorithm in CUDA C++ under the same name, and a launch for both."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ptxdsl import Kernel
from ptxdsl.gpu.tools import find_tool
from real.case import Case

__all__ = ["ARCH", "Pair", "compiled", "nvcc", "pair", "pairs"]

ARCH = "sm_90a"
HERE = Path(__file__).parent
MakesCase = Callable[[np.random.Generator], Case]


class Pair(NamedTuple):
    """A kernel, the family whose ``.cu`` has its peer, and the SASS opcode that counts how much a loop's body does."""

    kernel: Kernel
    family: str
    work: str
    case: MakesCase

    @property
    def name(self) -> str:
        """The name of both kernels."""
        return self.kernel.entry


_known: list[Pair] = []


def pair(kernel: Kernel, work: str) -> Callable[[MakesCase], MakesCase]:
    """Register a pair by the function that makes a launch of it."""
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def register(case: MakesCase) -> MakesCase:
        _known.append(Pair(kernel, family, work, case))
        return case

    return register


def pairs() -> list[Pair]:
    """All pairs, a family after the other."""
    for source in sorted(HERE.glob("*.cu")):
        importlib.import_module(f"{__package__}.{source.stem}")
    return list(_known)


def nvcc() -> str | None:
    """The nvcc to use; its own ptxas is not asked, so that one assembler makes both sides' code."""
    return next(iter(find_tool("nvcc")), None)


@cache
def compiled(family: str) -> str:
    """The PTX that nvcc makes of a family."""
    found = nvcc()
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        source = str(HERE / f"{family}.cu")
        subprocess.run([found, "-O3", f"-arch={ARCH}", "-std=c++17", "-ptx", "-o", str(made), source], check=True)
        return made.read_text()
