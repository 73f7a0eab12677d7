"""``ptx``: every instruction under its PTX name, one call for one instruction.

``ptx.fma.rn.f32(a, b, c)`` walks the table modifier by modifier, so that a wrong one is an error where it stands, with
what would be right. The parts of a name are kept: an instruction spelled a second time costs four dictionary lookups.
"""

from __future__ import annotations

import inspect
import keyword
from functools import reduce
from typing import Any, NoReturn

from ... import ir
from ...errors import PtxTypeError, TraceError, UnknownInstruction, did_you_mean, similar
from ...isa import Form, Special
from ...isa import table as isa
from ..builder import Trace, current, thread
from ..calls import call
from ..errors import located, relocated
from ..instruction_names import InstructionName, Name, NoValue
from ..introspection.call_sites import getframe, places
from ..memory.addresses import guard_of
from ..operands import REG_KINDS, Binding, apply, bind, kind_of
from ..values.moves import move_form
from ..values.value import Parameter, Reg, Result, Value, Vec

__all__ = ["Instruction", "Namespace", "ptx"]


def _spelled(name: str) -> str:
    """A Python attribute as PTX writes it: ``global_`` is ``global``, ``shared__cta`` is ``shared::cta``."""
    if name.endswith("_") and keyword.iskeyword(name[:-1]):
        return name[:-1]
    return name.replace("__", "::")


class _NoTrace(TraceError, AttributeError):
    """A special register where no kernel is traced: to what only looks (Tab, ``inspect``), it is not there."""


