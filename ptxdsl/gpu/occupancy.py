"""Occupancy: how many blocks of a kernel are resident on a multiprocessor at once, and what keeps more away.

It follows from what ptxas reports of the kernel and what the target has, so it needs no GPU. The rules are those of the
driver (``cuOccupancyMaxActiveBlocksPerMultiprocessor``): a warp is given registers in units, from the quarter of the
register file that it runs on; a block is given shared memory in units, on top of what the driver keeps for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from ..isa.targets import Limits, Multiprocessor, groups, limits, multiprocessor
from ..text_table import bar, table
from .cubin import Attributes

__all__ = ["BlockSizes", "Occupancy", "SharedSize", "block_sizes", "occupancy"]

SharedSize = Union[int, Callable[[int], int]]
"""Bytes of dynamic shared memory of a block, or what computes them from the threads of one."""

_WARP = 32
_NAMES = ("threads", "registers", "shared memory", "barriers", "blocks")


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Occupancy:
    """How many blocks of ``threads`` threads are resident on a multiprocessor of ``arch`` at once.

    ``registers`` are of a thread; ``shared`` is what a block declares and is launched with, in bytes; ``barriers`` are
    of a block. ``allowed`` says for each resource how many blocks it has room for: the least is what counts.
    ``print(occupancy)`` is a table.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel
    >>> @ptx_kernel
    ... def double(x: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     x[i] = x[i] + x[i]
    >>> double.occupancy(96, arch="sm_86")
    <occupancy on sm_86: 16 blocks of 96 threads, 48 of 48 warps (100 %), limited by threads and blocks>
    """

    arch: str
    threads: int
    registers: int
    shared: int
    barriers: int
    max_threads: int = Limits().threads
    cluster: int = 1
    """Blocks of a cluster."""
    told: int | None = None
    """The clusters that a GPU's driver has room for."""

    @property
    def clusters(self) -> int | None:
        """Clusters resident on a whole GPU at once: as its driver says, else at most as many; None where neither knows.

        The blocks of a cluster run on the multiprocessors of one group, of which :func:`..isa.targets.groups` knows
        what is published. ``cuOccupancyMaxActiveClusters`` knows the groups of the GPU at hand.
        """
        found = groups(self.arch)
        if self.told is not None or found is None:
            return self.told
        return sum(processors * self.blocks // self.cluster for processors in found.processors)

    @property
    def allowed(self) -> dict[str, int]:
        """How many blocks there is room for, by each of threads, registers, shared memory, barriers and blocks.

        A resource that the kernel does not use is left out. 0: a single block asks for more than there is.
        """
        unit = multiprocessor(self.arch)
        found = {
            "threads": unit.threads // (self._warps * _WARP) if self.threads <= self.max_threads else 0,
            "registers": self._by_registers(unit, self.registers),
            "shared memory": self._by_shared(unit, self.shared),
            "barriers": unit.barriers // self.barriers if unit.barriers and self.barriers else None,
            "blocks": unit.blocks,
        }
        return {name: blocks for name, blocks in found.items() if blocks is not None}

    @property
    def _warps(self) -> int:
        return -(-self.threads // _WARP)

    def _by_registers(self, unit: Multiprocessor, registers: int) -> int | None:
        if not registers:
            return None
        per_warp = _ceil(registers * _WARP, unit.register_unit)
        # The check of a launch takes it that a block's warps are spread evenly over the partitions.
        if per_warp * _ceil(self._warps, unit.partitions) > Limits().block_registers:
            return 0
        warps = unit.registers // unit.partitions // per_warp * unit.partitions
        return warps // self._warps

    def _by_shared(self, unit: Multiprocessor, shared: int) -> int | None:
        if shared > limits(self.arch).shared:
            return 0
        taken = _ceil(shared + unit.reserved, unit.shared_unit)
        return unit.shared // taken if taken else None

    @property
    def blocks(self) -> int:
        """Blocks resident on a multiprocessor; 0 where a launch would be refused."""
        return min(self.allowed.values())

    @property
    def warps(self) -> int:
        """Warps resident on a multiprocessor."""
        return self.blocks * self._warps

    @property
    def max_warps(self) -> int:
        """Warps that a multiprocessor has room for."""
        return multiprocessor(self.arch).threads // _WARP

    @property
    def fraction(self) -> float:
        """The share of the warps that a multiprocessor has room for, 0 to 1."""
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that have room for no more blocks."""
        allowed = self.allowed
        return tuple(name for name in _NAMES if allowed.get(name) == self.blocks)

    @property
    def advice(self) -> str | None:
        """How much less of registers or shared memory makes room for another block; None where neither does."""
        unit, allowed, wanted = multiprocessor(self.arch), self.allowed, self.blocks + 1
        if any(allowed.get(name, wanted) < wanted for name in ("threads", "barriers", "blocks")):
            return None
        steps = []
        if allowed.get("registers", wanted) < wanted:
            fits = (n for n in range(self.registers, 0, -1) if (self._by_registers(unit, n) or 0) >= wanted)
            steps.append(f"at most {next(fits, 0)} registers a thread")
        if allowed.get("shared memory", wanted) < wanted:
            most = unit.shared // wanted // unit.shared_unit * unit.shared_unit - unit.reserved
            steps.append(f"at most {min(most, limits(self.arch).shared)} bytes of shared memory a block")
        return f"with {' and '.join(steps)}: {_count(wanted, 'block')}"

    def __str__(self) -> str:
        unit = multiprocessor(self.arch)
        takes = {
            "threads": f"{self.threads} of {unit.threads}",
            "registers": f"{self.registers} a thread, "
            f"{_ceil(self.registers * _WARP, unit.register_unit) * self._warps} of {unit.registers}",
            "shared memory": f"{_ceil(self.shared + unit.reserved, unit.shared_unit)} of {unit.shared} bytes",
            "barriers": f"{self.barriers} of {unit.barriers}", "blocks": f"1 of {unit.blocks}",
        }
        limiting = self.limited_by
        rows = [(name, n, takes[name], "<- limit" if name in limiting else "") for name, n in self.allowed.items()]
        lines = [repr(self)[1:-1], table(("resource", "blocks", "a block takes", ""), rows), self.advice]
        return "\n".join(line.rstrip() for part in lines if part for line in part.splitlines())

    def __repr__(self) -> str:
        return (
            f"<occupancy on {self.arch}: {_count(self.blocks, 'block')} of {_count(self.threads, 'thread')}, "
            f"{self.warps} of {self.max_warps} warps ({100 * self.fraction:.0f} %), "
            f"limited by {_listed(self.limited_by)}{self._clusters_told}>"
        )

    @property
    def _clusters_told(self) -> str:
        found, clusters = groups(self.arch), self.clusters
        if self.cluster == 1 or clusters is None:
            return ""
        counted = f"{_count(clusters, 'cluster')} of {self.cluster} blocks"
        if self.told is not None or found is None:
            return f"; {counted} on this GPU"
        return f"; at most {counted} on {found.gpu}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


class BlockSizes(Sequence[Occupancy]):
    """The occupancy of a kernel for each size of block, the smallest first; printed as a table."""

    def __init__(self, found: Sequence[Occupancy]) -> None:
        self._found = tuple(found)

    @property
    def best(self) -> Occupancy:
        """The one with the most warps, and of those the largest, as by ``cuOccupancyMaxPotentialBlockSize``."""
        return max(self._found, key=lambda one: (one.warps, one.threads))

    def __getitem__(self, index: int) -> Occupancy:  # type: ignore[override]
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Occupancy]:
        return iter(self._found)

    def __repr__(self) -> str:
        best = self.best
        rows = [
            (
                one.threads, one.blocks, f"{one.warps}/{one.max_warps}", f"{100 * one.fraction:.0f} %",
                bar(one.fraction), ", ".join(one.limited_by), "<- best" if one is best else "",
            ) for one in self._found
        ]
        header = (f"threads on {best.arch}", "blocks", "warps", "full", "".ljust(20), "limited by", "")
        return "\n".join(line.rstrip() for line in table(header, rows).splitlines())


def occupancy(attributes: Attributes, arch: str, threads: int, shared: SharedSize = 0) -> Occupancy:
    """The occupancy of a kernel with these attributes, in blocks of so many threads."""
    dynamic = shared(threads) if callable(shared) else shared
    return Occupancy(
        arch, threads, attributes.num_regs, attributes.shared_size_bytes + dynamic, attributes.num_barriers,
        attributes.max_threads_per_block,
    )


def block_sizes(attributes: Attributes, arch: str, shared: SharedSize = 0) -> BlockSizes:
    """The occupancy for every number of whole warps that a block can have."""
    most = max(attributes.max_threads_per_block, _WARP)
    return BlockSizes([occupancy(attributes, arch, n, shared) for n in range(_WARP, most + 1, _WARP)])
