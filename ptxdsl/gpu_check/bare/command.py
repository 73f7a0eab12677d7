"""``python replay.py``: repeat the launches of this folder on the GPU of this machine, and report."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .children import NoGpu, child, replay
from .playing import Result
from .report import failed, summary, table
from .tape import Tape

__all__ = ["main", "report"]


class _Progress:
    """A line that says how far it is."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.shown = 0.0

    def __call__(self, number: int, total: int, result: Result) -> None:
        self.counts[result.verdict] += 1
        terminal = sys.stderr.isatty()
        if time.monotonic() < self.shown + (0.2 if terminal else 10) and number + 1 < total:
            return
        self.shown = time.monotonic()
        said = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        print(f"{sum(self.counts.values())} of {total} launches: {said}", end="\r" if terminal else "\n",
              file=sys.stderr, flush=True)


def report(folder: Path, command: Sequence[str], out: Path, limit: float) -> int:
    """Repeat what is in a folder, print the table, and write it and the JSON into ``out``; the exit status."""
    try:
        about, results = replay(folder, command, limit=limit, progress=_Progress())
    except NoGpu as error:
        print(f"no GPU to repeat the launches on: {error}", file=sys.stderr)
        return 2
    made = summary(Tape.load(folder), about, results)
    text = table(made)
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu_check.json").write_text(json.dumps(made, indent=1), "utf-8")
    (out / "gpu_check.txt").write_text(text, "utf-8")
    print(text)
    print(f"all of it: {out / 'gpu_check.json'}")
    return int(failed(made))


def main(script: str, arguments: Sequence[str]) -> int:
    """The command. ``script`` is the file that calls it."""
    folder = Path(script).resolve().parent
    parser = argparse.ArgumentParser(Path(script).name, description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="where gpu_check.json and gpu_check.txt go")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that a launch may take")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(Path(options.child[0]), int(options.child[1]))
        return 0
    return report(folder / "launches", [sys.executable, str(Path(script).resolve())], options.out, options.limit)
