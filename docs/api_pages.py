"""Writes the pages of the API reference: every public name, by what it is for, with its docstring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ptxdsl
from ptxdsl import PtxError, PtxWarning, ScalarType, kernels

__all__ = ["pages", "write"]

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kernels": ("Kernels and launches", (
        "ptx_kernel", "Kernel", "ptx_func", "load", "Ptr", "Array", "TensorMap", "tensor_map", "Texture", "Sampler",
        "Surface", "In", "Out", "InOut", "use", "device", "backend_name", "capability",
        "processors", "cdiv", "assemble",
    )),
    "language": ("The language", (
        "ptx", "reg", "select", "when", "otherwise", "loop", "break_if", "continue_if", "label", "pack", "unpack",
        "minimum", "maximum", "shared", "dynamic_shared", "local", "const", "global_", "printf", "check", "supports",
        "Support", "Pipeline",
    )),
    "arrays": ("Arrays, streams and graphs", (
        "DeviceArray", "empty", "zeros", "to_device", "from_dlpack", "pinned", "managed", "dtype_of", "Stream", "Event",
        "Graph", "graph", "synchronize",
    )),
    "tools": ("Profiling, debugging, tuning", (
        "profile", "numerics", "forecast", "Forecast", "timeline", "trace_thread", "debug", "outcomes", "compare",
        "autotune", "Config", "Loc",
    )),
}
"""The names of `ptxdsl` that are neither types nor errors nor modules."""
MODULES = (
    "warp", "block", "grid", "cluster", "math", "tiles", "mma", "wgmma", "tcgen05", "tma", "mbarrier", "bench",
    "testing", "torch", "jax",
)
CLASSES = (
    "Kernel", "DeviceArray", "Stream", "Event", "Graph", "Texture", "Sampler", "Surface", "Config", "Support",
    "Pipeline", "Forecast", "forecast", "numerics", "timeline",
)


def pages() -> dict[str, str]:
    """The pages by their names, and the index of them."""
    found = dict(_pages())
    index = "# API reference\n\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(found) + "\n```\n"
    return {**found, "index": index}


def write(folder: Path) -> None:
    """Write the pages that have changed into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _pages() -> Iterator[tuple[str, str]]:
    for name, (title, members) in GROUPS.items():
        yield name, _page(title, members)
    types = [name for name in ptxdsl.__all__ if isinstance(getattr(ptxdsl, name), ScalarType)]
    errors = [name for name in ptxdsl.__all__ if _is_error(getattr(ptxdsl, name))]
    yield "types", _types(types)
    yield "errors", _page("Errors and warnings", errors)
    for name in (*MODULES, *(f"kernels.{name}" for name in kernels.__all__)):
        yield name, f"# ptxdsl.{name}\n\n" + _rst(f".. automodule:: ptxdsl.{name}\n   :members:\n   :imported-members:")


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, (PtxError, PtxWarning))


def _page(title: str, names: list[str] | tuple[str, ...]) -> str:
    return f"# {title}\n\n" + "\n".join(_rst(_directive(name)) for name in names)


def _directive(name: str) -> str:
    found = getattr(ptxdsl, name)
    if isinstance(found, type):
        members = "\n   :members:" if name in CLASSES else ""
        return f".. autoclass:: ptxdsl.{name}{members}"
    if callable(found) and hasattr(found, "__name__"):
        return f".. autofunction:: ptxdsl.{name}"
    return f".. autodata:: ptxdsl.{name}\n   :no-value:"


def _types(names: list[str]) -> str:
    rows = "".join(f"| `{name}` | {getattr(ptxdsl, name).bits} |\n" for name in names)
    head = "# Scalar types\n\n" + _rst(".. autoclass:: ptxdsl.ScalarType\n   :members:")
    return head + f"\n| type | bits |\n| --- | --- |\n{rows}"


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}\n```\n"
