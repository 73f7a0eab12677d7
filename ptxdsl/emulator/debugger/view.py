"""What one thread of a block that has stopped sees: its registers, its variables, memory."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import PtxError
from ...ir import Call, Instruction
from ...launch import Buffer
from ...types import TYPES, ScalarType
from ..machine.address_spaces import AddressRange
from ..machine.layout import LANES, LOCAL_START, SHARED_START, SPACE_BITS, Block, Warp
from ..runtime.block_state import BlockState
from ..runtime.faults import block_of, thread_of
from ..tools.observed_thread import number
from ..tools.variable_names import Constant, Held
from .execution import Unit
from .places import Frame, Registers

__all__ = ["ArrayView", "Cell", "DebugError", "Number", "View"]

Number = Any
"""int, float or bool."""


class DebugError(PtxError):
    """What a debugger was asked cannot be answered."""


class Cell(NamedTuple):
    """A piece of memory as a kernel and the host see it: ``address`` is in its state space."""

    name: str
    space: str
    address: int
    generic: int
    host: int
    type: ScalarType

    def read(self) -> Number:
        """What lies there."""
        return number(int.from_bytes(ctypes.string_at(self.host, self.type.bytes), "little"), self.type)


class ArrayView(NamedTuple):
    """Memory that a pointer leads to, from its first element on."""

    name: str
    type: ScalarType
    space: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    address: int
    host: int
    generic: int
    room: int
    """Elements that may be read from there on."""
    behind: int = 0
    """Bytes from ``host`` to the first element,"""
    granule: int = 0
    """and how many lie together before those of the other lanes come; 0 where all do."""

    def _host(self, at: int) -> int:
        at += self.behind
        return self.host + (at // self.granule * self.granule * LANES + at % self.granule if self.granule else at)

    def cell(self, index: tuple[int, ...]) -> Cell:
        """The element at an index; fewer indices than dimensions count all elements."""
        if len(index) == len(self.shape):
            wrong = [(n, extent) for n, extent in zip(index, self.shape) if not 0 <= n < extent]
            if wrong:
                raise DebugError(f"{self.text(index)} is outside: {self.name} is {self}")
            offset = sum(n * stride for n, stride in zip(index, self.strides))
        elif len(index) == 1:
            offset = index[0]
        else:
            raise DebugError(f"{self.name} has {len(self.shape)} dimensions, not {len(index)}")
        if not 0 <= offset < self.room:
            raise DebugError(f"{self.text(index)} is outside: {self.name} is {self}")
        at = offset * self.type.bytes
        return Cell(self.text(index), self.space, self.address + at, self.generic + at, self._host(at), self.type)

    def text(self, index: tuple[int, ...]) -> str:
        """An element, as it is written."""
        return f"{self.name}[{', '.join(map(str, index))}]"

    def indices(self, first: int, count: int) -> Iterator[tuple[int, ...]]:
        """The indices of elements in C order."""
        total = self.size
        for flat in range(first, min(total, first + count)):
            index, rest = [], flat
            for extent in reversed(self.shape):
                rest, place = divmod(rest, extent)
                index.append(place)
            yield tuple(reversed(index))

    @property
    def size(self) -> int:
        """The number of elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    def __str__(self) -> str:
        return f"{self.type}[{', '.join(map(str, self.shape))}]"


