"""The kernel's own heap: malloc and free, and every access that leaves what they gave."""

from __future__ import annotations


from itertools import pairwise

import numpy as np
import pytest

import ptxdsl
from ptxdsl import EmulationError, MemoryFault, UninitializedError, use
from ptxdsl.emulator.machine.heap import Heap

MODULE = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.visible .entry k(.param .u64 out, .param .u64 size)
{{
  .reg .b64 %rd<8>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd3, [size];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd1, %rd1, %rd4;
  {{ .param .b64 n; .param .b64 r; st.param.b64 [n], %rd3; call.uni (r), malloc, (n); ld.param.b64 %rd2, [r]; }}
  {body}
  ret;
}}
"""
FREE = "{ .param .b64 p; st.param.b64 [p], %rd2; call.uni free, (p); }\n  "


def run(body: str, size: int = 40, threads: int = 1, sanitize: str | None = None) -> np.ndarray:
    """What the threads store at %rd1."""
    out = np.full(threads, 0xDEADBEEF, np.uint32)
    with use("emulator"):
        ptxdsl.load(MODULE.format(body=body))["k"].configure(1, threads, sanitize=sanitize)(out, size)
    return out


def message(body: str, kind: type[EmulationError] = MemoryFault, **how: object) -> str:
    with pytest.raises(kind) as caught:
        run(body, **how)  # type: ignore[arg-type]
    return str(caught.value).splitlines()[0]


def test_each_thread_has_memory_of_its_own() -> None:
    body = (
        "st.u32 [%rd2+36], %r2; bar.sync 0; ld.u32 %r3, [%rd2+36]; mul.lo.u32 %r3, %r3, 3; st.global.u32 [%rd1], %r3; "
        + FREE
    )
    assert np.array_equal(run(body, threads=77), np.arange(77) * 3)
    assert np.array_equal(run(body, threads=77, sanitize="all"), np.arange(77) * 3)


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("st.u32 [%rd2+40], %r2;", "store to bytes 40 to 43"),
        ("st.v2.u32 [%rd2+40], {%r2, %r2};", "store to bytes 40 to 47"),
        ("st.u8 [%rd2+40], %r2;", "store to byte 40"),
        ("ld.global.u32 %r3, [%rd2+40];", "load from bytes 40 to 43"),
        ("atom.add.u32 %r3, [%rd2+44], 1;", "atomic operation on bytes 44 to 47"),
    ],
)
def test_beyond_a_piece(access: str, said: str) -> None:
    text = message(access, threads=33)
    assert text == f"{said} of the 40 bytes that `malloc` gave to thread (0, 0, 0) of block (0, 0, 0) at PTX line 15"


def test_before_the_first_piece() -> None:
    assert message("st.u32 [%rd2+-4], %r2;").endswith("which lies in no array of the launch; 4 bytes before the heap")


def test_use_after_free() -> None:
    text = message(FREE + "ld.u32 %r3, [%rd2+4];")
    assert text == (
        "load from bytes 4 to 7 of the 40 bytes that `malloc` gave, "
        "freed by thread (0, 0, 0) of block (0, 0, 0) at PTX line 16"
    )


def test_free_twice() -> None:
    text = message(FREE + FREE)
    assert text.startswith("`free` of address 0x")
    assert text.endswith(", which has been freed by thread (0, 0, 0) of block (0, 0, 0) at PTX line 16")


def test_free_of_a_stranger() -> None:
    assert message("add.u64 %rd2, %rd2, 16; " + FREE).endswith(", which `malloc` has not given")


def test_free_of_null_does_nothing() -> None:
    assert run("mov.u64 %rd2, 0; " + FREE + "st.global.u32 [%rd1], 5;").tolist() == [5]


def test_read_before_written() -> None:
    body = "ld.u32 %r3, [%rd2+8]; st.global.u32 [%rd1], %r3;"
    text = message(body, UninitializedError, sanitize="init")
    assert text.startswith("load from byte 8 of the 40 bytes that `malloc` gave to thread (0, 0, 0) of block (0, 0, 0)")
    run(body)


def test_what_was_freed_comes_again_last() -> None:
    """A heap that is used up gives what was freed, joined where it lies side by side; 0 where that is too little."""
    heap, generator = Heap(), np.random.default_rng(seed := np.random.SeedSequence().entropy)
    given: dict[int, int] = {}
    while True:
        nbytes = int(generator.integers(1, 60_000))
        address = heap.take(nbytes)
        if not address:
            break
        assert address % 16 == 0, seed
        given[address] = nbytes
    while heap.take(1):
        pass
    ends = sorted(given.items())
    assert all(a + n < b for (a, n), (b, _) in pairwise(ends)), seed
    first, second, third = (address for address, _ in ends[:3])
    assert heap.take(given[first] + given[second]) == 0
    assert all(heap.give(address) for address in (first, second))
    again = heap.take(given[first] + given[second])
    assert again == first
    assert heap.valid[: (given[first] + given[second]) // 16].min() == 16
    assert heap.valid[(third - heap.start) // 16 - 1] == 0


def test_the_map_says_which_bytes_are_given() -> None:
    heap = Heap()
    sizes = [0, 1, 15, 16, 17, 40, 64]
    places = [heap.take(size) for size in sizes]
    for address, size in zip(places, sizes):
        granules = heap.valid[(address - heap.start) // 16 :][: size // 16 + 1]
        assert granules.sum() == size
    for address in places:
        assert heap.give(address)
    assert not heap.valid.any()
