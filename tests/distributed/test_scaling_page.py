"""The programs of docs/scaling.md run, as files, with the packages that they name."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
PACKAGES = ("joblib", "distributed", "ray")


@pytest.mark.parametrize(("program", "package"), list(zip(PROGRAMS, PACKAGES)), ids=PACKAGES)
def test_program(program: str, package: str, tmp_path: Path) -> None:
    assert len(PROGRAMS) == len(PACKAGES) and f"import {package}" in program.replace("from", "import")
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:  # the folder of these tests is called as one of them
        pytest.skip("needs pip install 'ptxdsl[distributed]'")
    script = tmp_path / "program.py"
    script.write_text(program)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    if package == "distributed":
        assert 0 <= float(done.stdout.split()[-1]) < 1e-6


def test_the_extra_of_the_page_exists() -> None:
    extras = PAGE.parents[1] / "pyproject.toml"
    assert re.findall(r"ptxdsl\[(\w+)\]", PAGE.read_text("utf-8")) == ["distributed"]
    assert re.search(r"^distributed = \[", extras.read_text("utf-8"), re.MULTILINE)
