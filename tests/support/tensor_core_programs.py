"""Programs whose shared memory tcgen05 reads, right and wrong: who writes it, who gives it back, and by what.

As in :mod:`proxy_programs`: in a wrong one the line at fault ends in ``//@``, the one that it meets in ``//#``.
"""

from __future__ import annotations

from proxy_programs import FENCE, SYNC, Program, load, wait

__all__ = ["programs"]

_HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
    .reg .pred %p<50>; .reg .b32 %r<99>; .reg .b64 %rd<50>;
    .shared .align 1024 .b8 tile[8192]; .shared .align 1024 .b8 b[512];
    .shared .align 8 .b64 bar[8]; .shared .align 4 .b32 home;
    mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; shl.b32 %r3, %r0, 4;
    mov.u32 %r10, tile; mov.u32 %r11, b; add.u32 %r12, %r10, %r3; add.u32 %r13, %r11, %r3;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 16; add.u64 %rd3, %rd0, %rd2;
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd5, %rd5, %rd1;
    setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 128; setp.lt.u32 %p2, %r0, 32; setp.eq.u32 %p3, %r1, 0;
    setp.eq.u32 %p4, %r0, 128; setp.eq.u32 %p5, %r0, 32; setp.eq.u32 %p6, %r0, 1; not.pred %p7, %p1;
    mov.u32 %r40, 0; mov.u32 %r20, 0; add.u32 %r34, %r10, 4096;
    shr.u32 %r30, %r10, 4; and.b32 %r30, %r30, 0x3fff; or.b32 %r30, %r30, 0x80000; mov.b64 %rd10, {%r30, 0x4010};
    shr.u32 %r31, %r11, 4; and.b32 %r31, %r31, 0x3fff; or.b32 %r31, %r31, 0x80000; mov.b64 %rd11, {%r31, 0x4010};
    shr.u32 %r35, %r34, 4; and.b32 %r35, %r35, 0x3fff; or.b32 %r35, %r35, 0x80000; mov.b64 %rd12, {%r35, 0x4010};
    mov.u32 %r32, 0x8040490; setp.ne.u32 %p8, %r0, %r0; setp.eq.u32 %p9, %r0, %r0;
    @!%p3 bra MADE;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [home], 128;
MADE: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r33, [home]; add.u32 %r36, %r33, 64; and.b32 %r37, %r1, 3; shl.b32 %r37, %r37, 21;
    add.u32 %r37, %r37, %r36;
"""
_FOOT = """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    st.global.u32 [%rd5], %r20;
    @!%p3 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r33, 128;
