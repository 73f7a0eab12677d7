"""The results of vector instructions."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import PtxTypeError
from ..errors import located

__all__ = ["Vec"]


class Vec(tuple[Any, ...]):
    """Values of a vector instruction: of fixed length, to be indexed, unpacked, and passed on where braces stand."""

    __slots__ = ()

    def _refuse(self, _: object) -> NoReturn:
        raise located(PtxTypeError, "a Vec has no arithmetic: PTX computes on its elements", "`[x * 2 for x in v]`")

    def __radd__(self, other: object) -> Any:
        # A list grows by it as by any sequence: `values += p.load(i, width=4)`.
        return NotImplemented if isinstance(other, list) else self._refuse(other)

    __add__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = None  # type: ignore[assignment]
