"""Settings: what each variable may be, and that nothing else is taken in silence."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ptxdsl.config import ALL_SANITIZERS, Config, Dump, current, override, use
from ptxdsl.errors import ConfigError


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PTXDSL_"):
            monkeypatch.delenv(name)


def text_of(error: ConfigError) -> str:
    """The message and the hint; the place must be this file."""
    assert error.loc is not None
    assert error.loc.file == __file__
    return error.message + (f"\n  hint: {error.hint}" if error.hint else "")


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    config = current()
    assert config == Config(cache_dir=Path("/somewhere/ptxdsl"))
    assert (config.backend, config.arch, config.lineinfo, config.log) == ("auto", "auto", True, "off")
    assert config.sanitize is None


def test_cache_without_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert current().cache_dir == tmp_path / ".cache" / "ptxdsl"


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("PTXDSL_BACKEND", "gpu", "backend", "gpu"),
        ("PTXDSL_CACHE_DIR", "off", "cache_dir", None),
        ("PTXDSL_CACHE_DIR", "0", "cache_dir", None),
        ("PTXDSL_CACHE_DIR", "/tmp/x", "cache_dir", Path("/tmp/x")),
        ("PTXDSL_ARCH", "sm_90a", "arch", "sm_90a"),
        ("PTXDSL_DUMP", "ptx,cubin@/tmp/out", "dump", Dump(frozenset({"ptx", "cubin"}), Path("/tmp/out"))),
        ("PTXDSL_DUMP", "log", "dump", Dump(frozenset({"log"}), Path("."))),
        ("PTXDSL_SANITIZE", "race, init", "sanitize", frozenset({"race", "init"})),
        ("PTXDSL_SANITIZE", "all", "sanitize", frozenset(ALL_SANITIZERS)),
        ("PTXDSL_SANITIZE", "off", "sanitize", frozenset()),
        ("PTXDSL_LINEINFO", "0", "lineinfo", False),
        ("PTXDSL_LINEINFO", "off", "lineinfo", False),
        ("PTXDSL_LINEINFO", "1", "lineinfo", True),
        ("PTXDSL_LINEINFO", "on", "lineinfo", True),
        ("PTXDSL_LOG", "debug", "log", "debug"),
        ("PTXDSL_BACKEND", "", "backend", "auto"),
    ],
)
def test_variables(variable: str, text: str, field: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, text)
    assert getattr(current(), field) == value


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        (
            "PTXDSL_BACKEND", "emulater",
            "PTXDSL_BACKEND is 'emulater'; it can be auto, gpu or emulator\n  hint: did you mean 'emulator'?",
        ),
        ("PTXDSL_BACKEND", "abacus", "PTXDSL_BACKEND is 'abacus'; it can be auto, gpu or emulator"),
        (
            "PTXDSL_BACKED", "gpu",
            "there is no variable PTXDSL_BACKED\n  hint: did you mean `PTXDSL_BACKEND`?",
        ),
        (
            "PTXDSL_XYZZY", "1",
            ("there is no variable PTXDSL_XYZZY\n  hint: the variables are PTXDSL_BACKEND, PTXDSL_CACHE_DIR, "
            "PTXDSL_ARCH, PTXDSL_PTXAS, PTXDSL_DUMP, PTXDSL_SANITIZE, PTXDSL_TWIN, PTXDSL_MAX_ERROR, PTXDSL_SEED, "
            "PTXDSL_EMULATOR_THREADS, PTXDSL_LINEINFO, PTXDSL_NVTX, PTXDSL_LOG, PTXDSL_TRACEBACK, PTXDSL_DEBUG, "
            "PTXDSL_DEVICE"),
        ),
        (
            "PTXDSL_SANITIZE", "memory,rase",
            ("PTXDSL_SANITIZE is 'rase'; it can be all, off, or one or more of memory, race, order, init, barrier, "
            "cas, separated by commas\n"
            "  hint: did you mean 'race'?"),
        ),
        (
            "PTXDSL_DUMP", "ptx,cubins@/tmp",
            ("PTXDSL_DUMP is 'cubins'; it can be one or more of ptx, cubin, sass, log, separated by commas\n"
            "  hint: did you mean 'cubin'?"),
        ),
        (
            "PTXDSL_ARCH", "90a",
            "PTXDSL_ARCH is '90a'; it can be auto or a target such as sm_90a\n  hint: write `sm_90a`",
        ),
        ("PTXDSL_ARCH", "hopper", "PTXDSL_ARCH is 'hopper'; it can be auto or a target such as sm_90a"),
        ("PTXDSL_LINEINFO", "yes", "PTXDSL_LINEINFO is 'yes'; it can be 0 or 1"),
        ("PTXDSL_PTXAS", "/nowhere/ptxas", "PTXDSL_PTXAS is '/nowhere/ptxas', which is no program that can be run"),
        ("PTXDSL_LOG", "verbose", "PTXDSL_LOG is 'verbose'; it can be off, info or debug"),
        (
            "PTXDSL_EMULATOR_THREADS", "0",
            "PTXDSL_EMULATOR_THREADS is '0'; it can be a number of threads from 1 to 9999",
        ),
    ],
)
def test_wrong(variable: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigError) as caught:
        current()
    assert text_of(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_override_nests_and_ends() -> None:
    with override(backend="gpu", sanitize="race"):
        assert current().backend == "gpu"
        with override(backend="emulator", lineinfo=False):
            assert (current().backend, current().lineinfo, current().sanitize) == ("emulator", False, {"race"})
        assert (current().backend, current().lineinfo) == ("gpu", True)
    assert (current().backend, current().sanitize) == ("auto", None)


def test_override_ends_with_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), use("emulator"):
        _ = 1 // 0
    assert current().backend == "auto"


def test_use_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_BACKEND", "gpu")
    with use("emulator"):
        assert current().backend == "emulator"
    assert current().backend == "gpu"


def test_use_as_a_plain_call_stays() -> None:
    setting = use("emulator")
    try:
        assert current().backend == "emulator"
    finally:
        setting.__exit__()
    assert current().backend == "auto"


def test_other_threads_are_not_changed() -> None:
    seen = []
    with use("emulator"):
        thread = threading.Thread(target=lambda: seen.append(current().backend))
        thread.start()
        thread.join()
    assert seen == ["auto"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "emu"}, "backend is 'emu'; it can be auto, gpu or emulator\n  hint: did you mean 'emulator'?"),
        ({"backend": 3}, "backend is 3; it can be a str"),
        ({"backends": "gpu"}, "there is no setting 'backends'\n  hint: did you mean `backend`?"),
        ({"lineinfo": 2}, "lineinfo is 2; it can be a bool"),
        ({"device": True}, "device is 'True'; it can be the ordinal of a GPU, from 0 on"),
        ({"emulator_threads": -1}, "emulator_threads is '-1'; it can be a number of threads from 1 to 9999"),
        (
            {"sanitize": ["memory", "frobnicate"]},
            ("sanitize is 'frobnicate'; it can be one or more of memory, race, order, init, barrier, cas, "
            "separated by commas"),
        ),
        (
            {"zzz": 1},
            ("there is no setting 'zzz'\n  hint: the settings are backend, cache_dir, arch, ptxas, dump, sanitize, "
            "twin, max_error, seed, emulator_threads, lineinfo, nvtx, log, traceback, debug, device"),
        ),
    ],
)
def test_wrong_override(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(**settings)
    assert text_of(caught.value) == message
    assert current().backend == "auto"


def test_settings_follow_each_change_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("PTXDSL_SEED", "1"), ("OTHER", "1"), ("PTXDSL_SEED", "2"), ("OTHER", "2")):
        monkeypatch.setenv(name, text)
        assert current().seed == int(os.environ["PTXDSL_SEED"])
        assert current() is current()
    with override(seed=5):
        assert current().seed == 5
        monkeypatch.setenv("PTXDSL_SEED", "3")
        assert current().seed == 5
    assert current().seed == 3
    monkeypatch.delenv("PTXDSL_SEED")
    assert current().seed is None
    monkeypatch.setenv("PTXDSL_SED", "3")
    with pytest.raises(ConfigError):
        current()
