"""The profiler's counters against numbers counted by hand, and its table, picture and page."""

from __future__ import annotations

import doctest
import re
import struct
import threading
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, LaunchError, Ptr, PtxError, f16, f32, f64, loop, printf, profile, ptx, ptx_func, ptx_kernel, reg, shared, u8,
    u32, when,
)
from ptxdsl.config import override
from ptxdsl.emulator.runtime import worker_pool
from ptxdsl.emulator.runtime.block_state import BlockState
from ptxdsl.emulator.tools.counters import Counters
from ptxdsl.isa.arithmetic import flops
from ptxdsl.isa import lookup

pytestmark = pytest.mark.usefixtures("emulated")


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def strided(x: Ptr[f32], y: Ptr[f32], *, stride: int = 1):
    i = ptx.tid.x
    y[i] = x[i * stride]


@ptx_kernel
def transposed(x: Ptr[f32], y: Ptr[f32], *, pad: int = 0):
    tile = shared(f32, 32, 32 + pad)
    column, row = ptx.tid.x, ptx.tid.y
    tile[row, column] = x[row * 32 + column]
    ptx.bar.sync(0)
    y[row * 32 + column] = tile[column, row]


def line_with(p: profile, text: str) -> Counters:
    """The counters of the only line that contains a text."""
    found = [line for line in p.lines if text in line.source]
    assert len(found) == 1, [line.source for line in p.lines]
    return found[0].counters


