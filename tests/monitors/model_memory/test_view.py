"""What is held at the peak: parts that sum to it, and their words."""

import pytest

from warpbook_monitors.model_memory.description import known_names, read_model
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.report import model_memory
from warpbook_monitors.model_memory.view import view_of_memory

PLANS = (
    Plan(),
    Plan(batch=4, precision="autocast", checkpoint="full"),
    Plan(precision="fp32", optimizer="sgd", micro_batches=4),
    Plan(pipeline=2, data=2, zero=3),
)


@pytest.mark.parametrize("name", known_names())
@pytest.mark.parametrize("plan", PLANS, ids=("plain", "autocast", "sgd", "zero3"))
def test_the_parts_sum_to_the_peak(name: str, plan: Plan) -> None:
    memory = model_memory(read_model(name), plan, capacity_bytes=80 * 10**9)
    for stage in memory.training:
        assert stage.held.total_bytes == stage.peak_bytes
    heaviest = max(stage.peak_bytes for stage in memory.training)
    bar = view_of_memory(memory, plan).bar
    assert bar.peak_bytes == heaviest
    assert sum(segment.size_bytes for segment in bar.segments) == heaviest
    assert bar.scale_bytes == max(heaviest, 80 * 10**9)


@pytest.mark.parametrize("name", known_names())
def test_of_inference_they_do_too(name: str) -> None:
    memory = model_memory(read_model(name), Plan(), is_inference=True)
    bar = view_of_memory(memory, Plan()).bar
    assert sum(segment.size_bytes for segment in bar.segments) == bar.peak_bytes
    assert bar.capacity_bytes is None


def test_what_is_at_the_peak_is_what_the_moment_has() -> None:
    # in the optimizer no activation is kept, and in a backward pass some are
    few = model_memory(read_model("gpt2"), Plan(batch=1, checkpoint="full"))
    many = model_memory(read_model("gpt2"), Plan(batch=8))
    assert few.training[0].peak_at == "optimizer"
    assert few.training[0].held.activations_bytes == 0
    assert few.training[0].held.gradients_bytes == few.training[0].gradients_bytes
    assert many.training[0].peak_at == "backward"
    assert many.training[0].held.activations_bytes > 0
