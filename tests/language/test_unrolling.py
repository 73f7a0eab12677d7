"""``loop(..., unroll=n)``: the iterations of the loop without it, in the same order, whatever the bounds are."""

from __future__ import annotations

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

from ptxdsl import (
    Array, Ptr, ScalarType, break_if, continue_if, dtype_of, f32, label, loop, otherwise, ptx, ptx_func, ptx_kernel,
    reg, s16, s32, s64, shared, u16, u32, u64, use, when,
)
from ptxdsl.errors import MemoryFault

TURNS = (2, 3, 4, 7)


def visited(kind: ScalarType, bounds: tuple[int, ...], unroll: int, given: tuple[bool, ...]) -> list[int]:
    """The values of the counter; ``given`` says which bounds are known while tracing."""
    known = {place: bound for place, bound in enumerate(bounds) if given[place]}

    def kernel(a: kind, b: kind, c: kind, out: Ptr[kind], count: Ptr[u32]) -> None:  # type: ignore[valid-type]
        found = [known.get(place, value) for place, value in enumerate((a, b, c)[: len(bounds)])]
        n = reg(u32, 0)
        with loop(*found, unroll=unroll) as i:
            out[n] = i.to(kind)
            n += 1
        count[0] = n

    kernel.__annotations__.update(a=kind, b=kind, c=kind, out=Ptr[kind])
    out, count = np.zeros(80, dtype_of(kind)), np.zeros(1, np.uint32)
    ptx_kernel(kernel).configure(1, 1, backend="emulator")(*(*bounds, 1, 1, 1)[:3], out, count)
    return [int(i) for i in out[: int(count[0])]]


BOUNDS: list[tuple[ScalarType, tuple[int, ...]]] = [
    *[(u32, (n,)) for n in range(10)], (u32, (3, 17)), (u32, (5, 40, 3)), (u32, (7, 7)), (u32, (9, 2)),
    (u32, (2**32 - 20, 2**32 - 1)), (u32, (2**32 - 50, 2**32 - 1, 7)), (u32, (0, 2**32 - 1, 2**28)),
    (u32, (3, 2**32 - 1, 2**30)), (s32, (-5, 12)), (s32, (-(2**31), -(2**31) + 9, 2)),
    (s32, (2**31 - 30, 2**31 - 1, 4)), (s32, (12, -9, -2)), (s32, (10, 0, -1)),
    (s32, (-(2**31) + 25, -(2**31), -3)), (u64, (2**64 - 9, 2**64 - 1)), (s64, (2**63 - 40, 2**63 - 1, 5)),
    (u16, (65500, 65535, 2)), (s16, (-32768, -32700, 3)),
]


@pytest.mark.parametrize("unroll", TURNS)
@pytest.mark.parametrize(("kind", "bounds"), BOUNDS, ids=str)
def test_the_iterations_are_those_of_range(kind: ScalarType, bounds: tuple[int, ...], unroll: int) -> None:
    expected = list(range(*bounds))
    step = bounds[2] if len(bounds) == 3 else 1
    if 2 * abs(step) * unroll > kind.bounds[1] - kind.bounds[0]:
        return
    assert visited(kind, bounds, unroll, (False, False, True)) == expected
    assert visited(kind, bounds, unroll, (True, True, True)) == expected
    if step > 0 and kind.bits == 32:
        assert visited(kind, bounds, unroll, (False, False, False)) == expected
        assert visited(kind, bounds, unroll, (False, True, False)) == expected


def test_a_step_that_is_no_number_may_be_as_large_as_its_type() -> None:
    end = 2**32 - 1
    for kind, bounds in ((u32, (5, end, end - 2)), (u32, (0, end, 2**31)), (s32, (-9, 2**31 - 1, 2**31 - 1))):
        for unroll in TURNS:
            assert visited(kind, bounds, unroll, (False, False, False)) == list(range(*bounds))


