"""Type checkers find the package as a user has it, and accept right kernels: the examples and user_kernels.py."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl

ROOT = Path(__file__).parents[2]
OURS = Path(__file__).with_name("user_kernels.py")
WRONG = """
from ptxdsl import Ptr, f32, ptx, ptx_kernel

@ptx_kernel
def k(x: Ptr[f32]) -> None:
    x[0] = ptx.fma.rm.f23(x[0], x[1], x[2])
    ptx.tidd.x

k.ptxx()
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a user, away from our settings."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copy(OURS, folder)
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "wrong.py").write_text(WRONG)
    return folder


def mypy(folder: Path, *files: str) -> str:
    """What ``mypy --strict`` says of a user's files, with ptxdsl found as installed packages are."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(folder / "cache"), *files]
    environment = {"MYPYPATH": str(Path(ptxdsl.__file__).parents[1])}
    done = subprocess.run(
        [*command, "--follow-imports=silent"], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_mypy(user: Path) -> None:
    examples = [path.relative_to(user).as_posix() for path in sorted((user / "examples").glob("*.py"))]
    *lines, last = mypy(user, OURS.name, "wrong.py", *examples).splitlines()
    assert [re.sub(r"_fma_\d+", "_fma_N", line) for line in lines] == [
        'wrong.py:6: error: "_fma_N" has no attribute "f23"  [attr-defined]',
        'wrong.py:7: error: "Namespace" has no attribute "tidd"; maybe "tid"?  [attr-defined]',
        'wrong.py:9: error: "Kernel" has no attribute "ptxx"  [attr-defined]',
    ]
    assert last == f"Found 3 errors in 1 file (checked {len(examples) + 2} source files)"


@pytest.mark.slow
def test_pyright(user: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed: `npm install -g pyright`")
    (user / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{Path(ptxdsl.__file__).parents[1].as_posix()}"]}}')
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable, OURS.name, *map(str, sorted((user / "examples").glob("*.py")))],
        cwd=user, capture_output=True, text=True,
    )
    assert done.stdout.splitlines()[-1] == "0 errors, 0 warnings, 0 informations"


def test_the_corpus_is_right(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location(OURS.stem, OURS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = module.main(tmp_path)
    assert all((results[name] == results[name]).all() for name in ("helpers", "control"))
