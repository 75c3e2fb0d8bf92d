"""Triton's programs may share what lies behind a lock, if it is one."""

from __future__ import annotations

import pytest

from tests.lab_checks import check
from tests.programs import ROOT
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.course.session import find
from warpbook_labs.results.check import CaseResult

_SOURCES = ROOT / "tests/corpus/sources/tensor_cores"
LOCKED = (_SOURCES / "taken_under_a_lock.py").read_text()
COUNTED = (_SOURCES / "last_one_adds_up.py").read_text()
TAKEN = "tl.atomic_cas(lock, 0, 1)"
GIVEN = "tl.atomic_xchg(lock, 0)"
BARRIER = "    tl.debug_barrier()\n"


def first(source: str) -> CaseResult:
    lab = find("tensor-cores")
    result = check(lab, source, public_cases(lab.lab)[:1])
    return result.cases[0]


def test_what_one_program_after_the_other_adds_to_under_a_lock_is_no_race() -> None:
    assert first(LOCKED).passed
    acquired = LOCKED.replace(TAKEN, 'tl.atomic_cas(lock, 0, 1, sem="acquire")')
    assert first(
        acquired.replace(GIVEN, 'tl.atomic_xchg(lock, 0, sem="release")')
    ).passed


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # threads that are not done yet store behind the lock
        (BARRIER, "", "which program (0, 0) wrote"),
        (TAKEN, 'tl.atomic_cas(lock, 0, 1, sem="relaxed")', "which program (0, 0)"),
        (GIVEN, 'tl.atomic_xchg(lock, 0, sem="relaxed")', "which program (0, 0)"),
        (GIVEN, 'tl.atomic_xchg(lock, 0, scope="cta")', "which program (0, 0)"),
        (GIVEN, "tl.store(lock, 0)", "which program (0, 0)"),
        # each has a lock of its own
        ("lock = locks + tl.program_id(0)", "lock = locks + tl.program_id(1)", "wrote"),
        # whoever has it loses it
        (
            "    while tl.atomic",
            f"    {GIVEN}\n    while tl.atomic",
            "changes the lock `locks[0]`, which it does not hold",
        ),
    ],
)
def test_what_is_no_lock_leaves_the_race(old: str, new: str, words: str) -> None:
    source = LOCKED.replace(old, new)
    assert source != LOCKED
    case = first(source)
    assert case.message.startswith("race: ") and words in case.message, case.message


def test_who_comes_last_to_a_counter_sees_what_the_others_did_before() -> None:
    assert first(COUNTED).passed
    for old, new in ((BARRIER, ""), ("acq_rel", "relaxed"), ("acq_rel", "acquire")):
        case = first(COUNTED.replace(old, new))
        assert case.message.startswith("race: "), case.message
    # what it stores behind the counter the others don't see
    late = COUNTED.replace(
        "    if before", "    tl.store(part + at, total)\n    if before"
    )
    assert first(late).message.startswith("race: ")
