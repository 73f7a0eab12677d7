"""Forecasts beside published times, and the library's forecasts beside the best published ones.

The first table judges the model: kernels of a design that is published, or close to it, and how far off the forecast
is. From its rows follow the constants of `ptxdsl.forecasting.calibration`: one exponent for all of them, and the error
bar of each kind of bound; ``left out`` is the error with the exponent fitted to the other rows. The second table says
what the library's own kernels would take. No GPU was used for any forecast; the published times are others'.

``python tests/bench/forecast.py [words of names]``; ``--long`` forecasts what takes
minutes too, ``--docs`` writes the tables into docs/forecast.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import forecast_kernels as kernels
from norms import build_rms_norm, build_softmax
from ptxdsl import Forecast, bf16, dtype_of, e4m3, f32, forecast, tensor_map, u32, use
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


class Wanted(NamedTuple):
    """Work of the library with the best time that is published for it, in microseconds; ``module`` is what has it."""

    name: str
    gpu: str
    clock: int | None
    published: float
    peer: str
    module: str
    run: Callable[[Any], object]
    sample: int | None = None
    long: bool = False
    """Whether the emulator takes minutes."""


def half(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, HALF)


def product(m: int, n: int, k: int) -> Callable[[Any], object]:
    return lambda module: module.matmul(half(m, k), half(k, n))


def scaled(m: int, n: int, k: int) -> Callable[[Any], object]:
    """NVFP4, with scales as the kernel takes them."""
    a, b = np.zeros((m, k // 2), np.uint8), np.zeros((n, k // 2), np.uint8)
    scales = [np.zeros((rows // 128, k // 64, 512), dtype_of(e4m3)) for rows in (m, n)]
    return lambda module: module.scaled_matmul(a, b.T, *scales)


def attention(batch: int, heads: int, tokens: int, dim: int, causal: bool = False, shared: int = 1) -> Any:
    shape, keys = (batch, heads, tokens, dim), (batch, heads // shared, tokens, dim)
    return lambda module: module.flash_attention(
        half(*shape), half(*keys), half(*keys), causal=causal, tensor_cores="wgmma"
    )


def attention_of_bytes(*shape: int) -> Any:
    return lambda module: module.fp8_attention(*(np.zeros(shape, dtype_of(e4m3)) for _ in range(3)))


def gradients(*shape: int) -> Any:
    """Without the forward pass, whose result and logarithms are given."""
    return lambda module: module.differentiate(
        *(half(*shape) for _ in range(5)), np.zeros(shape[:3], np.float32), causal=False, scale=shape[-1] ** -0.5
    )


def decode(batch: int, heads: int, shared: int, keys: int, name: str = "decode_attention") -> Any:
    cache = batch, heads // shared, keys, 128
    return lambda module: getattr(module, name)(
        half(batch, heads, 128), half(*cache), half(*cache), keys, tensor_cores=True
    )


def rows_of(name: str, rows: int, columns: int, weights: int) -> Any:
    return lambda module: getattr(module, name)(half(rows, columns), *(half(columns) for _ in range(weights)))


def quantised(n: int, k: int, **options: Any) -> Any:
    return lambda module: module.q4k_gemv(
        np.zeros((1, k), np.float16), np.zeros((n, k // 256 * 144), np.uint8), n, **options
    )


NORM, HOPPER, STREAM = "norm", "hopper.matmul", "hopper.stream"
LIBRARY = (
    Wanted("matmul bf16 8192", "h200", None, rate(2 * 8192**3, 790), "cuBLAS", HOPPER, product(8192, 8192, 8192), 1,
           long=True),
    Wanted("matmul bf16 4096", "h200", None, rate(PRODUCT, 718), "cuBLAS", HOPPER, product(4096, 4096, 4096), 1,
           long=True),
    Wanted("matmul bf16 2048", "h100", None, rate(2 * 2048**3, 198), "pyptx", HOPPER, product(2048, 2048, 2048), 1),
    Wanted("matmul bf16 4096 x 7168 x 2048", *NIGHTLY, 179, "cuBLAS", HOPPER, product(4096, 7168, 2048), 1,
           long=True),
    Wanted("matmul bf16 16 x 4096 x 7168", *NIGHTLY, 24.5, "cuBLAS", STREAM, product(16, 4096, 7168)),
    Wanted("matmul bf16 64 x 7168 x 2048", *NIGHTLY, 13.2, "cuBLAS", STREAM, product(64, 7168, 2048)),
    Wanted("matmul nvfp4 2048", "b200", None, 10.2, "torch._scaled_mm", "linalg", scaled(2048, 2048, 2048), 1),
    Wanted("matmul nvfp4 4096", "b200", None, 30.8, "torch._scaled_mm", "linalg", scaled(4096, 4096, 4096), 1),
    Wanted("flash attention hd128, S 8192", "h100", None, rate(4 * 2 * 16 * 8192**2 * 128, 646), "FA3", "attention",
           attention(2, 16, 8192, 128), 1),
    Wanted("flash attention hd128 causal, S 8192", "h100", None, rate(2 * 2 * 16 * 8192**2 * 128, 602), "FA3",
           "attention", attention(2, 16, 8192, 128, causal=True), 4),
    Wanted("flash attention hd64, S 16384", "h100", None, rate(4 * 32 * 16384**2 * 64, 497), "FA3", "attention",
           attention(1, 32, 16384, 64), 1),
    Wanted("flash attention hd128, S 2048", "h100", None, rate(4 * 8 * 16 * 2048**2 * 128, 625), "FA3", "attention",
           attention(8, 16, 2048, 128), 1),
    Wanted("flash attention e4m3 hd128, S 2048", "h100", None, rate(4 * 8 * 16 * 2048**2 * 128, 733), "FA3",
           "attention", attention_of_bytes(8, 16, 2048, 128), 1),
    Wanted("gradients of flash attention hd128, S 2048", "h100", None, rate(10 * 8 * 16 * 2048**2 * 128, 501), "FA3",
           "hopper.flash_backward", gradients(8, 16, 2048, 128), 1),
    Wanted("gradients of flash attention hd64, S 2048", "h100", None, rate(10 * 8 * 32 * 2048**2 * 64, 422), "FA3",
           "hopper.flash_backward", gradients(8, 32, 2048, 64), 1),
    Wanted("flash attention hd128 causal 32/8, S 2048", *NIGHTLY, 160, "FlashInfer", "attention",
           attention(2, 32, 2048, 128, causal=True, shared=4), 4),
    Wanted("decode 32/8, 32 x 4096 keys", *NIGHTLY, 135, "TileOPs", "attention", decode(32, 32, 4, 4096)),
    Wanted("decode 32/32, 32 x 4096 keys", *NIGHTLY, 511, "TileOPs", "attention", decode(32, 32, 1, 4096)),
    Wanted("decode 32/4, 1 x 32768 keys", *NIGHTLY, 28.3, "TileOPs", "attention",
           decode(1, 32, 8, 32768, "flash_decoding")),
    Wanted("RMSNorm bf16 2048 x 4096", *NIGHTLY, 10.9, "FlashInfer", NORM, rows_of("rms_norm", 2048, 4096, 1)),
    Wanted("RMSNorm bf16 2048 x 8192", *NIGHTLY, 20.1, "FlashInfer", NORM, rows_of("rms_norm", 2048, 8192, 1)),
    Wanted("RMSNorm bf16 2048 x 16384", *NIGHTLY, 38.0, "FlashInfer", NORM, rows_of("rms_norm", 2048, 16384, 1)),
    Wanted("LayerNorm bf16 2048 x 4096", *NIGHTLY, 13.8, "FlagGems", NORM, rows_of("layer_norm", 2048, 4096, 2)),
    Wanted("LayerNorm bf16 2048 x 8192", *NIGHTLY, 27.7, "FlagGems", NORM, rows_of("layer_norm", 2048, 8192, 2)),
    Wanted("LayerNorm bf16 2048 x 16384", *NIGHTLY, 50.6, "torch.compile", NORM, rows_of("layer_norm", 2048, 16384, 2)),
    Wanted("softmax bf16 1024 x 4096", *NIGHTLY, 8.7, "FlagGems", NORM, rows_of("softmax", 1024, 4096, 0)),
    Wanted("softmax bf16 1024 x 32768", *NIGHTLY, 64.3, "FlagGems", NORM, rows_of("softmax", 1024, 32768, 0)),
    Wanted("softmax bf16 4 x 102400", *NIGHTLY, 9.6, "torch.compile", NORM, rows_of("softmax", 4, 102400, 0)),
    Wanted("SwiGLU bf16 2048 x 28672", *NIGHTLY, 43.3, "TileOPs", "elementwise",
           lambda module: module.swiglu(half(2048, 28672))),
    Wanted("row sum bf16 2048 x 4096", *NIGHTLY, 8.4, "torch.compile", "reduce",
           lambda module: module.sum(half(2048, 4096), axis=1)),
    Wanted("column sum bf16 2048 x 4096", *NIGHTLY, 11.1, "torch.compile", "reduce",
           lambda module: module.sum(half(2048, 4096), axis=0)),
    Wanted("sum of 2^30 f32", "h100", None, moved(2**32, 3.24), "fast.cu", "reduce",
           lambda module: module.sum(np.zeros(1 << 30, np.float32))),
    Wanted("argmax f32 4 x 102400", *NIGHTLY, 15.1, "TileOPs", "reduce",
           lambda module: module.argmax(np.zeros((4, 102400), np.float32), axis=1)),
    Wanted("cumsum bf16 2048 x 4096", *NIGHTLY, 10.5, "FlagGems", "scan",
           lambda module: module.inclusive(half(2048, 4096))),
    Wanted("transpose f32 8192", "h200", None, moved(2**29, 3.0), "torch, estimated", "linalg",
           lambda module: module.transpose(np.zeros((8192, 8192), np.float32))),
    Wanted("Q4_K gemv 28672 x 8192", "h200", None, 50, "llama.cpp, estimated", "quant", quantised(28672, 8192)),
    Wanted("Q4_K gemv 4096 x 4096", "h200", None, 6, "llama.cpp, estimated", "quant", quantised(4096, 4096)),
    Wanted("Q4_K gemv 28672 x 8192, int8", "h200", None, 50, "llama.cpp, estimated", "quant",
           quantised(28672, 8192, activations="int8")),
    Wanted("Q4_K gemv 4096 x 4096, int8", "h200", None, 6, "llama.cpp, estimated", "quant",
           quantised(4096, 4096, activations="int8")),
    Wanted("histogram of 2^28 u8", "h200", None, moved(2**28, 3.8), "the goal", "histogram",
           lambda module: module.histogram(np.random.default_rng(0).integers(256, size=1 << 28, dtype=np.uint8), 256)),
)


def forecast_library(names: Sequence[str], long: bool) -> list[tuple[str, ...]]:
    """The rows of the second table; what is not in the library yet says so, and what was left out for its time."""
    rows: list[tuple[str, ...]] = []
    for one in LIBRARY:
        if not all(name in one.name for name in names):
            continue
        head = one.name, f"{one.gpu}{f' at {one.clock}' if one.clock else ''}", one.peer, f"{one.published:.1f}"
        try:
            module = import_module(f"ptxdsl.kernels.{one.module}")
        except ModuleNotFoundError:
            rows.append((*head, "not there", "", ""))
            continue
        if one.long and not long:
            rows.append((*head, "with --long", "", ""))
            continue
        with use("emulator"), forecast(one.gpu, clock=one.clock, sample=one.sample) as f:
            one.run(module)
        if names:
            print(f)
        time = f.seconds * 1e6
        rows.append((*head, f"{time:.1f}", f"{time / one.published:.2f}", f.binding.kind))
        print(*rows[-1], sep=", ", flush=True)
    return rows


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


PUBLISHED_HEADER = ("kernel", "GPU", "published by", "design", "us", "forecast us", "ratio", "bound by")
LIBRARY_HEADER = ("work", "GPU", "best published by", "us", "forecast us", "ratio", "bound by")


def rows_of_results(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """The rows of the first table."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        row, launch = one.row, one.found.launches[0]
        rows.append((
            row.name, f"{row.gpu}{f' at {row.clock}' if row.clock else ''}", row.peer, row.design,
            f"{row.published:.1f}", f"{one.predicted():.1f}", f"{one.predicted() / row.published:.2f}",
            launch.binding.kind,
        ))
    return rows


