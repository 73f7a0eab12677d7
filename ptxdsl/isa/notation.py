"""How a row of the instruction table is written, and what it means.

The chapters (``chapters/*.isa``) are text in the manner of the PTX manual: the syntax of a form at the left margin,
what its parts may be indented below it. ::

    let rnd = rn rz rm rp

    fma{.rnd}{.ftz}{.sat}.f32 d, a, b, c
        "d = a * b + c, rounded once."

A modifier that is the name of a ``let`` or of a ``.name = ...`` line below is a slot, any other stands for itself;
``{...}`` is optional. ``let name = text`` gives the name to modifiers, targets, operands or an expression: ``$name``
stands for the text. ``name mul hi lo wide`` lists the modifiers that belong to the name of an instruction: they come
directly behind the opcode, in foreign text too (`orders`). The lines below a form:

    .name = v1 v2[8.6 sm_100] $let      the values of a slot; in brackets what a single value needs beyond the row;
                                        ``n{8..256/8}`` is ``n8 n16 ... n256``
    name = expression                   a name for the operands' types and counts, computed from the slots
    where expression                    a combination is legal only if this is true
    ptx 7.0 sm_80 sm_120f               lowest PTX version and target(s) of all that the row spells
    ptx 7.8 sm_90 if expression         ... of what the expression is true for
    until 6.4                           the first PTX version that no longer has it
    relaxed                             registers may be wider than the operand's type (ld, st, cvt)
    does name                           the semantics; the opcode where absent
    control branch                      an effect that does not follow from operands and modifiers: ``arrives``,
    waits grid if expression            ``carry`` (read), ``commits``, ``completes``, ``control``, ``converges``,
                                        ``fence``, ``hint``, ``order``, ``selects``, ``absorbs``, ``uniform``,
                                        ``waits``, as in
                                        :class:`ptxdsl.isa.effects.Effects`; ``order acquire.gpu`` where the
                                        modifiers say no order
    "text"                              one line for people

A row without a ``ptx`` line is in the lowest version and target that the package knows: PTX 6.3 and sm_75.

Operands, comma-separated, in the order of the manual:

    d          written (names that begin with d, or a leading =)   a            read: a register or a number
    +d         read and written                                    a!           a register only
    ~d         may be the sink ``_``; ``_`` itself always is       #n           a number only
    a!!        a register only, in foreign text too: elsewhere a number there is moved to a register
    a:type*n   of that type, n of them in braces (0: a plain one)  #n:u32(0..31), (0..64 by 8), (4|8)   such numbers
    d|p        two results joined by a bar                         {!}p, {-}a   may be negated
    &a         may be the address of a variable                    $a           ... or a special register
    {, c}      may be absent                                       a:type or [a]  either
    {, c if x} there exactly if x is true                          {, c when x} may be there only if x is true
    [a]        memory that is read, [=a] written, [+a] both; [a:shared] in that space; [a, c:s32*2] with further parts
    a.part     of a register a byte or halfword may be named, a.part+ must; halves and bytes: of two registers; half and
               byte: a mask of a result
    L:label    a label; f:symbol a function or a list of labels

Types, counts and conditions are Python expressions over the slots' values (strings, None where absent) and the names
of the scalar types, with the functions of :mod:`ptxdsl.isa.expressions`. An operand without a type has that of the
slot ``type``, or else the last type in the mnemonic.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ..types import TYPES
from .effects import STATED
from .forms import Row
from .specs import Need, Slot, Special

__all__ = ["Block", "Chapter", "parse_names", "parse_specials"]

_START, _END = re.compile(r"\n(\w+)"), re.compile(r"\n(?! )")


class Chapter:
    """A chapter in which the rows have not been looked at yet."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, f"\n{text}\n"
        self.starts: dict[str, list[int]] = {}
        """Where the lines are that begin with a word at the left margin, by that word."""
        for match in _START.finditer(self.text):
            self.starts.setdefault(match[1], []).append(match.start() + 1)

    @cached_property
    def _lets(self) -> list[dict[str, str]]:
        """What is named above the first ``let`` line, above the second, and so on, and above the end."""
        found: list[dict[str, str]] = [{}]
        for start in self.starts.get("let", ()):
            name, _, value = self.text[start + 3 : self.text.index("\n", start)].partition("=")
            found.append({**found[-1], name.strip(): _filled(value.strip(), found[-1])})
        return found

    @property
    def opcodes(self) -> list[str]:
        return [word for word in self.starts if word not in ("let", "name")]

    def blocks(self, opcode: str) -> Iterator[Block]:
        """The rows of an opcode, not yet read."""
        for start in self.starts.get(opcode, ()) if opcode not in ("let", "name") else ():
            end = _END.search(self.text, start)
            head, _, body = self.text[start : end.start() if end else None].partition("\n")
            lets = self._lets[bisect_right(self.starts.get("let", ()), start)]
            yield Block(head, body, lets, self.name)


