"""The gradient of an op: by another op, by a kernel, or by a function that calls ops. Names say what is what.

``grad_out`` is the gradient of the output ``out``, which the backward pass is given, ``grad_x`` that of the argument
``x``, which it computes. Beside these it may ask for every argument, output and computed argument of the op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import LaunchError, caller, did_you_mean, similar
from ..kernel import Kernel
from ..types import ScalarType
from .declaration import Argument, Declaration
from .rules import named_parameters

__all__ = ["Gradient", "backward_kernel", "by_function", "by_op"]

_PREFIX = "grad_"


class Gradient:
    """``names`` are the values that the backward pass wants of the forward pass and of the outputs' gradients."""

    def __init__(
        self, forward: Declaration, names: tuple[str, ...], call: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> None:
        if forward.mutated:
            raise LaunchError(
                f"{forward.owner} stores to its argument `{forward.mutated[0]}`, so it can have no gradient",
                loc=caller(), hint="let it give a changed copy: `outputs={{{0!r}: {0!r}}}`".format(forward.mutated[0]),
            )
        self.forward, self.names, self._call = forward, names, call

    def saved(self, arguments: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
        """Of the values that the backward pass wants those that are known when the forward pass is done."""
        made = {**arguments, **outputs}
        rules = self.forward.computed
        found = {}
        for name in self.names:
            if name in made:
                found[name] = made[name]
            elif name in rules:
                found[name] = rules[name](made)
        return found

    def __call__(self, saved: Mapping[str, Any], incoming: Mapping[str, Any]) -> dict[str, Any]:
        """The gradients by the names of the arguments. ``incoming`` are those of the outputs, by their names."""
        values = {**saved, **{_PREFIX + name: gradient for name, gradient in incoming.items()}}
        return dict(self._call({name: values[name] for name in self.names}))


def by_function(forward: Declaration, function: Callable[..., Any]) -> Gradient:
    """The gradient that a Python function computes: it returns a dict, by the names of the arguments."""
    names = named_parameters(f"backward of {forward.owner}", function, list(_known(forward)))
    wanted = forward.differentiable

    def call(values: dict[str, Any]) -> Mapping[str, Any]:
        found = function(**values)
        if not isinstance(found, Mapping):
            raise LaunchError(
                f"backward of {forward.owner} returned {type(found).__name__}, not a dict from arguments to gradients",
                loc=caller(), hint="return {{{!r}: ...}}".format(wanted[0] if wanted else "x"),
            )
        for name in found:
            if name not in wanted:
                raise _no_gradient(forward, f"backward of {forward.owner} returned a gradient of `{name}`", name)
        return found

    return Gradient(forward, names, call)


def by_op(forward: Declaration, backward: Declaration, make: Callable[[], Callable[..., Any]]) -> Gradient:
    """The gradient that an op computes; its outputs are called ``grad_x``.

    ``make`` gives what takes the arguments of ``backward``, constants by keyword, when all that can be wrong is right.
    """
    known = _known(forward)
    names = []
    for name, argument in backward.arguments.items():
        if name in known:
            names.append(name)
        elif argument.kind != "constant":
            raise LaunchError(
                f"backward of {forward.owner} takes `{name}`, which {forward.owner} does not have", loc=caller(),
                hint=did_you_mean(similar(name, known), otherwise=f"it can take {', '.join(known)}"),
            )
    if backward.mutated:
        name = backward.mutated[0]
        raise LaunchError(
            f"backward of {forward.owner} stores to its argument `{name}`", loc=caller(),
            hint=f"what it computes is called `{_PREFIX}` and the name of an argument of {forward.owner}",
        )
    for name in backward.outputs:
        if not name.startswith(_PREFIX) or name.removeprefix(_PREFIX) not in forward.differentiable:
            raise _no_gradient(forward, f"backward of {forward.owner} computes `{name}`", name.removeprefix(_PREFIX))
    constants = {name for name in names if backward.arguments[name].kind == "constant"}
    op: Callable[..., Any]

    def call(values: dict[str, Any]) -> Mapping[str, Any]:
        found = op(
            *(values[name] for name in names if name not in constants), **{name: values[name] for name in constants}
        )
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        return {name.removeprefix(_PREFIX): value for name, value in zip(backward.outputs, outputs)}

    gradient = Gradient(forward, tuple(names), call)
    op = make()
    return gradient


def backward_kernel(forward: Declaration, kernel: Kernel, owner: str, like: Callable[[Any, bool], Any]) -> Declaration:
    """The op of a backward kernel: launched as the forward one is; what it stores to begins as zeros.

    ``like`` is that of `Declaration`, which here gives zeros.
    """
    known = _known(forward)
    fixed, shared = {}, {}
    for name, rule in forward.computed.items():
        if name in known and known[name].kind in ("int", "float"):
            continue  # its value is passed
        if name in kernel.signature.constants or any(p.name == name for p in kernel.parameters):
            shared[name] = rule.given
            if rule.function is None and name in kernel.signature.constants:
                fixed[name] = rule.given
    written = kernel.compiled(fixed).written
    outputs = {}
    for parameter in kernel.parameters:
        source = parameter.name.removeprefix(_PREFIX)
        if parameter.name in written and parameter.name.startswith(_PREFIX) and source in forward.arguments:
            outputs[parameter.name] = parameter.name if source in forward.outputs else source
    given = forward.given
    options = {name: value for name, value in given.items() if name not in ("grid", "block")}
    return Declaration(
        kernel, owner, grid=given["grid"], block=given["block"], options=options, like=like, outputs=outputs,
        computed=shared, further=known,
    )


def _known(forward: Declaration) -> dict[str, Argument]:
    """What a backward pass may ask for."""
    annotations: dict[str, Any] = {p.name: p.annotation for p in forward.kernel.parameters}
    found = dict(forward.arguments)
    found.update({name: Argument(name, "tensor", annotations[name]) for name in forward.outputs})
    for name in forward.computed:
        annotation = annotations.get(name)
        if isinstance(annotation, ScalarType):
            found.setdefault(name, Argument(name, "float" if annotation.kind == "f" else "int", annotation))
    found.update({name: Argument(name, "tensor") for name in (_PREFIX + output for output in forward.outputs)})
    return found


def _no_gradient(forward: Declaration, what: str, name: str) -> LaunchError:
    wanted = forward.differentiable
    return LaunchError(
        f"{what}, which is no argument of {forward.owner} that has a gradient", loc=caller(),
        hint=did_you_mean(similar(name, wanted), otherwise=f"those are {_listed(wanted)}" if wanted else None),
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
