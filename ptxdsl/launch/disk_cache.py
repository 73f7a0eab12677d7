"""Results that outlive the process: a folder of files named by the hash of what made them.

Several processes use one folder at once, may be killed at any moment, and may not be allowed to write. So an entry is
written aside and renamed into place, carries its own digest, and is trusted only if that matches; every failure of the
file system means "not cached" and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

__all__ = ["DiskCache", "digest"]

LIMIT = 512 * 1024 * 1024
"""How many bytes a folder may hold before the entries longest unused are dropped."""
_ABANDONED = 3600.0
"""After how many seconds a file that nobody renamed is one that nobody will."""


def digest(*parts: str | bytes) -> str:
    """The key of an entry: the SHA-256 of its parts, each with its length, so that no two lists collide."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


class DiskCache:
    """Bytes by key in ``folder``; with None it holds nothing.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = DiskCache(Path(folder))
    ...     cache.put(digest("text"), b"cubin")
    ...     cache.get(digest("text")), cache.get(digest("other"))
    (b'cubin', None)
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none that is whole."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[32:]
        if hashlib.sha256(data).digest() != content[:32]:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep an entry, if the folder can be written to."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(prefix="tmp-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(aside, self.folder / key)
            except BaseException:
                os.unlink(aside)
                raise
            self._trim()

    def _trim(self) -> None:
        assert self.folder is not None
        now, entries = time.time(), []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):
                stat = entry.stat()
                if entry.name.startswith("tmp-") and now - stat.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
                else:
                    entries.append((stat.st_mtime, stat.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size
