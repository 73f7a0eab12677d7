"""The sanitizer and bulk copies: what they read and write, and whether a thread has waited for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bulk_copy_kernels import (
    BARRIER, BYTES, COPY_IN, COPY_OUT, EXPECT, FETCH, STORED, STORES, SUMS, TX, WAIT, module, random_bytes, run,
)

import ptxdsl
from ptxdsl.errors import EmulationError, MemoryFault, RaceError, UninitializedError
from ptxdsl.emulator.sanitizer.overruns import Overruns
from ptxdsl.emulator.sanitizer.sanitizer import collect

BOTH = frozenset(("race", "init"))
IN_ORDER = "bar.sync 0;\n"
SYNC = "fence.proxy.async.shared::cta; bar.sync 0;\n"
FETCH_ALL = f"{EXPECT}@%p0 {FETCH} [%r10], [%rd0], %r12, [%r11];\n"


@pytest.mark.parametrize("tools", [("init",), ("race",), ("race", "init")])
@pytest.mark.parametrize("cluster", [None, 1])
def test_a_clean_copy_in_and_out(tools: tuple[str, ...], cluster: int | None) -> None:
    """Everybody waits at the mbarrier, changes its own bytes, and one thread sends them back; twice."""
    x, out = random_bytes(1024), np.zeros(1024, np.uint8)
    change = """
        mul.lo.u32 %r20, %r2, 32; add.u32 %r20, %r20, %r10; ld.shared.u32 %r21, [%r20]; add.u32 %r21, %r21, 1;
        st.shared.u32 [%r20], %r21; fence.proxy.async.shared::cta; bar.sync 0;
    """
    again = WAIT.replace("WAIT", "AGAIN").replace("[bar], 0", "[bar], 1")
    send = f"{change}@%p0 {STORES}\n{STORED}"
    body = f"{FETCH_ALL}{WAIT}{send}{IN_ORDER}{FETCH_ALL}{again}{send}"
    run(module(body), 1, 32, cluster, x=x, out=out, n=np.uint32(1024), sanitize=frozenset(tools))
    wanted = x.copy()
    wanted.view(np.uint32)[::8] += 1
    np.testing.assert_array_equal(out, wanted)


def found(body: str, error: type[EmulationError], block: int = 64, cluster: int | None = None, **arrays: Any) -> Any:
    given = {"x": np.zeros(256, np.uint32), "out": np.zeros(256, np.uint32), "n": np.uint32(1024), **arrays}
    with pytest.raises(error) as caught:
        run(module(body), cluster or 1, block, cluster, **given, sanitize=BOTH)
    return caught.value


READ = "mul.lo.u32 %r20, %r2, 4; add.u32 %r20, %r20, %r10; ld.shared.u32 %r21, [%r20];\n"
USE = "setp.eq.u32 %p9, %r21, 77; @%p9 trap;\n"
WRITE = "mul.lo.u32 %r20, %r2, 4; add.u32 %r20, %r20, %r10; st.shared.u32 [%r20], %r2;\n"


@pytest.mark.parametrize("cluster", [None, 2])
def test_a_read_before_the_copy_is_complete(cluster: int | None) -> None:
    """Nobody waits: a barrier after the copy is not enough."""
    error = found(FETCH_ALL + IN_ORDER + READ + USE, UninitializedError, cluster=cluster)
    assert error.message.splitlines()[0] == (
        "load from tile[0], whose copy by thread (0, 0, 0) is not known to be complete"
    )
    assert error.hint == (
        "wait first at the mbarrier that counts its bytes: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)`"
    )


def test_a_source_that_nobody_has_written() -> None:
    error = found(f"setp.lt.u32 %p9, %r2, 32; @%p9 bra HALF; bra OVER; HALF: {WRITE} OVER: {SYNC} @%p0 {STORES}",
                  UninitializedError)
    assert error.message.splitlines()[0] == "bulk copy from tile[128], which nobody has written"
    assert error.instruction == f"@%p0 {STORES}".rstrip(";")


def test_races_with_plain_accesses() -> None:
    fenced = f"fence.proxy.async.shared::cta; @%p0 {STORES.replace('%r12', '256')}"
    store = found(WRITE + SYNC + WRITE + fenced, RaceError)
    assert store.message.splitlines()[0].startswith("race on tile[")
    assert "bulk copy by thread (0, 0, 0)" in store.message
    assert "store by thread" in store.message
    load = found(FETCH_ALL.replace("%r12", "256") + READ + WAIT, RaceError)
    assert "bulk copy by thread (0, 0, 0)" in load.message
    assert "load by thread" in load.message


def test_races_in_global_memory() -> None:
    """One block copies what another one writes; reductions do not race with each other, copies do."""
    blocks = "mov.u32 %r30, %ctaid.x; setp.eq.u32 %p9, %r30, 0; @%p9 bra COPY;\n"
    write = "mul.wide.u32 %rd5, %r2, 4; add.u64 %rd5, %rd5, %rd0; st.global.u32 [%rd5], %r2; bra OVER;\n"
    body = f"{blocks}{write}COPY: {FETCH_ALL}{WAIT}OVER:\n"
    given = {"x": np.zeros(256, np.uint32), "out": np.zeros(256, np.uint32), "n": np.uint32(1024)}
    with pytest.raises(RaceError, match=r"race on x\[\d+\] in global memory: .*bulk copy by thread"):
        run(module(body), 2, 64, **given, sanitize=BOTH)
    body = COPY_IN + f"@%p0 {SUMS}\n{STORED}"
    run(module(body), 3, 64, **given, sanitize=BOTH)
    with pytest.raises(RaceError, match=r"race on out\[0\] in global memory: bulk copy by thread .* and bulk copy by"):
        run(module(COPY_IN + f"@%p0 {STORES}\n{STORED}"), 3, 64, **given, sanitize=BOTH)


def test_lanes_that_copy_to_one_place() -> None:
    apart = "mad.wide.u32 %rd0, %r2, 16, %rd0;\n"
    error = found(f"{apart}{FETCH_ALL.replace('@%p0 cp', 'cp').replace('%r12', '64')}{WAIT}", RaceError, block=32)
    assert error.message.splitlines()[0] == (
        "race on tile[0] in shared memory: bulk copy by thread (1, 0, 0) and bulk copy by thread (0, 0, 0) "
        "of block (0, 0, 0) are not ordered"
    )


@pytest.mark.parametrize("cluster", [None, 2])
def test_lanes_that_make_one_copy(cluster: int | None) -> None:
    """Same source, same destination: stores of the same values. Elsewhere from, or to, it is a race."""
    given = {"x": np.arange(256, dtype=np.uint32), "out": np.zeros(256, np.uint32), "n": np.uint32(1024)}
    blocks = cluster or 1
    own = "mov.u32 %r30, %ctaid.x; mul.wide.u32 %rd9, %r30, 128; add.u64 %rd1, %rd1, %rd9;\n"
    fetch = f"{EXPECT}{FETCH} [%r10], [%rd0], 64, [%r11];\n".replace("%r12", "2048")
    stored = STORED.replace("@%p0 ", "")
    store = STORES.replace("%r12", "64")
    run(module(f"{own}{fetch}{WAIT}{store}\n{stored}"), blocks, 32, cluster, **given, sanitize=BOTH)
    assert list(given["out"][:16]) == list(given["out"][32 * (blocks - 1) :][:16]) == list(range(16))
    apart = "mad.lo.u32 %r10, %r2, 16, %r10;\n"
    error = found(f"{own}{COPY_IN}{apart}{store}\n{stored}", RaceError, 32, cluster)
    assert "of one warp bulk copy to out[0] in global memory with one instruction" in error.message


@pytest.mark.parametrize("waits", [True, False])
def test_what_another_block_sends(waits: bool) -> None:
    """Block 1 reads what block 0 has copied to it: it has to wait at its own mbarrier."""
    body = f"""
        mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p4, %r30, 0; and.pred %p5, %p4, %p0; not.pred %p6, %p4;
        {COPY_IN} .shared .align 16 .b8 inbox[{BYTES}]; and.pred %p7, %p6, %p0;
        @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12;
        {BARRIER}
        mov.u32 %r32, inbox; mov.u32 %r33, inbox; mapa.shared::cluster.u32 %r32, %r32, 1;
        mapa.shared::cluster.u32 %r34, %r11, 1;
        @%p5 cp.async.bulk.shared::cluster.shared::cta.{TX} [%r32], [%r10], %r12, [%r34];
        {BARRIER} @%p4 bra OVER; {WAIT if waits else ""} mov.u32 %r10, %r33; {COPY_OUT.replace("OVER:", "SENT:")
        .replace("bra OVER", "bra SENT")} OVER: {BARRIER}
    """
    x, out = random_bytes(256), np.zeros(256, np.uint8)
    if waits:
        run(module(body), 2, 32, 2, x=x, out=out, n=np.uint32(256), sanitize=BOTH)
        np.testing.assert_array_equal(out, x)
        return
    with pytest.raises(UninitializedError, match=r"inbox\[0\], whose copy by .* of block \(0, 0, 0\) is not"):
        run(module(body), 2, 32, 2, x=x, out=out, n=np.uint32(256), sanitize=BOTH)


HALVES = """
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1+128], [tile+128], 128;
@%p0 cp.async.bulk.commit_group;
"""


@pytest.mark.parametrize(("wait", "wrong"), [
    ("", [0, 128]), ("cp.async.bulk.wait_group.read 2;", [0, 128]), ("cp.async.bulk.wait_group.read 1;", [128]),
    ("cp.async.bulk.wait_group 1;", [128]), ("cp.async.bulk.wait_group.read 0;", None),
    ("cp.async.bulk.wait_group 0;", None),
])
def test_a_source_that_is_overwritten_before_it_is_read(wait: str, wrong: list[int] | None) -> None:
    """A barrier is not enough: the thread that copies waits for its groups before it."""
    body = WRITE + SYNC + HALVES + wait + SYNC + WRITE
    if wrong is None:
        run(module(body), 1, 64, x=np.zeros(1), out=np.zeros(64, np.uint32), n=np.uint32(0), sanitize=BOTH)
        return
    error = found(body, RaceError)
    assert error.message.splitlines()[0] in [
        f"race on tile[{byte}] in shared memory: store by thread ({byte // 4}, 0, 0) "
        "and bulk copy by thread (0, 0, 0) of block (0, 0, 0) are not ordered" for byte in wrong
    ]
    assert error.hint == (
        "wait first, in the thread that copies: `ptx.cp.async_.bulk.wait_group.read(0)`; "
        "then a barrier if it is another one"
    )


@pytest.mark.parametrize(("wait", "good"), [
    ("wait_group 0", True), ("wait_group.read 0", False), ("commit_group", False),
])
def test_a_destination_that_is_read_before_it_is_written(wait: str, good: bool) -> None:
    body = f"{WRITE}{SYNC}{HALVES}@%p0 cp.async.bulk.{wait};\n@%p0 ld.global.u32 %r25, [%rd1+4];"
    if good:
        run(module(body), 1, 64, x=np.zeros(1), out=np.zeros(64, np.uint32), n=np.uint32(0), sanitize=BOTH)
        return
    error = found(body, RaceError)
    assert error.message.splitlines()[0] == (
        "race on out[1] in global memory: load by thread (0, 0, 0) and bulk copy by thread (0, 0, 0) "
        "of block (0, 0, 0) are not ordered"
    )
    assert "wait_group(0)" in (error.hint or "")


def test_copies_that_a_block_ends_with() -> None:
    """That is told once; they are no business of the next block, nor of the next launch."""
    body = "mov.u32 %r30, %ctaid.x; mul.wide.u32 %rd5, %r30, 256; add.u64 %rd1, %rd1, %rd5;" + WRITE + SYNC + HALVES
    out = np.zeros((5, 64), np.uint32)
    for _ in range(2):
        with collect() as found:
            run(module(body), 5, 64, x=np.zeros(1), out=out, n=np.uint32(0), sanitize=BOTH)
        assert [finding.message for finding in found] == [
            ("the block may end before the bulk copy by thread (0, 0, 0) has read tile[128]: the thread ends without a "
            "wait for its group")
        ]
        run(module(f"{body}\n{STORED}"), 5, 64, x=np.zeros(1), out=out, n=np.uint32(0), sanitize=BOTH)
    np.testing.assert_array_equal(out, np.tile(np.arange(64), (5, 1)))


@pytest.mark.parametrize("waits", [True, False])
def test_multicast_under_the_sanitizer(waits: bool) -> None:
    """Each block has to wait at its own mbarrier: a barrier of the cluster is not enough."""
    x, out = random_bytes(256), np.zeros((4, 256), np.uint8)
    body = f"""
        mov.u32 %r30, %cluster_ctarank; mov.b16 %h9, 15; mad.wide.u32 %rd1, %r30, %r12, %rd1;
        setp.eq.u32 %p6, %r30, 1; and.pred %p6, %p6, %p0;
        @%p0 fence.mbarrier_init.release.cluster;
        {BARRIER} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12; {BARRIER}
        @%p6 {FETCH}.multicast::cluster [tile], [%rd0], %r12, [bar], %h9;
        {WAIT if waits else BARRIER} {COPY_OUT} {BARRIER}
    """
    arguments = {"x": x, "out": out, "n": np.uint32(256), "sanitize": frozenset(("race", "init"))}
    if waits:
        run(module(body), 4, 32, 4, **arguments)
        assert (out == x).all()
        return
    with pytest.raises(UninitializedError, match=r"load from tile\[0\], whose copy by thread \(0, 0, 0\) is not known"):
        run(module(body), 4, 32, 4, **arguments)


PLAIN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<9>; .reg .b64 %rd<3>; .shared .align 16 .b8 own[256];
    mov.u32 %r0, %tid.x; mov.u32 %r1, own; mad.lo.u32 %r1, %r0, 4, %r1; ld.shared.u32 %r2, [%r1];
    ld.param.u64 %rd0, [out]; mad.wide.u32 %rd1, %r0, 4, %rd0; st.global.u32 [%rd1], %r2; ret;
}"""


