"""What the tests of the library's functions share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptxdsl.config import override
from ptxdsl.kernels import arguments


@pytest.fixture
def sanitized() -> Iterator[None]:
    """Every check of the sanitizer on all launches of a test."""
    with override(sanitize="all", backend="emulator"):
        yield


@pytest.fixture(params=[1, 2, 3])
def scheduled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Another order of warps and blocks for the launches of a test, for each of three seeds."""
    with override(seed=request.param, backend="emulator"):
        yield


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody has written is NaN: results, states, and the sums that tensor copies add to."""
    made = arguments.empty_like

    def filled(*args: Any) -> Any:
        array = made(*args)
        array[...] = np.nan
        return array

    monkeypatch.setattr(arguments, "empty_like", filled)