def summary(results: Sequence[Result]) -> list[str]:
    """What the first table says of the model."""
    judged = [one for one in results if one.row.design != OTHER]
    if not judged:
        return []
    errors = [abs(one.error()) for one in judged]
    left_out = [abs(one.error(fitted([other for other in judged if other is not one]))) for one in judged]
    middle, most = sorted(errors)[len(errors) // 2], max(errors)
    said = []
    said.append(
        f"{len(judged)} rows of the same or a close design: the error is {factor(mean(errors))} (geometric mean), "
        f"{factor(middle)} (median), {factor(most)} at most."
    )
    said.append(
        f"With the exponent fitted to the other rows (leave one out): {factor(mean(left_out))}. Fitted to all, the "
        f"exponent is {fitted(judged):.2f}; {EXPONENT} is set."
    )
    for kind in sorted({one.found.launches[0].binding.kind for one in judged}):
        rows = [one for one in judged if one.found.launches[0].binding.kind == kind]
        bar = spread(rows if len(rows) >= ENOUGH else judged)
        said.append(f"Bound by {kind}: {len(rows)} rows, error bar a factor of {bar:.2f} (set is {error_of(kind)}).")
    return said


def spread(results: Sequence[Result]) -> float:
    """The root mean square of the errors, as a factor."""
    return math.exp(math.sqrt(mean(one.error() ** 2 for one in results)))


def factor(error: float) -> str:
    return f"{(math.exp(error) - 1):.0%}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(published: str, library: str) -> None:
    """Put the tables into docs/forecast.md."""
    path = Path(__file__).parents[2] / "docs" / "forecast.md"
    text = path.read_text("utf-8")
    for name, made in (("published", published), ("library", library)):
        head, begin, rest = text.partition(f"<!-- {name} -->")
        _, end, tail = rest.partition("<!-- end -->")
        text = f"{head}{begin}\n{made}\n{end}{tail}"
    path.write_text(text, "utf-8")


def main(arguments: Sequence[str]) -> None:
    names = [argument for argument in arguments if not argument.startswith("--")]
    results = []
    for row in PUBLISHED:
        if all(name in row.name for name in names):
            results.append(Result(row, row.run(gpu=row.gpu, clock=row.clock)))
            if names:
                print(results[-1].found)
    rows, said = rows_of_results(results), summary(results)
    if rows:
        print(table(PUBLISHED_HEADER, rows), *said, sep="\n")
    library = forecast_library(names, "--long" in arguments)
    if library:
        print(table(LIBRARY_HEADER, library))
    if "--docs" in arguments:
        listed = "\n".join(f"- {text}" for text in said)
        write(f"{markdown(PUBLISHED_HEADER, rows)}\n\n{listed}", markdown(LIBRARY_HEADER, library))


if __name__ == "__main__":
    main(sys.argv[1:])
