"""One check of each function of the library, at a size that takes no time: ``python -m ptxdsl kernels``.

Each module beside this one has those of a domain, as ``ENTRIES``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .entry import Entry, Resources, resources

__all__ = ["LIBRARY", "Entry", "Resources", "named", "resources"]

_SHARED = ("entry", "facts")
"""The modules beside this one that no domain has."""


def _entries() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for domain in sorted(module.name for module in iter_modules(__path__) if module.name not in _SHARED):
        entries = import_module(f".{domain}", __name__).ENTRIES
        found |= {f"{domain}.{function}": entry for function, entry in entries.items()}
    return found


LIBRARY = _entries()
"""By ``domain.function``."""


def named(name: str) -> list[str]:
    """The keys of ``LIBRARY`` that ``name`` means: a key, all of a domain, or a function.

    >>> named("attention.template"), named("template"), named("topk")
    (['attention.template'], ['attention.template'], ['topk.topk'])
    """
    return [key for key in LIBRARY if name in (key, *key.split("."))]
