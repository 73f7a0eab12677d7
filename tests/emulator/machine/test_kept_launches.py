"""The memory of a launch serves the next one: what the last has left or was given shows nowhere in it."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, ROTATE

from ptxdsl import emulator
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.runtime.block_state import MOST_KEPT
from ptxdsl.emulator.runtime.launcher import Launcher
from ptxdsl.errors import MemoryFault, TrapError
from ptxdsl.launch import LaunchConfig

COPY = """
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r0, [a]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;
ld.global.u32 %r2, [%rd0]; add.u32 %r2, %r2, %r0; st.global.u32 [%rd1], %r2; ret;
"""


def launcher(text: str, config: LaunchConfig) -> Launcher:
    found = emulator.load(text).launcher("k", config)
    assert isinstance(found, Launcher)
    return found


def launch(run: Launcher, **arguments: Any) -> None:
    run([argument(name, value) for name, value in arguments.items()])


@pytest.fixture
def copy() -> Launcher:
    return launcher(kernel("u64 x, u64 y, u32 a", COPY), LaunchConfig(1, 64))


def test_each_launch_has_its_arguments(copy: Launcher) -> None:
    rng = np.random.default_rng()
    arrays = [rng.integers(0, 1 << 32, 64 + extra, np.uint32) for extra in (0, 0, 7)]
    for _ in range(30):
        x, y = (arrays[n] for n in rng.permutation(3)[:2])
        a = rng.integers(0, 1 << 32, 1, np.uint32)[0]
        expected = x[:64] + a
        launch(copy, x=x, y=y, a=a)
        assert np.array_equal(y[:64], expected)
    assert len(copy._kept) == 1


def test_bounds_are_those_of_the_arrays_of_the_launch(copy: Launcher) -> None:
    x, y = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    launch(copy, x=x, y=y, a=np.uint32(1))
    with pytest.raises(MemoryFault) as raised:
        launch(copy, x=x, y=y[:63], a=np.uint32(2))
    assert raised.value.thread == (63, 0, 0)
    launch(copy, x=x, y=y, a=np.uint32(1))
    given: list[Any] = [argument(name, value) for name, value in (("x", x), ("y", y))]
    with pytest.raises(MemoryFault):
        copy([given[0], given[1]._replace(writable=False), argument("a", np.uint32(2))])
    copy([given[0]._replace(writable=False), given[1], argument("a", np.uint32(5))])
    assert np.array_equal(y, np.full(64, 5))


def test_nothing_keeps_the_arrays_or_the_kernel_alive() -> None:
    run = launcher(kernel("u64 x, u64 y, u32 a", COPY), LaunchConfig(1, 64))
    x = np.ones(64, np.uint32)
    gone = weakref.ref(x)
    launch(run, x=x, y=np.zeros(64, np.uint32), a=np.uint32(0))
    kept = weakref.ref(run._kept[0][0])
    gc.disable()
    try:
        del x
        assert gone() is None
        del run
        assert kept() is None
    finally:
        gc.enable()


def test_a_launch_that_failed_is_not_kept() -> None:
    text = kernel("u64 x, u32 n", """
    .shared .b32 tile[64];
    ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;
    setp.eq.u32 %p0, %r1, %r0; @%p0 trap; bar.sync 0;
    ld.shared.u32 %r4, [%r2]; cvt.u64.u32 %rd1, %r3; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r4; ret;
    """)
    run, x = launcher(text, LaunchConfig(3, 64)), np.zeros(64, np.uint32)
    for _ in range(3):
        with pytest.raises(TrapError):
            launch(run, x=x, n=np.uint32(40))
        assert not run._kept
        launch(run, x=x, n=np.uint32(64))
        assert np.array_equal(x, np.arange(64))
        x[:] = 0


LEAVES = """
.local .align 4 .b32 mine[4];
ld.param.u64 %rd0, [x]; mov.u32 %r1, %tid.x; ld.local.u32 %r2, [mine+8]; add.u32 %r3, %r2, 1;
st.local.u32 [mine+8], %r3; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r3;
setp.lt.u32 %p0, %r1, 32; @%p0 bar.arrive 1, 96; ret;
"""


@pytest.mark.parametrize("second", [False, True])
def test_it_begins_as_new(second: bool) -> None:
    """Local memory is zeros again, and a barrier at which a warp has arrived is empty."""
    config = LaunchConfig(1, 64)
    run = launcher(kernel("u64 x", LEAVES), config)
    if second:
        compile_block_function(run.codes(False))
    for _ in range(4):
        x = np.zeros(64, np.uint32)
        launch(run, x=x)
        assert np.array_equal(x, np.ones(64))
    assert run._kept


RECURSIVE = """
.version 7.0
.target sm_80
.address_size 64
.func (.param .b32 sum) under(.param .b32 n)
{
    .reg .b32 %r<5>; .reg .pred %p; .local .b32 own;
    ld.param.u32 %r0, [n]; st.local.u32 [own], %r0; mov.u32 %r2, 0;
    setp.eq.u32 %p, %r0, 0; @%p bra END;
    {
        .param .b32 first; .param .b32 back;
        sub.u32 %r1, %r0, 1; st.param.b32 [first], %r1; call (back), under, (first); ld.param.b32 %r2, [back];
    }
END:
    ld.local.u32 %r3, [own]; add.u32 %r4, %r2, %r3; st.param.b32 [sum], %r4; ret;
}
.visible .entry k(.param .u64 x)
{
    .reg .b32 %r<9>; .reg .b64 %rd<3>; .local .align 4 .b32 mine[4];
    ld.param.u64 %rd0, [x]; mov.u32 %r1, %tid.x; ld.local.u32 %r2, [mine+8]; add.u32 %r3, %r2, 1;
    st.local.u32 [mine+8], %r3;
    {
        .param .b32 first; .param .b32 back;
        st.param.b32 [first], %r1; call (back), under, (first); ld.param.b32 %r4, [back];
    }
    add.u32 %r4, %r4, %r3; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r4; ret;
}
"""


@pytest.mark.parametrize("second", [False, True])
def test_stacks_serve_the_next_launch(second: bool) -> None:
    """They are kept as they are, while the kernel's own local memory is zeros again."""
    run = launcher(RECURSIVE, LaunchConfig(1, 96))
    if second:
        compile_block_function(run.codes(False))
    for _ in range(3):
        x = np.zeros(96, np.uint32)
        launch(run, x=x)
        assert np.array_equal(x, np.arange(96).cumsum() + 1)
        (kept, _), = run._kept
        assert len(kept.free) == 1 and kept.free[0].nbytes > MOST_KEPT


