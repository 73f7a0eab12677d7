"""The command line: ``python -m ptxdsl <command>``.

    examples [name ...]      run the examples: what ran where, how long it took, the error against numpy
    kernels [name ...]       run the check of each function of the kernel library; --resources: what the kernels take
    isa [mnemonic]           the instruction table: every opcode, or the forms of one; --json for programs
    show file.py[:kernel]    the PTX of the kernels in a Python file (or the SASS, with --sass)
    check FILE ...           trace, verify, assemble, and run with the sanitizer; --json or --sarif for programs
    debug --dap              the debugger for editors, by the Debug Adapter Protocol; --port: over TCP
    gpu-check                repeat on this GPU what the tests launch on the emulator, and compare; pack: on another's
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import PtxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .bench import Row

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status is 0 if all went well, 1 if something is wrong, 2 for a wrong command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console may lack letters of a source's comments
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except FileNotFoundError as error:
        print(f"there is no file {error.filename}", file=sys.stderr)
        return 2
    except PtxError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ptxdsl", description="PTX kernels as Python functions.")
    commands = parser.add_subparsers(required=True, metavar="command")

    examples = commands.add_parser("examples", help="run the examples and compare them with numpy")
    examples.add_argument("names", nargs="*", help="only these, such as saxpy")
    examples.set_defaults(run=_examples)

    kernels = commands.add_parser("kernels", help="run a check of each kernel of the library")
    kernels.add_argument("names", nargs="*", help="only these, such as flash_attention, or all of a module: norm")
    kernels.add_argument("--resources", metavar="ARCH", help="what they take of a GPU such as sm_90a")
    kernels.set_defaults(run=_kernels)

    isa = commands.add_parser("isa", help="the instruction table")
    isa.add_argument("mnemonic", nargs="?", help="an opcode, the beginning of a mnemonic, or a pattern such as *.e4m3*")
    isa.add_argument("--json", action="store_true", help="the rows, or the forms of a complete mnemonic, as JSON")
    isa.set_defaults(run=_isa)

    show = commands.add_parser("show", help="the PTX of the kernels in a Python file")
    show.add_argument("file", help="file.py, or file.py:kernel for one of them")
    show.add_argument("--arch", default=None, help="the target, such as sm_90a")
    show.add_argument("--sass", action="store_true", help="the machine code in place of the PTX")
    show.set_defaults(run=_show)

    _add_check(commands)
    _add_debug(commands)
    _add_gpu_check(commands)
    return parser


def _add_debug(commands: Any) -> None:
    parser = commands.add_parser("debug", help="the debugger for editors", description=(
        "The debugger for VS Code, Neovim and others, by the Debug Adapter Protocol: one session over standard input "
        "and output, or any number over a port. In Python, `k[grid, block].debug(...)` opens a prompt."
    ))
    parser.add_argument("--dap", action="store_true", required=True, help="speak the Debug Adapter Protocol")
    parser.add_argument("--port", type=int, help="listen for connections there; 0: at a free port, which is printed")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at; this machine's own if left out")
    parser.set_defaults(run=_debug)


def _add_check(commands: Any) -> None:
    parser = commands.add_parser("check", help="trace, verify, assemble, and run with the sanitizer", description=(
        "PTX text (.ptx) is parsed, verified and assembled. Python is run as a script on the emulator with the "
        "sanitizer; what it launched, and every kernel that needs no constants, is traced, verified and assembled."
    ))
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="file.py or file.ptx")
    parser.add_argument("--arch", help="the target to assemble for, such as sm_90a; each kernel's own if left out")
    parser.add_argument("--no-run", dest="run_scripts", action="store_false", help="import Python files only")
    parser.add_argument("--sanitize", default="all", metavar="TOOLS", help="such as memory,race; all if left out")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="the answer as JSON")
    form.add_argument("--sarif", dest="form", action="store_const", const="sarif", help="the answer as SARIF 2.1.0")
    parser.set_defaults(run=_check)


def _add_gpu_check(commands: Any) -> None:
    parser = commands.add_parser("gpu-check", help="repeat the launches of the tests on a GPU, and compare")
    parser.add_argument("action", nargs="?", choices=("run", "pack"), default="run", help=(
        "run: on the GPU of this machine; pack: into a folder for a machine with Python and a driver only, where "
        "`python replay.py` repeats the launches"
    ))
    parser.add_argument("folder", nargs="?", type=Path, help="what to make; with run, where the report goes")
    parser.add_argument("--arch", help="with pack, the GPU: sm_90")
    parser.add_argument("--tests", nargs="+", type=Path, metavar="PATH", help="instead of ptxdsl's own tests")
    parser.add_argument("--limit", type=float, default=20.0, help="with run, seconds that a launch may take")
    parser.set_defaults(run=_gpu_check)


def _load(path: Path) -> ModuleType:
    """The module that a Python file is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _examples(options: argparse.Namespace) -> int:
    folder = Path(__file__).parent.parent / "examples"
    scripts = {path.stem: path for path in sorted(folder.glob("*.py"))}
    if not scripts:
        print(f"there are no examples in {folder}; the repository has them", file=sys.stderr)
        return 2

    def run(name: str) -> tuple[Row, Row]:
        example: Any = _load(scripts[name])
        return example.main(), example.main()

    return _checked("example", options.names, scripts, run)


