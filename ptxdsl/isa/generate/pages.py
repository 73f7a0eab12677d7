"""The table as people read it: a reference page for each chapter, and what ``python -m ptxdsl isa`` prints.

Nothing here knows anything about an instruction: the pages say what the rows say, so that they cannot be wrong alone.
"""

from __future__ import annotations

import re

from ...errors import UnknownInstruction, did_you_mean, similar
from ..table import chapters, completions, lookup, opcodes, rows, special_registers, unknown
from ..forms import Form, Row
from ..specs import Need, OperandSpec, Slot, Special
from ..targets import TARGETS, introduced, lowest, served, version_text
from .effects_text import effects_of

__all__ = ["describe", "lowest_of", "matching", "operands_of", "pages", "summary"]


def pages() -> dict[str, str]:
    """The reference: a Markdown page for each chapter, by the name of its file."""
    found = {f"{chapter}.md": _page(chapter, text) for chapter, text in chapters().items()}
    found["README.md"] = _index()
    return found


def summary() -> str:
    """The size of the table in one line."""
    count = sum(len(rows(opcode)) for opcode in opcodes())
    lines = sum(text.count("\n") for text in chapters().values())
    return f"{len(opcodes())} opcodes in {count} rows, {len(special_registers())} special registers: {lines} lines."


def describe(pattern: str | None = None) -> str:
    """What the table has of a pattern: all opcodes, the rows of one, or the forms of a complete mnemonic.

    ``*`` stands for any text. The second column is the lowest PTX version and target. Raises UnknownInstruction, with
    what is near, where there is nothing.

    >>> print(describe("fma.rn.f32"))
    fma.rn.f32 d:f32, a:f32, b:f32, c:f32    PTX 6.3 sm_75    d = a * b + c, rounded once.
    """
    if not pattern:
        return summary() + "\n\n" + "\n".join(f"{', '.join(group)}" for group in _by_chapter().values())
    if "*" not in pattern and "" in completions(pattern):
        return "\n".join(_form_line(form) for form in lookup(pattern))
    return "\n".join(_special_line(m) if isinstance(m, Special) else _row_line(m) for m in matching(pattern))


def lowest_of(row: Row) -> str:
    """The lowest PTX version and target of a row, whatever its modifiers: ``PTX 7.0 sm_80``."""
    always = tuple(need for need, condition in row.needs if not condition)
    for slot in row.slots:
        if not slot.optional and all(slot.values.values()):
            least = min((need for need in slot.values.values() if need), key=lambda need: lowest((*always, need)))
            always += (least,)
    return _lowest(always)


def _lowest(needs: tuple[Need, ...]) -> str:
    version, target = lowest(needs)
    return f"PTX {version_text(version)} {target}"


def operands_of(row: Row) -> str:
    """The operands of a row as the manual writes them, without types: ``d, a, b{, c}``."""
    text = ""
    for template in row.operands:
        written = _plain(template.spec, tuple(part.spec for part in template.parts), bool(template.count))
        mark = "|" if template.spec.joined else ", " if text else ""
        text += f"{{{mark}{written}}}" if template.optional or template.present else f"{mark}{written}"
    return text


def _plain(spec: OperandSpec, parts: tuple[OperandSpec, ...], braces: bool) -> str:
    if spec.kind == "address":
        return "[" + ", ".join((spec.name, *(part.name for part in parts))) + "]"
    if braces:
        return f"{{{spec.name}, ..}}"
    return f"{{{'-' if spec.selector else '!'}}}{spec.name}" if spec.negatable else spec.name


def _by_chapter() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for opcode, homes in opcodes().items():
        found.setdefault(homes[0], []).append(opcode)
    return found


def matching(pattern: str) -> list[Row | Special]:
    """The rows, and the special registers, that begin with a pattern or match it; UnknownInstruction if none does."""
    begin = re.compile(re.escape(pattern).replace(r"\*", ".*"))
    own = [row for opcode in opcodes() for row in rows(opcode)]
    found: list[Row | Special] = [
        row for row in own if begin.match(re.sub(r"[{}]", "", row.syntax)) or _leads(row, pattern)
    ]
    found += [special for special in special_registers().values() if begin.match(special.name)]
    if not found:
        raise _nothing(pattern)
    return found


def _leads(row: Row, pattern: str) -> bool:
    """Whether the modifiers of the pattern are a beginning of what the row spells."""
    opcode, *tokens = pattern.split(".")
    return row.opcode == opcode and bool(row.completions(tuple(tokens)))


def _nothing(pattern: str) -> UnknownInstruction:
    if "*" in pattern:
        return UnknownInstruction(f"PTX has no instruction like `{pattern}`", hint="`*` stands for any text")
    if pattern.startswith("%"):
        hint = did_you_mean(similar(pattern, special_registers(), 3), "{}")
        return UnknownInstruction(f"PTX has no special register `{pattern}`", hint=hint)
    return unknown(pattern)


