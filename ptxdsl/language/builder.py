"""What a kernel function appends its instructions to while it runs.

Tracing has exactly one piece of state, the `Trace` of the running thread. It holds the statements in order, the
registers and variables declared, and the stack of open regions (kernel, ``when``, ``loop``). A region is what gives a
Value its lifetime: closing one cuts it off from the trace, so that "may this value still be used?" is one comparison.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar

from .. import ir
from ..errors import Loc, PtxError, StructureError, TargetError, TraceError
from ..executed_lines import recorder
from ..isa import Form, Need, special_registers, targets
from ..types import ScalarType
from .introspection.call_sites import getframe, internal, location_of, place_of, places, user_frame
from .introspection.discarded import discarded
from .registers import RegisterSupply, stem_of

__all__ = [
    "InRegister", "PendingRegion", "Region", "Trace", "activated", "current", "fatal", "swapped", "thread", "traces",
]


class Region:
    """A part of the trace within which Values live: the kernel, the body of a ``when`` or of a ``loop``.

    ``owner`` is the trace while the region is open and None afterwards; ``trace`` stays. ``loc`` is the line that
    opened it, ``start`` the index in ``trace.body`` of its first statement, ``statement`` the object that the `with`
    names. ``before`` are the variables of the user's frames when it opened (rule R2), ``counted`` the references to
    registers that these are (rule R3), ``last`` the block that closed last inside it and the index of what follows that
    (rule R6), ``pending`` its `PendingRegion`, if any was needed.
    """

    __slots__ = (
        "before", "counted", "kind", "last", "loc", "owner", "parent", "pending", "start", "statement", "trace",
    )

    def __init__(
        self, kind: str, loc: Loc, parent: Region | None, trace: Trace, owner: Trace | None, start: int = 0
    ) -> None:
        self.kind, self.loc, self.parent, self.trace, self.start = kind, loc, parent, trace, start
        self.owner = owner
        self.statement: Any = None
        self.before: list[Any] = []
        self.counted: dict[int, int] | None = None
        self.last: Any = None
        self.pending: Any = None

    @property
    def closed(self) -> bool:
        return self.owner is None


class PendingRegion(Region):
    """The region of a Value that is not there yet: a `Reg` to be written first, a parameter to be loaded.

    It is never open, so that the use of other Values costs no further comparison; ``target`` is the Value's region.
    """

    __slots__ = ("target",)

    def __init__(self, target: Region) -> None:
        super().__init__(target.kind, target.loc, target, target.trace, None)
        self.target = target

    @classmethod
    def of(cls, region: Region) -> PendingRegion:
        """The one of a region."""
        found: PendingRegion | None = region.pending
        if found is None:
            found = region.pending = cls(region)
        return found


class InRegister(Protocol):
    """What errors and rules know of a Value: the register that it is in, its type, and where it lives."""

    register: ir.Register
    type: ScalarType
    region: Region


class _Active(threading.local):
    trace: Trace | None = None


thread = _Active()
"""What this thread is tracing."""
traces: list[Trace] = []
"""What all threads are tracing: empty where a launch, of which many go by, need not look at its thread's."""


@contextmanager
def activated(trace: Trace) -> Iterator[None]:
    """Make ``trace`` that of this thread; its regions are closed and the thread is free again afterwards."""
    outer = thread.trace
    if outer is not None:
        raise TraceError(
            f"kernel `{trace.name}` was launched or traced inside kernel `{outer.name}`", loc=outer.location(),
            hint="call a plain function: it is traced in place; or launch the kernels one after the other",
        )
    with swapped(trace):
        yield


@contextmanager
def swapped(trace: Trace) -> Iterator[None]:
    """Trace a function in the middle of a kernel: ``trace`` is this thread's until it is complete."""
    outer = thread.trace
    thread.trace = trace
    traces.append(trace)
    try:
        yield
    finally:
        thread.trace = outer
        traces.remove(trace)
        if (recording := recorder()) is not None:
            recording.traced(trace)
        trace.end()


