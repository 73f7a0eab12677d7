"""Allocation of tensor memory: places, waiting, pairs of blocks, and every fault word for word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_memory_programs import ALLOCATE, FREE, kernel, launched, registers

from ptxdsl import DeadlockError, EmulationError, MemoryFault

Rng = np.random.Generator
ONE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
GIVE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
STORE = "st.global.b32 [%out+{at}], %r{n};"


def alone(body: str, size: int = 4, threads: int = 32, **how: Any) -> list[int]:
    """The numbers that a warp writes."""
    named = {key: how.pop(key) for key in ("target", "version", "cluster", "registers") if key in how}
    return [int(x) for x in launched(kernel(body, columns=0, **named), np.zeros(4), (size,), threads, **how)]


def taken(*counts: int) -> str:
    """Allocations one after the other; their addresses are %r0, %r1, ..."""
    lines = [f"{ONE} [slot], {count};\nld.shared.b32 %r{n}, [slot];" for n, count in enumerate(counts)]
    return "\n".join([*lines, *(STORE.format(at=4 * n, n=n) for n in range(len(counts)))]) + "\n"


def freed(*pairs: tuple[int, int]) -> str:
    return "".join(f"{GIVE} %r{n}, {count};\n" for n, count in pairs)


def fault(kind: type[EmulationError], body: str, threads: int = 32, **how: Any) -> EmulationError:
    with pytest.raises(kind) as caught:
        alone(body, threads=threads, **how)
    return caught.value


def test_allocations_lie_side_by_side() -> None:
    assert alone(taken(32, 128, 64) + freed((1, 128), (0, 32), (2, 64)), 3) == [0, 32, 160]


def test_what_is_freed_is_allocated_again() -> None:
    body = taken(32, 32, 64) + freed((0, 32)) + f"{ONE} [slot], 64; ld.shared.b32 %r3, [slot];\n"
    body += f"{ONE} [slot], 32; ld.shared.b32 %r4, [slot];\n" + STORE.format(at=12, n=3) + STORE.format(at=16, n=4)
    assert alone(body + freed((1, 32), (2, 64), (3, 64), (4, 32)), 5) == [0, 32, 64, 128, 0]


def test_a_number_in_a_register_and_a_generic_address() -> None:
    body = """
    mov.u32 %c, 256;
    cvta.shared.u64 %at, slot;
    tcgen05.alloc.cta_group::1.sync.aligned.b32 [%at+8], %c;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    ld.shared.b32 %r0, [slot+8];
    st.global.b32 [%out], %r0;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, %c;
    """
    assert alone(body.replace("cvta.shared.u64 %at, slot;", "mov.u64 %at, slot; cvta.shared.u64 %at, %at;"), 1) == [0]


def test_every_block_begins_with_free_tensor_memory() -> None:
    """Also the next one in the same state, and what was there is unknown."""
    body = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r0, %r1, %r2, %r3}, [%b];"
    lines = "".join(f"st.global.b32 [%at+{4 * n}], %r{n};" for n in range(4))
    place = "mul.wide.u32 %at, %t, 16; add.u64 %at, %at, %out; add.u32 %b, %base, %quarter;\n"
    store = "mov.u32 %r9, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%b], {%r9};"
    store += "tcgen05.wait::st.sync.aligned;"
    out = launched(kernel(place + body + lines + store, columns=512), np.zeros(4), (128, 4), grid=3)
    assert (out == 0xFFFFFFFF).all()
    again = launched(kernel(place + body + lines + store, columns=512), np.zeros(4), (128, 4), grid=3)
    assert (again == 0xFFFFFFFF).all()


WAITING = """
    setp.ne.u32 %p, %w, 0;
    @%p bra SECOND;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;
    bar.sync 0;
    ld.shared.b32 %r0, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 512;
    bra DONE;
SECOND:
    bar.sync 0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], {columns};
    ld.shared.b32 %r1, [slot+4];
    st.global.b32 [%out], %r1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {columns};
