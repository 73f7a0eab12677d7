"""The proofs of launches, kept: a proof depends on the kernel, the grid, the block, and parameters that it asked for.

So most launches find theirs. Where a proof ended since it took too much effort, a launch that comes again and again is
worth a longer one.
"""

from __future__ import annotations

from ...collector import paused
from ...launch import Buffer, Scalar
from ..analysis.block_execution import EFFORT
from ..analysis.divergence import Shape3
from ..machine.address_spaces import AddressSpaces
from ..runtime.block_state import LaunchState
from .kernel_facts import KernelFacts
from .launch_proof import LaunchProof
from .proven_accesses import NOTHING_PROVEN, Proven

__all__ = ["is_final", "proven"]

MOST_EFFORT = 16 * EFFORT
"""That of a kernel which is executed for a proof, at most."""
MOST_LAUNCHES = 16
"""Launches of a kernel that are told apart; so many others find nothing proven until the first are forgotten."""


class _Known:
    """What is proven of a launch; if execution ended for the ``effort``, how often it has been launched since."""

    def __init__(self, found: Proven, stopped: bool, effort: int) -> None:
        self.found, self.stopped, self.effort, self.launches = found, stopped, effort, 0

    @property
    def is_final(self) -> bool:
        """Whether a longer proof would find no more, or is not made."""
        return not self.stopped or self.effort >= MOST_EFFORT

    def is_worth_more(self) -> bool:
        """Whether a launch that comes again and again is worth a longer proof: each is four times the one before."""
        self.launches += 1
        return not self.is_final and self.launches * EFFORT >= 2 * self.effort


class _Kernel(KernelFacts):
    """What is proven of one kernel for one shape of block, launch by launch."""

    def __init__(self, spaces: AddressSpaces, block: Shape3) -> None:
        super().__init__(spaces.function, block)
        self.known: dict[object, _Known] = {}

    def proven(self, launch: LaunchState, overlap: bool) -> Proven:
        if self.hopeless:
            return NOTHING_PROVEN
        arguments = _arguments(launch)
        key = self._key(launch, arguments, overlap)
        known = self.known.get(key)
        if known is None or (known.stopped and known.is_worth_more()):
            asked, effort = len(self.parameters), EFFORT if known is None else 4 * known.effort
            with paused():
                proof = LaunchProof(self, launch, arguments, overlap, effort)
                known = _Known(proof.run(), proof.stopped, effort)
            if len(self.parameters) > asked or len(self.known) >= MOST_LAUNCHES:
                self.known.clear()
            self.known[self._key(launch, arguments, overlap)] = known
        return known.found

    def is_final(self, launch: LaunchState, overlap: bool) -> bool:
        """Whether what is proven of a launch is all that will be proven of it."""
        known = self.known.get(self._key(launch, _arguments(launch), overlap))
        return self.hopeless or (known is not None and known.is_final)

    def _key(self, launch: LaunchState, arguments: dict[str, Scalar | Buffer], overlap: bool) -> object:
        """All that a proof depends on."""
        arrays = tuple(isinstance(argument, Buffer) for argument in arguments.values())
        values = tuple(
            argument.data[offset : offset + size] for name, offset, size in sorted(self.parameters)
            if isinstance(argument := arguments.get(name), Scalar)
        )
        confirms = "cas" not in (launch.config.sanitize or ())
        return launch.config.grid, launch.config.shared, overlap, confirms, arrays, values


def _arguments(launch: LaunchState) -> dict[str, Scalar | Buffer]:
    return dict(zip((name for name, _, _ in launch.spaces.parameters), launch.arguments))


def proven(launch: LaunchState, overlap: bool) -> Proven:
    """What is proven of a launch; ``overlap``: some of its arrays share memory."""
    return _kernel(launch).proven(launch, overlap)


def is_final(launch: LaunchState, overlap: bool) -> bool:
    """Whether :func:`proven` gives the same for each further launch with these arguments."""
    return _kernel(launch).is_final(launch, overlap)


def _kernel(launch: LaunchState) -> _Kernel:
    by_block: dict[Shape3, _Kernel] = launch.spaces.notes.setdefault(_Kernel, {})
    block = launch.config.block
    kernel = by_block.get(block)
    if kernel is None:
        kernel = by_block[block] = _Kernel(launch.spaces, block)
    return kernel
