"""Rule R2 by a table of bodies: what changes state in less usual ways. The wrong line of each is marked.

They have no source file, as in a notebook.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxdsl import LostUpdateError, Ptr, u32
from ptxdsl.language import trace

_SCOPE = """
import collections, contextlib, dataclasses, functools, itertools, queue, threading, types, weakref
import numpy as np
from ptxdsl import Ptr, loop, otherwise, ptx, reg, u32, when

class Acc:
    def __init__(self): self.n = 0
    def __iadd__(self, other): self.n += 1; return self
    def __lshift__(self, other): self.n += 1; return self
    def __call__(self): self.n += 1; return self.n
    def __getitem__(self, key): self.n += 1; return self.n
    def __enter__(self): self.n += 1; return self
    def __exit__(self, *error): pass
    def __len__(self): return self.n
    def __iter__(self): return iter(range(self.n))
    def __getattr__(self, name): self.__dict__["n"] += 1; return 1

GG = 1
"""

_WRONG = {
    "iadd_obj": """
a=Acc()
with when(n<3):
    a+=1  # wrong
x[0]=a.n
""",
    "lshift_obj": """
a=Acc()
with when(n<3):
    a<<1  # wrong
x[0]=len(a)
""",
    "call_obj": """
a=Acc()
with loop(n) as i:
    x[i]=a()  # wrong
""",
    "getitem_obj": """
a=Acc()
with loop(n) as i:
    x[i]=a[0]  # wrong
""",
    "enter_obj": """
a=Acc()
with when(n<3):
    with a:  # wrong
        x[0]=1
for k in a: x[k]=1
""",
    "getattr_obj": """
a=Acc()
with when(n<3):
    a.foo  # wrong
    x[0]=1
x[1]=a.n
""",
    "partial_list": """
lst=[]
f=functools.partial(lst.append)
with when(n<3):
    f(1)  # wrong
x[0]=len(lst)
""",
    "bound_method": """
lst=[]
f=lst.append
with when(n<3):
    f(1)  # wrong
x[0]=len(lst)
""",
    "map_append": """
lst=[]
with when(n<3):
    list(map(lst.append,[1,2]))  # wrong
x[0]=len(lst)
""",
    "queue_": """
q=queue.SimpleQueue(); q2=queue.Queue(); q2.put(3)
with when(n<3):
    x[0]=q2.get()  # wrong
x[1]=q2.qsize()
""",
    "chainmap": """
c=collections.ChainMap({}, {'a':1})
with when(n<3):
    c['a']=5  # wrong
x[0]=c['a']
""",
    "userlist": """
c=collections.UserList([1])
with when(n<3):
    c.append(5)  # wrong
x[0]=len(c)
""",
    "listsub": """
class L(list): pass
c=L([1])
with when(n<3):
    c.append(5)  # wrong
x[0]=len(c)
""",
    "dictsub": """
class L(dict): pass
c=L(a=1)
with when(n<3):
    c['a']=5  # wrong
x[0]=c['a']
""",
    "weakdict": """
c=weakref.WeakKeyDictionary(); k=Acc()
with when(n<3):
    c[k]=5  # wrong
x[0]=c.get(k,0)
""",
    "module_attr": """
m=types.ModuleType('cfg'); m.k=1
with when(n<3):
    m.k=2  # wrong
x[0]=m.k
""",
    "threadlocal": """
t=threading.local(); t.k=1
with when(n<3):
    t.k=2  # wrong
x[0]=t.k
""",
    "mapproxy": """
d={'a':1}; m=types.MappingProxyType(d)
with when(n<3):
    d['a']=2  # wrong
x[0]=m['a']
""",
    "kview": """
d={'a':1}; m=d.keys()
with when(n<3):
    d['b']=2  # wrong
x[0]=len(m)
""",
    "memview": """
b=bytearray(4); m=memoryview(b)
with when(n<3):
    m[0]=2  # wrong
x[0]=b[0]
""",
    "npview": """
a=np.zeros(4,int); b=a[1:]
with when(n<3):
    b[0]=2  # wrong
x[0]=int(a[1])
""",
    "npinplace": """
a=np.zeros(4,int)
with when(n<3):
    a+=1  # wrong
x[0]=int(a[1])
""",
    "npsort": """
a=np.array([2,1])
with when(n<3):
    a.sort()  # wrong
x[0]=int(a[0])
""",
    "npout": """
a=np.array([2,1])
with when(n<3):
    np.add(a,1,out=a)  # wrong
x[0]=int(a[0])
""",
    "npscal": """
k=np.int64(1)
with when(n<3):
    k=np.int64(2)  # wrong
x[0]=int(k)
""",
    "npfill": """
a=np.zeros((),int)
with loop(n) as i:
    x[i]=int(a)
    a[...]=3  # wrong
""",
    "nested_fn": """
todo=[1,2]
def a(): return b()
def b(): return c()
def c(): return todo.pop()  # wrong
with loop(n) as i:
    x[i]=a()
""",
    "class_in_region": """
todo=[1,2]
with loop(n) as i:
    class T:
        v=todo.pop()  # wrong
    x[i]=T.v
""",
    "lambda_default": """
f=lambda s=[0]: s.append(1) or len(s)  # wrong
with loop(n) as i:
    x[i]=f()
