"""Asks, of the first case that fails, for the lines from which what is wrong came.

The case is run once more for it, so that a check of what passes takes no longer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from warpbook_labs.cases.bounds import is_above, is_below
from warpbook_labs.cases.comparison import NOTHING, WrongElement
from warpbook_labs.cases.execution import Run
from warpbook_labs.cases.preparation import shape_of
from warpbook_labs.engines.interpreter.front_ends import FrontEnd
from warpbook_labs.engines.interpreter.jobs import Interpreted, LineQuestion, Origin
from warpbook_labs.engines.interpreter.left_out import OmittedLines, moved_from
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.spec import Counted, Lab
from warpbook_labs.lab.texts import named_lines
from warpbook_labs.results.findings import Counts, Finding, top_lines
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Limits

#: of which the address may be at fault
_OF_ADDRESSES = frozenset({"race", "out of bounds", "misaligned", "uninitialised read"})
#: so that a message stays short
_MOST_LINES = 6
_MOST_LAUNCHES = 3
_MOST_S = 10
#: of which a finding tells
_ARRAY = re.compile(r"byte [\d,]+ of (?:the shared )?`(\w+)`")


def of_finding(findings: Sequence[Finding]) -> LineQuestion | None:
    """Ask where the address of what was found comes from."""
    if findings and findings[0].kind in _OF_ADDRESSES:
        return LineQuestion("finding")
    return None


def of_wrong(
    wrong: WrongElement, lab: Lab, sizes: Mapping[str, int], is_again: bool
) -> LineQuestion | None:
    """Ask where a wrong element comes from."""
    parameter = next(output for output in lab.parameters if output.name == wrong.output)
    shape = shape_of(parameter, sizes)
    at = int(np.ravel_multi_index(wrong.index, shape)) if shape else 0
    byte = at * np.dtype(parameter.dtype).itemsize
    if wrong.got == NOTHING:
        return LineQuestion("nothing", wrong.output, byte, is_again=is_again)
    if wrong.line is None:
        return None
    return LineQuestion("value", wrong.output, byte, wrong.line, is_again)


def of_counts(
    counted: Sequence[Counted],
    counts: Counts,
    lines: Mapping[int, Counts],
    sizes: Mapping[str, int],
) -> LineQuestion | None:
    """Ask where the addresses come from of the accesses that were counted most."""
    for bound in counted:
        if is_below(bound, counts, sizes):
            # what is missing has no address
            return None
        if is_above(bound, counts, sizes):
            by_line = {line: getattr(of, bound.count) for line, of in lines.items()}
            top = top_lines(by_line)
            return LineQuestion("access", line=top[0]) if top else None
    return None


def answered(
    front_end: FrontEnd, program: str, run: Run, limits: Limits, question: LineQuestion
) -> Origin | None:
    """Run a case once more to find the lines; None where they are not found."""
    limits = msgspec.structs.replace(
        limits, processor_s=min(limits.processor_s, _MOST_S)
    )
    job = front_end.asking(program, run, limits, question)
    outcome = warm.run(job, limits)
    if not isinstance(outcome.result, Interpreted):
        return None
    return next((ran.origin for ran in outcome.result.runs), None)


def believed(origin: Origin | None, last_line: int, launches: int) -> Origin | None:
    """Leave of what a jailed process says what there is: lines of the source."""
    if origin is None:
        return None
    lines = tuple(line for line in origin.lines if 0 < line <= last_line)
    numbers = tuple(launch for launch in origin.launches if 0 <= launch < launches)
    writer = origin.writer if 0 < origin.writer <= last_line else 0
    return Origin(lines, writer, numbers, origin.has_written)


def with_address(
    findings: tuple[Finding, ...], origin: Origin, is_moved: bool
) -> tuple[Finding, ...]:
    """Say of the first finding which lines compute the address."""
    first, *others = findings
    lines = [line for line in origin.lines if line != first.line]
    lines = lines[: _MOST_LINES - is_moved]
    if not lines:
        return findings
    verb = "decides" if len(lines) == 1 else "decide"
    words = named_lines(sorted(lines))
    words = f"{first.message} {words[0].upper()}{words[1:]} {verb} where that is."
    return (dataclasses.replace(first, message=words), *others)


def with_moved(
    findings: tuple[Finding, ...], source: str
) -> tuple[tuple[Finding, ...], bool]:
    """Say of the first finding where the source has it, if the compiler moved it.

    Returns:
        The findings, and whether it did.
    """
    first, *others = findings
    array = _ARRAY.search(first.message)
    if array is None or first.line is None:
        return findings, False
    line = next(iter(moved_from(source, first.line, array[1])), None)
    if line is None:
        return findings, False
    words = f"{first.message} The compiler moved it there from line {line}."
    return (dataclasses.replace(first, message=words), *others), True


def with_lines(wrong: WrongElement, origin: Origin, rule: Rule) -> WrongElement:
    """Say of an element from which lines it came, or who wrote beside it."""
    lines = tuple(sorted(origin.lines[:_MOST_LINES]))
    if wrong.got != NOTHING:
        return msgspec.structs.replace(wrong, from_lines=lines)
    if not origin.writer:
        return wrong
    return msgspec.structs.replace(
        wrong,
        from_lines=lines,
        beside_line=origin.writer,
        is_beside_written=origin.has_written,
        launch_lines=tuple(
            sorted({rule.launches[launch].line for launch in origin.launches})
        )[:_MOST_LAUNCHES],
    )


def with_left_out(origin: Origin, more: OmittedLines) -> Origin:
    """Add lines that are not in the program: values before the farthest, then heads."""
    kept = origin.lines[: max(0, _MOST_LINES - len(more.values))]
    lines = (*kept, *more.values, *more.heads)[:_MOST_LINES]
    return msgspec.structs.replace(origin, lines=lines)


def address_words(origin: Origin) -> str:
    """Say which lines compute the addresses of accesses that were counted."""
    lines = sorted(origin.lines[:_MOST_LINES])
    if not lines:
        return ""
    verb = "decides" if len(lines) == 1 else "decide"
    words = named_lines(lines)
    return f" {words[0].upper()}{words[1:]} {verb} on its addresses."
