"""The rules of PTX that a module can break although every statement of it is well formed."""

from __future__ import annotations

from .checker import verify

__all__ = ["verify"]
