"""Which engine runs a kernel's launches, and why it is not the fastest one: what ``k.tiers()`` shows.

A kernel has code of its own for each shape of block, and for sanitized launches; each of them is in a tier for itself.
It sees what has been launched in this process, not what another shape of block would be.
"""

from __future__ import annotations

from typing import NamedTuple

from ..analysis.divergence import Shape3
from ..codegen.code import Code
from ..jit.tier_up import FAILED, seconds_before
from ..program import BOUNDS, Program

__all__ = ["Tier", "Tiers", "tiers_of"]


class Tier(NamedTuple):
    """The engine of a kernel's launches in one shape of block, and of sanitized launches.

    ``engine`` is ``"block function"`` (the second tier), ``"functions of a warp"``, ``"superinstructions"`` or
    ``"handlers"``; ``reason`` is empty for a block function.
    """

    block: Shape3
    sanitized: bool
    engine: str
    reason: str

    def __str__(self) -> str:
        launch = f"blocks of {self.block}{', sanitized' if self.sanitized else ''}: {self.engine}"
        return f"{launch}: {self.reason}" if self.reason else launch


class Tiers(tuple[Tier, ...]):
    """A :class:`Tier` for each way in which a kernel was launched; as text, a line each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "not launched on the emulator yet"

    __repr__ = __str__


def tiers_of(program: Program, entry: str) -> Tiers:
    """The tiers of a kernel's launches so far.

    A launch that needs conservative code stays in it, so that is the code that is shown.
    """
    found: dict[tuple[Shape3, bool], Tier] = {}
    for block, tools, code in program.codes(entry):
        key = block, tools not in (None, BOUNDS)
        if code.conservative or key not in found:
            found[key] = Tier(*key, *_engine(code))
    return Tiers(found.values())


def _engine(code: Code) -> tuple[str, str]:
    """The engine that runs a code, and why no block function does."""
    if code.block_function:
        return "block function", ""
    if code.refusal:
        compiled = "functions of a warp" if code.warp_functions else "superinstructions"
        return "handlers" if code.refusal.startswith(FAILED) else compiled, code.refusal
    if code.tiered_up:
        return "handlers", "it is being compiled"
    spent, needed = code.seconds * 1e3, seconds_before(code) * 1e3
    return "handlers", f"it has run for {spent:.3g} ms, and is compiled after {needed:.3g} ms"
