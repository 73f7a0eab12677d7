"""Autotuning on the emulator: what is tried, what is chosen, what is remembered, and that nothing else changes."""

from __future__ import annotations

import io
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Config, Ptr, autotune, cdiv, config, f32, loop, ptx, ptx_kernel, reg, u32, when
from ptxdsl.errors import LaunchError, MemoryFault, PtxWarning
from ptxdsl.tuning import Autotuned
from ptxdsl.tuning.measures import EmulatorMeasure
from ptxdsl.tuning.results import Trial

WASTES = [Config(block=64, WASTE=n) for n in (9, 2, 5)]


def grid(n: int) -> Callable[[Config], int]:
    return lambda config: cdiv(n, config.block)


def make_add() -> Any:
    @ptx_kernel
    def add(n: u32, y: Ptr[f32], x: Ptr[f32], *, WASTE: int = 0) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            wasted = reg(f32, 0.0)
            with loop(0, WASTE):
                wasted += x[i]
            y[i] = y[i] + x[i] + 0.0 * wasted

    return add


@pytest.fixture(autouse=True)
def _fresh(emulated: None, tmp_path: Path) -> Iterator[None]:
    """The emulator, and a cache of the test's own."""
    with config.override(cache_dir=tmp_path / "cache"):
        yield


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations that are run for a trial, in their order."""
    found: list[Config] = []
    trial = EmulatorMeasure.trial

    def counted(self: EmulatorMeasure, which: Config, run: Callable[[], object], memory: Any) -> Trial:
        found.append(which)
        return trial(self, which, run, memory)

    monkeypatch.setattr(EmulatorMeasure, "trial", counted)
    return found


def arrays(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)


# ---------------------------------------------------------------------------------------------------------------------
# Choosing


def test_the_least_work_is_chosen_and_the_launch_is_made_once(rng: np.random.Generator, tried: list[Config]) -> None:
    n = int(rng.integers(1, 1000))
    k = autotune(WASTES, ["n"])(make_add())
    y, x = arrays(rng, n)
    before = y.copy()
    k[grid(n)](n, y, x)
    np.testing.assert_array_equal(y, before + x)
    assert tried == WASTES
    (tuning,) = k.tuning()
    assert tuning.best is WASTES[1]
    assert [trial.config for trial in tuning] == WASTES
    assert tuning[0].cost > tuning[2].cost > tuning[1].cost

    k[grid(n)](n, y, x)  # which does not try again
    np.testing.assert_array_equal(y, before + x + x)
    assert len(tried) == 3


def test_the_same_is_chosen_each_time(rng: np.random.Generator) -> None:
    costs = []
    for _ in range(3):
        k = autotune([Config(block=b, WASTE=3) for b in (32, 96, 256)], cache=False)(make_add())
        k[grid(700)](700, *arrays(np.random.default_rng(5), 700))
        costs.append([trial.cost for trial in k.tuning()[0]])
    assert costs[0] == costs[1] == costs[2]


def test_once_a_key(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    for n, count in ((100, 3), (100, 3), (200, 6), (100, 6)):
        k[grid(n)](n, *arrays(rng, n))
        assert len(tried) == count
    assert [tuning.key for tuning in k.tuning()] == [{"n": 100}, {"n": 200}]
    np_int: Any = np.int64(200)
    k[grid(200)](np_int, *arrays(rng, 200))
    assert len(tried) == 6


def test_without_a_key(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES)(make_add())
    for n in (10, 20):
        k[grid(n)](n, *arrays(rng, n))
    assert len(tried) == 3


def test_the_shape_and_type_of_an_array_as_the_key(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, ["y"])(make_add())
    for n, count in ((50, 3), (50, 3), (60, 6)):
        k[grid(n)](n, *arrays(rng, n))
        assert len(tried) == count
    assert k.tuning()[0].key == {"y": ((50,), "float32")}


def test_a_function_as_the_key(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, lambda arguments: arguments["n"].bit_length())(make_add())
    for n, count in ((65, 3), (127, 3), (128, 6)):
        k[grid(n)](n, *arrays(rng, n))
        assert len(tried) == count
    assert [tuning.key for tuning in k.tuning()] == [{"key": 7}, {"key": 8}]


def test_constants_of_the_launch_are_part_of_the_key(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune([Config(block=32), Config(block=64)])(make_add())
    for waste, count in ((1, 2), (1, 2), (2, 4)):
        k[grid(64)](64, *arrays(rng, 64), WASTE=waste)
        assert len(tried) == count


def test_arguments_by_name(rng: np.random.Generator) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    y, x = arrays(rng, 77)
    before = y.copy()
    k[grid(77)](y=y, n=77, x=x)
    np.testing.assert_array_equal(y, before + x)
    assert k.tuning()[0].key == {"n": 77}


@pytest.mark.parametrize("how", ["brackets", "configure", "config"])
def test_where_grid_and_block_may_stand(rng: np.random.Generator, how: str) -> None:
    configs = [Config(WASTE=1), Config(WASTE=0)]
    if how == "config":
        configs = [Config(32, grid=lambda c: cdiv(90, c.block), WASTE=n) for n in (1, 0)]
    k = autotune(configs)(make_add())
    y, x = arrays(rng, 90)
    before = y.copy()
    launch = {"brackets": lambda: k[3, 32], "configure": lambda: k.configure(3, 32, shared=0), "config": k.configure}
    launch[how]()(90, y, x)
    np.testing.assert_array_equal(y, before + x)
    assert k.tuning()[0].best is configs[1]


def test_a_geometry_that_follows_from_the_constants(rng: np.random.Generator) -> None:
    @ptx_kernel
    def reverse(x: Ptr[f32], y: Ptr[f32], *, TILE: int) -> None:
        tile = ptxdsl.dynamic_shared(f32)
        tile[ptx.tid.x] = x[ptx.ctaid.x * TILE + ptx.tid.x]
        ptx.bar.sync(0)
        y[(ptx.nctaid.x - 1 - ptx.ctaid.x) * TILE + ptx.tid.x] = tile[TILE - 1 - ptx.tid.x]

    for configs, brackets in (
        (Config.product(TILE=[32, 64]), (lambda c: 256 // c.TILE, lambda c: c.TILE, None, lambda c: 4 * c.TILE)),
        (Config.product(TILE=[32, 64], block=[lambda c: c.TILE], shared=[lambda c: 4 * c.TILE]),
         (lambda c: 256 // c.TILE,)),
    ):
        k = autotune(configs)(reverse)
        for _ in range(2):
            x, y = arrays(rng, 256)
            k[brackets](x, y)
            np.testing.assert_array_equal(y, x[::-1])


def test_functions_of_the_geometry_are_asked_at_each_launch(rng: np.random.Generator) -> None:
    k = autotune(WASTES)(make_add())
    blocks = 1
    launch = k[lambda config: blocks]
    for blocks in (1, 2, 3):
        y, x = arrays(rng, 200)
        wanted = np.where(np.arange(200) < 64 * blocks, y + x, y)
        launch(200, y, x)
        np.testing.assert_array_equal(y, wanted)


def test_tuning_alone_changes_nothing(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    y, x = arrays(rng, 99)
    before = y.copy()
    tuning = k[grid(99)].tune(99, y, x)
    np.testing.assert_array_equal(y, before)
    assert tuning is k[grid(99)].tune(99, y, x)
    assert tuning.best.WASTE == 2
    assert len(tried) == 3
    k[grid(99)](99, y, x)
    np.testing.assert_array_equal(y, before + x)
    assert len(tried) == 3


def test_warming_tunes_and_launches_nothing(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    y, x = arrays(rng, 99)
    before = y.copy()
    k[grid(99)].warm(99, y, x)
    np.testing.assert_array_equal(y, before)
    assert tried == WASTES
    with pytest.raises(LaunchError):
        k[grid(99)].warm(99, y, x.astype(np.float64))


def test_a_single_configuration_is_not_tried(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune([Config(block=64)])(make_add())
    y, x = arrays(rng, 10)
    before = y.copy()
    k[1](10, y, x)
    np.testing.assert_array_equal(y, before + x)
    assert tried == []
    assert repr(k.tuning()[0]).splitlines()[1].split() == ["Config(block=64)", "not", "measured"]


def test_pruning(rng: np.random.Generator, tried: list[Config]) -> None:
    seen = []

    def prune(configs: list[Config], arguments: dict[str, Any]) -> list[Config]:
        seen.append(arguments["n"])
        return [each for each in configs if each.WASTE > 4]

    k = autotune(WASTES, ["n"], prune=prune)(make_add())
    k[grid(40)](40, *arrays(rng, 40))
    assert tried == [WASTES[0], WASTES[2]]
    assert seen == [40]
    assert k.tuning()[0].best is WASTES[2]

    none = autotune(WASTES, prune=lambda configs, arguments: [])(make_add())
    with pytest.raises(LaunchError, match="^`prune` leaves no configuration of kernel `add`"):
        none[grid(40)](40, *arrays(rng, 40))


def test_foreign_ptx(rng: np.random.Generator) -> None:
    m = ptxdsl.load(make_add().ptx(WASTE=1))
    k = autotune([Config(block=32), Config(block=64)])(m["add"])
    y, x = arrays(rng, 128)
    before = y.copy()
    k[grid(128)](128, y, x)
    np.testing.assert_array_equal(y, before + x)


# ---------------------------------------------------------------------------------------------------------------------
# On disk


def test_another_process_does_not_try_again(rng: np.random.Generator, tried: list[Config]) -> None:
    for _ in range(2):  # the second is as new as in another process
        k = autotune(WASTES, ["n"])(make_add())
        k[grid(33)](33, *arrays(rng, 33))
        assert len(tried) == 3
        assert k.tuning()[0].best is WASTES[1]
    assert all(trial.kept for trial in k.tuning()[0])
    assert repr(k.tuning()[0]).splitlines()[1].endswith("1.00  kept")


def test_only_a_new_configuration_is_tried(rng: np.random.Generator, tried: list[Config]) -> None:
    autotune(WASTES, ["n"])(make_add())[grid(33)](33, *arrays(rng, 33))
    more = [Config(block=64, WASTE=1), *WASTES]
    k = autotune(more, ["n"])(make_add())
    k[grid(33)](33, *arrays(rng, 33))
    assert tried == [*WASTES, more[0]]
    assert k.tuning()[0].best is more[0]


SOURCE = """
@ptx_kernel
def k(x: Ptr[f32], *, A: int = 1):
    x[ptx.tid.x] = x[ptx.tid.x] + float(A + {extra})
