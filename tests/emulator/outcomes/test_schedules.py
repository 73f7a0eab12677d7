"""schedule="explore" for whole blocks: what is wrong is found in some order of what synchronises, what is right is not.

The programs are those of ``protocol_programs``; each that is wrong says which error, and none of the right ones may.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from correct_kernels import CORRECT
from protocol_programs import PROGRAMS, Program, bulk_load, counter, flag, lock, ring, two_locks

import ptxdsl


WRONG = [p for p in PROGRAMS if p.wrong not in ("", "differs") and p.name != "products early"]


def _launch(program: Program, schedule: str = "explore") -> Any:
    return program.kernel.configure(
        program.grid, program.block, schedule=schedule, backend="emulator", **program.options
    )


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.wrong], ids=lambda p: p.name)
def test_right_programs_are_right_in_every_schedule(program: Program) -> None:
    arguments = program.arguments()
    _launch(program)(*arguments, **program.constants)  # a warning, as of a bound, is an error
    assert program.holds(arguments)


@pytest.mark.parametrize("program", WRONG, ids=lambda p: p.name)
def test_wrong_programs_are_found_with_a_schedule_that_shows_it(program: Program) -> None:
    with pytest.raises(ptxdsl.EmulationError) as error:
        _launch(program)(*program.arguments(), **program.constants)
    assert type(error.value).__name__ == program.wrong
    told = re.search(r'`schedule="([^"]+)"` makes again', str(error.value.__cause__))
    assert told is not None
    with pytest.raises(ptxdsl.EmulationError) as again:
        _launch(program, told[1])(*program.arguments(), **program.constants)
    assert str(again.value) == str(error.value)


def _told(kernel: Any, grid: int, block: int, *arguments: Any, **constants: Any) -> tuple[str, str]:
    """The error of an exploration and what it says of the schedule, with line numbers behind the kernel's."""
    first = kernel.function.__code__.co_firstlineno
    with pytest.raises(ptxdsl.EmulationError) as error:
        kernel.configure(grid, block, schedule="explore", backend="emulator")(*arguments, **constants)

    def numbered(text: object) -> str:
        return re.sub(r"\S*protocol_programs.py:(\d+)", lambda m: f"line {int(m[1]) - first}", str(text))

    return numbered(error.value), numbered(error.value.__cause__)


def test_a_race_is_told_with_both_lines_and_the_schedule() -> None:
    error, cause = _told(flag, 2, 64, *(np.zeros(n, np.uint32) for n in (64, 1, 64)), how="relaxed")
    assert re.sub(r"  PTX line \d+: \n", "", error) == (
        "nothing orders two accesses to x[0]: warp 0 of block 0 writes it at line 4, warp 0 of block 1 reads it at "
        "line 24\n  at line 24: out[thread] = x[thread]\n"
        '  hint: a barrier between them, or a release and an acquire of one flag; `sanitize="race"` says more'
    )
    assert cause == (
        'in this schedule, which `schedule="0:0.0"` makes again (found in 1 schedule):\n'
        "  0: warp 0 of block 0: line 6\n"
        "  2: warp 1 of block 0: line 6\n"
        "  4: warp 0 of block 1: its begin\n"
        "  5: warp 1 of block 1: line 23\n"
        "  7: warp 0 of block 0: line 11\n"
        "  9: warp 0 of block 1: line 22, line 23, line 24\n"
        "  12: warp 1 of block 1: line 24"
    )


def test_a_copy_that_nobody_waits_for_is_told() -> None:
    error, cause = _told(bulk_load, 1, 64, np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32), how="no wait")
    assert error.startswith(
        "nothing orders two accesses to tile[0]: warp 0 of block 0 reads it at line 11, an operation of warp 0 of "
        "block 0 writes it at line 6\n  at line 6: "
    )
    assert error.endswith(
        "hint: wait for an operation before its bytes are used, and give a stage back behind its last use"
    )
    assert cause.endswith(
        "  6: warp 0 of block 0: line 5, line 6, line 11\n"
        "  10: what warp 0 of block 0 began at line 6 completes"
    )


def test_a_product_whose_stage_is_given_back_is_told() -> None:
    program = next(p for p in PROGRAMS if p.name == "products early")
    with pytest.raises(ptxdsl.RaceError) as error:
        _launch(program)(*program.arguments(), **program.constants)
    assert re.fullmatch(
        r"c\[\d+, \d+\] depends on whether an operation of warp 4 of block 0 at \S+ touches shared memory before an "
        r"operation of warp 0 of block 0 at \S+ does, and nothing orders them", str(error.value).partition("\n")[0],
    )
    assert "wgmma.multiply(sums, left[slot], right[slot].T)" in str(error.value)


