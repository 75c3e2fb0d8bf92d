"""How exact products of float32 matrices are: as PyTorch has them at first."""

from __future__ import annotations

from typing import Any

from warpbook_labs.simulated.recording.refusing import Told, refuse

_WAY = "Products of float32 matrices are exact here: leave it out, or say x.half(). "


class MatmulSettings(Told):
    """`torch.backends.cuda.matmul`."""

    _spoken = "torch.backends.cuda.matmul"
    allow_tf32 = False
    fp32_precision = "none"

    def __setattr__(self, name: str, value: Any) -> None:
        """Take what changes nothing."""
        usual = {"allow_tf32": (False,), "fp32_precision": ("none", "ieee")}
        if value not in usual.get(name, ()):
            refuse(f"{self._spoken}.{name} = {value!r}", _WAY)


def set_float32_matmul_precision(precision: str) -> None:
    """Take what changes nothing."""
    if precision != "highest":
        refuse(f"torch.set_float32_matmul_precision({precision!r})", _WAY)


def get_float32_matmul_precision() -> str:
    """Tell it."""
    return "highest"
