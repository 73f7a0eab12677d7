"""Programs that use the async proxy, right and wrong: who writes, who reads, and what stands between.

Each is made of steps, so that a wrong one differs from its right twin by what it leaves out, or does too early. In a
wrong one the line that is at fault ends in ``//@``, the line before it that it meets in ``//#``.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxdsl.emulator.machine.layout import Mbarrier

__all__ = ["THREADS", "Program", "programs"]

THREADS = 256
"""Two warpgroups: most programs need the first alone, whose threads go on at FIRST."""


class Program(NamedTuple):
    name: str
    text: str
    right: bool


_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
    .reg .pred %p<50>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<50>; .reg .f32 %f<50>;
    .shared .align 1024 .b8 tile[4096]; .shared .align 1024 .b8 other[4096]; .shared .align 8 .b64 bar[4];
    .shared .align 4 .b32 flag;
    mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; shl.b32 %r3, %r0, 4;
    mov.u32 %r10, tile; mov.u32 %r11, other; add.u32 %r12, %r10, %r3; add.u32 %r13, %r11, %r3;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 16; add.u64 %rd3, %rd0, %rd2;
    add.u64 %rd4, %rd1, %rd2; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd5, %rd5, %rd1;
    setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 128; setp.lt.u32 %p2, %r0, 16; setp.eq.u32 %p3, %r1, 0;
    setp.eq.u32 %p4, %r0, 128; setp.ne.u32 %p5, %r0, 0; not.pred %p6, %p3; not.pred %p7, %p1; setp.eq.u32 %p8, %r2, 0;
    shr.u32 %r30, %r10, 4; and.b32 %r30, %r30, 0x3fff; or.b32 %r30, %r30, 0x400000; mov.b64 %rd10, {%r30, 8};
    shr.u32 %r31, %r11, 4; and.b32 %r31, %r31, 0x3fff; or.b32 %r31, %r31, 0x80000; mov.b64 %rd11, {%r31, 8};
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; setp.eq.u32 %p9, %r0, %r0;
    mov.u32 %r20, 0; mov.u32 %r40, 0; mov.u32 %r41, 0; mov.u32 %r42, 0; mov.u32 %r43, 0;
"""
_FOOT = """
    cvt.rzi.u32.f32 %r21, %f0; add.u32 %r20, %r20, %r21; st.global.u32 [%rd5+4096], %r20;
    ret;
}
"""
SYNC = "bar.sync 0;"
FENCE = "fence.proxy.async.shared::cta;"
INIT = "@%p0 mbarrier.init.shared.b64 [bar], 1;\n@%p0 mbarrier.init.shared.b64 [bar+8], 1;"
READY = f"{INIT}\n@%p0 fence.mbarrier_init.release.cluster;\n{SYNC}"
_TX = "mbarrier::complete_tx::bytes"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p9, 1, 1, 0, 0;"
FIRST = "@!%p1 bra OVER;"
OVER = "OVER:"


def load(where: str = "tile", bar: str = "bar", mark: str = "", size: int = 2048, who: str = "%p0") -> str:
    return (
        f"@{who} mbarrier.arrive.expect_tx.shared.b64 _, [{bar}], {size};\n"
        f"@{who} cp.async.bulk.shared::cta.global.{_TX} [{where}], [%rd0], {size}, [{bar}]; {mark}"
    )


def wait(label: str, bar: str = "bar", parity: int = 0, who: str = "") -> str:
    guard = f"@!{who} bra {label}_DONE;\n" if who else ""
    return (
        f"{guard}{label}: mbarrier.try_wait.parity.shared.b64 %p40, [{bar}], {parity};\n@!%p40 bra {label};\n"
        f"{label}_DONE:"
    )


def product(mark: str = "") -> str:
    return f"wgmma.fence.sync.aligned;\n{PRODUCT} {mark}\nwgmma.commit_group.sync.aligned;"


DONE = "wgmma.wait_group.sync.aligned 0;"
B_TILE = f"@%p2 st.shared.v4.b32 [%r13], {{%r40, %r40, %r40, %r40}};\n{FENCE}\n{SYNC}"
"""B, written in time."""


def store(mark: str = "", where: str = "tile") -> str:
    return f"@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [{where}], 2048; {mark}"


def bulk_sum(mark: str = "") -> str:
    return f"@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 2048; {mark}"


STORED = "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group.read 0;"


def _writers(mark: str) -> dict[str, str]:
    """Ways by which the generic proxy writes all 2048 bytes of the tile, 16 bytes a thread of the first warpgroup."""
    return {
        "store": f"@%p1 st.shared.v4.b32 [%r12], {{%r40, %r41, %r42, %r43}}; {mark}",
        "stmatrix": f"@!%p1 bra NONE;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%r12], {{%r40, %r41, %r42, %r43}}; "
                    f"{mark}\nNONE:",
        "cp.async": f"@%p1 cp.async.cg.shared.global [%r12], [%rd3], 16; {mark}\ncp.async.wait_all;",
        "atomics": f"@%p1 st.shared.v4.b32 [%r12], {{%r40, %r41, %r42, %r43}};\n{SYNC}\n"
                   f"@%p1 atom.shared.exch.b32 %r44, [%r12], 7; {mark}",
        "loop": "mov.u32 %r50, 0;\nMORE: shl.b32 %r51, %r50, 2; add.u32 %r51, %r51, %r12;\n"
                f"@%p1 st.shared.b32 [%r51], %r40; {mark}\n"
                "add.u32 %r50, %r50, 1; setp.lt.u32 %p41, %r50, 4; @%p41 bra MORE;",
    }


