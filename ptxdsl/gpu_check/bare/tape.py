"""Recorded launches as a folder: ``tape.json`` says what was launched, ``blobs.bin`` has the bytes, each but once."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Area", "Case", "Code", "Parameter", "Relocation", "Tape", "filled"]

Key = str
"""Names a blob; the empty one none."""


class Relocation(NamedTuple):
    """The eight bytes at ``offset`` are the address of the byte ``inside`` an area."""

    offset: int
    area: int
    inside: int


class Parameter(NamedTuple):
    """The bytes of a parameter in hexadecimal digits, and the addresses in it."""

    data: str
    relocations: tuple[Relocation, ...] = ()


class Area(NamedTuple):
    """Memory that a launch can reach, before and after it.

    ``start`` is its address modulo 256. A module's ``variable`` of that name lies where the module is loaded. ``dtype``
    is numpy's name of the elements' type, where it is known. A byte of ``unspecified`` is not 0 where that of the
    memory depends on the schedule. ``low`` and ``high`` are what a result may lie between, elements of ``dtype``.
    """

    name: str
    dtype: str
    size: int
    start: int
    before: Key
    after: Key
    relocations: tuple[Relocation, ...] = ()
    relocations_after: tuple[Relocation, ...] = ()
    variable: str = ""
    unspecified: Key = ""
    low: Key = ""
    high: Key = ""


class Case(NamedTuple):
    """One launch. ``form`` is the instruction that it is about, where it is about one.

    ``incomparable`` says why the results of a GPU are others by right.
    """

    test: str
    form: str
    code: Key
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int] | None
    cooperative: bool
    parameters: tuple[Parameter, ...]
    areas: tuple[Area, ...]
    incomparable: str = ""


class Code(NamedTuple):
    """A module: its PTX, the machine code for the target, or why there is none.

    ``forms`` are the instructions in it, ``loose`` those among them whose last bits PTX leaves open in a kernel.
    ``stores`` are the lines of the text that write, by entry and number of the parameter that they write through,
    ``places`` the Python lines of those.
    """

    text: Key
    cubin: Key = ""
    refused: str = ""
    forms: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    stores: Mapping[str, Mapping[str, Sequence[int]]] = {}
    places: Mapping[str, str] = {}


class Tape:
    """Recorded launches in a folder. ``left_out`` counts, by reason, the launches that are not among them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = ""
        """What the machine code is for."""
        self.cases: list[Case] = []
        self.codes: dict[Key, Code] = {}
        self.left_out: Counter[str] = Counter()
        self._known: dict[Key, tuple[int, int]] = {}
        self._size = 0

    @classmethod
    def load(cls, folder: Path) -> Tape:
        """The launches in a folder."""
        tape = cls(folder)
        made = json.loads(zlib.decompress((folder / "tape.json.z").read_bytes()))
        tape.target = made["target"]
        tape.cases = [_case(case) for case in made["cases"]]
        tape.codes = {key: _code(code) for key, code in made["codes"].items()}
        tape.left_out = Counter(made["left_out"])
        tape._known = {key: (start, size) for key, (start, size) in made["blobs"].items()}
        tape._size = sum(size for _, size in tape._known.values())
        return tape

    def save(self) -> None:
        """Write what was added."""
        made = {
            "target": self.target, "cases": self.cases, "codes": self.codes, "left_out": self.left_out,
            "blobs": self._known,
        }
        part = self.folder / "tape.json.part"
        part.write_bytes(zlib.compress(json.dumps(made).encode(), 9))
        part.replace(self.folder / "tape.json.z")

    @property
    def nbytes(self) -> int:
        """Bytes of the blobs."""
        return self._size

    def add(self, data: bytes) -> Key:
        """Keep bytes."""
        key = hashlib.sha256(data).hexdigest()[:24]
        if key not in self._known:
            packed = zlib.compress(data, 9 if len(data) < 1 << 16 else 6)
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "blobs.bin").open("ab") as file:
                file.write(packed)
            self._known[key] = self._size, len(packed)
            self._size += len(packed)
        return key

    def size_of(self, key: Key) -> int:
        """The bytes that a blob takes here."""
        return self._known[key][1] if key else 0

    def get(self, key: Key) -> bytes:
        """What was kept."""
        start, size = self._known[key]
        with (self.folder / "blobs.bin").open("rb") as file:
            file.seek(start)
            return zlib.decompress(file.read(size))

    def text(self, case: Case) -> str:
        """The PTX of a launch."""
        return self.get(self.codes[case.code].text).decode()


def _three(made: Sequence[int]) -> tuple[int, int, int]:
    return made[0], made[1], made[2]


def _relocations(made: Sequence[Any]) -> tuple[Relocation, ...]:
    return tuple(Relocation(*each) for each in made)


def _code(made: Sequence[Any]) -> Code:
    code = Code(*made)
    return code._replace(forms=tuple(code.forms), loose=tuple(code.loose))


def _area(made: Sequence[Any]) -> Area:
    area = Area(*made)
    return area._replace(
        relocations=_relocations(area.relocations), relocations_after=_relocations(area.relocations_after)
    )


def _case(made: Sequence[Any]) -> Case:
    *head, parameters, areas, incomparable = made
    test, form, code, entry, grid, block, shared, cluster, cooperative = head
    return Case(
        test, form, code, entry, _three(grid), _three(block), shared, _three(cluster) if cluster else None, cooperative,
        tuple(Parameter(data, _relocations(found)) for data, found in parameters),
        tuple(_area(area) for area in areas), incomparable,
    )


def filled(data: bytes, relocations: Sequence[Relocation], addresses: Sequence[int]) -> bytes:
    """Bytes with the addresses in them, of areas that begin at ``addresses``."""
    if not relocations:
        return data
    made = bytearray(data)
    for offset, area, inside in relocations:
        made[offset : offset + 8] = (addresses[area] + inside).to_bytes(8, "little")
    return bytes(made)
