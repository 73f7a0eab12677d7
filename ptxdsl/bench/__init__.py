"""Measuring kernels: whether they are right, how long they take, and what that is worth."""

from __future__ import annotations

from ..text_table import table
from .checks import Row, cells, compare, error_of, report

__all__ = ["Row", "cells", "compare", "error_of", "report", "table"]
