"""Tensor maps that kernels change: each field as the assembler writes it, then copies by the new map."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tensor_copies import copy_kernel

import ptxdsl
from ptxdsl import tensor_map
from ptxdsl.isa.tensor_maps import ELEMENTS, FIELDS, MAP_BYTES, decode, encode

_REPLACE = """.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 map, .param .u64 wide, .param .u32 narrow)
{{
    .reg .b64 %map, %wide;
    .reg .b32 %narrow;
    .reg .b32 %word<2>;
    .shared .align 128 .b8 held[128];
    ld.param.u64 %map, [map];
    ld.param.u64 %wide, [wide];
    ld.param.u32 %narrow, [narrow];
    tensormap.replace.tile.{form};
    ret;
}}
"""
_EACH = [
    *[f"{name}{{}}.b1024.b32 [%map], {n}, %narrow" for name in ("box_dim", "global_dim", "element_stride")
      for n in range(5)],
    *[f"global_stride{{}}.b1024.b64 [%map], {n}, %wide" for n in range(4)],
    "global_address{}.b1024.b64 [%map], %wide", "rank{}.b1024.b32 [%map], %narrow",
    *[f"elemtype{{}}.b1024.b32 [%map], {n}" for n in range(13)],
    *[f"swizzle_mode{{}}.b1024.b32 [%map], {n}" for n in range(5)],
    *[f"interleave_layout{{}}.b1024.b32 [%map], {n}" for n in range(3)],
    *[f"fill_mode{{}}.b1024.b32 [%map], {n}" for n in range(2)],
]


def _target(form: str) -> str:
    return "sm_103a" if form.startswith("swizzle_mode") and form.endswith("4") else "sm_90a"


def _replaced(form: str, data: bytes, wide: int, narrow: int) -> bytes:
    held = np.frombuffer(data, np.uint8).copy()
    kernel = ptxdsl.load(_REPLACE.format(target=_target(form), form=form.format(".global")))["k"]
    kernel.configure(1, 1, backend="emulator")(held, np.uint64(wide), np.uint32(narrow))
    return held.tobytes()


@pytest.mark.parametrize("form", _EACH)
def test_fields_are_replaced(rng: np.random.Generator, form: str) -> None:
    data, wide, narrow = rng.bytes(MAP_BYTES), int(rng.integers(1 << 40)) << 4, int(rng.integers(1, 5))
    changed = decode(_replaced(form, data, wide, narrow))
    name = form.partition("{")[0]
    value = int(form.rsplit(", ", maxsplit=1)[-1]) if form[-1].isdigit() else wide if "wide" in form else narrow
    number = int(form.split(", ")[1]) if form.count(",") == 2 else 0
    wanted: dict[str, Any] = {key: list(values) for key, values in decode(data).items()}
    if name == "global_stride":
        wanted["global_stride"][number] = wide >> 4 & 0xFFFFFFFF
        wanted["global_stride_high"][number] = wide >> 36 & 15
    elif name == "elemtype":
        element = next(element for element in ELEMENTS.values() if element.number == value)
        wanted["elemtype"], wanted["tf32"] = [element.code], [1] if element.tf32 else wanted["tf32"]
    else:
        wanted[name][number] = value + (name == "rank")
        wanted["large"] = [0] if name == "global_address" else wanted["large"]
        if name == "swizzle_mode":
            wanted["swizzle_mode"], wanted["swizzle_96"] = [value % 4], [value // 4]
    for corner in ("low_corner", "high_corner"):  # the same bits as the box of a map of tiles
        del changed[corner], wanted[corner]
    assert changed == {key: tuple(values) for key, values in wanted.items()}


def test_the_assembler_has_these_fields(rng: np.random.Generator) -> None:
    """The words that it stores, and the bits of them that it replaces, of some forms in each run."""
    for form in rng.choice(_EACH, 6, replace=False):
        _check_assembled(form)


def _check_assembled(form: str) -> None:
    sass = ptxdsl.load(_REPLACE.format(target=_target(form), form=form.format(".shared::cta")))["k"].sass()
    stored = {int(at or "0", 16) for at in re.findall(r"STS(?:\.64)? \[\w+(?:\+0x([0-9a-f]+))?\]", sass)}
    masks = {int(mask, 16) & 0xFFFFFFFF for mask in re.findall(r"LOP3\.LUT \w+, \w+, (0x[0-9a-f]+),", sass)}
    name, number = form.partition("{")[0], int(form.split(", ")[1]) if form.count(",") == 2 else 0
    fields = [FIELDS[name][number]]
    fields += [FIELDS["global_stride_high"][number]] if name == "global_stride" else []
    fields += [FIELDS["large"][0]] if name == "global_address" else []
    fields += [FIELDS["swizzle_96"][0]] if name == "swizzle_mode" else []
    fields += [FIELDS["tf32"][0]] if form.endswith((" 11", " 12")) else []
    assert stored == {field.offset // 32 * 4 for field in fields}
    for field in fields:
        mask = (1 << field.bits) - 1 << field.offset % 32
        assert field.bits >= 32 or any(found & mask == found and found for found in masks)


def test_a_map_that_compilers_write_themselves() -> None:
    """A descriptor of f16 (m, k), boxes of (128, 64), swizzle 128B, as public compilers' host code makes it."""
    array = np.zeros((64, 8192), np.float16)
    words = np.frombuffer(bytes(tensor_map(array, (64, 64), swizzle=128)), np.uint64)
    high = [array.ctypes.data, 0x400 << 32 | 1 << 21 | 287506, 0, 0, 8191 | 63 << 32, 0, 63 << 56, 63]
    assert list(map(int, words)) == high + [0] * 8


