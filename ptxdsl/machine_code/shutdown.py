"""The end of the process, or a fork of it, while LLVM works in another thread.

At its end a process destroys what the C++ libraries in it hold, and LLVM crashes where it is at work then. So all calls
of LLVM that take time are made ``with at_work:``, and there are two ends:

- Python's: the last of its ``atexit`` functions waits until no thread is in LLVM, and lets no further one in. Threads
  that Python does not wait for (``daemon=True``) stay where they ask.
- C's ``exit()``, by an extension or the program that embeds Python. It cannot wait, for its caller may hold the
  interpreter's lock. From then on no thread enters LLVM. If one is there, the handler flushes the files of C and ends
  the process at once, with the status that ``exit`` was given; what registered with C's ``atexit`` before LLVM was
  loaded is left out then. Only the C libraries with ``on_exit`` (glibc's) tell a handler the status: there is no such
  protection on others. It begins with the first compilation; linking what is on disk takes a millisecond.

``os.fork()`` ends the threads in the child: Python frees there what they held, and LLVM crashes where it is half built.
So a fork waits until no thread is in LLVM. Modules that are half imported stay so in the child, and whoever imports
them waits for ever: a thread that imports, and works beside the launches, does that in steps (``with at_work.step``),
and a fork waits for the end of one.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from .. import locks

__all__ = ["AtWork", "at_work", "exit_handler"]

LONGEST_STEP = 60.0
"""Seconds for which a fork waits for a thread beside the launches."""


class AtWork:
    """Entered by each thread that is in LLVM, by one as often as it likes."""

    def __init__(self) -> None:
        self._state = _lasting_numbers()
        """How many times it was entered, and whether C's ``exit()`` has begun."""
        self._changed = threading.Condition(threading.Lock())
        self._mine = threading.local()
        """``times``: how many times this thread has entered it."""
        self._closer: int | None = None
        self._asked, self._protecting = False, locks.rlock()
        self.protected = False
        """Whether the handler of C's ``exit()`` is in place."""
        self.step = locks.lock()
        """Held by a thread beside the launches where no fork may come in between."""
        self._stepped = False

    def __enter__(self) -> None:
        with self._changed:
            times = getattr(self._mine, "times", 0)
            while not times and self._closer not in (None, threading.get_ident()):
                self._changed.wait()
            self._state[0] += 1
            self._mine.times = times + 1
        if self._state[1]:  # read after the count is written, where the handler writes it and reads the count
            self.__exit__()
            threading.Event().wait()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._state[0] -= 1
            self._mine.times -= 1
            self._changed.notify_all()

    @property
    def closing(self) -> bool:
        """Whether a thread is the last that may enter."""
        return self._closer is not None

    def close(self) -> None:
        """Wait until no thread is at work; none but this one begins from then on."""
        with self._changed:
            self._closer = threading.get_ident()
            while self._state[0]:
                self._changed.wait()

    def before_fork(self) -> None:
        """Wait until no other thread is at work, and let none begin before :meth:`after_fork`.

        A signal's handler may fork while its thread holds what the step waits for: so not for ever.
        """
        self._stepped = self.step.acquire(timeout=LONGEST_STEP)
        self._changed.acquire()
        while self._state[0] > getattr(self._mine, "times", 0):  # a signal's handler may fork in the midst of it
            self._changed.wait()

    def after_fork(self) -> None:
        """In the parent: threads may begin again."""
        self._changed.release()
        if self._stepped:
            self.step.release()

    def forked(self) -> None:
        """In the child of a fork there is one thread."""
        self._changed = threading.Condition(threading.Lock())
        self._state[0], self._closer = getattr(self._mine, "times", 0), None

    def protect(self, compiled: Callable[[Callable[[Any], object], str], int]) -> None:
        """Register the handler of C's ``exit()``, once; ``compiled(build, name)`` is the address of a function.

        Threads that ask meanwhile wait until it is in place.
        """
        with self, self._protecting:
            if self._asked:
                return
            self._asked = True  # to compile it asks again
            on_exit = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "on_exit", None)
            if on_exit is not None:
                try:
                    on_exit(ctypes.c_void_p(compiled(exit_handler, "leave")), self._state)
                except BaseException:
                    self._asked = False
                    raise
                self.protected = True


def _lasting_numbers() -> Any:
    """Two zeros that are still there in C's ``exit()``: what Python has allocated it frees before, pages and all.

    Windows has no `on_exit` whose handler would read them.
    """
    if sys.platform == "win32":
        return (ctypes.c_int64 * 2)()
    allocate = ctypes.CDLL(None).calloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
    return (ctypes.c_int64 * 2).from_address(allocate(2, 8))


def exit_handler(module: Any) -> None:
    """Add ``leave(status, state)`` to an LLVM module: machine code, for Python may be gone when it is called."""
    from llvmlite import ir

    number, pointer, word = ir.IntType(32), ir.IntType(8).as_pointer(), ir.IntType(64)
    flush = ir.Function(module, ir.FunctionType(number, [pointer]), "fflush")
    end = ir.Function(module, ir.FunctionType(ir.VoidType(), [number]), "_exit")
    leave = ir.Function(module, ir.FunctionType(ir.VoidType(), [number, word.as_pointer()]), "leave")
    status, state = leave.args
    build = ir.IRBuilder(leave.append_basic_block())
    build.store_atomic(word(1), build.gep(state, [number(1)]), "seq_cst", 8)
    busy = build.icmp_unsigned("!=", build.load_atomic(state, "seq_cst", 8), word(0))
    with build.if_then(busy):
        build.call(flush, [pointer(None)])
        build.call(end, [status])
    build.ret_void()


at_work = AtWork()
"""The threads of this process that are in LLVM."""
atexit.register(at_work.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=at_work.before_fork, after_in_parent=at_work.after_fork, after_in_child=at_work.forked
    )
