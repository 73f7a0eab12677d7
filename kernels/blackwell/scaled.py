"""Matrix products on Blackwell of elements that share scales by blocks along k: mxfp8, mxfp4, nvfp4.

The kernel is that of `matmul`, whose stages have the scales of their k, too: tensor copies bring them as they lie in
global memory, in pieces of 512 bytes for 128 rows and four blocks, and the thread that multiplies has each piece copied
to tensor memory before the product that takes it. Tensor memory has a place for the scales of each stage: that a stage
is full again says that the product of the one before has read them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ... import (
    Array, Kernel, Ptr, ScalarType, TensorMap, cdiv, e2m1x2, f32, ptx, ptx_kernel, reg, tcgen05, tensor_map, tma, u8,
    u32, ue8m0, when,
)

from .. import matrices, tensor_products
from ..tensor_products import SPAN, Kind, Product
from .matmul import ROWS, SHARED, STAGED, Block, Plan, division_of, options_of, run

__all__ = ["choose", "groups_of", "kernel_of", "launch", "shared_bytes", "to_blocked"]

GROUP, PIECE = 4, 512
"""Blocks of k of a piece of scales, and its bytes."""
_COLUMNS = 512
"""Of tensor memory."""


def groups_of(dtype: ScalarType, block: int) -> int:
    """Groups of four scales that a row of a has in a stage.

    >>> groups_of(e2m1x2, 16)
    4
    """
    return SPAN * dtype.lanes // (block * GROUP)


def _nbytes(plan: Plan, groups: int) -> tuple[int, int]:
    """Bytes of the scales of a and b in a stage."""
    return tcgen05.Scales.nbytes(ROWS, groups), tcgen05.Scales.nbytes(plan.columns, groups)


def shared_bytes(plan: Plan, groups: int) -> int:
    """Bytes of dynamic shared memory."""
    return plan.shared + plan.stages * sum(_nbytes(plan, groups))


def choose(m: int, dtype: ScalarType, block: int, turned: bool = False) -> Plan:
    """Two buffers of 128 columns; of elements of 4 bits, whose products take half the time, one of 256.

    Tensor memory has no room for scales beside two of 256. Of a b that is ``turned`` a block of a pair brings 128
    columns at least, which are rows of a swizzled tile.

    >>> from ptxdsl import e4m3
    >>> choose(4096, e4m3, 32)
    Plan(columns=128, stages=7, pair=True, buffers=2)
    >>> choose(100, e2m1x2, 16)
    Plan(columns=256, stages=3, pair=False, buffers=1)
    """
    columns, buffers = (256, 1) if dtype is e2m1x2 or (turned and m > ROWS) else (128, 2)
    plan, groups = Plan(columns, 1, m > ROWS, buffers), groups_of(dtype, block)
    scales = sum(_nbytes(plan, groups))
    room = (_COLUMNS - buffers * columns) // sum(tcgen05.Scales.columns(lines, groups) for lines in (ROWS, columns))
    stages = (SHARED - STAGED) // ((ROWS + plan.share) * SPAN + scales)
    return plan._replace(stages=min(stages, room))


class _Block(Block):
    """What the roles of a block share, with the scales of each stage."""

    def __init__(self, kind: Kind, block: int, scale_type: ScalarType) -> None:
        self.block, self.scale_type, self.groups = block, scale_type, groups_of(kind.a, block)
        super().__init__(kind)
        place = self.staged.end.cast(u8)
        self.scales = [place, place + kind.plan.stages * _nbytes(kind.plan, self.groups)[0]]

    @property
    def memory_columns(self) -> int:
        return _COLUMNS

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(_nbytes(self.plan, self.groups))

    def of_stage(self, slot: Any) -> list[Any]:
        """The scales of a and b in shared memory."""
        sizes = _nbytes(self.plan, self.groups)
        return [place + slot.index * size for place, size in zip(self.scales, sizes)]

    def copy(self, maps: tuple[Any, ...], slot: Any, row: Any, column: Any, step: Any, bar: Any) -> None:
        super().copy(maps[:2], slot, row, column, step, bar)
        for to, source, first in zip(self.of_stage(slot), maps[2:], (row, column)):
            tma.load(to, source, (first // ROWS, step * self.groups, 0, 0), bar, pair=self.plan.pair)

    def add(self, sums: Any, slot: Any, accumulate: Any) -> None:
        plan, groups = self.plan, self.groups
        lines = ROWS, plan.columns
        sizes = [tcgen05.Scales.columns(each, groups) for each in lines]
        first = plan.buffers * plan.columns + slot.index * sum(sizes)
        held = (
            self.memory.scales(lines[0], groups, column=first),
            self.memory.scales(lines[1], groups, column=first + sizes[0]),
        )
        for scales, place in zip(held, self.of_stage(slot)):
            scales.copy(place)
        a, b = self.a.factor(slot, 0, ROWS), self.b.factor(slot, 0, plan.share)
        tcgen05.multiply_scaled(
            sums, a, b.T, held, block=self.block, scale_type=self.scale_type, accumulate=accumulate
        )


@cache
def kernel_of(kind: Kind, block: int, scale_type: ScalarType = ue8m0) -> Kernel:
    """The kernel for scales of ``block`` elements of k each.

    ``(a, b, scales of a, of b, c, bias, columns of c, rows and columns of tiles, steps along k, scale)``.
    """
    plan = kind.plan
    name = f"blackwell_scaled_{kind.a}_{kind.b}_{scale_type}_{block}_{kind.c}_{plan.columns}"
    name += "_pair" * plan.pair + "_bias" * (kind.bias is not None)
    target: Any = TensorMap if kind.copied else Array[kind.c, 2]
    bias_type: Any = kind.bias
    added: Any = u32 if bias_type is None else Ptr[bias_type]

    @ptx_kernel(name=name, **options_of(plan))
    def kernel(
        a: TensorMap, b: TensorMap, scale_a: TensorMap, scale_b: TensorMap, c: target, bias: added, n: u32, rows: u32,
        columns: u32, steps: u32, scale: f32,
    ) -> None:
        run(_Block(kind, block, scale_type), (a, b, scale_a, scale_b), c, bias, n, rows, columns, steps, scale)

    return kernel


def launch(
    product: Product, scales: tuple[Any, Any], block: int, scale_type: ScalarType, *, bias: Any, scale: float,
    plan: Plan | None = None, processors: int | None = None, **options: Any,
) -> Any:
    """Launch the kernel; ``scales`` are of uint8 and lie as :func:`to_blocked` has them."""
    dtype, groups = product.types[0], groups_of(product.types[0], block)
    plan = choose(product.shape[0], dtype, block, product.turned[1]) if plan is None else plan
    kind = Kind(*product.types, product.turned, plan, product.bias, None, product.copied)
    maps = [
        tensor_map(array.reshape(*array.shape[:2], 2, PIECE // 2), (cdiv(lines, ROWS), groups, 2, PIECE // 2))
        for array, lines in zip(scales, (ROWS, plan.columns))
    ]
    into = division_of(plan)._replace(shared=shared_bytes(plan, groups))
    most = tensor_products.processors(processors, options)
    return tensor_products.launch(
        kernel_of(kind, block, scale_type), product, into, bias, scale, most, *maps, **options
    )


@cache
def blocked_kernel(turned: bool) -> Kernel:
    """``(scales, out, groups)``: four scales of a row a thread; ``turned``: rows are columns of the array."""

    @ptx_kernel(name=f"scales_to_blocked{'_turned' * turned}", reqntid=PIECE // GROUP)
    def kernel(scales: Array[u8, 2], out: Ptr[u8], groups: u32) -> None:
        # The piece of a row tile and a group; of a piece, a thread has a word.
        piece, word = ptx.ctaid.x, ptx.tid.x
        row, first = piece // groups * ROWS + (word >> 2) + (word & 3) * 32, piece % groups * GROUP
        found = reg(u32, 0)
        for number in range(GROUP):
            i, j = (first + number, row) if turned else (row, first + number)
            with when((i < scales.shape[0]) & (j < scales.shape[1])):
                found |= scales[i, j].to(u32) << 8 * number
        out.cast(u32)[piece * (PIECE // GROUP) + word] = found

    return kernel


def to_blocked(scales: Any, out: Any) -> None:
    """Scales of uint8, a row for each of a's rows, to pieces ``[row tiles, groups, 512]``, 0 beyond the edges."""
    (tiles, groups, _), stored = out.shape, matrices.store(scales, (False, True), aligned=False)
    blocked_kernel(stored.turned)[tiles * groups, PIECE // GROUP](stored.array, out, groups)
