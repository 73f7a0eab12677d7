"""What is proven of accesses is true of what threads touch: random kernels, run thread by thread."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import ptxdsl
import pytest
from footprint_programs import Kernel, Touch, random_kernel
from ptxdsl import Ptr, break_if, local, loop, ptx, ptx_kernel, reg, shared, u8, u32, use, when
from ptxdsl.emulator.analysis import block_cases
from ptxdsl.emulator.analysis.disjointness import Footprint, is_within
from ptxdsl.emulator.analysis.linear_values import Part, Value
from ptxdsl.emulator.instructions.instrumentation import ShadowCheck
from ptxdsl.emulator.sanitizer import instrumentation, proofs
from ptxdsl.emulator.sanitizer.accesses import checked_access
from ptxdsl.emulator.sanitizer.sanitizer import collect

Found = tuple[proofs.Proven, list[int]]


def proven(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Found:
    """What is proven of a launch, which is not run, and the places of the kernel's accesses."""
    found: list[Any] = []

    class Done(Exception):
        pass

    def prove(launch: Any, overlap: bool) -> Any:
        made = proofs._Kernel(launch.spaces, launch.config.block)
        found.append((made.proven(launch, overlap), [
            place for place, s in made.statements if checked_access(s.form) is not None
        ]))
        raise Done

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    data = [np.zeros(1 << 14, np.uint8) for _ in range(2)]
    with use("emulator"), pytest.raises(Done):
        ptxdsl.load(kernel.text)["k"].configure(kernel.grid, kernel.block, sanitize="all")(*data, kernel.n)
    return found[0]


def races(touches: list[Touch], arrays: dict[int, str], roles: dict[int, bool]) -> set[int]:
    """The accesses that touch a byte which another thread writes, or write one which another thread touches."""
    by_byte: dict[Any, list[Touch]] = defaultdict(list)
    for touch in touches:
        if arrays[touch.access] == "l":
            continue
        shared = arrays[touch.access] in "st"
        for byte in range(touch.start, touch.start + touch.nbytes):
            by_byte[(touch.array, byte, *((touch.block, touch.interval) if shared else ()))].append(touch)
    found = set()
    for group in by_byte.values():
        threads: dict[str, set[tuple[int, int]]] = {"read": set(), "write": set(), "atomic": set()}
        kinds = ["atomic" if roles[touch.access] else "write" if touch.writes else "read" for touch in group]
        for touch, kind in zip(group, kinds):
            threads[kind].add((touch.block, touch.thread))
        for touch, kind in zip(group, kinds):
            others = threads["write"] | (threads["atomic"] if kind != "atomic" else set())
            others |= threads["read"] if kind != "read" else set()
            if others - {(touch.block, touch.thread)}:
                found.add(touch.access)
    return found


def unwritten(touches: list[Touch], arrays: dict[int, str], roles: dict[int, bool]) -> set[int]:
    """The reads of shared memory that no thread had written before the last barrier, and of a thread's own memory."""
    found, own = set(), set()
    for touch in touches:
        if arrays[touch.access] == "l":
            places = {(touch.block, touch.thread, byte) for byte in range(touch.start, touch.start + touch.nbytes)}
            if touch.writes:
                own |= places
            elif places - own:
                found.add(touch.access)
    first: dict[Any, int] = {}
    for touch in touches:
        if touch.writes and not roles[touch.access]:
            for byte in range(touch.start, touch.start + touch.nbytes):
                key = touch.block, touch.array, byte
                first[key] = min(first.get(key, 1 << 30), touch.interval)
    return found | {
        touch.access for touch in touches if arrays[touch.access] in "st" and (not touch.writes or roles[touch.access])
        for byte in range(touch.start, touch.start + touch.nbytes)
        if first.get((touch.block, touch.array, byte), 1 << 30) >= touch.interval
    }


