"""Litmus tests: a line for each thread, a final state, and whether PTX's memory model allows it.

Threads are parted by ``|``, instructions by ``;``. Orders and scopes follow the name, relaxed at gpu by default:

- ``st.release.cta x 1``, ``st.weak x r0``, ``ld.acquire r0 x``, ``ld.volatile r0 x``
- ``add.acq_rel r0 x 1`` (also exch, and, or, max, ...), ``cas r0 x 0 1``, ``red.release x 1`` (an addition)
- ``fence.sc.gpu``; ``! text`` is PTX as it stands, and lets labels, branches and barriers be written

x, y, z, w are words of global memory, sx to sw words of the block's shared memory; r0 to r5 are each thread's
registers, of which the values at its end are observed. A final state names them: ``1:r0=1 x=2``.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

import ptxdsl
from ptxdsl.emulator.outcomes.api import Outcome, Outcomes

__all__ = ["explored", "ptx_of", "reaches"]

PLACES = {name: 4 * n for n, name in enumerate("xyzwvu")}
REGISTERS = 6
HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry litmus(.param .u64 memory, .param .u64 out)
{
.reg .b64 %x, %out, %d<9>;
.reg .b32 %n<4>, %t<9>, %r<6>;
.reg .pred %p<9>, %here;
.shared .align 16 .b32 sx[6];
.shared .align 8 .b64 mb[2];
ld.param.u64 %x, [memory];
ld.param.u64 %out, [out];
mov.u32 %n0, %ctaid.x; mov.u32 %n1, %ntid.x; mov.u32 %n2, %tid.x;
mad.lo.u32 %n0, %n0, %n1, %n2;
mul.wide.u32 %d0, %n0, 24; add.u64 %out, %out, %d0;
"""


def _place(name: str) -> str:
    if name.startswith("s"):
        return f"[sx+{PLACES[name[1]]}]"
    return f"[%x+{PLACES[name]}]"


def _value(text: str) -> str:
    return f"%{text}" if text.startswith("r") else text


def _instruction(text: str) -> str:
    if text.startswith("!"):
        return text[1:].strip()
    name, *operands = text.split()
    opcode, *given = name.split(".")
    if opcode == "fence":
        return name + ";"
    place = next(o for o in operands if o in PLACES or o.lstrip("s") in PLACES)
    space = "shared" if place.startswith("s") else "global"
    kind = next((token for token in given if re.fullmatch(r"[ubs]\d+|v[24]", token)), "")
    order = next((token for token in given if token not in ("cta", "cluster", "gpu", "sys", kind)), "relaxed")
    scope = next((token for token in given if token in ("cta", "cluster", "gpu", "sys")), "gpu")
    sem = {"weak": "", "volatile": ".volatile", "mmio": ".mmio.relaxed.sys"}.get(order, f".{order}.{scope}")
    width = kind or "u32"
    if opcode == "ld":
        return f"ld{sem}.{space}.{width} {_value(operands[0])}, {_place(place)};"
    if opcode == "st":
        return f"st{sem}.{space}.{width} {_place(place)}, {_value(operands[1])};"
    if opcode == "red":
        return f"red{sem}.{space}.add.u32 {_place(place)}, {_value(operands[1])};"
    width = "u32" if opcode in ("add", "max", "min", "inc", "dec") else "b32"
    values = ", ".join(map(_value, operands[2:]))
    return f"atom{sem}.{space}.{opcode}.{width} {_value(operands[0])}, {_place(place)}, {values};"


def ptx_of(program: str) -> str:
    """The kernel of a litmus test."""
    parts = []
    for number, thread in enumerate(program.split("|")):
        texts = re.split(";;" if "!" in thread else ";", thread)
        lines = [_instruction(text.strip()) for text in texts if text.strip()]
        kept = "\n".join(f"st.global.u32 [%out+{4 * r}], %r{r};" for r in range(REGISTERS) if f"r{r}" in thread)
        parts.append(
            f"setp.ne.u32 %here, %n0, {number};\n@%here bra NEXT{number};\n" + "\n".join(lines) + f"\n{kept}\nret;\n"
            f"NEXT{number}:\n"
        )
    return HEAD + "\n".join(parts) + "ret;\n}\n"


@lru_cache(maxsize=512)
def explored(program: str, blocks: int = 0, initial: tuple[int, ...] = (), cluster: int = 0) -> Outcomes:
    """All outcomes of a litmus test, of so many blocks; by default each thread is one."""
    threads = program.count("|") + 1
    blocks = blocks or threads
    memory, out = np.zeros(8, np.uint32), np.zeros((threads, REGISTERS), np.uint32)
    memory[: len(initial)] = initial
    kernel = ptxdsl.load(ptx_of(program))["litmus"]
    shape = (cluster, 1, 1) if cluster else None
    launch = kernel.configure(blocks, threads // blocks, backend="emulator", cluster=shape)
    found = ptxdsl.outcomes(launch, memory, out)
    assert found, "some execution comes to an end"
    assert found.complete
    return found


def holds(outcome: Outcome, condition: str) -> bool:
    """Whether an outcome is the final state that a litmus test asks for."""
    for term in condition.split():
        name, value = term.split("=")
        if ":" in name:
            thread, register = name.split(":")
            found = outcome.out[int(thread), int(register[1:])]
        else:
            found = outcome.memory[PLACES[name] // 4]
        if found != int(value):
            return False
    return not outcome.waiting and not outcome.error


def reaches(program: str, condition: str, blocks: int = 0, initial: tuple[int, ...] = (), cluster: int = 0) -> bool:
    """Whether the model allows a final state."""
    return any(holds(outcome, condition) for outcome in explored(program, blocks, initial, cluster))
