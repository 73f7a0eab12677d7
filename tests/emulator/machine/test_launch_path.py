"""A launch stays short: how many functions a reader has to follow, and in how many files."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "launch_path.py"


def test_a_warm_launch_calls_few_functions_in_few_files() -> None:
    found = runpy.run_path(str(SCRIPT))["calls"]()
    assert len(found) <= 45, found
    assert len({file for file, _ in found}) <= 16, found