@pytest.mark.parametrize("unroll", TURNS)
def test_random_bounds(unroll: int, rng: np.random.Generator) -> None:
    for _ in range(12):
        start, stop, step = (int(v) for v in rng.integers((0, 0, 1), (60, 70, 6)))
        given = tuple(bool(g) for g in rng.integers(0, 2, 3))
        assert visited(u32, (start, stop, step), unroll, given) == list(range(start, stop, step)), (start, stop, step)


@pytest.mark.parametrize("n", range(11))
def test_breaks_continues_branches_and_inner_loops(n: int, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(n: u32, x: Ptr[s32], y: Ptr[s32], out: Ptr[s32], *, unroll: int) -> None:
        acc, last, t = reg(s32, 0), reg(u32), ptx.tid.x
        last.set(99)
        tile = shared(s32, 64)
        with loop(n, unroll=unroll) as i:
            v = x[i]
            continue_if(v == 3)
            break_if(v == 9)
            with when(v > 4):
                y[i] = v * 10
                tile[i] = v
            with otherwise():
                tile[i] = -v
                y[i] = tile[i]
            with loop(i, unroll=2) as j:
                acc += x[j] * (i - j).bits(s32)
            acc += tile[i]
            last.set(i)
        out[0] = acc
        out[1] = last.bits(s32)

    x = rng.integers(0, 11, 16, np.int32)
    results = []
    for unroll in (1, 2, 4, 5):
        y, out = np.full(16, 77, np.int32), np.full(2, 77, np.int32)
        kernel.configure(1, 1, backend="emulator", sanitize="all")(n, x, y, out, unroll=unroll)
        results.append((y.tolist(), out.tolist()))
    assert all(result == results[0] for result in results)


def test_a_loop_without_bounds() -> None:
    @ptx_kernel
    def collatz(n: u32, out: Ptr[u32], *, unroll: int) -> None:
        v, steps = reg(u32, n), reg(u32, 0)
        with loop(unroll=unroll):
            break_if(v == 1)
            steps += 1
            with when((v & 1) == 0):
                v >>= 1
                continue_if(v > 5)
            with otherwise():
                v.set(v * 3 + 1)
        out[0] = steps

    for n in (1, 2, 3, 27, 97):
        found = []
        for unroll in (1, 2, 3, 8):
            out = np.zeros(1, np.uint32)
            with use("emulator"):
                collatz[1, 1](n, out, unroll=unroll)
            found.append(int(out[0]))
        assert len(set(found)) == 1, (n, found)


def test_what_is_called_and_vectors(rng: np.random.Generator) -> None:
    @ptx_func
    def square(v: f32) -> f32:
        return v * v

    @ptx_kernel
    def kernel(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
        with loop(0, n, 4, unroll=3) as i:
            a, b, c, d = x.load(i, width=4)
            v = reg(f32, 0.0)
            x.load(i, pred=a > 0, out=v)
            y.store(i, (square(a), b, c + v, d))

    x = rng.standard_normal(44).astype(np.float32)
    y = np.full_like(x, np.nan)
    kernel.configure(1, 1, backend="emulator", sanitize="all")(44, x, y)
    want = x.reshape(-1, 4).copy()
    want[:, 2] += np.maximum(want[:, 0], 0)
    want[:, 0] *= want[:, 0]
    np.testing.assert_array_equal(y, want.ravel())


def test_addresses_are_offsets_of_the_first_iteration() -> None:
    def kernel(n: u32, x: Ptr[f32], out: Ptr[f32]) -> None:
        acc, tile = reg(f32, 0.0), shared(f32, 64)
        with loop(0, n, 2, unroll=3) as i:
            acc += x[i] + (x + 5)[i] + tile[i]
        out[0] = acc

    loads = [line.split("[")[1].rstrip("]") for line in body_of(kernel) if line.startswith(("ld.global", "ld.shared"))]
    first = [place.partition("+")[0] for place in loads[:3]]
    assert loads[:9] == [
        first[0], f"{first[1]}+20", first[2], f"{first[0]}+8", f"{first[1]}+28", f"{first[2]}+8",
        f"{first[0]}+16", f"{first[1]}+36", f"{first[2]}+16",
    ]
    assert sum(line.startswith("mul.wide") for line in body_of(kernel)) == 2  # once a turn, and once in the remainder


def test_an_index_that_may_wrap_around_is_computed_each_time() -> None:
    def kernel(n: u32, k: u32, x: Ptr[f32], out: Ptr[f32]) -> None:
        acc = reg(f32, 0.0)
        with loop(n, unroll=2) as i:
            acc += x[i * k] + x[i + k]
        out[0] = acc

    assert sum(line.startswith("mul.wide") for line in body_of(kernel)) == 6


def test_a_number_of_iterations_that_is_known_leaves_none() -> None:
    def whole(x: Ptr[f32]) -> None:
        with loop(12, unroll=4) as i:
            x[i] = 0.0

    def fewer(x: Ptr[f32]) -> None:
        with loop(3, unroll=8) as i:
            x[i] = 0.0

    assert sum(line.startswith("st.") for line in body_of(whole)) == 4
    assert sum(line.startswith("st.") for line in body_of(fewer)) == 3


def test_an_index_out_of_range_is_found_in_each_iteration() -> None:
    @ptx_kernel
    def kernel(a: Array[f32, 2], n: u32, out: Ptr[f32]) -> None:
        acc = reg(f32, 0.0)
        with loop(n, unroll=4) as i:
            acc += a[0, i]
        out[0] = acc

    a, out = np.ones((3, 6), np.float32), np.zeros(1, np.float32)
    launch = kernel.configure(1, 1, backend="emulator", sanitize="all")
    launch(a, 6, out)
    assert out[0] == 6
    for n in (7, 8):
        with pytest.raises(MemoryFault, match="6 is outside of dimension 1"):
            launch(a, n, out)


def test_mistakes() -> None:
    def no_number(n: u32, x: Ptr[f32]) -> None:
        with loop(n, unroll=n) as i:
            x[i] = 0.0

    def none(n: u32, x: Ptr[f32]) -> None:
        with loop(n, unroll=0) as i:
            x[i] = 0.0

    def labelled(n: u32, x: Ptr[f32]) -> None:
        with loop(n, unroll=2) as i:
            ptx.bra("there", pred=i > 3)
            x[i] = 0.0
            label("there")

    def wide(n: u64, x: Ptr[f32]) -> None:
        with loop(0, n, n, unroll=2) as i:
            x[i] = 0.0

    def far(n: u16, x: Ptr[f32]) -> None:
        with loop(0, n, 9000, unroll=4):
            x[0] = 0.0

    hint = "`loop(n, unroll=4)`: four iterations a turn; a Python `for` unrolls all of them"
    start = "with loop(n, unroll="
    assert said(refused(no_number), no_number) == (
        "PtxTypeError", "`unroll` is a positive int known while tracing, not a run-time u32", start + "n) as i:", hint
    )
    assert said(refused(none), none) == (
        "PtxTypeError", "`unroll` is a positive int known while tracing, not the int 0", start + "0) as i:", hint
    )
    assert said(refused(labelled), labelled)[:2] == (
        "StructureError", "label `there` stands in a loop with `unroll`, which would place it repeatedly"
    )
    assert said(refused(wide), wide) == (
        "PtxTypeError", "a loop over u64 with a step that is not known while tracing cannot be unrolled",
        "with loop(0, n, n, unroll=2) as i:", "a step that is an int, or bounds of 32 bits",
    )
    assert said(refused(far), far) == (
        "PtxTypeError", "4 steps of 9000 are more than u16 holds", "with loop(0, n, 9000, unroll=4):",
        "a smaller `unroll`",
    )
