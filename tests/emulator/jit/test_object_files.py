"""Object files in memory without LLVM: what LLVM makes here is linked, and all else is left to LLVM's own linker."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding, ir

from ptxdsl.emulator.codegen import library as libraries
from ptxdsl.emulator.codegen.library import Library, _emit, symbol
from ptxdsl.emulator.codegen.storage import Storage, fingerprint
from ptxdsl.emulator.instructions.control import Exit
from ptxdsl.emulator.instructions.operand_classes import ABSENT
from ptxdsl.machine_code import host as hosts
from ptxdsl.machine_code.compiler import initialize
from ptxdsl.machine_code.host import Host, described, machine
from ptxdsl.machine_code.object_files import link

WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
NUMBERS = [random.randrange(1 << 40) for _ in range(8)]


def fill(made: ir.Module, writable: bool = False) -> None:
    """Add ``outer(n)``: a number of a table, by ``inner(n)``, and one, after a call of the C library."""
    table = ir.GlobalVariable(made, ir.ArrayType(WORD, 8), "table")
    table.initializer, table.global_constant = ir.Constant(ir.ArrayType(WORD, 8), NUMBERS), not writable
    table.linkage = "internal"
    memset = ir.Function(made, ir.FunctionType(BYTES, [BYTES, ir.IntType(32), WORD]), "memset")
    inner = ir.Function(made, ir.FunctionType(WORD, [WORD]), "inner")
    inner.attributes.add("noinline")
    build = ir.IRBuilder(inner.append_basic_block())
    build.ret(build.load(build.gep(table, [WORD(0), inner.args[0]])))
    outer = ir.Function(made, ir.FunctionType(WORD, [WORD]), "outer")
    build = ir.IRBuilder(outer.append_basic_block())
    place = build.alloca(WORD, 1)
    build.call(memset, [build.bitcast(place, BYTES), ir.IntType(32)(1), outer.args[0]])
    first = build.load(place)
    if writable:
        build.store(first, build.gep(table, [WORD(0), WORD(1)]))
    build.ret(build.add(build.call(inner, [outer.args[0]]), build.and_(first, WORD(255))))


def module(writable: bool = False) -> ir.Module:
    made = ir.Module()
    fill(made, writable)
    return made


def image(made: ir.Module, codemodel: str = "jitdefault") -> bytes:
    initialize()
    target = machine("")
    if codemodel != "jitdefault":
        triple = binding.Target.from_default_triple()
        target = triple.create_target_machine(cpu=described()[1], codemodel=codemodel, reloc="pic")
    found: bytes = target.emit_object(binding.parse_assembly(str(made)))
    return found


on_x86 = pytest.mark.skipif("x86_64" not in binding.get_default_triple(), reason="linked by LLVM")


@on_x86
def test_functions_constants_and_calls_of_the_c_library() -> None:
    functions = link(image(module()), ["outer", "inner"])
    assert functions is not None
    outer, inner = FUNCTION(functions["outer"]), FUNCTION(functions["inner"])
    assert [inner(n) for n in range(8)] == NUMBERS
    assert [outer(n) - 1 for n in range(1, 8)] == NUMBERS[1:]


@on_x86
def test_what_is_left_to_llvm() -> None:
    good = image(module())
    assert link(good, ["outer", "missing"]) is None
    assert link(image(module(), "small"), ["outer"]) is None  # relative addresses, by a table that the linker makes
    assert link(image(module(writable=True)), ["outer"]) is None
    unknown = ir.Module()
    function = ir.Function(unknown, ir.FunctionType(WORD, [WORD]), "outer")
    other = ir.Function(unknown, ir.FunctionType(WORD, [WORD]), "nobody_has_this_function")
    build = ir.IRBuilder(function.append_basic_block())
    build.ret(build.call(other, function.args))
    assert link(image(unknown), ["outer"]) is None
    assert link(b"", ["outer"]) is None
    assert link(b"\xcf\xfa\xed\xfe" + good[4:], ["outer"]) is None  # another format
    arm = bytearray(good)
    arm[18] = 183
    assert link(bytes(arm), ["outer"]) is None
    for end in range(0, len(good), 7):
        assert link(good[:end], ["outer"]) is None


def test_llvm_links_where_this_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "link", lambda *_: None)
    fresh = Library(_emit, None)
    op = Exit(ABSENT, False)
    assert fresh.need([op])[op]
    (address,) = fresh.compile_once(fill, ["inner"])
    assert [FUNCTION(address)(n) for n in range(8)] == NUMBERS


def test_llvm_is_not_asked_of_a_host_that_was_seen(tmp_path: Path) -> None:
    asked = []

    def told() -> str:
        asked.append(1)
        return "LLVM on a CPU"

    host = Host("a file and a processor", told)
    first = fingerprint(tmp_path, host)
    assert len(asked) == 1
    assert fingerprint(tmp_path, host) == first
    assert len(asked) == 1
    assert fingerprint(tmp_path, Host("another processor", told)) == fingerprint(tmp_path, Host("", told)) == first
    assert fingerprint(tmp_path, Host("a third", lambda: "LLVM on another")) != first


def test_a_folder_is_named_without_llvm_by_all_that_llvm_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """By no more than that: another installation of the same LLVM on such a CPU has the same name."""
    def named(file: str, size: int, processor: str, version: str = "0.50.0") -> tuple[str, str]:
        monkeypatch.setattr(hosts, "_seen", lambda: (file, size, processor))
        monkeypatch.setattr(hosts, "_version", lambda: version)
        found = hosts.this_host()
        return found.seen, found.told()

    monkeypatch.setattr(hosts, "described", lambda: ("LLVM", "CPU", "features"))
    one, there = named("a/lib", 1, "flags: avx"), named("b/lib", 1, "flags: avx")
    assert one[0] != there[0] and one[1] == there[1]
    others = [named("a/lib", 2, "flags: avx"), named("a/lib", 1, "flags:"), named("a/lib", 1, "flags: avx", "0.51.0")]
    assert len({one[1], *(told for _, told in others)}) == 4
    monkeypatch.setattr(hosts, "_seen", lambda: None)
    assert (hosts.this_host().seen, hosts.this_host().told()) == ("", "LLVM CPU features")


LOADS = """
import sys, threading
from ptxdsl.emulator.codegen.library import library
library()
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
print("llvmlite.binding" in sys.modules)
from ptxdsl.emulator.instructions.control import Exit
from ptxdsl.emulator.instructions.operand_classes import ABSENT
assert library().need([Exit(ABSENT, False)])
"""


def test_llvm_is_loaded_beside_where_nothing_is_on_disk(tmp_path: Path) -> None:
    environment = {**os.environ, "PTXDSL_CACHE_DIR": str(tmp_path)}
    for nothing_there in (True, False):
        out = subprocess.run([sys.executable, "-c", LOADS], env=environment, capture_output=True, text=True, check=True)
        assert out.stdout == f"{nothing_there}\n"


@pytest.mark.parametrize("by", ["this", "LLVM"])
def test_functions_that_go_on_to_handlers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """Each process has the handlers elsewhere. A function with an address of this process is not kept."""
    if by == "LLVM":
        monkeypatch.setattr(libraries, "link", lambda *_: None)
    texts: list[str] = []
    original = libraries.object_file
    monkeypatch.setattr(libraries, "object_file", lambda text, **more: (texts.append(text), original(text, **more))[1])
    op = Exit(ABSENT, False)

    def build(made: ir.Module) -> None:
        handler = ir.Function(made, ir.FunctionType(ir.VoidType(), [BYTES] * 3), symbol(op))
        for name, more in (("here", 0), ("beside", 3)):
            function = ir.Function(made, ir.FunctionType(WORD, [WORD]), name)
            builder = ir.IRBuilder(function.append_basic_block())
            builder.ret(builder.add(builder.ptrtoint(handler, WORD), WORD(more)))

    def addressed(made: ir.Module) -> None:
        function = ir.Function(made, ir.FunctionType(WORD, [WORD]), "here")
        ir.IRBuilder(function.append_basic_block()).ret(WORD(id(made) | 1 << 40))

    compiled = []
    for _ in range(2):
        process = Library(_emit, Storage(tmp_path, Host("", lambda: "a CPU")))
        place = process.need([op])[op]
        here, beside = process.kept_by_text(build, ["here", "beside"])
        assert FUNCTION(here)(0) % (1 << 64) == place
        assert FUNCTION(beside)(0) % (1 << 64) == place + 3
        assert process.kept_by_text(build, ["here", "beside"]) == [here, beside]
        compiled.append(sum(symbol(op) in text for text in texts))
    assert compiled == [1, 1]
    stored = len(list(tmp_path.glob("*/*.o")))
    assert process.kept_by_text(addressed, ["here"])[0]
    assert len(list(tmp_path.glob("*/*.o"))) == stored
