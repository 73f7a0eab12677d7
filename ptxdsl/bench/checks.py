"""What a check of a kernel prints: what ran, where, how long it took, and how far it is from the reference.

The examples, the kernel library and the command line all report in these rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from ..kernel.backends import backend_name
from ..text_table import table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Row", "cells", "compare", "error_of", "report"]


class Row(NamedTuple):
    """One check: ``seconds`` of the launch, ``error`` as by :func:`error_of` and the most that is ``allowed``."""

    what: str
    backend: str
    seconds: float
    error: float
    allowed: float

    @property
    def ok(self) -> bool:
        """Whether the result is right."""
        return self.error <= self.allowed


def error_of(result: ArrayLike, expected: ArrayLike) -> float:
    """The largest difference, relative to the largest expected magnitude; infinity where one is NaN and one is not.

    >>> error_of([1.0, 2.5], [1.0, 2.0])
    0.25
    """
    import numpy as np

    got, want = np.broadcast_arrays(np.asarray(result, np.float64), np.asarray(expected, np.float64))
    if not got.size:
        return 0.0
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    scale = max(np.abs(want[np.isfinite(want)]).max(initial=0.0), np.finfo(np.float64).tiny)
    with np.errstate(invalid="ignore"):
        differences = np.where(same, 0.0, np.abs(got - want) / scale)
    return float(np.nan_to_num(differences, nan=np.inf).max())


def compare(
    what: str, launch: Callable[[], object], result: ArrayLike, expected: ArrayLike, allowed: float
) -> Row:
    """Run ``launch``, which fills the host array ``result``, and compare that with what is ``expected``."""
    start = perf_counter()
    launch()
    seconds = perf_counter() - start
    return Row(what, backend_name(), seconds, error_of(result, expected), allowed)


def cells(row: Row, first: Row | None = None) -> tuple[str, ...]:
    """A row as the text of a table's cells."""
    times = [f"{r.seconds * 1e3:.2f}" for r in (first, row) if r is not None]
    return (row.what, row.backend, *times, f"{row.error:.2g}", f"{row.allowed:.2g}", "ok" if row.ok else "WRONG")


def report(row: Row) -> None:
    """Print a row and leave the program, with 1 if the result is wrong."""
    print(table(("what", "backend", "ms", "error", "allowed", ""), [cells(row)]))
    sys.exit(0 if row.ok else 1)
