"""What every conversion of an argument needs: the parameter that it is for, and the words of its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LaunchError, caller
from ..ir.signature import KernelParameter
from .argument_hints import copied
from .arrays import View, describe, library_of
from .geometry import Argument
from .torch_tensors import count_version, is_torch, records_gradient

if TYPE_CHECKING:
    from ..language.block_needs import BoxNeed

__all__ = ["Convert", "ParameterCheck", "plural"]

Convert = Callable[[Any], "tuple[Argument, ...]"]
"""From a user's argument to one for each ``.param`` of its parameter."""


class ParameterCheck(NamedTuple):
    """A parameter of a kernel; ``written`` says that the kernel stores to the memory that it points to."""

    kernel: str
    parameter: KernelParameter
    written: bool
    boxes: tuple[BoxNeed, ...] = ()
    """What copies of tiles need of it, if it is a tensor map."""

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def annotation(self) -> Any:
        return self.parameter.annotation

    @property
    def output(self) -> bool:
        """Whether the kernel may store to it; through a table of pointers (``x[0]``) it may always."""
        return self.written or "[" in self.name

    def error(self, value: object, wanted: str, hint: str | None = None, detail: str = "") -> LaunchError:
        """What came and what was wanted."""
        return LaunchError(
            f"argument `{self.name}` of kernel `{self.kernel}` is {describe(value)}{detail}; {wanted}",
            loc=caller(), hint=hint,
        )

    def check_writable(self, value: object, seen: View, *, sure: bool = True) -> None:
        """Refuse what may not be written; of PTX that is not ours it is not ``sure`` that the kernel writes to it."""
        if seen.readonly and self.written:
            raise self.error(value, "the kernel writes to it", self.copied(value, seen), ", read-only")
        if self.written and is_torch(value):
            if sure and records_gradient(value):
                hint = f"`with torch.no_grad():` around the launch, or pass `{self.name}.detach()`"
                wanted = "the kernel writes to it, of which no gradient knows"
                raise self.error(value, wanted, hint, ", requires a gradient")
            count_version(value)

    def not_contiguous(self, value: object, seen: View, wanted: str, alternative: str = "") -> LaunchError:
        """The error for an array with other strides than are wanted, and its repair."""
        library = "torch" if is_torch(value) else library_of(value)
        made = {
            "torch": f"{self.name}.contiguous()", "cupy": f"cupy.ascontiguousarray({self.name})",
            "ptxdsl": f"{self.name}.copy()",
        }
        hint = copied(self.name, seen, made.get(library, f"np.ascontiguousarray({self.name})"), self.output)
        return self.error(value, wanted, alternative + hint, f", strides {seen.strides}")

    def copied(self, value: object, seen: View) -> str:
        """The hint to pass a copy as it is."""
        method = "clone" if is_torch(value) else "copy"
        return copied(self.name, seen, f"{self.name}.{method}()", self.output)


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" + "s" * (count != 1)
