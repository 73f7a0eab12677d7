"""The table's notation, its look-ups and what is derived from it; the facts themselves are ptxas's business.

The rows here are of an instruction set that does not exist, so that they test what the notation means.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from isa_modules import sample
from mypy import api

import ptxdsl
from ptxdsl import f32, pred, s32, u16, u32, u64
from ptxdsl import isa
from ptxdsl.__main__ import main
from ptxdsl.errors import TargetError, UnknownInstruction
from ptxdsl.isa import Need
from ptxdsl.isa import targets
from ptxdsl.isa.generate import pages, stubs
from ptxdsl.isa.__main__ import derived
from ptxdsl.isa.forms import Form, Row
from ptxdsl.isa.notation import Chapter, parse_specials
from ptxdsl.isa.specs import OperandSpec
from ptxdsl.isa.targets import LATEST, TARGETS, introduced, limits, lowest, satisfies, served

ROOT = Path(__file__).parent.parent.parent


def row(text: str) -> Row:
    """The one row of a chapter."""
    chapter = Chapter("test", text)
    (found,) = (block.row for opcode in chapter.opcodes for block in chapter.blocks(opcode))
    return found


def forms(text: str, modifiers: str = "") -> tuple[Form, ...]:
    return row(text).forms(tuple(modifiers.split(".")) if modifiers else ())


def operand(text: str, modifiers: str = "u32", lines: str = "    .type = u16 u32 f32 f16 pred\n") -> OperandSpec:
    """The one operand of a row ``op.type``."""
    (form,) = forms(f"op.type {text}\n{lines}", modifiers)
    (spec,) = form.operands
    return spec


# ---------------------------------------------------------------------------------------------------------------------
# Modifiers


CHAPTER = """\
= A heading

let rnd = rn rz
let types = u32 f32[7.1 sm_80]

op{.rnd}{.sat}.kind.type d, a
    .kind = k1 k2.x
    .type = $types
    where not (sat and kind == "k1")
    ptx 7.0
    ptx 8.0 sm_90 if rnd == "rz"
    "What it does."
