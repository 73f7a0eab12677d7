"""Global memory that one block writes by the generic proxy, and another one's copies read: a fence is on one side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl.emulator.sanitizer.sanitizer import collect

_TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 flag, .param .u64 out)
{{
    .reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %rd<19>;
    .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd3, %r0, 16; add.u64 %rd4, %rd0, %rd3;
    add.u64 %rd5, %rd2, %rd3; mov.u32 %r5, tile; mad.lo.u32 %r5, %r0, 16, %r5;
    setp.eq.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
    @%p0 mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%p1 bra SECOND;
    {before}
    st.global.v4.u32 [%rd4], {{%r0, %r0, %r0, %r0}}; //#
    {written}
    bar.sync 0;
    {by_one}
    @%p0 st.release.gpu.global.u32 [%rd1], 1;
    {after}
    bra END;
SECOND:
    {early}
POLL: ld.acquire.gpu.global.u32 %r6, [%rd1];
    setp.eq.u32 %p2, %r6, 0;
    @%p2 bra POLL;
    {acquired}
    bar.sync 0;
    {late}
    @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [bar]; //@
FULL: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra FULL;
    ld.shared.v4.u32 {{%r7, %r8, %r9, %r10}}, [%r5];
    st.global.v4.u32 [%rd5], {{%r7, %r8, %r9, %r10}};
END: ret;
}}
"""
_PLACES = ("before", "written", "by_one", "after", "early", "acquired", "late")


def text(**steps: str) -> str:
    return _TEXT.format(**{place: steps.get(place, "") for place in _PLACES})


def findings(ptx: str, blocks: int = 2) -> list[Any]:
    x, flag, out = np.zeros((32, 4), np.uint32), np.zeros(1, np.uint32), np.zeros((32, 4), np.uint32)
    with collect() as found:
        ptxdsl.load(ptx)["k"].configure(blocks, 32, backend="emulator", sanitize=("race", "init"))(x, flag, out)
    np.testing.assert_array_equal(out, np.tile(np.arange(32), (4, 1)).T)
    return found


_FENCE = "fence.proxy.async.global;"


@pytest.mark.parametrize("steps", [
    {"written": _FENCE}, {"by_one": f"@%p0 {_FENCE}"}, {"acquired": _FENCE}, {"late": f"@%p0 {_FENCE}"},
    {"written": "fence.proxy.async;"}, {"early": _FENCE, "late": _FENCE},
], ids=str)
def test_a_fence_on_either_side(steps: dict[str, str]) -> None:
    assert [str(each) for each in findings(text(**steps))] == []


@pytest.mark.parametrize("steps", [
    {}, {"before": _FENCE}, {"early": _FENCE}, {"written": "fence.proxy.async.shared::cta;"},
    {"written": "fence.acq_rel.gpu;", "late": "fence.acq_rel.gpu;"},
], ids=str)
def test_none_that_orders_it(steps: dict[str, str]) -> None:
    ptx = text(**steps)
    found = findings(ptx)
    assert len(found) == 1
    first = found[0]
    lines = [next(n for n, line in enumerate(ptx.splitlines(), 1) if line.endswith(mark)) for mark in ("//@", "//#")]
    assert [first.access.ptx_line, first.earlier.ptx_line] == lines
    assert first.earlier.block == (0, 0, 0)
    assert first.access.block == (1, 0, 0)
    assert first.message == (
        "bulk copy from x[0, 0], which the store by thread (0, 0, 0) of block (0, 0, 0) has written through another "
        "proxy: no proxy fence is between"
    )
    assert "fence.proxy.async_.global_()" in first.hint
