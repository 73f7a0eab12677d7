"""Kernels as users see them: what is traced, dispatched, compiled and loaded."""

from __future__ import annotations

from .backends import backend_name
from .kernel import Kernel, ptx_kernel
from .ptx_module import PtxModule, load

__all__ = ["Kernel", "PtxModule", "backend_name", "load", "ptx_kernel"]
