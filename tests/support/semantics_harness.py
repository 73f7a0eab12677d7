"""Runs the semantics on arrays: the tests' own small engine, which shares nothing with the emulator's."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir

from ptxdsl.emulator import semantics
from ptxdsl.emulator.semantics.lanes import Lanes
from ptxdsl.isa import Form, Row, lookup, rows

Array = np.ndarray[Any, Any]
Source = Any  # an array of unsigned integers (the operands' bits), a tuple of those, or an int for a `#` operand

LANES = 32
LISTENERS: list[Callable[[Case, tuple[Array, ...]], None]] = []
"""Who is told of each case and its results."""
DTYPES = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class Case(NamedTuple):
    """One form to run: its mnemonic and its sources, all arrays of one length, a multiple of 32.

    ``results`` is the number of results, where a mnemonic has forms that differ in it; ``selectors`` are the parts of
    registers that a video instruction names.
    """

    mnemonic: str
    sources: tuple[Source, ...]
    width: int = LANES
    results: int | None = None
    selectors: tuple[str, ...] = ()


def form_of(case: Case) -> Form:
    """The form of the mnemonic that takes the case's sources (the longest, so that setp has its second result)."""
    found = [form for form in lookup(case.mnemonic)
             if _takes(form, case.sources) and case.results in (None, len(result_bits(form)))]
    if not found:
        raise LookupError(f"{case.mnemonic} with {len(case.sources)} sources")
    return max(found, key=lambda form: len(form.operands))


def _takes(form: Form, sources: tuple[Source, ...]) -> bool:
    reads = [spec for spec in form.operands if spec.role != "w"]
    counts = [spec.count for spec in reads] + [0] * form.effects.reads_carry
    return counts == [len(source) if isinstance(source, tuple) else 0 for source in sources]


def result_bits(form: Form) -> list[int]:
    """The widths of the results, in order; several for operands in braces."""
    bits = [form_bits for spec in form.operands if spec.written for form_bits in [spec.type.bits] * max(1, spec.count)]
    return bits + [1] * form.effects.writes_carry


def run(cases: list[Case]) -> list[tuple[Array, ...]]:
    """The results of every case, each an array of unsigned integers; all cases are compiled as one module."""
    module = ir.Module("semantics")
    forms = [form_of(case) for case in cases]
    for index, (case, form) in enumerate(zip(cases, forms)):
        numbers = tuple(source for source in case.sources if isinstance(source, int))
        add_function(module, f"case{index}", form, case.width, numbers, case.selectors)
    engine = _compile(str(module))
    outcomes = [_call(engine, f"case{index}", form, case) for index, (case, form) in enumerate(zip(cases, forms))]
    for listener in LISTENERS:
        for case, results in zip(cases, outcomes):
            listener(case, results)
    return outcomes


class Outcomes:
    """The sources of cases and what they give, some at a time, when a test asks for one of them.

    Where a run has several processes, each compiles what its own tests need.
    """

    def __init__(self, keys: Sequence[Any], sources: Callable[[int], Any], case: Callable[[int, Any], Case]) -> None:
        """``sources`` are those of a case as the tests want them, by its number; ``case`` is made of them."""
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._sources, self._case = sources, case
        self._found: dict[int, tuple[Any, tuple[Array, ...]]] = {}

    def __getitem__(self, key: Any) -> tuple[Any, tuple[Array, ...]]:
        number = self._numbers[key]
        if number not in self._found:
            start = number - number % _TOGETHER
            numbers = range(start, min(start + _TOGETHER, len(self._numbers)))
            given = [self._sources(each) for each in numbers]
            results = run([self._case(each, sources) for each, sources in zip(numbers, given)])
            self._found.update(zip(numbers, zip(given, results)))
        return self._found[number]


_TOGETHER = 48


def flat(sources: tuple[Source, ...]) -> list[Array]:
    """The arrays among the sources, those in braces one after the other."""
    flat: list[Array] = []
    for source in sources:
        if isinstance(source, tuple):
            flat.extend(source)
        elif not isinstance(source, int):
            flat.append(source)
    return flat


