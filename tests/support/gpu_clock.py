"""The time of the stand-in's GPU, as its work moves it: a kernel takes as long as a test says."""

from __future__ import annotations

import pytest
import stream_standin
from driver_standin import Standin

__all__ = ["GpuClock"]

_L2 = 50 << 20


class GpuClock:
    """``now`` in seconds, and the ``work`` that was done, by name."""

    def __init__(self, cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.cu = cu
        self.work: list[str] = []
        monkeypatch.setattr(stream_standin, "perf_counter", lambda: self.now)
        cu.layout = "IfQQ"
        cu.kernel = lambda _: self.step("kernel", 3e-6)
        cu.cuMemsetD8Async = self.memset  # type: ignore[method-assign]

    def step(self, name: str, seconds: float) -> None:
        self.work.append(name)
        self.now += seconds

    def memset(self, to: int, value: int, nbytes: int, stream: int) -> None:
        """As the stand-in's, which takes its time over as much memory as makes the caches cold."""
        if nbytes < 2 * _L2:
            type(self.cu).cuMemsetD8Async(self.cu, to, value, nbytes, stream)
            return
        self.cu.check(to, nbytes)
        self.cu.submit(stream, lambda: self.step("memset", 1.0))
