"""Coverage of kernels as a plugin of coverage.py: a line counts where a lane has executed it, not where it was traced.

In ``pyproject.toml`` (or ``.coveragerc``)::

    [tool.coverage.run]
    plugins = ["ptxdsl.coverage"]
    branch = true

Then ``coverage run -m pytest`` and ``coverage html``, or ``pytest --cov``: docs/howto/coverage.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage.plugin_support import Plugins

__all__ = ["coverage_init"]


def coverage_init(registry: Plugins, options: Mapping[str, str]) -> None:
    """Register the plugin; coverage.py calls it, with the options of the section ``ptxdsl.coverage``.

    It has none: coverage.py's ConfigError for one, and for a core of coverage.py that asks no plugins.
    """
    from .plugin import KernelPlugin

    plugin = KernelPlugin(options)
    registry.add_configurer(plugin)
    registry.add_file_tracer(plugin)
