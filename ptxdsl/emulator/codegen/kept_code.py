"""Lowered kernels on disk: the first launch of one that another process has launched needs neither parser nor lowering.

What is kept is found by the PTX text, the entry and the shape of the block, in the folder of this state of the package
and of the host (:mod:`.storage`), and is what a launch needs: the micro-ops as they lie in memory, with the places
where addresses of handlers and of constants go, and where the kernel's variables and parameters lie. All else (which
statement a micro-op belongs to, registers, the control-flow graph) is made from the text again when somebody asks: for
a fault, a tool, or the second tier. That must give the same micro-ops, which is checked.

Not kept: kernels of modules that have variables of their own, and those with other numbers among their micro-ops that
may be addresses of this process (textures are found by such); launches in clusters; code with the checks of a tool;
conservative code, and code that knows of registers that wrap around.
"""

from __future__ import annotations

import marshal
import struct
import sys
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import EmulationError
from ...ir import Module, Variable
from ...types import TYPES
from ..machine.address_spaces import AddressRange, AddressSpaces, ModuleMemory
from ..machine.allocation import HostAddress
from ..machine.warp_rows import WarpRows, lanes_of_warps
from .code import Code
from .library import HIGHEST, LOWEST, library, symbol
from .storage import digest

if TYPE_CHECKING:
    from ..analysis.divergence import Shape3

__all__ = ["KeptSpaces", "keep", "key_of", "recall"]

_ADDRESS = struct.Struct("<Q")
_SPACES = (
    "parameters", "parameter_bytes", "static_shared", "dynamic_start", "local_bytes", "cleared_bytes", "local_granule",
    "alignment", "reserved", "tensor_memory",
)


class _Record(NamedTuple):
    """What is kept of a kernel; offsets are from the first micro-op on."""

    image: bytes
    """The micro-ops, with 0 for each address."""
    names: tuple[str, ...]
    """Of the handlers and routines that the micro-ops refer to."""
    files: tuple[str, ...]
    """The object files that have them, once they are kept."""
    references: bytes
    """Pairs of 32 bits: where the address of a function goes, and the number of its name."""
    constants: bytes
    pointers: bytes
    """Pairs of 32 bits: where the address of constants goes, and where these begin."""
    blocks: bytes
    """The offset of each basic block by its priority, in 32 bits."""
    numbers: tuple[int, int, int, int, bool, bool, int]
    """Entry, prologue, bytes of a warp, number of micro-ops, whether it prints, and updates memory; the room for
    operations that are pending."""
    lanes: int
    """Threads of a warp."""
    narrow: bool
    spaces: tuple[Any, ...]
    ranges: tuple[Any, ...]
    locals: tuple[Any, ...]


def key_of(text: str, entry: str, block: Shape3) -> str:
    """Where a kernel is found."""
    return digest(text, entry, repr(block), sys.implementation.cache_tag or "")


# To disk


class _HasAddress(Exception):
    """A micro-op has a number that may be an address of this process."""


def keep(key: str, block: Shape3, code: Code, spaces: AddressSpaces) -> None:
    """Keep a kernel that has just been lowered, if it can be."""
    storage, memory = library().storage, spaces.memory
    process_bound = memory.ranges or memory.references or spaces.cluster is not None
    if storage is None or process_bound or code.conservative or code.known_wraps:
        return
    try:
        record = _record(code, block, spaces)
    except _HasAddress:
        return

    def write() -> None:
        files = dict.fromkeys(storage.object_file(name) or "" for name in record.names)
        storage.keep_kernel(key, marshal.dumps((key, *record._replace(files=tuple(files)))))

    library().when_optimised(write)
    code.keep_block_function = lambda name: _keep_block_function(key, name)


def _record(code: Code, block: Shape3, spaces: AddressSpaces) -> _Record:
    numbers: dict[str, int] = {}
    interned: dict[int, int] = {}
    references, pointers = array("I"), array("I")
    constants, places = bytearray(), dict[int, int]()
    start = code.base - code.memory.ctypes.data
    size = code.offsets[-1] + code.micro_ops[-1].size
    image = bytearray(code.memory[start : start + size].tobytes())

    def refer(offset: int, name: str) -> None:
        references.extend((offset, numbers.setdefault(name, len(numbers))))
        _ADDRESS.pack_into(image, offset, 0)

    for placed, offset in zip(code.micro_ops, code.offsets):
        number = interned.get(id(placed.op))
        if number is None:
            number = interned[id(placed.op)] = numbers.setdefault(symbol(placed.op), len(numbers))
        references.extend((offset, number))
        _ADDRESS.pack_into(image, offset, 0)
        for position, routine in (placed.links or {}).items():
            refer(offset + _position(placed.op.codes, position), symbol(routine))
        for position, value in enumerate(placed.values):
            content = getattr(value, "content", None)
            if content is not None:
                at = places.get(value)
                if at is None:
                    constants.extend(bytes(-len(constants) % 64))
                    at = places[value] = len(constants)
                    constants.extend(content)
                there = offset + _position(placed.op.codes, position)
                pointers.extend((there, at))
                _ADDRESS.pack_into(image, there, 0)
            elif isinstance(value, HostAddress) or (LOWEST <= value < HIGHEST and position not in (placed.links or ())):
                raise _HasAddress
    return _Record(
        bytes(image), tuple(numbers), (), references.tobytes(), bytes(constants), pointers.tobytes(),
        (code.blocks - np.uint64(code.base)).astype(np.uint32).tobytes(),
        (code.entry - code.base, code.prologue - code.base, code.stride, code.length, code.prints, code.updates,
         code.pending),
        lanes_of_warps(block), spaces.memory.narrow, tuple(getattr(spaces, name) for name in _SPACES),
        tuple(map(_fields, spaces.ranges)),
        tuple((number, _fields(area)) for number, area in spaces.locals.items()),
    )


