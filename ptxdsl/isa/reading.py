"""From the text of a chapter to its rows: the reader of :mod:`ptxdsl.isa.notation`.

A chapter is cut into blocks once; a block becomes a row only when a mnemonic is asked for that it may spell, and its
operands are read only when a form of it is made. So the whole ISA costs a kernel no more than the rows it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from ..types import TYPES
from .effects import STATED
from .notation import Row, Template
from .specs import Need, OperandSpec, Slot, Special

__all__ = ["Block", "blocks", "operands", "parse_specials"]

_BLOCK = re.compile(r"^(\w+)(.*)\n((?:[ ].*\n)*)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Block:
    """The text of a row, and the ``let`` lines above it."""

    head: str
    body: str
    lets: dict[str, str]
    chapter: str

    def may(self, tokens: tuple[str, ...]) -> bool:
        """Whether the modifiers that the row begins with allow these: a quick look, without reading the row."""
        for literal, token in zip(self.head.partition(" ")[0].partition("{")[0].split(".")[1:], tokens):
            if literal != token:
                return literal in self.lets or f".{literal} =" in self.body
        return True

    @cached_property
    def row(self) -> Row:
        """The row; ValueError if the text is none."""
        try:
            return _row(self)
        except Exception as error:
            raise ValueError(f"chapter {self.chapter}: {self.head!r}: {error}") from error


def blocks(text: str, chapter: str) -> dict[str, list[Block]]:
    """The rows of a chapter by their opcode, not yet read."""
    lets: dict[str, str] = {}
    found: dict[str, list[Block]] = {}
    for match in _BLOCK.finditer(text if text.endswith("\n") else text + "\n"):
        opcode, rest, body = match.groups()
        if opcode == "let":
            name, _, value = rest.partition("=")
            lets = {**lets, name.strip(): _filled(value.strip(), lets)}
        else:
            found.setdefault(opcode, []).append(Block(opcode + rest, body, lets, chapter))
    return found


def parse_specials(text: str) -> Iterator[Special]:
    """The special registers of a chapter: ``%name u32``, ``%name.xyz u32`` or ``%name0..7 u32``, then need and doc."""
    for block in re.split(r"\n(?=%)", text)[1:]:
        head, *body = (line.strip() for line in block.splitlines())
        name, kind = head.split()
        name, _, letters = name.partition(".") if ".." not in name else (name, "", "")
        needs = tuple(_need(line[4:]) for line in body if line.startswith("ptx "))
        doc = next(line.strip('"') for line in body if line.startswith('"'))
        span = re.search(r"(\d+)\.\.(\d+)", name)
        for index in range(int(span[1]), int(span[2]) + 1) if span else (0,):
            full = name.replace(span[0], str(index)) if span else name
            yield Special(full, TYPES[kind], tuple(letters), needs, doc)


def _filled(text: str, lets: dict[str, str]) -> str:
    """The text with what ``$name`` stands for."""
    return re.sub(r"\$(\w+)", lambda match: lets.get(match[1], match[0]), text) if "$" in text else text


def _need(text: str) -> Need:
    version, *targets = text.split()
    major, minor = version.split(".")
    return Need((int(major), int(minor)), tuple(targets))


@cache
def _values(text: str) -> dict[str, Need | None]:
    text = re.sub(r"(\S*)\{(\d+)\.\.(\d+)/(\d+)\}(\S*)", _range, text)
    return {m[1]: _need(m[2]) if m[2] else None for m in re.finditer(r"([^\s\[]+)(?:\[([^\]]*)\])?", text)}


def _range(match: re.Match[str]) -> str:
    before, first, last, step, after = match.groups()
    return " ".join(f"{before}{n}{after}" for n in range(int(first), int(last) + 1, int(step)))


def _row(block: Block) -> Row:
    syntax, _, written = block.head.partition(" ")
    opcode = re.split(r"[.{]", syntax, maxsplit=1)[0]
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


# ---------------------------------------------------------------------------------------------------------------------
# Operands


_OPERAND = re.compile(
    r"(?P<bar>\|)?(?P<neg>\{[!-]\})?(?P<mark>[=+#~&$]*)(?P<name>\w+)(?:\.(?P<part>\w+)(?P<must>\+?))?(?P<only>!)?"
    r"(?::(?P<type>[^*]+?))?"
    r"(?:\((?P<choices>-?\d+(?:\|-?\d+)*)\)|\((?P<low>[-\de.]+?)\.\.(?P<high>[-\de]+)(?: by (?P<step>\d+))?\))?"
    r"(?:\*(?P<count>.+))?$"
)
_PARTS = {
    "part": "b[0-3]|h[01]", "halves": "h[0-3]{2}", "bytes": "b[0-7]{4}", "half": "h(?!$)1?0?", "byte": "b(?!$)3?2?1?0?",
}


@cache
def operands(text: str) -> tuple[Template, ...]:
    """The operands that a row writes."""
    return tuple(_conditional(item, optional) for item, optional in _split(text))


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Operands at the top level: on commas, and before a bar; ``{, c}`` and ``{|p}`` are optional ones."""
    depth, item, optional = 0, "", False
    for at, char in enumerate(text):
        if depth == 0 and (char in ",|" or (char == "{" and text[at + 1] in ",|") or (char == "}" and optional)):
            if item.strip(" |"):
                yield item.strip(), optional
            item = char if char == "|" else ""
            optional = char == "{" or (optional and char != "}")
            continue
        depth += (char in "[({") - (char in "])}")
        item += char
    if item.strip():
        yield item.strip(), optional


