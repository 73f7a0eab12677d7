"""The engine runs each data instruction as its semantics say: registers, immediates, guards, carries, braces, sinks.

The semantics alone are tested against exact references elsewhere (test_semantics_*); here random forms are spelled as
PTX, run by the emulator as varying, as uniform and as guarded code, and must give what the semantics give alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import launch
from semantics_harness import Case, result_bits, run, spellings_of
from semantics_samples import SEED

from ptxdsl.isa import Form, OperandSpec, opcodes, rows
from ptxdsl.isa.targets import lowest

CHAPTERS = ("integer", "float", "compare", "convert")
THREADS = 64
PER_ROW = 2
"""How many forms of each row are tried, at random."""
POISON = 0xA5A5A5A5A5A5A5A5


def _forms() -> list[Form]:
    rng = np.random.default_rng(SEED)
    found = []
    for row in (row for opcode in opcodes() for row in rows(opcode) if row.chapter in CHAPTERS):
        forms = list(spellings_of(row))
        found += [forms[at] for at in sorted(rng.permutation(len(forms))[:PER_ROW])]
    return found


FORMS = _forms()


class Section:
    """The PTX of one form: loads its sources, runs it, stores its results, all as 64-bit words by thread."""

    def __init__(self, form: Form, number: int, guarded: bool) -> None:
        self.form, self.number, self.guarded = form, number, guarded
        self.lines: list[str] = []
        self.registers: list[str] = []
        self.inputs = self.outputs = 0

    def register(self, kind: Any) -> str:
        name = f"%x{self.number}_{len(self.registers)}"
        self.registers.append(f".reg .{kind.register} {name};")
        return name

    def load(self, kind: Any) -> str:
        """A register with the next input."""
        name, offset = self.register(kind), self.inputs * THREADS * 8
        self.inputs += 1
        if kind.bits == 1:
            self.lines += [f"ld.global.u32 %r9, [%rd1+{offset}];", f"setp.ne.u32 {name}, %r9, 0;"]
        else:
            self.lines.append(f"ld.global.b{kind.bits} {name}, [%rd1+{offset}];")
        return name

    def store(self, name: str, bits: int) -> None:
        offset = self.outputs * THREADS * 8
        self.outputs += 1
        if bits == 1:
            self.lines.append(f"selp.u32 %r9, 1, 0, {name};")
            name, bits = "%r9", 32
        self.lines.append(f"st.global.b{bits} [%rd2+{offset}], {name};")

    def source(self, spec: OperandSpec) -> str:
        if not spec.register:
            return "150"
        if spec.count:
            return "{" + ", ".join(self.load(spec.type) for _ in range(spec.count)) + "}"
        return self.load(spec.type)

    def destination(self, spec: OperandSpec) -> str:
        """A result register, poisoned where the guard may leave it."""
        assert spec.type is not None
        name = self.register(spec.type)
        if spec.type.bits == 1:
            self.lines.append(f"setp.ne.u32 {name}, 0, 0;")
        elif spec.type.bits == 8:
            self.lines.append(f"cvt.u8.u32 {name}, 0xA5;")
        else:
            bits = spec.type.bits
            self.lines.append(f"mov.b{bits} {name}, {POISON & ((1 << bits) - 1):#x};")
        return name

    def text(self) -> str:
        form = self.form
        results = [(self.destination(spec), spec) for spec in form.operands if spec.written]
        sources = [self.source(spec) for spec in form.operands if not spec.written]
        if form.effects.reads_carry:
            flag = self.load(rows("popc")[0].forms(("b32",))[0].operands[0].type)
            self.lines.append(f"add.cc.u32 %r8, {flag}, -1;")
        guard = f"@%q{self.number} " if self.guarded else ""
        names = [name for name, _ in results]
        first = "|".join(names) if len(results) == 2 else names[0]
        self.lines.append(f"{guard}{form.mnemonic} {', '.join([first, *sources])};")
        if form.effects.writes_carry:
            self.lines.append("addc.u32 %r9, 0, 0;")
            self.store("%r9", 32)
        for name, spec in results:
            self.store(name, spec.type.bits)
        return "\n".join(self.lines)


def _kernel(sections: list[Section], target: str, uniform: bool) -> str:
    """The sections as one kernel; inputs of thread 0 for all threads where uniform."""
    body, declared = [], []
    for section in sections:
        moved = section.text()
        body.append(f"// {section.form.mnemonic}\n{moved}")
        body.append(f"add.u64 %rd1, %rd1, {section.inputs * THREADS * 8};")
        body.append(f"add.u64 %rd2, %rd2, {section.outputs * THREADS * 8};")
        declared += section.registers
    guards = [f".reg .pred %q{s.number};" for s in sections if s.guarded]
    odd = ["and.b32 %r7, %r0, 1;", *(f"setp.eq.u32 %q{s.number}, %r7, 1;" for s in sections if s.guarded)]
    lines = [
        ".version 9.4", f".target {target}", ".address_size 64", ".visible .entry k(.param .u64 x, .param .u64 y)", "{",
        ".reg .b32 %r<10>;", ".reg .b64 %rd<10>;", *declared, *guards,
        "ld.param.u64 %rd1, [x];", "ld.param.u64 %rd2, [y];", "mov.u32 %r0, %tid.x;", "mul.wide.u32 %rd3, %r0, 8;",
        "" if uniform else "add.u64 %rd1, %rd1, %rd3;", "add.u64 %rd2, %rd2, %rd3;", *odd, *body, "ret;", "}",
    ]
    return "\n".join(lines)


def _inputs(section: Section) -> np.ndarray:
    rng = np.random.default_rng([SEED, section.number])
    words = rng.integers(0, 1 << 63, (section.inputs, THREADS), dtype=np.uint64) * np.uint64(2)
    words ^= rng.integers(0, 1 << 32, words.shape, dtype=np.uint64)
    bits = _widths(section.form)
    for at, width in enumerate(bits):
        words[at] &= np.uint64((1 << width) - 1)
        if width <= 64 and at % 2 == 0:
            words[at, ::3] &= np.uint64(63)
    return words


def _widths(form: Form) -> list[int]:
    read = [spec for spec in form.operands if not spec.written and spec.register]
    bits = [spec.type.bits for spec in read for _ in range(spec.count or 1)]
    return bits + [1] * form.effects.reads_carry


def _case(section: Section, words: np.ndarray) -> Case:
    at, sources = 0, []
    for spec in section.form.operands:
        if spec.written:
            continue
        if not spec.register:
            sources.append(150)
        elif spec.count:
            sources.append(tuple(words[at : at + spec.count]))
            at += spec.count
        else:
            sources.append(words[at])
            at += 1
    if section.form.effects.reads_carry:
        sources.append(words[at])
    written = sum(spec.written for spec in section.form.operands) + section.form.effects.writes_carry
    return Case(section.form.mnemonic, tuple(sources), results=written)


def _by_target() -> dict[str, list[Form]]:
    """The forms by the lowest target that has them."""
    found: dict[str, list[Form]] = {}
    for form in FORMS:
        found.setdefault(lowest(form.needs)[1], []).append(form)
    return found


GROUPS = _by_target()


@pytest.mark.parametrize("target", GROUPS)
@pytest.mark.parametrize("mode", ["varying", "uniform", "guarded"])
def test_every_data_instruction(mode: str, target: str) -> None:
    sections = [Section(form, number, mode == "guarded") for number, form in enumerate(GROUPS[target])]
    text = _kernel(sections, target, mode == "uniform")
    inputs = [_inputs(section) for section in sections]
    alone = [np.repeat(words[:, :1], THREADS, 1) if mode == "uniform" else words for words in inputs]
    wanted = run([_case(section, words) for section, words in zip(sections, alone)])
    outputs = np.full((sum(section.outputs for section in sections), THREADS), POISON, np.uint64)
    launch(text, 1, THREADS, x=np.concatenate(inputs).copy(), y=outputs)
    wrong, row = [], 0
    for section, results in zip(sections, wanted):
        kinds = result_bits(section.form)
        if section.form.effects.writes_carry:
            results, kinds = results[-1:] + results[:-1], ["carry", *kinds[:-1]]
        for kind, result in zip(kinds, results):
            got, expected = outputs[row] & np.uint64(np.iinfo(result.dtype).max), result.astype(np.uint64)
            row += 1
            if mode == "guarded":
                expected = _left_alone(kind, expected, got)
            if not np.array_equal(got, expected):
                at = int(np.argmax(got != expected))
                wrong.append(f"{section.form.mnemonic} thread {at}: {got[at]:#x}, not {expected[at]:#x}")
    assert not wrong, f"{len(wrong)} of {len(sections)}: {wrong[:5]}"


def _left_alone(kind: int | str, expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Where the guard is off a result keeps what was in its register, the poison or false; the flag stays too."""
    kept = got if kind == "carry" else 0 if kind == 1 else POISON & ((1 << int(kind)) - 1)
    return np.where(np.arange(THREADS) % 2 == 0, np.asarray(kept, np.uint64), expected)


