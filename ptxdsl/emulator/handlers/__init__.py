"""The emitters of handlers, by the kind of their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import control, data, machine, memory

if TYPE_CHECKING:
    from ..library import Emitter, Shape

__all__ = ["emit"]

_KINDS: dict[str, Emitter] = {
    "data": data.data,
    "param": memory.param,
    "load": memory.load,
    "store": memory.store,
    "jump": control.jump,
    "branch": control.branch,
    "check": control.check,
    "exit": control.exit_,
    "index": control.index,
    "trap": control.trap,
    "wrap": control.wrap,
    "machine": machine.machine,
}


def emit(module: Any, name: str, shape: Shape) -> None:
    """Add the function of a shape to an LLVM module."""
    _KINDS[shape[0]](module, name, shape)
