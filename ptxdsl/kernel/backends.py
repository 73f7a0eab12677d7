"""Which backend a launch takes: the GPU or the emulator. Each is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import config
from ..errors import LaunchError, caller

if TYPE_CHECKING:
    from ..launch.device_memory import DeviceMemory

__all__ = ["backend_name", "capability", "check", "choose", "device_memory", "processors"]

_H100 = 132


def check(backend: str | None) -> str | None:
    """The backend that a caller names; LaunchError if there is no such."""
    if backend is None or backend in config.BACKENDS:
        return backend
    raise LaunchError(
        f"backend is one of {', '.join(config.BACKENDS)}, not {backend!r}", loc=caller(), hint='`backend="emulator"`'
    )


def choose(backend: str | None = None) -> str:
    """``"gpu"`` or ``"emulator"``: what the caller, :func:`~ptxdsl.use` or ``PTXDSL_BACKEND`` wants.

    ``auto`` is a GPU if there is one. LaunchError if a GPU is wanted and there is none.
    """
    wanted = check(backend) or config.current().backend
    if wanted == "emulator":
        return wanted
    from ..gpu.device import unavailable

    problem = unavailable()
    if problem is None:
        return "gpu"
    if wanted == "gpu":
        raise LaunchError(
            f"the backend is gpu, and there is none: {problem}", loc=caller(),
            hint='run on the CPU: `with ptxdsl.use("emulator"):` or PTXDSL_BACKEND=emulator',
        )
    return "emulator"


def backend_name(backend: str | None = None) -> str:
    """Where a launch would run now: ``"emulator"``, or the name of the GPU.

    >>> from ptxdsl import use
    >>> with use("emulator"):
    ...     backend_name()
    'emulator'
    """
    if choose(backend) == "emulator":
        return "emulator"
    from ..gpu.device import driver

    return driver(config.current().launch_device).name


def processors(backend: str | None = None) -> int:
    """The multiprocessors of the GPU that a launch would take now; of the emulator 132, as an H100 has.

    >>> from ptxdsl import use
    >>> with use("emulator"):
    ...     processors()
    132
    """
    if choose(backend) == "emulator":
        return _H100
    from ..gpu.device import driver

    return driver(config.current().device).processors


def capability(backend: str | None = None) -> int:
    """The compute capability of the GPU that a launch would take now, 90 for 9.0; of the emulator, which has all, 0.

    >>> from ptxdsl import use
    >>> with use("emulator"):
    ...     capability()
    0
    """
    if choose(backend) == "emulator":
        return 0
    from ..gpu.device import driver

    return driver(config.current().device).capability


def device_memory(backend: str | None = None, device: int | None = None) -> DeviceMemory | None:
    """The memory in which launches find their device arrays: that of the GPU, or None for the host's.

    ``device`` is an ordinal; that of :func:`~ptxdsl.device` where it is None. The emulator has one memory for all.
    """
    if device is not None and (isinstance(device, bool) or not isinstance(device, int) or device < 0):
        raise LaunchError(f"device is the ordinal of a GPU, not {device!r}", loc=caller(), hint="`device=0`")
    if choose(backend) == "emulator":
        return None
    from ..gpu.device import driver

    return driver(config.current().device if device is None else device).memory
