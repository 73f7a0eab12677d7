"""What the sanitizer inserts about the async proxy."""

from . import checks, events, hazards, maps, orders

__all__ = ["checks", "events", "hazards", "maps", "orders"]
