"""More planted bugs, in PTX: each is found at its lines, and nothing is said of the kernel without it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.errors import EmulationError, RaceError, UninitializedError
from ptxdsl.launch import LaunchConfig

HEAD = """
.shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar; .local .align 16 .b8 own[32];
mov.u32 %r2, %tid.x; mov.u32 %r1, %ctaid.x; and.b32 %r3, %r2, 31; shr.u32 %r4, %r2, 5; mad.lo.u32 %r0, %r1, 64, %r2;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [flag];
mad.wide.u32 %rd3, %r0, 4, %rd0; mad.wide.u32 %rd4, %r0, 4, %rd1;
setp.eq.u32 %p0, %r2, 0; setp.eq.u32 %p2, %r3, 0; setp.eq.u32 %p3, %r1, 0; setp.eq.u32 %p4, %r4, 0;
mov.u32 %r10, s; mad.lo.u32 %r11, %r2, 4, %r10; xor.b32 %r12, %r2, 33; mad.lo.u32 %r12, %r12, 4, %r10;
"""
STORE = "ld.global.u32 %r20, [%rd3]; st.shared.u32 [%r11], %r20; // !\n"
LOAD = "ld.shared.u32 %r21, [%r12]; // !\nst.global.u32 [%rd4], %r21;"
MADE = "@%p0 mbarrier.init.shared.b64 [bar], {0}; bar.sync 0;\n"
ARRIVE = "mbarrier.arrive.shared.b64 %rd9, [bar];\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p9, [bar], 0; @!%p9 bra W;\n"
MESSAGE = """
@!%p0 bra E; @!%p3 bra C; st.global.u32 [%rd1], 42; // !
{0}
bra E; C: W: {1}
ld.global.u32 %r21, [%rd1]; // !
st.global.u32 [%rd1+64], %r21; E:
"""
SPIN = "{0} %r22, [%rd2]; setp.eq.u32 %p9, %r22, 0; @%p9 bra W; {1}"
BUFFERS = """
mov.u32 %r30, 0; mov.u32 %r35, 0;
L: and.b32 %r31, %r30, 1; mad.lo.u32 %r32, %r31, 512, %r11; mad.lo.u32 %r33, %r31, 512, %r12; add.u32 %r34, %r30, %r2;
st.shared.u32 [%r32], %r34; // !
{0}
ld.shared.u32 %r36, [%r33]; // !
add.u32 %r35, %r35, %r36; add.u32 %r30, %r30, 1; setp.lt.u32 %p9, %r30, 5; @%p9 bra L; st.global.u32 [%rd4], %r35;
"""
FILL = """
mov.u32 %r32, 0;
L: mov.u32 %r33, own; mad.lo.u32 %r33, %r32, 4, %r33; st.local.u32 [%r33], %r32; add.u32 %r32, %r32, 1;
setp.lt.u32 %p9, %r32, {0}; @%p9 bra L;
and.b32 %r31, %r2, 7; mov.u32 %r33, own; mad.lo.u32 %r33, %r31, 4, %r33;
ld.local.u32 %r21, [%r33]; // !
st.global.u32 [%rd4], %r21;
"""


class Pair(NamedTuple):
    """A kernel with a bug, and the same without it."""

    error: type[EmulationError]
    wrong: str
    right: str
    grid: int = 1


PAIRS = {
    "an mbarrier that is not waited for": Pair(
        RaceError, MADE.format(64) + STORE + ARRIVE + LOAD, MADE.format(64) + STORE + ARRIVE + WAIT + LOAD,
    ),
    "an arrival before the store": Pair(
        RaceError, MADE.format(64) + ARRIVE + STORE + WAIT + LOAD, MADE.format(64) + STORE + ARRIVE + WAIT + LOAD,
    ),
    "one lane waits for its warp": Pair(
        RaceError, MADE.format(64) + STORE + ARRIVE + "@!%p2 bra G;\n" + WAIT + "G:\n" + LOAD,
        MADE.format(64) + STORE + ARRIVE + "@!%p2 bra G;\n" + WAIT + "G: bar.warp.sync -1;\n" + LOAD,
    ),
    "one lane arrives for its warp": Pair(
        RaceError, MADE.format(2) + STORE + "@%p2 " + ARRIVE + WAIT + LOAD,
        MADE.format(2) + STORE + "bar.warp.sync -1; @%p2 " + ARRIVE + WAIT + LOAD,
    ),
    "a release for the block only": Pair(
        RaceError, MESSAGE.format("membar.cta; st.volatile.global.u32 [%rd2], 1;",
                                  SPIN.format("ld.volatile.global.u32", "membar.gl;")),
        MESSAGE.format("membar.gl; st.volatile.global.u32 [%rd2], 1;",
                       SPIN.format("ld.volatile.global.u32", "membar.gl;")), 2,
    ),
    "a fence on one side": Pair(
        RaceError, MESSAGE.format("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd2], 1;",
                                  SPIN.format("ld.relaxed.gpu.global.u32", "")),
        MESSAGE.format("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%rd2], 1;",
                       SPIN.format("ld.relaxed.gpu.global.u32", "fence.acq_rel.gpu;")), 2,
    ),
    "barriers of half a warp each": Pair(
        RaceError, STORE + "and.b32 %r22, %r3, 1; setp.eq.u32 %p9, %r22, 0; @%p9 bra A; bar.warp.sync 0xaaaaaaaa; "
        "bra B; A: bar.warp.sync 0x55555555; B: xor.b32 %r12, %r11, 4;\n" + LOAD,
        STORE + "bar.warp.sync -1; xor.b32 %r12, %r11, 4;\n" + LOAD,
    ),
    "two buffers, a barrier every other time": Pair(
        RaceError, BUFFERS.format("setp.eq.u32 %p8, %r31, 0; @!%p8 bra N; bar.sync 0; N:"),
        BUFFERS.format("bar.sync 0;"),
    ),
    "two buffers, the last barrier": Pair(
        RaceError, BUFFERS.format("setp.eq.u32 %p8, %r30, 4; @%p8 bra N; bar.sync 0; N:"),
        BUFFERS.format("bar.sync 0;"),
    ),
    "who arrives at a named barrier reads": Pair(
        RaceError, STORE + "@%p4 bra O; barrier.arrive 1, 64; bra R; O: barrier.sync 1, 64; bra E; R:\n" + LOAD + "E:",
        STORE + "@%p4 bra O; barrier.arrive 1, 64; bra E; O: barrier.sync 1, 64;\n" + LOAD + "E:",
    ),
    "a vector over what another warp reads": Pair(
        RaceError, """setp.eq.u32 %p9, %r2, 31; setp.eq.u32 %p8, %r2, 32;
        @%p9 st.global.v4.u32 [%rd1+112], {%r2,%r2,%r2,%r2}; // !
        @%p8 ld.global.u32 %r21, [%rd1+124]; // !
        """,
        """setp.eq.u32 %p9, %r2, 31; setp.eq.u32 %p8, %r2, 32; @%p9 st.global.v4.u32 [%rd1+112], {%r2,%r2,%r2,%r2};
        @%p8 ld.global.u32 %r21, [%rd1+128];""",
    ),
    "a local array that is one short": Pair(UninitializedError, FILL.format(7), FILL.format(8)),
    "an atomic on what nobody cleared": Pair(
        UninitializedError, "red.shared.add.u32 [s], 1; // !\n",
        "@%p0 st.shared.u32 [s], 0; bar.sync 0; red.shared.add.u32 [s], 1;",
    ),
    "a register of one path": Pair(
        UninitializedError, "@%p0 mov.u32 %r40, 5;\nadd.u32 %r41, %r40, 1; // !\nst.global.u32 [%rd4], %r41;",
        "@%p0 mov.u32 %r40, 5; @%p0 add.u32 %r41, %r40, 1; @%p0 st.global.u32 [%rd4], %r41;",
    ),
}


def run(text: str, grid: int, seed: int | None) -> None:
    config = LaunchConfig(grid, 64, sanitize=frozenset(("memory", "init", "race", "barrier")), seed=seed)
    given: dict[str, Any] = {"x": np.arange(256, dtype=np.uint32), "y": np.zeros(256, np.uint32)}
    given["flag"] = np.zeros(1, np.uint32)
    emulator.load(text).run("k", config, [argument(name, value) for name, value in given.items()])


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_found_and_repaired(name: str, seed: int | None) -> None:
    pair = PAIRS[name]
    wrong, right = (kernel("u64 x, u64 y, u64 flag", HEAD + body + "\nret;") for body in (pair.wrong, pair.right))
    run(right, pair.grid, seed)
    with pytest.raises(pair.error) as caught:
        run(wrong, pair.grid, seed)
    (found,) = caught.value.findings
    lines = {number for number, line in enumerate(wrong.split("\n"), 1) if line.rstrip().endswith("// !")}
    assert {side.ptx_line for side in (found.access, found.earlier) if side is not None} == lines
