"""Writes build/*.ptx by the compilers that are installed: nvcc, Triton, Numba. None of them needs a GPU for it.

``python compile.py nvcc triton numba`` makes all three, and fails where one is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def nvcc() -> str:
    """Compile scale.cu, with the lines of its source."""
    program = shutil.which("nvcc")
    if program is None:
        raise SystemExit("there is no nvcc in PATH")
    command = [program, "-ptx", "-lineinfo", "-arch=sm_80", "-o", "-", str(HERE / "scale.cu")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def triton() -> str:
    """Compile a kernel of Triton's for a GPU that is not there."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton_kernels import scale

    types = {"x": "*fp32", "a": "fp32", "n": "i32", "BLOCK": "constexpr"}
    made = compiled(ASTSource(scale, types, {(3,): 128}), target=GPUTarget("cuda", 80, 32))
    return str(made.asm["ptx"])


def numba() -> str:
    """Compile a function that takes a pointer."""
    from numba import cuda, types

    def scale(x, a, n):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < n:
            x[i] *= a

    signature = types.void(types.CPointer(types.float32), types.float32, types.int32)
    return str(cuda.compile_ptx(scale, signature, cc=(8, 0), lineinfo=True)[0])


if __name__ == "__main__":
    (HERE / "build").mkdir(exist_ok=True)
    for name in sys.argv[1:]:
        (HERE / "build" / f"{name}.ptx").write_text({"nvcc": nvcc, "triton": triton, "numba": numba}[name](), "utf-8")
