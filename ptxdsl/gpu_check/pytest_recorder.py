"""``pytest -p ptxdsl.gpu_check.pytest_recorder --gpu-check-record=FOLDER``: record the launches that tests make.

Each process of ``pytest -n`` records in a folder of its own below that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bare.tape import Tape
from .recording import Recorder

__all__ = ["RECORDER", "pytest_addoption", "pytest_runtest_setup", "pytest_runtestloop"]

RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
"""Where the config keeps the recorder of this process, while there is one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("ptxdsl")
    group.addoption("--gpu-check-record", type=Path, metavar="FOLDER", help="record the launches on the emulator")
    group.addoption("--gpu-check-each", type=int, default=24, metavar="N", help="at most N launches of a test")


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Record while the tests run."""
    folder = session.config.getoption("gpu_check_record")
    if folder is None:
        return (yield)
    tape = Tape(folder.resolve() / os.environ.get("PYTEST_XDIST_WORKER", "main"))
    recorder = session.config.stash[RECORDER] = Recorder(tape, each=session.config.getoption("gpu_check_each"))
    try:
        with recorder.installed():
            return (yield)
    finally:  # what was recorded until somebody interrupts it, too
        if tape.cases:
            tape.save()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say whose launches follow."""
    recorder = item.config.stash.get(RECORDER, None)
    if recorder is not None:
        recorder.test = item.nodeid
