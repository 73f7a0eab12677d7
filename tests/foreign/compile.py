"""Makes the PTX of tests/foreign/sources again: ``python tests/foreign/compile.py [NAME ...]``.

nvcc from the path, Triton (with Gluon) and CuTe DSL where they can be imported; neither needs a GPU. Lines of the
sources are left out, since they have the paths of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "sources"), str(HERE.parent / "support"), str(HERE.parent.parent)]
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

from foreign_units import keep  # noqa: E402

NVCC = {"ampere": "sm_80", "hopper": "sm_90a", "libcudacxx": "sm_90a"}


def by_nvcc(wanted: set[str]) -> Iterator[tuple[str, str]]:
    for name, target in NVCC.items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "made.ptx"
            source = HERE / "sources" / f"{name}.cu"
            subprocess.run(["nvcc", "-O3", "-std=c++17", f"-arch={target}", "-ptx", "-o", made, source], check=True)
            yield name, made.read_text()


def by_triton(wanted: set[str]) -> Iterator[tuple[str, str]]:
    import gluon_kernels
    import triton
    import triton_kernels
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    for name, recipe in {**triton_kernels.KERNELS, **gluon_kernels.KERNELS}.items():
        if wanted and name not in wanted:
            continue
        types = {**recipe.types, **dict.fromkeys(recipe.constants, "constexpr")}
        names = list(types)
        aligned = {(n,): [["tt.divisibility", 16]] for n, of in enumerate(names) if types[of].startswith("*")}
        constants = {(names.index(of),): value for of, value in recipe.constants.items()}
        kind = GluonASTSource if name.startswith("gluon") else ASTSource
        for target in recipe.targets:
            source = kind(recipe.function, types, constants, aligned)
            made = triton.compile(source, target=GPUTarget("cuda", target, 32), options=dict(recipe.options))
            facts = made.metadata
            head: dict[str, Any] = {"shared": facts.shared, "ctas": facts.num_ctas}
            head["scratch"] = facts.global_scratch_size
            head["boxes"] = [{of: box[of] for of in ("swizzle", "block_size")} for box in facts.tensordesc_meta or ()]
            yield f"{name}_{target}", f"// {json.dumps(head)}\n{made.asm['ptx']}"


def by_cute(wanted: set[str]) -> Iterator[tuple[str, str]]:
    """A process for each, since the target is a variable of the environment."""
    sys.path.append(str(HERE / "sources"))
    import cute_kernels

    for name, (target, _, _, head) in cute_kernels.KERNELS.items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            changed = {"CUTE_DSL_ARCH": target, "CUTE_DSL_KEEP": "ptx", "CUTE_DSL_DUMP_DIR": folder}
            code = f"from cute_kernels import KERNELS, cute; made = KERNELS[{name!r}]; cute.compile(made[1], *made[2])"
            own = {**os.environ, **changed}
            subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE / "sources", env=own)
            yield name, f"// {json.dumps(head)}\n{next(Path(folder).glob('*.ptx')).read_text()}"


def main() -> None:
    wanted = set(sys.argv[1:])
    (HERE / "ptx").mkdir(exist_ok=True)
    makers = [by_nvcc] if shutil.which("nvcc") else []
    for maker in (*makers, by_triton, by_cute):
        try:
            for name, text in maker(wanted):
                keep(name, text)
                print(name, len(text))
        except ImportError as error:
            print(f"{maker.__name__[3:]} is not here: {error}")


if __name__ == "__main__":
    main()
