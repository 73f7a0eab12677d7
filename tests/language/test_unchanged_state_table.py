"""Rule R2 by a table of bodies that are right, of less usual kinds: none is refused.

They have no source file, as in a notebook.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxdsl.language import trace

_SCOPE = """
import collections, collections.abc, contextlib, copy, dataclasses, enum, functools, inspect
import itertools, random, re, string, typing
from typing import Any
import numpy as np
import ptxdsl
from ptxdsl import Ptr, label, loop, otherwise, printf, ptx, reg, select, shared, u32, warp, when

MEMO={}
def memo(k):
    if k not in MEMO: MEMO[k]=k*k
    return MEMO[k]
def memo_get(k):
    v=MEMO.get(k)
    if v is None:
        v=MEMO[k]=k*k
    return v
def memo_try(k):
    try: return MEMO[k]
    except KeyError:
        MEMO[k]=k*k
        return MEMO[k]
class Matrix:
    def __init__(s,r,c): s.r,s.c=r,c; s.cache={}; s.d=[[0]*c for _ in range(r)]
    def __getitem__(s,k): return s.d[k[0]][k[1]]
    def __setitem__(s,k,v): s.d[k[0]][k[1]]=v
    def __len__(s): return s.r
@dataclasses.dataclass
class St:
    a: Any
    b: Any
    def step(self,v):
        self.a+=v
        self.b+=self.a
"""

_RIGHT = {
    "memo1": """
MEMO.clear()
with when(n<3): x[0]=memo(4)
x[1]=memo(4)+memo(5)
""",
    "memo2": """
MEMO.clear()
with loop(n) as i: x[i]=memo_get(4)
x[1]=memo_get(4)
""",
    "memo3": """
MEMO.clear()
with loop(n) as i: x[i]=memo_try(4)
x[1]=memo_try(4)
""",
    "matrix_inside": """
with loop(n) as i:
    m=Matrix(2,2)
    m[0,1]=i
    x[i]=m[0,1]+len(m)
""",
    "matrix_regs": """
m=Matrix(2,2)
for a in range(2):
    for b in range(2): m[a,b]=reg(u32,0)
with loop(n) as i:
    for a in range(2):
        for b in range(2):
            t=m[a,b]; t+=i
x[0]=m[1,1]
""",
    "sub_regs": """
acc=[reg(u32,0) for _ in range(4)]
with loop(n) as i:
    for k in range(4): acc[k]+=i
    for k,a in enumerate(acc): a.set(a+k)
for k in range(4): x[k]=acc[k]
""",
    "dict_regs": """
acc={'a':reg(u32,0),'b':reg(u32,1)}
with loop(n) as i:
    acc['a']+=i
    for k in acc: acc[k]+=1
x[0]=acc['a']
""",
    "dc_regs": """
s=St(reg(u32,0),reg(u32,0))
with loop(n) as i:
    s.step(i)
x[0]=s.b
""",
    "slots_regs": """
class S:
    __slots__=('a',)
    def __init__(s): s.a=reg(u32,0)
s=S()
with loop(n) as i: s.a+=i
x[0]=s.a
""",
    "double_buffer": """
bufs=[shared(u32,8),shared(u32,8)]
with loop(n) as i:
    for k in range(4):
        cur,nxt=bufs[k%2],bufs[(k+1)%2]
        cur[0]=i; nxt[1]=i
x[0]=bufs[0][0]
""",
    "helpers_lib": """
with loop(n) as i:
    v=warp.reduce_sum(i)
    x[0]=v
""",
    "inspect_inside": """
with when(n<3):
    sig=inspect.signature(memo)
    m=re.match('a','a');
    s=string.Template('$a').substitute(a=1)
    x[0]=len(sig.parameters)+len(s)
    random.Random(3).random()
    copy.deepcopy([1,[2]])
    sorted([3,1],key=lambda v:-v)
x[1]=1
""",
    "global_random": """
with when(n<3):
    x[0]=random.randrange(5)
""",
    "unique_names": """
with when(n<3):
    s=shared(u32,4)
    s[0]=n
with when(n<5):
    t=shared(u32,4)
    t[0]=n
""",
    "const_tables": """
