"""Matrix products in CuTe DSL after the pattern of its examples, by wgmma and tcgen05; loaded where it is compiled."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warpgroup
from cutlass.utils import blackwell_helpers, hopper_helpers

__all__ = ["KERNELS"]

GROUP, THREAD = pipeline.CooperativeGroup, pipeline.Agent.Thread


class Hopper:
    """A warp loads by TMA, warpgroups multiply, and store their tile by stmatrix and TMA."""

    def __init__(self, kind: Any, out: Any, tile: tuple[int, int, int], groups: int, stages: int) -> None:
        self.kind, self.out, self.tile, self.groups, self.stages = kind, out, tile, groups, stages

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
        BM, BN, BK = self.tile
        rows = utils.LayoutEnum.ROW_MAJOR
        product = hopper_helpers.make_trivial_tiled_mma(
            self.kind, self.kind, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, (self.groups, 1, 1),
            (64, BN))
        left = hopper_helpers.make_smem_layout_a(rows, self.tile, self.kind, self.stages)
        right = hopper_helpers.make_smem_layout_b(rows, self.tile, self.kind, self.stages)
        stored = hopper_helpers.make_smem_layout_epi(self.out, rows, (BM, BN), 1)
        load = cpasync.CopyBulkTensorTileG2SOp()
        load_a, of_a = cpasync.make_tiled_tma_atom(load, a, cute.slice_(left, (None, None, 0)), (BM, BK))
        load_b, of_b = cpasync.make_tiled_tma_atom(load, b, cute.slice_(right, (None, None, 0)), (BN, BK))
        store, of_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(stored, (None, None, 0)), (BM, BN))
        grid = (*cute.ceil_div(c.shape, (BM, BN)), 1)
        self.kernel(load_a, of_a, load_b, of_b, store, of_c, product, left, right, stored).launch(
            grid=grid, block=(128 * self.groups + 32, 1, 1))

    @cute.kernel
    def kernel(
        self, load_a: cute.CopyAtom, of_a: cute.Tensor, load_b: cute.CopyAtom, of_b: cute.Tensor, store: cute.CopyAtom,
        of_c: cute.Tensor, product: cute.TiledMma, left: cute.ComposedLayout, right: cute.ComposedLayout,
        stored: cute.ComposedLayout,
    ) -> None:
        BM, BN, BK = self.tile
        thread, _, _ = cute.arch.thread_idx()
        row, column, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp == 4 * self.groups:
            cpasync.prefetch_descriptor(load_a)
            cpasync.prefetch_descriptor(load_b)
        memory = utils.SmemAllocator()
        barriers = memory.allocate_array(cutlass.Int64, 2 * self.stages)
        x = memory.allocate_tensor(self.kind, left.outer, 1024, left.inner)
        y = memory.allocate_tensor(self.kind, right.outer, 1024, right.inner)
        z = memory.allocate_tensor(self.out, stored.outer, 1024, stored.inner)
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages, producer_group=GROUP(THREAD),
            consumer_group=GROUP(THREAD, 4 * self.groups),
            tx_count=(BM + BN) * BK * self.kind.width // 8, barrier_storage=barriers,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)))
        tiles_a = cute.local_tile(of_a, (BM, BK), (row, None))
        tiles_b = cute.local_tile(of_b, (BN, BK), (column, None))
        one = cute.make_layout(1)
        to_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(x, 0, 2),
                                             cute.group_modes(tiles_a, 0, 2))
        to_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(y, 0, 2),
                                             cute.group_modes(tiles_b, 0, 2))
        turns = cute.size(tiles_a, mode=[2])
        if warp == 4 * self.groups:
            cute.arch.setmaxregister_decrease(40)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for turn in range(turns):
                ring.producer_acquire(state)
                bar = ring.producer_get_barrier(state)
                cute.copy(load_a, from_a[None, turn], to_a[None, state.index], tma_bar_ptr=bar)
                cute.copy(load_b, from_b[None, turn], to_b[None, state.index], tma_bar_ptr=bar)
                ring.producer_commit(state)
                state.advance()
            ring.producer_tail(state)
        else:
            self.multiply(thread, warp, row, column, product, x, y, z, ring, turns, store, of_c)

    @cute.jit
    def multiply(
        self, thread: Any, warp: Any, row: Any, column: Any, product: Any, x: Any, y: Any, z: Any, ring: Any,
        turns: Any, store: Any, of_c: Any,
    ) -> None:
        BM, BN, _ = self.tile
        mine = product.get_slice(thread)
        ra, rb = product.make_fragment_A(mine.partition_A(x)), product.make_fragment_B(mine.partition_B(y))
        sums = cute.make_rmem_tensor(mine.partition_shape_C((BM, BN)), cutlass.Float32)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        product.set(warpgroup.Field.ACCUMULATE, False)
        for _ in range(turns):
            ring.consumer_wait(state)
            warpgroup.fence()
            for part in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                cute.gemm(product, sums, ra[None, None, part, state.index], rb[None, None, part, state.index], sums)
                product.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            ring.consumer_release(state)
            state.advance()
        rows = utils.LayoutEnum.ROW_MAJOR
        atom = hopper_helpers.get_smem_store_op(rows, self.out, cutlass.Float32)
        writer = cute.make_tiled_copy_C(atom, product)
        slice_ = writer.get_slice(thread)
        to = slice_.partition_D(z)
        rounded = cute.make_rmem_tensor(sums.layout, self.out)
        rounded.store(sums.load().to(self.out))
        cute.copy(writer, slice_.retile(rounded), to[None, None, None, 0])
        cute.arch.fence_proxy("async.shared", space="cta")
        pipeline.NamedBarrier(1, 128 * self.groups).arrive_and_wait()
        tile = cute.local_tile(of_c, (BM, BN), (row, column))
        source, dest = cpasync.tma_partition(store, 0, cute.make_layout(1), cute.group_modes(z, 0, 2),
                                             cute.group_modes(tile, 0, 2))
        if warp == 0:
            cute.copy(store, source[None, 0], dest)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)


class Blackwell:
    """One warp loads by TMA, one multiplies by tcgen05, four store their rows; of two blocks each has half the rows."""

    def __init__(self, kind: Any, tile: tuple[int, int, int], stages: int, pair: bool) -> None:
        self.kind, self.tile, self.stages, self.pair = kind, tile, stages, pair

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
        blocks = 1 + self.pair
        group = tcgen05.CtaGroup.TWO if self.pair else tcgen05.CtaGroup.ONE
        product = blackwell_helpers.make_trivial_tiled_mma(
            self.kind, self.kind, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, group, self.tile[:2])
        left = blackwell_helpers.make_smem_layout_a(product, self.tile, self.kind, self.stages)
        right = blackwell_helpers.make_smem_layout_b(product, self.tile, self.kind, self.stages)
        of_pair = cute.tiled_divide(cute.make_layout((blocks, 1, 1)), (product.thr_id.shape,))
        load = cpasync.CopyBulkTensorTileG2SOp(group)
        load_a, of_a = cute.nvgpu.make_tiled_tma_atom_A(
            load, a, cute.select(left, mode=[0, 1, 2]), self.tile, product, of_pair.shape)
        load_b, of_b = cute.nvgpu.make_tiled_tma_atom_B(
            load, b, cute.select(right, mode=[0, 1, 2]), self.tile, product, of_pair.shape)
        rows, columns = cute.ceil_div(c.shape, self.tile[:2])
        self.kernel(product, load_a, of_a, load_b, of_b, c, left, right, of_pair).launch(
            grid=(rows * blocks, columns, 1), block=(192, 1, 1), cluster=(blocks, 1, 1))

    @cute.kernel
    def kernel(
        self, product: cute.TiledMma, load_a: cute.CopyAtom, of_a: cute.Tensor, load_b: cute.CopyAtom,
        of_b: cute.Tensor, c: cute.Tensor, left: cute.ComposedLayout, right: cute.ComposedLayout, of_pair: cute.Layout,
    ) -> None:
        BM, BN, BK = self.tile
        blocks = 1 + self.pair
        thread, _, _ = cute.arch.thread_idx()
        block, column, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        half, row = block % blocks, block // blocks
        memory = utils.SmemAllocator()
        barriers = memory.allocate_array(cutlass.Int64, 2 * self.stages + 3)
        holder = memory.allocate_array(cutlass.Int32, 1)
        x = memory.allocate_tensor(self.kind, left.outer, 1024, left.inner)
        y = memory.allocate_tensor(self.kind, right.outer, 1024, right.inner)
        tmem = utils.TmemAllocator(
            holder, barrier_for_retrieve=pipeline.NamedBarrier(2, 160), allocator_warp_id=0, is_two_cta=self.pair,
            two_cta_tmem_dealloc_mbar_ptr=barriers + 2 * self.stages + 2)
        ring = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD),
            tx_count=blocks * (cute.size_in_bytes(self.kind, cute.select(left, mode=[0, 1, 2]))
                               + cute.size_in_bytes(self.kind, cute.select(right, mode=[0, 1, 2]))),
            barrier_storage=barriers, cta_layout_vmnk=of_pair)
        sums_ready = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD, 4 * blocks),
            barrier_storage=barriers + 2 * self.stages, cta_layout_vmnk=of_pair)
        mine = product.get_slice(half)
        tiles_a = mine.partition_A(cute.local_tile(of_a, (BM, BK), (row, None)))
        tiles_b = mine.partition_B(cute.local_tile(of_b, (BN, BK), (column, None)))
        one = cute.make_layout(1)
        to_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(x, 0, 3),
                                             cute.group_modes(tiles_a, 0, 3))
        to_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(y, 0, 3),
                                             cute.group_modes(tiles_b, 0, 3))
        turns = cute.size(tiles_a, mode=[3])
        ra, rb = product.make_fragment_A(x), product.make_fragment_B(y)
        shape = product.make_fragment_C(product.partition_shape_C((BM, BN)))
        if warp == 5:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for turn in range(turns):
                ring.producer_acquire(state)
                bar = ring.producer_get_barrier(state)
                cute.copy(load_a, from_a[None, turn], to_a[None, state.index], tma_bar_ptr=bar)
                cute.copy(load_b, from_b[None, turn], to_b[None, state.index], tma_bar_ptr=bar)
                state.advance()
            ring.producer_tail(state)
        if warp == 4:
            tmem.wait_for_alloc()
            sums = cute.make_tensor(tmem.retrieve_ptr(cutlass.Float32), shape.layout)
            if half == 0:
                state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
                done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
                sums_ready.producer_acquire(done)
                product.set(tcgen05.Field.ACCUMULATE, False)
                for _ in range(turns):
                    ring.consumer_wait(state)
                    for part in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                        cute.gemm(product, sums, ra[None, None, part, state.index], rb[None, None, part, state.index],
                                  sums)
                        product.set(tcgen05.Field.ACCUMULATE, True)
                    ring.consumer_release(state)
                    state.advance()
                sums_ready.producer_commit(done)
        if warp < 4:
            tmem.allocate(512)
            tmem.wait_for_alloc()
            place = tmem.retrieve_ptr(cutlass.Float32)
            sums = cute.make_tensor(place, shape.layout)
            done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            sums_ready.consumer_wait(done)
            self.store(thread, warp, mine, sums, c, row, column)
            cute.arch.fence_view_async_tmem_load()
            with cute.arch.elect_one():
                sums_ready.consumer_release(done)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(1, 128).arrive_and_wait()
            tmem.free(place)

    @cute.jit
    def store(self, thread: Any, warp: Any, mine: Any, sums: Any, c: Any, row: Any, column: Any) -> None:
        BM, BN, _ = self.tile
        numbers = cute.make_identity_tensor(c.shape)
        whole = mine.partition_C(cute.local_tile(c, (BM, BN), (row, column)))
        where = mine.partition_C(cute.local_tile(numbers, (BM, BN), (row, column)))
        width = 32
        part = ((cute.size(sums, mode=[0, 0]), width),)
        sums, whole, where = (cute.zipped_divide(t, part) for t in (sums, whole, where))
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
        reader = tcgen05.make_tmem_copy(atom, sums[None, 0])
        slice_ = reader.get_slice(thread)
        source, to, at = slice_.partition_S(sums), slice_.partition_D(whole), slice_.partition_D(where)
        registers = cute.make_rmem_tensor(to[None, None, 0].shape, cutlass.Float32)
        rounded = cute.make_rmem_tensor(registers.shape, c.element_type)
        for turn in cutlass.range(cute.size(source, mode=[2])):
            cute.copy(reader, source[None, None, turn], registers)
            rounded.store(registers.load().to(c.element_type))
            for i in cutlass.range_constexpr(cute.size(rounded)):
                if cute.elem_less(at[None, None, turn][i], c.shape):
                    to[None, None, turn][i] = rounded[i]


def arrays(m: int, n: int, k: int, kind: Any, out: Any) -> list[Any]:
    """Arrays of which only the shape is known, with rows of K and of N."""
    shapes = ((m, k), kind), ((n, k), kind), ((m, n), out)
    return [cute.runtime.make_fake_compact_tensor(t, shape, stride_order=(1, 0), assumed_align=128)
            for shape, t in shapes]


F16, BF16 = cutlass.Float16, cutlass.BFloat16
KERNELS: dict[str, tuple[str, Any, list[Any], dict[str, int]]] = {
    # target, kernel, arguments, and what its launcher needs to know
    "cute_wgmma_f16": (
        "sm_90a", Hopper(F16, F16, (64, 128, 64), 1, 3), arrays(200, 264, 328, F16, F16),
        {"shared": 100 << 10}),
    "cute_wgmma_bf16": (
        "sm_90a", Hopper(BF16, BF16, (128, 64, 64), 2, 4), arrays(300, 136, 520, BF16, BF16),
        {"shared": 120 << 10}),
    "cute_tcgen05_f16": (
        "sm_100a", Blackwell(F16, (128, 128, 64), 3, False), arrays(200, 264, 328, F16, F16),
        {"shared": 100 << 10}),
    "cute_tcgen05_bf16_pair": (
        "sm_100a", Blackwell(BF16, (256, 128, 64), 3, True), arrays(300, 264, 328, BF16, BF16),
        {"shared": 100 << 10, "ctas": 2}),
}