DONE:
"""


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_an_allocation_waits_until_columns_are_free(seed: int | None) -> None:
    assert alone(WAITING.format(columns=64), 1, 64, seed=seed) == [0]


def test_an_allocation_that_nobody_makes_room_for() -> None:
    body = taken(512) + f"{ONE} [slot], 32;\n" + freed((0, 512))
    error = fault(DeadlockError, body)
    assert error.message == (
        "deadlock: all warps wait, some for tensor memory\n"
        "  warp 0 waits until so many columns of tensor memory are free; allocated are columns 0 to 511: "
        f"{ONE} [slot], 32 at PTX line {error.ptx_line}"
    )
    assert error.hint == "free what is no longer needed before more is allocated: `tcgen05.dealloc`"


# Faults


@pytest.mark.parametrize("count", [0, 16, 96, 1024])
def test_how_many_columns(count: int) -> None:
    error = fault(EmulationError, f"mov.u32 %c, {count};\n{ONE} [slot], %c;")
    assert error.message == f"`{ONE}` of {count} columns: an allocation has 32, 64, 128, 256 or 512 columns"


def test_lanes_that_give_different_numbers() -> None:
    error = fault(EmulationError, f"shl.b32 %c, %t, 5;\n{ONE} [slot], %c;")
    assert error.message == f"`{ONE}`: the lanes of warp 0 give different numbers"
    assert error.hint == "all lanes of the warp give the same address and the same number of columns"


def test_after_the_permit_is_given_up() -> None:
    error = fault(EmulationError, f"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n{ONE} [slot], 32;")
    assert error.message == f"`{ONE}` after `tcgen05.relinquish_alloc_permit` of this block"
    assert error.hint == "allocate all tensor memory before it"


def test_some_lanes_of_a_warp() -> None:
    body = f"setp.lt.u32 %p, %t, 7;\n@!%p bra L;\n{ONE} [slot], 32;\nL: st.global.b32 [%out], %t;"
    error = fault(EmulationError, body)
    assert error.message == f"`{ONE}` takes all 32 lanes of a warp, and lanes 7-31 of warp 0 are elsewhere"
    error = fault(EmulationError, f"setp.lt.u32 %p, %t, 7;\n@!%p ret;\n{ONE} [slot], 32;")
    assert error.message == f"`{ONE}` takes all 32 lanes of a warp, and warp 0 has lane 7, which has ended"


def test_what_is_never_freed() -> None:
    error = fault(EmulationError, taken(32, 64) + freed((0, 32)))
    line = (error.ptx_line or 0) - 6
    assert error.message == (
        f"the block ends without having freed columns 32 to 95 of its tensor memory, allocated by {ONE} [slot], 64 "
        f"at PTX line {line}"
    )
    assert error.hint == "one warp frees them when all others are done: `tcgen05.dealloc`"


@pytest.mark.parametrize(("columns", "place"), [(32, 0), (128, 0), (32, 32), (64, 1 << 16), (0, 0)])
def test_what_is_freed_otherwise_than_it_was_allocated(columns: int, place: int) -> None:
    error = fault(MemoryFault, taken(64, 64) + f"add.u32 %r0, %r0, {place}; mov.u32 %c, {columns};\n{GIVE} %r0, %c;")
    assert error.message == (
        f"`{GIVE}` of {columns} columns from address {place:#x}, which were not allocated like that; allocated are "
        "columns 0 to 63 and columns 64 to 127"
    )
    assert error.hint == "free what `tcgen05.alloc` has written to shared memory, with the same number of columns"


def test_freed_twice() -> None:
    error = fault(MemoryFault, taken(64) + freed((0, 64)) + freed((0, 64)))
    assert error.message == (
        f"`{GIVE}` of 64 columns from address 0x0, which were not allocated like that; they were freed before: "
        f"{GIVE} %r0, 64 at PTX line {(error.ptx_line or 0) - 1}; nothing is allocated"
    )


def test_an_address_that_goes_elsewhere() -> None:
    error = fault(MemoryFault, "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%out], 32;")
    assert error.message.startswith("`tcgen05.alloc.cta_group::1.sync.aligned.b32` writes the address to 0x")
    assert error.message.endswith(", which is not the block's own shared memory")
    assert error.hint == "give it the address of a variable in shared memory"


def test_two_groups_in_one_kernel() -> None:
    error = fault(EmulationError, taken(32) + "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;")
    name = "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"
    assert error.message == f"`{name}` in a block that has used `.cta_group::1` before"
    assert error.hint == "all tcgen05 instructions of a kernel have the same: `.cta_group::1`"


@pytest.mark.parametrize(("address", "text"), [
    (64, "columns 64 to 67 of tensor memory, of which column 64 is not allocated; allocated are columns 0 to 63"),
    (62, "columns 62 to 65 of tensor memory, of which column 64 is not allocated; allocated are columns 0 to 63"),
    (510, "columns 510 to 513 of tensor memory, which has 512; allocated are columns 0 to 63"),
    (0xFFFE, "columns 65534 to 65537 of tensor memory, which has 512; allocated are columns 0 to 63"),
])
@pytest.mark.parametrize("opcode", ["ld", "st"])
def test_columns_that_are_not_there(opcode: str, address: int, text: str) -> None:
    parts = (registers(4), "[%b]") if opcode == "ld" else ("[%b]", registers(4))
    form = f"tcgen05.{opcode}.sync.aligned.32x32b.x4.b32"
    body = taken(64) + f"mov.u32 %b, {address};\n{form} {', '.join(parts)};"
    assert fault(MemoryFault, body).message == f"`{form}` accesses {text}"


@pytest.mark.parametrize("opcode", ["ld", "st"])
def test_the_second_half_of_the_lanes_has_columns_of_its_own(opcode: str) -> None:
    form = f"tcgen05.{opcode}.sync.aligned.16x32bx2.x4.b32"

    def body(half: int) -> str:
        parts = (registers(4), "[%b]", str(half)) if opcode == "ld" else ("[%b]", str(half), registers(4))
        access = f"mov.u32 %b, 20; mov.u32 %r9, %r0;\n{form} {', '.join(parts)};\n"
        return taken(64) + access + f"tcgen05.wait::{opcode}.sync.aligned;\n" + freed((9, 64))

    alone(body(40))
    assert fault(MemoryFault, body(41)).message == (
        f"`{form}` accesses columns 61 to 64 of tensor memory, of which column 64 is not allocated; "
        "allocated are columns 0 to 63"
    )


def test_used_after_it_was_freed() -> None:
    form = "tcgen05.ld.sync.aligned.16x64b.x1.b32"
    error = fault(MemoryFault, taken(32, 32) + freed((0, 32), (1, 32)) + f"{form} {{%r2}}, [%r1+1];")
    assert error.message == (
        f"`{form}` accesses columns 33 to 34 of tensor memory, of which column 32 was freed by {GIVE} %r1, 32 "
        f"at PTX line {(error.ptx_line or 0) - 1}"
    )


@pytest.mark.parametrize(("shape", "lane", "threads"), [
    ("32x32b", 32, 32), ("32x32b", 16, 32), ("32x32b", 0, 64), ("16x64b", 8, 32), ("16x256b", 64, 32),
    ("16x128b", 0x4000, 32), ("32x32b", 64, 256),
])
def test_lanes_that_a_warp_may_not_touch(shape: str, lane: int, threads: int) -> None:
    count = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    form = f"tcgen05.ld.sync.aligned.{shape}.x1.b32"
    body = ALLOCATE.format(columns=32, group=1, slot=0, n=0)
    body += f"setp.lt.u32 %p, %t, {threads - 32};\n@%p bra L;\nadd.u32 %b, %base, {lane << 16:#x};\n"
    error = fault(MemoryFault, f"{body}{form} {registers(count)}, [%b];\nL:", threads)
    warp = threads // 32 - 1
    first = 32 * (warp % 4)
    allowed = f"{first}" if shape == "32x32b" else f"{first} or {first + 16}"
    assert error.message == (
        f"`{form}` at lane {lane} of tensor memory in warp {warp}, which reaches lanes {first} to {first + 31}: "
        f"an access of this shape begins at lane {allowed}"
    )
    assert error.hint == "add 32 times the number of the warp in its group of four to the upper half of the address"


def test_different_addresses() -> None:
    form = "tcgen05.ld.sync.aligned.32x32b.x1.b32"
    error = fault(EmulationError, taken(32) + f"and.b32 %b, %t, 1;\n{form} {{%r1}}, [%b];")
    assert error.message == f"`{form}`: the lanes of warp 0 give different numbers"


# Exclusive allocations


def test_exclusive_allocations() -> None:
    alloc = "tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32"
    give = "tcgen05.dealloc.exclusive.cta_group::1.sync.aligned.b32"
    how = {"target": "sm_107a", "version": "9.4"}
    body = f"mov.u32 %c, {{0}};\n{alloc} [slot], %c;\nld.shared.b32 %r0, [slot];\nst.global.b32 [%out], %r0;\n"
    assert alone(body.format(576) + f"{give} %r0, %c;", 1, **how) == [0]
    assert alone(body.format(96) + f"{give} %r0, %c;", 1, **how) == [0]
    error = fault(MemoryFault, body.format(96) + f"{GIVE} %r0, %c;", **how)
    assert error.message.startswith(f"`{GIVE}` of 96 columns from address 0x0, which were not allocated like that;")
    error = fault(EmulationError, body.format(48), **how)
    assert error.message == f"`{alloc}` of 48 columns: an allocation has a multiple of 32 columns, at most 576"
    error = fault(DeadlockError, body.format(32) + f"{ONE} [slot], 32;", **how)
    assert "allocated are columns 0 to 31" in error.message


# Pairs


PAIR = """
    mov.u32 %rank, %cluster_ctarank;
