"""What sanitizer, profiler and debugger insert."""

from . import bulk_checks, copies, counters, epochs, shadow_checks, shadow_inspection

__all__ = ["bulk_checks", "copies", "counters", "epochs", "shadow_checks", "shadow_inspection"]
