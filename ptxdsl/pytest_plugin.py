"""A plugin of pytest: a suite runs its kernels under the emulator's sanitizer, and under many schedules of the warps.

``pytest --ptx-sanitize`` and ``pytest --ptx-seeds N`` change nothing in the suite; the markers ``ptx_sanitize`` and
``ptx_seeds`` do so for single tests. ``pytest --ptx-max-error E`` follows all launches in float64. What the emulator
finds fails the test with the line of the kernel first. The fixture ``assert_outcomes`` tests code without locks: a
launch of a few threads, in all executions that PTX's memory model allows::

    def test_message(assert_outcomes):
        assert_outcomes(message[2, 1], x, flag, out, never=lambda o: o.out[0] == 1 and o.out[1] == 0)

Nothing of ptxdsl is imported before an option, a marker or the fixture asks, so that the plugin costs other suites
nothing. The settings hold from a test's fixtures to their end, in this thread, in others and in processes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

__all__ = [
    "assert_outcomes", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "pytest_generate_tests",
    "pytest_report_header", "pytest_runtest_call", "pytest_runtest_makereport", "pytest_runtest_protocol",
    "pytest_runtest_setup", "pytest_runtest_teardown",
]

MARKERS = (
    'ptx_sanitize(*tools): run the test under these checks of ptxdsl, all if none is named, or "off"',
    "ptx_seeds(n): run the test in n random schedules of the warps",
)
SEED = "ptx_seed"
"""The parameter of a test that runs under several seeds."""
LAST_SEED = 999_999_999
"""That PTXDSL_SEED can be."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the settings of the ini file; the options may begin with ``--ptxdsl-`` too."""
    group = parser.getgroup("ptxdsl", "kernels on the emulator of ptxdsl")

    def option(name: str, **how: Any) -> None:
        group.addoption(f"--ptx-{name}", f"--ptxdsl-{name}", **how)

    option(
        "sanitize", dest="ptx_sanitize", action="store_const", const="all",
        help="check all kernels: memory, init, race, order and barrier",
    )
    option("tools", dest="ptx_sanitize", metavar="TOOLS", help="check for some of these only, separated by commas")
    option("seed", dest="ptx_seed", type=int, metavar="S", help="run the warps in the random schedule of this seed")
    option(
        "seeds", dest="ptx_seeds", type=int, metavar="N",
        help="run each test in N random schedules of the warps: of the seeds 1 to N, or from --ptx-seed on",
    )
    option(
        "max-error", dest="ptx_max_error", type=float, metavar="E",
        help="follow all kernels in float64, and fail where a result has a larger relative error",
    )
    parser.addini("ptxdsl_sanitize", "the checks where no option says: all, or some, separated by commas")
    parser.addini("ptxdsl_seeds", "the number of schedules of each test where no option says")