def _readers(mark: str) -> dict[str, str]:
    """Ways by which the async proxy reads the tile."""
    return {
        "wgmma": f"{FIRST}\n{product(mark)}\n{DONE}\n{OVER}",
        "bulk store": f"{store(mark)}\n{STORED}",
        "bulk sum": "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 2048; "
                    f"{mark}\n{STORED}",
    }


_FENCED = {
    "fence, barrier": f"{FENCE}\n{SYNC}", "barrier, fence": f"{SYNC}\n{FENCE}",
    "barrier, fence of both spaces": f"{SYNC}\nfence.proxy.async;",
    "warps fence": f"{FENCE}\nbar.warp.sync -1;\n{SYNC}",
    "fence, named barrier": f"{FENCE}\nbar.sync 3, {THREADS};",
    "two barriers": f"{FENCE}\n{SYNC}\n{SYNC}",
    "barrier, fence of one, barrier": f"{SYNC}\n@%p0 {FENCE}\n{SYNC}",
}
_UNFENCED = {
    "no fence": SYNC, "fence of global memory": f"fence.proxy.async.global;\n{SYNC}",
    "fence of one before the barrier": f"@%p0 {FENCE}\n{SYNC}", "thread fence": f"fence.acq_rel.cta;\n{SYNC}",
    "fence of tensor maps": f"fence.proxy.tensormap::generic.release.cta;\n{SYNC}",
}


def _generic_to_async() -> list[Program]:
    found = []
    for number, (writer, written) in enumerate(_writers("").items()):
        for reader, read in _readers("").items():
            b = B_TILE if reader == "wgmma" else ""
            chosen = _FENCED if (writer, reader) == ("store", "wgmma") else list(_FENCED)[number % 2 : number % 2 + 1]
            for between in chosen:
                steps = [b, written, _FENCED[between], read]
                found.append(_made(f"{writer} -> {reader}: {between}", steps, True))
    for writer, written in _writers("//#").items():
        for reader, read in _readers("//@").items():
            b = B_TILE if reader == "wgmma" else ""
            chosen = _UNFENCED if writer == "store" else list(_UNFENCED)[:1]
            for between in chosen:
                steps = [b, written, _UNFENCED[between], read]
                found.append(_made(f"{writer} -> {reader}: {between}", steps, False))
            if writer == "store":
                found.append(_made(f"fence before {writer} -> {reader}", [b, FENCE, written, SYNC, read], False))
    return found


def _loaded(mark: str, wait_: str, steps: list[str], before: str = B_TILE) -> list[str]:
    """A load of the tile, a wait, and what is done then."""
    return [before, READY, load(mark=mark), wait_, *steps]


READ = "@%p1 ld.shared.u32 %r20, [%r12];"
OVERWRITE = "@%p1 st.shared.v4.b32 [%r12], {%r40, %r41, %r42, %r43};"


def _uses(mark: str) -> dict[str, list[str]]:
    """What is done with a tile that a copy has written."""
    return {
        "ld": [f"{READ} {mark}"], "st": [f"{OVERWRITE} {mark}"],
        "wgmma": [f"{FIRST}\n{product(mark)}\n{DONE}\n{OVER}"],
        "bulk store": [f"{store(mark)}\n{STORED}"],
        "ldmatrix": [(f"@!%p1 bra SOME;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r12]; "
                     f"{mark}\nSOME:")],
        "atom": [f"@%p1 atom.shared.add.u32 %r20, [%r12], 1; {mark}"],
    }


def _async_to_all() -> list[Program]:
    found = []
    waits = {
        "all wait": wait("W"), "one waits, barrier": f"{wait('W', who='%p0')}\n{SYNC}",
        "one warp waits, barrier": f"{wait('W', who='%p3')}\n{SYNC}", "wait twice": f"{wait('W')}\n{wait('V')}",
        "test_wait": wait("W").replace("try_wait", "test_wait"),
    }
    wrong = {
        "no wait": "", "a barrier instead": SYNC, "one warp waits": wait("W", who="%p3"),
        "wait at another": wait("W", "bar+8", 1),
    }
    for use, steps in _uses("").items():
        chosen = waits if use in ("ld", "wgmma") else list(waits)[:1]
        found += [_made(f"load -> {use}: {name}", _loaded("", waits[name], steps), True) for name in chosen]
    for use, steps in _uses("//@").items():
        early = [B_TILE, READY, wait("W", parity=1), SYNC, load(mark="//#"), SYNC, *steps]
        found.append(_made(f"load -> {use}: waits for the phase before", early, False))
        chosen = wrong if use in ("ld", "wgmma") else list(wrong)[:1]
        for name in chosen:
            if (use, name) == ("bulk store", "no wait"):
                continue  # nothing else is between the load and the store of one thread
            found.append(_made(f"load -> {use}: {name}", _loaded("//#", wrong[name], steps), False))
    return found


