"""Executes a kernel for all threads of a cluster at once: which accesses to the shared memory of its blocks race.

The threads of a cluster are taken for those of one large block. Addresses of shared memory have the rank of their block
above ``RANK_BITS``, as they have when the kernel runs, and the parts that blocks have of an array make one large array
in the order of their ranks. A barrier of a block is then one of some warps, the barrier of the cluster one of all of
them, and :mod:`.warp_barriers` says what they order. The coordinates of blocks in their cluster are numbers; those of
the cluster in the grid are kept as multiples.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Instruction, Operand, Symbol
from ..machine.layout import LANES, LOCAL_ORIGIN, Cluster
from .block_execution import EFFORT, BlockRun, Stopped
from .divergence import Shape3
from .linear_values import NO_BLOCK
from .static_values import Known
from .thread_accesses import Asked
from .thread_numbers import Number
from .warp_barriers import Ordered, Trace

__all__ = ["execute_cluster"]

MOST_WARPS = 64
MOST_BYTES = 1 << 11
"""Of an array that a read is taken to read as a whole, where it reads is not known."""
MOST_MARKS = 1 << 22
"""Bytes of the asked arrays, of all blocks, in times of the warps."""
_NUMBERS = 1 << 20
"""What the numbers of barriers of one block have before those of the next."""
_NOWHERE = 64
"""The rank of what compilers compute for threads that do not access it: of blocks that no cluster has."""
_OF_ALL = -1
"""Stands for the number of the barrier of the cluster."""


def execute_cluster(
    graph: ControlFlowGraph, known: Known, barriers: set[int], own: dict[int, Asked], far: dict[int, Asked],
    sizes: Callable[[str], int], effort: int = EFFORT,
) -> tuple[Ordered | None, bool]:
    """In which arrays accesses may race, and which reads may find them unwritten; None where nothing is known.

    The second says whether more effort may tell more.
    ``barriers`` are the waits at barriers of the cluster, right behind the arrivals there. Blocks make the accesses
    ``own`` to some arrays in their own shared memory, and ``far`` by addresses of ``mapa``; where one of these is in
    another array, nothing is known. ``sizes`` are those of a block.
    """
    x, y, z = known.block
    ranks = prod(known.cluster)
    warps = x * y * z * ranks // LANES
    nbytes = sum(sizes(name) for name in {asked.array for asked in (*own.values(), *far.values())})
    if x * y * z % LANES or warps > MOST_WARPS or nbytes * ranks * warps > MOST_MARKS:
        return None, False
    run = _ClusterRun(graph, known, barriers, own, far, sizes)
    run.most, run.trace.left = effort, run.trace.left * effort // EFFORT
    with contextlib.suppress(Stopped):
        run.run()
        return run.trace.ordered(), run.trace.left < 0
    return None, True


class _ClusterRun(BlockRun):
    def __init__(
        self, graph: ControlFlowGraph, known: Known, barriers: set[int], own: dict[int, Asked], far: dict[int, Asked],
        sizes: Callable[[str], int],
    ) -> None:
        (x, y, z), ranks = known.block, prod(known.cluster)
        gx, gy, gz = (count // size for count, size in zip(known.grid, known.cluster))
        large = known._replace(grid=(gx, gy, gz), block=(x, y, z * ranks))
        super().__init__(graph, large, set(), own | far, sizes, lambda _: 0)
        self.trace = Trace(len(self.every), lambda name: ranks * sizes(name))
        self.ends, self.far, self.threads = barriers, far.keys(), x * y * z
        self.ranks = ranks
        self.rank = np.arange(len(self.every), dtype=np.int64) // self.threads
        self.special.update(self._specials(known))

    def _specials(self, known: Known) -> dict[str, Number]:
        """The special registers that a large block has otherwise."""
        found = {"%tid.z": Number(self.special["%tid.z"].numbers % known.block[2])}
        found |= {"%cluster_ctarank": Number(self.rank), "%cluster_nctarank": Number(self.ranks)}
        below = 1
        for number, (axis, size) in enumerate(zip("xyz", known.cluster)):
            unit: list[int] = [0, 0, 0]
            unit[number] = int(self.known.grid[number] > 1)
            inside = self.rank // below % size
            below *= size
            of_cluster: Shape3 = (unit[0], unit[1], unit[2])
            of_block: Shape3 = (unit[0] * size, unit[1] * size, unit[2] * size)
            found |= {
                f"%ctaid.{axis}": Number(inside, of_block), f"%nctaid.{axis}": Number(known.grid[number]),
                f"%cluster_ctaid.{axis}": Number(inside), f"%cluster_nctaid.{axis}": Number(size),
                f"%clusterid.{axis}": Number(0, of_cluster), f"%nclusterid.{axis}": Number(self.known.grid[number]),
                f"%ntid.{axis}": Number(known.block[number]),
            }
        return found

    def _operand(self, operand: Operand, mask: Any) -> Number | None:
        found = super()._operand(operand, mask)
        if not isinstance(operand, Symbol) or found is None or found.origin.startswith(LOCAL_ORIGIN):
            return found
        return found._replace(numbers=found.numbers + (self.rank << Cluster.RANK_BITS))

    def _result(self, statement: Instruction, mask: Any) -> Number | None:
        if statement.form.opcode != "mapa":
            return super()._result(statement, mask)
        address, rank = (self._operand(operand, mask) for operand in statement.operands[1:])
        if address is None or rank is None or rank.origin or address.block != NO_BLOCK or rank.block != NO_BLOCK:
            return None
        offset = address.numbers & (1 << Cluster.RANK_BITS) - 1
        valid = (offset < self.sizes(address.origin)) & (rank.numbers >= 0) & (rank.numbers < self.ranks)
        return Number(offset | np.where(valid, rank.numbers, _NOWHERE) << Cluster.RANK_BITS, origin=address.origin)

    def _access(self, place: int, statement: Instruction, mask: Any) -> None:
        asked = self.accesses[place]
        where = self._known(statement.guard, mask)
        threads = mask if where is None else where
        if not threads.any():
            return
        value = self._operand(asked.address.base, threads)
        if value is None or value.block != NO_BLOCK:
            self._access_somewhere(place, threads)
            return
        numbers = np.broadcast_to(self._offset(place, asked.address, value).numbers, threads.shape)
        rank, offset = numbers >> Cluster.RANK_BITS, numbers & (1 << Cluster.RANK_BITS) - 1
        size = self.sizes(asked.array)
        inside = (offset + asked.nbytes <= size) & (rank >= 0) & (rank < self.ranks)
        if value.origin != asked.array or not inside[threads].all():
            self.trace.lose()
            return
        certain = where is not None and self.certain and not self.apart
        self.trace.access(place, asked.array, rank * size + offset, asked.nbytes, threads, asked.writes, certain)

    def _access_somewhere(self, place: int, threads: Any) -> None:
        """An access of which only the array is known, if it is one of a block to its own."""
        asked = self.accesses[place]
        size = self.sizes(asked.array)
        if place in self.far:
            self.trace.lose()
        elif asked.writes or size > MOST_BYTES:
            self.trace.lose_array(asked.array)
        else:
            self.trace.access(place, asked.array, self.rank * size, size, threads, False, False)

    def _barrier(self, place: int, statement: Instruction, mask: Any) -> None:
        if statement.form.effects.barrier != "cluster":
            super()._barrier(place, statement, mask)
        elif self.apart or not self.certain:
            self.trace.lose()
        elif place in self.ends:
            self.trace.arrive(_OF_ALL, len(self.every), True, mask)

    def _barrier_operands(self, statement: Instruction, where: Any) -> list[Number | None]:
        number, expected = super()._barrier_operands(statement, where)
        if number is not None:
            number = number._replace(numbers=number.numbers + self.rank * _NUMBERS)
        return [number, Number(self.threads) if statement.operand("b") is None else expected]
