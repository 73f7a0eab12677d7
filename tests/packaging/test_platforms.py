"""The emulator elsewhere than on Linux on x86-64, as far as that shows here.

A process from which all is taken that Python has on Unix only runs kernels; code is compiled for Windows and macOS,
and what it needs of the system is told; consoles that lack letters; paths as they are on Windows. docs/platforms.md
says what has been run where, and what has not.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding, ir

import ptxdsl
from ptxdsl import MemoryFault, Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, use
from ptxdsl.emulator.codegen.library import Library, _emit, symbol
from ptxdsl.emulator.instructions.micro_op import Key
from ptxdsl.launch import trusted_files
from ptxdsl.machine_code import host
from ptxdsl.text import parse

ROOT = Path(__file__).parents[2]
WITHOUT_UNIX = """
import ctypes, mmap, os, signal, sys, types
import concurrent.futures, multiprocessing, subprocess, tempfile, unittest.mock  # what they need of Unix they have now
import numpy, ml_dtypes, llvmlite.binding

for name in "fcntl grp nis posix pty pwd resource readline spwd syslog termios tty crypt".split():
    sys.modules[name] = None
UNIX = '''
    chown chroot confstr ctermid environb eventfd fchdir fchmod fchown fork forkpty fpathconf fstatvfs getegid geteuid
    getgid getgroups getloadavg getpgid getpgrp getpriority getresgid getresuid getsid getuid initgroups killpg lchown
    lockf major makedev memfd_create minor mkfifo mknod nice openpty pathconf pipe2 posix_fadvise posix_fallocate
    posix_spawn pread preadv pwrite pwritev register_at_fork sched_getaffinity sched_getscheduler sched_setaffinity
    sched_yield sendfile setegid seteuid setgid setpgid setpriority setsid setuid splice statvfs sync sysconf tcgetpgrp
    tcsetpgrp ttyname uname unshare wait wait3 wait4 waitid
'''
for name in [*UNIX.split(), *(name for name in vars(os) if name.startswith(("SCHED_", "W", "P_", "SC_", "PRIO_")))]:
    if name not in ("W_OK", "WNOHANG", "P_NOWAIT"):
        vars(os).pop(name, None)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_SYNC"):
    vars(os).pop(name, None)
for name in [name for name in vars(mmap) if name.startswith(("PROT_", "MAP_"))]:
    delattr(mmap, name)
for name in ("SIGALRM", "ITIMER_REAL", "setitimer", "SIGUSR1", "SIGHUP", "SIGKILL", "pthread_kill", "alarm"):
    delattr(signal, name)


class CDLL(ctypes.CDLL):
    def __init__(self, name, *arguments, **more):
        if "/" in name or "\\\\" in name:  # as Windows' looks, where None has no parts
            raise FileNotFoundError(name)
        super().__init__(None if "handle" in more else name, *arguments, **more)


def plain(made):
    found = {name: getattr(made, name) for name in dir(made) if name.startswith("st_")}
    mode = made.st_mode | 0o666 | (0o111 if made.st_mode & 0o040000 else 0)
    return types.SimpleNamespace(**{**found, "st_mode": mode, "st_uid": 0, "st_gid": 0})


stat, fstat = os.stat, os.fstat
os.stat, os.fstat = lambda *a, **k: plain(stat(*a, **k)), lambda fd: plain(fstat(fd))
os.environ.pop("HOME", None)
ctypes.CDLL, sys.platform = CDLL, "win32"
import ptxdsl.machine_code.object_files
ptxdsl.machine_code.object_files._ELF64 = b"there are none"
"""
PROGRAM = """
import threading
import numpy as np
import ptxdsl
from ptxdsl import Ptr, RaceError, f32, loop, ptx, ptx_kernel, reg, shared, u32, when
from ptxdsl.emulator.jit import tier_up

tier_up.SECONDS = float("inf")  # else it is the machine's speed that tells which kernels come to the second tier

@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]

@ptx_kernel
def rows(n: u32, x: Ptr[f32], y: Ptr[f32]):
    acc = reg(f32, 0.0)
    with loop(n) as i:
        acc += ptx.ex2.approx.f32(x[ptx.tid.x * n + i])
    y[ptx.tid.x] = acc

