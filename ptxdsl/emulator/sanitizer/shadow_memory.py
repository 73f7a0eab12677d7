"""The shadow memory of a launch: words for all memory that its threads share, and the shadow state of each block."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
import weakref
from collections.abc import Container
from typing import Any

import numpy as np

from ..machine.allocation import address_of
from ..machine.layout import LANES, SHARED_START, Block, Entry
from ..machine.proxy_shadow import GROUP_EPOCH, GROUP_RECORDS, GROUPED, ProxyShadow
from ..machine.shadow import (
    BARRIERS, EPOCH_BITS, EPOCH_SHIFT, LANE, MBARRIERS, UNWRITTEN, WARP, WARP_SHIFT, BarrierOrder,
    Kind, MbarrierOrder, Plane, Shadow, WarpClock, WarpOrder, Region as Description,
)
from ..machine.sync_graph import CELL, WarpSync
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.clusters import window_entry
from .regions import Region
from .shadow_words import WORD_BYTES, ShadowWords
from .shadow_store import Marked, ShadowState, Store, routines, store

__all__ = ["ShadowMemory"]

_MASK = (1 << 64) - 1
_LOW = (1 << EPOCH_SHIFT) - 1
_REGION = Description.span("LOW")
_WORD = struct.Struct("<Q")
_WORDS = Shadow.span("WORDS", "FRESH")
_HOME = Shadow.span("HOME", "HOME_BYTES")
_LINK = Entry.span("SHADOW_WORDS", "SHADOW_STRIDE")
_SHARED = Shadow.span("SHARED_ORIGIN", "SHARED_STRIDE")


class ShadowMemory(ShadowWords):
    """``init``: the words also say what has been written, from the memory that the host left uninitialised on."""

    def __init__(self, launch: LaunchState, init: bool) -> None:
        super().__init__(launch, init)
        self.states: list[ShadowState] = []
        self._given: list[tuple[Any, int]] = []
        """The memory that was returned, if it is still there."""
        self._images: dict[int, tuple[ShadowState, bytes]] = {}
        """By the address of a block state its shadow state, and what that is at first."""
        self._rows: dict[int, Any] = {}
        """What it writes to the synchronisation graph."""
        self._known: dict[int, Any] = {}
        """What compiled code knows of the order among its warps and lanes."""
        self.private: dict[int, list[Region]] = {}
        """Shared and local memory of each block state, by its address."""
        self._homes: dict[int, tuple[int, int]] = {}
        """Where the memory begins that a block, or a cluster, has for itself, and how many bytes it has."""
        self.clustered = False
        """Whether blocks reach each other's shared memory."""
        self.copied = False
        """Whether words may be those of bulk copies, which are of no epoch."""
        self.fenced: np.ndarray[Any, Any] | None = None
        """For each block, by its number plus one, the epoch of its last fence between proxies of global memory."""
        self.current: BlockState | None = None
        self.taken = False
        """Whether it has its memory once more."""
        self.clusters = self._number_clusters()
        """Of each block, where the launch is in clusters."""

    def open(self) -> None:
        """Take the memory for the words: no other launch has the store until :meth:`release`."""
        if self.taken:
            return
        self.store = store()
        self.store.lock.acquire()
        if int(self.store.counter[0]) >> (EPOCH_BITS - 1) or int(self.store.tickets[0]) >> 31:
            self.store.renumber()
        self.first_epoch = int(self.store.counter[0]) + 1
        self.blocks = self.store.blocks_of(self.first_epoch)
        self.log = self.store.log
        self.log.begin()
        self._add_global_memory()
        self.marked = self.heap or bool(self.unwritten_buffers)
        """Whether words that are not an array's own say that memory is unwritten."""

    def open_beside(self, first: ShadowMemory, own: Store, apart: Container[int]) -> None:
        """Take memory for the words of another host thread of the launch, which begins as the first one began.

        Its words for the memory of its blocks are its own, as are those for the ranges of global memory that begin at
        ``apart``.
        """
        self.store, self.log, self.marked, self.first_epoch = own, own.log, first.marked, first.first_epoch
        self.log.begin()
        self.blocks = own.blocks_of(self.first_epoch)
        own.follow(first.store)
        own.counter[0] = first.first_epoch - 1
        self.regions = [
            self._region(each.low, each.nbytes, Kind.GLOBAL) if each.low in apart else each for each in first.regions
        ]

    def release_beside(self, first: ShadowMemory) -> None:
        """Return them; the first thread's numbers are behind these."""
        for mine, theirs in ((self.store.counter, first.store.counter), (self.store.tickets, first.store.tickets)):
            theirs[0] = max(int(mine[0]), int(theirs[0]))
        self._clear_shared()
        self.store.give(self.arrays)
        self.store.return_states(self.states)

    def take_again(self) -> bool:
        """Take the same memory as before for the next launch, if nobody else has it."""
        self.store.lock.acquire()
        full = int(self.store.counter[0]) >> (EPOCH_BITS - 1) or int(self.store.tickets[0]) >> 31
        arrays = [] if full else self.store.take_again(self._given)
        if not arrays:
            self.store.lock.release()
            return False
        self.arrays, self.taken, self.current = arrays, True, None
        self.first_epoch = int(self.store.counter[0]) + 1
        self.blocks = self.store.blocks_of(self.first_epoch)
        self.log.begin()
        return True

    @property
    def can_be_kept(self) -> bool:
        """Whether its words hold nothing but accesses, and are of numpy's arrays."""
        return not (self.marked or self.copied or self.copies or self.proxies or self.exhausted())

    def release(self, keeps: bool = False) -> None:
        """Return the words to the store, and to the arrays what is still unwritten; ``keeps`` the shadow states."""
        self._keep_unwritten()
        if self.uses_proxies:
            for marked in self.kept:
                if isinstance(marked, Marked):
                    np.copyto(marked.words, 0, where=marked.words >= GROUPED)
        if not self.copied and not self.marked:
            self._clear_shared()
            self.store.give(self.arrays)
            self._given = [(weakref.ref(array), planes) for array, planes in self.arrays]
        self.arrays = []
        if not keeps:
            self.store.return_states(self.states)
        self.store.lock.release()

    def _clear_shared(self) -> None:
        """Clear the words of shared memory that say more than who has accessed it in which epoch.

        These are accesses by the async proxy, and in clusters that memory is unwritten.
        """
        planes = Plane.COPY if self.proxies else Plane.READER if self.clustered and self.init else 0
        for region in itertools.chain.from_iterable(self.private.values()) if planes else ():
            if region.kind == Kind.SHARED:
                ctypes.memset(region.words, 0, planes * region.stride)

    # Blocks

    def attach(self, state: BlockState) -> None:
        """Give a block state its shadow state and the words of its shared and local memory."""
        memory = self.store.state()
        self.states.append(memory)
        shared, local = self.launch.shared_bytes, self.launch.spaces.local_bytes * state.count * LANES
        address = memory.address
        private = [self._region(state.shared, shared, Kind.SHARED, self.copies and address)] if shared else []
        private += [self._region(state.local, local, Kind.LOCAL)] if local else []
        self.private[state.address] = private
        self._homes[state.address] = state.address, state.state_bytes
        if local:
            _WORD.pack_into(memory.view, Shadow.LOCAL_WORDS, self._origin(private[-1]))
        if shared:
            _SHARED.pack_into(memory.view, Shadow.SHARED_ORIGIN, self._origin(private[0]), private[0].stride)
        state.shadow = address
        state.put(Block.SHADOW, "Q", address)
        for offset, value in (
            (Shadow.EPOCH_COUNTER, self.store.counter_address), (Shadow.EPOCH_BLOCKS, self.blocks.ctypes.data),
            (Shadow.LAUNCH, self.first_epoch << EPOCH_SHIFT), (Shadow.ORDER_CACHE, memory.cache_address),
            *routines().items(), (Shadow.LOG, self.log.address), (Shadow.ORDERS, self._orders(state)),
            *self._graph(state), (Shadow.HOME, state.address), (Shadow.HOME_BYTES, state.state_bytes),
            (Shadow.CLUSTERS, 0 if self.clusters is None else self.clusters.ctypes.data), *self._copy_clocks(state),
            *self._proxies(private[0] if shared else None),
        ):
            _WORD.pack_into(memory.view, offset, value)
        regions = [*self.regions, *private]
        self._describe(state, regions)
        for number, guarded in enumerate(self.launch.ranges):
            if guarded is not None and guarded.nbytes:
                host = guarded.place
                if guarded.shared:
                    host = state.shared - SHARED_START + guarded.address - guarded.window
                region = next((region for region in regions if region.holds(host)), None)
                if region is not None:
                    self._link(state.table + number * Entry.nbytes, region)
        self._images[state.address] = memory, self._image(state, memory)

    @staticmethod
    def _image(state: BlockState, memory: ShadowState) -> bytes:
        """What a shadow state is now, but for the clocks of warps that its block does not have."""
        return bytes(memory.view[: Shadow.WARP_CLOCKS + state.count * WarpClock.nbytes])

    def attach_again(self, state: BlockState) -> None:
        """Make the shadow state of a block state as new, for another launch."""
        memory, image = self._images[state.address]
        memory.forget()
        memory.view[: len(image)] = image
        self._rows[state.address][:] = 0
        if self.orders:
            self._known[state.address][:] = 0
        _WORD.pack_into(memory.view, Shadow.LAUNCH, self.first_epoch << EPOCH_SHIFT)
        _WORD.pack_into(memory.view, Shadow.EPOCH_BLOCKS, self.store.address_of_blocks(self.first_epoch))

    def _orders(self, state: BlockState) -> int:
        """Memory for what compiled code knows of the order among warps and lanes; 0 where it follows none."""
        if not self.orders:
            return 0
        barriers = MBARRIERS * MbarrierOrder.nbytes + BARRIERS * BarrierOrder.nbytes
        rows = np.zeros(LANES * WarpOrder.nbytes + barriers + 64, np.uint8)
        self._known[state.address] = rows
        return int(rows.ctypes.data + -rows.ctypes.data % 64)

    def _graph(self, state: BlockState) -> list[tuple[int, int]]:
        """The fields of a shadow state by which compiled code follows flags, fences and barriers of the cluster."""
        rows = self._rows[state.address] = np.zeros(state.count * WarpSync.nbytes + CELL, np.uint8)
        address = int(rows.ctypes.data)
        return [(Shadow.GRAPH, self.log.graph_address), (Shadow.WARP_SYNC, address + -address % CELL)]

    def _copy_clocks(self, state: BlockState) -> list[tuple[int, int]]:
        """The fields of a shadow state by which asynchronous copies are followed."""
        if not self.copies:
            return []
        rows = np.zeros((state.count, self.copies, LANES), np.uint32)
        self.kept.append(rows)
        return [
            (Shadow.TICKET_COUNTER, self.store.tickets.ctypes.data), (Shadow.COPY_CLOCKS, rows.ctypes.data),
            (Shadow.COPY_BYTES, rows[0].nbytes), (Shadow.COPY_WARPS, state.count),
        ]

    def _proxies(self, shared: Region | None) -> list[tuple[int, int]]:
        """The fields of a shadow state by which accesses by the async proxy are followed."""
        if not self.uses_proxies:
            return []
        rows = np.zeros(ProxyShadow.nbytes + 64, np.uint8)
        self.kept.append(rows)
        address = int(rows.ctypes.data)
        proxies = (Shadow.PROXIES, address + -address % 64), (Shadow.GROUPS, self.store.groups.ctypes.data)
        if shared is None or not self.proxies:
            return [*proxies]
        if self.fenced is None:
            self.fenced = np.zeros(math.prod(self.launch.config.grid) + 1, np.uint64)
        return [
            *proxies, (Shadow.FENCED_BLOCKS, self.fenced.ctypes.data), (Shadow.SHARED_LOW, shared.low),
            (Shadow.SHARED_SIZE, shared.nbytes), (Shadow.SHARED_WORDS, shared.words),
            (Shadow.SHARED_CLEARED, Plane.COPY * shared.stride), *routines(proxies=True).items(),
        ]

    def _link(self, entry: int, region: Region) -> None:
        """Write to an entry of a buffer table where the shadow words are, for compiled checks."""
        ctypes.memmove(entry + Entry.SHADOW_WORDS, _LINK.pack(self._origin(region), region.stride), _LINK.size)

    def _origin(self, region: Region) -> int:
        """Where the word of host address 0 would be."""
        return (region.words - (region.low >> self.granule) * WORD_BYTES) & _MASK

    def _describe(self, state: BlockState, regions: list[Region]) -> None:
        table = b"".join(_REGION.pack(*region) for region in regions)
        described = bytearray(table or b"-")
        self.kept.append(described)
        self.put(state, Shadow.REGIONS, "Q", address_of(described))
        self.put(state, Shadow.REGION_COUNT, "i", len(regions))

    def shared_region(self, state: BlockState) -> Region | None:
        return next((region for region in self.private[state.address] if region.kind == Kind.SHARED), None)

    def region_at(self, host: int) -> Region | None:
        """The region of global or shared memory that a host address lies in."""
        return self.shared_region_at(host) or next((region for region in self.regions if region.holds(host)), None)

    def shared_region_at(self, host: int) -> Region | None:
        """The region of the shared memory, of any block, that a host address lies in."""
        shared = (region for regions in self.private.values() for region in regions if region.kind == Kind.SHARED)
        return next((region for region in shared if region.holds(host)), None)

    def home(self, state: BlockState, host: int) -> int:
        """Where the memory begins that the block of a state, or its cluster, has for itself; 0 for that of all."""
        low, nbytes = self._homes[state.address]
        return low if low <= host < low + nbytes else 0

    def connect(self, states: list[BlockState]) -> None:
        """Make the shared memory of all blocks of a cluster known to each; its words are as those of global memory."""
        self.clustered = True
        shared = {state.rank: region for state in states if (region := self.shared_region(state)) is not None}
        home = states[0].address, states[-1].address + states[-1].state_bytes - states[0].address
        for state in states:
            self._homes[state.address] = home
            ctypes.memmove(state.shadow + Shadow.HOME, _HOME.pack(*home), _HOME.size)
            local = [region for region in self.private[state.address] if region.kind == Kind.LOCAL]
            reached = [region._replace(kind=Kind.GLOBAL) for region in shared.values()]
            self._describe(state, [*reached, *self.regions, *local])
            if state.rank in shared:
                words, size = shared[state.rank], self._shared_granules() * WORD_BYTES
                fields = _WORDS.pack(words.words, words.stride, size, UNWRITTEN if self.init else 0)
                ctypes.memmove(state.shadow + Shadow.WORDS, fields, len(fields))
            for (rank, region), generic in itertools.product(shared.items(), (0, 1)):
                self._link(window_entry(state, rank, generic), region)
            memory, _ = self._images[state.address]
            self._images[state.address] = memory, self._image(state, memory)

    def begin_cluster(self, states: list[BlockState]) -> None:
        """Clear the words of the shared memory of all blocks."""
        for region in filter(None, map(self.shared_region, states)):
            self._clear(region, region.low, self._shared_granules(), self.init)
        for state in states:
            self.put(state, Shadow.CLUSTER_BASE, "Q", (int(self.store.counter[0]) + 1) << EPOCH_SHIFT)

    def _shared_granules(self) -> int:
        return (self.launch.shared_bytes >> self.granule) + 1

    def is_private(self, state: BlockState, host: int) -> bool:
        """Whether no other block reaches a host address: there, words of epochs before the block count as unwritten."""
        found = next((region for region in self.private[state.address] if region.holds(host)), None)
        return found is not None and not (self.clustered and found.kind == Kind.SHARED)

    # Epochs

    def put(self, state: BlockState, offset: int, codes: str, value: int) -> None:
        data = struct.pack("<" + codes, value)
        ctypes.memmove(state.shadow + offset, data, len(data))

    def get(self, state: BlockState, offset: int, codes: str = "Q") -> int:
        data = ctypes.string_at(state.shadow + offset, struct.calcsize("<" + codes))
        value: int = struct.unpack("<" + codes, data)[0]
        return value

    def clock(self, state: BlockState, warp: int, offset: int) -> int:
        """A field of a warp's :class:`WarpClock`."""
        return self.get(state, Shadow.WARP_CLOCKS + warp * WarpClock.nbytes + offset)

    def block_of(self, state: BlockState) -> int:
        """Number of the block that a state runs."""
        return self.get(state, Shadow.BLOCK, "I") - 1

    def cluster_of(self, block: int) -> int:
        """The cluster of a block."""
        return block if self.clusters is None else int(self.clusters[block])

    def _number_clusters(self) -> np.ndarray[Any, Any] | None:
        shape, grid = self.launch.spaces.cluster, self.launch.config.grid
        if shape is None:
            return None
        z, y, x = (np.arange(whole) // part for whole, part in zip(grid[::-1], shape[::-1]))
        return ((z[:, None, None] * grid[1] + y[:, None]) * grid[0] + x).astype(np.uint32).ravel()

    def thread_of(self, word: int) -> tuple[int, int, int]:
        """Block, warp and lane of the access that a shadow word holds."""
        epoch = word >> EPOCH_SHIFT
        block = int(self.blocks[epoch & (1 << EPOCH_BITS) - 1]) - 1
        return block, (word & WARP) >> WARP_SHIFT, word & LANE

    def stands_for(self, word: int) -> int:
        """What a word of a bulk group stands for: 0 where that is ordered before all, itself while it is pending."""
        epoch = (word & GROUP_EPOCH) >> EPOCH_SHIFT
        known, done = (int(number) for number in self.store.groups[epoch % GROUP_RECORDS])
        if epoch < self.first_epoch or known != epoch:
            return 0
        return done | word & _LOW if done else word

    def switch(self, state: BlockState) -> None:
        """Another block state has its time slice: the epochs until now may be of any block."""
        if state is not self.current:
            self.current = state
            self.put(state, Shadow.WINDOW, "Q", (int(self.store.counter[0]) + 1) << EPOCH_SHIFT)

    def entered(self, state: BlockState) -> None:
        """Compiled code has done that for a block state."""
        self.current = state

    def begin_epoch(self, state: BlockState, warp: int) -> None:
        epoch = int(self.store.counter[0]) + 1
        self.store.counter[0] = epoch
        self.blocks[epoch & (1 << EPOCH_BITS) - 1] = self.block_of(state) + 1
        place = Shadow.WARP_CLOCKS + warp * WarpClock.nbytes + WarpClock.EPOCH
        self.put(state, place, "Q", epoch << EPOCH_SHIFT | warp << WARP_SHIFT)

    def exhausted(self) -> bool:
        """Whether the launch had more epochs than there are entries for their blocks."""
        return bool(int(self.store.counter[0]) >> EPOCH_BITS)
