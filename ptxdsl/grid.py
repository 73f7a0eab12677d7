"""Grid helpers: which block this is, and the barrier of all threads of the grid.

Plain Python functions on the public language, traced in place. All blocks must run at once for a barrier of theirs, so
its launch is cooperative: ``k.configure(grid, block, cooperative=True)``.
"""

from __future__ import annotations


from .language import break_if, global_, loop, ptx, when
from .language.block_needs import needs_cooperation
from .types import KernelOperand, u32

__all__ = ["rank", "size", "sync"]

_ROUND = 1 << 31


def rank() -> KernelOperand:
    """The number of this block in the grid, counted along x first: a u32."""
    return ptx.ctaid.x + ptx.nctaid.x * (ptx.ctaid.y + ptx.nctaid.y * ptx.ctaid.z)


def size() -> KernelOperand:
    """The number of blocks of the grid: a u32."""
    return ptx.nctaid.x * ptx.nctaid.y * ptx.nctaid.z


def sync() -> None:
    """All threads of the grid wait for each other, and see what the others wrote.

    Every thread has to come. The launch must be cooperative, or LaunchError says so before anything runs; a kernel with
    this barrier is launched once at a time, since its launches count in one variable of the module.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, grid, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def reverse(x: Ptr[u32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     other = x[grid.size() * ptx.ntid.x - 1 - i]
    ...     grid.sync()
    ...     x[i] = other
    >>> x = np.arange(96, dtype=np.uint32)
    >>> reverse.configure(3, 32, cooperative=True, backend="emulator")(x)
    >>> x[[0, 31, 32, 95]].tolist()
    [95, 64, 63, 0]
    """
    needs_cooperation("grid.sync")
    arrived = global_(u32, 1)
    ptx.bar.sync(0)
    with when((ptx.tid.x | ptx.tid.y | ptx.tid.z) == 0):
        # Together the blocks add 2**31, so that a round turns the upper bit over and leaves the others as they were.
        others = size() - 1
        mine = ptx.selp.u32(_ROUND - others, 1, rank() == 0)
        ptx.fence.acq_rel.gpu()
        before = ptx.atom.relaxed.gpu.global_.add.u32(arrived, mine)
        with loop():
            now = ptx.ld.relaxed.gpu.global_.u32(arrived)
            break_if((now ^ before) >= _ROUND)
        ptx.fence.acq_rel.gpu()
    ptx.bar.sync(0)
