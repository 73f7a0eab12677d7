"""Rule R2 for counters: those that only count, or only make names, pass; those that the kernel reads do not.

Also what a Python `for` rebuilds, and the lines that are named where a library of Python's stands between.
"""

from __future__ import annotations

import contextlib
import heapq
import inspect
import itertools
import logging
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import ControlFlowError, LostUpdateError, Ptr, TruthError, label, loop, ptx, ptx_kernel, u32, when
from ptxdsl.language import trace

LOG = logging.getLogger(__name__)
STATISTICS = {"loads": 0}
NUMBER = 0
NUMBERS = itertools.count()


class Stage:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.entered = function, 0

    def __call__(self, v: Any) -> Any:
        self.entered += 1
        return self.function(v)

    def number(self) -> int:
        self.entered += 1
        return self.entered


class Timer:
    total = 0.0

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        Timer.total += time.perf_counter() - self.start


class Names:
    def __init__(self) -> None:
        self.count, self.by_stem = 0, {}

    def fresh(self, stem: str) -> str:
        k = self.by_stem.get(stem, 0)
        self.by_stem[stem] = k + 1
        return f"{stem}_{k}"

    def padded(self, stem: str) -> str:
        self.count += 1
        name = f"{stem}{self.count:03d}"
        return name  # noqa: RET504


class Level:
    level = 0

    @classmethod
    def raised(cls) -> None:
        cls.level += 1  # wrong class_method


def load(x: Any, i: Any) -> Any:
    STATISTICS["loads"] += 1
    load.calls += 1
    LOG.debug("load %d", load.calls)
    print(f"{load.calls} loads", end="")
    return x[i]


load.calls = 0  # type: ignore[attr-defined]


def number() -> int:
    load.calls += 1  # type: ignore[attr-defined] # wrong number_returned
    return load.calls  # type: ignore[attr-defined]


def fresh() -> str:
    global NUMBER  # noqa: PLW0603
    NUMBER += 1
    return f"skip_{NUMBER}"


def fresh_by_iterator() -> str:
    return f"mark_{next(NUMBERS)}"


# ---------------------------------------------------------------------------------------------------------------------
# Right: each leaves 0, 2, 4


def r_statistics(n: Any, x: Any) -> None:
    with loop(n) as i:
        x[i] = load(x, i) * 2


def r_counted_calls(n: Any, x: Any) -> None:
    stages = [Stage(lambda v: v * 4), Stage(lambda v: v >> 1)]
    with loop(n) as i:
        v = x[i]
        for stage in stages:
            v = stage(v)
        x[i] = v


def r_closure(n: Any, x: Any) -> None:
    stores = 0

    def store(i: Any, v: Any) -> None:
        nonlocal stores
        stores += 1
        x[i] = v

    with loop(n) as i:
        store(i, x[i] * 2)


def r_timer(n: Any, x: Any) -> None:
    with Timer(), loop(n) as i, Timer():
        x[i] = x[i] * 2


def r_names(n: Any, x: Any) -> None:
    names = Names()
    with loop(n) as i:
        for stem in ("a", "a", "b"):
            skip = names.fresh(stem)
            ptx.bra(skip, pred=i > 5)
            x[i] = i * 2
            label(skip)
        label(names.padded("at"))
    label(names.padded("at"))


def r_names_of_functions(n: Any, x: Any) -> None:
    for _ in range(2):
        with loop(n) as i:
            skip = fresh()
            ptx.bra(skip, pred=i > 5)
            x[i] = i * 2
            label(skip)
            label(fresh_by_iterator())


def r_rebuilt(n: Any, x: Any) -> None:
    parts, more = [x[0], x[1]], [x[0], x[1], x[2]]
    with loop(n) as i:
        for k in range(len(parts)):
            parts[k] = x[i]
        for k, v in enumerate([i, i, i]):
            more[k] = v
        x[i] = parts[1] + more[2]


def r_stack(n: Any, x: Any) -> None:
    for k in range(3):
        with contextlib.ExitStack() as stack:
            stack.enter_context(when(n > k))
            x[k] = k * 2


