"""Results that outlive the process: machine code of the assembler, compiled handlers of the emulator.

Several processes use one folder at once, may be killed at any moment, and may not be allowed to write. So an entry is
written to a temporary file and renamed, carries the digest of its content, and is trusted only if that matches; an
index is only ever added to, in whole lines. What another user could have written is not read (`trusted_files`). Every
failure of the file system means "not cached" and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import trusted_files

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than all that is hashed here
except ImportError:
    from hashlib import blake2b

__all__ = ["DiskCache", "Index", "digest"]

LIMIT = 512 * 1024 * 1024
"""How many bytes the entries of a folder may have before those unused for the longest are dropped."""
_ABANDONED = 3600.0
"""After how many seconds a temporary file is one of a process that was killed."""
_SIZE = 12
"""Bytes of a digest: of a thousand million results two are the same with a chance of 1 in 10**11."""
_INDEX = "index"
_LOOKS = 32
"""Parts of the limit after each of which a process looks at a folder's size: that takes long where much is in it."""


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SIZE).digest()


def digest(*parts: str | bytes) -> str:
    """A key: the digest of its parts, each with its length, so that no two lists collide."""
    found = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


class DiskCache:
    """Bytes by key in ``folder``; with None it holds nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = DiskCache(Path(folder))
    ...     cache.put(digest("text"), b"cubin")
    ...     cache.get(digest("text")), cache.get(digest("other"))
    True
    (b'cubin', None)
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._added = limit
        """Bytes of entries since the folder's size was looked at."""

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none that is whole."""
        if self.folder is None:
            return None
        path = self.folder / key
        content = trusted_files.read(path)
        if content is None:
            return None
        data = content[_SIZE:]
        if _hash(data) != content[:_SIZE]:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Keep an entry; whether that could be done."""
        if self.folder is None or not trusted_files.make_folder(self.folder):
            return False
        temporary = self.folder / f"tmp-{os.urandom(8).hex()}"
        try:
            try:
                trusted_files.create(temporary, _hash(data) + data)
                os.replace(temporary, self.folder / key)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._added += len(data)
            if self._added > self.limit // _LOOKS:
                self._trim(self.folder)
                self._added = 0
        except OSError:
            return False
        return True

    def _trim(self, folder: Path) -> None:
        now, entries = time.time(), []
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                stat = entry.stat(follow_symlinks=False)
                if entry.name.startswith("tmp-") and now - stat.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
                elif entry.is_file(follow_symlinks=False) and entry.name != _INDEX:
                    entries.append((stat.st_mtime, stat.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size


class Index:
    """Pairs of digests in the file ``index`` of a folder: what is found where.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Index(Path(folder)).add([("handler", "object")])
    ...     Index(Path(folder)).pairs
    True
    {'handler': 'object'}
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _INDEX
        self.pairs = dict(_lines(self._path))

    def add(self, pairs: Iterable[tuple[str, str]]) -> bool:
        """Append pairs in one write, also while other processes do; whether that could be done."""
        pairs = list(pairs)
        self.pairs.update(pairs)
        data = "".join([f"\n{first} {second}\n" for first, second in pairs]).encode()
        return trusted_files.append(self._path, data)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """The pairs in a file; a line that is not whole or not one of ours is passed over."""
    for line in (trusted_files.read(path) or b"").split(b"\n"):
        words = line.split()
        if len(words) == 2 and len(line) <= 60 and line.isascii():
            yield words[0].decode(), words[1].decode()
