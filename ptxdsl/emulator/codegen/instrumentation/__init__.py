"""What sanitizer, profiler and debugger insert."""

from . import counters, epochs, shadow_checks, shadow_inspection

__all__ = ["counters", "epochs", "shadow_checks", "shadow_inspection"]