def pytest_configure(config: pytest.Config) -> None:
    """Add the markers; a UsageError for an option without a meaning."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    _checked_tools("--ptx-tools", config.getoption("ptx_sanitize"))
    _checked_tools("ptxdsl_sanitize", config.getini("ptxdsl_sanitize"))
    seeds = config.getini("ptxdsl_seeds") or None
    _checked_number("ptxdsl_seeds", int(seeds) if seeds and seeds.isdecimal() else seeds)
    _checked_number("--ptx-seeds", config.getoption("ptx_seeds"))
    _checked_number("--ptx-seed", config.getoption("ptx_seed"))
    limit = config.getoption("ptx_max_error")
    if limit is not None and not limit >= 0:
        raise pytest.UsageError(f"--ptx-max-error is {limit}; it can be a number from 0 on")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is on."""
    seeds = _seeds(config)
    said = [f"sanitize={tools}" for tools in [_tools(config)] if tools]
    if seeds:
        said.append(f"seed={seeds[0]}" if len(seeds) == 1 else f"seeds={seeds[0]} to {seeds[-1]}")
    said += [f"max_error={limit:g}" for limit in [config.getoption("ptx_max_error")] if limit is not None]
    return [f"ptxdsl: {', '.join(said)}"] if said else []


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each seed, with fixtures of its own."""
    seeds = _seeds(metafunc.config, metafunc.definition)
    if len(seeds) > 1 and SEED not in metafunc.fixturenames:
        metafunc.fixturenames.append(SEED)
        metafunc.parametrize(SEED, seeds, ids=[f"seed{seed}" for seed in seeds])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A UsageError for a marker without a meaning."""
    for item in items:
        for marker in item.iter_markers("ptx_seeds"):
            _checked_number(f"{item.nodeid}: the marker ptx_seeds", _only(marker))
        for marker in item.iter_markers("ptx_sanitize"):
            _checked_tools(f"{item.nodeid}: the marker ptx_sanitize", _joined(marker))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test and its fixtures with its settings."""
    with _settings(_tools(item.config, item), _seed(item), item.config.getoption("ptx_max_error")):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:  # noqa: ARG001
    """Take the internal frames out of an error's traceback, before pytest reads it."""
    try:
        return (yield)
    except Exception as error:
        if "ptxdsl.tracebacks" in sys.modules:
            sys.modules["ptxdsl.tracebacks"].shorten(error)
        raise


pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show what the emulator found by its line, and say how a failed test has its schedule again."""
    report: Any = yield
    if call.excinfo is not None and report.failed:
        _locate(report, item, call.excinfo)
        seed = _seed(item)
        if seed is not None:
            report.sections.append(("ptxdsl", f"in the schedule of seed {seed}; again:\n{_command(item, seed)}"))
    return report


# Settings


def _only(marker: pytest.Mark) -> object:
    return marker.args[0] if len(marker.args) == 1 and not marker.kwargs else {*marker.args, *marker.kwargs}


def _joined(marker: pytest.Mark) -> str:
    return ",".join(map(str, (*marker.args, *marker.kwargs))) or "all"


def _checked_number(what: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or not 0 <= value <= LAST_SEED):
        raise pytest.UsageError(f"{what} is {value!r}; it can be a number from 0 to {LAST_SEED}")


def _checked_tools(what: str, value: str | None) -> None:
    if not value:
        return
    from .config import override
    from .errors import ConfigError

    try:
        with override(sanitize=value):
            pass
    except ConfigError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise pytest.UsageError(f"{what}: {error.message}{hint}") from None


def _tools(config: pytest.Config, item: Any = None) -> str | None:
    """The sanitizer's checks: those of the test's marker, of the option, of the ini file."""
    marker = item.get_closest_marker("ptx_sanitize") if item is not None else None
    if marker is not None:
        return _joined(marker)
    return config.getoption("ptx_sanitize") or config.getini("ptxdsl_sanitize") or None


def _seeds(config: pytest.Config, item: Any = None) -> range:
    """The seeds that a test is to run under; none where it runs in the usual order."""
    first: int | None = config.getoption("ptx_seed")
    count: Any = config.getoption("ptx_seeds")
    if first is not None and count is None:
        return range(first, first + 1)  # to have a failure again, whatever marker the test has
    marker = item.get_closest_marker("ptx_seeds") if item is not None else None
    if marker is not None:
        count = _only(marker)
    elif count is None:
        count = int(config.getini("ptxdsl_seeds") or 0)
    first = 1 if first is None else first
    return range(first, first + (count if isinstance(count, int) else 0))


def _seed(item: Any) -> int | None:
    """The seed of a test; what takes no parameters, as a unittest.TestCase, has the first one alone."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if SEED in parameters:
        return int(parameters[SEED])
    return next(iter(_seeds(item.config, item)), None)


