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


def sources_in(copy: Path) -> Path:
    """A copy of the sources, so that nothing is left of an earlier build."""
    for folder in ("ptxdsl", "kernels"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def built(sources: Path, out: Path) -> Path:
    """The wheel of sources."""
    command = ["pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(out), str(sources)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(sources_in(tmp_path_factory.mktemp("sources")), tmp_path_factory.mktemp("wheel"))


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


@pytest.mark.slow
def test_a_checkout_without_links_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    copy = sources_in(tmp_path / "sources")
    (copy / "ptxdsl" / "kernels").unlink()
    (copy / "ptxdsl" / "kernels").write_text("../kernels")  # as git on Windows leaves it
    found = built(copy, tmp_path)
    assert set(zipfile.ZipFile(found).namelist()) == set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_an_editable_install_is_a_path_for_type_checkers(tmp_path: Path) -> None:
    copy = sources_in(tmp_path / "sources")
    code = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=copy, capture_output=True, check=True)
    archive = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    paths = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert len(paths) == 1 and paths[0].endswith(".pth")
    assert archive.read(paths[0]).decode().strip() == str(copy)


def test_kernels_are_a_subpackage() -> None:
    from ptxdsl import kernels

    assert kernels.__name__ == "ptxdsl.kernels"
    assert Path(kernels.__path__[0]).resolve() == (ROOT / "kernels").resolve()


def test_version_is_the_projects() -> None:
    assert metadata.version("ptxdsl") == ptxdsl.__version__
