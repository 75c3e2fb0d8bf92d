"""The card of a check or a submission, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warpbook.cli.labs_host import host_lines
from warpbook.cli.labs_speed import device_lines
from warpbook_labs.comparing import WrongElement
from warpbook_labs.resources import Held
from warpbook_labs.results import CaseResult
from warpbook_labs.session import Card
from warpbook_monitors.plain_text import aligned, bounded, labelled, shortened

#: lines of the source whose work is told
_MOST_LINES = 5
_MOST_FINDINGS = 3
_MOST_LOG_LINES = 40
_MOST_PRINTED_LINES = 10
_WIDTH = 76


def card_lines(card: Card, source: str) -> Iterator[str]:
    """Write a card; the source is quoted where a line of it is named."""
    result = card.result
    code = source.splitlines()
    yield f"{result.lab}: {result.status}. {result.message}"
    if card.submission is not None:
        yield f"Submission {card.submission}, {card.grading}."
    found = re.match(r"Line (\d+):", result.message)
    if found:
        yield from _quoted(code, int(found[1]))
    log = result.log.splitlines()
    if log:
        yield ""
        yield from log[:_MOST_LOG_LINES]
    if (more := len(log) - _MOST_LOG_LINES) > 0:
        yield f"and {more:,} more line{'s' if more > 1 else ''}"
    if result.cases:
        yield ""
    for case in result.cases:
        mark = "ok" if case.passed else "FAILED"
        kind = "hidden" if case.is_hidden else "shown"
        yield f"  {mark:7} {kind:7} {case.about}"
    left_out = result.of - len(result.cases)
    if result.cases and left_out == 1:
        yield "  1 more hidden case fails; it is not told."
    elif result.cases and left_out:
        yield f"  {left_out:,} more hidden cases fail; they are not told."
    failed = next((each for each in result.cases if not each.passed), None)
    if failed is not None:
        yield ""
        yield from _failure(failed, code)
    shown = failed or max(result.cases, key=_effort, default=None)
    if shown is not None and shown.lines:
        yield ""
        yield from _work(shown, code)
    if shown is not None and shown.host_counts is not None:
        yield ""
        yield from host_lines(shown)
    if result.resources:
        yield ""
        yield from _resources(result.resources)
    printed = next((each for each in result.cases if each.printed), None)
    if printed is not None:
        yield ""
        yield f"Printed ({printed.about})"
        yield from _indented(printed.printed.splitlines()[:_MOST_PRINTED_LINES])
    if result.device is not None:
        yield ""
        yield from device_lines(result.device)
    yield ""
    if result.isolation:
        yield f"It was run {result.isolation}."
    yield from result.not_graded


def _failure(case: CaseResult, code: Sequence[str]) -> Iterator[str]:
    yield f"The first that fails: {case.about}"
    if case.sizes:
        sizes = ", ".join(f"{name} = {size:,}" for name, size in case.sizes.items())
        yield f"  {sizes}"
    for finding in case.findings[:_MOST_FINDINGS]:
        yield f"  {finding.kind}: {finding.message}"
        if finding.line is not None:
            yield from _indented(_quoted(code, finding.line))
    more = len(case.findings) - _MOST_FINDINGS
    if more > 0:
        yield f"  and {more} more finding{'s' if more > 1 else ''}"
    wrong = case.wrong
    if wrong is not None:
        place = ", ".join(map(str, wrong.index))
        yield from _indented(
            labelled(
                [
                    *([("in call", str(case.call))] if case.call else []),
                    ("first wrong", f"{wrong.output}[{place}]"),
                    ("got", wrong.got),
                    ("expected", wrong.expected),
                    ("allowed", wrong.allowed),
                    *_counted(case, wrong),
                ]
            )
        )
        if case.advice:
            yield f"  {case.advice}"
    elif not case.findings:
        yield f"  {case.message}"
        found = re.match(r"Line (\d+):", case.message)
        if found:
            yield from _indented(_quoted(code, int(found[1])))


def _counted(case: CaseResult, wrong: WrongElement) -> list[tuple[str, str]]:
    """Say how many elements are wrong; of a hidden case that would tell its size."""
    if case.is_hidden or wrong.elements is None:
        return []
    return [("wrong", f"{wrong.wrong:,} of {wrong.elements:,} elements")]


def _work(case: CaseResult, code: Sequence[str]) -> Iterator[str]:
    yield f"Most work by line ({case.about})"
    rows: list[tuple[str, ...]] = [
        ("line", "warp instructions", "sectors", "at least", "bank conflicts"),
    ]
    slowest = sorted(
        case.lines.items(),
        key=lambda pair: (-pair[1].warp_instructions, -pair[1].global_sectors),
    )
    for line, counts in slowest[:_MOST_LINES]:
        text = code[line - 1].expandtabs(4).strip() if line <= len(code) else ""
        rows.append(
            (
                shortened(f"{line:>4}  {text}", 40),
                f"{counts.warp_instructions:,}",
                f"{counts.global_sectors:,}",
                f"{counts.least_global_sectors:,}",
                f"{counts.bank_conflicts:,}",
            )
        )
    if not any(counts.warp_instructions for _, counts in slowest):
        # of Triton's blocks only the sectors are counted
        rows = [(line, *sectors) for line, _, *sectors, _ in rows]
    yield from _indented(aligned(rows))


def _resources(held: Sequence[Held]) -> Iterator[str]:
    yield f"What a multiprocessor holds ({held[0].resources.architecture})"
    rows = [
        ("kernel", "threads", "registers", "spilled", "shared", "occupancy", "held by"),
    ]
    for each in held:
        of = each.resources
        spilled = of.spill_store_bytes + of.spill_load_bytes
        rows.append(
            (
                shortened(of.kernel, 24),
                f"{each.threads_per_block:,}",
                f"{of.registers:,}",
                f"{spilled:,} B",
                f"{of.shared_bytes + each.dynamic_shared_bytes:,} B",
                f"{each.occupancy:.0%}",
                ", ".join(each.limited_by) or "none fits",
            )
        )
    yield from _indented(aligned(rows))


def _effort(case: CaseResult) -> int:
    if case.host_counts is not None:
        # of hidden cases there is no picture
        return 0 if case.is_hidden else case.host_counts.total_ns
    return case.counts.warp_instructions if case.counts else 0


def _quoted(code: Sequence[str], line: int) -> Iterator[str]:
    if 1 <= line <= len(code):
        yield f"  {line:>4} | {bounded(code[line - 1].expandtabs(4), _WIDTH)}"


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
