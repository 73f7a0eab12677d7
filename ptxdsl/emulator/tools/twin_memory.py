"""The memory whose floats are followed in float64: arrays of the host, variables, and that of the blocks."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import numpy as np

from ...launch import Buffer
from ..analysis.float_layouts import BYTE
from ..machine.allocation import address_of
from ..machine.float_twins import FORMATS as PLANES, Area, Areas, plane_bytes
from ..runtime.block_state import BlockState, LaunchState
from ..semantics.formats import FORMATS, Format

__all__ = ["ArrayTwins", "TwinMemory"]

MOST = 1024
"""Areas of a launch."""
Formats = tuple[tuple[str, int], ...]
CELL = np.dtype([("twin", "<f8"), ("origin", "<i4"), ("arose", "<f4")])


class ArrayTwins:
    """An array beside its twins, for one format: ``copy`` has the bits that the twins in ``cells`` belong to."""

    def __init__(self, form: Format, codes: Any, copy: Any, cells: Any) -> None:
        self.format, self.codes, self.copy, self.cells = form, codes, copy, cells

    @cached_property
    def numbers(self) -> Any:
        """What the array holds, in f64."""
        return decoded(self.codes, self.format)

    @cached_property
    def twins(self) -> Any:
        """What it would hold in f64: its own numbers where nothing was followed."""
        if self.cells is None:
            return self.numbers
        return np.where(self.copy == self.codes, self.cells["twin"], self.numbers)

    @cached_property
    def errors(self) -> Any:
        """The error of each number (:mod:`..codegen.float_twins.numbers`)."""
        real, twin = self.numbers, self.twins
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            size = np.maximum(np.maximum(abs(real), abs(twin)), 2.0 ** (1 - self.format.bias))
            errors = abs(real - twin) / size
        errors = np.where(np.isnan(errors), np.inf, errors)
        return np.where((real == twin) | (np.isnan(real) & np.isnan(twin)), 0.0, errors)


def decoded(codes: Any, form: Format) -> Any:
    """Numbers of a format in f64, of their bits."""
    if form.name in ("f64", "f32", "f16"):
        return codes.view(f"<f{form.bits // 8}").astype(np.float64)
    bits = codes.astype(np.int64)
    magnitude = bits & (1 << form.bits - 1) - 1
    exponent, fraction = magnitude >> form.mantissa, magnitude & (1 << form.mantissa) - 1
    hidden = np.where(exponent > 0, 1 << form.mantissa, 0)
    value = np.ldexp((fraction + hidden).astype(np.float64), np.maximum(exponent, 1) - form.bias - form.mantissa)
    if form.special == "ieee":
        value = np.where(magnitude >= form.infinity, np.where(fraction > 0, np.nan, np.inf), value)
    elif form.special == "nan":
        value = np.where(magnitude == form.nan, np.nan, value)
    return np.where(bits >> form.bits - 1 & 1, -value, value)


class _Area:
    """A range of memory with its planes, made as they are wanted; most of what is not touched takes no room."""

    def __init__(self, low: int, nbytes: int, array: bool, owner: Any) -> None:
        self.low, self.nbytes, self.array, self.owner = low, nbytes, array, owner
        self.planes: dict[tuple[str, int], Any] = {}

    def plane(self, form: tuple[str, int]) -> Any:
        if form not in self.planes:
            self.planes[form] = np.zeros(plane_bytes(self.nbytes, form[1])[1] + 64, np.uint8)
        return self.planes[form]

    def holds(self, low: int, nbytes: int) -> bool:
        return self.low <= low and low + nbytes <= self.low + self.nbytes

    def entry(self, formats: Formats) -> bytes:
        planes = [_aligned(self.plane(form)) for form in formats]
        return Area.span("LOW").pack(self.low, self.nbytes, self.array, *planes, *[0] * (PLANES - len(planes)))


def _aligned(array: Any) -> int:
    return address_of(array) + -address_of(array) % 64


class TwinMemory:
    """The areas of launches. Those of the host's arrays last, so that one launch goes on with what another left."""

    def __init__(self) -> None:
        self._arrays: list[_Area] = []
        self._own: list[_Area] = []
        """Those of the blocks of this launch."""
        self.dropped = 0
        """Areas beyond those that there is room for."""

    def table(self) -> Any:
        """Room for the areas of a kernel's launches, whose address its code has."""
        return np.zeros(Areas.nbytes + MOST * Area.nbytes + 64, np.uint8)

    def begin(self, launch: LaunchState, table: Any, formats: Formats) -> None:
        """A launch has its arrays and variables."""
        self._own, self.dropped = [], 0
        self._table, self._formats = table, formats
        owners = {b.address: b.owner for b in launch.arguments if isinstance(b, Buffer)}
        areas = []
        for area in launch.ranges:
            if area is None or area.shared or area.heap or area.nbytes <= 0:
                continue
            array = area.address in owners or area.variable is not None
            areas.append(self._kept(area.place, area.nbytes, array, owners.get(area.address)))
        self._write(list(dict.fromkeys(areas)))

    def _kept(self, low: int, nbytes: int, array: bool, owner: Any) -> _Area:
        for known in self._arrays:
            if known.holds(low, nbytes):
                return known
        self._arrays.append(_Area(low, nbytes, array, owner))
        return self._arrays[-1]

    def add(self, state: BlockState) -> None:
        """The shared and local memory of a block state."""
        self._own.append(_Area(state.address, state.state_bytes, False, state))
        self._write([*self._written, self._own[-1]])

    def _write(self, areas: list[_Area]) -> None:
        self._written = areas[:MOST]
        self.dropped = len(areas) - len(self._written)
        start = -address_of(self._table) % 64
        entries = b"".join(area.entry(self._formats) for area in self._written)
        head = Areas.span("COUNT").pack(len(self._written))
        self._table[start : start + len(head)] = np.frombuffer(head, np.uint8)
        if entries:
            at = start + Areas.nbytes
            self._table[at : at + len(entries)] = np.frombuffer(entries, np.uint8)

    def twins(self, address: int, nbytes: int, form: tuple[str, int]) -> ArrayTwins:
        """An array's memory beside what was followed of it in a format."""
        element = form[1] // BYTE
        nbytes -= nbytes % element
        memory: Any = (ctypes.c_ubyte * nbytes).from_address(address) if nbytes else b""
        codes = np.frombuffer(memory, f"<u{element}")
        area = next((a for a in self._arrays if a.holds(address, nbytes) and form in a.planes), None)
        if area is None or not nbytes:
            return ArrayTwins(FORMATS[form[0]], codes, np.zeros_like(codes), None)
        plane, (cells, size) = area.plane(form), plane_bytes(area.nbytes, form[1])
        start, skipped = -address_of(plane) % 64, address - area.low
        copy = plane[start + skipped : start + skipped + nbytes].view(f"<u{element}")
        every = plane[start + cells : start + size].view(CELL)
        return ArrayTwins(FORMATS[form[0]], codes, copy, every[skipped // element : (skipped + nbytes) // element])
