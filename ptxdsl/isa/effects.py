"""What an instruction does beside computing its results: control, memory, order, convergence, what completes later.

The one home of these facts. Most follow from what a row says anyway, the roles of its operands and its modifiers; what
does not is a line of the row (see :mod:`ptxdsl.isa.notation`). Ask ``form.effects``, never for an opcode.

>>> from ptxdsl.isa import lookup
>>> effects = lookup("ld.acquire.gpu.global.u32")[0].effects
>>> effects.order, effects.scope, effects.access
('acquire', 'gpu', Access(operand=1, kind='elements', space='global', reads=True, writes=False, nbytes=4))
>>> lookup("bar.sync")[0].effects.collective
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from ..types import TYPES, ScalarType
from .specs import OperandSpec

__all__ = ["COMMUTATIVE", "NONE", "ORDERS", "SCOPES", "STATED", "Access", "Effects", "derive"]


Control = Literal["", "branch", "indexed_branch", "call", "return", "exit", "trap"]
Kind = Literal["elements", "bytes", "matrix", "mbarrier", "tensormap", "tensor", "texel", "handle"]
Order = Literal["", "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"]
Scope = Literal["", "warp", "cta", "cluster", "gpu", "sys"]
Fence = Literal["", "threads", "proxies", "mbarrier_init", "wgmma", "tcgen05"]
Converges = Literal["", "warp", "mask", "warpgroup"]
Threads = Literal["", "warp", "block", "cluster"]
Barrier = Literal["", "warp", "block", "cluster", "mbarrier"]
Asynchronous = Literal[
    "", "async_group", "bulk_group", "wgmma_group", "mbarrier", "tcgen05_wait", "tcgen05_commit", "fabric",
    "unobserved",
]
Waits = Literal[
    "", "warp", "block", "cluster", "mbarrier", "grid", "async_group", "bulk_group", "wgmma_group", "tcgen05_wait",
    "fabric",
]


class Access(NamedTuple):
    """The memory behind one address operand, and what an instruction does to it, for each lane that executes it.

    ``operand`` is the place among the operands of the form. ``kind`` is ``elements`` (of the form's type, at an address
    of each lane), ``bytes`` (as many as an operand says), ``matrix`` (what the lanes of a warp address together),
    ``mbarrier``, ``tensormap``, ``tensor`` (what a tensor map describes), ``texel``, or ``handle`` (of a texture,
    sampler or surface, whose properties are asked for). ``space`` is a state space, ``generic``, ``tmem``, ``fabric``,
    ``texture`` or ``surface``. ``nbytes`` is 0 where an operand or a shape decides. Neither ``reads`` nor ``writes``:
    only the address is used, as by a prefetch. What a descriptor in a register names is no access.
    """

    operand: int
    kind: Kind
    space: str
    reads: bool
    writes: bool
    nbytes: int


class Effects(NamedTuple):
    """What an instruction does. "" is nothing of that sort.

    ``control``: ``branch``, ``indexed_branch``, ``call``, ``return``, ``exit`` (of the thread) or ``trap``.

    ``accesses``: the memory behind each address operand; ``access`` the one of ``elements`` among them, which is what
    ld, st, atom and red have. ``atomic``: the operation of a read-modify-write: ``add``, ``cas``, ...

    ``order``: ``weak``, ``volatile``, ``relaxed``, ``acquire``, ``release``, ``acq_rel`` or ``sc``, defaults filled in;
    ``scope``: ``warp``, ``cta``, ``cluster``, ``gpu`` or ``sys``, "" of weak accesses. ``mmio``: exactly one access.
    ``fence``: ``threads``, ``proxies``, ``mbarrier_init``, ``wgmma`` or ``tcgen05``, what it orders.

    ``converges``: the lanes that must execute it together: ``warp``, ``mask`` (of the operand ``membermask``) or
    ``warpgroup``. ``arrives`` and ``waits``: at a barrier of the ``warp``, the ``block`` or the ``cluster``, or at an
    ``mbarrier``; waits also for what is asynchronous (as in ``completes``) and for a ``grid``.

    ``completes``: what signals that its asynchronous part is complete: ``async_group``, ``bulk_group``,
    ``wgmma_group``, ``mbarrier``, ``tcgen05_wait``, ``tcgen05_commit``, ``fabric``, or ``unobserved`` where nothing
    does. ``commits``: makes a group of those before it, or has the ``mbarrier`` track them.

    ``uniform``: its results are the same in all lanes that execute it together. ``polls``: a loop of it may wait for
    another thread. ``hint``: right if left out. ``selects``: its result is one of its first two sources. ``absorbs``:
    bits of one source may decide those of the result, whatever the other is. ``scale``: the place of the predicate
    without which it only writes the operands that it else reads and writes, -1 for none. ``reads_carry`` and
    ``writes_carry``: the carry flag, ``CC.CF``.
    """

    control: Control = ""
    accesses: tuple[Access, ...] = ()
    access: Access | None = None
    atomic: str = ""
    order: Order = ""
    scope: Scope = ""
    mmio: bool = False
    fence: Fence = ""
    converges: Converges = ""
    arrives: Barrier = ""
    waits: Waits = ""
    completes: Asynchronous = ""
    commits: Asynchronous = ""
    uniform: bool = False
    polls: bool = False
    hint: bool = False
    selects: bool = False
    absorbs: bool = False
    scale: int = -1
    reads_carry: bool = False
    writes_carry: bool = False

    @property
    def reads(self) -> bool:
        """Reads memory."""
        return any(access.reads for access in self.accesses)

    @property
    def writes(self) -> bool:
        """Writes memory."""
        return any(access.writes for access in self.accesses)

    @property
    def carries(self) -> bool:
        """Reads or writes the carry flag."""
        return self.reads_carry or self.writes_carry

    @property
    def strong(self) -> bool:
        """Accesses memory other than weakly: ordered, atomic or volatile."""
        return bool(self.accesses) and self.order not in _WEAK

    @property
    def acquires(self) -> bool:
        return self.order in _ACQUIRE

    @property
    def releases(self) -> bool:
        return self.order in _RELEASE

    @property
    def branches(self) -> bool:
        """Goes on at a label."""
        return self.control in _BRANCHES

    @property
    def ends(self) -> bool:
        """Never goes on with the next instruction, and with no other of the function either."""
        return self.control in _ENDS

    @property
    def barrier(self) -> Threads:
        """The threads of the barrier that it arrives or waits at: ``warp``, ``block``, ``cluster``; "" of mbarriers."""
        at = self.arrives or self.waits
        return at if at in _THREADS else ""

    @property
    def collective(self) -> bool:
        """Executed by several lanes or warps together: such ones wait there for each other."""
        return bool(self.converges or self.barrier)


COMMUTATIVE = ("add", "and", "or", "xor", "min", "max")
"""Atomic operations whose order cannot be seen in the end, of integers."""
_WEAK = ("", "weak")
_ACQUIRE = ("acquire", "acq_rel", "sc")
_RELEASE = ("release", "acq_rel", "sc")
ORDERS = ("sc", "acq_rel", "acquire", "release", "relaxed", "volatile", "weak")
SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}
_BRANCHES = ("branch", "indexed_branch")
_ENDS = ("return", "exit", "trap")
_COMMUTATIVE = ("add", "and", "or", "xor", "min", "max")
_THREADS: tuple[Threads, ...] = ("warp", "block", "cluster")
_BARRIERS: dict[str, Scope] = {"warp": "warp", "block": "cta", "cluster": "cluster", "mbarrier": "cta"}
"""The barriers, and how far each orders memory where the modifiers say no scope."""
_OPERATIONS = frozenset(("add", "and", "cas", "dec", "exch", "inc", "max", "min", "or", "xor"))

STATED = (
    "absorbs", "arrives", "carry", "commits", "completes", "control", "converges", "fence", "hint", "order", "selects",
    "uniform", "waits",
)
"""The words that open a line of a row about effects."""

NONE = Effects()
_PRED = TYPES["pred"]

_UNITS = {
    "tex": "texture", "tld4": "texture", "txq": "texture", "suld": "surface", "sust": "surface", "sured": "surface",
    "suq": "surface",
}
"""The opcodes whose address is that of a texture or surface, not of memory."""


def derive(
    mnemonic: str, operands: tuple[OperandSpec, ...], kind: ScalarType | None, space: str, stated: Mapping[str, str]
) -> Effects:
    """The effects of a form, from its spelling, its operands, its type and space, and what its row states."""
    opcode, *tokens = mnemonic.split(".")
    addresses = [(n, spec) for n, spec in enumerate(operands) if spec.kind == "address"]
    converges = stated.get("converges") or _converging(tokens, operands)
    if not (addresses or stated or converges):
        return NONE if "cc" not in tokens else NONE._replace(writes_carry=True)
    form = _Spelled(opcode, tokens, operands, kind, space, converges, "hint" in stated)
    accesses = tuple(_access(form, n, spec) for n, spec in addresses)
    changed = any(a.reads and a.writes and a.kind not in ("matrix", "mbarrier") for a in accesses)
    atomic = next((token for token in tokens if token in _OPERATIONS), "") if changed else ""
    arrives, waits = stated.get("arrives", ""), stated.get("waits", "")
    completes = stated.get("completes") or _completion(tokens)
    order, scope = _ordering(form, accesses, atomic, stated.get("order", ""), arrives, waits)
    access = next((access for access in accesses if access.kind == "elements"), None)
    strong = order not in _WEAK and access is not None and access.reads and not completes
    return Effects(
        cast(Control, stated.get("control", "")), accesses, access, atomic, order, scope, "mmio" in tokens,
        cast(Fence, stated.get("fence", "")), cast(Converges, converges), cast(Barrier, arrives), cast(Waits, waits),
        cast(Asynchronous, completes), cast(Asynchronous, stated.get("commits", "")), "uniform" in stated,
        (strong and atomic in ("", "cas", "exch")) or waits == "mbarrier", form.hint,
        "selects" in stated, "absorbs" in stated,
        next((n for n, spec in enumerate(operands) if spec.name == "scale" and spec.type is _PRED), -1),
        "carry" in stated, "cc" in tokens,
    )


class _Spelled:
    """What a form is derived from."""

    __slots__ = ("converges", "hint", "opcode", "operands", "space", "tokens", "type")

    def __init__(
        self, opcode: str, tokens: list[str], operands: tuple[OperandSpec, ...], kind: ScalarType | None, space: str,
        converges: str, hint: bool,
    ) -> None:
        self.opcode, self.tokens, self.operands, self.type = opcode, tokens, operands, kind
        self.space, self.converges, self.hint = space, converges, hint


def _converging(tokens: list[str], operands: tuple[OperandSpec, ...]) -> str:
    if "aligned" in tokens:
        return "warp"
    return "mask" if any(spec.name == "membermask" for spec in operands) else ""


def _completion(tokens: list[str]) -> str:
    if "bulk_group" in tokens:
        return "bulk_group"
    return "mbarrier" if any(token.startswith("mbarrier::complete_tx") for token in tokens) else ""


def _access(form: _Spelled, n: int, spec: OperandSpec) -> Access:
    kind, nbytes = _accessed(form, spec)
    space = _UNITS.get(form.opcode) or ("global" if kind == "tensor" else spec.space or form.space)
    reads, writes = "r" in spec.role and not form.hint and kind != "handle", "w" in spec.role
    if kind == "tensor" and not form.hint:
        loads = any("w" in s.role for s in form.operands if s.kind == "address" and s.name != "mbar")
        reads, writes = loads or form.tokens[0] == "reduce", not loads
    return Access(n, kind, space, reads, writes, nbytes)


def _accessed(form: _Spelled, spec: OperandSpec) -> tuple[Kind, int]:
    """What lies behind an address, and how many bytes of it a lane accesses."""
    opcode, tokens = form.opcode, form.tokens
    if opcode in _UNITS:
        return ("handle" if opcode.endswith("q") else "texel"), 0
    if spec.name == "map":
        return "tensor", 0
    if spec.name == "mbar" or "mbarrier" in (opcode, *tokens):
        return "mbarrier", 8
    if opcode == "tensormap" or any(token.startswith("tensormap") for token in tokens):
        return "tensormap", 128
    counts = [s.count for s in form.operands if s.kind == "value"]
    if spec.space == "tmem" or (form.converges == "warp" and any(counts)):
        return "matrix", 0
    size = next((s for s in form.operands if s.name == "size"), None)
    if size is not None or form.hint or form.type is None:
        return "bytes", _only(size) if size is not None else 0
    return "elements", form.type.bytes * max(counts, default=0) or form.type.bytes


def _only(spec: OperandSpec) -> int:
    """The one number that an operand may be, 0 where there are several."""
    if spec.choices:
        return spec.choices[0] if len(spec.choices) == 1 else 0
    return int(spec.bounds[0]) if spec.bounds and spec.bounds[0] == spec.bounds[1] else 0


def _ordering(
    form: _Spelled, accesses: tuple[Access, ...], atomic: str, stated: str, arrives: str, waits: str
) -> tuple[Order, Scope]:
    """The memory order and its scope, with the defaults that the manual gives."""
    order = next((word for word in ORDERS if word in form.tokens), "")
    scope = next((SCOPES[token] for token in form.tokens if token in SCOPES), "")
    nearest = _BARRIERS.get(arrives or waits, "")
    if not order and stated:
        order, _, own = stated.partition(".")
        scope = scope or own
    if not order and nearest:
        order = "acq_rel" if arrives and waits else "release" if arrives else "acquire"
    elif not order and atomic and not any(access.kind == "texel" for access in accesses):
        order = "relaxed"
    elif not order and any(access.reads or access.writes for access in accesses):
        order = "weak"
    if order in _WEAK:
        return cast(Order, order), ""
    return cast(Order, order), cast(Scope, scope or nearest or ("sys" if order == "volatile" else "gpu"))
