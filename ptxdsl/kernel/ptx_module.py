"""Foreign PTX: its kernels, launched as traced ones are, and its variables.

A module is loaded once on each backend, however many kernels it has, since they share its variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import config, ir
from ..collector import paused
from ..errors import LaunchError, caller, did_you_mean, similar, with_article
from ..ir.signature import KernelParameter, TensorMapType
from ..launch import IMAGE_KINDS, ImageArgument
from ..types import dtype_of
from .backends import choose, device_memory
from .compiled_kernel import CompiledKernel, ModuleCache
from .dispatcher import Dispatcher

if TYPE_CHECKING:
    from .device_arrays import DeviceArray

__all__ = ["PtxEntry", "PtxModule", "Variables", "load"]


class _Source:
    """The text of a module, what it says, where it is loaded and what its references are bound to.

    A module and its entries share one, also when they are pickled together. What they are unpickled to is loaded on its
    own, and its variables and references begin as they were here.
    """

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        with paused():
            from ..text.parser import parse
            from ..verify import verify

            self.module = parse(text, filename)
            verify(self.module, foreign=True)
        self.cache = ModuleCache()
        self.references: dict[str, Any] = {}

    def entry(self, name: str) -> PtxEntry:
        return PtxEntry(self, self.module.function(name))

    def entries(self) -> dict[str, PtxEntry]:
        names = [f.name for f in self.module.functions if f.kind == "entry" and f.body is not None]
        return {name: self.entry(name) for name in names}

    def __reduce__(self) -> tuple[object, ...]:
        return _Source, (self.text, self.filename), (self.references, self._values())

    def __setstate__(self, state: tuple[dict[str, Any], Mapping[str, Any]]) -> None:
        references, self.cache.initial = state
        self.references.update(references)

    def _values(self) -> Mapping[str, Any]:
        """The values of the variables where launches run now, if they can have changed there."""
        if choose() == "emulator":
            loaded = self.cache.program is not None
        else:
            loaded = config.current().launch_device in self.cache.modules
        variables = Variables(PtxModule(self)) if loaded else {}
        return {name: variables[name].numpy() for name in variables} or self.cache.initial


class PtxEntry(Dispatcher):
    """A kernel in a module of PTX text."""

    def __init__(self, source: _Source, function: ir.Function) -> None:
        super().__init__(function.name)
        self._source = source
        self.parameters = tuple(
            KernelParameter(p.name, TensorMapType() if p.nbytes == 128 and p.shape else p.type, (p,))
            for p in function.parameters
        )
        self._only = CompiledKernel(
            function.name, self.parameters, source.module, self.warned, text=source.text, cache=source.cache
        )
        self._only.references = source.references

    @property
    def filename(self) -> str:
        """Where its text comes from: a path, or a name in angle brackets."""
        return self._source.filename

    def __reduce__(self) -> tuple[object, ...]:
        return _Source.entry, (self._source, self.entry)

    def compiled(
        self, constants: Mapping[str, Any], arch: str | None = None, options: Iterable[str] = (),  # noqa: ARG002
    ) -> CompiledKernel:
        if constants:
            raise LaunchError(f"kernel `{self.entry}` has no compile-time constants; it is PTX", loc=caller())
        return self._only

    def __repr__(self) -> str:
        return f"<PTX entry {self.entry}({', '.join(f'{p.ptx[0].name}: .{p.ptx[0].type}' for p in self.parameters)})>"


T = TypeVar("T")


class _ByName(Mapping[str, T]):
    """What a module declares, by name; a name of C++ may be given unmangled where only one has it."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def __contains__(self, name: object) -> bool:
        return len(_matching(str(name), self._known)) == 1

    def get(self, key: str, default: Any = None) -> Any:
        """What has that name, ``default`` if nothing does."""
        return self[key] if key in self else default  # noqa: SIM401

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class PtxModule(_ByName[PtxEntry]):
    """The entries of a module of PTX text by their names: ``m["saxpy"][grid, block](arguments)``.

    A name of C++ may be given as it was before the compiler mangled it, if only one entry has it.
    """

    def __init__(self, source: _Source) -> None:
        super().__init__(source.entries())
        self._source = source
        self.text, self.filename, self.module = source.text, source.filename, source.module
        self._declared = {v.name: str(v.type) for v in self.module.variables if v.type.kind == "o"}

    def __reduce__(self) -> tuple[object, ...]:
        return PtxModule, (self._source,)

    @property
    def variables(self) -> Variables:
        """The module's variables in global and constant memory, by name."""
        return Variables(self)  # which keeps the module

    def __getitem__(self, name: str) -> PtxEntry:
        entry: PtxEntry = self._known[_unique_match(name, self._known, self.filename, "entry")]
        return entry

    def __setitem__(self, name: str, value: Any) -> None:
        """Bind a texture, sampler or surface to a ``.texref``, ``.samplerref`` or ``.surfref`` of the module.

        ``m["image"] = ptxdsl.Texture(array)``; it stays bound until another one is.
        """
        if name not in self._declared:
            raise LaunchError(
                f"{self.filename} declares no texture, sampler or surface `{name}`; "
                f"it declares {', '.join(self._declared) or 'none'}", loc=caller(),
                hint=did_you_mean(similar(str(name), self._declared)),
            )
        wanted = IMAGE_KINDS[self._declared[name]]
        if not isinstance(value, ImageArgument) or value.image_kind != wanted:
            made = f"ptxdsl.{wanted.capitalize()}"
            raise LaunchError(
                f"`{name}` is a .{self._declared[name]}, which takes {with_article(made)}, "
                f"not {with_article(type(value).__name__)}",
                loc=caller(), hint=f"`m[\"{name}\"] = {made}({'' if wanted == 'sampler' else 'array'})`",
            )
        self._source.references[name] = value

    def __repr__(self) -> str:
        return f"<PTX module {self.filename}: {', '.join(self._known)}>"


