"""The GPU's memory as the referee has it, and its probe, on a GPU that is a fake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.labs.gpu.fake_gpu import FakeGpu
from warpbook_labs.compiler.nvrtc import Compiled
from warpbook_labs.engines.host import device_region, harness
from warpbook_labs.engines.host.device_region import DeviceRegion
from warpbook_labs.engines.host.harness import Probe
from warpbook_labs.engines.host.memory import Layout, laid_out
from warpbook_labs.gpu import tools
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.spec import Parameter

N = 3000
X = Parameter("x", "input", "float32", ("n",))
SIDES: tuple[Side, ...] = ("learner", "baseline")
OUT = Parameter("out", "output", "float32", ("n",))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    def handle(driver: object, address: int) -> bytes:
        return address.to_bytes(64, "little")

    nothing = lambda *_: Compiled("", "", b"")  # noqa: E731
    monkeypatch.setattr(tools, "kept_program", nothing)
    monkeypatch.setattr(device_region, "handle_of", handle)
    monkeypatch.setattr(device_region, "_GRAIN_BYTES", 4096)
    made: Any = FakeGpu(lambda *_: None, lambda *_: None)
    made.driver = None
    return made  # type: ignore[no-any-return]


@pytest.fixture
def layout() -> Layout:
    return laid_out([X, OUT], {"n": N}, sets=2)


@pytest.fixture
def region(fake: Any, layout: Layout) -> DeviceRegion:
    pool = np.arange(1, 5000, dtype=np.float32)
    made = DeviceRegion(Tools(fake), layout.size_bytes["device"], {"x": pool}, SIDES)
    made.own()
    return made


def test_inputs_are_put_together_apart_and_loaded(
    region: DeviceRegion, layout: Layout
) -> None:
    for key, slot in enumerate(layout.read):
        region.fill(slot, "x", key)
    region.load(layout.read, "learner")
    region.complete("learner")
    one, other = (region.read(slot, "learner") for slot in layout.read)
    assert one.shape == (N,) and not np.array_equal(one, other)
    first, second = layout.read
    assert not region.is_changed(first, "learner")
    one[N - 1] += 1
    region.write(first, one, "learner")
    assert region.is_changed(first, "learner")
    assert not region.is_changed(second, "learner")


def test_neither_side_sees_what_the_other_is_given(
    region: DeviceRegion, layout: Layout
) -> None:
    (first, _), (out, _) = layout.read, layout.written
    region.fill(first, "x", 1)
    region.poison(out, "learner")
    before = [region.read(slot, "learner").tobytes() for slot in (first, out)]
    region.load(layout.read, "baseline")
    region.poison(out, "baseline")
    after = [region.read(slot, "learner").tobytes() for slot in (first, out)]
    assert after == before
    learner, baseline = (region.memory(side).handle for side in SIDES)
    assert learner != baseline


def test_nothing_of_inputs_is_shared_before_they_are_complete(
    region: DeviceRegion, layout: Layout
) -> None:
    for key, slot in enumerate(layout.read):
        region.fill(slot, "x", key)
    for slot in layout.written:
        region.poison(slot, "learner")
    before = [region.read(slot, "learner").tobytes() for slot in layout.slots]
    region.load(layout.read, "learner")
    assert [region.read(slot, "learner").tobytes() for slot in layout.slots] == before
    region.complete("learner")
    assert not any(region.is_changed(slot, "learner") for slot in layout.read)
    for slot in layout.written:
        assert np.isnan(region.read(slot, "learner")).all()


def test_memory_is_given_back(region: DeviceRegion, fake: Any) -> None:
    held = len(fake.allocated)
    region.close()
    # shared by two, poison, a pool, inputs, what two left
    assert held - len(fake.allocated) == 7


def test_outputs_are_poisoned_kept_and_compared(
    region: DeviceRegion, layout: Layout
) -> None:
    first, second = layout.written
    right = np.arange(1, N + 1, dtype=np.float32)
    for slot in layout.written:
        for side in SIDES:
            region.poison(slot, side)
            assert np.isnan(region.read(slot, side)).all()
            assert region.first_unwritten(slot, region.read(slot, side)) == 0
            region.write(slot, right, side)
            assert region.first_unwritten(slot, region.read(slot, side)) is None
    region.keep(layout.written, "baseline")
    wrong = right.copy()
    wrong[77] += 1
    region.write(second, wrong, "learner")
    region.keep(layout.written, "learner")
    assert region.wrong(first, 0.0) == ""
    assert "out[77] is wrong in a timed call, and 1 of 3,000" in (
        region.wrong(second, 0.0)
    )
    assert region.wrong(second, 1.0) == ""
    # what is kept stays when what is shared is poisoned again
    region.poison(first, "learner")
    assert np.array_equal(region.kept(first, "learner"), right)


def test_the_probe_tells_by_how_long_it_takes(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "_COPY_BYTES", 4096)
    probe_of_fake = Probe(Tools(fake))
    assert probe_of_fake.quiet.spin_ns == fake.own_ns and probe_of_fake.is_quiet()
    fake.own_ns *= 1.9
    assert not probe_of_fake.is_quiet()
