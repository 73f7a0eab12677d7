"""GPUs for these tests: the stand-in of driver_standin.py, and the one of ``pytest --backend gpu``."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import driver_shim
import pytest
from driver_standin import install
from image_standin import ImageStandin

from ptxdsl import use
from ptxdsl.gpu import device
from ptxdsl.gpu.device import Driver, driver


@pytest.fixture
def cu(monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageStandin]:
    """A machine with a GPU, of which everything is given back in the end; threads take it too."""
    monkeypatch.delenv("PTXDSL_BACKEND", raising=False)
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


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Driver:
    """The GPU that the tests run on, or the stand-in that the emulator is behind."""
    if request.config.getoption("backend") != "gpu":
        pytest.skip("needs a GPU: pytest --backend gpu")
    return driver()


@pytest.fixture
def real_gpu(request: pytest.FixtureRequest, gpu: Driver) -> Driver:
    """The GPU that the tests run on."""
    if request.config.getoption("gpu_standin"):
        pytest.skip("needs a GPU: the stand-in has no texture units, no time, and nothing in other processes")
    return gpu
