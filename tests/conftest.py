"""What all tests share: a cache of their own, fresh random data that can be had again, and what this machine lacks."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import backend_option
import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")
    pluginmanager.register(backend_option)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the user's settings and cache out of the tests, and the tests out of the user's cache."""
    for variable in [name for name in os.environ if name.startswith("PTXDSL_")]:
        del os.environ[variable]
    os.environ["PTXDSL_TRACEBACK"] = "full"
    cache = tempfile.mkdtemp(prefix="ptxdsl-tests-")  # no object's, which the child of a fork would clean up
    config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))  # threads that compile may still write to it
    os.environ["PTXDSL_CACHE_DIR"] = cache
    os.environ.setdefault("TEST_SEED", str(secrets.randbits(32)))  # processes that share a run collect the same tests


def pytest_sessionstart() -> None:
    """Import here what the emulator's compiling thread would import.

    pytest parses what is imported, and before 3.11.8 Python fails when two threads parse at once (gh-106905).
    """
    import ptxdsl.emulator.jit.compilation  # noqa: F401


def pytest_collection_finish() -> None:
    """Leave the collected tests, which live as long as the run, out of what the collector visits."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def each_trace_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preverified traces, on which `verify` does not run, are verified in the tests."""
    from ptxdsl.errors import VerifyError
    from ptxdsl.language import tracing
    from ptxdsl.verify import verify

    module_of = tracing._module

    def verified(trace: Any, signature: Any) -> Any:
        module = module_of(trace, signature)
        if not trace.needs_verification:
            try:
                verify(module)
            except VerifyError as error:
                raise AssertionError(f"this trace counts as preverified: {error}") from None
        return module

    monkeypatch.setattr(tracing, "_module", verified)


@pytest.fixture(autouse=True)
def each_rewriting_pass_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the emulator's passes make of a kernel is PTX that the verifier accepts, after each of them."""
    from dataclasses import replace

    from ptxdsl.emulator.rewrite import pipeline
    from ptxdsl.ir import Call
    from ptxdsl.isa.targets import LATEST
    from ptxdsl.verify import verify

    rewrite = pipeline.rewrite

    def checked(module: Any, function: Any, cluster: Any, annotations: Any = None, defers: bool = False) -> Any:
        declared = [replace(other, body=None) for other in module.functions]
        own = ("sm_90a", "sm_107a")  # these have what sm_100a does not
        target = module.target if module.target in own else "sm_100a"
        newest = replace(module, version=LATEST, target=target, functions=declared)

        def check(result: Any) -> None:
            body = [statement for statement in result.body if not isinstance(statement, Call)]  # the host's functions
            verify(replace(newest, functions=[*declared, replace(result, body=body)]), foreign=True)

        return rewrite(module, function, cluster, check, annotations, defers)

    monkeypatch.setattr(pipeline, "rewrite", checked)


@pytest.fixture(scope="session", autouse=True)
def cases_of_instructions(request: pytest.FixtureRequest) -> None:
    """Where launches are recorded for the check of a GPU, the cases of single instructions are recorded, too."""
    plugin: Any = request.config.pluginmanager.get_plugin("ptxdsl.gpu_check.pytest_recorder")
    if plugin is not None and plugin.RECORDER in request.config.stash:
        from form_cases import listen

        listen(request.config.stash[plugin.RECORDER])


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Fresh random numbers of a test; the run's seed is printed with a failure, and TEST_SEED=<seed> repeats it."""
    print(f"TEST_SEED={os.environ['TEST_SEED']}")
    return np.random.default_rng([int(os.environ["TEST_SEED"]), *request.node.nodeid.encode()])


@pytest.fixture(scope="module")
def young_heap() -> None:
    """The collector visits what is made from here on: late in a long run a visit of all takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def emulated() -> Iterator[None]:
    """Launches run on the emulator, also where there is a GPU."""
    from ptxdsl import use

    with use("emulator"):
        yield
