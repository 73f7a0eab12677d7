"""What a module declares, and whether its version and target have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from .. import ir
from ..errors import Loc, VerifyError, did_you_mean, similar
from ..ir import SpecialRegister
from ..isa import Form, Need
from ..isa import targets
from ..isa.directives import DIRECTIVES, TARGET_OPTIONS, VARIABLE_ATTRIBUTES
from ..isa.targets import version_text
from ..types import ScalarType
from .form_plans import FormPlan

__all__ = ["ModuleContext", "fail", "near"]


class ModuleContext:
    """What the functions share: names, version and target."""

    def __init__(self, module: ir.Module, foreign: bool, filename: str) -> None:
        self.module, self.foreign, self.filename = module, foreign, filename
        self.variables = {v.name: v for v in module.variables}
        self.functions = {f.name: f for f in module.functions}
        self.plans: dict[Form, FormPlan] = {}
        self.is_legacy = module.target in targets.LEGACY or module.version < (6, 3)
        """Whether it is for targets older than those of the rows."""
        self.specials: set[SpecialRegister] = set()

    def head(self) -> None:
        """Version, target, and what is declared at the level of the module."""
        module = self.module
        if module.target not in {**targets.TARGETS, **targets.LEGACY, **targets.FORMER}:
            known = (*targets.LEGACY, *targets.TARGETS)
            fail(f"the target {module.target} is not known", hint=near(module.target, known))
        since = targets.introduced(module.target)
        if module.version < since:
            has = version_text(module.version)
            fail(
                f".target {module.target} came with PTX {version_text(since)}, and this module is PTX {has}",
                hint=f"write `.version {version_text(since)}`",
            )
        for option in module.target_options:
            if option not in TARGET_OPTIONS:
                fail(f"`.target` has no option {option}", hint=f"there are {', '.join(TARGET_OPTIONS)}")
        self._names()
        for variable in module.variables:
            self.variable(variable)
        self.fits("const", module.variables)
        for name, numbers in module.directives:
            for function in map(str, numbers) if name == "alias" else ():
                if function not in self.functions:
                    fail(f"an alias names {function}, which is no function here", hint=near(function, self.functions))

    def _names(self) -> None:
        defined: set[str] = set()
        module = self.module
        for name in [v.name for v in module.variables] + [f.name for f in module.functions if f.body is not None]:
            if name in defined:
                fail(f"{name} is defined twice", hint="give one of the two another name")
            defined.add(name)

    def variable(self, variable: ir.Variable) -> None:
        """A variable, its type, and the symbols of its initial values."""
        self.type(variable.type, f"the variable {variable.name}")
        self.attributes(variable.attributes)
        if variable.type.__name__ == "samplerref" and "texmode_independent" not in self.module.target_options:
            hint = f"write `.target {self.module.target}, texmode_independent`"
            fail(f"{variable.name} is a .samplerref, and textures have samplers of their own here", hint=hint)
        for value in variable.values or ():
            if not isinstance(value, int) and value.symbol not in self.variables and value.symbol not in self.functions:
                fail(
                    f"the initial value of {variable.name} is the address of {value.symbol}, which is not declared",
                    hint=f"declare {value.symbol} before it",
                )

    def fits(self, space: str, variables: list[ir.Variable], where: str = "") -> None:
        """Whether variables are together no larger than a memory of fixed size."""
        nbytes, most = sum(v.nbytes for v in variables if v.space == space), targets.MEMORY[space]
        if nbytes > most:
            fail(f"the .{space} variables{where} have {nbytes} bytes, and .{space} memory has {most}")

    def attributes(self, attributes: tuple[ir.Directive, ...]) -> None:
        """Whether the version and target have what stands in ``.attribute(...)``."""
        for name, _ in attributes:
            self.needs(VARIABLE_ATTRIBUTES[name].needs, f"`.attribute(.{name})`", None)

    def directives(self, function: ir.Function) -> None:
        """What stands at the head of a function or prototype: its numbers, and what excludes what."""
        names = [name for name, _ in function.directives]
        for name, numbers in function.directives:
            if name not in DIRECTIVES:
                continue
            spec = DIRECTIVES[name]
            self.needs(spec.needs, f"`.{name}`", None)
            if spec.until is not None and self.module.version >= spec.until:
                fail(f"`.{name}` of {function.name} is gone since PTX {version_text(spec.until)}")
            if any(isinstance(number, int) and number < spec.lowest for number in numbers):
                fail(f"`.{name}` of {function.name} has a 0, and wants positive numbers")
            if spec.excludes in names:
                fail(f"`.{name}` and `.{spec.excludes}` of {function.name} exclude each other", hint="drop one of them")
        if "noreturn" in names and function.results:
            fail(f"{function.name} is `.noreturn`, and has a result")

    def parameters(self, entry: ir.Function) -> None:
        """The parameters of an entry: whether they are in memory, and not too large together."""
        nbytes = 0
        for parameter in entry.parameters:
            if parameter.space == "reg":
                hint = f"declare it `.param .{parameter.type} {parameter.name}`"
                fail(f"the parameter {parameter.name} of the entry {entry.name} is a register", hint=hint)
            align = parameter.align or parameter.type.bytes
            nbytes = -(-nbytes // align) * align + parameter.nbytes
        if nbytes > targets.MOST_PARAMETERS:
            fail(f"the parameters of {entry.name} have {nbytes} bytes, and they can have {targets.MOST_PARAMETERS}")
        if nbytes > targets.PARAMETERS:
            self.needs(targets.MANY_PARAMETERS, f"{entry.name} with {nbytes} bytes of parameters", None)

    def type(self, kind: ScalarType, what: str) -> None:
        """Whether variables and registers of a type exist in this version."""
        if kind.bits == 128 and self.module.version < (8, 3):
            fail(f"{what} is a .b128, which needs PTX 8.3; this module is PTX {version_text(self.module.version)}")

    def needs(self, needs: tuple[Need, ...], what: str, loc: Loc | None) -> None:
        """Whether the version and target of the module have something."""
        module = self.module
        unmet = targets.unmet(needs, module.version, module.target) if needs else None
        if unmet is None:
            return
        if unmet.version > module.version:
            wants, has = version_text(unmet.version), version_text(module.version)
            fail(f"{what} needs PTX {wants}, and this module is PTX {has}", loc=loc, hint=f"write `.version {wants}`")
        fail(
            f"{what} needs {' or '.join(unmet.targets)}, and this module is for {module.target}", loc=loc,
            hint=f"write `.target {unmet.targets[0]}`" if unmet.targets else None,
        )


def near(name: str, known: Iterable[str]) -> str | None:
    """A hint with the names that are like ``name``, if there are any."""
    return did_you_mean(similar(name, known, 3, 0.6), "{}")


def fail(message: str, *, loc: Loc | None = None, hint: str | None = None) -> NoReturn:
    """Raise a VerifyError."""
    raise VerifyError(message, loc=loc, hint=hint)
