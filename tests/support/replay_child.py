"""``replay_child.py PLAN --child FOLDER FIRST``: a child of a replay, on a stand-in GPU that goes wrong as it is told.

PLAN is JSON: what happens at launches of a kernel in whose PTX some words stand.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from driver_standin import Fault, Launched, Result, install
from emulated_gpu import EmulatedGpu

from ptxdsl.emulator.program import Program
from ptxdsl.gpu_check.bare.children import child
from ptxdsl.gpu_check.bare.tape import Tape


class OddGpu(EmulatedGpu):
    """A GPU with faults of its own."""

    def __init__(self, plan: dict[str, str]) -> None:
        super().__init__()
        self.plan = plan

    def cuModuleGetGlobal(self, out: int, nbytes: int, module: int, name: int) -> None:
        if self._deed(self.program(module)) == "hides variables":
            raise Fault(Result.CUDA_ERROR_NOT_FOUND)
        super().cuModuleGetGlobal(out, nbytes, module, name)

    def _deed(self, program: Program) -> str:
        return next((deed for words, deed in self.plan.items() if words in program.text), "")

    def emulate(self, program: Program, launched: Launched, given: list[tuple[str, bytes]]) -> None:
        deed = self._deed(program)
        if deed == "hangs":
            time.sleep(3600)
        if deed == "faults":
            raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)
        if deed == "refuses":
            raise Fault(Result.CUDA_ERROR_INVALID_VALUE)
        if deed == "dies":
            os.abort()
        super().emulate(program, launched, given)
        address = int.from_bytes(given[-1][1], "little") if given else 0
        if deed in ("differs", "nudges"):  # a bit in the middle of the second number, or its last one
            self.array(address, 8, "u1")[5 if deed == "differs" else 4] ^= 0x40 if deed == "differs" else 1
        if deed == "writes outside":
            self.array(address - 1, 1, "u1")[0] = 0


def main(arguments: list[str]) -> None:
    """The command."""
    plan: dict[str, str] = json.loads(arguments[0])
    folder, first = Path(arguments[2]), int(arguments[3])
    tape = Tape.load(folder)
    gpu: Any = OddGpu(plan)
    for code in tape.codes.values():
        if code.cubin:
            gpu.know(tape.get(code.cubin), tape.get(code.text).decode())
    with install(gpu):
        child(folder, first)


if __name__ == "__main__":
    main(sys.argv[1:])
