"""Recorded launches made ready for a GPU: repeated on the emulator, assembled, annotated with lines, and packed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.stores import stores_through
from ..errors import LaunchError, PtxError
from ..isa import Form
from ..isa.targets import TARGETS, serves
from ..text import parse
from . import bare
from .bare.tape import Case, Code, Tape
from .emulation import Repeated, repeat
from .pieces import Progress, in_pieces
from .recording import AGAIN

if TYPE_CHECKING:
    from ..emulator.program import Program
    from ..ir import Module

__all__ = ["MOST", "check", "merged", "pack"]

MOST = 64 << 20
"""Bytes of a folder that is packed."""
_SCRIPT = '''"""Repeat the recorded launches on this machine's GPU; needs Python and the driver. See --help."""

import sys

from gpu_replay.command import main

if __name__ == "__main__":
    sys.exit(main(__file__, sys.argv[1:]))
'''
_ROOM = 4 << 20
"""Bytes that are left for what is no blob."""


def merged(folders: Iterable[Path], into: Path) -> Tape:
    """The launches that several processes recorded, each but once, as one tape."""
    tape, known = Tape(into), set[Case]()
    for folder in sorted(folders):
        part = Tape.load(folder)
        tape.left_out.update(part.left_out)
        for case in part.cases:
            what = case._replace(test="")
            if what in known:
                tape.left_out[AGAIN] += 1
                continue
            known.add(what)
            _copy(part, tape, case)
            tape.cases.append(case)
            tape.codes.setdefault(case.code, part.codes[case.code])
    return tape


def check(out: Path, arch: str) -> int:
    """The number of a GPU for which a folder can be made; LaunchError if it is none, or the folder is not empty."""
    found = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    if not found or not any(target.number == int(found[1]) for target in TARGETS.values()):
        raise LaunchError(f"{arch!r} is no GPU", hint="write `--arch sm_90`")
    if out.exists() and any(out.iterdir()):
        raise LaunchError(f"{out} is not empty", hint="name a folder that is not there yet")
    return int(found[1])


def pack(
    recorded: Tape, out: Path, arch: str, *, most: int = MOST, kept: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Tape:
    """Write a folder for a machine with a GPU of ``arch``: ``python out/replay.py`` repeats the launches there.

    ``kept`` is a folder for what is done so far, from which an interrupted call goes on. Raises LaunchError as
    :func:`check` does.
    """
    number = check(out, arch)
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="ptxdsl-gpu-check-") as place:
            return pack(recorded, out, arch, most=most, kept=Path(place), progress=progress)
    tape = Tape(out / "launches")
    tape.target = f"sm_{number}"
    closed = list(_closed(recorded, kept / "repeated", progress))
    tape.left_out.update(recorded.left_out)
    keys = sorted({recorded.cases[n].code for n, _ in closed})
    codes = _assembled(recorded, keys, number, kept / tape.target, progress)
    _fill(recorded, tape, closed, codes, most - _ROOM)
    tape.save()
    source = Path(bare.__file__).parent
    shutil.copytree(source, out / "gpu_replay", ignore=shutil.ignore_patterns("__pycache__"))
    (out / "replay.py").write_text(_SCRIPT, "utf-8")
    return tape


# ---------------------------------------------------------------------------------------------------------------------
# Repeated on the emulator, and assembled


def _closed(recorded: Tape, kept: Path, progress: Progress) -> Iterator[tuple[int, Repeated]]:
    """The numbers of the launches whose results depend on their parameters and memory only."""
    numbers = sorted(range(len(recorded.cases)), key=lambda number: (recorded.cases[number].code, number))
    for number, one in in_pieces("repeated on the emulator", _repeated, recorded, numbers, kept, progress):
        if one.problem:
            recorded.left_out[one.problem] += 1
        else:
            yield number, one


def _repeated(tape: Tape, numbers: Sequence[int]) -> list[Repeated]:
    programs: dict[str, Program] = {}
    return [repeat(tape, tape.cases[number], programs) for number in numbers]


def _assembled(
    recorded: Tape, keys: Sequence[str], number: int, kept: Path, progress: Progress
) -> dict[str, tuple[Code, bytes]]:
    """What is known of each module, and its machine code."""
    return dict(in_pieces("assembled", partial(_codes, number), recorded, keys, kept, progress))


def _codes(number: int, tape: Tape, keys: Sequence[str]) -> list[tuple[Code, bytes]]:
    return [_code(tape.get(key).decode(), number) for key in keys]


def _code(text: str, number: int) -> tuple[Code, bytes]:
    from ..gpu.assembler import assemble_module

    module = parse(text)
    known = _described(module, Code(""))
    target = _target(module.target, number)
    if target is None:
        return known._replace(refused=f"it is for {module.target}"), b""
    try:
        return known, assemble_module(text, target).cubin
    except PtxError as error:
        lines = error.message.splitlines()
        return known._replace(refused=" ".join(line.strip() for line in lines[:2])), b""


def _target(wanted: str, number: int) -> str | None:
    """What to assemble for; None if a GPU of that number cannot run it."""
    targets = sorted((t for t in TARGETS.values() if t.number == number), key=lambda target: target.suffix)
    try:
        return next((t.name for t in targets if serves(t.name, wanted)), None)
    except KeyError:  # of a GPU that no assembler knows any more
        return targets[0].name


def _described(module: Module, code: Code) -> Code:
    """The instructions of a module, and the lines that store through the parameters."""
    forms = {i.form.mnemonic: i.form for function in module.functions for i in function.instructions()}
    loose = sorted(name for name, form in forms.items() if _is_loose(form))
    stores: dict[str, dict[str, list[int]]] = {}
    places: dict[str, str] = {}
    for entry in (f for f in module.functions if f.kind == "entry" and f.body is not None):
        through = stores_through(module, entry.name)
        for number, parameter in enumerate(entry.parameters):
            found = through.get(parameter.name, ())
            if found:
                stores.setdefault(entry.name, {})[str(number)] = [i.line for i in found]
            places.update({str(i.line): f"{i.loc.file}:{i.loc.line}" for i in found if i.loc is not None})
    return code._replace(forms=tuple(sorted(forms)), loose=tuple(loose), stores=stores, places=places)


def _is_loose(form: Form) -> bool:
    """Whether PTX leaves the last bits of its results open in a kernel.

    Such are approximations, sums of floats in a tensor core, and what an assembler may fuse: see docs/numerics.md.
    """
    if "approx" in form.tokens or "full" in form.tokens:
        return True
    if not any(token[:1] == "f" or "bf16" in token for token in form.tokens):
        return False
    roundings = [slot.values.keys() for slot in form.row.slots if slot.optional and "rn" in slot.values]
    may_be_fused = any(not values & set(form.tokens) for values in roundings)
    return may_be_fused or "mma" in form.mnemonic


# ---------------------------------------------------------------------------------------------------------------------
# Packed


def _fill(
    recorded: Tape, tape: Tape, closed: Iterable[tuple[int, Repeated]], codes: dict[str, tuple[Code, bytes]], most: int
) -> None:
    """Put launches into a tape, the small ones first, as many as there is room for."""
    chosen: list[tuple[int, Case]] = []
    for number, one in sorted(closed, key=lambda each: sum(area.size for area in recorded.cases[each[0]].areas)):
        case = recorded.cases[number]
        code, cubin = codes[case.code]
        if tape.nbytes + sum(map(recorded.size_of, _keys(case))) + len(cubin) // 2 > most:
            tape.left_out[f"it does not go into {(most + _ROOM) >> 20} MiB"] += 1
            continue
        _copy(recorded, tape, case)
        masks = [tape.add(mask) if mask else "" for mask in one.unspecified]
        areas = tuple(area._replace(unspecified=mask) for area, mask in zip(case.areas, masks))
        chosen.append((number, case._replace(areas=areas)))
        if case.code not in tape.codes:
            tape.codes[case.code] = code._replace(text=case.code, cubin=tape.add(cubin) if cubin else "")
    tape.cases = [case for _, case in sorted(chosen)]


def _keys(case: Case) -> set[str]:
    """The blobs of a launch as it was recorded."""
    return {key for a in case.areas for key in (a.before, a.after, a.low, a.high) if key} | {case.code}


def _copy(source: Tape, tape: Tape, case: Case) -> None:
    """Copy the blobs of a launch."""
    for key in _keys(case):
        tape.add(source.get(key))