@pytest.mark.parametrize("mode", [0, 2])
def test_a_map_is_made_in_shared_memory_and_used(rng: np.random.Generator, mode: int) -> None:
    """As Triton's device-side descriptors: zeros, fields, a copy to global memory by a warp, a fence, a load.

    It leaves 0 where the host has the mode, for which there is no field.
    """
    array, found = rng.standard_normal((40, 64)).astype(np.float32), np.zeros(2048, np.uint8)
    text = copy_kernel("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", 2048, 2)
    made = """
    .reg .b64 %out;
    .shared .align 128 .b8 held[128];
    ld.param.u64 %out, [out];
    {
    .reg .b32 %lane;
    mov.u32 %lane, %tid.x;
    shl.b32 %lane, %lane, 2;
    .reg .b32 %to;
    mov.u32 %to, held;
    add.u32 %to, %to, %lane;
    st.shared.b32 [%to], 0;
    bar.warp.sync -1;
    }
    {
    .reg .pred %first;
    .reg .b32 %t;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %first, %t, 0;
    @%first bra MADE;
    }
    st.shared.b32 [held+8], MODE;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [held], %data;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [held], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [held], 0, 32;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [held], 1, 16;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [held], 0, 64;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [held], 1, 40;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [held], 0, 256;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [held], 0, 1;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [held], 1, 1;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [held], 7;
    tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [held], 0;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [held], 3;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [held], 0;
MADE:
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [held], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
    { .reg .pred %first; .reg .b32 %t; mov.u32 %t, %tid.x; setp.ne.u32 %first, %t, 0; @%first bra END; }
"""
    begin, rest = text.split("    mbarrier.init", 1)
    for old, new in (
        (".param .align 64 .b8 m[128]", ".param .u64 m"), ("mov.b64 %map, m;", "ld.param.u64 %map, [m];"),
        ("cvta.param.u64 %map, %map;", ""), (".u64 coordinates)", ".u64 coordinates, .param .u64 out)"),
    ):
        begin = begin.replace(old, new)
    rest = rest.replace("add.u64 %at, %at, %data;", "add.u64 %at, %at, %out;").replace("    ret;", "END:\n    ret;")
    held = np.zeros(256, np.uint8)
    place = held[-held.ctypes.data % 128 :][:128]
    text = begin + made.replace("MODE", str(mode)) + "    mbarrier.init" + rest
    arguments = place, array, np.array([32, 30], np.int32), found
    ptxdsl.load(text)["k"].configure(1, 32, backend="emulator", sanitize=("race", "init"))(*arguments)
    unfenced = ptxdsl.load(text.replace("fence.proxy.tensormap::generic.acquire.gpu [%map], 128;", ""))["k"]
    with pytest.raises(ptxdsl.RaceError, match=r"of which the store by thread .* has changed m\[0\]: no `fence.proxy"):
        unfenced.configure(1, 32, backend="emulator", sanitize="race")(*arguments)
    ptxdsl.load(text)["k"].configure(1, 32, backend="emulator")(*arguments)
    other = np.zeros(2048, np.uint8)
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    by_host = tensor_map(array, (16, 32), swizzle=128, l2_promotion=0)
    ptxdsl.load(copy_kernel(load, 2048, 2))["k"].configure(1, 1, backend="emulator")(
        by_host, other, np.array([32, 30], np.int32)
    )
    assert found.tobytes() == other.tobytes()
    assert found.any()
    assert place.tobytes() == bytes(by_host)[:8] + bytes([bytes(by_host)[8] & 0xF0 | mode]) + bytes(by_host)[9:]


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="box_dim 257 does not fit into 8 bits"):
        encode({"box_dim": (257,)})


