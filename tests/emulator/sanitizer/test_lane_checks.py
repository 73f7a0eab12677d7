"""Checks of lanes that lie anyhow or are partly inactive: wrong programs and their right twins, on both tiers."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from ptxdsl import Ptr, empty, local, loop, ptx, ptx_kernel, reg, select, shared, u32, use, when
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.sanitizer.sanitizer import collect

N = 96


@ptx_kernel
def some_lanes(count: u32, y: Ptr[u32], right: u32) -> None:
    """The first threads store, the last ones load."""
    s, t = shared(u32, N), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    with when(t < count):
        s[t] = t
    with when(right != 0):
        ptx.bar.sync(0)
    with when(t >= N - count):
        y[t] = s[N - 1 - t]


@ptx_kernel
def any_places(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """A permutation of the elements, and back."""
    s, t = shared(u32, N), ptx.tid.x
    place = x[t]
    s[place] = t
    with when(right != 0):
        ptx.bar.sync(0)
    y[t] = s[t]


@ptx_kernel
def swaps(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Each thread reads and stores an element of its own, or the next warp's first thread that of another."""
    s, t = shared(u32, N), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    place = reg(u32, x[t])
    with when((right == 0) & (t == 70)):
        place.set(x[3])
    before = s[place]
    with when(before == 0):
        s[place] = t
    y[t] = before


@ptx_kernel
def lanes_share(y: Ptr[u32], right: u32) -> None:
    """Lanes of a warp load elements of which each pair shares one, then one of each pair stores."""
    s, t = shared(u32, N), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    found = s[select(right != 0, t ^ 1, t & 0xFFFFFFFE)]
    with when(right != 0):
        ptx.bar.sync(0)
    with when((t & 1) == 0):
        s[t] = found + 1
    y[t] = found


