"""Launches whose atomics need no locked instructions: while one host thread alone runs such kernels, nobody interferes.

A launch of a kernel with strong writes to memory that others reach (atomics, volatile and ordered stores) enters here.
The first one may update memory by plain instructions, until it gets a second host thread (:mod:`.worker_pool`), or a
second such launch comes, from another thread of the program: that one waits until compiled code of the first has
returned, and from then on all launches of the process lock. Atomics of the system's scope always do, and so are atomic
for other processes too; what numpy does meanwhile in another thread is atomic for nobody.
"""

from __future__ import annotations

import os
from typing import Protocol

from ... import locks

__all__ = ["ALONE", "enter", "leave"]


class _Launch(Protocol):
    locks: bool


ALONE = locks.rlock()
"""Held while compiled code updates memory by plain instructions."""
_mutex = locks.rlock()
_launches: list[_Launch] = []
"""Those that run now."""
_several = False
"""Whether two have run at a time."""


def enter(launch: _Launch) -> None:
    """Such a launch begins: ``locks`` says whether its atomics must lock."""
    global _several  # noqa: PLW0603
    with _mutex:
        first = _launches[0] if _launches else None
        _launches.append(launch)
        if first is not None:
            _several = first.locks = True
        launch.locks = _several
    if first is not None:
        with ALONE:  # it sees that when it goes on
            pass


def leave(launch: _Launch) -> None:
    """It has ended, or has not come to begin."""
    with _mutex:
        if launch in _launches:
            _launches.remove(launch)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_launches.clear)  # those of other threads do not go on there
