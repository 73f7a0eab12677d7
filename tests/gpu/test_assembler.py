"""The assembler: what it makes, what it says, where it is found, and what is kept on disk."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl.config import override
from ptxdsl.gpu import assembler, tools
from ptxdsl.gpu.assembler import assemble, assemble_module
from ptxdsl.gpu.cubin import disassemble
from ptxdsl.launch.disk_cache import DiskCache, digest
from ptxdsl.errors import AssembleError, PerformanceWarning

needs_ptxas = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
needs_nvdisasm = pytest.mark.skipif(not tools.find_tool("nvdisasm"), reason="no nvdisasm")
needs_cuobjdump = pytest.mark.skipif(not tools.find_tool("cuobjdump"), reason="no cuobjdump")

HEAD = '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "/some where/my kernel.py"\n'


def kernel(body: str, head: str = HEAD, directives: str = "") -> str:
    """An entry around some statements; its first instruction is line 30 of "my kernel.py", the body starts at 31."""
    return f"""{head}.visible .entry k(.param .u32 n, .param .u64 x)
{directives}
{{
    .reg .u32 %r<4>;
    .reg .u64 %rd<4>;
    .reg .f32 %f<4>;
    .loc 1 30 0
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    .loc 1 31 0
{body}
    .loc 1 40 0
    ret;
}}
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PTXDSL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are run from here on."""
    seen: list[list[str]] = []
    real = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        seen.append(command)
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    return seen


def script(folder: Path, assembling: str, *, isa: str = "9.5", targets: str = "sm_75 sm_80 sm_90a") -> str:
    """A ptxas that answers the questions about itself, and does what a shell command says otherwise."""
    path = folder / "ptxas"
    path.write_text(textwrap.dedent(f"""\
        #!/bin/sh
        case "$1" in
        --version) echo "Cuda compilation tools, release 13.9, V13.9.1";;
        --list-version) echo "{isa}";;
        --help) echo "Allowed values for this option: {', '.join(repr(t) for t in targets.split())}";;
        *) {assembling};;
        esac
        """))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


# ---------------------------------------------------------------------------------------------------------------------
# What comes out


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100a"])
def test_assembles_for(arch: str) -> None:
    text = kernel("st.global.u32 [%rd1], %r1;", HEAD.replace("sm_90a", "sm_75"))
    made = assemble_module(text, arch)
    assert made.cubin.startswith(b"\x7fELF")
    assert f"for '{arch}'" in made.log
    assert assemble(text, arch) == made.cubin


@needs_ptxas
def test_auto_is_the_target_of_the_text() -> None:
    made = assemble_module(kernel("st.global.u32 [%rd1], %r1;"))
    assert made.arch == "sm_90a"


@needs_ptxas
def test_options_reach_ptxas() -> None:
    body = "\n".join(f"ld.global.u32 %r2, [%rd1+{4 * i}]; st.global.u32 [%rd1+{400 + 4 * i}], %r2;" for i in range(8))
    fast, slow = assemble(kernel(body)), assemble(kernel(body), options=["-O0"])
    assert len(slow) > len(fast)


@needs_ptxas
@needs_cuobjdump
@pytest.mark.parametrize("live", [4, 40, 200])
def test_attributes_agree_with_cuobjdump(live: int, tmp_path: Path) -> None:
    loads = "\n".join(f".reg .f32 %v{i}; ld.volatile.global.f32 %v{i}, [%rd1+{4 * i}];" for i in range(live))
    stores = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %v{live - 1 - i};" for i in range(live))
    variables = ".shared .align 16 .b8 tile[1536]; .local .align 16 .b8 stack[192];\n.reg .u64 %q;\n"
    # An index that is not known makes the local array real; a bound on the threads makes room for `live` registers.
    touch = (
        "mul.wide.u32 %rd2, %r1, 4; mov.u64 %q, stack; add.u64 %rd3, %q, %rd2; st.local.u32 [%rd3], %r1;\n"
        "ld.local.u32 %r2, [%rd3+4]; mov.u64 %q, tile; add.u64 %rd3, %q, %rd2; st.shared.u32 [%rd3], %r2;\n"
    )
    text = kernel(variables + touch + loads + stores, directives=".maxntid 128,2,1")
    found = assemble_module(text).attributes("k")
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(assemble(text))
    said = subprocess.run(
        [tools.find_tool("cuobjdump")[0], "-res-usage", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    usage = {name: int(number) for name, number in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", said)}
    assert found.num_regs == usage["REG"]
    assert found.num_regs >= live or live > 200
    assert found.local_size_bytes == usage["STACK"] == 192
    assert found.shared_size_bytes == usage["SHARED"] - 1024 == 1536  # sm_90 reserves 1 KiB for the system
    assert (found.spill_store_bytes, found.spill_load_bytes, found.const_size_bytes) == (0, 0, 0)
    assert found.max_threads_per_block == 256
    assert (found.ptx_version, found.binary_version) == (80, 90)


@needs_ptxas
def test_attributes_tell_spills() -> None:
    loads = "\n".join(f".reg .f32 %v{i}; ld.volatile.global.f32 %v{i}, [%rd1+{4 * i}];" for i in range(100))
    stores = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %v{99 - i};" for i in range(100))
    found = assemble_module(kernel(loads + stores, directives=".maxnreg 32")).attributes("k")
    assert found.num_regs == 32
    assert min(found.spill_store_bytes, found.spill_load_bytes, found.local_size_bytes) >= 100
    assert found.max_threads_per_block == 1024


@needs_ptxas
def test_attributes_of_each_entry() -> None:
    text = kernel("st.global.u32 [%rd1], %r1;") + ".visible .entry other() { ret; }\n"
    made = assemble_module(text)
    assert made.attributes("k").num_regs > 0
    assert made.attributes("other").max_threads_per_block == 1024
    with pytest.raises(AssembleError, match=r"^the module has no entry `third`"):
        made.attributes("third")


@needs_ptxas
@needs_nvdisasm
def test_disassembles() -> None:
    cubin = assemble(kernel("st.global.u32 [%rd1], %r1;"))
    assert re.search(r"STG\S* .*\n(.*\n)*.*EXIT", disassemble(cubin))
    assert '//## File "/some where/my kernel.py", line 31' in disassemble(cubin, lines=True)
    with pytest.raises(AssembleError, match=r"^nvdisasm cannot read this cubin: "):
        disassemble(b"not a cubin")


# ---------------------------------------------------------------------------------------------------------------------
# What it says


@needs_ptxas
def test_errors_name_python_lines() -> None:
    text = kernel("st.global.u32 [%rd1], %f9;\n.loc 1 33 0\nadd.u32 %f1, %r1, %r1;")
    with pytest.raises(AssembleError) as caught:
        assemble(text)
    error = caught.value
    version = next(tools.assemblers()).version
    assert error.message == (
        f"ptxas {version} does not assemble this for sm_90a\n"
        "  Arguments mismatch for instruction 'st'\n"
        "    PTX line 15: st.global.u32 [%rd1], %f9;  (/some where/my kernel.py:31)\n"
        "  Arguments mismatch for instruction 'add'\n"
        "    PTX line 17: add.u32 %f1, %r1, %r1;  (/some where/my kernel.py:33)\n"
        "  Unknown symbol '%f9'\n"
        "    PTX line 15: st.global.u32 [%rd1], %f9;  (/some where/my kernel.py:31)"
    )
    assert error.loc == ("/some where/my kernel.py", 31)
    assert "Ptx assembly aborted due to errors" in error.log


@needs_ptxas
def test_errors_without_a_line_are_at_the_call() -> None:
    with pytest.raises(AssembleError) as caught:
        assemble(kernel("st.global.u32 [%rd1], %r1;"), "sm_80")
    version = next(tools.assemblers()).version
    assert caught.value.message == (
        f"ptxas {version} does not assemble this for sm_80\n"
        "  SM version specified by .target is higher than default SM version assumed"
    )
    assert caught.value.hint == 'the PTX is for sm_90a: `arch="sm_90a"`'
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


@needs_ptxas
@pytest.mark.parametrize(
    ("directives", "body", "line", "message"),
    [
        (
            "", "nanosleep.u32 1;\n.loc 1 32 0\nsetmaxnreg.dec.sync.aligned.u32 24;", 32,
            ("ptxas: (C7508) Potential Performance Loss: 'setmaxnreg' ignored; "
             "unable to determine register count at entry."),
        ),
    ],
)
def test_advice_is_a_warning_at_the_python_line(directives: str, body: str, line: int, message: str) -> None:
    text = kernel(body, directives=directives)
    for _ in range(2):  # the second time from the cache
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assemble(text)
        assert [str(w.message) for w in caught] == [message]
        assert caught[0].category is PerformanceWarning
        assert (caught[0].filename, caught[0].lineno) == ("/some where/my kernel.py", line)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda: assemble("hello"), "this is no PTX module: it has no .version or no .target", None),
        (lambda: assemble(kernel(""), "90a"), "'90a' is no target", 'write `arch="sm_90a"` or `arch="auto"`'),
        (lambda: assemble(kernel(""), None), "None is no target", 'write `arch="sm_90a"` or `arch="auto"`'),  # type: ignore[arg-type]
        (
            lambda: assemble(kernel(""), options="-O1"), "options is a list of strings, not '-O1'",
            '`options=["-O1"]`',
        ),
    ],
)
def test_bad_calls(call: Callable[[], object], message: str, hint: str | None) -> None:
    with pytest.raises(AssembleError) as caught:
        call()
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


def test_a_crash_is_reported(tmp_path: Path) -> None:
    with override(ptxas=script(tmp_path, "cat > /dev/null; kill -SEGV $$")), pytest.raises(AssembleError) as caught:
        assemble(kernel(""))
    assert caught.value.message == "ptxas 13.9.1 crashed (SIGSEGV) on this PTX for sm_90a"


def test_an_assembler_that_makes_nothing_is_reported(tmp_path: Path) -> None:
    with override(ptxas=script(tmp_path, "cat > /dev/null")), pytest.raises(AssembleError) as caught:
        assemble(kernel(""))
    assert caught.value.message == "ptxas 13.9.1 does not assemble this for sm_90a: it says nothing"


# ---------------------------------------------------------------------------------------------------------------------
# Where it is found


def test_none_found_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_found", lambda _: iter(()))
    with pytest.raises(AssembleError) as caught:
        assemble(kernel(""))
    assert caught.value.message == "no ptxas, NVIDIA's assembler, was found"
    assert caught.value.hint == "pip install 'nvidia-cuda-nvcc>=13,<14'"
    with pytest.raises(AssembleError) as caught:
        disassemble(b"")
    assert caught.value.message == "no nvdisasm, NVIDIA's disassembler, was found"
    assert caught.value.hint == "pip install 'nvidia-cuda-nvdisasm>=13.2,<14'"


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old = script(tmp_path / "old", "exit 1", isa="7.8")
    new = script(tmp_path / "new", "cat > /dev/null; printf '\\177ELF'", isa="8.0")
    other = script(tmp_path, "exit 1", isa="9.5", targets="sm_120")
    monkeypatch.setattr(tools, "_found", lambda _: iter((old, other, new)))
    assert assemble(kernel("")) == b"\x7fELF"
    with pytest.raises(AssembleError) as caught:
        assemble(kernel("").replace(".version 8.0", ".version 8.1"))
    assert caught.value.message == (
        f"no ptxas found assembles PTX 8.1 for sm_90a: {old} (13.9.1) reads PTX up to 7.8; "
        f"{other} (13.9.1) reads PTX up to 9.5; {new} (13.9.1) reads PTX up to 8.0"
    )


def test_the_users_own_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = script(tmp_path, "cat > /dev/null; printf '\\177ELF own'")
    monkeypatch.setenv("PTXDSL_PTXAS", own)
    assert assemble(kernel("")) == b"\x7fELF own"
    (tmp_path / "ptxas").write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(AssembleError, match=f"^PTXDSL_PTXAS is '{own}', which is no ptxas"):
        assemble(kernel(""))


def test_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [
        "site/nvidia/cu13/bin/ptxas", "site/nvidia/cuda_nvcc/bin/ptxas",
        "site/triton/backends/nvidia/bin/ptxas-blackwell", "site/triton/backends/nvidia/bin/ptxas",
        "home/bin/ptxas", "path/ptxas",
    ]
    for place in places:
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    (tmp_path / "site/triton/__init__.py").write_text("")
    for name in [n for n in sys.modules if n.split(".")[0] in ("nvidia", "triton")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert tools.find_tool("ptxas")[:6] == [str(tmp_path / place) for place in places]


# ---------------------------------------------------------------------------------------------------------------------
# What is kept


@needs_ptxas
def test_the_second_time_nothing_runs(runs: list[list[str]], tmp_path: Path) -> None:
    text = kernel("st.global.u32 [%rd1], %r1;")
    first = assemble(text)
    ran = len(runs)
    assert ran >= 1
    assert assemble(text) == first
    assert len(runs) == ran
    assemble(text, "sm_90a", options=["-O1"])
    assemble(text + "\n")
    assert len(runs) == ran + 2
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith("tmp-")]


@needs_ptxas
def test_another_assembler_makes_its_own(runs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    text = kernel("st.global.u32 [%rd1], %r1;")
    assemble(text)
    ran, found = len(runs), tools.find_assembler((8, 0), "sm_90a")
    monkeypatch.setattr(assembler, "find_assembler", lambda isa, arch: found._replace(version="99.0"))
    assemble(text)
    assert len(runs) == ran + 1


@needs_ptxas
def test_cache_off(runs: list[list[str]], tmp_path: Path) -> None:
    text = kernel("st.global.u32 [%rd1], %r1;")
    with override(cache_dir="off"):
        assert assemble(text) == assemble(text)
    assert sum("-v" in command for command in runs) == 2
    assert not (tmp_path / "cache").exists()


@needs_ptxas
@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "deleted"])
def test_a_damaged_entry_is_made_again(damage: str, tmp_path: Path) -> None:
    text = kernel("st.global.u32 [%rd1], %r1;")
    first = assemble(text)
    for path in (tmp_path / "cache").iterdir():
        data = bytearray(path.read_bytes())
        if damage == "deleted":
            path.unlink()
            continue
        data = {"cut": data[:-5], "flipped": data[:40] + bytes([data[40] ^ 1]) + data[41:], "emptied": b""}[damage]
        path.write_bytes(data)
    assert assemble(text) == first
    assert assemble(text) == first


@needs_ptxas
def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with override(cache_dir=tmp_path / "file" / "cache"):
        assert assemble(kernel("st.global.u32 [%rd1], %r1;")).startswith(b"\x7fELF")


def test_digest_tells_parts_apart() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest(b"abc", b"")}) == 4


def test_the_cache_is_bounded_and_keeps_what_is_used(tmp_path: Path, rng: np.random.Generator) -> None:
    cache = DiskCache(tmp_path / "c", limit=10_000)
    contents = {digest(str(i)): rng.bytes(1000) for i in range(30)}
    for age, (key, data) in enumerate(contents.items()):
        cache.put(key, data)
        if (tmp_path / "c" / key).exists():
            os.utime(tmp_path / "c" / key, (age, age))
    first = next(iter(contents))
    assert cache.get(first) is None
    kept = [key for key in contents if cache.get(key) is not None]
    assert kept == list(contents)[-len(kept) :]
    assert 8 <= len(kept) <= 9
    assert sum(p.stat().st_size for p in (tmp_path / "c").iterdir()) <= 10_000


def test_abandoned_files_are_removed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    old, fresh = tmp_path / "tmp-old", tmp_path / "tmp-fresh"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.put(digest("x"), b"x")
    assert not old.exists()
    assert fresh.exists()


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Four processes write and read the same keys at once; whatever is read is whole."""
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from ptxdsl.launch.disk_cache import DiskCache, digest
        cache = DiskCache(Path(sys.argv[1]), limit=60_000)
        for round in range(60):
            for key in range(5):
                found = cache.get(digest(str(key)))
                assert found is None or found == bytes([key]) * 20_000, key
                cache.put(digest(str(key)), bytes([key]) * 20_000)
    """)
    root = str(Path(assembler.__file__).parents[2])
    command = [sys.executable, "-c", program, str(tmp_path / "shared")]
    started = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": root}) for _ in range(4)]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
