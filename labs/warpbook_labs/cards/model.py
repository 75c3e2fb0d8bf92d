"""What a card of a result holds: sections, rows and typed cells, and no markup.

It is computed by `card.py` and drawn by the notebook, the terminal and the page. Texts
may be somebody else's, such as a line of a submission: each is bounded here, and is
escaped by whoever draws it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

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
