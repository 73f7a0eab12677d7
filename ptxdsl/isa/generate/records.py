"""The table as data, for programs that look an instruction up: ``python -m ptxdsl isa --json``."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ..effects import Effects
from ..forms import Form, Row
from ..specs import OperandSpec, Special
from ..table import completions, lookup, opcodes, rows, special_registers
from ..targets import lowest, version_text
from .effects_text import effects_of
from .pages import lowest_of, matching, operands_of

__all__ = ["as_json", "records"]

_PLAIN = OperandSpec("")


def as_json(pattern: str | None = None) -> str:
    """The :func:`records` of a pattern."""
    return json.dumps(records(pattern), indent=2)


def records(pattern: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """The forms of a complete mnemonic; else the rows and special registers of a pattern, or all there are.

    Of operands and effects what is not the default is there. Raises UnknownInstruction where there is nothing.

    >>> form, = records("fma.rn.f32")["forms"]
    >>> form["mnemonic"], form["ptx"], form["target"], form["operands"][0]
    ('fma.rn.f32', '6.3', 'sm_75', {'name': 'd', 'role': 'w', 'kind': 'value', 'type': 'f32', 'immediate': False})
    >>> [row["syntax"] for row in records("sin")["rows"]]
    ['sin.approx{.ftz}.f32']
    """
    if pattern and "*" not in pattern and "" in completions(pattern):
        return {"forms": [_form(form) for form in lookup(pattern)]}
    if pattern:
        found = matching(pattern)
    else:
        found = [*(row for opcode in opcodes() for row in rows(opcode)), *special_registers().values()]
    return {
        "rows": [_row(one) for one in found if isinstance(one, Row)],
        "special_registers": [_special(one) for one in found if isinstance(one, Special)],
    }


def _form(form: Form) -> dict[str, Any]:
    version, target = lowest(form.needs)
    return {
        "mnemonic": form.mnemonic, "opcode": form.opcode, "ptx": version_text(version), "target": target,
        "operands": [_operand(spec) for spec in form.operands], "effects": _effects(form.effects), "doc": form.row.doc,
    }


def _operand(spec: OperandSpec) -> dict[str, Any]:
    """The name, role and kind, and of the rest what an operand has besides a plain one."""
    record: dict[str, Any] = {"name": spec.name, "role": spec.role, "kind": spec.kind}
    for each in fields(OperandSpec):
        value = getattr(spec, each.name)
        if each.name not in record and value != getattr(_PLAIN, each.name):
            record[each.name] = _plain(value)
    return record


def _effects(effects: Effects) -> dict[str, Any]:
    return {name: _plain(value) for name, value in effects._asdict().items() if value != Effects._field_defaults[name]}


def _plain(value: Any) -> Any:
    """A value as what JSON has."""
    if isinstance(value, OperandSpec):
        return _operand(value)
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _row(row: Row) -> dict[str, Any]:
    _, version, target = lowest_of(row).split()
    return {
        "syntax": row.syntax, "opcode": row.opcode, "operands": operands_of(row), "chapter": row.chapter,
        "ptx": version, "target": target, "effects": effects_of(row), "doc": row.doc,
        "modifiers": {slot.name: list(slot.values) for slot in row.slots if slot.name},
    }


def _special(special: Special) -> dict[str, Any]:
    version, target = lowest(special.needs)
    return {
        "name": special.name, "type": str(special.type), "components": list(special.components),
        "ptx": version_text(version), "target": target, "doc": special.doc,
    }
