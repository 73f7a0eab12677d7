"""Tensor copies against numpy: boxes of 1 to 5 dimensions, in and across the edges, every type and swizzle."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensor_copies import copy_kernel, in_shared, place, rows_of

import ptxdsl
from ptxdsl import break_if, f32, loop, ptx, s32, shared, tensor_map, u64, when
from ptxdsl.emulator.sanitizer.sanitizer import collect

_LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group"
_DTYPES: list[Any] = [
    np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.int32, np.float64, ml_dtypes.float8_e4m3fn,
]
_SPANS = {None: 1 << 20, "32B": 32, "64B": 64, "96B": 96, "128B": 128, "128B_atom_32B": 128,
          "128B_atom_32B_flip_8B": 128, "128B_atom_64B": 128}


class _Case:
    """A random tensor, perhaps with longer rows than are used, a box of it, and where that begins."""

    def __init__(self, rng: np.random.Generator, swizzle: str | None, rank: int) -> None:
        dtype = np.dtype(_DTYPES[rng.integers(len(_DTYPES))])
        size, self.swizzle = dtype.itemsize, swizzle
        most = min(_SPANS[swizzle], 256) // 16
        self.box = [int(rng.integers(1, 5)) for _ in range(rank - 1)]
        self.box += [16 // size * int(rng.integers(1, min(most, 256 * size // 16) + 1))]
        self.steps = [int(rng.integers(1, 4)) for _ in range(rank - 1)] + [1]
        shape = [int(rng.integers(1, 7)) for _ in range(rank - 1)] + [int(rng.integers(1, 100))]
        pitch = -(-shape[-1] * size // 16) * 16 // size + 16 // size * int(rng.integers(3))
        whole = np.frombuffer(rng.bytes(int(np.prod(shape[:-1])) * pitch * size), dtype).copy()
        aligned = np.zeros(whole.nbytes + 16, np.uint8)
        start = -aligned.ctypes.data % 16
        aligned[start : start + whole.nbytes] = whole.view(np.uint8)
        memory = aligned[start : start + whole.nbytes].view(dtype)
        self.array = memory.reshape(*shape[:-1], pitch)[..., : shape[-1]]
        beyond = int(rng.integers(2))  # else the box lies, or at least begins, inside
        self.start = [int(rng.integers(-b - 1, s + 2)) * beyond for b, s in zip(self.box, shape)]
        self.rows = rows_of(shape, self.box, self.steps, self.start)
        self.nbytes = len(self.rows) * self.box[-1] * size

    def map(self, **options: Any) -> Any:
        return tensor_map(self.array, self.box, swizzle=self.swizzle, element_strides=self.steps, **options)

    @property
    def coordinates(self) -> np.ndarray[Any, Any]:
        return np.array(self.start[::-1], np.int32)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("swizzle", _SPANS)
def test_boxes_are_loaded(rng: np.random.Generator, swizzle: str | None, rank: int) -> None:
    for _ in range(3):
        case = _Case(rng, swizzle, rank)
        found = np.full(-(-case.nbytes // 128) * 128, 0xA5, np.uint8)
        kernel = ptxdsl.load(copy_kernel(_LOAD.format(rank), case.nbytes, rank))["k"]
        kernel.configure(1, 1, backend="emulator")(case.map(), found, case.coordinates)
        zero = bytes(case.array.itemsize)
        wanted = in_shared(case.array, case.rows, case.box[-1], case.start[-1], swizzle, zero)
        assert found.tobytes() == wanted, vars(case)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("swizzle", _SPANS)
def test_boxes_are_stored(rng: np.random.Generator, swizzle: str | None, rank: int) -> None:
    for _ in range(3):
        case = _Case(rng, swizzle, rank)
        source = np.frombuffer(rng.bytes(case.nbytes), case.array.dtype).reshape(len(case.rows), case.box[-1])
        given = in_shared(source, [(n,) for n in range(len(source))], case.box[-1], 0, swizzle, b"")
        wanted = case.array.copy()
        for number, index in enumerate(case.rows):
            for column in range(case.box[-1]):
                at = case.start[-1] + column
                if index is not None and 0 <= at < wanted.shape[-1]:
                    wanted[(*index, at)] = source[number, column]
        kernel = ptxdsl.load(copy_kernel(_STORE.format(rank), case.nbytes, rank))["k"]
        data = np.frombuffer(given, np.uint8).copy()
        kernel.configure(1, 1, backend="emulator")(case.map(), data, case.coordinates)
        assert case.array.tobytes() == wanted.tobytes(), vars(case)


_REDUCTIONS = {
    "add": [np.uint32, np.int32, np.uint64, np.float16, np.float32, ml_dtypes.bfloat16], "and": [np.uint32, np.uint64],
    "min": [np.uint32, np.int32, np.int64, np.float16], "max": [np.uint64, np.int32, ml_dtypes.bfloat16],
    "or": [np.uint64], "xor": [np.int32], "inc": [np.uint32], "dec": [np.uint32],
}


def _combined(operation: str, old: Any, new: Any) -> Any:
    named = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum}
    if operation == "inc":
        return np.where(old >= new, 0, old + np.uint32(1)).astype(np.uint32)
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - np.uint32(1)).astype(np.uint32)
    return named[operation](old, new) if operation in named else old + new


@pytest.mark.parametrize(("operation", "dtype"), [(o, d) for o, kinds in _REDUCTIONS.items() for d in kinds])
def test_boxes_are_reduced(rng: np.random.Generator, operation: str, dtype: Any) -> None:
    width = 64 // np.dtype(dtype).itemsize
    array = rng.integers(0, 200, (7, 2 * width)).astype(dtype)
    array = array.view(np.uint8).copy().view(dtype).reshape(7, 2 * width)
    source = rng.integers(0, 200, (4, width)).astype(dtype)
    wanted = array.copy()
    top, left = 5, int(rng.integers(-width + 1, 2 * width))
    rows, columns = slice(top, 7), slice(max(left, 0), min(left + width, 2 * width))
    given = source[:2, columns.start - left : columns.stop - left]
    wanted[rows, columns] = _combined(operation, array[rows, columns], given)
    instruction = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group"
    kernel = ptxdsl.load(copy_kernel(instruction, 256, 2))["k"]
    data = np.frombuffer(in_shared(source, [(n,) for n in range(4)], width, 0, "64B", b""), np.uint8).copy()
    kernel.configure(1, 1, backend="emulator")(
        tensor_map(array, (4, width), swizzle=64), data, np.array([left, top], np.int32)
    )
    assert array.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_nans_fill_what_lies_outside(rng: np.random.Generator, dtype: Any) -> None:
    array = rng.standard_normal((3, 32)).astype(dtype)
    width = 32 // array.itemsize
    found = np.full(128, 0, np.uint8)
    kernel = ptxdsl.load(copy_kernel(_LOAD.format(2), 128, 2))["k"]
    kernel.configure(1, 1, backend="emulator")(
        tensor_map(array, (4, width), fill="nan"), found, np.array([-1, 1], np.int32)
    )
    wanted = np.full((4, width), np.nan, dtype)
    wanted[:2, 1:] = array[1:, : width - 1]
    np.testing.assert_array_equal(found.view(dtype).reshape(4, width).astype(np.float64), wanted.astype(np.float64))
    assert (found.reshape(4, -1)[2:] == 0xFF).all()


@pytest.mark.parametrize("dtype", ["f32.ftz", "tf32.ftz", "f32", "tf32"])
def test_subnormals_are_flushed_where_the_type_says_so(rng: np.random.Generator, dtype: str) -> None:
    array = np.frombuffer(rng.bytes(4 * 64), np.uint32) & 0x80FFFFFF
    found, array = np.zeros(256, np.uint8), array.view(np.float32).reshape(8, 8).copy()
    kernel = ptxdsl.load(copy_kernel(_LOAD.format(2), 256, 2))["k"]
    kernel.configure(1, 1, backend="emulator")(tensor_map(array, (8, 8), dtype=dtype), found, np.zeros(2, np.int32))
    tiny = np.abs(array) < np.finfo(np.float32).tiny
    wanted = np.where(tiny & dtype.endswith("ftz"), np.copysign(np.float32(0), array), array)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("dtype", "bits", "padded"), [("b4x16", 4, False), ("b4x16_p64", 4, True), ("b6x16_p32", 6, True)]
)
def test_packed_elements(rng: np.random.Generator, dtype: str, bits: int, padded: bool) -> None:
    rows, columns = 5, 256
    aligned = np.zeros(rows * columns * bits // 8 + 32, np.uint8)
    start = -aligned.ctypes.data % 32
    array = aligned[start : start + rows * columns * bits // 8].reshape(rows, -1)
    array[:] = rng.integers(0, 256, array.shape)
    chunk, held = 2 * bits, 16 if padded else 2 * bits
    nbytes = 128 * bits // 8 * 3
    found = np.zeros(8 * held * 3, np.uint8)
    text = copy_kernel(_LOAD.format(2), nbytes, 2, target="sm_100a")
    text = text.replace(f"box[{-(-nbytes // 128) * 128}]", "box[1024]")
    text = text.replace(f"setp.lt.u32 %p, %n, {-(-nbytes // 128) * 128}", f"setp.lt.u32 %p, %n, {found.size}")
    ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(
        tensor_map(array, (3, 128), dtype=dtype), found, np.array([128, 3], np.int32)
    )
    wanted = np.zeros((3, 8, held), np.uint8)
    wanted[:2, :, :chunk] = array[3:, 128 * bits // 8 :].reshape(2, 8, chunk)
    assert found.tobytes() == wanted.tobytes()


def test_rows_are_gathered_and_scattered(rng: np.random.Generator) -> None:
    array, found = rng.standard_normal((9, 64)).astype(np.float32), np.zeros(512, np.uint8)
    before, rows = array.copy(), [int(row) for row in rng.permutation(9)[:3]]
    rows.insert(int(rng.integers(4)), 9)
    at = np.array([20, *rows], np.int32)
    map_ = tensor_map(array, (1, 32), swizzle=128)
    load = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
    ptxdsl.load(copy_kernel(load, 512, 5, target="sm_100a"))["k"].configure(1, 1, backend="emulator")(map_, found, at)
    taken = in_shared(array, [(row,) if row < 9 else None for row in rows], 32, 20, "128B", bytes(4))
    assert found.tobytes() == taken
    data = np.frombuffer(in_shared(-before[:4], [(n,) for n in range(4)], 32, 20, "128B", b""), np.uint8).copy()
    store = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
    ptxdsl.load(copy_kernel(store, 512, 5, target="sm_100a"))["k"].configure(1, 1, backend="emulator")(map_, data, at)
    wanted = before.copy()
    for number, row in enumerate(rows):
        if row < 9:
            wanted[row, 20:52] = -before[number, 20:52]
    np.testing.assert_array_equal(array, wanted)


class TestFaults:
    """Each is an error before anything is copied, with what came and what was wanted."""

    @staticmethod
    def error(instruction: str, map_: Any, start: list[int], text: str = "", *more: Any, hint: str = "") -> str:
        text = text or copy_kernel(instruction, 512, len(start), target="sm_100a")
        arguments = np.zeros(512, np.uint8), np.array(start, np.int32)
        with pytest.raises(ptxdsl.MemoryFault) as raised:
            ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(map_, *arguments, *more)
        assert hint in (raised.value.hint or "")
        return raised.value.message.replace("`" + instruction + "`", "it")

    def test_of_another_rank(self) -> None:
        map_ = tensor_map(np.zeros((4, 8), np.float32), (1, 8))
        hint = "an array of 3 dimensions; or, for this one, 2 coordinates, and `.2d` in the instruction"
        message = self.error(_LOAD.format(3), map_, [0, 0, 0], hint=hint)
        assert message == "it by a tensor map of 2 dimensions; it wants 3"

    def test_what_is_no_map(self) -> None:
        assert self.error(_LOAD.format(2), bytes(128), [0, 0]) == "it by what is no tensor map"

    def test_rows_of_larger_boxes(self) -> None:
        load = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        map_ = tensor_map(np.zeros((4, 8), np.float32), (2, 8))
        assert self.error(load, map_, [0] * 5) == "it by a tensor map of boxes of 2 rows; it takes single rows"

    def test_types_that_are_not_reduced(self) -> None:
        map_ = tensor_map(np.zeros((4, 8), np.float32), (1, 8))
        instruction = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group"
        message = self.error(instruction, map_, [0, 0], hint="`.add` takes f32")
        assert message == "it by a tensor map of f32; `.min` does not take this type"

    def test_an_array_that_is_no_argument(self) -> None:
        array = np.zeros((64, 64), np.float32)
        data = bytes(tensor_map(array, (2, 64)))
        message = self.error(_LOAD.format(2), data, [0, 1])
        assert message.startswith("tensor copy of 512 bytes from address ")
        assert "array of the launch" in message or message.endswith("has been freed")  # another one lay there before

    def test_shared_memory_that_is_not_aligned(self) -> None:
        map_ = tensor_map(np.zeros((4, 8), np.float32), (1, 8))
        text = copy_kernel(_LOAD.format(2), 32, 2).replace("[box], [%map", "[box+16], [%map")
        message = self.error(_LOAD.format(2), map_, [0, 0], text)
        assert message == "it at shared address 0x410: a box must be aligned to 128 bytes"

    def test_boxes_beyond_shared_memory(self) -> None:
        map_ = tensor_map(np.zeros((64, 32), np.float32), (64, 32))
        text = copy_kernel(_LOAD.format(2), 64 * 128, 2).replace("box[8192]", "box[4096]").replace("8192;", "4096;")
        message = self.error(_LOAD.format(2), map_, [0, 0], text)
        assert message == "tensor copy of 8192 bytes to box[0]: box is b8[4096] in shared memory"


_CLUSTER = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out)
.explicitcluster .reqnctapercluster 4 .reqntid 64
{{
    .reg .b64 %map, %out, %at;
    .reg .b32 %t, %rank, %word, %x, %expected, %bar;
    .reg .b16 %mask;
    .reg .pred %first, %p;
    .shared .align 1024 .b8 box[2048];
    .shared .align 8 .b64 bar;
    mov.b64 %map, m;
    cvta.param.u64 %map, %map;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [bar], 1;
    @%first mov.u32 %expected, {expected};
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], %expected;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    {{ .reg .pred %q; setp.ne.u32 %q, %rank, {issuer}; or.pred %q, %q, !%first; @%q bra WAIT; }}
    mov.u16 %mask, {mask};
    mov.u32 %bar, bar;
    {{ .reg .b32 %own; mapa.shared::cluster.u32 %own, %bar, {owner}; mov.u32 %bar, %own; }}
    {load}{multicast}{group} [box], [%map, {{4, 1}}], [%bar]{comma};
WAIT:
    {{ .reg .pred %w; mbarrier.try_wait.parity.shared.b64 %w, [bar], 0; @!%w bra WAIT; }}
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    shl.b32 %x, %t, 2;
    mov.u32 %word, box;
    add.u32 %word, %word, %x;
    shl.b32 %t, %rank, 8;
    add.u32 %x, %x, %t;
    ld.shared.b32 %word, [%word];
    cvt.u64.u32 %at, %x;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %word;
    ret;
}}
"""


