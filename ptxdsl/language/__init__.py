"""Tracing: a Python function runs once, and what it does to proxies becomes a PTX module.

The user's words are gathered here; each is at home in the module named after its subject.
"""

from __future__ import annotations

from .arrays import View, const, dynamic_shared, global_, local, shared
from .builder import Region, Trace, current
from .regions import otherwise, when
from .diagnostics import check, printf
from .tracing import trace
from .functions import cdiv, maximum, minimum, pack, reg, select, unpack
from .labels import label
from .loops import break_if, continue_if, loop
from .pointers import Pointer
from .namespace.ptx import ptx
from .subroutine import ptx_func
from .values import Reg, Value, Vec

__all__ = [
    "Pointer", "Reg", "Region", "Trace", "Value", "Vec", "View", "break_if", "cdiv", "check", "const", "continue_if",
    "current", "dynamic_shared", "global_", "label", "local", "loop", "maximum", "minimum", "otherwise", "pack",
    "printf", "ptx", "ptx_func", "reg", "select", "shared", "trace", "unpack", "when",
]
