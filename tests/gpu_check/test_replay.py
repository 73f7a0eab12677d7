"""Recorded launches packed, and repeated on a stand-in GPU in child processes: what was planted is found and named."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import driver_shim
import numpy as np
import pytest
import replay_child
from form_cases import record
from semantics_harness import Case, run

import ptxdsl
from ptxdsl import Ptr, dynamic_shared, f32, printf, ptx, ptx_kernel, u32, use, when
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools
from ptxdsl.gpu_check import bare
from ptxdsl.gpu_check.bare.children import NoGpu, replay
from ptxdsl.gpu_check.bare.report import failed, summary, table
from ptxdsl.gpu_check.bare.tape import Tape
from ptxdsl.gpu_check.preparing import pack
from ptxdsl.gpu_check.recording import Recorder

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
standing_in = pytest.mark.skipif(driver_shim.missing() is not None, reason=str(driver_shim.missing()))
FORMS = ("popc.b32", "brev.b32", "clz.b32", "bfind.u32", "ex2.approx.f32", "addc.cc.u32")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Instructions alone, kernels with all that a launch can have, and one for another GPU."""
    place = tmp_path_factory.mktemp("packed")
    recorder = Recorder(Tape(place / "recorded"))
    rng = np.random.default_rng()
    with recorder.installed(), use("emulator"):
        _instructions(recorder, rng)
        recorder.test = "tests/test_kernels.py::test_it[0]"
        _kernels(rng)
    recorder.tape.save()
    pack(recorder.tape, place / "out", "sm_90")
    return place / "out"


def _instructions(recorder: Recorder, rng: np.random.Generator) -> None:
    for form in FORMS:
        recorder.test = f"tests/test_forms.py::test_{form.partition('.')[0]}"
        sources = tuple(rng.integers(0, 1 << 32, 64, np.uint32) for _ in range(2 if form.startswith("addc") else 1))
        if form.startswith("ex2"):
            sources = (rng.random(64, np.float32).view(np.uint32),)
        carry = (rng.integers(0, 2, 64).astype(np.uint8),) if form.startswith("addc") else ()
        case = Case(form, sources + carry)
        record(recorder, case, run([case])[0])


def _kernels(rng: np.random.Generator) -> None:
    @ptx_kernel
    def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    @ptx_kernel
    def turned(x: Ptr[u32], y: Ptr[u32]) -> None:
        tile = dynamic_shared(u32)
        tile[ptx.tid.x] = x[ptx.tid.x]
        ptx.bar.sync(0)
        y[ptx.tid.x] = tile[63 - ptx.tid.x] + ptx.cluster_nctarank

    @ptx_kernel(arch="sm_100a")
    def of_another(x: Ptr[u32]) -> None:
        x[0] = 1

    @ptx_kernel
    def told(x: Ptr[u32]) -> None:
        printf('["result", %u, "hangs"]\n', ptx.tid.x)
        x[ptx.tid.x] = 3

    told[1, 4](np.zeros(4, np.uint32))
    saxpy[3, 32](70, 2.0, rng.random(70, np.float32), rng.random(70, np.float32))
    turned.configure(2, 64, shared=100_000, cluster=2, cooperative=True)(
        rng.integers(0, 99, 64, np.uint32), np.zeros(64, np.uint32)
    )
    of_another[1, 1](np.zeros(1, np.uint32))
    m = ptxdsl.load(""".version 8.0
.target sm_75
.address_size 64
.visible .global .u32 count = 3;
.visible .entry counted(.param .u64 x) {
    .reg .b32 %r<2>; .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [x];
    atom.global.add.u32 %r1, [count], 1;
    st.global.u32 [%rd0], 7;
    ret;
}""")
    m["counted"][1, 32](np.zeros(8, np.uint32))
    m = ptxdsl.load(""".version 8.0
.target sm_75
.address_size 64
.const .u32 table[2] = {1, 2};
.visible .entry tabled(.param .u64 x) {
    .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [x];
    st.global.u32 [%rd0], 7;
    ret;
}""")
    m["tabled"][1, 1](np.zeros(2, np.uint32))


def repeated(folder: Path, limit: float = 20.0, **plan: str) -> Any:
    """The report of a replay in which things go wrong as planned, by words of the PTX."""
    words = {key.replace("_", "."): deed for key, deed in plan.items()}
    command = [sys.executable, replay_child.__file__, json.dumps(words)]
    about, results = replay(folder / "launches", command, limit=limit)
    return summary(Tape.load(folder / "launches"), about, results)


@standing_in
def test_all_is_well(packed: Path) -> None:
    made = repeated(packed)
    assert dict(made["launches"]) == {"ok": len(FORMS) + 5, "not assembled": 1}
    assert made["gpu"] == {"name": "Stand-in", "capability": 90, "driver": 13000}
    assert not failed(made)
    (entry,) = made["wrong"]
    assert (entry["kernel"], entry["detail"]) == ("of_another", "it is for sm_100a")
    assert made["forms alone"].keys() == set(FORMS)
    assert "Stand-in, sm_90, driver 13.0: 12 launches of 7 tests" in table(made)


