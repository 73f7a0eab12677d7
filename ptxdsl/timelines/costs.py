"""What a statement of PTX costs a warp in the model, and what it does beside: the one place of these figures.

Latencies and rates are those of forecasts (:mod:`..forecasting.machines`, :mod:`..forecasting.pipes`, which name their
sources), taken for the SASS instruction that does the work of the statement. Memory is cold: a load from global memory
takes the latency of memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from ..analysis.def_use import DefUse
from ..forecasting.machines import Machine
from ..forecasting.pipes import PARTITIONS, latency
from ..ir import Call, Immediate, Instruction, Module
from ..isa.arithmetic import flops

__all__ = ["WARPGROUP", "Cost", "cost", "costs_of", "product_clocks"]

WARPGROUP = 4
"""Warps of a warpgroup."""
_HIDDEN = 4
"""A latency up to this is hidden: the assembler puts other instructions between two arithmetic ones that depend."""
_NAMES = {
    **dict.fromkeys(("ex2", "lg2", "rcp", "rsqrt", "sin", "cos", "sqrt", "tanh"), "MUFU"), "shfl": "SHFL",
    "vote": "VOTE", "match": "MATCH", "redux": "REDUX", "popc": "POPC", "clz": "FLO", "brev": "BREV",
}
"""The SASS instruction whose figures an opcode has, where neither its accesses nor its type say it."""
_MEMORY = {"global": "LDG", "generic": "LDG", "shared": "LDS", "local": "LDL", "texture": "TEX", "surface": "SULD"}
_ATOMIC = {"global": "ATOMG", "generic": "ATOMG", "shared": "ATOMS"}
_KINDS = {"kind::tf32": "tf32", "kind::f8f6f4": "e4m3", "kind::i8": "s8", "kind::mxf8f6f4": "e4m3",
          "kind::mxf4": "e2m1", "kind::mxf4nvf4": "e2m1"}
"""The factors of a tcgen05.mma, by whose rate it is priced."""
_COPIES = ("async_group", "bulk_group", "mbarrier")
_PRODUCTS = ("wgmma_group", "tcgen05_commit")


class Cost(NamedTuple):
    """A statement: the registers it needs and writes, and the clocks until its results are there; it issues in one.

    ``source`` is where results come from that warps wait for: "global memory", "shared memory", ... ``does``: "" or
    ``matrix`` (a synchronous product of a warp), ``product`` and ``copy`` (asynchronous), ``transfer`` (a load or store
    of tensor memory), ``commit`` or ``wait``; ``group`` what completes it, ``left`` the groups that a wait leaves.
    ``amount`` are bytes of a copy by 32 lanes, or operations of a product.
    """

    needs: tuple[str, ...]
    writes: tuple[str, ...]
    latency: float
    source: str = ""
    does: str = ""
    group: str = ""
    left: int = 0
    amount: int = 0
    factors: str = "f16"
    threads: str = ""
    """Which lanes execute it together, as ``effects.converges`` says it."""


def cost(statement: Instruction | Call, machine: Machine) -> Cost:
    """What a statement costs on a GPU."""
    use = DefUse.of(statement)
    needs, writes = tuple(r.name for r in use.uses), tuple(r.name for r in use.writes)
    if isinstance(statement, Call):
        return Cost(needs, writes, 1.0)
    form = statement.form
    effects, operations = form.effects, flops(form)
    name, source = _sass(statement)
    after = latency(name, machine, 1.0)
    after = after if after > _HIDDEN else 1.0
    factors = next((_KINDS[token] for token in form.tokens if token in _KINDS), operations.type or "f16")
    made = Cost(
        needs, writes, after, source, factors=factors, threads=effects.converges
    )
    if effects.completes in _PRODUCTS:
        many = WARPGROUP if effects.converges == "warpgroup" else 1
        return made._replace(does="product", group=effects.completes, amount=operations.warp * many)
    if effects.completes == "tcgen05_wait":
        return made._replace(does="transfer", group="tcgen05_wait", latency=machine.shared_latency)
    if effects.completes in _COPIES:
        return made._replace(does="copy", group=effects.completes, amount=_copied(statement))
    if effects.commits:
        return made._replace(does="commit", group=effects.commits)
    if effects.waits in (*_COPIES[:2], "wgmma_group", "tcgen05_wait"):
        last = statement.operands[0] if statement.operands else None
        left = last.bits if isinstance(last, Immediate) else 0
        return made._replace(does="wait", group=effects.waits, left=left if "wait_all" not in form.tokens else -1)
    if operations.warp:
        return made._replace(does="matrix", amount=operations.warp, source="")
    return made


def costs_of(statements: Sequence[Instruction | Call], module: Module, machine: Machine) -> list[Cost | None]:
    """What each of a kernel's statements costs as the emulator has rewritten them.

    Several of them may stand for one of the ``module``, whose line they have; one of these has its cost, and of the
    others only what synchronises has one.
    """
    written: dict[int, list[Instruction | Call]] = defaultdict(list)
    for function in module.functions:
        for statement in function.body or ():
            if isinstance(statement, (Instruction, Call)):
                written[statement.line].append(statement)
    found: list[Cost | None] = []
    for line, group in groupby(statements, key=lambda statement: statement.line):
        standing, original = list(group), written.get(line, [])
        if len(standing) == 1 or len(original) != 1 or not line:
            found += [cost(statement, machine) for statement in standing]
            continue
        kept = next((n for n, each in enumerate(standing) if _same(each, original[0])), -1)
        one = cost(standing[kept] if kept >= 0 else original[0], machine)
        found += [
            one if n == max(0, kept) else cost(each, machine) if _synchronises(each) else None
            for n, each in enumerate(standing)
        ]
    return found


def _synchronises(statement: Instruction | Call) -> bool:
    """Whether others may wait for a statement, or it for others."""
    if isinstance(statement, Call):
        return False
    effects = statement.form.effects
    return bool(effects.completes or effects.commits or {effects.arrives, effects.waits} - {"", "warp"} or any(
        access.kind == "mbarrier" for access in effects.accesses
    ))


def _same(one: Instruction | Call, other: Instruction | Call) -> bool:
    """Whether a statement is the one that was written, but for some of its operands."""
    if isinstance(one, Call) or isinstance(other, Call):
        return isinstance(one, Call) == isinstance(other, Call)
    return one.form.opcode == other.form.opcode and one.form.effects.completes == other.form.effects.completes


def product_clocks(amount: float, factors: str, machine: Machine, whole: bool) -> float:
    """Clocks of the tensor cores of a ``whole`` multiprocessor, or of one partition, for so many operations."""
    return amount / machine.rates.tensor_rate(factors) * (1 if whole else PARTITIONS)


def _sass(statement: Instruction) -> tuple[str, str]:
    """The SASS instruction whose figures a statement has, and the memory that its results come from."""
    form, effects = statement.form, statement.form.effects
    if flops(form).warp:
        return "HMMA", ""
    for access in effects.accesses:
        space = access.space.partition("::")[0]
        if access.reads and access.kind in ("elements", "matrix", "texel") and space in _MEMORY:
            names = _ATOMIC if effects.atomic else _MEMORY
            memory = {"texture": "textures", "surface": "surfaces"}.get(space, f"{space} memory")
            return names.get(space, "LDG"), memory.replace("generic", "global")
    if effects.fence == "threads":
        return "MEMBAR", ""
    if effects.barrier in ("block", "cluster"):
        return "BAR", ""
    if form.opcode in _NAMES:
        return _NAMES[form.opcode], ""
    if form.type is not None and str(form.type) == "f64":
        return "DFMA", ""
    real = form.type is not None and form.type.kind == "f"
    return "FFMA" if real else "IADD3", ""


def _copied(statement: Instruction) -> int:
    """Bytes that a warp copies whose 32 lanes all do, where the statement says it."""
    access = next((a for a in statement.form.effects.accesses if a.kind in ("elements", "bytes") and a.writes), None)
    sizes = [operand for spec, operand in zip(statement.form.operands, statement.operands) if spec.name == "size"]
    if sizes and isinstance(sizes[0], Immediate):
        return 32 * sizes[0].bits
    return 32 * access.nbytes if access is not None else 0
