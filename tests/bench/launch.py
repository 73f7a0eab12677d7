"""What a launch costs the host beside ``cuda.core.launch``: ``python tests/bench/launch.py``.

The driver is one that does nothing (`idle_driver.py`), so no GPU is needed, but a C compiler, cuda-core and
cuda-bindings; torch for its lines. Processor time of one thread, the median of interleaved rounds; the parameters that
arrive are checked first. The tensors are torch's own, in host memory, and say that they are on a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import struct
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import idle_driver
import numpy as np
from ptxdsl.bench import table

sys.path.append(str(Path(__file__).parents[1] / "support"))

__all__ = ["main"]

STREAM, ROUNDS, TURNS = 0x5000, 21, 2000
N, A = 8192, 2.0
Cases = dict[str, tuple[Callable[[], object], float | None]]
"""By name: a launch, and what it may cost, in parts of cuda.core's."""


class CudaArray:
    """An array like CuPy's or Numba's; what their property costs is theirs, and not measured."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (N,), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None, "stream": None,
        }


class Stream:
    """An object with the protocol of streams."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, STREAM


def kernels() -> tuple[Any, Any]:
    """Saxpy, with pointers and with ``Array``."""
    from ptxdsl import Array, Ptr, f32, ptx, ptx_kernel, u32, when

    @ptx_kernel
    def saxpy(x: Ptr[f32], y: Ptr[f32], n: u32, a: f32) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    @ptx_kernel
    def shaped(x: Array[f32, 1], y: Array[f32, 1], a: f32) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < x.shape[0]):
            y[i] = a * x[i] + y[i]

    return saxpy, shaped


def core(x: int, y: int) -> Callable[[], object]:
    """The same by cuda.core."""
    from cuda.core import Device, Kernel, LaunchConfig, Stream, launch

    Device(0).set_current()
    kernel, stream = Kernel.from_handle(0x3000), Stream.from_handle(STREAM)
    config = LaunchConfig(grid=(64, 1, 1), block=(128, 1, 1))
    return lambda: launch(stream, config, kernel, x, y, ctypes.c_uint32(N), ctypes.c_float(A))


def cases(saxpy: Any, shaped: Any) -> Cases:
    """Launches with arrays of our own, and with those that have the array interface."""
    import ptxdsl

    x, y = (ptxdsl.empty(N, np.float32) for _ in range(2))
    other_x, other_y, n, a, stream = CudaArray(x.address), CudaArray(y.address), np.uint32(N), np.float32(A), Stream()
    prepared, by_shape = saxpy.configure(64, 128, stream=STREAM), shaped.configure(64, 128, stream=STREAM)
    return {
        "cuda.core.launch": (core(x.address, y.address), None),
        "prepared, device arrays": (lambda: prepared(x, y, N, A), 0.35),
        "prepared, numpy scalars": (lambda: prepared(x, y, n, a), 0.8),
        "prepared, __cuda_array_interface__": (lambda: prepared(other_x, other_y, N, A), 0.8),
        "prepared, Array of device arrays": (lambda: by_shape(x, y, A), 0.8),
        "prepared, Array of __cuda_array_interface__": (lambda: by_shape(other_x, other_y, A), 0.8),
        "k[grid, block](...)": (lambda: saxpy[64, 128](x, y, N, A), None),
        "k[grid, block, stream](...), an int": (lambda: saxpy[64, 128, STREAM](x, y, N, A), None),
        "k[grid, block, stream](...), an object": (lambda: saxpy[64, 128, stream](x, y, N, A), 1.0),
    }


def tensors(saxpy: Any, shaped: Any) -> Cases:
    """Launches with torch's tensors."""
    import torch

    x, y = torch.zeros(N), torch.zeros(N)
    prepared, own_stream = saxpy.configure(64, 128, stream=STREAM), saxpy.configure(64, 128)
    by_shape = shaped.configure(64, 128, stream=STREAM)
    return {
        "prepared, tensors": (lambda: prepared(x, y, N, A), 0.6),
        "prepared, tensors, torch's stream": (lambda: own_stream(x, y, N, A), 0.6),
        "prepared, Array of tensors": (lambda: by_shape(x, y, A), 0.8),
        "k[grid, block](...), tensors": (lambda: saxpy[64, 128](x, y, N, A), None),
    }


def check(launches: Cases) -> None:
    """Launch until plans are made, and look at what arrives."""
    seen = idle_driver.arrived(4)
    bits = struct.unpack("<I", struct.pack("<f", A))[0]
    for name, (launch, _) in launches.items():
        for _ in range(4):
            launch()
        numbers = [number & 0xFFFFFFFF for number in seen.parameters[:4]]
        expected = [N, numbers[2], N] if "Array of" in name else [numbers[1], N, bits]
        assert numbers[1:] == expected, (name, numbers)
        assert seen.config[0] == 64 | 1 << 32, name
    idle_driver.arrived(0)


def nanoseconds(launches: Cases) -> dict[str, float]:
    """Of each launch: the median of rounds."""
    found: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, (launch, _) in launches.items():
            start = process_time()
            for _ in range(TURNS):
                launch()
            found[name].append((process_time() - start) / TURNS * 1e9)
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> None:
    """Print the table."""
    idle_driver.load()
    from ptxdsl import use

    with contextlib.ExitStack() as stack:
        stack.enter_context(use("gpu"))
        saxpy, shaped = kernels()
        launches = cases(saxpy, shaped)
        check(launches)
        if find_spec("torch"):
            from exchanged_tensors import on_gpu

            stack.enter_context(on_gpu(STREAM))
            further = tensors(saxpy, shaped)
            check(further)
            launches.update(further)
        times = nanoseconds(launches)
    unit = times["cuda.core.launch"]
    rows = [
        (name, f"{times[name]:.0f}", f"{times[name] / unit:.2f}", "" if wanted is None else f"{wanted:.2f}")
        for name, (_, wanted) in launches.items()
    ]
    print(table(("launch", "ns", "of cuda.core", "wanted"), rows))


if __name__ == "__main__":
    main()
