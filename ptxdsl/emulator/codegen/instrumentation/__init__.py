"""What sanitizer, profiler and debugger insert."""

from . import (
    bulk_checks, bulk_groups, copies, counters, epochs, mbarriers, named_barriers, order_search, releases,
    shadow_checks, shadow_inspection, sync_log, tensor_reads,
)

__all__ = [
    "bulk_checks", "bulk_groups", "copies", "counters", "epochs", "mbarriers", "named_barriers", "order_search",
    "releases", "shadow_checks", "shadow_inspection", "sync_log", "tensor_reads",
]
