"""A GPU for these tests: the stand-in of driver_standin.py.

Frameworks parse source as they trace, and pytest parses what is imported; before 3.11.8, Python fails when two threads
parse at once (gh-106905). So what the emulator's compiling thread would import is imported here.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import driver_shim
import pytest
from driver_standin import Standin, install

import ptxdsl.emulator.jit.compilation  # noqa: F401
from ptxdsl.gpu import device


@pytest.fixture
def cu() -> Iterator[Standin]:
    """A machine with a GPU, of which all memory is given back in the end."""
    problem = driver_shim.missing()
    if problem:
        pytest.skip(problem)
    with install(Standin()) as standin:
        yield standin
        gc.collect()
        for gpu in device.known():
            gpu.synchronize()
            gpu.memory.trim()
            gpu.synchronize()
        assert not standin.memory
