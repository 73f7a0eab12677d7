"""Faults of wgmma: descriptors of what is not shared memory, warpgroups that are none."""

from __future__ import annotations

from ...errors import EmulationError, MemoryFault
from ...isa.matrix_descriptors import ADDRESS, BASE_OFFSET, LEADING, SPANS, STRIDE, SWIZZLE, Bits
from ..machine.layout import LANES, SHARED_START
from ..machine.status import Fault
from .faults import Scene, explains

__all__: list[str] = []


@explains(Fault.WARPGROUP)
def _warpgroup(scene: Scene, _: Fault) -> EmulationError:
    threads = LANES * scene.state.count
    message = f"`{scene.statement.form.mnemonic}` in warp {scene.warp} of a block of {threads} threads"
    return scene.raised(
        EmulationError, f"{message}: a warpgroup is four warps, from a multiple of four on",
        "launch blocks of a multiple of 128 threads",
    )


@explains(Fault.DESCRIPTOR)
def _descriptor(scene: Scene, _: Fault) -> EmulationError:
    word = scene.address

    def part(field: Bits) -> int:
        return (word >> field.low & (1 << field.width) - 1) << field.unit

    message = f"the matrix descriptor {word:#x} of `{scene.statement.form.mnemonic}`:"
    if part(BASE_OFFSET):
        return scene.raised(
            MemoryFault, f"{message} its base offset is {part(BASE_OFFSET)}; the emulator takes 0 only",
            "align the tile to 1024 bytes",
        )
    end = SHARED_START + scene.state.launch.shared_bytes
    tile = f"a tile at {part(ADDRESS):#x}, leading {part(LEADING):#x}, stride {part(STRIDE):#x}"
    rows = f"rows of {SPANS[part(SWIZZLE)]} bytes"
    where = f"goes beyond the block's shared memory, {SHARED_START:#x} to {end:#x}"
    return scene.raised(MemoryFault, f"{message} {tile}, {rows} {where}")


@explains(Fault.DESCRIPTOR_ROWS)
def _rows(scene: Scene, _: Fault) -> EmulationError:
    named = f"the matrix descriptor {scene.address:#x} of `{scene.statement.form.mnemonic}`"
    return scene.raised(
        MemoryFault, f"{named}: its swizzle has rows of 32 bytes, but a line of B has 64 where A is sparse",
        "lay B out in the swizzle of 64 or 128 bytes",
    )