""" + ALLOCATE.format(columns=64, group=2, slot=0, n=0) + ALLOCATE.format(columns=128, group=2, slot=4, n=1) + """
    ld.shared.u32 %a, [slot];
    setp.ne.u32 %p, %t, 0;
    mul.wide.u32 %at, %rank, 8;
    add.u64 %at, %at, %out;
    @!%p st.global.v2.b32 [%at], {%a, %base};
""" + FREE.format(columns=128, group=2, n=0) + "mov.u32 %base, %a;" + FREE.format(columns=64, group=2, n=1)


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("blocks", [2, 4])
def test_both_blocks_of_a_pair_get_the_same_columns(blocks: int, seed: int | None) -> None:
    found = alone(PAIR, 2 * blocks, 64, grid=3 * blocks, cluster=blocks, seed=seed)
    assert found == [0, 64] * blocks


def test_a_pair_needs_another_block() -> None:
    alloc = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"
    error = fault(EmulationError, PAIR, 64)
    assert error.message == f"`{alloc}` works on a pair of blocks, and block 0 of the cluster has no other"
    assert error.hint == "launch it in clusters of two blocks: `kernel.configure(grid, block, cluster=2)`"


def test_a_pair_whose_other_block_has_ended() -> None:
    alloc = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"
    error = fault(EmulationError, "mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p, %r0, 1; @%p ret;" + PAIR, 64,
                  grid=2, cluster=2)
    assert error.message == f"`{alloc}` works on both blocks of a pair, and block 1 of the cluster has ended"


def test_a_pair_that_does_not_agree() -> None:
    alloc = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"
    body = f"mov.u32 %rank, %cluster_ctarank; add.u32 %c, %rank, 1; shl.b32 %c, %c, 5;\n{alloc} [slot], %c;"
    error = fault(EmulationError, body, 32, grid=2, cluster=2)
    assert error.message == (
        f"`{alloc}`: this block allocates 64 columns, and the other block of the pair allocates 32 columns"
    )
    assert error.hint == "both blocks of a pair make the same allocations in the same order"

