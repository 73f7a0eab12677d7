"""The synchronisation graph of compiled code: it says of no two accesses that they are ordered where Python would not.

In random kernels each answer is compared with what Python finds for the same question.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import ptxdsl
import pytest
from ptxdsl import use
from ptxdsl.emulator.machine.allocation import number_at
from ptxdsl.emulator.machine.layout import LANES, Warp
from ptxdsl.emulator.machine.shadow import EPOCH_SHIFT, SEVERAL_LANES, Shadow
from ptxdsl.emulator.runtime.block_state import BlockState
from ptxdsl.emulator.runtime.faults import set_bits
from ptxdsl.emulator.sanitizer.happens_before import covers
from ptxdsl.emulator.sanitizer.sanitizer import Sanitizer, collect
from ptxdsl.emulator.sanitizer.shadow_store import routines

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
WORDS = 4
BODY = """.visible .entry k(.param .u64 x, .param .u64 flags, .param .u64 y)
{{
  .reg .b64 %x, %f, %y; .reg .b32 %t, %b, %l, %v, %s, %a; .reg .pred %p, %q;
  .shared .align 4 .b8 tile[64];
  ld.param.u64 %x, [x]; ld.param.u64 %f, [flags]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %l, %laneid; mov.u32 %s, tile; mov.u32 %v, 0;
  setp.lt.u32 %p, %t, 4; shl.b32 %a, %t, 2; add.u32 %a, %a, %s; @%p st.shared.u32 [%a], 0; bar.sync 0;
{body}
  shl.b32 %t, %t, 2; cvt.u64.u32 %x, %t; add.u64 %y, %y, %x; @%p st.global.u32 [%y], %v;
  ret;
}}
"""
HANDED_ON = """
  setp.eq.u32 %q, %t, 0; setp.eq.and.u32 %q, %b, 0, %q; @%q st.global.u32 [%x], %t;
  @%q fence.acq_rel.gpu; @%q st.relaxed.gpu.global.u32 [%f], 1;
  setp.eq.u32 %q, %t, 33; setp.eq.and.u32 %q, %b, 1, %q; @%q ld.acquire.gpu.global.u32 %v, [%f];
  @%q ld.global.u32 %v, [%x];
  setp.eq.u32 %q, %t, 33; setp.eq.and.u32 %q, %b, 2, %q; @%q ld.global.u32 %v, [%x];
