"""Copies from shared to tensor memory, shifts and commits, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_memory_programs import fill, kernel, launched, registers

from ptxdsl import EmulationError, MemoryFault

Rng = np.random.Generator


def read(columns: int, per: int = 64) -> str:
    """Write the columns from %base on, row by row, to the block's part of the second array."""
    lines = ["mov.u32 %c, %ctaid.x; shl.b32 %c, %c, 7; add.u32 %c, %c, %t;"]
    lines += [f"mul.wide.u32 %at, %c, {4 * columns}; add.u64 %at, %at, %out; add.u32 %a, %base, %quarter;"]
    for first in range(0, columns, per):
        count = min(per, columns - first)
        lines += [f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {registers(count)}, [%a+{first}];"]
        lines += ["tcgen05.wait::ld.sync.aligned;"]
        lines += [f"st.global.b32 [%at+{4 * (first + n)}], %r{n};" for n in range(count)]
    return "\n    ".join(["", *lines, ""])


def refused(kind: type[EmulationError], body: str, **how: Any) -> str:
    with pytest.raises(kind) as caught:
        launched(kernel(body, columns=64, **how), np.zeros(8), (128, 64))
    return caught.value.message


@pytest.mark.parametrize("quarter", range(4))
def test_shift(quarter: int, rng: Rng) -> None:
    """Eight columns of one quarter of the lanes move down by one lane; its last one stays."""
    column = int(rng.integers(0, 57))
    shift = f"bar.sync 0;\n@%first tcgen05.shift.cta_group::1.down [%base+{quarter << 21 | column}];\nbar.sync 0;"
    source = rng.integers(0, 2**32, (128, 64), np.uint32)
    wanted, first = source.copy(), 32 * quarter
    wanted[first : first + 31, column : column + 8] = source[first + 1 : first + 32, column : column + 8]
    out = launched(kernel(fill(64, 64) + shift + read(64), columns=64), source, (128, 64))
    np.testing.assert_array_equal(out, wanted)


def test_shift_in_both_blocks_of_a_pair(rng: Rng) -> None:
    meet = "barrier.cluster.arrive; barrier.cluster.wait;\n"
    body = fill(32, 32) + meet + """
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.and.u32 %q, %rank, 1, %first;
    @%q tcgen05.shift.cta_group::2.down [%base+8];
    """ + meet + read(32) + meet
    source = rng.integers(0, 2**32, (128, 32), np.uint32)
    wanted = source.copy()
    wanted[:31, 8:16] = source[1:32, 8:16]
    out = launched(kernel(body, columns=32, group=2), source, (2, 128, 32), grid=2, cluster=2)
    np.testing.assert_array_equal(out, [wanted, wanted])


def test_shifts_that_are_wrong() -> None:
    form = "tcgen05.shift.cta_group::1.down"
    assert refused(MemoryFault, f"@%first {form} [%base+{16 << 16}];") == (
        f"`{form}` at lane 16 of tensor memory: a shift begins at lane 0, 32, 64 or 96"
    )
    assert refused(MemoryFault, f"@%first {form} [%base+60];") == (
        f"`{form}` accesses columns 60 to 67 of tensor memory, of which column 64 is not allocated; allocated are "
        "columns 0 to 63"
    )


COMMIT = """
    @%first mbarrier.init.shared.b64 [barriers], 1;
    bar.sync 0;
    {meet}
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.and.u32 %q, %rank, {rank}, %first;
    @%q {commit};
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [barriers], 0;
    @!%p bra WAIT;
    mov.u32 %c, %ctaid.x;
    shl.b32 %c, %c, 7;
    add.u32 %c, %c, %t;
    mul.wide.u32 %at, %c, 4;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %c;
    {meet}
"""


@pytest.mark.parametrize("space", [".shared::cluster", ""])
def test_a_commit_arrives_at_an_mbarrier(space: str) -> None:
    address = "[barriers]" if space else "[%at]"
    commit = f"tcgen05.commit.cta_group::1.mbarrier::arrive::one{space}.b64 {address}"
    body = "mov.u64 %at, barriers; cvta.shared.u64 %at, %at;" + COMMIT.format(commit=commit, meet="", rank=0)
    out = launched(kernel(body, columns=0), np.zeros(4), (128,))
    assert out.tolist() == list(range(128))


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("space", [".shared::cluster", ""])
def test_a_commit_arrives_in_several_blocks(space: str, seed: int | None) -> None:
    address = "[barriers]" if space else "[%at]"
    commit = f"tcgen05.commit.cta_group::2.mbarrier::arrive::one{space}.multicast::cluster.b64 {address}, %h"
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    head = ".reg .b16 %h; mov.b16 %h, 15; mov.u64 %at, barriers; cvta.shared.u64 %at, %at;"
    body = head + COMMIT.format(commit=commit, meet=meet, rank=1)
    out = launched(kernel(body, columns=0), np.zeros(4), (512,), grid=4, cluster=4, seed=seed)
    assert out.tolist() == list(range(512))