def _conditional(item: str, optional: bool) -> Template:
    if match := re.match(r"(\w+!?:\w+) or (\[.*\])$", item):
        return replace(_operand(match[1], optional), other=_operand(match[2], False))
    for word in (" if ", " when "):
        if optional and word in item:
            item, _, condition = item.rpartition(word)
            return replace(_operand(item, word == " when "), present=condition)
    return _operand(item, optional)


@cache
def _operand(text: str, optional: bool) -> Template:
    if text.startswith("["):
        return _address(text[1:-1], optional)
    match = _OPERAND.match(text)
    if match is None:
        raise ValueError(f"operand not understood: {text!r}")
    mark, name, kind = match["mark"], match["name"], match["type"] or ""
    written = "=" in mark or name == "_" or match["bar"] or (name.startswith("d") and "#" not in mark)
    role = "rw" if "+" in mark else "w" if written else "r"
    spec = OperandSpec(
        name, role, kind if kind in ("label", "symbol") else "value", register="#" not in mark and name != "_",
        immediate=role == "r" and not match["only"], negatable=bool(match["neg"]), sink="~" in mark or name == "_",
        joined=bool(match["bar"]), variable="&" in mark or "$" in mark, special="$" in mark,
        bounds=(_bound(match["low"]), _bound(match["high"])) if match["low"] else None, step=int(match["step"] or 1),
        choices=tuple(map(int, match["choices"].split("|"))) if match["choices"] else (),
        selector=_PARTS[match["part"]] if match["part"] else "", selected=bool(match["must"]),
    )
    return Template(spec, "" if spec.kind != "value" else kind, match["count"] or "", optional)


def _bound(text: str) -> int | float:
    return float(text) if "e" in text else int(text)


def _address(text: str, optional: bool) -> Template:
    first, *parts = _split(text)
    match = re.match(r"([=+]?)(\w+)(?::(\w+))?$", first[0])
    if match is None:
        raise ValueError(f"address not understood: [{text}]")
    spec = OperandSpec(match[2], {"": "r", "=": "w", "+": "rw"}[match[1]], "address", space=match[3])
    return Template(spec, optional=optional, parts=tuple(_conditional(*part) for part in parts))
