"""Which classes, modules and globals are the user's, so that a search for state does not enter the libraries."""

from __future__ import annotations

import os
import sys
from opcode import EXTENDED_ARG, opmap
from types import CodeType, ModuleType
from typing import Any

from .call_sites import is_user_file
from .code_objects import PerCode

__all__ = ["globals_of", "is_user_class", "is_user_module", "names_of_module"]

_MADE_AT_RUN_TIME = 1 << 9
"""Py_TPFLAGS_HEAPTYPE."""


def names_of_module(module: ModuleType) -> dict[str, Any]:
    """What a module holds, without a call of its `__getattribute__`."""
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


_LIBRARY = f"{os.path.dirname(os.__file__)}/".replace("\\", "/")
"""Python's own; other libraries lie in folders that end in ``-packages``."""


def is_user_class(kind: type) -> bool:
    """Whether a class is the user's, not that of a library."""
    if not kind.__flags__ & _MADE_AT_RUN_TIME:
        return False
    name = type.__dict__["__module__"].__get__(kind)
    # Code that runs without a `__name__` makes classes of "builtins".
    return isinstance(name, str) and (name == "builtins" or _user_modules[name])


class _UserModules(dict[str, bool]):
    """By its name, whether a module is the user's."""

    def __missing__(self, name: str) -> bool:
        module = sys.modules.get(name)
        ours = name in ("builtins", "ptxdsl") or name.startswith("ptxdsl.")
        self[name] = not ours and (not isinstance(module, ModuleType) or is_user_module(names_of_module(module)))
        return self[name]


_user_modules = _UserModules()


def is_user_module(names: dict[str, Any]) -> bool:
    """Whether a module that holds these names is the user's; one that was made without a file is."""
    file = names.get("__file__")
    if not isinstance(file, str):
        return getattr(names.get("__spec__"), "origin", None) not in ("built-in", "frozen")
    return _user_files[file]


class _UserFiles(dict[str, bool]):
    """By its path, whether a file is the user's."""

    def __missing__(self, file: str) -> bool:
        path = file.replace("\\", "/")
        self[file] = is_user_file(file) and not path.startswith(_LIBRARY) and "-packages/" not in path
        return self[file]


_user_files = _UserFiles()


@PerCode
def globals_of(code: CodeType) -> frozenset[str]:
    """The globals that a function, or one inside it, reads or writes by name."""
    names: set[str] = set()
    raw, argument = code.co_code, 0
    for at in range(0, len(raw), 2):
        argument = argument << 8 | raw[at + 1]
        if raw[at] in _GLOBALS:
            names.add(code.co_names[argument >> _GLOBALS[raw[at]]])
        if raw[at] != EXTENDED_ARG:
            argument = 0
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= globals_of(constant)
    return frozenset(names)


_SHIFT = int(sys.version_info >= (3, 11))
_GLOBALS = {
    opmap[name]: shift
    for name, shift in (("LOAD_GLOBAL", _SHIFT), ("STORE_GLOBAL", 0), ("DELETE_GLOBAL", 0), ("LOAD_NAME", 0))
}
"""The opcodes that name a global, and by how many bits their argument is more than its number."""
