"""The memory that a running block has: its state, its warps, its shared and local memory, its table of buffers."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from ...errors import EmulationError
from ...launch import Buffer, LaunchConfig, Scalar
from .layout import (
    ALIGNED_START, LANES, LOCAL_WINDOW, NARROW_LOCAL, NARROW_SHARED, NEVER, SHARED_START, SPACE_BITS, Block, Cluster,
    Entry, Launch, Status, Warp,
)
from ..codegen.library import library
from .address_spaces import Guarded, Spaces

if TYPE_CHECKING:
    from ..instructions.lowering import Code

__all__ = ["LaunchState", "State", "Tool"]

_MACHINE = {
    Block.SCHEDULE: ("machine", "schedule", ""), Block.RESCHEDULE: ("machine", "reschedule", ""),
    Block.RESOLVE: ("machine", "resolve", ""), Block.RETIRE: ("machine", "retire", ""),
    Block.ADVANCE: ("machine", "advance", ""),
}
RUN = ("machine", "run", "")
SHUFFLED = ("machine", "shuffled", "")
TURNS = 4096
"""Blocks that a state runs before another one has its turn; a slice of a warp counts for more."""


def allocate(nbytes: int, align: int = 64) -> tuple[Any, int]:
    """Zeroed memory and its aligned address."""
    import numpy as np

    array = np.zeros(nbytes + align, np.uint8)
    start = _address(array)
    return array, start + -start % align


def _address(array: Any) -> int:
    """As array.ctypes.data, in a fourth of its time."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def _from(array: Any, address: int) -> memoryview:
    """The memory of an array from an address on."""
    view = memoryview(array)
    return view[address - _address(array) :]


def _guarded(buffer: Buffer, address: int = 0) -> Guarded:
    reach = SPACE_BITS["global"] | SPACE_BITS["generic"] | SPACE_BITS["const"]
    host = buffer.address if address else 0
    return Guarded(buffer.name, address or buffer.address, buffer.nbytes, reach, buffer.writable, host=host)


class Tool:
    """What the engine tells a tool that follows a launch: the sanitizer or a debugger. This one does nothing."""

    def attach(self, state: State) -> None:
        """A block state has its memory."""

    def connect(self, states: list[State]) -> None:
        """These are the block states of the clusters."""

    def begin_cluster(self, states: list[State]) -> None:
        """They are about to run the blocks of another cluster."""

    def switch(self, state: State) -> None:
        """A block state is about to have a time slice."""

    def callback(self, state: State) -> None:
        """A micro-op of the tool has returned with Status.CALLBACK; the warp resumes after it."""

    def allocated(self, address: int, nbytes: int) -> None:
        """``malloc`` has given memory."""

    def unwritten(self, state: State, record: int, thread: tuple[int, int], register: str) -> None:
        """A thread, warp and lane, reads a register that it has not written."""

    def untracked(self, state: State, statement: int) -> None:
        """A diverged instruction was completed without the tool's micro-ops."""


NO_TOOL = Tool()


