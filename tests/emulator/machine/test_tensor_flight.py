"""Missing waits for the tensor core and for stores to tensor memory: wrong kernels, each beside a right one."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_memory_programs import MEET, complete, fill, kernel, launched, registers

from ptxdsl import RaceError

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
SHIFT = "tcgen05.shift.cta_group::1.down"
LOAD = f"tcgen05.ld.sync.aligned.32x32b.x4.b32 {registers(4)}, [%a+@];\ntcgen05.wait::ld.sync.aligned;\n"
STORE = f"tcgen05.st.sync.aligned.32x32b.x4.b32 [%a+@], {registers(4)};\ntcgen05.wait::st.sync.aligned;\n"
HINT = "wait at the mbarrier of a `tcgen05.commit` behind it: `mbarrier.try_wait.parity`"


def run(body: str, threads: int = 128, columns: int = 64, **how: object) -> None:
    launched(kernel(body, columns=columns, group=int("cta_group::2" in body) + 1), np.zeros(128 * 64, np.uint32),
             (4,), threads, **how)


def refused(body: str, **how: object) -> RaceError:
    with pytest.raises(RaceError) as caught:
        run(body, **how)
    return caught.value


def begun(operation: str, count: int = 2) -> str:
    """An operation of the first thread, with mbarriers but without a wait."""
    return "".join(f"@%first mbarrier.init.shared.b64 [barriers+{8 * n}], 1;\n" for n in range(count)) + (
        f"bar.sync 0;\n@%first {operation};\nadd.u32 %a, %base, %quarter;\n"
    )


def wait(number: int = 0, name: str = "W") -> str:
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p, [barriers+{8 * number}], 0;\n@!%p bra {name};\n"


@pytest.mark.parametrize("access", [LOAD, STORE])
def test_an_access_before_the_wait(access: str) -> None:
    form = access.partition(" ")[0]
    body = begun(f"{SHIFT} [%base+8]") + f"@%first {COMMIT} [barriers];\n"
    error = refused(fill(32, 64) + body + access.replace("@", "12") + wait())
    assert error.message.startswith(f"`{form}` accesses column 12 of tensor memory, which `{SHIFT}` at PTX line ")
    assert error.message.endswith(" in warp 0 may still use")
    assert error.hint == HINT
    run(fill(32, 64) + body + wait() + access.replace("@", "12"))


@pytest.mark.parametrize("access", [LOAD, STORE])
@pytest.mark.parametrize("column", [4, 16])
def test_what_lies_beside_needs_no_wait(access: str, column: int) -> None:
    body = begun(f"{SHIFT} [%base+8]") + f"@%first {COMMIT} [barriers];\n"
    run(fill(32, 64) + body + access.replace("@", str(column)) + wait())


def test_other_lanes_need_no_wait() -> None:
    """A shift has one quarter of the lanes; only that warp waits."""
    body = begun(f"{SHIFT} [%base+{32 << 16}]") + f"@%first {COMMIT} [barriers];\n"
    waits = "setp.ne.u32 %p, %w, 1;\n@%p bra OTHER;\n" + wait() + "OTHER:\n"
    run(fill(32, 64) + body + waits + LOAD.replace("@", "0") + wait(name="V"))


def test_a_wait_without_a_commit() -> None:
    """The mbarrier says nothing of the tensor core where nobody has committed to it."""
    body = begun(f"{SHIFT} [%base]") + "@%first mbarrier.arrive.shared.b64 _, [barriers];\n" + wait()
    assert refused(fill(32, 64) + body + LOAD.replace("@", "0")).hint == HINT


def test_a_commit_before_the_operation() -> None:
    first = "@%first mbarrier.init.shared.b64 [barriers], 1;\nbar.sync 0;\n"
    late = first + f"@%first {COMMIT} [barriers];\n@%first {SHIFT} [%base];\n"
    after = wait() + "add.u32 %a, %base, %quarter;\n" + LOAD.replace("@", "0")
    assert refused(fill(32, 64) + late + after).hint == HINT


def test_a_later_commit_tells_of_all_before() -> None:
    body = begun(f"{SHIFT} [%base]") + f"@%first {COMMIT} [barriers];\n@%first {SHIFT} [%base+8];\n"
    body += f"@%first {COMMIT} [barriers+8];\n"
    run(fill(32, 64) + body + wait(1) + LOAD.replace("@", "0") + LOAD.replace("@", "8"))
    error = refused(fill(32, 64) + body + wait(0) + LOAD.replace("@", "0") + LOAD.replace("@", "8") + wait(1, "V"))
    assert "accesses column 8 of tensor memory" in error.message


def test_one_thread_waits_and_tells_the_others() -> None:
    body = begun(f"{SHIFT} [%base]") + f"@%first {COMMIT} [barriers];\n"
    one = "setp.ne.u32 %q, %t, 77;\n@%q bra TOLD;\n" + wait() + "TOLD: bar.sync 0;\n"
    run(fill(32, 64) + body + one + LOAD.replace("@", "0"))


def test_freed_before_the_wait() -> None:
    body = fill(32, 64) + begun(f"{SHIFT} [%base]") + f"@%first {COMMIT} [barriers];\n"
    form = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
    assert refused(body).message.startswith(f"`{form}` accesses column 0 of tensor memory, which `{SHIFT}`")
    run(body + wait())


@pytest.mark.parametrize("seed", [None, 3])
def test_more_mbarriers_than_are_remembered(seed: int | None) -> None:
    """Turn after turn, of which each is waited for."""
    turn = """
    mov.u32 %c, 0;