@pytest.mark.parametrize("sanitize", [(), ("race",), ("init",)])
@pytest.mark.parametrize("mask", [0b1111, 0b1010, 0b0100])
def test_multicast(rng: np.random.Generator, mask: int, sanitize: Any) -> None:
    """Each block of the mask has the box, and its own mbarrier counts it."""
    issuer = int(rng.integers(4))
    text = _CLUSTER.format(
        mask=mask, multicast=".multicast::cluster", group="", comma=", %mask", owner=issuer, issuer=issuer,
        expected="256", load=_LOAD.format(2),
    )
    text = text.replace("@%first mov.u32 %expected, 256;", f"""
    mov.u32 %expected, {mask};
    shr.u32 %expected, %expected, %rank;
    and.b32 %expected, %expected, 1;
    shl.b32 %expected, %expected, 8;""")
    array, out = rng.standard_normal((8, 16)).astype(np.float32), np.zeros((4, 4, 16), np.float32)
    kernel = ptxdsl.load(text)["k"].configure(4, 64, cluster=4, backend="emulator", sanitize=sanitize)
    if "init" in sanitize and mask != 0b1111:
        with pytest.raises(ptxdsl.UninitializedError, match=r"load from box\[\d+\], which nobody has written"):
            kernel(tensor_map(array, (4, 16)), out)
        return
    kernel(tensor_map(array, (4, 16)), out)
    box = np.zeros((4, 16), np.float32)
    box[:, :12] = array[1:5, 4:]
    for rank in range(4):
        if mask >> rank & 1:
            np.testing.assert_array_equal(out[rank], box)
        else:
            assert np.isnan(out[rank]).all()


