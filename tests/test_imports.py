"""Dependencies run downwards only, and importing ptxdsl loads nothing heavy and takes no time.

The order is read from the source, imports under TYPE_CHECKING and within functions among them. An import within a
function may not go up either, with the exceptions listed here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ptxdsl"
LAYERS = [
    ["errors", "collector", "shown"],
    ["config", "types"],
    ["isa", "lenient"],
    ["ir"],
    ["operands"],
    ["signature"],
    ["text"],
    ["flow", "effects"],
    ["declared"],
    ["uses"],
    ["verify"],
    ["trace"],
    ["launch", "imaging"],
    ["emulator", "driver"],
    ["textures"],
    ["scalar_arguments"],
    ["binding"],
    ["specialised"],
    ["launchable"],
    ["foreign"],
    ["kernel"],
    ["math", "warp"],
    ["block"],
    ["bench"],
    ["kernels"],
    ["__main__", "pytest_plugin"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
HEAVY = (
    "llvmlite", "cuda", "ml_dtypes", "torch", "cupy", "jax",
    "ptxdsl.emulator", "ptxdsl.driver", "ptxdsl.trace", "ptxdsl.kernel",
)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below ``ptxdsl``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found.update({f"kernels.{p.stem}": p for p in (PACKAGE / "kernels").glob("*.py") if p.stem != "__init__"})
    found.pop("")
    return found


def imported(name: str, path: Path) -> set[str]:
    """The modules of ptxdsl that a module's source imports, as dotted names below ``ptxdsl``."""
    package = ["ptxdsl", *name.split(".")]
    if path.stem != "__init__":
        package.pop()
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{target}.{alias.name}" for alias in node.names}
    return {full[len("ptxdsl.") :] for full in found if full.startswith("ptxdsl.")}


@pytest.mark.parametrize(("name", "path"), modules().items(), ids=modules().keys())
def test_dependencies_run_downwards(name: str, path: Path) -> None:
    layer = name.partition(".")[0]
    assert layer in RANK, f"give `{layer}` a place in LAYERS"
    for target in sorted(imported(name, path)):
        other = target.partition(".")[0]
        if other in RANK and other != layer:
            assert RANK[other] < RANK[layer], f"{name} imports {target}, which stands beside or above it"


def test_kernels_use_only_the_public_api() -> None:
    import ptxdsl

    for path in sorted((PACKAGE / "kernels").glob("*.py")):
        for target in imported(f"kernels.{path.stem}", path):
            top = target.partition(".")[0]
            public = {"kernels", "bench", "block", "math", "warp", *ptxdsl.__all__}
            assert top in public, f"{path.name} imports {target}"


def modules_after(code: str) -> set[str]:
    """Every module that a fresh Python has loaded after ``code``."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy() -> None:
    loaded = modules_after("import ptxdsl")
    assert "ptxdsl" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_type_does_not_load_the_language() -> None:
    loaded = modules_after("from ptxdsl import f32, PtxError")
    assert "ptxdsl.types" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_language_loads_no_backend_nor_what_runs_programs() -> None:
    language = "from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, when"
    added = modules_after(f"import numpy\n{language}") - modules_after("import numpy")
    assert "ptxdsl.kernel" in added
    backends = ("llvmlite", "cuda", "ml_dtypes", "subprocess", "hashlib", "tempfile", "locale", "shutil")
    assert added.isdisjoint(backends)
    assert not any(name.startswith("ptxdsl.emulator") for name in added)
