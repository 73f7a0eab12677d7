"""A ``libcuda.so.1`` that does nothing, so that what is left of a launch's time is that of the host.

Loaded before cuda-bindings looks for the library. Every function that the bindings ask for is there; those whose
results a launch needs give them. ``arrived()`` shows what the last launch was given.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

__all__ = ["arrived", "load"]

_SOURCE = r"""
#include <stdint.h>
#include <string.h>
typedef uint64_t u;
static u current, next = 0x7f0000000000ull;
static struct { u launches, config[7], parameters[8]; } seen;
int idle_count;
void *idle_seen(int parameters) { idle_count = parameters; return &seen; }
static int nothing(void) { return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *name, int n, int d) { strncpy(name, "Idle", n); return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : 1; return 0; }
int cuDevicePrimaryCtxRetain(u *c, int d) { *c = 0xc0de0; return 0; }
int cuCtxGetCurrent(u *c) { *c = current; return 0; }
int cuCtxSetCurrent(u c) { current = c; return 0; }
int cuCtxPushCurrent_v2(u c) { return 0; }
int cuCtxPopCurrent_v2(u *c) { *c = 0xc0de0; return 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuMemAlloc_v2(u *a, u n) { *a = next; next += (n + 511) & ~255ull; return 0; }
int cuMemAllocFromPoolAsync(u *a, u n, u pool, u stream) { return cuMemAlloc_v2(a, n); }
int cuModuleLoadData(u *m, void *i) { *m = 0x2000; return 0; }
int cuModuleGetFunction(u *f, u m, char *n) { *f = 0x3000; return 0; }
int cuFuncGetAttribute(int *v, int a, u f) { *v = a ? 0 : 1024; return 0; }
int cuStreamIsCapturing(u s, int *status) { *status = 0; return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cuLaunchKernelEx(u *config, u f, void **parameters, void **extra) {
  seen.launches++;
  if (idle_count) {
    memcpy(seen.config, config, sizeof seen.config);
    for (int i = 0; i < idle_count; i++) memcpy(&seen.parameters[i], parameters[i], 8);
  }
  return 0; }
#define KNOWN(name) if (!strcmp(asked, #name)) found = (void *)name;
#define KNOWN2(name) if (!strcmp(asked, #name)) found = (void *)name##_v2;
int cuGetProcAddress_v2(const char *asked, void **out, int version, u flags, int *status) {
  void *found = (void *)nothing;
  KNOWN2(cuGetProcAddress) KNOWN(cuDriverGetVersion) KNOWN(cuDeviceGetCount) KNOWN(cuDeviceGet) KNOWN(cuDeviceGetName)
  KNOWN(cuDeviceGetAttribute) KNOWN(cuDevicePrimaryCtxRetain) KNOWN(cuCtxGetCurrent) KNOWN(cuCtxSetCurrent)
  KNOWN2(cuCtxPushCurrent) KNOWN2(cuCtxPopCurrent) KNOWN(cuCtxGetDevice) KNOWN2(cuMemAlloc) KNOWN(cuModuleLoadData)
  KNOWN(cuMemAllocFromPoolAsync) KNOWN(cuModuleGetFunction) KNOWN(cuFuncGetAttribute) KNOWN(cuStreamIsCapturing)
  KNOWN(cuLaunchKernelEx) KNOWN(cuThreadExchangeStreamCaptureMode)
  *out = found;
  if (status) *status = 0;
  return 0; }
int cuGetProcAddress(const char *asked, void **out, int version, u flags) {
  return cuGetProcAddress_v2(asked, out, version, flags, 0); }
"""
_library: list[ctypes.CDLL] = []


def load() -> None:
    """Make the library with the C compiler, and load it in place of the driver's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libcuda.so"
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-Wl,-soname,libcuda.so.1", "-x", "c", "-"]
        subprocess.run([*command, "-o", str(path)], input=_SOURCE.encode(), check=True)
        _library.append(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))


class _Seen(ctypes.Structure):
    _fields_ = [
        ("launches", ctypes.c_uint64), ("config", ctypes.c_uint64 * 7),
        ("parameters", ctypes.c_uint64 * 8),
    ]


def arrived(parameters: int) -> _Seen:
    """What the last launch was given, of which so many parameters are noted from now on; with 0 nothing is."""
    (library,) = _library
    library.idle_seen.restype = ctypes.POINTER(_Seen)
    return library.idle_seen(parameters).contents
