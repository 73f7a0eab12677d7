"""Which name has changed between two keys of `Dependencies`, to tell the user why a kernel is traced again."""

from __future__ import annotations

from collections.abc import Hashable
from types import CodeType

__all__ = ["changed_name"]


def changed_name(before: Hashable, after: Hashable) -> str | None:
    """The first name whose value differs, as it is read: ``settings.tile``; None where no name is known.

    A key holds a name in front of what was found by it, at any depth.
    """
    names = _path(before, after)
    return ".".join(names) if names else None


def _path(before: Hashable, after: Hashable) -> list[str]:
    if not (isinstance(before, tuple) and isinstance(after, tuple)) or len(before) != len(after):
        return []
    name = before[0] if len(before) == 2 and isinstance(before[0], str) else "met"
    if name == after[0] != "met" and not isinstance(before[1], CodeType):
        return [] if before[1] == after[1] else [name, *_path(before[1], after[1])]
    different = next(((a, b) for a, b in zip(before, after) if a != b), None)
    return [] if different is None else _path(*different)