class _Help:
    """The docstring of a name of the namespace: the class's, and what the table has of the name."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, name: Instruction | _Components | None, _: object = None) -> str:
        if name is None:
            return self.text
        from ...isa.generate.pages import describe

        pattern = repr(name).partition(".")[2]
        return f"{describe(pattern if isinstance(name, Instruction) else f'%{pattern}')}\n\n{self.text}"


class Instruction(InstructionName):
    __doc__ = _Help("""An instruction, or the beginning of its name.

    Called, it appends the instruction and returns its result: a Value, a Vec for one in braces, a tuple for several.
    ``out`` names the reg (the list of them) to write instead, ``"_"`` where PTX allows to drop the result; of several
    results each may be None for a new Value. ``pred`` is a predicate that guards it.
    """)

    mnemonic: str
    __signature__ = inspect.Signature([
        inspect.Parameter("operands", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None),
        inspect.Parameter("pred", inspect.Parameter.KEYWORD_ONLY, default=None),
    ])

    def __init__(self, mnemonic: str) -> None:
        object.__setattr__(self, "mnemonic", mnemonic)
        self._forms: tuple[Form, ...] | None = None
        self._bindings: dict[tuple[object, ...], Binding] = {}

    def __repr__(self) -> str:
        return f"ptx.{self.mnemonic}"

    def __reduce__(self) -> tuple[object, ...]:
        return _named, (self.mnemonic,)

    def __getattr__(self, name: str) -> Instruction:
        if name.startswith("_"):
            raise AttributeError(name)
        mnemonic = f"{self.mnemonic}.{_spelled(name)}"
        if not isa.begins(mnemonic):
            raise relocated(isa.unknown(mnemonic))
        child = self.__dict__[name] = _instruction(mnemonic)
        return child

    def __getitem__(self, modifiers: str) -> Instruction:
        return ptx[f"{self.mnemonic}.{modifiers}"]

    def __dir__(self) -> list[str]:
        words = (word.replace("::", "__") for word in isa.completions(self.mnemonic) if word)
        return sorted(f"{word}_" if keyword.iskeyword(word) else word for word in words)

    def __call__(self, *operands: Any, out: Any = None, pred: Any = None) -> Any:
        trace = thread.trace or current()
        kinds: list[Any] = []
        sources: list[Any] = [None]  # the first is for the result
        for o in operands:
            kind = o.__class__
            if kind is Result or kind is Reg or kind is Parameter:
                kinds.append(o.type if kind is not Reg else REG_KINDS[o.type])
                sources.append(o.register if o.region.owner is trace else o.use(trace))
            else:
                kinds.append(kind if kind is int or kind is float else kind_of(o))
                sources.append(o)
        if out is not None:
            kinds += None, kind_of(out) if out.__class__ is not Reg else REG_KINDS[out.type]
        key = tuple(kinds)
        binding = self._bindings.get(key) or self._bound(key, operands, out)
        guard = None if pred is None else guard_of(trace, pred)
        form, _, results, _, direct, width, numbers, others = binding
        if not direct or (out.__class__ is not Reg and (out is not None or (guard is not None and results))):
            return apply(trace, binding, operands, out, guard)
        for at, table in numbers:
            sources[at] = table[sources[at]]
        for at, spec, convert in others:
            sources[at] = convert(trace, form, spec, operands[at - 1])
        result = out
        if not results:
            del sources[0]
        elif out is not None:
            trace.operands = operands
            sources[0] = out.write(trace)
            trace.operands = ()
        else:
            type, region = results[0], trace.region
            fresh = trace.supply[type]
            if width:
                registers = [fresh() for _ in range(width)]
                sources[0] = ir.Vector(tuple(registers))
                result = Vec([Result(register, type, region) for register in registers])
            else:
                sources[0] = register = fresh()
                result = Result(register, type, region)
        frame = getframe(1)
        loc = places.get((id(frame.f_code), frame.f_lasti)) or trace.location(2)
        if form not in trace.forms:
            trace.admit(form, loc)
        trace.append(ir.Instruction(form, tuple(sources), guard, loc))
        return result

    def _bound(self, key: tuple[object, ...], operands: tuple[Any, ...], out: Any) -> Binding:
        binding = bind(self._known_forms(), operands, out)
        if binding.stable:
            self._bindings[key] = binding
        return binding

    def _known_forms(self) -> tuple[Form, ...]:
        if self._forms is None:
            forms = _forms(self.mnemonic)
            current = tuple(form for form in forms if form.row.until is None)
            if not current:
                raise located(
                    UnknownInstruction,
                    f"`{self.mnemonic}` was removed in PTX {'.'.join(map(str, forms[0].row.until or ()))}",
                    f"`{self.mnemonic.split('.')[0]}.sync` takes its place",
                )
            self._forms = current
        return self._forms

    def _refuse(self, *_: object) -> NoReturn:
        raise located(
            PtxTypeError, f"`{self!r}` is the name of an instruction, not a value", f"call it: `{self!r}(..)`"
        )


class _Call(Instruction):
    """``call`` and ``call.uni``: their operands are what the function declares, not what a row says."""

    def __call__(self, *operands: Any, out: Any = None, pred: Any = None, prototype: Any = None) -> Any:
        function = operands[0] if operands else None
        return call(function, operands[1:], out, pred, prototype, self.mnemonic == "call.uni")


def _instruction(mnemonic: str) -> Instruction:
    return (_Call if mnemonic.partition(".")[0] == "call" else Instruction)(mnemonic)


def _named(name: str) -> Any:
    """What a pickle writes as its name."""
    return reduce(getattr, name.split("."), ptx)


class _Components(NoValue):
    __doc__ = _Help("""``ptx.tid``: a special register with components, of which each is read by its name.""")
    __signature__ = inspect.Signature()

    def __init__(self, special: Special) -> None:
        self._special = special
        self._reads = {c: _Read(special, f"{special.name}.{c}") for c in special.components}

    def __repr__(self) -> str:
        return f"ptx.{self._special.name[1:]}"

    def __reduce__(self) -> tuple[object, ...]:
        return _named, (self._special.name[1:],)

    def __getattr__(self, name: str) -> Value:
        read = self.__dict__["_reads"].get(name)
        if read is None:
            if name.startswith("_"):
                raise AttributeError(name)
            special = self._special
            raise located(
                UnknownInstruction, f"`%{special.name[1:]}` has no component `.{name}`",
                "it has " + ", ".join(f"`{self!r}.{c}`" for c in special.components),
            )
        return read()

    def __dir__(self) -> list[str]:
        return list(self._special.components)

    def _refuse(self, *_: object) -> NoReturn:
        raise located(
            PtxTypeError, f"`{self!r}` has components, and is no value itself",
            "write " + " or ".join(f"`{self!r}.{c}`" for c in self._special.components),
        )

    __rshift__ = __lshift__ = __call__ = __index__ = __getitem__ = _refuse


class _Read:
    """``mov.u32 %r1, %tid.x``."""

    def __init__(self, special: Special, name: str) -> None:
        self.form, self.special = move_form(special.type), special
        self.operand = ir.SpecialRegister(name)

    def __call__(self) -> Value:
        trace = thread.trace or _traced()
        if self.special.needs:
            trace.require(self.special.needs, f"`{self.operand.special}`")
        type = self.special.type
        register = trace.supply[type]()
        trace.emit(self.form, (register, self.operand), None, None, 3)
        return Result(register, type, trace.region)


def _traced() -> Trace:
    try:
        return current()
    except TraceError as error:
        raise _NoTrace(error.message, loc=error.loc, hint=error.hint) from None


class Namespace(Name):
    """The instructions (``ptx.add.u32``, ``ptx["add.u32"]``) and the special registers (``ptx.tid.x``, ``ptx.laneid``).

    A Python keyword takes a trailing ``_`` (``ptx.ld.global_``), ``::`` is ``__``, and a modifier that begins with a
    digit is reached through the spelling in brackets.
    """

    def __init__(self) -> None:
        self._spellings: dict[str, Instruction] = {}
        self._reads: dict[str, _Read] = {}

    def __repr__(self) -> str:
        return "ptx"

    def __reduce__(self) -> str:
        return "ptx"

    def __getattr__(self, name: str) -> Any:
        read = self._reads.get(name)
        if read is not None:
            return read()
        if name.startswith("_"):
            error = _foreign(name)
            raise AttributeError(name) if error is None else relocated(error)
        word = _spelled(name)
        if word in isa.opcodes():
            found: Any = _instruction(word)
        else:
            special = isa.special_registers().get(f"%{word}")
            if special is None:
                raise relocated(_unknown(word))
            if not special.components:
                read = self._reads[name] = _Read(special, special.name)
                return read()
            found = _Components(special)
        self.__dict__[name] = found
        return found

    def __getitem__(self, mnemonic: str) -> Instruction:
        found = self._spellings.get(mnemonic)
        if found is None:
            if not isinstance(mnemonic, str):
                raise located(
                    PtxTypeError, "`ptx[..]` takes the name of an instruction", 'write `ptx["fma.rn.f32"](a, b, c)`'
                )
            text = mnemonic.strip().rstrip(";")
            if not text or any(c.isspace() or c == "," for c in text):
                raise located(
                    UnknownInstruction, f"{mnemonic!r} is no name of an instruction: it has operands",
                    f'`ptx["{text.split()[0] if text else "add.u32"}"](..)` takes them as arguments',
                )
            _forms(text)
            found = self._spellings[mnemonic] = _instruction(text)
        return found

    def pragma(self, *texts: str) -> None:
        """Append ``.pragma "text";``, a remark to the assembler, which changes no result: ``ptx.pragma("nounroll")``.

        ``"nounroll"`` stands at the beginning of the loop's block. Source: PTX manual, Pragma Strings.
        """
        if not texts or not all(isinstance(text, str) and text.isprintable() for text in texts):
            given = ", ".join(map(repr, texts))
            raise located(PtxTypeError, f"`ptx.pragma({given})`: a pragma is a text", 'write `ptx.pragma("nounroll")`')
        current().body += [ir.Pragma(text) for text in texts]

    def __dir__(self) -> list[str]:
        names = (*isa.opcodes(), *(name[1:] for name in isa.special_registers()), "pragma")
        return sorted(f"{name}_" if keyword.iskeyword(name) else name for name in names)


def _forms(mnemonic: str) -> tuple[Form, ...]:
    try:
        return isa.lookup(mnemonic)
    except UnknownInstruction as error:
        raise relocated(error) from None


def _foreign(word: str) -> UnknownInstruction | None:
    """What CUDA, Numba or Triton call something that is written in another way here."""
    from ..foreign_names import spelling

    written = spelling(word)
    return None if written is None else UnknownInstruction(
        f"PTX has no instruction or special register `{word}`", hint=f"CUDA's {word} is {written}"
    )


def _unknown(word: str) -> UnknownInstruction:
    """Neither an instruction nor a special register: name what is near among both."""
    foreign = _foreign(word)
    if foreign is not None:
        return foreign
    names = [*isa.opcodes(), *(name[1:] for name in isa.special_registers())]
    hint = did_you_mean(similar(word, names, 4), "`ptx.{}`")
    return UnknownInstruction(f"PTX has no instruction or special register `{word}`", hint=hint)


ptx = Namespace()
"""The one namespace. It holds names only; what they append to is the trace of the running thread."""
