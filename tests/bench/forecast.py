"""Forecasts beside published times, and the library's forecasts beside the best published ones.

The first table judges the model: kernels of a design that is published, or close to it, and how far off the forecast
is. From its rows follow the constants of `ptxdsl.forecasting.calibration`: one exponent for all of them, and the error
bar of each kind of bound; ``left out`` is the error with the exponent fitted to the other rows. The second table says
what the library's own kernels would take. No GPU was used for any forecast; the published times are others'.

``python tests/bench/forecast.py [--fit] [names]``
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import forecast_kernels as kernels
from norms import build_rms_norm, build_softmax
from ptxdsl import Forecast, bf16, dtype_of, f32, tensor_map, u32
from ptxdsl.forecasting.calibration import EXPONENT, error_of
from ptxdsl.text_table import table

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
HALF = dtype_of(bf16)
SAME, CLOSE, OTHER = "same", "close", "other"
"""Whether the published kernel has the design of ours: the same algorithm and tile; the same passes over memory; or
only the same result, which is shown and not fitted."""
ENOUGH = 5
"""Rows of a kind of bound from which its own error bar follows; that of fewer is the one of all rows."""
LOCKED = 1500
"""MHz, of the machine of TileOPs' nightly."""


class Row(NamedTuple):
    """A published time in microseconds: whose, where, of which ``design`` in comparison to ours."""

    name: str
    gpu: str
    clock: int | None
    published: float
    peer: str
    design: str
    run: Callable[..., Forecast]


