"""What a process has once, made when it is first asked for, also where several threads ask at the same time.

``functools.cache`` calls its function for each of these threads, and each gets an object of its own: of a library of
compiled code, or a lock, there must not be two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from .. import locks

__all__ = ["once"]

_Made = TypeVar("_Made")


class once(Generic[_Made]):
    """Decorates a function without arguments, which is called once.

    >>> calls = []
    >>> @once
    ... def things() -> list[int]:
    ...     calls.append(1)
    ...     return [1, 2]
    >>> things() is things(), len(calls)
    (True, 1)
    """

    def __init__(self, make: Callable[[], _Made]) -> None:
        self.__doc__ = make.__doc__
        self._make, self._lock = make, locks.rlock()
        self.made: list[_Made] = []
        """It, once it was made."""

    def __call__(self) -> _Made:
        if not self.made:
            with self._lock:
                if not self.made:
                    self.made.append(self._make())
        return self.made[0]

    def cache_clear(self) -> None:
        """Let it be made again."""
        self.made = []
