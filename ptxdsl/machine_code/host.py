"""What compiled code depends on outside of this package: LLVM, and the processor.

LLVM says both, but takes long to load. So what is kept on disk is found by what tells them apart at a glance: its
library's file, and what Linux says of the processor. The folder is named without LLVM too: by llvmlite's version, the
size of the library and the same words of Linux, from which what LLVM would say follows.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..config import current

__all__ = [
    "Host", "cores", "described", "has_avx", "machine", "packs_bytes", "second_cache", "this_host", "vector_registers",
]

_NAMED = {
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",  # on x86
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",  # on Arm
}


class Host(NamedTuple):
    """``seen`` is of this installation, "" where LLVM has to be asked; ``told`` is the same in any other like it."""

    seen: str
    told: Callable[[], str]


@functools.cache
def described() -> tuple[str, str, str]:
    """The version of LLVM, this CPU and its features."""
    import llvmlite
    from llvmlite import binding

    version = f"{llvmlite.__version__} {binding.llvm_version_info}"
    return version, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def vector_registers() -> tuple[int, int]:
    """How many vector registers this CPU has, and the bytes of one."""
    features = described()[2].split(",")
    if "+avx512f" in features:
        return 32, 64
    if "+avx" in features:
        return 16, 32
    return (16, 16) if _is_x86() else (32, 16)


@functools.cache
def second_cache() -> int:
    """The bytes of a core's second cache, as Linux says; elsewhere a usual number."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 20


def has_avx() -> bool:
    """Whether this CPU has vector registers whose lower halves are those of SSE."""
    return "+avx" in described()[2].split(",")


def packs_bytes() -> bool:
    """Whether this CPU has an instruction that packs the bytes of a vector which a mask has."""
    return {"+avx512vbmi2", "+avx512vl"} <= set(described()[2].split(","))


def machine(on_x86: str = "", optimise: bool = True) -> Any:
    """What LLVM needs to know of this machine; ``on_x86`` are further features where it is one."""
    from llvmlite import binding

    _, name, features = described()
    if on_x86 and _is_x86():
        features = f"{features},{on_x86}"
    target, level = binding.Target.from_default_triple(), 2 if optimise else 0
    return target.create_target_machine(cpu=name, features=features, opt=level, jit=True)


def _is_x86() -> bool:
    from llvmlite import binding

    return bool(binding.get_default_triple().startswith("x86_64"))


def this_host() -> Host:
    """The one that this process runs on."""
    found = _seen()
    if found is None:
        return Host("", lambda: " ".join(described()))
    file, size, processor = found
    return Host(f"{file}\n{processor}", lambda: f"{_version()} {size}\n{processor}")


def cores() -> int:
    """How many threads a launch may use.

    What runs a process on each core (Dask, Ray, joblib) says by OpenMP's variable what is left for one of them.
    """
    chosen = current().emulator_threads
    if chosen is not None:
        return chosen
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shared = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(there, int(shared)) if shared.isdecimal() and int(shared) else there


def _version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


def _seen() -> tuple[str, int, str] | None:
    """The file of LLVM's library, its size, and the processor."""
    try:
        spec = importlib.util.find_spec("llvmlite")
        folder = (spec.submodule_search_locations or [])[0] if spec is not None else ""
        file = os.stat(Path(folder) / "binding" / "libllvmlite.so")
        with open("/proc/cpuinfo", "rb") as processors:
            first = processors.read(8192).decode("ascii", "replace").partition("\n\n")[0]
    except (OSError, IndexError, ValueError):
        return None
    told = [line for line in first.splitlines() if line.partition(":")[0].strip() in _NAMED]
    if not any(line.startswith(("flags", "Features")) for line in told):
        return None
    known = f"{folder} {file.st_ino} {file.st_size} {file.st_mtime_ns} {file.st_ctime_ns}"
    return known, file.st_size, "\n".join(told)