@dataclass(eq=False, repr=False)
class Block:
    """The text of a row, and what the ``let`` lines above it name."""

    head: str
    body: str
    lets: dict[str, str]
    chapter: str

    def may_begin(self, tokens: tuple[str, ...]) -> bool:
        """Whether the modifiers that the row begins with allow these: a cheap filter, before the row is read."""
        syntax = self.head.partition(" ")[0].partition("{")[0]
        return self._fit(syntax.split(".")[1:], tokens)

    def may_spell(self, tokens: tuple[str, ...]) -> bool:
        """The same of the modifiers that the row ends with."""
        syntax = self.head.partition(" ")[0].rpartition("}")[2]
        return self._fit(reversed(syntax.split(".")[1:]), reversed(tokens))

    def _fit(self, parts: Iterable[str], tokens: Iterable[str]) -> bool:
        """Whether modifiers may be these parts of the syntax, up to the first slot, whose values may be several."""
        for part, token in zip(parts, tokens):
            if part != token:
                if f".{part} =" in self.body:
                    values = self.body.partition(f".{part} =")[2].partition("\n")[0]
                else:
                    values = self.lets.get(part, "")
                values = _filled(values, self.lets)
                return token in values or "{" in values
        return True

    @cached_property
    def row(self) -> Row:
        """The row; ValueError if the text is none."""
        try:
            return _row(self)
        except Exception as error:
            raise ValueError(f"chapter {self.chapter}: {self.head!r}: {error}") from error


def parse_names(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The opcodes of a chapter whose names go on, and the modifiers that belong to these."""
    for match in re.finditer(r"^name (\w+) (.*)$", text, re.MULTILINE):
        yield match[1], frozenset(match[2].split())


def parse_specials(text: str) -> Iterator[Special]:
    """The special registers of a chapter: ``%name u32``, ``%name.xyz u32 relaxed`` or ``%name0..7 u32``; need, doc."""
    for block in text.split("\n%")[1:]:
        head, *body = (line.strip() for line in block.splitlines())
        name, kind, *relaxed = f"%{head}".split()
        name, _, letters = name.partition(".") if ".." not in name else (name, "", "")
        needs = tuple(_need(line[4:]) for line in body if line.startswith("ptx "))
        doc = next(line.strip('"') for line in body if line.startswith('"'))
        span = re.search(r"(\d+)\.\.(\d+)", name) if ".." in name else None
        for index in range(int(span[1]), int(span[2]) + 1) if span else (0,):
            full = name.replace(span[0], str(index)) if span else name
            yield Special(full, TYPES[kind], tuple(letters), needs, doc, bool(relaxed))


def _filled(text: str, lets: dict[str, str]) -> str:
    """The text with what ``$name`` stands for."""
    return re.sub(r"\$(\w+)", lambda match: lets.get(match[1], match[0]), text) if "$" in text else text


def _need(text: str) -> Need:
    version, *targets = text.split()
    major, minor = version.split(".")
    return Need((int(major), int(minor)), tuple(targets))


@cache
def _values(text: str) -> dict[str, Need | None]:
    if "[" not in text and "{" not in text:
        return dict.fromkeys(text.split())
    if "{" in text:
        text = re.sub(r"(\S*)\{(\d+)\.\.(\d+)/(\d+)\}(\S*)", _range, text)
    return {m[1]: _need(m[2]) if m[2] else None for m in re.finditer(r"([^\s\[]+)(?:\[([^\]]*)\])?", text)}


def _range(match: re.Match[str]) -> str:
    before, first, last, step, after = match.groups()
    return " ".join(f"{before}{n}{after}" for n in range(int(first), int(last) + 1, int(step)))


def _row(block: Block) -> Row:
    syntax, _, written = block.head.partition(" ")
    opcode = syntax.partition(".")[0].partition("{")[0]
    facts: dict[str, Any] = {"semantics": opcode, "where": (), "derived": (), "needs": (), "stated": ()}
    slots: dict[str, dict[str, Need | None]] = {}
    for line in block.body.splitlines():
        key, value = _fact(line.strip(), block.lets)
        if key.startswith("."):
            slots[key[1:]] = value
        elif isinstance(facts.get(key), tuple):
            facts[key] += (value,)
        else:
            facts[key] = value
    found = tuple(_slots(syntax[len(opcode) :], slots, block.lets))
    return Row(opcode, syntax, _filled(written, block.lets), found, block.chapter, **facts)


def _fact(line: str, lets: dict[str, str]) -> tuple[str, Any]:
    """What one line below a form says: the field of Row and its value, or a slot, with its dot, and its values."""
    if line.startswith('"'):
        return "doc", line.strip('"')
    line = _filled(line, lets)
    word, _, rest = line.partition(" ")
    if line.startswith("."):
        return word, _values(rest.partition("=")[2])
    if word == "ptx":
        needed, _, condition = rest.partition(" if ")
        return "needs", (_need(needed), condition)
    if word == "relaxed":
        return "relaxed", True
    if word == "where":
        return "where", rest
    if word == "does":
        return "semantics", rest
    if word in STATED and not rest.startswith("= "):
        value, _, condition = rest.partition(" if ")
        return "stated", (word, value, condition)
    if word == "until":
        return "until", _need(rest).version
    if rest.startswith("= "):
        return "derived", (word, rest[2:])
    raise ValueError(f"a line that means nothing: {line!r}")


_MODIFIER = re.compile(r"\{\.([\w:]+)\}|\.([\w:]+)")


def _slots(text: str, own: dict[str, dict[str, Need | None]], lets: dict[str, str]) -> Iterator[Slot]:
    at = 0
    while at < len(text):
        match = _MODIFIER.match(text, at)
        if match is None:
            raise ValueError(f"modifiers not understood at {text[at:]!r}")
        name = match[1] or match[2]
        if name in own:
            yield Slot(name, own[name], bool(match[1]))
        elif name in lets:
            yield Slot(name, _values(lets[name]), bool(match[1]))
        else:
            yield Slot("", {name: None}, bool(match[1]))
        at = match.end()