@standing_in
def test_what_goes_wrong_is_named(packed: Path) -> None:
    made = repeated(
        packed, popc_b32="differs", brev_b32="faults", clz_b32="dies", bfind_u32="writes outside", counted="differs",
    )
    found = {entry["form"] or entry["kernel"]: (entry["verdict"], entry["detail"]) for entry in made["wrong"]}
    assert found.pop("of_another")[0] == "not assembled"
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "popc.b32": "differs", "brev.b32": "faults", "clz.b32": "faults", "bfind.u32": "differs", "counted": "differs",
    }
    first, _, detail = found["popc.b32"][1].partition(": emulator ")
    assert first == "array x1: 1 of 64 elements of 4 bytes differ, first at byte 4"
    assert detail.endswith("; by PTX line 15 `popc.b32 %r0, %r1;`")
    assert found["brev.b32"][1] == "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    assert found["clz.b32"][1].startswith("launch: the process ended (-6)")
    assert found["bfind.u32"][1] == "array x1: bytes outside of it were written"
    assert found["counted"][1].endswith("; by PTX line 9 `st.global.u32 [%rd0], 7;`")
    assert failed(made)
    assert {"popc.b32", "brev.b32", "clz.b32", "bfind.u32"} <= made["suspects"].keys()
    assert not {"ld.global.b32", "add.u32", "ret"} & made["suspects"].keys()
    text = table(made)
    assert "instruction forms alone, where not all is ok (4 of 6):" in text
    assert "tests/test_forms.py    2 ok, 2 differs, 2 faults" in text


@standing_in
def test_a_kernel_of_python_is_named_with_its_line(packed: Path) -> None:
    made = repeated(packed, saxpy="differs")
    (entry,) = [entry for entry in made["wrong"] if entry["kernel"] == "saxpy"]
    assert "`st.global.f32 [" in entry["detail"]
    assert f"({__file__}:" in entry["detail"]


@standing_in
def test_what_the_driver_refuses_is_no_fault(packed: Path) -> None:
    made = repeated(packed, turned="refuses")
    found = {entry["kernel"]: (entry["verdict"], entry["detail"]) for entry in made["wrong"]}
    assert found["turned"] == ("not replayable", "cuCtxSynchronize: CUDA_ERROR_INVALID_VALUE (1)")
    assert not failed(made)


@standing_in
def test_a_variable_that_the_assembler_has_left_out(packed: Path) -> None:
    """One that nothing writes is not missed."""
    made = repeated(packed, counted="hides variables")
    found = {entry["kernel"]: entry["detail"] for entry in made["wrong"] if entry["verdict"] == "not replayable"}
    assert found == {"counted": "cuModuleGetGlobal: CUDA_ERROR_NOT_FOUND (500)"}
    made = repeated(packed, tabled="hides variables")
    assert not [entry for entry in made["wrong"] if entry["verdict"] == "not replayable"]


@standing_in
def test_what_hangs_is_ended_and_the_rest_goes_on(packed: Path) -> None:
    made = repeated(packed, limit=10.0, clz_b32="hangs")
    (hung,) = [entry for entry in made["wrong"] if entry["verdict"] == "hangs"]
    assert hung["form"] == "clz.b32"
    assert hung["detail"] == "launch: nothing came of it in 10 s"
    assert made["launches"]["ok"] == len(FORMS) + 4


@standing_in
def test_approximations_within_the_bound_are_ok(packed: Path) -> None:
    for deed, verdict in (("nudges", "ok"), ("differs", "differs")):
        made = repeated(packed, ex2_approx=deed)
        assert made["forms alone"]["ex2.approx.f32"] == {verdict: 1}


def test_the_bare_part_needs_nothing(packed: Path) -> None:
    """Neither ptxdsl nor what is installed: only what Python brings along."""
    for path in Path(bare.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1
                names = [node.module or ""] if not node.level else []
            assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    command = [sys.executable, "-E", "-s", "-S", "-W", "error", str(packed / "replay.py"), "--out", str(packed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("no GPU to repeat the launches on: ")
    assert "libcuda.so.1" in done.stderr


def test_without_a_gpu(packed: Path) -> None:
    with pytest.raises(NoGpu, match="sorry"):
        replay(packed / "launches", [sys.executable, "-c", "raise SystemExit('sorry')"])


def test_a_folder_has_no_more_than_it_may(packed: Path, tmp_path: Path) -> None:
    recorded = Tape.load(packed.parent / "recorded")
    whole = pack(recorded, tmp_path / "whole", "sm_90")
    most = (4 << 20) + whole.nbytes // 2
    small = pack(recorded, tmp_path / "small", "sm_90", most=most)
    assert sum(file.stat().st_size for file in (tmp_path / "small").rglob("*") if file.is_file()) < most
    assert 0 < len(small.cases) < len(whole.cases)
    assert small.left_out["it does not go into 4 MiB"] == len(whole.cases) - len(small.cases)
    order = [recorded_case.entry for recorded_case in recorded.cases]
    assert [case.entry for case in whole.cases] == order


def test_wrong_folders_and_gpus(packed: Path, tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    with pytest.raises(LaunchError, match="'sm_91' is no GPU") as caught:
        pack(tape, tmp_path / "new", "sm_91")
    assert caught.value.hint == "write `--arch sm_90`"
    with pytest.raises(LaunchError, match="is not empty"):
        pack(tape, packed, "sm_90")
