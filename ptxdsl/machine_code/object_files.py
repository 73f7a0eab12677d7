"""Object files in memory, without LLVM: what is on disk runs in a process that never loads it.

LLVM is a library of 170 MB, and loading it takes longer than a first launch otherwise does. What it makes here is
simple: position-dependent code for x86-64 in ELF, whose relocations are whole addresses (the large code model), and
constants; nothing of it is written, or run at loading. Whatever else is found in a file is not linked here: then
:func:`link` gives None, and LLVM's own linker has to be asked.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

__all__ = ["link"]

_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ADDRESS = struct.Struct("<Q")
_ELF64 = b"\x7fELF\x02\x01\x01"
RELOCATABLE, X86_64 = 1, 62
PROGBITS, SYMTAB, RELA, NOBITS, REL, UNWIND = 1, 2, 4, 8, 9, 0x70000001
WRITE, ALLOC, THREAD_LOCAL = 1, 2, 0x400
ADDRESS_64 = 1
"""The relocation R_X86_64_64."""
UNDEFINED, RESERVED = 0, 0xFF00
GLOBAL = 1
"""The binding of a symbol that other files may refer to."""


READ, WRITABLE, EXECUTE = 1, 2, 4
PRIVATE, ANONYMOUS = 2, 0x20
"""Of Linux' ``mmap`` and ``mprotect``: the files of other systems are no ELF."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Unknown(Exception):
    """Something that is for LLVM's linker."""


def link(
    image: bytes, names: Iterable[str] | None = None, known: Mapping[str, int] | None = None
) -> dict[str, int] | None:
    """Put an object file in memory, to stay: the addresses of these functions, or of all that it shows to others.

    It may refer to what is ``known`` by an address, and to the C library.
    None where it needs more than is done here, or has not all of them, and where files are no ELF.
    """
    try:
        return _link(image, None if names is None else list(names), known or {})
    except (_Unknown, struct.error, KeyError, IndexError, ValueError, OSError, AttributeError):
        return None


def _link(image: bytes, names: list[str] | None, known: Mapping[str, int]) -> dict[str, int]:
    sections, symbols, strings = _read(image)
    starts, size = _placed(sections)
    base, memory = _mapped(size)
    for number, start in starts.items():
        section = sections[number]
        if section.kind == PROGBITS:
            memory[start : start + section.size] = image[section.offset : section.offset + section.size]

    def address_of(symbol: _Symbol) -> int:
        if symbol.section == UNDEFINED:
            name = _text(image, strings, symbol.name)
            return known[name] if name in known else _of_process(name)
        return base + starts[symbol.section] + symbol.value

    for section in sections:
        if section.kind == RELA and section.info in starts:
            for offset, info, addend in _RELOCATION.iter_unpack(_content(image, section)):
                if info & 0xFFFFFFFF != ADDRESS_64:
                    raise _Unknown
                value = address_of(symbols[info >> 32]) + addend
                _ADDRESS.pack_into(memory, starts[section.info] + offset, value % (1 << 64))
    shown = [symbol for symbol in symbols if symbol.section != UNDEFINED and symbol.info >> 4 == GLOBAL]
    defined = {_text(image, strings, symbol.name): symbol for symbol in shown}
    functions = {name: address_of(defined[name]) for name in (defined if names is None else names)}
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), READ | EXECUTE):
        raise _Unknown
    return functions


def _mapped(size: int) -> tuple[int, Any]:
    """Pages of this process, writable. Not an object of Python's: it would be gone before C's ``exit()`` runs."""
    function = ctypes.CDLL(None).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    base = function(None, size, READ | WRITABLE, PRIVATE | ANONYMOUS, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise _Unknown
    return base, memoryview((ctypes.c_ubyte * size).from_address(base)).cast("B")


def _read(image: bytes) -> tuple[list[_Section], list[_Symbol], _Section]:
    """The sections, the symbols and the section that has their names."""
    ident, kind, machine, *_ = head = _HEAD.unpack_from(image)
    if not ident.startswith(_ELF64) or (kind, machine) != (RELOCATABLE, X86_64):
        raise _Unknown
    at, each, count = head[6], head[11], head[12]
    sections = [_Section(*_SECTION.unpack_from(image, at + n * each)) for n in range(count)]
    tables = [section for section in sections if section.kind == SYMTAB]
    if len(tables) != 1 or any(section.kind == REL for section in sections):
        raise _Unknown
    symbols = [_Symbol(*fields) for fields in _SYMBOL.iter_unpack(_content(image, tables[0]))]
    if any(symbol.section >= RESERVED and symbol.info & 15 != 4 for symbol in symbols):  # 4: the source file's name
        raise _Unknown
    return sections, symbols, sections[tables[0].link]


def _placed(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where each section that is needed at run time comes to lie, and the size of all."""
    starts, end = {}, 0
    for number, section in enumerate(sections):
        if not section.flags & ALLOC or section.kind == UNWIND:  # nothing is thrown through this code
            continue
        if section.kind not in (PROGBITS, NOBITS) or section.flags & (THREAD_LOCAL | (WRITE if section.size else 0)):
            raise _Unknown
        end += -end % max(1, section.alignment)
        starts[number] = end
        end += section.size
    if not end or max(sections[number].alignment for number in starts) > mmap.PAGESIZE:
        raise _Unknown
    return starts, end


def _content(image: bytes, section: _Section) -> bytes:
    content = image[section.offset : section.offset + section.size]
    if len(content) != section.size:
        raise _Unknown
    return content


def _text(image: bytes, strings: _Section, offset: int) -> str:
    start = strings.offset + offset
    return image[start : image.index(b"\0", start)].decode()


@cache
def _of_process(name: str) -> int:
    """The address of a function of the process: the C library's."""
    function = getattr(ctypes.CDLL(None), name)
    return ctypes.cast(function, ctypes.c_void_p).value or 0