"""


def test_what_is_kept_is_that_of_the_kernel_not_of_its_place(tried: list[Config]) -> None:
    configs = [Config(block=32, A=1), Config(block=32, A=2)]
    for text, count in ((SOURCE.format(extra=0), 2), ("\n\n\n" + SOURCE.format(extra=0), 2),
                        (SOURCE.format(extra=5), 4)):
        names: dict[str, Any] = {"ptx_kernel": ptx_kernel, "Ptr": Ptr, "f32": f32, "ptx": ptx}
        exec(compile(text, "somewhere.py", "exec"), names)
        autotune(configs)(names["k"])[1](np.zeros(32, np.float32))
        assert len(tried) == count


def test_what_is_kept_depends_on_geometry_and_key(rng: np.random.Generator, tried: list[Config]) -> None:
    for n, blocks, count in ((33, 1, 3), (33, 2, 6), (34, 2, 9), (33, 2, 9)):
        autotune(WASTES, ["n"])(make_add())[blocks](n, *arrays(rng, n))
        assert len(tried) == count


def test_nothing_is_kept_without_a_cache(rng: np.random.Generator, tried: list[Config], tmp_path: Path) -> None:
    for count in (3, 6):
        autotune(WASTES, cache=False)(make_add())[grid(9)](9, *arrays(rng, 9))
        assert len(tried) == count
    assert not (tmp_path / "cache" / "tuning").exists()
    with config.override(cache_dir=None):
        autotune(WASTES)(make_add())[grid(9)](9, *arrays(rng, 9))
    assert len(tried) == 9


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"null", b"{}", b"\xff\xfe", b'["a", 1, 1, 1]'])
def test_what_is_damaged_on_disk_is_not_there(
    rng: np.random.Generator, tried: list[Config], content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptxdsl.tuning.trials.DiskCache.get", lambda self, key: content)
    k = autotune(WASTES)(make_add())
    k[grid(9)](9, *arrays(rng, 9))
    assert tried == WASTES


def test_retune(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, cache=False)(make_add())
    k[grid(9)](9, *arrays(rng, 9))
    k.retune()
    assert k.tuning() == []
    k[grid(9)](9, *arrays(rng, 9))
    assert len(tried) == 6


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be launched


def test_a_configuration_that_cannot_be_launched_is_told_once(rng: np.random.Generator) -> None:
    configs = [Config(block=2048), Config(block=64), Config(block=32)]
    k = autotune(configs, ["n"])(make_add())
    y, x = arrays(rng, 50)
    before = y.copy()
    with pytest.warns(PtxWarning) as told:
        k[grid(50)](50, y, x)
    np.testing.assert_array_equal(y, before + x)
    assert len(told) == 1
    assert str(told[0].message).splitlines() == [
        "1 of 3 configurations of kernel `add` cannot be launched:",
        "  Config(block=2048): block.x is 2048; it can be 1 to 1024",
    ]
    assert told[0].filename == __file__
    k[grid(51)](51, *arrays(rng, 51))  # for another key: a warning would be an error
    (failed,) = k.tuning()[1].failed
    assert (failed.config, failed.reason) == (configs[0], "block.x is 2048; it can be 1 to 1024")
    assert repr(k.tuning()[1]).splitlines()[-1] == "Config(block=2048): block.x is 2048; it can be 1 to 1024"


def make_picky() -> Any:
    @ptx_kernel
    def picky(x: Ptr[f32], *, TILE: int) -> None:
        if TILE % 32:
            raise ValueError(f"TILE is {TILE}, no multiple of 32")
        if TILE > 64:
            raise AssertionError
        x[ptx.tid.x] = float(TILE)

    return picky


def test_what_the_kernel_function_itself_refuses() -> None:
    x = np.zeros(32, np.float32)
    k = autotune([Config(block=32, TILE=n) for n in (33, 32, 96)])(make_picky())
    with pytest.warns(PtxWarning) as told:
        k[1](x)
    assert (x == 32).all()
    assert str(told[0].message).splitlines()[1:] == [
        "  Config(block=32, TILE=33): ValueError: TILE is 33, no multiple of 32",
        "  Config(block=32, TILE=96): AssertionError",
    ]


def test_where_none_can_be_launched() -> None:
    k = autotune([Config(block=32, TILE=n) for n in (33, 96)])(make_picky())
    with pytest.raises(LaunchError) as error:
        k[1](np.zeros(32, np.float32))
    assert error.value.message == (
        "none of the 2 configurations of kernel `picky` can be launched:\n"
        "  Config(block=32, TILE=33): ValueError: TILE is 33, no multiple of 32\n"
        "  Config(block=32, TILE=96): AssertionError"
    )
    assert k.tuning() == []


def test_what_is_wrong_with_all_of_them_is_told_as_without_tuning(rng: np.random.Generator) -> None:
    k = autotune(WASTES)(make_add())
    y, x = arrays(rng, 10)
    with pytest.raises(LaunchError) as error:
        k[grid(10)](10, y.astype(np.float64), x)
    with pytest.raises(LaunchError) as plain:
        make_add()[1, 64](10, y.astype(np.float64), x)
    assert error.value.message == plain.value.message
    with pytest.raises(LaunchError, match="^kernel `add` takes 3 arguments"):
        k[grid(10)](10, y)


def test_a_kernel_that_goes_wrong_is_not_passed_over(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], *, AT: int) -> None:
        x[ptx.tid.x] = 7.0
        x[ptx.tid.x + AT] = 1.0

    x, before = np.zeros(32, np.float32), np.zeros(32, np.float32)
    tuned = autotune([Config(block=32, AT=0), Config(block=32, AT=1)])(k)
    with pytest.raises(MemoryFault) as error:
        tuned[1](x)
    assert error.value.message.endswith("\n  while Config(block=32, AT=1) of kernel `k` was tried")
    np.testing.assert_array_equal(x, before)


def test_other_errors_of_the_kernel_function_are_passed_on() -> None:
    @ptx_kernel
    def k(x: Ptr[f32], *, A: int) -> None:
        x[0] = {}[A]

    with pytest.raises(KeyError):
        autotune([Config(block=32, A=0), Config(block=32, A=1)])(k)[1](np.zeros(32, np.float32))


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes in its use


@pytest.mark.parametrize(("use", "message", "hint"), [
    (lambda k: autotune([])(k), "kernel `add` has no configuration to try", None),
    (lambda k: autotune([{"block": 3}])(k), "configs are a list of Config, in which {'block': 3} is none", None),
    (lambda k: autotune([Config(block=32, WASTES=3)])(k),
     "Config(block=32, WASTES=3) sets `WASTES`, which is no compile-time constant of kernel `add`; it has WASTE",
     "did you mean `WASTE=`?"),
    (lambda k: autotune([Config(block=32)], ["m"])(k),
     "the key names `m`, which kernel `add` does not take; it takes n, y, x, WASTE", None),
    (lambda k: autotune([Config(block=32)], "n")(k), "key is a list of names, not 'n'", "`key=['n']`"),
    (lambda k: autotune(WASTES)(k)(), "kernel `add` was called without a grid", "`add[grid](n, y, x)`"),
    (lambda k: autotune(WASTES)(k)[1, 2, 3, 4, 5],
     "a tuned launch takes [grid], [grid, block], [grid, block, stream] or [grid, block, stream, shared], not 5",
     "a grid of several dimensions: `k[(8, 8),](...)`"),
    (lambda k: autotune(WASTES)(k)[1, 32](1, None, None),
     "kernel `add` is given its block by the launch, 32, and by Config(block=64, WASTE=9)",
     "leave `block` out of one of them; a grid of several dimensions: `k[(8, 8),](...)`"),
    (lambda k: autotune([Config(WASTE=1)])(k)[1](1, None, None),
     "kernel `add` is given no block, by the launch or by Config(WASTE=1)", "`k[grid, block](...)`"),
    (lambda k: autotune([Config(32)])(k).configure()(1, None, None),
     "kernel `add` is given no grid, by the launch or by Config(block=32)",
     "`k[lambda config: cdiv(n, config.block)](...)`"),
    (lambda k: autotune([Config(32, WASTE=1)])(k)[1](1, None, None, WASTE=2),
     "kernel `add` is given `WASTE` by the launch and by Config(block=32, WASTE=1)",
     "leave `WASTE` out of one of them"),
    (lambda k: autotune(WASTES, ["n"])(k)[1]([1], None, None),
     "argument `n` of the key is a list, which cannot be part of a key: it has no hash",
     "`key=lambda arguments: ...` gives a number or a tuple of numbers"),
    (lambda k: autotune(WASTES, lambda a: [1])(k)[1](1, None, None),
     "the function of the key gives a list, which cannot be part of a key: it has no hash",
     "`key=lambda arguments: ...` gives a number or a tuple of numbers"),
    (lambda k: Config.product(block=64), "Config.product wants what to try of `block`, not 64",
     "`Config.product(block=[64])`"),
])
def test_mistakes(use: Callable[[Any], object], message: str, hint: str | None) -> None:
    with pytest.raises(LaunchError) as error:
        use(make_add())
    assert (error.value.message, error.value.hint) == (message, hint)
    assert error.value.loc is not None
    assert error.value.loc.file == __file__


def test_a_function_that_is_no_kernel() -> None:
    def f() -> None: ...

    with pytest.raises(LaunchError) as error:
        autotune(WASTES)(f)  # type: ignore[arg-type]
    assert error.value.message == f"autotune takes a kernel, not {f!r}"
    assert error.value.hint == "write `@autotune(...)` above `@ptx_kernel`"


def test_within_a_trace(rng: np.random.Generator) -> None:
    tuned = autotune(WASTES)(make_add())

    @ptx_kernel
    def outer(x: Ptr[f32]) -> None:
        tuned[1](1, x, x)

    with pytest.raises(LaunchError, match="^kernel `add` is launched while another is traced"):
        outer[1, 32](np.zeros(1, np.float32))


# ---------------------------------------------------------------------------------------------------------------------
# Beside other things


def test_threads_tune_once(rng: np.random.Generator, tried: list[Config]) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    together, results = threading.Barrier(8), []

    def launch() -> None:
        y, x = np.ones(70, np.float32), np.full(70, 2, np.float32)
        together.wait()
        with ptxdsl.use("emulator"):
            k[grid(70)](70, y, x)
        results.append(bool((y == 3).all()))

    threads = [threading.Thread(target=launch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
    assert len(k.tuning()) == 1


def test_a_profile_sees_the_launch_and_no_trial(rng: np.random.Generator) -> None:
    k = autotune(WASTES)(make_add())
    with ptxdsl.profile() as p:
        k[grid(64)](64, *arrays(rng, 64))
    assert p.launches == {"add": 1}
    assert config.observer.get() is None


def test_in_a_capture(rng: np.random.Generator) -> None:
    k = autotune(WASTES)(make_add())
    before, x = arrays(rng, 64)
    y = ptxdsl.to_device(before)
    with pytest.raises(LaunchError) as error, ptxdsl.graph():
        k[grid(64)](64, y, ptxdsl.to_device(x))
    assert error.value.message == (
        "kernel `add` has to be tuned for this launch, and its stream is captured into a graph"
    )
    assert error.value.hint == "before the capture: `kernel[grid].tune(...)` with these arguments"
    k[grid(64)].tune(64, y, ptxdsl.to_device(x))
    with ptxdsl.graph() as g:
        k[grid(64)](64, y, ptxdsl.to_device(x))
    np.testing.assert_array_equal(y.numpy(), before)
    g.replay()
    np.testing.assert_array_equal(y.numpy(), before + x)


def test_trials_are_not_sanitized_and_the_launch_is(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    @ptx_kernel
    def racy(x: Ptr[f32], *, A: int) -> None:
        x[0] = float(A) + ptx.tid.x.to(f32)

    k = autotune([Config(block=64, A=1), Config(block=64, A=2)])(racy)
    launch = k.configure(1, sanitize="race")
    launch.tune(np.zeros(1, np.float32))
    with pytest.raises(ptxdsl.RaceError):
        launch(np.zeros(1, np.float32))


def test_a_report(rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    with config.override(log="info"):
        k[grid(64)](64, *arrays(rng, 64))
    lines = [line for line in capsys.readouterr().err.splitlines() if "tuned" in line]
    assert len(lines) == 1
    assert lines[0].startswith("ptxdsl: tuned add, n = 64, on emulator: Config(block=64, WASTE=2) of 3 in ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_only(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        autotune(WASTES, cache=False)(make_add())[grid(9)](9, *arrays(rng, 9))
        shown = [line.strip() for line in stream.getvalue().split("\r")]
        if isinstance(stream, Terminal):
            assert shown == [
                "", "tuning add [                    ] 1/3 Config(block=64, WASTE=9)",
                "tuning add [#######             ] 2/3 Config(block=64, WASTE=2)",
                "tuning add [#############       ] 3/3 Config(block=64, WASTE=5)", "", "",
            ]
        else:
            assert shown == [""]


def test_the_table(rng: np.random.Generator) -> None:
    k = autotune(WASTES, ["n"])(make_add())
    k[grid(64)](64, *arrays(rng, 64))
    tuning = k.tuning()[0]
    least = min(trial.cost for trial in tuning)
    rows = [line.split() for line in repr(tuning).splitlines()]
    assert rows[0] == ["add,", "n", "=", "64,", "on", "emulator", "work", "of", "best"]
    assert rows[1:] == [
        ["Config(block=64,", f"WASTE={n})", f"{trial.cost:,.0f}", f"{trial.cost / least:.2f}"]
        for n, trial in ((2, tuning[1]), (5, tuning[2]), (9, tuning[0]))
    ]


@ptx_kernel
def at_module_level(x: Ptr[f32], *, A: int) -> None:
    x[ptx.tid.x] = float(A)


def test_repr() -> None:
    k = autotune(WASTES)(make_add())
    assert repr(k) == "<autotuned <ptx_kernel add(n: u32, y: Ptr[f32], x: Ptr[f32])>, 3 configurations>"


def test_configurations() -> None:
    one = Config(128, STAGES=3, NAME="a")
    assert repr(one) == "Config(block=128, STAGES=3, NAME='a')"
    assert (one.STAGES, one.block, one.launch) == (3, 128, {"block": 128})
    assert one == Config(block=128, STAGES=3, NAME="a")
    assert len({one, Config(block=128, STAGES=3, NAME="a"), Config(block=64, STAGES=3, NAME="a")}) == 2
    assert Config([8, 8]).block == (8, 8)
    assert pickle.loads(pickle.dumps(one)) == one
    assert Config.product(block=[1, 2], A=[3], B=range(2)) == [
        Config(1, A=3, B=0), Config(1, A=3, B=1), Config(2, A=3, B=0), Config(2, A=3, B=1)
    ]
    with pytest.raises(AttributeError, match=r"^Config\(block=128, STAGES=3, NAME='a'\) has no 'STAGE'"):
        one.STAGE
    with pytest.raises(AttributeError):
        one.block = 3  # type: ignore[misc]


def test_no_warning_where_all_is_well(rng: np.random.Generator) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        autotune(WASTES)(make_add())[grid(9)](9, *arrays(rng, 9))
    assert not told


def test_it_is_an_autotuned_kernel() -> None:
    k = autotune(WASTES)(make_add())
    assert isinstance(k, Autotuned)
    assert "add.f32" in k.kernel.ptx(**WASTES[0].constants)
