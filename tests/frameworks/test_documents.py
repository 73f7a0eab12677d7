"""What the documentation says of frameworks runs: the page, the docstrings, the examples."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ptxdsl

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'ptxdsl[jax]'")
torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ptxdsl[torch]'")

ROOT = Path(__file__).parent.parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
EXAMPLES = sorted((ROOT / "examples/frameworks").glob("*.py"))
MODULES = ["torch", "jax", *(f"jax.{path.stem}" for path in sorted((ROOT / "ptxdsl/jax").glob("[a-z]*.py")))]


def test_the_page() -> None:
    path = ROOT / "docs/frameworks.md"
    examples = re.findall(r"```python\n(>>>.*?)```", path.read_text("utf-8"), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(examples), {"ptxdsl": ptxdsl}, path.name, str(path), 0)
    assert len(test.examples) >= 20
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module: ModuleType = importlib.import_module(f"ptxdsl.{name}")
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


def test_public_names() -> None:
    for name in ("torch", "jax"):
        assert getattr(ptxdsl, name) is sys.modules[f"ptxdsl.{name}"]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.slow
def test_examples(path: Path, tmp_path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < 100
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("ok") and " nan" not in done.stdout
