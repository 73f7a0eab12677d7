"""How a row of the instruction table is written, and what it means.

The chapters (``chapters/*.isa``) are text in the manner of the PTX manual: the syntax of a form at the left margin,
what its parts may be indented below it. ::

    let rnd = rn rz rm rp

    fma{.rnd}{.ftz}{.sat}.f32 d, a, b, c
        "d = a * b + c, rounded once."
        ptx 2.0 sm_20

A modifier that is the name of a ``let`` or of a ``.name = ...`` line below is a slot, any other stands for itself;
``{...}`` is optional. The lines below a form:

    .name = v1 v2[8.6 sm_100] $let      the values of a slot; in brackets what a single value needs beyond the row;
                                        n{8..256/8} is n8 n16 ... n256
    name = expression                   a name for the operands' types and counts, computed from the slots
    where expression                    a combination is legal only if this is true
    ptx 7.0 sm_80                       lowest PTX version and target(s) of all that the row spells
    ptx 7.8 sm_90 if expression         ... of what the expression is true for; without any, sm_75 serves
    until 6.4                           the first PTX version that no longer has it
    relaxed                             registers may be wider than the operand's type (ld, st, cvt)
    does name                           the semantics; the opcode where absent
    "text"                              one line for people

Operands, comma-separated, in the order of the manual:

    d          written (names that begin with d, or a leading =)     a        read: a register or a number
    +d         read and written                                      a!       a register only
    #n         a number only; #n:u32(0..31) or (0..64 by 8), (4|8)   {!}p     a predicate, may be negated
    a:type*n   of that type; n of them in braces, 0 for a plain one  d|p      two results joined by a bar
    ~d         may be the sink ``_``; _ always is                    {, c}    may be absent
    &a         may also be the address of a variable                 {, c if x}  there exactly if x is true
                                                                     {, c when x}  may be there only if x is true
    $a         may also be that or a special register               a:type or [a]  either
    [a]        memory that is read; [=a] written, [+a] both; [a:shared] in that space; [a, c:s32*2] with more parts
    L:label    a label; f:symbol a function or variable
    a.part     of a register a byte or halfword may be named, a.part+ must; halves and bytes: of two registers; half and
               byte: a mask of a result; {-}a may be negated

``let name = text`` at the left margin gives a name to values, targets or an expression: a slot of that name has these
values, and ``$name`` stands for the text. Types and counts are Python expressions over the slots' values (strings, None where absent) and the names of the
scalar types; the type of an operand without one is the slot ``type``, or else the last type in the mnemonic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from types import CodeType
from typing import Any, NamedTuple

from ..types import TYPES, ScalarType

__all__ = ["Form", "Need", "OperandSpec", "Row", "Slot", "Special", "parse_rows", "parse_specials"]

Modifiers = dict[str, "str | None"]


class Need(NamedTuple):
    """The lowest PTX version and the targets of which one must be met."""

    version: tuple[int, int]
    targets: tuple[str, ...]


class Special(NamedTuple):
    """A special register. ``components`` are the letters that may follow its name after a dot, () if none may."""

    name: str
    type: ScalarType
    components: tuple[str, ...]
    needs: tuple[Need, ...]
    doc: str


class Slot(NamedTuple):
    """One position among the modifiers; ``name`` is empty for a modifier that stands for itself."""

    name: str
    values: dict[str, Need | None]
    optional: bool


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """What one operand of a form must be.

    ``role`` is ``r``, ``w`` or ``rw``; ``kind`` is ``value``, ``address``, ``label`` or ``symbol``. ``count`` is 0 for
    a plain operand and n for n of them in braces. For an address ``role`` says what happens to the memory, ``space``
    is its state space where the operand itself names one, and ``parts`` are the further operands in the brackets.
    Numbers lie within ``bounds``, both included, and are multiples of ``step``, or are
    one of ``choices``: see ``admits``. ``types`` are the types of the elements of braces, where they differ.
    ``selector`` is the pattern of the parts of a register that may be named (``%r1.b0``), ``selected`` says one must
    be; with a selector, ``negatable`` means a minus sign. ``variable`` and ``special``: a value may also be the address of a variable or a special register.
    """

    name: str
    role: str = "r"
    kind: str = "value"
    type: ScalarType | None = None
    count: int = 0
    register: bool = True
    immediate: bool = True
    negatable: bool = False
    sink: bool = False
    joined: bool = False
    bounds: tuple[int | float, int | float] | None = None
    space: str | None = None
    parts: tuple[OperandSpec, ...] = ()
    variable: bool = False
    special: bool = False
    step: int = 1
    choices: tuple[int, ...] = ()
    types: tuple[ScalarType, ...] = ()
    selector: str = ""
    selected: bool = False

    def admits(self, number: int | float) -> bool:
        """Whether a literal number is within what the operand may be (its type apart)."""
        if self.choices:
            return number in self.choices
        return self.bounds is None or (self.bounds[0] <= number <= self.bounds[1] and number % self.step == 0)

    @property
    def written(self) -> bool:
        """Whether registers of this operand are results."""
        return self.kind == "value" and self.role != "r"


@dataclass(frozen=True, slots=True)
class _Template:
    """An operand as written in a row: types and counts still expressions."""

    spec: OperandSpec
    type: str | None
    count: str | None
    optional: bool
    present: str | None
    parts: tuple[_Template, ...]
    other: _Template | None = None

    def choices(self) -> tuple[_Template | None, ...]:
        """What may stand in its place: itself, its alternative, nothing."""
        own = (self,)
        if any(part.optional for part in self.parts):
            own = tuple(replace(self, parts=parts) for parts in _subsets(self.parts))
        return ((None,) if self.optional else ()) + own + ((self.other,) if self.other else ())


def _twice(name: str) -> str:
    """The type of twice the size: ``twice("u16")`` is ``"u32"``."""
    return f"{name[0]}{int(name[1:]) * 2}"


def _number(value: str | None) -> int:
    """The number in a modifier: 4 for ``v4`` and ``x4``, 0 for none."""
    return int(re.sub(r"\D", "", value)) if value else 0


def _area(shape: str, sides: str) -> int:
    """The number of elements of a matrix: ``area("m16n8k16", "mk")`` is 256."""
    sizes = {side: int(size) for side, size in re.findall(r"([mnk])(\d+)", shape)}
    return sizes[sides[0]] * sizes[sides[1]]


def _holds(wide: str, narrow: str) -> bool:
    """Whether the integers of type ``narrow`` are all in type ``wide``."""
    room = int(wide[1:]) - (wide[0] == "s" and narrow[0] == "u")
    return room >= int(narrow[1:]) and (wide[0] == "s" or narrow[0] == "u")


@dataclass(frozen=True, eq=False)
class Form:
    """A spelling of a row: every slot chosen, every operand's type known. One object for one spelling.

    ``mnemonic`` is the text before the operands, ``modifiers`` the choice in each slot.
    """

    row: Row
    mnemonic: str
    modifiers: Modifiers
    operands: tuple[OperandSpec, ...]
    needs: tuple[Need, ...]

    @property
    def opcode(self) -> str:
        return self.row.opcode

    @property
    def semantics(self) -> str:
        return self.row.semantics

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The modifiers of the mnemonic in order: ``("rn", "f32")`` for ``fma.rn.f32``."""
        return tuple(self.mnemonic.split(".")[1:])

    @cached_property
    def type(self) -> ScalarType | None:
        """The type of the operation: the slot ``type``, or else the last type in the mnemonic."""
        name = self.modifiers.get("type") or next((t for t in reversed(self.tokens) if t in TYPES), None)
        return TYPES.get(name) if name else None

    @cached_property
    def space(self) -> str:
        """The state space in the mnemonic, without ``::cta`` or ``::cluster``; ``generic`` where there is none."""
        spaces = ("global", "shared", "local", "const", "param")
        return next((t.split("::")[0] for t in self.tokens if t.split("::")[0] in spaces), "generic")

    def __repr__(self) -> str:
        return f"<Form {self.mnemonic}/{len(self.operands)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from . import form_of, lookup

        return (form_of, (self.mnemonic, lookup(self.mnemonic).index(self)))


