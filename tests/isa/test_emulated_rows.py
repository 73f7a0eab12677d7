"""Every row of the table runs on the emulator, but for those of the families named here; so do special registers."""

from __future__ import annotations

import numpy as np
import pytest
from emulated_rows import emitted, refusal, verdicts

from ptxdsl.isa import Row, opcodes, rows, special_registers

OPEN = {
    "Rubin's reports of what a copy moves": lambda row: "{.report}" in row.syntax,
    "the fabric": lambda row: row.opcode == "fabric",
}
"""What the emulator does not run, at least not all of it: docs/emulator.md says so."""


@pytest.mark.parametrize("chapter", sorted({chapter for found in opcodes().values() for chapter in found}))
def test_every_row_runs_or_is_known_not_to(chapter: str) -> None:
    rng = np.random.default_rng(11)
    own = [row for opcode in opcodes() for row in rows(opcode) if row.chapter == chapter]
    missing = [
        f"{verdict.text}  {verdict.why}"
        for row in own for verdict in verdicts(row, rng) if verdict.why is not None and not _open(row)
    ]
    assert not missing, "\n".join(missing)


def _open(row: Row) -> bool:
    return any(belongs(row) for belongs in OPEN.values())


_REPORTS = (
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::validity::per_element::ff "
    "[%rd1], [%rd2], %r1, [%rd3];"
)


@pytest.mark.parametrize("text", [
    "fabric.submit;", _REPORTS,
])
def test_what_does_not_run_says_so(text: str) -> None:
    assert refusal(text) == f"the emulator does not support `{text.split(maxsplit=1)[0].rstrip(';')}`"


def test_every_special_register() -> None:
    for name, special in special_registers().items():
        names = [f"{name}.{component}" for component in special.components] or [name]
        kind = "pred" if str(special.type) == "pred" else str(special.type)
        register = {"pred": "%p1", "u64": "%rd1"}.get(kind, "%r1")
        for each in names:
            assert refusal(f"mov.{kind} {register}, {each};") is None


@pytest.mark.parametrize("chapter", ["async", "matrix", "memory", "move", "multimem", "synchronise", "warp"])
def test_what_is_lowered_has_code(chapter: str) -> None:
    """The handlers of forms that no other test goes through one by one: LLVM takes what is emitted for them."""
    rng = np.random.default_rng(12)
    own = [row for opcode in opcodes() for row in rows(opcode) if row.chapter == chapter]
    texts = [next((v.text for v in verdicts(row, rng) if v.why is None), "") for row in own]
    assert emitted([text for text in texts if text]) > 0