T=[[1,2],[3,4]]; D={'a':[1],'b':{'c':2}}
with loop(n) as i:
    for row in T:
        for v in row: x[i]=v
    x[i]=D['b']['c']+D.get('z',1)+sum(map(len,T))
x[0]=T[0][0]
""",
    "frames_in_python_if": """
mode='a'
for k in range(3):
    flag = k==1
    with when(n>k):
        if flag: v=n+1
        else: v=n+2
        x[k]=v
    flag = False
""",
    "acc_py_outside": """
offs=0; seen=[]
for k in range(3):
    with when(n>k):
        x[k+offs]=1
    offs+=1
    seen.append(k)
x[0]=len(seen)+offs
""",
    "stage_counter_outside": """
class Pipe:
    def __init__(s): s.stage=0
    def next(s): s.stage=(s.stage+1)%2
p=Pipe()
for k in range(3):
    with when(n>k): x[p.stage]=1
    p.next()
""",
    "nested_temp": """
with loop(n) as i:
    row=[]
    with loop(n) as j:
        tmp=[i,j]
        tmp.append(i+j)
        x[j]=tmp[2]
    row.append(i)
    x[i]=row[0]
""",
    "ladder": """
state={'v':reg(u32,0)}
def put(k):
    with when(n>k):
        state['v'].set(k)
for k in range(4): put(k)
x[0]=state['v']
""",
    "cb": """
def each(f):
    with loop(n) as i: f(i)
each(lambda i: x.store(i,i))
""",
    "cb2": """
total=reg(u32,0)
def add(i):
    nonlocal total
    total+=i
def each(f):
    with loop(n) as i: f(i)
each(add)
x[0]=total
""",
    "set_in_when": """
with when(n<3):
    names={'a'}; names.add('b'); q=collections.deque(maxlen=2); q.append(n); q.append(n+1)
    c=collections.Counter('aab'); dd=collections.defaultdict(list); dd['k'].append(n)
    x[0]=len(names)+c['a']; x[1]=q[0]; x[2]=dd['k'][0]
""",
    "np_inside": """
perm=np.random.default_rng(0).permutation(8)
with loop(n) as i:
    w_=np.zeros(4,np.int64); w_[1]+=3
    x[i]=int(w_[1])+int(perm[0])
""",
    "obj_cfg": """
@dataclasses.dataclass(frozen=True)
class Cfg:
    t:int=4
    @property
    def tt(s): return s.t*2
    @functools.cached_property
    def ttt(s): return s.t*3
c=Cfg()
with loop(n) as i: x[i]=c.tt+c.ttt
with loop(n) as i: x[i]=c.ttt
""",
    "enum_": """
class M(enum.Enum): A=1;B=2
with loop(n) as i: x[i]=M.A.value+M(2).value+len(M)+M['B'].value
x[0]=M.A.value
""",
    "abc_": """
with loop(n) as i: x[i]=int(isinstance([],collections.abc.Sequence))+int(isinstance(i,typing.Sized))
x[0]=int(isinstance((),collections.abc.Sequence))
""",
    "write_only_container_obj": """
class Tr:
    def __init__(s): s.events=[]
    def ev(s,k): s.events.append(k)
t=Tr()
with loop(n) as i:
    t.ev('a'); x[i]=i
t.ev('end')
""",
    "del_temp": """
with loop(n) as i:
    t=[i]; u=t; del t
    x[i]=u[0]
""",
    "swap_regs": """
a,b=reg(u32,0),reg(u32,1)
with loop(n) as i:
    t=a.copy(); a.set(b); b.set(t+b)
x[0]=a
""",
    "const_rebind_same": """
k=4; names=('a','b')
with loop(n) as i:
    k=4; names=('a','b')
    x[i]=k
x[0]=k+len(names)
""",
    "last_of_for": """
for k in range(2):
    with when(n>k): x[k]=k
for k in range(2): x[k]=k
""",
    "print_format": """
with when(n<3):
    printf("%d", n)
    ptxdsl.check(n<4,"x")
""",
    "exit_stack": """
with contextlib.ExitStack() as st:
    i=st.enter_context(loop(n))
    t=i+1
    x[i]=t
""",
    "result_list": """