def _answers() -> list[Program]:
    """Waits without a loop: what they answer is what they are worth."""
    found = []
    test = "mbarrier.test_wait.parity.shared.b64 %p40, [bar], 0;"
    guarded = READ.replace("@%p1", "@%p40")
    counts = "selp.u32 %r70, 1, 0, %p40; add.u32 %r20, %r20, %r70;"
    other = f"{FIRST}\n{test}\n@%p40 bra GO;\n{wait('W')}\nGO: {READ}\n{OVER}"
    state = load().replace("_,", "%rd20,")
    own = "@%p0 mbarrier.test_wait.shared.b64 %p40, [bar], %rd20;"
    for name, steps in {
        "a test, then a loop": [other], "a loop, then a test": [wait("W"), test, READ],
        "a test behind a barrier": [wait("W", who="%p0"), SYNC, test, READ],
        "a loop by its own guard": ["setp.ne.u32 %p40, %r0, %r0;", f"L: @!%p40 {test}\n@!%p40 bra L;", READ],
        "a read that the answer guards": [FIRST, test, guarded, OVER],
    }.items():
        found.append(_made(f"answers: {name}", [READY, load(), *steps], True))
    found.append(_made("answers: the state of the arrival", [
        READY, state, f"@!%p0 bra L_DONE;\nL: {own}\n@!%p40 bra L;\nL_DONE:\n{SYNC}", READ], True))
    nobody = [READY, state, own, SYNC, f"{READ} //@"]
    found.append(_made("answers: nobody uses that of a state", [
        step.replace("[bar];", "[bar]; //#") for step in nobody], False))
    for name, steps in {
        "nobody uses it": [test], "nobody uses that of try_wait": [test.replace("test_wait", "try_wait")],
        "nobody uses it behind a fence": [test, FENCE],
        "the next phase is not over": [SYNC, test.replace(" 0;", " 1;"), counts],
    }.items():
        found.append(_made(f"answers: {name}", [READY, load(mark="//#"), *steps, f"{READ} //@"], False))
    return found


def _reuse() -> list[Program]:
    """A tile that is overwritten: what reads it must be over."""
    found = []
    begun = [B_TILE, READY, load(), wait("W"), f"{FIRST}\n{product()}"]
    marked = [B_TILE, READY, load(), wait("W"), f"{FIRST}\n{product('//#')}"]
    group = "bar.sync 1, 128;"
    again = {"load": load(), "st": OVERWRITE}
    again_wrong = {"load": load(mark="//@"), "st": f"{OVERWRITE} //@"}
    for name, step in again.items():
        end = [wait("V", parity=1), OVER] if name == "load" else [OVER]
        found.append(_made(f"wgmma, wait, {name}", [*begun, DONE, group, step, *end], True))
        late = [*begun, "wgmma.wait_group.sync.aligned 1;", DONE, group, step, *end]
        found.append(_made(f"wgmma, two waits, {name}", late, True))
    for name, step in again_wrong.items():
        end = [DONE, wait("V", parity=1), OVER] if name == "load" else [DONE, OVER]
        found.append(_made(f"wgmma, {name} before its wait", [*marked, group, step, *end], False))
        found.append(_made(f"wgmma, {name} after a wait for all but one", [
            *marked, "wgmma.wait_group.sync.aligned 1;", group, step, *end], False))
    sent = ["@%p0 cp.async.bulk.commit_group;"]
    generic = f"{OVERWRITE}\n{FENCE}\n{SYNC}"
    for name, step in again.items():
        first = [READY, generic, store(), *sent]
        end = [wait("V")] if name == "load" else []
        found.append(_made(f"bulk store, wait, {name}", [
            *first, "@%p0 cp.async.bulk.wait_group.read 0;", SYNC, step, *end], True))
        found.append(_made(f"bulk store, full wait, {name}", [
            *first, "@%p0 cp.async.bulk.wait_group 0;", SYNC, step, *end], True))
    for name, step in again_wrong.items():
        first = [READY, generic, store("//#"), *sent]
        end = [wait("V")] if name == "load" else []
        found.append(_made(f"bulk store, {name} before its wait", [*first, SYNC, step, *end], False))
        found.append(_made(f"bulk store, {name} after a wait for all but one", [
            *first, "@%p0 cp.async.bulk.wait_group.read 1;", SYNC, step, *end], False))
        found.append(_made(f"bulk store, {name} without a group", [
            READY, generic, store("//#"), "@%p0 cp.async.bulk.wait_group.read 0;", SYNC, step, *end], False))
        if name == "st":
            found.append(_made("bulk store, st by others without a barrier", [
                *first, "@%p0 cp.async.bulk.wait_group.read 0;", step], False))
    return found


def _rings() -> list[Program]:
    """A warp that loads, a warpgroup that multiplies, two mbarriers: three turns of a ring of one stage."""
    found = []
    for name, (waits, frees, parities, right) in {
        "right": (DONE, "", 1, True), "freed before the wait": ("", DONE, 1, False),
        "not freed": (DONE, "none", 1, False), "freed by its own warp only": (DONE, "", 1, True),
        "the empty phase is one behind": (DONE, "", 0, False),
    }.items():
        if name == "the empty phase is one behind" or name == "not freed":
            continue
        a, b = ("", "") if right else ("//@", "//#")
        arrive = "@%p0 mbarrier.arrive.shared.b64 _, [bar+8];"
        frees_now = f"{arrive}\n{frees}" if frees else arrive
        steps = [
            B_TILE, READY, f"mov.u32 %r60, 0; mov.u32 %r61, {parities}; mov.u32 %r62, 0;", "@!%p1 bra LOADER;",
            f"TURN: {wait('FULL', parity=0).replace(' 0;', ' %r62;')}", "wgmma.fence.sync.aligned;",
            f"{PRODUCT} {b}", "wgmma.commit_group.sync.aligned;", waits, frees_now,
            "xor.b32 %r62, %r62, 1; add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 3; @%p42 bra TURN; bra END;",
            "LOADER: @!%p4 bra END;", "AGAIN:",
            wait("EMPTY", "bar+8", 0).replace(" 0;", " %r61;"), load(who="%p4", mark=a),
            "xor.b32 %r61, %r61, 1; add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 3; @%p42 bra AGAIN;", "END:",
        ]
        found.append(_made(f"ring: {name}", steps, right))
    return found


