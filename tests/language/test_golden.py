"""Golden PTX: what the language becomes, to the letter, in ``tests/golden``; and NVIDIA's assembler takes each of them.

A change of tracer or printer shows here as a difference to read. Where it is meant,
``python -m pytest tests/test_golden.py --update-golden`` writes the files anew. Lines are counted from the kernel's
``def``, so that moving a kernel changes nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import (
    Array, Kernel, Ptr, break_if, const, continue_if, dynamic_shared, f16, f32, f64, global_, label, local, loop,
    otherwise, printf, ptx, ptx_func, ptx_kernel, reg, s32, select, shared, u8, u32, u64, when,
)
from ptxdsl import block, warp
from ptxdsl.gpu import tools
from ptxdsl.text import parse, to_text

GOLDEN = Path(__file__).parent.parent / "golden"


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def branches(n: s32, x: Ptr[s32]) -> None:
    i = ptx.tid.x
    v = x[i]
    with when((v < n) & ~(v == 3)):
        x[i] = -v
    with otherwise():
        with when(v > 7):
            x[i] = select(v > 9, v, 9)
    ptx.ret(pred=v == 0)
    x[i + 32] = v


@ptx_kernel
def loops(n: u32, x: Ptr[f32], out: Ptr[f32]) -> None:
    total = reg(f32, 0.0)
    with loop(ptx.tid.x, n, 32) as i:
        total += x[i]
    count = reg(u32, 0)
    with loop():
        break_if(count >= n)
        count += 1
        continue_if(count == 3)
        total.set(total * 0.5)
    for step in range(2):  # unrolls
        total += float(step)
    top = label()
    count -= 1
    ptx.bra(top, pred=count > 0)
    out[0] = total


@ptx_kernel(maxntid=128, minnctapersm=2)
def memory(a: Array[f32, 2], b: Array[f32, None, 64], bytes_: Ptr[u8]) -> None:
    i = ptx.tid.x
    tile, own, table = shared(f32, 16, 17), local(f32, 4), const(np.arange(4, dtype=np.float32))
    spare = dynamic_shared(u32)
    tile[i & 15, 3] = a[i, 1]
    ptx.bar.sync(0)
    own[i & 3] = tile[i & 15, 0] + table[i & 3]
    spare[i] = bytes_[i].to(u32)
    b[i, 5] = own[0]


@ptx_kernel
def vectors(x: Ptr[f32], y: Ptr[f16], z: Ptr[f64]) -> None:
    i = ptx.tid.x * 4
    a, b, c, d = x.load(i, width=4)
    x.store(i, [d, c, b, a])
    halves = y.load(i, width=2)
    y[i] = halves[0] + halves[1]
    z[0] = z[0] * 3.0


@ptx_kernel
def instructions(x: Ptr[u32], y: Ptr[u64]) -> None:
    v = ptx.ld.global_.nc.u32(x)
    w = ptx["shfl.sync.bfly.b32"](v, 16, 31, 0xFFFFFFFF)
    sum_ = reg(u32, 0)
    ptx.add.u32(v, w, out=sum_)
    ptx.add.u32(sum_, 1, out=sum_, pred=v < w)
    ptx.atom.global_.add.u32(x + 3, sum_)
    ptx.red.global_.max.u32(x, v)
    y[1] = ptx.mad.wide.u32(v, w, y[0])
    ptx.fence.acq_rel.gpu()
    x[2] = v.to(f32).bits(u32) ^ 0xFF


@ptx_func
def square(v: f32) -> f32:
    return v * v


@ptx_kernel
def calls(x: Ptr[f32]) -> None:
    i = ptx.tid.x
    x[i] = square(x[i])
    printf("%u %f\n", i, x[i])


@ptx_kernel
def helpers(x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.tid.x
    y[i] = block.reduce_sum(x[i], threads=64) + warp.reduce_max(x[i])


@ptx_func(noreturn=True)
def stop(n: u32):
    """It is called where the kernel cannot go on."""
    ptx.trap()


@ptx_func(linkage="weak")
def half(v: f32) -> f32:
    return v * 0.5


@ptx_kernel
def directives(x: Ptr[f32], n: u32) -> None:
    with when(n > 32):
        stop(n)
    seen = global_(f32, 32, linkage="visible")
    with loop(n) as i:
        ptx.pragma("nounroll")
        seen[i] = half(x[i])


KERNELS = {k.entry: k for k in (saxpy, branches, loops, memory, vectors, instructions, calls, helpers, directives)}


def normal(kernel: Kernel) -> str:
    """The PTX with this file called by its name alone, and lines counted from the kernel's ``def``.

    Lines of the library are not told, and the number of a label that a line gives goes with it.
    """
    text = kernel.ptx().replace(__file__, "test_golden.py")
    first = kernel.function.__code__.co_firstlineno
    text = re.sub(r'^\.file.*(?<!test_golden\.py")\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"^    \.loc 1 (\d+) ", lambda m: f"    .loc 1 {int(m[1]) - first} ", text, flags=re.MULTILINE)
    text = re.sub(r"^    \.loc [^1].*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"(\$[a-z]+_)(\d+)", lambda m: f"{m[1]}{int(m[2]) - first}", text)


@pytest.mark.parametrize("name", KERNELS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    path, text = GOLDEN / f"{name}.ptx", normal(KERNELS[name])
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; --update-golden writes it anew"


def test_no_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_reads_back(name: str) -> None:
    module = KERNELS[name].ir()
    assert parse(to_text(module)) == module


@pytest.mark.ptxas
@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", KERNELS)
def test_assembles(name: str, arch: str) -> None:
    assert KERNELS[name].cubin(arch=arch).startswith(b"\x7fELF")
