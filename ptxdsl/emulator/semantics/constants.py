"""Constant vectors that are written as one word: llvmlite writes a list, which LLVM is slow to parse."""

from __future__ import annotations

from llvmlite import ir

__all__ = ["Same", "undefined", "zeros"]


class Same(ir.FormattedConstant):  # type: ignore[misc]
    """A constant in each lane, which is also there by itself."""

    def __init__(self, element: ir.Type, text: str, lanes: int) -> None:
        super().__init__(ir.VectorType(element, lanes), "")
        self.constant = f"splat ({element} {text})"
        self.one = ir.FormattedConstant(element, text)


def undefined(kind: ir.Type) -> ir.Constant:
    """No number in particular."""
    constant = ir.FormattedConstant(kind, "")
    constant.constant = "undef"
    return constant


class _Zeros(ir.Constant):  # type: ignore[misc]
    """``constant`` is what llvmlite looks through where this is the mask of a shuffle."""

    def __init__(self, kind: ir.Type) -> None:
        super().__init__(kind, None)
        self.constant = ()

    def _get_reference(self) -> str:
        return "zeroinitializer"


def zeros(kind: ir.Type) -> ir.Constant:
    """Zero in each lane."""
    return _Zeros(kind)
