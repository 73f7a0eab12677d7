"""Runs one thread at a time on the emulator, from one memory operation to the next.

Every statement that other threads may see (an access to global or shared memory, a fence, a barrier) stops before and
behind it. What it is to read is put into memory before it runs, and what it has written is taken from there afterwards.
So each instruction is computed by the code that computes it in every launch, and nothing here knows what it does.

What a thread does depends on nothing but what it reads: the steps of a thread form a tree, of which each step is
executed once, however many executions it is part of. Between steps lies a copy of the warp's memory.

Copies that complete later are steps of their own (:mod:`.copies`).

What it cannot see: tensor copies, matrix instructions, textures and surfaces, and instructions that exchange
registers between the lanes of a warp; these are refused by name. Local, constant and parameter memory is the thread's.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ...errors import EmulationError
from ...ir import Address, Call, Immediate, Instruction, Not, Register, Symbol, Vector
from ..codegen.code import Source
from ..codegen.translation import translate
from ..instructions.instrumentation import Stop
from ..instructions.lowering import Lowering
from ..machine.layout import LANES, LOCAL_WINDOW, SHARED_START, SHARED_WINDOW, Block, Cluster, Warp
from ..machine.status import Status
from ..machine.unsupported import render
from ..runtime.block_state import TIME_SLICE, LaunchState
from ..runtime.events import handle
from ..runtime.faults import failure
from .block_states import LoneBlocks
from .copies import CopyStep, begins_of, copy_of, group_of, is_copy
from .events import SHARED_BITS, SHARED_PLACE
from .thread_steps import Copy, Element, Step

__all__ = ["Machine", "copies_in", "follows"]

SLICES = 2000
"""Time slices that a thread may run between two of its memory operations."""
_PRIVATE = ("local", "param", "const")


def _access(statement: Instruction) -> Any:
    return next(access for access in statement.form.effects.accesses if access.reads or access.writes)


def _stops(statement: Instruction | Call) -> str:
    """What a statement is: access, fence, barrier, copy, commit, wait, or "" where only its own thread sees it."""
    if not isinstance(statement, Instruction):
        return ""
    effects = statement.form.effects
    if effects.barrier:
        return "barrier"
    if effects.fence in ("threads", "proxies", "mbarrier_init"):
        return "fence"
    if is_copy(statement.form):
        return "copy"
    if group_of(statement.form):
        return "commit" if effects.commits else "wait"
    seen = [access for access in effects.accesses if access.reads or access.writes]
    others = [access for access in seen if access.space not in _PRIVATE]
    unknown = any(access.kind not in ("elements", "mbarrier") for access in others)
    if unknown or effects.completes or effects.converges or effects.commits:
        raise EmulationError(
            f"ptxdsl.outcomes() does not follow `{statement.form.mnemonic}`", loc=statement.loc,
            ptx_line=statement.line or None, instruction=render(statement),
            hint="take it out of the part that is explored; `sanitize=True` and `seed=` are for whole kernels",
        )
    return "access" if others else ""


def follows(launch: LaunchState) -> bool:
    """Whether every statement of a launch is one that threads can be run by alone."""
    try:
        for statement in launch.spaces.function.body or ():
            if isinstance(statement, (Instruction, Call)):
                _stops(statement)
    except EmulationError:
        return False
    return True


def copies_in(launch: LaunchState) -> bool:
    """Whether a launch begins copies that complete later."""
    body = launch.spaces.function.body or ()
    return any(isinstance(each, Instruction) and is_copy(each.form) for each in body)


class _Stops(NamedTuple):
    """Stops around each statement that others may see; barriers and fences are the search's, and are left out."""

    low: Lowering

    def begin(self) -> None:
        """Nothing is added where a block begins."""

    def statement(self, statement: Instruction | Call) -> None:
        what = _stops(statement)
        if what:
            self.low.emit(Stop())
        if what in ("", "access"):
            self.low.statement(statement)
        if what == "access":
            self.low.emit(Stop())


