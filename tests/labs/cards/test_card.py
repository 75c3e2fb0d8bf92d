"""The card of a result: typed cells, lines as numbers, and nothing that is hidden."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.extension.lab_results import (
    ATTACK,
    DEVICE,
    HOST,
    LIMITS,
    RICH,
    SOURCE,
    SPEED,
    WRITTEN,
    rich_card,
    written,
)
from warpbook_labs.cards.card import card_of
from warpbook_labs.cards.model import (
    Card,
    CardFacts,
    CardSection,
    CardTable,
    CardText,
    LocationCell,
    RatioCell,
    cell_text,
    cells_text,
    heading,
)
from warpbook_labs.course.session import check_public, find
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import SpeedResult
from warpbook_labs.results.findings import Finding
from warpbook_profiler.model.stalls import Stalls

UNSUPPORTED = "not supported by the checker here; it needs a GPU"


def section(card: Card, title: str) -> CardSection:
    return next(
        part_of_card
        for part_of_card in card.sections
        if part_of_card.title.startswith(title)
    )


def facts(of: CardSection) -> dict[str, str]:
    return {
        fact.label: cells_text(fact.cells)
        for part in of.parts
        if isinstance(part, CardFacts)
        for fact in part.facts
    }


def texts(of: CardSection) -> list[str]:
    return [part.text for part in of.parts if isinstance(part, CardText)]


def failing(count: int, **changes: Any) -> CheckResult:
    case = CaseResult("small", True, False, "wrong", **changes)
    return CheckResult("lab", "failed", "0", (case,), 0, count)


def test_a_real_check_gives_its_findings_lines_as_numbers() -> None:
    lab = find("vector-add")
    source = (lab.folder / "solutions" / "wrong" / "no_bound.cu").read_text()
    card = card_of(check_public(lab, source, use_gpu=False).result, source)
    assert (card.status, card.label) == ("failed", "failed")
    failure = section(card, "First failure: a last block that is not full")
    [quoted] = [part for part in failure.parts if isinstance(part, LocationCell)]
    assert (quoted.line, quoted.code) == (5, "    float sum = x[i] + y[i];")
    assert any("out-of-bounds access: thread" in text for text in texts(failure))
    [work] = section(card, "Most work by line").parts
    assert isinstance(work, CardTable) and work.heads[:3] == (
        "line",
        "warp instructions",
        "sectors",
    )
    assert {5, 6} <= {row[0].line for row in work.rows}  # type: ignore[union-attr]
    assert section(card, "Occupancy of a multiprocessor").fold == "closed"


def test_what_is_about_a_line_has_it_beside_its_words() -> None:
    lab = find("vector-add")
    source = lab.correct["one_element_each.cu"].replace("(n, 256)", "(rows, 256)")
    card = card_of(check_public(lab, source, use_gpu=False).result, source)
    assert (card.status, card.label) == ("error", "bad launch rule")
    [quoted] = [
        part for part in card.sections[0].parts if isinstance(part, LocationCell)
    ]
    assert quoted.line == 1 and "ceil_div(rows, 256)" in quoted.code
    # words alone name no line: a person may have written them
    said = CaseResult("small", False, False, "Line 2: x")
    card = card_of(CheckResult("lab", "failed", "Line 1: x", (said,), 0, 1), SOURCE)
    parts = [part for card_section in card.sections for part in card_section.parts]
    assert not any(isinstance(part, LocationCell) for part in parts)


@pytest.mark.parametrize(
    ("result", "status", "label"),
    [
        (failing(1), "failed", "failed"),
        (failing(1, is_unsupported=True), "unsupported", "unsupported"),
        (
            failing(1, findings=(Finding("unsupported", "x", 1),)),  # type: ignore[arg-type]
            "unsupported",
            "unsupported",
        ),
        (CheckResult("lab", "unsupported", "`redux`."), "unsupported", "unsupported"),
        (CheckResult("lab", "compile error", "x"), "error", "compile error"),
        (CheckResult("lab", "stopped", "x"), "error", "stopped"),
        (CheckResult("lab", "timed out", "x"), "timed out", "timed out"),
        (CheckResult("lab", "too slow", "x"), "failed", "too slow"),
        (CheckResult("lab", "too busy", "x"), "undecided", "too busy"),
        (CheckResult("lab", "passed", "x"), "passed", "passed"),
    ],
)
def test_a_card_has_a_status_of_its_own(
    result: CheckResult, status: str, label: str
) -> None:
    card = card_of(result, SOURCE)
    assert (card.status, card.label) == (status, label)
    is_said = UNSUPPORTED[1:] in heading(card)
    assert is_said == (status == "unsupported")


def test_a_case_that_cant_be_checked_is_no_failure_beside_one_that_fails() -> None:
    unsupported = CaseResult("a", False, False, "`redux`", is_unsupported=True)
    wrong = CaseResult("b", False, False, "wrong")
    both = CheckResult("lab", "failed", "0", (unsupported, wrong), 0, 2)
    card = card_of(both, SOURCE)
    assert card.status == "failed"
    [table] = section(card, "Cases").parts
    assert isinstance(table, CardTable)
    said = [cell_text(row[0]) for row in table.rows]
    assert said == ["? unsupported", "✗ failed"]
    assert texts(section(card, "First failure: b")) == ["wrong"]
    alone = card_of(msgspec.structs.replace(both, cases=(unsupported,)), SOURCE)
    words_shown = texts(section(alone, "Not supported: a"))
    assert words_shown == [f"{UNSUPPORTED}: `redux`"]


def test_what_only_a_gpu_could_check_is_no_failure_there() -> None:
    cases = (CaseResult("a", False, False, "`redux`", is_unsupported=True),)
    held = msgspec.structs.replace(DEVICE, cases=(), right=1, of=1)
    result = CheckResult("lab", "passed", "All.", cases, 1, 1, device=held)
    card = card_of(result, SOURCE)
    assert (card.status, heading(card)) == ("passed", "✓ lab: passed. All.")
    beside = msgspec.structs.replace(result, status="unsupported")
    words = "? lab: unsupported. Not supported by the checker. All."
    assert heading(card_of(beside, SOURCE)) == words


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        (0, None),
        (1, "1 more hidden case failed (not shown)."),
        (2, "2 more hidden cases failed (not shown)."),
    ],
)
def test_hidden_cases_that_are_left_out_are_counted(
    hidden: int, words: str | None
) -> None:
    cases = section(card_of(failing(1 + hidden), SOURCE), "Cases: 0 of ")
    assert texts(cases) == ([] if words is None else [words])


def test_nothing_hidden_is_in_a_card_and_every_text_is_bounded() -> None:
    encoded = msgspec.json.encode(rich_card()).decode()
    for words in ("7919", "7,919", "1021", "1,021", "of 6 elements", "hidden words"):
        assert words not in encoded
    assert len(encoded) < 40_000
    long = failing(1, advice="x" * 9_000)
    many = msgspec.structs.replace(
        long, message="x" * 9_000, cases=long.cases * 1_000, log="x" * 9_000
    )
    card = card_of(many, SOURCE)
    assert len(msgspec.json.encode(card)) < 30_000
    assert len(card.message) == 600 and card.message.endswith("…")
    assert "940 more cases." in texts(section(card, "Cases"))


def test_all_figures_of_speed_are_told() -> None:
    card = card_of(RICH, SOURCE, 3)
    speed = section(card, "Speed: fast enough")
    assert texts(speed) == [SPEED.message, "Unknown."]
    assert facts(speed) == {
        "timed with": "n = 16,777,216",
        "speedup over the baseline": (
            "1.250× (95 % CI 1.246× to 1.254×, 80 pairs); required: 1.200×"
        ),
        "share of the measured limit": (
            "87.3 % (95 % CI 87.0 % to 87.6 %, 80 pairs); required: 85.0 %"
        ),
        "time per call": "52.1 µs",
        "baseline": "65.1 µs",
        "at the limit": "45.5 µs",
        "outputs checked": "80 timed calls, 1 also on the CPU",
        "SM clock": "1,965 to 1,980 MHz",
        "highest temperature": "61 °C",
        "clocks lowered by": "power cap",
        "measured": "2 runs, Runs disturbed by other GPU work are discarded.",
    }
    limits = facts(section(card, "Measured limits of this GPU"))
    assert limits.pop("measured").startswith(("1970-01-01", "1969-12-31"))
    assert limits == {
        "copy bandwidth": "4.30 TB/s",
        "read bandwidth": "4.60 TB/s",
        "host to device": "55.5 GB/s",
        "device to host": "55.1 GB/s",
        "launch latency": "5.20 µs",
        "matrix products in float32": "52.0 TFLOP/s",
        "SM clock": "1,980 MHz",
        "power limit": "700 W",
        "ECC": "on",
        "driver": "580.1",
    }


def test_lines_where_warps_wait_are_told_with_what_was_counted_there() -> None:
    """Or in one sentence, why there are none and what to do; without a GPU nothing."""
    waits = section(card_of(RICH, SOURCE), "Where warps wait, by line")
    [table] = [part for part in waits.parts if isinstance(part, CardTable)]
    assert table.heads[-3:] == ("sectors", "ideal sectors", "bank conflicts")
    first, second = ([cell_text(cell) for cell in row] for row in table.rows)
    assert first[0].startswith("   2 | sum += 1;") and first[1] == "90 %"
    assert first[2] == "waits for device memory (67 %), waits for new (33 %)"
    assert first[3:] == ["64", "32", "7"] and second[1:4] == [
        "6.0 %",
        "issues an instruction (100 %)",
        "-",
    ]
    advice, conditions = texts(waits)
    assert advice.startswith("At line 2 a warp waits for device memory. It needs what")
    assert waits.title.endswith("(1,000 samples)")
    assert "neither timed nor judged (n = 16,777,216)" in conditions
    denied = Stalls("denied", "Counters are for administrators alone: set it to 0.")
    device = msgspec.structs.replace(DEVICE, stalls=denied)
    card = card_of(msgspec.structs.replace(RICH, device=device), SOURCE)
    assert texts(section(card, "Where warps wait")) == [denied.note]
    card = card_of(msgspec.structs.replace(RICH, device=None), SOURCE)
    assert not [one for one in card.sections if "warps wait" in one.title]


def test_what_is_not_known_is_not_told_as_a_number() -> None:
    busy = SpeedResult("too busy", "Another program used the GPU.", {"n": 5})
    bare = msgspec.structs.replace(
        LIMITS,
        driver=None,
        flops_per_s={},
        flops_unknown="No PyTorch.",
        sm_clock_mhz=None,
        power_limit_watts=None,
        has_ecc=None,
    )
    device = msgspec.structs.replace(DEVICE, speed=busy, limit_card=bare)
    card = card_of(msgspec.structs.replace(RICH, device=device), SOURCE)
    assert facts(section(card, "Speed: too busy")) == {"timed with": "n = 5"}
    limits = facts(section(card, "Measured limits"))
    assert limits["matrix products"] == "No PyTorch."
    assert not {"driver", "SM clock", "power limit", "ECC"} & set(limits)


def test_what_failed_on_the_gpu_and_flags_are_told() -> None:
    card = card_of(RICH, SOURCE, 3)
    assert section(card, "Cases on NVIDIA H200").title.endswith(": 23 of 24 passed")
    assert texts(section(card, "First failure on the GPU: a prime")) == [
        f"out[3] is {ATTACK}"
    ]
    assert f"For review: Faster than the limit. {ATTACK}" in texts(card.sections[0])
    assert texts(card.sections[0])[0] == (
        "Submission 3. Practice grade (graded on this machine)."
    )
    assert texts(card_of(RICH, SOURCE).sections[0])[0] == (
        "Checked only: nothing was handed in."
    )


def test_host_code_is_told_in_counts_with_units() -> None:
    host = section(
        card_of(HOST, SOURCE), "Last call on the simulated GPU (four chunks)"
    )
    assert facts(host) == {
        "requests": "25 launches, 1 host synchronization",
        "transfers": "40 B to the GPU, 0 B from the GPU, 8 B of them pageable",
        "GPU memory": "0 B allocated, 0 B peak beside the buffers",
        "total time": "1.67 ms, 107× the ideal time",
        "host busy": "139 µs",
        "copies busy": "0 ms",
        "kernels busy": "1.65 ms",
        "convolutions": "1.35× the time of the fastest algorithms (modeled)",
        "non-deterministic": "2 launches",
    }
    timeline = host.parts[-1]
    bars = timeline.lanes[0].bars  # type: ignore[union-attr]
    assert [(bar.line, bar.is_waiting) for bar in bars] == [(3, False), (9, True)]
    assert bars[1].label == "host synchronization"


def test_a_ratio_has_the_digits_that_it_is_certain_of() -> None:
    assert (
        cell_text(RatioCell(1.07, "times", "the ideal time")) == "1.07× the ideal time"
    )
    assert cell_text(RatioCell(12.34, "times")) == "12.3×"
    assert cell_text(RatioCell(0.5, "percent")) == "50 %"


def test_the_page_is_tried_with_the_card_as_it_is_sent_now() -> None:
    """Else: python -m tests.extension.lab_results."""
    assert without_clock(written()) == without_clock(WRITTEN.read_text())


def without_clock(text: str) -> str:
    """Leave out when limits were measured: that is told in the time of this place."""
    return re.sub(r"(1970-01-01|1969-12-31) \d\d:\d\d", "", text)
