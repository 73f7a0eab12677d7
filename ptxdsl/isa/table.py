"""Queries of the instruction table: by opcode, by mnemonic, by what may follow one; what is near where there is none.

A chapter is read when one of its opcodes is first asked for (`opcode_chapters` says which these are), and a row is
parsed when it may be meant.
"""

from __future__ import annotations

import copyreg
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ..errors import UnknownInstruction, similar
from ..types import TYPES
from .forms import Form, Row
from .notation import Block, Chapter, parse_names, parse_specials
from .opcode_chapters import CHAPTERS
from .specs import Need, OperandSpec, Special

__all__ = [
    "Form", "Need", "OperandSpec", "Row", "Special", "begins", "chapter", "chapters", "completions", "form_of",
    "lookup", "names", "opcodes", "rows", "special", "special_registers",
]


_FOLDER = os.path.join(os.path.dirname(__file__), "chapters")


@cache
def chapter(name: str) -> Chapter:
    """A chapter by its name."""
    with open(os.path.join(_FOLDER, f"{name}.isa"), "rb", buffering=0) as file:
        return Chapter(name, file.read().decode().replace("\r\n", "\n"))


@cache
def chapters() -> dict[str, str]:
    """The text of each chapter by its name."""
    found = sorted(name for name in os.listdir(_FOLDER) if name.endswith(".isa"))
    return {name[:-4]: chapter(name[:-4]).text[1:-1] for name in found}


@cache
def _blocks(opcode: str) -> list[Block]:
    """The rows of an opcode, not yet read."""
    return [block for name in CHAPTERS.get(opcode, ()) for block in chapter(name).blocks(opcode)]


def opcodes() -> dict[str, tuple[str, ...]]:
    """Every opcode of the table, with the chapters that have rows of it."""
    return CHAPTERS


@cache
def _names() -> dict[str, frozenset[str]]:
    return {opcode: words for text in chapters().values() for opcode, words in parse_names(text)}


def names(opcode: str) -> frozenset[str]:
    """The modifiers that belong to the name of an instruction, wherever they stand in a row: ``lo`` for ``mul``."""
    return _names().get(opcode, frozenset())


def rows(opcode: str) -> tuple[Row, ...]:
    """The rows of an opcode; () if the table has none."""
    return tuple(block.row for block in _blocks(opcode))


def _candidates(mnemonic: str, whole: bool = False) -> tuple[Iterator[Row], tuple[str, ...]]:
    """The rows that may spell what begins with these modifiers, or has these only, and the modifiers."""
    opcode, *modifiers = mnemonic.split(".")
    tokens = tuple(modifiers)
    own = (block for block in _blocks(opcode) if block.may_begin(tokens))
    return (block.row for block in own if not whole or block.may_spell(tokens)), tokens


@cache
def special_registers() -> dict[str, Special]:
    """Every special register by its name, without a component: ``%tid``, ``%clock64``, ``%envreg0``..."""
    return {special.name: special for special in parse_specials(chapter("special").text)}


def special(name: str) -> Special:
    """The special register of that name, with or without a component: ``%tid.x``, ``%laneid``, ``%tid``.

    Raises UnknownInstruction where there is none.

    >>> special("%tid.x").type
    u32
    """
    base, _, component = name.partition(".")
    found = special_registers().get(base)
    if found is None or (component and component not in found.components):
        names = [n + (f".{c}" if c else "") for n, r in special_registers().items() for c in r.components or ("",)]
        near = similar(name, names, 3)
        raise UnknownInstruction(
            f"PTX has no special register `{name}`", hint=f"did you mean {_either(near)}?" if near else None
        )
    return found


@cache
def lookup(mnemonic: str) -> tuple[Form, ...]:
    """The forms that a mnemonic spells: several where the number or kind of operands decides.

    Raises UnknownInstruction, with the nearest legal spellings, where there is none.

    >>> lookup("fma.rn.f32")[0].operands[0].type
    f32
    """
    candidates, tokens = _candidates(mnemonic, whole=True)
    forms = tuple(form for row in candidates for form in row.forms(tokens))
    if not forms:
        raise unknown(mnemonic)
    return forms


def form_of(mnemonic: str, index: int) -> Form:
    """The form of a mnemonic at that place in ``lookup``."""
    return lookup(mnemonic)[index]


def _reduced(form: Form) -> tuple[Callable[..., Form], tuple[Any, ...]]:
    """A form is pickled as its spelling, so that there stays one object for each."""
    return form_of, (form.mnemonic, lookup(form.mnemonic).index(form))


copyreg.pickle(Form, _reduced)


def begins(mnemonic: str) -> bool:
    """Whether a mnemonic is complete, or something may follow it."""
    candidates, tokens = _candidates(mnemonic)
    return any(row.begins(tokens) for row in candidates)


def completions(mnemonic: str) -> set[str]:
    """What may follow a mnemonic that is not complete; "" is among it where it is complete."""
    candidates, tokens = _candidates(mnemonic)
    return {word for row in candidates for word in row.completions(tokens)}


def unknown(mnemonic: str) -> UnknownInstruction:
    """The error for a mnemonic that no row spells: what is wrong with it and what is near."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode not in opcodes():
        near = similar(opcode, opcodes(), 4)
        return UnknownInstruction(
            f"PTX has no instruction `{opcode}`", hint=f"did you mean {_either(near)}?" if near else None
        )
    done = opcode
    for modifier in modifiers:
        legal = completions(done)
        if not completions(f"{done}.{modifier}"):
            return _wrong_modifier(done, modifier, legal)
        done = f"{done}.{modifier}"
    missing = sorted(word for word in completions(done) if word)
    if missing:
        words = _either(f".{word}" for word in missing)
        return UnknownInstruction(f"`{done}` is not complete", hint=f"it goes on with {words}")
    return UnknownInstruction(f"`{done}` is not a legal combination of modifiers")


def _wrong_modifier(done: str, modifier: str, legal: set[str]) -> UnknownInstruction:
    words = sorted(word for word in legal if word)
    types = _types(done) if modifier in TYPES else []
    if modifier in types:
        between = [word for word in _values(done) if word in legal and completions(f"{done}.{word}.{modifier}")]
        if between:
            return UnknownInstruction(
                f"`{done}` takes `.{modifier}` only behind another modifier",
                hint=f"did you mean {_either(f'`{done}.{word}.{modifier}`' for word in between[:4])}?",
            )
    near = similar(modifier, words, 3)
    if types:
        hint = f"`{done}` takes {', '.join(types)}"
        if modifier in ("f32", "f64") and re.match(r"(atom|red)\..*(min|max)$", done):
            hint += f"; docs/howto/atomics.md makes that of {modifier} of the integer ones"
    elif near:
        hint = f"did you mean {_either(f'`{done}.{word}`' for word in near)}?"
    elif words:
        hint = f"after `{done}` may stand {_either(f'.{word}' for word in words)}"
    else:
        hint = f"`{done}` takes no further modifier"
    return UnknownInstruction(f"`{done}` has no modifier `.{modifier}`", hint=hint)


def _types(done: str) -> list[str]:
    """The types that may still follow."""
    return [value for value in _values(done) if value in TYPES]


def _values(done: str) -> list[str]:
    """The modifiers of the rows that may still be meant, in the table's order: the usual ones first."""
    candidates, tokens = _candidates(done)
    after = (value for row in candidates if row.completions(tokens) for slot in row.slots for value in slot.values)
    return list(dict.fromkeys(after))


def _either(words: object) -> str:
    items = [str(word) for word in words]  # type: ignore[attr-defined]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
