"""The 54 mistakes that the nearest peer mostly takes in silence: here each is right, or an error that says where.

One test a mistake, in the order of the list that was drawn up of them; the docstring names the mistake. A wrong
program must give the kind of error, the user's line and a hint; a program that means something must compute it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing_helpers import refused, said

from ptxdsl import (
    AliasError, Array, ControlFlowError, EscapeError, LaunchError, LostUpdateError, MemoryFault, Ptr, PtxError,
    PtxTypeError, StructureError, TargetError, TraceError, TruthError, UnknownInstruction, VerifyError, break_if,
    continue_if, dynamic_shared, f32, f64, label, loop, otherwise, ptx, ptx_kernel, reg, s32, shared, u32, u64, when,
)
from ptxdsl import warp


def wrong(function: Callable[..., Any], kind: type[PtxError], line: str, message: str, hint: str) -> None:
    """The function is refused with this kind of error, at this line, with these words in its message and hint."""
    error = refused(function)
    assert type(error) is kind
    _, text, source, repair = said(error, function)
    assert source == line
    assert message in text
    assert hint in repair


def run(kernel: Any, blocks: Any, threads: Any, *arguments: Any, **constants: Any) -> None:
    kernel[blocks, threads](*arguments, **constants)


def refuses(kind: type[PtxError], call: Callable[[], Any], message: str) -> PtxError:
    """The call raises this kind of error with these words, and the line of the call."""
    with pytest.raises(PtxError) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert message in error.message
    assert error.loc is not None
    assert error.loc.file == __file__
    return error


# -- Python's own statements on run-time values


def test_01_if() -> None:
    """A Python `if` on a comparison: the body would be unconditional."""

    def kernel(n: u32, x: Ptr[u32]):
        if n < 5:
            x[0] = n

    wrong(kernel, TruthError, "if n < 5:", "has no Python truth", "`with when(p):` for `if`")


def test_02_if_else() -> None:
    """A Python `if` with an `else`: only the first branch would be there."""

    def kernel(n: u32, x: Ptr[u32]):
        if n == 0:
            x[0] = n
        else:
            x[1] = n

    wrong(kernel, TruthError, "if n == 0:", "has no Python truth", "`with when(p):` for `if`")


def test_03_and() -> None:
    """`and` of two predicates: only the last would count."""

    def kernel(n: u32, x: Ptr[u32]):
        with when(n > 3 and n < 5):
            x[0] = n

    wrong(kernel, TruthError, "with when(n > 3 and n < 5):", "has no Python truth", "`&`, `|`, `~`")


def test_04_chained_comparison() -> None:
    """`0 <= t < 5`: only the last comparison would count."""

    def kernel(n: u32, x: Ptr[u32]):
        with when(0 <= n < 5):
            x[0] = n

    wrong(kernel, TruthError, "with when(0 <= n < 5):", "has no Python truth", "`(a <= x) & (x < b)`")


def test_05_in() -> None:
    """`t in [a, b]`: would be True."""

    def kernel(n: u32, m: u32, x: Ptr[u32]):
        if n in [m, x[0]]:
            x[0] = n

    wrong(kernel, TruthError, "if n in [m, x[0]]:", "has no Python truth", "`|`")


def test_06_range() -> None:
    """`range` of a run-time number."""

    def kernel(n: u32, x: Ptr[u32]):
        for i in range(n):
            x[i] = n

    wrong(kernel, TruthError, "for i in range(n):", "`n`, a run-time u32, has no Python int", "`with loop(v) as i:`")


def test_07_runtime_trip_count() -> None:
    """A loop to a run-time bound: works."""

    @ptx_kernel
    def kernel(n: u32, x: Ptr[u32]):
        with loop(n) as i:
            x[i] = i * i

    x = np.full(8, 99, np.uint32)
    run(kernel, 1, 1, 6, x)
    assert x.tolist() == [0, 1, 4, 9, 16, 25, 99, 99]


def test_08_break() -> None:
    """`break` out of a block."""

    def kernel(n: u32, x: Ptr[u32]):
        for _ in range(4):
            with when(n < 5):
                break

    wrong(kernel, ControlFlowError, "break", "`break` leaves the `with when(n < 5)` of line 2", "`break_if(p)`")


def test_09_continue() -> None:
    """`continue` out of a block: the rest of the body would not be there."""

    def kernel(n: u32, x: Ptr[u32]):
        for k in range(4):
            with when(n < 5):
                continue
            x[k] = n

    wrong(kernel, ControlFlowError, "continue", "`continue` leaves the `with when(n < 5)`", "`continue_if(p)`")


# -- Loops and updates


def test_10_accumulator() -> None:
    """`acc = acc + v` in a loop: only the last sum would be stored."""

    def kernel(n: u32, x: Ptr[f32]):
        acc = x[0]
        with loop(n) as i:
            acc = acc + x[i]
        x[0] = acc

    wrong(kernel, LostUpdateError, "acc = acc + x[i]", "the update would be lost", "`acc = reg(f32, acc)`")


def test_11_predicate_before_the_loop() -> None:
    """A loop on a predicate, which would be computed once: an endless loop."""

    def kernel(n: u32, x: Ptr[u32]):
        i = reg(u32, 0)
        with loop(i < n):
            i += 1

    wrong(kernel, PtxTypeError, "with loop(i < n):", "takes bounds, no predicate", "break_if(~(...))")


def test_12_python_counter() -> None:
    """`acc = 0` and `acc += 1` in a loop: would be the constant 1."""

    def kernel(n: u32, x: Ptr[u32]):
        acc = 0
        with loop(n):
            acc += 1
        x[0] = acc

    wrong(kernel, LostUpdateError, "acc += 1", "the update would be lost", "`acc = reg(u32, 0)`")


def test_13_alias() -> None:
    """`b = a` and `b += 1`: would change a too."""

    def kernel(x: Ptr[u32]):
        a = reg(u32, 1)
        b = a
        b += 1
        x[0] = a

    wrong(kernel, AliasError, "b += 1", "`b` and `a` hold the same reg", "`a = b.copy()`")


def test_14_elements_alias() -> None:
    """`r[0] += 1; r[1] = r[0]` copies a name, not a value: seen as soon as it would matter."""

    def kernel(x: Ptr[u32]):
        r = [reg(u32, 0) for _ in range(2)]
        r[1] = r[0]
        r[0] += 1
        x[0] = r[1]

    wrong(kernel, AliasError, "r[0] += 1", "`r[0]` and `r[1]` hold the same reg", "a `reg` for each")

    @ptx_kernel
    def right(x: Ptr[u32]):
        r = [reg(u32, 0) for _ in range(2)]
        r[0] += 1
        r[1].set(r[0])
        r[0] += 1
        x[0] = r[0]
        x[1] = r[1]

    x = np.full(2, 99, np.uint32)
    run(right, 1, 1, x)
    assert x.tolist() == [2, 1]


def test_15_value_used_after_it_was_stored_away() -> None:
    """`s = t + 1; r[0].set(s)`, then s again: s is still there."""

    @ptx_kernel
    def kernel(t: u32, x: Ptr[u32]):
        r = [reg(u32, 0)]
        s = t + 1
        r[0].set(s)
        r[0] += s
        x[0], x[1] = r[0], s

    x = np.full(2, 99, np.uint32)
    run(kernel, 1, 1, 4, x)
    assert x.tolist() == [10, 5]


# -- Types and literals


def test_16_float_operators() -> None:
    """`f32 + f32`: works."""

    @ptx_kernel
    def kernel(a: f32, b: f32, x: Ptr[f32]):
        x[0], x[1], x[2], x[3] = a + b, -a, 5.0 - a, a / b

    x = np.full(4, np.nan, np.float32)
    run(kernel, 1, 1, 3.0, 4.0, x)
    assert x.tolist() == [7.0, -3.0, 2.0, 0.75]


def test_17_mixed_types() -> None:
    """`u32 + f32`."""

    def kernel(a: u32, b: f32, x: Ptr[f32]):
        x[0] = a + b

    wrong(kernel, PtxTypeError, "x[0] = a + b", "`+` of u32 and f32", "`a.to(f32)`")


def test_18_float_literal_on_an_integer() -> None:
    """`u32 + 2.5`."""

    def kernel(a: u32, x: Ptr[u32]):
        x[0] = a + 2.5

    wrong(kernel, PtxTypeError, "x[0] = a + 2.5", "2.5 is no u32", "`v.to(f64)`")


def test_19_mixed_widths() -> None:
    """`u32 < u64`."""

    def kernel(a: u32, b: u64, x: Ptr[u32]):
        with when(a < b):
            x[0] = a

    wrong(kernel, PtxTypeError, "with when(a < b):", "`<` of u32 and u64", "`a.to(u64)`")


def test_20_float_instruction_on_integers() -> None:
    """`add.f32` of u32 registers."""

    def kernel(a: u32, x: Ptr[f32]):
        x[0] = ptx.add.f32(a, a)

    wrong(kernel, PtxTypeError, "x[0] = ptx.add.f32(a, a)", "f32", "`a.to(f32)`")


def test_21_integer_in_shared_floats() -> None:
    """A u32 stored to f32 shared memory."""

    def kernel(a: u32, x: Ptr[f32]):
        tile = shared(f32, 4)
        tile[0] = a

    wrong(kernel, PtxTypeError, "tile[0] = a", "u32", "`a.to(f32)`")


def test_22_integer_initial_value_of_a_float() -> None:
    """`reg(f32, 1)`: is 1.0."""

    @ptx_kernel
    def kernel(x: Ptr[f32]):
        r = reg(f32, 1)
        r += 2
        x[0] = r

    x = np.full(1, np.nan, np.float32)
    run(kernel, 1, 1, x)
    assert x.tolist() == [3.0]


def test_23_small_float_literals() -> None:
    """`1e-8` and its like: exact to the type."""

    @ptx_kernel
    def kernel(x: Ptr[f32], y: Ptr[f64]):
        x[0] = x[0] + 1e-8
        y[0] = y[0] * 1e-300

    x, y = np.zeros(1, np.float32), np.ones(1)
    run(kernel, 1, 1, x, y)
    assert (x[0], y[0]) == (np.float32(1e-8), 1e-300)


def test_24_signed_shift() -> None:
    """`s32 >> 1` of a negative number: arithmetic."""

    @ptx_kernel
    def kernel(a: s32, x: Ptr[s32]):
        x[0] = a >> 1

    x = np.full(1, 99, np.int32)
    run(kernel, 1, 1, -9, x)
    assert x[0] == -9 >> 1


def test_25_negative_index() -> None:
    """A pointer and a negative s32: the sign is kept."""

    @ptx_kernel
    def kernel(a: s32, x: Ptr[s32]):
        middle = x + 4
        middle[a] = a
        (middle + a)[1] = 55

    x = np.zeros(8, np.int32)
    run(kernel, 1, 1, -3, x)
    assert x.tolist() == [0, -3, 55, 0, 0, 0, 0, 0]


def test_26_signed_maximum_over_a_warp() -> None:
    """The greatest s32 of a warp, all negative: signed."""

    @ptx_kernel
    def kernel(x: Ptr[s32]):
        x[ptx.tid.x] = warp.reduce_max(x[ptx.tid.x])

    x = np.arange(-40, -8, dtype=np.int32)
    run(kernel, 1, 32, x)
    assert set(x.tolist()) == {-9}


# -- Launch, memory, barriers


def test_27_too_many_threads() -> None:
    """2000 threads a block."""

    @ptx_kernel
    def kernel(x: Ptr[u32]):
        x[ptx.tid.x] = 1

    x = np.zeros(2000, np.uint32)
    refuses(LaunchError, lambda: run(kernel, 1, 2000, x), "block.x is 2000; it can be 1 to 1024")
    assert not x.any()


def test_28_missing_barrier() -> None:
    """A read of what another warp writes: right with a barrier; one without is for the sanitizer to find."""

    def kernel(x: Ptr[f32], *, barrier: bool):
        tile = shared(f32, 64)
        i = ptx.tid.x
        tile[i] = x[i]
        if barrier:
            ptx.bar.sync(0)
        x[i] = tile[63 - i]

    x = np.arange(64, dtype=np.float32)
    run(ptx_kernel(kernel), 1, 64, x, barrier=True)
    assert x.tolist() == list(range(63, -1, -1))


@pytest.mark.emulator(reason="it makes faults")
def test_29_shared_index() -> None:
    """Element 300 of 256: known while tracing, or only when it runs."""

    def known(x: Ptr[f32]):
        tile = shared(f32, 256)
        tile[300] = 1.0

    wrong(known, TraceError, "tile[300] = 1.0", "index 300 is out of range", "0 to 255")

    @ptx_kernel
    def computed(n: u32):
        tile = shared(f32, 256)
        tile[n] = 1.0

    error = refuses(MemoryFault, lambda: run(computed, 1, 1, 300), "tile[300]: tile is f32[256] in shared memory")
    assert error.loc is not None
    assert error.loc.source == "tile[n] = 1.0"


@pytest.mark.emulator(reason="it makes faults")
def test_30_global_index() -> None:
    """One element past the end of an array."""

    @ptx_kernel
    def kernel(x: Ptr[f32]):
        x[ptx.tid.x + 1] = 1.0

    error = refuses(MemoryFault, lambda: run(kernel, 1, 64, np.zeros(64, np.float32)), "store to x[64]: x is f32[64]")
    assert error.thread == (63, 0, 0)  # type: ignore[attr-defined]


def test_31_register_list_read_out_of_range() -> None:
    """Element 7 of 4 registers, read: a Python list says so."""

    def kernel(x: Ptr[f32]):
        acc = [reg(f32, 0.0) for _ in range(4)]
        x[0] = acc[7]

    with pytest.raises(IndexError, match="list index out of range"):
        refused(kernel)


def test_32_register_list_written_out_of_range() -> None:
    """Element 7 of 4 registers, changed: a Python list says so."""

    def kernel(x: Ptr[f32]):
        acc = [reg(f32, 0.0) for _ in range(4)]
        acc[7] += 1.0

    with pytest.raises(IndexError, match="list index out of range"):
        refused(kernel)


def test_33_last_register_of_a_list() -> None:
    """Element -1: the last, as in Python."""

    @ptx_kernel
    def kernel(x: Ptr[f32]):
        acc = [reg(f32, float(k)) for k in range(4)]
        acc[-1] += 0.5
        for k, r in enumerate(acc):
            x[k] = r

    x = np.full(4, np.nan, np.float32)
    run(kernel, 1, 1, x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.5]


# -- Instructions and targets


def test_34_misspelled_opcode() -> None:
    """`rsqt`."""

    def kernel(x: Ptr[f32]):
        x[0] = ptx.rsqt.approx.f32(x[0])

    wrong(kernel, UnknownInstruction, "x[0] = ptx.rsqt.approx.f32(x[0])", "`rsqt`", "rsqrt")


def test_35_misspelled_modifier() -> None:
    """`ex2.aprox`."""

    def kernel(x: Ptr[f32]):
        x[0] = ptx.ex2.aprox.f32(x[0])

    wrong(kernel, UnknownInstruction, "x[0] = ptx.ex2.aprox.f32(x[0])", "no modifier `.aprox`", "ex2.approx")


def test_36_type_that_an_instruction_lacks() -> None:
    """`ex2.approx.f64`."""

    def kernel(x: Ptr[f64]):
        x[0] = ptx.ex2.approx.f64(x[0])

    wrong(
        kernel, UnknownInstruction, "x[0] = ptx.ex2.approx.f64(x[0])", "`.f64`",
        "`ex2.approx` takes f32, f16, f16x2, bf16, bf16x2",
    )


def test_37_missing_operand() -> None:
    """`add` of one operand."""

    def kernel(x: Ptr[f32]):
        x[0] = ptx.add.f32(x[0])

    wrong(kernel, PtxTypeError, "x[0] = ptx.add.f32(x[0])", "takes 2 operands", "a, b")


def test_38_misspelled_special_register() -> None:
    """`tid.w`, and `tdi.x`."""

    def component(x: Ptr[u32]):
        x[0] = ptx.tid.w

    def name(x: Ptr[u32]):
        x[0] = ptx.tdi.x

    wrong(component, UnknownInstruction, "x[0] = ptx.tid.w", "no component `.w`", "ptx.tid.x")
    wrong(name, UnknownInstruction, "x[0] = ptx.tdi.x", "`tdi`", "ptx.tid")


def test_39_shape_that_mma_lacks() -> None:
    """`mma.sync` with m16n8k7."""

    def kernel(x: Ptr[u32]):
        ptx["mma.sync.aligned.m16n8k7.row.col.f32.bf16.bf16.f32"](x[0])

    line = 'ptx["mma.sync.aligned.m16n8k7.row.col.f32.bf16.bf16.f32"](x[0])'
    wrong(kernel, UnknownInstruction, line, "m16n8k7", "m16n8k")


def _of_target(function: Callable[..., Any], arch: str) -> PtxError:
    return refuses(TargetError, lambda: ptx_kernel(function, arch=arch).ptx(), arch)


def test_40_wgmma_on_ampere() -> None:
    """`wgmma` for sm_80."""

    def kernel():
        ptx.wgmma.fence.sync.aligned()

    assert "needs sm_90a" in _of_target(kernel, "sm_80").message


def test_41_tcgen05_on_hopper() -> None:
    """`tcgen05` for sm_90a."""

    def kernel():
        ptx.tcgen05.wait__ld.sync.aligned()

    assert "sm_100" in _of_target(kernel, "sm_90a").message


def test_42_unknown_target() -> None:
    """`arch="sm_95"`."""

    def kernel(x: Ptr[u32]):
        x[0] = 1

    assert 'arch="sm_90"' in (_of_target(kernel, "sm_95").hint or "")


# -- Structure


def test_43_unknown_parameter() -> None:
    """A parameter that the kernel does not have."""

    @ptx_kernel
    def kernel(x: Ptr[u32], *, scale: int = 1):
        x[0] = scale

    error = refuses(LaunchError, lambda: run(kernel, 1, 1, np.zeros(1, np.uint32), scal=3), "`scal`")
    assert error.hint is not None
    assert "`scale=`" in error.hint


def test_44_missing_label() -> None:
    """A branch to a label that stands nowhere."""

    def kernel(n: u32, x: Ptr[u32]):
        ptx.bra("done", pred=n < 5)
        x[0] = n

    line = 'ptx.bra("done", pred=n < 5)'
    wrong(kernel, StructureError, line, "no label `done` stands anywhere", 'place it: `label("done")`')


def test_45_label_twice() -> None:
    """The same label at two places."""

    def kernel(n: u32, x: Ptr[u32]):
        label("top")
        x[0] = n
        label("top")

    wrong(kernel, StructureError, 'label("top")', "label `top` already stands at line 1", "`top = label()`")


def test_46_otherwise_after_an_inner_when() -> None:
    """An outer `otherwise` after an inner `when` without one: belongs to the outer."""

    @ptx_kernel
    def kernel(x: Ptr[u32]):
        i = ptx.tid.x
        with when(i < 3):
            with when(i < 1):
                x[i] = 1
        with otherwise():
            x[i] = 2

    x = np.zeros(5, np.uint32)
    run(kernel, 1, 5, x)
    assert x.tolist() == [1, 0, 0, 2, 2]


def test_47_statement_between_when_and_otherwise() -> None:
    """A statement between the branches."""

    def kernel(n: u32, x: Ptr[u32]):
        with when(n < 3):
            x[0] = n
        x[1] = n
        with otherwise():
            x[2] = n

    message = "must directly follow its `when()` of line 1; line 3 (`x[1] = n`) stands between"
    wrong(kernel, StructureError, "with otherwise():", message, "into both blocks")


def test_48_uninitialised_register() -> None:
    """A register read before it is written, on one path or on all."""

    @ptx_kernel
    def never(x: Ptr[f32]):
        r = reg(f32)
        x[0] = r

    @ptx_kernel
    def sometimes(n: u32, x: Ptr[f32]):
        r = reg(f32)
        with when(n < 3):
            r.set(1.0)
        x[0] = r

    for kernel in (never, sometimes):
        error = refuses(VerifyError, kernel.ptx, "%r is read here")
        assert error.loc is not None
        assert error.loc.source == "x[0] = r"
        assert error.hint is not None


def test_49_too_much_shared_memory() -> None:
    """300 KB of shared memory, static or asked for at the launch."""

    def static(x: Ptr[f32]):
        tile = shared(f32, 300 * 256)
        tile[0] = x[0]

    wrong(static, TraceError, "tile = shared(f32, 300 * 256)", "307200 bytes of static shared memory", "dynamic_shared")

    @ptx_kernel
    def dynamic(x: Ptr[f32]):
        tile = dynamic_shared(f32)
        tile[0] = x[0]

    refuses(
        LaunchError,
        lambda: dynamic.configure(1, 1, shared=300 * 1024, backend="emulator")(np.zeros(1, np.float32)), "307200",
    )


# -- Arguments


@ptx_kernel
def scaled(x: Ptr[f32], y: Ptr[f32], n: u32, *, scale: int = 2):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i] * float(scale)


def test_50_wrong_dtype() -> None:
    """An int32 array where f32 is wanted."""
    x, y = np.zeros(8, np.int32), np.full(8, np.nan, np.float32)
    refuses(LaunchError, lambda: run(scaled, 1, 32, x, y, 8), "`x` of kernel `scaled` is a numpy array of int32")
    assert np.isnan(y).all()


def test_51_wrong_number_of_arguments_or_dimensions() -> None:
    """Too few arguments, too many, an array of the wrong rank."""
    x = np.zeros(8, np.float32)
    refuses(LaunchError, lambda: run(scaled, 1, 32, x, x), "`n` missing")
    refuses(LaunchError, lambda: run(scaled, 1, 32, x, x, 8, 9), "1 too many")

    @ptx_kernel
    def matrix(a: Array[f32, 2]):
        a[0, 0] = 1.0

    refuses(LaunchError, lambda: run(matrix, 1, 1, x), "wants 2 dimensions")


def test_52_tail() -> None:
    """A size that is no multiple of the block: the tail is computed, and nothing past it."""
    x, y = np.arange(100, dtype=np.float32), np.full(128, -1, np.float32)
    run(scaled, 4, 32, x, y, 100)
    assert y.tolist() == [2.0 * k for k in range(100)] + [-1.0] * 28


def test_53_numpy_arrays_without_a_gpu() -> None:
    """numpy arrays, on a machine without GPU, driver or other frameworks: works in place."""
    y = np.zeros(4, np.float32)
    run(scaled, 1, 4, np.ones(4, np.float32), y, 4, scale=3)
    assert y.tolist() == [3.0] * 4


def test_54_one_kernel_for_several_constants() -> None:
    """Traced for one constant and then for another: neither sees what the other left behind, and text is the same."""

    def kernel(x: Ptr[f32], *, size: int):
        tile = shared(f32, size)
        tile[ptx.tid.x] = x[ptx.tid.x]
        x[ptx.tid.x] = tile[ptx.tid.x] + float(size)

    first, second = ptx_kernel(kernel), ptx_kernel(kernel)
    small, large = first.ptx(size=32), first.ptx(size=64)
    assert "[128]" in small or "[32]" in small
    assert small != large
    assert (second.ptx(size=64), second.ptx(size=32)) == (large, small)
    x = np.zeros(32, np.float32)
    run(first, 1, 32, x, size=32)
    run(first, 1, 32, x, size=64)
    assert set(x.tolist()) == {96.0}


# -- What the list has besides


def test_return_in_a_block() -> None:
    """`return` in a block: the kernel would be cut off."""

    def kernel(n: u32, x: Ptr[u32]):
        with when(n >= 5):
            return
        x[0] = n

    wrong(kernel, ControlFlowError, "return", "`return` leaves the `with when(n >= 5)`", "`ptx.ret(pred=p)`")

    @ptx_kernel
    def right(n: u32, x: Ptr[u32]):
        ptx.ret(pred=ptx.tid.x >= n)
        x[ptx.tid.x] = 1

    x = np.zeros(8, np.uint32)
    run(right, 1, 8, 5, x)
    assert x.tolist() == [1] * 5 + [0] * 3


def test_value_of_another_kernel() -> None:
    """A value kept from another kernel."""
    kept: list[Any] = []

    def first(n: u32):
        kept.append(n + 1)

    def second(x: Ptr[u32]):
        x[0] = kept[0]

    ptx_kernel(first).ptx()
    wrong(second, EscapeError, "x[0] = kept[0]", "in the trace of `first`, which is over", "compute it in this kernel")


def test_break_and_continue_of_a_real_loop() -> None:
    """What break and continue were meant to do."""

    @ptx_kernel
    def kernel(n: u32, x: Ptr[u32]):
        with loop(n) as i:
            continue_if((i & 1) == 1)
            break_if(i > 6)
            x[i] = 1

    x = np.zeros(12, np.uint32)
    run(kernel, 1, 1, 12, x)
    assert x.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0]
