"""Textures and surfaces of arrays whose rows, slices and layers lie further apart than they are wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import Array, LaunchError, Surface, Texture, f32, ptx, ptx_kernel, s32, to_device, use

rng = np.random.default_rng()


def values(*shape: int) -> Any:
    return rng.integers(0, 1000, shape).astype(np.float32)


@ptx_kernel
def read_2d(image: Texture, out: Array[f32, 2]):
    x, y = ptx.tid.x, ptx.tid.y
    out[y, x] = ptx["tex.2d.v4.f32.s32"]((image, [x.bits(s32), y.bits(s32)]))[0]


@ptx_kernel
def read_3d(image: Texture, out: Array[f32, 3]):
    x, y, z = (i.bits(s32) for i in (ptx.tid.x, ptx.tid.y, ptx.tid.z))
    out[z, y, x] = ptx["tex.3d.v4.f32.s32"]((image, [x, y, z, z]))[0]


@ptx_kernel
def read_layers(image: Texture, out: Array[f32, 3]):
    x, y, z = ptx.tid.x.bits(s32), ptx.tid.y.bits(s32), ptx.tid.z
    out[z, y, x] = ptx["tex.a2d.v4.f32.s32"]((image, [z, x, y, y]))[0]


@ptx_kernel
def read_rows(image: Texture, out: Array[f32, 2]):
    out[ptx.tid.y, ptx.tid.x] = ptx["tex.a1d.v4.f32.s32"]((image, [ptx.tid.y, ptx.tid.x.bits(s32)]))[0]


@ptx_kernel
def write_2d(image: Surface):
    x, y = ptx.tid.x.bits(s32), ptx.tid.y.bits(s32)
    ptx["sust.b.2d.b32.zero"]((image, (x * 4, y)), (x + 10 * y).to(f32))


CASES: dict[str, tuple[Any, Any, str | None]] = {
    "2d": (read_2d, lambda: values(5, 9)[:, :6], None),
    "2d from the middle": (read_2d, lambda: values(7, 16)[2:6, 3:8], None),
    "2d, every second row": (read_2d, lambda: values(8, 6)[::2], None),
    "2d, one row": (read_2d, lambda: values(8, 6)[::8], None),
    "3d": (read_3d, lambda: values(3, 5, 8)[:, :4, :6], "3d"),
    "3d, every second slice": (read_3d, lambda: values(6, 4, 6)[::2], "3d"),
    "a2d": (read_layers, lambda: values(3, 5, 8)[:, :4, :6], "a2d"),
    "a1d": (read_rows, lambda: values(4, 9)[:, :7], "a1d"),
    "a1d, every second": (read_rows, lambda: values(8, 7)[::2], "a1d"),
}


@pytest.mark.parametrize("case", CASES)
def test_texels_are_read_where_they_lie(case: str) -> None:
    kernel, make, geometry = CASES[case]
    array = make()
    assert not array.flags.c_contiguous or case.endswith("one row")
    out = np.zeros(array.shape, np.float32)
    with use("emulator"):
        kernel[1, array.shape[::-1]](Texture(array, geometry), out)
    assert (out == array).all()


def test_channels_and_edges() -> None:
    array = values(4, 8, 4)[:, :5]

    @ptx_kernel
    def k(image: Texture, out: Array[f32, 3]):
        x, y = ptx.tid.x.bits(s32) - 1, ptx.tid.y.bits(s32) - 1
        texel = ptx["tex.2d.v4.f32.s32"]((image, [x, y]))
        for channel in range(4):
            out[ptx.tid.y, ptx.tid.x, channel] = texel[channel]

    out = np.ones((6, 7, 4), np.float32)
    with use("emulator"):
        k[1, (7, 6)](Texture(array, "2d", address="border"), out)
    assert (out == np.pad(array, ((1, 1), (1, 1), (0, 0)))).all()


def test_a_surface_stores_between_what_is_not_its_own() -> None:
    memory = values(6, 10)
    before, image = memory.copy(), memory[1:5, 2:8]
    with use("emulator"):
        write_2d[1, (8, 8)](Surface(image))
    assert (image == np.add.outer(10 * np.arange(4), np.arange(6))).all()
    before[1:5, 2:8] = image
    assert (memory == before).all()


REFUSED: list[tuple[Callable[[], Any], str | None]] = [
    (lambda: values(4, 12)[:, ::2], None), (lambda: values(6, 4).T, None), (lambda: values(4, 6)[::-1], None),
    (lambda: np.broadcast_to(values(6), (4, 6)), None), (lambda: values(5, 4, 6).transpose(1, 0, 2), "3d"),
    (lambda: values(3, 4, 6)[::-1], "3d"), (lambda: values(4, 6, 2)[..., ::-1], "2d"),
    (lambda: np.lib.stride_tricks.as_strided(values(99), (2, 3, 4), (28 * 4, 8 * 4, 4)), "3d"),
]


@pytest.mark.parametrize(("make", "geometry"), REFUSED)
def test_what_no_pitch_describes(make: Any, geometry: str | None) -> None:
    array = make()
    with pytest.raises(LaunchError) as caught:
        Texture(array, geometry)
    assert "wants contiguous rows, one a pitch behind the other" in caught.value.message
    copy = np.ascontiguousarray(array)  # the hint
    out = np.zeros(copy.shape[: 2 + (geometry == "3d")], np.float32)
    with use("emulator"):
        (read_3d if geometry == "3d" else read_2d)[1, out.shape[::-1]](Texture(copy, geometry), out)
    assert (out == (copy if copy.ndim == out.ndim else copy[..., 0])).all()


def test_the_hint_for_a_surface_copies_back() -> None:
    array = values(4, 12)[:, ::2]
    with pytest.raises(LaunchError) as caught:
        Surface(array)
    assert caught.value.hint == (
        "`copy = np.ascontiguousarray(array)`, `Surface(copy)`, and after the launch `array[...] = copy`"
    )


def test_a_device_array_is_dense() -> None:
    array, out = values(4, 6), np.zeros((4, 6), np.float32)
    with use("emulator"):
        read_2d[1, (6, 4)](Texture(to_device(array)), out)
    assert (out == array).all()

