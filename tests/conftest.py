"""What all tests share: a cache of their own, fresh random data that can be had again, and what this machine lacks."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the user's settings and cache out of the tests, and the tests out of the user's cache."""
    for variable in [name for name in os.environ if name.startswith("PTXDSL_")]:
        del os.environ[variable]
    cache = tempfile.TemporaryDirectory(prefix="ptxdsl-tests-")
    config.add_cleanup(cache.cleanup)
    os.environ["PTXDSL_CACHE_DIR"] = cache.name


@pytest.fixture(autouse=True)
def each_trace_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tracer vouches for its statements, and none is looked at again, the tests do look."""
    import ptxdsl.verify
    from ptxdsl.errors import VerifyError

    verify = ptxdsl.verify.verify

    def doubting(module: Any, *, statements: bool = True, **options: Any) -> None:
        verify(module, statements=statements, **options)
        try:
            verify(module, **options)
        except VerifyError as error:
            raise AssertionError(f"the tracer vouched for this: {error}") from None

    monkeypatch.setattr(ptxdsl.verify, "verify", doubting)


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh random numbers; the seed is printed with a failure, and TEST_SEED=<seed> repeats it."""
    seed = int(os.environ.get("TEST_SEED") or secrets.randbits(32))
    print(f"TEST_SEED={seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def emulated() -> Iterator[None]:
    """Launches run on the emulator, also where there is a GPU."""
    from ptxdsl import use

    with use("emulator"):
        yield
