"""The words of rule R2 for each way in which state changes; lines are counted from the program's `def`."""

from __future__ import annotations

import collections
import types
from typing import Any

import pytest
from tracing_helpers import refused, said

from ptxdsl import Ptr, loop, u32, when


def grows(n: u32, x: Ptr[u32]):
    seen: list[int] = []
    with when(n < 3):
        seen.append(1)
    x[0] = len(seen)


def shrinks(n: u32, x: Ptr[u32]):
    todo = [1, 2, 3]
    with loop(n) as i:
        x[i] = todo.pop()


def is_set(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace()
    with when(n < 3):
        cfg.seen = 1
    x[0] = int(hasattr(cfg, "seen"))


def is_deleted(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace(seen=1)
    with when(n < 3):
        del cfg.seen
    x[0] = getattr(cfg, "seen", 2)


def is_reordered(n: u32, x: Ptr[u32]):
    table = collections.OrderedDict(a=1, b=2)
    with when(n < 3):
        table.move_to_end("a")
    x[0] = next(iter(table.values()))


def advances(n: u32, x: Ptr[u32]):
    rest = iter([1, 2, 3])
    with loop(n) as i:
        x[i] = next(rest)


def changes(n: u32, x: Ptr[u32]):
    flags = bytearray(4)
    with when(n < 3):
        flags[1] = 1
    x[0] = flags[1]


def is_bound(n: u32, x: Ptr[u32]):
    with when(n < 3):
        scale = 2
    x[0] = scale


_ANYWAY = "the trace runs its body anyway, so the change would always hold"
_ONCE = "the trace runs its body once, so the update would be lost"
_INSIDE = "or make it inside; what changes while the kernel runs is a `reg`"
_SAID = {
    grows: (f"`seen` grows inside the when of line 2; {_ANYWAY}", "seen.append(1)",
            f"change `seen` before the when, {_INSIDE}"),
    shrinks: (f"`todo` shrinks inside the loop of line 2; {_ONCE}", "x[i] = todo.pop()",
              f"change `todo` before the loop, {_INSIDE}"),
    is_set: (f"`cfg.seen` is set inside the when of line 2; {_ANYWAY}", "cfg.seen = 1",
             f"change `cfg.seen` before the when, {_INSIDE}"),
    is_deleted: (f"`cfg.seen` is deleted inside the when of line 2; {_ANYWAY}", "del cfg.seen",
                 f"change `cfg.seen` before the when, {_INSIDE}"),
    is_reordered: (f"`table` is reordered inside the when of line 2; {_ANYWAY}", 'table.move_to_end("a")',
                   f"change `table` before the when, {_INSIDE}"),
    advances: (f"`rest` advances inside the loop of line 2; {_ONCE}", "x[i] = next(rest)",
               f"advance `rest` before the loop, {_INSIDE}"),
    changes: (f"`flags` changes inside the when of line 2; {_ANYWAY}", "flags[1] = 1",
              f"change `flags` before the when, {_INSIDE}"),
    is_bound: (f"`scale` is bound inside the when of line 1; {_ANYWAY}", "scale = 2",
               f"bind `scale` before the when, {_INSIDE}"),
}


@pytest.mark.parametrize("function", _SAID, ids=lambda function: function.__name__)
def test_words(function: Any) -> None:
    assert said(refused(function), function) == ("LostUpdateError", *_SAID[function])
