"""Surfaces on the emulator: every geometry, size, vector and mode against numpy; what a texture tells of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from texture_harness import columns, program, run, vector

from ptxdsl import MemoryFault, Surface, Texture

SHAPES = {"1d": (9,), "2d": (5, 9), "3d": (3, 5, 9), "a1d": (3, 9), "a2d": (3, 5, 9)}
COUNTS = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4}


def places(rng: np.random.Generator, geometry: str, count: int, beyond: bool) -> list[np.ndarray]:
    """Coordinates in elements, the innermost axis first; with some beyond each edge."""
    found = [rng.integers(-2 if beyond else 0, n + 2 * beyond, count).astype(np.int32) for n in SHAPES[geometry][::-1]]
    if beyond:
        found[0][:2] = -(2**31), 2**31 - 1
    if geometry[0] == "a":
        found[-1] = np.abs(found[-1])  # a layer has no sign
    return found


def ordered(geometry: str, axes: list[np.ndarray], scale: int) -> list[np.ndarray]:
    """The operands: a layer first, x in bytes where it is scaled."""
    with np.errstate(over="ignore"):
        first = (axes[0].astype(np.int64) * scale).clip(-(2**31), 2**31 - scale).astype(np.int32)
    along = [first, *axes[1:]]
    if geometry[0] == "a":
        along = [along[-1], *along[:-1]]
    return along + [np.zeros_like(first)] * (COUNTS[geometry] - len(along))


def texel(shape: tuple[int, ...], axes: list[np.ndarray], lane: int, mode: str) -> tuple[int, ...] | None:
    """The index that is meant, None for none."""
    index = tuple(int(axis[lane]) for axis in axes[::-1])
    if mode == "clamp":
        return tuple(min(max(i, 0), n - 1) for i, n in zip(index, shape))
    return index if all(0 <= i < n for i, n in zip(index, shape)) else None


ACCESSES = [(8, 1), (16, 1), (32, 1), (64, 1), (8, 2), (8, 4), (16, 2), (16, 4), (32, 2), (32, 4), (64, 2)]
FORMATS = {8: ("uint8", 1), 16: ("uint8", 2), 32: ("uint16", 2), 64: ("uint16", 4), 128: ("uint32", 4)}


@pytest.mark.parametrize("mode", ["trap", "clamp", "zero"])
@pytest.mark.parametrize("geometry", list(SHAPES))
def test_loads_and_stores(rng: np.random.Generator, geometry: str, mode: str) -> None:
    for bits, count in rng.permutation(ACCESSES)[:3].tolist():  # each is compiled anew
        dtype, channels = FORMATS[bits * count]
        image = rng.integers(0, 256, (*SHAPES[geometry], bits * count // 8), np.uint8)
        before, lanes = image.copy(), 70
        axes = places(rng, geometry, lanes, mode != "trap")
        given = ordered(geometry, axes, bits * count // 8)
        at = vector("c", 0, len(given))
        name = f"{geometry}{'.v' + str(count) if count > 1 else ''}.b{bits}.{mode}"
        values = vector("d", 0, count) if count > 1 else "%d0"
        wide = max(bits, 16)
        surface = Surface(image.view(dtype).reshape(*SHAPES[geometry], channels), geometry)
        got = run(program(f"suld.b.{name} {values}, [%h0, {at}];", len(given), count, bits=wide), surface,
                  columns(*given), count, f"u{wide // 8}")
        plain = image.view(f"u{bits // 8}")
        for lane in range(lanes):
            index = texel(SHAPES[geometry], axes, lane, mode)
            assert got[lane].tolist() == (plain[index].tolist() if index is not None else [0] * count)
        stored = f"mov.b{wide} %d0, {{low}};".format(low=7)
        more = "".join(f"mov.b{wide} %d{n}, {7 + n};\n" for n in range(count))
        run(program(f"{stored}{more}sust.b.{name} [%h0, {at}], {values};", len(given), count, bits=wide), surface,
            columns(*given), count, f"u{wide // 8}")
        wanted = before.view(f"u{bits // 8}").copy()
        for lane in range(lanes):
            index = texel(SHAPES[geometry], axes, lane, mode)
            if index is not None:
                wanted[index] = [7 + n for n in range(count)]
        np.testing.assert_array_equal(plain, wanted)


def converted(value: int, dtype: str) -> Any:
    """A number of 32 bits as a surface's format has it."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return np.uint32(value).view(np.float32).astype(kind)
    number = value - (1 << 32) if kind.kind == "i" and value >> 31 else value
    return min(max(number, np.iinfo(kind).min), np.iinfo(kind).max)


