"""What is told of hidden cases: the first that fails, and never how large it is."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.lab_checks import check
from warpbook.cli.labs.card import card_lines
from warpbook_labs.cards.card import card_of
from warpbook_labs.cases.comparison import WrongElement, wrong_words
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.device import DeviceCase
from warpbook_labs.results.disclosure import fit_to_tell

#: a size that nothing else has
SIZE = 1_021
WRONG = WrongElement("out", (3,), "1", "0", "exactly", 526, SIZE)
VECTOR_ADD = find("vector-add")
CORRECT = VECTOR_ADD.correct["one_element_each.cu"]


def told_of(name: str, source: str, is_hidden: bool = True) -> CaseResult:
    """Check a source against one case."""
    case = DrawnCase("a prime number", {"n": SIZE}, "random", 5, is_hidden)
    loaded = find(name)
    result = check(loaded, source, [case])
    [shown] = result.cases
    text = "\n".join(card_lines(card_of(result, source)))
    # work is told of hidden cases, too
    without_work = msgspec.structs.replace(shown, counts=None, lines={})
    words = f"{text} {msgspec.json.encode(without_work)!r}"
    assert bool(re.search(r"1,?021|4,?084", words)) != is_hidden, words
    return shown


@pytest.mark.parametrize("kind", [CaseResult, DeviceCase])
def test_the_first_hidden_failure_is_told_though_later_ones_equal_it(
    kind: type[CaseResult] | type[DeviceCase],
) -> None:
    def case(about: str, is_hidden: bool, passed: bool) -> CaseResult | DeviceCase:
        return kind(about, is_hidden, passed, message="" if passed else "ValueError")

    cases = [
        case("a", False, False),
        case("a", False, False),
        case("b", True, True),
        *[case("a", True, False)] * 2,
        case("b", True, True),
        case("a", True, False),
    ]
    assert fit_to_tell(cases) == (*cases[:4], cases[5])  # type: ignore[type-var]


def test_hidden_cases_of_host_code_that_raise_alike_are_told_once() -> None:
    loaded = find("fix-the-stream")
    [line] = re.findall(r"^def run\(.*$", loaded.reference, re.M)
    raising = f'{line}\n    if len(x) not in (4, 6):\n        raise ValueError("x")'
    source = loaded.reference.replace(line, raising)
    shown = public_cases(loaded.lab)
    odd = [case for case in hidden_cases(loaded.lab, 1) if case.sizes["chunks"] == 3]
    cases = [*shown, *odd[:1] * 3]
    result = check(loaded, source, cases)
    assert (result.right, result.of) == (len(shown), len(cases))
    [failed] = [case for case in result.cases if not case.passed]
    assert failed.message.endswith(
        "ValueError; details are shown for visible cases only."
    )


def test_how_many_elements_there_are_is_told_of_cases_that_are_shown_only() -> None:
    words = wrong_words(WRONG)
    for case in (
        CaseResult("a", False, False, words, {"n": SIZE}, WRONG),
        DeviceCase("a", False, False, "wrong", words, {"n": SIZE}, WRONG),
    ):
        assert fit_to_tell([case]) == (case,)  # type: ignore[type-var]
        hidden = msgspec.structs.replace(case, is_hidden=True, sizes=None)
        [shown] = fit_to_tell([hidden])  # type: ignore[type-var]
        assert shown.message == "out[3] is 1; expected 0, exactly."
        assert shown.wrong == msgspec.structs.replace(WRONG, wrong=None, elements=None)


def test_a_wrong_element_of_a_hidden_case_is_told_without_its_size() -> None:
    source = CORRECT.replace("sum < 0 ? 0", "sum < 0 ? 1")
    case_shown = told_of("vector-add", source)
    assert case_shown.wrong is not None and case_shown.wrong.got == "1"
    words = "is 1; expected 0, exactly. Line 7 wrote it last, from what lines 4 to "
    assert case_shown.message.endswith(f"{words}6 computed.")
    shown = told_of("vector-add", source, is_hidden=False)
    assert "of 1,021 elements are wrong." in shown.message


def test_an_access_beyond_a_buffer_of_a_hidden_case_is_told_without_its_size() -> None:
    source = CORRECT.replace("(i >= n)", "(i > n)")
    shown = told_of("vector-add", source)
    [finding] = shown.findings
    assert finding.kind == "out of bounds" and finding.line is not None
    assert ": past the end of `y`." in finding.message
    told_of("vector-add", source, is_hidden=False)


def test_a_mistake_of_a_hidden_case_is_told_before_what_can_not_be_checked() -> None:
    open_case = CaseResult("a", True, False, "It is not known.", is_unsupported=True)
    wrong = CaseResult("b", True, False, "It is wrong.")
    assert fit_to_tell([open_case, wrong, wrong]) == (wrong,)
    assert fit_to_tell([open_case, open_case]) == (open_case,)