class LaunchState:
    """What all blocks of a launch share: the counter of blocks, the parameters, the ranges of addresses.

    Buffers beyond the parameters are memory that the kernel may come to by addresses in other memory.
    """

    def __init__(self, spaces: Spaces, config: LaunchConfig, arguments: list[Scalar | Buffer]) -> None:
        self.spaces, self.config, self.arguments = spaces, config, arguments
        self.memory, self.address = allocate(Launch.nbytes + spaces.parameter_bytes + 64)
        x, y, z = config.grid
        head = struct.pack("<qqiii", 0, x * y * z, x, y, z)
        ctypes.memmove(self.address, head, len(head))
        self.parameters = self.address + Launch.nbytes
        self.ranges: list[Guarded | None] = list(spaces.ranges)
        placed = self._placed()
        for number, (parameter, argument) in enumerate(zip(spaces.function.parameters, arguments)):
            address = placed.get(number, 0)
            data = argument.data if isinstance(argument, Scalar) else struct.pack("<Q", address or argument.address)
            if address and parameter.nbytes == 4:
                data = data[:4]
            if len(data) != parameter.nbytes:
                raise ValueError(f"parameter {parameter.name} has {parameter.nbytes} bytes; {len(data)} came")
            ctypes.memmove(self.parameters + spaces.offsets[parameter.name], data, len(data))
            if isinstance(argument, Buffer):
                self.ranges[1 + number] = _guarded(argument, address)
                self.ranges += [_guarded(target) for target in argument.targets]
        self.ranges += [_guarded(b) for b in arguments[len(spaces.function.parameters) :] if isinstance(b, Buffer)]
        reach = SPACE_BITS["param"] | SPACE_BITS["generic"]
        self.ranges.append(Guarded("the parameters", self.parameters, spaces.parameter_bytes, reach, False))
        if config.cooperative:
            reach = SPACE_BITS["global"] | SPACE_BITS["generic"]
            self.ranges.append(Guarded("the grid's workspace", self.address + Launch.WORKSPACE, 8, reach))
        self.shared_bytes = spaces.dynamic_start - SHARED_START + config.shared
        self.blocks = x * y * z
        self.tool = NO_TOOL

    def _placed(self) -> dict[int, int]:
        """The addresses of arrays, by their number, that cannot have those of the host."""
        memory, alignment = self.spaces.memory, self.spaces.alignment
        if not memory.narrow and alignment == 1:
            return {}
        end = memory.end if memory.narrow else ALIGNED_START
        placed: dict[int, int] = {}
        for number, argument in enumerate(self.arguments):
            if isinstance(argument, Buffer) and (memory.narrow or argument.address % alignment):
                # Apart, so that what goes beyond one array is in no other.
                placed[number] = end = (end + 511) // 256 * 256
                end += argument.nbytes
        if memory.narrow and end > NARROW_SHARED:
            raise EmulationError(f"the arrays have {end - memory.end} bytes, more than addresses of 32 bits reach")
        return placed

    def left(self) -> int:
        """Blocks that have not been started."""
        return max(0, self.blocks - int.from_bytes(ctypes.string_at(self.address + Launch.NEXT, 8), "little"))

    def close(self, blocks: int) -> None:
        """Start no block from this number on."""
        self.blocks = min(self.blocks, blocks)
        ctypes.memmove(self.address + Launch.BLOCKS, struct.pack("<q", self.blocks), 8)

    def digest(self, digest: Any) -> None:
        """Add the memory that all blocks see to a digest."""
        for guarded in self.ranges:
            if guarded is not None and guarded.writable and not guarded.shared:
                digest.update((ctypes.c_ubyte * guarded.nbytes).from_address(guarded.place))

    def size_of(self, guarded: Guarded) -> int:
        """Bytes of a range; dynamic shared memory has what the launch gives it."""
        return self.config.shared if guarded.nbytes < 0 else guarded.nbytes


