"""The performance directives of a kernel: from options of ``ptx_kernel``, to its entry, against a launch's geometry."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ..errors import LaunchError, Loc, TargetError, TraceError, caller
from ..ir import Directive, Module
from ..isa import Need
from ..isa.directives import DIRECTIVES
from ..isa.targets import lowest, unmet
from ..launch import LaunchConfig, clustered

__all__ = ["OPTIONS", "add", "check", "of_options"]

OPTIONS = (
    "maxntid", "reqntid", "minnctapersm", "maxnreg", "reqnctapercluster", "explicitcluster",
    "maxclusterrank", "blocksareclusters", "minperctamemory", "pragma",
)
"""Those that ``ptx_kernel`` takes."""


def of_options(options: Mapping[str, Any], loc: Loc) -> list[Directive]:
    """The directives that options of ``ptx_kernel`` stand for."""
    found: list[Directive] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        numbers = tuple(_plain(number) for number in (value if isinstance(value, tuple) else (value,)))
        if name == "pragma":
            if not numbers or not all(isinstance(text, str) for text in numbers):
                raise TraceError(f"pragma is a str or a tuple of them, not {value!r}", loc=loc)
            found.append((name, numbers))
            continue
        most = DIRECTIVES[name].most
        if most == 0:
            if value is not True:
                raise TraceError(f"{name} takes no number; it is True or False, not {value!r}", loc=loc)
            found.append((name, ()))
            continue
        if not 1 <= len(numbers) <= most or not all(type(n) is int and n > 0 for n in numbers):
            wanted = "a positive int" if most == 1 else "a positive int or a tuple of 1 to 3"
            raise TraceError(f"{name} is {wanted}, not {value!r}", loc=loc)
        found.append((name, numbers))
    return found


def _plain(number: Any) -> Any:
    """An int of numpy's as Python's."""
    return number if isinstance(number, (bool, str)) or not hasattr(number, "__index__") else operator.index(number)


def add(module: Module, entry: str, directives: Sequence[Directive], arch: str, loc: Loc) -> None:
    """Add performance directives to an entry; the module's version and target rise to what they need."""
    names = [name for name, _ in directives]
    for name in names:
        if name in DIRECTIVES and DIRECTIVES[name].excludes in names:
            hint = "reqntid alone says both" if "reqntid" in names else "leave one of them out"
            raise TraceError(f"{name} and {DIRECTIVES[name].excludes} exclude each other", loc=loc, hint=hint)
    if "minnctapersm" in names and not {"maxntid", "reqntid"}.intersection(names):
        raise TraceError("minnctapersm means nothing without maxntid or reqntid", loc=loc, hint="`maxntid=256`")
    needs = tuple(need for name in names if name in DIRECTIVES for need in DIRECTIVES[name].needs)
    module.function(entry).directives.extend(directives)
    if arch == "auto":
        module.version, module.target = lowest((Need(module.version, (module.target,)), *needs))
        return
    module.version = max(module.version, *(need.version for need in needs), (1, 0))
    if unmet(needs, module.version, module.target):
        wanted = " or ".join(needs[0].targets)
        raise TargetError(f"kernel `{entry}` is for {module.target}, and its directives need {wanted}", loc=loc)


def check(entry: str, directives: Iterable[Directive], geometry: LaunchConfig) -> None:
    """Refuse a geometry that the directives exclude."""
    asked = {name: [n for n in numbers if isinstance(n, int)] for name, numbers in directives}
    if "reqnctapercluster" in asked:
        asked.pop("explicitcluster", None)  # it says which: nvcc writes both for __cluster_dims__
    for name, numbers in asked.items():
        _check(entry, name, numbers, geometry)


def _check(entry: str, name: str, numbers: list[int], geometry: LaunchConfig) -> None:
    sizes = (*numbers, 1, 1)[:3] if len(numbers) < 3 else tuple(numbers[:3])
    if name == "maxntid" and geometry.threads > prod(sizes):
        raise LaunchError(
            f"block {geometry.block} has {geometry.threads} threads; kernel `{entry}` is made for at most "
            f"{prod(sizes)} (maxntid)", loc=caller(),
        )
    if name == "reqntid" and geometry.block != sizes:
        raise LaunchError(
            f"block is {geometry.block}; kernel `{entry}` is made for {sizes} only (reqntid)", loc=caller(),
            hint=f"`block={sizes}`",
        )
    if name == "reqnctapercluster" and geometry.cluster is None:
        clustered(sizes, geometry.grid)
    elif name == "reqnctapercluster" and geometry.cluster != sizes:
        raise LaunchError(
            f"cluster is {geometry.cluster}; kernel `{entry}` is made for {sizes} only (reqnctapercluster)",
            loc=caller(), hint=f"`.configure(grid, block, cluster={sizes})`",
        )
    if name == "explicitcluster" and geometry.cluster is None:
        raise LaunchError(
            f"kernel `{entry}` is launched without a cluster, which it asks for (explicitcluster)",
            loc=caller(), hint="`.configure(grid, block, cluster=...)`",
        )
    blocks = prod(geometry.cluster or ())
    if name == "maxclusterrank" and blocks > numbers[0]:
        raise LaunchError(
            f"cluster {geometry.cluster} has {blocks} blocks; kernel `{entry}` is made for at most "
            f"{numbers[0]} (maxclusterrank)", loc=caller(),
        )