def test_two_host_threads_launch_at_a_time(copy: Launcher) -> None:
    wrong: list[int] = []

    def repeat(a: int) -> None:
        x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
        for _ in range(200):
            launch(copy, x=x, y=y, a=np.uint32(a))
            if not np.array_equal(y, x + np.uint32(a)):
                wrong.append(a)

    threads = [threading.Thread(target=repeat, args=(a,)) for a in (3, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("how", FETCHES)
@pytest.mark.parametrize("second", [False, True])
def test_clusters_serve_the_next_launch(how: str, second: bool) -> None:
    run = launcher(kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=FETCHES[how])), LaunchConfig(6, 64, cluster=3))
    if second:
        assert compile_block_function(run.codes(False))
    seen = []
    for _ in range(4):
        out = np.zeros((6, 64), np.uint32)
        launch(run, out=out)
        assert run._kept[0][0].clusters is not None
        seen.append(out)
    assert all(np.array_equal(seen[0], out) for out in seen)
    assert seen[0].any()


@pytest.mark.parametrize("second", [False, True])
def test_a_block_of_a_cluster_that_ended_stays_closed(second: bool) -> None:
    """Block 1, the last to arrive, ends at once; block 0 reads its memory: in the first launch and in the next ones."""
    text = kernel("u64 out, u32 reads", """
    .shared .b32 mine;
    ld.param.u64 %rd0, [out]; ld.param.u32 %r9, [reads]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, mine;
    st.shared.u32 [%r1], %r0; barrier.cluster.arrive; barrier.cluster.wait;
    setp.ge.u32 %p0, %r0, %r9; @%p0 exit;
    mapa.shared::cluster.u32 %r3, %r1, 1; ld.shared::cluster.u32 %r4, [%r3]; st.global.u32 [%rd0], %r4; ret;
    """)
    run = launcher(text, LaunchConfig(2, 32, cluster=2))
    if second:
        assert compile_block_function(run.codes(False))
    for _ in range(3):
        out = np.zeros(1, np.uint32)
        launch(run, out=out, reads=np.uint32(0))
        with pytest.raises(MemoryFault):
            launch(run, out=out, reads=np.uint32(1))
