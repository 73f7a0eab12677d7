"""The host threads that run the clusters of a launch, each one cluster after the other.

A second one is started where compiled code has enough to do: Python's part is done by one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from time import perf_counter

from ...machine_code.host import cores
from ..codegen.code import Code
from . import host_threads, worker_pool
from .block_state import LaunchState
from .cluster_work import ClusterWork
from .clusters import Clusters

__all__ = ["ClusterPool"]

BATCH_SECONDS = 1e-3
"""How long the clusters are to take that compiled code runs by itself, and may be interrupted after."""
FAST = 0.5
"""The share of a launch's time that compiled code has to take for a second host thread to be of use."""


class ClusterPool(ClusterWork):
    """Runs all clusters of a launch."""

    def __init__(self, launch: LaunchState, code: Code, codes: Callable[[bool], Code], alone: bool) -> None:
        super().__init__(launch, code, codes, alone)
        self.woken, self.done, self.begun = 0, 0, perf_counter()

    def run(self) -> None:
        """Run all clusters; raises what went wrong in the first of them that fails."""
        try:
            with self.mutex:
                self._wake()
            self._work(0)
        except BaseException as error:  # noqa: BLE001 - interrupted between two clusters
            self.fail(-1, error)
        with self.changed:
            self.running.pop(0, None)
            while self.running:  # also if interrupted: they use the launch's memory
                try:
                    self.changed.wait()
                except KeyboardInterrupt as error:  # noqa: PERF203
                    self.fail(-1, error)
            self.left.clear()  # a worker that begins only now has nothing to run, in memory that others have by then
        self.code.pace, self.code.notes[ClusterPool] = self.pace, self._share()
        fault, self.fault = self.fault, None  # an error holds this frame, and so must not be held by it
        try:
            if fault is not None:
                raise fault[1]
        finally:
            fault = None

    def _work(self, worker: int) -> None:
        clusters: Clusters | None = None
        while (taken := self._take(worker)) is not None:
            try:
                clusters = clusters or self._clusters(worker)
                clusters.run(*taken)
            except BaseException as error:  # noqa: BLE001, PERF203 - the caller of the launch gets it
                self.fail(self.running[worker] if isinstance(error, Exception) else -1, error)
            finally:
                self._end(worker, taken[1])
        if clusters is not None and not worker and self.fault is None:
            clusters.keep()

    def _clusters(self, worker: int) -> Clusters:
        if not worker:
            kept, self.launch.clusters = self.launch.clusters, None
            if isinstance(kept, Clusters) and kept.take_up(self, worker):
                return kept
        return Clusters(self, worker)

    def _take(self, worker: int) -> tuple[int, int] | None:
        """The first of the next clusters, and how many one worker runs before it comes again."""
        with self.mutex:
            if self.fault is not None or not self.left:
                return None
            count = int(BATCH_SECONDS / self.pace) if self.plain and self.pace else 1
            if not self.alone and len(self.left) * self.pace >= self._worth() and cores() > 1:
                count = min(count, len(self.left) // (2 * cores()))
            count = max(1, min(count, len(self.left)))
            number = self.running[worker] = self.left[0]
            if count == len(self.left):
                self.left.clear()
            for _ in range(count if self.left else 0):
                self.left.popleft()
            return number, count

    def _end(self, worker: int, count: int) -> None:
        with self.changed:
            self.running.pop(worker, None)
            self.done += count
            self.pace = self.compiled / self.done
            self.changed.notify_all()
            self._wake()

    def _wake(self) -> None:
        """Start another worker where enough is left for compiled code to do: Python's part is done by one at a time."""
        if self.alone or self.fault is not None or len(self.left) * self.pace < self._worth():
            return
        if self.woken + 1 >= cores() or self._share() <= FAST:
            return
        self.launch.locks = True
        try:
            host_threads.start(partial(copy_context().run, self._work, self.woken + 1))
            self.woken += 1
        except RuntimeError:  # Python ends, or there are too many threads
            self.alone = True

    def _share(self) -> float:
        """The share of the time that compiled code takes; at first, that it took in the last launch."""
        if self.done:
            return self.compiled / (perf_counter() - self.begun)
        return float(self.code.notes.get(ClusterPool, 0.0))

    def _worth(self) -> float:
        """Seconds of work for which to start another worker."""
        return 2 * worker_pool.WAKE_SECONDS * (self.woken + 1)
