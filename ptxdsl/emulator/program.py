"""A PTX module that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Union

from ..collector import paused
from ..config import observer
from ..errors import EmulationError
from ..ir import Call, Function, Instruction, Module
from ..text import parse
from .analysis.divergence import Shape3
from .codegen.code import Code, translate
from .machine.address_spaces import AddressSpaces, ModuleMemory
from .machine.array_history import note
from .machine.unsupported import unsupported
from .rewrite.expansions import expansion
from .rewrite.loop_bounds import bounded_by_differences
from .runtime.block_state import NO_TOOL, LaunchState
from .runtime.launch import run

if TYPE_CHECKING:
    from ..launch import Buffer, LaunchConfig, Scalar
    from .rewrite.index_checks import Annotations
    from .sanitizer.instrumentation import Checks

__all__ = ["Program", "load"]

BOUNDS: Literal["memory"] = "memory"
"""In place of the sanitizer's checks: code of its own, in which accesses out of bounds may be passed over."""
Tools = Union["Checks", Literal["memory"], None]


class Program:
    """A loaded module: its variables in memory, its kernels lowered as they are launched."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._memory = ModuleMemory(module)
        self.references = self._memory.references
        self._spaces: dict[tuple[str, Shape3 | None, int], AddressSpaces] = {}
        self._codes: dict[tuple[str, Shape3, bool, Tools, Shape3 | None, int], Code] = {}
        self._wraps: dict[tuple[str, Shape3, Tools, Shape3 | None, int], set[int]] = {}
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

    def _kernel(self, entry: str, cluster: Shape3 | None, annotated: int = 0) -> AddressSpaces:
        spaces = self._spaces.get((entry, cluster, annotated))
        if spaces is None:
            function = self.module.function(entry)
            if cluster is None and not annotated and _runs_as_it_stands(function):
                spaces = AddressSpaces(self.module, function, self._memory)
            else:
                annotations = self._annotations[annotated - 1][1] if annotated else None
                with paused():
                    spaces = _rewritten(self.module, function, self._memory, cluster, annotations)
                spaces.asked = annotations.asked if annotations is not None else []
            self._spaces[entry, cluster, annotated] = spaces
        return spaces

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
                    found = translate(spaces.function, spaces, block, conservative, wraps=wraps)
                else:
                    from .sanitizer.instrumentation import instrumented

                    made = instrumented(spaces, block, conservative, checks, wraps)
                    found = made or self.code(entry, block, conservative, BOUNDS, cluster, annotated)
            self._codes[key] = found
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
        annotated, tools = 0, config.sanitize or frozenset()
        if config.traced is not None and "memory" in tools:
            annotated = self._annotated(config.traced)
        spaces = self._kernel(entry, config.cluster, annotated)
        if spaces.explicit and config.cluster is None:  # which checks that it divides the grid
            config = replace(config, cluster=spaces.cluster)
            spaces = self._kernel(entry, config.cluster, annotated)
        block, cluster = config.block, config.cluster
        launch = LaunchState(spaces, config, list(arguments))
        note(entry, arguments)
        observing = observer.get()
        if observing is not None:
            observing.run(launch)
            return
        if not tools.isdisjoint(("race", "order", "cas", "init", "memory")):
            sanitized(launch, lambda slow, on: self.code(entry, block, conservative or slow, on, cluster, annotated))
            return
        run(launch, lambda needed: self.code(entry, block, conservative or needed, None, cluster), alone=False)


def _alike(one: Module, other: Module) -> bool:
    """Whether two modules of the same text have the same annotations."""
    return all(a.indexed == b.indexed and a.kept == b.kept for a, b in zip(one.functions, other.functions))


def _runs_as_it_stands(function: Function) -> bool:
    """Whether no pass has to rewrite a kernel, and it has no clusters: it needs less of the emulator."""
    forms = set()
    for statement in function.body or ():
        if statement.__class__ is Instruction:
            forms.add(statement.form)
        elif statement.__class__ is Call:
            return False
    named = any(name in ("minperctamemory", "reqnctapercluster") for name, _ in function.directives)
    passed = any(variable.space == "param" for variable in function.variables)
    if named or passed or any(expansion(f) or f.effects.barrier == "cluster" for f in forms):
        return False
    return not bounded_by_differences(function.body or ())


def _rewritten(
    module: Module, function: Function, memory: ModuleMemory, asked: Shape3 | None, annotations: Annotations | None
) -> AddressSpaces:
    """The memory of a kernel that has to be rewritten, or is launched in clusters."""
    from .rewrite.pipeline import rewrite

    if any(name == "minperctamemory" for name, _ in function.directives):
        raise unsupported(None, f"`.minperctamemory` of {function.name}")
    cluster = asked or _required_cluster(function)
    function = rewrite(module, function, cluster, annotations=annotations)
    spaces = AddressSpaces(module, function, memory)
    spaces.cluster, spaces.explicit = cluster, cluster is not None
    if cluster is None and any(s.form.effects.barrier == "cluster" for s in function.instructions()):
        spaces.cluster = (1, 1, 1)
    return spaces


def _required_cluster(function: Function) -> Shape3 | None:
    for name, numbers in function.directives:
        if name == "reqnctapercluster" and numbers:
            x, y, z = (*(int(n) for n in numbers), 1, 1)[:3]
            return x, y, z
    return None


def sanitized(launch: LaunchState, code: Callable[[bool, Tools], Code]) -> None:
    """Run a launch with the sanitizer's checks; raises its findings at the end."""
    from .sanitizer.overruns import BoundsOnly
    from .sanitizer.sanitizer import Sanitizer, checks_of

    asked = checks_of(launch)
    checks: Tools = BOUNDS
    sanitizer: Sanitizer | BoundsOnly
    if asked is not None and code(False, asked[1]).instrumented:
        sanitizer, checks = Sanitizer(launch, *asked), asked[1]
    else:  # there is nothing to check but bounds
        sanitizer = BoundsOnly(launch)
    launch.tool, alone = sanitizer, checks != BOUNDS
    fault = None
    try:
        run(launch, lambda needed: code(needed, checks), alone)
    except EmulationError as error:
        fault = error
    finally:
        sanitizer.release()
        launch.tool = NO_TOOL  # which kept the launch
    try:
        sanitizer.finish(fault)
        if fault is not None:
            raise fault
    finally:
        fault = None  # it holds this frame


_programs: dict[str | int, Program] = {}
_PROGRAMS = 64


def load(text: str, module: Module | None = None, *, verified: bool = False) -> Program:
    """The program of a PTX text, which is read once.

    ``module`` is what it says, where it has been loaded already: each module has its variables.
    ``verified`` is text that was printed from a module that was verified.
    """
    key = text if module is None else id(module)  # which the program keeps alive
    found = _programs.get(key)
    if found is None:
        if len(_programs) >= _PROGRAMS:
            del _programs[next(iter(_programs))]
        found = _programs[key] = Program(_read(text, verified) if module is None else module)
    return found


def _read(text: str, verified: bool) -> Module:
    with paused():
        module = parse(text)
        if not verified:
            from ..verify import verify

            verify(module, foreign=True)
    return module
