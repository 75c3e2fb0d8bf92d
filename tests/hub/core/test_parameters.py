"""What a form can't send is told by the name of its field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from warpbook_hub.errors import BadField
from warpbook_hub.service.parameters import (
    LabToPublish,
    LogQuery,
    read_body,
    read_query,
)

WINDOW = {"opens_ms": 0, "due_ms": 1, "closes_ms": 2}
LEVEL = {"measure": "right", "least": 1, "points": 10}
LAB = {"lab": "x", "title": "x", "windows": [WINDOW], "thresholds": [LEVEL]}


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        (
            {"windows": [WINDOW, {**WINDOW, "due_ms": None}]},
            "windows[1].due_ms",
            "Due, row 2 of windows: it is empty",
        ),
        (
            {"windows": [{**WINDOW, "due_ms": "x"}]},
            "windows[0].due_ms",
            "Due, row 1 of windows: it is to be a date and time",
        ),
        (
            {"windows": [{"opens_ms": 0, "due_ms": 1}]},
            "windows[0].closes_ms",
            "Closes, row 1 of windows: it is missing",
        ),
        (
            {"windows": [WINDOW] * 101},
            "windows",
            "Windows: it is to have 100 entries at most",
        ),
        ({"title": "x" * 101}, "title", "it is to have 100 characters at most"),
        (
            {"late_percent_per_day": -1},
            "late_percent_per_day",
            "Late percent per day: it is to be 0 at least",
        ),
        ({"is_team_work": 3}, "is_team_work", "Team work: it is to be yes or no"),
        (
            {"thresholds": [{**LEVEL, "measure": "luck"}]},
            "thresholds[0].measure",
            "Measure, row 1 of thresholds: it is none of the choices",
        ),
        ({"colour": 1}, "colour", "Colour: there is no such field"),
    ],
)
def test_a_field_is_named_in_words(
    changed: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(BadField) as refused:
        read_body(msgspec.json.encode({**LAB, **changed}), LabToPublish)
    assert refused.value.field == field
    assert words in str(refused.value)
    assert "`" not in str(refused.value) and "$" not in str(refused.value)


@pytest.mark.parametrize("body", [b"[", b"[1]", b'"x"', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_form_is_told_too(body: bytes) -> None:
    with pytest.raises(BadField, match=r"This can't be taken. \w"):
        read_body(body, LabToPublish)


def test_a_query_is_told_alike() -> None:
    with pytest.raises(BadField, match="Before: it is to be a whole number"):
        read_query({"before": [b"x"]}, LogQuery)
