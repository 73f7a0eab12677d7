"""Unknown options of public functions: a located error that names the nearest one, in place of Python's TypeError."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .errors import PtxError, caller, did_you_mean, similar

__all__ = ["checked_options"]

P = ParamSpec("P")
R = TypeVar("R")


def checked_options(error: type[PtxError], name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: a call that Python refuses raises ``error``, which calls the function ``name``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError as refused:
                traceback = refused.__traceback__
                if traceback is None or traceback.tb_next is not None:  # it comes from within
                    raise
                told = _told(error, name, function, str(refused))
            raise told

        return checked

    return decorate


def _told(error: type[PtxError], name: str, function: Callable[..., object], refused: str) -> PtxError:
    import inspect  # takes longer to import than all else here, and is only wanted when something is wrong

    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    wrong = re.search(r"unexpected keyword argument '(\w+)'", refused)
    if wrong is not None:
        has = "it has " + (", ".join(f"`{each}`" for each in known) or "none")
        hint = did_you_mean(similar(wrong[1], known), "`{}=`", has)
        return error(f"`{name}` has no option `{wrong[1]}`", loc=caller(), hint=hint)
    shown = ", ".join(p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)
    options = [f"{p.name}=.." for p in parameters if p.kind is p.KEYWORD_ONLY]
    why = re.sub(r"^[\w.<>]+\(\) ", "", refused)
    return error(f"`{name}()` {why}", loc=caller(), hint=f"`{', '.join([f'{name}({shown}', *options[:3]])})`")