E = TypeVar("E", bound=PtxError)


def fatal(error: E) -> E:
    """An error that ends the trace even if the kernel catches it, since the trace is wrong from here on."""
    trace = thread.trace
    if trace is not None and trace.fatal_error is None:
        trace.fatal_error = error
    return error


def current() -> Trace:
    """The trace of this thread; a TraceError outside a kernel."""
    trace = thread.trace
    if trace is None:
        raise TraceError(
            "no kernel is being traced here", loc=location_of(user_frame(2)),
            hint="move this into a function decorated with `@ptx_kernel`, and launch that",
        )
    return trace


# ---------------------------------------------------------------------------------------------------------------------


class Trace:
    """A kernel in the making.

    ``supply`` is `fresh` without its call, ``trace.supply[f32]()``; what it gave is in ``registers`` at the end.
    ``before_write`` is called before each in-place change of a `Reg` (rule R3), with it and with how many frames from
    there on are ptxdsl's. ``declared`` are the bytes of ``variables`` by state space, ``not_entered`` the blocks made
    and not yet entered, ``labels`` the user's labels by name, ``branches`` where those not yet placed were first
    branched to, ``tables`` and ``prototypes`` what ``brx.idx`` and calls name; ``functions`` are the heads of the
    `ptx_func` functions called, by function and constants; ``unaliased``, ``searched``, ``searched_lines``,
    ``containers``, ``known_globals`` and ``leaves`` (the tuples that never reach a register, by id) are what rule R3
    remembers, ``mutable`` the names of the registers of each `Reg`, ``operands`` those of the instruction whose result
    is to be written, ``vector`` the elements, by id, of a vector that is being written, with the objects that reach
    none of them; ``indexed`` and ``kept`` are the function's (`ir.Function`), ``computes_address`` the address
    arithmetic, by id, that is not the user's. A trace is preverified, since each operand was checked when it was
    appended, unless ``needs_verification``: with branches of the user's own, calls, names in strings, or a `Reg` that
    is perhaps read before it is written, only `verify` can tell. ``block_needs`` and ``box_needs`` are what helpers
    need of the launch (:mod:`.block_needs`), ``called`` says that it is that of a `ptx_func`, ``suffix`` is what the
    names of a helper's parts end in.
    """

    def __init__(self, name: str, loc: Loc, arch: str, code: CodeType) -> None:
        self.name, self.loc, self.arch, self.code = name, loc, arch, code
        self.prologue: list[ir.Statement] = []
        self.body: list[ir.Statement] = []
        self.append = self.body.append
        self.registers: list[ir.Register] = []
        self.variables: list[ir.Variable] = []
        self.declared: dict[str, int] = {}
        self.module_variables: list[ir.Variable] = []
        self.declarations: dict[str, ir.Function] = {}
        self.functions: dict[Any, ir.Function] = {}
        self.texts: dict[str, str] = {}
        self.needs: dict[Need, None] = {}
        self.before_write: Callable[[Any, int], None] | None = None
        self.not_entered: dict[int, Any] = {}
        self.labels: dict[str, Any] = {}
        self.branches: dict[str, Loc] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, ir.Function] = {}
        self.parameters: set[str] = set()
        self.mutable: set[str] = set()
        self.fatal_error: PtxError | None = None
        self.needs_verification = self.over = False
        self.operands: tuple[Any, ...] = ()
        self.vector: tuple[frozenset[int], dict[int, Any]] | None = None
        self.unaliased: dict[tuple[Any, ...], int] = {}
        self.searched: dict[tuple[Any, ...], dict[Any, Any]] = {}
        self.searched_lines: set[tuple[Any, ...]] = set()
        self.containers: dict[int, Any] = {}
        self.known_globals: dict[int, Any] = {}
        self.leaves: dict[int, Any] = {}
        self.block_needs: list[Any] = []
        self.box_needs: list[Any] = []
        self.called = False
        self.suffix = ""
        self.addresses: dict[Any, Any] = {}
        self.computes_address: dict[int, ir.Instruction] = {}
        self.indexed: list[tuple[ir.Address, ir.Indexed, tuple[Any, ...]]] = []
        self.kept: list[tuple[ir.Instruction, ir.Register, ir.Register]] = []
        self.constants: dict[ir.Immediate | ir.Symbol, Any] = {}
        self.kernel = Region("kernel", loc, None, self, self)
        self.region = self.kernel
        self.forms: set[Form] = set()
        self._counters: dict[str, int] = {}
        self._names: set[str] = set()
        self.supply = RegisterSupply(self.registers)

    # -- regions

    @property
    def regions(self) -> list[Region]:
        """The open regions, the kernel first."""
        found: list[Region] = []
        region: Region | None = self.region
        while region is not None:
            found.append(region)
            region = region.parent
        return found[::-1]

    def enter(self, kind: str, loc: Loc | None = None) -> Region:
        """Open a region inside the current one."""
        self.region = Region(kind, loc or self.location(), self.region, self, self, len(self.body))
        return self.region

    def leave(self, region: Region) -> None:
        """Close a region, and whatever is still open inside it."""
        inner: Region | None = self.region
        while inner is not None:
            inner.owner = inner.last = inner.pending = None
            if inner is region:
                break
            inner = inner.parent
        if region.parent is not None:
            self.region = region.parent

    def end(self) -> None:
        """Close all regions, and let go of what refers back to the trace, so that its memory is free at once."""
        self.leave(self.kernel)
        self.registers += self.supply.given()
        del self.kernel, self.region
        self.over = True
        for cache in (self.labels, self.not_entered, self.addresses, self.constants, self.leaves, self.searched):
            cache.clear()
        self.containers.clear()
        self.computes_address.clear()

    # -- statements

    @contextmanager
    def vector_of(self, elements: Sequence[Any]) -> Iterator[None]:
        """The elements of a vector are written: rule R3 searches for who holds them once."""
        self.vector = frozenset(map(id, elements)), {}
        try:
            yield
        finally:
            self.vector = None

    def emit(
        self, form: Form, operands: tuple[ir.Operand, ...], guard: ir.Register | ir.Not | None = None,
        loc: Loc | None = None, depth: int = 2,
    ) -> ir.Instruction:
        """Append an instruction with the user's line; a TargetError where the kernel's target does not have it.

        The first ``depth`` frames, this one among them, are ptxdsl's: each frame object costs. Operators and
        `Instruction`, which append most instructions, have copies of these lines.
        """
        if loc is None:
            frame = getframe(depth)
            loc = places.get((id(frame.f_code), frame.f_lasti)) or self.location(depth + 1)
        if form not in self.forms:
            self.admit(form, loc)
        instruction = ir.Instruction(form, operands, guard, loc)
        self.append(instruction)
        return instruction

    def call(self, name: str, arguments: tuple[ir.Operand, ...], results: tuple[ir.Operand, ...]) -> None:
        """Append a call of a declared function."""
        self.needs_verification = True
        self.body.append(ir.Call(ir.Symbol(name), results, arguments, loc=self.location()))

    def declare(self, function: ir.Function) -> None:
        """Have the module hold a function, or the declaration of one, before this one."""
        self.declarations.setdefault(f"{function.name}{'' if function.body is not None else ';'}", function)

    def adopt(self, caller: Trace) -> None:
        """Become the trace of a function in ``caller``'s module: what belongs to the module is common to both."""
        self.module_variables, self.declarations = caller.module_variables, caller.declarations
        self.functions, self.texts, self.needs = caller.functions, caller.texts, caller.needs
        self._names, self._counters = caller._names, caller._counters

    def prepend(self, form: Form, operands: tuple[ir.Operand, ...], loc: Loc | None = None) -> None:
        """Add an instruction to the top of the kernel, where what it computes holds everywhere."""
        loc = loc or self.location()
        self.prologue.append(ir.Instruction(form, operands, None, loc))
        if form not in self.forms:
            self.admit(form, loc)

    def admit(self, form: Form, loc: Loc) -> None:
        """Check a form against the target once, and remember what it needs."""
        if form.needs:
            self.require(form.needs, f"`{form.mnemonic}`", loc)
        self.forms.add(form)

    def require(self, needs: tuple[Need, ...], what: str, loc: Loc | None = None) -> None:
        """Note what something needs; a TargetError if the kernel's target lacks it."""
        if self.arch != "auto" and needs:
            version = max(targets.introduced(self.arch), *(need.version for need in needs))
            if not targets.satisfies(needs, version, self.arch):
                wanted = " and ".join(" or ".join(need.targets) for need in needs if need.targets)
                raise TargetError(
                    f"{what} needs {wanted}, and this kernel is compiled for {self.arch}",
                    loc=loc or self.location(), hint='leave `arch` at "auto", or give a target that has it',
                )
        self.needs.update(dict.fromkeys(needs))

    def reserve(self, name: str) -> None:
        """Keep variables from taking the name of a parameter."""
        self._names.add(name)
        self.parameters.add(name)

    def fresh_label(self, stem: str) -> str:
        """An unused label: ``$loop_27``, or ``$loop_27_1`` where that is taken."""
        name = f"${stem}"
        while name in self._names:
            number = self._counters[stem] = self._counters.get(stem, 0) + 1
            name = f"${stem}_{number}"
        self._names.add(name)
        return name

    def count(self, stem: str) -> int:
        """The number of earlier calls for a stem: 0, 1, 2, ..."""
        number = self._counters.get("#" + stem, 0)
        self._counters["#" + stem] = number + 1
        return number

    def place_label(self, name: str) -> None:
        """Put a label here."""
        self._names.add(name)
        self.body.append(ir.Label(name))

    def forget_addresses(self) -> None:
        """Compute addresses anew from here on: control may come from elsewhere, past where they were computed."""
        self.addresses.clear()

    @property
    def uses_carry(self) -> bool:
        """Whether the user's instructions so far read or write the carry, CC."""
        return any(form.effects.carries for form in self.forms)

    # -- registers

    def fresh(self, type: ScalarType, name: str | None = None) -> ir.Register:
        """A new register that holds a value of ``type``; ``name`` is the Python variable's, where there is one."""
        if name is None:
            return self.supply[type]()
        register = ir.Register("%" + self.unique(name, "%"), type.register)
        self.registers.append(register)
        return register

    def unique(self, name: str, sigil: str = "") -> str:
        """``name`` made of PTX's letters and, if it is taken, numbered."""
        wanted = stem_of(name, sigil)
        found = sigil + wanted
        while found in self._names or found in special_registers():
            found = f"{sigil}{wanted}_{self.count(sigil + wanted) + 1}"
        self._names.add(found)
        return found[len(sigil):]

    # -- lines

    def location(self, depth: int = 1) -> Loc:
        """The innermost line of the user's on the stack; the first ``depth`` frames are ptxdsl's."""
        frame: FrameType | None = getframe(depth)
        while frame is not None:
            code = frame.f_code
            if not internal[code.co_filename] or code is self.code:
                return places.get((id(code), frame.f_lasti)) or self._new_place(frame)
            frame = frame.f_back
        return self.loc

    def _new_place(self, frame: FrameType) -> Loc:
        """A line that was not seen before; a StructureError for a comparison whose result is thrown away."""
        unused = discarded(frame)
        if unused is not None:
            text, hint = unused
            raise StructureError(
                f"{text} compares, and the result is not used: the statement does nothing", loc=location_of(frame),
                hint=hint,
            )
        return place_of(frame)
