"""The type stub of ``ptx``, from the table: what an editor completes and a type checker knows.

All spellings of an instruction would be hundreds of thousands; its rows are walked as a finite automaton instead, one
class for each place at which a modifier may stand. So each place completes what may stand there, a misspelt modifier
is an error of the type checker, and what can be called has the operands and the meaning of its rows.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from ..table import opcodes, rows, special_registers
from ..forms import Row
from ..templates import Template
from .pages import lowest_of, operands_of

__all__ = ["attribute", "stub"]

_State = frozenset[tuple[int, int, tuple[str, ...]]]
"""Where one may stand in the rows of an opcode: the row, the slot, and what is left of a value begun."""

_HEAD = '''"""The type stub of ``ptx``, generated from the table by ``python -m ptxdsl.isa``: not to be edited."""

from __future__ import annotations

from typing import Any

from ...types import KernelOperand

class Instruction:
    mnemonic: str
    def __getattr__(self, name: str) -> Instruction: ...
    def __getitem__(self, modifiers: str) -> Instruction: ...
    def __call__(self, *operands: Any, out: Any = None, pred: Any = None) -> KernelOperand: ...

class _Step:
    mnemonic: str
    def __getitem__(self, modifiers: str) -> Instruction: ...

'''


def stub() -> str:
    """The text of ``language/namespace/ptx.pyi``."""
    classes: list[str] = []
    names = ["class Namespace:\n    def __getitem__(self, mnemonic: str) -> Instruction: ...\n"]
    names.append("    def pragma(self, *texts: str) -> None: ...\n")
    for opcode in sorted(opcodes()):
        classes += _classes(opcode)
        names.append(f"    {attribute(opcode)}: _{opcode}\n")
    parts = sorted({special.components for special in special_registers().values() if special.components})
    for components in parts:
        classes.append(_class(f"_{''.join(components)}", [f"    {each}: KernelOperand\n" for each in components], ""))
    for special in special_registers().values():
        kind = f"_{''.join(special.components)}" if special.components else "KernelOperand"
        names.append(f"    {special.name[1:]}: {kind}\n")
    return _HEAD + "\n".join(classes) + "\n" + "".join(names) + "\nptx: Namespace\n"


def attribute(word: str) -> str:
    """A modifier as a Python attribute: ``global`` is ``global_``, ``shared::cta`` is ``shared__cta``.

    >>> attribute("global"), attribute("shared::cta")
    ('global_', 'shared__cta')
    """
    return f"{word}_" if keyword.iskeyword(word) else word.replace("::", "__")


def _classes(opcode: str) -> Iterator[str]:
    """The classes of an opcode, the first named after it."""
    own = rows(opcode)
    start = _closed(own, ((index, 0, ()) for index in range(len(own))))
    found: dict[_State, str] = {start: f"_{opcode}"}
    queue = [start]
    for state in queue:
        lines = []
        for word, following in sorted(_steps(own, state).items()):
            if not attribute(word).isidentifier():
                continue
            if following not in found:
                found[following] = f"_{opcode}_{len(found)}"
                queue.append(following)
            lines.append(f"    {attribute(word)}: {found[following]}\n")
        complete = [own[row] for row, slot, rest in sorted(state) if slot == len(own[row].slots) and not rest]
        yield _class(found[state], lines, _call(complete) if complete else "")


def _class(name: str, lines: list[str], call: str) -> str:
    return f"class {name}(_Step):\n{''.join(lines)}{call}" + ("" if lines or call else "    pass\n")


def _closed(own: tuple[Row, ...], places: Iterator[tuple[int, int, tuple[str, ...]]]) -> _State:
    """The places, and those that leaving out optional modifiers leads to."""
    found = set()
    for row, slot, rest in places:
        found.add((row, slot, rest))
        while not rest and slot < len(own[row].slots) and own[row].slots[slot].optional:
            slot += 1
            found.add((row, slot, rest))
    return frozenset(found)


def _steps(own: tuple[Row, ...], state: _State) -> dict[str, _State]:
    """Where each modifier leads that may stand here."""
    places: dict[str, list[tuple[int, int, tuple[str, ...]]]] = {}
    for row, slot, rest in state:
        if rest:
            places.setdefault(rest[0], []).append((row, slot + (len(rest) == 1), rest[1:]))
        elif slot < len(own[row].slots):
            for value in own[row].slots[slot].values:
                word, *more = value.split(".")
                places.setdefault(word, []).append((row, slot + (not more), tuple(more)))
    return {word: _closed(own, iter(after)) for word, after in places.items()}


def _call(complete: list[Row]) -> str:
    """The call of a complete spelling: its operands, and its meaning for the editor to show."""
    parameters = _parameters([[t for t in row.operands if not t.spec.result] for row in complete])
    lines = dict.fromkeys(f"{row.doc} ``{row.opcode} {operands_of(row)}``, from {lowest_of(row)}." for row in complete)
    gives = any(template.spec.result for row in complete for template in row.operands)
    signature = "".join(f"{parameter}, " for parameter in (*parameters, *("/",) * bool(parameters)))
    result = "KernelOperand" if gives else "None"
    return (
        f"    def __call__(self, {signature}*, out: Any = None, pred: Any = None) -> {result}:\n"
        f'        """{(chr(10) + " " * 8).join(lines)}"""\n'
    )


def _parameters(sources: list[list[Template]]) -> list[str]:
    """The parameters of several rows at once: what only some of them take may be left out."""
    longest = max(sources, key=len)
    required = min(sum(not (t.optional or t.present) for t in each) for each in sources)
    found: dict[str, str] = {}
    for index, template in enumerate(longest):
        name = template.spec.name
        name = f"{name}_" if keyword.iskeyword(name) else name if name not in found else f"{name}{index}"
        found[name] = f"{name}: Any" + (" = ..." if index >= required else "")
    return list(found.values())
