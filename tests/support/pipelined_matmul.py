"""A matrix product as Triton writes it for sm_80, in PTX: cp.async in three stages, swizzled tiles, ldmatrix, mma.

``c = a @ b`` with a (m, k) and b (k, n) of f16, c of f32; m and n multiples of 64, k of 32. 128 threads a block.
"""

from __future__ import annotations

__all__ = ["STAGES", "TILE", "pipelined_matmul"]

STAGES, TILE = 3, 64
_BYTES = 4096
"""Of a tile of either matrix."""


def _copies() -> str:
    """The copies of a stage: two runs of 16 bytes of either matrix by each thread, then a commit."""
    lines = ["@%p1 bra SKIP{n};"]
    for part in (0, 1):
        lines += [
            f"add.u32 %r20, %stage{{s}}, %adst{part}; cp.async.cg.shared.global [%r20], [%apos{part}], 16;",
            f"add.u32 %r20, %stage{{s}}, %bdst{part};",
            f"cp.async.cg.shared.global [%r20+{STAGES * _BYTES}], [%bpos{part}], 16;",
            f"add.u64 %apos{part}, %apos{part}, 64; add.u64 %bpos{part}, %bpos{part}, %bstep;",
        ]
    return "\n".join([*lines, "SKIP{n}:", "cp.async.commit_group;"])


def _products() -> str:
    lines = []
    for half in (0, 1):
        for m in (0, 1):
            lines += [
                f"add.u32 %r20, %arow, {16 * m}; shl.b32 %r21, %r20, 6; shr.u32 %r22, %r20, 1; and.b32 %r22, %r22, 3;",
                f"add.u32 %r23, %high, {2 * half}; xor.b32 %r23, %r23, %r22; shl.b32 %r23, %r23, 4;",
                "add.u32 %r21, %r21, %r23; add.u32 %r21, %r21, %stage0;",
                f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a{m}_0, %a{m}_1, %a{m}_2, %a{m}_3}}, [%r21];",
            ]
        for n in (0, 1):
            lines += [
                f"add.u32 %r20, %low, {16 * half}; shl.b32 %r21, %r20, 7; and.b32 %r22, %r20, 7;",
                f"add.u32 %r23, %bcol, %high; add.u32 %r23, %r23, {2 * n}; xor.b32 %r23, %r23, %r22;",
                "shl.b32 %r23, %r23, 4; add.u32 %r21, %r21, %r23; add.u32 %r21, %r21, %stage0;",
                f"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%b{n}_0, %b{n}_1, %b{n}_2, %b{n}_3}},",
                f"[%r21+{STAGES * _BYTES}];",
            ]
        for m in (0, 1):
            for n in range(4):
                d = ", ".join(f"%c{m}_{n}_{i}" for i in range(4))
                a = ", ".join(f"%a{m}_{i}" for i in range(4))
                b = ", ".join(f"%b{n // 2}_{n % 2 * 2 + i}" for i in (0, 1))
                lines.append(f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};")
    return "\n".join(lines)


