"""PTX text to machine code through NVIDIA's ptxas, with its diagnostics in terms of Python lines.

ptxas knows only lines of the PTX. The ``.loc`` directives in the text lead from there to the Python line, so nothing
but the text is needed: PTX of nvcc or Triton is reported in terms of its source in the same way. Text goes in and
machine code comes out through pipes; what was assembled before comes from the disk cache without running anything.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from .. import config
from ..errors import AssembleError, Loc, PerformanceWarning, PtxWarning, caller
from ..isa.targets import Limits, assembled
from ..launch.disk_cache import DiskCache, digest
from .tools import Assembler, find_assembler, find_tool

__all__ = ["Assembled", "Attributes", "assemble", "assemble_module", "disassemble"]


_VERSION = re.compile(r"(?<!\S)\.version\s+(\d+)\.(\d+)")
_TARGET = re.compile(r"(?<!\S)\.target\s+(sm_\w+)")


class Attributes(NamedTuple):
    """What a kernel takes of the machine; sizes in bytes, per thread except for shared and constant memory."""

    num_regs: int
    local_size_bytes: int
    shared_size_bytes: int
    const_size_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    num_barriers: int
    max_threads_per_block: int
    ptx_version: int
    binary_version: int


class Assembled(NamedTuple):
    """Machine code for ``arch``, and the assembler's log."""

    cubin: bytes
    log: str
    arch: str
    text: str

    def attributes(self, entry: str) -> Attributes:
        """What ``entry`` takes of the machine, as ptxas reports it."""
        return _attributes(self, entry)


class _Diagnostic(NamedTuple):
    line: int
    severity: str
    message: str


def assemble(text: str, arch: str = "auto", *, options: Sequence[str] = ()) -> bytes:
    """The cubin of a PTX module for a target such as ``"sm_90a"``; ``auto`` is the module's ``.target``.

    ``options`` are passed to ptxas (``"-O1"``, ``"--maxrregcount=64"``). Raises AssembleError, located at the Python
    line where the text has ``.loc``; performance advice (C75xx) becomes a PerformanceWarning.

    >>> cubin = assemble(".version 7.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }", "sm_90")
    >>> cubin[:4]
    b'\\x7fELF'
    """
    return assemble_module(text, arch, options=options).cubin


def assemble_module(text: str, arch: str = "auto", *, options: Sequence[str] = ()) -> Assembled:
    """As :func:`assemble`, with the assembler's log."""
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        raise AssembleError("this is no PTX module: it has no .version or no .target", loc=caller())
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise AssembleError(f"options is a list of strings, not {options!r}", loc=caller(), hint='`options=["-O1"]`')
    chosen = assembled(target[1]) if arch == "auto" else _checked_arch(arch)
    assembler = find_assembler((int(version[1]), int(version[2])), chosen)
    disk = DiskCache(config.current().cache_dir)
    key = digest(text, chosen, assembler.version, *options)
    kept = disk.get(key)
    if kept is None:
        cubin, log = _run(assembler, text, chosen, options)
        disk.put(key, len(log.encode()).to_bytes(8, "little") + log.encode() + cubin)
    else:
        length = int.from_bytes(kept[:8], "little")
        log, cubin = kept[8 : 8 + length].decode(), kept[8 + length :]
    _warn(text, log)
    return Assembled(cubin, log, chosen, text)


def _checked_arch(arch: str) -> str:
    if not isinstance(arch, str) or not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise AssembleError(f"{arch!r} is no target", loc=caller(), hint='write `arch="sm_90a"` or `arch="auto"`')
    return arch


def _run(assembler: Assembler, text: str, arch: str, options: Sequence[str]) -> tuple[bytes, str]:
    lineinfo = ["-lineinfo"] if re.search(r"^\s*\.loc\s", text, re.MULTILINE) and "-g" not in options else []
    command = [assembler.path, f"-arch={arch}", "-v", *lineinfo, *options, "/dev/stdin", "-o", "/dev/stdout"]
    start = perf_counter()
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    config.report("info", f"ptxas {assembler.version} for {arch} took {(perf_counter() - start) * 1e3:.1f} ms")
    log = done.stderr.decode(errors="replace")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise AssembleError(f"ptxas {assembler.version} crashed ({name}) on this PTX for {arch}", loc=caller(), log=log)
    if done.returncode or not done.stdout.startswith(b"\x7fELF"):
        raise _refusal(assembler, text, arch, log + done.stdout.decode(errors="replace"))
    return done.stdout, log


# ---------------------------------------------------------------------------------------------------------------------
# Diagnostics of ptxas

_LINE = re.compile(r"^ptxas (?:\S+, line (\d+); )?(error|fatal|warning|info)\s*: (.*)$", re.MULTILINE)
_CODE = re.compile(r"\(C\d+\) ")


def _diagnostics(log: str) -> list[_Diagnostic]:
    return [_Diagnostic(int(line or 0), severity, message) for line, severity, message in _LINE.findall(log)]


