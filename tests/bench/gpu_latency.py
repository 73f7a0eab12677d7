"""What a launch on a GPU takes of the host, beside other libraries: ``python tests/bench/gpu_latency.py [peer ...]``.

Each peer that is installed launches an empty kernel and a saxpy from Python, with arrays of its own on its own stream;
torch compiles no kernel, so ``add_`` of two tensors stands for its saxpy. The time is that of the launching thread's
processor, in nanoseconds: the median of rounds in which the launches take turns, each some hundred times, fewer than
the driver has room for. Before each the GPU is waited for, and the wall's time shows where it was waited for in
between. What every saxpy leaves in memory is checked. ``--out FILE`` keeps the table.

``--idle`` takes a driver that does nothing in place of a GPU, which serves ptxdsl and cuda.core: without the check.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any, NamedTuple

import numpy as np
from ptxdsl.bench import table

__all__ = ["PEERS", "Launch", "Times", "main", "measured", "shown"]

N, A, THREADS = 8192, 2.0, 128
BLOCKS = N // THREADS
EMPTY, SAXPY = "empty", "saxpy"


class Launch(NamedTuple):
    """A way to launch a kernel; ``result`` copies the array that a saxpy stores to from the GPU, None if it is none."""

    peer: str
    how: str
    kernel: str
    run: Callable[[], object]
    result: Callable[[], Any] | None = None


class Times(NamedTuple):
    """Nanoseconds a launch: of the thread's processor, and of the wall."""

    cpu: float
    wall: float


def _values() -> np.ndarray[Any, Any]:
    """What x holds: small integers, so that no sum is rounded."""
    return (np.arange(N) % 7).astype(np.float32)


# ---------------------------------------------------------------------------------------------------------------------
# The peers: each gives its launches, or raises what keeps it from that


def _kernels() -> tuple[Any, Any]:
    from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when

    @ptx_kernel
    def empty() -> None:
        pass

    @ptx_kernel
    def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    return empty, saxpy


def _ptxdsl(idle: bool) -> list[Launch]:
    import ptxdsl

    empty, saxpy = _kernels()
    x, y = ptxdsl.to_device(_values()), ptxdsl.zeros(N, np.float32)
    prepared, prepared_empty = saxpy[BLOCKS, THREADS], empty[BLOCKS, THREADS]
    return [
        Launch("ptxdsl", "prepared", EMPTY, lambda: prepared_empty()),
        Launch("ptxdsl", "k[grid, block](...)", EMPTY, lambda: empty[BLOCKS, THREADS]()),
        Launch("ptxdsl", "prepared", SAXPY, lambda: prepared(N, A, x, y), y.numpy),
        Launch("ptxdsl", "k[grid, block](...)", SAXPY, lambda: saxpy[BLOCKS, THREADS](N, A, x, y), y.numpy),
    ]


def _cuda_core(idle: bool) -> list[Launch]:
    import ctypes

    import ptxdsl
    from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, launch

    Device(0).set_current()
    x, y = ptxdsl.to_device(_values()), ptxdsl.zeros(N, np.float32)
    empty, saxpy = (
        Kernel.from_handle(0x3000) if idle else ObjectCode.from_cubin(k.cubin(arch=_arch())).get_kernel(k.entry)
        for k in _kernels()
    )
    stream, config = Device().default_stream, LaunchConfig(grid=BLOCKS, block=THREADS)
    n, a = ctypes.c_uint32(N), ctypes.c_float(A)
    return [
        Launch("cuda.core", "launch(...)", EMPTY, lambda: launch(stream, config, empty)),
        Launch("cuda.core", "launch(...)", SAXPY, lambda: launch(stream, config, saxpy, n, a, x.address, y.address),
               y.numpy),
    ]


def _arch() -> str:
    from ptxdsl.gpu.device import driver

    return driver().target("sm_75")


def _triton(idle: bool) -> list[Launch]:
    import torch
    from latency_triton import empty, saxpy

    x, y = torch.from_numpy(_values()).cuda(), torch.zeros(N, device="cuda")
    return [
        Launch("Triton", "k[grid](...)", EMPTY, lambda: empty[(BLOCKS,)]()),
        Launch("Triton", "k[grid](...)", SAXPY, lambda: saxpy[(BLOCKS,)](N, A, x, y, BLOCK=THREADS),
               lambda: y.cpu().numpy()),
    ]


def _cupy(idle: bool) -> list[Launch]:
    import cupy

    source = r"""
    extern "C" __global__ void empty() {}
    extern "C" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
      unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = a * x[i] + y[i];
    }"""
    empty, saxpy = (cupy.RawKernel(source, name) for name in (EMPTY, SAXPY))
    x, y, n, a = cupy.asarray(_values()), cupy.zeros(N, np.float32), np.uint32(N), np.float32(A)
    grid, block = (BLOCKS,), (THREADS,)
    return [
        Launch("CuPy", "RawKernel", EMPTY, lambda: empty(grid, block, ())),
        Launch("CuPy", "RawKernel", SAXPY, lambda: saxpy(grid, block, (n, a, x, y)), lambda: cupy.asnumpy(y)),
    ]


