"""Kernels that the sanitizer runs over: how a test registers and launches them.

A kernel's bug is on the lines that end in ``# !``; a finding must name these lines and no others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ptxdsl import EmulationError, empty, ptx_kernel, use

__all__ = ["FULL", "THREADS", "Case", "Cases", "run"]

FULL = 0xFFFFFFFF
THREADS = 128


class Case(NamedTuple):
    """A kernel, how to launch it, and the error wanted; None for a correct one."""

    kernel: Any
    error: type[EmulationError] | None
    lines: frozenset[int]
    grid: int
    block: int | tuple[int, ...]
    constants: dict[str, Any]
    shared: int
    fresh: bool


class Cases(dict[str, Case]):
    """The kernels of a file by name and constants."""

    def register(
        self, error: type[EmulationError] | None, *variants: dict[str, Any], grid: int = 1,
        block: int | tuple[int, ...] = THREADS, shared: int = 0, fresh: bool = False,
    ) -> Callable[[Any], Any]:
        """Register a kernel ``(x, y, flag)``, once for each set of constants."""

        def add(function: Any) -> Any:
            source, first = inspect.getsourcelines(function)
            lines = frozenset(first + n for n, line in enumerate(source) if line.rstrip().endswith("# !"))
            kernel = ptx_kernel(function)
            for constants in variants or ({},):
                name = "-".join([function.__name__, *(str(value) for value in constants.values())])
                assert name not in self, name
                self[name] = Case(kernel, error, lines, grid, block, constants, shared, fresh)
            return function

        return add


def run(chosen: Case, **options: Any) -> np.ndarray[Any, Any]:
    x, y, flag = np.arange(8192, dtype=np.uint32), np.zeros(8192, np.uint32), np.zeros(64, np.uint32)
    target: Any = empty(8192, np.uint32, backend="emulator") if chosen.fresh else y
    with use("emulator"):
        launch = chosen.kernel.configure(chosen.grid, chosen.block, shared=chosen.shared, sanitize=True, **options)
        launch(x, target, flag, **chosen.constants)
    return y
