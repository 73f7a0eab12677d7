"""What the emulator says when a kernel does something wrong: word for word, with thread, block and line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, buffer, kernel, launch, pointer

from ptxdsl import emulator
from ptxdsl.errors import BarrierError, DeadlockError, EmulationError, MemoryFault, TrapError
from ptxdsl.launch import LaunchConfig


def fault(kind: type[EmulationError], text: str, grid: Any, block: Any, **arguments: Any) -> EmulationError:
    with pytest.raises(kind) as caught:
        launch(text, grid, block, **arguments)
    with pytest.raises(kind) as conservative:
        launch(text, grid, block, conservative=True, **arguments)
    with pytest.raises(kind) as compiled:
        launch(text, grid, block, second_tier=True, **arguments)
    assert str(conservative.value) == str(compiled.value) == str(caught.value)
    return caught.value


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


STORE = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r0;\nret;")


def test_store_past_the_end() -> None:
    error = fault(MemoryFault, STORE, 4, 256, x=np.zeros(1000, np.uint32))
    assert error.message == "store to x[1000]: x is u32[1000]"
    assert (error.block, error.thread) == ((3, 0, 0), (232, 0, 0))
    assert error.ptx_line == line_of(STORE, "st.global.u32")
    assert str(error) == (
        "store to x[1000]: x is u32[1000]\n  in block (3, 0, 0), thread (232, 0, 0)\n"
        f"  PTX line {error.ptx_line}: st.global.u32 [%rd0], %r0"
    )


def test_an_index_below_0_that_has_no_sign() -> None:
    text = kernel("u64 x", f"""
        {THREAD}
        sub.u32 %r4, %r0, 3; ld.param.u64 %rd0, [x]; mad.wide.u32 %rd0, %r4, 4, %rd0; st.global.u32 [%rd0], %r0; ret;
    """)
    error = fault(MemoryFault, text, 1, 1, x=np.zeros(8, np.uint32))
    assert error.message == "store to x[4294967293]: x is u32[8]"
    assert error.hint == "4294967293 is -3 as a u32: the index went below 0"


def test_what_is_inside_was_stored_before_the_fault() -> None:
    x = np.zeros(1000, np.uint32)
    fault(MemoryFault, STORE, 4, 256, x=x)
    assert (x[:768] == np.arange(768)).all()


@pytest.mark.parametrize("offset", [-4, -400])
def test_load_before_the_start(offset: int) -> None:
    text = kernel("u64 x, u64 y", THREAD + pointer("%rd0", "x") + pointer("%rd1", "y")
                  + f"ld.global.f32 %f0, [%rd0+{offset}]; st.global.f32 [%rd1], %f0; ret;")
    memory = np.zeros(300, np.float32)
    error = fault(MemoryFault, text, 1, 32, x=memory[100:200], y=memory[200:])
    assert error.message == f"load from x[{offset // 4}]: x is f32[100]"
    assert error.thread == (0, 0, 0)


def test_into_the_next_array_is_a_fault_too() -> None:
    """x and y are neighbours: the address is good, the array is not."""
    memory = np.arange(64, dtype=np.float32)
    text = kernel("u64 x, u64 y", THREAD + pointer("%rd0", "x") + pointer("%rd1", "y")
                  + "ld.global.f32 %f0, [%rd0+4]; st.global.f32 [%rd1], %f0; ret;")
    error = fault(MemoryFault, text, 1, 32, x=memory[:32], y=memory[32:])
    assert (error.message, error.thread) == ("load from x[32]: x is f32[32]", (31, 0, 0))


def test_indices_of_several_dimensions() -> None:
    text = kernel("u64 x", THREAD + pointer("%rd0", "x", size=8) + "ld.global.f64 %fd0, [%rd0+80]; ret;")
    error = fault(MemoryFault, text, 1, 64, x=np.zeros((5, 3, 4)))
    assert (error.message, error.thread) == ("load from x[5, 0, 0]: x is f64[5, 3, 4]", (50, 0, 0))


def test_vector_access_over_the_end() -> None:
    load = "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0]; ret;"
    text = kernel("u64 x", THREAD + pointer("%rd0", "x", size=16) + load)
    error = fault(MemoryFault, text, 1, 32, x=np.zeros(38, np.float32))
    assert (error.message, error.thread) == ("load of 16 bytes from x[36]: x is f32[38]", (9, 0, 0))


def test_varying_addresses_name_the_lane() -> None:
    order = np.array([*range(20), 77, *range(11)], np.uint32)
    text = kernel("u64 order, u64 x", THREAD + pointer("%rd0", "order") + "ld.global.u32 %r3, [%rd0];"
                  + pointer("%rd1", "x", "%r3") + "atom.global.add.u32 %r4, [%rd1], 1; ret;")
    error = fault(MemoryFault, text, 1, 32, order=order, x=np.zeros(64, np.uint32))
    assert (error.message, error.thread) == ("atomic operation on x[77]: x is u32[64]", (20, 0, 0))


def test_misaligned() -> None:
    load = "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0]; ret;"
    text = kernel("u64 x", THREAD + pointer("%rd0", "x", size=8) + load)
    memory = np.zeros(256, np.float32)
    x = memory[-(memory.ctypes.data // 4) % 4 :][:200]
    error = fault(MemoryFault, text, 1, 8, x=x)
    assert error.message == f"load from address {x.ctypes.data + 8:#x} (x[2]): 16 bytes must be aligned to 16 bytes"
    assert error.thread == (1, 0, 0)


def test_misaligned_uniform_address() -> None:
    text = kernel("u64 x", "ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [%rd0+6]; ret;")
    x = np.zeros(8, np.uint32)
    error = fault(MemoryFault, text, 1, 8, x=x)
    place = f"address {x.ctypes.data + 6:#x} (x[1] plus 2 bytes)"
    assert error.message == f"load from {place}: 4 bytes must be aligned to 4 bytes"


def test_null() -> None:
    text = kernel("u64 x", "ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [%rd0+8]; ret;")
    error = fault(MemoryFault, text, 1, 1, x=np.uint64(0))
    assert error.message == "load from address 0x8, a null pointer"


def test_wild_pointer() -> None:
    text = kernel("u64 x, u64 y", "ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [%rd0]; ret;")
    y = np.zeros(4, np.uint32)
    error = fault(MemoryFault, text, 1, 1, x=np.uint64(y.ctypes.data + 24), y=y)
    assert error.message == (
        f"load from address {y.ctypes.data + 24:#x}, which lies in no array of the launch; 8 bytes after the end of y"
    )


def test_read_only() -> None:
    x = np.zeros(32, np.uint32)
    error = fault(MemoryFault, STORE, 1, 32, x=buffer("x", x, writable=False))
    assert error.message == "store to x[0]: x is read-only"
    text = kernel("u32 n", "mov.u64 %rd0, table; cvta.const.u64 %rd0, %rd0; st.u32 [%rd0+4], 1; ret;")
    error = fault(MemoryFault, text.replace(".visible", ".const .u32 table[4];\n.visible"), 1, 1, n=np.uint32(0))
    assert error.message == "store to table[1]: table is read-only"


def test_guarded_and_ended_lanes_touch_nothing() -> None:
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + """
        setp.ge.u32 %p0, %r0, 40; setp.lt.u32 %p1, %r0, 10;
        @%p0 exit;
        @!%p1 st.global.u32 [%rd0], 5;
        @%p1 st.global.u32 [%rd0], 6;
        ret;
    """)
    x = np.zeros(40, np.uint32)
    launch(text, 1, 64, x=x)
    assert x.tolist() == [6] * 10 + [5] * 30


SHARED = kernel("u64 x", """
    .shared .align 4 .f32 tile[32];
    .shared .align 4 .f32 other[32];
