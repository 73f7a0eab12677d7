"""Compiled handlers on disk: a folder for each state of this package and of the host, bounded in number.

An object file has the handlers of one compilation, an index says which; whatever is damaged or gone is compiled again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from ...launch.disk_cache import DiskCache, Index, digest
from ...machine_code.host import Host

__all__ = ["Storage", "digest", "fingerprint"]

PACKAGE = Path(__file__).parents[2]
PARTS = ("analysis", "emulator", "ir", "isa", "launch/texture_description.py", "machine_code", "text", "types.py")
"""What handlers and micro-ops are made by, below the package."""
KERNELS = 64 << 20
"""Bytes of what is kept of kernels."""
PIECE = 1 << 16
"""Bytes of a source that are read at once."""
KEPT = 8
"""Folders that are kept, the last used ones: of versions and environments side by side."""


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files(entry.path)
        elif entry.name.endswith((".py", ".isa")):
            yield entry.path


def _content(file: str) -> bytes:
    """As ``Path.read_bytes``, in a fourth of its time: there are hundreds of sources."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        pieces = [os.read(descriptor, PIECE)]
        while len(pieces[-1]) == PIECE:  # a regular file gives less only at its end
            pieces.append(os.read(descriptor, PIECE))
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def fingerprint(folder: Path, host: Host) -> str:
    """What the code of every handler depends on besides its micro-op: the package's sources, and the host.

    Reading the sources takes some milliseconds, so an index in ``folder`` holds the digest of their content by that of
    their dates and sizes, and of what is seen of the host.
    """
    files = [file for part in PARTS for file in _files(str(PACKAGE / part))]
    dates = []
    for file in files:
        stat = os.stat(file)
        dates.append(f"{file} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}")
    dated, known = digest(host.seen or host.told(), *dates), Index(folder)
    if dated not in known.pairs:
        known.add([(dated, digest(host.told(), *map(_content, files)))])
    return known.pairs[dated]


class Storage:
    """Object files below ``folder``, and the names of the handlers that each has the code of."""

    def __init__(self, folder: Path, host: Host) -> None:
        self._parent, self._host = folder, host
        self._writable = True
        self.empty = not folder.is_dir()
        """Whether nothing was kept yet for this state of the package and of the host."""
        if self.empty:  # of any state: a first launch need not wait until it is known which this is
            return
        try:
            os.utime(self._folder)
        except FileNotFoundError:
            self.empty = True
        except OSError:
            pass

    @cached_property
    def _folder(self) -> Path:
        return self._parent / fingerprint(self._parent, self._host)

    @cached_property
    def _objects(self) -> DiskCache:
        return DiskCache(self._folder)

    @cached_property
    def _kernels(self) -> DiskCache:
        return DiskCache(self._folder / "kernels", KERNELS)

    @cached_property
    def _index(self) -> Index:
        return Index(self._folder)

    @property
    def _may_have_some(self) -> bool:
        return not self.empty or "_index" in vars(self)

    def object_file(self, name: str) -> str | None:
        """The object file that has a handler."""
        return self._index.pairs.get(name) if self._may_have_some else None

    def load(self, object_file: str) -> bytes | None:
        """An object file, if it is whole."""
        return self._objects.get(f"{object_file}.o")

    def names_in(self, object_file: str) -> list[str]:
        """The handlers that an object file has the code of."""
        return [name for name, other in self._index.pairs.items() if other == object_file]

    def kernel(self, key: str) -> bytes | None:
        """What :meth:`keep_kernel` has kept."""
        return self._kernels.get(key) if self._may_have_some else None

    def keep_kernel(self, key: str, data: bytes) -> None:
        """Keep what is known of a kernel."""
        self._kernels.put(key, data)

    def store(self, image: bytes, names: list[str]) -> None:
        """Keep an object file; where that cannot be done its handlers stay in memory only."""
        key = digest(image)
        pairs, first = [(name, key) for name in names], not self._index.pairs
        if self._writable and self._objects.put(f"{key}.o", image):
            self._writable = self._index.add(pairs)
            if first:
                _prune(self._folder.parent)
        else:
            self._writable = False
            self._index.pairs.update(pairs)


def _prune(folder: Path) -> None:
    """Drop the folders that were not used for the longest."""
    import shutil

    with contextlib.suppress(OSError):
        found = [entry for entry in os.scandir(folder) if entry.is_dir()]
        for entry in sorted(found, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(entry.path, ignore_errors=True)