def _registers() -> list[Program]:
    """Registers of wgmma: what touches them, and what stands between."""
    start = f"{B_TILE}\n{OVERWRITE}\n{FENCE}\n{SYNC}\n{FIRST}"
    a = "{%r40, %r41, %r42, %r43}"
    held = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%f0, %f1, %f2, %f3}}, {a}, %rd11, %p9, 1, 1, 0;"
    other = PRODUCT.replace("%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7")
    clear = "mov.f32 %f4, %f20; mov.f32 %f5, %f20; mov.f32 %f6, %f20; mov.f32 %f7, %f20;"
    zero = "mov.f32 %f20, 0f00000000;"
    fence, commit = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
    left = "wgmma.wait_group.sync.aligned 1;"
    right = {
        "chain": [fence, PRODUCT, PRODUCT, PRODUCT, commit, DONE],
        "chain of groups": [fence, PRODUCT, commit, PRODUCT, commit, left, PRODUCT, commit, DONE],
        "two accumulators": [zero, clear, fence, PRODUCT, commit, other, commit, left,
                             "add.f32 %f1, %f1, %f1;", DONE, "add.f32 %f0, %f0, %f4;"],
        "fence in each turn": [
            "mov.u32 %r60, 0;", "TURN:", fence, PRODUCT, commit, DONE, "add.f32 %f0, %f0, %f0;",
            "add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 3; @%p42 bra TURN;"],
        "held A": ["mov.u32 %r40, 3;", fence, held, commit, DONE, "mov.u32 %r40, 4;"],
        "read of held A": [fence, held, "add.u32 %r20, %r20, %r40;", commit, DONE],
        "loop carries a group": [
            fence, PRODUCT, commit, "mov.u32 %r60, 0;", "TURN:", PRODUCT, commit, left,
            "add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 3; @%p42 bra TURN;", DONE],
        "other registers": [fence, PRODUCT, "add.f32 %f30, %f31, %f31;".replace("%f31", "0f3F800000"), commit, DONE],
        "two ways, one waits": [
            fence, "setp.lt.u32 %p43, %r0, 4096; @!%p43 bra NOT;", PRODUCT, commit, DONE,
            "NOT: add.f32 %f0, %f0, %f0;"],
        "a wait that the same condition chooses": [
            "ld.global.u32 %r70, [%rd0]; setp.eq.u32 %p44, %r70, %r70;", fence, "@!%p44 bra NOT;", PRODUCT, commit,
            "NOT: @!%p44 bra READY;", DONE, "READY: add.f32 %f0, %f0, %f0;"],
        "a fence that the same condition chooses": [
            "ld.global.u32 %r70, [%rd0]; setp.eq.u32 %p44, %r70, %r70;", fence,
            "@!%p44 bra NOT; mov.f32 %f2, 0f00000000;", "NOT: @!%p44 bra READY;", fence, "READY:", PRODUCT, commit,
            DONE],
    }
    wrong = {
        "read before the wait": [fence, f"{PRODUCT} //#", commit, "add.f32 %f9, %f1, %f1; //@", DONE],
        "read before the commit": [fence, f"{PRODUCT} //#", "add.f32 %f9, %f1, %f1; //@", commit, DONE],
        "written before the wait": [fence, f"{PRODUCT} //#", commit, "mov.f32 %f2, 0f00000000; //@", DONE],
        "read after a wait for all but one": [
            fence, f"{PRODUCT} //#", commit, left, "add.f32 %f9, %f3, %f3; //@", DONE],
        "wait without a group": [fence, f"{PRODUCT} //#", DONE, "add.f32 %f9, %f3, %f3; //@", commit, DONE],
        "no fence at all": [f"{PRODUCT} //@", commit, DONE],
        "written behind the fence": [fence, "mov.f32 %f2, 0f00000000; //#", f"{PRODUCT} //@", commit, DONE],
        "no fence in the second turn": [
            fence, "mov.u32 %r60, 0;", f"TURN: {PRODUCT} //@", commit, DONE, "add.f32 %f0, %f0, %f0; //#",
            "add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 3; @%p42 bra TURN;"],
        "A changed before the wait": [fence, f"{held} //#", commit, "mov.u32 %r40, 4; //@", DONE],
        "A written behind the fence": [fence, "mov.u32 %r41, 4; //#", f"{held} //@", commit, DONE],
        "accumulator as A": [
            fence, f"{PRODUCT} //#", commit, "mov.b32 %r40, %f0;", f"{fence}", f"{held} //@", commit, DONE],
        "stored before the wait": [fence, f"{PRODUCT} //#", commit, "st.global.f32 [%rd4], %f0; //@", DONE],
        "a copy that is used": [
            fence, f"{PRODUCT} //#", commit, "mov.f32 %f8, %f0;", "add.f32 %f9, %f8, %f8; //@", DONE],
        "one way does not wait": [
            fence, f"{PRODUCT} //#", commit, "setp.lt.u32 %p43, %r0, 4096; @%p43 bra NOT;", DONE,
            "NOT: add.f32 %f9, %f0, %f0; //@", DONE],
    }
    found = [_made(f"registers: {name}", [start, *steps, OVER], True) for name, steps in right.items()]
    return found + [_made(f"registers: {name}", [start, *steps, OVER], False) for name, steps in wrong.items()]


