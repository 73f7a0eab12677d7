"""Errors of a running kernel: what went wrong, said with the names that the user gave, at the lines that they wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import BarrierError, EmulationError, MemoryFault, TrapError
from ...ir import Address, Instruction
from ...launch import Buffer
from ...types import TYPES
from .block_state import BlockState
from ..machine.array_history import what_lay_at
from ..machine.layout import (
    LANES, LOCAL_START, LOCAL_WINDOW, SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster, Fault, Warp,
)
from ..machine.unsupported import render
from ..machine.address_spaces import Guarded

__all__ = ["Scene", "block_of", "element_name", "failure", "ranges", "thread_of"]

BESIDE = 256
"""An access so near to an array of the launch was meant for it, whatever else lay there once."""


class Scene:
    """Where a fault happened: the statement, the thread, and how to say so."""

    def __init__(self, state: BlockState, warp: int, lane: int, record: int) -> None:
        self.state, self.warp, self.lane = state, warp, lane
        number = state.code.statement_at(record)
        self.statement: Any = state.code.graph.statements[number] if number >= 0 else None

    def raised(self, kind: type[EmulationError], message: str, hint: str | None = None) -> EmulationError:
        """The error, with everything that is known about the place."""
        return kind(
            message, loc=getattr(self.statement, "loc", None), hint=hint, block=block_of(self.state),
            thread=thread_of(self.state, self.warp, self.lane), ptx_line=getattr(self.statement, "line", 0) or None,
            instruction=render(self.statement),
        )


def block_of(state: BlockState) -> tuple[int, int, int]:
    x, y, z = (state.get(Block.CTAID + 4 * axis, "i") for axis in range(3))
    return x, y, z


def thread_of(state: BlockState, warp: int, lane: int) -> tuple[int, int, int]:
    x, y, z = (state.get_warp(warp, Warp.TIDS + 4 * (LANES * axis + lane), "i") for axis in range(3))
    return x, y, z


def failure(state: BlockState) -> EmulationError:
    """The error of a state whose status is FAULT."""
    kind = state.get(Block.FAULT_KIND, "i")
    scene = Scene(
        state, state.get(Block.FAULT_WARP, "i"), state.get(Block.FAULT_LANE, "i"), state.get(Block.FAULT_RECORD, "Q")
    )
    if kind in (Fault.MEMORY, Fault.ALIGNMENT):
        return _memory(scene, state.get(Block.FAULT_ADDRESS, "Q"), kind)
    if kind == Fault.TRAP:
        return scene.raised(TrapError, "the kernel executed `trap`")
    if kind == Fault.MEMBERS:
        return _members(scene)
    if kind in (Fault.HANDLE, Fault.SURFACE, Fault.SURFACE_ALIGNMENT):
        from ..instructions.textures import texture_fault

        return texture_fault(scene, kind)
    if kind == Fault.BRANCH_INDEX:
        return scene.raised(EmulationError, "the index of `brx.idx` is beyond its list of labels")
    if Fault.MBARRIER_INVALID <= kind <= Fault.MBARRIER_COMPLETES:
        return _mbarrier(scene, kind, state.get(Block.FAULT_ADDRESS, "Q"))
    return _barrier(scene, kind)


def _members(scene: Scene) -> EmulationError:
    members = scene.state.get(Block.FAULT_ADDRESS, "Q")
    active = scene.state.get_warp(scene.warp, Warp.ACTIVE, "I")
    strangers = active & ~members
    opcode = scene.statement.form.opcode
    if strangers:
        return scene.raised(
            BarrierError,
            f"`{opcode}` is executed by lanes {_lanes(strangers)}, which its member mask {members:#x} does not name",
            "name every lane that executes it: `0xFFFFFFFF` for a whole warp",
        )
    away = members & scene.state.get_warp(scene.warp, Warp.ALIVE, "I") & ~active
    return scene.raised(
        BarrierError, f"`{opcode}` names lanes {_lanes(away)} in its member mask {members:#x}, but they are elsewhere",
        "move it out of the branch, or name only the lanes that take it",
    )


def _lanes(mask: int) -> str:
    return ranges([lane for lane in range(LANES) if mask >> lane & 1])


def ranges(numbers: list[int]) -> str:
    """Numbers in order, for people: ``0-3, 7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _barrier(scene: Scene, kind: int) -> EmulationError:
    opcode = scene.statement.form.mnemonic
    if kind == Fault.BARRIER_DIVERGED:
        active = scene.state.get_warp(scene.warp, Warp.ACTIVE, "I")
        away = scene.state.get_warp(scene.warp, Warp.ALIVE, "I") & ~active
        return scene.raised(
            BarrierError,
            f"`{opcode}` is reached by lanes {_lanes(active)} of warp {scene.warp} "
            f"while lanes {_lanes(away)} are elsewhere",
            "move the barrier out of the branch, so that all threads of the warp reach it together",
        )
    if kind == Fault.BARRIER_COUNT:
        what = "waits for a number of threads that is no positive multiple of 32"
    elif kind == Fault.CLUSTER_ARRIVE:
        what = "comes before `barrier.cluster.wait` for the arrival before"
    elif kind == Fault.CLUSTER_WAIT:
        what = "comes before `barrier.cluster.arrive`"
    elif kind == Fault.BARRIER_MISMATCH:
        what = "waits for another number of threads than those who arrived before"
    else:
        what = "names a barrier beyond 15"
    return scene.raised(BarrierError, f"`{opcode}` {what}")


