"""Compiles the kernels of the lab "occupancy", and writes what they take.

    python tools/occupancy_kernels.py

The questions use these numbers, so that they are the same whichever compiler is here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "labs"), str(ROOT / "monitors")]

from warpbook_labs.compiler import nvrtc
from warpbook_labs.results.occupancy import read_log

LAB = ROOT / "labs/catalogue/memory/occupancy"
ARCHITECTURES = ("sm_80", "sm_90", "sm_120")


def compiled() -> dict[str, object]:
    """Compile for each architecture; give registers, spills and shared memory."""
    source = (LAB / "kernels.cu").read_text(encoding="utf-8")
    rows = []
    for architecture in ARCHITECTURES:
        log = nvrtc.compile_to_ptx(source, architecture, (nvrtc.VERBOSE,)).log
        kernels, _ = read_log(log)
        rows += [
            {
                "kernel": name,
                "architecture": architecture,
                "registers": kernel.registers,
                "spill_bytes": kernel.spill_store_bytes + kernel.spill_load_bytes,
                "shared_bytes": kernel.shared_bytes,
            }
            for name, kernel in sorted(kernels.items())
        ]
    return {"nvrtc": nvrtc.version(), "kernels": rows}


if __name__ == "__main__":
    measured = compiled()
    rows = ",\n".join(f"  {json.dumps(kernel)}" for kernel in measured["kernels"])  # type: ignore[attr-defined]
    text = f'{{"nvrtc": "{measured["nvrtc"]}", "kernels": [\n{rows}\n]}}\n'
    (LAB / "compiled.json").write_text(text, encoding="utf-8")
