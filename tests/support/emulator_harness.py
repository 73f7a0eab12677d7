"""Runs PTX text on the emulator for the tests: numpy arrays and numbers in, errors out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl import emulator
from ptxdsl.emulator.jit.compilation import tier_up
from ptxdsl.launch import Buffer, LaunchConfig, Scalar

HEADER = ".version 8.6\n.target sm_90\n.address_size 64\n"


def buffer(name: str, array: np.ndarray, writable: bool = True) -> Buffer:
    """An array as the launch hands it to the emulator."""
    return Buffer(name, array.ctypes.data, array.nbytes, array.dtype, array.shape, array.strides, writable, array)


def argument(name: str, value: Any) -> Buffer | Scalar:
    if isinstance(value, np.ndarray):
        return buffer(name, value)
    return value if isinstance(value, (Buffer, Scalar)) else Scalar(name, value.tobytes())


def kernel(parameters: str, body: str, name: str = "k") -> str:
    """A module with one kernel; ``parameters`` as ``"u64 x, u32 n"``."""
    words = [parameter.split() for parameter in parameters.split(",") if parameter.strip()]
    given = ", ".join(f".param .{kind} {word}" for kind, word in words)
    kinds = (".pred %p<32>", ".b16 %h<32>", ".b32 %r<64>", ".b64 %rd<64>", ".f32 %f<32>", ".f64 %fd<16>")
    registers = "".join(f".reg {kind};\n" for kind in kinds)
    return f"{HEADER}.visible .entry {name}({given})\n{{\n{registers}{body}\n}}\n"


def launch(
    text: str, grid: Any, block: Any, shared: int = 0, conservative: bool = False, second_tier: bool = False,
    **arguments: Any,
) -> None:
    """Load the text and run its first entry.

    ``conservative``: in the code that assumes nothing of what is uniform; ``second_tier``: compiled.
    """
    program = emulator.load(text)
    entry = next(f.name for f in program.module.functions if f.kind == "entry")
    if second_tier:
        tier_up(program.code(entry, program.shape_of(entry, LaunchConfig(grid, block)), conservative))
    given = [argument(n, v) for n, v in arguments.items()]
    program.run(entry, LaunchConfig(grid, block, shared), given, conservative=conservative)


THREAD = """
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r0, %r0, %r1, %r2;
"""
"""%r0 is the number of the thread in the grid, %r2 in its block."""


def pointer(register: str, name: str, index: str = "%r0", size: int = 4) -> str:
    """The address of an element in a 64-bit register; uses %rd60."""
    load = f"ld.param.u64 {register}, [{name}];\n"
    return f"{load}mul.wide.u32 %rd60, {index}, {size};\nadd.u64 {register}, {register}, %rd60;\n"