class Variables(_ByName["DeviceArray"]):
    """The variables of a module as device arrays, where a launch without arrays would run.

    Each GPU has variables of its own: ``with ptxdsl.device(1):`` shows those of the second.
    ``m.variables["table"]`` can be read with ``.numpy()``, passed to a kernel, and written:
    ``m.variables["table"] = values``. Whatever a compiler declares as bytes is seen as ``.view(dtype)``.
    """

    def __init__(self, owner: PtxModule) -> None:
        self._owner = owner
        declared = (v for v in owner.module.variables if v.space in ("global", "const") and v.type.kind != "o")
        super().__init__({v.name: v for v in declared})

    def __getitem__(self, name: str) -> DeviceArray:
        from .device_arrays import DeviceArray

        variable = self._known[_unique_match(name, self._known, self._owner.filename, "variable")]
        kernel = next(iter(self._owner.values())).compiled({})
        memory = device_memory(device=config.current().launch_device)
        address = kernel.variable(variable.name, None if memory is None else memory.device)
        shape = tuple(extent or 0 for extent in variable.shape)
        return DeviceArray.over(address, shape, dtype_of(variable.type), memory, self._owner)

    def __setitem__(self, name: str, values: Any) -> None:
        array = self[name]
        array.copy_from(_values(values, array, name))

    def __repr__(self) -> str:
        listed = (f"{v.name}: .{v.type}{''.join(f'[{extent}]' for extent in v.shape)}" for v in self._known.values())
        return f"<variables of {self._owner.filename}: {', '.join(listed)}>"


def _values(values: Any, array: DeviceArray, name: str) -> Any:
    """The values that a variable is to have, in its type: numbers are converted, of arrays of other types the bytes."""
    import numpy as np

    given = np.asarray(values)
    if isinstance(values, (int, float, list, tuple)):
        given = given.astype(array.dtype)
    if given.dtype != array.dtype and given.nbytes == array.nbytes:
        given = np.frombuffer(given.tobytes(), array.dtype).reshape(array.shape)
    if given.dtype != array.dtype or given.shape not in (array.shape, ()):
        raise LaunchError(
            f"variable `{name}` has {array.nbytes} bytes, {array.dtype.name} of shape {array.shape}; "
            f"{given.nbytes} bytes came, {given.dtype.name} of shape {given.shape}", loc=caller(),
        )
    return np.broadcast_to(given, array.shape)


# ---------------------------------------------------------------------------------------------------------------------
# Names


def source_name(name: str) -> str:
    """What C++ calls that whose mangled name this is, without its types; the name itself of all else.

    >>> source_name("_ZN2ns5scaleIfEEvPT_"), source_name("_ZL5table"), source_name("saxpy")
    ('ns::scale', 'table', 'saxpy')
    """
    match = re.match(r"_Z(?:N[rVK]*)?", name)
    parts, at = [], match.end() if match else len(name)
    while found := re.compile(r"L?(\d+)").match(name, at):
        at = found.end() + int(found[1])
        parts.append(name[found.end() : at])
    return "::".join(part for part in parts if not part.startswith(("_GLOBAL__N", "_INTERNAL"))) or name


def _matching(name: str, known: Mapping[str, object]) -> list[str]:
    """The names among those known that one stands for: itself, or what it was before it was mangled."""
    if name in known:
        return [name]
    return [other for other in known if source_name(other) == name or source_name(other).endswith(f"::{name}")]


def _unique_match(name: str, known: Mapping[str, object], filename: str, what: str) -> str:
    found = _matching(str(name), known)
    if len(found) == 1:
        return found[0]
    if found:
        many = "entries" if what == "entry" else "variables"
        raise LaunchError(
            f"{filename} has {len(found)} {many} `{name}`: {', '.join(found)}", loc=caller(),
            hint=f"give the whole name: `{found[0]}`",
        )
    raise LaunchError(
        f"{filename} has no {what} `{name}`; it has {', '.join(known) or 'none'}", loc=caller(),
        hint=did_you_mean(similar(str(name), [*known, *map(source_name, known)])),
    )


def load(source: str | bytes | Path) -> PtxModule:
    """A module of PTX from nvcc, Triton or another compiler: the text itself, or the path of a file.

    The text may be bytes, as NVRTC gives them, and end with zero bytes.

    Parsed and verified here; its entries run on either backend. A 64-bit parameter takes an array or an int.

    >>> m = load('''
    ... .version 7.0
    ... .target sm_75
    ... .address_size 64
    ... .visible .entry seven(.param .u64 x) {
    ...     .reg .b64 %rd<2>;
    ...     ld.param.u64 %rd0, [x];
    ...     st.global.u32 [%rd0], 7;
    ...     ret;
    ... }''')
    >>> import numpy as np
    >>> x = np.zeros(1, np.uint32)
    >>> m["seven"].configure(1, 1, backend="emulator")(x)
    >>> x
    array([7], dtype=uint32)
    """
    if isinstance(source, bytes):
        source = source.decode("utf-8", "replace")
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return PtxModule(_Source(source.rstrip("\0"), "<ptx>"))
    if not isinstance(source, (str, Path)):
        raise LaunchError(f"load takes PTX text or the path of a file, not {source!r}", loc=caller())
    try:
        return PtxModule(_Source(Path(source).read_text("utf-8").rstrip("\0"), str(source)))
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError(f"{str(source)!r} is neither PTX text nor a file of it: {error}", loc=caller()) from None
