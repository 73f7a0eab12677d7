"""The documentation is right: README's Python and commands, and every docstring's example."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxdsl
from ptxdsl import use

ROOT = Path(__file__).parent.parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
README = (ROOT / "README.md").read_text("utf-8")
PAGES = (
    "README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "ptxdsl/isa/README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
    *(f"docs/{path.parent.name}/{path.name}" for path in sorted((ROOT / "docs").glob("*to*/*.md"))),
)


def modules() -> list[str]:
    """All but those of frameworks and of coverage.py, which need not be installed: these have tests of their own."""
    names = [module.name for module in pkgutil.walk_packages(ptxdsl.__path__, "ptxdsl.", onerror=lambda _: None)]
    return ["ptxdsl", *(name for name in names if not re.match(r"ptxdsl\.(__main__|torch|jax|coverage\.)", name))]


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    names = {"np": np, **{n: getattr(ptxdsl, n) for n in ptxdsl.__all__}}
    assert doctest.testmod(module, extraglobs={**names, **vars(module)}, optionflags=FLAGS).failed == 0


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, examples = [], []
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        (examples if block.startswith(">>>") else code).append(block)
    assert code and examples
    script = tmp_path / "readme.py"
    script.write_text("\n".join(code))
    names: dict[str, object] = {"__file__": str(script)}
    exec(compile(script.read_text(), str(script), "exec"), names)
    result = names["y"]
    assert isinstance(result, np.ndarray) and (result == 5).all()

    test = doctest.DocTestParser().get_doctest("\n".join(examples), names, "README", str(ROOT / "README.md"), 0)
    assert len(test.examples) >= 3
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


def test_the_picture_of_the_readme(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The profile of the kernel that stands there; `pytest --update-golden` draws it again."""
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "p.plot(" in block)
    lines = [line[4:] for line in example.splitlines() if line.startswith((">>> ", "... "))]
    heads = ["from ptxdsl import Ptr, f32, ptx, ptx_kernel, shared, u32", "import numpy as np", ""]
    script, made = tmp_path / "transpose.py", tmp_path / "transpose.png"
    script.write_text("\n".join([*heads, *lines]).replace('"transpose.png"', repr(str(made))), "utf-8")
    exec(compile(script.read_text("utf-8"), str(script), "exec"), {"__name__": "transpose"})
    kept = ROOT / "docs" / "pictures" / "transpose.png"
    if request.config.getoption("update_golden"):
        kept.write_bytes(made.read_bytes())
    assert pixels(kept) == pixels(made), "draw it again: pytest --update-golden tests/docs/test_docs.py"


def pixels(path: Path) -> bytes:
    """The pixels of a PNG: what is compressed may differ by the library."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return zlib.decompress(packed)


ELSEWHERE = ("docs/frameworks.md",)
"""What needs more than ptxdsl: tests/frameworks runs it."""


def examples_of(page: str) -> list[str]:
    return re.findall(r"```python\n(>>>.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


WITH_EXAMPLES = [page for page in PAGES if page.startswith("docs/") and page not in ELSEWHERE and examples_of(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_of_a_page(page: str) -> None:
    test = doctest.DocTestParser().get_doctest("\n".join(examples_of(page)), {}, page, str(ROOT / page), 0)
    with use("emulator"):
        assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


def test_readme_commands_are_one_line_each() -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 2
    assert all(line.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ") for line in commands)
    assert commands[0].endswith("&& .venv/bin/python -m ptxdsl examples")
    assert commands[1].endswith("&& .venv/bin/python -m pytest -q -n auto")


def test_every_setting_extra_and_command_has_its_line() -> None:
    from ptxdsl import __main__
    from ptxdsl.config import Config

    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    named = re.findall(r"^\| `(PTXDSL_[A-Z_]+)` \|", page, re.MULTILINE)
    assert named == [f"PTXDSL_{name.upper()}" for name, each in Config.__dataclass_fields__.items() if each.metadata]
    project = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.optional-dependencies]")[2]
    extras = re.findall(r"^(\w+) = \[", project.partition("\n\n")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(?:ptxdsl)?\[(\w+)\]`", page)) == sorted(extras)
    commands = re.findall(r"^    ([\w-]+) ", __main__.__doc__ or "", re.MULTILINE)
    assert re.findall(r"^\| `([a-z-]+)[^`]*` \|", page.partition("## Commands")[2], re.MULTILINE) == commands


def headings(path: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_widths(page: str) -> None:
    path, code = ROOT / page, False
    for line in path.read_text("utf-8").splitlines():
        code ^= line.startswith("```")
        assert code or line.startswith("|") or len(line) <= 120, line
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)]*)\)", prose):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.is_file() and (not anchor or anchor in headings(target)), link


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    """Files and folders in backquotes, by the end of their paths."""
    tops = ("ptxdsl", "docs", "tests", "kernels", "examples", ".ci")
    tracked = (path for top in tops for path in (ROOT / top).rglob("*"))
    there = {path.relative_to(ROOT).as_posix() for path in (*tracked, *ROOT.iterdir())}
    for name in re.findall(r"`(?:python )?([\w./-]+(?:\.(?:py|pyi|md|isa|toml)|/))`", (ROOT / page).read_text("utf-8")):
        end = name.removeprefix("../").rstrip("/")
        assert any(f"/{path}".endswith(f"/{end}") for path in there), name
