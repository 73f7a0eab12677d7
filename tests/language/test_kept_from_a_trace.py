"""What a helper keeps from one trace to the next: an error where it is used, wherever it was kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    EscapeError, Ptr, StructureError, TensorMap, const, dynamic_shared, f32, global_, label, local, ptx,
    ptx_func, ptx_kernel, reg, shared, u32, when,
)

# What can be kept: how it is made from the kernel's parameters, and how it is used.
MADE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "a shared array": (lambda n, x: shared(u32, 4), lambda kept, x: kept[0]),
    "a row of a shared array": (lambda n, x: shared(u32, 4, 4)[1], lambda kept, x: kept[2]),
    "a shared array by a run-time index": (lambda n, x: shared(u32, 4), lambda kept, x: kept[ptx.tid.x]),
    "a shared array that is written": (lambda n, x: shared(u32, 4), lambda kept, x: kept.store(0, 1)),
    "a shared array's address": (lambda n, x: shared(u32, 4), lambda kept, x: kept.address),
    "a shared array as an operand": (lambda n, x: shared(u32, 4), lambda kept, x: ptx.ld.shared.u32(kept)),
    "a shared array in a pointer that moves": (lambda n, x: shared(u32, 4), lambda kept, x: reg(kept)),
    "a shared array's generic address": (lambda n, x: shared(u32, 4), lambda kept, x: kept.generic()[0]),
    "a shared array, moved and cast": (lambda n, x: (shared(u32, 4) + 1).cast(f32), lambda kept, x: kept[0]),
    "a local array": (lambda n, x: local(u32, 4), lambda kept, x: kept[0]),
    "a table": (lambda n, x: const(np.arange(4, dtype=np.uint32)), lambda kept, x: kept[0]),
    "an array of the module": (lambda n, x: global_(u32, 1), lambda kept, x: kept[0]),
    "an array of the module as a number": (lambda n, x: global_(u32, 1), lambda kept, x: ptx.mov.u64(kept)),
    "dynamic shared memory": (lambda n, x: dynamic_shared(u32), lambda kept, x: kept[0]),
    "an array of dynamic shared memory": (lambda n, x: dynamic_shared(u32, 4), lambda kept, x: kept[0]),
    "a value": (lambda n, x: n + 1, lambda kept, x: kept + 1),
    "a parameter": (lambda n, x: n, lambda kept, x: kept + 1),
    "a pointer": (lambda n, x: x, lambda kept, x: kept[0]),
    "a pointer that was moved": (lambda n, x: x + n, lambda kept, x: kept[0]),
    "a pointer in a reg": (lambda n, x: reg(x), lambda kept, x: kept[0]),
    "a reg": (lambda n, x: reg(u32, 1), lambda kept, x: kept + 1),
    "a reg that is written": (lambda n, x: reg(u32, 1), lambda kept, x: kept.set(2)),
    "a predicate": (lambda n, x: n > 1, lambda kept, x: x.store(0, 1, pred=kept)),
    "a predicate, negated": (lambda n, x: ~(n > 1), lambda kept, x: x.store(0, 1, pred=kept)),
    "a vector": (lambda n, x: x.load(0, width=2), lambda kept, x: x.store(0, kept)),
    "a part": (lambda n, x: n.part("b0"), lambda kept, x: ptx.vadd.u32.u32.u32(kept, 1)),
    "a special register": (lambda n, x: ptx.tid.x + 0, lambda kept, x: x.store(0, kept)),
    "a label": (lambda n, x: label(), lambda kept, x: ptx.bra(kept, pred=x[0] > 1)),
    "a block": (lambda n, x: when(n > 1), lambda kept, x: kept.__enter__()),
}


class _Slots:
    __slots__ = ("kept",)


def _global(kept: dict[str, Any], make: Callable[[], Any]) -> Any:
    if "it" not in kept:
        kept["it"] = make()
    return kept["it"]


def _attribute(kept: dict[str, Any], make: Callable[[], Any]) -> Any:
    held = kept.setdefault("holder", _Slots())
    if not hasattr(held, "kept"):
        held.kept = [(make(),)]
    return held.kept[0][0]


def _cached(kept: dict[str, Any], make: Callable[[], Any]) -> Any:
    if "cached" not in kept:
        kept["cached"] = functools.lru_cache(make)
    return kept["cached"]()


def _generator(kept: dict[str, Any], make: Callable[[], Any]) -> Any:
    def again() -> Any:
        made = make()
        while True:
            yield made

    return next(kept.setdefault("generator", again()))


KEEPERS = [_global, _attribute, _cached, _generator]


@pytest.mark.parametrize("keep", KEEPERS)
@pytest.mark.parametrize("name", MADE)
def test_what_is_kept_is_refused_in_the_next_trace(name: str, keep: Callable[..., Any]) -> None:
    make, use = MADE[name]
    held: dict[str, Any] = {}
    blocks = name in ("a block", "a label")

    def first(n: u32, x: Ptr[u32]) -> None:
        found = keep(held, lambda: make(n, x))
        if not blocks:
            use(found, x)

    def second(n: u32, x: Ptr[u32]) -> None:
        shared(u32, 4)
        use(keep(held, lambda: make(n, x)), x)  # wrong

    if name == "a block":
        with pytest.raises(StructureError, match="is never entered"):
            ptx_kernel(first).ptx()
    else:
        ptx_kernel(first).ptx()
    with pytest.raises((EscapeError, StructureError)) as caught:
        ptx_kernel(second).ptx()
    # In the lambda of the table, or where a keeper calls it: a line of the user's in any case.
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_the_message() -> None:
    @functools.lru_cache
    def tile() -> Any:
        return shared(u32, 32)

    @ptx_kernel
    def first(x: Ptr[u32]) -> None:
        tile()[0] = x[0]

    @ptx_kernel
    def second(x: Ptr[u32]) -> None:
        tile()[0] = x[0]

    first.ptx()
    with pytest.raises(EscapeError) as caught:
        second.ptx()
    line = test_the_message.__code__.co_firstlineno + 3
    assert caught.value.message == (
        f"`shared` was declared at {__file__}:{line}, in the trace of `first`, which is over"
    )
    assert caught.value.hint == (
        "declare it in this kernel: no helper may keep it from one trace to the next, in a cache or a global"
    )
    assert caught.value.loc is not None and caught.value.loc.line == line + 8


def test_the_same_kernel_traced_again() -> None:
    held: dict[str, Any] = {}

    @ptx_kernel
    def kernel(x: Ptr[u32]) -> None:
        x[0] = _global(held, lambda: const([7], u32))[0]

    out = np.zeros(1, np.uint32)
    kernel[1, 1](out)
    kernel[1, 1](out)
    assert out[0] == 7
    kernel.retrace()
    with pytest.raises(EscapeError):
        kernel[1, 1](out)
    held.clear()
    kernel[1, 1](out)
    assert out[0] == 7


def test_an_array_of_the_kernel_in_a_function() -> None:
    held: list[Any] = []

    @ptx_func
    def inner(a: u32) -> u32:
        held[0][0] = a
        return a

    @ptx_kernel
    def kernel(x: Ptr[u32]) -> None:
        held[:] = [shared(u32, 4)]
        x[0] = inner(x[0])

    with pytest.raises(EscapeError) as caught:
        kernel.ptx()
    assert caught.value.message.endswith("in the trace of `kernel`, and this is another function")
    assert caught.value.hint == "declare it in this function, or give the function what it reads"


def test_the_module_s_arrays_serve_its_functions() -> None:
    held: list[Any] = []

    @ptx_func
    def inner(a: u32) -> u32:
        return held[0][a]

    @ptx_kernel
    def kernel(x: Ptr[u32]) -> None:
        held[:] = [const([5, 6, 7], u32)]
        x[0] = inner(x[0]) + inner(1)

    out = np.array([2], np.uint32)
    kernel[1, 1](out)
    assert out[0] == 13


def test_a_helper_that_keeps_an_array_for_one_trace() -> None:
    """A right program: the helper is made anew in each trace."""

    def run(count: int) -> int:
        @ptx_kernel
        def kernel(x: Ptr[u32]) -> None:
            @functools.lru_cache
            def tile(n: int) -> Any:
                return shared(u32, n)

            for i in range(count):
                tile(8)[i] = i
            ptx.bar.sync(0)
            x[0] = tile(8)[count - 1]

        out = np.zeros(1, np.uint32)
        for _ in range(2):
            kernel[1, 1](out)
            kernel.retrace()
        return int(out[0])

    assert [run(n) for n in (1, 3, 8)] == [0, 2, 7]


def test_a_tensor_map_of_another_kernel() -> None:
    held: list[Any] = []

    @ptx_kernel
    def first(tensor: TensorMap) -> None:
        held.append(tensor)
        ptx.prefetch.tensormap(tensor)

    @ptx_kernel
    def second(tensor: TensorMap) -> None:
        ptx.prefetch.tensormap(held[0])

    first.ptx()
    with pytest.raises(EscapeError, match=r"`tensor` was declared at .*, in the trace of `first`, which is over"):
        second.ptx()