@dataclass(frozen=True, eq=False)
class Row:
    """One row of the table."""

    opcode: str
    syntax: str
    slots: tuple[Slot, ...]
    operands: tuple[_Template, ...]
    chapter: str
    doc: str = ""
    semantics: str = ""
    relaxed: bool = False
    needs: tuple[tuple[Need, str], ...] = ()
    until: tuple[int, int] | None = None
    where: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()

    def forms(self, tokens: tuple[str, ...]) -> tuple[Form, ...]:
        """The forms that ``opcode.tokens`` spells in this row, one for each number of operands; () if none."""
        for chosen, needs in _walk(self.slots, tokens):
            names = self._names(chosen)
            if all(_value(expression, names) for expression in self.where):
                return tuple(self._expand(tokens, chosen, names, needs))
        return ()

    def completions(self, tokens: tuple[str, ...]) -> set[str]:
        """What may stand after these modifiers; "" if they are complete."""
        return set(_complete(self.slots, tokens))

    def _names(self, chosen: Modifiers) -> dict[str, Any]:
        names: dict[str, Any] = {**_NAMES, **chosen}
        for name, expression in self.derived:
            names[name] = _value(expression, names)
        return names

    def _expand(
        self, tokens: tuple[str, ...], chosen: Modifiers, names: dict[str, Any], needs: tuple[Need, ...]
    ) -> Iterator[Form]:
        mnemonic = ".".join((self.opcode, *tokens))
        default = chosen.get("type") or next((t for t in reversed(tokens) if t in TYPES), None)
        needs += tuple(need for need, condition in self.needs if not condition or _value(condition, names))
        present = tuple(t for t in self.operands if t.present is None or _value(t.present, names))
        for kept in _subsets(present):
            yield Form(self, mnemonic, chosen, tuple(_resolve(t, names, default) for t in kept), needs)


