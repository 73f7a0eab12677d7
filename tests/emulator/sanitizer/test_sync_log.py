"""Strong accesses and fences are noted by compiled code: what is found is the same, and Python follows what it must."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import ptxdsl
import pytest
from foreign_harness import HEADER
from ptxdsl import use
from ptxdsl.config import override
from ptxdsl.emulator.machine.shadow import SyncRecord
from ptxdsl.emulator.runtime.block_state import BlockState
from ptxdsl.emulator.sanitizer import sync_log
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.emulator.sanitizer.synchronisation import Synchronisation

KERNEL = """.visible .entry k(.param .u64 x, .param .u64 y)
{{
  .reg .b64 %x, %y, %mine, %other, %f; .reg .b32 %t, %n, %v, %s, %o; .reg .pred %p;
  .shared .align 4 .b8 tile[512];
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %mine, %t, 4; add.u64 %other, %x, %mine; ld.global.u32 %v, [%other];
  shl.b32 %s, %t, 2; mov.u32 %o, tile; add.u32 %s, %s, %o; sub.u32 %o, 127, %t; shl.b32 %o, %o, 2;
  mov.u32 %n, tile; add.u32 %o, %o, %n; add.u64 %mine, %y, %mine; mov.u32 %n, 0;
LOOP:
  {body}
  add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 50; @%p bra LOOP;
  {end}
  ret;
}}
"""
EXCHANGE = """st.volatile.shared.u32 [%s], %v;
  {} ld.volatile.shared.u32 %t, [%o];
  add.u32 %v, %v, %t; bar.sync 0;"""
COUNT = "membar.gl; red.global.add.u32 [%y+1024], 1;"


def followed(body: str, monkeypatch: pytest.MonkeyPatch, tools: Any = "all") -> tuple[list[str], int, Any]:
    """The kinds of findings, how many events Python has followed, and the result."""
    replay, events = Synchronisation._replay, 0

    def counted(self: Synchronisation, record: Any) -> None:
        nonlocal events
        events += 1
        replay(self, record)

    monkeypatch.setattr(Synchronisation, "_replay", counted)
    grid = 2 if "red" in body else 1
    x, y = np.arange(128, dtype=np.uint32), np.zeros(512, np.uint32)
    module = ptxdsl.load(HEADER + KERNEL.format(body=body, end="" if grid > 1 else "st.global.u32 [%mine], %v;"))
    with use("emulator"), collect() as findings:
        module["k"].configure(grid, 128, sanitize=tools)(x, y)
    return sorted({finding.kind for finding in findings}), events, y


def test_what_barriers_order_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds, events, y = followed(EXCHANGE.format("bar.sync 0;"), monkeypatch)
    want = np.arange(128, dtype=np.uint32)
    for _ in range(50):
        want = want + want[::-1]
    assert not kinds and not events
    assert (y[:128] == want).all()


def test_what_nobody_asks_for_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, events, y = followed(COUNT, monkeypatch)
    assert not events and y[256] == 2 * 128 * 50


@pytest.mark.parametrize("most", [3, 16384])
def test_old_values_are_found_whatever_the_log_holds(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_log, "_BYTES", most * SyncRecord.nbytes)
    kinds, events, _ = followed(EXCHANGE.format(""), monkeypatch)
    assert "order" in kinds and "race" not in kinds and events


@pytest.mark.parametrize("most", [3, 16384])
def test_no_false_alarm_whatever_the_log_holds(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_log, "_BYTES", most * SyncRecord.nbytes)
    kinds, _, _ = followed(EXCHANGE.format("bar.sync 0;"), monkeypatch)
    assert not kinds


def test_a_log_that_is_full_raises_no_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph has no room, so Python alone knows what a flag orders; at last what it has not followed is lost."""
    monkeypatch.setattr(sync_log, "_CELLS", 1)
    kernel = HAND_OVER.format(fence="membar.gl;", acquire="membar.gl;").replace("POLL:", """
      mov.u32 %o, 0;
MORE: membar.gl; st.volatile.global.u32 [%f+64], %o; add.u32 %o, %o, 1; setp.lt.u32 %q, %o, 40; @%q bra MORE;
POLL:""")
    module = ptxdsl.load(HEADER + kernel)
    for few, lost in ((1 << 30, False), (0, True)):
        monkeypatch.setattr(sync_log, "_BYTES", 4 * SyncRecord.nbytes)
        monkeypatch.setattr(sync_log, "_FEW", few)
        x, flag, y = np.zeros(64, np.uint32), np.zeros(32, np.uint32), np.zeros(64, np.uint32)
        with use("emulator"), collect() as findings, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            module["k"].configure(2, 64, sanitize=("race",))(x, flag, y)
        assert not findings and y.tolist() == list(range(64))[::-1]
        assert ["incomplete" in str(each.message) for each in told] == [True] * lost


