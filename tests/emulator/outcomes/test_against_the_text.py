"""Random litmus tests: the same outcomes as the model has where everything is tried (:mod:`memory_model`)."""

from __future__ import annotations

import os
import random

import pytest
from litmus import PLACES, explored
from memory_model import Op, all_finals

COUNT = 15
MOST_WRITES = 4
"""To a location: all of their orders are tried."""


def _random_op(rng: random.Random, register: str, value: int, known: list[str]) -> Op:
    what = rng.choice(["ld", "ld", "ld", "st", "st", "st", "add", "exch", "fence"])
    scope = rng.choice(["gpu", "gpu", "cta"])
    place = rng.choice("xy")
    if what == "fence":
        return Op("fence", rng.choice(["sc", "acq_rel"]), scope)
    if what == "ld":
        return Op("ld", rng.choice(["weak", "relaxed", "acquire"]), scope, place, 0, register)
    source = rng.choice(known) if known and rng.random() < 0.4 else ""
    if what == "st":
        return Op("st", rng.choice(["weak", "relaxed", "release"]), scope, place, value, "", source)
    return Op(what, rng.choice(["relaxed", "acquire", "release", "acq_rel"]), scope, place, value, register, source)


def _random_program(rng: random.Random) -> tuple[list[list[Op]], int]:
    sizes = rng.choice([(3, 3), (2, 3), (2, 4), (2, 2, 1), (1, 2, 2), (2, 2, 2)])
    threads, value = [], 1
    for size in sizes:
        ops: list[Op] = []
        for n in range(size):
            ops.append(_random_op(rng, f"r{n}", value, [op.register for op in ops if op.register]))
            value *= 2
        threads.append(ops)
    writes = [op.place for thread in threads for op in thread if op.what in ("st", "add", "exch")]
    if max(writes.count("x"), writes.count("y")) > MOST_WRITES:
        return _random_program(rng)
    return threads, rng.choice([1, len(threads)])


def check(rng: random.Random) -> None:
    """One random program."""
    threads, blocks = _random_program(rng)
    text = " | ".join("; ".join(op.text for op in thread) for thread in threads)
    wanted = all_finals(threads, [0] * len(threads) if blocks == 1 else list(range(len(threads))))
    places = sorted({op.place for thread in threads for op in thread if op.place})
    found = set()
    for outcome in explored(text, blocks):
        registers = tuple(
            int(outcome.out[t, int(op.register[1:])])
            for t, thread in enumerate(threads) for op in thread if op.register
        )
        found.add((registers, tuple(int(outcome.memory[PLACES[place] // 4]) for place in places)))
    assert found == wanted, f"{text} in {blocks} blocks: only here {found - wanted}, only there {wanted - found}"


@pytest.mark.parametrize("number", range(COUNT))
def test_random_programs(number: int) -> None:
    check(random.Random(int(os.environ["TEST_SEED"]) + number))