@pytest.mark.parametrize("vec", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"])
def test_formatted_stores(rng: np.random.Generator, dtype: str, vec: int) -> None:
    for channels in (1, 2, 4):
        image = np.zeros((5, 9, channels), dtype)
        cells = rng.permutation(45)[:40]
        x, y = (cells % 9).astype(np.int32), (cells // 9).astype(np.int32)
        values = [rng.integers(0, 2**32, 40, np.uint32) for _ in range(vec)]
        if np.dtype(dtype).kind == "f":
            values = [rng.normal(0, 1000, 40).astype(np.float32).view(np.uint32) for _ in range(vec)]
        elif np.dtype(dtype).itemsize < 4:
            values = [v >> rng.integers(0, 32, 40).astype(np.uint32) for v in values]
        name = f"sust.p.2d{'.v' + str(vec) if vec > 1 else ''}.b32.trap"
        text = f"{name} [%h0, {{%c0, %c1}}], {vector('c', 2, vec) if vec > 1 else '%c2'};"
        run(program(text, 2 + vec, 0), Surface(image, "2d"), columns(x, y, *values), 0)
        for lane in range(40):
            for channel in range(min(vec, channels)):
                wanted = converted(int(values[channel][lane]), dtype)
                np.testing.assert_array_equal(image[y[lane], x[lane], channel], wanted)


REDUCTIONS = [
    ("b", "add", "u32"), ("b", "add", "s32"), ("b", "add", "u64"), ("b", "min", "u32"), ("b", "min", "s32"),
    ("b", "max", "u32"), ("b", "max", "s32"), ("b", "and", "b32"), ("b", "or", "b32"), ("b", "min", "u64"),
    ("b", "max", "s64"), ("p", "add", "b32"), ("p", "min", "b32"), ("p", "max", "b32"), ("p", "and", "b32"),
    ("p", "or", "b32"), ("p", "min", "b64"), ("p", "max", "b64"),
]


@pytest.mark.parametrize("mode", ["trap", "clamp", "zero"])
@pytest.mark.parametrize(("letter", "op", "kind"), REDUCTIONS)
def test_reductions(rng: np.random.Generator, letter: str, op: str, kind: str, mode: str) -> None:
    bits, geometry = int(kind[1:]), str(rng.choice(["1d", "2d", "3d"]))
    signed = kind[0] == "s" or (letter == "p" and bool(rng.integers(2)))
    dtype = f"{'' if signed else 'u'}int{bits}"
    image = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, SHAPES[geometry], dtype)
    wanted, lanes = image.copy(), 90
    axes = places(rng, geometry, lanes, mode != "trap")
    given = ordered(geometry, axes, bits // 8 if letter == "b" else 1)
    values = rng.integers(0, 2**32, (bits // 32, lanes), np.uint32)
    count = len(given)
    value = f"%c{count}" if bits == 32 else "%w"
    made = "" if bits == 32 else f"mov.b64 %w, {{%c{count}, %c{count + 1}}};\n"
    text = f"{made}sured.{letter}.{op}.{geometry}.{kind}.{mode} [%h0, {vector('c', 0, count)}], {value};"
    shape = SHAPES[geometry] if bits == 32 else (*SHAPES[geometry], 2)
    surface = Surface(image.view(f"{'' if signed else 'u'}int32").reshape(shape), geometry)
    run(program(text, count + bits // 32, 0), surface, columns(*given, *values), 0)
    numbers = np.ascontiguousarray(values.T).view(f"u{bits // 8}")[:, 0].view(dtype)
    work = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}[op]
    for lane in range(lanes):
        index = texel(SHAPES[geometry], axes, lane, mode)
        if index is not None:
            with np.errstate(over="ignore"):
                wanted[index] = work(wanted[index], numbers[lane])
    np.testing.assert_array_equal(image, wanted)


def test_clamping_to_an_edge_that_is_not_aligned() -> None:
    """Three bytes a row hold no second halfword: the nearest one begins at byte 0."""
    image = np.arange(3, dtype=np.uint8)[None].copy()
    got = run(program("suld.b.2d.b16.clamp %d0, [%h0, {%c0, %c1}];", 2, 1, bits=16), Surface(image),
              columns(np.int32([0, 2, 8, -2]), np.int32([0, 0, 5, -5])), 1, np.uint16)
    assert got[:, 0].tolist() == [0x100] * 4


ASKED = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size")


def ask(instruction: str, image: Any) -> list[int]:
    names = instruction.split()
    text = "\n".join(f"{name}.b32 %d{n}, [%h0];" for n, name in enumerate(names))
    return run(program(text, 1, len(names)), image, columns(np.uint32([0])), len(names), np.uint32)[0].tolist()


def test_what_textures_and_surfaces_tell() -> None:
    image = np.zeros((3, 5, 7, 2), np.int16)
    queries = " ".join(f"txq.{name}" for name in ASKED)
    assert ask(queries, Texture(image, "3d")) == [7, 5, 3, 0x10D8, 0x10B2, 1]
    assert ask(queries, Texture(image, "3d", read="normalized")) == [7, 5, 3, 0x10D1, 0x10B2, 1]
    assert ask(queries, Texture(image, "a2d")) == [7, 5, 1, 0x10D8, 0x10B2, 3]
    assert ask(queries.replace("txq", "suq"), Surface(image, "a2d")) == [7, 5, 1, 0x10D8, 0x10B2, 3]
    assert ask("suq.memory_layout", Surface(image, "3d")) == [0]
    types = {"uint8": 0x10DA, "int8": 0x10D7, "uint16": 0x10DB, "uint32": 0x10DC, "int32": 0x10D9, "float16": 0x10DD,
             "float32": 0x10DE}
    for dtype, number in types.items():
        assert ask("txq.channel_data_type", Texture(np.zeros((2, 2), dtype))) == [number]
    modes = "txq.normalized_coords txq.filter_mode txq.addr_mode_0 txq.addr_mode_1 txq.addr_mode_2"
    modes += " txq.num_mipmap_levels"
    levels = [np.zeros((n, n), np.float32) for n in (4, 2, 1)]
    texture = Texture(levels, "2d", address=("wrap", "border", "mirror"), filter="linear", normalized=True)
    assert ask(modes, texture) == [1, 1, 0, 4, 1, 3]
    assert ask(modes, Texture(levels[0])) == [0, 0, 3, 3, 3, 1]
    text = "mov.b32 %c0, 1;\ntxq.level.width.b32 %d0, [%h0], %c0;\ntxq.level.height.b32 %d1, [%h0], 2;"
    assert run(program(text, 1, 2), texture, columns(np.uint32([0])), 2, np.uint32).tolist() == [[2, 1]]
    assert ask("txq.num_samples", Texture(np.zeros((3, 3, 4), np.float32), "2dms")) == [4]


def test_what_a_handle_stands_for() -> None:
    kinds = ("texref", "samplerref", "surfref")
    text = "\n".join(f"istypep.{kind} %p1, %h0;\nselp.b32 %d{n}, 1, 0, %p1;" for n, kind in enumerate(kinds))
    at, image = columns(np.uint32([0, 0])), np.zeros((2, 2), np.float32)
    text = program(text, 1, 3)
    assert run(text, Texture(image), at, 3, np.uint32).tolist() == [[1, 0, 0]] * 2
    assert run(text, Surface(image), at, 3, np.uint32).tolist() == [[0, 0, 1]] * 2
    for number in (0, 8, 2**64 - 1, Texture(image).emulated + 4):
        assert run(text, number, at, 3, np.uint32).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize(("instruction", "x", "y", "message"), [
    ("suld.b.2d.b32.trap %d0, [%h0, {%c0, %c1}];", 12, 0,
     "load from surface `h0` at byte 12, y = 0: h0 is a 2d surface of int32[2, 3], 12 bytes wide"),
    ("sust.b.2d.b32.trap [%h0, {%c0, %c1}], %c1;", 0, -1,
     "store to surface `h0` at byte 0, y = -1: h0 is a 2d surface of int32[2, 3], 12 bytes wide"),
    ("sust.p.2d.b32.trap [%h0, {%c0, %c1}], %c1;", 3, 1,
     "store to surface `h0` at x = 3, y = 1: h0 is a 2d surface of int32[2, 3]"),
    ("sured.b.add.2d.s32.trap [%h0, {%c0, %c1}], %c1;", 4, 2,
     "reduction in surface `h0` at byte 4, y = 2: h0 is a 2d surface of int32[2, 3], 12 bytes wide"),
    ("suld.b.2d.b32.zero %d0, [%h0, {%c0, %c1}];", 6, 1,
     "load from surface `h0` at byte 6, y = 1: 4 bytes must be aligned to 4 bytes"),
])
def test_faults(instruction: str, x: int, y: int, message: str) -> None:
    surface = Surface(np.zeros((2, 3), np.int32))
    at = columns(np.int32([0, 0, x, 0]), np.int32([0, 1, y, 1]))
    with pytest.raises(MemoryFault) as caught:
        run(program(instruction, 2, 1), surface, at, 1)
    assert caught.value.message == message
    assert caught.value.thread == (2, 0, 0)
    assert instruction.rstrip(";") in str(caught.value).replace("{%c0,%c1}", "{%c0, %c1}")
    assert "the first coordinate counts bytes" in str(caught.value) or ".p." in instruction or y < 0 or y > 1


def test_one_number_in_braces() -> None:
    """As nvcc writes it: braces also around one coordinate and one value, bytes in registers of 16 bits."""
    text = "mov.b16 %d0, 0x1ff;\nsust.b.3d.b8.clamp [%h0, {%c0, %c1, %c1, %c1}], {%d0};\n"
    text += "suld.b.1d.b16.trap {%d0}, [%h1, {%c0}];\nmov.b64 %w, 0x123456789abcdef0;\n"
    text += "sust.b.1d.b64.trap [%h1, {%c1}], {%w};"
    solid, line = np.zeros((2, 2, 3), np.uint8), np.arange(4, dtype=np.uint32) + 0x50000
    given = [Surface(solid, "3d"), Surface(line)]
    got = run(program(text, 2, 1, bits=16, handles=2), given, columns(np.int32([6]), np.int32([0])), 1, np.uint16)
    assert solid.ravel().tolist() == [0, 0, 0xFF] + [0] * 9
    assert got.tolist() == [[5]]
    assert line.view(np.uint64).tolist() == [0x123456789ABCDEF0, 0x5000300050002]
