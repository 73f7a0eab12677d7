"""What a trace has read of the world, and what happens at the next launch when that has changed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from notebook import Notebook, kernel

from ptxdsl import PerformanceWarning

# What is there first, what changes it, what the kernel stores before and after.
SEEN: dict[str, tuple[str, str, int, int]] = {
    "a global": (kernel("out[0] = N", "N = 1"), "N = 2", 1, 2),
    "a global of another type": (kernel("out[0] = int(type(N) is bool)", "N = 1"), "N = True", 0, 1),
    "a float by its sign": (kernel("out[0] = int(math.copysign(1, Z) < 0)", "Z = 0.0"), "Z = -0.0", 0, 1),
    "a global deleted, so that the built-in one shows": (
        kernel("out[0] = max(1, 2)", "max = lambda a, b: 7"), "del max", 7, 2
    ),
    "a built-in one overridden": (kernel("out[0] = max(1, 2)"), "max = lambda a, b: 7", 2, 7),
    "a built-in one used by a comprehension": (
        kernel("out[0] = sum([i for i in range(3)])"), "range = lambda n: [9]", 3, 9
    ),
    "a helper": (kernel("out[0] = f()", "def f(): return 1"), "def f(): return 2", 1, 2),
    "a helper that only a constant tells apart": (
        kernel("out[0] = int(isinstance(f(), float))", "f = lambda: 1"), "f = lambda: 1.0", 0, 1
    ),
    "a helper's helper": (
        kernel("out[0] = g()", "def f(): return 1\ndef g(): return f()"), "def f(): return 2", 1, 2
    ),
    "a helper's global": (kernel("out[0] = f()", "N = 1\ndef f(): return N"), "N = 2", 1, 2),
    "a helper's default": (kernel("out[0] = f()", "def f(n=1): return n"), "f.__defaults__ = (2,)", 1, 2),
    "a helper's keyword default": (
        kernel("out[0] = f()", "def f(*, n=1): return n"), "f.__kwdefaults__ = {'n': 2}", 1, 2
    ),
    "a default that is a list": (kernel("out[0] = f()", "L = [1]\ndef f(l=L): return l[0]"), "L[0] = 2", 1, 2),
    "a helper's code, as autoreload changes it": (
        kernel("out[0] = f()", "def f(): return 1"), "f.__code__ = (lambda: 2).__code__", 1, 2
    ),
    "a function's attribute": (kernel("out[0] = f.n", "def f(): ...\nf.n = 1"), "f.n = 2", 1, 2),
    "an attribute that the function reads of itself": (
        kernel("out[0] = f()", "def f(): return f.n\nf.n = 1"), "f.n = 2", 1, 2
    ),
    "a lambda in a list": (kernel("out[0] = F[0]()", "N = 1\nF = [lambda: N]"), "N = 2", 1, 2),
    "a function in a dict": (kernel("out[0] = F['a']()", "F = {'a': lambda: 1}"), "F['a'] = lambda: 2", 1, 2),
    "a partial": (kernel("out[0] = p()", "p = functools.partial(max, 1)\np = functools.partial(max, 1, 0)"),
                  "p = functools.partial(max, 2, 0)", 1, 2),
    "what a partial calls": (
        kernel("out[0] = p()", "N = 1\ndef f(a): return a + N\np = functools.partial(f, 0)"), "N = 2", 1, 2
    ),
    "what a decorated helper calls": (
        kernel("out[0] = f()", "def twice(f):\n    @functools.wraps(f)\n    def g(): return 2 * f()\n    return g\n"
               "N = 1\n@twice\ndef f(): return N"), "N = 2", 2, 4
    ),
    "the world of an lru_cache'd helper": (
        kernel("out[0] = f()", "@functools.lru_cache\ndef f(): return 1"),
        "@functools.lru_cache\ndef f(): return 2", 1, 2
    ),
    "a cell": (
        ("def make(n):\n    def change(m):\n        nonlocal n\n        n = m\n    @ptx_kernel\n"
         "    def k(out: Ptr[u32]):\n        out[0] = n\n    return k, change\nk, change = make(1)"), "change(2)", 1, 2
    ),
    "a helper's cell": (
        kernel("out[0] = f()", "def make(n):\n    def change(m):\n        nonlocal n\n        n = m\n"
               "    return (lambda: n), change\nf, change = make(1)"), "change(2)", 1, 2
    ),
    "a list": (kernel("out[0] = L[0]", "L = [1]"), "L[0] = 2", 1, 2),
    "a list that grows": (kernel("out[0] = len(L)", "L = [1]"), "L.append(2)", 1, 2),
    "a list in a tuple in a dict": (kernel("out[0] = D['a'][0][0]", "L = [1]\nD = {'a': (L,)}"), "L[0] = 2", 1, 2),
    "an element that is equal": (kernel("out[0] = int(L[0] is True)", "L = [1]"), "L[0] = True", 0, 1),
    "a dict's order": (kernel("out[0] = next(iter(D))", "D = {1: 0, 2: 0}"), "D[1] = D.pop(1)", 1, 2),
    "a set": (kernel("out[0] = len(S)", "S = {1}"), "S.add(2)", 1, 2),
    "an array": (kernel("out[0] = int(A[0])", "A = np.array([1, 5])"), "A[0] = 2", 1, 2),
    "a table in constant memory": (
        kernel("out[0] = const(A)[reg(u32, 0)]", "A = np.array([1, 5], np.uint32)"), "A[0] = 2", 1, 2
    ),
    "an array's shape": (kernel("out[0] = A.shape[0]", "A = np.zeros(1)"), "A = np.zeros(2)", 1, 2),
    "an array's type": (kernel("out[0] = A.itemsize", "A = np.zeros(1, np.int8)"), "A = A.astype(np.int16)", 1, 2),
    "a bytearray": (kernel("out[0] = B[0]", "B = bytearray(b'\\1')"), "B[0] = 2", 1, 2),
    "an object's attribute": (
        kernel("out[0] = c.tile", "class C:\n    tile = 1\nc = C()"), "c.tile = 2", 1, 2
    ),
    "an object's attribute behind a property": (
        kernel("out[0] = c.tile", "class C:\n    n = 1\n    tile = property(lambda self: self.n)\nc = C()"),
        "c.n = 2", 1, 2
    ),
    "a property": (
        kernel("out[0] = c.tile", "class C:\n    tile = property(lambda self: 1)\nc = C()"),
        "C.tile = property(lambda self: 2)", 1, 2
    ),
    "an object's slot": (
        kernel("out[0] = c.n", "class C:\n    __slots__ = ('n',)\nc = C()\nc.n = 1"), "c.n = 2", 1, 2
    ),
    "an attribute of an attribute": (
        kernel("out[0] = c.d.n", "c, d = types.SimpleNamespace(), types.SimpleNamespace(n=1)\nc.d = d"), "d.n = 2", 1, 2
    ),
    "an attribute under a local name": (
        kernel("d = c\nout[0] = d.n", "class C:\n    n = 1\nc = C()"), "c.n = 2", 1, 2
    ),
    "an attribute by getattr": (
        kernel("out[0] = getattr(c, 'n')", "class C: ...\nc = C()\nc.n = 1"), "c.n = 2", 1, 2
    ),
    "a method": (
        kernel("out[0] = c.f()", "class C:\n    def f(self): return 1\nc = C()"), "C.f = lambda self: 2", 1, 2
    ),
    "a global that a method reads": (
        kernel("out[0] = C().f()", "N = 1\nclass C:\n    def f(self): return N"), "N = 2", 1, 2
    ),
    "a method of a base class": (
        kernel("out[0] = C().f()", "class B:\n    def f(self): return 1\nclass C(B): ..."),
        "B.f = lambda self: 2", 1, 2
    ),
    "an override": (
        kernel("out[0] = C().f()", "class B:\n    def f(self): return 1\nclass C(B): ..."),
        "C.f = lambda self: 2", 1, 2
    ),
    "a class attribute": (kernel("out[0] = C.n", "class C:\n    n = 1"), "C.n = 2", 1, 2),
    "a class attribute of a base": (kernel("out[0] = C.n", "class B:\n    n = 1\nclass C(B): ..."), "C.n = 2", 1, 2),
    "an object's attribute that hides the class's": (
        kernel("out[0] = c.n", "class C:\n    n = 1\nc = C()"), "c.n = 2", 1, 2
    ),
    "a list in a class": (kernel("out[0] = C.l[0]", "class C:\n    l = [1]"), "C.l[0] = 2", 1, 2),
    "a static method": (
        kernel("out[0] = C.f()", "N = 1\nclass C:\n    @staticmethod\n    def f(): return N"), "N = 2", 1, 2
    ),
    "a class method": (
        kernel("out[0] = C.f()", "class C:\n    n = 1\n    @classmethod\n    def f(cls): return cls.n"), "C.n = 2", 1, 2
    ),
    "an enumeration": (
        kernel("out[0] = M.A.value", "class M(enum.Enum):\n    A = 1"), "class M(enum.Enum):\n    A = 2", 1, 2
    ),
    "a namedtuple": (
        kernel("out[0] = c.n", "import collections\nC = collections.namedtuple('C', 'n')\nc = C(1)"), "c = C(2)", 1, 2
    ),
    "a frozen dataclass": (
        kernel("out[0] = c.n", "@dataclasses.dataclass(frozen=True)\nclass C:\n    n: int\nc = C(1)"), "c = C(2)", 1, 2
    ),
    "__getattr__": (
        kernel("out[0] = c.n", "N = 1\nclass C:\n    def __getattr__(self, name): return N\nc = C()"), "N = 2", 1, 2
    ),
    "a callable object": (
        kernel("out[0] = c()", "class C:\n    n = 1\n    def __call__(self): return self.n\nc = C()"), "c.n = 2", 1, 2
    ),
    "a descriptor": (
        kernel("out[0] = c.n", "class D:\n    v = 1\n    def __get__(self, *_): return self.v\n"
               "class C:\n    n = D()\nc = C()"), "D.v = 2", 1, 2
    ),
    "a .func": (
        kernel("out[0] = f(reg(u32, 1))", "N = 1\n@ptx_func\ndef f(a: u32) -> u32: return a * N"), "N = 2", 1, 2
    ),
    "a .func defined again": (
        kernel("out[0] = f(reg(u32, 1))", "@ptx_func\ndef f(a: u32) -> u32: return a"),
        "@ptx_func\ndef f(a: u32) -> u32: return a + 1", 1, 2
    ),
    "a .func's helper": (
        kernel("out[0] = f(reg(u32, 1))", "def h(a): return a\n@ptx_func\ndef f(a: u32) -> u32: return h(a)"),
        "def h(a): return a + a", 1, 2
    ),
    "a function within": (kernel("def f():\n    return N\nout[0] = f()", "N = 1"), "N = 2", 1, 2),
    "a class within": (kernel("class C:\n    n = N\nout[0] = C.n", "N = 1"), "N = 2", 1, 2),
    "a library's constant": (kernel("out[0] = int(math.TILE)", "math.TILE = 1"), "math.TILE = 2", 1, 2),
    "a type": (kernel("out[0] = T.bits", "T = f32"), "import ptxdsl\nT = ptxdsl.f64", 32, 64),
    "a constant's default": (
        ("class H:\n    def __init__(self): self.n = 1\nh = H()\n"
         "@ptx_kernel\ndef k(out: Ptr[u32], *, h=h):\n    out[0] = h.n"), "h.n = 2", 1, 2
    ),
    "one thing of many": (kernel("out[0] = c.a + c.b['x'] + L[1]", "class C: ...\nc = C()\nc.a = 1\n"
                                 "c.b = {'x': 1}\nL = [0, 1]"), "c.b['x'] = 2", 3, 4),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_change_is_seen(name: str) -> None:
    first, change, before, after = SEEN[name]
    notebook = Notebook(first)
    try:
        assert [notebook.launched(), notebook.launched()] == [before, before]
        assert notebook.traces == 1
        notebook.run(change)
        assert [notebook.launched(), notebook.launched()] == [after, after]
        assert notebook.traces == 2
    finally:
        sys.modules["math"].__dict__.pop("TILE", None)


# What is there, and what changes without any meaning to the kernel: it is not traced again.
IGNORED: dict[str, tuple[str, str]] = {
    "another global": (kernel("out[0] = N", "N = 1\nM = 1"), "M = 2"),
    "the same number again": (kernel("out[0] = N", "N = 12345"), "N = int('12345')"),
    "the same string again": (kernel("out[0] = len(S)", "S = 'a b'"), "S = ' '.join('ab')"),
    "an equal list": (kernel("out[0] = L[0]", "L = [1]"), "L = [1]"),
    "an equal array": (kernel("out[0] = int(A[0])", "A = np.ones(3)"), "A = np.ones(3)"),
    "an equal object": (
        kernel("out[0] = c.n", "class C:\n    def __init__(self, n): self.n = n\nc = C(1)"), "c = C(1)"
    ),
    "an attribute that is not read": (
        kernel("out[0] = c.n", "class C: ...\nc = C()\nc.n, c.calls = 1, 0"), "c.calls += 1"
    ),
    "a function that is not called": (kernel("out[0] = N", "N = 1\ndef f(): ..."), "def f(): return 1"),
    "an array of which the shape is read": (kernel("out[0] = A.shape[0]", "A = np.zeros(3)"), "A[0] = 2"),
    "a name of the kernel's own": (kernel("n = 1\nout[0] = n", "n = 5"), "n = 6"),
    "a list that is written and not read": (kernel("L.append(1)\nout[0] = 1", "L = []"), "L.append(2)"),
    "a module that is written and not read": (kernel("m.n = 1\nout[0] = 1", "m = types.SimpleNamespace()"), "m.n = 3"),
    "what the trace itself has written": (
        kernel("L[0] += 1\nout[0] = 1", "L = [0]"), ""
    ),
    "a cache that the trace fills": (
        kernel("out[0] = f(2)", "D = {}\ndef f(n):\n    if n not in D:\n        D[n] = n\n    return D[n]"), ""
    ),
    "the array that is passed": (kernel("out[0] = 1", "x = np.zeros(4)"), "x[0] = 1"),
    "another kernel": (kernel("out[0] = 1"), "@ptx_kernel\ndef other(out: Ptr[u32]):\n    out[0] = 2"),
    "a lambda that is the same": (kernel("out[0] = f()", "def make(n): return lambda: n\nf = make(1)"), "f = make(1)"),
    "numbers that were drawn": (kernel("out[0] = R", "import random\nR = 3"), "random.random()"),
    "a module's other names": (kernel("out[0] = int(math.floor(1.5))"), "math.TILE = 1"),
    "other names of a module of kernels": (
        kernel("out[0] = storage.BYTES", "from ptxdsl.kernels import storage"), "storage.TILE = 1"
    ),
    "the modules that are loaded": (
        kernel("out[0] = int('math' in sys.modules)", "import sys"), "sys.modules['module_of_a_test'] = math"
    ),
    "an enumeration": (
        kernel("out[0] = int(m is M.A)", "class M(enum.Enum):\n    A = 1\n    B = 2\nm = M.A"), "m = M(1)"
    ),
}


@pytest.mark.parametrize("name", IGNORED)
def test_a_change_of_no_meaning_is_not_traced_again(name: str) -> None:
    first, change = IGNORED[name]
    notebook = Notebook(first)
    try:
        before = notebook.launched()
        notebook.run(change)
        assert notebook.launched() == before
        notebook.run(change)
        assert notebook.launched() == before
        assert notebook.traces == 1
    finally:
        sys.modules.pop("module_of_a_test", None)
        for module in ("math", "ptxdsl.kernels.storage"):
            getattr(sys.modules.get(module), "__dict__", {}).pop("TILE", None)


def test_what_was_traced_before_is_kept() -> None:
    notebook = Notebook(kernel("traced.append(N)\nout[0] = N", "N = 0\ntraced = []"))
    for n in (1, 2, 1, 2, 3, 1):
        notebook.run(f"N = {n}")
        assert notebook.launched() == n
    assert notebook.module.__dict__["traced"] == [1, 2, 3]


def test_what_is_kept_is_bounded() -> None:
    notebook = Notebook(kernel("out[0] = N", "N = 0"))

    def launch() -> list[int]:
        return [(notebook.run(f"N = {n}"), notebook.launched())[1] for n in range(80)]

    with pytest.warns(PerformanceWarning) as caught:
        assert launch() == list(range(80))
    assert notebook.traces == 64
    (warning,) = [each for each in caught if "was traced again" in str(each.message)]
    assert str(warning.message) == (
        "kernel `k` was traced again at each of the last 8 launches, since `N` had changed each time; what changes "
        "from launch to launch is a parameter of the kernel"
    )


@pytest.mark.parametrize(("cell", "change", "name"), [
    (kernel("out[0] = c.n", "class C: ...\nc = C()\nc.n = 0"), "c.n += 1", "`c.n`"),
    (kernel("out[0] = f()", "N = [0]\ndef f(): return N[0]"), "N[0] += 1", "`f.N`"),
    (kernel("out[0] = f(3)", "N = 0\nf = lambda v: v + 0"), "N += 1\nf = eval(f'lambda v: v + {N}')", "`f`"),
])
def test_what_changes_at_each_launch_is_named(cell: str, change: str, name: str) -> None:
    notebook = Notebook(cell)

    def launch() -> None:
        for _ in range(12):
            notebook.launched()
            notebook.run(change)

    with pytest.warns(PerformanceWarning, match=f"since {name} had changed"):
        launch()


def test_no_warning_where_a_trace_is_used_again() -> None:
    notebook = Notebook(kernel("out[0] = N", "N = 0"))
    for n in range(20):
        notebook.module.__dict__["N"] = n
        assert [notebook.launched(), notebook.launched()] == [n, n]
    for n in range(40):
        notebook.module.__dict__["N"] = n % 2
        assert notebook.launched() == n % 2


def test_the_constants_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.kernel.kernel._LATEST", 16)
    notebook = Notebook("@ptx_kernel\ndef k(out: Ptr[u32], *, n: int):\n    out[0] = n")
    k: Any = notebook.module.__dict__["k"]
    for n in range(40):
        k.compiled({"n": n})
    assert len(k._latest) == 16
    assert k.ptx(n=7) != k.ptx(n=8)


def test_the_same_text_keeps_the_variables_of_the_module() -> None:
    """A change that leaves the PTX as it was loads nothing anew."""
    notebook = Notebook(
        "from ptxdsl import global_\nclass C: ...\nc = C()\nc.n = 0\ndef use(c): return 1\n"
        + kernel("use(c)\nout[0] = ptx.atom.global_.add.u32(global_(u32, 1), 1)")
    )
    assert notebook.launched() == 0
    notebook.run("c.n = 1")
    assert notebook.launched() == 1
    assert notebook.traces == 2


@pytest.mark.parametrize("entry", ["ptx", "ir", "configure", "getitem", "attributes"])
def test_every_way_in_sees_a_change(entry: str) -> None:
    notebook = Notebook(kernel("out[0] = N", "N = 1"))
    k: Any = notebook.module.__dict__["k"]
    launch = k.configure(1, 1, backend="emulator")

    def stored() -> str:
        if entry in ("configure", "getitem"):
            out = np.zeros(1, np.uint32)
            (launch if entry == "configure" else k[1, 1])(out)
            return str(out[0])
        if entry == "ir":
            return str([s.operands for s in k.ir().function("k").instructions()])
        if entry == "attributes":
            return str(k.compiled({}).text)
        return str(k.ptx())

    before = stored()
    notebook.run("N = 77")
    assert stored() != before
    notebook.run("N = 1")
    assert stored() == before


def test_a_change_in_another_module_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Notebook("TILE = 1\ndef helper(): return TILE")
    monkeypatch.setitem(sys.modules, "settings_of_test", settings.module)
    for before, read in (
        ("import settings_of_test", "settings_of_test.TILE"), ("import settings_of_test as s", "s.helper()"),
        ("from settings_of_test import helper", "helper()"), ("import settings_of_test as s", "getattr(s, 'TILE')"),
    ):
        settings.run("TILE = 1")
        for cell in (kernel(f"out[0] = {read}", before), kernel(f"{before}\nout[0] = {read}")):
            settings.run("TILE = 1")
            notebook = Notebook(cell)
            assert notebook.launched() == 1
            settings.run("TILE = 2")
            assert notebook.launched() == 2, cell
