"""How many references to a `Reg` an in-place change of it has by itself, so that rule R3 can count the others.

Each place that holds a register has a reference to it. A register with no more than the change itself and one other is
held at one place only, and need not be searched for. How many the change has depends on Python and on the way through
ptxdsl; so a few changes of registers that one place holds are traced once in a process, and counted. Before that, and
for the other ways, the search decides.
"""

from __future__ import annotations

import sys
from typing import Any

from ..errors import Loc
from ..types import b32, b64, f32
from .builder import Trace, activated
from .namespace.ptx import ptx
from .rules.aliasing import searches, temporaries, way_of
from .values.functions import reg

__all__ = ["measure"]

_WORTH_IT = 16


def measure() -> None:
    """Count the references of the usual changes, once it is worth it: it takes as long as many searches."""
    if temporaries or searches.count < _WORTH_IT:
        return
    found: dict[tuple[int, ...], int] = {}
    code = _changes.__code__
    trace = Trace("references", Loc(code.co_filename, code.co_firstlineno), "auto", code)

    def note(register: Any, depth: int) -> None:  # noqa: ARG001
        references = sys.getrefcount(register) - 1
        way = way_of(sys._getframe(2), code, register, trace.operands)
        found[way] = min(found.get(way, references), references)

    trace.before_write = note
    with activated(trace):
        _changes()
    temporaries.update(found)


def _changes() -> None:
    a, b, name = reg(f32, 0.0), reg(f32, 0.0), reg(f32, 0.0)
    held: Any = [reg(f32, 0.0)]
    for _ in range(2):  # what an operator becomes is kept from the first time on
        name += a
        name += 1.5
        held[0] += a
        held[0] += 1.5
        name.set(a)
        held[0].set(1.5)
        ptx.add.f32(a, b, out=name)
        ptx.add.f32(a, b, out=held[0])
        ptx.add.f32(a, name, out=name)
        ptx.add.f32(name, a, out=name)
        ptx.add.f32(a, held[0], out=held[0])
        ptx.add.f32(held[0], a, out=held[0])
        ptx.mov.b64(reg(b64, 0), out=[reg(b32, 0), reg(b32, 0)])
