"""Measuring kernels: whether they are right, and how long they take."""

from __future__ import annotations

from ..text_table import table
from .checks import Row, cells, compare, error_of, report
from .measurement import Measurement, Ratio
from .measurements import Measurements
from .timing import do_bench, side_by_side

__all__ = [
    "Measurement", "Measurements", "Ratio", "Row", "cells", "compare", "do_bench", "error_of", "report",
    "side_by_side", "table",
]
