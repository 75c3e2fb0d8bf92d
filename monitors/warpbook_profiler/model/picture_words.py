"""The roofline and memory over time in words, for every view."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors import units
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.pictures import MemoryCurve, Roof


def no_roofline(profile: CellProfile) -> str:
    """Say why no operator can be drawn under a roof."""
    if profile.roofline:
        return (
            "No roofline: no operator whose arithmetic is modelled (products, "
            "convolutions, attention, solvers) ran on a GPU in this code."
        )
    return (
        "No roofline: no operator with known operands ran on a GPU. Custom kernels, "
        "CUDA graphs and runs with --no-shapes have none."
    )


def basis_words(roofs: Sequence[Roof]) -> str:
    """Say what the roofs of one kind of GPU are."""
    bases = [roof.basis for roof in roofs]
    if not bases:
        return "No ceiling of this GPU is known: warpbook limits measures it."
    said = []
    if "measured" in bases:
        said.append("solid: measured here")
    if "datasheet" in bases:
        said.append("dashed: datasheet")
    if "measured" not in bases:
        said.append("warpbook limits measures what this GPU reaches")
    return "; ".join(said)


def peak_words(curve: MemoryCurve) -> str:
    """Say how much there was at most, when, and what allocated it."""
    said = (
        f"GPU {curve.device}: peak {units.size(curve.peak_allocated_bytes)} "
        f"at {units.duration_ns(max(curve.peak_ns, 0))}"
    )
    if curve.peak_line is not None:
        said += f", line {curve.peak_line}"
    return f"{said}, in {curve.peak_path}" if curve.peak_path else said


def allocator_words(curve: MemoryCurve, use: MemoryUse | None) -> str:
    """Say what else torch's allocator did on that GPU."""
    said = [f"{curve.changes:,} allocations and frees"]
    if use is not None:
        if use.fragmentation_share is not None:
            said.append(f"{units.share(use.fragmentation_share)} fragmented at the end")
        said.append(f"{use.retries:,} retries")
        said.append(f"{use.driver_allocations:,} cudaMalloc")
    return ", ".join(said)
