"""Rule R2 by a table of bodies: what reads state that was changed in less usual ways. The wrong line of each is marked.

They have no source file, as in a notebook.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxdsl import LostUpdateError, Ptr, u32
from ptxdsl.language import trace

_SCOPE = """
import collections, contextlib, copy, dataclasses, enum, functools, json, operator, random, typing
import itertools, queue, threading, types, weakref
import numpy as np
from ptxdsl import Ptr, printf, ptx_func, loop, otherwise, ptx, reg, u32, when

SEEN = []
"""

_WRONG = {
    "sub_func": """
SEEN.clear()
@ptx_func
def g(a:u32)->u32:
    SEEN.append(1)  # wrong
    return a+1
with when(n<3):
    x[0]=g(n)
x[1]=len(SEEN)
""",
    "toggle": """
table={}
def first(k):
    if k not in table:
        table[k]=1  # wrong
        return True
    return False
with loop(n) as i:
    if first(3): x[i]=1
    else: x[i]=2
""",
    "once_flag": """
flag=types.SimpleNamespace(done=False)
def init():
    if not flag.done:
        flag.done=True  # wrong
        ptx.bar.sync(0)
with when(n<3): init()
init()
""",
    "static_cnt": """
class C:
    ids=itertools.count()
    def __init__(s): s.id=next(C.ids)  # wrong
with loop(n) as i:
    x[i]=C().id
""",
    "prop_side": """
class C:
    k=0
    @property
    def nxt(s):
        s.k=s.k+1  # wrong
        return s.k
c=C()
with loop(n) as i: x[i]=c.nxt
""",
    "desc": """
class D:
    def __get__(s,o,t=None): o.k+=1; return o.k  # wrong
class C:
    d=D()
    def __init__(s): s.k=0
c=C()
with loop(n) as i: x[i]=c.d
""",
    "super_": """
class A:
    def __init__(s): s.k=0
    def go(s): s.k+=1  # wrong
class B(A):
    def go(s): super().go()
c=B()
with loop(n) as i:
    c.go()
    x[i]=c.k
""",
    "static_method": """
class A:
    k=[0]
    @staticmethod
    def go(): A.k[0]+=1  # wrong
with loop(n) as i:
    A.go()
    x[i]=A.k[0]
""",
    "dict_of_fn": """
st={'k':0}
def inc(): st['k']=st['k']+1  # wrong
table={'inc':inc}
with loop(n) as i:
    table['inc']()
    x[i]=st['k']
""",
    "closure_list": """
hist=[]
fs=[lambda v: hist.append(v), lambda v: None]  # wrong
with when(n<3):
    for f in fs: f(1)
x[0]=len(hist)
""",
    "ifelse": """
v=1
with when(n<3): v=2  # wrong
x[0]=v if True else 3
""",
    "two_names": """
a=[1]; b=a
with when(n<3):
    b[0]=2  # wrong
x[0]=a[0]
""",
    "slice_read": """
a=[1,2,3]
with when(n<3):
    a[1]=5  # wrong
x[0]=sum(a[1:])
""",
    "neg_index": """
a=[1,2,3]
with when(n<3):
    a[2]=5  # wrong
x[0]=a[-1]
""",
    "unpack_read": """
a=[1,2,3]
with when(n<3):
    a[2]=5  # wrong
p,q,s=a
x[0]=s
""",
    "alias_after": """
a=[1,2,3]
with when(n<3):
    a[2]=5  # wrong
b=a
x[0]=b[2]
""",
    "format_read": """
k=1
with when(n<3):
    k=2  # wrong
printf(f"{k}")
""",
    "pass_kw": """
a=[1,2,3]
def f(*,lst): return lst[0]
with when(n<3):
    a[0]=5  # wrong
x[0]=f(lst=a)
""",
    "pass_star": """
a=[1,2,3]
def f(*v): return v[0]
with when(n<3):
    a[0]=5  # wrong
x[0]=f(*a)
""",
    "partial_read": """
a=[1,2,3]
f=functools.partial(sum,a)
with when(n<3):
    a[0]=5  # wrong
x[0]=f()
""",
    "gen_read": """
a=[1,2,3]
g=(v for v in a)
with when(n<3):
    a[0]=5  # wrong
x[0]=next(g)
""",
    "getter": """
a=types.SimpleNamespace(k=1)
get=operator.attrgetter('k')
with when(n<3):
    a.k=5  # wrong
x[0]=get(a)
""",
    "itemgetter_": """
a={'k':1}
get=operator.itemgetter('k')
with when(n<3):
    a['k']=5  # wrong
x[0]=get(a)
""",
    "jsonread": """
a={'k':1}
with when(n<3):
    a['k']=5  # wrong
x[0]=len(json.dumps(a))
""",
    "dataclass_eq": """
@dataclasses.dataclass
class P: k:int=1
a=P()
with when(n<3):
    a.k=5  # wrong
x[0]=int(a==P())
""",
    "dataclass_repr": """
@dataclasses.dataclass
class P: k:int=1
a=P()
with when(n<3):
    a.k=55  # wrong
x[0]=len(repr(a))
""",
    "matchcls": """
a=types.SimpleNamespace(k=1)
with when(n<3):
    a.k=5  # wrong
match a:
    case types.SimpleNamespace(k=kk): x[0]=kk
""",
    "loop_first_iter": """
prev=None
with loop(n) as i:
    if prev is None: x[i]=0
    else: x[i]=1
    prev=1  # wrong
""",
    "loop_flag_attr": """
st=types.SimpleNamespace(first=True)
with loop(n) as i:
    x[i]=1 if st.first else 2
    st.first=False  # wrong
""",
    "cond_fill": """
f=[0,0,0,0]
with when(n<3):
    for k in range(4): f[k]=k+1  # wrong
x[0]=f[2]
""",
    "helper_in_helper_frames": """
cfg={'stage':0}
def load(i):
    with when(i<2):
        cfg['stage']+=1  # wrong
def body(i):
    load(i)
    x[i]=cfg['stage']
body(n)
""",
    "numpy_obj": """
a=np.array([1,'a'],dtype=object)
with when(n<3):
    a[0]=5  # wrong
x[0]=a[0]
""",
    "recarray": """
a=np.zeros(2,dtype=[('k','i4')])
with when(n<3):
    a['k'][0]=5  # wrong
x[0]=int(a['k'][0])
""",
    "dictloop": """
d={1:2}
with when(n<3):
    d.pop(1)  # wrong
for k,v in d.items(): x[k]=v
""",
    "str_build": """
s=""
for k in range(2):
    with when(n>k):
        s+="a"  # wrong
x[0]=len(s)
""",
    "tuple_build": """
s=()
with when(n>1):
    s+=(1,)  # wrong
x[0]=len(s)
""",
    "int_in_nested_loop": """
k=0
with loop(n) as i:
    with loop(n) as j:
        x[j]=k
    k+=1  # wrong
""",
    "read_by_loop_bound": """
k=1
with when(n<3): k=4  # wrong
with loop(k) as i: x[i]=i
""",
    "reads_in_default": """
k=1
with when(n<3): k=4  # wrong
def f(a=k): return a
x[0]=f()
""",
    "reads_in_decorator": """
k=1
with when(n<3): k=4  # wrong
class C: v=k
x[0]=C.v
""",
    "in_lambda_later": """
k=1
with when(n<3): k=4  # wrong
x[0]=(lambda: k)()
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
