"""Cluster helpers: which block of the cluster this is, the barrier of all its threads, the shared memory of the others.

Plain Python functions on the public language, traced in place. A launch has a cluster by
``k.configure(grid, block, cluster=2)`` or ``@ptx_kernel(reqnctapercluster=2)``; without one, a block is a cluster of
its own. No block may end while another may still reach its shared memory: end with ``cluster.sync()``.

PTX ISA, sections 9.7.13.4 (barrier.cluster), 9.7.9.23 (mapa), 9.7.9.12 (st.async).
"""

from __future__ import annotations

from typing import Any

from .errors import PtxTypeError
from .language import Pointer, Value, View, ptx
from .language.errors import described, located
from .language.values.literals import known_integer
from .types import u16, u32

__all__ = ["arrive", "at", "half", "rank", "size", "store", "sync", "wait"]

_SPACE = "shared::cluster"
_MOST = 16
"""Blocks of a cluster; more than 8 only where the launch allows it."""


def rank() -> Any:
    """The number of this block in its cluster, counted along x first: a u32."""
    return ptx.cluster_ctarank


def size() -> Any:
    """The number of blocks of the cluster: a u32."""
    return ptx.cluster_nctarank


def arrive(*, relaxed: bool = False) -> None:
    """Count as arrived at the barrier of the cluster and go on; what was written before is seen by those that wait.

    ``relaxed`` leaves the order of memory out: for a barrier that only says that a block runs.
    """
    (ptx.barrier.cluster.arrive.relaxed if relaxed else ptx.barrier.cluster.arrive.release)()


def wait() -> None:
    """Wait until all threads of all blocks of the cluster have arrived."""
    ptx.barrier.cluster.wait.acquire()


def sync() -> None:
    """``arrive`` and ``wait``: all threads of the cluster wait for each other, and see what the others wrote.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, cluster, ptx, ptx_kernel, shared, u32
    >>> @ptx_kernel
    ... def swap(x: Ptr[u32]):
    ...     mine = shared(u32, 32)
    ...     i = ptx.ctaid.x * 32 + ptx.tid.x
    ...     mine[ptx.tid.x] = x[i]
    ...     cluster.sync()
    ...     x[i] = cluster.at(mine, cluster.rank() ^ 1)[ptx.tid.x]
    ...     cluster.sync()
    >>> x = np.arange(64, dtype=np.uint32)
    >>> swap.configure(2, 32, cluster=2, backend="emulator")(x)
    >>> x[[0, 31, 32, 63]].tolist()
    [32, 63, 0, 31]
    """
    arrive()
    wait()


def at(place: Any, rank: Any) -> Any:
    """What lies in block ``rank`` of the cluster where ``place`` lies here: a view or pointer of the same shape.

    One ``mapa``. Loads, stores and atomics of it are over the cluster: ``cluster.at(x, 1)[i] = v``.
    """
    place, number = _shared(place), _rank(rank)
    base: Any = ptx.mapa.shared__cluster.u32(place.address, number)
    if isinstance(place, View):
        return View(place.dtype, _SPACE, base, place.shape, place.strides)
    return Pointer(place.dtype, _SPACE, base)


def store(place: Any, value: Any, rank: Any, barrier: Any) -> None:
    """Store ``value``, or a list of 2 or 4 values, to ``place`` of block ``rank``, as an asynchronous store.

    The mbarrier ``barrier`` of that block, given as this block's own, counts the bytes when they are there, so that
    its threads need no barrier of the cluster: they expect the bytes and wait. 32 or 64 bits a value.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, cluster, mbarrier, ptx, ptx_kernel, shared, u32
    >>> @ptx_kernel
    ... def pass_on(x: Ptr[u32]):
    ...     inbox, arrived = shared(u32, 32), mbarrier.declare()
    ...     i = ptx.ctaid.x * 32 + ptx.tid.x
    ...     mbarrier.start((arrived, 1), cluster=True)
    ...     mbarrier.arrive(arrived, expect_tx=128, pred=ptx.tid.x == 0)
    ...     cluster.store(inbox.at(ptx.tid.x), x[i], cluster.rank() ^ 1, arrived)
    ...     mbarrier.wait(arrived, 0)
    ...     x[i] = inbox[ptx.tid.x]
    ...     cluster.sync()
    >>> x = np.arange(64, dtype=np.uint32)
    >>> pass_on.configure(2, 32, cluster=2, backend="emulator")(x)
    >>> x[[0, 31, 32, 63]].tolist()
    [32, 63, 0, 31]
    """
    place, number = _shared(place), _rank(rank)
    bits = place.dtype.bits
    if bits not in (32, 64):
        raise located(
            PtxTypeError, f"an asynchronous store of {place.dtype}; it is of 32 or 64 bits",
            "`cluster.at(place, rank)[0] = value` stores any type, without an mbarrier",
        )
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) not in (1, 2, 4):
        raise located(
            PtxTypeError, f"an asynchronous store of {len(values)} values", "one, or a list of 2 or 4"
        )
    vector = f"v{len(values)}." if len(values) > 1 else ""
    form = ptx[f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{vector}b{bits}"]
    target = ptx.mapa.shared__cluster.u32(place.address, number)
    signal = ptx.mapa.shared__cluster.u32(_shared(barrier).address, number)
    form(target, values if vector else values[0], signal)


def half(number: Any, what: str = "a mask of ranks") -> Any:
    """A mask of the blocks of a cluster, a bit for each rank, or another number of 16 bits, as an operand: a u16."""
    if isinstance(number, Value):
        if number.type.bits == 16:
            return number
        if number.type is u32:
            return number.to(u16)
        raise located(PtxTypeError, f"{what} is a u16, not {number.type}", "`.to(u16)`")
    known = known_integer(number)
    if known is None or not 0 <= known < 1 << 16:
        raise located(PtxTypeError, f"{what} is {described(number)}", "0 to 65535: `0b11` for the blocks 0 and 1")
    return ptx.mov.u16(known)


def _shared(place: Any) -> Any:
    if not isinstance(place, Pointer) or place.space != "shared":
        raise located(
            PtxTypeError, f"{described(place)} is no place in this block's shared memory",
            "an array of `shared`, or a pointer into one: `x.at(i)`",
        )
    return place


def _rank(rank: Any) -> Any:
    """The number of a block as an operand."""
    if isinstance(rank, Value):
        if rank.type is not u32:
            raise located(PtxTypeError, f"the rank of a block is a u32, not {rank.type}", "`cluster.rank() ^ 1`")
        return rank
    known = known_integer(rank)
    if known is None or not 0 <= known < _MOST:
        raise located(PtxTypeError, f"{described(rank)} is no rank of a block", f"0 to {_MOST - 1}, or a u32")
    return known
