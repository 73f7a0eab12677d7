"""``pytest --ptx-sanitize``: a test suite runs its kernels under the emulator's sanitizer, without a change to it.

The fixture ``assert_outcomes`` tests code without locks: a launch of a few threads, in all executions that PTX's memory
model allows::

    def test_message(assert_outcomes):
        assert_outcomes(message[2, 1], x, flag, out, never=lambda o: o.out[0] == 1 and o.out[1] == 0)

Nothing of ptxdsl is imported before an option or the fixture asks, so that the plugin costs other suites nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

__all__ = ["assert_outcomes", "pytest_addoption", "pytest_report_header", "pytest_runtest_call"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("ptxdsl", "kernels on the emulator of ptxdsl")
    group.addoption(
        "--ptx-sanitize", action="store_const", const="all",
        help="check all kernels: memory, init, race, order and barrier",
    )
    group.addoption(
        "--ptx-tools", dest="ptx_sanitize", metavar="TOOLS", help="check for some of these only, separated by commas"
    )
    group.addoption(
        "--ptx-seed", type=int, metavar="N", help="run the warps in a random schedule, the same for the same N"
    )


def _settings(config: pytest.Config) -> dict[str, object]:
    given = {"sanitize": config.getoption("ptx_sanitize"), "seed": config.getoption("ptx_seed")}
    return {name: value for name, value in given.items() if value is not None}


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is on."""
    return [f"ptxdsl: {', '.join(f'{name}={value}' for name, value in settings.items())}"
            for settings in [_settings(config)] if settings]


def _override(settings: dict[str, Any]) -> AbstractContextManager[object]:
    if not settings:
        return nullcontext()
    from .config import override

    return override(backend="emulator", **settings)


def _hook() -> object:
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
        """Run a test with the settings that the options give; its errors come without internal frames."""
        with _override(_settings(item.config)):
            try:
                return (yield)
            except Exception as error:
                findings = getattr(error, "findings", ())
                if len(findings) > 1:
                    item.add_report_section("call", "ptxdsl", "\n".join(map(str, findings)))
                if "ptxdsl.tracebacks" in sys.modules:
                    sys.modules["ptxdsl.tracebacks"].shorten(error)
                raise

    return pytest_runtest_call


pytest_runtest_call = _hook()


def _assert_outcomes(
    launch: Callable[..., object], *args: object, always: Any = None, never: Any = None, sometimes: Any = None,
    races: bool = True, **named: Any,
) -> Any:
    """Check all outcomes of a launch (see ``ptxdsl.outcomes``), and return them.

    ``always``, ``never`` and ``sometimes`` are conditions: a function of an outcome, or a dict of arrays. A thread that
    waits forever or fails is an error, and so is a race unless ``races``.
    """
    __tracebackhide__ = True
    from .emulator.outcomes.api import outcomes

    found = outcomes(launch, *args, **named)
    found.forbid(lambda outcome: outcome.waiting or outcome.error)
    if always is not None:
        found.always(always)
    if never is not None:
        found.forbid(never)
    if sometimes is not None:
        found.require(sometimes)
    if found.races and not races:
        raise AssertionError("races:\n" + "\n".join(found.races))
    return found


def _fixture() -> object:
    import pytest

    @pytest.fixture
    def assert_outcomes() -> Callable[..., Any]:
        """Check all outcomes of a launch that PTX's memory model allows."""
        return _assert_outcomes

    return assert_outcomes


assert_outcomes = _fixture()
