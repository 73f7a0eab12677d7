"""The memory in which a block of a launch runs: its state, its warps, its shared and local memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...ir import Immediate, Not, Operand, Register, Symbol
from ...launch import Buffer, LaunchConfig, Scalar
from ..codegen.code import Code
from ..codegen.library import library
from ..instructions.scheduler import EVERYWHERE, MAKERS, SchedulerFunction
from ..machine.address_spaces import AddressRange, AddressSpaces
from ..machine.allocation import address_of, allocate, copy_bytes, number_at
from ..machine.layout import LANES, SHARED_START, Block, Cluster, Entry, Launch, Warp
from ..machine.tensor_memory import TensorMemory
from ..machine.status import Status
from ..machine.pending import Pending, paces
from ..machine.warp_headers import warp_headers
from ..machine.warp_rows import warps_of
from . import late_search
from .alone import ALONE
from .arrival import Arrival
from .launch_memory import LaunchMemory
from .register_access import read_register, write_register
from .tool import Tool

__all__ = [
    "MOST_KEPT", "TIME_SLICE", "BlockState", "LaunchState", "compiled", "scheduler", "state_bytes",
]

TIME_SLICE = 4096
"""Blocks that a state runs before another one has its time slice; a slice of a warp counts for more."""
_BLOCKS = Launch.span("NEXT", "BLOCKS")
_ENTRY = Entry.span("LOW", "SPACES")
_MEMORY = Block.span("SCHEDULE", "ALL")
_CODE = Block.span("WARPS", "RECONVERGE")
_POINTER = struct.Struct("<Q")
_NO_BARRIERS = bytes(Block.HEAP - Block.BARRIERS)
MOST_KEPT = 256 << 10
"""Bytes of a block state that is kept from launch to launch."""
MOST_STACKS = 4 << 20
"""The same of stacks, which need no clearing."""
_RUN = Block.span("FUNCTION", "LOCKS")
_QUEUE = Block.span("PENDING", "MAKE_SOME")
_PENDING = Block.span("PENDING_FIRST", "PENDING_END")
_SWIZZLED = 1024
"""What addresses of shared memory are swizzled by, and so the same modulo, wherever it is copied to."""
_WARPS = Block.span("BUDGET", "CURRENT")


@cache
def compiled(address: int) -> Any:
    """The compiled function at an address, to be called with a micro-op, a warp and a block state."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)


@cache
def scheduler(name: str) -> int:
    """Address of a function of the compiled scheduler."""
    function = SchedulerFunction(name)
    return library().need([function])[function]


@cache
def _scheduler() -> tuple[int, ...]:
    """The functions from SCHEDULE to RETIRE."""
    return tuple(scheduler(function.name) for function in EVERYWHERE[:-1])


class LaunchState(LaunchMemory):
    """A launch, and the block states that are kept for its blocks, or for the next launch of its kind."""

    tool: Tool[BlockState]

    def __init__(self, spaces: AddressSpaces, config: LaunchConfig, arguments: Sequence[Scalar | Buffer]) -> None:
        super().__init__(spaces, config, arguments)
        self.free: list[BlockState] = []
        """Block states whose blocks have ended, for :meth:`state`."""
        self.clusters: Any = None
        """What its clusters ran in, for the next launch (:mod:`.clusters`)."""

    def state(self, code: Code) -> BlockState:
        """A state in which a block can run."""
        while self.free:
            try:
                state = self.free.pop()
            except IndexError:  # another host thread has taken the last one
                break
            if state.code is code:
                state.begin()
                self.tool.again([state])
                return state
        return BlockState(self, code)

    def end(self, state: BlockState) -> None:
        """A state has run its last block."""
        if self.tool.keeps and not state.renews and state.is_small:
            self.free.append(state)

    def states(self) -> list[BlockState]:
        """The block states that are kept for the next launch."""
        return self.free + self.clusters.states if self.clusters is not None else self.free

    def forget(self) -> None:
        """Let the block states go, which hold the launch: it serves no further one."""
        self.free.clear()
        self.clusters = None


