"""Writing an instruction of PTX as a user of the language would: from the parsed operands to the arguments of a call.

Nothing here knows a single instruction: registers become values, braces become lists, results become ``out=``. What is
reached this way is compared with the instruction as it was parsed, operand by operand.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ptxdsl import TensorMap, language as tracing
from ptxdsl.ir import module as ir
from ptxdsl.errors import PtxError
from ptxdsl.isa import Form, OperandSpec
from ptxdsl.text import parse, to_text
from ptxdsl.language import Pointer, const, dynamic_shared, global_, label, local, ptx, ptx_func, reg, shared
from ptxdsl.language.memory.variables import param
from ptxdsl.types import ScalarType, b8, pred, u32, u64


def spelled(mnemonic: str) -> Any:
    """The instruction by attributes, in brackets from the first modifier on that is no Python name."""
    opcode, *tokens = mnemonic.split(".")
    found = getattr(ptx, attribute(opcode))
    for at, token in enumerate(tokens):
        name = attribute(token)
        if not name.isidentifier():
            return found[".".join(tokens[at:])]
        found = getattr(found, name)
    return found


def attribute(token: str) -> str:
    """A modifier as a Python attribute."""
    name = token.replace("::", "__")
    return f"{name}_" if keyword.iskeyword(name) else name


@dataclass
class Writer:
    """The arguments of one instruction, in a kernel that is being traced."""

    module: ir.Module
    function: ir.Function
    named: bool
    made: dict[str, Any] = field(default_factory=dict)
    labels: list[Any] = field(default_factory=list)

    def write(self, instruction: ir.Instruction, call: Callable[..., Any]) -> None:
        """Call the instruction with its own operands."""
        pairs = [(spec, operand) for spec, operand in zip(instruction.form.operands, instruction.operands)]
        given = [(spec, operand) for spec, operand in pairs if not returned(spec)]
        sources = [self.source(instruction.form, spec, operand) for spec, operand in given if spec.name != "_"]
        call(*sources, **self.options(instruction, [pair for pair in pairs if returned(pair[0])]))
        for each in self.labels:
            each.here()

    def options(self, instruction: ir.Instruction, results: list[tuple[OperandSpec, ir.Operand]]) -> dict[str, Any]:
        """``out=`` and ``pred=``; a reg is held here only, or writing to it would change what another name holds."""
        options: dict[str, Any] = {}
        if not self.named:
            return {"out": (None,) * len(results)} if len(results) > 1 else {}
        if len(results) == 1:
            options["out"] = self.target(*results[0])
        elif results:
            options["out"] = tuple(self.target(*pair) for pair in results)
        if instruction.guard is not None:
            options["pred"] = self.predicate(instruction.guard)
        return options

    def target(self, spec: OperandSpec, operand: ir.Operand) -> Any:
        if isinstance(operand, ir.Vector):
            types = spec.types or (spec.type,) * spec.count
            return [self.register(item, kind) for item, kind in zip(operand.items, types)]
        return self.register(operand, spec.type)

    def source(self, form: Form, spec: OperandSpec, operand: ir.Operand) -> Any:
        if spec.kind == "address":
            assert isinstance(operand, ir.Address)
            base = self.address(form, spec, operand)
            parts = (self.source(form, *pair) for pair in zip(spec.parts, operand.parts))
            return (base, *parts) if spec.parts else base
        if isinstance(operand, ir.Vector):
            types = spec.types or (spec.type,) * spec.count
            return [self.register(item, kind) for item, kind in zip(operand.items, types)]
        if isinstance(operand, ir.LabelRef):
            return self.label(operand.label)
        if isinstance(operand, ir.Symbol) and operand.symbol in self.function.branch_tables:
            return [self.label(name) for name in self.function.branch_tables[operand.symbol]]
        if isinstance(operand, ir.Symbol) and spec.kind == "symbol":
            return operand.symbol
        return self.register(operand, spec.type)

    def label(self, name: str) -> Any:
        if name not in self.made:
            self.made[name] = label(here=False)
            self.labels.append(self.made[name])
        return self.made[name]

    def register(self, operand: ir.Operand, wanted: ScalarType | None) -> Any:
        """A value of the type wanted, in a register of the type that was declared."""
        if isinstance(operand, ir.Immediate):
            return bool(operand.bits) if operand.type is pred else operand.value
        if isinstance(operand, ir.Sink):
            return "_"
        if isinstance(operand, ir.SpecialRegister):
            return operand.special
        if isinstance(operand, ir.Not):
            return self.predicate(operand)
        if isinstance(operand, ir.Symbol):
            return self.variable(operand.symbol, operand.offset)
        if isinstance(operand, ir.Selected):
            part = self.register(operand.register, wanted).part(operand.selector)
            return -part if operand.negated else part
        assert isinstance(operand, ir.Register) and wanted is not None
        kind = wanted if wanted.bits == operand.type.bits else operand.type
        return reg(kind)

    def predicate(self, operand: ir.Register | ir.Not) -> Any:
        value = ptx.setp.eq.u32(reg(u32, 0), 0)
        return ~value if isinstance(operand, ir.Not) else value

    def address(self, form: Form, spec: OperandSpec, operand: ir.Address) -> Any:
        if isinstance(operand.base, ir.Symbol):
            return self.variable(operand.base.symbol, operand.offset)
        if isinstance(operand.base, ir.Immediate):
            return operand.base.value
        value = self.register(operand.base, u64 if operand.base.type.bits == 64 else u32)
        space = (spec.space or form.space).split("::")[0]
        return Pointer(b8, space, value, operand.offset) if operand.offset else value

    def variable(self, name: str, offset: int) -> Any:
        """The variable in the language, ``offset`` bytes on."""
        if any(parameter.name == name for parameter in self.function.parameters):
            return f"{name}+{offset}" if offset else name
        if any(function.name == name for function in self.module.functions):
            return ptx_func(callee)
        if name not in self.made:
            found = next(v for v in (*self.function.variables, *self.module.variables) if v.name == name)
            self.made[name] = declared(found)
        pointer = self.made[name]
        return Pointer(pointer.dtype, pointer.space, pointer.base, offset) if offset else pointer


def returned(spec: OperandSpec) -> bool:
    """Whether an operand is a result."""
    return spec.kind == "value" and spec.role == "w" and spec.name != "_"


def callee() -> None:
    """What has an address."""
    ptx.trap()


def declared(variable: ir.Variable) -> Any:
    """A variable like this one, declared in the language."""
    count = 1
    for extent in variable.shape:
        count *= extent or 1
    if variable.space == "shared" and variable.linkage == "extern":
        return dynamic_shared(variable.type)
    if variable.space in ("shared", "local", "param"):
        return {"shared": shared, "local": local, "param": param}[variable.space](variable.type, count)
    if variable.space == "const":
        return const([0] * count, variable.type)
    return global_(variable.type, *(() if variable.type.kind == "o" else (count,)))


def like(one: ir.Operand | None, other: ir.Operand | None) -> bool:
    """Whether two operands are the same but for the names of registers, labels and variables."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ir.Register) and isinstance(other, ir.Register):
        return one.type.bits == other.type.bits and ("p" in one.type.kind) == ("p" in other.type.kind)
    if isinstance(one, ir.Vector) and isinstance(other, ir.Vector):
        return len(one.items) == len(other.items) and all(map(like, one.items, other.items))
    if isinstance(one, ir.Address) and isinstance(other, ir.Address):
        same = like(one.base, other.base) and one.offset == other.offset and len(one.parts) == len(other.parts)
        return same and all(map(like, one.parts, other.parts))
    if isinstance(one, ir.Selected) and isinstance(other, ir.Selected):
        return (one.selector, one.negated) == (other.selector, other.negated)
    if isinstance(one, ir.Immediate) and isinstance(other, ir.Immediate):
        return one.bits == other.bits and one.type.bits == other.type.bits
    if isinstance(one, ir.SpecialRegister):
        return one == other
    if isinstance(one, ir.Symbol) and isinstance(other, ir.Symbol):
        return one.offset == other.offset
    return True