def test_a_deadlock_is_told_with_the_steps_that_are_out_of_order() -> None:
    error, cause = _told(two_locks, 2, 32, *(np.zeros(n, np.uint32) for n in (2, 1)), how="in a circle")
    assert error.startswith("deadlock: every warp polls memory in a loop, and nothing changes it any more\n")
    assert re.sub(r"\d+ schedules", "n schedules", cause) == (
        'in this schedule, which `schedule="2:1.0"` makes again (found in n schedules):\n'
        "  0: warp 0 of block 0: line 6\n"
        "* 2: warp 0 of block 1: line 6\n"
        "  4: warp 0 of block 0: line 6\n"
        "  5: warp 0 of block 1: line 6"
    )


def test_results_that_differ_by_the_order_of_strong_accesses_are_warned_of() -> None:
    count = np.zeros(1, np.uint32)
    launch = counter.configure(3, 32, schedule="explore", backend="emulator")
    with pytest.warns(ptxdsl.PtxWarning) as warned:
        launch(count, how="lost")
    told = re.fullmatch(
        r'count\[0\] differs between schedules: compare `schedule="(\S+)"` and `schedule="([^"]+)"`',
        str(warned[0].message),
    )
    assert told is not None
    seen = []
    for schedule in told.groups():
        again = np.zeros(1, np.uint32)
        counter.configure(3, 32, schedule=schedule, backend="emulator")(again, how="lost")
        seen.append(int(again[0]))
    assert seen[0] == count[0] == 3
    assert seen[1] < 3


def test_outcomes_of_a_larger_launch() -> None:
    found = ptxdsl.outcomes(counter.configure(3, 32), np.zeros(1, np.uint32), how="lost")
    assert {int(outcome.count[0]) for outcome in found} == {1, 2, 3}
    assert not found.complete
    with pytest.raises(AssertionError, match="whose weak behaviour only launches of a few threads show, so that"):
        found.forbid(count=[0])
    found.require(count=[1])
    assert "makes again" in found.where(count=[1])[0].execution
    arguments = [np.zeros(n, np.uint32) for n in (64, 1, 64)]
    races = ptxdsl.outcomes(flag.configure(2, 64), *arguments, how="relaxed").races
    assert len(races) == 1
    assert races[0].startswith("nothing orders two accesses to x[0]: warp 0 of block 0 writes it at ")
    assert not any(array.any() for array in arguments)


def test_a_launch_that_only_barriers_synchronise_is_complete() -> None:
    program = next(p for p in PROGRAMS if p.name == "ring")
    x, y = program.arguments()
    found = ptxdsl.outcomes(program.kernel.configure(1, 64), x, y, how="")
    found.always(lambda o: (o.y[:192] == x[:192]).all())
    assert found.complete
    with pytest.raises(AssertionError, match="the search has ended after 2 schedules, so that nothing is proved"):
        ptxdsl.outcomes(counter.configure(3, 32), np.zeros(1, np.uint32), how="lost", limit=2).always(lambda _: True)


def test_a_bound_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.emulator.outcomes.schedule_outcomes.SCHEDULES", 2)
    launch = lock.configure(2, 64, schedule="explore", backend="emulator")
    with pytest.warns(ptxdsl.PtxWarning, match="ended at a bound, after 2 schedules without an error: there are more"):
        launch(*(np.zeros(1, np.uint32) for _ in range(2)), how="")


def test_schedules_that_are_none() -> None:
    arguments = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
    for schedule in ("0:3.0", "2:0.7", "4:0.0#0", "9999:0.1"):
        with pytest.raises(ptxdsl.LaunchError, match="is no schedule of this launch: some step cannot be made there"):
            ring.configure(1, 64, schedule=schedule, backend="emulator")(*arguments, how="")
    for schedule in ("", "0:0", "all", "0:0.0,1:0.1"):
        with pytest.raises(ptxdsl.LaunchError, match="or a schedule that an exploration has told, not"):
            ring.configure(1, 64, schedule=schedule)
    with pytest.raises(ptxdsl.LaunchError, match="a launch has a schedule or a seed: seed=3 draws one schedule, and"):
        ring.configure(1, 64, schedule="explore", seed=3)


@pytest.mark.parametrize("name", ["last_block", "all_fence_then_barrier", "flag_in_a_block"])
def test_correct_kernels_of_the_sanitizer(name: str) -> None:
    case = CORRECT[name]
    x, y, flags = np.arange(8192, dtype=np.uint32), np.zeros(8192, np.uint32), np.zeros(64, np.uint32)
    case.kernel.configure(case.grid, case.block, schedule="0:0.0", backend="emulator")(x, y, flags, **case.constants)
