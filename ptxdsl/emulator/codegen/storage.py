"""Compiled handlers on disk: a folder for each state of this package and of the host, bounded in number.

Several processes use a folder at once, may be killed at any moment, and may not be allowed to write. An object file is
written aside and renamed into place, named by its digest and trusted only if that matches; the index from handler to
object file is only ever added to, in whole lines. Whatever is damaged or gone is compiled again, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than all that is hashed here
except ImportError:
    from hashlib import blake2b

__all__ = ["Storage", "digest", "fingerprint"]

PACKAGE = Path(__file__).parents[2]
PARTS = ("emulator", "isa", "launch/texture_description.py", "types.py")
"""What handlers are made by, below the package."""
KEPT = 8
"""Folders that are kept, the last used ones: of versions and environments side by side."""


def digest(*parts: bytes) -> str:
    """A name for these bytes."""
    found = blake2b(digest_size=12)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files(entry.path)
        elif entry.name.endswith((".py", ".isa")):
            yield entry.path


def fingerprint(folder: Path, host: str) -> str:
    """What the code of every handler depends on besides its shape: our own sources, and the host.

    Reading the sources takes some milliseconds, so ``folder`` remembers what is in files of these dates and sizes.
    """
    files = [file for part in PARTS for file in _files(str(PACKAGE / part))]
    dates = []
    for file in files:
        stat = os.stat(file)
        dates.append(f"{file} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}")
    seen = digest(host.encode(), *map(str.encode, dates))
    known = dict(_lines(folder / "known"))
    if seen not in known:
        known[seen] = digest(host.encode(), *(Path(file).read_bytes() for file in files))
        _append(folder / "known", [(seen, known[seen])])
    return known[seen]


class Storage:
    """Object files below ``folder``, and the names that each has the code of."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder = folder / fingerprint(folder, host)
        self._homes = dict(_lines(self._folder / "index"))
        self._writable = True
        with contextlib.suppress(OSError):
            os.utime(self._folder)

    def home(self, name: str) -> str | None:
        """The object file that has a handler."""
        return self._homes.get(name)

    def load(self, home: str) -> tuple[bytes, list[str]] | None:
        """An object file with the names in it, if it is whole."""
        try:
            image = (self._folder / f"{home}.o").read_bytes()
        except OSError:
            return None
        names = [name for name, other in self._homes.items() if other == home]
        return (image, names) if digest(image) == home else None

    def store(self, image: bytes, names: list[str]) -> None:
        """Keep an object file. Where that cannot be done handlers stay in memory, which is no reason to complain."""
        home = digest(image)
        first = not self._homes
        self._homes.update(dict.fromkeys(names, home))
        if not self._writable:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if first:
                _prune(self._folder.parent)
            _write(self._folder / f"{home}.o", image)
        except OSError:
            self._writable = False
        else:
            self._writable = _append(self._folder / "index", [(name, home) for name in names])


    def remember(self, key: str, make: Callable[[], Iterable[str]]) -> list[str]:
        """Words that follow from the sources, for whom gathering them takes long."""
        path = self._folder / key
        with contextlib.suppress(OSError):
            checked, _, text = path.read_bytes().partition(b"\n")
            if digest(text).encode() == checked:
                return text.decode().split()
        words = list(make())
        text = " ".join(words).encode()
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, digest(text).encode() + b"\n" + text)
        return words


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """The pairs of digests in a file; a line that is not whole or not one of ours is passed over."""
    try:
        text = path.read_bytes()
    except OSError:
        return
    for line in text.split(b"\n"):
        words = line.split()
        if len(words) == 2 and len(line) <= 60 and line.isascii():
            yield words[0].decode(), words[1].decode()


def _append(path: Path, pairs: Iterable[tuple[str, str]]) -> bool:
    """Add lines to a file in one write, behind whatever others add at the same time; whether that could be done."""
    data = "".join([f"\n{first} {second}\n" for first, second in pairs]).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab", buffering=0) as file:
            file.write(data)
    except OSError:
        return False
    return True


def _write(path: Path, data: bytes) -> None:
    aside = path.with_suffix(f".{os.urandom(8).hex()}")
    try:
        aside.write_bytes(data)
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _prune(folder: Path) -> None:
    """Drop the folders that were not used for the longest."""
    import shutil

    found = [entry for entry in os.scandir(folder) if entry.is_dir()]
    for entry in sorted(found, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(entry.path, ignore_errors=True)
