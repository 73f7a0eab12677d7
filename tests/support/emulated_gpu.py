"""A stand-in driver whose kernels the emulator runs, from the PTX that their machine code was assembled from."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from driver_standin import Fault, Launched, Result, image_size, put
from image_standin import ImageStandin

from ptxdsl.collector import paused
from ptxdsl.emulator.program import Program
from ptxdsl.errors import EmulationError
from ptxdsl.gpu import assembler
from ptxdsl.launch import Buffer, LaunchConfig, Scalar
from ptxdsl.text import parse

__all__ = ["EmulatedGpu"]


class EmulatedGpu(ImageStandin):
    """A GPU that the emulator is. A fault on the emulator is an illegal address, which is for good."""

    def __init__(self, capability: int = 90) -> None:
        super().__init__(capability)
        self.texts: dict[bytes, str] = {}
        """The PTX of machine code."""
        self.programs: dict[int, Program] = {}
        self.limits["SHARED_SIZE_BYTES"] = 0
        self.busy = 1 << 20
        self.faults: list[EmulationError] = []

    def know(self, cubin: bytes, text: str) -> None:
        """Say what machine code was assembled from."""
        self.texts[cubin[: image_size(cubin)]] = text

    @contextmanager
    def knowing(self) -> Iterator[None]:
        """Take note of all that is assembled meanwhile."""
        made = assembler.Assembled

        def noted(cubin: bytes, log: str, arch: str, text: str) -> assembler.Assembled:
            if len(cubin) >= 64:  # some tests have an assembler of their own
                self.know(cubin, text)
            return made(cubin, log, arch, text)

        assembler.Assembled = noted  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            assembler.Assembled = made  # type: ignore[misc]

    def program(self, module: int) -> Program:
        """The emulator's of a module that was loaded."""
        if module not in self.programs:
            image = self.modules[module]
            text = self.texts[image] if image.startswith(b"\x7fELF") else image.rstrip(b"\0").decode()
            self.programs[module] = Program(parse(text), text)
        return self.programs[module]

    def cuModuleGetGlobal(self, out: int, nbytes: int, module: int, name: int) -> None:
        program, text = self.program(module), ctypes.string_at(name)
        size = next((v.nbytes for v in program.module.variables if v.name == text.decode()), None)
        if size is None:
            raise Fault(Result.CUDA_ERROR_NOT_FOUND)
        address = program.variable(text.decode())
        self.globals[module, text] = size, (ctypes.c_char * size).from_address(address)
        put(out, address)
        if nbytes:
            put(nbytes, size)

    def bound(self, launched: Launched, pointers: int) -> Callable[[], object]:
        program = self.program(launched.function.module)
        declared = program.module.function(launched.function.name).parameters
        addresses = (ctypes.c_uint64 * max(len(declared), 1)).from_address(pointers)
        given = [(p.name, ctypes.string_at(address, p.nbytes)) for p, address in zip(declared, addresses)]
        return lambda: self.emulate(program, launched, given)

    def emulate(self, program: Program, launched: Launched, given: list[tuple[str, bytes]]) -> None:
        """Run a launch whose parameters have these names and bytes."""
        asked = launched.attributes
        config = LaunchConfig(
            launched.grid, launched.block, launched.shared, asked.get("CLUSTER_DIMENSION"),
            bool(asked.get("COOPERATIVE")),
        )
        arguments = [self._argument(name, data) for name, data in given]
        passed = {each.address for each in arguments if isinstance(each, Buffer)}
        arguments += [_memory("a device array", a, n) for a, (n, _) in list(self.memory.items()) if a not in passed]
        try:
            with paused():  # what is collected meanwhile would be given back before the launch is done
                program.run(launched.function.name, config, arguments)
        except EmulationError as error:
            self.faults.append(error)
            raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True) from None

    def _argument(self, name: str, data: bytes) -> Scalar | Buffer:
        value = int.from_bytes(data, "little")
        if len(data) == 8:
            for start, (size, _) in list(self.memory.items()):
                if start <= value < start + size:
                    return _memory(name, value, start + size - value)
        return Scalar(name, data)


def _memory(name: str, address: int, nbytes: int) -> Buffer:
    return Buffer(name, address, nbytes, "uint8", (nbytes,), (1,), True, None)