def source_bits(form: Form) -> list[int]:
    """The widths of the sources' arrays."""
    bits = [b for spec in form.operands if spec.role != "w" and spec.register
            for b in [spec.type.bits] * max(1, spec.count)]
    return bits + [1] * form.effects.reads_carry


def add_function(
    module: ir.Module, name: str, form: Form, width: int, numbers: tuple[int, ...] = (), selectors: tuple[str, ...] = ()
) -> None:
    """A function that runs a form over arrays: a pointer to each source and result, and the count of warps.

    ``numbers`` are those for the operands that must be numbers, 5 each where there are none.
    """
    inputs, outputs = source_bits(form), result_bits(form)
    pointer = ir.IntType(8).as_pointer()
    count_type = ir.IntType(64)
    function = ir.Function(
        module, ir.FunctionType(ir.VoidType(), [pointer] * (len(inputs) + len(outputs)) + [count_type]), name
    )
    entry, loop, done = (function.append_basic_block(label) for label in ("entry", "loop", "done"))
    ir.IRBuilder(entry).branch(loop)
    builder = ir.IRBuilder(loop)
    index = builder.phi(count_type)
    index.add_incoming(ir.Constant(count_type, 0), entry)
    b = Lanes(builder, width)

    def place(argument: Any, bits: int) -> Any:
        stored = b.integer(max(8, bits))
        typed = builder.bitcast(argument, stored.as_pointer())
        return builder.gep(typed, [index])

    def load(argument: Any, bits: int) -> Any:
        address = place(argument, bits)
        loaded = builder.load(address, align=1)
        return builder.trunc(loaded, b.integer(1)) if bits == 1 else loaded

    values = iter([load(argument, bits) for argument, bits in zip(function.args, inputs)])
    given = iter(numbers or itertools.repeat(5))
    sources = [
        next(given) if not spec.register
        else tuple(next(values) for _ in range(spec.count)) if spec.count else next(values)
        for spec in form.operands if spec.role != "w"
    ]
    parts = {"selectors": selectors} if selectors else {}
    result = semantics.lookup(form)(b, form, *sources, *values, **parts)
    for argument, bits, value in zip(function.args[len(inputs) :], outputs, _flatten(result)):
        assert value.type == b.integer(bits), f"{form.mnemonic}: result is {value.type}, wanted {b.integer(bits)}"
        value = builder.zext(value, b.integer(8)) if bits == 1 else value
        builder.store(value, place(argument, bits), align=1)
    following = builder.add(index, ir.Constant(count_type, 1))
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, function.args[-1]), loop, done)
    ir.IRBuilder(done).ret_void()


def _flatten(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _flatten(item)] if isinstance(result, tuple) else [result]


def _compile(text: str) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=1
    )
    module = binding.parse_assembly(text)
    module.verify()
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _call(engine: Any, name: str, form: Form, case: Case) -> tuple[Array, ...]:
    arrays = [
        np.ascontiguousarray(array, DTYPES[bits]) for array, bits in zip(flat(case.sources), source_bits(form))
    ]
    length = len(arrays[0])
    assert length % LANES == 0 and all(len(array) == length for array in arrays)
    outputs = [np.full(length, 0xA5, DTYPES[bits]) for bits in result_bits(form)]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + len(outputs)), ctypes.c_uint64)
    prototype(engine.get_function_address(name))(
        *(array.ctypes.data for array in (*arrays, *outputs)), length // case.width
    )
    return tuple(outputs)


def spellings_of(row: Row) -> Iterator[Form]:
    """Every form that a row spells."""
    choices = [[*slot.values, *([""] if slot.optional else [])] for slot in row.slots]
    for chosen in itertools.product(*choices):
        yield from row.forms(tuple(token for choice in chosen if choice for token in choice.split(".")))


def spellings(opcode: str) -> list[Form]:
    """Every form that the table spells of an opcode."""
    found = (form for row in rows(opcode) for form in spellings_of(row))
    return list({(form.mnemonic, len(form.operands), tuple(spec.count for spec in form.operands)): form
                 for form in found}.values())
