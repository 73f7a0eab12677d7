"""What a kernel of the corpus is: where its PTX lies, and how to make a launch of it with data and what is right."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ptxdsl.bench import error_of

__all__ = ["HERE", "Case", "Kernel", "kernel", "kernels"]

HERE = Path(__file__).parent


class Case(NamedTuple):
    """A launch: its geometry and arguments, what numpy expects in the arguments with these places, and how exactly."""

    grid: Any
    block: Any
    arguments: list[Any]
    expected: dict[int, Any]
    allowed: float = 0.0
    outliers: float = 0.0
    """The share of the results that may be off by more, where a rounding decides a branch."""
    native: list[Any] | None = None
    """The arguments of the function in C, where they are not those of the kernel."""
    shared: int = 0
    cluster: Any = None
    variables: tuple[tuple[str, Any], ...] = ()
    """Variables of the module and what they are set to before the launch."""

    def error(self, place: int) -> float:
        """The error of the argument with this place, without the outliers."""
        got, want = np.broadcast_arrays(self.arguments[place], self.expected[place])
        allowed = int(self.outliers * got.size)
        if allowed:
            wrong = np.flatnonzero(got != want)
            if wrong.size <= allowed:
                return 0.0
        return error_of(got, want)


MakesCase = Callable[[np.random.Generator, bool], Case]


class Kernel(NamedTuple):
    """A kernel of the corpus: its name, the compiler's, its family, the file and entry of its PTX, and its launch."""

    name: str
    compiler: str
    family: str
    unit: str
    entry: str
    case: MakesCase
    """Makes the data; with True as the second argument little of it, for tests."""


_known: dict[str, Kernel] = {}


def kernel(name: str, entry: str = "", *, compiler: str = "nvcc") -> Callable[[MakesCase], MakesCase]:
    """Register a kernel by the function that makes a launch of it; the entry is called as the kernel if not given.

    A family is one file of PTX, but for compilers that make a module of each kernel.
    """
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def register(case: MakesCase) -> MakesCase:
        _known[name] = Kernel(name, compiler, family, family if compiler == "nvcc" else name, entry or name, case)
        return case

    return register


def kernels() -> list[Kernel]:
    """All kernels, a family after the other."""
    for loops in sorted(HERE.glob("*.c")):
        importlib.import_module(f"{__package__}.{loops.stem}")
    return list(_known.values())
