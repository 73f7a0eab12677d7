"""What single values are, as the search for what a trace reads (:mod:`.dependencies`) asks of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from types import (
    BuiltinFunctionType, CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType,
)
from typing import Any

from .contents import has_value
from .reachable import ANNOTATIONS, holds
from .user_code import is_user_class

__all__ = [
    "DESCRIPTORS", "FUNCTIONS", "NUMBERS", "SILENT", "Missing", "array_facts", "bases_of", "computes_attributes",
    "content_of", "dict_of", "is_fixed", "keeps_no_data", "package_of", "parts_of", "wrapped_by",
]

NUMBERS = frozenset((int, float, complex, bool, str, bytes, type(None)))
FUNCTIONS = (
    FunctionType, MethodType, staticmethod, classmethod, property, functools.partial, functools.cached_property,
)
"""What Python's functions come as (:func:`parts_of`)."""
DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)
"""Attributes of a class that C made, of objects with slots."""
SILENT = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", *ANNOTATIONS))
"""What a class has beside what its code can be told from."""
_STATELESS = ("ptxdsl.types", "ptxdsl.language.namespace.")
bases_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
dict_of: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__


class Missing:
    """What a place holds that is not there."""


def computes_attributes(kind: type) -> bool:
    return any("__getattribute__" in dict_of(base) for base in kind.__mro__[:-1])


def content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return Missing


def package_of(module: str) -> str:
    return module.partition(".")[0]


def wrapped_by(value: Any) -> Any:
    """The function inside one of ptxdsl's or of functools'."""
    if is_user_class(type(value)) or isinstance(value, type):
        return None
    try:
        names = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return names.get("__wrapped__") if type(names) is dict else None


def is_fixed(value: Any) -> bool:
    """Whether nothing of a value can be changed in place."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(map(is_fixed, value))
    if kind in NUMBERS or isinstance(value, Enum):
        return True
    return has_value(kind) and not holds(kind) and kind is not memoryview


def keeps_no_data(value: Any) -> bool:
    """Whether a value keeps no data alive."""
    if type(value) is FunctionType:
        defaults = *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()
        return not (value.__closure__ or value.__dict__) and all(map(keeps_no_data, defaults))
    if isinstance(value, (type, ModuleType, BuiltinFunctionType)):
        return True
    return is_fixed(value) or type(value).__module__.startswith(_STATELESS)


def array_facts(array: Any) -> Hashable:
    return array.shape, array.dtype, array.strides


def parts_of(value: Any) -> tuple[Any, ...]:
    """What a function of Python's other kinds is made of."""
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, functools.cached_property):
        return (value.func,)
    return value.__func__, getattr(value, "__self__", None)
