"""Kernels that the tests of more than one framework make ops of."""

from __future__ import annotations

from ptxdsl import TensorMap, f32, mbarrier, ptx, ptx_kernel, shared, tma, when


@ptx_kernel(arch="sm_90a")
def copy_box(source: TensorMap, target: TensorMap):
    box, full = shared(f32, 8, 8, align=128), mbarrier.declare()
    mbarrier.start((full, 1))
    with when(ptx.tid.x == 0):
        tma.load(box, source, (0, 0), full)
        mbarrier.arrive(full, expect_tx=256)
    mbarrier.wait(full, 0)
    with when(ptx.tid.x == 0):
        tma.store(target, (0, 0), box)
        tma.commit()
        tma.wait()
