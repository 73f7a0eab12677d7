"""Matrix products on emulated tensor cores beside numpy's of f32: ``python tests/bench/tensor_cores.py``.

Triton's pipeline for sm_80 (cp.async, ldmatrix, mma.sync of f16), Hopper's (TMA, mbarriers, wgmma of bf16) and
Blackwell's (TMA, mbarriers, tcgen05.mma of bf16); one thread, time on the processor, interleaved rounds, medians, every
result checked. Sanitized launches are of a smaller product, in times of the default. ``--side N`` (a multiple of 192),
``--rounds N``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import ml_dtypes
import numpy as np
from emulator import ONE_THREAD
from ptxdsl.bench import table

import ptxdsl

sys.path.append(str(Path(__file__).parents[1] / "support"))
from blackwell_matmul import launch as blackwell
from hopper_matmul import launch as hopper
from pipelined_matmul import STAGES, TILE, pipelined_matmul

KINDS = ("mma.sync", "wgmma", "tcgen05")
SMALL = 384
TOOLS = ("init", "race", "all")


class Product:
    """A product of random matrices by one of the kernels."""

    def __init__(self, name: str, side: int, rng: np.random.Generator) -> None:
        dtype: Any = np.float16 if name == "mma.sync" else ml_dtypes.bfloat16
        self.name, self.side = name, side
        self.a, self.b = (rng.standard_normal((side, side)).astype(dtype) for _ in range(2))
        self.c = np.zeros((side, side), np.float32)
        self.kernel = ptxdsl.load(pipelined_matmul())["matmul"] if name == "mma.sync" else None

    def run(self, **options: Any) -> None:
        if self.kernel is None:
            (hopper if self.name == "wgmma" else blackwell)(self.a, self.b, self.c, **options)
            return
        grid, shared = (self.side // TILE,) * 2, 2 * STAGES * 4096
        launch = self.kernel.configure(grid, 128, shared=shared, backend="emulator", **options)
        launch(self.a, self.b, self.c, np.uint32(self.side), np.uint32(self.side))

    def check(self) -> None:
        self.c[:] = np.nan
        self.run()
        b = self.b if self.kernel is not None else self.b.T
        x, y = self.a.astype(np.float64), b.astype(np.float64)
        assert (abs(self.c - x @ y) <= (self.side + 192) * 2.0**-24 * (abs(x) @ abs(y))).all()


def timed(call: Callable[[], Any]) -> float:
    start = thread_time()
    call()
    return thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1152)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    rng = np.random.default_rng()
    side = options.side
    products = [Product(name, side, rng) for name in KINDS]
    x, y = (rng.standard_normal((side, side)).astype(np.float32) for _ in range(2))
    for product in products:
        product.check()
    calls: dict[str, Callable[[], Any]] = {"numpy f32": lambda: x @ y}
    calls.update({product.name: product.run for product in products})
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    costs = {name: sanitized(Product(name, SMALL, rng), options.rounds) for name in KINDS}
    rows = [
        (name, f"{took * 1e3:.1f}", f"{took / medians['numpy f32']:.2f}", *costs.get(name, [""] * len(TOOLS)))
        for name, took in medians.items()
    ]
    print(table((f"{side}^3", "ms", "of numpy's", *(f"{tool}, {SMALL}^3" for tool in TOOLS)), rows))


def sanitized(product: Product, rounds: int) -> list[str]:
    """The time of each tool in times of the default."""
    ways: list[dict[str, Any]] = [{}, *({"sanitize": tool} for tool in TOOLS)]
    for way in ways:
        product.run(**way)
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(max(3, rounds // 3)):
        for spent, way in zip(times, ways):
            spent.append(timed(partial(product.run, **way)))
    plain, *others = (statistics.median(spent) for spent in times)
    return [f"{other / plain:.1f}" for other in others]


if __name__ == "__main__":
    wanted = {**dict.fromkeys(ONE_THREAD, "1"), "PTXDSL_EMULATOR_THREADS": "1"}
    if any(os.environ.get(name) != value for name, value in wanted.items()):  # read when libraries are loaded
        sys.exit(subprocess.call([sys.executable, *sys.argv], env={**os.environ, **wanted}))
    main()
