"""Which instructions give an affine combination of their operands: what offsets between lanes pass through unharmed."""

from __future__ import annotations

from typing import NamedTuple

from ...isa import Form

__all__ = ["Affine", "affine"]


class Affine(NamedTuple):
    """``copy``, ``sum``, ``difference``, ``shift`` (left), ``product`` or ``product_sum`` of the operands, or opposite.

    An ``opposite`` is also ``not``, which is -1 minus its operand.

    ``widens``: the result may be wider than the operands, so that it is the combination only where those do not wrap.
    """

    kind: str
    widens: bool = False


_COMBINATIONS = {
    "neg": "opposite", "not": "opposite", "add": "sum", "sub": "difference", "mul": "product", "mad": "product_sum",
}


def affine(form: Form) -> Affine | None:
    """How the result of a form follows from its operands; None where that is no affine combination of integers.

    >>> from ptxdsl.isa import lookup
    >>> affine(lookup("mad.wide.u32")[0])
    Affine(kind='product_sum', widens=True)
    """
    opcode, tokens, kind = form.opcode, form.tokens, form.type
    if opcode == "shl":
        return Affine("shift")
    if opcode == "cvta":
        return Affine("copy")
    if opcode == "mov":
        whole = kind is not None and kind.kind != "p" and not any(spec.count for spec in form.operands)
        return Affine("copy") if whole else None
    if kind is None or kind.kind not in "usb" or kind.lanes != 1 or "sat" in tokens:
        return None
    if opcode == "cvt":
        whole = len(tokens) == 2 and all(token[0] in "us" and token[1:] in ("32", "64") for token in tokens)
        return Affine("copy", True) if whole else None
    combination = _COMBINATIONS.get(opcode)
    if combination is None or (combination.startswith("product") and not {"lo", "wide"} & {*tokens}):
        return None
    return Affine(combination, "wide" in tokens)