def pipelined_matmul(wait: str = "cp.async.wait_group 1;", barrier: str = "bar.sync 0;") -> str:
    """The module, with this wait and this barrier before a stage is read."""
    numbers = [f"%c{m}_{n}_{i}" for m in (0, 1) for n in range(4) for i in range(4)]
    parts = [f"%{x}{i}_{j}" for x in "ab" for i in (0, 1) for j in range(4)]
    copies, zero = _copies(), "".join(f"mov.f32 {name}, 0f00000000; " for name in numbers)
    starts = "\n".join(
        f"""shl.b32 %r10, %thread, 1; add.u32 %r10, %r10, {part};
        shr.u32 %r11, %r10, 2; and.b32 %r12, %r10, 3; shr.u32 %r13, %r11, 1; and.b32 %r13, %r13, 3;
        xor.b32 %r13, %r13, %r12; shl.b32 %r13, %r13, 4; mad.lo.u32 %adst{part}, %r11, 64, %r13;
        add.u32 %r11, %r11, %row0; mad.lo.u32 %r14, %r11, %k, 0; mad.lo.u32 %r14, %r12, 8, %r14;
        mad.wide.u32 %apos{part}, %r14, 2, %pa;
        shr.u32 %r11, %r10, 3; and.b32 %r12, %r10, 7; and.b32 %r13, %r11, 7;
        xor.b32 %r13, %r13, %r12; shl.b32 %r13, %r13, 4; mad.lo.u32 %bdst{part}, %r11, 128, %r13;
        mul.lo.u32 %r14, %r11, %n; add.u32 %r14, %r14, %col0; mad.lo.u32 %r14, %r12, 8, %r14;
        mad.wide.u32 %bpos{part}, %r14, 2, %pb;""" for part in (0, 1)
    )
    results = "\n".join(
        f"""add.u32 %r20, %crow, {16 * m + 8 * half}; mul.lo.u32 %r20, %r20, %n; add.u32 %r20, %r20, %ccol;
        add.u32 %r20, %r20, {8 * n}; mad.wide.u32 %place, %r20, 4, %pc;
        st.global.v2.f32 [%place], {{%c{m}_{n}_{2 * half}, %c{m}_{n}_{2 * half + 1}}};"""
        for m in (0, 1) for n in range(4) for half in (0, 1)
    )
    return f""".version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 tiles[];
.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 pn, .param .u32 pk)
{{
  .reg .b32 %r<40>, %thread, %n, %k, %row0, %col0, %low, %high, %arow, %bcol, %crow, %ccol, %left, %ahead;
  .reg .b32 %stage0, %stage1, %stage2, %adst0, %adst1, %bdst0, %bdst1, {", ".join(parts)};
  .reg .b64 %pa, %pb, %pc, %apos0, %apos1, %bpos0, %bpos1, %bstep, %place;
  .reg .f32 {", ".join(numbers)};
  .reg .pred %p<4>;
  ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c];
  ld.param.u32 %n, [pn]; ld.param.u32 %k, [pk];
  mov.u32 %thread, %tid.x; mov.u32 %r0, %ctaid.y; shl.b32 %row0, %r0, 6; mov.u32 %r0, %ctaid.x; shl.b32 %col0, %r0, 6;
  and.b32 %r1, %thread, 31; and.b32 %low, %r1, 15; shr.u32 %high, %r1, 4;
  shr.u32 %r2, %thread, 5; shr.u32 %r3, %r2, 1; and.b32 %r4, %r2, 1;
  shl.b32 %r3, %r3, 5; add.u32 %arow, %low, %r3; shl.b32 %bcol, %r4, 2;
  shr.u32 %r5, %r1, 2; add.u32 %crow, %row0, %r3; add.u32 %crow, %crow, %r5;
  and.b32 %r5, %r1, 3; shl.b32 %r5, %r5, 1; shl.b32 %r4, %r4, 5; add.u32 %ccol, %col0, %r4; add.u32 %ccol, %ccol, %r5;
  mul.wide.u32 %bstep, %n, 64;
  mov.u32 %stage0, tiles; add.u32 %stage1, %stage0, {_BYTES}; add.u32 %stage2, %stage1, {_BYTES};
  {starts}
  {zero}
  shr.u32 %left, %k, 5; mov.u32 %ahead, %left;
  setp.lt.s32 %p1, %ahead, 1; {copies.format(n=0, s=0)}
  setp.lt.s32 %p1, %ahead, 2; {copies.format(n=1, s=1)}
  sub.u32 %ahead, %ahead, 2;
LOOP:
  {wait}
  {barrier}
  setp.lt.s32 %p1, %ahead, 1; {copies.format(n=2, s=2)}
  sub.u32 %ahead, %ahead, 1;
  {_products()}
  mov.u32 %r30, %stage0; mov.u32 %stage0, %stage1; mov.u32 %stage1, %stage2; mov.u32 %stage2, %r30;
  sub.u32 %left, %left, 1; setp.ne.u32 %p2, %left, 0; @%p2 bra LOOP;
  cp.async.wait_group 0;
  {results}
  ret;
}}
"""
