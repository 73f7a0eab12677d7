"""Faults of accesses to memory: outside of an array, misaligned, freed, of nothing at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import EmulationError, MemoryFault
from ...ir import Address, Instruction
from ...isa.effects import Access
from ...launch import Buffer
from ...types import TYPES
from ..instructions.bulk_copies import ALIGNMENT, BulkAddress
from ..instructions.mbarrier import MbarrierOperation
from ..instructions.micro_op import MicroOp
from ..instructions.tensor_copies import TensorBox, is_tensor_copy
from ..machine.address_spaces import AddressRange
from ..machine.array_history import array_at
from ..machine.element_names import element_text
from ..machine.layout import LOCAL_START, LOCAL_WINDOW, SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster
from ..machine.status import Fault
from .faults import Scene, explains

__all__ = ["accessed", "element_name"]

BESIDE = 256
"""An access so near to an array of the launch was meant for it, whatever else lay there once."""


@explains(Fault.MEMORY, Fault.ALIGNMENT)
def _memory(scene: Scene, kind: Fault) -> EmulationError:
    access = _Access(scene)
    address = _in_first_block(scene, access, scene.address)
    area = _meant(scene, access) or _around(scene, address)
    if kind == Fault.ALIGNMENT:
        name = element_name(scene, area, address) if area is not None else _of_another(scene, access)
        place = f" ({name})" if name else ""
        return scene.raised(MemoryFault, f"{access.verb} address {address:#x}{place}: {access.rule}")
    if area is not None:
        return _outside(scene, access, area, address)
    if address < 4096 and access.space in ("global", "generic"):
        return scene.raised(MemoryFault, f"{access.verb} address {address:#x}, a null pointer")
    if access.space in ("shared", "local") or SHARED_WINDOW <= address < 2 * LOCAL_WINDOW:
        return _outside_window(scene, access, address)
    piece = _piece(scene, access, address)
    if piece is not None:
        return piece
    distance, near = _nearest(scene, address)
    past = array_at(address)
    if past is not None and distance > BESIDE:
        return scene.raised(
            MemoryFault, f"{access.verb} address {address:#x}, {past}",
            "pass every array that a kernel follows pointers to, as an argument or in a table (`Ptr[Ptr[f32]]`)",
        )
    return scene.raised(MemoryFault, f"{access.verb} address {address:#x}, which lies in no array of the launch{near}")


def _in_first_block(scene: Scene, access: _Access, address: int) -> int:
    """An address in the window of the block, as the first block of the cluster, and variables, have it."""
    window = scene.state.rank << Cluster.RANK_BITS
    start = window + (SHARED_WINDOW if access.space == "generic" else 0)
    here = access.space in ("shared", "generic") and 0 <= address - start < 1 << Cluster.RANK_BITS
    return address - window if here else address


def _piece(scene: Scene, access: _Access, address: int) -> EmulationError | None:
    """The fault of an access to what malloc has not given, or no longer."""
    heap = scene.state.launch.spaces.memory.heap
    piece, gone = heap.around(address)
    if piece is None:
        return None
    offset = address - piece.address
    where = f"byte {offset}" if access.nbytes == 1 else f"bytes {offset} to {offset + access.nbytes - 1}"
    what = f"the {piece.nbytes} bytes that `malloc` gave"
    if gone:
        return scene.raised(MemoryFault, f"{access.verb} {where} of {what}, freed by {piece.by}")
    return scene.raised(MemoryFault, f"{access.verb} {where} of {what} to {piece.by}")


class _Access:
    """What an instruction does to memory."""

    def __init__(self, scene: Scene) -> None:
        statement: Instruction = scene.statement
        access = _access_of(statement, scene.op)
        address = statement.operands[access.operand]
        assert isinstance(address, Address)
        self.address, self.writes, self.space = address, access.writes, access.space
        self.nbytes, self.verb, self.rule = access.nbytes or 1, "", ""
        if isinstance(scene.op, TensorBox) or (isinstance(scene.op, BulkAddress) and is_tensor_copy(statement)):
            self._tensor(scene, access)
            return
        if isinstance(scene.op, BulkAddress) and scene.op.bulk:
            self._bulk(scene)
            return
        if isinstance(scene.op, BulkAddress):  # an asynchronous copy or store that is made later
            self.nbytes = access.nbytes or statement.operand("size").bits
        self.verb = "load from" if not access.writes else "atomic operation on" if access.reads else "store to"
        self.rule = f"{self.nbytes} bytes must be aligned to {self.nbytes} bytes"

    def _bulk(self, scene: Scene) -> None:
        what = "reduction" if "reduce" in scene.statement.form.tokens else "copy"
        self.nbytes = scene.state.get(Block.EXTENTS + 8 * scene.lane, "Q")
        self.verb = f"bulk {what} of {self.nbytes} bytes {'to' if self.writes else 'from'}"
        self.rule = f"bulk copies must be aligned to {ALIGNMENT} bytes"

    def _tensor(self, scene: Scene, access: Access) -> None:
        """An end of a tensor copy, or its map."""
        self.nbytes = scene.state.get(Block.EXTENTS + 8 * scene.lane, "Q")
        if access.kind == "tensor" and isinstance(scene.op, BulkAddress):
            self.verb, self.rule = "load of a tensor map from", "tensor maps must be aligned to 64 bytes"
            self.writes = False
            return
        what = "reduction" if "reduce" in scene.statement.form.tokens else "copy"
        self.verb = f"tensor {what} of {self.nbytes} bytes {'to' if self.writes else 'from'}"
        self.rule = "a box must be aligned to 128 bytes"
        if access.kind == "tensor":
            self.space = "global"

    @property
    def whole_verb(self) -> str:
        """The verb with the number of bytes."""
        words = self.verb.split()
        return self.verb if "bytes" in words else f"{words[0]} of {self.nbytes} bytes {words[-1]}"


def _access_of(statement: Instruction, op: MicroOp) -> Access:
    """Which of its accesses an instruction makes by a micro-op."""
    accesses = statement.form.effects.accesses
    if isinstance(op, MbarrierOperation):
        return next(access for access in accesses if access.kind == "mbarrier")
    if isinstance(op, TensorBox):
        return next(access for access in accesses if access.kind == "tensor")
    if isinstance(op, BulkAddress):
        return next(access for access in accesses if access.operand == op.operand)
    return accesses[0]


def accessed(scene: Scene) -> str:
    """What the address at fault names."""
    access = _Access(scene)
    of_another = _of_another(scene, access)
    if of_another:
        return of_another
    area, address = _meant(scene, access), _in_first_block(scene, access, scene.address)
    return element_name(scene, area, address) if area is not None else f"address {address:#x}"


def _of_another(scene: Scene, access: _Access) -> str:
    """The element at an address in the shared memory of another block of the cluster; "" of other addresses."""
    at = scene.address - (SHARED_WINDOW if access.space == "generic" else 0)
    rank, offset = at >> Cluster.RANK_BITS, at & (1 << Cluster.RANK_BITS) - 1
    x, y, z = scene.state.launch.spaces.cluster or (1, 1, 1)
    if access.space not in ("shared", "generic") or not 0 <= rank < x * y * z or rank == scene.state.rank:
        return ""
    launch = scene.state.launch
    area = next((area for area in launch.ranges if area is not None and area.shared
                 and 0 <= offset - area.address < launch.size_of(area)), None)
    return "" if area is None else f"{element_name(scene, area, offset)} of block {rank} of the cluster"


def _meant(scene: Scene, access: _Access) -> AddressRange | None:
    """The array that the address was computed from, where that is known."""
    code, base = scene.state.code, access.address.base
    name = code.operands.facts.provenance.get(getattr(base, "name", ""), "")
    if hasattr(base, "symbol"):
        name = scene.state.launch.spaces.provenance.get(base.symbol, "")  # type: ignore[union-attr]
    number = scene.state.launch.spaces.entries.get(name)
    own = scene.state.launch.spaces.locals.get(number) if number is not None else None
    if own is not None:
        own = own._replace(address=own.address + (own.window if access.space == "generic" else 0))
        return own if own.spaces & SPACE_BITS[access.space] else None
    area = scene.state.launch.ranges[number] if number is not None else None
    if area is not None and area.shared and access.space == "generic":
        area = scene.state.launch.ranges[number + 1]  # type: ignore[operator]
    return area if area is not None and area.spaces & SPACE_BITS[access.space] else None


def _around(scene: Scene, address: int) -> AddressRange | None:
    """The array in which an access begins that goes beyond its end."""
    ranges = (area for area in scene.state.launch.ranges if area is not None and not area.shared and not area.heap)
    return next((area for area in ranges if 0 <= address - area.address < area.nbytes), None)


def _outside(scene: Scene, access: _Access, area: AddressRange, address: int) -> EmulationError:
    element, what = element_name(scene, area, address), _description(scene, area)
    size = scene.state.launch.size_of(area)
    wide = access.nbytes > _itemsize(scene, area)
    verb = access.whole_verb if wide else access.verb
    if area.address <= address and address + access.nbytes <= area.address + size and access.writes:
        return scene.raised(MemoryFault, f"{verb} {element}: {area.name} is read-only")
    return scene.raised(MemoryFault, f"{verb} {element}: {area.name} is {what}", _wrapped(scene, area, address))


def _wrapped(scene: Scene, area: AddressRange, address: int) -> str | None:
    """The hint for an index that is a small negative number, read as one without a sign."""
    index = (address - area.address) // _itemsize(scene, area)
    if not 0 < (1 << 32) - index <= 1 << 20:
        return None
    return f"{index} is {index - (1 << 32)} as a u32: the index went below 0"


def _buffer(scene: Scene, area: AddressRange) -> Buffer | None:
    buffers = (argument for argument in scene.state.launch.arguments if isinstance(argument, Buffer))
    return next((b for b in buffers if b.name == area.name and b.address == area.address), None)


def _type_name(dtype: Any) -> str:
    """A numpy dtype as PTX has it: ``f32``; numpy's name where PTX has none."""
    names = (name for name, kind in TYPES.items() if kind.numpy_name == str(dtype) and kind.kind != "b")
    return next(names, str(dtype))


