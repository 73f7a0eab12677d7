"""A GPU for these tests: the stand-in of driver_standin.py."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from driver_standin import Standin, install

from ptxdsl import use
from ptxdsl.gpu import device


@pytest.fixture
def cu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    """A machine with a GPU, of which every allocation is given back in the end."""
    standin = install(monkeypatch, Standin())
    with use("gpu"):
        yield standin
    gc.collect()
    assert not standin.memory
    device._bindings.cache_clear()
    device._driver.cache_clear()
