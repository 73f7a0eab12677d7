"""Faults of bulk copies other than those of the memory that they access."""

from __future__ import annotations

from ...errors import EmulationError, MemoryFault
from ...ir import Address
from ..instructions.bulk_copies import ALIGNMENT
from ..machine.layout import Cluster
from ..machine.status import Fault
from .faults import Scene, explains

__all__: list[str] = []


@explains(Fault.BULK_SIZE)
def _size(scene: Scene, _: Fault) -> EmulationError:
    size, mnemonic = scene.number(scene.statement.operand("size")), scene.statement.form.mnemonic
    return scene.raised(MemoryFault, f"`{mnemonic}` of {size} bytes, which is no multiple of {ALIGNMENT}")


@explains(Fault.BULK_IGNORED)
def _ignored(scene: Scene, _: Fault) -> EmulationError:
    left, right = (scene.number(scene.statement.operand(name)) for name in ("left", "right"))
    message = f"`{scene.statement.form.mnemonic}` ignores {left} bytes at the begin and {right} at the end"
    return scene.raised(MemoryFault, f"{message}; it can ignore 0 to {ALIGNMENT - 1}")


@explains(Fault.BULK_BLOCK)
def _other_block(scene: Scene, _: Fault) -> EmulationError:
    mnemonic, block = scene.statement.form.mnemonic, scene.address >> Cluster.RANK_BITS
    message = f"`{mnemonic}` of an address in block {block} of the cluster, executed by block {scene.state.rank}"
    return scene.raised(MemoryFault, message, "`.shared::cta` is the shared memory of the block that executes it")


@explains(Fault.BULK_MBARRIER)
def _mbarrier(scene: Scene, _: Fault) -> EmulationError:
    mbar: Address = scene.statement.operand("mbar")
    mnemonic, block = scene.statement.form.mnemonic, scene.address >> Cluster.RANK_BITS
    own = scene.number(mbar.base) + mbar.offset >> Cluster.RANK_BITS
    message = f"`{mnemonic}` writes to block {block} of the cluster, and its mbarrier lies in block {own}"
    return scene.raised(MemoryFault, message, "the mbarrier must lie in the block whose memory is written")
