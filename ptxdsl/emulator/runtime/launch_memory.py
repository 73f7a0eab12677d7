"""The memory of a launch: the counter of blocks, the parameters, the ranges of addresses that its threads access."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from ...launch import Buffer, LaunchConfig, Scalar
from ..machine.address_spaces import AddressRange, AddressSpaces
from ..machine.allocation import allocate, copy_bytes, number_at
from ..machine.layout import SHARED_START, SPACE_BITS, Launch
from .arguments import bind
from .tool import NO_TOOL, Tool

__all__ = ["LaunchMemory"]

_GLOBAL = SPACE_BITS["global"] | SPACE_BITS["generic"]
_PARAMETERS = SPACE_BITS["param"] | SPACE_BITS["generic"]
_HEAD = Launch.span("NEXT", "GRID")
_NEXT = Launch.span("NEXT", "NEXT")
_BLOCKS = Launch.span("NEXT", "BLOCKS")


class LaunchMemory:
    """What all blocks of a launch share: the counter of blocks, the parameters, the ranges of addresses.

    Buffers beyond the parameters are memory that the kernel may come to by addresses in other memory.
    """

    arguments: Sequence[Scalar | Buffer]

    def __init__(self, spaces: AddressSpaces, config: LaunchConfig, arguments: Sequence[Scalar | Buffer]) -> None:
        self.spaces, self.config, self.arguments = spaces, config, arguments
        self.memory, self.address, self.view = allocate(Launch.nbytes + spaces.parameter_bytes + 64)
        self.parameters = self.address + Launch.nbytes
        self.shared_bytes = spaces.dynamic_start - SHARED_START + config.shared
        self.ranges: list[AddressRange | None] = list(spaces.ranges)
        x, y, z = config.grid
        self._all = x * y * z
        self._fresh = _HEAD.pack(0, self._all, x, y, z).ljust(Launch.nbytes, b"\0")
        self.shadow: Any = None
        """What its sanitizer leaves to the next launch."""
        self.only: tuple[int, int] | None = None
        """The first block that runs and the one behind the last, in clusters the clusters; None for all."""
        self.locks = True
        """Whether its atomics need the host's (:mod:`.alone`)."""
        self.begin()
        bind(arguments, spaces, self.parameters, self.ranges)
        at, nbytes = self.parameters, spaces.parameter_bytes
        self.ranges.append(AddressRange("the parameters", at, nbytes, _PARAMETERS, at, False))
        if config.cooperative:
            counter = self.address + Launch.WORKSPACE
            self.ranges.append(AddressRange("the grid's workspace", counter, 8, _GLOBAL, counter))
        self.tool: Tool[Any] = NO_TOOL

    def begin(self) -> None:
        """No block has been started."""
        self.locks = True
        self.blocks = self._all
        self.view[: Launch.nbytes] = self._fresh

    def left(self) -> int:
        """Blocks that have not been started."""
        started, = _NEXT.unpack_from(self.view, Launch.NEXT)
        return max(0, self.blocks - int(started))

    def limit(self, first: int, end: int) -> None:
        """Run only the blocks (of a launch in clusters: the clusters) from ``first`` to before ``end``."""
        self.only = first, end
        self.blocks = end
        copy_bytes(self.address + Launch.NEXT, _BLOCKS.pack(first, end), _BLOCKS.size)

    def take(self) -> int:
        """How many blocks have been started before the one that starts now."""
        place = self.address + Launch.NEXT
        started = number_at(place)
        copy_bytes(place, struct.pack("<q", started + 1), 8)
        return started

    def share(self) -> None:
        """From now on other host threads take blocks too; none of them runs compiled code yet."""
        self.locks = True
        copy_bytes(self.address + Launch.SEVERAL, struct.pack("<i", 1), 4)

    def close(self, blocks: int) -> None:
        """Start no block from this number on."""
        self.blocks = min(self.blocks, blocks)
        copy_bytes(self.address + Launch.BLOCKS, struct.pack("<q", self.blocks), 8)

    def stop_clocks(self, stop: bool) -> None:
        """Let the clocks that threads read stand still, or go on."""
        ctypes.memmove(self.address + Launch.STOPPED, struct.pack("<i", stop), 4)

    def digest(self, digest: Any) -> None:
        """Add the memory that all blocks share to a digest."""
        for area in self.ranges:
            if area is not None and area.writable and not area.shared:
                digest.update((ctypes.c_ubyte * area.nbytes).from_address(area.place))

    def size_of(self, area: AddressRange) -> int:
        """Bytes of a range; dynamic shared memory has what the launch gives it."""
        return self.config.shared if area.nbytes < 0 else area.nbytes
