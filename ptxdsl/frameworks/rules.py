"""A value, or a function of arguments by their names: what grids, outputs and computed arguments are given as.

A function is called with those arguments that its parameters name. So it says what it needs, and a name that is none
is found when the op is made, before anything is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..errors import LaunchError, caller, did_you_mean, similar
from ..types import ScalarType

__all__ = ["Rule", "named_parameters"]


class Rule:
    """What ``given`` says of ``what``: itself, or, if it is a function, what it returns.

    ``known`` are the names of the arguments that a function may ask for, ``owner`` whose arguments these are.

    >>> Rule("grid", lambda n: n // 256, ["n", "x"], "op `mylib::f`")({"n": 512, "x": None})
    2
    """

    def __init__(self, what: str, given: Any, known: Collection[str], owner: str) -> None:
        self.given = given
        self.function: Callable[..., Any] | None = given if _is_function(given) else None
        self.names = named_parameters(f"{what} of {owner}", given, known) if self.function else ()

    @classmethod
    def of_output(
        cls, name: str, given: Any, known: Collection[str], owner: str, like: Callable[[Any, bool], Any]
    ) -> Rule:
        """The rule of an output: a function, or the name of the argument that it is like."""
        rule = cls(f"output `{name}`", given, known, owner)
        if isinstance(given, str):
            if given not in known:
                raise LaunchError(
                    f"output `{name}` of {owner} is like `{given}`, which is no argument", loc=caller(),
                    hint=did_you_mean(similar(given, known), otherwise=f"the names are {', '.join(known)}"),
                )
            rule.names = (given,)
            rule.function = lambda **values: like(values[given], given == name)
        elif rule.function is None:
            raise LaunchError(
                f"output `{name}` of {owner} is {given!r}; it is a function that allocates it, or the name of the "
                "argument that it is like", loc=caller(), hint=f"`outputs={{{name!r}: {next(iter(known), 'x')!r}}}`",
            )
        return rule

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value, given the values of the arguments."""
        if self.function is None:
            return self.given
        return self.function(**{name: values[name] for name in self.names})


def _is_function(given: Any) -> bool:
    """Types, of ptxdsl and of Python, can be called too; they are values."""
    return callable(given) and not isinstance(given, (type, ScalarType))


def named_parameters(what: str, function: Any, known: Collection[str]) -> tuple[str, ...]:
    """The names by which a function asks for arguments; those with a default need not be ``known``, nor are asked for.

    LaunchError for a function that asks for something else, or that does not show what it asks for.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise LaunchError(
            f"{what} is {function!r}, whose parameters Python does not know", loc=caller(),
            hint=f"wrap it: `lambda {next(iter(known), 'x')}: ...`",
        ) from None
    names = []
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            names.append(name)
        elif parameter.default is parameter.empty:
            wanted = f"the names are {', '.join(known)}" if known else "it can have no parameters"
            raise LaunchError(
                f"{what} is a function of `{name}`, which it cannot be", loc=caller(),
                hint=did_you_mean(similar(name, known), otherwise=wanted),
            )
    return tuple(names)
