"""mbarriers on the emulator: random histories of one against a model in Python, hand-overs between warps, misuse."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from emulator_harness import kernel, launch
from synchronisation_kernels import SLOT

from ptxdsl.errors import BarrierError, DeadlockError, EmulationError


@dataclass
class Model:
    """An mbarrier as the manual describes it."""

    expected: int
    pending: int = field(init=False)
    bytes: int = 0
    phase: int = 0

    def __post_init__(self) -> None:
        self.pending = self.expected

    def change(self, arrivals: int = 0, coming: int = 0, drop: bool = False) -> tuple[int, int]:
        """The phase and the pending arrivals before."""
        before = self.phase, self.pending
        self.bytes += coming
        self.pending -= arrivals
        if drop:
            self.expected -= arrivals
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.expected
        return before


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_a_random_history(seed: int, space: str) -> None:
    rng = np.random.default_rng(seed)
    model = Model(int(rng.integers(1, 40)))
    lines = [
        ".shared .align 8 .b64 pad; .shared .align 8 .b64 bar;", "mov.u64 %rd1, bar;",
        "cvta.shared.u64 %rd1, %rd1;" if not space else "", f"mbarrier.init{space}.b64 [%rd1], {model.expected};",
        "ld.param.u64 %rd0, [out];",
    ]
    wanted: list[int] = []

    def keep(register: str, value: int) -> None:
        lines.append(f"st.global.u32 [%rd0+{4 * len(wanted)}], {register};")
        wanted.append(value)

    for _ in range(60):
        kind = rng.choice(["arrive", "arrive", "count", "expect", "arrive_expect", "drop", "complete", "stay"])
        if model.pending == 0:
            kind = "settle"
        if kind == "arrive":
            phase, pending = model.change(1)
            lines.append(f"mbarrier.arrive{space}.b64 %rd2, [%rd1];")
        elif kind == "count":
            count = int(rng.integers(1, model.pending + 1))
            phase, pending = model.change(count)
            lines.append(f"mov.u32 %r9, {count}; mbarrier.arrive.release.cta{space}.b64 %rd2, [%rd1], %r9;")
        elif kind == "arrive_expect":
            amount = int(rng.integers(0, 100))
            phase, pending = model.change(1, amount)
            lines.append(f"mbarrier.arrive.expect_tx{space}.b64 %rd2, [%rd1], {amount};")
        elif kind == "drop" and model.expected > 2 and model.pending > 1:
            phase, pending = model.change(1, drop=True)
            lines.append(f"mbarrier.arrive_drop{space}.b64 %rd2, [%rd1];")
        elif kind == "stay" and model.pending > 1:
            phase, pending = model.change(1)
            lines.append(f"mbarrier.arrive.noComplete{space}.b64 %rd2, [%rd1], 1;")
        else:
            if kind == "expect":
                amount = int(rng.integers(0, 100))
                lines.append(f"mbarrier.expect_tx.relaxed.cta{space}.b64 [%rd1], {amount};")
                model.change(coming=amount)
            elif kind == "settle":
                operation = "complete_tx" if model.bytes > 0 else "expect_tx"
                lines.append(f"mbarrier.{operation}{space}.b64 [%rd1], {abs(model.bytes)};")
                model.change(coming=-model.bytes)
            elif kind == "complete":
                amount = int(rng.integers(0, model.bytes + 50)) if rng.random() < 0.5 else max(0, model.bytes)
                lines.append(f"mbarrier.complete_tx{space}.b64 [%rd1], {amount};")
                model.change(coming=-amount)
            phase = pending = -1
        if pending >= 0:
            lines.append("mbarrier.pending_count.b64 %r1, %rd2;")
            keep("%r1", pending)
            lines.append(f"mbarrier.test_wait{space}.b64 %p1, [%rd1], %rd2; selp.u32 %r1, 1, 0, %p1;")
            keep("%r1", int(model.phase != phase))
        for parity in (0, 1):
            lines.append(
                f"mbarrier.try_wait.parity.acquire.cta{space}.b64 %p1, [%rd1], {parity}, 100; selp.u32 %r1, 1, 0, %p1;"
            )
            keep("%r1", int(model.phase % 2 != parity))
    out = np.full(len(wanted), 0xDEAD, np.uint32)
    launch(kernel("u64 out", "\n".join(lines) + "ret;"), 1, 1, out=out)
    assert out.tolist() == wanted




@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize(("arrive", "arrivals"), [
    ("mbarrier.arrive.shared.b64", 32), ("@%p5 mbarrier.arrive.shared.b64", 1),
    ("@%p5 mbarrier.arrive.release.cluster.shared::cluster.b64", 1),
])
def test_two_warps_hand_over_through_one_slot(wait: str, conservative: bool, arrive: str, arrivals: int) -> None:
    out = np.zeros((100, 32), np.uint32)
    body = SLOT.format(wait=wait, arrive=arrive, arrivals=arrivals)
    launch(kernel("u64 out", body), 3, 64, conservative=conservative, out=out)
    np.testing.assert_array_equal(out, np.arange(100, dtype=np.uint32)[:, None] ** 2 + np.arange(32, dtype=np.uint32))


def test_lanes_that_part_arrive_and_wait_at_their_own() -> None:
    """Odd lanes wait for what even lanes of the same warp do later in the program."""
    out = np.zeros(32, np.uint32)
    launch(kernel("u64 out", """
        .shared .align 8 .b64 bar[2]; .shared .b32 value;
        mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 1; setp.ne.u32 %p0, %r3, 0;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 4, %rd0;
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [bar+8], 16;
        READY: bar.warp.sync 0xffffffff;
        @!%p0 bra EVEN;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar+8], 0;
        @!%p2 bra WAIT;
        ld.shared.u32 %r4, [value];
        st.global.u32 [%rd0], %r4;
        bra END;
        EVEN: st.shared.u32 [value], 77;
        mbarrier.arrive.shared.b64 %rd1, [bar+8];
        END: ret;
    """), 1, 32, out=out)
    assert out.tolist() == [0, 77] * 16


def test_results_that_tell_of_errors_tell_of_none() -> None:
    out = np.full(3, 9, np.uint32)
    launch(kernel("u64 out", """
        .reg .b8 %report; .shared .align 8 .b64 bar;
        mbarrier.init.shared.layout::v0.b64 [bar], 1;
        mbarrier.arrive.shared.b64 %rd2, [bar];
        mbarrier.test_wait.phase_type::primary.shared.b64 %p1|%p2, %report, [bar], %rd2;
        ld.param.u64 %rd0, [out];
        selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 1, 0, %p2; cvt.u32.u8 %r3, %report;
        st.global.u32 [%rd0], %r1; st.global.u32 [%rd0+4], %r2; st.global.u32 [%rd0+8], %r3;
        ret;
    """).replace(".version 8.6", ".version 9.3"), 1, 1, out=out)
    assert out.tolist() == [1, 1, 0]


MISUSE = {
    "mbarrier.arrive.shared.b64 %rd1, [bar];":
        "`mbarrier.arrive.shared.b64` of bar[0]: what lies there is no mbarrier",
    "mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; "
    "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;":
        "`mbarrier.test_wait.parity.shared.b64` of bar[0]: what lies there is no mbarrier",
    "mov.u32 %r1, 0; mbarrier.init.shared.b64 [bar], %r1;":
        "`mbarrier.init.shared.b64` of bar[0]: the number of arrivals is not 1 to 1048575",
    "mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %rd1, [bar], 3;":
        "`mbarrier.arrive.shared.b64` of bar[0]: more arrivals than the phase waits for",
    "mbarrier.init.shared.b64 [bar], 2; mov.u32 %r1, 1048576; mbarrier.expect_tx.shared.b64 [bar], %r1;":
        "`mbarrier.expect_tx.shared.b64` of bar[0]: the bytes that it waits for go beyond 1048575",
    "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;":
        "`mbarrier.arrive.noComplete.shared.b64` of bar[0]: `.noComplete` completes the phase",
}


@pytest.mark.parametrize("body", MISUSE)
def test_misuse_is_named(body: str) -> None:
    with pytest.raises(EmulationError) as caught:
        launch(kernel("", f".shared .align 8 .b64 bar;\n{body}\nret;"), 1, 1)
    assert caught.value.message == MISUSE[body]
    assert isinstance(caught.value, BarrierError)
    assert caught.value.thread == (0, 0, 0)


def test_a_misaligned_mbarrier() -> None:
    with pytest.raises(EmulationError, match=r"bar\[0\] plus 4 bytes\): 8 bytes must be aligned to 8 bytes\n"):
        launch(kernel("", ".shared .align 8 .b64 bar;\nmbarrier.init.shared.b64 [bar+4], 1;\nret;"), 1, 1)


def test_waiting_for_an_arrival_that_never_comes() -> None:
    body = """
        .shared .align 8 .b64 bar; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0;
        @!%p0 mbarrier.init.shared.b64 [bar], 2;
        bar.sync 0;
        @!%p0 mbarrier.arrive.shared.b64 %rd1, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra WAIT;
        ret;
    """
    with pytest.raises(DeadlockError) as caught:
        launch(kernel("", body), 1, 64)
    assert caught.value.message == (
        "deadlock: all warps wait, some at mbarriers that nobody completes\n"
        "  warps 0-1 wait for the phase of parity 0 of bar[0], which lacks 1 of 2 arrivals: "
        "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0 at PTX line 17"
    )
    assert caught.value.hint == "count who arrives in a phase, how often, and which bytes come"


def test_advice_where_some_have_arrived_and_others_wait_for_them() -> None:
    body = """
        .shared .align 8 .b64 full; .shared .align 8 .b64 empty; mov.u32 %r2, %tid.x; setp.lt.u32 %p0, %r2, 32;
        setp.eq.u32 %p2, %r2, 0; @%p2 mbarrier.init.shared.b64 [full], 1; @%p2 mbarrier.init.shared.b64 [empty], 2;
        bar.sync 0; @%p0 bra FILL;
        setp.eq.u32 %p3, %r2, 32; @%p3 mbarrier.arrive.shared.b64 %rd1, [empty];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [full], 0; @!%p1 bra WAIT; ret;
        FILL: mbarrier.try_wait.parity.shared.b64 %p1, [empty], 0; @!%p1 bra FILL;
        @%p2 mbarrier.arrive.shared.b64 %rd1, [full]; ret;
    """
    with pytest.raises(DeadlockError, match="lacks 1 of 2 arrivals") as caught:
        launch(kernel("", body), 1, 64)
    assert caught.value.hint == "count who arrives in a phase, how often, and which bytes come"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("lanes", [0xFFFFFFFF, 0x00F30421])
def test_arrivals_of_a_warp_have_the_tokens_of_one_after_the_other(count: int, lanes: int) -> None:
    text = kernel("u64 out", f"""
        .shared .align 8 .b64 bar; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0;
        @!%p0 mbarrier.init.shared.b64 [bar], 100; bar.sync 0;
        shr.b32 %r1, {lanes}, %r0; and.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 1; mov.u64 %rd2, 0; mov.u32 %r2, 7;
        @%p1 mbarrier.arrive.shared.b64 %rd2, [bar], {count};
        @%p1 mbarrier.pending_count.b64 %r2, %rd2;
        ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r2; ret;
    """)
    out = np.zeros(32, np.uint32)
    launch(text, 1, 32, out=out)
    taken = [lane for lane in range(32) if lanes >> lane & 1]
    expected = [100 - count * taken.index(lane) if lane in taken else 7 for lane in range(32)]
    assert out.tolist() == expected