@ptx_kernel
def reverse(x: Ptr[f32]):
    tile, t = shared(f32, 64), ptx.tid.x
    tile[t] = x[t]
    x[t] = tile[63 - t]

def main():
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    with ptxdsl.profile() as p:
        saxpy[4, 256](1000, 2.0, x, y)
    assert (y == 2 * x + 1).all() and "saxpy" in p.table()
    wide, sums = np.zeros((64, 2000), np.float32), np.zeros(64, np.float32)
    tier_up.SECONDS = tier_up.SECONDS_A_MICRO_OP = 0.0
    for _ in range(3):
        rows[1, 64](2000, wide, sums)
        for thread in threading.enumerate():
            if thread.name == tier_up.THREAD:
                thread.join()
    tier_up.SECONDS = float("inf")
    assert (sums == 2000).all()
    try:
        reverse.configure(1, 64, sanitize="all", seed=3)(x)
    except RaceError as error:
        assert "race on tile" in str(error)
    else:
        raise AssertionError
    threads = [threading.Thread(target=saxpy[4, 256], args=(1000, 1.0, x, y)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    from ptxdsl.kernels.attention import flash_attention
    q = np.ones((1, 2, 5, 64), np.float16)
    assert (flash_attention(q, q, q) == 1).all()
    for thread in threading.enumerate():  # what it is at, a process at its end does; what waits for it, not
        if thread.name == "ptxdsl tier-up":
            thread.join()
    print("right", ptxdsl.config.current().cache_dir)

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_without_what_only_unix_has(tmp_path: Path) -> None:
    script, cache = tmp_path / "my kernels.py", tmp_path / "a cache"
    script.write_text(f"{WITHOUT_UNIX}\n{PROGRAM}", "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTXDSL_")}
    environment.update(PYTHONPATH=str(ROOT), PTXDSL_BACKEND="emulator", PTXDSL_CACHE_DIR=str(cache), LC_ALL="C")
    options = ["-W", "error::EncodingWarning:ptxdsl", "-X", "warn_default_encoding"]
    kept: list[int] = []
    for _ in range(2):  # the second one finds the code on disk
        command = [sys.executable, *options, str(script)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"right {cache}\n"), done.stderr
        assert done.stderr == ""
        kept.append(len([path for path in cache.rglob("*.o") if path.is_file()]))
    assert kept[0] == kept[1] > 5


def test_modes_of_windows_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "geteuid")
    assert trusted_files.append(folder / "index", b"one\n") and trusted_files.append(folder / "index", b"two\n")
    assert trusted_files.read(folder / "index") == b"one\ntwo\n"


# Code for other systems