"""


@pytest.mark.parametrize(
    ("modifiers", "chosen"),
    [
        ("k1.u32", {"rnd": None, "sat": None, "kind": "k1", "type": "u32"}),
        ("rn.k2.x.f32", {"rnd": "rn", "sat": None, "kind": "k2.x", "type": "f32"}),
        ("rz.sat.k2.x.u32", {"rnd": "rz", "sat": "sat", "kind": "k2.x", "type": "u32"}),
    ],
)
def test_modifiers_choose_the_slots(modifiers: str, chosen: dict[str, str | None]) -> None:
    (form,) = forms(CHAPTER, modifiers)
    assert form.modifiers == chosen
    assert form.mnemonic == f"op.{modifiers}"
    assert form.tokens == tuple(modifiers.split("."))


@pytest.mark.parametrize("modifiers", ["", "k1", "u32.k1", "sat.rn.k2.x.u32", "k2.u32", "sat.k1.u32", "k1.u32.u32"])
def test_other_modifiers_spell_nothing(modifiers: str) -> None:
    assert forms(CHAPTER, modifiers) == ()


def test_needs_of_the_row_of_a_value_and_of_a_combination() -> None:
    assert forms(CHAPTER, "k1.u32")[0].needs == (Need((7, 0), ()),)
    assert set(forms(CHAPTER, "rz.k1.f32")[0].needs) == {
        Need((7, 0), ()), Need((7, 1), ("sm_80",)), Need((8, 0), ("sm_90",)),
    }


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        ((), {"rn", "rz", "sat", "k1", "k2"}), (("rn",), {"sat", "k1", "k2"}), (("k2",), {"x"}),
        (("k2", "x"), {"u32", "f32"}), (("k1", "u32"), {""}), (("f32",), set()),
    ],
)
def test_completions(begun: tuple[str, ...], words: set[str]) -> None:
    assert row(CHAPTER).completions(begun) == words


def test_a_range_of_values() -> None:
    assert list(row("op.shape d\n    .shape = m64n{8..32/8}k4 m1\n").slots[0].values) == [
        "m64n8k4", "m64n16k4", "m64n24k4", "m64n32k4", "m1",
    ]


def test_a_let_holds_from_where_it_stands_on() -> None:
    chapter = Chapter("test", "let type = u32\nop.type d\nlet type = f32\nup.type d\n")
    found = [next(chapter.blocks(name)).row for name in ("op", "up")]
    assert [list(row.slots[0].values) for row in found] == [["u32"], ["f32"]]


@pytest.mark.parametrize(
    ("modifiers", "left"),
    [
        ("k.f32", "slot let"), ("k.sem.s64", "slot own"), ("k.x.y", "slot let"), ("k.n16", "slot range"),
        ("k.sem.z", "slot literal"), ("k.a", "slot"), ("j.f32", ""),
    ],
)
def test_rows_are_passed_over_by_how_they_begin_and_end(modifiers: str, left: str) -> None:
    rows = {
        "slot": "op.k{.sem}{.type} d:u32\n    .type = f32 s64 x.y n16 z\n", "let": "op.k.kinds d:u32\n",
        "own": "op.k{.sem}.kinds d:u32\n    .kinds = s64\n", "range": "op.k.more d:u32\n",
        "literal": "op.k{.sem}.z d:u32\n",
    }
    text = "let kinds = f32 x.y\nlet more = n{8..16/8}\n" + "".join(rows.values())
    tokens = tuple(modifiers.split("."))
    blocks = dict(zip(rows, Chapter("test", text).blocks("op")))
    kept = {name for name, block in blocks.items() if block.may_begin(tokens) and block.may_spell(tokens)}
    assert kept - {"range"} == set(left.split()) - {"range"}  # whose values are not known before they are read
    assert {name for name, block in blocks.items() if block.row.forms(tokens)} <= kept


def test_the_facts_of_a_row() -> None:
    found = row('op.u32 d\n    "Doc."\n    does something\n    until 6.4\n    relaxed\n')
    assert (found.doc, found.semantics, found.until, found.relaxed) == ("Doc.", "something", (6, 4), True)
    assert row("op.u32 d\n").semantics == "op"


# ---------------------------------------------------------------------------------------------------------------------
# Operands


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("d", {"role": "w", "immediate": False, "register": True, "sink": False}),
        ("a", {"role": "r", "immediate": True, "register": True}),
        ("a!", {"immediate": False, "register": True}),
        ("#n", {"immediate": True, "register": False}),
        ("+d", {"role": "rw", "immediate": False}),
        ("=a", {"role": "w"}),
        ("~d", {"role": "w", "sink": True}),
        ("_", {"role": "w", "sink": True, "register": False}),
        ("&a", {"variable": True, "special": False}),
        ("$a", {"variable": True, "special": True}),
        ("a:f32", {"type": f32}),
        ("a", {"type": u32}),
        ("{!}a:pred", {"type": pred, "negatable": True, "immediate": False}),
        ("{-}a.part", {"negatable": True, "selector": "b[0-3]|h[01]", "selected": False}),
        ("d.part+", {"selected": True}),
        ("a*4", {"count": 4}),
        ("~d*2", {"count": 2, "sink": True}),
        ("~d:type*number(None)", {"count": 0, "sink": False}),
        ("x:twice(type)", {"type": u64}),
        ("t:label", {"kind": "label", "type": None}),
        ("f:symbol", {"kind": "symbol", "type": None}),
        ("[a]", {"kind": "address", "role": "r", "space": None}),
        ("[=a:shared]", {"kind": "address", "role": "w", "space": "shared"}),
        ("[+a]", {"role": "rw"}),
    ],
)
def test_operands(text: str, facts: dict[str, object]) -> None:
    spec = operand(text)
    assert {name: getattr(spec, name) for name in facts} == facts


def test_numbers_stand_only_for_types_that_have_them() -> None:
    assert operand("a", "f32").immediate
    assert not operand("a", "f16").immediate
    assert not operand("a", "pred").immediate


@pytest.mark.parametrize(
    ("text", "legal", "illegal"),
    [
        ("#n(0..31)", (0, 31), (-1, 32)), ("#n(24..256 by 8)", (24, 256), (16, 25, 264)),
        ("#n(4|8|16)", (4, 16), (0, 5, 32)), ("#n(-1|1)", (-1, 1), (0,)), ("a:f32(1e-45..1)", (0.5, 1), (0.0, 1.5)),
        ("a", (-(10**9), 0.25), ()),
    ],
)
def test_numbers_within_bounds(text: str, legal: tuple[float, ...], illegal: tuple[float, ...]) -> None:
    spec = operand(text)
    assert all(spec.admits(number) for number in legal)
    assert not any(spec.admits(number) for number in illegal)


def arities(text: str, modifiers: str) -> list[int]:
    return [len(form.operands) for form in forms(text, modifiers)]


def test_operands_that_may_be_absent() -> None:
    assert arities("op.u32 d{|p:pred}, a{, b}, c\n", "u32") == [3, 4, 4, 5]
    names = [[spec.name for spec in form.operands] for form in forms("op.u32 d{|p:pred}, a{, b}\n", "u32")]
    assert names == [["d", "a"], ["d", "a", "b"], ["d", "p", "a"], ["d", "p", "a", "b"]]
    assert forms("op.u32 d|p:pred\n", "u32")[0].operands[1].joined


def test_operands_that_modifiers_bring() -> None:
    text = "op{.hint}.type d{, policy:u64 if hint}{, offset when type == u32}\n    .type = u32 f32\n"
    assert arities(text, "f32") == [1]
    assert arities(text, "hint.f32") == [2]
    assert arities(text, "u32") == [1, 2]
    assert arities(text, "hint.u32") == [2, 3]


def test_operands_of_two_kinds() -> None:
    kinds = [form.operands[0].kind for form in forms("op.u32 a!:u64 or [a:tmem], b\n", "u32")]
    assert kinds == ["value", "address"]


def test_types_of_elements_that_differ() -> None:
    (form,) = forms("op.u32 c:kinds\n    kinds = (u32, f32, f32)\n", "u32")
    assert (form.operands[0].count, form.operands[0].types) == (3, (u32, f32, f32))


def test_addresses_with_parts() -> None:
    text = "op{.far}.dim [map{, at:u64 if far}, c:s32*number(dim)]\n    .dim = 1d 2d\n"
    (near,), (far,) = forms(text, "2d"), forms(text, "far.1d")
    assert [(part.type, part.count) for part in near.operands[0].parts] == [(s32, 2)]
    assert [(part.type, part.count) for part in far.operands[0].parts] == [(u64, 0), (s32, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op.u32 d\n    nonsense\n", "chapter test: 'op.u32 d': a line that means nothing: 'nonsense'"),
        ("op.{u32} d\n", "chapter test: 'op.{u32} d': modifiers not understood at '.{u32}'"),
    ],
)
def test_a_row_that_is_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        row(text)


def test_special_registers_of_a_chapter() -> None:
    text = '= Title\n\n%one.xy u32\n    ptx 7.8 sm_90\n    "One."\n%two0..2 u64\n    "Two."\n'
    first, *others = parse_specials(text)
    assert first == ("%one", u32, ("x", "y"), (Need((7, 8), ("sm_90",)),), "One.", False)
    assert [special.name for special in others] == ["%two0", "%two1", "%two2"]
    assert {special.type for special in others} == {u64}


# ---------------------------------------------------------------------------------------------------------------------
# The table


def test_every_row_can_be_read_has_a_meaning_and_a_target() -> None:
    for opcode in isa.opcodes():
        for own in isa.rows(opcode):
            assert own.doc.endswith("."), own.syntax
            assert own.operands is not None
            assert re.match(r"PTX \d\.\d sm_\d+", pages.lowest_of(own)), own.syntax


def test_each_form_stands_once(rng: np.random.Generator) -> None:
    spelled = {form.mnemonic for op in isa.opcodes() for own in isa.rows(op) for form in sample(own, rng, 1)}
    for mnemonic in spelled:
        found = [form.operands for form in isa.lookup(mnemonic)]
        assert len(set(found)) == len(found), mnemonic


def test_every_value_of_every_slot_is_legal_somewhere(rng: np.random.Generator) -> None:
    for opcode in isa.opcodes():
        for own in isa.rows(opcode):
            chosen = [form.modifiers for form in sample(own, rng, 0)]
            for slot in own.slots:
                values = {modifiers[slot.name or next(iter(slot.values))] for modifiers in chosen}
                assert set(slot.values) <= values, (own.syntax, slot.name, set(slot.values) - values)


def test_forms_are_interned_and_survive_pickling() -> None:
    form = isa.lookup("setp.lt.and.u32")[1]
    assert isa.lookup("setp.lt.and.u32")[1] is form
    assert pickle.loads(pickle.dumps(form)) is form


@pytest.mark.parametrize(
    ("mnemonic", "message", "hint"),
    [
        ("fam.rn.f32", "PTX has no instruction `fam`", "did you mean fma?"),
        ("fma.rn.f33", "`fma.rn` has no modifier `.f33`", "did you mean `fma.rn.f32`?"),
        (
            "fma.f32", "`fma` takes `.f32` only behind another modifier",
            "did you mean `fma.rn.f32`, `fma.rz.f32`, `fma.rm.f32` or `fma.rp.f32`?",
        ),
        ("mul24.up.u32", "`mul24` has no modifier `.up`", "after `mul24` may stand .hi or .lo"),
        ("ex2.approx.f64", "`ex2.approx` has no modifier `.f64`", "`ex2.approx` takes f32, f16, f16x2, bf16, bf16x2"),
        ("add.rn.f32x4", "`add.rn` has no modifier `.f32x4`", "did you mean `add.rn.f32x2`, `add.rn.f32` or"),
        ("red.global.max.f32", "`red.global.max` has no modifier `.f32`",
         "`red.global.max` takes u32, s32, u64, s64, f16, bf16, f16x2, bf16x2; docs/howto/atomics.md makes that"),
        ("atom.shared.min.f64", "`atom.shared.min` has no modifier `.f64`",
         "`atom.shared.min` takes u32, s32, u64, s64; docs/howto/atomics.md makes that of f64 of the integer ones"),
        ("exit.now", "`exit` has no modifier `.now`", "`exit` takes no further modifier"),
        ("szext", "`szext` is not complete", "it goes on with .clamp or .wrap"),
    ],
)
def test_what_is_not_there(mnemonic: str, message: str, hint: str) -> None:
    with pytest.raises(UnknownInstruction) as caught:
        isa.lookup(mnemonic)
    assert caught.value.message == message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(hint.rstrip("?"))


def test_special_registers() -> None:
    assert isa.special("%tid.x") is isa.special_registers()["%tid"]
    assert isa.special("%clock64").type is u64
    with pytest.raises(UnknownInstruction) as caught:
        isa.special("%tid.q")
    assert caught.value.message == "PTX has no special register `%tid.q`"
    assert caught.value.hint == "did you mean %tid.z, %tid.y or %tid.x?"


def test_the_table_is_read_only_where_it_is_needed() -> None:
    code = (
        "from ptxdsl import isa; isa.opcodes(); isa.lookup('tcgen05.mma.cta_group::1.kind::f16')\n"
        "from ptxdsl.isa.table import _blocks, opcodes\n"
        "blocks = [block for opcode in opcodes() for block in _blocks(opcode)]\n"
        "print(sum('row' in vars(block) for block in blocks), len(blocks))"
    )
    read, there = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert 0 < int(read) < 20 < 200 < int(there)


# ---------------------------------------------------------------------------------------------------------------------
# Targets


def runs(target: str, version: tuple[int, int], device: str | None = None) -> bool:
    """Whether ptxas takes a kernel that does nothing for this target, in this version."""
    path = ptxdsl.gpu.tools.find_assembler(LATEST, "sm_75").path
    text = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}\n"
    command = [path, f"-arch={device or target}", "/dev/stdin", "-o", "/dev/null"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode == 0


@pytest.mark.ptxas
@pytest.mark.parametrize("target", list(TARGETS))
def test_the_version_that_introduced_a_target(target: str) -> None:
    from isa_modules import VERSIONS

    first = introduced(target)
    assert runs(target, first)
    if first > VERSIONS[0]:
        assert not runs(target, VERSIONS[VERSIONS.index(first) - 1])


@pytest.mark.ptxas
def test_these_are_all_targets_that_ptxas_has() -> None:
    path = ptxdsl.gpu.tools.find_assembler(LATEST, "sm_75").path
    said = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"'(sm_\w+)'", said)) == set(TARGETS)


@pytest.mark.ptxas
@pytest.mark.parametrize("wanted", [name for name, target in TARGETS.items() if target.suffix])
def test_families_run_where_the_table_says(wanted: str) -> None:
    """PTX for sm_100f runs on the GPUs of the family, each of which has an ``a`` target."""
    for device in (name for name, target in TARGETS.items() if target.suffix == "a"):
        assert runs(wanted, LATEST, device) == targets.serves(device, wanted), device


def test_needs_that_no_target_meets() -> None:
    needs = (Need((8, 0), ("sm_90a",)), Need((8, 6), ("sm_100f", "sm_110f")))
    assert served(needs) == ()
    with pytest.raises(TargetError) as caught:
        lowest(needs)
    assert caught.value.message == (
        "no target has all of it: one part needs sm_90a, another sm_100f or sm_110f"
    )


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ((), ((6, 3), "sm_75")),
        ((Need((7, 0), ("sm_80",)),), ((7, 0), "sm_80")),
        ((Need((7, 0), ("sm_80",)), Need((7, 8), ())), ((7, 8), "sm_80")),
        ((Need((8, 6), ("sm_100f", "sm_120f")), Need((7, 0), ("sm_120",))), ((8, 8), "sm_120f")),
    ],
)
def test_the_lowest_version_and_target(needs: tuple[Need, ...], expected: tuple[tuple[int, int], str]) -> None:
    assert lowest(needs) == expected
    assert satisfies(needs, *expected)
    assert not satisfies([Need((99, 0), ())], *expected)


def test_limits() -> None:
    assert limits("sm_90").shared == 227 << 10
    assert limits("sm_75").cluster == 1 < limits("sm_90a").cluster


# ---------------------------------------------------------------------------------------------------------------------
# What is derived


def test_the_derived_files_are_up_to_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in derived(ROOT).items() if path.read_text("utf-8") != text]
    assert not stale, f"run `python -m ptxdsl.isa`: it writes {', '.join(stale)} again"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("ptx.ld.gloabl.f32(x)", '"_ld" has no attribute "gloabl"'),
        ("ptx.fma.f32.rn(x, x, x)", '"_fma" has no attribute "f32"'),
        ("ptx.fma.rn.f32(x, x)", "Too few arguments"),
        ("ptx.lod.f32(x)", '"Namespace" has no attribute "lod"'),
        ("ptx.tid.q", '"_xyz" has no attribute "q"'),
        ("y = ptx.st.global_.f32(x, x) + 1", "does not return a value"),
        ("ptx.ld.global_.f32(x); ptx.tid.x + 1; ptx['mma.sync'](x)", ""),
    ],
)
def test_a_type_checker_knows_the_instructions(line: str, error: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"from typing import Any\nfrom ptxdsl import ptx\n\ndef kernel(x: Any) -> None:\n    {line}\n")
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    said, _, _ = api.run(["--config-file=", cache, "--follow-imports=silent", str(program)])
    # The cache may repeat what it said of the same text in another run's folder.
    own = [text for text in said.splitlines() if "program.py:" in text and ": error:" in text]
    assert bool(own) == bool(error), said
    assert error in said


def test_the_stub_speaks_python() -> None:
    compile(stubs.stub(), "namespace.pyi", "exec")
    assert stubs.attribute("and") == "and_"


def test_pages_have_every_opcode() -> None:
    text = "".join(pages.pages().values())
    for opcode in isa.opcodes():
        assert re.search(rf"^## `{opcode}\b", text, re.MULTILINE), opcode


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("fma.rn.f32", ["fma.rn.f32 d:f32, a:f32, b:f32, c:f32    PTX 6.3 sm_75"]),
        ("elect", ["elect.sync d|p, membermask    PTX 8.0 sm_90"]),
        ("cp.async.ca", ["cp.async.ca.smem.global{.hint}{.ahead} [d], [a], size{, used}{, policy}    PTX 7.0 sm_80"]),
        ("%cluster_cta*", ["%cluster_ctarank u32    PTX 7.8 sm_90", "%cluster_ctaid.x.y.z u32"]),
    ],
)
def test_the_command(pattern: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["isa", pattern]) == 0
    said = capsys.readouterr().out
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("elekt", "PTX has no instruction `elekt`\n  hint: did you mean elect, "),
        ("ld.globl", "`ld` has no modifier `.globl`\n  hint: did you mean `ld.global`"),
        ("*.e9m9*", "PTX has no instruction like `*.e9m9*`\n  hint: `*` stands for any text"),
        ("%tdi", "PTX has no special register `%tdi`\n  hint: did you mean %tid"),
    ],
)
def test_the_command_of_what_is_not_there(pattern: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["isa", pattern]) == 1
    assert capsys.readouterr().err.startswith(f"UnknownInstruction: {said}")


def test_supports() -> None:
    assert ptxdsl.supports("fma.rn.f32") == (True, "", (6, 3), "sm_75")
    assert ptxdsl.supports("redux.sync.max.f32;", arch="sm_100a") == (True, "", (8, 6), "sm_100f")
    assert ptxdsl.supports("redux.sync.max.f32", arch="sm_120a") == (
        False, "needs sm_100f or later of its family", None, "sm_100f",
    )
    assert ptxdsl.supports("wgmma.fence.sync.aligned", arch="sm_100a").reason == "needs sm_90a"
    assert not ptxdsl.supports("fma.rn.f33")
    assert ptxdsl.supports("fma.rn.f33").reason.startswith("`fma.rn` has no modifier `.f33`; did you mean")
    with pytest.raises(TargetError, match=r"^there is no target `sm_91`"):
        ptxdsl.supports("fma.rn.f32", arch="sm_91")


def test_a_form_is_made_once() -> None:
    first, second = isa.lookup("fma.rn.f32"), isa.lookup("fma.rn.f32")
    assert first is second


def test_types_of_twice_the_size() -> None:
    assert isa.lookup("mul.wide.u16")[0].operands[0].type is u32
    assert isa.lookup("mul.wide.u16")[0].operands[1].type is u16
