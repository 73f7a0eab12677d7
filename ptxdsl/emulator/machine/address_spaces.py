"""Where a kernel's variables and parameters lie, and which entry of the buffer table guards each."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import LaunchError, caller
from ...ir import Address, Function, Indexed, Instruction, Module, Reference, SpecialRegister, Symbol, Variable
from .heap import Heap
from .layout import (
    CALL_STACK, FUNCTION_START, LOCAL_ORIGIN, LOCAL_START, LOCAL_WINDOW, NARROW_LOCAL, NARROW_SHARED, NARROW_START,
    SHARED_START, SHARED_WINDOW, SPACE_BITS, Entry,
)
from .unsupported import unsupported

if TYPE_CHECKING:
    from .texture_pool import ModuleReference

__all__ = ["AddressRange", "AddressSpaces", "ModuleMemory", "function_addresses"]


class AddressRange(NamedTuple):
    """A range of addresses behind one entry of the table.

    ``place`` is where it lies in host memory. ``shared`` ranges lie in the block's memory instead, ``window`` above
    where their addresses begin; of a ``heap`` only the pieces that are given out may be touched.
    """

    name: str
    address: int
    nbytes: int
    spaces: int
    place: int
    writable: bool = True
    shared: bool = False
    heap: bool = False
    variable: Variable | None = None
    window: int = 0


def _aligned(value: int, align: int) -> int:
    return (value + align - 1) // align * align


def _alignment(variable: Variable) -> int:
    return max(variable.align or variable.type.bytes, 16)


_FUNCTION_BYTES = 16


def function_addresses(module: Module) -> dict[str, int]:
    """The address of each function by its name: a number that nothing else has, for no code lies there."""
    aliases = module.aliases
    names = dict.fromkeys(aliases.get(function.name, function.name) for function in module.functions)
    found = {name: FUNCTION_START + _FUNCTION_BYTES * (number + 1) for number, name in enumerate(names)}
    return found | {alias: found[name] for alias, name in aliases.items() if name in found}


class ModuleMemory:
    """The global and constant variables of a module: host memory that lives as long as the module is loaded."""

    def __init__(self, module: Module) -> None:
        self.functions = function_addresses(module)
        self.symbols = dict(self.functions)
        self.ranges: list[AddressRange] = []
        self.heap = Heap()
        if any(function.name == "malloc" for function in module.functions):
            spaces = SPACE_BITS["generic"] | SPACE_BITS["global"]
            self.ranges.append(AddressRange("the heap", self.heap.start, Heap.SIZE, spaces, self.heap.start, heap=True))
        self.narrow = module.address_size == 32
        self.shared_window = NARROW_SHARED if self.narrow else SHARED_WINDOW
        self.local_window = NARROW_LOCAL if self.narrow else LOCAL_WINDOW
        self.end = NARROW_START
        """Where addresses of 32 bits begin that no variable has."""
        self._arrays: list[Any] = []
        self.references: dict[str, ModuleReference] = {}
        self._refer([v for v in module.variables if v.type.kind == "o"])
        mine = [v for v in module.variables if v.space in ("global", "const") and v.type.kind != "o"]
        self.absent = {v.name for v in mine if v.linkage == "extern"}
        """Variables of other modules, which are not there."""
        constants = [v for v in mine if v.space == "const"]
        self._constants = self._room(*constants) if constants else 0
        """Where the next constant variable begins: all lie in one piece, so that distances in it fit into 32 bits."""
        for variable in mine:
            self._place(variable)
        for variable in mine:
            self._fill(variable)

    def _refer(self, variables: list[Variable]) -> None:
        if not variables:
            return
        from .texture_pool import ModuleReference

        self.references = {variable.name: ModuleReference(variable) for variable in variables}
        self.symbols.update({name: reference.handle for name, reference in self.references.items()})

    def _room(self, *variables: Variable) -> int:
        """The address of zeros for variables, each with as much behind it as it is aligned to."""
        import numpy as np

        try:
            self._arrays.append(np.zeros(sum(v.nbytes + 2 * _alignment(v) for v in variables), np.uint8))
        except MemoryError:
            large = max(variables, key=lambda v: v.nbytes)
            raise LaunchError(
                f"the variable {large.name} has {large.nbytes} bytes, for which this machine has no room"
            ) from None
        return int(self._arrays[-1].ctypes.data)

    def _place(self, variable: Variable) -> None:
        align, constant = _alignment(variable), variable.space == "const"
        start = _aligned(self._constants if constant else self._room(variable), align)
        if constant:
            self._constants = start + variable.nbytes + align
        self.symbols[variable.name] = start
        spaces = SPACE_BITS["generic"] | SPACE_BITS["const" if constant else "global"]
        address = start
        if self.narrow:
            address = self.symbols[variable.name] = _aligned(self.end, max(align, 256))
            self.end = address + variable.nbytes
        self.ranges.append(
            AddressRange(variable.name, address, variable.nbytes, spaces, start, not constant, variable=variable)
        )

    def _fill(self, variable: Variable) -> None:
        import ctypes

        size = variable.type.bytes
        place = next(area.place for area in self.ranges if area.variable is variable)
        for number, value in enumerate(variable.values or ()):
            ctypes.memmove(place + number * size, self._bytes(value, size), size)

    def _bytes(self, value: int | Symbol | Reference, size: int) -> bytes:
        number = value if isinstance(value, int) else self.symbols[value.symbol] + value.offset
        if isinstance(value, Reference) and value.mask is not None:
            number = (number & value.mask) >> ((value.mask & -value.mask).bit_length() - 1)
        return (number & (1 << 8 * size) - 1).to_bytes(size, "little")


class AddressSpaces:
    """The memory of one kernel, an entry of a module: addresses of its symbols, entries of its table, and sizes."""

    def __init__(self, module: Module, function: Function, memory: ModuleMemory) -> None:
        self.function, self.memory = function, memory
        self.symbols = dict(memory.symbols)
        self.provenance: dict[str, str] = {}
        self.entries: dict[str, int] = {}
        self.ranges: list[AddressRange | None] = [None]
        self.locals: dict[int, AddressRange] = {}
        """The variables in local memory by their entries, which say where they lie in the memory of each thread."""
        self.windows: dict[str, int] = {}
        """Of variables in shared and local memory, generic address minus address."""
        self.offsets: dict[str, int] = {}
        self.parameters: list[tuple[str, int, int]] = []
        """Name, offset and size of each parameter."""
        self.shared: set[str] = set()
        """The names of variables in shared memory."""
        self.cluster: tuple[int, int, int] | None = None
        """Blocks in a cluster, None for a kernel without; ``explicit`` where the launch or a directive says so."""
        self.explicit = False
        self.defers = False
        """Whether ``cp.async`` and the like, which are compiled to loads and stores otherwise, are made later."""
        self.notes: dict[Any, Any] = {}
        """What tools keep of the kernel from launch to launch."""
        self.asked: list[Indexed] = []
        """What the checks of indices compare, by their numbers."""
        if memory.absent:
            self._check_absent()
        self._parameters()
        for area in memory.ranges:
            self._add(area.name, area)
        variables = [v for v in module.variables if v.space in ("shared", "local")] + function.variables
        self._shared([v for v in variables if v.space == "shared"])
        self._local([v for v in variables if v.space == "local"])
        self._reserved()

    def _check_absent(self) -> None:
        """Refuse a kernel that uses a variable of another module."""
        operands = (operand for s in self.function.instructions() for operand in s.operands)
        for symbol in (o.base if isinstance(o, Address) else o for o in operands):
            if isinstance(symbol, Symbol) and symbol.symbol in self.memory.absent:
                raise LaunchError(
                    f"the kernel uses {symbol.symbol}, which is `.extern`: another module has it, and is not linked",
                    loc=caller(), hint="give the module that defines it",
                )

    def _add(self, name: str, area: AddressRange | None = None) -> None:
        self.provenance[name] = name
        self.entries[name] = len(self.ranges)
        self.ranges.append(area)

    def _parameters(self) -> None:
        at = 0
        for parameter in self.function.parameters:
            at = _aligned(at, parameter.align or parameter.type.bytes)
            self.offsets[parameter.name] = at
            self.parameters.append((parameter.name, at, parameter.nbytes))
            at += parameter.nbytes
            self._add(parameter.name)
        self.parameter_bytes = at

    def _shared(self, variables: list[Variable]) -> None:
        at = SHARED_START
        dynamic = [v for v in variables if v.linkage == "extern" or (v.shape and v.nbytes == 0)]
        for variable in variables:
            if variable in dynamic:
                continue
            at = _aligned(at, variable.align or variable.type.bytes)
            self._place_shared(variable, at, variable.nbytes)
            at += variable.nbytes
        self.static_shared = at - SHARED_START
        align = max((v.align or v.type.bytes for v in dynamic), default=1)
        self.dynamic_start = _aligned(at, align)
        for variable in dynamic:
            self._place_shared(variable, self.dynamic_start, -1)

    def _place_shared(self, variable: Variable, address: int, nbytes: int) -> None:
        """One entry for the shared address, the next one for the generic address of the same."""
        self.symbols[variable.name] = address
        self.shared.add(variable.name)
        reach = SPACE_BITS["shared"]
        area = AddressRange(variable.name, address, nbytes, reach, address, shared=True, variable=variable)
        self._add(variable.name, area)
        window = self.windows[variable.name] = self.memory.shared_window
        generic, reach = address + window, SPACE_BITS["generic"]
        self.ranges.append(area._replace(address=generic, spaces=reach, place=generic, window=window))

    def _reserved(self) -> None:
        """Shared memory below SHARED_START, of cooperative groups of several warps: zeros when a launch begins."""
        self.reserved = any(
            operand.__class__ is SpecialRegister and operand.special.startswith("%reserved_smem")
            for statement in self.function.body or () if statement.__class__ is Instruction
            for operand in statement.operands
        )
        if self.reserved:
            for space, window in (("shared", 0), ("generic", self.memory.shared_window)):
                name, spaces = "the system's shared memory", SPACE_BITS[space]
                self.ranges.append(AddressRange(name, window, SHARED_START, spaces, window, shared=True, window=window))

    @cached_property
    def tensor_memory(self) -> bool:
        """Whether the kernel uses tensor memory, of which a block has as much as a GPU gives it."""
        return any(s.__class__ is Instruction and s.form.opcode == "tcgen05" for s in self.function.body or ())

    def _local(self, variables: list[Variable]) -> None:
        at = LOCAL_START
        for variable in variables:
            at = _aligned(at, variable.align or variable.type.bytes)
            self.symbols[variable.name] = at
            self.windows[variable.name] = self.memory.local_window
            origin, reach = LOCAL_ORIGIN + variable.name, SPACE_BITS["local"] | SPACE_BITS["generic"]
            self.locals[len(self.ranges)] = AddressRange(
                variable.name, at, variable.nbytes, reach, 0, variable=variable, window=self.memory.local_window
            )
            self.provenance[variable.name] = origin
            self.entries[origin] = len(self.ranges)
            self.ranges.append(None)
            at += variable.nbytes
        self.local_bytes = _aligned(at - LOCAL_START, 16)
        last = variables[-1] if variables else None
        stack = last.nbytes if last is not None and last.name == CALL_STACK else 0
        self.cleared_bytes = _aligned(at - LOCAL_START - stack, 16) if stack else self.local_bytes
        """Those of local memory, the first ones, that are zeros when a launch begins."""

    @cached_property
    def local_granule(self) -> int:
        """The bytes of a thread's local memory that lie together: those of the widest access that may be of it."""
        forms = {s.form for s in self.function.body or () if s.__class__ is Instruction}
        accesses = [access for form in forms for access in form.effects.accesses]
        spaces = ("local", "generic") if self.locals else ("local",)
        sizes = [access.nbytes or 16 for access in accesses if access.space in spaces]
        return next(size for size in (4, 8, 16) if size == 16 or size >= max(sizes, default=4))

    @cached_property
    def alignment(self) -> int:
        """What an array must be aligned to for the widest access of the kernel, where numpy's 16 bytes may not do."""
        forms = {s.form for s in self.function.body or () if s.__class__ is Instruction}
        accesses = (form.effects.access for form in forms)
        return 32 if any(access is not None and access.nbytes > 16 for access in accesses) else 1

    def entry(self, origin: str, space: str) -> tuple[int, bool]:
        """Offset in the table of the entry that an access is checked against, and whether it is the only one."""
        number = self.entries.get(origin)
        if number is None:
            return 0, False
        area = self.locals.get(number, self.ranges[number])
        if area is not None and area.shared and space == "generic":
            number, area = number + 1, self.ranges[number + 1]
        if area is not None and not area.spaces & SPACE_BITS[space]:
            return 0, False
        if area is None and space not in ("global", "generic"):
            return 0, False
        return number * Entry.nbytes, True

    def is_shared(self, origin: str) -> bool:
        """Whether an address of this origin is known to lie in shared memory."""
        area = self.ranges[self.entries.get(origin, 0)]
        return area is not None and area.shared

    def parameter(self, statement: Any, name: str, offset: int, nbytes: int) -> int:
        """Offset of bytes of a parameter among the bytes of all parameters."""
        start = self.offsets.get(name)
        if start is None:
            raise unsupported(statement, f"`ld.param` from {name}, which is no parameter of the kernel")
        if not 0 <= offset <= next(size for other, _, size in self.parameters if other == name) - nbytes:
            raise unsupported(statement, f"a read beyond the parameter {name}")
        return start + offset
