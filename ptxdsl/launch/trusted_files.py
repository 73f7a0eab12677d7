"""Files that only their owner can have written: what the caches load is run as machine code.

A file is used if it is a regular one, belongs to this user or to root, and nobody else may write it; so for the folder
that it is in, where others could exchange it. The file that was opened is what is judged, links are not followed, and
nothing waits for a FIFO. Each folder or file that is passed over is told once, as a `PtxWarning`. New ones are made for
this user alone, whatever the umask says. Not seen: access control lists, and folders above the one that a file is in.
Windows has nothing but lists, and the modes that Python makes up there say nothing: a user's own folder is as trusted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import warnings
from pathlib import Path

from ..errors import PtxWarning, caller

__all__ = ["append", "create", "make_folder", "read"]

_COMMON = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_told: set[str] = set()
"""What has been warned of."""


def read(path: Path) -> bytes | None:
    """The content of a file; None where there is none that can be trusted."""
    descriptor = _opened(path, os.O_RDONLY)
    if descriptor is None:
        return None
    try:
        with open(descriptor, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return None


def append(path: Path, data: bytes) -> bool:
    """Add to a file, in one write; whether that could be done."""
    if not make_folder(path.parent):
        return False
    descriptor = _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if descriptor is None:
        return False
    try:
        with open(descriptor, "ab", buffering=0) as file:
            return file.write(data) == len(data)
    except OSError:
        return False


def create(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON, 0o600)
    with open(descriptor, "wb", buffering=0) as file:
        file.write(data)


def make_folder(folder: Path) -> bool:
    """Make a folder and those above it; whether it is there and can be trusted."""
    try:
        if not folder.is_dir():
            _made(folder)
        return _trusted(str(folder), os.stat(folder), folder=True)
    except OSError:
        return False


def _made(folder: Path) -> None:
    if not folder.parent.is_dir():
        _made(folder.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)


def _opened(path: Path, flags: int) -> int | None:
    folder = path.parent
    try:
        if not _trusted(str(folder), os.stat(folder), folder=True):
            return None
        descriptor = os.open(path, flags | _COMMON, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _tell(str(path), "is a link")
        return None
    if _trusted(str(path), os.fstat(descriptor), folder=False):
        return descriptor
    os.close(descriptor)
    return None


def _trusted(path: str, found: os.stat_result, *, folder: bool) -> bool:
    mode = found.st_mode
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        if not folder and not stat.S_ISDIR(mode):  # else it is damaged, which has no danger
            _tell(path, "is no regular file")
    elif sys.platform == "win32":
        return True
    elif found.st_uid not in (os.geteuid(), 0):
        _tell(path, f"belongs to user {found.st_uid}")
    elif mode & 0o022 and not (folder and mode & stat.S_ISVTX):  # in a sticky folder nobody can exchange my files
        _tell(path, f"may be written by others (mode {stat.S_IMODE(mode):o}); `chmod go-w {path}` after a look at it")
    else:
        return True
    return False


def _tell(path: str, why: str) -> None:
    if path in _told:
        return
    _told.add(path)
    loc = caller()
    warnings.warn_explicit(
        f"the cache does not use {path}, which {why}", PtxWarning, loc.file if loc else "<unknown>",
        loc.line if loc else 0,
    )
