"""The exception tree: what a message looks like, and that the drawing of the tree is true."""

from __future__ import annotations

import ast
import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest

from ptxdsl import errors
from ptxdsl.errors import EmulationError, Loc, MemoryFault, PtxError, PtxTypeError, with_article
from ptxdsl.types import TYPES


def classes() -> list[type[PtxError]]:
    found, todo = [], [PtxError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += [c for c in kind.__subclasses__() if c.__module__ == errors.__name__]
    return found


def test_message_names_place_and_repair(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("first\n    acc = acc + x\n")
    error = PtxTypeError("wrong", loc=Loc(str(source), 2), hint="do this")
    assert str(error) == f"wrong\n  at {source}:2: acc = acc + x\n  hint: do this"


def test_message_without_source_or_hint() -> None:
    assert str(PtxError("wrong", loc=Loc("<stdin>", 7))) == "wrong\n  at <stdin>:7"
    assert str(PtxError("wrong")) == "wrong"


def test_emulation_error_names_thread_and_ptx_line() -> None:
    error = EmulationError("wrong", block=(1, 0, 0), thread=(3, 2, 0), ptx_line=14, instruction="trap;", hint="no")
    assert str(error) == "wrong\n  in block (1, 0, 0), thread (3, 2, 0)\n  PTX line 14: trap;\n  hint: no"


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in classes()]
    assert len(set(codes)) == len(codes) > 20


def test_drawing_of_the_tree_is_true() -> None:
    drawn = dict(re.findall(r"(\w+) +(P\d+)", errors.__doc__ or ""))
    kinds = (*classes(), errors.PtxWarning, errors.PerformanceWarning)
    assert drawn == {kind.__name__: kind.code for kind in kinds if kind is not PtxError}


def test_all_is_complete_and_sorted() -> None:
    names = {kind.__name__ for kind in classes()}
    names |= {"Loc", "PerformanceWarning", "PtxWarning", "caller", "did_you_mean", "is_internal", "similar"}
    names.add("with_article")
    assert sorted(names) == errors.__all__


def test_articles() -> None:
    spoken_with_a_vowel = {name for name in TYPES if with_article(name) == f"an {name}"}
    assert spoken_with_a_vowel == {name for name in TYPES if name[0] in "fse" and name[1:2].isdigit()}
    for words in (
        "a numpy array", "a str", "a list", "a tuple", "a set", "a unit", "a uint8", "a function", "a ue8m0", "a user",
        "an int", "an Array", "an object", "an unsigned number", "an 8-bit number", "an 11-bit number", "an ndarray",
        "an e2m1x2", "an s16x2", "an uninitialised cell", "an address", "a 64-bit address", "an `i`", "a .f32",
    ):
        assert with_article(words.partition(" ")[2]) == words


def test_no_message_chooses_the_article_before_it_knows_the_word() -> None:
    """But where the word is the name of an image, which is none with a vowel."""
    package = Path(errors.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for before, value in pairwise(parts):
                article = isinstance(before, ast.Constant) and re.search(r"(^|[\s(])[Aa]n? $", str(before.value))
                if article and isinstance(value, ast.FormattedValue) and "image_kind" not in ast.unparse(value):
                    found.append(f"{path.relative_to(package)}:{value.lineno}: {ast.unparse(value)}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[PtxError]) -> None:
    error = kind("wrong", loc=Loc("a.py", 3), hint="right")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error) and copy.loc == error.loc


def test_python_kinds() -> None:
    assert issubclass(errors.PtxTypeError, TypeError) and issubclass(errors.TruthError, TypeError)
    assert issubclass(errors.LaunchError, ValueError) and issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.UnknownInstruction, AttributeError) and issubclass(MemoryFault, EmulationError)
