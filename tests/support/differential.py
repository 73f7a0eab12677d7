"""Spellings of the table's rows, right ones and wrong ones, judged by NVIDIA's assembler and by the package.

`python tests/support/differential.py [COUNT] [SEED]` draws COUNT variants and prints what the two disagree on, by kind.
A variant is an instruction of a row in which one thing is different: the order of its modifiers, a modifier more or
less, an operand of another kind, the version or the target.

On `AGREED` kinds they must not disagree. Elsewhere ptxas takes what means nothing (modifiers that it ignores, floats
and registers of any type where it does not look, results in special registers), and the package what ptxas expands
into text of its own that then fails.

It also gives what stands in braces the type of its elements only where these agree, and else untyped bits, and takes a
global address out of 32 bits, or of 16. The package refuses both: nobody means them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from isa_modules import VERSIONS, Writer, module, refused, sample

from ptxdsl import isa
from ptxdsl.errors import PtxError
from ptxdsl.isa.forms import Form, Row
from ptxdsl.isa.specs import OperandSpec
from ptxdsl.isa.targets import LATEST, TARGETS, Version, introduced, lowest
from ptxdsl.text import parse
from ptxdsl.verify import verify

__all__ = ["AGREED", "Variant", "disagreements", "offence", "variants"]

_VALUES = {
    "register": ("%p99", "%h99", "%r99", "%rd99", "%f99", "%fd99", "%rb99"),
    "integer": ("0", "1", "-1", "7", "32", "0x1ffffffff", "4U", "WARP_SZ", "3+4"),
    "float": ("1.0", "0f3F800000", "0d3FF0000000000000", "-2.5", "1e3"),
    "sink": ("_",),
    "negated": ("!%p99", "-%r99"),
    "special": ("%tid.x", "%clock64", "%laneid"),
    "symbol": ("global_variable", "shared_variable", "global_variable+4", "callee"),
    "vector": ("{%r98, %r99}", "{%rd99}", "{1, 2}", "{_, %r99}"),
    "address": ("[%rd99]", "[%r99]", "[16]", "[global_variable]"),
    "part": ("%r99.b1", "%r99.h0"),
}
_ADDRESSES = {
    "address register": ("[%rd99]", "[%rd99+4]", "[%rd99+-4]", "[ %rd99 + 8 ]", "[%rd99-4]"),
    "address 32": ("[%r99]", "[%r99+4]"),
    "address number": ("[16]", "[0x100]"),
    "address variable": ("[global_variable]", "[shared_variable+4]", "[const_variable]", "[local_variable]"),
    "address odd": ("[%f99]", "[%h99]", "[%p99]", "%rd99", "[_]", "[-4]", "global_variable"),
}


class Variant(NamedTuple):
    """One instruction, and what was done to it."""

    kind: str
    line: str
    version: Version
    target: str
    form: Form


def variants(rng: np.random.Generator, count: int) -> Iterator[Variant]:
    """So many variants, of rows drawn one after the other."""
    rows = [row for opcode in isa.opcodes() if opcode != "call" for row in isa.rows(opcode)]
    words = sorted({token for row in rows for slot in row.slots for value in slot.values for token in value.split(".")})
    while count > 0:
        for index in rng.permutation(len(rows)):
            for variant in _variants(rows[index], rng, words):
                yield variant
                count -= 1
            if count <= 0:
                break


def _variants(row: Row, rng: np.random.Generator, words: list[str]) -> Iterator[Variant]:
    forms = sample(row, rng, 1)
    form = forms[rng.integers(len(forms))]
    if form.opcode == "cvta" and "u32" in form.tokens:
        return
    version, target = lowest(form.needs)
    latest = version if row.until else LATEST
    writer = Writer()
    operands = [writer.operand(spec, form) for spec in form.operands]
    tokens = list(form.tokens)

    def made(kind: str, tokens: list[str], operands: list[str], at: Version = latest, on: str = target) -> Variant:
        text = ""
        for spec, operand in zip([*form.operands, None, None], operands):
            text += ("|" if spec is not None and spec.joined else ", " if text else "") + operand
        return Variant(kind, f"{'.'.join((form.opcode, *tokens))} {text}".rstrip() + ";", at, on, form)

    for _ in range(2):
        yield made("order", [tokens[at] for at in rng.permutation(len(tokens))], operands)
    own = [token for slot in row.slots for value in slot.values for token in value.split(".")]
    at = int(rng.integers(len(tokens) + 1))
    word = str(rng.choice(own if own and rng.random() < 0.5 else words))
    yield made("modifier added", [*tokens[:at], word, *tokens[at:]], operands)
    if tokens:
        at = int(rng.integers(len(tokens)))
        yield made("modifier left out", [*tokens[:at], *tokens[at + 1 :]], operands)
        yield made("modifier changed", [*tokens[:at], word, *tokens[at + 1 :]], operands)
    for at, spec in enumerate(form.operands):
        for kind, text in _alternatives(spec, operands[at], rng):
            yield made(kind, tokens, [*operands[:at], text, *operands[at + 1 :]])
    yield made("operand left out", tokens, operands[:-1])
    yield made("operand added", tokens, [*operands, str(rng.choice(["%r99", "%rd99", "%p99", "0", "%f99"]))])
    others = [name for name in TARGETS if introduced(name) <= latest]
    yield made("target", tokens, operands, on=str(rng.choice(others)))
    earlier = [other for other in VERSIONS if introduced(target) <= other]
    if earlier:
        yield made("version", tokens, operands, at=earlier[rng.integers(len(earlier))])


def _alternatives(spec: OperandSpec, operand: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Other texts for an operand, each with what it is instead of what."""
    what = "address" if spec.kind == "address" else "result" if spec.written else spec.kind
    if what == "address":
        for kind, choices in _ADDRESSES.items():
            inner = re.match(r"\[[^,\]]+", operand)
            assert inner is not None
            text = str(rng.choice(choices))
            if text.endswith("]") and inner.end() < len(operand) - 1:  # the other operands in the brackets stay
                text = text[:-1] + operand[inner.end():]
            yield kind, text
        return
    if operand.startswith("{"):
        items = operand[1:-1].split(", ")
        at = int(rng.integers(len(items)))
        for kind in ("register", "integer", "float", "sink", "special"):
            changed = [*items[:at], str(rng.choice(_VALUES[kind])), *items[at + 1 :]]
            yield f"{kind} in a vector for {what}", "{" + ", ".join(changed) + "}"
        yield f"one less in a vector for {what}", "{" + ", ".join(items[:-1] or ["_"]) + "}"
        return
    for kind in ("register", "integer", "float", "sink", "negated", "special", "symbol", "vector", "address", "part"):
        yield f"{kind} for {what}", str(rng.choice(_VALUES[kind]))


