"""Results of labs that every renderer of cards is tried with.

`python -m tests.extension.lab_results` writes one of them, as the page gets it, to
tests/data/cards/rich.json, which the tests of the page draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from warpbook_labs.cards.card import card_of
from warpbook_labs.cards.model import (
    Card,
    CardFacts,
    CardLog,
    CardTable,
    CardText,
    CardTimeline,
)
from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import DeviceCase, DeviceResult, SpeedResult
from warpbook_labs.results.findings import Bar, Counts, Finding, HostCounts
from warpbook_labs.results.measurements import Conditions, LimitCard, Ratio
from warpbook_labs.results.occupancy import KernelOccupancy, Resources
from warpbook_profiler.model.stalls import KernelStalls, LineStalls, SourceFile, Stalls

WRITTEN = Path(__file__).resolve().parents[1] / "data" / "cards" / "rich.json"
#: markup, colours of a terminal, a bell, and text that would run from right to left
ATTACK = "<script>window.attacked=1</script>\x1b[31m\x07\u202e"
SOURCE = f"first\n\tsum += 1; // {ATTACK}\n" + "x" * 10_000

SPEED = SpeedResult(
    status="fast enough",
    message="It is as fast as the lab asks.",
    sizes={"n": 1 << 24},
    learner_ns=52_100,
    baseline_ns=65_100,
    limit_ns=45_500,
    of_baseline=Ratio(1.25, 1.246, 1.254, 80),
    of_limit=Ratio(0.873, 0.87, 0.876, 80),
    wanted_of_baseline=1.2,
    wanted_of_limit=0.85,
    calls=80,
    checked_on_host=1,
    discarded=1,
    conditions=Conditions("", (1965, 1980), 61.0, ("power cap",), ("Unknown.",), 2),
)
LIMITS = LimitCard(
    gpu="NVIDIA H200",
    uuid="GPU-5",
    driver="580.1",
    measured_ms=0,
    copy_bytes_per_s=4.3e12,
    read_bytes_per_s=4.6e12,
    host_to_device_bytes_per_s=55.5e9,
    device_to_host_bytes_per_s=55.1e9,
    launch_latency_ns=5_200,
    flops_per_s={"float32": 52e12},
    sm_clock_mhz=1980,
    power_limit_watts=700,
    has_ecc=True,
)
DEVICE = DeviceResult(
    f"NVIDIA H200 {ATTACK}",
    "sm_90",
    (
        DeviceCase("small", False, True, sizes={"n": 5}),
        DeviceCase("a prime", True, False, "wrong", f"out[3] is {ATTACK}", {"n": 1021}),
    ),
    23,
    24,
    SPEED,
    LIMITS,
    (f"Faster than the limit. {ATTACK}",),
    stalls=Stalls(
        "sampled",
        "One more call was sampled.",
        "NVIDIA H200",
        1024,
        0.1,
        0,
        (
            KernelStalls(
                f"sum {ATTACK}",
                1,
                1000,
                {"long_scoreboard": 620, f"new {ATTACK}": 300, "selected": 80},
                (
                    LineStalls(0, 2, 900, {"long_scoreboard": 600, "new": 300}),
                    LineStalls(0, 1, 60, {"selected": 60}),
                ),
                40,
                "cuda",
            ),
        ),
        (SourceFile("kernel.cu", "", ""),),
    ),
)
_COUNTS = Counts(
    warp_instructions=12_345,
    global_sectors=64,
    least_global_sectors=32,
    bank_conflicts=7,
)
_FAILED = CaseResult(
    f"a prime {ATTACK}",
    is_hidden=True,
    passed=False,
    message=f"race: {ATTACK}",
    # a grader that told them would be at fault; the card does not pass it on
    sizes={"n": 7919},
    wrong=WrongElement(f"out {ATTACK}", (3, 4), "nan", "1.0", "exactly", 5, 6),
    findings=(Finding("race", f"two threads {ATTACK}", 2), *[Finding("race", "x")] * 3),
    counts=_COUNTS,
    lines={2: _COUNTS, 99: _COUNTS},
    printed="hidden words",
    advice=f"Try again. {ATTACK}",
    call=2,
)
_PASSED = CaseResult("small", False, True, "", {"n": 5}, printed=f"printed {ATTACK}\n")
_KERNEL = Resources(f"sum {ATTACK}", "sm_90", 32, 0, 8, 4, 1024)
RICH = CheckResult(
    "vector-add",
    "failed",
    f"3 of 4 cases passed. {ATTACK}",
    (_PASSED, _FAILED),
    3,
    4,
    log=f"{ATTACK}\n" * 100,
    isolation="in a jail",
    not_graded=(f"Speed is not graded: {ATTACK}",),
    resources=(KernelOccupancy(_KERNEL, 256, 512, 8, 1.0, ("threads",)),),
    device=DEVICE,
    line=1,
)
HOST = CheckResult(
    "fix-the-stream",
    "passed",
    "The case passed.",
    (
        CaseResult(
            "four chunks",
            False,
            True,
            "",
            host_counts=HostCounts(
                launches=25,
                synchronizations=1,
                h2d_bytes=40,
                pageable_bytes=8,
                total_ns=1_670_000,
                host_ns=139_000,
                compute_ns=1_650_000,
                percent_of_bound=10_700,
                convolution_percent=135,
                unrepeatable=2,
            ),
            bars=(
                Bar("host", "launch", 0, 139_000, 3),
                Bar("host", "waits", 139_000, 1_670_000, 9),
                Bar("compute", f"add {ATTACK}", 20_000, 1_670_000, 4),
            ),
        ),
    ),
    1,
    1,
)


def rich_card() -> Card:
    """A card of every kind of part and cell."""
    failed, host = card_of(RICH, SOURCE, 3), card_of(HOST, SOURCE)
    both = (*failed.sections, *host.sections)
    return msgspec.structs.replace(failed, sections=both)


def words_of(card: Card) -> Iterator[str]:
    """All words of a card that are no figures: every renderer has them."""
    for section in card.sections:
        yield section.title
        for part in section.parts:
            match part:
                case CardText(text):
                    yield text
                case CardFacts(facts):
                    yield from (fact.label for fact in facts)
                case CardTable(heads):
                    yield from heads
                case CardLog(lines):
                    yield from lines
                case CardTimeline(_, lanes):
                    yield from (lane.name for lane in lanes)


def written() -> str:
    """The card as the page gets it."""
    return json.dumps(msgspec.to_builtins(rich_card()), indent=1) + "\n"


if __name__ == "__main__":
    WRITTEN.write_text(written(), encoding="utf-8")
