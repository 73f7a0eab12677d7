"""A GPU for these tests: the stand-in of driver_standin.py."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import driver_shim
import pytest
from driver_standin import install
from image_standin import ImageStandin

from ptxdsl import use
from ptxdsl.gpu import device


@pytest.fixture
def cu() -> Iterator[ImageStandin]:
    """A machine with a GPU, of which everything is given back in the end."""
    problem = driver_shim.missing()
    if problem:
        pytest.skip(problem)
    gc.freeze()  # what other tests left behind is not looked at in the end
    with install(ImageStandin()) as standin:
        with use("gpu"):
            yield standin
        gc.collect()
        gc.unfreeze()
        if standin.sticky:  # after a fault nothing can be given back
            return
        standin.fail.clear()
        for gpu in device.known():
            gpu.synchronize()
            gpu.memory.trim()
            gpu.synchronize()
        left = (standin.memory, standin.pinned, standin.arrays, standin.mipmaps, standin.textures, standin.surfaces)
        assert not any(left)
