"""The search for addresses is compiled by the first access that needs it, in the midst of compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from ptxdsl import MemoryFault, emulator
from ptxdsl.emulator.runtime import late_search
from ptxdsl.launch import LaunchConfig

TEXT = kernel("u64 x, u64 y", """
    .reg .b64 %a<6>; .reg .b32 %b<3>;
    ld.param.u64 %a1, [x]; ld.param.u64 %a2, [y];
    mov.u32 %b1, %tid.x; mul.wide.u32 %a3, %b1, 4;
    add.u64 %a4, %a1, %a3; add.u64 %a5, %a2, %a3;
    ld.global.u32 %b2, [%a4]; st.global.u32 [%a5], %b2;
""")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As in a process that has not needed the search yet: how often it was asked for."""
    kept, found = late_search._addresses[:], []
    late_search._addresses.clear()
    original = late_search._compiled
    monkeypatch.setattr(late_search, "_compiled", lambda: (found.append(1), original())[1])
    yield found
    late_search._addresses[:] = kept or late_search._addresses


def launch(n: int, blocks: int = 1) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x, y = np.arange(64, dtype=np.uint32), np.zeros(n, np.uint32)
    emulator.load(TEXT).run("k", LaunchConfig(blocks, 64), [argument("x", x), argument("y", y)])
    return x, y


def test_accesses_within_their_arrays_do_without(asked: list[int]) -> None:
    x, y = launch(64)
    assert (x == y).all()
    assert not asked


def test_a_fault_needs_it_once(asked: list[int]) -> None:
    for _ in range(3):
        with pytest.raises(MemoryFault, match=r"y\[40\]"):
            launch(40)
    assert len(asked) == 1


def test_an_interruption_comes_when_compiled_code_has_returned(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, raised = late_search._compiled, []

    def interrupted() -> int:
        if not raised:
            raised.append(1)
            raise KeyboardInterrupt
        return compiled()

    monkeypatch.setattr(late_search, "_compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(40)
    with pytest.raises(MemoryFault, match=r"y\[40\]"):
        launch(40)


def test_an_error_is_the_launchs(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        def broken() -> int:
            raise MemoryError("no room")

        patch.setattr(late_search, "_compiled", broken)
        with pytest.raises(MemoryError, match="no room"):
            launch(40, 3)
    with pytest.raises(MemoryFault, match=r"y\[40\]"):
        launch(40)
