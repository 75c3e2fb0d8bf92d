"""What this GPU was measured to reach in this session; marks are a fraction of it.

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

import msgspec

from warpbook_labs.gpu.parent import run_child
from warpbook_labs.results.measurements import LimitCard
from warpbook_monitors.data_folder import data_folder
from warpbook_profiler.capture.limits import Answer

SITTING_S = 15 * 60.0
_PATIENCE_S = 60.0

#: as torch names what is multiplied, and as labs do
_DTYPES = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "signed char": "int8",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
}


class NoLimitCard(Exception):
    """The limits of this GPU can't be measured now; the message says why."""


def limit_card(uuid: str, driver: str | None) -> LimitCard:
    """Give the card of this session; measure it, some seconds long, if there is none.

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
    child = run_child("warpbook_labs.gpu.measuring", b"", uuid, _PATIENCE_S, uuid)
    try:
        card = msgspec.json.decode(child.stdout, type=LimitCard)
    except msgspec.MsgspecError:
        raise NoLimitCard(
            f"What this GPU reaches could not be measured: {child.last_words}"
        ) from None
    card = _with_products(card)
    _keep(path, card)
    return card


def _kept(path: Path) -> LimitCard | None:
    try:
        card = msgspec.json.decode(path.read_bytes(), type=LimitCard)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    age_s = time.time() - card.measured_ms / 1000
    return card if 0 <= age_s < SITTING_S else None


def _with_products(card: LimitCard) -> LimitCard:
    """Have torch multiply matrices, in a process of its own, where it is installed."""
    module = "warpbook_profiler.capture.measure_limits"
    child = run_child(module, b"", card.uuid, _PATIENCE_S, "--ceilings")
    try:
        answer = msgspec.json.decode(child.stdout, type=Answer)
    except msgspec.MsgspecError:
        words = f"PyTorch can't multiply matrices for it: {child.last_words}"
        return msgspec.structs.replace(card, flops_unknown=words)
    reached = answer.limits[0].ceilings if answer.limits else None
    if reached is None:
        return msgspec.structs.replace(card, flops_unknown=answer.problem or "")
    rates = {_DTYPES.get(key, key): rate for key, rate in reached.flops_per_s.items()}
    return msgspec.structs.replace(
        card,
        copy_bytes_per_s=max(card.copy_bytes_per_s, reached.memory_bytes_per_s),
        flops_per_s=rates,
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