def _mbarriers() -> list[Program]:
    """Initialised mbarriers, and what stands between that and a copy."""
    found = []
    ways = {
        "fence of one, barrier": ("@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;", True),
        "barrier alone": ("bar.sync 0;", True), "proxy fence": (f"@%p0 {FENCE}", True),
        "all fence": (f"{FENCE}\nbar.sync 0;", True), "nothing": ("", False),
        "thread fence": ("@%p0 fence.acq_rel.cta;", False),
        "barrier of some warps": ("@%p1 bar.sync 1, 128;", True),
        "barrier of other warps": ("@%p7 bar.sync 1, 128;", False),
    }
    for name, (between, right) in ways.items():
        a, b = ("", "") if right else ("//@", "//#")
        init = f"@%p0 mbarrier.init.shared.b64 [bar], 1; {b}"
        steps = [init, between, load(mark=a), SYNC, wait("W"), READ]
        found.append(_made(f"mbarrier: {name}", steps, right))
    found.append(_made("mbarrier: barrier of some warps before it", [
        "@%p1 bar.sync 1, 128;\n@%p0 mbarrier.init.shared.b64 [bar], 1; //#", load(mark="//@"), SYNC, wait("W"), READ,
    ], False))
    again = [READY, load(), wait("W"), SYNC, "@%p0 mbarrier.inval.shared.b64 [bar];"]
    found.append(_made("mbarrier: initialised again", [
        *again, "@%p0 mbarrier.init.shared.b64 [bar], 1;", SYNC, load(), wait("V"), READ], True))
    found.append(_made("mbarrier: initialised again by the loader", [
        *again, "@%p0 mbarrier.init.shared.b64 [bar], 1; //#", load(mark="//@"), SYNC, wait("V"), READ], False))
    return found + _remade() + _unseen()


def _remade() -> list[Program]:
    """mbarriers that are made again, or invalid, while they count a copy."""
    found = []
    inval, init = "@%p0 mbarrier.inval.shared.b64 [bar];", "@%p0 mbarrier.init.shared.b64 [bar], 1;"
    expect = "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+8], 64;"
    again = init.replace("[bar]", "[bar+8]")
    fill = "@%p0 mbarrier.arrive.shared.b64 _, [bar+8];\n" + load(bar="bar+8", size=64).splitlines()[1]
    lacking, magic = 64 << Mbarrier.TX, Mbarrier.VALID << Mbarrier.MAGIC
    for name, steps, right in (
        ("made again behind a wait", [load(), wait("W"), SYNC, init, SYNC, load(), wait("V")], True),
        ("made again behind another's wait", [load(), wait("W", who="%p3"), SYNC, init], True),
        ("made again, another one is pending", [load(bar="bar+8"), init, SYNC, wait("W", "bar+8")], True),
        ("invalid behind a wait", [load(), wait("W", who="%p0"), inval], True),
        ("invalid twice", [load(), wait("W"), SYNC, inval, init, SYNC, load(), wait("V"), SYNC, inval], True),
        ("data where it was, as one whose bytes lack", [
            load(), wait("W"), SYNC, inval, f"@%p0 st.shared.b64 [bar], {lacking};", init, SYNC, load(), wait("V"),
        ], True),
        ("bytes that have come", [
            load("other"), wait("W"), expect, fill, wait("V", "bar+8"), SYNC, again], True),
        ("made again, nobody waits", [load(mark="//#"), SYNC, f"{init} //@"], False),
        ("made again, the phase before is waited for", [
            load(), wait("W"), SYNC, load(mark="//#"), SYNC, f"{init} //@"], False),
        ("made again before a wait", [load(mark="//#"), f"{init} //@"], False),
        ("invalid, nobody waits", [load(mark="//#"), SYNC, f"{inval} //@"], False),
        ("made again, bytes lack", [load("other"), wait("W"), expect, SYNC, f"{again} //@"], False),
    ):
        found.append(_made(f"mbarrier: {name}", [READY, *steps], right))
    data = f"@%p0 st.shared.b64 [bar], {magic | lacking};"
    found.append(_made("mbarrier: made over data that looks like one", [data, READY, load(), wait("W")], True))
    return found


def _unseen() -> list[Program]:
    """Loads that nobody waits for before the block ends."""
    found = []
    again = [load(), wait("W"), SYNC]
    for name, steps, right in (
        ("all wait", [load(), wait("W")], True), ("another thread waits", [load(), wait("W", who="%p4")], True),
        ("the last phase", [*again, load(), wait("V", parity=1, who="%p3")], True),
        ("two mbarriers", [load(), load("other", "bar+8"), wait("W", who="%p4"), wait("V", "bar+8", who="%p0")], True),
        ("no load", ["setp.eq.u32 %p45, %r0, 4096;", load(who="%p45")], True),
        ("loaders leave", [load(), "@%p0 ret;", wait("W")], True),
        ("many phases ago", [load(), wait("W", who="%p0"), *["@%p0 mbarrier.arrive.shared.b64 _, [bar];"] * 6], True),
        ("nobody waits", [load(mark="//@")], False), ("a barrier", [load(mark="//@"), SYNC], False),
        ("the phase before", [*again, load(mark="//@")], False),
        ("the other mbarrier", [load(), load("other", "bar+8", "//@"), wait("W")], False),
        ("a test", [load(mark="//@"), "mbarrier.test_wait.parity.shared.b64 %p40, [bar], 0;"], False),
    ):
        found.append(_made(f"load, ends: {name}", [READY, *steps], right))
    return found


