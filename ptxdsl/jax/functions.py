"""A kernel as a function of JAX, and its gradient.

All that a launch needs but the addresses is known when JAX traces a program, since shapes are: the grid, the shapes of
the outputs, the computed arguments. So a call checks its arguments as a launch does, there and then, in the user's
thread and with the user's line, and what the program keeps is a launch that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import LaunchError, caller
from ..frameworks.declaration import Declaration
from ..frameworks.gradients import Gradient, backward_kernel, by_function, by_op
from ..ir.signature import HandleType, PtrType, TensorMapType
from ..kernel import Kernel
from ..launch.arrays import describe
from ..types import ScalarType
from .launches import TARGET, Given, Made, Operand, PlannedLaunch, Result, Source, Table, number_of, register_target
from .xla_ffi import Memory

__all__ = ["Function", "function"]


def function(
    kernel: Kernel, *, grid: Any, block: Any, outputs: Mapping[str, Any] | None = None,
    computed: Mapping[str, Any] | None = None, backward: Any = None, **options: Any,
) -> Function:
    """Make a function of JAX arrays of a kernel; it works under ``jit``, ``grad`` (with ``backward``) and ``vmap``.

    The function takes the kernel's parameters by their names: ``Ptr`` and ``Array`` are arrays, a ``Ptr[Ptr]`` is a
    list of arrays, scalars are numbers; compile-time constants are taken by keyword. A Python number is part of the
    program; one that JAX has traced, or a JAX array without dimensions, is read when the kernel is launched (on a GPU
    this waits for it). ``grid``, ``block`` and all ``options`` of `Kernel.configure` are values, or functions of
    arguments by name; they may use the shapes of arrays, not what these hold. A grid of 0 blocks launches nothing.

    It returns what the kernel stores to: first the ``outputs``, in this order, then, as changed copies, arguments that
    are stored to and are no outputs. An output is a function that gives a ``jax.ShapeDtypeStruct``, or an array with
    what it is to hold at first, or it is the name of the argument that it is shaped like. ``computed`` are parameters
    that are computed of the arguments and outputs: values, or functions of these; for a ``TensorMap`` or a ``Texture``
    the function gets the array in memory, when the kernel is launched. A function that asks for an argument of its own
    name leaves it an argument.

    ``backward`` gives the gradients: a kernel that stores to ``grad_x`` for the argument ``x`` (launched as this one
    is; what it stores to begins as zeros), another `Function` with outputs of such names, or a Python function that
    returns a dict from arguments to gradients. Each asks by name for what it needs: arguments, outputs, computed
    arguments, and ``grad_out``, the gradient of the output ``out``.

    Under ``vmap`` the kernel is launched once for each element, one after the other. LaunchError says what does not
    fit, here or when the function is called or traced; what goes wrong in a launch is a ``jax.errors.JaxRuntimeError``
    with the text of the error.

    >>> import jax
    >>> from ptxdsl import Ptr, cdiv, f32, ptx, ptx_kernel, u32, when
    >>> @ptx_kernel
    ... def square(n: u32, x: Ptr[f32], out: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     with when(i < n):
    ...         out[i] = x[i] * x[i]
    >>> f = function(
    ...     square, grid=lambda n: cdiv(n, 256), block=256, outputs={"out": "x"}, computed={"n": lambda x: x.size},
    ...     backward=lambda grad_out, x: {"x": 2 * x * grad_out})
    >>> x = jax.numpy.array([1.0, 2.0, 3.0])
    >>> jax.jit(f)(x).tolist(), jax.grad(lambda x: f(x).sum())(x).tolist()
    ([1.0, 4.0, 9.0], [2.0, 4.0, 6.0])
    """
    declaration = _declare(
        kernel, grid=grid, block=block, options=options, outputs=dict(outputs or {}), computed=computed
    )
    return Function(declaration, None if backward is None else _gradient(declaration, backward))


class Function:
    """A function of JAX arrays that launches a kernel; see :func:`function`."""

    def __init__(self, declaration: Declaration, gradient: Gradient | None = None) -> None:
        self.declaration, self.gradient = declaration, gradient
        register_target()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs: one, or a tuple."""
        arguments = self._named(args, named)
        for name, value in arguments.items():
            self._check(name, value)
        outputs = self._launch(arguments) if self.gradient is None else self._differentiable(self.gradient, arguments)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"<{self.declaration.owner}: ({', '.join(self.declaration.arguments)}) -> {self._results()}>"

    def _results(self) -> str:
        return f"({', '.join(self.declaration.outputs)})"

    def _named(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        known, owner = self.declaration.arguments, self.declaration.owner
        positional = [name for name, argument in known.items() if argument.kind != "constant"]
        found = dict(zip(positional, args))
        problem = f"{len(args)} came" if len(args) > len(positional) else ""
        for name, value in named.items():
            problem = problem or (f"`{name}` came twice" if name in found else "")
            problem = problem or ("" if name in known else f"it has no `{name}`")
            found[name] = value
        found = {**{n: a.default for n, a in known.items() if a.kind == "constant"}, **found}
        missing = [f"`{name}`" for name in positional if name not in found]
        if missing or problem:
            raise LaunchError(
                f"{owner} takes {', '.join(known)}: {problem or ' and '.join(missing) + ' missing'}", loc=caller()
            )
        return found

    def _check(self, name: str, value: Any) -> None:
        """Refuse what is no array of JAX's or numpy's where one is wanted, and arrays that JAX would round."""
        kind, problem = self.declaration.arguments[name].kind, ""
        hint = f"`{name} = jax.numpy.asarray({name})`"
        if kind == "tensor" and (isinstance(value, (list, tuple)) or not _is_array(value)):
            problem = "it wants an array of JAX or numpy"
        elif kind == "tensors" and not (isinstance(value, (list, tuple)) and all(map(_is_array, value))):
            problem, hint = "it wants a list of arrays of JAX or numpy", f"pass `[{name}]`"
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, np.ndarray) and jax.dtypes.canonicalize_dtype(each.dtype) != each.dtype:
                problem = f"JAX would make it {jax.dtypes.canonicalize_dtype(each.dtype)}"
                hint = '`jax.config.update("jax_enable_x64", True)`'
        if problem:
            owner = self.declaration.owner
            raise LaunchError(f"argument `{name}` of {owner} is {describe(value)}; {problem}", loc=caller(), hint=hint)

    def _launch(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The call of XLA's, of one launch."""
        call = _Call(self.declaration, arguments)
        made = jax.ffi.ffi_call(
            TARGET, [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in call.outputs.values()],
            vmap_method="sequential", input_output_aliases=call.aliases,
        )(*call.operands, launch=call.planned().keep())
        return tuple(made)

    def _differentiable(self, gradient: Gradient, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The outputs, with a gradient for the arrays among the arguments; the numbers are as they are."""
        arrays = {name: value for name, value in arguments.items() if _is_array(value)}
        others = {name: value for name, value in arguments.items() if name not in arrays}
        known: dict[str, Any] = {}  # of what the backward pass wants, what is no array: it stays a number

        launch = jax.custom_vjp(lambda arrays: self._launch({**others, **arrays}))

        def forward(arrays: Mapping[str, Any]) -> tuple[Any, Any]:
            made = launch(arrays)  # not the launch alone, so that this has a gradient, too
            saved = gradient.saved({**others, **arrays}, dict(zip(self.declaration.outputs, made)))
            known.update({name: value for name, value in saved.items() if not _is_array(value)})
            return made, {name: value for name, value in saved.items() if _is_array(value)}

        def backward(saved: Mapping[str, Any], incoming: tuple[Any, ...]) -> tuple[Any]:
            found = gradient({**known, **saved}, dict(zip(self.declaration.outputs, incoming)))
            return ({name: found.get(name) for name in arrays},)

        launch.defvjp(forward, backward)
        made: tuple[Any, ...] = launch(arrays)
        return made


class _Call:
    """What a call of a function is to XLA: its operands, and where each argument of the kernel comes from."""

    def __init__(self, declaration: Declaration, arguments: Mapping[str, Any]) -> None:
        self.declaration = declaration
        self.operands: list[Any] = []
        self.aliases: dict[int, int] = {}
        self.outputs = {name: rule(arguments) for name, rule in declaration.outputs.items()}
        for number, value in enumerate(self.outputs.values()):
            if not isinstance(value, jax.ShapeDtypeStruct):
                self.aliases[len(self.operands)] = number
                self.operands.append(value)
        self.made = {**arguments, **self.outputs}
        at_launch = [p.name for p in declaration.kernel.parameters if _is_descriptor(p.annotation)]
        self.values, self.constants, self.geometry = declaration.evaluated(
            arguments, self.outputs, [name for name in at_launch if name in declaration.computed]
        )
        declaration.check_outputs(self.values)
        for name, value in self.constants.items():
            if isinstance(value, (jax.Array, jax.core.Tracer)):
                raise LaunchError(
                    f"compile-time constant `{name}` of {declaration.owner} is a value that JAX computes", loc=caller(),
                    hint=f'`jax.jit(f, static_argnames="{name}")`',
                )

    def planned(self) -> PlannedLaunch:
        """The launch, which fits these arguments: LaunchError if it does not."""
        kernel = self.declaration.kernel
        sources = tuple(self._source(p.name, p.annotation) for p in kernel.parameters)
        planned = PlannedLaunch(self.declaration, sources, self.constants, self.geometry, caller())
        numbers = {source.index for source in sources if isinstance(source, Operand) and source.scalar}
        operands = [_dummy(each, True, number in numbers) for number, each in enumerate(self.operands)]
        results = [_dummy(each, False) for each in self.outputs.values()]
        self.declaration.check(planned.arguments(operands, results), self.constants, self.geometry)
        return planned

    def _source(self, name: str, annotation: Any) -> Source:
        rule = self.declaration.computed.get(name)
        if _is_descriptor(annotation) and rule is not None and rule.function is not None:
            annotations = {p.name: p.annotation for p in self.declaration.kernel.parameters}
            return Made(rule, tuple((asked, self._array(asked, annotations.get(asked))) for asked in rule.names))
        return self._array(name, annotation)

    def _array(self, name: str, annotation: Any) -> Source:
        """An array, a list of arrays or a number."""
        if name in self.outputs:
            return Result(list(self.outputs).index(name))
        value = self.values.get(name, self.made.get(name))
        if isinstance(annotation, PtrType) and annotation.target is not None and isinstance(value, (list, tuple)):
            return Table(tuple(self._operand(each) for each in value))
        if isinstance(annotation, ScalarType):
            is_number = not isinstance(value, (jax.Array, jax.core.Tracer)) or value.shape != ()
            return Given(value) if is_number else self._operand(value, scalar=True)
        return self._operand(value) if _is_array(value) else Given(value)

    def _operand(self, value: Any, scalar: bool = False) -> Operand:
        self.operands.append(value)
        return Operand(len(self.operands) - 1, scalar)


def _dummy(value: Any, readonly: bool, is_number: bool = False) -> Any:
    """An array of this shape at an address that is none, to check it by; 0 for one that is a number."""
    if is_number:
        return number_of(np.zeros((), value.dtype))
    return Memory(_ALIGNED, np.dtype(value.dtype).name, tuple(value.shape), None, readonly)


_ALIGNED = 1 << 12
"""An address that all alignments divide."""


def _is_array(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_array, value))
    return isinstance(value, (jax.Array, jax.core.Tracer, np.ndarray))


def _is_descriptor(annotation: Any) -> bool:
    return isinstance(annotation, (TensorMapType, HandleType))


# -- declarations

_DIFFERENTIABLE = ("tensor", "tensors", "float")


def _declare(kernel: Kernel, *, outputs: dict[str, Any], **options: Any) -> Declaration:
    """The declaration, in which all that the kernel stores to is an output: JAX has no arrays that change."""
    owner = f"jax function of kernel `{getattr(kernel, 'entry', kernel)}`"
    options.update(like=_like, differentiable=_DIFFERENTIABLE)
    declaration = Declaration(kernel, owner, outputs=outputs, **options)
    if declaration.mutated:
        outputs = {**outputs, **{name: name for name in declaration.mutated}}
        declaration = Declaration(kernel, owner, outputs=outputs, **options)
    if not declaration.outputs:
        raise LaunchError(
            f"{owner} would give nothing: the kernel stores to none of its arguments", loc=caller(),
            hint=f"launch it: `{kernel.entry}[grid, block](...)`",
        )
    return declaration


def _like(source: Any, copied: bool) -> Any:
    return jnp.asarray(source) if copied else jax.ShapeDtypeStruct(jnp.shape(source), jnp.result_type(source))


def _zeros_like(source: Any, copied: bool) -> Any:
    return jnp.asarray(source) if copied else jnp.zeros(jnp.shape(source), jnp.result_type(source))


def _gradient(forward: Declaration, backward: Any) -> Gradient:
    if isinstance(backward, Kernel):
        declaration = backward_kernel(forward, backward, f"backward of {forward.owner}", _zeros_like)
        return by_op(forward, declaration, lambda: Function(declaration))
    if isinstance(backward, Function):
        return by_op(forward, backward.declaration, lambda: backward)
    return by_function(forward, backward)