def _itemsize(scene: Scene, area: AddressRange) -> int:
    buffer = _buffer(scene, area)
    if buffer is not None:
        kind = TYPES.get(_type_name(buffer.dtype))
        return kind.bytes if kind is not None else int(np.dtype(buffer.dtype).itemsize)
    return area.variable.type.bytes if area.variable is not None else 1


def _description(scene: Scene, area: AddressRange) -> str:
    buffer = _buffer(scene, area)
    if buffer is not None:
        return f"{_type_name(buffer.dtype)}[{', '.join(str(extent) for extent in buffer.shape)}]"
    size = scene.state.launch.size_of(area)
    variable = area.variable
    if variable is None:
        return f"{size} bytes"
    shape = variable.shape if None not in variable.shape else ()
    extents = ", ".join(map(str, shape or (size // variable.type.bytes,)))
    return f"{variable.type}[{extents}] in {variable.space} memory"


def element_name(scene: Scene, area: AddressRange, address: int) -> str:
    """``x[3, 70]``: the element at an address, also where the array has none there."""
    piece, _ = scene.state.launch.spaces.memory.heap.around(address) if area.heap else (None, False)
    if piece is not None:
        return f"byte {address - piece.address} of the {piece.nbytes} bytes that `malloc` gave to {piece.by}"
    size, offset = _itemsize(scene, area), address - area.address
    if address >> 63:
        offset -= 1 << 64
    index, rest = divmod(offset, size)
    buffer = _buffer(scene, area)
    shape = buffer.shape if buffer is not None else area.variable.shape if area.variable is not None else ()
    text = element_text(area.name, index, shape)
    return f"{text} plus {rest} bytes" if rest else text


def _outside_window(scene: Scene, access: _Access, address: int) -> EmulationError:
    launch, space = scene.state.launch, access.space
    offset = address & (SHARED_WINDOW - 1)
    if space == "generic":
        space = "local" if address >= LOCAL_WINDOW else "shared"
    if space == "shared" and launch.spaces.cluster is not None:
        return _outside_cluster(scene, access, offset)
    has = launch.shared_bytes if space == "shared" else launch.spaces.local_bytes
    whose = "the block has" if space == "shared" else "the thread has"
    start = f" from address {0x400 if space == 'shared' else LOCAL_START:#x} on" if has else ""
    hint = "give it dynamic shared memory: `kernel.configure(grid, block, shared=...)`"
    message = f"{access.verb} {space} address {offset:#x}: {whose} {has} bytes of {space} memory{start}"
    return scene.raised(MemoryFault, message, hint if space == "shared" and not has else None)


def _outside_cluster(scene: Scene, access: _Access, offset: int) -> EmulationError:
    launch = scene.state.launch
    x, y, z = launch.spaces.cluster or (1, 1, 1)
    rank, offset = offset >> Cluster.RANK_BITS, offset & (1 << Cluster.RANK_BITS) - 1
    what = f"{access.verb} shared address {offset:#x} of block {rank} of the cluster"
    if rank >= x * y * z:
        return scene.raised(MemoryFault, f"{what}, which has {x * y * z} blocks")
    if offset >= SHARED_START and offset + access.nbytes <= SHARED_START + launch.shared_bytes:
        hint = "synchronise the blocks before they end: `ptxdsl.cluster.sync()`"
        name = _of_another(scene, access)
        return scene.raised(MemoryFault, f"{f'{access.verb} {name}' if name else what}, which has ended", hint)
    start = f" from address {SHARED_START:#x} on" if launch.shared_bytes else ""
    return scene.raised(MemoryFault, f"{what}: a block has {launch.shared_bytes} bytes of shared memory{start}")


def _nearest(scene: Scene, address: int) -> tuple[int, str]:
    """How far the nearest array of the launch is, and that in words where it is not too far to matter."""
    best = 1 << 20, ""
    for area in scene.state.launch.ranges:
        if area is None or area.shared:
            continue
        end = area.address + area.nbytes
        distance, text = (
            (address - end, f"; {address - end} bytes after the end of {area.name}") if address >= end
            else (area.address - address, f"; {area.address - address} bytes before {area.name}")
        )
        if distance < best[0]:
            best = distance, text
    return best
