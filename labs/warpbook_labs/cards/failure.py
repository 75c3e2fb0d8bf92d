"""Of a card: the first case that failed, with findings, values and source lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_labs.cards.model import (
    CardFact,
    CardFacts,
    CardSection,
    CardText,
    CodeCell,
    LocationCell,
    NumberCell,
    Part,
    TextCell,
)
from warpbook_labs.cards.words import (
    UNSUPPORTED,
    is_unsupported,
    kind_name,
    limited,
    sizes_text,
)
from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.device import DeviceCase

_MOST_FINDINGS = 3
_MOST_WORDS = 600
_MOST_CODE = 160
_MOST_INPUTS = 8


def failure_sections(
    case: CaseResult | None, code: Sequence[str]
) -> Iterator[CardSection]:
    """Tell why a case failed, and quote the lines of the source that did it."""
    if case is None:
        return
    what = "Not supported" if is_unsupported(case) else "First failure"
    title = f"{what}: {limited(case.about, 160)}"
    yield CardSection(title, tuple(_parts(case, code)))


def device_failure_sections(case: DeviceCase | None) -> Iterator[CardSection]:
    """Tell why a case failed on the GPU."""
    if case is None:
        return
    said: Part = CardText(limited(case.message, _MOST_WORDS))
    if case.wrong is not None:
        said = _wrong(case.wrong, case.is_hidden)
    title = f"First failure on the GPU: {limited(case.about, 160)}"
    yield CardSection(title, (*_sizes(case), said))


def location(code: Sequence[str], line: int | None) -> tuple[LocationCell, ...]:
    """Quote a line of the source; nothing where it has none of this number."""
    if line is None or not 1 <= line <= len(code):
        return ()
    return (LocationCell(line, limited(code[line - 1], _MOST_CODE)),)


def _parts(case: CaseResult, code: Sequence[str]) -> Iterator[Part]:
    yield from _sizes(case)
    for finding in case.findings[:_MOST_FINDINGS]:
        yield CardText(
            limited(f"{kind_name(finding.kind)}: {finding.message}", _MOST_WORDS)
        )
        yield from location(code, finding.line)
    more = len(case.findings) - _MOST_FINDINGS
    if more > 0:
        yield CardText(f"and {more} more finding{'' if more == 1 else 's'}")
    if case.wrong is not None:
        yield _wrong(case.wrong, case.is_hidden, case.call)
        yield from location(code, case.wrong.computed_line)
        yield from location(code, case.wrong.line)
        if case.advice:
            yield CardText(limited(case.advice, _MOST_WORDS))
    elif not case.findings:
        unsupported = f"{UNSUPPORTED}: " if case.is_unsupported else ""
        yield CardText(limited(f"{unsupported}{case.message}", _MOST_WORDS))
        yield from location(code, case.line)


def _sizes(case: CaseResult | DeviceCase) -> Iterator[CardText]:
    # sizes of hidden cases are not told, whatever the result holds
    if case.sizes and not case.is_hidden:
        yield CardText(limited(sizes_text(case.sizes), _MOST_WORDS))


def _wrong(wrong: WrongElement, is_hidden: bool, call: int = 0) -> CardFacts:
    place = ", ".join(map(str, wrong.index))
    facts = [CardFact("in call", (NumberCell(call),))] if call else []
    facts.append(
        CardFact("first wrong", (CodeCell(limited(f"{wrong.output}[{place}]", 160)),))
    )
    for label, words in (
        ("got", wrong.got),
        ("expected", wrong.expected),
        ("tolerance", wrong.allowed),
    ):
        facts.append(CardFact(label, (TextCell(limited(words, 160)),)))
    # hidden inputs are not told, whatever the result holds
    for sample in () if is_hidden else wrong.inputs[:_MOST_INPUTS]:
        label = limited(f"input {sample.name}", 100)
        facts.append(CardFact(label, (TextCell(limited(sample.value, 160)),)))
    if wrong.line is not None:
        facts.append(CardFact("last written", (TextCell(f"by line {wrong.line}"),)))
    if wrong.computed_line is not None:
        words = f"by line {wrong.computed_line}"
        facts.append(CardFact("computed", (TextCell(words),)))
    # of a hidden case how many there are would tell its size
    if not is_hidden and wrong.wrong is not None and wrong.elements is not None:
        words = f"{wrong.wrong:,} of {wrong.elements:,} elements"
        facts.append(CardFact("wrong", (TextCell(words),)))
    return CardFacts(tuple(facts))
