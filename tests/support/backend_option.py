"""``pytest --backend gpu``: the suite on a GPU, or with ``--gpu-standin`` on a stand-in that the emulator is behind.

Tests that are about the emulator, or that make a kernel fault on purpose, are deselected there, and counted by reason:
a fault takes the context of the whole process along. Kernels for another GPU are skipped.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
_ABOUT_OTHERS = {
    "emulator": "about the emulator", "isa": "about the instruction table", "text": "about PTX text",
    "verify": "about the verifier", "packaging": "about the package", "docs": "about the documentation",
    "gpu_check": "about the check of a GPU", "foreign": "",
}
"""Folders of the tests that launch nothing, or on the emulator only."""
_OTHER_GPU = re.compile(r"the kernel is for sm_\w+, the GPU|clusters need sm_90, the GPU")
_COPIED = "ignore:kernel .* has its arrays .* copied to the GPU"
_ADVICE = "ignore:ptxas. Advisory"
_REASONS: pytest.StashKey[Counter[str]] = pytest.StashKey()
_STAND_IN: pytest.StashKey[Any] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--backend", choices=("emulator", "gpu"), default="emulator", help="where kernels run")
    parser.addoption("--gpu-standin", action="store_true", help="the GPU is a stand-in that the emulator is behind")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the backend."""
    os.environ["PTXDSL_BACKEND"] = backend = config.getoption("backend")
    if backend == "emulator":
        return
    config.addinivalue_line("filterwarnings", _COPIED)  # numpy arrays are what the tests are about
    config.addinivalue_line("filterwarnings", _ADVICE)
    if config.getoption("gpu_standin"):
        _stand_in(config)
    from ptxdsl.gpu.device import unavailable

    problem = unavailable()
    if problem:
        raise pytest.UsageError(f"--backend gpu: {problem}")


def _stand_in(config: pytest.Config) -> None:
    import driver_shim
    from driver_standin import install
    from emulated_gpu import EmulatedGpu

    problem = driver_shim.missing()
    if problem:
        raise pytest.UsageError(f"--gpu-standin: {problem}")
    stack, gpu = ExitStack(), EmulatedGpu()
    stack.enter_context(gpu.knowing())
    stack.enter_context(install(gpu))
    config.add_cleanup(stack.close)
    config.stash[_STAND_IN] = gpu


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the tests that are not for a GPU."""
    if config.getoption("backend") == "emulator":
        return
    reasons = {id(item): _reason(item, config.getoption("gpu_standin")) for item in items}
    left = [item for item in items if reasons[id(item)]]
    config.stash[_REASONS] = Counter(filter(None, reasons.values()))
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not reasons[id(item)]]


def _reason(item: pytest.Item, standin: bool) -> str:
    """Why a test is not for a GPU; nothing if it is."""
    marker = item.get_closest_marker("emulator")
    if marker is not None:
        return str(marker.kwargs.get("reason", "about the emulator"))
    if standin and item.get_closest_marker("processes"):
        return "with launches in other processes, where the stand-in is not"
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    if _ABOUT_OTHERS.get(folder):
        return _ABOUT_OTHERS[folder]
    names: Any = getattr(item, "fixturenames", ())
    if "emulated" in names:
        return "about the emulator"
    return "with a stand-in of their own" if "cu" in names else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test whose kernel is for another GPU, and see whether it left the GPU whole."""
    if item.config.getoption("backend") == "emulator":
        return (yield)
    from ptxdsl.errors import LaunchError

    try:
        result = yield
    except LaunchError as error:
        if _OTHER_GPU.match(error.message):
            pytest.skip(error.message)
        raise
    finally:
        _check_context(item)
    return result


def _check_context(item: pytest.Item) -> None:
    """End the process where a kernel has lost the context of all: with xdist another one goes on."""
    from ptxdsl.errors import DriverError
    from ptxdsl.gpu import device

    try:
        for gpu in device.known():
            gpu.synchronize()
    except DriverError as error:
        message = f"{item.nodeid} has lost the GPU's context, mark it `emulator`: {error.message}"
        standin = item.config.stash.get(_STAND_IN, None)
        if standin is not None:
            standin.sticky = 0
            device.forget()
            pytest.fail(message, pytrace=False)
        if hasattr(item.config, "workerinput"):
            print(message, file=sys.stderr, flush=True)
            os._exit(3)
        pytest.exit(message, returncode=3)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say which tests are not run."""
    reasons = config.stash.get(_REASONS, None)
    if reasons is None:
        return []
    return [f"backend gpu: {count} tests not run, {reason}" for reason, count in reasons.most_common()]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say that the kernels did run where they were to."""
    gpu = config.stash.get(_STAND_IN, None)
    if gpu is not None:
        terminalreporter.write_line(f"backend gpu: {len(gpu.launches)} launches on the stand-in")