def _subsets(templates: tuple[_Template, ...]) -> list[tuple[_Template, ...]]:
    """Every way to choose among operands that may be absent or something else; the shortest first."""
    ways = (tuple(t for t in way if t) for way in product(*(t.choices() for t in templates)))
    return sorted(ways, key=len)


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<row>", "eval")


def _value(expression: str, names: dict[str, Any]) -> Any:
    return eval(_compiled(expression), {"__builtins__": _BUILTINS}, names)


def _walk(slots: tuple[Slot, ...], tokens: tuple[str, ...]) -> Iterator[tuple[Modifiers, tuple[Need, ...]]]:
    """Every way to read the modifiers ``tokens`` as a choice in each slot."""
    if not slots:
        if not tokens:
            yield {}, ()
        return
    slot, rest = slots[0], slots[1:]
    for value, need in slot.values.items():
        parts = tuple(value.split("."))
        if tokens[: len(parts)] == parts:
            for chosen, needs in _walk(rest, tokens[len(parts) :]):
                yield {slot.name or value: value, **chosen}, needs + ((need,) if need else ())
    if slot.optional:
        for chosen, needs in _walk(rest, tokens):
            yield {slot.name or next(iter(slot.values)): None, **chosen}, needs


def _complete(slots: tuple[Slot, ...], tokens: tuple[str, ...]) -> Iterator[str]:
    if not slots:
        if not tokens:
            yield ""
        return
    slot, rest = slots[0], slots[1:]
    for value in slot.values:
        parts = tuple(value.split("."))
        if not tokens:
            yield parts[0]
        elif tokens[: len(parts)] == parts:
            yield from _complete(rest, tokens[len(parts) :])
        elif parts[: len(tokens)] == tokens:
            yield parts[len(tokens)]
    if slot.optional:
        yield from _complete(rest, tokens)


def _resolve(template: _Template, names: dict[str, Any], default: str | None) -> OperandSpec:
    spec = template.spec
    kind: ScalarType | None = None
    types: tuple[ScalarType, ...] = ()
    if spec.kind == "value":
        name = _value(template.type, names) if template.type else default
        if name is None:
            raise ValueError(f"operand {spec.name} has no type")
        types = tuple(TYPES[each] for each in name) if isinstance(name, tuple) else ()
        kind = types[0] if types else TYPES[name]
    count = len(types) or (_value(template.count, names) if template.count else 0)
    if not isinstance(count, int):
        count = _number(count)
    return OperandSpec(
        spec.name, spec.role, spec.kind, kind, count, spec.register, spec.immediate and (kind in _NUMERIC or not spec.register),
        spec.negatable, spec.sink and (count > 0 or not template.count), spec.joined, spec.bounds, spec.space,
        tuple(_resolve(p, names, default) for p in template.parts if p.present is None or _value(p.present, names)),
        spec.variable, spec.special, spec.step,
        spec.choices, types, spec.selector, spec.selected,
    )


