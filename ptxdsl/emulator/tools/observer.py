"""How somebody watches a launch: records of their own among those of the kernel.

A kernel that is watched is lowered anew with a probe, in the code that takes nothing to be uniform: every register has
a number for each lane, every statement a place, and nothing is computed beforehand. Without a watcher none of this
exists, so that an ordinary launch costs what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from typing import Any, Protocol

from ...analysis.control_flow import MEETINGS
from ...config import observer
from ...errors import LaunchError, caller
from ...ir import Call, Instruction
from ...isa import Form
from ..analysis.divergence import Shape3
from ..analysis.registers import Slots
from ..instructions.lowering import Code, Lowering
from ..machine.address_spaces import Spaces
from ..machine.block_state import LaunchState

__all__ = ["Observer", "Probe", "meets", "watched"]


class Probe(Protocol):
    """Adds records around those of a statement."""

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        """Emit records that run before the statement."""

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Emit records that run after it."""


class _Apart(Slots):
    """A slot for each register, so that a register that is no longer needed can still be looked at."""

    def _assign(self, intervals: list[tuple[int, int, str]]) -> None:
        names = [name for _, _, name in intervals]
        super()._assign(sorted((-1, 1 << 60, name) for name in names))


class _Watched(Lowering):
    def __init__(self, spaces: Spaces, block: Shape3, probe: Probe) -> None:
        super().__init__(spaces.function, spaces, block, True)
        self.slots = _Apart(self.graph, self.facts)
        self.operands = self._described()
        self.probe = probe

    def statement(self, statement: Instruction | Call) -> None:
        self.probe.before(self, statement)
        super().statement(statement)
        self.probe.after(self, statement)


def watched(spaces: Spaces, block: Shape3, probe: Probe) -> Code:
    """The records of a kernel with those of a probe among them."""
    code = _Watched(spaces, block, probe).lower()
    code.hot = True  # the second tier has no business here
    return code


def meets(form: Form) -> bool:
    """Whether lanes wait for each other at an instruction."""
    return form.opcode in MEETINGS


class Observer:
    """Watches every launch of its ``with`` block, on the emulator."""

    what = "an observer"

    def __init__(self) -> None:
        self._token: Token[Any] | None = None

    def __enter__(self) -> Any:
        other = observer.get()
        if other is not None:
            raise LaunchError(f"{self.what} within {other.what}: launches have one observer at a time", loc=caller())
        self._token = observer.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            observer.reset(self._token)
            self._token = None

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:  # noqa: ARG002
        """A kernel is about to be launched."""
        if backend == "gpu":
            raise LaunchError(
                f"{self.what} watches the emulator, and kernel `{kernel.entry}` is launched on a GPU", loc=caller(),
                hint='`with ptxdsl.use("emulator"):`',
            )

    def run(self, launch: LaunchState) -> None:
        """Run a launch and watch it."""
        added = (launch.config.sanitize or frozenset()) & {"race", "init"}
        if added:
            checks = ", ".join(sorted(added))
            raise LaunchError(
                f"{self.what} and the sanitizer's checks ({checks}) do not run together", loc=caller(),
                hint="`.configure(grid, block, sanitize=False)`",
            )
