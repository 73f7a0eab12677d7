"""Every pure data instruction of the table has semantics, and the registry says clearly where there are none."""

from __future__ import annotations

import itertools
import re
from importlib import import_module

import pytest
from llvmlite import binding, ir
from semantics_harness import Case, add_function, run, spellings_of
from semantics_samples import integers

from ptxdsl.emulator import semantics
from ptxdsl.emulator.semantics.lanes import Lanes
from ptxdsl.isa import lookup, opcodes, rows

CHAPTERS = ("integer", "float", "compare", "convert", "video")
MOVES = ("mov", "prmt")
"""The data instructions of the chapter of moves; its others are addresses and the stack, which are the engine's."""


def test_every_row_of_the_data_chapters_has_semantics() -> None:
    data = [row for opcode in opcodes() for row in rows(opcode) if row.chapter in CHAPTERS or row.opcode in MOVES]
    assert len(data) > 150
    assert [row.syntax for row in data if not semantics.covered(next(spellings_of(row)))] == []


def test_an_instruction_that_is_none_of_data_is_a_key_error() -> None:
    with pytest.raises(KeyError, match=r"bar\.sync"):
        semantics.lookup(lookup("bar.sync")[0])


def test_each_module_registers_the_names_that_are_said_of_it() -> None:
    for module in semantics._CHAPTERS:
        import_module(f"{semantics.__name__}.{module}")
    registered = {name: build.__module__.rpartition(".")[2] for name, build in semantics._BUILDERS.items()}
    assert registered == semantics._MODULES


def test_a_name_cannot_be_registered_twice() -> None:
    import_module(f"{semantics.__name__}.integer")
    with pytest.raises(ValueError, match="two semantics called popc"):
        semantics.semantics("popc")(lambda form, a: a)


def test_division_never_traps() -> None:
    """By zero all bits are ones; the least number by -1 is itself, without remainder."""
    cases = []
    for bits in (16, 32, 64):
        least, ones = 1 << (bits - 1), (1 << bits) - 1
        a = integers(f"trap{bits}", bits, 32)
        a[:4] = [least, least, 0, ones]
        b = a * 0
        b[1], b[3] = ones, ones
        cases += [Case(f"{opcode}.{sign}{bits}", (a, b)) for opcode in ("div", "rem") for sign in "us"]
    for case, (got,) in zip(cases, run(cases)):
        bits = int(case.mnemonic[-2:])
        assert (got[[0, 2, *range(4, 32)]] == (1 << bits) - 1).all()
        if ".s" in case.mnemonic:
            assert int(got[1]) == (1 << (bits - 1) if case.mnemonic.startswith("div") else 0)


def test_values_of_one_lane_are_scalars() -> None:
    """At width 1 no vector is left: uniform code is scalar code."""
    module = ir.Module("scalar")
    word = ir.IntType(32)
    function = ir.Function(module, ir.FunctionType(word, [word] * 3), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    form = lookup("fma.rn.f32")[0]
    builder.ret(semantics.lookup(form)(Lanes(builder, 1), form, *function.args))
    assert "<" not in str(function)


def test_no_form_calls_the_hosts_library() -> None:
    """A call for each lane costs fifty times more, and the JIT may not find it. A CPU of 2013 needs none either."""
    forms = [form for opcode in opcodes() for row in rows(opcode) if row.chapter in CHAPTERS
             for form in itertools.islice(spellings_of(row), 2)]
    module = ir.Module("calls")
    for index, form in enumerate(forms):
        add_function(module, f"f{index}", form, 32)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple = binding.get_process_triple()
    for cpu in (binding.get_host_cpu_name(), *(["haswell"] if triple.startswith("x86_64") else [])):
        machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=0)
        assembly = machine.emit_assembly(binding.parse_assembly(str(module)))
        assert set(re.findall(r"^\s+(?:callq?|bl)\s+(\S+)", assembly, re.MULTILINE)) == set()