""",
    "walrus": """
k=1
with when(n<3):
    x[0]=(k:=k+1)  # wrong
x[1]=k
""",
    "comp_walrus": """
k=1
with when(n<3):
    [k:=v for v in range(3)]  # wrong
x[1]=k
""",
    "fortarget": """
k=9
with when(n<3):
    for k in range(3):  # wrong
        x[k]=1
x[1]=k
""",
    "attr_for": """
o=types.SimpleNamespace(k=9)
with when(n<3):
    for o.k in range(3):  # wrong
        x[o.k]=1
x[1]=o.k
""",
    "unpack_into": """
o=[0,0]
with when(n<3):
    o[0],o[1]=1,2  # wrong
x[1]=o[0]
""",
    "delname": """
k=1
with when(n<3):
    k=[5]  # wrong
x[0]=k[0] if isinstance(k,list) else k
""",
    "match_": """
k=1
with when(n<3):
    match (1,2):
        case (a,k):  # wrong
            pass
x[0]=k
""",
    "import_as": """
import math as m
with when(n<3):
    import cmath as m  # wrong
x[0]=len(m.__name__)
""",
    "exc_state": """
e=ValueError(1)
with when(n<3):
    e.args=(2,)  # wrong
x[0]=e.args[0]
""",
    "sibling": """
d={}
with when(n<3):
    d['k']=1  # wrong
with when(n<4):
    x[0]=len(d)
""",
    "otherw": """
d=[0]
with when(n<3):
    d[0]=1  # wrong
with otherwise():
    x[0]=d[0]
""",
    "rec": """
depth=[0]
def f(k):
    depth[0]+=1  # wrong
    if k: f(k-1)
with loop(n) as i:
    f(3)
    x[i]=depth[0]
""",
    "ctx_helper": """
d=[]
@contextlib.contextmanager
def cm(p):
    with when(p):
        yield d
with cm(n<3) as q:
    q.append(1)  # wrong
x[0]=len(d)
""",
    "outer_frame": """
d=[]
def body(out):
    with when(n<3):
        out.append(1)  # wrong
body(d)
x[0]=len(d)
""",
    "outer_frame_obj": """
class S: pass
s=S(); s.seen=set()
def body(o):
    with when(n<3):
        o.seen|={1}  # wrong
body(s)
x[0]=len(s.seen)
""",
    "generator_send": """
def g():
    t=0
    while True:
        t+=1
        yield t
it=g(); next(it)
with loop(n) as i:
    x[i]=it.send(None)  # wrong
""",
    "tee": """
a,b=itertools.tee([1,2,3])
with loop(n) as i:
    x[i]=next(a)  # wrong
""",
    "zipit": """
z=zip([1,2],[3,4])
with loop(n) as i:
    for a,b in z:  # wrong
        x[i]=a
""",
    "unpackit": """
z=iter([1,2,3,4])
with when(n<3):
    a,*b=z  # wrong
    x[0]=a
x[1]=len(list(z))
""",
    "starcall": """
z=iter([1,2,3,4])
with when(n<3):
    x[0]=max(*z)  # wrong
x[1]=sum(z)
""",
    "intern_in": """
z=iter([1,2,3,4])
with when(n<3):
    x[0]=int(2 in z)  # wrong
x[1]=sum(z)
""",
    "frozen_setattr": """
@dataclasses.dataclass(frozen=True)
class F: a:int=1
f=F()
with when(n<3):
    object.__setattr__(f,'a',2)  # wrong
x[0]=f.a
""",
    "vars_": """
f=types.SimpleNamespace(a=1)
with when(n<3):
    vars(f)['a']=2  # wrong
x[0]=f.a
""",
    "fn_code": """
def f(): return 1
def g(): return 2
with when(n<3):
    f.__code__=g.__code__  # wrong
x[0]=f()
""",
    "fn_defaults": """
def f(a=1): return a
with when(n<3):
    f.__defaults__=(2,)  # wrong
x[0]=f()
""",
    "klass_swap": """
class A:
    def v(s): return 1
class B:
    def v(s): return 2
a=A()
with when(n<3):
    a.__class__=B  # wrong
x[0]=a.v()
""",
    "monkey": """
class A:
    def v(s): return 1
a=A()
with when(n<3):
    A.v=lambda s:2  # wrong
x[0]=a.v()
""",
    "globals_": """
with when(n<3):
    globals()['GG']=2  # wrong
x[0]=GG
""",
}


def _made(body: str) -> Any:
    scope: dict[str, Any] = {"Ptr": Ptr, "u32": u32}
    exec(compile(_SCOPE, "<scope>", "exec"), scope)
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    exec(compile(f"def made(n: u32, x: Ptr[u32]):\n{lines}\n", "<body>", "exec"), scope)
    return scope["made"]


@pytest.mark.parametrize("body", _WRONG.values(), ids=list(_WRONG))
def test_wrong(body: str) -> None:
    marked = next(number for number, line in enumerate(body.splitlines(), 1) if "# wrong" in line)
    with pytest.raises(LostUpdateError) as caught:
        trace(_made(body))
    assert caught.value.loc is not None
    assert (caught.value.loc.file, caught.value.loc.line) == ("<body>", marked)
