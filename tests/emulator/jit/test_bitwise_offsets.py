"""Indices that are made bit by bit: known lane offsets where bits do not meet, and the right numbers everywhere."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel, launch

from ptxdsl.emulator.analysis.divergence import VARYING
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

TILE = """mov.u32 %r1, %ctaid.x; shl.b32 %r2, %r1, 10; mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 2; and.b32 %r5, %r4, 508;
or.b32 %r6, %r5, %r2; or.b32 %r7, %r6, 3; xor.b32 %r8, %r6, 515; shr.u32 %r9, %r6, 2;
ld.param.u32 %r10, [n]; or.b32 %r11, %r5, %r10; and.b32 %r12, %r7, %r10; shr.u32 %r13, %r7, %r10;
and.b32 %r14, %r3, 20; mul.lo.u32 %r15, %r10, 96; or.b32 %r16, %r15, %r3; mul.lo.u32 %r17, %r10, 40;
or.b32 %r18, %r17, %r3; ret;"""
KNOWN = {"%r5": 4, "%r6": 4, "%r7": 4, "%r9": 1, "%r16": 1}


def test_offsets_that_are_known() -> None:
    program = Program(parse(kernel("u32 n", TILE)))
    offsets = program.code("k", LaunchConfig(1, 128).block).operands.facts.offsets
    for name, step in KNOWN.items():
        assert offsets[name] == tuple(step * lane for lane in range(32)), name
    assert offsets["%r8"] == tuple((4 * lane ^ 3) - 3 for lane in range(32))
    assert offsets["%r14"] == tuple(lane & 20 for lane in range(32))
    for name in ("%r11", "%r12", "%r13", "%r18"):  # the bits of n are not known
        assert offsets[name] is VARYING, name


def drawn(draw: random.Random, shape: tuple[int, ...]) -> tuple[str, Any]:
    """A program of ten operations on the thread's index, and what it gives for threads and numbers."""
    lines, values = [], []
    for name in ("%tid.x", "%tid.y", "%ctaid.x", "n"):
        place = len(values)
        lines.append(f"ld.param.u32 %r{place}, [n];" if name == "n" else f"mov.u32 %r{place}, {name};")
        values.append(lambda at, name=name: at[name])
    for place in range(4, 14):
        opcode = draw.choice(("and.b32", "or.b32", "xor.b32", "shr.u32", "shr.s32", "shl.b32", "add.u32", "mul.lo.u32"))
        a = draw.choice((*range(place), place - 1, place - 1))
        least = opcode[:2] == "sh"
        immediate = least or draw.random() < 0.5
        b = draw.randrange(7) if least else draw.choice((1, 3, 4, 12, 28, 508, 31, 96, 0xFFFFFFE0, 1 << 31))
        if not immediate:
            b = draw.randrange(place)
        lines.append(f"{opcode} %r{place}, %r{a}, {b if immediate else f'%r{b}'};")

        def value(at: Any, opcode: str = opcode, a: int = a, b: int = b, immediate: bool = immediate) -> Any:
            x, y = values[a](at), np.uint32(b) if immediate else values[b](at)
            if opcode == "shr.s32":
                return (x.view(np.int32) >> np.int32(y)).view(np.uint32)
            return {
                "and": x.__and__, "or": x.__or__, "xor": x.__xor__, "shr": x.__rshift__, "shl": x.__lshift__,
                "add": x.__add__, "mul": x.__mul__,
            }[opcode.split(".", maxsplit=1)[0]](y)

        values.append(value)
    stores = "".join(
        f"st.global.u32 [%rd1+{4 * place}], %r{place};" for place in range(14)
    )
    threads = shape[0] * shape[1]
    place = f"mad.lo.u32 %r40, %r1, {shape[0]}, %r0; mad.lo.u32 %r40, %r2, {threads}, %r40;"
    body = "".join(lines) + place + "ld.param.u64 %rd1, [x]; mul.wide.u32 %rd0, %r40, 64; add.u64 %rd1, %rd1, %rd0;"
    return kernel("u64 x, u32 n", body + stores + "ret;"), values


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("shape", [(128, 1), (64, 3), (16, 6), (8, 4), (48, 1), (24, 2), (20, 1), (5, 9), (32, 2)])
def test_random_indices(shape: tuple[int, int], second: bool, rng: np.random.Generator) -> None:
    draw = random.Random(int(rng.integers(1 << 62)))
    text, values = drawn(draw, shape)
    threads, grid, n = shape[0] * shape[1], 3, draw.choice((0, 1, 96, 128, 5, 0x80000000))
    number = np.arange(threads * grid, dtype=np.uint32)
    at = {"%ctaid.x": number // np.uint32(threads), "n": np.full(number.size, n, np.uint32)}
    at["%tid.x"] = number % np.uint32(threads) % np.uint32(shape[0])
    at["%tid.y"] = number % np.uint32(threads) // np.uint32(shape[0])
    out = np.full((number.size, 16), 7, np.uint32)
    launch(text, grid, shape, second_tier=second, x=out, n=np.uint32(n))
    for place, value in enumerate(values):
        assert np.array_equal(out[:, place], value(at)), (place, text)
