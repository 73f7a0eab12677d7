"""What torch's autograd must know of a tensor that a kernel stores to, on either backend.

Autograd keeps tensors for its backward pass, with their version, and refuses to go on where the version has changed
since. A kernel writes past torch, so the version is counted up here, before each launch that may store to the tensor.
Where torch records gradients, a tensor that requires one is refused: the store would be missing in the gradient.
Of a table of pointers that a kernel stores through, the versions of all tensors are counted up, and none is refused.
Not seen: tensors whose addresses are passed as numbers.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

__all__ = ["count_version", "count_versions", "is_torch", "records_gradient", "without_memory"]

_known: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_torch(value: object) -> bool:
    """Whether an object is a tensor of torch's, or of a class made of it."""
    kind = type(value)
    found = _known.get(kind)
    if found is None:
        bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "torch"]
        found = _known[kind] = any(hasattr(base, "data_ptr") for base in bases)
    return found


def records_gradient(tensor: Any) -> bool:
    """Whether torch would want to know of a change of a tensor."""
    return bool(getattr(tensor, "requires_grad", False)) and sys.modules["torch"].is_grad_enabled()


def count_versions() -> Callable[[tuple[Any, ...]], object]:
    """A function that counts up the versions of several tensors; torch's own, where it takes several."""
    counted = getattr(getattr(sys.modules.get("torch"), "_C", None), "_increment_version", None)
    with suppress(TypeError):
        if counted is not None and counted(()) is None:
            return cast("Callable[[tuple[Any, ...]], object]", counted)

    def each(tensors: tuple[Any, ...]) -> None:
        for tensor in tensors:
            count_version(tensor)

    return each


def count_version(tensor: Any) -> None:
    """Count a tensor's version up, which its views share; inference tensors have none."""
    if tensor.is_inference():
        return
    increment = getattr(sys.modules["torch"].autograd.graph, "increment_version", None)  # since 2.1
    if increment is not None:
        increment(tensor)
    else:
        tensor.detach().as_strided((0,), (1,)).zero_()  # stores nothing


def without_memory(tensor: Any) -> tuple[str, str | None] | None:
    """Why a tensor has no memory that a kernel can be given, and how to mend it; None if it has.

    The sentence goes on after "a Tensor, which"; ``{}`` in the hint is its name.
    """
    layout, device = str(tensor.layout), tensor.device
    if layout != "torch.strided":
        made = "`{0} = {0}.values()`, with its offsets" if layout == "torch.jagged" else "`{0} = {0}.to_dense()`"
        return f"has the layout {layout}", made
    for kind in ("neg", "conj"):
        if getattr(tensor, f"is_{kind}", bool)():
            return "has memory that is not what it shows", f"`{{0}} = {{0}}.resolve_{kind}()`"
    if device.type == "meta":
        return "is on the meta device, which has no memory", 'make it with `device="cuda"` or `device="cpu"`'
    if device.type not in ("cpu", "cuda"):
        return f"is on the device `{device.type}`; kernels run on `cuda` and `cpu`", "`{0} = {0}.cuda()`"
    if hasattr(tensor, "to_local"):
        return "is spread over several processes", "`{0} = {0}.to_local()`"
    try:
        traced = any(base.__name__ == "FakeTensor" for base in type(tensor).__mro__)  # its address is a warning
        traced = traced or (not tensor.data_ptr() and 0 not in tensor.shape)
    except RuntimeError:
        traced = True
    if traced:
        where = "torch.compile, torch.export, vmap and fake tensors trace with such: launch outside of what is traced"
        return "has no memory of its own", where
    return None
