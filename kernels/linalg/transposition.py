"""``transpose``: the last two axes exchanged, as torch's and numpy's users call it."""

from __future__ import annotations

from typing import Any

from .. import arguments, matrices
from ..autograd import differentiable

__all__ = ["transpose"]


def _gradient(grad_out: Any) -> dict[str, Any]:
    return {"a": transpose(grad_out)}


@differentiable("a", backward=_gradient)
def transpose(a: Any, *, out: Any = None) -> Any:
    """The last two axes exchanged, in new memory: C-contiguous.

    Args:
        a: ``[..., M, N]`` of any dtype.
        out: ``[..., N, M]`` of a's dtype; a new array of a's kind if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps a. Nothing ran.

    >>> import numpy as np
    >>> transpose(np.arange(6).reshape(2, 3))
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    shape = arguments.expect_array("a", a)
    if len(shape) < 2:
        raise arguments.wrong(f"`a` has shape {list(shape)}; wanted is [..., M, N]")
    kind = arguments.scalar_type("a", a)
    *batch, rows, columns = shape
    out = arguments.output(out, a, (*batch, columns, rows), kind, a=a)
    if 0 in shape:
        return out
    source, target = arguments.bytes_of(arguments.dense(a)), arguments.bytes_of(out)
    matrices.launch_transpose(source.reshape(-1, rows, columns), target.reshape(-1, columns, rows))
    return out
