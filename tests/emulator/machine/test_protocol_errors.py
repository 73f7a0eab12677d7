"""Mistakes with mbarriers, asynchronous copies and registers of warps: each names what is wrong, and where."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from emulator_harness import THREAD, kernel

import ptxdsl

TX = "mbarrier::complete_tx::bytes"
START = """
.shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar, other; mov.u32 %r10, tile; mov.u32 %r11, bar;
ld.param.u64 %rd0, [x]; setp.eq.u32 %p0, %r2, 0; setp.lt.u32 %p5, %r2, 32; setp.lt.u32 %p4, %r2, 128;
@%p0 mbarrier.init.shared.b64 [bar], 1; mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p6, %r30, 1;
bar.sync 0;
"""
LOAD = f"@%p0 cp.async.bulk.shared::cluster.global.{TX} [%r10], [%rd0], 512, [%r11];\n"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};\n"
WAIT = "W{0}: mbarrier.try_wait.parity.shared.b64 %p31, [bar], {1};\n@!%p31 bra W{0};\n"
POLL = "mbarrier.try_wait.parity.shared.b64 %p31, [bar], {} at PTX line {}"
SOME = "deadlock: all warps wait, some at mbarriers that nobody completes\n"
COUNT = "nobody has arrived in this phase: count who arrives; a phase that is over has the other parity"
BYTES = "the bytes of `expect_tx` must be those that copies write in the phase"
SPIN = "mov.u32 %r31, 0; S: add.u32 %r31, %r31, 1; setp.lt.u32 %p7, %r31, 50000; @%p7 bra S;"
TIMES = "setmaxnreg.{}.sync.aligned.u32 {};"
SPLIT = "@%p4 bra P; setmaxnreg.inc.sync.aligned.u32 {1}; bra Q;\nP: setmaxnreg.dec.sync.aligned.u32 {0}; Q:"


class Mistake(NamedTuple):
    """A kernel with a mistake, and one without that is like it."""

    body: str
    right: str
    message: str
    hint: str
    kind: Any = ptxdsl.DeadlockError
    block: int = 64
    cluster: int | None = None


BUSY = (
    "`mbarrier.init.shared.b64` of bar[0]: it is in use: a warp waits there, or a copy that it counts is not complete"
)
FIRST = "  warps 0-1 wait for the phase of parity 0 of bar[0], which "
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
LATER = "all threads have found its last phase complete, and waited at a barrier, before it is made again"
MISTAKES = {
    "more bytes are expected than come": Mistake(
        EXPECT.format(1024) + LOAD + WAIT.format(0, 0), EXPECT.format(512) + LOAD + WAIT.format(0, 0),
        SOME + FIRST + "lacks 512 bytes: " + POLL.format(0, 24),
        BYTES,
    ),
    "more bytes come than are expected": Mistake(
        EXPECT.format(256) + LOAD + WAIT.format(0, 0),
        EXPECT.format(256) + LOAD.replace("512", "256") + WAIT.format(0, 0),
        SOME + FIRST + "has 256 bytes more than it expects: "
        + POLL.format(0, 24), BYTES,
    ),
    "the wrong parity": Mistake(
        EXPECT.format(512) + LOAD + WAIT.format(0, 0) + WAIT.format(1, 1),
        EXPECT.format(512) + LOAD + WAIT.format(0, 0) + WAIT.format(1, 0),
        SOME + FIRST.replace("0 of", "1 of") + "lacks 1 of 1 arrivals: " + POLL.format(1, 26),
        COUNT,
    ),
    "others wait at a barrier": Mistake(
        "@%p5 bra ONE;\n" + WAIT.format(0, 0) + "ONE: bar.sync 0;",
        "@%p0 mbarrier.arrive.shared.b64 _, [bar]; @%p5 bra ONE;\n" + WAIT.format(0, 0) + "ONE: bar.sync 0;",
        SOME + "  warp 0 waits at barrier 0 (1 of 2 warps have arrived): bar.sync 0 at PTX line 25\n"
        "  warp 1 waits for the phase of parity 0 of bar[0], which lacks 1 of 1 arrivals: " + POLL.format(0, 23),
        COUNT,
    ),
    "it is made again while a warp waits": Mistake(
        "@%p5 bra ONE;" + WAIT.format(0, 0) + "bra TWO; ONE: @%p0 mbarrier.init.shared.b64 [bar], 1;\n"
        "@%p0 mbarrier.arrive.shared.b64 _, [bar]; TWO:",
        "@%p5 bra ONE;" + WAIT.format(0, 0) + "bra TWO; ONE: @%p0 mbarrier.arrive.shared.b64 _, [bar];\n"
        "TWO: bar.sync 0; @%p0 mbarrier.init.shared.b64 [bar], 1;", BUSY, LATER, ptxdsl.BarrierError,
    ),
    "it is made again while a copy is under way": Mistake(
        EXPECT.format(512) + LOAD + "@%p0 mbarrier.init.shared.b64 [bar], 1;",
        EXPECT.format(512) + LOAD + WAIT.format(0, 0) + "bar.sync 0; @%p0 mbarrier.init.shared.b64 [bar], 1;",
        BUSY, LATER, ptxdsl.BarrierError,
    ),
    "it is made invalid while a copy is under way": Mistake(
        EXPECT.format(512) + LOAD + "@%p0 mbarrier.inval.shared.b64 [bar];",
        EXPECT.format(512) + LOAD + WAIT.format(0, 0) + "bar.sync 0; @%p0 mbarrier.inval.shared.b64 [bar];",
        BUSY.replace("init", "inval"), LATER, ptxdsl.BarrierError,
    ),
    "the wrong mbarrier": Mistake(
        "mbarrier.arrive.shared.b64 _, [other];", "@%p0 mbarrier.arrive.shared.b64 _, [bar];",
        "`mbarrier.arrive.shared.b64` of other[0]: what lies there is no mbarrier",
        "one thread makes it with `mbarrier.init`; the others wait at a barrier", ptxdsl.BarrierError,
    ),
    "too many arrive": Mistake(
        "mbarrier.arrive.shared.b64 _, [bar], 2;", "@%p0 mbarrier.arrive.shared.b64 _, [bar];",
        "`mbarrier.arrive.shared.b64` of bar[0]: more arrivals than the phase waits for",
        "the count of `mbarrier.init` is the number of arrivals in each phase", ptxdsl.BarrierError,
    ),
    "registers do not add up": Mistake(
        SPLIT.format(40, 240), SPLIT.format(40, 232),
        "deadlock: all warps wait, some for registers\n"
        "  warp 11 waits for 72 registers a thread more than its 168; all warps together have given back 8: "
        "setmaxnreg.inc.sync.aligned.u32 240 at PTX line 22",
        "all warps together have the registers of the launch: `.dec` in some what `.inc` takes in others", block=384,
    ),
    "registers are given back twice": Mistake(
        TIMES.format("dec", 40) + TIMES.format("dec", 48), TIMES.format("dec", 48) + TIMES.format("dec", 40),
        "`setmaxnreg.dec.sync.aligned.u32` of 48 registers, more than the 40 that warp 3 has",
        "`.dec` gives registers back, `.inc` takes them", ptxdsl.EmulationError, block=128,
    ),
    "a copy to a block that has ended": Mistake(
        f"@%p6 exit; {SPIN} mov.b16 %h9, 3;" + LOAD.replace(TX, TX + ".multicast::cluster").replace("];", "], %h9;"),
        MEET + "@%p6 bra E; mov.b16 %h9, 3;" + EXPECT.format(512)
        + LOAD.replace(TX, TX + ".multicast::cluster").replace("[%r11];", "[%r11], %h9;") + WAIT.format(0, 0)
        + "bra F; E: " + EXPECT.format(512) + WAIT.format(1, 0) + "F: " + MEET,
        "bulk copy of 512 bytes to tile[0] of block 1 of the cluster, which has ended",
        "synchronise the blocks before they end: `ptxdsl.cluster.sync()`",
        ptxdsl.MemoryFault, cluster=2,
    ),
    "another block waits for the cluster": Mistake(
        "@%p6 bra E;" + WAIT.format(0, 0) + "E: " + MEET,
        "@%p6 bra E; @%p0 mbarrier.arrive.shared.b64 _, [bar];" + WAIT.format(0, 0)
        + "E: " + MEET,
        SOME + FIRST.replace("  warps", "  block (0, 0, 0) of rank 0, warps") + "lacks 1 of 1 arrivals: "
        + POLL.format(0, 22)
        + "\n  block (1, 0, 0) of rank 1, warps 0-1 wait at the barrier of the cluster (64 of 128 threads have "
        "arrived): barrier.cluster.wait at PTX line 24", COUNT, cluster=2,
    ),
}


def _run(body: str, mistake: Mistake, seed: int | None) -> None:
    text = kernel("u64 x", THREAD + START + body + "\nret;").replace("sm_90", "sm_90a")
    launch = ptxdsl.load(text)["k"].configure(
        mistake.cluster or 1, mistake.block, backend="emulator", seed=seed, cluster=mistake.cluster
    )
    launch(np.zeros(4096, np.uint8))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(mistake.kind) as raised:
        _run(mistake.body, mistake, None)
    assert raised.value.message == mistake.message
    assert raised.value.hint == mistake.hint
    assert raised.value.ptx_line is not None
    for seed in (None, 1, 2, 3):
        _run(mistake.right, mistake, seed)


def test_registers_that_the_kernel_says() -> None:
    """With `.maxnreg` it is known what a warp begins with."""
    body = "setmaxnreg.{}.sync.aligned.u32 64;"
    for action, right in (("inc", False), ("dec", True)):
        text = kernel("", body.format(action) + "ret;").replace(".entry k()", ".entry k() .maxnreg 128")
        launch = ptxdsl.load(text.replace("sm_90", "sm_90a"))["k"].configure(1, 128, backend="emulator")
        if right:
            launch()
        else:
            with pytest.raises(ptxdsl.EmulationError, match="of 64 registers, fewer than the 128 that warp 0 has"):
                launch()
