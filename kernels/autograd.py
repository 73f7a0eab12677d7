"""Gradients of the library's functions for torch's autograd: a function and the function of its backward pass.

``@differentiable("x", "weight", backward=...)`` makes a call that is given tensors of which torch wants gradients
record the backward pass; any other call is the function itself, and torch is never imported. As everywhere in ptxdsl,
names say what is what: the backward function may ask for the arguments of the function, for its results (``out``), for
their gradients (``grad_out``), and for ``needs``, the names of the arguments whose gradients are wanted. It returns
those as a dict.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from . import arguments

__all__ = ["deterministic", "differentiable"]

F = TypeVar("F", bound=Callable[..., Any])


class _Pass(NamedTuple):
    """The backward pass of one call."""

    backward: Callable[..., Mapping[str, Any]]
    results: tuple[str, ...]
    given: tuple[str, ...]
    """The arguments that are tensors with a gradient, in the order that torch has them in."""
    saved: dict[str, Any]
    """What the backward function asks for and is known beforehand."""

    def gradients(self, tensors: Mapping[str, Any], incoming: tuple[Any, ...], wanted: tuple[bool, ...]) -> list[Any]:
        """The gradients of the tensors in ``given``; None of those that torch does not want now."""
        needs = frozenset(name for name, needed in zip(self.given, wanted) if needed)
        known = {**self.saved, **tensors, "needs": needs}
        # torch's may be expanded tensors, as those of a sum are, which few kernels can walk through.
        known.update({f"grad_{name}": arguments.dense(gradient) for name, gradient in zip(self.results, incoming)})
        found = self.backward(**{name: known.get(name) for name in inspect.signature(self.backward).parameters})
        return [found[name] if name in needs else None for name in self.given]


def differentiable(
    *names: str, backward: Callable[..., Mapping[str, Any]], results: tuple[str, ...] = ("out",),
    recorded: Callable[..., tuple[Any, Mapping[str, Any]]] | None = None,
) -> Callable[[F], F]:
    """Let torch record calls of a function that is differentiable in the arguments ``names``.

    ``results`` names what the function returns. ``recorded`` runs in place of the function where torch records, takes
    the same arguments, and returns the results and what else the backward function asks for, by name.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            torch = sys.modules.get("torch")
            if torch is None or not _wanted(torch, *args, *kwargs.values()):
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            for name in ("out", *results):
                if bound.arguments.get(name) is not None and name not in names:
                    raise arguments.wrong(
                        f"`{name}` is given, and torch records a gradient, which stores to a new tensor",
                        hint=f"leave `{name}` out, or call it under `torch.no_grad()`",
                    )
            given = tuple(name for name in names if _wanted(torch, bound.arguments.get(name)))
            with torch.no_grad():
                made, more = (recorded or (lambda *a, **k: (function(*a, **k), {})))(*bound.args, **bound.kwargs)
            made = made if isinstance(made, tuple) else (made,)
            known = {**bound.arguments, **more, **dict(zip(results, made))}
            asked = {name: known[name] for name in inspect.signature(backward).parameters if name in known}
            one_pass = _Pass(backward, results, given, asked)
            found = _recording().apply(one_pass, len(made), *made, *(bound.arguments[name] for name in given))
            return found if len(made) > 1 else found[0]

        return call  # type: ignore[return-value]

    return decorate


def deterministic() -> bool:
    """Whether torch is to use algorithms that give the same bits each time (``use_deterministic_algorithms``)."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.are_deterministic_algorithms_enabled())


def _wanted(torch: Any, *values: Any) -> bool:
    """Whether torch records, and wants the gradient of one of the values."""
    return any(isinstance(each, torch.Tensor) and each.requires_grad for each in values) and torch.is_grad_enabled()


@functools.cache
def _recording() -> Any:
    """The class by which torch calls the backward pass; its forward pass has run, and its results are handed on.

    So kernels run at the caller's line, and what is wrong is told there.
    """
    import torch

    class Once(torch.autograd.Function):  # type: ignore[misc]  # torch need not be installed
        """Gradients that have no gradient themselves, which torch would take to be 0."""

        @staticmethod
        def forward(_ctx: Any, _anchor: Any, *gradients: Any) -> tuple[Any, ...]:
            return gradients

        @staticmethod
        def backward(_ctx: Any, *_incoming: Any) -> Any:
            raise arguments.wrong("the kernel library has no second derivatives")

    class Recorded(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, one_pass: _Pass, count: int, *tensors: Any) -> tuple[Any, ...]:
            kept = {name: value for name, value in one_pass.saved.items() if isinstance(value, torch.Tensor)}
            ctx.save_for_backward(*kept.values())
            ctx.names = list(kept)
            ctx.one_pass = one_pass._replace(saved={n: v for n, v in one_pass.saved.items() if n not in kept})
            ctx.count = count
            return tensors[:count]

        @staticmethod
        def backward(ctx: Any, *incoming: Any) -> tuple[Any, ...]:
            tensors = dict(zip(ctx.names, ctx.saved_tensors))
            with torch.no_grad():
                found = ctx.one_pass.gradients(tensors, incoming, ctx.needs_input_grad[2 + ctx.count :])
            if torch.is_grad_enabled():
                found = Once.apply(torch.empty(0, requires_grad=True), *found)
            return (None,) * (2 + ctx.count) + tuple(found)

    return Recorded
