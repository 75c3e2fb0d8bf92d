"""What cards call things, in the field's words; the same for every renderer."""

from __future__ import annotations

from collections.abc import Iterable

from warpbook_labs.cards.model import CardStatus
from warpbook_labs.lab.entries import SoFar
from warpbook_labs.results.check import CaseResult, CheckResult, Status
from warpbook_labs.results.device import DeviceCase

_STATES = {"new": "not begun", "begun": "begun", "passed": "passed"}


def how_far(done: SoFar | None) -> str:
    if done is None:
        return "not known"
    if done.state == "tried":
        noun = "case" if done.of == 1 else "cases"
        return f"{done.right:,} of {done.of:,} {noun}"
    return _STATES[done.state]


UNSUPPORTED = "not supported by the checker here; it needs a GPU"
#: where a GPU has run it, which finds no races and counts nothing
UNSUPPORTED_BESIDE_A_GPU = "not supported by the checker"
GRADED_HERE = "Practice grade (graded on this machine)."
#: of findings, where the kind by itself says too little
_KINDS = {
    "race": "data race (no happens-before order)",
    "uninitialised read": "uninitialized read",
    "out of bounds": "out-of-bounds access",
    "misaligned": "misaligned access",
    "read-only": "write to read-only memory",
    "assertion": "assertion failed",
    "too long": "timed out",
    "host read too early": "host read without synchronization",
    "released too early": "memory released while in use",
    "stale graph": "stale CUDA graph",
    "capture": "invalid stream capture",
    "unsupported": UNSUPPORTED,
}
_STATUSES: dict[Status, CardStatus] = {
    "passed": "passed",
    "failed": "failed",
    "compile error": "error",
    "bad launch rule": "error",
    "stopped": "error",
    "timed out": "timed out",
    "unsupported": "unsupported",
    "too slow": "failed",
    "too noisy to tell": "undecided",
    "too busy": "undecided",
}


def card_status(result: CheckResult) -> CardStatus:
    """Give the status of a result; what only the checker can't do is no failure."""
    failed = [case for case in result.cases if not case.passed]
    if result.status == "failed" and failed and all(map(is_unsupported, failed)):
        return "unsupported"
    return _STATUSES[result.status]


def case_status(case: CaseResult | DeviceCase) -> CardStatus:
    if case.passed:
        return "passed"
    if isinstance(case, DeviceCase):
        return "timed out" if case.kind == "hang" else "failed"
    if is_unsupported(case):
        return "unsupported"
    kinds = {finding.kind for finding in case.findings}
    return "timed out" if kinds == {"too long"} else "failed"


def is_unsupported(case: CaseResult) -> bool:
    """Tell whether a case failed by nothing but what the checker does not support."""
    # a kind that this version's findings need not have
    kinds: set[str] = {finding.kind for finding in case.findings}
    return case.is_unsupported or kinds == {"unsupported"}


def kind_name(kind: str) -> str:
    """Name the kind of a finding; one that is not known here, as it came."""
    return _KINDS.get(kind, kind)


def failure_text(case: CaseResult) -> str:
    """Say in short why a case failed."""
    if case.findings:
        first = case.findings[0]
        return f"{kind_name(first.kind)}: {first.message}"
    if case.is_unsupported:
        return f"{UNSUPPORTED}: {case.message}"
    return case.message


def not_shown(count: int) -> str:
    """Say how many hidden cases failed beside the first."""
    return f"{count:,} more hidden case{'' if count == 1 else 's'} failed (not shown)."


def sizes_text(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {size:,}" for name, size in sizes.items())


def counted(count: int, one: str, many: str) -> str:
    """Choose between the singular and the plural of a unit."""
    return one if count == 1 else many


def limited(text: object, most: int) -> str:
    """Bound the length of somebody else's text; it is not escaped."""
    words = str(text).expandtabs(4)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def limited_lines(lines: Iterable[str], most: int) -> tuple[str, ...]:
    """Bound the length of each line."""
    return tuple(limited(line, most) for line in lines)
