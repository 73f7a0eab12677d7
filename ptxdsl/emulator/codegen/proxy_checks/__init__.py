"""What the sanitizer inserts about the async proxy."""

from . import checks, core_fences, events, fences, hazards, maps, orders, tensor_core

__all__ = ["checks", "core_fences", "events", "fences", "hazards", "maps", "orders", "tensor_core"]
