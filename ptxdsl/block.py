"""Block helpers: reduce, scan and broadcast over all threads of a block by shared memory.

Plain Python functions on the public language, traced in place. The block may have any shape and any size up to 1024
threads that is a multiple of 32 (any size for ``broadcast``); its threads are numbered x first, then y, then z.
``threads`` is the size of the block where it is known while tracing, which saves instructions. A launch of another
block is a LaunchError that names the helper.

All threads must get there together, since there are barriers inside (``bar.sync 0``). Where a ``when`` or ``loop``
around a helper or a ``ptx.ret`` before it might keep some away, its barriers count the threads, so that the emulator
raises BarrierError or DeadlockError at its line; that costs up to seven instructions there, and none with ``threads``.
On a GPU it is undefined.
Each call has some shared memory of its own: a value a warp.
"""

from __future__ import annotations

import operator
from typing import Any

from . import warp
from .errors import PtxTypeError
from .language.block_needs import may_miss, needs_block
from .language import Value, check, current, loop, maximum, minimum, ptx, reg, select, shared, when
from .language.errors import described, located
from .language.values.literals import known_integer
from .types import KernelOperand, pred
from .warp import Operator

__all__ = ["broadcast", "reduce", "reduce_max", "reduce_min", "reduce_sum", "scan", "size", "sync", "thread"]


def sync() -> None:
    """Wait for all threads of the block, and see what they wrote: ``bar.sync 0``."""
    ptx.bar.sync(0)


def thread() -> KernelOperand:
    """The number of the thread in its block, x first: a u32."""
    row = ptx.mad.lo.u32(ptx.tid.z, ptx.ntid.y, ptx.tid.y)
    return ptx.mad.lo.u32(row, ptx.ntid.x, ptx.tid.x)


def size() -> KernelOperand:
    """The number of threads of the block: a u32."""
    return ptx.ntid.x * ptx.ntid.y * ptx.ntid.z


def _sync(threads: int | None) -> None:
    """A barrier that no thread of the block may miss."""
    if not may_miss(current()):
        sync()
    elif threads is not None:
        ptx.bar.sync(0, threads)
    else:
        ptx.bar.sync(0, size() + 31 & 0xFFFFFFE0)


def broadcast(v: Any, source: Any = 0) -> KernelOperand:
    """Every thread gets the ``v`` of thread number ``source``; one that the block does not have stops the kernel.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, block, f32, ptx, ptx_kernel, use
    >>> @ptx_kernel
    ... def pick(x: Ptr[f32], y: Ptr[f32]):
    ...     y[ptx.tid.x] = block.broadcast(x[ptx.tid.x], 77)
    >>> x, y = np.arange(128, dtype=np.float32), np.empty(128, np.float32)
    >>> with use("emulator"):
    ...     pick[1, 128](x, y)
    >>> set(y.tolist())
    {77.0}
    """
    v = _stored(v)
    if isinstance(source, Value):
        check(source < size(), "block.broadcast from a thread that the block does not have")
    elif (known := known_integer(source)) is None or not 0 <= known < 1024:
        raise located(PtxTypeError, f"{described(source)} is no number of a thread", "`block.broadcast(v, 0)`")
    elif known:
        needs_block("block.broadcast", f"launch more than {source} threads, or take another one's", least=source + 1)
    slot = shared(v.type, 1)
    with when(thread() == source):
        slot[0] = v
    _sync(None)
    result = slot[0]
    _sync(None)
    return result


def reduce(op: Operator, v: Any, threads: int | None = None) -> KernelOperand:
    """``op`` over the ``v`` of all threads, in every thread.

    ``op`` takes two Values and gives one; it must be associative and commutative. Two barriers; the order in which
    floats are combined depends on the size of the block only.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, block, f32, maximum, ptx, ptx_kernel, use
    >>> @ptx_kernel
    ... def largest(x: Ptr[f32], y: Ptr[f32]):
    ...     y[ptx.tid.x] = block.reduce(maximum, x[ptx.tid.x], threads=128)
    >>> x, y = np.arange(128, dtype=np.float32), np.empty(128, np.float32)
    >>> with use("emulator"):
    ...     largest[1, 128](x, y)
    >>> set(y.tolist())
    {127.0}
    """
    warps = _warps(threads, "block.reduce")
    v = warp.reduce(op, _stored(v))
    if warps == 1:
        return v
    parts = shared(v.type, warps or 32)
    lane, number = warp.lane(), thread() >> 5
    with when(lane == 0):
        parts[number] = v
    _sync(threads)
    result = _combined(op, parts, lane, warps)
    _sync(threads)
    return result


