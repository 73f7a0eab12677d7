"""Which names outside it a function reads, and which attributes of them: ``cfg.TILE``, not all that ``cfg`` holds.

From the bytecode, with the functions inside it, whether the place is reached or not. Of what is read in another way
(passed on, called, subscripted, kept under another name) only the name is known.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import NamedTuple

from .bytecode import flow_of
from .code_objects import PerCode

__all__ = ["CELL", "GLOBAL", "MODULE", "Read", "reads_of"]

GLOBAL, CELL, MODULE = "global", "cell", "module"


class Read(NamedTuple):
    """A name that is read: a global, a variable of an outer function, or a module imported by the function itself.

    ``attributes`` are those read of it at once; ``used`` says whether what was found last is used, and not only set.
    """

    kind: str
    name: str
    attributes: tuple[str, ...]
    used: bool = True
    level: int = 0
    """Of a module how many packages up it is searched, as in ``from ..names import x``."""


_LOADS = {
    "LOAD_GLOBAL": GLOBAL, "LOAD_NAME": GLOBAL, "LOAD_FROM_DICT_OR_GLOBALS": GLOBAL, "LOAD_DEREF": CELL,
    "LOAD_CLASSDEREF": CELL, "LOAD_FROM_DICT_OR_DEREF": CELL,
}
_SKIPPED = frozenset(("CACHE", "EXTENDED_ARG", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "RESUME", "NOT_TAKEN"))


@PerCode
def reads_of(code: CodeType) -> tuple[Read, ...]:
    """What a code object and those inside it read, each once."""
    found: dict[Read, None] = {}
    flow = flow_of.known(code)  # which has disassembled it
    steps = [step for step in (flow.raw if flow else dis.get_instructions(code)) if step.opname not in _SKIPPED]
    imported: dict[str, tuple[str, int]] = {}
    for at, step in enumerate(steps):
        if step.opname in _LOADS:
            found[_chain(steps, at + 1, _LOADS[step.opname], str(step.argval))] = None
        elif step.opname == "IMPORT_NAME":
            for read in _imported(steps, at, imported):
                found[read] = None
        elif step.argval in imported and step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
            name, level = imported[step.argval]
            found[_chain(steps, at + 1, MODULE, name)._replace(level=level)] = None
    by_key = "globals" in code.co_names  # `globals()["N"]`
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(reads_of(constant)))
        elif by_key and isinstance(constant, str):
            found[Read(GLOBAL, constant, ())] = None
    return tuple(found)


def _chain(steps: list[dis.Instruction], at: int, kind: str, name: str) -> Read:
    attributes: list[str] = []
    while at < len(steps) and steps[at].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        attributes.append(str(steps[at].argval))
        at += 1
    used = at >= len(steps) or steps[at].opname not in ("STORE_ATTR", "DELETE_ATTR")
    return Read(kind, name, tuple(attributes), used)


def _imported(steps: list[dis.Instruction], at: int, imported: dict[str, tuple[str, int]]) -> list[Read]:
    """What an import statement reads; a module that gets a name is noted by it, and read where that is."""
    module, level, following = str(steps[at].argval), steps[at - 2].argval, steps[at + 1]
    level = level if type(level) is int else 0
    if following.opname.startswith("STORE_FAST") and type(following.argval) is str:
        named = steps[at - 1].argval is not None  # `from .. import x as y`, else the package gets the name
        imported[following.argval] = (module if named else module.partition(".")[0], level)
        return []
    names = []
    for step in steps[at + 1 :]:
        if step.opname == "IMPORT_FROM":
            names.append(str(step.argval))
        elif not step.opname.startswith(("STORE_", "POP_TOP", "SWAP", "ROT_TWO")):
            break
    return [Read(MODULE, module, (name,), level=level) for name in names] or [Read(MODULE, module, (), level=level)]
