"""Which of the judged instruction forms the language reaches: ``python tests/reach_report.py FORMS.jsonl [GROUP ...]``.

Each line of the file has a module that NVIDIA's assembler accepts; each instruction in it is written through
``ptx[...]`` and by attributes, traced, printed, read back and compared.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from reaching import reached

from ptxdsl.errors import PtxError
from ptxdsl.text import parse

SHOWN = 60
"""Failures that are shown of each group."""


def main() -> None:
    """The command."""
    path, *groups = sys.argv[1:]
    good: Counter[str] = Counter()
    bad: defaultdict[str, list[str]] = defaultdict(list)
    for line in Path(path).read_text("utf-8").splitlines():
        case = json.loads(line)
        if groups and case["group"] not in groups:
            continue
        try:
            module = parse(case["module"])
        except PtxError as error:
            bad[case["group"]].append(f"{case['ptx'][:90]}  does not parse: {error.message}")
            continue
        for function in module.functions:
            for instruction in function.instructions():
                if instruction.form.opcode == "ret" and "ret" not in case["opcode"]:
                    continue
                why = reached(instruction, function, module)
                if why is None:
                    good[case["group"]] += 1
                else:
                    bad[case["group"]].append(f"{case['ptx'][:90]}  {instruction.form!r} {why[:1200]}")
    for group in sorted({*good, *bad}, key=lambda g: (-len(bad[g]), g)):
        print(f"{good[group]:6} of {good[group] + len(bad[group]):6}  {group}")
        for text in bad[group][:SHOWN]:
            print(f"          {text}")
    total = good.total() + sum(map(len, bad.values()))
    print(f"{good.total():6} of {total:6}  reached")


if __name__ == "__main__":
    main()
