"""The sanitizer over planted bugs, found at their lines, and correct kernels, which raise nothing; its reports."""

from __future__ import annotations


import numpy as np
import planted_bugs
import ptxdsl
import pytest
from correct_kernels import CORRECT
from planted_bugs import BUGS
from ptxdsl import (
    EmulationError, Ptr, RaceError, UninitializedError, empty, loop, ptx, ptx_kernel, shared, u32, use, when,
)
from ptxdsl.emulator.instructions.instrumentation import ShadowCheck
from ptxdsl.emulator.program import BOUNDS
from ptxdsl.emulator.sanitizer.sanitizer import collect
from sanitizer_cases import THREADS, run


@pytest.mark.parametrize("name", BUGS)
def test_planted(name: str) -> None:
    chosen = BUGS[name]
    assert chosen.error is not None
    with pytest.raises(chosen.error) as caught:
        run(chosen)
    error = caught.value
    assert error.loc is not None and error.loc.line in chosen.lines, str(error)
    if error.findings:
        assert len(error.findings) == 1, str(error)
        found = error.findings[0]
        lines = {side.loc.line for side in (found.access, found.earlier) if side is not None}
        assert lines == chosen.lines, str(error)


@pytest.mark.parametrize("name", CORRECT)
def test_correct(name: str) -> None:
    run(CORRECT[name])


@pytest.mark.parametrize("name", CORRECT)
def test_correct_in_any_order(name: str, rng: np.random.Generator) -> None:
    """With a seeded random schedule of the warps: the same numbers, and no finding."""
    usual = run(CORRECT[name])
    shuffled = run(CORRECT[name], seed=int(rng.integers(1 << 32)))
    if not name.startswith(("volatile", "relaxed", "atomics_of_one", "last_block_resets")):
        assert (usual == shuffled).all()


