"""mbarriers: counters in shared memory of arrivals and of bytes, for which threads wait by the parity of a phase.

Plain Python functions on the public language, traced in place. A phase ends when as many arrivals were counted as the
mbarrier was made for, and all bytes that were expected have come; then the next one begins. Phases have the parities
0, 1, 0, ..., and ``wait(bar, parity)`` returns once the phase of that parity has ended: of a new mbarrier, the wait
for parity 1 returns at once. A wait cannot tell a phase from the one two before it. `ptxdsl.Pipeline` keeps the
parities of a ring of them.

PTX ISA, section 9.7.13.15 (mbarrier).
"""

from __future__ import annotations

from typing import Any

from .cluster import at, sync
from .errors import PtxTypeError
from .isa.support import supports
from .language import Pointer, Value, break_if, current, loop, ptx, shared, when
from .language.errors import described, located
from .language.values.literals import known_integer
from .types import pred, u32, u64

__all__ = ["arrive", "declare", "expect_tx", "fence", "init", "invalidate", "start", "test", "wait"]

_MOST = (1 << 20) - 1
"""Arrivals of a phase, and bytes."""


def declare(count: int = 1) -> Any:
    """So many mbarriers in shared memory: an array of u64. They are of no use before `start` or `init`."""
    return shared(u64, count)


def start(*bars: tuple[Any, int], cluster: bool = False) -> None:
    """Make mbarriers, each with the number of arrivals of a phase, and have the block see it: the usual beginning.

    Thread 0 of the block makes them, then ``fence`` and a barrier of the block (with ``cluster``, of the cluster,
    whose blocks may arrive at them). All threads must get here.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, mbarrier, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def hand_over(x: Ptr[u32]):
    ...     ready = mbarrier.declare()
    ...     mbarrier.start((ready, 32))
    ...     x[ptx.tid.x] = ptx.tid.x
    ...     mbarrier.arrive(ready)
    ...     mbarrier.wait(ready, 0)
    ...     x[ptx.tid.x] = x[31 - ptx.tid.x]
    >>> x = np.zeros(32, np.uint32)
    >>> hand_over[1, 32](x)
    >>> x[[0, 31]].tolist()
    [31, 0]
    """
    with when((ptx.tid.x | ptx.tid.y | ptx.tid.z) == 0):
        for bar, arrivals in bars:
            init(bar, arrivals)
        fence()
    sync() if cluster else ptx.bar.sync(0)


def init(bars: Any, arrivals: int) -> None:
    """Make one mbarrier, or each of an array, with so many arrivals a phase, 1 to 1048575.

    Of one thread, before all use; the others see it after a ``fence`` of that thread and a barrier. See ``start``.
    """
    bars = checked(bars)
    known = known_integer(arrivals)
    if known is None or not 1 <= known <= _MOST:
        raise located(
            PtxTypeError, f"an mbarrier of {described(arrivals)} arrivals", f"1 to {_MOST}: those of one phase"
        )
    for number in range(getattr(bars, "shape", (1,))[0]):
        ptx.mbarrier.init.shared.b64(bars + number, arrivals)


def fence() -> None:
    """Have the asynchronous proxy and the other blocks of the cluster see the mbarriers that this thread has made.

    Nothing before sm_90, which has neither.
    """
    if _has("fence.mbarrier_init.release.cluster"):
        ptx.fence.mbarrier_init.release.cluster()
        ptx.fence.proxy.async_.shared__cta()


def arrive(bar: Any, count: int | None = None, *, expect_tx: Any = None, rank: Any = None, pred: Any = None) -> None:
    """Count an arrival of each thread that executes it, or ``count`` of them; what was written before is released.

    With ``expect_tx`` the phase also waits for so many bytes of asynchronous copies. ``rank`` arrives at the mbarrier
    in the same place of another block of the cluster. ``pred`` guards it.
    """
    bar = checked(bar)
    if count is not None and expect_tx is not None:
        raise located(
            PtxTypeError, "an arrival that expects bytes counts one",
            "`mbarrier.expect_tx(bar, bytes)`, then `mbarrier.arrive(bar, count)`",
        )
    operands: tuple[Any, ...] = () if count is None else (count,)
    name = "mbarrier.arrive"
    if expect_tx is not None:
        operands, name = (_bytes(expect_tx),), "mbarrier.arrive.expect_tx"
    if rank is None:
        ptx[f"{name}.shared.b64"](bar, *operands, out="_", pred=pred)
    else:
        ptx[f"{name}.release.cluster.shared::cluster.b64"](at(bar, rank).address, *operands, pred=pred)


def expect_tx(bar: Any, nbytes: Any, *, pred: Any = None) -> None:
    """Have the current phase wait for so many bytes more, without an arrival."""
    ptx.mbarrier.expect_tx.relaxed.cta.shared.b64(checked(bar), _bytes(nbytes), pred=pred)


def test(bar: Any, parity: Any) -> Any:
    """Whether the phase of a parity has ended: a predicate, at once."""
    return ptx.mbarrier.test_wait.parity.shared.b64(checked(bar), _parity(parity))


def wait(bar: Any, parity: Any, *, cluster: bool = False) -> None:
    """Wait until the phase of a parity has ended, 0 for the first one of an mbarrier: a loop that asks.

    What its arrivals released and its copies wrote is then seen; with ``cluster``, that of other blocks' threads too.
    """
    bar, parity = checked(bar), _parity(parity)
    name = "mbarrier.try_wait.parity" if _has("mbarrier.try_wait.parity.shared.b64") else "mbarrier.test_wait.parity"
    ask = ptx[f"{name}.acquire.cluster.shared::cta.b64" if cluster else f"{name}.shared.b64"]
    with loop():
        break_if(ask(bar, parity))


def invalidate(bars: Any) -> None:
    """End one mbarrier, or each of an array, so that its memory may be used for something else. Of one thread."""
    bars = checked(bars)
    for number in range(getattr(bars, "shape", (1,))[0]):
        ptx.mbarrier.inval.shared.b64(bars + number)


def _has(mnemonic: str) -> bool:
    """Whether the kernel's target has an instruction."""
    arch = current().arch
    return arch == "auto" or bool(supports(mnemonic, arch))


def checked(bar: Any, hint: str = "`bars = mbarrier.declare(stages)`, and `bars + stage`") -> Any:
    """What is said to be an mbarrier, where it can be one."""
    if not isinstance(bar, Pointer) or bar.space != "shared" or bar.dtype.bits != 64:
        raise located(PtxTypeError, f"{described(bar)} is no mbarrier", hint)
    return bar


def _parity(parity: Any) -> Any:
    if isinstance(parity, Value):
        if parity.type is pred:
            return parity.to(u32)
        if parity.type is u32:
            return parity
        raise located(PtxTypeError, f"the parity of a phase is a u32, not {parity.type}", "`phase = reg(u32, 0)`")
    known = known_integer(parity)
    if known not in (0, 1):
        raise located(
            PtxTypeError, f"{described(parity)} is no parity of a phase", "0 for the first phase, then 1: `round & 1`"
        )
    return known


def _bytes(nbytes: Any) -> Any:
    known = known_integer(nbytes)
    if not isinstance(nbytes, Value) and (known is None or not 0 <= known <= _MOST):
        raise located(
            PtxTypeError, f"an mbarrier that expects {described(nbytes)} bytes", f"0 to {_MOST}: `tile.nbytes`"
        )
    return nbytes
