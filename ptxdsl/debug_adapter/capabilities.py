"""What the adapter can do, as it tells the editor."""

from __future__ import annotations

from typing import Any

__all__ = ["CAPABILITIES"]

CAPABILITIES: dict[str, Any] = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSteppingGranularity": True,
    "supportsExceptionInfoRequest": True,
    "supportsValueFormattingOptions": True,
    "supportsDelayedStackTraceLoading": True,
    "supportsTerminateRequest": True,
    "supportsDisassembleRequest": True,
    "supportsInstructionBreakpoints": True,
    "supportsBreakpointLocationsRequest": True,
    "exceptionBreakpointFilters": [
        {
            "filter": "faults", "label": "Faults of kernels", "default": True,
            "description": "accesses out of bounds, traps, failed checks, barriers, deadlocks",
        },
        {
            "filter": "sanitizer", "label": "Findings of the sanitizer", "default": True,
            "description": "races and what nobody has written; each launch runs with the sanitizer first",
        },
    ],
}
