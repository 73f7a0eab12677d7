"""Rule R2 by a table of bodies: what changes state in less usual ways. The wrong line of each is marked.

They have no source file, as in a notebook.
"""

from __future__ import annotations

import pytest
from changed_state import check_lost

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
    "context variable": """
v=contextvars.ContextVar("v", default=1)
with when(n<3):
    v.set(2)  # wrong
x[0]=v.get()
""",
    "text stream": """
s=io.StringIO()
with when(n<3):
    s.write("ab")  # wrong
x[0]=len(s.getvalue())
""",
    "place of a stream of bytes": """
s=io.BytesIO(b"abc")
with loop(n) as i:
    x[i]=s.read(1)[0]  # wrong
""",
    "attribute of a member of an enumeration": """
class E(enum.Enum):
    A=1
with when(n<3):
    E.A.extra=2  # wrong
x[0]=getattr(E.A,"extra",1)
""",
}


@pytest.mark.parametrize("body", _WRONG.values(), ids=list(_WRONG))
def test_wrong(body: str) -> None:
    check_lost(body)
