"""Rule R2 by a table of bodies: context managers, unpacking, defaults, classes. The wrong line of each is marked.

They have no source file, as in a notebook.
"""

from __future__ import annotations

import pytest
from changed_state import check_lost

_WRONG = {
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


@pytest.mark.parametrize("body", _WRONG.values(), ids=list(_WRONG))
def test_wrong(body: str) -> None:
    check_lost(body)
