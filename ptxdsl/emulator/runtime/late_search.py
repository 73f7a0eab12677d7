"""The search for addresses (RESOLVE), compiled when the first access needs it.

It is the largest of the functions that stand beside the handlers, and most kernels' accesses are found without it. So
a block state has a function of Python's in its place at first, which has the search compiled, puts it in the place,
and goes on there. That function is called by compiled code, to which it can raise nothing: an interruption and an error
are kept in ``errors`` for who called that.
"""

from __future__ import annotations

import ctypes

from ..codegen.library import library
from ..instructions.scheduler import SchedulerFunction
from ..machine.allocation import copy_bytes
from ..machine.layout import Block
from ..machine.status import Status

__all__ = ["errors", "raise_pending", "search_address"]

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
_SEARCH = SchedulerFunction("resolve")
errors: list[BaseException] = []
"""Interruptions, and why the search could not be compiled; raised by who has called compiled code."""
_addresses: list[int] = []
"""Of the search, once it is there."""


def search_address() -> int:
    """What a block state has in RESOLVE."""
    return _addresses[0] if _addresses else _first_address


def raise_pending() -> None:
    """Raise what came up in compiled code that has returned."""
    if errors:
        raise errors.pop()


def _compiled() -> int:
    if not _addresses:
        _addresses.append(library().need([_SEARCH])[_SEARCH])
    return _addresses[0]


def _first(record: int, warp: int, block: int, mask: int) -> bool:
    try:
        try:
            address = _compiled()
        except KeyboardInterrupt as interruption:
            errors.append(interruption)
            address = _compiled()
    except BaseException as error:  # noqa: BLE001 - compiled code knows no exceptions
        errors.append(error)
        copy_bytes(block + Block.STATUS, int(Status.YIELD).to_bytes(4, "little"), 4)
        return False
    copy_bytes(block + Block.RESOLVE, address.to_bytes(8, "little"), 8)
    return bool(_SIGNATURE(address)(record, warp, block, mask))


_first_function = _SIGNATURE(_first)
_first_address = ctypes.cast(_first_function, ctypes.c_void_p).value or 0