_OVERRIDE = "cp.async.bulk.tensor.2d.{}.override::global_address{}"
_LOADED = "shared::cta.global.tile.mbarrier::complete_tx::bytes"
_ROWS = "shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
_STORED = "global.shared::cta.tile.bulk_group"


def _override(direction: str, shape: bool, count: int, nbytes: int) -> str:
    """A copy by a map with the address ``%other``, and perhaps 5 rows of 24 elements, 112 bytes apart.

    Of an extent the low 8 bits count.
    """
    changes = "%map, %other, {%w, %h}, {%s}, %u" if shape else "%map, %other"
    text = copy_kernel(_OVERRIDE.format(direction, ".override::global_dim_stride" * shape), nbytes, count, "9.4",
                       "sm_107a")
    text = text.replace("[%map,", f"[{changes},").replace(".param .u64 data,", ".param .u64 data, .param .u64 other,")
    return text.replace("mov.b64 %map, m;", """.reg .b64 %other; .reg .b16 %w, %h, %u; .reg .b32 %s;
    ld.param.u64 %other, [other]; mov.b16 %w, 0x318; mov.b16 %h, 5; mov.b16 %u, 0; mov.b32 %s, 7;
    mov.b64 %map, m;""")


@pytest.mark.parametrize("shape", [False, True])
@pytest.mark.parametrize("tools", [(), ("race", "init")])
def test_a_copy_overrides_its_map(rng: np.random.Generator, shape: bool, tools: tuple[str, ...]) -> None:
    """Loads, and stores, of another array than that of the map, which stays as it is."""
    array, other = np.full((16, 64), np.nan, np.float32), rng.standard_normal((16, 64)).astype(np.float32)
    rows, pitch = (5, 28) if shape else (16, 64)
    seen = other.reshape(-1)[: rows * pitch].reshape(rows, pitch)[:, : 24 if shape else 64]
    map_, found, at = tensor_map(array, (8, 32)), np.zeros(1024, np.uint8), np.zeros(2, np.int32)
    before = bytes(map_)
    kernel = ptxdsl.load(_override(_LOADED, shape, 2, 1024))["k"]
    kernel.configure(1, 1, backend="emulator", sanitize=tools)(map_, found, other, at)
    wanted = np.zeros((8, 32), np.float32)
    part = seen[:8, :32]
    wanted[: len(part), : part.shape[1]] = part
    np.testing.assert_array_equal(found.view(np.float32).reshape(8, 32), wanted)
    kernel = ptxdsl.load(_override(_STORED, shape, 2, 1024))["k"]
    data = rng.bytes(1024)
    kernel.configure(1, 1, backend="emulator", sanitize=tools)(map_, np.frombuffer(data, np.uint8), other, at)
    stored = np.frombuffer(data, np.float32).reshape(8, 32)[: len(part), : part.shape[1]]
    assert seen[:8, :32].tobytes() == stored.tobytes()
    assert np.isnan(array).all()
    assert bytes(map_) == before


def test_four_rows_of_another_array(rng: np.random.Generator) -> None:
    other = rng.standard_normal((16, 64)).astype(np.float32)
    map_, found = tensor_map(np.zeros((16, 64), np.float32), (1, 32)), np.zeros(512, np.uint8)
    at = np.array([8, 3, 15, 0, 3], np.int32)
    ptxdsl.load(_override(_ROWS, False, 5, 512))["k"].configure(1, 1, backend="emulator")(map_, found, other, at)
    np.testing.assert_array_equal(found.view(np.float32).reshape(4, 32), other[at[1:], 8:40])


def test_an_address_that_no_tensor_may_have() -> None:
    array = np.zeros((16, 64), np.float32)
    map_, found, at = tensor_map(array, (8, 32)), np.zeros(1024, np.uint8), np.zeros(2, np.int32)
    kernel = ptxdsl.load(_override(_LOADED, False, 2, 1024))["k"]
    with pytest.raises(ptxdsl.MemoryFault, match=r"by a tensor map of address 0x\w+; it must be a multiple of 16"):
        kernel.configure(1, 1, backend="emulator")(map_, found, array.reshape(-1)[1:], at)
