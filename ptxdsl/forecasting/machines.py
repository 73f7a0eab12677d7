"""The GPUs that forecasts are made for: what one has of each resource, by public figures.

One row a GPU. ``sources`` says where its figures come from; what follows from the compute capability stands once, in
:data:`RATES`. Rates are of a multiprocessor and a clock, so that another clock changes what depends on it and nothing
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import LaunchError, caller, did_you_mean, similar

__all__ = ["MACHINES", "RATES", "Machine", "Rates", "machine"]


@dataclass(frozen=True)
class Rates:
    """Results a clock of one multiprocessor: "Throughput of Native Arithmetic Instructions", CUDA programming guide.

    ``tensor`` are dense floating-point operations a clock of the tensor cores by the type of the factors, from the
    peaks that the whitepapers name; a type that is not there has the rate of f16.
    """

    fp32: int
    fp64: int
    half2: int
    """Of packed halves, results are pairs."""
    integer: int
    special: int
    tensor: Mapping[str, int]

    def tensor_rate(self, factors: str) -> int:
        """Operations a clock for factors of a type."""
        return self.tensor.get(factors, self.tensor["f16"])


def _tensor(f16: int, fp8: int, tf32: int, f64: int) -> dict[str, int]:
    eight = dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "s8", "u8"), fp8)
    return {"f16": f16, "bf16": f16, "tf32": tf32, "f64": f64, **eight}


RATES = {
    80: Rates(64, 32, 128, 64, 16, _tensor(2048, 4096, 1024, 128)),
    89: Rates(128, 2, 64, 64, 16, _tensor(512, 1024, 256, 2)),
    90: Rates(128, 64, 128, 64, 16, _tensor(4096, 8192, 2048, 256)),
    100: Rates(128, 64, 128, 64, 16, _tensor(8192, 16384, 4096, 128)),
}
"""By the number of the target."""


@dataclass(frozen=True)
class Machine:
    """A GPU. ``clock`` is in MHz, ``memory`` in bytes a second, ``l2`` in bytes; latencies are in clocks.

    ``l2_rate`` are bytes a clock that the L2 cache gives the whole GPU, ``l2_port`` those that one multiprocessor
    takes; ``shared_rate`` bytes a clock of shared memory. ``read_share`` and ``copy_share`` are how much of ``memory``
    kernels have been seen to reach that read, and that read and write; where ``sources`` name none, those of the H200.
    ``launch`` are seconds that even an empty kernel takes on the GPU.
    """

    name: str
    target: str
    multiprocessors: int
    clock: int
    memory: float
    l2: int
    l2_rate: int
    sources: str
    l2_port: int = 64
    shared_rate: int = 128
    read_share: float = 0.91
    copy_share: float = 0.87
    memory_latency: int = 479
    l2_latency: int = 263
    l1_latency: int = 41
    shared_latency: int = 29
    launch: float = 2e-6

    @property
    def rates(self) -> Rates:
        """What its multiprocessors compute in a clock."""
        return RATES[int("".join(c for c in self.target if c.isdigit()))]

    @property
    def hertz(self) -> float:
        """Clocks a second."""
        return self.clock * 1e6


_MIB = 1 << 20
_ALL = (
    Machine(
        "a100", "sm_80", 108, 1410, 2.039e12, 40 * _MIB, 5120,
        "NVIDIA A100 whitepaper (SXM4, 80 GB): multiprocessors, clock, memory, L2 and its 5120 B/clock; latencies: "
        "arXiv 2402.13499", memory_latency=466, l2_latency=262, l1_latency=38,
    ),
    Machine(
        "rtx4090", "sm_89", 128, 2520, 1.008e12, 72 * _MIB, 2048,
        "NVIDIA Ada whitepaper: multiprocessors, clock, memory, L2; its rate: 2048 B/clock of 64 slices; latencies: "
        "arXiv 2402.13499", memory_latency=542, l2_latency=273, l1_latency=43, shared_latency=30,
    ),
    Machine(
        "h100", "sm_90a", 132, 1830, 3.35e12, 50 * _MIB, 6150,
        "NVIDIA H100 whitepaper (SXM5): multiprocessors, memory, L2, and the clock that its peaks of the tensor cores "
        "imply; rates of the L2 as DeepGEMM's tuner models them; latencies: arXiv 2402.13499; shares of memory: 3.19 "
        "TB/s reading (CUB, by fast.cu), 3.01 TB/s copying (QuACK)", read_share=0.95, copy_share=0.90,
    ),
    Machine(
        "h200", "sm_90a", 132, 1830, 4.8e12, 50 * _MIB, 6150,
        "NVIDIA H200 datasheet: memory; else as h100. Shares of memory: 4.38 TB/s reading, 4.2 TB/s copying (TileOPs)",
    ),
    Machine(
        "b200", "sm_100a", 148, 1850, 8.0e12, 126 * _MIB, 9472,
        "NVIDIA DGX B200 datasheet: memory, and the clock that its peaks imply; L2: CUDA device properties; its rate "
        "is taken to be 64 B/clock a multiprocessor, latencies and shares of memory to be those of h200",
    ),
)
MACHINES = {one.name: one for one in _ALL}
"""Every GPU by its name."""


def machine(gpu: str | Machine, clock: int | None = None) -> Machine:
    """The GPU of a name, at another clock (MHz) where one is given; LaunchError for one that is not known.

    >>> machine("h200").multiprocessors, machine("h200", clock=1500).hertz
    (132, 1500000000.0)
    """
    found = gpu if isinstance(gpu, Machine) else MACHINES.get(str(gpu).lower())
    if found is None:
        hint = did_you_mean(similar(str(gpu).lower(), MACHINES), '`gpu="{}"`') or "one of these"
        raise LaunchError(
            f"there is no description of a GPU {gpu!r}; known are {', '.join(MACHINES)}", loc=caller(), hint=hint
        )
    if clock is not None and not (type(clock) is int and clock > 0):
        raise LaunchError(f"clock is in MHz, a positive int, not {clock!r}", loc=caller(), hint="`clock=1500`")
    return found if clock is None else replace(found, clock=clock)
