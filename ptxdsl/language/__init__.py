"""Tracing: a Python function runs once, and what it does to proxies becomes a PTX module.

The public names of the language; each is defined in the module named after its subject.
"""

from __future__ import annotations

from .builder import Region, Trace, current
from .control.labels import label
from .control.loops import break_if, continue_if, loop
from .control.regions import otherwise, when
from .diagnostics import check, printf
from .memory.arrays import View
from .memory.pointers import Pointer
from .memory.variables import const, dynamic_shared, global_, local, shared
from .namespace.ptx import ptx
from .subroutine import ptx_func
from .tracing import trace
from .values.functions import cdiv, maximum, minimum, pack, reg, select, unpack
from .values.value import Reg, Value, Vec

__all__ = [
    "Pointer", "Reg", "Region", "Trace", "Value", "Vec", "View", "break_if", "cdiv", "check", "const", "continue_if",
    "current", "dynamic_shared", "global_", "label", "local", "loop", "maximum", "minimum", "otherwise", "pack",
    "printf", "ptx", "ptx_func", "reg", "select", "shared", "trace", "unpack", "when",
]
