"""Dependencies run one way, in circles nowhere, and importing ptxdsl loads nothing heavy and takes no time.

Every import counts: those of a module, those within functions, those under TYPE_CHECKING. ARCHITECTURE.md explains the
order.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ptxdsl"
LAYERS = [
    ["html_page"],
    ["errors", "locks"],
    ["collector", "executed_lines", "options", "text_table"],
    ["config", "types"],
    ["tracebacks"],
    ["isa", "machine_code"],
    ["ir"],
    ["analysis", "text"],
    ["verify"],
    ["language"],
    ["launch"],
    ["emulator", "gpu"],
    ["forecasting"],
    ["timelines"],
    ["kernel"],
    ["frameworks"],
    ["jax", "torch"],
    ["grid", "math", "warp"],
    ["cluster", "tiles"],
    ["mbarrier", "mma"],
    ["pipeline", "tcgen05", "tma", "wgmma"],
    ["block"],
    ["bench", "dask"],
    ["testing", "tuning"],
    ["kernels"],
    ["checking", "coverage", "debug_adapter", "gpu_check"],
    ["pytest_plugin", "__main__"],
]
EMULATOR = [
    ["machine"],
    ["semantics"],
    ["analysis"],
    ["rewrite"],
    ["instructions"],
    ["codegen"],
    ["jit"],
    ["runtime"],
    ["sanitizer"],
    ["program"],
    ["tools"],
    ["debugger", "outcomes"],
]
ON_DEMAND = (
    "emulator", "gpu", "forecasting", "analysis", "text", "verify", "launch.arguments", "launch.device_array",
    "isa.generate", "kernels", "kernel.device_arrays", "launch.foreign_arguments", "kernel.ptx_module",
    "language.foreign_names", "language.introspection.memo_tables", "language.rules.changed_lines",
    "language.rules.state_reads", "html_page", "kernel.report",
)
"""What a function may import for itself, since importing the language does not need it: the backends, and what only
the first launch, foreign PTX, numpy's arrays, or the few regions that change Python state and errors need.
"""
INSIDE_THE_EMULATOR = (
    "text", "emulator.instructions", "emulator.machine.texture_pool", "emulator.rewrite", "emulator.codegen",
    "emulator.jit", "emulator.sanitizer", "emulator.tools", "emulator.runtime.cluster_pool", "emulator.runtime.events",
    "emulator.analysis.warp_rows", "verify",
)
"""The same for modules of the emulator: what a kernel that is on disk does not need (parser, rewriting, lowering), what
needs LLVM, what observes a launch, what few launches need (textures, clusters, faults, calls of the system, odd rows),
and what foreign PTX needs."""
ENTRY_POINTS = ("__main__", "coverage", "pytest_plugin")
"""Commands and options, each of which imports what it needs."""
HEAVY = (
    "llvmlite", "cuda", "ml_dtypes", "torch", "cupy", "jax",
    "ptxdsl.emulator", "ptxdsl.gpu", "ptxdsl.language", "ptxdsl.kernel",
)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below ``ptxdsl``."""
    found = {}
    linked = (PACKAGE / "kernels").rglob("*.py")  # a link, which rglob does not follow before Python 3.13
    for path in sorted({*PACKAGE.rglob("*.py"), *linked}):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found.pop("")
    return found


MODULES = modules()


def imports(name: str, path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """The modules of ptxdsl that a module's source imports, as dotted names below ``ptxdsl``, and the statements."""
    package = ["ptxdsl", *name.split(".")]
    if path.stem != "__init__":
        package.pop()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            targets = [f"{target}.{alias.name}" for alias in node.names]
        else:
            continue
        for full in targets:
            if full.startswith("ptxdsl."):
                inner = full[len("ptxdsl.") :]
                yield inner if inner in MODULES or "." not in inner else inner.rpartition(".")[0], node


def imported(name: str, path: Path) -> set[str]:
    return {target for target, _ in imports(name, path)} - {name}


def rank(name: str) -> tuple[int, int] | None:
    """The layer of a module, and within the emulator its folder's."""
    first, _, rest = name.partition(".")
    outer = next((number for number, names in enumerate(LAYERS) if first in names), None)
    inner = -1
    if first == "emulator" and rest:
        inner = next((number for number, names in enumerate(EMULATOR) if rest.partition(".")[0] in names), -2)
    return None if outer is None or inner == -2 else (outer, inner)


@pytest.mark.parametrize(("name", "path"), MODULES.items(), ids=MODULES.keys())
def test_dependencies_run_downwards(name: str, path: Path) -> None:
    here = rank(name)
    assert here is not None, f"give `{name}` a place in LAYERS"
    for target in sorted(imported(name, path)):
        other = rank(target)
        if other is None or target.split(".")[:2] == name.split(".")[:2] or name == "emulator":
            continue
        if name.partition(".")[0] == target.partition(".")[0] != "emulator":
            continue
        assert other < here, f"{name} imports {target}, which stands beside or above it"


def test_no_import_circles() -> None:
    graph = {name: sorted(imported(name, path) & MODULES.keys()) for name, path in MODULES.items()}
    assert circles(graph) == []


def circles(graph: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(at: str) -> None:
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in graph[at]:
            if to not in index:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == index[at]:
            group = stack[stack.index(at) :]
            del stack[stack.index(at) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def late(path: Path) -> set[ast.stmt]:
    """The import statements within functions."""
    functions = [
        node for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return {inner for node in functions for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom))}


@pytest.mark.parametrize(("name", "path"), MODULES.items(), ids=MODULES.keys())
def test_late_imports_are_of_what_is_loaded_on_demand(name: str, path: Path) -> None:
    lines = set() if name in ENTRY_POINTS else {node.lineno for node in late(path)}
    allowed = INSIDE_THE_EMULATOR if name.startswith("emulator.") else ON_DEMAND
    for target, node in imports(name, path):
        if node.lineno in lines and not f"{target}.".startswith(tuple(f"{each}." for each in allowed)):
            raise AssertionError(f"{name}:{node.lineno} imports {target} within a function, not at the module's head")


def test_kernels_use_only_the_public_api() -> None:
    import ptxdsl

    public = {"kernels", *ptxdsl._SUBMODULES, *ptxdsl.__all__}
    for name, path in MODULES.items():
        if name.partition(".")[0] == "kernels":
            for target in imported(name, path):
                assert target.partition(".")[0] in public, f"{name} imports {target}"


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
