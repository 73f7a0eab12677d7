"""More of what a trace can have read of the world: what Python keeps in odd places."""

from __future__ import annotations

import sys

import pytest
from notebook import Notebook, kernel

SEEN: dict[str, tuple[str, str, int, int]] = {
    "metaclass property": (
        kernel("out[0] = C.n",
               "class M(type):\n    v=1\n    @property\n    def n(cls): return cls.v\nclass C(metaclass=M): pass"),
        "C.v=2", 1, 2
    ),
    "metaclass v": (
        kernel("out[0] = C.n",
               "class M(type):\n    v=1\n    @property\n    def n(cls): return cls.v\nclass C(metaclass=M): pass"),
        "M.v=2", 1, 2
    ),
    "mod getattr": (
        kernel("out[0] = m.n", "m=types.ModuleType('mm')\nN=1\nm.__getattr__=lambda name: N"),
        "N=2", 1, 2
    ),
    "global under new name in helper dict": (
        kernel("out[0] = T['f']['g']()", "N=1\nT={'f':{'g':lambda: N}}"),
        "N=2", 1, 2
    ),
    "instance dict swapped": (kernel("out[0] = c.n", "class C: ...\nc=C()\nc.n=1"), "c.__dict__={'n':2}", 1, 2),
    "class swapped": (
        kernel("out[0] = c.f()", "class A:\n    def f(self): return 1\nclass B(A):\n    def f(self): return 2\nc=A()"),
        "c.__class__=B", 1, 2
    ),
    "class swapped plain": (
        kernel("out[0] = c.n", "class A:\n    n=1\nclass B(A):\n    n=2\nc=A()"),
        "c.__class__=B", 1, 2
    ),
    "bases": (
        kernel("out[0] = C.n", "class A:\n    n=1\nclass B:\n    n=2\nclass C(A): pass"),
        "C.__bases__=(B,)", 1, 2
    ),
    "list subclass": (kernel("out[0] = L[0]", "class L_(list): ...\nL=L_([1])"), "L[0]=2", 1, 2),
    "deque": (kernel("out[0] = L[0]", "import collections\nL=collections.deque([1])"), "L[0]=2", 1, 2),
    "defaultdict": (
        kernel("out[0] = L['a']", "import collections\nL=collections.defaultdict(int)\nL['a']=1"),
        "L['a']=2", 1, 2
    ),
    "counter": (kernel("out[0] = L['a']", "import collections\nL=collections.Counter(a=1)"), "L['a']=2", 1, 2),
    "ordereddict": (
        kernel("out[0] = L['a']", "import collections\nL=collections.OrderedDict(a=1)"),
        "L['a']=2", 1, 2
    ),
    "array.array": (kernel("out[0] = L[0]", "import array\nL=array.array('i',[1])"), "L[0]=2", 1, 2),
    "memoryview": (kernel("out[0] = L[0]", "B=bytearray(b'\\1')\nL=memoryview(B)"), "B[0]=2", 1, 2),
    "mappingproxy": (kernel("out[0] = L['a']", "D={'a':1}\nL=types.MappingProxyType(D)"), "D['a']=2", 1, 2),
    "chainmap": (
        kernel("out[0] = L['a']", "import collections\nD={'a':1}\nL=collections.ChainMap(D)"),
        "D['a']=2", 1, 2
    ),
    "structured": (kernel("out[0] = int(A['x'][0])", "A=np.array([(1,)],dtype=[('x','i4')])"), "A['x'][0]=2", 1, 2),
    "array view": (kernel("out[0] = int(V[0])", "A=np.array([1,2])\nV=A[:1]"), "A[0]=2", 1, 2),
    "object array": (kernel("out[0] = A[0][0]", "A=np.empty(1,object)\nA[0]=[1]"), "A[0][0]=2", 1, 2),
    "weakref": (
        kernel("out[0] = r().n", "import weakref\nclass C: ...\nc=C()\nc.n=1\nr=weakref.ref(c)"),
        "c.n=2", 1, 2
    ),
    "cached_property": (
        kernel("out[0] = c.n",
               "class C:\n    v=1\n    @functools.cached_property\n    def n(self): return self.v\nc=C()"),
        "c.n=2", 1, 2
    ),
    "singledispatch": (
        kernel("out[0] = f(1)", "@functools.singledispatch\ndef f(a): return 1"),
        "f.register(int)(lambda a: 2)", 1, 2
    ),
    "empty mappingproxy": (
        kernel("out[0] = len(t[0]) + 1", "import types\nheld={}\nt=[types.MappingProxyType(held)]"), "held['n']=1", 1, 2
    ),
    "dataclass default": (
        kernel("out[0] = C().n", "@dataclasses.dataclass\nclass C:\n    n: int = 1"),
        "C.__init__.__defaults__=(2,)", 1, 2
    ),
    "bound method global": (
        kernel("out[0] = f()", "class C:\n    n=1\n    def f(self): return self.n\nc=C()\nf=c.f"),
        "c.n=2", 1, 2
    ),
    "super": (
        kernel("out[0] = D().f()",
               "class B:\n    def f(self): return 1\nclass D(B):\n    def f(self): return super().f()"),
        "B.f=lambda self: 2", 1, 2
    ),
    "slots inherited": (
        kernel("out[0] = c.n", "class B:\n    __slots__=('n',)\nclass C(B):\n    __slots__=()\nc=C()\nc.n=1"),
        "c.n=2", 1, 2
    ),
    "iter class": (
        kernel("out[0] = sum(iter(c))", "class C:\n    v=[1]\n    def __iter__(self): return iter(self.v)\nc=C()"),
        "C.v.append(1)", 1, 2
    ),
    "getitem": (
        kernel("out[0] = c[0]", "class C:\n    v=1\n    def __getitem__(self,i): return self.v\nc=C()"),
        "c.v=2", 1, 2
    ),
    "global in lambda default": (kernel("out[0] = f()", "N=[1]\nf=lambda n=N: n[0]"), "N[0]=2", 1, 2),
    "nonlocal list via two closures": (
        ("def make():\n    L=[1]\n    def h(): return L[0]\n    "
        "@ptx_kernel\n    def k(out: Ptr[u32]):\n        out[0]=h()\n    return k,L\nk,L=make()"),
        "L[0]=2", 1, 2
    ),
    "decorator class": (
        kernel("out[0] = f()",
               "class deco:\n    def __init__(self,f): self.f=f\n    def __call__(self): return self.f()+N\n"
               "N=0\n@deco\ndef f(): return 1"),
        "N=1", 1, 2
    ),
    "contextmanager": (
        kernel("with c(): out[0] = N[0]",
               "import contextlib\nN=[0]\n@contextlib.contextmanager\ndef c():\n    N[0]=1\n    yield"),
        "@contextlib.contextmanager\ndef c():\n    N[0]=2\n    yield", 1, 2
    ),
    "contextmanager helper": (
        kernel("with c(): out[0] = N[0]",
               "import contextlib\nN=[0]\ndef h(): return 1\n@contextlib.contextmanager\ndef c():\n"
               "    N[0]=h()\n    yield"),
        "def h(): return 2", 1, 2
    ),
    "try except name": (kernel("try:\n    v=LATE\nexcept NameError:\n    v=1\nout[0]=v"), "LATE=2", 1, 2),
    "hasattr": (kernel("out[0] = 2 if hasattr(c,'n') else 1", "class C: ...\nc=C()"), "c.n=2", 1, 2),
    "globals()": (kernel("out[0] = globals()['N']", "N=1"), "N=2", 1, 2),
    "hasattr of what has none": (
        kernel("out[0] = 2 if hasattr(c,'n') else 1", "c=types.SimpleNamespace()"), "c.n=2", 1, 2
    ),
    "a masked array": (kernel("out[0] = int(A[0])", "A=np.ma.array([1, 5], mask=[0, 1])"), "A[0]=2", 1, 2),
    "an array's subclass": (
        kernel("out[0] = int(A[0])", "class C(np.ndarray): ...\nA=np.array([1, 5]).view(C)"), "A[0]=2", 1, 2
    ),
    "an attribute of an array's subclass": (
        kernel("out[0] = A.n", "class C(np.ndarray): ...\nA=np.array([1, 5]).view(C)\nA.n=1"), "A.n=2", 1, 2
    ),
    "a module that was not there": (
        kernel("try:\n    import a_test_of_traces as a\n    out[0]=a.N\n"
               "except ImportError:\n    out[0]=1", "import sys"),
        "sys.modules['a_test_of_traces']=types.SimpleNamespace(N=2)", 1, 2
    ),
    "the environment": (
        kernel("out[0] = int(os.getenv('A_TEST_OF_TRACES', '1'))", "import os"),
        "os.environ['A_TEST_OF_TRACES']='2'", 1, 2
    ),
    "getattr default on module": (kernel("out[0] = getattr(m,'n',1)", "m=types.ModuleType('mm2')"), "m.n=2", 1, 2),
    "isinstance ABC register": (
        kernel("out[0] = 2 if isinstance(1.5,A) else 1", "import abc\nclass A(abc.ABC): ..."),
        "A.register(float)", 1, 2
    ),
    "contextvar": (
        kernel("out[0] = V.get()", "import contextvars\nV=contextvars.ContextVar('V',default=1)"),
        "V.set(2)", 1, 2
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_change_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TEST_OF_TRACES", "1")
    monkeypatch.setitem(sys.modules, "a_test_of_traces", None)
    monkeypatch.delitem(sys.modules, "a_test_of_traces")
    first, change, before, after = SEEN[name]
    notebook = Notebook(first)
    assert [notebook.launched(), notebook.launched()] == [before, before]
    notebook.run(change)
    assert [notebook.launched(), notebook.launched()] == [after, after]
    assert notebook.traces == 2
