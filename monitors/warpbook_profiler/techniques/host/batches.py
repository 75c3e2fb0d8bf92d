"""Batches that fill the GPU; a trace tells no gain of larger ones."""

from __future__ import annotations

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.techniques.technique import Technique

_SMALL = ("too small", "too few blocks")
#: of the kernels' time, or of the run's, from which a cause counts
_LEAST_SHARE = 0.25


def _judge(facts: Facts) -> Judgement:
    if not facts.has_layers:
        if not facts.host_names:
            return Judgement(
                "unknown",
                "The trace has no operators, so batches are unknown.",
                "Also record with ProfilerActivity.CPU.",
            )
        return Judgement("not applicable", "No layer of a model is in this window.")
    kernel_time_ns = max(facts.metrics.kernel_time_ns, 1)
    small = [row for row in facts.metrics.kernel_work if row.bound.startswith(_SMALL)]
    small_share = sum(row.time_ns for row in small) / kernel_time_ns
    launching = facts.cause_share("launch-bound")
    evidence = (
        f"{percent(small_share)} of the kernels' time is in kernels too small to fill "
        f"the GPU, and launching them one by one explains {percent(launching)} of the "
        "time."
    )
    if small_share >= _LEAST_SHARE or launching >= _LEAST_SHARE:
        return Judgement(
            "no",
            evidence,
            "Try a larger batch, as far as memory and the training allow: each launch "
            "then does more work. Its gain is known only after a trial.",
        )
    if facts.profile.bare is None and not facts.profile.findings:
        return Judgement(
            "unknown",
            "It is not known where the time goes.",
            "Record it with torch.profiler, or profile the cell by %%gpuprof.",
        )
    return Judgement(
        "yes",
        f"{percent(1 - small_share)} of the kernels' time is in kernels that are large "
        "enough to fill the GPU.",
    )


BATCH_SIZE = Question(
    name="batch-size",
    text="Is the batch large enough to fill the GPU?",
    judge=_judge,
    no_where=(
        "a quarter or more of the kernels' time is in layers whose kernels are too "
        "small to fill the GPU, or launching explains a quarter of the time"
    ),
    lab="occupancy",
)


TECHNIQUE = Technique(questions=(BATCH_SIZE,))
