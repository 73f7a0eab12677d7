"""Timelines of small kernels: who waits for whom, how long by numbers computed by hand; page, trace, errors."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import defaultdict
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Array, LaunchError, MemoryFault, Pipeline, Ptr, b32, break_if, cluster, dynamic_shared, f16, f32, load, loop,
    mbarrier, mma, ptx, ptx_kernel, reg, shared, tiles, timeline, u32, when,
)
from ptxdsl.forecasting.machines import MACHINES
from ptxdsl.timelines.result import LaunchTimeline

pytestmark = pytest.mark.usefixtures("emulated")
H200 = MACHINES["h200"]
RNG = np.random.default_rng(int(os.environ.get("TEST_SEED", "0")) or None)


def line_of(kernel: Any, text: str) -> int:
    """The line of a kernel's source that holds a text."""
    source = Path(__file__).read_text("utf-8").splitlines()
    first = kernel.loc.line - 1
    return next(n + 1 for n in range(first, len(source)) if text in source[n])


@ptx_kernel
def late(x: Ptr[f32], turns: u32):
    tile = shared(f32, 96)
    v = reg(f32, x[ptx.tid.x])
    with when(ptx.tid.x < 32), loop(turns):
        v += 1.0
    tile[ptx.tid.x] = v
    ptx.bar.sync(0)
    x[ptx.ctaid.x * 96 + ptx.tid.x] = tile[95 - ptx.tid.x]


def test_barrier_waits_for_the_late_warp() -> None:
    x = RNG.standard_normal(96).astype(np.float32)
    expected = (x + np.where(np.arange(96) < 32, np.float32(50), 0))[::-1]
    given = x.copy()
    with timeline() as t:
        late[1, 96](x, 50)
    np.testing.assert_allclose(x, expected, rtol=1e-5)
    assert t.launches[0].clocks > 0
    first, second, third = t.launches[0].warps
    assert [wait.kind for wait in first.waits] == ["memory", "memory"]
    for warp in (second, third):
        (wait,) = (each for each in warp.intervals if each.kind == "barrier")
        assert wait.by == (0, 0)
        assert wait.on == "barrier 0"
        # each turn of the loop takes an addition, a step, a comparison and a branch
        assert 150 <= wait.end - wait.start <= 50 * 8
        found = next(each for each in warp.waits if each.kind == "barrier")
        assert found.loc is not None
        assert found.by is not None
        assert found.loc.line == found.by.line == line_of(late, "bar.sync")
    again = given.copy()
    with timeline() as u:
        late[1, 96](again, 50)
    assert str(t) == str(u)
    with timeline() as v:
        late[1, 96](given, 100)
    longer, shorter = (
        next(each for each in found.launches[0].warps[1].waits if each.kind == "barrier").clocks for found in (v, t)
    )
    assert shorter * 1.8 < longer < shorter * 2.3


@ptx_kernel
def chase(x: Ptr[u32], turns: u32):
    at = reg(u32, 0)
    with loop(turns):
        at.set(x[at])
    x[0] = at


def test_dependent_loads_wait_for_memory() -> None:
    with timeline() as t:
        chase[1, 1](np.zeros(4, np.uint32), 10)
    (warp,) = t.launches[0].warps
    (wait,) = (each for each in warp.waits if each.on == "global memory")
    assert wait.times == 10
    assert 0.97 * 10 * H200.memory_latency <= wait.clocks <= 10 * H200.memory_latency
    with timeline(gpu="a100") as u:
        chase[1, 1](np.zeros(4, np.uint32), 10)
    assert u.launches[0].clocks < t.launches[0].clocks


NBYTES = 2048


