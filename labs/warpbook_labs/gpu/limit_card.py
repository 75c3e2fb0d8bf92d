"""What this GPU was measured to reach in this sitting; marks are a fraction of it.

`measuring.py` measures it, in a process of its own; PyTorch, where it is installed,
adds how fast it multiplies matrices, in another one. A card is kept for some minutes,
for the same GPU and driver: clocks, heat and neighbours change by the hour.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from warpbook_labs.gpu.child import run_child
from warpbook_monitors.data_folder import data_folder
from warpbook_monitors.trace.limits import Answer

SITTING_S = 15 * 60.0
_PATIENCE_S = 60.0
#: below this many operations a byte no GPU of today waits for its arithmetic
_MEMORY_BOUND_FLOPS_PER_BYTE = 1.0

#: as torch names what is multiplied, and as labs do
_DTYPES = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "signed char": "int8",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
}

_Positive = Annotated[float, Meta(gt=0, lt=1e20)]


class LimitCard(Struct, frozen=True):
    """The fastest that one GPU was seen to do in this sitting."""

    gpu: str
    uuid: str
    driver: str | None
    #: Unix time
    measured_ms: float
    #: within its memory: what is read and what is written
    copy_bytes_per_s: _Positive
    #: from and to pinned memory
    host_to_device_bytes_per_s: _Positive
    device_to_host_bytes_per_s: _Positive
    #: an empty kernel, launched and waited for
    launch_latency_ns: _Positive
    #: where memory is read alone, which is faster than to read and write in turns
    read_bytes_per_s: _Positive | None = None
    #: products of matrices by what is multiplied: "float32", "tf32", "float16", ...
    flops_per_s: dict[str, _Positive] = {}
    #: why some of those are not known, in words
    flops_unknown: str = ""
    #: while it was measured, and what NVML says else; None where it does not tell
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_limit_watts: float | None = None
    has_ecc: bool | None = None
    has_mig: bool | None = None

    @property
    def over_copy(self) -> float:
        """How many times faster than a copy memory can be."""
        return max(1.0, (self.read_bytes_per_s or 0.0) / self.copy_bytes_per_s)

    def fastest_ns(self, size_bytes: float, flops: float, dtype: str) -> float | None:
        """Give the least time that a piece of work can take here.

        None if its arithmetic may decide, and how fast that is was not measured.

        Args:
            size_bytes: what must be read and written at least.
            flops: what must be computed at least.
            dtype: of what is computed.
        """
        memory_ns = size_bytes / self.copy_bytes_per_s * 1e9
        peak = self.flops_per_s.get(dtype)
        if peak is not None:
            return max(memory_ns, flops / peak * 1e9)
        is_memory_bound = flops <= _MEMORY_BOUND_FLOPS_PER_BYTE * size_bytes
        return memory_ns if is_memory_bound else None


class NoLimitCard(Exception):
    """The limits of this GPU can't be measured now; the message says why."""


def limit_card(uuid: str, driver: str | None) -> LimitCard:
    """Give the card of this sitting; measure it, some seconds long, if there is none.

    Args:
        uuid: NVML's, of the GPU that submissions run on.
        driver: its version, as NVML tells it.

    Raises:
        NoLimitCard: it can't be measured.
    """
    path = _path(uuid, driver)
    kept = _kept(path)
    if kept is not None:
        return kept
    # no context of this process, and no torch in it: both would stay
    told = run_child("warpbook_labs.gpu.measuring", b"", uuid, _PATIENCE_S, uuid)
    try:
        card = msgspec.json.decode(told.stdout, type=LimitCard)
    except msgspec.MsgspecError:
        raise NoLimitCard(
            f"What this GPU reaches could not be measured: {told.last_words}"
        ) from None
    card = _with_products(card)
    _keep(path, card)
    return card


def _kept(path: Path) -> LimitCard | None:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=LimitCard)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    age_s = time.time() - found.measured_ms / 1000
    return found if 0 <= age_s < SITTING_S else None


def _with_products(card: LimitCard) -> LimitCard:
    """Have torch multiply matrices, in a process of its own, where it is installed."""
    module = "warpbook_monitors.trace.measure_limits"
    told = run_child(module, b"", card.uuid, _PATIENCE_S, "--again")
    try:
        answer = msgspec.json.decode(told.stdout, type=Answer)
    except msgspec.MsgspecError:
        words = f"PyTorch can't multiply matrices for it: {told.last_words}"
        return msgspec.structs.replace(card, flops_unknown=words)
    if not answer.limits:
        return msgspec.structs.replace(card, flops_unknown=answer.problem or "")
    found = answer.limits[0]
    return msgspec.structs.replace(
        card,
        copy_bytes_per_s=max(card.copy_bytes_per_s, found.memory_bytes_per_s),
        flops_per_s={_DTYPES.get(k, k): rate for k, rate in found.flops_per_s.items()},
    )


def _keep(path: Path, card: LimitCard) -> None:
    """Keep it for the next submission; without a place for it, it is measured again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(card)))
        os.replace(name, path)
    except OSError:
        pass


def _path(uuid: str, driver: str | None) -> Path:
    name = re.sub(r"[^\w.-]", "_", f"{uuid}-{driver or 'unknown'}", flags=re.A)
    return data_folder() / "limit_cards" / f"{name}.json"
