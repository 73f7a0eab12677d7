"""What a process has once."""

from __future__ import annotations

import threading
import time

from ptxdsl.machine_code.once import once


def test_threads_that_ask_at_the_same_time_get_one() -> None:
    gate = threading.Barrier(4)

    @once
    def made() -> object:
        calls.append(1)
        time.sleep(0.05)
        return object()

    def ask() -> None:
        gate.wait()
        found.append(made())

    calls: list[int] = []
    found: list[object] = []
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(map(id, found))) == len(calls) == 1
