"""What came of the launches, by instruction form and by test: a table for people, JSON for programs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .children import About
from .playing import Result
from .tape import Tape

__all__ = ["VERDICTS", "failed", "summary", "table"]

VERDICTS = {
    "ok": "every byte is the emulator's",
    "close": "floats are near, where the last bits of an instruction are left open",
    "incomparable": "it reads what each GPU has otherwise, as a clock",
    "differs": "bytes are others",
    "faults": "the kernel or its process failed",
    "hangs": "it did not end in time",
    "not assembled": "the assembler, or the driver's, refuses it for this GPU",
    "not replayable": "it cannot be repeated there",
}
_WRONG = ("differs", "faults", "hangs")
_SHOWN = 5


def summary(tape: Tape, about: About, results: Mapping[int, Result]) -> dict[str, Any]:
    """The report as data."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    tests: dict[str, Counter[str]] = defaultdict(Counter)
    alone: dict[str, Counter[str]] = defaultdict(Counter)
    for number, result in results.items():
        case = tape.cases[number]
        for form in tape.codes[case.code].forms:
            forms[form][result.verdict] += 1
        if case.form:
            alone[case.form][result.verdict] += 1
        tests[case.test][result.verdict] += 1
    suspects = {
        form: sum(counts[verdict] for verdict in _WRONG) for form, counts in forms.items()
        if not counts["ok"] and any(counts[verdict] for verdict in _WRONG)
    }
    return {
        "gpu": about._asdict(), "target": tape.target,
        "launches": Counter(result.verdict for result in results.values()),
        "left out": tape.left_out, "forms": forms, "forms alone": alone, "tests": tests, "suspects": suspects,
        "wrong": [_entry(tape, number, result) for number, result in sorted(results.items()) if result.verdict != "ok"],
    }


def _entry(tape: Tape, number: int, result: Result) -> dict[str, Any]:
    case = tape.cases[number]
    return {
        "number": number, "test": case.test, "form": case.form, "kernel": case.entry, "grid": case.grid,
        "block": case.block, "verdict": result.verdict, "detail": result.detail,
    }


def failed(made: Mapping[str, Any]) -> bool:
    """Whether something is wrong."""
    return any(made["launches"].get(verdict) for verdict in _WRONG)


def table(made: Mapping[str, Any]) -> str:
    """The report for people."""
    gpu = made["gpu"]
    total = sum(made["launches"].values())
    version = f"{gpu['driver'] // 1000}.{gpu['driver'] % 1000 // 10}"
    counted = f"{total} launches of {len(made['tests'])} tests, {len(made['forms'])} instruction forms"
    lines = [
        f"{gpu['name']}, sm_{gpu['capability']}, driver {version}: {counted}",
        *(f"  {count:7} {verdict:14} {VERDICTS[verdict]}" for verdict, count in _ordered(made["launches"])),
    ]
    if made["left out"]:
        lines += ["", f"{sum(made['left out'].values())} launches of the tests are not among them:"]
        lines += [f"  {count:7} {reason}" for reason, count in sorted(made["left out"].items(), key=lambda e: -e[1])]
    lines += _counts("instruction forms alone, where not all is ok", made["forms alone"])
    lines += _counts("by test file, where not all is ok", _by_file(made["tests"]))
    if made["suspects"]:
        lines += ["", "instructions that stand in launches that are wrong, and in none that is ok:"]
        lines += [f"  {count:7} {form}" for form, count in Counter(made["suspects"]).most_common(40)]
    for verdict in (*_WRONG, "not replayable", "not assembled", "close", "incomparable"):
        lines += _examples(verdict, [each for each in made["wrong"] if each["verdict"] == verdict])
    return "\n".join(lines) + "\n"


def _ordered(counts: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return ((verdict, counts[verdict]) for verdict in VERDICTS if counts.get(verdict))


def _counts(title: str, found: Mapping[str, Mapping[str, int]]) -> list[str]:
    rows = {name: counts for name, counts in found.items() if set(counts) != {"ok"}}
    if not rows:
        return []
    width = min(max(map(len, rows)), 72)
    return ["", f"{title} ({len(rows)} of {len(found)}):"] + [
        f"  {name:{width}}  " + ", ".join(f"{count} {verdict}" for verdict, count in _ordered(counts))
        for name, counts in sorted(rows.items())
    ]


def _by_file(tests: Mapping[str, Mapping[str, int]]) -> dict[str, Counter[str]]:
    files: dict[str, Counter[str]] = defaultdict(Counter)
    for test, counts in tests.items():
        files[test.partition("::")[0]].update(counts)
    return files


def _examples(verdict: str, found: list[dict[str, Any]]) -> list[str]:
    """All that is wrong, once or twice a test; of the rest a few."""
    lines: list[str] = []
    shown: Counter[str] = Counter()
    for each in found:
        what = each["form"] or each["test"].partition("[")[0]
        shown[what] += 1
        if shown[what] > 2 or (verdict not in _WRONG and len(lines) >= _SHOWN):
            continue
        lines.append(
            f"  {each['number']}: {each['form'] or each['kernel']}, grid {tuple(each['grid'])}, "
            f"block {tuple(each['block'])}, in {each['test']}\n      {each['detail']}"
        )
    more = f", {len(lines)} of them" if len(lines) < len(found) else ""
    return ["", f"{verdict} ({len(found)}{more}):", *lines] if lines else []