def _row_line(row: Row) -> str:
    return f"{row.syntax} {operands_of(row)}    {lowest_of(row)}    {row.doc}"


def _special_line(special: Special) -> str:
    components = "".join(f".{c}" for c in special.components)
    return f"{special.name}{components} {special.type}    {_lowest(special.needs)}    {special.doc}"


def _form_line(form: Form) -> str:
    listed = ", ".join(_typed(spec) for spec in form.operands).replace(", |", "|")
    return f"{form.mnemonic} {listed}".rstrip() + f"    {_lowest(form.needs)}    {form.row.doc}"


def _typed(spec: OperandSpec) -> str:
    if spec.kind == "address":
        return "[" + ", ".join((spec.name, *map(_typed, spec.parts))) + "]"
    if spec.kind != "value":
        return f"{spec.name}:{spec.kind}"
    if spec.name == "_":
        return "_"
    only = "!" if spec.role == "r" and not spec.immediate else ""
    text = f"{'|' if spec.joined else ''}{'' if spec.register else '#'}{spec.name}{only}:{spec.type}"
    return text + (f"*{spec.count}" if spec.count else "") + _limits(spec)


def _limits(spec: OperandSpec) -> str:
    if spec.choices:
        return f"({'|'.join(map(str, spec.choices))})"
    return f"({spec.bounds[0]}..{spec.bounds[1]})" if spec.bounds else ""


# ---------------------------------------------------------------------------------------------------------------------
# The pages


def _page(chapter: str, text: str) -> str:
    """A chapter: under each heading its rows, with what each slot may be."""
    lines = [f"<!-- generated from ptxdsl/isa/chapters/{chapter}.isa by python -m ptxdsl.isa -->", ""]
    headings = re.split(r"^= (.*)$", text, flags=re.MULTILINE)
    counts = dict.fromkeys(opcodes(), 0)
    for level, (heading, part) in enumerate(zip(headings[1::2], headings[2::2])):
        lines += [f"{'##' if level else '#'} {heading}", ""]
        for opcode in re.findall(r"^(?!let |name )([a-z]\w*)", part, re.MULTILINE):
            own = [row for row in rows(opcode) if row.chapter == chapter]
            lines += _entry(own[counts[opcode]])
            counts[opcode] += 1
        lines += [f"- `{_special_line(s)}`" for s in special_registers().values() if chapter == "special"]
    return "\n".join(lines).rstrip() + "\n"


def _entry(row: Row) -> list[str]:
    lines = [f"## `{f'{row.syntax} {operands_of(row)}'.rstrip()}`", "", row.doc, ""]
    lines += [f"- `.{slot.name}`: {_listed(slot)}" for slot in row.slots if slot.name]
    lines += [f"- only where `{condition}`" for condition in row.where]
    if effects := effects_of(row):
        lines.append(f"- {effects}")
    lines += [f"- {_needed(row)}"]
    lines += [f"- {_said(need)} where `{condition}`" for need, condition in row.needs if condition]
    if row.until:
        lines.append(f"- gone since PTX {version_text(row.until)}")
    return [*lines, ""]


def _listed(slot: Slot) -> str:
    """The values of a slot, each with what it needs; of many, the first and the last."""
    shown = [f"`{value}`" + (f" ({_said(need)})" if need else "") for value, need in slot.values.items()]
    return ", ".join(shown if len(shown) <= 40 else [*shown[:12], "..", *shown[-4:]])


def _said(need: Need) -> str:
    return f"PTX {version_text(need.version)}" + "".join(f" {target}" for target in need.targets)


def _needed(row: Row) -> str:
    text = lowest_of(row)
    always = tuple(need for need, condition in row.needs if not condition)
    runs = served(always)
    if runs and runs != tuple(name for name in TARGETS if TARGETS[name].number >= TARGETS[runs[0]].number):
        text += f", on {', '.join(runs)}"
    return text


def _index() -> str:
    lines = [
        "<!-- generated from the instruction table by python -m ptxdsl.isa -->", "", "# The instructions", "",
        summary(), "",
    ]
    for chapter, own in _by_chapter().items():
        lines.append(f"- [{chapter}]({chapter}.md): {', '.join(f'`{opcode}`' for opcode in own)}")
    lines += ["- [special](special.md): the special registers", ""]
    lines += ["## Targets", "", "| target | since PTX |", "| --- | --- |"]
    lines += [f"| `{name}` | {version_text(introduced(name))} |" for name in TARGETS]
    return "\n".join(lines) + "\n"
