"""Parts of device arrays: the same on both backends as numpy's, read, written, copied and launched with."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from image_standin import ImageStandin

import ptxdsl
from ptxdsl import Array, Ptr, bf16, f32, ptx, ptx_kernel
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools
from ptxdsl.launch import rows as rows_module
from ptxdsl.launch.rows import packed_order, rows

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
BACKENDS = ("gpu", "emulator")
DTYPES = [np.uint8, np.float32, np.float64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.integers(0, 256, nbytes, np.uint8).view(dtype).reshape(shape)


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic index: ints, slices with any step, None, and at most one ellipsis."""
    key: list[Any] = []
    for extent in shape[: int(rng.integers(0, len(shape) + 1))]:
        if rng.random() < 0.2:
            key.append(None)
        if rng.random() < 0.25 and extent:
            key.append(np.int64(rng.integers(-extent, extent)) if rng.random() < 0.5 else int(rng.integers(extent)))
        else:
            ends = [None if rng.random() < 0.4 else int(rng.integers(-extent - 1, extent + 2)) for _ in range(2)]
            key.append(slice(*ends, int(rng.choice([-3, -2, -1, 1, 1, 2, 5]))))
    if rng.random() < 0.3:
        key.append(...)
    return tuple(key)


def same(x: Any, y: np.ndarray) -> None:
    got = x.numpy()
    assert (x.shape, x.size, x.nbytes) == (y.shape, y.size, y.nbytes)
    assert got.tobytes() == y.tobytes()
    assert got.flags.c_contiguous
    assert x.contiguous == y.flags.c_contiguous
    if y.size:
        steps = zip(x.strides, y.strides, y.shape)
        assert not [(step, wanted) for step, wanted, extent in steps if extent > 1 and step != wanted]


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_are_numpys(backend: str, cu: ImageStandin, rng: np.random.Generator) -> None:
    for round_ in range(150):
        shape = tuple(int(n) for n in rng.integers(0 if round_ % 10 == 0 else 1, 7, rng.integers(0, 5)))
        y = random_array(rng, shape, DTYPES[round_ % len(DTYPES)])
        x = ptxdsl.to_device(y, backend=backend)
        same(x, y)
        for _ in range(3):
            key = random_key(rng, y.shape)
            part, wanted = x[key], y[(*key, ...) if ... not in key else key]
            same(part, wanted)
            if wanted.ndim:
                order = rng.permutation(wanted.ndim)
                same(part.transpose(order), wanted.transpose(order))
                same(part.T, wanted.T)
            same(part.copy(), wanted.copy())
            new = random_array(rng, wanted.shape, y.dtype)
            if rng.random() < 0.5:
                x[key] = new
            else:
                part[...] = ptxdsl.to_device(new.T, backend=backend).T
            wanted[...] = new
            same(x, y)
            x, y = part, wanted
            if not y.ndim:
                break


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_that_overlap(backend: str, cu: ImageStandin, rng: np.random.Generator) -> None:
    y = random_array(rng, (9, 11), np.uint16)
    x = ptxdsl.to_device(y, backend=backend)
    x[1:], y[1:] = x[:-1], y[:-1].copy()
    same(x, y)
    x[:, ::-1], y[:, ::-1] = x, y.copy()
    same(x, y)
    x[:9, :9], y[:9, :9] = x[:9, :9].T, y[:9, :9].T.copy()
    same(x, y)
    x[...] = x
    same(x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_assigned_is_broadcast_and_no_number_changes(
    backend: str, cu: ImageStandin, rng: np.random.Generator
) -> None:
    y = random_array(rng, (5, 6), np.int16)
    x = ptxdsl.to_device(y, backend=backend)
    for key, value in [
        ((slice(None), 1), 7), ((2,), [1, 2, 3, 4, 5, 6]), ((...,), True), ((slice(1, 3),), np.int16(-1)),
        ((slice(None, None, 2),), np.arange(6, dtype=np.int16)), ((0, 0), -32768), ((slice(2, 2),), 5),
        ((..., slice(4, None)), np.arange(5, dtype=np.int16)[:, None]),
    ]:
        x[key] = value
        y[key] = value
        same(x, y)
    x[1:3] = ptxdsl.to_device(np.arange(6, dtype=np.int16), backend=backend)
    y[1:3] = np.arange(6)
    same(x, y)
    z = ptxdsl.zeros((2, 3), bf16, backend=backend)
    z[1] = 1.5
    z[0] = [1, 2, 3]
    assert z.numpy().astype(float).tolist() == [[1, 2, 3], [1.5] * 3]
    for name, good, bad in [
        ("int4", -8, 8), ("uint2", 3, 4), ("uint64", (1 << 64) - 1, -1), ("int64", -1 << 63, 1 << 63),
    ]:
        kind = np.dtype(getattr(ml_dtypes, name, name))
        v = ptxdsl.zeros(3, kind, backend=backend)
        v[1] = good
        assert int(v[1].item()) == good
        with pytest.raises(LaunchError):
            v[0] = bad
    w = ptxdsl.to_device(np.zeros(3), backend=backend)
    w[1:] = 3
    assert w.numpy().tolist() == [0, 3, 3]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        (np.zeros(3), "an array of float64, shape (3,) cannot fill one of int16, shape (2, 3)", None),
        (1.5, "an array of float64, shape () cannot fill one of int16, shape (2, 3)",
         "convert it before: `values.astype('int16')`"),
        (np.zeros((3, 2), np.int16), "an array of int16, shape (3, 2) cannot fill one of int16, shape (2, 3)", None),
        (np.zeros((1, 2, 3), np.int16), "an array of int16, shape (1, 2, 3) cannot fill one of int16, shape (2, 3)",
         None),
        ([1, 1 << 20, 1], "[1, 1048576, 1] does not fit in int16", None),
        (-32769, "-32769 does not fit in int16", None),
        ("no", "an array of str", None),
    ],
)
def test_values_that_do_not_fit(
    values: Any, message: str, hint: str | None, backend: str, cu: ImageStandin
) -> None:
    x = ptxdsl.zeros((2, 3), np.int16, backend=backend)
    with pytest.raises(LaunchError) as caught:
        x[...] = values
    assert caught.value.message.startswith(message)
    assert caught.value.hint == hint
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert not x.numpy().any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes_and_types(backend: str, cu: ImageStandin, rng: np.random.Generator) -> None:
    y = random_array(rng, (4, 6), np.uint32)
    x = ptxdsl.to_device(y, backend=backend)
    for shape in [(24,), (2, -1), ((3, 8),), (4, 6, 1), (-1,)]:
        same(x.reshape(*shape), y.reshape(*shape))
    same(x[::2].reshape(2, 2, 3), y[::2].reshape(2, 2, 3))
    same(x[:, 1:5].reshape(4, 2, -1), y[:, 1:5].reshape(4, 2, 2))
    same(x[1:3].view(np.uint8), y[1:3].reshape(-1).view(np.uint8))
    same(x[:, ::2].view(f32), y[:, ::2].view(np.float32))
    same(x[1:2].view(np.uint64), y[1].view(np.uint64))
    assert x[1, 2].item() == y[1, 2]
    assert [row.numpy().tolist() for row in x] == y.tolist()
    assert repr(x[:, ::2]) == f"DeviceArray(shape=(4, 3), dtype=uint32, strides=(24, 8), backend={backend!r})"
    assert repr(x[1:3]) == f"DeviceArray(shape=(2, 6), dtype=uint32, backend={backend!r})"
    for bad, message, hint in [
        (lambda: x.T.reshape(24), "an array of shape (6, 4), strides (4, 24) has no shape (24,) without a copy",
         "`x.copy().reshape(24)`"),
        (lambda: x[:, :3].view(np.uint8),
         "an array of strides (24, 4) cannot be seen as uint8, whose size differs", "`x.copy().view('uint8')`"),
        (lambda: x[0, 1:3].view(np.uint64),
         f"an array at {x.address + 4:#x} cannot be seen as uint64, which wants a multiple of 8",
         "`x.copy().view('uint64')`"),
        (lambda: x[0, :3].view(np.uint64), "12 bytes are no whole number of uint64", None),
        (lambda: x[[0, 1]], "a device array is indexed by ints, slices, `...` and None, not by a list",
         "`x.numpy()[...]` is a copy that numpy indexes"),
        (lambda: x[y > 3], "a device array is indexed by ints, slices, `...` and None, not by an ndarray",
         "`x.numpy()[...]` is a copy that numpy indexes"),
        (lambda: x[True], "a device array is indexed by ints, slices, `...` and None, not by a bool",
         "`x.numpy()[...]` is a copy that numpy indexes"),
    ]:
        with pytest.raises(LaunchError) as caught:
            bad()
        assert (caught.value.message, caught.value.hint) == (message, hint)
    for wrong in (lambda: x[4], lambda: x[0, 0, 0], lambda: x[..., ...]):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(ValueError, match="cannot reshape"):
        x.reshape(5, 5)
    with pytest.raises(ValueError, match="cannot reshape"):
        x[:, :3].reshape(5, 5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_part_keeps_the_memory(backend: str, cu: ImageStandin) -> None:
    x = ptxdsl.to_device(np.arange(100), backend=backend)[10:20][::3]
    others = [ptxdsl.to_device(np.zeros(100, int), backend=backend) for _ in range(20)]
    assert x.numpy().tolist() == [10, 13, 16, 19]
    assert len(others) == 20


# Launches


@pytest.mark.parametrize("backend", BACKENDS)
def test_launches_with_parts(backend: str, cu: ImageStandin, rng: np.random.Generator) -> None:
    @ptx_kernel
    def double(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] * 2.0

    @ptx_kernel
    def negate(x: Array[f32, 2]) -> None:
        x[ptx.tid.y, ptx.tid.x] = -x[ptx.tid.y, ptx.tid.x]

    y = rng.random((8, 9), np.float32)
    x = ptxdsl.to_device(y, backend=backend)

    def run_double(_: Any) -> None:
        (address,) = cu.numbers(cu.launches[-1])
        cu.array(address, 9)[:] *= 2

    def run_negate(_: Any) -> None:
        address, height, width, step = cu.numbers(cu.launches[-1])
        for row in range(height):
            cu.array(address + row * step * 4, width)[:] *= -1

    cu.layout, cu.kernel = "Q", run_double
    launch = double.configure(1, 9, backend=backend)
    for row in (2, 2, 5, -1):
        launch(x[row])
        y[row] *= 2
        same(x, y)
    for part in (x[:, 3], x[0, ::-1], x[:, :3]):
        with pytest.raises(LaunchError, match=r"Ptr\[f32\] wants contiguous memory") as caught:
            launch(part)
    assert caught.value.hint == (
        "declare `x: Array[f32, 2]`; or `x_copy = x.copy()`, pass it, and afterwards `x[...] = x_copy`: "
        "the kernel stores to it"
    )
    launch(x[0])  # the fast path is still there, and still takes no part with gaps
    y[0] *= 2
    with pytest.raises(LaunchError):
        launch(x[:, 3])
    same(x, y)
    cu.layout, cu.kernel = "QIII", run_negate
    for key in [np.s_[1:4, 2:7], np.s_[::3, :], np.s_[1:2, 1:3]]:
        part = x[key]
        negate.configure(1, part.shape[::-1], backend=backend)(part)
        y[key] *= -1
        same(x, y)
    with pytest.raises(LaunchError, match=r"wants the last dimension contiguous"):
        negate.configure(1, (8, 9), backend=backend)(x.T)


def test_dtype_hint_of_a_device_array(cu: ImageStandin) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[0] = x[1]

    with pytest.raises(LaunchError) as caught:
        k[1, 1](ptxdsl.to_device(np.zeros(4)))
    assert caught.value.hint == (
        "declare `x: Ptr[f64]`; or, rounded, `x_copy = ptxdsl.to_device(x.numpy().astype(np.float32))`, pass it, and "
        "afterwards `x[...] = x_copy`: the kernel stores to it"
    )


# Copies in rows


def test_rows(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of one layout goes to its place in another, in few copies where that is possible."""
    monkeypatch.setattr(rows_module, "MAX_PITCH", 40)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 4)))
        larger = [tuple(n + int(rng.integers(0, 2)) for n in shape) for _ in range(2)]
        kinds, views = [random_array(rng, each, np.uint16) for each in larger], []
        for whole in kinds:
            part = whole[(*(slice(n) for n in shape), ...)]
            views.append(part[(*(slice(None, None, int(rng.choice([1, -1]))) for _ in shape), ...)])
        to, source = views
        memory = {name: bytearray(whole.tobytes()) for name, whole in zip("ts", kinds)}
        starts = [each.ctypes.data - whole.ctypes.data for each, whole in zip(views, kinds)]
        for each in rows(shape, 2, (starts[0], to.strides), (starts[1], source.strides)):
            assert each.height == 1 or 40 >= each.to_pitch >= each.width <= each.source_pitch <= 40
            for row in range(each.height):
                there, here = each.to + row * each.to_pitch, each.source + row * each.source_pitch
                memory["t"][there : there + each.width] = memory["s"][here : here + each.width]
        to[...] = source
        assert bytes(memory["t"]) == kinds[0].tobytes()


def test_transposed_and_pitched_arrays_are_one_copy(cu: ImageStandin, rng: np.random.Generator) -> None:
    y = random_array(rng, (40, 50), np.float32)
    x = ptxdsl.to_device(y)
    for part in (x.T, x[:, 3:20], x[::3], x[::-1], x[:, ::2], x[5:9].T[::-1]):
        before = len(cu.calls)
        part.numpy()
        assert len([call for call in cu.calls[before:] if "Memcpy" in call]) == 1
    assert packed_order((40, 50), x.T.strides) == (1, 0)
