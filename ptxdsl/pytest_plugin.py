"""``pytest --ptx-sanitize``: a test suite runs its kernels under the emulator's sanitizer, without a change to it.

Nothing of ptxdsl is imported before the option is given, so that the plugin costs a suite that does not use it nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["pytest_addoption", "pytest_report_header", "pytest_runtest_call"]


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


def _hook() -> object:
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
        """Run a test with the settings that the options give."""
        settings = _settings(item.config)
        if not settings:
            return (yield)
        from .config import override

        with override(backend="emulator", **settings):
            try:
                return (yield)
            except Exception as error:
                findings = getattr(error, "findings", ())
                if len(findings) > 1:
                    item.add_report_section("call", "ptxdsl", "\n".join(map(str, findings)))
                raise

    return pytest_runtest_call


pytest_runtest_call = _hook()
