"""Warp helpers: reduce, scan and broadcast over the 32 lanes by shuffles.

Plain Python functions on the public language, traced in place; each shuffle is one ``shfl.sync`` for a 32-bit value,
two for a 64-bit one, and goes through a 32-bit register for a 16-bit one. With ``width`` 2, 4, 8 or 16 the warp is cut
in segments of so many lanes, each on its own. All lanes of the warp must get there together, so call them outside of a
divergent ``when``.

A block whose size is no multiple of 32 has a last warp without its upper lanes. ``scan`` and ``shuffle_up`` are right
there; a launch that has ``reduce`` in segments that are not full is a LaunchError. What takes the value of a lane that
is not there is a BarrierError of the emulator, and undefined on a GPU.

PTX ISA, section 9.7.9.6 (shfl.sync).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .errors import PtxTypeError
from .language.block_needs import needs_block
from .language import Value, maximum, minimum, pack, ptx, select
from .language.errors import described, located
from .language.values.literals import known_integer
from .types import KernelOperand, pred, u16, u32

__all__ = [
    "MASK", "broadcast", "lane", "reduce", "reduce_max", "reduce_min", "reduce_sum", "scan", "shuffle", "shuffle_down",
    "shuffle_up", "shuffle_xor",
]

MASK = 0xFFFFFFFF
"""The membermask of a whole warp."""

Operator = Callable[[Any, Any], Any]
_WHOLE = "launch a multiple of {width} threads, and give those without a number the neutral element of the operation"


def lane() -> KernelOperand:
    """The number of the lane in its warp, 0 to 31: a u32 read from ``%laneid``."""
    return ptx.laneid


def shuffle(v: Any, source: Any, width: int = 32) -> KernelOperand:
    """The ``v`` of lane ``source`` of each segment: an int, or a u32, which may differ from lane to lane."""
    return _shuffled("idx", v, _within(source, width), _clamp(width) | 31)


def shuffle_xor(v: Any, mask: Any, width: int = 32) -> KernelOperand:
    """The ``v`` of the lane whose number differs from one's own in the bits of ``mask``."""
    return _shuffled("bfly", v, _within(mask, width), _clamp(width) | 31)


def shuffle_up(v: Any, distance: Any, width: int = 32) -> KernelOperand:
    """The ``v`` of the lane ``distance`` below; one's own where the segment has none."""
    return _shuffled("up", v, _within(distance, width), _clamp(width))


def shuffle_down(v: Any, distance: Any, width: int = 32) -> KernelOperand:
    """The ``v`` of the lane ``distance`` above; one's own where the segment has none."""
    return _shuffled("down", v, _within(distance, width), _clamp(width) | 31)


def broadcast(v: Any, source: Any = 0, width: int = 32) -> KernelOperand:
    """Every lane gets the ``v`` of lane ``source``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, use, warp
    >>> @ptx_kernel
    ... def third(x: Ptr[f32], y: Ptr[f32]):
    ...     y[ptx.tid.x] = warp.broadcast(x[ptx.tid.x], 2)
    >>> x, y = np.arange(32, dtype=np.float32), np.empty(32, np.float32)
    >>> with use("emulator"):
    ...     third[1, 32](x, y)
    >>> set(y.tolist())
    {2.0}
    """
    return shuffle(v, source, width)


def reduce(op: Operator, v: Any, width: int = 32) -> KernelOperand:
    """``op`` over the ``v`` of all lanes, in every lane: a butterfly of 5 shuffles.

    ``op`` takes two Values and gives one; it must be associative and commutative (``maximum``, ``operator.add``, or a
    function of one's own). Floats are added pairwise, in the same order in every lane.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, maximum, ptx, ptx_kernel, use, warp
    >>> @ptx_kernel
    ... def largest(x: Ptr[f32], y: Ptr[f32]):
    ...     y[ptx.tid.x] = warp.reduce(maximum, x[ptx.tid.x])
    >>> x, y = np.arange(32, dtype=np.float32), np.empty(32, np.float32)
    >>> with use("emulator"):
    ...     largest[1, 32](x, y)
    >>> set(y.tolist())
    {31.0}
    """
    _check(op, v)
    _clamp(width)
    needs_block("warp.reduce", _WHOLE.format(width=width), multiple=width)
    distance = width // 2
    while distance:
        v = op(v, shuffle_xor(v, distance))
        distance //= 2
    return v


