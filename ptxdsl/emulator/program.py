"""A PTX module that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Union

from .. import locks
from ..collector import paused
from ..config import observer
from ..executed_lines import Recorder, recorder
from ..ir import Instruction, Module
from .codegen.code import Code
from .codegen.kept_code import keep, key_of, recall
from .machine.address_spaces import AddressSpaces, ModuleMemory
from .machine.array_history import note
from .machine.warp_rows import has_odd_rows
from .runtime.block_state import LaunchState
from .runtime.launcher import Launcher

if TYPE_CHECKING:
    from ..launch import Buffer, LaunchConfig, Scalar
    from .analysis.divergence import Shape3
    from .machine.texture_pool import ModuleReference
    from .rewrite.index_checks import Annotations
    from .sanitizer.needs import Checks

__all__ = ["Program", "load"]

BOUNDS: Literal["memory"] = "memory"
"""In place of the sanitizer's checks: code of its own, in which accesses out of bounds may be passed over."""
DEFERS = -1
"""In place of the number of annotations: a seed says when copies are made and where warps stop at strong accesses."""
Tools = Union["Checks", Literal["memory"], None]
Launches = Callable[["Sequence[Scalar | Buffer]"], None]
"""Launches a kernel with arguments."""


class Program:
    """A loaded module: its variables in memory, its kernels lowered as they are launched."""

    def __init__(self, module: Module | Callable[[], Module], text: str = "") -> None:
        """``module`` is what makes it where ``text`` is its PTX: a kernel that is on disk does not need it."""
        self._read, self.text = module, text
        self._placed: ModuleMemory | None = None
        self._lock = locks.rlock()
        self._spaces: dict[tuple[str, Shape3 | None, int], AddressSpaces] = {}
        self._codes: dict[tuple[str, Shape3, bool, Tools, Shape3 | None, int], Code] = {}
        self._wraps: dict[tuple[str, Shape3, Tools, Shape3 | None, int], set[int]] = {}
        self._shapes: dict[tuple[str, Shape3], Shape3] = {}
        """Which threads make the warps of a block, where no tool observes them."""
        self._asked: set[tuple[str, Shape3]] = set()
        """Kernels that have been looked for on disk."""
        self._annotations: list[tuple[Module, Annotations]] = []

    def _annotated(self, traced: Module) -> int:
        """The number of the annotations of a module that was traced, 0 where it has none."""
        from .rewrite.index_checks import Annotations

        known = self._annotations
        same = (n for n, (module, _) in enumerate(known) if module is traced or _alike(module, traced))
        number = next(same, len(known))
        if number == len(known):
            known.append((traced, Annotations(traced, self.module)))
        return number + 1 if self._annotations[number][1] else 0

    @cached_property
    def module(self) -> Module:
        """What the text says."""
        with self._lock:
            if not isinstance(self._read, Module):
                self._read = self._read()
            return self._read

    @cached_property
    def _synchronises(self) -> bool:
        """Whether some instruction may complete later than it stands, or accesses memory strongly."""
        return any(
            isinstance(statement, Instruction) and (statement.form.effects.completes or statement.form.effects.strong)
            for function in self.module.functions for statement in function.body or ()
        )

    @cached_property
    def _memory(self) -> ModuleMemory:
        with self._lock:
            if self._placed is None:
                self._placed = ModuleMemory(self.module)
            return self._placed

    @property
    def references(self) -> Mapping[str, ModuleReference]:
        """What stands for textures, samplers and surfaces of the module."""
        return self._memory.references

    def _kernel(self, entry: str, cluster: Shape3 | None, annotated: int = 0) -> AddressSpaces:
        spaces = self._spaces.get((entry, cluster, annotated))
        if spaces is None:
            spaces = self._spaces[entry, cluster, annotated] = self._new_spaces(entry, cluster, annotated)
        return spaces

    def _new_spaces(self, entry: str, cluster: Shape3 | None, annotated: int) -> AddressSpaces:
        from .rewrite.kernel_memory import spaces_of

        annotations = self._annotations[annotated - 1][1] if annotated > 0 else None
        defers = annotated == DEFERS
        with paused():
            return spaces_of(self.module, self.module.function(entry), self._memory, cluster, annotations, defers)

    def _recall(self, entry: str, block: Shape3) -> None:
        """Take a kernel from disk, if it is there."""
        self._asked.add((entry, block))
        spaces = cache(lambda: self._new_spaces(entry, None, 0))
        found = recall(key_of(self.text, entry, block), block, spaces, lambda shape: _lowered_again(spaces(), shape))
        if found is not None:
            kept, code, shape = found
            code.wraps = self._wraps.setdefault((entry, shape, None, None, 0), set())
            self._spaces.setdefault((entry, None, 0), kept)
            self._shapes[entry, block] = shape
            self._codes[entry, shape, False, None, None, 0] = code

    def shape_of(self, entry: str, config: LaunchConfig, spaces: AddressSpaces | None = None) -> Shape3:
        """The shape of a launch's blocks in the warps that it runs in: a seed draws among those of a GPU."""
        block = config.block
        if config.seed is not None or config.cluster is not None or not has_odd_rows(block):
            return block
        found = self._shapes.get((entry, block))
        if found is None:
            from .analysis.warp_rows import in_rows

            function = (spaces or self._kernel(entry, None)).function
            found = self._shapes[entry, block] = in_rows(function, block)
        return found

    def code(
        self, entry: str, block: Shape3, conservative: bool = False, checks: Tools = None,
        cluster: Shape3 | None = None, annotated: int = 0,
    ) -> Code:
        """The micro-ops of a kernel for this shape of block and cluster, with those of the sanitizer's ``checks``.

        ``annotated`` says whose annotations are checked.
        """
        key = (entry, block, conservative, checks, cluster, annotated)
        found = self._codes.get(key)
        if found is None or found.outdated:
            spaces = self._kernel(entry, cluster, annotated)
            wraps = self._wraps.setdefault((entry, block, checks, cluster, annotated), set())
            with paused():
                if checks is None or checks == BOUNDS:
                    found = _lowered(spaces, block, conservative, wraps)
                else:
                    from .sanitizer.instrumentation import instrumented
                    from .sanitizer.spread import spread_of

                    made = instrumented(spaces, block, conservative, checks, wraps, spread_of)
                    found = made or self.code(entry, block, conservative, BOUNDS, cluster, annotated)
            self._codes[key] = found
            plain = block[0], block[1], block[2]
            if (entry, plain) in self._asked and key == (entry, block, False, None, None, 0):
                keep(key_of(self.text, entry, plain), block, found, spaces)
        return found

    def codes(self, entry: str) -> list[tuple[Shape3, Tools, Code]]:
        """What was made of a kernel so far: for which shape of block and which checks."""
        return [(block, tools, code) for (name, block, _, tools, *_), code in self._codes.items() if name == entry]

    def variable(self, name: str) -> int:
        """The host address of a variable of the module."""
        return next(area.place for area in self._memory.ranges if area.name == name)

    def bind(self, images: Mapping[str, Any]) -> None:
        """Let the module's references stand for these textures, samplers and surfaces from now on."""
        for name, image in images.items():
            self.references[name].bind(image)

    def run(
        self, entry: str, config: LaunchConfig, arguments: Sequence[Scalar | Buffer], *, conservative: bool = False
    ) -> None:
        """Run a kernel to its end, in the memory of its arguments.

        ``conservative`` runs the slower code that every kernel can fall back to, which takes nothing to be uniform.

        Raises EmulationError, of the kind that fits, where the kernel does something wrong.
        """
        self.launcher(entry, config, conservative=conservative)(arguments)

    def launcher(self, entry: str, config: LaunchConfig, *, conservative: bool = False) -> Launches:
        """What :meth:`run` calls with the arguments, for one launch after the other while nobody else observes."""
        launches, recording = self._launcher(entry, config, conservative), recorder()
        return launches if recording is None else _recorded(launches, recording)

    def _launcher(self, entry: str, config: LaunchConfig, conservative: bool) -> Launches:
        annotated, tools = 0, config.sanitize or frozenset()
        if config.traced is not None and "memory" in tools:
            annotated = self._annotated(config.traced)
        observing = observer.get()
        sanitizes = not tools.isdisjoint(("race", "order", "cas", "init", "memory"))
        later = config.seed is not None if observing is None else getattr(observing, "defers", False)
        if later and not sanitizes and self._synchronises:
            annotated = DEFERS
        marked = recorder() is not None  # code on disk is not
        others = observing or marked or sanitizes or conservative
        if self.text and (entry, config.block) not in self._asked and not others:
            self._recall(entry, config.block)
        spaces = self._kernel(entry, config.cluster, annotated)
        if spaces.explicit and config.cluster is None:  # which checks that it divides the grid
            config = replace(config, cluster=spaces.cluster)
            spaces = self._kernel(entry, config.cluster, annotated)
        if observing is None:
            config = _in_rows(config, self.shape_of(entry, config, spaces))
        block, cluster = config.block, config.cluster

        def code(slow: bool, tools: Tools = None) -> Code:
            return self.code(entry, block, conservative or slow, tools, cluster, annotated)

        if observing is None:
            if not sanitizes:
                return Launcher(entry, spaces, config, code)
            from .sanitizer.launcher import SanitizedLauncher

            return SanitizedLauncher(entry, spaces, config, code, BOUNDS)

        def observed(arguments: Sequence[Scalar | Buffer]) -> None:
            note(entry, arguments)
            launch, first = LaunchState(spaces, config, arguments), observing.rehearsal(config)
            if first is not None:
                observing.rehearse(launch, partial(self._unobserved, entry, first, arguments))
            observing.run(launch)

        return observed

    def _unobserved(self, entry: str, config: LaunchConfig, arguments: Sequence[Scalar | Buffer]) -> None:
        """Run a kernel as if nobody observed it."""
        token = observer.set(None)
        try:
            self.run(entry, config, arguments)
        finally:
            observer.reset(token)


