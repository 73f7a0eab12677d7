"""Tensor memory against numpy: loads and stores of every shape, count and packing, reductions, allocation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_memory_programs import cell, fill, kernel, launched, registers

from ptxdsl import Ptr, ptx, ptx_kernel, shared, u32, when

Rng = np.random.Generator
SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of x1."""


def _counts(shape: str, packed: bool) -> list[int]:
    return [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n * SHAPES[shape] <= 128 and n * (1 + packed) <= 256]


def _cells(shape: str, count: int, packed: bool, half: int) -> np.ndarray[Any, Any]:
    """Lane and column of each register's cell, by thread of a warp; of packed ones the first of two columns."""
    found = np.array([[cell(shape, t, r, 0) for r in range(count)] for t in range(32)])
    if packed:
        found[..., 1] *= 2
    if shape == "16x32bx2":
        found[16:, :, 1] += half
    return found


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_loads(shape: str, packed: bool, rng: Rng) -> None:
    """Of three counts, in each warp of its own quarter, from either half of it where a shape has 16 lanes."""
    body, found = [fill(512, 512)], []
    counts, at = _counts(shape, packed), 0
    for number in (counts[0], int(rng.choice(counts[1:-1])), counts[-1]):
        count, upper = number * SHAPES[shape], int(shape != "32x32b" and rng.integers(2)) * 16
        column = int(rng.integers(0, 5 if count < 128 else 1))
        half = int(rng.integers(-column, 513 - column - count * (1 + packed)))
        split = f", {half}" if shape == "16x32bx2" else ""
        form = f"tcgen05.ld.sync.aligned.{shape}.x{number}{'.pack::16b' * packed}.b32"
        body += [f"add.u32 %b, %a, {upper << 16 | column};", f"{form} {registers(count)}, [%b]{split};"]
        body += ["tcgen05.wait::ld.sync.aligned;"]
        body += [f"st.global.b32 [%at+{4 * (at + n)}], %r{n};" for n in range(count)]
        found.append((at, count, upper, column, half))
        at += count
    body.insert(1, f"mul.wide.u32 %at, %t, {4 * at}; add.u64 %at, %at, %out;")
    source = rng.integers(0, 2**32, (128, 512), np.uint32)
    out = launched(kernel("\n    ".join(body)), source, (128, at))
    for first, count, upper, column, distance in found:
        places = _cells(shape, count, packed, distance)
        for warp in range(4):
            lanes, columns = places[..., 0] + 32 * warp + upper, places[..., 1] + column
            wanted = source[lanes, columns]
            if packed:
                wanted = wanted & 0xFFFF | source[lanes, columns + 1] << 16
            np.testing.assert_array_equal(out[32 * warp : 32 * warp + 32, first : first + count], wanted)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_stores(shape: str, packed: bool, rng: Rng) -> None:
    """What they write, and what they leave: all cells are read afterwards."""
    number = int(rng.choice([1, 2, 4, 8] if shape != "16x256b" else [1, 2, 4]))
    count, upper = number * SHAPES[shape], int(shape != "32x32b" and rng.integers(2)) * 16
    width, column, half = 128, int(rng.integers(0, 2)), 60
    places = _cells(shape, count, packed, half)
    number_form = f"tcgen05.st.sync.aligned.{shape}.x{number}{'.unpack::16b' * packed}.b32"
    split = f", {half}" if shape == "16x32bx2" else ""
    body = [fill(width, width + count)]
    body += [f"ld.global.b32 %r{n}, [%at+{4 * (width + n)}];" for n in range(count)]
    body += [f"add.u32 %b, %a, {upper << 16 | column};", f"{number_form} [%b]{split}, {registers(count)};"]
    body += ["tcgen05.wait::st.sync.aligned;", f"mul.wide.u32 %at, %t, {4 * width}; add.u64 %at, %at, %out;"]
    body += [f"tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {registers(width)}, [%a];", "tcgen05.wait::ld.sync.aligned;"]
    body += [f"st.global.b32 [%at+{4 * n}], %r{n};" for n in range(width)]
    source = rng.integers(0, 2**32, (128, width + count), np.uint32)
    wanted = source[:, :width].copy()
    for warp in range(4):
        values = source[32 * warp : 32 * warp + 32, width:]
        lanes, columns = places[..., 0] + 32 * warp + upper, places[..., 1] + column
        if packed:
            wanted[lanes, columns] = wanted[lanes, columns] & 0xFFFF0000 | values & 0xFFFF
            wanted[lanes, columns + 1] = wanted[lanes, columns + 1] & 0xFFFF0000 | values >> 16
        else:
            wanted[lanes, columns] = values
    out = launched(kernel("\n    ".join(body), columns=128), source, (128, width))
    np.testing.assert_array_equal(out, wanted)