class View:
    """What a thread sees that is about to execute the statement at a place, in a function that runs there.

    It holds for as long as the launch does not go on.
    """

    def __init__(
        self, state: BlockState, unit: Unit | None, warp: int, lane: int, place: int, frame: Frame, known: Registers
    ) -> None:
        self.state, self.unit, self.warp, self.lane, self.place = state, unit, warp, lane, place
        self.known = known
        self.variables: Mapping[str, Held] = frame.variables
        self.constants: Mapping[str, Constant] = frame.constants
        """What Python knows while it traces: numbers and texts."""
        self.registers = known.declared
        self.has_lists = any("[" in name for name in self.variables)
        """Whether elements of Python's lists are among the variables."""
        self._lanes: dict[tuple[Held, str], list[Number | None]] = {}

    def of(self, lane: int) -> View:
        """What another thread of the warp sees."""
        other = copy.copy(self)
        other.lane = lane
        return other

    @property
    def statement(self) -> Instruction | Call:
        """The one that it is about to execute."""
        return self.state.code.graph.statements[self.place]

    @property
    def block(self) -> tuple[int, int, int]:
        """The index of the block."""
        return block_of(self.state)

    @property
    def thread(self) -> tuple[int, int, int]:
        """The index of the thread in its block."""
        return thread_of(self.state, self.warp, self.lane)

    @property
    def active(self) -> int:
        """The lanes of the warp that are at this statement."""
        return int(self.state.get_warp(self.warp, Warp.ACTIVE, "I"))

    @property
    def alive(self) -> int:
        """The lanes of the warp that have not ended."""
        return int(self.state.get_warp(self.warp, Warp.ALIVE, "I"))

    # Registers

    def written(self, register: str) -> int:
        """The lanes of the warp that have written a register."""
        if self.unit is None or register not in self.state.code.registers.offsets:
            return 0
        lanes = 0
        for place in self.known.writers.get(register, ()):
            lanes |= self.unit.executed(self.state, place, self.warp)
        return lanes

    def has_value(self, register: str) -> bool:
        """Whether the thread has written a register."""
        return bool(self.written(register) >> self.lane & 1)

    def lanes(self, held: Held, name: str = "") -> list[Number | None]:
        """The number that a variable is in each lane of the warp, None where it has none."""
        found = self._lanes.get((held, name))
        if found is None:
            found = self._lanes[held, name] = self._read(held, name)
        return found

    def _read(self, held: Held, name: str) -> list[Number | None]:
        present = min(LANES, self.state.launch.config.threads - self.warp * LANES)
        if held.register not in self.state.code.registers.offsets:
            return [self._parameter(name, held.type)] * present
        bits, kind = self.state.register(self.warp, held.register), self.type_of(held)
        written = self.written(held.register)
        return [number(bits[lane], kind) if written >> lane & 1 else None for lane in range(present)]

    def _parameter(self, name: str, kind: ScalarType) -> Number | None:
        """The number of a parameter that the kernel does not load, since it has no use of it."""
        launch = self.state.launch
        offset = launch.spaces.offsets.get(name)
        if offset is None:
            return None
        return number(int.from_bytes(ctypes.string_at(launch.parameters + offset, kind.bytes), "little"), kind)

    def number(self, held: Held, name: str = "") -> Number:
        """The number that a variable is. Raises DebugError where it has no value yet."""
        value = self.lanes(held, name)[self.lane]
        if value is None:
            raise DebugError(f"it has no value yet ({held.type} {held.register})")
        return value

    def type_of(self, held: Held) -> ScalarType:
        """The type of the number: where the register has bits, that of an instruction that takes or gives it."""
        return self.known.types.get(held.register, held.type) if held.type.kind == "b" else held.type

    # Memory

    def array(self, name: str, held: Held) -> ArrayView:
        """The memory that a pointer leads to. Raises DebugError where there is none."""
        points = held.points
        assert points is not None
        launch = self.state.launch
        address = launch.spaces.symbols[points.symbol] if points.symbol else int(self.number(held, name))
        address += points.offset
        if points.space == "local":
            return self._local(name, held, address)
        area = self._area(address, points.space)
        if area is None:
            raise DebugError(f"address {address:#x} lies in no array of the launch")
        behind = address - area.address
        room = (launch.size_of(area) - behind) // points.type.bytes
        shape, strides = self._shape(points, area, behind, room)
        host = self._host(area) + behind
        generic = address if not area.shared else area.address - area.window + launch.spaces.memory.shared_window
        return ArrayView(
            name, points.type, "shared" if area.shared else points.space, shape, strides, address, host,
            generic + (behind if area.shared else 0), room,
        )

    def _local(self, name: str, held: Held, address: int) -> ArrayView:
        points, state = held.points, self.state
        assert points is not None
        spaces = state.launch.spaces
        area = next((a for a in spaces.locals.values() if 0 <= address - a.address < a.nbytes), None)
        if area is None:
            raise DebugError(f"local address {address:#x} lies in no array of the thread")
        size, granule = spaces.local_bytes, spaces.local_granule
        first, behind = state.local + self.warp * size * LANES + self.lane * granule, address - LOCAL_START
        room = (area.nbytes - (address - area.address)) // points.type.bytes
        shape, strides = self._shape(points, area, 0, room)
        generic = address + spaces.memory.local_window
        return ArrayView(name, points.type, "local", shape, strides, address, first, generic, room, behind, granule)

    def _area(self, address: int, space: str) -> AddressRange | None:
        launch = self.state.launch
        bit = SPACE_BITS.get(space.partition("::")[0], SPACE_BITS["generic"])
        for area in launch.ranges:
            if area is None or area.heap or not area.spaces & bit:
                continue
            if 0 <= address - area.address < max(1, launch.size_of(area)):
                return area
        return None

    def _host(self, area: AddressRange) -> int:
        """Where a range lies in host memory."""
        if not area.shared:
            return area.place
        return self.state.shared + area.address - area.window - SHARED_START

    def _shape(
        self, points: Any, area: AddressRange, behind: int, room: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents and strides: the declared ones, those of the argument, or all elements that are there in a row."""
        if points.shape is not None and not points.symbol:
            buffer = self._buffer(area)
            if buffer is not None and not behind and len(buffer.shape) == len(points.shape):
                size = points.type.bytes
                return tuple(buffer.shape), tuple(stride // size for stride in buffer.strides)
        if points.shape and all(isinstance(extent, int) for extent in (*points.shape, *points.strides)):
            return points.shape, points.strides
        return (max(0, room),), (1,)

    def _buffer(self, area: AddressRange) -> Buffer | None:
        arguments = self.state.launch.arguments
        return next((a for a in arguments if isinstance(a, Buffer) and a.address == area.place), None)

    def at_address(self, address: int, kind: ScalarType | None = None) -> Cell:
        """The cell at an address of global memory."""
        area = self._area(address, "global")
        if area is None:
            raise DebugError(f"address {address:#x} lies in no array of the launch")
        if kind is None:
            kind = self._element(area)
        return Cell(f"*{address:#x}", "global", address, address, self._host(area) + address - area.address, kind)

    def _element(self, area: AddressRange) -> ScalarType:
        buffer = self._buffer(area)
        dtype = str(buffer.dtype) if buffer is not None else ""
        known = (kind for kind in TYPES.values() if kind.numpy_name == dtype and kind.kind != "b")
        return next(known, area.variable.type if area.variable is not None else TYPES["u8"])

    # What the machine says

    def special(self) -> dict[str, Number | tuple[int, int, int]]:
        """The special registers of the thread."""
        config, state = self.state.launch.config, self.state
        found: dict[str, Any] = {
            "tid": self.thread, "ntid": config.block, "ctaid": self.block, "nctaid": config.grid,
            "laneid": self.lane, "warpid": self.warp,
        }
        if state.launch.spaces.cluster is not None:
            found["cluster_ctarank"] = state.rank
            found["clusterid"] = tuple(state.get(Block.CLUSTERID + 4 * axis, "i") for axis in range(3))
        return found