def offence(variant: Variant) -> str | None:
    """Why the package refuses a variant; None if it takes it."""
    try:
        found = parse(module([variant.line], variant.target, variant.version)[0])
        verify(found, foreign=True)
    except PtxError as error:
        return error.message.split("\n", maxsplit=1)[0]
    return None


def disagreements(drawn: list[Variant]) -> Iterator[tuple[Variant, str | None, str | None]]:
    """The variants that only one of the two takes, with the reasons of the package and of the assembler."""
    groups: dict[tuple[Version, str], list[Variant]] = defaultdict(list)
    for variant in drawn:
        groups[variant.version, variant.target].append(variant)
    for (version, target), group in groups.items():
        for first in range(0, len(group), 400):
            part = group[first : first + 400]
            out = refused([variant.line for variant in part], target, version)
            for at, variant in enumerate(part):
                mine = offence(variant)
                if (mine is None) != (at not in out):
                    yield variant, mine, out.get(at)


AGREED = ("order", "integer for result", "target", "version")
"""The kinds of which every variant is judged the same."""


def main() -> None:
    """The command."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    drawn = list(variants(rng, count))
    kinds = Counter(variant.kind for variant in drawn)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for variant, mine, its in disagreements(drawn):
        which = "taken here only" if mine is None else "taken by ptxas only"
        said = its if mine is None else mine
        found[which, variant.kind].append(
            f"{variant.line[:150]}  ({variant.version[0]}.{variant.version[1]} {variant.target})  {said}"
        )
    for (which, kind), cases in sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"{len(cases):6} of {kinds[kind]:6}  {which}: {kind}")
        for text in cases[:int(sys.argv[3]) if len(sys.argv) > 3 else 4]:
            print(f"            {text}")
    print(f"{sum(map(len, found.values()))} of {len(drawn)}")


if __name__ == "__main__":
    main()
