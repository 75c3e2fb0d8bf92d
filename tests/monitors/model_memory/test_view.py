"""What is held at the peak: parts that sum to it, and their words."""

import pytest

from warpbook_monitors.model_memory.models import known_names, read_model
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.view import model_memory, view_of_memory

PLANS = {
    "plain": Plan(),
    "autocast": Plan(batch=4, precision="autocast", checkpoint="full"),
    "sgd": Plan(precision="fp32", optimizer="sgd", micro_batches=4),
    "zero3": Plan(pipeline=2, data=2, zero=3),
    "inference": Plan(inference=True, graphs=True, chunk=512),
}


@pytest.mark.parametrize("name", known_names())
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_parts_sum_to_the_peak(name: str, plan: Plan) -> None:
    memory = model_memory(read_model(name), plan, 80 * 10**9)
    for stage in memory.stages:
        assert sum(stage.held.values()) == stage.peak_bytes
    heaviest = max(stage.peak_bytes for stage in memory.stages)
    view = view_of_memory(memory, plan)
    assert view.peak_bytes == heaviest
    assert sum(segment.size_bytes for segment in view.segments) == heaviest
    assert view.scale_bytes == max(heaviest, 80 * 10**9)
    assert view_of_memory(model_memory(read_model(name), plan), plan).fit == []


def test_what_is_at_the_peak_is_what_the_moment_has() -> None:
    # in the optimizer no activation is kept, and in a backward pass some are
    [few] = model_memory(read_model("gpt2"), Plan(checkpoint="full")).stages
    [many] = model_memory(read_model("gpt2"), Plan(batch=8)).stages
    assert few.peak_block is None
    assert few.held["activations"] == 0
    assert few.held["gradients"] == few.needed["gradients"]
    assert many.peak_block == "head"
    assert many.held["activations"] > 0