def _position(codes: str, number: int) -> int:
    """Where a value lies in a record."""
    return _ADDRESS.size + struct.calcsize("<" + codes[:number])


def _fields(area: AddressRange | None) -> tuple[Any, ...] | None:
    if area is None:
        return None
    v = area.variable
    variable = None if v is None else (v.name, v.space, str(v.type), v.shape, v.align, v.linkage)
    return (*area[:3], int(area.spaces), *area[4:8], variable, area.window)


def _keep_block_function(key: str, name: str) -> None:
    storage = library().storage
    file = storage.object_file(name) if storage is not None else None
    if storage is not None and file is not None:
        storage.keep_kernel(_block_function(key), marshal.dumps((key, name, file)))


def _block_function(key: str) -> str:
    return f"{key}.b"


# From disk


def recall(
    key: str, block: Shape3, spaces: Callable[[], AddressSpaces], lowered: Callable[[Shape3], Code]
) -> tuple[AddressSpaces, Code, Shape3] | None:
    """A kernel from disk and the shape of its block, None where it is not there.

    The functions make it from its text, where that is needed.
    """
    storage = library().storage
    data = storage.kernel(key) if storage is not None else None
    if data is None:
        return None
    kept_for, *fields = marshal.loads(data)
    record = _Record(*fields)
    functions = library().recalled(record.names, record.files)
    if functions is None or kept_for != key:
        return None
    kept = KeptSpaces(record, spaces)
    code = _placed(record, np.array(functions, np.uint64))
    shape = WarpRows.of(block, record.lanes)

    def describe() -> Any:
        made = lowered(shape)
        if _record(made, shape, made.source.spaces if made.source is not None else kept)[0] != record.image:
            raise EmulationError("a bug in the emulator: a kernel was lowered to other micro-ops than before")
        return made.description

    code.describe = describe
    code.recall_block_function = lambda: _recall_block_function(key)
    code.keep_block_function = lambda name: _keep_block_function(key, name)
    return kept, code, shape


def _placed(record: _Record, functions: np.ndarray[Any, Any]) -> Code:
    """The micro-ops of a record in memory, with their constants behind them."""
    size = -(-len(record.image) // 64) * 64
    memory = np.zeros(size + len(record.constants) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    base = memory.ctypes.data + start
    memory[start : start + len(record.image)] = np.frombuffer(record.image, np.uint8)
    memory[start + size : start + size + len(record.constants)] = np.frombuffer(record.constants, np.uint8)
    references = np.frombuffer(record.references, np.uint32).reshape(-1, 2)
    _fill(memory[start:], references[:, 0], functions[references[:, 1]])
    pointers = np.frombuffer(record.pointers, np.uint32).reshape(-1, 2)
    _fill(memory[start:], pointers[:, 0], pointers[:, 1].astype(np.uint64) + np.uint64(base + size))
    blocks = np.frombuffer(record.blocks, np.uint32).astype(np.uint64) + np.uint64(base)
    entry, prologue, stride, length, prints, updates, pending = record.numbers
    return Code(memory, base, base + entry, base + prologue, blocks, stride, length, False, prints, updates, pending)


def _fill(memory: np.ndarray[Any, Any], places: np.ndarray[Any, Any], addresses: np.ndarray[Any, Any]) -> None:
    """Write addresses at places, which may not be aligned."""
    bytes_of_each = addresses.astype("<u8").view(np.uint8).reshape(-1, 8)
    memory[places.astype(np.int64)[:, None] + np.arange(8)] = bytes_of_each


def _recall_block_function(key: str) -> int:
    storage = library().storage
    data = storage.kernel(_block_function(key)) if storage is not None else None
    if data is None:
        return 0
    kept_for, name, file = marshal.loads(data)
    found = library().recalled([name], [file]) if kept_for == key else None
    return found[0] if found is not None else 0


class KeptSpaces(AddressSpaces):
    """The memory of a kernel from disk: what a launch needs is here, all else is made when it is asked for."""

    def __init__(self, record: _Record, make: Callable[[], AddressSpaces]) -> None:
        self._make = make
        vars(self).update(zip(_SPACES, record.spaces))
        self.ranges = [_area(fields) for fields in record.ranges]
        self.locals = {number: area for number, fields in record.locals if (area := _area(fields)) is not None}
        self.memory = ModuleMemory(Module(address_size=32 if record.narrow else 64))
        self.cluster, self.explicit, self.asked, self.notes = None, False, [], {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = vars(self._make())
        for each, value in made.items():
            vars(self).setdefault(each, value)
        return made[name]


def _area(fields: tuple[Any, ...] | None) -> AddressRange | None:
    if fields is None:
        return None
    *first, variable, window = fields  # in the order of an AddressRange
    made = None
    if variable is not None:
        name, space, kind, shape, align, linkage = variable
        made = Variable(name, space, TYPES[kind], shape, align, linkage=linkage)
    return AddressRange._make((*first, made, window))
