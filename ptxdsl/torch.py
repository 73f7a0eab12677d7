"""Kernels as ops of PyTorch: :func:`register` makes a ``torch.library`` custom op of a kernel.

What torch must know of an op (its schema, what it mutates, the shapes of its outputs, its gradient) follows from the
kernel's signature and trace and from what allocates its outputs, so that nothing is said twice. On CPU tensors an op
runs in the emulator, on CUDA tensors on their GPU, in torch's current stream.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}, which ptxdsl.torch is for: `pip install 'ptxdsl[torch]'`") from None

from .errors import LaunchError, caller
from .frameworks.declaration import Argument, Declaration
from .frameworks.gradients import Gradient, backward_kernel, by_function, by_op
from .kernel import Kernel
from .kernel.dispatcher import Dispatcher, Launch

__all__ = ["register"]

_OWNERS: dict[str, tuple[str, str]] = {}
"""The file and name of the function of which each op was made: made again of the same one, it takes the other's place,
as when a cell of a notebook runs twice."""


def register(
    kernel: Kernel, name: str, *, grid: Any, block: Any, outputs: Mapping[str, Any] | None = None,
    computed: Mapping[str, Any] | None = None, backward: Any = None, **options: Any,
) -> Any:
    """Make the custom op ``name``, such as ``"mylib::scale"``, of a kernel: what ``torch.library.custom_op`` gives.

    The op takes the kernel's parameters by their names: ``Ptr`` and ``Array`` are tensors, mutated where the kernel
    stores to them, a ``Ptr[Ptr]`` is a list of tensors, scalars are ints and floats; compile-time constants are taken
    by keyword. ``grid``, ``block`` and all ``options`` of `Kernel.configure` are values, or functions of arguments by
    name. A grid of 0 blocks launches nothing.

    ``outputs`` are parameters that the op allocates and returns, in this order: each a function that gives the tensor
    the kernel is to store to, or the name of the argument that it is shaped like (its own name: a copy of the argument,
    which is then not mutated). ``computed`` are parameters that are computed of the arguments and outputs: values, or
    functions of these. A function that asks for an argument of its own name leaves it an argument of the op.

    ``backward`` gives the gradients: a kernel that stores to ``grad_x`` for the argument ``x`` (launched as this one
    is; what it stores to begins as zeros), another op with outputs of such names, or a function that returns a dict
    from arguments to gradients. Each asks by name for what it needs: arguments, outputs, computed arguments, and
    ``grad_out``, the gradient of the output ``out``, contiguous.

    LaunchError says what does not fit, here or when the op is called.

    >>> from ptxdsl import Ptr, cdiv, f32, ptx, ptx_kernel, u32, when
    >>> @ptx_kernel
    ... def square(n: u32, x: Ptr[f32], out: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     with when(i < n):
    ...         out[i] = x[i] * x[i]
    >>> op = register(
    ...     square, "docs::square", grid=lambda n: cdiv(n, 256), block=256, outputs={"out": "x"},
    ...     computed={"n": lambda x: x.numel()}, backward=lambda grad_out, x: {"x": 2 * x * grad_out})
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = op(x)
    >>> y.sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([1.0, 4.0, 9.0], [2.0, 4.0, 6.0])
    """
    declaration = Declaration(
        kernel, f"op `{name}`", grid=grid, block=block, options=options, like=_like, outputs=outputs, computed=computed
    )
    return _define(name, declaration, backward)


def _define(name: str, declaration: Declaration, backward: Any = None) -> Any:
    owner = _check_name(name, declaration.kernel)
    gradient = None if backward is None else _gradient(name, declaration, backward)
    tensors = any(argument.kind in ("tensor", "tensors") for argument in declaration.arguments.values())
    op = torch.library.custom_op(
        name, _implementation(declaration), mutates_args=declaration.mutated, schema=_schema(declaration),
        device_types=("cpu", "cuda") if tensors else None,
    )
    op.register_fake(_fake(declaration))
    op.declaration = declaration  # what an op that has this one as its gradient asks
    if declaration.mutated:
        _refuse_gradients(name, op, declaration)
    else:
        op.register_vmap(_vmap(op))
    if gradient is not None:
        op.register_autograd(_backward(gradient), setup_context=_setup_context(gradient))
    _OWNERS[name] = owner
    return op


# -- the schema


def _check_name(name: str, kernel: Kernel) -> tuple[str, str]:
    """Refuse a name that is none, or another op's. Where the kernel's function stands, and its name."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name, re.ASCII):
        raise LaunchError(f"{name!r} is no name of an op of torch", loc=caller(), hint=f'"mylib::{kernel.entry}"')
    namespace, _, short = name.partition("::")
    owner = (kernel.function.__code__.co_filename, kernel.function.__qualname__)
    if _OWNERS.get(name, owner) != owner or (name not in _OWNERS and hasattr(getattr(torch.ops, namespace), short)):
        made = f", made of kernel `{_OWNERS[name][1]}`" if name in _OWNERS else ""
        raise LaunchError(f"torch has an op `{name}` already{made}", loc=caller(), hint="give it another name")
    return owner


def _schema(declaration: Declaration) -> str:
    """The op's schema, as torch writes them."""
    positional, constants = [], []
    for number, (name, argument) in enumerate(declaration.arguments.items()):
        if argument.kind == "constant":
            constants.append(f"{_constant(declaration, argument)}")
            continue
        alias = f"(a{number}!)" if name in declaration.mutated else ""
        kind = {"tensor": f"Tensor{alias}", "tensors": f"Tensor{alias}[]", "int": "SymInt", "float": "float"}
        positional.append(f"{kind[argument.kind]} {name}")
    arguments = ", ".join([*positional, *(["*", *constants] if constants else [])])
    returns = ", ".join("Tensor" for _ in declaration.outputs)
    return f"({arguments}) -> {returns if len(declaration.outputs) == 1 else f'({returns})'}"


def _constant(declaration: Declaration, argument: Argument) -> str:
    """A compile-time constant in the schema, by the type of its default."""
    default = argument.default
    if type(default) not in (bool, int, float, str) or (type(default) is float and not math.isfinite(default)):
        raise LaunchError(
            f"compile-time constant `{argument.name}={default!r}` of kernel `{declaration.kernel.entry}` can be no "
            f"argument of {declaration.owner}: torch has none of this type", loc=caller(),
            hint=f"give its value: `computed={{{argument.name!r}: ...}}`",
        )
    text = json.dumps(default) if isinstance(default, str) else repr(default)
    return f"{type(default).__name__} {argument.name}={text}"


# -- what it does


def _like(source: Any, copied: bool) -> Any:
    if copied:
        return source.clone(memory_format=torch.contiguous_format)
    return torch.empty_like(source, memory_format=torch.contiguous_format)


def _zeros_like(source: Any, copied: bool) -> Any:
    return _like(source, True) if copied else torch.zeros_like(source, memory_format=torch.contiguous_format)


def _implementation(declaration: Declaration) -> Callable[..., Any]:
    def implementation(*args: Any, **constants: Any) -> Any:
        arguments = _named(declaration, args, constants)
        outputs = {name: rule(arguments) for name, rule in declaration.outputs.items()}
        _check_fresh(declaration, arguments, outputs)
        declaration.launch(arguments, outputs, _backend(declaration, {**arguments, **outputs}))
        return _returned(outputs)

    return implementation


def _fake(declaration: Declaration) -> Callable[..., Any]:
    def fake(*args: Any, **constants: Any) -> Any:
        arguments = _named(declaration, args, constants)
        return _returned({name: rule(arguments) for name, rule in declaration.outputs.items()})

    return fake


def _named(declaration: Declaration, args: tuple[Any, ...], constants: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name; torch leaves out constants that have the value of their default."""
    found = dict(zip(declaration.arguments, args))
    for name, argument in declaration.arguments.items():
        if argument.kind == "constant":
            found[name] = constants.get(name, argument.default)
    return found


def _returned(outputs: Mapping[str, Any]) -> Any:
    made = tuple(outputs.values())
    return made[0] if len(made) == 1 else made or None


def _check_fresh(declaration: Declaration, arguments: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Refuse an output in memory of an argument before the kernel overwrites it: torch would say so afterwards."""
    taken = {tensor.untyped_storage()._cdata: name for name, tensor in _tensors(arguments)} if outputs else {}
    for name, tensor in _tensors(outputs):
        other = taken.setdefault(tensor.untyped_storage()._cdata, name)
        if other != name or (name in arguments and tensor is arguments[name]):
            raise LaunchError(
                f"output `{name}` of {declaration.owner} is in the memory of `{other}`", loc=caller(),
                hint=f"`outputs={{{name!r}: {name!r}}}` makes a copy to change" if name in arguments
                else "let its function allocate it: `torch.empty_like(...)`",
            )


def _tensors(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors among values, and those in lists, with their names."""
    for name, value in values.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, torch.Tensor):
                yield name, each


def _backend(declaration: Declaration, values: Mapping[str, Any]) -> str:
    """Where tensors are launched on."""
    places: dict[Any, str] = {}
    for name, tensor in _tensors(values):
        places.setdefault(tensor.device, name)
    if len(places) > 1:
        told = " and ".join(f"`{name}` on {device}" for device, name in places.items())
        raise LaunchError(f"the tensors of {declaration.owner} are on several devices: {told}", loc=caller())
    return "gpu" if any(device.type == "cuda" for device in places) else "emulator"


def _vmap(op: Any) -> Callable[..., Any]:
    """One launch for each element of the batch: what a kernel does with a further dimension only its author knows."""
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any, **constants: Any) -> Any:
        def element(value: Any, dim: Any, index: int) -> Any:
            if isinstance(value, (list, tuple)):
                return [element(v, d, index) for v, d in zip(value, dim)] if dim is not None else value
            return value if dim is None else value.select(dim, index).contiguous()

        made = [
            op(*(element(*each, index) for each in zip(args, in_dims)), **constants)
            for index in range(info.batch_size)
        ]
        if isinstance(made[0], torch.Tensor):
            return torch.stack(made), 0
        return tuple(map(torch.stack, zip(*made))), (0,) * len(made[0])

    return vmap


# -- gradients


def _refuse_gradients(name: str, op: Any, declaration: Declaration) -> None:
    """Torch itself takes the result of an op that mutates for one of which gradients need not know."""
    def autograd(keyset: Any, *args: Any, **constants: Any) -> Any:  # noqa: ARG001
        if torch.is_grad_enabled():
            for argument, tensor in _tensors(dict(zip(declaration.arguments, args))):
                if tensor.requires_grad:
                    stored = declaration.mutated[0]
                    raise LaunchError(
                        f"argument `{argument}` of {declaration.owner} requires a gradient; the op stores to "
                        f"`{stored}`, of which no gradient knows", loc=caller(),
                        hint="`with torch.no_grad():` around the call, pass `.detach()`, or let the op give a changed "
                        f"copy: `outputs={{{stored!r}: {stored!r}}}`",
                    )
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args, **constants)

    namespace, _, short = name.partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    library.impl(short, autograd, "Autograd", with_keyset=True, allow_override=True)
    op.autograd_library = library  # what it has registered goes with it


def _gradient(name: str, forward: Declaration, backward: Any) -> Gradient:
    if isinstance(backward, Kernel):
        owner = f"{name}_backward"
        declaration = backward_kernel(forward, backward, f"op `{owner}`", _zeros_like)
        return by_op(forward, declaration, lambda: _define(owner, declaration))
    if hasattr(backward, "declaration"):
        return by_op(forward, backward.declaration, lambda: backward)
    return by_function(forward, backward)


def _setup_context(gradient: Gradient) -> Callable[..., None]:
    forward = gradient.forward

    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Mapping[str, Any] | None = None
    ) -> None:
        made = output if isinstance(output, tuple) else (output,)
        saved = gradient.saved(_named(forward, inputs, keyword_only_inputs or {}), dict(zip(forward.outputs, made)))
        tensors: list[Any] = []
        ctx.layout = {}
        for name, value in saved.items():
            if isinstance(value, torch.Tensor):
                ctx.layout[name] = len(tensors)
                tensors.append(value)
            elif forward.arguments.get(name) is not None and forward.arguments[name].kind == "tensors":
                ctx.layout[name] = range(len(tensors), len(tensors) + len(value))
                tensors += value
        ctx.others = {name: value for name, value in saved.items() if name not in ctx.layout}
        ctx.counts = {name: len(inputs[n]) for n, name in enumerate(forward.arguments) if _is_list(forward, name)}
        ctx.save_for_backward(*tensors)

    return setup_context


def _is_list(forward: Declaration, name: str) -> bool:
    return forward.arguments[name].kind == "tensors"


def _backward(gradient: Gradient) -> Callable[..., Any]:
    forward = gradient.forward
    positional = [name for name, argument in forward.arguments.items() if argument.kind != "constant"]

    def backward(ctx: Any, *incoming: Any) -> Any:
        tensors = ctx.saved_tensors
        saved = dict(ctx.others)
        for name, place in ctx.layout.items():
            saved[name] = tensors[place] if isinstance(place, int) else [tensors[n] for n in place]
        found = gradient(saved, {name: each.contiguous() for name, each in zip(forward.outputs, incoming)})
        return tuple(found.get(name, [None] * ctx.counts[name] if name in ctx.counts else None) for name in positional)

    return backward


# -- launches that are no ops


def _hide_launches() -> None:
    """Have torch.compile leave a launch alone: it breaks the graph in any case, and would then trace the emulator."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    functions: tuple[Any, ...] = (Launch.__call__, Dispatcher.__getitem__, Dispatcher.configure)
    for function in functions:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = (
            "it does not see what a kernel of ptxdsl does; `ptxdsl.torch.register` makes an op of it"
        )
        if hasattr(frames, "set_code_exec_strategy"):  # what it calls, too; since torch 2.8
            skip = frames._FrameAction.SKIP
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))


_hide_launches()
