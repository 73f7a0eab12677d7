"""What loads and stores wish of the caches: each combination that the table has, and no other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tracing_helpers import ptx as body_of
from tracing_helpers import refused, said

from ptxdsl import Array, Ptr, const, f32, ptx, ptx_kernel, reg, shared, u32
from ptxdsl.errors import PtxError, UnknownInstruction
from ptxdsl.isa import lookup

CACHE = (None, "ca", "cg", "cs", "lu", "cv", "wb", "wt")
EVICT = {
    None: None, "normal": "L1::evict_normal", "unchanged": "L1::evict_unchanged", "first": "L1::evict_first",
    "last": "L1::evict_last", "no_allocate": "L1::no_allocate",
}
PREFETCH = (None, "64B", "128B", "256B")


def there(*tokens: str | None) -> bool:
    try:
        lookup(".".join(token for token in tokens if token))
    except UnknownInstruction:
        return False
    return True


@pytest.mark.parametrize("nc", [False, True])
@pytest.mark.parametrize("hinted", [False, True])
def test_loads_are_those_of_the_table(nc: bool, hinted: bool) -> None:
    element: Any = const[f32] if nc else f32
    accepted = 0
    for cache, evict, prefetch, width in product(CACHE, EVICT, PREFETCH, (1, 4)):

        def kernel(x: Ptr[element], y: Ptr[f32]) -> None:
            policy = ptx.createpolicy.fractional.L2__evict_first.b64() if hinted else None
            found = x.load(8, width=width, cache=cache, evict=evict, prefetch=prefetch, policy=policy)
            y.store(0, list(found) if width > 1 else found)

        kernel.__annotations__["x"] = Ptr[element]
        tokens = (
            "ld.global", cache, "nc" if nc else None, EVICT[evict], "L2::cache_hint" if hinted else None,
            prefetch and f"L2::{prefetch}", "v4" if width == 4 else None, "f32",
        )
        wanted = ".".join(token for token in tokens if token)
        if there(*tokens):
            line = next(line for line in body_of(kernel) if line.startswith("ld.global"))
            assert line.split()[0] == wanted
            assert line.endswith("[%rd0+32], %rd2" if hinted else "[%rd0+32]")
            accepted += 1
        else:
            assert said(refused(kernel), kernel)[0] == "PtxTypeError", wanted
    assert accepted > 50


def test_stores_are_those_of_the_table() -> None:
    for cache, evict, space in product(CACHE, EVICT, ("global", "shared")):

        def kernel(x: Ptr[f32]) -> None:
            target: Any = x if space == "global" else shared(f32, 4)
            target.store(1, 2.0, cache=cache, evict=evict)

        tokens = f"st.{space}", cache, EVICT[evict], "f32"
        if there(*tokens):
            line = body_of(kernel)[-2]
            assert line.split()[0] == ".".join(token for token in tokens if token)
        else:
            assert isinstance(refused(kernel), PtxError)


def test_results(rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(a: Array[const[f32], 2], y: Ptr[f32]) -> None:
        policy, i, v = ptx.createpolicy.fractional.L2__evict_first.b64(), ptx.tid.x, reg(f32, 0.0)
        a.load((1, i), cache="cs", policy=policy, out=v, pred=i < 20)
        w = a.load((2, i), evict="no_allocate", prefetch="256B")
        y.store(i, v + w, evict="first", policy=policy)

    a, y = rng.integers(-9, 9, (3, 32)).astype(np.float32), np.full(32, np.nan, np.float32)
    kernel.configure(1, 32, backend="emulator", sanitize="all")(a, y)
    np.testing.assert_array_equal(y, np.where(np.arange(32) < 20, a[1], 0) + a[2])
    assert kernel.cubin(arch="sm_90a")[:4] == b"\x7fELF"


def test_mistakes() -> None:
    def unknown(x: Ptr[f32]) -> None:
        x.load(0, cache="first")

    def together(x: Ptr[f32]) -> None:
        x.load(0, cache="cs", evict="first")

    def of_loads(x: Ptr[f32]) -> None:
        x.store(0, 1.0, cache="lu")

    def in_shared() -> None:
        shared(f32, 4).load(0, evict="first")

    def no_policy(x: Ptr[f32], n: u32) -> None:
        x.store(0, 1.0, policy=n)

    def of_tables(x: Ptr[Ptr[f32]]) -> None:
        x.load(0, cache="cs")

    kind = "PtxTypeError"
    assert said(refused(unknown), unknown) == (
        kind, "`cache` of the str 'first'", 'x.load(0, cache="first")',
        "`cache=` can be 'ca', 'cg', 'cs', 'lu', 'cv' here",
    )
    assert said(refused(together), together) == (
        kind, "PTX has no ld of f32 in global memory with cache='cs' evict='first'",
        'x.load(0, cache="cs", evict="first")', "leave `cache` or `evict` out",
    )
    assert said(refused(of_loads), of_loads) == (
        kind, "PTX has no st of f32 in global memory with cache='lu'", 'x.store(0, 1.0, cache="lu")',
        "`cache=` can be 'cg', 'cs', 'wb', 'wt' here",
    )
    assert said(refused(in_shared), in_shared) == (
        kind, "PTX has no ld of f32 in shared memory with evict='first'", 'shared(f32, 4).load(0, evict="first")',
        "leave `evict` out",
    )
    assert said(refused(no_policy), no_policy) == (
        kind, "`policy` is a u64 that `createpolicy` made, not u32", "x.store(0, 1.0, policy=n)",
        "`policy = ptx.createpolicy.fractional.L2__evict_last.b64()`",
    )
    assert said(refused(of_tables), of_tables)[:2] == (kind, "a table of pointers gives one pointer at a time")
