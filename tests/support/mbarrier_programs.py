"""Random kernels whose warps hand numbers over at mbarriers and barriers of some warps, some without an order."""

from __future__ import annotations

import random

WARPS, BARRIERS, SLOTS = 3, 3, 4
HEAD = """
.shared .align 8 .b64 bars[3]; .shared .align 4 .b32 slots[128];
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shr.u32 %r2, %r0, 5; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
setp.gt.u32 %p2, %r1, 15; mov.u32 %r3, slots; mad.lo.u32 %r3, %r1, 4, %r3; ld.param.u64 %rd0, [out];
@%p0 bra MADE;
"""


def arrive(how: str, at: int) -> tuple[str, int]:
    """How a warp arrives, and the arrivals that it counts as."""
    text = f"mbarrier.arrive.shared.b64 %rd9, [bars+{8 * at}];\n"
    if how == "one":
        return f"@!%p1 {text}", 1
    if how == "synced":
        return f"bar.warp.sync 0xffffffff; @!%p1 {text}", 1
    if how == "half":
        return f"@%p2 {text}", 16
    return text, 32


def wait(how: str, at: int, parity: int, name: str) -> str:
    """How a warp waits for a phase."""
    text = f"{name}: mbarrier.try_wait.parity.shared.b64 %p9, [bars+{8 * at}], {parity};\n@!%p9 bra {name};\n"
    if how == "none":
        return ""
    if how in ("one", "synced"):
        text = f"@%p1 bra {name}_on;\n{text}{name}_on:\n"
        return text + "bar.warp.sync 0xffffffff;\n" * (how == "synced")
    return text


def accesses(draw: random.Random, often: float) -> str:
    """A few accesses of a warp, some by one lane."""
    text = ""
    for _ in range(draw.choice((1, 1, 2)) if draw.random() < often else 0):
        slot, one = 128 * draw.randrange(SLOTS) // SLOTS * 4, draw.choice(("", "", "@!%p1 ", "@%p2 "))
        shift = draw.choice((0, 0, 4))
        where = f"[%r3+{min(slot + shift, 380)}]"
        text += one + draw.choice((f"st.shared.u32 {where}, %r0;\n", f"ld.shared.u32 %r9, {where};\n"))
    return text


def program(seed: int) -> str:
    """A kernel: rounds, in each of which every warp arrives at one mbarrier and may wait for the others."""
    draw = random.Random(seed)
    often = draw.choice((0.1, 0.7))
    kinds = ("all", "all", "one", "synced", *["half"] * (draw.random() < 0.3))
    hows = [[draw.choice(kinds) for _ in range(BARRIERS)] for _ in range(WARPS)]
    texts, phases, closed = [f"W{warp}:\n" for warp in range(WARPS)], [0] * BARRIERS, set()
    for number in range(draw.randrange(2, 6)):
        usable = [at for at in range(BARRIERS) if at not in closed]
        if not usable or draw.random() < 0.1:
            texts = [text + "bar.sync 0;\n" for text in texts]
            usable, closed = list(range(BARRIERS)), set()
        at = draw.choice(usable)
        waits = [draw.choice(("all", "all", "all", "synced", "one", "none")) for _ in range(WARPS)]
        if not {"one", "none"}.isdisjoint(waits):
            closed.add(at)  # some lane may arrive again before the phase is over
        for warp in range(WARPS):
            text = accesses(draw, often) + arrive(hows[warp][at], at)[0] + accesses(draw, often) * (draw.random() < 0.2)
            text += wait(waits[warp], at, phases[at] & 1, f"L{warp}_{number}")
            texts[warp] += text + "bar.warp.sync 0xffffffff;\n" * (draw.random() < 0.2)
        phases[at] += 1
    counts = [sum(arrive(hows[warp][at], at)[1] for warp in range(WARPS)) for at in range(BARRIERS)]
    made = "".join(f"mbarrier.init.shared.b64 [bars+{8 * at}], {count};\n" for at, count in enumerate(counts))
    jumps = "".join(f"setp.eq.u32 %p3, %r2, {warp}; @%p3 bra W{warp};\n" for warp in range(WARPS))
    parts = "".join(f"{text}{accesses(draw, often)}bra END;\n" for text in texts)
    return f"{HEAD}{made}MADE: bar.sync 0;\n{jumps}{parts}END: st.global.u32 [%rd0], 0; ret;\n"