def _recorded(launches: Launches, recording: Recorder) -> Launches:
    """Launches whose end the recorder of executed lines is told."""

    def launch(arguments: Sequence[Scalar | Buffer]) -> None:
        try:
            launches(arguments)
        finally:
            recording.launched()

    return launch


def _in_rows(config: LaunchConfig, block: Shape3) -> LaunchConfig:
    """The configuration with its warps as the shape of the block says."""
    if block is config.block:
        return config
    made = copy(config)
    object.__setattr__(made, "block", block)
    return made


def _alike(one: Module, other: Module) -> bool:
    """Whether two modules of the same text have the same annotations."""
    return all(a.indexed == b.indexed and a.kept == b.kept for a, b in zip(one.functions, other.functions))


_programs: dict[str | int, Program] = {}
_PROGRAMS = 64
_loading = locks.rlock()
"""Two programs of one text would each have variables of their own."""


def load(text: str, module: Module | None = None, *, verified: bool = False) -> Program:
    """The program of a PTX text, which is read once, where a kernel of it is not on disk.

    ``module`` is what it says, where it has been loaded already: each module has its variables.
    ``verified`` is text that was printed from a module that was verified.
    """
    key = text if module is None else id(module)  # which the program keeps alive
    with _loading:
        found = _programs.get(key)
        if found is None:
            if len(_programs) >= _PROGRAMS:
                del _programs[next(iter(_programs))]
            if module is None and not verified:
                module = _verified(text)
            found = _programs[key] = Program(module or partial(_read, text), text)
        return found


def _read(text: str) -> Module:
    from ..text import parse

    with paused():
        return parse(text)


def _verified(text: str) -> Module:
    from ..verify import verify

    module = _read(text)
    with paused():
        verify(module, foreign=True)
    return module


def _lowered(
    spaces: AddressSpaces, block: Shape3, conservative: bool = False, wraps: set[int] | None = None
) -> Code:
    from .codegen.translation import translate

    with paused():
        return translate(spaces.function, spaces, block, conservative, wraps=wraps)


def _lowered_again(spaces: AddressSpaces, block: Shape3) -> Code:
    """The code of a kernel that another process has lowered, for a shape of which the lanes of warps are known."""
    from .analysis.warp_rows import with_offsets

    return _lowered(spaces, with_offsets(spaces.function, block))
