"""A ``libcuda.so.1`` whose functions are Python's, so that the real cuda-bindings run on a machine without a GPU.

The library is C that a compiler makes at first use: each function passes its registers on to one handler. It is loaded
before the bindings look for theirs, and the dynamic loader gives them the library of that name that is loaded already.
While no stand-in is installed, ``cuInit`` says that there is no GPU.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["connect", "missing"]

_HEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
typedef uint64_t u;
static int (*handler)(int, const u *, const float *);
void standin_handler(void *f) { handler = f; }
#define FUNCTION(name, number) \
  int name(u a, u b, u c, u d, u e, u f, float x, float y, u g, u h, u i, u j, u k) { \
    const u numbers[] = {a, b, c, d, e, f, g, h, i, j, k}; const float floats[] = {x, y}; \
    return handler ? handler(number, numbers, floats) : 100; }
int cuGetProcAddress_v2(const char *name, void **found, int version, u flags, int *status) {
  *found = strncmp(name, "cuGetProcAddress", 16) ? dlsym(RTLD_DEFAULT, name) : (void *)&cuGetProcAddress_v2;
  Dl_info info, own;
  dladdr((void *)&cuGetProcAddress_v2, &own);
  if (*found && !(dladdr(*found, &info) && info.dli_fbase == own.dli_fbase)) *found = 0;
  if (status) *status = *found ? 0 : 1;
  return *found ? 0 : 500; }
int cuGetProcAddress(const char *name, void **found, int version, u flags) {
  return cuGetProcAddress_v2(name, found, version, flags, 0); }
"""
_HANDLER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_float)
)


def missing() -> str | None:
    """What the stand-in lacks on this machine; None if it can be used."""
    if not _compiler():
        return "no C compiler to make a stand-in for libcuda"
    try:
        import cuda.bindings  # noqa: F401
    except ImportError:
        return "no cuda-bindings"
    return None


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


@functools.cache
def _library(names: tuple[str, ...]) -> ctypes.CDLL:
    source = _HEAD + "\n".join(f"FUNCTION({name}, {number})" for number, name in enumerate(names))
    folder = Path(tempfile.gettempdir()) / f"ptxdsl-standin-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"libcuda-{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        compiler = _compiler()
        assert compiler is not None
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place) / "libcuda.so"
            options = ["-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-ldl", "-o", str(made)]
            subprocess.run([compiler, *options], input=source.encode(), check=True)
            made.rename(path)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def connect(names: Sequence[str], handle: Callable[[str, Sequence[int], Sequence[float]], int]) -> None:
    """Let ``handle(name, numbers, floats)`` be what the functions of these names do; it gives the driver's result."""
    known = tuple(names)

    def handler(number: int, numbers: Sequence[int], floats: Sequence[float]) -> int:
        return handle(known[number], numbers, floats)

    library = _library(known)
    library.handler = _HANDLER(handler)  # type: ignore[attr-defined]  # kept as long as the library
    library.standin_handler(library.handler)