TILES = """
.shared .align 8 .b64 bar; .shared .align 4 .b32 slots[64];
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0; setp.gt.u32 %p2, %r1, 15;
and.b32 %r2, %r1, 16; shl.b32 %r10, 0xffff, %r2; and.b32 %r2, %r1, 24; shl.b32 %r11, 0xff, %r2; mov.u32 %r12, -1;
mov.u32 %r3, slots; ld.param.u64 %rd0, [out]; @!%p0 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;
"""


def tiles(seed: int) -> str:
    """A kernel whose lanes hand numbers over at barriers of halves and quarters of a warp, and at an mbarrier."""
    draw = random.Random(seed)
    nested, text = draw.random() < 0.3, TILES
    for number in range(draw.randrange(3, 12)):
        other, one = draw.choice((0, 1, 4, 8, 16, 32)), draw.choice(("", "", "@!%p1 ", "@%p2 "))
        where = f"xor.b32 %r4, %r0, {other}; mad.lo.u32 %r4, %r4, 4, %r3;\n"
        text += where + one + draw.choice(("st.shared.u32 [%r4], %r0;\n", "ld.shared.u32 %r9, [%r4];\n"))
        masks = ["%r10", "%r10", "%r10", *["%r11"] * nested, "%r12", "0xffffffff"]
        if draw.random() < 0.7:
            text += f"bar.warp.sync {draw.choice(masks)};\n"
        if draw.random() < 0.15:
            text += "mbarrier.arrive.shared.b64 %rd9, [bar];\n"
            text += f"Q{number}: mbarrier.test_wait.shared.b64 %p9, [bar], %rd9;\n@!%p9 bra Q{number};\n"
    return f"{text}st.global.u32 [%rd0], 0; ret;\n"


def named(seed: int) -> str:
    """A kernel: rounds, in each of which some warps meet at a barrier, or all of them at an mbarrier."""
    draw = random.Random(seed)
    often, lone = draw.choice((0.2, 0.7)), draw.choice((0.0, 0.0, 0.3))
    how = [draw.choice(("all", "all", "one", "half")) for _ in range(WARPS)]
    texts, phase, closed = [f"W{warp}:\n" for warp in range(WARPS)], 0, set()
    for number in range(draw.randrange(3, 12)):
        usable = [at for at in (1, 2, 3, 4) if at not in closed]
        if not usable or draw.random() < 0.1:
            texts, usable, closed = [text + "bar.sync 0;\n" for text in texts], [1, 2, 3, 4], set()
        at = draw.choice(usable)
        meets = ((0, 1), (1, 2), (0, 2), (0, 1, 2))[at - 1]
        waits = set(meets) if draw.random() < 0.5 else {warp for warp in meets if draw.random() < 0.5}
        by_mbarrier = draw.random() < lone
        if waits != set(meets) and not by_mbarrier:
            closed.add(at)  # a warp that only arrives may come again before the others
        for warp in range(WARPS):
            texts[warp] += accesses(draw, often)
            if by_mbarrier:
                texts[warp] += arrive(how[warp], 0)[0] + wait("all", 0, phase, f"L{warp}_{number}")
            elif warp in meets:
                kind = "sync" if warp in waits else "arrive"
                texts[warp] += f"mov.u32 %r8, {at}; bar.{kind} {draw.choice(('%r8', at))}, {32 * len(meets)};\n"
        phase ^= by_mbarrier
    count = sum(arrive(each, 0)[1] for each in how)
    jumps = "".join(f"setp.eq.u32 %p3, %r2, {warp}; @%p3 bra W{warp};\n" for warp in range(WARPS))
    parts = "".join(f"{text}{accesses(draw, often)}bra END;\n" for text in texts)
    made = f"mbarrier.init.shared.b64 [bars], {count};\n"
    return f"{HEAD}{made}MADE: bar.sync 0;\n{jumps}{parts}END: st.global.u32 [%rd0], 0; ret;\n"
