"""Kernels as users see them: what is traced, dispatched, compiled and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .backends import backend_name, capability, processors
from .kernel import Kernel, ptx_kernel

if TYPE_CHECKING:
    from .ptx_module import PtxModule, load

__all__ = ["Kernel", "PtxModule", "backend_name", "capability", "load", "processors", "ptx_kernel"]


def __getattr__(name: str) -> Any:
    """``load`` and ``PtxModule``, which only foreign PTX needs."""
    if name in ("PtxModule", "load"):
        from . import ptx_module

        return getattr(ptx_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
