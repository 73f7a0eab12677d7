"""How a form of the table is called from Python: which of its operands are given and which returned."""

from __future__ import annotations

from ..isa import Form, OperandSpec

__all__ = ["SINK", "inputs", "outputs", "returned", "syntax"]

SINK = "_"
"""What ``out`` is for a result that is not wanted."""


def syntax(form: Form) -> str:
    """A form as it is written: ``shfl.sync.bfly.b32 d, a, b, c, membermask``."""
    text = form.mnemonic
    for i, spec in enumerate(form.operands):
        text += ("|" if spec.joined else " " if i == 0 else ", ") + _notation(spec)
    return text


def _notation(spec: OperandSpec) -> str:
    if spec.kind == "address":
        return f"[{', '.join((spec.name, *map(_notation, spec.parts)))}]"
    if spec.count:
        names = [f"{spec.name}{i}" for i in range(spec.count)]
        return f"{{{', '.join(names if len(names) <= 4 else (names[0], '...', names[-1]))}}}"
    return spec.name


def inputs(form: Form) -> list[OperandSpec]:
    """The operands that the caller gives."""
    return [spec for spec in form.operands if not returned(spec) and spec.name != SINK]


def outputs(form: Form) -> list[OperandSpec]:
    """The operands that are returned."""
    return [spec for spec in form.operands if returned(spec)]


def returned(spec: OperandSpec) -> bool:
    return spec.result and spec.name != SINK
