"""Which line of the user's is running: the frames of ptxdsl itself are passed over.

Every instruction carries the line that made it, so this is on the path of each. A line is the same `Loc` at every
call, kept by the code object and the index of the bytecode instruction.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import CodeType, FrameType

from ...errors import Loc

__all__ = ["PACKAGE", "getframe", "is_user_file", "location_of", "place_of", "places", "user_frame"]

PACKAGE = str(Path(__file__).parents[2]).replace("\\", "/") + "/"
_LIBRARY = PACKAGE + "kernels/"
_PYTHON = str(Path(contextlib.__file__).parent).replace("\\", "/") + "/"
"""Python's own library calls us for the user."""


class _Internal(dict[str, bool]):
    """By file name, whether its lines are not the user's: those of ptxdsl, and of what calls it for the user."""

    def __missing__(self, filename: str) -> bool:
        path = filename.replace("\\", "/")
        ours = path.startswith(PACKAGE) and not path.startswith(_LIBRARY)
        of_python = path.startswith(_PYTHON) and "-packages/" not in path
        self[filename] = ours or of_python or "-packages/numpy/" in path
        return self[filename]


internal = _Internal()


def is_user_file(filename: str) -> bool:
    """Whether the lines of a file are the user's, not ptxdsl's."""
    return not internal[filename]


def user_frame(depth: int = 1, code: CodeType | None = None) -> FrameType:
    """The innermost frame that is the user's, from ``depth`` callers up; ``code`` is the user's wherever it lies."""
    frame: FrameType | None = sys._getframe(depth)
    last = frame
    while frame is not None:
        if not internal[frame.f_code.co_filename] or frame.f_code is code:
            return frame
        last, frame = frame, frame.f_back
    assert last is not None
    return last


def location_of(frame: FrameType) -> Loc:
    return Loc(frame.f_code.co_filename, frame.f_lineno)


getframe = sys._getframe
places: dict[tuple[int, int], Loc] = {}
"""The lines of the user's seen so far: by the code object's id and the index of the bytecode instruction in it."""
_kept: dict[int, CodeType] = {}
"""The code objects of ``places``; kept, or their ids could be reused."""


def place_of(frame: FrameType) -> Loc:
    """The line that a frame of the user's is at, the same object at every call."""
    return places.get((id(frame.f_code), frame.f_lasti)) or _new_place(frame)


def _new_place(frame: FrameType) -> Loc:
    code = frame.f_code
    if len(_kept) > 4096:
        places.clear()
        _kept.clear()
    _kept[id(code)] = code
    loc = places[id(code), frame.f_lasti] = location_of(frame)
    return loc