_BUILTINS = {"int": int, "len": len, "max": max, "min": min, "str": str, "bool": bool, "dict": dict}
_NAMES: dict[str, Any] = {**{name: name for name in TYPES}, "twice": _twice, "number": _number, "holds": _holds, "area": _area,
    "bits": lambda name: TYPES[name].bits if name in TYPES else _number(name)}
_NUMERIC = tuple(TYPES[f"{kind}{bits}"] for kind in "usb" for bits in (8, 16, 32, 64)) + (TYPES["f32"], TYPES["f64"])


# ---------------------------------------------------------------------------------------------------------------------
# From text to rows


_OPERAND = re.compile(
    r"(?P<bar>\|)?(?P<neg>\{[!-]\})?(?P<mark>[=+#~&$]*)(?P<name>\w+)(?:\.(?P<part>\w+)(?P<must>\+?))?(?P<only>!)?"
    r"(?::(?P<type>[^*]+?))?(?:\((?P<choices>-?\d+(?:\|-?\d+)*)\)|\((?P<low>[-\de.]+?)\.\.(?P<high>[-\de]+)(?: by (?P<step>\d+))?\))?(?:\*(?P<count>.+))?$"
)
_PARTS = {
    "part": "b[0-3]|h[01]", "halves": "h[0-3]{2}", "bytes": "b[0-7]{4}", "half": "h(?!$)1?0?", "byte": "b(?!$)3?2?1?0?",
}
_MODIFIER = re.compile(r"\{\.([\w:]+)\}|\.([\w:]+)")


def parse_rows(text: str, chapter: str, opcode: str | None = None) -> list[Row]:
    """The rows of a chapter; only those of ``opcode`` where one is given."""
    sets: dict[str, str] = {}
    rows: list[Row] = []
    lines = [line.rstrip() for line in text.splitlines()]
    at = 0
    while at < len(lines):
        head, at = lines[at], at + 1
        if not head or head.startswith(("//", "=", "%", " ")):
            continue
        if head.startswith("let "):
            name, _, values = head[4:].partition("=")
            sets[name.strip()] = _expanded(values.strip(), sets)
            continue
        body: list[str] = []
        while at < len(lines) and lines[at].startswith(" "):
            if lines[at].strip() and not lines[at].strip().startswith("//"):
                body.append(lines[at].strip())
            at += 1
        if opcode is None or re.split(r"[.{\s]", head, maxsplit=1)[0] == opcode:
            try:
                rows.append(_row(_expanded(head, sets), body, sets, chapter))
            except Exception as error:
                raise ValueError(f"chapter {chapter}: {head!r}: {error}") from error
    return rows


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


def _need(text: str) -> Need:
    version, *targets = text.split()
    major, minor = version.split(".")
    return Need((int(major), int(minor)), tuple(targets))


def _expanded(values: str, sets: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda match: sets.get(match[1], match[0]), values)


def _range(match: re.Match[str]) -> str:
    before, first, last, step, after = match.groups()
    return " ".join(f"{before}{n}{after}" for n in range(int(first), int(last) + 1, int(step)))


def _values(text: str) -> dict[str, Need | None]:
    text = re.sub(r"(\S*)\{(\d+)\.\.(\d+)/(\d+)\}(\S*)", _range, text)
    return {match[1]: _need(match[2]) if match[2] else None for match in re.finditer(r"([^\s\[]+)(?:\[([^\]]*)\])?", text)}