def _kernels(options: argparse.Namespace) -> int:
    from .bench import table
    from .kernels.check import LIBRARY, named, resources

    names = [found for name in options.names for found in named(name) or [name]]
    if options.resources is None:
        return _checked("kernel", names, LIBRARY, lambda name: (LIBRARY[name].check(), LIBRARY[name].check()))
    if _unknown("kernel", names, LIBRARY):
        return 2
    rows = [resources(kernel, options.resources) for name in names or LIBRARY for kernel in LIBRARY[name].kernels()]
    print(table((f"kernel on {options.resources}", "registers", "shared", "spilled", "instructions"), rows))
    return 0


def _checked(kind: str, names: list[str], known: Iterable[str], run: Callable[[str], tuple[Row, Row]]) -> int:
    """Run checks twice each, and print what came of them."""
    from .bench import cells, table

    if _unknown(kind, names, known):
        return 2
    rows = [run(name) for name in names or known]
    print(table((kind, "ran on", "first ms", "then ms", "error", "allowed", ""), [cells(b, a) for a, b in rows]))
    return 0 if all(row.ok for pair in rows for row in pair) else 1


def _unknown(kind: str, names: list[str], known: Iterable[str]) -> bool:
    """Whether there are names that are not known, which is told."""
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"there is no {kind} {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
    return bool(unknown)


def _isa(options: argparse.Namespace) -> int:
    from .isa.generate import pages, records

    print((records.as_json if options.json else pages.describe)(options.mnemonic))
    return 0


def _show(options: argparse.Namespace) -> int:
    from .kernel import Kernel

    path, _, wanted = options.file.partition(":")
    kernels = {name: value for name, value in vars(_load(Path(path))).items() if isinstance(value, Kernel)}
    if wanted and wanted not in kernels:
        print(f"{path} has no kernel {wanted!r}; it has {', '.join(kernels) or 'none'}", file=sys.stderr)
        return 2
    for kernel in [kernels[wanted]] if wanted else kernels.values():
        print(kernel.sass(arch=options.arch) if options.sass else kernel.ptx(arch=options.arch))
    return 0


def _gpu_check(options: argparse.Namespace) -> int:
    from .gpu_check import command

    if options.action == "pack":
        if options.folder is None or options.arch is None:
            print("pack takes a folder and a GPU: `gpu-check pack FOLDER --arch sm_90`", file=sys.stderr)
            return 2
        return command.pack_into(options.folder, options.arch, options.tests)
    return command.run(options.folder or Path(), options.limit, options.tests)


def _debug(options: argparse.Namespace) -> int:
    from .debug_adapter.server import serve, session

    if options.port is None:
        return session()
    where = options.host
    return serve(where, options.port, lambda port: print(f"listening on {where}:{port}", file=sys.stderr, flush=True))


def _check(options: argparse.Namespace) -> int:
    from .checking import check_file, report

    with contextlib.redirect_stdout(sys.stderr) if options.form else contextlib.nullcontext():
        checked = [
            check_file(path, arch=options.arch, run=options.run_scripts, sanitize=options.sanitize)
            for path in options.files
        ]
    print({None: report.as_text, "json": report.as_json, "sarif": report.as_sarif}[options.form](checked))
    return 0 if all(file.ok for file in checked) else 1


if __name__ == "__main__":
    sys.exit(main())
