"""Divergence: random control-flow graphs, against an interpreter of one thread at a time.

The interpreter below knows a dozen instructions and no warps. It is the reference because it cannot get divergence
wrong: a thread of a kernel without communication computes the same whether or not others go its way.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel, launch
from sampled import sampled

from ptxdsl import ir
from ptxdsl.text import parse

MASK = 0xFFFFFFFF
WORDS = 8


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


COMPUTE: dict[str, Callable[..., int]] = {
    "add.u32": lambda a, b: a + b, "sub.u32": lambda a, b: a - b, "mul.lo.u32": lambda a, b: a * b,
    "xor.b32": lambda a, b: a ^ b, "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b,
    "mad.lo.u32": lambda a, b, c: a * b + c, "mov.u32": lambda a: a, "shr.u32": lambda a, b: a >> min(b, 32),
    "min.s32": lambda a, b: min(signed(a), signed(b)), "popc.b32": lambda a: a.bit_count(),
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "setp.lt.u32": lambda a, b: a < b, "setp.eq.u32": lambda a, b: a == b, "setp.ne.u32": lambda a, b: a != b,
    "setp.gt.s32": lambda a, b: signed(a) > signed(b),
}


class Thread:
    """Runs one thread of a kernel made of the instructions above; its result is what its registers hold at the end."""

    def __init__(self, function: ir.Function, specials: dict[str, int], parameters: dict[str, int]) -> None:
        self.specials, self.parameters = specials, parameters
        self.body = [s for s in function.body or () if not isinstance(s, ir.Comment)]
        self.labels = {s.name: n for n, s in enumerate(self.body) if isinstance(s, ir.Label)}
        self.registers: dict[str, int] = {}

    def value(self, operand: Any) -> int:
        if isinstance(operand, ir.Register):
            return self.registers[operand.name]
        if isinstance(operand, ir.Not):
            return not self.registers[operand.predicate.name]
        if isinstance(operand, ir.SpecialRegister):
            return self.specials[operand.special]
        return operand.bits

    def run(self) -> dict[str, int]:
        at = 0
        while True:
            statement = self.body[at]
            at += 1
            if isinstance(statement, ir.Label) or (statement.guard is not None and not self.value(statement.guard)):
                continue
            name, operands = statement.form.mnemonic, statement.operands
            if name == "st.global.u32":
                continue
            if name in ("ret", "exit"):
                return self.registers
            if name == "bra":
                at = self.labels[operands[0].label]
            elif name == "ld.param.u32":
                self.registers[operands[0].name] = self.parameters[operands[1].base.symbol]
            elif name in COMPARE:
                self.registers[operands[0].name] = COMPARE[name](*map(self.value, operands[1:]))
            elif name in COMPUTE:
                self.registers[operands[0].name] = COMPUTE[name](*map(self.value, operands[1:])) & MASK
            elif not name.startswith(("ld.param.u64", "mul.wide", "add.u64")):
                raise AssertionError(name)


def work(rng: random.Random) -> str:
    """A random instruction on the random registers %r10 to %r17; %r18 is uniform, %r19 is not."""
    name = rng.choice(list(COMPUTE))
    count = {"mad.lo.u32": 3, "mov.u32": 1, "popc.b32": 1}.get(name, 2)
    sources = [
        rng.choice([f"%r{rng.randrange(10, 20)}", str(rng.randrange(40)), str(rng.randrange(1 << 32))])
        for _ in range(count)
    ]
    guard = f"@{rng.choice(['', '!'])}%p{rng.randrange(4, 6)} " if rng.random() < 0.2 else ""
    return f"{guard}{name} %r{rng.randrange(10, 18)}, {', '.join(sources)};"


def question(rng: random.Random, predicate: str) -> str:
    a = f"%r{rng.randrange(10, 20)}"
    b = rng.choice([f"%r{rng.randrange(10, 20)}", str(rng.randrange(32)), str(rng.randrange(1 << 32))])
    return f"{rng.choice(list(COMPARE))} {predicate}, {a}, {b};"


FUEL = "sub.u32 %r9, %r9, 1; setp.eq.u32 %p0, %r9, 0; @%p0 bra DONE;"


def unstructured(rng: random.Random) -> str:
    """Any block may go to any other; the fuel ends every loop."""
    blocks = rng.randrange(3, 10)
    lines = []
    for number in range(blocks):
        lines.append(f"B{number}: {FUEL}")
        lines += [work(rng) for _ in range(rng.randrange(4))]
        if rng.random() < 0.3:
            lines.append(question(rng, f"%p{rng.randrange(4, 6)}"))
        for _ in range(rng.randrange(3)):
            lines.append(question(rng, "%p1"))
            lines.append(f"@{rng.choice(['', '!'])}%p1 bra {rng.choice(['DONE'] + [f'B{n}' for n in range(blocks)])};")
        if rng.random() < 0.3:
            lines.append(f"bra B{rng.randrange(blocks)};")
    return "\n".join(lines)


def structured(rng: random.Random, depth: int = 0, names: Any = None) -> str:
    """Nested ifs and loops, some loops with a break in the middle."""
    names = names if names is not None else itertools.count()
    lines = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(["work", "work", "if", "loop"]) if depth < 3 else "work"
        name = next(names)
        if kind == "work":
            lines += [work(rng) for _ in range(rng.randrange(1, 4))]
        elif kind == "if":
            lines += [
                question(rng, "%p1"), f"@%p1 bra ELSE{name};", structured(rng, depth + 1, names), f"bra END{name};",
                f"ELSE{name}:", structured(rng, depth + 1, names), f"END{name}:",
            ]
        else:
            lines += [f"LOOP{name}: {FUEL}", structured(rng, depth + 1, names), question(rng, "%p1"),
                      f"@%p1 bra END{name};", work(rng), question(rng, "%p2"), f"@%p2 bra LOOP{name};", f"END{name}:"]
    return "\n".join(lines)


def program(rng: random.Random, body: str) -> str:
    def operand() -> str:
        return rng.choice(["%r18", "%r19", "%r3", "%r4", str(rng.randrange(9))])

    setup = "\n".join(
        f"{rng.choice(['add.u32', 'mul.lo.u32', 'xor.b32'])} %r{number}, {operand()}, {operand()};"
        for number in range(10, 18)
    )
    stores = "".join(f"st.global.u32 [%rd0+{4 * i}], %r{10 + i};\n" for i in range(WORDS))
    return kernel("u64 out, u32 n", f"""
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y;
        mov.u32 %r5, %ntid.y; mad.lo.u32 %r6, %r4, %r2, %r3; mul.lo.u32 %r7, %r2, %r5; mad.lo.u32 %r19, %r1, %r7, %r6;
        ld.param.u32 %r18, [n];
        setp.lt.u32 %p4, %r3, 5; setp.lt.u32 %p5, %r18, %r1;
        {setup}
        mov.u32 %r9, {rng.randrange(5, 60)};
        {body}
        DONE:
        mul.wide.u32 %rd1, %r19, {4 * WORDS}; ld.param.u64 %rd0, [out]; add.u64 %rd0, %rd0, %rd1;
        {stores} ret;
    """)


@pytest.mark.parametrize("seed", sampled(range(60), 20))
@pytest.mark.parametrize("shape", [unstructured, structured])
def test_random_graph(seed: int, shape: Callable[[random.Random], str]) -> None:
    rng = random.Random(f"{shape.__name__} {seed}")
    text = program(rng, shape(rng))
    block = rng.choice([(32, 1), (64, 1), (40, 1), (8, 8), (7, 5), (16, 4)])
    threads = block[0] * block[1]
    out = np.full((2 * threads, WORDS), 0xDEADBEEF, np.uint32)
    n = rng.randrange(50)
    launch(text, 2, block, out=out, n=np.uint32(n))
    for conservative, second_tier in ((True, False), (False, True), (True, True))[: 3 if seed % 5 == 0 else 1]:
        again = np.zeros_like(out)
        launch(text, 2, block, conservative=conservative, second_tier=second_tier, out=again, n=np.uint32(n))
        np.testing.assert_array_equal(out, again)
    function = parse(text).functions[0]
    for number in range(2 * threads):
        flat = number % threads
        specials = {
            "%ctaid.x": number // threads, "%ntid.x": block[0], "%ntid.y": block[1], "%tid.x": flat % block[0],
            "%tid.y": flat // block[0],
        }
        registers = Thread(function, specials, {"n": n}).run()
        assert out[number].tolist() == [registers[f"%r{10 + i}"] for i in range(WORDS)], f"thread {number}\n{text}"
