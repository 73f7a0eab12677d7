"""numpy's numbers are Python's: each line gives the same PTX with both, and is refused where they do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Ptr, PtxError, ptx_kernel, u32

POINTERS = "x: Ptr[f32], p: Ptr[u32], a: Array[u32, 2], d: Ptr[f64], q: Ptr[s64], b: Ptr[u8]"
LINES = """
n + {i};{i} + n;n - {i};{i} - n;n * {i};{i} * n;n // {i};n % {i};n << {i};{i} << n;n >> {i};n & {i};{i} & n
n | {i};n ^ {i}
n < {i};{i} < n;n == {i};{i} == n;n != {i};{i} <= n;{i} > n;f + {f};{f} + f;{f} / f;f / {f};f * {f};f > {f}
{f} < f;{f} == f;f + {i};b[0] == {i};{i} < b[0];{i} >= b[0]
reg(u32, {i});reg(f32, {f});reg(u32, 0).set({i});x[{i}];a[{i}, {i}];a[n, {i}]
x.load({i}, width={four});x.store({i}, ({f}, {f}));x + {i};{i} + x;x - {i};a.at({i}, n);x.at({i});shared(f32, {i}, {i})
local(f32, {i});dynamic_shared(f32, {i});dynamic_shared(f32, offset={four});shared(f32, 4, align={four})
const([{i}, {i}], u32);const([{f}], f32);loop({i});loop({i}, n, {i});loop(0, {i}, 1);select(n < 3, {i}, n)
select(n < 3, f, {f});minimum(n, {i});maximum({f}, f);cdiv(n, {i});ptx.add.u32(n, {i});ptx.fma.rn.f32(f, {f}, {f})
ptx.bar.sync({i});ptx.shfl.sync.bfly.b32(n, {i}, 31, {i});ptx.mov.u32({i});printf("%d", {i});printf("%f", {f})
d[0] + {f};h + {f};h * {f};check(n < {i});ptx.ld.global_.v4.f32(x + {i});q[0] + {i};n.to(f32) * {f}
"""
RIGHT = [line for part in LINES.strip().splitlines() for line in part.split(";")]
WRONG = {
    "n + np.int64(-1)": "-1 does not fit in u32", "n + np.int64(2**32)": "4294967296 does not fit in u32",
    "n + np.float32(0.5)": "the float 0.5 is no u32", "f + np.int64(2**24 + 1)": "exactly",
    "h + np.int32(2049)": "exactly", "n == np.int64(-1)": "-1 does not fit in u32",
    "np.int64(300) < b[0]": "300 does not fit in u8", "n + np.bool_(True)": "True is no number of type u32",
    "reg(u32, np.int64(-1))": "-1 does not fit in u32", "x[np.float32(1)]": "indexed by integers",
    "x[np.bool_(True)]": "indexed by integers", "p.store(0, np.int64(-1))": "-1 does not fit in u32",
    "shared(f32, np.int64(-3))": "positive int", "shared(f32, np.float64(3))": "positive int",
    "shared(f32, 4, align=np.int64(3))": "power of two", "n << np.int64(-1)": "does not fit in u32",
    "ptx.add.u32(n, np.int64(-1))": "does not fit in u32", "h + np.float64(1e6)": "does not fit in f16",
    "n + np.array([3])": "ndarray", "n + np.complex64(1)": "no number", "f + np.longdouble(0.5)": "no number",
    "dynamic_shared(f32, offset=np.int64(3))": "multiple of 4", "s[np.int64(4)]": "out of range",
    "s.at(np.int64(-1))": "out of range", "ptx.bar.sync(np.int64(16))": "from 0 to 15",
}


def traced(line: str) -> str:
    names: dict[str, Any] = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np}
    body = f"with {line}: p[0] = 1" if line.startswith("loop") else f"v = {line}"
    exec(f"@ptx_kernel\ndef k({POINTERS}, n: u32, f: f32, h: f16):\n    s = shared(u32, 4)\n    {body}", names)
    text: str = names["k"].ptx()
    return text


@pytest.mark.parametrize("line", RIGHT)
def test_same_instructions(line: str) -> None:
    wanted = traced(line.format(i="3", f="0.5", four="4"))
    for whole, real in (("int64", "float32"), ("uint8", "float64"), ("int32", "float16")):
        found = line.format(i=f"np.{whole}(3)", f=f"np.{real}(0.5)", four=f"np.{whole}(4)")
        assert traced(found) == wanted


@pytest.mark.parametrize("line", WRONG)
def test_refused(line: str) -> None:
    with pytest.raises(PtxError) as caught:
        traced(line)
    assert WRONG[line] in str(caught.value)


def test_directives_shapes_and_geometry() -> None:
    @ptx_kernel(maxntid=np.int64(64), minnctapersm=np.uint8(2))
    def k(x: Ptr[u32]):
        x[0] = np.uint32(7)

    assert ".maxntid 64" in k.ptx()
    x = ptxdsl.zeros(np.int64(3), u32, backend="emulator")
    k.configure(np.int64(1), (np.uint8(1), np.int32(1)), backend="emulator", seed=np.int64(3))(x)
    assert x.shape == (3,) and x.numpy()[0] == 7
