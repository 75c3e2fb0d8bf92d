"""Traces whose events were tampered with: advice is sane, or none is given."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.replay.exam import EXAM
from warpbook_monitors.errors import MonitorError
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.verdict.analysis import analyse

TRACES = ("attention_by_hand", "batches_from_pageable", "wait_on_side_stream")
SOURCE = """\
for x in xs:
    y = model(x)[mask]
    print(y.item())
    z = torch.cat([z, y.cpu().numpy()])
    torch.cuda.empty_cache()
"""
ODD_VALUES: tuple[Any, ...] = (
    *(0, -1, 2**31, 2**62, -(2**62), 1e300, None, "", "float", True, 0.5),
    *([], [[]], [[0, 0]], [[-5, 3]], [[2**40, 2**40]], {"a": 1}),
)


def tamper(events: list[dict[str, Any]], chance: random.Random) -> None:
    """Change events as a hostile or damaged file may have them."""
    if chance.random() < 0.5:
        first = chance.randrange(len(events))
        del events[first : first + chance.randrange(len(events) // 3)]
    for _ in range(chance.choice([1, 5, 50, 500])):
        event = chance.choice(events)
        field = chance.choice(["ts", "dur", "tid", "name", "cat", "args"])
        if field == "args" and event.get("args"):
            argument = chance.choice(list(event["args"]))
            event["args"][argument] = chance.choice(ODD_VALUES)
        elif field in ("ts", "dur") and field in event:
            event[field] = chance.choice([event[field] * chance.random(), 0, -5, 1e15])
        elif field in ("name", "cat", "tid") and field in event:
            event[field] = chance.choice(events).get(field, "")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", TRACES)
def test_what_is_promised_of_a_tampered_trace_is_sane(
    name: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{name} {seed}")
    content = json.loads(gzip.decompress((EXAM / f"{name}.json.gz").read_bytes()))
    path = tmp_path / "trace.json"
    for _ in range(8):
        tampered = json.loads(json.dumps(content))
        tamper(tampered["traceEvents"], chance)
        path.write_text(json.dumps(tampered))
        try:
            events, run = read_chrome_trace(str(path))
        except MonitorError:
            continue
        for change in analyse(events, replace(run, source=SOURCE)).changes:
            assert change.low_ns is None or change.low_ns >= 0
            if change.high_ns is not None:
                assert change.low_ns is not None
                usual_ns = change.time_ns or change.low_ns
                assert change.low_ns <= usual_ns <= change.high_ns
