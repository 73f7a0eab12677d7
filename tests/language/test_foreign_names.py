"""Names of CUDA C++, Numba and Triton: each is an error at its line that says how it is written here.

Every spelling of the table is traced as it stands in the hint.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import UnknownInstruction
from ptxdsl.language.foreign_names import CUDA, NUMBA, TRITON, hint_of_line, spelling

NAMES = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np}
numbers = count()


def kernel(body: str) -> Callable[[], str]:
    """What traces a kernel whose body is this text."""
    file = f"<foreign {next(numbers)}>"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    element = "u32" if ".u32(x.at(" in body else "f32"
    source = f"@ptx_kernel\ndef k(x: Ptr[{element}], n: u32, v: u32, w: u32, f: f32, g: f32, h: f32):\n{lines}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = dict(NAMES)
    exec(compile(source, file, "exec"), names)
    return lambda: names["k"].ptx()


def refused(body: str) -> str:
    with pytest.raises((UnknownInstruction, ImportError)) as caught:
        kernel(body)()
    return str(caught.value)


SPELLINGS = {
    **CUDA, **{f"cuda.{name}": text for name, text in NUMBA.items()},
    **{f"tl.{name}": text for name, text in TRITON.items()},
}
BLOCKS = re.compile(r"`(with .*?|@.*?)`")


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_spelling_can_be_pasted(name: str) -> None:
    found = re.findall(r"`([^`]*)`", SPELLINGS[name])
    snippets = [snippet for snippet in found if not snippet.startswith((".", "*", "@", "with", "range"))]
    before = "import ptxdsl\ni, p, tile, values = ptx.tid.x, v < w, shared(f32, 4), [1, 2]\n"
    host = "to_device" in name or "cudaM" in name or "device_array" in name
    for snippet in snippets:
        if host:
            eval(snippet, {**NAMES, "ptxdsl": ptxdsl, "values": [1, 2]})
        elif snippet != "ptx.mma":
            kept = "" if " = " in snippet or "with " in snippet else "_ = "  # a statement that only computes is refused
            kernel(before + kept + snippet)()
    for block in BLOCKS.findall(SPELLINGS[name]):
        if block.startswith("with"):
            kernel(f"{before}{block}\n    x[0] = f")()


WRONG = {
    "ptx.syncthreads()": "CUDA's syncthreads is `ptx.bar.sync(0)`",
    "ptx.__syncthreads()": "CUDA's __syncthreads is `ptx.bar.sync(0)`",
    "__syncthreads()": "CUDA's __syncthreads is `ptx.bar.sync(0)`",
    "i = threadIdx.x": "CUDA's threadIdx is `ptx.tid`",
    "i = ptx.blockIdx.x": "CUDA's blockIdx is `ptx.ctaid`",
    "x[0] = expf(x[0])": "CUDA's expf is `ptxdsl.math.exp(f)`",
    "x[0] = __expf(x[0])": "CUDA's __expf is `ptxdsl.math.exp_approx(f)`",
    "x[0] = rsqrtf(x[0])": "CUDA's rsqrtf is `ptxdsl.math.rsqrt(f)`",
    "x[0] = fmaf(f, g, h)": "CUDA's fmaf is `ptx.fma.rn.f32(f, g, h)`",
    "ptx.atomicAdd(x, 1.0)": "CUDA's atomicAdd is `ptx.atom.global_.add.u32(x.at(i), v)`, with `.f32` for floats",
    "import ptxdsl\nptxdsl.atomicAdd(x, 1)": "CUDA's atomicAdd is",
    "v = __shfl_down_sync(0xFFFFFFFF, v, 16)": "is `ptx.shfl.sync.down.b32(v, 16, 31, 0xFFFFFFFF)`",
    "from ptxdsl import threadIdx": "CUDA's threadIdx is `ptx.tid`",
    "from ptxdsl import printff": "CUDA's printff is `printf",
    "v = __popc(v)": "CUDA's __popc is `ptx.popc.b32(v)`",
    "v = __ldg(x)": "CUDA's __ldg is `ptx.ld.global_.nc.f32(x.at(i))`, with the type of the element",
    "h = half2(1, 2)": "CUDA's half2 is `f16x2`",
    "w = warpSize": "CUDA's warpSize is `32`",
    "i = cuda.threadIdx.x": "cuda.threadIdx is `ptx.tid`",
    "cuda.syncthreads()": "cuda.syncthreads is `ptx.bar.sync(0)`",
    "i = cuda.grid(1)": "cuda.grid is `ptx.ctaid.x * ptx.ntid.x + ptx.tid.x`, for one dimension",
    "s = cuda.shared.array(32, f32)": "cuda.shared.array is `shared(f32, 256)`",
    "cuda.atomic.add(x, 0, 1)": "cuda.atomic.add is `ptx.atom.global_.add.u32(x.at(i), v)`",
    "v = tl.load(x)": "tl.load is `x[i]`, in `with when(i < n):` for the mask",
    "i = tl.program_id(0)": "tl.program_id is `ptx.ctaid.x`",
    "i = triton.language.program_id(0)": "tl.program_id is `ptx.ctaid.x`",
}


@pytest.mark.parametrize("body", WRONG)
def test_hint(body: str) -> None:
    said = refused(body)
    assert WRONG[body] in said
    assert body.splitlines()[-1] in said, "the line"


def test_words() -> None:
    assert re.sub(r"<foreign \d+>", "<f>", refused("syncthreads()")) == (
        "name 'syncthreads' is not defined\n  at <f>:3: syncthreads()\n"
        "  hint: CUDA's syncthreads is `ptx.bar.sync(0)`"
    )
    with pytest.raises(UnknownInstruction, match="module 'ptxdsl' has no attribute 'blockDim'\n.*\n.*`ptx.ntid`"):
        _ = ptxdsl.blockDim
    assert not hasattr(ptxdsl, "atomicAdd")
    with pytest.raises(ImportError, match="'i32' from 'ptxdsl'\n  at .*\n  hint: i32 is `s32`"):
        exec("from ptxdsl import i32")


def test_modules_of_others_that_are_there() -> None:
    """Numba's and Triton's own errors say nothing of ptxdsl."""
    class Stub:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"no {name} here")

        def __mul__(self, other: object) -> Any:
            return NotImplemented

    NAMES["cuda"] = NAMES["tl"] = Stub()
    try:
        assert "cuda.blockIdx is `ptx.ctaid`" in refused("i = cuda.blockIdx.x * 2")
        assert "tl.store is" in refused("tl.store(x, f)")
    finally:
        del NAMES["cuda"], NAMES["tl"]


@pytest.mark.parametrize("body", ["v = nothing_of_that_kind", "v = load(x)", "nothing(threadIdx)"])
def test_other_errors_stay_pythons(body: str) -> None:
    """A name that is not the missing one gives no hint."""
    with pytest.raises(Exception) as caught:
        kernel(body)()
    assert "CUDA" not in str(caught.value)


def test_functions_of_c_are_in_the_library() -> None:
    for name, text in CUDA.items():
        if "ptxdsl.math." in text:
            assert name in ptxdsl.math.__all__
    assert spelling("__powf") == "`ptxdsl.math.pow_approx(f, g)`"
    assert hint_of_line("y = x.load(0)") is None
