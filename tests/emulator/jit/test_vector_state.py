"""A launch leaves the vector registers as code of SSE's wants them, which the host's libraries have much of."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding, ir

from ptxdsl import Ptr, cluster, f32, ptx, ptx_kernel, use
from ptxdsl.emulator.codegen.library import library

PROCESSOR = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
UPPER_HALVES = 1 << 2
"""The component of the processor's state that has the upper halves of 256-bit registers."""


@functools.cache
def in_use() -> Any:
    """A function that tells which components of this thread's state are not as at first (``xgetbv`` with 1)."""

    def build(module: ir.Module) -> None:
        word = ir.IntType(32)
        function = ir.Function(module, ir.FunctionType(word, []), "in_use")
        code = ir.IRBuilder(function.append_basic_block())
        code.ret(code.asm(ir.FunctionType(word, [word]), "xgetbv", "={eax},{ecx},~{edx}", [word(1)], True))

    binding.initialize_native_asmparser()
    return ctypes.CFUNCTYPE(ctypes.c_uint32)(library().compile_once(build, ["in_use"])[0])


@ptx_kernel
def doubled(x: Ptr[f32]) -> None:
    i = ptx.ctaid.x * 64 + ptx.tid.x
    x[i] = x[i] * 2


@ptx_kernel
def doubled_by_clusters(x: Ptr[f32]) -> None:
    i = ptx.ctaid.x * 64 + ptx.tid.x
    cluster.sync()
    x[i] = x[i] * 2


@pytest.mark.skipif("xgetbv1" not in PROCESSOR, reason="the processor does not tell")
@pytest.mark.parametrize("sanitize", ["off", "all"])
@pytest.mark.parametrize("kernel", [doubled, doubled_by_clusters])
def test_no_upper_half_is_in_use(kernel: Any, sanitize: str) -> None:
    x, asked = np.ones(256, np.float32), in_use()
    groups = {"cluster": 2} if kernel is doubled_by_clusters else {}
    with use("emulator"):
        launch = kernel.configure(4, 64, sanitize=sanitize, **groups)
        for _ in range(20):
            launch(x)
            assert not asked() & UPPER_HALVES
