"""The most that a GPU can do: datasheets, and the same chip's clocks.

Peaks are dense (NVIDIA prints twice as much, for sparse matrices) and at the boost
clock. From NVIDIA's datasheets of each product.
"""

from __future__ import annotations

from typing import NamedTuple


class Ceilings(NamedTuple):
    """Of one GPU, per second."""

    memory_bytes_per_s: float
    #: by torch's dtype name, and "tf32", which is "float" on the tensor cores
    flops_per_s: dict[str, float]


def _sheet(
    memory_tb: float, fp64: float, fp32: float, half: float, byte: float | None
) -> Ceilings:
    """TB/s and TFLOP/s; `byte` is FP8 or INT8 on the tensor cores."""
    flops = {
        "double": fp64 * 1e12,
        "float": fp32 * 1e12,
        "tf32": half / 2 * 1e12,
        "c10::Half": half * 1e12,
        "c10::BFloat16": half * 1e12,
    }
    if byte is not None:
        for name in ("c10::Float8_e4m3fn", "c10::Float8_e5m2", "signed char"):
            flops[name] = byte * 1e12
    return Ceilings(memory_tb * 1e12, flops)


#: a part of the product's name, the longer first
_SHEETS = (
    ("H200", _sheet(4.8, 67, 67, 989, 1979)),
    ("H100 PCIe", _sheet(2.0, 51, 51, 756, 1513)),
    ("H100 NVL", _sheet(3.9, 60, 60, 835, 1671)),
    ("H100", _sheet(3.35, 67, 67, 989, 1979)),
    ("GH200", _sheet(4.0, 67, 67, 989, 1979)),
    ("B200", _sheet(8.0, 40, 80, 2250, 4500)),
    ("A100-SXM4-80GB", _sheet(2.04, 19.5, 19.5, 312, None)),
    ("A100 80GB PCIe", _sheet(1.94, 19.5, 19.5, 312, None)),
    ("A100", _sheet(1.56, 19.5, 19.5, 312, None)),
    ("L40S", _sheet(0.864, 1.4, 91.6, 362, 733)),
    ("L4", _sheet(0.3, 0.47, 30.3, 121, 242)),
    ("A10G", _sheet(0.6, 0.55, 35, 70, None)),
    ("T4", _sheet(0.32, 0.25, 8.1, 65, None)),
    ("V100", _sheet(0.9, 7.8, 15.7, 125, None)),
    ("RTX 4090", _sheet(1.008, 1.3, 82.6, 165, 330)),
    ("RTX 3090", _sheet(0.936, 0.56, 35.6, 71, None)),
)


def ceilings(gpu_name: str) -> Ceilings | None:
    """Find a GPU's datasheet by the driver's name of it; None if it is not listed."""
    return next((sheet for part, sheet in _SHEETS if part in gpu_name), None)
