"""What can be read off machine code: what a kernel takes of the machine, and its instructions (SASS)."""

from __future__ import annotations

import re
import subprocess
import tempfile
from typing import NamedTuple

from ..errors import AssembleError, caller
from ..isa.targets import Limits
from .ptxas import version_and_target
from .tools import find_tool

__all__ = ["Attributes", "attributes_of", "disassemble"]


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


def attributes_of(text: str, log: str, arch: str, entry: str) -> Attributes:
    """What an entry of a text takes of the machine, by the log of ptxas."""
    _, found, report = log.partition(f"Compiling entry function '{entry}' ")
    if not found:
        raise AssembleError(f"the module has no entry `{entry}`", loc=caller(), log=log)
    report = report.partition("Compiling entry function")[0]

    def number(pattern: str) -> int:
        match = re.search(pattern, report)
        return int(match[1]) if match else 0

    registers = number(r"Used (\d+) registers")
    (major, minor), _ = version_and_target(text)
    return Attributes(
        registers, number(r"(\d+) bytes stack frame"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes cmem\[3\]"),
        number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes spill loads"), number(r"used (\d+) barriers"),
        _max_threads(text, entry, registers), major * 10 + minor, int(re.sub(r"\D", "", arch)),
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
