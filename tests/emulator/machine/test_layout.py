"""Structs compute where their fields lie; compiled code loads some of them as vectors, which must be aligned."""

from __future__ import annotations

import struct

from ptxdsl.emulator.machine.layout import Block, Entry, Warp
from ptxdsl.emulator.machine.structs import Struct, field
from ptxdsl.emulator.machine.texture_pool import Header, Level, Request


class _Inner(Struct):
    align = 16
    FIRST = field("i")


class _Outer(Struct):
    BYTE = field("B")
    WORD = field("I")
    MANY = field("H", 3)
    INNER = field(_Inner, 2)
    LAST = field("i")


def test_fields_lie_one_behind_the_other_aligned_to_their_size() -> None:
    assert (_Outer.BYTE, _Outer.WORD, _Outer.MANY, _Outer.INNER, _Outer.LAST) == (0, 4, 8, 16, 48)
    assert (_Inner.nbytes, _Outer.nbytes) == (16, 56)


def test_a_span_packs_fields_where_they_lie() -> None:
    packed = _Outer.span("BYTE", "MANY").pack(1, 2, 3, 4, 5)
    assert packed == struct.pack("<B3xI3H", 1, 2, 3, 4, 5)
    assert _Outer.span("LAST").pack(9) == struct.pack("<i4x", 9)


def test_what_compiled_code_loads_as_a_vector_is_aligned() -> None:
    assert all(offset % 64 == 0 for offset in (Warp.PRIORITIES, Warp.TIDS, Warp.REGISTERS, Block.SCRATCH, Entry.nbytes))
    assert all(offset % 16 == 0 for offset in (Warp.ACTIVE, Warp.PC, Warp.FRESH, Header.BORDER))
    assert (Warp.ALIVE, Warp.PARKED, Warp.INDEX) == (Warp.ACTIVE + 4, Warp.ACTIVE + 8, Warp.ACTIVE + 12)  # as in FRESH
    assert (Warp.BUDGET, Warp.YIELDS) == (Warp.PC + 8, Warp.PC + 12)  # written together


def test_a_request_gives_its_result_where_it_had_its_value() -> None:
    assert Request.VALUE == Request.RESULT
    assert Level.nbytes % 8 == 0
