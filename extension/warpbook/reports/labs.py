"""Which lab teaches what would remove a cause; changes name their labs themselves."""

from __future__ import annotations

from typing import Final

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
