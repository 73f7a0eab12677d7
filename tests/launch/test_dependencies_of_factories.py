"""Kernels that a factory makes of one code: what it reads of the world is found once, and is never an old finding."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from notebook import PRELUDE

FACTORY = """
SCALE = 1
def helper(v): return v * abs(SCALE)
def factory(n):
    @ptx_kernel
    def k(out: Ptr[u32]):
        out[0] = helper(n + reg(u32, 0))
    return k
"""


@pytest.fixture
def names() -> Iterator[dict[str, object]]:
    """The names of a module that a factory of kernels is defined in."""
    module = types.ModuleType("module_of_a_factory")
    sys.modules[module.__name__] = module
    exec(PRELUDE + FACTORY, module.__dict__)
    yield module.__dict__
    del sys.modules[module.__name__]


def launched(kernel: object) -> int:
    out = np.zeros(1, np.uint32)
    kernel[1, 1](out)  # type: ignore[index]
    return int(out[0])


CHANGES = {
    "number": "SCALE = 10",
    "helper": "def helper(v): return v * 10",
    "code": "helper.__code__ = (lambda v: v * 10).__code__",
    "defaults": "def helper(v, by=1): return v * by\nhelper.__defaults__ = (10,)",
    "builtin": "def abs(n): return 10",
}


@pytest.mark.parametrize("change", CHANGES)
def test_kernels_made_before_and_after_a_change_see_it(names: dict[str, object], change: str) -> None:
    factory = names["factory"]
    first = factory(3)  # type: ignore[operator]
    assert (launched(first), launched(factory(4))) == (3, 4)  # type: ignore[operator]
    exec(CHANGES[change], names)
    assert (launched(factory(5)), launched(first)) == (50, 30)  # type: ignore[operator]
    names.pop("abs", None)
    exec(FACTORY, names)
    assert (launched(names["factory"](6)), launched(first)) == (6, 3)  # type: ignore[operator]


def test_one_list_in_a_cell_and_in_a_global_is_not_two(names: dict[str, object]) -> None:
    """What a factory's cell holds and what its module holds are compared as one world."""
    exec(
        "def pair(kept):\n    @ptx_kernel\n    def k(out: Ptr[u32]):\n        out[0] = 1 if kept is KEPT else 2\n"
        "    return k\n", names,
    )
    names["KEPT"] = kept = [1]
    assert launched(names["pair"](kept)) == 1  # type: ignore[operator]
    assert launched(names["pair"]([1])) == 2  # type: ignore[operator]
    kernel = names["pair"](kept)  # type: ignore[operator]
    assert launched(kernel) == 1
    names["KEPT"] = [1]
    assert launched(kernel) == 2


@pytest.mark.usefixtures("young_heap")
def test_data_is_not_kept_alive(names: dict[str, object]) -> None:
    exec("def helper(v): return v * int(DATA[0])", names)
    names["DATA"] = np.array([7])
    assert launched(names["factory"](2)) == 14  # type: ignore[operator]
    held = weakref.ref(names.pop("DATA"))
    gc.collect()  # the kernel
    assert held() is None
