"""Kernels as users see them: what is traced, dispatched, compiled and loaded."""

from __future__ import annotations

from .kernel import Kernel, PtxModule, backend_name, load, ptx_kernel

__all__ = ["Kernel", "PtxModule", "backend_name", "load", "ptx_kernel"]