_MBARRIERS = {
    Fault.MBARRIER_INVALID: (
        "what lies there is no mbarrier", "one thread makes it with `mbarrier.init`; the others wait at a barrier"
    ),
    Fault.MBARRIER_INIT: ("the number of arrivals is not 1 to 1048575", None),
    Fault.MBARRIER_COUNT: (
        "more arrivals than the phase waits for", "the count of `mbarrier.init` is the number of arrivals in each phase"
    ),
    Fault.MBARRIER_BYTES: ("the bytes that it waits for go beyond 1048575", None),
    Fault.MBARRIER_COMPLETES: ("`.noComplete` completes the phase", "leave `.noComplete` away"),
}


def _mbarrier(scene: Scene, kind: int, address: int) -> EmulationError:
    what, hint = _MBARRIERS[Fault(kind)]
    access = _Access(scene.statement)
    guarded, address = _meant(scene, access), _own_address(scene, access, address)
    place = element_name(scene, guarded, address) if guarded is not None else f"address {address:#x}"
    return scene.raised(BarrierError, f"`{scene.statement.form.mnemonic}` of {place}: {what}", hint)


# Memory


def _memory(scene: Scene, address: int, kind: int) -> EmulationError:
    access = _Access(scene.statement)
    address = _own_address(scene, access, address)
    guarded = _meant(scene, access) or _around(scene, address)
    if kind == Fault.ALIGNMENT:
        place = f" ({element_name(scene, guarded, address)})" if guarded is not None else ""
        rule = f"{access.nbytes} bytes must be aligned to {access.nbytes} bytes"
        return scene.raised(MemoryFault, f"{access.verb} address {address:#x}{place}: {rule}")
    if guarded is not None:
        return _outside(scene, access, guarded, address)
    if address < 4096 and access.space in ("global", "generic"):
        return scene.raised(MemoryFault, f"{access.verb} address {address:#x}, a null pointer")
    if access.space in ("shared", "local") or SHARED_WINDOW <= address < 2 * LOCAL_WINDOW:
        return _outside_window(scene, access, address)
    piece = _piece(scene, access, address)
    if piece is not None:
        return piece
    distance, near = _nearest(scene, address)
    past = what_lay_at(address)
    if past is not None and distance > BESIDE:
        return scene.raised(
            MemoryFault, f"{access.verb} address {address:#x}, {past}",
            "pass every array that a kernel follows pointers to, as an argument or in a table (`Ptr[Ptr[f32]]`)",
        )
    return scene.raised(MemoryFault, f"{access.verb} address {address:#x}, which lies in no array of the launch{near}")


def _own_address(scene: Scene, access: _Access, address: int) -> int:
    """The address in its own shared memory as variables have it, where it is one in the window of the block."""
    window = scene.state.rank << Cluster.RANK_BITS
    start = window + (SHARED_WINDOW if access.space == "generic" else 0)
    own = access.space in ("shared", "generic") and 0 <= address - start < 1 << Cluster.RANK_BITS
    return address - window if own else address


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

    def __init__(self, statement: Instruction) -> None:
        self.form = form = statement.form
        self.address = next(operand for operand in statement.operands if isinstance(operand, Address))
        spec = next(spec for spec in form.operands if spec.kind == "address")
        self.verb = {"r": "load from", "w": "store to", "rw": "atomic operation on"}[spec.role]
        self.writes = spec.role != "r"
        self.space = form.space
        self.nbytes = form.effects.accesses[0].nbytes or 1


def _meant(scene: Scene, access: _Access) -> Guarded | None:
    """The array that the address was computed from, where that is known."""
    code, base = scene.state.code, access.address.base
    name = code.operands.facts.provenance.get(getattr(base, "name", ""), "")
    if hasattr(base, "symbol"):
        name = base.symbol  # type: ignore[union-attr]
    number = scene.state.launch.spaces.entries.get(name)
    guarded = scene.state.launch.ranges[number] if number is not None else None
    if guarded is not None and guarded.shared and access.space == "generic":
        guarded = scene.state.launch.ranges[number + 1]  # type: ignore[operator]
    return guarded if guarded is not None and guarded.spaces & SPACE_BITS[access.space] else None


