"""Addresses that are computed and not used: a lane that is masked off may have any, and that costs nothing."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.runtime import events
from ptxdsl.launch import LaunchConfig

LEFT = kernel("u64 a, u64 b, u32 n", """
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
    mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ntid.y; mov.u32 %r6, %tid.y; mad.lo.u32 %r7, %r4, %r5, %r6;
    ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; ld.param.u32 %r8, [n];
    mul.wide.u32 %rd2, %r7, %r8; shl.b64 %rd2, %rd2, 2; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;
    sub.u32 %r9, %r3, STEP; setp.ge.u32 %p0, %r3, STEP; mov.u32 %r10, 7;
    mad.wide.u32 %rd3, %r9, 4, %rd0; mad.wide.u32 %rd4, %r3, 4, %rd1;
    @%p0 ld.global.u32 %r10, [%rd3]; st.global.u32 [%rd4], %r10; ret;
""")


@pytest.mark.parametrize("step", [1, 5, 40])
@pytest.mark.parametrize("block", [(32, 8, 1), (64, 2, 1), (16, 4, 1), (24, 2, 1)])
def test_only_the_first_launch_leaves_the_fast_code(
    block: tuple[int, int, int], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    plain = events.after_wrap
    monkeypatch.setattr(events, "after_wrap", lambda *given: (left.append(1), plain(*given))[1])
    program = emulator.load(LEFT.replace("STEP", str(step)))
    width, height = 4 * block[0], 4 * block[1]
    rng = np.random.default_rng()
    for turn in range(3):
        a = rng.integers(0, 1 << 32, (height, width), np.uint32)
        b, before = np.zeros_like(a), len(left)
        config = LaunchConfig((4, 4), block)
        program.run("k", config, [argument("a", a), argument("b", b), argument("n", np.uint32(width))])
        wanted = np.full_like(a, 7)
        wanted[:, step:] = a[:, :-step]
        assert (b == wanted).all()
        assert len(left) == before or (turn == 0 and len(left) <= 4)