def judge(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Hold the proofs to the truth; accesses that are proven, that could be, and those found written."""
    kernel = random_kernel(seed)
    touches = kernel.touches()
    if touches is None:
        return 0, 0, 0
    found, places = proven(kernel, monkeypatch)
    roles = kernel.atomic
    assert len(places) == len(kernel.arrays)
    racing = races(touches, kernel.arrays, roles)
    wrong = {number for number, place in enumerate(places) if place in found.ordered} & racing
    assert not wrong, (seed, wrong, kernel.text, kernel.grid, kernel.block, kernel.n)
    early = unwritten(touches, kernel.arrays, roles)
    wrong = {number for number, place in enumerate(places) if place in found.written} & early
    assert not wrong, (seed, wrong, kernel.text, kernel.grid, kernel.block, kernel.n)
    return len(found.ordered), len(places) - len(racing), len(found.written)


def test_random_kernels(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array([judge(int(rng.integers(1 << 40)), monkeypatch) for _ in range(50)]).sum(axis=0)
    assert counts[0]


def test_random_kernels_by_cases(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Whatever is left: all executions are cut, and nothing that is wrong is proven."""
    real, cut = block_cases.execute, []

    def execute(*arguments: Any) -> Any:
        found = real(*arguments)
        most = arguments[-1][0][1]
        cut.append(most)
        return found._replace(aligned=False, cuts=found.cuts | {(0, at) for at in range(1, 4)})

    monkeypatch.setattr(block_cases, "execute", execute)
    for _ in range(12):
        judge(int(rng.integers(1 << 40)), monkeypatch)
    assert len(set(cut)) > 1


def test_a_multiple_that_wraps_around_is_anywhere() -> None:
    written = np.zeros(64, bool)
    written[32:] = True
    for low, high, found in [(32, 48, True), (0, 48, False), (1 << 30, 1 << 33, False)]:
        value = Value({None: Part(low, step=16, low=low, high=high)}, 32, "s")
        assert is_within(Footprint(value, 4, None, False), written) == found


# Right kernels, of which nothing is left to check, and the same just beside a proof

Case = tuple[Any, dict[str, Any], dict[str, Any], str]


@ptx_kernel
def stride(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y.store((ptx.tid.x >> k) * 4, [ptx.tid.x, n, n, n])


@ptx_kernel
def modulus(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[ptx.tid.x & (k - 1)] = ptx.tid.x


@ptx_kernel
def offsets(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[ptx.tid.x] = ptx.tid.x
    y[ptx.tid.x + k] = ptx.tid.x


@ptx_kernel
def plane(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[ptx.tid.y * k + ptx.tid.x] = ptx.tid.y


@ptx_kernel
def blocks(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[ptx.ctaid.x * k + ptx.tid.x] = ptx.ctaid.x


@ptx_kernel
def wraps(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[(ptx.tid.x * k) >> 24] = ptx.tid.x


@ptx_kernel
def grid_stride(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    every = ptx.ntid.x * ptx.nctaid.x - k
    with loop(ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, n, every) as i:
        y[i] = ptx.ctaid.x * 64 + ptx.tid.x


@ptx_kernel
def rows(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    row, column = ptx.ctaid.y * 4 + ptx.tid.y, ptx.ctaid.x * 8 + ptx.tid.x
    with when((row < n) & (column < n + k)):
        y[row * n + column] = row


@ptx_kernel
def loaded(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[x[ptx.tid.x] * k + ptx.tid.x] = ptx.tid.x


@ptx_kernel
def bytes_of_words(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s = shared(u8, 256)
    s[ptx.tid.x * k] = 1
    s[ptx.tid.x * k + 1] = 2


@ptx_kernel
def neighbour(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    with loop(0, 3) as i:
        s[t] = i
        ptx.bar.sync(0)
        y[t] = s[(t + 1) & 63]
        if not k:
            ptx.bar.sync(0)


@ptx_kernel
def named_barrier(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = t
    if k:
        ptx.bar.sync((t >> 5) + 1, 32)
    else:
        ptx.bar.sync(1, 64)
    y[t] = s[t ^ 32]


@ptx_kernel
def counted(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    ptx.red.shared.add.u32(s + (x[t] & 7), 1)
    if not k:
        ptx.bar.sync(0)
    y[t] = s[t]


@ptx_kernel
def halves(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = t
    ptx.bar.sync(0)
    with when(t < 32 + k):
        s[t] += s[t + 31]


@ptx_kernel
def holes(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    with when(t < 64 - k):
        s[t] = t
    ptx.bar.sync(0)
    y[t] = s[63 - t]


@ptx_kernel
def filled(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 128), ptx.tid.x
    with loop(t, n - k, 32) as i:
        s[i] = i
    ptx.bar.sync(0)
    y[t] = s[t + 64]


@ptx_kernel
def alternating(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 128), ptx.tid.x
    s[t] = t
    s[t + 64] = t
    ptx.bar.sync(0)
    with loop(0, n >> 7) as i:
        s[((i + k) & 1) * 64 + t] = s[(~i & 1) * 64 + ((t + 1) & 63)]
        ptx.bar.sync(0)
    y[t] = s[t]


@ptx_kernel
def one_warp(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    with loop(0, 3) as i:
        s[t] = i
        ptx.bar.warp.sync(0xFFFFFFFF)
        y[t] = s[(t + 1) & 31]
        if not k:
            ptx.bar.warp.sync(0xFFFFFFFF)


@ptx_kernel
def diagonals(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[ptx.tid.x * 100 + ptx.ctaid.x * (99 + k)] = ptx.ctaid.x


@ptx_kernel
def trips(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    row = ptx.ctaid.x * 2 + (ptx.tid.x >> 5)
    with loop(ptx.tid.x & 31, n + k, 32) as i:
        y[row * n + i] = row


@ptx_kernel
def own_array(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    a, t = local(u32, 8), ptx.tid.x
    with loop(k, 8) as i:
        a[i] = i
    y[t] = a[x[t] & 7]


@ptx_kernel
def swapped(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t, now = shared(u32, 128), ptx.tid.x, reg(u32, 0)
    s[t] = t
    s[t + 64] = t
    ptx.bar.sync(0)
    with loop(0, n >> 7):
        s[(1 - now) * (64 - 64 * k) + t] = s[now * 64 + ((t + 1) & 63)]
        ptx.bar.sync(0)
        now ^= 1
    y[t] = s[t]


@ptx_kernel
def shifted(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """Halves that alternate; how far away a number is read the other array says: of the other half with k."""
    s, t = shared(u32, 128), ptx.tid.x
    s[t] = t
    s[t + 64] = t
    ptx.bar.sync(0)
    with loop(0, 6) as i:
        half = (i & 1) * 64
        s[(64 - half) + t] = s[half + t] + s[(half + 64 * k + ((t + x[i]) & 63)) & 127]
        ptx.bar.sync(0)
    y[t] = s[t]


@ptx_kernel
def confirmed(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """Largest numbers by compare-and-swap; with k a thread stores another one besides."""
    at, value = y + (ptx.tid.x & 7), x[ptx.tid.x] + ptx.tid.x
    with loop():
        old = at[0]
        break_if(old >= value)
        break_if(ptx.atom.global_.cas.b32(at, old, value) == old)
    with when(ptx.tid.x < k):
        y[3] = 7


@ptx_kernel
def one_number(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    y[x[ptx.tid.x]] = n + 1
    with when(ptx.tid.x < 3):
        y[ptx.tid.x] = n + 1 - k


@ptx_kernel
def columns(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """A column a thread, from below; the guard leaves out threads of the last block."""
    column = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(column < n):
        at, row = reg(u32, column + 5 * (n - k)), reg(u32, 6)
        with loop() as turn:
            y[at] = row
            at -= n - k
            row -= 1
            break_if(row == 0)


@ptx_kernel
def squares(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    """Squares of 8x8 side by side, each of 8 rows of a thread block's; n of them make a row of the array."""
    square = ptx.ctaid.x * 8 + (ptx.tid.x >> 3)
    with when(square < n):
        for row in range(8):
            y[row * (8 * n - k) + square * 8 + (ptx.tid.x & 7)] = ptx.tid.x


NEAR: list[Case] = [
    (columns, {"k": 0, "grid": 2, "n": 101}, {"k": 1, "grid": 2, "n": 101}, "race"),
    (squares, {"k": 0, "grid": 3, "n": 19}, {"k": 8, "grid": 3, "n": 19}, "race"),
    (one_number, {"k": 0}, {"k": 1}, "race"),
    (own_array, {"k": 0}, {"k": 1}, "init"), (swapped, {"k": 0}, {"k": 1}, "race"),
    (alternating, {"k": 0}, {"k": 1}, "race"), (one_warp, {"k": 0, "block": 32}, {"k": 1, "block": 32}, "race"),
    (diagonals, {"k": 0, "grid": 5}, {"k": 1, "grid": 5}, "race"),
    (trips, {"k": 0, "grid": 3, "n": 101}, {"k": 1, "grid": 3, "n": 101}, "race"),
    (stride, {"k": 0}, {"k": 1}, "race"), (modulus, {"k": 64}, {"k": 32}, "race"),
    (offsets, {"k": 64}, {"k": 63}, "race"), (plane, {"k": 16, "block": (16, 4)}, {"k": 15, "block": (16, 4)}, "race"),
    (blocks, {"k": 64, "grid": 5}, {"k": 63, "grid": 5}, "race"),
    (wraps, {"k": 1 << 26}, {"k": 1 << 27}, "race"),
    (grid_stride, {"k": 0, "grid": 3}, {"k": 1, "grid": 3}, "race"),
    (rows, {"k": 0, "block": (8, 4), "grid": (14, 28), "n": 100 + 7},
     {"k": 1, "block": (8, 4), "grid": (14, 28), "n": 100 + 7}, "race"),
    (loaded, {"k": 64}, {"k": 59}, "race"), (bytes_of_words, {"k": 2}, {"k": 1}, "race"),
    (neighbour, {"k": 0}, {"k": 1}, "race"), (named_barrier, {"k": 0}, {"k": 1}, "race"),
    (counted, {"k": 0}, {"k": 1}, "race"), (halves, {"k": -1}, {"k": 0}, "race"), (holes, {"k": 0}, {"k": 1}, "init"),
    (shifted, {"k": 0}, {"k": 1}, "race"), (confirmed, {"k": 0, "grid": 3}, {"k": 1, "grid": 3}, "race"),
    (filled, {"k": 0, "n": 128}, {"k": 1, "n": 128}, "init"),
]


def kinds(kernel: Any, options: dict[str, Any]) -> set[str]:
    """The kinds of findings of a launch."""
    chosen = {"block": 64, "grid": 1, "n": 1000} | options
    x, y = np.arange(1 << 14, dtype=np.uint32) % 5, np.zeros(1 << 14, np.uint32)
    with use("emulator"), collect() as findings:
        kernel.configure(chosen["grid"], chosen["block"], sanitize=("race", "init"))(x, y, chosen["n"], k=chosen["k"])
    return {finding.kind for finding in findings}


@pytest.mark.parametrize("case", NEAR, ids=lambda case: case[0].__name__)
def test_beside_a_proof(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, right, wrong, kind = case
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    assert not kinds(kernel, right)
    assert made[0].written if kind == "init" else made[0].ordered
    assert kinds(kernel, wrong) == {kind}


def test_reads_that_no_write_comes_near_need_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    assert not kinds(shifted, {"k": 0})
    left = [place for place, _ in made[0].arrays if place not in made[0].ordered]
    assert len(left) == 3  # what is stored in each turn, what is read anywhere, and all of the array x


# Code as Numba makes it: sizes are 64-bit parameters as pointers are, and negative indices count from the end

WIDE = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y_p, .param .u64 n_p, .param .u64 m_p) {
    .reg .b32 %r<3>;
    .reg .b64 %d<20>;
    .reg .pred %p;
    ld.param.u64 %d1, [y_p];
    ld.param.u64 %d2, [n_p];
    ld.param.u64 %d3, [m_p];
    mov.u32 %r1, %tid.x;
    cvt.s64.s32 %d4, %r1;
    mov.u32 %r2, %ctaid.x;
    cvt.s64.s32 %d5, %r2;
    setp.ge.s64 %p, %d4, %d3;
    @%p ret;
    shr.s64 %d6, %d5, 63;
    and.b64 %d7, %d6, %d2;
    add.s64 %d8, %d7, %d5;
    shr.s64 %d9, %d4, 63;
    and.b64 %d10, %d9, %d3;
    add.s64 %d11, %d10, %d4;
    mul.lo.s64 %d12, %d8, %d2;
    add.s64 %d13, %d12, %d11;
    shl.b64 %d14, %d13, 2;
    add.s64 %d15, %d1, %d14;
    st.global.u32 [%d15], %r2;
    ret;
}
"""


@pytest.mark.parametrize(("columns", "wrong"), [(61, False), (62, True)])
def test_sizes_of_64_bits(columns: int, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[bool] = []
    real = instrumentation.Instrumentation._leave_out

    def leave_out(self: Any) -> None:
        real(self)
        left.append(any(map(any, self.accesses.values())))

    monkeypatch.setattr(instrumentation.Instrumentation, "_leave_out", leave_out)
    y = np.zeros(7 * 61 + 1, np.uint32)
    with use("emulator"), collect() as findings:
        ptxdsl.load(WIDE)["k"].configure(7, 64, sanitize="race")(y, 61, columns)
    assert {finding.kind for finding in findings} == ({"race"} if wrong else set())
    assert left[-1] == wrong  # nothing is left to check in the right one


def test_a_size_is_no_array() -> None:
    """What is computed from a pointer and 64-bit sizes stays in the array of the pointer."""
    both = np.zeros(200, np.uint32)
    with use("emulator"), pytest.raises(ptxdsl.MemoryFault, match="y_p"):
        ptxdsl.load(WIDE.replace("y_p, ", "x_p, .param .u64 y_p, "))["k"][3, 32](both[100:], both[:100], 40, 32)


@ptx_kernel
def tiles(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, t = shared(u32, 128), ptx.tid.x
    with loop(0, n) as i:
        s[t] = i
        ptx.bar.warp.sync(0xFFFFFFFF)
        y[t] = s[((t + 1) & 31) + (((t + 32) & 32) if k == 2 else (t & 32))]
        if k != 1:
            ptx.bar.warp.sync(0xFFFFFFFF)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_tiles_of_warps(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    assert kinds(tiles, {"k": k, "n": 5}) == ({"race"} if k else set())
    assert len(made[0].ordered) == (1 if k else 3)  # that of y, and those of the tiles


@ptx_kernel
def unrolled(x: Ptr[u32], y: Ptr[u32], n: u32, *, k: int) -> None:
    s, own, t = shared(u32, 64), local(u32, 4), ptx.tid.x
    s[t] = n
    for place in range(4):
        own[place] = n
    ptx.bar.sync(0)
    for turn in range(420):
        own[turn & 3] = own[(turn + 1) & 3] + s[(t + turn) & 63]
    if not k:
        ptx.bar.sync(0)
    s[t] = own[0]


@pytest.mark.parametrize("k", [0, 1])
def test_many_accesses(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    assert kinds(unrolled, {"k": k}) == ({"race"} if k else set())
    assert len(made[0].written) == 2 + 420 + 4 + 2 * 420 + 1
    assert len(made[0].ordered) == (1 + 7 if k else 422)  # each 64th turn reads what its thread writes


# Execution that takes long, copies that are incomplete, addresses whose bits are moved


def test_what_comes_again_is_executed_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    monkeypatch.setattr(proofs, "EFFORT", 300)
    for _ in range(12):
        assert kinds(swapped, {"k": 0, "n": 5001}) == set()
    counts = [len(found.ordered) for found in made]
    assert counts == sorted(counts) and counts[0] < counts[-1]


COPY = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{{
    .reg .b32 %r<20>, %a, %b; .reg .b64 %rd<4>; .reg .pred %p;
    .shared .align 128 .b8 s[2048];
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r9, [n];
    mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 16, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd1;
    mov.u32 %r1, s; shl.b32 %r2, %r0, 4; bfe.u32 %r3, %r0, 3, 3; shl.b32 %r3, %r3, 4; xor.b32 %r2, %r2, %r3;
    {first} mov.u32 %r10, 0;
    cp.async.cg.shared.global [%a], [%rd0], 16; cp.async.commit_group;
LOOP:
    and.b32 %r4, %r10, 1; shl.b32 %r4, %r4, 10; xor.b32 %r5, %r4, {next};
    add.u32 %b, %a, %r5;
    cp.async.cg.shared.global [%b], [%rd0], 16; {commit}
    {wait}
    {barrier}
    shfl.sync.idx.b32 %r6, %r2, {lane}, 31, -1; lop3.b32 %r6, %r6, %r4, 4, 0xfe; add.u32 %r6, %r6, %r1;
    ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd1], %r7;
    {after}
    add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, %r9; @%p bra LOOP;
    ret;
}}
"""
PIPELINE = {
    "first": "add.u32 %a, %r1, %r2;",
    "next": "1024", "commit": "cp.async.commit_group;", "wait": "cp.async.wait_group 1;", "barrier": "bar.sync 0;",
    "lane": "5", "after": "bar.sync 0;",
}


@pytest.mark.parametrize(("changed", "found"), [
    ({}, None), ({"wait": "cp.async.wait_all;"}, None), ({"wait": "cp.async.wait_group 2;"}, {"init"}),
    ({"wait": ""}, {"init"}), ({"commit": ""}, {"init"}), ({"barrier": ""}, {"race"}),
    ({"barrier": "bar.warp.sync -1;"}, set()), ({"lane": "%r10"}, None), ({"after": ""}, {"race"}),
    ({"next": "0"}, {"init"}), ({"wait": "", "barrier": "bar.sync 0; cp.async.wait_group 1;"}, set()),
    ({"first": "mov.u32 %a, %r0; add.u32 %a, %r1, %r2;"}, None),
    ({"first": "mov.u32 %a, %r0; add.u32 %a, %r1, %r2;", "barrier": ""}, {"race"}),
])
def test_a_pipeline_of_copies(changed: dict[str, str], found: set[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the right ones (None) nothing is left to check; of those beside them what is wrong is found."""
    made: list[Any] = []

    def prove(*arguments: Any) -> Any:
        made.append(proofs.proven(*arguments))
        return made[-1]

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", prove)
    x, y = np.zeros(1 << 12, np.uint8), np.zeros(64, np.uint32)
    with use("emulator"), collect() as findings:
        kernel = ptxdsl.load(COPY.format(**PIPELINE | changed))["k"]
        kernel.configure(1, 64, sanitize=("race", "init"))(x, y, 7)
    assert {finding.kind for finding in findings} == (found or set())
    proven_all = len(made[0].ordered) == 4 and len(made[0].written) == 3
    codes = [code for _, _, code in kernel.compiled({}).program.codes("k")]
    checked = any(isinstance(placed.op, ShadowCheck) for code in codes for placed in code.micro_ops)
    assert proven_all == (not checked) == (found is None)
