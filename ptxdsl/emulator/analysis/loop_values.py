"""Registers that a loop changes by a number: their start plus multiples of that.

Loops are taken to add to a 64-bit register less than 2^40 times.
"""

from __future__ import annotations

from math import gcd

from .dominance import Join
from .linear_values import Part, Value, flat, is_exact, unknown

__all__ = ["is_settled", "mentions", "repeated"]

TURNS = 1 << 40


def is_settled(value: Value) -> bool:
    """Whether a value is known, and not in terms of an induction variable."""
    return not any(part.symbols or part.step == 1 for part in value.parts.values())


def mentions(part: Part, node: Join) -> bool:
    """Whether a term of a value is in terms of a register at the head of a loop."""
    return any(name == node for name, _ in part.symbols)


def repeated(node: Join, start: Value, around: list[Value], width: int) -> Value:
    """A start plus any multiples of what the ways around a loop add to a register."""
    whole, origin = flat(start), start.origin
    step, bits = whole.step, min(start.bits, width)
    ends: list[int | None] = []
    adds: list[int] = []
    steady = True
    for way in around:
        back = flat(way)
        if back.symbols != ((node, 1),) or back.vector is not None or back.block != (0, 0, 0) or way.origin:
            return unknown(64, origin)
        if not back.const and not back.step:
            continue
        step = gcd(step, back.const, back.step)
        bits = min(bits, way.bits)
        ends.append(back.high)
        adds.append(back.const)
        steady = steady and not back.step
    if not adds:
        return start
    low, high = whole.low, whole.high
    known = is_exact(start, width, False)
    if known is not None and steady and min(adds) > 0 and None not in ends and bits >= width:
        top = max(known[1], *(end for end in ends if end is not None))
        if top + max(adds) < 1 << (width - 2):
            return Value({node: whole._replace(step=step, low=known[0], high=top)}, bits)
    if width == 64 and steady and low is not None and high is not None:
        low, high = low + min(0, *adds) * TURNS, high + max(0, *adds) * TURNS
    else:
        low = high = None
    return Value({None: whole._replace(step=step, low=low, high=high)}, bits, origin)
