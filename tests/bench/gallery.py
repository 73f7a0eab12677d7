"""The galleries: ``python tests/bench/gallery.py`` writes docs/gallery.md and docs/examples.md.

The first page shows each function of the kernel library: what it computes, how far its check is off, what its kernels
take of a GPU, beside nvcc's code where there is a pair of ``tests/bench/paired``, and how long a launch is forecast to
take. The second page shows the examples. Both follow from the code, the assembler and nothing that is measured: checks
draw the same numbers each time, and blocks run one after the other. All takes minutes; ``gallery.py norm`` makes the
tables of a domain again and leaves the others. ``--arch`` is the target; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import sass
from forecast import markdown
from paired.pair import nvcc, pairs
from ptxdsl import Kernel, forecast, use
from ptxdsl.config import override
from ptxdsl.gpu.tools import find_assembler
from ptxdsl.ir import Module
from ptxdsl.kernels.check import LIBRARY, Entry, resources
from ptxdsl.kernels.check.facts import FACTS, Facts

__all__ = ["examples_page", "kernel_cells", "main", "write_picture"]

ROOT = Path(__file__).parents[2]
PAGE, EXAMPLES, PICTURE = ROOT / "docs/gallery.md", ROOT / "docs/examples.md", ROOT / "docs/pictures/mandelbrot.png"
DOMAINS = list(dict.fromkeys(name.partition(".")[0] for name in LIBRARY))
HEAD = """# Gallery of the kernel library

`python tests/bench/gallery.py` makes this page; nothing in it was measured. Each function has a row in two tables:

- **What it computes**, in numpy's notation, and the shapes of the arrays that it takes. *Error* is the largest
  difference from a float64 reference in the check of `python -m ptxdsl kernels`, relative to the largest magnitude of
  the result, and *bound* what the check allows. *Forecast* is how long all launches of a call take on an H200 at the
  size that is named, by [the model](forecast.md), which says how far it may be off; *bound by* is what the longest
  launch waits for.
- **What its kernels take** of a GPU: *lines* of Python that instructions come from, helpers among them; registers of
  a thread; bytes of static shared memory; bytes spilled; SASS instructions without padding. They are those of {arch}
  by {assembler}, but where another target stands behind the name.

[kernels.md](kernels.md) says what the functions have in common, and their dtypes.
"""
NVCC = """## Beside nvcc

The same algorithms in CUDA C++, compiled by `nvcc -O3` and assembled by the same assembler; each kernel stands in
`tests/bench/paired/`, and `python tests/bench/sass.py` checks the results of both and counts more.

"""
EXAMPLES_HEAD = """# Examples

Each is a script of fewer than 80 lines that ends by comparing its result with numpy's: `python examples/saxpy.py`, or
`python -m ptxdsl examples` for a table of all or some. `python tests/bench/gallery.py` makes this page and the
[gallery](gallery.md) of the kernel library.

"""
PLOTS = """[Step 9 of the tutorial](tutorial/09-matmul.md) draws the profile of a matrix product; `p.plot(path)` of
`ptxdsl.profile()` draws that of any launch."""


def rounded_up(error: float) -> str:
    """An error with one digit, not less than it is.

    >>> rounded_up(1.23e-7), rounded_up(0.0), rounded_up(2e-5)
    ('2e-07', '0', '2e-05')
    """
    unit = 10.0 ** floor(log10(error)) if error else 1.0
    return f"{ceil(error / unit - 1e-9) * unit:.1g}"


def time_text(seconds: float) -> str:
    """Microseconds with two digits.

    >>> time_text(2.68e-5), time_text(1.24e-3), time_text(3.86e-6)
    ('27 µs', '1200 µs', '3.9 µs')
    """
    micros = float(f"{seconds * 1e6:.2g}")
    return f"{micros:.{1 if micros < 10 else 0}f} µs"


def target_of(entry: Entry, arch: str) -> str:
    """The target to assemble an entry's kernels for: its own where it is one of another family's."""
    other = entry.lowest[-1] in "af" and entry.lowest[:-1] != arch[:-1]
    return entry.lowest if other else arch


def lines_of(module: Module) -> int:
    """How many lines of Python the instructions of a module come from."""
    return len({
        (statement.loc.file, statement.loc.line)
        for function in module.functions for statement in function.instructions() if statement.loc is not None
    })


def kernel_cells(kernel: Kernel, entry: Entry, arch: str) -> tuple[str, ...]:
    """A kernel's row of the second table."""
    target = target_of(entry, arch)
    name, *taken = resources(kernel, target)
    where = "" if target == arch else f", {target}"
    return f"`{name}`{where}", *(f"{count:,}" for count in (lines_of(kernel.ir(arch=target)), *taken))


def function_cells(name: str, entry: Entry, facts: Facts) -> tuple[str, ...]:
    """A function's row of the first table: runs its check and its forecast."""
    with mock.patch("numpy.random.default_rng", _generator), use("emulator"):
        row = entry.check()
        if not row.ok:
            raise SystemExit(f"{name}: error {row.error:g} > {row.allowed:g}")
        with forecast(facts.gpu, sample=facts.sample) as found:
            facts.run()
    function = name.partition(".")[2]
    computed = f"`{facts.formula}`<br>`{facts.arrays}`"
    error, time = rounded_up(row.error), time_text(found.seconds)
    return f"`{function}`", computed, error, f"{row.allowed:.2g}", facts.size, time, found.binding.kind