"""
"""Block 1 acquires what it reads, block 2 does not."""
SCOPES = ("cta", "cluster", "gpu")
WHO = (
    "setp.eq.u32 %q, %t, {t};", "setp.eq.u32 %q, %t, {t};", "setp.eq.u32 %q, %t, {t};", "setp.lt.u32 %q, %l, {n};",
    "setp.gt.u32 %q, %t, 31;", "setp.eq.u32 %q, %l, {n};",
)


class Forms(NamedTuple):
    """The accesses and fences that the kernels of a test are made of: few, since each is compiled."""

    strong: list[str]
    weak: list[str]
    fences: list[str]


def forms(rng: np.random.Generator) -> Forms:
    scope, narrow = rng.choice(SCOPES, 2)
    space, base = ("global", "%f") if rng.integers(3) else ("shared", "%s")
    data, at = ("global", "%x") if rng.integers(3) else ("shared", "%s+32")
    strong = [
        f"st.release.{scope}.{space}.u32 [{base}+{{}}], %t;", f"ld.acquire.{narrow}.{space}.u32 %v, [{base}+{{}}];",
        f"st.relaxed.{scope}.{space}.u32 [{base}+{{}}], %t;", f"ld.relaxed.{scope}.{space}.u32 %v, [{base}+{{}}];",
        f"st.volatile.{space}.u32 [{base}+{{}}], %t;", f"ld.volatile.{space}.u32 %v, [{base}+{{}}];",
        f"atom.acq_rel.{scope}.{space}.add.u32 %v, [{base}+{{}}], 1;",
        f"atom.relaxed.{scope}.{space}.exch.b32 %v, [{base}+{{}}], %t;",
        f"atom.release.{scope}.{space}.cas.b32 %v, [{base}+{{}}], 0, %t;",
        f"red.relaxed.{scope}.{space}.add.u32 [{base}+{{}}], 1;",
    ]
    fences = [f"fence.{kind}.{level};" for kind, level in (("acq_rel", scope), ("sc", narrow))]
    weak = [f"st.{data}.u32 [{at}+{{}}], %t;", f"ld.{data}.u32 %v, [{at}+{{}}];"]
    return Forms([str(each) for each in rng.choice(strong, 5, replace=False)], weak, fences)


def statement(rng: np.random.Generator, of: Forms, clustered: bool) -> str:
    """Something that a few threads do, or a barrier."""
    what = rng.integers(100)
    if what < 8:
        barriers = ["bar.sync 0;", "bar.warp.sync -1;", "bar.sync 0;"]
        if clustered:
            order = rng.choice(("", ".release", ".relaxed"))
            barriers += [f"barrier.cluster.arrive{order}.aligned; barrier.cluster.wait.aligned;"] * 3
        return str(rng.choice(barriers))
    done = str(rng.choice(of.strong if what < 50 else of.fences if what < 66 else of.weak))
    done = done.format(4 * rng.integers(WORDS))
    thread = rng.choice([0, 0, 1, 32, 33, 63]) if rng.integers(4) else rng.integers(64)
    who = str(rng.choice(WHO)).format(t=thread, n=rng.integers(1, 32))
    block = f"setp.eq.and.u32 %q, %b, {rng.integers(3)}, %q;" if rng.integers(2) else ""
    return f"{who} {block} @%q {done}"


def program(rng: np.random.Generator, clustered: bool, of: Forms | None = None) -> str:
    of = of or forms(rng)
    lines = [statement(rng, of, clustered) for _ in range(rng.integers(6, 40))]
    target = "" if not clustered else ".reqnctapercluster 3\n"
    body = BODY.format(body="\n".join(f"  {line}" for line in lines))
    return HEADER + body.replace(")\n{", f")\n{target}{{", 1)


_SEARCH = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_uint32,
)


class Checked:
    """Stands before the search: what that says, Python must say too, for each shadow word and each lane."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.search = _SEARCH(routines()[Shadow.SEARCH])
        self.ordered, self.unknown, self.wrong, self.missed = 0, 0, 0, 0
        self.function = _SEARCH(self.ask)
        attach, created = Sanitizer.attach, Sanitizer.__init__

        def create(sanitizer: Sanitizer, *arguments: Any) -> None:
            self.sanitizer = sanitizer
            created(sanitizer, *arguments)

        def attached(sanitizer: Sanitizer, state: BlockState) -> None:
            attach(sanitizer, state)
            address = ctypes.cast(self.function, ctypes.c_void_p).value
            sanitizer.memory.put(state, Shadow.SEARCH, "Q", address or 0)

        monkeypatch.setattr(Sanitizer, "__init__", create)
        monkeypatch.setattr(Sanitizer, "attach", attached)

    def ask(self, rec: int, warp: int, block: int, words: int, count: int, own: int, mask: int) -> bool:
        answer = bool(self.search(rec, warp, block, words, count, own, mask))
        known = self.known(warp, block, [number_at(words + 8 * at) for at in range(count)], mask)
        self.ordered += answer
        self.unknown += not answer
        self.wrong += answer and not known
        self.missed += known and not answer
        return answer

    def known(self, warp: int, block: int, words: list[int], mask: int) -> bool:
        """Whether Python knows that the accesses of all words come before what the lanes do."""
        synchronisation, clocks = self.sanitizer.synchronisation, self.sanitizer.clocks
        synchronisation.follow()
        state, number = synchronisation.states[block], number_at(warp + Warp.INDEX, 4)
        order = clocks.of_block(state)
        synchronisation.orders.read(state, order)
        for at, word in enumerate(words):
            lanes = set_bits(mask) if len(words) < LANES else [at]
            other = self.sanitizer.memory.thread_of(word)
            for lane in lanes if word else ():
                clock = clocks.of_thread(state, order, (number, lane))
                if not covers(clock, other, word >> EPOCH_SHIFT, bool(word & SEVERAL_LANES)):
                    return False
        return True


def run(module: Any, clustered: bool, seed: int | None) -> None:
    data = [np.zeros(64, np.uint32) for _ in range(3)]
    with use("emulator"), collect():
        module["k"].configure(3, 64, cluster=3 if clustered else None, sanitize=("race", "order"), seed=seed)(*data)


@pytest.mark.parametrize("clustered", [False, True])
def test_random_kernels(clustered: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked(monkeypatch)
    of = forms(rng)
    for _ in range(4):
        text = program(rng, clustered, of)
        module = ptxdsl.load(text)
        for seed in (None, int(rng.integers(1 << 32))):
            run(module, clustered, seed)
            assert not checked.wrong, text
    module = ptxdsl.load(HEADER + BODY.format(body=HANDED_ON))
    checked.ordered = checked.unknown = 0
    run(module, False, None)
    assert checked.ordered and checked.unknown and not checked.wrong
