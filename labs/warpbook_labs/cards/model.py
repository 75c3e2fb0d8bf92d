"""What a card of a result holds: sections, rows and typed cells, and no markup.

It is computed by `card.py` and drawn by the notebook, the terminal and the page. Texts
may be somebody else's, such as a line of a submission: each is bounded here, and is
escaped by whoever draws it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from warpbook_monitors import units

#: "unsupported": the checker without a GPU can't tell; "undecided": a measurement was
#: disturbed, and another try may give another result
CardStatus = Literal[
    "passed", "failed", "unsupported", "error", "timed out", "undecided"
]
#: of a section: it has no fold, or is one that is open or closed at first
Fold = Literal["", "open", "closed"]


class TextCell(Struct, frozen=True, tag="text"):
    """Words, on one line."""

    text: str


class StatusCell(Struct, frozen=True, tag="status"):
    """How something went."""

    status: CardStatus


class NumberCell(Struct, frozen=True, tag="number"):
    """A whole number of something."""

    value: int
    #: of what, in the number that fits it: "launch" or "launches"
    unit: str = ""


class RatioCell(Struct, frozen=True, tag="ratio"):
    """A factor or a share, and how certain it is."""

    value: float
    style: Literal["times", "percent"]
    #: what it is compared with, in words
    of: str = ""
    #: of the 95 % confidence interval, and the pairs of calls that it was made of
    low: float | None = None
    high: float | None = None
    pairs: int | None = None
    #: the least that the lab asks
    required: float | None = None


class BytesCell(Struct, frozen=True, tag="bytes"):
    """A size in bytes."""

    size_bytes: int
    #: what they are
    what: str = ""


class DurationCell(Struct, frozen=True, tag="duration"):
    """A time in nanoseconds."""

    duration_ns: float


class RateCell(Struct, frozen=True, tag="rate"):
    """Bytes or operations per second."""

    per_second: float
    unit: Literal["B", "FLOP"]


class LocationCell(Struct, frozen=True, tag="location"):
    """A line of the submission, counted from 1, and what it says."""

    line: int
    code: str
    #: counted from 1; None where only the line is known
    column: int | None = None


class CodeCell(Struct, frozen=True, tag="code"):
    """A name of the source."""

    code: str


#: said first where a result is kept nowhere
PRACTICE = "Checked only: nothing was handed in."

Cell = (
    TextCell
    | StatusCell
    | NumberCell
    | RatioCell
    | BytesCell
    | DurationCell
    | RateCell
    | LocationCell
    | CodeCell
)


class CardText(Struct, frozen=True, tag="paragraph"):
    """A sentence or two."""

    text: str
    tone: Literal["plain", "quiet", "warning"] = "plain"


class CardFact(Struct, frozen=True):
    """A label with one value or several."""

    label: str
    cells: tuple[Cell, ...]


class CardFacts(Struct, frozen=True, tag="facts"):
    """Labels with their values."""

    facts: tuple[CardFact, ...]


class CardTable(Struct, frozen=True, tag="table"):
    """Columns with names, and rows of as many cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class CardLog(Struct, frozen=True, tag="log"):
    """Lines as a program wrote them."""

    lines: tuple[str, ...]
    #: how many more there are
    more: int = 0


class CardBar(Struct, frozen=True):
    """What a lane was busy with for a while."""

    begin_ns: int
    end_ns: int
    label: str
    #: of the source; None where it is not one
    line: int | None = None
    is_waiting: bool = False


class CardLane(Struct, frozen=True):
    """One engine of a timeline."""

    engine: str
    name: str
    bars: tuple[CardBar, ...]


class CardTimeline(Struct, frozen=True, tag="timeline"):
    """What each engine did when, from 0 on."""

    end_ns: int
    lanes: tuple[CardLane, ...]


Part = CardText | CardFacts | CardTable | CardLog | CardTimeline | LocationCell


class CardSection(Struct, frozen=True):
    """What belongs together; a section without a title has no heading."""

    title: str
    parts: tuple[Part, ...]
    fold: Fold = ""


class Card(Struct, frozen=True):
    """A lab's result, ready to be drawn."""

    #: the lab
    title: str
    status: CardStatus
    #: the result's own word for it, such as "compile error" or "too slow"
    label: str
    #: in one sentence
    message: str
    sections: tuple[CardSection, ...]


MARKS: dict[CardStatus, str] = {
    "passed": "✓",
    "failed": "✗",
    "unsupported": "?",
    "error": "✗",
    "timed out": "✗",
    "undecided": "?",
}


def heading(card: Card) -> str:
    """Write how it went, in one line."""
    return f"{MARKS[card.status]} {card.title}: {card.label}. {card.message}"


def cell_text(cell: Cell) -> str:
    """Write a cell; what is somebody else's is not escaped yet."""
    match cell:
        case TextCell(text):
            return text
        case StatusCell(status):
            return f"{MARKS[status]} {status}"
        case NumberCell(value, unit):
            return f"{value:,} {unit}".rstrip()
        case RatioCell():
            return _ratio(cell)
        case BytesCell(size_bytes, what):
            return f"{units.size(size_bytes)} {what}".rstrip()
        case DurationCell(duration_ns):
            return units.duration_ns(duration_ns)
        case RateCell(per_second, unit):
            return units.rate(per_second, unit)
        case LocationCell(line, code):
            return f"{line:>4} | {code}"
        case CodeCell(code):
            return code


def cells_text(cells: Iterable[Cell]) -> str:
    return ", ".join(map(cell_text, cells))


def more_lines(count: int) -> str:
    """Say how many lines of a log are left out."""
    return f"and {count:,} more line{'' if count == 1 else 's'}"


def _ratio(cell: RatioCell) -> str:
    text = f"{_in_style(cell.value, cell)} {cell.of}".rstrip()
    if cell.low is not None and cell.high is not None:
        low, high = _in_style(cell.low, cell), _in_style(cell.high, cell)
        pairs = "" if cell.pairs is None else f", {cell.pairs:,} pairs"
        text += f" (95 % CI {low} to {high}{pairs})"
    if cell.required is not None:
        text += f"; required: {_in_style(cell.required, cell)}"
    return text


def _in_style(value: float, cell: RatioCell) -> str:
    """Write a factor or a share; with an interval all its digits count."""
    if cell.style == "percent":
        return units.share(value) if cell.low is None else f"{100 * value:.1f} %"
    if cell.low is not None:
        return f"{value:.3f}×"
    return f"{value:,.0f}×" if value >= 100 else f"{value:.3g}×"
