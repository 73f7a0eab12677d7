"""The sanitizer and what tcgen05 reads of shared memory: fences, completion, reuse, and exactly which bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensor_products
from proxy_programs import Program
from tensor_core_programs import programs
from tensor_products import Case, Memory, run_product

import ptxdsl
from ptxdsl.emulator.sanitizer.sanitizer import collect

PROGRAMS = programs()
Rng = np.random.Generator


def findings(text: str, seed: int | None = None) -> list[Any]:
    x, out = np.zeros(8192, np.uint8), np.zeros(1024, np.uint8)
    with collect() as found:
        kernel = ptxdsl.load(text)["k"].configure(1, 256, backend="emulator", sanitize=("race", "init"), seed=seed)
        kernel(x, out)
    return found


def marked(text: str, mark: str) -> int | None:
    return next((n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(mark)), None)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.right], ids=lambda p: p.name)
def test_right_programs(program: Program) -> None:
    assert [str(finding) for finding in findings(program.text)] == []


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.right], ids=lambda p: p.name)
def test_wrong_programs(program: Program) -> None:
    first = next(iter(findings(program.text)), None)
    assert first is not None, "nothing was found"
    lines = {marked(program.text, "//@"), marked(program.text, "//#")} - {None}
    assert {first.access.ptx_line, *([first.earlier.ptx_line] if first.earlier else [])} == lines, str(first)
    assert first.hint


def test_messages() -> None:
    messages = {}
    for program in PROGRAMS:
        if not program.right and program.name in (
            "ld of sums: no fence", "held A: none before", "mma: no fence", "cp, an arrival, store",
            "load -> mma: a barrier instead", "cp of a part",
        ):
            found = findings(program.text)[0]
            messages[program.name] = found.message, found.hint
    assert messages == {
        "ld of sums: no fence": (
            ("load from lane 32, column 0 of tensor memory, which the tcgen05.mma by warp 0 has written: no "
             "`tcgen05.fence::after_thread_sync` is between"),
            ("put `ptx.tcgen05.fence__after_thread_sync()` before it, behind the wait or the barrier that orders the "
             "two"),
        ),
        "held A: none before": (
            ("tcgen05.mma of lane 0, column 64 of tensor memory, which the store by warp 0 has written: no "
             "`tcgen05.fence::before_thread_sync` is behind"),
            ("put `ptx.tcgen05.fence__before_thread_sync()` behind the store and its wait, before the barrier or the "
             "arrival"),
        ),
        "mma: no fence": (
            ("tcgen05.mma of tile[0], which the store by thread (0, 0, 0) has written through another proxy: no proxy "
            "fence is between"),
            ("put `ptx.fence.proxy.async_.shared__cta()` behind it in the threads that store, before the barrier, or "
            "in the thread that goes on behind the barrier"),
        ),
        "load -> mma: a barrier instead": (
            "tcgen05.mma of tile[0], whose copy by thread (0, 0, 0) is not known to be complete",
            "wait first at the mbarrier that counts its bytes: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)`",
        ),
        "cp, an arrival, store": (
            ("race on tile[0] in shared memory: store by thread (0, 0, 0) and tcgen05.cp by thread (0, 0, 0) of block "
            "(0, 0, 0) are not ordered"),
            ("let `tcgen05.commit` of the thread that issues it arrive at an mbarrier, and wait there first: an "
            "arrival of the thread itself does not wait for the tensor core"),
        ),
        "cp of a part": (
            "tcgen05.cp of tile[2048], which nobody has written",
            "write tile before it is read, then `ptx.bar.sync(0)`",
        ),
    }


# Which bytes a product reads, of tiles that lie anyhow

_SENTINEL = 0x5EED5EED
CASES = (
    Case(n=48), Case(turned=(True, True)), Case(types=("f16", "bf16"), m=64, n=24, swizzles=(0, 4)),
    Case(held=True, n=40, swizzles=(6, 6)),
    Case(kind="tf32", types=("tf32", "tf32"), swizzles=(1, 1), turned=(True, True)),
    Case(kind="f8f6f4", types=("e4m3", "e2m1"), swizzles=(6, 4)), Case(kind="f8f6f4", types=("e2m3", "e3m2"), n=104),
    Case(sparse=True, n=32, swizzles=(2, 0)), Case(weights=True, m=32, n=64),
    Case(sparse=True, turned=(True, True), n=48),
    Case(kind="mxf8f6f4", types=("e4m3", "e5m2"), n=136), Case(kind="i8", types=("s8", "u8"), result="s32", n=24),
    Case(kind="mxf4nvf4", types=("e2m1x", "e2m1x"), size="block16", n=104, copied=True),
    Case(kind="mxf4", types=("e2m1x", "e2m1x"), n=64, long=True, swizzles=(0, 0)),
)


class Tracked(Memory):
    """Shared memory that says which of its words a product reads: the others hold a number, and are not written."""

    words: Any = None
    kind = ""

    def tile(self, rng: Rng, codes: Any, kind: str, turned: bool, swizzle: int) -> int:
        self.kind = kind
        return super().tile(rng, codes, kind, turned, swizzle)

    def put(self, addresses: Any, data: Any, swizzle: int) -> None:
        before = self.shared.copy()
        self.shared[:] = 0
        full = np.full_like(data, 255)
        full[..., {"e2m1": 8, "e2m3": 12, "e3m2": 12}.get(self.kind, 16) :] = 0  # the others are padding
        super().put(addresses, full, swizzle)
        words = self.shared.view(np.uint32) != 0
        self.words = words if self.words is None else self.words | words
        self.shared[:] = before
        super().put(addresses, data, swizzle)

    def scales(self, codes: Any, first: int) -> int:
        start = self.used
        word = super().scales(codes, first)
        self.words[start // 4 : start // 4 + 128] = True
        words = self.shared[start : start + 512].view(np.uint32)
        words[words == _SENTINEL] = 0
        return word


@pytest.fixture
def track(monkeypatch: pytest.MonkeyPatch) -> list[Tracked]:
    made: list[Tracked] = []

    def fresh(rng: Rng, nbytes: int) -> Memory:
        cells = Memory.random(rng, 16).cells
        made.append(Tracked(np.full(nbytes // 4, _SENTINEL, np.uint32).view(np.uint8), cells))
        return made[-1]

    class Made(Memory):
        random = staticmethod(fresh)

    store = "st.shared.b32 [%s], %x;"
    text = tensor_products._KERNEL
    assert text.count(store) == 1
    guarded = f".reg .pred %q; setp.ne.u32 %q, %x, {_SENTINEL}; @%q {store}"
    monkeypatch.setattr(tensor_products, "_KERNEL", text.replace(store, guarded))
    monkeypatch.setattr(tensor_products, "_module", tensor_products._module.__wrapped__)
    monkeypatch.setattr(tensor_products, "Memory", Made)
    return made


def changed(
    monkeypatch: pytest.MonkeyPatch, rng: Rng, made: list[Tracked], hole: int | None, written: int | None
) -> None:
    """Leave out a word of what is written to shared memory, or write one while the product may still read."""
    launch = tensor_products._launch
    text = tensor_products._KERNEL

    def other(case: Case, given: Any, options: dict[str, Any]) -> Any:
        memory = made[-1]
        if hole is not None:
            memory.shared.view(np.uint32)[chosen(rng, memory, bool(hole))] = _SENTINEL
        if written is not None and (place := 4 * chosen(rng, memory, bool(written))) >= 0:
            early = f"ISSUED:\n    setp.eq.u32 %p, %t, 32;\n    @%p st.shared.b32 [tiles+{place}], %t;\n"
            monkeypatch.setattr(tensor_products, "_KERNEL", text.replace("ISSUED:\n", early))
        return launch(case, given, options)

    monkeypatch.setattr(tensor_products, "_launch", other)


def chosen(rng: Rng, memory: Tracked, read: bool) -> int:
    """A word of the tiles that the product reads, or one that it does not read; negative where there is none."""
    used = -(-memory.used // 1024) * 256
    words = np.flatnonzero(memory.words[:used] == read)
    return int(rng.choice(words)) if words.size else -1


@pytest.mark.parametrize("part", range(3))
def test_exactly_what_a_product_reads(
    part: int, rng: Rng, track: list[Tracked], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[part + 3 * int(rng.integers(len(CASES) // 3))]
    run_product(case, rng, sanitize="all")
    for hole, written in ((1, None), (None, 1), (None, 0)):
        with monkeypatch.context() as patch, collect() as found:
            changed(patch, rng, track, hole, written)
            run_product(case, rng, sanitize="all", checked=False)
        read = hole or written
        assert bool(found) == bool(read), (case, [str(each) for each in found])
        assert all("tcgen05." in each.message for each in found), (case, [str(each) for each in found])
