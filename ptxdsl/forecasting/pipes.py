"""Which pipe of a multiprocessor executes an instruction, for how many clocks, and when its result is there.

A multiprocessor has four partitions, each of which issues one instruction of a warp a clock. The throughputs are those
of :class:`.machines.Rates`; which opcode is executed where is what NVIDIA's profiler shows by its pipe metrics (FMA,
ALU, XU, FP64, LSU; documentation of Nsight Compute). Latencies of arithmetic are the 4 clocks that microbenchmarks have
found from Volta on (arXiv 1804.06826, 2402.13499), those of the slower pipes are rounded from the same papers.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from .machines import Machine

__all__ = ["PARTITIONS", "Pipe", "latency", "pipe_clocks", "pipe_of"]

Pipe = Literal["FMA", "ALU", "special", "FP64", "memory", "tensor", "other"]
PARTITIONS = 4

_FMA = ("FFMA", "FADD", "FMUL", "FSWZADD", "HFMA2", "HADD2", "HMUL2", "HFMA2.MMA")
_HEAVY = ("IMAD", "IDP", "IDP4A")
"""They take one half of the FMA pipe."""
_SPECIAL = ("MUFU", "F2F", "F2I", "I2F", "FRND", "POPC", "FLO", "BREV", "I2FP", "F2IP")
_FP64 = ("DFMA", "DADD", "DMUL", "DSETP", "DMNMX")
_MEMORY = (
    "LD", "LDG", "LDS", "LDL", "LDSM", "LDGSTS", "ST", "STG", "STS", "STL", "STSM", "ATOM", "ATOMG", "ATOMS", "RED",
    "REDG", "SHFL", "LDC", "TEX", "TLD", "SULD", "SUST", "MATCH", "REDUX", "STAS",
)
_TENSOR = ("HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA", "HGMMA", "QGMMA", "IGMMA", "BGMMA", "UTCHMMA", "UTCQMMA")
_OTHER = (
    "BRA", "EXIT", "BAR", "BSSY", "BSYNC", "WARPSYNC", "MEMBAR", "ERRBAR", "CCTL", "DEPBAR", "LDGDEPBAR", "S2R",
    "S2UR", "CS2R", "NANOSLEEP", "YIELD", "ELECT", "SYNCS", "WARPGROUP", "FENCE", "BMOV", "RET", "CALL", "UTMALDG",
    "UTMASTG", "UTMAREDG", "UTMACMDFLUSH", "ARRIVES", "R2UR", "VOTE", "VOTEU", "B2R", "ACQBULK", "PREEXIT",
)


@cache
def pipe_of(name: str) -> Pipe:
    """The pipe of an opcode without modifiers; what is in no list is integer arithmetic, logic or a comparison.

    >>> pipe_of("FFMA"), pipe_of("IADD3"), pipe_of("MUFU")
    ('FMA', 'ALU', 'special')
    """
    lists: tuple[tuple[Pipe, tuple[str, ...]], ...] = (
        ("FMA", _FMA + _HEAVY), ("special", _SPECIAL), ("FP64", _FP64), ("memory", _MEMORY), ("tensor", _TENSOR),
        ("other", _OTHER),
    )
    found = next((pipe for pipe, names in lists if name in names), None)
    if found is None:
        found = "other" if name.startswith("U") and not name.startswith("UT") else "ALU"
    return found


def pipe_clocks(name: str, opcode: str, machine: Machine) -> float:
    """Clocks for which an instruction of a warp keeps its pipe in one partition busy."""
    rates, pipe = machine.rates, pipe_of(name)
    if name in ("I2FP", "F2IP"):  # conversions of 32 bits that newer assemblers take have the rate of integers
        return 32 * PARTITIONS / rates.integer
    if name.startswith("H") and pipe == "FMA":
        return 32 * PARTITIONS / rates.half2
    results = {
        "FMA": rates.integer if name in _HEAVY else rates.fp32, "ALU": rates.integer, "special": rates.special,
        "FP64": rates.fp64,
    }.get(pipe)
    if results is None:
        return 0.0
    wide = 2 if name == "IMAD" and ".WIDE" in opcode else 1
    return wide * 32 * PARTITIONS / results


_LATENCIES = {
    "SHFL": 23, "S2R": 20, "S2UR": 20, "LDC": 30, "BAR": 20, "MUFU": 18, "POPC": 14, "R2UR": 10, "VOTE": 6,
    "HMMA": 33, "IMMA": 33, "DMMA": 33, "MATCH": 30, "REDUX": 30, "MEMBAR": 300,
}


def latency(name: str, machine: Machine, miss: float) -> float:
    """Clocks from the issue of an instruction to the use of its result.

    ``miss`` is the share of the sectors that come from memory rather than from the L2 cache.
    """
    far = machine.l2_latency + miss * (machine.memory_latency - machine.l2_latency)
    if name in ("LD", "LDG", "TEX", "TLD", "SULD"):
        return far
    if name in ("ATOM", "ATOMG"):
        return machine.l2_latency
    if name in ("LDS", "LDSM", "ATOMS"):
        return machine.shared_latency
    if name == "LDL":
        return machine.l1_latency
    if name in _LATENCIES:
        return _LATENCIES[name]
    pipe = pipe_of(name)
    return 14 if pipe == "special" else 8 if pipe == "FP64" else 4