def _unwritten() -> list[Program]:
    """Shared memory that nobody has written."""
    part = "@%p2 st.shared.v4.b32 [%r12], {%r40, %r41, %r42, %r43};"
    return [
        _made("wgmma of a part", [B_TILE, part, FENCE, SYNC, f"{FIRST}\n{product('//@')}\n{DONE}\n{OVER}"], False),
        _made("bulk store of a part", [part, FENCE, SYNC, store("//@"), STORED], False),
        _made("wgmma without B", [OVERWRITE, FENCE, SYNC, f"{FIRST}\n{product('//@')}\n{DONE}\n{OVER}"], False),
        _made("load of a part", [
            B_TILE, READY, load(size=1024), wait("W"), f"{FIRST}\n{product('//@')}\n{DONE}\n{OVER}"], False),
        _made("load of two parts", [
            B_TILE, READY, load(size=1024), load("tile+1024", "bar+8", size=1024), wait("W"), wait("V", "bar+8"),
            f"{FIRST}\n{product()}\n{DONE}\n{OVER}"], True),
        _made("one part is not waited for", [
            B_TILE, READY, load(size=1024), load("tile+1024", "bar+8", "//#", 1024), wait("W"),
            f"{FIRST}\n{product('//@')}\n{DONE}\n{OVER}"], False),
    ]


def _copied() -> list[Program]:
    """Tiles that cp.async fills: its wait comes before the fence, in the thread that copies."""
    found = []
    copy = "@%p1 cp.async.cg.shared.global [%r12], [%rd3], 16;"
    late = f"{FENCE}\n{SYNC}\n"
    for reader, read in _readers("").items():
        b = B_TILE if reader == "wgmma" else ""
        groups = [b, copy, "cp.async.commit_group;", "cp.async.wait_group 0;", late, read]
        found.append(_made(f"cp.async, group -> {reader}", groups, True))
    for reader, read in _readers("//@").items():
        b = B_TILE if reader == "wgmma" else ""
        found.append(_made(f"cp.async -> {reader}: no wait", [b, copy, late, read], False))
        found.append(_made(f"cp.async -> {reader}: waits for all but one group", [
            b, copy, "cp.async.commit_group;", "cp.async.wait_group 1;", late, read], False))
    return found


