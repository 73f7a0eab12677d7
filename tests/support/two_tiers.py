"""Runs PTX text in both tiers of the emulator, for tests that compare them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from emulator_harness import argument

from ptxdsl import EmulationError
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.emulator.sanitizer.needs import Checks
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

__all__ = ["outcomes", "same"]


def outcomes(
    text: str, grid: Any, block: Any, sanitize: Any, cluster: Any, **arguments: Any
) -> list[tuple[str, list[bytes]]]:
    """The error of each tier, and what is in memory then."""
    found = []
    for second in (False, True):
        program = Program(parse(text))
        config = LaunchConfig(grid, block, cluster=cluster, sanitize=sanitize)
        if second and not sanitize:
            compiled = program.code("k", program.shape_of("k", config))
            assert compile_block_function(compiled), "no block function"
        mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
        said = ""
        for turn in range(2):
            try:
                program.run("k", config, [argument(name, value) for name, value in mine.items()])
            except EmulationError as error:
                said = re.sub(r"0x[0-9a-f]+", "0x", str(error))
            if second and sanitize and not turn:
                codes = [code for key, code in program._codes.items() if isinstance(key[3], Checks) and not key[2]]
                assert codes and all(compile_block_function(code) for code in codes), "no block function"
        found.append((said, [value.tobytes() for value in mine.values() if isinstance(value, np.ndarray)]))
    return found


def same(text: str, grid: Any, block: Any, sanitize: Any = None, cluster: Any = None, **arguments: Any) -> str:
    first, second = outcomes(text, grid, block, sanitize, cluster, **arguments)
    assert second == first
    return first[0]