@pytest.mark.parametrize(("fence", "order", "found"), [
    ("", "", False), ("", ".release", False), ("", ".relaxed", True),
    ("fence.mbarrier_init.release.cluster;", ".relaxed", False), ("fence.acq_rel.cluster;", ".relaxed", False),
])
def test_what_orders_the_initialisation_for_other_blocks(fence: str, order: str, found: bool) -> None:
    text = _CLUSTER.format(
        mask=0b1111, multicast=".multicast::cluster", group="", comma=", %mask", owner=1, issuer=1, expected="256",
        load=_LOAD.format(2),
    )
    text = text.replace("barrier.cluster.arrive", f"{fence} barrier.cluster.arrive{order}", 1)
    array, out = np.zeros((8, 16), np.float32), np.empty((4, 4, 16), np.float32)
    kernel = ptxdsl.load(text)["k"].configure(4, 64, cluster=4, backend="emulator", sanitize="race")
    with collect() as findings:
        kernel(tensor_map(array, (4, 16)), out)
    hint = "put `ptx.fence.mbarrier_init.release.cluster()` behind its initialisation, then `ptxdsl.cluster.sync()`"
    assert bool(findings) == found
    assert all(each.message.startswith("race on bar[0] ") for each in findings)
    assert (hint in {each.hint for each in findings}) == found


