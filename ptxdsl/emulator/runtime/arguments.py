"""The arguments of a launch in the emulated memory: the bytes of its parameters, and where its arrays lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...errors import EmulationError
from ...launch import Buffer, Scalar
from ..machine.address_spaces import AddressRange, AddressSpaces
from ..machine.allocation import copy_bytes
from ..machine.layout import ALIGNED_START, NARROW_SHARED, SPACE_BITS

__all__ = ["bind", "buffer_range"]

_BUFFER = SPACE_BITS["global"] | SPACE_BITS["generic"] | SPACE_BITS["const"]
_POINTER = struct.Struct("<Q")


def bind(
    arguments: Sequence[Scalar | Buffer], spaces: AddressSpaces, parameters: int, ranges: list[AddressRange | None],
) -> None:
    """Write the parameters from this address on, and give each array its range of addresses."""
    placed = _placed(arguments, spaces) if spaces.memory.narrow or spaces.alignment > 1 else {}
    for number, ((name, offset, nbytes), argument) in enumerate(zip(spaces.parameters, arguments)):
        if isinstance(argument, Scalar):
            data = argument.data
        else:
            host = argument.address
            address = placed.get(number, host)
            data = _POINTER.pack(address)[: 4 if placed and nbytes == 4 else 8]
            ranges[1 + number] = AddressRange(argument.name, address, argument.nbytes, _BUFFER, host, argument.writable)
        if argument.targets:
            ranges += map(buffer_range, argument.targets)
        if len(data) != nbytes:
            raise ValueError(f"parameter {name} has {nbytes} bytes; {len(data)} came")
        copy_bytes(parameters + offset, data, nbytes)
    further = arguments[len(spaces.parameters) :]
    ranges += [buffer_range(argument) for argument in further if isinstance(argument, Buffer)]


def buffer_range(buffer: Buffer) -> AddressRange:
    """The range of addresses of an array."""
    return AddressRange(buffer.name, buffer.address, buffer.nbytes, _BUFFER, buffer.address, buffer.writable)


def _placed(arguments: Sequence[Scalar | Buffer], spaces: AddressSpaces) -> dict[int, int]:
    """The addresses of arrays, by their number, that cannot have those of the host."""
    memory, alignment = spaces.memory, spaces.alignment
    end = memory.end if memory.narrow else ALIGNED_START
    placed: dict[int, int] = {}
    for number, argument in enumerate(arguments):
        if isinstance(argument, Buffer) and (memory.narrow or argument.address % alignment):
            # Apart, so that what goes beyond one array is in no other.
            placed[number] = end = (end + 511) // 256 * 256
            end += argument.nbytes
    if memory.narrow and end > NARROW_SHARED:
        raise EmulationError(f"the arrays have {end - memory.end} bytes, more than addresses of 32 bits reach")
    return placed
