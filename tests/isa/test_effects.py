"""The effects of every row against what its spelling says in the manual's words, and that nobody else keeps such facts.

The expectations here read the mnemonic as a person would, not the table, so that a wrong line of a row is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from ptxdsl import isa
from ptxdsl.isa.effects import NONE, Effects, Kind
from ptxdsl.isa.forms import Form
from ptxdsl.isa.generate.effects_text import effects_of, spellings

PACKAGE = Path(isa.__file__).parent.parent
FORMS = [form for opcode in isa.opcodes() for row in isa.rows(opcode) for form in spellings(row)]
"""Every value of every slot of every row at least once."""


def having(*tokens: str) -> Iterator[tuple[Form, Effects]]:
    for form in FORMS:
        if all(token in form.tokens for token in tokens):
            yield form, form.effects


def named(*opcodes: str) -> Iterator[tuple[Form, Effects]]:
    for form in FORMS:
        if form.opcode in opcodes:
            yield form, form.effects


def effects(mnemonic: str) -> Effects:
    return isa.lookup(mnemonic)[0].effects


def test_every_row_is_spelled() -> None:
    assert len({form.row for form in FORMS}) == sum(len(isa.rows(opcode)) for opcode in isa.opcodes())


@pytest.mark.parametrize("order", ["acquire", "release", "acq_rel", "sc", "relaxed", "volatile", "weak"])
def test_the_order_that_is_spelled(order: str) -> None:
    found = list(having(order))
    assert found
    for form, made in found:
        assert made.order == order, form
        assert made.acquires == (order in ("acquire", "acq_rel", "sc")), form
        assert made.releases == (order in ("release", "acq_rel", "sc")), form


@pytest.mark.parametrize("scope", ["cta", "cluster", "gpu", "sys"])
def test_the_scope_that_is_spelled(scope: str) -> None:
    for form, made in having(scope):
        if made.order not in ("", "weak"):
            assert made.scope == scope, form


def test_every_ordered_access_has_a_scope() -> None:
    for form in FORMS:
        made = form.effects
        assert bool(made.scope) == (made.order not in ("", "weak")), form
        if any(access.reads or access.writes for access in made.accesses):
            assert made.order, form


@pytest.mark.parametrize(
    ("mnemonic", "order", "scope"),
    [
        ("atom.add.u32", "relaxed", "gpu"), ("red.global.add.f32", "relaxed", "gpu"),
        ("ld.volatile.u32", "volatile", "sys"), ("st.release.cta.u32", "release", "cta"),
        ("fence.gpu", "acq_rel", "gpu"), ("membar.gl", "sc", "gpu"), ("membar.cta", "sc", "cta"),
        ("bar.sync", "acq_rel", "cta"), ("bar.arrive", "release", "cta"), ("bar.warp.sync", "acq_rel", "warp"),
        ("barrier.cluster.arrive", "release", "cluster"), ("barrier.cluster.wait", "acquire", "cluster"),
        ("mbarrier.arrive.shared.b64", "release", "cta"), ("mbarrier.try_wait.parity.shared.b64", "acquire", "cta"),
        ("mbarrier.expect_tx.relaxed.cluster.b64", "relaxed", "cluster"), ("mbarrier.init.shared.b64", "weak", ""),
        ("griddepcontrol.wait", "acquire", "gpu"), ("griddepcontrol.launch_dependents", "", ""),
        ("ld.global.u32", "weak", ""), ("multimem.red.add.u32", "relaxed", "gpu"), ("add.u32", "", ""),
    ],
)
def test_defaults_of_the_manual(mnemonic: str, order: str, scope: str) -> None:
    assert (effects(mnemonic).order, effects(mnemonic).scope) == (order, scope)


def test_what_reads_and_what_writes() -> None:
    for form, made in named("ld", "ldu"):
        assert (made.reads, made.writes) == (True, False), form
    for form, made in named("st"):
        assert made.writes and all(not access.reads or access.kind == "mbarrier" for access in made.accesses), form
    for form, made in named("atom", "red"):
        assert made.access is not None and made.access.reads and made.access.writes, form
        assert made.atomic in form.tokens and (made.strong or "async" in form.tokens), form
    for form, made in named("prefetch", "prefetchu", "createpolicy", "txq", "suq"):
        assert not made.reads and not made.writes, form


def test_bytes_of_an_access() -> None:
    for form, made in named("ld", "st", "atom", "red"):
        if made.access is not None:
            count = next((int(token[1:]) for token in form.tokens if token in ("v2", "v4", "v8")), 1)
            kind = next(token for token in reversed(form.tokens) if token[-1].isdigit() and token[0] in "busf")
            bits = {"f16x2": 32, "bf16x2": 32, "bf16": 16}.get(kind) or int(kind[1:])
            assert made.access.nbytes == bits // 8 * count, form
    assert [access.nbytes for access in effects("cp.async.cg.shared.global").accesses] == [16, 16]
    assert [access.nbytes for access in effects("cp.async.ca.shared.global").accesses] == [0, 0]
    assert effects("discard.global.L2").accesses[0].nbytes == 128


@pytest.mark.parametrize("space", ["global", "local", "const", "param"])
def test_the_space_that_is_spelled(space: str) -> None:
    for form, made in having(space):
        if made.access is not None and not made.completes:
            assert made.access.space == space, form


def test_control() -> None:
    control = {form.opcode: made.control for form, made in ((f, f.effects) for f in FORMS) if made.control}
    assert control == {
        "bra": "branch", "brx": "indexed_branch", "call": "call", "ret": "return", "exit": "exit", "trap": "trap",
    }
    assert {opcode for opcode in control if effects_of_opcode(opcode).ends} == {"ret", "exit", "trap"}
    assert {opcode for opcode in control if effects_of_opcode(opcode).branches} == {"bra", "brx"}


def effects_of_opcode(opcode: str) -> Effects:
    return next(form.effects for form in FORMS if form.opcode == opcode)


def test_who_must_come_together() -> None:
    for form in FORMS:
        made = form.effects
        if "aligned" in form.tokens:
            assert made.converges in ("warp", "warpgroup"), form
        if any(spec.name == "membermask" for spec in form.operands):
            assert made.converges == "mask", form
        if form.opcode in ("bar", "barrier", "shfl", "vote", "match", "redux", "elect", "mma", "wmma", "wgmma"):
            assert made.collective, form
        if form.opcode in ("bar", "barrier"):
            assert made.barrier, form
            assert bool(made.waits) == any(token in form.tokens for token in ("sync", "red", "wait")), form
            assert bool(made.arrives) == ("wait" not in form.tokens), form


def test_what_completes_later() -> None:
    for form in FORMS:
        made, asynchronous = form.effects, "async" in form.tokens or "mma_async" in form.tokens
        moves = any(access.reads or access.writes for access in made.accesses) or "mma_async" in form.tokens
        if asynchronous and moves and form.tokens[-2:-1] != ("noinc",) and "mbarrier" not in form.tokens[1:2]:
            assert made.completes or form.effects.fence, form
        for name in ("commit_group", "commit"):
            assert name not in form.tokens or made.commits, form
        assert not any("wait" in token for token in form.tokens[:2]) or made.waits or made.control == "", form
    groups = {made.completes for form in FORMS if (made := form.effects).completes}
    waited = {made.waits for form in FORMS if (made := form.effects).waits}
    committed = {made.commits for form in FORMS if (made := form.effects).commits}
    assert groups - {"unobserved", "tcgen05_commit"} <= waited
    assert {group for group in groups if group.endswith("_group")} <= committed


def test_the_words_of_the_rows_are_known() -> None:
    """Types say which words there are, so that a type checker finds a question that no form answers."""
    for name, hint in get_type_hints(Effects).items():
        if get_origin(hint) is Literal:
            assert {getattr(form.effects, name) for form in FORMS} <= set(get_args(hint)), name
    assert {each.kind for form in FORMS for each in form.effects.accesses} == set(get_args(Kind))


def test_an_mbarrier_is_no_barrier_that_lanes_come_to_together() -> None:
    assert not effects("mbarrier.try_wait.parity.shared.b64").collective
    assert effects("mbarrier.arrive.shared.b64").barrier == ""


def test_arithmetic_has_no_effects() -> None:
    for form, made in named("add", "sub", "mul", "mad", "fma", "setp", "mov", "cvt", "cvta", "shl", "prmt"):
        assert made == NONE._replace(writes_carry="cc" in form.tokens), form
    for form, made in named("addc", "subc", "madc"):
        assert made == NONE._replace(reads_carry=True, writes_carry="cc" in form.tokens), form
    for form, made in named("selp", "slct"):
        assert made == NONE._replace(selects=True), form


def test_the_pages_say_it() -> None:
    (row,) = {form.row for form in isa.lookup("mbarrier.try_wait.parity.shared.b64")}
    assert effects_of(row) == (
        "updates an mbarrier in shared or generic memory at `a`; acquire or relaxed at cta or cluster; "
        "waits for an mbarrier; polls"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Nobody else keeps such facts

OF_THEIR_OWN = (
    "isa", "semantics", "instructions", "codegen", "kernels", "expansions.py", "loop_bounds.py", "value_operations.py",
    "static_values.py", "thread_numbers.py", "bitwise_offsets.py", "block_numbers.py", "warp_rows.py", "unrolling.py",
    "costs.py",
)
"""What knows instructions by their opcodes: the table, what they compute, what lowers, emits or expands each, and what
follows a number through arithmetic; and what each is taken to cost.
"""


def literal_lists(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The literal lists, sets and dictionaries of two or more opcodes in a module."""
    opcodes = isa.opcodes()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        items: list[ast.expr | None] = []
        if isinstance(node, ast.Dict) and all(isinstance(value, ast.Constant) for value in node.values):
            items = list(node.keys)  # others say what is done with each, as only who does it can
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            items = list(node.elts)
        names = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if len(names) >= 2 and all(name.split(".")[0] in opcodes for name in names):
            yield node.lineno, names


def test_no_lists_of_opcodes() -> None:
    """Ask ``form.effects``; a fact that it does not have belongs into the rows."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {', '.join(names)}"
        for path in sorted(PACKAGE.rglob("*.py")) if not {*path.relative_to(PACKAGE).parts} & {*OF_THEIR_OWN}
        for line, names in literal_lists(path)
    ]
    assert found == []
