"""The most that a GPU can do, by the datasheet of its product.

Peaks are dense (NVIDIA prints twice as much, for sparse matrices), at the boost clock,
and those of the tensor cores add up in FP32, as torch has them do. A product that is
not here, a laptop's GPU or a MIG instance has none: nothing is derived from another's.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Ceilings(NamedTuple):
    """Of one GPU, per second."""

    memory_bytes_per_s: float
    #: by torch's dtype name, and "tf32", which is "float" on the tensor cores
    flops_per_s: dict[str, float]


#: how people call what `Ceilings.flops_per_s` has
DTYPE_LABELS = {
    "double": "FP64",
    "float": "FP32",
    "tf32": "TF32",
    "c10::Half": "FP16",
    "c10::BFloat16": "BF16",
    "c10::Float8_e4m3fn": "FP8",
    "c10::Float8_e5m2": "FP8",
    "c10::Float8_e4m3fnuz": "FP8",
    "c10::Float8_e5m2fnuz": "FP8",
    "c10::Float4_e2m1fn_x2": "FP4",
    "signed char": "INT8",
}
_KEYS = {
    "fp64": ("double",),
    "fp32": ("float",),
    "tf32": ("tf32",),
    "fp16": ("c10::Half",),
    "bf16": ("c10::BFloat16",),
    "fp8": (
        "c10::Float8_e4m3fn",
        "c10::Float8_e5m2",
        "c10::Float8_e4m3fnuz",
        "c10::Float8_e5m2fnuz",
    ),
    "fp4": ("c10::Float4_e2m1fn_x2",),
    "int8": ("signed char",),
}
IN_8_BITS = (*_KEYS["int8"], *_KEYS["fp8"])


def _sheet(memory_tb: float, **tera: float) -> Ceilings:
    """Take TB/s and T(FL)OP/s; what is left out the product has no unit for."""
    return Ceilings(
        memory_tb * 1e12,
        {key: peak * 1e12 for name, peak in tera.items() for key in _KEYS[name]},
    )


def _hopper(memory_tb: float, fp64: float, half: float) -> Ceilings:
    """FP64 on its tensor cores too, which is as fast as FP32."""
    return _sheet(
        memory_tb,
        fp64=fp64,
        fp32=fp64,
        tf32=half / 2,
        fp16=half,
        bf16=half,
        fp8=2 * half,
        int8=2 * half,
    )


def _ampere(memory_tb: float, fp64: float, fp32: float, half: float) -> Ceilings:
    return _sheet(
        memory_tb,
        fp64=fp64,
        fp32=fp32,
        tf32=half / 2,
        fp16=half,
        bf16=half,
        int8=2 * half,
    )


def _blackwell(memory_tb: float, fp64: float, fp32: float, half: float) -> Ceilings:
    return _sheet(
        memory_tb,
        fp64=fp64,
        fp32=fp32,
        tf32=half / 2,
        fp16=half,
        bf16=half,
        fp8=2 * half,
        fp4=4 * half,
        int8=2 * half,
    )


def _cdna3(memory_tb: float) -> Ceilings:
    return _sheet(
        memory_tb,
        fp64=163.4,
        fp32=163.4,
        tf32=653.7,
        fp16=1307.4,
        bf16=1307.4,
        fp8=2614.9,
        int8=2614.9,
    )


#: the driver's whole name without "NVIDIA", "Tesla" or "GeForce" before it
_SHEETS = {
    # "NVIDIA H200 Tensor Core GPU Datasheet"
    r"H200": _hopper(4.8, 67, 989),
    r"H200 NVL": _hopper(4.8, 60, 835),
    # "NVIDIA H100 Tensor Core GPU Datasheet"
    r"H100 80GB HBM3": _hopper(3.35, 67, 989),
    r"H100 PCIe": _hopper(2.0, 51, 756),
    r"H100 NVL": _hopper(3.9, 60, 835),
    # "NVIDIA GH200 Grace Hopper Superchip Datasheet": HBM3, and HBM3e
    r"GH200 480GB": _hopper(4.0, 67, 989),
    r"GH200 144G HBM3e": _hopper(4.9, 67, 989),
    # "NVIDIA HGX Platform", an eighth of HGX B200; "GB200 NVL72", a 72nd
    r"B200": _blackwell(7.7, 37, 75, 2250),
    r"GB200": _blackwell(8.0, 40, 80, 2500),
    # "NVIDIA A100 Tensor Core GPU Datasheet"; FP64 on its tensor cores
    r"A100-SXM4-80GB": _ampere(2.039, 19.5, 19.5, 312),
    r"A100 80GB PCIe": _ampere(1.935, 19.5, 19.5, 312),
    r"A100-(SXM4|PCIE)-40GB": _ampere(1.555, 19.5, 19.5, 312),
    # "NVIDIA A30 / A40 / A10 Tensor Core GPU Datasheet"
    r"A30": _ampere(0.933, 10.3, 10.3, 165),
    r"A40": _ampere(0.696, 0.585, 37.4, 149.7),
    r"A10": _ampere(0.6, 0.488, 31.2, 125),
    # "NVIDIA A10G Datasheet"
    r"A10G": _ampere(0.6, 0.547, 35, 70),
    # "NVIDIA RTX A6000 Datasheet"
    r"RTX A6000": _ampere(0.768, 0.605, 38.7, 154.8),
    # "NVIDIA L40S / L40 / L4 Tensor Core GPU Datasheet"
    r"L40S": _sheet(
        0.864, fp64=1.4, fp32=91.6, tf32=183, fp16=362, bf16=362, fp8=733, int8=733
    ),
    r"L40": _sheet(
        0.864, fp64=1.4, fp32=90.5, tf32=90.5, fp16=181, bf16=181, fp8=362, int8=362
    ),
    r"L4": _sheet(
        0.3, fp64=0.47, fp32=30.3, tf32=60, fp16=121, bf16=121, fp8=242, int8=242
    ),
    # "NVIDIA Tesla T4 Datasheet": Turing has neither BF16 nor TF32
    r"T4": _sheet(0.32, fp64=0.254, fp32=8.1, fp16=65, int8=130),
    # "NVIDIA V100 Tensor Core GPU Datasheet": Volta has no INT8 either
    r"V100-SXM2-(16|32)GB": _sheet(0.9, fp64=7.8, fp32=15.7, fp16=125),
    r"V100-PCIE-(16|32)GB": _sheet(0.9, fp64=7, fp32=14, fp16=112),
    # "AMD Instinct MI300X / MI325X / MI210 Data Sheet", of the matrix cores
    r"MI300X( VF)?": _cdna3(5.3),
    r"MI325X( VF)?": _cdna3(6.0),
    # "AMD Instinct MI355X GPU Data Sheet": it has no TF32
    r"MI355X": _sheet(
        8.0,
        fp64=78.6,
        fp32=157.3,
        fp16=2516.6,
        bf16=2516.6,
        fp8=5033.2,
        fp4=10066.3,
        int8=5033.2,
    ),
    r"MI210": _sheet(1.638, fp64=45.3, fp32=45.3, fp16=181, bf16=181, int8=181),
    # "NVIDIA Ada GPU Architecture", appendix A
    r"RTX 4090": _sheet(
        1.008,
        fp64=1.29,
        fp32=82.6,
        tf32=82.6,
        fp16=165.2,
        bf16=165.2,
        fp8=330.3,
        int8=660.6,
    ),
    # "NVIDIA Ampere GA102 GPU Architecture", appendix A
    r"RTX 3090": _sheet(
        0.936, fp64=0.556, fp32=35.6, tf32=35.6, fp16=71, bf16=71, int8=284
    ),
}
_MAKER = re.compile(r"^(NVIDIA |Tesla |GeForce |AMD Instinct )+")


def ceilings(gpu_name: str) -> Ceilings | None:
    """Find a GPU's datasheet by the driver's name of it; None if it is not listed."""
    product = _MAKER.sub("", gpu_name)
    return next(
        (sheet for name, sheet in _SHEETS.items() if re.fullmatch(name, product)), None
    )


def ridges(dtype: str | None) -> tuple[float, float] | None:
    """Return the FLOPs per byte at which roofs meet: least and most of all sheets."""
    found = [
        peak / sheet.memory_bytes_per_s
        for sheet in _SHEETS.values()
        if (peak := sheet.flops_per_s.get(dtype or "")) is not None
    ]
    return (min(found), max(found)) if found else None
