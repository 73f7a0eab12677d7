"""How addresses pass from operands to results: from which parameter or variable a pointer comes.

The transfer function of two analyses, each with a lattice of its own: a launch wants every parameter that may be
written through, the emulator the one array that an access was meant for.
"""

from __future__ import annotations

from functools import cache

from ..isa import Form

__all__ = ["carriers"]


@cache
def carriers(form: Form) -> tuple[int, ...]:
    """The places of the operands whose addresses the results of a form may be computed from.

    What is read from memory is no address of the same array, but for a parameter's value, whose address stands there.
    What selects only chooses among addresses, and ``mapa`` leads into the memory of another block.
    """
    specs = list(enumerate(form.operands))
    if form.opcode == "mapa" or not any(spec.written for _, spec in specs):
        return ()
    addresses = tuple(n for n, spec in specs if spec.kind == "address")
    if addresses:
        return addresses if form.space == "param" else ()
    sources = tuple(n for n, spec in specs if spec.role != "w")
    return sources[:2] if form.effects.selects else sources
