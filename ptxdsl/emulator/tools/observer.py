"""Observers of launches: the profiler and the debugger, and how they instrument a kernel.

The kernel is lowered once more, to conservative code with the micro-ops of a probe: every register varies and keeps its
number, every statement has its place, and nothing is computed before the first block. Launches without an observer run
code without probes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from typing import Any, NamedTuple, Protocol

from ...config import observer
from ...errors import LaunchError, caller
from ...ir import Call, Instruction
from ...launch import LaunchConfig
from ..analysis.divergence import Shape3
from ..codegen.code import Code, Source
from ..codegen.translation import translate
from ..instructions.lowering import Lowering
from ..machine.address_spaces import AddressSpaces
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.tool import Tool

__all__ = ["Observer", "Probe", "Probed", "probed"]


class Probe(Protocol):
    """Adds micro-ops around those of a statement."""

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        """Emit micro-ops that run before the statement."""

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Emit micro-ops that run after it."""


class Probed(NamedTuple):
    """An instrument: the micro-ops of a probe around those of each statement."""

    low: Lowering
    probe: Probe

    def begin(self) -> None:
        """Nothing is added where a block begins."""

    def statement(self, statement: Instruction | Call) -> None:
        self.probe.before(self.low, statement)
        self.low.statement(statement)
        self.probe.after(self.low, statement)


def probed(spaces: AddressSpaces, block: Shape3, probe: Probe) -> Code:
    """A kernel lowered to conservative code with the micro-ops of a probe."""
    code = translate(spaces.function, spaces, block, True, lambda low: Probed(low, probe), keep_registers=True)
    source = Source(spaces.function, spaces, block, None)  # a probe keeps the code, and there is no second tier
    code.described = code.description._replace(source=source)
    return code


class Observer(Tool[BlockState]):
    """Observes every launch of its ``with`` block, on the emulator."""

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
                f"{self.what} observes the emulator, and kernel `{kernel.entry}` is launched on a GPU", loc=caller(),
                hint='`with ptxdsl.use("emulator"):`',
            )

    def rehearsal(self, config: LaunchConfig) -> LaunchConfig | None:  # noqa: ARG002
        """A launch to make before, with nobody observing it; None for none."""
        return None

    def rehearse(self, launch: LaunchState, run: Callable[[], object]) -> None:
        """Make that launch."""

    def run(self, launch: LaunchState) -> None:
        """Run a launch and observe it."""
        added = (launch.config.sanitize or frozenset()) & {"race", "order", "cas", "init"}
        if added:
            checks = ", ".join(sorted(added))
            raise LaunchError(
                f"{self.what} and the sanitizer's checks ({checks}) do not run together", loc=caller(),
                hint="`.configure(grid, block, sanitize=False)`",
            )