def _python_line(lines: Sequence[str], ptx_line: int) -> Loc | None:
    """The ``.loc`` in force at a line of the text."""
    for text in reversed(lines[:ptx_line]):
        found = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text)
        if found:
            file = re.search(rf'^\s*\.file\s+{found[1]}\s+"((?:[^"\\]|\\.)*)"', "\n".join(lines), re.MULTILINE)
            return Loc(re.sub(r"\\(.)", r"\1", file[1]), int(found[2])) if file else None
        if re.match(r"\s*(\.visible\s+|\.weak\s+)*\.(entry|func)\b", text):
            return None
    return None


def _refusal(assembler: Assembler, text: str, arch: str, log: str) -> AssembleError:
    lines = text.splitlines()
    errors = [d for d in _diagnostics(log) if d.severity in ("error", "fatal") and "aborted due to" not in d.message]
    head = f"ptxas {assembler.version} does not assemble this for {arch}"
    if not errors:
        return AssembleError(f"{head}: {log.strip() or 'it says nothing'}", loc=caller(), log=log)
    loc = _python_line(lines, errors[0].line) if errors[0].line else caller()
    higher = "SM version specified by .target is higher" in errors[0].message
    target = _TARGET.search(text)
    hint = f'the PTX is for {target[1]}: `arch="{target[1]}"`' if higher and target else None
    parts = [head]
    for line, _, message in errors:
        parts.append(f"  {message}")
        if line:
            source = lines[line - 1].strip() if line <= len(lines) else ""
            place = _python_line(lines, line)
            parts.append(f"    PTX line {line}: {source}" + (f"  ({place.file}:{place.line})" if place else ""))
    return AssembleError("\n".join(parts), loc=loc, hint=hint, log=log)


_registry: dict[Any, Any] = {}
_STACK = "; a launch says how many bytes a thread may take: `.configure(grid, block, stack=16384)`"


def _warn(text: str, log: str) -> None:
    """Performance advice and warnings as Python warnings, at the Python line of the instruction that they are about."""
    lines: list[str] = []
    for line, severity, message in _diagnostics(log):
        if severity != "warning" and not _CODE.match(message):
            continue
        lines = lines or text.splitlines()
        loc = _python_line(lines, line or _mentioned(lines, message)) or Loc("<ptx>", line or 1)
        kind = PerformanceWarning if "Performance" in message else PtxWarning
        advice = _STACK if message.startswith("Stack size") else ""
        warnings.warn_explicit(f"ptxas: {message}{advice}", kind, loc.file, loc.line, registry=_registry)


def _mentioned(lines: Sequence[str], message: str) -> int:
    """The line of the first instruction that a message without a line names, 0 if it names none."""
    words = set(re.findall(r"[a-z]\w+(?:\.\w+)*", message))
    for number, text in enumerate(lines, 1):
        opcode = re.match(r"\s*(?:@!?%?\w+\s+)?([a-z]\w*)((?:\.[\w:]+)*)", text)
        if opcode and (opcode[1] in words or any((opcode[1] + opcode[2]).startswith(f"{word}.") for word in words)):
            return number
    return 0


def _attributes(assembled: Assembled, entry: str) -> Attributes:
    _, found, report = assembled.log.partition(f"Compiling entry function '{entry}' ")
    if not found:
        raise AssembleError(f"the module has no entry `{entry}`", loc=caller(), log=assembled.log)
    report = report.partition("Compiling entry function")[0]

    def number(pattern: str) -> int:
        match = re.search(pattern, report)
        return int(match[1]) if match else 0

    registers = number(r"Used (\d+) registers")
    version = _VERSION.search(assembled.text)
    assert version is not None
    return Attributes(
        registers, number(r"(\d+) bytes stack frame"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes cmem\[3\]"),
        number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes spill loads"), number(r"used (\d+) barriers"),
        _max_threads(assembled.text, entry, registers), int(version[1]) * 10 + int(version[2]),
        int(re.sub(r"\D", "", assembled.arch)),
    )


def _max_threads(text: str, entry: str, registers: int) -> int:
    """What the entry's bound and the register file allow, which gives registers by 8 a thread to whole warps."""
    head = re.search(rf"\.entry\s+{re.escape(entry)}\b[^{{]*", text)
    bounds = re.search(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", head[0]) if head else None
    most = Limits()
    bound = most.threads
    if bounds:
        bound = int(bounds[1]) * int(bounds[2] or 1) * int(bounds[3] or 1)
    by_registers = most.block_registers // (max(registers + 7, 8) // 8 * 8) // 32 * 32
    return min(bound, by_registers, most.threads)


def disassemble(cubin: bytes, *, lines: bool = False) -> str:
    """The SASS of a cubin by nvdisasm; with ``lines`` each Python line stands before its instructions."""
    tools = find_tool("nvdisasm")
    if not tools:
        raise AssembleError(
            "no nvdisasm, NVIDIA's disassembler, was found", loc=caller(),
            hint="pip install 'nvidia-cuda-nvdisasm>=13.2,<14'",
        )
    command = [tools[0], "-c", *(["-g"] if lines else []), "/dev/stdin"]
    with tempfile.TemporaryFile() as file:  # it wants to seek, which a pipe cannot
        file.write(cubin)
        file.seek(0)
        done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    if done.returncode:
        log = done.stderr.decode(errors="replace")
        raise AssembleError(f"nvdisasm cannot read this cubin: {log.strip()}", loc=caller(), log=log)
    return done.stdout.decode()
