"""The card of a submission: one is told as one, on a terminal and in a notebook."""

from __future__ import annotations

import msgspec

from warpbook.cli.labs_card import card_lines
from warpbook.kernel.lab_card import card_html
from warpbook_labs.ptx.findings import Finding
from warpbook_labs.results import CaseResult, CheckResult
from warpbook_labs.session import Card


def told(findings: int, log_lines: int, left_out: int) -> tuple[str, str]:
    case = CaseResult(
        "small",
        is_hidden=True,
        passed=False,
        message="race: x",
        findings=(Finding("race", "x"),) * findings,
    )
    log = "words\n" * log_lines
    result = CheckResult("lab", "failed", "0", (case,), 0, 1 + left_out, log)
    card = Card(result, False, "self-graded", 1)
    return "\n".join(card_lines(card, "")), card_html(msgspec.to_builtins(card), "")


def test_what_is_left_out_is_counted_in_good_english() -> None:
    text, html = told(findings=4, log_lines=41, left_out=1)
    assert "and 1 more finding\n" in text and "and 1 more finding<" in html
    assert "and 1 more line\n" in text and "and 1 more line<" in html
    assert "1 more hidden case fails; it is not told." in text
    assert "1 more case is not told." in html
    text, html = told(findings=5, log_lines=42, left_out=2)
    assert "and 2 more findings\n" in text and "and 2 more findings<" in html
    assert "and 2 more lines\n" in text and "and 2 more lines<" in html
    assert "2 more hidden cases fail; they are not told." in text
    assert "2 more cases are not told." in html
    text, html = told(findings=3, log_lines=40, left_out=0)
    assert " more " not in text and " more " not in html


def test_a_long_line_of_the_source_ends_where_it_says_so() -> None:
    finding = Finding("race", "Line 1: x", 1)
    case = CaseResult("small", False, False, "race: x", findings=(finding,))
    card = Card(CheckResult("lab", "failed", "0", (case,)), False, "self-graded", 1)
    for source, is_cut in (("x" * 76, False), ("x" * 77, True)):
        quoted = "\n".join(card_lines(card, source)).partition("| ")[2].split("\n")[0]
        assert len(quoted) == 76 and quoted.endswith("…") == is_cut
