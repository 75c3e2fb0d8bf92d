"""The trace that ships with warpbook, for whoever has no GPU at hand.

One training step in float32 of a layer pair of 1024 and 4096 (8192 rows), recorded with
torch.profiler and shapes on an NVIDIA H200 with CUDA 13.0 on 2026-11-21.
"""

from __future__ import annotations

from pathlib import Path

#: of a Chrome trace, as torch.profiler writes it
EXAMPLE_TRACE = str(Path(__file__).parent / "examples" / "training_h200.json.gz")
