"""A GPU for these tests: the stand-in of driver_standin.py."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import driver_shim
import pytest
from driver_standin import Standin, install

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