_made = np.random.Generator


def _generator(seed: Any = 0) -> np.random.Generator:
    """The same numbers each time, where checks draw fresh ones."""
    return _made(np.random.PCG64(seed))


FUNCTIONS = ("function", "computes", "error", "bound", "size", "forecast", "bound by")
KERNELS = ("kernel", "lines", "registers", "shared", "spilled", "SASS")


def domain_text(domain: str, arch: str, tell: Callable[[str], None]) -> str:
    """The two tables of a domain."""
    functions, kernels = [], []
    for name in (name for name in LIBRARY if name.startswith(f"{domain}.")):
        tell(name)
        functions.append(function_cells(name, LIBRARY[name], FACTS[name]))
        kernels += [kernel_cells(kernel, LIBRARY[name], arch) for kernel in LIBRARY[name].kernels()]
    kernels = list(dict.fromkeys(kernels))
    return f"## {domain}\n\n{markdown(FUNCTIONS, functions)}\n\n{markdown(KERNELS, kernels)}\n"


def nvcc_text() -> str:
    """The pairs' table: ours and nvcc's."""
    head = ("kernel", "SASS", "nvcc's", "ratio", "registers", "nvcc's", "spilled", "nvcc's")
    rows = []
    for pair in pairs():
        line = sass.Line(pair, sass.code(pair.kernel.ptx(), pair), sass.code(sass.compiled(pair.family), pair))
        both = line.ours, line.theirs
        counts = [len(code.listing.opcodes) for code in both]
        others = [str(count) for code in zip(*((c.registers, c.spilled) for c in both)) for count in code]
        rows.append((f"`{pair.name}`", *map(str, counts), f"{line.ratio:.2f}", *others))
    return f"{NVCC}{markdown(head, rows)}\n\nFor {sass.ARCH}.\n"


def gallery_page(arch: str, tell: Callable[[str], None], only: Sequence[str] = ()) -> str:
    """The page of the library, for a target such as ``"sm_90a"``; of all but some domains what is there already."""
    parts = [HEAD.format(arch=arch, assembler=assembler(arch))]
    parts += [domain_text(name, arch, tell) if name in (only or DOMAINS) else present(name) for name in DOMAINS]
    parts.append(present("Beside nvcc") if only else nvcc_text())
    return "\n".join(parts)


def present(title: str) -> str:
    """A part of the page as it is now."""
    _, begin, rest = PAGE.read_text("utf-8").partition(f"\n## {title}\n")
    return (begin + rest.partition("\n## ")[0]).strip() + "\n"


def assembler(arch: str) -> str:
    """The assembler and its release, as it stands in the page."""
    return f"ptxas {find_assembler((8, 0), arch).version}"


def shows(script: Path) -> str:
    """The paragraph that a script's docstring begins with."""
    text = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def examples_page() -> str:
    """The page of the examples, with the picture that one of them makes."""
    scripts = sorted((ROOT / "examples").glob("*.py"))
    rows = [(f"[{path.stem}](../examples/{path.name})", shows(path)) for path in scripts]
    picture = f"![The Mandelbrot set]({PICTURE.relative_to(EXAMPLES.parent).as_posix()})"
    shown = f"What `examples/mandelbrot.py` writes, pixel by pixel as numpy computes it:\n\n{picture}\n\n{PLOTS}\n"
    return f"{EXAMPLES_HEAD}{markdown(('example', 'shows'), rows)}\n\n{shown}"


def write_picture(path: Path) -> None:
    """Run the example that makes a picture; SystemExit where it is wrong."""
    spec = importlib.util.spec_from_file_location("mandelbrot", ROOT / "examples/mandelbrot.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    path.parent.mkdir(exist_ok=True)
    with use("emulator"):
        row = example.main(str(path))
    if not row.ok:
        raise SystemExit(f"{row.what}: error {row.error:g}")


def teller() -> Callable[[str], None]:
    """What prints a line for each function."""
    numbers = iter(range(1, len(LIBRARY) + 1))
    return lambda name: print(f"[{next(numbers)}/{len(LIBRARY)}] {name}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write both pages; 2 where there is no nvcc to compare with."""
    parser = argparse.ArgumentParser(description="Write docs/gallery.md and docs/examples.md.")
    parser.add_argument("domains", nargs="*", help=f"only the tables of these of the page: {', '.join(DOMAINS)}")
    parser.add_argument("--arch", default=sass.ARCH, help="the target, sm_90a if left out")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.domains if name not in DOMAINS]:
        parser.error(f"there is no domain {', '.join(unknown)}; there are {', '.join(DOMAINS)}")
    if nvcc() is None and not options.domains:
        print(sass.NO_NVCC, file=sys.stderr)
        return 2
    write_picture(PICTURE)
    EXAMPLES.write_text(examples_page(), "utf-8")
    with override(emulator_threads=1):
        PAGE.write_text(gallery_page(options.arch, teller(), options.domains), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
