"""Handlers of what a debugger inserts. One host thread runs such a launch, so nothing here is atomic."""

from __future__ import annotations

from typing import Any


from ..instructions.debugging import DebugPoint, NoteExecuted, NoteStored
from ..machine.debug_control import EXECUTED, LOGGED, DebugControl, Flag
from ..machine.layout import Block, Launch, Warp
from ..machine.status import Status
from .access import Access
from .data import guard_mask
from .handler import Handler, byte, i32, i64, pointer
from .registry import emits


@emits(DebugPoint)
def debug_point(h: Handler, _: DebugPoint) -> None:
    """The warp resumes after it."""
    control, place = _control(h), h.field()
    tick = h.ir.add(h.load(control, DebugControl.TICK, i64), h.i64(1))
    h.store(tick, control, DebugControl.TICK)
    with h.ir.if_then(h.nonzero(h.load(control, DebugControl.STAMPS, i32))):
        launch = h.load(h.block, Block.LAUNCH, pointer)
        for clock in (Launch.NANOSECONDS, Launch.CYCLES):
            h.store(tick, launch, clock - Launch.nbytes)
    _note_changed(h, control, tick)
    flags, focused = _flags(h, control, place), _focused(h, control, h.active)
    with h.ir.if_then(h.likely(_asked(h, flags, Flag.LOG_STOP, Flag.LOG_FOCUS, focused), False)):
        _log(h, control, tick, place)
    asked = _asked(h, flags, Flag.STOP, Flag.STOP_FOCUS, focused)
    paused = h.nonzero(h.load(control, DebugControl.PAUSE, i32))
    reached = h.ir.icmp_unsigned(">=", tick, h.load(control, DebugControl.TARGET, i64))
    stops = h.ir.or_(asked, h.ir.or_(paused, reached))

    def leave() -> None:
        h.stop(Status.CALLBACK)
        h.store(h.following(), h.warp, Warp.PC)
        h.ir.ret_void()

    h.branch_unless(h.ir.not_(stops), leave)
    h.next()


@emits(NoteExecuted)
def note_executed(h: Handler, op: NoteExecuted) -> None:
    lanes = guard_mask(h, op.guard, True)
    control, place = _control(h), h.field()
    warp = h.load(h.warp, Warp.INDEX, i32)
    offset = h.ir.add(h.ir.mul(place, h.i32(EXECUTED)), h.ir.shl(warp, h.i32(2)))
    table = h.load(h.block, Block.COUNTERS, pointer)
    h.store(h.ir.or_(h.load(table, offset, i32), lanes), table, offset)
    logs = h.nonzero(h.ir.and_(_flags(h, control, place), byte(Flag.LOG_EXECUTED)))
    with h.ir.if_then(h.likely(h.ir.and_(logs, _focused(h, control, lanes)), False)):
        _log(h, control, h.load(control, DebugControl.TICK, i64), place)
    h.next()


@emits(NoteStored)
def note_stored(h: Handler, op: NoteStored) -> None:
    access = Access(h, op.address, None, op.nbytes, False)
    lanes = guard_mask(h, op.guard, True)
    control = _control(h)
    nbytes = h.load(control, DebugControl.NBYTES, i64)
    watched = h.ir.icmp_signed("==", h.load(control, DebugControl.BLOCK, i64), h.load(h.block, Block.CTA64, i64))
    watched = h.ir.or_(watched, h.nonzero(h.load(control, DebugControl.ANYWHERE, i32)))
    with h.ir.if_then(h.likely(h.ir.and_(watched, h.nonzero(nbytes)), False)):
        field = DebugControl.GENERIC if op.space == "generic" else DebugControl.ADDRESS
        behind = h.ir.sub(access.vector(), h.splat(h.load(control, field, i64)))
        within = h.ir.icmp_unsigned("<", behind, h.splat(nbytes))
        before = h.ir.sub(h.splat(h.i64(0)), behind)
        reaches = h.ir.icmp_unsigned("<", before, h.splat(h.i64(op.nbytes)))
        meets = h.ir.and_(h.mask(h.ir.or_(within, reaches)), lanes)
        with h.ir.if_then(h.nonzero(meets)):
            h.store(h.load(control, DebugControl.TICK, i64), control, DebugControl.STORED)
    h.next()


def _control(h: Handler) -> Any:
    return h.ir.inttoptr(h.field("q"), pointer)


def _flags(h: Handler, control: Any, place: Any) -> Any:
    return h.load(h.load(control, DebugControl.FLAGS, pointer), place, byte, 1)


def _focused(h: Handler, control: Any, lanes: Any) -> Any:
    """Whether the thread in focus is among these lanes of the warp."""
    here = h.ir.icmp_signed("==", h.load(h.block, Block.CTA64, i64), h.load(control, DebugControl.BLOCK, i64))
    warp = h.ir.icmp_unsigned("==", h.load(h.warp, Warp.INDEX, i32), h.load(control, DebugControl.WARP, i32))
    mine = h.nonzero(h.ir.and_(lanes, h.load(control, DebugControl.LANES, i32)))
    return h.ir.and_(h.ir.and_(here, warp), mine)


def _asked(h: Handler, flags: Any, always: int, in_focus: int, focused: Any) -> Any:
    """Whether a statement has one flag, or the other one for the thread in focus."""
    mine = h.ir.and_(h.nonzero(h.ir.and_(flags, byte(in_focus))), focused)
    return h.ir.or_(h.nonzero(h.ir.and_(flags, byte(always))), mine)


def _log(h: Handler, control: Any, tick: Any, place: Any) -> None:
    count, log = h.load(control, DebugControl.COUNT, i64), h.load(control, DebugControl.LOG, pointer)
    entry = h.ir.shl(h.ir.and_(count, h.i64(LOGGED - 1)), h.i64(4))
    h.store(tick, log, entry)
    h.store(h.ir.zext(place, i64), log, h.ir.add(entry, h.i64(8)))
    h.store(h.ir.add(count, h.i64(1)), control, DebugControl.COUNT)


def _note_changed(h: Handler, control: Any, tick: Any) -> None:
    """Note whether the statement before this one has changed what is watched."""
    word = h.load(control, DebugControl.WORD, i64)
    with h.ir.if_then(h.likely(h.nonzero(word), False)):
        now = h.load(h.ir.inttoptr(word, pointer), 0, i64)
        now = h.ir.and_(now, h.load(control, DebugControl.MASK, i64))
        with h.ir.if_then(h.ir.icmp_unsigned("!=", now, h.load(control, DebugControl.VALUE, i64))):
            h.store(now, control, DebugControl.VALUE)
            h.store(h.ir.sub(tick, h.i64(1)), control, DebugControl.CHANGED)
