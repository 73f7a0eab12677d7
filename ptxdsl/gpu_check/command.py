"""``python -m ptxdsl gpu-check``: record what tests launch on the emulator, and repeat it on this GPU or on another."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import LaunchError
from .bare.command import report
from .bare.tape import Tape
from .preparing import MOST, check, merged, pack

__all__ = ["pack_into", "record", "run"]


def run(out: Path, limit: float, tests: Sequence[Path] | None = None) -> int:
    """Repeat on this machine's GPU what tests launch; the report goes into ``out``. The exit status."""
    from ..gpu.device import driver

    arch = f"sm_{driver().capability}"
    with tempfile.TemporaryDirectory(prefix="ptxdsl-gpu-check-") as place:
        folder = Path(place) / "packed"
        _prepare(folder, arch, tests, most=1 << 40)
        return report(folder / "launches", [sys.executable, str(folder / "replay.py")], out, limit)


def pack_into(folder: Path, arch: str, tests: Sequence[Path] | None = None) -> int:
    """Make a folder for a machine with a GPU of ``arch``; the exit status."""
    made = _prepare(folder, arch, tests, most=MOST)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    origins = len({case.test for case in made.cases})
    print(f"{len(made.cases)} launches of {origins} tests, {size / 2**20:.1f} MiB. Left out:")
    for reason, count in made.left_out.most_common():
        print(f"  {count:7} {reason}")
    print(f"on the machine with the GPU: python {folder / 'replay.py'}")
    return 0


def _prepare(out: Path, arch: str, tests: Sequence[Path] | None, most: int) -> Tape:
    check(out, arch)  # before the tests run, which takes minutes
    with tempfile.TemporaryDirectory(prefix="ptxdsl-gpu-check-") as place:
        parts = record(tests or [_own_tests()], Path(place) / "recorded")
        recorded = merged(parts, Path(place) / "merged")
        recorded.save()
        return pack(recorded, out, arch, most=most, progress=_progress)


def _own_tests() -> Path:
    folder = Path(__file__).parents[2] / "tests"
    if not (folder / "conftest.py").exists():
        raise LaunchError(
            f"there are no tests in {folder}; the repository has them", hint="run it in a clone, or name tests: --tests"
        )
    return folder


def record(tests: Sequence[Path], folder: Path) -> list[Path]:
    """Run tests and record their launches; the folders with those, one a process."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "ptxdsl.gpu_check.pytest_recorder",
        f"--gpu-check-record={folder}", *map(str, tests),
    ]
    if importlib.util.find_spec("xdist"):
        command += ["-n", "auto"]
    environment = {**os.environ, "PTXDSL_BACKEND": "emulator"}
    status = subprocess.run(command, check=False, env=environment).returncode
    found = sorted(path.parent for path in folder.glob("*/tape.json.z"))
    if not found:
        raise LaunchError(f"pytest ended with {status}, and no launch was recorded")
    if status:
        print("some tests failed, as told above; their launches are repeated all the same", file=sys.stderr)
    return found


def _progress(what: str, done: int, total: int) -> None:
    last = done == total
    print(f"{what}: {done} of {total}", end="\n" if last else "\r", file=sys.stderr, flush=True)
