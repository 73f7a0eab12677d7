"""What another user could have written is not loaded: one warning names it, and the kernel runs without the cache."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ptxdsl import PtxWarning
from ptxdsl.emulator.codegen.library import Library, _emit
from ptxdsl.emulator.codegen.storage import Storage
from ptxdsl.emulator.instructions.control import Exit
from ptxdsl.emulator.instructions.operand_classes import ABSENT
from ptxdsl.launch import trusted_files
from ptxdsl.launch.disk_cache import DiskCache, Index, digest
from ptxdsl.machine_code.host import Host

KEY = digest("the text")
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users")


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_files, "_told", set())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache with one entry, made while the umask lets the group write."""
    before = os.umask(0o002)
    try:
        assert DiskCache(tmp_path / "above" / "cache").put(KEY, b"code")
        assert Index(tmp_path / "above" / "cache").add([("a", "b")])
        yield tmp_path / "above" / "cache"
    finally:
        os.umask(before)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make a file one of another user; who that is."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        return 12345
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    return owner


def refused(folder: Path, words: str) -> None:
    with pytest.warns(PtxWarning) as seen:
        assert DiskCache(folder).get(KEY) is None
    assert words in str(seen[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DiskCache(folder).get(KEY) is None  # said once


def test_what_is_made_here_is_for_this_user_alone(folder: Path) -> None:
    for path in (folder.parent, folder, folder / KEY, folder / "index"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    assert DiskCache(folder).get(KEY) == b"code"
    assert Index(folder).pairs == {"a": "b"}


def test_a_file_of_another_owner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = give_away(folder / KEY, monkeypatch)
    monkeypatch.setattr(trusted_files, "_trusted", _files_only(trusted_files._trusted))
    refused(folder, f"the cache does not use {folder / KEY}, which belongs to user {owner}")


def _files_only(judge: Callable[..., bool]) -> Callable[..., bool]:
    """Not of folders, where the whole process pretends to be another user."""
    return lambda path, found, *, folder: folder or judge(path, found, folder=folder)


def test_a_folder_of_another_owner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = give_away(folder, monkeypatch)
    refused(folder, f"the cache does not use {folder}, which belongs to user {owner}")
    assert not DiskCache(folder).put(KEY, b"other")
    assert not Index(folder).add([("c", "d")])


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write(folder: Path, mode: int) -> None:
    (folder / KEY).chmod(mode)
    refused(folder, f"the cache does not use {folder / KEY}, which may be written by others (mode {mode:o}); "
                    f"`chmod go-w {folder / KEY}` after a look at it")
    assert DiskCache(folder).put(KEY, b"new")  # in its place, and it is mine
    assert DiskCache(folder).get(KEY) == b"new"


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o703])
def test_a_folder_that_others_may_write(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    refused(folder, f"{folder}, which may be written by others (mode {mode:o})")
    folder.chmod(0o755)  # the hint
    assert DiskCache(folder).get(KEY) == b"code"


def test_a_sticky_folder_is_no_danger(folder: Path) -> None:
    folder.chmod(0o1777)
    assert DiskCache(folder).get(KEY) == b"code"


@pytest.mark.parametrize("kind", ["fifo", "link", "device"])
def test_fifos_links_and_devices(folder: Path, kind: str) -> None:
    path, words = folder / KEY, "is no regular file"
    content = path.read_bytes()
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "link":
        (folder / "other").write_bytes(content)
        path.symlink_to(folder / "other")
        words = "is a link"
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    refused(folder, words)


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_an_index_is_not_written_through_a_fifo_or_a_link(folder: Path, kind: str) -> None:
    index, victim = folder / "index", folder / "victim"
    index.unlink()
    victim.write_text("precious")
    os.mkfifo(index) if kind == "fifo" else index.symlink_to(victim)  # a FIFO that nobody reads would wait for ever
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert not Index(folder).add([("c", "d")])
    assert victim.read_text() == "precious"


def test_handlers_that_others_may_write_are_compiled_again(tmp_path: Path) -> None:
    ops = [Exit(ABSENT, False)]
    first = Library(_emit, Storage(tmp_path, Host("a CPU", lambda: "a CPU")))
    first.need(ops)
    (image,) = tmp_path.glob("*/*.o")
    image.chmod(0o666)
    with pytest.warns(PtxWarning, match="may be written by others"):
        assert Library(_emit, Storage(tmp_path, Host("a CPU", lambda: "a CPU"))).need(ops)
    assert stat.S_IMODE(image.stat().st_mode) == 0o600
