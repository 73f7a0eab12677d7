"""What a plan is in memory: structures that Python fills and machine code reads.

A field that is the address of a Python object is of an object that ``kept`` of the plan keeps alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

__all__ = [
    "ASKED_OF_MAPS", "CONFIG_BYTES", "MOST_AXES", "MOST_TENSORS", "NO_STREAM", "Argument", "Frame", "Place", "Plan",
    "Plans", "Slots", "Tensor",
]

WORD = ctypes.c_uint64
NUMBER = ctypes.c_int64
MOST_AXES = 8
MOST_TENSORS = 32
"""How many tensors of one launch can have their versions counted."""
ASKED_OF_MAPS = ("box", "bits", "swizzle")
"""The attributes of a tensor map that copies of tiles have needs of."""
NO_STREAM = 2**64 - 1
"""No handle of a stream."""
CONFIG_BYTES = 56
"""The size of the driver's CUlaunchConfig."""


class Argument(ctypes.Structure):
    """An argument of a launch: of which type it must be, and ``handler``, which checks it and packs its parameters."""

    _fields_ = [
        ("handler", WORD),
        ("type", WORD),
        ("offset", WORD),
        ("object", WORD), ("reader", WORD),
        ("low", NUMBER), ("high", NUMBER), ("wide", WORD),
        ("dtype", WORD), ("device", WORD), ("itemsize", WORD), ("align", WORD),
        ("rank", NUMBER), ("extents", NUMBER * MOST_AXES), ("strided", WORD), ("written", WORD),
        ("device_name", WORD), ("device_part", WORD), ("lazy", WORD * 2), ("lazy_functions", WORD * 2),
        ("recording", WORD), ("counted", WORD),
    ]
    """``type``: the class, exactly.
    ``offset``: of its first .param in the memory of the parameters; each next one is 16 bytes further.
    ``object``: what the handler needs besides; ``reader``: what reads a number.
    ``low`` to ``high``: the numbers it takes, ``wide``: those from 2**63 on too; ``low`` of a tensor map: which part of
    a View is the device.
    ``dtype``, ``device``: what the elements and the place must be, as the handler compares them.
    ``align``: what the address of memory that is not empty, and its size, must be a multiple of.
    ``rank``: the dimensions of an ``Array``, -1 of other pointers; ``extents``: -1 for each that the launch brings.
    ``strided``: the strides are parameters; ``written``: the kernel stores to it.
    ``device_name``, ``device_part``: the names of attributes that lead to the ordinal.
    ``lazy``: methods of a tensor that must say False, ``lazy_functions``: the functions of C that they are, or 0;
    ``recording``: a function that says whether torch records what changes a tensor that requires a gradient;
    ``counted``: the tensor's version is counted up.
    """


class Place(ctypes.Structure):
    """Somewhere that must hold what it held: ``getter(owner, key)`` is ``value``, or 0 where there is nothing."""

    _fields_ = [("getter", WORD), ("owner", WORD), ("key", WORD), ("value", WORD)]


class Plan(ctypes.Structure):
    """A launch that went well, with all that another of the same signature needs."""

    kept: list[Any]
    """What keeps alive whatever the fields point to."""
    _fields_ = [
        ("positional", WORD), ("named", WORD), ("names", WORD), ("arguments", WORD),
        ("alive", WORD), ("settings", WORD), ("places", WORD), ("place_count", WORD), ("unchanged", WORD),
        ("parameters", WORD), ("parameter_count", WORD), ("nbytes", WORD),
        ("stream", WORD), ("current_stream", WORD), ("work_stream", WORD), ("known_streams", WORD),
        ("ordinal", WORD),
        ("count_versions", WORD), ("failed", WORD),
        ("function", WORD), ("context", WORD), ("launch", WORD), ("get_context", WORD), ("push_context", WORD),
        ("pop_context", WORD), ("is_capturing", WORD), ("module_kept", WORD), ("taken", WORD), ("ring", WORD),
        ("number", WORD),
        ("config", ctypes.c_uint8 * CONFIG_BYTES),
    ]
    """``positional``, ``named``: how many arguments of each kind; ``names``: those of the latter.
    ``alive``: a byte, 0 when the kernel is to be traced again; ``settings``: what `config` holds of overrides.
    ``unchanged``: a function of Python that compares what ``places`` cannot; 0 for none.
    ``parameters``: the offset of each .param, of ``nbytes`` in all.
    ``stream``: the one to launch on, unless ``work_stream`` (of DLPack) or ``current_stream`` (of Python) says it;
    then it must be one of ``known_streams``, a dict: the first launch on a stream takes the long way. ``stream`` is
    then the last one that was.
    ``module_kept``: a byte, 0 as long as the module may be unloaded, which a graph that is captured would not survive.
    ``failed``: a function of Python that raises the driver's error; ``taken``: how many launches it has made.
    ``ring``: where they are noted (`gpu.in_flight.Ring`), by ``number``.
    """


    @property
    def is_alive(self) -> bool:
        """Whether the kernel is not to be traced again."""
        return ctypes.c_bool.from_address(self.alive).value


class Plans(bytes):
    """The addresses of plans, in the order in which they are tried; it keeps them."""

    plans: tuple[Plan, ...] = ()

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Plans:
        made = cls(b"".join(ctypes.addressof(plan).to_bytes(8, "little") for plan in plans))
        made.plans = tuple(plans)
        return made


class Slots(ctypes.Structure):
    """Where in objects of classes of our own their attributes are, which is read without asking for an attribute."""

    _fields_ = [
        ("launch_prepared", WORD), ("prepared_plans", WORD),
        ("array_dtype", WORD), ("array_device", WORD), ("array_address", WORD), ("array_shape", WORD),
    ]


class Frame(ctypes.Structure):
    """What the handlers of one launch share: the memory of its parameters, the stream that the arrays are valid on."""

    _fields_ = [("memory", WORD), ("awaited", WORD), ("tensor_count", WORD), ("tensors", WORD * MOST_TENSORS)]


class Tensor(ctypes.Structure):
    """DLPack's DLTensor, its device and its type of elements as a number each."""

    _fields_ = [
        ("data", WORD), ("device", WORD), ("ndim", ctypes.c_uint32), ("dtype", ctypes.c_uint32), ("shape", WORD),
        ("strides", WORD), ("byte_offset", WORD),
    ]
