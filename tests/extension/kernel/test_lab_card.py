"""The card of a result in a notebook: static HTML, in which nothing is markup."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import msgspec
import pytest

from tests.extension.lab_results import rich_card, words_of
from warpbook_labs.cards.card import card_of
from warpbook_labs.cards.html import card_html
from warpbook_labs.cards.model import CardStatus
from warpbook_labs.course.session import check_public, find
from warpbook_monitors.plain_text import printable


class Tags(HTMLParser):
    """Checks that what is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_real_check_is_marked_up() -> None:
    lab = find("vector-add")
    source = (lab.folder / "solutions" / "wrong" / "no_bound.cu").read_text()
    card = card_of(check_public(lab, source, use_gpu=False).result, source)
    html = card_html(card)
    for words in (
        '<p class="warpbook-verdict warpbook-failed">✗ vector-add: failed. ',
        "<details open><summary>Cases: 1 of 3 passed</summary><div",
        "<td>✗ failed</td><td>shown</td><td>a last block that is not full</td>",
        "<h4>First failure: a last block that is not full</h4>",
        "<pre>   5 |     float sum = x[i] + y[i];</pre>",
        'aria-label="   5 | float sum = x[i] + y[i];"',
        '<td class="warpbook-number">192</td>',
    ):
        assert words in html


def test_a_rich_card_has_every_word_and_all_of_it_is_escaped() -> None:
    card = rich_card()
    html = card_html(card)
    tags = Tags()
    tags.feed(html)
    assert tags.open == [] and "script" not in tags.seen
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
    assert "window.attacked=1&lt;/script&gt;" in html
    for words in words_of(card):
        assert escape(printable(words)) in html
    for words in (
        "data race (no happens-before order): two threads &lt;script&gt;",
        "<pre>   2 |     sum += 1; // &lt;script&gt;",
        "and 60 more lines",
        "[3, 4]",
        "<dt>time per call</dt><dd>52.1 µs</dd>",
        "<dd>1.67 ms, 107× the ideal time</dd>",
        '<p class="warpbook-warning">For review: Faster than the limit.',
        "<title>host synchronization, 1.53 ms, line 9</title>",
        'role="img" aria-label="What was done when; the full width is 1.67 ms"',
    ):
        assert words in html
    bars = sum(html.count(f'fill="{colour}"') for colour in ("#888888", "#1f77b4"))
    assert html.count("<rect") == bars == 3
    assert len(html) < 40_000


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("passed", "passed"),
        ("failed", "failed"),
        ("error", "failed"),
        ("timed out", "failed"),
        ("unsupported", "warning"),
        ("undecided", "warning"),
    ],
)
def test_a_status_has_its_colour(status: CardStatus, kind: str) -> None:
    card = msgspec.structs.replace(rich_card(), status=status)
    match = re.search(r"warpbook-verdict warpbook-(\w+)", card_html(card))
    assert match is not None and match[1] == kind
