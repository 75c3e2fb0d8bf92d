"""Which lab teaches the technique that a report advises."""

from __future__ import annotations

from typing import Final

from warpbook_profiler.checklist.answers import Labs as ChecklistLabs
from warpbook_profiler.model.report_view import Labs

LABS: Final[Labs] = {
    "attention": "which-sdpa",
    "communication": "parallelism-by-hand",
    "copy-overlap": "copy-compute-overlap",
    "fp8": "fp8-linear",
    "graphs": "cuda-graphs",
    "host-waits": "read-the-trace",
    "int8": "int8-linear",
    "memory-traffic": "roofline",
    "pinned-memory": "host-device-copies",
    "tensor-cores": "mixed-precision",
    "zero-copy": "zero-copy",
}

#: by item of the checklist
CHECKLIST_LABS: Final[ChecklistLabs] = {
    "profile-first": "read-the-trace",
    "loader-workers": "copy-compute-overlap",
    "pinned-input": "host-device-copies",
    "host-waits": "fix-the-trace",
    "batch-size": "occupancy",
    "cuda-graphs": "cuda-graphs",
    "fusion": "fused-norm",
    "tensor-cores": "tensor-cores",
    "mixed-precision": "mixed-precision",
    "alignment": "tensor-cores",
    "cudnn-benchmark": "convolution-settings",
    "channels-last": "convolution-settings",
    "checkpointing": "checkpointing",
    "low-precision": "fp8-linear",
}
