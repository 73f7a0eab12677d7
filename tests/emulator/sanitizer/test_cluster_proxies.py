"""The programs of one block, run by each block of a cluster, and products of pairs of blocks: the same is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import proxy_programs
import pytest
import tensor_core_programs
import tensor_products
from tensor_products import Case, run_product

import ptxdsl
from ptxdsl.emulator.sanitizer.sanitizer import collect

_ALL = [*proxy_programs.programs(), *tensor_core_programs.programs()]
_KINDS = (
    "mbarrier: nothing", "mbarrier: fence, barrier", "cp.async -> wgmma: no wait", "swizzle of 128 bytes, begins at 5",
    "a warp's slab: overwritten", "a warp's slab: one fences behind", "bulk store, ends: no wait", "mma: no fence",
    "mma: fence", "cp of a part", "cp, an arrival, store", "load -> mma: a barrier", "wgmma of another's tile: mb",
)
PROGRAMS = [program for program in _ALL if program.name.startswith(_KINDS)]


def marked(text: str, mark: str) -> int | None:
    return next((n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(mark)), None)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs_of_one_block(program: Any) -> None:
    """What the blocks do to the same global memory is no part of these programs."""
    x, out = np.zeros(8192, np.uint8), np.zeros(8192, np.uint8)
    with collect() as found:
        kernel = ptxdsl.load(program.text)["k"]
        kernel.configure(2, 256, cluster=2, backend="emulator", sanitize=("race", "init"))(x, out)
    shared = [each for each in found if each.space != "global"]
    if program.right:
        assert [str(each) for each in shared] == []
        return
    first, lines = shared[0], {marked(program.text, "//@"), marked(program.text, "//#")} - {None}
    assert {first.access.ptx_line, *([first.earlier.ptx_line] if first.earlier else [])} == lines, str(first)


FENCE = "    fence.proxy.async;\n"
DRAIN = "ISSUED:\nWAIT:"


@pytest.fixture
def text() -> Iterator[Any]:
    """Changes the kernel of the products."""
    before = tensor_products._KERNEL

    def change(old: str, new: str) -> None:
        assert old in before
        tensor_products._KERNEL = before.replace(old, new, 1)
        tensor_products._module.cache_clear()

    yield change
    tensor_products._KERNEL = before
    tensor_products._module.cache_clear()


@pytest.mark.parametrize(("old", "new", "message"), [
    (FENCE, FENCE, ""),
    (FENCE, "", "has written through another proxy: no proxy fence is between"),
    (FENCE, f"    setp.eq.u32 %p, %rank, 0;\n    @%p {FENCE}", "of block 1 of the cluster, which the store by thread"),
    (DRAIN, f"ISSUED:\nbarrier.cluster.arrive; barrier.cluster.wait; st.shared.b32 [tiles], 0;\n{DRAIN[8:]}",
     "race on tiles[0] in shared memory: store by thread"),
    ("    mov.u32 %c, {first};\nDRAIN:", "    st.shared.b32 [tiles], 0;\n    mov.u32 %c, {first};\nDRAIN:", ""),
])
def test_products_of_pairs(text: Any, old: str, new: str, message: str) -> None:
    """Both blocks' tiles are read by the thread of the first one. Where they lie is drawn: here one begins at 0."""
    text(old, new)
    rng = np.random.default_rng(0)
    with collect() as found:
        run_product(Case(kind="f16", m=256, n=64, group=2), rng, sanitize=("race",))
    assert bool(found) == bool(message), [str(each) for each in found]
    assert not message or message in found[0].message
