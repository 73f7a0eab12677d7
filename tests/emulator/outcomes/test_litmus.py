"""Litmus tests: a program, a final state, and whether PTX's memory model allows it, by its axioms.

Each row says by a word or two why. See :mod:`litmus` for how programs are written; relaxed at gpu is the default.
"""

from __future__ import annotations

import pytest

from litmus import reaches

MP, MP_BAD = "{} x 1; {} y 1 | {} r0 y; {} r1 x", "1:r0=1 1:r1=0"
SB, SB_BAD = "st x 1; {} ld r0 y | st y 1; {} ld r0 x", "0:r0=0 1:r0=0"
LB_BAD = "0:r0=1 1:r0=1"
IRIW = "{} x 1 | {} y 1 | {} r0 x; {} {} r1 y | {} r0 y; {} {} r1 x"
IRIW_BAD = "2:r0=1 2:r1=0 3:r0=1 3:r1=0"
WRC_BAD = "1:r0=1 2:r0=1 2:r1=0"


def mp(write: str, release: str, acquire: str, read: str) -> str:
    return MP.format(write, release, acquire, read)


def iriw(write: str, first: str, fence: str, then: str, other: str | None = None) -> str:
    return IRIW.format(write, write, first, fence, then, first, fence if other is None else other, then)