def reached(instruction: ir.Instruction, function: ir.Function, module: ir.Module) -> str | None:
    """Why the language does not reach an instruction, by either spelling, into regs or new values; None if it does."""
    why = _reached(instruction, function, module, True)
    simple = all(_as_new(*pair) for pair in zip(instruction.form.operands, instruction.operands) if returned(pair[0]))
    if why is None and instruction.guard is None and simple:
        return _reached(instruction, function, module, False)
    return why


def _as_new(spec: OperandSpec, operand: ir.Operand) -> bool:
    """Whether a result is what the instruction gives where no ``out`` says otherwise."""
    types = spec.types or (spec.type,) * max(1, spec.count)
    items = operand.items if isinstance(operand, ir.Vector) else (operand,)
    return all(isinstance(i, ir.Register) and kind and i.type.bits == kind.bits for i, kind in zip(items, types))


def _reached(instruction: ir.Instruction, function: ir.Function, module: ir.Module, named: bool) -> str | None:
    mnemonic = instruction.form.mnemonic

    def kernel() -> None:
        Writer(module, function, named).write(instruction, ptx[mnemonic] if named else spelled(mnemonic))

    try:
        if spelled(mnemonic).mnemonic != mnemonic:
            return f"spelled `{spelled(mnemonic).mnemonic}`"
        came = tracing.trace(rewritten(kernel, function))
    except PtxError as error:
        return f"{error.message}"
    except Exception as error:  # noqa: BLE001 - a finding like the others
        return f"a bug: {error!r}"
    if parse(to_text(came)) != came:
        return "does not survive printing"
    emitted = [found for found in came.functions[-1].instructions() if found.form.mnemonic == mnemonic]
    for found in emitted:
        same = found.form is instruction.form and (found.guard is None) == (instruction.guard is None)
        if same and all(map(like, instruction.operands, found.operands)):
            return None
    if not named and any(found.form is not instruction.form for found in emitted):
        return None  # only ``out`` tells the two apart
    return f"came as {[(found.form, found.operands) for found in emitted]}"


def rewritten(kernel: Callable[[], None], function: ir.Function) -> Callable[..., None]:
    """The kernel function with the parameters of the parsed one."""
    names = {p.name: TensorMap if p.shape else p.type for p in function.parameters}
    if not names:
        return kernel
    scope: dict[str, Any] = {"kernel": kernel, "types": names}
    head = ", ".join(f"{name}: types[{name!r}]" for name in names)
    exec(f"def outer({head}) -> None:\n    kernel()\n", scope)
    made: Callable[..., None] = scope["outer"]
    return made
