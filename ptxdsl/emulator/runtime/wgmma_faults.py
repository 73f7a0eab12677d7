"""Faults of wgmma: descriptors of what is not shared memory, warpgroups that are none."""

from __future__ import annotations

from ...errors import EmulationError, MemoryFault
from ...isa.matrix_descriptors import BASE_OFFSET, SPANS, SWIZZLE
from ..machine.layout import LANES
from ..machine.status import Fault
from .faults import Scene, explains
from .matrix_faults import tile_beyond

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

    message = f"the matrix descriptor {word:#x} of `{scene.statement.form.mnemonic}`:"
    if BASE_OFFSET.of(word):
        return scene.raised(
            MemoryFault, f"{message} its base offset is {BASE_OFFSET.of(word)}; the emulator takes 0 only",
            "align the tile to 1024 bytes",
        )
    return tile_beyond(scene, message, word, SPANS[SWIZZLE.of(word)])


@explains(Fault.DESCRIPTOR_ROWS)
def _rows(scene: Scene, _: Fault) -> EmulationError:
    named = f"the matrix descriptor {scene.address:#x} of `{scene.statement.form.mnemonic}`"
    return scene.raised(
        MemoryFault, f"{named}: its swizzle has rows of 32 bytes, but a line of B has 64 where A is sparse",
        "lay B out in the swizzle of 64 or 128 bytes",
    )
