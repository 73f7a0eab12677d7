"""What a run of a launch is made of: steps, what each touches and accesses, and the blocks that make them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runtime.block_state import BlockState
from ..runtime.clusters import Clusters
from .pending_operations import Operation, Span
from .schedule import Actor
from .stops import Site

__all__ = ["Access", "Step", "Touch", "Unit"]


class Touch(NamedTuple):
    """A synchronising object that a step touches.

    ``mode``: read, write, or update, which commutes with updates of the same ``phase``. ``ends``: it ends the phase.
    ``strong`` has the bytes where the object is memory.
    """

    key: tuple[Any, ...]
    mode: str
    phase: int = 0
    ends: bool = False
    strong: Span | None = None


class Access(NamedTuple):
    """Bytes that a step accesses."""

    low: int
    high: int
    writes: bool
    statement: Any


class Step:
    """A step: of a warp, or the completion of an operation.

    ``site`` is the visible statement; ``weak`` what it accesses weakly. ``begun`` are operations, ``completes`` the one
    that is complete. ``waited``: those whose completion the warp has waited for, ``read_done`` those whose reads only.
    ``resumes``: the phase of a barrier that has let the warp go on. ``default`` would have gone on by default.
    """

    __slots__ = (
        "actor", "begun", "completes", "default", "read_done", "resumes", "site", "statement", "touches", "waited",
        "weak",
    )

    def __init__(self, actor: Actor, site: Site | None, statement: Any, default: Actor | None) -> None:
        self.actor, self.site, self.statement, self.default = actor, site, statement, default
        self.touches: list[Touch] = []
        self.weak: list[Access] = []
        self.begun: list[Operation] = []
        self.completes: Operation | None = None
        self.waited: list[Operation] = []
        self.read_done: list[Operation] = []
        self.resumes: tuple[tuple[Any, ...], int] | None = None


class Unit:
    """A block that runs: its warps, which of them can, and at which visible statement each is."""

    def __init__(self, number: int, state: BlockState, cluster: Clusters | None, which: int) -> None:
        self.number, self.state, self.cluster, self.which = number, state, cluster, which
        self.runnable, self.ended = state.all, False
        self.started: set[int] = set()
        self.at: dict[int, Site] = {}
        self.asleep: dict[int, list[tuple[int, int, bytes, bool]]] = {}
        """What a warp that polls has read: where, how many bytes, and what; whether only the parity counts."""
        self.gave_way: dict[int, int] = {}
        """How many steps there were when a warp found that it has to execute a statement again."""
        self.waits: dict[int, tuple[tuple[Any, ...], int]] = {}
        self.arrived: dict[int, int] = {}
        self.seen: dict[int, dict[int, tuple[bytes, int]]] = {}
        """The state of a warp at the places where it was since its last change, and the steps that there were."""
        self.turned: dict[int, list[tuple[int, int, bytes, bool]]] = {}
