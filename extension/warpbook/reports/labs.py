"""Which lab teaches the technique that a report advises."""

from __future__ import annotations

from typing import Final

from warpbook_monitors.trace.report_view import Labs

LABS: Final[Labs] = {
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
