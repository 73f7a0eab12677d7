"""Where NVIDIA's command-line tools are, and what each assembler found can do.

The order is that of how well their code runs and how sure they are to fit: the one the user names, the wheels from
PyPI, Triton's (every torch on Linux brings it), the CUDA toolkit. nvJitLink and the driver's linker are not among them:
they compile PTX as relocatable (``ptxas -c``), which costs registers and drops ``setmaxnreg``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .. import config
from ..errors import AssembleError, caller
from ..launch.disk_cache import DiskCache, digest

__all__ = ["Assembler", "NoAssembler", "assemblers", "find_assembler", "find_tool"]


class NoAssembler(AssembleError):
    """There is no ptxas that could do it."""


class Assembler(NamedTuple):
    """A ptxas: its release, the newest PTX version it reads and the targets it knows."""

    path: str
    version: str
    isa: tuple[int, int]
    targets: frozenset[str]

    def knows(self, isa: tuple[int, int], arch: str) -> bool:
        """Whether it reads PTX of version ``isa`` and assembles for ``arch``."""
        return isa <= self.isa and arch in self.targets


def _wheel_folders(package: str) -> Iterator[Path]:
    spec = find_spec(package)
    for location in (spec.submodule_search_locations if spec else None) or ():
        yield Path(location)


def _candidates(tool: str) -> Iterator[Path]:
    for folder in _wheel_folders("nvidia"):
        yield from (folder / home / "bin" / tool for home in ("cu13", "cuda_nvcc", "cuda_nvdisasm", "cuda_cuobjdump"))
    for folder in _wheel_folders("triton"):
        names = ("ptxas-blackwell", "ptxas") if tool == "ptxas" else (tool,)
        yield from (folder / "backends" / "nvidia" / "bin" / name for name in names)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / tool
    on_path = shutil.which(tool)
    if on_path:
        yield Path(on_path)
    yield Path("/usr/local/cuda/bin") / tool


def _found(tool: str) -> Iterator[str]:
    """The paths of a tool, looked for as they are asked for: mostly the first is the one."""
    return (str(path) for path in _candidates(tool) if os.access(path, os.X_OK) and path.is_file())


def find_tool(tool: str) -> list[str]:
    """The paths of a tool, the one to prefer first."""
    return list(dict.fromkeys(_found(tool)))


@lru_cache(maxsize=64)
def _probe(path: str, size: int, changed: int, folder: Path | None) -> Assembler | None:
    """Three runs of 4 ms each, so their output is kept on disk for as long as the file stays the same."""
    disk, key = DiskCache(folder), digest("ptxas", path, str(size), str(changed))
    kept = disk.get(key)
    if kept is None:
        asked = _asked(path)
        if asked is None:
            return None
        kept = json.dumps(asked).encode()
        disk.put(key, kept)
    version, isa, targets = json.loads(kept)
    return Assembler(path, version, (isa[0], isa[1]), frozenset(targets))


def _asked(path: str) -> tuple[str, tuple[int, int], list[str]] | None:
    """What a ptxas says of itself: its release, the newest PTX version and the targets; None if it is none."""
    try:
        banner, versions, manual = (
            subprocess.run([path, option], capture_output=True, text=True, check=True, timeout=60).stdout
            for option in ("--version", "--list-version", "--help")  # --list-arch is younger than CUDA 13.0
        )
    except (OSError, subprocess.SubprocessError):
        return None
    release = re.search(r"V(\d+\.\d+\.\d+)", banner)
    isas = [(int(major), int(minor)) for major, minor in re.findall(r"(\d+)\.(\d+)", versions)]
    return (release[1], max(isas), sorted(set(re.findall(r"'(sm_\w+)'", manual)))) if release and isas else None


def assemblers() -> Iterator[Assembler]:
    """Every ptxas that can be run, the one to prefer first; only the user's own where ``PTXDSL_PTXAS`` names one."""
    settings = config.current()
    for path in [settings.ptxas] if settings.ptxas else _found("ptxas"):
        stat = os.stat(path)
        assembler = _probe(path, stat.st_size, stat.st_mtime_ns, settings.cache_dir)
        if assembler is not None:
            yield assembler


def find_assembler(isa: tuple[int, int], arch: str) -> Assembler:
    """The ptxas to use for PTX of a version and a target; AssembleError says what to install if there is none."""
    found: list[Assembler] = []
    for assembler in assemblers():
        if assembler.knows(isa, arch):
            return assembler
        found.append(assembler)
    settings = config.current()
    if settings.ptxas and not found:
        raise AssembleError(f"PTXDSL_PTXAS is {settings.ptxas!r}, which is no ptxas", loc=caller())
    install = "pip install 'nvidia-cuda-nvcc>=13,<14'"
    if not found:
        raise NoAssembler("no ptxas, NVIDIA's assembler, was found", loc=caller(), hint=install)
    have = "; ".join(f"{a.path} ({a.version}) reads PTX up to {a.isa[0]}.{a.isa[1]}" for a in found)
    raise NoAssembler(
        f"no ptxas found assembles PTX {isa[0]}.{isa[1]} for {arch}: {have}", loc=caller(), hint=f"{install} --upgrade"
    )