def _around(scene: Scene, address: int) -> Guarded | None:
    """The array in which an access begins that goes beyond its end."""
    for guarded in scene.state.launch.ranges:
        if guarded is None or guarded.shared or guarded.heap:
            continue
        if 0 <= address - guarded.address < guarded.nbytes:
            return guarded
    return None


def _outside(scene: Scene, access: _Access, guarded: Guarded, address: int) -> EmulationError:
    element, what = element_name(scene, guarded, address), _description(scene, guarded)
    size = scene.state.launch.size_of(guarded)
    wide = access.nbytes > _itemsize(scene, guarded)
    verb = f"{access.verb.split()[0]} of {access.nbytes} bytes {access.verb.split()[-1]}" if wide else access.verb
    if guarded.address <= address and address + access.nbytes <= guarded.address + size and access.writes:
        return scene.raised(MemoryFault, f"{verb} {element}: {guarded.name} is read-only")
    return scene.raised(
        MemoryFault, f"{verb} {element}: {guarded.name} is {what}", _wrapped(scene, guarded, address)
    )


def _wrapped(scene: Scene, guarded: Guarded, address: int) -> str | None:
    """The hint for an index that is a small negative number, read as one without a sign."""
    index = (address - guarded.address) // _itemsize(scene, guarded)
    if not 0 < (1 << 32) - index <= 1 << 20:
        return None
    return f"{index} is {index - (1 << 32)} as a u32: the index went below 0"


def _buffer(scene: Scene, guarded: Guarded) -> Buffer | None:
    for argument in scene.state.launch.arguments:
        if isinstance(argument, Buffer) and argument.name == guarded.name and argument.address == guarded.address:
            return argument
    return None


def dtype_name(dtype: Any) -> str:
    """A numpy dtype as PTX has it: ``f32``; its own name where PTX has none."""
    for name, kind in TYPES.items():
        if kind.numpy_name == str(dtype) and kind.kind != "b":
            return name
    return str(dtype)


def _itemsize(scene: Scene, guarded: Guarded) -> int:
    buffer = _buffer(scene, guarded)
    if buffer is not None:
        kind = TYPES.get(dtype_name(buffer.dtype))
        return kind.bytes if kind is not None else int(np.dtype(buffer.dtype).itemsize)
    return guarded.variable.type.bytes if guarded.variable is not None else 1


def _description(scene: Scene, guarded: Guarded) -> str:
    buffer = _buffer(scene, guarded)
    if buffer is not None:
        return f"{dtype_name(buffer.dtype)}[{', '.join(str(extent) for extent in buffer.shape)}]"
    size = scene.state.launch.size_of(guarded)
    variable = guarded.variable
    if variable is None:
        return f"{size} bytes"
    space = f"{variable.space} memory"
    return f"{variable.type}[{size // variable.type.bytes}] in {space}"


def element_name(scene: Scene, guarded: Guarded, address: int) -> str:
    """``x[3, 70]``: the element at an address, also where the array has none there."""
    piece, _ = scene.state.launch.spaces.memory.heap.around(address) if guarded.heap else (None, False)
    if piece is not None:
        return f"byte {address - piece.address} of the {piece.nbytes} bytes that `malloc` gave to {piece.by}"
    size, offset = _itemsize(scene, guarded), address - guarded.address
    if address >> 63:
        offset -= 1 << 64
    index, rest = divmod(offset, size)
    buffer = _buffer(scene, guarded)
    inner = buffer.shape[1:] if buffer is not None else ()
    places = []
    for extent in reversed(inner):
        index, place = divmod(index, max(1, extent))
        places.append(place)
    text = f"{guarded.name}[{', '.join(str(place) for place in (index, *reversed(places)))}]"
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
        hint = "let the blocks meet before they end: `ptx.barrier.cluster.arrive()`, `ptx.barrier.cluster.wait()`"
        return scene.raised(MemoryFault, f"{what}, which has ended", hint)
    start = f" from address {SHARED_START:#x} on" if launch.shared_bytes else ""
    return scene.raised(MemoryFault, f"{what}: a block has {launch.shared_bytes} bytes of shared memory{start}")


def _nearest(scene: Scene, address: int) -> tuple[int, str]:
    """How far the nearest array of the launch is, and that in words where it is not too far to matter."""
    best = 1 << 20, ""
    for guarded in scene.state.launch.ranges:
        if guarded is None or guarded.shared:
            continue
        end = guarded.address + guarded.nbytes
        distance, text = (
            (address - end, f"; {address - end} bytes after the end of {guarded.name}") if address >= end
            else (guarded.address - address, f"; {guarded.address - address} bytes before {guarded.name}")
        )
        if distance < best[0]:
            best = distance, text
    return best