@pytest.mark.parametrize("threads", [2, 3])
def test_each_host_thread_counts_for_itself(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """All of them together count what one does."""
    by: list[int] = []
    met = threading.Barrier(threads)
    run, wake, here = BlockState.run, worker_pool.WorkerPool.wake, threading.get_ident()

    def noted(self: BlockState, turns: int) -> int:
        me = threading.get_ident()
        if me not in by and (me != here or woken):
            by.append(me)
            met.wait(60)  # none has done all of the blocks before the last has come
        return run(self, turns)

    def waking(self: worker_pool.WorkerPool, taken: int = 0) -> None:
        wake(self, taken)
        if self.woken == threads - 1:
            woken.append(True)

    woken: list[bool] = []
    n = int(np.random.default_rng().integers(9000, 12000))
    with override(emulator_threads=1):
        alone = run_saxpy(n, -(-n // 256))
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-9)
    monkeypatch.setattr(worker_pool, "FIRST_BLOCKS", 1)
    monkeypatch.setattr(BlockState, "run", noted)
    monkeypatch.setattr(worker_pool.WorkerPool, "wake", waking)
    with override(emulator_threads=threads):
        together = run_saxpy(n, -(-n // 256))
    assert len(by) == threads
    assert together.totals == alone.totals
    assert [row.counters for row in together.instructions] == [row.counters for row in alone.instructions]


def run_saxpy(n: int = 1000, blocks: int = 4) -> profile:
    rng = np.random.default_rng()
    x, y = rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    expected = np.float32(3) * x + y
    with profile() as p:
        saxpy[blocks, 256](n, 3.0, x, y)
    np.testing.assert_array_equal(y, expected)
    return p


def test_contiguous_accesses_take_four_sectors_a_request() -> None:
    line = line_with(run_saxpy(1024), "y[i] = a")
    assert line.global_requests == 3 * 32
    assert line.sectors_per_request == 4.0
    assert line.read == {"global": 2 * 4 * 1024}
    assert line.written == {"global": 4 * 1024}
    assert line.flops == {"f32": 2 * 1024}
    assert line.intensity == pytest.approx(2 / 12)


def test_a_tail_has_fewer_lanes_and_sectors_and_one_divergent_branch() -> None:
    p = run_saxpy(1000)  # 31 full warps; in the last one 8 lanes work, of 1 sector an access
    line = line_with(p, "y[i] = a")
    assert line.executions % 32 == 0
    assert line.lanes_per_execution == pytest.approx(1000 / 32)
    assert line.global_sectors == 3 * (31 * 4 + 1)
    assert line.flops == {"f32": 2000}
    assert line_with(p, "when(i < n)").divergent_branches == 1
    assert p.totals.divergent_branches == 1


def test_whole_warps_beyond_the_end_do_not_diverge() -> None:
    p = run_saxpy(512)
    assert p.totals.divergent_branches == 0
    assert line_with(p, "when(i < n)").lanes_per_execution == 32
    assert line_with(p, "y[i] = a").global_requests == 3 * 16


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (3, 12), (4, 16), (8, 32), (16, 32), (0, 1)])
def test_sectors_of_strided_loads(stride: int, sectors: int) -> None:
    x, y = np.arange(32 * 16, dtype=np.float32), np.full(32, np.nan, np.float32)
    with profile() as p:
        strided[1, 32](x, y, stride=stride)
    np.testing.assert_array_equal(y, x[: 32 * stride : stride] if stride else np.zeros(32))
    load = next(row for row in p.instructions if row.text.startswith("ld.global"))
    assert load.counters.sectors_per_request == sectors
    assert load.counters.read == {"global": 128}


@pytest.mark.parametrize("shift", [0, 1, 5, 8])
def test_an_array_begins_at_a_sector_wherever_numpy_put_it(shift: int) -> None:
    x, y = np.arange(64, dtype=np.float32)[shift : shift + 32], np.zeros(32, np.float32)
    with profile() as p:
        strided[1, 32](x, y)
    assert p.totals.global_sectors == 8


def test_an_access_across_sectors() -> None:
    @ptx_kernel
    def shifted(x: Ptr[f32], y: Ptr[f32]):
        y[ptx.tid.x] = x[ptx.tid.x + 1]

    x, y = np.arange(33, dtype=np.float32), np.zeros(32, np.float32)
    with profile() as p:
        shifted[1, 32](x, y)
    assert [row.counters.global_sectors for row in p.instructions if row.counters.global_requests] == [5, 4]


def test_wide_and_narrow_elements() -> None:
    @ptx_kernel
    def copy(d: Ptr[f64], b: Ptr[u8], v: Ptr[f32], out: Ptr[f32]):
        i = ptx.tid.x
        d[i] = d[i] + d[i]
        b[i] = b[i]
        out.store(i * 4, v.load(i * 4, width=4))

    d, b = np.ones(32), np.arange(32, dtype=np.uint8)
    v, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    with profile() as p:
        copy[1, 32](d, b, v, out)
    np.testing.assert_array_equal(out, v)
    assert line_with(p, "d[i] = d[i]").sectors_per_request == 8
    assert line_with(p, "d[i] = d[i]").flops == {"f64": 32}
    assert line_with(p, "b[i] = b[i]").sectors_per_request == 1
    assert line_with(p, "out.store").sectors_per_request == 16
    assert line_with(p, "out.store").read == {"global": 512}


@pytest.mark.parametrize(("pad", "ways"), [(0, 32), (1, 1), (2, 2), (8, 8), (16, 16)])
def test_bank_conflicts_of_a_column(pad: int, ways: int) -> None:
    x, y = np.arange(1024, dtype=np.float32), np.full(1024, np.nan, np.float32)
    with profile() as p:
        transposed[1, (32, 32)](x, y, pad=pad)
    np.testing.assert_array_equal(y.reshape(32, 32), x.reshape(32, 32).T)
    load = next(row for row in p.instructions if row.text.startswith("ld.shared")).counters
    assert load.shared_requests == 32
    assert load.conflict_ways == ways
    assert load.bank_conflicts == 32 * (ways - 1)
    store = next(row for row in p.instructions if row.text.startswith("st.shared")).counters
    assert (store.conflict_ways, store.bank_conflicts, store.written) == (1, 0, {"shared": 4096})


def test_a_broadcast_and_bytes_of_one_word_are_no_conflict() -> None:
    @ptx_kernel
    def broadcast(y: Ptr[f32]):
        tile, small = shared(f32, 64), shared(u8, 64)
        tile[ptx.tid.x] = 1.0
        small[ptx.tid.x] = u8(1) if False else ptx.cvt.u8.u32(ptx.tid.x)
        ptx.bar.sync(0)
        y[ptx.tid.x] = tile[0]

    y = np.zeros(32, np.float32)
    with profile() as p:
        broadcast[1, 32](y)
    assert p.totals.bank_conflicts == 0
    assert p.totals.conflict_ways == 1


@pytest.mark.parametrize(("element", "stride", "wavefronts", "least"), [
    (f64, 1, 2, 2), (f64, 2, 4, 2), (f64, 16, 32, 2), (f32, 2, 2, 1), (f32, 3, 1, 1), (f32, 64, 32, 1),
])
def test_wavefronts_by_width(element: Any, stride: int, wavefronts: int, least: int) -> None:
    @ptx_kernel
    def store(x: Ptr[u32]):
        tile = shared(element, 32 * 64)
        tile[ptx.tid.x * stride] = 1.0

    with profile() as p:
        store[1, 32](np.zeros(1, np.uint32))
    assert (p.totals.shared_wavefronts, p.totals.bank_conflicts) == (wavefronts, wavefronts - least)


def test_vectors_in_shared_memory_go_in_four_phases() -> None:
    @ptx_kernel
    def store():
        tile = shared(f32, 128)
        tile.store(ptx.tid.x * 4, [reg(f32, 1.0)] * 4)

    with profile() as p:
        store[1, 32]()
    assert (p.totals.shared_requests, p.totals.shared_wavefronts, p.totals.bank_conflicts) == (1, 4, 0)
    assert p.totals.written == {"shared": 512}


def test_atomics_on_one_word_of_shared_memory_conflict() -> None:
    @ptx_kernel
    def total(out: Ptr[u32]):
        cell = shared(u32, 1)
        cell[0] = 0
        ptx.bar.sync(0)
        ptx.red.shared.add.u32(cell, 1)
        ptx.bar.sync(0)
        out[0] = cell[0]

    out = np.zeros(1, np.uint32)
    with profile() as p:
        total[1, 32](out)
    assert out[0] == 32
    assert next(row for row in p.instructions if row.text.startswith("red")).counters.conflict_ways == 32


def test_flops_and_traffic_of_a_tiled_matmul() -> None:
    n, tile = 64, 16

    @ptx_kernel
    def matmul(a: Array[f32, 2], b: Array[f32, 2], c: Array[f32, 2]):
        a_tile, b_tile = shared(f32, tile, tile), shared(f32, tile, tile)
        x, y = ptx.tid.x, ptx.tid.y
        row, column = ptx.ctaid.y * tile + y, ptx.ctaid.x * tile + x
        acc = reg(f32, 0.0)
        with loop(0, n, tile) as k:
            a_tile[y, x] = a[row, k + x]
            b_tile[y, x] = b[k + y, column]
            ptx.bar.sync(0)
            for kk in range(tile):
                ptx.fma.rn.f32(a_tile[y, kk], b_tile[kk, x], acc, out=acc)
            ptx.bar.sync(0)
        c[row, column] = acc

    rng = np.random.default_rng()
    a, b = rng.standard_normal((n, n)).astype(np.float32), rng.standard_normal((n, n)).astype(np.float32)
    c = np.full((n, n), np.nan, np.float32)
    with profile() as p:
        matmul[(n // tile, n // tile), (tile, tile)](a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)
    fma = line_with(p, "ptx.fma")
    assert fma.flops == {"f32": 2 * n**3}
    assert fma.read == {"shared": 2 * 4 * n**3}
    assert p.totals.read["global"] == 2 * 4 * n**3 // tile
    assert p.totals.intensity == pytest.approx(2 * n**3 / (2 * 4 * n**3 / tile + 4 * n * n))
    assert p.totals.bank_conflicts == 0
    barriers = [row.counters.executions for row in p.instructions if row.text.startswith("bar.sync")]
    assert barriers == [16 * 8 * 4] * 2  # blocks x warps x steps, each once although warps wait there


def test_lanes_that_wait_for_others_are_counted_once() -> None:
    @ptx_kernel
    def barriers(out: Ptr[u32]):
        lane = ptx.laneid
        value = reg(u32, 0)
        with when(lane < 16):
            value.set(lane)
        ptx.bar.warp.sync(0xFFFFFFFF)
        out[lane] = ptx.shfl.sync.idx.b32(value, 3, 31, 0xFFFFFFFF)

    out = np.zeros(32, np.uint32)
    with profile() as p:
        barriers[1, 32](out)
    assert (out == 3).all()
    counted = {row.text.split()[0]: (row.counters.executions, row.counters.lanes) for row in p.instructions}
    assert counted["shfl.sync.idx.b32"] == (1, 32)
    assert counted["bar.warp.sync"] == (1, 32)


def test_both_sides_of_a_divergent_branch() -> None:
    @ptx_kernel
    def sides(out: Ptr[u32]):
        lane = ptx.laneid
        with when((lane & 1) == 0):
            out[lane] = 7
        with ptxdsl.otherwise():
            out[lane] = 9

    out = np.zeros(64, np.uint32)
    with profile() as p:
        sides[2, 32](out)
    assert p.totals.divergent_branches == 2
    for text in ("out[lane] = 7", "out[lane] = 9"):
        assert line_with(p, text).lanes_per_execution == 16
        assert line_with(p, text).global_sectors == 2 * 4


def test_a_guarded_instruction_counts_the_lanes_that_it_works_for() -> None:
    @ptx_kernel
    def guarded(out: Ptr[u32]):
        lane = ptx.laneid
        ptx.st.global_.u32(out + lane, 5, pred=lane < 3)

    out = np.zeros(32, np.uint32)
    with profile() as p:
        guarded[1, 32](out)
    store = next(row for row in p.instructions if "st.global" in row.text).counters
    assert (store.executions, store.lanes, store.global_sectors, store.written) == (1, 3, 1, {"global": 12})


def test_packed_halves_have_two_flops_a_lane() -> None:
    @ptx_kernel
    def halves(x: Ptr[u32]):
        i = ptx.tid.x
        ptx["fma.rn.f16x2"](x[i].bits(ptxdsl.b32), x[i].bits(ptxdsl.b32), x[i].bits(ptxdsl.b32))

    assert f16.bits == 16
    with profile() as p:
        halves[1, 32](np.zeros(32, np.uint32))
    assert p.totals.flops == {"f16": 32 * 2 * 2}


def test_launches_add_up_by_kernel() -> None:
    x, y = np.zeros(256, np.float32), np.zeros(256, np.float32)
    with profile() as p:
        for _ in range(3):
            saxpy[1, 256](256, 1.0, x, y)
        saxpy[2, 128](256, 1.0, x, y)
        strided[1, 32](x, y, stride=2)
        strided[1, 32](x, y, stride=4)
    assert p.launches == {"saxpy": 4, "strided": 2}
    assert line_with(p, "y[i] = a").flops == {"f32": 4 * 512}
    assert line_with(p, "y[i] = x[i * stride]").global_sectors == 8 + 4 + 16 + 4
    assert sum(line.share for line in p.lines) == pytest.approx(1)
    assert sum(row.counters.executions for row in p.instructions) == p.totals.executions


def test_calls_and_printf(capsys: pytest.CaptureFixture[str]) -> None:
    @ptx_func
    def twice(v: f32) -> f32:
        return v * 2.0

    @ptx_kernel
    def calls(x: Ptr[f32]):
        x[ptx.tid.x] = twice(x[ptx.tid.x])
        with when(ptx.tid.x == 0):
            printf("done\n")

    x = np.ones(32, np.float32)
    with profile() as p:
        calls[1, 32](x)
    assert (x == 2).all()
    assert capsys.readouterr().out == "done\n"
    assert p.totals.flops == {"f32": 32}


def test_foreign_ptx_has_lines_of_its_text() -> None:
    m = ptxdsl.load(strided.ptx(stride=1).replace(".loc", "//.loc"))
    with profile() as p:
        m["strided"][1, 32](np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert all(line.loc.file == "<ptx>" for line in p.lines)
    assert p.totals.sectors_per_request == 4
    assert "<ptx>:" in p.table()
    assert "ld.global" in p.table(by="instruction")


def test_generic_addresses_are_judged_by_where_they_lead() -> None:
    text = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 x) {
    .reg .b64 %rd<8>; .reg .b32 %r<4>;
    .shared .align 8 .b8 tile[1024];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 8;
    mov.u64 %rd2, tile;
    cvta.shared.u64 %rd2, %rd2;
    add.u64 %rd2, %rd2, %rd1;
    st.u32 [%rd2], %r0;
    ld.param.u64 %rd3, [x];
    add.u64 %rd3, %rd3, %rd1;
    st.u32 [%rd3], %r0;
    ret;
}"""
    with profile() as p:
        ptxdsl.load(text)["k"][1, 32](np.zeros(64, np.uint32))
    assert p.totals.written == {"shared": 128, "global": 128}
    assert (p.totals.global_sectors, p.totals.shared_wavefronts) == (8, 2)


def test_nothing_is_counted_outside() -> None:
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with profile() as p:
        pass
    saxpy[1, 32](32, 1.0, x, y)
    assert p.totals == Counters()
    assert p.lines == [] and p.table() == "nothing was launched"


def test_profiles_do_not_nest() -> None:
    with profile(), pytest.raises(LaunchError, match="launches have one observer at a time"):
        with profile():
            pass
    with profile():
        pass


def test_a_gpu_is_refused() -> None:
    with profile() as p, pytest.raises(LaunchError) as caught:
        p.launching(saxpy, {}, "gpu")
    assert caught.value.message == (
        "ptxdsl.profile() observes the emulator, and kernel `saxpy` is launched on a GPU"
    )
    assert caught.value.hint == '`with ptxdsl.use("emulator"):`'


def test_checks_that_add_records_are_refused() -> None:
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with profile() as p:
        strided.configure(1, 32, sanitize=("memory", "barrier"))(x, y)
        with pytest.raises(LaunchError) as caught:
            strided.configure(1, 32, sanitize=("memory", "race"))(x, y)
    assert caught.value.message == "ptxdsl.profile() and the sanitizer's checks (race) do not run together"
    assert p.launches == {"strided": 1}


@pytest.mark.parametrize(("mnemonic", "kind", "lane", "warp"), [
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", 0, 2 * 16 * 8 * 16),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", 0, 2 * 8 * 8 * 4),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "f16", 0, 2 * 16 * 8 * 16),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "f16", 0, 2 * 16**3),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "", 0, 0),
    ("fma.rn.f32x2", "f32", 4, 0), ("fma.rn.bf16x2", "bf16", 4, 0), ("add.f32.bf16", "f32", 1, 0),
    ("atom.global.add.f32", "f32", 1, 0), ("red.global.add.u32", "", 0, 0), ("min.f32", "", 0, 0),
    ("neg.f64", "", 0, 0), ("setp.lt.f32", "", 0, 0), ("mad.lo.u32", "", 0, 0), ("rsqrt.approx.f32", "f32", 1, 0),
])
def test_flops_of_instructions(mnemonic: str, kind: str, lane: int, warp: int) -> None:
    assert {flops(form) for form in lookup(mnemonic)} == {(kind, lane, warp)}


def test_an_indirect_branch_parts_where_lanes_go_different_ways() -> None:
    text = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 mask) {
    .reg .b64 %rd<8>; .reg .b32 %r<8>;
    ld.param.u64 %rd0, [x];
    ld.param.u32 %r3, [mask];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd0, %rd0, %rd1;
    and.b32 %r1, %r0, %r3;
table: .branchtargets zero, one;
    brx.idx %r1, table;
zero:
    st.global.u32 [%rd0], 10;
    bra done;
one:
    st.global.u32 [%rd0], 11;
done:
    ret;
}"""
    for mask, divergent in ((0, 0), (1, 2)):
        out = np.zeros(64, np.uint32)
        with profile() as p:
            ptxdsl.load(text)["k"][1, 64](out, mask)
        np.testing.assert_array_equal(out, 10 + (np.arange(64) & mask))
        assert p.totals.divergent_branches == divergent


def test_table() -> None:
    p = run_saxpy(1024)
    text = p.table()
    first, head, top, *_ = text.splitlines()
    assert first == (
        "saxpy: 1 launch, 640 warp instructions, 32.0 lanes active, 2,048 f32 flops, 12,288 B of global sectors, "
        "0.167 flops/byte"
    ) or first.startswith("saxpy: 1 launch, 640 warp instructions, 32.0 lanes active, 2,048 f32 flops, 12 KiB")
    assert head.split() == "share executions lanes sectors per request read written flops".split()
    assert top.endswith("y[i] = a * x[i] + y[i]") and "4.0" in top and re.match(r"\s*\d+\.\d %", top)
    shares = [float(line.split()[0]) for line in text.splitlines()[2:]]
    assert shares == sorted(shares, reverse=True)
    order = [line.rsplit("test_profile.py:", 1)[1].split(":")[0] for line in p.table(sort="source").splitlines()[2:]]
    assert order == sorted(order, key=int)
    assert len(p.table(limit=2).splitlines()) == 4
    assert "mul.wide.u32" in p.table(by="instruction")


@pytest.mark.parametrize(("arguments", "message"), [
    ({"by": "block"}, "by of a profile's table is 'line' or 'instruction', not 'block'"),
    ({"sort": "time"}, "sort of a profile's table is 'share' or 'source', not 'time'"),
])
def test_table_refuses(arguments: Any, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        run_saxpy(32, 1).table(**arguments)
    assert caught.value.message == message


def pixels(data: bytes) -> np.ndarray:
    """An RGB picture of 8 bits, decoded by the rules of the format."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind] = body
        at += 12 + size
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert (depth, colour, rest) == (8, 2, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, 3)


def test_plot(tmp_path: Path) -> None:
    p = run_saxpy(1024)
    p.plot(tmp_path / "saxpy.png")
    picture = pixels((tmp_path / "saxpy.png").read_bytes())
    height, width, _ = picture.shape
    assert 100 < height < 1000 and 600 < width < 3000
    bars = (picture == (219, 84, 52)).all(axis=2).sum(axis=1).max()
    assert bars == pytest.approx(190 * line_with(p, "y[i] = a").executions / p.totals.executions, abs=2)
    assert (picture == 255).all(axis=2).mean() > 0.5
    with profile() as nothing:
        pass
    with pytest.raises(PtxError, match=r"a profile's picture is PNG, not '\.svg'\n.*\n  hint: `p\.plot\('a\.png'\)`"):
        nothing.plot(tmp_path / "a.svg")
    nothing.plot(str(tmp_path / "nothing.png"))
    assert (pixels((tmp_path / "nothing.png").read_bytes()) == 255).all()


class Page(HTMLParser):
    """Checks that tags nest, and gathers the text and what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "href")
            if name == "data-at":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html(tmp_path: Path) -> None:
    p = run_saxpy(1024)
    p.html(tmp_path / "saxpy.html")
    text = (tmp_path / "saxpy.html").read_text("utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert not re.search(r"https?:|url\(|@import|fetch\(", text)
    assert "        y[i] = a * x[i] + y[i]" in page.text
    assert "    with when(i < n):" in page.text
    assert any("ld.global.f32" in part for part in page.text)
    assert any(re.fullmatch(r"\$endif_\d+:", part) for part in page.text)
    assert "4.0" in page.text and "2,048" in page.text
    source, ptx_rows = {i for i in page.ids if page.ids.count(i) >= 1}, len(page.ids)
    assert len(source) == len(p.lines) and ptx_rows == len(p.lines) + len(p.instructions)


def test_html_escapes() -> None:
    from ptxdsl.emulator.tools.profile_page import page

    p = run_saxpy(32, 1)
    assert "i &lt; n" in page(p) and "when(i < n)" not in page(p)


def test_the_page_of_the_documentation() -> None:
    path = Path(__file__).parent.parent.parent.parent / "docs" / "emulator.md"
    blocks = re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, path.name, str(path), 0)
    assert len(test.examples) >= 5
    assert doctest.DocTestRunner().run(test).failed == 0
