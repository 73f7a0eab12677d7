"""What an op of a framework is: the arguments that it takes of its kernel's, what it makes itself, what it launches.

The signature of the kernel says what each argument is, the trace which the kernel stores to. So an op is declared by
what neither can say: the grid, what is allocated, and what is computed from other arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import LaunchError, caller, did_you_mean, similar
from ..ir.signature import ArrayType, HandleType, PtrType, TensorMapType
from ..kernel import Kernel
from ..kernel.compiled_kernel import CompiledKernel
from ..kernel.dispatcher import Launch
from ..launch.scalars import elements
from ..types import ScalarType
from .rules import Rule

__all__ = ["Argument", "Declaration"]


class Argument(NamedTuple):
    """An argument of an op. ``kind`` is "tensor", "tensors" (a list), "int", "float" or, of a constant, "constant"."""

    name: str
    kind: str
    annotation: Any = None
    default: Any = None


class Declaration:
    """An op of ``kernel``. ``outputs`` are allocated for the kernel to store to, ``computed`` are its other arguments.

    Each entry of both, like the grid, the block and the options of `Kernel.configure`, is a value or a function of
    arguments by name. An output or computed argument is no argument of the op, unless its own function asks for it.
    An output may also be the name of the argument that it is ``like(argument, copied)``: a copy if the name is its own.
    ``further`` are arguments of the op that the kernel does not take, ``differentiable`` the kinds of arguments that
    can have gradients. LaunchError says what does not fit together.
    """

    def __init__(
        self, kernel: Kernel, owner: str, *, grid: Any, block: Any, options: Mapping[str, Any],
        like: Callable[[Any, bool], Any], outputs: Mapping[str, Any] | None = None,
        computed: Mapping[str, Any] | None = None, further: Mapping[str, Argument] | None = None,
        differentiable: Collection[str] = ("tensor", "tensors"),
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise LaunchError(
                f"{owner} is made of a kernel, not of {kernel!r}", loc=caller(), hint="write `@ptx_kernel` above it"
            )
        self.kernel, self.owner = kernel, owner
        self.given = {"grid": grid, "block": block, **options}
        known = [*(p.name for p in kernel.parameters), *kernel.signature.constants]
        self._check_names("outputs", outputs or {}, known)
        self._check_names("computed", computed or {}, known)
        extra = {name: argument for name, argument in (further or {}).items() if name not in known}
        known = [*known, *extra]
        # What a function may ask for: of outputs the arguments, of computed arguments the outputs too, of the grid all.
        self.outputs = {
            name: Rule.of_output(name, given, known, owner, like) for name, given in (outputs or {}).items()
        }
        self.computed = {
            name: Rule(f"computed argument `{name}`", given, known, owner) for name, given in (computed or {}).items()
        }
        self.geometry = {name: Rule(name, given, known, owner) for name, given in self.given.items()}
        self._check_options()
        self.arguments = self._arguments(extra)
        self._check_order()
        self.compiled = kernel.compiled(self._constants_to_trace())
        self.stored = self._stored_by(self.compiled)
        self._check_outputs()
        self.mutated = tuple(name for name in self.arguments if name in self.stored and name not in self.outputs)
        self._check_mutated()
        self._differentiable = differentiable
        self._launches: dict[Any, Launch] = {}

    @property
    def differentiable(self) -> list[str]:
        """The arguments that can have gradients."""
        return [
            name for name, argument in self.arguments.items()
            if argument.kind in self._differentiable and _is_float(argument.annotation)
        ]

    # -- what was declared

    def _check_names(self, what: str, given: Mapping[str, Any], known: Collection[str]) -> None:
        for name in given:
            if name not in known:
                raise LaunchError(
                    f"{what} of {self.owner} has `{name}`, and kernel `{self.kernel.entry}` has no parameter of that "
                    "name", loc=caller(), hint=did_you_mean(similar(name, known), otherwise=f"it has {_listed(known)}"),
                )

    def _check_options(self) -> None:
        known = set(inspect.signature(self.kernel.configure).parameters) - {"stream", "backend"}
        for name in self.geometry:
            if name not in known:
                chosen = name in ("stream", "backend")
                why = "follows from the device of the tensors" if chosen else "is no option of a launch"
                raise LaunchError(
                    f"`{name}`, given for {self.owner}, {why}", loc=caller(),
                    hint="leave it out" if chosen else did_you_mean(similar(name, known), "`{}=`"),
                )

    def _taken(self, name: str) -> bool:
        """Whether the op has this argument, or makes it itself."""
        rule = self.outputs.get(name) or self.computed.get(name)
        return rule is None or name in rule.names

    def _arguments(self, further: Mapping[str, Argument]) -> dict[str, Argument]:
        found = [
            Argument(p.name, self._kind(p.name, p.annotation), p.annotation)
            for p in self.kernel.parameters if self._taken(p.name)
        ]
        asked = {name for rule in self._rules() for name in rule.names}
        found += [
            Argument(name, "constant", default=default)
            for name, default in self.kernel.signature.constants.items() if self._taken(name)
        ]
        found += [argument for name, argument in further.items() if name in asked]
        found.sort(key=lambda argument: argument.kind == "constant")
        return {argument.name: argument for argument in found}

    def _rules(self) -> Iterable[Rule]:
        return (*self.outputs.values(), *self.computed.values(), *self.geometry.values())

    def _kind(self, name: str, annotation: Any) -> str:
        if isinstance(annotation, PtrType):
            return "tensor" if annotation.target is None else "tensors"
        if isinstance(annotation, ArrayType):
            return "tensor"
        if isinstance(annotation, (TensorMapType, HandleType)):
            if name in self.computed:
                return "tensor"
            made = {"TensorMap": f"tensor_map({name}, box)"}.get(str(annotation), f"{annotation}({name})")
            raise self._unsupported(name, annotation, f"computed={{'{name}': lambda {name}: ptxdsl.{made}}}")
        assert isinstance(annotation, ScalarType)
        if annotation.lanes > 1 or annotation.bits > 64 or (annotation.kind == "f" and not annotation.numpy_name):
            raise self._unsupported(name, annotation, f"computed={{'{name}': lambda ...: ...}}")
        return "float" if annotation.kind == "f" else "int"

    def _unsupported(self, name: str, annotation: Any, hint: str) -> LaunchError:
        return LaunchError(
            f"parameter `{name}: {annotation}` of kernel `{self.kernel.entry}` can be no argument of {self.owner}",
            loc=caller(), hint=f"compute it from others: `{hint}`",
        )

    def _check_order(self) -> None:
        """Outputs are made of arguments, then what is computed of both: a function cannot ask for what is not there."""
        there = set(self.arguments)
        for what, rules in (("output", self.outputs), ("computed argument", self.computed)):
            for name, rule in rules.items():
                for asked in rule.names:
                    if asked not in there:
                        raise LaunchError(
                            f"{what} `{name}` of {self.owner} is a function of `{asked}`, which is made after it",
                            loc=caller(), hint=f"it can be one of {_listed(there)}",
                        )
            there |= set(rules)

    def _constants_to_trace(self) -> dict[str, Any]:
        """Values of the compile-time constants, with which the trace shows what the kernel stores to."""
        found = {}
        for name, default in self.kernel.signature.constants.items():
            rule = self.computed.get(name)
            if rule is not None and rule.function is None:
                found[name] = rule.given
            elif default is inspect.Parameter.empty:
                raise LaunchError(
                    f"compile-time constant `{name}` of kernel `{self.kernel.entry}` has no default; {self.owner} "
                    "traces it now to see what it stores to", loc=caller(),
                    hint=f"give it a default, or a value: `computed={{'{name}': ...}}`",
                )
        return found

    def _check_outputs(self) -> None:
        annotations = {p.name: p.annotation for p in self.kernel.parameters}
        for name in self.outputs:
            annotation = annotations.get(name)
            if annotation is None or isinstance(annotation, ScalarType) or getattr(annotation, "target", None):
                what = f"`{name}: {annotation}`" if annotation else f"the compile-time constant `{name}`"
                raise LaunchError(
                    f"output `{name}` of {self.owner} is no array: kernel `{self.kernel.entry}` has {what}",
                    loc=caller(),
                )
            if name not in self.stored:
                raise LaunchError(
                    f"output `{name}` of {self.owner} is an argument to which kernel `{self.kernel.entry}` does not "
                    "store", loc=caller(), hint=f"it stores to {_listed(self.stored) or 'none'}",
                )

    def _check_mutated(self) -> None:
        for parameter in self.kernel.parameters:
            name, annotation = parameter.name, parameter.annotation
            if name in self.mutated and name in self.computed and isinstance(annotation, (PtrType, ArrayType)):
                raise LaunchError(
                    f"computed argument `{name}` of {self.owner} is one to which kernel `{self.kernel.entry}` stores; "
                    "what it stores would be lost", loc=caller(),
                    hint=f"let it be an output: `outputs={{{name!r}: ...}}`",
                )

    # -- what is launched

    def launch(self, arguments: Mapping[str, Any], outputs: Mapping[str, Any], backend: str) -> None:
        """Launch the kernel for values of the op's arguments and for the outputs; not where the grid has no block."""
        values, constants, geometry = self.evaluated(arguments, outputs)
        self.check_outputs(values)
        self.check_stores(constants)
        self.launched([values[p.name] for p in self.kernel.parameters], constants, geometry, backend)

    def evaluated(
        self, arguments: Mapping[str, Any], outputs: Mapping[str, Any], later: Collection[str] = ()
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The arguments of the kernel by name but those that are made ``later``, its constants, and the geometry."""
        made = {**arguments, **outputs}
        computed = {name: rule(made) for name, rule in self.computed.items() if name not in later}
        passed = {**made, **computed}
        constants = {name: passed[name] for name in self.kernel.signature.constants if name in passed}
        known = {**passed, **arguments}
        return passed, constants, {name: rule(known) for name, rule in self.geometry.items()}

    def launched(
        self, values: Sequence[Any], constants: Mapping[str, Any], geometry: Mapping[str, Any], backend: str,
        stream: Any = None,
    ) -> None:
        """Launch the kernel for its arguments; not where the grid has no block."""
        if not _empty(geometry["grid"]):
            self._configured(geometry, backend, stream)(*values, **constants)

    def check(self, values: Sequence[Any], constants: Mapping[str, Any], geometry: Mapping[str, Any]) -> None:
        """Raise the LaunchError that a launch would, with arguments that need only look right."""
        self.check_stores(constants)
        compiled = self.kernel.compiled(constants)
        if not _empty(geometry["grid"]):
            compiled.check(self._configured(geometry, "emulator", None).config)
        compiled.bind(values)

    def check_outputs(self, values: Mapping[str, Any]) -> None:
        """Refuse outputs of another dtype than the kernel stores; an argument that does not fit is told of first."""
        wrong: dict[str, str] = {}
        for parameter in self.kernel.parameters:
            dtype = getattr(parameter.annotation, "dtype", None)
            value = values.get(parameter.name)
            if dtype is not None and getattr(parameter.annotation, "target", None) is None and value is not None:
                came = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
                if came not in elements(dtype).names:
                    wrong[parameter.name] = f"{came}; {parameter.annotation} wants {elements(dtype)}"
        if wrong and all(name in self.outputs for name in wrong):
            name, told = next(iter(wrong.items()))
            raise LaunchError(f"output `{name}` of {self.owner} is made as {told}", loc=caller())

    def check_stores(self, constants: Mapping[str, Any]) -> None:
        """Refuse constants with which the kernel stores to more than it was declared to."""
        compiled = self.kernel.compiled(constants)
        if compiled is self.compiled:
            return
        for name in self._stored_by(compiled):
            if name not in self.stored:
                values = ", ".join(f"{name}={value!r}" for name, value in constants.items())
                raise LaunchError(
                    f"kernel `{self.kernel.entry}` with {values} stores to `{name}`, as it did not when {self.owner} "
                    "was made", loc=caller(), hint="make an op for each such value: `computed={...}` fixes it",
                )

    def _stored_by(self, compiled: CompiledKernel) -> list[str]:
        """The parameters that a trace stores to; a number of 64 bits, which might be an address, is none."""
        written = {name.removesuffix("[]") for name in compiled.written}
        arrays = (p.name for p in self.kernel.parameters if not isinstance(p.annotation, ScalarType))
        return [name for name in arrays if name in written]

    def _configured(self, geometry: Mapping[str, Any], backend: str, stream: Any) -> Launch:
        """The launch of a geometry, kept for the next time."""
        try:
            key = (backend, stream, *geometry.values())
            found = self._launches.get(key)
        except TypeError:  # a list cannot be a key
            return self.kernel.configure(**geometry, backend=backend, stream=stream)
        if found is None:
            if len(self._launches) >= _KEPT:
                self._launches.clear()
            found = self._launches[key] = self.kernel.configure(**geometry, backend=backend, stream=stream)
        return found


def _is_float(annotation: Any) -> bool:
    """Whether numbers of a parameter, or bits of which it does not say what they are, can be floats."""
    dtype = getattr(annotation, "target", None) or getattr(annotation, "dtype", annotation)
    return not isinstance(dtype, ScalarType) or dtype.kind in "fb"


_KEPT = 256
"""The launches that are kept of an op, one a geometry."""


def _empty(grid: Any) -> bool:
    extents = grid if isinstance(grid, (tuple, list)) else (grid,)
    return any(isinstance(extent, (int, np.integer)) and extent == 0 for extent in extents)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
