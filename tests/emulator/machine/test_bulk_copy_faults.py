"""Faults of bulk copies, word for word: size, alignment, bounds, the mbarrier, the block of a cluster."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest
from bulk_copy_kernels import EXPECT, FETCH, LOADS, STORES, SUMS, TX, WAIT, module, run
from emulator_harness import argument, buffer

from ptxdsl import emulator
from ptxdsl.errors import BarrierError, DeadlockError, EmulationError, MemoryFault
from ptxdsl.launch import LaunchConfig

FAULTS = {
    "size": (LOADS, 40, f"`cp.async.bulk.shared::cta.global.{TX}` of 40 bytes, which is no multiple of 16"),
    "reduced": (
        SUMS, 8, "`cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32` of 8 bytes, which is no multiple of 16",
    ),
    "source": (LOADS, 528, "bulk copy of 528 bytes from x[0]: x is u8[512]"),
    "inside": (f"add.u64 %rd0, %rd0, 256; {LOADS}", 272, "bulk copy of 272 bytes from x[256]: x is u8[512]"),
    "before": (f"sub.u64 %rd0, %rd0, 16; {LOADS}", 32, "bulk copy of 32 bytes from x[-16]: x is u8[512]"),
    "tile": (
        f"add.u32 %r10, %r10, 4080; {LOADS}", 32,
        "bulk copy of 32 bytes to tile[4080]: tile is b8[4096] in shared memory",
    ),
    "dest": (STORES, 1040, "bulk copy of 1040 bytes to out[0, 0]: out is f32[16, 16]"),
    "sums": (
        f"add.u64 %rd1, %rd1, 96; {SUMS}", 1024, "bulk reduction of 1024 bytes to out[1, 8]: out is f32[16, 16]",
    ),
    "null": (f"mov.u64 %rd0, 0; {LOADS}", 64, "bulk copy of 64 bytes from address 0x0, a null pointer"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    copy, size, message = FAULTS[name]
    lines = copy.replace("; ", ";\n")
    text = module(f"setp.eq.u32 %p0, %r2, 3;\n@!%p0 bra OVER;\n{lines}\nOVER:\n")
    x, out = np.zeros(512, np.uint8), np.zeros((16, 16), np.float32)
    with pytest.raises(MemoryFault) as caught:
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))
    assert caught.value.message == message
    assert caught.value.thread == (3, 0, 0)
    assert caught.value.instruction == copy.rpartition("; ")[2].rstrip(";")
    assert text.splitlines()[(caught.value.ptx_line or 0) - 1].startswith("cp.")


@pytest.mark.parametrize(("change", "end"), [("add.u64 %rd0, %rd0, 8;", "from"), ("add.u32 %r10, %r10, 4;", "to")])
def test_misaligned(change: str, end: str) -> None:
    x = np.zeros(512, np.uint8)[-np.zeros(512, np.uint8).ctypes.data % 16 :]
    with pytest.raises(MemoryFault) as caught:
        run(module(f"{change} @%p0 {LOADS}"), 1, 32, x=x, out=np.zeros(1), n=np.uint32(64))
    place = "x[8]" if end == "from" else "tile[4]"
    start, rest = caught.value.message.split(" address ")
    assert start == f"bulk copy of 64 bytes {end}"
    assert rest.split(" ", 1)[1] == f"({place}): bulk copies must be aligned to 16 bytes"


def test_read_only_memory() -> None:
    x, out = np.zeros(512, np.uint8), np.zeros(64, np.uint8)
    arguments = [argument("x", x), buffer("out", out, writable=False), argument("n", np.uint32(64))]
    with pytest.raises(MemoryFault) as caught:
        emulator.load(module(f"@%p0 {STORES}")).run("k", LaunchConfig(1, 32), arguments)
    assert caught.value.message == "bulk copy of 64 bytes to out[0]: out is read-only"


def test_no_mbarrier() -> None:
    x, copy = np.zeros(512, np.uint8), LOADS.replace("%r11", "%r13")
    with pytest.raises(BarrierError) as caught:
        run(module(f"add.u32 %r13, %r10, 64; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))
    assert caught.value.message == (
        f"`cp.async.bulk.shared::cta.global.{TX}` of tile[64]: what lies there is no mbarrier"
    )
    with pytest.raises(MemoryFault) as fault:
        run(module(f"add.u32 %r13, %r10, 4; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))
    assert fault.value.message.endswith("(tile[4]): 8 bytes must be aligned to 8 bytes")
    with pytest.raises(MemoryFault, match=r"atomic of 8 bytes on tile\[8192\]: tile is b8\[4096\] in shared memory"):
        run(module(f"add.u32 %r13, %r10, 8192; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))


def test_from_one_array_into_the_next() -> None:
    """A pointer of unknown origin, that no name of an array restricts."""
    table, x = np.zeros(2, np.uint64), np.zeros(64, np.uint8)
    table[0] = x.ctypes.data
    body = "ld.global.u64 %rd0, [%rd0]; @%p0 " + LOADS.replace("%r12", "128")
    with pytest.raises(MemoryFault, match="bulk copy of 128 bytes from"):
        run(module(body), 1, 32, x=table, out=x, n=np.uint32(0))


@pytest.mark.parametrize(("size", "offset", "good"), [(96, 0, True), (80, 16, True), (112, 0, False), (96, 16, False)])
def test_memory_of_malloc(size: int, offset: int, good: bool) -> None:
    """Two pieces of 96 bytes, one behind the other: a copy may not go from the first into what lies behind it."""
    piece = "{{ .param .b64 a; .param .b64 r; st.param.b64 [a], 96; call (r), malloc, (a); ld.param.b64 {}, [r]; }}\n"
    body = f"""
        @!%p0 bra OVER; {piece.format("%rd5")} {piece.format("%rd6")} st.global.u32 [%rd5+16], 7;
        add.u64 %rd0, %rd5, {offset}; {EXPECT} {LOADS} {WAIT}
        ld.shared.u32 %r20, [tile+{16 - offset}]; st.global.u32 [%rd1], %r20;
        OVER:
    """
    text = module(body).replace(".visible", ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.visible")
    x, out = np.zeros(1), np.zeros(4, np.uint32)
    if good:
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))
        assert out[0] == 7
        return
    span = f"from bytes {offset} to {offset + size - 1} of the 96 bytes"
    with pytest.raises(MemoryFault, match=f"bulk copy of {size} bytes {span}"):
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))


CLUSTER_FAULTS = {
    "mbarrier": (
        f"mapa.shared::cluster.u32 %r11, %r11, 1; @%p0 {FETCH} [%r10], [%rd0], 64, [%r11];",
        f"`{FETCH}` writes to block 0 of the cluster, and its mbarrier lies in block 1",
    ),
    "own": (
        "mapa.shared::cluster.u32 %r10, %r10, 1; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 64;",
        "`cp.async.bulk.global.shared::cta.bulk_group` of an address in block 1 of the cluster, executed by block 0",
    ),
    "beyond": (
        f"mov.b16 %h1, 4; @%p0 {FETCH}.multicast::cluster [%r10], [%rd0], 64, [%r11], %h1;",
        "bulk copy of 64 bytes to shared address 0x400 of block 2 of the cluster, which has 2 blocks",
    ),
}


@pytest.mark.parametrize("name", CLUSTER_FAULTS)
def test_the_wrong_block_of_a_cluster(name: str) -> None:
    copy, message = CLUSTER_FAULTS[name]
    with pytest.raises(MemoryFault) as caught:
        run(module(copy), 2, 32, 2, x=np.zeros(64, np.uint8), out=np.zeros(64, np.uint8), n=np.uint32(0))
    assert caught.value.message == message
    assert "%async" not in str(caught.value)
    assert caught.value.instruction is not None
    assert caught.value.instruction.rstrip(";") == "@%p0" + copy.split("@%p0")[1].rstrip(";")


def test_bytes_that_nobody_copies() -> None:
    with pytest.raises(DeadlockError, match="64 bytes"):
        run(module("mov.u32 %r12, 64;" + EXPECT + WAIT), 1, 32, x=np.zeros(1), out=np.zeros(1), n=np.uint32(0))


IGNORES = f"cp.async.bulk.shared::cta.global.{TX}.ignore_oob"


@pytest.mark.parametrize(("left", "right", "size", "message"), [
    (16, 0, 64, f"`{IGNORES}` ignores 16 bytes at the begin and 0 at the end; it can ignore 0 to 15"),
    (0, 99, 64, f"`{IGNORES}` ignores 0 bytes at the begin and 99 at the end; it can ignore 0 to 15"),
    (4, 0, 40, f"`{IGNORES}` of 40 bytes, which is no multiple of 16"),
    (4, 3, 64, "bulk copy of 57 bytes from x[4]: x is u8[60]"),
    (4, 12, 80, "bulk copy of 64 bytes from x[4]: x is u8[60]"),
    (4, 4, 64, None),
])
def test_faults_of_copies_that_ignore_bytes(left: int, right: int, size: int, message: str | None) -> None:
    copy = f"@%p0 {IGNORES} [%r10], [%rd0], %r12, {left}, {right}, [%r11];"
    text = module(f"mov.u32 %r12, {size};{EXPECT}{copy}{WAIT}")
    with pytest.raises(MemoryFault) if message else nullcontext() as caught:
        run(text, 1, 32, x=np.zeros(60, np.uint8), out=np.zeros(1), n=np.uint32(0))
    assert message is None or caught.value.message == message


def test_a_copy_that_ignores_bytes_is_aligned_as_others() -> None:
    copy = f"@%p0 {IGNORES} [%r10], [%rd0], 16, 8, 0, [%r11];"
    with pytest.raises(MemoryFault) as caught:
        run(module("add.u64 %rd0, %rd0, 8;" + copy), 1, 32, x=np.zeros(64, np.uint8), out=np.zeros(1), n=np.uint32(0))
    message = r"bulk copy of 8 bytes from address 0x\w+ \(x\[8\]\): bulk copies must be aligned to 16 bytes"
    assert re.fullmatch(message, caught.value.message)


def test_what_stays_refused() -> None:
    report = "mbarrier::report::validity::per_element::ff"
    copy = f"cp.async.bulk.shared::cta.global.{TX}.{report} [%r10], [%rd0], 64, [%r11];"
    text = module(copy).replace("sm_100a", "sm_107a").replace(".version 9.3", ".version 9.4")
    with pytest.raises(EmulationError, match=r"does not support `cp\.async\.bulk\.shared::cta\.global.*::ff`"):
        run(text, 1, 32, x=np.zeros(1), out=np.zeros(1), n=np.uint32(0))
