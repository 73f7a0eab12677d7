"""What pip builds: every module of the tree, `kernels/` as ptxdsl.kernels, the data files, the marker for types."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import ptxdsl

ROOT = Path(__file__).parent.parent


def sources() -> set[str]:
    """Every file that a wheel should have, by its path in it."""
    files = [path for path in (ROOT / "ptxdsl").rglob("*") if path.suffix in (".py", ".pyi", ".isa")]
    package = {path.relative_to(ROOT).as_posix() for path in files}
    kernels = {f"ptxdsl/{p.relative_to(ROOT).as_posix()}" for p in (ROOT / "kernels").rglob("*.py")}
    return package | kernels | {"ptxdsl/py.typed"}


@pytest.mark.slow
def test_the_wheel_has_every_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == sources()
    folder = f"ptxdsl-{ptxdsl.__version__}.dist-info"
    assert f"{folder}/licenses/LICENSE" in names


def test_kernels_are_a_subpackage() -> None:
    from ptxdsl import kernels

    assert kernels.__name__ == "ptxdsl.kernels"
    assert Path(kernels.__path__[0]).resolve() == (ROOT / "kernels").resolve()


def test_version_is_the_projects() -> None:
    assert metadata.version("ptxdsl") == ptxdsl.__version__