def test_mov_of_a_constant_predicate() -> None:
    out = np.full(THREADS, POISON, np.uint64)
    launch("""
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry k(.param .u64 y)
        {
        .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [y];
        mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 8; add.u64 %rd1, %rd1, %rd2;
        mov.pred %p0, 1; mov.pred %p1, 0; mov.pred %p2, -1;
        selp.u32 %r1, 1, 0, %p0; selp.u32 %r2, 2, 0, %p1; selp.u32 %r3, 4, 0, %p2;
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
        st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], 0;
        ret;
        }
    """, 1, THREADS, y=out)
    assert (out == 5).all()


@pytest.mark.parametrize("uniform", [False, True], ids=["varying", "uniform"])
def test_video_instructions_take_parts_of_registers(uniform: bool) -> None:
    """The semantics are tested elsewhere; here that the engine hands them the parts, the signs and c."""
    rng = np.random.default_rng([SEED, 31])
    x = rng.integers(0, 1 << 32, (3, THREADS), dtype=np.uint32)
    x = np.repeat(x[:, :1], THREADS, 1) if uniform else x
    spelled = [
        ("vadd.s32.u32.s32", "{d}.b1, {a}.h1, {b}.b3, {c}", ("b1", "h1", "b3", "")),
        ("vabsdiff.u32.s32.s32.sat", "{d}, {a}.b2, {b}", ("", "b2", "")),
        ("vmad.s32.s32.s32", "{d}, -{a}.h0, {b}.h1, {c}", ("", "-h0", "h1", "")),
        ("vmad.u32.u32.u32.shr7", "{d}, {a}, {b}, -{c}", ("", "", "", "-")),
        ("vadd4.u32.u32.s32.sat", "{d}.b31, {a}.b0527, {b}.b7654, {c}", ("b31", "b0527", "b7654", "")),
        ("vset2.s32.s32.lt", "{d}, {a}, {b}, {c}", ("", "", "", "")),
    ]
    body = [
        f"{mnemonic} {text.format(d=f'%r{at + 10}', a='%r1', b='%r2', c='%r3')};"
        f"st.global.u32 [%rd2+{256 * at}], %r{at + 10};"
        for at, (mnemonic, text, _) in enumerate(spelled)
    ]
    lines = [
        ".version 8.0", ".target sm_75", ".address_size 64", ".visible .entry k(.param .u64 x, .param .u64 y)", "{",
        ".reg .b32 %r<20>;", ".reg .b64 %rd<4>;", "ld.param.u64 %rd1, [x];", "ld.param.u64 %rd2, [y];",
        "mov.u32 %r0, %tid.x;", "mul.wide.u32 %rd3, %r0, 4;", "" if uniform else "add.u64 %rd1, %rd1, %rd3;",
        "add.u64 %rd2, %rd2, %rd3;", *(f"ld.global.u32 %r{at + 1}, [%rd1+{256 * at}];" for at in range(3)), *body,
        "ret;", "}",
    ]
    out = np.full((len(spelled), THREADS), 0xDEADBEEF, np.uint32)
    launch("\n".join(lines), 1, THREADS, x=x.copy(), y=out)
    cases = [Case(mnemonic, tuple(x[: len(parts) - 1]), selectors=parts) for mnemonic, _, parts in spelled]
    for (mnemonic, _, _), got, (wanted,) in zip(spelled, out, run(cases)):
        np.testing.assert_array_equal(got, wanted, mnemonic)