HAND_OVER = """.visible .entry k(.param .u64 x, .param .u64 flag, .param .u64 y)
{{
  .reg .b64 %x, %f, %y, %at; .reg .b32 %t, %b, %n, %v, %o; .reg .pred %p, %q, %r;
  ld.param.u64 %x, [x]; ld.param.u64 %f, [flag]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; setp.ne.u32 %p, %t, 0; setp.lt.u32 %r, %t, 16; mov.u32 %n, 0;
  setp.eq.u32 %q, %b, 0; @%q bra READER;
LONG: add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 300000; @%q bra LONG;
  mul.wide.u32 %at, %t, 4; add.u64 %at, %x, %at; st.global.u32 [%at], %t;
  {fence}
  bar.sync 0;
  @!%p st.volatile.global.u32 [%f], 1;
  ret;
READER: @%p bra SEEN;
POLL: ld.volatile.global.u32 %v, [%f]; add.u32 %n, %n, 1; setp.eq.u32 %q, %v, 0; @%q bra POLL;
  {acquire}
SEEN: bar.sync 0;
  sub.u32 %o, 63, %t; mul.wide.u32 %at, %o, 4; add.u64 %at, %x, %at; ld.global.u32 %v, [%at];
  mul.wide.u32 %at, %t, 4; add.u64 %at, %y, %at; st.global.u32 [%at], %v;
  ret;
}}
"""


@pytest.mark.parametrize(("fence", "acquire", "kinds"), [
    ("membar.gl;", "membar.gl;", []), ("membar.gl; membar.gl;", "", []), ("@!%r membar.gl; @%r membar.gl;", "", []),
    ("", "membar.gl;", ["race"]), ("@%r membar.gl;", "membar.gl;", ["race"]), ("membar.cta;", "membar.gl;", ["race"]),
    ("membar.gl;", "membar.cta;", ["race"]),
])
def test_polls_and_fences_of_warps(
    fence: str, acquire: str, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, events = Synchronisation._replay, []
    monkeypatch.setattr(Synchronisation, "_replay", lambda self, record: (events.append(1), replay(self, record)))
    x, flag, y = np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    module = ptxdsl.load(HEADER + HAND_OVER.format(fence=fence, acquire=acquire))
    with use("emulator"), collect() as findings:
        module["k"].configure(2, 64, sanitize=("race",))(x, flag, y)
    assert sorted({finding.kind for finding in findings}) == kinds
    assert y.tolist() == list(range(64))[::-1]
    assert 2 <= len(events) <= 12 if kinds or "@" in fence else not events


TURNS = """.visible .entry k(.param .u64 x, .param .u64 y)
{{
  .reg .b64 %x, %y, %at; .reg .b32 %t, %w, %o, %n, %v, %i, %box; .reg .pred %p, %q;
  .shared .align 4 .b8 flag[4]; .shared .align 4 .b8 box[4];
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %i, flag; mov.u32 %box, box;
  setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%i], 0; @%p st.shared.u32 [%box], 0; bar.sync 0;
  shr.u32 %w, %t, 5; and.b32 %o, %t, 31; setp.ne.u32 %p, %o, 0; @%p bra END; mov.u32 %n, %w;
POLL: ld.{acquire}.cta.shared.u32 %o, [%i]; setp.ne.u32 %q, %o, %n; @%q bra POLL;
  ld.shared.u32 %v, [%box]; add.u32 %v, %v, %n; st.shared.u32 [%box], %v;
  add.u32 %o, %n, 1; st.release.cta.shared.u32 [%i], %o;
  add.u32 %n, %n, 2; setp.lt.u32 %q, %n, 60; @%q bra POLL;
  setp.ne.u32 %q, %w, 1; @%q bra END;
  mov.u32 %o, %ctaid.x; mul.wide.u32 %at, %o, 4; add.u64 %at, %y, %at; st.global.u32 [%at], %v;
END: ret;
}}
"""


@pytest.mark.parametrize(("acquire", "kinds"), [("acquire", []), ("relaxed", ["race"])])
def test_warps_that_wait_for_each_other_keep_their_time_slice(
    acquire: str, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, states = BlockState.__init__, []
    monkeypatch.setattr(BlockState, "__init__", lambda self, *rest: (states.append(1), begin(self, *rest))[1])
    x, y = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    module = ptxdsl.load(HEADER + TURNS.format(acquire=acquire))
    with use("emulator"), override(emulator_threads=1), collect() as findings:
        module["k"].configure(8, 64)(x, y)
        plain = len(states)
        module["k"].configure(8, 64, sanitize="all")(x, y)
    assert sorted({finding.kind for finding in findings}) == kinds
    assert y.tolist() == [sum(range(60))] * 8
    assert len(states) - plain <= plain
