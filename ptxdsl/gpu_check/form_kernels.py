"""A kernel of one instruction: each thread loads its operands, executes it, and stores the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..isa import Form
from ..isa.specs import OperandSpec
from ..isa.targets import LATEST, lowest, version_text
from ..types import ScalarType

__all__ = ["form_kernel"]


class _Writer:
    """The body of a kernel while it is written: declarations, what stands before the instruction, and behind it."""

    def __init__(self) -> None:
        self.declared: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self.arrays = 0

    def register(self, kind: ScalarType, name: str, least: int) -> str:
        """Declare a register for an operand of a type, of no less bits than ``least``."""
        held = "pred" if kind.bits == 1 else f"b{max(least, kind.register.bits)}"
        self.declared.append(f".reg .{held} {name};")
        return name

    def address(self, lines: list[str], nbytes: int) -> None:
        """The address of this thread's element of the next array into %a."""
        lines.append(f"ld.param.u64 %a, [x{self.arrays}];")
        lines.append(f"mad.wide.u32 %a, %t, {nbytes}, %a;")
        self.arrays += 1

    def load(self, name: str, bits: int) -> None:
        """Load a register."""
        self.address(self.before, max(bits, 8) // 8)
        if bits == 1:
            self.before.append(f"ld.global.u8 %h, [%a]; setp.ne.u16 {name}, %h, 0;")
        else:
            self.before.append(f"ld.global.{'u8' if bits == 8 else f'b{bits}'} {name}, [%a];")

    def store(self, name: str, bits: int) -> None:
        """Store a register."""
        self.address(self.after, max(bits, 8) // 8)
        if bits == 1:
            self.after.append(f"selp.u16 %h, 1, 0, {name}; st.global.u8 [%a], %h;")
        else:
            self.after.append(f"st.global.{'u8' if bits == 8 else f'b{bits}'} [%a], {name};")


def form_kernel(form: Form, numbers: Sequence[int] = (), selectors: Sequence[str] = ()) -> str:
    """PTX with a kernel ``k`` of an instruction: parameters ``x0``, ``x1``, ... point to an array for each register.

    Those that it reads come first, in the order of the operands, those in braces one after the other, then those that
    it writes. Predicates are bytes. ``numbers`` are those for the operands that must be numbers, ``selectors`` the
    parts of registers that are named.

    >>> from ptxdsl.isa import lookup
    >>> print(form_kernel(lookup("add.u32")[0]).splitlines()[-6])
    add.u32 %r0, %r1, %r2;
    """
    writer, given = _Writer(), iter(numbers)
    operands: list[str] = []
    registers: list[list[tuple[str, int]]] = [[], []]
    parts = [*selectors, *[""] * (len(form.operands) - len(selectors))]
    for number, (spec, selector) in enumerate(zip(form.operands, parts)):
        if not spec.register:
            operands.append(str(next(given, 5)))
            continue
        if spec.role == "rw" or spec.kind != "value":
            raise ValueError(f"{form.mnemonic} has an operand that is no plain register")
        names = list(_names(writer, spec, number))
        registers[spec.written] += names
        text = ", ".join(name for name, _ in names)
        operands.append(_selected("{" + text + "}" if spec.count or spec.types else text, selector))
    for name, bits in registers[0]:
        writer.load(name, bits)
    _flag(writer, form.effects.reads_carry, form.effects.writes_carry, registers[1])
    text = ""
    for spec, operand in zip(form.operands, operands):
        text += ("|" if spec.joined else ", " if text else "") + operand
    return _module(form, writer, f"{form.mnemonic} {text};")


def _names(writer: _Writer, spec: OperandSpec, number: int) -> Iterator[tuple[str, int]]:
    """The registers of an operand, declared, with the bits of each."""
    kinds = spec.types or [spec.type] * max(1, spec.count)
    least = 8 if spec.count or spec.types else 16  # a vector has the bits of its registers
    for at, kind in enumerate(kinds):
        assert kind is not None
        yield writer.register(kind, f"%r{number}" + (f"_{at}" if len(kinds) > 1 else ""), least), kind.bits


def _selected(register: str, selector: str) -> str:
    """A register, or the part of it that is named."""
    sign, part = ("-", selector[1:]) if selector.startswith("-") else ("", selector)
    return f"{sign}{register}.{part}" if part else f"{sign}{register}"


def _flag(writer: _Writer, reads: bool, writes: bool, results: list[tuple[str, int]]) -> None:
    """Set the carry flag before the instruction, and store what it is behind it, before what else it gives."""
    if reads:
        writer.declared += [".reg .pred %c;", ".reg .b32 %cb;"]
        writer.load("%c", 1)
        writer.before.append("selp.u32 %cb, 1, 0, %c; add.cc.u32 %cb, %cb, 0xffffffff;")
    if writes:
        writer.declared += [".reg .b32 %cw;", ".reg .pred %cp;"]
        writer.after.append("addc.u32 %cw, 0, 0; setp.ne.u32 %cp, %cw, 0;")
    for name, bits in results:
        writer.store(name, bits)
    if writes:
        writer.store("%cp", 1)


def _module(form: Form, writer: _Writer, instruction: str) -> str:
    version, target = lowest(form.needs)
    version = max(version, (8, 0))
    parameters = ", ".join(f".param .u64 x{number}" for number in range(writer.arrays))
    return "\n".join([
        f".version {version_text(min(version, LATEST))}", f".target {target}", ".address_size 64",
        f".visible .entry k({parameters})", "{",
        ".reg .b64 %a;", ".reg .b32 %t, %u;", ".reg .b16 %h;", *writer.declared,
        "mov.u32 %t, %ctaid.x; mov.u32 %u, %ntid.x; mul.lo.u32 %t, %t, %u; mov.u32 %u, %tid.x; add.u32 %t, %t, %u;",
        *writer.before, instruction, *writer.after, "ret;", "}", "",
    ])
