"""Every kind of micro-op has code, every kind is used, and what tells them apart is written the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

from ptxdsl import emulator
from ptxdsl.emulator import instructions
from ptxdsl.emulator.codegen import registry
from ptxdsl.emulator.instructions.atomics import Atomic
from ptxdsl.emulator.instructions.control import Exit, Jump
from ptxdsl.emulator.instructions.memory import Load, Store
from ptxdsl.emulator.instructions.micro_op import Key, MicroOp, Routine
from ptxdsl.emulator.instructions.operand_classes import ABSENT, PREDICATE, affine, per_lane, uniform

EMULATOR = Path(emulator.__path__[0])
for module in walk_packages(instructions.__path__, f"{instructions.__name__}."):
    import_module(module.name)
import_module("ptxdsl.emulator.jit.inlining")
SOURCES = [path.read_text("utf-8").replace("class ", "class:") for path in EMULATOR.rglob("*.py")]
KINDS: list[type[Key]] = [*MicroOp.__subclasses__(), *Routine.__subclasses__()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_an_emitter(kind: type[Key]) -> None:
    """In a module of its family, which is the only one that is sure to be loaded."""
    assert registry.has_emitter(kind)
    emitter = registry._EMITTERS[kind].body if kind in registry._EMITTERS else registry._BUILDERS[kind]
    _, ours, family = kind.__module__.partition(f"{instructions.__name__}.")
    if ours:
        assert f"{emitter.__module__}.".startswith(f"ptxdsl.emulator.codegen.{family}.")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_is_made_somewhere(kind: type[Key]) -> None:
    calls = [f" {kind.__name__}(", f"({kind.__name__}(", f"statement, {kind.__name__}, ("]
    assert any(call in text for text in SOURCES for call in calls)


def test_no_two_kinds_are_equal() -> None:
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    assert Exit(ABSENT, True) != Jump(False, True, False)


@pytest.mark.parametrize("kind", MicroOp.__subclasses__(), ids=lambda kind: kind.__name__)
def test_traits(kind: type[MicroOp]) -> None:
    """Block functions have it, or it says why not; memory is not written twice."""
    assert kind.inlinable or kind.first_tier
    assert kind.inlinable or not kind.rare
    assert not (kind.writes_memory and kind.repeatable)


def test_fields_by_name() -> None:
    op = Load(affine(64), ("c", 32), 32, False, (per_lane(32),), PREDICATE, True).with_codes("iiiqiiqii")
    assert (op.address.bits, op.pattern, op.dests, op.guard, op.codes) == (
        64, ("c", 32), ("X32",), "P", "iiiqiiqii",
    )
    assert op.values.index("extent") == 5
    assert not op.fusible
    assert Store(uniform(64), None, 32, (uniform(32),), True, ABSENT, False).fusible


def test_a_key_is_written_as_a_tuple() -> None:
    """The name of its code on disk follows from that, in whatever order a process makes them."""
    op = Atomic("add", "", 32, True, False, affine(64), (), ((per_lane(32),),), ABSENT, False)
    plain: Any = tuple(op)
    assert repr(op) == repr(plain) == "('Atomic', 'add', '', 32, True, False, 'A64', (), (('X32',),), '', False, '')"


def test_every_family_is_loaded_by_the_instructions_that_need_it() -> None:
    """What registers a lowering is imported with the driver, or for the first instruction that has none so far."""
    folder = EMULATOR / "instructions"
    families = {path.stem for path in folder.glob("*.py") if "\n@lowers(" in path.read_text("utf-8")}
    code = (
        "import sys\n"
        "from ptxdsl.emulator.instructions import function, lowering\n"
        "from ptxdsl.isa import lookup\n"
        "lowering.lowering_of(lookup('tex.1d.v4.f32.s32')[0])\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {f"{instructions.__name__}.{family}" for family in families} <= set(loaded)
