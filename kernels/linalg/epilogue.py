"""What a product does with its sums before it stores them: activation(alpha sum + bias) + beta residual."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ScalarType, f32, f64, minimum, s32, select
from ... import math as ptxmath

__all__ = ["ACTIVATIONS", "Epilogue", "applied", "batches", "computed"]


ACTIVATIONS = {
    "relu": lambda x: select(x <= 0.0, 0.0, x), "gelu": ptxmath.gelu, "gelu_tanh": ptxmath.gelu_tanh,
    "silu": ptxmath.silu, "sigmoid": ptxmath.sigmoid, "tanh": ptxmath.tanh,
}
"""By the names that functions of :mod:`elementwise` have."""


class Epilogue(NamedTuple):
    """Which parts there are: types of bias and residual, the activation's name, the result's type."""

    out: ScalarType
    bias: ScalarType | None = None
    residual: ScalarType | None = None
    activation: str | None = None
    scaled: bool = False

    @property
    def plain(self) -> bool:
        """Whether the sums are stored as they are."""
        return self.bias is None and self.residual is None and self.activation is None and not self.scaled

    def __str__(self) -> str:
        parts = [
            f"bias_{self.bias}" * (self.bias is not None), "residual" * (self.residual is not None),
            self.activation or "", "scaled" * self.scaled,
        ]
        return "_".join(part for part in (str(self.out), *parts) if part)


def computed(out: ScalarType, sums: ScalarType) -> ScalarType:
    """The type in which an epilogue of sums is computed: integers as such where the result is one."""
    return sums if sums is f64 or out is s32 else f32


def applied(
    epilogue: Epilogue, value: Any, row: Any, column: Any, bias: Any, residual: Any, alpha: Any, beta: Any
) -> Any:
    """The result for a sum at a row and column, which may lie beyond the edges of the (rows, columns) residual.

    ``bias`` is an array of one element a column. What is loaded for places beyond is not stored.
    """
    kind = computed(epilogue.out, value.type)
    value = value.to(kind)
    if epilogue.scaled:
        value = value * alpha
    if epilogue.bias is not None:
        value = value + bias[minimum(column, bias.shape[0] - 1)].to(kind)
    if epilogue.activation is not None:
        value = ACTIVATIONS[epilogue.activation](value)
    if epilogue.residual is not None:
        at = minimum(row, residual.shape[0] - 1), minimum(column, residual.shape[1] - 1)
        other = residual[at].to(kind)
        value = value + (other * beta if epilogue.scaled else other)
    return value


def batches(views: Any, batch: Any, batched: tuple[bool, bool]) -> tuple[Any, Any, Any, Any]:
    """The matrices of a batch: of a, b, the result and the residual."""
    a, b, c, residual = views
    return a[batch if batched[0] else 0], b[batch if batched[1] else 0], c[batch], residual[batch]
