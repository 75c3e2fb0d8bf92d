"""The lab on broken streams: each mistake is told as what it is, at its line."""

from __future__ import annotations

import pytest

from tests.lab_checks import check_all
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load
from warpbook_labs.results.check import CaseResult

LAB = load(CATALOGUE / "streams" / "fix_the_stream")
NOT_DONE = "`produce` and `work` should do each chunk once"
SLOW = "Work on a chunk should go on while the next chunk is produced."

#: a wrong solution, how what is told begins, and a part of the line that is blamed
MISTAKES = [
    ("current_does_not_wait", "race", "out.sum("),
    ("current_waits_for_each_chunk", SLOW, ""),
    ("event_of_the_wrong_stream", "race", "work("),
    ("host_reads_at_once", "host read too early", "report.copy_("),
    ("memory_is_given_back", "released too early", "produce("),
    ("memory_kept_for_the_wrong_stream", "released too early", "produce("),
    ("one_stream", SLOW, ""),
    ("produces_by_itself", NOT_DONE, ""),
    ("produces_in_no_time", NOT_DONE, ""),
    ("side_does_not_wait", "race", "work("),
    ("sleeps_beside_one_stream", NOT_DONE, ""),
    ("sleeps_beside_the_work", NOT_DONE, ""),
    ("synchronizes_everywhere", "The CPU should wait once", ""),
    ("waits_before_the_copy", "host read too early", "report.copy_("),
    ("waits_once_before_the_loop", "race", "work("),
    ("waits_the_wrong_way_round", "race", "work("),
]
WITHOUT_WORK = """
import torch

def prepare(chunks, n):
    return None

def run(state, x, out, report):
    made = 2 * x + 1
    torch.mul(made, made, out=out)
    out.add_(made)
    report.copy_(out.sum(dim=1))
"""


def case_result(source: str) -> CaseResult:
    [case] = check_all(LAB, source, public_cases(LAB.lab)[:1]).cases
    return case


def test_every_wrong_solution_has_its_mistake_listed() -> None:
    assert {f"{name}.py" for name, *_ in MISTAKES} == set(LAB.wrong)


@pytest.mark.parametrize(("name", "begin", "blamed"), MISTAKES)
def test_a_mistake_is_told_as_what_it_is(name: str, begin: str, blamed: str) -> None:
    source = LAB.wrong[f"{name}.py"]
    case = case_result(source)
    assert case.message.startswith(begin)
    if blamed:
        line = case.findings[0].line
        assert line is not None and blamed in source.splitlines()[line - 1]


def test_what_the_kernels_take_is_added_up_however_much_overlaps() -> None:
    one_stream = case_result(LAB.wrong["one_stream.py"]).host_counts
    overlapped = case_result(LAB.reference).host_counts
    assert one_stream is not None and overlapped is not None
    assert overlapped.kernel_ns == one_stream.kernel_ns
    assert overlapped.compute_ns < 0.8 * one_stream.compute_ns


def test_the_arithmetic_alone_is_not_what_was_asked() -> None:
    assert case_result(WITHOUT_WORK).message.startswith(NOT_DONE)