def _numba(idle: bool) -> list[Launch]:
    from numba import cuda

    @cuda.jit
    def empty() -> None:
        pass

    @cuda.jit
    def saxpy(n: Any, a: Any, x: Any, y: Any) -> None:
        i = cuda.grid(1)  # type: ignore[attr-defined, unused-ignore]
        if i < n:
            y[i] = a * x[i] + y[i]

    x, y, a = cuda.to_device(_values()), cuda.to_device(np.zeros(N, np.float32)), np.float32(A)
    prepared, prepared_empty = saxpy[BLOCKS, THREADS], empty[BLOCKS, THREADS]
    return [
        Launch("numba-cuda", "prepared", EMPTY, lambda: prepared_empty()),
        Launch("numba-cuda", "k[grid, block](...)", EMPTY, lambda: empty[BLOCKS, THREADS]()),
        Launch("numba-cuda", "prepared", SAXPY, lambda: prepared(N, a, x, y), y.copy_to_host),
        Launch("numba-cuda", "k[grid, block](...)", SAXPY, lambda: saxpy[BLOCKS, THREADS](N, a, x, y), y.copy_to_host),
    ]


def _torch(idle: bool) -> list[Launch]:
    import torch

    x, y = torch.from_numpy(_values()).cuda(), torch.zeros(N, device="cuda")
    ours = _kernels()[1][BLOCKS, THREADS]
    return [
        Launch("torch", "y.add_(x, alpha=a)", SAXPY, lambda: y.add_(x, alpha=A), lambda: y.cpu().numpy()),
        Launch("ptxdsl", "prepared, tensors", SAXPY, lambda: ours(N, A, x, y), lambda: y.cpu().numpy()),
    ]


class Peer(NamedTuple):
    """A library: the module that knows its version, its launches, and whether these need no GPU with ``--idle``."""

    module: str
    launches: Callable[[bool], list[Launch]]
    idle: bool = False


PEERS = {
    "ptxdsl": Peer("ptxdsl", _ptxdsl, idle=True), "cuda.core": Peer("cuda.core", _cuda_core, idle=True),
    "triton": Peer("triton", _triton), "cupy": Peer("cupy", _cupy), "numba": Peer("numba_cuda", _numba),
    "torch": Peer("torch", _torch),
}


# ---------------------------------------------------------------------------------------------------------------------
# Measuring


def check(launches: Iterable[Launch]) -> None:
    """That every saxpy adds what it should to its array; SystemExit for one that does not."""
    added = np.float32(A) * _values()
    for launch in launches:
        launch.run()
        if launch.result is not None:
            before = launch.result().copy()
            launch.run()
            if not np.array_equal(launch.result(), before + added):
                sys.exit(f"{launch.peer}, {launch.how}: the saxpy is wrong")


def measured(launches: Sequence[Launch], drain: Callable[[], object], rounds: int, turns: int) -> list[Times]:
    """Of each launch the medians of the rounds."""
    found: list[list[tuple[float, float]]] = [[] for _ in launches]
    for launch in launches:
        for _ in range(4):  # what the first ones prepare is not measured
            launch.run()
    for _ in range(rounds):
        for launch, times in zip(launches, found):
            drain()
            run, wall, start = launch.run, perf_counter_ns(), thread_time_ns()
            for _ in range(turns):
                run()
            taken, passed = thread_time_ns() - start, perf_counter_ns() - wall
            times.append((taken / turns, passed / turns))
    drain()
    return [Times(*(statistics.median(each[n] for each in times) for n in (0, 1))) for times in found]


def shown(launches: Sequence[Launch], times: Sequence[Times]) -> str:
    """The table: of each kernel the cheapest launch first, with the ratio to ptxdsl's cheapest, where that is there."""
    rows = []
    for kernel in (EMPTY, SAXPY):
        own = sorted((time, launch) for launch, time in zip(launches, times) if launch.kernel == kernel)
        unit = next((time.cpu for time, launch in own if launch.peer == "ptxdsl"), None)
        rows += [
            (kernel, launch.peer, launch.how, f"{time.cpu:.0f}", f"{time.wall:.0f}",
             f"{time.cpu / unit:.2f}" if unit else "")
            for time, launch in own
        ]
    return table(("kernel", "peer", "launch", "ns of the processor", "ns of the wall", "of ptxdsl's"), rows)


def _ready(names: Sequence[str], idle: bool) -> tuple[list[Launch], list[str]]:
    """The launches of the peers that can be had, and a line for each peer: its version, or why it is not there."""
    launches: list[Launch] = []
    lines = []
    for name in names:
        peer = PEERS[name]
        if idle and not peer.idle:
            lines.append(f"{name}: needs a GPU")
            continue
        try:
            made = peer.launches(idle)
            if not idle:
                check(made)
        except Exception as error:  # noqa: BLE001 - of any library, which is told and passed over
            lines.append(f"{name}: not measured: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
            continue
        launches += made
        lines.append(f"{name} {import_module(peer.module).__version__}")
    return launches, lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--turns", type=int, default=400, help="launches without a wait; the driver has room for 1,000")
    parser.add_argument("--idle", action="store_true", help="above a driver that does nothing")
    parser.add_argument("--out", type=Path, help="a file for the table")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.peers if name not in PEERS]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    if options.idle:
        import idle_driver

        idle_driver.load()
    from ptxdsl import backend_name, synchronize, use
    from ptxdsl.gpu.device import unavailable

    missing = unavailable()
    if missing is not None:
        sys.exit(f"nothing is measured: there is no GPU ({missing})")
    with use("gpu"):
        launches, lines = _ready(options.peers or list(PEERS), options.idle)
        times = measured(launches, synchronize, options.rounds, options.turns)
        head = f"{backend_name()}, Python {platform.python_version()}; {'; '.join(lines)}"
    text = f"{head}\n\n{shown(launches, times)}"
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
