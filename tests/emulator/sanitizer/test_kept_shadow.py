"""Sanitized launches one after the other: what serves the next one hides nothing of it, and tells of nothing else."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel

import ptxdsl
from ptxdsl import emulator, use
from ptxdsl.emulator.sanitizer.launcher import SanitizedLauncher
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.errors import MemoryFault, RaceError, UninitializedError
from ptxdsl.launch import LaunchConfig

ALL = frozenset(("memory", "init", "race", "order", "barrier"))
SCATTER = """
ld.param.u64 %rd0, [to]; ld.param.u64 %rd1, [x]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r0, %r1, %r2; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd0, %rd0, %rd2; ld.global.u32 %r4, [%rd0];
mul.wide.u32 %rd3, %r4, 4; add.u64 %rd1, %rd1, %rd3; st.global.u32 [%rd1], %r3; ret;
"""


def launcher(text: str, config: LaunchConfig) -> SanitizedLauncher:
    found = emulator.load(text).launcher("k", config)
    assert isinstance(found, SanitizedLauncher)
    return found


def launch(run: SanitizedLauncher, **arguments: Any) -> None:
    with ptxdsl.config.override(emulator_threads=1):  # launches that are spread over threads leave nothing
        run([argument(name, value) for name, value in arguments.items()])


def test_a_race_of_a_later_launch_is_found() -> None:
    run = launcher(kernel("u64 to, u64 x", SCATTER), LaunchConfig(4, 64, sanitize=ALL))
    rng = np.random.default_rng()
    to, x = rng.permutation(256).astype(np.uint32), np.zeros(256, np.uint32)
    right = to.copy()
    launch(run, to=to, x=x)
    assert run._kept
    for _ in range(3):
        launch(run, to=to, x=x)
        assert np.array_equal(x[to], np.arange(256))
        a, b = rng.choice(256, 2, replace=False)
        to[a] = to[b]
        with pytest.raises(RaceError):
            launch(run, to=to, x=x)
        assert not run._kept
        to[:] = right


def test_bounds_are_those_of_the_launch() -> None:
    run = launcher(kernel("u64 to, u64 x", SCATTER), LaunchConfig(4, 64, sanitize=ALL))
    to, x = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    launch(run, to=to, x=x)
    launch(run, to=to, x=x)
    with pytest.raises(MemoryFault):
        launch(run, to=to, x=x[:255])
    launch(run, to=to, x=x)


def test_words_that_another_launch_has_had_in_between() -> None:
    config = LaunchConfig(4, 64, sanitize=ALL)
    first, other = (launcher(kernel("u64 to, u64 x", SCATTER + " " * n), config) for n in (0, 1))
    to, x, y = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    for _ in range(3):
        launch(first, to=to, x=x)
        launch(other, to=to[::-1].copy(), x=y)
        assert np.array_equal(x, np.arange(256))
        assert np.array_equal(y, np.arange(256)[::-1])


COPY = """
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4;
add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r1, [%rd0]; setp.eq.u32 %p0, %r1, 7;
@%p0 bra END; st.global.u32 [%rd1], %r1; END: ret;
"""


def test_an_array_that_becomes_unwritten_between_two_launches() -> None:
    """The same memory, of which the second launch knows that the host has left it uninitialised."""
    with use("emulator"):
        k = ptxdsl.load(kernel("u64 x, u64 y", COPY))["k"].configure(1, 32, sanitize="all")
        x, y = ptxdsl.to_device(np.ones(32, np.uint32)), ptxdsl.to_device(np.ones(32, np.uint32))
        k(x, y)
        k(x, y)
        x.unwritten = True
        with pytest.raises(UninitializedError):
            k(x, y)


CLUSTER = """
.shared .b32 cell[64];
ld.param.u64 %rd0, [out]; ld.param.u32 %r9, [from]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2; mov.u32 %r3, cell; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1;
barrier.cluster.arrive; barrier.cluster.wait;
xor.b32 %r5, %r0, 1; mapa.shared::cluster.u32 %r6, %r4, %r5; ld.shared::cluster.u32 %r7, [%r6];
setp.lt.u32 %p0, %r1, %r9; @%p0 st.shared.u32 [%r4], 5;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 64, %r1; mul.wide.u32 %rd1, %r8, 4; add.u64 %rd0, %rd0, %rd1;
st.global.u32 [%rd0], %r7; ret;
"""


def test_clusters() -> None:
    """Threads below `from` write to what the other block reads at that time."""
    run = launcher(kernel("u64 out, u32 from", CLUSTER), LaunchConfig(6, 64, cluster=2, sanitize=ALL))
    for _ in range(3):
        out = np.zeros((6, 64), np.uint32)
        for _ in range(2):
            launch(run, **{"out": out, "from": np.uint32(0)})
            assert run._kept[0][0].clusters is not None
            assert (out == np.arange(64)).all()
        with pytest.raises(RaceError):
            launch(run, **{"out": out, "from": np.uint32(1)})


HANDED = """
.shared .align 4 .b32 s[64]; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [to]; mov.u32 %r0, %tid.x;
and.b32 %r1, %r0, 31; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; mad.wide.u32 %rd1, %r0, 4, %rd1;
ld.global.u32 %r6, [%rd1]; setp.ne.u32 %p1, %r6, 0; mad.wide.u32 %rd0, %r1, 4, %rd0;
setp.gt.u32 %p0, %r0, 31; @%p0 bra TAKE; add.u32 %r4, %r1, 7; st.shared.u32 [%r3], %r4; bar.arrive 1, 64; bra END;
TAKE: @%p1 ld.shared.u32 %r5, [%r3]; bar.sync 1, 64; ld.shared.u32 %r5, [%r3]; st.global.u32 [%rd0], %r5; END: ret;
"""


def test_what_barriers_of_some_warps_order_is_of_one_launch() -> None:
    run = launcher(kernel("u64 to, u64 x", HANDED), LaunchConfig(1, 64, sanitize=frozenset(("race",))))
    to = np.zeros(64, np.uint32)
    for _ in range(3):
        for _ in range(3):
            x = np.zeros(32, np.uint32)
            launch(run, to=to, x=x)
            assert np.array_equal(x, np.arange(32) + 7)
            assert run._kept
        to[40] = 1
        with pytest.raises(RaceError, match=r"s\[8\] in shared memory"):
            launch(run, to=to, x=x)
        to[40] = 0


STRIDE = """
ld.param.u64 %rd0, [x]; ld.param.u32 %r1, [stride]; mov.u32 %r0, %tid.x; mul.lo.u32 %r2, %r0, %r1;
mul.wide.u32 %rd1, %r2, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r0; ret;
"""


@pytest.mark.parametrize("tools", [ALL, frozenset(("memory",)), frozenset(("race",))])
def test_numbers_that_decide_what_is_checked(tools: frozenset[str]) -> None:
    """Threads store to places of their own, or to one, or beyond the array."""
    run = launcher(kernel("u64 x, u32 stride", STRIDE), LaunchConfig(1, 64, sanitize=tools))
    x = np.zeros(64, np.uint32)
    for _ in range(3):
        for _ in range(3):
            x[:] = 0
            launch(run, x=x, stride=np.uint32(1))
            assert np.array_equal(x, np.arange(64))
            assert run._kept[0][0].shadow.tool is not None
        if "race" in tools:
            with pytest.raises(RaceError):
                launch(run, x=x, stride=np.uint32(0))
        else:
            launch(run, x=x, stride=np.uint32(0))
        launch(run, x=x, stride=np.uint32(1))
        with pytest.raises(MemoryFault, match="x"):
            launch(run, x=x, stride=np.uint32(2))
        assert not run._kept


@pytest.mark.parametrize("tools", [ALL, frozenset(("memory",)), frozenset(("race",))])
def test_code_that_is_made_again(tools: frozenset[str]) -> None:
    """The code of the launch that is kept assumed of a register that it does not wrap around."""
    run = launcher(kernel("u64 x, u32 stride", STRIDE), LaunchConfig(1, 64, sanitize=tools))
    x = np.zeros(64, np.uint32)
    for _ in range(3):
        for _ in range(2):
            launch(run, x=x, stride=np.uint32(1))
        code = run._kept[0][0].shadow.code
        code.wraps.add(len(code.wraps))
        launch(run, x=x, stride=np.uint32(1))
        assert run._kept[0][0].shadow.code is not code
    if "race" in tools:
        with pytest.raises(RaceError):
            launch(run, x=x, stride=np.uint32(0))


def test_each_launch_has_its_own_findings() -> None:
    run = launcher(kernel("u64 x, u32 stride", STRIDE), LaunchConfig(1, 64, sanitize=frozenset(("memory",))))
    x, messages = np.zeros(64, np.uint32), []
    for _ in range(2):
        launch(run, x=x, stride=np.uint32(1))
        with collect() as findings:
            launch(run, x=x, stride=np.uint32(2))
        messages.append([finding.message for finding in findings])
    assert messages[0]
    assert messages[0] == messages[1]


def test_what_python_has_followed_is_of_one_launch() -> None:
    """In a cluster, barriers of some warps are Python's: what it knows by then serves no further launch."""
    place = "mad.wide.u32 %rd0, %r1, 4, %rd0;"
    apart = f"mov.u32 %r8, %ctaid.x; shl.b32 %r8, %r8, 7; cvt.u64.u32 %rd4, %r8; add.u64 %rd0, %rd0, %rd4; {place}"
    text = kernel("u64 to, u64 x", HANDED.replace(place, apart))
    run = launcher(text, LaunchConfig(2, 64, cluster=2, sanitize=frozenset(("race",))))
    to, x = np.zeros(64, np.uint32), np.zeros((2, 32), np.uint32)
    for _ in range(2):
        launch(run, to=to, x=x)
        assert (x == np.arange(32) + 7).all()
        assert not any(kept.shadow.tool for kept, _ in run._kept)
    to[40] = 1
    with pytest.raises(RaceError, match=r"s\[8\] in shared memory"):
        launch(run, to=to, x=x)


def test_nothing_that_is_kept_is_in_a_circle() -> None:
    for tools in (ALL, frozenset(("memory",))):
        run = launcher(kernel("u64 x, u32 stride", STRIDE), LaunchConfig(1, 64, sanitize=tools))
        for _ in range(2):
            launch(run, x=np.zeros(64, np.uint32), stride=np.uint32(1))
        kept = weakref.ref(run._kept[0][0].shadow.tool.reporter)
        gc.collect()
        gc.disable()
        try:
            run._kept.clear()
            assert kept() is None
        finally:
            gc.enable()
