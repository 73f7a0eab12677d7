"""Which memory accesses the sanitizer checks, and how strong they are, from the effects of instruction forms."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ...ir import Function, Immediate, Instruction
from ...isa import Form
from ...isa.effects import Access
from ..machine.address_spaces import AddressSpaces
from ..machine.proxy_shadow import Kinds
from ..machine.shadow import Action, CopyClock, Role
from ..machine.sync_graph import LEVEL_SHIFT, Does
from ..runtime.block_state import BlockState

__all__ = [
    "action_of", "bulk_accesses", "checked_access", "copy_groups", "counts_bytes", "does", "fence_kinds",
    "follows_proxies", "granularity", "granule_of", "holds_orders", "is_of_core", "is_of_tile", "is_tile_product",
    "operand_value", "reach", "reads_tiles", "role_of", "strength", "synchronise", "uses_proxies",
]

_MOST_GROUPS = 64
"""Groups of copies that are told apart; real kernels have some four."""
_SPACES = ("global", "shared", "generic", "local")


@lru_cache(maxsize=256)
def checked_access(form: Form) -> Access | None:
    """The access of an instruction to memory that threads could share, or that could be uninitialised."""
    access = form.effects.access
    return access if access is not None and access.space in _SPACES and not form.effects.completes else None


@lru_cache(maxsize=256)
def bulk_accesses(form: Form) -> tuple[Access, ...]:
    """Destination and source of a bulk or tensor copy; nothing of other instructions."""
    if form.effects.completes not in ("bulk_group", "mbarrier"):
        return ()
    accesses = (each for each in form.effects.accesses if each.kind in ("bytes", "tensor"))
    return tuple(each for each in accesses if each.reads or each.writes)


def role_of(access: Access) -> int:
    """The :class:`Role` of an access."""
    if access.reads and access.writes:
        return Role.ATOMIC
    return Role.WRITE if access.writes else Role.READ


@lru_cache(maxsize=256)
def strength(form: Form) -> int:
    """How far an access is strong, as in a shadow word."""
    return reach(form) if form.effects.strong else 0


@lru_cache(maxsize=256)
def reach(form: Form) -> int:
    """The scope of an instruction: 1 for the block, 2 for the cluster, 3 for the GPU and beyond."""
    return {"cta": 1, "cluster": 2}.get(form.effects.scope, 3)


def synchronise(forms: list[Form]) -> bool:
    """Whether threads can synchronise through memory: by a fence, an acquire or a release, beside strong accesses.

    Relaxed arrivals at a barrier release what a fence before them has.
    """
    accesses = [(form.effects, access) for form in forms if (access := checked_access(form)) is not None]
    strong = [access for effects, access in accesses if effects.strong and access.space != "local"]
    relaxed = any(form.effects.arrives and form.effects.order == "relaxed" for form in forms)
    if not relaxed and not (any(access.reads for access in strong) and any(access.writes for access in strong)):
        return False
    return any(form.effects.fence == "threads" for form in forms) or any(
        effects.acquires or effects.releases for effects, _ in accesses
    )


class Granularity(NamedTuple):
    """Of a kernel: bytes of a granule, as a power of two; rows of a warp's :class:`CopyClock`; if it orders warps.

    ``proxies``: it uses the async proxy; ``followed``: what that accesses is followed.
    """

    granule: int
    copies: int
    orders: bool
    proxies: bool
    followed: bool


def granularity(spaces: AddressSpaces) -> Granularity:
    """That of a kernel, which is found once."""
    found: Granularity | None = spaces.notes.get(Granularity)
    if found is None:
        function = spaces.function
        proxies = uses_proxies(function)
        followed = proxies and follows_proxies(spaces)
        orders = followed or orders_warps(function)
        found = Granularity(granule_of(function), copy_rows(function), orders, proxies, followed)
        spaces.notes[Granularity] = found
    return found


def is_tile_product(form: Form) -> bool:
    """Whether an instruction is a product of wgmma, which may read tiles in shared memory."""
    return form.effects.completes == "wgmma_group"


def is_of_core(form: Form) -> bool:
    """Whether an instruction is one of tcgen05 that reads shared memory: a product, or a copy."""
    return form.effects.completes == "tcgen05_commit" and form.tokens[0] != "shift"


def reads_tiles(form: Form) -> bool:
    """Whether an instruction reads tiles in shared memory, by descriptors."""
    return is_tile_product(form) or is_of_core(form)


@lru_cache(maxsize=64)
def fence_kinds(form: Form) -> int:
    """The :class:`Kinds` of a fence between proxies, 0 of other instructions.

    By which proxy tcgen05.alloc writes an address is not said, and compilers copy over it without a fence: it counts as
    one, so that neither proxy misses one for what it has written.
    """
    tokens = form.tokens
    if form.semantics == "tensor_memory" and form.effects.writes:
        return Kinds.SHARED
    if form.effects.fence == "mbarrier_init":
        return Kinds.MBARRIER
    if form.effects.fence != "proxies":
        return 0
    if any(token.startswith("tensormap") for token in tokens):
        return Kinds.TENSORMAP if "acquire" in tokens else 0
    if "async" not in tokens:
        return Kinds.SHARED if any(token.startswith("async::generic") for token in tokens) else 0
    spaces = [token.split("::")[0] for token in tokens if token.split("::")[0] in ("shared", "global")]
    chosen = {"shared": Kinds.SHARED, "global": Kinds.GLOBAL}
    return sum(chosen[space] for space in spaces or chosen)


def uses_proxies(function: Function) -> bool:
    """Whether a kernel has bulk copies, tensor copies, wgmma or tcgen05."""
    forms = (s.form for s in function.body or () if isinstance(s, Instruction))
    return any(reads_tiles(form) or bulk_accesses(form) for form in forms)


def follows_proxies(spaces: AddressSpaces) -> bool:
    """Whether compiled code follows what the async proxy accesses: of blocks alone, where it can hold all orders."""
    forms = [s.form for s in spaces.function.body or () if isinstance(s, Instruction)]
    return spaces.cluster in (None, (1, 1, 1)) and holds_orders(forms)


def holds_orders(forms: list[Form]) -> bool:
    """Whether compiled code can hold the orders that barriers of a block make."""
    if any(form.effects.barrier == "cluster" for form in forms):
        return False
    found = [form for form in forms if any(a.kind == "mbarrier" for a in form.effects.accesses)]
    return all(_is_followed(form) for form in found)


def _is_followed(form: Form) -> bool:
    """Whether that is so of an operation on an mbarrier, or a copy that one completes."""
    if form.tokens[0] in ("expect_tx", "complete_tx"):
        return True
    if bulk_accesses(form):
        return not any("multicast" in token for token in form.tokens)
    return form.effects.order != "relaxed" and not form.effects.completes and form.effects.access is None


def counts_bytes(form: Form) -> bool:
    """Whether an instruction completes transactions of an mbarrier."""
    return form.tokens[0] == "complete_tx" or (bool(bulk_accesses(form)) and form.effects.completes == "mbarrier")


def action_of(form: Form) -> int:
    """The :class:`Action` of an operation on an mbarrier."""
    effects = form.effects
    if form.tokens[0] in ("init", "inval"):
        return Action.INITIALISES
    if effects.commits == "tcgen05_commit":  # it arrives behind what its thread has done before
        return Action.ARRIVES
    return (Action.ARRIVES if effects.arrives else 0) | (Action.WAITS if effects.waits else 0)


@lru_cache(maxsize=256)
def does(form: Form) -> int:
    """What a strong access, a fence or a barrier of the cluster :class:`Does` to the synchronisation graph."""
    effects, access = form.effects, form.effects.access
    if effects.barrier == "cluster":
        what = Does.CLUSTER | (Does.ACQUIRES if effects.waits else Does.WRITES)
        return what | (0 if effects.waits or effects.order == "relaxed" else Does.RELEASES)
    if effects.fence == "threads":
        what = Does.FENCES | (Does.ACQUIRES if effects.order != "release" else 0)
        return what | (Does.RELEASES if effects.order != "acquire" else 0) | reach(form) << LEVEL_SHIFT
    assert access is not None
    what = (Does.READS if access.reads else 0) | (Does.WRITES if access.writes else 0)
    what |= (Does.ACQUIRES if effects.acquires else 0) | (Does.RELEASES if effects.releases else 0)
    return what | strength(form) << LEVEL_SHIFT


def granule_of(function: Function) -> int:
    """Bytes of a granule, as a power of two: those of the smallest access to one element, 4 at most."""
    sizes = [
        statement.form.type.bits // 8 for statement in function.body or ()
        if isinstance(statement, Instruction) and statement.form.type is not None and checked_access(statement.form)
    ]
    return min(max(1, min(sizes, default=4)), 4).bit_length() - 1


def orders_warps(function: Function) -> bool:
    """Whether a kernel has operations on mbarriers, or barriers that may be of some warps, or of part of a warp."""
    return any(
        is_of_tile(statement) or _is_counted(statement)
        or any(access.kind == "mbarrier" for access in statement.form.effects.accesses)
        for statement in function.body or () if isinstance(statement, Instruction)
    )


def _is_counted(statement: Instruction) -> bool:
    """Whether it is a barrier for a number of threads that it gives."""
    return statement.form.effects.barrier == "block" and statement.operand("b") is not None


def is_of_tile(statement: Instruction) -> bool:
    """Whether it is a barrier of lanes that may be part of a warp."""
    if statement.form.effects.barrier != "warp":
        return False
    members = statement.operands[0]
    return not isinstance(members, Immediate) or members.bits != 0xFFFFFFFF


def copy_groups(function: Function) -> int:
    """Groups of asynchronous copies that a wait may leave incomplete; -1 in a kernel without such copies."""
    forms = [s for s in function.body or () if isinstance(s, Instruction)]
    if not any(statement.form.effects.completes == "async_group" for statement in forms):
        return -1
    left = [s.operands[0] for s in forms if s.form.effects.waits == "async_group" and s.operands]
    return min(_MOST_GROUPS, max((each.bits for each in left if isinstance(each, Immediate)), default=0))


def copy_rows(function: Function) -> int:
    """Rows of a warp's :class:`CopyClock`, 0 in a kernel without asynchronous copies."""
    groups = copy_groups(function)
    return CopyClock.GROUPS + groups if groups >= 0 else 0


def operand_value(state: BlockState, thread: tuple[int, int], operand: Any) -> int:
    """The number that an operand is in a thread; -1 where that is not known."""
    warp, lane = thread
    if isinstance(operand, Immediate):
        return operand.bits
    name = getattr(operand, "name", None)
    return state.register(warp, name)[lane] if name in state.code.registers.offsets else -1
