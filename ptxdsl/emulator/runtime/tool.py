"""What a tool that follows a launch is told, and when: the sanitizer, the profiler, a debugger."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

__all__ = ["NO_TOOL", "Tool"]

State = TypeVar("State")
"""The state of a block (:mod:`.block_state`): it knows its launch, which knows its tool, so this imports neither."""


class Tool(Generic[State]):
    """What happens in a launch, as it is told to a tool. This one does nothing."""

    keeps = False
    """Whether block states serve the next launch as well, with what the tool has given them."""
    compiled_turns = False
    """Whether compiled code does what ``begin_cluster`` and ``switch`` do, where it goes from block to block."""
    in_order = False
    """Whether what it is told of is told in the order of the blocks, as far as they do not wait for each other."""
    pinned = False
    """Whether a block state stays with the host thread that has made it."""

    def attach(self, state: State) -> None:
        """A block state has its memory."""

    def again(self, states: list[State]) -> None:
        """Block states of an earlier launch serve this one, those of a cluster together."""

    def connect(self, states: list[State]) -> None:
        """These are the block states of the clusters."""

    def begin_cluster(self, states: list[State]) -> None:
        """They are about to run the blocks of another cluster."""

    def switch(self, state: State) -> None:
        """A block state is about to have a time slice."""

    def entered(self, state: State) -> None:
        """Compiled code has given a block state its time slice."""

    def ended(self, state: State) -> None:
        """The block of a cluster has ended, where Python goes from block to block."""

    def callback(self, state: State) -> None:
        """A micro-op of the tool has returned with Status.CALLBACK; the warp resumes after it."""

    def passes(self, state: State) -> bool:  # noqa: ARG002
        """Whether the launch goes on after the fault that a state has stopped with, which has been noted."""
        return False

    def stalled(self) -> None:
        """All blocks that run have had time slices without one of them coming to its end."""

    def allocated(self, address: int, nbytes: int) -> None:
        """``malloc`` has given memory."""

    def unwritten(self, state: State, pc: int, thread: tuple[int, int], register: str) -> None:
        """A thread, warp and lane, reads a register that it has not written."""

    def outside(self, state: State, pc: int, thread: tuple[int, int], number: int, indices: list[int]) -> None:
        """A thread asks for an element outside of its array; ``number`` is that of the check."""

    def converged(self, state: State, warp: int, lanes: int, place: int) -> None:
        """Lanes have executed a statement together that they came to at different places, without the tool's code."""


NO_TOOL: Tool[Any] = Tool()
NO_TOOL.compiled_turns = NO_TOOL.keeps = True