@ptx_kernel
def one_of_two_arrays(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Each lane loads from one array or the other; the wrong ones load what the next thread stores."""
    t = ptx.tid.x
    value = reg(u32, x[t])
    own = select(right != 0, t, (t + 1) % N)
    with loop(2) as i:
        chosen = ptx.selp.b64((x + t).address, (y + own).address, (value + i) % 2 == 0)
        value += ptx.ld.global_.u32(chosen)
        y[t] = value


@ptx_kernel
def one_of_what_is_read(x: Ptr[u32], z: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Each lane loads from one of two arrays, and stores to a third one, or some load from that."""
    t = ptx.tid.x
    second = ptx.selp.b64((z + t).address, (y + (t + 1) % N).address, right != 0)
    chosen = ptx.selp.b64((x + t).address, second, t % 3 < 2)
    with when(t != 40):
        y[t] = ptx.ld.global_.u32(chosen) + t


@ptx_kernel
def in_warp(y: Ptr[u32], right: u32) -> None:
    """Lanes hand on to others of their warp."""
    s, t = shared(u32, N), ptx.tid.x
    s[t] = t
    with when(right != 0):
        ptx.bar.warp.sync(0xFFFFFFFF)
    with when((t & 31) < 20):
        y[t] = s[t ^ 1]


@ptx_kernel
def compacts(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """The lanes that keep their element store one after the other; each warp has a place, or two have the same."""
    t = ptx.tid.x
    keeps = x[t] % 3 != 0
    which = ptx.vote.sync.ballot.b32(keeps, 0xFFFFFFFF)
    first = select((right == 0) & (t >> 5 == 1), 0, t & 0xFFFFFFE0)
    with when(keeps):
        y[first + ptx.popc.b32(which & ptx.lanemask_lt)] = t


@ptx_kernel
def in_place(y: Ptr[u32], right: u32) -> None:
    """Threads change an array in pairs, or all of one pair the same element."""
    t = ptx.ctaid.x * N + ptx.tid.x
    other = t ^ 1
    with when(t < other):
        a, b = y[t], y[select(right != 0, other, t & 0xFFFFFFF8)]
        y[t] = b
        y[other] = a


@ptx_kernel
def either_array(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Two arrays by turns: one is read anyhow, the other one written; a thread reads what is written in this turn."""
    s, d, t = shared(u32, N), shared(u32, N), ptx.tid.x
    s[t] = t
    d[t] = 0
    with loop(0, 4) as turn:
        ptx.bar.sync(0)
        one, other = select((turn & 1) == 0, s.address, d.address), select((turn & 1) == 0, d.address, s.address)
        value = reg(u32, ptx.ld.shared.u32(one + x[t] * 4))
        with when((right == 0) & (t == 40) & (turn == 2)):
            value += ptx.ld.shared.u32(other + x[3] * 4)
        ptx.st.shared.u32(other + x[t] * 4, value + turn)
    ptx.bar.sync(0)
    y[t] = s[t]


@ptx_kernel
def half_of_one(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Of two arrays one is written only in part."""
    s, d, t = shared(u32, N), shared(u32, N), ptx.tid.x
    s[t] = t
    with when((right != 0) | (t % 7 != 3)):
        d[t] = t
    ptx.bar.sync(0)
    one, other = select(x[t] % 2 == 0, s.address, d.address), select(x[t] % 2 == 0, d.address, s.address)
    y[t] = ptx.ld.shared.u32(one + x[t] * 4) + ptx.ld.shared.u32(other + x[t] * 4)


@ptx_kernel
def filled(count: u32, y: Ptr[u32], right: u32) -> None:
    """Threads fill an array of their own, all of it or not, and read it."""
    mine, t = local(u32, 8), ptx.tid.x
    for k in range(8):
        with when((right != 0) | ((t + k & 7) < count)):
            mine[(t + k) & 7] = k
    total = mine[0]
    for k in range(1, 8):
        total = total + mine[k]
    y[t] = total


@ptx_kernel
def counts_twice(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Each lane adds to an element of its own again and again; some were never written, nor is what they become."""
    s, t = shared(u32, N), ptx.tid.x
    with when((right != 0) | (t % 5 != 0)):
        s[t] = t
    ptx.bar.sync(0)
    mine = s + x[t]
    for k in range(3):
        ptx.st.shared.u32(mine, ptx.ld.shared.u32(mine) + k)
    y[t] = ptx.ld.shared.u32(mine)


@ptx_kernel
def looks_before(x: Ptr[u32], y: Ptr[u32], right: u32) -> None:
    """Each lane loads an element of its own that nobody has written, and uses that or not; then it is written."""
    s, t = shared(u32, N), ptx.tid.x
    mine = s + x[t]
    before = ptx.ld.shared.u32(mine)
    ptx.st.shared.u32(mine, select(right != 0, t, before))
    ptx.st.shared.u32(mine, ptx.ld.shared.u32(mine) + 1)
    ptx.bar.sync(0)
    y[t] = s[t]


def permuted() -> Any:
    return np.random.default_rng(5).permutation(N).astype(np.uint32)


PROGRAMS: dict[str, tuple[Any, Any, str]] = {
    "some_lanes": (some_lanes, lambda: [np.uint32(40)], "race"),
    "any_places": (any_places, lambda: [permuted()], "race"),
    "swaps": (swaps, lambda: [permuted()], "race"),
    "lanes_share": (lanes_share, list, "race"),
    "one_of_two_arrays": (one_of_two_arrays, lambda: [permuted()], "race"),
    "one_of_what_is_read": (one_of_what_is_read, lambda: [permuted(), permuted()], "race"),
    "in_warp": (in_warp, list, "race"),
    "compacts": (compacts, lambda: [permuted()], "race"),
    "in_place": (in_place, list, "race"),
    "counts_twice": (counts_twice, lambda: [permuted()], "init"),
    "looks_before": (looks_before, lambda: [permuted()], "init"),
    "either_array": (either_array, lambda: [permuted()], "race"),
    "half_of_one": (half_of_one, lambda: [permuted()], "init"),
    "filled": (filled, lambda: [np.uint32(6)], "init"),
}


def launched(name: str, right: bool, compiled: bool, seed: int | None = None) -> tuple[list[Any], Any]:
    """The findings of a launch, and what it wrote."""
    kernel, given, _ = PROGRAMS[name]
    y = np.zeros(2 * N, np.uint32)
    arguments = [*given(), y, int(right)]
    launch = kernel.configure(2 if name == "in_place" else 1, N, sanitize="all", seed=seed)
    for turn in range(2 if compiled else 1):
        if turn:
            codes = [each for each in gc.get_objects() if isinstance(each, Code) and each.instrumented]
            mine = [each for each in codes if each.source is not None and each.source[0].name == kernel.__name__]
            compiled_codes = [code for code in mine if not code.conservative and compile_block_function(code)]
            assert compiled_codes
            y[:] = 0
        with use("emulator"), collect() as findings:
            launch(*arguments)
    return findings, y


@pytest.mark.parametrize("name", PROGRAMS)
def test_wrong_and_right(name: str, rng: np.random.Generator) -> None:
    usual = None
    for compiled, seed in ((False, None), (False, int(rng.integers(1 << 32))), (True, None)):
        found, result = launched(name, True, compiled, seed)
        assert not found, str(found[0])
        usual = result if usual is None else usual
        assert (result == usual).all()
        found, _ = launched(name, False, compiled, seed)
        assert {each.kind for each in found} == {PROGRAMS[name][2]}


@ptx_kernel
def copies(x: Ptr[u32], y: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    y[i] = x[i]


def test_nothing_to_check_is_the_code_of_bounds() -> None:
    """No code of its own for what is checked by bounds alone; what the host left unwritten brings the checks back."""
    x, y = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    with use("emulator"):
        copies.configure(2, 64, sanitize=("memory",))(x, y)
        copies.configure(2, 64, sanitize=("init",))(x, y)
        codes = {id(e) for e in gc.get_objects() if isinstance(e, Code) and e.source and e.source[0].name == "copies"}
        assert (y == x).all()
        source = empty(128, u32)
        with collect() as findings:
            copies.configure(2, 64, sanitize=("init",))(source, y)
    assert len(codes) <= 2  # that with the checks of indices, and that without
    assert [each.kind for each in findings] == ["init"]
