"""Long work in pieces, on all cores: each piece's result is kept, so what was interrupted goes on where it was."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from .bare.tape import Tape

__all__ = ["Progress", "in_pieces"]

Progress = Callable[[str, int, int], None]
Work = Callable[[Tape, Sequence[Any]], Sequence[Any]]
_PIECE = 32
"""Cases, or modules, of a piece: as many as share what is loaded for one of them."""
_tape: Tape


def in_pieces(
    what: str, work: Work, tape: Tape, wanted: Sequence[Any], kept: Path, progress: Progress
) -> Iterator[tuple[Any, Any]]:
    """Each of those ``wanted``, with what ``work(tape, piece)`` gives for it.

    ``kept`` is a folder for the results of pieces; ``work`` is a function of a module, since other processes call it.
    """
    pieces = [wanted[at : at + _PIECE] for at in range(0, len(wanted), _PIECE)]
    kept.mkdir(parents=True, exist_ok=True)
    files = [kept / f"{number}.pickle" for number in range(len(pieces))]
    waiting = [number for number, file in enumerate(files) if not file.exists()]
    done = len(wanted) - sum(len(pieces[number]) for number in waiting)
    context, workers = multiprocessing.get_context("spawn"), min(os.cpu_count() or 1, len(waiting) or 1)
    with ProcessPoolExecutor(workers, context, _begin, (tape.folder,)) as pool:
        running = {pool.submit(_do, work, pieces[number], files[number]): number for number in waiting}
        try:
            for finished in as_completed(running):
                finished.result()
                done += len(pieces[running[finished]])
                progress(what, done, len(wanted))
        finally:
            pool.shutdown(cancel_futures=True)
    for piece, file in zip(pieces, files):
        yield from zip(piece, pickle.loads(file.read_bytes()))


def _begin(folder: Path) -> None:
    """In a new process; what kernels print is not wanted a second time."""
    global _tape  # noqa: PLW0603
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    _tape = Tape.load(folder)


def _do(work: Work, piece: Sequence[Any], file: Path) -> None:
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(work(_tape, piece)))
    part.replace(file)
