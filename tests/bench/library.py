"""The kernel library beside torch, or beside numpy where torch is not installed: ``python tests/bench/library.py``.

On a GPU both work there, and the times are those of events with a cold L2 cache; without one the library runs in the
emulator and the peer on the CPU, with one thread. Every result is checked; a ratio is that of medians of interleaved
rounds. ``--gpu`` takes bfloat16 and the sizes at which such kernels are published.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from ptxdsl.bench import error_of, side_by_side, table
from ptxdsl.kernels import elementwise, linalg, loss, norm, reference

__all__ = ["main"]


class Case(NamedTuple):
    """A function of the library and its peer, on the same arrays."""

    name: str
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    numpy: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def cases(torch: Any, rows: int, columns: int, side: int) -> list[Case]:
    """Those that are measured; of torch without torch nothing is called."""
    functional = torch and torch.nn.functional
    wide = (rows, columns)
    return [
        Case("elementwise.add", elementwise.add, lambda x, y: x + y, np.add, (wide, wide)),
        Case("elementwise.silu", elementwise.silu, lambda x: functional.silu(x), reference.silu, (wide,)),
        Case("elementwise.swiglu", elementwise.swiglu, lambda x, y: functional.silu(x) * y,
             lambda x, y: reference.silu(x) * y, (wide, wide)),
        Case("norm.rms_norm", norm.rms_norm, lambda x, w: functional.rms_norm(x, (columns,), w, 1e-6),
             lambda x, w: reference.rms_norm(x, w, 1e-6), (wide, (columns,))),
        Case("norm.layer_norm", norm.layer_norm, lambda x, w, b: functional.layer_norm(x, (columns,), w, b),
             reference.layer_norm, (wide, (columns,), (columns,))),
        Case("norm.softmax", norm.softmax, lambda x: torch.softmax(x, -1), reference.softmax, (wide,)),
        Case("linalg.matmul", linalg.matmul, lambda a, b: a @ b, np.matmul, ((side, side), (side, side))),
        Case("linalg.gemv", linalg.gemv, lambda a, x: a @ x, np.matmul, (wide, (columns,))),
        Case("linalg.transpose", linalg.transpose, lambda x: x.T.contiguous(), lambda x: x.T.copy(), (wide,)),
    ]


def _entropy(torch: Any, rows: int, columns: int, rng: np.random.Generator) -> Case:
    target: Any = rng.integers(0, columns, rows)
    given = target if torch is None else torch.from_numpy(target)
    return Case(
        "loss.cross_entropy", lambda x: loss.cross_entropy(x, given.to(x.device) if torch else given),
        lambda x: torch.nn.functional.cross_entropy(x, given.to(x.device)),
        lambda x: np.mean(-np.log(reference.softmax(x))[np.arange(rows), target]), ((rows, columns),),
    )


def measured(case: Case, torch: Any, dtype: str, device: str, rng: np.random.Generator) -> tuple[str, ...]:
    """A row of the table; SystemExit where the result is wrong."""
    arrays: list[Any] = [rng.standard_normal(shape).astype(np.float32) for shape in case.shapes]
    peer = case.numpy
    if torch is not None:
        arrays = [torch.from_numpy(array).to(device, getattr(torch, dtype)) for array in arrays]
        peer = case.torch

    def host(result: Any) -> Any:
        return result if torch is None else result.float().cpu().numpy()

    wide = [host(array).astype(np.float64) for array in arrays]
    error, allowed = error_of(host(case.ours(*arrays)), case.numpy(*wide)), 2e-2 if dtype == "bfloat16" else 1e-5
    if not error <= allowed:
        raise SystemExit(f"{case.name}: a wrong result, error {error:.2g}")
    backend = "gpu" if device == "cuda" else "emulator"
    found = side_by_side({"ours": lambda: case.ours(*arrays), "peer": lambda: peer(*arrays)}, backend=backend)
    ours, theirs = found["ours"].median, found["peer"].median
    return case.name, f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}", f"{ours / theirs:.2f}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="bfloat16 tensors on a GPU, 2048 x 8192 and 4096^3")
    options = parser.parse_args()
    torch: Any = import_module("torch") if find_spec("torch") else None
    rows, columns, side = (2048, 8192, 4096) if options.gpu else (256, 1024, 256)
    dtype, device = ("bfloat16", "cuda") if options.gpu else ("float32", "cpu")
    if torch is not None and not options.gpu:
        torch.set_num_threads(1)
    rng = np.random.default_rng()
    found = [
        measured(case, torch, dtype, device, rng)
        for case in [*cases(torch, rows, columns, side), _entropy(torch, rows, columns, rng)]
    ]
    where = "GPU" if options.gpu else "emulator, one thread for the peer"
    print(f"{dtype}, {rows} x {columns}, products {side}^3, {where}")
    print(table(("function", "us", "torch us" if torch is not None else "numpy us", "ratio"), found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