def _layout(launch: LaunchState) -> tuple[int, int, int, int, int]:
    """Where shared memory begins behind the state, then local memory, tensor memory, the buffer table, and its end."""
    spaces = launch.spaces
    reserved = SHARED_START if spaces.reserved else 0
    a, b, c = spaces.cluster or (0, 0, 0)
    entries, warps = len(launch.ranges) + 2 * a * b * c, warps_of(launch.config.block)
    first = -(-Block.nbytes // 1024) * 1024  # swizzles are of addresses modulo 1024, here those of the host
    local = first + (reserved + launch.shared_bytes + 191) // 128 * 128
    tensor = local + (spaces.local_bytes * warps * LANES + 191) // 128 * 128
    table = tensor + spaces.tensor_memory * TensorMemory.nbytes
    return first, local, tensor, table, table + entries * Entry.nbytes


def state_bytes(launch: LaunchState) -> int:
    """Bytes of a block state, without its warps."""
    return _layout(launch)[-1]


class BlockState:
    """The memory in which one block runs at a time."""

    def __init__(
        self, launch: LaunchState, code: Code, rank: int = 0, memory: tuple[Any, int, memoryview] | None = None
    ) -> None:
        """``memory``: where it lies, of :func:`state_bytes`; as :func:`allocate` says it."""
        self.launch, self.rank, self.left = launch, rank, TIME_SLICE
        self.counter: Any = None
        """Memory of the counter of blocks that it has to itself, in a launch in clusters."""
        self._queue: Any = None
        self.arrivals: dict[int, list[Arrival]] = {}
        """By warp, lanes that wait at ``.sync`` instructions for others of it (:mod:`.convergence`)."""
        self.worker = 0
        """The worker that has made it, where it stays with that."""
        self.renews = False
        """Whether the blocks after this one are to run in other code."""
        self.clears = bool(launch.spaces.local_bytes or launch.spaces.reserved or launch.spaces.tensor_memory)
        """Whether it has memory that is zeros when a launch begins."""
        self.shadow = 0
        """Address of the shadow state, where a sanitizer runs."""
        spaces, config = launch.spaces, launch.config
        x, y, z = config.block
        self.count = warps_of(config.block)
        self.all = (1 << self.count) - 1
        """Mask of its warps."""
        first, local, tensor, table, nbytes = _layout(launch)
        self.memory, self.address, self._view = memory or allocate(nbytes, 1024)
        self.first, self.local, self.table = self.address + first, self.address + local, self.address + table
        self.tensor = self.address + tensor if spaces.tensor_memory else 0
        """Where its :class:`TensorMemory` lies, 0 where it has none."""
        self.shared = self.first + (SHARED_START if spaces.reserved else 0)
        self.state_bytes = nbytes
        schedule, reschedule, advance, retire = _scheduler()
        seed = config.seed
        if seed is not None:
            schedule, seed = scheduler("shuffled"), seed * 0x9E3779B1 % (1 << 32) or 1
        _MEMORY.pack_into(  # in the order of the fields of Block: one call, since every launch makes a state
            self._view, Block.SCHEDULE, schedule, reschedule, advance, retire, late_search.search_address(),
            self.table, launch.address, launch.parameters, self.shared, launch.shared_bytes, self.local,
            spaces.local_bytes, spaces.local_granule.bit_length() - 1, spaces.memory.local_window,
            rank << Cluster.RANK_BITS, launch.address + Launch.WORKSPACE if config.cooperative else 0,
            len(launch.ranges), x, y, z, *config.grid, config.shared, launch.shared_bytes, seed or 0,
            self.all,
        )
        if self.tensor:
            self.put(Block.TENSOR, "Q", self.tensor)
        self._fill_table()
        self.attach(code)
        launch.tool.attach(self)
        self._prepare()

    def begin(self) -> None:
        """Be as new, for blocks of the same launch, or of another one with the same ranges of addresses."""
        self.left = TIME_SLICE
        if self.clears:
            ctypes.memset(self.first, 0, self.shared - self.first)
            self._clear_local()
            if self.tensor:
                ctypes.memset(self.tensor, 0, TensorMemory.PEER)
        self._write_warps()
        if any(self._view[Block.BARRED : Block.BARRED + 4]):
            self._view[Block.BARRIERS : Block.HEAP] = _NO_BARRIERS
        self._prepare()

    def _clear_local(self) -> None:
        """Make local memory zeros, but for stacks: calls in the same block leave anything there too."""
        spaces = self.launch.spaces
        each, cleared = spaces.local_bytes * LANES, spaces.cleared_bytes * LANES
        if cleared == each:
            ctypes.memset(self.local, 0, (self.tensor or self.table) - self.local)
        elif cleared:
            for warp in range(self.count):
                ctypes.memset(self.local + warp * each, 0, cleared)

    def _prepare(self) -> None:
        """Let all warps run, to compute what all blocks share."""
        _WARPS.pack_into(self._view, Block.BUDGET, 0, 0, 0, self.all, self.all, 0, 0, 0, 0, LANES - 1)

    def _fill_table(self) -> None:
        launch = self.launch
        for number, area in enumerate(launch.ranges):
            if area is not None:
                self.fill_entry(number, area)
        at = self.table - self.address
        for number, area in launch.spaces.locals.items():
            _ENTRY.pack_into(self._view, at + number * Entry.nbytes, area.address, 0, 0, area.nbytes, 0)

    def fill_entry(self, number: int, area: AddressRange) -> None:
        """Write an entry of the buffer table."""
        if area.heap:
            heap = self.launch.spaces.memory.heap
            self.put(Block.HEAP, "QQ", heap.start, address_of(heap.valid))
            return
        at = self.table - self.address + number * Entry.nbytes
        low, delta, size = area.address, area.place - area.address, area.nbytes
        if area.shared:
            rank = self.rank << Cluster.RANK_BITS
            low, delta = low + rank, self.shared - SHARED_START - area.window - rank
        if size < 0:
            size = self.launch.config.shared
        _ENTRY.pack_into(self._view, at, low, size, size if area.writable else 0, delta, area.spaces)

    def local_copy(self, warp: int, lane: int) -> Any:
        """A copy of the local memory of a thread, in the order of its addresses."""
        size, granule = self.launch.spaces.local_bytes, self.launch.spaces.local_granule
        rows = ctypes.string_at(self.local + warp * size * LANES, size * LANES)
        step = granule * LANES
        pieces = (rows[at : at + granule] for at in range(lane * granule, len(rows), step))
        return (ctypes.c_ubyte * size).from_buffer_copy(b"".join(pieces))

    def local_offset(self, host: int) -> int:
        """The offset in its thread's local memory of what lies at a host address."""
        size, granule = self.launch.spaces.local_bytes, self.launch.spaces.local_granule
        inside = (host - self.local) % (size * LANES)
        return inside // (granule * LANES) * granule + inside % granule

    def own_blocks(self) -> None:
        """Take blocks from a counter of its own, which is none's but those that :meth:`assign` names."""
        self.counter, place, _ = allocate(Launch.nbytes)
        copy_bytes(place, self.launch.address, Launch.nbytes)
        self.put(Block.GRID, "Q", place)

    def assign(self, block: int, count: int = 1) -> None:
        """Run so many blocks from this one on, then none, until others are assigned."""
        copy_bytes(self.get(Block.GRID, "Q") + Launch.NEXT, _BLOCKS.pack(block, block + count), _BLOCKS.size)

    def attach(self, code: Code) -> None:
        """Run this code from now on, with fresh warps."""
        self.complete()
        self.code, self.stride = code, code.stride
        if code.pending > self.get(Block.PENDING_MOST, "i"):
            self._make_queue(code.pending)
        self.warps_memory, self.warps, self._warps_view = allocate(self.stride * self.count)
        self.is_small = self._is_small()
        """Whether it is worth its memory to keep it for the next launch."""
        self._write_warps()
        blocks = address_of(code.blocks)
        _CODE.pack_into(self._view, Block.WARPS, self.warps, self.stride, blocks, code.entry, code.base)
        self.put(Block.REGION, "i", 0)

    def restart(self, code: Code) -> None:
        """Run this code from now on, as a state that has run no block."""
        self.attach(code)
        self._prepare()

    def _make_queue(self, count: int) -> None:
        """Room for so many operations that are not complete, and for what was read of their sources."""
        staging = self.launch.shared_bytes + 2 * _SWIZZLED
        self._queue, place, _ = allocate(count * Pending.nbytes + staging + _SWIZZLED, _SWIZZLED)
        seed = self.launch.config.seed
        pace = (0, 0, 0) if seed is None else (*paces(seed), seed * 0x9E3779B1 % (1 << 32) ^ 0x55555555 or 1)
        made = map(scheduler, MAKERS)
        _QUEUE.pack_into(
            self._view, Block.PENDING, place + -(-staging // _SWIZZLED) * _SWIZZLED, 0, 0, count, *pace, place, staging,
            0, *made,
        )

    @property
    def has_pending(self) -> bool:
        """Whether asynchronous operations are not complete."""
        first, end = _PENDING.unpack_from(self._view, Block.PENDING_FIRST)
        return bool(first != end)

    @property
    def pending(self) -> list[int]:
        """Where the records of asynchronous operations lie that are not complete."""
        first, end = _PENDING.unpack_from(self._view, Block.PENDING_FIRST)
        queue = self.get(Block.PENDING, "Q")
        places = [queue + number * Pending.nbytes for number in range(first, end)]
        return [place for place in places if number_at(place + Pending.ROUTINE)]

    def complete(self) -> bool:
        """Make all operations that are not complete; whether there were some."""
        if not self.has_pending:
            return False
        self.put(Block.STATUS, "i", Status.RUNNING)
        compiled(scheduler("make_all"))(None, None, self.address)
        return True

    def _write_warps(self) -> None:
        """Make the warps ready to compute what does not change from block to block."""
        code, size = self.code, self.stride * self.count
        if code.first_warps:
            self._warps_view[:size] = code.first_warps
            return
        for number, header in enumerate(warp_headers(self.launch.config.block)):
            copy_bytes(self.warps + number * self.stride, header, len(header))
            _POINTER.pack_into(self._warps_view, number * self.stride + Warp.PC, code.prologue)
        if size <= MOST_KEPT:
            code.first_warps = ctypes.string_at(self.warps, size)

    @property
    def nbytes(self) -> int:
        """Memory that the state takes."""
        return int(self.state_bytes + self.warps_memory.nbytes)

    def _is_small(self) -> bool:
        spaces = self.launch.spaces
        stacks = (spaces.local_bytes - spaces.cleared_bytes) * self.count * LANES
        return self.nbytes - stacks <= MOST_KEPT and stacks <= MOST_STACKS

    def digest(self, digest: Any) -> None:
        """Add what the block's threads can read, their places and registers, to a digest."""
        start = self.warps - address_of(self.warps_memory)
        warps = self.warps_memory[start : start + self.stride * self.count].copy().reshape(self.count, self.stride)
        warps[:, Warp.BUDGET : Warp.INITIAL] = 0
        digest.update(warps)
        digest.update(self._view[Block.RUNNABLE : Block.CURRENT])
        digest.update(self._view[Block.BARRIERS : Block.HEAP])
        digest.update((ctypes.c_ubyte * (self.table - self.first)).from_address(self.first))

    def put(self, offset: int, codes: str, *values: Any) -> None:
        struct.pack_into("<" + codes, self._view, offset, *values)

    def get(self, offset: int, codes: str) -> Any:
        return struct.unpack_from("<" + codes, self._view, offset)[0]

    def put_warp(self, warp: int, offset: int, codes: str, *values: Any) -> None:
        struct.pack_into("<" + codes, self._warps_view, warp * self.stride + offset, *values)

    def get_warp(self, warp: int, offset: int, codes: str) -> Any:
        return struct.unpack_from("<" + codes, self._warps_view, warp * self.stride + offset)[0]

    @property
    def block(self) -> int:
        """The number of the block that is run, or was last."""
        return int(self.get(Block.CTA64, "q"))

    @property
    def between_blocks(self) -> bool:
        """Whether no block is being run, or has made a part of its turns."""
        return bool(self.get(Block.LIVE, "I") == 0 and self.get(Block.BEGUN, "I") == 0)

    def register(self, warp: int, name: str) -> list[int]:
        """The number that a register of a warp holds in each lane."""
        return read_register(self.code, self.warps + warp * self.stride, name)

    def values(self, warp: int, operand: Operand) -> list[int]:
        """The number that an operand is in each lane of a warp."""
        if isinstance(operand, Register):
            return self.register(warp, operand.name)
        if isinstance(operand, Not):
            return [bit ^ 1 for bit in self.register(warp, operand.predicate.name)]
        if isinstance(operand, Symbol):
            return [self.code.operands.symbol(operand, None)] * LANES
        assert isinstance(operand, Immediate)
        return [operand.bits] * LANES

    def set_register(self, warp: int, name: str, values: dict[int, int]) -> None:
        """Write some lanes of a varying register."""
        write_register(self.code, self.warps + warp * self.stride, name, values)

    def run(self, blocks: int = TIME_SLICE) -> int:
        """Run until compiled code returns; the Status, YIELD after so many blocks, and where the time slice is over."""
        view = self._view
        _, _, budget, _, _ = _RUN.unpack_from(view, Block.FUNCTION)
        if budget <= 0:
            budget = min(blocks, self.left)
            self.left -= budget
        function = self.code.block_function if self.launch.config.seed is None else 0
        if self.launch.locks:
            _RUN.pack_into(view, Block.FUNCTION, function, Status.RUNNING, budget, 0, True)
            compiled(scheduler("run"))(None, None, self.address)
        else:
            with ALONE:
                _RUN.pack_into(view, Block.FUNCTION, function, Status.RUNNING, budget, 0, self.launch.locks)
                compiled(scheduler("run"))(None, None, self.address)
        _, status, _, exits, _ = _RUN.unpack_from(view, Block.FUNCTION)
        if late_search.errors:
            late_search.raise_pending()
        if exits:
            self.code.note_exits(exits, self.get(Block.EXIT_PC, "Q"))
        return int(status)
