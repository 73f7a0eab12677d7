"""The PTX of the corpus: kept compressed beside its sources, and made again by the compilers that are there.

``python tests/bench/real_code.py --compile [FAMILY ...]`` compiles again: nvcc from the path, Triton and Numba where
they can be imported.
"""

from __future__ import annotations

import functools
import importlib
import lzma
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import ptxdsl
from ptxdsl.kernel.ptx_module import PtxModule

from .case import HERE, Kernel

__all__ = ["compile_again", "module", "ptx", "shared"]

KEPT = HERE / "ptx"
NVCC = ("nvcc", "-O3", "-arch=sm_90", "-std=c++17", "-ptx")


def ptx(kernel: Kernel) -> str:
    """The PTX text that holds a kernel."""
    return _text(kernel.unit)


def shared(kernel: Kernel) -> int:
    """The dynamic shared memory that the compiler asks for: Triton's first line."""
    asked = re.match(r"// shared (\d+)", _text(kernel.unit))
    return int(asked[1]) if asked else 0


@functools.lru_cache(None)
def module(kernel_unit: str) -> PtxModule:
    """The module of a family, loaded once."""
    return ptxdsl.load(_text(kernel_unit))


@functools.lru_cache(None)
def _text(unit: str) -> str:
    return lzma.decompress((KEPT / f"{unit}.ptx.xz").read_bytes()).decode()


def keep(unit: str, text: str) -> None:
    """Keep the PTX of a family, if it is another than before."""
    place = KEPT / f"{unit}.ptx.xz"
    KEPT.mkdir(exist_ok=True)
    if not place.exists() or _text(unit) != text:
        place.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        _text.cache_clear()


def compile_again(units: Iterable[str]) -> list[str]:
    """Compile the families named, all if none is; what was compiled, a line each."""
    wanted = set(units)
    sources = [source for source in sorted(HERE.glob("*.cu")) if not wanted or source.stem in wanted]
    done = [f"{source.stem}: {_by_nvcc(source)}" for source in sources]
    others = [name for name in ("triton", "numba") if not wanted or f"with_{name}" in wanted]
    return done + [f"with_{name}: {_by_python(name)}" for name in others]


def _by_python(compiler: str) -> str:
    try:
        module = importlib.import_module(f"{__package__}.{compiler}_kernels")
    except ImportError as error:
        return f"no {compiler}: {error}"
    for name, text in module.made():
        keep(name, text)
    return compiler


def _by_nvcc(source: Path) -> str:
    if shutil.which("nvcc") is None:
        return "no nvcc"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        subprocess.run([*NVCC, "-o", str(made), str(source)], check=True)
        keep(source.stem, made.read_text())
    return " ".join(NVCC)
