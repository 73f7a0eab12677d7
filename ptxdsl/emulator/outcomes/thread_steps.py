"""The steps of one thread, from one of its memory operations to the next."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Copy", "Element", "Step"]


class Element(NamedTuple):
    """A part of an access: the address that events have, where it lies in host memory, and its bytes."""

    address: int
    host: int
    nbytes: int


class Copy(NamedTuple):
    """What a statement copies, and the mbarrier that counts its bytes; ``proxy`` is the one by which it does.

    Without a ``source`` it writes ``data``, what registers held.
    """

    statement: Any
    source: Element | None
    dest: Element
    mbarrier: Element | None
    proxy: str
    data: bytes = b""


class Step:
    """A place in a thread where it is about to do what others may see, or has ended.

    ``kind`` is access, fence, barrier, copy (to begin the one that ``begins`` says), commit or wait (of groups of
    copies), end, or fault, with an ``error``; an access ``reads`` what others may have
    written, or ``writes``. ``given`` is what was read to come here by the
    statement before, ``wrote`` what that wrote. ``turns``: the thread was in the same state before, and has changed no
    memory since.
    """

    __slots__ = (
        "bar", "begins", "children", "compare", "depth", "elements", "error", "given", "key", "kind", "number",
        "parent", "place", "reads", "snapshot", "statement", "thread", "turns", "writes", "wrote",
    )

    def __init__(self, thread: int, parent: Step | None, given: tuple[bytes, ...], wrote: tuple[bytes, ...]) -> None:
        self.thread, self.parent, self.given, self.wrote = thread, parent, given, wrote
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.kind, self.place = "end", -1
        self.statement: Any = None
        self.elements: tuple[Element, ...] = ()
        self.bar: tuple[int, int] = (0, 0)
        self.compare: bytes | None = None
        self.begins: Copy | None = None
        self.error: Exception | None = None
        self.children: dict[tuple[bytes, ...], Step] = {}
        self.snapshot: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self.key: tuple[bytes, bytes] = (b"", b"")
        self.turns, self.reads, self.writes = False, False, False

    @property
    def proxy(self) -> str:
        """The proxy of an access, "" for the generic one: loads through the non-coherent cache have another one."""
        return "nc" if "nc" in self.statement.form.tokens else ""

    @property
    def fences(self) -> str:
        """Between which proxies a fence stands here: "async" in all memory, "async.global", "async.shared", or ""."""
        tokens = self.statement.form.tokens if self.kind == "fence" else ()
        if "async" not in tokens and "async::generic" not in tokens:
            return ""
        space = next((space for space in ("global", "shared") if any(space in token for token in tokens)), "")
        return f"async.{space}" if space else "async"

    @property
    def effects(self) -> Any:
        return self.statement.form.effects
