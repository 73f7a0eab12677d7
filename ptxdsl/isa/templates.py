"""The operands that a row writes, with types and counts still expressions, and what they are for chosen modifiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from ..types import TYPES
from .expressions import evaluate, number
from .reprs import LazyRepr
from .specs import OperandSpec

__all__ = ["Template", "choices", "operands"]


@dataclass(slots=True, eq=False, repr=False)
class Template(LazyRepr):
    """An operand as written in a row: its types and counts still expressions.

    ``present`` is the condition under which it may or must stand there, ``other`` what may stand in its place.
    """

    spec: OperandSpec
    type: str = ""
    count: str = ""
    optional: bool = False
    present: str = ""
    parts: tuple[Template, ...] = ()
    other: Template | None = None

    def choices(self) -> Iterator[Template | None]:
        """What may stand in its place: nothing, itself, its alternative."""
        if self.optional:
            yield None
        if any(part.optional for part in self.parts):
            yield from (replace(self, parts=parts) for parts in choices(self.parts))
        else:
            yield self
        if self.other:
            yield self.other

    def resolve(self, names: dict[str, Any], default: str | None) -> OperandSpec:
        """The operand for a choice of modifiers; ``default`` is its type if the row gives none."""
        spec = self.spec
        if spec.kind != "value":
            parts = tuple(part.resolve(names, default) for part in self.parts if part.stands(names))
            return replace(spec, parts=parts) if parts else spec
        asked = evaluate(self.type, names) if self.type else default
        if asked is None:
            raise ValueError(f"operand {spec.name} has no type")
        types = tuple(TYPES[each] for each in asked) if isinstance(asked, tuple) else ()
        kind = types[0] if types else TYPES[asked]
        count = len(types) or (evaluate(self.count, names) if self.count else 0)
        return replace(
            spec, type=kind, types=types, count=count if isinstance(count, int) else number(count),
            immediate=spec.immediate and (kind in _NUMERIC or not spec.register),
            sink=spec.sink and (bool(count) or not self.count),
        )

    def stands(self, names: dict[str, Any]) -> bool:
        """Whether the operand can be there with these modifiers."""
        return not self.present or bool(evaluate(self.present, names))


_NUMERIC = (*(TYPES[f"{kind}{bits}"] for kind in "usb" for bits in (8, 16, 32, 64)), TYPES["f32"], TYPES["f64"])
"""The types that a number can be written in."""


def choices(templates: tuple[Template, ...]) -> list[tuple[Template, ...]]:
    """Every way to choose among operands that may be absent or something else; the shortest first."""
    ways = (tuple(t for t in way if t) for way in product(*(t.choices() for t in templates)))
    return sorted(ways, key=len)


# ---------------------------------------------------------------------------------------------------------------------
# Reading them

_ROLES = {"": "r", "=": "w", "+": "rw"}
_PARTS = {
    "": "", "part": "b[0-3]|h[01]", "halves": "h[0-3]{2}", "bytes": "b[0-7]{4}", "half": "h(?!$)1?0?",
    "byte": "b(?!$)3?2?1?0?",
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
    first, either, other = item.partition(" or [")
    if either:
        return replace(_operand(first, optional), other=_operand(f"[{other}", False))
    for word in (" if ", " when "):
        if optional and word in item:
            item, _, condition = item.rpartition(word)
            return replace(_operand(item, word == " when "), present=condition)
    return _operand(item, optional)


@cache
def _operand(text: str, optional: bool) -> Template:
    if text.startswith("["):
        return _address(text[1:-1], optional)
    bar = text.startswith("|")
    rest = text[bar:]
    negatable = rest.startswith(("{!}", "{-}"))
    rest = rest[3 * negatable :]
    name = rest.lstrip("=+#~&$")
    mark = rest[: len(rest) - len(name)]
    name, _, count = name.partition("*")
    name, numbers = _numbers(name)
    name, _, kind = name.partition(":")
    only = len(name) - len(name := name.rstrip("!"))
    name, _, part = name.partition(".")
    if not name.isidentifier() or only > 2 or part.removesuffix("+") not in _PARTS:
        raise ValueError(f"operand not understood: {text!r}")
    written = "=" in mark or name == "_" or bar or (name.startswith("d") and "#" not in mark)
    role = "rw" if "+" in mark else "w" if written else "r"
    spec = OperandSpec(
        name, role, kind if kind in ("label", "symbol") else "value", register="#" not in mark and name != "_",
        immediate=role == "r" and not only, fixed=only == 2, negatable=negatable, sink="~" in mark or name == "_",
        joined=bar, variable="&" in mark or "$" in mark, special="$" in mark, **numbers,
        selector=_PARTS[part.removesuffix("+")], selected=part.endswith("+"),
    )
    return Template(spec, "" if spec.kind != "value" else kind, count, optional)


def _numbers(text: str) -> tuple[str, dict[str, Any]]:
    """An operand without the numbers in parentheses at its end, and which it may be: ``0..64 by 8`` or ``4|8``."""
    rest, opening, inner = text.removesuffix(")").rpartition("(")
    if not (opening and text.endswith(")") and inner.lstrip("-")[:1].isdigit()):
        return text, {}
    low, between, high = inner.partition("..")
    if not between:
        return rest, {"choices": tuple(map(int, inner.split("|")))}
    high, _, step = high.partition(" by ")
    return rest, {"bounds": (_bound(low), _bound(high)), "step": int(step or 1)}


def _bound(text: str) -> int | float:
    return float(text) if "e" in text else int(text)


def _address(text: str, optional: bool) -> Template:
    first, *parts = _split(text)
    base, _, space = first[0].partition(":")
    name = base.lstrip("=+")
    mark = base[: len(base) - len(name)]
    if not name.isidentifier() or mark not in _ROLES:
        raise ValueError(f"address not understood: [{text}]")
    spec = OperandSpec(name, _ROLES[mark], "address", space=space or None)
    return Template(spec, optional=optional, parts=tuple(_conditional(*part) for part in parts))