# ---------------------------------------------------------------------------------------------------------------------
# Wrong


def number_returned(n: Any, x: Any) -> None:
    with loop(n) as i:
        x[i] = number()


def method_returns_number(n: Any, x: Any) -> None:
    stage = Stage(lambda v: v)
    with loop(n) as i:
        x[i] = stage.entered
        stage.entered += 1  # wrong


def read_after(n: Any, x: Any) -> None:
    stage = Stage(lambda v: v)
    with when(n > 5):
        stage.entered += 1  # wrong
    x[0] = stage.entered


def closure_read_after(n: Any, x: Any) -> None:
    stores = 0

    def store(i: Any) -> None:
        nonlocal stores
        stores += 1  # wrong
        x[i] = 1

    with loop(n) as i:
        store(i)
    x[0] = stores


def values_summed(n: Any, x: Any) -> None:
    sums = [x[0], x[1]]
    with loop(n) as i:
        sums[0] += x[i]  # wrong


def class_method(n: Any, x: Any) -> None:
    with when(n > 5):
        Level.raised()
    x[0] = Level.level


def rebuilt_in_part(n: Any, x: Any) -> None:
    parts = [x[0], x[1], x[2]]
    with loop(n) as i:
        for k in range(2):
            parts[k] = x[i]
        parts[2] = parts[2] + parts[0]  # wrong


def rebuilt_in_part_by_name(n: Any, x: Any) -> None:
    parts, last = [x[0], x[1], x[2]], 2
    with loop(n) as i:
        pair = [i, i]
        for k, v in enumerate(pair):
            parts[k] = v
        x[i] = parts[last]
        parts[2] = x[i] + parts[0]  # wrong


def returns_from_a_stack(n: Any, x: Any) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(when(n > 5))
        x[0] = 9
        return  # wrong ControlFlowError
    x[1] = 5


def breaks_from_a_stack(n: Any, x: Any) -> None:
    for k in range(3):
        with contextlib.ExitStack() as stack:
            stack.enter_context(when(n > k))
            if k:
                break  # wrong ControlFlowError
            x[k] = 7


def compared_by_a_library(n: Any, x: Any) -> None:
    x[0] = heapq.nlargest(1, [x[1], n])[0]  # wrong TruthError


PROGRAMS = [value for value in list(globals().values()) if isinstance(value, types.FunctionType)]
PROGRAMS = [each for each in PROGRAMS if each.__module__ == __name__ and each.__code__.co_varnames[:2] == ("n", "x")]
WRONG = [each for each in PROGRAMS if not each.__name__.startswith("r_")]
RIGHT = [each for each in PROGRAMS if each.__name__.startswith("r_")]


@pytest.mark.parametrize("program", WRONG, ids=lambda f: f.__name__)
def test_wrong(program: Callable[[Any, Any], None]) -> None:
    lines = inspect.getsource(inspect.getmodule(program) or program).splitlines()
    first = program.__code__.co_firstlineno
    own = [k for k, line in enumerate(lines, 1) if line.endswith(f"# wrong {program.__name__}")]
    marked = own or [k for k, line in enumerate(lines, 1) if k > first and "# wrong" in line]
    named = lines[marked[0] - 1].rpartition("# wrong")[2].strip()
    kind = {"ControlFlowError": ControlFlowError, "TruthError": TruthError}.get(named, LostUpdateError)

    def kernel(n: u32, x: Ptr[u32]) -> None:
        program(n, x)

    with pytest.raises(kind) as caught:
        trace(kernel)
    assert caught.value.loc is not None
    assert (caught.value.loc.file, caught.value.loc.line) == (__file__, marked[0])


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_right(program: Callable[[Any, Any], None]) -> None:
    def kernel(n: u32, x: Ptr[u32]) -> None:
        program(n, x)

    x = np.arange(8, dtype=np.uint32)
    ptx_kernel(kernel)[1, 1](3, x)
    assert x[:3].tolist() == [0, 2, 4]