def _orders(kind: str, values: np.ndarray[Any, Any], way: str, nan: bool) -> np.ndarray[Any, Any]:
    """The least or greatest along the last axis, as min and max of PTX have it."""
    if kind == "u32":
        return (np.min if way == "min" else np.max)(values, axis=-1)
    if kind == "s32":
        return (np.min if way == "min" else np.max)(values.view(np.int32), axis=-1).view(np.uint32)
    # -0 is less than +0: compare by the bits, as whole numbers with a sign
    bits = values.view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)
    odd = np.isnan(values.view(np.float32))
    keys = np.where(odd, 2**40 if way == "min" else -(2**40), keys)
    found = (np.min if way == "min" else np.max)(keys, axis=-1)
    result = np.where(found < 0, (-(found + 1)) | 0x80000000, found).astype(np.uint32)
    none = odd.any(axis=-1) if nan else odd.all(axis=-1)
    return np.where(none, np.uint32(0x7FFFFFFF), result)


def _floats(rng: Rng, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Among them NaN, infinities, zeros of both signs, subnormals and equals."""
    special = np.array([0x7FC00001, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0, 0x80000000, 1, 0x80000001], np.uint32)
    values = rng.choice(rng.integers(0, 2**32, 40, np.uint32), shape)
    return np.where(rng.random(shape) < 0.3, rng.choice(special, shape), values).astype(np.uint32)


@pytest.mark.parametrize("kind", ["f32", "u32", "s32"])
def test_loads_with_a_reduction(kind: str, rng: Rng) -> None:
    body, found, at = [fill(64, 64)], [], 0
    for shape in ("32x32b", "16x32bx2"):
        for signs, nan in ((False, False), (True, True), (True, False), (False, True)) if kind == "f32" else ((0, 0),):
            way, count = str(rng.choice(["min", "max"])), int(rng.choice([2, 4, 8, 16]))
            half, column = int(rng.integers(0, 30)), int(rng.integers(0, 16))
            form = f"tcgen05.ld.red.sync.aligned.{shape}.x{count}.{way}{'.abs' * signs}{'.NaN' * nan}.{kind}"
            letter = "f" if kind == "f32" else "r"
            split = f", {half}" if shape == "16x32bx2" else ""
            body += [f"{form} {registers(count, 0, letter)}, %{letter}150, [%a+{column}]{split};"]
            body += ["tcgen05.wait::ld.sync.aligned;"]
            body += [f"st.global.b32 [%at+{4 * (at + n)}], %{letter}{n};" for n in range(count)]
            body += [f"st.global.b32 [%at+{4 * (at + count)}], %{letter}150;"]
            found.append((shape, count, way, signs, nan, half, column, at))
            at += count + 1
    body.insert(1, f"mul.wide.u32 %at, %t, {4 * at}; add.u64 %at, %at, %out;")
    source = _floats(rng, (128, 64))
    out = launched(kernel("\n    ".join(body), columns=64), source, (128, at))
    for shape, count, way, signs, nan, half, column, first in found:
        places = _cells(shape, count, False, half)
        for warp in range(4):
            rows = slice(32 * warp, 32 * warp + 32)
            loaded = source[places[..., 0] + 32 * warp, places[..., 1] + column]
            np.testing.assert_array_equal(out[rows, first : first + count], loaded)
            values = loaded & 0x7FFFFFFF if signs else loaded
            np.testing.assert_array_equal(out[rows, first + count], _orders(kind, values, way, nan))


@pytest.mark.parametrize("number", [4, 32, 128])
@pytest.mark.parametrize("reduced", [False, True])
def test_compressed_loads(number: int, reduced: bool, rng: Rng) -> None:
    """Of each four the two that are greatest or least, with their indices."""
    way, signs, nan = str(rng.choice(["min", "max"])), bool(rng.integers(2)), reduced and bool(rng.integers(2))
    words = max(1, number // 32)
    form = f"tcgen05.ld{'.red' * reduced}.spcompress.sync.aligned.32x32b.x{number}.{way}.sp::2:4{'.abs' * signs}"
    results = f"{registers(words)}, {registers(number // 2, words)}{', %f0' * reduced}"
    count = words + number // 2
    body = [fill(number, number), f"mul.wide.u32 %at, %t, {4 * count + 4}; add.u64 %at, %at, %out;"]
    body += [f"{form}{'.NaN' * nan}.f32.b2 {results}, [%a];", "tcgen05.wait::ld.sync.aligned;"]
    body += [f"st.global.b32 [%at+{4 * n}], %r{n};" for n in range(count)]
    body += [f"st.global.b32 [%at+{4 * count}], %f0;"] * reduced
    source = _floats(rng, (128, number))
    made = kernel("\n    ".join(body), columns=max(32, number), target="sm_107a", version="9.4")
    out = launched(made, source, (128, count + 1))
    for lane in range(128):
        kept, bits = [], 0
        for first in range(0, number, 4):
            four = source[lane, first : first + 4]
            order = sorted(range(4), key=lambda at: (_rank(int(four[at]), way == "min", signs), at))
            chosen = sorted(order[:2])
            bits |= sum(at << 2 * (len(kept) + n) for n, at in enumerate(chosen))
            kept += [int(four[at]) for at in chosen]
        assert [int(word) for word in out[lane, :words]] == [bits >> 32 * n & 0xFFFFFFFF for n in range(words)]
        assert out[lane, words:count].tolist() == kept
    if reduced:
        values = source & 0x7FFFFFFF if signs else source
        np.testing.assert_array_equal(out[:, count], _orders("f32", values, way, nan))


def _rank(code: int, least: bool, signs: bool) -> float:
    """The lower, the sooner it is kept."""
    magnitude = code & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return -(2.0**40)
    value = -magnitude - 1 if code >> 31 and not signs else magnitude
    return value if least else -value


@ptx_kernel
def through(x: Ptr[u32], y: Ptr[u32]):
    """Two columns a thread go through tensor memory, and come back the other way round."""
    home, t = shared(u32, 1), ptx.tid.x
    with when(t < 32):
        ptx.tcgen05.alloc.cta_group__1.sync.aligned.shared__cta.b32(home, 32)
    ptx.bar.sync(0)
    base = home[0]
    place = base + ((t >> 5) << 21)
    ptx["tcgen05.st.sync.aligned.32x32b.x2.b32"](place, (x[2 * t], x[2 * t + 1]))
    ptx.tcgen05.wait__st.sync.aligned()
    a, b = ptx["tcgen05.ld.sync.aligned.32x32b.x2.b32"](place)
    ptx.tcgen05.wait__ld.sync.aligned()
    y[2 * t], y[2 * t + 1] = b.bits(u32), a.bits(u32)
    ptx.bar.sync(0)
    with when(t < 32):
        ptx.tcgen05.dealloc.cta_group__1.sync.aligned.b32(base, 32)


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_from_the_language(sanitize: str | None, rng: Rng) -> None:
    x, y = rng.integers(0, 2**32, (128, 2), np.uint32), np.zeros((128, 2), np.uint32)
    through.configure(1, 128, sanitize=sanitize)(x, y)
    np.testing.assert_array_equal(y, x[:, ::-1])


@pytest.mark.ptxas
def test_it_assembles() -> None:
    assert through.cubin(arch="sm_100a")[:4] == b"\x7fELF"
