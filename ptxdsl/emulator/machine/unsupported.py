"""The error for what the emulator does not do: raised wherever a program is read, so it lies below all of that."""

from __future__ import annotations

from typing import Any

from ...errors import EmulationError
from ...text.printer import instruction_text

__all__ = ["render", "unsupported"]


def unsupported(statement: Any, what: str) -> EmulationError:
    """The error for an instruction, or for what is said of a whole kernel where ``statement`` is None."""
    line = getattr(statement, "line", 0)
    return EmulationError(
        f"the emulator does not support {what}",
        loc=getattr(statement, "loc", None), ptx_line=line or None, instruction=render(statement),
        hint="run this kernel on a GPU: `PTXDSL_BACKEND=gpu`",
    )


def render(statement: Any) -> str:
    """A statement as PTX text, for messages: the one in the kernel of which it is a part."""
    statement = getattr(statement, "original", None) or statement
    return "" if statement is None else instruction_text(statement)