TURN:
    @%first {shift} [%base];
    @%first {commit} [barriers];
    and.b32 %b, %c, 1;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [barriers], %b;
    @!%p bra WAIT;
    {load}
    bar.sync 0;
    add.u32 %c, %c, 1;
    setp.lt.u32 %p, %c, 200;
    @%p bra TURN;
    """.format(shift=SHIFT, commit=COMMIT, load=LOAD.replace("@", "0"))
    run(fill(32, 64) + "@%first mbarrier.init.shared.b64 [barriers], 1;\nbar.sync 0;\n" + turn, seed=seed)


# Stores


def test_a_store_without_a_wait() -> None:
    bare = STORE.partition("\n")[0] + "\n"
    body = fill(32, 64) + bare.replace("@", "0")
    error = refused(body + LOAD.replace("@", "3"))
    form = bare.partition(" ")[0]
    assert error.message.startswith(
        f"`{LOAD.partition(' ')[0]}` accesses column 3 of tensor memory, which `{form}` at PTX line "
    )
    assert error.message.endswith(" may not have written yet")
    assert error.hint == (
        "let that warp execute `tcgen05.wait::st.sync.aligned` before it tells others, or goes on itself"
    )
    run(body + "tcgen05.wait::st.sync.aligned;\n" + LOAD.replace("@", "3"))
    run(body + bare.replace("@", "0") + "tcgen05.wait::st.sync.aligned;\n")  # one store behind the other
    run(body + LOAD.replace("@", "4") + "tcgen05.wait::st.sync.aligned;\n")


def test_the_tensor_core_before_the_wait_of_a_store() -> None:
    bare = STORE.partition("\n")[0].replace("@", "0") + "\n"
    body = fill(32, 64) + bare + begun(f"{SHIFT} [%base]") + f"@%first {COMMIT} [barriers];\n" + wait()
    assert "may not have written yet" in refused(body).message
    run(fill(32, 64) + bare + "tcgen05.wait::st.sync.aligned;\n" + begun(f"{SHIFT} [%base]")
        + f"@%first {COMMIT} [barriers];\n" + wait())


# Pairs


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_pairs(seed: int | None) -> None:
    """Each block waits at its own mbarrier; who does not is at fault, also in the block that has issued nothing."""
    rank = "mov.u32 %rank, %cluster_ctarank; setp.eq.and.u32 %q, %rank, 1, %first;\n"
    shift = "@%q tcgen05.shift.cta_group::2.down [%base];"
    right = fill(32, 64) + rank + complete(shift, 2, "%q") + "add.u32 %a, %base, %quarter;\n"
    run(right + LOAD.replace("@", "0") + MEET, grid=4, cluster=2, seed=seed)
    wrong = fill(32, 64) + rank + MEET + shift + MEET + "add.u32 %a, %base, %quarter;\n" + LOAD.replace("@", "0")
    assert refused(wrong, grid=2, cluster=2, seed=seed).hint == HINT
