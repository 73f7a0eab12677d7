"""XLA's foreign function interface as we know it, against the header that jaxlib has, and its calls for a GPU."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin
from gpu_harness import make_saxpy, run_saxpy

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'ptxdsl[jax]'")

import ptxdsl.jax  # noqa: E402
from ptxdsl import f32, zeros  # noqa: E402
from ptxdsl.gpu import tools  # noqa: E402
from ptxdsl.jax import launches, xla_ffi  # noqa: E402

HEADER = (Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text("utf-8")
STRUCTURES = {
    "XLA_FFI_Api_Version": xla_ffi._Version, "XLA_FFI_Metadata": xla_ffi._Metadata, "XLA_FFI_Buffer": xla_ffi._Buffer,
    "XLA_FFI_ByteSpan": xla_ffi._Bytes, "XLA_FFI_Args": xla_ffi._Values, "XLA_FFI_Rets": xla_ffi._Values,
    "XLA_FFI_Attrs": xla_ffi._Attributes, "XLA_FFI_Error_Create_Args": xla_ffi._ErrorArguments,
    "XLA_FFI_Stream_Get_Args": xla_ffi._StreamArguments, "XLA_FFI_CallFrame": xla_ffi._Frame,
    "XLA_FFI_DeviceOrdinal_Get_Args": xla_ffi._OrdinalArguments,
}
SIZES = {
    "size_t": 8, "int": 4, "int32_t": 4, "int64_t": 8, "uint32_t": 4, "XLA_FFI_DataType": 4, "XLA_FFI_Error_Code": 4,
    "XLA_FFI_ExecutionStage": 4, "XLA_FFI_Handler_Traits": 4, "XLA_FFI_TypeId": 8,
}


def fields(name: str) -> list[tuple[str, int]]:
    """The fields of a structure of the header, and their sizes in bytes."""
    match = re.search(rf"struct {name} {{(.*?)\n}}", HEADER, re.DOTALL)
    assert match is not None, name
    body = re.sub(r"//[^\n]*", "", match[1])
    found = []
    for kind, pointer, field in re.findall(r"(?:const )?([\w]+)( ?\*+)? (?:\*+)?(\w+);", body.replace("struct ", "")):
        size = 8 if pointer else SIZES.get(kind) or ctypes.sizeof(STRUCTURES[kind])
        found.append((field, size))
    return found


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_have_the_fields_of_the_header(name: str) -> None:
    structure, offset = STRUCTURES[name], 0
    declared = fields(name)
    assert len(declared) >= len(structure._fields_) >= 2
    for (_, size), (own, kind) in zip(declared, structure._fields_):
        align = min(size, 8)
        offset = -(-offset // align) * align
        assert (getattr(structure, own).offset, ctypes.sizeof(kind)) == (offset, size), own
        offset += size


def test_functions_stand_in_the_order_of_the_header() -> None:
    names = re.findall(r"^  _XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_(\w+)\);", HEADER, re.MULTILINE)
    assert tuple(names[: len(xla_ffi._FUNCTIONS)]) == xla_ffi._FUNCTIONS
    assert re.search(r"#define XLA_FFI_API_MAJOR (\d+)", HEADER)[1] == str(xla_ffi._MAJOR)  # type: ignore[index]


def test_types_have_the_numbers_of_the_header() -> None:
    numbers = {int(n): name for name, n in re.findall(r"XLA_FFI_DataType_(\w+) = (\d+)", HEADER)}
    short = {"bool": "PRED", "float8_e4m3fn": "F8E4M3FN", "bfloat16": "BF16", "complex64": "C64", "complex128": "C128"}
    for number, name in xla_ffi._DTYPES.items():
        letters = {"uint": "U", "int": "S", "float": "F"}
        made = re.sub(r"^(uint|int|float)", lambda match: letters[match[1]], name).replace("_", "").upper()
        assert numbers[number] == short.get(name, made)
    smaller = {n for n, name in numbers.items() if re.fullmatch(r"INVALID|TOKEN|[SU][124]|F4E2M1FN", name)}
    assert set(numbers) == set(xla_ffi._DTYPES) | smaller


# -- a GPU


class Runtime:
    """As much of XLA as a handler asks for, in memory laid out as XLA's is."""

    def __init__(self, stream: int) -> None:
        self.stream, self.errors, self.kept = stream, [], []
        self.api = xla_ffi._Api()
        for name, function in {
            "Error_Create": self.create, "Stream_Get": self.get_stream, "DeviceOrdinal_Get": self.get_ordinal,
        }.items():
            setattr(self.api, name, self.keep(xla_ffi._function(function)))

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    def create(self, address: int) -> int:
        self.errors.append(xla_ffi._ErrorArguments.from_address(address).message.decode())
        return 1

    def get_stream(self, address: int) -> None:
        xla_ffi._StreamArguments.from_address(address).stream = self.stream

    def get_ordinal(self, address: int) -> None:
        xla_ffi._OrdinalArguments.from_address(address).ordinal = 0

    def values(self, arrays: list[tuple[int, int, tuple[int, ...]]]) -> Any:
        """Arguments or results: addresses, numbers of types, shapes."""
        buffers = []
        for address, dtype, shape in arrays:
            dims = self.keep((ctypes.c_int64 * len(shape))(*shape))
            buffers.append(self.keep(xla_ffi._Buffer(0, None, dtype, address, len(shape), dims)))
        pointers = self.keep((ctypes.POINTER(xla_ffi._Buffer) * len(buffers))(*map(ctypes.pointer, buffers)))
        return xla_ffi._Values(0, None, len(buffers), None, pointers)

    def call(self, handler: Any, arguments: Any, results: Any, launch: str) -> Any:
        """What the handler returns: nothing, or an error."""
        texts = [self.keep(ctypes.create_string_buffer(text.encode())) for text in ("launch", launch)]
        spans = [self.keep(xla_ffi._Bytes(ctypes.addressof(text), len(text) - 1)) for text in texts]
        name, value = (self.keep((ctypes.POINTER(xla_ffi._Bytes) * 1)(ctypes.pointer(span))) for span in spans)
        frame = xla_ffi._Frame(
            0, None, ctypes.pointer(self.api), None, 3, self.values(arguments), self.values(results),
            xla_ffi._Attributes(0, None, 1, None, name, value),
        )
        return handler(ctypes.pointer(frame))


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
def test_a_launch_on_a_gpu_is_in_the_stream_of_xla(
    cu: Standin, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    kept: list[str] = []
    call: Callable[..., Any] = jax.ffi.ffi_call

    def ffi_call(*args: Any, **options: Any) -> Any:
        def noted(*operands: Any, launch: str) -> Any:
            kept.append(launch)
            return call(*args, **options)(*operands, launch=launch)

        return noted

    monkeypatch.setattr(jax.ffi, "ffi_call", ffi_call)
    saxpy = make_saxpy()
    f = ptxdsl.jax.function(saxpy, grid=lambda x: x.size // 32 + 1, block=32)
    x, y = rng.standard_normal((2, 100)).astype(np.float32)
    jax.jit(lambda n: f(n, 2.0, x, y)).lower(100)  # traced, and not run
    on_gpu = [zeros(100, f32, backend="gpu") for _ in range(2)]
    for array, values in zip(on_gpu, (x, y)):
        array.copy_from(values)
    number = zeros((), np.int32, backend="gpu")
    number.copy_from(np.array(100, np.int32))
    cu.kernel = run_saxpy(cu)
    runtime = Runtime(0x99)
    arrays = [(array.address, 11, (100,)) for array in on_gpu]
    arguments = [arrays[1], (number.address, 4, ()), arrays[0]]  # y is an argument and a result in one place
    assert runtime.call(launches._handlers[1], arguments, [arrays[1]], kept[-1]) is None, runtime.errors
    np.testing.assert_allclose(on_gpu[1].numpy(), 2 * x + y, rtol=1e-6)
    assert [(launched.grid[0], launched.stream) for launched in cu.launches] == [(4, 0x99)]

    number.copy_from(np.array(-100, np.int32))
    assert runtime.call(launches._handlers[1], arguments, [arrays[1]], kept[-1]) == 1
    assert runtime.errors[0].startswith(
        "LaunchError: argument `n` of kernel `saxpy` is the int -100; u32 wants an int from 0 to 4294967295\n"
    )
    assert len(cu.launches) == 1