def words(*shape: int) -> np.ndarray[Any, Any]:
    """bf16 in words of two, never touched, so that it takes no memory."""
    return np.zeros(math.prod(shape) // 2, np.uint32)


def of_add(halves: bool, n: int = 2048 * 4096, **gpu: Any) -> Forecast:
    arrays = [words(n) if halves else np.zeros(n, np.float32) for _ in range(3)]
    return kernels.add(u32 if halves else f32)[n // (8 if halves else 4) // 256, 256].forecast(*arrays, **gpu)


def of_rms(rows: int, n: int, adds: bool = False, **gpu: Any) -> Forecast:
    arrays = words(rows, n), words(n), words(rows, n), words(rows, n) if adds else words(2)
    return kernels.rms_norm(n, adds)[rows, min(1024, n // 8)].forecast(*arrays, **gpu)


def of_layer(n: int, **gpu: Any) -> Forecast:
    arrays = words(2048, n), words(n), words(n), words(2048, n)
    return kernels.layer_norm(n)[2048, min(1024, n // 8)].forecast(*arrays, **gpu)


def of_softmax(n: int, **gpu: Any) -> Forecast:
    return kernels.softmax(n)[1024, min(1024, n // 8)].forecast(words(1024, n), words(1024, n), **gpu)


def of_swiglu(**gpu: Any) -> Forecast:
    return kernels.swiglu(14336)[(7, 2048), 256].forecast(words(2048, 28672), words(2048, 14336), **gpu)


def of_row_sum(**gpu: Any) -> Forecast:
    return kernels.row_sum(4096)[2048, 512].forecast(words(2048, 4096), np.zeros(2048, np.float32), **gpu)


def of_sum(**gpu: Any) -> Forecast:
    return kernels.sum_all(64)[4096, 1024].forecast(np.zeros(1 << 30, np.float32), np.zeros(1, np.float32), **gpu)


def of_pyptx(which: str, n: int = 8192, rows: int = 2048, **gpu: Any) -> Forecast:
    x, w, y = np.zeros(rows * n, np.float32), np.zeros(n, np.float32), np.zeros(rows * n, np.float32)
    if which == "rms":
        return build_rms_norm(n)[rows, 128].forecast(x, w, y, **gpu)
    return build_softmax(n)[rows, 512].forecast(x, y, **gpu)


def of_transpose(n: int = 4096, **gpu: Any) -> Forecast:
    import transpose

    a, b = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    return transpose.transpose[(n // 32, n // 32), (32, 8)].forecast(a, b, **gpu)


def of_matmul(rows: int, columns: int, stages: int, consumers: int, n: int = 4096, **gpu: Any) -> Forecast:
    a, b, c = np.zeros((n, n), HALF), np.zeros((n, n), HALF), np.zeros((n, n), np.float32)
    maps = tensor_map(a, (rows, 64), swizzle=128), tensor_map(b, (columns, 64), swizzle=128)
    made = kernels.matmul(rows, columns, stages, consumers) if stages > 1 else kernels.serial_matmul(rows, columns)
    grid, shared = (n // columns, n // rows), stages * (rows + columns) * 128
    threads = 128 * (consumers + 1) if stages > 1 else 128
    return made.configure(grid, threads, shared=shared).forecast(*maps, c, n // 64 // stages, sample=2, **gpu)


def rate(flop: float, tera: float) -> float:
    """Microseconds of so many operations at so many Tflop/s."""
    return flop / tera / 1e6


def moved(nbytes: float, tera: float) -> float:
    """Microseconds of so many bytes at so many TB/s."""
    return nbytes / tera / 1e6


PRODUCT = 2 * 4096**3
NIGHTLY = "h200", LOCKED
PUBLISHED = (
    Row("add bf16, 8.4 M elements", *NIGHTLY, 14.7, "torch", SAME, partial(of_add, True)),
    Row("add f32, 8.4 M elements", *NIGHTLY, 26.5, "torch", SAME, partial(of_add, False)),
    Row("RMSNorm bf16 1 x 4096", *NIGHTLY, 2.1, "FlashInfer", CLOSE, partial(of_rms, 1, 4096)),
    Row("RMSNorm bf16 2048 x 4096", *NIGHTLY, 10.9, "FlashInfer", CLOSE, partial(of_rms, 2048, 4096)),
    Row("RMSNorm bf16 2048 x 8192", *NIGHTLY, 20.1, "FlashInfer", CLOSE, partial(of_rms, 2048, 8192)),
    Row("RMSNorm bf16 2048 x 16384", *NIGHTLY, 38.0, "FlashInfer", CLOSE, partial(of_rms, 2048, 16384)),
    Row("add + RMSNorm bf16 2048 x 8192", *NIGHTLY, 36.2, "vLLM", CLOSE, partial(of_rms, 2048, 8192, True)),
    Row("LayerNorm bf16 2048 x 4096", *NIGHTLY, 13.8, "FlagGems", CLOSE, partial(of_layer, 4096)),
    Row("LayerNorm bf16 2048 x 8192", *NIGHTLY, 27.7, "FlagGems", CLOSE, partial(of_layer, 8192)),
    Row("LayerNorm bf16 2048 x 16384", *NIGHTLY, 50.6, "torch.compile", OTHER, partial(of_layer, 16384)),
    Row("softmax bf16 1024 x 4096", *NIGHTLY, 8.7, "FlagGems", CLOSE, partial(of_softmax, 4096)),
    Row("softmax bf16 1024 x 32768", *NIGHTLY, 64.3, "FlagGems", OTHER, partial(of_softmax, 32768)),
    Row("SwiGLU bf16 2048 x 28672", *NIGHTLY, 43.3, "TileOPs", CLOSE, of_swiglu),
    Row("row sum bf16 2048 x 4096", *NIGHTLY, 8.4, "torch.compile", CLOSE, of_row_sum),
    Row("transpose f32 4096 x 4096", "h200", None, moved(2**27, 1.685), "padded tiles", SAME, of_transpose),
    Row("sum of 2^30 f32", "h100", None, moved(2**32, 3.24), "fast.cu", CLOSE, of_sum),
    Row("RMSNorm f32 2048 x 8192", "h100", None, moved(2**27, 2.65), "pyptx", SAME, partial(of_pyptx, "rms")),
    Row("softmax f32 2048 x 8192", "h100", None, moved(2**27, 2.8), "pyptx", SAME, partial(of_pyptx, "softmax")),
    Row("matmul bf16 4096, 64x64, serial", "h100", None, rate(PRODUCT, 317), "fast.cu K2", SAME,
        partial(of_matmul, 64, 64, 1, 1)),
    Row("matmul bf16 4096, 128x128, serial", "h100", None, rate(PRODUCT, 423), "fast.cu K3", SAME,
        partial(of_matmul, 128, 128, 1, 1)),
    Row("matmul bf16 4096, 128x128, ring", "h100", None, rate(PRODUCT, 498), "fast.cu K4", SAME,
        partial(of_matmul, 128, 128, 5, 1)),
    Row("matmul bf16 4096, 128x256, ring", "h100", None, rate(PRODUCT, 631), "fast.cu K5", SAME,
        partial(of_matmul, 128, 256, 3, 2)),
)


class Result(NamedTuple):
    """A row with its forecast."""

    row: Row
    found: Forecast

    def predicted(self, exponent: float = EXPONENT) -> float:
        """Microseconds, with another exponent than the one that is set."""
        total = 0.0
        for one in self.found.launches:
            times = [bound.seconds for bound in one.bounds if bound.seconds]
            total += one.machine.launch + sum(t**exponent for t in times) ** (1 / exponent)
        return total * 1e6

    def error(self, exponent: float = EXPONENT) -> float:
        """The logarithm of predicted by published."""
        return math.log(self.predicted(exponent) / self.row.published)


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def fitted(results: Sequence[Result]) -> float:
    """The exponent with the least mean absolute error of the logarithm."""
    return min((n / 4 for n in range(5, 65)), key=lambda e: mean(abs(one.error(e)) for one in results))


def show(results: Sequence[Result]) -> None:
    rows = []
    for one in results:
        row, launch = one.row, one.found.launches[0]
        rows.append((
            row.name, f"{row.gpu}{f' at {row.clock}' if row.clock else ''}", row.peer, row.design,
            f"{row.published:.1f}", f"{one.predicted():.1f}", f"{one.predicted() / row.published:.2f}",
            launch.binding.kind,
        ))
    header = ("kernel", "GPU", "published by", "design", "us", "forecast us", "ratio", "bound by")
    print(table(header, rows))


def summary(results: Sequence[Result]) -> None:
    judged = [one for one in results if one.row.design != OTHER]
    errors = [abs(one.error()) for one in judged] or [0.0]
    print(f"\n{len(judged)} rows of the same or a close design: geometric mean of the error {factor(mean(errors))}, "
          f"largest {factor(max(errors))}")
    left_out = [abs(one.error(fitted([other for other in judged if other is not one]))) for one in judged]
    print(f"each with the exponent fitted to the others (left out): {factor(mean(left_out))}; fitted to all: "
          f"exponent {fitted(judged):.2f}, set is {EXPONENT}")
    for kind in sorted({one.found.launches[0].binding.kind for one in judged}):
        rows = [one for one in judged if one.found.launches[0].binding.kind == kind]
        bar = spread(rows if len(rows) >= ENOUGH else judged)
        print(f"  bound by {kind}: {len(rows)} rows, error bar x/: {bar:.2f} (set is {error_of(kind)})")


def spread(results: Sequence[Result]) -> float:
    """The root mean square of the errors, as a factor."""
    return math.exp(math.sqrt(mean(one.error() ** 2 for one in results)))


def factor(error: float) -> str:
    return f"{(math.exp(error) - 1):.0%}"


def main(names: Sequence[str]) -> None:
    results = []
    for row in PUBLISHED:
        if all(name in row.name for name in names):
            found = row.run(gpu=row.gpu, clock=row.clock)
            results.append(Result(row, found))
            if names:
                print(found)
    show(results)
    summary(results)


if __name__ == "__main__":
    main(sys.argv[1:])