def _row(head: str, body: list[str], sets: dict[str, str], chapter: str) -> Row:
    syntax, _, operands = head.partition(" ")
    opcode = re.split(r"[.{]", syntax, maxsplit=1)[0]
    facts: dict[str, Any] = {}
    slots: dict[str, dict[str, Need | None]] = {}
    where: list[str] = []
    derived: list[tuple[str, str]] = []
    needs: list[tuple[Need, str]] = []
    for line in body:
        line = line if line.startswith('"') else _expanded(line, sets)
        if line.startswith('"'):
            facts["doc"] = line.strip('"')
        elif match := re.match(r"\.([\w:]+)\s*=\s*(.*)$", line):
            slots[match[1]] = _values(match[2])
        elif line.startswith("where "):
            where.append(line[6:])
        elif line.startswith("ptx "):
            needed, _, condition = line[4:].partition(" if ")
            needs.append((_need(needed), condition))
        elif line.startswith("until "):
            facts["until"] = _need(line[6:]).version
        elif line.startswith("does "):
            facts["semantics"] = line[5:].strip()
        elif line == "relaxed":
            facts["relaxed"] = True
        elif match := re.match(r"(\w+)\s*=\s*(.+)$", line):
            derived.append((match[1], match[2]))
        else:
            raise ValueError(f"a line that means nothing: {line!r}")
    facts.setdefault("semantics", opcode)
    return Row(
        opcode, head, tuple(_slots(syntax[len(opcode) :], slots, sets)), tuple(_templates(operands)), chapter,
        needs=tuple(needs), where=tuple(where), derived=tuple(derived), **facts,
    )


def _slots(text: str, own: dict[str, dict[str, Need | None]], sets: dict[str, str]) -> Iterator[Slot]:
    at = 0
    while at < len(text):
        match = _MODIFIER.match(text, at)
        if match is None:
            raise ValueError(f"modifiers not understood at {text[at:]!r}")
        name = match[1] or match[2]
        if name in own:
            yield Slot(name, own[name], bool(match[1]))
        elif name in sets:
            yield Slot(name, _values(sets[name]), bool(match[1]))
        else:
            yield Slot("", {name: None}, bool(match[1]))
        at = match.end()


def _templates(text: str) -> Iterator[_Template]:
    for item, optional in _split(text):
        yield _conditional(item, optional)


def _conditional(item: str, optional: bool) -> _Template:
    if match := re.match(r"(\w+!?:\w+) or (\[.*\])$", item):
        return replace(_template(match[1], optional), other=_template(match[2], False))
    for word in (" if ", " when "):
        if optional and word in item:
            item, _, condition = item.rpartition(word)
            return replace(_template(item, word == " when "), present=condition)
    return _template(item, optional)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Operands at the top level: on commas, and before a bar; ``{, c}`` and ``{|p}`` are optional ones."""
    depth, item, optional = 0, "", False
    for at, char in enumerate(text):
        if depth == 0 and (char in ",|" or char == "{" and text[at + 1] in ",|" or char == "}" and optional):
            if item.strip(" |"):
                yield item.strip(), optional
            item = char if char == "|" else ""
            optional = char == "{" or (optional and char != "}")
            continue
        depth += (char in "[({") - (char in "])}")
        item += char
    if item.strip():
        yield item.strip(), optional


def _template(text: str, optional: bool) -> _Template:
    if text.startswith("["):
        return _address(text[1:-1], optional)
    match = _OPERAND.match(text)
    if match is None:
        raise ValueError(f"operand not understood: {text!r}")
    mark, name, kind = match["mark"], match["name"], match["type"]
    written = "=" in mark or name == "_" or match["bar"] or (name.startswith("d") and "#" not in mark)
    role = "rw" if "+" in mark else "w" if written else "r"
    spec = OperandSpec(
        name, role, kind if kind in ("label", "symbol") else "value",
        register="#" not in mark and name != "_", immediate=role == "r" and not match["only"], negatable=bool(match["neg"]),
        sink="~" in mark or name == "_", joined=bool(match["bar"]), variable="&" in mark or "$" in mark, special="$" in mark,
        bounds=(_bound(match["low"]), _bound(match["high"])) if match["low"] else None, step=int(match["step"] or 1),
        selector=_PARTS[match["part"]] if match["part"] else "", selected=bool(match["must"]),
        choices=tuple(map(int, (match["choices"] or "").split("|"))) if match["choices"] else (),
    )
    return _Template(spec, None if kind in ("label", "symbol") else kind, match["count"], optional, None, ())


def _bound(text: str) -> int | float:
    return float(text) if "e" in text else int(text)


def _address(text: str, optional: bool) -> _Template:
    first, *parts = _split(text)
    match = re.match(r"([=+]?)(\w+)(?::(\w+))?$", first[0])
    if match is None:
        raise ValueError(f"address not understood: [{text}]")
    role = {"": "r", "=": "w", "+": "rw"}[match[1]]
    spec = OperandSpec(match[2], role, "address", space=match[3])
    return _Template(spec, None, None, optional, None, tuple(_conditional(*part) for part in parts))
