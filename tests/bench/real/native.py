"""The loops in C: compiled by gcc for this machine, called with numpy's arrays."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .case import HERE, Case, Kernel

__all__ = ["FLAGS", "available", "native"]

FLAGS = "-O2 -march=native"
"""What gcc is given; contraction to fma is its default, as it is nvcc's."""
_C_TYPES = {
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
}


def available() -> bool:
    """Whether there is a C compiler."""
    return shutil.which("gcc") is not None


@functools.lru_cache(None)
def _library(unit: str, flags: str) -> ctypes.CDLL:
    source = HERE / f"{unit}.c"
    name = hashlib.sha256(source.read_bytes() + (HERE / "native.h").read_bytes()).hexdigest()[:16]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{unit}-{name}.so"
        command = ["gcc", *flags.split(), "-std=gnu11", "-shared", "-fPIC", "-o", str(made), str(source), "-lm"]
        subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C"})
        return ctypes.CDLL(str(made))


def native(kernel: Kernel, case: Case, flags: str = FLAGS) -> Callable[[], None]:
    """The same loops on the arguments of a launch."""
    function = getattr(_library(kernel.family, flags), kernel.name)
    arguments = [_argument(each) for each in (case.arguments if case.native is None else case.native)]

    def call() -> None:
        function(*arguments)

    function.restype = None
    return call


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, np.generic):
        return _C_TYPES[value.dtype.name](value.item())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int32(value)
