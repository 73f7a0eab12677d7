"""What nobody holds any more is freed at once, without Python's collector: kernels, modules, and arrays of launches.

The collector runs when many objects were made, not when they are large, so a cycle that holds an array can fill memory.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, EmulationError, EscapeError, LaunchError, MemoryFault, ParseError, Ptr, PtxError, TrapError,
    UnknownInstruction, check, ptx, ptx_func, ptx_kernel, shared, u32, use, when,
)

TEXT = """.version 8.0
.target sm_80
.address_size 64
// {}
.visible .entry k(.param .u64 x, .param .u32 n)
{{
.reg .b64 %rd<4>; .reg .b32 %r<4>;
ld.param.u64 %rd0, [x];
ld.param.u32 %r0, [n];
mul.wide.u32 %rd1, %r0, 4;
add.u64 %rd0, %rd0, %rd1;
st.global.u32 [%rd0], %r0;
ret;
}}
"""


@pytest.fixture(autouse=True)
def on_the_emulator() -> Iterator[None]:
    with use("emulator"):
        yield


def array() -> Any:
    return np.zeros(1000, np.uint32)


def foreign(n: int) -> tuple[Any, ...]:
    m, x = ptxdsl.load(TEXT.format(os.urandom(8).hex())), array()
    refused(MemoryFault, m["k"][1, 1], x, n)
    assert list(m.variables) == []
    return m, m["k"], x


def traced(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        x[n] = n

    x = array()
    refused(MemoryFault, k[1, 1], x, n)
    return k, x


def strided(n: int) -> tuple[Any, ...]:
    @ptx_func
    def twice(n: u32) -> u32:
        return n + n

    @ptx_kernel
    def k(x: Array[u32, 2], n: u32):
        x[0, twice(n)] = n

    x = array().reshape(10, 100)
    refused(MemoryFault, k[1, 1], x, n)
    return k, twice, x


def many_blocks(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        x[ptx.ctaid.x + n] = n

    x = array()
    refused(MemoryFault, k[64, 1], x, n)
    return k, x


def in_clusters(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        ptx.barrier.cluster.arrive()
        ptx.barrier.cluster.wait()
        x[n] = n

    x = array()
    refused(MemoryFault, k.configure(2, 1, cluster=2), x, n)
    return k, x


def sanitized(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        tile = shared(u32, 8)
        x[0] = tile[1]
        x[n] = ptx.tid.x

    x = array()
    refused(EmulationError, k.configure(1, 64, sanitize="all"), x, n)
    return k, x


def trapped(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        check(n < 10, "too large")
        x[n] = n

    x = array()
    refused(TrapError, k[1, 1], x, n)
    return k, x


def not_traced(_: int) -> tuple[Any, ...]:
    @ptx_kernel
    def escapes(x: Ptr[u32], n: u32):
        with when(n > 1):
            a = n + 1
        x[0] = a

    @ptx_kernel
    def unknown(x: Ptr[u32], n: u32):
        ptx.addd.u32(n, x)

    @ptx_kernel
    def missing(x: Ptr[u32], n: u32):
        n.nothing()

    x = array()
    refused(EscapeError, escapes[1, 1], x, 5000)
    refused(UnknownInstruction, unknown[1, 1], x, 5000)
    refused(PtxError, missing[1, 1], x, 5000)
    return escapes, unknown, missing, x


def not_launched(_: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        x[n] = n

    x = np.zeros(10)
    refused(LaunchError, k[1, 1], x, 5000)
    refused(ParseError, ptxdsl.load, TEXT.format("").replace("ld.param", "ld.parm"), 5000)
    return k, x


def profiled(n: int) -> tuple[Any, ...]:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32):
        x[n] = n

    x = array()
    with ptxdsl.profile() as p:
        refused(MemoryFault, k[1, 1], x, n)
    return k, x, p


def refused(kind: type[Exception], call: Callable[..., Any], *args: Any) -> None:
    """Call it; an error is wanted where the last argument is large."""
    try:
        call(*args[: 1 if call is ptxdsl.load else None])
    except kind:
        assert args[-1] == 5000 or kind is EmulationError
    else:
        assert args[-1] != 5000


CASES = [
    foreign, traced, strided, many_blocks, in_clusters, sanitized, trapped, not_traced, not_launched, profiled,
]


@pytest.mark.parametrize("n", [5, 5000], ids=["runs", "fails"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_nothing_waits_for_the_collector(case: Callable[[int], tuple[Any, ...]], n: int) -> None:
    gc.disable()
    try:
        alive = [weakref.ref(thing) for thing in case(n)]
        assert [reference() for reference in alive if reference() is not None] == []
    finally:
        gc.enable()


def test_a_launch_keeps_its_kernel() -> None:
    def launch() -> Any:
        @ptx_kernel
        def k(x: Ptr[u32], n: u32):
            x[n] = n

        return k[1, 1]

    ready, x = launch(), array()
    for _ in range(3):
        ready(x, 7)
    assert x[7] == 7 and ready.kernel.entry == "k" and ready.config.threads == 1