def reduce_sum(v: Any, threads: int | None = None) -> KernelOperand:
    """The sum over all threads, in every thread."""
    return reduce(operator.add, v, threads)


def reduce_max(v: Any, threads: int | None = None) -> KernelOperand:
    """The greatest over all threads, in every thread; NaNs are passed over."""
    return reduce(maximum, v, threads)


def reduce_min(v: Any, threads: int | None = None) -> KernelOperand:
    """The least over all threads, in every thread; NaNs are passed over."""
    return reduce(minimum, v, threads)


def scan(
    op: Operator, v: Any, threads: int | None = None, *, exclusive: bool = False, initial: Any = None
) -> KernelOperand:
    """``op`` over the ``v`` of this thread and all before it; over those before it only, if ``exclusive``.

    ``op`` must be associative; the operands keep the order of the threads. An exclusive scan gives the first thread
    ``initial``, the neutral element of ``op`` (0 for a sum).

    >>> import numpy as np
    >>> from operator import add
    >>> from ptxdsl import Ptr, block, ptx, ptx_kernel, u32, use
    >>> @ptx_kernel
    ... def running(x: Ptr[u32], y: Ptr[u32]):
    ...     y[ptx.tid.x] = block.scan(add, x[ptx.tid.x])
    >>> x, y = np.full(128, 3, np.uint32), np.empty(128, np.uint32)
    >>> with use("emulator"):
    ...     running[1, 128](x, y)
    >>> y[[0, 1, 63, 127]].tolist()
    [3, 6, 192, 384]
    """
    if exclusive and initial is None:
        raise located(PtxTypeError, "an exclusive scan has no first value", "give the neutral element: `initial=0`")
    warps = _warps(threads, "block.scan")
    v = warp.scan(op, _stored(v))
    parts = shared(v.type, warps or 32)
    lane, number = warp.lane(), thread() >> 5
    with when(lane == 31):
        parts[number] = v
    _sync(threads)
    mine = warp.shuffle_up(v, 1) if exclusive else v
    result = reg(v.type)
    result.set(select(lane == 0, initial, mine) if exclusive else mine)
    with when(number > 0):
        before = reg(v.type)
        before.set(parts[0])
        with loop(1, number) as earlier:
            before.set(op(before, parts[earlier]))
        joined = op(before, mine)
        result.set(select(lane == 0, before, joined) if exclusive else joined)
    _sync(threads)
    return result.copy()


# ---------------------------------------------------------------------------------------------------------------------


def _warps(threads: int | None, helper: str) -> int | None:
    """How many warps the block has; None where that is known only when it runs. The launch must agree."""
    if threads is None:
        needs_block(helper, _WHOLE, multiple=32)
        return None
    known = known_integer(threads)
    if known is None or not 0 < known <= 1024 or known % 32:
        raise located(
            PtxTypeError, f"a block of {described(threads)} threads",
            "a multiple of 32 up to 1024, known while tracing: `threads=256`; leave it out if the launch decides",
        )
    needs_block(helper, f"launch {known} threads, or leave `threads` out", threads=known)
    return known // 32


_WHOLE = "launch a multiple of 32 threads, and give those without a number the neutral element of the operation"


def _stored(v: Any) -> Any:
    """The value as shared memory can hold it."""
    if not isinstance(v, Value) or v.type is pred:
        got = "a predicate" if isinstance(v, Value) else described(v)
        raise located(PtxTypeError, f"the threads' value is {got}", "give a number: `select(p, 1, 0)`, `p.to(u32)`")
    return v


def _combined(op: Operator, parts: Any, lane: Any, warps: int | None) -> Any:
    """``op`` over the part of each warp, in every thread."""
    if warps is None:
        each = reg(parts[0])
        with loop(1, size() + 31 >> 5) as number:
            each.set(op(each, parts[number]))
        return each.copy()
    if warps & (warps - 1) == 0:
        # Each lane takes one part, so that a butterfly of as many lanes as there are warps ends with the whole.
        return warp.reduce(op, parts[lane & (warps - 1)], warps)
    total: Any = parts[0]
    for number in range(1, warps):
        total = op(total, parts[number])
    return total
