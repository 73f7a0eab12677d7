"""Recursive functions keep the parameters that they need after a call, and no others."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from emulator_harness import HEADER, launch

from ptxdsl.emulator.rewrite.pipeline import rewrite
from ptxdsl.emulator.analysis.call_stack import FRAME, STACK_ALIGN, STACK_POINTER
from ptxdsl.ir import Address, Immediate, Register
from ptxdsl.text import parse

Step = tuple[str, int, int]
LANES = 64


def draw(rng: random.Random) -> list[Step]:
    """A function's body: pieces of parameters read and written in any order around its calls of itself."""
    steps: list[Step] = []
    calls = 0
    for _ in range(rng.randrange(6, 16)):
        kind = rng.choice(("own", "depth", "result", "call", "back", "back"))
        if kind == "call" and calls < 3:
            steps.append(("call", calls, 0))
            calls += 1
        elif kind == "back" and calls:
            steps.append(("back", rng.randrange(calls), rng.randrange(2)))
        elif kind in ("own", "result", "depth"):
            steps.append((kind, rng.randrange(2), 0))
    return steps


def text(steps: list[Step]) -> str:
    body, calls = "", sum(kind == "call" for kind, _, _ in steps)
    for kind, which, piece in steps:
        if kind == "own":
            body += f"ld.param.u32 %r2, [s+{4 * which}]; mad.lo.u32 %r1, %r1, 5, %r2;\n"
        elif kind == "depth":
            body += "ld.param.u32 %r2, [n]; mad.lo.u32 %r1, %r2, 3, %r1;\n"
        elif kind == "result":
            body += f"st.param.b32 [result+{4 * which}], %r1;\n"
        elif kind == "back":
            body += f"ld.param.b32 %r2, [back{which}+{4 * piece}]; xor.b32 %r1, %r1, %r2;\n"
        else:
            body += f"""
                ld.param.u32 %r3, [n]; sub.u32 %r3, %r3, 1; xor.b32 %r4, %r1, %r3; st.param.b32 [depth{which}], %r3;
                st.param.b32 [given{which}], %r1; st.param.b32 [given{which}+4], %r4;
                call (back{which}), f, (depth{which}, given{which});
            """
    cells = "".join(
        f".param .b32 depth{k}; .param .align 4 .b8 given{k}[8]; .param .align 4 .b8 back{k}[8];" for k in range(calls)
    )
    return f"""{HEADER}
        .func (.param .align 4 .b8 result[8]) f(.param .b32 n, .param .align 4 .b8 s[8]) {{
            .reg .b32 %r<9>; .reg .pred %p<3>; {cells}
            ld.param.u32 %r0, [n]; ld.param.u32 %r1, [s]; ld.param.u32 %r2, [s+4];
            st.param.b32 [result], %r1; st.param.b32 [result+4], %r2; add.u32 %r1, %r1, %r0;
            setp.eq.u32 %p0, %r0, 0; @%p0 ret;
            {body} ret;
        }}
        .visible .entry k(.param .u64 n, .param .u64 x, .param .u64 out) {{
            .reg .b32 %r<9>; .reg .b64 %rd<9>; .param .b32 depth; .param .align 4 .b8 given[8];
            .param .align 4 .b8 back[8];
            mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [n]; mad.wide.u32 %rd0, %r0, 4, %rd0;
            ld.param.u64 %rd1, [x]; mad.wide.u32 %rd1, %r0, 8, %rd1;
            ld.param.u64 %rd2, [out]; mad.wide.u32 %rd2, %r0, 8, %rd2;
            ld.global.u32 %r1, [%rd0]; ld.global.v2.u32 {{%r2, %r3}}, [%rd1];
            st.param.b32 [depth], %r1; st.param.b32 [given], %r2; st.param.b32 [given+4], %r3;
            call (back), f, (depth, given);
            ld.param.b32 %r4, [back]; ld.param.b32 %r5, [back+4]; st.global.v2.u32 [%rd2], {{%r4, %r5}}; ret;
        }}
    """


def wanted(steps: list[Step], n: int, s: tuple[int, int]) -> tuple[int, int]:
    result, value = list(s), (s[0] + n) % (1 << 32)
    backs: dict[int, tuple[int, int]] = {}
    for kind, which, piece in steps if n else ():
        if kind == "own":
            value = (value * 5 + s[which]) % (1 << 32)
        elif kind == "depth":
            value = (value + 3 * n) % (1 << 32)
        elif kind == "result":
            result[which] = value
        elif kind == "back":
            value ^= backs[which][piece]
        else:
            backs[which] = wanted(steps, n - 1, (value, value ^ (n - 1)))
    return result[0], result[1]


@pytest.mark.parametrize("number", range(6))
def test_functions_at_random(number: int) -> None:
    seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    steps = draw(rng)
    n = np.array([rng.randrange(5) for _ in range(LANES)], np.uint32)
    x = np.array([[rng.randrange(1 << 32) for _ in range(2)] for _ in range(LANES)], np.uint32)
    out = np.zeros_like(x)
    launch(text(steps), 1, LANES, second_tier=bool(number % 2), n=n, x=x, out=out)
    for lane in range(LANES):
        given = int(x[lane, 0]), int(x[lane, 1])
        assert tuple(out[lane]) == wanted(steps, int(n[lane]), given), (seed, steps, lane)


def accesses_of_the_stack(steps: list[Step]) -> int:
    module = parse(text(steps))
    kernel = next(function for function in module.functions if function.name == "k")
    bases = [o.base for s in rewrite(module, kernel, None).instructions() for o in s.operands if isinstance(o, Address)]
    return sum(isinstance(base, Register) and base.name == STACK_POINTER for base in bases)


def test_what_is_not_needed_is_not_pushed() -> None:
    """A call that nothing is read after but its result: the place to return to is all that the stack has."""
    alone = accesses_of_the_stack([("call", 0, 0), ("back", 0, 0), ("result", 0, 0)])
    later = accesses_of_the_stack([("call", 0, 0), ("own", 0, 0), ("result", 0, 0)])
    assert later > alone


def test_the_stack_pointer_and_frames_stay_aligned() -> None:
    module = parse(HEADER + """.visible .entry k(.param .u64 x) { .reg .b32 %r<4>; .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; call (%r1), f, (%r0, %rd0); st.global.u32 [%rd0], %r1; ret; }
    .func (.reg .u32 out) f(.reg .u32 a, .reg .u64 x) { .reg .b32 %r<4>; .reg .pred %p; .local .align 4 .b8 own[12];
        st.local.u32 [own+4], a; sub.u32 %r0, a, 1; setp.gt.u32 %p, a, 9; mov.u32 out, 3; @%p bra END;
        call (%r1), f, (%r0, x); ld.local.u32 %r2, [own+4]; add.u32 out, %r1, %r2; END: ret; }
    """.replace(".visible", ".func (.reg .u32 out) f(.reg .u32 a, .reg .u64 x);\n.visible", 1))
    moves = [
        s for s in rewrite(module, module.function("k"), None).instructions()
        if s.form.mnemonic in ("add.u64", "sub.u64") and isinstance(s.operands[0], Register)
        and (s.operands[0].name == STACK_POINTER or s.operands[0].name.startswith(FRAME))
    ]
    sizes = [s.operands[2].value for s in moves if isinstance(s.operands[2], Immediate)]
    assert len(sizes) >= 5
    assert not any(size % STACK_ALIGN for size in sizes)
