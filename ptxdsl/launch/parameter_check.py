"""What every conversion of an argument needs: the parameter that it is for, and the words of its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import LaunchError, caller
from ..ir.signature import KernelParameter
from .arrays import View, describe, library_of
from .geometry import Argument

__all__ = ["Convert", "ParameterCheck", "plural"]

Convert = Callable[[Any], "tuple[Argument, ...]"]
"""From a user's argument to one for each ``.param`` of its parameter."""


class ParameterCheck(NamedTuple):
    """A parameter of a kernel; ``written`` says that the kernel stores to the memory that it points to."""

    kernel: str
    parameter: KernelParameter
    written: bool

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def annotation(self) -> Any:
        return self.parameter.annotation

    def error(self, value: object, wanted: str, hint: str | None = None, detail: str = "") -> LaunchError:
        """What came and what was wanted."""
        return LaunchError(
            f"argument `{self.name}` of kernel `{self.kernel}` is {describe(value)}{detail}; {wanted}",
            loc=caller(), hint=hint,
        )

    def check_writable(self, value: object, seen: View) -> None:
        if seen.readonly and self.written:
            hint = f"`{self.name} = {self.name}.copy()`"
            raise self.error(value, "the kernel writes to it", hint, ", read-only")

    def not_contiguous(self, value: object, seen: View, wanted: str, alternative: str = "") -> LaunchError:
        """The error for an array with other strides than are wanted, and its repair."""
        name = self.name
        made = f"{name}.contiguous()" if library_of(value) == "torch" else f"np.ascontiguousarray({name})"
        return self.error(value, wanted, f"`{name} = {made}`{alternative}", f", strides {seen.strides}")


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" + "s" * (count != 1)
