"""What comes late of inputs, and that it makes early work wrong."""

from __future__ import annotations

import numpy as np
import pytest

from warpbook_labs.engines.host.memory import Layout, laid_out
from warpbook_labs.engines.host.regions import HostRegion, Late
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.lab.spec import Parameter

SIDES: tuple[Side, ...] = ("learner", "baseline")
PARAMETERS = [
    Parameter("x", "input", "float64", ("n",), "host"),
    Parameter("both", "inout", "int8", ("n", "3"), "host"),
    Parameter("out", "output", "float64", ("n",), "host"),
]


def made(n: int, sets: int = 1) -> tuple[HostRegion, Layout]:
    layout = laid_out(PARAMETERS, {"n": n}, sets)
    rng = np.random.default_rng(5)
    pools = {
        "x": rng.standard_normal(5000),
        "both": rng.integers(-99, 99, 5000).astype(np.int8),
    }
    region = HostRegion("host", layout.size_bytes["host"], pools, SIDES)
    region.own()
    for key, slot in enumerate(layout.read):
        region.fill(slot, slot.name, key)
    return region, layout


@pytest.mark.parametrize("sets", [1, 300])
def test_each_input_is_whole_only_when_it_is_complete(sets: int) -> None:
    region, layout = made(1000, sets)
    region.load(layout.read, "learner")
    early = [region.read(slot, "learner") for slot in layout.read]
    assert all(region.is_changed(slot, "learner") for slot in layout.read)
    region.complete("learner")
    for slot, held in zip(layout.read, early, strict=True):
        assert not region.is_changed(slot, "learner")
        whole = region.read(slot, "learner")
        assert 0 < (held != whole).sum() < whole.size / 2
        assert np.isin(held, whole).all()


def test_what_is_right_is_never_there_early() -> None:
    region, layout = made(1000)
    (x,) = (slot for slot in layout.read if slot.name == "x")
    region.load(layout.read, "learner")
    region.complete("learner")
    right = region.read(x, "learner").tobytes()
    region.poison(x, "learner")
    shared, was_right = region._shared["learner"], []

    class Watched(np.ndarray):  # type: ignore[type-arg]
        def __setitem__(self, place: object, values: object) -> None:
            super().__setitem__(place, values)  # type: ignore[index]
            was_right.append(region.read(x, "learner").tobytes() == right)

    shared.bytes = shared.bytes.view(Watched)
    region.load(layout.read, "learner")
    assert was_right and not any(was_right)
    region.complete("learner")
    assert was_right[-1]


def test_nobody_knows_from_the_last_unit_what_comes_late() -> None:
    region, layout = made(100_000)
    late_places = []
    for _ in range(2):
        region.load(layout.read, "learner")
        early = region.read(layout.read[1], "learner")
        region.complete("learner")
        whole = region.read(layout.read[1], "learner")
        late_places.append(set(np.flatnonzero(early != whole)))
    assert len(late_places[0] & late_places[1]) < len(late_places[0]) / 4


def test_a_buffer_of_one_element_has_nothing_else_to_hold() -> None:
    region, layout = made(1)
    region.load(layout.read, "learner")
    region.complete("learner")
    assert not any(region.is_changed(slot, "learner") for slot in layout.read)


def test_neither_side_sees_what_the_other_is_given() -> None:
    region, layout = made(50)
    region.poison(layout.written[-1], "learner")
    before = [region.read(slot, "learner").tobytes() for slot in layout.slots]
    region.load(layout.read, "baseline")
    region.poison(layout.written[-1], "baseline")
    assert [region.read(slot, "learner").tobytes() for slot in layout.slots] == before
    learner, baseline = (region.memory(side).descriptor for side in SIDES)
    assert learner != baseline


def test_all_bytes_of_an_element_come_together() -> None:
    _, layout = made(1000)
    x = next(slot for slot in layout.slots if slot.name == "x")
    late = Late.drawn([x])
    for held in late:
        elements = held.reshape(-1, 8)
        assert (elements == elements[:, :1] + np.arange(8)).all()
        assert ((elements[:, 0] - x.offset) % 8 == 0).all()