ALLOWED, FORBIDDEN = True, False
TESTS = {
    # Message passing: the flag is read, the message is not.
    "MP": (mp("st", "st", "ld", "ld"), MP_BAD, ALLOWED),
    "MP+weak": (mp("st.weak", "st.weak", "ld.weak", "ld.weak"), MP_BAD, ALLOWED),
    "MP+rel+acq": (mp("st", "st.release", "ld.acquire", "ld"), MP_BAD, FORBIDDEN),
    "MP+rel+acq+weak message": (mp("st.weak", "st.release", "ld.acquire", "ld.weak"), MP_BAD, FORBIDDEN),
    "MP+rel": (mp("st", "st.release", "ld", "ld"), MP_BAD, ALLOWED),
    "MP+acq": (mp("st", "st", "ld.acquire", "ld"), MP_BAD, ALLOWED),
    "MP+rel.sys+acq.gpu": (mp("st", "st.release.sys", "ld.acquire.gpu", "ld"), MP_BAD, FORBIDDEN),
    "MP+rel.cta+acq.cta": (mp("st", "st.release.cta", "ld.acquire.cta", "ld"), MP_BAD, ALLOWED),
    "MP+rel.cta+acq.gpu": (mp("st", "st.release.cta", "ld.acquire.gpu", "ld"), MP_BAD, ALLOWED),
    "MP+rel.gpu+acq.cta": (mp("st", "st.release.gpu", "ld.acquire.cta", "ld"), MP_BAD, ALLOWED),
    "MP+rel.cluster+acq.cluster": (mp("st", "st.release.cluster", "ld.acquire.cluster", "ld"), MP_BAD, ALLOWED),
    "MP+rel.sys+acq.sys": (mp("st.weak", "st.release.sys", "ld.acquire.sys", "ld.weak"), MP_BAD, FORBIDDEN),
    "MP+volatile": (mp("st.volatile", "st.volatile", "ld.volatile", "ld.volatile"), MP_BAD, ALLOWED),
    "MP+volatile+fences": (
        "st.weak x 1; fence.acq_rel.gpu; st.volatile y 1 | ld.volatile r0 y; fence.acq_rel.gpu; ld.weak r1 x",
        MP_BAD, FORBIDDEN,
    ),
    "MP+mmio": (mp("st.mmio", "st.mmio", "ld.mmio", "ld.mmio"), MP_BAD, ALLOWED),
    "MP+mmio+fences": (
        "st.mmio x 1; fence.sc.sys; st.mmio y 1 | ld.mmio r0 y; fence.sc.sys; ld.mmio r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP+fences": (
        "st x 1; fence.acq_rel.gpu; st y 1 | ld r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP+fences.sc": ("st x 1; fence.sc.gpu; st y 1 | ld r0 y; fence.sc.gpu; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+fences.cta": (
        "st x 1; fence.acq_rel.cta; st y 1 | ld r0 y; fence.acq_rel.cta; ld r1 x", MP_BAD, ALLOWED,
    ),
    "MP+fence.cta+fence.gpu": (
        "st x 1; fence.acq_rel.cta; st y 1 | ld r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, ALLOWED,
    ),
    "MP+fences+weak flag": (  # observation needs morally strong accesses
        "st x 1; fence.acq_rel.gpu; st.weak y 1 | ld.weak r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, ALLOWED,
    ),
    "MP+fences+weak flag read": (
        "st x 1; fence.acq_rel.gpu; st y 1 | ld.weak r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, ALLOWED,
    ),
    "MP+fences.gpu+flag.cta": (
        "st x 1; fence.acq_rel.gpu; st.relaxed.cta y 1 | ld.relaxed.cta r0 y; fence.acq_rel.gpu; ld r1 x",
        MP_BAD, ALLOWED,
    ),
    "MP+fence writes": ("st x 1; fence.acq_rel.gpu; st y 1 | ld r0 y; ld r1 x", MP_BAD, ALLOWED),
    "MP+fence reads": ("st x 1; st y 1 | ld r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, ALLOWED),
    "MP+fence+acq": ("st x 1; fence.acq_rel.gpu; st y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel+fence": ("st x 1; st.release y 1 | ld r0 y; fence.acq_rel.gpu; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+fence.release+fence.acquire": (
        "st x 1; fence.release.gpu; st y 1 | ld r0 y; fence.acquire.gpu; ld r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP+fence.acquire+fence.release": (  # each on the wrong side
        "st x 1; fence.acquire.gpu; st y 1 | ld r0 y; fence.release.gpu; ld r1 x", MP_BAD, ALLOWED,
    ),
    "MP+fence behind": ("st x 1; st y 1; fence.sc.gpu | fence.sc.gpu; ld r0 y; ld r1 x", MP_BAD, ALLOWED),
    "MP+membar.gl": ("st x 1;; ! membar.gl; ;; st y 1 | ld r0 y;; ! membar.gl; ;; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+membar.cta": ("st x 1;; ! membar.cta; ;; st y 1 | ld r0 y;; ! membar.cta; ;; ld r1 x", MP_BAD, ALLOWED),
    "MP+exch+acq": ("st x 1; exch.release r2 y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+exch relaxed": ("st x 1; exch r2 y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, ALLOWED),
    "MP+red.release": ("st x 1; red.release y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+red": ("st x 1; red y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, ALLOWED),
    "MP+red+fence": ("st x 1; fence.acq_rel.gpu; red y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel+cas.acquire": ("st x 1; st.release y 1 | cas.acquire r0 y 1 2; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel+failed cas.acquire": ("st x 1; st.release y 1 | cas.acquire r0 y 5 6; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel+add.acquire": ("st x 1; st.release y 1 | add.acquire r0 y 0; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel+add.release": ("st x 1; st.release y 1 | add.release r0 y 0; ld r1 x", MP_BAD, ALLOWED),
    "MP+rel+add.acq_rel": ("st x 1; st.release y 1 | add.acq_rel r0 y 0; ld r1 x", MP_BAD, FORBIDDEN),
    "MP+rel, then stronger write": (  # a release, then a strong write to its location: a release pattern
        "st x 1; st.release y 1; st y 2 | ld.acquire r0 y; ld r1 x", "1:r0=2 1:r1=0", FORBIDDEN,
    ),
    "MP+rel, then weak write": (
        "st x 1; st.release y 1; st.weak y 2 | ld.acquire r0 y; ld r1 x", "1:r0=2 1:r1=0", ALLOWED,
    ),
    "MP+read, then acquire": (  # a strong read, then an acquire of its location: an acquire pattern
        "st x 1; st.release y 1 | ld r0 y; ld.acquire r2 y; ld r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP+weak read, then acquire": (
        "st x 1; st.release y 1 | ld.weak r0 y; ld.acquire r2 y; ld r1 x", "1:r0=1 1:r2=0 1:r1=0", ALLOWED,
    ),
    "MP+rel elsewhere": ("st x 1; st.release z 1; st y 1 | ld.acquire r0 y; ld r1 x", MP_BAD, ALLOWED),
    "MP+acq elsewhere": ("st x 1; st.release y 1 | ld r0 y; ld.acquire r2 z; ld r1 x", MP_BAD, ALLOWED),
    "MP+addr": (  # PTX orders nothing by dependencies
        ("st x 1;; fence.acq_rel.gpu;; st y 1 | ld r0 y;; ! xor.b32 %t0, %r0, %r0; cvt.u64.u32 %d1, %t0; "
        "add.u64 %d1, %d1, %x; ld.relaxed.gpu.global.u32 %r1, [%d1];"), MP_BAD, ALLOWED,
    ),
    "MP+ctrl": (
        ("st x 1;; fence.acq_rel.gpu;; st y 1 | ld r0 y;; ! setp.eq.u32 %p1, %r0, 1; mov.u32 %r1, 7; "
        "@%p1 ld.relaxed.gpu.global.u32 %r1, [%x];"), MP_BAD, ALLOWED,
    ),
    "MP+through RMW": (
        "st x 1; st.release y 1 | add r0 y 1 | ld.acquire r0 y; ld r1 x", "2:r0=2 1:r0=1 2:r1=0", FORBIDDEN,
    ),
    "MP+through two RMW": (
        "st x 1; st.release y 1 | add r0 y 1; add r1 y 1 | ld.acquire r0 y; ld r1 x",
        "1:r0=1 1:r1=2 2:r0=3 2:r1=0", FORBIDDEN,
    ),
    "MP+through narrow RMW": (
        "st x 1; st.release y 1 | add.relaxed.cta r0 y 1 | ld.acquire r0 y; ld r1 x", "2:r0=2 1:r0=1 2:r1=0", ALLOWED,
    ),
    "MP+through load and store": (
        "st x 1; st.release y 1 | ld r0 y; st y 2 | ld.acquire r0 y; ld r1 x", "2:r0=2 1:r0=1 2:r1=0", ALLOWED,
    ),
    "MP+through red": (
        "st x 1; st.release y 1 | red y 1 | ld.acquire r0 y; ld r1 x", "2:r0=2 2:r1=0", FORBIDDEN,
    ),
    "MP+relaxed head, RMW releases": (
        "st x 1; st y 1 | add.release r0 y 1 | ld.acquire r0 y; ld r1 x", "2:r0=2 1:r0=1 2:r1=0", ALLOWED,
    ),
    "MP+overwritten message": (
        "st x 1; st x 2; st.release y 1 | ld.acquire r0 y; ld r1 x", "1:r0=1 1:r1=1", FORBIDDEN,
    ),
    "MP+two messages": (
        "st.weak x 1; st.weak z 1; st.release y 1 | ld.acquire r0 y; ld.weak r1 x; ld.weak r2 z", "1:r0=1 1:r2=0",
        FORBIDDEN,
    ),
    "MP+message after": ("st.release y 1; st x 1 | ld r1 x; ld.acquire r0 y", "1:r0=0 1:r1=1", ALLOWED),
    # Store buffering: neither thread sees the other's store.
    "SB": (SB.format("", ""), SB_BAD, ALLOWED),
    "SB+rel+acq": ("st.release x 1; ld.acquire r0 y | st.release y 1; ld.acquire r0 x", SB_BAD, ALLOWED),
    "SB+volatile": ("st.volatile x 1; ld.volatile r0 y | st.volatile y 1; ld.volatile r0 x", SB_BAD, ALLOWED),
    "SB+fences": (SB.format("fence.acq_rel.gpu;", "fence.acq_rel.gpu;"), SB_BAD, ALLOWED),
    "SB+fences.sc": (SB.format("fence.sc.gpu;", "fence.sc.gpu;"), SB_BAD, FORBIDDEN),
    "SB+fence.sc+fence": (SB.format("fence.sc.gpu;", "fence.acq_rel.gpu;"), SB_BAD, ALLOWED),
    "SB+fence.sc": (SB.format("fence.sc.gpu;", ""), SB_BAD, ALLOWED),
    "SB+fences.sc.cta": (SB.format("fence.sc.cta;", "fence.sc.cta;"), SB_BAD, ALLOWED),
    "SB+fence.sc.gpu+fence.sc.cta": (SB.format("fence.sc.gpu;", "fence.sc.cta;"), SB_BAD, ALLOWED),
    "SB+fence.sc.gpu+fence.sc.sys": (SB.format("fence.sc.gpu;", "fence.sc.sys;"), SB_BAD, FORBIDDEN),
    "SB+membar.gl": ("st x 1;; ! membar.gl; ;; ld r0 y | st y 1;; ! membar.gl; ;; ld r0 x", SB_BAD, FORBIDDEN),
    "SB+weak+fences.sc": (
        "st.weak x 1; fence.sc.gpu; ld.weak r0 y | st.weak y 1; fence.sc.gpu; ld.weak r0 x", SB_BAD, FORBIDDEN,
    ),
    "SB+exch.acq_rel": ("exch.acq_rel r1 x 1; ld r0 y | exch.acq_rel r1 y 1; ld r0 x", SB_BAD, ALLOWED),
    "SB+RMW of one word": (
        "st x 1; add.acq_rel r1 z 0; ld r0 y | st y 1; add.acq_rel r1 z 0; ld r0 x", SB_BAD, FORBIDDEN,
    ),
    "SB+relaxed RMW of one word": ("st x 1; add r1 z 0; ld r0 y | st y 1; add r1 z 0; ld r0 x", SB_BAD, ALLOWED),
    "SB3+fences.sc": (
        "st x 1; fence.sc.gpu; ld r0 y | st y 1; fence.sc.gpu; ld r0 z | st z 1; fence.sc.gpu; ld r0 x",
        "0:r0=0 1:r0=0 2:r0=0", FORBIDDEN,
    ),
    "SB3+two fences.sc": (
        "st x 1; fence.sc.gpu; ld r0 y | st y 1; fence.sc.gpu; ld r0 z | st z 1; ld r0 x", "0:r0=0 1:r0=0 2:r0=0",
        ALLOWED,
    ),
    "SB+own store": ("st x 1; ld r1 x; ld r0 y | st y 1; ld r1 y; ld r0 x", SB_BAD + " 0:r1=1 1:r1=1", ALLOWED),
    # Load buffering: each thread reads what the other stores later.
    "LB": ("ld r0 x; st y 1 | ld r0 y; st x 1", LB_BAD, ALLOWED),
    "LB+weak": ("ld.weak r0 x; st.weak y 1 | ld.weak r0 y; st.weak x 1", LB_BAD, ALLOWED),
    "LB+data": ("ld r0 x; st y r0 | ld r0 y; st x r0", LB_BAD, FORBIDDEN),
    "LB+data, one side": ("ld r0 x; st y r0 | ld r0 y; st x 1", LB_BAD, ALLOWED),
    "LB+ctrl": (
        ("ld r0 x;; ! setp.eq.u32 %p1, %r0, 1; @%p1 st.relaxed.gpu.global.u32 [%x+4], 1; | "
        "ld r0 y;; ! setp.eq.u32 %p1, %r0, 1; @%p1 st.relaxed.gpu.global.u32 [%x], 1;"), LB_BAD, FORBIDDEN,
    ),
    "LB+ctrl, one side": (
        "ld r0 x;; ! setp.eq.u32 %p1, %r0, 1; @%p1 st.relaxed.gpu.global.u32 [%x+4], 1; | ld r0 y; st x 1",
        LB_BAD, ALLOWED,
    ),
    "LB+addr": (
        ("ld r0 x;; ! mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, %x; st.relaxed.gpu.global.u32 [%d1], 1; | "
        "ld r0 y;; ! @!%p0 mul.wide.u32 %d1, %r0, 4; sub.u64 %d1, %x, %d1; "
        "st.relaxed.gpu.global.u32 [%d1+4], 1;"), LB_BAD, FORBIDDEN,
    ),
    "LB+false dependency": (  # the value does not depend on what is read, whatever the registers are
        ("ld r0 x;; ! xor.b32 %t0, %r0, %r0; add.u32 %t0, %t0, 1; st.relaxed.gpu.global.u32 [%x+4], %t0; | "
        "ld r0 y; st x 1"), LB_BAD, ALLOWED,
    ),
    "LB+rel+acq": ("ld.acquire r0 x; st.release y 1 | ld.acquire r0 y; st.release x 1", LB_BAD, FORBIDDEN),
    "LB+acq": ("ld.acquire r0 x; st y 1 | ld.acquire r0 y; st x 1", LB_BAD, ALLOWED),
    "LB+rel": ("ld r0 x; st.release y 1 | ld r0 y; st.release x 1", LB_BAD, ALLOWED),
    "LB+acq+rel": ("ld.acquire r0 x; st y 1 | ld r0 y; st.release x 1", LB_BAD, FORBIDDEN),
    "LB+rel+acq.cta": (
        "ld.acquire.cta r0 x; st.release.cta y 1 | ld.acquire.cta r0 y; st.release.cta x 1", LB_BAD, ALLOWED,
    ),
    "LB+fences": ("ld r0 x; fence.acq_rel.gpu; st y 1 | ld r0 y; fence.acq_rel.gpu; st x 1", LB_BAD, FORBIDDEN),
    "LB+fence": ("ld r0 x; fence.sc.gpu; st y 1 | ld r0 y; st x 1", LB_BAD, ALLOWED),
    "LB3": ("ld r0 x; st y 1 | ld r0 y; st z 1 | ld r0 z; st x 1", LB_BAD + " 2:r0=1", ALLOWED),
    "LB3+data": ("ld r0 x; st y r0 | ld r0 y; st z r0 | ld r0 z; st x r0", LB_BAD + " 2:r0=1", FORBIDDEN),
    "LB3+data, two": ("ld r0 x; st y r0 | ld r0 y; st z r0 | ld r0 z; st x 1", LB_BAD + " 2:r0=1", ALLOWED),
    "LB+RMW": ("add r0 x 1; st y 1 | ld r0 y; st x 5", "0:r0=5 1:r0=1", ALLOWED),
    "LB+RMW+data": ("add r0 x 1; st y r0 | ld r0 y; st x r0", "0:r0=1 1:r0=1", FORBIDDEN),
    "LB+kept value": ("ld r0 x; st z r0; st y 1 | ld r0 y; st x 1", LB_BAD + " z=1", ALLOWED),
    "LB+out of thin air": ("ld r0 x; st y r0 | ld r0 y; st x r0", "x=42", FORBIDDEN),
    "LB of one word, weak": ("ld.weak r0 x; st.weak x 1 | ld.weak r0 x; st.weak x 2", "0:r0=2 1:r0=1", ALLOWED),
    "LB of one word": ("ld r0 x; st x 1 | ld r0 x; st x 2", "0:r0=2 1:r0=1", FORBIDDEN),
    "LB of one word, narrow RMW": (
        "add.acquire.cta r0 y 1 | exch.acq_rel.cta r0 y 4; st y 32", "0:r0=32 1:r0=33", ALLOWED,
    ),
    "LB of one word, RMW and a weak read": (
        "ld.weak r0 x; st x r0 | add.acquire r0 x 8; st.release x 16", "0:r0=16 1:r0=16", ALLOWED,
    ),
    "LB of one word, RMW": ("ld r0 x; st x r0 | add.acquire r0 x 8; st.release x 16", "0:r0=16 1:r0=16", FORBIDDEN),
    "LB, what an RMW reads does not depend on what it adds": (
        "exch r0 x 1; add.acq_rel r1 y 2 | ld.weak r0 x; add r2 y r0; exch.relaxed.cta r3 x r2",
        "0:r0=2 0:r1=0 1:r0=1 1:r2=2", ALLOWED,
    ),
    # Independent reads of independent writes: two readers disagree on the order of two writes.
    "IRIW": (iriw("st", "ld", "", "ld"), IRIW_BAD, ALLOWED),
    "IRIW+acq": (iriw("st.release", "ld.acquire", "", "ld.acquire"), IRIW_BAD, ALLOWED),
    "IRIW+fences": (iriw("st", "ld", "fence.acq_rel.gpu;", "ld"), IRIW_BAD, ALLOWED),
    "IRIW+fences.sc": (iriw("st", "ld", "fence.sc.gpu;", "ld"), IRIW_BAD, FORBIDDEN),
    "IRIW+fence.sc+fence": (iriw("st", "ld", "fence.sc.gpu;", "ld", "fence.acq_rel.gpu;"), IRIW_BAD, ALLOWED),
    "IRIW+fences.sc.cta": (iriw("st", "ld", "fence.sc.cta;", "ld"), IRIW_BAD, ALLOWED),
    "IRIW+weak+fences.sc": (iriw("st.weak", "ld.weak", "fence.sc.gpu;", "ld.weak"), IRIW_BAD, ALLOWED),
    # Write to read causality, and other chains.
    "WRC": ("st x 1 | ld r0 x; st y 1 | ld r0 y; ld r1 x", WRC_BAD, ALLOWED),
    "WRC+rel+acq": ("st x 1 | ld r0 x; st.release y 1 | ld.acquire r0 y; ld r1 x", WRC_BAD, FORBIDDEN),
    "WRC+weak read": ("st x 1 | ld.weak r0 x; st.release y 1 | ld.acquire r0 y; ld r1 x", WRC_BAD, ALLOWED),
    "WRC+weak write": ("st.weak x 1 | ld r0 x; st.release y 1 | ld.acquire r0 y; ld r1 x", WRC_BAD, ALLOWED),
    "WRC+rel": ("st x 1 | ld r0 x; st.release y 1 | ld r0 y; ld r1 x", WRC_BAD, ALLOWED),
    "WRC+fences": (
        "st x 1 | ld r0 x; fence.acq_rel.gpu; st y 1 | ld r0 y; fence.acq_rel.gpu; ld r1 x", WRC_BAD, FORBIDDEN,
    ),
    "WRC+ctrl": (
        ("st x 1 | ld r0 x;; ! setp.eq.u32 %p1, %r0, 1; @%p1 st.relaxed.gpu.global.u32 [%x+4], 1; | "
        "ld.acquire r0 y; ld r1 x"), WRC_BAD, ALLOWED,
    ),
    "ISA2": (
        "st x 1; st.release y 1 | ld.acquire r0 y; st.release z 1 | ld.acquire r0 z; ld r1 x", WRC_BAD, FORBIDDEN,
    ),
    "ISA2+relaxed middle": (
        "st x 1; st.release y 1 | ld r0 y; st z 1 | ld.acquire r0 z; ld r1 x", WRC_BAD, ALLOWED,
    ),
    "ISA2+release only in the middle": (
        "st x 1; st.release y 1 | ld r0 y; st.release z 1 | ld.acquire r0 z; ld r1 x", WRC_BAD, ALLOWED,
    ),
    "ISA2+fence in the middle": (
        "st x 1; st.release y 1 | ld r0 y; fence.acq_rel.gpu; st z 1 | ld.acquire r0 z; ld r1 x", WRC_BAD, FORBIDDEN,
    ),
    "ISA2+weak message": (
        "st.weak x 1; st.release y 1 | ld.acquire r0 y; st.release z 1 | ld.acquire r0 z; ld.weak r1 x", WRC_BAD,
        FORBIDDEN,
    ),
    "chain of four": (
        ("st.weak x 1; st.release y 1 | ld.acquire r0 y; st.release z 1 | ld.acquire r0 z; st.release w 1 | "
        "ld.acquire r0 w; ld.weak r1 x"), "1:r0=1 2:r0=1 3:r0=1 3:r1=0", FORBIDDEN,
    ),
    "RWC": ("st x 1 | ld r0 x; ld r1 y | st y 1; ld r0 x", "1:r0=1 1:r1=0 2:r0=0", ALLOWED),
    "RWC+fences": (
        "st x 1 | ld r0 x; fence.acq_rel.gpu; ld r1 y | st y 1; fence.acq_rel.gpu; ld r0 x", "1:r0=1 1:r1=0 2:r0=0",
        ALLOWED,
    ),
    "RWC+fences.sc": (
        "st x 1 | ld r0 x; fence.sc.gpu; ld r1 y | st y 1; fence.sc.gpu; ld r0 x", "1:r0=1 1:r1=0 2:r0=0", FORBIDDEN,
    ),
    "W+RWC+fences.sc": (
        "st x 1; st.release z 1 | ld.acquire r0 z; fence.sc.gpu; ld r1 y | st y 1; fence.sc.gpu; ld r0 x",
        "1:r0=1 1:r1=0 2:r0=0", FORBIDDEN,
    ),
    "R": ("st x 1; st y 1 | st y 2; ld r0 x", "y=2 1:r0=0", ALLOWED),
    "R+fences": ("st x 1; fence.acq_rel.gpu; st y 1 | st y 2; fence.acq_rel.gpu; ld r0 x", "y=2 1:r0=0", ALLOWED),
    "R+fences.sc": ("st x 1; fence.sc.gpu; st y 1 | st y 2; fence.sc.gpu; ld r0 x", "y=2 1:r0=0", FORBIDDEN),
    "S": ("st x 2; st y 1 | ld r0 y; st x 1", "1:r0=1 x=2", ALLOWED),
    "S+rel+acq": ("st x 2; st.release y 1 | ld.acquire r0 y; st x 1", "1:r0=1 x=2", FORBIDDEN),
    "S+rel+acq+weak": ("st.weak x 2; st.release y 1 | ld.acquire r0 y; st.weak x 1", "1:r0=1 x=2", FORBIDDEN),
    "S+fences": (
        "st x 2; fence.acq_rel.gpu; st y 1 | ld r0 y; fence.acq_rel.gpu; st x 1", "1:r0=1 x=2", FORBIDDEN,
    ),
    "S+rel": ("st x 2; st.release y 1 | ld r0 y; st x 1", "1:r0=1 x=2", ALLOWED),
    "2+2W": ("st x 1; st y 2 | st y 1; st x 2", "x=1 y=1", ALLOWED),
    "2+2W+rel": ("st x 1; st.release y 2 | st y 1; st.release x 2", "x=1 y=1", ALLOWED),
    "2+2W+fences": ("st x 1; fence.acq_rel.gpu; st y 2 | st y 1; fence.acq_rel.gpu; st x 2", "x=1 y=1", ALLOWED),
    "2+2W+fences.sc": ("st x 1; fence.sc.gpu; st y 2 | st y 1; fence.sc.gpu; st x 2", "x=1 y=1", FORBIDDEN),
    "Z6.0+rel+acq": (  # the last edge is from a read to a write, which only fence.sc turns
        "st x 1; st.release y 1 | ld.acquire r0 y; st.release z 1 | st z 2; ld r0 x", "1:r0=1 z=2 2:r0=0", ALLOWED,
    ),
    "Z6.0+fences.sc": (
        "st x 1; fence.sc.gpu; st y 1 | ld r0 y; fence.sc.gpu; st z 1 | st z 2; fence.sc.gpu; ld r0 x",
        "1:r0=1 z=2 2:r0=0", FORBIDDEN,
    ),
    # Coherence of one location.
    "CoRR": ("st x 1 | ld r0 x; ld r1 x", "1:r0=1 1:r1=0", FORBIDDEN),
    "CoRR+weak": ("st.weak x 1 | ld.weak r0 x; ld.weak r1 x", "1:r0=1 1:r1=0", ALLOWED),
    "CoRR+weak reads": ("st x 1 | ld.weak r0 x; ld.weak r1 x", "1:r0=1 1:r1=0", ALLOWED),
    "CoRR+weak, strong": ("st x 1 | ld.weak r0 x; ld r1 x", "1:r0=1 1:r1=0", ALLOWED),
    "CoRR+strong, weak": ("st x 1 | ld r0 x; ld.weak r1 x", "1:r0=1 1:r1=0", FORBIDDEN),  # observed, then in causality
    "CoRR+volatile": ("st.volatile x 1 | ld.volatile r0 x; ld.volatile r1 x", "1:r0=1 1:r1=0", FORBIDDEN),
    "CoRR+cta": ("st.relaxed.cta x 1 | ld.relaxed.cta r0 x; ld.relaxed.cta r1 x", "1:r0=1 1:r1=0", ALLOWED),
    "CoRR2": (
        "st x 1 | st x 2 | ld r0 x; ld r1 x | ld r0 x; ld r1 x", "2:r0=1 2:r1=2 3:r0=2 3:r1=1", FORBIDDEN,
    ),
    "CoRR2+weak writes": (
        "st.weak x 1 | st.weak x 2 | ld r0 x; ld r1 x | ld r0 x; ld r1 x", "2:r0=1 2:r1=2 3:r0=2 3:r1=1", ALLOWED,
    ),
    "CoRR3": ("st x 1; st x 2 | ld r0 x; ld r1 x", "1:r0=2 1:r1=1", FORBIDDEN),
    "CoWW": ("st x 1; st x 2", "x=1", FORBIDDEN),
    "CoWW+weak": ("st.weak x 1; st.weak x 2", "x=1", FORBIDDEN),
    "CoWR": ("st x 1; ld r0 x", "0:r0=0", FORBIDDEN),
    "CoWR+weak": ("st.weak x 1; ld.weak r0 x", "0:r0=0", FORBIDDEN),
    "CoWR, two writers": ("st x 1; ld r0 x | st x 2", "0:r0=2 x=1", FORBIDDEN),
    "CoRW1": ("ld r0 x; st x 1", "0:r0=1", FORBIDDEN),
    "CoRW1+weak": ("ld.weak r0 x; st.weak x 1", "0:r0=1", FORBIDDEN),
    "CoRW2": ("ld r0 x; st x 1 | st x 2", "0:r0=2 x=2", FORBIDDEN),
    "CoRW2+weak": ("ld.weak r0 x; st.weak x 1 | st.weak x 2", "0:r0=2 x=2", ALLOWED),
    "racing stores": ("st.weak x 1 | st.weak x 2", "x=1", ALLOWED),
    # Loads through the non-coherent cache are another proxy, of which nothing orders what is written meanwhile.
    "MP+nc": (
        "st.weak x 1;; st.release y 1 | ld.acquire r0 y;; ! ld.global.nc.u32 %r1, [%x];", MP_BAD, ALLOWED,
    ),
    "CoWR+nc": ("st.weak x 1;; ! ld.global.nc.u32 %r0, [%x];", "0:r0=0", ALLOWED),
    # Atomic read-modify-writes.
    "two additions read the same": ("add r0 x 1 | add r0 x 1", "0:r0=0 1:r0=0", FORBIDDEN),
    "two additions": ("add r0 x 1 | add r0 x 1", "x=2", ALLOWED),
    "a lost addition": ("add r0 x 1 | add r0 x 1", "x=1", FORBIDDEN),
    "a lost reduction": ("red x 1 | red x 1", "x=1", FORBIDDEN),
    "three reductions": ("red x 1 | red x 1 | red x 1", "x=2", FORBIDDEN),
    "additions in narrow scopes": ("add.relaxed.cta r0 x 1 | add.relaxed.cta r0 x 1", "x=1", ALLOWED),
    "additions, one narrow": ("add.relaxed.cta r0 x 1 | add.relaxed.gpu r0 x 1", "x=1", ALLOWED),
    "a store into an addition": ("add r0 x 1 | st x 5", "0:r0=0 x=1", FORBIDDEN),
    "a weak store into an addition": ("add r0 x 1 | st.weak x 5", "0:r0=0 x=1", ALLOWED),
    "load and store, no atomic": ("ld r0 x;; ! add.u32 %t0, %r0, 1; st.relaxed.gpu.global.u32 [%x], %t0; | add r0 x 1",
                                  "0:r0=0 1:r0=0 x=1", ALLOWED),
    "two exchanges": ("exch r0 x 1 | exch r0 x 2", "0:r0=0 1:r0=0", FORBIDDEN),
    "two exchanges in a circle": ("exch r0 x 1 | exch r0 x 2", "0:r0=2 1:r0=1", FORBIDDEN),
    "both compare-and-swaps": ("cas r0 x 0 1 | cas r0 x 0 2", "0:r0=0 1:r0=0", FORBIDDEN),
    "one compare-and-swap": ("cas r0 x 0 1 | cas r0 x 0 2", "0:r0=0 1:r0=1 x=1", ALLOWED),
    "maximum": ("max r0 x 3 | max r0 x 2", "x=2", FORBIDDEN),
    "an addition between reads": ("ld r0 x; ld r1 x | add r0 x 1", "0:r0=1 0:r1=0", FORBIDDEN),
    "addition and exchange": ("add r0 x 1 | exch r0 x 7", "0:r0=7 1:r0=1", FORBIDDEN),
    "an RMW orders nothing else": ("st x 1; add r0 z 1 | add r0 z 1; ld r1 x", "1:r0=1 1:r1=0", ALLOWED),
    "RMW release and acquire": (
        "st x 1; add.release r0 z 1 | add.acquire r0 z 1; ld r1 x", "1:r0=1 1:r1=0", FORBIDDEN,
    ),
    "inc wraps": ("inc r0 x 1 | inc r0 x 1", "x=2", FORBIDDEN),
}
ONE_BLOCK = {
    "MP+rel.cta+acq.cta in a block": (mp("st", "st.release.cta", "ld.acquire.cta", "ld"), MP_BAD, FORBIDDEN),
    "MP+fences.cta in a block": (
        "st x 1; fence.acq_rel.cta; st y 1 | ld r0 y; fence.acq_rel.cta; ld r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP+membar.cta in a block": (
        "st x 1;; ! membar.cta; ;; st y 1 | ld r0 y;; ! membar.cta; ;; ld r1 x", MP_BAD, FORBIDDEN,
    ),
    "MP in a block": (mp("st", "st", "ld", "ld"), MP_BAD, ALLOWED),
    "MP in shared memory": (
        "st.weak sx 1; st.release.cta sy 1 | ld.acquire.cta r0 sy; ld.weak r1 sx", MP_BAD, FORBIDDEN,
    ),
    "MP in shared memory, relaxed": (
        "st.weak sx 1; st.relaxed.cta sy 1 | ld.relaxed.cta r0 sy; ld.weak r1 sx", MP_BAD, ALLOWED,
    ),
    "MP from global by a shared flag": (
        "st.weak x 1; st.release.cta sy 1 | ld.acquire.cta r0 sy; ld.weak r1 x", MP_BAD, FORBIDDEN,
    ),
    "SB+fences.sc.cta in a block": (SB.format("fence.sc.cta;", "fence.sc.cta;"), SB_BAD, FORBIDDEN),
    "SB+membar.cta in a block": (
        "st x 1;; ! membar.cta; ;; ld r0 y | st y 1;; ! membar.cta; ;; ld r0 x", SB_BAD, FORBIDDEN,
    ),
    "CoRR+cta in a block": (
        "st.relaxed.cta x 1 | ld.relaxed.cta r0 x; ld.relaxed.cta r1 x", "1:r0=1 1:r1=0", FORBIDDEN,
    ),
    "additions at cta in a block": ("add.relaxed.cta r0 x 1 | add.relaxed.cta r0 x 1", "x=1", FORBIDDEN),
    "IRIW+fences.sc.cta in a block": (iriw("st", "ld", "fence.sc.cta;", "ld"), IRIW_BAD, FORBIDDEN),
    "MP+barrier": ("st.weak x 1;; ! barrier.sync 0; | ! barrier.sync 0; ;; ld.weak r1 x", "1:r1=0", FORBIDDEN),
    "MP+barrier of others": (
        "st.weak x 1;; ! bar.warp.sync 1; | ! bar.warp.sync 2; ;; ld.weak r1 x", "1:r1=0", ALLOWED,
    ),
    "MP+bar.warp.sync": ("st.weak x 1;; ! bar.warp.sync 3; | ! bar.warp.sync 3; ;; ld.weak r1 x", "1:r1=0", FORBIDDEN),
    "barrier, the other way": (
        "! barrier.sync 0; ;; st.weak x 1 | ld.weak r1 x;; ! barrier.sync 0;", "1:r1=1", FORBIDDEN,
    ),
    "two barriers": (
        ("st.weak x 1;; ! barrier.sync 0; ;; ! barrier.sync 0; ;; st.weak x 2 | "
        "! barrier.sync 0; ;; ld.weak r1 x;; ! barrier.sync 0;"), "1:r1=2", FORBIDDEN,
    ),
    "SB+barrier": ("st.weak x 1;; ! barrier.sync 0; ;; ld.weak r0 y | st.weak y 1;; ! barrier.sync 0; ;; ld.weak r0 x",
                   SB_BAD, FORBIDDEN),
    "barrier with a vote": (
        ("! mov.u32 %r1, 1; setp.eq.u32 %p1, %r1, 1; barrier.red.popc.u32 %r0, 1, %p1; | "
        "! mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 1; barrier.red.popc.u32 %r0, 1, %p1;"), "0:r0=1 1:r0=1", ALLOWED,
    ),
    "barrier with a vote, otherwise": (
        ("! mov.u32 %r1, 1; setp.eq.u32 %p1, %r1, 1; barrier.red.popc.u32 %r0, 1, %p1; | "
        "! mov.u32 %r1, 0; setp.eq.u32 %p1, %r1, 1; barrier.red.popc.u32 %r0, 1, %p1;"), "0:r0=2", FORBIDDEN,
    ),
}
TWO_BLOCKS = {  # of two threads each
    "ISA2 across scopes": (

               ("st.weak x 1; st.release.cta y 1 | ld.acquire.cta r0 y; st.release.gpu z 1 | "
        "ld.acquire.gpu r0 z; ld.weak r1 x |"),
        WRC_BAD, FORBIDDEN,
    ),
    "ISA2, the second scope too narrow": (

               ("st.weak x 1; st.release.cta y 1 | ld.acquire.cta r0 y; st.release.cta z 1 | "
        "ld.acquire.cta r0 z; ld.weak r1 x |"),
        WRC_BAD, ALLOWED,
    ),
    "WRC, observed in the block": (
        "st.relaxed.cta x 1 | ld.relaxed.cta r0 x; st.release.gpu y 1 | ld.acquire.gpu r0 y; ld.weak r1 x |", WRC_BAD,
        FORBIDDEN,
    ),
    "a barrier, then a release": (

               ("st.weak x 1;; ! barrier.sync 0; | ! barrier.sync 0; ;; st.release.gpu y 1 | "
        "ld.acquire.gpu r0 y; ld.weak r1 x |"),
        "2:r0=1 2:r1=0", FORBIDDEN,
    ),
    "a release, then a barrier": (

               ("st.weak x 1; st.release.gpu y 1 || ld.acquire.gpu r0 y;; ! barrier.sync 0; | "
        "! barrier.sync 0; ;; ld.weak r1 x"),
        "2:r0=1 3:r1=0", FORBIDDEN,
    ),
    "a barrier, then a fence at gpu": (
        ("st.weak x 1;; ! barrier.sync 0; | ! barrier.sync 0; ;; fence.acq_rel.gpu;; st y 1 | "
        "ld r0 y; fence.acq_rel.gpu; ld.weak r1 x |"), "2:r0=1 2:r1=0", FORBIDDEN,
    ),
    "a barrier, then nothing": (
        "st.weak x 1;; ! barrier.sync 0; | ! barrier.sync 0; ;; st y 1 | ld r0 y; fence.acq_rel.gpu; ld.weak r1 x |",
        "2:r0=1 2:r1=0", ALLOWED,
    ),
    "shared memory is of the block": ("st sx 1 | | ld r0 sx |", "2:r0=1", FORBIDDEN),
}


@pytest.mark.parametrize(("program", "condition", "allowed"), TESTS.values(), ids=TESTS)
def test_threads_of_different_blocks(program: str, condition: str, allowed: bool) -> None:
    assert reaches(program, condition) == allowed


@pytest.mark.parametrize(("program", "condition", "allowed"), ONE_BLOCK.values(), ids=ONE_BLOCK)
def test_threads_of_a_block(program: str, condition: str, allowed: bool) -> None:
    assert reaches(program, condition, 1) == allowed


@pytest.mark.parametrize(("program", "condition", "allowed"), TWO_BLOCKS.values(), ids=TWO_BLOCKS)
def test_two_threads_of_each_of_two_blocks(program: str, condition: str, allowed: bool) -> None:
    assert reaches(program, condition, 2) == allowed


def test_there_are_enough() -> None:
    assert len(TESTS) + len(ONE_BLOCK) + len(TWO_BLOCKS) >= 150
