"""The templates of examples/ci: what GitHub and GitLab would run passes, on a machine without a GPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; the extra `test` has it")
ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "examples" / "ci"
INSTALLS = ("pip install", "sudo apt-get")


def commands(name: str) -> dict[str, list[str]]:
    """The commands of each job, but those that install something."""
    made: dict[str, Any] = yaml.safe_load((TEMPLATE / name).read_text("utf-8"))
    if "jobs" in made:
        jobs = {job: [step["run"] for step in what["steps"] if "run" in step] for job, what in made["jobs"].items()}
    else:
        jobs = {job: what["script"] for job, what in made.items() if "script" in what}
    assert all(any(line.startswith("pip install") for line in lines) for lines in jobs.values())
    return {job: [line for line in lines if not line.startswith(INSTALLS)] for job, lines in jobs.items()}


def plain(lines: list[str]) -> list[str]:
    """Commands without what differs by where the report goes, and which compilers there are."""
    return [re.sub(r" (--junitxml=\S+|--sarif > \S+|nvcc(?= ))", "", line) for line in lines]


def test_both_do_the_same() -> None:
    github, gitlab = commands("github-actions.yml"), commands("gitlab-ci.yml")
    assert github.keys() == gitlab.keys() == {"kernels", "foreign"}
    assert {job: plain(lines) for job, lines in github.items()} == {job: plain(lines) for job, lines in gitlab.items()}


def test_named_extras_and_files_are_there() -> None:
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    for name in ("github-actions.yml", "gitlab-ci.yml"):
        text = (TEMPLATE / name).read_text("utf-8")
        assert set(re.findall(r"ptxdsl\[(\w+)\]", text)) <= set(extras)
        assert all((TEMPLATE / file).is_file() for file in re.findall(r"\b\w+\.py\b", text))


@pytest.mark.slow
@pytest.mark.parametrize("job", ["kernels", "foreign"])
def test_commands(job: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(TEMPLATE, project)
    shutil.copytree(ROOT / "tests" / "corpus" / "ci", project / "build")  # what compile.py has made
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTXDSL_")}
    environment["PTXDSL_CACHE_DIR"] = os.environ["PTXDSL_CACHE_DIR"]
    environment.update(PATH=f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}", PYTHONPATH=str(ROOT))
    lines = [line.replace("-n auto", "-n0") for line in commands("github-actions.yml")[job]]
    for line in [line for line in lines if "compile.py" not in line]:
        bash = ["bash", "-euo", "pipefail", "-c", line]
        done = subprocess.run(bash, cwd=project, env=environment, capture_output=True)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        if "pytest" in line:
            assert re.search(rb"\b(8|24) passed\b", done.stdout) and b"skipped" not in done.stdout