def reduce_sum(v: Any, width: int = 32) -> KernelOperand:
    """The sum over all lanes, in every lane."""
    return reduce(operator.add, v, width)


def reduce_max(v: Any, width: int = 32) -> KernelOperand:
    """The greatest over all lanes, in every lane; NaNs are passed over."""
    return reduce(maximum, v, width)


def reduce_min(v: Any, width: int = 32) -> KernelOperand:
    """The least over all lanes, in every lane; NaNs are passed over."""
    return reduce(minimum, v, width)


def scan(op: Operator, v: Any, *, exclusive: bool = False, initial: Any = None, width: int = 32) -> KernelOperand:
    """``op`` over the ``v`` of this lane and all below it; over those below it only, if ``exclusive``.

    ``op`` must be associative; the operands keep the order of the lanes. An exclusive scan gives the first lane
    ``initial``, the neutral element of ``op`` (0 for a sum).

    >>> import numpy as np
    >>> from operator import add
    >>> from ptxdsl import Ptr, ptx, ptx_kernel, u32, use, warp
    >>> @ptx_kernel
    ... def offsets(x: Ptr[u32], y: Ptr[u32]):
    ...     y[ptx.tid.x] = warp.scan(add, x[ptx.tid.x], exclusive=True, initial=0)
    >>> x, y = np.full(32, 3, np.uint32), np.empty(32, np.uint32)
    >>> with use("emulator"):
    ...     offsets[1, 32](x, y)
    >>> y[:5].tolist()
    [0, 3, 6, 9, 12]
    """
    _check(op, v)
    if exclusive and initial is None:
        raise located(PtxTypeError, "an exclusive scan has no first value", "give the neutral element: `initial=0`")
    _clamp(width)
    place = lane() & (width - 1)
    distance = 1
    while distance < width:
        v = select(place >= distance, op(shuffle_up(v, distance, width), v), v)
        distance *= 2
    return select(place == 0, initial, shuffle_up(v, 1, width)) if exclusive else v


# ---------------------------------------------------------------------------------------------------------------------


def _check(op: object, v: object) -> None:
    if not callable(op):
        raise located(PtxTypeError, f"the operation is {described(op)}, no function", "`reduce(maximum, v)`")
    if not isinstance(v, Value):
        raise located(PtxTypeError, f"the lanes' value is {described(v)}", "give a Value: `reduce(maximum, v)`")


def _clamp(width: int) -> int:
    """The segment mask that shfl takes in the upper part of its operand c."""
    known = known_integer(width)
    if known not in (2, 4, 8, 16, 32):
        raise located(PtxTypeError, f"{described(width)} is no segment of a warp", "2, 4, 8, 16 or 32 lanes")
    return 32 - known << 8


def _within(lane: Any, width: int) -> Any:
    """A lane, distance or mask: shfl takes it modulo 32, which no program that knows it while tracing means."""
    if isinstance(lane, Value):
        return lane
    known = known_integer(lane)
    if known is None or not 0 <= known < width:
        message = f"{described(lane)} is beyond a segment of {width} lanes"
        raise located(PtxTypeError, message, f"0 to {width - 1}, or a u32 that is computed when the kernel runs")
    return known


def _shuffled(mode: str, v: Any, source: Any, clamp: int) -> Any:
    """One value through ``shfl.sync``, which moves 32 bits."""
    if not isinstance(v, Value):
        raise located(PtxTypeError, f"the lanes' value is {described(v)}", "give a Value or a reg")
    kind = v.type
    if kind is pred:
        return _shuffled(mode, v.to(u32), source, clamp) != 0
    if kind.bits == 32:
        return ptx[f"shfl.sync.{mode}.b32"](v, source, clamp, MASK)
    if kind.bits == 64:
        return pack(kind, *(_shuffled(mode, half, source, clamp) for half in v.unpack(u32)))
    if kind.bits == 16:
        bits = v if kind is u16 else v.bits(u16)
        moved = _shuffled(mode, bits.to(u32), source, clamp).to(u16)
        return moved if kind is u16 else moved.bits(kind)
    raise located(PtxTypeError, f"no shuffle of {kind}", "16, 32 or 64 bits: `v.to(u32)`")
