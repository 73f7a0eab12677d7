"""``python -m ptxdsl gpu-check``: record what tests launch on the emulator, and repeat it on this GPU or on another."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
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
        _prepare(folder, arch, tests, Path(place), most=1 << 40)
        return report(folder / "launches", [sys.executable, str(folder / "replay.py")], out, limit)


def pack_into(folder: Path, arch: str, tests: Sequence[Path] | None = None) -> int:
    """Make a folder for a machine with a GPU of ``arch``; the exit status."""
    place = folder.with_name(f"{folder.name}.part")
    made = _prepare(folder, arch, tests, place, most=MOST)
    shutil.rmtree(place)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    origins = len({case.test for case in made.cases})
    print(f"{len(made.cases)} launches of {origins} tests, {size / 2**20:.1f} MiB. Left out:")
    for reason, count in made.left_out.most_common():
        print(f"  {count:7} {reason}")
    print(f"on the machine with the GPU: python {folder / 'replay.py'}")
    return 0


def _prepare(out: Path, arch: str, tests: Sequence[Path] | None, place: Path, most: int) -> Tape:
    check(out, arch)  # before the tests run, which takes minutes
    return pack(_recorded([*(tests or [_own_tests()])], place), out, arch, most=most, kept=place, progress=_Progress())


def _recorded(tests: Sequence[Path], place: Path) -> Tape:
    """What tests launch, each launch but once, recorded in ``place`` or found there from an earlier run."""
    whole, note = place / "recorded", place / "tests.txt"
    asked = "".join(f"{path.resolve()}\n" for path in tests)
    if (whole / "tape.json.z").exists():
        if note.read_text("utf-8") != asked:
            raise LaunchError(f"{place} has what other tests launch: {note}", hint=f"remove it: `rm -r {place}`")
        print(f"going on with what was recorded before; remove {place} to record anew", file=sys.stderr)
        return Tape.load(whole)
    parts = place / "parts"
    for folder in (parts, whole):
        shutil.rmtree(folder, ignore_errors=True)
    tape = merged(record(tests, parts), whole)
    note.write_text(asked, "utf-8")
    tape.save()
    shutil.rmtree(parts)
    return tape


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


class _Progress:
    """A line that says how far it is, now and then."""

    shown = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if time.monotonic() > self.shown + 10 or done == total:
            self.shown = time.monotonic()
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)