@contextmanager
def _settings(tools: str | None, seed: int | None, max_error: float | None) -> Iterator[None]:
    """Settings for this thread, and as variables for others and for processes."""
    if tools is None and seed is None and max_error is None:
        yield
        return
    from .config import override

    changed: dict[str, Any] = {"backend": "emulator", "sanitize": tools, "seed": seed, "max_error": max_error}
    changed["twin"] = None if max_error is None else "float64"
    changed = {name: value for name, value in changed.items() if value is not None}
    before = {f"PTXDSL_{name.upper()}": os.environ.get(f"PTXDSL_{name.upper()}") for name in changed}
    os.environ.update({f"PTXDSL_{name.upper()}": str(value) for name, value in changed.items()})
    try:
        with override(**changed):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# Failures


def _command(item: pytest.Item, seed: int) -> str:
    """What runs a test in one schedule again."""
    own, (_, _, within) = f"seed{seed}", str(item.nodeid).partition("::")
    name = f"{_shown(item, str(item.path))}::{within}"
    name = f"{name.removesuffix(f'-{own}]')}]" if name.endswith(f"-{own}]") else name.removesuffix(f"[{own}]")
    tools = item.config.getoption("ptx_sanitize")
    given = [] if tools is None else ["--ptx-sanitize"] if tools == "all" else ["--ptx-tools", tools]
    words = ["python", "-m", "pytest", "--ptx-seed", str(seed), *given, name]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


class _Found(NamedTuple):
    """What the emulator found: where, what it is called, and what it says besides."""

    loc: Any
    kind: str
    message: str


def _all_found(error: Any) -> list[_Found]:
    """The findings of an error; the error itself where it has one, or none."""
    if len(error.findings) > 1:
        return [
            _Found(each.access.loc, f"{each.error.__name__} {each.error.code}", str(each)) for each in error.findings
        ]
    message = str(error).replace(f"\n  at {error.loc}", "", 1)
    if error.__cause__ is not None:  # the execution in which an explored launch goes wrong
        message += f"\n{error.__cause__}"
    return [_Found(error.loc, f"{type(error).__name__} {error.code}", message)]


def _locate(report: Any, item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Show an error of the emulator as its findings, each with its line first; then the lines of the test."""
    from _pytest._code.code import ExceptionChainRepr, ReprEntry, ReprFileLocation, ReprTraceback

    errors = sys.modules.get("ptxdsl.errors")
    error: Any = excinfo.value
    if errors is None or not isinstance(error, errors.EmulationError) or error.loc is None:
        return
    wants_all = item.config.getoption("fulltrace") or os.environ.get("PTXDSL_TRACEBACK") == "full"
    if wants_all or item.config.getoption("tbstyle") not in ("auto", "short"):
        return

    def entry(place: tuple[str, int, str] | None, *lines: str) -> ReprEntry:
        return ReprEntry(lines, None, None, place and ReprFileLocation(*place), "short")

    entries = []
    for loc, kind, message in _all_found(error):
        told = [f"E   {line}" for line in message.splitlines()]
        if loc is None:
            entries.append(entry(None, f"E   {kind}", *told))
        else:
            entries.append(entry((_shown(item, loc.shown), loc.line, kind), f"    {loc.source}", *told))
    for frame in excinfo.traceback:
        runs_tests = frame.frame.f_globals.get("__name__", "").partition(".")[0] in ("_pytest", "pluggy", "unittest")
        if not runs_tests and not frame.ishidden(excinfo):
            place = _shown(item, str(frame.path)), frame.lineno + 1, f"in {frame.name}"
            entries.append(entry(place, f"    {str(frame.statement).strip()}"))
    crash = ReprFileLocation(error.loc.file, error.loc.line, excinfo.exconly(tryshort=True))
    report.longrepr = ExceptionChainRepr([(ReprTraceback(entries, None, "short"), crash, None)])


def _shown(item: pytest.Item, file: str) -> str:
    """A file by its path from here on, where it lies below."""
    folder = str(item.config.invocation_params.dir) + os.sep
    return file.removeprefix(folder)


# Outcomes


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


@pytest.fixture
def assert_outcomes() -> Callable[..., Any]:
    """Check all outcomes of a launch that PTX's memory model allows: `always`, `never`, `sometimes`, `races`."""
    return _assert_outcomes
