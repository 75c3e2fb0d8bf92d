"""One thing that happened, as the archive lists it; its text is kept beside it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

RecordKind = Literal["report", "receipt", "cell", "alert", "post_mortem"]


class KeptRecord(Struct, frozen=True):
    """What a record is found by, and what a list shows of it."""

    kind: RecordKind
    #: unique among its kind
    id: str
    started_ms: float
    #: None while it runs or holds
    ended_ms: float | None
    notebook: str | None
    kernel_id: str | None
    cell_id: str | None
    #: first line of the cell, title of the alert
    title: str
    #: kind of the verdict; of an alert, its severity
    verdict: str | None
    #: "ok", "error", "interrupted", "running"; empty where there is none
    status: str
    #: one line for a person
    sentence: str
    #: whether it is about what a recording was read for, and not this machine's GPUs
    is_replay: bool = False