""" + THREAD + "mov.u32 %r10, tile; mad.lo.u32 %r11, %r2, 4, %r10;\nst.shared.f32 [%r11], 0f00000000;\nret;")


def test_shared_out_of_bounds_into_the_neighbour() -> None:
    error = fault(MemoryFault, SHARED, 1, 64, x=np.zeros(1))
    assert error.message == "store to tile[32]: tile is f32[32] in shared memory"
    assert error.thread == (32, 0, 0)


def test_shared_memory_that_there_is_none_of() -> None:
    text = kernel("u64 x", THREAD + "mov.u32 %r3, 0x2000; ld.shared.u32 %r4, [%r3]; ret;")
    error = fault(MemoryFault, text, 1, 32, x=np.zeros(1))
    assert error.message == "load from shared address 0x2000: the block has 0 bytes of shared memory"
    assert error.hint == "give it dynamic shared memory: `kernel.configure(grid, block, shared=...)`"


def test_local_out_of_bounds() -> None:
    text = kernel("u64 x", ".local .align 4 .u32 mine[4];\n" + THREAD + """
        mov.u64 %rd0, mine; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd0, %rd0, %rd1; st.local.u32 [%rd0], 1; ret;
    """)
    error = fault(MemoryFault, text, 1, 32, x=np.zeros(1))
    assert error.message == "store to mine[4]: mine is u32[4] in local memory"
    assert error.thread == (4, 0, 0)


def test_trap() -> None:
    text = kernel("u64 x", THREAD + "setp.eq.u32 %p0, %r0, 37;\n@%p0 trap;\nret;")
    error = fault(TrapError, text, 1, 64, x=np.zeros(1))
    assert (error.message, error.thread) == ("the kernel executed `trap`", (37, 0, 0))
    assert error.instruction == "@%p0 trap"


# Barriers


def test_divergent_barrier() -> None:
    text = kernel("u64 x", THREAD + """
        setp.lt.u32 %p0, %r2, 40; @!%p0 bra SKIP;
        bar.sync 0;
        SKIP: st.global.u32 [%rd0], 1; ret;
    """)
    error = fault(BarrierError, text, 1, 64, x=np.zeros(1))
    assert error.message == "`bar.sync` is reached by lanes 0-7 of warp 1 while lanes 8-31 are elsewhere"
    assert error.hint == "move the barrier out of the branch, so that all threads of the warp reach it together"
    assert error.ptx_line == line_of(text, "bar.sync")


@pytest.mark.parametrize(("operands", "message"), [
    ("%r3", "`bar.sync` names a barrier beyond 15"),
    ("0, %r3", "`bar.sync` waits for a number of threads that is no positive multiple of 32"),
])
def test_bad_barrier(operands: str, message: str) -> None:
    text = kernel("u32 n", f"ld.param.u32 %r3, [n]; bar.sync {operands}; ret;")
    assert fault(BarrierError, text, 1, 64, n=np.uint32(17)).message == message


def test_barrier_with_two_counts() -> None:
    text = kernel("u64 x", THREAD + "setp.lt.u32 %p0, %r2, 32; selp.u32 %r3, 64, 96, %p0; bar.sync 1, %r3; ret;")
    error = fault(BarrierError, text, 1, 96, x=np.zeros(1))
    assert error.message == "`bar.sync` waits for another number of threads than those who arrived before"


def test_deadlock_names_every_waiting_warp() -> None:
    text = kernel("u64 x", THREAD + """
        setp.lt.u32 %p0, %r2, 64; @!%p0 bra OTHER;
        bar.sync 1, 128;
        ret;
        OTHER: setp.lt.u32 %p1, %r2, 96; @!%p1 exit;
        bar.sync 2, 64;
        ret;
    """)
    error = fault(DeadlockError, text, 1, 128, x=np.zeros(1))
    first, second = line_of(text, "bar.sync 1"), line_of(text, "bar.sync 2")
    assert error.message == (
        "deadlock: all warps of the block wait at barriers that nobody completes; 1 of the block's 4 warps have ended\n"
        f"  warps 0-1 wait at barrier 1 (2 of 4 warps have arrived): bar.sync 1, 128 at PTX line {first}\n"
        f"  warp 2 waits at barrier 2 (1 of 2 warps have arrived): bar.sync 2, 64 at PTX line {second}"
    )
    assert error.ptx_line == first


@pytest.mark.parametrize("who", ["warp", "lane", "block"])
def test_waiting_for_what_nobody_writes(who: str) -> None:
    test = {"warp": "setp.ge.u32 %p0, %r2, 32;", "lane": "setp.ne.u32 %p0, %r2, 3;"}
    test["block"] = "setp.ge.u32 %p0, %r0, 64;"
    text = kernel("u64 flag", THREAD + "ld.param.u64 %rd0, [flag];\n" + test[who] + """
        @%p0 exit;
        WAIT: ld.volatile.global.u32 %r3, [%rd0]; setp.eq.u32 %p1, %r3, 0;
        @%p1 bra WAIT;
        ret;
    """)
    error = fault(DeadlockError, text, 3, 64, flag=np.zeros(1, np.uint32))
    assert error.message == "deadlock: every warp polls memory in a loop, and nothing changes it any more"
    assert error.ptx_line is not None and abs(error.ptx_line - line_of(text, "bra WAIT")) <= 1


def test_warps_that_poll_for_ever_in_turns_by_lot() -> None:
    text = kernel("u64 flag", THREAD + """
        ld.param.u64 %rd0, [flag]; WAIT: ld.volatile.global.u32 %r3, [%rd0]; setp.eq.u32 %p1, %r3, 0;
        @%p1 bra WAIT; ret;
    """)
    with pytest.raises(DeadlockError, match="nothing changes it any more"):
        emulator.load(text).run("k", LaunchConfig(3, 96, seed=5), [buffer("flag", np.zeros(1, np.uint32))])


def test_shuffle_with_lanes_that_are_elsewhere() -> None:
    text = kernel("u64 x", THREAD + """
        mov.u32 %r3, 0; setp.lt.u32 %p0, %r2, 8; @!%p0 bra SKIP;
        shfl.sync.bfly.b32 %r3, %r2, 1, 31, 0xFFFFFFFF;
        SKIP: bar.sync 0; ret;
    """)
    error = fault(BarrierError, text, 1, 32, x=np.zeros(1))
    assert error.message == "`shfl` names lanes 8-31 in its member mask 0xffffffff, but they are elsewhere"
    text = text.replace("0xFFFFFFFF", "0x0F")
    error = fault(BarrierError, text, 1, 32, x=np.zeros(1))
    assert error.message == "`shfl` is executed by lanes 4-7, which its member mask 0xf does not name"


# What the emulator cannot do


def test_an_instruction_without_semantics_is_an_error_before_anything_runs() -> None:
    text = kernel("u64 x", "ld.param.u64 %rd0, [x]; st.global.u32 [%rd0], 1;\nfabric.submit; ret;")
    text = text.replace("sm_90", "sm_107a").replace(".version 8.6", ".version 9.4")
    x = np.zeros(1, np.uint32)
    with pytest.raises(EmulationError, match=r"does not support `fabric\.submit`") as caught:
        launch(text, 1, 32, x=x)
    assert caught.value.ptx_line == line_of(text, "fabric") and x[0] == 0


KEEP = kernel("u64 box, u64 x", pointer("%rd0", "box") + pointer("%rd1", "x") + "st.global.u64 [%rd0], %rd1;\nret;")
FOLLOW = kernel("u64 box", pointer("%rd0", "box") + "ld.global.u64 %rd1, [%rd0]; st.global.u32 [%rd1+8], %r0;\nret;")


@pytest.mark.parametrize("freed", [True, False])
def test_a_pointer_to_an_array_of_an_earlier_launch(freed: bool) -> None:
    box, x = np.zeros(1, np.uint64), np.ones(1 << 20, np.float32)
    launch(KEEP, 1, 1, box=box, x=x)
    if freed:
        del x
    error = fault(MemoryFault, FOLLOW, 1, 1, box=box)
    why = "has been freed" if freed else "is no argument of this launch"
    assert error.message == (
        f"store to address {int(box[0]) + 8:#x}, which lay in `x` of a launch of `k`; that array {why}"
    )
    assert error.hint == (
        "pass every array that a kernel follows pointers to, as an argument or in a table (`Ptr[Ptr[f32]]`)"
    )


def test_what_lay_beside_an_array_once_is_not_what_was_meant() -> None:
    box, x = np.zeros(1, np.uint64), np.ones(64, np.float32)
    launch(KEEP, 1, 1, box=box, x=x)
    follow = kernel(
        "u64 box, u64 half", pointer("%rd0", "box") + "ld.global.u64 %rd1, [%rd0]; st.global.u32 [%rd1+128], %r0;\nret;"
    )
    error = fault(MemoryFault, follow, 1, 1, box=box, half=x[:32])
    assert error.message.endswith("which lies in no array of the launch; 0 bytes after the end of half")


def test_every_fault_has_a_text() -> None:
    from ptxdsl.emulator.machine.status import Fault
    from ptxdsl.emulator.runtime import events, faults  # noqa: F401 - the texts register themselves

    assert set(faults._explanations) == set(Fault) - {Fault.WRAP, Fault.CONVERGENCE, Fault.SOURCE, Fault.PRODUCT_NEW}
