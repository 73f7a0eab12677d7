"""The sanitizer's check of cells of tensor memory that nobody has written: wrong kernels, each beside a right one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tensor_memory_programs import complete, fill, kernel, launched, registers

from ptxdsl import RaceError, UninitializedError

PLACE = "mul.wide.u32 %at, %t, {pitch}; add.u64 %at, %at, %out;\n"


def stored(count: int, guard: str = "", first: int = 0) -> str:
    return PLACE.format(pitch=4 * count) + "".join(
        f"{guard}st.global.b32 [%at+{4 * n}], %r{first + n};\n" for n in range(count)
    )


def run(body: str, count: int, **how: Any) -> Any:
    columns = how.pop("columns", 64)
    source = np.arange(128 * 64, dtype=np.uint32).reshape(128, 64)
    return launched(kernel(body, columns=columns, **how), source, (128, count), sanitize="init")


def finding(body: str, count: int, **how: Any) -> str:
    with pytest.raises(UninitializedError) as caught:
        run(body, count, **how)
    message = caught.value.message.splitlines()[0]
    return re.sub(r"lane (\d+)", lambda found: f"lane {int(found[1]) % 32}", message)  # whichever warp comes first


LOAD = "tcgen05.ld.sync.aligned.{shape}.x{n}.b32 {registers}, [%a+{column}];\n"


def load(column: int, count: int, shape: str = "32x32b", n: int = 0) -> str:
    return LOAD.format(shape=shape, n=n or count, registers=registers(count), column=column)


@pytest.mark.parametrize("count", [1, 8, 64])
def test_columns_that_nobody_has_written(count: int) -> None:
    assert finding("add.u32 %a, %base, %quarter;\n" + load(0, count) + stored(count), count) == (
        "load from lane 0, column 0 of tensor memory, which nobody has written"
    )


@pytest.mark.parametrize(("shape", "count", "n", "column"), [
    ("32x32b", 16, 16, 16), ("16x64b", 8, 8, 16), ("16x128b", 8, 4, 16), ("16x256b", 8, 2, 16),
])
def test_columns_behind_those_that_were(shape: str, count: int, n: int, column: int) -> None:
    """The first element that the first thread has there; one column before nothing is amiss."""
    run(fill(32, 64) + load(column, count, shape, n) + stored(count), count)
    message = finding(fill(32, 64) + load(column + 1, count, shape, n) + stored(count), count)
    assert message.endswith(", column 32 of tensor memory, which nobody has written")


def test_columns_that_nobody_uses() -> None:
    """An instruction loads more than was written; only what was is stored."""
    out = run(fill(8, 64) + load(0, 16) + stored(8), 8)
    assert out[3].tolist() == list(range(3 * 64, 3 * 64 + 8))


def test_lanes_that_nobody_uses() -> None:
    """The upper half of each quarter stays unwritten, as by a product of 64 rows."""
    write = "add.u32 %a, %base, %quarter; mov.u32 %r0, %t;\ntcgen05.st.sync.aligned.16x64b.x1.b32 [%a], {%r0};\n"
    write += "tcgen05.wait::st.sync.aligned;\n"
    body = write + load(0, 1) + "and.b32 %b, %t, 16; setp.eq.u32 %q, %b, 0;\n"
    run(body + stored(1, "@%q "), 1)
    assert finding(body + stored(1), 1) == "load from lane 16, column 0 of tensor memory, which nobody has written"


def test_packed_columns() -> None:
    form = "tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {%r0, %r1, %r2, %r3}, [%a+@];\n"
    run(fill(8, 64) + form.replace("@", "0") + stored(4), 4)
    message = finding(fill(8, 64) + form.replace("@", "1") + stored(4), 4)
    assert message == "load from lane 0, column 7 of tensor memory, which nobody has written"


def test_what_is_allocated_again() -> None:
    """It has no longer what was there."""
    again = """
    tcgen05.wait::ld.sync.aligned;
    bar.sync 0;
    setp.ne.u32 %p, %w, 0;
    @%p bra AGAIN;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
AGAIN:
    bar.sync 0;
    """
    run(fill(8, 64) + again + fill(8, 64) + load(0, 8) + stored(8), 8)
    assert finding(fill(8, 64) + again + load(0, 8) + stored(8), 8).endswith("which nobody has written")


def test_a_reduction_over_what_nobody_has_written() -> None:
    form = "tcgen05.ld.red.sync.aligned.32x32b.x8.min.u32 {}, %r20, [%a+@];\n".replace("{}", registers(8))
    run(fill(8, 64) + form.replace("@", "0") + stored(1, first=20), 1)
    assert finding(fill(8, 64) + form.replace("@", "1") + stored(1, first=20), 1) == (
        "load from lane 0, column 8 of tensor memory, which nobody has written"
    )


def test_what_was_shifted_or_copied() -> None:
    """Cells that a shift or a copy has written count as written, those that it moves as what they were."""
    shift = complete("@%first tcgen05.shift.cta_group::1.down [%base];")
    run(fill(8, 64) + shift + load(0, 8) + stored(8), 8)
    message = finding(fill(4, 64) + shift + load(0, 8) + stored(8), 8)
    assert message.endswith("column 4 of tensor memory, which nobody has written")
    copy = """
    mad.lo.u32 %b, %t, 4, 1024;
    st.shared.b32 [%b], %t;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.b64 %desc, {word};
    {copy}
    add.u32 %a, %base, %quarter;
    """
    word = 1024 >> 4 | 1 << 16 | 8 << 32 | 1 << 46
    shaped = "@%first tcgen05.cp.cta_group::1.{} [%base], %desc;"
    run(copy.format(word=word, copy=complete(shaped.format("32x128b.warpx4"))) + load(0, 4) + stored(4), 4, tile=512)
    one = copy.format(word=word, copy=complete(shaped.format("4x256b"))) + load(0, 4)
    one += "and.b32 %b, %t, 31; setp.eq.u32 %q, %b, 0;\n"
    run(one + stored(4, "@%q "), 4, tile=512)
    assert finding(one + stored(4), 4, tile=512) == (
        "load from lane 1, column 0 of tensor memory, which nobody has written"
    )


COPIED = """
    @%first mbarrier.init.shared.b64 [barriers], 1;
    fence.mbarrier_init.release.cluster;
    {store}
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra COPIED;
    mbarrier.arrive.expect_tx.shared.b64 _, [barriers], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%source], 16, [barriers];
COPIED:
    mbarrier.try_wait.parity.shared.b64 %p, [barriers], 0;
    @!%p bra COPIED;
    ld.shared.b32 %r0, [slot+4];
"""


def test_a_copy_to_where_the_address_was_written() -> None:
    """Compilers have no proxy fence there; behind a store there must be one."""

    def run(store: str) -> Any:
        made = kernel(COPIED.format(store=store) + stored(1), columns=64)
        return launched(made, np.arange(4, dtype=np.uint32), (128, 1), sanitize="race")

    assert (run("") == 1).all()
    assert (run("@%first st.shared.b32 [slot+4], %t; fence.proxy.async.shared::cta;") == 1).all()
    with pytest.raises(RaceError, match="through another proxy"):
        run("@%first st.shared.b32 [slot+4], %t;")
