"""The machine code of kernels beside that of ``nvcc -O3``: ``python tests/bench/sass.py [--only NAME ...] [--code]``.

Each kernel of ``tests/bench/paired`` is written twice, in ptxdsl and in CUDA C++, with the same algorithm. Both are
launched on the emulator and their results checked against numpy; then one assembler makes the code of both. Counted are
instructions without padding, those of the hot loop for each instruction in it that does the work (a load, an FFMA),
which is the same however often a loop is unrolled, registers, and bytes spilled. ``--code`` prints both listings.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from math import exp, log
from typing import NamedTuple

import numpy as np
import ptxdsl
from paired.listing import Listing, Loop, listing
from paired.pair import ARCH, Pair, compiled, nvcc, pairs
from ptxdsl.bench import table
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.gpu.cubin import disassemble

__all__ = ["ARCH", "NO_NVCC", "Line", "code", "compiled", "main"]

MOST, MOST_IN_LOOP = 1.05, 1.0
"""The goal: times of nvcc's instructions, and of those in its hot loop."""
NO_NVCC = (
    "no nvcc was found, and without it there is nothing to compare with: pip install 'nvidia-cuda-nvcc>=13' "
    "'nvidia-nvvm>=13' 'nvidia-cuda-crt>=13' 'nvidia-cuda-runtime>=13'"
)


class Code(NamedTuple):
    """What the assembler made of a kernel."""

    listing: Listing
    hot: Loop | None
    registers: int
    spilled: int


class Line(NamedTuple):
    """A pair and both codes."""

    pair: Pair
    ours: Code
    theirs: Code

    @property
    def ratio(self) -> float:
        return len(self.ours.listing.opcodes) / len(self.theirs.listing.opcodes)

    @property
    def loop_ratio(self) -> float | None:
        """Instructions in the hot loop for as much work; None where one of them has no loop."""
        hot, their_hot = self.ours.hot, self.theirs.hot
        return hot.each / their_hot.each if hot and their_hot else None

    @property
    def reached(self) -> bool:
        return self.ratio <= MOST and (self.loop_ratio or 0) <= MOST_IN_LOOP and self.ours.spilled == 0

    def cells(self) -> tuple[str, ...]:
        """As the cells of a table."""
        cells = [self.pair.name]
        for count in (lambda c: len(c.listing.opcodes), lambda c: c.registers, lambda c: c.spilled):
            cells += [f"{count(self.ours):,}", f"{count(self.theirs):,}"]
        cells.insert(3, f"{self.ratio:.2f}")
        loops = [f"{hot.size} / {hot.work}" if hot else "" for hot in (self.ours.hot, self.theirs.hot)]
        cells[4:4] = [*loops, f"{self.loop_ratio:.2f}" if self.loop_ratio else ""]
        return (*cells, self.pair.work, "ok" if self.reached else "OVER")


@cache
def _sass(text: str) -> str:
    return disassemble(assemble_module(text, ARCH).cubin)


def code(text: str, pair: Pair) -> Code:
    """The code of a pair's kernel in a PTX module."""
    found = listing(_sass(text), pair.name)
    taken = assemble_module(text, ARCH).attributes(pair.name)
    spilled = taken.spill_store_bytes + taken.spill_load_bytes
    return Code(found, found.hot(pair.work), taken.num_regs, spilled)


def check(pair: Pair) -> None:
    """Launch both on the emulator, on the same data; SystemExit where a result is wrong."""
    seed = int(np.random.default_rng().integers(1 << 32))
    for who, kernel in (("ptxdsl", pair.kernel), ("nvcc", ptxdsl.load(compiled(pair.family))[pair.name])):
        case = pair.case(np.random.default_rng(seed))
        kernel.configure(case.grid, case.block, backend="emulator", sanitize="all")(*case.arguments)
        for place in case.expected:
            error = case.error(place)
            if not error <= case.allowed:
                raise SystemExit(f"{pair.name} of {who}, seed {seed}: error {error:g} > {case.allowed:g}")


def measured(pair: Pair) -> Line:
    """A pair, checked and counted."""
    check(pair)
    return Line(pair, code(pair.kernel.ptx(), pair), code(compiled(pair.family), pair))


def main() -> int:
    """Print the table; 1 where a kernel misses the goal, 2 where there is no nvcc."""
    parser = argparse.ArgumentParser(description="Machine code beside nvcc's.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="some of the kernels")
    parser.add_argument("--code", action="store_true", help="print both listings too")
    options = parser.parse_args()
    if nvcc() is None:
        print(NO_NVCC, file=sys.stderr)
        return 2
    lines = [measured(pair) for pair in pairs() if not options.only or pair.name in options.only]
    if options.code:
        for line in lines:
            for who, text in (("ptxdsl", line.pair.kernel.ptx()), ("nvcc", compiled(line.pair.family))):
                print(f"--- {line.pair.name}, {who}", _sass(text).partition(f".text.{line.pair.name}:")[2], sep="\n")
    head = ("kernel", "SASS", "nvcc", "", "hot loop", "nvcc", "", "registers", "nvcc", "spilled", "nvcc", "work", "")
    print(table(head, [line.cells() for line in lines]))
    ratios = [line.ratio for line in lines]
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(f"{sum(line.reached for line in lines)} of {len(lines)} reach the goal: at most {MOST} times nvcc's "
          f"instructions, in hot loops no more, none spilled; geometric mean {mean:.3f}; {ARCH}, {nvcc()}")
    return int(not all(line.reached for line in lines))


if __name__ == "__main__":
    sys.exit(main())
