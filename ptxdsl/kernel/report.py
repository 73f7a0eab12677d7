"""The report on a kernel: Python, PTX and SASS side by side with the share of each line, and pictures of what it costs.

The lines are found in the texts, by the ``.loc`` of PTX and the marks of nvdisasm, so that PTX from elsewhere has a
report too. Machine code is shown where NVIDIA's tools are; without them the report says so.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import AssembleError, LaunchError, Loc, caller
from ..html_page import Bar, bars, cell, document, fragment, sides
from ..isa.targets import Limits, assembled

if TYPE_CHECKING:
    from ..emulator.tools.profile_data import LineProfile, ProfileData
    from ..gpu.cubin import Attributes
    from .compiled_kernel import CompiledKernel
    from ..launch import LaunchConfig

__all__ = ["Report", "check_path", "kernel_report"]

_SHOWN = 24
"""Bars of a picture."""


class Report:
    """HTML on one kernel: a notebook shows it, ``write`` makes a file of it."""

    def __init__(self, name: str, body: str) -> None:
        self.name, self.body = name, body

    def write(self, path: str | Path | None) -> Report:
        """Write it as a page, complete in itself; nothing for None."""
        if path is not None:
            Path(path).write_text(document(f"Report on {self.name}", self.body), "utf-8")
        return self

    def _repr_html_(self) -> str:
        return fragment(self.body)

    def __repr__(self) -> str:
        return f"<report on {self.name}>"


def check_path(path: object) -> None:
    """Raise where the launch's first argument stands in place of the path."""
    if path is not None and not isinstance(path, (str, PathLike)):
        raise LaunchError(
            f"the path of a report is a str, a Path or None, and {type(path).__name__} came", loc=caller(),
            hint='before the arguments of the launch: `k[grid, block].report("report.html", ...)`',
        )


class _Row(NamedTuple):
    """A line of a listing: the line of source that it belongs to, its number or address, its text."""

    loc: Loc | None
    at: str
    text: str


def kernel_report(
    kernel: CompiledKernel, arch: str | None, geometry: LaunchConfig | None = None, counted: ProfileData | None = None
) -> Report:
    """The report on one entry, with what a launch has counted."""
    lines = [line for line in counted.lines if line.kernel == kernel.entry] if counted is not None else []
    ptx = list(_ptx_rows(kernel.text, kernel.entry))
    sass, attributes, missing = _machine_code(kernel, arch)
    of_lines: dict[object, float] = {line.loc: line.share for line in lines}
    of_ptx: dict[object, float] = {str(one.ptx_line): one.share for line in lines for one in line.instructions}
    python = _python_rows({row.loc for row in ptx if row.loc is not None})
    tables = [
        _table(name, rows, [shares.get(row.at if name == "PTX" else row.loc, 0.0) for row in rows], bool(lines))
        for name, rows, shares in (("Python", python, of_lines), ("PTX", ptx, of_ptx), ("SASS", sass, of_lines)) if rows
    ]
    body = f"<h1>{escape(kernel.entry)}</h1>\n"
    if counted is not None and geometry is not None:
        body += f"<p>{escape(_summary(kernel.entry, counted, lines, geometry))}</p>\n"
    body += sides(tables) + f"<p>{escape(missing)}</p>\n" * bool(missing)
    if attributes is not None:
        body += _resources(attributes, arch or assembled(kernel.module.target), geometry)
    return Report(kernel.entry, body + _coalescing(lines) + _conflicts(lines))


def _summary(entry: str, counted: ProfileData, lines: list[LineProfile], geometry: LaunchConfig) -> str:
    from ..emulator.tools.profile_data import total
    from ..emulator.tools.profile_table import summary

    launched = summary(entry, counted.launches[entry], total(lines)).partition(": ")[2]
    return f"grid {geometry.grid}, block {geometry.block}: {launched}"


# The listings


def _ptx_rows(text: str, entry: str) -> Iterator[_Row]:
    """The text of an entry without its ``.loc``."""
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.MULTILINE))
    inside, loc = False, None
    for number, line in enumerate(text.splitlines(), 1):
        begins = re.match(rf".*\.entry\s+{re.escape(entry)}\b", line)
        inside = inside or begins is not None
        if not inside:
            continue
        found = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line)
        if found:
            loc = Loc(str(files.get(found[1])), int(found[2]))
            continue
        code = line.strip().endswith(";") and not line.strip().startswith(".")
        yield _Row(loc if code else None, str(number), line.expandtabs(4))
        if line.startswith("}"):
            return


def _python_rows(locs: set[Loc]) -> list[_Row]:
    """The lines of source that have instructions, and those between them."""
    rows = []
    for file in sorted({loc.file for loc in locs}):
        numbers = [loc.line for loc in locs if loc.file == file]
        if len({loc.file for loc in locs}) > 1:
            rows.append(_Row(None, "", Loc(file, 0).shown))
        for number in range(min(numbers), max(numbers) + 1):
            text = linecache.getline(file, number).rstrip("\n").expandtabs(4)
            rows.append(_Row(Loc(file, number) if number in numbers else None, str(number), text))
    return rows