@pytest.mark.parametrize("multicast", [True, False])
def test_pairs_of_blocks_signal_one_mbarrier(rng: np.random.Generator, multicast: bool) -> None:
    """With `.cta_group::2` the even block of a pair counts the bytes of both, or those that its peer loads."""
    text = _CLUSTER.format(
        mask=0b1111, multicast=".multicast::cluster" * multicast, group=".cta_group::2",
        comma=", %mask" * multicast, owner=0, issuer=1, expected="256",
        load=_LOAD.format(2),
    )
    counted = "shl.b32 %expected, %expected, 9;" if multicast else """setp.lt.u32 %p, %rank, 1;
    selp.b32 %expected, 256, 0, %p;"""
    text = text.replace("@%first mov.u32 %expected, 256;", f"""
    and.b32 %expected, %rank, 1;
    xor.b32 %expected, %expected, 1;
    {counted}""")
    array, out = rng.standard_normal((8, 16)).astype(np.float32), np.zeros((4, 4, 16), np.float32)
    ptxdsl.load(text)["k"].configure(4, 64, cluster=4, backend="emulator")(tensor_map(array, (4, 16)), out)
    for rank in range(4):
        if multicast or rank == 1:
            np.testing.assert_array_equal(out[rank][:, :12], array[1:5, 4:])
        else:
            assert np.isnan(out[rank]).all()


