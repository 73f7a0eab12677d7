"""The sanitizer on tensor copies: waits that are missing, races with either end, memory that nobody wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import tensor_map

_LOADED = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out)
{{
    .reg .b64 %map, %out, %at;
    .reg .b32 %t, %word, %x;
    .reg .pred %first, %p;
    .shared .align 1024 .b8 box[1024];
    .shared .align 8 .b64 bar;
    mov.b64 %map, m;
    cvta.param.u64 %map, %map;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    @!%first bra WAIT;
    {before}
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [box], [%map, {{0, 0}}], [bar];
    {after}
WAIT:
    {wait}
    shl.b32 %t, %t, 4;
    mov.u32 %word, box;
    add.u32 %word, %word, %t;
    ld.shared.b32 %x, [%word];
    cvt.u64.u32 %at, %t;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %x;
    ret;
}}
"""
_WAIT = """{ mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra WAIT; }"""


def _loaded(wait: str = _WAIT, before: str = "", after: str = "") -> Any:
    return ptxdsl.load(_LOADED.format(wait=wait, before=before, after=after))["k"]


@pytest.mark.parametrize("tools", ["race", "init", ("race", "init")])
def test_a_right_load(rng: np.random.Generator, tools: Any) -> None:
    array, out = rng.standard_normal((8, 32)).astype(np.float32), np.zeros(256, np.float32)
    _loaded().configure(1, 64, backend="emulator", sanitize=tools)(tensor_map(array, (8, 32)), out)
    np.testing.assert_array_equal(out[::4], array.reshape(-1)[::4])


def test_no_wait_before_the_box_is_read() -> None:
    array, out = np.ones((8, 32), np.float32), np.zeros(256, np.float32)
    with pytest.raises(ptxdsl.UninitializedError) as raised:
        _loaded("bar.sync 0;").configure(1, 64, backend="emulator", sanitize="init")(tensor_map(array, (8, 32)), out)
    assert "box[0]" in raised.value.message
    with pytest.raises(ptxdsl.RaceError):
        _loaded("").configure(1, 64, backend="emulator", sanitize="race")(tensor_map(array, (8, 32)), out)


def test_memory_that_nobody_wrote_is_loaded() -> None:
    array, out = ptxdsl.empty((8, 32), np.float32, backend="emulator"), np.zeros(256, np.float32)
    with pytest.raises(ptxdsl.UninitializedError):
        _loaded().configure(1, 64, backend="emulator", sanitize="init")(tensor_map(array, (8, 32)), out)


_STORED = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 x)
{{
    .reg .b64 %map, %x, %at;
    .reg .b32 %t, %word, %row;
    .reg .pred %first;
    .shared .align 1024 .b8 box[1024];
    mov.b64 %map, m;
    cvta.param.u64 %map, %map;
    ld.param.u64 %x, [x];
    mov.u32 %t, %tid.x;
    mov.u32 %row, %ctaid.x;
    mul.lo.u32 %row, %row, {rows};
    shl.b32 %word, %t, 4;
    mov.u32 %t, box;
    add.u32 %t, %t, %word;
    st.shared.v4.b32 [%t], {{%word, %word, %word, %word}};
    fence.proxy.async.shared::cta;
    {barrier}
    mov.u32 %t, %tid.x;
    {who}
    {{ .reg .pred %p; not.pred %p, %first; @%p bra END; }}
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {{0, %row}}], [box];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    {after}
END:
    ret;
}}
"""


_ONE = "setp.eq.u32 %first, %t, 0;"


def _stored(rows: int = 8, barrier: str = "bar.sync 0;", after: str = "", who: str = _ONE) -> Any:
    return ptxdsl.load(_STORED.format(rows=rows, barrier=barrier, after=after, who=who))["k"]


@pytest.mark.parametrize("tools", ["race", "init", ("race", "init")])
def test_a_right_store(tools: Any) -> None:
    array, other = ptxdsl.empty((30, 32), np.uint32, backend="emulator"), np.zeros(4, np.uint32)
    _stored().configure(4, 64, backend="emulator", sanitize=tools)(tensor_map(array, (8, 32)), other)
    box = np.repeat(np.arange(64, dtype=np.uint32) * 16, 4).reshape(8, 32)
    np.testing.assert_array_equal(array.numpy(), np.tile(box, (4, 1))[:30])


def test_what_is_stored_counts_as_written() -> None:
    array, out = ptxdsl.empty((8, 32), np.float32, backend="emulator"), np.zeros(256, np.float32)
    map_ = tensor_map(array, (8, 32))
    with pytest.raises(ptxdsl.UninitializedError):
        _loaded().configure(1, 64, backend="emulator", sanitize="init")(map_, out)
    _stored().configure(1, 64, backend="emulator", sanitize="init")(map_, out)
    assert array.unwritten is None
    _loaded().configure(1, 64, backend="emulator", sanitize="init")(map_, out)
    assert list(out.view(np.uint32)[::4]) == [16 * thread for thread in range(64)]


def test_blocks_that_store_to_the_same_rows() -> None:
    array, other = np.zeros((40, 32), np.uint32), np.zeros(4, np.uint32)
    with pytest.raises(ptxdsl.RaceError):
        _stored(7).configure(4, 64, backend="emulator", sanitize="race")(tensor_map(array, (8, 32)), other)


def test_a_barrier_is_missing_before_the_store() -> None:
    array, other = np.zeros((40, 32), np.uint32), np.zeros(4, np.uint32)
    with pytest.raises(ptxdsl.RaceError):
        _stored(barrier="").configure(1, 64, backend="emulator", sanitize="race")(tensor_map(array, (8, 32)), other)


def test_another_block_reads_what_is_stored() -> None:
    array = np.zeros((40, 32), np.uint32)
    kernel = _stored(after="ld.global.b32 %t, [%x];")
    with pytest.raises(ptxdsl.RaceError):
        kernel.configure(4, 64, backend="emulator", sanitize="race")(tensor_map(array, (8, 32)), array)
    kernel.configure(1, 64, backend="emulator", sanitize="race")(tensor_map(array, (8, 32)), array)


def test_lanes_that_store_one_box() -> None:
    """Each lane of a warp stores the same box: compilers elect none. Other boxes that overlap are a race."""
    array, other = np.zeros((64, 32), np.uint32), np.zeros(4, np.uint32)
    warp = "setp.lt.u32 %first, %t, 32;"
    kernel = _stored(who=warp).configure(4, 64, backend="emulator", sanitize=("race", "init"))
    kernel(tensor_map(array, (8, 32)), other)
    np.testing.assert_array_equal(array[24:32].reshape(-1)[::4], np.arange(64) * 16)
    kernel = _stored(who=f"{warp} add.u32 %row, %row, %t;").configure(1, 64, backend="emulator", sanitize="race")
    with pytest.raises(ptxdsl.RaceError, match="of one warp bulk copy to .* with one instruction"):
        kernel(tensor_map(array, (8, 32)), other)