def _machine_code(kernel: CompiledKernel, arch: str | None) -> tuple[list[_Row], Attributes | None, str]:
    """The SASS of an entry and what it takes, and what there is to say where a tool is missing."""
    from ..gpu.cubin import disassemble

    try:
        made = kernel.assembled(arch or assembled(kernel.module.target))
    except AssembleError as error:
        return [], None, f"Without machine code: {error.message}"
    attributes = made.attributes(kernel.entry)
    try:
        return list(_sass_rows(disassemble(made.cubin, lines=True), kernel.entry)), attributes, ""
    except AssembleError as error:
        return [], attributes, f"Without SASS: {error.message}"


def _sass_rows(text: str, entry: str) -> Iterator[_Row]:
    pattern = rf"^\.text\.{re.escape(entry)}:\n(.*?)(?=^\s*\.section|^//-----|\Z)"
    section = re.search(pattern, text, re.DOTALL | re.MULTILINE)
    loc, marked = None, False
    for line in section[1].splitlines() if section else ():
        mark = re.match(r'\s*//## File "(.*?)", line (\d+)', line)
        if mark and not marked:  # of what is inlined the innermost line comes first
            loc = Loc(mark[1], int(mark[2]))
        marked = mark is not None
        code = re.match(r"\s*/\*([0-9a-f]+)\*/\s*(.*?)\s*;", line)
        if code:
            yield _Row(loc, code[1], f"    {code[2]}")
        elif re.match(r"\.\w+:", line):
            yield _Row(None, "", line)


def _table(name: str, rows: list[_Row], shares: list[float], counted: bool) -> str:
    """A listing; of SASS, which the emulator does not run, the shares are those of its lines, and have no numbers."""
    most = max(shares, default=0.0) or 1.0
    head = f'<tr><th></th><th class="code">{name}</th>' + "<th>share</th>" * counted + "</tr>"
    body = ""
    for row, share in zip(rows, shares):
        number = f"{100 * share:.1f} %" if share and name != "SASS" else ""
        data = f' data-at="{escape(f"{row.loc.file}:{row.loc.line}")}"' if row.loc is not None else ' class="idle"'
        shown = cell(number, share=share / most) if counted else ""
        body += f"<tr{data}>{cell(row.at, 'at')}{cell(row.text, 'code')}{shown}</tr>\n"
    return f"<table><thead>{head}</thead>\n<tbody>\n{body}</tbody></table>"


# The pictures


def _resources(taken: Attributes, target: str, geometry: LaunchConfig | None) -> str:
    from ..gpu.occupancy import occupancy

    spilled = taken.spill_store_bytes + taken.spill_load_bytes
    note = f"{taken.num_regs} of 255" + f", {spilled:,} bytes spilled" * bool(spilled)
    share = taken.num_regs / 255
    rows = [Bar("registers a thread", [(share, "bad" if spilled else "good"), _rest(share)], note)]
    if taken.shared_size_bytes:
        share = taken.shared_size_bytes / Limits().static_shared
        note = f"{taken.shared_size_bytes:,} of {Limits().static_shared:,} bytes"
        rows.append(Bar("static shared memory", [(share, "good"), _rest(share)], note))
    if geometry is not None:
        found = occupancy(taken, target, geometry.threads, geometry.shared)
        note = f"{found.warps} of {found.max_warps} warps, limited by {' and '.join(found.limited_by)}"
        rows.append(Bar("occupancy", [(found.fraction, "good"), _rest(found.fraction)], note))
    return f"<h3>What it takes of {escape(target)}</h3>\n{bars(rows, 1.0)}"


def _rest(share: float) -> tuple[float, str]:
    return 1.0 - share, "rest"


def _named(line: LineProfile) -> tuple[str, str]:
    """What stands before the bar of a line, and which line it marks."""
    text = f"{line.loc.line}: {line.source}"
    return text if len(text) <= 48 else f"{text[:47]}…", f"{line.loc.file}:{line.loc.line}"


def _coalescing(lines: list[LineProfile]) -> str:
    """Of the sectors that each line moves, how much its threads asked for."""
    rows = []
    for line in lines:
        counters, (name, at) = line.counters, _named(line)
        if not counters.global_sectors:
            continue
        asked = (counters.read.get("global", 0) + counters.written.get("global", 0)) / 32
        used = min(asked, counters.global_sectors)
        share, each = used / counters.global_sectors, counters.sectors_per_request
        note = f"{counters.global_sectors:,} sectors, {each:.1f} a request, {100 * share:.0f} % of their bytes used"
        rows.append(Bar(name, [(used, "good"), (counters.global_sectors - used, "bad")], note, at))
    return _picture("Coalescing: sectors of global memory", rows)


def _conflicts(lines: list[LineProfile]) -> str:
    """Of the wavefronts of shared memory of each line, how many are there for bank conflicts."""
    rows = []
    for line in lines:
        counters, (name, at) = line.counters, _named(line)
        if not counters.shared_wavefronts:
            continue
        needed = counters.shared_wavefronts - counters.bank_conflicts
        note = f"{counters.shared_wavefronts:,} wavefronts, {counters.conflict_ways:.1f} for each that is needed"
        rows.append(Bar(name, [(needed, "good"), (counters.bank_conflicts, "bad")], note, at))
    return _picture("Bank conflicts: wavefronts of shared memory", rows)


def _picture(title: str, rows: list[Bar]) -> str:
    rows.sort(key=lambda row: -sum(amount for amount, _ in row.parts))
    return f"<h3>{escape(title)}</h3>\n{bars(rows[:_SHOWN])}" if rows else ""