@ptxdsl.ptx_kernel
def _transpose(source: ptxdsl.TensorMap, dest: ptxdsl.TensorMap) -> None:
    tile, turned = shared(f32, 32, 32, align=128), shared(f32, 32, 32, align=128)
    bar = shared(u64, 1)
    x, y = ptx.tid.x, ptx.tid.y
    column, row = ptx.ctaid.x.bits(s32) * 32, ptx.ctaid.y.bits(s32) * 32
    first = (x + y) == 0
    with when(first):
        ptx.mbarrier.init.shared.b64(bar, 1)
        ptx.fence.proxy.async_.shared__cta()
        ptx.mbarrier.arrive.expect_tx.shared.b64(bar, 4096)
        ptx[_LOAD.format(2)](tile, (source, (column, row)), bar)
    ptx.bar.sync(0)
    with loop():
        break_if(ptx.mbarrier.try_wait.parity.shared.b64(bar, 0))
    turned[x, y] = tile[y, x]
    ptx.fence.proxy.async_.shared__cta()
    ptx.bar.sync(0)
    with when(first):
        ptx[_STORE.format(2)]((dest, (row, column)), turned)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)


@pytest.mark.parametrize("sanitize", [(), ("race", "init")])
def test_from_the_language(rng: np.random.Generator, sanitize: Any) -> None:
    rows, columns = (int(n) for n in rng.integers(1, 40, 2))
    source = rng.standard_normal((rows, -(-columns // 4) * 4)).astype(np.float32)
    dest = np.full((columns, -(-rows // 4) * 4), 7, np.float32)
    grid = (-(-columns // 32), -(-rows // 32))
    _transpose.configure(grid, (32, 32), backend="emulator", sanitize=sanitize)(
        tensor_map(source[:, :columns], (32, 32)), tensor_map(dest[:, :rows], (32, 32))
    )
    np.testing.assert_array_equal(dest[:, :rows], source[:, :columns].T)
    assert (dest[:, rows:] == 7).all()


def test_a_map_after_its_bytes_alone(rng: np.random.Generator) -> None:
    """A kept launch that was given the same 128 bytes without their array does not stand for one with it."""
    array, found = rng.standard_normal((4, 32)).astype(np.float32), np.zeros(512, np.uint8)
    map_, at = tensor_map(array, (4, 32)), np.array([0, 5], np.int32)
    launch = ptxdsl.load(copy_kernel(_LOAD.format(2), 512, 2))["k"].configure(1, 1, backend="emulator")
    launch(bytes(map_), found, at)
    assert not found.any()
    at[:] = 0
    launch(map_, found, at)
    assert found.tobytes() == array.tobytes()
    with pytest.raises(ptxdsl.MemoryFault):
        launch(bytes(map_), found, at)


_PIXELS = "cp.async.bulk.tensor.{}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_pixels_of_a_convolution(rng: np.random.Generator, rank: int) -> None:
    """Each filter position's load is the matrix of a direct loop over the output pixels, in any batch of them."""
    count = rank - 2
    spatial, filters = rng.integers(4, 9, count), rng.integers(1, 4, count)
    pad, steps = [int(f) // 2 for f in filters], [int(step) for step in rng.integers(1, 3, count)]
    array = rng.standard_normal((3, *spatial, 16)).astype(np.float32)
    low = [-p for p in pad]
    high = [p - (int(f) - 1) for p, f in zip(pad, filters)]
    map_ = tensor_map(array, (24, 8), corners=(low, high), swizzle=32, element_strides=(1, *steps, 1))
    axes = [range(a, int(n) + b, step) for n, a, b, step in zip(spatial, low, high, steps)]
    pixels = [(n, *at) for n in range(3) for at in itertools.product(*axes)]
    first = int(rng.integers(len(pixels)))
    taken = [*pixels[first : first + 24], *[None] * 24][:24]
    offset = [int(rng.integers(f)) for f in filters]
    moved = [p and (p[0], *(a + o for a, o in zip(p[1:], offset))) for p in taken]
    rows = [p if p and all(0 <= a < n for a, n in zip(p[1:], spatial)) else None for p in moved]
    text = copy_kernel(_PIXELS.format(rank), 24 * 32, rank)
    moves = "".join(f"mov.b16 %o{n}, {each};" for n, each in enumerate(reversed(offset)))
    names = ", ".join(f"%o{n}" for n in range(count))
    text = text.replace("], [bar];\nWAIT", f"], [bar], {{{names}}};\nWAIT")
    text = text.replace("mov.b64 %map, m;", f".reg .b16 %o<3>; {moves} mov.b64 %map, m;")
    found = np.zeros(24 * 32, np.uint8)
    at = np.array([4, *pixels[first][:0:-1], pixels[first][0]], np.int32)
    for tools in ((), ("race", "init")):
        ptxdsl.load(text)["k"].configure(1, 1, backend="emulator", sanitize=tools)(map_, found, at)
        assert found.tobytes() == in_shared(array, rows, 8, 4, "32B", bytes(4))


_WIDTHS = "cp.async.bulk.tensor.{}d.shared::cta.global.{}.mbarrier::complete_tx::bytes"


def _line_of_pixels(count: int, first: tuple[int, ...], low: int, last: int, step: int) -> list[tuple[int, ...]]:
    """Pixels (image, ..., x) from the first on: along x, behind the last one from the lowest x of the next image."""
    found = [first]
    while len(found) < count:
        n, *fixed, x = found[-1]
        found.append((n, *fixed, x + step) if x + step <= last else (n + 1, *fixed, low))
    return found[:count]


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("mode", ["im2col::w", "im2col::w::128"])
def test_pixels_along_the_width(rng: np.random.Generator, mode: str, rank: int) -> None:
    """Pixels, then a halo; or four chunks of 32, and the halo of each behind them all."""
    swizzle, chunked = str(rng.choice(["64B", "128B", "128B_atom_32B"])), mode.endswith("128")
    shape = [40, *map(int, rng.integers(2, 5, rank - 3)), int(rng.integers(4, 12)), 16]
    array = rng.standard_normal(shape).astype(np.float32)
    low, high, step = int(rng.integers(-2, 2)), int(rng.integers(-2, 2)), int(rng.integers(1, 3))
    pixels, halo, offset = (128 if chunked else int(rng.integers(1, 50))), int(rng.integers(6)), int(rng.integers(4))
    steps = (1,) * (rank - 2) + (step, 1)
    corners = [[0] * (rank - 3) + [corner] for corner in (low, high)]
    map_ = tensor_map(array, (pixels % 128 + 1 if chunked else pixels, 8), corners=corners, swizzle=swizzle,
                      element_strides=steps)
    start = (1, *(int(rng.integers(-1, n + 1)) for n in shape[1:-2]), low - 1)
    low, last = low + offset, shape[-2] - 1 + high + offset
    first = (*start[:-1], start[-1] + offset)
    walk = _line_of_pixels(pixels + halo, first, low, last, step)
    if chunked:
        halos = [_line_of_pixels(33 + halo, walk[32 * n], low, last, step)[32:][:halo] for n in range(4)]
        walk = walk[:128] + [halos[n][h] for h in range(halo) for n in range(4)]
    rows = [p if all(0 <= a < n for a, n in zip(p, shape)) else None for p in walk]
    nbytes = len(rows) * 32
    text = copy_kernel(_WIDTHS.format(rank, mode), nbytes, rank, "8.6", "sm_100a")
    text = text.replace("], [bar];\nWAIT", "], [bar], {%h, %o};\nWAIT").replace(
        "mov.b64 %map, m;", f".reg .b16 %h, %o; mov.b16 %h, {halo}; mov.b16 %o, {offset}; mov.b64 %map, m;")
    found = np.zeros(-(-nbytes // 128) * 128, np.uint8)
    at = np.array([4, *start[:0:-1], start[0]], np.int32)
    for tools in ((), ("race", "init")):
        kernel = ptxdsl.load(text)["k"]
        kernel.configure(1, 1, backend="emulator", sanitize=tools)(map_, found, at)
        wanted = np.frombuffer(in_shared(array, rows, 8, 4, swizzle, bytes(4)), np.uint8)
        lines = [place(byte, swizzle) for byte in range(nbytes)]
        np.testing.assert_array_equal(found[lines], wanted[lines])
    assert kernel.cubin()


def test_what_copies_along_the_width_refuse() -> None:
    array, found, at = np.zeros((2, 8, 8), np.float32), np.zeros(256, np.uint8), np.zeros(3, np.int32)
    for mode, swizzle, halo, message in (
        ("im2col::w", None, 0, "a tensor map of swizzle none; it wants 64B, 96B, 128B or 128B_atom_32B"),
        ("im2col::w::128", "96B", 0, "a tensor map of swizzle 96B; it wants 64B, 128B or 128B_atom_32B"),
        ("im2col::w", "128B_atom_32B_flip_8B", 0, "a tensor map of swizzle 128B_atom_32B_flip_8B; it wants 64B"),
        ("im2col::w::128", "64B", 32, "a tensor map with halo 32; it must be below 32"),
        ("im2col::w", "64B", 512, "a tensor map with halo 512; it must be below 512"),
    ):
        text = copy_kernel(_WIDTHS.format(3, mode), 256, 3, "8.6", "sm_100a")
        text = text.replace("], [bar];\nWAIT", "], [bar], {%h, %h};\nWAIT").replace(
            "mov.b64 %map, m;", f".reg .b16 %h; mov.b16 %h, {halo}; mov.b64 %map, m;")
        map_ = tensor_map(array, (8, 8), corners=((0,), (0,)), swizzle=swizzle)
        with pytest.raises(ptxdsl.MemoryFault, match=message):
            ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(map_, found, at)


def test_maps_of_pixels_and_of_boxes_are_told_apart() -> None:
    array = np.zeros((2, 8, 8), np.float32)
    found, at = np.zeros(256, np.uint8), np.zeros(3, np.int32)
    pixels, boxes = tensor_map(array, (8, 8), corners=((0,), (0,))), tensor_map(array, (1, 8, 8))
    store = "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group"
    for map_, instruction, message in (
        (pixels, _LOAD.format(3), "a tensor map of pixels; it wants one of boxes"),
        (boxes, store, "a tensor map of boxes; it wants one of pixels"),
    ):
        with pytest.raises(ptxdsl.MemoryFault, match=message):
            ptxdsl.load(copy_kernel(instruction, 256, 3))["k"].configure(1, 1, backend="emulator")(map_, found, at)


def test_pixels_are_stored(rng: np.random.Generator) -> None:
    array, data = np.zeros((2, 6, 8), np.float32), rng.standard_normal((8, 8)).astype(np.float32)
    store = "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group"
    map_ = tensor_map(array, (8, 8), corners=((1,), (-1,)))
    ptxdsl.load(copy_kernel(store, 256, 3))["k"].configure(1, 1, backend="emulator")(
        map_, data.view(np.uint8).reshape(-1), np.array([0, 2, 0], np.int32)
    )
    wanted = np.zeros_like(array)
    wanted[0, 2:5], wanted[1, 1:5] = data[:3], data[3:7]
    np.testing.assert_array_equal(array, wanted)
