"""Labelled programs for the sanitizer's races: how a test registers, launches and judges them.

A racy program names the kind of its finding, and its wrong lines end in ``# !``; a finding must name these and no
others. A program without a kind is ordered: whatever is found there is a false alarm.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ptxdsl import ptx_kernel, use
from ptxdsl.emulator.sanitizer.sanitizer import collect

__all__ = ["FULL", "Program", "Programs", "judge", "spin_until"]

FULL = 0xFFFFFFFF


class Program(NamedTuple):
    """A kernel ``(x, y, flag)``, the kind of its finding, the lines of it, and how to launch it.

    ``any_order``: whether it is found in whatever order warps and blocks run.
    """

    kernel: Any
    kind: str
    lines: frozenset[int]
    launch: dict[str, Any]
    constants: dict[str, Any]
    any_order: bool


class Programs(dict[str, Program]):
    """The programs of a file, by name and constants."""

    def add(
        self, *variants: dict[str, Any], kind: str = "", grid: int = 1, block: int = 64, cluster: int | None = None,
        any_order: bool = True,
    ) -> Callable[[Any], Any]:
        """Register a kernel, once for each set of constants."""

        def register(function: Any) -> Any:
            source, first = inspect.getsourcelines(function)
            lines = frozenset(first + n for n, line in enumerate(source) if line.rstrip().endswith("# !"))
            kernel = ptx_kernel(function)
            launch = {"grid": grid, "block": block} | ({"cluster": cluster} if cluster else {})
            for constants in variants or ({},):
                name = "-".join([function.__name__, *(str(value) for value in constants.values())])
                assert name not in self, name
                self[name] = Program(kernel, kind, lines, launch, constants, any_order)
            return function

        return register


def judge(program: Program, seed: int | None = None, tools: Any = ("race", "order")) -> str:
    """What is wrong with the verdict on a program; "" if nothing is."""
    data = [np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32), np.zeros(64, np.uint32)]
    with use("emulator"), collect() as findings:
        program.kernel.configure(**program.launch, sanitize=tools, seed=seed)(*data, **program.constants)
    if not program.kind:
        return f"false alarm: {findings[0]}" if findings else ""
    if not findings:
        return "missed"
    kinds = {finding.kind for finding in findings}
    sides = {
        side.loc.line for finding in findings for side in (finding.access, finding.earlier)
        if side is not None and side.loc is not None
    }
    if kinds != {program.kind} or not sides <= program.lines:
        return f"misnamed: {findings[0]}"
    return ""


def spin_until(poll: Callable[[], Any], wanted: Any) -> None:
    """Poll until a value is there."""
    from ptxdsl import break_if, loop

    with loop():
        break_if(poll() == wanted)
