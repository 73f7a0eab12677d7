"""Tensors of the real torch that say they are on a GPU: their memory is the host's, for machines without one.

DLPack's exchange API is torch's own, but for the device: a function of machine code calls it and writes another one.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

__all__ = ["on_gpu"]

_CODE = """
define i32 @read(i64 %object, i64 %tensor) {{
  %torch = inttoptr i64 {read} to i32 (i64, i64)*
  %result = call i32 %torch(i64 %object, i64 %tensor)
  %at = add i64 %tensor, 8
  %device = inttoptr i64 %at to i64*
  store i64 2, i64* %device
  ret i32 %result
}}
define i32 @stream(i32 %kind, i32 %ordinal, i64* %out) {{
  store i64 {stream}, i64* %out
  ret i32 0
}}
"""
_NAME = b"dlpack_exchange_api"


@functools.cache
def _compiled(read: int, stream: int) -> tuple[Any, int, int]:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(_CODE.format(read=read, stream=stream))
    engine = binding.create_mcjit_compiler(module, binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    return engine, engine.get_function_address("read"), engine.get_function_address("stream")


def _table(stream: int) -> tuple[Any, Any]:
    """What keeps the code, and a capsule of the exchange API that writes the GPU's device."""
    import torch

    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    own = api.PyCapsule_GetPointer(torch.Tensor.__dlpack_c_exchange_api__, _NAME)
    table = (ctypes.c_uint64 * 7).from_buffer_copy((ctypes.c_uint64 * 7).from_address(own))
    engine, table[5], table[6] = _compiled(table[5], stream)
    return (engine, table), api.PyCapsule_New(ctypes.addressof(table), _NAME, None)


@contextmanager
def on_gpu(stream: int) -> Iterator[None]:
    """Within, every tensor says that it is on the first GPU, and torch that this is its current stream."""
    import torch

    kept, capsule = _table(stream)
    place = torch.device("cuda:0")
    changed = {
        (torch.Tensor, "device"): property(lambda _: place), (torch.Tensor, "get_device"): lambda _: 0,
        (torch.Tensor, "__dlpack_c_exchange_api__"): capsule,
        (torch._C, "_cuda_getCurrentRawStream"): lambda _: stream,
    }
    with ExitStack() as stack:
        for (owner, name), value in changed.items():
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        yield
    del kept