FREED: ret;
}
"""
WRITE = ("@%p1 st.shared.v4.b32 [%r12], {%r40, %r40, %r40, %r40};",
         "@%p1 st.shared.v4.b32 [%r12+2048], {%r40, %r40, %r40, %r40};")
B = f"@%p2 st.shared.v4.b32 [%r13], {{%r40, %r40, %r40, %r40}};\n{FENCE}\n{SYNC}"
"""B, written in time."""
OTHER = "\n".join(f"@%p1 st.shared.v4.b32 [%r12+{4096 + at}], {{%r40, %r40, %r40, %r40}};" for at in (0, 2048))
OTHER = f"{OTHER}\n{FENCE}\n{SYNC}"


def ready(**counts: int) -> str:
    """The mbarriers, which expect one arrival or as many as is said by ``bN``."""
    lines = [f"@%p0 mbarrier.init.shared.b64 [bar+{8 * n}], {counts.get(f'b{n}', 1)};" for n in range(8)]
    return "\n".join([*lines, "@%p0 fence.mbarrier_init.release.cluster;", SYNC])


def product(mark: str = "", who: str = "%p0", a: str = "%rd10", d: str = "%r33") -> str:
    return f"@{who} tcgen05.mma.cta_group::1.kind::f16 [{d}], {a}, %rd11, %r32, %p8; {mark}"


def commit(bar: str = "bar+32", who: str = "%p0") -> str:
    return f"@{who} tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{bar}];"


def arrive(bar: str = "bar+32", who: str = "%p0") -> str:
    return f"@{who} mbarrier.arrive.shared.b64 _, [{bar}];"


def over(label: str = "DONE", bar: str = "bar+32", parity: int = 0, who: str = "") -> str:
    return f"{wait(label, bar, parity, who)}\ntcgen05.fence::after_thread_sync;"


def _written(mark: str) -> str:
    return "\n".join(f"{line} {mark}" for line in WRITE[:1]) + f"\n{WRITE[1]}"


def _reads(mark: str) -> dict[str, str]:
    """What reads all of the tile, by thread 0."""
    return {
        "mma": product(mark),
        "mma of an A in tensor memory": f"@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r33], [%r36], %rd10, %r32, %p8; "
                                        f"{mark}",
        "cp": f"@%p0 tcgen05.cp.cta_group::1.128x256b [%r33], %rd10; {mark}",
        "two products": f"{product(mark)}\n{product(d='%r36', a='%rd12')}",
    }


_HELD = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r37], {%r40, %r40, %r40, %r40, %r40, %r40, %r40, %r40};"
_HELD = f"@!%p1 bra NONE;\n{_HELD}\ntcgen05.wait::st.sync.aligned;\nNONE: tcgen05.fence::before_thread_sync;"
START = f"{_HELD}\n{OTHER}\n{B}\n{ready()}\ntcgen05.fence::after_thread_sync;"
END = f"{commit()}\n{over()}"
_FENCED = {
    "fence, barrier": f"{FENCE}\n{SYNC}", "barrier, fence of the reader": f"{SYNC}\n@%p0 {FENCE}",
    "fence of both spaces": f"fence.proxy.async;\n{SYNC}",
}
_UNFENCED = {
    "no fence": SYNC, "fence of one before the barrier": f"@%p0 {FENCE}\n{SYNC}",
    "fence of global memory": f"fence.proxy.async.global;\n{SYNC}",
    "a fence of tcgen05": f"tcgen05.fence::before_thread_sync;\n{SYNC}\ntcgen05.fence::after_thread_sync;",
    "fence of another behind the barrier": f"{SYNC}\n@%p5 {FENCE}",
}


def _generic() -> list[Program]:
    found = [
        _made(f"{name}: {between}", [START, _written(""), _FENCED[between], read, END], True)
        for name, read in _reads("").items() for between in list(_FENCED)[:: 1 if name == "mma" else 2]
    ]
    apart = START.replace(ready(), ready(b6=2))
    apart = f"{apart}\n{arrive('bar+48', '%p6')}\n{arrive('bar+48')}"  # two lanes arrive: Python follows the block
    found += [
        _made(f"Python follows: {name}", [apart, _written(""), between, product(), END], True)
        for name, between in _FENCED.items()
    ]
    early = f"{START}\n{_written('')}\n{FENCE}"
    late = f"{arrive('bar+48', '%p6')}\n{arrive('bar+48')}\n{SYNC}"
    early = early.replace(ready(), ready(b6=2))
    found.append(_made("Python follows: fence before that", [early, late, product(), END], True))
    found += [
        _made(f"Python follows: {name}", [apart, _written("//#"), between, product("//@"), END], False)
        for name, between in _UNFENCED.items()
    ]
    for name, read in _reads("//@").items():
        found += [
            _made(f"{name}: {between}", [START, _written("//#"), _UNFENCED[between], read, END], False)
            for between in list(_UNFENCED)[: None if name == "mma" else 1]
        ]
        late = [START, WRITE[1], FENCE, WRITE[0] + " //#", SYNC, read, END]
        found.append(_made(f"{name}: fence before the store", late, False))
    return found


_LOAD = load(size=4096)


def _loads() -> list[Program]:
    """A bulk copy, and how the thread that issues has waited for it."""
    right = {
        "it waits": wait("W", who="%p0"), "all wait": wait("W"),
        "another one waits, barrier": f"{wait('W', who='%p5')}\n{SYNC}",
        "another one waits and arrives": f"{wait('W', who='%p5')}\n{arrive('bar+8', '%p5')}\n{wait('V', 'bar+8')}",
    }
    wrong = {
        "a barrier instead": SYNC, "another one waits": wait("W", who="%p5"), "wait at another": wait("W", "bar+8", 1),
    }
    found = [
        _made(f"load -> {name}: {way}", [START, _LOAD, right[way], read, END], True)
        for name, read in _reads("").items() for way in list(right)[:: 1 if name == "mma" else 3]
    ]
    return found + [
        _made(f"load -> {name}: {way}", [START, f"{_LOAD} //#", wrong[way], read, END], False)
        for name, read in _reads("//@").items() for way in list(wrong)[: None if name == "mma" else 2]
    ]


def _reuse() -> list[Program]:
    """The tile is overwritten: what stands between."""
    found = []
    again = {"load": load(bar="bar+8", size=4096), "store": WRITE[0], "load of a part": load("tile+2048", "bar+8")}
    given = {
        "commit": END, "commit, one waits, barrier": f"{commit()}\n{over(who='%p5')}\n{SYNC}",
        "two commits": f"{commit('bar+40')}\n{commit()}\n{over()}",
        "wait for a later commit": f"{commit('bar+40')}\n{product(a='%rd12', d='%r36')}\n{commit()}\n{over()}",
        "commit and an arrival": f"{commit()}\n{arrive('bar+40')}\n{over()}\n{wait('V', 'bar+40')}",
    }
    kept = {
        "a barrier": SYNC, "an arrival": f"{arrive()}\n{over()}", "a commit nobody waits for": f"{commit()}\n{SYNC}",
        "a commit that another waits for": f"{commit()}\n{over(who='%p5')}",
        "a commit of another warp": f"{commit(who='%p5')}\n{over()}",
        "a commit of another lane": f"{commit(who='%p6')}\n{over()}",
        "a wait at another mbarrier": f"{commit()}\n{arrive('bar+40')}\n{over(bar='bar+40')}",
        "a wait for the phase before": f"{over(parity=1)}\n{commit()}",
        "a fence of tcgen05": f"tcgen05.fence::before_thread_sync;\n{SYNC}\ntcgen05.fence::after_thread_sync;",
        "a wait for loads of tensor memory": f"tcgen05.wait::ld.sync.aligned;\n{SYNC}",
    }
    begun = [START, _written(""), FENCE, SYNC]
    end = [f"{commit('bar+48')}\n{over('LAST', 'bar+48')}"]
    for name, read in _reads("").items():
        for after, step in again.items():
            found += [
                _made(f"{name}, {way}, {after}", [*begun, read, given[way], step, *end], True)
                for way in list(given)[: None if (name, after) == ("mma", "load") else 1]
            ]
    for name, read in _reads("//#").items():
        for after, step in again.items():
            if "A in tensor" in name and after == "load of a part":
                continue  # its B ends before that
            for way in list(kept)[: None if (name, after) == ("mma", "load") else 2]:
                steps = [*begun, read, kept[way], f"{step} //@", *end]
                found.append(_made(f"{name}, {way}, {after}", steps, False))
    early = [*begun, commit(), product("//#"), over(), again["load"] + " //@", *end]
    found.append(_made("a commit before the product, load", early, False))
    both = f"{product()}\n{product(who='%p5', d='%r36')}"
    found.append(_made("two warps multiply, both commit", [
        *begun, both, commit(), commit("bar+40", "%p5"), over(), over("V", "bar+40"), again["load"], *end], True))
    both = f"{product('//#')}\n{product(who='%p5', d='%r36')}"
    found.append(_made("two warps multiply, one commits", [
        *begun, both, commit("bar+40", "%p5"), over(bar="bar+40"), f"{again['load']} //@", *end], False))
    apart = [*begun, product(), load("tile+4096", "bar+8", size=4096), *end]
    found.append(_made("another tile is loaded", apart, True))
    return found


def _rings() -> list[Program]:
    """A warp that loads, a thread that multiplies: turns of a ring of stages."""
    found = []
    for stages in (1, 2):
        for name, gives, right in (
            ("commit", commit("%r70"), True), ("arrival", arrive("%r70"), False),
            ("commit of the turn before", "", False), ("arrival behind a commit", arrive("%r70"), False),
        ):
            a, b = ("", "") if right else ("//@", "//#")
            body = f"{product(b, '%p9', '%rd20')}\n{gives}".replace("@%p0", "@%p9")
            if name == "commit of the turn before":
                body = f"{commit('%r70', '%p9')}\n{product(b, '%p9', '%rd20')}"
            elif name == "arrival behind a commit":
                body = f"{product(b, '%p9', '%rd20')}\n{commit('bar+48', '%p9')}\n{gives}".replace("@%p0", "@%p9")
            step = (
                "add.u32 %r60, %r60, 1; add.u32 %r61, %r61, 1; setp.eq.u32 %p41, %r61, STAGES;\n"
                "@%p41 mov.u32 %r61, 0; @%p41 xor.b32 %r62, %r62, 1; setp.lt.u32 %p42, %r60, 5;\n"
                "shl.b32 %r64, %r61, 3; add.u32 %r63, %r65, %r64; add.u32 %r70, %r63, 32; shl.b32 %r71, %r61, 12;\n"
                "add.u32 %r72, %r10, %r71; shr.u32 %r73, %r72, 4; and.b32 %r73, %r73, 0x3fff;\n"
                "or.b32 %r73, %r73, 0x80000; mov.b64 %rd20, {%r73, 0x4010};"
            ).replace("STAGES", str(stages))
            count = "b6" if name == "arrival behind a commit" else "b7"
            loads = load("%r72", "%r63", a, 4096, "%p4")
            found.append(_made(f"ring of {stages}: {name}", [
                B, ready(**{count: 5}), "mov.u32 %r60, -1; mov.u32 %r61, -1; mov.u32 %r62, 0; mov.u32 %r65, bar;",
                step, "@%p4 bra LOADER; @!%p0 bra END;",
                f"TURN: {wait('FULL', '%r63').replace(' 0;', ' %r62;')}", body, step, "@%p42 bra TURN;",
                commit("bar+56", "%p9") if count == "b6" else commit("bar+48", "%p9"), "bra END;", "LOADER:",
                "xor.b32 %r66, %r62, 1;", wait("EMPTY", "%r70").replace(" 0;", " %r66;"), loads, step,
                "@%p42 bra LOADER;", "END: bar.sync 0;",
                over("LAST", "bar+56" if count == "b6" else "bar+48"),
            ], right))
    return found


def _unwritten() -> list[Program]:
    """Tiles of which a part was not written."""
    found = []
    for name, read in _reads("//@").items():
        if name == "mma of an A in tensor memory":
            continue  # its B ends there
        found.append(_made(f"{name} of a part", [START, WRITE[0], FENCE, SYNC, read, END], False))
    return found


def _fences() -> list[Program]:
    """Tensor memory that other warps write: fences of tcgen05 around what orders the threads."""
    after, before = "tcgen05.fence::after_thread_sync;", "tcgen05.fence::before_thread_sync;"

    def loaded(mark: str = "") -> str:
        load_ = f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r20}}, [%r38]; {mark}"
        return f"sub.u32 %r38, %r37, 64;\n@!%p1 bra NOLOAD;\n{load_}\ntcgen05.wait::ld.sync.aligned;\nNOLOAD:"

    begun = [START, _written(""), FENCE, SYNC]
    multiply = [*begun, product(), commit()]
    marked = [*begun, product("//#"), commit()]
    right = {
        "fence behind the wait": [wait("DONE", "bar+32"), after], "two waits": [over(), over("AGAIN")],
        "one waits, barrier, fence": [wait("DONE", "bar+32", who="%p5"), SYNC, after],
        "one waits, fences": [over(who="%p5"), before, SYNC, after],
    }
    wrong = {
        "no fence": [wait("DONE", "bar+32")], "fence of stores": [wait("DONE", "bar+32"), before],
        "only who waits fences": [over(who="%p5").replace(after, f"@%p5 {after}"), SYNC],
        "a proxy fence": [wait("DONE", "bar+32"), "fence.proxy.async;"],
    }
    found = [_made(f"ld of sums: {name}", [*multiply, *steps, loaded()], True) for name, steps in right.items()]
    found += [_made(f"ld of sums: {name}", [*marked, *steps, loaded("//@")], False) for name, steps in wrong.items()]
    a = "@%p5 tcgen05.mma.cta_group::1.kind::f16 [%r33], [%r36], %rd10, %r32, %p8; "
    store = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r37], {%r40, %r40, %r40, %r40, %r40, %r40, %r40, %r40};"
    held = f"@!%p3 bra NOSTORE;\n{store}\ntcgen05.wait::st.sync.aligned;"
    again = [*begun, f"bar.sync 0;\n{held}"]
    told = [*begun, f"bar.sync 0;\n{held}".replace(store, f"{store} //#")]
    end = [commit(who="%p5"), over()]
    found.append(_made("held A: both fences", [*again, f"{before}\nNOSTORE:", SYNC, after, a, *end], True))
    for name, steps in {
        "no fences": ["NOSTORE:", SYNC], "none after": [f"{before}\nNOSTORE:", SYNC],
        "none before": ["NOSTORE:", SYNC, after],
        "after in another warp": [f"{before}\nNOSTORE:", SYNC, f"@%p0 {after}"],
    }.items():
        found.append(_made(f"held A: {name}", [*told, *steps, f"{a}//@", *end], False))
    plain = _made("ld of sums: a kernel without fences of tcgen05", [*multiply, wait("DONE", "bar+32"), loaded()], True)
    return [*found, plain._replace(text=plain.text.replace(after, "").replace(before, ""))]


def _made(name: str, steps: list[str], right: bool) -> Program:
    return Program(name, _HEAD + "\n".join(filter(None, steps)) + _FOOT, right)


def programs() -> list[Program]:
    """All of them."""
    return [*_generic(), *_loads(), *_reuse(), *_rings(), *_unwritten(), *_fences()]
