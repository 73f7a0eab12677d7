"""A Dask cluster on this machine, of a process for each GPU.

Kernels need nothing else to run under Dask: they are pickled, and functions that launch them are mapped over arrays as
any others are. But the processes of ``distributed.LocalCluster`` would all take the first GPU.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .machine_code.host import cores
from .kernel.backends import choose

__all__ = ["cluster"]


def cluster(n_workers: int | None = None, **options: Any) -> Any:
    """A ``distributed.LocalCluster`` of processes, each of which sees one GPU; the emulator where there is none.

    Args:
        n_workers: one for each GPU if None, or for each core where the emulator runs; further ones share the GPUs.
        options: those of ``LocalCluster``, such as ``memory_limit``.

    On several machines ``dask-cuda`` does the same. Needs ``pip install 'ptxdsl[distributed]'``.

    >>> with cluster(n_workers=2, memory_limit="1GiB") as local, Client(local):  # doctest: +SKIP
    ...     dask.array.map_blocks(function, x).sum().compute()
    """
    from distributed import LocalCluster

    gpus = _gpus()

    class Cluster(LocalCluster):
        def new_worker_spec(self) -> Any:
            specs = super().new_worker_spec()
            if not gpus:
                return specs
            return {name: _with_gpu(spec, gpus[int(name) % len(gpus)]) for name, spec in specs.items()}

    made = Cluster(n_workers=0, **{"threads_per_worker": 1, "processes": True, **options})
    made.scale(n_workers or len(gpus) or cores())
    if not made.asynchronous:
        made.sync(made._correct_state)
    return made


def _gpus() -> list[str]:
    """The GPUs of this process as CUDA_VISIBLE_DEVICES names them."""
    if choose() == "emulator":
        return []
    driver: Any = import_module("cuda.bindings.driver")
    _, count = driver.cuDeviceGetCount()
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return named[:count] or list(map(str, range(count)))


def _with_gpu(spec: dict[str, Any], gpu: str) -> dict[str, Any]:
    options = spec["options"]
    return {**spec, "options": {**options, "env": {**(options.get("env") or {}), "CUDA_VISIBLE_DEVICES": gpu}}}
