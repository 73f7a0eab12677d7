"""Shadow memory that is kept from launch to launch, so that a launch need not begin with clearing it."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from ..machine.shadow import EPOCH_BITS

__all__ = ["Store", "store"]


class Store:
    """The number of the last epoch, the blocks of epochs, and free memory for shadow words.

    Old words need no clearing: their epochs precede the launch, so they are ordered before all of it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.counter = np.ones(1, np.uint64)
        self.tickets = np.ones(1, np.uint64)
        """The last ticket of an asynchronous copy."""
        self.blocks = np.zeros(1 << EPOCH_BITS, np.uint32)
        self.free: list[tuple[np.ndarray[Any, Any], int]] = []

    def take(self, words: int, planes: int) -> np.ndarray[Any, Any]:
        """Memory for so many shadow words in that many planes: words of epochs and of tickets are not mixed."""
        fitting = [
            array for array, layout in self.free
            if layout == planes and words <= array.size <= (2 * words + 4096 if planes == 3 else words)
        ]
        if not fitting:
            return np.zeros(words, np.uint64)
        best = min(fitting, key=lambda array: array.size)
        self.free = [each for each in self.free if each[0] is not best]
        return best

    def give(self, arrays: list[tuple[np.ndarray[Any, Any], int]]) -> None:
        """Keep the memory of the last launch for the next one."""
        self.free = [*arrays, *self.free][:64]
        while sum(array.nbytes for array, _ in self.free[1:]) > 256 << 20:
            self.free.pop()


@functools.cache
def store() -> Store:
    """The store of this process."""
    return Store()
