"""Handlers that are compiled twice: quickly for the launch that waits for them, and again beside the later ones.

LLVM makes some code in a third of the time in which it makes good code. A first launch that finds nothing on disk needs
dozens of handlers and executes each for a moment; so these are compiled without optimisation, and once it has run the
thread of the second tier has them optimised. The better ones take the others' place in all code that is there, by a
single pointer each, and only they are kept on disk.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import NamedTuple

from ..instructions.micro_op import Key
from .code import Code

__all__ = ["Module", "Unoptimised", "write_address"]


class Module(NamedTuple):
    """The text of an LLVM module, and the handlers that it has by their names."""

    text: str
    handlers: dict[str, Key]


def write_address(place: int, address: int) -> None:
    """Put a handler's address where a micro-op has one: at once, for another thread may be about to read it."""
    ctypes.c_uint64.from_address(place).value = address


class Unoptimised:
    """The handlers of a process that are not optimised yet, and what is to be done when they are.

    Its methods are called under the library's lock.
    """

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self._modules: list[Module] = []
        self._users: list[tuple[weakref.ref[Code], dict[int, Key]]] = []
        """Code that has such handlers, and at which addresses it has which."""
        self._later: list[Callable[[], object]] = []

    def add(self, module: Module) -> None:
        """These handlers are to be optimised."""
        self._modules.append(module)
        self.keys.update(module.handlers.values())

    def next(self) -> Module | None:
        """What is to be optimised next; where all is done, what had to wait for it follows."""
        if self._modules:
            return self._modules.pop(0)
        self._users.clear()
        while self._later:
            self._later.pop(0)()
        return None

    def note_user(self, code: Code, handlers: dict[int, Key]) -> None:
        """Note code that has such handlers at these addresses."""
        code.unoptimised = True
        self._users.append((weakref.ref(code), handlers))

    def after(self, call: Callable[[], object]) -> None:
        """Call this once all handlers are optimised and kept: at once where they are."""
        if self.keys:
            self._later.append(call)
        else:
            call()

    def replace(self, addresses: dict[Key, tuple[int, int]]) -> None:
        """Let better handlers take the place of others: the address of each, and that of the one before."""
        self.keys -= addresses.keys()
        for user, places in self._users:
            code = user()
            for place, key in places.items() if code is not None else ():
                now, before = addresses.get(key, (0, 0))
                if before and ctypes.c_uint64.from_address(place).value == before:  # nothing else took its place
                    write_address(place, now)