def test_the_next_launch_knows_nothing_of_copies_that_were_not_waited_for() -> None:
    """Its shared memory is unwritten, whatever the words that it gets had been used for."""
    given = {"x": random_bytes(256), "out": np.zeros(256, np.uint8), "n": np.uint32(256)}
    for _ in range(8):
        with collect():
            run(module(WRITE + SYNC + HALVES), 1, 64, **given, sanitize=BOTH)
        with pytest.raises(UninitializedError, match=r"own\[\d+\], which nobody has written"):
            ptxdsl.load(PLAIN)["k"].configure(1, 64, sanitize=("init",), backend="emulator")(np.zeros(64, np.uint32))


@pytest.mark.parametrize("cluster", [None, 1])
def test_a_copy_out_of_bounds_ends_the_launch_at_once(cluster: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot go nowhere, so there is nothing to go on with; it is told once."""
    asked: list[bool] = []
    passes = Overruns.passes
    monkeypatch.setattr(Overruns, "passes", lambda self, state: asked.append(passes(self, state)) or asked[-1])
    x, out = random_bytes(1024), np.zeros(512, np.uint8)
    given: dict[str, Any] = {"x": x, "out": out, "n": np.uint32(1024), "sanitize": BOTH}
    text = module(f"{FETCH_ALL}{WAIT}@%p0 {STORES}\n{STORED}")
    with pytest.raises(MemoryFault, match="bulk copy") as raised:
        run(text, 1, 32, cluster, **given)
    assert raised.value.__cause__ is None
    assert len(asked) < 5
    with collect() as found:
        run(text, 1, 32, cluster, **given)
    assert [each.kind for each in found] == ["memory"]
    assert not out.any()