@ptx_kernel
def ring(x: Ptr[b32], y: Ptr[f32], turns: u32, work: u32, *, stages: int):
    buffer = dynamic_shared(f32, align=128)
    pipe = Pipeline(stages, consumers=1, nbytes=NBYTES)
    with when(ptx.tid.x == 32):
        producer = pipe.producer()
        with loop(turns) as turn:
            for stage, slot in enumerate(producer.turn()):
                source = x + (turn * stages + stage) * (NBYTES // 4)
                ptx.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes(
                    buffer + slot.index * (NBYTES // 4), source, NBYTES, slot.full
                )
    with when(ptx.tid.x < 32):
        consumer, total = pipe.consumer(), reg(f32, 0.0)
        with loop(turns):
            for slot in consumer.turn():
                with loop(work):
                    total += buffer[slot.index * (NBYTES // 4) + ptx.tid.x]
                slot.release(pred=ptx.tid.x == 0)
        y[ptx.tid.x] = total


def run_ring(stages: int, copies: int = 12) -> LaunchTimeline:
    x = RNG.integers(0, 5, (copies, NBYTES // 4)).astype(np.float32)
    y = np.full(32, np.nan, np.float32)
    with timeline() as t:
        ring.configure(1, 64, shared=stages * NBYTES)(x.view(np.uint32), y, copies // stages, 10, stages=stages)
    np.testing.assert_array_equal(y, 10 * x[:, :32].sum(axis=0))
    return t.launches[0]


def mbarrier_share(launch: LaunchTimeline) -> float:
    """The share of its time in which the consumer waits for a full stage."""
    consumer = launch.warps[0]
    return sum(w.clocks for w in consumer.waits if w.kind == "mbarrier") / (consumer.busy + consumer.waiting)


def test_a_ring_of_one_stage_shows_its_bubbles() -> None:
    one, three = run_ring(1), run_ring(3)
    assert mbarrier_share(one) > 0.5
    assert mbarrier_share(three) < 0.5 * mbarrier_share(one)
    assert three.clocks < 0.75 * one.clocks
    waits = [each for each in one.warps[0].intervals if each.kind == "mbarrier"]
    least = H200.memory_latency + NBYTES / H200.l2_port
    assert len(waits) == 12
    assert all(least - 20 < each.end - each.start < least + 60 for each in waits[1:])
    assert {each.by for each in waits} == {(0, 1)}
    released = [each for each in one.warps[1].intervals if each.kind == "mbarrier"]
    assert {each.by for each in released} == {(0, 0)}
    assert {wait.on for wait in three.warps[0].waits if wait.kind == "mbarrier"} <= {f"mbarrier pipe_full[{n}]"
                                                                                     for n in range(3)}
    copies = one.operations(0)
    assert len(copies) == 12
    assert all(op.kind == "copy" and op.amount == NBYTES and op.by == (0, 1) for op in copies)
    assert all(second.start >= first.end for first, second in pairwise(copies))
    overlapping = three.operations(0)
    assert any(second.start < first.end for first, second in pairwise(overlapping))


@ptx_kernel
def product(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2], *, stages: int):
    a_tiles = tiles.Ring(dynamic_shared(f16, align=1024), stages, 32, 64)
    b_tiles = tiles.Ring(a_tiles.end, stages, 64, 64)

    def fetch(step: Any) -> None:
        tiles.copy(a_tiles[step % stages], a, 0, step * 64, threads=32)
        tiles.copy(b_tiles[step % stages], b, step * 64, 0, threads=32)
        ptx.cp.async_.commit_group()

    for stage in range(stages - 1):
        fetch(stage)
    sums = mma.zeros(32, 64)
    with loop(4) as step:
        fetch(step + (stages - 1))
        ptx.cp.async_.wait_group(stages - 1)
        ptx.bar.sync(0)
        mma.multiply(sums, a_tiles[step % stages], b_tiles[step % stages])
        ptx.bar.sync(0)
    ptx.cp.async_.wait_all()
    sums.store(c, 0, 0)


def test_groups_of_copies_and_products_of_warps() -> None:
    a, b = (RNG.standard_normal(shape).astype(np.float16) for shape in ((32, 256), (256, 64)))
    shares = []
    for stages in (1, 3):
        c = np.full((32, 64), np.nan, np.float32)
        with timeline() as t:
            product.configure(1, 32, shared=stages * (32 + 64) * 128)(a, b, c, stages=stages)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-3)
        launch = t.launches[0]
        (warp,) = launch.warps
        shares.append(sum(w.clocks for w in warp.waits if w.kind == "copies") / launch.clocks)
        products = [op for op in launch.operations(0) if op.kind == "matrix"]
        assert sum(op.amount for op in products) == 2 * 32 * 64 * 256
        clocks = sum(op.end - op.begun for op in products)
        assert clocks == pytest.approx(2 * 32 * 64 * 256 / (H200.rates.tensor_rate("f16") / 4))
        assert launch.multiplying == pytest.approx(clocks / 4 / launch.clocks)
        assert "tensor cores multiply" in str(t)
    assert shares[1] < 0.6 * shares[0]


@ptx_kernel(reqnctapercluster=2)
def swap(x: Ptr[f32], turns: u32):
    mine = shared(f32, 32)
    v = reg(f32, x[ptx.ctaid.x * 32 + ptx.tid.x])
    with when(cluster.rank() == 1), loop(turns):
        v += 1.0
    mine[ptx.tid.x] = v
    cluster.sync()
    other = cluster.at(mine, cluster.rank() ^ 1)
    x[ptx.ctaid.x * 32 + ptx.tid.x] = other[ptx.tid.x]
    cluster.sync()


def test_blocks_of_a_cluster_wait_for_each_other() -> None:
    x = RNG.standard_normal(6 * 32).astype(np.float32)
    expected = x.reshape(3, 2, 32) + np.array([0, 40], np.float32)[:, None]
    with timeline(blocks=3) as t:
        swap[6, 32](x, 40)
    np.testing.assert_allclose(x.reshape(3, 2, 32), expected[:, ::-1], rtol=1e-5)
    launch = t.launches[0]
    assert [warp.block for warp in launch.warps] == [(2, 0, 0), (3, 0, 0)]
    first = next(each for each in launch.warps[0].intervals if each.kind == "barrier")
    assert first.on == "barrier of the cluster"
    assert first.by == (3, 0)
    assert first.end - first.start > 40 * 3
    assert "2 of 6 blocks" in str(t)


@ptx_kernel(reqnctapercluster=2)
def diverged(x: Ptr[u32], turns: u32):
    """One lane goes through phases of an mbarrier while the others of its warp wait at the barrier of the cluster."""
    bar = mbarrier.declare(1)
    mbarrier.start((bar, 1))
    with when(ptx.tid.x == 0), loop(turns) as turn:
        mbarrier.arrive(bar)
        mbarrier.wait(bar, turn & 1)
    cluster.sync()
    x[ptx.ctaid.x * 64 + ptx.tid.x] = turns


def test_lanes_that_come_to_a_barrier_one_after_the_other() -> None:
    x = np.full(128, 0xFFFFFFFF, np.uint32)
    with timeline() as t:
        diverged[2, 64](x, 20)
    assert (x == 20).all()
    for warp in t.launches[0].warps:
        waits = [each for each in warp.intervals if each.on == "barrier of the cluster"]
        assert all(each.by is not None and each.by[1] == 0 for each in waits), "every wait has ended by an arrival"
        assert len(waits) == 1 or warp.warp == 0
        assert warp.intervals[-1].kind == "run"


def test_foreign_ptx() -> None:
    x = np.zeros(32, np.float32)
    kernel = load(hand_over.ptx())["hand_over"]
    with timeline() as t:
        kernel[1, 128](x, 30)
    with timeline() as u:
        hand_over[1, 128](np.zeros(32, np.float32), 30)
    assert (x == 90).all()
    assert t.launches[0].clocks == u.launches[0].clocks


@ptx_kernel
def hand_over(x: Ptr[f32], turns: u32):
    """Warps 1 to 3 fill, by a barrier of their own each time; warp 0 reads."""
    tile = shared(f32, 96)
    with when(ptx.tid.x >= 32):
        v = reg(f32, 0.0)
        with loop(turns):
            v += 1.0
        tile[ptx.tid.x - 32] = v
        ptx.barrier.arrive(3, 128)
    with when(ptx.tid.x < 32):
        ptx.barrier.sync(3, 128)
        x[ptx.tid.x] = tile[ptx.tid.x] + tile[ptx.tid.x + 32] + tile[ptx.tid.x + 64]


def test_named_barrier_where_only_one_warp_waits() -> None:
    x = np.full(32, np.nan, np.float32)
    with timeline() as t:
        hand_over[1, 128](x, 30)
    assert (x == 90).all()
    waits = {warp.warp: [w.on for w in warp.waits if w.kind == "barrier"] for warp in t.launches[0].warps}
    assert waits == {0: ["barrier 3"], 1: [], 2: [], 3: []}


@ptx_kernel
def flags(x: Ptr[u32]):
    """Block 1 waits for block 0 in global memory."""
    with when(ptx.ctaid.x == 0):
        ptx.st.release.gpu.global_.u32(x, 7)
    with when(ptx.ctaid.x == 1):
        seen = reg(u32, 0)
        with loop():
            seen.set(ptx.ld.acquire.gpu.global_.u32(x))
            break_if(seen != 0)
        x[1] = seen


def test_blocks_that_wait_for_each_other_run_together() -> None:
    x = np.zeros(2, np.uint32)
    with timeline(blocks=1) as t:
        flags[2, 1](x)
    assert x.tolist() == [7, 7]
    assert len(t.launches[0].warps) == 1


def example(name: str) -> Any:
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"timeline_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "gpu", "threads"), [("wgmma_matmul", "h200", 4), ("tcgen05_matmul", "b200", 1)])
def test_products_of_warpgroups_and_of_tensor_memory(name: str, gpu: str, threads: int) -> None:
    module = example(name)
    with timeline() as t:
        row = module.main(128, 128, 576)
    launch = t.launches[0]
    assert launch.machine.name == gpu
    products = [op for op in launch.operations(0) if op.kind == "product" and op.amount]
    operations = sum(op.amount for op in products)
    padded = 2 * 128 * 128 * 576
    assert operations == padded, row
    clocks = padded / launch.machine.rates.tensor_rate("f16")
    assert sum(op.end - op.begun for op in products) == pytest.approx(clocks)
    assert all(second.begun >= first.end for first, second in pairwise(products))
    waits = {wait.on for wait in launch.waits}
    assert "mbarrier pipe_full[0]" in waits
    assert ("wgmma groups" if threads == 4 else "mbarrier done") in waits
    copies = [op for op in launch.operations(0) if op.kind == "copy"]
    assert sum(op.amount for op in copies) == 2 * 128 * 576 * 2


@ptx_kernel
def numbered(x: Ptr[u32]):
    x[ptx.ctaid.x * 32 + ptx.tid.x] = ptx.ctaid.x * 100 + ptx.tid.x


def test_chosen_blocks_are_recorded_and_all_are_run() -> None:
    x = np.full(10 * 32, 0xFFFFFFFF, np.uint32)
    with timeline(blocks=[7, (2,), (9, 0, 0)]) as t:
        numbered[10, 32](x)
    assert (x.reshape(10, 32) == np.arange(10)[:, None] * 100 + np.arange(32)).all()
    assert [warp.block[0] for warp in t.launches[0].warps] == [2, 7, 9]
    y = np.full(4 * 32, 0xFFFFFFFF, np.uint32)
    with timeline() as t:
        numbered[4, 32](y)
        numbered[1, 32](y)
    assert [launch.name for launch in t.launches] == ["numbered[4, 32]", "numbered[1, 32]"]
    assert repr(t) == "<timeline of numbered[4, 32], numbered[1, 32]>"


def test_trace_is_one_that_perfetto_reads(tmp_path: Path) -> None:
    x = np.zeros(2 * 12 * NBYTES // 4, np.uint32)
    with timeline() as t:
        ring.configure(2, 64, shared=3 * NBYTES)(x, np.zeros(32, np.float32), 4, 10, stages=3)
        swap[2, 32](np.zeros(64, np.float32), 20)
    t.perfetto(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text("utf-8"))
    threads: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    counts: dict[str, set[Any]] = defaultdict(set)
    for event in found["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= event.keys()
        counts[event["ph"]].add(event.get("id"))
        if event["ph"] == "X":
            assert event["dur"] > 0
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(counts) == {"M", "X", "b", "e", "s", "f"}
    assert counts["b"] == counts["e"]
    assert counts["s"] == counts["f"]
    assert not counts["b"] & counts["s"]
    assert len({process for process, _ in threads}) == 4
    for spans in threads.values():
        assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(spans))
    last = max(end for spans in threads.values() for _, end in spans)
    assert last <= sum(launch.clocks for launch in t.launches) / 1000 + 1e-9
    names = {event["args"]["name"] for event in found["traceEvents"] if event["ph"] == "M" and "name" in event["args"]}
    assert {"warp 0", "warp 1", "copies", "ring[2, 64] block (1, 0, 0)"} <= names


class _Page(HTMLParser):
    """What a page is made of; every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.kinds: dict[str, int] = defaultdict(int)
        self.linked: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.kinds[f"{tag}.{given.get('class')}"] += 1
        self.linked += [name for name in given if name in ("src", "href")]
        if tag not in ("meta", "input", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "line":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_needs_no_other_file(tmp_path: Path) -> None:
    with timeline() as t:
        ring.configure(1, 64, shared=3 * NBYTES)(np.zeros(12 * NBYTES // 4, np.uint32), np.zeros(32, np.float32), 4, 10,
                                                 stages=3)
    t.html(tmp_path / "t.html")
    page = _Page()
    text = (tmp_path / "t.html").read_text("utf-8")
    page.feed(text)
    assert not page.open
    assert not page.linked
    assert "http" not in text
    assert page.kinds["svg.None"] == 1
    assert page.kinds["rect.mbarrier"] >= 4
    assert page.kinds["rect.run"] > 4
    assert page.kinds["rect.copy"] >= 1
    assert page.kinds["line.None"] >= 1
    assert "mbarrier pipe_full[0]" in page.text
    assert "let go on by warp 1 of block 0" in page.text


def test_too_many_events_are_left_out_and_said() -> None:
    x = np.zeros(96, np.float32)
    with timeline(limit=100) as t:
        late[1, 96](x, 500)
    assert x[0] == 0
    assert x[95] == 500
    assert "; what comes after the first 100 events (limit=) is left out" in str(t)


def test_a_launch_that_fails_raises_its_own_error() -> None:
    t = timeline()
    with pytest.raises(MemoryFault, match=r"load from x\[4\]: x is f32\[4\]"), t:
        late[1, 96](np.zeros(4, np.float32), 1)
    with pytest.raises(LaunchError, match="no launch has come to its end"):
        t.table()


def message(error: pytest.ExceptionInfo[LaunchError]) -> str:
    return str(error.value)


def test_errors_word_for_word() -> None:
    x = np.zeros(64, np.uint32)
    with timeline() as t:
        pass
    for use in (t.table, lambda: t.html("unwritten.html"), lambda: t.perfetto("unwritten.json"), lambda: str(t)):
        with pytest.raises(LaunchError) as error:
            use()
        assert "no launch has come to its end within `with ptxdsl.timeline()`" in message(error)
        assert "hint: `with ptxdsl.timeline() as t: kernel[grid, block](...)`" in message(error)
    for blocks in (2, (2,), [(0, 1)], [(0, 0, 1)]):
        with pytest.raises(LaunchError) as error, timeline(blocks=blocks):
            numbered[2, 32](x)
        given = blocks if isinstance(blocks, int) else next(iter(blocks))
        assert f"there is no block {given} in a grid of (2, 1, 1)" in message(error)
    for wrong in ([], [-1], ["a"], [(0, 0, 0, 0)], [1.0]):
        with pytest.raises(LaunchError) as error:
            timeline(blocks=wrong)  # type: ignore[arg-type]
        wanted = f"blocks are the blocks to record, each an int or an index of up to 3 ints, not {wrong!r}"
        assert wanted in message(error)
    with pytest.raises(LaunchError) as error:
        timeline(limit=0)
    assert "limit is the number of events to record at most, a positive int, not 0" in message(error)
    with pytest.raises(LaunchError, match="there is no description of a GPU 'h201'"):
        timeline(gpu="h201")
    with pytest.raises(LaunchError) as error, timeline() as t:
        t.launching(numbered, {}, "gpu")
    assert "ptxdsl.timeline() observes the emulator, and kernel `numbered` is launched on a GPU" in message(error)
