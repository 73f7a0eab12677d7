"""Programs whose indices leave their dimension, and programs that look like them and are right.

Each is a kernel of arrays ``a`` (4 x 4), ``y`` (32) and a number ``n`` = 4, launched with a warp. The wrong access of
a program stands on the line that ends in ``# wrong``; nothing else of it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxdsl import (
    Array, const, dynamic_shared, f32, global_, local, loop, ptx, ptx_func, ptx_kernel, reg, s32, s64, shared, u32, u64,
    when,
)

__all__ = ["RIGHT", "WRONG", "run"]

Kernel = Callable[..., None]
WRONG: dict[str, Any] = {}
RIGHT: dict[str, Any] = {}


def wrong(function: Kernel) -> Kernel:
    WRONG[function.__name__] = ptx_kernel(function)
    return function


def right(function: Kernel) -> Kernel:
    RIGHT[function.__name__] = ptx_kernel(function)
    return function


def run(kernel: Any, a: Any, y: Any, n: int = 4, **options: Any) -> None:
    """Launch one: memory as many as it asks for."""
    dynamic = 256 if "dynamic_shared" in kernel.ptx() else 0
    kernel.configure(1, 32, shared=dynamic, **options)(a, y, n)


# ---------------------------------------------------------------------------------------------------------------------
# Wrong


@wrong
def next_row(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[1, n + 2]  # wrong


@wrong
def one_beyond(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    with loop(n + 1) as j:
        y[j] = a[0, j]  # wrong


@wrong
def row_before(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[2, n.bits(s32) - 5]  # wrong


@wrong
def row_before_without_a_sign(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    index = ptx.cvt.u64.u32(n) - 5
    y[ptx.tid.x] = a[2, index]  # wrong


@wrong
def wide_and_signed(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[2, n.to(s64) - 6]  # wrong


@wrong
def transposed(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    with when(t < 8):
        a[t // 4 + 1, t // 2 + 1] = 1.0  # wrong


@wrong
def stored_constant(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    a[0, 5] = 1.0  # wrong


@wrong
def fixed_extent(a: Array[f32, None, 4], y: Array[f32, 1], n: u32) -> None:
    a[1, n] = 1.0  # wrong


@wrong
def row_of_an_array(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    row = a[1]
    y[ptx.tid.x] = row[n + 1]  # wrong


@wrong
def row_by_a_register(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    i = reg(u32, 0)
    row = a[i]
    i += 1
    y[ptx.tid.x] = row[i + n]  # wrong


@wrong
def register_as_index(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    j = reg(u32, 0)
    with loop(n + 2):
        y[ptx.tid.x] = a[0, j]  # wrong
        j += 1


@wrong
def guarded_with_the_wrong_condition(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    with when(t <= n):
        a[1, t] = 1.0  # wrong


@wrong
def predicated(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    y.store(t, 1.0)
    a.store((1, t), 2.0, pred=t < 6)  # wrong


@wrong
def vector_over_the_end(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    x, z = a.load((0, n - 1 - ptx.tid.x % 2 * 1 + 1), width=2)  # wrong
    y[ptx.tid.x] = x + z


@wrong
def vector_in_a_tile(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 4, 6)
    tile.store((1, n), [1.0, 2.0, 3.0, 4.0])  # wrong


@wrong
def atomic(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    ptx.red.global_.add.f32(a.at(1, n + 1), 1.0)  # wrong


@wrong
def instruction_in_a_tile(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 4, 4)
    ptx.st.shared.f32(tile.at(n - 2, n), 1.0)  # wrong


@wrong
def tile_in_shared_memory(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 4, 4)
    tile[ptx.tid.x // 8, ptx.tid.x % 8] = 1.0  # wrong


@wrong
def padded_tile(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 4, 5)
    tile[1, n + 1] = 1.0  # wrong


@wrong
def first_dimension_of_three(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    stages = shared(f32, 2, 4, 4)
    stages[0, n, 0] = 1.0  # wrong


@wrong
def private(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    mine = local(f32, 2, 3)
    for i in range(2):
        for j in range(3):
            mine[i, j] = 1.0
    y[ptx.tid.x] = mine[0, n]  # wrong


@wrong
def private_neighbour(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = local(f32, 4), local(f32, 4)
    for i in range(4):
        first[i], second[i] = 1.0, 2.0
    y[ptx.tid.x] = first[n + 1]  # wrong


@wrong
def private_before(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = local(f32, 4), local(f32, 4)
    for i in range(4):
        first[i], second[i] = 1.0, 2.0
    y[ptx.tid.x] = second[n.bits(s32) - 6]  # wrong


@wrong
def private_vector(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = local(f32, 4), local(f32, 8)
    for i in range(4):
        first[i], second[i] = 1.0, 2.0
    first.store(n, [1.0, 2.0])  # wrong


@wrong
def shared_neighbour(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = shared(f32, 4), shared(f32, 4)
    with when(ptx.tid.x == 0):
        first[n + 1] = 1.0  # wrong
        second[0] = 1.0


@wrong
def constant_table(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    table = const([[1.0, 2.0], [3.0, 4.0]], f32)
    y[ptx.tid.x] = table[0, n - 2]  # wrong


@wrong
def variable_of_the_module(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    g = global_(f32, 4, 4)
    g[0, n + ptx.tid.x % 2] = 1.0  # wrong


@wrong
def part_of_dynamic_memory(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = dynamic_shared(f32, 4), dynamic_shared(f32, 4, offset=16)
    with when(ptx.tid.x == 0):
        second[0] = 1.0
        first[n] = 1.0  # wrong


@wrong
def in_both_arms(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    j = reg(u32, 0)
    with when(t % 2 == 0):
        j.set(n)
    a[1, j] = 1.0  # wrong


@ptx_func
def called(n: u32) -> f32:
    tile = local(f32, 2, 2)
    for i in range(4):
        tile[i // 2, i % 2] = 1.0
    return tile[0, n - 1]  # wrong


@wrong
def in_a_function(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = called(n - 1)


# ---------------------------------------------------------------------------------------------------------------------
# Right: each leaves the sum of what it wrote where a plain launch leaves it


@right
def every_element(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    with when(t < 16):
        a[t // 4, t % 4] = t.to(f32)


@right
def masked_at_the_edge(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    with when((t >= 1) & (t < n)):
        y[t] = a[1, t - 1]


@right
def predicated_at_the_edge(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    v = reg(f32, 0.0)
    a.load((1, t - 1), pred=(t >= 1) & (t <= n), out=v)
    y[t] = v


@right
def flattened_by_a_pointer(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    t = ptx.tid.x
    with when(t < 16):
        flat = a.at(0, 0)
        flat[t] = 2.0


@right
def moved_pointer(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = (a + (n + 2))[0]


@right
def cast_array(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a.cast(u32)[n + 5].bits(f32)


@right
def flattened_tile(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 4, 8)
    (tile + 0)[ptx.tid.x] = 3.0
    ptx.bar.sync(0)
    y[ptx.tid.x] = tile[ptx.tid.x // 8, ptx.tid.x % 8]


@right
def register_that_moves_on(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    i = reg(u32, 3)
    row = a[i]
    i += 5
    y[ptx.tid.x] = row[i - n - 1]


@right
def address_before_the_register_moves(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    i = reg(u32, 3)
    place = a.at(i, i)
    i += 9
    with when(ptx.tid.x == 0):
        ptx.st.global_.f32(place, 5.0)
        y[i] = 1.0


@right
def index_that_changes_in_a_loop(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    j, total = reg(u32, 0), reg(f32, 0.0)
    with loop(n):
        total += a[2, j]
        j += 1
    y[ptx.tid.x] = total


@right
def index_that_is_loaded_into(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    table = const([[0, 7], [9, 9]], u32)
    j = reg(u32, 1)
    table.load((0, j), out=j)
    y[ptx.tid.x] = j.to(f32)


@right
def vector_at_the_end(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    x, z = a.load((3, n - 2), width=2)
    y[ptx.tid.x] = x + z


@right
def vector_of_a_row(a: Array[f32, None, 4], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a.load((n - 1, 0), width=4)[3]


@right
def signed_index(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[n.bits(s32) - 1, n.bits(s32) - 4]


@right
def wide_index(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[n.to(u64) - 1, n.to(s64) - 3]


@right
def zero_index(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = a[0, 0] + a[3, 3]


@right
def a_row_for_each_thread(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    row = a[ptx.tid.x % n]
    y[ptx.tid.x] = row[3] + row[ptx.tid.x // 8]


@right
def three_dimensions(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    stages = shared(f32, 2, 4, 4)
    t = ptx.tid.x
    stages[t // 16, t // 4 % 4, t % 4] = t.to(f32)
    ptx.bar.sync(0)
    y[t] = stages[1][t % 4][t // 8]


@right
def two_private_arrays(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = local(f32, 4), local(f32, 4)
    with loop(n) as i:
        first[i] = 1.0
        second[n - 1 - i] = 2.0
    y[ptx.tid.x] = first[n - 1] + second[0]


@right
def either_private_array(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    first, second = local(f32, 4), local(f32, 4)
    for i in range(4):
        first[i], second[i] = 1.0, 2.0
    p = reg(first + 0)
    with when(ptx.tid.x % 2 == 1):
        p.set(second + 0)
    y[ptx.tid.x] = p[n - 1]


@right
def private_by_a_generic_address(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    mine = local(f32, 2, 2)
    for i in range(4):
        mine[i // 2, i % 2] = float(i)
    y[ptx.tid.x] = mine.generic()[n - 1]


@right
def private_matrix(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    mine = local(f32, 3, 3)
    with loop(3) as i, loop(3) as j:
        mine[i, j] = (i * 3 + j).to(f32)
    y[ptx.tid.x] = mine[n - 2, n - 3]


@right
def row_beyond_that_nobody_reads(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    row = a[n + 3]
    with when(n > 9):
        y[0] = row[0]
    with when(ptx.tid.x == 0):
        y[1] = 1.0


@right
def copy_of_nothing(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = shared(f32, 32, 4)
    t = ptx.tid.x
    ptx["cp.async.ca.shared.global"](tile.at(t, 0), a.at(t % 4, n * (t // 16)), 4, (1 - t // 16) * 4)
    ptx.cp.async_.wait_all()
    y[t] = tile[t, 0]


@right
def dynamic_memory(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    tile = dynamic_shared(f32, 4, 8)
    t = ptx.tid.x
    tile[t // 8, t % 8] = t.to(f32)
    y[t] = tile[t // 8, t % 8]


@right
def variable_of_the_module_right(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    g = global_(f32, 4, 8)
    g[ptx.tid.x // 8, ptx.tid.x % 8] = 1.0


@right
def in_a_loop_of_loops(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    total = reg(f32, 0.0)
    with loop(a.shape[0]) as i, loop(a.shape[1]) as j:
        total += a[i, j]
    y[ptx.tid.x] = total


@right
def atomics(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    ptx.red.global_.add.f32(a.at(ptx.tid.x % 4, n - 1), 1.0)


@ptx_func
def corner(n: u32) -> f32:
    tile = local(f32, 2, 2)
    for i in range(4):
        tile[i // 2, i % 2] = float(i)
    return tile[n - 3, n - 3]


@right
def in_a_right_function(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
    y[ptx.tid.x] = corner(n) + corner(n)