class Machine:
    """The threads of a launch, each on its own."""

    def __init__(self, launch: LaunchState) -> None:
        self.launch, config, spaces = launch, launch.config, launch.spaces
        x, y, z = config.block
        self.per_block = x * y * z
        code = translate(spaces.function, spaces, config.block, True, _Stops, keep_registers=True)
        code.described = code.description._replace(source=Source(spaces.function, spaces, config.block, None))
        self.blocks = LoneBlocks(launch, code)
        self.state = self.blocks.state(0)
        self.roots: dict[int, Step] = {}
        self.copies: dict[tuple[Any, ...], CopyStep] = {}
        self.executed = 0
        """Steps that the emulator has run."""
        self._apart = self.state.first - self.state.address
        self._local = self.state.local - self.state.address, self.state.table - self.state.address

    # Steps

    def root(self, thread: int) -> Step:
        """The first step of a thread."""
        found = self.roots.get(thread)
        if found is None:
            self._begin(thread)
            found = self.roots[thread] = self._stop(Step(thread, None, (), ()))
        return found

    def after(self, step: Step, given: tuple[bytes, ...] = ()) -> Step:
        """The next step, where this one reads what is ``given``, element by element."""
        found = step.children.get(given)
        if found is None:
            found = step.executed(given) if isinstance(step, CopyStep) else self._execute(step, given)
            step.children[given] = found
        return found

    def block_of(self, step: Step) -> int:
        """The block of the copy that a step begins: that of the mbarrier that completes it, else of its thread."""
        own, mbarrier = step.thread // self.per_block, begins_of(step).mbarrier
        if mbarrier is None:
            return own
        whole = (mbarrier.address - SHARED_PLACE) >> SHARED_BITS
        places = ((block, *self.blocks.place(block)) for block in range(self.launch.blocks))
        return next((n for n, cluster, rank in places if cluster * self.blocks.size + rank == whole), own)

    def copy(self, number: int, copy: Copy) -> CopyStep:
        """The first step of a copy."""
        key = number, id(copy.statement), *copy[1:]
        found = self.copies.get(key)
        if found is None:
            found = self.copies[key] = CopyStep(number, copy)
        return found

    def _begin(self, thread: int) -> None:
        block, flat = divmod(thread, self.per_block)
        warp, mask = flat // LANES, 1 << flat % LANES
        state = self.state = self.blocks.state(block)
        state.all = 1 << warp
        state.put(Block.ALL, "I", state.all)
        state.begin()
        state.put_warp(warp, Warp.INITIAL, "I", mask)
        state.put_warp(warp, Warp.FRESH, "II", mask, mask)
        state.assign(block)

    def _execute(self, step: Step, given: tuple[bytes, ...]) -> Step:
        self._restore(step)
        if step.kind != "access":
            if given:
                self._give_result(step, given[0])
            return self._stop(Step(step.thread, step, given, ()))
        for element, data in zip(step.elements, given):
            if element.host:
                ctypes.memmove(element.host, data, element.nbytes)
        error = self._run()
        wrote: tuple[bytes, ...] = ()
        if error is None and step.writes:
            wrote = tuple(ctypes.string_at(element.host, element.nbytes) for element in step.elements)
        following = Step(step.thread, step, given, wrote)
        if error is not None:
            following.kind, following.error = "fault", error if isinstance(error, Exception) else None
            return following
        return self._stop(following)

    def _give_result(self, step: Step, data: bytes) -> None:
        """What a bar.red gives its thread."""
        dest = step.statement.operands[0]
        if isinstance(dest, Register):
            flat = step.thread % self.per_block
            self.state.set_register(flat // LANES, dest.name, {flat % LANES: int.from_bytes(data, "little")})

    def _stop(self, step: Step) -> Step:
        """Run until the thread is about to do something that others may see; ``step`` says what."""
        while True:
            ended = self._run()
            if ended is not None:
                step.kind = "end" if ended == "end" else "fault"
                step.error = ended if isinstance(ended, Exception) else None
                return step
            statement, step.place = self._statement()
            if self._skipped(step.thread, statement):
                if _stops(statement) == "access":
                    self._run()
                continue
            if self._describe(step, statement):
                break
        self._keep(step)
        return step

    def _run(self) -> str | Exception | None:
        """Run to the next stop: None there, "end", or what went wrong."""
        state = self.state
        self.executed += 1
        for _ in range(SLICES):
            state.left = TIME_SLICE
            status = state.run()
            if status == Status.CALLBACK:
                return None
            if status == Status.DONE:
                return "end"
            if status == Status.FAULT:
                return failure(state)
            if status == Status.SYSTEM_CALL:
                try:
                    self._call()
                except EmulationError as error:
                    return error
        return EmulationError("a thread runs in a circle without touching memory that others can change")

    def _call(self) -> None:
        state = self.state
        call: Any = state.code.graph.statements[state.code.statement_at(state.get(Block.FAULT_PC, "Q"))]
        if not (isinstance(call.callee, Symbol) and call.callee.symbol == "vprintf"):
            handle(state, Status.SYSTEM_CALL, lambda _: state.code)

    def _statement(self) -> tuple[Instruction, int]:
        code = self.state.code
        place = code.statement_at(self.state.get(Block.FAULT_PC, "Q"))
        statement = code.graph.statements[place]
        assert isinstance(statement, Instruction)
        return statement, place

    # What a statement is about to do

    def number(self, thread: int, operand: Any) -> int:
        """The number that an operand is in a thread."""
        flat = thread % self.per_block
        return self.state.values(flat // LANES, operand)[flat % LANES]

    def _skipped(self, thread: int, statement: Instruction) -> bool:
        guard = statement.guard
        if guard is None:
            return False
        return not self._holds(thread, guard)

    def _describe(self, step: Step, statement: Instruction) -> bool:
        """Fill in a step; False where the statement is the thread's own business after all."""
        step.statement, step.kind = statement, _stops(statement)
        if step.kind == "barrier":
            self._describe_barrier(step)
        if step.kind == "copy":
            self._describe_copy(step)
        if step.kind == "wait":
            step.bar = self._numbers(step, "n").get("n", 0), 0
        if step.kind != "access":
            return True
        access = _access(statement)
        waits = statement.form.effects.waits == "mbarrier"
        step.reads, step.writes = access.reads or waits, access.writes and not waits
        address = statement.operands[access.operand]
        assert isinstance(address, Address)
        at = self._address(step.thread, access.space, address)
        if access.space == "generic" and at >= LOCAL_WINDOW:
            self._run()
            return False
        size = statement.form.type.bytes if access.kind == "elements" and statement.form.type else access.nbytes
        step.elements = tuple(
            self._element(step.thread, access.space, at + start, size) for start in range(0, access.nbytes, size)
        )
        if statement.form.effects.atomic == "cas":
            compare = statement.operands[2 if statement.form.operands[0].written else 1]
            if not isinstance(compare, Vector):
                step.compare = self.number(step.thread, compare).to_bytes(16, "little")[:size]
        return True

    def _address(self, thread: int, space: str, address: Address) -> int:
        base = address.base
        if isinstance(base, Symbol):
            at = self.state.code.operands.symbol(base, None)
            if space == "generic":
                at += self.launch.spaces.windows.get(base.symbol, 0)
        elif isinstance(base, Immediate):
            at = base.bits
        else:
            at = self.number(thread, base)
        bits = base.type.bits if isinstance(base, Register) else 64
        return (at + address.offset) % (1 << bits)

    def _element(self, thread: int, space: str, at: int, nbytes: int) -> Element:
        start = SHARED_WINDOW if space == "generic" else 0
        if space.startswith("shared") or SHARED_WINDOW <= at < LOCAL_WINDOW:
            rank, offset = divmod(at - start, 1 << Cluster.RANK_BITS)
            cluster, own = self.blocks.place(thread // self.per_block)
            rank = rank if self.blocks.size > 1 else own
            place = SHARED_PLACE + ((cluster * self.blocks.size + rank) << SHARED_BITS) + offset
            return Element(place, self.state.shared - SHARED_START + offset, nbytes)
        for area in self.launch.ranges:
            if area is not None and not area.shared and area.address <= at < area.address + area.nbytes:
                return Element(at + area.place - area.address, at + area.place - area.address, nbytes)
        return Element(at, 0, nbytes)

    def _describe_copy(self, step: Step) -> None:
        form, operands = step.statement.form, step.statement.operands
        size, accesses = self._numbers(step, "size").get("size", 0), form.effects.accesses
        starts = [self._address(step.thread, access.space, operands[access.operand]) for access in accesses]
        places = [
            self._element(step.thread, access.space, start, access.nbytes or size)
            for access, start in zip(accesses, starts)
        ]
        nbytes = places[0].nbytes
        wanted = 16 if "bulk" in form.tokens else nbytes
        wrong = "" if all(map(self._is_inside, places)) else "out of bounds"
        if any(number % max(wanted, 1) for number in (*starts[: 1 + (form.opcode == "cp")], nbytes)):
            wrong = f"whose size or addresses are no multiples of {wanted}"
        if wrong:
            step.kind, step.error = "fault", EmulationError(
                f"a copy of {nbytes} bytes {wrong}", loc=step.statement.loc, ptx_line=step.statement.line or None,
                instruction=render(step.statement),
            )
            return
        data = self._stored(step.thread, operands[1], nbytes) if form.opcode == "st" else b""
        step.begins = copy_of(step.statement, places, data)

    def _stored(self, thread: int, operand: Any, nbytes: int) -> bytes:
        """What a thread stores of registers."""
        numbers = [self.number(thread, each) for each in (operand.items if isinstance(operand, Vector) else (operand,))]
        size = nbytes // len(numbers)
        return b"".join((number % (1 << 8 * size)).to_bytes(size, "little") for number in numbers)

    def _is_inside(self, element: Element) -> bool:
        """Whether an element lies in memory that there is."""
        if element.address >= SHARED_PLACE:
            return element.address % (1 << SHARED_BITS) + element.nbytes <= SHARED_START + self.launch.shared_bytes
        areas = (area for area in self.launch.ranges if area is not None and not area.shared)
        return any(a.place <= element.address and element.address + element.nbytes <= a.place + a.nbytes for a in areas)

    def _numbers(self, step: Step, *names: str) -> dict[str, int]:
        """The numbers of these operands, of those that there are."""
        found = {name: step.statement.operand(name) for name in names}
        return {name: self.number(step.thread, operand) for name, operand in found.items() if operand is not None}

    def _describe_barrier(self, step: Step) -> None:
        numbers, voted = self._numbers(step, "a", "b", "membermask"), step.statement.operand("c")
        step.bar = numbers.get("a", numbers.get("membermask", 0)), numbers.get("b", 0)
        step.compare = bytes([self._holds(step.thread, voted)]) if voted is not None else None

    def _holds(self, thread: int, predicate: Any) -> bool:
        negated = isinstance(predicate, Not)
        return bool(self.number(thread, predicate.predicate if negated else predicate)) != negated

    # Copies of the memory of a thread

    def _keep(self, step: Step) -> None:
        view, warps, (low, high) = self.state._view, self.state._warps_view, self._local
        warp = step.thread % self.per_block // LANES
        begin, stride = warp * self.state.stride, self.state.stride
        own = bytes(warps[begin : begin + stride])
        local = bytes(view[low:high])
        step.snapshot = bytes(view[: self._apart]), own, local
        step.key = own[: Warp.BUDGET] + own[Warp.INITIAL :], local
        step.turns = self._turns(step)

    def _restore(self, step: Step) -> None:
        self.state = self.blocks.state(step.thread // self.per_block)
        head, own, local = step.snapshot
        view, (low, high) = self.state._view, self._local
        begin = step.thread % self.per_block // LANES * self.state.stride
        view[: self._apart] = head
        view[low:high] = local
        self.state._warps_view[begin : begin + self.state.stride] = own

    def _turns(self, step: Step) -> bool:
        """Whether the thread was in this state before, and has changed nothing since: it waits for others."""
        at = step
        while at.parent is not None:
            if at.wrote and at.wrote != at.given:
                return False
            at = at.parent
            if at.kind == "barrier":
                return False
            if at.place == step.place and at.key == step.key:
                return True
        return False
