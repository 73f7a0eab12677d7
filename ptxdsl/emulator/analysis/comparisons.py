"""What comparisons of integers say: which hold for all numbers within bounds, and what bounds follow from one."""

from __future__ import annotations

__all__ = ["MIRRORED", "OPPOSITE", "bounded", "decided"]

Bounds = tuple[int, int]

OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq",
            "lo": "hs", "hs": "lo", "ls": "hi", "hi": "ls"}
"""What holds where a comparison does not."""
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
"""The comparison of the operands in the other order."""


def bounded(test: str, bounds: Bounds, width: int, signed: bool) -> Bounds | None:
    """The bounds of a number for which a comparison with one within ``bounds`` holds; None where that says nothing."""
    least, most = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    low, high = {
        "lt": (least, bounds[1] - 1), "le": (least, bounds[1]), "gt": (bounds[0] + 1, most),
        "ge": (bounds[0], most), "eq": bounds, "ne": (least, most),
    }[test]
    return (low, high) if low <= high and (low, high) != (least, most) else None


def decided(test: str, left: Bounds, right: Bounds) -> tuple[bool, bool]:
    """Whether a comparison of two numbers, known by their bounds, holds always, and whether it never does."""
    apart = left[1] < right[0] or left[0] > right[1]
    return {
        "lt": (left[1] < right[0], left[0] >= right[1]), "ge": (left[0] >= right[1], left[1] < right[0]),
        "le": (left[1] <= right[0], left[0] > right[1]), "gt": (left[0] > right[1], left[1] <= right[0]),
        "eq": (False, apart), "ne": (apart, False),
    }[test]