@ptx_kernel
def everything(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    tile, t = shared(f32, 64), ptx.tid.x
    acc = reg(f32, 0.0)
    with loop(n) as i:
        v = x[t * n + i]
        acc.set(ptx.fma.rn.f32(v, ptx.sin.approx.f32(v), acc))
        acc += ptxdsl.math.exp(v) + ptx.sqrt.rn.f32(v) + v.to(ptxdsl.f64).to(f32) / 3.0
    tile[t] = ptxdsl.warp.reduce_sum(acc)
    ptx.bar.sync(0)
    ptx.red.global_.add.f32(y.at(0), tile[63 - t])


SYSTEMS = {
    "x86_64-pc-windows-msvc": ("x86-64-v3", "+avx,+avx2,+fma,+f16c", {"__chkstk", "_fltused", "memset", "memmove"}),
    "arm64-apple-darwin": ("apple-m1", "", {"_memset", "_bzero", "_memmove"}),
    "aarch64-unknown-linux-gnu": ("generic", "", {"memset", "memmove"}),
}
"""The processor, its features, and what code may need: of the C library, but for ``_fltused``, which is given to it."""


@pytest.fixture(scope="module")
def keys() -> list[Key]:
    """The micro-ops of a kernel, of the checks of its sanitized launch, and of the scheduler."""
    found: dict[Key, None] = {}
    need = Library.need
    with pytest.MonkeyPatch.context() as patch, use("emulator"):
        patch.setattr(Library, "need", lambda self, keys, **_: found.update(dict.fromkeys(keys)) or need(self, found))
        x, y = np.ones(64 * 3, np.float32), np.zeros(1, np.float32)
        for sanitize in ("off", "all"):
            everything.configure(1, 64, sanitize=sanitize)(3, x, y)
    return list(found)


@pytest.mark.parametrize("system", SYSTEMS)
def test_code_for_other_systems_needs_the_c_library_alone(
    system: str, keys: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu, features, allowed = SYSTEMS[system]
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    monkeypatch.setattr(host, "described", lambda: ("", cpu, features))
    monkeypatch.setattr(host, "_is_x86", lambda: system.startswith("x86"))
    module = ir.Module()
    for key in keys:
        _emit(module, symbol(key), key)
    target = binding.Target.from_triple(system).create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    parsed = binding.parse_assembly(str(module), binding.create_context())
    parsed.triple, parsed.data_layout = system, str(target.target_data)
    image = target.emit_object(parsed)
    needed = {name for name in missing(image) if not re.fullmatch("_?h[0-9a-f]{24}", name)}
    assert len(keys) > 50 and needed <= allowed


def missing(image: bytes) -> set[str]:
    """The names that an object file (COFF, Mach-O or ELF) refers to and does not define."""
    if image.startswith(b"\x7fELF"):
        return set(_elf(image))
    return set(_macho(image) if image.startswith(b"\xcf\xfa\xed\xfe") else _coff(image))


def _text(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode()


def _coff(image: bytes) -> Iterator[str]:
    start, count = struct.unpack_from("<II", image, 8)
    number = 0
    while number < count:
        name, _, section, _, kind, more = struct.unpack_from("<8sIhHBB", image, start + 18 * number)
        if section == 0 and kind == 2:  # undefined, external
            long = name[:4] == bytes(4)
            offset = start + 18 * count + int.from_bytes(name[4:], "little")
            yield _text(image, offset) if long else name.rstrip(b"\0").decode()
        number += 1 + more


def _macho(image: bytes) -> Iterator[str]:
    at = 32
    for _ in range(struct.unpack_from("<I", image, 16)[0]):
        command, size, symbols, count, strings, _ = struct.unpack_from("<6I", image, at)
        if command == 2:  # LC_SYMTAB
            for number in range(count):
                name, kind = struct.unpack_from("<IB", image, symbols + 16 * number)
                if kind & 0x0F == 1:  # undefined, external
                    yield _text(image, strings + name)
        at += size


def _elf(image: bytes) -> Iterator[str]:
    at, each, count = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQI", image, at + each * number) for number in range(count)]
    for _, kind, _, _, offset, size, strings in sections:
        if kind == 2:  # SHT_SYMTAB
            for place in range(offset + 24, offset + size, 24):
                name, _, _, section = struct.unpack_from("<IBBH", image, place)
                if section == 0:
                    yield _text(image, sections[strings][4] + name)


# Consoles and paths

KERNEL = "from ptxdsl import Ptr, f32, ptx, ptx_kernel\n@ptx_kernel\ndef k(x: Ptr[f32]):\n    {}\n"


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_consoles_that_lack_letters(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(KERNEL.format("x[0] = ptx.tid.x  # \u2192 \u4e2d"), "utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-m", "ptxdsl", "check", str(file)], env=environment, capture_output=True)
    assert done.returncode == 1 and b"PtxTypeError" in done.stdout and b"\\u2192 \\u4e2d" in done.stdout, done


@pytest.mark.parametrize("file", ["C:\\Users\\J\u00f6rg\\my kernels\\new k.py", r"\\server\share\t.py", "D:/a b/n.py"])
def test_paths_of_windows(file: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(KERNEL.format("x[ptx.tid.x] = 1.0"), file, "exec"), names)
    text = names["k"].ptx().replace("\n", "\r\n")
    lines = {statement.loc.file for statement in parse(text).functions[0].body or () if statement.loc is not None}
    assert lines == {file}
    with use("emulator"), pytest.raises(MemoryFault) as caught:
        ptxdsl.load(text)["k"][1, 64](np.zeros(3, np.float32))
    assert caught.value.loc == (file, 4)
