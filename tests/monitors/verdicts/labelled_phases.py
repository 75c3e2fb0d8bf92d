"""How well live verdicts name the labelled phases of a recording."""

from __future__ import annotations

from collections import Counter

from warpbook_monitors.recordings.recording import Recording
from warpbook_monitors.verdicts.verdict import Verdict
from warpbook_monitors.verdicts.window import Window

#: what `tools/record_workloads.py` labels, and the verdict of each
KINDS = {
    "idle": "idle",
    "bf16 matmul": "compute-bound: tensor cores",
    "fp32 matmul": "compute-bound: CUDA cores",
    "elementwise": "memory-bound",
    "tiny kernels in a loop": "host-bound",
    "the same as a CUDA graph": "few-multiprocessors",
    "pinned host-to-device copy": "transfer-bound",
    "pageable host-to-device copy": "transfer-bound",
    "training, bf16": "mixed",
    "all-reduce": "communication-bound",
    "idle again": "idle",
}
#: a verdict has this time to see that another phase has begun
SETTLED_MS = 1000.0


def name(verdict: Verdict) -> str:
    """Give the kind of a verdict, with the unit that it names."""
    return f"{verdict.kind}: {verdict.unit}" if verdict.unit else verdict.kind


def told_kinds(
    recording: Recording, device_id: str | None = None
) -> dict[str, Counter[str]]:
    """Count by label what is told of a GPU from a second into each phase on.

    Args:
        recording: with labels.
        device_id: of the GPU that worked; by default the first.
    """
    wanted, window = device_id or recording.hello.devices[0].id, Window()
    begin_ms, label = 0.0, None
    counts: dict[str, Counter[str]] = {}
    for frame in recording.frames:
        if frame.label != label:
            begin_ms, label = frame.time_ms, frame.label
        window.append(frame, recording.hello.devices)
        verdict = window.judge(recording.hello.devices).get(wanted)
        if label in KINDS and frame.time_ms - begin_ms >= SETTLED_MS:
            kind = "not read" if verdict is None else name(verdict)
            counts.setdefault(label, Counter())[kind] += 1
    return counts


def named_ratio(counts: dict[str, Counter[str]]) -> float:
    """Give the share of readings that name their phase, 0 to 1."""
    right = sum(kinds[KINDS[label]] for label, kinds in counts.items())
    return right / sum(kinds.total() for kinds in counts.values())
