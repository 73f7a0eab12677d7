"""Tensor maps: the descriptors of tensor copies, among a kernel's parameters."""

from __future__ import annotations

from ...types import u64
from ..builder import Trace, current
from ..rules.python_protocol import RunTime
from ..values.moves import known_form
from ..values.value import Result, Value
from .declared import Declared

__all__ = ["TensorMapValue"]


class TensorMapValue(RunTime):
    """A TMA descriptor among the parameters; as an operand it is its generic address."""

    __slots__ = ("_declared", "name")

    def __init__(self, trace: Trace, name: str) -> None:
        self.name = name
        self._declared = Declared(trace, name, common=False)

    def _kind(self) -> str:
        return "TensorMap"

    @property
    def address(self) -> Value:
        """Its generic address, computed once at the top of the kernel."""
        trace = current()
        key = self._declared.use(trace)
        found: Value | None = trace.constants.get(key)
        if found is None:
            inside, generic = trace.fresh(u64), trace.fresh(u64)
            trace.prepend(known_form("mov.b64"), (inside, key))
            trace.prepend(known_form("cvta.param.u64"), (generic, inside))
            found = trace.constants[key] = Result(generic, u64, trace.kernel)
        return found