class State:
    """The memory in which one block runs at a time."""

    def __init__(self, launch: LaunchState, code: Code, rank: int = 0) -> None:
        self.rank = rank
        self.counter: Any = None
        """Memory of the counter of blocks that it has to itself, in a launch in clusters."""
        self.arrivals: dict[int, list[Any]] = {}
        """By warp, lanes that wait at ``.sync`` instructions for others of it (:mod:`.runtime.convergence`)."""
        self.launch, self.code, self.left = launch, code, TURNS
        threads = launch.config.threads
        self.count = -(-threads // LANES)
        local = launch.spaces.local_bytes
        x, y, z = launch.spaces.cluster or (0, 0, 0)
        entries = (len(launch.ranges) + 2 * x * y * z) * Entry.nbytes
        reserved = SHARED_START if launch.spaces.reserved else 0
        sizes = (Block.nbytes, reserved + launch.shared_bytes + 64, local * self.count * LANES + 64, entries)
        starts = [sum((size + 127) // 128 * 128 for size in sizes[:n]) for n in range(len(sizes))]
        self.memory, self.address = allocate(starts[-1] + entries, 1024)
        self._view = _from(self.memory, self.address)
        self.first, self.local, table = (self.address + start for start in starts[1:])
        shared = self.first + reserved
        self.shared, self.end, self.table, self.shadow = shared, table, table, 0
        self._table(table)
        self.put(Block.TABLE, "Q", table)
        self.put(Block.ENTRIES, "i", len(launch.ranges))
        self.put(Block.SHARED, "QQ", shared, launch.shared_bytes)
        self.put(Block.WINDOW, "Q", rank << Cluster.RANK_BITS)
        self.put(Block.LOCAL, "QQ", self.local, local)
        self.put(Block.LAUNCH, "Q", launch.parameters)
        self.put(Block.LOCAL_WINDOW, "Q", NARROW_LOCAL if launch.spaces.memory.narrow else LOCAL_WINDOW)
        self.put(Block.GRID, "Q", launch.address)
        self.put(Block.WORKSPACE, "Q", launch.address + Launch.WORKSPACE if launch.config.cooperative else 0)
        self.put(Block.NCTAID, "iii", *launch.config.grid)
        self.put(Block.NTID, "iii", *launch.config.block)
        self.put(Block.DYNAMIC, "i", launch.config.shared)
        self.put(Block.TOTAL_SHARED, "i", launch.shared_bytes)
        self.put(Block.ALL, "I", (1 << self.count) - 1)
        handlers = library().need([*_MACHINE.values(), RUN])
        for offset, shape in _MACHINE.items():
            self.put(offset, "Q", handlers[shape])
        self.run_address = handlers[RUN]
        if launch.config.seed is not None:
            self.put(Block.SCHEDULE, "Q", library().need([SHUFFLED])[SHUFFLED])
            self.put(Block.SEED, "I", launch.config.seed * 0x9E3779B1 % (1 << 32) or 1)
        self.attach(code)
        launch.tool.attach(self)
        self._prologue()

    def attach(self, code: Code) -> None:
        """Run this code from now on, with fresh warps."""
        self.code = code
        self.stride = code.registers.size
        self.warps_memory, self.warps = allocate(self.stride * self.count)
        self._warps_view = _from(self.warps_memory, self.warps)
        for number, header in enumerate(_headers(self.launch.config.block)):
            ctypes.memmove(self.warps + number * self.stride, header, len(header))
        self.put(Block.WARPS, "QQ", self.warps, self.stride)
        self.put(Block.BLOCKS, "Q", _address(code.blocks))
        self.put(Block.ENTRY, "Q", code.entry)
        self.put(Block.RECONVERGE, "Q", code.base)

    def _prologue(self) -> None:
        """Make the warps ready to compute what does not change from block to block."""
        for number in range(self.count):
            self.put_warp(number, Warp.PC, "Q", self.code.prologue)
        everybody = (1 << self.count) - 1
        self.put(Block.RUNNABLE, "I", everybody)
        self.put(Block.LIVE, "I", everybody)
        self.put(Block.CURRENT, "I", LANES - 1)

    def _table(self, table: int) -> None:
        for number, guarded in enumerate(self.launch.ranges):
            if guarded is not None and guarded.heap:
                heap = self.launch.spaces.memory.heap
                self.put(Block.HEAP, "QQ", heap.start, heap.valid.ctypes.data)
            elif guarded is not None:
                size = self.launch.size_of(guarded)
                delta = guarded.place - guarded.address
                if guarded.shared:
                    delta = self.shared - SHARED_START - guarded.window
                rank = self.rank << Cluster.RANK_BITS if guarded.shared else 0
                entry = struct.pack(
                    "<QqqqI", guarded.address + rank, size, size if guarded.writable else 0, delta - rank,
                    guarded.spaces,
                )
                ctypes.memmove(table + number * Entry.nbytes, entry, len(entry))

    @property
    def nbytes(self) -> int:
        """Memory that the state takes."""
        return int(self.memory.nbytes + self.warps_memory.nbytes)

    def digest(self, digest: Any) -> None:
        """Add what the block's threads see, their places and registers, to a digest."""
        start = self.warps - self.warps_memory.ctypes.data
        warps = self.warps_memory[start : start + self.stride * self.count].copy().reshape(self.count, self.stride)
        warps[:, Warp.BUDGET : Warp.INITIAL] = 0
        digest.update(warps)
        digest.update(self._view[Block.RUNNABLE : Block.CURRENT])
        digest.update(self._view[Block.BARRIERS : Block.HEAP])
        digest.update((ctypes.c_ubyte * (self.end - self.first)).from_address(self.first))

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
        """Whether no block is being run."""
        return bool(self.get(Block.LIVE, "I") == 0)

    def register(self, warp: int, name: str) -> list[int]:
        """The number that a register of a warp holds in each lane."""
        return read_register(self.code, self.warps + warp * self.stride, name)

    def set_register(self, warp: int, name: str, values: dict[int, int]) -> None:
        """Write some lanes of a varying register."""
        write_register(self.code, self.warps + warp * self.stride, name, values)

    def run(self, turns: int = TURNS) -> int:
        """Run until compiled code has something to say, a Status; YIELD after so many turns, and where none is left."""
        if self.get(Block.BUDGET, "i") <= 0:
            given = min(turns, self.left)
            self.left -= given
            self.put(Block.BUDGET, "i", given)
        if self.launch.config.seed is None:
            self.put(Block.FUNCTION, "Q", self.code.block_function)
        self.put(Block.STATUS, "i", Status.RUNNING)
        entered(self.run_address)(None, None, self.address)
        status: int = self.get(Block.STATUS, "i")
        return status


def read_register(code: Code, warp: int, name: str) -> list[int]:
    """The number in each lane of a register of the warp at an address."""
    bits = code.registers.bits(name)
    known = code.operands.facts.offsets.get(name)
    source = warp + code.registers.offsets[name]
    if bits == 1:
        mask = int.from_bytes(ctypes.string_at(source, 4), "little")
        return [mask >> lane & 1 for lane in range(LANES)]
    size = bits // 8
    if known is None:
        data = ctypes.string_at(source, LANES * size)
        return [int.from_bytes(data[lane * size : (lane + 1) * size], "little") for lane in range(LANES)]
    base = int.from_bytes(ctypes.string_at(source, size), "little")
    return [(base + x) % (1 << bits) for x in known]


def write_register(code: Code, warp: int, name: str, values: dict[int, int]) -> None:
    """Write some lanes of a varying register of the warp at an address."""
    place, bits = warp + code.registers.offsets[name], code.registers.bits(name)
    if bits == 1:
        mask = int.from_bytes(ctypes.string_at(place, 4), "little")
        for lane, value in values.items():
            mask = mask & ~(1 << lane) | (value & 1) << lane
        ctypes.memmove(place, mask.to_bytes(4, "little"), 4)
        return
    size = bits // 8
    for lane, value in values.items():
        ctypes.memmove(place + lane * size, (value & (1 << bits) - 1).to_bytes(size, "little"), size)


_functions: dict[int, Any] = {}


def entered(address: int) -> Any:
    """The compiled function at an address, to be called with a record, a warp and a block state."""
    function = _functions.get(address)
    if function is None:
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        function = _functions[address] = signature(address)
    return function


_header_cache: dict[tuple[int, int, int], list[bytes]] = {}


def _headers(block: tuple[int, int, int]) -> list[bytes]:
    """The header of each warp of a block of this shape."""
    found = _header_cache.get(block)
    if found is None:
        found = _header_cache[block] = list(_make_headers(block))
    return found


def _make_headers(block: tuple[int, int, int]) -> Any:
    import numpy as np

    x, y, z = block
    threads = x * y * z
    for number in range(-(-threads // LANES)):
        flat = np.arange(number * LANES, (number + 1) * LANES)
        tids = [flat % x, flat // x % y, flat // (x * y)]
        header = np.zeros(Warp.REGISTERS, np.uint8)
        words = header.view(np.int32)
        words[Warp.INDEX // 4] = number
        mask = (1 << min(LANES, threads - number * LANES)) - 1
        header.view(np.uint32)[Warp.INITIAL // 4] = mask
        header.view(np.uint32)[[Warp.ACTIVE // 4, Warp.ALIVE // 4]] = 0xFFFFFFFF
        words[Warp.PARKED // 4] = NEVER
        fresh = header.view(np.uint32)[Warp.FRESH // 4 :]
        fresh[:4] = mask, mask, NEVER, number
        words[Warp.AFTER // 4] = -1
        for axis, tid in enumerate(tids):
            words[Warp.TID // 4 + axis] = tid[0]
            start = Warp.TIDS // 4 + LANES * axis
            words[start : start + LANES] = tid
        yield header.tobytes()
