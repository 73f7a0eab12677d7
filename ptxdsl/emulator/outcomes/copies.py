"""Copies that complete later, and ``st.async``, each as a thread of its own: the manual's asynchronous operations.

A copy is ordered after what its thread has done before, and in no program order with what that does next. Bulk copies
read and write by the async proxy; what each of them reads, and then what it writes, is followed by an implicit fence
between that proxy and the generic one. A copy that an mbarrier completes then counts its bytes there, with release
semantics at the scope of the cluster; that is ordered behind the copy itself, and not behind what its thread did.

What it cannot see: tensor copies, reductions, multicasts, and ``cp.async.mbarrier.arrive``. A copy out of bounds is an
error by itself, without the words that a launch has for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import EmulationError
from ...ir import Instruction
from ...isa import Form
from ..machine.layout import Mbarrier
from ..machine.unsupported import render
from .thread_steps import Copy, Element, Step

__all__ = ["CopyStep", "begins_of", "copy_of", "group_of", "is_copy", "waited"]

_OPERANDS = ({"d", "a", "size"}, {"d", "a", "size", "mbar"})
_GROUPS = ("async_group", "bulk_group")
"""Groups of copies of a thread, by what commits them and waits for them."""


def is_copy(form: Form) -> bool:
    """Whether an instruction begins a copy that is followed here."""
    effects = form.effects
    kinds = {access.kind for access in effects.accesses}
    if form.opcode == "st":
        return effects.completes == "mbarrier"
    if any(token.startswith("mbarrier::report::validity") for token in form.tokens):
        return False  # the emulator has none
    plain = not any(access.reads and access.writes and access.kind == "bytes" for access in effects.accesses)
    named = {operand.name for operand in form.operands if operand.name != "policy"}
    return form.opcode == "cp" and "bytes" in kinds <= {"bytes", "mbarrier"} and plain and named in _OPERANDS


def group_of(form: Form) -> str:
    """The kind of group that an instruction commits or waits for, "" for others."""
    effects = form.effects
    return next((kind for kind in _GROUPS if kind in (effects.commits, effects.waits)), "")


def begins_of(step: Step) -> Copy:
    """The copy that a step begins."""
    assert step.begins is not None
    return step.begins


def waited(step: Step) -> list[Step]:
    """The steps that have begun the copies that a wait for groups has to find complete."""
    kind, groups, last = group_of(step.statement.form), [], []
    before = []
    at = step.parent
    while at is not None:
        before.append(at)
        at = at.parent
    for each in reversed(before):
        if each.kind == "copy" and each.statement.form.effects.completes == kind:
            last.append(each)
        elif each.kind == "commit" and group_of(each.statement.form) == kind:
            groups.append(last)
            last = []
    if "wait_all" in step.statement.form.tokens:
        groups.append(last)
    return [each for group in groups[: max(0, len(groups) - step.bar[0])] for each in group]


class CopyStep(Step):
    """A place in a copy: it is about to read, to write ``data``, or to count at its mbarrier."""

    __slots__ = ("copy", "data")

    def __init__(
        self, thread: int, copy: Copy, parent: CopyStep | None = None, given: tuple[bytes, ...] = (),
        wrote: tuple[bytes, ...] = (),
    ) -> None:
        super().__init__(thread, parent, given, wrote)
        self.copy, self.statement, self.data = copy, copy.statement, b""
        if parent is None and copy.source is not None:
            self.kind, self.reads, self.elements = "access", True, (copy.source,)
        elif parent is None or not parent.writes:
            self.kind, self.writes, self.elements = "access", True, (copy.dest,)
            self.data = given[0] if given else copy.data
        elif copy.mbarrier is not None and not parent.counts:
            self.kind, self.reads, self.writes, self.elements = "access", True, True, (copy.mbarrier,)

    @property
    def counts(self) -> bool:
        """Whether it is about to count at its mbarrier."""
        return self.reads and self.writes

    @property
    def proxy(self) -> str:
        return "" if self.counts else self.copy.proxy

    @property
    def fences(self) -> str:
        """The memory of which an implicit fence between proxies follows."""
        return "async" if self.proxy else ""

    @property
    def effects(self) -> Any:
        order, scope = ("release", "cluster") if self.counts else ("weak", "")
        return self.copy.statement.form.effects._replace(order=order, scope=scope)

    def executed(self, given: tuple[bytes, ...]) -> Step:
        """The next step, where this one reads what is given."""
        if not self.counts:
            return CopyStep(self.thread, self.copy, self, given, () if self.reads else (self.data,))
        word = _counted(int.from_bytes(given[0], "little"), self.copy.dest.nbytes)
        if word is not None:
            return CopyStep(self.thread, self.copy, self, given, (word.to_bytes(8, "little"),))
        following = CopyStep(self.thread, self.copy, self, given, given)
        following.kind = "fault"
        following.error = EmulationError(
            "the mbarrier at which a copy counts its bytes has not been made, or expects more or fewer than it holds",
            loc=self.statement.loc, ptx_line=self.statement.line or None, instruction=render(self.statement),
        )
        return following


def _counted(word: int, nbytes: int) -> int | None:
    """The word of an mbarrier where so many bytes have come; None where it cannot count them."""
    width = Mbarrier.PARITY - Mbarrier.TX
    tx = (word >> Mbarrier.TX) & ((1 << width) - 1)
    tx = (tx ^ 1 << width - 1) - (1 << width - 1) - nbytes
    pending, expected = word & Mbarrier.MOST, word >> Mbarrier.EXPECTED & Mbarrier.MOST
    if word >> Mbarrier.MAGIC != Mbarrier.VALID or abs(tx) > Mbarrier.MOST:
        return None
    parity = word >> Mbarrier.PARITY & 1
    if not pending and not tx:
        pending, parity = expected, parity ^ 1
    tx &= (1 << width) - 1
    parts = (pending, 0), (expected, Mbarrier.EXPECTED), (tx, Mbarrier.TX), (parity, Mbarrier.PARITY)
    return sum(part << shift for part, shift in parts) | Mbarrier.VALID << Mbarrier.MAGIC


def copy_of(statement: Instruction, places: Sequence[Element], data: bytes) -> Copy:
    """The copy that a statement begins: the places are of what it writes, reads, and the mbarrier; or of ``data``."""
    proxy = "async" if "bulk" in statement.form.tokens else ""
    dest, *others = places
    source = None if data else others.pop(0)
    return Copy(statement, source, dest, others[0] if others else None, proxy, data)
