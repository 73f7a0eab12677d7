"""PTX kernels as Python functions: traced, checked, assembled, run on the GPU or emulated on the CPU.

Only names live here, and each is imported when it is first asked for: ``import ptxdsl`` loads neither a driver nor
an assembler nor the emulator.

PYTEST_DONT_REWRITE: ``coverage run -m pytest`` imports this before pytest does, and there is nothing to rewrite.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .collector import paused

if TYPE_CHECKING:
    from . import (
        bench as bench, block as block, cluster as cluster, grid as grid, math as math, mbarrier as mbarrier,
        mma as mma, tcgen05 as tcgen05, testing as testing, tiles as tiles, tma as tma, warp as warp, wgmma as wgmma,
    )
    from . import jax as jax, torch as torch
    from . import kernels as kernels
    from .config import device, use
    from .gpu.assembler import assemble
    from .emulator.outcomes.api import outcomes
    from .emulator.debugger.prompt import debug
    from .emulator.tools.numerics import numerics
    from .emulator.tools.profile import profile
    from .emulator.tools.thread_trace import trace_thread
    from .forecasting.forecast import Forecast, forecast
    from .errors import (
        AliasError, AssembleError, BarrierError, ConfigError, ControlFlowError, DeadlockError, DriverError,
        EmulationError, EscapeError, LaunchError, Loc, LostUpdateError, MemoryFault, NumericalError, ParseError,
        PerformanceWarning, PtxError, PtxTypeError, PtxWarning, RaceError, StructureError, TargetError, TraceError,
        TrapError, TruthError, UninitializedError, UnknownInstruction, VerifyError,
    )
    from .pipeline import Pipeline
    from .testing.comparing import compare
    from .timelines.timeline import timeline
    from .tuning import Config, autotune
    from .isa.support import Support, supports
    from .kernel import Kernel, backend_name, capability, load, processors, ptx_kernel
    from .kernel.device_arrays import DeviceArray, empty, from_dlpack, managed, pinned, to_device, zeros
    from .launch.directions import In, InOut, Out
    from .kernel.streams import Event, Graph, Stream, graph, synchronize
    from .ir.signature import Array, Ptr, TensorMap
    from .kernel.textures import Sampler, Surface, Texture
    from .launch.tensor_maps import tensor_map
    from .language import (
        break_if, cdiv, check, const, continue_if, dynamic_shared, global_, label, local, loop, maximum, minimum,
        otherwise, pack, printf, ptx, ptx_func, reg, select, shared, unpack, when,
    )
    from .types import ScalarType, dtype_of
    from .types import (  # one class to a type checker: `KernelOperand` says why
        KernelOperand as b8, KernelOperand as b16, KernelOperand as b32, KernelOperand as b64, KernelOperand as b128,
        KernelOperand as bf16, KernelOperand as bf16x2, KernelOperand as e2m1,
        KernelOperand as e2m1p4x4, KernelOperand as e2m1x2, KernelOperand as e2m1x4, KernelOperand as e2m3,
        KernelOperand as e2m3x2, KernelOperand as e2m3x4, KernelOperand as e3m2, KernelOperand as e3m2x2,
        KernelOperand as e3m2x4, KernelOperand as e4m3, KernelOperand as e4m3x2, KernelOperand as e4m3x4,
        KernelOperand as e5m2, KernelOperand as e5m2x2, KernelOperand as e5m2x4, KernelOperand as f16,
        KernelOperand as f16x2, KernelOperand as f32, KernelOperand as f32x2, KernelOperand as f64,
        KernelOperand as pred, KernelOperand as s2f6x2, KernelOperand as s8, KernelOperand as s8x4,
        KernelOperand as s16, KernelOperand as s16x2, KernelOperand as s32, KernelOperand as s64,
        KernelOperand as samplerref, KernelOperand as surfref, KernelOperand as texref, KernelOperand as tf32,
        KernelOperand as u8, KernelOperand as u8x4, KernelOperand as u16, KernelOperand as u16x2, KernelOperand as u32,
        KernelOperand as u64, KernelOperand as ue5m3x2, KernelOperand as ue8m0, KernelOperand as ue8m0x2,
        KernelOperand as ue8m0x4,
    )

__version__ = "0.1.0"

__all__ = [
    "AliasError", "Array", "AssembleError", "BarrierError", "Config", "ConfigError", "ControlFlowError",
    "DeadlockError", "DeviceArray", "DriverError", "EmulationError", "EscapeError", "Event", "Forecast", "Graph", "In",
    "InOut", "Kernel", "LaunchError", "Loc", "LostUpdateError", "MemoryFault", "NumericalError", "Out", "ParseError",
    "PerformanceWarning", "Pipeline", "Ptr", "PtxError", "PtxTypeError", "PtxWarning", "RaceError", "Sampler",
    "ScalarType", "Stream", "StructureError", "Support", "Surface", "TargetError", "TensorMap", "Texture", "TraceError",
    "TrapError", "TruthError", "UninitializedError", "UnknownInstruction", "VerifyError", "__version__", "assemble",
    "autotune", "b8", "b16", "b32", "b64", "b128", "backend_name", "bf16", "bf16x2", "break_if", "capability", "cdiv",
    "check", "compare", "const", "continue_if", "debug", "device", "dtype_of", "dynamic_shared", "e2m1", "e2m1p4x4",
    "e2m1x2", "e2m1x4", "e2m3", "e2m3x2", "e2m3x4", "e3m2", "e3m2x2", "e3m2x4", "e4m3", "e4m3x2", "e4m3x4", "e5m2",
    "e5m2x2", "e5m2x4", "empty", "f16", "f16x2", "f32", "f32x2", "f64", "forecast", "from_dlpack", "global_", "graph",
    "label", "load", "local", "loop", "managed", "maximum", "minimum", "numerics", "otherwise", "outcomes", "pack",
    "pinned", "pred", "printf", "processors", "profile", "ptx", "ptx_func", "ptx_kernel", "reg", "s2f6x2", "s8", "s8x4",
    "s16", "s16x2", "s32", "s64", "samplerref", "select", "shared", "supports", "surfref", "synchronize", "tensor_map",
    "texref", "tf32", "timeline", "to_device", "trace_thread", "u8", "u8x4", "u16", "u16x2", "u32", "u64", "ue5m3x2",
    "ue8m0", "ue8m0x2", "ue8m0x4", "unpack", "use", "when", "zeros",
]

_SUBMODULES = (
    "bench", "block", "cluster", "grid", "jax", "kernels", "math", "mbarrier", "mma", "tcgen05", "testing",
    "tiles", "tma", "torch", "warp", "wgmma",
)
_HOMES = (
    "errors", "types", "ir.signature", "language", "config", "kernel", "kernel.device_arrays", "kernel.streams",
    "launch.directions", "isa.support", "kernel.textures", "launch.tensor_maps", "pipeline", "tuning", "gpu.assembler",
    "testing.comparing", "emulator.tools.profile", "emulator.tools.numerics", "emulator.tools.thread_trace",
    "emulator.debugger.prompt", "emulator.outcomes.api", "forecasting.forecast", "timelines.timeline",
)
"""The modules that define the public names, the cheapest to import first."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name in __all__:
        with paused():
            import_module(".tracebacks", __name__).install()
            for home in _HOMES:
                module = import_module(f".{home}", __name__)
                if name in module.__all__:
                    globals()[name] = getattr(module, name)
                    return globals()[name]
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(f"module 'ptxdsl' has no attribute {name!r}")
    from .language.foreign_names import unknown_name

    raise unknown_name(name, __all__)


def __dir__() -> list[str]:
    from importlib.util import find_spec

    absent = {name for name in ("jax", "torch") if find_spec(name) is None}
    return sorted({*__all__, *_SUBMODULES} - absent)
