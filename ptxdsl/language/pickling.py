"""What is made of a function by a decorator pickles as functions do: kernels, and the functions that they call.

pickle writes the name under which a module has a function. cloudpickle, and with it Dask, Ray and joblib, takes along
with all that it reads what other processes do not find so: functions of ``__main__``, of a notebook, and such as are
made in other functions. Which of the two is right only the pickler knows, and it is asked for functions alone. So an
object shows it two: an empty one, which decides whether the object is found or made anew, and one with the code of its
own. Both say that they are attributes of the object, which they are. Found by its name, the object is the very same;
made anew, it is made of its function again, and of nothing that it has kept since.

The empty one comes first, and the other when the new object is known: it may be in the globals of its own function.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from operator import attrgetter
from types import FrameType, FunctionType
from typing import Any, TypeVar

from ..errors import Loc, TraceError

__all__ = ["PickledAsFunction"]

_T = TypeVar("_T", bound="PickledAsFunction")
_PLAIN = ("pickle", "_pickle", "multiprocessing.reduction")
"""The modules of picklers that take no function along."""


class PickledAsFunction:
    """An object in place of a function of the user's, with its ``__module__`` and ``__qualname__``."""

    __qualname__: str
    _kind: str
    """What messages call it."""
    loc: Loc

    @abstractmethod
    def _source(self) -> tuple[FunctionType, Mapping[str, Any]]:
        """The function, and its annotations as objects: what their texts name is not always there."""

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """What else it is made with."""

    @abstractmethod
    def _restore(self, function: FunctionType, options: dict[str, Any]) -> None:
        """Make the empty object what it was, of its function."""

    def __copy__(self) -> PickledAsFunction:
        return self

    def __deepcopy__(self, memo: object) -> PickledAsFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        path = _path(self)
        if path is None and not _takes_functions_along():
            raise _nameless(self)
        if path is not None and protocol < 4:  # which would write an attribute of an object with the object
            return path
        return _found, (type(self), self._anchor), (self._carried, self.__qualname__, self._options())

    def __setstate__(self, state: tuple[FunctionType, str, dict[str, Any]]) -> None:
        if "__wrapped__" not in vars(self):
            function, qualname, options = state
            function.__qualname__ = qualname
            self._restore(function, options)

    @property
    def _anchor(self) -> FunctionType:
        return self._shown(_path(self) or self.__qualname__)[0]

    @property
    def _carried(self) -> FunctionType:
        return self._shown(_path(self) or self.__qualname__)[1]

    def _shown(self, path: str) -> tuple[FunctionType, FunctionType]:
        """The two functions, which are the same each time, also for threads that ask at once."""
        shown: dict[str, tuple[FunctionType, FunctionType]] = vars(self).setdefault("_stand_ins", {})
        found = shown.get(path)
        if found is not None:
            return found
        function, annotations = self._source()
        carried = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
        carried.__kwdefaults__, carried.__annotations__ = function.__kwdefaults__, dict(annotations)
        carried.__doc__ = function.__doc__
        carried.__dict__.update(function.__dict__)
        anchor = FunctionType(_empty.__code__, {})
        return shown.setdefault(path, (
            _placed(anchor, function.__module__, f"{path}._anchor"),
            _placed(carried, function.__module__, f"{path}._carried"),
        ))


def _empty() -> None:
    pass


def _placed(made: FunctionType, module: str, path: str) -> FunctionType:
    made.__module__, made.__qualname__ = module, path
    return made


def _at(module: str, path: str) -> Any:
    """What a module has at a path; None where there is nothing."""
    try:
        return attrgetter(path)(sys.modules[module])
    except (AttributeError, KeyError, TypeError):
        return None


def _path(value: PickledAsFunction) -> str | None:
    """The name under which its module has an object: that of its function, or another one."""
    module = value.__module__
    if _at(module, value.__qualname__) is value:
        return value.__qualname__
    names = getattr(sys.modules.get(module), "__dict__", {})
    return next((name for name, held in list(names.items()) if held is value), None)


def _found(kind: type[_T], anchor: FunctionType) -> _T:
    """The object that this empty function belongs to; an empty object where the function came from elsewhere."""
    known: Any = _at(anchor.__module__, anchor.__qualname__.rpartition(".")[0])
    fits = type(known) is kind
    return known if fits and known._anchor is anchor else kind.__new__(kind)


def _takes_functions_along() -> bool:
    """Whether a pickler is at work here that does not only write the names of functions."""
    from pickle import Pickler, _Pickler

    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        pickler = frame.f_locals.get("self")
        if isinstance(pickler, (Pickler, _Pickler)) and type(pickler).__module__ not in _PLAIN:
            return True
        frame = frame.f_back
    return False


def _nameless(value: PickledAsFunction) -> Exception:
    from pickle import PicklingError

    name, module = getattr(value, "__name__", "?"), value.__module__
    return PicklingError(str(TraceError(
        f"{value._kind} `{name}` cannot be pickled: pickle writes the name under which a module has it, "
        f"and `{module}` has this one under none", loc=value.loc,
        hint="define it at the top of a module, or pickle it by cloudpickle, which takes it along, "
        "as Dask, Ray and joblib do",
    )))
