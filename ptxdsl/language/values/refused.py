"""What Python can ask of a number and PTX has no instruction for: an error that says how it is spelled instead."""

from __future__ import annotations

from typing import NoReturn

from ...errors import PtxTypeError, with_article
from ...types import ScalarType
from ..errors import located
from ..rules.python_protocol import RunTime

__all__ = ["Refused"]


class Refused(RunTime):
    """The base of `Value`: elements, powers, matrix products and divmod, each refused."""

    __slots__ = ()
    type: ScalarType

    def __getitem__(self, index: object) -> NoReturn:
        raise located(
            PtxTypeError, f"{with_article(self.type)} value has no elements",
            "a parameter `x: Ptr[f32]` is indexed; `v.unpack(u16)` splits a value into parts",
        )

    def __setitem__(self, index: object, value: object) -> NoReturn:
        self.__getitem__(index)

    def __pow__(self, other: object) -> NoReturn:
        raise located(
            PtxTypeError, f"`**` of {self.type}: PTX has no power",
            "`v * v` for a square, `ptxdsl.math.pow(x, y)` for floats, `v << k` for powers of two",
        )

    __rpow__ = __pow__

    def __matmul__(self, other: object) -> NoReturn:
        raise located(PtxTypeError, f"`@` of {self.type}: no matrices here", "`ptx.mma` multiplies fragments")

    __rmatmul__ = __matmul__

    def __divmod__(self, other: object) -> NoReturn:
        raise located(PtxTypeError, "divmod() is two instructions", "write `a // b` and `a % b`")

    __rdivmod__ = __divmod__
