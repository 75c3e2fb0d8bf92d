"""The card of a result on a terminal: laid out, and nothing in it steers."""

from __future__ import annotations

from tests.extension.lab_results import rich_card, words_of
from warpbook.cli.labs.card import card_lines
from warpbook_labs.cards.card import card_of
from warpbook_labs.course.session import check_public, find
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.findings import Finding
from warpbook_monitors.plain_text import printable


def test_a_real_check_is_laid_out_in_columns() -> None:
    lab = find("vector-add")
    source = (lab.folder / "solutions" / "wrong" / "no_bound.cu").read_text()
    card = card_of(check_public(lab, source, use_gpu=False).result, source)
    lines = list(card_lines(card))
    assert lines[:3] == [
        "✗ vector-add: failed. 1 of 3 cases passed.",
        "Checked only: nothing was handed in.",
        "",
    ]
    assert "  ✗ failed  shown  a last block that is not full" in lines
    assert "       5 |     float sum = x[i] + y[i];" in lines
    [head] = [line for line in lines if line.startswith("  line ")]
    row = next(line for line in lines if "float sum" in line and "," not in line[-9:])
    assert "warp instructions  sectors  ideal sectors  bank conflicts" in head
    assert row and not any(line != line.rstrip() for line in lines)


def test_a_rich_card_has_every_word_and_no_control_character() -> None:
    card = rich_card()
    lines = list(card_lines(card))
    text = "\n".join(lines)
    assert all(line == printable(line) for line in lines)
    assert "\x1b" not in text and "\u202e" not in text
    for words in words_of(card):
        assert printable(words) in text
    for words in (
        "✗ vector-add: failed. 3 of 4 cases passed. <script>",
        "data race (no happens-before order): two threads <script>",
        "     2 |     sum += 1; // <script>",
        "and 60 more lines",
        "and 1 more finding",
        "! For review: Faster than the limit.",
        "  total time         1.67 ms, 107× the ideal time",
        "# busy, - waiting; full width: 1.67 ms",
    ):
        assert words in text
    assert len(text) < 30_000


def test_a_timeline_marks_what_is_busy_and_what_waits() -> None:
    lines = list(card_lines(rich_card()))
    [host] = [line for line in lines if line.startswith("  host          #")]
    assert host.endswith("#" * 5 + "-" * 55)
    assert "  to the GPU    " + "." * 60 in lines
    assert "  kernels       " + "#" * 60 in lines


def test_a_long_line_of_the_source_ends_where_it_says_so() -> None:
    finding = Finding("race", "x", 1)
    case = CaseResult("small", False, False, "race: x", findings=(finding,))
    result = CheckResult("lab", "failed", "0", (case,))
    for source, is_cut in (("x" * 76, False), ("x" * 77, True)):
        shown = "\n".join(card_lines(card_of(result, source)))
        quoted = shown.partition("| ")[2].split("\n")[0]
        assert len(quoted) == 76 and quoted.endswith("…") == is_cut
