"""The machine code in this process: made once and kept on disk, with the addresses of what it calls.

It is for CPython of 64 bits whose objects begin with a count of references and a type. Others, as those without the
interpreter's lock, launch the long way.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from pathlib import Path
from typing import Any

from ... import config
from ...language.builder import traces
from ...launch.captures import captures
from ...launch.disk_cache import DiskCache, digest
from ...machine_code.compiler import Effort, link_with_llvm, object_file
from ...machine_code.host import this_host
from ...machine_code.object_files import link
from ...machine_code.once import once
from .layout import Slots

__all__ = ["address", "has_slots", "method", "slot_of", "supported"]

_HEADER = 16
"""The bytes with which every object begins: a count of references, and its type."""
_OBJECTS = {
    "None": None, "True": True, "False": False, "Exception": Exception, "float": float, "overrides": config._overrides,
    "observer": config.observer, "traces": traces, "captures": captures,
}
"""What the code compares with, or looks into."""
_slots = Slots()


@functools.cache
def supported() -> bool:
    """Whether machine code can work with the objects of this Python, and finds all functions that it calls."""
    whole = platform.python_implementation() == "CPython" and ctypes.sizeof(ctypes.c_void_p) == 8
    if not whole or object.__basicsize__ != _HEADER or sys.byteorder != "little":
        return False
    try:
        address("launch")
    except AttributeError as error:
        config.report("info", f"launches take the long way, since this Python has not all of its C API: {error}")
        return False
    return True


def address(name: str) -> int:
    """Where a function of the machine code is."""
    return _functions()[name]


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    ]


_FASTCALL_WITH_KEYWORDS = 0x80 | 2
_methods: list[_Method] = []


def method(owner: type, prepared: type, name: str, doc: str) -> Any:
    """The routine as a method of a class, whose objects have ``prepared.plans`` and ``long_way``."""
    _slots.launch_prepared, _slots.prepared_plans = slot_of(owner, "prepared"), slot_of(prepared, "plans")
    signature = f"{name}($self, /, *args, **named)\n--\n\n"
    made = _Method(name.encode(), address("launch"), _FASTCALL_WITH_KEYWORDS, (signature + doc).encode())
    _methods.append(made)
    new = ctypes.pythonapi.PyDescr_NewMethod
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return new(owner, ctypes.addressof(made))


def slot_of(owner: type, name: str) -> int:
    """Where the objects of a class with ``__slots__`` hold an attribute: asked of one that holds nothing else.

    AttributeError where the class holds it nowhere.
    """
    example: Any = object.__new__(owner)
    held = object()
    setattr(example, name, held)
    words = (ctypes.c_uint64 * (owner.__basicsize__ // 8)).from_address(id(example))
    found = [8 * number for number, word in enumerate(words) if word == id(held)]
    delattr(example, name)
    if len(found) != 1:
        raise AttributeError(name)
    return found[0]


def has_slots(owner: type) -> bool:
    """Whether device arrays, which a class has the attributes of, can be read; they are from then on."""
    names = ("dtype", "device", "address", "shape")
    try:
        _slots.array_dtype, _slots.array_device, _slots.array_address, _slots.array_shape = (
            slot_of(owner, name) for name in names
        )
    except AttributeError:
        return False
    return True


@once
def _functions() -> dict[str, int]:
    image, names, symbols = _image()
    known = {symbol: _address(symbol) for symbol in symbols}
    found = link(image, names, known)
    return link_with_llvm(image, names, known) if found is None else found


def _image() -> tuple[bytes, list[str], list[str]]:
    """The object file, the functions in it, and what it refers to."""
    folder = config.current().cache_dir
    cache = DiskCache(folder / "launches" if folder is not None else None)
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    host = this_host()
    key = digest(host.seen or host.told(), sys.platform, *sources)
    kept = cache.get(key)
    if kept is None:
        kept = _made()
        cache.put(key, kept)
    names, symbols, image = kept.split(b"\n", 2)
    return image, names.decode().split(), symbols.decode().split()


def _made() -> bytes:
    from llvmlite import ir

    from .arrays import add_arrays
    from .numbers import add_numbers
    from .routine import add_routine

    module = ir.Module()
    for add in (add_numbers, add_arrays, add_routine):
        add(module)
    names = [f.name for f in module.functions if not f.is_declaration]
    symbols = [n for n, g in module.globals.items() if n not in names and not n.startswith("llvm.")]
    return "\n".join([" ".join(names), " ".join(symbols), ""]).encode() + object_file(str(module), Effort.HANDLERS)


_names: dict[str, str] = {}
"""The strings whose addresses the code has."""


def _address(symbol: str) -> int:
    if symbol == "slots":
        return ctypes.addressof(_slots)
    if symbol in _OBJECTS:
        return id(_OBJECTS[symbol])
    kind, _, name = symbol.partition(":")
    if kind == "name":
        return id(_names.setdefault(name, sys.intern(name)))
    if symbol == "memcpy":
        return _of_function(ctypes.memmove)
    return _of_function(getattr(ctypes.pythonapi, symbol))


def _of_function(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