res=[reg(u32,0) for _ in range(3)]
def compute(out):
    with when(n<3):
        for k,o in enumerate(out): o.set(k)
    return out
for k,v in enumerate(compute(res)): x[k]=v
""",
    "stack_of_values": """
# an explicit stack used at trace time, inside the region only
with when(n<3):
    stack=[(0,4)]
    while stack:
        a,b=stack.pop()
        if b-a==1: x[a]=n
        else: stack.append((a,(a+b)//2)); stack.append(((a+b)//2,b))
""",
    "bitonic": """
v=[reg(u32,k) for k in range(4)]
for size in (2,4):
    with when(n>size):
        for k in range(0,4,2):
            lo=select(v[k]<v[k+1],v[k],v[k+1]); hi=select(v[k]<v[k+1],v[k+1],v[k])
            v[k].set(lo); v[k+1].set(hi)
for k in range(4): x[k]=v[k]
""",
    "pipeline_stages": """
bufs=[shared(u32,32) for _ in range(3)]
def load(stage,i): bufs[stage][ptx.tid.x]=x[i]
def use(stage): return bufs[stage][0]
acc=reg(u32,0)
for s in range(2): load(s,s)
with loop(0,n,3) as i:
    for s in range(3):
        load((s+2)%3,i+s+2)
        acc+=use(s)
x[0]=acc
""",
    "local_helper_state": """
def count_bits(v):
    parts=[]
    for k in range(4): parts.append((v>>k)&1)
    total=parts[0]
    for p in parts[1:]: total=total+p
    return total
with loop(n) as i: x[i]=count_bits(i)
""",
    "config_namedtuple": """
Cfg=collections.namedtuple('Cfg','tile warps'); c=Cfg(4,2)
with loop(n) as i:
    c2=c._replace(tile=8)
    x[i]=c2.tile+c.warps
x[0]=c.tile
""",
    "opts": """
opts=dict(a=1)
with when(n<3):
    o={**opts,'b':2}; o.update(opts); o['a']=5
    x[0]=o['a']+o['b']
x[1]=opts['a']
""",
    "walrus_temp": """
for k in range(2):
    with when(n>k):
        if (t:=k*2)>1: x[t]=n
""",
    "exceptions_inside": """
for k in range(2):
    with when(n>k):
        try: v={}['a']
        except KeyError as e: v=len(e.args)
        finally: q=1
        x[k]=v+q
""",
    "assertion": """
with loop(n) as i:
    assert isinstance(i,object), f"{i}"
    x[i]=i
""",
    "cond_python_store": """
outs=[]
for k in range(3):
    v=reg(u32,0)
    with when(n>k): v.set(k)
    outs.append(v)
for k,v in enumerate(outs): x[k]=v
""",
    "nested_defs_and_caches": """
@functools.lru_cache(None)
def off(k): return k*3
with loop(n) as i: x[i]=off(2)+off(3)
x[0]=off(2)
""",
    "dyn_attr_temp": """
class Ctx: pass
c=Ctx()
for k in range(2):
    with when(n>k):
        c.tmp=n+k
        x[k]=c.tmp
""",
    "self_tmp": """
class Op:
    def __init__(s,p): s.p=p
    def run(s,i):
        s.cur=i*2
        s.emit()
    def emit(s): s.p[0]=s.cur
o=Op(x)
with loop(n) as i: o.run(i)
""",
    "enumerate_regs": """
names={'a':reg(u32,0)}
with loop(n) as i:
    for key,value in names.items(): value+=i
x[0]=names['a']
""",
    "labels_loop": """
i=reg(u32,0); tbl=[1,2]
top=label()
tmp=[i]; tmp.append(i+1)
x[i]=tmp[1]+tbl[0]
i+=1
ptx.bra(top,pred=i<n)
x[0]=tbl[1]
""",
}


def _made(body: str) -> Any:
    scope: dict[str, Any] = {}
    exec(compile(_SCOPE, "<scope>", "exec"), scope)
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    exec(compile(f"def made(n: u32, x: Ptr[u32]):\n{lines}\n", "<body>", "exec"), scope)
    return scope["made"]


@pytest.mark.parametrize("body", _RIGHT.values(), ids=list(_RIGHT))
def test_right(body: str) -> None:
    trace(_made(body))
