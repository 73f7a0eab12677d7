"""Textures on the emulator, against the formulas of the CUDA Programming Guide in exact fractions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from texture_harness import columns, program, run, vector
from texture_reference import Mode, close, face, four, read, sample

from ptxdsl import Texture

COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4}
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (4, 5, 3), "a1d": (3, 7), "a2d": (3, 5, 7)}
ADDRESSES = [("clamp", False), ("border", False), *product(("clamp", "border", "wrap", "mirror"), [True])]
BORDER = (0.5, -2.0, 3.25, 0.75)


def coordinates(rng: np.random.Generator, count: int, size: int, normalized: bool) -> np.ndarray:
    """Coordinates within, beyond and at the edges of an axis, and what is no number."""
    x = rng.uniform(-2.5 * size, 3.5 * size, count)
    x[: count // 4] = rng.integers(-4 * size, 6 * size, count // 4) / 2  # edges and centres of texels
    x[count // 4 : count // 3] = rng.uniform(-0.51, 0.01, count // 3 - count // 4)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, size, 1e30, -1e30, 1e-30, -1e-30, size - 0.5, -0.5]
    x[-len(special) :] = special
    rng.shuffle(x)
    return (x / size if normalized else x).astype(np.float32)


def texels(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.uniform(-8, 8, shape).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, shape, dtype, endpoint=True)


def instruction(geometry: str, dtype: str = "f32", ctype: str = "f32", tail: str = "", head: str = "tex") -> str:
    at = vector("c", 0, COORDINATES[geometry])
    return f"{head}.{geometry}.v4.{dtype}.{ctype} {vector('d', 0, 4)}, [%h0, {at}]{tail};"


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize(("address", "normalized"), ADDRESSES)
@pytest.mark.parametrize("geometry", list(SHAPES))
def test_sampling(rng: np.random.Generator, geometry: str, address: str, normalized: bool, linear: bool) -> None:
    channels, count = int(rng.choice([1, 2, 4])), 96
    image = texels(rng, (*SHAPES[geometry], channels), np.float32)
    mode = Mode(address, linear, normalized, BORDER[:channels] + (0.0, 0.0, 0.0, 1.0)[channels:])
    layered = geometry[0] == "a"
    sizes = image.shape[-2 : (0 if layered else None) : -1] if layered else image.shape[-2::-1]
    axes = [coordinates(rng, count, size, normalized) for size in sizes]
    layers = rng.integers(0, 5, count).astype(np.uint32)  # the last one stands for those beyond
    given = [layers, *axes] if layered else [*axes]
    given += [np.zeros(count, np.float32)] * (COORDINATES[geometry] - len(given))
    texture = Texture(
        image, geometry, address=address, filter="linear" if linear else "point", normalized=normalized, border=BORDER
    )
    got = run(program(instruction(geometry), len(given), 4), texture, columns(*given), 4)
    full = four(image, 1)
    exact = [
        sample(full[min(layers[lane], 2)] if layered else full, tuple(axis[lane] for axis in axes), mode)
        for lane in range(count)
    ]
    close(got, exact)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"])
def test_formats(rng: np.random.Generator, dtype: str, channels: int) -> None:
    image = texels(rng, (5, 9, channels), dtype)
    at = [rng.uniform(0, size, 64).astype(np.float32) for size in (9, 5)]
    places = tuple(np.floor(x).astype(int) for x in at[::-1])
    real = dtype.startswith("float")
    kind = {"f": "f32", "u": "u32", "i": "s32"}[np.dtype(dtype).kind]
    wide = {"f": np.float32, "u": np.uint32, "i": np.int32}[np.dtype(dtype).kind]
    got = run(program(instruction("2d", kind), 2, 4), Texture(image, "2d"), columns(*at), 4, wide)
    np.testing.assert_array_equal(got, four(read(image, False).astype(wide), 1)[places])
    if not real and image.itemsize < 4:
        texture = Texture(image, "2d", read="normalized")
        got = run(program(instruction("2d"), 2, 4), texture, columns(*at), 4)
        np.testing.assert_array_equal(got, four(read(image, True), 1)[places])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "float16"])
def test_filters_what_it_reads(rng: np.random.Generator, dtype: str) -> None:
    image = texels(rng, (6, 5, 4), dtype)
    texture = Texture(image, "2d", filter="linear", read="element" if dtype == "float16" else "normalized")
    at = [coordinates(rng, 64, size, False) for size in (5, 6)]
    got = run(program(instruction("2d"), 2, 4), texture, columns(*at), 4)
    numbers = read(image, True)
    close(got, [sample(numbers, (x, y), Mode(linear=True)) for x, y in zip(*at)])


def test_light(rng: np.random.Generator) -> None:
    image = np.stack([np.arange(256)] * 4, axis=-1).astype(np.uint8)[None]
    x = np.arange(256, dtype=np.float32)
    got = run(program(instruction("2d"), 2, 4), Texture(image, "2d", read="normalized", srgb=True),
              columns(x, np.zeros_like(x)), 4)
    c = np.arange(256) / 255
    light = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(got[:, :3], np.stack([light] * 3, axis=-1), rtol=1e-6)
    np.testing.assert_array_equal(got[:, 3], (np.arange(256) / 255).astype(np.float32))


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("geometry", ["cube", "acube"])
def test_cubes(rng: np.random.Generator, geometry: str, linear: bool) -> None:
    count, layered = 256, geometry == "acube"
    image = texels(rng, ((3,) if layered else ()) + (6, 5, 5, 2), np.float32)
    vectors = rng.normal(size=(count, 3)).astype(np.float32)
    vectors[:6] = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    layers = rng.integers(0, 3, count).astype(np.uint32)
    rest = list(vectors.T)
    given = [layers, *rest] if layered else [*rest, rest[0]]
    texture = Texture(image, geometry, filter="linear" if linear else "point")
    got = run(program(instruction(geometry), 4, 4), texture, columns(*given), 4)
    full, exact = four(image, 1), []
    for lane, (x, y, z) in enumerate(vectors.astype(float)):
        number, s, t = face(x, y, z)
        layer = full[layers[lane]] if layered else full
        exact.append(sample(layer[number], (s, t), Mode("clamp", linear, True)))
    close(got, exact)


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d", "a1d", "a2d"])
def test_whole_coordinates(rng: np.random.Generator, geometry: str) -> None:
    """Without a sampler of its own a texture is not sampled: beyond its edges are zeros, whatever the address mode."""
    image = texels(rng, (*SHAPES[geometry], 2), np.int16)
    layered, count = geometry[0] == "a", 128
    sizes = SHAPES[geometry][1:] if layered else SHAPES[geometry]
    axes = [rng.integers(-2, size + 2, count).astype(np.int32) for size in sizes[::-1]]
    axes[0][0] = -(2**31)
    layers = rng.integers(0, 3, count).astype(np.int32)
    given = [layers, *axes] if layered else [*axes]
    given += [np.zeros(count, np.int32)] * (COORDINATES[geometry] - len(given))
    texture = Texture(image, geometry, address="clamp")
    got = run(program(instruction(geometry, "s32", "s32"), len(given), 4), texture, columns(*given), 4, np.int32)
    full = four(image.astype(np.int32), 1)
    for lane in range(count):
        where = tuple(int(axis[lane]) for axis in axes[::-1])
        good = all(0 <= i < n for i, n in zip(where, sizes))
        wanted = (full[layers[lane]] if layered else full)[where] if good else [0, 0, 0, 1]
        assert got[lane].tolist() == list(wanted)


def test_linear_memory(rng: np.random.Generator) -> None:
    image = rng.uniform(-1, 1, 1000).astype(np.float32)
    x = rng.integers(-5, 1005, 64).astype(np.int32)
    got = run(program(instruction("1d", "f32", "s32"), 1, 4), Texture(image, "linear"), columns(x), 4)
    good = (x >= 0) & (x < 1000)
    np.testing.assert_array_equal(got[:, 0], np.where(good, image[np.clip(x, 0, 999)], 0))


@pytest.mark.parametrize("geometry", ["2dms", "a2dms"])
def test_samples(rng: np.random.Generator, geometry: str) -> None:
    layered = geometry[0] == "a"
    image = texels(rng, ((2,) if layered else ()) + (3, 5, 4, 1), np.float32)
    x, y, s = (rng.integers(0, size, 64).astype(np.int32) for size in (5, 3, 4))
    layer = rng.integers(0, 2, 64).astype(np.int32)
    given = [layer, s, x, y] if layered else [s, x, y, x]
    text = f"tex.{geometry}.v4.f32.s32 {vector('d', 0, 4)}, [%h0, {vector('c', 0, 4)}];"
    got = run(program(text, 4, 4), Texture(image, geometry), columns(*given), 4)
    wanted = image[layer, y, x, s] if layered else image[y, x, s]
    np.testing.assert_array_equal(got, four(wanted, 1))


OFFSETS = {"1d": (3,), "2d": (-2, 4), "3d": (1, -3, 5, 0), "a1d": (-1,), "a2d": (2, -5)}


@pytest.mark.parametrize(("address", "normalized"), ADDRESSES[1:])
@pytest.mark.parametrize("geometry", list(OFFSETS))
def test_offsets(rng: np.random.Generator, geometry: str, address: str, normalized: bool) -> None:
    image = texels(rng, (*SHAPES[geometry], 4), np.float32)
    layered = geometry[0] == "a"
    sizes = (SHAPES[geometry][1:] if layered else SHAPES[geometry])[::-1]
    axes = [(rng.uniform(-1, 2, 48) * (1 if normalized else size)).astype(np.float32) for size in sizes]
    given = [np.ones(48, np.uint32), *axes] if layered else [*axes]
    given += [np.zeros(48, np.float32)] * (COORDINATES[geometry] - len(given))
    offsets = OFFSETS[geometry]
    texture = Texture(image, geometry, address=address, normalized=normalized, filter="linear", border=BORDER)
    tail = f", {{{', '.join(map(str, offsets))}}}"
    got = run(program(instruction(geometry, tail=tail), len(given), 4), texture, columns(*given), 4)
    mode = Mode(address, True, normalized, BORDER)
    close(got, [sample(image[1] if layered else image, at, mode, offsets) for at in zip(*axes)])