@pytest.mark.parametrize("name", [name for name in BUGS if BUGS[name].error is RaceError])
def test_planted_in_any_order(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(RaceError) as caught:
        run(BUGS[name], seed=int(rng.integers(1 << 32)))
    assert caught.value.loc is not None and caught.value.loc.line in BUGS[name].lines, str(caught.value)


def test_order_is_that_of_the_seed() -> None:
    """A seed gives the same schedule each time."""

    @ptx_kernel
    def order(x: Ptr[u32]) -> None:
        with when((ptx.tid.x & 31) == 0):
            with loop(0, 20):
                x[ptx.atom.global_.add.u32(x, 1) + 1] = ptx.tid.x >> 5
                with loop(0, 300):
                    ptx.atom.global_.cas.b32(x + 4000, 0, 0)

    def ran(seed: int | None) -> list[int]:
        x = np.zeros(8192, np.uint32)
        with use("emulator"):
            order.configure(1, 256, seed=seed)(x)
        return x[1:161].tolist()

    assert ran(None) == ran(None)
    assert ran(5) == ran(5)
    assert len({tuple(ran(seed)) for seed in (None, 1, 2, 3)}) == 4


# Reports


def test_report_of_a_race() -> None:
    with pytest.raises(RaceError) as caught:
        run(BUGS["missing_barrier-32"])
    error = caught.value
    first, second = sorted(BUGS["missing_barrier-32"].lines)
    here = planted_bugs.__file__
    assert str(error).split(" (PTX line")[0] == (
        "race on s[32] in shared memory: store by thread (32, 0, 0) and load by thread (0, 0, 0) of block (0, 0, 0) "
        "are not ordered\n"
        f"  after the load by thread (0, 0, 0) of block (0, 0, 0) at {here}:{second}: y[t] = s[(t + off) & 127]  # !"
    )
    assert error.hint == "put a barrier between the two: `ptx.bar.sync(0)`"
    (finding,) = error.findings
    assert (finding.kind, finding.array, finding.element, finding.space) == ("race", "s", "s[32]", "shared")
    assert (finding.access.verb, finding.access.thread) == ("store", (32, 0, 0))
    assert finding.earlier is not None and finding.earlier.thread == (0, 0, 0)
    assert finding.access.loc is not None and finding.access.loc.line == first


def test_all_findings_are_collected() -> None:
    with collect() as findings:
        run(BUGS["shared_never_written"])
        run(BUGS["all_blocks_one_place"])
        run(CORRECT["spin_lock"])
    assert [finding.kind for finding in findings] == ["init", "race"]


def test_two_bugs_are_two_findings() -> None:
    @ptx_kernel
    def two(y: Ptr[u32]) -> None:
        s, u, t = shared(u32, THREADS), shared(u32, THREADS), ptx.tid.x
        s[t] = t
        y[t] = s[t ^ 32] + u[t]

    with use("emulator"), pytest.raises(UninitializedError, match="and 1 more finding:\n  race on s") as caught:
        two.configure(1, THREADS, sanitize="all")(np.zeros(THREADS, np.uint32))
    assert [finding.kind for finding in caught.value.findings] == ["init", "race"]


@pytest.mark.parametrize(("tools", "error"), [("race", RaceError), ("init", UninitializedError), ("memory", None)])
def test_one_tool(tools: str, error: type[EmulationError] | None) -> None:
    @ptx_kernel
    def both(y: Ptr[u32]) -> None:
        s, u, t = shared(u32, THREADS), shared(u32, THREADS), ptx.tid.x
        s[t] = t
        y[t] = s[t ^ 32] + u[t]

    launch = both.configure(1, THREADS, sanitize=(tools,), backend="emulator")
    if error is None:
        launch(np.zeros(THREADS, np.uint32))
    else:
        with pytest.raises(error):
            launch(np.zeros(THREADS, np.uint32))


def test_written_by_one_launch_read_by_the_next() -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, n: int) -> None:
        with when(ptx.tid.x < n):
            x[ptx.tid.x] = 1

    @ptx_kernel
    def add(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[ptx.tid.x] = x[ptx.tid.x] + 1

    y = np.zeros(THREADS, np.uint32)
    for n, whole in ((THREADS, True), (THREADS - 1, False)):
        x = empty(THREADS, np.uint32, backend="emulator")
        fill.configure(1, THREADS, sanitize=True, backend="emulator")(x, n=n)
        launch = add.configure(1, THREADS, sanitize=True, backend="emulator")
        if whole:
            launch(x, y)
        else:
            with pytest.raises(UninitializedError, match=r"x\[127\]"):
                launch(x, y)


def test_arrays_that_overlap() -> None:
    @ptx_kernel
    def shift(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[ptx.tid.x] = x[ptx.tid.x]

    memory = np.zeros(THREADS + 1, np.uint32)
    launch = shift.configure(1, THREADS, sanitize=True, backend="emulator")
    launch(memory[:-1], memory[:-1])
    with pytest.raises(RaceError):
        launch(memory[:-1], memory[1:])


def test_arrays_that_are_only_read_may_overlap() -> None:
    """They are checked no more than others; what is written beside them is."""
    @ptx_kernel
    def add(x: Ptr[u32], z: Ptr[u32], y: Ptr[u32]) -> None:
        t = ptx.tid.x
        y[t] = x[t] + z[t]

    memory, out = np.arange(3 * THREADS, dtype=np.uint32), np.zeros(THREADS, np.uint32)
    launch = add.configure(1, THREADS, sanitize=True, backend="emulator")
    launch(memory[:THREADS], memory[1 : 1 + THREADS], out)
    np.testing.assert_array_equal(out, 2 * np.arange(THREADS) + 1)
    launch(out, out, memory)
    program = add.compiled({}).program
    codes = [code for _, tools, code in program.codes(program.module.functions[0].name) if tools not in (None, BOUNDS)]
    assert not any(isinstance(placed.op, ShadowCheck) for code in codes for placed in code.micro_ops)
    for x, z, y in ((0, 7, 7 + THREADS // 2), (0, 0, 1), (1, 2, 0)):
        with pytest.raises(RaceError):
            launch(memory[x : x + THREADS], memory[z : z + THREADS], memory[y : y + THREADS])


def test_enough() -> None:
    assert len(BUGS) >= 60 and len(CORRECT) >= 60


def test_a_lock_among_lanes_is_no_deadlock() -> None:
    """Callbacks shorten time slices: a poll that changes nothing is no deadlock before the holder has had its slice."""
    lock, count = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 lock, .param .u64 count) {
        .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;
        ld.param.u64 %rd1, [lock]; ld.param.u64 %rd2, [count]; mov.u32 %r1, 0;
    AGAIN: atom.global.acquire.gpu.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p, %r2, 0; @%p bra AGAIN;
        ld.global.u32 %r3, [%rd2]; add.u32 %r3, %r3, 1; st.global.u32 [%rd2], %r3; st.release.gpu.u32 [%rd1], 0;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 2; @%p bra AGAIN; ret;
    }"""
    ptxdsl.load(text)["k"].configure(2, 64, backend="emulator", sanitize="all")(lock, count)
    assert count[0] == 2 * 64 * 2
