"""A timeline as it travels: from the kernel to the server, and into a file."""

import dataclasses
import json

import msgspec
import numpy as np
import pytest

from tests.profiler.trace.recorded import BEGIN_NS, columns, run_of
from warpbook_profiler.events.columns import Category
from warpbook_profiler.model.timeline_answers import MAX_EVENTS
from warpbook_profiler.timeline.timeline import Timeline
from warpbook_profiler.timeline.timeline_body import (
    MAX_NAMES,
    Body,
    NotATimeline,
    Track,
    pack,
    unpack,
)
from warpbook_profiler.timeline.timeline_export import to_chrome_trace


def bytes_of(values, kind: str) -> memoryview:
    return memoryview(np.array(values, kind)).cast("B")


def whole_body() -> Body:
    return Body(
        form=1,
        started_ns=BEGIN_NS,
        names=("k",),
        tracks=(Track("Stream 7", "gpu", 0),),
        omitted=0,
        starts_ns=bytes_of([-5, 1000], "<i8"),
        durations_ns=bytes_of([2, 2000], "<i8"),
        name=bytes_of([0, 0], "<i4"),
        track=bytes_of([0, 0], "<u2"),
    )


def changed(**changes) -> Body:
    return msgspec.structs.replace(whole_body(), **changes)


MANY_NS = np.zeros(MAX_EVENTS + 1, "<i8")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"form": 2}, "form"),
        ({"starts_ns": b"\0" * 17}, "cut off"),
        ({"starts_ns": bytes_of([1], "<i8")}, "length"),
        ({"starts_ns": bytes_of([5, 4], "<i8")}, "order"),
        ({"starts_ns": bytes_of([-(2**62), 4], "<i8")}, "order"),
        ({"starts_ns": bytes_of([0, 2**62], "<i8")}, "range"),
        ({"durations_ns": bytes_of([0, -1], "<i8")}, "range"),
        ({"durations_ns": bytes_of([0, 2**63 - 1], "<i8")}, "range"),
        ({"name": bytes_of([0, 1], "<i4")}, "name"),
        ({"name": bytes_of([0, -1], "<i4")}, "name"),
        ({"track": bytes_of([0, 1], "<u2")}, "track"),
        ({"names": ("k" * 1001,)}, "too long"),
        ({"names": ("k",) * (MAX_NAMES + 1)}, "too many"),
        ({"tracks": (Track("x" * 81, "gpu", 0),)}, "too long"),
        ({"tracks": (Track("x", "gpu", 0),) * 300}, "too many"),
        ({"tracks": ({"label": "x", "kind": "evil", "gpu": 0},)}, "kind"),
        ({"omitted": -1}, "range"),
        ({"started_ns": -1}, "range"),
        (
            {
                "starts_ns": MANY_NS.tobytes(),
                "durations_ns": MANY_NS.tobytes(),
                "name": MANY_NS.astype("<i4").tobytes(),
                "track": MANY_NS.astype("<u2").tobytes(),
            },
            "events",
        ),
    ],
)
def test_a_body_that_lies_is_refused_in_words(change, why) -> None:
    with pytest.raises(NotATimeline, match=why):
        unpack(msgspec.msgpack.encode(changed(**change)))


def test_a_body_cut_anywhere_is_refused() -> None:
    body = msgspec.msgpack.encode(whole_body())
    for length in range(len(body)):
        with pytest.raises(NotATimeline):
            unpack(body[:length])
    for garbage in (b"", b"\xc1", b"{}", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000):
        with pytest.raises(NotATimeline):
            unpack(garbage)


def test_events_that_all_last_long_take_no_more_memory() -> None:
    """Each would be in every step of a fine level."""
    count = 20_000
    body = changed(
        starts_ns=bytes_of(range(count), "<i8"),
        durations_ns=bytes_of([10**15] * count, "<i8"),
        name=bytes_of([0] * count, "<i4"),
        track=bytes_of([0] * count, "<u2"),
    )
    line = Timeline(unpack(msgspec.msgpack.encode(body)))
    assert len(line.rows) == 12
    assert line.omitted == count - 12
    assert line.size_bytes < 10_000


def test_too_many_events_are_not_packed() -> None:
    events = columns([(Category.KERNEL, 0, 7, 0, 0, 1)])
    many = {
        field.name: np.repeat(getattr(events, field.name), MAX_EVENTS + 1)
        for field in dataclasses.fields(events)
        if isinstance(getattr(events, field.name), np.ndarray)
    }
    with pytest.raises(NotATimeline, match="2,000,001 events"):
        pack(dataclasses.replace(events, **many), run_of(10))


def test_the_export_holds_every_event_and_escapes_names() -> None:
    hostile = '"},<script>\u2028é'
    body = msgspec.structs.replace(
        whole_body(), names=(hostile,), tracks=(Track("<b>", "gpu", 0),)
    )
    line = Timeline(unpack(msgspec.msgpack.encode(body)))
    trace = json.loads(b"".join(to_chrome_trace(line, hostile)))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"]) for event in events] == [
        (-0.005, 0.002),
        (1, 2),
    ]
    assert {event["name"] for event in events} == {hostile}
    assert trace["otherData"]["title"] == hostile
    assert trace["baseTimeNanoseconds"] == BEGIN_NS
