"""PTX kernels as Python functions: traced, checked, assembled, run on the GPU or emulated on the CPU.

Only names live here, and each is imported when it is first asked for: ``import ptxdsl`` loads neither a driver nor
an assembler nor the emulator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import block, kernels, math, warp
    from .config import use
    from .driver import DeviceArray, assemble, empty, to_device, zeros
    from .errors import (
        AliasError, AssembleError, BarrierError, ConfigError, ControlFlowError, DeadlockError, DriverError,
        EmulationError, EscapeError, LaunchError, Loc, LostUpdateError, MemoryFault, ParseError, PerformanceWarning,
        PtxError, PtxTypeError, RaceError, StructureError, TargetError, TraceError, TrapError, TruthError,
        UninitializedError, UnknownInstruction, VerifyError,
    )
    from .kernel import Kernel, load, ptx_func, ptx_kernel
    from .signature import Array, Ptr, TensorMap
    from .trace import (
        break_if, check, const, continue_if, dynamic_shared, label, local, loop, maximum, minimum, otherwise, printf,
        ptx, reg, select, shared, when,
    )
    from .types import (
        b8, b16, b32, b64, b128, bf16, bf16x2, e4m3, e4m3x2, e5m2, e5m2x2, f16, f16x2, f32, f32x2, f64, pred, s8, s16,
        s32, s64, tf32, u8, u16, u32, u64,
    )

__version__ = "0.1.0"

_HOMES = {
    "": "block kernels math warp",
    "config": "use",
    "driver": "DeviceArray assemble empty to_device zeros",
    "errors": "AliasError AssembleError BarrierError ConfigError ControlFlowError DeadlockError DriverError "
    "EmulationError EscapeError LaunchError Loc LostUpdateError MemoryFault ParseError PerformanceWarning PtxError "
    "PtxTypeError RaceError StructureError TargetError TraceError TrapError TruthError UninitializedError "
    "UnknownInstruction VerifyError",
    "kernel": "Kernel load ptx_func ptx_kernel",
    "signature": "Array Ptr TensorMap",
    "trace": "break_if check const continue_if dynamic_shared label local loop maximum minimum otherwise printf ptx reg "
    "select shared when",
    "types": "b8 b16 b32 b64 b128 bf16 bf16x2 e4m3 e4m3x2 e5m2 e5m2x2 f16 f16x2 f32 f32x2 f64 pred s8 s16 s32 s64 tf32 "
    "u8 u16 u32 u64",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ptxdsl' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name) if home else import_module(f".{name}", __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
