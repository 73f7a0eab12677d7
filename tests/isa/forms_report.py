"""How much of the judged instruction forms the table takes: ``python tests/forms_report.py FOLDER [GROUP ...]``.

The folder holds ``forms.jsonl``, whose modules NVIDIA's assembler accepts and which must parse and verify, and
``rejects.jsonl``, whose modules it refuses and which must be refused here too.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptxdsl.errors import PtxError
from ptxdsl.text import parse, to_text
from ptxdsl.verify import verify

SHOWN = 4
"""Failures that are shown of each group."""


def offence(text: str) -> str | None:
    """Why a module is refused, in one line; None if it is accepted."""
    try:
        module = parse(text)
        verify(module)
    except PtxError as error:
        return error.message.split("\n", maxsplit=1)[0]
    except Exception as error:  # noqa: BLE001 - a row that cannot be expanded is a finding like the others
        return f"a bug: {error!r}"
    if parse(to_text(module)) != module:
        return "does not survive printing"
    return None


def cases(path: Path, groups: list[str]) -> Iterator[dict[str, Any]]:
    """The lines of a file, of the groups or of all."""
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        if not groups or case["group"] in groups:
            yield case


def report(path: Path, groups: list[str], wanted: bool, key: str) -> tuple[int, int]:
    """Print how many cases of each group are judged as they should be, and the first that are not."""
    good: dict[str, int] = defaultdict(int)
    bad: dict[str, list[str]] = defaultdict(list)
    for case in cases(path, groups):
        came = offence(case["module"])
        if (came is None) == wanted and not (came or "").startswith("a bug"):
            good[case[key]] += 1
        else:
            place = f"{case['target']} {case['version']}"
            bad[case[key]].append(f"{case['ptx'][:110]}  ({place})  {came or case['message']}")
    for name in sorted({*good, *bad}, key=lambda name: (-len(bad[name]), name)):
        count = good[name] + len(bad[name])
        print(f"{100 * good[name] / count:6.1f} %  {good[name]:5} of {count:5}  {name}")
        for text in bad[name][:SHOWN]:
            print(f"            {text}")
    total, right = sum(good.values()) + sum(map(len, bad.values())), sum(good.values())
    print(f"{100 * right / max(1, total):6.1f} %  {right:5} of {total:5}  {'accepted' if wanted else 'refused'}\n")
    return right, total


def main() -> None:
    """The command."""
    folder, *groups = sys.argv[1:]
    report(Path(folder) / "forms.jsonl", groups, True, "group")
    report(Path(folder) / "rejects.jsonl", groups, False, "category")


if __name__ == "__main__":
    main()
