"""What the sanitizer inserts about the async proxy: what its accesses are ordered with, and who knows them to be over.

See :mod:`..machine.proxy_shadow` for what is kept of them.
"""

from __future__ import annotations

from .addresses import WithAddress
from .micro_op import MicroOp, Routine
from .operand_classes import OperandClass

__all__ = [
    "ProxyCells", "ProxyCommit", "ProxyCoreFence", "ProxyEnd", "ProxyFence", "ProxyFencing", "ProxyGroup",
    "ProxyHazard", "ProxyJudgement", "ProxyMap", "ProxyMbarrier", "ProxyNote", "ProxyObject", "ProxyObservation",
    "ProxyOperands", "ProxyProduct", "ProxyProductFence", "ProxyRange", "ProxyReuse", "ProxyRows", "ProxySettlement",
    "ProxyTile", "ProxyUnseen",
]


class ProxyMbarrier(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable="see MbarrierOperation", instrumentation=True
):
    """Before an operation on an mbarrier, an :class:`..machine.shadow.Action`: which phases lanes see complete."""

    address: OperandClass
    action: int
    guard: OperandClass


class ProxyObject(
    WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable="see BulkMove", instrumentation=True
):
    """Notes the current phase of the mbarrier that completes a copy, which must have been fenced."""

    address: OperandClass
    guard: OperandClass


class ProxyReuse(
    WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable="see MbarrierOperation", instrumentation=True
):
    """Before an mbarrier is made again, or invalid: its copies must be complete, and its phase wait for no bytes."""

    address: OperandClass
    guard: OperandClass


class ProxyUnseen(MicroOp, may_fault=True, repeatable=True, inlinable="see BulkMove", instrumentation=True):
    """Lanes are about to end: if the block ends with them, somebody must have waited for its last copies."""

    guard: OperandClass


class ProxyRange(MicroOp, may_fault=True, repeatable=True, inlinable="see BulkMove", instrumentation=True):
    """Checks the shadow of the shared memory that copies access from host addresses on, and brings it up to date.

    ``writes``, or else reads. ``of_thread``: a group of the thread completes it, else an mbarrier. ``init``: what is
    read must have been written. ``granule`` and ``copies`` as of ShadowCheck, ``identity`` as of BulkShadowCheck.
    """

    writes: bool
    of_thread: bool
    init: bool
    copies: bool
    granule: int
    size: OperandClass
    identity: tuple[OperandClass, ...]
    guard: OperandClass


class ProxyTile(MicroOp, may_fault=True, repeatable=True, inlinable="see WarpgroupProduct", instrumentation=True):
    """The same of a tile in shared memory that wgmma reads by a descriptor.

    Of ``lines`` along its rows, as many as this warp's where it is the ``left`` one; ``pieces`` of 16 bytes in a line
    where it is ``k``-major, else ``depth`` of them.
    """

    major: str
    left: bool
    lines: int
    depth: int
    pieces: int
    init: bool
    copies: bool
    granule: int
    descriptor: OperandClass
    guard: OperandClass


class ProxyProduct(MicroOp, may_fault=True, repeatable=True, inlinable="see TensorProduct", instrumentation=True):
    """The same of the tiles in shared memory of a tcgen05.mma that has been issued, whose plans are in a slot.

    ``descriptors`` are of A, unless it lies in tensor memory, and B.
    """

    init: bool
    copies: bool
    granule: int
    descriptors: tuple[OperandClass, ...]
    zeros: OperandClass
    guard: OperandClass


class ProxyRows(MicroOp, may_fault=True, repeatable=True, inlinable="see TensorCopy", instrumentation=True):
    """The same of the rows that a tcgen05.cp of some shape copies from shared memory, elements of so many bits."""

    shape: str
    bits: int
    init: bool
    copies: bool
    granule: int
    descriptor: OperandClass
    guard: OperandClass


class ProxyCells(MicroOp, may_fault=True, repeatable=True, inlinable="as the load", instrumentation=True):
    """Before a load of tensor memory, whose fields it has: fences of tcgen05 are behind what others have written."""

    shape: str
    registers: int
    packed: bool
    address: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class ProxyOperands(MicroOp, may_fault=True, repeatable=True, inlinable="see TensorProduct", instrumentation=True):
    """The same of operands of a product, by their ``names``, which lie in tensor memory and are only read."""

    names: tuple[str, ...]
    places: tuple[OperandClass, ...]
    guard: OperandClass


class ProxyCoreFence(MicroOp, may_fault=False, repeatable=True, inlinable="see TensorProduct", instrumentation=True):
    """``tcgen05.fence``, ``before`` a synchronisation or after it."""

    before: bool
    guard: OperandClass


class ProxyCommit(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable="see TensorCommit", instrumentation=True
):
    """Notes which phase of an mbarrier completes what the lanes have issued to the tensor core."""

    address: OperandClass
    guard: OperandClass


class ProxyMap(MicroOp, may_fault=True, repeatable=True, inlinable="see TensorMove", instrumentation=True):
    """Checks that a fence stands behind what this block has changed of a tensor map in global memory."""

    granule: int
    guard: OperandClass


class ProxyGroup(MicroOp, may_fault=False, repeatable=False, inlinable="see BulkMove", instrumentation=True):
    """Commits a group, of the warp's wgmma or of bulk copies of each thread; or behind a wait for all but ``left``."""

    of_thread: bool
    commits: bool
    left: int
    guard: OperandClass


class ProxyEnd(MicroOp, may_fault=True, repeatable=True, inlinable="see BulkMove", instrumentation=True):
    """Lanes are about to end: their copies of bulk groups must have read shared memory."""

    guard: OperandClass


class ProxyFence(MicroOp, may_fault=True, repeatable=False, inlinable="see BulkMove", instrumentation=True):
    """A fence between proxies, of some :class:`..machine.proxy_shadow.Kinds`."""

    kinds: int
    guard: OperandClass


class ProxyNote(MicroOp, may_fault=False, repeatable=True, inlinable="see WarpgroupProduct", instrumentation=True):
    """Notes that a product has begun, or that another instruction has touched its registers, as a hazard's ``slot``."""

    product: bool
    slot: int
    guard: OperandClass


class ProxyHazard(MicroOp, may_fault=True, repeatable=True, inlinable="see WarpgroupProduct", instrumentation=True):
    """Before the use of a register: whether what is noted in a slot makes it an error, a hazard of some ``kind``."""

    kind_of: str
    slot: int
    guard: OperandClass


class ProxyProductFence(
    MicroOp, may_fault=False, repeatable=False, inlinable="see WarpgroupProduct", instrumentation=True
):
    """``wgmma.fence``."""

    guard: OperandClass


class ProxyObservation(Routine):
    """What :class:`ProxyMbarrier` and :class:`ProxyObject` call."""


class ProxySettlement(Routine):
    """Whether an access by the async proxy is complete for the lanes of a mask."""


class ProxyFencing(Routine):
    """Whether fences between proxies order what the generic proxy has written to global memory."""


class ProxyJudgement(Routine):
    """What the checks call where shadow words are not those that they know to be good."""
