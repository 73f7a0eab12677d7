"""One block after the other has the same host memory for its shared memory: what one did there orders no other one."""

from __future__ import annotations

import numpy as np
import ptxdsl
import pytest
from foreign_harness import HEADER
from ptxdsl import use
from ptxdsl.emulator.machine.shadow import UNWRITTEN
from ptxdsl.emulator.sanitizer.happens_before import BlockOrder, Places
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.emulator.sanitizer.shadow_store import store
from ptxdsl.emulator.sanitizer.sync_log import SyncLog

KERNEL = HEADER.replace("sm_80", "sm_90") + """.visible .entry k(.param .u64 x){cluster}
{{
  .reg .b64 %x, %g; .reg .b32 %b, %v, %s, %o; .reg .pred %p;
  .shared .align 4 .b8 tile[8];
  ld.param.u64 %x, [x]; mov.u32 %b, %ctaid.x; mov.u32 %s, tile; mov.u32 %v, 0;
  st.shared.u32 [%s], %v; st.shared.u32 [%s+4], %v; {meet}
  mov.u32 %o, %tid.x; mul.wide.u32 %g, %o, 4; add.u64 %g, %x, %g;
  ld.global.u32 %o, [%g+32]; setp.eq.u32 %p, %o, 0; @%p bra END;
  {body}
END: {meet}
  ret;
}}
"""
CLUSTER = "\n.reqnctapercluster 2"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
SHARED, GLOBAL = ("shared.", "%s"), ("global.", "%x+16")
AFAR = "mapa.shared::cluster.u32 %s, %s, 0;"
GENERIC = "cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g; mapa.u64 %g, %g, 0;"


def kinds(body: str, blocks: int, cluster: bool = False) -> list[str]:
    x = np.zeros(16, np.uint32)
    x[9] = 1  # that thread 1 alone goes on is in the data, where no proof finds it
    text = KERNEL.format(body=body, cluster=CLUSTER if cluster else "", meet=MEET if cluster else "bar.sync 0;")
    with use("emulator"), collect() as findings:
        ptxdsl.load(text)["k"].configure(blocks, 2, sanitize="all")(x)
    return sorted({finding.kind for finding in findings})


def counted(space: str, base: str) -> str:
    """What a later block has seen by the second word, and so counts on in the first one."""
    return f"""
  setp.eq.u32 %p, %b, 0; @%p atom.relaxed.gpu.{space}exch.b32 %v, [{base}], 7;
  atom.relaxed.gpu.{space}add.u32 %v, [{base}+4], 1; setp.eq.u32 %p, %v, 9; @%p trap;
  setp.ne.u32 %p, %b, 0; @%p ld.relaxed.gpu.{space}u32 %v, [{base}]; setp.eq.u32 %p, %v, 9; @%p trap;"""


def released(space: str, base: str) -> str:
    """A weak store between a release and an acquire at the same address."""
    atom = f"atom.relaxed.gpu.{space}add.u32 %v, [{base}], 1;"
    return f"{atom} fence.acq_rel.gpu; st.global.u32 [%x], %b; fence.acq_rel.gpu; {atom}"


@pytest.mark.parametrize("all_is_followed", [False, True])
def test_old_values_are_of_one_block(all_is_followed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if all_is_followed:
        monkeypatch.setattr(SyncLog, "suspicious", lambda self: True)
    assert not kinds(counted(*SHARED), 3)
    assert kinds(counted(*GLOBAL), 3) == ["order"]


def test_nothing_is_followed_for_blocks_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SyncLog, "take", lambda self: pytest.fail("compiled code has found no order"))
    assert not kinds(counted(*SHARED), 3)


def test_shared_memory_orders_no_blocks() -> None:
    assert kinds(released(*SHARED), 2) == ["race"]
    assert not kinds(released(*GLOBAL), 2)


@pytest.mark.parametrize("skip", ["", "mov.u32 %o, %cluster_ctarank; setp.eq.u32 %p, %o, 0; @%p bra END;"])
@pytest.mark.parametrize(("prepare", "space", "base"), [(AFAR, "shared::cluster.", "%s"), (GENERIC, "", "%g")])
def test_shared_memory_orders_no_clusters(prepare: str, space: str, base: str, skip: str) -> None:
    """Ordered are the blocks of one cluster: all of them store, or only the second one of each cluster."""
    body = f"{prepare} {skip} {released(space, base)}"
    assert kinds(body, 4, True) == ["race"]
    assert not kinds(body, 2, True)


def test_places_end_with_their_cluster() -> None:
    places: Places[int] = Places()
    one, other, next_ = BlockOrder(0, 0), BlockOrder(1, 0), BlockOrder(2, 1)
    places.of(one, 64)[70], places.of(one, 0)[4] = 1, 2
    assert places.of(other, 64) == {70: 1}
    assert places.of(next_, 64) == {} and places.of(next_, 0) == {4: 2}
    assert places.of(one, 64) == {}


@pytest.mark.parametrize("blocks", [2, 8])
def test_what_clusters_have_not_written_is_of_their_launch(blocks: int) -> None:
    """Their shadow words serve later launches, for any memory."""
    text = KERNEL.replace("tile[8]", "tile[4096]").format(body="", cluster=CLUSTER, meet=MEET)
    x, out = np.zeros(1024, np.uint32), np.empty(1024, np.uint32)
    x[9] = 1
    copy = ptxdsl.load(HEADER + """.visible .entry k(.param .u64 x, .param .u64 out)
    {
      .reg .b64 %x, %out, %s; .reg .b32 %t, %v; .reg .pred %p; .shared .align 4 .b8 tile[4096];
      ld.param.u64 %x, [x]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u64 %s, tile; cvta.shared.u64 %s, %s;
      mad.wide.u32 %x, %t, 4, %x; mad.wide.u32 %out, %t, 4, %out; mad.wide.u32 %s, %t, 4, %s;
      ld.u32 %v, [%x]; st.u32 [%s], %v; setp.eq.u32 %p, %v, 0; selp.b64 %x, %s, %x, %p;
      ld.u32 %v, [%x]; st.u32 [%out], %v; ret;
    }""")["k"]
    store().renumber()
    with use("emulator"):
        ptxdsl.load(text)["k"].configure(blocks, 2, sanitize="all")(x)
        assert store().free and not any((words == UNWRITTEN).any() for words, _ in store().free)
        copy.configure(1, 1024, sanitize="all")(x, out)
    np.testing.assert_array_equal(out, x)
