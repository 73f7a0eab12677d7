"""What pip builds: every module of the tree, `kernels/` as ptxdsl.kernels, the data files, the marker for types."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import ptxdsl

ROOT = Path(__file__).parent.parent.parent


def sources() -> set[str]:
    """Every file that a wheel should have, by its path in it."""
    files = [path for path in (ROOT / "ptxdsl").rglob("*") if path.suffix in (".py", ".pyi", ".isa")]
    package = {path.relative_to(ROOT).as_posix() for path in files}
    kernels = {f"ptxdsl/{p.relative_to(ROOT).as_posix()}" for p in (ROOT / "kernels").rglob("*.py")}
    return package | kernels | {"ptxdsl/py.typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that nothing is left of an earlier build."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for folder in ("ptxdsl", "kernels"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = ["pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(out), str(copy)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    return next(out.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_has_every_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == sources()
    assert f"ptxdsl-{ptxdsl.__version__}.dist-info/licenses/LICENSE" in names


@pytest.mark.slow
def test_the_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import ptxdsl.isa, ptxdsl.kernels as kernels; "
        "print(ptxdsl.__file__, *kernels.__path__, len(ptxdsl.isa.lookup('add.f32')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "ptxdsl" / "__init__.py"), str(tmp_path / "ptxdsl" / "kernels"), "1"]


def test_kernels_are_a_subpackage() -> None:
    from ptxdsl import kernels

    assert kernels.__name__ == "ptxdsl.kernels"
    assert Path(kernels.__path__[0]).resolve() == (ROOT / "kernels").resolve()


def test_version_is_the_projects() -> None:
    assert metadata.version("ptxdsl") == ptxdsl.__version__