def _swizzled() -> list[Program]:
    """Tiles that begin in the middle of their swizzle."""
    found = []
    fill = f"{OVERWRITE}\n@%p1 st.shared.v4.b32 [%r12+2048], {{%r40, %r41, %r42, %r43}};"
    for span, mode in ((128, 1), (64, 2), (32, 3)):
        for shift in (0, 128, 512, 1024):
            right = shift % (span // 16 * 128) == 0
            a = f"add.u32 %r30, %r30, {shift >> 4}; mov.b64 %rd10, {{%r30, {mode << 30 | 8 * span >> 4}}};"
            lines = PRODUCT.replace("m64n8k16", "m64n8k16") + ("" if right else " //@")
            rows = {128: 16, 64: 32, 32: 64}[span]  # of 2048 bytes: groups of eight rows come again
            a = a if rows == 64 else a.replace(f"{mode << 30 | 8 * span >> 4}", f"{mode << 30}")
            steps = [B_TILE, fill, FENCE, SYNC, FIRST, a, "wgmma.fence.sync.aligned;", lines,
                     "wgmma.commit_group.sync.aligned;", DONE, OVER]
            found.append(_made(f"swizzle of {span} bytes, begins at {shift}", steps, right))
    return found


def _handed() -> list[Program]:
    """Tiles that one part of the block writes and another one's copy or product reads, by barriers of some threads."""
    found = []
    b = B_TILE.replace(SYNC, "")
    init = f"@%p0 mbarrier.init.shared.b64 [bar], 128;\n@%p0 mbarrier.init.shared.b64 [bar+8], 1;\n{SYNC}"
    write = "@%p7 st.shared.v4.b32 [%r12+-2048], {%r40, %r41, %r42, %r43};"
    arrive, fence = "@%p7 mbarrier.arrive.shared.b64 _, [bar];", f"@%p7 {FENCE}"
    end = f"{FIRST}\n{product('MARK')}\n{DONE}\n{OVER}"
    met = "@%p7 bar.arrive 1, 256;\n@%p1 bar.sync 1, 256;"
    for name, steps, right in (
        ("mbarrier, writers fence", [write, fence, arrive, wait("W", who="%p1")], True),
        ("mbarrier, readers fence", [write, arrive, wait("W", who="%p1"), f"@%p1 {FENCE}"], True),
        ("mbarrier, fence behind the arrival", [write, arrive, fence, wait("W", who="%p1")], False),
        ("mbarrier, no fence", [write, arrive, wait("W", who="%p1")], False),
        ("mbarrier, readers fence before they wait", [f"@%p1 {FENCE}", write, arrive, wait("W", who="%p1")], False),
        ("named barrier, writers fence", [write, fence, met], True),
        ("named barrier, readers fence", [write, met, f"@%p1 {FENCE}"], True),
        ("named barrier, no fence", [write, met], False),
        ("named barrier, fence behind the arrival", [write, "@%p7 bar.arrive 1, 256;", fence, "@%p1 bar.sync 1, 256;"],
         False),
    ):
        marks = ("", "") if right else ("//#", "//@")
        text = [f"{step} {marks[0]}" if step == write else step for step in steps]
        found.append(_made(f"wgmma of another's tile: {name}", [
            init, b, SYNC, *text, end.replace("MARK", marks[1])], right))
    slab = "@%p8 cp.async.bulk.global.shared::cta.bulk_group [%rd6], [%r14], 512;"
    start = ("shl.b32 %r14, %r1, 9; add.u32 %r15, %r14, %r10; cvt.u64.u32 %rd6, %r14; add.u64 %rd6, %rd6, %rd1; "
             "mov.u32 %r14, %r15;")
    each = "st.shared.v4.b32 [%r12], {%r40, %r41, %r42, %r43};"
    meet, own = "bar.warp.sync -1;", f"@%p8 {FENCE}"
    after = ["@%p8 cp.async.bulk.commit_group;", "@%p8 cp.async.bulk.wait_group.read 0;", meet]
    for name, before, behind, again, right in (
        ("a warp's slab: one fences behind the barrier", [meet, own], after, each, True),
        ("a warp's slab: all fence before the barrier", [FENCE, meet], after, each, True),
        ("a warp's slab: one fences before the barrier", [own, meet], after, "", False),
        ("a warp's slab: no fence", [meet], after, "", False),
        ("a warp's slab: overwritten before the wait", [meet, own], [after[0], meet], each, False),
        ("a warp's slab: overwritten without a barrier", [meet, own], after[:2], each, False),
    ):
        reuse, fenced = bool(again) and not right, not right and not again
        found.append(_made(name, [
            start, f"{each} {'//#' if fenced else ''}", *before, f"{slab} {'//@' * fenced}{'//#' * reuse}", *behind,
            f"{again} {'//@' * reuse}" if again else "", f"{'' if reuse else after[1]}"], right))
    ring = [
        "@%p0 mbarrier.init.shared.b64 [bar], 1;", "@%p0 mbarrier.init.shared.b64 [bar+8], COUNT;",
        "@%p0 fence.mbarrier_init.release.cluster;", SYNC, "mov.u32 %r60, 0; mov.u32 %r61, 1; mov.u32 %r62, 0;",
        "@!%p1 bra LOADER;", f"TURN: {wait('FULL').replace(' 0;', ' %r62;')}", "ld.shared.u32 %r63, [%r12]; RMARK",
        "add.u32 %r20, %r20, %r63;", "BEFORE", "GUARD mbarrier.arrive.shared.b64 _, [bar+8];",
        "xor.b32 %r62, %r62, 1; add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 4; @%p42 bra TURN; bra END;",
        "LOADER: @!%p4 bra END;", "AGAIN:", wait("EMPTY", "bar+8").replace(" 0;", " %r61;"),
        load(who="%p4", mark="WMARK"),
        "xor.b32 %r61, %r61, 1; add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 4; @%p42 bra AGAIN;", "END:",
    ]
    for name, count, guard, before, right in (
        ("all threads free the stage", "128", "", "", True), ("a lane of each warp frees it", "4", "@%p8", meet, True),
        ("one thread frees it behind a barrier", "1", "@%p0", "bar.sync 2, 128;", True),
        ("a lane of each warp frees it at once", "4", "@%p8", "", False),
        ("one thread frees it at once", "1", "@%p0", "", False),
    ):
        text = "\n".join(ring).replace("COUNT", count).replace("GUARD", guard).replace("BEFORE", before)
        text = text.replace("WMARK", "" if right else "//@").replace("RMARK", "" if right else "//#")
        found.append(_made(f"ring read by threads: {name}", [text], right))
    return found


def _ends() -> list[Program]:
    """Threads that end while their copies may still read shared memory."""
    found, commit = [], "@%p0 cp.async.bulk.commit_group;"
    generic = f"{OVERWRITE}\n{FENCE}\n{SYNC}"
    kinds = {"bulk store": store, "bulk sum": bulk_sum}
    waits = {
        "read": "@%p0 cp.async.bulk.wait_group.read 0;", "whole": "@%p0 cp.async.bulk.wait_group 0;",
        "twice": "@%p0 cp.async.bulk.wait_group.read 1;\n@%p0 cp.async.bulk.wait_group.read 0;",
        "all lanes": "cp.async.bulk.wait_group.read 0;",
    }
    lacks = {
        "no wait": "", "all but one": "@%p0 cp.async.bulk.wait_group.read 1;",
        "a barrier": SYNC, "another thread": "@%p4 cp.async.bulk.wait_group.read 0;",
        "a wait before": None, "no group": None,
    }
    for kind, made in kinds.items():
        for name, wait_ in waits.items():
            found.append(_made(f"{kind}, ends: {name}", [generic, made(), commit, wait_], True))
        for name, lack in lacks.items():
            steps = [generic, made("//@"), commit, lack]
            if name == "a wait before":
                steps = [generic, made(), STORED.replace(".read", ""), SYNC, made("//@"), commit]
            elif name == "no group":
                steps = [generic, made("//@"), waits["read"]]
            found.append(_made(f"{kind}, ends: {name}", [each for each in steps if each], False))
    early = f"@%p0 bra LAST;\nbra REST;\nLAST: {waits['read']}\nREST:"
    found.append(_made("bulk store, ends: a wait on its way", [generic, store(), commit, early], True))
    return found


def _global() -> list[Program]:
    """Global memory that one proxy writes and the other one reads or writes."""
    found = []
    fence = "fence.proxy.async.global;"
    start = f"{OVERWRITE}\n{FENCE}\n{READY}"
    fenced = {
        "writers fence": f"{fence}\n{SYNC}", "reader fences": f"{SYNC}\n@%p0 {fence}",
        "both spaces": f"fence.proxy.async;\n{SYNC}", "one fences, barrier": f"{SYNC}\n@%p0 {fence}\n{SYNC}",
        "warp by warp": f"{fence}\nbar.sync 3, {THREADS};",
    }
    unfenced = {
        "no fence": SYNC, "fence of shared memory": f"{FENCE}\n{SYNC}", "thread fence": f"fence.acq_rel.gpu;\n{SYNC}",
        "fence of one before the barrier": f"@%p0 {fence}\n{SYNC}",
        "fence of tensor maps": f"fence.proxy.tensormap::generic.release.gpu;\n{SYNC}",
    }
    to = "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 2048;"
    uses = {
        "load": (lambda mark: f"{load('other', mark=mark)}\n{wait('W')}"),
        "bulk store": (lambda mark: f"@%p0 {to} {mark}\n{STORED}"),
        "bulk sum": (lambda mark: f"@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], "
                                  f"2048; {mark}\n{STORED}"),
    }
    writers = {
        "st": "@%p1 st.global.v4.u32 [%rd3], {%r40, %r40, %r40, %r40};",
        "st.volatile": "@%p1 st.volatile.global.u32 [%rd3], %r40;",
        "red": "@%p1 red.global.add.u32 [%rd3], 1;", "atom": "@%p1 atom.global.exch.b32 %r44, [%rd3], 1;",
    }
    for writer, written in writers.items():
        for use, made in uses.items():
            chosen = list(fenced)[: None if (writer, use) == ("st", "load") else 2]
            found += [_made(f"global, {writer} -> {use}: {between}", [start, written, fenced[between], made("")], True)
                      for between in chosen]
            chosen = list(unfenced)[: None if (writer, use) == ("st", "load") else 1]
            found += [_made(f"global, {writer} -> {use}: {between}", [
                start, f"{written} //#", unfenced[between], made("//@")], False) for between in chosen]
    commit = "@%p0 cp.async.bulk.commit_group;"
    after = {"ld": "@%p1 ld.global.u32 %r20, [%rd4];", "st": "@%p1 st.global.u32 [%rd4], %r40;",
             "load": load("other").replace("[%rd0]", "[%rd1]") + "\n" + wait("W"),
             "bulk store": f"{store()}\n{STORED}"}
    waits = {
        "wait": "@%p0 cp.async.bulk.wait_group 0;", "twice": "@%p0 cp.async.bulk.wait_group 1;\n"
        "@%p0 cp.async.bulk.wait_group 0;",
    }
    lacks = {
        "sources read": "@%p0 cp.async.bulk.wait_group.read 0;", "no wait": "",
        "all but one": "@%p0 cp.async.bulk.wait_group 1;", "another thread": "@%p4 cp.async.bulk.wait_group 0;",
        "a fence": "fence.proxy.async;",
    }
    for kind, made in {"bulk store": store, "bulk sum": bulk_sum}.items():
        for use, step in after.items():
            found += [_made(f"global, {kind} -> {use}: {name}", [start, made(), commit, way, SYNC, step], True)
                      for name, way in list(waits.items())[: 2 if use == "ld" else 1]]
            marked = step.replace(";", "; //@", 1) if use != "load" else f"{load('other', mark='//@')}\n{wait('W')}"
            marked = marked.replace("[%rd0]", "[%rd1]") if use == "load" else marked
            marked = f"{store('//@')}\n{STORED}" if use == "bulk store" else marked
            found += [_made(f"global, {kind} -> {use}: {name}", [
                start, made("//#"), commit, way, SYNC, marked, waits["wait"]], False)
                for name, way in list(lacks.items())[: None if (kind, use) == ("bulk store", "ld") else 1]]
    late = [start, store("//#"), commit, waits["wait"].replace("@%p0", "@%p0"), "@%p4 ld.global.u32 %r20, [%rd1]; //@"]
    found.append(_made("global, bulk store -> ld: no barrier", late, False))
    group = [start, store("//#"), waits["wait"], SYNC, "@%p1 ld.global.u32 %r20, [%rd4]; //@", commit, waits["wait"]]
    found.append(_made("global, bulk store -> ld: no group", group, False))
    halves = [start, store(), commit, "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1+2048], [tile], 2048; ",
              commit, "@%p0 cp.async.bulk.wait_group 1;", SYNC, "@%p1 ld.global.u32 %r20, [%rd4];", waits["wait"]]
    found.append(_made("global, two groups -> ld of the first", halves, True))
    return found


def _made(name: str, steps: list[str], right: bool) -> Program:
    foot = _FOOT.replace("ret;", "ret; //#") if ", ends:" in name and not right else _FOOT
    return Program(name, _HEAD + "\n".join(filter(None, steps)) + foot, right)


def programs() -> list[Program]:
    """All of them."""
    return [
        *_generic_to_async(), *_async_to_all(), *_answers(), *_reuse(), *_rings(), *_registers(), *_mbarriers(),
        *_unwritten(), *_copied(), *_swizzled(), *_handed(), *_ends(), *_global(),
    ]
