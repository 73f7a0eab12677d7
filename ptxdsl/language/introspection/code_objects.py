"""A cache of what is computed from a function's code.

Its key is the id of the code object, which hashes all its constants at each lookup. The object is kept with the
result: else its id could come to be another's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Generic, TypeVar

__all__ = ["PerCode"]

T = TypeVar("T")
_MANY = 4096


class PerCode(Generic[T]):
    """A function of code objects that remembers its results: a decorator.

    >>> @PerCode
    ... def names(code):
    ...     return code.co_varnames
    >>> names((lambda a, b: a).__code__)
    ('a', 'b')
    """

    def __init__(self, function: Callable[[CodeType], T]) -> None:
        self._function = function
        self._found: dict[int, tuple[T, CodeType]] = {}
        self.__doc__ = function.__doc__

    def __call__(self, code: CodeType) -> T:
        found = self._found.get(id(code))
        if found is None:
            if len(self._found) >= _MANY:
                self._found.clear()
            found = self._found[id(code)] = self._function(code), code
        return found[0]

    def known(self, code: CodeType) -> T | None:
        """The result for a code object, None where it has not been computed."""
        found = self._found.get(id(code))
        return None if found is None else found[0]
