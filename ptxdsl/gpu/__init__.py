"""NVIDIA's side: its assembler and disassembler, the CUDA driver, and memory on the device.

Nothing is loaded before it is used: a machine without a GPU or an assembler traces and emulates all the same.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assembler import assemble
    from .memory import DeviceArray, empty, to_device, zeros

__all__ = ["DeviceArray", "assemble", "empty", "to_device", "zeros"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = import_module(".assembler" if name == "assemble" else ".memory", __name__)
        globals()[name] = getattr(home, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
